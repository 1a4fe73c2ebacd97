"""Two classes with an exact kernel under block-dual: batches of rows, solved by pairs, against bounds taken apart from it."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.base import SAMPLED_ROWS, sample_of

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def rbf(X, gamma=0.3):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def overlapping(n, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice([-1, 1], n)
    return rng.normal(size=(n, 3)) + 0.5 * y[:, None], y


def trained(K, y, C=1.0, *, tol=1e-8, **settings):
    model = mm.models.Binary(kernel=mm.Kernel("precomputed"))
    return mm.train(model, K, y, C, solver="block-dual", tol=tol, **settings)


def bounds(K, y, solution, C, *, squared=False, weight=1.0):
    """Primal and dual of the coefficients by their definitions; α = y · coefficient must be feasible."""
    coef = np.zeros(len(y))
    coef[solution.expansion.basis] = solution.expansion.coef[0]
    alpha, scores = y * coef, K @ coef
    assert np.all(alpha >= 0.0)
    assert squared or np.all(alpha <= C * weight * (1 + 1e-12))
    slack, square = np.maximum(1.0 - y * scores, 0.0), coef @ scores
    cost = C * np.sum(weight * slack ** (2 if squared else 1))
    has_weight = np.broadcast_to(np.asarray(weight) > 0.0, alpha.shape)
    ridge = (
        np.sum(alpha[has_weight] ** 2 / (4.0 * C * np.broadcast_to(weight, alpha.shape)[has_weight]))
        if squared
        else 0.0
    )
    return 0.5 * square + cost, alpha.sum() - 0.5 * square - ridge


@pytest.mark.parametrize("instruction_set", _core.instruction_sets())
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0, 1e4])
def test_the_gap_closes_whatever_C_is(C, loss, instruction_set):
    usual = _core.instruction_set()
    X, y = overlapping(150)
    K = rbf(X)
    _core.use_instruction_set(instruction_set)
    try:
        solution = trained(K, y, C, loss=loss)
    finally:
        _core.use_instruction_set(usual)
    primal, dual = bounds(K, y, solution, C, squared=loss == "squared_hinge")
    assert primal - dual <= 1e-7 * primal
    assert solution.certificate.dual == pytest.approx(dual, rel=1e-9)


@pytest.mark.parametrize("instruction_set", _core.instruction_sets())
@pytest.mark.parametrize("y", [[1, 1], [-1, 1]])
@pytest.mark.parametrize(
    ("gram", "upper", "alpha"),
    [
        ([[1.0, 0.5], [0.5, 1.0]], [1.0, 1.0], [2 / 3, 2 / 3]),
        # The second row would gain most by itself, and the first one stops at its upper end beside it.
        ([[1.0, 0.5], [0.5, 1.0]], [0.5, 9.0], [0.5, 0.75]),
        # The first gains most, and stops.
        ([[0.25, 0.2], [0.2, 1.0]], [2.0, 9.0], [2.0, 0.6]),
        ([[1.0, 0.5], [0.5, 1.0]], [0.5, 0.4], [0.5, 0.4]),
        ([[0.25, 0.6], [0.6, 2.0]], [9.0, 9.0], [4.0, 0.0]),
    ],
    ids=["inside", "second at its end", "first at its end", "both at their ends", "nothing of one"],
)
def test_two_rows_get_to_the_best_point_of_their_rectangle_in_one_step(gram, upper, alpha, y, instruction_set):
    # max Σ α − ½ α·G·α, 0 ≤ α ≤ C s: F = 1 − Gα is 0 inside, ≥ 0 at an upper end, ≤ 0 at 0.
    G, alpha = np.array(gram), np.array(alpha)
    K = G * np.outer(y, y)
    model = mm.models.Binary(kernel=mm.Kernel("precomputed"))
    usual = _core.instruction_set()
    _core.use_instruction_set(instruction_set)
    try:
        problem = model.bind(K, y, sample_weight=upper)
        blocks, w = problem.row_blocks(1.0, squared=False), problem.zero_weights()
        swept = blocks.sweep(1e-9, 0, w.exact)
    finally:
        _core.use_instruction_set(usual)
    found = np.zeros(2)
    found[blocks.planes().examples()] = blocks.planes().alpha()
    assert found == pytest.approx(alpha, abs=1e-12)
    assert swept.gain == pytest.approx(alpha.sum() - 0.5 * alpha @ G @ alpha, rel=1e-12)
    # Of two rows a visit each, and two for the step, which reads both.
    assert swept.visits == 4


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 121, 1000])
def test_any_number_of_rows_has_batches(n):
    X, y = overlapping(n, seed=n)
    K = rbf(X)
    solution = trained(K, y, 3.0, tol=1e-6)
    primal, dual = bounds(K, y, solution, 3.0)
    assert solution.certificate.converged
    assert primal - dual <= 1.1e-6 * primal


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_rows_without_weight_or_kernel_are_left_where_they_belong(loss):
    X, y = overlapping(60)
    K = rbf(X)
    K[10:15], K[:, 10:15] = 0.0, 0.0
    weight = np.where(np.arange(60) % 7 == 0, 0.0, 1.5)
    solution = trained(K, y, 2.0, loss=loss, sample_weight=weight)
    primal, dual = bounds(K, y, solution, 2.0, squared=loss == "squared_hinge", weight=weight)
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-9)
    # Rows of zeros pay whatever w is; what they carry has no part in w, and none in the model.
    assert primal - dual - 2.0 * weight[10:15].sum() <= 1e-7 * primal


def test_rows_that_are_all_alike_are_one():
    y = np.repeat([1, -1], [30, 20])
    solution = trained(np.ones((50, 50)), y, 0.5)
    primal, dual = bounds(np.ones((50, 50)), y, solution, 0.5)
    assert primal - dual <= 1e-7 * primal
    # w ≥ 1 costs ½w² + 20 C (1 + w), w = 1 that of 20 rows and no more of the others.
    assert primal == pytest.approx(0.5 + 20 * 0.5 * 2.0, rel=1e-7)


def test_pairs_of_opposite_labels_at_one_place_spend_all_they_have():
    X, y = overlapping(40)
    X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    y[1::2] *= -1
    solution = trained(rbf(X), y, 10.0)
    assert solution.certificate.primal == pytest.approx(10.0 * 80, rel=1e-7)


def test_a_large_C_takes_few_passes_and_no_newton_steps():
    """Rows taken in random order pushed each other back and forth: thousands of visits of each, or Newton's method at last."""
    X, y = overlapping(1500)
    solution = mm.train(mm.models.Binary(kernel=mm.Kernel("rbf", 0.3)), X, y, 1000.0, solver="block-dual", tol=1e-3)
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) == 0
    assert sum(record["visits"] for record in solution.history) <= 100 * 1500


