"""Labels of the nodes of graphs: Ψ = Σ_i x_i ⊗ e_{y_i} + Σ_e features of the edge at its pair of labels, loss by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_numbers, check_losses, core_features
from maxmargin._parameters import check_sample_weight, is_integer, is_number
from maxmargin._warnings import warn_caller
from maxmargin.graphs import Graphs
from maxmargin.kernels import Expansion
from maxmargin.models._linear import (
    check_cost_matrix,
    check_n_labels,
    label_numbers,
    tell_losses,
)
from maxmargin.models._several import PlaceModel
from maxmargin.problems.base import FloatArray, InexactPredictionWarning, IntArray
from maxmargin.problems.graph import GraphProblem

EDGES = ("potts", "associative", "symmetric", "full")
METHODS = ("auto", "forest", "cut", "enumeration", "trws", "expansion")
# Those under which graphs with few labellings are trained with rescaled slacks.
SLACK_METHODS = ("auto", "enumeration")


class Pairwise(PlaceModel):
    r"""The pairwise model of graphs.

    .. math::

        f(x, y) = \sum_i w_{y_i} \cdot x_i + \sum_e \sigma(y_a, y_b) \; v_{\text{column}(y_a, y_b)} \cdot z_e

    for nodes i with features x and edges e = (a, b) with features z.

    Parameters
    ----------
    n_labels : int or None
        k, the number of labels of all nodes; None for graphs whose nodes have candidates of their own.
    edges : {"potts", "associative", "symmetric", "full"}, default "potts"
        Which pairs of labels share weights. ``"potts"``: one column, for labels that agree; others score nothing.
        ``"associative"``: a column for each of the k² pairs, with σ = 1 where they agree and −1 where they differ.
        ``"symmetric"``: a column for each pair in any order; ``"full"``: one for each of the k² pairs. With candidates there is
        one column.
    cost : (k, k) array or (k,) array, optional
        Loss of a wrong node: Δ(true, predicted), or a weight for each true label; 1 by default. The weights of nodes multiply
        it, and a graph's loss is the sum over its nodes.
    inference : {"auto", "forest", "cut", "enumeration", "trws", "expansion"}, default "auto"
        How labellings are searched for. ``"auto"`` takes dynamic programming for forests, graph cuts for two labels whose edges
        like agreement, enumeration for small graphs and else TRW-S, whose bound tells how much it may have missed. Slack
        rescaling needs ``"auto"`` or ``"enumeration"``, and graphs of at most 2²⁵ labellings.
    max_passes : int, default 300
        Most iterations of TRW-S in one search. Training begins with 10 and allows more as the gap closes.
    max_search_time : float or None, default None
        Most seconds of TRW-S in one search, after at least one iteration; with a limit, results depend on the machine.
    n_edge_types : int, default 1
        How many types of edges there are, each with weights of its own.
    nonnegative : mapping, optional
        ``{"coef": mask, "edge_coef": mask}``: weights that must stay ≥ 0.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = [mm.Graph([[2.0], [0.1], [-0.2]], [[0, 1], [1, 2], [0, 2]]), mm.Graph([[-2.0], [0.2]], [[0, 1]])]
    >>> model = mm.models.Pairwise(2, nonnegative={"edge_coef": True})
    >>> solution = mm.train(model, X, [[1, 1, 1], [0, 0]], C=10.0)
    >>> {name: block.shape for name, block in model.blocks(solution.w).items()}
    {'coef': (2, 1), 'edge_coef': (1, 1, 1)}
    >>> [labels.tolist() for labels in model.predict(X, solution.w)]
    [[1, 1, 1], [0, 0]]
    """

    cheap_oracle = False
    abilities: frozenset[str] = frozenset({"max_oracle", "m_best", "vectors", "blocks"})

    def __init__(
        self,
        n_labels: int | None,
        *,
        edges: str = "potts",
        cost: ArrayLike | None = None,
        inference: str = "auto",
        max_passes: int = 300,
        max_search_time: float | None = None,
        n_edge_types: int = 1,
        nonnegative: Mapping[str, ArrayLike] | None = None,
    ) -> None:
        super().__init__(nonnegative)
        if not isinstance(edges, str) or edges not in EDGES:
            raise ValueError(f"edges must be one of {', '.join(map(repr, EDGES))}, found {edges!r}.")
        if not isinstance(inference, str) or inference not in METHODS:
            raise ValueError(f"inference must be one of {', '.join(map(repr, METHODS))}, found {inference!r}.")
        for name, value in (("max_passes", max_passes), ("n_edge_types", n_edge_types)):
            if not is_integer(value, 1):
                raise ValueError(f"{name} must be an integer ≥ 1, found {value!r}.")
        self.has_candidates = n_labels is None
        self.n_labels = 1 if n_labels is None else check_n_labels(n_labels)
        self.edges = edges
        self.cost = cost
        self.inference = inference
        if max_search_time is not None and not (is_number(max_search_time) and max_search_time > 0):
            raise ValueError(f"max_search_time must be a positive number or None, found {max_search_time!r}.")
        self.max_passes = int(max_passes)
        self.max_search_time = None if max_search_time is None else float(max_search_time)
        self.n_edge_types = int(n_edge_types)
        self.abilities = self.abilities_for(inference)
        self.n_edge_features = 0

    @property
    def n_pair_columns(self) -> int:
        """How many columns of weights edge features have."""
        k = self.n_labels
        if self.has_candidates or self.edges == "potts":
            return 1
        return k * (k + 1) // 2 if self.edges == "symmetric" else k * k

    @property
    def table_blocks(self) -> dict[str, tuple[int, ...]]:
        """``edge_coef``: types × edge features × columns."""
        return {"edge_coef": (self.n_edge_types, self.n_edge_features, self.n_pair_columns)}

    @classmethod
    def abilities_for(cls, inference: str) -> frozenset[str]:
        """Return what the model can do with this way of searching."""
        return cls.abilities | {"slack_oracle"} if inference in SLACK_METHODS else cls.abilities

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> GraphProblem:
        """Return the training problem; ``X`` is a list of graphs or Graphs, ``Y`` a list of label-number arrays."""
        data = X if isinstance(X, Graphs) else Graphs(X)
        self.n_edge_features = data.declared_edge_features
        return self._bound(data, Y, sample_weight, rescaling, n_jobs)

    def bind_more(self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None) -> GraphProblem:
        """Return the training problem of more graphs, which need not have edges, for a model whose edge features are known."""
        data = X if isinstance(X, Graphs) else Graphs(X)
        self._check_edge_features(data)
        return self._bound(data, Y, sample_weight, "margin", 1)

    def _bound(
        self, data: Graphs, Y: Any, sample_weight: ArrayLike | None, rescaling: str, n_jobs: int
    ) -> GraphProblem:
        self._check_kind(data)
        y = self._label_numbers(Y, data)
        graph = self._graph(data, y)
        if rescaling == "slack":
            self._check_enumerable(graph)
        rows = data.rows()
        self.n_features = rows.shape[1]
        problem = GraphProblem(
            graph,
            _core.LinearSpace(core_features(rows), graph, rescaling),
            check_sample_weight(sample_weight, len(data)),
            self._nonnegative_ids(),
            n_jobs,
            # Slacks are rescaled by enumeration alone.
            self.inference if rescaling == "margin" else "enumeration",
            self.max_passes,
        )
        tell_losses(problem, *self._loss(data, y), data.node_offsets)
        return problem

    def predict(self, X: Any, w: ArrayLike, n_jobs: int = 1) -> list[NDArray[np.int32]]:
        """Return each graph's best label numbers, with an InexactPredictionWarning where these are not known to be the best."""
        labels, gaps = self.predict_with_gaps(X, w, n_jobs)
        is_open = ~(gaps == 0.0)
        if is_open.any():
            largest = np.nan_to_num(gaps).max()
            more = (
                f"up to {largest:.3g} more. predict_with_gaps, or return_gaps=True of GraphSVM.predict, tells each graph's gap."
                if largest > 0.0
                else "more, and how much is not known."
            )
            warn_caller(
                f"the searches in {is_open.sum()} of {len(gaps)} graphs did not close: another labelling may score {more}",
                InexactPredictionWarning,
            )
        return labels

    def predict_with_gaps(
        self, X: Any, w: ArrayLike, n_jobs: int = 1
    ) -> tuple[list[NDArray[np.int32]], NDArray[np.float64]]:
        """Return what :meth:`predict` does, and by how much another labelling of each graph may score more.

        A gap is 0 where the labelling is known to be the best one, and NaN where nothing is known.
        """
        labels, graph = self.searched(X, w, n_jobs)
        return labels, graph.shortfalls()

    def searched(self, X: Any, w: ArrayLike, n_jobs: int = 1) -> tuple[list[NDArray[np.int32]], _core.Graph]:
        """Return each graph's best label numbers, and the graphs as the core has searched them."""
        space, graph, weights, lengths = self._prediction_space(X, w, n_jobs)
        return np.split(space.predict(weights, n_jobs), np.cumsum(lengths)[:-1]), graph

    def max_marginals(self, X: Any, w: ArrayLike, n_jobs: int = 1) -> list[FloatArray] | list[list[FloatArray]]:
        """Return for each graph a (nodes × k) matrix: the best score of any labelling with that label at that node.

        With candidates there is an array for each node of each graph, of as many numbers as the node has candidates.
        """
        data = X if isinstance(X, Graphs) else Graphs(X)
        space, graph, weights, lengths = self._prediction_space(data, w, n_jobs)
        found = space.max_marginals(weights, n_jobs)
        self._report_misses(graph)
        if not self.has_candidates:
            return np.split(found, np.cumsum(lengths)[:-1])
        of_nodes = np.split(found[:, 0], data.candidates()[0][1:-1])
        ends = np.cumsum(lengths).tolist()
        return [of_nodes[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)]

    def _report_misses(self, structure: Any) -> None:
        n_open = structure.take_open()
        if n_open:
            warn_caller(
                f"{n_open} of the searches for several labellings did not close: better ones may have been missed.",
                InexactPredictionWarning,
            )

    def _prediction_space(
        self, X: Any, w: ArrayLike | Expansion, n_jobs: int
    ) -> tuple[_core.LinearSpace, _core.Graph, FloatArray, IntArray]:
        data = X if isinstance(X, Graphs) else Graphs(X)
        self._check_edge_features(data)
        features, weights = self._scored(data.rows(), w, n_jobs)
        graph = self._graph(data, None)
        return _core.LinearSpace(features, graph, "margin"), graph, weights, data.lengths

    def _check_edge_features(self, data: Graphs) -> None:
        if data.n_edge_features not in (self.n_edge_features, 0):
            raise ValueError(
                f"X has {data.n_edge_features} features of edges, but the model was trained with {self.n_edge_features}."
            )

    def _check_kind(self, data: Graphs) -> None:
        if data.has_candidates != self.has_candidates:
            raise ValueError(
                "X has graphs with candidates, which n_labels=None is for."
                if data.has_candidates
                else "X has graphs without candidates: n_labels must say how many labels their nodes have."
            )

    def _graph(self, data: Graphs, y: NDArray[np.int32] | None) -> _core.Graph:
        self._check_kind(data)
        types = data.edge_types()
        if types is not None and data.n_edge_types > self.n_edge_types:
            raise ValueError(f"X has edges of type {data.n_edge_types - 1}, but n_edge_types is {self.n_edge_types}.")
        cost, node_weight = self._loss(data, y)
        candidates, pair_rows = data.candidates() if self.has_candidates else (None, None)
        column, coefficient = (None, None) if self.has_candidates else self._pair_columns()
        edge_rows = (
            data.edge_rows()
            if data.n_edge_features
            else np.zeros((_n_edge_rows(data, pair_rows), self.n_edge_features))
        )
        first, second = data.ends()
        return _core.Graph(
            data.node_offsets,
            data.edge_offsets,
            first,
            second,
            edge_rows,
            self.n_labels,
            candidates,
            pair_rows,
            column,
            coefficient,
            self.n_pair_columns,
            types,
            self.n_edge_types,
            y,
            cost,
            node_weight,
            self.inference,
            self.max_passes,
            self.max_search_time,
        )

    def _check_enumerable(self, graph: _core.Graph) -> None:
        """Refuse graphs whose labellings are too many to go through, which slack rescaling asks for."""
        if self.inference not in SLACK_METHODS:
            raise ValueError(
                f"rescaling='slack' is for graphs searched by enumeration: inference must be 'auto' or 'enumeration', found "
                f"{self.inference!r}."
            )
        large = np.flatnonzero(graph.enumerated() > graph.most_enumerated)
        if len(large):
            raise ValueError(
                f"rescaling='slack' goes through all labellings of a graph, and graph {large[0]} has too many: at most "
                f"{graph.most_enumerated}, those of its first nodes included, which is 24 nodes of two labels. Use "
                "rescaling='margin'."
            )

    def _pair_columns(self) -> tuple[NDArray[np.int32], FloatArray]:
        """Return the column of each pair of labels, −1 for those that score nothing, and its coefficient."""
        k = self.n_labels
        agree = np.eye(k, dtype=bool)
        if self.edges == "potts":
            return np.where(agree, 0, -1).astype(np.int32), np.ones((k, k))
        if self.edges == "symmetric":
            column = np.zeros((k, k), np.int32)
            upper = np.triu_indices(k)
            column[upper] = column.T[upper] = np.arange(len(upper[0]))
            return column, np.ones((k, k))
        column = np.arange(k * k, dtype=np.int32).reshape(k, k)
        return column, np.where(agree, 1.0, -1.0) if self.edges == "associative" else np.ones((k, k))

    def _label_numbers(self, Y: Any, data: Graphs) -> NDArray[np.int32]:
        if not isinstance(Y, Iterable):
            raise TypeError(f"Y is of type {type(Y).__name__}; expected a list of arrays of label numbers.")
        labels = [np.asarray(part) for part in Y]
        if len(labels) != len(data):
            raise ValueError(f"Y has {len(labels)} labellings but X has {len(data)} graphs.")
        for i, (part, length) in enumerate(zip(labels, data.lengths.tolist(), strict=True)):
            if part.shape != (length,):
                raise ValueError(
                    f"y[{i}] has shape {part.shape} but X[{i}] has {length} nodes: every node needs one label."
                )
        flat = np.concatenate(labels)
        if not self.has_candidates:
            return label_numbers(flat, self.n_labels, lambda node: "y[{}][{}]".format(*data.place(node)))
        counts = np.concatenate([graph.candidate_counts for graph in data.graphs if graph.candidate_counts is not None])
        numbers = label_numbers(flat, int(counts.max()), lambda node: "y[{}][{}]".format(*data.place(node)))
        wrong = np.flatnonzero(numbers >= counts)
        if len(wrong):
            i, node = data.place(int(wrong[0]))
            raise ValueError(f"y[{i}][{node}] is {numbers[wrong[0]]}; the node has {counts[wrong[0]]} candidates.")
        return numbers

    def _loss(self, data: Graphs, y: NDArray[np.int32] | None) -> tuple[FloatArray | None, FloatArray | None]:
        """Return the cost matrix or None, and the weight of every node or None."""
        weight = data.node_weights()
        if self.cost is None or y is None:
            return None, weight
        if self.has_candidates:
            raise ValueError(
                "cost is for labels that all nodes share; with candidates the weights of nodes are the loss."
            )
        given = as_numbers(self.cost, "cost")
        if given.ndim != 1:
            return check_cost_matrix(given, self.n_labels), weight
        if given.shape != (self.n_labels,) or not np.all(np.isfinite(given)) or np.any(given < 0):
            raise ValueError(f"cost must hold {self.n_labels} finite numbers ≥ 0.")
        check_losses(given, "cost")
        return None, given[y] if weight is None else weight * given[y]


def _n_edge_rows(data: Graphs, pair_rows: NDArray[np.int64] | None) -> int:
    return int(data.edge_offsets[-1] if pair_rows is None else pair_rows[-1])
