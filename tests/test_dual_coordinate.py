"""The dual coordinate solvers step by step, against plain Python written from the papers' formulas.

Seen to fail with its formula broken in the core: the pair step without C, UpdateWeight and what joins with 1/C for 1/2C, the dual
with 1/2C for 1/4C.
"""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest
from block_rules import watched_rules
from tagging_problem import column, tagging_problem, train

import maxmargin as mm
from maxmargin import _core
from maxmargin.solvers import SOLVERS, sdm

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

N_EXAMPLES, N_WEIGHTS, N_OUTPUTS = 6, 4, 2
C = 0.3
COORDINATES = ["dcd", "dcd-light", "cpd"]
NOTHING = np.zeros(0, np.int64)


class Examples:
    """Random planes (Δ, ψ) of each example, two beside the truth's: the working sets and the formulas see the same ones."""

    def __init__(self, seed, squared):
        rng = np.random.default_rng(seed)
        self.loss = rng.uniform(0.5, 2.0, size=(N_EXAMPLES, N_OUTPUTS))
        self.psi = rng.normal(size=(N_EXAMPLES, N_OUTPUTS, N_WEIGHTS))
        space = _core.VectorSpace(N_EXAMPLES, N_WEIGHTS, "margin")
        self.sets = _core.WorkingSets(space, np.full(N_EXAMPLES, C), squared, NOTHING)
        self.core_w = np.zeros(N_WEIGHTS)
        self.rng = rng

    def most_violated(self, i, w):
        """Return the best output, or None for the truth."""
        values = self.loss[i] - self.psi[i] @ w
        return int(np.argmax(values)) if values.max() > 0.0 else None

    def visit(self, order, rule):
        """Let the core visit the examples with an oracle that enumerates."""

        def search(ids, scale):
            batch = _core.PlaneBatch()
            for i in ids.tolist():
                y = self.most_violated(i, self.core_w)
                if y is not None:
                    batch.add_vector(i, self.loss[i, y], np.arange(N_WEIGHTS, dtype=np.int32), self.psi[i, y])
            return batch

        return self.sets.visit(_core.CallbackOracle(search), order, 1, rule, self.core_w)


# ------------------------------------------------------------------------------------------------------------ sdm


class PairSteps:
    """Balamurugan et al. 2011, Algorithms 2 and 3: α_i in the simplex, w = C Σ α ψ. The truth is output −1: Δ = 0, ψ = 0."""

    def __init__(self, examples):
        self.examples = examples
        self.w = np.zeros(N_WEIGHTS)
        self.alpha = [{-1: 1.0} for _ in range(N_EXAMPLES)]

    def psi(self, i, y):
        return np.zeros(N_WEIGHTS) if y == -1 else self.examples.psi[i, y]

    def F(self, i, y):
        return 0.0 if y == -1 else self.examples.loss[i, y] - self.w @ self.examples.psi[i, y]

    def solve(self, i, tau_inner):
        alpha = self.alpha[i]
        # The truth is always a choice, with or without mass.
        alpha.setdefault(-1, 0.0)
        while True:
            p = max(alpha, key=lambda y: self.F(i, y))
            q = min((y for y in alpha if alpha[y] > 0.0), key=lambda y: self.F(i, y))
            if self.F(i, p) - self.F(i, q) <= tau_inner:
                break
            difference = self.psi(i, p) - self.psi(i, q)
            step = np.clip((self.F(i, p) - self.F(i, q)) / (C * difference @ difference), -alpha[p], alpha[q])
            alpha[p] += step
            alpha[q] -= step
            self.w = self.w + C * step * difference
        self.alpha[i] = {y: a for y, a in alpha.items() if a > 0.0}

    def type_one(self, order, tau, tau_inner):
        for i in order:
            y = self.examples.most_violated(i, self.w)
            y = -1 if y is None else y
            if self.F(i, y) - min(self.F(i, z) for z in self.alpha[i]) > tau:
                self.alpha[i].setdefault(y, 0.0)
                self.solve(i, tau_inner)

    def type_two(self, order, tau_inner):
        for i in order:
            self.solve(i, tau_inner)

    def dual(self):
        linear = sum(
            a * self.examples.loss[i, y] for i in range(N_EXAMPLES) for y, a in self.alpha[i].items() if y >= 0
        )
        return C * linear - 0.5 * self.w @ self.w

    def n_planes(self):
        return sum(y >= 0 for alpha in self.alpha for y in alpha)


