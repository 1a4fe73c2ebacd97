"""Kernel values and products against scikit-learn's matrices."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.metrics import pairwise

import maxmargin as mm
from maxmargin import _core
from maxmargin._feature_rows import core_features
from maxmargin.kernels._repeated_parts import repeated_parts
from maxmargin.kernels.product import Coefficients, NativeProduct, PythonProduct, kernel_product

pytestmark = pytest.mark.core

KERNELS = {
    "linear": (mm.Kernel("linear", 1.0), pairwise.linear_kernel),
    "poly": (mm.Kernel("poly", 0.3, 3, 1.5), lambda A, B: pairwise.polynomial_kernel(A, B, 3, 0.3, 1.5)),
    "poly of degree 1": (mm.Kernel("poly", 0.3, 1, 0.0), lambda A, B: 0.3 * pairwise.linear_kernel(A, B)),
    "rbf": (mm.Kernel("rbf", 0.7), lambda A, B: pairwise.rbf_kernel(A, B, 0.7)),
    "sigmoid": (mm.Kernel("sigmoid", 0.2, 3, -0.4), lambda A, B: pairwise.sigmoid_kernel(A, B, 0.2, -0.4)),
    "constant": (mm.Kernel("rbf", 0.7, constant=2.5), lambda A, B: pairwise.rbf_kernel(A, B, 0.7) + 2.5),
}


def rows(rng, n, d, *, is_sparse=False):
    X = rng.normal(size=(n, d))
    if is_sparse:
        X *= rng.random((n, d)) < 0.3
        return sp.csr_array(X)
    return X


def dense(X):
    return X.toarray() if sp.issparse(X) else X


def random_coefficients(rng, n_points, n_labels, n_chosen):
    """Coefficients of some points, each for some labels, and the same as a matrix points × labels."""
    matrix = rng.normal(size=(n_points, n_labels)) * (rng.random((n_points, n_labels)) < 0.7)
    matrix[rng.permutation(n_points)[n_chosen:]] = 0.0
    entries = np.flatnonzero(matrix)
    return Coefficients.of(entries, matrix.ravel()[entries], n_labels), matrix


@pytest.mark.parametrize("name", KERNELS)
def test_rows_of_many_empty_columns_are_those_of_the_others(name):
    kernel, expected = KERNELS[name]
    rng = np.random.default_rng(5)
    A, B = (sp.random_array((n, 2_000_000), density=1e-5, format="csr", rng=rng) for n in (29, 12))
    # Some columns are those of one matrix only, one is that of both, and one row is empty.
    A = sp.vstack([sp.hstack([A, np.full((29, 1), 2.0)]), sp.csr_array((1, 2_000_001))]).tocsr()
    B = sp.hstack([B, np.full((12, 1), -1.0)]).tocsr()
    used = np.union1d(A.indices, B.indices)
    assert len(used) < 2000
    np.testing.assert_allclose(kernel(A, B), expected(A[:, used].toarray(), B[:, used].toarray()), atol=1e-12)
    np.testing.assert_allclose(kernel(A, A), expected(A[:, used].toarray(), A[:, used].toarray()), atol=1e-12)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_matrices_are_those_of_scikit_learn(name, is_sparse):
    kernel, expected = KERNELS[name]
    rng = np.random.default_rng(0)
    # Sizes that are no multiples of panels, tiles and blocks.
    for n, m, d in ((1, 1, 1), (17, 5, 3), (300, 261, 7), (5, 40, 54)):
        A, B = rows(rng, n, d, is_sparse=is_sparse), rows(rng, m, d, is_sparse=is_sparse)
        assert np.allclose(kernel(A, B), expected(dense(A), dense(B)), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("n_labels", [1, 3])
@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("name", KERNELS)
def test_products_are_those_of_the_matrix(name, is_sparse, n_labels, is_single):
    kernel, expected = KERNELS[name]
    rng = np.random.default_rng(1)
    X = rows(rng, 1100, 6, is_sparse=is_sparse)
    K = expected(dense(X), dense(X))
    # A budget for all columns, for some, and for none.
    for cache_bytes in (1e8, 100 * 1100 * 8, 0.0):
        product = NativeProduct(kernel, X, is_single=is_single, cache_bytes=cache_bytes)
        for n_chosen in (700, 3, 800, 700, 0):
            coefficients, matrix = random_coefficients(rng, 1100, n_labels, n_chosen)
            out = np.ones(1100 * n_labels)
            product.add(coefficients, n_labels, out, 2)
            error = np.abs(out.reshape(1100, n_labels) - 1.0 - K @ matrix).max()
            assert error <= (2e-4 if is_single else 1e-9) * max(np.abs(K).max(), 1.0)


def test_cached_columns_are_not_computed_again():
    X = np.random.default_rng(0).normal(size=(200, 3))
    coefficients = Coefficients.of(np.arange(50), np.ones(50), 1)
    # They are kept from the second time on.
    for cache_bytes, expected in ((50 * 200 * 8, 100 * 200), (0.0, 150 * 200)):
        product = NativeProduct(mm.Kernel("rbf", 1.0), X, is_single=False, cache_bytes=cache_bytes)
        for _ in range(3):
            product.add(coefficients, 1, np.zeros(200), 1)
        assert product.n_computed == expected


def test_a_full_cache_gives_up_what_was_not_used_for_longest():
    X = np.random.default_rng(0).normal(size=(100, 3))
    product = NativeProduct(mm.Kernel("rbf", 1.0), X, is_single=False, cache_bytes=8 * 100 * 8)
    K = pairwise.rbf_kernel(X, X, 1.0)

    def use(points):
        before, out = product.n_computed, np.zeros(100)
        product.add(Coefficients.of(np.array(points), np.ones(len(points)), 1), 1, out, 1)
        assert np.allclose(out, K[:, points].sum(axis=1))
        return (product.n_computed - before) // 100

    assert use(list(range(9))) == 9
    assert use([0, 1, 2, 3]) == 4
    assert use([4, 5, 6, 7]) == 4
    assert use([0, 1, 2, 3]) == 0
    assert use([8]) == 1  # in place of some of 4 … 7
    assert use([0, 1, 2, 3, 8]) == 0


@pytest.mark.parametrize("name", ["rbf", "linear"])
def test_threads_do_not_change_a_product(name):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(5000, 4))
    coefficients, _ = random_coefficients(rng, 5000, 1, 900)
    results = []
    for n_jobs in (1, 2, 3):
        product = NativeProduct(mm.Kernel(name, 0.5), X, is_single=True, cache_bytes=1e6)
        out = np.zeros(5000)
        for _ in range(3):
            product.add(coefficients, 1, out, n_jobs)
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def categories(rng, n, n_features, scale=1.0):
    """Some numbers, and two one-hot coded categories."""
    X = np.zeros((n, n_features + 12))
    X[:, :n_features] = rng.normal(size=(n, n_features))
    X[np.arange(n), n_features + rng.integers(5, size=n)] = scale
    X[np.arange(n), n_features + 5 + rng.integers(7, size=n)] = 1.0
    return X[:, rng.permutation(n_features + 12)]


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("scale", [1.0, 900.0])
def test_columns_that_repeat_are_looked_up(scale, is_single):
    rng = np.random.default_rng(5)
    X = categories(rng, 1003, 3, scale)
    parts = repeated_parts(X)
    assert parts.rest.shape == (1003, 3)
    assert len(parts.distances2) == 35
    product = NativeProduct(mm.Kernel("rbf", 0.4), X, is_single=is_single)
    points = np.sort(rng.permutation(1003)[:77])
    assert np.abs(product.matrix(points, 3, 1003) - pairwise.rbf_kernel(X, X[points], 0.4)[3:]).max() < 2e-6
    X[::50] += 2000.0  # points far away too, whose differences are taken one by one
    parts_and_far = NativeProduct(mm.Kernel("rbf", 0.4), X, is_single=is_single)
    error = np.abs(parts_and_far.matrix(points, 0, 1003) - pairwise.rbf_kernel(X, X[points], 0.4)).max()
    assert error < 1e-3


def test_columns_that_hardly_repeat_stay_as_they_are():
    rng = np.random.default_rng(6)
    assert repeated_parts(rng.normal(size=(500, 20))) is None
    assert repeated_parts(rng.integers(2, size=(500, 30)).astype(float)) is None  # 2^30 parts
    assert repeated_parts(sp.csr_array(categories(rng, 100, 3))) is None
    late = categories(rng, 2000, 3)
    late[1500:, 4] = rng.normal(size=500)  # looks like a repeated column at first
    assert repeated_parts(late) is None


def test_points_far_from_the_others_keep_their_distances_in_float32():
    """Rare categories, standardised, lie hundreds of units away from all points but each other."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 5))
    X[:40, 0] += 700.0
    X[40:60, 1] -= 300.0
    K = pairwise.rbf_kernel(X, X, 0.5)
    product = NativeProduct(mm.Kernel("rbf", 0.5), X.astype(np.float32).astype(float), is_single=True)
    assert np.abs(product.matrix(np.arange(400), 0, 400) - K).max() < 1e-3
    # All of them far from 0: moving the centre is enough.
    product = NativeProduct(mm.Kernel("rbf", 0.5), X + 1e4, is_single=True)
    assert np.abs(product.matrix(np.arange(400), 0, 400) - K).max() < 2e-2


