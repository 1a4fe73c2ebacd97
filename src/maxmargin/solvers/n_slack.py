"""The n-slack cutting-plane method (Joachims, Finley and Yu 2009, Algorithms 1 and 2): a working set of planes for each example.

    hinge           min_w  ½‖w‖² + Σ_i C_i ξ_i      Δ_ip − w·ψ_ip ≤ ξ_i for all planes p of the working sets, ξ ≥ 0
    squared hinge   ξ_i² in place of ξ_i

Examples are visited in turn; the most violated plane of each joins its working set if it asks for more than ξ_i + ε. The QP
over all working sets is solved again after ``batch_size`` new planes, warm-started, until its gap is at most Σ C_i ε/10, or a
tenth of the gap at the last sweep over the oracle while that is larger. Block coordinate ascent takes one example's planes at
a time, exactly (the block problem of Balamurugan et al. 2011): sweeps over all examples alternate with sweeps over those that
still move, a small part of them. Where these crawl, because many examples pull at few weights, all planes are
moved together, see _joint_ascent.py. Planes whose α stayed 0 for ``prune_after`` QPs are dropped.

The first iteration has two sweeps: one at w = 0, whose slacks tell ε where it is not given, and one after the QP over the planes
that were found there.

A whole sweep over the oracle that adds nothing proves that no plane is violated by more than ε; with ``epsilon`` given the
training then ends, under ``tol`` ε is reduced until the gap is small enough.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.solvers._blocks import Blocks, solved_to
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers.base import EPSILON, Iterate, Option, Record, Solver, Task

# Under tol, ε starts at this share of the mean slack at w = 0.
_FIRST_SHARE = 0.1
# … and never gets below this share of P per unit of C: steps within rounding lead α out of its simplex, bit by bit.
_LEAST_SHARE = 1e-12
# The QP is solved to this share of ε, or of the mean violation at the last sweep where that was larger: planes found far from the
# optimum do not deserve more.
_QP_SHARE = 0.1
# Sweeps over all examples in one QP, and over the moving ones between two of those.
_MAX_ROUNDS = 200
_ACTIVE_SWEEPS = 30
# An example counts as moving for so many rounds more.
_STAYS_ACTIVE = 2
# The moving examples are swept until their gap is this share of what it was over all.
_REDUCTION = 0.1


class NSlack(Solver):
    """One slack variable for each example; see the module's text."""

    name = "n-slack"
    losses = frozenset({"hinge", "squared_hinge"})
    options: ClassVar = {
        "epsilon": replace(
            EPSILON,
            meaning="the paper's ε, in units of loss: stop when a sweep finds no plane violated by more. None: stop on tol.",
        ),
        "batch_size": Option(
            100, lambda v: is_integer(v, 1), "an integer ≥ 1", "new planes after which the QP is solved again"
        ),
        "prune_after": Option(
            50, lambda v: is_integer(v, 1), "an integer ≥ 1", "drop a plane whose α was 0 in so many QPs in a row"
        ),
    }

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per sweep over the examples, and none for a sweep that finds planes at w = 0."""
        self._sweep = sweep = _SlackSets(task, self.option)
        if planes is not None:
            sweep.start_from(planes)
        epsilon, has_epsilon = self.option["epsilon"], self.option["epsilon"] is not None

        while True:
            if epsilon is None:
                epsilon, n_added = sweep.visit_first(precise=self.precise)
                is_whole = True
            else:
                n_added, is_whole = sweep.visit_all(epsilon, precise=self.precise)
            primal = sweep.primal(sweep.slacks(precise=self.precise))
            step = Iterate(sweep.weights, is_precise=self.precise, primal=primal, dual=sweep.dual())
            gap = (primal - sweep.dual()) / sweep.total_budget
            # A sweep that finds nothing asks for the QP at its final precision.
            sweep.mean_violation = gap if n_added else 0.0
            # A float32 search that finds nothing proves nothing: the next sweep is in double.
            is_proof = self.precise or task.problem.always_precise
            step.is_last = has_epsilon and n_added == 0 and is_whole and is_proof and sweep.is_solved
            if step.is_last and not sweep.squared and gap > (1.0 + 2.0 * _QP_SHARE) * epsilon:
                # The QP's blocks were each measured at the w of its own visit; here they add up to more.
                step.is_last = False
                sweep.qp_share *= 0.3
            if has_epsilon and n_added == 0:
                self.demand_precision()
            # What w = 0 is worth deserves no iteration of its own where there are planes to leave it by.
            if n_added == 0 or not sweep.is_at_zero or task.is_over:
                step.details = sweep.details(epsilon)
                yield step

            if n_added == 0 and not has_epsilon:
                epsilon = max(0.3 * epsilon, _LEAST_SHARE * primal / sweep.total_budget)
            sweep.solve(epsilon)

    def _epsilon_rule(self, task: Task, gap: float | None, last: Record) -> tuple[str, str]:
        """Say how many planes the last sweep found."""
        n_added = last.get("planes_added", 0)
        found = f"the last one found {n_added}" if n_added else ""
        return "for a sweep that finds no plane violated by more", found

    _sweep: _SlackSets | None = None

    def planes(self) -> _core.PlaneBatch | None:
        """Return the planes of all working sets."""
        return None if self._sweep is None else self._sweep.sets.planes()

    def unfinished(self) -> Iterate | None:
        """Return where the working sets are."""
        return None if self._sweep is None else self._sweep.unfinished()


class _SlackSets(Blocks):
    """The working sets, the weights they give, and one way through the examples."""

    watched: ClassVar[tuple[str, ...]] = ("oracle", "assembly", "qp")

    def __init__(self, task: Task, option: dict[str, Any]) -> None:
        super().__init__(task)
        self._problem = task.problem
        self._batch_size: int = option["batch_size"]
        self._prune_after: int = option["prune_after"]
        self.mean_violation = 0.0
        self.qp_share = _QP_SHARE
        self.is_solved = True
        self._tolerance: float | None = None
        self._n_solved = self._n_added = self._n_dropped = self._n_moves = 0

    @property
    def is_at_zero(self) -> bool:
        """Whether w is 0, and no QP was solved yet."""
        return self._tolerance is None and self.weights.norm2() == 0.0

    def visit_first(self, *, precise: bool) -> tuple[float, int]:
        """Ask the oracle for every example before ε is known; return that, by the slacks there, and how many planes joined."""
        ids = self._problem.all_ids
        with self.watch("oracle"):
            batch = self._problem.separate(ids, self.weights, precise=precise)
        self._slacks, self._slacks_hold = self.values(batch, ids), True
        epsilon = max(_FIRST_SHARE * float(self._slacks.mean()), float(np.finfo(float).tiny))
        return epsilon, self._insert(batch, epsilon)

    def _insert(self, batch: _core.PlaneBatch, epsilon: float) -> int:
        with self.watch("assembly"):
            n_new = self.sets.insert(batch, self.weights.exact, epsilon)
        self._n_added += n_new
        return n_new

    def visit_all(self, epsilon: float, *, precise: bool) -> tuple[int, bool]:
        """Ask the oracle for every example; return how many planes joined, and whether time allowed a whole sweep."""
        problem = self._problem
        self._slacks = np.zeros(problem.n_examples)
        self._slacks_hold = True
        n_added = n_pending = 0
        n_portions = max(1, problem.n_examples // self._batch_size)
        for ids in np.array_split(problem.all_ids, n_portions):
            with self.watch("oracle"):
                batch = problem.separate(ids, self.weights, precise=precise)
            self._slacks[ids] = self.values(batch, ids)
            n_new = self._insert(batch, epsilon)
            n_added += n_new
            n_pending += n_new
            is_end = ids[-1] + 1 == problem.n_examples
            if n_pending >= self._batch_size and not is_end:
                self.solve(epsilon)
                n_pending, self._slacks_hold = 0, False
            if self.task.is_over and not is_end:
                self._slacks_hold = False
                return n_added, False
        return n_added, True

    def slacks(self, *, precise: bool) -> FloatArray:
        """Return H_i at the current weights: from the last sweep if w stayed the same all the way, else by a pass of its own."""
        if not self._slacks_hold:
            ids = self._problem.all_ids
            with self.watch("oracle"):
                batch = self._problem.separate(ids, self.weights, precise=precise)
            self._slacks = self.values(batch, ids)
        return self._slacks

    def solve(self, epsilon: float) -> None:
        """Solve the QP over the working sets as closely as ε or the last violations ask for."""
        self._tolerance = self.qp_share * max(epsilon, self.mean_violation)
        self._n_moves = 0
        with self.watch("qp"):
            self.is_solved = self._ascend(self._tolerance) and self.mean_violation <= epsilon
            # From the planes and α afresh: what many small steps left in w is not in the dual.
            self.sets.weights(self.weights.exact)
            self.weights.touch()
            # Planes that a QP leaves as they are because it is close enough without them would come and go for ever.
            if self._n_moves > 0:
                self._n_dropped += self.sets.prune(self._prune_after)
            self._n_solved += 1

    def _ascend(self, tolerance: float) -> bool:
        """Raise the dual until a sweep over all examples finds a gap of at most ``tolerance`` · Σ C_i; return whether one did."""
        all_ids = self._problem.all_ids
        wanted = tolerance * self.total_budget
        last_moved = np.full(len(all_ids), -_STAYS_ACTIVE - 1)
        for k in range(_MAX_ROUNDS):
            swept = self._sweep_once(all_ids, tolerance)
            if swept.gap <= wanted:
                return True
            last_moved[swept.moved] = k
            active = np.flatnonzero(last_moved >= k - _STAYS_ACTIVE)
            crawls = not self._sweep_active(active, tolerance, max(_REDUCTION * swept.gap, 0.5 * wanted))
            if self.task.is_over:
                return False
            can_help = JointAscent.can_help(self._problem, self.sets.n_planes)
            if crawls and can_help and self.ascend_together(wanted).gap <= wanted:
                return True
        return False

    def _sweep_active(self, active: IntArray, tolerance: float, wanted: float) -> bool:
        """Sweep over some examples until their gap is ``wanted``; return whether it is."""
        for _ in range(_ACTIVE_SWEEPS):
            if self._sweep_once(active, tolerance).gap <= wanted:
                return True
            if self.task.is_over:
                break
        return False

    def _sweep_once(self, ids: IntArray, tolerance: float) -> _core.Sweep:
        swept = self.sets.sweep(self.task.rng.permutation(ids), solved_to(tolerance), self.weights.exact)
        self._n_moves += swept.moves
        return swept

    def details(self, epsilon: float) -> dict[str, Any]:
        """Return what the history records since the last record: of one sweep, or of the first with that at w = 0."""
        added, self._n_added = self._n_added, 0
        dropped, self._n_dropped = self._n_dropped, 0
        solved, self._n_solved = self._n_solved, 0
        return {
            "planes": self.sets.n_planes,
            "planes_active": self.sets.n_active,
            "planes_added": added,
            "planes_dropped": dropped,
            "qps": solved,
            "joint_steps": self.read_joint_steps(),
            "epsilon": epsilon,
            "qp_tolerance": self._tolerance,
            **self.watch.read(),
        }
