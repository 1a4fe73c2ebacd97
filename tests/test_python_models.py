"""Models written in Python: the shipped ones against the reference, the contracts of oracles, errors and workers."""

import itertools
import os
import pathlib
import runpy
import signal
import subprocess
import sys
import textwrap
import time
import traceback
import warnings

import numpy as np
import pytest
import reference
import reference_models
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.problem import InexactOracleWarning
from maxmargin.python_problem import as_sparse
from maxmargin.solvers import SOLVERS

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
# Worker processes inherit sys.path, so they find the shipped models as well.
sys.path.insert(0, str(EXAMPLES / "models"))

import f1_sets  # noqa: E402
import matching  # noqa: E402
import multilabel  # noqa: E402

# Solvers that converge sublinearly, and those whose iterates must not depend on n_jobs at all.
SUBLINEAR = {"line-search", "bcfw"}
CUTTING_PLANES = [name for name in ("one-slack", "line-search", "n-slack") if name in SOLVERS]
CELLS = [(name, loss) for name, solver in SOLVERS.items() for loss in sorted(solver.losses)]


def subsets(x):
    return [np.array(y) for y in itertools.product((False, True), repeat=len(x))]


def permutations(x):
    return [np.array(y) for y in itertools.permutations(range(len(x)))]


# What is shipped: how to make the model, its data, all outputs of an input, and which rescalings it offers.
SHIPPED = {
    "f1": (f1_sets.F1Sets, lambda: f1_sets.toy_data(8), subsets, {"margin", "slack"}),
    "matching": (matching.Matching, lambda: matching.toy_data(8), permutations, {"margin"}),
    "multilabel": (
        multilabel.PairwiseMultilabel,
        lambda: multilabel.toy_data(8),
        lambda x: list(itertools.product((0, 1), repeat=3)),
        {"margin", "slack"},
    ),
}


def optimum(model, X, Y, outputs, rescaling="margin", C=0.5, loss="hinge", sample_weight=None):
    """The reference's answer for a model after initialize."""
    every = reference.planes(reference_models.CallableModel(X, Y, outputs, model.joint_feature, model.loss), rescaling)
    nonnegative = [int(j) for j in model.nonnegative]
    return reference.solve(every, C, sample_weight=sample_weight, loss=loss, nonnegative=nonnegative)


def assert_optimal(solution, best, tol):
    certificate = solution.certificate
    assert certificate.exact
    assert certificate.converged
    assert certificate.primal - best.objective <= tol * certificate.primal
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)


# ------------------------------------------------------------------------ the shipped models, by reference


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("solver", "loss"), CELLS)
@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_models_reach_the_reference_optimum(name, solver, loss, rescaling):
    make, data, outputs, offered = SHIPPED[name]
    model, (X, Y) = make(), data()
    options = {"C": 0.5, "solver": solver, "loss": loss, "rescaling": rescaling, "random_state": 0}
    if rescaling not in offered:
        with pytest.raises(ValueError, match=r"needs a model with slack_rescaled_argmax\(x, y, w\), or outputs\(x\)"):
            mm.train(model, X, Y, **options)
        return
    tol = 1e-3 if solver in SUBLINEAR else 1e-7
    solution = mm.train(model, X, Y, tol=tol, **options)
    best = optimum(model, X, Y, outputs, rescaling, loss=loss)
    assert_optimal(solution, best, 1e-3 if solver in SUBLINEAR else 1e-6)


@pytest.mark.parametrize(
    ("name", "solver", "rescaling"),
    [("f1", solver, "slack") for solver in CUTTING_PLANES] + [(name, "one-slack", "margin") for name in SHIPPED],
)
def test_two_processes_take_the_same_steps_as_one(name, solver, rescaling):
    make, data, _, _ = SHIPPED[name]
    X, Y = data()
    tol = 1e-3 if solver in SUBLINEAR else 1e-7
    options = {"C": 0.5, "solver": solver, "rescaling": rescaling, "tol": tol, "random_state": 0}
    one, two = (mm.train(make(), X, Y, n_jobs=n_jobs, **options) for n_jobs in (1, 2))
    assert np.array_equal(one.w, two.w)
    assert one.certificate == two.certificate
    assert [record["dual"] for record in one.history] == [record["dual"] for record in two.history]


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_nonnegative_weights_reach_the_reference_optimum(solver, loss):
    model, (X, Y) = multilabel.PairwiseMultilabel(attractive=True), multilabel.toy_data(8)
    tol = 1e-3 if solver in SUBLINEAR else 1e-7
    solution = mm.train(model, X, Y, C=0.5, solver=solver, loss=loss, tol=tol, random_state=0)
    best = optimum(model, X, Y, SHIPPED["multilabel"][2], loss=loss)
    assert_optimal(solution, best, 1e-3 if solver in SUBLINEAR else 1e-6)
    assert np.all(solution.w[model.nonnegative] >= 0)
    free = optimum(multilabel_of(X, Y), X, Y, SHIPPED["multilabel"][2], loss=loss)
    assert best.objective > free.objective * (1 + 1e-4), "the constraint must matter for this test to say anything"


