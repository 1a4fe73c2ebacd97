"""The estimators: what they compute, what they take, and what they say to what they do not take."""

import signal
import warnings
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from maxmargin.datasets import load_ewt_sample
from maxmargin.estimators import BinarySVM, ChainSVM, MulticlassSVM, StructuralSVM
from maxmargin.features import token_features
from maxmargin.model import Model
from maxmargin.models import Chain, Sequences

NAMES = [f"f{j}" for j in range(6)]
LABELS = ["A", "B", "C"]


def sequences(seed=0, n=12):
    """Random sequences of indicator rows, and labels that follow from them."""
    rng = np.random.default_rng(seed)
    X = [(rng.random((length, 6)) < 0.5).astype(float) for length in rng.integers(1, 7, n)]
    scores = rng.normal(size=(6, 3))
    return X, [[LABELS[k] for k in (x @ scores).argmax(axis=1)] for x in X]


def as_kind(X, kind):
    """The same sequences in another form."""
    if kind == "dense":
        return X
    if kind == "stacked":
        return Sequences(np.concatenate(X), [len(x) for x in X])
    if kind in ("csr", "csr64"):
        matrices = [sp.csr_array(x) for x in X]
        for matrix in matrices:
            if kind == "csr64":
                matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        return matrices
    if kind == "float32":
        return [x.astype(np.float32) for x in X]
    if kind == "integers":
        return [x.astype(int) for x in X]
    if kind == "lists":
        return [x.tolist() for x in X]
    named = [[[name for name, value in zip(NAMES, row, strict=True) if value] for row in x] for x in X]
    if kind == "strings":
        return named
    if kind == "repeated strings":
        return [[token * 2 for token in x] for x in named]
    return [[dict.fromkeys(token, 1.0) for token in x] for x in named]


# ------------------------------------------------------------------------------------------------- objectives


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_binary_objective_is_that_of_liblinear(C):
    X, y = make_classification(150, n_features=8, flip_y=0.2, random_state=0)
    ours = BinarySVM(C=C, fit_intercept=False, tol=1e-6).fit(X, y)
    theirs = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)

    def objective(w):
        return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w)).sum()

    assert ours.certificate_.primal == pytest.approx(objective(ours.coef_[0]), rel=1e-9)
    assert objective(ours.coef_[0]) == pytest.approx(objective(theirs.coef_[0]), rel=1e-3)


def test_intercept_is_a_regularised_column():
    X, y = make_classification(80, n_features=4, weights=[0.8], random_state=1)
    with_intercept = BinarySVM(intercept_scaling=2.0, tol=1e-8).fit(X, y)
    column = BinarySVM(fit_intercept=False, tol=1e-8).fit(np.column_stack([X, np.full(80, 2.0)]), y)
    np.testing.assert_allclose(with_intercept.intercept_, 2.0 * column.coef_[:, -1], atol=1e-4)
    np.testing.assert_allclose(with_intercept.coef_, column.coef_[:, :-1], atol=1e-4)
    np.testing.assert_allclose(BinarySVM(tol=1e-8).fit(sp.csr_array(X), y).coef_, BinarySVM(tol=1e-8).fit(X, y).coef_)


