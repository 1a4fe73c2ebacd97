"""Cuts made of a few planes, for exact kernels: what they are kept as, their products, and the bound that they prove.

A sampled cut is c and g = Σ_i a_i ψ_i over a sample of examples. With a kernel g is known by its coefficients over the rows of
the sample, and g·g' = Σ_tl g_tl S'_tl, S' = K g' the score table of the other cut.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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


@dataclass(frozen=True)
class SampledCut:
    """A cut: its offset c, its planes with what each counts in g, and g as coefficients at ascending places."""

    loss: float
    planes: _core.PlaneBatch
    shares: FloatArray
    entries: IntArray
    values: FloatArray


class SampledCuts(ABC):
    """Sampled cuts of one problem, the last one pending until it is kept."""

    def __init__(self, problem: KernelScores) -> None:
        self._problem = problem
        self._cuts: list[SampledCut] = []
        self._pending: SampledCut | None = None
        self._sum: FloatArray = np.zeros(problem.n_weights)  # 0 between uses

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

    def move(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        """Move w from Σ before_k g_k to Σ α_k g_k."""
        # Summed afresh, so that rows of cuts that are out of use have coefficients of 0 and not of a rounding error.
        entries, owners = np.unique(np.concatenate([cut.entries for cut in self._cuts]), return_inverse=True)
        terms = np.concatenate([a * cut.values for a, cut in zip(alpha, self._cuts, strict=True)])
        weights.coef[entries] = np.bincount(owners, terms)
        self._move_scores(weights, alpha, before)

    @abstractmethod
    def _products(self, cut: SampledCut) -> FloatArray:
        """Return the products of the cut that was kept last with all."""

    @abstractmethod
    def _move_scores(self, weights: ExpansionWeights, alpha: FloatArray, before: FloatArray) -> None:
        """Let the scores of w follow its coefficients."""


class TabledCuts(SampledCuts):
    """Cuts with their score tables for all rows, A of the paper: n·r kernel values for each, and none for w or products."""

    def __init__(self, problem: KernelScores) -> None:
        super().__init__(problem)
        self._tables: list[NDArray[np.floating]] = []
        self._n_moves = 0

    def remove(self, numbers: IntArray) -> None:
        """Drop cuts with their tables."""
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


class UntabledCuts(SampledCuts):
    """Cuts without tables: scores are made for the rows that are looked at, from the kernel values that takes."""

    def __init__(self, problem: KernelScores) -> None:
        super().__init__(problem)
        self._scores: FloatArray = np.zeros(problem.n_weights)  # of the cut in hand, at the rows in hand

    def score(self, weights: ExpansionWeights, examples: IntArray) -> None:
        """Write the scores of w for the rows of some examples."""
        problem, entries = self._problem, self._entries()
        entries = entries[weights.coef[entries] != 0.0]
        self._write(weights.exact, problem.rows_of(examples), entries, weights.coef[entries])

    def _entries(self) -> IntArray:
        """Return the places at which any cut has a coefficient."""
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


class SampledModel(CutModel):
    """The QP over sampled cuts. Its ``dual`` is the value of a model that may lie above the objective: **no lower bound**."""

    def __init__(
        self, problem: KernelScores, C: float, prune_after: int, watch: Stopwatch, sampled: SampledCuts
    ) -> None:
        super().__init__(problem, C, prune_after, watch)
        self.sampled = sampled
        self.cuts = cast(Cuts, sampled)  # all of it that a model asks for: a sampled cut is put, never assembled

    def _move_to(self, alpha: FloatArray) -> None:
        assert isinstance(self.weights, ExpansionWeights)
        self.sampled.move(self.weights, alpha, self._alpha)
        self._alpha = alpha
        # ‖w‖² = Σ α_k w·g_k, and the QP knows c_k − w·g_k.
        self.norm2 = float(alpha @ (self._losses - self._qp.values))


def dual_bound(problem: KernelScores, C: float, cuts: SampledCuts, alpha: FloatArray) -> float:
    """Return a true lower bound of the optimum, from the point of the n-slack dual that α stands for.

    β_i(ȳ) = Σ_k α_k a_ki over the cuts that have plane ȳ of example i, scaled down where Σ_ȳ β_i(ȳ) > C s_i:

        D = Σ βΔ − ½ ‖Σ βψ‖²
    """
    used = [(a, cuts[k]) for k, a in enumerate(alpha) if a > 0.0]
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
    return linear - 0.5 * problem.square(coef)
