"""The reference every solver is checked against: all outputs, one QP with all constraints.

    min_{w, ξ}  ½‖w‖² + Σ_i C_i ξ_i      (squared hinge: Σ_i C_i ξ_i²),      C_i = C s_i
    subject to  ξ_i ≥ Δ_i(ȳ) − w·ψ_i(ȳ)  for every example i and every output ȳ,   ξ ≥ 0,   w_j ≥ 0 for j in J

Nothing here comes from the library: feature maps, losses and enumeration are written out in plain Python,
and the quadratic program is PIQP's.  Its answer is not believed but measured: the objective is evaluated
again by enumeration, and its multipliers, made feasible, give a dual value that the optimum cannot be below
(up to rounding).  Exponential in the size of an output; meant for a handful of short examples.

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
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import piqp
from scipy.sparse import issparse

Rescaling = Literal["margin", "slack"]
Loss = Literal["hinge", "squared_hinge"]


class Plane(NamedTuple):
    """One constraint of one example: its value at w is ``loss − w·psi``."""

    loss: float
    psi: np.ndarray


Planes = list[list[Plane]]


# ---------------------------------------------------------------------------------------------- models


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


# ------------------------------------------------------------------------------------ planes and primal


def planes(model: Model, rescaling: Rescaling = "margin") -> Planes:
    """All planes (Δ, ψ) of every example, in the order of ``model.outputs(i)``.

    ψ = Ψ(x_i, y_i) − Ψ(x_i, ȳ) for margin rescaling, Δ times that for slack rescaling.
    """
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {rescaling!r}; expected 'margin' or 'slack'.")
    result = []
    for i in range(model.n_examples):
        psi_truth = model.psi(i, model.truth(i))
        planes_of_example = []
        for y in model.outputs(i):
            loss, difference = model.loss(i, y), psi_truth - model.psi(i, y)
            planes_of_example.append(Plane(loss, loss * difference if rescaling == "slack" else difference))
        result.append(planes_of_example)
    return result


def slacks(w: np.ndarray, planes: Planes) -> np.ndarray:
    """H_i(w) of every example, whatever its weight: the largest value of its planes, at least 0."""
    return np.array([max(0.0, *(plane.loss - float(w @ plane.psi) for plane in own)) for own in planes])


def primal(
    w: np.ndarray,
    planes: Planes,
    C: float,
    sample_weight: np.ndarray | None = None,
    loss: Loss = "hinge",
) -> float:
    """P(w) = ½‖w‖² + Σ C_i H_i(w), or with H_i(w)², by enumeration."""
    capacities = _capacities(planes, C, sample_weight)
    return 0.5 * float(w @ w) + float(capacities @ slacks(w, planes) ** _power(loss))


def _capacities(planes: Planes, C: float, sample_weight: np.ndarray | None) -> np.ndarray:
    """C_i = C s_i."""
    weight = np.ones(len(planes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(planes),):
        raise ValueError(f"sample_weight has shape {weight.shape} but there are {len(planes)} examples.")
    if not C > 0 or not np.all(weight >= 0):
        raise ValueError("C must be positive and sample_weight must not be negative.")
    return C * weight


def _power(loss: Loss) -> int:
    powers = {"hinge": 1, "squared_hinge": 2}
    if loss not in powers:
        raise ValueError(f"loss is {loss!r}; expected 'hinge' or 'squared_hinge'.")
    return powers[loss]


# ------------------------------------------------------------------------------------------- the solver


@dataclass(frozen=True)
class Reference:
    """The optimum of a small problem: ``lower_bound ≤ optimum ≤ objective``.

    Attributes
    ----------
    w : the weights; exactly non-negative where that was asked
    objective : P(w) by enumeration
    slacks : H_i(w) of all examples, those of weight 0 included
    lower_bound : dual value of a feasible point, so no w has a smaller P than this (up to rounding)
    """

    w: np.ndarray
    objective: float
    slacks: np.ndarray
    lower_bound: float

    @property
    def relative_gap(self) -> float:
        """What is not known about the optimum, as a share of the objective."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0

    @property
    def radius(self) -> float:
        """How far the optimal weights w* may be from w: ½‖w − w*‖² ≤ P(w) − P(w*), by strong convexity."""
        # Both values carry rounding, so a gap of exactly zero proves nothing.
        return float(np.sqrt(2.0 * max(self.objective - self.lower_bound, 1e-14 * self.objective)))


