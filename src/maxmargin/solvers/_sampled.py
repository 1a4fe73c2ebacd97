"""Cuts made of a few planes, for exact kernels: what they are kept as, their products, and the bound that they prove.

A sampled cut is c and g = Σ_i a_i ψ_i over a sample of examples. With a kernel g is known by its coefficients over the rows of
the sample, and g·g' = Σ_tl g_tl S'_tl, S' = K g' the score table of the other cut.

The points that the QP moves to follow the noise of the samples. Their mean, w̄ = Σ_t t w_t / Σ_t t (weighted as in
Lacoste-Julien et al. 2013), has less of it, and so has the mean of their α, which makes the dual bound tighter.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.expansion_weights import ExpansionWeights
from maxmargin.problems.kernel_scores import KernelScores
from maxmargin.problems.weights import Cuts
from maxmargin.solvers._cutting_planes import CutModel
from maxmargin.solvers._timing import Stopwatch

# Every so many moves the scores of w are summed from the tables afresh: many small changes leave rounding behind.
_REFRESH_EVERY = 100


@dataclass
class SampledCut:
    """A cut: its offset c, its planes with what each counts in g, and g as coefficients at ascending places.

    ``counted`` is Σ_t t α_t over all points so far, what the cut counts in their weighted sum.
    """

    loss: float
    planes: _core.PlaneBatch
    shares: FloatArray
    entries: IntArray
    values: FloatArray
    counted: float = 0.0


class SampledCuts(ABC):
    """Sampled cuts of one problem, the last one pending until it is kept."""

    def __init__(self, problem: KernelScores) -> None:
        self._problem = problem
        self._cuts: list[SampledCut] = []
        self._pending: SampledCut | None = None
        self._sum: FloatArray = np.zeros(problem.n_weights)  # 0 between uses
        self.counted: list[SampledCut] = []  # those with a part in the sum of all points, dropped ones too

    def __len__(self) -> int:
        return len(self._cuts)

    def __getitem__(self, k: int) -> SampledCut:
        return self._cuts[k]

    @property
    def n_planes(self) -> int:
        """How many planes the cuts are made of."""
        return sum(len(cut.shares) for cut in self._cuts)

    def put(self, loss: float, planes: _core.PlaneBatch, shares: FloatArray) -> None:
        """Make the cut of these planes the pending one; the work does not grow with the number of all examples."""
        problem = self._problem
        problem.space.add(planes, shares, self._sum)
        rows = problem.rows_of(planes.examples().astype(np.int64))
        places = np.concatenate([problem.places_of(rows), np.arange(problem.n_kernel, problem.n_weights)])
        values = self._sum[places]
        self._sum[places] = 0.0
        kept = values != 0.0
        self._pending = SampledCut(loss, planes, shares, places[kept], values[kept])

    @property
    def pending(self) -> SampledCut:
        """The pending cut."""
        assert self._pending is not None
        return self._pending

    @property
    def pending_loss(self) -> float:
        """The offset c of the pending cut."""
        return self.pending.loss

    def pending_dot(self, scores: FloatArray) -> float:
        """Return w·g of the pending cut; only scores of its own rows are looked at."""
        return float(self.pending.values @ scores[self.pending.entries])

    def pending_at(self, indices: IntArray) -> FloatArray:
        """Return nothing: with a kernel no weight is held non-negative."""
        return np.zeros(len(indices))

    def keep(self, n_threads: int) -> FloatArray:
        """Store the pending cut, and return its products with all cuts, itself the last."""
        cut = self.pending
        self._cuts.append(cut)
        products = self._products(cut)
        self._problem.check_square(products[-1], float(cut.values @ cut.values))
        return products

    def remove(self, numbers: IntArray) -> None:
        """Drop cuts."""
        gone = set(numbers.tolist())
        self._cuts = [cut for k, cut in enumerate(self._cuts) if k not in gone]

    def count(self, alpha: FloatArray, factor: float) -> None:
        """Add a point, Σ α_k g_k, so many times to the sum of points."""
        for a, cut in zip(alpha, self._cuts, strict=True):
            if a > 0.0:
                if cut.counted == 0.0:
                    self.counted.append(cut)
                cut.counted += factor * a

    def move(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        """Move w from Σ before_k g_k to Σ α_k g_k."""
        # Summed afresh, so that rows of cuts that are out of use have coefficients of 0 and not of a rounding error.
        entries, sums = _sum_of(zip(alpha, self._cuts, strict=True))
        weights.coef[entries] = sums
        self._move_scores(weights, alpha, before)

    def sum_of_points(self) -> ExpansionWeights:
        """Return the sum of the points that were counted; it has scores where the cuts have tables."""
        weights = ExpansionWeights(self._problem.n_weights)
        entries, sums = _sum_of((cut.counted, cut) for cut in self.counted)
        weights.coef[entries] = sums
        self._score_sum(weights)
        return weights

    @abstractmethod
    def _products(self, cut: SampledCut) -> FloatArray:
        """Return the products of the cut that was kept last with all."""

    @abstractmethod
    def _move_scores(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        """Let the scores of w follow its coefficients."""

    @abstractmethod
    def _score_sum(self, weights: ExpansionWeights) -> None:
        """Give the sum of points its scores, or let it be known that it has none."""


class TabledCuts(SampledCuts):
    """Cuts with their score tables for all rows, A of the paper: n·r kernel values for each, and none for w or products."""

    def __init__(self, problem: KernelScores) -> None:
        super().__init__(problem)
        self._tables: list[NDArray[np.floating]] = []
        self._scores_of_removed: FloatArray = np.zeros(problem.n_weights)  # in the sum of points
        self._n_moves = 0

    def remove(self, numbers: IntArray) -> None:
        """Drop cuts with their tables."""
        for k in numbers:
            if self._cuts[k].counted > 0.0:
                self._scores_of_removed += self._cuts[k].counted * self._tables[k]
        super().remove(numbers)
        gone = set(numbers.tolist())
        self._tables = [table for k, table in enumerate(self._tables) if k not in gone]

    def _products(self, cut: SampledCut) -> FloatArray:
        scores = np.zeros(self._problem.n_weights)
        self._problem.add_entry_scores(cut.entries, cut.values, scores)
        # Sums of float32 kernel values have no digits to lose, and half the memory holds twice the cuts.
        self._tables.append(scores.astype(np.float32) if self._problem.is_single else scores)
        return np.array([cut.values @ table[cut.entries] for table in self._tables])

    def _move_scores(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        self._n_moves += 1
        if self._n_moves % _REFRESH_EVERY == 0:
            weights.exact[:] = 0.0
            before = np.zeros_like(alpha)
        for change, table in zip(alpha - before, self._tables, strict=True):
            if change != 0.0:
                weights.exact += change * table
        weights.touch()

    def _score_sum(self, weights: ExpansionWeights) -> None:
        weights.exact += self._scores_of_removed
        for cut, table in zip(self._cuts, self._tables, strict=True):
            if cut.counted > 0.0:
                weights.exact += cut.counted * table
        weights.touch()


class UntabledCuts(SampledCuts):
    """Cuts without tables: scores are made for the rows that are looked at, from the kernel values that takes."""

    def __init__(self, problem: KernelScores) -> None:
        super().__init__(problem)
        self._scores: FloatArray = np.zeros(problem.n_weights)  # of the cut in hand, at the rows in hand

    def score(self, weights: ExpansionWeights, examples: IntArray) -> None:
        """Write the scores of w, a sum of the cuts, for the rows of some examples."""
        entries = self._entries()
        self.score_at(weights, examples, entries[weights.coef[entries] != 0.0])

    def score_at(self, weights: ExpansionWeights, examples: IntArray, entries: IntArray) -> None:
        """Write the scores of weights that have coefficients at ``entries`` for the rows of some examples."""
        self._write(weights.exact, self._problem.rows_of(examples), entries, weights.coef[entries])

    def _entries(self) -> IntArray:
        """Return the places at which any cut that was not dropped has a coefficient."""
        return np.unique(np.concatenate([np.zeros(0, np.int64), *(cut.entries for cut in self._cuts)]))

    def _write(self, scores: FloatArray, rows: IntArray, entries: IntArray, values: FloatArray) -> None:
        problem, n_kernel = self._problem, self._problem.n_kernel
        made = problem.scores_of(rows, entries, values, is_single=problem.is_single)
        scores[problem.places_of(rows)] = made
        scores[n_kernel:] = 0.0
        is_table = entries >= n_kernel
        scores[entries[is_table]] = values[is_table]

    def _products(self, cut: SampledCut) -> FloatArray:
        entries, n_kernel = self._entries(), self._problem.n_kernel
        rows = np.unique(entries[entries < n_kernel] // self._problem.stride)
        self._write(self._scores, rows, cut.entries, cut.values)
        return np.array([other.values @ self._scores[other.entries] for other in self._cuts])

    def _move_scores(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        weights.is_scored = False

    def _score_sum(self, weights: ExpansionWeights) -> None:
        weights.is_scored = False


@dataclass
class End:
    """A point to end with: its weights, the α that made it with the cuts that have a part in it, and ‖w‖² once it is known."""

    weights: ExpansionWeights
    alpha: list[tuple[float, SampledCut]]
    norm2: float | None


class SampledModel(CutModel):
    """The QP over sampled cuts. Its ``dual`` is the value of a model that may lie above the objective: **no lower bound**.

    ``averages`` asks for the mean of its points too.
    """

    def __init__(
        self,
        problem: KernelScores,
        C: float,
        prune_after: int,
        watch: Stopwatch,
        sampled: SampledCuts,
        *,
        averages: bool,
    ) -> None:
        super().__init__(problem, C, prune_after, watch)
        self.sampled = sampled
        self.cuts = cast(Cuts, sampled)  # all of it that a model asks for: a sampled cut is put, never assembled
        self.averages = averages
        self.n_points = 0

    def last(self) -> End:
        """Return the last point."""
        assert isinstance(self.weights, ExpansionWeights)
        return End(self.weights, self.last_alpha(), self.norm2)

    def mean(self) -> End:
        """Return w̄, the mean of all points that the weights moved to."""
        weights = self.sampled.sum_of_points()
        weights.scale(1.0 / self._n_terms)
        return End(weights, self.mean_of_alpha(), None)

    def mean_of_alpha(self) -> list[tuple[float, SampledCut]]:
        """Return the mean of α at those points, with the cuts that have a part in it."""
        return [(cut.counted / self._n_terms, cut) for cut in self.sampled.counted]

    def last_alpha(self) -> list[tuple[float, SampledCut]]:
        """Return α, with the cuts that have a part in it."""
        return [(a, self.sampled[k]) for k, a in enumerate(self._alpha) if a > 0.0]

    @property
    def _n_terms(self) -> int:
        """Σ_t t."""
        return max(self.n_points * (self.n_points + 1) // 2, 1)

    def _move_to(self, alpha: FloatArray) -> None:
        assert isinstance(self.weights, ExpansionWeights)
        self.sampled.move(self.weights, alpha, self._alpha)
        self._alpha = alpha
        # ‖w‖² = Σ α_k w·g_k, and the QP knows c_k − w·g_k.
        self.norm2 = float(alpha @ (self._losses - self._qp.values))
        if self.averages:
            self.n_points += 1
            self.sampled.count(alpha, self.n_points)


def _sum_of(cuts: Iterable[tuple[float, SampledCut]]) -> tuple[IntArray, FloatArray]:
    """Return Σ a_k g_k: places, ascending, and coefficients."""
    places, terms = [np.zeros(0, np.int64)], [np.zeros(0)]
    for a, cut in cuts:
        places.append(cut.entries)
        terms.append(a * cut.values)
    entries, owners = np.unique(np.concatenate(places), return_inverse=True)
    return entries, np.bincount(owners, np.concatenate(terms)).astype(np.float64, copy=False)


def dual_bound(problem: KernelScores, C: float, used: list[tuple[float, SampledCut]]) -> float:
    """Return a true lower bound of the optimum, from the point of the n-slack dual that α of these cuts stands for.

    β_i(ȳ) = Σ_k α_k a_ki over the cuts that have plane ȳ of example i, scaled down where Σ_ȳ β_i(ȳ) > C s_i, and all together by
    the θ ≤ 1 that is best:

        D = θ Σ βΔ − ½ θ² ‖Σ βψ‖²
    """
    mass = np.zeros(problem.n_examples)
    for a, cut in used:
        mass[cut.planes.examples()] += a * cut.shares  # an example is in a sample once
    most = C * problem.weight_of_examples
    scale = np.minimum(1.0, np.divide(most, mass, out=np.ones_like(mass), where=mass > 0.0))
    linear, coef = 0.0, np.zeros(problem.n_weights)
    for a, cut in used:
        beta = a * cut.shares * scale[cut.planes.examples()]
        linear += float(beta @ cut.planes.losses())
        problem.space.add(cut.planes, beta, coef)
    square = problem.square(coef)
    theta = min(1.0, linear / square) if square > 0.0 else 1.0
    return theta * linear - 0.5 * theta**2 * square
