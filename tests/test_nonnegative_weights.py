"""Many weights that must be ≥ 0, of which an example touches few: visits write no others, and end at the optimum."""

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from block_rules import exact
from native_models import native
from reference_models import ChainModel

import maxmargin as mm
from maxmargin import _core
from maxmargin.solvers._cutting_planes import CutModel
from maxmargin.solvers._timing import Stopwatch

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

N_LABELS = 3
FIRST_ONLY = np.zeros(20, np.int64)
# What clipping would raise to 0.
UNTOUCHED = -7.0


def sequences(seed, n=6, own=4, shared=2):
    """Sequences over features of their own and a few that all share. Each is in several rows: one move writes a weight often."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for i in range(n):
        x = np.zeros((3, n * own + shared))
        x[:, i * own : (i + 1) * own] = rng.normal(size=(3, own))
        x[:, n * own :] = rng.normal(size=(3, shared))
        X.append(x)
        Y.append(rng.integers(0, N_LABELS, size=3))
    return X, Y


def bounded_chain():
    """A problem whose weights of features must be ≥ 0, and those of them that its first example does not touch."""
    X, Y = sequences(0)
    model = mm.models.Chain(N_LABELS, nonnegative={"coef": True})
    problem = model.bind([sp.csr_matrix(x) for x in X], Y)
    is_foreign = np.broadcast_to(~X[0].any(axis=0), (N_LABELS, X[0].shape[1]))
    foreign = np.flatnonzero(model.join(coef=is_foreign, transition=np.zeros((N_LABELS, N_LABELS))))
    assert set(foreign) < set(problem.nonnegative)
    return problem, foreign


def visit_working_sets(problem, weights):
    sets = _core.WorkingSets(problem.space, np.ones(problem.n_examples), False, problem.nonnegative)
    sets.visit(problem.oracle(weights, precise=True), FIRST_ONLY, 1, exact(1e-9), weights.exact)


def visit_working_sets_in_float(problem, weights):
    sets = _core.WorkingSets(problem.space, np.ones(problem.n_examples), False, problem.nonnegative)
    sets.visit(problem.oracle(weights, precise=False), FIRST_ONLY, 1, exact(1e-6), weights.exact, weights.rounded)
    weights.exact[...] = weights.rounded


def visit_by_frank_wolfe(problem, weights):
    core = _core.FrankWolfe(problem.space, np.ones(problem.n_examples), problem.nonnegative)
    core.visit(problem.oracle(weights, precise=True), FIRST_ONLY, 1, weights.exact)


def visit_by_sgd(problem, weights):
    visits = _core.OnlinePass(problem.space, weights.exact, None, None, 0, problem.nonnegative)
    visits.sgd(FIRST_ONLY, problem.oracle(weights, precise=True), 1.0, 1e9, 1e9)


@pytest.mark.parametrize("visit", [visit_working_sets, visit_working_sets_in_float, visit_by_frank_wolfe, visit_by_sgd])
def test_visits_write_no_weight_that_their_example_does_not_touch(visit):
    problem, foreign = bounded_chain()
    weights = problem.zero_weights()
    weights.exact[foreign] = UNTOUCHED
    visit(problem, weights)
    assert np.all(weights.exact[foreign] == UNTOUCHED)
    own = weights.exact[np.setdiff1d(problem.nonnegative, foreign)]
    assert np.all(own >= 0.0)
    assert 0 < np.count_nonzero(own) < len(own), "some are clipped, not all"


def test_moves_of_explicit_vectors_write_no_weight_that_these_do_not_have():
    space, w = _core.VectorSpace(1, 5, "margin"), np.full(5, UNTOUCHED)
    sets = _core.WorkingSets(space, np.ones(1), False, np.array([4, 1, 2]))
    plane = _core.PlaneBatch()
    plane.add_vector(0, 1.0, np.array([0, 1, 2], np.int32), np.array([0.1, 0.1, -0.1]))
    w[:3] = 0.0
    sets.insert(plane, w, 0.0)
    sets.sweep(np.zeros(1, np.int64), exact(1e-9), w)
    assert w == pytest.approx([0.1, 0.1, 0.0, UNTOUCHED, UNTOUCHED])


@pytest.mark.parametrize("rounded", [False, True])
def test_weights_that_were_moved_are_those_of_the_planes(rounded):
    problem, _ = bounded_chain()
    weights, fresh = problem.zero_weights(), np.empty(problem.n_weights)
    sets = _core.WorkingSets(problem.space, np.full(problem.n_examples, 0.3), False, problem.nonnegative)
    for _ in range(5):
        copy = weights.rounded if rounded else None
        sets.visit(problem.oracle(weights, precise=not rounded), problem.all_ids, 2, exact(1e-6), weights.exact, copy)
        sets.sweep(problem.all_ids, exact(1e-6), weights.exact, copy)
    sets.weights(fresh)
    moved = weights.rounded if rounded else weights.exact
    assert moved == pytest.approx(fresh, abs=1e-5 if rounded else 1e-12)
    assert np.count_nonzero(fresh[problem.nonnegative]) < len(problem.nonnegative)


@pytest.mark.parametrize(
    ("solver", "loss", "tol"),
    [
        ("block-dual", "hinge", 1e-6),
        ("block-dual", "squared_hinge", 1e-6),
        ("sdm", "hinge", 1e-6),
        ("bcfw", "hinge", 1e-3),
        ("one-slack", "hinge", 1e-6),
    ],
)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_solvers_reach_the_reference_optimum(solver, loss, tol, rescaling):
    X, Y = sequences(1)
    model = ChainModel(X, Y, N_LABELS)
    bounded = range(N_LABELS * model.n_features)
    best = reference.solve(reference.planes(model, rescaling), 0.3, None, loss, bounded)
    chain, X, Y = native(model, {"coef": True}, sparse=True)
    certificate = mm.train(
        chain, X, Y, 0.3, loss=loss, rescaling=rescaling, solver=solver, tol=tol, max_iter=5000, random_state=0
    ).certificate
    assert certificate.relative_gap <= tol
    assert certificate.dual <= best.objective * (1 + 1e-9)
    assert certificate.primal >= best.objective * (1 - 1e-9)
    assert certificate.primal == pytest.approx(best.objective, rel=2 * tol)


def test_cuts_are_kept_without_copying_those_before():
    problem, _ = bounded_chain()
    J = problem.nonnegative
    model = CutModel(problem, 1.0, 2, Stopwatch("gram", "qp", "weights"))
    n_dropped = 0
    for _ in range(12):
        before = model.store(None)
        problem.separate_into(model.cuts, model.weights, precise=True)
        model.keep_pending()
        after = model.store(None)
        assert all(
            np.shares_memory(a, b) for a, b in zip(before.at_nonnegative, after.at_nonnegative[:-1], strict=True)
        )
        model.solve(1e-9)
        n_dropped += model.n_dropped
    kept = model.store(None).at_nonnegative
    assert 0 < n_dropped == 12 - len(kept)
    assert model.weights.exact[J] == pytest.approx(np.maximum(0.0, model.alpha @ np.array(kept)), abs=1e-12)
