"""More than two classes with an exact kernel under block-dual: batches of moves between labels.

Compared with linear solvers on features that have the kernel's values as products, and with bounds taken apart from both.
"""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.base import SAMPLED_ROWS, sample_of

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def rbf(X, gamma=0.3):
    return np.exp(-gamma * ((X[:, None] - X[None]) ** 2).sum(-1))


def overlapping(n, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n)
    return rng.normal(size=(n, 3)) + 2.0 * rng.normal(size=(n_classes, 3))[y], y


def costs(n_classes):
    return np.random.default_rng(5).uniform(0.3, 3.0, (n_classes, n_classes)) * (1.0 - np.eye(n_classes))


def trained(K, y, C=1.0, *, tol=1e-8, n_classes=4, cost=None, **settings):
    model = mm.models.Multiclass(n_classes, kernel=mm.Kernel("precomputed"), cost=cost)
    return mm.train(model, K, y, C, solver="block-dual", tol=tol, **settings)


def primal_of(K, y, solution, C, *, cost, slack=False, squared=False, weight=1.0):
    """P of the coefficients by its definition."""
    coef = solution.w.reshape(len(y), -1)[:, : len(cost)]
    scores = K @ coef
    rows = np.arange(len(y))
    violations = scores - scores[rows, y][:, None]
    hinge = np.max(cost[y] * (1.0 + violations) if slack else cost[y] + violations, axis=1)
    return 0.5 * np.sum(coef * scores) + C * np.sum(weight * hinge ** (2 if squared else 1))


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("with_costs", [False, True])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_the_optimum_is_that_of_features_with_these_products(C, with_costs, loss, rescaling):
    X, y = overlapping(60)
    K = rbf(X)
    cost = costs(4) if with_costs else 1.0 - np.eye(4)
    weight = np.where(np.arange(60) % 7 == 0, 0.0, np.linspace(0.5, 1.5, 60))
    settings = {"loss": loss, "rescaling": rescaling, "sample_weight": weight}
    solution = trained(K, y, C, cost=cost if with_costs else None, **settings)
    features = np.linalg.cholesky(K + 1e-13 * np.eye(60))
    linear = mm.models.Multiclass(4, cost=cost if with_costs else None)
    expected = mm.train(linear, features, y, C, solver="n-slack", tol=1e-9, **settings).certificate
    primal = primal_of(
        K, y, solution, C, cost=cost, slack=rescaling == "slack", squared=loss == "squared_hinge", weight=weight
    )
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert primal == pytest.approx(expected.primal, rel=1e-7)
    assert solution.certificate.dual <= expected.primal * (1 + 1e-9)


@pytest.mark.parametrize("instruction_set", _core.instruction_sets())
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_all_instruction_sets_close_the_gap(C, instruction_set):
    usual = _core.instruction_set()
    X, y = overlapping(300)
    K = rbf(X)
    _core.use_instruction_set(instruction_set)
    try:
        solution = trained(K, y, C, tol=1e-6)
    finally:
        _core.use_instruction_set(usual)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(primal_of(K, y, solution, C, cost=1.0 - np.eye(4)), rel=1e-9)


@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 241, 1000])
def test_any_number_of_rows_has_batches(n):
    X, y = overlapping(n, seed=n)
    K = rbf(X)
    solution = trained(K, y, 3.0, tol=1e-6)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(primal_of(K, y, solution, 3.0, cost=1.0 - np.eye(4)), rel=1e-9)


@pytest.mark.parametrize("n_classes", [3, 60])
def test_labels_that_no_row_has_are_pushed_down_like_others(n_classes):
    X, y = overlapping(150, 3)
    K = rbf(X)
    solution = trained(K, y, 2.0, n_classes=n_classes, tol=1e-7)
    primal = primal_of(K, y, solution, 2.0, cost=1.0 - np.eye(n_classes))
    features = mm.train(
        mm.models.Multiclass(n_classes), np.linalg.cholesky(K + 1e-13 * np.eye(150)), y, 2.0, solver="sdm", tol=1e-7
    )
    assert primal == pytest.approx(features.certificate.primal, rel=2e-7)


