"""The models of the reference, written out in plain Python: feature maps, losses, enumeration.

Labels are integers 0..k−1 (binary: −1, +1), features are dense arrays.  A model has

    n_examples, n_weights
    truth(i)        the output y_i
    outputs(i)      all legal outputs of example i, y_i among them
    psi(i, y)       the joint feature vector Ψ(x_i, y), dense
    loss(i, y)      Δ(y_i, y)
"""

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy.sparse import issparse


class Model(Protocol):
    """What ``planes`` asks of a model; see the head of this file."""

    @property
    def n_examples(self) -> int: ...
    @property
    def n_weights(self) -> int: ...
    def truth(self, i: int) -> Hashable: ...
    def outputs(self, i: int) -> Iterable[Hashable]: ...
    def psi(self, i: int, y: Any) -> np.ndarray: ...
    def loss(self, i: int, y: Any) -> float: ...


@dataclass
class BinaryModel:
    """Two classes: Ψ(x, y) = ½ y x with y in {−1, +1}.

    Parameters
    ----------
    X : array (n, features)
    y : n labels, −1 or +1
    bias : value of a constant last column added to X, its weight regularised too; None for no column
    cost : 2 × 2 matrix ``cost[true, predicted]``, index 0 for −1 and 1 for +1; None for 0/1 loss
    """

    X: np.ndarray
    y: np.ndarray
    bias: float | None = None
    cost: np.ndarray | None = None

    @property
    def n_examples(self) -> int:
        return len(self.X)

    @property
    def n_weights(self) -> int:
        return int(self.X.shape[1]) + (self.bias is not None)

    def truth(self, i: int) -> int:
        return int(self.y[i])

    def outputs(self, i: int) -> list[int]:
        return [-1, +1]

    def psi(self, i: int, y: int) -> np.ndarray:
        x = [float(v) for v in self.X[i]]
        if self.bias is not None:
            x.append(float(self.bias))
        return np.array([0.5 * y * v for v in x])

    def loss(self, i: int, y: int) -> float:
        if y == self.truth(i):
            return 0.0
        if self.cost is None:
            return 1.0
        return float(self.cost[int(self.truth(i) > 0), int(y > 0)])


@dataclass
class MulticlassModel:
    """Crammer-Singer: x stacked into block y, the weights read as a matrix [label, feature].

    Parameters
    ----------
    X : array (n, features)
    y : n labels in 0..n_labels−1
    n_labels : number of labels
    cost : matrix ``cost[true, predicted]`` with zero diagonal; None for 0/1 loss
    """

    X: np.ndarray
    y: np.ndarray
    n_labels: int
    cost: np.ndarray | None = None

    @property
    def n_examples(self) -> int:
        return len(self.X)

    @property
    def n_weights(self) -> int:
        return self.n_labels * int(self.X.shape[1])

    def truth(self, i: int) -> int:
        return int(self.y[i])

    def outputs(self, i: int) -> list[int]:
        return list(range(self.n_labels))

    def psi(self, i: int, y: int) -> np.ndarray:
        stacked = np.zeros((self.n_labels, self.X.shape[1]))
        stacked[y] = self.X[i]
        return stacked.ravel()

    def loss(self, i: int, y: int) -> float:
        if self.cost is None:
            return float(y != self.truth(i))
        return float(self.cost[self.truth(i), y])


