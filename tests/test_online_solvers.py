"""What perceptron, MIRA and SGD return and record, how they end early, and what they refuse."""

import functools
import itertools

import numpy as np
import pytest
from online_reference import (
    ONLINE,
    descend,
    make,
    mira_step,
    perceptron_step,
)
from sklearn.exceptions import ConvergenceWarning
from small_model import Classes, data
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin import _core

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


# --------------------------------------------------------------------------------------------------- what comes out


def test_sgd_approaches_the_optimum():
    X, Y = tagging_problem()
    model = mm.models.Chain(4, ends=True)
    best = mm.train(model, X, Y, 0.05, solver="n-slack", tol=1e-6).certificate
    near = mm.train(model, X, Y, 0.05, solver="sgd", solver_options={"epochs": 200, "decay": "nC"}).certificate
    far = mm.train(model, X, Y, 0.05, solver="sgd", solver_options={"epochs": 1, "decay": "nC"}).certificate
    assert best.dual <= near.primal <= 1.02 * best.primal
    assert near.primal < far.primal


def test_the_primal_of_sgd_is_that_of_its_weights():
    case = make("chain", "sample weights", 0)
    solution = case.train("sgd", 0.7, epochs=4)
    weights = case.problem.zero_weights()
    weights.exact[:] = solution.w
    assert solution.certificate.primal == pytest.approx(case.problem.primal(weights, 0.7, squared=False), rel=1e-12)
    assert solution.history[-1]["primal"] == solution.certificate.primal
    assert [record["primal"] for record in solution.history[:-1]] == [None] * 3
    assert solution.certificate.dual is solution.certificate.gap is solution.certificate.relative_gap is None


@pytest.mark.parametrize("solver", ["perceptron", "mira"])
def test_a_solver_without_an_objective_says_so(solver):
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, solver=solver, solver_options={"epochs": 4})
    certificate = solution.certificate
    assert certificate.primal is certificate.dual is certificate.gap is certificate.relative_gap is None
    assert certificate.converged
    assert certificate.exact
    assert str(certificate) == ("no objective, no dual, 480 oracle calls, exact, converged: all 4 epochs were made")
    assert certificate.oracle_calls == 4 * 120
    for record in solution.history:
        assert record["primal"] is record["dual"] is record["gap"] is None
        assert 0 < record["updates"] <= 120
        assert 0 < record["loss"] < 8


@pytest.mark.parametrize("solver", ONLINE)
def test_the_end_of_the_epochs_is_no_failure(solver):
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, solver=solver)
    assert len(solution.history) == 25
    assert solution.certificate.converged


@pytest.mark.parametrize("solver", ["perceptron", "mira"])
def test_an_epoch_without_a_mistake_ends_training(solver):
    solution = mm.train(mm.models.Multiclass(3), np.eye(3), [0, 1, 2], solver=solver)
    updates = [record["updates"] for record in solution.history]
    assert len(updates) < 25
    assert updates[-1] == 0
    assert all(updates[:-1])
    assert solution.certificate.converged
    assert solution.certificate.message == f"epoch {len(updates)} found nothing to learn"


def test_sgd_goes_on_where_nothing_is_violated_because_w_may_still_be_too_long():
    X, y = 3.0 * np.eye(3), [0, 1, 2]
    solution = mm.train(mm.models.Multiclass(3), X, y, solver="sgd")
    assert len(solution.history) == 25
    assert solution.history[-1]["updates"] < 3
    early = mm.train(mm.models.Multiclass(3), X, y, solver="sgd", solver_options={"epochs": 2})
    assert solution.certificate.primal < early.certificate.primal


@pytest.mark.parametrize("solver", ONLINE)
def test_min_progress_ends_training_where_an_epoch_gained_too_little(solver):
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, solver=solver, solver_options={"min_progress": 0.05})
    losses = [record["loss"] for record in solution.history]
    gained = [1 - after / before for before, after in itertools.pairwise(losses)]
    assert 1 < len(losses) < 25
    assert all(gain > 0.05 for gain in gained[:-1])
    assert gained[-1] <= 0.05
    assert solution.certificate.message == f"epoch {len(losses)} made less progress than min_progress asks for"


