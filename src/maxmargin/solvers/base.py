"""What all solvers share: declared needs, checked options, and the one driver that runs them.

A solver is a generator of iterates. It has no clock, log or stopping rule in its loop; the driver consumes the iterates,
keeps the best point, writes the history and decides when to stop.
"""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_number
from maxmargin._warnings import warn_caller
from maxmargin.problem import Problem
from maxmargin.result import Certificate, Solution
from maxmargin.weights import DenseWeights

Record = dict[str, Any]


@dataclass
class Iterate:
    """One step of a solver.

    ``weights`` is a point worth returning, ``primal`` the objective there; None where this step did not evaluate it.
    ``is_precise`` says that the evaluation searched in double precision. ``dual`` is a lower bound of the optimum. ``wanted_gap``
    is the gap at which the solver's own rule ends training, ``is_last`` that its rule is met already. ``details`` go into
    the history.
    """

    weights: DenseWeights | None = None
    primal: float | None = None
    is_precise: bool = True
    dual: float | None = None
    wanted_gap: float | None = None
    is_last: bool = False
    details: Record = field(default_factory=dict)


@dataclass(frozen=True)
class Task:
    """What is to be solved: the problem, the objective's parameters, and how closely."""

    problem: Problem
    C: float
    loss: str = "hinge"
    tol: float = 1e-3
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))
    deadline: float | None = None

    @property
    def is_over(self) -> bool:
        """Whether the time allowed is used up; for solvers whose iterations are long."""
        return self.seconds_left <= 0.0

    @property
    def seconds_left(self) -> float:
        """How much of the time allowed is left."""
        return np.inf if self.deadline is None else self.deadline - time.perf_counter()

    @property
    def C_total(self) -> float:
        """C' = n·C of the papers that average the slacks."""
        return self.C * self.problem.n_examples


@dataclass(frozen=True)
class Option:
    """A key of ``solver_options``: its default, what it must satisfy, and what it means."""

    default: Any
    accepts: Callable[[Any], bool]
    expected: str
    meaning: str


EPSILON: Option = Option(
    None,
    lambda v: v is None or (is_number(v) and v > 0),
    "a positive number or None",
    "the paper's ε, in units of mean loss: stop when the gap is at most C'ε. None: stop on tol.",
)


# What a solver may need of features, beside searches: products of planes, blocks of one example, or an exact kernel.
_KINDS_OF_FEATURES = frozenset({"vectors", "blocks", "kernel"})


class PrimalEstimate(NamedTuple):
    """An objective as a sample of the examples has it, and where it lies with a confidence of 95 %."""

    value: float
    interval: tuple[float, float]


