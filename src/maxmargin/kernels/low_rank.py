"""Low-rank features of a kernel (Joachims, Finley and Yu 2009, section 3.3).

    φ̂(x) = L⁻¹ (k(b₁, x) … k(b_k, x)),    k(bᵢ, bⱼ) = (L Lᵀ)ᵢⱼ

The product φ̂(x)·φ̂(x') is the kernel after projection on the span of the basis points: exact where one of the two is
a basis point, and never more than k(x, x) on the diagonal.  A linear model on φ̂ is a kernel expansion over the basis.

Nothing is added to the diagonal: a basis point that depends on the others is left out, which changes no product.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.linalg.blas import get_blas_funcs
from scipy.linalg.lapack import dpstrf

from maxmargin._parameters import is_integer
from maxmargin.kernels._k_means import rows_near_centres

BASES = ("random", "k-means", "pivoted")

# Both are shares of the largest diagonal entry.  A pivot below the first is taken for rounding of the kernel's values:
# noise in them is divided by the root of the smallest pivot.  What is left below minus the second is not rounding.
_SMALLEST_PIVOT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
_MOST_NEGATIVE = {np.dtype(np.float64): 1e-6, np.dtype(np.float32): 1e-3}


class _Kernel(Protocol):
    def __call__(self, A: Any, B: Any, /) -> NDArray[Any]: ...
    def diagonal(self, A: Any, /) -> NDArray[Any]: ...


def check_basis(basis: Any) -> None:
    """Refuse what is no way to choose a basis."""
    if not isinstance(basis, str) or basis not in BASES:
        raise ValueError(f"basis must be one of {', '.join(map(repr, BASES))}, found {basis!r}.")


class LowRankMap:
    """Features whose products are the kernel projected on the span of the basis, some rows of X.

        φ̂(x) = L⁻¹ k(basis, x),    k(basis, basis) = L Lᵀ

    Attributes
    ----------
    basis : ndarray or CSR matrix of shape (n_components, features)
        The basis points: rows of the X given to `fit`, none of them dependent on the others under the kernel.
    ids : ndarray of int of shape (n_components,)
        Which rows of that X they are.
    n_components : int
        How many features there are: the numerical rank of the kernel on the basis, at most what was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.kernels.low_rank import LowRankMap
    >>> class Quadratic:
    ...     def __call__(self, A, B):
    ...         return (A @ B.T) ** 2
    ...     def diagonal(self, A):
    ...         return np.sum(A * A, axis=1) ** 2
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> low_rank = LowRankMap.fit(Quadratic(), X, 10)
    >>> features = low_rank.transform(X)
    >>> features.shape  # the square of two variables has three terms
    (20, 3)
    >>> bool(np.allclose(features @ features.T, (X @ X.T) ** 2))
    True
    """

    def __init__(self, kernel: _Kernel, basis: Any, ids: NDArray[np.intp], factor: NDArray[Any], dtype: Any) -> None:
        self.kernel, self.basis, self.ids = kernel, basis, ids
        # Column-major, so that the triangular solves take it without a copy.
        self._factor = np.asfortranarray(factor)
        self._dtype = dtype  # of the kernel's values

    @property
    def n_components(self) -> int:
        return len(self.ids)

    @classmethod
    def fit(
        cls, kernel: _Kernel, X: Any, n_components: int, basis: str = "random", rng: np.random.Generator | None = None
    ) -> LowRankMap:
        """Choose the basis among the rows of X and factor the kernel on it.

        Parameters
        ----------
        kernel : callable
            ``kernel(A, B)`` gives the (rows of A × rows of B) values, ``kernel.diagonal(A)`` those of each row with
            itself.  Where values are in float32, more basis points count as dependent than in float64.
        X : ndarray or CSR matrix of shape (n, features)
            The rows to choose from.
        n_components : int
            How many rows to choose; more than n means all.  Dependent ones are left out afterwards.
        basis : {"random", "k-means", "pivoted"}, default="random"
            "random" draws rows.  "k-means" takes the rows nearest to the centres of clusters (of at most 20,000 rows
            drawn at random), usually with a smaller error on average.  "pivoted" takes, one after the other, the row
            that the basis so far describes worst: the smallest error of the worst row, but outliers first, so that
            the average may be worse than at random.  It needs O(n k²) time and 8 n k bytes, and stops at the rank.
        rng : numpy.random.Generator, optional
            Chooses the rows; the same state gives the same basis.  "pivoted" draws nothing.
        """
        if not is_integer(n_components, 1):
            raise ValueError(f"n_components must be an integer ≥ 1, found {n_components!r}.")
        check_basis(basis)
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise ValueError(f"rng must be a numpy.random.Generator or None, found {rng!r}.")
        if X.shape[0] == 0:
            raise ValueError("X has no rows: the basis needs at least one.")
        ids = _choose(kernel, X, min(int(n_components), X.shape[0]), basis, rng or np.random.default_rng(0))
        rows = X[ids]
        values = _values(kernel, rows, rows)
        kept, factor = _factorize(values)
        return cls(kernel, rows[kept], ids[kept], factor, values.dtype)

    def transform(
        self, X: Any, dtype: DTypeLike = np.float64, block_bytes: int = 1 << 26, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """Return the features of every row.

        Parameters
        ----------
        X : ndarray or CSR matrix of shape (n, features)
            The rows.
        dtype : float64 or float32, default=float64
            The type of the features returned; the work is done in float32 where the kernel's values are so too.
        block_bytes : int, default=64 MB
            Rows are taken in blocks that need about this much memory beside the features returned.
        out : ndarray of shape (n, n_components), optional
            Where to put them, in its own type.

        Returns
        -------
        ndarray of shape (n, n_components)
        """
        dtype = dtype if out is None else out.dtype
        if np.dtype(dtype) not in _SMALLEST_PIVOT:
            raise ValueError(f"dtype must be float32 or float64, found {np.dtype(dtype)}.")
        if not is_integer(block_bytes, 1):
            raise ValueError(f"block_bytes must be an integer ≥ 1, found {block_bytes!r}.")
        if X.shape[1] != self.basis.shape[1]:
            raise ValueError(f"X has {X.shape[1]} features but the basis has {self.basis.shape[1]}.")
        features = np.empty((X.shape[0], self.n_components), dtype) if out is None else out
        # In float32 only behind a kernel in float32: smaller pivots would blow its rounding up.
        factor = self._factor.astype(np.result_type(features, self._dtype), copy=False)
        size = max(1, block_bytes // (2 * 8 * self.n_components))
        for start in range(0, X.shape[0], size):
            rows = slice(start, start + size)
            features[rows] = _solve(factor, _values(self.kernel, X[rows], self.basis))
        return features

    def fold(self, coef: NDArray[Any]) -> NDArray[Any]:
        """Return the coefficients of basis points that score as weights of features do, so that L is not needed.

            transform(X) @ coef.T = kernel(X, basis) @ fold(coef).T

        Parameters
        ----------
        coef : ndarray of shape (labels, n_components)
            The weights of the features; what is returned has the same shape.
        """
        coef = np.asarray(coef)
        if coef.ndim != 2 or coef.shape[1] != self.n_components:
            raise ValueError(f"coef has shape {coef.shape}; expected (labels, {self.n_components}).")
        return _solve(self._factor, coef, transposed=True)


def _solve(factor: NDArray[Any], rows: NDArray[Any], transposed: bool = False) -> NDArray[Any]:
    """Return L⁻¹ or L⁻ᵀ times every row."""
    # A copy, because the solve works in place and the rows are the caller's or the kernel's own.
    columns = np.array(rows, factor.dtype, order="C").T
    solve = get_blas_funcs("trsm", (factor,))
    solved: NDArray[Any] = solve(1.0, factor, columns, lower=1, trans_a=int(transposed), overwrite_b=1)
    return solved.T


def _values(kernel: _Kernel, A: Any, B: Any) -> NDArray[Any]:
    return _checked(kernel(A, B), (A.shape[0], B.shape[0]))


def _checked(values: NDArray[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Return values of a kernel in float32 or float64, refusing those that are not finite."""
    values = np.asarray(values)
    if values.shape != shape:
        raise ValueError(f"kernel gave values of shape {values.shape}; expected {shape}.")
    values = values.astype(np.float32 if values.dtype == np.float32 else np.float64, copy=False)
    is_finite = np.isfinite(values)
    if not is_finite.all():
        found = values.flat[int(np.argmin(is_finite))]
        raise ValueError(f"kernel gave {found} for two rows of X: values must be finite; check or scale the features.")
    return values


