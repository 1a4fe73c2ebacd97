"""Kernels that are functions or matrices: block-dual on their values, and values that no kernel has."""

import time

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from kernel_cases import Case
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import maxmargin as mm
from maxmargin.kernels import product

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

FORMS = {
    "a function": lambda K: mm.Kernel(lambda A, B: rbf_kernel(A, B, gamma=0.8), constant=0.7),
    "a matrix": np.asarray,
    "a matrix by columns": np.asfortranarray,
    "a matrix in float32": lambda K: K.astype(np.float32),
    "a sparse matrix": sp.csr_array,
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_block_dual_takes_kernels_that_are_values(name, form, loss):
    case = Case(name, mm.Kernel("rbf", 0.8, constant=0.7), with_weights=True)
    best = reference.solve(reference.planes(case.model), case.C, case.sample_weight, loss)
    given = FORMS[form](rbf_kernel(case.X, gamma=0.8))
    if isinstance(given, mm.Kernel):
        case.native.kernel = given
    else:
        case.native.kernel, case.X = mm.Kernel("precomputed", constant=0.7), given
    solution = case.train(solver="block-dual", loss=loss, max_iter=100_000)
    assert solution.certificate.converged
    # Values in float32 are another kernel, a little.
    closeness = 1e-5 if form == "a matrix in float32" else 1e-6
    assert solution.certificate.primal == pytest.approx(best.objective, rel=closeness)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + closeness)
        assert record["primal"] >= best.lower_bound * (1 - closeness)


def test_a_function_is_asked_for_no_value_twice():
    rng = np.random.default_rng(0)
    X, asked = rng.normal(size=(300, 3)), []

    def kernel(A, B):
        asked.append(A.shape[0] * B.shape[0])
        return rbf_kernel(A, B, gamma=0.5)

    y = np.where(X[:, 0] > 0.5 * rng.normal(size=300), 1, -1)
    for loss in ("hinge", "squared_hinge"):
        asked.clear()
        solution = mm.train(mm.models.Binary(kernel=mm.Kernel(kernel)), X, y, loss=loss)
        assert solution.solver == "block-dual"
        # All of them once; samples for its symmetry, its scale and its signs come before.
        assert 300 * 300 <= sum(asked) < 1.7 * 300 * 300


def test_values_that_do_not_fit_are_cut():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mm.models.Binary(kernel=mm.Kernel(lambda A, B: A @ B.T, cache=1.0))
    assert mm.train(model, X, y).solver == "one-slack"
    for options in ({"solver": "block-dual"}, {"loss": "squared_hinge"}):
        with pytest.raises(ValueError, match=r"for 400 rows 1\.28 MB, and kernel_cache allows 1 MB"):
            mm.train(model, X, y, **options)
    # A matrix that is there takes no more memory.
    model = mm.models.Binary(kernel=mm.Kernel("precomputed", cache=1.0))
    assert mm.train(model, X @ X.T, y).solver == "block-dual"


# ---------------------------------------------------------------------------------------------- what is refused


