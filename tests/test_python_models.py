"""Models written in Python: what is made of their methods, and what is said to mistakes in them."""

import contextlib

import numpy as np
import pytest
import scipy.sparse as sp
from small_model import Classes, data

import maxmargin as mm
from maxmargin.problems.python import as_sparse


def test_defaults_search_by_enumeration():
    model, w = Classes(), np.array([0.0, 0.0, 1.0, 0.0, 0.9, 0.0])
    x = np.array([1.0, 0.0])
    assert model.argmax(x, w) == 1
    assert model.loss_augmented_argmax(x, 0, w) == 2  # 0, 1 + 1, 2 + 0.9
    assert model.slack_rescaled_argmax(x, 0, w) == 2  # 0, 1 · 2, 2 · 1.9
    assert model.slack_rescaled_argmax(x, 2, np.array([-5.0, 0, 0.0, 0, 0.9, 0])) == 1  # 2 · (1 − 5.9), 1 · 0.1, 0
    assert model.m_best(x, w, 2) == [1, 2]
    assert model.m_best(x, w, 9) == [1, 2, 0]
    assert model.predict([x, -x], w) == [1, 0]
    assert model.predict([x, -x, x], w, n_jobs=2) == [1, 0, 1]


def test_the_truth_counts_even_if_outputs_does_not_list_it():
    class Narrow(Classes):
        def outputs(self, x):
            return [0, 1]

    model = Narrow()
    assert model.loss_augmented_argmax(np.ones(2), 2, np.array([0, 0, 0, 0, 9.0, 0])) == 2


def test_abilities_follow_what_is_overridden():
    class Searching(Classes):
        outputs = mm.Model.outputs

        def argmax(self, x, w):
            return 0

        def loss_augmented_argmax(self, x, y_true, w):
            return 0

    class Predicting(Searching):
        loss_augmented_argmax = mm.Model.loss_augmented_argmax

        def m_best(self, x, w, m):
            return [0]

    assert Classes().abilities == {"max_oracle", "slack_oracle", "m_best", "vectors", "blocks"}
    assert Searching().abilities == {"max_oracle", "vectors", "blocks"}
    assert Predicting().abilities == {"m_best", "vectors", "blocks"}
    with pytest.raises(ValueError, match="rescaling='slack' needs a search of its own: Searching has neither"):
        Searching().bind(*data(), rescaling="slack")
    with pytest.raises(ValueError, match=r"needs a model with loss_augmented_argmax\(x, y, w\), or outputs\(x\)"):
        mm.train(Predicting(), *data())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (np.array([1, 2]), [1, 2]),
        ((1, (2, 3)), [1, np.array([2, 3])]),
        (np.int64(3), 3),
        (np.array([True, False]), (1, 0)),
        ({1, 2}, frozenset([2, 1])),
        ({"a": [1]}, {"a": (1,)}),
        ("tree", "tree"),
    ],
)
def test_equal_outputs_have_equal_keys(one, other):
    assert Classes().key(one) == Classes().key(other)
    assert hash(Classes().key(one)) == hash(Classes().key(other))


def test_outputs_that_cannot_be_hashed_need_a_key():
    with pytest.raises(TypeError, match=r"bytearray cannot be hashed: write key\(y\)"):
        Classes().key(bytearray(b"x"))


# --------------------------------------------------------------------------------------- joint features


def pair_of(psi):
    """Indices in falling order, the first one twice."""
    j = np.flatnonzero(psi)[::-1]
    return np.append(j, j[:1]), np.append(psi[j], 0 * psi[j[:1]])


FORMS = [list, sp.csr_matrix, sp.coo_matrix, lambda psi: sp.csr_array(psi[None]), sp.coo_array, pair_of]
with contextlib.suppress(ValueError):  # up to SciPy 1.14 a csr_array has two dimensions
    sp.csr_array(np.zeros(1))
    FORMS.append(sp.csr_array)


@pytest.mark.parametrize("form", FORMS)
def test_joint_features_of_any_form_train_alike(form):
    class Other(Classes):
        def joint_feature(self, x, y):
            return form(super().joint_feature(x, y))

    dense, other = (mm.train(model, *data(), C=1.0, tol=1e-6) for model in (Classes(), Other()))
    assert np.allclose(dense.w, other.w, atol=1e-12)


