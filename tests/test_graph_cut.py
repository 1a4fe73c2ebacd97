"""Graph cuts against enumeration of all labellings."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from flow_problems import Scores, all_labellings, grid_edges, random_edges

from maxmargin import _core

pytestmark = pytest.mark.core


def agreeable_tables(rng, n_labels, first, second, number):
    """Tables that like agreement, one after the other, and where each begins; nodes with one label have flat ones."""
    tables, offsets, place = [], [], 0
    for i, j in zip(first, second, strict=True):
        table = number((2, 2))
        lack = table[0, 1] + table[1, 0] - table[0, 0] - table[1, 1]
        table[1, 1] += max(lack, 0)
        table = table[: n_labels[i], : n_labels[j]]
        offsets.append(place)
        tables.append(table.ravel())
        place += table.size
    return np.concatenate([*tables, np.zeros(0)]), np.array(offsets, np.int64)


def random_scores(rng, with_tables, whole, single=0.2, most_nodes=7):
    """Small graphs; whole numbers make ties."""
    number = (lambda size: rng.integers(-3, 4, size).astype(float)) if whole else (lambda size: rng.normal(size=size))
    n_nodes = int(rng.integers(0, most_nodes + 1))
    first, second = random_edges(rng, n_nodes, int(rng.integers(0, 2 * n_nodes + 1)))
    n_labels = np.where(rng.random(n_nodes) < single, 1, 2)
    unary = number(n_labels.sum())
    if with_tables:
        return Scores(n_labels, first, second, unary, *agreeable_tables(rng, n_labels, first, second, number))
    return Scores(n_labels, first, second, unary, np.abs(number(len(first))))


def give(cut, scores):
    cut.set_unary_scores(scores.unary)
    cut.set_pair_scores(scores.values, scores.offsets)


def assert_best(scores, labels, score):
    assert labels.dtype == np.int32
    assert score == pytest.approx(scores.of(labels), abs=1e-12)
    assert score == pytest.approx(scores.best(), abs=1e-12)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("with_tables", [True, False])
def test_labels_are_the_best_of_all(with_tables, whole):
    rng = np.random.default_rng(1)
    for _ in range(150):
        scores = random_scores(rng, with_tables, whole)
        cut = _core.GraphCut(*scores.shape)
        give(cut, scores)
        assert_best(scores, *cut.solve())


@pytest.mark.parametrize("with_tables", [True, False])
def test_labels_stay_the_best_when_scores_change(with_tables):
    rng = np.random.default_rng(2)
    for _ in range(60):
        scores = random_scores(rng, with_tables, whole=False, most_nodes=6)
        cut = _core.GraphCut(*scores.shape)
        give(cut, scores)
        for change in rng.permutation(["unary", "pairs", "nothing", "loss", "size"]):
            if change in ("unary", "loss"):
                scores.unary = scores.unary + (
                    rng.normal(size=len(scores.unary)) if change == "unary" else rng.choice([0, 0.5], len(scores.unary))
                )
                cut.set_unary_scores(scores.unary)
            elif change == "pairs":
                if with_tables:
                    scores.values, _ = agreeable_tables(
                        rng, scores.n_labels, scores.first, scores.second, lambda n: rng.normal(size=n)
                    )
                else:
                    scores.values = rng.random(len(scores.first)) * (rng.random(len(scores.first)) < 0.7)
                cut.set_pair_scores(scores.values, scores.offsets)
            elif change == "size":
                scores.unary, scores.values = scores.unary * 1e-6, scores.values * 1e-6
                give(cut, scores)
            labels, score = cut.solve()
            assert_best(scores, labels, score)


def test_of_equal_labellings_the_one_with_the_fewest_ones_is_returned():
    rng = np.random.default_rng(3)
    ties = 0
    for _ in range(200):
        scores = random_scores(rng, with_tables=False, whole=True, most_nodes=6)
        cut = _core.GraphCut(*scores.shape)
        give(cut, scores)
        labels, best = cut.solve()
        equals = [other for other in all_labellings(scores.n_labels) if scores.of(other) == best]
        ties += len(equals) > 1
        assert np.array_equal(labels, np.minimum.reduce(equals))
    assert ties > 20


def test_without_scores_all_labels_are_zero():
    cut = _core.GraphCut(np.array([0, 2, 3, 5]), np.array([0, 1], np.int32), np.array([1, 2], np.int32))
    labels, score = cut.solve()
    assert labels.tolist() == [0, 0, 0]
    assert score == 0.0


def test_an_empty_graph_has_an_empty_labelling():
    none = np.zeros(0, np.int32)
    cut = _core.GraphCut(np.zeros(1, np.int64), none, none)
    labels, score = cut.solve()
    assert labels.shape == (0,)
    assert score == 0.0


def test_edges_may_share_a_table():
    scores = Scores(
        [2, 2, 2],
        np.array([0, 1], np.int32),
        np.array([1, 2], np.int32),
        np.array([1.0, 0, 0, 0, 0, 3]),
        np.array([2.0, -1, 0, 1]),
        np.zeros(2, np.int64),
    )
    cut = _core.GraphCut(*scores.shape)
    give(cut, scores)
    assert_best(scores, *cut.solve())


def test_warm_and_cold_cuts_of_a_grid_agree():
    rng = np.random.default_rng(4)
    first, second = grid_edges(30, 40)
    offsets = np.arange(1201) * 2
    warm = _core.GraphCut(offsets, first, second)
    for _ in range(10):
        unary, pairs = rng.normal(size=2400), rng.random(len(first)) * rng.choice([0.1, 1.0, 5.0])
        cold = _core.GraphCut(offsets, first, second)
        for cut in (warm, cold):
            cut.set_unary_scores(unary)
            cut.set_pair_scores(pairs)
        (labels, score), (expected_labels, expected) = warm.solve(), cold.solve()
        assert score == pytest.approx(expected, rel=1e-12)
        assert np.array_equal(labels, expected_labels)


def test_threads_may_share_a_cut():
    rng = np.random.default_rng(5)
    first, second = grid_edges(40, 40)
    cut = _core.GraphCut(np.arange(1601) * 2, first, second)
    cut.set_unary_scores(rng.normal(size=3200))
    cut.set_pair_scores(rng.random(len(first)))
    expected = cut.solve()

    def solve_anew(_):
        cut.forget_flow()
        return cut.solve()

    with ThreadPoolExecutor(4) as pool:
        for labels, score in pool.map(solve_anew, range(40)):
            assert np.array_equal(labels, expected[0])
            assert score == expected[1]


def two_nodes():
    return _core.GraphCut(np.array([0, 2, 4]), np.array([0], np.int32), np.array([1], np.int32))


def test_an_edge_that_likes_disagreement_is_refused_by_name_and_changes_nothing():
    cut = two_nodes()
    cut.set_unary_scores(np.array([0.0, 1.0, 0.5, 0.0]))
    cut.set_pair_scores(np.array([2.0]))
    message = (
        r"edge 0 between nodes 0 and 1 scores 1 at labels \(0, 0\), 2 at \(0, 1\), 0.25 at \(1, 0\) "
        r"and 1 at \(1, 1\).*TRW-S"
    )
    with pytest.raises(ValueError, match=message):
        cut.set_pair_scores(np.array([1.0, 2.0, 0.25, 1.0]), np.zeros(1, np.int64))
    with pytest.raises(ValueError, match=r"edge 0 .*TRW-S"):
        cut.set_pair_scores(np.array([-1e-9]))
    labels, score = cut.solve()
    assert labels.tolist() == [1, 1]
    assert score == 3.0


def test_what_rounding_takes_from_agreement_is_forgiven():
    cut = two_nodes()
    cut.set_pair_scores(np.array([0.1 + 0.2, 0.3, 0.3, 0.3]) - np.array([0, 1e-15, 0, 0.0]), np.zeros(1, np.int64))
    cut.set_pair_scores(1e8 * np.array([0.3, 0.1 + 0.2, 0.3, 0.3]), np.zeros(1, np.int64))
    assert cut.solve()[1] == pytest.approx(3e7)


INT32, INT64 = np.int32, np.int64


@pytest.mark.parametrize(
    ("offsets", "first", "second", "message"),
    [
        ([], [], [], "label_offsets must begin with 0"),
        ([1, 2], [], [], "label_offsets must begin with 0"),
        ([0, 2, 2], [], [], "node 1 has no label"),
        ([0, 2, 1], [], [], "node 1 has no label"),
        ([0, 2, 5], [], [], "node 1 has 3 labels.*alpha-expansion or TRW-S"),
        ([0, 2**62], [], [], "node 0 has 4611686018427387904 labels, which is too many"),
        ([0, 2, 4], [0], [2], "out of range"),
        ([0, 2, 4], [1], [1], "joins node 1 to itself"),
    ],
)
def test_shapes_that_are_none_are_refused(offsets, first, second, message):
    with pytest.raises(ValueError, match=message):
        _core.GraphCut(np.array(offsets, INT64), np.array(first, INT32), np.array(second, INT32))


def test_scores_that_do_not_fit_are_refused():
    cut = two_nodes()
    with pytest.raises(ValueError, match="unary has 3 entries, expected 4"):
        cut.set_unary_scores(np.zeros(3))
    with pytest.raises(ValueError, match=r"unary\[1\] is nan"):
        cut.set_unary_scores(np.array([0.0, np.nan, 0, 0]))
    with pytest.raises(ValueError, match="values has 2 entries, expected 1"):
        cut.set_pair_scores(np.zeros(2))
    with pytest.raises(ValueError, match=r"values\[0\] is inf"):
        cut.set_pair_scores(np.array([np.inf]))
    with pytest.raises(ValueError, match="offsets has 2 entries, expected 1"):
        cut.set_pair_scores(np.zeros(4), np.zeros(2, INT64))
    for offset in (-1, 1, 4, 2**62):
        with pytest.raises(ValueError, match=rf"offsets\[0\] is {offset}: a table of 2 by 2 labels does not fit"):
            cut.set_pair_scores(np.zeros(4), np.array([offset], INT64))
