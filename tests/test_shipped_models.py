"""The models under examples/ against the reference, and what is said of oracles that are not exact."""

import itertools
import pathlib
import runpy
import sys
import warnings

import numpy as np
import pytest
import reference
import reference_models
from sklearn.exceptions import ConvergenceWarning
from small_model import Classes, data

import maxmargin as mm
from maxmargin.problems.base import InexactOracleWarning
from maxmargin.solvers import SOLVERS

EXAMPLES = pathlib.Path(__file__).parents[1] / "examples"
# Worker processes inherit sys.path, so they find the shipped models as well.
sys.path.insert(0, str(EXAMPLES / "models"))

import f1_sets  # noqa: E402
import matching  # noqa: E402
import multilabel  # noqa: E402

# Solvers that converge sublinearly, and those whose iterates must not depend on n_jobs at all.
SUBLINEAR = {"line-search", "bcfw"}
EXACT = [name for name, solver in SOLVERS.items() if solver.has_dual]
CELLS = [(name, loss) for name in EXACT for loss in sorted(SOLVERS[name].losses)]


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
    [("f1", solver, "slack") for solver in EXACT] + [(name, "one-slack", "margin") for name in SHIPPED],
)
def test_two_processes_take_the_same_steps_as_one(name, solver, rescaling):
    make, data, _, _ = SHIPPED[name]
    X, Y = data()
    tol = 1e-3 if solver in SUBLINEAR else 1e-7
    loss = min(SOLVERS[solver].losses)
    options = {"C": 0.5, "solver": solver, "loss": loss, "rescaling": rescaling, "tol": tol, "random_state": 0}
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


@pytest.mark.parametrize("solver", EXACT)
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


class Greedy(mm.Model):
    """Sequences of two labels, searched from left to right without a look ahead."""

    n_features = 8

    def joint_feature(self, x, y):
        features = np.zeros(8)
        for row, label in zip(x, y, strict=True):
            features[2 * label : 2 * label + 2] += row
        for before, after in itertools.pairwise(y):
            features[4 + 2 * before + after] += 1.0
        return features

    def loss(self, y_true, y):
        return float(sum(a != b for a, b in zip(y_true, y, strict=True)))

    def argmax(self, x, w):
        return self._from_the_left(w[:4].reshape(2, 2) @ np.transpose(x), w)

    def loss_augmented_argmax(self, x, y_true, w):
        is_wrong = np.arange(2)[:, None] != np.asarray(y_true)
        return self._from_the_left(w[:4].reshape(2, 2) @ np.transpose(x) + is_wrong, w)

    @staticmethod
    def _from_the_left(table, w):
        found = []
        for scores in table.T:
            if found:
                scores = scores + w[4 + 2 * found[-1] : 6 + 2 * found[-1]]
            found.append(int(np.argmax(scores)))
        return tuple(found)


@pytest.mark.parametrize("solver", [name for name in EXACT if name != "sampled-cuts"])
def test_a_heuristic_search_ends_neither_in_an_error_nor_with_a_primal_below_the_dual(solver):
    """Primals look best where the search fails most: such points were certified, with a negative gap, or blamed on rounding."""
    loss, n_caught = min(SOLVERS[solver].losses), 0
    for seed in (10, 59, 78, 120, 138):
        rng = np.random.default_rng(seed)
        X = [rng.normal(size=(int(length), 2)) for length in rng.integers(1, 4, int(rng.integers(2, 6)))]
        Y = [tuple(rng.integers(2, size=len(x)).tolist()) for x in X]
        best = optimum(Greedy(), X, Y, lambda x: list(itertools.product(range(2), repeat=len(x))), C=10.0, loss=loss)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            solution = mm.train(Greedy(), X, Y, 10.0, solver=solver, loss=loss, max_iter=60, random_state=0)
        certificate = solution.certificate
        assert certificate.gap is None or certificate.gap >= 0.0
        assert not (certificate.converged and certificate.primal is None)
        assert certificate.dual <= best.objective * (1 + 1e-9)
        assert certificate.exact == (not any(w.category is InexactOracleWarning for w in caught))
        n_caught += not certificate.exact
    assert n_caught


def test_a_search_that_returns_the_truth_is_named():
    class Blind(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            return y_true

    X, Y = data()
    with pytest.warns(UserWarning, match="w = 0 is certified as perfect"):
        solution = mm.train(Blind(), X, Y)
    assert solution.certificate.primal == 0.0


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

    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)

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


@pytest.mark.parametrize(
    ("solver", "seed"), [("block-dual", 0), ("n-slack", 0), *(("one-slack", seed) for seed in (0, 4, 5, 6))]
)
def test_rounding_in_scores_of_1e8_does_not_make_an_oracle_inexact(solver, seed):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    Y = np.argmax(np.column_stack([X, -X.sum(axis=1)]), axis=1)
    options = {"cache_size": 5} if solver == "one-slack" else {}
    max_iter = 5 if solver == "n-slack" else 30  # its later iterations take seconds each
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", InexactOracleWarning)
        solution = mm.train(Twins(seed), X + 1e8, Y, 10.0, solver=solver, max_iter=max_iter, solver_options=options)
    assert solution.certificate.exact
