"""Training on graphs: a linear model whose searches may leave open how much better an output could be."""

from __future__ import annotations

import numpy as np

from maxmargin import _core
from maxmargin._warnings import warn_caller
from maxmargin.problems.base import FloatArray, InexactOracleWarning, IntArray, LinearProblem
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
        # What the searches behind the last primal left open of it.
        self._left_open = 0.0
        self._open_example: int | None = None  # a graph in which a brief search did not close

    @property
    def searches(self) -> dict[str, int]:
        """How many graphs each method of inference has served in this run."""
        found = self._graph.searches_by_method()
        return {name: n - self._searches_before.get(name, 0) for name, n in found.items()}

    def bounded_primal(self, primal: float, weights: DenseWeights, C: float, *, squared: bool) -> float:
        """Return the primal with what searches since the last call left open, without a pass of its own where that is known."""
        is_known = self._searched_at is not None and np.array_equal(self._searched_at, weights.exact)
        self._left_open = 0.0
        if not self.can_be_inexact or self._graph.take_open() == 0:
            return primal
        if squared or not is_known:
            bounded = self.primal(weights, C, squared=squared)
        else:
            # H ≤ value + shortfall, and the primal has Σ s max(0, value).
            missed = self._shortfalls(np.zeros(self.n_examples))
            bounded = primal + C * float(missed.sum() if self.sample_weight is None else self.sample_weight @ missed)
        self._left_open = max(bounded - primal, 0.0)
        return bounded

    def search_briefly(self) -> None:
        """Let TRW-S make few passes; see :meth:`search_longer`."""
        if self.can_be_inexact and self.bounds_misses:
            self._limit_passes(_FIRST_PASSES)

    def search_longer(self, gap: float) -> None:
        """Let TRW-S make more passes where what it left open of the last primal is no small share of this gap."""
        if self.is_brief and self._left_open > _OPEN_SHARE * gap:
            self._limit_passes(int(_MORE_PASSES * self._passes))

    def search_fully(self) -> bool:
        """Let TRW-S make as many passes as were asked for; whether it made fewer before, and that left something open."""
        was_open = self.is_brief and self._open_example is not None
        self._limit_passes(self._max_passes)
        return was_open

    @property
    def is_brief(self) -> bool:
        """Whether searches are cut short by more than was asked for."""
        return self._passes < self._max_passes

    def _limit_passes(self, most: int) -> None:
        self._passes = min(most, self._max_passes)
        self._graph.limit_passes(self._passes)

    def _search(self, ids: IntArray, weights: DenseWeights, precise: bool) -> _core.PlaneBatch:
        found = super()._search(ids, weights, precise)
        self._note_pass(weights if np.array_equal(ids, self.all_ids) else None)
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
        counted = values + self._shortfalls(values, ids)
        self._graph.take_open()
        return np.asarray(counted)

    def _shortfalls(self, values: FloatArray, ids: IntArray | None = None) -> FloatArray:
        """Return how much the last searches may have missed, and report it where that is not small against values."""
        shortfalls = self._graph.shortfalls()
        if ids is not None:
            shortfalls = np.where(np.isin(self.all_ids, ids), shortfalls, 0.0)
        is_open = ~(shortfalls <= _CLOSED * (1.0 + np.abs(values)))
        if np.any(is_open):
            self.report_inexact(int(np.argmax(is_open)))
        return np.nan_to_num(shortfalls)

    def report_open(self) -> None:
        """Report searches that did not close since the last call."""
        if self.can_be_inexact and self._graph.take_open():
            self.report_inexact(int(np.argmax(~(self._graph.shortfalls() <= 0.0))))

    def report_brief(self) -> None:
        """Report what brief searches left open, where training ends with these."""
        example = self._open_example
        if self.search_fully() and example is not None:
            self.report_inexact(example)

    def begin_anew(self) -> None:
        """Count for another run, whose searches tell by themselves whether they closed."""
        super().begin_anew()
        self.is_exact, self._open_example = True, None
        self._searches_before = self._graph.searches_by_method()

    def report_inexact(self, example: int) -> None:
        """Note that a search of this graph is not known to be exact; warn the first time. Brief ones are yet to be judged."""
        if self.is_brief:
            self._open_example = example
            return
        if self.is_exact:
            known = (
                "the primal counts the bound on how much" if self.bounds_misses else "and nothing is known of how much"
            )
            warn_caller(
                f"the search in graph {example} may have missed the best labelling; {known}. The dual stays a lower bound.",
                InexactOracleWarning,
            )
        self.is_exact = False
