"""Sequences and label sequences as users have them, checked and stacked."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from itertools import chain
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._feature_rows import as_numbers, check_losses
from maxmargin.estimators._base import is_sparse, shortened
from maxmargin.estimators._streams import check_same_classes
from maxmargin.estimators._vocabulary import Vocabulary, is_feature_tokens
from maxmargin.models import Sequences
from maxmargin.problems.base import FloatArray

_EXPECTED = (
    "a list of sequences, each a (length × features) matrix, dense or CSR, a list of feature dicts, or a list of lists "
    "of feature strings"
)


class Placed(Protocol):
    """Examples of several labels each, laid end to end."""

    def place(self, row: int, /) -> tuple[int, int]:
        """Return the example that a label belongs to, and its number in it."""


def read_sequences(X: Any) -> tuple[Sequences, Vocabulary | None]:
    """Return X stacked, and the vocabulary of its features where they have names."""
    sequences = _as_list(X)
    if isinstance(sequences, Sequences) or not _has_names(sequences):
        return _stack(sequences), None
    vocabulary, data = Vocabulary.learn(sequences)
    return data, vocabulary


def read_known_sequences(X: Any, n_features: int, vocabulary: Vocabulary | None) -> Sequences:
    """Return X stacked, as sequences of the features that were trained on."""
    sequences = _as_list(X)
    has_names = not isinstance(sequences, Sequences) and _has_names(sequences)
    if vocabulary is not None:
        if not has_names:
            raise TypeError(
                "X holds matrices, but the ChainSVM was fitted on features with names: give dicts or strings."
            )
        return vocabulary.read(sequences)
    if has_names:
        raise TypeError("X holds features with names, but the ChainSVM was fitted on matrices: give matrices.")
    data = _stack(sequences)
    if data.rows.shape[1] != n_features:
        raise ValueError(
            f"X has {data.rows.shape[1]} features, but ChainSVM is expecting {n_features} features as input."
        )
    return data


def _as_list(X: Any) -> Any:
    if isinstance(X, Sequences):
        return X
    if isinstance(X, (str, bytes, Mapping, Set)) or is_sparse(X) or not isinstance(X, Iterable):
        raise TypeError(f"X is of type {type(X).__name__}; expected {_EXPECTED}.")
    if isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype != object:
        raise ValueError(f"X is one matrix of shape {X.shape}; expected {_EXPECTED}. For one sequence, give [X].")
    sequences = [_unwrapped(sequence) for sequence in X]
    if not sequences:
        raise ValueError("X is empty: at least one sequence is needed.")
    for i, sequence in enumerate(sequences):
        if isinstance(sequence, (str, bytes, Mapping, Set)) or (
            not hasattr(sequence, "__len__") and not is_sparse(sequence)
        ):
            hint = " For one sequence, give [X]." if isinstance(sequence, Mapping) else ""
            raise TypeError(f"X[{i}] is of type {type(sequence).__name__}; expected {_EXPECTED}.{hint}")
    return sequences


def _unwrapped(sequence: Any) -> Any:
    """Return arrays of strings or objects as lists."""
    return sequence.tolist() if isinstance(sequence, np.ndarray) and sequence.dtype.kind in "OSUT" else sequence


def _is_matrix(sequence: Any) -> bool:
    return is_sparse(sequence) or hasattr(sequence, "shape")


def _has_names(sequences: Sequence[Any]) -> bool:
    """Return whether the features are dicts or strings; all sequences must be of one kind."""
    matrices = [_is_matrix(sequence) for sequence in sequences]
    if all(matrices):
        return False
    if any(matrices):
        odd = matrices.index(not matrices[0])
        raise TypeError(
            f"X[{odd}] is of type {type(sequences[odd]).__name__}, but X[0] is of type {type(sequences[0]).__name__}: "
            "all sequences must be matrices, or all of them lists of tokens."
        )
    return is_feature_tokens(sequences)


def _stack(sequences: Any) -> Sequences:
    """Return matrices one below the other."""
    data = sequences if isinstance(sequences, Sequences) else Sequences.stack(sequences)
    if data.rows.shape[1] == 0:
        raise ValueError("X has 0 columns: at least one feature is needed.")
    return data


def flatten_labels(y: Any, data: Sequences) -> list[Hashable]:
    """Return the labels of all tokens, after checking that every token has one."""
    if isinstance(y, (str, bytes, Mapping, Set)) or not hasattr(y, "__len__"):
        raise TypeError(f"y is of type {type(y).__name__}; expected a list of label sequences.")
    if len(y) != len(data):
        raise ValueError(f"y has {len(y)} label sequences but X has {len(data)} sequences.")
    sequences = [labels.tolist() if isinstance(labels, np.ndarray) else labels for labels in y]
    for i, (labels, length) in enumerate(zip(sequences, data.lengths.tolist(), strict=True)):
        if isinstance(labels, (str, bytes, Mapping, Set)) or not hasattr(labels, "__len__"):
            raise TypeError(f"y[{i}] is {labels!r}; expected a sequence of labels, one for each token.")
        if len(labels) != length:
            raise ValueError(
                f"y[{i}] has {len(labels)} labels but X[{i}] has {length} rows: every token needs one label."
            )
    return plain_labels(list(chain.from_iterable(sequences)))


def plain_labels(labels: list[Any]) -> list[Any]:
    """Return labels with the numbers and strings that NumPy's scalars stand for."""
    if not any(issubclass(kind, np.generic) for kind in set(map(type, labels))):
        return labels
    return [label.item() if isinstance(label, np.generic) else label for label in labels]


