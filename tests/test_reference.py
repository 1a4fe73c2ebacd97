"""The reference itself: optima computed by hand, strong duality, a second solver, laws of sample weights."""

import itertools

import numpy as np
import pytest
import random_problems
import reference
import reference_models
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array

seeds = st.integers(0, 2**32 - 1)
few = settings(max_examples=30, deadline=None)
losses = pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
rescalings = pytest.mark.parametrize("rescaling", ["margin", "slack"])


def random_models(seed):
    """One random model of each kind, with every option that can be switched on chosen by the seed."""
    rng = np.random.default_rng(seed)
    weighting = rng.choice([None, "label", "token"])
    flag = [bool(b) for b in rng.integers(2, size=6)]
    return [
        random_problems.random_binary(rng, bias=0.5 if flag[0] else None, with_cost=flag[1]),
        random_problems.random_multiclass(rng, with_cost=flag[2]),
        random_problems.random_chain(rng, start=flag[3], stop=flag[4], weighting=weighting, with_forbidden=flag[5]),
    ]


# ----------------------------------------------------------------------------------- computed by hand


@pytest.mark.parametrize(
    ("loss", "C", "w", "objective"),
    [
        ("hinge", 0.5, 0.5, 0.375),  # ½w² + ½(1 − w): the slope C pulls w to C
        ("hinge", 2.0, 1.0, 0.5),  # the margin is reached before w gets to C
        ("squared_hinge", 1.0, 2 / 3, 1 / 3),  # w = 2C(1 − w)
    ],
)
def test_one_binary_example_has_the_optimum_computed_by_hand(loss, C, w, objective):
    model = reference_models.BinaryModel(np.array([[1.0]]), np.array([1]))
    result = reference.solve(reference.planes(model), C, loss=loss)
    assert result.w == pytest.approx([w], abs=1e-6)
    assert result.objective == pytest.approx(objective, rel=1e-9)
    assert result.slacks == pytest.approx([1 - w], abs=1e-6)


def test_contradicting_examples_leave_zero_weights():
    model = reference_models.BinaryModel(np.array([[1.0], [1.0]]), np.array([1, -1]))
    result = reference.solve(reference.planes(model), 0.7)
    assert result.w == pytest.approx([0.0], abs=1e-6)
    assert result.objective == pytest.approx(1.4, rel=1e-9)


def test_binary_bias_is_one_more_regularised_column():
    model = reference_models.BinaryModel(np.array([[3.0]]), np.array([-1]), bias=2.0)
    assert model.n_weights == 2
    assert model.psi(0, 1) == pytest.approx([1.5, 1.0])
    assert model.psi(0, -1) == pytest.approx([-1.5, -1.0])


def test_binary_cost_is_indexed_by_true_then_predicted():
    model = reference_models.BinaryModel(np.ones((2, 1)), np.array([-1, 1]), cost=np.array([[0.0, 2.0], [5.0, 0.0]]))
    assert [model.loss(0, -1), model.loss(0, 1)] == [0.0, 2.0]
    assert [model.loss(1, -1), model.loss(1, 1)] == [5.0, 0.0]


def test_multiclass_example_pushes_its_own_block_up_and_the_others_down_alike():
    # w = (2a, −a, −a) with a = C/2 until the margin 3a = 1 is reached.
    model = reference_models.MulticlassModel(np.array([[1.0]]), np.array([0]), 3)
    inside = reference.solve(reference.planes(model), 0.2)
    assert inside.w == pytest.approx([0.2, -0.1, -0.1], abs=1e-6)
    assert inside.objective == pytest.approx(0.17, rel=1e-9)
    outside = reference.solve(reference.planes(model), 50.0)
    assert outside.w == pytest.approx([2 / 3, -1 / 3, -1 / 3], abs=1e-6)
    assert outside.objective == pytest.approx(1 / 3, rel=1e-9)


