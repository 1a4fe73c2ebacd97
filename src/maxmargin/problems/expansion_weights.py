"""The point in feature space where a kernel gives the scores: coefficients of training rows, with the scores they give."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.problems.weights import DenseWeights

FloatArray = NDArray[np.float64]


class ExpansionWeights(DenseWeights):
    """w as scores of the training rows, ``exact``, and as coefficients, ``coef``: both in the layout of linear weights.

    ``is_scored=False`` says that the scores are not those of all rows; the problem makes them before it evaluates the primal.
    """

    def __init__(self, n_weights: int) -> None:
        super().__init__(n_weights)
        self.coef: FloatArray = np.zeros(n_weights)
        self.is_scored = True

    @property
    def vector(self) -> FloatArray:
        """The coefficients."""
        return self.coef

    def clear(self) -> None:
        """Become 0."""
        super().clear()
        self.coef[:] = 0.0
        self.is_scored = True

    def anchor(self) -> ExpansionAnchor:  # type: ignore[override]
        """Return a point at 0 that a line search moves."""
        return ExpansionAnchor(len(self.exact))

    def scale(self, factor: float) -> None:
        """Become a multiple of itself."""
        super().scale(factor)
        self.coef *= factor

    def add_cuts(self, cuts: Any, coefficients: FloatArray, n_jobs: int) -> float:
        """Become w + Σ a_k g_k and return ‖w‖²."""
        cuts.add_coefficients(coefficients, self.coef, n_jobs)
        cuts.add_scores(coefficients, self.exact)
        self.touch()
        return self.norm2()

    def dot(self, other: DenseWeights) -> float:
        """Return w·v."""
        return float(np.einsum("i,i->", self.coef, other.exact))

    def assign(self, other: DenseWeights) -> None:
        """Become equal to ``other``."""
        assert isinstance(other, ExpansionWeights)
        super().assign(other)
        np.copyto(self.coef, other.coef)
        self.is_scored = other.is_scored

    def take_over(self, other: DenseWeights) -> None:
        """Become equal to ``other``."""
        self.assign(other)


class ExpansionAnchor:
    """The best point of a line search, in double."""

    def __init__(self, n_weights: int) -> None:
        self._point = ExpansionWeights(n_weights)
        self.norm2 = 0.0

    @property
    def rounded(self) -> NDArray[np.float32]:
        """The scores in float32."""
        return self._point.rounded

    def become(self, weights: DenseWeights) -> None:
        """Take the place of w."""
        self._point.assign(weights)
        self.norm2 = weights.norm2()

    def dot(self, weights: DenseWeights) -> float:
        """Return the product with w."""
        return self._point.dot(weights)

    def move(self, weights: ExpansionWeights, t: float, norm2: float) -> None:
        """Become (1 − t) of itself and t of w."""
        self.place(self._point, weights, t)
        self.norm2 = norm2

    def place(self, point: ExpansionWeights, weights: ExpansionWeights, t: float) -> None:
        """Put ``point`` so far from here towards w."""
        for mine, theirs, out in (
            (self._point.exact, weights.exact, point.exact),
            (self._point.coef, weights.coef, point.coef),
        ):
            np.multiply(mine, 1.0 - t, out=out)
            out += t * theirs
        point.touch()
