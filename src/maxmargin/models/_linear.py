"""What the built-in models share: linear scores of feature rows × labels, and where the weights lie."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import (
    as_features,
    as_numbers,
    check_losses,
    check_values,
    column_spread,
    core_features,
    fits_float,
)
from maxmargin._parameters import check_sample_weight, is_integer
from maxmargin.kernels.expansion import Expansion
from maxmargin.kernels.kernel import Kernel, LowRank
from maxmargin.kernels.product import check_precomputed
from maxmargin.problems.base import SAMPLED_ROWS, FloatArray, IntArray, Problem, sample_of
from maxmargin.problems.kernel import KernelProblem, row_numbers
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.low_rank import LowRankFeatures, LowRankProblem

# The core pads rows of labels, in 32-bit integers.
_MOST_LABELS = 2**30


class LinearModel(ABC):
    """Scores = row features × labels (+ a table of tied weights); the structure is a subclass's.

    Parameters
    ----------
    nonnegative : mapping of str to boolean array, optional
        For each named block of weights, which of them must stay ≥ 0.
    kernel : Kernel or LowRank, optional
        Makes the scores of rows a sum over kernels with the training rows, or with some of them.
    """

    cheap_oracle = True
    abilities: frozenset[str] = frozenset({"max_oracle", "slack_oracle", "m_best", "vectors", "blocks"})

    def __init__(
        self, nonnegative: Mapping[str, ArrayLike] | None = None, kernel: Kernel | LowRank | None = None
    ) -> None:
        if kernel is not None and not isinstance(kernel, (Kernel, LowRank)):
            raise TypeError(f"kernel must be a maxmargin.Kernel, a maxmargin.LowRank or None, found {kernel!r}.")
        self.nonnegative = nonnegative
        self.kernel = kernel
        self.abilities = self.abilities_with(kernel)
        self.n_labels = 0
        self.n_features = 0

    @classmethod
    def abilities_with(cls, kernel: Kernel | LowRank | None) -> frozenset[str]:
        """Return what the model can do with this kernel."""
        if not isinstance(kernel, Kernel):
            return cls.abilities
        # Columns of the kernel matrix take the place of vectors.
        return (cls.abilities | {"kernel"}) - {"vectors"}

    @abstractmethod
    def bind(
        self,
        X: Any,
        Y: Any,
        *,
        sample_weight: ArrayLike | None = None,
        rescaling: str = "margin",
        n_jobs: int = 1,
    ) -> LinearProblem:
        """Return the training problem of this model on these data."""

    @property
    @abstractmethod
    def table_blocks(self) -> dict[str, tuple[int, ...]]:
        """Names and shapes of the table's blocks, in their order."""

    @property
    def _rows(self) -> int:
        """How many label columns the emission weights have."""
        return self.n_labels

    @property
    def n_weights(self) -> int:
        """The length of w."""
        return self._n_weights_of(self.n_features)

    @property
    def n_table(self) -> int:
        """How many weights belong to no feature."""
        return sum(int(np.prod(shape)) for shape in self.table_blocks.values())

    def _n_weights_of(self, n_features: int) -> int:
        return n_features * _core.padded_labels(self._rows) + self.n_table

    def blocks(self, w: FloatArray) -> dict[str, NDArray[np.float64]]:
        """Name the parts of a weight vector, as views: writing to one writes to ``w``.

        Parameters
        ----------
        w : array of shape (n_weights,)
            ``Solution.w`` of this model, as it was trained last or with the ``n_features`` that it was given.

        Returns
        -------
        dict of str to array
            ``coef``, labels × features (one row for ``Binary``); for ``Chain`` also ``transition``, from × to, and with
            ``ends`` the weights ``start`` and ``stop`` of first and last labels.
        """
        if np.shape(w) != (self.n_weights,):
            raise ValueError(
                f"w has shape {np.shape(w)}, expected ({self.n_weights},) for {self.n_features} features, those of the data that "
                f"this {type(self).__name__} was trained on last (0 before): for weights of other data use another instance."
            )
        stride = _core.padded_labels(self._rows)
        start = self.n_features * stride
        return {"coef": w[:start].reshape(self.n_features, stride)[:, : self._rows].T, **self.table(w[start:])}

    def table(self, weights: FloatArray) -> dict[str, NDArray[np.float64]]:
        """Name the parts of the weights that no feature has, as views."""
        parts, start = {}, 0
        for name, shape in self.table_blocks.items():
            end = start + int(np.prod(shape))
            parts[name] = weights[start:end].reshape(shape)
            start = end
        return parts

    def join(self, **blocks: ArrayLike) -> FloatArray:
        """Return the weight vector with the given blocks, the inverse of :meth:`blocks`; blocks left out are 0."""
        w = np.zeros(self.n_weights)
        views = self.blocks(w)
        for name, value in blocks.items():
            views[name][...] = value
        return w

    def _problem(
        self,
        X: Any,
        structure: _core.Structure,
        sample_weight: ArrayLike | None,
        rescaling: str,
        n_jobs: int,
        offsets: IntArray | None = None,
        structure_of: Callable[[IntArray], _core.Structure] | None = None,
    ) -> LinearProblem:
        """Join checked features and the structure of their outputs.

        ``offsets`` say where examples of many rows begin; where each is one row, ``structure_of`` gives the structure of some.
        """
        weights = check_sample_weight(sample_weight, structure.n_examples)
        if self.kernel is not None:
            return self._kernel_problem(self.kernel, X, structure, weights, rescaling, n_jobs, offsets, structure_of)
        self.n_features = X.shape[1]
        return LinearProblem(
            _core.LinearSpace(core_features(X), structure, rescaling),
            weights,
            self._nonnegative_ids(),
            n_jobs,
            cheap_oracle=self.cheap_oracle,
            fits_float=fits_float(X),
            column_spread=column_spread(X, sample_of(X.shape[0], SAMPLED_ROWS)),
        )

    def _kernel_problem(
        self,
        kernel: Kernel | LowRank,
        X: Any,
        structure: _core.Structure,
        sample_weight: FloatArray | None,
        rescaling: str,
        n_jobs: int,
        offsets: IntArray | None,
        structure_of: Callable[[IntArray], _core.Structure] | None,
    ) -> LinearProblem:
        if self.nonnegative:
            raise ValueError("nonnegative is for weights of features; with a kernel there are none.")
        common = structure, rescaling, sample_weight, n_jobs
        if isinstance(kernel, LowRank):
            features = LowRankFeatures(kernel, X, _counted_rows(X, sample_weight, offsets), n_jobs)
            self.n_features = features.rows.shape[1]
            return LowRankProblem(features, *common, n_columns=self._rows, cheap_oracle=self.cheap_oracle)
        check_precomputed(kernel, X)
        # w has a coefficient for each training row.
        self.n_features = X.shape[0]
        return KernelProblem(
            kernel.for_data(_counted_rows(X, sample_weight, offsets)),
            X,
            *common,
            n_columns=self._rows,
            cheap_oracle=self.cheap_oracle,
            offsets=offsets,
            structure_of=structure_of,
        )

    def _row_space(
        self, X: Any, w: ArrayLike | Expansion, n_jobs: int, structure_of: Callable[[int], _core.Structure]
    ) -> tuple[_core.LinearSpace, _core.Structure, FloatArray]:
        """Return the space in which single rows are predicted, its structure ``structure_of(n)`` for n rows, and the weights."""
        X = as_features(X)
        check_values(X)
        features, weights = self._scored(X, w, n_jobs)
        structure = structure_of(X.shape[0])
        return _core.LinearSpace(features, structure, "margin"), structure, weights

    def _scored(self, X: Any, w: ArrayLike | Expansion, n_jobs: int) -> tuple[_core.Features, FloatArray]:
        """Return features and weights whose products are the scores of rows."""
        if not isinstance(w, Expansion):
            if self.kernel is not None:
                raise TypeError("with a kernel, predict takes solution.expansion in place of w.")
            return core_features(X), self._checked_weights(w, X.shape[1])
        stride = _core.padded_labels(self._rows)
        if len(w.coef) != self._rows or w.table.shape != (self.n_table,):
            raise ValueError(
                f"the expansion has scores of {len(w.coef)} labels and {w.table.size} other weights; expected {self._rows} and "
                f"{self.n_table}: it is that of another model."
            )
        scores = w.scores(X, n_jobs, stride)
        return core_features(row_numbers(X.shape[0])), np.concatenate([scores.ravel(), w.table])

    def _checked_weights(self, w: ArrayLike, n_features: int) -> FloatArray:
        """Return w as the core takes it, after checking that it has a weight for each label of so many features."""
        weights = np.ascontiguousarray(as_numbers(w, "w"))
        expected = self._n_weights_of(n_features)
        if weights.shape != (expected,):
            raise ValueError(
                f"X has {n_features} features, for which w needs shape ({expected},), found {weights.shape}: both must "
                "be those of training."
            )
        if not np.all(np.isfinite(weights)):
            raise ValueError("w must hold finite numbers.")
        return weights

    def _nonnegative_ids(self) -> IntArray:
        if self.nonnegative is None:
            return np.zeros(0, np.int64)
        if not isinstance(self.nonnegative, Mapping):
            raise ValueError(f"nonnegative must be a dict {{block: mask}}, found {type(self.nonnegative).__name__}.")
        if not self.nonnegative:
            return np.zeros(0, np.int64)
        numbers = self.blocks(np.arange(self.n_weights, dtype=np.float64))
        chosen = []
        for name, mask in self.nonnegative.items():
            if name not in numbers:
                raise ValueError(f"nonnegative names the block '{name}'; the blocks are {sorted(numbers)}.")
            shape, given = numbers[name].shape, np.asarray(mask)
            if given.dtype != bool and not np.all((given == 0) | (given == 1)):
                raise ValueError(
                    f"nonnegative['{name}'] must say True or False of each weight, found {mask!r}. (For a weight ≤ 0 give the "
                    "feature with the other sign.)"
                )
            try:
                mask = np.broadcast_to(given.astype(bool), shape)
            except ValueError:
                raise ValueError(
                    f"nonnegative['{name}'] has shape {np.shape(mask)}, which does not fit its block of shape {shape}."
                ) from None
            chosen.append(numbers[name][mask])
        return np.sort(np.concatenate(chosen)).astype(np.int64)


