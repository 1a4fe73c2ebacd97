"""Low-rank features against dense kernel matrices and their projections."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.kernels import _k_means
from maxmargin.kernels.low_rank import LowRankMap, features_of

BASES = ["random", "k-means", "pivoted"]


class Kernel:
    """A function of products and squared norms, of dense or CSR rows, in a chosen precision."""

    def __init__(self, function, dtype=np.float64):
        self.function, self.dtype = function, dtype

    def __call__(self, A, B):
        A, B = dense(A), dense(B)
        return self.function(A @ B.T, squares(A)[:, None], squares(B)).astype(self.dtype)

    def diagonal(self, A):
        norms = squares(dense(A))
        return self.function(norms, norms, norms).astype(self.dtype)


def rbf(gamma=0.5, dtype=np.float64):
    return Kernel(lambda products, a, b: np.exp(-gamma * np.maximum(a + b - 2 * products, 0.0)), dtype)


def polynomial():
    return Kernel(lambda products, a, b: (0.3 * products + 1.0) ** 3)


def linear():
    return Kernel(lambda products, a, b: products)


KERNELS = {"rbf": rbf(), "polynomial": polynomial(), "linear": linear()}


def dense(A):
    return A.toarray() if sp.issparse(A) else A


def squares(A):
    return np.sum(A * A, axis=1)


def points(n, d, seed=0):
    return np.random.default_rng(seed).normal(size=(n, d))


def left_over(low_rank, X):
    """What the features lack of every k(x, x)."""
    return low_rank.kernel.diagonal(X) - squares(low_rank.transform(X))


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", KERNELS)
def test_all_rows_as_basis_give_the_kernel_itself(name, basis):
    X, kernel = points(60, 6), KERNELS[name]
    features = LowRankMap.fit(kernel, X, 60, basis).transform(X)
    assert features @ features.T == pytest.approx(kernel(X, X), abs=1e-8)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", ["rbf", "polynomial"])
def test_products_are_the_kernel_projected_on_the_basis(name, basis):
    X, new, kernel = points(80, 4), points(30, 4, seed=1), KERNELS[name]
    low_rank = LowRankMap.fit(kernel, X, 15, basis)
    assert low_rank.n_components == 15
    assert low_rank.basis == pytest.approx(X[low_rank.ids], abs=0)
    # The projection by eigenvectors, in which no triangular factor appears.
    values, vectors = np.linalg.eigh(kernel(low_rank.basis, low_rank.basis))
    left, right = kernel(new, low_rank.basis) @ vectors, kernel(X, low_rank.basis) @ vectors
    products = low_rank.transform(new) @ low_rank.transform(X).T
    assert products == pytest.approx((left / values) @ right.T, abs=1e-8)
    assert np.abs(products - kernel(new, X)).max() > 1e-3  # a projection that leaves nothing out would prove little


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
def test_sparse_rows_give_the_features_of_dense_ones(make, basis):
    X = np.round(points(70, 5)) * (np.random.default_rng(1).random((70, 5)) < 0.6)
    on_dense = LowRankMap.fit(rbf(), X, 12, basis, np.random.default_rng(2))
    on_sparse = LowRankMap.fit(rbf(), make(X), 12, basis, np.random.default_rng(2))
    assert sp.issparse(on_sparse.basis)
    assert on_sparse.ids.tolist() == on_dense.ids.tolist()
    assert on_sparse.transform(make(X), block_bytes=1000) == pytest.approx(on_dense.transform(X), abs=1e-9)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("n_components", [30, 60])
def test_repeated_rows_are_left_out_of_the_basis(n_components, basis):
    X = np.tile(points(10, 3), (6, 1))
    low_rank = LowRankMap.fit(rbf(), X, n_components, basis)
    assert len({tuple(row) for row in low_rank.basis}) == low_rank.n_components <= 10
    if n_components == 60:
        features = low_rank.transform(X)
        assert features @ features.T == pytest.approx(rbf()(X, X), abs=1e-8)


def test_rows_that_nearly_repeat_disturb_nothing():
    X = points(40, 3)
    X = np.vstack([X, X + 1e-7 * points(40, 3, seed=1), X + 1e-5 * points(40, 3, seed=2)])
    features = LowRankMap.fit(rbf(), X, 120).transform(X)
    assert np.isfinite(features).all()
    assert features @ features.T == pytest.approx(rbf()(X, X), abs=1e-8)


@pytest.mark.parametrize("basis", BASES)
def test_a_linear_kernel_has_no_more_components_than_features(basis):
    X = points(50, 4)
    low_rank = LowRankMap.fit(linear(), X, 20, basis)
    assert low_rank.n_components == low_rank.basis.shape[0] == len(low_rank.ids) == 4
    features = low_rank.transform(X)
    assert features @ features.T == pytest.approx(X @ X.T, abs=1e-8)


def test_pivoted_rows_are_those_of_cholesky_with_pivots():
    X = points(40, 3)
    left, ids = polynomial()(X, X), []
    for _ in range(8):
        ids.append(int(np.argmax(np.diag(left))))
        left = left - np.outer(left[:, ids[-1]], left[ids[-1]]) / left[ids[-1], ids[-1]]
    low_rank = LowRankMap.fit(polynomial(), X, 8, "pivoted")
    assert low_rank.ids.tolist() == ids
    assert left_over(low_rank, X) == pytest.approx(np.diag(left), abs=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_pivoted_rows_leave_a_smaller_largest_error_than_random_ones(seed):
    X, rng = points(300, 3, seed), np.random.default_rng(seed)
    pivoted, random = (LowRankMap.fit(rbf(0.1), X, 30, basis, rng) for basis in ("pivoted", "random"))
    assert left_over(pivoted, X).max() < 0.5 * left_over(random, X).max()


@pytest.mark.parametrize("seed", range(5))
def test_pivoted_rows_leave_a_smaller_sum_of_errors_where_rare_rows_count(seed):
    # Nearly all rows are in one place; random rows miss the others.
    rng = np.random.default_rng(seed)
    X = np.vstack([0.01 * rng.normal(size=(270, 2)), 5.0 * rng.normal(size=(30, 2))])
    pivoted, random = (LowRankMap.fit(rbf(), X, 30, basis, rng) for basis in ("pivoted", "random"))
    assert left_over(pivoted, X).sum() < left_over(random, X).sum()


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_k_means_finds_every_cluster(make):
    # Random rows would miss the small clusters: nine of ten rows are in the first.
    rng = np.random.default_rng(0)
    centres = 100.0 * rng.normal(size=(8, 5))
    cluster = np.concatenate([np.zeros(630, int), np.repeat(np.arange(1, 8), 10)])
    X = centres[cluster] + 0.1 * rng.normal(size=(700, 5))
    low_rank = LowRankMap.fit(rbf(), make(X), 8, "k-means", np.random.default_rng(1))
    assert sorted(cluster[low_rank.ids]) == list(range(8))
    # The row of a cluster is the one nearest to its mean.
    for row in low_rank.ids:
        members = np.flatnonzero(cluster == cluster[row])
        assert row == members[np.argmin(squares(X[members] - X[members].mean(axis=0)))]


def test_k_means_looks_at_a_sample_of_many_rows_in_blocks(monkeypatch):
    monkeypatch.setattr(_k_means, "_MOST_ROWS", 50)
    monkeypatch.setattr(_k_means, "_BLOCK_BYTES", 8 * 4 * 7)
    X = np.repeat(100.0 * np.eye(4), 100, axis=0) + 0.1 * points(400, 4)
    ids = LowRankMap.fit(rbf(), X, 4, "k-means").ids
    assert sorted(ids // 100) == [0, 1, 2, 3]
    assert len(LowRankMap.fit(rbf(), X, 60, "k-means").ids) > 50


def test_k_means_starts_from_different_rows():
    rows = np.tile([[0.0, 1.0], [3.0, 0.0], [2.0, 2.0]], (5, 1))
    start = _k_means._spread_rows(rows, squares(rows), 10, np.random.default_rng(0))
    assert sorted(row % 3 for row in start) == [0, 1, 2]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_folded_weights_score_as_the_features_do(dtype):
    X, new = points(60, 4), points(25, 4, seed=1)
    kernel = rbf(dtype=dtype)
    low_rank = LowRankMap.fit(kernel, X, 20)
    coef = np.random.default_rng(2).normal(size=(3, low_rank.n_components))
    before = coef.copy()
    dual = low_rank.fold(coef)
    assert dual.shape == (3, low_rank.n_components)
    # Exact for the values given, also where these are rounded to float32.
    assert kernel(new, low_rank.basis) @ dual.T == pytest.approx(low_rank.transform(new) @ coef.T, abs=1e-10)
    assert np.array_equal(coef, before)


@pytest.mark.parametrize("block_bytes", [1, 5 * 16 * 20, 1 << 20])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_of_any_size_give_the_same_features(dtype, block_bytes):
    X = points(33, 4)
    low_rank = LowRankMap.fit(rbf(), X, 20)
    features = low_rank.transform(X, dtype, block_bytes)
    assert features.dtype == dtype
    assert features == pytest.approx(low_rank.transform(X), abs=1e-12 if dtype == np.float64 else 1e-6)


def test_transform_needs_little_memory_beside_the_features():
    X = points(4000, 3)
    low_rank = LowRankMap.fit(rbf(5.0), X, 100)
    tracemalloc.start()
    features = low_rank.transform(X, np.float32, block_bytes=100_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The kernel of these tests makes three temporary arrays of its own for every block.
    assert peak - features.nbytes < 400_000 < features.nbytes


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_features_keep_the_precision_of_a_kernel_in_float32(dtype):
    X = points(150, 4)
    # Pivots at the level of rounding would be noise divided by its root.
    features = LowRankMap.fit(rbf(0.05, np.float32), X, 150).transform(X, dtype)
    assert features @ features.T == pytest.approx(rbf(0.05)(X, X), abs=2e-5)


def test_features_in_float32_are_those_in_float64_rounded():
    X, new = points(150, 4), points(50, 4, seed=1)
    low_rank = LowRankMap.fit(rbf(0.05), X, 150)
    assert np.array_equal(low_rank.transform(new, np.float32), low_rank.transform(new).astype(np.float32))
    # Behind a kernel in float32 the work is done in float32 too.
    low_rank = LowRankMap.fit(rbf(0.05, np.float32), X, 150)
    rounded, exact = low_rank.transform(new, np.float32), low_rank.transform(new)
    assert not np.array_equal(rounded, exact.astype(np.float32))
    assert rounded == pytest.approx(exact, abs=1e-3)


def test_values_that_the_kernel_keeps_are_not_written_to():
    class Stored(Kernel):
        def __call__(self, A, B):
            return table if A.shape[0] == B.shape[0] == 10 else super().__call__(A, B)

    X = points(10, 3)
    table = rbf()(X, X)
    before, kernel = table.copy(), Stored(rbf().function)
    LowRankMap.fit(kernel, X, 10).transform(X)
    assert np.array_equal(table, before)


@pytest.mark.parametrize("basis", ["random", "k-means"])
def test_the_same_generator_gives_the_same_basis(basis):
    X = points(100, 3)
    first, again, other = (LowRankMap.fit(rbf(), X, 10, basis, np.random.default_rng(s)) for s in (3, 3, 4))
    assert first.ids.tolist() == again.ids.tolist() != other.ids.tolist()
    assert np.array_equal(first.transform(X), again.transform(X))
    default = [LowRankMap.fit(rbf(), X, 10, basis).ids.tolist() for _ in range(2)]
    assert default[0] == default[1]


def test_random_rows_are_drawn_anew_from_one_generator_and_never_twice():
    X, rng = points(50, 3), np.random.default_rng(0)
    first, second = (LowRankMap.fit(rbf(), X, 40, "random", rng).ids for _ in range(2))
    assert len(set(first)) == len(set(second)) == 40
    assert set(first) != set(second)


INDEFINITE = {
    "negative diagonal": Kernel(lambda products, a, b: -1.0 - products),
    "sigmoid": Kernel(lambda products, a, b: np.tanh(2.0 * products + 1.0)),
    "a distance": Kernel(lambda products, a, b: 1.0 + np.sqrt(np.maximum(a + b - 2 * products, 0.0))),
}


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("name", INDEFINITE)
def test_an_indefinite_kernel_is_refused(name, basis):
    with pytest.raises(ValueError, match=r"not positive semi-definite: .* choose a kernel that is"):
        LowRankMap.fit(INDEFINITE[name], points(30, 3), 20, basis)


def test_rounding_does_not_make_a_kernel_indefinite():
    noise = np.random.default_rng(0).normal(size=(50, 50))
    noisy = rbf(0.01)
    clean = noisy.function
    noisy.function = lambda products, a, b: clean(products, a, b) + 1e-10 * noise[: len(products), : products.shape[1]]
    X = points(50, 3)
    features = LowRankMap.fit(noisy, X, 50).transform(X)
    assert features @ features.T == pytest.approx(rbf(0.01)(X, X), abs=1e-7)


def test_an_indefinite_kernel_in_float32_is_told_from_rough_values():
    with pytest.raises(ValueError, match="float32 may be too rough"):
        LowRankMap.fit(Kernel(INDEFINITE["sigmoid"].function, np.float32), points(30, 3), 20)


@pytest.mark.parametrize("basis", BASES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(value, basis):
    kernel = Kernel(lambda products, a, b: np.where(products > 0.5, value, products))
    with pytest.raises(ValueError, match=f"kernel gave {value}"):
        LowRankMap.fit(kernel, points(30, 3), 20, basis)


def test_values_that_are_not_finite_are_refused_in_transform():
    X = points(30, 3)
    low_rank = LowRankMap.fit(rbf(), X, 20)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match="kernel gave nan"):
        low_rank.transform(X)


def test_k_means_refuses_rows_that_are_not_finite():
    X = points(30, 3)
    X[17, 1] = np.nan
    with pytest.raises(ValueError, match="X holds values that are not finite"):
        LowRankMap.fit(rbf(), X, 20, "k-means")


@pytest.mark.parametrize("basis", BASES)
def test_a_kernel_that_is_zero_is_refused(basis):
    with pytest.raises(ValueError, match="kernel is zero for all basis rows"):
        LowRankMap.fit(linear(), np.zeros((5, 3)), 2, basis)


@pytest.mark.parametrize("basis", BASES)
def test_more_components_than_rows_mean_all_rows(basis):
    X = points(9, 3)
    assert sorted(LowRankMap.fit(rbf(), X, 1000, basis).ids) == list(range(9))


@pytest.mark.parametrize("n_components", [0, -3, 2.0, "5", True, None])
def test_n_components_must_be_a_positive_integer(n_components):
    with pytest.raises(ValueError, match="n_components must be an integer ≥ 1, found"):
        LowRankMap.fit(rbf(), points(9, 3), n_components)


def test_bad_arguments_are_named():
    X = points(9, 3)
    with pytest.raises(ValueError, match=r"basis must be one of 'random', 'k-means', 'pivoted', found 'kmeans'"):
        LowRankMap.fit(rbf(), X, 3, "kmeans")
    with pytest.raises(ValueError, match=r"rng must be a numpy.random.Generator or None, found 0"):
        LowRankMap.fit(rbf(), X, 3, rng=0)
    with pytest.raises(ValueError, match="X has no rows"):
        LowRankMap.fit(rbf(), X[:0], 3)
    with pytest.raises(ValueError, match=r"kernel gave values of shape \(1, 3\); expected \(3, 3\)"):
        LowRankMap.fit(Kernel(lambda products, a, b: products[:1]), X, 3)
    low_rank = LowRankMap.fit(rbf(), X, 3)
    with pytest.raises(ValueError, match="dtype must be float32 or float64, found int64"):
        low_rank.transform(X, np.int64)
    with pytest.raises(ValueError, match="block_bytes must be an integer ≥ 1, found 0"):
        low_rank.transform(X, block_bytes=0)
    with pytest.raises(ValueError, match="X has 2 features but the basis has 3"):
        low_rank.transform(X[:, :2])
    for coef in (np.ones((2, 4)), np.ones(3)):
        with pytest.raises(ValueError, match=r"coef has shape .*; expected \(labels, 3\)"):
            low_rank.fold(coef)


@pytest.mark.parametrize("rank", [3, 40])
def test_features_of_a_matrix_have_its_values_as_products(rank):
    rows = np.random.default_rng(rank).normal(size=(40, rank))
    values = rows @ rows.T
    features = features_of(values.copy())
    assert features.shape == (40, rank)
    np.testing.assert_allclose(features @ features.T, values, atol=1e-11 * values.max())


def test_features_of_an_indefinite_matrix_are_refused():
    with pytest.raises(ValueError, match="not positive semi-definite"):
        features_of(np.diag([1.0, -1.0]))
