"""C chosen by held-out data, along a path."""

from __future__ import annotations

import copy
from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone, is_classifier
from sklearn.metrics import check_scoring
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import _safe_split, available_if
from sklearn.utils.validation import _check_method_params, check_is_fitted

from maxmargin._parameters import check_bool, is_integer, is_number
from maxmargin._path import default_grid
from maxmargin._warnings import warn_caller
from maxmargin.estimators._base import MaxMarginEstimator
from maxmargin.problems.base import FloatArray
from maxmargin.solvers.driver import INTERRUPTED


def _has(method: str) -> Any:
    """Return whether the estimator has a method, as scikit-learn's searches ask."""

    def check(self: PathCV) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), method)
        return True

    return available_if(check)


class PathCV(MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]
    """Choose C by held-out data: what ``GridSearchCV`` over C finds, by one path for each fold.

    On each fold the estimator's path is trained from the smallest C up, each point from where the one before it ended, and scored
    on the part held out. The C of the best mean score, the smallest of several, is then fitted on all data.

    Parameters
    ----------
    estimator : estimator of this library
        What is trained, with all parameters but C. In a pipeline, ``PathCV`` takes the estimator's place:
        ``make_pipeline(StandardScaler(), PathCV(BinarySVM()))``.
    Cs : int or array of float, default 10
        The values of C, or how many: that many from C / 1000 to C of the estimator, at equal ratios.
    cv : int, float, splitter, iterable or None, default None
        Into how many folds the data are split (None is 5), as in scikit-learn, by classes for classifiers; or, below 1,
        which share of the data is held out once.
    scoring : str, callable or None, default None
        What is best, as in scikit-learn; None is the estimator's own ``score``. Scorers that go by name compare arrays of labels:
        for sequences and graphs give a function of (estimator, X, y).
    refit : bool, default True
        Whether to fit the best C on all data.

    Attributes
    ----------
    C_ : float
        The best C. Where it is the first or the last of ``Cs_``, try values beyond it.
    Cs_ : ndarray of shape (n_points,)
        The values of C that were tried, ascending.
    scores_ : ndarray of shape (n_folds, n_points)
        The scores on what was held out.
    best_score_ : float
        The mean score of the best C.
    best_estimator_ : estimator
        Fitted on all data with the best C.
    classes_, n_features_in_, feature_names_in_
        Those of ``best_estimator_``, where it has them.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> search = mm.PathCV(mm.MulticlassSVM(), Cs=[0.001, 0.01, 0.1, 1.0], cv=3).fit(X, y)
    >>> search.scores_.shape
    (3, 4)
    >>> search.C_
    1.0
    >>> search.best_score_ > 0.95
    True
    >>> search.predict(X[:1])
    array([0])
    """

    C_: float
    Cs_: FloatArray
    scores_: FloatArray
    best_score_: float
    best_estimator_: MaxMarginEstimator

    def __init__(
        self,
        estimator: MaxMarginEstimator,
        Cs: Any = 10,
        *,
        cv: Any = None,
        scoring: Any = None,
        refit: bool = True,
    ) -> None:
        self.estimator = estimator
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit

    def fit(self, X: Any, y: Any = None, *, groups: Any = None, **fit_parameters: Any) -> Self:
        """Try every C on every fold, and fit the best on all data.

        Parameters
        ----------
        X, y
            As for ``fit`` of the estimator.
        groups : array-like, optional
            The group of each example, for a ``cv`` that keeps groups together, such as ``GroupKFold``.
        **fit_parameters
            Other parameters of the estimator's ``fit``; those with one entry for each example are split like them. Weights count
            in training, not in the scores.

        Returns
        -------
        self
        """
        self._check_parameters()
        grid = np.sort(default_grid(self.Cs, self.estimator.C))
        scorer = check_scoring(self.estimator, self.scoring)
        # Mistakes are named by their places in all data, not in those of a fold.
        clone(self.estimator)._prepared(X, y, fit_parameters)
        X, y = indexable(X, y)
        parameters = _check_method_params(X, fit_parameters)
        scores = [
            self._scores(grid, X, y, parameters, train, held_out, scorer)
            for train, held_out in self._splits(y).split(X, y, groups)
        ]
        self.Cs_, self.scores_ = grid, np.array(scores)
        means = self.scores_.mean(axis=0)
        if not np.any(np.isfinite(means)):
            raise ValueError("scoring gave no value that is finite for any C: there is nothing to choose by.")
        if not np.all(np.isfinite(means)):
            unknown = ", ".join(f"{C:g}" for C in grid[~np.isfinite(means)])
            warn_caller(f"scoring gave values that are not finite for C = {unknown}, which are not chosen.")
        means = np.where(np.isfinite(means), means, -np.inf)
        best = int(np.argmax(means))
        self.C_, self.best_score_ = float(grid[best]), float(means[best])
        for left_over in ("best_estimator_", "feature_names_in_"):
            self.__dict__.pop(left_over, None)
        if self.refit:
            self.best_estimator_ = clone(self.estimator).set_params(C=self.C_).fit(X, y, **fit_parameters)
            if hasattr(self.best_estimator_, "feature_names_in_"):
                self.feature_names_in_ = self.best_estimator_.feature_names_in_
        return self

    def _scores(
        self, grid: FloatArray, X: Any, y: Any, parameters: dict[str, Any], train: Any, held_out: Any, scorer: Any
    ) -> list[float]:
        X_train, y_train = _safe_split(self.estimator, X, y, train)
        X_held_out, y_held_out = _safe_split(self.estimator, X, y, held_out, train)
        own = _check_method_params(X, parameters, indices=train)
        scores: list[float] = []
        # Each point is scored as it comes: ten models need not be in memory together.
        for fitted in self.estimator._fitted_at(grid.tolist(), X_train, y_train, own):
            if fitted.certificate_.message == INTERRUPTED:
                raise KeyboardInterrupt(
                    f"the search was interrupted: {len(scores)} of {len(grid)} values of C were tried on this fold."
                )
            scores.append(self._score_of(fitted, X_held_out, y_held_out, scorer))
        return scores

    def _score_of(self, fitted: MaxMarginEstimator, X: Any, y: Any, scorer: Any) -> float:
        try:
            found = scorer(fitted, X, y)
        except ValueError as error:
            if not isinstance(self.scoring, str) or is_classifier(self.estimator):
                raise
            raise ValueError(
                f"scoring='{self.scoring}' gave an error: {error} Scorers that go by name compare arrays of labels; where "
                "outputs are sequences or graphs, give a function of (estimator, X, y), or None for the estimator's own score."
            ) from error
        value = found.item() if isinstance(found, (np.ndarray, np.generic)) and found.size == 1 else found
        if not isinstance(value, Real):
            raise TypeError(f"scoring must return a number, found {found!r}.")
        return float(value)

    def _check_parameters(self) -> None:
        if isinstance(self.estimator, type):
            raise TypeError(
                f"estimator is the class {self.estimator.__name__}; give an instance of it: {self.estimator.__name__}(…)."
            )
        if not isinstance(self.estimator, MaxMarginEstimator):
            raise TypeError(
                f"estimator is of type {type(self.estimator).__name__}; expected one of BinarySVM, MulticlassSVM, ChainSVM, "
                "GraphSVM and StructuralSVM. In a pipeline, PathCV takes their place: make_pipeline(…, PathCV(BinarySVM()))."
            )
        check_bool("refit", self.refit)
        if not is_number(self.estimator.C) or self.estimator.C <= 0:
            raise ValueError(f"C must be a positive number, found {self.estimator.C!r}.")

    def _splits(self, y: Any) -> Any:
        if not isinstance(self.cv, (int, float, np.number)) or is_integer(self.cv, 2):
            return check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        if not 0.0 < self.cv < 1.0:
            raise ValueError(f"cv must be a number of folds ≥ 2 or a share below 1 to hold out, found {self.cv!r}.")
        kind = StratifiedShuffleSplit if is_classifier(self.estimator) else ShuffleSplit
        return kind(n_splits=1, test_size=float(self.cv), random_state=0)

    @_has("predict")  # type: ignore[untyped-decorator]
    def predict(self, X: Any) -> Any:
        """Return the predictions of the best estimator."""
        return self._best().predict(X)

    @_has("decision_function")  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Any:
        """Return the scores of the best estimator."""
        return self._best().decision_function(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the score of the best estimator, by ``scoring`` where that was given."""
        best = self._best()
        return float(check_scoring(self.estimator, self.scoring)(best, X, y))

    def _best(self) -> Any:
        check_is_fitted(self)
        if not self.refit:
            raise AttributeError("refit=False chooses C_ only: fit an estimator with it, or use refit=True.")
        return self.best_estimator_

    @property
    def classes_(self) -> Any:
        """The labels."""
        return self._best_attribute("classes_")

    @property
    def n_features_in_(self) -> int:
        """How many features an example has."""
        return int(self._best_attribute("n_features_in_"))

    def _best_attribute(self, name: str) -> Any:
        if "best_estimator_" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}': call fit first.")
        return getattr(self.best_estimator_, name)

    def __sklearn_tags__(self) -> Any:
        tags, own = super().__sklearn_tags__(), get_tags(self.estimator)
        tags.estimator_type = own.estimator_type
        tags.classifier_tags = copy.deepcopy(own.classifier_tags)
        tags.input_tags = copy.deepcopy(own.input_tags)
        tags.target_tags = copy.deepcopy(own.target_tags)
        tags.no_validation = own.no_validation
        return tags
