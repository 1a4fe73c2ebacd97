"""Several cuts in one iteration of the 1-slack method (Guzman-Rivera, Kohli and Batra 2013, DivMCuts).

The first is the cut of all most violated planes, so that every guarantee stands. M − 1 more are made of other outputs of each
example, found at the same w: diverse ones, the next best, or random ones. Diverse outputs are steered: the strength λ_j, with
which output j repels those after it, follows a set point K of the share of places in which outputs j and j + 1 differ,

    λ_j ← λ_j (1 + ½ (K − K̄_j) / max(K, K̄_j))

Random outputs are the best one with each place relabelled with probability K: they differ from it, not from the one before, by K.

Cuts without searches of their own, beyond the paper: see ``_mixed_cuts.py``.

How outputs become cuts:

    ordering    cut m is made of the m-th output of every example
    violation   of the m-th in the order of their values: DOP1 without its quadratic term, where each output is used once
    dual        cut m takes that output of each example which raises the dual most in a line search from w towards the cut,
                (C c − b − w·u)² / ‖u‖² with u = C g − w, by coordinate ascent over the examples: DOP1, relaxed
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._cutting_planes import CutModel, Separator
from maxmargin.solvers.base import Record, Task

SOURCES = ("diverse", "m-best", "random", "mixed")
COMBINATIONS = ("ordering", "violation", "dual")
# Sums of planes are changed into each other, where few labels differ. Rounding gathers: they start afresh after so many passes.
_SUMMED_AFRESH = 20
# Coordinate ascent goes over the examples so many times.
_SWEEPS = 2
NOTHING_ADDED: Record = {"extra_violations": None, "diversity": None, "strengths": None}


class ExtraCuts(ABC):
    """The cuts of an iteration beyond the first."""

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        problem = task.problem
        if not isinstance(problem, LinearProblem) or not problem.space.has_places:
            raise ValueError(
                "solver_options: cuts_per_iteration above 1 needs outputs that are labels of places (Multiclass, Chain or "
                "Pairwise) and rescaling='margin'."
            )
        self._problem = problem
        self._most = int(options["cuts_per_iteration"])
        self._annealing = float(options["cut_annealing"])
        self._n_made = 0
        self._best: _core.PlaneBatch | None = None  # the most violated planes, once those of this iteration are found
        self.record: Record = NOTHING_ADDED  # what the history says of the cuts that were added last

    def separate(self, model: CutModel, separator: Separator, *, precise: bool) -> bool:
        """Make the most violated cut the model's pending one, from the same search as the others; False where there are none.

        Its planes alone enter the cache.
        """
        if self._n_extra == 0:
            return False
        self._best = self._find(model, model.weights, precise=precise)
        separator.keep(self._best, self._problem.all_ids, model.weights)
        separator.forget_unused()
        with model.watch("assembly"):
            model.cuts.load(*self._first(self._best))
        return True

    def add(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> None:
        """Keep more cuts found at these weights, where the most violated one has been kept; the QP is yet to be solved."""
        self.record = NOTHING_ADDED
        if self._n_extra > 0:
            if self._best is None:
                self._first(self._find(model, weights, precise=precise))
            values = []
            for loss, total in self._others(model, weights):
                model.cuts.load(loss, total)
                values.append(model.pending_value(model.weights))
                model.keep_pending()
            violations = [self._problem.mean_of(value - model.slack) for value in values]
            self.record = {"extra_violations": violations, **self._details()}
        self._best = None
        self._n_made += 1

    @property
    def _fade(self) -> float:
        return self._annealing**self._n_made

    @property
    def _n_extra(self) -> int:
        return min(self._most, max(1, round(self._most * self._fade))) - 1

    @abstractmethod
    def _find(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> _core.PlaneBatch:
        """Search for what the cuts of this iteration are made of, and return the most violated planes."""

    @abstractmethod
    def _first(self, best: _core.PlaneBatch) -> tuple[float, FloatArray]:
        """Return the cut of the most violated planes, which may be better ones than were found where a search is not exact."""

    @abstractmethod
    def _others(self, model: CutModel, weights: DenseWeights) -> Iterator[tuple[float, FloatArray]]:
        """Yield the other cuts of this iteration, each of which may stand where the one before it stood."""

    @abstractmethod
    def _details(self) -> Record:
        """Return what the history says of them beside their violations."""


class OutputCuts(ExtraCuts):
    """Cuts of several outputs of each example that were found at the same w."""

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        super().__init__(task, options)
        self._C, self._rng = task.C, task.rng
        self._share = float(options["diversity"])
        self._source, self._combination = options["extra_cuts"], options["combination"]
        self._strengths = np.full(self._most - 1, float(options["initial_strength"]))
        self._found: list[_core.PlaneBatch] = []
        self._used = self._shares = np.zeros(0)  # strengths and diversity of that search
        self._sums = RunningSum(self._problem)
        if self._combination == "dual" and not self._problem.has_vectors:
            raise ValueError(
                "solver_options: combination='dual' needs products of planes, which exact kernels have not."
            )

    def _find(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> _core.PlaneBatch:
        """Search for the outputs of all examples, and steer the strengths of the next search."""
        self._sums.begin_pass()
        problem, n, wanted = self._problem, self._n_extra, self._share * self._fade
        self._used = np.full(n, wanted) if self._source == "random" else self._strengths[:n].copy()
        with model.watch("extra"):
            self._found, diversity, most = problem.variants(
                weights, self._source, self._used, int(self._rng.integers(2**62))
            )
        self._shares = diversity / most if most > 0.0 else np.zeros(n)
        if self._source == "diverse":
            self._strengths[:n] = steered(self._strengths[:n], wanted, self._shares)
        return self._found[0]

    def _first(self, best: _core.PlaneBatch) -> tuple[float, FloatArray]:
        return self._sums.of(best)

    def _others(self, model: CutModel, weights: DenseWeights) -> Iterator[tuple[float, FloatArray]]:
        with model.watch("extra"):
            batches = self._combined(self._found, model, weights)
        self._found = []
        for batch in batches:
            with model.watch("assembly"):
                yield self._sums.of(batch)

    def _details(self) -> Record:
        return {"diversity": self._shares.tolist(), "strengths": self._used.tolist()}

    def _combined(
        self, planes: list[_core.PlaneBatch], model: CutModel, weights: DenseWeights
    ) -> list[_core.PlaneBatch]:
        if self._combination == "ordering":
            return planes[1:]
        choice = Choices(self._problem, planes)
        if self._combination == "violation":
            order = np.argsort(-choice.values(weights), axis=1, kind="stable")
            return [choice.batch(order[:, m]) for m in range(1, len(planes))]
        linear = float(model.alpha @ model.losses)
        problem = self._problem
        dual = _core.DualChoice(problem.space, planes, model.weights.exact, problem.sample_weight)
        return [choice.batch(dual.choose(self._C, linear, m, _SWEEPS)) for m in range(1, len(planes))]


def steered(strengths: FloatArray, wanted: float, found: FloatArray) -> FloatArray:
    """Return λ after one step towards the set point K."""
    larger = np.maximum(wanted, found)
    change = np.divide(wanted - found, larger, out=np.zeros_like(found), where=larger > 0.0)
    return np.asarray(strengths * (1.0 + 0.5 * change))


class RunningSum:
    """Sums of planes, one of each example: each is the one before it, changed where the planes differ."""

    def __init__(self, problem: LinearProblem) -> None:
        self._problem = problem
        self._n_passes = 0
        self._planes, self._loss, self._total = _core.PlaneBatch(), 0.0, np.zeros(problem.n_weights)

    def begin_pass(self) -> None:
        """Start from 0 every now and then."""
        if self._n_passes % _SUMMED_AFRESH == 0:
            self._planes, self._loss = _core.PlaneBatch(), 0.0
            self._total[:] = 0.0
        self._n_passes += 1

    def of(self, planes: _core.PlaneBatch) -> tuple[float, FloatArray]:
        """Return Σ s_i Δ_i and Σ s_i ψ_i, the latter in the place of the last one."""
        problem = self._problem
        self._loss += problem.space.add_changes(self._planes, planes, problem.sample_weight, self._total)
        self._planes = planes
        return self._loss, self._total


class Choices:
    """Several planes of each example, of which a cut takes one; the truth has none."""

    def __init__(self, problem: LinearProblem, planes: list[_core.PlaneBatch]) -> None:
        self._problem, self._planes = problem, planes
        self._places: IntArray = np.full((problem.n_examples, len(planes)), -1)
        for k, batch in enumerate(planes):
            self._places[batch.examples(), k] = np.arange(len(batch))

    def values(self, weights: DenseWeights) -> FloatArray:
        """Return the values of the planes at w, examples × planes; 0 for the truth."""
        values = np.zeros(self._places.shape)
        for k, batch in enumerate(self._planes):
            values[batch.examples(), k] = batch.losses() - self._problem.space.dots(batch, weights.exact)
        return values

    def batch(self, chosen: IntArray) -> _core.PlaneBatch:
        """Return the planes of a choice, a number of a plane for each example."""
        found = _core.PlaneBatch()
        places = self._places[np.arange(len(chosen)), chosen]
        for k, batch in enumerate(self._planes):
            found.take(batch, places[(chosen == k) & (places >= 0)].astype(np.int64))
        return found