def _factorize(values: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[Any]]:
    """Return the rows on which a positive semi-definite matrix has full rank, and its lower factor on them."""
    dtype, diagonal = values.dtype, np.diagonal(values).astype(np.float64)
    scale = _scale(diagonal, dtype)
    # A copy even of float64: the factor is written over it.
    factor, order, rank = _pivoted_factor(np.array(values, np.float64, order="C"), _SMALLEST_PIVOT[dtype] * scale)
    left = diagonal[order[rank:]] - np.einsum("ij,ij->i", factor[rank:, :rank], factor[rank:, :rank])
    _check_semidefinite(left, scale, dtype)
    return order[:rank], np.tril(factor[:rank, :rank])


def features_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a row of features for each row of a kernel matrix, which is overwritten: their products are its values.

    There are as many as its numerical rank: what products are off by is rounding.
    """
    scale = _scale(np.diagonal(values), values.dtype)
    factor, order, rank = _pivoted_factor(values, _SMALLEST_PIVOT[values.dtype] * scale)
    rows = np.empty((len(values), rank))
    rows[order] = np.tril(factor[:, :rank])
    return rows


def _pivoted_factor(values: NDArray[np.float64], tol: float) -> tuple[NDArray[np.float64], NDArray[np.intp], int]:
    """Return the lower factor of a symmetric matrix, which is overwritten, the order of its rows in it, and their rank."""
    # The transpose is column-major as LAPACK wants it.
    factor, order, rank, _ = dpstrf(values.T, tol=tol, lower=1, overwrite_a=1)
    return factor, order.astype(np.intp) - 1, int(rank)


def _scale(diagonal: NDArray[Any], dtype: np.dtype[Any]) -> float:
    """Return the largest k(x, x), by which pivots are measured."""
    scale = float(np.abs(diagonal).max())
    _check_semidefinite(diagonal, scale, dtype)
    if scale == 0.0:
        raise ValueError("kernel is zero for all basis rows: check X for rows of zeros, or try basis='pivoted'.")
    return scale


def _check_semidefinite(left: NDArray[Any], scale: float, dtype: np.dtype[Any]) -> None:
    lowest = float(left.min(initial=0.0))
    if lowest < -_MOST_NEGATIVE[dtype] * scale:
        rough = "  Values in float32 may be too rough: give X in float64 or scale it." if dtype == np.float32 else ""
        raise ValueError(
            f"kernel is not positive semi-definite: a row of X less its projection on others has the squared length "
            f"{lowest:.3g} (largest k(x, x): {scale:.3g}); choose a kernel that is, such as a radial one, or a "
            f"polynomial one with gamma > 0 and coef0 ≥ 0.{rough}"
        )


def _choose(kernel: _Kernel, X: Any, k: int, basis: str, rng: np.random.Generator) -> NDArray[np.intp]:
    if basis == "pivoted":
        return _pivoted_rows(kernel, X, k)
    if k == X.shape[0]:
        return np.arange(k)
    return rows_near_centres(X, k, rng) if basis == "k-means" else rng.choice(X.shape[0], k, replace=False)


def _pivoted_rows(kernel: _Kernel, X: Any, k: int) -> NDArray[np.intp]:
    """Return the pivots of a Cholesky factor of the kernel on all rows, formed column by column."""
    dtype = _values(kernel, X[:1], X[:1]).dtype
    left = _checked(kernel.diagonal(X), (X.shape[0],)).astype(np.float64)
    scale = _scale(left, dtype)
    # Columns beyond the rank are never written and so take no memory.
    factor = np.empty((X.shape[0], k), order="F")
    ids: list[int] = []
    while len(ids) < k:
        pivot, j = int(np.argmax(left)), len(ids)
        if left[pivot] <= _SMALLEST_PIVOT[dtype] * scale:
            break
        column = factor[:, j]
        column[:] = _values(kernel, X, X[[pivot]])[:, 0]
        column -= factor[:, :j] @ factor[pivot, :j]
        column /= np.sqrt(left[pivot])
        left -= column * column
        left[pivot] = 0.0
        _check_semidefinite(left, scale, dtype)
        ids.append(pivot)
    return np.array(ids, np.intp)
