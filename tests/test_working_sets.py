"""How the QP over working sets gets to its optimum: active examples, and when rounding proves nothing."""

import numpy as np
import pytest
import reference
from block_rules import exact
from sklearn.datasets import make_classification

import maxmargin as mm
from maxmargin import _core
from maxmargin.solvers import n_slack

pytestmark = pytest.mark.core

NOTHING = np.zeros(0, np.int64)
N_EXAMPLES, N_WEIGHTS = 40, 4


def plane(example, loss, values):
    batch = _core.PlaneBatch()
    batch.add_vector(example, loss, np.arange(len(values), dtype=np.int32), np.array(values, dtype=float))
    return batch


def crawling_sets(rng, squared, nonnegative=NOTHING, rescaling="margin"):
    """Three planes of each example on four weights, far too long for C: what sweeps crawl on. With the reference's planes."""
    space = _core.VectorSpace(N_EXAMPLES, N_WEIGHTS, rescaling)
    s = rng.uniform(0.5, 2.0, size=N_EXAMPLES)
    sets = _core.WorkingSets(space, s, squared, nonnegative)
    own = []
    for i in range(N_EXAMPLES):
        losses, psi = rng.uniform(0.5, 2.0, size=3), 100.0 * rng.normal(size=(3, N_WEIGHTS))
        for loss, values in zip(losses, psi, strict=True):
            sets.insert(plane(i, loss, values), np.zeros(N_WEIGHTS), -np.inf)
        factors = losses if rescaling == "slack" else np.ones(3)
        own.append([reference.Plane(c, f * v) for c, f, v in zip(losses, factors, psi, strict=True)])
        own[-1].append(reference.Plane(0.0, np.zeros(N_WEIGHTS)))
    return sets, s, own


def dual(sets, w):
    return sets.linear_part() - 0.5 * w @ w


def test_the_history_tells_where_all_planes_were_moved_together():
    X, y = make_classification(200, 6, random_state=0)
    runs = {
        scale: mm.train(mm.models.Binary(), scale * X, 2 * y - 1, C=1.0, solver="n-slack", tol=1e-3)
        for scale in (1e-3, 1e3)
    }
    steps = {scale: sum(record["joint_steps"] for record in run.history) for scale, run in runs.items()}
    assert steps[1e-3] == 0
    assert steps[1e3] > 0
    assert all(run.certificate.converged for run in runs.values())


def test_a_sweep_tells_which_examples_it_moved():
    space = _core.VectorSpace(3, 3, "margin")
    sets = _core.WorkingSets(space, np.ones(3), False, NOTHING)
    w = np.zeros(3)
    for i in range(3):
        sets.insert(plane(i, 1.0, 2.0 * np.eye(3)[i]), w, 0.0)
    assert sets.sweep(np.array([2, 0]), exact(1e-9), w).moved.tolist() == [2, 0]
    assert sets.sweep(np.array([0, 1, 2]), exact(1e-9), w).moved.tolist() == [1]
    assert sets.sweep(np.array([0, 1, 2]), exact(1e-9), w).moved.tolist() == []


@pytest.mark.parametrize(("excess", "is_proof"), [(3e-8, False), (1e-2, True)])
def test_a_stored_plane_proves_an_answer_wrong_only_beyond_rounding(excess, is_proof):
    # The terms of w·ψ are 1e8, their sum is 1/3: its last digits are noise.
    space = _core.VectorSpace(1, 2, "margin")
    w, one = np.array([1.0, 1.0]), np.zeros(1, np.int64)
    found, stored = plane(0, 1.0, [1e8, -1e8 + 1 / 3]), plane(0, 1.0, [1e8, -1e8 + 1 / 3 - excess])
    value = found.losses() - space.dots(found, w)
    assert stored.losses() - space.dots(stored, w) > value
    sets = _core.WorkingSets(space, np.ones(1), False, NOTHING)
    sets.insert(stored, w, 0.0)
    assert sets.exceeding(one, value, w).tolist() == ([0] if is_proof else [])
    cache = _core.PlaneCache(space, 2)
    cache.insert(stored)
    assert cache.improve(found, one, w).tolist() == ([0] if is_proof else [])


# ------------------------------------------------------------------------------------------------ in training


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_n_slack_converges_on_badly_scaled_features(n_classes, loss):
    X, y = make_classification(200, 10, n_informative=6, n_classes=n_classes, random_state=0)
    model = mm.models.Multiclass(n_classes)
    settings = {"solver": "n-slack", "loss": loss, "random_state": 0}
    scaled = mm.train(model, 1e3 * X, y, 1.0, max_time=60, **settings)
    assert scaled.certificate.converged
    # X · 1e3 at C is X at C · 1e6, with w in other units.
    same = mm.train(model, X, y, 1e6, max_time=60, **settings)
    assert same.certificate.primal == pytest.approx(1e6 * scaled.certificate.primal, rel=3e-3)


def test_epsilon_ends_training_only_on_a_solved_qp(monkeypatch):
    X, y = make_classification(200, 10, n_informative=6, n_classes=3, random_state=0)
    epsilon, C = 0.01, 100.0
    settings = {"solver": "n-slack", "random_state": 0, "solver_options": {"epsilon": epsilon}, "max_time": 60}
    # A QP that gives up after one sweep leaves planes unbalanced that no oracle finds violated.
    monkeypatch.setattr(n_slack, "_MAX_ROUNDS", 1)
    solution = mm.train(mm.models.Multiclass(3), X, y, C, **settings)
    assert solution.certificate.converged
    assert solution.certificate.gap <= 1.1 * epsilon * C * len(y)
