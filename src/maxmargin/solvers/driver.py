"""The one driver of all solvers: it keeps the best of their iterates, writes the history, decides when to stop, and certifies."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin._result import Certificate, Solution
from maxmargin._warnings import warn_caller
from maxmargin.problems.base import Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._best import ROUNDED_OFF, Best, counts
from maxmargin.solvers._rounding import ROUNDED_GAP, Rounding
from maxmargin.solvers.base import RULE_MET, Iterate, Record, Solver, Task


class PrecisionLost(Exception):
    """Rounding in float32 has moved the bounds by too much: the run is to be made again in double precision."""


# Below this relative gap the float32 search could hide a difference that matters.
_PRECISE_BELOW = 1e-4

# A step of a solver ends training at max_time when it is over; one that would take so much longer is broken off.
_OVERTIME, _LEAST_OVERTIME = 0.1, 1.0

# Endings that mean more than their text.
_AS_CLOSE_AS_POSSIBLE = "the gap is as small as rounding lets it become"
INTERRUPTED = "training was interrupted"
_CALLED_OFF = "the callback asked for an end"

# One below what rounding puts into the primal has so many evaluations to fall.
_FEW = 3
# Below this relative gap, points that are made longer to meet margins beyond rounding are the best there are; and below the
# second, the default tol, what rounding leaves will do for those who ask for no gap at all.
_LEAST_GAP, _SMALL_GAP = 1e-11, 1e-3
_ROUNDED = (
    "rounding of scores and losses leaves the primal uncertain: "
    "scale the features (StandardScaler, MaxAbsScaler) or lower C"
)
# An objective that is above that of w = 0 by more than this share is of steps that were too long.
_CLEARLY = 1e-3
# Columns of features whose lengths differ by more than this may well be what keeps training from its end.
_SCALES_DIFFER = 1e4
# A gap that did not fall by this share in as many evaluations of the primal as a solver's patience has stalled.
_FALL = 0.02


@dataclass
class _Stall:
    """Since when the gap has not become smaller."""

    patience: int
    gap: float = np.inf
    n_in_vain: int = 0

    def look_at(self, best: Best, iterate: Iterate) -> None:
        if iterate.primal is None or best.dual == -np.inf:
            return
        if best.gap < (1.0 - _FALL) * self.gap:
            self.gap, self.n_in_vain = best.gap, 0
        else:
            self.n_in_vain += 1

    @property
    def is_long(self) -> bool:
        return self.n_in_vain >= self.patience


@dataclass
class _Run:
    """A solver at work: what it has found so far, and whether that is enough."""

    solver: Solver
    task: Task
    max_iter: int | None
    max_time: float | None
    verbose: int
    callback: Callable[[Record], object] | None

    def __post_init__(self) -> None:
        self.best = Best(self.task.problem.zero_weights(), has_primal=bool(self.solver.losses))
        self.history: list[Record] = []
        self._stall = _Stall(self.solver.patience)
        self._rule_met: str | None = None  # the solver's own, in words
        self._rounding = Rounding(self.solver, self.task, self.best)
        self._start = time.perf_counter()
        self.task.problem.has_bounds = self.solver.has_dual
        if self.solver.has_dual and self.solver.stops_on_gap:
            self.task.problem.search_briefly()
        else:
            self.task.problem.search_fully()

    def work(self, iterates: Iterator[Iterate]) -> str:
        """Follow the iterates to an end, evaluate what the solver ends with, and return why it ended."""
        ending = ""
        with _core.Deadline(self._longest()):
            for iterate in iterates:
                self._take(iterate)
                ending = self._ending(iterate)
                if ending:
                    break
            self._finish()
            self.best.take(self.solver.result())
            if self._rule_met is None and self.history and self.solver.has_dual:
                # Training was cut short: its last point is better than those before it, more often than not.
                self.best.look_at(iterate, self.task)
                self._shorten(iterate.weights, len(self.history))
            self.best.settle(self.solver.primal_estimate(self.task), self.task)
            self.best.raise_dual(self.solver.final_dual(self.task))
            self._close()
            if self._is_refuted():
                self.best.primal = np.inf
                return "the searches are proved to fail at the point that is returned"
            ending = self._count_rounding(ending, iterate.weights if self.history else None)
        if (
            self._rule_met is None
            and ending != _CALLED_OFF
            and self.solver.stops_on_gap
            and self.best.is_within(self.task.tol)
        ):
            # What time or iterations ended was there already, which only the last evaluation showed.
            self._rule_met = RULE_MET
        return ending if self._rule_met is None else self._rule_met

    def _finish(self) -> None:
        """Let the solver look for a better point to end with, in half of the time that is left: its primal is to be known too."""
        longest = self._longest()
        with contextlib.suppress(_core.OutOfTime), _core.Deadline(None if longest is None else 0.5 * longest):
            point = self.solver.finish(self.task)
            if point is not None:
                self.best.update(point, self.task.problem)
        if self.history:
            self.history[-1].update(counts(self.task.problem))

    def _shorten(self, last: DenseWeights | None, most_tries: int) -> None:
        """Take w = 0, or a multiple of the last point, where that is better; not of models in Python once time is over."""
        if self.task.is_over and self.task.problem.searches_in_python:
            return
        with contextlib.suppress(_core.OutOfTime):
            self.best.shorten(last, self.task, most_tries)

    def _close(self) -> None:
        """Look for what is left open at the best point, if there is time for it."""
        if self.best.is_open and self.task.problem.is_exact and not self.task.is_over:
            # What ended training ended it, though this should take too long.
            with contextlib.suppress(_core.OutOfTime):
                self.best.close(self.task)
            if self.history:
                # These searches are part of training, which its last step counts.
                self.history[-1].update(counts(self.task.problem))

    def _count_rounding(self, ending: str, last: DenseWeights | None) -> str:
        """See to it that the primal is no work of rounding, and return why training ended after that.

        Where rounding decides which point is the best, the last one may be better.
        """
        best, tol = self.best, self.task.tol
        if best.is_refuted or not self.solver.stops_on_gap:
            return ending
        rounding = self._rounding_of_primal()
        if rounding <= self._rounding.counts_from and ending != _ROUNDED:
            return ending
        was_within, is_longer = best.is_within(tol), self._lengthen(last)
        if not is_longer:
            best.primal += rounding
        if was_within and not best.is_within(tol):
            self._rule_met, ending = None, _ROUNDED
        if ending == _AS_CLOSE_AS_POSSIBLE:
            return ending if best.is_within(max(tol, _SMALL_GAP)) else _ROUNDED
        is_all = (tol == 0.0 and best.is_within(_SMALL_GAP)) or (is_longer and best.is_within(_LEAST_GAP))
        return _AS_CLOSE_AS_POSSIBLE if ending == _ROUNDED and is_all else ending

    def _lengthen(self, last: DenseWeights | None) -> bool:
        """Make the best point meet margins beyond rounding if it can."""
        problem = self.task.problem
        if not problem.all_mistakes_cost:
            return False
        is_longer = self.best.lengthen(last, self.task)
        if self.history:
            self.history[-1].update(counts(problem))
        return is_longer

    def _rounding_of_primal(self, least: float | None = None) -> float:
        """Return what :meth:`Rounding.of_primal` does; the searches at w = 0 that it may make are part of training."""
        known = self._rounding.at_zero
        rounding = self._rounding.of_primal(least)
        if self.history and self._rounding.at_zero != known:
            self.history[-1].update(counts(self.task.problem))
        return rounding

    def _is_refuted(self) -> bool:
        """Return whether the best point is one at which the searches are proved to have failed."""
        problem, best = self.task.problem, self.best
        if not problem.can_be_inexact or problem.bounds_misses or not best.is_refuted:
            return False
        problem.report_refuted(best.primal, best.dual)
        return True

    def _longest(self) -> float | None:
        """Return after how many seconds a step is broken off."""
        if self.max_time is None:
            return None
        return max(self.task.seconds_left, 0.0) + max(_OVERTIME * self.max_time, _LEAST_OVERTIME)

    def _take(self, iterate: Iterate) -> None:
        """Keep what is better than before, and record it."""
        problem, task = self.task.problem, self.task
        iterate.is_precise = iterate.is_precise or problem.always_precise
        if iterate.primal is not None and iterate.weights is not None:
            # The values that searches found may be too low; the primal that counts their bounds is not.
            iterate.primal = problem.bounded_primal(
                iterate.primal, iterate.weights, task.C, squared=task.loss == "squared_hinge"
            )
        if not self.history and iterate.weights is not None and iterate.weights.norm2() == 0.0:
            self._rounding.at_zero = iterate.primal
        self.best.update(iterate, problem)
        if self._is_refuted():
            # Where searches fail most, primals look best: another point is to be found.
            self.best.primal = self._stall.gap = np.inf
        if iterate.primal is not None and self.best.dual > -np.inf:
            problem.search_longer(self.best.gap, task.C, squared=task.loss == "squared_hinge")
        self._stall.look_at(self.best, iterate)
        seconds = time.perf_counter() - self._start
        self.history.append(self.best.record(iterate, len(self.history) + 1, seconds, problem))
        if self.verbose > 1 or (self.verbose == 1 and (iterate.primal is not None or not self.solver.has_dual)):
            _report(self.solver.name, self.history[-1])

    def _ending(self, iterate: Iterate) -> str:
        """Return why training ends with this iterate; nothing where it goes on."""
        best, problem = self.best, self.task.problem
        if self.callback is not None and _is_end(self.callback, self.history[-1]):
            return _CALLED_OFF
        if best.is_within(_PRECISE_BELOW):
            self.solver.demand_precision()
        if best.meets_rule(iterate, self.solver, self.task):
            if self.solver.has_dual:
                best.verify(self.task)
            if best.meets_rule(iterate, self.solver, self.task):
                self._rule_met = iterate.rule
                return iterate.rule
            self.solver.demand_precision()
        if self._stall.is_long and problem.search_fully():
            self._stall = _Stall(self.solver.patience)
        if self._stall.is_long and best.is_within(ROUNDED_GAP):
            return _AS_CLOSE_AS_POSSIBLE
        if self._stall.n_in_vain >= _FEW and self._is_rounded():
            return _ROUNDED
        if self._stall.is_long and (problem.left_open or not problem.is_exact):
            return "the gap no longer closes, for what searches leave open"
        if self.max_iter is not None and len(self.history) >= self.max_iter:
            return f"max_iter={self.max_iter} was reached"
        return _time_is_up(self.max_time) if self.task.is_over else ""

    def _is_rounded(self) -> bool:
        """Return whether what is left of the gap may well be rounding, and more of it than where a gap is called closed."""
        best = self.best
        return (
            self.solver.stops_on_gap
            and not best.is_within(ROUNDED_GAP)
            and 0.0 < best.gap <= self._rounding_of_primal(best.gap)
        )

    def break_off(self) -> None:
        """End with what there is: where no point was evaluated yet, with the one that the solver is at, or w = 0 if it is better.

        With a kernel, whose first step may take long, that is at least w = 0, which has no scores. The primal is evaluated if
        that takes a little longer only.
        """
        best, problem = self.best, self.task.problem
        best.take(self.solver.result())
        most = max(_OVERTIME * (time.perf_counter() - self._start), _LEAST_OVERTIME)
        if best.is_taken or not best.has_primal:
            return
        if np.isfinite(best.primal):
            with contextlib.suppress(KeyboardInterrupt, _core.OutOfTime), _core.Deadline(most):
                self._reconsider()
            return
        try:
            # At w = 0 of a kernel there is nothing to compute but the searches.
            with _core.Deadline(most if problem.has_vectors else None):
                left = self._left()
                if left is None or left.weights is None:
                    return
                best.weights.assign(left.weights)
                best.raise_dual(left.dual)
                if not problem.searches_in_python or not problem.has_vectors:
                    best.look_at(left, self.task)
                self._take(left)
                if not problem.searches_in_python:
                    self._reconsider()
        except (KeyboardInterrupt, _core.OutOfTime):
            return

    def _reconsider(self) -> None:
        """Look for a better point than the best that was evaluated: w = 0, or, if it is that, where the solver was."""
        best, problem = self.best, self.task.problem
        if not (self.solver.has_dual and problem.has_vectors):
            return
        if not problem.searches_in_python:
            best.shorten(None, self.task, 0)
        elif best.weights.norm2() == 0.0:
            left = self._left()
            if left is not None:
                best.update(left, problem)

    def _left(self) -> Iterate | None:
        """Return the point that a solver without a primal was at, and what it knows of it."""
        problem, left = self.task.problem, self.solver.unfinished()
        if left is not None or problem.has_vectors or self.history:
            return left
        return Iterate(problem.zero_weights(), dual=0.0)

    def certify(self, ending: str) -> Certificate:
        """Return the certificate of the best point, whose bounds the last record repeats; warn if training did not converge."""
        if self.best.is_open:
            self.task.problem.report_left_open()
        converged = ending in (self._rule_met, _AS_CLOSE_AS_POSSIBLE)
        certificate = self.best.certificate(self.task.problem, ending, converged=converged)
        if self.history:
            for name in ("primal", "dual", "gap", "relative_gap"):
                self.history[-1][name] = getattr(certificate, name)
        _check_bounds(certificate, self.task.problem)
        if certificate.primal == 0.0 and self.task.problem.can_be_inexact and not self.task.problem.bounds_misses:
            warn_caller(
                "every search returned an output without loss, so that w = 0 is certified as perfect. If there are outputs "
                "with a loss, outputs(x) does not list them, or loss_augmented_argmax does not add the loss to the score, or "
                "returns the truth that it was given."
            )
        if not certificate.converged:
            self._warn(certificate)
        elif self.solver.helps_above_zero and (certificate.primal or 0.0) > (1.0 + _CLEARLY) * (
            most := self._rounding.most_paid_at_zero
        ):
            warn_caller(
                f"the objective is {certificate.primal:.4g} where w = 0 has {most:.4g} at most: the steps of "
                f"'{self.solver.name}' were too long. {self.solver.helps_above_zero}",
                _convergence_warning(must_be_quick=False),
            )
        return certificate

    def _warn(self, certificate: Certificate) -> None:
        solver, gap = self.solver, certificate.relative_gap
        unknown = "no bounds were found yet" if solver.has_dual else f"solver '{solver.name}' has no duality gap"
        distance = unknown if gap is None else f"the relative duality gap is {gap:.3g}"
        kind = _convergence_warning(must_be_quick=certificate.message == INTERRUPTED)
        rule = solver.missed_rule(self.task, certificate.gap, self.history[-1] if self.history else {})
        is_nothing = solver.has_dual and certificate.primal is not None and self.best.weights.norm2() == 0.0
        nothing = "w = 0 is the best point that was evaluated" if is_nothing else ""
        said = f"{certificate.message}; {', '.join(filter(None, (distance, rule, nothing)))}."
        warn_caller(said + self._hint(certificate.message), kind)

    def _hint(self, ending: str) -> str:
        """Return what may help where training took too long."""
        spread = self.task.problem.column_spread
        if spread < _SCALES_DIFFER or ending in (_ROUNDED, _CALLED_OFF):
            return ""
        return (
            f" One column of the features is {spread:.1g} times as long as another: "
            "scaling them (StandardScaler, MaxAbsScaler) may help."
        )


def run(
    solver: Solver,
    task: Task,
    *,
    max_iter: int | None = None,
    max_time: float | None = None,
    verbose: int = 0,
    callback: Callable[[Record], object] | None = None,
    planes: Any = None,
    resumes: bool = False,
    keep_planes: bool = False,
) -> Solution:
    """Run a solver until the gap is small enough, and certify what it found.

    ``planes`` are those of an earlier run; ``resumes`` says that this solver has just run on the same problem with another C.
    ``max_time`` is what was asked for, the deadline of the task what is left of it.
    """
    current = _Run(solver, task, max_iter, max_time, verbose, callback)
    solver.was_broken_off = False
    try:
        if solver.is_interrupted:
            raise KeyboardInterrupt
        ending = current.work(solver.resume(task) if resumes else solver.iterate(task, planes))
    except KeyboardInterrupt:
        ending = INTERRUPTED
        current.break_off()
    except _core.OutOfTime:
        ending, solver.was_broken_off = _time_is_up(max_time), True
        current.break_off()
    try:
        is_distorted = ending != INTERRUPTED and current.best.is_distorted(solver, task)
    except KeyboardInterrupt:
        ending, is_distorted = INTERRUPTED, True
    if is_distorted:
        if ending != INTERRUPTED and not (solver.was_broken_off or task.is_over):
            raise PrecisionLost
        current.best.is_precise = False
    certificate = current.certify(ending)
    weights, kept = current.best.weights, solver.planes() if keep_planes else None
    return Solution(weights.vector, certificate, current.history, solver.name, kept, task.problem.expansion(weights))


def _time_is_up(max_time: float | None) -> str:
    return f"max_time={max_time:g} s was reached"


def _is_end(callback: Callable[[Record], object], record: Record) -> bool:
    """Return whether the callback asks for an end; what it does itself has no deadline."""
    with _core.Deadline(None):
        answer = callback(record)
    try:
        return bool(answer)
    except ValueError:
        raise TypeError(
            f"callback must return whether to end training, found {type(answer).__name__}: return True, False or nothing."
        ) from None


def _convergence_warning(*, must_be_quick: bool) -> type[Warning]:
    """Return scikit-learn's ConvergenceWarning; after Ctrl-C only if importing it does not take a second."""
    if must_be_quick and "sklearn.exceptions" not in sys.modules:
        return UserWarning
    from sklearn.exceptions import ConvergenceWarning

    kind: type[Warning] = ConvergenceWarning
    return kind


