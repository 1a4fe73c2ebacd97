"""What the estimators say to what they do not take."""

import inspect
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sequence_examples import as_kind, replaced, sequences
from sklearn.base import clone
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning

from maxmargin.estimators import BinarySVM, ChainSVM, MulticlassSVM
from maxmargin.features import token_features


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
        ({"kernel": "rbf", "kernel_approximation": "low-rank", "random_state": "seed"}, "random_state must be"),
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


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"forbidden": [("A", "X")]}, "forbidden"),
        ({"forbidden": [("A", "X"), ("B", "X")]}, "forbidden"),
        ({"cost": {"A": 2.0, "X": 3.0}}, "cost"),
    ],
)
def test_a_label_that_y_lacks_is_named_in_a_warning(parameters, name):
    text = f"{name} names 'X', which y does not contain: ignored. The labels of y are 'A', 'B', 'C'"
    with pytest.warns(UserWarning, match=text) as caught:
        ChainSVM(**parameters).fit(*sequences())
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array])
def test_a_sparse_matrix_that_points_outside_of_itself_is_refused(kind):
    X, y = load_iris(return_X_y=True)
    svm = MulticlassSVM().fit(kind(X), y)
    wrong = kind(X[:2])
    (wrong.coords[1] if kind is sp.coo_array else wrong.indices)[1] = 1000
    tagger = ChainSVM().fit([kind(X[:4])], [list("ABAB")])
    calls = (svm.predict, svm.decision_function, lambda X: svm.fit(X, y[[0, 99]]), lambda X: tagger.predict([X]))
    for call in calls:
        with pytest.raises(ValueError, match="is no valid sparse matrix"):
            call(wrong)


def test_a_number_of_Cs_is_at_least_one():
    for Cs, error in ((0, ValueError), (-1, ValueError), (2.5, ValueError), (None, TypeError)):
        with pytest.raises(error, match=f"Cs must be an integer ≥ 1 or a list of values of C, found {Cs}"):
            BinarySVM().path(*make_classification(20), Cs=Cs)


def test_words_must_be_strings():
    with pytest.raises(TypeError, match=r"words\[1\] is None; expected a string"):
        token_features(["We", None])


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


@pytest.mark.parametrize("kind", [BinarySVM, MulticlassSVM])
def test_errors_of_arguments_name_the_class_that_was_called(kind):
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__}\.__init__\(\) got an unexpected keyword argument 'callback'"
    ):
        kind(callback=print)
    with pytest.raises(
        TypeError, match=rf"^{kind.__name__}\.__init__\(\) takes .* positional arguments but 3 were given"
    ):
        kind(2.0, "hinge")


def test_a_subclass_without_a_constructor_has_the_parameters_of_its_parent():
    class Own(MulticlassSVM):
        pass

    own = clone(Own(C=3.0, tol=0.1))
    assert own.get_params() == MulticlassSVM(C=3.0, tol=0.1).get_params()
    assert inspect.signature(Own) == inspect.signature(MulticlassSVM)


@pytest.mark.parametrize("kind", [BinarySVM, MulticlassSVM])
def test_rows_from_a_generator_are_refused_by_name(kind):
    X, y = [[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1]
    fitted = kind().fit(X, y)
    for call in (lambda: kind().fit((row for row in X), y), lambda: fitted.predict(iter(X))):
        with pytest.raises(
            TypeError, match=r"^X is of type (generator|list_iterator), .* expected a matrix with a row for"
        ):
            call()
