"""Pairwise models of graphs against an independent QP over all labellings, and their searches."""

import time
import warnings

import numpy as np
import pytest
import reference
from graph_examples import EDGES, labelled, open_problem, with_candidates

import maxmargin as mm
from maxmargin.problems.base import InexactOracleWarning

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

EXACT = ["one-slack", "n-slack", "sdm", "block-dual"]


def check_optimum(model, C, solver, rel=1e-6):
    planes = reference.planes(model)
    best, native = reference.solve(planes, C), model.native()
    solution = mm.train(native, model.graphs, model.labels, C, solver=solver, tol=0.1 * rel, max_iter=100_000)
    certificate = solution.certificate
    assert certificate.exact
    assert certificate.primal == pytest.approx(best.objective, rel=rel)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    w = np.concatenate([block.ravel() for block in native.blocks(solution.w).values()])
    assert reference.primal(w, planes, C) == pytest.approx(certificate.primal, rel=1e-9)
    return native, solution


# ------------------------------------------------------------------------------------------------- training


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("edges", EDGES)
@pytest.mark.parametrize("n_labels", [2, 3])
def test_solvers_reach_the_reference(n_labels, edges, solver):
    for seed in range(2):
        model = labelled(seed, n_labels, edges, weighted=seed == 1, with_cost=seed == 1, n_types=1 + seed)
        check_optimum(model, 2.0, solver)


@pytest.mark.parametrize("solver", EXACT)
def test_candidates_reach_the_reference(solver):
    for seed in range(3):
        check_optimum(with_candidates(seed), 2.0, solver)


@pytest.mark.parametrize("loss", ["squared_hinge"])
def test_squared_hinge(loss):
    model = labelled(3, 2, "full")
    best = reference.solve(reference.planes(model), 1.0, None, loss)
    for solver in ("dcd", "block-dual", "n-slack"):
        found = mm.train(model.native(), model.graphs, model.labels, 1.0, solver=solver, loss=loss, tol=1e-7)
        assert found.certificate.primal == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        *((solver, "hinge") for solver in ("one-slack", "n-slack", "block-dual", "sdm")),
        *((solver, "squared_hinge") for solver in ("n-slack", "block-dual", "dcd", "cpd")),
    ],
)
@pytest.mark.parametrize("edges", ["potts", "associative"])
def test_weights_of_edges_stay_nonnegative(edges, solver, loss):
    for seed in range(2):
        model = labelled(seed, 2, edges)
        n_node_weights = 2 * 3
        J = np.arange(n_node_weights, model.n_weights)
        # Edge features are ≥ 0, so that every search is a cut.
        native = model.native(inference="cut", nonnegative={"edge_coef": True})
        best = reference.solve(reference.planes(model), 2.0, None, loss, nonnegative=J)
        solution = mm.train(
            native, model.graphs, model.labels, 2.0, solver=solver, loss=loss, tol=1e-7, max_iter=100_000
        )
        assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
        assert solution.certificate.dual <= best.objective * (1 + 1e-9)
        assert np.all(native.blocks(solution.w)["edge_coef"] >= 0.0)


@pytest.mark.parametrize("n", [6, 20])
@pytest.mark.parametrize("edges", ["potts", "associative"])
def test_sweeps_do_not_crawl_where_weights_stay_nonnegative(edges, n):
    """Sweeps alone take hundreds of iterations; conjugate gradients go on where a weight reaches 0."""
    model = labelled(0, 2, edges, n=n)
    native = model.native(nonnegative={"coef": True, "edge_coef": True})
    for loss in ("hinge", "squared_hinge"):
        solution = mm.train(native, model.graphs, model.labels, 2.0, solver="block-dual", loss=loss, tol=1e-7)
        assert solution.certificate.converged
        assert len(solution.history) <= 40


def test_typed_edges_have_weights_of_their_own():
    model = labelled(5, 2, "potts", n_types=3, n=8)
    native, solution = check_optimum(model, 5.0, "one-slack")
    assert native.blocks(solution.w)["edge_coef"].shape == (3, 2, 1)


def test_any_number_of_threads_makes_the_same_iterates():
    model = labelled(1, 3, "full", n=30)
    one, two = (
        mm.train(model.native(), model.graphs, model.labels, 1.0, solver="one-slack", n_jobs=jobs) for jobs in (1, 2)
    )
    assert np.array_equal(one.w, two.w)


# ---------------------------------------------------------------------------------------------- searching