def check_n_labels(n_labels: Any) -> int:
    """Return the number of labels as an int from 1 on."""
    if not is_integer(n_labels, 1) or n_labels > _MOST_LABELS:
        raise ValueError(f"n_labels must be an integer ≥ 1, found {n_labels!r}.")
    return int(n_labels)


def label_numbers(labels: NDArray[Any], n_labels: int, place: Callable[[int], str]) -> NDArray[np.int32]:
    """Return labels as int32 after checking that they are whole numbers 0 … n_labels − 1.

    Parameters
    ----------
    labels : 1-D array
        As they were given.
    n_labels : int
        How many labels there are.
    place : callable
        How an error names the label of a row.
    """
    if labels.dtype.kind not in "biuf":
        raise TypeError(
            f"Y holds labels of type {labels.dtype}; expected whole numbers from 0 to {n_labels - 1}. The estimators "
            "take labels of any kind."
        )
    numbers = labels.astype(np.int8) if labels.dtype == bool else labels
    # The last comparison finds fractions and NaN.
    bad = (numbers < 0) | (numbers >= n_labels) | (np.floor(numbers) != numbers)
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(f"{place(row)} is {labels[row]}; expected a whole number from 0 to {n_labels - 1}.")
    return np.ascontiguousarray(numbers, dtype=np.int32)


