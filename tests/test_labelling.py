"""The best labelling for models of one's own, against all labellings."""

import itertools

import numpy as np
import pytest

import maxmargin as mm


def score_of(labels, scores, edges, pair_scores):
    total = sum(values[label] for values, label in zip(scores, labels, strict=True))
    return total + sum(table[labels[a], labels[b]] for (a, b), table in zip(edges, pair_scores, strict=True))


@pytest.mark.parametrize("inference", ["auto", "enumeration", "trws"])
@pytest.mark.parametrize("seed", range(8))
def test_it_is_best_or_says_by_how_much_not(seed, inference):
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 4, size=rng.integers(1, 6))
    scores = [rng.normal(size=k) for k in counts]
    pairs = list(itertools.combinations(range(len(counts)), 2))
    edges = [pair for pair in pairs if rng.random() < 0.7]
    pair_scores = [rng.normal(size=(counts[a], counts[b])) for a, b in edges]
    found = mm.models.best_labelling(scores, edges, pair_scores, inference=inference)
    best = max(score_of(labels, scores, edges, pair_scores) for labels in itertools.product(*map(range, counts)))
    assert found.score == pytest.approx(score_of(found.labels, scores, edges, pair_scores))
    assert found.score <= best + 1e-9
    assert found.score + found.gap >= best - 1e-9
    if inference != "trws":
        assert found.gap == 0.0
        assert found.score == pytest.approx(best)


@pytest.mark.parametrize(
    ("scores", "edges", "table", "method"),
    [
        ([[0.0, 1.0]] * 3, [[0, 1], [1, 2]], -np.eye(2), "forest"),
        ([[0.0, 1.0]] * 3, [[0, 1], [1, 2], [0, 2]], np.eye(2), "cut"),
        ([[0.0, 1.0]] * 3, [[0, 1], [1, 2], [0, 2]], -np.eye(2), "enumeration"),
        ([[0.0, 1.0, 2.0]] * 9, [[i, (i + 1) % 9] for i in range(9)], -np.eye(3), "trws"),
    ],
)
def test_it_says_what_auto_took(scores, edges, table, method):
    assert mm.models.best_labelling(scores, edges, [table] * len(edges)).method == method
    if method != "trws":
        assert (
            mm.models.best_labelling(scores, edges, [table] * len(edges), inference="enumeration").method
            == "enumeration"
        )


@pytest.mark.parametrize(
    ("scores", "edges", "pair_scores", "message"),
    [
        ([[1.0], [[1.0]]], [], [], r"scores\[1\] has shape \(1, 1\)"),
        ([[1.0], []], [], [], r"scores\[1\] has shape \(0,\)"),
        ([[1.0], [2.0]], [[0, 1]], [[1.0]], r"pair_scores\[0\] has shape \(1,\)"),
        ([[1.0], [2.0]], [[0, 1]], [[[1.0, 2.0]]], r"pair_scores\[0\] is 1 × 2, but nodes 0 and 1 have 1 and 1 labels"),
        ([[1.0], [2.0]], [[0, 1]], [], "pair_scores has 0 tables but there are 1 edges"),
        ([[1.0], [2.0]], [], [[[1.0]]], "pair_scores has 1 tables but there are 0 edges"),
        ([[1.0], [2.0]], [[0, 1]], [[[1.0], [2.0, 3.0]]], r"pair_scores\[0\] must hold real numbers"),
        ([[1.0], [2.0]], [[0, 1], [0]], [[[1.0]]], "edges has rows of different lengths"),
        ([[1.0], [2.0]], [[0.5, 1]], [[[1.0]]], "edges has shape"),
        ([["a"], [2.0]], [], [], r"scores\[0\] must hold real numbers"),
        ([[1.0], [1e200]], [], [], r"scores\[1\] holds 1e\+200"),
        ([[1.0], [2.0]], [[0, 2]], [[[1.0]]], "edges"),
        ([[1.0], [np.nan]], [], [], r"scores\[1\] holds nan"),
        ([], [], [], "scores is empty"),
    ],
)
def test_wrong_scores_are_refused(scores, edges, pair_scores, message):
    with pytest.raises(ValueError, match=message):
        mm.models.best_labelling(scores, edges, pair_scores)
