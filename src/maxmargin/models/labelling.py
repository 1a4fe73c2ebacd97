"""The best labelling of one graph whose scores are given: what a model of one's own may search with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._feature_rows import as_array, as_numbers
from maxmargin.graphs import Graph
from maxmargin.models.pairwise import Pairwise

# Sums of scores must stay within double precision.
_LARGEST_SCORE = 1e100


class Labelling(NamedTuple):
    """Labels of the nodes of a graph.

    Attributes
    ----------
    labels : (n_nodes,) array of int
        The label of each node.
    score : float
        Their score.
    gap : float
        By how much another labelling may score more: 0 where this is the best one, NaN where nothing is known.
    method : str
        What found it: the ``inference`` that was asked for, or that "auto" took.
    """

    labels: NDArray[np.int32]
    score: float
    gap: float
    method: str


def best_labelling(
    scores: Sequence[ArrayLike],
    edges: ArrayLike = (),
    pair_scores: Sequence[ArrayLike] = (),
    *,
    inference: str = "auto",
    max_passes: int = 300,
    max_search_time: float | None = None,
) -> Labelling:
    """Return the labels of a graph's nodes with the highest sum of scores of nodes and edges.

    This is what :class:`Pairwise` searches with, for a :class:`maxmargin.Model` of your own: the loss of each label, where a loss
    is a sum over nodes, is added to the scores of its node.

    Parameters
    ----------
    scores : list of arrays of shape (labels of the node,)
        The scores of the labels of each node, which may have different numbers of them.
    edges : array of int of shape (n_edges, 2)
        The two nodes of each edge.
    pair_scores : list of arrays of shape (labels of the first, labels of the second)
        The scores of the pairs of labels of each edge.
    inference, max_passes, max_search_time
        As for :class:`Pairwise`.

    Returns
    -------
    Labelling
        The labels with their score, by how much another one may score more, and what found them.

    Examples
    --------
    >>> import maxmargin as mm
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> found = mm.models.best_labelling([[2.0, 0.0], [0.0, 0.5], [0.0, 0.5]], [[0, 1], [1, 2]], [agree, agree])
    >>> found.labels.tolist(), found.score, found.gap, found.method
    ([0, 0, 0], 4.0, 0.0, 'forest')
    """
    nodes = [_as_scores(values, f"scores[{i}]", 1)[:, None] for i, values in enumerate(scores)]
    if not nodes:
        raise ValueError("scores is empty: a graph needs at least one node.")
    tables = [_as_scores(table, f"pair_scores[{e}]", 2)[:, :, None] for e, table in enumerate(pair_scores)]
    ends = as_array(edges, "edges", "pairs of node numbers")
    if ends.size == 0:
        ends = np.zeros((0, 2), np.int32)
    if ends.ndim == 2:
        _check_tables(tables, [len(node) for node in nodes], ends)
    graph = Graph.from_candidates(nodes, ends, tables)
    model = Pairwise(None, inference=inference, max_passes=max_passes, max_search_time=max_search_time)
    model.n_features, model.n_edge_features = 1, 1 if tables else 0
    (labels,), searched = model.searched([graph], np.ones(1 + model.n_edge_features))
    score = sum(float(node[label, 0]) for node, label in zip(nodes, labels, strict=True))
    for (first, second), table in zip(graph.edges, tables, strict=True):
        score += float(table[labels[first], labels[second], 0])
    (method,) = searched.searches_by_method()
    return Labelling(labels, score, float(searched.shortfalls()[0]), method)


def _as_scores(values: ArrayLike, name: str, n_axes: int) -> NDArray[np.float64]:
    array = as_numbers(values, name)
    if array.ndim != n_axes or array.size == 0:
        expected = "one score for each label of the node" if n_axes == 1 else "one for each pair of labels"
        raise ValueError(f"{name} has shape {array.shape}; expected {expected}.")
    if not np.all(np.abs(array) <= _LARGEST_SCORE):
        worst = array[~(np.abs(array) <= _LARGEST_SCORE)][0]
        raise ValueError(f"{name} holds {worst:g}; expected finite numbers of at most {_LARGEST_SCORE:g}.")
    return array


def _check_tables(tables: list[NDArray[np.float64]], n_labels: list[int], edges: NDArray[Any]) -> None:
    """Refuse tables that do not fit the labels of their edges' ends; what is wrong with edges is said later."""
    if len(tables) != len(edges):
        raise ValueError(f"pair_scores has {len(tables)} tables but there are {len(edges)} edges.")
    for e, (table, ends) in enumerate(zip(tables, edges.tolist(), strict=True)):
        known = [n_labels[node] for node in ends if isinstance(node, int) and 0 <= node < len(n_labels)]
        if len(known) == 2 and list(table.shape[:2]) != known:
            raise ValueError(
                f"pair_scores[{e}] is {table.shape[0]} × {table.shape[1]}, but nodes {ends[0]} and {ends[1]} have {known[0]} "
                f"and {known[1]} labels."
            )
