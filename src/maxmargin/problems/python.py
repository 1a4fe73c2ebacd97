"""A model written in Python, bound to its data: its oracle answers become planes of sparse difference vectors."""

from __future__ import annotations

import copy
import reprlib
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin import _core
from maxmargin._feature_rows import LARGEST_FEATURE, LARGEST_LOSS, SMALLEST_LOSS, as_numbers
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.problems.weights import DenseWeights

if TYPE_CHECKING:
    from maxmargin.model import Model
    from maxmargin.problems.workers import WorkerPool

# A plane's value must be below the truth's by this share of the scores it was made of before it proves anything.
_ROUNDING = 1e-10


class PythonProblem(Problem):
    """The training problem of a :class:`maxmargin.Model`.

    Parameters
    ----------
    model : Model
        An initialized model.
    X, Y : sequences
        Inputs and true outputs.
    rescaling : {"margin", "slack"}
        Which of the model's oracles is asked.
    sample_weight : ndarray or None
        s_i; examples of weight 0 are never searched.
    nonnegative : ndarray of int64
        Numbers of the weights that must stay ≥ 0.
    n_jobs : int
        Worker processes for the oracle, threads for the arithmetic of planes.
    """

    can_be_inexact = True
    always_precise = True
    searches_in_python = True

    def __init__(
        self,
        model: Model,
        X: Any,
        Y: Any,
        rescaling: str,
        sample_weight: FloatArray | None,
        nonnegative: IntArray,
        n_jobs: int,
    ) -> None:
        super().__init__(sample_weight, nonnegative, n_jobs)
        self.space = _core.VectorSpace(len(Y), model.n_features, rescaling)
        self._searcher = _Searcher(model, X, Y, rescaling)
        self._seconds: list[float] = []  # of the last searches
        self._workers: WorkerPool[_Found] | None = None
        if n_jobs > 1:
            from maxmargin.problems.workers import WorkerPool  # brings joblib, which nobody else needs

            self._workers = WorkerPool(self._searcher, model.n_features, n_jobs)

    def oracle(
        self, weights: DenseWeights, *, precise: bool, plain: bool = False, k_best: int | None = None
    ) -> _core.Oracle:
        """Return the model's search; its answers come from the worker processes where there are several examples."""
        searcher = self._searcher.without_loss(k_best) if plain or k_best is not None else None

        def search(ids: IntArray, scale: float) -> _core.PlaneBatch:
            w = weights.exact if scale == 1.0 else scale * weights.exact
            return self._planes(self._answers(ids, w) if searcher is None else [self._ask(searcher, ids, w)])

        return _core.CallbackOracle(search)

    def _search(self, ids: IntArray, weights: DenseWeights, precise: bool) -> _core.PlaneBatch:
        return self._planes(self._answers(ids, weights.exact))

    def timed_search(self, ids: IntArray, weights: DenseWeights) -> tuple[_core.PlaneBatch, float]:
        """Return the planes, and what a search took in the process that made it: not to start it, nor to send things."""
        found = self.separate(ids, weights, precise=True)
        return found, float(np.median(self._seconds))  # what else the machine may be busy with does not count

    def _planes(self, answers: Iterable[_Found]) -> _core.PlaneBatch:
        batch = _core.PlaneBatch()
        self._seconds = []
        for found in answers:
            self._seconds += found.seconds
            self.largest_loss = max(self.largest_loss, float(found.losses.max(initial=0.0)))
            ends = np.cumsum(found.sizes)
            for example, loss, start, end in zip(found.examples, found.losses, ends - found.sizes, ends, strict=True):
                batch.add_vector(int(example), float(loss), found.indices[start:end], found.values[start:end])
            for example in found.inexact:
                self.report_inexact(example)
        return batch

    def _answers(self, ids: IntArray, w: FloatArray) -> Iterable[_Found]:
        # One example keeps one process busy, and this one need not be sent anything.
        if self._workers is not None and len(ids) > 1:
            return self._ask_workers(self._workers, ids, w)
        return [self._ask(self._searcher, ids, w)]

    def _ask(self, searcher: _Searcher, ids: IntArray, w: FloatArray) -> _Found:
        n_before = searcher.n_begun
        try:
            return searcher(ids, _read_only(w))
        finally:
            self.oracle_calls += searcher.n_begun - n_before

    def _ask_workers(self, workers: WorkerPool[_Found], ids: IntArray, w: FloatArray) -> list[_Found]:
        """Return what worker processes found; of a batch that is broken off, those searches count whose answers arrived."""
        n_before = workers.n_answered
        try:
            return workers.map(ids, w)
        finally:
            self.oracle_calls += workers.n_answered - n_before

    def count_calls(self, n_examples: int) -> None:
        """Do nothing: searches in Python are counted one by one, because any of them may be the last."""

    def close(self) -> None:
        """End the worker processes."""
        if self._workers is not None:
            self._workers.close()