def test_a_matrix_that_is_no_kernel_is_refused():
    model = mm.models.Binary(kernel=mm.Kernel("precomputed"))
    y = [1, -1, 1]
    for K, message in (
        (np.ones((3, 2)), "square matrix"),
        (np.array([[1.0, 2, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        (np.diag([1.0, -1.0, 1.0]), r"X\[1, 1\] is -1"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.train(model, K, y)


def test_an_indefinite_kernel_is_found_out():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mm.models.Binary(kernel=mm.Kernel(lambda A, B: -(A @ B.T)))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        mm.train(model, X, y)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_an_indefinite_kernel_is_no_block_problem(loss):
    """Single rows do not show it: every diagonal entry is positive, and the bounds would close."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 5))
    y = rng.choice([-1, 1], 60)
    values = rng.normal(size=(60, 60))
    K = values + values.T
    np.fill_diagonal(K, 2.0)
    for kernel, rows in ((mm.Kernel("sigmoid", 2.0, coef0=-1.0), X), (mm.Kernel("precomputed"), K)):
        with pytest.raises(ValueError, match="not positive semi-definite"):
            mm.train(mm.models.Binary(kernel=kernel), rows, y, loss=loss, solver="block-dual")


def test_pairs_of_rows_with_values_that_no_features_have_are_refused():
    """A sample of the rows need not contain them, and blocks closed their bounds above what w = 0 is worth."""
    K = np.eye(1000)
    K[5, 7] = K[7, 5] = 3.0
    model = mm.models.Binary(kernel=mm.Kernel("precomputed"))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        mm.train(model, K, np.resize([1, -1], 1000))


def test_values_beyond_double_precision_are_refused():
    X = 100.0 * np.random.default_rng(0).normal(size=(250, 5))
    model = mm.models.Binary(kernel=mm.Kernel("poly", 1.0, degree=200))
    with np.errstate(all="ignore"), pytest.raises(ValueError, match="exceed double precision"):
        mm.train(model, X, np.resize([1, -1], 250), solver="block-dual")


@pytest.mark.parametrize("solver", ["block-dual", "one-slack"])
def test_time_ends_between_blocks_of_a_function(solver, monkeypatch):
    monkeypatch.setattr(product, "_BLOCK_VALUES", 3000)
    n_calls = 0

    def slow(A, B):
        nonlocal n_calls
        n_calls += 1
        time.sleep(0.1)
        return A @ B.T

    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(ConvergenceWarning):
        mm.train(mm.models.Binary(kernel=mm.Kernel(slow)), X, np.where(X[:, 0] > 0, 1, -1), solver=solver, max_time=0.2)
    # 30 blocks make the matrix, and samples come before; overtime is a second.
    assert n_calls <= 25


def test_functions_that_are_not_symmetric_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), np.where(rng.random(40) > 0.5, 1, -1)
    kernel = mm.Kernel(lambda A, B: np.exp(A[:, :1] - 2.0 * B[:, :1].T))
    with pytest.raises(ValueError, match="not symmetric"):
        mm.train(mm.models.Binary(kernel=kernel), X, y)


def test_a_matrix_that_is_indefinite_only_as_a_whole_is_found_out():
    """No sample of its rows and no pair of them shows it."""
    rng = np.random.default_rng(1)
    A = rng.normal(size=(300, 300))
    K = (A + A.T) / 2
    K /= np.abs(np.linalg.eigvalsh(K)).max()
    np.fill_diagonal(K, 0.8)
    assert np.linalg.eigvalsh(K[:128, :128])[0] > 0.0
    y = np.where(rng.random(300) > 0.5, 1, -1)
    with pytest.raises(ValueError, match="not positive semi-definite"):
        mm.BinarySVM(kernel="precomputed", C=10.0, fit_intercept=False).fit(K, y)
    # A constant that makes up for it is one of the kernel's.
    centred = np.eye(20) - 1.0 / 20.0 - 1e-3
    with pytest.raises(ValueError, match="not positive semi-definite"):
        mm.BinarySVM(kernel="precomputed", solver="block-dual", fit_intercept=False).fit(centred, y[:20])
    assert mm.BinarySVM(kernel="precomputed", solver="block-dual").fit(centred, y[:20]).certificate_.converged


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_far_from_0_keep_their_distances(dtype):
    """A column of time stamps, say: products of such rows have no digits left for the differences."""
    rng = np.random.default_rng(0)
    X = np.c_[
        rng.normal(size=(40, 2)), np.zeros((40, 60)), (2.0**30 if dtype == np.float64 else 2.0**12) + np.arange(40) % 3
    ]
    X[np.arange(40), 2 + np.arange(40)] = 1.0
    X = X.astype(dtype)
    sparse, dense = (mm.Kernel("rbf", gamma=1.0)(rows, rows) for rows in (sp.csr_matrix(X), X))
    expected = rbf_kernel(X.astype(np.float64) - X.astype(np.float64).mean(axis=0), gamma=1.0)
    tolerance = 1e-12 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(sparse, expected, atol=1e-6 if dtype == np.float64 else tolerance)
    np.testing.assert_allclose(dense, expected, atol=1e-6 if dtype == np.float64 else tolerance)
    assert sparse.max() <= 1.0
    y = np.arange(40) // 7 % 2
    ours, other = (mm.BinarySVM(kernel="rbf", gamma=1.0, tol=1e-5).fit(rows, y) for rows in (sp.csr_matrix(X), X))
    assert ours.certificate_.primal == pytest.approx(other.certificate_.primal, rel=1e-4)


def test_a_kernel_object_keeps_its_constant():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    kernel = mm.Kernel("rbf", gamma=0.5, constant=9.0)
    plain = mm.BinarySVM(kernel="rbf", gamma=0.5, intercept_scaling=3.0).fit(X, y)
    given = mm.BinarySVM(kernel=kernel, fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(given.decision_function(X), plain.decision_function(X), atol=1e-6)


def test_sequences_have_no_precomputed_kernel_object_either():
    with pytest.raises(ValueError, match="does not tell sequences apart"):
        mm.ChainSVM(kernel=mm.Kernel("precomputed")).fit([np.eye(2)], [["a", "b"]])
