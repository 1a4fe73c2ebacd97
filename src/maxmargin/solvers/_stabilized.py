"""The 1-slack method stabilised by a line search, beyond the paper.

The solution of the QP jumps about while there are few cuts. Here the search stays near the best point w̄ so far (Franc and
Sonnenburg 2009, OCAS): the objective over the cached planes is minimised on the line from w̄ to the QP's solution w, its minimiser
is the new w̄, and the next planes are found at w̄ + μ (w − w̄). Cached planes are valued once, at w; their values on the whole line
follow. If a cut made there does not cut w off, the cut at w itself is taken, which always does: the guarantees of the plain
method stand.

w̄ is kept in float32: it only says where to look. What is reported is evaluated at the point where planes were found.

Before that, a few passes of block coordinate ascent over the examples' planes build a dual point of the n-slack problem. Divided
by C it is one cut of the 1-slack problem (each example's planes mixed in one proportion), and the QP starts from it with the
same dual value.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from maxmargin import _core
from maxmargin.problem import Problem
from maxmargin.solvers._cutting_planes import CutModel, Separator
from maxmargin.solvers.base import Iterate, Task
from maxmargin.weights import DenseWeights

# How far beyond w̄, towards w, planes are searched for (OCAS's μ).
_LOOK_AHEAD = 0.1
_BISECTIONS = 12
# Block ascent: groups of examples that the oracle is asked for together, sweeps without the oracle after each pass, and
# the gap per unit of C_i that a block is solved to.
_GROUPS = 1000
_SWEEPS = 5
_BLOCK_TOLERANCE = 1e-3


def block_passes(task: Task, n_passes: int, model: CutModel, separator: Separator) -> Iterator[Iterate]:
    """Yield an iterate for each pass over the data; afterwards the model has their aggregate as its first cut.

    The oracle is asked for a few examples at a time, at the weights that the ones before them left: planes found at one fixed
    point for all examples would be wrong in the same way.
    """
    problem, C = task.problem, task.C
    if not n_passes:
        return
    s = np.ones(problem.n_examples) if problem.sample_weight is None else problem.sample_weight
    sets = _core.WorkingSets(problem.space, C * s, False, problem.nonnegative)
    w = problem.zero_weights()
    groups = np.array_split(problem.all_ids, min(_GROUPS, problem.n_examples))
    for _ in range(n_passes):
        for group in task.rng.permutation(len(groups)):
            with model.watch("oracle"):
                batch = problem.separate(groups[group], w, precise=True)
            separator.keep(batch, groups[group], w)
            with model.watch("qp"):
                sets.insert(batch, w.exact, 0.0)
                sets.sweep(groups[group], _BLOCK_TOLERANCE, w.exact)
        with model.watch("qp"):
            for _ in range(_SWEEPS):
                sets.sweep(task.rng.permutation(problem.n_examples), _BLOCK_TOLERANCE, w.exact)
        sets.weights(w.exact)
        w.touch()
        yield Iterate(dual=sets.linear_part() - 0.5 * w.norm2())
    total = np.zeros(problem.n_weights)
    sets.sum(total)
    model.cuts.load(sets.linear_part() / C, total / C)
    model.keep_pending()


class LineSearchSeparator:
    """Makes cuts near the best point on the line from the last one to the QP's solution."""

    def __init__(self, problem: Problem, separator: Separator, model: CutModel, C: float) -> None:
        assert separator.cache is not None
        self._problem = problem
        self._separator = separator
        self._cache: _core.PlaneCache = separator.cache
        self._model = model
        self._C = C
        self._best = np.zeros(problem.n_weights, np.float32)
        self._best_norm2 = 0.0
        self.point: DenseWeights = problem.zero_weights()

    def start_at(self, weights: DenseWeights) -> None:
        """Make a point that was found elsewhere the best one."""
        np.copyto(self._best, weights.rounded)
        self._best_norm2 = weights.norm2()

    def separate(self, needed: float, *, precise: bool) -> bool:
        """Make the next cut the model's pending one; return whether it is exact, at ``point``.

        ``needed`` is the value at the QP's solution that a cut must exceed to be taken from the cache.
        """
        model, problem, w = self._model, self._problem, self._model.weights
        if self._cache.n_planes:
            with model.watch("cache"):
                self._cache.evaluate_anchor(self._best, problem.n_jobs)
                self._cache.evaluate(w.exact, w.rounded, problem.n_jobs)
                self._move_best()
                batch = self._cache.best(_LOOK_AHEAD)
            with model.watch("assembly"):
                model.cuts.assemble(problem.space, batch, problem.sample_weight)
                if model.pending_value(w) > needed:
                    return False
        self.point.exact[:] = (1.0 - _LOOK_AHEAD) * self._best
        self.point.exact += _LOOK_AHEAD * w.exact
        self.point.touch()
        self._separator.ask_all(model, self.point, precise=precise)
        return True

    def _move_best(self) -> None:
        """Move w̄ to the minimum over the cached planes of the objective on the line from w̄ to w."""
        w = self._model.weights
        along = _core.dot_float(self._best, w.rounded)
        w_norm2 = self._model.norm2
        squared_length = max(self._best_norm2 - 2.0 * along + w_norm2, 0.0)
        slope_at_best = along - self._best_norm2

        def slope(t: float) -> float:
            return slope_at_best + t * squared_length + self._C * self._cache.slope(t, self._problem.sample_weight)

        low, high = 0.0, 1.0
        if slope(1.0) <= 0.0:
            low = 1.0
        elif slope(0.0) >= 0.0:
            high = 0.0
        else:
            for _ in range(_BISECTIONS):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
        t = 0.5 * (low + high)
        if t > 0.0:
            _core.mix_float(self._best, w.rounded, t)
            self._cache.move_anchor(t)
            self._best_norm2 += 2.0 * t * slope_at_best + t * t * squared_length
