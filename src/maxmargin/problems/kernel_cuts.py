"""Cuts of a problem with an exact kernel: coefficients of rows, and the scores that they give to all rows.

The scores of a new cut are those of the stored cut that differs least from it, plus the kernel columns of the rows that differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray

if TYPE_CHECKING:
    from maxmargin.problems.kernel_scores import KernelScores


# Cuts of a problem that left out kernel values up to so many times as large as another does serve it too.
_AS_SMALL = 100.0


class KernelCuts:
    """Cuts with their score tables."""

    def __init__(self, problem: KernelScores) -> None:
        self._problem = problem
        self._cuts = _core.CutSet(problem.n_weights)
        self._scores: list[FloatArray] = []
        self._gram: FloatArray = np.zeros((0, 0))  # of coefficients, not of what they stand for
        self._negligible = problem.negligible  # the largest that a score table was made with

    def __len__(self) -> int:
        # Where an interrupt struck between a cut and its score table, the former are more: such a set is not gone on from.
        return len(self._cuts)

    def copy_for(self, problem: KernelScores) -> KernelCuts:
        """Return a set of the same cuts for the same problem bound anew.

        Score tables, which never change, are shared; they are made afresh for a problem in double where they are in float32, and
        for one that counts much smaller kernel values.
        """
        other = KernelCuts(problem)
        other._cuts, other._gram = self._cuts.copy(), self._gram
        is_as_wide = self._negligible <= _AS_SMALL * problem.negligible
        if (problem.is_single or not self._problem.is_single) and is_as_wide:
            other._scores = list(self._scores)
            other._negligible = problem.left_out = max(self._negligible, problem.negligible)
            return other
        for number in range(len(self._scores)):
            cut, scores = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
            self._cuts.add(np.eye(1, len(self._scores), number)[0], cut, None, problem.n_jobs)
            problem.add_scores(cut, scores)
            other._scores.append(scores)
        return other

    def assemble(self, space: _core.PlaneSpace, planes: _core.PlaneBatch, sample_weight: FloatArray | None) -> None:
        """Make the sum of these planes the pending cut."""
        self._cuts.assemble(space, planes, sample_weight)

    def load(self, loss: float, total: FloatArray) -> None:
        """Make a cut that was summed elsewhere the pending one."""
        self._cuts.load(loss, total)

    @property
    def pending_loss(self) -> float:
        """The loss c of the pending cut."""
        return self._cuts.pending_loss

    def pending_dot(self, scores: FloatArray) -> float:
        """Return w·g of the pending cut."""
        return self._cuts.pending_dot(scores)

    def pending_at(self, indices: IntArray) -> FloatArray:
        """Return coefficients of the pending cut."""
        return self._cuts.pending_at(indices)

    def keep(self, n_threads: int) -> FloatArray:
        """Store the pending cut, and return its products with all cuts, itself the last."""
        row = self._cuts.keep(n_threads)
        n = len(self._scores)
        change = np.zeros(self._problem.n_weights)
        distances = row[n] + np.diag(self._gram) - 2.0 * row[:n]
        base = int(np.argmin(distances)) if n and distances.min() < row[n] else None
        if base is not None:
            self._cuts.add(-np.eye(1, n + 1, base)[0], change, None, n_threads)
        self._cuts.add_pending(1.0, change)
        scores = np.zeros(self._problem.n_weights) if base is None else self._scores[base].copy()
        self._add_change(change, scores)
        self._gram = np.block([[self._gram, row[:n, None]], [row[None, :]]])
        self._scores.append(scores)
        products = np.array([self._cuts.pending_dot(table) for table in self._scores])
        self._problem.check_square(products[n], row[n])
        products[n] = max(products[n], 0.0)  # below it by rounding
        return products

    def _add_change(self, change: FloatArray, scores: FloatArray) -> None:
        """Add the scores of a change of coefficients."""
        self._problem.add_scores(change, scores)

    def add_coefficients(self, coefficients: FloatArray, coef: FloatArray, n_jobs: int) -> None:
        """Add Σ a_k g_k to coefficients."""
        self._cuts.add(coefficients, coef, None, n_jobs)

    def add_scores(self, coefficients: FloatArray, scores: FloatArray) -> None:
        """Add Σ a_k S_k to scores."""
        for a, table in zip(coefficients, self._scores, strict=True):
            if a != 0.0:
                scores += a * table

    def remove(self, numbers: IntArray) -> None:
        """Drop cuts."""
        self._cuts.remove(numbers)
        self._gram = np.delete(np.delete(self._gram, numbers, 0), numbers, 1)
        gone = set(numbers.tolist())
        self._scores = [table for k, table in enumerate(self._scores) if k not in gone]
