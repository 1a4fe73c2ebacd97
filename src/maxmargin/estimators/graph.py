"""Labels of graphs."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._parameters import check_sample_weight, is_integer
from maxmargin._result import Solution
from maxmargin.estimators._base import Training, storable
from maxmargin.estimators._costs import loss_of_places
from maxmargin.estimators._fitted_graph import FittedGraph
from maxmargin.estimators._graph_data import by_graph, candidate_numbers, flat_labels
from maxmargin.estimators._sequence_data import encode_known_labels, encode_labels, stream_classes
from maxmargin.estimators._streams import online_only
from maxmargin.graphs import Graphs
from maxmargin.models.pairwise import Pairwise
from maxmargin.problems.base import FloatArray

_NONNEGATIVE = {None: {}, "edges": {"edge_coef": True}, "all": {"coef": True, "edge_coef": True}}


@storable
class GraphSVM(FittedGraph):
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
    cost : None, "hamming", "balanced", number, dict or (n_labels, n_labels) array, default None
        The loss of one wrong node: one number for all, a weight for each true label (labels left out have 1), or
        Δ(true, predicted) in the order of ``classes_``. "balanced" gives each label the weight n_nodes / (n_labels · its nodes),
        nodes counted by their weights, so that rare labels count as much as frequent ones; labels whose nodes all weigh 0 are
        not counted.
    edges : {"potts", "associative", "symmetric", "full"}, default "potts"
        Which pairs of labels share weights v: those that agree have one, and others none; a weight for each pair, with σ = −1
        where they differ; a weight for each pair in any order; a weight for each pair. With candidates there is one.
    n_edge_types : int or None, default None
        How many types edges have; None: as many as the graphs of ``fit``, or of the first ``partial_fit``. To be given where
        some of these, such as the folds of a cross-validation, may lack a type.
    nonnegative : None, "edges", "all" or dict, default None
        Which weights stay ≥ 0: those of edges, all, or masks for the blocks ``coef`` and ``edge_coef``. With edge features ≥ 0,
        "potts" or "associative" and two labels, ``"edges"`` makes every search a graph cut, and exact; but for those that
        "perceptron" and "mira" make on their way, whose average alone is held.
    inference : {"auto", "forest", "cut", "enumeration", "trws", "expansion"}, default "auto"
        How labellings are searched for; see :class:`maxmargin.models.Pairwise`.
    max_passes : int, default 300
        Most iterations of TRW-S in one search. Training begins with 10 and allows more as the gap closes.
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

    def __init__(
        self,
        C: float = 1.0,
        *,
        loss: str = "hinge",
        rescaling: str = "margin",
        cost: Any = None,
        edges: str = "potts",
        n_edge_types: int | None = None,
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
        self.n_edge_types = n_edge_types
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
            codes = candidate_numbers(y, data)
        else:
            classes, codes = encode_labels(flat_labels(y, data), data)
        model = self._training_model(classes, self._edge_types_of(data), codes, data.node_weights())
        weights = check_sample_weight(sample_weight, len(data))
        n_features = data.graphs[0].rows.shape[1]

        def finish(fitted: GraphSVM, solution: Solution) -> None:
            fitted._set_fitted(model, classes, n_features, solution.w)

        return Training(model, data, by_graph(codes, data), weights, finish)

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
        if data.has_candidates and classes is not None:
            raise ValueError("classes is for labels that all nodes share; with candidates it must be None.")
        known = (
            None if data.has_candidates else stream_classes(classes, getattr(self, "classes_", None), is_first=is_first)
        )
        codes = candidate_numbers(y, data) if known is None else encode_known_labels(flat_labels(y, data), known, data)
        weights = check_sample_weight(sample_weight, len(data))
        model = self._training_model(known, self._edge_types_of(data) if is_first else self._model.n_edge_types)
        if not is_first:
            model.n_edge_features = self._model.n_edge_features
        bind = model.bind if is_first else model.bind_more
        w = self._learn(solver, bind(data, by_graph(codes, data), sample_weight=weights))
        self._set_fitted(model, known, data.graphs[0].rows.shape[1], w)
        return self

    def _edge_types_of(self, data: Graphs) -> int:
        if self.n_edge_types is None:
            return data.n_edge_types
        if not is_integer(self.n_edge_types, 1):
            raise ValueError(f"n_edge_types must be an integer ≥ 1 or None, found {self.n_edge_types!r}.")
        return int(self.n_edge_types)

    def _training_model(
        self,
        classes: NDArray[Any] | None,
        n_edge_types: int,
        codes: NDArray[np.integer[Any]] | None = None,
        node_weights: FloatArray | None = None,
    ) -> Pairwise:
        """Return the model of these labels, or of candidates, with its loss and the bounds of its weights.

        ``codes`` are the labels of all nodes, where all are known.
        """
        is_hamming = self.cost is None or (isinstance(self.cost, str) and self.cost == "hamming")
        if classes is None and not is_hamming:
            raise ValueError(
                f"cost is for labels that all nodes share; with candidates it must be None or 'hamming', found {self.cost!r}."
            )
        return Pairwise(
            None if classes is None else len(classes),
            edges=self.edges,
            cost=None if classes is None else loss_of_places(self.cost, classes, codes, node_weights),
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
