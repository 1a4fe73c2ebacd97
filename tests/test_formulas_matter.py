"""The four formulas that are easiest to get wrong, each with numbers worked out by hand.

Every test here was seen to fail with its formula broken in the core: cross terms left out of ψ·ψ', the factor Δ left
out of slack-rescaled planes, the budget Σα ≤ C' ignored or doubled, sample weights ignored.
"""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin import _core

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

# All ways of training with the hinge loss: without a cache cuts are summed in one pass, with one assembled from planes.
SOLVERS = {
    "one-slack, summed": ("one-slack", {"cache_size": 0}),
    "one-slack, cached": ("one-slack", {"cache_size": 3}),
    "n-slack": ("n-slack", {}),
    "block-dual": ("block-dual", {}),
    "line-search": ("line-search", {}),
    "bcfw": ("bcfw", {}),
    "sdm": ("sdm", {}),
}
every_solver = pytest.mark.parametrize("way", SOLVERS)
every_squared_solver = pytest.mark.parametrize("solver", ["n-slack", "block-dual", "dcd", "dcd-light", "cpd"])


def train(way, model, X, Y, C, **arguments):
    solver, options = SOLVERS[way]
    tol, max_iter = (1e-3, 20_000) if solver in ("line-search", "bcfw") else (1e-9, 500)
    arguments |= {"tol": tol, "max_iter": max_iter, "solver_options": options, "random_state": 0}
    return mm.train(model, X, Y, C, solver=solver, **arguments)


def accuracy(way):
    return 2e-3 if way in ("line-search", "bcfw") else 1e-8


def test_tokens_that_differ_from_the_truth_interact_across_positions():
    # Two tokens with features 1 and 2, two labels, both labels wrong: ψ = (1 + 2) at the true label, −3 at the other;
    # ‖ψ‖² = 18 of which 2·2·(1·2) = 8 are cross terms, and no transition differs in number: (0,0) became (1,1): +1, −1.
    chain = mm.models.Chain(2)
    problem = chain.bind([np.array([[1.0], [2.0]])], [np.array([0, 0])])
    both_wrong = problem.separate(problem.all_ids, problem.zero_weights(), precise=True)
    assert both_wrong.code(0).tolist() == [1, 1]
    assert problem.space.inner(both_wrong, 0, 0) == 18.0 + 2.0
    # Another output of the same example, wrong in the second token only: ψ' has 2 and −2, transitions (0,0) and (0,1).
    weights = problem.zero_weights()
    weights.exact[...] = chain.join(coef=[[3.0], [0.0]], transition=[[0.0, 20.0], [0.0, 0.0]])
    weights.touch()
    batch = _core.PlaneBatch()
    batch.extend(both_wrong)
    batch.extend(problem.separate(problem.all_ids, weights, precise=True))
    assert batch.code(1).tolist() == [0, 1]
    # (1 + 2)·2 at each of two labels: 2·(1·2 + 2·2) = 12, of which 4 cross positions; (0,0) is common: + 1.
    assert problem.space.inner(batch, 0, 1) == 12.0 + 1.0


@every_solver
def test_training_depends_on_the_cross_terms(way):
    # One sequence of four tokens with feature 3 and labels 0; transitions are forbidden except 0→0 and 1→1, so the only
    # other output is all 1: Δ = 4, ψ = (12, −12) in the features and (3, −3) in the transitions, ‖ψ‖² = 306. With C
    # large enough the optimum is w = (4 / 306) ψ. Without cross terms ‖ψ‖² would be 90: steps three times
    # too long never end.
    chain = mm.models.Chain(2, forbidden=[(0, 1), (1, 0)])
    solution = train(way, chain, [np.full((4, 1), 3.0)], [np.zeros(4, int)], 1.0)
    assert solution.certificate.primal == pytest.approx(8.0 / 306.0, rel=accuracy(way))
    assert solution.certificate.dual == pytest.approx(8.0 / 306.0, rel=accuracy(way))
    assert chain.blocks(solution.w)["coef"].ravel() == pytest.approx([48.0 / 306.0, -48.0 / 306.0], rel=0.05)


