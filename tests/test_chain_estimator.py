"""ChainSVM: what it takes, computes and predicts."""

from itertools import pairwise

import numpy as np
import pytest
from sequence_examples import LABELS, NAMES, as_kind, sequences

from maxmargin.datasets import load_ewt_sample
from maxmargin.estimators import ChainSVM
from maxmargin.features import token_features
from maxmargin.models import Chain


@pytest.mark.parametrize(
    "kind", ["csr", "csr64", "float32", "integers", "lists", "stacked", "strings", "repeated strings", "dicts"]
)
def test_every_kind_of_sequence_gives_the_same_tagger(kind):
    X, y = sequences()
    dense = ChainSVM(tol=1e-9).fit(X, y)
    other = ChainSVM(tol=1e-9).fit(as_kind(X, kind), y)
    assert other.predict(as_kind(X, kind)) == dense.predict(X)
    assert other.n_features_in_ == 6
    order = [NAMES.index(name) for name in other.feature_names_] if "feature_names_" in vars(other) else range(6)
    np.testing.assert_allclose(other.coef_, dense.coef_[:, order], atol=1e-4)
    np.testing.assert_allclose(other.transition_, dense.transition_, atol=1e-4)


def test_strings_in_dicts_are_indicators_and_numbers_are_values():
    X = [[{"word": "sea", "length": 3}, {"word": "shells", "length": 6.0, "plural": True}]]
    tagger = ChainSVM().fit(X, [["N", "NS"]])
    assert sorted(tagger.feature_names_) == ["length", "plural", "word=sea", "word=shells"]
    assert tagger.feature_names_[0] == "length"  # the most frequent


def test_unseen_features_are_ignored():
    X, y = sequences()
    tagger = ChainSVM().fit(as_kind(X, "strings"), y)
    extended = [[[*token, "new"] for token in x] for x in as_kind(X, "strings")]
    assert tagger.predict(extended) == tagger.predict(as_kind(X, "strings"))
    assert len(tagger.predict([[["new"], []]])[0]) == 2


def test_weights_score_as_the_formula_says():
    X, y = sequences()
    tagger = ChainSVM(ends=True).fit(X, y)
    for x, best in zip(X, tagger.predict_topk(X, 3), strict=True):
        for labels, score in best:
            k = [LABELS.index(label) for label in labels]
            expected = sum(x[t] @ tagger.coef_[k[t]] for t in range(len(k)))
            expected += sum(tagger.transition_[a, b] for a, b in pairwise(k))
            assert score == pytest.approx(expected + tagger.start_[k[0]] + tagger.stop_[k[-1]])


def test_top_k_starts_with_the_prediction_and_falls():
    X, y = sequences()
    tagger = ChainSVM().fit(X, y)
    for x, best, predicted in zip(X, tagger.predict_topk(X, 5), tagger.predict(X), strict=True):
        assert best[0][0] == predicted
        assert len(best) == min(5, 3 ** len(x))
        assert all(a[1] >= b[1] for a, b in pairwise(best))
        assert len({tuple(labels) for labels, _ in best}) == len(best)
    with pytest.raises(ValueError, match="k must be"):
        tagger.predict_topk(X, 0)


def test_max_marginals_peak_at_the_prediction():
    X, y = sequences()
    tagger = ChainSVM(ends=True).fit(X, y)
    marginals, topk = tagger.decision_function(X), tagger.predict_topk(X, 1)
    for matrix, predicted, best in zip(marginals, tagger.predict(X), topk, strict=True):
        assert tagger.classes_[matrix.argmax(axis=1)].tolist() == predicted
        np.testing.assert_allclose(matrix.max(axis=1), best[0][1])


@pytest.mark.parametrize("method", ["predict", "decision_function", "predict_topk"])
def test_prediction_uses_n_jobs_and_gives_the_same_for_any(method, monkeypatch):
    X, y = sequences(n=200)
    tagger = ChainSVM().fit(X[:30], y[:30])
    arguments = (X, 4) if method == "predict_topk" else (X,)
    expected = getattr(tagger, method)(*arguments)
    of_model = {"predict": "predict", "decision_function": "max_marginals", "predict_topk": "k_best"}[method]
    asked, plain = [], getattr(Chain, of_model)
    monkeypatch.setattr(Chain, of_model, lambda *given: asked.append(given[-1]) or plain(*given))
    for n_jobs in (2, 3):
        found = getattr(tagger.set_params(n_jobs=n_jobs), method)(*arguments)
        np.testing.assert_equal(found, expected)
    assert asked == [2, 3]


def test_start_and_stop_are_zero_without_ends():
    X, y = sequences()
    tagger = ChainSVM().fit(X, y)
    assert not tagger.start_.any()
    assert not tagger.stop_.any()
    assert not hasattr(ChainSVM(), "coef_")


