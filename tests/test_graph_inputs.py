"""Graphs as inputs: what they are made of, what is refused, and with which words."""

import itertools

import numpy as np
import pytest
import scipy.sparse as sp
from graph_examples import images

import maxmargin as mm
from maxmargin import _core
from maxmargin.graphs import Graphs

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: mm.Graph([[1.0], [2.0]], [[0, 1], [1]]), "edges has rows of different lengths"),
        (lambda: mm.Graph([[1.0], [2.0]], [[0, 1]], edge_types=[[0], [1, 2]]), "edge_types has rows of different"),
        (lambda: mm.Graph.from_candidates([np.eye(2)] * 2, [[0, 1]], None), "pair_features is of type NoneType"),
        (lambda: mm.Graph.from_candidates(None, [], []), "candidate_features is of type NoneType"),
        (lambda: mm.Graph.from_candidates([np.eye(2)] * 2, [[0, 1]], [np.zeros((2, 2, 0))]), r"shape \(2, 2, 0\)"),
    ],
)
def test_graphs_say_what_is_wrong_with_their_arrays(make, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make()


def test_candidates_may_come_from_generators():
    features, pairs = [np.eye(2), np.ones((3, 2))], [np.zeros((2, 3, 1))]
    graph = mm.Graph.from_candidates(iter(features), [[0, 1]], iter(pairs))
    assert graph.candidate_counts.tolist() == [2, 3]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: mm.Graph.grid(np.zeros((2, 3)), node_weights=[[1, 2], [3, 4], [5, 6]]),
            r"shape \(3, 2\); expected 2 × 3",
        ),
        (lambda: mm.Graph.grid(np.zeros((2, 3)), node_weights=np.ones(6)), r"shape \(6,\); expected 2 × 3"),
        (lambda: mm.Graph(np.ones((2, 1)), [[0, 1]] * 3, [[1], [np.nan], [2]]), "edge_features holds nan in row 1"),
        (lambda: mm.Graph(np.ones((2, 1)), [[0, 1]], [["a"]]), "edge_features must hold real numbers: could not"),
        (lambda: mm.Graph(np.ones((2, 1)), [[0, 1]], [[1j]]), "edge_features must hold real numbers: they are complex"),
        (lambda: mm.Graph(np.ones((2, 1)), [[0, 1]], [[1e200]]), r"edge_features holds values up to 1e\+200"),
        (lambda: mm.Graph(np.ones((2, 1)), [], node_weights=["a", 1]), "node_weights must hold real numbers"),
        (lambda: mm.Graph.from_candidates([np.eye(2)] * 2, [[0, 1]], [[["a"]]]), r"pair_features\[0\] must hold real"),
    ],
)
def test_what_is_wrong_with_a_graph_has_a_name_and_a_place(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_grid_has_at_least_one_place():
    with pytest.raises(ValueError, match=r"features has shape \(0, 5, 1\): a grid has at least one place"):
        mm.Graph.grid(np.ones((0, 5)))


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
        (([[1.0], [2.0]], [[0, 1]], [[np.inf]]), "edge_features holds inf in row 0"),
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
        ({"node_weights": [1.0, -1.0]}, r"node_weights\[1\] is -1; expected a finite number ≥ 0"),
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
        ([mm.Graph.grid(np.zeros((2, 3, 1)))], [np.zeros((2, 3), int)], r"row by row: give y.ravel()"),
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
        ({"rescaling": "slack", "inference": "trws"}, "graphs: inference 'auto' or 'enumeration'"),
    ):
        with pytest.raises(ValueError, match=message):
            mm.GraphSVM(**parameters).fit([graph], [["a", "b"]])
    svm = mm.GraphSVM().fit([graph], [["a", "b"]])
    with pytest.raises(ValueError, match="expecting 1 features"):
        svm.predict([other])
    with pytest.raises(ValueError, match="features of edges"):
        svm.predict([mm.Graph([[1.0], [2.0]], [[0, 1]], [[1.0, 2.0]])])


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
    assert sparse.rows.toarray().tolist() == np.eye(2).tolist()
    assert sparse.edge_rows.shape == (1, 3)


def test_grids():
    graph = mm.Graph.grid(np.arange(6.0).reshape(2, 3), diagonals=True, by_direction=True)
    expected = [
        {(0, 1), (1, 2), (3, 4), (4, 5)},
        {(0, 3), (1, 4), (2, 5)},
        {(0, 4), (1, 5)},
        {(1, 3), (2, 4)},
    ]
    assert [{tuple(edge) for edge in graph.edges[graph.edge_types == t].tolist()} for t in range(4)] == expected
    assert graph.n_edges == 11
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