def multilabel_of(X, Y):
    model = multilabel.PairwiseMultilabel()
    model.initialize(X, Y)
    return model


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_sample_weights_reach_the_reference_optimum_and_weight_zero_is_never_searched(solver, loss):
    searched = set()

    class Watched(multilabel.PairwiseMultilabel):
        def loss_augmented_argmax(self, x, y_true, w):
            searched.add(tuple(x))
            return super().loss_augmented_argmax(x, y_true, w)

    X, Y = multilabel.toy_data(8)
    weight = np.array([0.0, 2.0, 0.5, 1.0, 3.0, 0.0, 1.0, 0.25])
    tol = 1e-3 if solver in SUBLINEAR else 1e-7
    options = {"C": 0.5, "solver": solver, "loss": loss, "tol": tol, "random_state": 0}
    model = Watched()
    solution = mm.train(model, X, Y, sample_weight=weight, **options)
    best = optimum(model, X, Y, SHIPPED["multilabel"][2], loss=loss, sample_weight=weight)
    assert_optimal(solution, best, 1e-3 if solver in SUBLINEAR else 1e-6)
    assert searched == {tuple(x) for x in X[weight > 0]}


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("models/*.py")), ids=lambda path: path.stem)
def test_shipped_models_run_as_scripts(script, capsys):
    runpy.run_path(str(script), run_name="__main__")
    assert "exact" in capsys.readouterr().out


def test_own_model_in_30_lines_runs_and_has_30_lines(capsys):
    script = EXAMPLES / "own_model_in_30_lines.py"
    assert len(script.read_text(encoding="utf-8").splitlines()) <= 30
    runpy.run_path(str(script), run_name="__main__")
    assert "primal" in capsys.readouterr().out


def test_the_f1_searches_find_what_enumeration_finds():
    rng = np.random.default_rng(3)
    model = f1_sets.F1Sets()
    X, Y = f1_sets.toy_data(20, seed=1)
    Y[0] = np.zeros(len(X[0]), dtype=bool)
    Y[1] = np.ones(len(X[1]), dtype=bool)
    for x, y in zip(X, Y, strict=True):
        w = rng.normal(size=3) * rng.choice([0.1, 1.0, 10.0])

        def gain(z, x=x, y=y, w=w):
            return w @ (model.joint_feature(x, z) - model.joint_feature(x, y))

        def margin(z, y=y, gain=gain):
            return model.loss(y, z) + gain(z)

        def slack(z, y=y, gain=gain):
            return model.loss(y, z) * (1.0 + gain(z))

        assert margin(model.loss_augmented_argmax(x, y, w)) == pytest.approx(max(map(margin, subsets(x))))
        assert slack(model.slack_rescaled_argmax(x, y, w)) == pytest.approx(max(map(slack, subsets(x))))
        assert gain(model.argmax(x, w)) == pytest.approx(max(map(gain, subsets(x))))


# ------------------------------------------------------------------------------ enumeration and abilities


class Classes(mm.Model):
    """Three classes, two features each; the smallest model that is no trifle."""

    def initialize(self, X, Y):
        self.n_features = 6

    def joint_feature(self, x, y):
        psi = np.zeros(6)
        psi[2 * y : 2 * y + 2] = x
        return psi

    def loss(self, y_true, y):
        return abs(y_true - y)

    def outputs(self, x):
        return range(3)


