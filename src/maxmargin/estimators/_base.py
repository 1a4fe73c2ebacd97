"""What all estimators share: the training parameters, the run itself, warm starts and saving."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import check_bool, check_training, effective_n_jobs, generator, seed_of
from maxmargin._path import along, default_grid
from maxmargin._result import Certificate, Solution
from maxmargin._train import Trainable, check_model, solutions_at, train
from maxmargin._warm_start import NO_PLANES, Planes
from maxmargin._warnings import warn_caller
from maxmargin.estimators._streams import check_continues
from maxmargin.files import model_file
from maxmargin.model import Model
from maxmargin.problems.base import FloatArray, Problem
from maxmargin.solvers import make_solver
from maxmargin.solvers._online import OnlineSolver, OnlineState
from maxmargin.solvers.base import Request, Solver, Task


@dataclasses.dataclass
class Training:
    """A model with data as it takes them, and what makes a fitted estimator of an unfitted one and a solution."""

    model: Trainable
    X: Any
    Y: Any
    sample_weight: ArrayLike | None
    finish: Callable[[Any, Solution], None]


@dataclasses.dataclass(eq=False)
class EstimatorPath(Sequence[Any]):
    """Fitted estimators over a grid of C, in the order in which it was given.

    Attributes
    ----------
    Cs : ndarray of shape (n_points,)
        The values of C.
    estimators : list
        A fitted estimator for each; indexing or looping over the path gives them too.
    coefs : ndarray of shape (n_points, ...)
        Their ``coef_``, one after the other: a copy.
    """

    Cs: FloatArray
    estimators: list[Any]

    @property
    def coefs(self) -> FloatArray:
        """The ``coef_`` of all estimators, points × their shape."""
        return np.stack([estimator.coef_ for estimator in self.estimators])

    def score(self, X: Any, y: Any, **score_parameters: Any) -> FloatArray:
        """Return the ``score`` of every estimator.

        Parameters
        ----------
        X, y
            Held-out data, as for ``score`` of the estimators.
        **score_parameters
            Other parameters of ``score``.

        Returns
        -------
        ndarray of shape (n_points,)
        """
        return np.array([estimator.score(X, y, **score_parameters) for estimator in self.estimators])

    def __len__(self) -> int:
        return len(self.estimators)

    def __getitem__(self, k: Any) -> Any:
        return self.estimators[k]


class MaxMarginEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """The parameters and fitted attributes of every estimator; see the subclasses for their meaning."""

    n_iter_: int
    certificate_: Certificate
    history_: list[dict[str, Any]]

    # The planes of the last fit, kept only under warm_start.
    _warm: Planes | None = None
    # Where partial_fit goes on from; None before its first call and after fit.
    _stream: OnlineState | None = None

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        rescaling: str = "margin",
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
        self.C = C
        self.loss = loss
        self.rescaling = rescaling
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.max_time = max_time
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.solver_options = solver_options

    def save(self, path: str | os.PathLike[str], *, planes: bool = False) -> None:
        """Write the fitted estimator to one file, which :func:`maxmargin.load` reads back.

        The file holds the parameters, the labels, the weights and the certificate, not the history. It is written
        beside and renamed: an existing file stays whole until the new one is.

        Parameters
        ----------
        path : str or path
            Where to write; an existing file is replaced.
        planes : bool, default False
            Whether the file also holds the planes of an estimator with ``warm_start=True``, which may be many times larger than
            the weights: the next ``fit`` of the loaded estimator, on the same data or on more, then starts from them. There are
            such planes of built-in models under the solvers that keep working sets, ``"block-dual"`` among them; ``"auto"`` may
            choose another one, so name the solver.

        Examples
        --------
        >>> import tempfile, maxmargin as mm
        >>> X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
        >>> svm = mm.BinarySVM(solver="block-dual", warm_start=True).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     svm.save(f"{folder}/svm.mm", planes=True)
        ...     again = mm.load(f"{folder}/svm.mm")
        >>> again.fit(X, y).n_iter_ < svm.n_iter_
        True
        """
        check_bool("planes", planes)
        if _STORABLE.get(type(self).__name__) is not type(self):
            known = ", ".join(_STORABLE)
            raise ValueError(f"{type(self).__name__} cannot be saved: model files hold {known}. Pickle it instead.")
        model_file.save(self, path, self._planes_state() if planes else None)

    def _planes_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        if self._warm is None:
            reason = "the last fit left none" if self.warm_start else "they are kept by fit under warm_start=True"
            raise ValueError(f"there are no planes to save: {reason}; pickles and online solvers keep none either.")
        return self._warm.state()

    def _check_parameters(self, abilities: frozenset[str]) -> Solver:
        """Refuse what training would refuse, before any work on the data; return the solver that was asked for."""
        check_training(C=self.C, tol=self.tol, max_iter=self.max_iter, max_time=self.max_time, verbose=self.verbose)
        check_bool("warm_start", self.warm_start)
        effective_n_jobs(self.n_jobs)
        solver = make_solver(Request(self.solver, self.loss, self.rescaling, abilities, self.solver_options))
        solver.check_C(self.C)
        return solver

    @abstractmethod
    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Training:
        """Check parameters and data, and return what is to be trained; sets only what scikit-learn's validation sets."""

    def _fit(self, training: Training) -> Self:
        """Train, and set the fitted attributes."""
        # A hint from the first fit on: what cannot be kept apart by its pickle is trained without keeping anything.
        planes = dataclasses.replace(self._warm or NO_PLANES, is_hint=True) if self.warm_start else None
        keywords = self._keywords(training)
        solution = train(**keywords, C=self.C, planes=planes, keep_planes=bool(self.warm_start))
        self._warm = solution.planes
        self._stream = None
        return self._take(training, solution)

    def path(self, X: Any, y: Any, Cs: Any = 10, **fit_parameters: Any) -> EstimatorPath:
        """Fit for each C of a grid, each from where the one before it ended; this estimator itself is not changed.

        Parameters
        ----------
        X, y
            As for ``fit``.
        Cs : int or array of float, default 10
            The values of C, or how many: that many from C / 1000 to C of this estimator, at equal ratios. They are gone through
            from the smallest up, each from where the one before it ended.
        **fit_parameters
            Other parameters of ``fit``: ``sample_weight`` and the like.

        Returns
        -------
        EstimatorPath
            A fitted estimator for each C, in the order of ``Cs``. After Ctrl-C it has those that were reached, with a warning.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> path = mm.MulticlassSVM().path(X[::2], y[::2], Cs=[0.01, 0.1, 1.0])
        >>> path.score(X[1::2], y[1::2]) > 0.9
        array([False,  True,  True])
        >>> path[-1].predict(X[:1])
        array([0])
        """
        check_training(C=self.C, tol=self.tol, max_iter=self.max_iter, max_time=self.max_time, verbose=self.verbose)
        return EstimatorPath(*along(default_grid(Cs, self.C), lambda grid: self._fitted_at(grid, X, y, fit_parameters)))

    def _fitted_at(self, Cs: list[float], X: Any, y: Any, fit_parameters: Mapping[str, Any]) -> Iterator[Self]:
        """Yield a fitted estimator for each C; fewer after an interrupt."""
        first = clone(self)
        training = first._prepared(X, y, fit_parameters)
        for C, solution in zip(Cs, solutions_at(Cs, **first._keywords(training)), strict=False):
            yield copy.copy(first).set_params(C=C)._take(training, solution)

    def _prepared(self, X: Any, y: Any, fit_parameters: Mapping[str, Any]) -> Training:
        """Check the data and parameters that are to be those of ``fit``."""
        _, _, *known = inspect.signature(self.fit).parameters
        for name in fit_parameters:
            if name not in known:
                raise TypeError(
                    f"fit of {type(self).__name__} has no parameter {name!r}; it has X, y, {', '.join(known)}."
                )
        return self._prepare(X, y, **fit_parameters)

    def _keywords(self, training: Training) -> dict[str, Any]:
        """Return what ``train`` and a path take in common."""
        return {
            "model": training.model,
            "X": training.X,
            "Y": training.Y,
            "solver": self.solver,
            "loss": self.loss,
            "rescaling": self.rescaling,
            "tol": self.tol,
            "max_iter": self.max_iter,
            "max_time": self.max_time,
            "sample_weight": training.sample_weight,
            "n_jobs": self.n_jobs,
            "random_state": seed_of(self.random_state),
            "verbose": int(self.verbose),
            "solver_options": self.solver_options,
        }

    def _take(self, training: Training, solution: Solution) -> Self:
        """Become what was trained."""
        _check_precision(solution.w)
        self.n_iter_ = len(solution.history)
        self.certificate_ = solution.certificate
        self.history_ = solution.history
        training.finish(self, solution)
        return self

    def _learn(self, solver: Solver, problem: Problem) -> FloatArray:
        """Visit each example of a problem once, going on from the last call; return w, and set what is no model's."""
        assert isinstance(solver, OnlineSolver)
        is_first = self._stream is None
        if is_first and hasattr(self, "certificate_"):
            warn_caller(
                "partial_fit begins with weights of 0: what fit or load brought is forgotten. A stream is learnt by partial_fit "
                "from its first examples on."
            )
        if self._stream is not None:
            check_continues(self._stream, solver.name, problem.n_weights)
        rng = generator(seed_of(self.random_state))
        self._stream = solver.learn(Task(problem, float(self.C), rng=rng), self._stream)
        weights = solver.result()
        assert weights is not None
        _check_precision(weights.exact)
        calls = problem.oracle_calls + (0 if is_first else self.certificate_.oracle_calls)
        self.n_iter_ = 1 if is_first else self.n_iter_ + 1
        self.certificate_ = Certificate(
            None, None, calls, problem.is_exact, message="the pass was made", oracle_exact=problem.is_exact
        )
        self.history_ = []
        return weights.exact

    def __getstate__(self) -> dict[str, Any]:
        """Leave the planes out: they may be many times larger than the model."""
        return {key: value for key, value in super().__getstate__().items() if key != "_warm"}

    @abstractmethod
    def _fitted_state(self) -> dict[str, Any]:
        """Return what a model file must hold beyond parameters and certificate: plain values and arrays."""

    @abstractmethod
    def _restore(self, state: dict[str, Any]) -> None:
        """Take back what :meth:`_fitted_state` gave; raise ValueError or KeyError if it does not fit together."""

    @classmethod
    def _from_file(
        cls,
        parameters: dict[str, Any],
        certificate: Certificate,
        n_iter: int,
        state: dict[str, Any],
        planes: dict[str, Any] | None,
    ) -> Self:
        estimator = cls(**parameters)
        estimator.certificate_ = certificate
        estimator.n_iter_ = n_iter
        estimator.history_ = []
        estimator._restore(state)
        estimator._warm = None if planes is None else Planes.from_state(planes)
        return estimator