class Solver(ABC):
    """One algorithm. Options are checked when it is made, needs when it is given a problem."""

    name: ClassVar[str]
    losses: ClassVar[frozenset[str]]  # none for a solver that minimises nothing: it has no primal either
    rescalings: ClassVar[frozenset[str]] = frozenset({"margin", "slack"})
    has_dual: ClassVar[bool] = True
    needs: frozenset[str] = frozenset({"max_oracle", "vectors"})
    options: ClassVar[Mapping[str, Option]]

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        given = dict(options or {})
        unknown = sorted(set(given) - set(self.options))
        if unknown:
            known = ", ".join(f"'{key}'" for key in self.options)
            raise ValueError(
                f"solver_options: solver '{self.name}' has no option '{unknown[0]}'; its options are {known}."
            )
        for key, value in given.items():
            if not self.options[key].accepts(value):
                raise ValueError(f"solver_options['{key}'] must be {self.options[key].expected}, found {value!r}.")
        self.option: dict[str, Any] = {key: given.get(key, option.default) for key, option in self.options.items()}

    @property
    def stops_on_gap(self) -> bool:
        """Whether ``tol`` decides the end; a given ``epsilon`` brings the paper's own stop instead."""
        return self.option.get("epsilon") is None

    @classmethod
    def suits(cls, loss: str, abilities: frozenset[str]) -> bool:
        """Return whether it minimises the loss, and features are what it needs; searches are looked at apart."""
        return loss in cls.losses and not cls.needs & _KINDS_OF_FEATURES - abilities

    @classmethod
    def check_C(cls, C: float) -> None:
        """Refuse a positive C that means nothing to this solver."""
        if np.isinf(C):
            raise ValueError(f"C must be a positive number, found {C!r}.")

    @abstractmethod
    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield iterates for as long as they are asked for; ``planes`` continues an earlier run."""

    def planes(self) -> Any:
        """Return what a later run needs to continue from here, or None."""
        return None

    def result(self) -> DenseWeights | None:
        """Return the point to end with where that is not the best of the iterates."""
        return None

    def final_dual(self, task: Task) -> float | None:
        """Return a lower bound of the optimum where it is computed once, after the last iterate, and not with each."""
        return None

    def primal_estimate(self, task: Task) -> PrimalEstimate | None:
        """Return what a sample says of the primal of the point to end with, in place of a pass over all examples."""
        return None

    def resume(self, task: Task) -> Iterator[Iterate]:
        """Yield iterates for a task that differs by C only, from where those of the last task ended."""
        self._precise = False
        return self.iterate(task, self.planes())

    @classmethod
    def keeps_planes(cls) -> bool:
        """Return whether a later run can continue from what this one leaves."""
        return cls.planes is not Solver.planes

    @property
    def precise(self) -> bool:
        """Whether passes must search in double precision; set by the driver once rounding could matter."""
        return self._precise

    _precise = False

    def demand_precision(self) -> None:
        """Search in double precision from now on."""
        self._precise = True

    # Whether the last run ended in the middle of a step: what it left is no place to resume from.
    was_broken_off = False


# Kernel values in float32 may move bounds by this share of what is asked for, or of what was reached.
_ERROR_SHARE = 0.3


class PrecisionLost(Exception):
    """Rounding in float32 has moved the bounds by too much: the run is to be made again in double precision."""


# Below this relative gap the float32 search could hide a difference that matters.
_PRECISE_BELOW = 1e-4

# A step of a solver ends training at max_time when it is over; one that would take so much longer is broken off.
_OVERTIME, _LEAST_OVERTIME = 0.1, 1.0

# Endings that mean more than their text.
_RULE_MET = "the stopping rule was met"
_AS_CLOSE_AS_POSSIBLE = "the gap is as small as rounding lets it become"
# By so much of the primal sums may put the dual above it; more is a contradiction.
_ROUNDED_OFF = 1e-6
# A gap below this share of the primal that no longer falls is one of rounding.
_ROUNDED_GAP = 1e-12
INTERRUPTED = "training was interrupted"


@dataclass
class _Best:
    """The best point and bounds so far."""

    weights: DenseWeights
    primal: float = np.inf
    dual: float = -np.inf
    is_precise: bool = True
    has_primal: bool = True
    interval: tuple[float, float] | None = None
    is_taken: bool = False  # whether the solver named its point, whose primal may not be known

    @property
    def gap(self) -> float:
        return self.primal - self.dual

    def update(self, iterate: Iterate) -> None:
        if iterate.primal is not None and iterate.weights is not None and iterate.primal < self.primal:
            self.weights.assign(iterate.weights)
            self.primal, self.is_precise = iterate.primal, iterate.is_precise
        self.raise_dual(iterate.dual)

    def raise_dual(self, dual: float | None) -> None:
        """Take a lower bound if it is the best; α = 0 is feasible and has 0."""
        if dual is not None:
            self.dual = max(self.dual, dual, 0.0)

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
            self.update(iterate)

    def settle(self, estimate: PrimalEstimate | None, task: Task) -> None:
        """Take an estimate of the primal for what it is; where there is none, evaluate it."""
        if estimate is None:
            self.verify(task)
        else:
            # No estimate can be below what the dual proves.
            self.primal = max(estimate.value, self.dual)
            self.interval = max(estimate.interval[0], self.dual), max(estimate.interval[1], self.dual)

    def verify(self, task: Task) -> None:
        """Replace a primal whose planes were found in float32 by the exact one."""
        if self.has_primal and (not self.is_precise or self.primal == np.inf):
            self.primal = task.problem.primal(self.weights, task.C, squared=task.loss == "squared_hinge")
        self.is_precise = True

    def record(self, iterate: Iterate, number: int, seconds: float, oracle_calls: int) -> Record:
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
            "oracle_calls": oracle_calls,
            **iterate.details,
        }

    def is_distorted(self, solver: Solver, task: Task) -> bool:
        """Whether the scores behind the bounds are off by what counts against the gap that was asked for, or reached."""
        total = task.C_total if task.problem.sample_weight is None else task.C * float(task.problem.sample_weight.sum())
        error = task.problem.score_error(self.weights)
        asked = task.tol * self.primal if solver.stops_on_gap else solver.option["epsilon"] * task.C_total
        return error > 0.0 and error * total > _ERROR_SHARE * max(asked, self.gap if self.dual > -np.inf else 0.0)

    def certificate(self, problem: Problem, message: str) -> Certificate:
        primal = float(self.primal) if self.has_primal and np.isfinite(self.primal) else None
        dual = float(self.dual) if np.isfinite(self.dual) else None
        if primal is not None and dual is not None and primal < dual <= primal + _ROUNDED_OFF * abs(primal):
            dual = primal  # which is a lower bound too
        return Certificate(
            primal=primal,
            dual=dual,
            oracle_calls=problem.oracle_calls,
            exact=problem.is_exact and self.is_precise and not (self.has_primal and np.isinf(self.primal)),
            converged=message in (_RULE_MET, _AS_CLOSE_AS_POSSIBLE),
            message=message,
            oracle_exact=problem.is_exact,
            primal_interval=self.interval,
        )


# A gap that did not fall by this share in so many evaluations of the primal has stalled.
_FALL, _LONG = 0.02, 50


@dataclass
class _Stall:
    """Since when the gap has not become smaller."""

    gap: float = np.inf
    n_in_vain: int = 0

    def look_at(self, gap: float, iterate: Iterate) -> None:
        if iterate.primal is None or not np.isfinite(gap):
            return
        if gap < (1.0 - _FALL) * self.gap:
            self.gap, self.n_in_vain = gap, 0
        else:
            self.n_in_vain += 1

    @property
    def is_long(self) -> bool:
        return self.n_in_vain >= _LONG


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
    """
    problem = task.problem
    start = time.perf_counter()
    best = _Best(problem.zero_weights(), has_primal=bool(solver.losses))
    history: list[Record] = []
    stall = _Stall()
    message, solver.was_broken_off = "", False
    longest = None if max_time is None else max_time + max(_OVERTIME * max_time, _LEAST_OVERTIME)
    try:
        with _core.Deadline(longest):
            for iterate in solver.resume(task) if resumes else solver.iterate(task, planes):
                iterate.is_precise = iterate.is_precise or problem.always_precise
                if iterate.primal is not None and iterate.weights is not None:
                    # The values that searches found may be too low; the primal that counts their bounds is not.
                    iterate.primal = problem.bounded_primal(
                        iterate.primal, iterate.weights, task.C, squared=task.loss == "squared_hinge"
                    )
                best.update(iterate)
                stall.look_at(best.gap, iterate)
                seconds = time.perf_counter() - start
                history.append(best.record(iterate, len(history) + 1, seconds, problem.oracle_calls))
                if verbose > 1 or (verbose == 1 and (iterate.primal is not None or not solver.has_dual)):
                    _report(solver.name, history[-1])
                if callback is not None and _is_end(callback, history[-1]):
                    message = "the callback asked for an end"
                    break
                if best.is_within(_PRECISE_BELOW):
                    solver.demand_precision()
                if best.meets_rule(iterate, solver, task):
                    if solver.has_dual:
                        best.verify(task)
                    if best.meets_rule(iterate, solver, task):
                        message = _RULE_MET
                        break
                    solver.demand_precision()
                if stall.is_long and best.is_within(_ROUNDED_GAP):
                    message = _AS_CLOSE_AS_POSSIBLE
                    break
                if stall.is_long and problem.bounds_misses and not problem.is_exact:
                    message = "the gap no longer closes, for what searches leave open"
                    break
                if max_iter is not None and len(history) >= max_iter:
                    message = f"max_iter={max_iter} was reached"
                    break
                if max_time is not None and seconds >= max_time:
                    message = _time_is_up(max_time)
                    break
            best.take(solver.result())
            best.raise_dual(solver.final_dual(task))
            if message != _RULE_MET and history and solver.has_dual:
                # Training was cut short: its last point is better than those before it, more often than not.
                best.look_at(iterate, task)
            best.settle(solver.primal_estimate(task), task)
    except KeyboardInterrupt:
        message = INTERRUPTED
        best.take(solver.result())
    except _core.OutOfTime:
        message, solver.was_broken_off = _time_is_up(max_time), True
        best.take(solver.result())
    if message != INTERRUPTED and best.is_distorted(solver, task):
        if not solver.was_broken_off:
            raise PrecisionLost
        best.is_precise = False
    certificate = best.certificate(problem, message)
    if history:
        history[-1]["primal"] = certificate.primal
        history[-1]["dual"] = certificate.dual
        history[-1]["gap"] = certificate.gap
        history[-1]["relative_gap"] = certificate.relative_gap
    _check_bounds(certificate, problem)
    if not certificate.converged:
        gap = certificate.relative_gap
        unknown = "no bounds were found yet" if solver.has_dual else f"solver '{solver.name}' has no duality gap"
        distance = unknown if gap is None else f"the relative duality gap is {gap:.3g}"
        warn_caller(
            f"{message}; {distance}, tol is {task.tol:g}.", _convergence_warning(must_be_quick=message == INTERRUPTED)
        )
    kept = solver.planes() if keep_planes else None
    return Solution(best.weights.vector, certificate, history, solver.name, kept, problem.expansion(best.weights))


def _relative(gap: float | None, primal: float | None) -> float | None:
    if gap is None or primal is None:
        return None
    return gap / primal if primal else 0.0


def _time_is_up(max_time: float | None) -> str:
    return f"max_time={max_time:g} s was reached"


def _is_end(callback: Callable[[Record], object], record: Record) -> bool:
    """Return whether the callback asks for an end; what it does itself has no deadline."""
    with _core.Deadline(None):
        return bool(callback(record))


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
    if np.isnan(primal) or (dual is not None and certificate.exact and dual > primal + _ROUNDED_OFF * abs(primal)):
        found = f"the bounds contradict each other (primal {primal:g}, dual {dual})"
        if not problem.has_vectors:
            raise ValueError(
                f"{found}: the kernel is not positive semi-definite on these data, or C times its values is too large for double "
                "precision. Choose other parameters (for 'sigmoid' a smaller gamma or coef0), scale the features or lower C."
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
