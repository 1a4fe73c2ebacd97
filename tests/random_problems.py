"""Small random problems for the models of the reference: few outputs, ties and zeros not seldom."""

import itertools
from typing import Literal

import numpy as np
from reference_models import BinaryModel, ChainModel, MulticlassModel


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