# The estimators that a model file may name.
_STORABLE: dict[str, type[MaxMarginEstimator]] = {}

_Kind = TypeVar("_Kind", bound=MaxMarginEstimator)


def storable(kind: type[_Kind]) -> type[_Kind]:
    """Enter an estimator into the table of those that :func:`load` knows; a decorator."""
    _STORABLE[kind.__name__] = kind
    return kind


def load(path: str | os.PathLike[str], *, model: Model | None = None) -> MaxMarginEstimator:
    """Read an estimator that was written by its ``save``.

    Parameters
    ----------
    path : str or path
        A model file.
    model : Model, optional
        For a file of a :class:`StructuralSVM` only: an instance of the class it was trained with, which the file cannot
        hold. What ``initialize`` had set is restored from the file.

    Returns
    -------
    BinarySVM, MulticlassSVM, ChainSVM, GraphSVM or StructuralSVM
        The fitted estimator. Its predictions are those of the one that was saved; ``history_`` is empty.

    Raises
    ------
    ValueError
        If the file is not a model file, is damaged, or was written by a later version.
    TypeError
        If ``model`` is a class or anything else that is not an instance of a model.

    Examples
    --------
    >>> import tempfile, maxmargin as mm
    >>> svm = mm.BinarySVM().fit([[0.0], [1.0]], ["no", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     svm.save(f"{folder}/svm.mm")
    ...     again = mm.load(f"{folder}/svm.mm")
    >>> again.predict([[2.0]]).tolist()
    ['yes']
    """
    if model is not None:
        check_model(model)
    return model_file.load(path, _STORABLE, model)


