"""The M best labellings, against all labellings sorted by score."""

import signal
import time

import numpy as np
import pytest
from labelled_graphs import forest_edges, grid_edges, labellings, random_edges, random_graph

import maxmargin as mm
from maxmargin import _core

pytestmark = pytest.mark.core

KINDS = ["table", "shared", "potts", "attractive"]


def graph_of(method, kind, seed):
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    counts = rng.integers(1, 4, size=rng.integers(1, 7))
    is_forest = method == "forest"
    edges = forest_edges(rng, len(counts)) if is_forest else random_edges(rng, len(counts), rng.integers(0, 8))
    return random_graph(rng, counts, edges, kind, ties=seed % 3 == 0)


def check_list(graph, labels, scores):
    """No labelling twice, scores as given and descending, and right up to rounding."""
    assert labels.shape == (len(scores), len(graph.counts))
    assert len(set(map(tuple, labels.tolist()))) == len(scores)
    np.testing.assert_allclose([graph.score(y) for y in labels], scores, atol=1e-12)
    assert (np.diff(scores) <= 0.0).all()


@pytest.mark.parametrize("method", ["forest", "enumeration", "auto"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_m_best_are_those_of_enumeration(kind, method):
    for seed in range(40):
        graph = graph_of(method, kind, seed)
        expected = np.sort(graph.all_scores().ravel())[::-1]
        for n_best in (1, 2, 7, len(expected) + 5):
            labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, n_best, method=method)
            assert is_exact
            check_list(graph, labels, scores)
            np.testing.assert_allclose(scores, expected[:n_best], atol=1e-12)


@pytest.mark.parametrize("kind", ["attractive", "table"])
def test_the_m_best_by_cuts_are_those_of_enumeration(kind):
    for seed in range(60):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 3, size=rng.integers(1, 9))
        edges = random_edges(rng, len(counts), rng.integers(0, 12))
        graph = random_graph(rng, counts, edges, kind, scale=rng.choice([0.1, 1.0, 10.0]), ties=seed % 3 == 0)
        if kind == "table":
            for a, b, begin in zip(graph.first, graph.second, graph.offsets, strict=True):
                if counts[a] == counts[b] == 2:
                    table = graph.values[begin : begin + 4]
                    table[0] += max(0.0, table[1] + table[2] - table[0] - table[3])
        expected = np.sort(graph.all_scores().ravel())[::-1]
        for n_best in (1, 2, 7, len(expected) + 5):
            labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, n_best, method="cut")
            assert is_exact
            check_list(graph, labels, scores)
            np.testing.assert_allclose(scores, expected[:n_best], atol=1e-9)


@pytest.mark.parametrize(("scale", "offset"), [(1e-18, 0.0), (1e20, 0.0), (1.0, 1e14)])
def test_the_m_best_by_cuts_at_any_scale(scale, offset):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, [2] * 5, random_edges(rng, 5, 6), "attractive", ties=True)
        graph.unary[:] = scale * graph.unary + offset
        graph.values *= scale
        expected = np.sort(graph.all_scores().ravel())[::-1]
        labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, 32, method="cut")
        assert is_exact
        assert len(set(map(tuple, labels.tolist()))) == 32
        np.testing.assert_allclose(scores, expected, rtol=1e-14, atol=1e-14 * scale)


@pytest.mark.parametrize("kind", KINDS)
def test_tree_reweighted_lists_are_right_where_they_are_called_exact(kind):
    n_exact = 0
    for seed in range(30):
        graph = graph_of("trws", kind, seed)
        expected = np.sort(graph.all_scores().ravel())[::-1]
        labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, 8, method="trws", max_iter=200)
        check_list(graph, labels, scores)
        assert len(scores) == min(8, len(expected))
        assert (scores <= expected[: len(scores)] + 1e-9).all()
        if is_exact:
            np.testing.assert_allclose(scores, expected[:8], atol=1e-7)
            n_exact += 1
    assert n_exact >= 15


@pytest.mark.parametrize("kind", KINDS)
def test_tree_reweighted_lists_of_grids_are_those_of_enumeration(kind):
    n_exact = 0
    for seed in range(12):
        graph = random_graph(np.random.default_rng(seed), [3] * 9, grid_edges(3, 3), kind, ties=seed % 3 == 0)
        expected = np.sort(graph.all_scores().ravel())[::-1]
        for n_best in (2, 30):
            labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, n_best, method="trws")
            check_list(graph, labels, scores)
            assert len(scores) == n_best
            assert (scores <= expected[:n_best] + 1e-9).all()
            if is_exact:
                np.testing.assert_allclose(scores, expected[:n_best], atol=1e-7)
                n_exact += 1
    assert n_exact >= 12


