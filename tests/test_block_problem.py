"""The block problem of working sets against the reference, and threads that change no bit."""

import numpy as np
import pytest
import random_problems
import reference
from block_rules import exact
from native_models import MODELS, explicit_planes, many_planes, native, planes_in, random_model

from maxmargin import _core
from maxmargin.models import Chain

pytestmark = pytest.mark.core


# ---------------------------------------------------------------------------------------------- working sets


def all_planes_inserted(sets, problem, batch):
    # ε = −∞ takes every plane that is not there yet.
    return sets.insert(batch, np.zeros(problem.n_weights), -np.inf)


def chains_with_planes(seed):
    """Return random chains, working sets with many of their planes and budgets of 0.5, and how many planes there are."""
    rng = np.random.default_rng(seed)
    model = random_model("chain", rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y)
    sets = _core.WorkingSets(problem.space, np.full(model.n_examples, 0.5), False, np.zeros(0, np.int64))
    return problem, sets, all_planes_inserted(sets, problem, many_planes(problem, rng))


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_sweeps_over_working_sets_reach_the_reference_optimum(name, rescaling, squared, nonnegative):
    rng = np.random.default_rng([MODELS.index(name), squared, nonnegative])
    model = random_model(name, rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y, rescaling=rescaling)
    batch = many_planes(problem, rng, rounds=8)
    losses, psi = explicit_planes(chosen, model, batch, rescaling)
    s = random_problems.random_sample_weight(rng, model.n_examples)
    J = np.flatnonzero(np.any(psi != 0, axis=0))[::3] if nonnegative else np.zeros(0, np.int64)
    own = [
        [reference.Plane(losses[k], psi[k]) for k in np.flatnonzero(batch.examples() == i)]
        + [reference.Plane(0.0, np.zeros(problem.n_weights))]
        for i in range(model.n_examples)
    ]
    loss = "squared_hinge" if squared else "hinge"
    best = reference.solve(own, 0.7, s, loss, nonnegative=J)

    sets = _core.WorkingSets(problem.space, 0.7 * s, squared, J)
    added = all_planes_inserted(sets, problem, batch)
    assert all_planes_inserted(sets, problem, batch) == 0, "a plane is held once"
    assert sets.n_planes == added == len({p for p in planes_in(batch) if s[p[0]] > 0})
    w = np.zeros(problem.n_weights)
    last = -np.inf
    for _ in range(20_000):
        swept = sets.sweep(rng.permutation(model.n_examples), exact(1e-11), w)
        dual = sets.linear_part() - 0.5 * w @ w
        assert dual >= last - 1e-9 * abs(last), "block ascent never loses"
        last = dual
        if swept.violation <= 1e-11:
            break
    assert last == pytest.approx(best.objective, rel=1e-7)
    assert reference.primal(w, own, 0.7, s, loss) == pytest.approx(best.objective, rel=1e-7)
    assert np.all(w[J] >= 0)
    fresh = np.empty_like(w)
    sets.weights(fresh)
    assert fresh == pytest.approx(w, abs=1e-8)
    stored = sets.slacks(problem.all_ids, w)
    assert stored[s > 0] == pytest.approx(reference.slacks(w, own)[s > 0], abs=1e-9)
    assert np.all(stored[s == 0] == 0)


