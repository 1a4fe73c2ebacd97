"""Perceptron, MIRA and SGD against the same steps written out in NumPy, one example at a time."""

import functools
import itertools

import numpy as np
import pytest
import random_problems
from native_models import explicit_planes, native, random_model, to_native
from sklearn.exceptions import ConvergenceWarning
from small_model import Classes, data
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin import _core

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

ONLINE = ["perceptron", "mira", "sgd"]
NATIVE = ["binary", "multiclass", "chain", "chain with ends"]


class Case:
    """A random problem as the library has it, and its planes as dense vectors."""

    def __init__(self, name, seed, sample_weight=False, nonnegative=False):
        rng = np.random.default_rng([seed, len(name)])
        self.sample_weight = None
        self.bounded = np.zeros(0, int)
        if name == "python":
            self.model, (self.X, self.Y) = Classes(), data(9, seed)
            self.reference = None
            if nonnegative:
                self.model.nonnegative = self.bounded = np.array([0, 3, 4])
        else:
            self.reference = random_model(name, rng)
            # No rows of zeros: which of two outputs with the same score is found would depend on rounding.
            is_chain = name.startswith("chain")
            rows = self.reference.X if is_chain else [self.reference.X]
            for x in rows:
                x += 0.3 * rng.normal(size=x.shape)
            masks = None
            if nonnegative:
                chosen = rng.random(self.reference.n_weights) < 0.5
                chosen[0] = True
                masks = (
                    self.reference.blocks(chosen) if is_chain else {"coef": chosen.reshape(len(self._rows(name)), -1)}
                )
            self.model, self.X, self.Y = native(self.reference, masks, sparse=seed % 2 == 0)
        n = len(self.Y)
        if sample_weight:
            self.sample_weight = random_problems.random_sample_weight(rng, n)
            self.sample_weight[0] = 0.0
        self.problem = self.model.bind(self.X, self.Y, sample_weight=self.sample_weight)
        if nonnegative:
            self.bounded = self.problem.nonnegative
            assert len(self.bounded) > 0
        self.s = np.ones(n) if self.sample_weight is None else self.sample_weight
        self.ids = np.flatnonzero(self.s)

    def _rows(self, name):
        return range(1 if name == "binary" else self.reference.n_labels)

    def planes(self, i, w, **search):
        """(Δ, ψ) of what the search finds for one example at w."""
        weights = self.problem.zero_weights()
        weights.exact[:] = w
        batch = self.problem.oracle(weights, precise=True, **search).search(np.array([i]))
        if self.reference is not None:
            losses, psis = explicit_planes(self.model, self.reference, batch, "margin")
            return list(zip(losses, psis, strict=True))
        found = []
        for k, loss in enumerate(batch.losses()):
            psi = np.array([self.problem.space.dots(batch, unit)[k] for unit in np.eye(self.problem.n_weights)])
            found.append((loss, psi))
        return found

    def train(self, solver, C=1.0, **options):
        return mm.train(
            self.model,
            self.X,
            self.Y,
            C,
            solver=solver,
            sample_weight=self.sample_weight,
            random_state=5,
            solver_options=options,
        )


def average(case, visit, epochs, rng=None):
    """The mean of w after each visit, where ``visit(i, w)`` is what example i adds; negative entries of J become 0."""
    rng = rng or np.random.default_rng(5)
    w, iterates = np.zeros(case.problem.n_weights), []
    for _ in range(epochs):
        for i in rng.permutation(case.ids):
            w = w + case.s[i] * visit(i, w)
            iterates.append(w)
    mean = np.mean(iterates, axis=0)
    mean[case.bounded] = np.maximum(mean[case.bounded], 0.0)
    return mean


def perceptron_step(case, i, w):
    planes = case.planes(i, w, plain=True)
    return planes[0][1] if planes else np.zeros_like(w)


def mira_step(case, i, w, C, k):
    planes = case.planes(i, w, plain=True, k_best=None if k == 1 else k)
    planes = [(loss, psi) for loss, psi in planes if np.any(psi != 0)]
    if not planes:
        return np.zeros_like(w)
    values, psi = np.array([loss - w @ p for loss, p in planes]), np.array([p for _, p in planes])
    if k == 1:
        return np.clip(values[0] / (psi[0] @ psi[0]), 0.0, C) * psi[0]
    return best_multiples(values, psi @ psi.T, C) @ psi


