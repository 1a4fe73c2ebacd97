"""Block-coordinate Frank-Wolfe against the same steps on dense vectors, written out in plain Python.

Seen to fail with the formula broken in the core: the averaging (weights j(j+1)/2, or 2/(K(K+3)) for its share), the clip of γ
at 1, s without C_i, the step of pairs without the limit α_a, and the draws of gap sampling.
"""

import itertools

import numpy as np
import pytest
import random_problems
import reference
from native_models import MODELS, explicit_planes, native, random_model
from sklearn.exceptions import ConvergenceWarning
from small_model import Classes, data

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.base import InexactOracleWarning
from maxmargin.solvers import bcfw

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


class Setting:
    """A random problem, its budgets and the core's blocks for it."""

    def __init__(self, name, rescaling="margin", nonnegative=False, seed=0, C=0.7, **settings):
        self.rng = np.random.default_rng([seed, MODELS.index(name)])
        self.model = random_model(name, self.rng)
        self.rescaling = rescaling
        self.native, X, Y = native(self.model)
        self.problem = self.native.bind(X, Y, rescaling=rescaling)
        self.n, self.N = self.problem.n_examples, self.problem.n_weights
        self.budgets = C * random_problems.random_sample_weight(self.rng, self.n)
        self.weights = self.problem.zero_weights()
        planes = self.problem.separate(self.problem.all_ids, self.weights, precise=True)
        used = np.flatnonzero(np.any(explicit_planes(self.native, self.model, planes, rescaling)[1] != 0, axis=0))
        self.J = used[::3] if nonnegative else np.zeros(0, np.int64)
        self.core = _core.FrankWolfe(self.problem.space, self.budgets, self.J, **settings)

    def visit(self, order, batch_size=1):
        """One pass; return what it asked: the examples, the w it was at, and the planes found."""
        asked = []

        def search(ids, scale):
            batch = self.problem.separate(ids, self.weights, precise=True)
            asked.append((ids.tolist(), self.weights.exact.copy(), batch))
            return batch

        self.core.visit(_core.CallbackOracle(search), np.asarray(order), batch_size, self.weights.exact)
        return asked

    def explicit(self, ids, batch):
        """Loss and dense ψ of each example; (0, 0) for the truth, which is left out of the batch."""
        losses, psi = explicit_planes(self.native, self.model, batch, self.rescaling)
        found = {int(i): (float(losses[k]), psi[k]) for k, i in enumerate(batch.examples())}
        return [(i, *found.get(i, (0.0, np.zeros(self.N)))) for i in ids]

    def average(self):
        w = np.empty(self.N)
        self.core.average(w)
        return w


class Dense:
    """The method on dense w_i and b_i, with the recursion of the average as the paper writes it."""

    def __init__(self, setting):
        self.s = setting
        self.w_i, self.b_i = np.zeros((setting.n, setting.N)), np.zeros(setting.n)
        self.average, self.average_b, self.k = np.zeros(setting.N), 0.0, 0
        self.gaps = np.zeros(setting.n)

    @property
    def w(self):
        return self.clipped(self.w_i.sum(axis=0))

    def clipped(self, w):
        w[self.s.J] = np.maximum(w[self.s.J], 0.0)
        return w

    def visit(self, asked):
        # Where planes tie, rounding decides: those that the core was given are taken, at a w that must be the same.
        for ids, w, batch in asked:
            assert w == pytest.approx(self.w, abs=1e-10)
            for i, loss, psi in self.s.explicit(ids, batch):
                self.step(i, loss, psi)
                rho = 2.0 / (self.k + 2.0)
                self.average = (1 - rho) * self.average + rho * self.w_i.sum(axis=0)
                self.average_b = (1 - rho) * self.average_b + rho * self.b_i.sum()
                self.k += 1

    def step(self, i, loss, psi):
        C = self.s.budgets[i]
        u = C * psi - self.w_i[i]
        self.gaps[i] = C * loss - self.b_i[i] - self.w @ u
        gamma = np.clip(self.gaps[i] / (u @ u), 0.0, 1.0) if u @ u > 0 else 1.0
        self.w_i[i] += gamma * u
        self.b_i[i] = (1 - gamma) * self.b_i[i] + gamma * C * loss


