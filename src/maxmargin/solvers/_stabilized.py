"""The 1-slack method stabilised by a line search, beyond the paper.

The solution of the QP jumps about while there are few cuts. Here the search stays near the best point w̄ so far (Franc and
Sonnenburg 2009, OCAS): the objective over the cached planes is minimised on the line from w̄ to the QP's solution w, its minimiser
is the new w̄, and the next planes are found at w̄ + μ (w − w̄). Cached planes are valued once, at w; their values on the whole line
follow. If a cut made there does not cut w off, the cut at w itself is taken, which always does: the guarantees of the plain
method stand.

w̄ of linear scores is kept in float32: it only says where to look. What is reported is evaluated at the point where planes were
found.

Before that, a few passes of block coordinate ascent over the examples' planes build a dual point of the n-slack problem. Divided
by C it is one cut of the 1-slack problem (each example's planes mixed in one proportion), and the QP starts from it with the
same dual value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from itertools import count

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._blocks import solved_to
from maxmargin.solvers._cutting_planes import CutModel, Separator
from maxmargin.solvers.base import Iterate, Task

# How far beyond w̄, towards w, planes are searched for (OCAS's μ).
_LOOK_AHEAD = 0.1
_LINE_STEPS = 8
# Block ascent: the size and the number of groups of examples that the oracle is asked for together (enough to share out among
# workers), sweeps without the oracle after each pass, and the gap per unit of C_i that a block is solved to.
_GROUP_SIZE = 16
_MOST_GROUPS = 1000
_SWEEPS = 5
_BLOCK_TOLERANCE = 1e-3


def block_passes(
    task: Task, n_passes: int | None, wanted_gap: Callable[[float], float], model: CutModel, separator: Separator
) -> Iterator[Iterate]:
    """Yield an iterate for each pass over the data; afterwards the model has their aggregate as its first cut.

    ``n_passes=None`` goes on while a pass raises the dual by a twentieth of the gap that is wanted at that dual and by a
    twentieth of the gap that there is, or takes a tenth off the latter: near the end it is the primal that moves. With a large C
    examples push each other back and forth, and cuts, which move all of them at once, get further.

    The oracle is asked for a few examples at a time, at the weights that the ones before them left: planes found at one fixed
    point for all examples would be wrong in the same way.
    """
    problem, C = task.problem, task.C
    if n_passes == 0:
        return
    s = problem.weight_of_examples
    sets = _core.WorkingSets(problem.space, C * s, False, problem.nonnegative)
    w = problem.zero_weights()
    groups = np.array_split(problem.all_ids, max(1, min(_MOST_GROUPS, problem.n_examples // _GROUP_SIZE)))
    order = np.arange(len(groups))
    dual, lowest, gap = 0.0, np.inf, np.inf
    for k in count():
        # One pass at a fixed point evaluates the objective; its planes are as good as any.
        with model.watch("oracle"):
            batch = problem.separate(problem.all_ids, w, precise=False)
        separator.keep(batch, problem.all_ids, w)
        values = np.maximum(batch.losses() - problem.space.dots(batch, w.exact), 0.0)
        before, dual = dual, sets.linear_part() - 0.5 * w.norm2()
        primal = 0.5 * w.norm2() + C * float(s[batch.examples()] @ values)
        yield Iterate(w, primal, False, dual)
        lowest = min(lowest, primal)
        last_gap, gap = gap, lowest - dual
        pays = dual - before > max(0.05 * wanted_gap(dual), 0.05 * gap) or gap < 0.9 * last_gap
        if k == n_passes or task.is_over or (k and n_passes is None and not pays):
            break
        for group in order:
            with model.watch("oracle"):
                batch = problem.separate(groups[group], w, precise=True)
            separator.keep(batch, groups[group], w)
            with model.watch("qp"):
                sets.insert(batch, w.exact, 0.0)
                sets.sweep(groups[group], solved_to(_BLOCK_TOLERANCE), w.exact)
            if task.is_over:
                break
        with model.watch("qp"):
            for _ in range(_SWEEPS):
                sets.sweep(task.rng.permutation(problem.n_examples), solved_to(_BLOCK_TOLERANCE), w.exact)
        sets.weights(w.exact)
        w.touch()
        order = task.rng.permutation(len(groups))
    total = np.zeros(problem.n_weights)
    sets.sum(total)
    model.cuts.load(sets.linear_part() / C, total / C)
    model.keep_pending()


class LineSearchSeparator(ABC):
    """Makes cuts near the best point on the line from the last one to the QP's solution."""

    def __init__(self, problem: Problem, model: CutModel, C: float) -> None:
        self.point: DenseWeights = problem.zero_weights()
        self._problem = problem
        self._model = model
        self._C = C
        self._best = self.point.anchor()

    def start_at(self, weights: DenseWeights) -> None:
        """Make a point that was found elsewhere the best one."""
        self._best.become(weights)

    @abstractmethod
    def separate(self, needed: float) -> bool:
        """Make the next cut the model's pending one; return whether it is that of all most violated planes at ``point``.

        ``needed`` is the value at the QP's solution that a cut must exceed to be taken from cached planes.
        """

    def _set_point(self) -> None:
        """Put ``point`` a little beyond w̄, towards w."""
        self._best.place(self.point, self._model.weights, _LOOK_AHEAD)

    def _find_step(self, planes_slope: Callable[[float], float]) -> float:
        """Move w̄ to the minimum of the objective on the line from w̄ to w; return how far along it that is."""
        best, w = self._best, self._model.weights
        along = best.dot(w)
        squared_length = max(best.norm2 - 2.0 * along + self._model.norm2, 0.0)
        slope_at_best = along - best.norm2
        t = _root(lambda t: slope_at_best + t * squared_length + self._C * planes_slope(t))
        if t > 0.0:
            best.move(w, t, best.norm2 + 2.0 * t * slope_at_best + t * t * squared_length)
        return t