def test_two_classes_are_the_binary_problem_at_twice_the_C():
    X, y = make_classification(80, n_features=4, random_state=2)
    two = MulticlassSVM(C=0.5, tol=1e-9).fit(X, y)
    binary = BinarySVM(C=1.0, tol=1e-9).fit(X, y)
    assert two.coef_.shape == binary.coef_.shape == (1, 4)
    np.testing.assert_allclose(two.decision_function(X), binary.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("estimator", [BinarySVM, MulticlassSVM])
def test_cost_and_class_weight_favour_a_class(estimator):
    X, y = make_classification(200, n_features=4, flip_y=0.3, random_state=3)
    y = np.array(["no", "yes"])[y]
    plain = (estimator().fit(X, y).predict(X) == "yes").mean()
    cost = np.array([[0.0, 1.0], [9.0, 0.0]])
    for svm in (estimator(cost=cost), estimator(cost={"yes": 9.0}), estimator(class_weight={"yes": 9.0})):
        assert (svm.fit(X, y).predict(X) == "yes").mean() > plain + 0.1
    as_dict, as_matrix = estimator(cost={"yes": 9.0}).fit(X, y), estimator(cost=cost).fit(X, y)
    np.testing.assert_array_equal(as_dict.coef_, as_matrix.coef_)


def test_a_number_as_cost_is_that_number_everywhere():
    X, y = load_iris(return_X_y=True)
    number = MulticlassSVM(cost=2.0).fit(X, y)
    matrix = MulticlassSVM(cost=2.0 * (1 - np.eye(3))).fit(X, y)
    np.testing.assert_array_equal(number.coef_, matrix.coef_)


def test_balanced_weights_count_sample_weights():
    X, y = make_classification(100, n_features=4, weights=[0.8], random_state=4)
    weight = np.random.default_rng(0).integers(1, 4, 100)
    weighted = BinarySVM(class_weight="balanced", tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = BinarySVM(class_weight="balanced", tol=1e-9).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("labels", [[False, True], [-3, 8], [1.0, 2.0], ["n", "y"]])
def test_classes_come_back_as_they_were(labels):
    X, y = make_classification(40, n_features=4, random_state=0)
    for estimator in (BinarySVM(), MulticlassSVM()):
        fitted = estimator.fit(X, np.array(labels)[y])
        assert set(fitted.predict(X).tolist()) == set(labels)
        assert fitted.predict(X).dtype == np.array(labels).dtype


def test_sparse_with_long_indices_and_small_floats():
    X, y = load_iris(return_X_y=True)
    expected = MulticlassSVM(tol=1e-8).fit(X.astype(np.float32), y).decision_function(X)
    sparse = sp.csr_array(X.astype(np.float32))
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    np.testing.assert_allclose(MulticlassSVM(tol=1e-8).fit(sparse, y).decision_function(X), expected, atol=1e-3)


# ------------------------------------------------------------------------------------------------------ chains


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
    tagger = ChainSVM(forbidden=forbidden).fit(X, y)
    # Rows that shout for the forbidden labels.
    for labels in tagger.predict([100 * rng.normal(size=(30, 2)) for _ in range(20)]):
        assert not {("B", "B"), ("C", "A")} & set(pairwise(labels))
    with pytest.raises(ValueError, match=r"y\[1\] has the forbidden transition 'C' → 'A' at token 1"):
        ChainSVM(forbidden=forbidden).fit(X[:2], [list("ABABCC"), list("CCABCC")])


def test_token_weights_and_label_weights_are_the_same_loss():
    X, y = sequences()
    by_label = ChainSVM(cost={"B": 3.0, "unheard of": 2.0}, tol=1e-9).fit(X, y)
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


# -------------------------------------------------------------------------------------------------- structural


class Nearest(Model):
    n_features = 1

    def joint_feature(self, x, y):
        return [-abs(x - y)]

    def loss(self, y_true, y):
        return abs(y_true - y)

    def outputs(self, x):
        return range(5)


def test_structural_score_is_the_negative_mean_loss():
    svm = StructuralSVM(Nearest(), C=10.0).fit([0.2, 3.1, 1.8], [0, 3, 2])
    assert svm.predict([0.9, 3.7]) == [1, 4]
    assert svm.score([0.9, 3.7], [1, 2]) == -1.0
    assert svm.score([0.9, 3.7], [1, 2], sample_weight=[3, 1]) == -0.5
    assert svm.coef_.shape == (1,)


def test_structural_refuses_what_is_no_model():
    with pytest.raises(TypeError, match=r"StructuralSVM\(Nearest\(\)\)"):
        StructuralSVM(Nearest).fit([0.2], [0])
    with pytest.raises(TypeError, match=r"subclass of maxmargin\.Model"):
        StructuralSVM("chain").fit([0.2], [0])
    with pytest.raises(ValueError, match="1 inputs but"):
        StructuralSVM(Nearest()).fit([0.2], [0]).score([0.2], [0, 1])


# ------------------------------------------------------------------------------------------- warm starts, limits


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_warm_starts_reach_the_same_optimum(kind):
    if kind == "chain":
        warm, (X, y) = ChainSVM(warm_start=True, tol=1e-6), sequences(n=40)
        other = sequences(seed=5, n=40)
    else:
        warm, (X, y) = BinarySVM(warm_start=True, tol=1e-6), make_classification(100, random_state=0)
        other = make_classification(100, random_state=1)
    for C in (0.1, 1.0, 0.5):
        cold = type(warm)(C=C, tol=1e-6).fit(X, y)
        assert warm.set_params(C=C).fit(X, y).certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)
    # Planes of other data would give a bound above the optimum.
    cold = type(warm)(C=C, tol=1e-6).fit(*other)
    assert warm.fit(*other).certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)
    assert warm.certificate_.dual <= cold.certificate_.primal


