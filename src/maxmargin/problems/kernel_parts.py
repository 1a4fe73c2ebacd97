"""A kernel model on its training data, seen as a model of vectors.

With an exact kernel these are vectors of coefficients, one for each training point and column, and the weights that searches are
given are scores of the same layout (see :mod:`maxmargin.problems.kernel_scores`). With a low-rank one they are vectors of
its features.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from maxmargin import _core
from maxmargin.kernels import Expansion, Kernel
from maxmargin.model import Model
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.kernel_scores import KernelScores
from maxmargin.problems.low_rank import LowRankFeatures
from maxmargin.problems.python import PythonProblem, as_sparse
from maxmargin.problems.weights import DenseWeights

if TYPE_CHECKING:
    from maxmargin.kernel_model import KernelModel


class PartScores(NamedTuple):
    """What searches of a :class:`KernelModel` are given in place of w.

    Attributes
    ----------
    table : ndarray of shape (points of the input, columns)
        The score of each point in each column.
    weights : ndarray
        The weights of ``joint_feature``.
    """

    table: FloatArray
    weights: FloatArray


@dataclass(frozen=True)
class OwnPoints:
    """Inputs, and where the points of each lie among the points of all."""

    X: Any
    offsets: IntArray

    def rows(self, i: int) -> slice:
        """Return the points of input i."""
        return slice(int(self.offsets[i]), int(self.offsets[i + 1]))


class PointModel(Model):
    """A kernel model whose inputs are the numbers of those it was made for; the weights are a vector."""

    def __init__(self, model: KernelModel, own: OwnPoints) -> None:
        self._model = model
        self._own = own

    @abstractmethod
    def _scores(self, i: int, w: FloatArray) -> Any:
        """Return the :class:`PartScores` of input i."""

    @abstractmethod
    def _part_features(
        self, i: int, points: IntArray, columns: IntArray, values: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        """Return the vector of parts of input i as indices and values."""

    @property
    def n_linear(self) -> int:
        """How many weights no kernel has; they are the last ones."""
        return self._model.n_features

    def joint_feature(self, i: int, y: Any) -> Any:
        """Return the vector of an output of input i, as indices and values."""
        x, rows = self._own.X[i], self._own.rows(i)
        parts = self._model.part_entries(x, y, rows.stop - rows.start, f"X[{i}], y")
        indices, values = self._part_features(i, *parts)
        linear = as_sparse(self._model.joint_feature(x, y), self.n_linear, f"joint_feature(X[{i}], y)")
        return (
            np.concatenate([indices, self.n_features - self.n_linear + linear.indices]),
            np.concatenate([values, linear.values]),
        )

    def loss(self, y_true: Any, y: Any) -> float:
        """Return Δ."""
        return self._model.loss(y_true, y)

    def outputs(self, i: int) -> Iterable[Any]:
        """Return all outputs of input i."""
        return self._model.outputs(self._own.X[i])

    def argmax(self, i: int, w: FloatArray) -> Any:
        """Return the best output of input i."""
        return self._model.argmax(self._own.X[i], self._scores(i, w))

    def loss_augmented_argmax(self, i: int, y_true: Any, w: FloatArray) -> Any:
        """Return the most violated output of input i."""
        return self._model.loss_augmented_argmax(self._own.X[i], y_true, self._scores(i, w))

    def slack_rescaled_argmax(self, i: int, y_true: Any, w: FloatArray) -> Any:
        """Return the most violated output of input i under slack rescaling."""
        return self._model.slack_rescaled_argmax(self._own.X[i], y_true, self._scores(i, w))

    def m_best(self, i: int, w: FloatArray, m: int) -> list[Any]:
        """Return the best outputs of input i."""
        return self._model.m_best(self._own.X[i], self._scores(i, w), m)

    def diverse_argmax(self, i: int, others: Sequence[Any], strengths: Sequence[float], w: FloatArray) -> Any:
        """Return the best output of input i that differs from others."""
        return self._model.diverse_argmax(self._own.X[i], others, strengths, self._scores(i, w))

    def key(self, y: Any) -> Any:
        """Return what makes two outputs the same."""
        return self._model.key(y)

    def _enumerates(self, search: str) -> bool:
        return self._model._enumerates(search)

    def _lists(self, i: int, y: Any) -> bool:
        return self._model._lists(self._own.X[i], y)


class CoefficientModel(PointModel):
    """Weights are scores of points × columns, in rows of ``stride`` numbers; features are coefficients of points."""

    def __init__(self, model: KernelModel, own: OwnPoints, stride: int) -> None:
        super().__init__(model, own)
        self._stride = stride
        self.n_features = int(own.offsets[-1]) * stride + self.n_linear

    def _scores(self, i: int, w: FloatArray) -> PartScores:
        rows = self._own.rows(i)
        table = w[rows.start * self._stride : rows.stop * self._stride].reshape(-1, self._stride)
        return PartScores(table[:, : self._model.n_columns], w[self.n_features - self.n_linear :])

    def _part_features(
        self, i: int, points: IntArray, columns: IntArray, values: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        return (self._own.rows(i).start + points) * self._stride + columns, values


class LowRankModel(PointModel):
    """Weights are those of columns × low-rank features."""

    def __init__(self, model: KernelModel, own: OwnPoints, features: LowRankFeatures) -> None:
        super().__init__(model, own)
        self._features = features
        self.kernel_name = features.name
        self.n_features = model.n_columns * features.rows.shape[1] + self.n_linear

    def _scores(self, i: int, w: FloatArray) -> PartScores:
        end = self.n_features - self.n_linear
        coef = w[:end].reshape(self._model.n_columns, -1)
        return PartScores(self._features.rows[self._own.rows(i)] @ coef.T, w[end:])

    def _part_features(
        self, i: int, points: IntArray, columns: IntArray, values: FloatArray
    ) -> tuple[IntArray, FloatArray]:
        rows = self._features.rows[self._own.rows(i)]
        total = np.zeros((self._model.n_columns, rows.shape[1]))
        np.add.at(total, columns, values[:, None] * rows[points])
        return np.flatnonzero(total), total[total != 0.0]

    def expansion(self, w: FloatArray) -> Expansion:
        """Return weights as a sum over the basis points."""
        end = self.n_features - self.n_linear
        return self._features.expansion(w[:end].reshape(self._model.n_columns, -1), w[end:].copy())


_NONE: IntArray = np.zeros(0, np.int64)


class KernelPartsProblem(KernelScores, PythonProblem):
    """A user's model whose parts an exact kernel scores."""

    def __init__(
        self,
        model: KernelModel,
        own: OwnPoints,
        kernel: Kernel,
        rows: Any,
        Y: Any,
        rescaling: str,
        sample_weight: FloatArray | None,
        n_jobs: int,
    ) -> None:
        searcher = CoefficientModel(model, own, _core.padded_labels(model.n_columns))
        PythonProblem.__init__(self, searcher, range(len(Y)), Y, rescaling, sample_weight, _NONE, n_jobs)
        self._set_kernel(kernel, rows, model.n_columns, own.offsets)


class LowRankPartsProblem(PythonProblem):
    """A user's model whose parts a low-rank kernel scores; bounds are those of its space."""

    depends_on_all = True

    def __init__(
        self, model: LowRankModel, Y: Any, rescaling: str, sample_weight: FloatArray | None, n_jobs: int
    ) -> None:
        super().__init__(model, range(len(Y)), Y, rescaling, sample_weight, _NONE, n_jobs)
        self._model = model
        self.dual_of = model.kernel_name

    def expansion(self, weights: DenseWeights) -> Expansion:
        """Return w as a sum over the basis points."""
        return self._model.expansion(weights.vector)
