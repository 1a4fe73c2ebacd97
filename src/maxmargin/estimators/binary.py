"""Two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import type_of_target

from maxmargin.estimators._base import storable
from maxmargin.estimators._costs import loss_matrix
from maxmargin.estimators._linear import LinearClassifier
from maxmargin.kernels import Kernel, LowRank
from maxmargin.models._linear import LinearModel
from maxmargin.models.binary import Binary


@storable
class BinarySVM(LinearClassifier):
    r"""A support vector machine for two classes, linear or with a kernel, trained to a certified gap.

    .. math::

        \min_{w, b} \; \tfrac12 \lVert w \rVert^2 + \tfrac12 (b / r)^2
        + C \sum_i s_i \max(0, \Delta_i - y_i (w \cdot x_i + b))

    with :math:`y_i = \pm 1`, :math:`\Delta_i` the cost of getting example i wrong (1 by default) and r =
    ``intercept_scaling``. That is the objective of LIBLINEAR and :class:`sklearn.svm.LinearSVC`.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the sum of slacks, as in scikit-learn: more fits the training data more closely.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        What a slack costs.
    rescaling : {"margin", "slack"}, default "margin"
        Whether the cost of a mistake widens the margin it asks for (as in the formula) or multiplies the slack. They
        differ only where ``cost`` is not 1.
    cost : None, "zero-one", number, dict or (2, 2) array, default None
        Δ(true, predicted): one number for every mistake, a weight for each true label (labels left out have 1), or a
        matrix in the order of ``classes_``.
    fit_intercept : bool, default True
        Whether to add a constant column to X. Its weight is regularised like the others, as in LIBLINEAR.
    intercept_scaling : float, default 1.0
        The value in that column; a large one regularises the intercept less.
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
    coef_ : ndarray of shape (1, n_features)
        w.
    intercept_ : ndarray of shape (1,)
        b; 0 without ``fit_intercept``.
    expansion_ : Expansion
        With a kernel: basis points and their coefficients. There is no ``coef_`` then.
    classes_ : ndarray of shape (2,)
        The labels; a positive score means the second.
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

    See Also
    --------
    MulticlassSVM : More than two classes.

    Examples
    --------
    >>> import maxmargin as mm
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.preprocessing import scale
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> svm = mm.BinarySVM(C=0.1).fit(scale(X), y)
    >>> svm.score(scale(X), y) > 0.97
    True
    >>> svm.certificate_.relative_gap <= 1e-3
    True
    """

    def _check_classes(self, y: NDArray[Any], classes: NDArray[Any]) -> None:
        if len(classes) > 2:
            raise ValueError(
                f"Only binary classification is supported. The type of the target is {type_of_target(y)}: y has "
                f"{len(classes)} classes, for which MulticlassSVM is made."
            )

    def _encode(
        self, classes: NDArray[Any], codes: NDArray[np.int32], kernel: Kernel | LowRank | None
    ) -> tuple[LinearModel, NDArray[np.int32]]:
        return Binary(cost=loss_matrix(self.cost, "zero-one", classes), kernel=kernel), 2 * codes - 1

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags
