"""One of k classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._parameters import check_how_many, effective_n_jobs
from maxmargin.estimators._base import storable
from maxmargin.estimators._costs import loss_matrix
from maxmargin.estimators._linear import LinearClassifier
from maxmargin.estimators._several import diverse_strengths, with_scores
from maxmargin.kernels import Kernel, LowRank
from maxmargin.models._linear import LinearModel
from maxmargin.models._several import Outputs
from maxmargin.models.multiclass import Multiclass
from maxmargin.problems.base import FloatArray
from maxmargin.problems.kernel import row_numbers


@storable
class MulticlassSVM(LinearClassifier):
    r"""A support vector machine for any number of classes, linear or with a kernel, trained jointly (Crammer and Singer).

    .. math::

        \min_w \; \tfrac12 \sum_c \lVert w_c \rVert^2
        + C \sum_i s_i \max_c \bigl( \Delta(y_i, c) - (w_{y_i} - w_c) \cdot x_i \bigr)

    with :math:`\Delta(c, c) = 0` and 1 elsewhere unless ``cost`` says otherwise. With two classes this is the problem
    of :class:`BinarySVM` at twice the C.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the sum of slacks, as in scikit-learn: more fits the training data more closely.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        What a slack costs.
    rescaling : {"margin", "slack"}, default "margin"
        Whether the cost of a mistake widens the margin it asks for (as in the formula) or multiplies the slack. They
        differ only where ``cost`` is not 1.
    cost : None, "zero-one", number, dict or (n_classes, n_classes) array, default None
        Δ(true, predicted): one number for every mistake, a weight for each true label (labels left out have 1), or a
        matrix in the order of ``classes_``.
    fit_intercept : bool, default True
        Whether to add a constant column to X. Its weights are regularised like the others, as in LIBLINEAR.
    intercept_scaling : float, default 1.0
        The value in that column; a large one regularises the intercepts less.
    class_weight : dict, "balanced" or None, default None
        Multiplies the sample weights of each class. "balanced" gives all classes the same total weight.
    kernel : {"linear", "poly", "rbf", "sigmoid", "precomputed"}, callable or Kernel, default "linear"
        What scores are made of; see :class:`maxmargin.Kernel`, one of which has γ, degree, coef0 and cache of its own. With
        "precomputed", X holds the kernel of its rows with those of training.
    gamma : {"scale", "auto"} or float, default "scale"
        γ of "rbf", "poly" and "sigmoid".
    degree : int, default 3
        Of "poly".
    coef0 : float, default 0.0
        Of "poly" and "sigmoid".
    kernel_approximation : None or "low-rank", default None
        None is the kernel itself; "low-rank" projects it on the span of ``n_components`` training rows, and every solver runs.
    n_components : int, default 100
        How many rows that are.
    basis : {"random", "k-means", "pivoted"}, default "random"
        How they are chosen.
    kernel_cache : float, default 1000.0
        MB for columns of the kernel matrix that training may need again.
    solver : str, default "auto"
        The algorithm; see :func:`maxmargin.train`.
    tol : float, default 1e-3
        Stop when primal − dual ≤ tol · primal.
    max_iter : int or None, default 10_000
        Most iterations of the solver.
    max_time : float or None, default None
        Most seconds. After either limit the best weights so far are kept, with a ConvergenceWarning.
    n_jobs : int or None, default None
        Threads; None is 1, −1 all processors.
    random_state : int, Generator, RandomState or None, default None
        Seed of solvers that visit the examples in random order.
    warm_start : bool, default False
        Whether to keep the planes, so that the next ``fit`` on the same data (with another C, say), or on these and more
        behind them, starts from them.
    verbose : int, default 0
        1: a line per exact pass; 2: a line per iteration.
    solver_options : dict or None, default None
        Options of the solver.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features), or (1, n_features) for two classes
        w; for two classes the weights of the second less those of the first.
    intercept_ : ndarray of shape (n_classes,), or (1,) for two classes
        0 without ``fit_intercept``.
    expansion_ : Expansion
        With a kernel: basis points and their coefficients. There is no ``coef_`` then.
    classes_ : ndarray of shape (n_classes,)
        The labels.
    certificate_ : Certificate
        Primal, dual and gap at the weights.
    history_ : list of dict
        One record per iteration.
    n_iter_ : int
        How many iterations were made.
    n_features_in_ : int
        The number of columns of X.
    feature_names_in_ : ndarray of str
        Their names, where X had some.

    References
    ----------
    K. Crammer and Y. Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", Journal of
    Machine Learning Research 2, 2001, section 3.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> svm = mm.MulticlassSVM(C=10.0).fit(X, y)
    >>> svm.score(X, y) > 0.95
    True
    >>> svm.decision_function(X[:2]).shape
    (2, 3)
    """

    def predict_topk(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the k best classes of each row with their scores, best first.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        k : int
            How many; where there are fewer classes, all of them.

        Returns
        -------
        list of lists of (class, score)
            Scores are those of :meth:`decision_function`; of two classes each has half of it, the first with the other sign.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = mm.MulticlassSVM(C=10.0).fit(X, y)
        >>> [label for label, score in svm.predict_topk(X[:1], 2)[0]]
        [0, 1]
        """
        check_how_many("k", k)
        numbers, scores = self._row_scores(X)
        model = Multiclass(len(self.classes_))
        return self._with_scores(model.k_best(numbers, scores, k, effective_n_jobs(self.n_jobs)))

    def predict_diverse(self, X: Any, m: int, strength: float = 1.0) -> list[list[tuple[Any, float]]]:
        """Return m classes of each row, with their scores, of which each is good and rather another one than those before it.

        The first is the best one. For each of the others, a class scores less by ``strength`` for every time that it came before
        (Batra et al. 2012): with a large strength these are the m best, with a small one classes may come again.

        Parameters
        ----------
        X : array or sparse matrix of shape (n_samples, n_features)
        m : int
            How many.
        strength : float, default 1.0
            What a class that was used before costs, in units of score.

        Returns
        -------
        list of lists of (class, score)
            Scores as in :meth:`predict_topk`.

        Examples
        --------
        >>> import maxmargin as mm
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> svm = mm.MulticlassSVM(C=10.0).fit(X, y)
        >>> [label for label, score in svm.predict_diverse(X[:1], 3, strength=100.0)[0]]
        [0, 1, 2]
        """
        strengths = diverse_strengths(m, strength)
        numbers, scores = self._row_scores(X)
        model = Multiclass(len(self.classes_))
        return self._with_scores(model.diverse(numbers, scores, strengths, effective_n_jobs(self.n_jobs)))

    def _row_scores(self, X: Any) -> tuple[Any, FloatArray]:
        """Return features that name the rows, and the scores of the classes as the weights of these."""
        scores = self.decision_function(X)
        if scores.ndim == 1:
            scores = np.column_stack([-0.5 * scores, 0.5 * scores])
        model = Multiclass(len(self.classes_))
        model.n_features = len(scores)
        return row_numbers(len(scores)), model.join(coef=scores.T)

    def _with_scores(self, found: Outputs) -> list[list[tuple[Any, float]]]:
        labels = self.classes_.tolist()
        return with_scores(found, lambda codes: labels[codes[0]])

    def _check_classes(self, y: NDArray[Any], classes: NDArray[Any]) -> None:
        """Any number of classes will do."""

    def _encode(
        self, classes: NDArray[Any], codes: NDArray[np.int32], kernel: Kernel | LowRank | None
    ) -> tuple[LinearModel, NDArray[np.int32]]:
        return Multiclass(len(classes), cost=loss_matrix(self.cost, "zero-one", classes), kernel=kernel), codes