@dataclass(frozen=True)
class _Constraints:
    """The planes that constrain something, as one matrix: those of examples with C_i > 0, each once."""

    losses: np.ndarray
    psi: np.ndarray
    owner: np.ndarray
    capacities: np.ndarray

    @classmethod
    def collect(cls, planes: Planes, capacities: np.ndarray) -> "_Constraints":
        active = np.flatnonzero(capacities > 0)
        rows, owners = [], []
        for position, i in enumerate(active):
            own = np.unique([np.append(plane.loss, plane.psi) for plane in planes[i]], axis=0)
            own = own[np.any(own != 0, axis=1)]
            rows.append(own)
            owners.append(np.full(len(own), position))
        width = 1 + len(planes[0][0].psi)
        table = np.concatenate([np.empty((0, width)), *rows])
        owner = np.concatenate([np.empty(0, dtype=int), *owners])
        return cls(table[:, 0], table[:, 1:], owner, capacities[active])


def solve(
    planes: Planes,
    C: float,
    sample_weight: np.ndarray | None = None,
    loss: Loss = "hinge",
    nonnegative: Sequence[int] | None = None,
    tolerance: float = 1e-7,
) -> Reference:
    """The optimum over all planes, with a proof of how good it is.

    Parameters
    ----------
    planes : from ``planes(model, rescaling)``
    C : multiplies the sum of the slacks
    sample_weight : s_i ≥ 0, C_i = C s_i; None for ones
    loss : "hinge" or "squared_hinge"
    nonnegative : indices j with w_j ≥ 0
    tolerance : largest relative gap accepted

    Raises
    ------
    ArithmeticError
        if objective and lower bound differ by more than ``tolerance`` relative to the objective.
    """
    power = _power(loss)
    capacities = _capacities(planes, C, sample_weight)
    bounded = np.asarray([] if nonnegative is None else nonnegative, dtype=int)
    constraints = _Constraints.collect(planes, capacities)

    best = np.zeros(len(planes[0][0].psi))
    objective, lower_bound = primal(best, planes, C, sample_weight, loss), 0.0
    # PIQP's tolerances are absolute and the tightest may be out of reach: the scale follows the best
    # objective so far, and our own gap, not PIQP's status, decides when to stop.
    for epsilon in (1e-11, 1e-13, 1e-9):
        if objective - lower_bound <= 1e-11 * objective:
            break
        w, alpha = _quadratic_program(constraints, power, bounded, scale=objective, epsilon=epsilon)
        dual, w_of_alpha = _dual(constraints, power, bounded, alpha)
        lower_bound = max(lower_bound, dual)
        for candidate in (w, w_of_alpha):
            candidate[bounded] = np.maximum(candidate[bounded], 0.0)
            value = primal(candidate, planes, C, sample_weight, loss)
            if value < objective:
                best, objective = candidate, value

    result = Reference(best, objective, slacks(best, planes), lower_bound)
    if not abs(result.relative_gap) <= tolerance:
        raise ArithmeticError(f"the reference is not solved: {lower_bound} ≤ optimum ≤ {objective}.")
    return result


