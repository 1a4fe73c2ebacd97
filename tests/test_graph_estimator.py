"""The estimator of graphs: what it learns, keeps and reports."""

import itertools
import pickle

import numpy as np
import pytest
from graph_examples import images, open_problem, with_candidates
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import cross_val_score

import maxmargin as mm

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

# ------------------------------------------------------------------------------------------------ estimator


def test_each_point_of_a_path_tells_whether_its_own_searches_closed():
    X, _ = images(2)
    problem = mm.models.Pairwise(2).bind(X, [np.zeros(36, int)] * 2)
    with pytest.warns(match="the search in graph 0 may have missed"):
        problem.report_inexact(0)
    problem.begin_anew()
    assert problem.is_exact
    assert problem.oracle_calls == 0


@pytest.mark.parametrize("options", [{}, {"solver": "perceptron"}, {"nonnegative": "edges", "solver": "one-slack"}])
def test_the_history_counts_searches_by_method(options):
    rng = np.random.default_rng(0)
    grids = [mm.Graph.grid(rng.normal(size=(8, 8, 2))) for _ in range(3)]
    tree = mm.Graph(rng.normal(size=(3, 2)), [[0, 1], [1, 2]])
    X = [*grids, tree]
    svm = mm.GraphSVM(max_iter=None, tol=0.01, **options).fit(X, [rng.integers(0, 2, graph.n_nodes) for graph in X])
    counts = [record["searches"] for record in svm.history_]
    assert sum(counts[-1].values()) == svm.history_[-1]["oracle_calls"]
    assert 4 * counts[-1]["forest"] == sum(counts[-1].values())
    if "nonnegative" in options:
        assert set(counts[-1]) == {"forest", "cut"}
    assert all(before["forest"] <= after["forest"] for before, after in itertools.pairwise(counts))


def test_searches_are_counted_for_each_point_of_a_path():
    X, y = images(3)
    points = mm.GraphSVM(nonnegative="edges", tol=0.01).path(X, y, [0.01, 1.0])
    for point in points:
        assert point.history_[-1]["searches"] == {"cut": point.certificate_.oracle_calls}


def test_random_outputs_are_not_searched_for():
    X, y = images(4)
    options = {"cuts_per_iteration": 3, "extra_cuts": "random"}
    svm = mm.GraphSVM(nonnegative="edges", solver="one-slack", tol=0.05, solver_options=options).fit(X, y)
    assert svm.history_[-1]["searches"] == {"cut": svm.certificate_.oracle_calls}


def test_scores_beyond_the_range_of_numbers_leave_the_gap_unknown():
    X, y = images(3)
    svm = mm.GraphSVM(nonnegative="edges").fit(X, y)
    _, gaps = svm._model.predict_with_gaps(X, np.full_like(svm._w, 1.7e308))
    assert np.isnan(gaps).all()


def chains_of_nodes(node_weights=None):
    rows = [np.random.default_rng(i).normal(size=(6, 40)) for i in range(20)]
    edges = [(i, i + 1) for i in range(5)]
    return [mm.Graph(row, edges, node_weights=node_weights) for row in rows], [[0, 1, 0, 1, 1, 0]] * 20


@pytest.mark.parametrize("solver", ["auto", "block-dual", "n-slack", "sdm", "one-slack", "bcfw"])
@pytest.mark.parametrize("before", [np.full(6, 5.0), np.arange(6.0)])
def test_other_weights_of_nodes_are_another_loss(solver, before):
    svm = mm.GraphSVM(warm_start=True, solver=solver, tol=1e-2).fit(*chains_of_nodes(before))
    warm = svm.fit(*chains_of_nodes()).certificate_
    cold = mm.GraphSVM(solver=solver, tol=1e-2).fit(*chains_of_nodes()).certificate_
    assert warm == cold


