"""Graphs as inputs: features of nodes, edges between them, features of edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from maxmargin._feature_rows import (
    as_array,
    as_features,
    as_numbers,
    check_losses,
    check_places,
    check_scale,
    first_not_finite,
)
from maxmargin.problems.base import FloatArray, IntArray

# Nodes and edges have 32-bit numbers in the core.
_MOST_NUMBERS = 2**31 - 1
_MOST_TYPES = 10_000


class Graph:
    """One graph whose nodes are to be labelled.

    Parameters
    ----------
    node_features : array or sparse matrix of shape (n_nodes, n_features)
        A row of features for each node; sparse ones stay sparse, in CSR form.
    edges : array of int of shape (n_edges, 2), or None where there are none
        The two nodes of each edge, counted from 0. Where labels of an edge's ends are told apart (``edges="full"`` and
        ``"associative"`` of :class:`GraphSVM`), the first comes first. Several edges may join the same nodes; none joins a node
        to itself.
    edge_features : array of shape (n_edges, n_edge_features), optional
        A row of features for each edge; a column of ones by default.
    node_weights : array of shape (n_nodes,), optional
        How much a wrong label of each node costs, ≥ 0: the size of a region, say; 1 by default.
    edge_types : array of int of shape (n_edges,), optional
        Edges of different types, numbered from 0, have weights of their own; all are of one by default.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> triangle = mm.Graph(np.eye(3), [[0, 1], [1, 2], [0, 2]])
    >>> triangle.n_nodes, triangle.n_edges
    (3, 3)
    """

    def __init__(
        self,
        node_features: Any,
        edges: ArrayLike | None,
        edge_features: ArrayLike | None = None,
        *,
        node_weights: ArrayLike | None = None,
        edge_types: ArrayLike | None = None,
    ) -> None:
        self.rows: Any = _checked_features(node_features, "node_features")
        self.candidate_counts: IntArray | None = None
        self._set_edges(edges, self.rows.shape[0], edge_types)
        given = np.ones((self.n_edges, 1)) if edge_features is None else edge_features
        self.edge_rows = _checked_edge_features(given, self.n_edges, "edge_features")
        self.node_weights = _checked_weights(node_weights, self.n_nodes)

    @classmethod
    def from_candidates(
        cls,
        candidate_features: Sequence[ArrayLike],
        edges: ArrayLike | None,
        pair_features: Sequence[ArrayLike],
        *,
        node_weights: ArrayLike | None = None,
        edge_types: ArrayLike | None = None,
    ) -> Graph:
        """Return a graph whose nodes have candidates of their own instead of common labels.

        The label of a node is the number of one of its candidates, and weights are shared by all nodes and all edges: the score
        is Σ_i w·f_i(y_i) + Σ_e v·g_e(y_first, y_second).

        Parameters
        ----------
        candidate_features : list of arrays or sparse matrices of shape (candidates of the node, n_features)
            f_i, one matrix for each node.
        edges : array of int of shape (n_edges, 2), or None where there are none
            The two nodes of each edge.
        pair_features : list of arrays of shape (candidates of the first, candidates of the second, n_edge_features)
            g_e, one array for each edge.
        node_weights, edge_types : arrays, optional
            As for :class:`Graph`.

        Examples
        --------
        >>> import numpy as np
        >>> import maxmargin as mm
        >>> graph = mm.Graph.from_candidates([np.eye(2), np.ones((3, 2))], [[0, 1]], [np.zeros((2, 3, 1))])
        >>> graph.n_nodes, graph.candidate_counts.tolist()
        (2, [2, 3])
        """
        graph = cls.__new__(cls)
        given_nodes = _as_list(candidate_features, "candidate_features", "a matrix of features for each node")
        nodes = [_checked_features(part, f"candidate_features[{i}]") for i, part in enumerate(given_nodes)]
        if not nodes:
            raise ValueError("candidate_features is empty: a graph needs at least one node.")
        for i, part in enumerate(nodes):
            if part.shape[1] != nodes[0].shape[1]:
                raise ValueError(
                    f"candidate_features[{i}] has {part.shape[1]} features, but candidate_features[0] has {nodes[0].shape[1]}."
                )
        graph.rows = _stacked(nodes)
        counts = graph.candidate_counts = np.array([part.shape[0] for part in nodes], np.int64)
        graph._set_edges(edges, len(nodes), edge_types)
        blocks = _pair_blocks(pair_features, counts, graph.edges)
        rows = np.concatenate(blocks) if blocks else np.zeros((0, 0))
        graph.edge_rows = _checked_edge_features(rows, len(rows), "pair_features")
        graph.node_weights = _checked_weights(node_weights, graph.n_nodes)
        return graph

    @classmethod
    def grid(
        cls,
        features: ArrayLike,
        *,
        diagonals: bool = False,
        edge_features: Any = None,
        node_weights: ArrayLike | None = None,
        by_direction: bool = False,
    ) -> Graph:
        """Return the graph of a 2-D grid, such as the pixels of an image, row by row.

        Parameters
        ----------
        features : array of shape (height, width, n_features) or (height, width)
            The features of each place.
        diagonals : bool, default False
            Whether places that touch at a corner are neighbours too.
        edge_features : callable, optional
            A function of the features of all first and all second ends of the edges, two matrices, that returns the features
            of the edges; a column of ones by default.
        node_weights : array of shape (height, width), optional
            As for :class:`Graph`.
        by_direction : bool, default False
            Whether horizontal, vertical and diagonal edges are of different types.

        Examples
        --------
        >>> import numpy as np
        >>> import maxmargin as mm
        >>> image = np.random.default_rng(0).random((4, 5, 3))
        >>> graph = mm.Graph.grid(image, edge_features=lambda a, b: np.exp(-np.abs(a - b).sum(axis=1, keepdims=True)))
        >>> graph.n_nodes, graph.n_edges, graph.edge_rows.shape
        (20, 31, (31, 1))
        """
        if edge_features is not None and not callable(edge_features):
            raise TypeError(
                f"edge_features must be a function of the features of both ends, not {type(edge_features).__name__}; "
                "arrays of edge features are for mm.Graph itself."
            )
        # Numbers of images are often unsigned and short: differences of them would wrap around.
        values = as_numbers(features, "features")
        if values.ndim == 2:
            values = values[:, :, None]
        if values.ndim != 3:
            raise ValueError(f"features has shape {values.shape}; expected height × width × features.")
        height, width = values.shape[:2]
        if height * width == 0:
            raise ValueError(f"features has shape {values.shape}: a grid has at least one place.")
        numbers = np.arange(height * width).reshape(height, width)
        pairs = [(numbers[:, :-1], numbers[:, 1:]), (numbers[:-1], numbers[1:])]
        if diagonals:
            pairs += [(numbers[:-1, :-1], numbers[1:, 1:]), (numbers[:-1, 1:], numbers[1:, :-1])]
        edges = np.concatenate([np.column_stack([a.ravel(), b.ravel()]) for a, b in pairs])
        types = np.repeat(np.arange(len(pairs)), [a.size for a, _ in pairs]) if by_direction else None
        rows = values.reshape(height * width, -1)
        of_edges = None if edge_features is None else edge_features(rows[edges[:, 0]], rows[edges[:, 1]])
        weights = None if node_weights is None else as_numbers(node_weights, "node_weights")
        if weights is not None and weights.shape != (height, width):
            raise ValueError(
                f"node_weights has shape {weights.shape}; expected {height} × {width}, one for each place."
            )
        weights = None if weights is None else weights.ravel()
        return cls(rows, edges, of_edges, node_weights=weights, edge_types=types)

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return int(self.rows.shape[0]) if self.candidate_counts is None else len(self.candidate_counts)

    @property
    def n_edges(self) -> int:
        """How many edges there are."""
        return len(self.edges)

    def __repr__(self) -> str:
        kind = "" if self.candidate_counts is None else f", {self.candidate_counts.sum()} candidates"
        return f"Graph({self.n_nodes} nodes{kind}, {self.n_edges} edges)"

    def _set_edges(self, edges: ArrayLike | None, n_nodes: int, edge_types: ArrayLike | None) -> None:
        pairs = as_array([] if edges is None else edges, "edges", "pairs of node numbers")
        if pairs.size == 0:
            pairs = np.zeros((0, 2), np.int32)
        if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
            hint = " Give its transpose: a row for each edge." if pairs.ndim == 2 and pairs.shape[0] == 2 else ""
            raise ValueError(
                f"edges has shape {pairs.shape} and type {pairs.dtype}; expected pairs of node numbers, edges × 2 integers.{hint}"
            )
        if max(n_nodes, len(pairs)) > _MOST_NUMBERS:
            raise ValueError(f"a graph has at most {_MOST_NUMBERS} nodes and edges.")
        bad = np.flatnonzero(np.any((pairs < 0) | (pairs >= n_nodes), axis=1))
        if len(bad):
            raise ValueError(
                f"edges[{bad[0]}] is {pairs[bad[0]].tolist()}; expected two of the nodes 0 … {n_nodes - 1}."
            )
        loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
        if len(loops):
            raise ValueError(f"edges[{loops[0]}] joins node {pairs[loops[0], 0]} to itself; expected two nodes.")
        self.edges: NDArray[np.int32] = _frozen(pairs.astype(np.int32))
        self.edge_types: NDArray[np.int32] | None = None
        if edge_types is not None:
            types = as_array(edge_types, "edge_types", "a number per edge")
            if types.shape != (len(pairs),) or (types.size and not np.issubdtype(types.dtype, np.integer)):
                raise ValueError(
                    f"edge_types has shape {types.shape} and type {types.dtype}; expected a number per edge."
                )
            if types.size and (types.min() < 0 or types.max() >= _MOST_TYPES):
                raise ValueError(
                    f"edge_types must be numbers from 0 to {_MOST_TYPES - 1}: every type has weights of its own."
                )
            self.edge_types = _frozen(types.astype(np.int32))


class Graphs:
    """Many graphs, stacked: graph i has the nodes node_offsets[i] … node_offsets[i + 1] − 1.

    Parameters
    ----------
    graphs : list of Graph
        Of the same features, and all with candidates or none.
    """

    def __init__(self, graphs: Iterable[Graph]) -> None:
        if isinstance(graphs, (Graph, str, bytes, Mapping)) or not isinstance(graphs, Iterable):
            raise TypeError(f"X is of type {type(graphs).__name__}; expected a list of maxmargin.Graph.")
        self.graphs = list(graphs)
        if not self.graphs:
            raise ValueError("X is empty: at least one graph is needed.")
        self.n_edge_features = 0  # 0 where no graph has edges
        for i, graph in enumerate(self.graphs):
            if not isinstance(graph, Graph):
                hint = (
                    ": mm.Graph(*x) makes one of features, edges and features of edges" if type(graph) is tuple else ""
                )
                raise TypeError(f"X[{i}] is of type {type(graph).__name__}; expected a maxmargin.Graph{hint}.")
            self._check_like_first(i, graph)
        self.node_offsets = _offsets(graph.n_nodes for graph in self.graphs)
        self.edge_offsets = _offsets(graph.n_edges for graph in self.graphs)

    def _check_like_first(self, i: int, graph: Graph) -> None:
        first = self.graphs[0]
        if (graph.candidate_counts is None) != (first.candidate_counts is None):
            raise ValueError(f"X[0] and X[{i}] are of different kinds: all graphs have candidates, or none.")
        if graph.rows.shape[1] != first.rows.shape[1]:
            raise ValueError(
                f"X[{i}] has {graph.rows.shape[1]} features of nodes, but X[0] has {first.rows.shape[1]}: all graphs need the "
                "same."
            )
        if graph.n_edges == 0:
            return
        if self.n_edge_features not in (graph.edge_rows.shape[1], 0):
            raise ValueError(
                f"X[{i}] has {graph.edge_rows.shape[1]} features of edges, but others have {self.n_edge_features}: all graphs "
                "need the same."
            )
        self.n_edge_features = graph.edge_rows.shape[1]

    @property
    def declared_edge_features(self) -> int:
        """How many features edges have, or would have in graphs that have none: as many as their arrays have columns."""
        return self.n_edge_features or max(graph.edge_rows.shape[1] for graph in self.graphs)

    def __len__(self) -> int:
        return len(self.graphs)

    def __getitem__(self, places: Any) -> Any:
        return Graphs(self.graphs[places]) if isinstance(places, slice) else self.graphs[places]

    @property
    def lengths(self) -> IntArray:
        """How many nodes each graph has."""
        return np.diff(self.node_offsets)

    @property
    def has_candidates(self) -> bool:
        """Whether nodes have candidates of their own."""
        return self.graphs[0].candidate_counts is not None

    @property
    def n_edge_types(self) -> int:
        """How many types of edges there are."""
        return 1 + max(
            (int(g.edge_types.max()) for g in self.graphs if g.edge_types is not None and g.n_edges), default=0
        )

    def rows(self) -> Any:
        """Return the feature rows of all nodes, or of all their candidates: CSR where those of a graph are sparse."""
        return _stacked([graph.rows for graph in self.graphs])

    def edge_rows(self) -> FloatArray:
        """Return the feature rows of all edges, or of all pairs of their candidates."""
        empty = np.zeros((0, self.n_edge_features))
        return np.ascontiguousarray(np.concatenate([empty, *(g.edge_rows for g in self.graphs if g.n_edges)]))

    def ends(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Return the first and the second nodes of all edges, counted within their graphs."""
        edges = np.concatenate([graph.edges for graph in self.graphs])
        return np.ascontiguousarray(edges[:, 0]), np.ascontiguousarray(edges[:, 1])

    def edge_types(self) -> NDArray[np.int32] | None:
        """Return the types of all edges; None where there is one."""
        if all(graph.edge_types is None for graph in self.graphs):
            return None
        zeros = [np.zeros(g.n_edges, np.int32) if g.edge_types is None else g.edge_types for g in self.graphs]
        return np.concatenate(zeros)

    def node_weights(self) -> FloatArray | None:
        """Return the weights of all nodes; None where all are 1."""
        if all(graph.node_weights is None for graph in self.graphs):
            return None
        return np.concatenate([np.ones(g.n_nodes) if g.node_weights is None else g.node_weights for g in self.graphs])

    def candidates(self) -> tuple[IntArray, IntArray]:
        """Return where the candidates of each node begin among all, and the pairs of candidates of each edge."""
        counts = [graph.candidate_counts for graph in self.graphs]
        pairs = [
            own[g.edges[:, 0]] * own[g.edges[:, 1]]
            for own, g in zip(counts, self.graphs, strict=True)
            if own is not None
        ]
        return _offsets(np.concatenate([own for own in counts if own is not None])), _offsets(np.concatenate(pairs))

    def place(self, node: int) -> tuple[int, int]:
        """Return the graph that a node belongs to, and its number in it."""
        i = int(np.searchsorted(self.node_offsets, node, side="right")) - 1
        return i, node - int(self.node_offsets[i])


