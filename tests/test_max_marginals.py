"""Max-marginals of graphs, against all labellings and against searches in which a label is forced."""

import itertools
import signal
import time

import numpy as np
import pytest
from labelled_graphs import forest_edges, grid_edges, random_edges, random_graph
from sklearn.exceptions import NotFittedError

import maxmargin as mm

pytestmark = pytest.mark.core


def with_candidates(graph):
    """The graph as one of candidates, whose features are the scores."""
    offsets = graph.shape[0]
    unary = [graph.unary[a:b, None] for a, b in itertools.pairwise(offsets)]
    tables = [graph.table(e)[:, :, None] for e in range(len(graph.first))]
    return mm.Graph.from_candidates(unary, np.column_stack([graph.first, graph.second]), tables)


def scoring_model(n_labels, inference, **parameters):
    model = mm.models.Pairwise(n_labels, inference=inference, **parameters)
    model.n_features = model.n_edge_features = 1
    return model


def check_against_enumeration(graph, inference):
    (found,) = scoring_model(None, inference).max_marginals([with_candidates(graph)], np.ones(2))
    assert [len(of_node) for of_node in found] == list(graph.counts)
    np.testing.assert_allclose(np.concatenate(found), graph.max_marginals(), atol=1e-12 * graph.magnitude())


@pytest.mark.parametrize("kind", ["table", "shared", "potts", "attractive"])
@pytest.mark.parametrize("inference", ["forest", "enumeration", "auto"])
def test_max_marginals_are_those_of_enumeration(inference, kind):
    for seed in range(20):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 4, size=rng.integers(1, 7))
        edges = forest_edges if inference == "forest" else lambda rng, n: random_edges(rng, n, rng.integers(0, 8))
        check_against_enumeration(
            random_graph(rng, counts, edges(rng, len(counts)), kind, ties=seed % 3 == 0), inference
        )


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0, 1e6])
def test_max_marginals_by_cuts_are_those_of_enumeration(scale):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        counts = rng.integers(1, 3, size=rng.integers(1, 10))
        edges = random_edges(rng, len(counts), rng.integers(0, 14))
        check_against_enumeration(
            random_graph(rng, counts, edges, "attractive", scale=scale, ties=seed % 3 == 0), "cut"
        )


def noisy_grid(strength, size, seed=0):
    """A grid of two labels, of which label 1 gains by its node's feature, and the weights of its model."""
    rng = np.random.default_rng(seed)
    graph = mm.Graph.grid(rng.normal(size=(size, size, 1)))
    model = scoring_model(2, "auto")
    return graph, model, model.join(coef=np.array([[0.0], [1.0]]), edge_coef=np.full((1, 1, 1), strength))


@pytest.mark.parametrize("strength", [0.1, 0.4, 1.0, 3.0, 30.0])
def test_max_marginals_of_grids_are_those_of_forced_labels(strength):
    graph, model, w = noisy_grid(strength, 12)
    (found,) = model.max_marginals([graph], w)
    (best,) = model.predict([graph], w)
    np.testing.assert_array_equal(found.argmax(axis=1), best)
    large = 1e3 * (1.0 + strength)
    for node in range(0, graph.n_nodes, 5):
        for label in (0, 1):
            features = np.array(graph.rows)
            features[node] = large if label else -large
            ((_, scores),) = model.k_best([mm.Graph(features, graph.edges)], w, 1)
            forced = scores[0] - label * (large - float(graph.rows[node, 0]))
            assert found[node, label] == pytest.approx(forced, abs=1e-9 * large)


def test_the_second_best_labelling_is_the_least_switch():
    graph, model, w = noisy_grid(0.7, 20)
    (found,) = model.max_marginals([graph], w)
    ((labels, scores),) = model.k_best([graph], w, 2)
    costs = found.max() - found.min(axis=1)
    assert scores[0] - scores[1] == pytest.approx(costs.min(), abs=1e-9)
    assert labels[0][costs.argmin()] != labels[1][costs.argmin()]


def test_open_searches_warn_and_keep_the_best_score_in_every_row():
    rng = np.random.default_rng(0)
    ring = [(i, (i + step) % 12) for i in range(12) for step in (1, 3, 5)]
    graph = mm.Graph(rng.normal(size=(12, 2)), ring, rng.normal(size=(36, 2)))
    model = mm.models.Pairwise(3, edges="full", max_passes=2)
    model.n_features = model.n_edge_features = 2
    w = rng.normal(size=model.n_weights)
    with pytest.warns(mm.InexactPredictionWarning, match="did not close"):
        (found,) = model.max_marginals([graph], w)
    assert len(set(found.max(axis=1))) == 1
    exact = mm.models.Pairwise(3, edges="full", inference="enumeration")
    exact.n_features = exact.n_edge_features = 2
    (expected,) = exact.max_marginals([graph], w)
    assert (found <= expected + 1e-9).all()
    assert not np.allclose(found, expected)


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_the_estimator_scores_labels_of_nodes(n_jobs, tmp_path):
    rng = np.random.default_rng(0)
    X = [mm.Graph(rng.normal(size=(n, 2)), grid_edges(2, n // 2)) for n in (4, 8, 6)]
    y = [["a" if x > 0 else "b" for x in graph.rows[:, 0]] for graph in X]
    svm = mm.GraphSVM(C=1.0, n_jobs=n_jobs).fit(X, y)
    scores = svm.decision_function(X)
    assert [one.shape for one in scores] == [(4, 2), (8, 2), (6, 2)]
    for one, labels, ((_, best),) in zip(scores, svm.predict(X), svm.predict_topk(X, 1), strict=True):
        np.testing.assert_array_equal(svm.classes_[one.argmax(axis=1)], labels)
        np.testing.assert_allclose(one.max(axis=1), best)
    svm.save(tmp_path / "graphs.mm")
    for one, other in zip(scores, mm.load(tmp_path / "graphs.mm").decision_function(X), strict=True):
        np.testing.assert_array_equal(one, other)


def test_scores_are_asked_for_after_fit():
    with pytest.raises(NotFittedError, match="not fitted yet"):
        mm.GraphSVM().decision_function([mm.Graph([[1.0]], [])])


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")
def test_ctrl_c_ends_max_marginals():
    graph, model, w = noisy_grid(20.0, 128)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    start = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            model.max_marginals([graph], w)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < 2.0