@pytest.mark.parametrize("seed", range(5))
def test_sdm_makes_the_steps_of_the_paper(seed):
    examples = Examples(seed, squared=False)
    paper, tau, tau_inner = PairSteps(examples), 0.25, 0.15
    for _ in range(6):
        order = examples.rng.permutation(N_EXAMPLES)
        rule = _core.Rule("pairs", insert_above=tau, solve_above=tau, solve_to=tau_inner, drops_empty=True)
        examples.visit(order, rule)
        paper.type_one(order, tau, tau_inner)
        assert examples.core_w == pytest.approx(paper.w, abs=1e-9)
        order = examples.rng.permutation(N_EXAMPLES)
        rule = _core.Rule("pairs", solve_above=tau_inner, solve_to=tau_inner, drops_empty=True)
        examples.sets.sweep(order, rule, examples.core_w)
        paper.type_two(order, tau_inner)
        assert examples.core_w == pytest.approx(paper.w, abs=1e-9)
        assert examples.sets.linear_part() - 0.5 * paper.w @ paper.w == pytest.approx(paper.dual(), abs=1e-9)
        # Planes without mass have left.
        assert examples.sets.n_planes == paper.n_planes() == examples.sets.n_active
        tau, tau_inner = 0.5 * tau, 0.5 * tau_inner


@pytest.mark.parametrize("options", [{}, {"kappa1": 3, "kappa2": 8}, {"kappa1": 0, "kappa2": 1}], ids=str)
@pytest.mark.parametrize("epsilon", [None, 0.005, 0.05])
def test_sdm_alternates_its_loops_as_the_paper_says(options, epsilon):
    history = train("sdm", tol=1e-4, solver_options={"epsilon": epsilon, **options}).history
    # Under tol rows of type-II loops may be longer than the paper's.
    kappa1, kappa2 = options.get("kappa1", 10), options.get("kappa2", 40 if epsilon is None else 5)
    assert len(history) > kappa1 + 2
    n_loops = n_early = 0
    for record, following in itertools.pairwise(history):
        made, violations = following["type_two_loops"], following["type_two_violation"]
        if record["blocks_moved"] > 0 and n_loops >= kappa1:
            is_round = (n_loops + made - kappa1) % kappa2 == 0
            first, last = violations
            assert made > 0
            assert is_round or last < 0.5 * first or last <= following["tau"]
            n_early += not is_round
            assert made <= kappa2 - (n_loops - kappa1) % kappa2
        else:
            assert (made, violations) == (0, None)
        n_loops += 1 + made
    assert any(record["type_two_loops"] > 0 for record in history)
    # Coarse tolerances are halved before κ2 loops have gone by.
    assert n_early > 0 or epsilon != 0.05 or kappa2 < 8


@pytest.mark.parametrize(
    ("met", "made"),
    [
        ([8.0, 4.0, 3.9, 3.8, 3.7], 4),  # 4 is not below half of 8; 3.9 is, and the loop after it visits all blocks
        ([8.0, 7.0, 1.0, 0.9, 0.8], 4),
        ([1.0, 0.9], 1),  # τ at the first loop, which visits all
        ([8.0, 3.0, 7.0, 3.0, 3.0, 2.0], 5),  # what the loop over all blocks meets is what counts
        ([8.0] * 9, 6),  # κ2 loops have gone by
    ],
)
def test_loops_over_the_sets_end_at_half_of_what_they_met_first(met, made):
    met = iter(met)

    class Sets:
        def sweep(self, rule, *, precise):
            return SimpleNamespace(violation=next(met))

    solver = SOLVERS["sdm"]()
    assert len(solver._type_two(SimpleNamespace(is_over=False), Sets(), tau=1.0, tau_inner=0.5, most=6)) == made


def rows_and_relaxations(monkeypatch, **settings):
    """Return how many type-II loops came in each row, and the over-relaxation of the type-I loop that followed it."""
    rules, last = watched_rules(monkeypatch, "relaxation"), []
    solution = train("sdm", C=30.0, tol=1e-3, callback=lambda record: last.append(rules[-1]), **settings)
    return list(zip(column(solution, "type_two_loops"), last, strict=True))


def test_under_tol_blocks_are_over_relaxed_while_loops_come_in_long_rows(monkeypatch):
    found = rows_and_relaxations(monkeypatch)
    assert {n > 10 for n, _ in found[11:]} == {True, False}
    assert all(factor == (1.5 if n > 10 else 1.0) for n, factor in found)


@pytest.mark.parametrize("options", [{"epsilon": 0.001}, {"relaxation": 1.0}])
def test_the_published_steps_are_not_over_relaxed(monkeypatch, options):
    assert {factor for _, factor in rows_and_relaxations(monkeypatch, solver_options=options)} == {1.0}


def test_epsilon_of_sdm_fixes_tau_and_ends_where_a_loop_changes_nothing():
    tau = 0.05
    solution = train("sdm", solver_options={"epsilon": tau})
    assert solution.certificate.converged
    assert set(column(solution, "tau")) == {tau}
    moved = column(solution, "blocks_moved")
    assert moved[-1] == 0
    assert 0 not in moved[:-1]
    # No block is further from its optimum than C τ.
    assert 0.0 < solution.certificate.gap <= 0.05 * 120 * tau * (1 + 1e-9)