@pytest.mark.parametrize("solver", ["block-dual", "one-slack"])
def test_other_candidates_start_afresh(solver):
    rng = np.random.default_rng(0)
    many, few = ([mm.Graph.from_candidates([rng.normal(size=(k, 3))] * 3, [], []) for _ in range(8)] for k in (5, 2))
    y = [[0, 1, 0]] * 8
    warm = mm.GraphSVM(warm_start=True, solver=solver).fit(many, y).fit(few, y).certificate_
    assert warm == mm.GraphSVM(solver=solver).fit(few, y).certificate_


def test_more_graphs_go_on():
    X, y = images(30)
    settings = {"solver": "block-dual", "tol": 1e-4, "nonnegative": "edges"}
    warm = mm.GraphSVM(warm_start=True, **settings).fit(X[:25], y[:25]).fit(X, y).certificate_
    cold = mm.GraphSVM(**settings).fit(X, y).certificate_
    assert warm.oracle_calls < cold.oracle_calls
    assert warm.primal == pytest.approx(cold.primal, rel=2e-4)


def test_weights_stay_those_that_predict(tmp_path):
    X, y = images(6)
    svm = pickle.loads(pickle.dumps(mm.GraphSVM().fit(X, y)))
    before = svm.predict_topk(X[:1], 1)[0][0][1]
    svm.coef_[:] *= 2.0
    svm.edge_coef_[:] *= 2.0
    assert svm.predict_topk(X[:1], 1)[0][0][1] == pytest.approx(2.0 * before)
    svm.save(tmp_path / "svm.mm")
    assert mm.load(tmp_path / "svm.mm").predict_topk(X[:1], 1)[0][0][1] == pytest.approx(2.0 * before)
    with pytest.raises(AttributeError, match="no attribute 'edge_coef_': call fit first"):
        _ = mm.GraphSVM().edge_coef_


@pytest.mark.parametrize(
    ("edges", "columns"), [("full", [0, 1, 2, 3]), ("associative", [0, 1, 2, 3]), ("symmetric", [0, 1, 1, 2])]
)
def test_columns_of_edge_weights_are_pairs_of_labels(edges, columns):
    rng = np.random.default_rng(0)
    X = [mm.Graph(rng.normal(size=(3, 2)), [[0, 1], [2, 1]]) for _ in range(8)]
    svm = mm.GraphSVM(edges=edges).fit(X, [rng.integers(2, size=3) for _ in X])
    pair = mm.Graph(np.zeros((2, 2)), [[0, 1]])
    scores = {tuple(labels.tolist()): score for labels, score in svm.predict_topk([pair], 4)[0]}
    signs = [1.0, -1.0, -1.0, 1.0] if edges == "associative" else [1.0] * 4
    for (a, b), column, sign in zip(itertools.product(range(2), repeat=2), columns, signs, strict=True):
        assert scores[a, b] == pytest.approx(sign * svm.edge_coef_[0, 0, column], abs=1e-12)


def test_the_estimator_learns_and_is_stored(tmp_path):
    X, y = images(30)
    svm = mm.GraphSVM(C=1.0, nonnegative="edges").fit(X[:15], y[:15])
    alone = mm.GraphSVM(C=1.0, nonnegative="edges").fit([mm.Graph(graph.rows, []) for graph in X[:15]], y[:15])
    assert svm.score(X[15:], y[15:]) > alone.score([mm.Graph(graph.rows, []) for graph in X[15:]], y[15:]) + 0.02
    assert svm.classes_.tolist() == ["ship", "sky"]
    assert svm.edge_coef_.shape == (1, 1, 1)
    assert svm.edge_coef_[0, 0, 0] > 0.0
    assert svm.certificate_.exact
    svm.save(tmp_path / "svm.mm")
    again = mm.load(tmp_path / "svm.mm")
    for one, two in zip(svm.predict(X), again.predict(X), strict=True):
        assert one.tolist() == two.tolist()
    assert clone(svm).get_params() == svm.get_params()
    path = svm.path(X[:15], y[:15], Cs=[0.1, 1.0])
    assert path[1].certificate_.primal == pytest.approx(svm.certificate_.primal, rel=2e-3)


