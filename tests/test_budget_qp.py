"""The small QP against PIQP, an interior-point method that shares no code with it, and its own definition."""

import numpy as np
import piqp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maxmargin._core import BudgetQP

pytestmark = pytest.mark.core


def build(c, planes, budget, nonnegative=()):
    qp = BudgetQP(budget, len(nonnegative))
    for k in range(len(c)):
        append(qp, c, planes, k, nonnegative)
    return qp


def append(qp, c, planes, k, nonnegative=()):
    qp.add(c[k], planes[: k + 1] @ planes[k], planes[k, list(nonnegative)])


def optimum_by_piqp(c, planes, budget, nonnegative=()):
    """Largest dual; α is measured in budgets and D in budget · max c, which keeps PIQP well scaled."""
    unit = budget * max(np.max(np.abs(c)), 1e-300)
    directions = np.vstack([budget * planes, budget * np.eye(planes.shape[1])[list(nonnegative)]])
    n, m = len(c), len(nonnegative)
    solver = piqp.DenseSolver()
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, 1e-11)
    solver.setup(
        np.asfortranarray(directions @ directions.T / unit),
        np.concatenate([-budget * c / unit, np.zeros(m)]),
        G=np.asfortranarray(np.concatenate([np.ones(n), np.zeros(m)])[None]),
        h_u=np.ones(1),
        x_l=np.zeros(n + m),
    )
    solver.solve()
    return -solver.result.info.primal_obj * unit


def independent_gap(qp, c, planes, budget, nonnegative=()):
    """Primal minus dual from explicit vectors."""
    w = qp.alpha @ planes
    w[list(nonnegative)] += qp.mu
    primal = 0.5 * w @ w + budget * max(0.0, np.max(c - planes @ w))
    return primal - (qp.alpha @ c - 0.5 * w @ w)


def assert_feasible(qp, budget):
    assert np.all(qp.alpha >= 0)
    assert np.all(qp.mu >= 0)
    assert qp.alpha.sum() <= budget * (1 + 1e-12)


def random_problem(seed, n, dim, shared=0.5):
    """Planes with a common part, as cuts have; the larger it is, the worse the conditioning."""
    rng = np.random.default_rng(seed)
    planes = shared * rng.normal(size=dim) + rng.normal(size=(n, dim))
    return rng.uniform(0, 10, n), planes


problems = {
    "seed": st.integers(0, 10**6),
    "n": st.integers(1, 40),
    "dim": st.integers(1, 30),
    "budget": st.sampled_from([1e-6, 0.01, 0.3, 3.0, 1e3]),
}


@settings(max_examples=150, deadline=None)
@given(**problems)
def test_optimum_is_that_of_an_interior_point_method(seed, n, dim, budget):
    c, planes = random_problem(seed, n, dim)
    qp = build(c, planes, budget)
    scale = budget * np.max(c)
    result = qp.solve(1e-10 * scale)
    assert result.gap <= 1e-10 * scale
    assert result.dual == pytest.approx(optimum_by_piqp(c, planes, budget), rel=1e-7, abs=1e-8 * scale)
    assert result.gap == pytest.approx(independent_gap(qp, c, planes, budget), abs=1e-11 * scale)
    assert_feasible(qp, budget)


@settings(max_examples=150, deadline=None)
@given(**problems, share=st.floats(0, 1))
def test_nonnegative_weights_reach_the_same_optimum(seed, n, dim, budget, share):
    c, planes = random_problem(seed, n, dim)
    nonnegative = np.flatnonzero(np.random.default_rng(seed).random(dim) < share)
    qp = build(c, planes, budget, nonnegative)
    scale = budget * np.max(c)
    result = qp.solve(1e-9 * scale)
    assert result.gap <= 1e-9 * scale
    assert result.dual == pytest.approx(optimum_by_piqp(c, planes, budget, nonnegative), rel=1e-7, abs=1e-8 * scale)
    assert result.gap == pytest.approx(independent_gap(qp, c, planes, budget, nonnegative), abs=1e-11 * scale)
    assert np.all((qp.alpha @ planes)[nonnegative] + qp.mu >= -1e-12 * budget)
    assert_feasible(qp, budget)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(2, 30),
    dim=st.integers(1, 8),
    budget=st.sampled_from([0.1, 10.0]),
)
def test_duplicate_zero_and_collinear_planes_do_no_harm(seed, n, dim, budget):
    rng = np.random.default_rng(seed)
    c, planes = random_problem(seed, n, dim)
    kind = rng.integers(0, 4, n)
    source = rng.integers(0, n, n)
    planes[kind == 1] = planes[source[kind == 1]]
    planes[kind == 2] = 0.0
    planes[kind == 3] = rng.uniform(-2, 2, (np.sum(kind == 3), 1)) * planes[source[kind == 3]]
    qp = build(c, planes, budget)
    scale = budget * np.max(c)
    result = qp.solve(1e-9 * scale)
    assert result.gap <= 1e-9 * scale
    assert result.dual == pytest.approx(optimum_by_piqp(c, planes, budget), rel=1e-7, abs=1e-7 * scale)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10**6), budget=st.sampled_from([0.01, 1.0, 100.0]), nonnegative=st.booleans())