def _read_only(w: FloatArray) -> FloatArray:
    view = w.view()
    view.flags.writeable = False
    return view


# ------------------------------------------------------------------------------------ searching examples


@dataclass
class _Found:
    """Planes of a piece of the examples, laid end to end, those whose answer was proved wrong, and how long searches took."""

    examples: IntArray
    losses: FloatArray
    sizes: IntArray
    indices: NDArray[np.int32]
    values: FloatArray
    inexact: list[int]
    seconds: list[float]


class _Searcher:
    """The model's oracle with the data it is asked about; lives in this process or in each worker."""

    def __init__(self, model: Model, X: Any, Y: Any, rescaling: str) -> None:
        self._model = model
        self._X = X
        self._Y = Y
        self._is_slack = rescaling == "slack"
        self._is_plain = False
        self._k_best: int | None = None
        self._enumerates = model._enumerates(rescaling)
        self._gold: dict[int, SparseVector] = {}
        self.n_begun = 0  # searches, by this object

    def without_loss(self, k_best: int | None = None) -> _Searcher:
        """Return one that looks for the best output, whatever its loss, or for so many of them."""
        searcher = copy.copy(self)
        searcher._is_plain, searcher._is_slack = True, False
        searcher._k_best = k_best
        searcher._enumerates = self._model._enumerates("plain" if k_best is None else "k_best")
        return searcher

    def __getstate__(self) -> dict[str, Any]:
        # A worker makes the true outputs' vectors for the examples that it meets.
        return self.__dict__ | {"_gold": {}}

    def __call__(self, ids: IntArray, w: FloatArray) -> _Found:
        examples: list[int] = []
        losses: list[float] = []
        vectors: list[SparseVector] = []
        inexact: list[int] = []
        seconds: list[float] = []
        for i in ids.tolist():
            _core.poll()
            start = time.perf_counter()
            self.n_begun += 1
            try:
                planes, is_exact = self._found(i, w)
            except Exception as error:
                what = "its best output" if self._is_plain else "its most violated output"
                error.add_note(f"while searching example {i} for {what}")
                raise
            seconds.append(time.perf_counter() - start)
            if not is_exact:
                inexact.append(i)
            for loss, vector in planes:
                examples.append(i)
                losses.append(loss)
                vectors.append(vector)
        return _Found(
            np.array(examples, np.int64),
            np.array(losses, np.float64),
            np.array([len(vector.indices) for vector in vectors], np.int64),
            np.concatenate([np.zeros(0, np.int32), *(vector.indices for vector in vectors)]),
            np.concatenate([np.zeros(0), *(vector.values for vector in vectors)]),
            inexact,
            seconds,
        )

    def _found(self, i: int, w: FloatArray) -> tuple[list[tuple[float, SparseVector]], bool]:
        """Return loss and δΨ of what is searched for (without the truth), and whether it may be maximal."""
        model, x, y_true = self._model, self._X[i], self._Y[i]
        gold = self._gold_vector(i)
        if self._k_best is not None:
            found = model.m_best(x, w, self._k_best)
            planes = [self._plane(i, gold, self._checked(y, "m_best")) for y in found]
            return [(loss, difference) for loss, difference, _ in filter(None, planes)], True
        if self._is_plain:
            y, search = model.argmax(x, w), "argmax"
        elif self._is_slack:
            y, search = model.slack_rescaled_argmax(x, y_true, w), "slack_rescaled_argmax"
        else:
            y, search = model.loss_augmented_argmax(x, y_true, w), "loss_augmented_argmax"
        plane = self._plane(i, gold, self._checked(y, search))
        if plane is None:
            return [], True
        loss, difference, vector = plane
        # Without the loss it is the score alone that must not be less than the truth's.
        margin = 0.0 if self._is_plain else loss
        value = loss * (1.0 - difference.dot(w)) if self._is_slack else margin - difference.dot(w)
        if value >= 0.0:
            return [(loss, difference)], True
        # The truth is worth 0, so it is better. Scores may cancel: rounding is measured by what they are summed from.
        scores = gold.absolute_dot(w) + vector.absolute_dot(w)
        size = loss * (1.0 + scores) if self._is_slack else loss + scores
        return [], value >= -_ROUNDING * size

    def _checked(self, y: Any, search: str) -> Any:
        # Where all outputs are listed, None may be one of them.
        return y if self._enumerates else checked_output(y, search)

    def _plane(self, i: int, gold: SparseVector, y: Any) -> tuple[float, SparseVector, SparseVector] | None:
        """Return loss, δΨ and Ψ of an output of example i, or None for the truth."""
        model, y_true = self._model, self._Y[i]
        if model.key(y) == model.key(y_true):
            return None
        loss = checked_loss(model.loss(y_true, y), f"loss(Y[{i}], y)")
        vector = as_sparse(model.joint_feature(self._X[i], y), model.n_features, f"joint_feature(X[{i}], y)")
        difference = gold.minus(vector)
        # Under slack rescaling the loss multiplies δΨ too: without loss the plane is the truth's.
        if loss == 0.0 and (self._is_slack or len(difference.indices) == 0):
            return None
        return loss, difference, vector

    def _gold_vector(self, i: int) -> SparseVector:
        if i not in self._gold:
            model, y = self._model, self._Y[i]
            own_loss = checked_loss(model.loss(y, y), f"loss(Y[{i}], Y[{i}])")
            if own_loss != 0.0:
                raise ValueError(f"loss(Y[{i}], Y[{i}]) is {own_loss}; the loss of the true output itself must be 0.")
            if self._enumerates and not model._lists(self._X[i], y):
                plain = y.tolist() if isinstance(y, (np.ndarray, np.generic)) else y
                raise ValueError(
                    f"Y[{i}] is {reprlib.repr(plain)}, which outputs(X[{i}]) does not list: no prediction could be right."
                )
            if y is not None and model.key(y) is None:
                raise TypeError(f"key(Y[{i}]) must say when two outputs are the same, found None: is a return missing?")
            vector = model.joint_feature(self._X[i], y)
            self._gold[i] = as_sparse(vector, model.n_features, f"joint_feature(X[{i}], Y[{i}])")
        return self._gold[i]


