"""Steps that move the planes of all blocks at once: their derivatives, their optimum, and what they leave alone."""

from types import SimpleNamespace

import numpy as np
import pytest
import reference
from block_rules import exact
from few_sequences import few_sequences
from sklearn.datasets import make_classification
from test_working_sets import N_EXAMPLES, N_WEIGHTS, NOTHING, crawling_sets, dual, plane

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.base import sample_of
from maxmargin.solvers import _joint_ascent
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers._row_blocks import RowBlocks

pytestmark = pytest.mark.core

LOSSES = ("hinge", "squared_hinge")
PLANES_PER_EXAMPLE = 3


def task(n_weights, nonnegative=NOTHING, *, is_over=False):
    problem = SimpleNamespace(
        nonnegative=np.asarray(nonnegative, np.int64),
        row_length=float(n_weights),
        n_weights=n_weights,
        has_vectors=True,
    )
    return SimpleNamespace(problem=problem, is_over=is_over, loss="hinge")


def row_blocks(n_labels, squared, rescaling="margin", n=60):
    """The blocks of rows with one label each; two labels are signs where n_labels is 0."""
    X, y = make_classification(n, 5, n_informative=4, n_redundant=0, n_classes=max(n_labels, 2), random_state=0)
    if n_labels == 0:
        model, y = mm.models.Binary(), 2 * y - 1
    else:
        cost = np.random.default_rng(0).uniform(0.5, 2.0, size=(n_labels, n_labels)) * (1.0 - np.eye(n_labels))
        model = mm.models.Multiclass(n_labels, cost=cost)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=n)
    weights[::7] = 0.0
    problem = model.bind(X, y, rescaling=rescaling, sample_weight=weights)
    return problem.row_blocks(0.3, squared=squared), problem.n_weights


def some_steps(kind, squared, rescaling):
    """A ProximalStep that has moved, and the number of weights."""
    if kind == "working sets":
        sets, _, _ = crawling_sets(np.random.default_rng(0), squared, rescaling=rescaling)
        sets.sweep(np.arange(N_EXAMPLES), exact(1e-9), np.zeros(N_WEIGHTS))
        return sets.together(), N_WEIGHTS, 1e-4, sets
    blocks, n_weights = row_blocks(0 if kind == "signs" else 3, squared, rescaling)
    blocks.sweep(0.0, 0, np.zeros(n_weights))
    return blocks.together(), n_weights, 0.7, blocks


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("kind", ["working sets", "signs", "labels"])
def test_the_derivatives_are_those_of_the_value(kind, squared, rescaling):
    step, n_weights, sigma, _ = some_steps(kind, squared, rescaling)
    rng = np.random.default_rng(3)
    scale = 1e-2 if kind == "working sets" else 1.0
    for _ in range(5):
        w, direction = scale * rng.normal(size=n_weights), rng.normal(size=n_weights)
        h = 1e-7 * scale

        def value_and_sum(at):
            total = np.empty(n_weights)
            return step.move(at, sigma, total).value, total

        (up, sum_up), (down, sum_down) = value_and_sum(w + h * direction), value_and_sum(w - h * direction)
        _, total = value_and_sum(w)
        assert (up - down) / (2 * h) == pytest.approx(-total @ direction, rel=1e-4, abs=1e-4 * abs(up))
        product = np.empty(n_weights)
        step.multiply_curvature(direction, product)
        assert product == pytest.approx((sum_down - sum_up) / (2 * h), rel=1e-3, abs=1e-5 * np.abs(product).max())
        rows = np.empty((5000, n_weights))
        end, n_rows = step.write_curvature(0, rows)
        assert end == step.n_blocks
        assert rows[:n_rows].T @ (rows[:n_rows] @ direction) == pytest.approx(product, rel=1e-9, abs=1e-12)