@pytest.mark.parametrize("solver", ONLINE)
def test_losses_in_the_history_are_those_at_the_visits(solver):
    case = make("chain", "sample weights", 2)
    solution = case.train(solver, epochs=1, **({"eta0": 0.3} if solver == "sgd" else {}))
    w, total = np.zeros(case.problem.n_weights), 0.0
    order = np.random.default_rng(5).permutation(case.ids)
    for t, i in enumerate(order):
        planes = case.planes(i, w, plain=solver != "sgd")
        if planes:
            loss, psi = planes[0]
            total += case.s[i] * (loss - w @ psi if solver == "sgd" else loss)
        if solver == "perceptron":
            w = w + case.s[i] * perceptron_step(case, i, w)
        elif solver == "mira":
            w = w + case.s[i] * mira_step(case, i, w, 1.0, 1)
        else:
            w = descend(case, 1.0, 0.3, [order[: t + 1]])
    assert solution.history[0]["loss"] == pytest.approx(total / len(case.ids), rel=1e-9)


@pytest.mark.parametrize("solver", ONLINE)
def test_the_same_random_state_gives_the_same_bits_for_any_number_of_threads(solver):
    X, Y = tagging_problem()
    settings = {"solver": solver, "solver_options": {"epochs": 3}}
    one, two, other = (
        mm.train(mm.models.Chain(4), X, Y, random_state=seed, n_jobs=n_jobs, **settings)
        for seed, n_jobs in ((3, 1), (3, 2), (4, 1))
    )
    assert np.array_equal(one.w, two.w)
    assert not np.array_equal(one.w, other.w)


def test_examples_of_weight_zero_are_never_searched():
    seen = set()

    class Recording(Classes):
        def argmax(self, x, w):
            seen.add(tuple(x))
            return super().argmax(x, w)

    X, Y = data(8)
    weights = np.array([0.0, 1.0, 1.0, 0.0, 1.0, 2.0, 1.0, 1.0])
    solution = mm.train(Recording(), X, Y, solver="perceptron", sample_weight=weights, solver_options={"epochs": 2})
    assert seen == {tuple(x) for x, s in zip(X, weights, strict=True) if s > 0}
    assert solution.certificate.oracle_calls == 6 * len(solution.history)


# --------------------------------------------------------------------------------------------------- early ends


@pytest.mark.parametrize("solver", ONLINE)
def test_max_iter_ends_training_with_a_warning(solver):
    X, Y = tagging_problem()
    with pytest.warns(ConvergenceWarning, match=f"max_iter=3 was reached; solver '{solver}' has no duality gap"):
        short = mm.train(mm.models.Chain(4), X, Y, solver=solver, max_iter=3)
    whole = mm.train(mm.models.Chain(4), X, Y, solver=solver, solver_options={"epochs": 3})
    assert np.array_equal(short.w, whole.w)
    assert not short.certificate.converged


@pytest.mark.parametrize("solver", ONLINE)
def test_max_time_ends_an_epoch_in_its_middle(solver):
    rng = np.random.default_rng(0)
    X, Y = list(rng.normal(size=(3000, 2))), rng.integers(3, size=3000).tolist()
    options = {"eta0": 0.5} if solver == "sgd" else {}
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.05 s was reached"):
        solution = mm.train(Classes(), X, Y, solver=solver, max_time=0.05, solver_options=options)
    assert solution.history[0]["oracle_calls"] < 3000
    assert np.any(solution.w != 0)


@pytest.mark.parametrize("solver", ONLINE)
def test_an_interrupt_keeps_what_was_learnt_up_to_the_last_visit(solver):
    class Interrupted(Classes):
        calls = 0

        def _best(self, search, *arguments):
            self.calls += 1
            if self.calls == 14:
                raise KeyboardInterrupt
            return search(*arguments)

        def argmax(self, x, w):
            return self._best(super().argmax, x, w)

        def loss_augmented_argmax(self, x, y_true, w):
            return self._best(super().loss_augmented_argmax, x, y_true, w)

    case = make("python", "plain", 0)
    options = {"eta0": 0.4} if solver == "sgd" else {}
    settings = {"solver": solver, "random_state": 5, "solver_options": options}
    with pytest.warns(match="training was interrupted"):
        solution = mm.train(Interrupted(), case.X, case.Y, **settings)
    assert len(solution.history) == 1, "nine visits and four"
    rng = np.random.default_rng(5)
    order = np.concatenate([rng.permutation(9), rng.permutation(9)])[:13]
    if solver == "sgd":
        expected = descend(case, 1.0, 0.4, [order])
    else:
        step = functools.partial(mira_step, C=1.0, k=1) if solver == "mira" else perceptron_step
        w, iterates = np.zeros(6), []
        for i in order:
            w = w + step(case, i, w)
            iterates.append(w)
        expected = np.mean(iterates, axis=0)
    np.testing.assert_allclose(solution.w, expected, atol=1e-9)
    assert not solution.certificate.exact