def _counted_rows(X: Any, sample_weight: FloatArray | None, offsets: IntArray | None) -> Any:
    """Return the rows of examples with a weight above 0, by which kernels are chosen; all where none has one."""
    if sample_weight is None or sample_weight.all() or not sample_weight.any():
        return X
    is_counted = sample_weight > 0.0
    return X[is_counted if offsets is None else np.repeat(is_counted, np.diff(offsets))]


def tell_losses(
    problem: Problem, cost: FloatArray | None, weight: FloatArray | None = None, offsets: IntArray | None = None
) -> None:
    """Tell the problem what is known of its losses: by costs of pairs, weights of rows, and where examples of many rows begin."""
    is_free = cost is not None and bool(np.any((cost == 0.0) & ~np.eye(len(cost), dtype=bool)))
    problem.all_mistakes_cost = not is_free and (weight is None or bool(np.all(weight > 0.0)))
    of_row = (1.0 if cost is None else float(cost.max())) * (1.0 if weight is None else float(weight.max(initial=0.0)))
    check_losses(np.array([of_row]), "the product of costs and weights")
    problem.largest_loss = of_row * (1 if offsets is None else int(np.diff(offsets).max(initial=0)))


def check_cost_matrix(cost: ArrayLike, n_labels: int) -> FloatArray:
    """Return a loss matrix Δ(true, predicted) as float64: finite, ≥ 0, zero on the diagonal."""
    matrix = as_numbers(cost, "cost")
    if matrix.shape != (n_labels, n_labels):
        raise ValueError(
            f"cost has shape {matrix.shape}, expected ({n_labels}, {n_labels}): true label × predicted label, for "
            "the labels that the training data have."
        )
    if not np.all(np.isfinite(matrix)) or np.any(matrix < 0):
        raise ValueError("cost must hold finite numbers ≥ 0.")
    check_losses(matrix, "cost")
    if np.any(np.diag(matrix) != 0):
        raise ValueError("cost must be 0 on the diagonal: the right label costs nothing.")
    return np.ascontiguousarray(matrix)