def test_tol_halves_tau_from_the_published_one():
    taus = np.array(column(train("sdm", tol=1e-6), "tau"))
    assert taus[0] == 0.25
    assert set(taus[1:] / taus[:-1]) == {1.0, 0.5}


@pytest.mark.parametrize("options", [{"tau": 0.01}, {"tau": 8.0, "tau_inner": 8.0, "kappa2": 40}])
def test_blocks_are_never_solved_to_less_than_what_takes_them_up(options):
    usual = train("sdm", tol=1e-4)
    solution = train("sdm", tol=1e-4, solver_options=options)
    assert solution.certificate.converged
    assert len(solution.history) <= 3 * len(usual.history)
    assert solution.certificate.dual == pytest.approx(usual.certificate.dual, rel=1e-3)


def test_loops_that_move_nothing_are_no_small_change_of_the_dual():
    solution = train("sdm", tol=1e-6, solver_options={"dual_change": 1e-3, "tau": 1e3})
    assert column(solution, "blocks_moved")[0] == 0
    assert solution.certificate.dual > 0.0
    assert column(solution, "dual")[-1] - column(solution, "dual")[-2] <= 1e-3 * solution.certificate.dual


def test_leaving_out_blocks_that_do_not_move_costs_few_loops_more(monkeypatch):
    options = {"kappa1": 1, "kappa2": 40}
    usual = train("sdm", tol=1e-5, solver_options=options)
    monkeypatch.setattr(sdm, "_WHOLE_EVERY", 1)
    whole = train("sdm", tol=1e-5, solver_options=options)
    assert len(usual.history) <= 2 * len(whole.history)
    assert usual.certificate.dual == pytest.approx(whole.certificate.dual, rel=1e-4)


def test_a_small_change_of_the_dual_can_end_sdm():
    short, long = (train("sdm", tol=1e-6, solver_options={"dual_change": change}) for change in (1e-3, None))
    assert short.certificate.converged
    assert len(short.history) < len(long.history)
    duals = column(short, "dual")
    assert duals[-1] - duals[-2] <= 1e-3 * duals[-1]
    assert all(b - a > 1e-3 * b for a, b in itertools.pairwise(duals[:-1]))


def test_the_dual_of_another_C_does_not_end_sdm():
    X, Y = tagging_problem()
    settings = {"solver": "sdm", "tol": 1e-6, "solver_options": {"dual_change": 1e-2}}
    first, second = mm.path(mm.models.Chain(4), X, Y, [0.1, 0.1001], **settings)
    assert first.certificate.converged
    assert len(second.history) > 1


def test_nothing_is_said_of_a_primal_that_was_not_evaluated(capsys):
    with pytest.warns(match="max_iter=7 was reached"):
        solution = train("sdm", tol=1e-9, max_iter=7, solver_options={"evaluate_every": 5}, verbose=2)
    before = solution.history[:4]
    assert all(record["primal"] is record["gap"] is record["relative_gap"] is None for record in before)
    assert all(record["dual"] > 0.0 for record in before)
    last = solution.history[-1]
    assert last["relative_gap"] == pytest.approx((last["primal"] - last["dual"]) / last["primal"])
    shown = capsys.readouterr().out
    assert "inf" not in shown
    assert "nan" not in shown
    assert "relative gap" in shown


# ---------------------------------------------------------------------------------------------------- dcd and kin


class UpdateWeight:
    """Chang and Yih 2013, Algorithms 1 and 2. Of two outputs the newest comes first, which leaves no order to chance."""

    def __init__(self, examples):
        self.examples = examples
        self.w = np.zeros(N_WEIGHTS)
        self.alpha = [{} for _ in range(N_EXAMPLES)]

    def violation(self, i, y):
        plane = self.examples.loss[i, y] - self.w @ self.examples.psi[i, y]
        return plane - sum(self.alpha[i].values()) / (2 * C)

    def update(self, i):
        alpha = self.alpha[i]
        for y in reversed(list(alpha)):
            psi = self.examples.psi[i, y]
            after = max(alpha[y] + self.violation(i, y) / (psi @ psi + 1 / (2 * C)), 0.0)
            self.w = self.w + (after - alpha[y]) * psi
            alpha[y] = after
        self.alpha[i] = {y: a for y, a in alpha.items() if a > 0.0}

    def epoch(self, order, delta):
        for i in order:
            y = self.examples.most_violated(i, self.w)
            if y is not None and y not in self.alpha[i] and self.violation(i, y) >= delta:
                self.alpha[i][y] = 0.0
            self.update(i)

    def dual(self):
        total = -0.5 * self.w @ self.w
        for i, alpha in enumerate(self.alpha):
            total += sum(a * self.examples.loss[i, y] for y, a in alpha.items()) - sum(alpha.values()) ** 2 / (4 * C)
        return total


