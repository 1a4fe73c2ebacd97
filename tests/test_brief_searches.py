"""Searches of training that begin with few passes of TRW-S and become longer."""

import warnings

import numpy as np
import pytest
import reference
from graph_examples import open_problem

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems import graph as graph_problem
from maxmargin.problems.base import InexactOracleWarning
from maxmargin.solvers import driver

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


SOLVERS = [("block-dual", False), ("one-slack", False), ("n-slack", False), ("sdm", False), ("bcfw", False)]
SQUARED = [("block-dual", True), ("dcd", True)]


@pytest.mark.parametrize(("solver", "squared"), SOLVERS + SQUARED)
@pytest.mark.parametrize("max_iter", [3, 10, 300])
def test_bounds_hold_and_exact_ones_are_exact(solver, squared, max_iter, monkeypatch):
    """Against all labellings of graphs that TRW-S seldom closes, whatever ends training."""
    monkeypatch.setattr(graph_problem, "_FIRST_PASSES", 2)
    model = open_problem()
    planes = reference.planes(model)
    best = reference.solve(planes, 0.3, loss="squared_hinge" if squared else "hinge")
    native = model.native(inference="trws", max_passes=60)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = mm.train(
            *(native, model.graphs, model.labels, 0.3),
            loss="squared_hinge" if squared else "hinge",
            solver=solver,
            max_iter=max_iter,
            tol=1e-3,
        )
    for record in solution.history:
        assert record["dual"] is None or record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] is None or record["primal"] >= best.lower_bound * (1 - 1e-9)
    certificate = solution.certificate
    w = np.concatenate([block.ravel() for block in native.blocks(solution.w).values()])
    primal = reference.primal(w, planes, 0.3, loss="squared_hinge" if squared else "hinge")
    assert certificate.primal >= primal * (1 - 1e-9)
    assert not certificate.exact or certificate.primal == pytest.approx(primal)
    assert certificate.exact != any(issubclass(one.category, InexactOracleWarning) for one in caught)


@pytest.mark.parametrize(("solver", "squared"), SOLVERS + SQUARED)
def test_searches_of_every_solver_become_longer(solver, squared, passes):
    X, y = images(0)
    loss = "squared_hinge" if squared else "hinge"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.GraphSVM(C=0.05, loss=loss, solver=solver, nonnegative="edges", tol=1e-3, max_iter=200).fit(X, y)
    assert passes[:3] == [10, 15, 22]


def test_searches_become_longer_as_the_gap_closes(passes):
    X, y = images(0)
    with pytest.warns(InexactOracleWarning):
        mm.GraphSVM(C=0.05, solver="block-dual", nonnegative="edges", tol=0.005).fit(X, y)
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


@pytest.mark.parametrize("ending", [KeyboardInterrupt, _core.OutOfTime])
def test_an_end_before_the_last_point_is_searched_in_full_says_what_is_open(ending, monkeypatch):
    def broken(self, task):
        task.problem.search_fully()
        raise ending

    monkeypatch.setattr(graph_problem, "_FIRST_PASSES", 1)
    monkeypatch.setattr(graph_problem, "_OPEN_SHARE", np.inf)
    monkeypatch.setattr(driver.Best, "close", broken)
    X, y = images(0, scale=0.5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        certificate = mm.GraphSVM(C=0.01, nonnegative="edges", tol=0.1).fit(X, y).certificate_
    assert not certificate.exact
    assert certificate.converged == (ending is _core.OutOfTime)
    assert sum(issubclass(one.category, InexactOracleWarning) for one in caught) == 1


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
