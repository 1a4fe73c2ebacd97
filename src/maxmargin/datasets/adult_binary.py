"""Adult in the 123 binary features of Platt, entry for entry LIBSVM's a9a.

A word is one feature.  A number is one feature too, that of its fifth of the training part (`fifths`).  Columns
stand in the order of the file, words in the order of its description, `WORDS`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin.datasets._summary import Summary
from maxmargin.datasets.tables import ADULT_COLUMNS, ADULT_NUMBERS, Records, load_adult

LABELS = {"<=50K": -1, ">50K": 1}
# As the description of the data set, adult.names, spells and orders them.
WORDS_TEXT = {
    "workclass": "Private Self-emp-not-inc Self-emp-inc Federal-gov Local-gov State-gov Without-pay Never-worked",
    "education": "Bachelors Some-college 11th HS-grad Prof-school Assoc-acdm Assoc-voc 9th 7th-8th 12th Masters 1st-4th "
    "10th Doctorate 5th-6th Preschool",
    "marital-status": "Married-civ-spouse Divorced Never-married Separated Widowed Married-spouse-absent "
    "Married-AF-spouse",
    "occupation": "Tech-support Craft-repair Other-service Sales Exec-managerial Prof-specialty Handlers-cleaners "
    "Machine-op-inspct Adm-clerical Farming-fishing Transport-moving Priv-house-serv Protective-serv Armed-Forces",
    "relationship": "Wife Own-child Husband Not-in-family Other-relative Unmarried",
    "race": "White Asian-Pac-Islander Amer-Indian-Eskimo Other Black",
    "sex": "Female Male",
    "native-country": "United-States Cambodia England Puerto-Rico Canada Germany Outlying-US(Guam-USVI-etc) India Japan "
    "Greece South China Cuba Iran Honduras Philippines Italy Poland Jamaica Vietnam Mexico Portugal Ireland France "
    "Dominican-Republic Laos Ecuador Taiwan Haiti Columbia Hungary Guatemala Nicaragua Scotland Thailand Yugoslavia "
    "El-Salvador Trinadad&Tobago Peru Hong Holand-Netherlands",
}
WORDS = {column: text.split() for column, text in WORDS_TEXT.items()}
MISSING = -1


@dataclass(frozen=True, slots=True, repr=False)
class SparseTable(Summary):
    """A sparse matrix and one class per row."""

    X: "sp.csr_matrix[Any]"
    y: NDArray[np.int64]


@dataclass(frozen=True, slots=True, repr=False)
class SparseTableData(Summary):
    """A sparse table in its published parts."""

    train: SparseTable
    test: SparseTable


def load_adult_binary() -> SparseTableData:
    """Load Adult in 123 binary features: 32,561 and 16,281 rows, as in LIBSVM's a9a.

    The coding of Platt [1]_: one feature for each word of the eight columns of words, and one for each fifth of
    age, fnlwgt, education-num and hours-per-week.  Most values of capital-gain and capital-loss are 0, which
    leaves two features each, zero and more.  A missing entry sets no feature.  Fifths are those of the training
    part, also for the test part.  Rows and columns are those of a9a and a9a.t, in their order.

    Read from ``adult`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.

    Returns
    -------
    SparseTableData
        With ``train`` and ``test``; each has a CSR matrix ``X`` of ones with 123 columns, and ``y``, 1 for
        ``>50K`` and −1 for ``<=50K``.

    References
    ----------
    .. [1] J. C. Platt, "Fast training of support vector machines using sequential minimal optimization", in
       *Advances in Kernel Methods*, MIT Press 1999.
    """
    data = load_adult()
    bounds = {name: fifths(_numbers(data.train, name)) for name in ADULT_NUMBERS}
    return SparseTableData(train=_encode(data.train, bounds, "train"), test=_encode(data.test, bounds, "test"))


def fifths(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the least value of each fifth of `values` but the lowest, ascending.

    A fifth begins at the value its quantile falls on.  Where one begins there already, or nothing lies below, it
    begins at the next value; where that is taken too, or there is none, there is one fifth less.
    """
    distinct, counts = np.unique(values, return_counts=True)
    reached = 5 * np.cumsum(counts)
    begins: list[int] = []
    for k in range(1, 5):
        place = int(np.searchsorted(reached, k * len(values), side="right"))
        free = [at for at in (place, place + 1) if 0 < at < len(distinct) and at not in begins]
        begins += free[:1]
    return distinct[begins]


def _encode(part: Records, bounds: dict[str, NDArray[np.float64]], name: str) -> SparseTable:
    codes = np.empty((len(part.y), len(ADULT_COLUMNS)), dtype=np.int64)
    width = 0
    for k, column in enumerate(ADULT_COLUMNS):
        if column in ADULT_NUMBERS:
            codes[:, k] = np.searchsorted(bounds[column], _numbers(part, column), side="right")
            size = len(bounds[column]) + 1
        else:
            codes[:, k] = _word_codes(part, column, name)
            size = len(WORDS[column])
        codes[codes[:, k] != MISSING, k] += width
        width += size
    is_set = codes != MISSING
    indptr = np.concatenate([[0], np.cumsum(is_set.sum(axis=1))])
    indices = codes[is_set]
    X = sp.csr_matrix((np.ones(len(indices)), indices, indptr), shape=(len(codes), width))
    return SparseTable(X, _labels(part, name))


def _numbers(part: Records, column: str) -> NDArray[np.float64]:
    return np.array([row[column] for row in part.X], dtype=np.float64)


def _word_codes(part: Records, column: str, name: str) -> NDArray[np.int64]:
    code: dict[Any, int] = {word: k for k, word in enumerate(WORDS[column])}
    code[None] = MISSING
    words = [row.get(column) for row in part.X]
    for i, word in enumerate(words):
        if word not in code:
            raise ValueError(f"record {i} of {name}: found {word!r} for {column}, expected one of {WORDS[column]}")
    return np.array([code[word] for word in words], dtype=np.int64)


def _labels(part: Records, name: str) -> NDArray[np.int64]:
    for i, label in enumerate(part.y):
        if label not in LABELS:
            raise ValueError(f"record {i} of {name}: found label {label!r}, expected one of {sorted(LABELS)}")
    return np.array([LABELS[label] for label in part.y], dtype=np.int64)
