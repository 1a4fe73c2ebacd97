"""The best labelling of forests and of small graphs, against all labellings written out with NumPy."""

import time

import numpy as np
import pytest
from labelled_graphs import Graph, forest_edges, labellings, random_edges, random_graph

from maxmargin import _core

pytestmark = pytest.mark.core

KINDS = ["table", "shared", "potts", "attractive"]
# Tables of these widths have strips of every number of vectors, of two, four or eight numbers, whole and in part.
WIDTHS = [1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 19, 23, 24, 28, 30, 32, 33, 40, 47, 49, 57, 64, 66]


def check(graph, labels, score):
    best, rounding = graph.best_score(), 1e-13 * graph.magnitude()
    assert labels.dtype == np.int32
    assert score == pytest.approx(best, rel=0, abs=rounding)
    assert graph.score(labels) == pytest.approx(score, rel=0, abs=rounding)


@pytest.mark.parametrize("scale", [1e-150, 1.0, 1e150])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_labelling_of_a_forest_is_that_of_enumeration(kind, scale):
    for seed in range(60):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        counts = rng.integers(1, 5, size=rng.integers(1, 9))
        graph = random_graph(rng, counts, forest_edges(rng, len(counts)), kind, scale, ties=seed % 3 == 0)
        check(graph, *_core.best_in_forest(*graph.arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_enumeration_is_right_on_any_graph(kind):
    for seed in range(60):
        rng = np.random.default_rng([seed, KINDS.index(kind), 1])
        counts = rng.integers(1, 5, size=rng.integers(1, 8))
        graph = random_graph(rng, counts, random_edges(rng, len(counts), rng.integers(12)), kind, ties=seed % 3 == 0)
        check(graph, *_core.best_by_enumeration(*graph.arguments))


@pytest.mark.parametrize("n_first", WIDTHS)
def test_messages_through_tables_of_any_shape_are_right(n_first):
    for n_second in WIDTHS:
        rng = np.random.default_rng([n_first, n_second])
        edges = [[0, 1], [2, 1]] if (n_first + n_second) % 2 else [[1, 0], [1, 2]]
        graph = random_graph(rng, [n_first, n_second, 2], edges)
        check(graph, *_core.best_in_forest(*graph.arguments))


def test_of_equal_labellings_enumeration_takes_the_first():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, [2, 3, 2, 3], random_edges(rng, 4, 6), "potts", ties=True)
        scores = graph.all_scores().ravel()
        assert (
            tuple(_core.best_by_enumeration(*graph.arguments)[0])
            == labellings(graph.counts)[np.flatnonzero(scores == scores.max())[0]]
        )


def test_the_same_forest_gives_the_same_labels():
    rng = np.random.default_rng(5)
    graph = random_graph(rng, [3] * 40, forest_edges(rng, 40), "potts", ties=True)
    labels = [_core.best_in_forest(*graph.arguments)[0] for _ in range(3)]
    assert (labels[0] == labels[1]).all()
    assert (labels[0] == labels[2]).all()


def test_without_edges_every_node_takes_its_first_best_label():
    graph = Graph(np.array([3, 1, 2]), *np.zeros((2, 0), np.int32), np.array([1.0, 2, 2, -5, 0, 0]), np.zeros(0), None)
    for best in (_core.best_in_forest, _core.best_by_enumeration):
        labels, score = best(*graph.arguments)
        assert labels.tolist() == [1, 0, 0]
        assert score == -3.0


def test_a_graph_without_nodes_has_one_labelling():
    nothing = np.zeros(1, np.int64), *np.zeros((2, 0), np.int32), np.zeros(0), np.zeros(0)
    for best in (_core.best_in_forest, _core.best_by_enumeration):
        labels, score = best(*nothing)
        assert len(labels) == score == 0


def test_a_long_chain_is_decoded_in_linear_time():
    n = 200_000
    rng = np.random.default_rng(0)
    edges = np.column_stack([np.arange(n - 1), np.arange(1, n)])
    graph = random_graph(rng, np.full(n, 3), edges, "shared")
    start = time.process_time()
    labels, score = _core.best_in_forest(*graph.arguments)
    assert time.process_time() - start < 5.0
    table, node = graph.values.reshape(3, 3), graph.unary.reshape(n, 3)
    alpha = node[0]
    for t in range(1, n):
        alpha = (alpha[:, None] + table).max(axis=0) + node[t]
    assert score == pytest.approx(alpha.max(), rel=1e-10)
    assert len(labels) == n


def test_a_million_nodes_of_one_label_are_enumerated():
    n = 1_000_000
    arguments = np.arange(n + 1), *np.zeros((2, 0), np.int32), np.ones(n), np.zeros(0)
    assert _core.best_by_enumeration(*arguments)[1] == n


def test_a_cycle_is_refused():
    graph = random_graph(np.random.default_rng(0), [2, 2, 2], [[0, 1], [1, 2], [2, 0]])
    with pytest.raises(ValueError, match="has a cycle"):
        _core.best_in_forest(*graph.arguments)


def test_too_many_labellings_are_refused():
    rng = np.random.default_rng(0)
    for counts in ([2] * 25, [2**13, 2**12], [2] * 10 + [1] * 40_000):
        graph = random_graph(rng, counts, [[0, 1]], "potts")
        with pytest.raises(ValueError, match=r"too many labellings to enumerate.* more than 33554432"):
            _core.best_by_enumeration(*graph.arguments)


# What is wrong with the arrays of a graph of nodes with two and three labels and one edge.
WRONG = {
    "offsets from 1": ({"label_offsets": [1, 2, 5]}, "label_offsets must begin with 0"),
    "no offsets": ({"label_offsets": []}, "label_offsets must begin with 0"),
    "node without labels": ({"label_offsets": [0, 2, 2]}, "node 1 has no labels"),
    "offsets that fall": ({"label_offsets": [0, 5, 2]}, "node 1 has no labels"),
    "labels beyond int": ({"label_offsets": [0, 2, 2**40]}, "node 1 more than"),
    "ends of unequal number": ({"first": [0, 1]}, "second has 1 entries, expected 2"),
    "node beyond the last": ({"second": [2]}, "second node 2 at place 0 is out of range"),
    "node before the first": ({"first": [-1]}, "first node -1"),
    "edge to itself": ({"first": [1]}, "edge 0 joins node 1 to itself"),
    "too few unary scores": ({"unary": [1.0, 2.0]}, "unary has 2 entries, expected 5"),
    "unary score that is no number": ({"unary": [1.0, 2.0, np.nan, 0.0, 0.0]}, "unary holds nan at place 2"),
    "unary score without end": ({"unary": [1.0, 2.0, 0.0, np.inf, 0.0]}, "unary holds inf at place 3"),
    "unary score that may overflow": ({"unary": [1.0, 2.0, 0.0, 1e201, 0.0]}, "at most 1e200"),
    "pair score that is no number": ({"pair_values": [0.0] * 5 + [np.nan]}, "pair_values holds nan at place 5"),
    "too few tables": ({"table_offsets": []}, "table_offsets has 0 entries, expected 1"),
    "table before the first": ({"table_offsets": [-1]}, "table of edge 0 begins at -1"),
    "table beyond the last": ({"table_offsets": [1]}, "has 2 × 3 entries, but pair_values has 6"),
    "table far beyond the last": ({"table_offsets": [2**62]}, "table of edge 0 begins at"),
    "too many Potts scores": ({"table_offsets": None}, "pair_values has 6 entries, expected 1"),
}
TYPES = {
    "label_offsets": np.int64,
    "first": np.int32,
    "second": np.int32,
    "unary": float,
    "pair_values": float,
    "table_offsets": np.int64,
}
RIGHT = {
    "label_offsets": [0, 2, 5],
    "first": [0],
    "second": [1],
    "unary": [0.0] * 5,
    "pair_values": [0.0] * 6,
    "table_offsets": [0],
}


@pytest.mark.parametrize("wrong", WRONG)
def test_arrays_that_do_not_fit_are_refused_everywhere(wrong):
    changes, text = WRONG[wrong]
    arrays = {
        name: None if value is None else np.array(value, TYPES[name]) for name, value in (RIGHT | changes).items()
    }

    def tree_reweighted(label_offsets, first, second, unary, pair_values, table_offsets):
        solver = _core.TreeReweighted(label_offsets, first, second)
        solver.set_unary(unary)
        solver.set_pairs(pair_values, table_offsets)

    calls = [
        _core.best_in_forest,
        _core.best_by_enumeration,
        lambda **arrays: _core.m_best_labellings(**arrays, n_best=2),
        tree_reweighted,
    ]
    for call in calls:
        with pytest.raises(ValueError, match=text):
            call(**arrays)
