"""Learning from a stream: what partial_fit of the five estimators learns, and keeps from call to call."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_digits
from small_model import Classes, data
from streams import TAGS, WORDS, every_kind, every_solver, make, options, ring, weights
from tagging_problem import tagging_problem

import maxmargin as mm

pytestmark = pytest.mark.filterwarnings("error")


def in_parts(estimator, X, y, first, ends):
    """The estimator after partial_fit on parts of the data, each up to one of ``ends``."""
    begin = 0
    for end in ends:
        estimator.partial_fit(X[begin:end], y[begin:end], **(first if begin == 0 else {}))
        begin = end
    return estimator


@every_kind
@pytest.mark.parametrize("solver", ["perceptron", "mira"])
def test_parts_of_a_stream_give_what_the_whole_gives(kind, solver):
    estimator, X, y, first = make(kind, solver)
    whole = in_parts(clone(estimator), X, y, first, [40])
    parts = in_parts(clone(estimator), X, y, first, [1, 2, 13, 40])
    assert np.any(weights(whole) != 0)
    np.testing.assert_allclose(weights(parts), weights(whole), atol=1e-10)
    assert parts.n_iter_ == 4
    assert parts.certificate_.oracle_calls == 40


@every_kind
def test_sgd_counts_the_examples_so_far(kind):
    estimator, X, y, first = make(kind, "sgd")
    parts = in_parts(clone(estimator), X, y, first, [10, 40])
    seen = in_parts(clone(estimator), X, y, first, [10])
    # The second part shrinks w as if there were forty examples from then on.
    other = in_parts(clone(estimator), X, y, first, [40])
    assert not np.allclose(weights(parts), weights(other), atol=1e-6)
    assert not np.allclose(weights(parts), weights(seen), atol=1e-6)


def test_sgd_goes_on_with_its_step_and_its_count():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(9, 2)), rng.choice([-1, 1], 9)
    svm = mm.BinarySVM(2.0, fit_intercept=False, solver="sgd", solver_options={"eta0": 0.5})
    w = np.zeros(2)
    for t in range(9):
        n = 4 if t < 4 else 9
        violated = 1 - y[t] * (w @ X[t]) > 0
        eta = 0.5 / (1 + 0.5 * t / 2.0) ** 0.75
        w = max(0.0, 1 - eta / (n * 2.0)) * w + eta * violated * y[t] * X[t]
    svm.partial_fit(X[:4], y[:4], classes=[-1, 1]).partial_fit(X[4:], y[4:])
    np.testing.assert_allclose(svm.coef_[0], w, atol=1e-12)


def test_sgd_searches_its_step_on_the_first_examples_only():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.choice([-1, 1], 30)
    svm = mm.BinarySVM(2.0, fit_intercept=False, solver="sgd").partial_fit(X[:10], y[:10], classes=[-1, 1])
    # Five trials, each with its primal.
    assert svm.certificate_.oracle_calls == 5 * (10 + 10) + 10
    assert svm.partial_fit(X[10:], y[10:]).certificate_.oracle_calls == 5 * (10 + 10) + 30
    given = [
        mm.BinarySVM(2.0, fit_intercept=False, solver="sgd", solver_options={"eta0": 2.0**-k})
        .partial_fit(X[:10], y[:10], classes=[-1, 1])
        .partial_fit(X[10:], y[10:])
        for k in range(1, 6)
    ]
    assert sum(np.array_equal(svm.coef_, other.coef_) for other in given) == 1


def test_perceptron_averages_over_all_calls():
    X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [-1.0, 0.5]]), np.array([1, -1, -1, 1])
    svm = mm.BinarySVM(fit_intercept=False, solver="perceptron")
    w, iterates = np.zeros(2), []
    for x, truth in zip(X, y, strict=True):
        if (1 if w @ x > 0 else -1) != truth:
            w = w + truth * x
        iterates.append(w)
        svm.partial_fit([x], [truth], classes=[-1, 1])
        np.testing.assert_allclose(svm.coef_[0], np.mean(iterates, axis=0), atol=1e-12)


@every_kind
@every_solver
def test_a_stream_learns(kind, solver):
    estimator, X, y, first = make(kind, solver)
    for _ in range(10):
        estimator.partial_fit(X, y, **first)
    if kind == "structural":
        constant = mm.StructuralSVM(Classes()).fit(X, y)
        constant.coef_ = np.zeros(6)
        assert estimator.score(X, y) > constant.score(X, y)
    else:
        assert estimator.score(X, y) > 0.7
    certificate = estimator.certificate_
    assert certificate.primal is certificate.dual is certificate.relative_gap is None
    assert certificate.converged
    assert estimator.history_ == []


@every_kind
@every_solver
def test_fit_begins_anew_and_so_does_the_stream_after_it(kind, solver):
    estimator, X, y, first = make(kind, solver)
    used = in_parts(clone(estimator), X[::-1], y[::-1], first, [20, 40])
    used.fit(X, y)
    np.testing.assert_array_equal(weights(used), weights(clone(estimator).fit(X, y)))
    with pytest.warns(UserWarning, match="what fit or load brought is forgotten") as caught:
        in_parts(used, X, y, first, [20, 40])
    assert [warning.filename for warning in caught] == [__file__]
    assert used.n_iter_ == 2
    again = in_parts(clone(estimator), X, y, first, [20, 40])
    np.testing.assert_array_equal(weights(used), weights(again))


@every_kind
@every_solver
def test_a_pickle_goes_on_where_the_stream_was(kind, solver):
    estimator, X, y, first = make(kind, solver)
    estimator.partial_fit(X[:20], y[:20], **first)
    copy = pickle.loads(pickle.dumps(estimator))
    for one in (estimator, copy):
        one.partial_fit(X[20:], y[20:])
    np.testing.assert_array_equal(weights(copy), weights(estimator))


@every_kind
@every_solver
def test_a_streamed_model_is_saved_and_predicts_as_before(kind, solver, tmp_path):
    estimator, X, y, first = make(kind, solver)
    estimator.partial_fit(X, y, **first).save(tmp_path / "model.mm")
    loaded = mm.load(tmp_path / "model.mm", **({"model": Classes()} if kind == "structural" else {}))
    predicted, again = (np.concatenate([np.atleast_1d(y) for y in svm.predict(X)]) for svm in (estimator, loaded))
    assert again.tolist() == predicted.tolist()
    assert loaded.certificate_ == estimator.certificate_


@every_kind
def test_sample_weights_multiply_the_updates(kind):
    estimator, X, y, first = make(kind, "perceptron")
    heavy = clone(estimator).partial_fit(X, y, **first, sample_weight=np.full(40, 4.0))
    np.testing.assert_allclose(weights(heavy), 4 * weights(clone(estimator).partial_fit(X, y, **first)), atol=1e-9)
    some = np.r_[np.ones(25), np.zeros(15)]
    without = clone(estimator).partial_fit(X, y, **first, sample_weight=some)
    np.testing.assert_array_equal(weights(without), weights(clone(estimator).partial_fit(X[:25], y[:25], **first)))


def test_class_weights_and_sparse_rows_are_taken():
    estimator, X, y, first = make("multiclass", "mira")
    dense = clone(estimator).set_params(class_weight={5: 3.0}).partial_fit(X, y, **first)
    sparse = clone(estimator).set_params(class_weight={5: 3.0}).partial_fit(sp.csr_matrix(X), y, **first)
    np.testing.assert_allclose(weights(dense), weights(sparse), atol=1e-12)
    by_hand = clone(estimator).partial_fit(X, y, **first, sample_weight=np.where(y == 5, 3.0, 1.0))
    np.testing.assert_allclose(weights(dense), weights(by_hand), atol=1e-12)


def test_classes_that_a_call_does_not_bring_are_kept():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    svm = mm.MulticlassSVM(solver="perceptron")
    order = np.argsort(y[:600], kind="stable")
    for part in np.array_split(order[:300], 6):  # no part has more than a few of the ten classes
        svm.partial_fit(X[part], y[part], classes=np.arange(10))
    assert svm.classes_.tolist() == list(range(10))
    assert svm.decision_function(X[:2]).shape == (2, 10)


# ------------------------------------------------------------------------------------------------------ sequences


@every_solver
def test_the_first_call_fixes_the_features_of_sequences(solver):
    tagger = mm.ChainSVM(solver=solver, solver_options=options(solver))
    tagger.partial_fit(WORDS[:2], TAGS[:2], classes=["V", "N", "D"])
    assert tagger.classes_.tolist() == ["D", "N", "V"]
    names, n_features = list(tagger.feature_names_), tagger.n_features_in_
    tagger.partial_fit(WORDS[2:], TAGS[2:])  # "sleeps" is new, and ignored
    assert tagger.feature_names_ == names
    assert "w=sleeps" not in names
    assert tagger.coef_.shape == (3, n_features)
    for _ in range(5):
        tagger.partial_fit(WORDS, TAGS)
    assert tagger.predict(WORDS[:2]) == TAGS[:2]


def test_after_fit_the_classes_are_known():
    for kind in ("binary", "multiclass", "chain", "graph"):
        estimator, X, y, first = make(kind, "perceptron")
        fitted = clone(estimator).fit(X, y)
        with pytest.warns(UserWarning, match="what fit or load brought is forgotten"):
            fitted.partial_fit(X[:5], y[:5])
        np.testing.assert_array_equal(weights(fitted), weights(clone(estimator).partial_fit(X[:5], y[:5], **first)))


def test_labels_of_sequences_may_be_of_several_types():
    tagger = mm.ChainSVM(solver="perceptron")
    tagger.partial_fit(WORDS[:1], [[1, "N", None]], classes=[None, "N", 1, ("x", 2)])
    assert tagger.classes_.tolist() == [None, "N", 1, ("x", 2)]
    assert tagger.partial_fit(WORDS[1:2], [[("x", 2), "N"]]).n_iter_ == 2


def test_token_weights_of_sequences_are_taken():
    X, Y = tagging_problem()
    Y = [y.tolist() for y in Y[:20]]
    plain, weighted = (mm.ChainSVM(solver="mira") for _ in range(2))
    plain.partial_fit(X[:20], Y, classes=range(4))
    weighted.partial_fit(X[:20], Y, classes=range(4), token_weight=[np.full(len(y), 2.0) for y in Y])
    np.testing.assert_allclose(weights(weighted), 2 * weights(plain), atol=1e-9)


def test_classes_may_come_from_a_generator():
    for kind in ("chain", "graph"):
        estimator, X, y, first = make(kind, "perceptron")
        listed = clone(estimator).partial_fit(X, y, **first)
        generated = clone(estimator).partial_fit(X, y, classes=(label for label in first["classes"]))
        np.testing.assert_array_equal(weights(generated), weights(listed))


# ---------------------------------------------------------------------------------------------------------- graphs


def test_later_graphs_need_neither_edges_nor_all_their_types():
    svm, X, y, first = make("graph", "perceptron")
    svm.partial_fit(X[:10], y[:10], **first)
    edge_coef = svm.edge_coef_.copy()
    lonely = mm.Graph(X[10].rows, [])
    svm.partial_fit([lonely], [y[10]])
    untyped = mm.Graph(X[11].rows, [[0, 1], [1, 2]])
    svm.partial_fit([untyped], [y[11]])
    assert svm.edge_coef_.shape == edge_coef.shape == (2, 1, 1)
    # The same as in one call, in which the first graphs bring types and features of edges.
    whole = make("graph", "perceptron")[0].partial_fit([*X[:10], lonely, untyped], y[:12], **first)
    np.testing.assert_allclose(weights(svm), weights(whole), atol=1e-12)


def test_graphs_with_candidates_are_a_stream_without_classes():
    rng = np.random.default_rng(0)
    X = [
        mm.Graph.from_candidates([rng.normal(size=(3, 2)) for _ in range(3)], [[0, 1]], [rng.normal(size=(3, 3, 1))])
        for _ in range(10)
    ]
    y = [[int(own.argmax()) for own in np.split(x.rows[:, 0], 3)] for x in X]
    svm = mm.GraphSVM(solver="perceptron")
    for _ in range(10):
        svm.partial_fit(X[:5], y[:5]).partial_fit(X[5:], y[5:])
    assert svm.classes_ is None
    assert svm.score(X, y) > 0.7
    with pytest.raises(ValueError, match="classes is for labels that all nodes share"):
        svm.partial_fit(X, y, classes=[0, 1, 2])
    with pytest.raises(
        ValueError, match="X has graphs with labels that all nodes share, but GraphSVM was fitted on candidates"
    ):
        svm.partial_fit([ring(np.ones((3, 2)))], [[0, 1, 2]])


# ------------------------------------------------------------------------------------------------ models in Python


def test_a_model_is_initialised_by_the_first_call_only():
    class Counting(Classes):
        calls = 0

        def initialize(self, X, Y):
            super().initialize(X, Y)
            self.calls += 1
            self.n_first = len(X)

    X, Y = data(10)
    svm = mm.StructuralSVM(Counting(), solver="mira").partial_fit(X[:4], Y[:4]).partial_fit(X[4:], Y[4:])
    assert svm.model_.calls == 1
    assert svm.model_.n_first == 4
    assert svm.model.calls == 0


@every_solver
def test_an_error_in_the_middle_leaves_the_stream_as_it_was_by_then(solver):
    class Failing(Classes):
        calls = 0

        def _count(self):
            self.calls += 1
            if self.calls == 66:
                raise ZeroDivisionError("no luck")

        def argmax(self, x, w):
            self._count()
            return super().argmax(x, w)

        def loss_augmented_argmax(self, x, y_true, w):
            self._count()
            return super().loss_augmented_argmax(x, y_true, w)

    X, Y = data(100)
    failing = mm.StructuralSVM(Failing(), solver=solver, solver_options=options(solver))
    failing.partial_fit(X[:30], Y[:30])
    with pytest.raises(ZeroDivisionError):
        failing.partial_fit(X[30:90], Y[30:90])  # 35 of 60 are visited
    failing.partial_fit(X[90:], Y[90:])
    visited = [*range(65), *range(90, 100)]
    if solver == "sgd":
        model, w = Classes(), np.zeros(6)
        for t, i in enumerate(visited):
            y = model.loss_augmented_argmax(X[i], Y[i], w)
            n = 30 if i < 30 else 90 if i < 90 else 100  # what was given, visited or not
            eta = 0.25 / (1 + 0.25 * t) ** 0.75
            w = (1 - eta / n) * w + eta * (model.joint_feature(X[i], Y[i]) - model.joint_feature(X[i], y))
        expected = w
    else:
        expected = mm.StructuralSVM(Classes(), solver=solver).partial_fit(X[visited], np.array(Y)[visited]).coef_
    np.testing.assert_allclose(failing.coef_, expected, atol=1e-12)
