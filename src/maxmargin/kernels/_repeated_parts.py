"""Columns that take few values together, such as one-hot codes of categories.

Their share of the distance of two rows is one of few numbers, which are computed once: a row keeps the number of its values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# A column is tried if so many rows show no more than so many values of it.
_TRIED_ROWS, _MOST_VALUES = 1000, 8
# It pays where so many columns at least are replaced by so few codes that the table of their distances stays in a near cache.
_FEWEST_COLUMNS, _MOST_CODES = 8, 1024
# A code should stand for so many rows.
_ROWS_PER_CODE = 8


@dataclass(frozen=True)
class RepeatedParts:
    """The rows without the columns that repeat, and what these were.

    Attributes
    ----------
    rest : ndarray
        The other columns.
    codes : ndarray of int32
        For each row, which values it has in the columns left out.
    distances2 : ndarray of shape (n_codes, n_codes)
        The squared distances of those values.
    """

    rest: NDArray[Any]
    codes: NDArray[np.int32]
    distances2: NDArray[np.float64]


def repeated_parts(X: Any) -> RepeatedParts | None:
    """Return dense rows with their repeated parts as codes, or None where that does not pay."""
    is_sparse: bool = sp.issparse(X)
    if is_sparse or X.shape[1] < _FEWEST_COLUMNS or X.shape[0] < _ROWS_PER_CODE:
        return None
    sample = np.sort(X[:_TRIED_ROWS], axis=0)
    n_values = 1 + np.count_nonzero(np.diff(sample, axis=0), axis=0)
    is_tried = n_values <= _MOST_VALUES
    if np.count_nonzero(is_tried) < _FEWEST_COLUMNS:
        return None
    tried = np.ascontiguousarray(X[:, is_tried])
    # Equal parts have equal projections; different ones hardly ever, and that is looked for.
    projections = tried.astype(np.float64) @ np.random.default_rng(0).normal(size=tried.shape[1])
    _, first, codes = np.unique(projections, return_index=True, return_inverse=True)
    if len(first) > min(_MOST_CODES, X.shape[0] // _ROWS_PER_CODE) or not np.array_equal(tried[first][codes], tried):
        return None
    values = tried[first].astype(np.float64)
    return RepeatedParts(np.ascontiguousarray(X[:, ~is_tried]), codes.astype(np.int32), _distances2(values))


def _distances2(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared distances of all rows, column by column: no difference is lost to rounding."""
    total = np.zeros((len(values), len(values)))
    for column in values.T:
        total += (column[:, None] - column) ** 2
    return total
