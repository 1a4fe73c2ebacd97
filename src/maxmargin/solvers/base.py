"""What all solvers share: declared needs and checked options.

A solver is a generator of iterates. It has no clock, log or stopping rule in its loop: :mod:`maxmargin.solvers.driver` consumes
the iterates.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np

from maxmargin._parameters import is_integer, is_number
from maxmargin.problems.base import Problem
from maxmargin.problems.weights import DenseWeights

Record = dict[str, Any]

RULE_MET = "the stopping rule was met"


@dataclass
class Iterate:
    """One step of a solver.

    ``weights`` is a point worth returning, ``primal`` the objective there; None where this step did not evaluate it.
    ``is_precise`` says that the evaluation searched in double precision. ``dual`` is a lower bound of the optimum. ``wanted_gap``
    is the gap at which the solver's own rule ends training, ``is_last`` that its rule is met already, and ``rule`` says how,
    where there is more to say than that. ``details`` go into the history. ``is_spare`` says that the solver has no more use for
    the weights' values.
    """

    weights: DenseWeights | None = None
    primal: float | None = None
    is_precise: bool = True
    dual: float | None = None
    wanted_gap: float | None = None
    is_last: bool = False
    rule: str = RULE_MET
    details: Record = field(default_factory=dict)
    is_spare: bool = False


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
        """C' of the papers that average the slacks: n·C, or C times the sum of the sample weights."""
        return self.C * self.problem.total_weight


@dataclass(frozen=True)
class Request:
    """What is asked for before there are data: a solver, by name or ``"auto"``, with options, the objective, for which models."""

    solver: str
    loss: str
    rescaling: str
    abilities: frozenset[str]
    options: Mapping[str, Any] | None = None


# The core counts what options count in 32 bits.
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Option:
    """A key of ``solver_options``: its default, what it must satisfy, and what it means."""

    default: Any
    accepts: Callable[[Any], bool]
    expected: str
    meaning: str


IS_BOOLEAN: tuple[Callable[[Any], bool], str] = (lambda v: isinstance(v, (bool, np.bool_)), "True or False")

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
    helps_above_zero: ClassVar[str] = ""  # advice where a run without bounds ends above the primal of w = 0
    has_dual: ClassVar[bool] = True
    patience: ClassVar[int] = 50  # evaluations of the primal that may leave the gap where it is before it has stalled
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
            if is_integer(value, _MOST + 1):
                raise ValueError(f"solver_options['{key}'] must be at most {_MOST}, found {value!r}.")
            if isinstance(value, np.bool_):
                given[key] = bool(value)
        self.option: dict[str, Any] = {key: given.get(key, option.default) for key, option in self.options.items()}

    @property
    def stops_on_gap(self) -> bool:
        """Whether ``tol`` decides the end; a given ``epsilon`` brings the paper's own stop instead."""
        return self.option.get("epsilon") is None

    def missed_rule(self, task: Task, gap: float | None, last: Record) -> str:
        """Say which rule would have ended training, and how far from it the last step was; nothing where epochs end it.

        ``gap`` is that of the point returned, ``last`` the last record of the history, empty where there is none.
        """
        if self.stops_on_gap:
            return f"tol is {task.tol:g}" if self.has_dual else ""
        asked, found = self._epsilon_rule(task, gap, last)
        return f"epsilon={self.option['epsilon']:g} asks {asked}" + (f", and {found}" if found else "")

    def _epsilon_rule(self, task: Task, gap: float | None, last: Record) -> tuple[str, str]:
        """Return what ``epsilon`` asks for, and what was found instead; the latter is empty where it is not known."""
        wanted = self._epsilon_gap(task)
        return f"for a gap of at most {wanted:.3g}", f"the gap is {gap:.3g}" if gap is not None and gap > wanted else ""

    def _epsilon_gap(self, task: Task) -> float:
        """Return the gap that ``epsilon`` asks for, where it asks for one."""
        return task.C_total * float(self.option["epsilon"])

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

    def finish(self, task: Task) -> Iterate | None:
        """Look for a better point to end with, after the last iterate; return it if it is to be compared with the iterates.

        It may be broken off where time is short, and training ends without it.
        """
        return None

    def result(self) -> DenseWeights | None:
        """Return the point to end with where that is not the best of the iterates."""
        return None

    def unfinished(self) -> Iterate | None:
        """Return the point and the dual that there are where a run is broken off before it knows a primal; None for none."""
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
    is_interrupted = False  # before it began: a run ends at once