def test_rows_of_curvature_come_in_portions():
    step, n_weights, sigma, _ = some_steps("labels", True, "margin")
    step.move(np.zeros(n_weights), sigma, np.empty(n_weights))
    whole, portion = np.empty((5000, n_weights)), np.empty((step.most_rows, n_weights))
    _, n_whole = step.write_curvature(0, whole)
    block, parts = 0, []
    while block < step.n_blocks:
        before = block
        block, n_rows = step.write_curvature(block, portion)
        parts.append(portion[:n_rows].copy())
        assert block > before
    assert np.concatenate(parts) == pytest.approx(whole[:n_whole])


@pytest.mark.parametrize("direct", [0, 1000])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("nonnegative", [[], [1], [0, 2, 3], [0, 1, 2, 3]])
def test_working_sets_that_sweeps_crawl_on_are_solved(nonnegative, squared, rescaling, direct, monkeypatch):
    """By products with the Hessian, and by the matrix."""
    monkeypatch.setattr(_joint_ascent, "_DIRECT", direct)
    bounded = np.array(nonnegative, np.int64)
    sets, s, own = crawling_sets(np.random.default_rng(0), squared, bounded, rescaling=rescaling)
    best = reference.solve(own, 1.0, s, "squared_hinge" if squared else "hinge", nonnegative=bounded).objective
    everyone, w = np.arange(N_EXAMPLES), np.zeros(N_WEIGHTS)
    for _ in range(200):
        sets.sweep(everyone, exact(1e-9), w)
    assert dual(sets, w) < 0.9 * best, "sweeps alone are not enough"
    joint = JointAscent(task(N_WEIGHTS, bounded), sets.together(), w, dual(sets, w))
    for _ in range(200):
        is_on = joint.advance(1e-9 * best)
        assert joint.dual <= best * (1 + 1e-9)
        assert joint.primal >= best * (1 - 1e-9)
        sets.weights(w)
        # A budget overspent or a negative α would lift the dual above the optimum.
        assert dual(sets, w) <= best * (1 + 1e-9)
        if not is_on:
            break
    assert joint.dual == pytest.approx(best, rel=1e-6)
    assert joint.primal == pytest.approx(best, rel=1e-6)
    assert dual(sets, w) == pytest.approx(best, rel=1e-5)
    assert (joint.w[bounded] >= 0.0).all()
    n_steps, n_passes = joint.read()
    assert 0 < n_steps <= n_passes
    assert joint.read() == (0, 0)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_bounds_hold_whatever_the_scales(share, squared):
    """A share of the weights stays ≥ 0. Beyond what double precision can tell apart, some gaps stay open."""
    n_closed = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, squared])
        n, d = int(rng.integers(1, 30)), int(rng.integers(1, 8))
        scales = 10.0 ** rng.integers(-4, 5) * 10.0 ** rng.integers(-4, 4, size=d)
        bounded = np.arange(round(share * d))
        budgets = rng.uniform(0.1, 2.0, size=n) * 10.0 ** rng.integers(-3, 7)
        sets = _core.WorkingSets(_core.VectorSpace(n, d, "margin"), budgets, squared, bounded)
        shared, w = rng.normal(size=(5, d)), np.zeros(d)
        for i in range(n):
            for values in np.concatenate([shared[rng.random(5) < 0.5], rng.normal(size=(2, d)), shared[:1] + 1e-9]):
                sets.insert(plane(i, rng.uniform(0.0, 2.0), scales * values), w, -np.inf)
        sets.sweep(rng.permutation(n), exact(1e-9), w)
        sets.weights(w)
        before = dual(sets, w)
        joint = JointAscent(task(d, bounded), sets.together(), w, before)
        joint.ascend(1e-6 * before)
        assert np.isfinite(joint.w).all()
        assert joint.gap >= -1e-9 * joint.primal
        sets.weights(w)
        assert before * (1 - 1e-9) <= dual(sets, w) <= joint.primal * (1 + 1e-9)
        n_closed += joint.gap <= 1e-3 * joint.primal
    assert n_closed >= 50


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_labels", [0, 3])
def test_rows_that_sweeps_crawl_on_are_solved(n_labels, loss, rescaling):
    """Unscaled features and a large C, against n-slack, which finds planes one by one."""
    X, y = make_classification(
        150, 4, n_informative=4, n_redundant=0, n_classes=max(n_labels, 2), flip_y=0.3, random_state=0
    )
    X = X * np.array([1.0, 30.0, 0.1, 1.0])
    model = mm.models.Multiclass(n_labels) if n_labels else mm.models.Binary()
    y = y if n_labels else 2 * y - 1
    s = np.random.default_rng(0).integers(0, 3, size=150).astype(float)
    ours, other = (
        mm.train(model, X, y, 10.0, solver=solver, loss=loss, tol=1e-7, sample_weight=s, rescaling=rescaling)
        for solver in ("block-dual", "n-slack")
    )
    assert ours.certificate.converged
    assert sum(record["joint_steps"] for record in ours.history) > 0
    assert ours.certificate.dual <= other.certificate.primal * (1 + 1e-9)
    assert other.certificate.dual <= ours.certificate.primal * (1 + 1e-9)


