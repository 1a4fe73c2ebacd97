"""What rounding does to bounds: runs end where it lets the gap fall no further, and no certificate is made of it."""

from fractions import Fraction

import numpy as np
import pytest
import small_model
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
@pytest.mark.parametrize("C", [1e9, 1e15])
def test_a_hard_margin_is_certified_for_a_model_in_python(solver, C):
    X, _ = small_model.data(60)
    X[:, 1] = 1.0
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 0] > 1.0)
    certificate = mm.train(small_model.Classes(), X, y, C, solver=solver, max_time=60).certificate
    assert certificate.converged
    assert certificate.exact
    assert certificate.primal == pytest.approx(mm.train(small_model.Classes(), X, y, 1e6).certificate.primal, rel=2e-3)
