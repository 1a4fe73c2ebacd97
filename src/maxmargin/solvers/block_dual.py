"""Block-coordinate ascent of the dual with cached planes: what the dual coordinate methods have in common, made fast.

    hinge           max_α  Σ α_ip Δ_ip − ½‖w‖²                           Σ_p α_ip ≤ C_i,  α ≥ 0
    squared hinge   max_α  Σ α_ip Δ_ip − ½‖w‖² − Σ_i (Σ_p α_ip)² / 4C_i,  α ≥ 0          w = Σ α_ip ψ_ip

Each example keeps a bounded set of planes with their small Gram matrix. A visit values them at w, solves the small QP
exactly and writes w once (Balamurugan et al. 2011; Chang and Yih 2013; Shah et al. 2015 have such blocks). One iteration is

  1. a pass of the oracle over all examples at the same w, which gives the exact primal, and the planes it found;
  2. a visit of every example with its new plane;
  3. sweeps without the oracle over the blocks that still move, for as long as a sweep raises the dual by more per row of
     features it reads than the iteration has so far: the next oracle pass then gains more. (Work is counted, not timed,
     so that results repeat.)

Where many sweeps follow a pass or the gap is small, under the hinge, visits are over-relaxed: a block moves as if the dual were
flatter than it is, by a factor below 2, which still raises it, because others that pull at the same weights will go the same way.

After a change of C two sweeps come first, then passes that visit the examples at once and give no bounds, until what the sweeps
meet of the blocks' own gaps tells that the next bounds may be close enough (perhaps before the first), or hardly falls. Where
a coarse gap is enough, the first run has such passes as well.

The iteration that may be the last evaluates the mean of w over its sweeps, which is nearer to the optimum than the last w (the
gap it leaves was two thirds, on tagging): any w has a primal, and the dual needs α alone.

Where outputs that differ from the truth in separate places combine (chains, under margin rescaling and the hinge loss), an
example has one block for each such stretch instead of one for all, and a visit searches its stretch anew, because the rows
are scored anyway (later sweeps do so while most visits find a plane): few passes are then enough to find all planes that matter.

With an exact kernel w holds the scores of all rows, which planes move by columns of the kernel matrix: see
cpp/planes/kernel_space.hpp. Scores say nothing of the coefficients that they come of: these are summed when w is shown, and means
of w are not taken.

Where an example is one row with one label a visit sees all its planes, none are stored, and there is nothing for an oracle to
find: see _row_blocks.py.

Where searches take far longer than sweeps, those of models in Python, most passes go over the examples in parts, with
sweeps in between, and give no bounds: see _dear_blocks.py.

With ``skip_satisfied`` passes between two whole ones ask the oracle only for examples that are not clearly satisfied: whose most
violated plane was worth something at the last search, or that carry α. They give no bound: the slacks of the others may have
become positive. A whole pass follows when the gap that they would leave is small enough, or after a few.

Where the gap hardly falls, because many examples pull at few weights, all planes are moved together: see _joint_ascent.py.
Under the squared hinge, whose α have no upper bound, w overshoots there as long as few planes are known: a run that begins so
solves the problem for a far smaller C first, and comes up from it in steps: all that is one iteration.

Searches and visits read a float32 copy of w until the gap is small, and primals of records before that are of its scores. What
ends training, and every dual, is computed in double precision, at weights that are summed anew from the planes or, for the
primal, at the mean named above.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer, is_number
from maxmargin.solvers._dear_blocks import DearBlocks
from maxmargin.solvers._plane_blocks import PlaneBlocks
from maxmargin.solvers._row_blocks import RowBlocks
from maxmargin.solvers.base import IS_BOOLEAN, Iterate, Option, Solver, Task

# So many passes come before the first that gives bounds: these would be far apart.
_FIRST_PASSES = 2
# With skip_satisfied, so many passes at most are not whole, and none where more than this share of the examples is not satisfied.
_MOST_SHORT_PASSES, _WORTH_SKIPPING = 10, 0.8
# With few weights, a run of the squared hinge whose first gap is more than this share of the primal begins anew at a C so many
# times smaller, which grows again by at most this factor at a time (as does the C of a path) once the problem is solved there: to
# this relative gap, or for so many rounds.
_FAR_OFF, _APPROACH_FROM, _APPROACH_STEP = 0.7, 1000.0, 1000.0 ** (1 / 9)
_APPROACH_TOL, _MOST_ROUNDS = 1e-3, 30
# So many steps at most, and what rounding may add to their number.
_MOST_STEPS, _ROUNDED_OFF = 60, 1e-6


class BlockDual(Solver):
    """Exact solves of one example's planes after another; see the module's text."""

    name = "block-dual"
    losses = frozenset({"hinge", "squared_hinge"})
    needs = frozenset({"max_oracle", "blocks"})
    options: ClassVar = {
        "max_planes": Option(
            10,
            lambda v: is_integer(v, 1),
            "an integer ≥ 1",
            "planes kept for each block; those with α > 0 stay even if they are more. Single rows need none.",
        ),
        "skip_satisfied": Option(
            False,
            *IS_BOOLEAN,
            "whether some passes ask the oracle only for examples that are not clearly satisfied; for searches that take long, "
            "not for single rows, whose search is their visit",
        ),
        "search_seconds": Option(
            None,
            lambda v: v is None or (is_number(v) and 0 < v <= 1e6),
            "a number in (0, 1e6] or None",
            "what the search of an example takes, about: the longer, the more sweeps come between searches. None: what is "
            "counted of searches in C++, 5e-5 for those in Python. Single rows have none",
        ),
        "sweeps": Option(
            None,
            lambda v: v is None or is_integer(v, 0),
            "an integer ≥ 0 or None",
            "sweeps without the oracle after each pass; None: for as long as they pay",
        ),
    }

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate for each oracle pass that gives bounds, or goes over the examples in parts."""
        self._blocks = None
        rows = task.problem.row_blocks(task.C, squared=task.loss == "squared_hinge")
        if rows is not None:
            self._blocks = blocks_of_rows = RowBlocks(task, rows, self.option["sweeps"])
            if planes is not None:
                blocks_of_rows.start_from(planes)
            else:
                blocks_of_rows.sweep(precise=self.precise)
            yield from self._row_rounds(blocks_of_rows)
        else:
            yield from self._iterate_general(task, planes)

    def _iterate_general(self, task: Task, planes: Any) -> Iterator[Iterate]:
        if task.problem.searches_in_python:
            yield from self._iterate_dear(task, planes)
            return
        blocks = PlaneBlocks(task, self.option)
        if planes is not None:
            blocks.start_from(planes)
        # Not before it has all planes: an interrupt leaves those there were.
        self._blocks = blocks
        if planes is None:
            if blocks.is_coarse and not blocks.can_overshoot:
                blocks.come_close(_FIRST_PASSES)
            else:
                blocks.first_passes(_FIRST_PASSES)
        if blocks.can_overshoot:
            yield blocks.evaluate(precise=self.precise)
            if not blocks.is_within(_FAR_OFF):
                yield blocks.evaluate_zero()
                self._blocks = blocks = self._approach(task, planes)
                yield blocks.evaluate(precise=self.precise)
            blocks.advance(precise=self.precise)
        yield from self._rounds(blocks)

    def _iterate_dear(self, task: Task, planes: Any) -> Iterator[Iterate]:
        blocks = DearBlocks(task, self.option)
        if planes is not None:
            blocks.start_from(planes)
        self._blocks = blocks
        yield from self._round(blocks)
        yield from self._dear_rounds(blocks)

    def _dear_rounds(self, blocks: DearBlocks) -> Iterator[Iterate]:
        n_short = n_in_parts = 0
        while True:
            if blocks.go_in_parts:
                skips = self.option["skip_satisfied"] and n_short < _MOST_SHORT_PASSES
                skips = skips and blocks.unsatisfied_share <= _WORTH_SKIPPING
                n_short = n_short + 1 if skips else 0
                yield blocks.pass_in_parts(skips_satisfied=skips)
                n_in_parts += 1
            # Bounds after 2, 4, 8, … passes show how far training is, to those who would break it off.
            is_due = n_in_parts > 1 and n_in_parts & (n_in_parts - 1) == 0
            if is_due or blocks.want_bounds or not blocks.go_in_parts:
                yield from self._round(blocks)
                n_short = 0

    def _approach(self, task: Task, planes: Any) -> PlaneBlocks:
        """Solve for a small C, where few planes do little harm, and return blocks that came up from it with those found."""
        blocks = PlaneBlocks(replace(task, C=task.C / _APPROACH_FROM, tol=_APPROACH_TOL), self.option)
        if planes is not None:
            blocks.start_from(planes)
        blocks.first_passes(_FIRST_PASSES)
        for _ in range(_MOST_ROUNDS):
            blocks.bounds(precise=False)
            if blocks.is_within(_APPROACH_TOL) or task.is_over:
                break
            blocks.advance(precise=False)
        self._change_to(task, blocks)
        if not task.is_over:
            blocks.first_passes(_FIRST_PASSES)
        return blocks

    def _change_to(self, task: Task, blocks: PlaneBlocks) -> None:
        """Go over to another C: in steps, where few planes are known that much above the last and w would overshoot."""
        if blocks.can_overshoot and task.C > blocks.task.C:
            n_steps = (np.log(task.C) - np.log(blocks.task.C)) / np.log(_APPROACH_STEP) - _ROUNDED_OFF
            for C in np.geomspace(blocks.task.C, task.C, min(int(np.ceil(n_steps)), _MOST_STEPS) + 1)[1:-1]:
                if not task.is_over:
                    blocks.continue_with(replace(task, C=float(C)))
                    blocks.first_passes(_FIRST_PASSES)
        blocks.continue_with(task)

    def resume(self, task: Task) -> Iterator[Iterate]:
        """Yield iterates for another C, from the blocks as they are."""
        self._precise = False
        blocks = self._blocks
        assert blocks is not None, "there is no run to resume"
        if isinstance(blocks, RowBlocks):
            blocks.continue_with(task)
            yield from self._row_rounds(blocks)
        else:
            self._change_to(task, blocks)
            is_close = blocks.came_close()
            if isinstance(blocks, DearBlocks):
                if is_close:
                    yield from self._round(blocks)
                else:
                    blocks.sweep_moving(precise=False)
                yield from self._dear_rounds(blocks)
            else:
                if not is_close:
                    blocks.come_close()
                yield from self._rounds(blocks)

    def _round(self, blocks: PlaneBlocks) -> Iterator[Iterate]:
        # A pass that is likely to be the last is made in double at once, or it would have to be made again.
        yield blocks.evaluate(precise=self.precise or blocks.is_near_end or blocks.seems_solved)
        blocks.advance(precise=self.precise)

    def _rounds(self, blocks: PlaneBlocks) -> Iterator[Iterate]:
        while True:
            yield from self._round(blocks)
            if self.option["skip_satisfied"]:
                yield from self._short_rounds(blocks)

    def _short_rounds(self, blocks: PlaneBlocks) -> Iterator[Iterate]:
        """Yield iterates of passes over the examples that are not satisfied, while these are few and the gap is large."""
        for _ in range(_MOST_SHORT_PASSES):
            if blocks.unsatisfied_share > _WORTH_SKIPPING:
                return
            yield blocks.evaluate_unsatisfied(precise=self.precise)
            if blocks.seems_done:
                return
            blocks.advance(precise=self.precise)

    def _row_rounds(self, blocks: RowBlocks) -> Iterator[Iterate]:
        yield blocks.evaluate(precise=self.precise)
        while True:
            if blocks.is_crawling:
                yield from blocks.move_together()
            else:
                blocks.sweep(precise=self.precise)
            yield blocks.evaluate(precise=self.precise)

    _blocks: PlaneBlocks | RowBlocks | None = None

    def planes(self) -> _core.PlaneBatch | None:
        """Return the planes of all blocks."""
        return None if self._blocks is None else self._blocks.planes()

    def unfinished(self) -> Iterate | None:
        """Return where the blocks are."""
        return None if self._blocks is None else self._blocks.unfinished()