def test_forbidden_transitions_are_never_predicted():
    rng = np.random.default_rng(0)
    X, y = [rng.normal(size=(6, 2)) for _ in range(20)], [list("ABABCC") for _ in range(20)]
    forbidden = [("B", "B"), ("C", "A"), ("A", "never seen")]
    with pytest.warns(UserWarning, match="forbidden names 'never seen', which y does not contain"):
        tagger = ChainSVM(forbidden=forbidden).fit(X, y)
    # Rows that shout for the forbidden labels.
    for labels in tagger.predict([100 * rng.normal(size=(30, 2)) for _ in range(20)]):
        assert not {("B", "B"), ("C", "A")} & set(pairwise(labels))
    with pytest.raises(ValueError, match=r"y\[1\] has the forbidden transition 'C' → 'A' at token 1"):
        ChainSVM(forbidden=forbidden[:2]).fit(X[:2], [list("ABABCC"), list("CCABCC")])


def test_token_weights_and_label_weights_are_the_same_loss():
    X, y = sequences()
    by_label = ChainSVM(cost={"B": 3.0}, tol=1e-9).fit(X, y)
    weights = [[3.0 if label == "B" else 1.0 for label in labels] for labels in y]
    by_token = ChainSVM(tol=1e-9).fit(X, y, token_weight=weights)
    matrix = np.array([[0, 1, 1], [3, 0, 3], [1, 1, 0]])
    by_matrix = ChainSVM(cost=matrix, tol=1e-9).fit(X, y)
    for other in (by_token, by_matrix):
        assert other.certificate_.primal == pytest.approx(by_label.certificate_.primal, rel=1e-6)
        np.testing.assert_allclose(other.coef_, by_label.coef_, atol=1e-4)
    assert ChainSVM().fit(X, y).certificate_.primal < by_label.certificate_.primal


def test_sequence_weights_are_repetitions():
    X, y = sequences()
    weight = np.arange(len(X)) % 3
    weighted = ChainSVM(tol=1e-9).fit(X, y, sample_weight=weight)
    ids = np.repeat(np.arange(len(X)), weight)
    repeated = ChainSVM(tol=1e-9).fit([X[i] for i in ids], [y[i] for i in ids])
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)


def test_score_is_token_accuracy():
    X, y = sequences()
    tagger = ChainSVM(C=0.01).fit(X, y)
    hits = [np.array(p) == np.array(t) for p, t in zip(tagger.predict(X), y, strict=True)]
    assert tagger.score(X, y) == pytest.approx(np.concatenate(hits).mean())
    weight = np.arange(len(X))
    expected = sum(w * h.sum() for w, h in zip(weight, hits, strict=True)) / sum(
        w * len(h) for w, h in zip(weight, hits, strict=True)
    )
    assert tagger.score(X, y, sample_weight=weight) == pytest.approx(expected)
    assert tagger.score(X, [["unknown"] * len(labels) for labels in y]) == 0.0


@pytest.mark.parametrize(
    "labels", [[1, 2, 3], [True, False, None], [("N", 1), ("N", 2), "V"], [0.5, 1, "x"], list("abc")]
)
def test_labels_of_any_type_come_back(labels):
    X, y = sequences()
    y = [[labels[LABELS.index(label)] for label in part] for part in y]
    tagger = ChainSVM(C=100.0).fit(X, y)
    assert tagger.score(X, y) > 0.8
    found = {label for part in tagger.predict(X) for label in part}
    assert {(type(label), label) for label in found} <= {(type(label), label) for label in labels}


def test_labels_may_be_arrays():
    X, y = sequences()
    y = [np.array([LABELS.index(label) for label in part]) for part in y]
    tagger = ChainSVM().fit(X, y)
    assert tagger.classes_.tolist() == [0, 1, 2]
    assert tagger.score(X, y) == ChainSVM().fit(X, [part.tolist() for part in y]).score(X, y)


def test_one_label_is_a_constant():
    X, _ = sequences()
    assert ChainSVM().fit(X, [["O"] * len(x) for x in X]).predict(X) == [["O"] * len(x) for x in X]


def test_a_part_of_speech_tagger_learns_from_bundled_data():
    data = load_ewt_sample()
    X, y = [token_features(words) for words in data.train.words[:300]], data.train.tags[:300]
    tagger = ChainSVM(C=0.1, tol=0.1).fit(X, y)
    assert tagger.certificate_.relative_gap <= 0.1
    X_test = [token_features(words) for words in data.test.words[:100]]
    assert tagger.score(X_test, data.test.tags[:100]) > 0.75