def test_entries_that_cancel_leave_the_plane():
    gold, other = as_sparse(np.array([1.0, 2, 0, 3]), 4, "a"), as_sparse(([3, 2], [3.0, 1.0]), 4, "b")
    difference = gold.minus(other)
    assert difference.indices.tolist() == [0, 1, 2]
    assert difference.values.tolist() == [1.0, 2.0, -1.0]
    nothing = gold.minus(gold)
    assert len(nothing.indices) == len(nothing.values) == 0
    assert len(nothing.minus(nothing).indices) == 0


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (np.ones(5), r"joint_feature\(X\[0\], Y\[0\]\) has shape \(5,\), expected \(6,\)"),
        (np.ones((1, 6)), r"joint_feature\(X\[0\], Y\[0\]\) has shape \(1, 6\), expected \(6,\)"),
        (sp.csr_array((1, 7)), r"joint_feature\(X\[0\], Y\[0\]\) is sparse of shape \(1, 7\), expected \(1, 6\)"),
        (np.array([0, 0, np.nan, 0, 0, 0]), r"joint_feature\(X\[0\], Y\[0\]\) has nan as feature 2"),
        (([1, 3], [1.0, np.inf]), r"joint_feature\(X\[0\], Y\[0\]\) has inf as feature 3"),
        (([1, 6], [1.0, 1.0]), r"joint_feature\(X\[0\], Y\[0\]\) has the index 6; expected 0 … 5"),
        (([-1], [1.0]), r"joint_feature\(X\[0\], Y\[0\]\) has the index -1"),
        (([0.5], [1.0]), r"indices of type float64; expected integers"),
        (([1, 2], [1.0]), r"a pair of shapes \(2,\) and \(1,\); expected \(indices, values\)"),
        ((1.0, 2.0), r"expected \(indices, values\), two arrays of one length"),
    ],
)
def test_bad_joint_features_are_named_with_their_example(returned, message):
    class Bad(Classes):
        def joint_feature(self, x, y):
            return returned

    with pytest.raises(ValueError, match=message) as caught:
        mm.train(Bad(), *data())
    assert caught.value.__notes__ == ["while searching example 0 for its most violated output"]


def test_a_bad_joint_feature_of_a_wrong_output_is_found_too():
    class Bad(Classes):
        def joint_feature(self, x, y):
            return super().joint_feature(x, y) if y != 2 else np.full(6, np.nan)

    with pytest.raises(ValueError, match=r"joint_feature\(x, y\) has nan as feature 0") as caught:
        mm.train(Bad(), data()[0], [0] * 10)
    assert "example 0" in caught.value.__notes__[0]


# ----------------------------------------------------------------------------------------- other mistakes


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (lambda a, b: -1.0 if a != b else 0.0, r"loss\(y_true, y\) is -1.0; a loss must be finite and ≥ 0"),
        (lambda a, b: np.nan, r"loss\(Y\[0\], Y\[0\]\) is nan"),
        (lambda a, b: np.inf if a != b else 0.0, r"is inf; a loss must be finite"),
        (lambda a, b: 1.0, r"loss\(Y\[0\], Y\[0\]\) is 1.0; the loss of the true output itself must be 0"),
    ],
)
def test_bad_losses_are_errors(loss, message):
    class Bad(Classes):
        def loss(self, y_true, y):
            return loss(y_true, y)

    with pytest.raises(ValueError, match=message):
        mm.train(Bad(), *data())


def test_bad_data_and_incomplete_models_are_errors():
    X, Y = data()
    with pytest.raises(ValueError, match="X has 10 inputs but Y has 9 outputs"):
        mm.train(Classes(), X, Y[:9])
    with pytest.raises(ValueError, match="X and Y are empty"):
        mm.train(Classes(), [], [])
    with pytest.raises(ValueError, match="Y must be a sequence with one entry for each example, found generator"):
        mm.train(Classes(), X, (y for y in Y))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\), expected \(10,\)"):
        mm.train(Classes(), X, Y, sample_weight=[1, 2, 3])

    class Incomplete(Classes):
        outputs = mm.Model.outputs

        def loss_augmented_argmax(self, x, y_true, w):
            return 0

    with pytest.raises(TypeError, match=r"Incomplete implements neither argmax\(x, w\) nor outputs\(x\)"):
        mm.train(Incomplete(), X, Y)
    with pytest.raises(TypeError, match=r"Incomplete implements neither argmax\(x, w\) nor outputs\(x\)"):
        Incomplete().bind(X, Y)
    with pytest.raises(TypeError, match="abstract"):
        mm.Model()


@pytest.mark.parametrize(
    ("n_features", "nonnegative", "message"),
    [
        (None, (), r"initialize\(X, Y\) must set self.n_features"),
        (0, (), "n_features is 0; expected an integer from 1 to 2147483647"),
        (6.0, (), "n_features is 6.0; expected an integer"),
        (6, [6], "nonnegative lists weights 6 to 6; expected 0 … 5"),
        (6, [-1, 3], "nonnegative lists weights -1 to 3"),
        (6, [True, False], "nonnegative must list numbers of weights; found bool"),
    ],
)
def test_bad_attributes_are_errors(n_features, nonnegative, message):
    class Bad(Classes):
        def initialize(self, X, Y):
            self.n_features = n_features
            self.nonnegative = nonnegative

    with pytest.raises(ValueError, match=message):
        mm.train(Bad(), *data())


def test_an_input_without_outputs_is_an_error():
    class Empty(Classes):
        def outputs(self, x):
            return []

    with pytest.raises(ValueError, match=r"outputs\(x\) is empty"):
        Empty().predict(data()[0], np.zeros(6))
