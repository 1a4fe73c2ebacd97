"""Block-dual where an example is one row with one label: a visit scores the row, and with it every plane of the example.

There is nothing for an oracle to find then, and one iteration is

  1. sweeps over the blocks that are far from their optimum, each solved in closed form, until they see but a share of the gap;
  2. a pass over all examples at the w which that gave: the exact primal, and the blocks that are far from their optimum now.

Blocks that a visit finds near their optimum rest until the next pass (the shrinking of Hsieh et al. 2008, by gaps): they hold a
small share of the gap, and a sweep that solved the others much further would solve a problem without them.

With a kernel scores of all rows are known throughout. Sweeps take the rows that gain most, some at a time, and none rests
(cpp/solvers/sign_rows.hpp and label_batches.cpp).

Where many examples pull at few weights sweeps can crawl; then all rows are moved together, see _joint_ascent.py. Visits are
counted and compared with what that would take, so that results repeat.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import Iterate, Task

# Blocks rest while their gap, per unit of C_i, is below this share of the mean.
_TOLERANCE_SHARE = 0.15
# Sweeps end when they see this share of the gap of the last pass, or less where that reduced the gap too little.
_REDUCTION, _SLOW = 0.3, 0.7
# Or where all of it is this share of the tolerance: of gaps that visits see, and of those at scores of all rows.
_CLOSE, _CLOSE_BY_SCORES = 0.5, 0.9
# In any case they end when they have visited so many times all examples, or this share of all visits before.
_MOST_ROUNDS, _VISIT_SHARE = 3.0, 0.25
# With a kernel, scores are summed again after so many visits of all examples.
_WORN = 50.0
# Sweeps are not judged before so many visits of all examples.
_EARLY_ROUNDS = 10.0
# With a kernel rows are moved together to this share of the gap that is asked for: the point is then that of α itself. It takes
# so many times as many steps as with features, since only a large C makes pairs of rows crawl. Matrices are factored so much
# faster than numbers are read in visits, and a column of kernel values takes so many of these.
_SHARE_OF_TOL, _MORE_STEPS, _FASTER_MATRICES, _VISITS_PER_COLUMN = 0.2, 8.0, 8.0, 10.0
# Without a tolerance, this is the relative gap that they would have to reach.
_LEAST_TOL = 1e-9


class RowBlocks:
    """All examples' α, and the weights they give."""

    def __init__(self, task: Task, blocks: _core.RowBlocks, max_sweeps: int | None) -> None:
        problem = task.problem
        self._task, self._problem, self._blocks = task, problem, blocks
        self._weights: DenseWeights = problem.zero_weights()
        # The first sweep after a pass is what visits are elsewhere.
        self._most_sweeps = np.inf if max_sweeps is None else 1 + max_sweeps
        self._budget, self._n_weighted = task.C_total, len(problem.searched_ids)
        self._tolerance = self._dual = 0.0
        self._gap: float | None = None
        self._reduction = _REDUCTION
        self._halved_at: tuple[float, int] = np.inf, 0  # the gap when it last fell by half, and the visits before
        self._primal = np.inf
        self._can_move_together = self._may_move_together()
        self._is_summed = True  # whether the weights are those of the blocks' α, as far as sweeps move them
        self._summed_at = 0  # the visits before scores were last summed for their age
        self._n_planes = self._n_sweeps = self._n_visits = self._all_visits = self._n_joint_steps = 0
        self._watch = Stopwatch("oracle", "visits", "sweeps", "weights", "ascent")

    def planes(self) -> _core.PlaneBatch:
        """Return the planes that carry mass."""
        return self._blocks.planes()

    def start_from(self, planes: _core.PlaneBatch) -> None:
        """Take over the α of an earlier run, at whatever C: cut to the budgets each by itself or all alike, as is worth more."""
        is_cut, apart = self._start(planes, all_alike=False)
        if is_cut and self._start(planes, all_alike=True)[1] < apart:
            self._start(planes, all_alike=False)

    def _start(self, planes: _core.PlaneBatch, *, all_alike: bool) -> tuple[bool, float]:
        """Return whether α was beyond the budgets, and the dual that there is then."""
        is_cut = self._replace_alpha(planes, all_alike=all_alike)
        self._rescale(1.0)
        return is_cut, self._blocks.linear_part() - 0.5 * self._weights.norm2()

    def continue_with(self, task: Task) -> None:
        """Go over to another C: α becomes its multiple that is worth most there, and evaluate() has to come next."""
        ratio = task.C / self._task.C
        self._task = task
        self._budget *= ratio
        self._rescale(ratio)
        self._gap = None
        self._can_move_together = self._may_move_together()
        self._reduction = _REDUCTION
        self._halved_at = np.inf, self._all_visits

    def _replace_alpha(self, planes: _core.PlaneBatch, *, all_alike: bool = False) -> bool:
        """Take over the α of planes, and sum w; return whether they were beyond the budgets."""
        self._is_summed = False
        is_cut = self._blocks.start(planes, all_alike)
        self._problem.sum_rows(self._blocks, self._weights, afresh=True)
        self._is_summed = True
        return is_cut

    def _rescale(self, ratio: float) -> None:
        self._is_summed = False
        self._weights.scale(self._blocks.rescale(ratio, self._weights.norm2()))
        self._is_summed = True

    def _may_move_together(self) -> bool:
        problem = self._problem
        return not problem.has_vectors or JointAscent.can_help(problem, problem.n_row_labels)

    @property
    def is_crawling(self) -> bool:
        """Whether sweeps would take longer, at the pace of the last halving of the gap, than to move all rows together."""
        n = max(self._problem.n_examples, 1)
        n_rounds = (self._all_visits - self._halved_at[1]) / n
        if self._gap is None or self._all_visits < _EARLY_ROUNDS * n or not self._can_move_together:
            return False
        to_go = np.log2(max(self._gap, 0.0) / (max(self._task.tol, _LEAST_TOL) * self._primal) + 1.0)
        return bool(n_rounds * to_go * n > self._joint_work(n))

    def _joint_work(self, n: int) -> float:
        """Return what it may take to move all rows together, in visits of a row."""
        problem = self._problem
        if problem.has_vectors:
            n_touched = int(np.count_nonzero(self._weights.exact))
            return JointAscent.work(n_touched, problem.row_length, self._n_planes, n)
        rank = problem.feature_rank()
        if rank is None:
            return np.inf
        # A visit reads a column of all rows' values, a row of features has but the rank; these are made of all values.
        n_weights = float(rank) * problem.n_weights / n
        steps = _MORE_STEPS * JointAscent.work(n_weights, n_weights, self._n_planes, n) * rank / n
        return steps + rank**2 / _FASTER_MATRICES + _VISITS_PER_COLUMN * n

    def move_together(self) -> Iterator[Iterate]:
        """Yield an iterate after each step of all rows, until rounding leaves nothing to gain."""
        if not self._problem.has_vectors:
            self._move_features_together()
            return
        joint = JointAscent(self._task, self._blocks.together(), self._weights.exact, self._dual)
        shown, is_on = self._problem.zero_weights(), True
        while is_on:
            with self._watch("ascent"):
                is_on = joint.advance(0.5 * self._task.tol * joint.dual)
            shown.become(joint.w)
            self._n_joint_steps, n_passes = joint.read()
            self._problem.count_calls(n_passes * self._n_weighted)
            with self._watch("weights"):
                self._problem.sum_rows(self._blocks, self._weights, afresh=True)
            yield Iterate(shown, joint.primal, True, joint.dual, details=self._details())
        self._gap, self._can_move_together = None, False

    def _move_features_together(self) -> None:
        """Move the α of a kernel's rows by features that have its values as products; the kernel's own scores follow."""
        task, squared = self._task, self._task.loss == "squared_hinge"
        with self._watch("ascent"):
            features = self._problem.with_features()
            blocks = None if features is None else features.row_blocks(task.C, squared=squared)
            if features is not None and blocks is not None:
                blocks.start(self._blocks.planes(), False)
                w = np.zeros(features.n_weights)
                blocks.weights(w)
                dual = blocks.linear_part() - 0.5 * float(w @ w)
                joint = JointAscent(replace(task, problem=features), blocks.together(), w, dual)
                joint.ascend(_SHARE_OF_TOL * task.tol * max(dual, self._dual))
                self._n_joint_steps, _ = joint.read()
                self._replace_alpha(blocks.planes())
        self._gap, self._can_move_together = None, False

    def sweep(self, *, precise: bool) -> None:
        """Sweep over the blocks that move until a pass over all examples is due, then sum w anew."""
        most_visits = max(_MOST_ROUNDS * self._problem.n_examples, _VISIT_SHARE * self._all_visits)
        close = self._task.tol * (_CLOSE if self._problem.has_vectors else _CLOSE_BY_SCORES)
        while self._blocks.n_active and self._n_visits < most_visits and self._n_sweeps < self._most_sweeps:
            with self._watch("sweeps" if self._n_sweeps else "visits"):
                seed = int(self._task.rng.integers(2**63))
                enough = 0.0 if self._gap is None else max(close * self._dual, self._reduction * self._gap)
                swept = self._blocks.sweep(self._tolerance, seed, *self._moving(precise), enough=enough)
            self._dual += swept.gain
            self._n_sweeps += 1
            self._n_visits += swept.visits
            if self._gap is None:
                self._gap = swept.gap
                self._rest_below(swept.gap)
            is_close = swept.gap <= close * self._dual
            if is_close or swept.gap <= self._reduction * self._gap or self._task.is_over:
                break
        self._all_visits += self._n_visits
        # Scores that were moved so often are summed again: what each move rounds off adds up.
        is_worn = (
            self._all_visits - self._summed_at > _WORN * self._problem.n_examples and not self._problem.has_vectors
        )
        self._summed_at = self._all_visits if is_worn else self._summed_at
        with self._watch("weights"):
            self._problem.sum_rows(self._blocks, self._weights, afresh=is_worn)

    def evaluate(self, *, precise: bool) -> Iterate:
        """Return exact bounds at w, and wake the blocks that are far from their optimum."""
        problem, w = self._problem, self._weights
        with self._watch("oracle"):
            cost = self._blocks.evaluate(w.exact, self._moving(precise)[1], problem.n_jobs)
        problem.count_calls(self._n_weighted)
        norm2 = w.norm2()
        primal, dual = 0.5 * norm2 + cost, self._blocks.linear_part() - 0.5 * norm2
        self._primal, self._dual = primal, dual
        gap = max(primal - self._dual, 0.0)
        # Blocks see their gaps when they are visited, before others move w: where that said too little, sweeps go on longer.
        is_slow = self._gap is not None and gap > _SLOW * self._gap
        self._reduction = 0.5 * self._reduction if is_slow else min(_REDUCTION, 2.0 * self._reduction)
        self._gap = gap
        if gap <= 0.5 * self._halved_at[0]:
            self._halved_at = gap, self._all_visits
        self._rest_below(gap)
        self._blocks.activate(self._tolerance)
        return Iterate(w, primal, precise, self._dual, details=self._details())

    def unfinished(self) -> Iterate | None:
        """Return the point of the current α, whatever stopped its moves, and the dual.

        With a kernel its scores moved with α, and are not summed again; None where they do not belong to it.
        """
        if not self._problem.has_vectors and not self._is_summed:
            return None
        self._problem.sum_rows(self._blocks, self._weights, afresh=self._problem.has_vectors)
        return Iterate(self._weights, dual=self._blocks.linear_part() - 0.5 * self._weights.norm2())

    def _details(self) -> dict[str, Any]:
        before, self._n_planes = self._n_planes, self._blocks.n_planes
        details = {
            "planes": self._n_planes,
            "planes_added": max(0, self._n_planes - before),
            "blocks": self._blocks.n_active,
            "sweeps": self._n_sweeps,
            "visits": self._n_visits,
            "joint_steps": self._n_joint_steps,
            **self._watch.read(),
        }
        self._n_sweeps = self._n_visits = self._n_joint_steps = 0
        return details

    def _rest_below(self, gap: float) -> None:
        self._tolerance = _TOLERANCE_SHARE * gap / self._budget if self._budget > 0.0 else 0.0

    def _moving(self, precise: bool) -> tuple[FloatArray, Any]:
        is_rounded = not precise and not self._problem.always_precise
        return self._weights.exact, self._weights.rounded if is_rounded else None
