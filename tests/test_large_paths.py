"""What only large problems do by default: float32 searches, block passes, line searches on scores. Here forced on small ones."""

import warnings

import numpy as np
import pytest
import random_problems
import reference
import scipy.sparse as sp
from native_models import native, random_model

import maxmargin as mm
from maxmargin.problems.linear import LinearProblem
from maxmargin.solvers.n_slack import NSlack
from maxmargin.solvers.one_slack import OneSlack

pytestmark = pytest.mark.core

OPTIONS = [
    {},
    {"stabilization": "line-search"},
    {"stabilization": "line-search", "warm_start_passes": 0},
    {"stabilization": "auto", "warm_start_passes": 3},
]


@pytest.fixture
def as_if_large(monkeypatch):
    monkeypatch.setattr(LinearProblem, "_SMALL", 0)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain"])
@pytest.mark.parametrize("seed", range(3))
def test_float32_searches_reach_the_reference_optimum(as_if_large, seed, kind, rescaling, options):
    rng = np.random.default_rng(seed)
    given = random_model(kind, rng)
    model, X, Y = native(given)
    C, weights = 10.0 ** rng.uniform(-1, 1), random_problems.random_sample_weight(rng, given.n_examples)
    if not weights.any():
        weights[:] = 1.0
    best = reference.solve(reference.planes(given, rescaling), C, sample_weight=weights)
    solution = mm.train(
        model, X, Y, C, solver="one-slack", rescaling=rescaling, sample_weight=weights, tol=1e-7, solver_options=options
    )
    assert solution.certificate.converged
    assert solution.certificate.exact
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6, abs=1e-12)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9) + 1e-12
        # Between verifications the search is in float32: the primal may be short by its rounding.
        assert record["primal"] >= best.lower_bound * (1 - 1e-5) - 1e-9


@pytest.mark.parametrize("solver", ["auto", "one-slack", "n-slack", "block-dual"])
def test_a_limit_returns_the_best_point_found_not_the_first(as_if_large, solver):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 5)) for _ in range(60)]
    Y = [np.argmax(x[:, :3], axis=1) for x in X]
    at_zero = mm.models.Chain(3).bind(X, Y)
    start = at_zero.primal(at_zero.zero_weights(), 1.0, squared=False)
    with pytest.warns(match="max_iter=4 was reached"):
        solution = mm.train(mm.models.Chain(3), X, Y, 1.0, solver=solver, tol=1e-12, max_iter=4)
    assert solution.certificate.primal < 0.9 * start
    assert np.any(solution.w != 0.0)


def test_planes_are_kept_only_on_request():
    assert mm.train(mm.models.Binary(), np.eye(2), [-1, 1]).planes is None


@pytest.mark.parametrize("solver", [OneSlack, NSlack])
def test_a_solver_that_has_not_begun_has_no_planes(solver):
    assert solver().planes() is None


def test_strided_and_small_integer_csr_arrays_give_the_same_model():
    rng = np.random.default_rng(3)
    dense = rng.integers(0, 3, size=(40, 6))
    y = rng.integers(3, size=40)
    plain = sp.csr_matrix(dense.astype(np.float64))
    data, indices = np.repeat(plain.data, 2), np.repeat(plain.indices, 2)
    strided = sp.csr_matrix((data[::2], indices[::2], plain.indptr), shape=plain.shape, copy=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected = mm.train(mm.models.Multiclass(3), plain, y, 0.1).w
        for X in (
            strided,
            plain.astype(np.int8),
            plain.astype(np.uint8),
            plain.astype(np.int32),
            plain.astype(np.float32),
        ):
            np.testing.assert_array_equal(mm.train(mm.models.Multiclass(3), X, y, 0.1).w, expected)