@every_solver
@pytest.mark.parametrize(("cost", "C"), [(3.0, 0.05), (3.0, 10.0), (0.5, 0.4)])
def test_the_loss_multiplies_the_slack_rescaled_plane(way, cost, C):
    # One example, x = 1: H(w) = Δ (1 − w)₊ under slack rescaling, so w = min(CΔ, 1); P = ½w² + CΔ (1 − w).
    # Under margin rescaling H(w) = (Δ − w)₊: w = min(C, Δ).
    model = mm.models.Binary(cost=[[0.0, cost], [cost, 0.0]])
    X, y = np.ones((1, 1)), [1]
    w = min(C * cost, 1.0)
    slack = train(way, model, X, y, C, rescaling="slack")
    assert slack.certificate.primal == pytest.approx(0.5 * w**2 + C * cost * (1.0 - w), rel=accuracy(way))
    assert slack.w[0] == pytest.approx(w, rel=0.05)
    w = min(C, cost)
    margin = train(way, model, X, y, C, rescaling="margin")
    assert margin.certificate.primal == pytest.approx(0.5 * w**2 + C * (cost - w), rel=accuracy(way))


# A sequence of one token, x = 1, and two labels: ψ = (1, −1), which blocks store as a plane, unlike that of a single row.
# With w = aψ, w·ψ = 2a and ½‖w‖² = a².
SEQUENCE = [np.ones((1, 1))], [np.zeros(1, int)]


@every_solver
@pytest.mark.parametrize(("cost", "C"), [(3.0, 0.05), (3.0, 10.0), (0.5, 0.4)])
def test_the_loss_multiplies_the_slack_rescaled_plane_of_a_sequence(way, cost, C):
    # a² + CΔ (1 − 2a)₊
    a = min(C * cost, 0.5)
    model = mm.models.Chain(2, cost=[[0.0, cost], [cost, 0.0]])
    solution = train(way, model, *SEQUENCE, C, rescaling="slack")
    assert solution.certificate.primal == pytest.approx(a**2 + C * cost * (1.0 - 2.0 * a), rel=accuracy(way))
    assert model.blocks(solution.w)["coef"].ravel() == pytest.approx([a, -a], rel=0.05)


@every_squared_solver
@pytest.mark.parametrize(("cost", "C"), [(3.0, 0.05), (3.0, 10.0), (0.5, 0.4)])
def test_the_loss_multiplies_the_slack_rescaled_plane_under_the_squared_hinge(solver, cost, C):
    # a² + CΔ² (1 − 2a)²
    k = C * cost**2
    a = 2.0 * k / (1.0 + 4.0 * k)
    model = mm.models.Chain(2, cost=[[0.0, cost], [cost, 0.0]])
    arguments = {"solver": solver, "loss": "squared_hinge", "rescaling": "slack", "tol": 1e-9, "max_iter": 500}
    solution = mm.train(model, *SEQUENCE, C, **arguments)
    assert solution.certificate.primal == pytest.approx(k / (1.0 + 4.0 * k), rel=1e-8)
    assert solution.certificate.dual == pytest.approx(k / (1.0 + 4.0 * k), rel=1e-8)
    assert model.blocks(solution.w)["coef"].ravel() == pytest.approx([a, -a], rel=1e-4)


@every_solver
@pytest.mark.parametrize("C", [0.1, 0.25, 0.9, 1.0, 5.0])
def test_the_dual_variables_share_a_budget_of_C(way, C):
    # Two examples, x = 1 and x = 2, both positive: planes Δ = 1 and ψ = 1, 2, so the cut of both is (2, 3).
    # P(w) = ½w² + C((1 − w)₊ + (1 − 2w)₊) has slopes −3C and −C before and after w = ½ and none beyond 1.
    w = 3.0 * C if 3.0 * C <= 0.5 else max(0.5, min(C, 1.0))
    expected = 0.5 * w**2 + C * (max(1.0 - w, 0.0) + max(1.0 - 2.0 * w, 0.0))
    solution = train(way, mm.models.Binary(), np.array([[1.0], [2.0]]), [1, 1], C)
    assert solution.certificate.primal == pytest.approx(expected, rel=accuracy(way))
    assert solution.certificate.dual == pytest.approx(expected, rel=accuracy(way))
    assert solution.w[0] == pytest.approx(w, rel=0.05)


