"""What training returns that is cut short far from the optimum: no more than w = 0 is worth, and something to predict with."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.problems.kernel import KernelProblem

pytestmark = pytest.mark.core

SOLVERS = ("block-dual", "one-slack", "n-slack", "line-search", "sdm", "bcfw")


def sequences(has_noise):
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 8)) for _ in range(60)]
    of_features = rng.normal(size=(8, 4))
    Y = [rng.integers(4, size=6) if has_noise else (x @ of_features).argmax(axis=1) for x in X]
    return X, Y


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [1, 2, 5])
@pytest.mark.parametrize("has_noise", [False, True])
def test_it_is_no_worse_than_no_weights(has_noise, max_iter, solver):
    X, Y = sequences(has_noise)
    model = mm.models.Chain(4)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        solution = mm.train(model, X, Y, 10.0, solver=solver, max_iter=max_iter, tol=1e-9)
    assert solution.certificate.dual <= solution.certificate.primal <= 10.0 * 6 * 60 * (1 + 1e-12)
    assert solution.history[-1]["primal"] == solution.certificate.primal
    problem = model.bind(X, Y)
    weights = problem.zero_weights()
    weights.become(solution.w)
    assert solution.certificate.primal == pytest.approx(problem.primal(weights, 10.0, squared=False))


@pytest.mark.parametrize("solver", SOLVERS)
def test_it_predicts_more_than_no_weights(solver):
    X, Y = sequences(has_noise=False)
    # One-slack's first point is w = 0, and the next ones are worth less.
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        svm = mm.ChainSVM(10.0, solver=solver, max_iter=4, tol=1e-9).fit(X, Y)
    assert svm.score(X, Y) > 0.5


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.01}])
def test_the_first_planes_of_n_slack_are_worth_something(options):
    X, Y = sequences(has_noise=False)
    with pytest.warns(ConvergenceWarning, match="max_iter=1 "):
        solution = mm.train(mm.models.Chain(4), X, Y, 0.1, solver="n-slack", max_iter=1, solver_options=options)
    assert solution.certificate.primal < 0.9 * 0.1 * 6 * 60
    (record,) = solution.history
    # A pass at w = 0, and one at the solution of the QP over its planes, which joined as those of the second pass did.
    assert record["oracle_calls"] == 2 * 60
    assert record["qps"] == 1
    assert record["planes"] == record["planes_added"] > 60


def test_going_on_does_not_lose_what_there_was():
    X, Y = sequences(has_noise=True)
    svm = mm.ChainSVM(10.0, solver="one-slack", warm_start=True)
    for max_iter in (3, 1):
        with pytest.warns(ConvergenceWarning, match="max_iter"):
            svm.set_params(max_iter=max_iter).fit(X, Y)
    assert svm.certificate_.primal <= 10.0 * 6 * 60


@pytest.mark.parametrize("solver", ["block-dual", "sdm"])
def test_what_is_close_enough_at_the_end_has_converged(solver):
    """Solvers evaluate their primal seldom: where max_iter ends them, only the last evaluation may show how close they are."""
    X, Y = sequences(has_noise=True)
    has_converged = []
    for max_iter in range(1, 25):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = mm.train(mm.models.Chain(4), X, Y, solver=solver, max_iter=max_iter, tol=0.04).certificate
        assert found.converged == (found.relative_gap <= 0.04)
        assert (found.message == "the stopping rule was met") == found.converged
        has_converged.append(found.converged)
    assert has_converged == sorted(has_converged)
    assert 0 < sum(has_converged) < 24


def test_ctrl_c_while_precision_is_checked_ends_training(monkeypatch):
    def interrupted(self, weights):
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelProblem, "score_error", interrupted)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    with pytest.warns(match="interrupted"):
        svm = mm.BinarySVM(kernel="rbf").fit(X, X[:, 0] > 0)
    assert not svm.certificate_.converged
    assert not svm.certificate_.exact
    assert svm.score(X, X[:, 0] > 0) > 0.9