class DensePairwise(Dense):
    """Pairwise steps with all planes of a block told apart, the truth's among them."""

    def __init__(self, setting):
        super().__init__(setting)
        self.atoms = [[[0.0, np.zeros(setting.N), C]] for C in setting.budgets]

    def step(self, i, loss, psi):
        atoms, w = self.atoms[i], self.w
        if not any(atom[0] == loss and np.array_equal(atom[1], psi) for atom in atoms):
            atoms.append([loss, psi, 0.0])
        values = np.array([atom[0] - w @ atom[1] for atom in atoms])
        alpha = np.array([atom[2] for atom in atoms])
        self.gaps[i] = self.s.budgets[i] * values.max() - alpha @ values
        best, worst = int(values.argmax()), int(np.where(alpha > 0, values, np.inf).argmin())
        d = atoms[best][1] - atoms[worst][1]
        delta = min((values[best] - values[worst]) / (d @ d), alpha[worst]) if d @ d > 0 else alpha[worst]
        atoms[best][2] += delta
        atoms[worst][2] -= delta
        self.w_i[i] = sum(a * psi for _, psi, a in atoms)
        self.b_i[i] = sum(a * loss for loss, _, a in atoms)

    def has_tie(self, i):
        """Whether two planes are worth the same: a step between two makes them so, and rounding decides the next one."""
        values = sorted(loss - self.w @ psi for loss, psi, _ in self.atoms[i])
        return len(values) > 1 and np.diff(values).min() < 1e-9


def assert_same(setting, dense):
    assert setting.weights.exact == pytest.approx(dense.w, abs=1e-10)
    assert setting.core.loss() == pytest.approx(dense.b_i.sum(), abs=1e-10)
    assert setting.core.gaps() == pytest.approx(np.maximum(dense.gaps, 0.0), abs=1e-10)


# --------------------------------------------------------------------------------------------- steps


@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_passes_make_the_steps_of_dense_blocks(name, rescaling, nonnegative, batch_size):
    setting = Setting(name, rescaling, nonnegative)
    dense = Dense(setting)
    ids = np.flatnonzero(setting.budgets > 0)
    for _ in range(6):
        asked = setting.visit(setting.rng.permutation(ids), batch_size)
        assert [len(batch) for batch, _, _ in asked[:-1]] == [batch_size] * (len(asked) - 1)
        dense.visit(asked)
        assert_same(setting, dense)
    fresh = np.empty(setting.N)
    setting.core.weights(fresh)
    assert fresh == pytest.approx(dense.w, abs=1e-10)
    assert setting.core.n_steps == dense.k == 6 * len(ids)


@pytest.mark.parametrize("max_planes", [0, 10])
@pytest.mark.parametrize("nonnegative", [False, True])
def test_the_average_is_that_of_the_explicit_recursion(nonnegative, max_planes):
    setting = Setting("chain", nonnegative=nonnegative, max_planes=max_planes)
    dense = DensePairwise(setting) if max_planes else Dense(setting)
    for i in [0, 3, *setting.rng.integers(0, setting.n, 40)]:
        if max_planes and dense.has_tie(i):
            continue
        dense.visit(setting.visit([i]))
        assert setting.average() == pytest.approx(dense.clipped(dense.average.copy()), abs=1e-10)
        assert setting.core.average_loss() == pytest.approx(dense.average_b, abs=1e-10)
    assert not np.allclose(setting.average(), setting.weights.exact, atol=1e-3), "the average must differ to be seen"

    # A later run begins its average anew: after one step that is where the step went.
    later = Setting("chain", nonnegative=nonnegative, max_planes=max_planes)
    later.core.start_from(setting.core, 0.3)
    later.core.weights(later.weights.exact)
    begin = later.weights.exact.copy()
    later.visit([np.argmax(later.budgets)])
    assert not np.allclose(later.weights.exact, begin, atol=1e-3)
    assert later.average() == pytest.approx(later.weights.exact, abs=1e-10)


def test_steps_stop_at_the_plane_they_go_to():
    # Far from the optimum the best step without a clip would leave the simplex: with C small γ is 1 and w_i is C_i ψ.
    setting = Setting("multiclass", C=1e-4)
    for i in np.flatnonzero(setting.budgets > 0):
        [(ids, before, batch)] = setting.visit([i])
        [(_, _, psi)] = setting.explicit(ids, batch)
        assert setting.weights.exact - before == pytest.approx(setting.budgets[i] * psi, abs=1e-15)


def test_an_example_that_is_satisfied_goes_back_to_the_truth():
    space = _core.VectorSpace(1, 1, "margin")
    core = _core.FrankWolfe(space, np.ones(1), np.zeros(0, np.int64))
    answers = [(1.0, [1.0]), None]

    def search(ids, scale):
        batch, answer = _core.PlaneBatch(), answers.pop(0)
        if answer:
            batch.add_vector(0, answer[0], np.array([0], np.int32), np.array(answer[1]))
        return batch

    w = np.zeros(1)
    core.visit(_core.CallbackOracle(search), np.zeros(1, np.int64), 1, w)
    assert (w[0], core.loss()) == (1.0, 1.0)
    w[0] += 2.0  # as if other blocks had moved it: the truth is now the better plane
    core.visit(_core.CallbackOracle(search), np.zeros(1, np.int64), 1, w)
    assert (w[0], core.loss()) == (2.0, 0.0)


