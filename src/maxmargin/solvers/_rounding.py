"""What rounding may have put into a primal: margins that are met but for their last digits, at a large C, are not met."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

import numpy as np

from maxmargin import _core
from maxmargin.solvers._best import Best
from maxmargin.solvers.base import Solver, Task

# A gap below this share of the primal that no longer falls is one of rounding.
ROUNDED_GAP = 1e-12
# So much of what w = 0 pays, whose sums have no larger scores than losses; scores that cancel are longer sums.
_LAST_DIGITS = 4.0 * np.finfo(np.float64).eps
# It is counted from this share of what is asked for.
_COUNTS = 0.01


@dataclass
class Rounding:
    """What rounding may do to the best point of a run."""

    solver: Solver
    task: Task
    best: Best
    at_zero: float | None = None  # the primal of w = 0, once it is known

    @property
    def counts_from(self) -> float:
        """What is too little to count beside tol."""
        return _COUNTS * max(self.task.tol, ROUNDED_GAP) * self.best.primal

    def of_primal(self, least: float | None = None) -> float:
        """Return what rounding may put into the primal: last digits of what w = 0 pays, where margins are met but for it.

        Scores of kernels are sums of terms that may be far larger than they are themselves. It is 0 where it is surely below
        ``least``, by default what counts beside tol.
        """
        problem, task = self.task.problem, self.task
        if not (self.solver.has_dual and 0.0 < self.best.primal < np.inf and 0.0 < task.C_total < np.inf):
            return 0.0
        least = self.counts_from if least is None else least
        if not problem.has_vectors:
            return self._of_kernel_scores(least)
        if self._moved_by(_LAST_DIGITS, self.most_paid_at_zero) <= least:
            return 0.0
        return self._moved_by(_LAST_DIGITS, self._paid_at_zero())

    def _of_kernel_scores(self, least: float) -> float:
        problem = self.task.problem
        # Slack rescaling multiplies scores by the losses, which w = 0 pays.
        is_slack = problem.space.rescales_slacks
        most = self.most_paid_at_zero if is_slack else self.task.C_total
        if most == 0.0:
            return 0.0
        rounding = problem.score_rounding(self.best.weights, least / self._moved_by(1.0, most))
        if self._moved_by(rounding, most) <= least:
            return 0.0
        return self._moved_by(rounding, self._paid_at_zero() if is_slack else most)

    def _moved_by(self, rounding: float, at_one: float) -> float:
        """Return by how much the primal may move where slacks of 1, which cost ``at_one``, move by ``rounding``."""
        if self.task.loss != "squared_hinge":
            return rounding * at_one
        # Of Σ (ξ + δ)² − Σ ξ², by Cauchy and Schwarz.
        return rounding * (2.0 * float(np.sqrt(self.best.primal) * np.sqrt(at_one)) + rounding * at_one)

    def _paid_at_zero(self) -> float:
        """Return the primal of w = 0; the most that it may be where it was not met, and takes a user's searches or too long."""
        problem, task = self.task.problem, self.task
        if self.at_zero is None and not problem.searches_in_python:
            with contextlib.suppress(_core.OutOfTime):
                left_open = problem.left_open
                self.at_zero = problem.primal(problem.zero_weights(), task.C, squared=task.loss == "squared_hinge")
                problem.left_open = left_open
        return self.most_paid_at_zero if self.at_zero is None else self.at_zero

    @property
    def most_paid_at_zero(self) -> float:
        """No less than the primal of w = 0, as far as the losses are known."""
        largest = self.task.problem.largest_loss
        return self.task.C_total * largest * (largest if self.task.loss == "squared_hinge" else 1.0)
