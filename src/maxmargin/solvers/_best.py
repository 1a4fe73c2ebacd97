"""The best point and bounds that a run has found so far, and what is said of them: records, and the certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _core
from maxmargin._result import Certificate
from maxmargin.problems.base import Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers.base import Iterate, PrimalEstimate, Record, Solver, Task

# Kernel values in float32 may move bounds by this share of what is asked for, or of what was reached.
_ERROR_SHARE = 0.3
# By so much of the primal sums may put the dual above it; more is a contradiction.
ROUNDED_OFF = 1e-6
# Training that was cut short with more than this share of the primal open may be worse than no weights at all: shorter ones are
# tried, so many times.
_FAR_OFF, _SHORTER, _MOST_SHORTENED = 0.02, 0.25, 6
# By so much of tol points are made longer to meet margins that rounding leaves open; not by less than rounding of scores.
_LONGER, _LEAST_LONGER = 1e-2, 1e-12


@dataclass
class Best:
    """The best point and bounds so far."""

    weights: DenseWeights
    primal: float = np.inf
    dual: float = -np.inf
    is_precise: bool = True
    has_primal: bool = True
    interval: tuple[float, float] | None = None
    is_taken: bool = False  # whether the solver named its point, whose primal may not be known
    is_open: bool = False  # whether searches at this point may have missed something, which the primal counts

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def update(self, iterate: Iterate, problem: Problem) -> None:
        if iterate.primal is not None and iterate.weights is not None and iterate.primal < self.primal:
            self._keep(iterate)
            self.primal, self.is_precise, self.is_open = iterate.primal, iterate.is_precise, problem.left_open
        self.raise_dual(iterate.dual)

    def _keep(self, iterate: Iterate) -> None:
        assert iterate.weights is not None
        if iterate.is_spare:
            self.weights.take_over(iterate.weights)
            # The solver's object holds other values from now on, and the iterate is looked at again where training is cut short.
            iterate.weights, iterate.is_spare = self.weights, False
        else:
            self.weights.assign(iterate.weights)

    def raise_dual(self, dual: float | None) -> None:
        """Take a lower bound if it is the best; α = 0 is feasible and has 0."""
        if dual is not None:
            self.dual = max(self.dual, dual, 0.0)
            self._raise_estimate()

    @property
    def is_refuted(self) -> bool:
        """Whether the dual proves more than the primal, and more than rounding could."""
        return bool(np.isfinite(self.primal) and self.dual > self.primal + ROUNDED_OFF * abs(self.primal))

    def take(self, result: DenseWeights | None) -> None:
        """Become the point that the solver ends with, if it names one; its primal is yet to be evaluated."""
        if result is not None and not self.is_taken:
            self.weights, self.primal, self.is_precise, self.is_taken = result, np.inf, False, True

    def is_within(self, tol: float) -> bool:
        # No tolerance can be below what rounding leaves.
        return bool(np.isfinite(self.primal) and np.isfinite(self.dual) and self.gap <= max(tol, 1e-15) * self.primal)

    def meets_rule(self, iterate: Iterate, solver: Solver, task: Task) -> bool:
        reached = iterate.wanted_gap is not None and self.gap <= iterate.wanted_gap
        return iterate.is_last or reached or (solver.stops_on_gap and self.is_within(task.tol))

    def look_at(self, iterate: Iterate, task: Task) -> None:
        """Evaluate the primal of a step that did not, and take its point if it is better."""
        if iterate.primal is None and iterate.weights is not None:
            iterate.primal = task.problem.primal(iterate.weights, task.C, squared=task.loss == "squared_hinge")
            iterate.is_precise = True
            self.update(iterate, task.problem)

    def shorten(self, last: DenseWeights | None, task: Task, most_tries: int) -> None:
        """Where w = 0 is no worse than what was found, take a multiple of the last point that is better than both, else w = 0.

        Few cuts or planes leave w far too long. A multiple of it predicts what it does, and w = 0 predicts nothing. Where time is
        over, or no tries are left, w = 0 is all that is compared.
        """
        problem, squared = task.problem, task.loss == "squared_hinge"
        longest = self.weights if last is None or last.norm2() == 0.0 else last
        if self.is_taken or not self.gap > _FAR_OFF * self.primal or longest.norm2() == 0.0:
            return
        point = problem.zero_weights()
        least = min(self.primal, problem.primal(point, task.C, squared=squared))
        if self.primal > least or self.weights.norm2() == 0.0:
            self.weights, self.primal, self.is_precise = problem.zero_weights(), least, True
            self.is_open = problem.left_open
            point.assign(longest)
            for _ in range(0 if task.is_over else min(_MOST_SHORTENED, most_tries)):
                point.scale(_SHORTER)
                primal = problem.primal(point, task.C, squared=squared)
                if primal < self.primal:
                    self.weights.assign(point)
                    self.primal, self.is_open = primal, problem.left_open
                elif self.primal < least or task.is_over:
                    break

    def lengthen(self, last: DenseWeights | None, task: Task) -> bool:
        """Make this point or the last one longer by far less than ``tol``, if it meets all margins then; return whether one does.

        Half of the way is looked at: at the end of it rounding has no say in whether margins are met, and the primal is the
        point's length alone. Only where all mistakes cost something, and searches are exact: no length takes a score further from
        a margin of 0.
        """
        problem, found = task.problem, False
        room = task.tol - self.gap / self.primal
        longer = max(min(_LONGER * task.tol, 0.25 * room if room > 0.0 else np.inf), _LEAST_LONGER)
        for start in [self.weights] if last is None else [self.weights, last]:
            point, half_way = problem.zero_weights(), problem.zero_weights()
            point.assign(start)
            point.scale(1.0 + longer)
            half_way.assign(start)
            half_way.scale(1.0 + 0.5 * longer)
            primal = 0.5 * point.norm2()
            if found and primal >= self.primal:
                continue
            try:
                slacks = problem.slacks(half_way)
            except _core.OutOfTime:
                break
            if not np.any(slacks):
                self.weights, self.primal, self.is_precise, found = point, primal, True, True
        return found

    def settle(self, estimate: PrimalEstimate | None, task: Task) -> None:
        """Take an estimate of the primal for what it is; where there is none, evaluate it."""
        if estimate is None:
            self.verify(task)
        else:
            self.primal, self.interval = estimate.value, estimate.interval
            self._raise_estimate()

    def _raise_estimate(self) -> None:
        """Move an estimated primal, and its interval with it, to what the dual proves where it is below that."""
        if self.interval is not None:
            missing = max(self.dual - self.primal, 0.0)
            self.primal += missing
            self.interval = max(self.interval[0] + missing, self.dual), self.interval[1] + missing

    def verify(self, task: Task) -> None:
        """Replace a primal whose planes were found in float32 by the exact one."""
        if self.has_primal and (not self.is_precise or self.primal == np.inf):
            self.primal = task.problem.primal(self.weights, task.C, squared=task.loss == "squared_hinge")
            self.is_open = task.problem.left_open
        self.is_precise = True

    def close(self, task: Task) -> None:
        """Search the best point in full where brief searches left something open there: that may leave less, or nothing."""
        task.problem.search_fully()
        primal = task.problem.primal(self.weights, task.C, squared=task.loss == "squared_hinge")
        self.primal, self.is_open = min(self.primal, primal), task.problem.left_open

    def record(self, iterate: Iterate, number: int, seconds: float, problem: Problem) -> Record:
        primal = self.primal if np.isfinite(self.primal) else None
        dual = None if iterate.dual is None else self.dual
        gap = None if primal is None or dual is None else self.gap
        return {
            "iteration": number,
            "seconds": seconds,
            "primal": primal,
            "dual": dual,
            "gap": gap,
            "relative_gap": _relative(gap, primal),
            **counts(problem),
            **iterate.details,
        }

    def is_distorted(self, solver: Solver, task: Task) -> bool:
        """Whether the scores behind the bounds are off by what counts against the gap that was asked for, or reached."""
        error = task.problem.score_error(self.weights)
        asked = task.tol * self.primal if solver.stops_on_gap else solver.option["epsilon"] * task.C_total
        reached = self.gap if self.dual > -np.inf else 0.0
        # Beside what a sample leaves open of the primal, rounding does not count.
        sampled = 0.0 if self.interval is None else 0.5 * (self.interval[1] - self.interval[0])
        return error > 0.0 and error * task.C_total > _ERROR_SHARE * max(asked, reached, sampled)

    def certificate(self, problem: Problem, message: str, *, converged: bool) -> Certificate:
        primal = float(self.primal) if self.has_primal and np.isfinite(self.primal) else None
        dual = float(self.dual) if np.isfinite(self.dual) else None
        if primal is not None and dual is not None and primal < dual <= primal + ROUNDED_OFF * abs(primal):
            dual = primal  # which is a lower bound too
        return Certificate(
            primal=primal,
            dual=dual,
            oracle_calls=problem.oracle_calls,
            exact=problem.is_exact and self.is_precise and not (self.has_primal and np.isinf(self.primal)),
            converged=converged,
            message=message,
            oracle_exact=problem.is_exact,
            primal_interval=self.interval,
            dual_of=problem.dual_of,
        )


def counts(problem: Problem) -> Record:
    """Return how many searches were made so far, for a record of the history."""
    searches = problem.searches
    return {"oracle_calls": problem.oracle_calls, **({"searches": searches} if searches else {})}


def _relative(gap: float | None, primal: float | None) -> float | None:
    if gap is None or primal is None:
        return None
    return gap / primal if primal else 0.0
