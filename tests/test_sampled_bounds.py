"""Sampled cuts: their bounds hold, and the value of their QP is none of them."""

import numpy as np
import pytest
from sampled_problems import KINDS, RBF, STRATEGIES, column, exact, problem, train
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _core
from maxmargin.solvers import _sampled, sampled_cuts
from maxmargin.solvers._best import Best
from maxmargin.solvers.base import PrimalEstimate

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


# --------------------------------------------------------------------------------------------------------- true bounds


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("r", [3, 20, 60])
@pytest.mark.parametrize("strategy", [*STRATEGIES, "violation"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_optimum_lies_between_the_bounds(kind, strategy, r, weighted):
    best = exact(kind, weighted)
    options = {"strategy": "linear", "sampling": "violation"} if strategy == "violation" else {"strategy": strategy}
    for seed in range(2):
        found = train(kind, weighted, seed, sample_size=r, **options).certificate
        assert 0.0 <= found.dual <= best.primal
        assert best.dual <= found.primal


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_is_never_the_model_value(kind, strategy):
    solution = train(kind, strategy=strategy, sample_size=10)
    *before, last = solution.history
    assert all(record["dual"] is None and record["gap"] is None for record in before)
    assert last["model_value"] > exact(kind).primal, "the model does overestimate: it would be a wrong bound"
    assert last["dual"] == solution.certificate.dual < exact(kind).dual
    assert last["gap"] == solution.certificate.gap


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_dual_bound_there_is_none(strategy):
    solution = train(strategy=strategy, sample_size=10, dual_bound=False)
    assert solution.certificate.dual is solution.certificate.gap is None
    assert set(column(solution, "dual")) == {None}
    assert solution.certificate.primal == train(strategy=strategy, sample_size=10).certificate.primal


def value_of_feasible(kind, s, C, bound, used):
    """Put β together once more, plane by plane, and take its square from the whole kernel matrix; say what was scaled."""
    _, X, Y, *_ = problem(kind)
    beta, losses, vectors = {}, {}, {}
    for a, cut in used:
        for p, example in enumerate(cut.planes.examples().tolist()):
            key = (example, cut.planes.code(p).tobytes())
            beta[key] = beta.get(key, 0.0) + a * cut.shares[p]
            losses[key] = cut.planes.losses()[p]
            vectors[key] = np.zeros(bound.n_weights)
            bound.space.add(cut.planes, np.eye(len(cut.planes))[p], vectors[key])
    keys = list(beta)
    mass = np.zeros(len(Y))
    for key in keys:
        mass[key[0]] += beta[key]
    most = C * (np.ones(len(Y)) if s is None else s)
    feasible = np.array([beta[key] * min(1.0, most[key[0]] / mass[key[0]]) for key in keys])
    for i in range(len(Y)):
        assert sum(b for b, key in zip(feasible, keys, strict=True) if key[0] == i) <= most[i] * (1 + 1e-12)
    w = feasible @ np.array([vectors[key] for key in keys])
    rows = X if kind != "chain" else np.concatenate(X)
    table = w[: len(rows) * bound.stride].reshape(len(rows), -1)
    square = np.einsum("tl,tu,ul->", table, RBF(rows, rows), table) + np.sum(w[len(rows) * bound.stride :] ** 2)
    linear = feasible @ np.array([losses[key] for key in keys])
    theta = min(1.0, linear / square)
    return theta * linear - 0.5 * theta**2 * square, bool(np.any(mass > most))


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_dual_is_that_of_a_feasible_point(kind, weighted, averaging, monkeypatch):
    *_, C, s = problem(kind, weighted)
    seen = []

    def spy(bound, C, used):
        seen.append((bound, used))
        return _sampled.dual_bound(bound, C, used)

    monkeypatch.setattr(sampled_cuts, "dual_bound", spy)
    dual = train(kind, weighted, sample_size=6, averaging=averaging).certificate.dual
    assert len(seen) == 1 + averaging, "of both ends"
    values, is_scaled = zip(*(value_of_feasible(kind, s, C, *one) for one in seen), strict=True)
    assert dual == pytest.approx(max(values), rel=1e-9)
    assert all(is_scaled)


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_constant_is_that_of_the_end(kind, averaging, monkeypatch):
    seen = []

    def spy(bound, C, used):
        seen.append((bound, used))
        return _sampled.dual_bound(bound, C, used)

    monkeypatch.setattr(sampled_cuts, "dual_bound", spy)
    solution = train(kind, strategy="constant", sample_size=6, prune_after=2, averaging=averaging)
    ((bound, used),) = seen
    w = np.zeros(bound.n_weights)
    for a, cut in used:
        w[cut.entries] += a * cut.values
    assert w == pytest.approx(solution.w, rel=1e-9, abs=1e-12)
    value, _ = value_of_feasible(kind, None, problem(kind)[3], bound, used)
    assert solution.certificate.dual == pytest.approx(value, rel=1e-9)


def test_a_point_whose_square_is_too_large_is_made_shorter():
    """Two equal rows, whose planes add up: at β = C both the square is larger than the loss."""
    bound = mm.models.Binary(kernel=RBF).bind([[0.0], [0.0], [9.0]], [1, 1, -1])
    planes = bound.separate(np.array([0, 1]), bound.zero_weights(), precise=True)
    cut = _sampled.SampledCut(2.0, planes, np.ones(2), np.array([0, 1]), np.ones(2))
    # θ (2 β) − ½ θ² (2 β)² at its best, θ = 1 / 2β, and with θ = 1.
    assert _sampled.dual_bound(bound, 5.0, [(2.0, cut)]) == pytest.approx(0.5)
    assert _sampled.dual_bound(bound, 5.0, [(0.25, cut)]) == pytest.approx(0.5 - 0.125)
    assert _sampled.dual_bound(bound, 0.25, [(2.0, cut)]) == pytest.approx(0.5 - 0.125), "no more than C for either"
    assert _sampled.dual_bound(bound, 5.0, []) == 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_the_primal_is_that_of_the_expansion(kind, strategy, weighted):
    model, X, Y, C, s = problem(kind, weighted)
    solution = train(kind, weighted, strategy=strategy, sample_size=10)
    bound = model.bind(X, Y, sample_weight=s)
    weights = bound.zero_weights()
    weights.coef[:] = solution.w
    bound.add_scores(weights.coef, weights.exact)
    assert solution.certificate.primal == pytest.approx(bound.primal(weights, C, squared=False), rel=1e-9)
    assert solution.certificate.exact
    assert solution.history[-1]["primal"] == solution.certificate.primal


@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_not_there_are_made_before_the_primal_is_evaluated(kind):
    model, X, Y, C, _ = problem(kind)
    bound = model.bind(X, Y)
    scored, unscored = bound.zero_weights(), bound.zero_weights()
    scored.coef[:] = unscored.coef[:] = train(kind, sample_size=10).w
    bound.add_scores(scored.coef, scored.exact)
    unscored.is_scored = False
    assert bound.primal(unscored, C, squared=False) == pytest.approx(bound.primal(scored, C, squared=False), rel=1e-12)
    assert unscored.is_scored
    assert unscored.exact == pytest.approx(scored.exact)


def test_linear_knows_the_primal_in_every_iteration_and_constant_at_the_end():
    primals = column(train(sample_size=20), "primal")
    assert primals == sorted(primals, reverse=True)
    assert primals[0] == 2.0 * 150, "w = 0"
    *before, last = column(train(strategy="constant", sample_size=20), "primal")
    assert set(before) == {None}
    assert last > 0.0


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_an_estimate_holds_the_primal_as_often_as_it_says(kind, weighted):
    model, X, Y, C, s = problem(kind, weighted)
    bound = model.bind(X, Y, sample_weight=s)
    point = train(kind, weighted, sample_size=20)
    weights = bound.zero_weights()
    weights.coef[:] = 0.5 * point.w
    bound.add_scores(weights.coef, weights.exact)
    slacks = bound.slacks(weights) * (1.0 if s is None else s)
    drawable = np.arange(len(Y)) if s is None else np.flatnonzero(s)
    primal, n, rng = bound.primal(weights, C, squared=False), len(drawable), np.random.default_rng(0)
    hits, estimates = 0, []
    for _ in range(1000):
        values = slacks[rng.choice(drawable, 30, replace=False)]
        estimate, (low, high) = sampled_cuts._primal_estimate(weights.norm2(), C, values[values > 0.0], 30, n)
        estimates.append(estimate)
        hits += low <= primal <= high
    assert np.mean(estimates) == pytest.approx(primal, rel=0.01)
    assert 880 <= hits <= 980
    whole = sampled_cuts._primal_estimate(weights.norm2(), C, slacks[slacks > 0.0], n, n)
    assert whole == (pytest.approx(primal), (pytest.approx(primal), pytest.approx(primal)))


@pytest.mark.parametrize("averaging", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_the_estimate_at_the_end_is_of_the_point_that_is_returned(kind, weighted, averaging):
    """Of all examples but one, so that it is close; cuts that were dropped have a part in the mean."""
    model, X, Y, C, s = problem(kind, weighted)
    size = (len(Y) if s is None else np.count_nonzero(s)) - 1
    options = {"strategy": "constant", "sample_size": 10, "prune_after": 2, "averaging": averaging}
    solution = train(kind, weighted, primal_sample=size, dual_bound=False, **options)
    assert sum(column(solution, "cuts_dropped")) > 10
    bound = model.bind(X, Y, sample_weight=s)
    weights = bound.zero_weights()
    weights.coef[:] = solution.w
    bound.add_scores(weights.coef, weights.exact)
    primal, found = bound.primal(weights, C, squared=False), solution.certificate
    slacks = bound.slacks(weights) * (1.0 if s is None else s)
    assert found.primal == pytest.approx(primal, rel=2.0 * C * np.max(slacks) / primal)
    assert found.primal == pytest.approx(primal, rel=0.03)
    assert found.primal_interval[0] <= found.primal <= found.primal_interval[1]


def test_an_estimate_below_the_dual_is_moved_with_its_interval():
    best = Best(mm.models.Binary(kernel=RBF).bind([[0.0]], [1]).zero_weights())
    best.settle(PrimalEstimate(3.0, (2.0, 4.0)), None)
    for dual, primal, interval in [(None, 3.0, (2.0, 4.0)), (2.5, 3.0, (2.5, 4.0)), (7.0, 7.0, (7.0, 8.0))]:
        best.raise_dual(dual)
        assert (best.primal, best.interval) == (primal, interval)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_mean_that_takes_too_long_leaves_the_points(strategy, monkeypatch):
    def late(*_):
        raise _core.OutOfTime

    monkeypatch.setattr(_sampled.SampledModel, "mean", late)
    monkeypatch.setattr(sampled_cuts, "_MEAN_SHARE", np.inf)
    averaged, plain = (
        train(strategy=strategy, sample_size=10, primal_sample=100, dual_bound=False, averaging=on)
        for on in (True, False)
    )
    assert np.array_equal(averaged.w, plain.w)
    assert averaged.certificate.converged
    assert averaged.certificate.primal == pytest.approx(
        plain.certificate.primal, rel=1e-9 if strategy == "linear" else 0.2
    )


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_bound_that_takes_too_long_leaves_the_primal(strategy, monkeypatch):
    def late(*_):
        raise _core.OutOfTime

    monkeypatch.setattr(sampled_cuts, "dual_bound", late)
    with pytest.warns(ConvergenceWarning, match=r"max_time=100 s was reached"):
        found = train(strategy=strategy, sample_size=10, primal_sample=100, max_time=100.0).certificate
    assert found.dual is None
    assert not found.converged
    whole = train(strategy=strategy, sample_size=10, primal_sample=100, dual_bound=False).certificate
    assert (found.primal, found.primal_interval) == (whole.primal, whole.primal_interval)


def test_the_history_of_constant_has_estimates_and_that_of_linear_none():
    constant, linear = train(strategy="constant", sample_size=20), train(sample_size=20)
    for record in constant.history:
        low, high = record["primal_interval"]
        assert low <= record["primal_estimate"] <= high
    assert set(column(linear, "primal_estimate")) == set(column(linear, "primal_interval")) == {None}
    assert set(constant.history[0]) == set(linear.history[0])


# ------------------------------------------------------------------------------------------------- what the paper promises


def two_heaps(n=6000):
    """Two heaps of points of norm ≤ 1 on either side of 0, one label in fifty wrong: a small ‖w‖ does."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    X = np.column_stack([0.9 * y, np.zeros(n)]) + rng.uniform(-0.07, 0.07, size=(n, 2))
    return X, np.where(rng.random(n) < 0.02, -y, y)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_distance_from_the_optimum_is_within_the_papers_bound(strategy):
    """Theorems 4 and 6 of Yu and Joachims: within C'(ε + …) with a probability of at least 1 − 2δ.

    linear    sqrt(4 C' Δ̄ R² / r · log(T̄/δ))                                    T̄ = 8 C' Δ̄ R² / ε²
    constant  2 sqrt((Δ̄ + 2 sqrt(2 C' Δ̄) R)² / 2r · log(T̄/δ))
    """
    X, y = two_heaps()
    n, r, C_total, epsilon, delta = len(y), 4000, 2.0, 0.01, 0.01
    model = mm.models.Binary(kernel=mm.Kernel("linear", 1.0))
    best = mm.train(model, X, y, C_total / n, solver="one-slack", tol=1e-3).certificate
    logarithm = np.log(8 * C_total / epsilon**2 / delta)
    excess = {
        "linear": np.sqrt(4 * C_total / r * logarithm),
        "constant": 2 * np.sqrt((1 + 2 * np.sqrt(2 * C_total)) ** 2 / (2 * r) * logarithm),
    }[strategy]
    bound = C_total * (epsilon + excess)
    assert bound < C_total - best.primal, "w = 0, whose objective is C', would pass: the bound says nothing here"
    for seed in range(2):
        found = mm.train(
            model,
            X,
            y,
            C_total / n,
            solver="sampled-cuts",
            random_state=seed,
            solver_options={
                "strategy": strategy,
                "sample_size": r,
                "epsilon": epsilon,
                "primal_sample": None,
                "dual_bound": False,
            },
        ).certificate
        assert found.exact
        assert found.primal - best.dual <= bound


def test_the_primal_of_constant_is_estimated_from_a_sample():
    X, y = two_heaps()
    model, options = mm.models.Binary(kernel=RBF), {"strategy": "constant", "sample_size": 200, "epsilon": 0.01}

    def run(seed, **more):
        return mm.train(
            model, X, y, 1e-3, solver="sampled-cuts", random_state=seed, solver_options={**options, **more}
        ).certificate

    held = 0
    for seed in range(8):
        exact_one, estimated = run(seed, primal_sample=None), run(seed, primal_sample=1000)
        assert exact_one.exact
        assert exact_one.primal_interval is None
        assert not estimated.exact
        assert estimated.oracle_exact
        low, high = estimated.primal_interval
        assert low < estimated.primal < high
        assert high - low < 0.5 * estimated.primal
        assert estimated.dual == exact_one.dual
        assert "95 % confidence" in str(estimated)
        held += low <= exact_one.primal <= high
    assert held >= 6
    # All of them are no sample.
    assert run(0, primal_sample=len(y)).exact


def test_no_estimate_is_below_the_dual():
    for seed in range(5):
        found = train(strategy="constant", sample_size=60, primal_sample=5, seed=seed).certificate
        assert found.primal_interval[0] >= found.dual
        assert found.gap >= 0.0


def test_an_interrupt_of_constant_leaves_no_primal():
    def interrupt(record):
        if record["iteration"] == 5:
            raise KeyboardInterrupt

    model, X, Y, C, _ = problem("binary")
    with pytest.warns(UserWarning, match="interrupted"):
        solution = mm.train(
            model, X, Y, C, solver="sampled-cuts", solver_options={"strategy": "constant"}, callback=interrupt
        )
    assert solution.certificate.primal is None
    assert solution.expansion.size > 0