def test_warm_start_after_add_and_remove_equals_a_cold_solve(seed, budget, nonnegative):
    rng = np.random.default_rng(seed)
    c, planes = random_problem(seed, 30, 12)
    coordinates = range(0, 12, 3) if nonnegative else ()
    scale = budget * np.max(c)
    qp = build(c[:0], planes[:0], budget, coordinates)
    held = np.arange(0)
    for k in range(30):
        held = np.append(held, k)
        append(qp, c[held], planes[held], len(held) - 1, coordinates)
        qp.solve(1e-10 * scale)
        if k % 7 == 6:
            gone = np.flatnonzero(rng.random(len(held)) < 0.3)  # planes that carry mass among them
            qp.remove(gone)
            held = np.delete(held, gone)
            cold = build(c[held], planes[held], budget, coordinates)
            cold.alpha = qp.alpha
            np.testing.assert_allclose(qp.values, cold.values, rtol=1e-9, atol=1e-9)
    cold = build(c[held], planes[held], budget, coordinates)
    assert len(qp) == len(cold) == len(held)
    assert qp.solve(1e-10 * scale).dual == pytest.approx(cold.solve(1e-10 * scale).dual, abs=3e-10 * scale)


def test_one_plane_has_the_closed_form():
    for budget in (0.1, 10.0):
        qp = build(np.array([3.0]), np.array([[2.0]]), budget)
        qp.solve(1e-12)
        assert qp.alpha[0] == pytest.approx(min(budget, 3.0 / 4.0))


def test_no_plane_is_solved_by_zero():
    result = BudgetQP(1.0).solve(0.0)
    assert (result.gap, result.dual, result.steps) == (0.0, 0.0, 0)


def test_planes_without_loss_leave_everything_at_zero():
    c, planes = np.array([-1.0, 0.0]), np.array([[1.0, 0.0], [0.0, 1.0]])
    qp = build(c, planes, 5.0)
    assert qp.solve(0.0).gap == 0.0
    assert not qp.alpha.any()


@pytest.mark.parametrize("budget", [1e-9, 1e-3, 1e9])
def test_budget_binds_exactly_when_it_is_small(budget):
    c, planes = random_problem(3, 20, 40)
    qp = build(c, planes, budget)
    qp.solve(1e-9 * qp.gap)
    if budget < 1:
        assert qp.alpha.sum() == pytest.approx(budget, rel=1e-12)
        assert qp.slack > 0
    else:
        assert qp.alpha.sum() < 1e-3 * budget
        assert qp.slack < 1e-9


def cuts_of_a_training(n_cuts, budget, scale, tolerance):
    """1-slack training of a multiclass problem: its late cuts are nearly equal, the QP at its worst."""
    rng = np.random.default_rng(0)
    n, dim, classes = 150, 10, 4
    centres = rng.normal(size=(classes, dim))
    y = rng.integers(0, classes, n)
    X = scale * (0.5 * centres[y] + rng.normal(size=(n, dim)))
    c, planes, qp = np.empty(n_cuts), np.empty((n_cuts, classes * dim)), BudgetQP(budget)
    w = np.zeros((classes, dim))
    for k in range(n_cuts):
        worst = np.argmax(X @ w.T + 100 * (np.arange(classes) != y[:, None]), axis=1)
        plane = np.zeros((classes, dim))
        np.add.at(plane, y, X / n)
        np.subtract.at(plane, worst, X / n)
        c[k], planes[k] = 100 * np.mean(worst != y), plane.ravel()
        append(qp, c, planes, k)
        result = qp.solve(1e-3 * qp.gap)
        result = qp.solve(tolerance * result.dual)
        w = (qp.alpha @ planes[: k + 1]).reshape(classes, dim)
        yield qp, result


def test_late_cuts_of_a_training_are_solved_to_nine_digits():
    for _, result in cuts_of_a_training(n_cuts=150, budget=1e4, scale=1.0, tolerance=1e-9):
        assert result.gap <= 1e-9 * result.dual


@pytest.mark.parametrize(("dim", "budget"), [(10, 1e-3), (60, 1e-3), (60, 1e7), (400, 1e7)])
def test_gram_entries_of_1e10_are_solved_to_nine_digits(dim, budget):
    rng = np.random.default_rng(1)
    planes = 1e5 / np.sqrt(dim) * rng.normal(size=(200, dim))
    if budget == 1e7:
        planes[:, 0] += 1e5  # else zero lies in the hull, w vanishes and doubles cannot resolve Σ αg
    c = 100 - rng.random(200)
    qp = build(c, planes, budget)
    rough = qp.solve(1e-6 * qp.gap)
    for _ in range(3):
        rough = qp.solve(1e-9 * rough.dual)
    assert rough.gap <= 1e-9 * rough.dual


def test_unreachable_tolerance_ends_with_the_true_gap():
    c, planes = random_problem(0, 30, 10, shared=5.0)
    qp = build(c, planes, 10.0)
    result = qp.solve(0.0, 10**9)
    assert result.gap <= 1e-12 * result.dual
    assert result.gap == qp.gap


def test_max_steps_is_kept_and_the_solve_can_go_on():
    c, planes = random_problem(0, 30, 10)
    qp = build(c, planes, 10.0)
    first = qp.solve(1e-9, 3)
    assert first.steps == 3
    assert first.gap > 1e-9
    assert first.gap == pytest.approx(independent_gap(qp, c, planes, 10.0))
    second = qp.solve(1e-9)
    assert second.gap <= 1e-9
    assert second.dual > first.dual


def test_smaller_budget_scales_alpha_and_larger_one_keeps_it():
    c, planes = random_problem(5, 20, 10)
    qp = build(c, planes, 1.0)
    qp.solve(1e-9)
    before = qp.alpha
    assert before.sum() == pytest.approx(1.0)
    qp.budget = 2.0
    np.testing.assert_array_equal(qp.alpha, before)
    qp.budget = 0.25
    np.testing.assert_allclose(qp.alpha, before / 4)
    np.testing.assert_allclose(qp.values, c - planes @ (qp.alpha @ planes))
    assert qp.solve(1e-9).dual == pytest.approx(build(c, planes, 0.25).solve(1e-9).dual, abs=1e-8)


def test_arrays_returned_are_copies():
    qp = build(np.array([1.0]), np.array([[1.0]]), 1.0)
    qp.alpha[:] = 7.0
    assert qp.alpha[0] == 0.0


def test_wrong_input_is_explained():
    with pytest.raises(ValueError, match="positive and finite"):
        BudgetQP(-1.0)
    with pytest.raises(ValueError, match="positive and finite"):
        BudgetQP(np.inf)
    qp = BudgetQP(1.0, 1)
    with pytest.raises(ValueError, match="gram_row has 2 entries, expected 1"):
        qp.add(1.0, np.ones(2), np.ones(1))
    with pytest.raises(ValueError, match="at_nonnegative has 0 entries, expected 1"):
        qp.add(1.0, np.ones(1))
    with pytest.raises(ValueError, match=r"gram_row\[0\] is nan"):
        qp.add(1.0, np.array([np.nan]), np.ones(1))
    with pytest.raises(ValueError, match="c is inf"):
        qp.add(np.inf, np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="cannot be negative"):
        qp.add(1.0, -np.ones(1), np.ones(1))
    assert len(qp) == 0
    qp.add(1.0, np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="alpha sums to 2"):
        qp.alpha = np.array([2.0])
    with pytest.raises(ValueError, match="must not be negative"):
        qp.alpha = np.array([-0.5])
    with pytest.raises(ValueError, match="must ascend"):
        qp.remove(np.array([1]))
    with pytest.raises(ValueError, match="counted from 0"):
        qp.remove(np.array([-1]))
    with pytest.raises(ValueError, match="tolerance"):
        qp.solve(np.nan)