def test_lists_are_not_called_exact_where_an_open_search_hid_a_better_labelling():
    """Few iterations and scores that tie: bounds are met by labellings that searches miss."""
    n_open = 0
    for seed in range(1000):
        rng = np.random.default_rng([seed, 5])
        n_nodes = rng.integers(6, 11)
        edges = random_edges(rng, n_nodes, rng.integers(n_nodes, 2 * n_nodes + 8))
        counts = [2 if n_nodes > 7 else 3] * n_nodes
        graph = random_graph(rng, counts, edges, rng.choice(["table", "potts"]), ties=True)
        n_best = rng.integers(2, 6)
        labels, scores, is_exact = _core.m_best_labellings(
            *graph.arguments, n_best, method="trws", max_iter=rng.integers(1, 4)
        )
        check_list(graph, labels, scores)
        if is_exact:
            np.testing.assert_allclose(scores, np.sort(graph.all_scores().ravel())[::-1][:n_best], atol=1e-9)
        n_open += not is_exact
    assert n_open >= 100


def test_a_list_of_all_labellings_is_exact_whatever_searches_are():
    for seed in range(10):
        graph = random_graph(np.random.default_rng(seed), [2] * 6, grid_edges(2, 3), "table")
        graph.values *= 5.0
        labels, scores, is_exact = _core.m_best_labellings(*graph.arguments, 100, method="trws", max_iter=1)
        assert is_exact
        check_list(graph, labels, scores)
        np.testing.assert_allclose(scores, np.sort(graph.all_scores().ravel())[::-1], atol=1e-12 * graph.magnitude())


@pytest.mark.parametrize("size", [1e6, 1e18, 1e60])
def test_tree_reweighted_lists_name_no_labelling_twice_however_large_scores_are(size):
    """Labels found before are forbidden by a score that must not be lost beside the others."""
    for seed in range(10):
        graph = random_graph(np.random.default_rng(seed), [3] * 9, grid_edges(3, 3))
        graph.unary += size
        labels, scores, _ = _core.m_best_labellings(*graph.arguments, 5, method="trws")
        assert len(np.unique(labels, axis=0)) == 5
        assert np.isfinite(scores).all()


def test_a_list_of_an_open_search_is_not_called_exact():
    rng = np.random.default_rng(1)
    graph = random_graph(rng, [2] * 9, grid_edges(3, 3), "potts")
    graph.values *= 5.0
    _, _, is_exact = _core.m_best_labellings(*graph.arguments, 3, method="trws", max_iter=1)
    assert not is_exact


def test_all_labellings_tie_and_all_are_listed():
    graph = random_graph(np.random.default_rng(0), [3, 2, 4], [[0, 1], [1, 2]], "potts")
    graph.unary[:], graph.values[:] = 1.0, 0.0
    for method in ("forest", "enumeration", "trws"):
        labels, scores, _ = _core.m_best_labellings(*graph.arguments, 100, method=method)
        assert sorted(map(tuple, labels.tolist())) == labellings(graph.counts)
        assert (scores == 3.0).all()


