"""Learning from a stream: what partial_fit refuses, and that the stream stays as it was then."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from streams import TAGS, WORDS, make, ring, weights

import maxmargin as mm

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("solver", ["auto", "one-slack", "n-slack", "simplex", None])
def test_other_solvers_have_no_partial_fit_and_say_which_have(solver):
    svm = mm.BinarySVM(solver=solver)
    assert not hasattr(svm, "partial_fit")
    with pytest.raises(
        AttributeError, match=r"partial_fit needs a solver .* one of 'perceptron', 'mira', 'sgd'; solver is"
    ):
        svm.partial_fit([[1.0]], [1], classes=[0, 1])
    assert mm.BinarySVM.partial_fit.__doc__.startswith("Learn from one pass")


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain", "graph"])
def test_the_first_call_needs_the_classes(kind):
    estimator, X, y, _ = make(kind, "mira")
    with pytest.raises(ValueError, match="classes must be passed on the first call to partial_fit"):
        estimator.partial_fit(X, y)
    with pytest.raises(NotFittedError):
        estimator.predict(X)


@pytest.mark.parametrize(
    ("kind", "label", "message"),
    [
        ("binary", "perhaps", r"y\[3\] is 'perhaps', which is not one of classes=\['no', 'yes'\]"),
        ("multiclass", 9, r"y\[3\] is 9, which is not one of classes=\[5, 6, 7\]"),
        ("chain", 9, r"y\[3\]\[0\] is 9, which is not one of classes=0, 1, 2, 3"),
        ("graph", "v", r"y\[3\]\[0\] is 'v', which is not one of classes='x', 'y', 'z'"),
    ],
)
def test_a_label_that_was_not_announced_is_refused(kind, label, message):
    estimator, X, y, first = make(kind, "mira")
    wrong = list(y)
    wrong[3] = [label] * len(y[3]) if kind in ("chain", "graph") else label
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(X, wrong, **first)
    estimator.partial_fit(X, y, **first)
    before = weights(estimator)
    with pytest.raises(ValueError, match=message):
        estimator.partial_fit(X, wrong)
    np.testing.assert_array_equal(weights(estimator), before)


@pytest.mark.parametrize("kind", ["binary", "multiclass", "chain", "graph"])
def test_classes_may_be_given_again_but_not_others(kind):
    estimator, X, y, first = make(kind, "perceptron")
    estimator.partial_fit(X, y, **first).partial_fit(X, y, **first)
    with pytest.raises(ValueError, match="are not those of the first call to partial_fit"):
        estimator.partial_fit(X, y, classes=["a", "b"])


@pytest.mark.parametrize(
    ("classes", "error", "message"),
    [
        ("ab", TypeError, "classes is 'ab'; expected a collection of labels"),
        (3, TypeError, "classes is 3; expected a collection of labels"),
        ([], ValueError, "classes is empty"),
        ([["x"]], ValueError, "which has no hash"),
        ([float("nan")], ValueError, "not equal to itself"),
    ],
)
def test_classes_of_a_chain_must_be_labels(classes, error, message):
    with pytest.raises(error, match=message):
        mm.ChainSVM(solver="mira").partial_fit(WORDS, TAGS, classes=classes)


@pytest.mark.parametrize(
    ("classes", "message"),
    [([1], "greater than one; got 1 class"), ([1, 2, 3], "Only binary classification is supported")],
)
def test_classes_of_a_binary_svm_are_two(classes, message):
    with pytest.raises(ValueError, match=message):
        mm.BinarySVM(solver="mira").partial_fit([[1.0], [2.0]], [1, 1], classes=classes)


def test_other_features_are_refused():
    estimator, X, y, first = make("multiclass", "mira")
    estimator.partial_fit(X, y, **first)
    with pytest.raises(ValueError, match="X has 2 features, but MulticlassSVM is expecting 3"):
        estimator.partial_fit(X[:, :2], y)
    tagger, X, y, first = make("chain", "mira")
    tagger.partial_fit(X, y, **first)
    with pytest.raises(ValueError, match="X has 2 features, but ChainSVM is expecting 6"):
        tagger.partial_fit([x[:, :2] for x in X], y)
    with pytest.raises(TypeError, match="X holds features with names"):
        tagger.partial_fit(WORDS, TAGS)


def test_changes_that_no_stream_survives_are_explained():
    estimator, X, y, first = make("multiclass", "mira")
    estimator.partial_fit(X, y, **first)
    with pytest.raises(ValueError, match="solver is 'sgd', but partial_fit began with 'mira'"):
        estimator.set_params(solver="sgd").partial_fit(X, y)
    with pytest.raises(ValueError, match="parameters that shape the model must not change between calls"):
        estimator.set_params(solver="mira", fit_intercept=False).partial_fit(X, y)


def test_balanced_class_weights_need_all_examples():
    estimator, X, y, first = make("multiclass", "mira")
    with pytest.raises(ValueError, match="class_weight='balanced' needs all examples at once"):
        estimator.set_params(class_weight="balanced").partial_fit(X, y, **first)


@pytest.mark.parametrize("C", [2.0, -1.0])
def test_C_is_checked(C):
    with pytest.raises(ValueError, match="C"):
        mm.BinarySVM(C, solver="perceptron").partial_fit([[1.0]], [1], classes=[0, 1])
    assert mm.BinarySVM(float("inf"), solver="mira").partial_fit([[1.0]], [1], classes=[0, 1]).coef_[0, 0] > 0


def test_bad_data_are_refused_before_the_stream_moves():
    estimator, X, y, first = make("chain", "mira")
    estimator.partial_fit(X, y, **first)
    before = weights(estimator)
    nan = [np.full((2, 6), np.nan)]
    for bad_X, bad_y, message in ((X, y[:-1], "y has 39"), ([], [], "X is empty"), (nan, [[0, 1]], "nan")):
        with pytest.raises(ValueError, match=message):
            estimator.partial_fit(bad_X, bad_y)
    np.testing.assert_array_equal(weights(estimator), before)
    assert estimator.n_iter_ == 1


def test_graphs_that_do_not_fit_the_stream_are_refused():
    svm, X, y, first = make("graph", "mira")
    svm.partial_fit(X, y, **first)
    before = weights(svm)
    three = y[0]
    with pytest.raises(ValueError, match="X has 3 features, but GraphSVM is expecting 2"):
        svm.partial_fit([ring(np.ones((3, 3)))], [three])
    with pytest.raises(ValueError, match="X has 2 features of edges, but the model was trained with 1"):
        svm.partial_fit([mm.Graph(np.ones((3, 2)), [[0, 1]], [[1.0, 2.0]])], [three])
    with pytest.raises(ValueError, match="X has edges of type 2, but GraphSVM was fitted on types up to 1"):
        svm.partial_fit([mm.Graph(np.ones((3, 2)), [[0, 1]], edge_types=[2])], [three])
    with pytest.raises(ValueError, match="X has graphs with candidates, but GraphSVM was fitted on labels"):
        svm.partial_fit([mm.Graph.from_candidates([np.ones((2, 2))] * 3, [], [])], [[0, 0, 1]])
    np.testing.assert_array_equal(weights(svm), before)
