"""Slack rescaling of graphs by enumeration, against an independent QP over all labellings."""

import numpy as np
import pytest
import reference
from graph_examples import EDGES, labelled, with_candidates

import maxmargin as mm
from maxmargin.solvers import SOLVERS

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

# Solvers that solve their QP or blocks exactly, and the others, with the tolerance each can reach.
PRECISE = {"one-slack", "n-slack", "sdm", "dcd", "dcd-light", "cpd", "block-dual"}
PAIRS = [
    (name, loss)
    for name, solver in SOLVERS.items()
    for loss in sorted(solver.losses)
    if "slack" in solver.rescalings and "kernel" not in solver.needs
]


def flat(native, w):
    return np.concatenate([block.ravel() for block in native.blocks(w).values()])


def check_optimum(model, solver, loss="hinge", rel=1e-6, bounded=None, **parameters):
    planes = reference.planes(model, "slack")
    best = reference.solve(planes, 1.0, None, loss, nonnegative=bounded)
    native = model.native(**parameters)
    solution = mm.train(
        native,
        model.graphs,
        model.labels,
        1.0,
        solver=solver,
        loss=loss,
        rescaling="slack",
        tol=0.5 * rel,
        max_iter=10**6,
    )
    assert solution.certificate.exact
    assert solution.certificate.primal == pytest.approx(best.objective, rel=rel)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    w = flat(native, solution.w)
    assert reference.primal(w, planes, 1.0, None, loss) == pytest.approx(solution.certificate.primal, rel=1e-9)
    return native, solution


def test_the_solvers_are_those_of_the_table():
    assert {name for name, _ in PAIRS} == PRECISE | {"line-search", "bcfw"}


@pytest.mark.parametrize(("solver", "loss"), PAIRS)
@pytest.mark.parametrize("inference", ["auto", "enumeration"])
def test_solvers_reach_the_reference(inference, solver, loss):
    model = labelled(1, 2, "full", weighted=True, with_cost=True)
    check_optimum(model, solver, loss, 1e-6 if solver in PRECISE else 2e-3, inference=inference)


@pytest.mark.parametrize("edges", EDGES)
def test_every_kind_of_edges(edges):
    for seed in range(2):
        check_optimum(labelled(seed, 3, edges, weighted=seed == 1, n_types=1 + seed), "block-dual")


def test_candidates():
    for seed in range(2):
        check_optimum(with_candidates(seed), "one-slack")


def test_weights_of_edges_stay_nonnegative():
    model = labelled(0, 2, "potts")
    J = np.arange(6, model.n_weights)
    native, solution = check_optimum(model, "one-slack", bounded=J, nonnegative={"edge_coef": True})
    assert np.all(native.blocks(solution.w)["edge_coef"] >= 0.0)


def test_searches_are_those_of_enumeration():
    rng = np.random.default_rng(0)
    for model in (labelled(2, 3, "full", weighted=True, with_cost=True, n=10), with_candidates(4, n=10)):
        native = model.native()
        problem = native.bind(model.graphs, model.labels, rescaling="slack")
        for scale in (0.0, 0.1, 1.0, 10.0):
            w = scale * rng.normal(size=native.n_weights)
            weights = problem.zero_weights()
            weights.become(w)
            expected = reference.slacks(flat(native, w), reference.planes(model, "slack"))
            np.testing.assert_allclose(problem.slacks(weights), expected, atol=1e-9)


def test_the_estimator_and_any_number_of_threads():
    model = labelled(3, 2, "potts", n=20, weighted=True)
    svms = [mm.GraphSVM(rescaling="slack", n_jobs=jobs, tol=1e-6).fit(model.graphs, model.labels) for jobs in (1, 2)]
    margin = mm.GraphSVM(tol=1e-6).fit(model.graphs, model.labels)
    assert np.array_equal(svms[0].coef_, svms[1].coef_)
    assert svms[0].certificate_.exact
    assert not np.allclose(svms[0].coef_, margin.coef_, rtol=1e-2)


def test_large_graphs_are_refused_by_name():
    small, big = (mm.Graph.grid(np.zeros((side, side, 1))) for side in (4, 5))
    y = [np.arange(16) % 2, np.arange(25) % 2]
    for inference in ("auto", "enumeration"):
        svm = mm.GraphSVM(rescaling="slack", inference=inference)
        with pytest.raises(ValueError, match=r"graph 1 has too many: at most 33554432.*24 nodes of two labels"):
            svm.fit([small, big], y)
    for inference in ("forest", "cut", "trws", "expansion"):
        with pytest.raises(ValueError, match="graphs: inference 'auto' or 'enumeration'"):
            mm.GraphSVM(rescaling="slack", inference=inference).fit([small], y[:1])
        with pytest.raises(ValueError, match="inference must be 'auto' or 'enumeration', found"):
            mm.models.Pairwise(2, inference=inference).bind([small], y[:1], rescaling="slack")
