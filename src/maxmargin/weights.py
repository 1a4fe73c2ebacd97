"""The point in feature space that a solver moves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core


class DenseWeights:
    """Weights as one dense vector, with a float32 copy made on demand.

    The copy serves to find planes quickly; whatever is reported is computed from ``exact``.
    """

    def __init__(self, n_weights: int) -> None:
        self.exact: NDArray[np.float64] = np.zeros(n_weights)
        self._rounded: NDArray[np.float32] | None = None
        self._is_fresh = False

    def touch(self) -> None:
        """Say that ``exact`` was written to from outside."""
        self._is_fresh = False

    def refresh(self) -> None:
        """Round ``exact`` anew, in place, for those who hold the float32 copy."""
        self.touch()
        if self._rounded is not None:
            self._rounded = self.rounded

    def add_cuts(self, cuts: _core.CutSet, coefficients: NDArray[np.float64], n_jobs: int) -> float:
        """Become w + Σ a_k g_k and return ‖w‖²; the float32 copy, if there is one, follows in the same pass over memory."""
        norm2 = cuts.add(coefficients, self.exact, self._rounded, n_jobs)
        self._is_fresh = self._rounded is not None
        return norm2

    @property
    def rounded(self) -> NDArray[np.float32]:
        """The float32 copy of ``exact``."""
        if self._rounded is None:
            self._rounded = np.empty(self.exact.shape, np.float32)
        if not self._is_fresh:
            # Weights beyond float32 saturate: they only steer the search for planes.
            np.clip(self.exact, -1e37, 1e37, out=self._rounded, casting="same_kind")
            self._is_fresh = True
        return self._rounded

    def become(self, values: NDArray[np.float32] | NDArray[np.float64]) -> None:
        """Take these values; float32 ones are their own float32 copy."""
        np.copyto(self.exact, values)
        self._is_fresh = values.dtype == np.float32
        if self._is_fresh:
            np.copyto(self.rounded, values)

    def norm2(self) -> float:
        """Return ‖w‖²."""
        return self.dot(self)

    def dot(self, other: DenseWeights) -> float:
        """Return w·v."""
        # Not BLAS: it would start threads of its own whatever n_jobs says.
        return float(np.einsum("i,i->", self.exact, other.exact))

    def assign(self, other: DenseWeights) -> None:
        """Become equal to ``other``."""
        np.copyto(self.exact, other.exact)
        self.touch()
