"""The blocks of block-dual that store planes: what they are visited and swept by, and how close to the optimum they are.

The iterations are told in block_dual.py.
"""

from __future__ import annotations

from collections import deque
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.weights import DenseWeights, aligned_zeros
from maxmargin.solvers._blocks import Blocks
from maxmargin.solvers._forecast import MEAN_LEAVES, Forecast
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers.base import Iterate, Task

# Blocks are left alone below a share of the mean gap of a block, and solved to a tenth of it; under the hinge visits are
# over-relaxed by a factor: at first, once the relative gap was small, because most planes are known then and closer solves take
# fewer passes, and where so many sweeps followed one pass of the run, because the blocks hinder each other.
_FAR, _NEAR, _SLOW = (0.15, 1.0), (0.07, 1.4), (0.03, 1.5)
_MANY_SWEEPS = 20
# The share where a gap of so much is good enough: few iterations follow that would profit from closer solves.
_COARSE_SHARE, _COARSE = 0.25, 0.05
# Passes without bounds ask the oracle for so many examples at a time, to fill threads with searches that take long; or for few
# where searching a stretch takes no more than so many times the reading of its rows, because later ones profit from what these
# changed. Visits take what it found a moment ago.
_FIRST_BATCH, _FEW_AT_A_TIME, _QUICK_SEARCH = 64, 4, 3.0
# A block that did not move at its last visit waits for the next pass.
_PATIENCE = 1
# Where searching a stretch takes more than so many times the reading of its rows, a number of visits search at once, in threads.
_CHEAP_SEARCH, _SEARCH_BATCH = 6.0, 32
# Sweeps search their stretches while more than this share of the visits finds a plane.
_WORTH_SEARCHING = 0.5
# Sweeps are slow when one brings more than this share of what the one before it did.
_SLOW_SWEEPS = 0.4
# The gap is, as a rule, at most so many times the sum of the blocks' own gaps at the last sweep, once most planes are known.
_SWEPT_LEAVES = 2.0
_MOST_SWEEPS = 100
# After a change of C the blocks are first solved so much more coarsely than at the end of the last: the gap is that much larger.
# So many sweeps, which search their stretches, do most of what an oracle pass would do then, in less time.
_COARSER, _SWEEPS_AT_CHANGE = 10.0, 2
# Passes without bounds that follow, at most, and the share of the gap that one leaves at most: where it falls more slowly, bounds
# tell what else may help.
_MOST_BLIND, _SLOW_FALL = 15, 0.8
# Where passes without bounds leave a little more than tol, so many more sweeps, to a closer tolerance, take less time than one
# more pass, and leave this share of the gap. Means are taken in passes that may come as close as that.
_MORE_SWEEPS, _MORE_LEAVES = 2, 0.8
# The pace at which the least gap falls is taken over so many iterations, because gaps rise and fall, by half, from one to the
# next; or over fewer, but no less than so many, that took as long as to move all planes together.
_WATCHED, _LEAST_WATCHED = 8, 4
# That ends when this share of the gap is left open; with no more than so many weights, whose steps take little, the second share.
# Where it does not get there, and leaves the gap as it was but for the last share, sweeps go on.
_JOINT_SHARE, _FEW_WEIGHTS, _CLOSER_SHARE, _NO_GAIN = 0.6, 256, 0.1, 0.01
# With a kernel the point is then that of α, which may leave far more: the share shrinks, down to the least, while more than this
# of the gap is left from one such move to the next.
_SLOW_ASCENT, _LEAST_SHARE = 0.5, 1e-8
# A sweep reads about so many rows, or short planes, in a second.
_ROWS_PER_SECOND = 1e7
# A product with the curvature of all planes takes this share of what their visits do: few planes are free, and nothing is solved.
_PRODUCT_SHARE = 0.13
# With a kernel they are moved to a smaller share of the gap, because the point is then that of α itself, by rows of features that
# are dense: that takes so many times as long.
_BY_FEATURES = 8.0


class Mean:
    """The mean of several w, the k-th with weight k."""

    def __init__(self) -> None:
        self._n = 0

    def add(self, w: Any) -> None:
        self._n += 1
        if self._n == 1:
            self.values = aligned_zeros(len(w), w.dtype.type)
            np.copyto(self.values, w)
        else:
            _core.mix(self.values, w, 2.0 / (self._n + 1))