def _check_bounds(certificate: Certificate, problem: Problem) -> None:
    """Refuse what rounding made meaningless: the optimum cannot lie between a dual and a smaller primal."""
    primal, dual = certificate.primal, certificate.dual
    if primal is None:
        return
    if np.isnan(primal) or (dual is not None and certificate.exact and dual > primal + ROUNDED_OFF * abs(primal)):
        found = f"the bounds contradict each other (primal {primal:g}, dual {dual})"
        if not problem.has_vectors:
            raise ValueError(
                f"{found}: the kernel is not positive semi-definite on these data, or C times its values is too large for double "
                "precision. Choose other parameters (for 'sigmoid' another gamma and coef0), scale the features or lower C."
            )
        raise ValueError(
            f"{found}: C · ‖features‖² is too large for double precision. Scale the features (StandardScaler, MaxAbsScaler) or "
            "lower C."
        )


def _report(name: str, record: Record) -> None:
    if record["gap"] is None:
        # What there is to show without both bounds, best first.
        shown = next(key for key in ("primal", "primal_estimate", "loss", "dual") if record.get(key) is not None)
        value = f"{shown.replace('_', ' ')} {record[shown]:.6g}"
    else:
        value = f"primal {record['primal']:.6g}  dual {record['dual']:.6g}  relative gap {record['relative_gap']:.2e}"
    print(f"{name} {record['iteration']:5d}  {record['seconds']:8.2f} s  {value}", flush=True)
