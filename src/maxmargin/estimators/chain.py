"""Label sequences."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._parameters import check_sample_weight
from maxmargin._result import Solution
from maxmargin.estimators._base import Training, check_known, storable
from maxmargin.estimators._costs import loss_of_places
from maxmargin.estimators._fitted_chain import FittedChain
from maxmargin.estimators._kernels import (
    chosen_kernel,
    refuse_stream,
)
from maxmargin.estimators._sequence_data import (
    check_legal,
    checked_token_weight,
    encode_known_labels,
    encode_labels,
    flatten_labels,
    read_known_sequences,
    read_sequences,
    stream_classes,
)
from maxmargin.estimators._streams import online_only
from maxmargin.kernels import Kernel, LowRank
from maxmargin.models import Chain, Sequences


@storable
class ChainSVM(FittedChain):
    r"""A first-order chain for labelling the tokens of sequences: a hidden Markov SVM.

    The score of the labels y for the sequence x is a sum over tokens and over neighbours,

    .. math::

        f(x, y) = \sum_t w_{y_t} \cdot x_t + \sum_t T_{y_t y_{t + 1}} \; [ + a_{y_1} + b_{y_L} ],
        \qquad
        \min \; \tfrac12 \lVert (w, T, a, b) \rVert^2
        + C \sum_i s_i \max_y \bigl( \Delta(y_i, y) - f(x_i, y_i) + f(x_i, y) \bigr)

    where :math:`\Delta` counts the wrong tokens, weighted by ``cost`` and ``token_weight``.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the sum of slacks over sequences (SVM-hmm's ``-c`` is C times the number of sequences).
    loss : {"hinge", "squared_hinge"}, default "hinge"
        What a sequence's slack costs.
    rescaling : {"margin", "slack"}, default "margin"
        Whether the loss of an output widens the margin it asks for (as in the formula) or multiplies the slack.
    cost : None, "hamming", "balanced", number, dict or (n_labels, n_labels) array, default None
        The loss of one wrong token: one number for all, a weight for each true label (labels left out have 1), or
        Δ(true, predicted) in the order of ``classes_``. "balanced" gives each label the weight n_tokens / (n_labels · its
        tokens), tokens counted by their ``token_weight``, so that rare ones count as much as frequent ones; labels whose tokens
        all weigh 0 are not counted. A sequence's loss is the sum over its tokens.
    ends : bool, default False
        Whether first and last labels have weights of their own.
    forbidden : iterable of (from, to), default None
        Pairs of labels that never follow each other, in training or prediction. Labels that ``y`` does not contain are
        ignored, with a warning.
    kernel : {"linear", "poly", "rbf", "sigmoid"}, callable or Kernel, default "linear"
        What the scores of tokens are made of; see :class:`maxmargin.Kernel`, one of which has γ, degree, coef0 and cache of its
        own. Transitions have plain weights.
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
    coef_ : ndarray of shape (n_labels, n_features)
        w, a view: changing it changes the predictions, as for the next three.
    transition_ : ndarray of shape (n_labels, n_labels)
        T, from × to; 0 for pairs in ``forbidden``, which searches leave out by themselves.
    start_, stop_ : ndarray of shape (n_labels,)
        a and b; 0 without ``ends``.
    expansion_ : Expansion
        With a kernel: basis tokens and their coefficients. There is no ``coef_`` then.
    classes_ : ndarray of shape (n_labels,)
        The labels, sorted where they can be.
    feature_names_ : list of str
        The names of the features, where X had dicts or strings.
    n_features_in_ : int
        How many features a token has.
    certificate_ : Certificate
        Primal, dual and gap at the weights.
    history_ : list of dict
        One record per iteration.
    n_iter_ : int
        How many iterations were made.

    Notes
    -----
    X is a list of sequences, each of them

    - a (length × features) matrix, dense or CSR (or all of them as one :class:`maxmargin.models.Sequences`),
    - a list of dicts ``{name: value}``, where a string value makes the indicator ``name=value``, or
    - a list of lists of feature strings, each an indicator.

    y is a list of label sequences; labels are any hashable values. Features not seen in training are ignored.

    References
    ----------
    Y. Altun, I. Tsochantaridis and T. Hofmann, "Hidden Markov support vector machines", ICML 2003.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=a"], ["w=cat"]]]
    >>> y = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]
    >>> tagger = mm.ChainSVM(C=10.0).fit(X, y)
    >>> tagger.predict([[["w=the"], ["w=cat"], ["w=barks"]]])
    [['DET', 'NOUN', 'VERB']]
    """

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        rescaling: str = "margin",
        cost: Any = None,
        ends: bool = False,
        forbidden: Iterable[tuple[Hashable, Hashable]] | None = None,
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
        self.ends = ends
        self.forbidden = forbidden
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.kernel_approximation = kernel_approximation
        self.n_components = n_components
        self.basis = basis
        self.kernel_cache = kernel_cache

    def fit(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, token_weight: Sequence[ArrayLike] | None = None
    ) -> Self:
        """Train on sequences and their labels.

        Parameters
        ----------
        X : list of sequences
            See the notes of the class.
        y : list of label sequences
            One label for each token.
        sample_weight : array of shape (n_sequences,), optional
            s_i ≥ 0: how many times each sequence counts.
        token_weight : list of arrays, optional
            How much each token adds to the loss where it is wrong, multiplied with ``cost``.

        Returns
        -------
        self
        """
        return self._fit(self._prepare(X, y, sample_weight, token_weight))

    def _prepare(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, token_weight: Sequence[ArrayLike] | None = None
    ) -> Training:
        kernel = chosen_kernel(self)
        if getattr(self.kernel, "name", self.kernel) == "precomputed":
            raise ValueError(
                "ChainSVM takes no kernel='precomputed': a matrix does not tell sequences apart. Give the kernel as a function."
            )
        self._check_parameters(Chain.abilities_with(kernel))
        data, vocabulary = read_sequences(X)
        classes, codes = encode_labels(flatten_labels(y, data), data)
        model = self._checked_model(classes, codes, data, token_weight, kernel, is_whole=True)
        weights = check_sample_weight(sample_weight, len(data))
        n_features = data.rows.shape[1]

        def finish(fitted: ChainSVM, solution: Solution) -> None:
            fitted._set_fitted(classes, model.forbidden, vocabulary, n_features, model.ends)
            fitted._w = solution.w if solution.expansion is None else solution.expansion.pruned()

        return Training(model, data, np.split(codes, data.offsets[1:-1]), weights, finish)

    @online_only
    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        token_weight: Sequence[ArrayLike] | None = None,
    ) -> Self:
        """Learn from one pass over some more sequences; there is such a method with solver 'perceptron', 'mira' or 'sgd' only.

        The sequences are visited in their order. The first call, also after ``fit``, begins with weights of 0 and fixes the
        features: where they have names, those that it does not contain are ignored in later calls. ``certificate_`` has no
        primal, for which all sequences would have to be known, ``history_`` is empty and ``n_iter_`` counts the calls.

        Parameters
        ----------
        X : list of sequences
            See the notes of the class.
        y : list of label sequences
            One label for each token.
        classes : collection of labels, optional
            All labels that any call will bring; needed in the first call, unless ``fit`` has seen them.
        sample_weight : array of shape (n_sequences,), optional
            s_i ≥ 0: what a sequence's updates are multiplied by.
        token_weight : list of arrays, optional
            How much each token adds to the loss where it is wrong, multiplied with ``cost``.

        Returns
        -------
        self
        """
        refuse_stream(chosen_kernel(self))
        solver = self._check_parameters(Chain.abilities)
        is_first = self._stream is None
        known = stream_classes(classes, getattr(self, "classes_", None), is_first=is_first)
        if is_first:
            data, vocabulary = read_sequences(X)
        else:
            vocabulary = self._vocabulary
            data = read_known_sequences(X, self.n_features_in_, vocabulary)
        codes = encode_known_labels(flatten_labels(y, data), known, data)
        model = self._checked_model(known, codes, data, token_weight, None, is_whole=False)
        weights = check_sample_weight(sample_weight, len(data))
        w = self._learn(solver, model.bind(data, np.split(codes, data.offsets[1:-1]), sample_weight=weights))
        self._set_fitted(known, model.forbidden, vocabulary, data.rows.shape[1], bool(self.ends))
        self._w = w
        return self

    def _checked_model(
        self,
        classes: NDArray[Any],
        codes: NDArray[np.int32],
        data: Sequences,
        token_weight: Sequence[ArrayLike] | None,
        kernel: Kernel | LowRank | None,
        *,
        is_whole: bool,
    ) -> Chain:
        """Return the model for training, after checking that it allows the true labels; whether these are all there are."""
        forbidden = self._forbidden_codes(classes)
        check_legal(codes, data, forbidden, classes)
        weights = checked_token_weight(token_weight, data)
        flat = None if weights is None else np.concatenate(weights)
        return Chain(
            len(classes),
            ends=self.ends,
            cost=loss_of_places(self.cost, classes, codes if is_whole else None, flat),
            token_weight=weights,
            forbidden=forbidden,
            kernel=kernel,
        )

    def _forbidden_codes(self, classes: NDArray[Any]) -> list[tuple[int, int]] | None:
        if self.forbidden is None:
            return None
        is_collection = isinstance(self.forbidden, Iterable) and not isinstance(self.forbidden, (str, bytes))
        pairs = list(self.forbidden) if is_collection else []
        if not is_collection or any(not isinstance(p, (tuple, list)) or len(p) != 2 for p in pairs):
            raise ValueError(f"forbidden must hold pairs (from, to) of labels, found {self.forbidden!r}.")
        if any(not isinstance(label, Hashable) for pair in pairs for label in pair):
            raise ValueError(f"forbidden holds a label without a hash: {self.forbidden!r}.")
        check_known("forbidden", [label for pair in pairs for label in pair], classes.tolist())
        numbers = {label: number for number, label in enumerate(classes.tolist())}
        return [(numbers[before], numbers[after]) for before, after in pairs if before in numbers and after in numbers]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.sparse = True
        tags.input_tags.string = True
        tags.input_tags.dict = True
        tags.target_tags.required = True
        return tags
