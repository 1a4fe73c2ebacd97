"""Feature matrices as the core takes them: CSR or dense, once, without a copy where the caller's arrays serve."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core

_INT32_MAX = np.iinfo(np.int32).max


def core_features(X: Any) -> _core.Features:
    """Return a core view of a CSR or dense matrix that was already validated.

    CSR values that are all 1 are not stored; float64 values that float32 holds exactly are stored as such.
    """
    if not sp.issparse(X):
        dtype = np.float32 if X.dtype == np.float32 else np.float64
        return _core.Features(np.ascontiguousarray(X, dtype=dtype))
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    if X.shape[1] > _INT32_MAX:
        raise ValueError(f"X has {X.shape[1]} features; at most {_INT32_MAX} are supported.")
    narrow, wide = _compact_values(X.data)
    return _core.Features(X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False), narrow, wide, X.shape[1])


def _compact_values(values: NDArray[Any]) -> tuple[NDArray[np.float32] | None, NDArray[np.float64] | None]:
    if np.all(values == 1):
        return None, None
    with np.errstate(over="ignore"):
        narrow = values.astype(np.float32, copy=False)
    if np.array_equal(narrow, values):
        return narrow, None
    return None, values.astype(np.float64, copy=False)