def test_limits_leave_a_usable_model_and_a_warning():
    X, y = sequences()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        tagger = ChainSVM(max_iter=2, tol=1e-9).fit(X, y)
    assert tagger.n_iter_ == 2
    assert not tagger.certificate_.converged
    assert len(tagger.predict(X)) == len(X)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_leaves_a_usable_model():
    X, y = make_classification(4000, n_features=200, n_informative=50, flip_y=0.3, random_state=0)
    svm = BinarySVM(C=100.0, tol=1e-12)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            svm.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert not svm.certificate_.converged
    assert svm.predict(X).shape == (4000,)


# ------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"C": 0}, "C must be a positive number, found 0"),
        ({"C": float("nan")}, "C must be a positive number"),
        ({"C": "1"}, "C must be a positive number, found '1'"),
        ({"loss": "log"}, "loss must be 'hinge' or 'squared_hinge'"),
        ({"rescaling": "none"}, "rescaling must be 'margin' or 'slack'"),
        ({"solver": "magic"}, "solver must be one of 'auto'"),
        ({"solver_options": {"cash_size": 1}}, "has no option 'cash_size'"),
        ({"tol": -1.0}, "tol must be"),
        ({"max_iter": 0}, "max_iter must be"),
        ({"max_time": 0}, "max_time must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
        ({"verbose": -1}, "verbose must be"),
        ({"warm_start": "yes"}, "warm_start must be"),
        ({"random_state": "seed"}, "random_state must be"),
    ],
)
@pytest.mark.parametrize("estimator", [BinarySVM, MulticlassSVM, ChainSVM])
def test_wrong_parameters_are_named(estimator, parameters, text):
    X, y = sequences() if estimator is ChainSVM else make_classification(20)
    with pytest.raises(ValueError, match=text):
        estimator(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"cost": "hamming"}, "cost must be None, 'zero-one', a number"),
        ({"cost": np.ones((2, 2))}, "0 on the diagonal"),
        ({"cost": np.zeros((3, 3))}, r"cost has shape \(3, 3\), expected \(2, 2\)"),
        ({"cost": -1.0}, "cost must be positive"),
        ({"cost": {"a": 2.0}}, "cost names 'a', and none of its labels occurs in y, whose labels are 0, 1"),
        ({"cost": {0: -2.0}}, r"cost\[0\] must be a number ≥ 0"),
        ({"cost": [["a"]]}, "cost must be None, 'zero-one'"),
        ({"class_weight": "even"}, "class_weight must be a dict, 'balanced' or None"),
        ({"class_weight": {7: 1.0}}, "class_weight names 7"),
        ({"class_weight": {0: -1.0}}, r"class_weight\[0\] must be a number ≥ 0, found -1.0"),
        ({"intercept_scaling": 0.0}, "intercept_scaling must be a positive number"),
    ],
)
def test_wrong_parameters_of_classifiers_are_named(parameters, text):
    X, y = make_classification(20, random_state=0)
    with pytest.raises(ValueError, match=text):
        BinarySVM(**parameters).fit(X, y)


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"cost": "zero-one"}, "cost must be None, 'hamming'"),
        ({"cost": {"X": 2.0}}, "none of its labels occurs"),
        ({"forbidden": "AB"}, "forbidden must hold pairs"),
        ({"forbidden": [("A", "B", "C")]}, "forbidden must hold pairs"),
        ({"forbidden": [(0, 1)]}, "forbidden names 0, and none of its labels occurs in y"),
    ],
)
def test_wrong_parameters_of_chains_are_named(parameters, text):
    with pytest.raises(ValueError, match=text):
        ChainSVM(**parameters).fit(*sequences())