@pytest.mark.parametrize("seed", range(5))
def test_coordinate_descent_makes_the_steps_of_the_paper(seed):
    examples = Examples(seed, squared=True)
    paper, delta = UpdateWeight(examples), 0.1
    for _ in range(6):
        order = examples.rng.permutation(N_EXAMPLES)
        examples.visit(order, _core.Rule("coordinates", insert_above=delta, drops_empty=True))
        paper.epoch(order, delta)
        assert examples.core_w == pytest.approx(paper.w, abs=1e-9)
        order = examples.rng.permutation(N_EXAMPLES)
        examples.sets.sweep(order, _core.Rule("coordinates", drops_empty=True), examples.core_w)
        for i in order:
            paper.update(i)
        assert examples.core_w == pytest.approx(paper.w, abs=1e-9)
        assert examples.sets.n_planes == sum(map(len, paper.alpha)) == examples.sets.n_active


@pytest.mark.parametrize("seed", range(5))
def test_the_dual_of_the_squared_hinge_takes_off_a_quarter_of_the_square_over_C(seed):
    examples = Examples(seed, squared=True)
    paper = UpdateWeight(examples)
    for _ in range(3):
        order = examples.rng.permutation(N_EXAMPLES)
        examples.visit(order, _core.Rule("coordinates", insert_above=0.1, drops_empty=True))
        paper.epoch(order, 0.1)
    assert examples.sets.linear_part() - 0.5 * paper.w @ paper.w == pytest.approx(paper.dual(), abs=1e-9)


def test_dcd_without_inner_sweeps_is_dcd_light():
    one = train("dcd", loss="squared_hinge", tol=1e-2, solver_options={"inner_sweeps": 0})
    other = train("dcd-light", loss="squared_hinge", tol=1e-2)
    assert np.array_equal(one.w, other.w)
    assert sum(column(one, "time_sweeps")) == 0.0
    five = train("dcd", loss="squared_hinge", tol=1e-2)
    assert sum(column(five, "time_sweeps")) > 0.0
    assert five.certificate.oracle_calls < one.certificate.oracle_calls


@pytest.mark.parametrize("solver", COORDINATES)
def test_epsilon_of_coordinate_descent_fixes_delta_and_ends_where_nothing_is_violated_by_more(solver):
    solution = train(solver, loss="squared_hinge", solver_options={"epsilon": 0.1})
    assert solution.certificate.converged
    assert set(column(solution, "delta")) == {0.1}
    for record in solution.history[:-1]:
        assert record["planes_added"] > 0 or record["violation"] > 0.1
    assert solution.history[-1]["planes_added"] == 0
    assert solution.history[-1]["violation"] <= 0.1


@pytest.mark.parametrize("solver", COORDINATES)
def test_tol_halves_delta_from_where_it_begins(solver):
    deltas = np.array(column(train(solver, loss="squared_hinge", tol=1e-4, solver_options={"delta": 0.8}), "delta"))
    assert deltas[0] == 0.8
    assert set(deltas[1:] / deltas[:-1]) == {1.0, 0.5}


# -------------------------------------------------------------------------------------------------- the primal


@pytest.mark.parametrize("solver", ["sdm", "dcd", "dcd-light"])
def test_the_primal_takes_a_pass_only_where_it_may_matter(solver):
    loss = min(SOLVERS[solver].losses)
    seldom, always = (train(solver, loss=loss, tol=1e-3, solver_options={"evaluate_every": k}) for k in (None, 1))
    assert always.history[-1]["oracle_calls"] == 2 * 120 * len(always.history)
    assert seldom.history[-1]["oracle_calls"] < 1.5 * 120 * len(seldom.history)
    # Evaluating changes nothing else, and the estimate ends training at most a few loops late.
    n = min(len(seldom.history), len(always.history))
    assert column(seldom, "dual")[:n] == column(always, "dual")[:n]
    assert len(always.history) <= len(seldom.history) <= 1.2 * len(always.history)


@pytest.mark.parametrize("solver", ["sdm", "dcd", "dcd-light"])
def test_a_training_cut_short_returns_its_last_point(solver):
    loss = min(SOLVERS[solver].losses)
    with pytest.warns(match="max_iter=7 was reached"):
        # Seven is no loop after which the primal is evaluated.
        seldom = train(solver, loss=loss, tol=1e-9, max_iter=7)
    with pytest.warns(match="max_iter=7 was reached"):
        always = train(solver, loss=loss, tol=1e-9, max_iter=7, solver_options={"evaluate_every": 1})
    assert np.array_equal(seldom.w, always.w)
    assert seldom.certificate.primal == pytest.approx(always.certificate.primal, rel=1e-12)