def test_kernels_of_distant_points_are_tiny_and_never_denormal():
    X = np.array([[0.0], [1e6]])
    for is_single in (False, True):
        values = NativeProduct(mm.Kernel("rbf", 1.0), X, is_single=is_single).matrix(np.arange(2), 0, 2)
        tiny = np.finfo(values.dtype).tiny
        assert tiny <= values[0, 1] < 1e-30
        assert values[0, 0] == pytest.approx(1.0, abs=1e-6)


def test_parts_of_a_matrix():
    X = np.random.default_rng(0).normal(size=(50, 3))
    product = NativeProduct(mm.Kernel("rbf", 1.0), X, is_single=False)
    points = np.array([40, 3, 3, 17])
    K = pairwise.rbf_kernel(X, X[points], 1.0)
    assert np.allclose(product.matrix(points, 7, 43), K[7:43])
    assert product.matrix(points, 9, 9).shape == (0, 4)


def test_functions_and_matrices_multiply_like_the_core():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    native = mm.Kernel("rbf", 0.5, constant=1.0)
    K = pairwise.rbf_kernel(X, X, 0.5)
    coefficients, matrix = random_coefficients(rng, 60, 2, 30)
    others = {
        "function": PythonProduct(mm.Kernel(lambda A, B: pairwise.rbf_kernel(A, B, 0.5), constant=1.0), X),
        "matrix": PythonProduct(mm.Kernel("precomputed", constant=1.0), K),
        "sparse matrix": PythonProduct(mm.Kernel("precomputed", constant=1.0), sp.csr_array(K)),
        "core": kernel_product(native, X, is_single=False, cache_bytes=0.0),
    }
    for product in others.values():
        out = np.zeros(120)
        product.add(coefficients, 2, out, 1)
        assert np.allclose(out.reshape(60, 2), (K + 1.0) @ matrix)


