"""Pairwise models of graphs against an independent QP over all labellings, and what graphs refuse."""

import itertools
import time
import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from graph_examples import EDGES, GraphModel, labelled, with_candidates
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm
from maxmargin import _core
from maxmargin.graphs import Graphs
from maxmargin.problem import InexactOracleWarning

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

EXACT = ["one-slack", "n-slack", "sdm", "block-dual"]


def check_optimum(model, C, solver, rel=1e-6):
    planes = reference.planes(model)
    best, native = reference.solve(planes, C), model.native()
    solution = mm.train(native, model.graphs, model.labels, C, solver=solver, tol=0.1 * rel, max_iter=100_000)
    certificate = solution.certificate
    assert certificate.exact
    assert certificate.primal == pytest.approx(best.objective, rel=rel)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    w = np.concatenate([block.ravel() for block in native.blocks(solution.w).values()])
    assert reference.primal(w, planes, C) == pytest.approx(certificate.primal, rel=1e-9)
    return native, solution


# ------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_solvers_reach_the_reference(n_labels, edges, solver):
    for seed in range(2):
        model = labelled(seed, n_labels, edges, weighted=seed == 1, with_cost=seed == 1, n_types=1 + seed)
        check_optimum(model, 2.0, solver)


@pytest.mark.parametrize("solver", EXACT)
def test_candidates_reach_the_reference(solver):
    for seed in range(3):
        check_optimum(with_candidates(seed), 2.0, solver)


@pytest.mark.parametrize("loss", ["squared_hinge"])
def test_squared_hinge(loss):
    model = labelled(3, 2, "full")
    best = reference.solve(reference.planes(model), 1.0, None, loss)
    for solver in ("dcd", "block-dual", "n-slack"):
        found = mm.train(model.native(), model.graphs, model.labels, 1.0, solver=solver, loss=loss, tol=1e-7)
        assert found.certificate.primal == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("solver", ["one-slack", "block-dual", "sdm"])
@pytest.mark.parametrize("edges", ["potts", "associative"])
def test_weights_of_edges_stay_nonnegative(edges, solver):
    for seed in range(2):
        model = labelled(seed, 2, edges)
        n_node_weights = 2 * 3
        J = np.arange(n_node_weights, model.n_weights)
        # Edge features are ≥ 0, so that every search is a cut.
        native = model.native(inference="cut", nonnegative={"edge_coef": True})
        best = reference.solve(reference.planes(model), 2.0, nonnegative=J)
        solution = mm.train(native, model.graphs, model.labels, 2.0, solver=solver, tol=1e-7, max_iter=100_000)
        assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
        assert solution.certificate.dual <= best.objective * (1 + 1e-9)
        assert np.all(native.blocks(solution.w)["edge_coef"] >= 0.0)


def test_typed_edges_have_weights_of_their_own():
    model = labelled(5, 2, "potts", n_types=3, n=8)
    native, solution = check_optimum(model, 5.0, "one-slack")
    assert native.blocks(solution.w)["edge_coef"].shape == (3, 2, 1)


def test_any_number_of_threads_makes_the_same_iterates():
    model = labelled(1, 3, "full", n=30)
    one, two = (
        mm.train(model.native(), model.graphs, model.labels, 1.0, solver="one-slack", n_jobs=jobs) for jobs in (1, 2)
    )
    assert np.array_equal(one.w, two.w)


# ---------------------------------------------------------------------------------------------- searching


