"""What the classifiers of single rows share: validation, the constant column, class weights, linear scores."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from types import FunctionType
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from maxmargin._feature_rows import check_places
from maxmargin._parameters import check_bool, check_sample_weight, effective_n_jobs, is_number
from maxmargin._result import Solution
from maxmargin.estimators._base import MaxMarginEstimator, Training, check_known, is_sparse
from maxmargin.estimators._kernels import (
    KernelEstimator,
    chosen_kernel,
    expansion_from,
    expansion_state,
    refuse_stream,
)
from maxmargin.estimators._streams import check_same_classes, known_codes, online_only
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.models._linear import LinearModel
from maxmargin.problems.base import FloatArray

# A larger constant would leave double precision when it is squared.
_LARGEST_CONSTANT = 1e100


class LinearClassifier(ClassifierMixin, KernelEstimator, MaxMarginEstimator):  # type: ignore[misc]
    """A classifier whose scores are ``X @ coef_.T + intercept_`` or a kernel expansion; subclasses name the model."""

    classes_: NDArray[Any]
    coef_: FloatArray
    intercept_: FloatArray
    expansion_: Expansion
    n_features_in_: int

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        rescaling: str = "margin",
        cost: Any = None,
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        class_weight: Mapping[Any, float] | str | None = None,
        kernel: Any = "linear",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        kernel_approximation: str | None = None,
        n_components: int = 100,
        basis: str = "random",
        kernel_cache: float = 1000.0,
        solver: str = "auto",
        tol: float = 1e-3,
        max_iter: int | None = 10_000,
        max_time: float | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(
            C,
            loss=loss,
            rescaling=rescaling,
            solver=solver,
            tol=tol,
            max_iter=max_iter,
            max_time=max_time,
            n_jobs=n_jobs,
            random_state=random_state,
            warm_start=warm_start,
            verbose=verbose,
            solver_options=solver_options,
        )
        self.cost = cost
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_approximation = kernel_approximation
        self.n_components = n_components
        self.basis = basis
        self.kernel_cache = kernel_cache

    def __init_subclass__(cls, **keywords: Any) -> None:
        """Give a class that inherits the constructor one of its own name, by which Python's errors of arguments call it."""
        super().__init_subclass__(**keywords)
        if "__init__" not in vars(cls):
            cls.__init__ = _renamed(cls.__init__, f"{cls.__qualname__}.__init__")  # type: ignore[method-assign]

    @abstractmethod
    def _encode(
        self, classes: NDArray[Any], codes: NDArray[np.int32], kernel: Kernel | LowRank | None
    ) -> tuple[LinearModel, NDArray[np.int32]]:
        """Return the model for these classes, and the targets as it takes them."""

    @abstractmethod
    def _check_classes(self, y: NDArray[Any], classes: NDArray[Any]) -> None:
        """Refuse a number of classes that the model is not made for."""

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on rows and their classes.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The examples; float32 is kept, other numbers become float64.
        y : array of shape (n_samples,)
            Their classes.
        sample_weight : array of shape (n_samples,), optional
            s_i ≥ 0: how many times each example counts.

        Returns
        -------
        self
        """
        return self._fit(self._prepare(X, y, sample_weight))

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Training:
        self._check_constant()
        kernel = chosen_kernel(self, self.intercept_scaling**2 if self.fit_intercept else 0.0)
        self._check_parameters(LinearModel.abilities_with(kernel))
        X, y = self._validated(X, y, reset=True)
        classes, inverse = _unique(y)
        codes = inverse.astype(np.int32)
        self._check_number_of_classes(y, classes)
        weights = self._example_weights(check_sample_weight(sample_weight, len(codes)), classes, codes)
        model, targets = self._encode(classes, codes, kernel)

        def finish(fitted: LinearClassifier, solution: Solution) -> None:
            if solution.expansion is not None:
                fitted._set_expansion(classes, solution.expansion.pruned())
            else:
                fitted._set_fitted(classes, model.blocks(solution.w)["coef"], X.shape[1])

        return Training(model, self._rows(X) if kernel is None else X, targets, weights, finish)

    @online_only
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one pass over some more rows; there is such a method with solver 'perceptron', 'mira' or 'sgd' only.

        The rows are visited in their order. The first call, also after ``fit``, begins with weights of 0. ``certificate_`` has
        no primal, for which all rows would have to be known, ``history_`` is empty and ``n_iter_`` counts the calls.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
            The examples.
        y : array of shape (n_samples,)
            Their classes.
        classes : array of shape (n_classes,), optional
            All classes that any call will bring; needed in the first call, unless ``fit`` has seen them.
        sample_weight : array of shape (n_samples,), optional
            s_i ≥ 0: what an example's updates are multiplied by.

        Returns
        -------
        self
        """
        self._check_constant()
        refuse_stream(chosen_kernel(self))
        solver = self._check_parameters(LinearModel.abilities)
        is_first = self._stream is None
        if classes is None and not hasattr(self, "classes_"):
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if self.class_weight == "balanced":
            raise ValueError("class_weight='balanced' needs all examples at once: give partial_fit a dict of weights.")
        X, y = self._validated(X, y, reset=is_first)
        known = _unique(np.asarray(classes).ravel())[0] if is_first and classes is not None else self.classes_
        if classes is not None:
            check_same_classes(np.asarray(classes).ravel().tolist(), known)
        self._check_number_of_classes(known, known)
        codes = known_codes(y, known)
        weights = self._example_weights(check_sample_weight(sample_weight, len(codes)), known, codes)
        model, targets = self._encode(known, codes, None)
        w = self._learn(solver, model.bind(self._rows(X), targets, sample_weight=weights))
        self._set_fitted(known, model.blocks(w)["coef"], X.shape[1])
        return self

    def _check_constant(self) -> None:
        """Check the parameters of the constant column."""
        check_bool("fit_intercept", self.fit_intercept)
        if not is_number(self.intercept_scaling) or not 0 < self.intercept_scaling <= _LARGEST_CONSTANT:
            raise ValueError(
                f"intercept_scaling must be a positive number of at most {_LARGEST_CONSTANT:g}, found "
                f"{self.intercept_scaling!r}."
            )

    def _validated(self, X: Any, y: Any, *, reset: bool) -> tuple[Any, NDArray[Any]]:
        """Return checked data."""
        _check_rows(X)
        _check_one_kind(y)
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=[np.float64, np.float32], reset=reset)
        with _unsortable():
            check_classification_targets(y)
        return X, y

    def _check_number_of_classes(self, y: NDArray[Any], classes: NDArray[Any]) -> None:
        if len(classes) < 2:
            raise ValueError(f"The number of classes has to be greater than one; got {len(classes)} class.")
        self._check_classes(y, classes)

    def _rows(self, X: Any) -> Any:
        return _with_constant(X, self.intercept_scaling) if self.fit_intercept else X

    def _set_expansion(self, classes: NDArray[Any], expansion: Expansion) -> None:
        self.classes_ = classes
        if len(expansion.coef) == 2:
            coef, intercept = expansion.coef, expansion.intercept
            expansion = replace(expansion, coef=coef[1:] - coef[:1], intercept=intercept[1:] - intercept[:1]).pruned()
        self.expansion_ = expansion
        self.intercept_ = expansion.intercept
        self.__dict__.pop("coef_", None)

    def _replace_expansion(self, expansion: Expansion) -> None:
        self.expansion_ = expansion

    def _set_fitted(self, classes: NDArray[Any], coef: FloatArray, n_features: int) -> None:
        self.classes_ = classes
        self.__dict__.pop("expansion_", None)
        if len(coef) == 2:
            # Two classes have one score, as everywhere in scikit-learn.
            coef = coef[1:] - coef[:1]
        self.coef_ = np.ascontiguousarray(coef[:, :n_features])
        self.intercept_ = self.intercept_scaling * coef[:, n_features] if self.fit_intercept else np.zeros(len(coef))

    def __getattr__(self, name: str) -> Any:
        """Say where the weights are that a kernel does not have."""
        if name == "coef_" and "expansion_" in vars(self):
            raise AttributeError("with a kernel there is no coef_: the coefficients are in expansion_.")
        # Whatever failed once fails again, with its own message.
        return object.__getattribute__(self, name)

    def decision_function(self, X: Any) -> FloatArray:
        """Return the scores of the classes, or of the second class against the first where there are two.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes, positive means ``classes_[1]``.
        """
        check_is_fitted(self)
        _check_rows(X)
        X = validate_data(self, X, accept_sparse="csr", dtype=[np.float64, np.float32], reset=False)
        with np.errstate(over="ignore", invalid="ignore"):
            if hasattr(self, "expansion_"):
                scores = self.expansion_.scores(X, effective_n_jobs(self.n_jobs))
            else:
                scores = np.asarray(X @ self.coef_.T + self.intercept_)
        if not np.all(np.isfinite(scores)):
            row = int(np.argmax(~np.isfinite(scores).all(axis=1)))
            raise ValueError(
                f"the score of X[{row}] leaves double precision: X holds values too large for these weights."
            )
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class with the highest score for each row.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``; of equal scores the first class wins.
        """
        scores = self.decision_function(X)
        best = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[best])

    def _example_weights(
        self, sample_weight: FloatArray | None, classes: NDArray[Any], codes: NDArray[np.int32]
    ) -> FloatArray | None:
        """Return s_i times the weight of the example's class, or None where all are 1."""
        if self.class_weight is None:
            return sample_weight
        base = np.ones(len(codes)) if sample_weight is None else sample_weight
        labels = classes.tolist()
        if isinstance(self.class_weight, str):
            if self.class_weight != "balanced":
                raise ValueError(f"class_weight must be a dict, 'balanced' or None, found {self.class_weight!r}.")
            totals = np.bincount(codes, weights=base, minlength=len(classes))
            factors = np.divide(base.sum(), len(classes) * totals, out=np.ones(len(classes)), where=totals > 0)
        elif isinstance(self.class_weight, Mapping):
            check_known("class_weight", list(self.class_weight), labels)
            factors = np.array([self.class_weight.get(label, 1.0) for label in labels], dtype=object)
            bad = [label for label, factor in zip(labels, factors, strict=True) if not is_number(factor) or factor < 0]
            if bad:
                raise ValueError(f"class_weight[{bad[0]!r}] must be a number ≥ 0, found {self.class_weight[bad[0]]!r}.")
        else:
            raise ValueError(f"class_weight must be a dict, 'balanced' or None, found {self.class_weight!r}.")
        weights = np.asarray(base * factors.astype(np.float64)[codes])
        if not weights.any():
            raise ValueError("class_weight leaves no example with a weight above 0.")
        return weights

    def _fitted_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        if hasattr(self, "expansion_"):
            state = {
                "classes": self.classes_,
                "n_features": self.n_features_in_,
                "expansion": expansion_state(self.expansion_),
            }
        else:
            state = {"classes": self.classes_, "coef": self.coef_, "intercept": self.intercept_}
        names = getattr(self, "feature_names_in_", None)
        return state if names is None else {**state, "feature_names_in": names}

    def _restore(self, state: dict[str, Any]) -> None:
        self.classes_ = state["classes"]
        if self.classes_.ndim != 1 or len(self.classes_) < 2:
            raise ValueError(f"its classes have the shape {self.classes_.shape}")
        self._check_classes(self.classes_, self.classes_)
        n_scores = 1 if len(self.classes_) == 2 else len(self.classes_)
        if "expansion" in state:
            self.n_features_in_ = int(state["n_features"])
            self.expansion_ = expansion_from(state["expansion"], n_scores, self.n_features_in_)
            self.intercept_ = self.expansion_.intercept
        else:
            self._restore_weights(state["coef"], state["intercept"], n_scores)
        if "feature_names_in" in state:
            self.feature_names_in_ = state["feature_names_in"]
            if self.feature_names_in_.shape != (self.n_features_in_,):
                raise ValueError(
                    f"it names {self.feature_names_in_.size} features and has weights for {self.n_features_in_}"
                )

    def _restore_weights(self, coef: FloatArray, intercept: FloatArray, n_scores: int) -> None:
        self.coef_, self.intercept_ = coef, intercept
        if self.coef_.dtype != np.float64 or self.intercept_.dtype != np.float64:
            raise ValueError("its weights are not float64")
        if self.coef_.ndim != 2 or len(self.coef_) != n_scores or self.intercept_.shape != (n_scores,):
            raise ValueError(
                f"its weights have shapes {self.coef_.shape} and {self.intercept_.shape}, which do not fit "
                f"{len(self.classes_)} classes"
            )
        self.n_features_in_ = self.coef_.shape[1]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = getattr(self.kernel, "name", self.kernel) == "precomputed"
        return tags