def test_multiclass_blocks_and_cost_have_the_stated_layout():
    cost = np.array([[0.0, 1.0, 2.0], [3.0, 0.0, 4.0], [5.0, 6.0, 0.0]])
    model = reference_models.MulticlassModel(np.array([[7.0, 8.0]]), np.array([1]), 3, cost)
    assert model.psi(0, 2).tolist() == [0, 0, 0, 0, 7, 8]
    assert [model.loss(0, y) for y in model.outputs(0)] == [3.0, 0.0, 4.0]


@pytest.mark.parametrize(
    ("rescaling", "w", "objective"),
    # Truth 00: w00 − w01 ≥ 1, w00 − w10 ≥ 1, w00 − w11 ≥ 2 (margin) or 1 (slack).
    [("margin", [1, 0, 0, -1], 1.0), ("slack", [0.75, -0.25, -0.25, -0.25], 0.375)],
)
def test_chain_without_features_learns_the_transitions_computed_by_hand(rescaling, w, objective):
    model = reference_models.ChainModel([np.zeros((2, 1))], [(0, 0)], 2)
    result = reference.solve(reference.planes(model, rescaling), 100.0)
    assert model.blocks(result.w)["coef"] == pytest.approx(np.zeros((2, 1)), abs=1e-6)
    assert model.blocks(result.w)["transition"].ravel() == pytest.approx(w, abs=1e-6)
    assert result.objective == pytest.approx(objective, rel=1e-9)


def test_chain_weights_are_coef_transition_start_stop_in_this_order():
    X = [np.array([[1.0, 2.0], [10.0, 20.0], [100.0, 200.0]])]
    model = reference_models.ChainModel(X, [(0, 0, 0)], 2, start=True, stop=True)
    assert model.psi(0, (0, 1, 1)).tolist() == [1, 2, 110, 220, *[0, 1, 0, 1], *[1, 0], *[0, 1]]
    only_stop = reference_models.ChainModel(X, [(0, 0, 0)], 2, stop=True)
    assert only_stop.psi(0, (0, 1, 1)).tolist() == [1, 2, 110, 220, *[0, 1, 0, 1], *[0, 1]]


def test_chain_loss_weighs_wrong_tokens_by_true_label_or_by_position():
    X, y = [np.zeros((3, 1))], [(0, 1, 1)]
    assert reference_models.ChainModel(X, y, 2).loss(0, (1, 1, 0)) == 2.0
    assert reference_models.ChainModel(X, y, 2, label_weight=[3.0, 5.0]).loss(0, (0, 0, 0)) == 10.0
    assert reference_models.ChainModel(X, y, 2, token_weight=[np.array([1.0, 2.0, 4.0])]).loss(0, (1, 1, 0)) == 5.0


def test_forbidden_transitions_are_in_no_output():
    X, y = [np.zeros((3, 1))], [(0, 0, 1)]
    model = reference_models.ChainModel(X, y, 2, forbidden=frozenset({(1, 0)}))
    assert model.outputs(0) == [(0, 0, 0), (0, 0, 1), (0, 1, 1), (1, 1, 1)]
    with pytest.raises(ValueError, match="forbidden"):
        reference_models.ChainModel(X, y, 2, forbidden=frozenset({(0, 1)}))


def test_slack_rescaling_multiplies_the_margin_by_the_loss():
    # H = 2 (1 − w) instead of 2 − w.
    model = reference_models.BinaryModel(np.array([[1.0]]), np.array([1]), cost=2 * (1 - np.eye(2)))
    assert reference.slacks(np.array([0.25]), reference.planes(model, "margin")) == pytest.approx([1.75])
    assert reference.slacks(np.array([0.25]), reference.planes(model, "slack")) == pytest.approx([1.5])
    assert reference.solve(reference.planes(model, "margin"), 10.0).w == pytest.approx([2.0], abs=1e-6)
    assert reference.solve(reference.planes(model, "slack"), 10.0).w == pytest.approx([1.0], abs=1e-6)


def test_slack_is_never_negative_even_if_the_truth_is_not_among_the_outputs():
    planes = [[reference.Plane(1.0, np.array([1.0]))]]
    assert reference.slacks(np.array([3.0]), planes).tolist() == [0.0]


