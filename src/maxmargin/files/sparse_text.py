"""Sparse examples as text, one a line: the svmlight format and its SVM-hmm dialect.

    TARGET [qid:NUMBER] FEATURE:VALUE FEATURE:VALUE ...  # comment

Features are integers from 1 and ascend within a line; column ``f - 1`` of X holds feature ``f``.  In an
SVM-hmm file a line is a token, the target is its tag (an integer from 1), and ``qid`` is constant within a
sequence and changes between sequences.  Readers take plain text and gzip and stop at the first malformed line
with a `ValueError` of the form ``path:line:column: expected ..., found ...``; writers write beside the file
and rename, and compress when the name ends in ``.gz``.
"""

import gzip
import operator
import os
import secrets
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, overload

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, DTypeLike, NDArray

from maxmargin import _core
from maxmargin.files._lines import open_binary

Path_like: TypeAlias = str | os.PathLike[str]
Integers: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

HIGHEST = np.iinfo(np.int32).max
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class _Rows(NamedTuple):
    X: "sp.csr_matrix[Any]"
    targets: Reals
    qids: Integers


@overload
def read_svm_hmm(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    stacked: Literal[False] = False,
) -> "tuple[list[sp.csr_matrix[Any]], list[Integers]]": ...
@overload
def read_svm_hmm(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    stacked: Literal[True],
) -> "tuple[sp.csr_matrix[Any], Integers, Integers]": ...
def read_svm_hmm(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    stacked: bool = False,
) -> Any:
    """Read the sequences of an SVM-hmm file.

    Parameters
    ----------
    path : str or path-like
        A text file, plain or gzip.
    n_features : int, optional
        The number of columns, by default the highest feature of the file.  A test file needs that of its
        training file.
    extra_features : {"error", "ignore"}, default="error"
        What to do with features above `n_features`.  ``"ignore"`` is what ``svm_hmm_classify`` does.
    dtype : numpy.float64 or numpy.float32, default=numpy.float64
        The type of the values.
    stacked : bool, default=False
        Return all tokens in one matrix, which spares thousands of small ones.

    Returns
    -------
    X : list of CSR matrices of shape (length, n_features), or one of shape (n_tokens, n_features)
        The matrices of a list share one memory.
    lengths : integer array of shape (n_sequences,)
        Only when stacked: how many rows of X belong to each sequence.
    y : list of integer arrays, or one of shape (n_tokens,)
        The tags, from 1.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "train.dat"
    >>> _ = path.write_text("1 qid:1 1:1 3:0.5\\n2 qid:1 2:1\\n1 qid:2 3:1\\n")
    >>> X, y = read_svm_hmm(path)
    >>> [x.shape for x in X], [tags.tolist() for tags in y]
    ([(2, 3), (1, 3)], [[1, 2], [1]])
    """
    X, targets, qids = _read(path, "svm-hmm", n_features, extra_features, dtype)
    tags = targets.astype(np.int64)
    bounds = np.concatenate(([0], np.flatnonzero(np.diff(qids)) + 1, [len(qids)])).astype(np.int64)
    if stacked:
        return X, np.diff(bounds), tags
    pairs = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))
    return [_row_range(X, begin, end) for begin, end in pairs], [tags[begin:end] for begin, end in pairs]


@overload
def read_svmlight(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    query_id: Literal[False] = False,
) -> "tuple[sp.csr_matrix[Any], Reals]": ...
@overload
def read_svmlight(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    query_id: Literal[True],
) -> "tuple[sp.csr_matrix[Any], Reals, Integers]": ...
def read_svmlight(
    path: Path_like,
    n_features: int | None = None,
    *,
    extra_features: Literal["error", "ignore"] = "error",
    dtype: DTypeLike = np.float64,
    query_id: bool = False,
) -> Any:
    """Read the examples of an svmlight file.

    Parameters
    ----------
    path, n_features, extra_features, dtype
        As for `read_svm_hmm`.
    query_id : bool, default=False
        Return the numbers after ``qid:`` too; they must then be there.

    Returns
    -------
    X : CSR matrix of shape (n_examples, n_features)
    y : float array of shape (n_examples,)
        The targets; class numbers come as floats too.
    qid : integer array of shape (n_examples,)
        Only with ``query_id=True``.
    """
    X, targets, qids = _read(path, "svmlight", n_features, extra_features, dtype)
    if not query_id:
        return X, targets
    if not len(qids):
        raise ValueError(f"{_shown(path)}: expected 'qid:NUMBER' on every line (query_id=True), found none.")
    return X, targets, qids