def encode_labels(flat: list[Hashable], data: Placed) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Return the labels that occur, sorted where they can be, and each token's number among them."""
    numbers: defaultdict[Hashable, int] = defaultdict()
    numbers.default_factory = numbers.__len__
    try:
        codes = np.fromiter(map(numbers.__getitem__, flat), np.int32, len(flat))
    except TypeError:
        check_hashable(flat, data)
        raise
    labels = list(numbers)
    for label in labels:
        if label != label:
            i, t = data.place(flat.index(label))
            raise ValueError(f"y[{i}][{t}] is {label!r}, which is not equal to itself and cannot be a label.")
    ordered = _ordered(labels)
    column = np.empty(len(labels), np.int32)
    column[[numbers[label] for label in ordered]] = np.arange(len(labels), dtype=np.int32)
    return label_array(ordered), column[codes]


def _ordered(labels: list[Any]) -> list[Any]:
    try:
        return sorted(labels)
    except TypeError:
        # Labels of different types have no order: they keep that of their first appearance.
        return labels


def label_set(classes: Any) -> NDArray[Any]:
    """Return labels that a user lists as :func:`encode_labels` would order them."""
    if isinstance(classes, (str, bytes)) or not isinstance(classes, Iterable):
        raise TypeError(f"classes is {classes!r}; expected a collection of labels.")
    labels = classes.tolist() if isinstance(classes, np.ndarray) else plain_labels(list(classes))
    for label in labels:
        if not isinstance(label, Hashable) or label != label:
            raise ValueError(
                f"classes holds {label!r}, which has no hash or is not equal to itself and cannot be a label."
            )
    if not labels:
        raise ValueError("classes is empty: at least one label is needed.")
    return label_array(_ordered(list(dict.fromkeys(labels))))


def stream_classes(classes: Any, known: NDArray[Any] | None, *, is_first: bool) -> NDArray[Any]:
    """Return the labels of a stream: those that its first call lists, which later ones may repeat, or that are known."""
    if is_first and classes is not None:
        return label_set(classes)
    if known is None:
        raise ValueError("classes must be passed on the first call to partial_fit.")
    if classes is not None:
        check_same_classes(list(classes), known)
    return known


def encode_known_labels(flat: list[Hashable], classes: NDArray[Any], data: Placed) -> NDArray[np.int32]:
    """Return the number of each label among those that are known."""
    check_hashable(flat, data)
    numbers = {label: number for number, label in enumerate(classes.tolist())}
    codes = np.fromiter((numbers.get(label, -1) for label in flat), np.int32, len(flat))
    if (codes < 0).any():
        row = int(np.argmin(codes))
        i, t = data.place(row)
        raise ValueError(f"y[{i}][{t}] is {flat[row]!r}, which is not one of classes={shortened(classes.tolist())}.")
    return codes


def check_hashable(flat: list[Hashable], data: Placed) -> None:
    """Say which label cannot be one, if any."""
    for row, label in enumerate(flat):
        try:
            hash(label)
        except TypeError:
            i, t = data.place(row)
            raise TypeError(
                f"y[{i}][{t}] is {label!r}, which has no hash: labels are strings, numbers, tuples or the like."
            ) from None


def label_array(labels: list[Any]) -> NDArray[Any]:
    """Return labels as an array that gives them back unchanged."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], (str, bool, int, float)):
        plain = np.array(labels)
        if plain.ndim == 1 and plain.tolist() == labels:
            return plain
    array = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        array[i] = label
    return array


def checked_token_weight(token_weight: Sequence[ArrayLike] | None, data: Sequences) -> list[FloatArray] | None:
    """Return token weights as arrays, after checking that every token has one."""
    if token_weight is None:
        return None
    if isinstance(token_weight, (str, bytes)) or not hasattr(token_weight, "__len__"):
        raise TypeError(f"token_weight is of type {type(token_weight).__name__}; expected a list of arrays.")
    if len(token_weight) != len(data):
        raise ValueError(f"token_weight has {len(token_weight)} sequences but X has {len(data)}.")
    weights = []
    for i, (given, length) in enumerate(zip(token_weight, data.lengths.tolist(), strict=True)):
        array = as_numbers(given, f"token_weight[{i}]")
        if array.shape != (length,):
            raise ValueError(
                f"token_weight[{i}] has shape {array.shape} but X[{i}] has {length} rows: one number per token."
            )
        if not np.all(np.isfinite(array)) or np.any(array < 0):
            raise ValueError(f"token_weight[{i}] must hold finite numbers ≥ 0.")
        check_losses(array, f"token_weight[{i}]")
        weights.append(array)
    return weights


def check_legal(
    codes: NDArray[np.int32], data: Sequences, forbidden: list[tuple[int, int]] | None, classes: NDArray[Any]
) -> None:
    """Refuse a training sequence that contains a forbidden transition, in the user's labels."""
    if not forbidden:
        return
    table = np.zeros((len(classes), len(classes)), dtype=bool)
    table[tuple(np.transpose(forbidden))] = True
    illegal = table[codes[:-1], codes[1:]]
    illegal[data.offsets[1:-1] - 1] = False
    if illegal.any():
        row = int(np.argmax(illegal))
        i, t = data.place(row)
        before, after = classes[codes[row : row + 2]].tolist()
        raise ValueError(f"y[{i}] has the forbidden transition {before!r} → {after!r} at token {t}.")
