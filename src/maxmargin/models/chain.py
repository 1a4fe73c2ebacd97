"""Label sequences: Ψ = Σ_t x_t ⊗ e_{y_t} + transition counts, Hamming loss (Altun et al. 2003; SVM-hmm)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_numbers, check_losses
from maxmargin._parameters import check_bool
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.models._linear import check_cost_matrix, check_n_labels, label_numbers, tell_losses
from maxmargin.models._sequences import Sequences
from maxmargin.models._several import PlaceModel
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.linear import LinearProblem


class Chain(PlaceModel):
    """The first-order chain.

    Parameters
    ----------
    n_labels : int
        k, the number of labels.
    ends : bool, default False
        Whether first and last labels have weights of their own (``start``, ``stop``).
    cost : (k, k) array or (k,) array, optional
        Loss of a wrong token: Δ(true, predicted), or a weight for each true label; 1 by default. A sequence's loss is the
        sum over its tokens.
    token_weight : list of arrays, optional
        A loss weight for each token of each training sequence, multiplied with ``cost``.
    forbidden : iterable of (from, to), optional
        Transitions no output may contain, in training or prediction.
    nonnegative : mapping, optional
        ``{"coef": mask, "transition": mask, …}``: weights that must stay ≥ 0.
    kernel : Kernel or LowRank, optional
        Makes the scores of tokens a sum over kernels with the training tokens, or with some of them; transitions stay weights.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = [np.eye(4)[[0, 1, 2]], np.eye(4)[[3, 2]]]  # two sequences, of three rows and of two
    >>> Y = [[0, 1, 2], [1, 2]]  # a label number for each row
    >>> model = mm.models.Chain(3, ends=True)
    >>> solution = mm.train(model, X, Y, C=10.0)
    >>> {name: block.shape for name, block in model.blocks(solution.w).items()}
    {'coef': (3, 4), 'transition': (3, 3), 'start': (3,), 'stop': (3,)}
    >>> [labels.tolist() for labels in model.predict(X, solution.w)]
    [[0, 1, 2], [1, 2]]
    """

    cheap_oracle = False

    def __init__(
        self,
        n_labels: int,
        *,
        ends: bool = False,
        cost: ArrayLike | None = None,
        token_weight: Sequence[ArrayLike] | None = None,
        forbidden: Iterable[tuple[int, int]] | None = None,
        nonnegative: Mapping[str, ArrayLike] | None = None,
        kernel: Kernel | LowRank | None = None,
    ) -> None:
        super().__init__(nonnegative, kernel)
        check_bool("ends", ends)
        self.n_labels = check_n_labels(n_labels)
        self.ends = bool(ends)
        self.cost = cost
        self.token_weight = token_weight
        self.forbidden = None if forbidden is None else _checked_pairs(forbidden, self.n_labels)

    @property
    def table_blocks(self) -> dict[str, tuple[int, ...]]:
        """``transition`` (from × to) and, with ``ends``, ``start`` and ``stop``."""
        k = self.n_labels
        return {"transition": (k, k)} | ({"start": (k,), "stop": (k,)} if self.ends else {})

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> LinearProblem:
        """Return the training problem; ``X`` is a list of matrices or Sequences, ``Y`` a list of label-number arrays."""
        data = X if isinstance(X, Sequences) else Sequences.stack(X)
        data.check_values()
        y = self._label_numbers(Y, data)
        forbidden = self._forbidden_matrix()
        self._check_legal(y, data, forbidden)
        cost, weight = self._loss(y, data)
        step = _common_step(cost, weight, y) if rescaling == "slack" else 0.0
        structure = _core.Chain(data.offsets, self.n_labels, self.ends, y, forbidden, cost, weight, step)
        problem = self._problem(data.rows, structure, sample_weight, rescaling, n_jobs, data.offsets)
        tell_losses(problem, cost, weight, data.offsets)
        return problem

    def _label_numbers(self, Y: Any, data: Sequences) -> NDArray[np.int32]:
        """Return the labels of all tokens, after checking that every token has one."""
        if not isinstance(Y, Iterable):
            raise TypeError(f"Y is of type {type(Y).__name__}; expected a list of sequences of label numbers.")
        sequences = [np.asarray(labels) for labels in Y]
        if len(sequences) != len(data):
            raise ValueError(f"Y has {len(sequences)} sequences but X has {len(data)}.")
        for i, (labels, length) in enumerate(zip(sequences, data.lengths.tolist(), strict=True)):
            if labels.ndim != 1:
                raise ValueError(f"y[{i}] has shape {labels.shape}; expected a sequence of label numbers.")
            if len(labels) != length:
                raise ValueError(
                    f"y[{i}] has {len(labels)} labels but X[{i}] has {length} rows: every token needs one label."
                )
        return label_numbers(np.concatenate(sequences), self.n_labels, lambda row: "y[{}][{}]".format(*data.place(row)))

    def predict(self, X: Any, w: ArrayLike | Expansion, n_jobs: int = 1) -> list[NDArray[np.int32]]:
        """Return each sequence's best label numbers."""
        space, _, weights, lengths = self._prediction_space(X, w, n_jobs)
        return np.split(space.predict(weights, n_jobs), np.cumsum(lengths)[:-1])

    def max_marginals(self, X: Any, w: ArrayLike | Expansion, n_jobs: int = 1) -> list[FloatArray]:
        """Return for each sequence a (length × k) matrix: the best score of any output with that label there."""
        space, _, weights, lengths = self._prediction_space(X, w, n_jobs)
        return np.split(space.max_marginals(weights, n_jobs), np.cumsum(lengths)[:-1])

    def _prediction_space(
        self, X: Any, w: ArrayLike | Expansion, n_jobs: int
    ) -> tuple[_core.LinearSpace, _core.Chain, FloatArray, IntArray]:
        data = X if isinstance(X, Sequences) else Sequences.stack(X)
        data.check_values()
        features, weights = self._scored(data.rows, w, n_jobs)
        chain = _core.Chain(data.offsets, self.n_labels, self.ends, None, self._forbidden_matrix())
        return _core.LinearSpace(features, chain, "margin"), chain, weights, data.lengths

    def _forbidden_matrix(self) -> NDArray[np.uint8] | None:
        if self.forbidden is None:
            return None
        matrix = np.zeros((self.n_labels, self.n_labels), np.uint8)
        for before, after in self.forbidden:
            matrix[before, after] = 1
        if not _has_endless_path(matrix):
            raise ValueError("forbidden leaves no legal sequence of more than a few tokens: no label cycle is allowed.")
        return matrix

    def _check_legal(self, y: NDArray[np.int32], data: Sequences, forbidden: NDArray[np.uint8] | None) -> None:
        if forbidden is None:
            return
        illegal = forbidden[y[:-1], y[1:]].astype(bool)
        illegal[data.offsets[1:-1] - 1] = False
        if illegal.any():
            row = int(np.argmax(illegal))
            i = int(np.searchsorted(data.offsets, row, side="right")) - 1
            raise ValueError(
                f"y[{i}] contains the forbidden transition {int(y[row])} → {int(y[row + 1])} at token {row - data.offsets[i]}."
            )

    def _loss(self, y: NDArray[np.int32], data: Sequences) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the cost matrix or None, and the weight of every row or None."""
        cost: FloatArray | None = None
        weight: FloatArray | None = None
        if self.cost is not None:
            given = as_numbers(self.cost, "cost")
            if given.ndim == 1:
                weight = _check_weights("cost", given, self.n_labels)[y]
            else:
                cost = check_cost_matrix(given, self.n_labels)
        if self.token_weight is not None:
            if [np.size(part) for part in self.token_weight] != data.lengths.tolist():
                raise ValueError("token_weight must hold one number for every token of every sequence.")
            tokens = _check_weights(
                "token_weight", np.concatenate([as_numbers(p, "token_weight") for p in self.token_weight]), len(y)
            )
            weight = tokens if weight is None else weight * tokens
        return cost, weight


def _check_weights(name: str, weights: FloatArray, n: int) -> FloatArray:
    if weights.shape != (n,) or not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError(f"{name} must hold {n} finite numbers ≥ 0.")
    check_losses(weights, name)
    return weights


def _checked_pairs(forbidden: Iterable[Any], n_labels: int) -> list[tuple[int, int]]:
    """Return transitions as pairs of label numbers; a list, because prediction goes through them again."""
    pairs = []
    for pair in forbidden if isinstance(forbidden, Iterable) else [forbidden]:
        numbers = np.asarray(pair)
        if numbers.shape != (2,) or numbers.dtype.kind not in "iu" or numbers.min() < 0 or numbers.max() >= n_labels:
            raise ValueError(
                f"forbidden must hold pairs (from, to) of label numbers from 0 to {n_labels - 1}, found {pair!r}."
            )
        pairs.append((int(numbers[0]), int(numbers[1])))
    return pairs


def _has_endless_path(forbidden: NDArray[np.uint8]) -> bool:
    """Return whether labels can follow each other for ever: the graph of allowed transitions has a cycle."""
    alive = np.ones(len(forbidden), dtype=bool)
    for _ in range(len(forbidden)):
        alive &= ((forbidden == 0) & alive).any(axis=1)
    return bool(alive.any())


def _common_step(cost: FloatArray | None, weight: FloatArray | None, y: NDArray[np.int32]) -> float:
    """Return a number that all token losses are multiples of; the slack-rescaled search counts losses in it."""
    costs = np.array([1.0]) if cost is None else cost[np.unique(y)].ravel()
    weights = np.array([1.0]) if weight is None else np.unique(weight)
    values = np.unique(np.outer(costs, weights))
    values = values[values > 0]
    if len(values) == 0:
        return 1.0
    # Euclid's algorithm on real numbers: what is below a billionth of the largest counts as 0.
    smallest = 1e-9 * values[-1]
    step = values[-1]
    for value in values:
        while value > smallest:
            rest = step % value
            step, value = value, 0.0 if value - rest < smallest else rest
    if values[-1] / step > 1000:
        raise ValueError(
            "rescaling='slack' for chains counts the loss in whole steps, and these loss weights have no common step of at "
            f"least a thousandth of the largest ({values[-1]:g}): use integer weights, or rescaling='margin'."
        )
    return float(step)
