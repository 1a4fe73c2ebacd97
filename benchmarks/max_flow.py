"""Minimum cuts of grids and superpixel graphs: ours, PyMaxflow, OR-tools and SciPy on the same capacities, cold and warm.

Grids are 4-connected, unary scores normal with deviation 1, pair scores uniform on [0, strength]. Superpixel graphs are
Delaunay triangulations of 300 random points with the same kinds of scores; one measurement is the sum over many of them.

    python benchmarks/max_flow.py [--sizes 64,256] [--strengths 0.2,1,5,20] [--repeats 5]

Writes results/max_flow.md (cold), results/max_flow_warm.md and results/max_flow_memory.md. CPU time in ms, the best of
several in one process, our solver and its peers in turns. ``solve`` leaves out the building of the graph and the giving
of capacities, ``all`` includes both. OR-tools and SciPy solve capacities scaled to whole numbers; the values of all are
compared. OR-tools copies its arcs into another graph inside solve. Warm runs of ours include the giving of the new
capacities; they are compared with a cold solve (``all``) of the same new capacities:

    loss, one label     the Hamming loss of a truth that is label 0 at every node: 1 is added to the score of label 1
    loss, two halves    the same for a truth whose first half of nodes has label 0, the second label 1
    loss, scattered     the same for a truth that is drawn anew at every node
    loss, some nodes    the same at one node in a hundred only
    one weight 5 %      all pair scores grow by 5 %
    weights 1 %, 5 %    every capacity is multiplied by a number of its own, normal around 1 with this deviation

The first three change every node by as much as its score has, so that little of the old flow is of use: what is gained
there is mostly the building of the graph. The searches of real runs are in max_flow_training.py.

PyMaxflow is under the GPL: it is used here for comparison only.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from _measure import in_fresh_process, write_table
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow
from scipy.spatial import Delaunay

from maxmargin import _core

SCALE = 1e5  # whole numbers for OR-tools and SciPy, whose capacities have 32 bits


class Problem(NamedTuple):
    """One graph: net terminal capacities (source − sink) and symmetric capacities of the edges."""

    n_nodes: int
    first: np.ndarray
    second: np.ndarray
    gain: np.ndarray
    pair: np.ndarray

    @property
    def source(self) -> np.ndarray:
        return np.maximum(self.gain, 0.0)

    @property
    def sink(self) -> np.ndarray:
        return np.maximum(-self.gain, 0.0)


class Times(NamedTuple):
    """CPU seconds and the value found."""

    solve: float
    everything: float
    value: float


def grid(rng: np.random.Generator, size: int, strength: float) -> Problem:
    """Return a square 4-connected grid."""
    nodes = np.arange(size * size, dtype=np.int32).reshape(size, size)
    first = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    second = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    return Problem(size * size, first, second, rng.normal(size=size * size), strength * rng.random(len(first)))


def superpixels(rng: np.random.Generator, strength: float, n_nodes: int = 300) -> Problem:
    """Return the Delaunay triangulation of random points, nodes in order of their rows as superpixels are."""
    points = rng.random((n_nodes, 2))
    points = points[np.argsort(np.floor(points[:, 1] * np.sqrt(n_nodes)) + points[:, 0])]
    triangles = Delaunay(points).simplices
    ends = np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]]), axis=1)
    ends = np.unique(ends, axis=0).astype(np.int32)
    first, second = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
    return Problem(n_nodes, first, second, rng.normal(size=n_nodes), strength * rng.random(len(first)))


def ours(problem: Problem) -> Times:
    """Solve by maxmargin."""
    source, sink = problem.source, problem.sink
    start = time.process_time()
    flow = _core.MaxFlow(problem.n_nodes, problem.first, problem.second)
    flow.set_terminals(source, sink)
    flow.set_edges(problem.pair, problem.pair)
    built = time.process_time()
    value, _ = flow.solve()
    end = time.process_time()
    return Times(end - built, end - start, value)


def pymaxflow(problem: Problem) -> Times:
    """Solve by PyMaxflow, the algorithm of Boykov and Kolmogorov."""
    import maxflow

    source, sink = problem.source, problem.sink
    start = time.process_time()
    graph = maxflow.Graph[float](problem.n_nodes, len(problem.first))
    nodes = graph.add_nodes(problem.n_nodes)
    graph.add_edges(problem.first.astype(np.int64), problem.second.astype(np.int64), problem.pair, problem.pair)
    graph.add_grid_tedges(nodes, source, sink)
    built = time.process_time()
    value = graph.maxflow()
    graph.get_grid_segments(nodes)
    end = time.process_time()
    return Times(end - built, end - start, value)


def directed(problem: Problem) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all arcs with whole capacities; the source is node n, the sink n + 1."""
    n = problem.n_nodes
    pair, gain = np.round(problem.pair * SCALE), np.round(problem.gain * SCALE)
    positive, negative = np.flatnonzero(gain > 0), np.flatnonzero(gain < 0)
    tails = np.concatenate([problem.first, problem.second, np.full(len(positive), n), negative])
    heads = np.concatenate([problem.second, problem.first, positive, np.full(len(negative), n + 1)])
    return tails, heads, np.concatenate([pair, pair, gain[positive], -gain[negative]])