def _offsets(lengths: Iterable[int] | IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(np.fromiter(lengths, np.int64))]).astype(np.int64)


def _checked_features(given: Any, name: str) -> Any:
    rows = as_features(given, name)
    if rows.shape[0] == 0:
        raise ValueError(f"{name} has no rows: a graph needs at least one node, and a node at least one candidate.")
    is_sparse: bool = sp.issparse(rows)
    rows = _frozen_rows(rows) if is_sparse else _frozen(rows)
    found = first_not_finite(rows)
    if found is not None:
        raise ValueError(f"{name} holds {found[1]} in row {found[0]}: features must be finite.")
    check_scale(rows, name)
    return rows


def _pair_blocks(pair_features: Iterable[ArrayLike], counts: IntArray, edges: NDArray[np.int32]) -> list[FloatArray]:
    """Return the features of the pairs of candidates of each edge, a row for each pair."""
    given = _as_list(pair_features, "pair_features", "an array of features for each edge")
    if len(given) != len(edges):
        raise ValueError(f"pair_features has {len(given)} arrays but there are {len(edges)} edges.")
    blocks: list[FloatArray] = []
    for e, part in enumerate(given):
        values = as_numbers(part, f"pair_features[{e}]")
        expected = tuple(int(counts[node]) for node in edges[e])
        if values.ndim != 3 or values.shape[:2] != expected or values.shape[2] == 0:
            raise ValueError(
                f"pair_features[{e}] has shape {values.shape}; expected {expected[0]} × {expected[1]} × features: a row for "
                "each pair of candidates."
            )
        blocks.append(values.reshape(-1, values.shape[2]))
        if blocks[e].shape[1] != blocks[0].shape[1]:
            raise ValueError(
                f"pair_features[{e}] has {blocks[e].shape[1]} features, but pair_features[0] has {blocks[0].shape[1]}."
            )
    return blocks


