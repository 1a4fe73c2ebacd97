"""What rounding does to bounds: runs end where it lets the gap fall no further, and no certificate is made of it."""

import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
import small_model
from sklearn import datasets
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm

pytestmark = pytest.mark.core


def separable(n, d, scale, seed=0):
    """More features than rows, so that all margins can be met, in units that nobody should use."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, d)) * scale, np.where(rng.random(n) < 0.5, 1, -1)


def exact_primal(w, X, y, C, sample_weight):
    """P(w) in fractions."""
    rows, values = X.tolist(), [Fraction(v) for v in w.tolist()]
    total = sum(v * v for v in values) / 2
    for row, label, s in zip(rows, y.tolist(), sample_weight.tolist(), strict=True):
        score = sum(v * Fraction(x) for v, x in zip(values, row, strict=True))
        total += Fraction(C) * Fraction(s) * max(Fraction(0), 1 - label * score)
    return float(total)


@pytest.mark.filterwarnings("ignore:rounding of scores and losses")
@pytest.mark.parametrize("solver", ["auto", "block-dual", "sdm", "one-slack", "n-slack"])
@pytest.mark.parametrize("seed", range(3))
def test_the_primal_is_not_below_the_exact_one(solver, seed):
    X, y = separable(5, 20, 1e8, seed)
    sample_weight = 10.0 ** np.random.default_rng(seed).integers(-3, 7, size=5)
    solution = mm.train(mm.models.Binary(), X, y, 1.0, solver=solver, sample_weight=sample_weight, max_time=20)
    assert exact_primal(solution.w, X, y, 1.0, sample_weight) <= (1 + 1e-9) * solution.certificate.primal


@pytest.mark.parametrize(
    ("solver", "scale"),
    [("block-dual", 1e5), ("block-dual", 1e6), ("sdm", 1e5), ("one-slack", 1e5), ("one-slack", 1e8)],
)
def test_margins_that_can_be_met_are_met_beyond_rounding(solver, scale):
    X, y = separable(300, 400, scale)
    solution = mm.train(mm.models.Binary(), X, y, 1.0, solver=solver, max_time=60)
    assert solution.certificate.converged
    assert exact_primal(solution.w, X, y, 1.0, np.ones(300)) <= (1 + 1e-9) * solution.certificate.primal


def test_a_run_ends_where_rounding_is_all_that_is_left():
    X, y = separable(300, 400, 1e8)
    with pytest.warns(ConvergenceWarning, match=r"rounding of scores and losses .* scale the features .* or lower C"):
        certificate = mm.train(mm.models.Binary(), X, y, 1.0, solver="block-dual", max_time=60).certificate
    assert not certificate.converged
    assert certificate.oracle_calls < 1_000_000


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_large_C_alone_is_no_reason_to_doubt(loss):
    X, y = separable(30, 60, 1.0)
    assert mm.train(mm.models.Binary(), X, y, 1e9, loss=loss).certificate.converged


@pytest.mark.parametrize(("solver", "loss"), [("sdm", "hinge"), ("dcd", "squared_hinge"), ("cpd", "squared_hinge")])
@pytest.mark.parametrize("is_clean", [True, False])
def test_without_a_tolerance_sweeps_end_too(solver, loss, is_clean):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 6))
    y = (X @ rng.normal(size=(6, 4))).argmax(1) if is_clean else rng.integers(4, size=200)
    certificate = mm.train(
        mm.models.Multiclass(4), X, y, 0.1, solver=solver, loss=loss, tol=0.0, max_time=60
    ).certificate
    assert certificate.converged
    assert certificate.relative_gap < 1e-12


@pytest.mark.parametrize("solver", ["auto", "block-dual", "one-slack", "n-slack"])
@pytest.mark.parametrize("C", [1e9, 1e12])
def test_a_hard_margin_is_certified_for_a_model_in_python(solver, C):
    X, _ = small_model.data(60)
    X[:, 1] = 1.0
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 0] > 1.0)
    certificate = mm.train(small_model.Classes(), X, y, C, solver=solver, max_time=60).certificate
    assert certificate.converged
    assert certificate.exact
    assert certificate.primal == pytest.approx(mm.train(small_model.Classes(), X, y, 1e6).certificate.primal, rel=2e-3)


def exact_primal_of_classes(W, X, y, C, cost, rescaling):
    """P(w) in fractions for a row of weights per class."""
    W = [[Fraction(v) for v in row] for row in W.tolist()]
    total = sum(v * v for row in W for v in row) / 2
    for x, truth in zip(X.tolist(), y, strict=True):
        scores = [sum(v * Fraction(feature) for v, feature in zip(row, x, strict=True)) for row in W]
        slacks = []
        for label, score in enumerate(scores):
            loss, margin = Fraction(cost[truth][label]), scores[truth] - score
            slacks.append(loss * (1 - margin) if rescaling == "slack" else loss - margin)
        total += Fraction(C) * max(slacks)
    return float(total)


@pytest.mark.filterwarnings("ignore:rounding of scores and losses", "ignore:max_iter=3000")
@pytest.mark.parametrize("solver", ["sdm", "n-slack", "one-slack", "block-dual"])
@pytest.mark.parametrize("seed", range(4))
def test_large_losses_under_slack_rescaling_leave_no_primal_below_the_exact_one(solver, seed):
    rng = np.random.default_rng(seed)
    X, y, C = rng.normal(size=(4, 3)), [0, 1, 2, seed % 3], 1e5
    cost = np.round(rng.uniform(0.5, 4.0, size=(3, 3))) * 1e8 * (1.0 - np.eye(3))
    options = {"rescaling": "slack", "tol": 1e-4, "fit_intercept": False, "max_iter": 3000}
    svm = mm.MulticlassSVM(C=C, cost=cost, solver=solver, **options).fit(X, y)
    exact = exact_primal_of_classes(svm.coef_, X, y, C, cost, "slack")
    assert exact <= (1.0 + 1e-5) * svm.certificate_.primal


@pytest.mark.filterwarnings("ignore:rounding of scores and losses", "ignore:max_time")
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("solver", ["sdm", "n-slack"])
@pytest.mark.parametrize("seed", range(4))
def test_the_primal_of_a_model_in_python_is_not_below_the_exact_one(solver, rescaling, seed):
    X, C, cost = np.random.default_rng(seed).normal(size=(4, 2)) * 1e3, 1e13, [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
    y = [0, 1, 2, seed % 3]
    solution = mm.train(small_model.Classes(), X, y, C, solver=solver, rescaling=rescaling, max_time=0.5)
    exact = exact_primal_of_classes(solution.w.reshape(3, 2), X, y, C, cost, rescaling)
    assert exact <= (1.0 + 1e-5) * solution.certificate.primal


@pytest.mark.filterwarnings("ignore:rounding of scores and losses")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("solver", ["one-slack", "block-dual"])
def test_margins_of_zero_are_not_taken_for_met(solver, seed):
    """However long w is, rounding decides whether a wrong label that costs nothing scores more than the true one."""
    cost = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 20)), rng.integers(3, size=12)
    model = mm.models.Multiclass(3, cost=cost)
    solution = mm.train(model, X, y, 1e15, solver=solver, max_time=20)
    certificate = solution.certificate
    W = [[Fraction(v) for v in row] for row in model.blocks(solution.w)["coef"].tolist()]
    paid = Fraction(0)
    for row, label in zip(X.tolist(), y.tolist(), strict=True):
        scores = [sum(v * Fraction(x) for v, x in zip(values, row, strict=True)) for values in W]
        paid += max(Fraction(cost[label, k]) + scores[k] - scores[label] for k in range(3))
    exact = float(sum(v * v for values in W for v in values) / 2 + Fraction(10**15) * paid)
    assert exact <= (1 + 1e-9) * certificate.primal
    assert certificate.converged == (certificate.relative_gap <= 1e-3)


@pytest.mark.parametrize(("solver", "more"), [("cpd", {}), ("dcd", {"evaluate_every": 1})])
def test_a_gap_of_zero_is_no_reason_to_doubt(solver, more):
    X, y = np.array([[0.0, 1.0], [2.0, -2.0], [-2.0, 2.0], [2.0, -1.0]]), [0, 1, 0, 0]
    options = {"epsilon": 1e-12, **more}
    certificate = mm.train(
        mm.models.Multiclass(2), X, y, 1.0, solver=solver, loss="squared_hinge", solver_options=options
    ).certificate
    assert certificate.converged


@pytest.mark.parametrize("C", [1e5, 1e8])
def test_who_asks_for_no_gap_has_what_rounding_leaves(C):
    X, y = separable(100, 200, 1.0)
    certificate = mm.train(mm.models.Binary(), X, y, C, solver="one-slack", tol=0.0, max_time=60).certificate
    assert certificate.converged
    assert certificate.relative_gap < 1e-11
    assert certificate.message == "the gap is as small as rounding lets it become"


def test_a_large_gap_that_rounding_leaves_is_no_end_for_anyone():
    X, y = [[1000.3, -2000.7], [-3000.1, 5000.9], [7777.7, 123.4]], [1, -1, 1]
    with pytest.warns(ConvergenceWarning, match="rounding of scores and losses leaves the primal uncertain"):
        certificate = mm.train(mm.models.Binary(), X, y, 1e8, solver="n-slack", tol=0.0).certificate
    assert certificate.relative_gap > 1e-3
    assert not certificate.converged


@pytest.mark.parametrize("tol", [0.0, 1e-14])
def test_a_gap_that_closed_before_rounding_was_counted_is_judged_after_it(tol):
    cost = np.array([[0.0, 0.0, 1.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 20)), rng.integers(3, size=12)
    with pytest.warns(ConvergenceWarning, match="rounding of scores and losses leaves the primal uncertain"):
        certificate = mm.train(mm.models.Multiclass(3, cost=cost), X, y, 1e15, solver="one-slack", tol=tol).certificate
    assert certificate.relative_gap > 1e-3
    assert not certificate.converged


@pytest.mark.parametrize("seed", [0, 41])
def test_what_is_called_converged_is_within_tol_after_it_was_made_longer(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(12, 20)), np.where(rng.random(12) < 0.5, 1, -1)
    solution = mm.train(mm.models.Binary(), X, y, 1e13, solver="n-slack", tol=1e-2)
    assert solution.certificate.converged
    assert solution.certificate.relative_gap <= 1e-2
    assert solution.history[-1]["oracle_calls"] == solution.certificate.oracle_calls


def test_what_ended_training_is_said_though_rounding_counts():
    X, y = separable(30, 40, 1e8)
    X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
    sample_weight = np.append(np.ones(30), 1e-10)
    options = {
        "solver": "one-slack",
        "sample_weight": sample_weight,
        "callback": lambda record: record["primal"] < 6e-10,
    }
    with pytest.warns(ConvergenceWarning, match="the callback asked for an end"):
        solution = mm.train(mm.models.Binary(), X, y, 1.0, **options)
    assert not solution.certificate.converged


def conflicting_duplicates():
    """Return rows with large kernel values, two of them equal but for their labels."""
    rng = np.random.default_rng(5)
    X = np.round(rng.normal(5.0, 1.0, size=(60, 3)) * 2.0) * 50.0
    y = np.where(X[:, 0] > X[:, 1], 1, -1)
    X[1], y[:2] = X[0], [1, -1]
    return X, y


@pytest.mark.parametrize("solver", ["one-slack", "block-dual"])
@pytest.mark.parametrize("C", [100.0, 1000.0])
def test_small_coefficients_of_large_kernel_values_stay_in_the_model(C, solver):
    X, y = conflicting_duplicates()
    svm = mm.BinarySVM(kernel="poly", degree=2, gamma=1.0, coef0=1.0, C=C, solver=solver)
    with pytest.warns(ConvergenceWarning, match="rounding"):
        svm.fit(X, y)
    # All but one of the two equal rows; each pays for its own slack, and they for theirs.
    assert svm.score(X, y) == 59 / 60
    slacks = np.maximum(0.0, 1.0 - y * svm.decision_function(X))
    assert C * slacks.sum() <= svm.certificate_.primal
    assert svm.certificate_.dual <= 2.0 * C * (1.0 + 1e-9)


@pytest.mark.parametrize(("degree", "C"), [(3, 1e4), (2, 100.0)])
def test_hard_margins_of_large_kernel_values_are_met_beyond_rounding(degree, C):
    X, y = datasets.load_breast_cancer(return_X_y=True)
    X, y = X[:200], np.where(y[:200] == 1, 1, -1)
    svm = mm.BinarySVM(kernel="poly", degree=degree, gamma=1.0, C=C).fit(X, y)
    assert svm.certificate_.converged
    assert np.all(y * svm.decision_function(X) >= 1.0)


def test_rounding_of_kernel_values_counts_in_the_primal():
    X, y = np.full((120, 1), 100.0), np.arange(120) % 3 == 0
    with pytest.warns(ConvergenceWarning, match="rounding"):
        svm = mm.BinarySVM(kernel="poly", degree=3, gamma=1.0, C=1.0, tol=1e-8).fit(X, y)
    slacks = np.maximum(0.0, 1.0 - np.where(y, 1, -1) * svm.decision_function(X))
    assert slacks.sum() <= svm.certificate_.primal


@pytest.mark.filterwarnings("ignore:rounding of scores and losses", "ignore:max_iter=40")
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("seed", range(4))
def test_slack_rescaling_multiplies_what_rounding_puts_into_the_primal(seed, loss):
    rng = np.random.default_rng(seed)
    y, C = rng.integers(4, size=40), 1e7
    cost = 10.0 ** rng.uniform(-6, 6, size=(4, 4)) * (1.0 - np.eye(4))
    model = mm.models.Multiclass(4, kernel=mm.Kernel("precomputed"), cost=cost)
    options = {"rescaling": "slack", "loss": loss, "solver": "block-dual", "max_iter": 40}
    solution = mm.train(model, np.ones((40, 40)), y, C, **options)
    # All rows are one: a score is the sum of a label's coefficients.
    scores = np.array([math.fsum(column) for column in solution.w.reshape(40, -1)[:, :4].T])
    slacks = np.max(cost[y] * (1.0 + scores - scores[y][:, None]), axis=1)
    paid = C * np.sum(slacks ** (2 if loss == "squared_hinge" else 1))
    assert paid + scores @ scores / 2.0 <= (1.0 + 1e-5) * solution.certificate.primal


@pytest.mark.parametrize("row", [1, 3, 5])
def test_a_single_large_row_stays_in_the_model(row):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X[:, 0] + 0.3 * rng.normal(size=400) > 0.0
    X[row] *= 1e4
    y[row] = not y[row]
    svm = mm.BinarySVM(kernel="poly", degree=3, gamma=1.0, coef0=1.0, C=1.0, max_time=20.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        svm.fit(X, y)
    slacks = np.maximum(0.0, 1.0 - np.where(y, 1, -1) * svm.decision_function(X))
    assert slacks.sum() <= svm.certificate_.primal * (1.0 + 1e-6)


def time_stamps(n, is_sparse):
    """Seconds since 1970 beside eight standard normal features, under three noisy classes."""
    rng = np.random.default_rng(0)
    X = np.column_stack([1.7e9 + 1e7 * rng.random(n), rng.normal(size=(n, 8))])
    y = np.where(rng.random(n) < 0.8, X[:, 1:4].argmax(axis=1), rng.integers(3, size=n))
    return sp.csr_array(X) if is_sparse else X, y


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("solver", ["auto", "one-slack", "sgd"])
def test_the_warning_hints_at_scales_that_differ(is_sparse, solver):
    X, y = time_stamps(400, is_sparse)
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=3 .*\. One column of the features is 2e\+09 times as long as"
    ) as w:
        mm.MulticlassSVM(solver=solver, max_iter=3).fit(X, y)
    assert "scaling them (StandardScaler, MaxAbsScaler) may help." in str(w[0].message)


def test_nothing_is_said_of_scales_that_are_much_the_same():
    X, y = time_stamps(400, is_sparse=False)
    for scaled in (X[:, 1:], X[:, 1:] * np.geomspace(1.0, 1e3, 8), np.where(X > 2.0, 1.0, 0.0)):
        with pytest.warns(ConvergenceWarning, match=r"tol is 0(, w = 0 is the best point that was evaluated)?\.$"):
            mm.MulticlassSVM(max_iter=3, tol=0.0).fit(scaled, y)


def test_a_called_off_run_gets_no_hint():
    X, y = time_stamps(100, is_sparse=False)
    with pytest.warns(ConvergenceWarning, match=r"tol is 0.001, w = 0 is the best point that was evaluated\.$"):
        mm.train(mm.models.Multiclass(3), X, y, callback=lambda record: True)


@pytest.mark.parametrize("solver", ["block-dual", "one-slack"])
def test_what_rounding_may_do_is_known_without_another_search(solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(3, size=60)
    model = mm.models.Multiclass(3, kernel=mm.Kernel("rbf", gamma=0.5))
    calls = []
    solution = mm.train(
        model, X, y, 1.0, solver=solver, rescaling="slack", callback=lambda record: calls.append(record["oracle_calls"])
    )
    assert solution.certificate.oracle_calls == solution.history[-1]["oracle_calls"] == calls[-1]