def test_features_of_a_grid_do_not_wrap_around():
    image = np.array([[100, 200]], np.uint8)
    assert mm.Graph.grid(image, edge_features=lambda a, b: np.abs(a - b)).edge_rows.tolist() == [[100.0]]
    with pytest.raises(TypeError, match="must be a function"):
        mm.Graph.grid(image, edge_features=np.ones((1, 1)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: mm.GraphSVM().fit(X, [np.asarray(y[0])[:, None], *y[1:]]), r"y\[0\] has shape \(36, 1\).*ravel"),
        (lambda X, y: mm.GraphSVM().fit([tuple(X)], y[:1]), r"X\[0\] is of type tuple.*mm.Graph\(\*x\)"),
        (lambda X, y: mm.GraphSVM(nonnegative={"edge_coef": -1}).fit(X, y), r"must say True or False.*other sign"),
        (lambda X, y: mm.Graph([[1.0], [2.0], [3.0]], [[0, 1, 0], [1, 2, 2]]), "Give its transpose"),
    ],
)
def test_what_other_libraries_take_is_refused_with_advice(make, message):
    X, y = images(2)
    with pytest.raises((TypeError, ValueError), match=message):
        make(X, y)


@pytest.mark.parametrize("kind", [np.int64, np.float32, np.str_])
def test_labels_of_numpy_are_what_they_stand_for(kind):
    """Classes were of dtype object, which scikit-learn's scores do not take."""
    graph = mm.Graph([[1.0], [-1.0], [2.0]], [[0, 1], [1, 2]])
    labels = np.array([1, 0, 1]).astype(kind)
    usual = mm.GraphSVM().fit([graph], [labels.tolist()]).classes_
    for given in ([list(labels)], [[labels[0].item(), *labels[1:]]]):
        fitted = mm.GraphSVM().fit([graph], given)
        assert fitted.classes_.dtype == usual.dtype
        assert fitted.predict([graph])[0].tolist() == labels.tolist()
    stream = mm.GraphSVM(solver="mira").partial_fit([graph], [labels], classes=list(labels))
    assert stream.classes_.dtype == usual.dtype


@pytest.mark.parametrize("columns", [1, 2])
def test_graphs_without_edges_say_how_many_features_edges_have(columns):
    apart = mm.Graph([[1.0], [-1.0]], [], np.zeros((0, columns)))
    joined = mm.Graph([[1.0], [-1.0]], [[0, 1]], np.ones((1, columns)))
    fitted = mm.GraphSVM().fit([apart], [[1, 0]])
    assert fitted.edge_coef_.tolist() == np.zeros((1, columns, 1)).tolist()
    assert [y.tolist() for y in fitted.predict([joined, apart])] == [[1, 0], [1, 0]]
    stream = mm.GraphSVM(solver="mira").partial_fit([apart], [[1, 0]], classes=[0, 1])
    assert stream.partial_fit([joined], [[1, 1]]).edge_coef_.shape == (1, columns, 1)
    # Where some have edges, these count.
    other = mm.Graph([[1.0], [-1.0]], [])
    assert mm.GraphSVM().fit([other, joined], [[1, 0]] * 2).edge_coef_.shape == (1, columns, 1)


@pytest.mark.parametrize("weight", [1e-200, 1e-101, 1e101])
def test_losses_whose_squares_have_no_digits_are_refused(weight):
    """Training did not end."""
    message = "expected 0 or a number between 1e-100 and 1e\\+100"
    with pytest.raises(ValueError, match=f"node_weights holds {weight:g}: {message}".replace("1e+101", "1e\\+101")):
        mm.Graph([[1.0], [2.0]], [[0, 1]], node_weights=[0.0, weight])
    for cost in ([1.0, weight], [[0.0, weight], [1.0, 0.0]]):
        with pytest.raises(ValueError, match="cost holds"):
            mm.train(mm.models.Pairwise(2, cost=cost), [mm.Graph([[1.0], [2.0]], [[0, 1]])], [[0, 1]])


def test_margins_of_graphs_are_met_beyond_rounding():
    """The primal was left at three times the dual for what rounding could have hidden."""

    def example(seed):
        x = np.random.default_rng(seed).normal(size=(6, 2))
        return mm.Graph(x, [[i, (i + 1) % 6] for i in range(6)]), (x[:, 0] > 0).astype(int)

    X, y = zip(*map(example, range(6)), strict=True)
    usual = mm.GraphSVM(C=1e9).fit(X, y).certificate_
    for C in (1e12, 1e15):
        certificate = mm.GraphSVM(C=C).fit(X, y).certificate_
        assert certificate.converged
        assert certificate.primal == pytest.approx(usual.primal, rel=1e-4)


def test_graphs_without_candidates_need_a_number_of_labels():
    with pytest.raises(ValueError, match="n_labels must say how many"):
        mm.train(mm.models.Pairwise(None), [mm.Graph(np.eye(2), [[0, 1]])], [[0, 0]])