def _quadratic_program(
    constraints: _Constraints, power: int, bounded: np.ndarray, scale: float, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """w and the multipliers α of the planes, by PIQP.

    Solved in v = w/√s and ζ_i = ξ_i/r_i with r_i = (s/C_i)^(1/power), which divides the objective by s:

        min ½‖v‖² + Σ ζ_i^power    subject to  ζ_i + (√s/r_i) v·ψ ≥ Δ/r_i,   ζ ≥ 0,   v_J ≥ 0

    With z the multipliers of these rows, α = (s/r_i) z.
    """
    n_rows, n_weights = constraints.psi.shape
    n_slacks = len(constraints.capacities)
    unit = (scale / constraints.capacities) ** (1.0 / power)
    unit_of_row = unit[constraints.owner]

    P = np.diag(np.concatenate([np.ones(n_weights), np.full(n_slacks, 2.0 if power == 2 else 0.0)]))
    c = np.concatenate([np.zeros(n_weights), np.full(n_slacks, 1.0 if power == 1 else 0.0)])
    G = np.zeros((n_rows, n_weights + n_slacks))
    G[:, :n_weights] = constraints.psi * (np.sqrt(scale) / unit_of_row)[:, None]
    G[np.arange(n_rows), n_weights + constraints.owner] = 1.0
    lower = np.full(n_weights + n_slacks, -np.inf)
    lower[bounded] = 0.0
    lower[n_weights:] = 0.0

    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = epsilon
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = epsilon
    settings.iterative_refinement_always_enabled = True
    solver.setup(P, c, G=np.asfortranarray(G), h_l=constraints.losses / unit_of_row, x_l=lower)
    solver.solve()
    return np.sqrt(scale) * solver.result.x[:n_weights], solver.result.z_l * scale / unit_of_row


def _dual(constraints: _Constraints, power: int, bounded: np.ndarray, alpha: np.ndarray) -> tuple[float, np.ndarray]:
    """The dual value of α made feasible, and the w that belongs to it.

        hinge          D = Σ αΔ − ½‖w‖²,                            α ≥ 0,  Σ_ȳ α_i(ȳ) ≤ C_i
        squared hinge  D = Σ αΔ − ½‖w‖² − Σ_i (Σ_ȳ α_i(ȳ))² / 4C_i,  α ≥ 0

    with w = Σ αψ, then raised to 0 where w_j ≥ 0 is asked (the best multiplier of that bound).
    """
    alpha = np.maximum(np.nan_to_num(alpha), 0.0)
    mass = np.bincount(constraints.owner, alpha, minlength=len(constraints.capacities))
    penalty = 0.0
    if power == 1:
        shrink = constraints.capacities / np.maximum(mass, constraints.capacities)
        alpha = alpha * shrink[constraints.owner]
    else:
        penalty = float(np.sum(mass**2 / (4.0 * constraints.capacities)))
    w = alpha @ constraints.psi
    w[bounded] = np.maximum(w[bounded], 0.0)
    return float(alpha @ constraints.losses) - 0.5 * float(w @ w) - penalty, w


# -------------------------------------------------------------------------------------- random problems


def random_features(rng: np.random.Generator, n_rows: int, n_features: int) -> np.ndarray:
    """Normal entries, about a third of them zero, and now and then a row of zeros."""
    X = rng.normal(size=(n_rows, n_features)) * (rng.random((n_rows, n_features)) < 0.67)
    X[rng.random(n_rows) < 0.1] = 0.0
    return X


def random_cost(rng: np.random.Generator, n_labels: int) -> np.ndarray:
    """A cost matrix [true, predicted]: zero diagonal, 0.5 to 3 elsewhere, not symmetric."""
    cost = rng.uniform(0.5, 3.0, size=(n_labels, n_labels))
    np.fill_diagonal(cost, 0.0)
    return cost


def random_sample_weight(rng: np.random.Generator, n_examples: int) -> np.ndarray:
    """Weights from 0.2 to 3, about a quarter of them zero but never all."""
    weight = rng.uniform(0.2, 3.0, size=n_examples) * (rng.random(n_examples) < 0.75)
    if not weight.any():
        weight[rng.integers(n_examples)] = 1.0
    return weight


def random_binary(
    rng: np.random.Generator,
    n_examples: int | None = None,
    n_features: int | None = None,
    bias: float | None = None,
    with_cost: bool = False,
) -> BinaryModel:
    """1 to 8 examples of 1 to 4 features unless given; labels at random, so seldom separable."""
    n = n_examples or int(rng.integers(1, 9))
    X = random_features(rng, n, n_features or int(rng.integers(1, 5)))
    y = rng.choice([-1, 1], size=n)
    return BinaryModel(X, y, bias, random_cost(rng, 2) if with_cost else None)


def random_multiclass(
    rng: np.random.Generator,
    n_examples: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    with_cost: bool = False,
) -> MulticlassModel:
    """1 to 8 examples of 1 to 4 features and 2 to 4 labels unless given; not every label need occur."""
    n, k = n_examples or int(rng.integers(1, 9)), n_labels or int(rng.integers(2, 5))
    X = random_features(rng, n, n_features or int(rng.integers(1, 5)))
    return MulticlassModel(X, rng.integers(k, size=n), k, random_cost(rng, k) if with_cost else None)


def random_chain(
    rng: np.random.Generator,
    n_examples: int | None = None,
    n_features: int | None = None,
    n_labels: int | None = None,
    max_length: int = 4,
    start: bool = False,
    stop: bool = False,
    weighting: Literal["label", "token"] | None = None,
    with_forbidden: bool = False,
) -> ChainModel:
    """1 to 6 sequences of 1 to 4 tokens, 1 to 3 features and 2 to 4 labels unless given.

    ``weighting`` chooses the weights of the Hamming loss; ``with_forbidden`` forbids about half of the
    transitions that no true output contains.
    """
    n, k = n_examples or int(rng.integers(1, 7)), n_labels or int(rng.integers(2, 5))
    d = n_features or int(rng.integers(1, 4))
    lengths = [int(length) for length in rng.integers(1, max_length + 1, size=n)]
    X = [random_features(rng, length, d) for length in lengths]
    y = [tuple(int(label) for label in rng.integers(k, size=length)) for length in lengths]
    forbidden: set[tuple[int, int]] = set()
    if with_forbidden:
        used = {pair for sequence in y for pair in itertools.pairwise(sequence)}
        unused = [pair for pair in itertools.product(range(k), range(k)) if pair not in used]
        forbidden = {pair for pair in unused if rng.random() < 0.5}
    label_weight = rng.uniform(0.5, 3.0, size=k) if weighting == "label" else None
    token_weight = None
    if weighting == "token":
        token_weight = [rng.uniform(0.5, 3.0, size=length) for length in lengths]
    return ChainModel(X, y, k, start, stop, label_weight, token_weight, frozenset(forbidden))
