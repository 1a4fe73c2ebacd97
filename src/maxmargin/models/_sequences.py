"""Ragged sequences as one stacked matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin.problem import IntArray


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
        if lengths.sum() != rows.shape[0]:
            raise ValueError(f"lengths add up to {lengths.sum()} but there are {rows.shape[0]} rows.")
        self.rows = rows.tocsr() if sp.issparse(rows) else rows
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
        lengths = [matrix.shape[0] for matrix in matrices]
        if any(sp.issparse(matrix) for matrix in matrices):
            return cls(sp.vstack([sp.csr_matrix(matrix) for matrix in matrices], format="csr"), lengths)
        return cls(np.concatenate(matrices), lengths)
