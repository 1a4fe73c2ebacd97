"""Where to begin sampled cuts: near the solution of the same problem with a low-rank kernel.

Cutting planes on φ̂(x)·φ̂(x') in place of k(x, x') take no kernel values beyond those of a few basis points, and their last
active cuts hold the objective up around a point near the optimum. The most violated planes at the points where those cuts were
found make a model to begin with: sampled and scored with the kernel itself, like any others.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from maxmargin.problems.base import FloatArray
from maxmargin.problems.kernel_cuts import KernelCuts
from maxmargin.problems.kernel_scores import KernelScores
from maxmargin.solvers._cutting_planes import CutModel
from maxmargin.solvers._timing import Stopwatch

# The low-rank run ends after so many cuts, or when none is violated by more than so many ε.
_MOST_CUTS, _TIMES_EPSILON = 100, 4.0
_PRUNE_AFTER = 10


class _LowRankCuts(KernelCuts):
    """Cuts whose scores are those of the low-rank kernel; beside each, the scores of the point at which it was found."""

    def __init__(self, problem: KernelScores, rows: NDArray[np.floating]) -> None:
        super().__init__(problem)
        self._rows = rows
        self.found_at: list[NDArray[np.float32]] = []

    def remove(self, numbers: NDArray[np.int64]) -> None:
        """Drop cuts."""
        super().remove(numbers)
        gone = set(numbers.tolist())
        self.found_at = [scores for k, scores in enumerate(self.found_at) if k not in gone]

    def _add_change(self, change: FloatArray, scores: FloatArray) -> None:
        problem, n_kernel = self._problem, self._problem.n_kernel
        coef = change[:n_kernel].reshape(-1, problem.stride).astype(self._rows.dtype)
        scores[:n_kernel] += (self._rows @ (self._rows.T @ coef)).ravel()
        scores[n_kernel:] += change[n_kernel:]


def points_of_low_rank_cuts(
    problem: KernelScores, C: float, epsilon: float, n_components: int, seed: int, watch: Stopwatch
) -> list[NDArray[np.float32]]:
    """Return the scores of all rows at the points where the active cuts of low-rank training were found."""
    cuts = _LowRankCuts(problem, problem.low_rank_rows(n_components, seed))
    model = CutModel(problem, C, _PRUNE_AFTER, watch)
    model.cuts = cuts
    for _ in range(_MOST_CUTS):
        with watch("oracle"):
            problem.separate_into(cuts, model.weights, precise=True)
        violation = model.pending_value(model.weights) - model.slack
        if violation <= _TIMES_EPSILON * epsilon:
            break
        cuts.found_at.append(model.weights.exact.astype(np.float32))
        model.keep_pending()
        model.solve(0.1 * C * violation)
    return [scores for scores, a in zip(cuts.found_at, model.alpha, strict=True) if a > 0.0]
