"""Mixes of two labellings by a graph cut, against all mixes."""

import itertools

import numpy as np
import pytest
from labelled_graphs import grid_edges, random_edges, random_graph

from maxmargin import _core

pytestmark = pytest.mark.core


def drawn(rng, kind):
    """A graph with scores, and two of its labellings."""
    counts = rng.integers(1, 5, size=rng.integers(1, 9))
    graph = random_graph(rng, counts, random_edges(rng, len(counts), int(rng.integers(0, 15))), kind)
    return graph, *(np.array([rng.integers(k) for k in counts], np.int32) for _ in range(2))


def mixed_scores(graph, kept, offered):
    choices = itertools.product([False, True], repeat=len(kept))
    return [graph.score(np.where(choice, offered, kept)) for choice in choices]


def likes_mixes(graph, kept, offered):
    """Whether some edge scores more with one label kept and one taken."""
    for e, (a, b) in enumerate(zip(graph.first, graph.second, strict=True)):
        table = graph.table(e)[np.ix_([kept[a], offered[a]], [kept[b], offered[b]])]
        if table[0, 0] + table[1, 1] < table[0, 1] + table[1, 0] - 1e-12:
            return True
    return False


@pytest.mark.parametrize("kind", ["table", "potts", "attractive"])
def test_a_mix_is_the_best_where_cuts_can_tell_and_never_worse_than_what_was_kept(kind):
    n_best = n_better = n_liking = 0
    for seed in range(300):
        graph, kept, offered = drawn(np.random.default_rng(seed), kind)
        mixed = _core.mix_labels(*graph.arguments, kept, offered)
        assert ((mixed == kept) | (mixed == offered)).all()
        score, best = graph.score(mixed), max(mixed_scores(graph, kept, offered))
        assert score >= graph.score(kept) - 1e-9
        if likes_mixes(graph, kept, offered):
            n_liking += 1
            n_better += score > graph.score(kept) + 1e-9
        else:
            assert score == pytest.approx(best, abs=1e-9)
            n_best += 1
    assert n_best > 30
    assert n_liking > 50
    assert n_better > 0.6 * n_liking


def test_what_is_kept_stays_where_nothing_is_better():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, [3] * 9, grid_edges(3, 3))
    kept = np.array(np.unravel_index(graph.all_scores().argmax(), [3] * 9), np.int32)
    for _ in range(20):
        offered = rng.integers(3, size=9).astype(np.int32)
        np.testing.assert_array_equal(_core.mix_labels(*graph.arguments, kept, offered), kept)


@pytest.mark.parametrize(
    ("kept", "offered", "text"),
    [([0], [0, 0], "kept"), ([0, 0], [0, 0, 0], "offered"), ([0, 2], [0, 0], "kept"), ([0, 0], [-1, 0], "offered")],
)
def test_labels_that_nodes_do_not_have_are_refused(kept, offered, text):
    graph = random_graph(np.random.default_rng(0), [2, 2], [[0, 1]])
    with pytest.raises(ValueError, match=text):
        _core.mix_labels(*graph.arguments, np.array(kept, np.int32), np.array(offered, np.int32))


@pytest.mark.parametrize("kind", ["attractive", "potts", "table"])
def test_long_searches_leave_no_label_that_could_still_be_offered(kind):
    """By one round of offers for every twenty passes, at the latest by the last."""
    for seed in range(5):
        graph = random_graph(np.random.default_rng(seed), [4] * 144, grid_edges(12, 12), kind)
        solver = _core.TreeReweighted(*graph.shape)
        solver.set_unary(graph.unary)
        solver.set_pairs(2.0 * graph.values, graph.offsets)
        graph.values *= 2.0
        labels = solver.run(max_iter=400, stall=0.0).labels
        for label in range(4):
            mixed = _core.mix_labels(*graph.arguments, labels, np.full(144, label, np.int32))
            assert graph.score(mixed) <= graph.score(labels) + 1e-9