def test_nothing_is_moved_when_the_time_is_over():
    sets, _, _ = crawling_sets(np.random.default_rng(1), squared=True)
    w = np.zeros(N_WEIGHTS)
    sets.sweep(np.arange(N_EXAMPLES), exact(1e-9), w)
    joint = JointAscent(task(N_WEIGHTS, is_over=True), sets.together(), w, dual(sets, w))
    joint.ascend(0.0)
    assert joint.read() == (0, 1)


def test_a_step_that_is_not_accepted_leaves_the_blocks_as_they_were():
    sets, _, _ = crawling_sets(np.random.default_rng(1), squared=False)
    w = np.zeros(N_WEIGHTS)
    sets.sweep(np.arange(N_EXAMPLES), exact(1e-9), w)
    before = sets.planes().alpha()
    step = sets.together()
    step.move(w, 1.0, np.empty(N_WEIGHTS))
    step.take()
    assert np.array_equal(sets.planes().alpha(), before)


def test_a_solved_problem_takes_no_newton_step():
    sets, _, _ = crawling_sets(np.random.default_rng(1), squared=True)
    w = np.zeros(N_WEIGHTS)
    sets.sweep(np.arange(N_EXAMPLES), exact(1e-9), w)
    joint = JointAscent(task(N_WEIGHTS), sets.together(), w, dual(sets, w))
    joint.ascend(1e-9)
    solved = JointAscent(task(N_WEIGHTS), sets.together(), joint.w, joint.dual)
    solved.ascend(1e-3 * joint.dual)
    assert solved.read()[0] == 0


def test_wrong_calls_are_refused():
    step, n_weights, _, _ = some_steps("labels", False, "margin")
    w, total = np.zeros(n_weights), np.empty(n_weights)
    for sigma in (0.0, -1.0, np.nan, np.inf):
        with pytest.raises(ValueError, match="sigma must be positive"):
            step.move(w, sigma, total)
    with pytest.raises(ValueError, match="weights"):
        step.move(w[:-1].copy(), 1.0, total)
    with pytest.raises(ValueError, match="sum"):
        step.move(w, 1.0, total[:-1].copy())
    with pytest.raises(ValueError, match="room for the planes"):
        step.write_curvature(0, np.empty((step.most_rows - 1, n_weights)))
    with pytest.raises(ValueError, match="negative"):
        step.write_curvature(-1, np.empty((step.most_rows, n_weights)))
    with pytest.raises(ValueError, match="vector"):
        step.multiply_curvature(w[:-1].copy(), total)


def test_few_rows_of_large_features_are_no_hurdle():
    """Where pieces of φ differ in slope by many orders of magnitude, Newton's steps are shortened, but no more than need be."""
    solution = mm.train(
        mm.models.Multiclass(3),
        np.array([[6104.723], [8381.923]]),
        np.array([0, 2]),
        1e4,
        sample_weight=[1.0, 2.0],
        rescaling="slack",
        loss="squared_hinge",
        solver="block-dual",
        tol=1e-6,
    )
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) < 100
    X, y = make_classification(500, 10, flip_y=0.1, random_state=0)
    for scale in (1e4, 1e6):
        solution = mm.train(mm.models.Binary(), scale * X, 2 * y - 1, 1.0)
        assert solution.certificate.converged
        assert len(solution.history) < 60


