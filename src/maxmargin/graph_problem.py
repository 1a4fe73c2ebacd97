"""Training on graphs: a linear model whose searches may leave open how much better an output could be."""

from __future__ import annotations

import warnings

import numpy as np

from maxmargin import _core
from maxmargin.problem import FloatArray, InexactOracleWarning, IntArray, LinearProblem
from maxmargin.weights import DenseWeights

# Methods that never leave anything open; "auto" may come to TRW-S.
EXACT_METHODS = frozenset({"forest", "cut", "enumeration"})
# A bound that is above the value by less than this share is closed.
_CLOSED = 1e-9


class GraphProblem(LinearProblem):
    """Graphs of labels under linear scores.

    A search that did not close has a bound: no output is worth more. The primal counts it, so that it stays an upper bound
    of the optimum; where a method has no bound, it is an estimate.
    """

    def __init__(
        self,
        graph: _core.Graph,
        space: _core.LinearSpace,
        sample_weight: FloatArray | None,
        nonnegative: IntArray,
        n_jobs: int,
        inference: str,
    ) -> None:
        super().__init__(space, sample_weight, nonnegative, n_jobs, cheap_oracle=False)
        self.always_precise = True
        self.is_small = False
        self.can_be_inexact = inference not in EXACT_METHODS
        self._graph = graph
        self.bounds_misses = inference != "expansion"

    def has_missed(self) -> bool:
        """Return whether a search since the last call did not close."""
        return self.can_be_inexact and self._graph.take_open() > 0

    def slacks(self, weights: DenseWeights, ids: IntArray | None = None) -> FloatArray:
        """Return bounds of H_i(w) from above, by one pass: the values themselves where searches are exact."""
        values = super().slacks(weights, ids)
        if not self.can_be_inexact:
            return values
        shortfalls = self._graph.shortfalls()
        if ids is not None:
            shortfalls = np.where(np.isin(self.all_ids, ids), shortfalls, 0.0)
        is_open = ~(shortfalls <= _CLOSED * (1.0 + np.abs(values)))
        if np.any(is_open):
            self.report_inexact(int(np.argmax(is_open)))
        return np.asarray(values + np.nan_to_num(shortfalls))

    def report_inexact(self, example: int) -> None:
        """Note that a search of this graph is not known to be exact; warn the first time."""
        if self.is_exact:
            known = (
                "the primal counts the bound on how much" if self.bounds_misses else "and nothing is known of how much"
            )
            warnings.warn(
                f"the search in graph {example} may have missed the best labelling; {known}. The dual stays a lower bound.",
                InexactOracleWarning,
                stacklevel=2,
            )
        self.is_exact = False
