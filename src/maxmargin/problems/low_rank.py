"""Training with a low-rank kernel: rows are mapped to vectors, and everything after that is linear."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin._feature_rows import core_features
from maxmargin.kernels.expansion import Expansion
from maxmargin.kernels.kernel import Kernel, LowRank
from maxmargin.kernels.low_rank import LowRankMap
from maxmargin.kernels.product import DOUBLE_ROWS, kernel_matrix
from maxmargin.problems.base import FloatArray
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import DenseWeights


class _InThreads:
    """A kernel whose values are computed in so many threads."""

    def __init__(self, kernel: Kernel, n_jobs: int) -> None:
        self._kernel, self._n_jobs = kernel, n_jobs
        self.diagonal = kernel.diagonal

    def __call__(self, A: Any, B: Any) -> FloatArray:
        return kernel_matrix(self._kernel, A, B, self._n_jobs)


class LowRankFeatures:
    """The features of rows X, by a basis chosen from ``counted`` ones, and the way back from weights to an expansion over it."""

    def __init__(self, low_rank: LowRank, X: Any, counted: Any = None, n_jobs: int = 1) -> None:
        counted = X if counted is None else counted
        kernel = low_rank.kernel.for_data(counted)
        self._kernel = replace(kernel, constant=0.0)
        in_threads = _InThreads(self._kernel, n_jobs)
        self._constant = float(np.sqrt(kernel.constant))
        rng = np.random.default_rng(low_rank.random_state)
        self._map = LowRankMap.fit(in_threads, counted, low_rank.n_components, low_rank.basis, rng)
        dtype = np.float64 if X.shape[0] <= DOUBLE_ROWS else np.float32
        has_constant = self._constant > 0.0
        self.rows: NDArray[Any] = np.empty((X.shape[0], self._map.n_components + has_constant), dtype)
        self._map.transform(X, out=self.rows[:, : self._map.n_components])
        if has_constant:
            self.rows[:, -1] = self._constant

    @property
    def name(self) -> str:
        """What the kernel became, for certificates."""
        return f"the kernel projected on {self._map.n_components} basis points"

    def expansion(self, coef: FloatArray, table: FloatArray) -> Expansion:
        """Return weights, labels × features, as a sum over the basis."""
        k = self._map.n_components
        intercept = self._constant * coef[:, k] if self._constant > 0.0 else np.zeros(len(coef))
        return Expansion(self._kernel, self._map.basis, self._map.fold(coef[:, :k]), intercept, table)


class LowRankProblem(LinearProblem):
    """A built-in structure over rows in a low-rank space; bounds are those of this space."""

    depends_on_all = True
    planes_are_outputs = False

    def __init__(
        self,
        features: LowRankFeatures,
        structure: _core.Structure,
        rescaling: str,
        sample_weight: FloatArray | None,
        n_jobs: int,
        *,
        n_columns: int,
        cheap_oracle: bool,
    ) -> None:
        space = _core.LinearSpace(core_features(features.rows), structure, rescaling)
        super().__init__(space, sample_weight, np.zeros(0, np.int64), n_jobs, cheap_oracle=cheap_oracle)
        self._features = features
        self._n_columns = n_columns
        self.dual_of = features.name

    def expansion(self, weights: DenseWeights) -> Expansion:
        """Return w as a sum over the basis points."""
        n_features, stride = self._features.rows.shape[1], _core.padded_labels(self._n_columns)
        end = n_features * stride
        coef = weights.vector[:end].reshape(n_features, stride)[:, : self._n_columns].T
        return self._features.expansion(np.ascontiguousarray(coef), weights.vector[end:].copy())
