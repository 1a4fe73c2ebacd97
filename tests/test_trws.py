"""Tree-reweighted message passing: score ≤ best score ≤ bound on graphs of every kind, and the linear relaxation."""

import importlib.util
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labelled_graphs import Graph, forest_edges, grid_edges, random_edges, random_graph
from protein_graphs import BEST_SCORES, read_protein

from maxmargin import _core
from maxmargin.models import best_labelling

pytestmark = pytest.mark.core

KINDS = ["table", "shared", "potts", "attractive"]


def solver_of(graph, **options):
    solver = _core.TreeReweighted(*graph.shape, **options)
    solver.set_unary(graph.unary)
    solver.set_pairs(graph.values, graph.offsets)
    return solver


def hard_grid(n=60, n_labels=20):
    """Pairs that weigh more than nodes: the relaxation is not tight."""
    graph = random_graph(np.random.default_rng(0), [n_labels] * n * n, grid_edges(n, n), "potts")
    return replace(graph, values=3.0 * graph.values)


def check_sandwich(graph, result):
    rounding = 1e-12 * graph.magnitude()
    best = graph.best_score()
    assert graph.score(result.labels) == pytest.approx(result.score, rel=0, abs=rounding)
    assert result.score <= best + rounding
    assert result.bound >= best - rounding
    assert (np.diff(result.bounds) <= rounding).all()
    assert result.bounds[-1] == result.bound
    if result.is_closed:
        assert result.score == pytest.approx(best, rel=2e-9, abs=2e-9)


@pytest.mark.parametrize("scale", [1e-150, 1e-3, 1.0, 1e6, 1e150])
@pytest.mark.parametrize("kind", KINDS)
def test_the_best_score_lies_between_score_and_bound(kind, scale):
    for seed in range(60):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        n_nodes = rng.integers(1, 9)
        counts = np.full(n_nodes, 2) if seed % 3 == 0 else rng.integers(1, 5, size=n_nodes)
        edges = random_edges(rng, n_nodes, rng.integers(0, 15))
        graph = random_graph(rng, counts, edges, kind, scale, ties=seed % 4 == 0)
        order = rng.permutation(n_nodes).astype(np.int32) if seed % 2 else None
        check_sandwich(graph, solver_of(graph, order=order).run(max_iter=100, absolute_tolerance=1e-12 * scale))


@pytest.mark.parametrize("n_labels", [2, 3])
def test_passes_for_two_labels_are_those_for_more(n_labels):
    """A third label that is never worth taking changes neither bound nor labels."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, [2] * 9, grid_edges(3, 3), "table")
        unary = np.full((9, n_labels), -100.0)
        unary[:, :2] = graph.unary.reshape(9, 2)
        values = np.full((12, n_labels, n_labels), -100.0)
        values[:, :2, :2] = graph.values.reshape(12, 2, 2)
        offsets = np.arange(12) * n_labels**2
        wide = Graph(np.full(9, n_labels), graph.first, graph.second, unary.ravel(), values.ravel(), offsets)
        few, many = (solver_of(g).run(max_iter=5, stall=0.0) for g in (graph, wide))
        np.testing.assert_allclose(many.bounds, few.bounds, rtol=1e-12)
        np.testing.assert_array_equal(many.labels, few.labels)


@pytest.mark.parametrize("n_iter", [1, 2, 100])
@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_max_marginals_are_bounds(kind, n_iter):
    n_tight = 0
    for seed in range(60):
        rng = np.random.default_rng([seed, KINDS.index(kind), 4])
        n_nodes = rng.integers(1, 9)
        counts = np.full(n_nodes, 2) if seed % 3 == 0 else rng.integers(1, 5, size=n_nodes)
        edges = random_edges(rng, n_nodes, rng.integers(0, 15))
        graph = random_graph(rng, counts, edges, kind, ties=seed % 4 == 0)
        solver = solver_of(graph)
        bound = solver.run(max_iter=n_iter, stall=0.0).bound
        bounds, exact = solver.bound_max_marginals(), graph.max_marginals()
        rounding = 1e-12 * graph.magnitude()
        assert (bounds >= exact - rounding).all()
        offsets = graph.shape[0]
        np.testing.assert_allclose(np.maximum.reduceat(bounds, offsets[:-1]), bound, rtol=0, atol=rounding)
        n_tight += bool((bounds <= exact + 1e-6).all())
    assert n_tight >= 10


@pytest.mark.parametrize("kind", KINDS)
def test_bounds_of_max_marginals_of_forests_are_reached(kind):
    for seed in range(40):
        rng = np.random.default_rng([seed, KINDS.index(kind), 5])
        counts = rng.integers(1, 5, size=rng.integers(1, 9))
        graph = random_graph(rng, counts, forest_edges(rng, len(counts)), kind, ties=seed % 3 == 0)
        solver = solver_of(graph)
        solver.run()
        np.testing.assert_allclose(
            solver.bound_max_marginals(), graph.max_marginals(), rtol=0, atol=1e-12 * graph.magnitude()
        )


@pytest.mark.parametrize("kind", KINDS)
def test_a_forest_is_solved_in_one_iteration(kind):
    for seed in range(40):
        rng = np.random.default_rng([seed, KINDS.index(kind), 2])
        counts = rng.integers(1, 5, size=rng.integers(1, 9))
        graph = random_graph(rng, counts, forest_edges(rng, len(counts)), kind, ties=seed % 3 == 0)
        result = solver_of(graph).run()
        assert result.is_closed
        assert result.n_iter == 1
        check_sandwich(graph, result)


@pytest.mark.parametrize("kind", ["table", "potts"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_the_bound_is_that_of_the_linear_relaxation(kind, n_labels):
    """Never below it, and mostly at it: coordinate descent may get stuck a little above (Kolmogorov 2006)."""
    distances = []
    for seed in range(25):
        rng = np.random.default_rng([seed, n_labels])
        graph = random_graph(rng, [n_labels] * 9, [*grid_edges(3, 3).tolist(), [0, 8], [2, 6], [3, 1]], kind)
        relaxed = graph.linear_relaxation()
        result = solver_of(graph).run(max_iter=3000, stall=1e-9, absolute_tolerance=0.0, relative_tolerance=1e-12)
        assert result.bound >= relaxed - 1e-7
        distances.append(result.bound - relaxed)
    assert np.median(distances) < 1e-5
    assert max(distances) < 0.15


def test_two_attractive_labels_are_always_solved():
    """The relaxation is tight for supermodular scores, and TRW-S reaches it for two labels (Kolmogorov and Wainwright 2005)."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, [2] * 12, grid_edges(3, 4), "attractive")
        result = solver_of(graph).run(max_iter=5000, stall=0.0, absolute_tolerance=1e-6)
        assert result.is_closed
        assert result.score == pytest.approx(graph.best_score(), abs=1e-6)