class PlaneBlocks(Blocks):
    """Blocks that are solved exactly, and the iterations over them."""

    watched: ClassVar = ("oracle", "visits", "sweeps", "weights", "ascent")

    def __init__(self, task: Task, option: dict[str, Any]) -> None:
        super().__init__(task, by_components=task.loss == "hinge" and task.problem.space.has_components)
        self._problem = task.problem
        self._search_work = task.problem.decoding_work if self._by_components else 0.0
        self._max_planes: int = option["max_planes"]
        self._sweeps: int | None = option["sweeps"]
        self._search_cost = self._problem.search_work / max(
            self._problem.n_examples, 1
        )  # of one, in rows read meanwhile
        if option["search_seconds"] is not None:
            self._search_cost = option["search_seconds"] * _ROWS_PER_SECOND
        self._tolerance = 0.0
        self._found: _core.PlaneBatch = _core.PlaneBatch()
        self._asked = self._ids  # the examples that the oracle was asked for last
        self._slacks: FloatArray = np.zeros(self._problem.n_examples)  # when it was
        self.seems_done = False
        self._mean: DenseWeights | None = None
        self._shown = self.weights
        self._moves_together = False  # all planes, after each pass
        self._fell_short = False  # of the gap that the last such move was to leave
        self._joint_share, self._joint_gap = _CLOSER_SHARE, np.inf  # what it was to leave of the gap before it
        self._gaps: deque[float] = deque(maxlen=_WATCHED)
        self._watched_work = 0.0  # since the first of them, or longer
        self._forecast = Forecast()
        self._last_dual, self._swept_gap = 0.0, np.inf  # about the dual: a fresh sum, and what was gained since
        self._gain = self._work = self._visit_work = self._last_sweep_work = 0.0
        self._n_sweeps = self._n_added = 0
        self._needs_many_sweeps = False

    def planes(self) -> _core.PlaneBatch:
        """Return the planes of all blocks."""
        return self.sets.planes()

    @property
    def is_coarse(self) -> bool:
        """Whether so large a gap is enough that few iterations are needed, and no record of each."""
        return self.task.tol >= _COARSE

    def continue_with(self, task: Task) -> None:
        """Go over to another C: α becomes its multiple that is worth most there."""
        self._tolerance *= _COARSER
        self.task = task
        self._asked = self._ids
        self.total_budget = task.C_total
        self._last_dual = self.sets.rescale(task.C * self.sample_weight, self.weights.exact)
        self.weights.touch()
        self._has_moved = True
        self._sigma = 0.0
        self._go_on_by_sweeps()
        self._needs_many_sweeps = False
        self._forecast.begin_anew()
        self._gain, self._work = 0.0, 1.0
        for _ in range(_SWEEPS_AT_CHANGE):
            swept = self.sweep(self._rule(searches=True, drops=self._by_components), precise=False)
            self._count(swept)
            self._swept_gap = swept.gap

    def first_passes(self, n_passes: int) -> None:
        """Visit all examples, so many times, at the w that those before them left; sweep each time, and sum w anew at last."""
        for _ in range(n_passes):
            self._pass_without_bounds(None)
        self._show(None)

    def came_close(self) -> bool:
        """Return whether the sweeps at a change of C seem to have come close enough, and sum w anew for bounds if so."""
        expected = self._forecast.after_change.ratio * self._swept_share
        if expected > self.task.tol:
            return False
        self._forecast.expect(expected)
        self._forecast.after_change.met = self._swept_gap
        self._show(None)
        return True

    def come_close(self, n_first: int = 0) -> None:
        """Make so many such passes, then others for as long as the bounds that they could give instead would be far apart."""
        for _ in range(n_first):
            self._pass_without_bounds(None)
        tol, forecast = self.task.tol, self._forecast
        # Few planes are known in a first run: more sweeps over them leave the gap as it is.
        reachable = tol / _MORE_LEAVES if self._sweeps is None and n_first == 0 else tol
        mean, are_slow, expected = None, False, np.inf
        for _ in range(_MOST_BLIND):
            before = forecast.last
            mean = self._new_mean() if before < np.inf and forecast.comes_near(reachable) else None
            are_slow = self._pass_without_bounds(mean)
            now = forecast.after_passes.ratio * self._swept_share
            forecast.expect(now)
            left = MEAN_LEAVES if mean is not None and are_slow else 1.0
            forecast.after_passes.met, expected = left * self._swept_gap, left * now
            if expected <= reachable or now > _SLOW_FALL * before or self.task.is_over:
                break
        if tol < expected <= reachable and not self.task.is_over:
            forecast.after_passes.met *= _MORE_LEAVES
            self._sweep_more(mean)
        self._show(mean if are_slow else None)

    def _sweep_more(self, mean: Mean | None) -> None:
        """Make a few more sweeps, to a tolerance that fits what the last one met."""
        self._set_tolerance(self._swept_gap)
        for _ in range(_MORE_SWEEPS):
            self._sweep_once(mean, searches=True, precise=False)

    @property
    def _swept_share(self) -> float:
        """What the last sweep met of the blocks' own gaps, as a share of the dual."""
        return self._swept_gap / max(self._last_dual, self._swept_gap, float(np.finfo(float).tiny))

    def _pass_without_bounds(self, mean: Mean | None) -> bool:
        """Return whether sweeps were slow, as :meth:`_sweep_while_it_pays` does."""
        if 0.0 < self._swept_gap < np.inf:  # what the pass before this one saw is long closed
            self._set_tolerance(self._swept_gap)
        is_quick = self._by_components and self._search_work <= _QUICK_SEARCH
        batch_size = max(1, min(_FEW_AT_A_TIME if is_quick else _FIRST_BATCH, len(self._ids) // _FIRST_BATCH))
        oracle = self._problem.oracle(self.weights, precise=False)
        # A few quick searches are done before a thread has started.
        self._visit(oracle, batch_size, 1 if is_quick else self._problem.n_jobs, precise=False, searches=False)
        self._problem.count_calls(len(self._ids))
        return self._sweep_while_it_pays(mean, precise=False)

    @property
    def can_overshoot(self) -> bool:
        """Whether many examples may pull few weights much too far."""
        return self.squared and JointAscent.can_help(self._problem)

    def is_within(self, share: float) -> bool:
        """Return whether the last evaluation left no more than this share of the primal open."""
        return self._forecast.last <= share

    @property
    def is_near_end(self) -> bool:
        """Whether the next gap is likely to be within tol."""
        return self._forecast.comes_near(self.task.tol)

    @property
    def seems_solved(self) -> bool:
        """Whether the last sweep found the blocks solved; that of a first run's first planes says nothing of the others."""
        return self._forecast.has_begun and _SWEPT_LEAVES * self._swept_gap <= self.task.tol * self._last_dual

    def evaluate(self, *, precise: bool) -> Iterate:
        """Return the point of :meth:`bounds` with them."""
        primal, dual = self.bounds(precise=precise)
        return Iterate(self._shown, primal, precise, dual, details=self._details(), is_spare=self._shown is self._mean)

    def bounds(self, *, precise: bool) -> tuple[float, float]:
        """Search all examples at w, or at the mean of some: exact bounds, and the planes of the next visits."""
        w = self._shown
        self._search(self._problem.all_ids, precise=precise)
        primal, dual = self.primal(self._slacks, w), self.dual(afresh=False)
        self._set_tolerance(max(primal - dual, 0.0))
        self._notice_failure(primal - dual)
        self._forecast.learn(primal - dual, self._note_gap(primal, dual))
        self._last_dual = dual
        return primal, dual

    def _notice_failure(self, gap: float) -> None:
        """Go back to sweeps where moving all planes together did not get where it was to, and changed nothing."""
        if self._moves_together and self._fell_short and gap > (1.0 - _NO_GAIN) * self._gaps[-1]:
            self._go_on_by_sweeps()

    def _go_on_by_sweeps(self) -> None:
        self._moves_together = self._fell_short = False
        self._joint_share, self._joint_gap = _CLOSER_SHARE, np.inf
        self._gaps.clear()
        self._watched_work = 0.0

    def evaluate_zero(self) -> Iterate:
        """Return what weights of 0 are worth: no run that overshot is to end with less."""
        zero = self._problem.zero_weights()
        primal = self._problem.primal(zero, self.task.C, squared=self.squared)
        return Iterate(zero, primal, True, 0.0, details=self._details())

    def _note_gap(self, primal: float, dual: float) -> float:
        """Remember what an iteration left open, and return it as a share of the primal."""
        self._gaps.append(min(primal - dual, self._gaps[-1] if self._gaps else np.inf))
        return (primal - dual) / primal if primal > 0.0 else 0.0

    @property
    def unsatisfied_share(self) -> float:
        """The share of the examples that are not clearly satisfied."""
        return len(self._unsatisfied()) / max(len(self._ids), 1)

    def evaluate_unsatisfied(self, *, precise: bool) -> Iterate:
        """Search the examples that are not clearly satisfied: the planes of the next visits, and a guess at the gap."""
        self._search(self._unsatisfied(), precise=precise)
        guess, dual = self.primal(self._slacks, self._shown), self.dual(afresh=False)
        self._set_tolerance(max(guess - dual, 0.0))
        self.seems_done = guess - dual <= self.task.tol * guess
        self._forecast.expect(self._note_gap(guess, dual))
        return Iterate(self._shown, None, precise, dual, details=self._details())

    def _unsatisfied(self) -> IntArray:
        is_unsatisfied = self._slacks > 0.0
        is_unsatisfied[self.sets.carriers()] = True
        return self._ids[is_unsatisfied[self._ids]]

    def _search(self, ids: IntArray, *, precise: bool) -> None:
        """Find the most violated planes of examples at the weights shown; the slacks of the others count as 0."""
        self._asked = np.intersect1d(ids, self._ids, assume_unique=True)
        with self.watch("oracle"):
            self._found = self._problem.separate(ids, self._shown, precise=precise)
            self._slacks = np.zeros(self._problem.n_examples)
            known = self._problem.values_found(self._found, self._shown, precise=precise)
            self._slacks[ids] = self.values(self._found, ids, self._shown, known)

    def _details(self) -> dict[str, Any]:
        details = {
            "planes": self.sets.n_planes,
            "blocks": self.sets.n_blocks,
            "planes_added": self._n_added,
            "sweeps": self._n_sweeps,
            "joint_steps": self.read_joint_steps(),
            **self.watch.read(),
        }
        self._n_added = self._n_sweeps = 0
        return details

    def advance(self, *, precise: bool) -> None:
        """Visit the examples of the last pass with the planes that it found, then do what needs no search."""
        self._visit_found(precise=precise)
        if not self._moves_together:
            self.sweep_moving(precise=precise)
            self._watched_work += self._work
            self._moves_together = JointAscent.can_help(self._problem, self.sets.n_planes) and self._would_take_longer()
        if self._moves_together:
            with self.watch("ascent"):
                self._ascend_together()

    def _visit_found(self, *, precise: bool) -> None:
        found = _core.FoundPlanes(self._problem.space, self._found)
        self._visit(found, self._problem.n_examples, self._problem.n_jobs, precise=precise)

    def sweep_moving(self, *, precise: bool) -> None:
        """Sweep over the blocks that move while that pays, then sum w anew.

        Where sweeps are slow, blocks that pull at the same weights push these back and forth around the optimum: the mean over
        the sweeps is closer to it. It takes time and is needed but once, for the primal that ends training.
        """
        mean = self._new_mean() if self.is_near_end else None
        are_slow = self._sweep_while_it_pays(mean, precise=precise)
        self._show(mean if are_slow else None)

    def _new_mean(self) -> Mean | None:
        """Return a mean over the sweeps to come; none of scores, which say nothing of the coefficients that give them."""
        return Mean() if self._problem.has_vectors else None

    def _show(self, mean: Mean | None) -> None:
        """Sum w anew, and show it, or the mean."""
        self._sum_weights()
        self._shown = self.weights
        if mean is not None:
            with self.watch("weights"):
                self._show_values(mean.values)

    def _show_values(self, values: Any) -> None:
        self._mean = self._problem.zero_weights() if self._mean is None else self._mean
        self._mean.become(values)
        self._shown = self._mean

    def _sweep_while_it_pays(self, mean: Mean | None, *, precise: bool) -> bool:
        """Return whether the last sweep still moved blocks, and brought not much less than the one before it."""
        searches, are_slow, last_gain, k = True, False, 0.0, 0
        for k in range(_MOST_SWEEPS if self._sweeps is None else self._sweeps):
            swept = self._sweep_once(mean, searches=searches, precise=precise)
            searches = swept.added > _WORTH_SEARCHING * swept.visits
            pays = swept.gain * self._work > self._gain * swept.work
            are_slow, last_gain = swept.moves > 0 and swept.gain > _SLOW_SWEEPS * last_gain, swept.gain
            if swept.moves == 0 or self.task.is_over or (self._sweeps is None and k and not pays):
                break
        self._needs_many_sweeps |= k + 1 >= _MANY_SWEEPS
        return are_slow

    def _sweep_once(self, mean: Mean | None, *, searches: bool, precise: bool) -> _core.Sweep:
        swept = self.sweep(self._rule(searches=searches), precise=precise)
        self._count(swept)
        self._n_sweeps += 1
        self._swept_gap, self._last_sweep_work = swept.gap, swept.work
        if mean is not None:
            rounded = self._rounded(precise)
            with self.watch("weights"):
                mean.add(self.weights.exact if rounded is None else rounded)
        return swept

    def _would_take_longer(self) -> bool:
        """Return whether to go on at the pace of late is likely to take more time than to move all planes together."""
        gaps = self._gaps
        if len(gaps) < _LEAST_WATCHED or min(gaps) <= 0.0:
            return False
        expected = self._joint_work(self._visit_work)
        if len(gaps) < _WATCHED and self._watched_work < expected:
            return False
        pace = np.log(gaps[0] / gaps[-1]) / (len(gaps) - 1)
        to_go = np.log(self._forecast.last / self.task.tol) if self.task.tol > 0.0 else np.inf
        return bool(self._work * to_go > pace * expected)

    def _joint_work(self, sweep_work: float) -> float:
        """Return what it takes to move all planes together, where visits of all of them take this."""
        problem = self._problem
        if problem.has_vectors:
            n_touched = float(np.count_nonzero(self.weights.exact))
            return JointAscent.work(n_touched, problem.row_length, self.sets.n_planes, sweep_work, _PRODUCT_SHARE)
        n_weights = problem.n_joint_weights
        return _BY_FEATURES * JointAscent.work(n_weights, n_weights, self.sets.n_planes, sweep_work, _PRODUCT_SHARE)

    def _ascend_together(self) -> None:
        """Move all planes together, and show the point that is best for them, or that of α where w is scores."""
        if not self._problem.has_vectors and self._gaps[-1] > _SLOW_ASCENT * self._joint_gap:
            self._joint_share = max(_CLOSER_SHARE * self._joint_share, _LEAST_SHARE)
        self._joint_gap = self._gaps[-1]
        if self._problem.n_weights <= _FEW_WEIGHTS or not self._problem.has_vectors:
            # A share of a gap that is far larger than the dual would leave α as they are.
            wanted = self._joint_share * min(self._gaps[-1], self._last_dual or np.inf)
        else:
            wanted = _JOINT_SHARE * self._gaps[-1]
        joint = self.ascend_together(wanted)
        self._fell_short = joint.gap > wanted
        if self._problem.has_vectors:
            self._show_values(joint.w)
        else:
            self._show(None)

    def _visit(
        self, oracle: _core.Oracle, batch_size: int, n_jobs: int, *, precise: bool, searches: bool = True
    ) -> None:
        self._gain = 0.0
        self._work = self._search_cost * len(self._asked)
        # Planes without mass leave before the sweeps, which would only value them: searches find them again.
        rule = self._rule(searches=searches, drops=self._by_components)
        with self.watch("visits"):
            order = self.task.rng.permutation(self._asked)
            swept = self.sets.visit(oracle, order, batch_size, rule, self.weights.exact, self._rounded(precise), n_jobs)
        self._has_moved |= swept.moves > 0
        self._visit_work, self._swept_gap = swept.work, swept.gap
        self._count(swept)
        self._set_tolerance(swept.gap)

    def _set_tolerance(self, gap: float) -> None:
        """Ask for a share of the mean gap of a block, per unit of its budget."""
        n_blocks = max(self.sets.n_blocks, 1)
        share = _COARSE_SHARE if self.is_coarse else self._manner[0]
        self._tolerance = share * gap / self.total_budget * len(self._ids) / n_blocks

    @property
    def _manner(self) -> tuple[float, float]:
        return _SLOW if self._needs_many_sweeps else _NEAR if self._forecast.is_close else _FAR

    def _count(self, swept: _core.Sweep) -> None:
        self._gain += swept.gain
        self._last_dual += swept.gain
        self._work += swept.work
        self._n_added += swept.added

    @property
    def _patience(self) -> int | None:
        """How many visits without a move make a block wait for the next pass; None where it never does."""
        return _PATIENCE

    def _rule(self, *, searches: bool, drops: bool = False) -> _core.Rule:
        return _core.Rule(
            "exact",
            solve_above=self._tolerance,
            solve_to=0.1 * self._tolerance,
            max_planes=self._max_planes,
            searches=searches,
            search_work=self._search_work,
            search_batch=1 if self._search_work <= _CHEAP_SEARCH else _SEARCH_BATCH,
            patience=self._patience,
            relaxation=1.0 if self.squared else self._manner[1],
            drops_empty=drops,
            # Planes that are moved together were found at the point that is best for them: they join, though none is violated at
            # that of α, or would be found again and again.
            insert_above=-np.inf if self._moves_together else 0.0,
        )
