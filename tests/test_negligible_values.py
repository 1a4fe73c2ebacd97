"""Kernel values that are left out because they are negligible: none that counts is, and bounds know of the others."""

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import maxmargin as mm
from maxmargin import _core
from maxmargin._feature_rows import core_features
from maxmargin.kernels.product import Coefficients, NativeProduct
from maxmargin.problems.kernel_cuts import KernelCuts

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

GAMMA = 0.7


def clusters(n, *, spread=6.0, categories=0, seed=0):
    """Rows around a dozen centres, in random order; some columns may be one-hot, and far from 0."""
    rng = np.random.default_rng(seed)
    X = spread * rng.normal(size=(12, 4))[rng.integers(12, size=n)] + rng.normal(size=(n, 4))
    if not categories:
        return X
    return np.hstack([X, 3.0 * np.eye(categories)[rng.integers(categories, size=n)]])


def some_coefficients(rng, n, n_chosen, n_labels):
    matrix = np.zeros((n, n_labels))
    matrix[rng.permutation(n)[:n_chosen]] = rng.normal(size=(n_chosen, n_labels))
    entries = np.flatnonzero(matrix)
    return Coefficients.of(entries, matrix.ravel()[entries], n_labels), matrix


@pytest.mark.parametrize("is_single", [False, True])
@pytest.mark.parametrize("n_labels", [1, 4])
@pytest.mark.parametrize("categories", [0, 9])
@pytest.mark.parametrize("cache_bytes", [0.0, 1e5, 1e9])
def test_products_lose_no_more_than_they_may(is_single, n_labels, categories, cache_bytes):
    rng = np.random.default_rng(1)
    n = 1500
    X = clusters(n, spread=20.0, categories=categories)
    K = rbf_kernel(X, X, GAMMA)
    kernel = mm.Kernel("rbf", GAMMA)
    for negligible in (1e-3, 1e-12):
        product = NativeProduct(kernel, X, is_single=is_single, cache_bytes=cache_bytes, negligible=negligible)
        assert product.core.leaves_out
        n_before = 0
        for n_chosen in (n, 1100, 400, 1, 0, 1100):
            coefficients, matrix = some_coefficients(rng, n, n_chosen, n_labels)
            for n_jobs in (1, 2):
                sums = np.ones(n * n_labels)
                product.add(coefficients, n_labels, sums, n_jobs)
                errors = np.abs(sums.reshape(n, n_labels) - 1.0 - K @ matrix)
                assert np.all(errors <= negligible * np.abs(matrix).sum(axis=0) + (3e-3 if is_single else 1e-10))
            assert product.n_computed - n_before <= 0.8 * 2 * n * n_chosen + 16 * n
            n_before = product.n_computed
        if negligible == 1e-3:
            # The columns of single points show what was left out.
            unit, _ = some_coefficients(rng, n, 1, 1)
            column = np.zeros(n)
            product.add(unit, 1, column, 1)
            left_out = column == 0.0
            assert left_out.any()
            assert np.all(K[left_out, unit.points[0]] < negligible)


@pytest.mark.parametrize("is_single", [False, True])
def test_rows_all_near_each_other_stay_in_their_order(is_single):
    X = np.random.default_rng(0).normal(size=(700, 4))
    kernel = mm.Kernel("rbf", 0.01)
    coefficients = Coefficients.of(np.arange(0, 700, 3), np.ones(234), 1)
    sums, matrices = [], []
    for negligible in (0.0, 1e-12):
        product = NativeProduct(kernel, X, is_single=is_single, negligible=negligible)
        assert not product.core.leaves_out
        sums.append(np.zeros(700))
        product.add(coefficients, 1, sums[-1], 1)
        matrices.append(product.matrix(np.arange(3), 0, 700))
    assert np.array_equal(*sums)
    assert np.array_equal(*matrices)