def ortools(problem: Problem) -> Times:
    """Solve by OR-tools' push-relabel."""
    from ortools.graph.python import max_flow

    tails, heads, capacities = directed(problem)
    start = time.process_time()
    solver = max_flow.SimpleMaxFlow()
    solver.add_arcs_with_capacity(tails, heads, capacities.astype(np.int64))
    built = time.process_time()
    solver.solve(problem.n_nodes, problem.n_nodes + 1)
    end = time.process_time()
    return Times(end - built, end - start, solver.optimal_flow() / SCALE)


def scipy(problem: Problem) -> Times:
    """Solve by SciPy's Dinic."""
    tails, heads, capacities = directed(problem)
    start = time.process_time()
    shape = (problem.n_nodes + 2, problem.n_nodes + 2)
    graph = csr_array((capacities.astype(np.int32), (tails, heads)), shape=shape)
    built = time.process_time()
    value = maximum_flow(graph, problem.n_nodes, problem.n_nodes + 1).flow_value
    end = time.process_time()
    return Times(end - built, end - start, value / SCALE)


SOLVERS: dict[str, Callable[[Problem], Times]] = {
    "ours": ours,
    "PyMaxflow": pymaxflow,
    "OR-tools": ortools,
    "SciPy": scipy,
}


def best_times(problems: list[Problem], repeats: int, slow_repeats: int = 1) -> dict[str, Times]:
    """Return the least sums over the problems, all solvers in turns; the values must agree."""
    found: dict[str, list[Times]] = {name: [] for name in SOLVERS}
    for k in range(repeats):
        for name, solve in SOLVERS.items():
            if k < slow_repeats or name in ("ours", "PyMaxflow"):
                found[name].append(Times(*map(sum, zip(*(solve(problem) for problem in problems), strict=True))))
    best = {
        name: Times(min(t.solve for t in ts), min(t.everything for t in ts), ts[0].value) for name, ts in found.items()
    }
    for name, times in best.items():
        if abs(times.value - best["ours"].value) > 1e-4 * best["ours"].value:
            raise RuntimeError(f"{name} finds {times.value}, ours {best['ours'].value}.")
    return best


def cold_row(name: str, strength: float, problems: list[Problem], repeats: int) -> dict[str, Any]:
    """Return one row of the table of cold solves."""
    best = best_times(problems, repeats)
    row: dict[str, Any] = {"graph": name, "strength": strength}
    for solver, times in best.items():
        row[f"{solver} solve"], row[f"{solver} all"] = 1e3 * times.solve, 1e3 * times.everything
    row["PyMaxflow / ours, solve"] = best["PyMaxflow"].solve / best["ours"].solve
    row["PyMaxflow / ours, all"] = best["PyMaxflow"].everything / best["ours"].everything
    return row