def test_candidates_in_the_estimator(tmp_path):
    model = with_candidates(0, n=12)
    svm = mm.GraphSVM(C=10.0).fit(model.graphs, model.labels)
    assert svm.classes_ is None
    assert svm.coef_.shape == (1, 3)
    assert 0.0 <= svm.score(model.graphs, model.labels) <= 1.0
    svm.save(tmp_path / "svm.mm")
    assert [p.tolist() for p in mm.load(tmp_path / "svm.mm").predict(model.graphs)] == [
        p.tolist() for p in svm.predict(model.graphs)
    ]
    signed = mm.GraphSVM(C=10.0, nonnegative="all").fit(model.graphs, model.labels)
    assert np.all(signed.coef_ >= 0.0)
    assert np.all(signed.edge_coef_ >= 0.0)


def test_several_labellings_of_the_estimator():
    X, y = images(6, size=5)
    svm = mm.GraphSVM(C=1.0, nonnegative="edges").fit(X, y)
    found = svm.predict_diverse(X, 3, strength=3.0)
    assert [len(labellings) for labellings in found] == [3] * 6
    for labellings, best in zip(found, svm.predict(X), strict=True):
        assert labellings[0][0].tolist() == best.tolist()
        assert labellings[0][1] >= max(score for _, score in labellings) - 1e-9
        assert labellings[1][0].tolist() != best.tolist()
    chain = [mm.Graph(np.random.default_rng(0).normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3]])]
    small = mm.GraphSVM().fit(chain, [["a", "b", "a", "b"]])
    top = small.predict_topk(chain, 4)[0]
    assert [score for _, score in top] == sorted((score for _, score in top), reverse=True)
    assert len({tuple(labels) for labels, _ in top}) == 4


def test_node_weights_count_in_the_score():
    graph = mm.Graph([[1.0], [-1.0]], [[0, 1]], node_weights=[3.0, 1.0])
    svm = mm.GraphSVM(C=10.0).fit([graph], [["a", "b"]])
    assert svm.score([graph], [["a", "a"]]) == pytest.approx(0.75)


def test_what_is_fitted_is_asked_for_first():
    X, _ = images(1)
    with pytest.raises(NotFittedError):
        mm.GraphSVM().predict(X)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        mm.GraphSVM(C=100.0, max_iter=1, tol=1e-9, solver="one-slack").fit(*images(6))


# ------------------------------------------------------------------------------------- searches left open


def open_estimator(**parameters):
    """An estimator whose searches of these graphs seldom close, and the best score of each graph."""
    model = open_problem()
    svm = mm.GraphSVM(C=1.0, edges="full").fit(model.graphs, model.labels)
    svm._model = model.native(**parameters)
    svm._model.n_features, svm._model.n_edge_features = 2, 2
    w = np.concatenate([svm.coef_.ravel(), svm.edge_coef_.ravel()])
    scores = [{y: float(w @ model.psi(i, y)) for y in model.outputs(i)} for i in range(model.n_examples)]
    return svm, model, scores


def test_gaps_bound_what_predictions_may_have_missed():
    svm, model, scores = open_estimator(inference="trws", max_passes=1)
    labels, gaps = svm.predict(model.graphs, return_gaps=True)
    assert gaps.max() > 0.0
    for found, gap, of_graph in zip(labels, gaps, scores, strict=True):
        assert of_graph[tuple(found.tolist())] + gap >= max(of_graph.values()) - 1e-9
    with pytest.warns(mm.InexactPredictionWarning) as caught:
        assert [one.tolist() for one in svm.predict(model.graphs)] == [one.tolist() for one in labels]
    text = str(caught[0].message)
    assert len(caught) == 1
    assert f"in {np.count_nonzero(gaps)} of {len(gaps)} graphs did not close" in text
    assert f"up to {gaps.max():.3g} more" in text
    assert caught[0].filename == __file__
    with pytest.warns(mm.InexactPredictionWarning) as caught:
        svm.score(model.graphs, model.labels)
    assert [one.filename for one in caught] == [__file__]