def test_an_order_of_like_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 3))
    codes = rng.integers(5, size=1000).astype(np.int32)
    for given in (None, codes):
        order = _core.order_alike(core_features(X), given)
        assert np.array_equal(np.sort(order), np.arange(1000))
        groups = X[order][: 1000 // 16 * 16].reshape(-1, 16, 3)
        in_any_order = X[: 1000 // 16 * 16].reshape(-1, 16, 3)
        assert np.ptp(groups, axis=1).mean() < 0.7 * np.ptp(in_any_order, axis=1).mean()
    assert np.all(np.diff(codes[_core.order_alike(core_features(X), codes)]) >= 0)
    assert np.array_equal(np.sort(_core.order_alike(core_features(np.zeros((40, 2))), None)), np.arange(40))
    assert len(_core.order_alike(core_features(np.zeros((0, 2))), None)) == 0
    assert len(_core.order_alike(core_features(np.zeros((40, 0))), None)) == 40


def test_the_core_refuses_wrong_orders():
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="codes"):
        _core.order_alike(core_features(X), np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="negligible"):
        _core.KernelProduct(core_features(X), None, "rbf", 1.0, 0.0, 3, None, False, 0.0, None, None, 1.0)


def labelled(n, categories=0):
    X = clusters(n, categories=categories)
    rng = np.random.default_rng(3)
    return X, np.where(np.sin(X[:, 0]) + np.sin(X[:, 1]) + 0.3 * rng.normal(size=n) > 0, 1, -1)


def exact_primal(solution, X, y, s=None):
    expansion = solution.expansion
    slacks = np.maximum(0.0, 1.0 - y * expansion.scores(X)[:, 0])
    return 0.5 * expansion.coef[0] @ expansion.scores(expansion.basis)[:, 0] + (
        slacks.sum() if s is None else s @ slacks
    )


@pytest.mark.parametrize("categories", [0, 9])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_bounds_of_training_are_those_of_the_whole_kernel(tol, categories):
    X, y = labelled(2600, categories)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", GAMMA))
    solution = mm.train(model, X, y, C=1.0, tol=tol, solver="one-slack", solver_options={"stabilization": "auto"})
    found = solution.certificate
    assert found.converged
    assert found.relative_gap <= tol
    assert found.primal == pytest.approx(exact_primal(solution, X, y), rel=1e-2 * tol)
    reference = mm.train(model, X, y, C=1.0, tol=1e-8, solver="block-dual").certificate
    assert found.dual <= reference.primal * (1.0 + 1e-2 * tol)
    assert reference.dual <= found.primal * (1.0 + 1e-2 * tol)


def test_what_was_left_out_counts_as_an_error_of_scores():
    X, y = labelled(2600)
    problem = mm.models.Binary(kernel=mm.Kernel("rbf", GAMMA)).bind(X, y)
    problem.prepare(1.0, 1e-9)
    assert not problem.is_single
    assert 0.0 < problem.negligible < 1e-16
    weights = problem.zero_weights()
    weights.coef[:] = 2.0
    assert problem.score_error(weights) == pytest.approx(2.0 * 2600 * problem.negligible)
    problem.double()
    problem.prepare(1.0, 1e-9)
    assert problem.negligible == 0.0
    assert problem.score_error(weights) == 0.0


def test_what_was_left_out_counts_beside_what_float32_rounds_off():
    X, y = labelled(2600)
    problem = mm.models.Binary(kernel=mm.Kernel("rbf", GAMMA)).bind(X, y)
    problem.prepare(1e-3, 1e-2)
    assert problem.is_single
    weights = problem.zero_weights()
    weights.coef[:] = 2.0
    left_out, error = 2.0 * 2600 * problem.negligible, problem.score_error(weights)
    problem.negligible = 0.0
    rounded_off = problem.score_error(weights)
    assert left_out > 0.0
    assert rounded_off > 0.0
    assert error == pytest.approx(left_out + rounded_off, rel=1e-12)


def test_cuts_are_scored_again_for_a_problem_that_counts_smaller_values():
    X, y = labelled(2600)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", GAMMA))
    wide, narrow = model.bind(X, y), model.bind(X, y)
    wide.prepare(1e-3, 1e-2)
    narrow.prepare(1.0, 1e-8)
    assert wide.negligible > 100.0 * narrow.negligible
    cuts = KernelCuts(wide)
    wide.separate_into(cuts, wide.zero_weights(), precise=True)
    cuts.keep(1)
    exact = rbf_kernel(X, X, GAMMA) @ y
    errors = [np.abs(other._scores[0] - exact).max() for other in (cuts, cuts.copy_for(narrow), cuts.copy_for(wide))]
    assert errors[1] < 1e-9
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] == errors[0]


def test_tables_that_are_handed_on_and_on_are_scored_again_and_counted_until_then():
    X, y = labelled(2600)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", GAMMA))
    first = model.bind(X, y)
    first.prepare(1.0, 1e-2)
    cuts = KernelCuts(first)
    first.separate_into(cuts, first.zero_weights(), precise=True)
    cuts.keep(1)
    exact = rbf_kernel(X, X, GAMMA) @ y
    for tol in (1e-3, 1e-4, 1e-6, 1e-8, 1e-10):
        problem = model.bind(X, y)
        problem.prepare(1.0, tol)
        cuts = cuts.copy_for(problem)
        weights = problem.zero_weights()
        weights.coef[:] = y
        # What is counted covers what the table lacks, whoever made it.
        if not problem.is_single:
            assert np.abs(cuts._scores[0] - exact).max() <= problem.score_error(weights) + 1e-10
        assert max(problem.negligible, problem.left_out) <= 100.0 * problem.negligible


def test_one_row_far_from_all_others_does_not_blur_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    X[17] = 1e20
    K = NativeProduct(mm.Kernel("rbf", GAMMA), X, is_single=False).matrix(np.arange(300), 0, 300)
    np.testing.assert_allclose(K, rbf_kernel(X, X, GAMMA) * (K > 1e-200), atol=1e-12)