def changes(rng: np.random.Generator, problem: Problem) -> dict[str, Problem]:
    """Return the changed problems of the warm runs, by name."""
    halves = np.where(np.arange(problem.n_nodes) < problem.n_nodes // 2, 1.0, -1.0)
    scattered = rng.choice([-1.0, 1.0], problem.n_nodes)
    some = scattered * (rng.random(problem.n_nodes) < 0.01)
    losses = {"one label": 1.0, "two halves": halves, "scattered": scattered, "some nodes": some}
    changed = {f"loss, {name}": problem._replace(gain=problem.gain + loss) for name, loss in losses.items()}
    changed["one weight 5 %"] = problem._replace(pair=1.05 * problem.pair)
    for share in (0.01, 0.05):
        gain, pair = (values * rng.normal(1.0, share, len(values)) for values in (problem.gain, problem.pair))
        changed[f"weights {share:.0%}"] = problem._replace(gain=gain, pair=pair)
    return changed


def warm(problem: Problem, changed: Problem) -> Times:
    """Solve, change the capacities and time the second solve."""
    flow = _core.MaxFlow(problem.n_nodes, problem.first, problem.second)
    flow.set_terminals(problem.source, problem.sink)
    flow.set_edges(problem.pair, problem.pair)
    flow.solve()
    source, sink = changed.source, changed.sink
    start = time.process_time()
    flow.set_terminals(source, sink)
    if changed.pair is not problem.pair:
        flow.set_edges(changed.pair, changed.pair)
    given = time.process_time()
    value, _ = flow.solve()
    end = time.process_time()
    return Times(end - given, end - start, value)


def warm_rows(
    rng: np.random.Generator, name: str, strength: float, problems: list[Problem], repeats: int
) -> list[dict[str, Any]]:
    """Return the rows of the table of warm solves."""
    rows = []
    changed = [changes(rng, problem) for problem in problems]
    for change in changed[0]:
        pairs = [(problem, own[change]) for problem, own in zip(problems, changed, strict=True)]
        cold_s, warm_s = [], []
        for _ in range(repeats):
            cold = [ours(new) for _, new in pairs]
            warmed = [warm(old, new) for old, new in pairs]
            cold_s.append(sum(t.everything for t in cold))
            warm_s.append(sum(t.everything for t in warmed))
            for a, b in zip(cold, warmed, strict=True):
                if abs(a.value - b.value) > 1e-9 * a.value:
                    raise RuntimeError(f"warm finds {b.value}, cold {a.value}.")
        row = {
            "graph": name,
            "strength": strength,
            "change": change,
            "cold": 1e3 * min(cold_s),
            "warm": 1e3 * min(warm_s),
        }
        rows.append({**row, "cold / warm": min(cold_s) / min(warm_s)})
    return rows


def solve_megapixel(strength: float) -> tuple[float, float]:
    """Solve a grid of 1,024 × 1,024 and return its CPU seconds; for a process of its own."""
    times = ours(grid(np.random.default_rng(0), 1024, strength))
    return times.solve, times.everything


def numbers(kind: type) -> Callable[[str], list[Any]]:
    """Return a reader of numbers split by commas."""
    return lambda text: [kind(part) for part in text.split(",") if part]


def main() -> None:
    parser = argparse.ArgumentParser(description="Minimum cuts: ours and its peers.")
    parser.add_argument("--sizes", type=numbers(int), default=[64, 256])
    parser.add_argument("--strengths", type=numbers(float), default=[0.2, 1.0, 5.0, 20.0])
    parser.add_argument("--superpixel-graphs", type=int, default=100)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    cold: list[dict[str, Any]] = []
    changed: list[dict[str, Any]] = []
    for strength in arguments.strengths:
        cases = [(f"grid {size} × {size}", [grid(rng, size, strength)]) for size in arguments.sizes]
        n = arguments.superpixel_graphs
        cases.append((f"{n} superpixel graphs", [superpixels(rng, strength) for _ in range(n)]))
        for name, problems in cases:
            cold.append(cold_row(name, strength, problems, arguments.repeats))
            changed += warm_rows(rng, name, strength, problems, arguments.repeats)
            write_table("max_flow", cold, note="CPU ms, best of several; see benchmarks/max_flow.py.")
            write_table(
                "max_flow_warm",
                changed,
                note="CPU ms, best of several, capacities included; see benchmarks/max_flow.py.",
            )
            print(name, strength, flush=True)
    memory = []
    for strength in (1.0, 5.0):
        run = in_fresh_process(solve_megapixel, strength)
        more = (run.peak_memory - run.memory_before) / 2**20
        memory.append(
            {
                "strength": strength,
                "solve s": run.result[0],
                "all s": run.result[1],
                "MiB beyond imports, arrays given included": more,
            }
        )
    for name in ("max_flow", "max_flow_warm"):
        print(
            write_table(
                name,
                cold if name == "max_flow" else changed,
                note="CPU ms, best of several; see benchmarks/max_flow.py.",
            )
        )
    print(write_table("max_flow_memory", memory, note="A grid of 1,024 × 1,024, 4-connected."))


if __name__ == "__main__":
    main()