def test_primal_adds_weighted_slacks_to_half_the_squared_norm():
    model = reference_models.BinaryModel(np.array([[1.0], [2.0]]), np.array([1, -1]))
    w, planes = np.array([0.5]), reference.planes(model)  # slacks 0.5 and 2
    assert reference.slacks(w, planes).tolist() == [0.5, 2.0]
    assert reference.primal(w, planes, 10.0) == pytest.approx(0.125 + 25.0)
    assert reference.primal(w, planes, 10.0, [2.0, 1.0], "squared_hinge") == pytest.approx(0.125 + 5.0 + 40.0)


# -------------------------------------------------------------------------------- bounds on the weights


def test_nonnegative_weights_bind_where_the_data_pull_below_zero():
    model = reference_models.BinaryModel(np.array([[1.0, 1.0]]), np.array([-1]))
    planes = reference.planes(model)
    assert reference.solve(planes, 10.0).w == pytest.approx([-0.5, -0.5], abs=1e-6)
    bound = reference.solve(planes, 10.0, nonnegative=[0])
    assert bound.w == pytest.approx([0.0, -1.0], abs=1e-6)
    assert bound.objective == pytest.approx(0.5, rel=1e-9)
    both = reference.solve(planes, 10.0, nonnegative=[0, 1])
    assert both.w.tolist() == [0.0, 0.0]
    assert both.objective == pytest.approx(10.0, rel=1e-9)


@given(seed=seeds)
@few
def test_nonnegative_weights_are_nonnegative_and_cost_something_or_nothing(seed):
    for model in random_models(seed):
        planes = reference.planes(model)
        free = reference.solve(planes, 1.0)
        J = list(range(0, model.n_weights, 2))
        bound = reference.solve(planes, 1.0, nonnegative=J)
        assert np.all(bound.w[J] >= 0)
        assert bound.objective >= free.lower_bound * (1 - 1e-12)
        if np.all(free.w[J] >= 0):
            assert bound.objective == pytest.approx(free.objective, rel=1e-8)


# ------------------------------------------------------------------------------------------------ laws


@rescalings
@losses
@given(seed=seeds, log_C=st.floats(-4, 4))
@few
def test_objective_meets_its_lower_bound(rescaling, loss, seed, log_C):
    for model in random_models(seed):
        planes = reference.planes(model, rescaling)
        weight = random_problems.random_sample_weight(np.random.default_rng(seed), model.n_examples)
        result = reference.solve(planes, 10**log_C, weight, loss)
        assert result.lower_bound <= result.objective * (1 + 1e-12)
        assert result.relative_gap <= 1e-8
        assert result.objective == reference.primal(result.w, planes, 10**log_C, weight, loss)


@losses
@given(seed=seeds)
@few
def test_no_weights_nearby_are_better(loss, seed):
    rng = np.random.default_rng(seed)
    for model in random_models(seed):
        planes = reference.planes(model)
        result = reference.solve(planes, 1.0, loss=loss)
        for size in (1e-3, 1e-1, 1.0):
            w = result.w + size * rng.normal(size=model.n_weights)
            assert reference.primal(w, planes, 1.0, loss=loss) >= result.lower_bound


@losses
@given(seed=seeds)
@few
def test_slack_and_margin_rescaling_coincide_for_zero_one_loss(loss, seed):
    rng = np.random.default_rng(seed)
    for model in (random_problems.random_binary(rng), random_problems.random_multiclass(rng)):
        margin = reference.solve(reference.planes(model, "margin"), 1.0, loss=loss)
        slack = reference.solve(reference.planes(model, "slack"), 1.0, loss=loss)
        assert slack.objective == pytest.approx(margin.objective, rel=1e-9)
        assert np.linalg.norm(slack.w - margin.w) <= slack.radius + margin.radius


@rescalings
@given(seed=seeds)
@few
def test_slack_of_an_example_bounds_the_loss_of_its_prediction(rescaling, seed):
    rng = np.random.default_rng(seed)
    for model in random_models(seed):
        w = rng.normal(size=model.n_weights)
        slacks = reference.slacks(w, reference.planes(model, rescaling))
        for i in range(model.n_examples):
            prediction = max(model.outputs(i), key=lambda y, i=i: w @ model.psi(i, y))
            assert slacks[i] >= model.loss(i, prediction) - 1e-12


