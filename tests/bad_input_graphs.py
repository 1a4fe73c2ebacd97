"""Bad and extreme graphs; rows of docs/bad_input.md."""

from __future__ import annotations

import numpy as np
from bad_input_kit import T, V, is_close, is_solved, refused, section, works
from sklearn.exceptions import NotFittedError

import maxmargin as mm

PAIR = mm.Graph([[1.0], [-1.0]], [[0, 1]])
TRIANGLE = mm.Graph([[1.0], [-1.0], [2.0]], [[0, 1], [1, 2], [0, 2]])
CANDIDATES = mm.Graph.from_candidates([np.ones((2, 1)), np.ones((3, 1))], [[0, 1]], [np.ones((2, 3, 1))])


def graph(x=(PAIR,), y=(("a", "b"),), **parameters):
    return mm.GraphSVM(**parameters).fit(list(x), list(y))


def labels_of(svm, x):
    return [labels.tolist() for labels in svm.predict(x)]


def parted():
    """Two parts without an edge between them, and a single node."""
    return mm.Graph([[3.0], [2.0], [-3.0], [-2.0], [4.0]], [[0, 1], [2, 3]])


# One case on a line or two, as in a table.
# fmt: off

section("Graphs: `mm.Graph`, `GraphSVM`")
refused("graph-none", "`[]`", V, "X is empty", lambda: graph([], []))
refused("graph-bare", "one graph, not a list", T, "expected a list of maxmargin.Graph",
        lambda: mm.GraphSVM().fit(PAIR, ["a", "b"]))
refused("graph-array", "an array in place of a graph", T, "X[0] is of type ndarray", lambda: graph([np.ones((2, 1))]))
refused("graph-no-nodes", "no nodes", V, "node_features has no rows", lambda: mm.Graph(np.zeros((0, 2)), []))
works("graph-no-edges", "`None` for the edges", "there are none", lambda: mm.Graph([[1.0]], None).n_edges == 0)
refused("graph-nan", "NaN in node features", V, "node_features holds nan in row 1", lambda: mm.Graph([[1.0], [np.nan]], []))
refused("graph-edge-inf", "inf in edge features", V, "edge_features holds inf in row 0",
        lambda: mm.Graph([[1.0], [2.0]], [[0, 1]], [[np.inf]]))
refused("graph-loop", "an edge from a node to itself", V, "edges[0] joins node 0 to itself", lambda: mm.Graph([[1.0]], [[0, 0]]))
refused("graph-out-of-range", "an edge to node 2 of two", V, "edges[1] is [1, 2]",
        lambda: mm.Graph([[1.0], [2.0]], [[0, 1], [1, 2]]))
refused("graph-negative", "an edge to node −1", V, "edges[0] is [0, -1]", lambda: mm.Graph([[1.0], [2.0]], [[0, -1]]))
refused("graph-half", "node numbers that are not whole", V, "expected pairs of node numbers",
        lambda: mm.Graph([[1.0], [2.0]], [[0.5, 1]]))
refused("graph-edge-rows", "features of two edges for one", V, "edge_features has shape",
        lambda: mm.Graph([[1.0], [2.0]], [[0, 1]], [[1.0], [2.0]]))
refused("graph-weights", "a node weight of −1", V, "node_weights[1] is -1",
        lambda: mm.Graph([[1.0], [2.0]], [], node_weights=[1, -1]))
refused("graph-types", "an edge type of −1", V, "edge_types must be numbers from 0",
        lambda: mm.Graph([[1.0], [2.0]], [[0, 1]], edge_types=[-1]))
refused("graph-widths", "graphs with different numbers of features", V, "all graphs need the same",
        lambda: graph([PAIR, mm.Graph([[1.0, 2.0]], [])], [["a", "b"], ["a"]]))
refused("graph-kinds", "graphs with and without candidates", V, "different kinds",
        lambda: graph([PAIR, CANDIDATES], [["a", "b"], [0, 0]]))
refused("graph-y-short", "one label for two nodes", V, "y[0] has 1 labels but X[0] has 2 nodes", lambda: graph(y=[["a"]]))
refused("graph-y-image", "the labels of a grid as an image", V, "give y.ravel()",
        lambda: graph([mm.Graph.grid(np.zeros((2, 3, 1)))], [np.zeros((2, 3), int)]))
refused("graph-y-candidate", "candidate 2 of two", V, "the node has 2 candidates", lambda: graph([CANDIDATES], [[2, 0]]))
refused("graph-cut", "`inference='cut'` where an edge likes disagreement", V, "Use TRW-S for such scores",
        lambda: mm.models.best_labelling([[0, 0], [0, 0]], [[0, 1]], [[[0, 1], [1, 0]]], inference="cut"))
refused("graph-forest", "`inference='forest'` for a graph with a cycle", V, "this one has a cycle",
        lambda: graph([TRIANGLE], [["a", "b", "a"]], inference="forest"))
refused("graph-enumeration", "`inference='enumeration'` for 30 nodes", V, "needs graphs with few labellings",
        lambda: graph([mm.Graph(np.ones((30, 1)), [])], [["a", "b"] * 15], inference="enumeration"))
refused("graph-slack", "`rescaling='slack'` for 30 nodes", V, "goes through all labellings",
        lambda: graph([mm.Graph(np.ones((30, 1)), [])], [["a", "b"] * 15], rescaling="slack"))
refused("graph-unfitted", "`GraphSVM().decision_function(X)` before `fit`", NotFittedError, "is not fitted yet",
        lambda: mm.GraphSVM().decision_function([PAIR]))
refused("graph-other-edges", "other edge features in prediction", V, "features of edges",
        lambda: graph().predict([mm.Graph([[1.0], [2.0]], [[0, 1]], [[1.0, 2.0]])]))
works("graph-single", "a graph of one node, without edges", "trained and labelled",
        lambda: labels_of(graph([mm.Graph([[3.0]], []), mm.Graph([[-3.0]], [])], [["a"], ["b"]], C=10.0),
                          [mm.Graph([[1.0]], [])]) == [["a"]])
works("graph-parts", "parts that do not hang together", "each labelled on its own",
        lambda: labels_of(graph([parted()], [["a", "a", "b", "b", "a"]], C=10.0), [parted()]) == [["a", "a", "b", "b", "a"]])
works("graph-one-candidate", "nodes with one candidate", "labelled with it",
        lambda: labels_of(graph([mm.Graph.from_candidates([np.ones((1, 1)), np.eye(2)[:, :1]], [], [])], [[0, 1]]),
                          [mm.Graph.from_candidates([np.ones((1, 1)), np.eye(2)[:, :1]], [], [])]) == [[0, 1]])
works("graph-parallel", "the same edge twice", "counts twice, as one with twice the features",
        lambda: is_close(graph([mm.Graph([[1.0], [-1.0]], [[0, 1], [1, 0]])], tol=1e-9).coef_,
                         graph([mm.Graph([[1.0], [-1.0]], [[0, 1]], [[2.0]])], tol=1e-9).coef_))
works("graph-one-label", "the same label at all nodes", "w = 0, an objective of 0", lambda: is_solved(graph(y=[["a", "a"]]), 0.0))
works("graph-weightless", "node weights of 0", "w = 0, an objective of 0: mistakes cost nothing",
        lambda: is_solved(graph([mm.Graph([[1.0], [-1.0]], [[0, 1]], node_weights=[0, 0])]), 0.0))