def test_gamma_by_name_is_that_of_scikit_learn():
    X = np.random.default_rng(0).normal(size=(30, 4)) * 3.0
    assert mm.Kernel(gamma="scale").for_data(X).gamma == pytest.approx(1 / (4 * X.var()))
    assert mm.Kernel(gamma="scale").for_data(sp.csr_array(X)).gamma == pytest.approx(1 / (4 * X.var()))
    assert mm.Kernel(gamma="auto").for_data(X).gamma == 0.25
    assert mm.Kernel(gamma="scale").for_data(np.ones((3, 2))).gamma == 1.0


@pytest.mark.parametrize("name", KERNELS)
def test_diagonals(name):
    kernel, expected = KERNELS[name]
    X = np.random.default_rng(0).normal(size=(9, 4))
    for rows_ in (X, sp.csr_array(X)):
        assert np.allclose(kernel.diagonal(rows_), np.diag(expected(X, X)))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"name": "gaussian"}, "kernel must be one of"),
        ({"name": 3}, "kernel must be one of"),
        ({"gamma": 0.0}, "gamma must be"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"gamma": np.nan}, "gamma must be"),
        ({"gamma": "big"}, "gamma must be"),
        ({"degree": 0}, "degree must be"),
        ({"degree": 2.5}, "degree must be"),
        ({"coef0": np.inf}, "coef0 must be"),
        ({"constant": -1.0}, "constant must be"),
        ({"cache": -1.0}, "cache must be"),
        ({"cache": "much"}, "cache must be"),
    ],
)
def test_bad_parameters_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        mm.Kernel(**parameters)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda A, B: np.zeros((len(A), len(B) + 1)), r"returned shape \(2, 4\) for 2 and 3 rows"),
        (lambda A, B: np.full((len(A), len(B)), np.nan), "not finite"),
        (lambda A, B: np.zeros(len(A)), "returned shape"),
    ],
)
def test_answers_of_functions_are_checked(answer, message):
    with pytest.raises(ValueError, match=message):
        mm.Kernel(answer)(np.zeros((2, 1)), np.zeros((3, 1)))


