"""Perceptron, MIRA and SGD against the same steps written out in NumPy."""

import functools
import itertools

import numpy as np
import pytest
from native_models import to_native
from online_reference import (
    NATIVE,
    ONLINE,
    average,
    descend,
    make,
    mira_step,
    perceptron_step,
    variants,
)

import maxmargin as mm
from maxmargin import _core

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


@pytest.mark.parametrize(("name", "kind"), variants())
def test_perceptron_returns_the_average_of_its_iterates(name, kind):
    for seed in range(3):
        case = make(name, kind, seed)
        solution = case.train("perceptron", epochs=3)
        n_epochs = len(solution.history)
        expected = average(case, functools.partial(perceptron_step, case), n_epochs)
        np.testing.assert_allclose(solution.w, expected, atol=1e-9)


@pytest.mark.parametrize("C", [np.inf, 0.05])
@pytest.mark.parametrize(("name", "kind"), variants())
def test_mira_makes_the_smallest_step_that_suffices(name, kind, C):
    for seed in range(3):
        case = make(name, kind, seed)
        solution = case.train("mira", C, epochs=3)
        step = functools.partial(mira_step, case, C=C, k=1)
        np.testing.assert_allclose(solution.w, average(case, step, len(solution.history)), atol=1e-9)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("C", [np.inf, 0.05])
@pytest.mark.parametrize(("name", "kind"), variants(["multiclass", "chain", "python"]))
def test_mira_with_k_best_solves_its_small_problem(name, kind, C, k):
    for seed in range(3):
        case, rng = make(name, kind, seed), np.random.default_rng(seed)
        weights = case.problem.zero_weights()
        # From w = 0 several outputs would have the same score, and rounding would choose among them.
        weights.exact[:] = w = 0.1 * rng.normal(size=case.problem.n_weights)
        late = np.zeros_like(w)
        visits = _core.OnlinePass(case.problem.space, weights.exact, None, case.sample_weight, 0, case.bounded)
        order = np.concatenate([rng.permutation(case.ids) for _ in range(2)])
        visits.mira(order, case.problem.oracle(weights, precise=True, k_best=k), C, late)
        iterates = []
        for i in order:
            w = w + case.s[i] * mira_step(case, i, w, C, k)
            iterates.append(w)
        # Without C the constraints are met to a billionth.
        np.testing.assert_allclose(weights.exact, w, atol=1e-6 if np.isinf(C) else 1e-9)
        np.testing.assert_allclose(weights.exact - late / len(order), np.mean(iterates, axis=0), atol=1e-6)


def test_mira_with_two_best_of_two_classes_learns_from_small_margins():
    case = make("binary", "plain", 1)
    one, two = (case.train("mira", np.inf, epochs=4, k_best=k) for k in (1, 2))
    assert sum(record["updates"] for record in two.history) > sum(record["updates"] for record in one.history)
    step = functools.partial(mira_step, case, C=np.inf, k=2)
    np.testing.assert_allclose(two.w, average(case, step, len(two.history)), atol=1e-6)


@pytest.mark.parametrize("decay", ["C", "nC"])
@pytest.mark.parametrize("C", [0.02, 3.0])  # the first so small that η exceeds nC: the factor of w is cut off at 0
@pytest.mark.parametrize(("name", "kind"), variants())
def test_sgd_shrinks_and_steps(name, kind, C, decay):
    for seed in range(2):
        case = make(name, kind, seed)
        solution = case.train("sgd", C, epochs=3, eta0=0.3, decay=decay)
        rng = np.random.default_rng(5)
        orders = [rng.permutation(case.ids) for _ in range(3)]
        np.testing.assert_allclose(solution.w, descend(case, C, 0.3, orders, decay), atol=1e-9)
        assert np.all(solution.w[case.bounded] >= 0)


def test_sgd_folds_a_scale_that_has_become_tiny():
    case = make("multiclass", "plain", 0)
    solution = case.train("sgd", 0.2, epochs=200, eta0=1.5, decay="nC")
    rng = np.random.default_rng(5)
    orders = [rng.permutation(case.ids) for _ in range(200)]
    nC = 0.2 * len(case.ids)
    assert np.prod([1 - 1.5 / (1 + 1.5 * t / nC) ** 0.75 / nC for t in range(200 * len(case.ids))]) < 1e-6
    np.testing.assert_allclose(solution.w, descend(case, 0.2, 1.5, orders, "nC"), atol=1e-9)