def noisy_loop(seed, n=12, k=3):
    """A ring with chords whose edges dislike agreement: no forest, no cut, too many labellings to enumerate at once."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, (i + 3) % n) for i in range(n)]
    return mm.Graph(rng.normal(size=(n, 2)), edges, rng.normal(size=(len(edges), 2))), rng.integers(k, size=n)


@pytest.mark.parametrize("method", ["auto", "trws", "enumeration"])
def test_predictions_are_best(method):
    model = labelled(2, 3, "full", n=12)
    native = model.native(inference=method)
    native.n_features, native.n_edge_features = 3, 2
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=native.n_weights)
        flat = np.concatenate([block.ravel() for block in native.blocks(w).values()])
        for i, labels in enumerate(native.predict(model.graphs, w)):
            best = max(float(flat @ model.psi(i, y)) for y in model.outputs(i))
            assert float(flat @ model.psi(i, labels.tolist())) == pytest.approx(best)


def test_best_and_diverse_labellings_against_enumeration():
    model = labelled(4, 2, "full", n=10, weighted=True)
    native = model.native()
    native.n_features, native.n_edge_features = 3, 2
    w = np.random.default_rng(1).normal(size=native.n_weights)
    flat = np.concatenate([block.ravel() for block in native.blocks(w).values()])
    strength = 0.7
    best = native.k_best(model.graphs, w, 3)
    diverse = native.diverse(model.graphs, w, [strength, strength])
    for i, graph in enumerate(model.graphs):
        values = {y: float(flat @ model.psi(i, y)) for y in model.outputs(i)}
        expected = sorted(values.values(), reverse=True)[:3]
        labels, scores = best[i]
        assert scores == pytest.approx(expected)
        assert [values[tuple(y)] for y in labels.tolist()] == pytest.approx(scores)
        assert len({tuple(y) for y in labels.tolist()}) == len(scores)
        chosen = []
        for y, score in zip(diverse[i][0].tolist(), diverse[i][1], strict=True):

            def bought(other, chosen=tuple(chosen), graph=graph, values=values):
                return values[other] + strength * sum(
                    float(graph.node_weights @ (np.array(other) != np.array(before))) for before in chosen
                )

            assert score == pytest.approx(values[tuple(y)])
            assert bought(tuple(y)) == pytest.approx(max(map(bought, values)))
            chosen.append(y)


def open_problem():
    """Complete graphs of six nodes and three labels, which TRW-S seldom closes."""
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(6), 2))
    graphs = [mm.Graph(rng.normal(size=(6, 2)), edges, rng.normal(size=(15, 2))) for _ in range(4)]
    return GraphModel(graphs, [rng.integers(3, size=6) for _ in graphs], 3, "full")


def trained_with_warnings(native, model, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = mm.train(native, model.graphs, model.labels, 1.0, tol=1e-4, **options)
    return solution, [str(warning.message) for warning in caught]


def check_open(model, solution, planes, best):
    """The optimum lies between the bounds in every record, and the primal is no less than that of the weights."""
    certificate = solution.certificate
    assert not certificate.exact
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    assert certificate.dual <= best.objective * (1 + 1e-9)
    w = np.concatenate([block.ravel() for block in model.blocks(solution.w).values()])
    assert certificate.primal >= reference.primal(w, planes, 1.0) * (1 - 1e-9)


@pytest.mark.parametrize("passes", [1, 300])
@pytest.mark.parametrize("solver", ["one-slack", "line-search", "n-slack", "sdm", "block-dual", "bcfw"])
def test_searches_that_do_not_close_leave_bounds_that_hold(solver, passes):
    model = open_problem()
    planes = reference.planes(model)
    best, native = reference.solve(planes, 1.0), model.native(inference="trws", max_passes=passes)
    solution, said = trained_with_warnings(native, model, solver=solver, max_iter=300)
    assert sum("may have missed the best labelling" in text for text in said) == 1
    check_open(native, solution, planes, best)
    assert solution.certificate.converged == (solution.certificate.relative_gap <= 1e-4)
    # It goes on for as long as that helps.
    assert solution.certificate.dual > 0.6 * best.objective

    def interrupt(record):
        if record["iteration"] == 5:
            raise KeyboardInterrupt

    short, _ = trained_with_warnings(native, model, solver=solver, callback=interrupt)
    check_open(native, short, planes, best)


def test_a_search_may_be_given_a_time():
    model = open_problem()
    for limit in (0, -1.0, "soon", np.inf):
        with pytest.raises(ValueError, match="max_search_time"):
            model.native(max_search_time=limit)
    big = mm.Graph.grid(np.random.default_rng(0).normal(size=(60, 60, 3)))
    native = mm.models.Pairwise(8, edges="full", inference="trws", max_passes=10**6, max_search_time=0.05)
    native.n_features, native.n_edge_features = 3, 1
    w = np.random.default_rng(1).normal(size=native.n_weights)
    start = time.perf_counter()
    native.predict([big], w)
    assert time.perf_counter() - start < 10.0


def test_methods_refuse_what_they_cannot_do():
    graph, labels = noisy_loop(0)
    native = mm.models.Pairwise(3, edges="full", inference="forest")
    with pytest.raises(ValueError, match=r"graph 0: inference='forest' needs graphs without cycles"):
        mm.train(native, [graph], [labels])
    big = mm.Graph.grid(np.random.default_rng(0).normal(size=(8, 8, 1)))
    with pytest.raises(ValueError, match=r"too many"):
        mm.train(mm.models.Pairwise(2, inference="enumeration"), [big], [np.zeros(64, int)])
    model = mm.models.Pairwise(2, inference="cut")
    model.n_features, model.n_edge_features = 1, 1
    w = model.join(edge_coef=[[[-1.0]]])
    with pytest.raises(ValueError, match=r"graph 0: .*TRW-S"):
        model.predict([big], w)
    with pytest.raises(ValueError, match="slack"):
        mm.train(mm.models.Pairwise(2), [big], [np.zeros(64, int)], rescaling="slack")


def test_expansion_moves_say_that_nothing_is_known():
    rng = np.random.default_rng(0)
    graphs = [mm.Graph.grid(rng.normal(size=(4, 4, 2))) for _ in range(4)]
    labels = [rng.integers(3, size=16) for _ in graphs]
    native = mm.models.Pairwise(3, inference="expansion", nonnegative={"edge_coef": True})
    with pytest.warns(InexactOracleWarning, match="nothing is known"):
        solution = mm.train(native, graphs, labels, 0.1)
    exact = mm.train(mm.models.Pairwise(3, nonnegative={"edge_coef": True}), graphs, labels, 0.1)
    assert solution.certificate.dual <= exact.certificate.primal * (1 + 1e-9)
    assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=0.05)


# ------------------------------------------------------------------------------------------------ estimator


def images(n=12, size=6, seed=0):
    rng = np.random.default_rng(seed)
    truth = np.full((size, size), "sky", dtype=object)
    truth[2:5, 1:5] = "ship"
    noisy = [(truth == "ship") + rng.normal(scale=0.7, size=truth.shape) for _ in range(n)]
    return [mm.Graph.grid(np.dstack([image, np.ones_like(image)])) for image in noisy], [truth.ravel().tolist()] * n


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


# ---------------------------------------------------------------------------------------------- bad graphs


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.zeros((0, 2)), []), "node_features has no rows"),
        (([[1.0], [np.nan]], [[0, 1]]), "node_features holds nan in row 1"),
        (([[1.0], [2.0]], [[0, 0]]), r"edges\[0\] joins node 0 to itself"),
        (([[1.0], [2.0]], [[0, 1], [1, 2]]), r"edges\[1\] is \[1, 2\]; expected two of the nodes 0 … 1"),
        (([[1.0], [2.0]], [[0, -1]]), r"edges\[0\] is \[0, -1\]"),
        (([[1.0], [2.0]], [[0.5, 1]]), "expected pairs of node numbers"),
        (([[1.0], [2.0]], [0, 1]), "expected pairs of node numbers"),
        (([[1.0], [2.0]], [[0, 1]], [[1.0], [2.0]]), "edge_features has shape"),
        (([[1.0], [2.0]], [[0, 1]], [[np.inf]]), "edge_features must hold finite"),
        (([[1.0], [2.0]], [[0, 1]], np.zeros((1, 0))), "edge_features has no columns"),
        ((["a", "b"], []), "node_features"),
    ],
)
def test_bad_graphs_are_refused(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mm.Graph(*arguments)


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"node_weights": [1.0]}, "node_weights"),
        ({"node_weights": [1.0, -1.0]}, "node_weights"),
        ({"edge_types": [0, 1]}, "edge_types"),
        ({"edge_types": [-1]}, "edge_types must be numbers from 0"),
        ({"edge_types": [2**31 - 1]}, "edge_types must be numbers from 0"),
        ({"edge_types": [0.5]}, "edge_types"),
    ],
)
def test_bad_parts_of_graphs_are_refused(keywords, message):
    with pytest.raises(ValueError, match=message):
        mm.Graph([[1.0], [2.0]], [[0, 1]], **keywords)


@pytest.mark.parametrize(
    ("nodes", "edges", "pairs", "message"),
    [
        ([], [], [], "at least one node"),
        ([np.ones((2, 1)), np.ones((0, 1))], [], [], "no rows"),
        ([np.ones((2, 1)), np.ones((2, 2))], [], [], r"candidate_features\[1\] has 2 features"),
        ([np.ones((2, 1)), np.ones((3, 1))], [[0, 1]], [], "0 arrays but there are 1 edges"),
        ([np.ones((2, 1)), np.ones((3, 1))], [[0, 1]], [np.ones((3, 2, 1))], r"expected 2 × 3 × features"),
    ],
)
def test_bad_candidates_are_refused(nodes, edges, pairs, message):
    with pytest.raises(ValueError, match=message):
        mm.Graph.from_candidates(nodes, edges, pairs)


def test_bad_data_of_the_estimator_are_refused():
    graph = mm.Graph([[1.0], [2.0]], [[0, 1]])
    other = mm.Graph([[1.0, 2.0]], [])
    candidates = mm.Graph.from_candidates([np.ones((2, 1)), np.ones((3, 1))], [], [])
    for X, y, message in (
        ([], [], "X is empty"),
        (graph, [["a", "b"]], "expected a list of maxmargin.Graph"),
        ([np.ones((2, 2))], [["a", "b"]], r"X\[0\] is of type ndarray"),
        ([graph, other], [["a", "b"], ["a"]], "all graphs need the same"),
        ([graph, candidates], [["a", "b"], [0, 0]], "different kinds"),
        ([graph], [["a"]], r"y\[0\] has 1 labels but X\[0\] has 2 nodes"),
        ([graph], [["a", "b"], ["a"]], "2 labellings but X has 1 graphs"),
        ([graph], ["ab"], r"y\[0\] is 'ab'"),
        ([candidates], [[2, 0]], "the node has 2 candidates"),
        ([candidates], [["a", "b"]], "expected the number of one"),
        ([candidates], [[2**32, 0]], r"y\[0\]\[0\] is 4294967296"),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            mm.GraphSVM().fit(X, y)
    for parameters, message in (
        ({"edges": "all"}, "edges must be one of"),
        ({"inference": "magic"}, "inference must be one of"),
        ({"max_passes": 0}, "max_passes must be"),
        ({"nonnegative": "some"}, "nonnegative must be"),
        ({"rescaling": "slack"}, "slack"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.GraphSVM(**parameters).fit([graph], [["a", "b"]])
    svm = mm.GraphSVM().fit([graph], [["a", "b"]])
    with pytest.raises(ValueError, match="expecting 1 features"):
        svm.predict([other])
    with pytest.raises(ValueError, match="features of edges"):
        svm.predict([mm.Graph([[1.0], [2.0]], [[0, 1]], [[1.0, 2.0]])])


def test_odd_graphs_are_labelled_right():
    """Single nodes, parts that do not hang together, a node with one candidate, no edges at all."""
    graphs = [mm.Graph([[3.0]], []), mm.Graph([[3.0], [-3.0], [2.0]], [[0, 2]])]
    svm = mm.GraphSVM(C=10.0).fit(graphs, [["a"], ["a", "b", "a"]])
    assert [labels.tolist() for labels in svm.predict(graphs)] == [["a"], ["a", "b", "a"]]
    lone = mm.Graph.from_candidates([np.ones((1, 1)), np.array([[1.0], [-1.0]])], [[0, 1]], [np.zeros((1, 2, 1))])
    assert mm.GraphSVM(C=10.0).fit([lone], [[0, 1]]).predict([lone])[0].tolist() == [0, 1]


def test_graphs_keep_what_they_were_given():
    rows, edges, features, weights = np.ones((2, 1)), np.array([[0, 1]]), np.ones((1, 1)), np.ones(2)
    graph = mm.Graph(rows, edges, features, node_weights=weights)
    for given in (rows, edges, features, weights):
        given[:] = 7
    assert graph.rows.max() == graph.edge_rows.max() == graph.node_weights.max() == 1.0
    assert graph.edges.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="read-only"):
        graph.rows[0, 0] = np.nan
    sparse = mm.Graph(sp.csr_array(np.eye(2)), [[0, 1]], sp.csr_array(np.ones((1, 3))))
    assert sparse.rows.tolist() == np.eye(2).tolist()
    assert sparse.edge_rows.shape == (1, 3)


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


def test_grids():
    graph = mm.Graph.grid(np.arange(6.0).reshape(2, 3), diagonals=True, by_direction=True)
    expected = {(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5), (0, 4), (1, 5), (1, 3), (2, 4)}
    assert {tuple(edge) for edge in graph.edges.tolist()} == expected
    assert sorted(set(graph.edge_types.tolist())) == [0, 1, 2, 3]
    with pytest.raises(ValueError, match="height × width"):
        mm.Graph.grid(np.zeros(4))


def test_the_core_refuses_numbers_that_are_out_of_range():
    good = {
        "node_offsets": np.array([0, 2]),
        "edge_offsets": np.array([0, 1]),
        "first": np.array([0], np.int32),
        "second": np.array([1], np.int32),
        "edge_features": np.ones((1, 1)),
        "n_labels": 2,
        "candidates": None,
        "pair_rows": None,
        "pair_column": np.array([[0, -1], [-1, 0]], np.int32),
        "pair_coefficient": np.ones((2, 2)),
        "n_pair_columns": 1,
        "types": None,
        "n_types": 1,
        "truth": np.array([0, 1], np.int32),
        "cost": None,
        "node_weight": None,
        "inference": "auto",
        "max_iter": 10,
        "max_seconds": None,
    }
    _core.Graph(**good)
    for message, wrong in (
        ("node_offsets", {"node_offsets": np.array([0, 0])}),
        ("node_offsets", {"node_offsets": np.array([1, 2])}),
        ("first has 1", {"edge_offsets": np.array([0, 2])}),
        ("edge 0 does not join", {"second": np.array([2], np.int32)}),
        ("edge 0 does not join", {"second": np.array([0], np.int32)}),
        ("rows of edge_features", {"edge_features": np.ones((2, 1))}),
        ("finite", {"edge_features": np.full((1, 1), np.nan)}),
        ("column of a pair", {"pair_column": np.array([[1, -1], [-1, 0]], np.int32)}),
        ("finite", {"pair_coefficient": np.full((2, 2), np.inf)}),
        ("edge type", {"types": np.array([1], np.int32)}),
        ("label number", {"truth": np.array([0, 2], np.int32)}),
        ("truth has 1", {"truth": np.array([0], np.int32)}),
        ("node_weight", {"node_weight": np.array([1.0, -1.0])}),
        ("rows of cost", {"cost": np.ones((3, 3))}),
        ("come together", {"candidates": np.array([0, 1, 2])}),
        ("inference must be", {"inference": "magic"}),
        ("max_iter", {"max_iter": 0}),
        ("max_seconds", {"max_seconds": -1.0}),
    ):
        with pytest.raises(ValueError, match=message):
            _core.Graph(**{**good, **wrong})


def test_a_list_of_graphs_is_stacked_once():
    X, _ = images(3)
    data = Graphs(X)
    assert len(data) == 3
    assert data[1] is X[1]
    assert len(data[:2]) == 2
    assert data.place(40) == (1, 4)
    assert list(itertools.chain(data.lengths)) == [36, 36, 36]