def data(n=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(3, size=n).tolist()


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

    assert Classes().abilities == {"max_oracle", "slack_oracle", "m_best"}
    assert Searching().abilities == {"max_oracle"}
    assert Predicting().abilities == {"m_best"}
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


@pytest.mark.parametrize(
    "form",
    [list, sp.csr_array, sp.csr_matrix, sp.coo_matrix, lambda psi: sp.csr_array(psi[None]), sp.coo_array, pair_of],
)
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


class OracleTrouble(Exception):
    """Cannot be made from its message alone, so it pickles but does not unpickle."""

    def __init__(self, code, detail):
        super().__init__(f"{code}: {detail}")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_errors_of_user_code_keep_type_traceback_and_example(n_jobs):
    class Failing(Classes):
        def joint_feature(self, x, y):
            if x[0] == 7.0:
                raise KeyError("this very line")
            return super().joint_feature(x, y)

    X, Y = data()
    X[4, 0] = X[6, 0] = 7.0
    with pytest.raises(KeyError, match="this very line") as caught:
        mm.train(Failing(), X, Y, n_jobs=n_jobs)
    text = "".join(traceback.format_exception(caught.value))
    assert 'raise KeyError("this very line")' in text
    assert "while searching example 4 for its most violated output" in text


@pytest.mark.parametrize(("n_jobs", "kind"), [(1, OracleTrouble), (2, RuntimeError)])
def test_errors_that_cannot_travel_are_described(n_jobs, kind):
    class Failing(Classes):
        def joint_feature(self, x, y):
            raise OracleTrouble(7, "no solution")

    with pytest.raises(kind, match="7: no solution") as caught:
        mm.train(Failing(), *data(), n_jobs=n_jobs)
    assert 'raise OracleTrouble(7, "no solution")' in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_user_code_cannot_write_to_the_weights(n_jobs):
    class Writing(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            w[0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        mm.train(Writing(), *data(), n_jobs=n_jobs)


def test_a_worker_that_dies_is_an_error_and_not_a_hang():
    class Dying(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            os._exit(3)

    with pytest.raises(RuntimeError, match=r"terminated|died") as caught:
        mm.train(Dying(), *data(), n_jobs=2)
    assert "A worker process failed while examples 0 to" in caught.value.__notes__[0]


def test_models_that_cannot_travel_are_an_error_only_with_workers():
    class Stuck(Classes):
        def __init__(self):
            self.handle = (number for number in range(3))

    assert mm.train(Stuck(), *data()).certificate.converged
    with pytest.raises(TypeError, match=r"cannot be pickled .*: use n_jobs=1"):
        mm.train(Stuck(), *data(), n_jobs=2)


# -------------------------------------------------------------------------------------- inexact oracles


class Careless(multilabel.PairwiseMultilabel):
    """Searches like its parent, but half of its answers are some other output."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer
        self.rng = np.random.default_rng(0)

    def loss_augmented_argmax(self, x, y_true, w):
        if self.rng.random() < 0.5:
            return super().loss_augmented_argmax(x, y_true, w)
        every = list(self.outputs(x))
        if self.answer == "random":
            return every[self.rng.integers(len(every))]
        values = [self.loss(y_true, y) + self.joint_feature(x, y) @ w for y in every]
        return every[int(np.argsort(values)[-2])]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("answer", ["random", "second best"])
def test_an_inexact_oracle_warns_once_and_keeps_the_dual_a_lower_bound(answer, solver):
    X, Y = multilabel.toy_data(8)
    loss = min(SOLVERS[solver].losses)
    best = optimum(multilabel_of(X, Y), X, Y, SHIPPED["multilabel"][2], loss=loss)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = mm.train(Careless(answer), X, Y, C=0.5, solver=solver, loss=loss, max_iter=60, random_state=0)
    assert len([w for w in caught if w.category is InexactOracleWarning]) == 1
    assert not solution.certificate.exact
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)


def test_an_answer_worse_than_the_truth_is_replaced_by_the_truth():
    class Worst(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            return min(self.outputs(x), key=lambda y: self.joint_feature(x, y) @ w)

    X, Y = data()
    problem = Worst().bind(X, Y)
    weights = problem.zero_weights()
    weights.exact[:] = 100.0 * np.arange(6)
    with pytest.warns(InexactOracleWarning, match="the oracle's answer for example"):
        batch = problem.separate(problem.all_ids, weights, precise=True)
    assert np.all(batch.losses() - problem.space.dots(batch, weights.exact) >= 0)
    assert not problem.is_exact


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_an_exact_oracle_with_large_scores_is_not_accused(rescaling):
    # Scores of a million leave a rounding error of 1e-10 in a value near 0.
    X, Y = data(40)
    problem = Classes().bind(1e6 * np.abs(X), Y, rescaling=rescaling)
    weights = problem.zero_weights()
    weights.exact[:] = np.tile([1 / 3, 1 / 7], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        problem.separate(problem.all_ids, weights, precise=True)
    assert problem.is_exact


class Twins(mm.Model):
    """Three classes, each an output in two versions that differ by as much as rounding does in scores of 1e8."""

    n_features = 6

    def __init__(self):
        self.rng = np.random.default_rng(0)

    def joint_feature(self, x, y):
        vector = np.zeros(6)
        vector[2 * (y % 3) : 2 * (y % 3) + 2] = x + 1e-7 * (y // 3)
        return vector

    def loss(self, y_true, y):
        return float(y % 3 != y_true % 3)

    def argmax(self, x, w):
        return self.loss_augmented_argmax(x, None, w)

    def loss_augmented_argmax(self, x, y_true, w):
        # Every order of summation has its own rounding errors.
        terms = np.array([self.joint_feature(x, y) * w for y in range(6)])
        scores = terms.sum(axis=1) + 1e-15 * np.abs(terms).sum(axis=1) * self.rng.normal(size=6)
        losses = [0.0 if y_true is None else self.loss(y_true, y) for y in range(6)]
        return int(np.argmax(scores + losses))


@pytest.mark.parametrize("solver", ["one-slack", "n-slack"])
def test_rounding_in_scores_of_1e8_does_not_make_an_oracle_inexact(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.argmax(np.column_stack([X, -X.sum(axis=1)]), axis=1)
    options = {"cache_size": 5} if solver == "one-slack" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", InexactOracleWarning)
        solution = mm.train(Twins(), X + 1e8, Y, 10.0, solver=solver, max_iter=30, solver_options=options)
    assert solution.certificate.exact


# --------------------------------------------------------------------------------- workers and interrupts


def test_sleeping_oracles_take_half_the_time_in_two_processes():
    class Sleeping(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            time.sleep(0.02)
            return y_true

    problem = Sleeping().bind(*data(32), n_jobs=2)
    weights = problem.zero_weights()
    asleep_in_all = 32 * 0.02
    # Until both workers are there, whatever else the machine is doing.
    deadline = time.perf_counter() + 60.0
    seconds = np.inf
    while seconds > asleep_in_all / 1.5 and time.perf_counter() < deadline:
        start = time.perf_counter()
        problem.separate(problem.all_ids, weights, precise=True)
        seconds = time.perf_counter() - start
    problem.close()
    assert seconds <= asleep_in_all / 1.5


def test_a_problem_works_on_after_an_error_in_a_worker():
    class Moody(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            if w[0] > 0:
                raise ArithmeticError("moody")
            return super().loss_augmented_argmax(x, y_true, w)

    problem = Moody().bind(*data(), n_jobs=2)
    weights = problem.zero_weights()
    before = problem.separate(problem.all_ids, weights, precise=True)
    weights.exact[0] = 1.0
    with pytest.raises(ArithmeticError, match="moody"):
        problem.separate(problem.all_ids, weights, precise=True)
    weights.exact[0] = 0.0
    after = problem.separate(problem.all_ids, weights, precise=True)
    problem.close()
    problem.close()
    assert before.examples().tolist() == after.examples().tolist()


SCRIPT = """
    import os, sys, time
    import numpy as np
    import maxmargin as mm

    class Sleepy(mm.Model):
        n_features = 2

        def joint_feature(self, x, y):
            return x * y

        def loss(self, y_true, y):
            return float(y_true != y)

        def outputs(self, x):
            return [-1, 1]

        def loss_augmented_argmax(self, x, y_true, w):
            if SLEEPS and np.any(w):
                os.write(1, b"asleep\\n")  # in one piece: the workers share the pipe
                time.sleep(60)
            return super().loss_augmented_argmax(x, y_true, w)

    SLEEPS = sys.argv[2] == "sleeping"
    X = np.random.default_rng(0).normal(size=(20, 2))
    print("starting", flush=True)
    solution = mm.train(Sleepy(), X, np.sign(X[:, 0]), C=1.0, n_jobs=int(sys.argv[1]))
    print("ended", time.time())
    print(solution.certificate.message, solution.certificate.primal, solution.w.shape, flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="sends POSIX signals")
@pytest.mark.parametrize(("n_jobs", "moment"), [(1, "sleeping"), (2, "sleeping"), (2, "starting")])
def test_an_interrupt_ends_training_at_once_with_a_usable_solution(n_jobs, moment, tmp_path):
    script = tmp_path / "sleepy.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    command = [sys.executable, script, str(n_jobs), moment]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, start_new_session=True, **pipes) as process:
        try:
            assert process.stdout.readline() == "starting\n"
            if moment == "sleeping":
                assert process.stdout.readline() == "asleep\n"
            else:
                time.sleep(0.3)  # the workers take longer than that to import what they need
            # As a terminal does: the workers get it as well.
            os.killpg(process.pid, signal.SIGINT)
            sent = time.time()
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()
    lines = [line for line in out.splitlines() if line != "asleep"]
    assert process.returncode == 0
    assert float(lines[0].split()[1]) - sent < 5.0  # a tenth of a second on an idle machine, never the sixty slept
    assert lines[1] == f"training was interrupted {20.0 if moment == 'sleeping' else np.inf} (2,)"
    assert "training was interrupted" in err
    assert "Traceback" not in err
    assert "resource_tracker" not in err


def test_workers_leave_nothing_behind(tmp_path):
    script = tmp_path / "awake.py"
    script.write_text(textwrap.dedent(SCRIPT), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, script, "2", "awake"], capture_output=True, text=True, timeout=120, check=True
    )
    assert "the stopping rule was met" in done.stdout
    assert done.stderr == ""


def test_reaching_max_iter_says_so():
    with pytest.warns(ConvergenceWarning, match="max_iter=2 was reached"):
        mm.train(Classes(), *data(30), C=100.0, tol=1e-9, max_iter=2)
