"""Iterations and time of DivMCuts (Guzman-Rivera, Kohli and Batra 2013) on segmentation and side chains: its figures 2 to 5.

    MAXMARGIN_DATA=... python benchmarks/paper_dmc.py [--sets horses] [--cache FOLDER] [--most-cuts 10] [--C C] [--quick]

    horses        200 training images of Weizmann horses in superpixels, 52 node and 3 edge features, Potts weights ≥ 0, cuts
    side-chains   39 training proteins, nodes with rotamers as candidates, 8 energy terms, weights ≥ 0, TRW-S

One-slack without stabilisation, C and ε as below, one thread. M cuts per iteration from diverse outputs with the set point K; the
baselines are M = 1, the next best outputs and random ones, and beyond the paper mixes of two passes; with and without the cache
of planes; all of it again with fewer node features. Writes results/paper_dmc_*.md and .png. The superpixels are kept in --cache.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _measure import RESULTS, Stopwatch, write_table

import maxmargin as mm

for folder in ("segmentation", "side_chains"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / folder))

# Public C, the paper's ε in units of mean loss (a graph weighs as much as it has nodes), and the weights that stay ≥ 0.
SETTINGS = {"horses": (0.01, 0.5, "edges"), "side-chains": (0.01, 0.5, "all")}


def horses(cache: str | None) -> tuple[list[mm.Graph], list[Any]]:
    """Return the training graphs with their labels."""
    from superpixels import Standardiser, graphs_of

    data = mm.datasets.load_weizmann_horses().train
    graphs = graphs_of(data.images, data.masks, cache=cache)
    scale = Standardiser(graphs)
    X = [
        mm.Graph(scale(graph.node_features), graph.edges, graph.edge_features, node_weights=graph.sizes)
        for graph in graphs
    ]
    return X, [graph.truth for graph in graphs]


def side_chains(cache: str | None) -> tuple[list[mm.Graph], list[Any]]:
    """Return the graphs of the training proteins with the numbers of the right candidates."""
    from instances import make_instances, split_by_target
    from predictions import to_graph

    train, _ = make_instances(*split_by_target(mm.datasets.load_side_chains()), folder=cache)
    return [to_graph(instance) for instance in train], [instance.truth for instance in train]


SETS = {"horses": horses, "side-chains": side_chains}


def run(name: str, X: list[mm.Graph], y: list[Any], **options: Any) -> dict[str, Any]:
    """Train once; return what it took."""
    C, epsilon, nonnegative = SETTINGS[name]
    options = {"epsilon": epsilon, "cache_size": 0, **options}
    svm = mm.GraphSVM(C, nonnegative=nonnegative, solver="one-slack", solver_options=options)
    with Stopwatch() as watch:
        svm.fit(X, y)
    history = svm.history_
    return {
        "M": options.get("cuts_per_iteration", 1),
        "K": options.get("diversity", "") if options.get("cuts_per_iteration", 1) > 1 else "",
        "extra": options.get("extra_cuts", "diverse") if options.get("cuts_per_iteration", 1) > 1 else "",
        "combination": options.get("combination", "ordering") if options.get("cuts_per_iteration", 1) > 1 else "",
        "annealing": options.get("cut_annealing", ""),
        "cache": options["cache_size"],
        "iterations": len(history),
        "exact iterations": sum(not record["from_cache"] for record in history),
        "CPU s": watch.cpu,
        "searches": svm.certificate_.oracle_calls,
        "extra s": sum(record["time_extra"] for record in history),
        "QP s": sum(record["time_qp"] for record in history),
        "gap": svm.certificate_.relative_gap,
    }


def all_runs(name: str, X: list[mm.Graph], y: list[Any], most: int) -> list[dict[str, Any]]:
    """Return the runs of figures 2 to 4 and of both tables."""
    rows = []

    def add(**options: Any) -> None:
        rows.append(run(name, X, y, **options))
        print(rows[-1], flush=True)

    add()
    add(cache_size=10)
    for M in [m for m in (2, 3, 4, 6, 10, 20, 30) if m <= most]:
        for K in (0.01, 0.03, 0.1):
            add(cuts_per_iteration=M, diversity=K)
        add(cuts_per_iteration=M, extra_cuts="random", diversity=0.03)
        add(cuts_per_iteration=M, extra_cuts="mixed")
    few = min(most, 4)
    for M in sorted({2, few}):
        add(cuts_per_iteration=M, extra_cuts="m-best")
    for combination in ("violation", "dual"):
        for M in sorted({few, most}):
            add(cuts_per_iteration=M, diversity=0.03, combination=combination)
    add(cuts_per_iteration=most, diversity=0.1, cut_annealing=0.97)
    add(cuts_per_iteration=most, diversity=0.1, cut_annealing=0.97, combination="dual")
    add(cuts_per_iteration=few, diversity=0.03, cache_size=10)
    return rows


def fewer_features(X: list[mm.Graph], y: list[Any], share: float) -> tuple[list[mm.Graph], list[Any]]:
    """Return the graphs with a share of their node features, the constant among them (figure 5)."""
    d = X[0].rows.shape[1]
    kept = np.append(np.random.default_rng(0).permutation(d - 1)[: int(share * (d - 1))], d - 1)
    smaller = [
        mm.Graph(graph.rows[:, kept], graph.edges, graph.edge_rows, node_weights=graph.node_weights) for graph in X
    ]
    return smaller, y


def draw(name: str, rows: list[dict[str, Any]]) -> None:
    """Draw iterations and time against M."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(10, 4))
    plain = rows[0]
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["M"] > 1 and row["cache"] == 0 and row["annealing"] == "":
            share = "" if row["K"] == "" else f", K = {row['K']}"
            lines.setdefault(f"{row['extra']}{share}, {row['combination']}", []).append(row)
    for axis, quantity in zip(axes, ("iterations", "CPU s"), strict=True):
        for label, points in lines.items():
            known = sorted([plain, *points], key=lambda row: row["M"])
            axis.plot([row["M"] for row in known], [row[quantity] for row in known], "o-", markersize=3, label=label)
        axis.set(xlabel="cuts per iteration, M", ylabel=quantity)
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / f"paper_dmc_{name}.png", dpi=90)
    plt.close(figure)


def main() -> None:
    """Run, then write tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--cache", default=None, help="folder for superpixels")
    parser.add_argument("--most-cuts", type=int, default=10)
    parser.add_argument("--C", type=float, default=None, help="instead of the settings' own")
    parser.add_argument("--quick", action="store_true", help="a quarter of the graphs")
    arguments = parser.parse_args()
    for name in arguments.sets:
        if arguments.C is not None:
            SETTINGS[name] = (arguments.C, *SETTINGS[name][1:])
        X, y = SETS[name](arguments.cache)
        if arguments.quick:
            X, y = X[::4], y[::4]
        rows = all_runs(name, X, y, arguments.most_cuts)
        C, epsilon, _ = SETTINGS[name]
        print(write_table(f"paper_dmc_{name}", rows, f"{name}: {len(X)} graphs, C = {C}, ε = {epsilon}."))
        draw(name, rows)
        if name != "horses":
            continue
        smaller = []
        for share in (0.25, 0.5, 1.0):
            data = fewer_features(X, y, share)
            for options in ({}, {"cuts_per_iteration": arguments.most_cuts, "diversity": 0.01}):
                smaller.append({"features": data[0][0].rows.shape[1], **run(name, *data, **options)})
                print(smaller[-1], flush=True)
        print(write_table(f"paper_dmc_{name}_features", smaller, f"{name}, with fewer node features."))


if __name__ == "__main__":
    main()
