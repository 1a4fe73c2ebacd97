"""Tree-reweighted message passing: messages per second against plain loops, and two proteins against toulbar2.

    python benchmarks/trws.py [--repeats 7]

A plain loop makes the same messages out of the same tables and nothing else: for every link it reads scores, adds a
table, takes maxima and writes a message; for Potts it does what O(labels) allows. It is compiled by the system's C++
compiler (c++ or $CXX, -O3) and runs in the same process. TRW-S also adds up messages, shares them out, and keeps a
bound and a labelling; the bar is half the plain loop's rate.

Proteins are read from protein_mrf in the folder named by MAXMARGIN_DATA, and left out where it is not set; toulbar2 runs
where pytoulbar2 is installed, in a process of its own.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from _measure import in_fresh_process, write_table

from maxmargin import _core

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from labelled_graphs import Graph, grid_edges, random_graph
from protein_graphs import BEST_SCORES, read_protein, toulbar2

PLAIN_LOOPS = r"""
#include <cstdint>

// One message over every edge: from its first node to its second if forward, else the other way. K is known to the compiler.
template <int K>
void table_messages(int64_t n, const double* tables, const int64_t* offsets, const double* in, double* out, bool forward) {
    for (int64_t e = 0; e < n; ++e) {
        const double* table = tables + offsets[e];
        const double* scores = in + e * K;
        double* message = out + e * K;
        if (forward) {
            for (int b = 0; b < K; ++b) message[b] = scores[0] + table[b];
            for (int a = 1; a < K; ++a)
                for (int b = 0; b < K; ++b) {
                    const double sum = scores[a] + table[a * K + b];
                    message[b] = message[b] < sum ? sum : message[b];
                }
        } else {
            for (int a = 0; a < K; ++a) {
                double best = scores[0] + table[a * K];
                for (int b = 1; b < K; ++b) {
                    const double sum = scores[b] + table[a * K + b];
                    best = best < sum ? sum : best;
                }
                message[a] = best;
            }
        }
    }
}

template <int K>
void potts_messages(int64_t n, const double* weights, const int64_t*, const double* in, double* out, bool) {
    for (int64_t e = 0; e < n; ++e) {
        const double* scores = in + e * K;
        double* message = out + e * K;
        double best = scores[0];
        int at = 0;
        for (int a = 1; a < K; ++a)
            if (scores[a] > best) best = scores[at = a];
        if (weights[e] >= 0) {
            for (int b = 0; b < K; ++b) {
                const double equal = scores[b] + weights[e];
                message[b] = equal < best ? best : equal;
            }
        } else {
            double second = best + weights[e];
            for (int a = 0; a < K; ++a)
                if (a != at && scores[a] > second) second = scores[a];
            for (int b = 0; b < K; ++b) message[b] = best;
            message[at] = second;
        }
    }
}

#define LOOP(name, kind, K) \
    extern "C" void name(int64_t n, const double* tables, const int64_t* offsets, const double* in, double* out, bool forward) { \
        kind<K>(n, tables, offsets, in, out, forward); \
    }
