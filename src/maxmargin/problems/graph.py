"""Training on graphs: a linear model whose searches may leave open how much better an output could be."""

from __future__ import annotations

import numpy as np

from maxmargin import _core
from maxmargin._warnings import warn_caller
from maxmargin.problems.base import FloatArray, InexactOracleWarning, IntArray
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import Cuts, DenseWeights

# Methods that never leave anything open; "auto" may come to TRW-S.
EXACT_METHODS = frozenset({"forest", "cut", "enumeration"})
# A bound that is above the value by less than this share is closed.
_CLOSED = 1e-9
# Passes of TRW-S in the first searches of training, how many times more come next, and the share of the gap that searches may
# leave open before. Early searches serve to find planes, which are no worse for being a little short of the best.
_FIRST_PASSES = 10
_MORE_PASSES = 1.5
_OPEN_SHARE = 0.5


class GraphProblem(LinearProblem):
    """Graphs of labels under linear scores.

    A search that did not close has a bound: no output is worth more. The primal counts it, so that it stays an upper bound
    of the optimum; where a method has no bound, it is an estimate.
    """

    # The weights of nodes, which make the loss, and their candidates come with the features.
    planes_are_outputs = False
    searches_graphs = True

    def __init__(
        self,
        graph: _core.Graph,
        space: _core.LinearSpace,
        sample_weight: FloatArray | None,
        nonnegative: IntArray,
        n_jobs: int,
        inference: str,
        max_passes: int,
    ) -> None:
        super().__init__(space, sample_weight, nonnegative, n_jobs, cheap_oracle=False)
        self.always_precise = True
        self.is_small = False
        self.can_be_inexact = inference not in EXACT_METHODS
        self._graph = graph
        # w of the last pass, if all graphs were searched there: what searches left open is what that pass did.
        self._searched_at: FloatArray | None = None
        self.bounds_misses = inference != "expansion"
        self._searches_before: dict[str, int] = {}
        self._max_passes = self._passes = max_passes
        # Whether open searches are judged at the end of training, by those of its best point.
        self._is_patient = False
        # What the searches behind the last primal found and missed, w where slacks() has counted that already, and an open graph.
        self._found = self._missed = np.zeros(1)
        self._counted_at: FloatArray | None = None
        self._open_example = 0

    @property
    def searches(self) -> dict[str, int]:
        """How many graphs each method of inference has served in this run."""
        found = self._graph.searches_by_method()
        return {name: n - self._searches_before.get(name, 0) for name, n in found.items()}

    def bounded_primal(self, primal: float, weights: DenseWeights, C: float, *, squared: bool) -> float:
        """Return the primal with what searches since the last call left open, without a pass of its own where that is known."""
        if not self.can_be_inexact:
            return primal
        if self._graph.take_open() == 0:
            # None was open, or a call of slacks() before this one has counted what was.
            if self._counted_at is None or not np.array_equal(self._counted_at, weights.exact):
                self.left_open = False
            return primal
        is_known = self._searched_at is not None and np.array_equal(self._searched_at, weights.exact)
        if squared or not is_known:
            return self.primal(weights, C, squared=squared)
        # H ≤ value + shortfall, and the primal has Σ s max(0, value).
        missed = self._count_missed(np.zeros(self.n_examples))
        return primal + C * self._weighted(missed)

    def search_briefly(self) -> None:
        """Let TRW-S make few passes; see :meth:`search_longer`. What is open is judged when training ends."""
        if self.can_be_inexact and self.bounds_misses:
            self._is_patient = True
            self._limit_passes(_FIRST_PASSES)

    def search_longer(self, gap: float, C: float, *, squared: bool) -> None:
        """Let TRW-S make more passes where what it left open of the last primal is no small share of this gap."""
        cost = self._missed * (2.0 * self._found + self._missed) if squared else self._missed
        if self.left_open and C * self._weighted(cost) > _OPEN_SHARE * gap:
            self._limit_passes(max(self._passes + 1, int(_MORE_PASSES * self._passes)))

    def search_fully(self) -> bool:
        """Let TRW-S make as many passes as were asked for; whether it made fewer before, and that left something open."""
        was_brief = self._passes < self._max_passes
        self._limit_passes(self._max_passes)
        return was_brief and self.left_open

    def _limit_passes(self, most: int) -> None:
        self._passes = min(most, self._max_passes)
        self._graph.limit_passes(self._passes)

    def _search(self, ids: IntArray, weights: DenseWeights, precise: bool) -> _core.PlaneBatch:
        found = super()._search(ids, weights, precise)
        self._note_pass(weights if np.array_equal(ids, self.searched_ids) else None)
        return found

    def oracle(
        self, weights: DenseWeights, *, precise: bool, plain: bool = False, k_best: int | None = None
    ) -> _core.Oracle:
        """Return the search in threads; w moves between its calls."""
        self._note_pass(None)
        return super().oracle(weights, precise=precise, plain=plain, k_best=k_best)

    def separate_into(self, cuts: Cuts, weights: DenseWeights, *, precise: bool) -> None:
        """Make the cut of all examples' most violated planes the pending one of ``cuts``."""
        super().separate_into(cuts, weights, precise=precise)
        self._note_pass(weights)

    def variants(
        self, weights: DenseWeights, source: str, strengths: FloatArray, seed: int
    ) -> tuple[list[_core.PlaneBatch], FloatArray, float]:
        """Return the planes of several outputs of each graph; those after the best one may be found in a hurry."""
        found = super().variants(weights, source, strengths, seed)
        # The search for the M best has bounds of its own.
        self._note_pass(weights if source != "m-best" else None)
        return found

    def _note_pass(self, weights: DenseWeights | None) -> None:
        self._searched_at = weights.exact.copy() if weights is not None and self.can_be_inexact else None

    def slacks(self, weights: DenseWeights, ids: IntArray | None = None) -> FloatArray:
        """Return bounds of H_i(w) from above, by one pass: the values themselves where searches are exact."""
        values = super().slacks(weights, ids)
        if not self.can_be_inexact:
            return values
        counted = values + self._count_missed(values, ids)
        self._counted_at = weights.exact.copy()
        self._graph.take_open()
        return np.asarray(counted)

    def _count_missed(self, values: FloatArray, ids: IntArray | None = None) -> FloatArray:
        """Return how much the last searches may have missed, and note it where that is not small against values."""
        shortfalls = self._graph.shortfalls()
        if ids is not None:
            shortfalls = np.where(np.isin(self.all_ids, ids), shortfalls, 0.0)
        if self.sample_weight is not None:
            shortfalls = np.where(self.sample_weight > 0.0, shortfalls, 0.0)
        is_open = ~(shortfalls <= _CLOSED * (1.0 + np.abs(values)))
        self.left_open = bool(np.any(is_open))
        if self.left_open:
            self.report_inexact(int(np.argmax(is_open)))
        self._found, self._missed = values, np.nan_to_num(shortfalls)
        return self._missed

    def report_open(self) -> None:
        """Report searches that did not close since the last call."""
        if self.can_be_inexact and self._graph.take_open():
            self.report_inexact(int(np.argmax(~(self._graph.shortfalls() <= 0.0))))

    def report_left_open(self) -> None:
        """Report that the point which training ends with was searched, and left open."""
        self._is_patient = False
        self.report_inexact(self._open_example)

    def begin_anew(self) -> None:
        """Count for another run, whose searches tell by themselves whether they closed."""
        super().begin_anew()
        self.is_exact = True
        self._searches_before = self._graph.searches_by_method()

    def _what_is_known(self) -> str:
        if not self.has_bounds:
            return "steps may have been made away from others than the best"
        missed = "the primal counts the bound on how much" if self.bounds_misses else "nothing is known of how much"
        return f"{missed}. The dual stays a lower bound"

    def report_inexact(self, example: int) -> None:
        """Note that a search of this graph is not known to be exact; warn the first time, or when training ends."""
        self._open_example = example
        if self._is_patient:
            return
        if self.is_exact:
            warn_caller(
                f"the search in graph {example} may have missed the best labelling; {self._what_is_known()}.",
                InexactOracleWarning,
            )
        self.is_exact = False
