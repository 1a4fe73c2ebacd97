"""Line-search training of the 1-slack problem (Joachims, Finley and Yu 2009, section 3.2).

    min_w  ½‖w‖² + C max_k (c_k − w·g_k)₊         over all cuts (c, g), sums of one plane of each example

Keeps one point of the dual: w = Σ α_k g_k and b = Σ α_k c_k with Σ α_k ≤ C. Each new cut is mixed in by the closed-form best
step; the numerator of that step is the duality gap, so stopping is free. Converges like O(1/ε): use it when the oracle is
cheap and the tolerance loose.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import EPSILON, Iterate, Solver, Task


class LineSearch(Solver):
    """One dual point, moved towards each new cut; see the module's text."""

    name = "line-search"
    losses = frozenset({"hinge"})
    options: ClassVar = {"epsilon": EPSILON}

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per oracle pass."""
        problem, C = task.problem, task.C
        J = problem.nonnegative
        watch = Stopwatch("oracle", "weights")
        cuts = _core.CutSet(problem.n_weights)
        w, b = problem.zero_weights(), 0.0
        if planes is not None:
            b = _restore(planes, w, C)
        unclipped = w.exact[J]  # w on J before negative parts are cut off (the best μ)
        w.exact[J] = np.maximum(unclipped, 0.0)

        while True:
            with watch("oracle"):
                problem.separate_into(cuts, w, precise=self.precise)
            value = cuts.pending_loss - cuts.pending_dot(w.exact)
            norm2 = w.norm2()
            primal, dual = 0.5 * norm2 + C * max(value, 0.0), b - 0.5 * norm2
            yield Iterate(
                weights=w,
                primal=primal,
                is_precise=self.precise,
                dual=dual,
                wanted_gap=None if self.stops_on_gap else self._epsilon_gap(task),
                details={"planes": 0, "violation": problem.mean_of(value), **watch.read()},
            )

            with watch("weights"):
                # On J the dual uses the positive part only; with μ fixed the step below is still an ascent.
                w.exact[J] = unclipped
                u = -w.exact
                cuts.add_pending(C, u)
                ascent = C * cuts.pending_loss - b - float(np.einsum("i,i->", _clipped(w.exact, J), u))
                step = float(np.clip(ascent / max(float(np.einsum("i,i->", u, u)), 1e-300), 0.0, 1.0))
                self._point = None  # an interrupt before w and b have both moved leaves no dual point
                w.exact += step * u
                b += step * (C * cuts.pending_loss - b)
                unclipped = w.exact[J]
                self._point = DualPoint(w.exact.copy(), b, C) if len(J) else DualPoint(w.exact, b, C)
                w.exact[J] = np.maximum(unclipped, 0.0)
                w.touch()

    _point: DualPoint | None = None

    def planes(self) -> DualPoint | None:
        """Return the dual point."""
        return self._point


@dataclass
class DualPoint:
    """Σ α_k g_k and Σ α_k c_k with Σ α_k ≤ C."""

    w: FloatArray
    b: float
    C: float


def _restore(stored: DualPoint, w: DenseWeights, C: float) -> float:
    """Put w where an earlier run ended, scaled to fit C, and return b."""
    scale = min(1.0, C / stored.C)
    np.multiply(stored.w, scale, out=w.exact)
    w.touch()
    return scale * stored.b


def _clipped(w: np.ndarray, J: np.ndarray) -> np.ndarray:
    if not len(J):
        return w
    v = w.copy()
    v[J] = np.maximum(v[J], 0.0)
    return v
