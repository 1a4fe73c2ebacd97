"""Products with kernel matrices that are not stored, and blocks of them that are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_features, core_features
from maxmargin.kernels._repeated_parts import repeated_parts
from maxmargin.kernels.kernel import Kernel

FloatArray = NDArray[np.float64]

# Sparse rows are written out where that takes at most so much memory and few entries more: dense products are faster then.
_DENSE_BYTES = 1e9
_DENSE_SHARE = 0.08
# Up to so many rows double precision costs nothing that counts.
DOUBLE_ROWS = 2000
# The centre of all rows is taken from so many at most.
_CENTRE_ROWS = 4096
# A matrix is compared with its transpose so many rows at a time.
_COMPARED_ROWS = 128
# Functions written in Python are asked for blocks of at most so many values.
_BLOCK_VALUES = 4_000_000


@dataclass(frozen=True)
class Coefficients:
    """Coefficients of some points: those of point k have numbers ``starts[k]`` to ``starts[k + 1]``."""

    points: NDArray[np.int64]
    starts: NDArray[np.int64]
    labels: NDArray[np.int32]
    values: FloatArray

    @classmethod
    def of(cls, entries: NDArray[np.int64], values: FloatArray, stride: int) -> Coefficients:
        """Return coefficients that are given at places ``point * stride + label``, in their order."""
        owners = entries // stride
        points, starts = np.unique(owners, return_index=True)
        labels = (entries - owners * stride).astype(np.int32)
        return cls(points, np.append(starts, len(entries)).astype(np.int64), labels, np.ascontiguousarray(values))

    def moved(self, places: NDArray[np.int64]) -> Coefficients:
        """Return the same coefficients for points that stand elsewhere: point j at ``places[j]``."""
        points = places[self.points]
        order = np.argsort(points)
        lengths = np.diff(self.starts)[order]
        starts = np.append(0, np.cumsum(lengths))
        numbers = np.arange(len(self.values)) + np.repeat(self.starts[:-1][order] - starts[:-1], lengths)
        return Coefficients(points[order], starts, self.labels[numbers], self.values[numbers])


class Product(Protocol):
    """K(rows, points) as something that multiplies."""

    def add(self, coefficients: Coefficients, stride: int, out: FloatArray, n_jobs: int) -> None:
        """Add Σ k(row, point) · coefficient to ``out``, at places ``row * stride + label``."""

    @property
    def n_computed(self) -> int:
        """How many kernel values were computed."""


class NativeProduct:
    """A product whose kernel the core computes, in float32 or float64.

    Values of the RBF kernel below ``negligible`` may count as 0. Dense rows are then put in an order in which neighbours are
    alike, so that whole stretches of such values are known without a look at them; it does not show outside.
    """

    def __init__(
        self,
        kernel: Kernel,
        rows: Any,
        points: Any = None,
        *,
        is_single: bool,
        cache_bytes: float = 0.0,
        negligible: float = 0.0,
    ) -> None:
        parts = repeated_parts(rows) if kernel.name == "rbf" and points is None else None
        if parts is not None:
            rows = parts.rest
        codes, distances2 = (None, None) if parts is None else (parts.codes, parts.distances2)
        rows, points = _without_empty_columns(rows, points)
        is_sparse: bool = sp.issparse(rows)
        # Distances do not change when all points move: near their centre they keep most digits.
        centre = None if is_sparse or kernel.name != "rbf" else centre_of(rows if points is None else points)
        name, gamma = kernel.name, float(kernel.gamma)
        assert isinstance(name, str)
        other = None if points is None else core_features(points)

        def core(rows: Any, codes: Any, negligible: float) -> _core.KernelProduct:
            own = core_features(rows)
            return _core.KernelProduct(
                own,
                other,
                name,
                gamma,
                kernel.coef0,
                kernel.degree,
                centre,
                is_single,
                cache_bytes,
                codes,
                distances2,
                negligible,
            )

        self._constant = kernel.constant
        self._order: NDArray[np.int64] | None = None
        if negligible > 0.0 and kernel.name == "rbf" and points is None and not is_sparse:
            self._order = order = _core.order_alike(core_features(rows), codes)
            self._places = np.argsort(order)
            self.core = core(rows[order], None if codes is None else codes[order], negligible)
            if self.core.leaves_out:
                return
            self._order = None
        self.core = core(rows, codes, 0.0)

    @property
    def n_computed(self) -> int:
        """How many kernel values were computed."""
        return self.core.n_computed

    def add(self, coefficients: Coefficients, stride: int, out: FloatArray, n_jobs: int) -> None:
        """Add the product to ``out``."""
        if self._order is None:
            self._add(coefficients, stride, out, n_jobs)
        else:
            ordered = np.zeros_like(out)
            self._add(coefficients.moved(self._places), stride, ordered, n_jobs)
            out.reshape(-1, stride)[self._order] += ordered.reshape(-1, stride)
        _add_constant(self._constant, coefficients, stride, out)

    def _add(self, c: Coefficients, stride: int, out: FloatArray, n_jobs: int) -> None:
        self.core.add(c.points, c.starts, c.labels, c.values, stride, out, n_jobs)

    def matrix(self, points: NDArray[np.int64], first: int, end: int, n_jobs: int = 1) -> Any:
        """Return K(rows first … end − 1, points)."""
        assert self._order is None, "rows of a matrix are in their own order"
        values: Any = self.core.matrix(points, first, end, n_jobs)
        return values if self._constant == 0.0 else values + values.dtype.type(self._constant)


def _without_empty_columns(rows: Any, points: Any) -> tuple[Any, Any]:
    """Return sparse rows and points with the columns that one of them has an entry in: hashed features have millions without."""
    matrices = [rows] if points is None else [rows, points]
    if not all(bool(sp.issparse(matrix)) for matrix in matrices) or rows.shape[1] <= sum(
        matrix.nnz for matrix in matrices
    ):
        return rows, points
    used = np.unique(np.concatenate([matrix.indices for matrix in matrices]))
    compact = [
        sp.csr_array((matrix.data, np.searchsorted(used, matrix.indices), matrix.indptr), (matrix.shape[0], len(used)))
        for matrix in matrices
    ]
    return compact[0], None if points is None else compact[1]


class PythonProduct:
    """A product whose kernel is a function in Python, or a matrix that was given."""

    def __init__(self, kernel: Kernel, rows: Any, points: Any = None) -> None:
        self._kernel = kernel
        self._rows = rows
        self._points = rows if points is None else points
        self.n_rows = rows.shape[0]
        self.n_computed = 0
        self._stored: NDArray[Any] | None = None

    def can_be_stored(self, n_bytes: float) -> bool:
        """Return whether all values of K(rows, rows) are there as a matrix, or take so much memory at most."""
        is_sparse: bool = sp.issparse(self._rows)
        return (self._kernel.name == "precomputed" and not is_sparse) or 8.0 * self.n_rows * self.n_rows <= n_bytes

    @property
    def is_stored(self) -> bool:
        """Whether all values are there."""
        return self._stored is not None

    def store(self) -> NDArray[Any]:
        """Return all values of K(rows, rows), symmetric, without the kernel's constant; no value is computed again."""
        if self._stored is None:
            everyone = np.arange(self.n_rows)
            if self._kernel.name == "precomputed" and not sp.issparse(self._rows):
                self._stored = np.ascontiguousarray(self._rows)
            else:
                stored = np.empty((self.n_rows, self.n_rows))
                step = max(1, _BLOCK_VALUES // max(self.n_rows, 1))
                for first in range(0, self.n_rows, step):
                    _core.poll()
                    stored[first : first + step] = self._block(slice(first, first + step), everyone)
                self.n_computed += stored.size
                self._stored = stored
        return self._stored

    def add(self, coefficients: Coefficients, stride: int, out: FloatArray, n_jobs: int) -> None:
        """Add the product to ``out``, in blocks of rows."""
        c = coefficients
        if len(c.points) == 0:
            return
        dense = np.zeros((len(c.points), stride))
        dense[np.repeat(np.arange(len(c.points)), np.diff(c.starts)), c.labels] = c.values
        step = max(1, _BLOCK_VALUES // len(c.points))
        table = out.reshape(self.n_rows, stride)
        for first in range(0, self.n_rows, step):
            _core.poll()
            block = self._block(slice(first, first + step), c.points)
            table[first : first + step] += block @ dense
        self.n_computed += self.n_rows * len(c.points)
        _add_constant(self._kernel.constant, c, stride, out)

    def _block(self, rows: slice, points: NDArray[np.int64]) -> FloatArray:
        if self._stored is not None:
            return np.asarray(self._stored[rows][:, points], dtype=np.float64)
        if self._kernel.name == "precomputed":
            is_sparse: bool = sp.issparse(self._rows)
            chosen = self._rows[rows][:, points]
            return np.asarray(chosen.toarray() if is_sparse else chosen, dtype=np.float64)
        return called(self._kernel, self._rows[rows], self._points[points])


def kernel_product(kernel: Kernel, X: Any, *, is_single: bool, cache_bytes: float, negligible: float = 0.0) -> Product:
    """Return K(X, X) as a product; values below ``negligible`` may count as 0."""
    if not kernel.is_native:
        return PythonProduct(kernel, X)
    return NativeProduct(kernel, _best_layout(X), is_single=is_single, cache_bytes=cache_bytes, negligible=negligible)


def cross_product(kernel: Kernel, X: Any, basis: Any, *, is_single: bool = False) -> Product:
    """Return K(X, basis) as a product; for a precomputed kernel X holds its columns of the basis."""
    if kernel.name != "precomputed" and X.shape[1] != basis.shape[1]:
        raise ValueError(f"X has {X.shape[1]} features, but the basis points have {basis.shape[1]}.")
    if not kernel.is_native:
        return PythonProduct(kernel, X, basis)
    rows, points = _same_kind(X, basis)
    return NativeProduct(kernel, rows, points, is_single=is_single)


def part_product(
    kernel: Kernel, X: Any, rows: NDArray[np.int64] | slice, points: NDArray[np.int64], *, is_single: bool
) -> Product:
    """Return the part of K(X, X) that some rows and some points have, as a product."""
    if kernel.name == "precomputed":
        return PythonProduct(kernel, X[rows][:, points])
    if not kernel.is_native:
        return PythonProduct(kernel, X[rows], X[points])
    return cross_product(kernel, _best_layout(X[rows]), _best_layout(X[points]), is_single=is_single)


def kernel_matrix(kernel: Kernel, A: Any, B: Any, n_jobs: int = 1) -> FloatArray:
    """Return K(A, B)."""
    A, B = as_features(A, "A"), as_features(B, "B")
    if A.shape[1] != B.shape[1]:
        raise ValueError(f"A has {A.shape[1]} features and B has {B.shape[1]}.")
    if kernel.name == "precomputed":
        raise ValueError("a precomputed kernel has no function of two matrices.")
    if callable(kernel.name):
        return called(kernel, A, B) + kernel.constant
    rows, points = _same_kind(A, B)
    product = NativeProduct(kernel.for_data(A), rows, points, is_single=False)
    return np.asarray(product.matrix(np.arange(B.shape[0]), 0, A.shape[0], n_jobs))


def called(kernel: Kernel, A: Any, B: Any) -> FloatArray:
    """Return what a kernel written in Python says of two matrices, after checking that it is a matrix of theirs."""
    assert callable(kernel.name)
    # Copies: a function may not change the data, and some that do not still ask for arrays that they could change. In double, or
    # its values would have no more than the digits of float32.
    answer: Any = kernel.name(A.astype(np.float64), B.astype(np.float64))
    is_sparse: bool = sp.issparse(answer)
    values = np.asarray(answer.toarray() if is_sparse else answer, dtype=np.float64)
    if values.shape != (A.shape[0], B.shape[0]):
        raise ValueError(
            f"the kernel returned shape {values.shape} for {A.shape[0]} and {B.shape[0]} rows; expected one value for each pair."
        )
    if not np.all(np.isfinite(values)):
        raise ValueError("the kernel returned a value that is not finite.")
    return values


def check_precomputed(kernel: Kernel, K: Any) -> None:
    """Refuse what cannot be the kernel matrix of training rows."""
    if kernel.name != "precomputed":
        return
    if K.shape[0] != K.shape[1]:
        raise ValueError(
            f"X has shape {K.shape}; a precomputed kernel is a square matrix, training rows × training rows."
        )
    is_sparse: bool = sp.issparse(K)
    difference = float(abs(K - K.T).max()) if is_sparse and K.shape[0] else _asymmetry(K)
    largest = float(abs(K).max()) if K.shape[0] else 0.0
    if difference > 1e-6 * largest:
        raise ValueError(f"X is not symmetric (entries differ by {float(difference):.3g}); a kernel matrix is.")
    diagonal = K.diagonal() if is_sparse else np.diag(K)
    if np.any(diagonal < 0):
        row = int(np.argmax(diagonal < 0))
        raise ValueError(f"X[{row}, {row}] is {diagonal[row]:g}; the diagonal of a kernel matrix is not negative.")


def _asymmetry(K: NDArray[Any]) -> float:
    """Return the largest difference between a dense matrix and its transpose, a few rows at a time."""
    largest = 0.0
    for first in range(0, len(K), _COMPARED_ROWS):
        rows, others = slice(first, first + _COMPARED_ROWS), slice(first, None)
        largest = max(largest, float(np.max(np.abs(K[rows, others] - K[others, rows].T))))
    return largest


def _add_constant(constant: float, c: Coefficients, stride: int, out: FloatArray) -> None:
    if constant != 0.0:
        out.reshape(-1, stride)[:] += constant * np.bincount(c.labels, c.values, stride)


def centre_of(X: Any) -> FloatArray:
    """Return the median of some rows: a mean would follow single ones that are far away from all others."""
    step = -(-X.shape[0] // _CENTRE_ROWS)
    return np.median(X[:: max(step, 1)], axis=0).astype(np.float64) if X.shape[0] else np.zeros(X.shape[1])


def _best_layout(X: Any) -> Any:
    """Return sparse rows densely where their products are faster that way."""
    is_sparse: bool = sp.issparse(X)
    if not is_sparse:
        return X
    n_values = X.shape[0] * X.shape[1]
    is_full = X.nnz > _DENSE_SHARE * n_values and 4.0 * n_values <= _DENSE_BYTES
    return X.toarray() if is_full else X


def _same_kind(A: Any, B: Any) -> tuple[Any, Any]:
    """Return both sparse, or both dense."""
    a_is_sparse: bool = sp.issparse(A)
    b_is_sparse: bool = sp.issparse(B)
    if a_is_sparse == b_is_sparse:
        return A, B
    return (A, sp.csr_array(B)) if a_is_sparse else (sp.csr_array(A), B)
