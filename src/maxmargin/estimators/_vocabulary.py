"""Feature strings and feature dicts as one CSR matrix, without a Python statement per feature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.models import Sequences
from maxmargin.problems.base import FloatArray

Token = Any  # a dict {name: value}, or a list, tuple or set of names

_NAME_LISTS = (list, tuple, set, frozenset)


class Vocabulary:
    """Column numbers of feature names: frequent names first, which keeps their weights together in memory.

    Parameters
    ----------
    names : list of str
        The names in the order of their columns.
    """

    def __init__(self, names: list[str]) -> None:
        self.names = names
        self._columns = {name: column for column, name in enumerate(names)}

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def learn(cls, X: Sequence[Sequence[Token]]) -> tuple[Vocabulary, Sequences]:
        """Return the vocabulary of these sequences, and the sequences over it."""
        features = _Features(X)
        # The factory numbers a new name by its first appearance: one dictionary look-up per feature, no statement.
        numbers: defaultdict[str, int] = defaultdict()
        numbers.default_factory = numbers.__len__
        found = features.lookup(numbers.__getitem__)
        found_names = list(numbers)
        features.check_names(found_names)
        if not found_names:
            raise ValueError("no token of X has a feature.")
        counts = np.bincount(found, minlength=len(found_names)).tolist()
        order = sorted(range(len(found_names)), key=lambda j: (-counts[j], found_names[j]))
        column = np.empty(len(order), np.int32)
        column[order] = np.arange(len(order), dtype=np.int32)
        return cls([found_names[j] for j in order]), features.matrix(column[found], len(order))

    def read(self, X: Sequence[Sequence[Token]]) -> Sequences:
        """Return sequences over this vocabulary; names it does not have are left out."""
        features = _Features(X)
        return features.matrix(features.lookup(self._columns.get, repeat(-1)), len(self.names))


class _Features:
    """The features of all tokens, still as names."""

    def __init__(self, X: Sequence[Sequence[Token]]) -> None:
        self.lengths = np.fromiter(map(len, X), np.int64, len(X))
        if np.any(self.lengths == 0):
            raise ValueError(f"X[{int(np.argmin(self.lengths))}] is empty: every sequence needs at least one token.")
        self._ends = np.cumsum(self.lengths)
        self.tokens: list[Token] = list(chain.from_iterable(X))
        kinds = set(map(type, self.tokens))
        self._has_values = issubclass(type(self.tokens[0]), dict)
        expected: Any = dict if self._has_values else _NAME_LISTS
        if not all(issubclass(kind, expected) for kind in kinds):
            self._refuse_token(expected)
        self.sizes = np.fromiter(map(len, self.tokens), np.int64, len(self.tokens))
        self.n_features = int(self.sizes.sum())
        self._names: Iterable[str] | None = None
        self.values: FloatArray | None = self._read_values() if self._has_values else None

    def names(self) -> Iterator[str]:
        """Return the names of all features of all tokens, one after the other."""
        return iter(chain.from_iterable(self.tokens) if self._names is None else self._names)

    def lookup(self, number: Any, *default: Iterable[int]) -> NDArray[np.int32]:
        """Return a number for each name."""
        try:
            return np.fromiter(map(number, self.names(), *default), np.int32, self.n_features)
        except TypeError:
            self.check_names(self.names())
            raise

    def check_names(self, names: Iterable[Any]) -> None:
        """Refuse names that are not strings, saying where the first one is."""
        if all(isinstance(name, str) for name in names):
            return
        for row, token in enumerate(self.tokens):
            for name in token:
                if not isinstance(name, str):
                    raise TypeError(
                        f"{self._place(row)} has the feature {name!r} ({type(name).__name__}): names are strings."
                    )

    def matrix(self, columns: NDArray[np.int32], n_columns: int) -> Sequences:
        """Return the stacked rows, where column −1 means to leave the feature out."""
        values = np.ones(len(columns), np.float32) if self.values is None else self.values
        indptr = np.concatenate([[0], np.cumsum(self.sizes)])
        known = columns >= 0
        if not known.all():
            kept = np.concatenate([[0], np.cumsum(known)])
            columns, values, indptr = columns[known], values[known], kept[indptr]
        rows = sp.csr_matrix((values, columns, indptr), shape=(len(self.tokens), n_columns))
        rows.sum_duplicates()
        if self.values is None:
            # A name listed twice is still one indicator.
            rows.data[:] = 1.0
        return Sequences(rows, self.lengths)

    def _read_values(self) -> FloatArray:
        kinds = set(map(type, chain.from_iterable(token.values() for token in self.tokens)))
        if any(issubclass(kind, str) for kind in kinds):
            # As in scikit-learn's DictVectorizer, {"word": "sea"} is the indicator named "word=sea".
            self._names = [
                f"{name}={value}" if isinstance(value, str) else name
                for token in self.tokens
                for name, value in token.items()
            ]
            numbers: Iterable[Any] = (
                1.0 if isinstance(value, str) else value for token in self.tokens for value in token.values()
            )
        else:
            numbers = chain.from_iterable(token.values() for token in self.tokens)
        if not all(issubclass(kind, (str, bool, int, float, np.number, np.bool_)) for kind in kinds):
            self._refuse_value()
        values = np.fromiter(numbers, np.float64, self.n_features)
        bad = ~np.isfinite(values)
        if bad.any():
            row = int(np.searchsorted(np.cumsum(self.sizes), int(np.argmax(bad)), side="right"))
            raise ValueError(
                f"{self._place(row)} has a feature with the value {values[np.argmax(bad)]}: values must be finite."
            )
        return values

    def _refuse_value(self) -> None:
        for row, token in enumerate(self.tokens):
            for name, value in token.items():
                if not isinstance(value, (str, bool, int, float, np.number, np.bool_)):
                    raise TypeError(
                        f"{self._place(row)} has the feature {name!r} with the value {value!r} of type "
                        f"{type(value).__name__}: values are numbers or strings."
                    )

    def _refuse_token(self, expected: Any) -> None:
        row = next(row for row, token in enumerate(self.tokens) if not isinstance(token, expected))
        found, place = self.tokens[row], self._place(row)
        if isinstance(found, str):
            raise TypeError(
                f"{place} is the string {found!r}: a token is a list of feature strings or a dict of features; "
                "maxmargin.features.token_features makes such lists from words."
            )
        raise TypeError(
            f"{place} is of type {type(found).__name__}, but X[0][0] is of type {type(self.tokens[0]).__name__}: all "
            "tokens must be dicts, or all of them lists of feature strings."
        )

    def _place(self, row: int) -> str:
        i = int(np.searchsorted(self._ends, row, side="right"))
        return f"X[{i}][{row - int(self._ends[i] - self.lengths[i])}]"


def is_feature_tokens(X: Sequence[Any]) -> bool:
    """Return whether sequences that are no matrices hold dicts or strings rather than numbers."""
    for sequence in X:
        for token in sequence:
            if isinstance(token, (dict, str)):
                return True
            first = next(iter(token), None) if isinstance(token, _NAME_LISTS) else 0.0
            if first is not None:
                return not isinstance(first, (bool, int, float, np.number))
    return True