def _as_list(given: Any, name: str, expected: str) -> list[Any]:
    if isinstance(given, (str, bytes, Mapping)) or not isinstance(given, Iterable):
        raise TypeError(f"{name} is of type {type(given).__name__}; expected a list with {expected}.")
    return list(given)


def _stacked(matrices: list[Any]) -> Any:
    """Return matrices one below the other: CSR where one of them is sparse."""
    is_sparse = any(bool(sp.issparse(matrix)) for matrix in matrices)
    return sp.vstack(matrices, format="csr") if is_sparse else np.concatenate(matrices)


def _frozen_rows(rows: Any) -> sp.csr_array:
    """Return a CSR copy, entries of the same place added, that nobody changes after it was checked."""
    copied = sp.csr_array(rows, copy=True)
    if not copied.has_canonical_format:
        # In double precision: sums may leave a type of few bits.
        copied = copied.astype(np.float64)
        copied.sum_duplicates()
    for part in (copied.data, copied.indices, copied.indptr):
        part.flags.writeable = False
    return copied


def _checked_edge_features(given: ArrayLike, n_rows: int, name: str) -> FloatArray:
    check_places(given, name)
    is_sparse: bool = sp.issparse(given)
    matrix: Any = given
    rows = as_numbers(matrix.toarray() if is_sparse else matrix, name)
    if rows.ndim == 1:
        rows = rows[:, None]
    if rows.ndim != 2 or len(rows) != n_rows:
        raise ValueError(f"{name} has shape {rows.shape}; expected {n_rows} rows, one for each edge.")
    if n_rows and rows.shape[1] == 0:
        raise ValueError(f"{name} has no columns: leave it out for edges that all count the same.")
    found = first_not_finite(rows)
    if found is not None:
        raise ValueError(f"{name} holds {found[1]} in row {found[0]}: features must be finite.")
    check_scale(rows, name)
    return _frozen(rows)


def _frozen(values: NDArray[Any]) -> NDArray[Any]:
    """Return a copy that nobody changes after it was checked."""
    copied = np.array(values, order="C")
    copied.flags.writeable = False
    return copied


def _checked_weights(given: ArrayLike | None, n_nodes: int) -> FloatArray | None:
    if given is None:
        return None
    weights = as_numbers(given, "node_weights")
    if weights.shape != (n_nodes,):
        raise ValueError(f"node_weights has shape {weights.shape}; expected {n_nodes} finite numbers ≥ 0.")
    is_bad = ~(np.isfinite(weights) & (weights >= 0.0))
    if is_bad.any():
        node = int(np.argmax(is_bad))
        raise ValueError(f"node_weights[{node}] is {weights[node]:g}; expected a finite number ≥ 0.")
    check_losses(weights, "node_weights")
    return _frozen(weights)
