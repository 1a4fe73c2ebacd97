"""A built-in model bound to its data: linear scores, searched by the compiled core."""

from __future__ import annotations

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.problems.weights import Cuts, DenseWeights


class LinearProblem(Problem):
    """A built-in model: linear scores under a structure, searched by the compiled core in threads."""

    planes_are_outputs = True

    # A pass of fewer multiplications than this gains nothing from float32.
    _SMALL = 2_000_000
    # Up to this many weights a full pass is summed chunk by chunk while the features are in cache.
    _SUMMED_BELOW = 65536

    def __init__(
        self,
        space: _core.LinearSpace,
        sample_weight: FloatArray | None,
        nonnegative: IntArray,
        n_jobs: int,
        *,
        cheap_oracle: bool,
        fits_float: bool = True,
        column_spread: float = 1.0,
    ) -> None:
        super().__init__(sample_weight, nonnegative, n_jobs)
        self.space: _core.LinearSpace = space
        self.cheap_oracle = cheap_oracle
        self.is_small = space.n_products < self._SMALL
        self.always_precise = self.is_small or not fits_float
        self.column_spread = column_spread

    @property
    def search_work(self) -> float:
        """What searching all examples costs: the rows, and decoding them."""
        return (1.0 + self.decoding_work) * self.space.n_rows

    @property
    def row_length(self) -> float:
        """How many numbers are multiplied when a row of features is read, on average."""
        return max(self.space.n_products, 1) / max(self.space.n_rows, 1)

    def has_room_for(self, vectors_each: int) -> bool:
        """Return whether so many vectors of all weights for each example take no more memory than the features do."""
        n_values = self.space.n_products // self.space.stride
        return self.has_vectors and vectors_each * self.n_examples * self.n_weights <= n_values

    @property
    def rows_per_example(self) -> float:
        """How many places of a sequence an example has, on average; 1 for anything else."""
        return self.space.n_rows / max(self.n_examples, 1) if self.space.has_components else 1.0

    @property
    def decoding_work(self) -> float:
        """What decoding takes beside reading, for each row: a guess."""
        return self.space.decoding_work

    @property
    def has_row_labels(self) -> bool:
        """Whether an example is one row with one label."""
        return self.space.has_row_labels

    @property
    def n_row_labels(self) -> int:
        """How many labels all rows together have to choose from, where an example is one row with one label."""
        return self.space.n_rows * self.space.stride if self.has_row_labels else 0

    def score_line(self) -> _core.ScoreLine | None:
        """Return the scores of all rows along a line, where the structure has no table and few weights."""
        return _core.ScoreLine(self.space) if self.space.has_line and self.n_weights <= self._SUMMED_BELOW else None

    def row_blocks(self, C: float, *, squared: bool) -> _core.RowBlocks | None:
        """Return the dual of all examples where each is one row with one label and no weight is bounded; else None."""
        if not self.has_row_labels or len(self.nonnegative):
            return None
        return _core.RowBlocks(self.space, C * self.weight_of_examples, squared)

    def _search(self, ids: IntArray, weights: DenseWeights, precise: bool) -> _core.PlaneBatch:
        rounded = self.rounded(weights, precise=precise)
        return self.space.separate(ids, weights.exact, rounded, self.n_jobs)

    def oracle(
        self, weights: DenseWeights, *, precise: bool, plain: bool = False, k_best: int | None = None
    ) -> _core.Oracle:
        """Return the search in threads; the float32 copy must follow the weights where it is used."""
        if k_best is not None:
            return _core.KBestOracle(self.space, weights.exact, k_best)
        rounded = self.rounded(weights, precise=precise)
        return _core.LinearOracle(self.space, weights.exact, rounded, plain, self.n_jobs)

    def variants(
        self, weights: DenseWeights, source: str, strengths: FloatArray, seed: int
    ) -> tuple[list[_core.PlaneBatch], FloatArray, float]:
        """Return the planes of several outputs of each example, the best ones first, and how much one differs from the next.

        Random ones: from the first. That is the weight of the places that differ, over all examples that are searched, with the
        most it can be.
        """
        ids = self.searched_ids
        # Random outputs are made of the best one.
        self.count_calls(len(ids) * (1 if source == "random" else len(strengths) + 1))
        return self.space.variants(ids, weights.exact, source, strengths, seed, self.n_jobs)

    def separate_into(self, cuts: Cuts, weights: DenseWeights, *, precise: bool) -> None:
        """Make the cut of all examples' most violated planes the pending one of ``cuts``."""
        if self.n_weights > self._SUMMED_BELOW or not self.has_vectors:
            super().separate_into(cuts, weights, precise=precise)
            return
        self.count_calls(len(self.searched_ids))
        rounded = self.rounded(weights, precise=precise)
        loss, total, _ = self.space.separate_and_sum(weights.exact, rounded, self.sample_weight, self.n_jobs)
        cuts.load(loss, total)