def test_lists_are_the_same_every_time():
    graph = random_graph(np.random.default_rng(2), [3] * 6, grid_edges(2, 3), "potts", ties=True)
    first, second = (_core.m_best_labellings(*graph.arguments, 50)[0] for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_long_chains_give_long_lists_quickly():
    n = 300
    rng = np.random.default_rng(0)
    graph = random_graph(rng, [4] * n, np.column_stack([np.arange(n - 1), np.arange(1, n)]))
    start = time.process_time()
    labels, scores, _ = _core.m_best_labellings(*graph.arguments, 300)
    assert time.process_time() - start < 5.0
    assert len(set(map(tuple, labels.tolist()))) == 300
    assert (np.diff(scores) <= 0.0).all()


CYCLE = random_graph(np.random.default_rng(0), [2] * 3, [[0, 1], [1, 2], [2, 0]])
DISLIKE = random_graph(np.random.default_rng(0), [2] * 3, [[0, 1], [1, 2], [2, 0]], "attractive")
DISLIKE.values[:] = -1.0
WRONG = {
    "none": (lambda: _core.m_best_labellings(*CYCLE.arguments, 0), "n_best is 0"),
    "method": (lambda: _core.m_best_labellings(*CYCLE.arguments, 2, method="cuts"), "found 'cuts'"),
    "disagreement": (lambda: _core.m_best_labellings(*DISLIKE.arguments, 2, method="cut"), "Use TRW-S"),
    "cycle": (lambda: _core.m_best_labellings(*CYCLE.arguments, 2, method="forest"), "needs a graph without cycles"),
    "iterations": (lambda: _core.m_best_labellings(*CYCLE.arguments, 2, max_iter=-1), "max_iter is -1"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_requests_are_refused(wrong):
    call, text = WRONG[wrong]
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(("method", "size", "n_labels"), [("enumeration", (4, 5), 2), ("trws", (10, 10), 8)])
def test_ctrl_c_ends_a_long_list(method, size, n_labels):
    edges = grid_edges(*size)
    graph = random_graph(np.random.default_rng(0), [n_labels] * (size[0] * size[1]), edges)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    start = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            _core.m_best_labellings(*graph.arguments, 10_000, method=method)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < 2.0


def complete_graphs(rng, n_graphs, n_nodes, n_labels):
    edges = [(a, b) for a in range(n_nodes) for b in range(a + 1, n_nodes)]
    X = [mm.Graph(rng.normal(size=(n_nodes, 2)), edges, rng.normal(size=(len(edges), 2))) for _ in range(n_graphs)]
    return X, [rng.integers(0, n_labels, size=n_nodes) for _ in X]


def test_several_labellings_are_enumerated_where_that_is_asked_for():
    """The graphs have 6,561 labellings, more than are enumerated unasked."""
    X, Y = complete_graphs(np.random.default_rng(0), 2, 8, 3)
    model = mm.models.Pairwise(3, edges="full", inference="enumeration")
    cuts = {"cache_size": 0, "cuts_per_iteration": 2, "extra_cuts": "m-best"}
    several = mm.train(model, X, Y, 100.0, solver="one-slack", solver_options=cuts).certificate
    one = mm.train(model, X, Y, 100.0, solver="one-slack").certificate
    assert several.exact
    assert several.dual <= one.primal * (1 + 1e-9)
    assert one.dual <= several.primal * (1 + 1e-9)
    w = np.random.default_rng(1).normal(size=model.n_weights)
    for several_of_one, best in zip(model.k_best(X, w, 3), model.predict(X, w), strict=True):
        np.testing.assert_array_equal(several_of_one[0][0], best)


@pytest.mark.parametrize("inference", ["trws", "enumeration"])
def test_scores_beyond_the_range_of_numbers_are_not_called_exact(inference):
    X, _ = complete_graphs(np.random.default_rng(2), 3, 8, 3)
    model = mm.models.Pairwise(3, edges="full", inference=inference)
    model.n_features = model.n_edge_features = 2
    w = 3e307 * np.random.default_rng(3).normal(size=model.n_weights)
    with np.errstate(all="ignore"), pytest.warns(mm.InexactPredictionWarning):
        lists = model.k_best(X, w, 3)
    assert len(lists) == 3


@pytest.mark.parametrize(("inference", "message"), [("forest", "graph 1: .*cycle"), ("cut", "graph 1: ")])
def test_a_method_that_cannot_serve_a_graph_is_refused_for_several_labellings_too(inference, message):
    rng = np.random.default_rng(0)
    chain = mm.Graph(rng.normal(size=(3, 2)), [(0, 1), (1, 2)], np.ones((2, 1)))
    circle = mm.Graph(rng.normal(size=(3, 2)), [(0, 1), (1, 2), (2, 0)], -np.ones((3, 1)))
    model = mm.models.Pairwise(2, edges="potts", inference=inference)
    model.n_features, model.n_edge_features = 2, 1
    with pytest.raises(ValueError, match=message):
        model.k_best([chain, circle], np.ones(9), 2)


def test_the_scores_of_trees_do_not_hide_what_the_rest_leaves_open():
    rng = np.random.default_rng(3)
    edges = [(a, b) for a in range(7) for b in range(a + 1, 7)]
    unary, pairs = [rng.normal(size=(3, 1)) for _ in range(7)], [rng.normal(size=(3, 3, 1)) for _ in edges]
    model = mm.models.Pairwise(None, inference="trws")
    model.n_features = model.n_edge_features = 1
    alone = mm.Graph.from_candidates(unary, edges, pairs)
    beside = mm.Graph.from_candidates([*unary, np.array([[1e10], [0.0]])], edges, pairs)
    _, gaps = model.predict_with_gaps([alone, beside], np.ones(2))
    assert gaps[0] > 1.0
    assert gaps[1] == pytest.approx(gaps[0], abs=1e-3)