@dataclass
class ChainModel:
    """Sequences: Ψ(x, y) = Σ_t x_t ⊗ e_{y_t}, transition counts, and start and stop indicators if wanted.

    Δ(y_i, ȳ) = Σ_t weight_t [y_t ≠ ȳ_t].  The weights are the blocks coef (labels × features),
    transition (from × to), start (labels) and stop (labels), flattened in this order; ``blocks`` gives
    them back.

    Parameters
    ----------
    X : list of arrays (length, features)
    y : list of label sequences
    n_labels : number of labels
    start, stop : whether the first and the last label have a weight of their own
    label_weight : loss of a wrong token by its true label; None for 1
    token_weight : per example one loss for each token; None for 1.  At most one of the two weights
    forbidden : transitions (from, to) that no output may contain
    """

    X: list[np.ndarray]
    y: list[tuple[int, ...]]
    n_labels: int
    start: bool = False
    stop: bool = False
    label_weight: Sequence[float] | np.ndarray | None = None
    token_weight: list[np.ndarray] | None = None
    forbidden: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        if self.label_weight is not None and self.token_weight is not None:
            raise ValueError("label_weight and token_weight are both given: at most one may be.")
        for i in range(self.n_examples):
            if len(self.X[i]) != len(self.y[i]):
                raise ValueError(f"y[{i}] has {len(self.y[i])} labels but X[{i}] has {len(self.X[i])} rows.")
            if not self._is_legal(self.truth(i)):
                raise ValueError(f"y[{i}] contains a forbidden transition.")

    def _is_legal(self, y: tuple[int, ...]) -> bool:
        return not any(pair in self.forbidden for pair in itertools.pairwise(y))

    @property
    def n_examples(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        return int(self.X[0].shape[1])

    @property
    def n_weights(self) -> int:
        return self.n_labels * (self.n_features + self.n_labels + self.start + self.stop)

    def blocks(self, w: np.ndarray) -> dict[str, np.ndarray]:
        """Views of w: coef, transition and, where the model has them, start and stop."""
        k, d = self.n_labels, self.n_features
        shapes: dict[str, tuple[int, ...]] = {"coef": (k, d), "transition": (k, k)}
        if self.start:
            shapes["start"] = (k,)
        if self.stop:
            shapes["stop"] = (k,)
        views, begin = {}, 0
        for name, shape in shapes.items():
            end = begin + int(np.prod(shape))
            views[name] = w[begin:end].reshape(shape)
            begin = end
        return views

    def truth(self, i: int) -> tuple[int, ...]:
        return tuple(int(label) for label in self.y[i])

    def outputs(self, i: int) -> list[tuple[int, ...]]:
        sequences = itertools.product(range(self.n_labels), repeat=len(self.y[i]))
        return [y for y in sequences if self._is_legal(y)]

    def psi(self, i: int, y: tuple[int, ...]) -> np.ndarray:
        vector = np.zeros(self.n_weights)
        block = self.blocks(vector)
        for t, label in enumerate(y):
            block["coef"][label] += self.X[i][t]
        for before, after in itertools.pairwise(y):
            block["transition"][before, after] += 1.0
        if self.start:
            block["start"][y[0]] += 1.0
        if self.stop:
            block["stop"][y[-1]] += 1.0
        return vector

    def loss(self, i: int, y: tuple[int, ...]) -> float:
        total = 0.0
        for t, (true, predicted) in enumerate(zip(self.truth(i), y, strict=True)):
            if true != predicted:
                if self.label_weight is not None:
                    total += float(self.label_weight[true])
                elif self.token_weight is not None:
                    total += float(self.token_weight[i][t])
                else:
                    total += 1.0
        return total


class CallableModel:
    """Any model, from the three functions that define it.

    Parameters
    ----------
    X, Y : sequences of inputs and of true outputs
    outputs : ``outputs(x)``, all outputs of x
    joint_feature : ``joint_feature(x, y)``, a dense vector or a sparse row
    loss : ``loss(y_true, y)``
    """

    def __init__(
        self,
        X: Sequence[Any],
        Y: Sequence[Any],
        outputs: Callable[[Any], Iterable[Any]],
        joint_feature: Callable[[Any, Any], Any],
        loss: Callable[[Any, Any], float],
    ) -> None:
        self.X, self.Y = X, Y
        self._outputs, self._joint_feature, self._loss = outputs, joint_feature, loss

    @property
    def n_examples(self) -> int:
        return len(self.Y)

    @property
    def n_weights(self) -> int:
        return len(self.psi(0, self.truth(0)))

    def truth(self, i: int) -> Any:
        return self.Y[i]

    def outputs(self, i: int) -> list[Any]:
        return list(self._outputs(self.X[i]))

    def psi(self, i: int, y: Any) -> np.ndarray:
        vector = self._joint_feature(self.X[i], y)
        return np.asarray(vector.toarray() if issparse(vector) else vector, dtype=float).ravel()

    def loss(self, i: int, y: Any) -> float:
        return float(self._loss(self.Y[i], y))
