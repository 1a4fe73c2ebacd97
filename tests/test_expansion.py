"""Alpha-expansion against enumeration: of labellings with two labels, of all moves with more."""

import itertools

import numpy as np
import pytest
from flow_problems import Scores, all_labellings, grid_edges, random_edges

from maxmargin import _core

pytestmark = pytest.mark.core


def metric(rng, n_labels):
    """Minus the distances of random points: a metric as costs."""
    points = rng.normal(size=(n_labels, 2))
    return -np.linalg.norm(points[:, None] - points[None], axis=2)


def random_scores(rng, n_labels, with_tables, most_nodes=6):
    n_nodes = int(rng.integers(0, most_nodes + 1))
    first, second = random_edges(rng, n_nodes, int(rng.integers(0, 2 * n_nodes + 1)))
    unary = rng.normal(size=n_nodes * n_labels)
    if not with_tables:
        return Scores([n_labels] * n_nodes, first, second, unary, rng.random(len(first)))
    tables = [metric(rng, n_labels).ravel() * rng.random() for _ in first]
    offsets = np.arange(len(first)) * n_labels**2
    return Scores([n_labels] * n_nodes, first, second, unary, np.concatenate([*tables, np.zeros(0)]), offsets)


def expand(scores, **options):
    return _core.expand(*scores.shape, scores.unary, scores.values, scores.offsets, **options)


def best_expansion(scores, labels, n_labels):
    """The score of the best single move, by enumeration of the nodes that take the label."""
    takers = all_labellings([2] * len(labels))
    return max(scores.of(np.where(taken, alpha, labels)) for alpha in range(n_labels) for taken in takers)


@pytest.mark.parametrize("with_tables", [True, False])
def test_two_labels_give_the_best_labelling(with_tables):
    rng = np.random.default_rng(1)
    for _ in range(60):
        scores = random_scores(rng, 2, with_tables)
        labels, score, _, _ = expand(scores)
        assert score == pytest.approx(scores.of(labels), abs=1e-12)
        assert score == pytest.approx(scores.best(), abs=1e-12)


@pytest.mark.parametrize("with_tables", [True, False])
def test_no_single_move_improves_the_result_from_any_start(with_tables):
    rng = np.random.default_rng(2)
    for _ in range(40):
        scores = random_scores(rng, 4, with_tables, most_nodes=5)
        start = rng.integers(0, 4, len(scores.n_labels)).astype(np.int32)
        labels, score, _, _ = expand(scores, start=start)
        assert score == pytest.approx(scores.of(labels), abs=1e-12)
        assert score >= scores.of(start) - 1e-12
        assert best_expansion(scores, labels, 4) <= score + 1e-12


def test_one_round_offers_every_label_its_best_move_in_order():
    rng = np.random.default_rng(3)
    for _ in range(30):
        scores = random_scores(rng, 3, with_tables=True, most_nodes=5)
        labels = rng.integers(0, 3, len(scores.n_labels)).astype(np.int32)
        found, score, _, rounds = expand(scores, start=labels, max_rounds=1)
        for alpha in range(3):
            moves = [np.where(taken, alpha, labels) for taken in all_labellings([2] * len(labels))]
            labels = max(moves, key=scores.of)
        assert rounds <= 1
        assert score == pytest.approx(scores.of(labels), abs=1e-12)
        assert np.array_equal(found, labels)


def test_scores_never_fall_from_round_to_round():
    rng = np.random.default_rng(4)
    first, second = grid_edges(12, 15)
    n_labels = 6
    scores = Scores(
        [n_labels] * 180,
        first,
        second,
        rng.normal(size=180 * n_labels),
        metric(rng, n_labels).ravel(),
        np.zeros(len(first), np.int64),
    )
    start = np.zeros(180, np.int32)
    results = [expand(scores, start=start, max_rounds=k) for k in range(8)]
    values = [result[1] for result in results]
    assert np.array_equal(results[0][0], start)
    assert all(later >= earlier for earlier, later in itertools.pairwise(values))
    assert values[1] > values[0]
    end = expand(scores, start=start)
    again = expand(scores, start=end[0])
    assert again[1] == end[1]
    assert again[2] == 0
    assert np.array_equal(again[0], end[0])


# Boykov, Veksler and Zabih (2001), theorem 6.1: with Potts scores at most twice the least costs.
def test_costs_are_within_the_known_factor():
    rng = np.random.default_rng(5)
    for _ in range(60):
        scores = random_scores(rng, 3, with_tables=False, most_nodes=6)
        nothing = scores.unary.reshape(-1, 3).max(axis=1).sum() + scores.values.sum()  # the score of costs 0
        _, score, _, _ = expand(scores)
        assert nothing - score <= 2 * (nothing - scores.best()) + 1e-12


def test_without_edges_every_node_takes_its_best_label():
    unary = np.array([0.0, 2, 1, 5, 5, 4])
    none = np.zeros(0, np.int32)
    labels, score, moves, _ = _core.expand(np.array([0, 3, 6]), none, none, unary, np.zeros(0))
    assert labels.tolist() == [1, 0]
    assert score == 7.0
    assert moves == 0


def test_an_empty_graph_has_an_empty_labelling():
    none = np.zeros(0, np.int32)
    labels, score, _, _ = _core.expand(np.zeros(1, np.int64), none, none, np.zeros(0), np.zeros(0))
    assert labels.shape == (0,)
    assert score == 0.0


def call(offsets=(0, 3, 6), unary=None, values=(1.0,), table_offsets=None, **options):
    unary = np.zeros(offsets[-1]) if unary is None else unary
    ends = np.array([0], np.int32), np.array([1], np.int32)
    return _core.expand(np.array(offsets), *ends, unary, np.array(values), table_offsets, **options)


def test_scores_that_are_no_metric_are_refused_by_name():
    with pytest.raises(ValueError, match=r"Potts score of edge 0 is negative.*TRW-S"):
        call(values=(-1.0,))
    truncated_square = -np.array([[0.0, 1, 4], [1, 0, 1], [4, 1, 0]])
    with pytest.raises(
        ValueError, match=r"pair scores of edge 0 are no metric: those of labels \(1, 1\) and \(0, 2\).*label 1.*TRW-S"
    ):
        call(values=truncated_square.ravel(), table_offsets=np.zeros(1, np.int64))
    with pytest.raises(ValueError, match=r"node 1 has 2 labels and node 0 has 3.*TRW-S"):
        call(offsets=(0, 3, 5))


def test_bad_arguments_are_refused():
    with pytest.raises(ValueError, match=r"unary\[5\] is nan"):
        call(unary=np.array([0, 0, 0, 0, 0, np.nan]))
    with pytest.raises(ValueError, match="values has 2 entries, expected 1"):
        call(values=(1.0, 1.0))
    with pytest.raises(ValueError, match="start has 1 entries, expected 2"):
        call(start=np.zeros(1, np.int32))
    with pytest.raises(ValueError, match="label of start 3 at place 1 is out of range"):
        call(start=np.array([0, 3], np.int32))
    with pytest.raises(ValueError, match="max_rounds is -1"):
        call(max_rounds=-1)
