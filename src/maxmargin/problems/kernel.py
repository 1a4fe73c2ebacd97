"""Training a built-in structure with an exact kernel: a linear model whose features are the rows' numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin._feature_rows import core_features
from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.low_rank import features_of
from maxmargin.kernels.product import NativeProduct, PythonProduct
from maxmargin.problems.base import FloatArray, IntArray, Part, sample_of
from maxmargin.problems.expansion_weights import ExpansionWeights
from maxmargin.problems.kernel_scores import KernelScores, checked_values
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import DenseWeights

# Scores that moved with single rows are summed afresh after so many rounds: many small changes leave rounding behind.
_REFRESH_EVERY = 20

# Kernels whose matrix has no negative eigenvalue, whatever their parameters.
_ALWAYS_DEFINITE = ("linear", "rbf")
# Up to so many rows may be written as features, which takes a matrix of all their values; as many of them tell its rank, unless
# they have this share of the rank that they could have.
_MOST_FEATURE_ROWS, _RANK_ROWS, _FULL_RANK = 5000, 512, 0.9
# Stored values are looked at for so many rows at a time.
_CHECKED_ROWS = 512
# Matrices of up to so many rows are factored to see whether they are positive semi-definite, up to this share of the diagonal.
_FACTORED_ROWS, _ROUNDING = 2000, 1e-6


class KernelProblem(KernelScores, LinearProblem):
    """A built-in structure over rows whose scores are a kernel expansion."""

    def __init__(
        self,
        kernel: Kernel,
        X: Any,
        structure: _core.Structure,
        rescaling: str,
        sample_weight: FloatArray | None,
        n_jobs: int,
        *,
        n_columns: int,
        cheap_oracle: bool,
        offsets: IntArray | None = None,
        structure_of: Callable[[IntArray], _core.Structure] | None = None,
    ) -> None:
        space = _core.LinearSpace(core_features(row_numbers(X.shape[0])), structure, rescaling)
        LinearProblem.__init__(self, space, sample_weight, np.zeros(0, np.int64), n_jobs, cheap_oracle=cheap_oracle)
        # Scores are looked up: there is nothing to gain from reading them in float32, and every pass is exact.
        self.always_precise = True
        self._n_sums = 0
        self._structure = structure
        self._rescaling = rescaling
        self._rank_of_sample: int | None = None
        self._with_features: LinearProblem | None = None
        self._structure_of = structure_of  # the structure of some examples, where each is one row
        self._set_kernel(kernel, X, n_columns, offsets)

    def part(self, examples: IntArray) -> Part | None:
        """Return the problem of some of the rows, where each is an example."""
        structure_of = self._structure_of
        if structure_of is None or not self.kernel.is_native:
            return None
        part = KernelProblem(
            self.kernel,
            self._X[examples],
            structure_of(examples),
            self._rescaling,
            None if self.sample_weight is None else self.sample_weight[examples],
            self.n_jobs,
            n_columns=self.n_columns,
            cheap_oracle=self.cheap_oracle,
            structure_of=lambda rows: structure_of(examples[rows]),
        )

        def extend(weights: DenseWeights) -> FloatArray:
            coef = np.zeros(self.n_weights)
            coef[self.places_of(examples)] = weights.vector
            self.oracle_calls += part.oracle_calls
            self._n_part_values += part.n_kernel_values
            return coef

        return Part(part, extend)

    def score_line(self) -> _core.ScoreLine | None:
        """Return the scores of all rows along a line, where the structure has no table."""
        return _core.ScoreLine(self.space) if self.space.has_line else None

    def row_blocks(self, C: float, *, squared: bool) -> _core.RowBlocks | None:
        """Return the dual of all examples where each is one row with one label, moved by columns of the kernel matrix."""
        if not self.space.has_row_labels:
            return None
        self._refuse_indefinite()
        self._n_sums = 0
        return _core.RowBlocks(self.space, C * self.weight_of_examples, squared, self._columns(self.n_jobs))

    @property
    def keeps_values(self) -> bool:
        """Whether the values are those of a function or a matrix, and block-dual keeps all of them."""
        return not self.kernel.is_native and self.kept_columns == 1.0

    @property
    def decoding_work(self) -> float:
        """What decoding takes beside moving a row, which moves the scores of all rows."""
        return super().decoding_work / max(self.n_kernel_rows, 1)

    def block_space(self) -> _core.PlaneSpace:
        """Return the space in which planes of examples of many rows move the scores of all rows."""
        self._refuse_indefinite()
        # One thread: it would take others as long to begin as planes take to move.
        return _core.KernelSpace(self.space, self._columns(1))

    def sum_planes(self, sets: _core.WorkingSets, weights: DenseWeights) -> None:
        """Make the coefficients the sum of all planes, and the scores those that they give."""
        assert isinstance(weights, ExpansionWeights)
        coef, scores = np.zeros_like(weights.coef), np.zeros_like(weights.exact)
        sets.weights(scores)
        sets.coefficients(coef)
        weights.coef[:], weights.exact[:] = coef, scores
        weights.touch()

    def feature_rank(self) -> int | None:
        """Return about how many features have the products of the rows: by a sample of them, all rows if they need as many."""
        if self.n_kernel_rows > _MOST_FEATURE_ROWS:
            return None
        return self._sampled_rank() if self.has_few_features else self.n_kernel_rows

    @property
    def n_joint_weights(self) -> float:
        """How many weights the features have that :meth:`with_features` gives; infinity where it gives none."""
        rank = self.feature_rank()
        # Of rows of zeros there are none.
        return (
            np.inf
            if rank is None or self.largest_square == 0.0
            else rank * self.stride + self.n_weights - self.n_kernel
        )

    @property
    def has_few_features(self) -> bool:
        """Whether the rows have far fewer features than there are rows, by a sample."""
        n = min(self.n_kernel_rows, _RANK_ROWS)
        return self._sampled_rank() < _FULL_RANK * n

    def _sampled_rank(self) -> int:
        if self._rank_of_sample is None:
            rows = sample_of(self.n_kernel_rows, _RANK_ROWS)
            values = self._values_between(rows, rows)
            # Rows of zeros tell nothing of the others.
            has_values = np.any(np.diagonal(values))
            self._rank_of_sample = features_of(values).shape[1] if has_values else len(rows)
        return self._rank_of_sample

    def with_features(self) -> LinearProblem | None:
        """Return the problem over a row of features for each row, whose products are the kernel's values up to rounding."""
        if self._with_features is None and self.n_kernel_rows <= _MOST_FEATURE_ROWS:
            everyone = np.arange(self.n_kernel_rows)
            values = self._values_between(everyone, everyone)
            if not np.any(np.diagonal(values)):
                return None
            rows = features_of(values)
            self._with_features = LinearProblem(
                _core.LinearSpace(core_features(rows), self._structure, self._rescaling),
                self.sample_weight,
                self.nonnegative,
                self.n_jobs,
                cheap_oracle=True,
            )
        return self._with_features

    def _refuse_indefinite(self) -> None:
        """Refuse a kernel that is not positive semi-definite on a sample: blocks would be solved without a sign of it."""
        if self.kernel.name not in _ALWAYS_DEFINITE:
            self.check_square(float(np.linalg.eigvalsh(checked_values(self.sample_matrix()))[0]), 1.0)

    def _columns(self, n_threads: int) -> _core.RowColumns:
        """Return the columns of the kernel matrix: computed as they are asked for by the core, else all of them."""
        constant = self.kernel.constant
        if self.kernel.is_native:
            diagonal = self.kernel.diagonal(self._X)
            return _core.kernel_columns(self._whole_product().core, diagonal, constant, n_threads)
        product = self.product
        assert isinstance(product, PythonProduct)
        if not product.can_be_stored(1e6 * self.kernel.cache):
            raise ValueError(
                "solver 'block-dual' keeps all values of a kernel that is a function or a sparse matrix: for "
                f"{self.n_kernel_rows} rows {8e-6 * self.n_kernel_rows**2:.3g} MB, and kernel_cache allows "
                f"{self.kernel.cache:g} MB. Allow more; for the hinge there is solver='one-slack', which keeps none of them."
            )
        stored = product.store()
        self._check_pairs(stored)
        self._check_whole(stored)
        return _core.stored_columns(stored, constant, n_threads)

    def _check_pairs(self, stored: NDArray[Any]) -> None:
        """Refuse values k(x, z)² > k(x, x) k(z, z): no features of two rows have such products."""
        roots = np.sqrt(np.maximum(np.diagonal(stored).astype(np.float64), 0.0))
        for first in range(0, len(stored), _CHECKED_ROWS):
            rows = slice(first, first + _CHECKED_ROWS)
            excess = float(np.max(np.abs(stored[rows]) - np.outer(roots[rows], roots), initial=0.0))
            # (1, ±1) over two rows whose value is too large has this square, at most.
            self.check_square(-2.0 * excess, 2.0)

    def _check_whole(self, stored: NDArray[Any]) -> None:
        """Refuse a matrix of not too many rows that is not positive semi-definite: a factor of it takes little time."""
        if len(stored) > _FACTORED_ROWS:
            return
        values = stored.astype(np.float64) + self.kernel.constant
        shift = _ROUNDING * float(np.max(np.diagonal(values), initial=0.0))
        try:
            np.linalg.cholesky(values + shift * np.eye(len(values)))
        except np.linalg.LinAlgError:
            self.check_square(float(np.linalg.eigvalsh(values)[0]), 1.0)

    def _whole_product(self) -> NativeProduct:
        """Return the product whose columns are whole, in the order of the rows."""
        self.negligible, product = 0.0, self.product
        assert isinstance(product, NativeProduct)
        if product.core.leaves_out:
            self._product = product = self._new_product()
            assert isinstance(product, NativeProduct)
        return product

    def sum_rows(self, blocks: _core.RowBlocks, weights: DenseWeights, *, afresh: bool = False) -> None:
        """Take the coefficients of the blocks; the scores, which moved with them, are summed afresh now and then, or if asked."""
        assert isinstance(weights, ExpansionWeights)
        coef, scores = np.zeros_like(weights.coef), weights.exact
        blocks.weights(coef)
        self._n_sums += 1
        if afresh or self._n_sums % _REFRESH_EVERY == 0:
            # Beside those there are: whoever breaks this off finds scores that belong together.
            scores = np.zeros_like(scores)
            self.add_scores(coef, scores)
        weights.coef[:], weights.exact[:] = coef, scores
        weights.touch()


def row_numbers(n_rows: int) -> sp.csr_array:
    """Return features that name the rows: 1 at the row's own number."""
    return sp.csr_array(
        (np.ones(n_rows, np.float32), np.arange(n_rows, dtype=np.int32), np.arange(n_rows + 1, dtype=np.int64)),
        shape=(n_rows, n_rows),
    )