LOOP(table_2, table_messages, 2)
LOOP(table_30, table_messages, 30)
LOOP(potts_2, potts_messages, 2)
LOOP(potts_30, potts_messages, 30)
"""


def compiled_loops() -> ctypes.CDLL:
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder) / "plain.cpp", Path(folder) / "plain.so"
        source.write_text(PLAIN_LOOPS)
        compiler = os.environ.get("CXX", "c++")
        subprocess.run([compiler, "-O3", "-std=c++17", "-shared", "-fPIC", "-o", library, source], check=True)
        return ctypes.CDLL(str(library))


def best_rate(call: Callable[[], int], repeats: int) -> float:
    """What a call says it has made, per CPU second, in the fastest of several calls."""
    rates = []
    for _ in range(repeats):
        start = time.process_time()
        made = call()
        rates.append(made / (time.process_time() - start))
    return max(rates)


def plain_rate(library: ctypes.CDLL, graph: Graph, n_passes: int, repeats: int) -> float:
    """Messages per second of the plain loop, in both directions."""
    k, n_edges = int(graph.counts[0]), len(graph.first)
    scores = np.random.default_rng(1).normal(size=n_edges * k)
    out = np.empty_like(scores)
    loop = getattr(library, f"{'potts' if graph.offsets is None else 'table'}_{k}")
    offsets = graph.offsets if graph.offsets is not None else np.zeros(1, np.int64)

    def pointer(array: np.ndarray[Any, Any]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    def passes() -> int:
        for _ in range(n_passes):
            for is_forward in (True, False):
                loop(
                    ctypes.c_int64(n_edges),
                    pointer(graph.values),
                    pointer(offsets),
                    pointer(scores),
                    pointer(out),
                    ctypes.c_bool(is_forward),
                )

        return 2 * n_edges * n_passes

    return best_rate(passes, repeats)


def trws_rate(graph: Graph, n_passes: int, repeats: int) -> float:
    """Messages per second of TRW-S: passes in both directions with labels and bounds."""
    solver = _core.TreeReweighted(*graph.shape)
    solver.set_unary(graph.unary)
    solver.set_pairs(graph.values, graph.offsets)
    options = {"stall": 0.0, "relative_tolerance": 0.0, "absolute_tolerance": 0.0}

    def passes() -> int:
        solver.reset_messages()
        n_iter: int = solver.run(max_iter=n_passes, **options).n_iter
        if n_iter < 10:
            raise RuntimeError("TRW-S closed after a few iterations: its rate would mean nothing.")
        return 2 * len(graph.first) * n_iter

    return best_rate(passes, repeats)


def random_pairs(rng: np.random.Generator, n_nodes: int, n_edges: int) -> np.ndarray[Any, Any]:
    """Different pairs of nodes."""
    keys = rng.choice(n_nodes * n_nodes, size=3 * n_edges, replace=False)
    pairs = np.column_stack([keys // n_nodes, keys % n_nodes])
    return pairs[pairs[:, 0] < pairs[:, 1]][:n_edges].astype(np.int32)


def rates(repeats: int) -> list[dict[str, object]]:
    library = compiled_loops()
    rows: list[dict[str, object]] = []
    for graph_name in ("grid 64 × 64", "random, 2,000 nodes, 8,000 edges"):
        for k in (2, 30):
            kinds = {"table": "table per edge", "shared": "one table", "potts": "Potts of either sign"}
            for kind, scores in kinds.items():
                # One table of two labels makes a graph that closes at once.
                if (k, kind) == (2, "shared"):
                    continue
                rng = np.random.default_rng(0)
                is_grid = graph_name.startswith("grid")
                edges = grid_edges(64, 64) if is_grid else random_pairs(rng, 2000, 8000)
                graph = random_graph(rng, [k] * (4096 if is_grid else 2000), edges, kind)
                # Strong pairs keep the bound open. Passes that take some 50 ms: clocks are coarse.
                graph.values *= 3.0
                n_passes = 200 if k == 2 or kind == "potts" else 20
                # Taken in turns, so that both see the same moments of the machine.
                plain = trws = 0.0
                for _ in range(3):
                    plain = max(plain, plain_rate(library, graph, n_passes, repeats))
                    trws = max(trws, trws_rate(graph, n_passes, repeats))
                rows.append(
                    {
                        "graph": graph_name,
                        "labels": k,
                        "scores": scores,
                        "plain loop, messages/s": plain,
                        "TRW-S, messages/s": trws,
                        "ratio": trws / plain,
                    }
                )
    return rows


def peer_seconds(folder: str, name: str) -> float:
    network = toulbar2(read_protein(folder, name))
    start = time.process_time()
    network.Solve()
    return time.process_time() - start


def proteins(folder: str) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for name, best in BEST_SCORES.items():
        graph = read_protein(folder, name)
        solver = _core.TreeReweighted(*graph.shape)
        solver.set_unary(graph.unary)
        solver.set_pairs(graph.values, graph.offsets)
        seconds, n_iter = 0.0, 0
        for step in (1, 3, 6, 10, 20, 40, 80, 160, 320):
            start = time.process_time()
            result = solver.run(max_iter=step, stall=0.0)
            seconds += time.process_time() - start
            n_iter += result.n_iter
            rows.append(
                {
                    "protein": name,
                    "iterations": n_iter,
                    "CPU ms": 1000 * seconds,
                    "score": f"{result.score:.6f}",
                    "bound": f"{result.bound:.6f}",
                    "best": f"{best:.6f}",
                    "status": result.status,
                }
            )
            if result.is_closed:
                break
        if importlib.util.find_spec("pytoulbar2") is None:
            continue
        try:
            peer = in_fresh_process(peer_seconds, folder, name)
        except RuntimeError as failure:
            print(f"toulbar2 on {name}: {failure}")
        else:
            rows.append(
                {"protein": name, "CPU ms": 1000 * peer.result, "best": f"{best:.6f}", "status": "toulbar2, proof"}
            )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Messages per second of TRW-S, and proteins.")
    parser.add_argument("--repeats", type=int, default=3, help="timings of which the best is taken, three times over")
    arguments = parser.parse_args()
    print(
        write_table(
            "trws_rates", rates(arguments.repeats), "CPU time, best of all repeats, plain loops and TRW-S in turns."
        )
    )
    folder = os.environ.get("MAXMARGIN_DATA")
    if folder is not None:
        print(write_table("trws_proteins", proteins(folder), "CPU time without reading the files."))


if __name__ == "__main__":
    main()