@losses
@given(seed=seeds)
@few
def test_sample_weight_two_is_the_example_twice(loss, seed):
    for model in random_models(seed):
        planes = reference.planes(model)
        weight = np.ones(len(planes))
        weight[0] = 2.0
        weighted = reference.solve(planes, 0.8, weight, loss)
        twice = reference.solve([planes[0], *planes], 0.8, loss=loss)
        assert weighted.objective == pytest.approx(twice.objective, rel=1e-9)


@losses
@given(seed=seeds)
@few
def test_sample_weight_zero_drops_the_example(loss, seed):
    rng = np.random.default_rng(seed)
    model = random_problems.random_multiclass(rng, n_examples=5)
    planes = reference.planes(model)
    dropped = reference.solve(planes[1:], 0.8, loss=loss)
    weighted = reference.solve(planes, 0.8, [0.0, 1.0, 1.0, 1.0, 1.0], loss)
    assert weighted.objective == pytest.approx(dropped.objective, rel=1e-9)
    assert np.linalg.norm(weighted.w - dropped.w) <= weighted.radius + dropped.radius
    assert len(weighted.slacks) == 5


def test_all_sample_weights_zero_leave_zero_weights():
    planes = reference.planes(random_problems.random_binary(np.random.default_rng(0), n_examples=3))
    result = reference.solve(planes, 1.0, np.zeros(3))
    assert result.objective == result.lower_bound == result.relative_gap == 0.0
    assert not result.w.any()


@given(seed=seeds)
@few
def test_chain_of_length_one_is_multiclass(seed):
    rng = np.random.default_rng(seed)
    model = random_problems.random_multiclass(rng)
    y = [(int(label),) for label in model.y]
    chain = reference_models.ChainModel([x[None, :] for x in model.X], y, model.n_labels)
    expected = reference.solve(reference.planes(model), 1.0)
    result = reference.solve(reference.planes(chain), 1.0)
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)
    assert np.all(np.abs(chain.blocks(result.w)["transition"]) <= result.radius)