def test_parallel_edges_count_as_their_sum():
    rng = np.random.default_rng(3)
    single = random_graph(rng, [3, 2, 4], [[0, 1], [1, 2], [2, 0]])
    halves = [single.table(e) / 2 for e in range(3)]
    double = Graph(
        single.counts,
        np.concatenate([single.first, single.second]),
        np.concatenate([single.second, single.first]),
        single.unary,
        np.concatenate([*(h.ravel() for h in halves), *(h.T.ravel() for h in halves)]),
        np.concatenate([single.offsets, single.offsets + len(single.values)]),
    )
    a, b = (solver_of(g).run(max_iter=20, stall=0.0) for g in (single, double))
    np.testing.assert_allclose(a.bounds, b.bounds, rtol=1e-12)


def test_a_run_goes_on_where_the_last_one_stopped():
    graph = hard_grid(6, 3)
    whole = solver_of(graph).run(max_iter=40, stall=0.0)
    solver = solver_of(graph)
    parts = [solver.run(max_iter=20, stall=0.0) for _ in range(2)]
    np.testing.assert_array_equal(np.concatenate([p.bounds for p in parts]), whole.bounds)
    np.testing.assert_array_equal(parts[1].labels, whole.labels)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_a_warm_start_reaches_the_bound_no_later(n_labels):
    later = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        graph = random_graph(rng, [n_labels] * 64, grid_edges(8, 8), "attractive")
        solver = solver_of(graph)
        solver.run(max_iter=200, stall=0.0)
        changed = replace(
            graph, unary=graph.unary + 0.01 * rng.normal(size=graph.unary.shape), values=graph.values * 1.01
        )
        cold = solver_of(changed).run(max_iter=400, stall=0.0, relative_tolerance=0.0, absolute_tolerance=0.0)
        solver.set_unary(changed.unary)
        solver.set_pairs(changed.values)
        warm = solver.run(max_iter=400, stall=0.0, relative_tolerance=0.0, absolute_tolerance=0.0)
        assert warm.bound == pytest.approx(cold.bound, rel=1e-4)
        target = cold.bound + 1e-3 * abs(cold.bound)
        later.append(int(np.argmax(warm.bounds <= target)) - int(np.argmax(cold.bounds <= target)))
    assert max(later) <= 0
    assert np.mean(later) < 0