@pytest.mark.parametrize("solver", ONLINE)
def test_an_error_of_the_model_comes_through(solver):
    class Failing(Classes):
        def argmax(self, x, w):
            raise ZeroDivisionError("no luck")

        def loss_augmented_argmax(self, x, y_true, w):
            raise ZeroDivisionError("no luck")

    with pytest.raises(ZeroDivisionError, match="no luck"):
        mm.train(Failing(), *data(), solver=solver)


# --------------------------------------------------------------------------------------------------------- errors


class Predicting(Classes):
    """A model that can only predict."""

    outputs = mm.Model.outputs

    def argmax(self, x, w):
        return int(np.argmax([self._score(x, y, w) for y in range(3)]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"solver": "perceptron", "C": 2.0}, r"solver 'perceptron' has no C, found 2.0: leave it at 1.0, the default"),
        ({"solver": "perceptron", "C": float("inf")}, r"solver 'perceptron' has no C, found inf"),
        ({"solver": "sgd", "C": float("inf")}, r"C must be a positive number, found inf"),
        ({"solver": "mira", "C": 0.0}, r"C must be a positive number, found 0.0"),
        ({"solver": "mira", "C": float("nan")}, r"C must be a positive number, found nan"),
        (
            {"solver": "perceptron", "loss": "squared_hinge"},
            r"solver 'perceptron' minimises no loss; for loss='squared_hinge' use .*'n-slack'",
        ),
        (
            {"solver": "sgd", "loss": "squared_hinge"},
            r"solver 'sgd' minimises the hinge loss; for loss='squared_hinge' use .*'n-slack'",
        ),
        (
            {"solver": "sgd", "rescaling": "slack"},
            r"solver 'sgd' does not rescale slacks; for rescaling='slack' use 'block-dual', 'one-slack', .*or 'bcfw'",
        ),
        (
            {"solver": "mira", "rescaling": "slack"},
            r"solver 'mira' has no slacks to rescale; for rescaling='slack' use",
        ),
        ({"solver": "mira", "solver_options": {"k_best": 0}}, r"\['k_best'\] must be an integer ≥ 1, found 0"),
        (
            {"solver": "sgd", "solver_options": {"eta0": 0.0}},
            r"\['eta0'\] must be a positive number or None, found 0.0",
        ),
        ({"solver": "sgd", "solver_options": {"decay": "t"}}, r"\['decay'\] must be 'C' or 'nC', found 't'"),
        ({"solver": "sgd", "solver_options": {"epochs": 0}}, r"\['epochs'\] must be an integer ≥ 1, found 0"),
        (
            {"solver": "perceptron", "solver_options": {"min_progress": 1.0}},
            r"\['min_progress'\] must be a number in \[0, 1\) or None, found 1.0",
        ),
        ({"solver": "perceptron", "solver_options": {"k_best": 2}}, r"'perceptron' has no option 'k_best'"),
    ],
)
def test_bad_arguments_are_explained(arguments, message):
    with pytest.raises(ValueError, match=message):
        mm.train(mm.models.Multiclass(3), np.eye(3), np.arange(3), **arguments)


def test_abilities_are_asked_for_before_any_work():
    X, Y = data()
    perceptron = mm.train(Predicting(), X, Y, solver="perceptron")
    assert np.array_equal(perceptron.w, mm.train(Classes(), X, Y, solver="perceptron").w)
    mm.train(Predicting(), X, Y, solver="mira")
    with pytest.raises(
        ValueError, match=r"solver 'mira' .*needs for k_best > 1 a model with m_best\(x, w, m\), or outputs"
    ):
        mm.train(Predicting(), X, Y, solver="mira", solver_options={"k_best": 2})
    with pytest.raises(ValueError, match=r"solver 'sgd' .*needs a model with loss_augmented_argmax"):
        mm.train(Predicting(), X, Y, solver="sgd")