def test_the_number_of_classes_must_fit():
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=r"greater than one; got 1 class"):
        BinarySVM().fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=r"greater than one; got 1 class"):
        MulticlassSVM().fit(X[:50], y[:50])
    with pytest.raises(ValueError, match=r"Only binary classification .* MulticlassSVM"):
        BinarySVM().fit(X, y)


@pytest.mark.parametrize("size", [1e12, 1e50, 1e160, 1e300])
def test_huge_values_are_learned_with_a_C_to_match_or_refused(size):
    X, y = make_classification(30, n_features=4, random_state=0)
    X_chain, y_chain = sequences()
    for estimator, data, target in ((BinarySVM, X * size, y), (ChainSVM, [x * size for x in X_chain], y_chain)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if size > 1e100:
                with pytest.raises(ValueError, match="scale the features"):
                    estimator(max_iter=200).fit(data, target)
                continue
            # Between what is plain and what overflows, a C that fits makes a problem like any other.
            fitted = estimator(C=1.0 / size**2, max_iter=200).fit(data, target)
        assert fitted.certificate_.converged
        assert fitted.score(data, target) > 0.6
    fitted = BinarySVM().fit(X, y)
    with pytest.raises(ValueError, match=r"score of X\[2\] leaves double precision"):
        fitted.decision_function(np.vstack([X[:2], np.sign(fitted.coef_) * 1.7e308]))


@pytest.mark.parametrize("size", [1e8, 1e12, 1e50])
def test_no_certificate_is_made_of_rounding_errors(size):
    X, y = make_classification(60, n_features=4, flip_y=0.3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            certificate = BinarySVM(max_iter=200).fit(X * size, y).certificate_
        except ValueError as error:
            message = str(error)
        else:
            assert certificate.dual <= certificate.primal * (1 + 1e-6)
            return
    assert "scale the features" in message


def replaced(values, i, value):
    return [*values[:i], value, *values[i + 1 :]]


def test_what_is_wrong_with_sequences_is_said():
    X, y = sequences()
    strings = as_kind(X, "strings")
    dicts = as_kind(X, "dicts")
    bad = X[3].copy()
    bad[-1, 2] = np.nan
    cases = [
        ([], [], ValueError, "X is empty"),
        (7, y, TypeError, "X is of type int; expected a list of sequences"),
        (X[0], y, ValueError, "X is one matrix"),
        (sp.csr_array(X[0]), y, TypeError, "X is of type csr_array"),
        ({0: X[0]}, y, TypeError, "X is of type dict"),
        (replaced(X, 2, 5.0), y, TypeError, r"X\[2\] is of type float"),
        (replaced(X, 2, X[2][:0]), y, ValueError, r"X\[2\] is empty"),
        (replaced(strings, 2, []), y, ValueError, r"X\[2\] is empty"),
        (replaced(X, 3, bad), y, ValueError, rf"X\[3\] holds nan in row {len(bad) - 1}"),
        (replaced(as_kind(X, "csr"), 3, sp.csr_array(bad)), y, ValueError, rf"X\[3\] holds nan in row {len(bad) - 1}"),
        (replaced(X, 4, X[4][:, :5]), y, ValueError, r"X\[4\] has 5 columns but X\[0\] has 6"),
        (replaced(X, 4, X[4].ravel()), y, ValueError, r"X\[4\] has shape"),
        (replaced(X, 4, X[4] + 1j), y, TypeError, r"X\[4\] holds values of type complex128"),
        (replaced(X, 4, sp.csr_array(X[4])), y, TypeError, r"X\[0\] and X\[4\] are of different kinds"),
        (replaced(X, 4, strings[4]), y, TypeError, r"X\[4\] is of type list, but X\[0\] is of type ndarray"),
        ([[[1.0, 2.0], [1.0]]], [["A", "B"]], ValueError, r"X\[0\] has rows of different lengths"),
        ([["We", "sell"]], [["A", "B"]], TypeError, r"X\[0\]\[0\] is the string 'We'.*token_features"),
        (replaced(strings, 1, [["a"], {"a": 1.0}]), y, TypeError, r"X\[1\]\[1\] is of type dict, but X\[0\]\[0\]"),
        (replaced(strings, 1, [["a"], [3]]), y, TypeError, r"X\[1\]\[1\] has the feature 3 \(int\)"),
        (replaced(strings, 1, [["a"], [["b"]]]), y, TypeError, r"X\[1\]\[1\] has the feature \['b'\]"),
        (replaced(dicts, 1, [{"a": None}]), y, TypeError, r"X\[1\]\[0\] has the feature 'a' with the value None"),
        (replaced(dicts, 1, [{}, {"a": np.inf}]), y, ValueError, r"X\[1\]\[1\] has a feature with the value inf"),
        (replaced(dicts, 1, [{2: 1.0}]), y, TypeError, r"X\[1\]\[0\] has the feature 2 \(int\)"),
        ([[[], []]], [["A", "B"]], ValueError, "no token of X has a feature"),
        (X, y[:-1], ValueError, "y has 11 label sequences but X has 12 sequences"),
        (X, 3, TypeError, "y is of type int"),
        (X, replaced(y, 5, 3), TypeError, r"y\[5\] is 3"),
        (X, replaced(y, 5, [["A"]] * len(X[5])), TypeError, r"y\[5\]\[0\] is \['A'\], which has no hash"),
        (X, replaced(y, 5, [float("nan")] * len(X[5])), ValueError, r"y\[5\]\[0\] is nan"),
    ]
    for given, labels, error, text in cases:
        with pytest.raises(error, match=text):
            ChainSVM().fit(given, labels)


def test_a_missing_label_is_said_in_the_words_of_the_style_guide():
    X = [np.ones((13, 2)) for _ in range(20)]
    y = [["A"] * 13 for _ in range(20)]
    y[17] = ["A"] * 12
    with pytest.raises(
        ValueError, match=r"^y\[17\] has 12 labels but X\[17\] has 13 rows: every token needs one label\.$"
    ):
        ChainSVM().fit(X, y)


def test_wrong_weights_of_sequences_are_said():
    X, y = sequences()
    tokens = [np.ones(len(x)) for x in X]
    with pytest.raises(ValueError, match="sample_weight has shape"):
        ChainSVM().fit(X, y, sample_weight=[1.0])
    with pytest.raises(ValueError, match="at least one non-zero"):
        ChainSVM().fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"token_weight\[3\] has shape"):
        ChainSVM().fit(X, y, token_weight=replaced(tokens, 3, np.ones(9)))
    with pytest.raises(ValueError, match=r"token_weight\[3\] must hold finite"):
        ChainSVM().fit(X, y, token_weight=replaced(tokens, 3, -tokens[3]))


def test_prediction_takes_the_features_of_training():
    X, y = sequences()
    dense, named = ChainSVM().fit(X, y), ChainSVM().fit(as_kind(X, "strings"), y)
    with pytest.raises(ValueError, match="X has 5 features, but ChainSVM is expecting 6"):
        dense.predict([x[:, :5] for x in X])
    with pytest.raises(TypeError, match="fitted on matrices"):
        dense.predict(as_kind(X, "strings"))
    with pytest.raises(TypeError, match="fitted on features with names"):
        named.predict(X)
    assert named.predict(as_kind(X, "dicts")) == named.predict(as_kind(X, "strings"))
    assert "feature_names_" not in vars(named.fit(X, y))
