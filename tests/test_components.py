"""Blocks of stretches: merging and parting change neither w nor the dual, and nothing is lost against whole outputs."""

import numpy as np
import pytest
import random_problems
import reference
from block_rules import exact
from native_models import many_planes, native

import maxmargin as mm
from maxmargin import _core

pytestmark = pytest.mark.core

NOTHING = np.zeros(0, np.int64)
C = 0.3
KINDS = [
    {},
    {"start": True, "stop": True},
    {"weighting": "token"},
    {"with_forbidden": True, "weighting": "label"},
]


def chains(seed, kind, max_length=7):
    rng = np.random.default_rng(seed)
    model = random_problems.random_chain(rng, n_examples=5, n_features=3, n_labels=3, max_length=max_length, **kind)
    chosen, X, Y = native(model)
    return rng, model, chosen.bind(X, Y)


def by_components(problem, budget=C):
    return _core.WorkingSets(problem.space, np.full(problem.n_examples, budget), False, NOTHING, True)


def state(sets, problem):
    w = np.empty(problem.n_weights)
    sets.sum(w)
    return sets.linear_part(), w


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_new_planes_merge_and_part_blocks_without_moving_w_or_the_dual(kind):
    n_merged = n_changed = 0
    for seed in range(12):
        rng, _, problem = chains(seed, kind)
        sets, w = by_components(problem), np.zeros(problem.n_weights)
        rule = _core.Rule("exact", solve_above=1e-6, solve_to=1e-7, max_planes=2)
        for _ in range(12):
            linear, total = state(sets, problem)
            n_blocks = sets.n_blocks
            batch = many_planes(problem, rng, rounds=1, scale=rng.choice([0.1, 1.0, 5.0]))
            sets.insert(batch, w, np.inf)
            n_merged += sets.n_blocks < n_blocks
            n_changed += sets.n_blocks != n_blocks
            after = state(sets, problem)
            assert after[0] == pytest.approx(linear, rel=1e-12, abs=1e-14)
            assert after[1] == pytest.approx(total, rel=1e-12, abs=1e-13)
            # Visits search their stretches, so that planes with mass appear beyond those inserted.
            sets.sweep(rng.permutation(problem.n_examples), rule, w)
            sets.visit(problem.oracle(_weights(problem, w), precise=True), problem.all_ids, 2, rule, w)
            sets.sum(w)
    assert n_changed > 10
    assert n_merged > 3 or kind


def _weights(problem, w):
    weights = problem.zero_weights()
    weights.exact[:] = w
    return weights


@pytest.mark.parametrize("searches", [True, False], ids=["searching", "given"])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_components_reach_the_optimum_over_whole_outputs_and_never_pass_it(kind, searches):
    """Whether visits search within their stretch or take what the oracle found there."""
    for seed in range(6):
        rng, model, problem = chains(seed, kind, max_length=5)
        best = reference.solve(reference.planes(model), C)
        sets, w = by_components(problem), problem.zero_weights()
        rule = _core.Rule("exact", solve_above=1e-10, solve_to=1e-11, searches=searches)
        for _ in range(3000):
            oracle = problem.oracle(w, precise=True)
            swept = sets.visit(oracle, rng.permutation(problem.n_examples), 1, rule, w.exact)
            sets.weights(w.exact)
            dual = sets.linear_part() - 0.5 * w.norm2()
            assert dual <= best.objective * (1 + 1e-9)
            if swept.moves == 0:
                break
        assert dual == pytest.approx(best.objective, rel=1e-7)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_visit_finds_the_best_output_within_its_stretch(kind):
    """Solved over one stretch, a block pays what the best of all outputs that differ only there is worth."""
    for seed in range(6):
        rng, model, problem = chains(seed, kind, max_length=5)
        own = reference.planes(model)
        sets, w = by_components(problem, 1e-9), rng.normal(size=problem.n_weights)
        # Budgets are so small that w hardly moves: the slack of the blocks is that of the oracle.
        rule = _core.Rule("exact", solve_above=0.0, solve_to=1e-16)
        weights = _weights(problem, w)
        sets.visit(problem.oracle(weights, precise=True), problem.all_ids, 5, rule, weights.exact)
        slacks = problem.slacks(_weights(problem, w))
        assert len(own) == problem.n_examples
        assert sets.slacks(problem.all_ids, w) == pytest.approx(slacks, abs=1e-6)
        paying = np.flatnonzero(sets.slacks(problem.all_ids, w) > 1e-9)
        assert set(paying) == set(np.flatnonzero(slacks > 1e-9))


def test_blocks_of_one_example_share_no_place():
    rng, _, problem = chains(3, {}, max_length=7)
    sets, w = by_components(problem), np.zeros(problem.n_weights)
    for _ in range(6):
        sets.insert(many_planes(problem, rng, rounds=1), w, -np.inf)
        sets.sweep(problem.all_ids, exact(1e-6), w)
    assert sets.n_blocks >= problem.n_examples
    assert len(sets.planes()) == sets.n_planes


def test_components_need_the_hinge_and_outputs_that_combine():
    _, _, problem = chains(0, {})
    with pytest.raises(ValueError, match="by_components"):
        _core.WorkingSets(problem.space, np.ones(problem.n_examples), True, NOTHING, True)
    space = _core.VectorSpace(2, 3, "margin")
    with pytest.raises(ValueError, match="by_components"):
        _core.WorkingSets(space, np.ones(2), False, NOTHING, True)


def test_long_examples_have_one_block_and_the_same_optimum():
    """Codes are as long as their example: a plane for each of its stretches would take memory and time by the square of that."""
    rng = np.random.default_rng(0)
    lengths = [2500, 40, 2500, 60]
    X = [rng.normal(size=(length, 4)) for length in lengths]
    Y = [np.argmax(x[:, :3] + rng.normal(size=(len(x), 3)), axis=1) for x in X]
    solution = mm.train(mm.models.Chain(3), X, Y, 1e-3, solver="block-dual", tol=1e-4)
    assert solution.certificate.converged
    other = mm.train(mm.models.Chain(3), X, Y, 1e-3, solver="one-slack", tol=1e-4)
    assert solution.certificate.dual <= other.certificate.primal
    assert other.certificate.dual <= solution.certificate.primal
    # At w = 0 all places of a short example differ; later its stretches part, which a long one's would too.
    parted = mm.train(mm.models.Chain(3), X[1::2], Y[1::2], 0.1, solver="block-dual", tol=1e-4)
    assert max(record["blocks"] for record in parted.history) > 10
    whole = mm.train(mm.models.Chain(3), X[::2], Y[::2], 0.1, solver="block-dual", tol=1e-2)
    assert max(record["blocks"] for record in whole.history) == 2
    # Cuts do at least as well there.
    assert mm.train(mm.models.Chain(3), X[::2], Y[::2], 0.1, tol=1e-2).solver == "one-slack"
