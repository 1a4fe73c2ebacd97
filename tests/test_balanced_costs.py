"""Labels of places that count as much as others, however rare they are."""

import numpy as np
import pytest
from graph_examples import images, with_candidates

import maxmargin as mm

SEQUENCES = [[["a"], ["a"], ["b"], ["a"]], [["b"], ["a"], ["a"], ["a"]], [["a"], ["b"]]]
LABELS = [["x", "x", "y", "x"], ["x", "y", "x", "x"], ["x", "x"]]  # 8 x, 2 y


def weights_of(svm):
    pairs = svm.transition_ if isinstance(svm, mm.ChainSVM) else svm.edge_coef_
    return np.concatenate([svm.coef_.ravel(), pairs.ravel()])


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_balanced_sequences_are_those_of_written_out_weights(loss):
    balanced = mm.ChainSVM(loss=loss, cost="balanced", tol=1e-9).fit(SEQUENCES, LABELS)
    by_hand = mm.ChainSVM(loss=loss, cost={"x": 10 / (2 * 8), "y": 10 / (2 * 2)}, tol=1e-9).fit(SEQUENCES, LABELS)
    np.testing.assert_allclose(weights_of(balanced), weights_of(by_hand), atol=1e-12)
    plain = mm.ChainSVM(loss=loss, tol=1e-9).fit(SEQUENCES, LABELS)
    assert not np.allclose(weights_of(balanced), weights_of(plain))


def test_tokens_are_counted_by_their_weights():
    token_weight = [[1.0, 1.0, 3.0, 1.0], [1.0, 1.0, 0.0, 0.0], [2.0, 0.0]]  # 6 for x, 4 for y
    balanced = mm.ChainSVM(cost="balanced", tol=1e-9).fit(SEQUENCES, LABELS, token_weight=token_weight)
    costs = {"x": 10 / (2 * 6), "y": 10 / (2 * 4)}
    by_hand = mm.ChainSVM(cost=costs, tol=1e-9).fit(SEQUENCES, LABELS, token_weight=token_weight)
    np.testing.assert_allclose(weights_of(balanced), weights_of(by_hand), atol=1e-12)


def test_labels_that_weigh_nothing_have_the_weight_of_others():
    token_weight = [[1.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 1.0], [1.0, 1.0]]
    balanced = mm.ChainSVM(cost="balanced", tol=1e-9).fit(SEQUENCES, LABELS, token_weight=token_weight)
    plain = mm.ChainSVM(tol=1e-9).fit(SEQUENCES, LABELS, token_weight=token_weight)
    np.testing.assert_allclose(weights_of(balanced), weights_of(plain), atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_balanced_graphs_are_those_of_written_out_weights(weighted):
    X, y = images(4)
    if weighted:
        X = [mm.Graph(graph.rows, graph.edges, node_weights=np.arange(1.0, 37.0)) for graph in X]
    is_ship = np.array(y[0]) == "ship"
    size = np.arange(1.0, 37.0) if weighted else np.ones(36)
    costs = {"ship": size.sum() / (2 * size[is_ship].sum()), "sky": size.sum() / (2 * size[~is_ship].sum())}
    balanced, by_hand = (
        mm.GraphSVM(C=0.1, nonnegative="edges", cost=cost, tol=1e-6).fit(X, y) for cost in ("balanced", costs)
    )
    np.testing.assert_allclose(weights_of(balanced), weights_of(by_hand), atol=1e-9)


def test_balanced_costs_survive_a_file(tmp_path):
    svm = mm.ChainSVM(cost="balanced").fit(SEQUENCES, LABELS)
    svm.save(tmp_path / "balanced.mm")
    again = mm.load(tmp_path / "balanced.mm")
    assert again.cost == "balanced"
    assert again.predict(SEQUENCES) == svm.predict(SEQUENCES)


def test_streams_know_no_balance():
    with pytest.raises(ValueError, match="needs all examples at once"):
        mm.ChainSVM(solver="sgd", cost="balanced").partial_fit(SEQUENCES, LABELS, classes=["x", "y"])
    X, y = images(2)
    with pytest.raises(ValueError, match="needs all examples at once"):
        mm.GraphSVM(solver="sgd", cost="balanced").partial_fit(X, y, classes=["ship", "sky"])


def test_other_estimators_and_candidates_refuse_it():
    with pytest.raises(ValueError, match="cost must be None, 'zero-one', a number"):
        mm.MulticlassSVM(cost="balanced").fit(np.eye(3), [0, 1, 2])
    with pytest.raises(ValueError, match="cost must be None, 'hamming', 'balanced', a number"):
        mm.ChainSVM(cost="balance").fit(SEQUENCES, LABELS)
    model = with_candidates(0)
    X, y = model.graphs, model.labels
    with pytest.raises(ValueError, match="with candidates it must be None or 'hamming', found 'balanced'"):
        mm.GraphSVM(cost="balanced").fit(X, y)