def test_a_large_C_takes_few_passes_and_no_newton_steps():
    """Rows taken in random order pushed each other back and forth."""
    X, y = overlapping(1500)
    model = mm.models.Multiclass(4, kernel=mm.Kernel("rbf", 0.3))
    solution = mm.train(model, X, y, 1000.0, solver="block-dual", tol=1e-3)
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) == 0
    assert sum(record["visits"] for record in solution.history) <= 300 * 1500


def test_what_a_callback_breaks_off_is_the_point_of_its_coefficients():
    X, y = overlapping(400)
    K = rbf(X)
    with pytest.warns(ConvergenceWarning):
        solution = trained(K, y, 100.0, callback=lambda record: record["iteration"] >= 2)
    primal = primal_of(K, y, solution, 100.0, cost=1.0 - np.eye(4))
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-9)
    assert solution.certificate.dual <= primal


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_without_a_tolerance_training_ends_where_rounding_stops_it(loss):
    X, y = overlapping(300)
    model = mm.models.Multiclass(4, kernel=mm.Kernel("rbf", 0.3))
    solution = mm.train(model, X, y, 10.0, solver="block-dual", loss=loss, tol=0.0, max_time=30)
    assert "max_time" not in solution.certificate.message
    assert solution.certificate.relative_gap <= 1e-8


def test_rows_of_zeros_pay_and_move_nothing():
    X, y = overlapping(60)
    K = rbf(X)
    K[10:15], K[:, 10:15] = 0.0, 0.0
    solution = trained(K, y, 2.0)
    assert solution.certificate.converged
    assert solution.certificate.primal == pytest.approx(primal_of(K, y, solution, 2.0, cost=1.0 - np.eye(4)), rel=1e-9)


def test_rows_without_a_square_move_the_scores_that_their_columns_say():
    """What is no kernel is looked for in a sample only: bounds are those of the coefficients all the same."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 3))
    X = np.column_stack([2.0 * X / np.linalg.norm(X, axis=1, keepdims=True), np.full(300, 2.0)])
    unseen = np.setdiff1d(np.arange(300), sample_of(300, SAMPLED_ROWS))[:5]
    X[unseen] = [0.0, 0.0, 0.0, 1.0]
    y = np.digitize(X[:, 0] + 0.5 * rng.normal(size=300), [-0.5, 0.5])
    K = (X @ X.T - 1.0) ** 3
    assert K[unseen[0], unseen[0]] == 0.0
    model = mm.models.Multiclass(3, kernel=mm.Kernel("poly", 1.0, 3, -1.0))
    solution = mm.train(model, X, y, solver="block-dual")
    primal = primal_of(K, y, solution, 1.0, cost=1.0 - np.eye(3))
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-6)


def test_moves_that_stopped_between_their_ends_stay_for_the_next_batch():
    """Without them 80 visits of each row were made: what a batch does the next one undoes."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(600, 3)), rng.integers(5, size=600)
    solution = mm.train(mm.models.Multiclass(5, kernel=mm.Kernel("rbf", 0.3)), X, y, solver="block-dual")
    assert solution.certificate.converged
    assert sum(record["visits"] for record in solution.history) <= 60 * 600


def test_sweeps_that_get_there_are_not_left_for_steps_of_all_rows():
    """These were expected to be few, and took longer than all sweeps together."""
    rng = np.random.default_rng(0)
    y = rng.integers(4, size=300)
    X = rng.normal(size=(300, 4)) + 0.8 * rng.normal(size=(4, 4))[y]
    model = mm.models.Multiclass(4, kernel=mm.Kernel("rbf", 0.2))
    solution = mm.train(model, X, y, 1e5, solver="block-dual")
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) == 0


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_next_to_no_C_divides_by_nothing(loss):
    X, y = overlapping(60)
    model = mm.models.Multiclass(4, kernel=mm.Kernel("rbf", 0.3))
    certificate = mm.train(model, X, y, 1e-200, solver="block-dual", loss=loss).certificate
    assert certificate.primal == pytest.approx(60e-200)
    assert certificate.converged