def _check_precision(w: FloatArray) -> None:
    """Refuse a result whose numbers are rounding errors."""
    if not np.all(np.isfinite(w)):
        raise ValueError(
            "C times the squares of the features is too large for double precision: scale the features, or choose a "
            "smaller C, sample_weight or cost."
        )


def is_sparse(X: Any) -> bool:
    """Return whether X is a sparse matrix or array, of any format."""
    # A plain bool: to type checkers, scipy's own guard turns X into a class without data or shape.
    return bool(sp.issparse(X))


def check_known(name: str, given: list[Any], labels: list[Any]) -> None:
    """Refuse a parameter none of whose labels occurs, and warn of labels that do not.

    A few may be missing, as happens when cross-validation leaves a rare label out of a fold; all missing is a mistake.
    """
    known = set(labels)
    missing = list(dict.fromkeys(label for label in given if label not in known))
    if not missing:
        return
    if len(missing) == len(set(given)):
        raise ValueError(
            f"{name} names {given[0]!r}, and none of its labels occurs in y, whose labels are {shortened(labels)}."
        )
    warn_caller(
        f"{name} names {shortened(missing)}, which y does not contain: ignored. The labels of y are "
        f"{shortened(labels)}."
    )


def shortened(labels: list[Any]) -> str:
    """Return labels for a message, the first ones only where there are many."""
    shown = ", ".join(repr(label) for label in labels[:8])
    return shown if len(labels) <= 8 else f"{shown}, … ({len(labels)} in all)"
