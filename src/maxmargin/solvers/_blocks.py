"""How the dual solvers visit the planes of one example after another."""

from __future__ import annotations

from maxmargin import _core
from maxmargin.problem import FloatArray
from maxmargin.solvers.base import Task

# Conjugate gradients make so many steps where sweeps crawl, doubled each time they do so again.
_FIRST_STEPS, _MOST_STEPS = 100, 3200
# Beyond so many weights examples share few of them, sweeps do not crawl, and a step that writes all weights is dear.
_FEW_WEIGHTS = 65536


def solved_to(tolerance: float) -> _core.Rule:
    """Return the rule that solves every block whose gap exceeds ``tolerance`` · C_i, well below it."""
    return _core.Rule("exact", solve_above=tolerance, solve_to=0.1 * tolerance)


class FaceAscent:
    """Moves all planes with α > 0 together by conjugate gradients.

    For where sweeps crawl because many examples pull at few weights.
    """

    def __init__(self, task: Task, sets: _core.WorkingSets) -> None:
        self._task, self._sets = task, sets
        self._n_steps = _FIRST_STEPS
        self._n_made = 0

    def __call__(self, tolerance: float, w: FloatArray) -> None:
        """Ascend until values differ within an example by ``tolerance`` on average, if there are few weights."""
        if self._task.problem.n_weights > _FEW_WEIGHTS:
            return
        self._n_made += self._sets.ascend_face(tolerance, self._n_steps, self._task.seconds_left, w).products
        self._n_steps = min(2 * self._n_steps, _MOST_STEPS)

    def restart(self) -> None:
        """Begin with few steps again."""
        self._n_steps = _FIRST_STEPS

    def read(self) -> int:
        """Return the steps made since the last call."""
        made, self._n_made = self._n_made, 0
        return made
