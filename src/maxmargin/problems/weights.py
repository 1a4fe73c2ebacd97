"""The point in feature space that a solver moves."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core

Scalar = TypeVar("Scalar", np.float32, np.float64)


# A row of weights that begins with a line of the cache is read in fewer of them: 24 float32 in 2 instead of 2 or 3.
_LINE = 64


def aligned_zeros(n: int, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return n zeros that begin with a line of the cache."""
    n_bytes = n * np.dtype(dtype).itemsize
    memory = np.zeros(n_bytes + _LINE, np.uint8)
    begin = -memory.ctypes.data % _LINE
    return memory[begin : begin + n_bytes].view(dtype)


class Cuts(Protocol):
    """Cuts of one problem, the last one pending until it is kept: ``_core.CutSet``, or what stands for it."""

    @property
    def pending_loss(self) -> float:
        """The loss c of the pending cut."""

    def __len__(self) -> int: ...
    def assemble(self, space: _core.PlaneSpace, planes: _core.PlaneBatch, sample_weight: Any) -> None: ...
    def load(self, loss: float, sum: Any) -> None: ...
    def pending_dot(self, weights: Any) -> float: ...
    def pending_at(self, indices: Any) -> Any: ...
    def keep(self, n_threads: int) -> Any: ...
    def remove(self, numbers: Any) -> None: ...


class DenseWeights:
    """Weights as one dense vector, with a float32 copy made on demand.

    The copy serves to find planes quickly; whatever is reported is computed from ``exact``.
    """

    def __init__(self, n_weights: int) -> None:
        self.exact: NDArray[np.float64] = aligned_zeros(n_weights, np.float64)
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

    @property
    def vector(self) -> NDArray[np.float64]:
        """What a solution holds."""
        return self.exact

    def clear(self) -> None:
        """Become 0."""
        self.exact[:] = 0.0
        self.touch()

    def scale(self, factor: float) -> None:
        """Become a multiple of itself."""
        self.exact *= factor
        self.touch()

    def anchor(self) -> DenseAnchor:
        """Return a point at 0 that a line search moves."""
        return DenseAnchor(len(self.exact))

    def add_cuts(self, cuts: Any, coefficients: NDArray[np.float64], n_jobs: int) -> float:
        """Become w + Σ a_k g_k and return ‖w‖²; the float32 copy, if there is one, follows in the same pass over memory."""
        norm2: float = cuts.add(coefficients, self.exact, self._rounded, n_jobs)
        self._is_fresh = self._rounded is not None
        return norm2

    @property
    def rounded(self) -> NDArray[np.float32]:
        """The float32 copy of ``exact``."""
        if self._rounded is None:
            self._rounded = aligned_zeros(len(self.exact), np.float32)
        if not self._is_fresh:
            # Weights beyond float32 saturate: they only steer the search for planes.
            np.clip(self.exact, -1e37, 1e37, out=self._rounded, casting="same_kind")
            self._is_fresh = True
        return self._rounded

    def become(self, values: NDArray[np.float32] | NDArray[np.float64]) -> None:
        """Take these values; float32 ones become the float32 copy, and are no longer the caller's."""
        np.copyto(self.exact, values)
        self._is_fresh = values.dtype == np.float32
        if self._is_fresh:
            self._rounded = np.asarray(values, np.float32)

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

    def take_over(self, other: DenseWeights) -> None:
        """Become equal to ``other``, which has no more use for its values and gets others."""
        self.exact, other.exact = other.exact, self.exact
        self.touch()
        other.touch()


class DenseAnchor:
    """The best point of a line search. It is kept in float32: it only says where to look."""

    def __init__(self, n_weights: int) -> None:
        self.rounded: NDArray[np.float32] = aligned_zeros(n_weights, np.float32)
        self.norm2 = 0.0

    def become(self, weights: DenseWeights) -> None:
        """Take the place of w."""
        np.copyto(self.rounded, weights.rounded)
        self.norm2 = weights.norm2()

    def dot(self, weights: DenseWeights) -> float:
        """Return the product with w."""
        return _core.dot_float(self.rounded, weights.rounded)

    def move(self, weights: DenseWeights, t: float, norm2: float) -> None:
        """Become (1 − t) of itself and t of w, which has this square."""
        _core.mix(self.rounded, weights.rounded, t)
        self.norm2 = norm2

    def place(self, point: DenseWeights, weights: DenseWeights, t: float) -> None:
        """Put ``point`` so far from here towards w."""
        np.multiply(self.rounded, 1.0 - t, out=point.exact)
        point.exact += t * weights.exact
        point.touch()