def _check_one_kind(labels: Any) -> None:
    """Refuse lists of strings and others, which NumPy would make strings of."""
    if isinstance(labels, (list, tuple)):
        are_strings = {isinstance(label, str) for label in labels}
        if len(are_strings) > 1:
            other = next(label for label in labels if not isinstance(label, str))
            raise TypeError(
                f"y holds labels that cannot be sorted, such as numbers among strings: found {other!r} and a string."
            )


def _renamed(function: Any, name: str) -> Any:
    """Return the same function under another name; a wrapper would lose the signature that parameters are read from."""
    copied = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copied.__kwdefaults__, copied.__annotations__ = function.__kwdefaults__, function.__annotations__
    copied.__name__, copied.__doc__, copied.__module__ = function.__name__, function.__doc__, function.__module__
    copied.__qualname__ = name
    return copied


def _check_rows(X: Any) -> None:
    """Refuse what scikit-learn would not name, or not notice."""
    if isinstance(X, Iterator):
        raise TypeError(
            f"X is of type {type(X).__name__}, whose rows can be had but once; expected a matrix with a row for each "
            "example, or a list of rows: list(X)."
        )
    check_places(X)


@contextmanager
def _unsortable() -> Iterator[None]:
    """Say of labels that have no order which ones these are."""
    try:
        yield
    except TypeError as error:
        found = str(error).rstrip(".")
        if "bytes" in found:
            raise TypeError(f"y holds labels that cannot be used: {found}.") from None
        raise TypeError(f"y holds labels that cannot be sorted, such as numbers among strings: {found}.") from None


def _unique(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the labels that occur, sorted, and the number of each among them."""
    with _unsortable():
        return np.unique(labels, return_inverse=True)


def _with_constant(X: Any, constant: float) -> Any:
    """Return X with one more column that holds ``constant`` everywhere."""
    n, d = X.shape
    if not is_sparse(X):
        return np.hstack([X, np.full((n, 1), constant, X.dtype)])
    ends = X.indptr[1:]
    indptr = X.indptr.astype(np.int64) + np.arange(n + 1)
    indices, values = np.insert(X.indices, ends, d), np.insert(X.data, ends, constant)
    return sp.csr_array((values, indices, indptr), shape=(n, d + 1))
