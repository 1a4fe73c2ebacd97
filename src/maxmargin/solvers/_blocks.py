"""What the solvers with dual variables per example share: working sets, the weights they give, and both bounds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import Iterate, Option, Solver, Task

# An estimate of the gap that is off by less than this factor does not delay the end.
_DOUBT = 0.7
# Without a tolerance, a gap below this share of the primal is looked at.
_LEAST_TOL = 1e-12

BATCH_SIZE: Option = Option(
    1,
    lambda v: is_integer(v, 1),
    "an integer ≥ 1",
    "examples searched at the same w; with more than 1, n_jobs threads search them. 1 is the paper's.",
)
EVALUATE_EVERY: Option = Option(
    None,
    lambda v: v is None or is_integer(v, 1),
    "an integer ≥ 1 or None",
    "loops over the oracle between two evaluations of the primal, a pass each. None: where it may end training.",
)


def solved_to(tolerance: float) -> _core.Rule:
    """Return the rule that solves every block whose gap exceeds ``tolerance`` · C_i, well below it."""
    return _core.Rule("exact", solve_above=tolerance, solve_to=0.1 * tolerance)


def noise_of(slacks: FloatArray) -> float:
    """Return what is too little to prove an oracle inexact: scores can be far larger than the differences that are seen here."""
    return 1e-8 * float(slacks.max(initial=0.0))


class Blocks:
    """The planes of all examples with their dual variables, and w.

    Both bounds are those of w = Σ α ψ summed afresh, unless another w is given for the primal: what many small steps left in it
    does not count. ``weights`` are that w once a bound was asked for.
    """

    watched: ClassVar[tuple[str, ...]] = ("oracle", "sweeps", "weights", "primal")

    def __init__(self, task: Task, *, by_components: bool = False) -> None:
        problem = task.problem
        self.sample_weight = problem.weight_of_examples
        self.weights: DenseWeights = problem.zero_weights()
        self.squared = task.loss == "squared_hinge"
        self.watch = Stopwatch(*self.watched)
        self.task = task
        self._by_components = by_components
        self._space = problem.block_space()
        self.sets = self._empty_sets()
        self.total_budget = task.C_total
        self._has_moved = False
        self._sigma, self._n_joint_steps = 0.0, 0  # of steps of all planes together
        self._ids = problem.searched_ids
        self._last_found: FloatArray = np.zeros(problem.n_examples)  # H_i when example i was searched last

    def _empty_sets(self) -> _core.WorkingSets:
        task = self.task
        budgets = task.C * self.sample_weight
        return _core.WorkingSets(self._space, budgets, self.squared, task.problem.nonnegative, self._by_components)

    def visit(self, rule: _core.Rule, *, batch_size: int, precise: bool) -> _core.Sweep:
        """Ask the oracle for every example, in random order, and move the example's block by the rule."""
        problem = self.task.problem
        oracle = problem.oracle(self.weights, precise=precise)
        order = self.task.rng.permutation(self._ids)
        with self.watch("oracle"):
            swept = self.sets.visit(oracle, order, batch_size, rule, self.weights.exact, self._rounded(precise))
        problem.count_calls(len(order))
        self._has_moved |= swept.moves > 0
        return swept

    def sweep(self, rule: _core.Rule, *, precise: bool) -> _core.Sweep:
        """Move the blocks by the rule, in random order, at the planes they have."""
        order = self.task.rng.permutation(self._ids)
        rounded = self._rounded(precise)
        with self.watch("sweeps"):
            swept = self.sets.sweep(order, rule, self.weights.exact, rounded, self.task.problem.n_jobs)
        if rounded is None:
            self.weights.touch()
        self._has_moved |= swept.moves > 0
        return swept

    def search_all(self, *, precise: bool) -> tuple[_core.PlaneBatch, float]:
        """Return the most violated plane of each example, and the primal at w."""
        problem = self.task.problem
        self._sum_weights()
        with self.watch("primal"):
            batch = problem.separate(problem.all_ids, self.weights, precise=precise)
            slacks = self.values(batch, problem.all_ids)
        return batch, self.primal(slacks)

    def primal(self, slacks: FloatArray, w: DenseWeights | None = None) -> float:
        """Return the primal at w, where the slacks are these; w is the current one unless given."""
        w = self.weights if w is None else w
        cost = slacks**2 if self.squared else slacks
        return 0.5 * w.norm2() + self.task.C * float(self.sample_weight @ cost)

    def values(
        self, batch: _core.PlaneBatch, ids: IntArray, w: DenseWeights | None = None, known: FloatArray | None = None
    ) -> FloatArray:
        """Return H_i at w; a stored plane that is worth more than the oracle's proves it inexact.

        Where the values of the planes there are not known, they are computed in double.
        """
        w = self.weights if w is None else w
        problem = self.task.problem
        values = np.zeros(problem.n_examples)
        values[batch.examples()] = batch.losses() - problem.space.dots(batch, w.exact) if known is None else known
        found: FloatArray = np.maximum(values[ids], 0.0)
        if not problem.can_be_inexact:
            return found
        self._last_found[ids] = found
        for example in self.sets.exceeding(ids, found + noise_of(self._last_found), w.exact):
            problem.report_inexact(int(example))
        return np.maximum(found, self.sets.slacks(ids, w.exact))

    def dual(self, *, afresh: bool = True) -> float:
        """Return the dual value of the current α; sweeps in double alone leave a w that is good enough without a fresh sum."""
        if afresh:
            self._sum_weights()
        return self.sets.linear_part() - 0.5 * self.weights.norm2()

    def ascend_together(self, wanted: float) -> JointAscent:
        """Move all planes together until no more than ``wanted`` is open over them; return what did, and its best point.

        Where planes have no vectors these are those of features whose products are the kernel's values up to rounding.
        """
        features = self.task.problem.with_features()
        if features is not None:
            return self._ascend_by_features(features, wanted)
        self._sum_afresh()
        dual = self.dual(afresh=False)
        joint = JointAscent(self.task, self.sets.together(), self.weights.exact, dual, self._sigma)
        joint.ascend(wanted)
        self._n_joint_steps += joint.read()[0]
        self._sigma = joint.sigma
        self._sum_afresh()
        return joint

    def _ascend_by_features(self, features: Problem, wanted: float) -> JointAscent:
        twin = Blocks(replace(self.task, problem=features), by_components=self._by_components)
        twin._sigma = self._sigma
        twin.start_from(self.sets.planes())
        joint = twin.ascend_together(wanted)
        self._sigma = twin._sigma
        self._n_joint_steps += twin.read_joint_steps()
        sets = self._empty_sets()
        sets.start(twin.sets.planes(), np.zeros(len(self.weights.exact)))
        # Not before they have all planes: an interrupt leaves those there were.
        self.sets = sets
        self._sum_afresh()
        return joint

    def read_joint_steps(self) -> int:
        """Return the Newton steps of all planes together since the last call."""
        made, self._n_joint_steps = self._n_joint_steps, 0
        return made

    def unfinished(self) -> Iterate:
        """Return the point of the current α, whatever stopped its moves, and the dual."""
        self._sum_afresh()
        return Iterate(self.weights, dual=self.dual(afresh=False))

    def start_from(self, planes: _core.PlaneBatch) -> None:
        """Take over the planes of an earlier run with their α, at whatever C."""
        self.sets.start(planes, self.weights.exact)
        self.weights.touch()
        if not self.task.problem.has_vectors:
            self._sum_afresh()  # what was written are scores, and of which coefficients is not known

    def _rounded(self, precise: bool) -> Any:
        return self.task.problem.rounded(self.weights, precise=precise)

    def _sum_weights(self) -> None:
        if not self._has_moved:
            return
        with self.watch("weights"):
            self._sum_afresh()

    def _sum_afresh(self) -> None:
        self.task.problem.sum_planes(self.sets, self.weights)
        self._has_moved = False


