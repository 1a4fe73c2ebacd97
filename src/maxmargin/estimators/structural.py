"""A model of the user's own."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import check_sample_weight, effective_n_jobs
from maxmargin._result import Solution
from maxmargin.estimators._base import MaxMarginEstimator, Training, storable
from maxmargin.estimators._kernels import KernelEstimator, expansion_from, expansion_state
from maxmargin.estimators._several import diverse_strengths, with_scores
from maxmargin.estimators._streams import online_only
from maxmargin.kernel_model import KernelModel
from maxmargin.kernels import Expansion
from maxmargin.model import Model
from maxmargin.problems.base import FloatArray


@storable
class StructuralSVM(KernelEstimator, MaxMarginEstimator):
    r"""The scikit-learn estimator of a model written in Python.

    .. math::

        \min_w \; \tfrac12 \lVert w \rVert^2
        + C \sum_i s_i \max_y \bigl( \Delta(y_i, y) - w \cdot (\Psi(x_i, y_i) - \Psi(x_i, y)) \bigr)

    with Ψ, Δ and the searches of the model.

    Parameters
    ----------
    model : Model
        What is trained: an instance of a subclass of :class:`maxmargin.Model`. Fitting works on a copy.
    C : float, default 1.0
        Weight of the sum of slacks: more fits the training data more closely.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        What a slack costs. (Δ is the model's own ``loss``.)
    rescaling : {"margin", "slack"}, default "margin"
        Whether Δ widens the margin that an output asks for (as in the formula) or multiplies the slack.
    solver : str, default "auto"
        The algorithm; see :func:`maxmargin.train`.
    tol : float, default 1e-3
        Stop when primal − dual ≤ tol · primal.
    max_iter : int or None, default 10_000
        Most iterations of the solver.
    max_time : float or None, default None
        Most seconds. After either limit the best weights so far are kept, with a ConvergenceWarning.
    n_jobs : int or None, default None
        Processes that search; None is 1, −1 all processors.
    random_state : int, Generator, RandomState or None, default None
        Seed of solvers that visit the examples in random order.
    warm_start : bool, default False
        Whether to keep the planes, so that the next ``fit`` on the same data (with another C, say), or on these and more
        behind them, starts from them.
        A model or data without a pickle, by which they are known again, are trained afresh each time.
    verbose : int, default 0
        1: a line per exact pass; 2: a line per iteration.
    solver_options : dict or None, default None
        Options of the solver.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        w; with a kernel the weights of ``joint_feature``, which no kernel scores.
    expansion_ : Expansion or None
        What the points of a :class:`maxmargin.KernelModel` are scored with, a sum over basis points.
    model_ : Model
        The copy of ``model`` that was initialised on the training data.
    certificate_ : Certificate
        Primal, dual and gap at the weights.
    history_ : list of dict
        One record per iteration.
    n_iter_ : int
        How many iterations were made.

    Examples
    --------
    >>> import maxmargin as mm
    >>> class Nearest(mm.Model):
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
    >>> svm = mm.StructuralSVM(Nearest(), C=10.0).fit([0.2, 3.1, 1.8], [0, 3, 2])
    >>> svm.predict([0.9, 3.7])
    [1, 4]
    >>> svm.score([0.9, 3.7], [1, 2])
    -1.0
    """

    coef_: FloatArray
    model_: Model
    expansion_: Expansion | None

    def __init__(
        self,
        model: Model,
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
        self.model = model

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on inputs and their true outputs.

        Parameters
        ----------
        X, y : sequences of one length
            Inputs and outputs, as the model takes them.
        sample_weight : array of shape (n_examples,), optional
            s_i ≥ 0: how many times each example counts.

        Returns
        -------
        self
        """
        return self._fit(self._prepare(X, y, sample_weight))

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Training:
        check_model(self.model)
        self._check_parameters(self.model.abilities)
        model = copy.deepcopy(self.model)

        def finish(fitted: StructuralSVM, solution: Solution) -> None:
            fitted.model_, fitted.expansion_ = model, solution.expansion and solution.expansion.pruned()
            fitted.coef_ = solution.w if solution.expansion is None else solution.expansion.table

        return Training(model, X, y, sample_weight, finish)

    @online_only
    def partial_fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from one pass over some more examples; there is such a method with solver 'perceptron', 'mira' or 'sgd' only.

        They are visited in their order. The first call, also after ``fit``, begins with weights of 0, and the model's
        ``initialize`` sees the examples of that call only: what it derives from them, ``n_features`` first of all, must do for
        all later ones. ``certificate_`` has no primal, for which all examples would have to be known, ``history_`` is empty and
        ``n_iter_`` counts the calls.

        Parameters
        ----------
        X, y : sequences of one length
            Inputs and outputs, as the model takes them.
        sample_weight : array of shape (n_examples,), optional
            s_i ≥ 0: what an example's updates are multiplied by.

        Returns
        -------
        self
        """
        check_model(self.model)
        if isinstance(self.model, KernelModel):
            raise ValueError("partial_fit has no kernel: the basis of a KernelModel is chosen from all examples.")
        solver = self._check_parameters(self.model.abilities)
        is_first = self._stream is None
        model = copy.deepcopy(self.model) if is_first else self.model_
        problem = model.bind(X, y, sample_weight=sample_weight) if is_first else model.bind_more(X, y, sample_weight)
        self.coef_, self.expansion_ = self._learn(solver, problem), None
        self.model_ = model
        return self

    def predict(self, X: Any) -> list[Any]:
        """Return the best output of each input, by the model's ``argmax``.

        Parameters
        ----------
        X : sequence of inputs

        Returns
        -------
        list of outputs
        """
        weights = self._weights()
        return self.model_.predict(X, weights, effective_n_jobs(self.n_jobs))

    def predict_topk(self, X: Any, k: int) -> list[list[tuple[Any, float]]]:
        """Return the k best outputs of each input with their scores, best first, by the model's ``m_best``.

        Parameters
        ----------
        X : sequence of inputs
        k : int
            How many; an input with fewer possible outputs has them all.

        Returns
        -------
        list of lists of (output, score)
        """
        weights = self._weights()
        return with_scores(self.model_.k_best(X, weights, k, effective_n_jobs(self.n_jobs)), _same)

    def predict_diverse(self, X: Any, m: int, strength: float = 1.0) -> list[list[tuple[Any, float]]]:
        """Return m good outputs of each input that differ from each other, with their scores.

        The first is the best one. Each of the others is the best for its score plus ``strength`` times the losses Δ between those
        before it and itself (Batra et al. 2012): a large strength buys difference with score. Outputs may come again where it is
        small. They are searched for by the model's ``diverse_argmax``, which enumerates where the model has ``outputs``; without
        either, two outputs are found by ``loss_augmented_argmax``.

        Parameters
        ----------
        X : sequence of inputs
        m : int
            How many.
        strength : float, default 1.0
            What a loss of 1 to an output found before is worth, in units of score.

        Returns
        -------
        list of lists of (output, score)

        Examples
        --------
        >>> import maxmargin as mm
        >>> class Nearest(mm.Model):
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
        >>> svm = mm.StructuralSVM(Nearest(), C=10.0).fit([0.2, 3.1, 1.8], [0, 3, 2])
        >>> [output for output, score in svm.predict_diverse([0.9], 3, strength=10.0)[0]]
        [1, 4, 0]
        """
        strengths = diverse_strengths(m, strength)
        weights = self._weights()
        return with_scores(self.model_.diverse(X, weights, strengths, effective_n_jobs(self.n_jobs)), _same)

    def _weights(self) -> Any:
        check_is_fitted(self)
        return self.coef_ if self.expansion_ is None else self.expansion_

    def _replace_expansion(self, expansion: Expansion) -> None:
        self.expansion_ = expansion

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the mean loss of the predictions, negated: higher is better and 0 is perfect.

        Parameters
        ----------
        X, y : sequences of one length
            Inputs and true outputs.
        sample_weight : array of shape (n_examples,), optional
            How many times each example counts.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        if len(X) != len(y):
            raise ValueError(f"X has {len(X)} inputs but y has {len(y)} outputs.")
        if len(X) == 0:
            raise ValueError("X and y are empty: a score needs at least one example.")
        losses = [float(self.model_.loss(truth, best)) for truth, best in zip(y, self.predict(X), strict=True)]
        # A difference rather than a sign: no loss at all is 0.0, not -0.0.
        return 0.0 - float(np.average(losses, weights=check_sample_weight(sample_weight, len(losses))))

    def _fitted_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        state = {"model_class": type(self.model_).__qualname__, "coef": self.coef_, "model": vars(self.model_)}
        if self.expansion_ is not None:
            # The kernel is that of the expansion.
            attributes = {name: value for name, value in vars(self.model_).items() if name != "kernel"}
            state.update(model=attributes, expansion=expansion_state(self.expansion_))
        return state

    def _restore(self, state: dict[str, Any]) -> None:
        coef = state["coef"]
        if coef.ndim != 1 or coef.dtype != np.float64:
            raise ValueError(f"its weights have shape {coef.shape} and type {coef.dtype}, expected one float64 vector")
        self.model_ = copy.deepcopy(self.model)
        vars(self.model_).update(state["model"])
        if getattr(self.model_, "n_features", None) != len(coef):
            raise ValueError(
                f"it has {len(coef)} weights, but the model has {getattr(self.model_, 'n_features', 'no')} features"
            )
        self.coef_, self.expansion_ = coef, None
        if isinstance(self.model_, KernelModel):
            stored = state["expansion"]
            n_features = int(stored["shape"][1] if "shape" in stored else np.shape(stored["basis"])[-1])
            self.expansion_ = expansion_from(stored, self.model_.n_columns, n_features)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


def _same(output: Any) -> Any:
    return output


def check_model(model: Any) -> None:
    """Refuse what is not a user's model, saying what to use instead."""
    if isinstance(model, Model):
        return
    if isinstance(model, type) and issubclass(model, Model):
        raise TypeError(
            f"model is the class {model.__name__}; give an instance of it: StructuralSVM({model.__name__}())."
        )
    raise TypeError(
        f"model is of type {type(model).__name__}; expected an instance of a subclass of maxmargin.Model. The models "
        "of maxmargin.models have estimators of their own: BinarySVM, MulticlassSVM, ChainSVM and GraphSVM."
    )