def test_what_a_callback_breaks_off_is_the_point_of_its_coefficients():
    X, y = overlapping(400)
    K = rbf(X)
    with pytest.warns(ConvergenceWarning):
        solution = trained(K, y, 100.0, callback=lambda record: record["iteration"] >= 2)
    primal, dual = bounds(K, y, solution, 100.0)
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert solution.certificate.dual <= primal
    assert dual <= solution.certificate.dual * (1 + 1e-9)


@pytest.mark.parametrize("n", [8, 120, 300])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_without_a_tolerance_training_ends_where_rounding_stops_it(n, C):
    """Sweeps that moved nothing were made again, a quarter more of them each time."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(n, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)
    solution = mm.train(
        mm.models.Binary(kernel=mm.Kernel("rbf", 0.3)), X, y, C, solver="block-dual", tol=0.0, max_time=30
    )
    assert "max_time" not in solution.certificate.message
    assert solution.certificate.relative_gap <= 1e-9


def test_rows_without_a_square_move_the_scores_that_their_columns_say():
    """What is no kernel is looked for in a sample only: bounds are those of the coefficients all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    X = np.column_stack([2.0 * X / np.linalg.norm(X, axis=1, keepdims=True), np.full(300, 2.0)])
    unseen = np.setdiff1d(np.arange(300), sample_of(300, SAMPLED_ROWS))[:5]
    X[unseen] = [0.0, 0.0, 0.0, 1.0]
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=300) > 0, 1, -1)
    K = (X @ X.T - 1.0) ** 3
    assert K[unseen[0], unseen[0]] == 0.0
    solution = mm.train(mm.models.Binary(kernel=mm.Kernel("poly", 1.0, 3, -1.0)), X, y, solver="block-dual")
    scores = K @ solution.w
    primal = 0.5 * solution.w @ scores + np.maximum(1.0 - y * scores, 0.0).sum()
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-6)


def test_auto_leaves_numbers_that_rounding_eats_to_cuts():
    rng = np.random.default_rng(0)
    X, y = 100.0 * rng.normal(size=(300, 4)), rng.choice([-1, 1], 300)
    with pytest.warns(ConvergenceWarning, match="rounding"):
        svm = mm.BinarySVM(kernel="poly", gamma=1.0, coef0=1.0, fit_intercept=False, max_time=30).fit(X, y)
    assert svm.history_[0]["solver"] == "one-slack"
    assert "max_time" not in svm.certificate_.message
