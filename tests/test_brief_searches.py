"""Searches of training that begin with few passes of TRW-S and become longer."""

import warnings

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.problems import graph as graph_problem
from maxmargin.problems.base import InexactOracleWarning

N_LABELS = 3


def images(seed, scale=0.8, size=10, n=3):
    """Noisy grids of three labels."""
    rng = np.random.default_rng(seed)
    truth = np.zeros((size, size), int)
    truth[2:7, 1:5], truth[5:, 4:] = 1, 2
    noisy = [np.eye(N_LABELS)[truth] + rng.normal(scale=scale, size=(size, size, N_LABELS)) for _ in range(n)]
    return [mm.Graph.grid(image) for image in noisy], [truth.ravel()] * n


@pytest.fixture
def passes(monkeypatch):
    """How many passes searches might make, as it changes."""
    given = []
    limit = graph_problem.GraphProblem._limit_passes

    def note(self, most):
        limit(self, most)
        given.append(self._passes)

    monkeypatch.setattr(graph_problem.GraphProblem, "_limit_passes", note)
    return given


def trained(first, monkeypatch, seed, **parameters):
    monkeypatch.setattr(graph_problem, "_FIRST_PASSES", first)
    X, y = images(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return mm.GraphSVM(C=0.05, nonnegative="edges", **parameters).fit(X, y).certificate_


@pytest.mark.parametrize("solver", ["block-dual", "one-slack", "n-slack", "sdm", "bcfw"])
def test_bounds_are_those_of_long_searches(solver, monkeypatch):
    for seed in range(3):
        brief = trained(1, monkeypatch, seed, solver=solver, tol=0.05)
        long = trained(1000, monkeypatch, seed, solver=solver, tol=0.05)
        assert brief.dual <= long.primal
        assert long.dual <= brief.primal
        assert brief.converged or brief.relative_gap < 2.0 * long.relative_gap


def test_searches_become_longer_as_the_gap_closes(passes):
    X, y = images(0)
    with pytest.warns(InexactOracleWarning):
        mm.GraphSVM(C=0.05, nonnegative="edges", tol=0.005).fit(X, y)
    assert passes[0] == 10
    assert passes[1] == 15
    assert passes[-1] == 300
    assert passes == sorted(passes)


def test_what_closes_in_full_is_exact_and_says_nothing(passes, monkeypatch):
    monkeypatch.setattr(graph_problem, "_FIRST_PASSES", 1)
    monkeypatch.setattr(graph_problem, "_OPEN_SHARE", np.inf)
    X, y = images(0, scale=0.5)
    svm = mm.GraphSVM(C=0.01, nonnegative="edges", tol=0.1).fit(X, y)
    assert passes[0] == 1
    assert passes[-1] == 300
    assert svm.certificate_.exact
    assert svm.certificate_.converged
    # The pass that closed what was open is counted.
    assert svm.history_[-1]["searches"] == {"trws": svm.certificate_.oracle_calls}
    assert svm.history_[-1]["oracle_calls"] == svm.certificate_.oracle_calls


def test_training_that_ends_with_brief_searches_says_what_they_left_open(monkeypatch):
    monkeypatch.setattr(graph_problem, "_FIRST_PASSES", 1)
    X, y = images(0)
    with pytest.warns(InexactOracleWarning, match="may have missed"), pytest.warns(match="max_iter=4"):
        svm = mm.GraphSVM(C=0.05, nonnegative="edges", max_iter=4).fit(X, y)
    assert not svm.certificate_.exact


@pytest.mark.parametrize(
    "parameters", [{"solver": "perceptron"}, {"solver": "one-slack", "solver_options": {"epsilon": 0.5}}]
)
def test_solvers_that_do_not_look_at_the_gap_search_in_full(parameters, passes):
    X, y = images(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.GraphSVM(C=1.0 if parameters["solver"] == "perceptron" else 0.05, **parameters).fit(X, y)
    assert set(passes) <= {300}


def test_few_passes_that_are_asked_for_stay_few(passes):
    X, y = images(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.GraphSVM(C=0.05, nonnegative="edges", max_passes=4, max_iter=30).fit(X, y)
    assert set(passes) == {4}
