"""The best labelling of one graph whose scores are given: what a model of one's own may search with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin.graphs import Graph
from maxmargin.models.pairwise import Pairwise


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
    """

    labels: NDArray[np.int32]
    score: float
    gap: float


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
        The labels with their score, and by how much another one may score more.

    Examples
    --------
    >>> import maxmargin as mm
    >>> agree = [[1.0, 0.0], [0.0, 1.0]]
    >>> found = mm.models.best_labelling([[2.0, 0.0], [0.0, 0.5], [0.0, 0.5]], [[0, 1], [1, 2]], [agree, agree])
    >>> found.labels.tolist(), found.score, found.gap
    ([0, 0, 0], 4.0, 0.0)
    """
    nodes = [_as_scores(values, f"scores[{i}]", 1)[:, None] for i, values in enumerate(scores)]
    tables = [_as_scores(table, f"pair_scores[{e}]", 2)[:, :, None] for e, table in enumerate(pair_scores)]
    ends = np.asarray(edges)
    graph = Graph.from_candidates(nodes, ends.reshape(-1, 2) if ends.size == 0 else ends, tables)
    model = Pairwise(None, inference=inference, max_passes=max_passes, max_search_time=max_search_time)
    model.n_features, model.n_edge_features = 1, 1 if tables else 0
    found, gaps = model.predict_with_gaps([graph], np.ones(1 + model.n_edge_features))
    labels = found[0]
    score = sum(float(node[label, 0]) for node, label in zip(nodes, labels, strict=True))
    for (first, second), table in zip(graph.edges, tables, strict=True):
        score += float(table[labels[first], labels[second], 0])
    return Labelling(labels, score, float(gaps[0]))


def _as_scores(values: ArrayLike, name: str, n_axes: int) -> NDArray[np.float64]:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != n_axes or array.size == 0:
        expected = "one score for each label of the node" if n_axes == 1 else "one for each pair of labels"
        raise ValueError(f"{name} has shape {array.shape}; expected {expected}.")
    return array