def test_matrices_of_different_features_have_no_kernel():
    with pytest.raises(ValueError, match="A has 2 features and B has 3"):
        mm.Kernel("linear")(np.zeros((2, 2)), np.zeros((2, 3)))
    with pytest.raises(ValueError, match="no function"):
        mm.Kernel("precomputed")(np.zeros((2, 2)), np.zeros((2, 2)))


X3 = np.zeros((3, 2))
GOOD = {
    "points": np.arange(2),
    "starts": np.arange(3),
    "labels": np.zeros(2, np.int32),
    "values": np.ones(2),
    "stride": 1,
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"points": np.array([0, 3])},
        {"points": np.array([-1, 0])},
        {"points": np.array([1, 1])},
        {"points": np.array([1, 0])},
        {"starts": np.array([0, 1])},
        {"starts": np.array([1, 1, 2])},
        {"starts": np.array([0, 3, 2])},
        {"starts": np.array([0, 1, 3])},
        {"labels": np.array([0, 1], np.int32)},
        {"labels": np.array([-1, 0], np.int32)},
        {"values": np.ones(3)},
        {"stride": 0},
        {"stride": 2},
    ],
)
def test_the_core_refuses_numbers_that_are_out_of_range(wrong):
    product = _core.KernelProduct(core_features(X3), None, "rbf", 1.0, 0.0, 3, None, False, 0.0)
    call = {**GOOD, **wrong}
    with pytest.raises(ValueError, match=r"."):
        product.add(
            call["points"], call["starts"], call["labels"], call["values"], call["stride"], out=np.zeros(3), n_threads=1
        )


@pytest.mark.parametrize(
    ("points", "first", "end"),
    [(np.array([3]), 0, 3), (np.array([0]), -1, 3), (np.array([0]), 2, 1), (np.array([0]), 0, 4)],
)
def test_the_core_refuses_blocks_that_do_not_exist(points, first, end):
    product = _core.KernelProduct(core_features(X3), None, "rbf", 1.0, 0.0, 3, None, False, 0.0)
    with pytest.raises(ValueError, match=r"."):
        product.matrix(points, first, end, 1)


def test_the_core_refuses_points_of_another_kind():
    other = core_features(sp.csr_array(X3))
    with pytest.raises(ValueError, match="both sparse or both dense"):
        _core.KernelProduct(core_features(X3), other, "rbf", 1.0, 0.0, 3, None, False, 0.0)
    with pytest.raises(ValueError, match="centre has 3 entries"):
        _core.KernelProduct(core_features(X3), None, "rbf", 1.0, 0.0, 3, np.zeros(3), False, 0.0)