@every_squared_solver
@pytest.mark.parametrize("C", [0.1, 0.5, 5.0])
def test_the_squared_hinge_has_no_budget_but_a_quadratic_price(solver, C):
    # One example, x = 1: ½w² + C (1 − w)²: w = 2C / (1 + 2C), P = C / (1 + 2C).
    solution = mm.train(mm.models.Binary(), np.ones((1, 1)), [1], C, solver=solver, loss="squared_hinge", tol=1e-9)
    assert solution.certificate.primal == pytest.approx(C / (1 + 2 * C), rel=1e-8)
    assert solution.certificate.dual == pytest.approx(C / (1 + 2 * C), rel=1e-8)
    assert solution.w[0] == pytest.approx(2 * C / (1 + 2 * C), rel=1e-4)


@every_solver
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_a_sample_weight_multiplies_C_for_its_example(way, rescaling):
    # x = 1 with labels + and −, weights 2 and 0.5: ½w² + C (2 (1 − w)₊ + 0.5 (1 + w)₊) with slope −1.5 C up to w = 1.
    C, X, y = 0.2, np.ones((2, 1)), [1, -1]
    w = 1.5 * C
    expected = 0.5 * w**2 + C * (2.0 * (1.0 - w) + 0.5 * (1.0 + w))
    solution = train(way, mm.models.Binary(), X, y, C, rescaling=rescaling, sample_weight=[2.0, 0.5])
    assert solution.certificate.primal == pytest.approx(expected, rel=accuracy(way))
    assert solution.certificate.dual == pytest.approx(expected, rel=accuracy(way))
    assert solution.w[0] == pytest.approx(w, rel=0.05)


@every_squared_solver
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("C", [0.2, 3.0])
def test_a_sample_weight_multiplies_C_under_the_squared_hinge(solver, rescaling, C):
    # The same data: ½w² + C (2 (1 − w)² + 0.5 (1 + w)²) has slope w (1 + 5C) − 3C. The third example counts for nothing.
    w = 3.0 * C / (1.0 + 5.0 * C)
    expected = 0.5 * w**2 + C * (2.0 * (1.0 - w) ** 2 + 0.5 * (1.0 + w) ** 2)
    arguments = {"loss": "squared_hinge", "rescaling": rescaling, "sample_weight": [2.0, 0.5, 0.0], "tol": 1e-9}
    X, y = np.ones((3, 1)), [1, -1, -1]
    solution = mm.train(mm.models.Binary(), X, y, C, solver=solver, max_iter=500, **arguments)
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-8)
    assert solution.certificate.dual == pytest.approx(expected, rel=1e-8)
    assert solution.w[0] == pytest.approx(w, rel=1e-4)


@every_solver
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_weight_two_is_two_copies_and_weight_zero_is_none(way, rescaling):
    rng = np.random.default_rng(0)
    lengths = [3, 1, 4, 2, 3]
    X = [rng.normal(size=(length, 2)) for length in lengths]
    Y = [rng.integers(3, size=length) for length in lengths]
    weighted = train(way, mm.models.Chain(3), X, Y, 0.3, rescaling=rescaling, sample_weight=[1.0, 2.0, 0.0, 1.0, 2.0])
    copies = [0, 1, 1, 3, 4, 4]
    repeated = train(way, mm.models.Chain(3), [X[i] for i in copies], [Y[i] for i in copies], 0.3, rescaling=rescaling)
    assert weighted.certificate.primal == pytest.approx(repeated.certificate.primal, rel=accuracy(way))
    assert weighted.certificate.dual == pytest.approx(repeated.certificate.dual, rel=accuracy(way))