def test_exact_searches_have_no_gaps_and_say_nothing():
    svm, model, scores = open_estimator()
    labels, gaps = svm.predict(model.graphs, return_gaps=True)
    assert gaps.tolist() == [0.0] * len(gaps)
    for found, of_graph in zip(labels, scores, strict=True):
        assert of_graph[tuple(found.tolist())] == pytest.approx(max(of_graph.values()))
    svm.predict(model.graphs)
    svm.predict_diverse(model.graphs, 3)
    svm.predict_topk(model.graphs, 3)
    with pytest.raises(ValueError, match="return_gaps must be True or False"):
        svm.predict(model.graphs, return_gaps="yes")


def test_several_labellings_that_may_not_be_the_best_come_with_a_warning():
    svm, model, _ = open_estimator(inference="trws", max_passes=1)
    with pytest.warns(mm.InexactPredictionWarning, match="searches for several labellings did not close") as caught:
        svm.predict_diverse(model.graphs, 3)
    assert [one.filename for one in caught] == [__file__]
    # Twelve nodes in a ring with chords have too many labellings to go through.
    rng = np.random.default_rng(0)
    ring = [(i, (i + step) % 12) for i in range(12) for step in (1, 3, 5)]
    graph = mm.Graph(rng.normal(size=(12, 2)), ring, rng.normal(size=(36, 2)))
    with pytest.warns(mm.InexactPredictionWarning, match="several labellings"):
        svm.predict_topk([graph], 3)


def test_expansion_moves_have_no_gap_that_is_known():
    X, y = images(4, size=5)
    third = [[*labels[:-1], "sun"] for labels in y]
    svm = mm.GraphSVM(C=1.0, nonnegative="edges").fit(X, third)
    svm._model.inference = "expansion"
    assert np.isnan(svm.predict(X, return_gaps=True)[1]).all()
    with pytest.warns(mm.InexactPredictionWarning, match="in 4 of 4 graphs.* how much is not known"):
        svm.predict(X)


def test_odd_graphs_are_labelled_right():
    """Single nodes, parts that do not hang together, a node with one candidate, no edges at all."""
    graphs = [mm.Graph([[3.0]], []), mm.Graph([[3.0], [-3.0], [2.0]], [[0, 2]])]
    svm = mm.GraphSVM(C=10.0).fit(graphs, [["a"], ["a", "b", "a"]])
    assert [labels.tolist() for labels in svm.predict(graphs)] == [["a"], ["a", "b", "a"]]
    lone = mm.Graph.from_candidates([np.ones((1, 1)), np.array([[1.0], [-1.0]])], [[0, 1]], [np.zeros((1, 2, 1))])
    assert mm.GraphSVM(C=10.0).fit([lone], [[0, 1]]).predict([lone])[0].tolist() == [0, 1]


def test_many_weights_of_edges():
    """A plane has few of them: the others are not looked at."""
    rng = np.random.default_rng(0)
    graphs = [mm.Graph(rng.normal(size=(4, 2)), [[0, 1], [1, 2], [2, 3]], rng.normal(size=(3, 4))) for _ in range(5)]
    labels = [rng.integers(20, size=4) for _ in graphs]
    native = mm.models.Pairwise(20, edges="full")
    solution = mm.train(native, graphs, labels, 1.0, solver="block-dual", tol=1e-6)
    other = mm.train(native, graphs, labels, 1.0, solver="one-slack", tol=1e-6)
    assert solution.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-5)