@pytest.mark.parametrize("step", ["exact", "pairs"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_over_relaxed_visits_never_lose_and_reach_the_same_optimum(name, nonnegative, step):
    rng = np.random.default_rng([MODELS.index(name), nonnegative])
    model = random_model(name, rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y)
    batch = many_planes(problem, rng, rounds=8)
    psi = explicit_planes(chosen, model, batch, "margin")[1]
    J = np.flatnonzero(np.any(psi != 0, axis=0))[::3] if nonnegative else np.zeros(0, np.int64)

    def ascended(relaxation, solve_to, n_sweeps):
        sets = _core.WorkingSets(problem.space, np.full(model.n_examples, 0.7), False, J)
        all_planes_inserted(sets, problem, batch)
        rule = _core.Rule(step, solve_above=1e-10, solve_to=solve_to, relaxation=relaxation)
        w, last = np.zeros(problem.n_weights), 0.0
        for _ in range(n_sweeps):
            violation = 0.0
            for example in rng.permutation(model.n_examples):
                swept = sets.sweep(np.array([example]), rule, w)
                dual = sets.linear_part() - 0.5 * w @ w
                assert dual >= last - 1e-9 * abs(last)
                assert nonnegative or swept.gain == pytest.approx(dual - last, abs=1e-9)
                violation, last = max(violation, swept.violation), dual
            if violation <= 1e-10:
                break
        planes = sets.planes()
        masses = np.bincount(planes.examples(), planes.alpha(), model.n_examples)
        assert np.all(planes.alpha() >= 0.0)
        assert np.all(masses <= 0.7 * (1 + 1e-9))
        return last

    best = ascended(1.0, 1e-12, 2000)
    assert ascended(1.5, 1e-12, 2000) == pytest.approx(best, rel=1e-7)
    assert ascended(1.95, 1e-12, 2000) == pytest.approx(best, rel=1e-7)
    # Steps that are broken off may go too far, and are cut back.
    assert 0.0 < ascended(1.95, 0.5, 50) <= best * (1 + 1e-9)


def test_a_sweep_says_what_of_the_gap_it_passed_over():
    problem, sets, _ = chains_with_planes(4)
    w = np.zeros(problem.n_weights)
    alone = [sets.sweep(np.array([i]), exact(np.inf), w).gap for i in problem.all_ids]
    assert sets.sweep(problem.all_ids, exact(np.inf), w).passed_over == pytest.approx(sum(alone))
    middle = 0.5 * (min(alone) + max(alone))
    assert min(alone) < middle < max(alone)
    # Tolerances are per unit of the budget.
    for i in problem.all_ids:
        swept = sets.sweep(np.array([i]), exact(middle / 0.5), np.zeros_like(w))
        assert swept.passed_over == pytest.approx(alone[i] if alone[i] <= middle else 0.0)


@pytest.mark.parametrize("squared", [False, True])
def test_the_gaps_of_blocks_add_up_to_the_gap_over_their_planes(squared):
    # C ξ − Σ α F, or C H² − a² / 4C − Σ α F where F has a / 2C taken off: at one w, where nothing moves, they sum to P − D.
    rng = np.random.default_rng(6)
    model = random_model("chain", rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y)
    C = 0.3 + rng.random(model.n_examples)
    sets = _core.WorkingSets(problem.space, C, squared, np.zeros(0, np.int64))
    all_planes_inserted(sets, problem, many_planes(problem, rng))
    w = np.zeros(problem.n_weights)
    for _ in range(3):
        slacks = sets.slacks(problem.all_ids, w)
        primal = 0.5 * w @ w + C @ (slacks**2 if squared else slacks)
        gap = primal - (sets.linear_part() - 0.5 * w @ w)
        assert gap > 1e-3
        assert sets.sweep(problem.all_ids, exact(np.inf), w).gap == pytest.approx(gap, rel=1e-9)
        sets.sweep(problem.all_ids, exact(1e-2), w)


def test_over_relaxation_has_its_bounds():
    for relaxation in (0.99, 2.0, np.nan):
        with pytest.raises(ValueError, match="relaxation must be at least 1 and less than 2"):
            _core.Rule("exact", relaxation=relaxation)
    with pytest.raises(ValueError, match="and 1 for coordinates"):
        _core.Rule("coordinates", relaxation=1.5)
    sets = _core.WorkingSets(_core.VectorSpace(1, 2, "margin"), np.ones(1), True, np.zeros(0, np.int64))
    with pytest.raises(ValueError, match="relaxation is for the hinge loss"):
        sets.sweep(np.zeros(1, np.int64), exact(1e-3, 1.5), np.zeros(2))


def test_pruning_drops_idle_planes_and_leaves_the_optimum_alone():
    problem, sets, n_planes = chains_with_planes(2)
    w = np.zeros(problem.n_weights)
    for _ in range(3000):
        sets.sweep(problem.all_ids, exact(1e-10), w)
    dual, n_active = sets.linear_part() - 0.5 * w @ w, sets.n_active
    assert 0 < n_active < n_planes
    assert sets.prune(2) == 0
    assert sets.prune(2) == n_planes - n_active
    assert sets.n_planes == sets.n_active == n_active
    fresh = np.empty_like(w)
    sets.weights(fresh)
    assert sets.linear_part() - 0.5 * fresh @ fresh == pytest.approx(dual, rel=1e-9)
    assert sets.sweep(problem.all_ids, exact(1e-9), w).steps == 0, "what is left is still solved"


@pytest.mark.parametrize("drops_empty", [False, True])
@pytest.mark.parametrize("step", ["exact", "pairs"])
def test_no_plane_with_mass_is_dropped_however_few_may_be_kept(step, drops_empty):
    problem, sets, n_planes = chains_with_planes(2)
    rule = _core.Rule(step, solve_above=1e-9, solve_to=1e-10, max_planes=1, drops_empty=drops_empty)
    w, dropped = np.zeros(problem.n_weights), 0
    for _ in range(20):
        swept = sets.sweep(problem.all_ids, rule, w)
        dropped += swept.dropped
        # Had α left with its plane, the sum over what is there would be another w.
        fresh = np.empty_like(w)
        sets.sum(fresh)
        assert fresh == pytest.approx(w, abs=1e-9)
    assert sets.n_planes == n_planes - dropped
    of_example = np.bincount(sets.planes().examples(), minlength=len(problem.all_ids))
    carriers = np.bincount(sets.planes().examples()[sets.planes().alpha() > 0.0], minlength=len(problem.all_ids))
    assert carriers.max() > 1, "else no plane beyond the first was to be kept"
    assert np.all(of_example == (carriers if drops_empty else np.maximum(carriers, 1)))


def test_insert_takes_only_planes_that_ask_for_more_than_epsilon_beyond_what_is_paid():
    space = _core.VectorSpace(1, 2, "margin")
    sets = _core.WorkingSets(space, np.ones(1), False, np.zeros(0, np.int64))

    def offer(loss, values, w, epsilon):
        batch = _core.PlaneBatch()
        batch.add_vector(0, loss, np.arange(2, dtype=np.int32), np.array(values, dtype=float))
        return sets.insert(batch, np.array(w, dtype=float), epsilon)

    assert offer(1.0, [1.0, 0.0], [0.0, 0.0], 1.0) == 0  # worth 1, asked for more than 0 + 1
    assert offer(1.0, [1.0, 0.0], [0.0, 0.0], 0.9) == 1
    assert offer(1.5, [0.0, 1.0], [0.0, 0.0], 0.6) == 0  # worth 1.5, and 1 is paid already
    assert offer(1.5, [0.0, 1.0], [0.0, 0.0], 0.4) == 1
    assert offer(9.0, [1.0, 1.0], [4.0, 4.0], 0.5) == 1  # worth 1 at this w, and nothing is paid there
    assert sets.n_planes == 3


# --------------------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_two_threads_give_the_same_bits_as_one(rescaling):
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 9, size=300)
    X = [rng.normal(size=(length, 40)) for length in lengths]
    Y = [rng.integers(9, size=length) for length in lengths]
    s = rng.random(300)
    chain = Chain(9, ends=True)
    problem = chain.bind(X, Y, rescaling=rescaling, sample_weight=s)
    w = 0.1 * rng.normal(size=problem.n_weights)
    rounded = w.astype(np.float32)

    def everything(n_threads):
        batch = problem.space.separate(problem.all_ids, w, rounded, n_threads)
        yield batch.losses()
        yield np.concatenate([batch.code(k) for k in range(len(batch))])
        loss, total, _ = problem.space.separate_and_sum(w, None, s, n_threads)
        yield np.array([loss])
        yield total
        yield problem.space.predict(w, n_threads)
        cache = _core.PlaneCache(problem.space, 3)
        cache.insert(batch)
        cache.evaluate(0.5 * w, None, n_threads)
        best = cache.best()
        yield best.examples()
        cuts = _core.CutSet(problem.n_weights)
        for planes in (batch, best):
            cuts.assemble(problem.space, planes, s)
            yield cuts.keep(n_threads)
        moved, copy = w.copy(), rounded.copy()
        cuts.add(np.array([0.3, -0.7]), moved, copy, n_threads)
        yield moved
        yield copy

    for one, two in zip(everything(1), everything(2), strict=True):
        assert np.array_equal(one, two)