# ------------------------------------------------------------------------------- what user code returned


def checked_output(y: Any, search: str) -> Any:
    """Return what a search of the model returned, unless that is nothing."""
    if y is None:
        raise TypeError(f"{search} must return an output, found None: is a return missing?")
    return y


class SparseVector(NamedTuple):
    """Ascending weight numbers and the values that belong to them."""

    indices: NDArray[np.int32]
    values: FloatArray

    def dot(self, w: FloatArray) -> float:
        """Return v·w."""
        return float(self.values @ w[self.indices])

    def absolute_dot(self, w: FloatArray) -> float:
        """Return Σ |v_j w_j|."""
        return float(np.abs(self.values) @ np.abs(w[self.indices]))

    def minus(self, other: SparseVector) -> SparseVector:
        """Return the difference, without the entries that cancel."""
        return _summed(np.concatenate((self.indices, other.indices)), np.concatenate((self.values, -other.values)))


def _summed(indices: NDArray[np.int32], values: FloatArray) -> SparseVector:
    """Return the vector of these entries: sorted, those of the same number added, zeros left out."""
    if len(indices) == 0:
        return SparseVector(indices, values)
    order = np.argsort(indices, kind="stable")
    indices, values = indices[order], values[order]
    first = np.flatnonzero(np.diff(indices, prepend=-1))
    values = np.add.reduceat(values, first)
    kept = values != 0.0
    return SparseVector(indices[first][kept], values[kept])