def test_scores_need_nodes_that_count():
    graph = mm.Graph([[1.0], [-1.0]], [[0, 1]])
    svm = mm.GraphSVM(C=10.0).fit([graph], [["a", "b"]])
    with pytest.raises(ValueError, match="weight 0"):
        svm.score([mm.Graph([[1.0], [-1.0]], [[0, 1]], node_weights=[0.0, 0.0])], [["a", "b"]])


@pytest.mark.parametrize("solver", ["perceptron", "mira", "sgd"])
def test_online_learners_say_that_searches_did_not_close(solver):
    rng = np.random.default_rng(0)
    edges = [(a, b) for a in range(8) for b in range(a + 1, 8)]
    X = [mm.Graph(rng.normal(size=(8, 2)), edges, rng.normal(size=(len(edges), 2))) for _ in range(6)]
    Y = [rng.integers(0, 3, size=8) for _ in X]
    svm = mm.GraphSVM(solver=solver, edges="full", inference="trws", solver_options={"epochs": 3})
    # There are no bounds to speak of.
    says = "may have missed the best labelling; steps may have been made away from others than the best.$"
    with pytest.warns(mm.InexactOracleWarning, match=says):
        svm.fit(X, Y)
    assert not svm.certificate_.exact
    with pytest.warns(mm.InexactOracleWarning, match=says):
        clone(svm).partial_fit(X, Y, classes=[0, 1, 2])


@pytest.mark.parametrize(
    ("n_graphs", "n_features", "solver"), [(20, 2, "one-slack"), (21, 2, "block-dual"), (20, 40, "block-dual")]
)
def test_auto_takes_cuts_for_few_graphs_with_few_weights(n_graphs, n_features, solver):
    rng = np.random.default_rng(0)
    X = [mm.Graph(rng.normal(size=(4, n_features)), [[0, 1], [1, 2], [2, 3], [3, 0]]) for _ in range(n_graphs)]
    svm = mm.GraphSVM(C=0.01).fit(X, [[0, 1, 0, 1]] * n_graphs)
    assert svm.history_[0]["solver"] == solver


def test_a_graph_may_have_no_edges():
    for edges in (None, [], np.zeros((0, 2), int)):
        assert mm.Graph([[1.0], [2.0]], edges).n_edges == 0


def test_types_of_edges_that_training_lacks_can_be_declared():
    rng = np.random.default_rng(0)
    X = [mm.Graph(rng.normal(size=(2, 2)), [[0, 1]], edge_types=[int(i == 5)]) for i in range(6)]
    Y = [rng.integers(0, 2, size=2) for _ in X]
    with pytest.raises(ValueError, match="n_edge_types"):
        mm.GraphSVM().fit(X[:5], [0 * y for y in Y[:4]] + [1 + 0 * Y[4]]).predict(X[5:])
    svm = mm.GraphSVM(n_edge_types=2)
    assert np.isfinite(cross_val_score(svm, X, [np.array([0, 1])] * 6, cv=3)).all()
    assert svm.fit(X[:5], [np.array([0, 1])] * 5).edge_coef_.shape == (2, 1, 1)
    with pytest.raises(ValueError, match="edges of type 1, but n_edge_types is 1"):
        mm.GraphSVM(n_edge_types=1).fit(X, [np.array([0, 1])] * 6)
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ValueError, match="n_edge_types must be an integer"):
            mm.GraphSVM(n_edge_types=wrong).fit(X, [np.array([0, 1])] * 6)


def test_cuts_of_other_outputs_are_added_under_auto_too():
    rng = np.random.default_rng(0)
    X = [mm.Graph.grid(rng.normal(size=(3, 3, 2))) for _ in range(6)]
    Y = [(graph.rows[:, 0] > 0).astype(int) for graph in X]
    svm = mm.GraphSVM(nonnegative="edges", solver_options={"cuts_per_iteration": 3}).fit(X, Y)
    assert svm.history_[0]["solver"] == "one-slack"
    assert any(record["extra_violations"] for record in svm.history_)