class BlockSolver(Solver):
    """A solver whose loops over the oracle move w: the primal takes a pass of its own, which is made only where it may matter."""

    options: ClassVar[Mapping[str, Option]] = {"batch_size": BATCH_SIZE, "evaluate_every": EVALUATE_EVERY}
    _blocks: Blocks | None = None

    def planes(self) -> _core.PlaneBatch | None:
        """Return the planes of all working sets."""
        return None if self._blocks is None else self._blocks.sets.planes()

    def unfinished(self) -> Iterate | None:
        """Return where the working sets are."""
        return None if self._blocks is None else self._blocks.unfinished()

    def _start(self, task: Task, planes: Any) -> Blocks:
        blocks = Blocks(task)
        self._tol = task.tol
        self._n_loops, self._factor = 0, 1.0
        if planes is not None:
            blocks.start_from(planes)
        # Not before it has all planes, within the budgets: an interrupt leaves those there were.
        self._blocks = blocks
        return blocks

    def _is_proof(self, task: Task) -> bool:
        """Whether a loop that found nothing proves that there is nothing: a float32 search does not."""
        return self.precise or task.problem.always_precise

    def _after_loop(self, blocks: Blocks, swept: _core.Sweep, dual: float, *, is_last: bool) -> Iterate:
        """Return the iterate after a loop over the oracle that left the dual at this value.

        The gaps of the blocks, each at the w of its own visit, add up to an estimate of the gap that is good to a factor. The
        last evaluation tells which, and the estimate when the next one may find what ``tol`` asks for.
        """
        self._n_loops += 1
        step = Iterate(blocks.weights, is_precise=self.precise, dual=dual, is_last=is_last)
        every = self.option["evaluate_every"]
        is_due = self._n_loops % every == 0 if every is not None else self._n_loops & (self._n_loops - 1) == 0
        expected = _DOUBT * self._factor * swept.gap
        # Without a tolerance it is evaluations that show when rounding lets the gap fall no further.
        wanted = max(self._tol, _LEAST_TOL)
        if is_last or is_due or (self.stops_on_gap and expected <= wanted * (dual + expected)):
            _, step.primal = blocks.search_all(precise=self.precise)
            if swept.gap > 0.0:
                self._factor = max(step.primal - dual, 0.0) / swept.gap
        return step