def test_time_that_runs_out_in_conjugate_gradients_does_not_call_for_the_matrix():
    """They end with what they have, and the step with them."""
    sets, _, _ = crawling_sets(np.random.default_rng(1), squared=True)
    w = np.zeros(N_WEIGHTS)
    sets.sweep(np.arange(N_EXAMPLES), exact(1e-9), w)
    clock = task(N_WEIGHTS)
    joint = JointAscent(clock, sets.together(), w, dual(sets, w))
    here = joint._start()
    clock.is_over = True
    free = np.arange(N_WEIGHTS)
    solution, is_close = joint._solve_by_products(free, here.gradient, _joint_ascent._Identity(), 40)
    assert is_close
    assert not solution.any()


def test_planes_beyond_memory_are_not_moved_together():
    problem = SimpleNamespace(has_vectors=True, n_joint_weights=100)
    assert JointAscent.can_help(problem, 10_000_000)
    assert not JointAscent.can_help(problem, 10_000_001)
    assert not JointAscent.can_help(SimpleNamespace(has_vectors=True, n_joint_weights=65537))


def test_features_of_a_kernel_have_fewer_weights_where_they_help():
    assert JointAscent.can_help(SimpleNamespace(has_vectors=False, n_joint_weights=2000))
    assert not JointAscent.can_help(SimpleNamespace(has_vectors=False, n_joint_weights=2001))
    assert not JointAscent.can_help(SimpleNamespace(has_vectors=False, n_joint_weights=np.inf))


# ------------------------------------------------------------------------------------------------ kernels


def overlapping(n_classes, n=240):
    X, y = make_classification(
        n, 3, n_informative=3, n_redundant=0, n_classes=n_classes, n_clusters_per_class=1, flip_y=0.2, random_state=0
    )
    return X, 2 * y - 1 if n_classes == 2 else y


def with_kernel(n_classes, kernel):
    return mm.models.Binary(kernel=kernel) if n_classes == 2 else mm.models.Multiclass(n_classes, kernel=kernel)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", ["rbf", "poly", "function", "precomputed"])
def test_rows_of_a_kernel_are_moved_together(monkeypatch, kind, n_classes, loss):
    X, y = overlapping(n_classes)
    # Rows that are moved by pairs seldom crawl.
    monkeypatch.setattr(RowBlocks, "is_crawling", property(lambda blocks: blocks._can_move_together))
    kernel = mm.Kernel("poly", 0.5, degree=2, coef0=1.0) if kind == "poly" else mm.Kernel("rbf", 0.5, constant=1.0)
    given, rows = kernel, X
    if kind == "function":
        plain = mm.Kernel("rbf", 0.5)
        given = mm.Kernel(lambda A, B: plain(A, B), constant=1.0)
    if kind == "precomputed":
        given, rows = mm.Kernel("precomputed"), kernel(X, X)
    options = {"C": 1e3, "loss": loss, "solver": "block-dual", "tol": 1e-6}
    solution = mm.train(with_kernel(n_classes, given), rows, y, **options)
    assert sum(record["joint_steps"] for record in solution.history) > 0
    assert solution.certificate.converged
    # Features of full rank are the kernel itself, and linear rows have a test of their own.
    low_rank = with_kernel(n_classes, mm.LowRank(kernel, len(X)))
    best = mm.train(low_rank, X, y, **options).certificate
    assert solution.certificate.dual <= best.primal * (1 + 1e-9)
    assert solution.certificate.primal >= best.dual * (1 - 1e-9)
    if kind == "precomputed":
        return
    scores = solution.expansion.scores(X)
    if n_classes == 2:
        slacks = np.maximum(0.0, 1.0 - y * scores[:, 0])
    else:
        others = scores + 1.0 - np.eye(n_classes)[y]
        slacks = others.max(axis=1) - scores[np.arange(len(y)), y]
    costs = slacks**2 if loss == "squared_hinge" else slacks
    norm2 = float(np.sum(solution.expansion.coef.T * solution.expansion.scores(solution.expansion.basis)))
    if kind != "poly":
        # The constant of the kernel is in the intercept of the expansion.
        assert np.allclose(solution.expansion.intercept, solution.expansion.coef.sum(axis=1))
    assert solution.certificate.primal == pytest.approx(0.5 * norm2 + 1e3 * costs.sum(), rel=1e-6)


