"""Examples of sample weight 0 are as if they were not there: they are not searched, and change nothing."""

import warnings

import numpy as np
import pytest
import small_model

import maxmargin as mm

pytestmark = pytest.mark.core

DUAL = ["block-dual", "one-slack", "n-slack", "sdm", "bcfw", "line-search"]
SQUARED = ["block-dual", "n-slack", "dcd", "dcd-light", "cpd"]


def sequences(rng, n):
    return [rng.normal(size=(5, 4)) for _ in range(n)], [rng.integers(3, size=5) for _ in range(n)]


def graphs(rng, n):
    edges = [[0, 1], [1, 2], [2, 3], [3, 0], [0, 2]]
    return [mm.Graph(rng.normal(size=(4, 2)), edges) for _ in range(n)], [rng.integers(3, size=4) for _ in range(n)]


def classes_in_python(rng, n):
    X, Y = small_model.data(n)
    return list(X), list(Y)


def trained(make, C, solver, loss, n_idle):
    """Ten examples, and some of weight 0 among them."""
    X, Y = make(np.random.default_rng(0), 10)
    idle = make(np.random.default_rng(1), n_idle)
    X, Y = X[:4] + idle[0] + X[4:], Y[:4] + idle[1] + Y[4:]
    model = mm.models.Pairwise(3, inference="trws") if make is graphs else mm.models.Chain(3)
    weights = np.concatenate([np.ones(4), np.zeros(n_idle), np.ones(6)]) if n_idle else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mm.InexactOracleWarning)
        return mm.train(model, X, Y, C, solver=solver, loss=loss, tol=1e-4, sample_weight=weights).certificate


@pytest.mark.parametrize("make", [sequences, graphs])
@pytest.mark.parametrize(
    ("solver", "loss"), [*((name, "hinge") for name in DUAL), *((name, "squared_hinge") for name in SQUARED)]
)
def test_they_take_no_searches(make, solver, loss):
    C = 0.1
    without, idle = (trained(make, C, solver, loss, n_idle) for n_idle in (0, 50))
    assert idle.converged
    assert idle.dual <= without.primal
    assert without.dual <= idle.primal
    # Orders are drawn for all examples, so that those of the others change a little.
    assert idle.oracle_calls < 2 * without.oracle_calls
    assert idle.exact == without.exact


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("make", [classes_in_python, sequences, graphs])
def test_nearly_all_may_have_it(make, rescaling, loss):
    model = {sequences: mm.models.Chain(3), graphs: mm.models.Pairwise(3)}.get(make, small_model.Classes())
    X, Y = make(np.random.default_rng(0), 200)
    weights = np.zeros(200)
    weights[::40] = 1.0
    few = [X[i] for i in range(0, 200, 40)], [Y[i] for i in range(0, 200, 40)]
    run = {"loss": loss, "rescaling": rescaling, "solver": "block-dual", "max_iter": 300}
    alone = mm.train(model, *few, 0.5, **run).certificate
    among = mm.train(model, X, Y, 0.5, sample_weight=weights, **run).certificate
    assert among.converged
    assert among.dual <= alone.primal
    assert alone.dual <= among.primal
    assert among.oracle_calls < 3 * alone.oracle_calls + 50
    path = mm.path(model, X, Y, [0.05, 0.5], sample_weight=weights, **run)
    assert all(solution.certificate.converged for solution in path)


@pytest.mark.parametrize(
    "options", [{}, {"kernel_approximation": "low-rank", "n_components": 12}], ids=["exact", "low-rank"]
)
def test_kernels_are_chosen_without_them(options):
    """Neither the width of an RBF kernel nor a basis looks at them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    far = np.concatenate([X[:15], np.full((30, 3), 1e3), X[15:]])
    labels = np.concatenate([y[:15], np.ones(30, int), y[15:]])
    weights = np.concatenate([np.ones(15), np.zeros(30), np.ones(25)])
    alone = mm.BinarySVM(kernel="rbf", tol=1e-8, **options).fit(X, y)
    beside = mm.BinarySVM(kernel="rbf", tol=1e-8, **options).fit(far, labels, sample_weight=weights)
    np.testing.assert_allclose(beside.decision_function(X), alone.decision_function(X), atol=1e-4)


def test_kernels_of_sequences_are_chosen_without_them():
    X, Y = sequences(np.random.default_rng(0), 10)
    idle = [1e3 * x for x in X]
    alone = mm.ChainSVM(kernel="rbf", tol=1e-6).fit(X, Y)
    beside = mm.ChainSVM(kernel="rbf", tol=1e-6).fit(X + idle, Y + Y, sample_weight=[1.0] * 10 + [0.0] * 10)
    for one, other in zip(alone.decision_function(X), beside.decision_function(X), strict=True):
        np.testing.assert_allclose(other, one, atol=1e-2)