@pytest.mark.parametrize("name", ["chain", "python"])
def test_sgd_is_the_same_in_one_pass_in_two_and_with_its_scale_folded_between(name):
    case = make(name, "plain", 0)
    order = np.tile(case.ids, 4)
    expected = descend(case, 0.1, 0.4, [order], "nC")
    nC, middle = 0.1 * len(case.ids), list(range(4, len(order), 2))
    for cuts, folds in (([], False), (middle, False), (middle, True)):
        weights = case.problem.zero_weights()
        visits = _core.OnlinePass(case.problem.space, weights.exact, None, None, 0, case.bounded)
        oracle = case.problem.oracle(weights, precise=True)
        for part in np.split(order, cuts):
            visits.sgd(part, oracle, 0.4, nC, nC)
            if folds:
                visits.fold()
        visits.fold()
        np.testing.assert_allclose(weights.exact, expected, atol=1e-9)


@pytest.mark.parametrize("name", ["chain", "python"])
def test_sgd_takes_the_first_step_whose_trial_has_the_lowest_primal(name):
    chosen = set()
    for C in (0.05, 0.5, 5.0):
        case = make(name, "sample weights", 1)
        solution = case.train("sgd", C, epochs=2)
        rng = np.random.default_rng(5)
        sample = rng.permutation(case.ids)
        primals = {}
        for eta0 in (0.5, 0.25, 0.125, 0.0625, 0.03125):
            weights = case.problem.zero_weights()
            weights.exact[:] = descend(case, C, eta0, [sample])
            primals[eta0] = case.problem.primal(weights, C, squared=False)
        best = min(primals, key=primals.get)
        chosen.add(best)
        orders = [rng.permutation(case.ids) for _ in range(2)]
        np.testing.assert_allclose(solution.w, descend(case, C, best, orders), atol=1e-9)
    assert len(chosen) > 1, "the choice depends on the problem"


def test_sgd_searches_its_step_on_a_thousand_examples_at_most():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 2)), rng.choice([-1, 1], 1500)
    solution = mm.train(mm.models.Binary(), X, y, solver="sgd", solver_options={"epochs": 1})
    # Five trials, each with the primal of its end; then one epoch, and the primal that is returned.
    assert solution.certificate.oracle_calls == 5 * 2 * 1000 + 2 * 1500


def test_the_best_outputs_without_loss_are_what_enumeration_finds():
    for name, seed, k in itertools.product(NATIVE, range(3), (1, 2, 4)):
        case = make(name, "plain", seed)
        model = case.reference
        w = np.random.default_rng(seed).normal(size=model.n_weights)
        for i in range(len(case.Y)):
            ranked = sorted(model.outputs(i), key=lambda y: -(w @ model.psi(i, y)))[:k]
            margins = sorted(
                w @ (model.psi(i, model.truth(i)) - model.psi(i, y)) for y in ranked if y != model.truth(i)
            )
            native_w = to_native(case.model, model, w)
            for search in ([{"plain": True}] if k == 1 else []) + [{"plain": True, "k_best": k}]:
                found = [native_w @ psi for _, psi in case.planes(i, native_w, **search)]
                np.testing.assert_allclose(found, margins, atol=1e-9)


@pytest.mark.parametrize("name", ["multiclass", "chain with ends"])
@pytest.mark.parametrize("solver", ONLINE)
def test_the_float_copy_follows_every_write(solver, name):
    case = make(name, "nonnegative", 0)
    space, J = case.problem.space, case.problem.nonnegative
    weights, late = case.problem.zero_weights(), np.zeros(case.problem.n_weights)
    rounded = weights.rounded
    visits = _core.OnlinePass(space, weights.exact, rounded, None, 0, J)
    oracle = _core.LinearOracle(space, weights.exact, rounded, solver != "sgd", 1)
    order = np.tile(case.ids, 200)
    if solver == "sgd":
        visits.sgd(order, oracle, 1.0, 2.0, 2.0)  # shrinks w by more than a million: it is folded on the way
    elif solver == "mira":
        visits.mira(order, oracle, 0.1, late)
    else:
        visits.perceptron(order, oracle, late)
    assert np.any(weights.exact != 0)
    np.testing.assert_allclose(rounded, weights.exact, rtol=1e-5, atol=1e-5 * np.abs(weights.exact).max())
    weights.refresh()
    assert weights.rounded is rounded
    assert np.array_equal(rounded, weights.exact.astype(np.float32))


def test_large_problems_are_searched_in_float_and_learn_the_same():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(10000, 30)).astype(float)  # sums of integers: the same in both precisions
    y = np.argmax(X[:, :5] + rng.normal(size=(10000, 5)), axis=1)
    model = mm.models.Multiclass(5)
    problem = model.bind(X, y)
    assert not problem.always_precise
    solution = mm.train(model, X, y, solver="perceptron", random_state=0, solver_options={"epochs": 2})
    weights, late = problem.zero_weights(), np.zeros(problem.n_weights)
    visits = _core.OnlinePass(problem.space, weights.exact, None, None, 0, problem.nonnegative)
    oracle, order = problem.oracle(weights, precise=True, plain=True), np.random.default_rng(0)
    for _ in range(2):
        visits.perceptron(order.permutation(10000), oracle, late)
    assert np.array_equal(solution.w, weights.exact - late / 20000)