# --------------------------------------------------------------------------------------------- pairs


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_pairwise_passes_make_the_steps_of_dense_pairs(name, nonnegative, rescaling):
    setting = Setting(name, rescaling, nonnegative, max_planes=100)
    dense = DensePairwise(setting)
    ids = np.flatnonzero(setting.budgets > 0)
    n_steps = 0
    for i in setting.rng.choice(ids, 8 * len(ids)):
        if dense.has_tie(i):
            continue
        dense.visit(setting.visit([i]))
        assert_same(setting, dense)
        n_steps += 1
    assert n_steps >= 4 * len(ids)


@pytest.mark.parametrize("max_planes", [1, 2, 3])
def test_planes_beyond_the_bound_join_the_sum_and_the_dual_still_rises(max_planes):
    setting = Setting("chain", C=5.0, max_planes=max_planes)
    ids, last = np.flatnonzero(setting.budgets > 0), 0.0
    fresh = np.empty(setting.N)
    for _ in range(60):
        setting.visit(setting.rng.permutation(ids))
        assert setting.core.n_planes <= max_planes * setting.n
        w = setting.weights.exact
        dual = setting.core.loss() - 0.5 * w @ w
        assert dual >= last - 1e-12 * abs(last)
        last = dual
        setting.core.weights(fresh)
        assert fresh == pytest.approx(w, abs=1e-9)
    best = reference.solve(reference.planes(setting.model), 1.0, setting.budgets)
    assert 0.95 * best.objective <= last <= best.objective * (1 + 1e-9)


# ----------------------------------------------------------------------------------------- gap sampling


def test_examples_are_drawn_in_proportion_to_their_gaps():
    setting = Setting("chain")
    assert len(setting.core.draw(np.array([0.5]))) == 0, "before the first visit there are no gaps"
    setting.visit(np.arange(setting.n))
    setting.visit([0])
    gaps = setting.core.gaps()
    assert setting.core.total_gap == pytest.approx(gaps.sum())
    grid = (np.arange(20_000) + 0.5) / 20_000
    drawn = np.bincount(setting.core.draw(grid), minlength=setting.n) / len(grid)
    assert drawn == pytest.approx(gaps / gaps.sum(), abs=1e-3)
    assert np.all(drawn[gaps == 0] == 0)


def test_a_pass_by_gaps_follows_the_gaps_as_they_change():
    one, other = Setting("chain"), Setting("chain")
    uniforms = one.rng.random(30)
    for setting in (one, other):
        setting.visit(np.arange(setting.n))
    one.core.visit_by_gaps(one.problem.oracle(one.weights, precise=True), uniforms, 1, one.weights.exact)
    for u in uniforms:
        other.visit(other.core.draw(np.array([u])))
    assert np.array_equal(one.weights.exact, other.weights.exact)


# ------------------------------------------------------------------------------------------ the solver


