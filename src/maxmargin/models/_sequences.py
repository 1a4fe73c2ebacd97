"""Ragged sequences as one stacked matrix."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin._feature_rows import as_features, check_scale, first_not_finite
from maxmargin.problems.base import IntArray


class Sequences:
    """Feature rows of many sequences, stacked: sequence i has the rows offsets[i] … offsets[i + 1] − 1.

    Parameters
    ----------
    rows : CSR or dense matrix
        The rows of all sequences, one below the other.
    lengths : array of int
        How many rows each sequence has, at least one.

    Examples
    --------
    >>> import numpy as np
    >>> from maxmargin.models import Sequences
    >>> data = Sequences(np.ones((5, 2)), [3, 2])
    >>> len(data), data[1].shape
    (2, (2, 2))
    """

    def __init__(self, rows: Any, lengths: Any) -> None:
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or np.any(lengths < 1):
            empty = int(np.argmax(lengths < 1)) if lengths.ndim == 1 else 0
            raise ValueError(f"X[{empty}] is empty: every sequence needs at least one token.")
        self.rows: Any = as_features(rows, "rows")
        if lengths.sum() != self.rows.shape[0]:
            raise ValueError(f"lengths add up to {lengths.sum()} but there are {self.rows.shape[0]} rows.")
        self.offsets: IntArray = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> Any:
        return self.rows[self.offsets[i] : self.offsets[i + 1]]

    @property
    def lengths(self) -> IntArray:
        """How many rows each sequence has."""
        return np.diff(self.offsets)

    @classmethod
    def stack(cls, matrices: Sequence[Any]) -> Sequences:
        """Stack a list of matrices, all sparse or all dense, with the same number of columns."""
        if isinstance(matrices, (str, bytes, Mapping)) or not isinstance(matrices, Iterable):
            raise TypeError(f"X is of type {type(matrices).__name__}; expected a list of matrices, or Sequences.")
        given = list(matrices)
        if not given:
            raise ValueError("X is empty: at least one sequence is needed.")
        sparse = [bool(sp.issparse(matrix)) for matrix in given]
        if any(sparse) and not all(sparse):
            odd = sparse.index(not sparse[0])
            raise TypeError(
                f"X[0] and X[{odd}] are of different kinds: all matrices must be dense, or all of them sparse."
            )
        parts = [_part(matrix, f"X[{i}]") for i, matrix in enumerate(given)]
        d = parts[0].shape[1]
        for i, part in enumerate(parts):
            if part.shape[1] != d:
                raise ValueError(
                    f"X[{i}] has {part.shape[1]} columns but X[0] has {d}: all sequences need the same features."
                )
        rows = sp.vstack(parts, format="csr") if sparse[0] else np.concatenate(parts)
        return cls(rows, [part.shape[0] for part in parts])

    def place(self, row: int) -> tuple[int, int]:
        """Return the sequence that a stacked row belongs to, and the row's number in it."""
        i = int(np.searchsorted(self.offsets, row, side="right")) - 1
        return i, row - int(self.offsets[i])

    def check_values(self) -> None:
        """Refuse features that are not finite, or so large that the products of two of them would overflow."""
        found = first_not_finite(self.rows)
        if found is not None:
            i, t = self.place(found[0])
            raise ValueError(f"X[{i}] holds {found[1]} in row {t}: features must be finite.")
        check_scale(self.rows)


def _part(matrix: Any, name: str) -> Any:
    """Return the matrix of one sequence; a list without a token in it is empty rather than misshapen."""
    is_sparse: bool = sp.issparse(matrix)
    if not is_sparse and hasattr(matrix, "__len__") and len(matrix) == 0:
        raise ValueError(f"{name} is empty: every sequence needs at least one token.")
    part = as_features(matrix, name)
    if part.shape[0] == 0:
        raise ValueError(f"{name} is empty: every sequence needs at least one token.")
    return part