def best_multiples(values, gram, C):
    """argmax Σ α v − ½ α G α, α ≥ 0, Σ α ≤ C: the best of the stationary points of all faces that are feasible."""
    best, best_value, m = np.zeros(len(values)), 0.0, len(values)
    for size in range(1, m + 1):
        for face in map(list, itertools.combinations(range(m), size)):
            sub, v, ones = gram[np.ix_(face, face)], values[face], np.ones(size)
            candidates = [np.linalg.lstsq(sub, v, rcond=1e-12)[0]]
            if np.isfinite(C):
                bordered = np.block([[sub, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
                candidates.append(np.linalg.lstsq(bordered, np.append(v, C), rcond=1e-12)[0][:size])
            for part in candidates:
                if np.all(part >= -1e-12) and part.sum() <= C * (1 + 1e-12):
                    value = part @ v - 0.5 * part @ sub @ part
                    if value > best_value:
                        best, best_value = np.zeros(m), value
                        best[face] = part
    return best


def descend(case, C, eta0, orders, decay="C", n=None):
    """The last w of SGD."""
    w = np.zeros(case.problem.n_weights)
    n = n or len(case.ids)
    for t, i in enumerate(itertools.chain.from_iterable(orders)):
        planes = case.planes(i, w)
        eta = eta0 / (1 + eta0 * t / (C if decay == "C" else n * C)) ** 0.75
        w = max(0.0, 1 - eta / (n * C)) * w
        if planes:
            w = w + eta * case.s[i] * planes[0][1]
            w[case.bounded] = np.maximum(w[case.bounded], 0.0)
    return w


def variants(names=(*NATIVE, "python")):
    kinds = ("plain", "sample weights", "nonnegative")
    return [pytest.param(name, kind, id=f"{name}, {kind}") for name in names for kind in kinds]


def make(name, kind, seed):
    return Case(name, seed, sample_weight=kind == "sample weights", nonnegative=kind == "nonnegative")


# ------------------------------------------------------------------------------------------- the steps themselves


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
        visits = _core.OnlinePass(case.problem.space, weights.exact, None, case.sample_weight, 0)
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
        visits = _core.OnlinePass(case.problem.space, weights.exact, None, None, 0)
        oracle = case.problem.oracle(weights, precise=True)
        for part in np.split(order, cuts):
            visits.sgd(part, oracle, 0.4, nC, nC, case.bounded)
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
    visits = _core.OnlinePass(space, weights.exact, rounded, None, 0)
    oracle = _core.LinearOracle(space, weights.exact, rounded, solver != "sgd", 1)
    order = np.tile(case.ids, 200)
    if solver == "sgd":
        visits.sgd(order, oracle, 1.0, 2.0, 2.0, J)  # shrinks w by more than a million: it is folded on the way
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
    visits = _core.OnlinePass(problem.space, weights.exact, None, None, 0)
    oracle, order = problem.oracle(weights, precise=True, plain=True), np.random.default_rng(0)
    for _ in range(2):
        visits.perceptron(order.permutation(10000), oracle, late)
    assert np.array_equal(solution.w, weights.exact - late / 20000)


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
    assert str(certificate) == ("no objective, no dual, 480 oracle calls, exact, converged: the stopping rule was met")
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


@pytest.mark.parametrize("solver", ONLINE)
def test_min_progress_ends_training_where_an_epoch_gained_too_little(solver):
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, solver=solver, solver_options={"min_progress": 0.05})
    losses = [record["loss"] for record in solution.history]
    gained = [1 - after / before for before, after in itertools.pairwise(losses)]
    assert 1 < len(losses) < 25
    assert all(gain > 0.05 for gain in gained[:-1])
    assert gained[-1] <= 0.05


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
    visits = _core.OnlinePass(space, weights.exact, None, None, 0)
    order, n = np.arange(3), space.n_examples

    def answers_for_another(ids, scale):
        return oracle.search((ids + 1) % n)

    for message, call in {
        f"example {n} at place 0 is out of range": lambda: visits.perceptron(np.array([n]), oracle, late),
        "example -1 at place 0 is out of range": lambda: visits.mira(np.array([-1]), oracle, 1.0, late),
        "late has 2 entries": lambda: visits.mira(order, oracle, 1.0, np.zeros(2)),
        "C must be positive": lambda: visits.mira(order, oracle, np.nan, late),
        "eta0 must be positive": lambda: visits.sgd(order, oracle, 0.0, 1.0, 1.0, nobody),
        "decay must be positive": lambda: visits.sgd(order, oracle, 1.0, -1.0, 1.0, nobody),
        "nC must be positive": lambda: visits.sgd(order, oracle, 1.0, 1.0, np.nan, nobody),
        "non-negative weight": lambda: visits.sgd(order, oracle, 1.0, 1.0, 1.0, np.array([space.n_weights])),
        "answered for another example": lambda: visits.mira(
            order, _core.CallbackOracle(answers_for_another), 1.0, late
        ),
        "weights has 1 entries": lambda: _core.OnlinePass(space, np.zeros(1), None, None, 0),
        "rounded weights has 1 entries": lambda: _core.OnlinePass(
            space, weights.exact, np.zeros(1, np.float32), None, 0
        ),
        "sample_weight has 1 entries": lambda: _core.OnlinePass(space, weights.exact, None, np.ones(1), 0),
        "sample_weight must hold": lambda: _core.OnlinePass(space, weights.exact, None, np.full(n, -1.0), 0),
        "visits must not be negative": lambda: _core.OnlinePass(space, weights.exact, None, None, -1),
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