def noisy_loop(seed, n=12, k=3):
    """A ring with chords whose edges dislike agreement: no forest, no cut, too many labellings to enumerate at once."""
    rng = np.random.default_rng(seed)
    edges = [(i, (i + 1) % n) for i in range(n)] + [(i, (i + 3) % n) for i in range(n)]
    return mm.Graph(rng.normal(size=(n, 2)), edges, rng.normal(size=(len(edges), 2))), rng.integers(k, size=n)


@pytest.mark.parametrize("method", ["auto", "trws", "enumeration"])
def test_predictions_are_best(method):
    model = labelled(2, 3, "full", n=12)
    native = model.native(inference=method)
    native.n_features, native.n_edge_features = 3, 2
    rng = np.random.default_rng(0)
    for _ in range(5):
        w = rng.normal(size=native.n_weights)
        flat = np.concatenate([block.ravel() for block in native.blocks(w).values()])
        for i, labels in enumerate(native.predict(model.graphs, w)):
            best = max(float(flat @ model.psi(i, y)) for y in model.outputs(i))
            assert float(flat @ model.psi(i, labels.tolist())) == pytest.approx(best)


def test_best_and_diverse_labellings_against_enumeration():
    model = labelled(4, 2, "full", n=10, weighted=True)
    native = model.native()
    native.n_features, native.n_edge_features = 3, 2
    w = np.random.default_rng(1).normal(size=native.n_weights)
    flat = np.concatenate([block.ravel() for block in native.blocks(w).values()])
    strength = 0.7
    best = native.k_best(model.graphs, w, 3)
    diverse = native.diverse(model.graphs, w, [strength, strength])
    for i, graph in enumerate(model.graphs):
        values = {y: float(flat @ model.psi(i, y)) for y in model.outputs(i)}
        expected = sorted(values.values(), reverse=True)[:3]
        labels, scores = best[i]
        assert scores == pytest.approx(expected)
        assert [values[tuple(y)] for y in labels.tolist()] == pytest.approx(scores)
        assert len({tuple(y) for y in labels.tolist()}) == len(scores)
        chosen = []
        for y, score in zip(diverse[i][0].tolist(), diverse[i][1], strict=True):

            def bought(other, chosen=tuple(chosen), graph=graph, values=values):
                return values[other] + strength * sum(
                    float(graph.node_weights @ (np.array(other) != np.array(before))) for before in chosen
                )

            assert score == pytest.approx(values[tuple(y)])
            assert bought(tuple(y)) == pytest.approx(max(map(bought, values)))
            chosen.append(y)


def trained_with_warnings(native, model, **options):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        solution = mm.train(native, model.graphs, model.labels, 1.0, tol=1e-4, **options)
    return solution, [str(warning.message) for warning in caught]


def check_open(model, solution, planes, best):
    """The optimum lies between the bounds in every record, and the primal is no less than that of the weights."""
    certificate = solution.certificate
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    assert certificate.dual <= best.objective * (1 + 1e-9)
    w = np.concatenate([block.ravel() for block in model.blocks(solution.w).values()])
    primal = reference.primal(w, planes, 1.0)
    assert certificate.primal >= primal * (1 - 1e-9)
    assert not certificate.exact or certificate.primal == pytest.approx(primal)


@pytest.mark.parametrize("passes", [1, 300])
@pytest.mark.parametrize("solver", ["one-slack", "line-search", "n-slack", "sdm", "block-dual", "bcfw"])
def test_searches_that_do_not_close_leave_bounds_that_hold(solver, passes):
    model = open_problem()
    planes = reference.planes(model)
    best, native = reference.solve(planes, 1.0), model.native(inference="trws", max_passes=passes)
    solution, said = trained_with_warnings(native, model, solver=solver, max_iter=300)
    assert sum("may have missed the best labelling" in text for text in said) == 1
    check_open(native, solution, planes, best)
    assert not solution.certificate.exact
    assert solution.certificate.converged == (solution.certificate.relative_gap <= 1e-4)
    # It goes on for as long as that helps.
    assert solution.certificate.dual > 0.6 * best.objective

    def interrupt(record):
        if record["iteration"] == 5:
            raise KeyboardInterrupt

    short, _ = trained_with_warnings(native, model, solver=solver, callback=interrupt)
    check_open(native, short, planes, best)


