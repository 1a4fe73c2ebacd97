"""A model bound to its data: all that a solver sees of both."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin._warnings import warn_caller
from maxmargin.kernels.expansion import Expansion
from maxmargin.problems.weights import Cuts, DenseWeights

if TYPE_CHECKING:
    from maxmargin.problems.linear import LinearProblem

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

# What rows are like is learnt from so many of them.
SAMPLED_ROWS = 128


class InexactOracleWarning(UserWarning):
    """An oracle returned an output that is provably not the most violated one."""


class InexactPredictionWarning(UserWarning):
    """A prediction is not known to have the highest score: the search for it did not close."""


def sample_of(n_rows: int, most: int) -> IntArray:
    """Return the numbers of so many rows at most, spread over all of them."""
    return np.linspace(0, n_rows - 1, min(most, n_rows)).astype(np.int64)


@dataclass(frozen=True)
class Part:
    """A problem over some of the examples of another one.

    Attributes
    ----------
    problem : Problem
        The smaller problem.
    extend : callable
        Returns, for weights of the smaller problem, the sum of planes that they are as one of the other's; called once, at the
        end: the work that was done is counted there.
    """

    problem: Problem
    extend: Callable[[DenseWeights], FloatArray]


class Problem(ABC):
    """Examples with their planes, an oracle, and the arithmetic of planes.

    Attributes
    ----------
    space : _core.PlaneSpace
        What can be computed with planes.
    sample_weight : ndarray or None
        s_i, or None where all are 1.
    nonnegative : ndarray of int64
        Numbers of the weights that must stay ≥ 0.
    oracle_calls : int
        Examples searched so far.
    is_exact : bool
        False once an oracle answer was proved wrong.
    cheap_oracle : bool
        Whether searching an example costs no more than valuing a few stored planes of it.
    is_small : bool
        Whether a pass over the data costs next to nothing, so that nothing need be done to save passes.
    always_precise : bool
        Whether searches are in double precision even where float32 is allowed.
    can_be_inexact : bool
        Whether oracle answers are to be checked against planes already known.
    planes_are_outputs : bool
        Whether a plane is kept as its output alone, so that it stays one of its example, of the same loss, whatever X is.
    has_vectors : bool
        Whether planes are vectors of n_weights numbers whose products are those of the feature space. Where they are not, w
        is known by its scores, and only cuts have products.
    has_bounds : bool
        Whether the solver at work reports bounds of the optimum, of which warnings then speak.
    bounds_misses : bool
        Whether searches that may miss the best output say by how much at most.
    left_open : bool
        Whether those behind the last primal may have missed some.
    all_mistakes_cost : bool
        Whether every output but the truth is known to have a loss, and the searches to be exact.
    largest_loss : float
        No output has a larger one; of models in Python, none that was met.
    searches_graphs : bool
        Whether outputs are labellings of graphs, whose search takes much longer than what is done with it.
    searches_in_python : bool
        Whether searches are a user's: they end when they like, whatever the time or Ctrl-C, and may run in other processes.
    column_spread : float
        How many times longer the longest column of the features is than the shortest that is not 0, about; 1 where that is not
        known.
    depends_on_all : bool
        Whether what a weight stands for depends on all examples, so that more of them make it another problem.
    dual_of : str
        The problem that bounds are those of, where it approximates the one that was asked for.
    """

    space: _core.PlaneSpace
    bounds_misses = False
    left_open = False
    all_mistakes_cost = False
    largest_loss = 0.0
    searches_graphs = False
    searches_in_python = False
    cheap_oracle = False
    can_be_inexact = False
    planes_are_outputs = False
    has_vectors = True
    column_spread = 1.0
    depends_on_all = False
    always_precise = False
    is_small = False
    has_bounds = True
    dual_of = ""

    def __init__(self, sample_weight: FloatArray | None, nonnegative: IntArray, n_jobs: int) -> None:
        self.sample_weight = sample_weight
        self.nonnegative = nonnegative
        self.n_jobs = n_jobs
        self.oracle_calls = 0
        self.is_exact = True
        self._all_ids: IntArray | None = None

    @property
    def n_examples(self) -> int:
        """How many examples there are."""
        return self.space.n_examples

    @property
    def weight_of_examples(self) -> FloatArray:
        """s_i of every example; 1 where no sample weights were given."""
        return np.ones(self.n_examples) if self.sample_weight is None else self.sample_weight

    @property
    def total_weight(self) -> float:
        """The sum of the sample weights: how many examples they make."""
        return float(self.n_examples if self.sample_weight is None else self.sample_weight.sum())

    def mean_of(self, total: float) -> float:
        """Return what a sum over all examples is for each of them, sample weights counted."""
        return total / self.total_weight

    @property
    def n_weights(self) -> int:
        """The dimension of w."""
        return self.space.n_weights

    @property
    def searches(self) -> dict[str, int]:
        """How many searches each method has made so far, where there is a choice of methods; else empty."""
        return {}

    @property
    def search_work(self) -> float:
        """What searching all examples costs, in rows of features that could be read meanwhile."""
        return self._ROWS_PER_SEARCH * self.n_examples

    @property
    def n_joint_weights(self) -> float:
        """How many weights there are where all planes are moved together, by their vectors; infinity where they have none."""
        return self.n_weights if self.has_vectors else np.inf

    @property
    def row_length(self) -> float:
        """How many numbers are multiplied when a row of features is read."""
        return float(max(self.n_weights, 1))

    @property
    def decoding_work(self) -> float:
        """What decoding a row takes, in rows of features that could be read meanwhile; where there are rows."""
        return 0.0

    def has_room_for(self, vectors_each: int) -> bool:
        """Return whether so many vectors of all weights for each example take no more memory than the data do."""
        return False

    # A search written in Python takes some tens of microseconds at least, and more if it is any work.
    _ROWS_PER_SEARCH = 500.0

    def bounded_primal(self, primal: float, weights: DenseWeights, C: float, *, squared: bool) -> float:
        """Return the primal at ``weights`` with what the searches behind it may have missed: what :meth:`slacks` counts."""
        return primal

    def search_briefly(self) -> None:  # noqa: B027 - few searches can be cut short
        """Let searches that take long end early, until :meth:`search_longer` asks for more."""

    def search_longer(self, gap: float, C: float, *, squared: bool) -> None:  # noqa: B027
        """Let brief searches take longer where what they left open of the last primal counts against this gap."""

    def search_fully(self) -> bool:
        """Let searches take as long as they may; whether they did not before, and left something open."""
        return False

    @property
    def kept_columns(self) -> float:
        """Which share of the columns of a kernel matrix may be kept; where there is one."""
        return 1.0

    @property
    def seconds_per_value(self) -> float:
        """About how long a kernel value takes; where there is a kernel."""
        return 0.0

    @property
    def keeps_values(self) -> bool:
        """Whether kernel values that are dear to ask for are asked for once, and kept; where there is a kernel."""
        return False

    @property
    def rows_per_example(self) -> float:
        """How many places of a sequence an example has, on average; 1 for anything else."""
        return 1.0

    @property
    def has_row_labels(self) -> bool:
        """Whether an example is one row with one label."""
        return False

    @property
    def n_row_labels(self) -> int:
        """How many labels all rows together have to choose from; where an example is one row with one label."""
        return 0

    @property
    def n_kernel_rows(self) -> int:
        """How many rows and columns the kernel matrix has; where there is one."""
        return 0

    @property
    def has_signs(self) -> bool:
        """Whether an output is one of two signs; where there is a kernel."""
        return False

    @property
    def mean_value(self) -> float:
        """The mean of k(x, z) over that of k(x, x), without the constant, by a sample; where there is a kernel."""
        return 1.0

    @property
    def computes_values(self) -> bool:
        """Whether kernel values are computed by the core, not by a function in Python; where there is a kernel."""
        return False

    @property
    def largest_square(self) -> float:
        """The largest k(x, x), by a sample; where there is a kernel."""
        return 0.0

    @property
    def all_ids(self) -> IntArray:
        """The numbers of all examples."""
        if self._all_ids is None:
            self._all_ids = np.arange(self.n_examples, dtype=np.int64)
        return self._all_ids

    @property
    def searched_ids(self) -> IntArray:
        """The numbers of the examples with a weight above 0, which are those that are searched."""
        return self.all_ids if self.sample_weight is None else np.flatnonzero(self.sample_weight)

    def zero_weights(self) -> DenseWeights:
        """Return w = 0."""
        return DenseWeights(self.n_weights)

    def new_cuts(self) -> Cuts:
        """Return an empty set of cuts."""
        return _core.CutSet(self.n_weights)

    def own_cuts(self, cuts: Any) -> Cuts:
        """Return cuts of the same problem, bound earlier, for this one."""
        copied: Cuts = cuts.copy()
        return copied

    def prepare(self, C: float, tol: float) -> None:  # noqa: B027 - most problems are ready when they are made
        """Learn how closely the problem is to be solved, up to which C, before a run."""

    def part(self, examples: IntArray) -> Part | None:
        """Return the same problem for some of the examples; None where it would not help to solve that first."""
        return None

    def score_error(self, weights: DenseWeights) -> float:
        """Return by how much the scores that bounds rest on may be wrong beyond double precision."""
        return 0.0

    def score_rounding(self, weights: DenseWeights, least: float) -> float:
        """Return about how much double precision rounds off scores that are sums of large terms; 0 below ``least``."""
        return 0.0

    def double(self) -> None:  # noqa: B027 - most problems have no choice
        """Compute in double precision from now on, whatever is asked for."""

    def expansion(self, weights: DenseWeights) -> Expansion | None:
        """Return w as a sum over basis points where it is one; else None."""
        return None

    def separate(self, ids: IntArray, weights: DenseWeights, *, precise: bool) -> _core.PlaneBatch:
        """Return the most violated plane of each listed example; planes equal to the truth's are left out.

        ``precise=False`` allows scores in float32: the planes are as good as any for training, but a value computed
        from them may fall short of the maximum by a rounding error. Examples of sample weight 0 are not searched, and left out.
        """
        if self.sample_weight is not None:
            ids = ids[self.sample_weight[ids] > 0.0]
        self.count_calls(len(ids))
        return self._search(ids, weights, precise)

    def timed_search(self, ids: IntArray, weights: DenseWeights) -> tuple[_core.PlaneBatch, float]:
        """Return the most violated planes of some examples, and how many seconds the search of one took."""
        start = time.perf_counter()
        found = self.separate(ids, weights, precise=True)
        return found, (time.perf_counter() - start) / len(ids)

    def rounded(self, weights: DenseWeights, *, precise: bool) -> NDArray[np.float32] | None:
        """Return the float32 copy of the weights where scores may be computed from it; else None."""
        return None if precise or self.always_precise else weights.rounded

    def values_found(self, batch: _core.PlaneBatch, weights: DenseWeights, *, precise: bool) -> FloatArray:
        """Return Δ − w·ψ of the planes that :meth:`separate` found, at the same weights and in the same precision."""
        known = batch.values()
        if known is not None:
            return known
        rounded = self.rounded(weights, precise=precise)
        values: FloatArray = batch.losses() - self.space.dots(batch, weights.exact, rounded)
        return values

    @abstractmethod
    def oracle(
        self, weights: DenseWeights, *, precise: bool, plain: bool = False, k_best: int | None = None
    ) -> _core.Oracle:
        """Return the search at ``weights`` as a compiled pass asks for it, which moves them between its calls.

        ``plain=True`` asks for the best output without its loss, ``k_best`` for so many of them. The pass says how many
        examples it searched by :meth:`count_calls`; it leaves out those of sample weight 0.
        """

    def count_calls(self, n_examples: int) -> None:
        """Note that so many examples are searched, by one search or a compiled pass."""
        self.oracle_calls += n_examples

    @abstractmethod
    def _search(self, ids: IntArray, weights: DenseWeights, precise: bool) -> _core.PlaneBatch: ...

    def separate_into(self, cuts: Cuts, weights: DenseWeights, *, precise: bool) -> None:
        """Make the cut of all examples' most violated planes the pending one of ``cuts``."""
        cuts.assemble(self.space, self.separate(self.all_ids, weights, precise=precise), self.sample_weight)

    def slacks(self, weights: DenseWeights, ids: IntArray | None = None) -> FloatArray:
        """Return H_i(w) for all examples, by one exact pass; with ``ids`` for these only, and 0 for the others."""
        batch = self.separate(self.all_ids if ids is None else ids, weights, precise=True)
        values = np.zeros(self.n_examples)
        values[batch.examples()] = self.values_found(batch, weights, precise=True)
        return np.maximum(values, 0.0)

    def primal(self, weights: DenseWeights, C: float, *, squared: bool, ids: IntArray | None = None) -> float:
        """Return ½‖w‖² + C Σ s_i H_i (or H_i²), exactly; with ``ids`` the sum over these examples only."""
        slacks = self.slacks(weights, ids)
        return 0.5 * weights.norm2() + C * self._weighted(slacks**2 if squared else slacks)

    def _weighted(self, of_examples: FloatArray) -> float:
        """Return the sum over the examples, each times its weight."""
        return float(of_examples.sum() if self.sample_weight is None else self.sample_weight @ of_examples)

    def score_line(self) -> _core.ScoreLine | None:
        """Return the scores of all rows along a line, for models whose search is cheaper than scoring; else None."""
        return None

    def row_blocks(self, C: float, *, squared: bool) -> _core.RowBlocks | None:
        """Return the dual of all examples where each is one row with one label and no weight is bounded; else None."""
        return None

    def block_space(self) -> _core.PlaneSpace:
        """Return the space in which blocks of planes move w."""
        return self.space

    def sum_planes(self, sets: _core.WorkingSets, weights: DenseWeights) -> None:
        """Make w the sum of all planes of working sets in :meth:`block_space`."""
        sets.weights(weights.exact)
        weights.touch()

    def sum_rows(self, blocks: _core.RowBlocks, weights: DenseWeights, *, afresh: bool = False) -> None:
        """Make w the sum of all planes of :meth:`row_blocks`; ``afresh`` where it did not move with them."""
        blocks.weights(weights.exact)
        weights.touch()

    def feature_rank(self) -> int | None:
        """Return about how many features have the products of a kernel's rows, where that is few; else None."""
        return None

    def with_features(self) -> LinearProblem | None:
        """Return the problem over features whose products are the values of its kernel, up to rounding; None if they are many."""
        return None

    @property
    def has_few_features(self) -> bool:
        """Whether a kernel's rows have far fewer features than there are rows."""
        return False

    def begin_anew(self) -> None:
        """Count for another run; an oracle that was caught once stays one that may be wrong."""
        self.oracle_calls = 0

    def report_open(self) -> None:
        """Report searches that did not close since the last call, for solvers without a primal; none are left open here."""
        return

    def report_left_open(self) -> None:  # noqa: B027 - only where left_open may be True
        """Report that searches at the point which training ends with left something open."""

    def report_inexact(self, example: int) -> None:
        """Note that an oracle answer of this example was proved wrong; warn the first time."""
        if self.is_exact:
            warn_caller(
                f"the oracle's answer for example {example} is worth less than an output already known: it is not an exact "
                "maximiser. The better output is used; the dual stays a lower bound, the primal becomes an estimate.",
                InexactOracleWarning,
            )
        self.is_exact = False

    def report_refuted(self, primal: float, dual: float) -> None:
        """Note that the oracle's answers at some w add up to less than the optimum is proved to be; warn the first time."""
        if self.is_exact:
            warn_caller(
                f"the oracle's answers add up to a primal of {primal:g} where the dual proves {dual:g}: it is not an exact "
                "maximiser. Such points are passed over; the dual stays a lower bound, the primal becomes an estimate.",
                InexactOracleWarning,
            )
        self.is_exact = False

    def close(self) -> None:  # noqa: B027 - most problems hold nothing to give back
        """Give back what the problem holds beyond memory (worker processes)."""