def test_forgotten_messages_start_afresh():
    rng = np.random.default_rng(1)
    graph = random_graph(rng, [3] * 16, grid_edges(4, 4))
    solver = solver_of(graph)
    first = solver.run(max_iter=5, stall=0.0)
    solver.reset_messages()
    np.testing.assert_array_equal(solver.run(max_iter=5, stall=0.0).bounds, first.bounds)


@pytest.mark.parametrize("n_labels", [2, 3])
def test_of_equally_good_labels_the_first_is_taken(n_labels):
    graph = random_graph(np.random.default_rng(0), [n_labels] * 12, grid_edges(3, 4), "potts")
    graph.unary[:], graph.values[:] = 1.0, 0.0
    assert not solver_of(graph).run().labels.any()


def test_labels_with_one_candidate_cost_nothing():
    rng = np.random.default_rng(2)
    graph = random_graph(rng, [1, 3, 1, 2, 1], random_edges(rng, 5, 9))
    check_sandwich(graph, solver_of(graph).run())


def test_a_graph_without_nodes_scores_nothing():
    solver = _core.TreeReweighted(np.zeros(1, np.int64), *np.zeros((2, 0), np.int32))
    solver.set_unary(np.zeros(0))
    solver.set_pairs(np.zeros(0))
    result = solver.run()
    assert result.is_closed
    assert (result.score, result.bound, len(result.labels)) == (0.0, 0.0, 0)


def test_every_stop_has_its_name():
    graph = hard_grid(8, 2)
    assert solver_of(graph).run(max_iter=3).status == "max_iter"
    stalled = solver_of(graph).run(max_iter=100_000)
    assert stalled.status == "stalled"
    assert not stalled.is_closed
    assert stalled.n_iter < 10_000
    assert solver_of(graph).run(relative_tolerance=1.0).status == "closed"
    bounds = solver_of(graph).run(max_iter=3).bounds
    below = solver_of(graph).run(floor=bounds[1])
    assert below.status == "below_floor"
    np.testing.assert_array_equal(below.bounds, bounds[:2])


@pytest.mark.parametrize("seconds", [0.0, 0.2])
def test_a_time_limit_is_kept(seconds):
    solver = solver_of(hard_grid())
    start = time.perf_counter()
    result = solver.run(max_iter=10**9, stall=0.0, max_seconds=seconds)
    assert result.status == "max_seconds"
    assert result.n_iter >= 1
    assert seconds <= time.perf_counter() - start < seconds + 5.0  # other processes run beside


@pytest.mark.parametrize(("n", "n_labels"), [(300, 2), (60, 20)])  # seconds, before rounding ends it
def test_ctrl_c_ends_a_run_and_the_next_one_starts_afresh(n, n_labels):
    graph = hard_grid(n, n_labels)
    solver = solver_of(graph)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    start = time.process_time()
    try:
        with pytest.raises(KeyboardInterrupt):
            solver.run(max_iter=10**9, stall=0.0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert time.process_time() - start < 2.0
    np.testing.assert_array_equal(solver.run(max_iter=2).bounds, solver_of(graph).run(max_iter=2).bounds)


def refused_after_an_alarm(solver, seconds):
    """Whether bounds are refused after ``seconds`` of them; not so where the alarm came before the call or after it."""

    def interrupt(*_):
        raise KeyboardInterrupt

    solver.run(max_iter=1)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        solver.bound_max_marginals()
        signal.setitimer(signal.ITIMER_REAL, 0.0)
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGALRM, before)
    try:
        solver.bound_max_marginals()
    except ValueError as error:
        return "call run before" in str(error)
    return False


def test_bounds_of_max_marginals_after_ctrl_c_need_another_run():
    solver = solver_of(hard_grid(500, 10))
    # A call takes 0.1 s or less; on a busy machine a single alarm may come before it or after its last look for alarms.
    assert any(refused_after_an_alarm(solver, 0.005 * k) for k in range(1, 41))


def test_a_running_solver_is_left_alone_by_other_threads():
    graph = hard_grid()
    solver = solver_of(graph)
    thread = threading.Thread(target=lambda: solver.run(max_iter=10**9, stall=0.0, max_seconds=0.6))
    thread.start()
    time.sleep(0.2)
    with pytest.raises(RuntimeError, match="running in another thread"):
        solver.set_unary(graph.unary)
    thread.join()
    solver.set_unary(graph.unary)