@pytest.mark.parametrize(
    "options",
    [{}, {"cache_size": 10}, {"cuts_per_iteration": 3}, {"cuts_per_iteration": 3, "extra_cuts": "random"}],
)
def test_bounds_of_open_searches_take_no_pass_of_their_own(options):
    model = open_problem()
    planes = reference.planes(model)
    best, native = reference.solve(planes, 1.0), model.native(inference="trws", max_passes=1)
    options = {"cache_size": 0, **options}
    solution, _ = trained_with_warnings(native, model, solver="one-slack", max_iter=30, solver_options=options)
    # Outputs beside the best one have bounds as well; they must not count in its place.
    check_open(native, solution, planes, best)
    # Random outputs are not searched for.
    n_searched = 1 if options.get("extra_cuts") == "random" else options.get("cuts_per_iteration", 1)
    searches = len(model.graphs) * n_searched
    # The last record counts those that were made to close what was open at the best point, too.
    calls = np.diff([record["oracle_calls"] for record in solution.history[:-1]])
    # Cuts of cached planes take none.
    assert set(calls.tolist()) <= ({searches, 0} if options["cache_size"] else {searches})


def test_bcfw_sees_soon_that_open_searches_keep_the_gap_open():
    """It evaluates its primal less and less often, so that fifty evaluations would take thousands of passes."""
    model = open_problem()
    native = model.native(inference="trws", max_passes=1)
    solution, _ = trained_with_warnings(native, model, solver="bcfw", max_iter=2000)
    assert solution.certificate.message == "the gap no longer closes, for what searches leave open"


def test_bounds_of_open_searches_count_once():
    model = open_problem()
    native = model.native(inference="trws", max_passes=1)
    bound = native.bind(model.graphs, model.labels)
    weights = bound.zero_weights()
    weights.exact[:] = np.random.default_rng(0).normal(size=bound.n_weights)
    with pytest.warns(InexactOracleWarning):
        primal = bound.primal(weights, 1.0, squared=False)
    assert bound.bounded_primal(primal, weights, 1.0, squared=False) == primal
    # A pass that was found open is counted once, and only if it is the one that was asked about.
    batch = bound.separate(bound.all_ids, weights, precise=True)
    values = batch.losses() - bound.space.dots(batch, weights.exact)
    found = 0.5 * weights.norm2() + values.sum()
    counted = bound.bounded_primal(found, weights, 1.0, squared=False)
    assert counted > found
    assert bound.bounded_primal(found, weights, 1.0, squared=False) == found


def test_a_search_may_be_given_a_time():
    model = open_problem()
    for limit in (0, -1.0, "soon", np.inf):
        with pytest.raises(ValueError, match="max_search_time"):
            model.native(max_search_time=limit)
    big = mm.Graph.grid(np.random.default_rng(0).normal(size=(60, 60, 3)))
    native = mm.models.Pairwise(8, edges="full", inference="trws", max_passes=10**6, max_search_time=0.05)
    native.n_features, native.n_edge_features = 3, 1
    w = np.random.default_rng(1).normal(size=native.n_weights)
    start = time.perf_counter()
    native.predict_with_gaps([big], w)
    assert time.perf_counter() - start < 10.0


def test_methods_refuse_what_they_cannot_do():
    graph, labels = noisy_loop(0)
    native = mm.models.Pairwise(3, edges="full", inference="forest")
    with pytest.raises(ValueError, match=r"graph 0: inference='forest' needs graphs without cycles"):
        mm.train(native, [graph], [labels])
    big = mm.Graph.grid(np.random.default_rng(0).normal(size=(8, 8, 1)))
    with pytest.raises(ValueError, match=r"too many"):
        mm.train(mm.models.Pairwise(2, inference="enumeration"), [big], [np.zeros(64, int)])
    model = mm.models.Pairwise(2, inference="cut")
    model.n_features, model.n_edge_features = 1, 1
    w = model.join(edge_coef=[[[-1.0]]])
    with pytest.raises(ValueError, match=r"graph 0: .*TRW-S"):
        model.predict([big], w)


def test_expansion_moves_say_that_nothing_is_known():
    rng = np.random.default_rng(0)
    graphs = [mm.Graph.grid(rng.normal(size=(4, 4, 2))) for _ in range(4)]
    labels = [rng.integers(3, size=16) for _ in graphs]
    native = mm.models.Pairwise(3, inference="expansion", nonnegative={"edge_coef": True})
    with pytest.warns(InexactOracleWarning, match="nothing is known"):
        solution = mm.train(native, graphs, labels, 0.1)
    exact = mm.train(mm.models.Pairwise(3, nonnegative={"edge_coef": True}), graphs, labels, 0.1)
    assert solution.certificate.dual <= exact.certificate.primal * (1 + 1e-9)
    assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=0.05)
