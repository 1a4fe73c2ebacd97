"""Sparse features of nodes: the same models as from dense ones, in memory that grows with what is not 0."""

import pickle
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from graph_examples import labelled, with_candidates

import maxmargin as mm

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def as_sparse(graph, kind=sp.csr_array):
    """The same graph with sparse features of nodes, many of them 0."""
    if graph.candidate_counts is None:
        return mm.Graph(
            kind(graph.rows),
            graph.edges,
            graph.edge_rows,
            node_weights=graph.node_weights,
            edge_types=graph.edge_types,
        )
    starts = np.cumsum(graph.candidate_counts)[:-1]
    counts = graph.candidate_counts
    sizes = np.cumsum([counts[a] * counts[b] for a, b in graph.edges])[:-1]
    pairs = np.split(graph.edge_rows, sizes) if graph.n_edges else []
    return mm.Graph.from_candidates(
        [kind(part) for part in np.split(graph.rows, starts)],
        graph.edges,
        [part.reshape(counts[a], counts[b], -1) for part, (a, b) in zip(pairs, graph.edges, strict=True)],
        node_weights=graph.node_weights,
    )


def thinned(model, seed=0):
    """The model with about half of its features of nodes set to 0."""
    rng = np.random.default_rng(seed)
    for graph in model.graphs:
        rows = graph.rows * (rng.random(graph.rows.shape) < 0.5)
        graph.rows = rows
    return model


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "block-dual"])
@pytest.mark.parametrize("make", [lambda: labelled(1, 3, "full", n=10), lambda: with_candidates(1, n=10)])
def test_weights_are_those_of_dense_features(make, solver, tmp_path):
    model = thinned(make())
    sparse = [as_sparse(graph) for graph in model.graphs]
    assert all(sp.issparse(graph.rows) for graph in sparse)
    parameters = {"edges": "full"} if model.n_labels else {}
    dense_svm, sparse_svm = (
        mm.GraphSVM(C=1.0, solver=solver, tol=1e-7, **parameters).fit(X, model.labels) for X in (model.graphs, sparse)
    )
    np.testing.assert_allclose(sparse_svm.coef_, dense_svm.coef_, atol=1e-4)
    np.testing.assert_allclose(sparse_svm.edge_coef_, dense_svm.edge_coef_, atol=1e-4)
    assert sparse_svm.n_features_in_ == dense_svm.n_features_in_
    sparse_svm.save(tmp_path / "svm.mm")
    for svm in (sparse_svm, mm.load(tmp_path / "svm.mm")):
        for X in (model.graphs, sparse):
            found = [labels.tolist() for labels in svm.predict(X)]
            assert found == [labels.tolist() for labels in sparse_svm.predict(sparse)]
    assert [labels.tolist() for labels in dense_svm.predict(sparse)] == [
        labels.tolist() for labels in sparse_svm.predict(sparse)
    ]


def test_dense_and_sparse_graphs_may_be_mixed():
    model = thinned(labelled(2, 2, "potts", n=8))
    mixed = [as_sparse(graph) if i % 2 else graph for i, graph in enumerate(model.graphs)]
    one, two = (mm.GraphSVM(tol=1e-6).fit(X, model.labels) for X in (model.graphs, mixed))
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-9)
    assert one.score(mixed, model.labels) == two.score(model.graphs, model.labels)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_every_sparse_format_is_kept_as_rows(kind):
    given = kind(np.array([[0.0, 1.5], [2.0, 0.0]]))
    graph = mm.Graph(given, [[0, 1]])
    assert graph.rows.format == "csr"
    assert graph.rows.toarray().tolist() == [[0.0, 1.5], [2.0, 0.0]]
    given.data[:] = 7.0
    assert graph.rows.toarray().tolist() == [[0.0, 1.5], [2.0, 0.0]]
    with pytest.raises(ValueError, match="read-only"):
        graph.rows.data[0] = np.nan
    assert pickle.loads(pickle.dumps(graph)).rows.toarray().tolist() == [[0.0, 1.5], [2.0, 0.0]]


def test_entries_of_one_place_are_added_without_overflow():
    repeated = sp.csr_array((np.array([100, 100], np.int8), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert mm.Graph(repeated, []).rows.toarray().tolist() == [[200.0]]
    places = np.zeros(2, int), np.zeros(2, int)
    assert mm.Graph(sp.coo_array((np.array([100, 100], np.int8), places), shape=(1, 1)), []).rows.toarray() == [[200.0]]


def test_bad_sparse_features_are_refused():
    for value, message in ((np.nan, "node_features holds nan in row 1"), (1e200, "scale the features")):
        with pytest.raises(ValueError, match=message):
            mm.Graph(sp.csr_array([[1.0], [value]]), [[0, 1]])
    with pytest.raises(ValueError, match="no rows"):
        mm.Graph(sp.csr_array((0, 3)), [])
    with pytest.raises(ValueError, match="expected a matrix"):
        mm.Graph(sp.coo_array(np.ones(3)), [])


def test_memory_grows_with_what_is_not_zero():
    """Written out, the features would take 1.6 GB."""
    rng = np.random.default_rng(0)
    n_features, graphs, labels = 50_000, [], []
    for _ in range(20):
        y = rng.integers(2, size=200)
        rows = sp.csr_array(
            (np.ones(1000), rng.integers(n_features // 2, size=1000) * 2 + np.repeat(y, 5), np.arange(0, 1001, 5)),
            shape=(200, n_features),
        )
        graphs.append(mm.Graph(rows, [(i, i + 1) for i in range(199)]))
        labels.append(y)
    tracemalloc.start()
    try:
        svm = mm.GraphSVM(C=1.0).fit(graphs, labels)
        assert svm.score(graphs, labels) > 0.99
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 150e6
