"""Scores as a sum over basis points: what a kernel model predicts with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._parameters import is_integer
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.product import Coefficients, cross_product

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Expansion:
    """Scores s_l(x) = Σ_b coef[l, b] · k(x, basis_b) + intercept[l], and the weights that no kernel has.

    Attributes
    ----------
    kernel : Kernel
        k, with γ as a number and without a constant.
    basis : matrix
        The basis points; for a precomputed kernel their numbers among the training rows.
    coef : ndarray of shape (n_labels, n_basis)
        Their coefficients.
    intercept : ndarray of shape (n_labels,)
        Added to all scores of a label.
    table : ndarray
        Weights that no kernel has: those of transitions in chains, in the model's order.
    """

    kernel: Kernel
    basis: Any
    coef: FloatArray
    intercept: FloatArray
    table: FloatArray

    @property
    def size(self) -> int:
        """How many basis points there are."""
        return int(self.coef.shape[1])

    def scores(self, X: Any, n_jobs: int = 1, stride: int | None = None) -> FloatArray:
        """Return the scores of rows × labels, in rows of ``stride`` numbers if given.

        No matrix of all rows × basis points is formed. For a precomputed kernel X holds k(x, training row).
        """
        n_labels = len(self.coef)
        stride = n_labels if stride is None else stride
        out = np.zeros(X.shape[0] * stride)
        if self.size:
            rows = X[:, self.basis] if self.kernel.name == "precomputed" else X
            entries = np.arange(self.size)[:, None] * stride + np.arange(n_labels)
            coefficients = Coefficients.of(entries.ravel(), self.coef.T.ravel(), stride)
            cross_product(self.kernel, rows, self.basis).add(coefficients, stride, out, n_jobs)
        table = out.reshape(-1, stride)
        table[:, :n_labels] += self.intercept
        return table

    def pruned(self) -> Expansion:
        """Return the same scores from fewer points: none with coefficients of 0, and equal points once."""
        kept = np.flatnonzero(np.any(self.coef != 0.0, axis=0))
        coef, basis = self.coef[:, kept], self.basis[kept]
        if self.kernel.name == "precomputed" or len(kept) == 0:
            return replace(self, basis=basis, coef=np.ascontiguousarray(coef))
        first, owner = _distinct_rows(basis)
        merged = np.zeros((len(coef), len(first)))
        np.add.at(merged.T, owner, coef.T)
        alive = np.flatnonzero(np.any(merged != 0.0, axis=0))
        return replace(self, basis=basis[first[alive]], coef=np.ascontiguousarray(merged[:, alive]))

    def reduced(self, n_points: int, n_jobs: int = 1) -> Expansion:
        """Return nearly the same scores from at most ``n_points`` of the basis points.

        They are chosen one after the other, each time the one that brings w nearest, and their coefficients are those of the
        projection of w on their span. With all points the scores stay the same.

        Parameters
        ----------
        n_points : int
            How many points to keep.
        n_jobs : int
            Threads.
        """
        if not is_integer(n_points, 1):
            raise ValueError(f"n_points must be an integer ≥ 1, found {n_points!r}.")
        if self.kernel.name == "precomputed":
            raise ValueError(
                "a precomputed kernel cannot be reduced: the kernel values of its basis points are not known."
            )
        if self.size <= n_points:
            return self
        from maxmargin.kernels._reduction import reduced_basis  # brings scipy.linalg, which nobody else here needs

        ids, coef = reduced_basis(self.kernel, self.basis, self.coef, int(n_points), n_jobs)
        return replace(self, basis=self.basis[ids], coef=coef)


def _distinct_rows(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the numbers of the first of all equal rows, and for each row the place of its equal in them."""
    is_sparse: bool = sp.issparse(rows)
    if is_sparse:
        rows.sum_duplicates()
        keys: Any = [(rows.indices[a:b].tobytes(), rows.data[a:b].tobytes()) for a, b in pairwise(rows.indptr)]
    else:
        # Adding 0 makes one of the two zeros of the other.
        keys = [row.tobytes() for row in np.ascontiguousarray(rows) + 0.0]
    places: dict[Any, int] = {}
    first: list[int] = []
    owner = np.empty(len(keys), np.int64)
    for number, key in enumerate(keys):
        if key not in places:
            places[key] = len(first)
            first.append(number)
        owner[number] = places[key]
    return np.array(first, np.int64), owner
