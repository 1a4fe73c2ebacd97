"""Labels of graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Literal, Self, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import check_bool, effective_n_jobs
from maxmargin.estimators._base import MaxMarginEstimator, Training, loss_table, storable
from maxmargin.estimators._sequence_data import encode_known_labels, encode_labels, label_set
from maxmargin.estimators._several import diverse_strengths, with_scores
from maxmargin.estimators._streams import check_same_classes, online_only
from maxmargin.graphs import Graphs
from maxmargin.models._linear import check_sample_weight
from maxmargin.models._several import Outputs
from maxmargin.models.pairwise import Pairwise
from maxmargin.problem import FloatArray
from maxmargin.result import Solution

_NONNEGATIVE = {None: {}, "edges": {"edge_coef": True}, "all": {"coef": True, "edge_coef": True}}


@storable
class GraphSVM(MaxMarginEstimator):
    r"""A pairwise model for labelling the nodes of graphs: image regions, residues, people in a network.

    The score of the labels y is a sum over nodes and over edges,

    .. math::

        f(x, y) = \sum_i w_{y_i} \cdot x_i + \sum_{e = (a, b)} \sigma(y_a, y_b) \; v_{c(y_a, y_b)} \cdot z_e,
        \qquad
        \min \; \tfrac12 \lVert (w, v) \rVert^2
        + C \sum_i s_i \max_y \bigl( \Delta(y_i, y) - f(x_i, y_i) + f(x_i, y) \bigr)

    with features x of nodes and z of edges; :math:`\Delta` sums the weights of the wrong nodes, times ``cost``.

    Parameters
    ----------
    C : float, default 1.0
        Weight of the sum of slacks over graphs.
    loss : {"hinge", "squared_hinge"}, default "hinge"
        What a graph's slack costs.
    rescaling : {"margin", "slack"}, default "margin"
        Whether the loss of an output widens the margin it asks for (as in the formula) or multiplies the slack. The latter goes
        through all labellings in training: every graph may have at most 2²⁵, which is 24 nodes of two labels, and
        ``inference`` is "auto" or "enumeration".
    cost : None, "hamming", number, dict or (n_labels, n_labels) array, default None
        The loss of one wrong node: one number for all, a weight for each true label (labels left out have 1), or
        Δ(true, predicted) in the order of ``classes_``.
    edges : {"potts", "associative", "symmetric", "full"}, default "potts"
        Which pairs of labels share weights v: those that agree have one, and others none; a weight for each pair, with σ = −1
        where they differ; a weight for each pair in any order; a weight for each pair. With candidates there is one.
    nonnegative : None, "edges", "all" or dict, default None
        Which weights stay ≥ 0: those of edges, all, or masks for the blocks ``coef`` and ``edge_coef``. With edge features ≥ 0,
        "potts" or "associative" and two labels, ``"edges"`` makes every search a graph cut, and exact.
    inference : {"auto", "forest", "cut", "enumeration", "trws", "expansion"}, default "auto"
        How labellings are searched for; see :class:`maxmargin.models.Pairwise`.
    max_passes : int, default 300
        Most iterations of TRW-S in one search.
    max_search_time : float or None, default None
        Most seconds of TRW-S in one search, after at least one iteration; with a limit, results depend on the machine.
    solver : str, default "auto"
        The algorithm; see :func:`maxmargin.train`.
    tol : float, default 1e-3
        Stop when primal − dual ≤ tol · primal.
    max_iter : int or None, default 10_000
        Most iterations of the solver.
    max_time : float or None, default None
        Most seconds. After either limit the best weights so far are kept, with a ConvergenceWarning.
    n_jobs : int or None, default None
        Threads, which search different graphs; None is 1, −1 all processors.
    random_state : int, Generator, RandomState or None, default None
        Seed of solvers that visit the examples in random order.
    warm_start : bool, default False
        Whether to keep the planes, so that the next ``fit`` on the same data starts from them.
    verbose : int, default 0
        1: a line per exact pass; 2: a line per iteration.
    solver_options : dict or None, default None
        Options of the solver.

    Attributes
    ----------
    coef_ : ndarray of shape (n_labels, n_features)
        w; one row with candidates.
    edge_coef_ : ndarray of shape (n_edge_types, n_edge_features, n_columns)
        v, by type of edge, feature and column of label pairs: one for "potts"; the pairs (a, b) one a after the other for
        "associative" and "full"; those of them with a ≤ b for "symmetric".
    classes_ : ndarray of shape (n_labels,) or None
        The labels, sorted where they can be; None with candidates.
    n_features_in_ : int
        How many features a node has.
    certificate_ : Certificate
        Primal, dual and gap at the weights. Where searches did not close, ``exact`` is False and the primal counts their
        bounds: the optimum still lies between dual and primal.
    history_ : list of dict
        One record per iteration.
    n_iter_ : int
        How many iterations were made.

    Notes
    -----
    X is a list of :class:`maxmargin.Graph`, y a list with a label for each node of each graph: any hashable values, or the
    numbers of the right candidates.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> rng = np.random.default_rng(0)
    >>> truth = np.zeros((6, 6), int)
    >>> truth[2:5, 1:5] = 1
    >>> noisy = [truth + rng.normal(scale=0.7, size=truth.shape) for _ in range(20)]
    >>> X = [mm.Graph.grid(np.dstack([image, np.ones_like(image)])) for image in noisy]
    >>> svm = mm.GraphSVM(C=1.0, nonnegative="edges").fit(X[:10], [truth.ravel()] * 10)
    >>> bool(svm.score(X[10:], [truth.ravel()] * 10) > np.mean([(image > 0.5) == truth for image in noisy]))
    True
    """

    classes_: NDArray[Any] | None
    n_features_in_: int
    _model: Pairwise
    _w: FloatArray

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        rescaling: str = "margin",
        cost: Any = None,
        edges: str = "potts",
        nonnegative: Any = None,
        inference: str = "auto",
        max_passes: int = 300,
        max_search_time: float | None = None,
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
        self.edges = edges
        self.nonnegative = nonnegative
        self.inference = inference
        self.max_passes = max_passes
        self.max_search_time = max_search_time

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train on graphs and the labels of their nodes.

        Parameters
        ----------
        X : list of Graph
            The graphs.
        y : list of sequences of labels
            One label for each node of each graph.
        sample_weight : array of shape (n_graphs,), optional
            s_i ≥ 0: how many times each graph counts.

        Returns
        -------
        self
        """
        return self._fit(self._prepare(X, y, sample_weight))

    def _prepare(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Training:
        self._check_parameters(Pairwise.abilities_for(self.inference))
        data = Graphs(X)
        classes: NDArray[Any] | None = None
        codes: NDArray[Any]
        if data.has_candidates:
            codes = _candidate_numbers(y, data)
        else:
            classes, codes = encode_labels(_flat(y, data), data)
        model = self._training_model(classes, data.n_edge_types)
        weights = check_sample_weight(sample_weight, len(data))
        n_features = data.graphs[0].rows.shape[1]

        def finish(fitted: GraphSVM, solution: Solution) -> None:
            fitted._set_fitted(model, classes, n_features, solution.w)

        return Training(model, data, _by_graph(codes, data), weights, finish)

    @online_only
    def partial_fit(
        self, X: Any, y: Any, classes: Iterable[Hashable] | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Learn from one pass over some more graphs; there is such a method with solver 'perceptron', 'mira' or 'sgd' only.

        The graphs are visited in their order. The first call, also after ``fit``, begins with weights of 0 and fixes the numbers
        of features of nodes and edges and of types of edges. ``certificate_`` has no primal, for which all graphs would have to
        be known, ``history_`` is empty and ``n_iter_`` counts the calls.

        Parameters
        ----------
        X : list of Graph
            The graphs.
        y : list of sequences of labels
            One label for each node of each graph.
        classes : collection of labels, optional
            All labels that any call will bring; needed in the first call, unless ``fit`` has seen them. Not with candidates.
        sample_weight : array of shape (n_graphs,), optional
            s_i ≥ 0: what a graph's updates are multiplied by.

        Returns
        -------
        self

        Examples
        --------
        >>> import maxmargin as mm
        >>> graphs = [mm.Graph([[2.0], [0.5]], [[0, 1]]), mm.Graph([[-2.0], [-0.5]], [[0, 1]])]
        >>> svm = mm.GraphSVM(solver="perceptron")
        >>> for graph, labels in zip(graphs * 3, [["a", "a"], ["b", "b"]] * 3):
        ...     svm = svm.partial_fit([graph], [labels], classes=["a", "b"])
        >>> [labels.tolist() for labels in svm.predict(graphs)]
        [['a', 'a'], ['b', 'b']]
        """
        solver = self._check_parameters(Pairwise.abilities_for(self.inference))
        is_first = self._stream is None
        data = Graphs(X) if is_first else self._read(X)
        known = self._known_classes(classes, data.has_candidates, is_first)
        codes = _candidate_numbers(y, data) if known is None else encode_known_labels(_flat(y, data), known, data)
        weights = check_sample_weight(sample_weight, len(data))
        model = self._training_model(known, data.n_edge_types if is_first else self._model.n_edge_types)
        if not is_first:
            model.n_edge_features = self._model.n_edge_features
        bind = model.bind if is_first else model.bind_more
        w = self._learn(solver, bind(data, _by_graph(codes, data), sample_weight=weights))
        self._set_fitted(model, known, data.graphs[0].rows.shape[1], w)
        return self

    def _known_classes(self, classes: Any, has_candidates: bool, is_first: bool) -> NDArray[Any] | None:
        """Return the labels of a stream, given in this call or known from earlier ones; None with candidates."""
        if has_candidates:
            if classes is not None:
                raise ValueError("classes is for labels that all nodes share; with candidates it must be None.")
            return None
        if is_first and classes is not None:
            return label_set(classes)
        known: NDArray[Any] | None = getattr(self, "classes_", None)
        if known is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if classes is not None:
            check_same_classes(list(classes), known)
        return known

    def _training_model(self, classes: NDArray[Any] | None, n_edge_types: int) -> Pairwise:
        """Return the model of these labels, or of candidates, with its loss and the bounds of its weights."""
        is_hamming = self.cost is None or (isinstance(self.cost, str) and self.cost == "hamming")
        if classes is None and not is_hamming:
            raise ValueError(
                f"cost is for labels that all nodes share; with candidates it must be None or 'hamming', found {self.cost!r}."
            )
        return Pairwise(
            None if classes is None else len(classes),
            edges=self.edges,
            cost=None if classes is None else loss_table(self.cost, "hamming", classes),
            inference=self.inference,
            max_passes=self.max_passes,
            max_search_time=self.max_search_time,
            n_edge_types=n_edge_types,
            nonnegative=self._nonnegative_blocks(),
        )

    def _nonnegative_blocks(self) -> Mapping[str, Any]:
        if isinstance(self.nonnegative, Mapping):
            return self.nonnegative
        if not (self.nonnegative is None or isinstance(self.nonnegative, str)) or self.nonnegative not in _NONNEGATIVE:
            raise ValueError(
                f"nonnegative must be None, 'edges', 'all' or a dict {{block: mask}}, found {self.nonnegative!r}."
            )
        return _NONNEGATIVE[self.nonnegative]

    def _set_fitted(self, model: Pairwise, classes: NDArray[Any] | None, n_features: int, w: FloatArray) -> None:
        # Predicting needs neither the loss nor the bounds of the weights.
        fitted = Pairwise(
            None if classes is None else len(classes),
            edges=model.edges,
            inference=model.inference,
            max_passes=model.max_passes,
            max_search_time=model.max_search_time,
            n_edge_types=model.n_edge_types,
        )
        fitted.n_features, fitted.n_edge_features = n_features, model.n_edge_features
        self._model, self._w, self.classes_, self.n_features_in_ = fitted, w, classes, n_features

    @property
    def coef_(self) -> FloatArray:
        """Weights of node features, labels × features."""
        return self._block("coef")

    @property
    def edge_coef_(self) -> FloatArray:
        """Weights of edge features, types × features × columns."""
        return self._block("edge_coef")

    def _block(self, name: str) -> FloatArray:
        if "_w" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}_': call fit first.")
        return self._model.blocks(self._w)[name]

    @overload
    def predict(self, X: Any, return_gaps: Literal[False] = False) -> list[NDArray[Any]]: ...
    @overload
    def predict(self, X: Any, return_gaps: Literal[True]) -> tuple[list[NDArray[Any]], FloatArray]: ...
    def predict(self, X: Any, return_gaps: bool = False) -> list[NDArray[Any]] | tuple[list[NDArray[Any]], FloatArray]:
        """Return the labels with the highest score for each graph.

        Where a search by TRW-S does not close, or one by alpha-expansion has no bound, the labels may not be the best; an
        :class:`maxmargin.InexactPredictionWarning` then says for how many graphs, unless ``return_gaps`` asks for it.

        Parameters
        ----------
        X : list of Graph
        return_gaps : bool, default False
            Whether to return how much better labels there may be, too.

        Returns
        -------
        labels : list of arrays
            One label for each node of each graph.
        gaps : ndarray of shape (n_graphs,)
            With ``return_gaps`` only: by how much other labels may score more. 0 where the labels are the best ones, NaN where
            nothing is known.

        Examples
        --------
        >>> import numpy as np
        >>> import maxmargin as mm
        >>> X = [mm.Graph([[2.0], [0.1], [-0.2]], [[0, 1], [1, 2], [0, 2]])]
        >>> svm = mm.GraphSVM().fit(X, [["a", "a", "b"]])
        >>> labels, gaps = svm.predict(X, return_gaps=True)
        >>> gaps
        array([0.])
        """
        check_bool("return_gaps", return_gaps)
        data, n_jobs = self._read(X), effective_n_jobs(self.n_jobs)
        if not return_gaps:
            return [self._labels(codes) for codes in self._model.predict(data, self._w, n_jobs)]
        found, gaps = self._model.predict_with_gaps(data, self._w, n_jobs)
        return [self._labels(codes) for codes in found], gaps

    def predict_topk(self, X: Any, k: int) -> list[list[tuple[NDArray[Any], float]]]:
        """Return the k best labellings of each graph with their scores, best first.

        Exact for forests and small graphs; others are searched by TRW-S, which may miss some and then warns.

        Parameters
        ----------
        X : list of Graph
        k : int
            How many; a graph with fewer possible labellings has them all.

        Returns
        -------
        list of lists of (labels, score)
        """
        data = self._read(X)
        return self._with_scores(self._model.k_best(data, self._w, k, effective_n_jobs(self.n_jobs)))

    def predict_diverse(self, X: Any, m: int, strength: float = 1.0) -> list[list[tuple[NDArray[Any], float]]]:
        """Return m good labellings of each graph that differ from each other, with their scores.

        The first is the best one. For each of the others, labels that those before it have score less by ``strength`` times the
        weight of their node (Batra et al. 2012): a large strength buys difference with score. Labellings may come again where
        it is small, and where all labels of their nodes were used alike: two labels leave little beyond the second. They are
        searched for as :meth:`predict` does, with its warning.

        Parameters
        ----------
        X : list of Graph
        m : int
            How many.
        strength : float, default 1.0
            What a label that was used before costs, in units of score.

        Returns
        -------
        list of lists of (labels, score)
        """
        strengths = diverse_strengths(m, strength)
        data = self._read(X)
        return self._with_scores(self._model.diverse(data, self._w, strengths, effective_n_jobs(self.n_jobs)))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of nodes that are labelled right, by their weights.

        Parameters
        ----------
        X : list of Graph
        y : list of sequences of labels
            The true labels.
        sample_weight : array of shape (n_graphs,), optional
            How many times each graph's nodes count.

        Returns
        -------
        float
        """
        data = self._read(X)
        truth = _flat(y, data)
        predicted = [label for labels in self.predict(data) for label in labels.tolist()]
        weights = data.node_weights()
        weights = np.ones(len(truth)) if weights is None else weights
        of_graphs = check_sample_weight(sample_weight, len(data))
        if of_graphs is not None:
            weights = weights * np.repeat(of_graphs, data.lengths)
        if not weights.any():
            raise ValueError("all nodes of X have weight 0: there is no share of them that is right.")
        return float(np.average([a == b for a, b in zip(truth, predicted, strict=True)], weights=weights))

    def _labels(self, codes: NDArray[np.int32]) -> NDArray[Any]:
        labels: NDArray[Any] = codes if self.classes_ is None else self.classes_[codes]
        return labels

    def _with_scores(self, found: Outputs) -> list[list[tuple[NDArray[Any], float]]]:
        return with_scores(found, self._labels)

    def _read(self, X: Any) -> Graphs:
        check_is_fitted(self)
        data = X if isinstance(X, Graphs) else Graphs(X)
        found = data.graphs[0].rows.shape[1]
        if found != self.n_features_in_:
            raise ValueError(
                f"X has {found} features, but GraphSVM is expecting {self.n_features_in_} features as input."
            )
        if data.has_candidates != (self.classes_ is None):
            given, trained = ("candidates", "labels that all nodes share")[:: 1 if data.has_candidates else -1]
            raise ValueError(f"X has graphs with {given}, but GraphSVM was fitted on {trained}.")
        if data.n_edge_types > self._model.n_edge_types:
            raise ValueError(
                f"X has edges of type {data.n_edge_types - 1}, but GraphSVM was fitted on types up to "
                f"{self._model.n_edge_types - 1}."
            )
        return data

    def _fitted_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return {
            "classes": self.classes_,
            "coef": np.ascontiguousarray(self.coef_),
            "edge_coef": np.ascontiguousarray(self.edge_coef_),
            "edges": self._model.edges,
            "inference": self._model.inference,
            "max_passes": self._model.max_passes,
            "max_search_time": self._model.max_search_time,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        classes, coef, edge_coef = state["classes"], state["coef"], state["edge_coef"]
        for name, block, n_axes in (("coef", coef, 2), ("edge_coef", edge_coef, 3)):
            if block.ndim != n_axes or block.dtype != np.float64 or not np.all(np.isfinite(block)):
                raise ValueError(f"its {name} has shape {block.shape} and type {block.dtype}, or is not finite")
        model = Pairwise(
            None if classes is None else len(classes),
            edges=state["edges"],
            inference=state["inference"],
            max_passes=state["max_passes"],
            max_search_time=state["max_search_time"],
            n_edge_types=max(edge_coef.shape[0], 1),
        )
        model.n_features, model.n_edge_features = coef.shape[1], edge_coef.shape[1]
        expected = (model.n_labels, coef.shape[1]), model.table_blocks["edge_coef"]
        if (coef.shape, edge_coef.shape) != expected:
            raise ValueError(f"its weights have shapes {coef.shape} and {edge_coef.shape}, expected {expected}")
        self._set_fitted(model, classes, coef.shape[1], model.join(coef=coef, edge_coef=edge_coef))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags


def _flat(y: Any, data: Graphs) -> list[Hashable]:
    """Return the labels of all nodes, after checking that every node has one."""
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        raise TypeError(f"y is of type {type(y).__name__}; expected a list with a sequence of labels for each graph.")
    labellings = list(y)
    if len(labellings) != len(data):
        raise ValueError(f"y has {len(labellings)} labellings but X has {len(data)} graphs.")
    flat: list[Hashable] = []
    for i, (labels, length) in enumerate(zip(labellings, data.lengths.tolist(), strict=True)):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"y[{i}] is {labels!r}; expected a sequence with a label for each node.")
        given = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        if len(given) != length:
            is_image = isinstance(labels, np.ndarray) and labels.ndim == 2 and labels.size == length
            hint = " The nodes of a grid are its pixels row by row: give y.ravel()." if is_image else ""
            raise ValueError(
                f"y[{i}] has {len(given)} labels but X[{i}] has {length} nodes: every node needs one label.{hint}"
            )
        flat += given
    return flat


def _by_graph(codes: NDArray[Any], data: Graphs) -> list[NDArray[Any]]:
    return np.split(codes, data.node_offsets[1:-1])


def _candidate_numbers(y: Any, data: Graphs) -> NDArray[np.integer[Any]]:
    """Return the numbers of candidates; the model checks that they exist."""
    numbers = np.asarray(_flat(y, data))
    if not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"y holds labels of type {numbers.dtype}; with candidates, expected the number of one for each node."
        )
    return numbers