def write_svm_hmm(path: Path_like, X: Sequence[Any], y: Sequence[ArrayLike]) -> None:
    """Write sequences as an SVM-hmm file, with qids 1, 2, ...; `read_svm_hmm` reads back the same numbers.

    Parameters
    ----------
    path : str or path-like
        Replaced as a whole once everything is written; compressed when it ends in ``.gz``.
    X : sequence of matrices of shape (length, n_features)
        Dense or sparse.  Zeros of dense matrices are left out, stored zeros of sparse ones are kept.
    y : sequence of integer sequences
        The tags of each sequence, from 1.
    """
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} sequences but y has {len(y)}: every sequence needs its labels.")
    if not len(X):
        raise ValueError("X has no sequences: there is nothing to write.")
    matrices = [_canonical(x, f"X[{i}]") for i, x in enumerate(X)]
    tags = [np.asarray(sequence) for sequence in y]
    for i, (matrix, labels) in enumerate(zip(matrices, tags, strict=True)):
        if matrix.shape[1] != matrices[0].shape[1]:
            raise ValueError(
                f"X[{i}] has {matrix.shape[1]} columns but X[0] has {matrices[0].shape[1]}: "
                "all sequences share their features."
            )
        if matrix.shape[0] == 0:
            raise ValueError(f"X[{i}] has no rows: an SVM-hmm file cannot hold an empty sequence.")
        if labels.shape != (matrix.shape[0],):
            found = f"{len(labels)} labels" if labels.ndim == 1 else f"shape {labels.shape}"
            rows = matrix.shape[0]
            raise ValueError(f"y[{i}] has {found} but X[{i}] has {rows} rows: every token needs one label.")
        if labels.dtype.kind not in "iu":
            raise ValueError(f"y[{i}] has dtype {labels.dtype}: an SVM-hmm file needs integer tags.")
        if labels.min() < 1 or labels.max() > HIGHEST:
            wrong = labels[(labels < 1) | (labels > HIGHEST)][0]
            raise ValueError(f"y[{i}] has tag {wrong}: an SVM-hmm file needs tags from 1 to {HIGHEST}.")
    lengths = [matrix.shape[0] for matrix in matrices]
    qids = np.repeat(np.arange(1, len(lengths) + 1, dtype=np.int64), lengths)
    stacked = matrices[0] if len(matrices) == 1 else sp.csr_matrix(sp.vstack(matrices, format="csr"))
    _write(path, stacked, np.concatenate(tags).astype(np.float64), qids)


def write_svmlight(path: Path_like, X: Any, y: ArrayLike, *, query_id: ArrayLike | None = None) -> None:
    """Write examples as an svmlight file; `read_svmlight` reads back the same numbers.

    Parameters
    ----------
    path : str or path-like
        Replaced as a whole once everything is written; compressed when it ends in ``.gz``.
    X : matrix of shape (n_examples, n_features)
        Dense or sparse.  Zeros of dense matrices are left out, stored zeros of sparse ones are kept.
    y : sequence of n_examples finite numbers
    query_id : sequence of n_examples integers, optional
        Written as ``qid:NUMBER``.
    """
    matrix = _canonical(X, "X")
    if matrix.shape[0] == 0:
        raise ValueError("X has no rows: there is nothing to write.")
    given = np.asarray(y)
    if given.shape != (matrix.shape[0],):
        rows = matrix.shape[0]
        raise ValueError(f"y has shape {given.shape} but X has {rows} rows: every row needs one target.")
    if given.dtype.kind not in "biuf":
        raise ValueError(f"y has dtype {given.dtype}: an svmlight file needs numbers.")
    targets = given.astype(np.float64)
    if not np.isfinite(targets).all():
        wrong = int(np.flatnonzero(~np.isfinite(targets))[0])
        raise ValueError(f"y[{wrong}] is {targets[wrong]}: an svmlight file needs finite targets.")
    qids = np.empty(0, dtype=np.int64)
    if query_id is not None:
        numbers = np.asarray(query_id)
        if numbers.shape != targets.shape or numbers.dtype.kind not in "iu":
            raise ValueError(
                f"query_id has shape {numbers.shape} and dtype {numbers.dtype}: "
                f"expected one integer for each of the {matrix.shape[0]} rows of X."
            )
        qids = numbers.astype(np.int64)
    _write(path, matrix, targets, qids)


