"""What a user subclasses to train a model of their own."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._feature_rows import as_numbers
from maxmargin._parameters import check_how_many, check_sample_weight, is_integer
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.python import PythonProblem, as_sparse, checked_loss, checked_output

_INT32_MAX = np.iinfo(np.int32).max
# A loss that counts less changes no score in double precision; what it is divided by stays finite.
_LEAST_STRENGTH = 1e-100


class Model(ABC):
    r"""A structured prediction model written in Python.

    A subclass says what an output looks like to the weights and what a wrong one costs; training and prediction follow:

    .. math::

        h(x) = \operatorname{argmax}_y \; w \cdot \Psi(x, y), \qquad
        H_i(w) = \max_y \; \Delta(y_i, y) - w \cdot (\Psi(x_i, y_i) - \Psi(x_i, y))

    Write :meth:`joint_feature` (Ψ) and :meth:`loss` (Δ), set ``n_features`` in :meth:`initialize`, and then either

    * :meth:`outputs`, all outputs of an input: every search is done by enumeration, exactly; or
    * :meth:`argmax` and :meth:`loss_augmented_argmax`, searches of your own; for slack rescaling
      :meth:`slack_rescaled_argmax` as well, for several outputs :meth:`m_best` and :meth:`diverse_argmax`.

    What a search returns is checked against what is known: where it is provably not the best output, training goes on
    with the better one, warns once and says so in the certificate.

    Attributes
    ----------
    n_features : int
        The length of Ψ and of w; set by :meth:`initialize`, or by the class if it does not depend on the data.
    nonnegative : array of int
        Numbers of the weights that must stay ≥ 0; none by default.

    Notes
    -----
    The weights that searches are given are read-only and change after the call: copy what you keep. With ``n_jobs`` > 1
    the model and the data are sent to worker processes once, so what a search writes to ``self`` stays in its process.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> from maxmargin.model import Model
    >>> class Nearest(Model):
    ...     n_features = 1
    ...
    ...     def joint_feature(self, x, y):
    ...         return [-abs(x - y)]
    ...
    ...     def loss(self, y_true, y):
    ...         return abs(y_true - y)
    ...
    ...     def outputs(self, x):
    ...         return range(5)
    >>> solution = mm.train(Nearest(), [0.2, 3.1, 1.8], [0, 3, 2], C=10.0)
    >>> solution.certificate.relative_gap <= 1e-3
    True
    >>> Nearest().predict([0.9, 3.7], solution.w)
    [1, 4]
    """

    n_features: int
    nonnegative: Any = ()

    # ----------------------------------------------------------------------------- what a subclass writes

    def initialize(self, X: Any, Y: Any) -> None:  # noqa: B027 - a class may set n_features itself
        """Set ``self.n_features`` and whatever else depends on the training data; called before training.

        Parameters
        ----------
        X, Y : sequences
            Inputs and true outputs, as given to training.
        """

    @abstractmethod
    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return Ψ(x, y).

        Returns
        -------
        1-D array of length n_features, sparse row of shape (1, n_features), or (indices, values)
            In the pair, indices may come in any order, and the values of the same index are added.
        """

    @abstractmethod
    def loss(self, y_true: Any, y: Any) -> float:
        """Return Δ(y_true, y) ≥ 0, what predicting ``y`` costs; 0 for the truth itself."""

    def outputs(self, x: Any) -> Iterable[Any]:
        """Return all outputs of ``x``, if they can be listed; a true output that is not among them is an error in training."""
        raise NotImplementedError(
            f"{type(self).__name__} does not list its outputs: write outputs(x), or the search that was asked for."
        )

    # ------------------------------------------------------- searches, by enumeration unless overridden

    def argmax(self, x: Any, w: FloatArray) -> Any:
        """Return the output with the highest score w·Ψ(x, y)."""
        return _first_best(self._listed(x), lambda y: self._score(x, y, w))

    def loss_augmented_argmax(self, x: Any, y_true: Any, w: FloatArray) -> Any:
        """Return the output with the highest Δ(y_true, y) + w·Ψ(x, y)."""

        def value(y: Any) -> float:
            return self._loss(y_true, y) + self._score(x, y, w)

        return _first_best(self._with_truth(x, y_true), value)

    def slack_rescaled_argmax(self, x: Any, y_true: Any, w: FloatArray) -> Any:
        """Return the output with the highest Δ(y_true, y) · (1 − w·(Ψ(x, y_true) − Ψ(x, y)))."""
        score_of_truth = self._score(x, y_true, w)

        def value(y: Any) -> float:
            return self._loss(y_true, y) * (1.0 - score_of_truth + self._score(x, y, w))

        return _first_best(self._with_truth(x, y_true), value)

    def m_best(self, x: Any, w: FloatArray, m: int) -> list[Any]:
        """Return the ``m`` outputs with the highest scores, best first; fewer where there are fewer."""
        # nlargest is stable: of equal scores the first listed comes first.
        return heapq.nlargest(m, self._listed(x), key=lambda y: self._score(x, y, w))

    def diverse_argmax(self, x: Any, others: Sequence[Any], strengths: Sequence[float], w: FloatArray) -> Any:
        """Return the output with the highest w·Ψ(x, y) + Σ_j strengths[j] · Δ(others[j], y).

        Without :meth:`outputs`, a single other output is left to :meth:`loss_augmented_argmax`: Δ is then what is bought.
        """
        repelling = [
            (other, strength) for other, strength in zip(others, strengths, strict=True) if strength > _LEAST_STRENGTH
        ]
        if not repelling:
            return self.argmax(x, w)
        if self._overrides("outputs"):

            def value(y: Any) -> float:
                return self._score(x, y, w) + sum(strength * self._loss(other, y) for other, strength in repelling)

            return _first_best(self._listed(x), value)
        if len(repelling) > 1:
            raise NotImplementedError(f"{type(self).__name__} {_LACKS_DIVERSE}")
        (other, strength), *_ = repelling
        return self.loss_augmented_argmax(x, other, self._scaled(w, 1.0 / strength))

    def key(self, y: Any) -> Hashable:
        """Return what makes two outputs the same: equal keys are equal outputs.

        Arrays, lists and tuples of equal entries are the same output here, nested ones too; sets and dicts are compared
        by what they hold. Override it for outputs of other kinds that cannot be hashed.
        """
        return _frozen(y)

    # --------------------------------------------------------------------------------------- what follows

    @property
    def abilities(self) -> frozenset[str]:
        """What the model offers: searches ``max_oracle``, ``slack_oracle``, ``m_best``, and features that are ``vectors``."""
        self._check_complete()
        has_all = self._overrides("outputs")
        return frozenset(ability for ability, method in _SEARCHES.items() if has_all or self._overrides(method)) | {
            "vectors",
            "blocks",
        }

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> PythonProblem:
        """Return the training problem of this model on these data, after :meth:`initialize`.

        Parameters
        ----------
        X, Y : sequences of one length
            Inputs and true outputs; ``X[i]`` and ``Y[i]`` are what the other methods are given.
        sample_weight : array of float, optional
            s_i ≥ 0.
        rescaling : {"margin", "slack"}
            How the loss enters the constraints.
        n_jobs : int
            Worker processes for the searches.
        """
        self._check_complete()
        weights = checked_examples(X, Y, sample_weight)
        self._check_rescaling(rescaling)
        self.initialize(X, Y)
        self.n_features = self._checked_n_features()
        return PythonProblem(self, X, Y, rescaling, weights, self._nonnegative_ids(), n_jobs)

    def bind_more(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> PythonProblem:
        """Return the training problem on more data, of a model that :meth:`bind` has initialised on the first."""
        weights = checked_examples(X, Y, sample_weight)
        return PythonProblem(self, X, Y, "margin", weights, self._nonnegative_ids(), 1)

    def predict(self, X: Any, w: ArrayLike, n_jobs: int = 1) -> list[Any]:
        """Return the best output of each input.

        Parameters
        ----------
        X : sequence
            Inputs.
        w : array of float
            The weights, ``Solution.w``; ``Solution.expansion`` with a kernel.
        n_jobs : int
            Worker processes.
        """
        return self._search_each(_best, X, w, n_jobs)

    def k_best(self, X: Any, w: ArrayLike, k: int, n_jobs: int = 1) -> list[tuple[list[Any], FloatArray]]:
        """Return for each input its k best outputs (fewer where fewer exist), best first, and their scores.

        Parameters
        ----------
        X, w, n_jobs
            As in :meth:`predict`.
        k : int
            How many; more than one are searched for by :meth:`m_best`.
        """
        check_how_many("k", k)
        if k > 1 and "m_best" not in self.abilities:
            raise ValueError(f"{type(self).__name__} has neither m_best nor outputs: it finds one output of an input.")
        return self._search_each(partial(_several_best, k=int(k)), X, w, n_jobs)

    def diverse(
        self, X: Any, w: ArrayLike, strengths: ArrayLike, n_jobs: int = 1
    ) -> list[tuple[list[Any], FloatArray]]:
        """Return for each input outputs of which each is the best that differs from those before it, and their scores.

        Parameters
        ----------
        X, w, n_jobs
            As in :meth:`predict`.
        strengths : array of float
            What the loss between an output and those after it counts in units of score, one for each output but the last;
            see :meth:`diverse_argmax`.
        """
        amounts = as_numbers(strengths, "strengths")
        if amounts.ndim != 1 or not np.all(np.isfinite(amounts) & (amounts >= 0.0)):
            raise ValueError("strengths must hold finite numbers ≥ 0, one for each output but the last.")
        finds_all = self._overrides("diverse_argmax") or self._overrides("outputs")
        if np.count_nonzero(amounts > _LEAST_STRENGTH) > (
            np.inf if finds_all else self._overrides("loss_augmented_argmax")
        ):
            raise ValueError(f"{type(self).__name__} {_LACKS_DIVERSE}")
        return self._search_each(partial(_several_diverse, strengths=amounts.tolist()), X, w, n_jobs)

    def _search_each(self, search: _Search, X: Any, w: ArrayLike, n_jobs: int) -> list[Any]:
        """Return what a search finds for each input."""
        weights = self._checked_weights(w)
        if not is_integer(n_jobs, 1):
            raise ValueError(f"n_jobs must be an integer ≥ 1, found {n_jobs!r}.")
        ids = np.arange(_length("X", X), dtype=np.int64)
        predictor = _Predictor(self, X, search)
        if n_jobs == 1 or len(ids) <= 1:
            return predictor(ids, weights)
        from maxmargin.problems.workers import WorkerPool  # brings joblib, which nobody else needs

        pool = WorkerPool(predictor, len(weights), n_jobs)
        try:
            return [y for part in pool.map(ids, weights) for y in part]
        finally:
            pool.close()

    # ------------------------------------------------------------------------------------------ internals

    def _checked_weights(self, w: ArrayLike) -> FloatArray:
        """Return a copy of w that nobody can write to, after checking that it is one for this model."""
        weights = np.array(as_numbers(w, "w"))
        n_features = getattr(self, "n_features", len(weights) if weights.ndim else 0)
        if weights.shape != (n_features,):
            raise ValueError(f"w has shape {weights.shape}, expected ({n_features},): n_features is {n_features}.")
        if not np.all(np.isfinite(weights)):
            raise ValueError("w must hold finite numbers.")
        weights.flags.writeable = False
        return weights

    def _scaled(self, w: Any, factor: float) -> Any:
        """Return w as searches take it, multiplied."""
        scaled = factor * w
        scaled.flags.writeable = False
        return scaled

    def _score(self, x: Any, y: Any, w: FloatArray) -> float:
        psi = self.joint_feature(x, y)
        if isinstance(psi, np.ndarray) and psi.shape == w.shape:
            score = float(psi @ w)
            if np.isfinite(score):
                return score
        return as_sparse(psi, len(w), "joint_feature(x, y)").dot(w)

    def _loss(self, y_true: Any, y: Any) -> float:
        return checked_loss(self.loss(y_true, y), "loss(y_true, y)")

    def _listed(self, x: Any) -> Iterable[Any]:
        outputs = self.outputs(x)
        try:
            listed: Iterable[Any] = iter(outputs)
        except TypeError:
            found = "None: is a return missing?" if outputs is None else f"{type(outputs).__name__}."
            raise TypeError(f"outputs(x) must list all outputs of x, found {found}") from None
        return listed

    def _with_truth(self, x: Any, y_true: Any) -> Iterable[Any]:
        """List the truth first: it is a constraint of its example whether or not ``outputs`` would list it."""
        yield y_true
        yield from self._listed(x)

    def _enumerates(self, search: str) -> bool:
        """Return whether the search of this name, a rescaling or without loss, goes through :meth:`outputs`."""
        return not self._overrides(_METHODS[search])

    def _lists(self, x: Any, y: Any) -> bool:
        """Return whether ``y`` is among the outputs of ``x``."""
        key = self.key(y)
        return any(self.key(other) == key for other in self._listed(x))

    def _overrides(self, method: str) -> bool:
        return getattr(getattr(self, method), "__func__", None) is not getattr(Model, method)

    def _check_complete(self) -> None:
        if not self._overrides("argmax") and not self._overrides("outputs"):
            raise TypeError(
                f"{type(self).__name__} implements neither argmax(x, w) nor outputs(x): one is needed to predict."
            )

    def _check_rescaling(self, rescaling: str) -> None:
        if rescaling == "slack" and "slack_oracle" not in self.abilities:
            raise ValueError(
                f"rescaling='slack' needs a search of its own: {type(self).__name__} has neither slack_rescaled_argmax "
                "nor outputs."
            )

    def _checked_n_features(self) -> int:
        name = type(self).__name__
        n_features = getattr(self, "n_features", None)
        if n_features is None:
            raise ValueError(f"{name}.initialize(X, Y) must set self.n_features, the length of joint_feature(x, y).")
        if not is_integer(n_features, 1) or n_features > _INT32_MAX:
            raise ValueError(f"{name}.n_features is {n_features!r}; expected an integer from 1 to {_INT32_MAX}.")
        return int(n_features)

    def _nonnegative_ids(self) -> IntArray:
        name, ids = f"{type(self).__name__}.nonnegative", np.asarray(self.nonnegative)
        if ids.size == 0:
            return np.zeros(0, np.int64)
        if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
            raise ValueError(f"{name} must list numbers of weights; found {ids.dtype} of shape {ids.shape}.")
        if ids.min() < 0 or ids.max() >= self.n_features:
            raise ValueError(f"{name} lists weights {ids.min()} to {ids.max()}; expected 0 … {self.n_features - 1}.")
        return np.unique(ids).astype(np.int64)


# The methods that search for each kind of output.
_METHODS = {"margin": "loss_augmented_argmax", "slack": "slack_rescaled_argmax", "plain": "argmax", "k_best": "m_best"}
_SEARCHES = {"max_oracle": "loss_augmented_argmax", "slack_oracle": "slack_rescaled_argmax", "m_best": "m_best"}


# Of a model's input, given the weights.
_Search = Callable[[Model, Any, FloatArray], Any]

_LACKS_DIVERSE = (
    "has neither diverse_argmax nor outputs: it finds no output that differs from several others, and from one only by "
    "loss_augmented_argmax."
)


def _best(model: Model, x: Any, w: FloatArray) -> Any:
    y = model.argmax(x, w)
    return y if model._enumerates("plain") else checked_output(y, "argmax")


def _several_best(model: Model, x: Any, w: FloatArray, k: int) -> tuple[list[Any], FloatArray]:
    return _scored(model, x, w, [_best(model, x, w)] if k == 1 else list(model.m_best(x, w, k)))


def _several_diverse(model: Model, x: Any, w: FloatArray, strengths: list[float]) -> tuple[list[Any], FloatArray]:
    found = [_best(model, x, w)]
    while len(found) <= len(strengths):
        found.append(model.diverse_argmax(x, found, strengths[: len(found)], w))
    return _scored(model, x, w, found)


def _scored(model: Model, x: Any, w: FloatArray, outputs: list[Any]) -> tuple[list[Any], FloatArray]:
    return outputs, np.array([model._score(x, y, w) for y in outputs])


class _Predictor:
    """Prediction as worker processes take it."""

    def __init__(self, model: Model, X: Any, search: _Search) -> None:
        self._model = model
        self._X = X
        self._search = search

    def __call__(self, ids: IntArray, w: FloatArray) -> list[Any]:
        best = []
        for i in ids.tolist():
            try:
                best.append(self._search(self._model, self._X[i], w))
            except Exception as error:
                error.add_note(f"while predicting X[{i}]")
                raise
        return best


def _first_best(outputs: Iterable[Any], value: Callable[[Any], float]) -> Any:
    """Return the output of the highest value, the first of several."""
    best, best_value = None, None
    for y in outputs:
        v = value(y)
        if not np.isfinite(v):
            raise ValueError(f"the score of an output is {v}: its features are too large for these weights.")
        if best_value is None or v > best_value:
            best, best_value = y, v
    if best_value is None:
        raise ValueError("outputs(x) is empty: every input needs at least one output.")
    return best


def checked_examples(X: Any, Y: Any, sample_weight: ArrayLike | None) -> FloatArray | None:
    """Return the weights of the examples, after checking that there are as many inputs as outputs."""
    n = _length("X", X)
    for name, items in (("X", X), ("Y", Y)):
        if isinstance(items, Set):
            raise TypeError(f"{name} is a set, whose entries have no order; expected a sequence of examples.")
    if n != _length("Y", Y):
        raise ValueError(f"X has {n} inputs but Y has {_length('Y', Y)} outputs.")
    if n == 0:
        raise ValueError("X and Y are empty: training needs at least one example.")
    return check_sample_weight(sample_weight, n)


def _length(name: str, items: Any) -> int:
    """Return how many rows a matrix or entries a sequence has."""
    shape = getattr(items, "shape", None)
    if shape:
        return int(shape[0])
    try:
        return len(items)
    except TypeError:
        found = type(items).__name__
        raise ValueError(f"{name} must be a sequence with one entry for each example, found {found}.") from None


def _frozen(y: Any) -> Hashable:
    if isinstance(y, (np.ndarray, np.generic)):
        y = y.tolist()
    if isinstance(y, (list, tuple)):
        return tuple(_frozen(item) for item in y)
    if isinstance(y, Set):
        return frozenset(_frozen(item) for item in y)
    if isinstance(y, Mapping):
        return frozenset((_frozen(name), _frozen(item)) for name, item in y.items())
    if not isinstance(y, Hashable):
        found = type(y).__name__
        raise TypeError(f"an output of type {found} cannot be hashed: write key(y), which says when two are the same.")
    return y
