"""Moves over forests make the labellings of TRW-S better: nothing near the one returned scores more."""

import itertools
import time
from dataclasses import replace

import numpy as np
import pytest
from labelled_graphs import grid_edges, random_edges, random_graph
from test_trws import check_sandwich, solver_of

from maxmargin import _core

pytestmark = pytest.mark.core

KINDS = ["table", "shared", "potts", "attractive"]


def hard_graph(rng, counts, edges, kind="table"):
    """Pairs that weigh more than nodes."""
    graph = random_graph(rng, counts, edges, kind)
    return replace(graph, values=2.0 * graph.values)


def complete_edges(n_nodes):
    return np.array(list(itertools.combinations(range(n_nodes), 2)), np.int32)


def gain_of_changing(graph, labels, nodes):
    """By how much other labels of these nodes score more, those of all others being as they are."""
    best = score = graph.score(labels)
    changed = np.array(labels)
    for own in itertools.product(*(range(graph.counts[i]) for i in nodes)):
        changed[list(nodes)] = own
        best = max(best, graph.score(changed))
    return best - score


@pytest.mark.parametrize("max_iter", [1, 10, 25])
@pytest.mark.parametrize("kind", KINDS)
def test_no_label_of_a_single_node_is_better(kind, max_iter):
    for seed in range(15):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        n_nodes = int(rng.integers(5, 25))
        counts = np.full(n_nodes, 2) if seed % 3 == 0 else rng.integers(1, 5, size=n_nodes)
        graph = hard_graph(rng, counts, random_edges(rng, n_nodes, 3 * n_nodes), kind)
        labels = solver_of(graph).run(max_iter=max_iter, stall=0.0).labels
        for node in range(n_nodes):
            assert gain_of_changing(graph, labels, [node]) <= 1e-10 * graph.magnitude()


def test_no_labels_of_a_row_of_a_grid_are_better():
    """The first row is in the first forest of a grid."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = hard_graph(rng, [3] * 30, grid_edges(6, 5))
        labels = solver_of(graph).run(max_iter=1).labels
        assert gain_of_changing(graph, labels, range(5)) <= 1e-10 * graph.magnitude()


def test_graphs_with_more_links_than_forests_cover_move_node_by_node():
    """A forest has two nodes of a complete graph, and all forests eight."""
    for seed in range(10):
        graph = hard_graph(np.random.default_rng(seed), [3] * 30, complete_edges(30))
        labels = solver_of(graph).run(max_iter=1).labels
        for node in range(30):
            assert gain_of_changing(graph, labels, [node]) <= 1e-10 * graph.magnitude()


def test_labels_that_few_nodes_have_are_left_to_the_other_moves():
    """No cut of the whole graph is made for them."""
    counts = np.full(100, 2)
    counts[7] = 200
    graph = hard_graph(np.random.default_rng(0), counts, grid_edges(10, 10), "potts")
    labels = solver_of(graph).run(max_iter=40, stall=0.0).labels
    assert gain_of_changing(graph, labels, [7]) <= 1e-10 * graph.magnitude()


def test_scores_and_bounds_still_hold_the_best_between_them():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = hard_graph(rng, [3] * 9, grid_edges(3, 3), KINDS[seed % 4])
        check_sandwich(graph, solver_of(graph).run(max_iter=1 + seed % 12, stall=0.0))


def test_a_labelling_made_better_may_close_the_search():
    """Which is then called closed, by the moves that are made after the last pass."""
    n_closed = 0
    for seed in range(60):
        graph = hard_graph(np.random.default_rng(seed), [3] * 9, grid_edges(3, 3))
        result = solver_of(graph).run(max_iter=30, stall=0.0)
        if result.bound - result.score <= 1e-9:
            assert result.status == "closed"
            n_closed += 1
    assert n_closed > 10


def test_moves_give_what_they_gave_before():
    graph = hard_graph(np.random.default_rng(0), [4] * 400, grid_edges(20, 20))
    one, other = (solver_of(graph).run(max_iter=12, stall=0.0) for _ in range(2))
    np.testing.assert_array_equal(one.labels, other.labels)
    # Of the runs that this one is made of, the last begins with what the others found.
    solver = solver_of(graph)
    scores = [solver.run(max_iter=1, stall=0.0).score for _ in range(12)]
    assert scores == sorted(scores)


@pytest.mark.parametrize("seed", [1473, 17811])
def test_large_scores_that_cancel_do_not_move_for_ever(seed):
    """Sums are small, what they rounded by is not, and looked like a gain again and again in these two."""
    rng = np.random.default_rng(seed)
    side, n_labels = int(rng.integers(3, 7)), int(rng.integers(2, 5))
    kind = ["table", "potts", "shared"][(seed + 1) % 3]
    graph = random_graph(rng, [n_labels] * side**2, grid_edges(side, side), kind)
    size = 10.0 ** rng.integers(10, 19)
    graph.unary += np.repeat(rng.choice([size, -size, 0], side**2), n_labels)
    if seed % 2 == 0:
        graph.values += rng.choice([size, -size, 0], len(graph.values))
    start = time.process_time()
    solver_of(graph).run(max_iter=12, stall=0.0, max_seconds=10.0)
    # A hundredth of a second, or all the time there is.
    assert time.process_time() - start < 5.0


def test_moves_keep_a_time_limit():
    graph = hard_graph(np.random.default_rng(0), [20] * 90_000, grid_edges(300, 300), "potts")
    solver = solver_of(graph)
    start = time.process_time()
    assert solver.run(max_iter=1, max_seconds=0.0).n_iter == 1
    one_iteration = time.process_time() - start
    start = time.process_time()
    solver.run(max_iter=1, max_seconds=0.0)
    assert time.process_time() - start < 5 * one_iteration + 0.5


def test_forbidden_labels_are_not_moved_to():
    """The search for the next best labelling forbids labels of those found before."""
    for seed in range(20):
        graph = hard_graph(np.random.default_rng(seed), [3] * 16, grid_edges(4, 4))
        labels, scores, *_ = _core.m_best_labellings(*graph.arguments, 6, "trws", 2)
        assert len(np.unique(labels, axis=0)) == 6
        assert np.isfinite(scores).all()