def _read(path: Path_like, dialect: str, n_features: int | None, extra_features: str, dtype: DTypeLike) -> _Rows:
    if extra_features not in ("error", "ignore"):
        raise ValueError(f"extra_features must be 'error' or 'ignore', got {extra_features!r}.")
    value_type = np.dtype(dtype)
    if value_type not in (np.dtype(np.float32), np.dtype(np.float64)):
        raise ValueError(f"dtype must be numpy.float32 or numpy.float64, got {dtype!r}.")
    if n_features is not None:
        n_features = operator.index(n_features)
        if not 1 <= n_features <= HIGHEST:
            raise ValueError(f"n_features must be from 1 to {HIGHEST}, got {n_features}.")

    name = _shown(path)
    with open_binary(path) as stream:
        try:
            text = stream.read().removeprefix(BYTE_ORDER_MARK)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(f"{name}: expected a whole gzip stream, found a damaged one ({error}).") from None
    values: NDArray[np.floating[Any]]
    targets, qids, indptr, indices, values = _core.parse_sparse_text(
        text, name, dialect, n_features or HIGHEST, extra_features == "ignore"
    )
    if not len(targets):
        raise ValueError(f"{name}: expected at least one example, found none.")
    if value_type == np.float32:
        with np.errstate(over="ignore"):
            narrow = values.astype(np.float32)
        if not np.isfinite(narrow).all():
            wide = values[np.flatnonzero(~np.isfinite(narrow))[0]]
            raise ValueError(f"{name}: expected values within float32, found {wide} (use dtype=numpy.float64).")
        values = narrow
    if n_features is None:
        n_features = int(indices.max()) + 1 if len(indices) else 0
    X = sp.csr_matrix((values, indices, indptr), shape=(len(targets), n_features))
    X.has_canonical_format = True
    return _Rows(X, targets, qids)


def _row_range(X: "sp.csr_matrix[Any]", begin: int, end: int) -> "sp.csr_matrix[Any]":
    """Rows begin to end, sharing memory with X, where slicing would copy."""
    first, last = X.indptr[begin], X.indptr[end]
    rows = sp.csr_matrix(
        (X.data[first:last], X.indices[first:last], X.indptr[begin : end + 1] - first),
        shape=(end - begin, X.shape[1]),
    )
    rows.has_canonical_format = True
    return rows


def _canonical(x: Any, name: str) -> "sp.csr_matrix[Any]":
    """A finite float matrix with sorted rows and without duplicates; x itself is left as it is."""
    if not sp.issparse(x):
        x = np.asarray(x)
    if x.ndim != 2:
        raise ValueError(f"{name} has {x.ndim} dimensions: expected a matrix with one row per example.")
    if x.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {x.dtype}: expected real numbers.")
    if x.shape[1] > HIGHEST:
        raise ValueError(f"{name} has {x.shape[1]} columns: the highest feature possible is {HIGHEST}.")
    matrix = sp.csr_matrix(x)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    if not np.isfinite(matrix.data).all():
        k = int(np.flatnonzero(~np.isfinite(matrix.data))[0])
        row = int(np.searchsorted(matrix.indptr, k, side="right")) - 1
        raise ValueError(f"{name} holds {matrix.data[k]} in row {row}: expected finite values.")
    return matrix


def _write(path: Path_like, X: "sp.csr_matrix[Any]", targets: Reals, qids: Integers) -> None:
    indptr, indices = X.indptr.astype(np.int64), X.indices.astype(np.int32, copy=False)
    text = _core.format_sparse_text(targets, qids, indptr, indices, np.ascontiguousarray(X.data))
    is_gzip = os.fspath(path).endswith(".gz")
    _write_beside(path, gzip.compress(text, compresslevel=6, mtime=0) if is_gzip else text)


def _write_beside(path: Path_like, content: bytes) -> None:
    """Write a file so that its name never stands for half of it."""
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(beside, "xb") as stream:
            stream.write(content)
        os.replace(beside, target)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def _shown(path: Path_like) -> str:
    """The path as messages show it; bytes that are no text appear as escapes."""
    return os.fspath(path).encode("utf-8", "backslashreplace").decode("utf-8")