def test_expansions_drop_what_adds_nothing():
    kernel = mm.Kernel("rbf", 1.0)
    basis = np.array([[0.0], [1.0], [0.0], [-0.0], [2.0], [3.0], [3.0]])
    coef = np.array([[1.0, 0.0, 2.0, 0.5, -1.0, 1.0, -1.0], [0.0, 0.0, 1.0, 0.0, 4.0, 0.0, 0.0]])
    X = np.linspace(-1, 3, 9)[:, None]
    whole = mm.Expansion(kernel, basis, coef, np.array([0.5, -0.5]), np.zeros(0))
    for points in (basis, sp.csr_array(basis)):
        few = mm.Expansion(kernel, points, coef, np.array([0.5, -0.5]), np.zeros(0)).pruned()
        assert few.size == 2
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert np.allclose(few.scores(X), whole.scores(X))
    assert np.allclose(whole.scores(X), pairwise.rbf_kernel(X, basis, 1.0) @ coef.T + [0.5, -0.5])
    empty = mm.Expansion(kernel, basis, np.zeros((2, 7)), np.array([1.0, 2.0]), np.zeros(0)).pruned()
    assert empty.size == 0
    assert np.array_equal(empty.scores(X), np.tile([1.0, 2.0], (9, 1)))


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("kernel", [mm.Kernel("rbf", 0.3), mm.Kernel("poly", 0.3, 2, 1.0)], ids=["rbf", "poly"])
def test_a_first_product_with_all_rows_takes_each_pair_once(kernel, is_single):
    rng = np.random.default_rng(0)
    for n in (1, 15, 16, 17, 479, 480, 481, 1300):
        X, a = rng.normal(size=(n, 5)), rng.normal(size=n)
        all_rows = Coefficients.of(np.arange(n), a, 1)
        found = []
        for n_jobs in (1, 2):
            product, out = kernel_product(kernel, X, is_single=is_single, cache_bytes=1e6), np.zeros(n)
            product.add(all_rows, 1, out, n_jobs)
            found.append(out)
            assert product.n_computed <= n * (n + 480) / 2 + n
        assert np.array_equal(*found)
        expected = kernel(X, X) @ a
        assert out == pytest.approx(expected, rel=1e-4 if is_single else 1e-10, abs=1e-3 if is_single else 1e-9)
        # Columns may be kept from their second use on, as ever.
        again = np.zeros(n)
        product.add(all_rows, 1, again, 1)
        assert again == pytest.approx(out, rel=1e-4, abs=1e-3)


def test_coefficients_of_some_rows_are_not_taken_for_those_of_all():
    X = np.random.default_rng(0).normal(size=(3, 2))
    kernel = mm.Kernel("rbf", 0.3)
    product, out = kernel_product(kernel, X, is_single=False, cache_bytes=0.0), np.zeros(3)
    # As many values as rows, and all rows: but the second has two of them and the third none.
    starts, labels, values = np.array([0, 1, 3, 3]), np.zeros(3, np.int32), np.array([1.0, 2.0, 4.0])
    product.add(Coefficients(np.arange(3), starts, labels, values), 1, out, 1)
    assert out == pytest.approx(kernel(X, X) @ [1.0, 6.0, 0.0])


def test_functions_get_rows_in_double_precision():
    kinds = set()

    def linear(A, B):
        kinds.update((A.dtype, B.dtype))
        return A @ B.T

    rng = np.random.default_rng(0)
    X = (1000.0 + 1000.0 * rng.normal(size=(50, 2))).astype(np.float32)
    y = X[:, 0] + 500.0 * rng.normal(size=50) > 1000.0
    ours = mm.BinarySVM(kernel=linear, fit_intercept=False).fit(X, y).certificate_
    plain = mm.BinarySVM(fit_intercept=False).fit(X.astype(np.float64), y).certificate_
    assert kinds == {np.dtype(np.float64)}
    assert plain.dual <= ours.primal
    assert ours.dual <= plain.primal


def test_kernels_that_are_none_are_called_that():
    messages = []
    for seed in range(40):
        X = np.random.default_rng(seed).normal(size=(5, 2))
        svm = mm.BinarySVM(kernel="sigmoid", gamma=10.0, coef0=1.0, C=1000.0, intercept_scaling=100.0, max_time=5.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                svm.fit(X, (X[:, 0] > np.median(X[:, 0])).astype(int))
            except ValueError as error:
                messages.append(str(error))
    assert messages
    assert all("positive semi-definite" in message for message in messages)