def as_sparse(vector: Any, n_features: int, name: str) -> SparseVector:
    """Return what ``joint_feature`` returned as a sparse vector of ``n_features`` finite numbers.

    Parameters
    ----------
    vector : 1-D array, sparse row, or (indices, values)
        Dense of length ``n_features``, sparse of shape (1, n_features), or weight numbers with their values, in any
        order; values of the same number are added.
    n_features : int
        The dimension of w.
    name : str
        How an error names the vector.

    Examples
    --------
    >>> as_sparse(([4, 1, 4], [1.0, 2.0, 0.5]), 5, "joint_feature(x, y)")
    SparseVector(indices=array([1, 4], dtype=int32), values=array([2. , 1.5]))
    """
    if sp.issparse(vector):
        row: Any = vector
        if row.shape not in ((1, n_features), (n_features,)):
            raise ValueError(f"{name} is sparse of shape {row.shape}, expected (1, {n_features}): one row.")
        entries = row.tocoo()
        # A row of a CSR matrix is 2-D or 1-D, after scipy's matrices and its arrays.
        indices, values = np.asarray(entries.coords[-1]), as_numbers(entries.data, name)
    elif isinstance(vector, tuple) and len(vector) == 2:
        indices, values = _pair(vector, n_features, name)
    else:
        if vector is None:
            raise TypeError(f"{name} must be a vector, found None: is a return missing?")
        dense = as_numbers(vector, name)
        if dense.shape != (n_features,):
            raise ValueError(f"{name} has shape {dense.shape}, expected ({n_features},): n_features is {n_features}.")
        indices = np.flatnonzero(dense)
        values = dense[indices]
    if not np.all(np.abs(values) <= LARGEST_FEATURE):
        bad = int(np.flatnonzero(~(np.abs(values) <= LARGEST_FEATURE))[0])
        expected = f"not beyond ±{LARGEST_FEATURE:g}" if np.isfinite(values[bad]) else "finite"
        raise ValueError(f"{name} has {values[bad]} as feature {indices[bad]}; features must be {expected}.")
    return _summed(indices.astype(np.int32), values)


def _pair(pair: tuple[Any, Any], n_features: int, name: str) -> tuple[NDArray[Any], FloatArray]:
    indices, values = np.asarray(pair[0]), as_numbers(pair[1], f"the values of {name}")
    if indices.ndim != 1 or indices.shape != values.shape:
        raise ValueError(
            f"{name} is a pair of shapes {indices.shape} and {values.shape}; expected (indices, values), two arrays of "
            "one length. Return an array, not a tuple, for a dense vector of two features."
        )
    if len(indices) == 0:
        return indices.astype(np.int64), values
    if not np.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{name} has indices of type {indices.dtype}; expected integers.")
    if indices.min() < 0 or indices.max() >= n_features:
        bad = indices[(indices < 0) | (indices >= n_features)][0]
        raise ValueError(f"{name} has the index {bad}; expected 0 … {n_features - 1}: n_features is {n_features}.")
    return indices, values


def checked_loss(value: Any, name: str) -> float:
    """Return a loss as a float that is finite and not negative."""
    try:
        if isinstance(value, str | bytes):
            raise TypeError
        loss = float(value)
    except (TypeError, ValueError):
        found = "None: is a return missing?" if value is None else f"{value!r}."
        raise TypeError(f"{name} must be a number, found {found}") from None
    if not 0.0 <= loss < np.inf:
        raise ValueError(f"{name} is {loss}; a loss must be finite and ≥ 0.")
    if loss > 0.0 and not SMALLEST_LOSS <= loss <= LARGEST_LOSS:
        raise ValueError(f"{name} is {loss:g}; expected 0 or a number between {SMALLEST_LOSS:g} and {LARGEST_LOSS:g}.")
    return loss
