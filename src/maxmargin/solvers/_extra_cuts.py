"""Several cuts in one iteration of the 1-slack method (Guzman-Rivera, Kohli and Batra 2013, DivMCuts).

The first is the cut of all most violated planes, so that every guarantee stands. M − 1 more are made of other outputs of each
example, found at the same w: diverse ones, the next best, or random ones. Diverse outputs are steered: the strength λ_j, with
which output j repels those after it, follows a set point K of the share of places in which outputs j and j + 1 differ,

    λ_j ← λ_j (1 + ½ (K − K̄_j) / max(K, K̄_j))

Random outputs are the best one with each place relabelled with probability K: they differ from it, not from the one before, by K.

Mixed cuts go beyond the paper and take no search of their own: each has, of a random half of the examples, the planes of this
exact pass, and of the others those of the one before it. Any choice of one plane of each example is a cut.

How outputs become cuts:

    ordering    cut m is made of the m-th output of every example
    violation   of the m-th in the order of their values: DOP1 without its quadratic term, where each output is used once
    dual        cut m takes that output of each example which raises the dual most in a line search from w towards the cut,
                (C c − b − w·u)² / ‖u‖² with u = C g − w, by coordinate ascent over the examples: DOP1, relaxed
"""

from __future__ import annotations

from collections.abc import Mapping
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


class ExtraCuts:
    """The cuts of an iteration beyond the first."""

    def __init__(self, task: Task, options: Mapping[str, Any]) -> None:
        problem = task.problem
        if not isinstance(problem, LinearProblem) or not problem.space.has_places:
            raise ValueError(
                "solver_options: cuts_per_iteration above 1 needs outputs that are labels of places (Multiclass, Chain or "
                "Pairwise) and rescaling='margin'."
            )
        self._problem = problem
        self._C, self._rng = task.C, task.rng
        self._most = int(options["cuts_per_iteration"])
        self._share = float(options["diversity"])
        self._annealing = float(options["cut_annealing"])
        self._source, self._combination = options["extra_cuts"], options["combination"]
        self._strengths = np.full(self._most - 1, float(options["initial_strength"]))
        self._n_made = 0
        self._found: list[_core.PlaneBatch] = []  # at the weights of this iteration
        self._used = self._shares = np.zeros(0)  # strengths and diversity of that search
        self._last: _core.PlaneBatch | None = None  # the best ones of the exact pass before, for mixed cuts
        self._summed, self._loss, self._total = _core.PlaneBatch(), 0.0, np.zeros(problem.n_weights)
        self.record: Record = NOTHING_ADDED  # what the history says of the cuts that were added last
        if self._combination == "dual" and not problem.has_vectors:
            raise ValueError(
                "solver_options: combination='dual' needs products of planes, which exact kernels have not."
            )
        if self._source == "mixed" and self._combination != "ordering":
            raise ValueError(
                f"solver_options: combination={self._combination!r} is for several outputs of one search, which "
                "extra_cuts='mixed' has not."
            )

    def separate(self, model: CutModel, separator: Separator, *, precise: bool) -> bool:
        """Make the most violated cut the model's pending one, from the same search as the others; False where there are none.

        Its planes alone enter the cache.
        """
        if self._n_extra == 0:
            return False
        self._find(model, model.weights, precise=precise)
        separator.keep(self._found[0], self._problem.all_ids, model.weights)
        separator.forget_unused()
        self._load(model, self._found[0])
        return True

    def add(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> None:
        """Keep more cuts found at these weights, where the most violated one has been kept; the QP is yet to be solved."""
        self.record = NOTHING_ADDED
        if self._n_extra > 0:
            if not self._found:
                self._find(model, weights, precise=precise)
            with model.watch("extra"):
                batches = self._mixed() if self._source == "mixed" else self._combined(self._found, model, weights)
            self._keep(model, batches)
        self._found = []
        self._n_made += 1

    @property
    def _fade(self) -> float:
        return self._annealing**self._n_made

    @property
    def _n_extra(self) -> int:
        return min(self._most, max(1, round(self._most * self._fade))) - 1

    def _find(self, model: CutModel, weights: DenseWeights, *, precise: bool) -> None:
        """Search for the outputs of all examples, and steer the strengths of the next search."""
        if self._n_made % _SUMMED_AFRESH == 0:
            self._summed, self._loss = _core.PlaneBatch(), 0.0
            self._total[:] = 0.0
        if self._source == "mixed":
            with model.watch("oracle"):
                self._found = [self._problem.separate(self._problem.all_ids, weights, precise=precise)]
            return
        problem, n, wanted = self._problem, self._n_extra, self._share * self._fade
        self._used = np.full(n, wanted) if self._source == "random" else self._strengths[:n].copy()
        with model.watch("extra"):
            self._found, diversity, most = problem.variants(
                weights, self._source, self._used, int(self._rng.integers(2**62))
            )
        self._shares = diversity / most if most > 0.0 else np.zeros(n)
        if self._source == "diverse":
            self._strengths[:n] = steered(self._strengths[:n], wanted, self._shares)

    def _keep(self, model: CutModel, batches: list[_core.PlaneBatch]) -> None:
        values = []
        for batch in batches:
            self._load(model, batch)
            values.append(model.pending_value(model.weights))
            model.keep_pending()
        self.record = {
            "extra_violations": [self._problem.mean_of(value - model.slack) for value in values],
            "diversity": self._shares.tolist(),
            "strengths": self._used.tolist(),
        }

    def _load(self, model: CutModel, batch: _core.PlaneBatch) -> None:
        """Make the cut of some planes the pending one: the sum of those before them, changed where they differ."""
        with model.watch("assembly"):
            problem = self._problem
            self._loss += problem.space.add_changes(self._summed, batch, problem.sample_weight, self._total)
            self._summed = batch
            model.cuts.load(self._loss, self._total)

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

    def _mixed(self) -> list[_core.PlaneBatch]:
        """Return cuts of planes of this pass and of the last one; none after the first."""
        (now,), last = self._found, self._last
        self._last = now
        if last is None:
            return []
        choice, n = Choices(self._problem, [now, last]), self._problem.n_examples
        return [choice.batch(self._rng.integers(2, size=n)) for _ in range(self._n_extra)]


def steered(strengths: FloatArray, wanted: float, found: FloatArray) -> FloatArray:
    """Return λ after one step towards the set point K."""
    larger = np.maximum(wanted, found)
    change = np.divide(wanted - found, larger, out=np.zeros_like(found), where=larger > 0.0)
    return np.asarray(strengths * (1.0 + 0.5 * change))


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
