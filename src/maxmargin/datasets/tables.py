"""Tables and images: Covertype, Adult, handwritten words."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets._sources import find_file, get_file
from maxmargin.datasets._summary import Summary
from maxmargin.files._lines import numbered_lines, open_binary

COVTYPE_FEATURES = 54
OCR_PIXELS = 128
OCR_COLUMNS_BEFORE_PIXELS = 6
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
)
ADULT_NUMBERS = frozenset({"age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week"})


@dataclass(frozen=True, slots=True, repr=False)
class Table(Summary):
    """A numeric matrix and one class per row."""

    X: NDArray[np.float64]
    y: NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class Records(Summary):
    """Rows as dicts from column to number or word, missing entries left out, and one label per row."""

    X: list[dict[str, float | str]]
    y: list[str]


@dataclass(frozen=True, slots=True, repr=False)
class RecordData(Summary):
    """A table of records in its published parts."""

    train: Records
    test: Records


@dataclass(frozen=True, slots=True, repr=False)
class OcrData(Summary):
    """Handwritten words as sequences of letter images.

    Attributes
    ----------
    X : list of ndarray of shape (length, 128)
        One row of 16 by 8 pixels, 0 or 1, per letter.
    y : list of list of str
        The letters.
    folds : ndarray of int
        The fold, 0 to 9, of each word.
    """

    X: list[NDArray[np.float64]]
    y: list[list[str]]
    folds: NDArray[np.int64]

    def select(self, *folds: int) -> tuple[list[NDArray[np.float64]], list[list[str]]]:
        """Return ``X, y`` of the words in the given folds, for example ``train = data.select(0)``."""
        known = np.unique(self.folds)
        unknown = [fold for fold in folds if fold not in known.tolist()]
        if unknown:
            raise ValueError(f"there is no fold {unknown[0]!r}; the folds are {known.min()} to {known.max()}.")
        chosen = np.flatnonzero(np.isin(self.folds, folds))
        return [self.X[i] for i in chosen], [self.y[i] for i in chosen]


def load_covtype() -> Table:
    """Load Covertype: 581,012 patches of forest, 54 numbers each, and their cover type from 1 to 7.

    Read from ``covtype`` in the folder named by ``MAXMARGIN_DATA``, otherwise fetched once by
    `sklearn.datasets.fetch_covtype`, which verifies its checksum.  The first ten columns are quantities and
    want to be standardised, the others are 0 or 1.  Licence: CC BY 4.0 [1]_.

    Returns
    -------
    Table
        ``X`` of shape (581012, 54) and ``y``, rows in the order of the file.

    References
    ----------
    .. [1] J. Blackard, "Covertype", UCI Machine Learning Repository, 1998.
    """
    path = find_file("covtype", "all")
    if path is None:
        from sklearn.datasets import fetch_covtype

        bunch = fetch_covtype()
        return Table(np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.int64))
    table = _read_integers(path, COVTYPE_FEATURES + 1)
    return Table(table[:, :-1].astype(np.float64), table[:, -1].astype(np.int64))


def load_adult() -> RecordData:
    """Load Adult (census income): 32,561 and 16,281 records, labels ``<=50K`` and ``>50K``.

    Read from ``adult`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.  Rows are
    dicts, which `sklearn.feature_extraction.DictVectorizer` turns into a matrix.

    Returns
    -------
    RecordData
        With ``train`` and ``test``.
    """
    return RecordData(train=_read_adult(get_file("adult", "train")), test=_read_adult(get_file("adult", "test")))


def load_ocr_letters() -> OcrData:
    """Load the handwritten words of Kassel as prepared by Taskar [1]_: 6,877 words, 52,152 letters, 10 folds.

    Read from ``ocr_letters`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.  In
    the literature "small" trains on fold 0 and tests on the others, and "large" the reverse.

    Returns
    -------
    OcrData

    References
    ----------
    .. [1] B. Taskar, C. Guestrin and D. Koller, "Max-margin Markov networks", NIPS 2003.
    """
    path = get_file("ocr_letters", "all")
    columns = OCR_COLUMNS_BEFORE_PIXELS + OCR_PIXELS
    images: list[list[NDArray[np.float64]]] = []
    y: list[list[str]] = []
    folds: list[int] = []
    begins_word = True
    for number, line in numbered_lines(path):
        fields = line.rstrip("\t").split("\t")
        if len(fields) != columns:
            raise ValueError(f"{path}:{number}: found {len(fields)} columns, expected {columns} split by tabs")
        _, letter, next_id, _, _, fold, *pixels = fields
        try:
            row = np.array(pixels, dtype=np.float64)
            if begins_word:
                images.append([])
                y.append([])
                folds.append(int(fold))
        except ValueError as error:
            raise ValueError(f"{path}:{number}: {error}, expected numbers from column 6 on") from None
        images[-1].append(row)
        y[-1].append(letter)
        begins_word = next_id == "-1"
    if not images:
        raise ValueError(f"{path}: found no letter, expected at least one line")
    return OcrData([np.array(word) for word in images], y, np.array(folds, dtype=np.int64))


def _read_integers(path: Path, columns: int) -> NDArray[np.int32]:
    try:
        with open_binary(path) as stream, warnings.catch_warnings():
            # An empty file is an error below.
            warnings.filterwarnings("ignore", "loadtxt: input contained no data", UserWarning)
            table = np.loadtxt(stream, dtype=np.int32, delimiter=",", ndmin=2)
    except (ValueError, EOFError, OSError) as error:
        raise ValueError(f"{path}: {error}; expected lines of {columns} integers split by commas") from error
    if table.shape[1] != columns or not table.size:
        raise ValueError(f"{path}: found a table of shape {table.shape}, expected {columns} columns")
    return table


def _read_adult(path: Path) -> Records:
    records = Records([], [])
    for number, line in numbered_lines(path):
        # The file as published opens the test part with a line of its own and ends its labels with a dot.
        if not line or line.startswith("|"):
            continue
        *fields, label = line.rstrip(".").split(", ")
        if len(fields) != len(ADULT_COLUMNS):
            raise ValueError(f"{path}:{number}: found {len(fields) + 1} columns, expected 15 split by ', '")
        row: dict[str, float | str] = {}
        for name, value in zip(ADULT_COLUMNS, fields, strict=True):
            if name in ADULT_NUMBERS:
                row[name] = _number(value, f"{path}:{number}: found {value!r} for {name}, expected a number")
            elif value != "?":
                row[name] = value
        records.X.append(row)
        records.y.append(label)
    if not records.y:
        raise ValueError(f"{path}: found no record, expected at least one line")
    return records


def _number(text: str, complaint: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(complaint) from None
