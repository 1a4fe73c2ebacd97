"""Several cuts in one iteration of the 1-slack method without more searches: beyond Guzman-Rivera, Kohli and Batra (2013).

The first cut is that of the most violated planes. Each of the others has, of a random half of the examples, the planes of this
exact pass, and of the others those of the exact pass before it: any choice of one plane of each example is a cut. Where the pass
was made for a cut alone (by a line search, or in portions), the examples are searched again.

Where vectors of all weights are short against the data of an example, s_i (Δ_i, ψ_i) of both passes are written out once, and
a mix is a sum of rows. Elsewhere sums of planes are changed into each other where they differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._cutting_planes import CutModel
from maxmargin.solvers._extra_cuts import Choices, ExtraCuts, RunningSum
from maxmargin.solvers.base import Record, Task


class MixedCuts(ExtraCuts):
    """Cuts of the most violated planes of two passes."""

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        super().__init__(task, options)
        self._rng = task.rng
        kind = MixedRows if self._problem.has_room_for(2) else MixedPlanes
        self._passes: MixedRows | MixedPlanes = kind(self._problem)
        if options["combination"] != "ordering":
            raise ValueError(
                f"solver_options: combination={options['combination']!r} is for several outputs of one search, which "
                "extra_cuts='mixed' has not."
            )

    def _find(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> _core.PlaneBatch:
        with model.watch("oracle"):
            return self._problem.separate(self._problem.all_ids, weights, precise=precise)

    def _first(self, best: _core.PlaneBatch) -> tuple[float, FloatArray]:
        return self._passes.begin(best)

    def _others(self, model: CutModel, weights: DenseWeights) -> Iterator[tuple[float, FloatArray]]:
        takes_last = self._rng.integers(2, size=(self._n_extra, self._problem.n_examples))
        mixes = self._passes.mixes(takes_last)
        while True:
            with model.watch("assembly"):
                mix = next(mixes, None)
            if mix is None:
                return
            yield mix

    def _details(self) -> Record:
        return {"diversity": [], "strengths": []}


class MixedRows:
    """Sums over the rows s_i (Δ_i, ψ_i) of two passes."""

    def __init__(self, problem: LinearProblem) -> None:
        self._problem = problem
        self._now, self._last = (np.zeros((problem.n_examples, 1 + problem.n_weights)) for _ in range(2))
        self._n_passes = 0

    def begin(self, planes: _core.PlaneBatch) -> tuple[float, FloatArray]:
        """Take the planes of another pass, and return their cut."""
        problem, ids = self._problem, planes.examples()
        self._now, self._last = self._last, self._now
        rows = self._now
        rows[...] = 0.0
        rows[ids, 0], rows[ids, 1:] = planes.losses(), problem.space.vectors(planes)
        rows *= problem.weight_of_examples[:, None]
        self._n_passes += 1
        return self._parts(rows.sum(axis=0))

    def mixes(self, takes_last: Any) -> Iterator[tuple[float, FloatArray]]:
        """Yield a cut for each row, which says whose planes are those of the last pass; none after the first pass."""
        if self._n_passes > 1:
            # Not BLAS: it would start threads of its own whatever n_jobs says.
            changes = np.einsum("mi,ij->mj", takes_last.astype(float), self._last - self._now)
            yield from map(self._parts, self._now.sum(axis=0) + changes)

    @staticmethod
    def _parts(total: FloatArray) -> tuple[float, FloatArray]:
        return float(total[0]), total[1:]


class MixedPlanes:
    """The same from planes as they are."""

    def __init__(self, problem: LinearProblem) -> None:
        self._problem, self._sums = problem, RunningSum(problem)
        self._now: _core.PlaneBatch | None = None
        self._last: _core.PlaneBatch | None = None

    def begin(self, planes: _core.PlaneBatch) -> tuple[float, FloatArray]:
        """Take the planes of another pass, and return their cut."""
        self._sums.begin_pass()
        self._now, self._last = planes, self._now
        return self._sums.of(planes)

    def mixes(self, takes_last: Any) -> Iterator[tuple[float, FloatArray]]:
        """Yield a cut for each row, which says whose planes are those of the last pass; none after the first pass."""
        if self._now is not None and self._last is not None:
            choice = Choices(self._problem, [self._now, self._last])
            for chosen in takes_last:
                yield self._sums.of(choice.batch(chosen))