@given(seed=seeds)
@few
def test_two_classes_are_binary_with_features_divided_by_root_two(seed):
    # Blocks (u, −u) have the norm of w = √2 u and the margin 2u·x = √2 w·x.
    rng = np.random.default_rng(seed)
    binary = random_problems.random_binary(rng)
    multiclass = reference_models.MulticlassModel(binary.X / np.sqrt(2.0), (binary.y + 1) // 2, 2)
    expected = reference.solve(reference.planes(binary), 1.0)
    result = reference.solve(reference.planes(multiclass), 1.0)
    assert result.objective == pytest.approx(expected.objective, rel=1e-9)


def test_model_from_callables_equals_the_built_in_one():
    chain = random_problems.random_chain(np.random.default_rng(3), n_examples=4, n_features=2, n_labels=3)

    def joint_feature(x, y):
        coef, transition = np.zeros((3, 2)), np.zeros((3, 3))
        np.add.at(coef, list(y), x)
        for pair in itertools.pairwise(y):
            transition[pair] += 1
        return csr_array(np.concatenate([coef.ravel(), transition.ravel()])[None, :])

    model = reference_models.CallableModel(
        chain.X,
        chain.y,
        outputs=lambda x: itertools.product(range(3), repeat=len(x)),
        joint_feature=joint_feature,
        loss=lambda y, z: sum(a != b for a, b in zip(y, z, strict=True)),
    )
    assert model.n_weights == chain.n_weights
    for own, other in zip(reference.planes(model), reference.planes(chain), strict=True):
        for plane, expected in zip(own, other, strict=True):
            assert plane.loss == expected.loss
            assert plane.psi == pytest.approx(expected.psi)


# -------------------------------------------------------------------------------------- a second solver


def sequential_least_squares(planes, C, weight, loss, nonnegative):
    """The same primal by scipy's SLSQP, written in (w, ξ) with ξ ≥ 0 as bounds."""
    n, d = len(planes), len(planes[0][0].psi)
    power = 1 if loss == "hinge" else 2
    A = np.array([np.append(plane.psi, np.eye(n)[i]) for i, own in enumerate(planes) for plane in own])
    b = np.array([plane.loss for own in planes for plane in own])
    result = minimize(
        lambda z: 0.5 * z[:d] @ z[:d] + C * weight @ z[d:] ** power,
        np.append(np.zeros(d), np.full(n, b.max())),
        jac=lambda z: np.append(z[:d], C * weight * power * z[d:] ** (power - 1)),
        bounds=[(0 if j in nonnegative else None, None) for j in range(d)] + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda z: A @ z - b, "jac": lambda z: A},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    return result.x[:d], result.fun


@rescalings
@losses
@pytest.mark.parametrize("nonnegative", [[], [0, 2]])
@pytest.mark.parametrize("seed", [1, 2])
def test_scipy_finds_the_same_optimum(rescaling, loss, nonnegative, seed):
    rng = np.random.default_rng(seed)
    for model in (
        random_problems.random_binary(rng, n_examples=4, n_features=3, bias=1.0, with_cost=True),
        random_problems.random_multiclass(rng, n_examples=4, n_features=2, n_labels=3, with_cost=True),
        random_problems.random_chain(rng, n_examples=2, n_features=1, n_labels=2, max_length=3, weighting="label"),
    ):
        planes = reference.planes(model, rescaling)
        weight = rng.uniform(0.5, 2.0, size=model.n_examples)
        result = reference.solve(planes, 0.7, weight, loss, nonnegative)
        w, objective = sequential_least_squares(planes, 0.7, weight, loss, nonnegative)
        assert result.objective == pytest.approx(objective, rel=1e-6)
        assert result.w == pytest.approx(w, abs=1e-3)


# --------------------------------------------------------------------------- random problems and errors


@given(seed=seeds)
@few
def test_random_problems_contain_their_truth_and_it_costs_nothing(seed):
    for model in random_models(seed):
        for i, own in enumerate(reference.planes(model)):
            outputs = model.outputs(i)
            truth = own[outputs.index(model.truth(i))]
            assert truth.loss == 0.0
            assert not truth.psi.any()
            assert len(set(outputs)) == len(outputs)
            assert all(plane.loss > 0 for plane in own if plane is not truth)


def test_random_problems_are_repeated_by_their_seed():
    for first, second in zip(random_models(5), random_models(5), strict=True):
        for own, other in zip(reference.planes(first), reference.planes(second), strict=True):
            for plane, expected in zip(own, other, strict=True):
                assert plane.loss == expected.loss
                assert np.array_equal(plane.psi, expected.psi)


def test_random_sample_weights_have_zeros_but_not_only():
    rng = np.random.default_rng(0)
    drawn = [random_problems.random_sample_weight(rng, 3) for _ in range(200)]
    assert all(weight.any() and np.all(weight >= 0) for weight in drawn)
    assert any(np.any(weight == 0) for weight in drawn)


def test_an_unsolved_problem_is_an_error(monkeypatch):
    planes = reference.planes(random_problems.random_binary(np.random.default_rng(0), n_examples=4))

    def give_up(constraints, *rest, **options):
        return np.zeros(constraints.psi.shape[1]), np.zeros(len(constraints.losses))

    monkeypatch.setattr(reference, "_quadratic_program", give_up)
    with pytest.raises(ArithmeticError, match="not solved"):
        reference.solve(planes, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"C": 0.0}, "positive"),
        ({"C": 1.0, "sample_weight": [1.0, -1.0]}, "negative"),
        ({"C": 1.0, "sample_weight": [1.0]}, "2 examples"),
        ({"C": 1.0, "loss": "logistic"}, "squared_hinge"),
    ],
)
def test_wrong_arguments_are_named(arguments, message):
    planes = reference.planes(random_problems.random_binary(np.random.default_rng(0), n_examples=2))
    with pytest.raises(ValueError, match=message):
        reference.solve(planes, **arguments)