class CachedLineSearch(LineSearchSeparator):
    """The objective on the line is that of the cached planes: for models whose search is dear."""

    def __init__(
        self, problem: Problem, model: CutModel, C: float, separator: Separator, cache: _core.PlaneCache
    ) -> None:
        super().__init__(problem, model, C)
        self._separator = separator
        self._cache = cache

    def separate(self, needed: float) -> bool:
        """Take the cut of the best cached planes if it is worth ``needed``, else ask the oracle."""
        model, problem, w = self._model, self._problem, self._model.weights
        if self._cache.n_planes:
            with model.watch("cache"):
                self._cache.evaluate_anchor(self._best.rounded, problem.n_jobs)
                self._cache.evaluate(w.exact, w.rounded, problem.n_jobs)
                t = self._find_step(lambda t: self._cache.slope(t, problem.sample_weight))
                self._cache.move_anchor(t)
            self._separator.load_best(model, _LOOK_AHEAD)
            if model.pending_value(w) > needed:
                return False
        self._set_point()
        return self._separator.ask_all(model, self.point, precise=False)


class ScoredLineSearch(LineSearchSeparator):
    """The objective on the line is the exact one, from all scores at w̄ and at w: where search is a glance at scores."""

    def __init__(self, problem: Problem, model: CutModel, C: float, line: _core.ScoreLine) -> None:
        super().__init__(problem, model, C)
        self._line = line

    def start_at(self, weights: DenseWeights) -> None:
        """Make a point that was found elsewhere the best one."""
        super().start_at(weights)
        self._line.evaluate(weights.rounded, self._problem.n_jobs)
        self._line.move_anchor(1.0)

    def separate(self, needed: float) -> bool:
        """Make the exact cut at ``point``."""
        model, problem = self._model, self._problem
        with model.watch("oracle"):
            self._line.evaluate(model.weights.rounded, problem.n_jobs)
        with model.watch("cache"):
            t = self._find_step(lambda t: self._line.slope(t, problem.sample_weight, problem.n_jobs))
            self._line.move_anchor(t)
        with model.watch("assembly"):
            self._set_point()
            if problem.always_precise:
                problem.separate_into(model.cuts, self.point, precise=True)
            else:
                problem.count_calls(len(problem.searched_ids))
                loss, total, _ = self._line.cut(_LOOK_AHEAD, problem.sample_weight, problem.n_jobs)
                model.cuts.load(loss, total)
        return True


def _root(slope: Callable[[float], float]) -> float:
    """Return where a rising function crosses 0 in [0, 1], nearly; the end it does not reach 0 before otherwise."""
    at_low, at_high = slope(0.0), slope(1.0)
    if at_low >= 0.0:
        return 0.0
    if at_high <= 0.0:
        return 1.0
    low, high = 0.0, 1.0
    for k in range(_LINE_STEPS):
        # The secant is fast where slopes are near linear; every other step halves the interval, which always works.
        t = low - at_low * (high - low) / (at_high - at_low) if k % 2 == 0 else 0.5 * (low + high)
        at_t = slope(t)
        if at_t < 0.0:
            low, at_low = t, at_t
        else:
            high, at_high = t, at_t
    return low - at_low * (high - low) / (at_high - at_low) if at_high > at_low else 0.5 * (low + high)