def test_the_pair_scores_are_kept_alive():
    rng = np.random.default_rng(0)
    graph = random_graph(rng, [3] * 9, grid_edges(3, 3))
    expected = solver_of(graph).run(max_iter=3).bounds
    solver = _core.TreeReweighted(*graph.shape)
    solver.set_unary(graph.unary.copy())
    solver.set_pairs(graph.values.copy(), graph.offsets.copy())
    np.testing.assert_array_equal(solver.run(max_iter=3).bounds, expected)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_iter": 0}, "max_iter is 0"),
        ({"stall": -1.0}, "stall and max_seconds must hold finite numbers ≥ 0"),
        ({"relative_tolerance": np.nan}, "relative_tolerance"),
        ({"max_seconds": -1.0}, "max_seconds"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, text):
    graph = random_graph(np.random.default_rng(0), [2, 2], [[0, 1]])
    with pytest.raises(ValueError, match=text):
        solver_of(graph).run(**options)


def test_a_run_without_scores_says_what_is_missing():
    graph = random_graph(np.random.default_rng(0), [2, 2], [[0, 1]])
    solver = _core.TreeReweighted(*graph.shape)
    with pytest.raises(ValueError, match="set_unary and set_pairs"):
        solver.run()
    solver.set_unary(graph.unary)
    with pytest.raises(ValueError, match="set_unary and set_pairs"):
        solver.run()


@pytest.mark.parametrize("change", ["none", "unary", "pairs", "messages"])
def test_bounds_of_max_marginals_need_a_run(change):
    graph = random_graph(np.random.default_rng(0), [2, 2], [[0, 1]])
    solver = solver_of(graph)
    if change != "none":
        solver.run()
        solver.bound_max_marginals()
    if change == "unary":
        solver.set_unary(graph.unary)
    if change == "pairs":
        solver.set_pairs(graph.values, graph.offsets)
    if change == "messages":
        solver.reset_messages()
    with pytest.raises(ValueError, match="call run before"):
        solver.bound_max_marginals()


@pytest.mark.parametrize(
    ("order", "text"), [([0, 0], "names node 0 twice"), ([0], "order has 1"), ([0, 2], "node of order 2")]
)
def test_an_order_that_misses_nodes_is_refused(order, text):
    graph = random_graph(np.random.default_rng(0), [2, 2], [[0, 1]])
    with pytest.raises(ValueError, match=text):
        _core.TreeReweighted(*graph.shape, order=np.array(order, np.int32))


# ----------------------------------------------------------------------------------------------------- proteins


def protein(name):
    folder = os.environ.get("MAXMARGIN_DATA")
    if folder is None or not (Path(folder) / "protein_mrf").exists():
        pytest.skip("needs protein_mrf in the folder named by MAXMARGIN_DATA")
    return read_protein(folder, name)


@pytest.mark.data
def test_a_small_protein_is_solved():
    graph = protein("1aho")
    result = solver_of(graph).run()
    assert result.is_closed
    assert result.score == pytest.approx(BEST_SCORES["1aho"], abs=1e-6)


@pytest.mark.data
def test_a_large_protein_is_almost_solved():
    graph = protein("1cb6")
    result = solver_of(graph).run(max_iter=300, stall=1e-4)
    assert result.score <= BEST_SCORES["1cb6"] + 1e-6 <= result.bound + 2e-6
    assert (np.diff(result.bounds) <= 1e-9).all()
    # The relaxation is not tight: it lies at 132.525.
    assert result.bound < 132.53
    assert result.score > 132.3


@pytest.mark.data
@pytest.mark.parametrize("name", BEST_SCORES)
def test_toulbar2_finds_the_scores_quoted_here(name):
    protein(name)
    if importlib.util.find_spec("pytoulbar2") is None:
        pytest.skip("needs pytoulbar2")
    # In a process of its own: wheels made for newer processors end it.
    code = "import sys; import protein_graphs as p; print(p.toulbar2(p.read_protein(*sys.argv[1:])).Solve()[1])"
    command = [sys.executable, "-c", code, os.environ["MAXMARGIN_DATA"], name]
    peer = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    if peer.returncode < 0:
        pytest.skip(f"pytoulbar2 was ended by signal {-peer.returncode}")
    assert peer.returncode == 0, peer.stderr
    assert -float(peer.stdout.split()[-1]) == pytest.approx(BEST_SCORES[name], abs=1e-6)


@pytest.mark.parametrize("scale", [1e-12, 1e-9, 1e9])
def test_searches_are_as_close_at_every_scale(scale):
    rng = np.random.default_rng(0)
    for _ in range(10):
        unary = [rng.normal(size=3) for _ in range(30)]
        edges = [rng.choice(30, 2, replace=False) for _ in range(40)]
        pairs = [rng.normal(size=(3, 3)) for _ in edges]
        plain = best_labelling(unary, edges, pairs)
        scaled = best_labelling([scale * u for u in unary], edges, [scale * p for p in pairs])
        assert plain.score - scaled.score / scale <= scaled.gap / scale + 1e-6
        assert scaled.gap / scale == pytest.approx(plain.gap, abs=0.1)
