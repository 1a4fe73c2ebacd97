"""Training with an exact kernel: w is known by its coefficients over the training rows and by its scores there.

    w = Σ_t Σ_l β_tl φ(x_t) ⊗ e_l  (+ weights that no kernel has)      score of row t, label l:  F_tl = Σ_u k(x_t, x_u) β_ul

A plane is a vector of coefficients: those of the rows that differ from the truth. Its product with w is its sum over F, so that
searches and values of planes are those of a linear model whose features are the rows' numbers and whose weights are F. Products
of two planes need K and are not formed. A cut is a sum of planes with its score table S = K g; products of cuts are sums over S,
and F = Σ α_k S_k (Joachims, Finley and Yu 2009, section 3.3).

S of a new cut is that of the stored cut that differs least from it, plus the kernel columns of the rows that differ: few do.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin.kernels._repeated_parts import repeated_parts
from maxmargin.kernels.expansion import Expansion
from maxmargin.kernels.kernel import Kernel, LowRank
from maxmargin.kernels.product import (
    DOUBLE_ROWS,
    Coefficients,
    Product,
    PythonProduct,
    centre_of,
    kernel_product,
    part_product,
)
from maxmargin.problems.base import SAMPLED_ROWS, FloatArray, IntArray, Problem, sample_of
from maxmargin.problems.expansion_weights import ExpansionWeights
from maxmargin.problems.kernel_cuts import KernelCuts
from maxmargin.problems.low_rank import LowRankFeatures
from maxmargin.problems.weights import DenseWeights

# Up to so many rows nothing costs anything.
_FEW_ROWS = 200
# What float32 rounds off a kernel value: units of which a few come of the exponential, and as many of its exponent as that is a
# difference of. In a score this may come to a share of the tolerance. Values and exponents are looked at for so many rows. (Dense
# rows with larger exponents are treated apart.)
_ROUNDING, _FEW_UNITS, _SINGLE_SHARE = 6e-8, 10.0, 0.3
_APART = 1024.0
# Kernel values count as 0 where all that a score may lose by that is this share of the tolerance.
_NEGLIGIBLE_SHARE = 1e-5
# What a value takes: one that the core computes, and one that is there.
_NATIVE_SECONDS, _STORED_SECONDS = 3e-9, 5e-10
# Functions are tried for symmetry on so few rows; values may differ by this share of the largest.
_FEW, _ASYMMETRY = 16, 1e-6
# Coefficients below this share of the largest may be what is left of larger ones, where all of them come to no more than such a
# share of the scores.
_DUST, _DUST_SHARE = 1e-10, 1e-9
# What double precision rounds off a term of a score, and how many values of terms are formed at once.
_DOUBLE_ROUNDING, _TERMS = 4.0 * float(np.finfo(np.float64).eps), 1 << 20
# A square ‖g‖² below −this share of what its terms sum to is no rounding error: the kernel is not positive semi-definite.
_NEGATIVE_SHARE = 1e-4


class KernelScores(Problem):
    """What problems have in common whose scores of rows are a kernel expansion, whoever searches their outputs.

    A subclass calls :meth:`_set_kernel` when it is made. Its weights are those of rows × columns, in rows of ``stride``
    numbers, and then those that no kernel has.
    """

    has_vectors = False
    depends_on_all = True
    planes_are_outputs = False

    def _set_kernel(self, kernel: Kernel, X: Any, n_columns: int, offsets: IntArray | None) -> None:
        """Take the kernel, the rows, how many scores each has, and where examples of many rows begin."""
        self.kernel = kernel
        self.n_columns = n_columns
        self.stride = _core.padded_labels(n_columns)
        self.n_kernel = X.shape[0] * self.stride  # so many of the weights come before those that no kernel has
        self.is_small = X.shape[0] <= _FEW_ROWS
        self.is_single = False
        self.negligible = 0.0  # kernel values below it may count as 0
        self.left_out = 0.0  # the same of score tables that were taken over from an earlier run
        self._X = X
        self._offsets = offsets
        self._n_part_values = 0
        self._product: Product | None = None
        self._must_be_double = False
        self._most: float | None = None  # k(x, x), when it was asked for
        _check_symmetric(kernel, X)
        self._sample: FloatArray | None = None
        self._sample_seconds = 0.0
        self._largest_square = float(np.max(checked_values(self._some_diagonal()), initial=0.0))

    def prepare(self, C: float, tol: float) -> None:
        """Choose the precision of kernel values by what is asked for."""
        is_single, negligible = self._can_be_single(C, tol), self._most_negligible(C, tol)
        if self._product is None or is_single != self.is_single or negligible < self.negligible:
            self.is_single, self.negligible = is_single, negligible
            self._product = self._new_product()

    def _new_product(self) -> Product:
        return kernel_product(
            self.kernel,
            self._X,
            is_single=self.is_single,
            cache_bytes=1e6 * self.kernel.cache,
            negligible=self.negligible,
        )

    def _most_negligible(self, C: float, tol: float) -> float:
        """Return the kernel value below which no value counts: coefficients of rows add up to Σ C s_i, or to a few times that."""
        if self._must_be_double or self._X.shape[0] <= DOUBLE_ROWS or self.kernel.name != "rbf" or not np.isfinite(C):
            return 0.0
        return float(min(_NEGLIGIBLE_SHARE * tol / max(C * self.total_weight, 1.0), 0.5))

    def _can_be_single(self, C: float, tol: float) -> bool:
        """Return whether what float32 rounds off scores is likely to be small against the tolerance.

        A score is a sum of β_j k(x, x_j) with |β_j| ≤ C s_j. Its terms are rounded up and down, so that their errors add up like
        the root of the sum of their squares. :meth:`score_error` looks at what came of it.
        """
        n_rows = self._X.shape[0]
        if self._must_be_double or n_rows <= DOUBLE_ROWS or self.kernel.name != "rbf" or not np.isfinite(C):
            return False
        rows, points = sample_of(n_rows, SAMPLED_ROWS), sample_of(n_rows, 4 * SAMPLED_ROWS)
        # The constant is added in double.
        values = replace(self.kernel, constant=0.0)(self._X[rows], self._X[points])
        largest = float(np.sqrt((values**2).mean(axis=1).max()))
        heaviest = 1.0 if self.sample_weight is None else float(self.sample_weight.max())
        error = _ROUNDING * (_FEW_UNITS + self._largest_exponent(rows))
        return bool(error * C * heaviest * np.sqrt(n_rows) * largest <= _SINGLE_SHARE * tol)

    def score_error(self, weights: DenseWeights) -> float:
        """Return by how much scores differ from those in double precision.

        That is the largest difference in a sample of rows, and what kernel values come to that counted as 0: about at most. (A
        table that was made from another one has left out values with both, and most of them are far below the limit.)
        """
        most = max(self.negligible, self.left_out)
        left_out = most * float(np.abs(weights.vector[: self.n_kernel]).sum()) if most else 0.0
        if not self.is_single:
            return left_out
        rows = sample_of(self._X.shape[0], 2 * SAMPLED_ROWS)
        entries = np.flatnonzero(weights.vector[: self.n_kernel])
        exact = self.scores_of(rows, entries, weights.vector[entries], is_single=False)
        if isinstance(weights, ExpansionWeights) and not weights.is_scored:
            rounded = self.scores_of(rows, entries, weights.vector[entries], is_single=True)
        else:
            rounded = weights.exact[self.places_of(rows)]
        return left_out + float(np.max(np.abs(exact - rounded), initial=0.0))

    def double(self) -> None:
        """Compute kernel values in double precision from now on, whatever is asked for."""
        self._must_be_double = True

    def _largest_exponent(self, rows: IntArray) -> float:
        """Return the largest γ‖x‖² of some rows, which are centred where they are dense."""
        squares, gamma = Kernel("linear", 1.0).diagonal, float(self.kernel.gamma)
        is_sparse: bool = sp.issparse(self._X)
        if is_sparse:
            return gamma * float(np.max(squares(self._X), initial=0.0))
        parts = repeated_parts(self._X)
        rest = self._X if parts is None else parts.rest
        centred = rest[rows].astype(np.float64) - centre_of(rest)
        return min(gamma * float(np.max(squares(centred), initial=0.0)), _APART)

    @property
    def n_kernel_rows(self) -> int:
        """How many rows and columns the kernel matrix has."""
        return int(self._X.shape[0])

    @property
    def seconds_per_value(self) -> float:
        """About how long a kernel value takes: by a guess, so that what follows repeats, and of a function by the clock."""
        if not callable(self.kernel.name):
            # Functions are not called by several threads.
            return _STORED_SECONDS if self.kernel.name == "precomputed" else _NATIVE_SECONDS / self.n_jobs
        return self._sample_seconds / max(self.sample_matrix().size, 1)

    @property
    def has_signs(self) -> bool:
        """Whether an output is one of two signs."""
        return self.stride == 1

    @property
    def mean_value(self) -> float:
        """The mean of k(x, z) over that of k(x, x), without the constant, by a sample."""
        values = self.sample_matrix() - self.kernel.constant
        squares, n = float(np.trace(values)), len(values)
        return float(np.sum(values) - squares) / (squares * (n - 1)) if n > 1 and squares > 0.0 else 1.0

    @property
    def computes_values(self) -> bool:
        """Whether kernel values are computed by the core, not by a function in Python."""
        return self.kernel.is_native

    @property
    def largest_square(self) -> float:
        """The largest k(x, x), by a sample."""
        return self._largest_square

    def sample_matrix(self) -> FloatArray:
        """Return the kernel values among some of the rows, asked for once."""
        if self._sample is None:
            start = time.perf_counter()
            rows = sample_of(self._X.shape[0], SAMPLED_ROWS)
            self._sample = self._values_between(rows, rows)
            self._sample_seconds = time.perf_counter() - start
        return self._sample

    def _values_between(self, rows: IntArray, points: IntArray) -> FloatArray:
        """Return kernel values of training rows; those of a function are asked for where they are not kept."""
        if isinstance(self._product, PythonProduct) and self._product.is_stored:
            return self._product.store()[np.ix_(rows, points)].astype(np.float64) + self.kernel.constant
        if self.kernel.name != "precomputed":
            return self.kernel(self._X[rows], self._X[points])
        values = self._X[rows][:, points]
        is_sparse: bool = sp.issparse(values)
        return np.asarray(values.toarray() if is_sparse else values, dtype=np.float64) + self.kernel.constant

    def _some_diagonal(self) -> FloatArray:
        """Return k(x, x) of some rows, for its scale."""
        rows = sample_of(self._X.shape[0], SAMPLED_ROWS)
        if callable(self.kernel.name):
            # One call, where those of single rows may take as long each.
            return np.diagonal(self.sample_matrix())
        if self.kernel.name != "precomputed":
            return self.kernel.diagonal(self._X[rows])
        return np.array([float(self._X[i, i]) for i in rows]) + self.kernel.constant

    @property
    def kept_columns(self) -> float:
        """Which share of the columns of the kernel matrix may be kept."""
        if isinstance(self.product, PythonProduct):
            return 1.0 if self.product.can_be_stored(1e6 * self.kernel.cache) else 0.0
        n_rows, n_bytes = self._X.shape[0], 4.0 if self.is_single else 8.0
        return float(min(1.0, 1e6 * self.kernel.cache / max(n_bytes * n_rows * n_rows, 1.0)))

    @property
    def product(self) -> Product:
        """K as something that multiplies."""
        if self._product is None:
            self.prepare(np.inf, 0.0)
        assert self._product is not None
        return self._product

    def zero_weights(self) -> ExpansionWeights:
        """Return w = 0."""
        return ExpansionWeights(self.n_weights)

    def new_cuts(self) -> Any:
        """Return an empty set of cuts."""
        return KernelCuts(self)

    def own_cuts(self, cuts: Any) -> Any:
        """Return cuts of the same problem, bound earlier, for this one."""
        return cuts.copy_for(self)

    def add_scores(self, change: FloatArray, scores: FloatArray) -> None:
        """Add the scores of a change of coefficients; weights that no kernel has are their own."""
        entries = np.flatnonzero(change)
        self.add_entry_scores(entries, change[entries], scores)

    def add_entry_scores(self, entries: IntArray, values: FloatArray, scores: FloatArray) -> None:
        """Add the scores of coefficients at ascending places; each point takes a kernel value for every row."""
        n = int(np.searchsorted(entries, self.n_kernel))
        coefficients = Coefficients.of(entries[:n], values[:n], self.stride)
        self.product.add(coefficients, self.stride, scores[: self.n_kernel], self.n_jobs)
        scores[entries[n:]] += values[n:]

    def low_rank_rows(self, n_components: int, seed: int) -> NDArray[Any]:
        """Return the features of all rows in a low-rank space of the kernel."""
        n = min(n_components, self._X.shape[0])
        return LowRankFeatures(LowRank(self.kernel, n, "random", seed), self._X, n_jobs=self.n_jobs).rows

    def rows_of(self, examples: IntArray) -> IntArray:
        """Return the numbers of all rows of some examples, in their order."""
        if self._offsets is None:
            return examples
        starts = self._offsets[examples]
        lengths = self._offsets[examples + 1] - starts
        rows: IntArray = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        return rows

    def places_of(self, rows: IntArray) -> IntArray:
        """Return where the weights of some rows lie, those of a row side by side."""
        return (rows[:, None] * self.stride + np.arange(self.stride)).ravel()

    def scores_of(
        self, rows: IntArray | slice, entries: IntArray, values: FloatArray, *, is_single: bool
    ) -> FloatArray:
        """Return the scores that coefficients at ascending places give to some rows, in the order of :meth:`places_of`.

        The kernel values are those of these rows and points alone: the work does not grow with the number of all rows. None of
        them is kept.
        """
        n_rows = self._X.shape[0] if isinstance(rows, slice) else len(rows)
        out = np.zeros(n_rows * self.stride)
        n = int(np.searchsorted(entries, self.n_kernel))
        points, owners = np.unique(entries[:n] // self.stride, return_inverse=True)
        if len(points) and n_rows:
            product = part_product(self.kernel, self._X, rows, points, is_single=is_single)
            places = owners * self.stride + entries[:n] % self.stride
            product.add(Coefficients.of(places, values[:n], self.stride), self.stride, out, self.n_jobs)
            self._n_part_values += product.n_computed
        return out

    def square(self, coef: FloatArray, *, is_single: bool = False) -> float:
        """Return ‖w‖² of coefficients from the kernel values among the points that they have, in double precision or float32."""
        entries = np.flatnonzero(coef)
        rows = np.unique(entries[entries < self.n_kernel] // self.stride)
        scores = self.scores_of(rows, entries, coef[entries], is_single=is_single)
        table = coef[self.n_kernel :]
        return float(np.einsum("i,i->", coef[self.places_of(rows)], scores) + np.einsum("i,i->", table, table))

    @property
    def n_kernel_values(self) -> int:
        """How many kernel values were computed."""
        return self._n_part_values + (0 if self._product is None else self._product.n_computed)

    def primal(self, weights: DenseWeights, C: float, *, squared: bool, ids: IntArray | None = None) -> float:
        """Return ½‖w‖² + C Σ s_i H_i (or H_i²); scores that are not there yet are made first."""
        assert isinstance(weights, ExpansionWeights)
        if not weights.is_scored:
            entries = np.flatnonzero(weights.coef)
            everyone = self.scores_of(slice(None), entries, weights.coef[entries], is_single=self.is_single)
            weights.exact[:] = np.concatenate([everyone, weights.coef[self.n_kernel :]])
            weights.is_scored = True
            weights.touch()
        return super().primal(weights, C, squared=squared, ids=ids)

    def check_square(self, square: float, coefficient_square: float) -> None:
        """Refuse ‖g‖² < 0 of a sum with these squares of coefficients: no kernel gives it."""
        # What the square would be if the kernel were diagonal is a scale for rounding errors.
        scale = coefficient_square * max(self._largest_square, 1e-300)
        if square < -_NEGATIVE_SHARE * scale:
            raise ValueError(
                "the kernel is not positive semi-definite on these data: the square of a sum of features came out negative "
                f"({square:.3g}). Choose other parameters (for 'sigmoid' another gamma and coef0), or another kernel."
            )

    def _most_square(self) -> float:
        """Return the largest k(x, x) of all rows; infinity where that is a function's, which is asked for a few only."""
        if self._most is None:
            if callable(self.kernel.name):
                self._most = np.inf
            elif self.kernel.name == "precomputed":
                self._most = float(np.max(self._X.diagonal(), initial=0.0)) + self.kernel.constant
            else:
                self._most = float(np.max(self.kernel.diagonal(self._X), initial=0.0))
        return self._most

    def _without_dust(self, coef: FloatArray, largest_score: float) -> FloatArray:
        """Return coefficients without the dust that cuts leave which cancel each other.

        Small coefficients are none where those of equal rows are large and cancel, or where kernel values are large.
        """
        sizes = np.abs(coef).ravel()
        small = np.flatnonzero(sizes <= _DUST * np.max(sizes, initial=0.0))
        small = small[np.argsort(sizes[small], kind="stable")]
        with np.errstate(invalid="ignore"):  # 0 times infinity
            effect = self._most_square() * np.cumsum(sizes[small])
        cleaned = coef.copy()
        cleaned.ravel()[small[effect <= _DUST_SHARE * largest_score]] = 0.0
        return cleaned

    def score_rounding(self, weights: DenseWeights, least: float) -> float:
        """Return about how much double precision rounds off a margin, by the terms of a sample of rows; 0 below ``least``."""
        # The truth's score and that of another label, where there are columns for both.
        rounding = _DOUBLE_ROUNDING * min(self.n_columns, 2)
        coef = weights.vector[: self.n_kernel].reshape(-1, self.stride)
        most = self._largest_square if callable(self.kernel.name) else self._most_square()
        if rounding * most * float(np.abs(coef).sum()) <= least:
            return 0.0
        rows, points = sample_of(self._X.shape[0], SAMPLED_ROWS), np.flatnonzero(np.any(coef != 0.0, axis=1))
        squares = np.zeros((len(rows), self.stride))
        step = max(1, _TERMS // len(rows))
        for first in range(0, len(points), step):
            _core.poll()
            some = points[first : first + step]
            values = self._values_between(rows, some)
            scale = float(np.max(np.abs(values), initial=0.0)) or 1.0
            squares += (values / scale) ** 2 @ (coef[some] * scale) ** 2
        return rounding * float(np.mean(np.sqrt(squares).max(axis=1)))

    def expansion(self, weights: DenseWeights) -> Expansion:
        """Return w as a sum over the training rows that it has coefficients for."""
        coef = weights.vector[: self.n_kernel].reshape(-1, self.stride)[:, : self.n_columns]
        coef = self._without_dust(coef, float(np.max(np.abs(weights.exact[: self.n_kernel]), initial=0.0)))
        kept = np.flatnonzero(np.any(coef != 0.0, axis=1))
        basis = kept if self.kernel.name == "precomputed" else self._X[kept]
        return Expansion(
            replace(self.kernel, constant=0.0),
            basis,
            np.ascontiguousarray(coef[kept].T),
            self.kernel.constant * coef.sum(axis=0),
            weights.vector[self.n_kernel :].copy(),
        )


def _check_symmetric(kernel: Kernel, X: Any) -> None:
    """Refuse a function that gives two rows another value in the other order, where a few rows show it."""
    if not callable(kernel.name):
        return
    rows = np.linspace(0, X.shape[0] - 1, min(_FEW, X.shape[0])).astype(np.int64)
    values = kernel(X[rows], X[rows])
    difference = float(np.max(np.abs(values - values.T), initial=0.0))
    if difference > _ASYMMETRY * float(np.max(np.abs(values), initial=0.0)):
        raise ValueError(f"the kernel is not symmetric: k(x, z) and k(z, x) differ by {difference:.3g} on these data.")


def checked_values(values: FloatArray) -> FloatArray:
    """Return kernel values, unless they left the range of numbers."""
    if not np.all(np.isfinite(values)):
        raise ValueError("kernel values exceed double precision: scale the features, or choose other parameters.")
    return values