def test_the_core_refuses_what_does_not_fit():
    case = make("chain", "plain", 0)
    space, weights = case.problem.space, case.problem.zero_weights()
    late, nobody = np.zeros(space.n_weights), np.zeros(0, np.int64)
    oracle = case.problem.oracle(weights, precise=True, plain=True)
    visits = _core.OnlinePass(space, weights.exact, None, None, 0, nobody)
    order, n = np.arange(3), space.n_examples

    def answers_for_another(ids, scale):
        return oracle.search((ids + 1) % n)

    for message, call in {
        f"example {n} at place 0 is out of range": lambda: visits.perceptron(np.array([n]), oracle, late),
        "example -1 at place 0 is out of range": lambda: visits.mira(np.array([-1]), oracle, 1.0, late),
        "late has 2 entries": lambda: visits.mira(order, oracle, 1.0, np.zeros(2)),
        "C must be positive": lambda: visits.mira(order, oracle, np.nan, late),
        "eta0 must be positive": lambda: visits.sgd(order, oracle, 0.0, 1.0, 1.0),
        "decay must be positive": lambda: visits.sgd(order, oracle, 1.0, -1.0, 1.0),
        "nC must be positive": lambda: visits.sgd(order, oracle, 1.0, 1.0, np.nan),
        "non-negative weight": lambda: _core.OnlinePass(
            space, weights.exact, None, None, 0, np.array([space.n_weights])
        ),
        "answered for another example": lambda: visits.mira(
            order, _core.CallbackOracle(answers_for_another), 1.0, late
        ),
        "weights has 1 entries": lambda: _core.OnlinePass(space, np.zeros(1), None, None, 0, nobody),
        "rounded weights has 1 entries": lambda: _core.OnlinePass(
            space, weights.exact, np.zeros(1, np.float32), None, 0, nobody
        ),
        "sample_weight has 1 entries": lambda: _core.OnlinePass(space, weights.exact, None, np.ones(1), 0, nobody),
        "sample_weight must hold": lambda: _core.OnlinePass(space, weights.exact, None, np.full(n, -1.0), 0, nobody),
        "visits must not be negative": lambda: _core.OnlinePass(space, weights.exact, None, None, -1, nobody),
        "k must be at least 1": lambda: _core.KBestOracle(space, weights.exact, 0),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_planes_without_features_do_not_stop_mira():
    # A row of zeros can be predicted wrong, but nothing can be learnt from it.
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), [1, 0, 1]
    for k in (1, 2):
        solution = mm.train(mm.models.Multiclass(2), X, y, np.inf, solver="mira", solver_options={"k_best": k})
        assert np.all(np.isfinite(solution.w))
        assert mm.models.Multiclass(2).predict(X[1:], solution.w).tolist() == [0, 1]


def test_an_output_with_the_features_of_the_truth_takes_no_share_of_the_step():
    class Twins(mm.Model):
        n_features = 2

        def joint_feature(self, x, y):
            return [0.0, 1.0] if y == 2 else [1.0, 0.0]

        def loss(self, y_true, y):
            return [0.0, 5.0, 1.0][y]

        def outputs(self, x):
            return range(3)

    for C, step in ((0.25, 0.25), (np.inf, 0.5)):
        options = {"k_best": 3, "epochs": 1}
        solution = mm.train(Twins(), [0.0], [0], C, solver="mira", solver_options=options)
        np.testing.assert_allclose(solution.w, [step, -step], atol=1e-6)


def test_contradicting_constraints_leave_finite_weights():
    # Two outputs whose features differ from the truth's in opposite directions: no w gives the truth a margin to both.
    class Opposite(mm.Model):
        n_features = 1

        def joint_feature(self, x, y):
            return [float(y)]

        def loss(self, y_true, y):
            return float(y != y_true)

        def outputs(self, x):
            return [-1, 0, 1]

    solution = mm.train(Opposite(), [0.0] * 5, [0] * 5, np.inf, solver="mira", solver_options={"k_best": 3})
    assert np.abs(solution.w).max() < 1e-6


def test_steps_that_are_too_long_are_told():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] + rng.normal(size=60) > 0.0
    with pytest.warns(ConvergenceWarning, match="w = 0 has 60 at most: the steps of 'sgd' were too long"):
        mm.BinarySVM(solver="sgd").fit(100.0 * X, y)
    assert mm.BinarySVM(solver="sgd").fit(X, y).certificate_.primal < 60.0
