"""Feature matrices as the core takes them: CSR or dense, once, without a copy where the caller's arrays serve."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core

_INT32_MAX = np.iinfo(np.int32).max

# Products of two features, summed over examples and multiplied by C, must stay within double precision.
LARGEST_FEATURE = 1e100
# So must losses and their squares, which are what a dual is made of.
SMALLEST_LOSS, LARGEST_LOSS = 1e-100, 1e100


def check_places(X: Any, name: str = "X") -> None:
    """Refuse a sparse matrix whose arrays point outside of it: SciPy would read or write whatever lies there."""
    is_sparse: bool = sp.issparse(X)
    if not is_sparse:
        return
    try:
        if X.format == "coo":
            for axis, (places, length) in enumerate(zip(X.coords, X.shape, strict=True)):
                if places.size and not 0 <= places.min() <= places.max() < length:
                    raise ValueError(f"a number of axis {axis} is not below {length}")
        elif hasattr(X, "check_format"):
            X.check_format(full_check=True)
    except ValueError as error:
        raise ValueError(f"{name} is no valid sparse matrix: {error}.") from error


def as_array(values: ArrayLike, name: str, expected: str) -> NDArray[Any]:
    """Return values as an array, or say whose rows have different lengths, and what is expected of them."""
    try:
        return np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; expected {expected}.") from None


def as_numbers(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Return values as float64, or say whose they are."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("they are complex")
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must hold real numbers: {str(error).rstrip('.')}.") from None


def check_losses(values: NDArray[np.float64], name: str) -> None:
    """Refuse losses, or weights that they are multiplied by, that are not 0 and so small or large that their squares are."""
    is_bad = (values != 0.0) & ~((values >= SMALLEST_LOSS) & (values <= LARGEST_LOSS))
    if is_bad.any():
        found = values[is_bad].ravel()[0]
        raise ValueError(
            f"{name} holds {found:g}: expected 0 or a number between {SMALLEST_LOSS:g} and {LARGEST_LOSS:g}."
        )


def as_features(X: Any, name: str = "X") -> Any:
    """Return a matrix of real numbers, dense in float32 or float64, or CSR; its values are not looked at."""
    check_places(X, name)
    is_sparse: bool = sp.issparse(X)
    try:
        matrix: Any = X if is_sparse else np.asarray(X)
    except ValueError:
        raise ValueError(f"{name} has rows of different lengths; expected a matrix.") from None
    if matrix.ndim != 2:
        raise ValueError(f"{name} has shape {matrix.shape}; expected a matrix.")
    if matrix.dtype == object:
        try:
            matrix = matrix.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(f"{name} must hold numbers: {error}.") from None
    if matrix.dtype.kind not in "biuf":
        raise TypeError(f"{name} holds values of type {matrix.dtype}; expected real numbers.")
    # Small integers in a CSR matrix stay as they are: the core stores them in float32, or not at all where they are 1.
    is_compact = is_sparse and matrix.dtype.kind in "biu" and matrix.dtype.itemsize <= 4
    if matrix.dtype not in (np.float32, np.float64) and not is_compact:
        matrix = matrix.astype(np.float64)
    if is_sparse and matrix.format != "csr" and matrix.dtype.itemsize < 4:
        # Entries of one place are added up: sums may leave a type of few bits.
        matrix = matrix.astype(np.float64)
    return matrix.tocsr() if is_sparse else matrix


def check_values(X: Any) -> None:
    """Refuse features that are not finite, or so large that the products of two of them would overflow."""
    found = first_not_finite(X)
    if found is not None:
        row, value = found
        raise ValueError(f"X[{row}] holds {value}: features must be finite.")
    check_scale(X)


def first_not_finite(X: Any) -> tuple[int, float] | None:
    """Return the row and the value of the first entry that is not finite, or None."""
    largest = _largest(X)
    if np.isfinite(largest):
        return None
    is_sparse: bool = sp.issparse(X)
    values = X.data if is_sparse else X
    bad = int(np.argmin(np.isfinite(values)))
    row = int(np.searchsorted(X.indptr, bad, side="right")) - 1 if is_sparse else bad // X.shape[1]
    return row, float(values.flat[bad])


def check_scale(X: Any, name: str = "X") -> None:
    """Refuse features so large that the products of two of them would overflow."""
    largest = _largest(X)
    if largest > LARGEST_FEATURE:
        raise ValueError(
            f"{name} holds values up to {largest:.3g}, whose products leave double precision: scale the features."
        )


def _largest(X: Any) -> float:
    """Return the largest absolute value, NaN where there is one: two passes and no temporary array."""
    is_sparse: bool = sp.issparse(X)
    values = X.data if is_sparse else X
    return float(np.maximum(-float(values.min()), float(values.max()))) if values.size else 0.0


def core_features(X: Any) -> _core.Features:
    """Return a core view of a CSR or dense matrix that was already validated.

    CSR values that are all 1 are not stored; float64 values that float32 holds exactly are stored as such.
    """
    is_sparse: bool = sp.issparse(X)
    if not is_sparse:
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        return _core.Features(np.ascontiguousarray(X, dtype=dtype))
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.shape[1] > _INT32_MAX:
        raise ValueError(f"X has {X.shape[1]} features; at most {_INT32_MAX} are supported.")
    narrow, wide = _compact_values(X.data)
    # The core keeps pointers into these arrays: they must be contiguous already, not copied on the way.
    indptr, indices = np.ascontiguousarray(X.indptr, np.int64), np.ascontiguousarray(X.indices, np.int32)
    return _core.Features(indptr, indices, narrow, wide, X.shape[1])


def fits_float(X: Any) -> bool:
    """Return whether scores of these features can be formed in float32: none is beyond what it and the weights can hold."""
    return _largest(X) < 1e15


def column_spread(X: Any, sample: NDArray[np.int64]) -> float:
    """Return how many times longer the longest column is than the shortest that is not 0, by some rows; 1 where all are 0."""
    is_sparse: bool = sp.issparse(X)
    rows = X.tocsr()[sample] if is_sparse else X[sample]
    squares = rows.multiply(rows).sum(axis=0) if is_sparse else np.einsum("ij,ij->j", rows, rows, dtype=np.float64)
    lengths = np.sqrt(np.asarray(squares, np.float64).ravel())
    lengths = lengths[lengths > 0.0]
    return float(lengths.max() / lengths.min()) if len(lengths) else 1.0


def _compact_values(values: NDArray[Any]) -> tuple[NDArray[np.float32] | None, NDArray[np.float64] | None]:
    if np.all(values == 1):
        return None, None
    with np.errstate(over="ignore"):
        narrow = np.ascontiguousarray(values, np.float32)
    if np.array_equal(narrow, values):
        return narrow, None
    return None, np.ascontiguousarray(values, np.float64)