def test_a_kernel_of_many_rows_is_not_written_as_features(monkeypatch):
    X, y = overlapping(3)
    monkeypatch.setattr(RowBlocks, "is_crawling", property(lambda blocks: blocks._can_move_together))
    monkeypatch.setattr("maxmargin.problems.kernel._MOST_FEATURE_ROWS", len(X) - 1)
    model = with_kernel(3, mm.Kernel("rbf", 0.5))
    solution = mm.train(model, X, y, 1e4, loss="squared_hinge", solver="block-dual")
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) == 0
    assert model.bind(X, y).with_features() is None


def test_blocks_that_start_anew_forget_what_they_had():
    for n_labels in (0, 3):
        blocks, n_weights = row_blocks(n_labels, squared=True)
        blocks.sweep(0.0, 0, np.zeros(n_weights))
        planes = blocks.planes()
        kept = np.arange(0, len(planes), 2)
        codes = np.concatenate([planes.code(k) for k in kept])
        parts = planes.examples()[kept], planes.losses()[kept], codes, np.arange(len(kept) + 1), planes.alpha()[kept]
        blocks.start(_core.PlaneBatch.from_arrays(*parts), False)
        assert 0 < blocks.n_planes == len(kept) < len(planes)


def test_rows_of_zeros_do_not_stand_for_the_others(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    X[sample_of(120, 30)] = 0.0
    y = np.where(rng.random(120) < 0.5, 1, -1)
    monkeypatch.setattr("maxmargin.problems.kernel._RANK_ROWS", 30)
    problem = mm.models.Binary(kernel=mm.Kernel("linear")).bind(X, y)
    assert problem.feature_rank() == 120
    assert problem.with_features().n_weights == 3
    nothing = mm.models.Binary(kernel=mm.Kernel("linear")).bind(np.zeros((20, 3)), y[:20])
    assert nothing.with_features() is None


@pytest.mark.parametrize(("most", "factor"), [(1000, 1e3), (1, 1.0)])
def test_the_squared_hinge_begins_further_on_where_systems_are_solved_directly(most, factor, monkeypatch):
    monkeypatch.setattr(_joint_ascent, "_DIRECT", most)
    blocks, n_weights = row_blocks(3, squared=True)
    step, given = blocks.together(), task(n_weights)
    given.loss = "squared_hinge"
    joint = JointAscent(given, step, np.zeros(n_weights), 0.0)
    assert joint.sigma == pytest.approx(factor * step.scale())


def test_few_weights_are_solved_closely_between_passes():
    """Planes that are moved to half of the gap only, time after time, took four times the passes here, and did not get there."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(length, 30)) for length in rng.integers(4, 9, size=30)]
    Y = [rng.integers(4, size=len(x)) for x in X]
    solution = mm.train(
        mm.models.Chain(4), X, Y, loss="squared_hinge", rescaling="slack", solver="block-dual", max_iter=60
    )
    assert solution.certificate.converged


@pytest.mark.parametrize(
    ("n", "n_features", "seed", "C", "rescaling", "random_state"),
    [
        (3, 3, 3, 1000.0, "margin", 3),
        (12, 20, 585000, 806.2, "slack", 585000),
        (20, 6, 369490, 1411.327129419364, "slack", 369490),
    ],
)
def test_planes_that_are_violated_at_the_best_point_alone_do_not_stall(n, n_features, seed, C, rescaling, random_state):
    """A pass at the point that was best for the known planes found others that were none at w(α), and did not join."""
    X, Y = few_sequences(n, n_features, seed)
    settings = {"loss": "squared_hinge", "rescaling": rescaling, "tol": 1e-2, "solver": "block-dual"}
    svm = mm.ChainSVM(C, random_state=random_state, max_iter=100, **settings).fit(X, Y)
    assert svm.certificate_.converged