def chain_data(n=30, seed=0):
    """Sequences whose labels follow their features but for some noise: those that do not would make w = 0 optimal."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(1, 7), 4)) for _ in range(n)]
    teacher = rng.normal(size=(4, 3))
    return mm.models.Chain(3), X, [np.argmax(x @ teacher + rng.normal(size=(len(x), 3)), axis=1) for x in X]


OPTIONS = [
    {},
    {"averaging": False},
    {"gap_sampling": True},
    {"pairwise": True},
    {"batch_size": 7},
    {"pairwise": True, "gap_sampling": True, "averaging": False},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_reaches_the_optimum_that_n_slack_finds(options):
    chain, X, Y = chain_data()
    best = mm.train(chain, X, Y, 0.3, solver="n-slack", tol=1e-8).certificate
    solution = mm.train(chain, X, Y, 0.3, solver="bcfw", tol=1e-3, solver_options=options, random_state=0)
    assert solution.certificate.converged
    assert solution.certificate.exact
    for record in solution.history:
        assert record["dual"] <= best.primal
        assert record["primal"] >= best.dual
    again = mm.train(chain, X, Y, 0.3, solver="bcfw", tol=1e-3, solver_options=options, random_state=0)
    assert np.array_equal(again.w, solution.w)


def test_memory_is_bounded_by_the_parts_of_the_examples():
    chain, X, Y = chain_data()
    n_parts = sum(3 * len(y) for y in Y) + 9 * len(Y)  # (row, label) and transitions
    history = mm.train(chain, X, Y, 3.0, solver="bcfw", tol=3e-3, random_state=0).history
    entries = [record["entries"] for record in history]
    assert len(history) > 100
    assert entries[-1] <= 2 * n_parts, "the point and the sum of its steps"
    assert entries[-1] == max(entries)


def test_oracle_calls_count_examples_with_weight_only():
    chain, X, Y = chain_data()
    s = np.ones(len(Y))
    s[:10] = 0.0
    with pytest.warns(UserWarning, match="max_iter=1 was reached"):
        solution = mm.train(chain, X, Y, 0.3, solver="bcfw", max_iter=1, sample_weight=s)
    assert solution.history[-1]["oracle_calls"] == 20 + 20  # the visits, and one pass for the primal


@pytest.mark.parametrize("factor", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("options", [({}, {}), ({"pairwise": True}, {}), ({}, {"pairwise": True})], ids=str)
def test_a_later_run_begins_at_the_scaled_point(options, factor):
    chain, X, Y = chain_data()
    first, second = options
    settings = {"solver": "bcfw", "tol": 1e-3, "random_state": 0, "keep_planes": True}
    cold = mm.train(chain, X, Y, 0.3 * factor, solver_options=second, **settings)
    start = mm.train(chain, X, Y, 0.3, solver_options=first, **settings)
    warm = mm.train(chain, X, Y, 0.3 * factor, planes=start.planes, solver_options=second, **settings)
    best = mm.train(chain, X, Y, 0.3 * factor, solver="n-slack", tol=1e-8).certificate
    assert warm.certificate.converged
    assert all(record["dual"] <= best.primal and record["primal"] >= best.dual for record in warm.history)
    assert warm.history[0]["dual"] > cold.history[0]["dual"]
    again = mm.train(chain, X, Y, 0.3 * factor, planes=start.planes, solver_options=second, **settings)
    assert np.array_equal(again.w, warm.w), "a start is not moved by the run that uses it"


def test_an_oracle_that_forgets_what_it_found_is_noticed():
    class Forgetful(Classes):
        calls = 0

        def loss_augmented_argmax(self, x, y_true, w):
            Forgetful.calls += 1
            return super().loss_augmented_argmax(x, y_true, w) if Forgetful.calls <= 40 else y_true

    X, Y = data()
    with pytest.warns(ConvergenceWarning), pytest.warns(InexactOracleWarning):
        solution = mm.train(Forgetful(), X, Y, 1.0, solver="bcfw", max_iter=200, tol=1e-6)
    assert not solution.certificate.exact
    assert solution.certificate.primal >= solution.certificate.dual


def test_the_primal_is_evaluated_in_a_tenth_of_the_passes():
    chain, X, Y = chain_data()
    calls = [0]

    def count(record):
        calls.append(record["oracle_calls"])

    mm.train(chain, X, Y, 3.0, solver="bcfw", tol=1e-3, random_state=0, callback=count)
    evaluated = np.flatnonzero(np.diff(calls) > len(Y)) + 1
    assert evaluated[:10].tolist() == list(range(1, 11))
    for last, this in itertools.pairwise(evaluated):
        assert this - last == int(np.ceil(bcfw._PRIMAL_SHARE * this))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: _core.FrankWolfe(s.problem.space, np.ones(s.n + 1), s.J), "budgets has"),
        (lambda s: _core.FrankWolfe(s.problem.space, -s.budgets, s.J), "finite numbers ≥ 0"),
        (lambda s: _core.FrankWolfe(s.problem.space, s.budgets, np.array([s.N])), "non-negative weight"),
        (lambda s: _core.FrankWolfe(s.problem.space, s.budgets, s.J, max_planes=-1), "must not be negative"),
        (lambda s: s.visit([s.n]), "example 6 at place 0 is out of range"),
        (lambda s: s.visit([0], batch_size=0), "batch_size must be at least 1"),
        (lambda s: s.core.draw(np.array([1.0])), r"lie in \[0, 1\)"),
        (lambda s: s.core.weights(np.empty(s.N - 1)), "weights has"),
        (lambda s: s.core.average(np.empty(s.N + 1)), "weights has"),
        (lambda s: s.core.worth(s.problem.all_ids, np.empty(1)), "weights has"),
        (lambda s: s.core.worth(np.array([-1]), np.empty(s.N)), "example -1"),
        (lambda s: s.core.start_from(s.core, np.nan), "factor must be finite"),
        (lambda s: s.core.start_from(Setting("binary").core, 1.0), "has more examples than this one"),
    ],
)
def test_wrong_calls_of_the_core_are_errors(call, message):
    with pytest.raises(ValueError, match=message):
        call(Setting("chain"))
