"""Iterations and time of DivMCuts (Guzman-Rivera, Kohli and Batra 2013) on segmentation and side chains: its figures 2 to 5.

    MAXMARGIN_DATA=... python benchmarks/paper_dmc.py [--sets horses] [--cache FOLDER] [--M 4,10,30] [--C C] [--epsilon ε]
                                                      [--sources diverse,mixed] [--K 0.01,0.03,0.1] [--quick]

    horses        200 training images of Weizmann horses in superpixels, 52 node and 3 edge features, Potts weights ≥ 0, cuts
    side-chains   39 training proteins, nodes with rotamers as candidates, 8 energy terms, weights ≥ 0, TRW-S

One-slack without stabilisation, C and ε as below, one thread. M cuts per iteration from diverse outputs with the set point K;
the baselines are M = 1, the next best outputs and random ones, and beyond the paper mixes of two passes, of which there may be
many: on horses they are dropped after 20 QPs without α, and M = 1 is run with that too. With and without the cache of planes,
combined as in the paper's DOP1 with the first K and up to 10 cuts. On horses again with fewer node features, with the first K
and the most cuts. One cut is run first and last, because machines change their speed. Writes results/paper_dmc_*.md and .png.
Superpixels are kept in --cache.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _measure import RESULTS, Stopwatch, write_table

import maxmargin as mm

for folder in ("segmentation", "side_chains"):
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples" / folder))


class Setting(NamedTuple):
    """How a set is trained."""

    C: float  # the public one
    epsilon: float  # the paper's, in units of mean loss; a graph weighs as much as it has nodes
    nonnegative: str
    mixed_pruned_after: int  # QPs without α after which mixed cuts are dropped


USUALLY_PRUNED_AFTER = 50
SETTINGS = {"horses": Setting(0.1, 0.5, "edges", 20), "side-chains": Setting(0.3, 0.1, "all", 50)}


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
    setting = SETTINGS[name]
    options = {"epsilon": setting.epsilon, "cache_size": 0, **options}
    svm = mm.GraphSVM(setting.C, nonnegative=setting.nonnegative, solver="one-slack", solver_options=options)
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
        "pruned after": options.get("prune_after", USUALLY_PRUNED_AFTER),
        "iterations": len(history),
        "exact iterations": sum(not record["from_cache"] for record in history),
        "CPU s": watch.cpu,
        "searches": svm.certificate_.oracle_calls,
        "extra s": sum(record["time_extra"] for record in history),
        "QP s": sum(record["time_qp"] for record in history),
        "gap": svm.certificate_.relative_gap,
    }


def all_runs(name: str, X: list[mm.Graph], y: list[Any], given: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the runs of figures 2 to 4 and of both tables."""
    rows = []
    most, few, pruned = max(given.M), min(max(given.M), 4), {"prune_after": SETTINGS[name].mixed_pruned_after}

    def add(source: str = "", **options: Any) -> None:
        if source:
            if source not in given.sources:
                return
            options["extra_cuts"] = source
        rows.append(run(name, X, y, **options))
        print(rows[-1], flush=True)

    add()
    if pruned["prune_after"] != USUALLY_PRUNED_AFTER:
        add(**pruned)
    add(cache_size=10)
    for M in given.M:
        for K in given.K:
            add("diverse", cuts_per_iteration=M, diversity=K)
        add("random", cuts_per_iteration=M, diversity=0.03)
        add("mixed", cuts_per_iteration=M, **pruned)
    for M in sorted({2, few}):
        add("m-best", cuts_per_iteration=M)
    for combination in ("violation", "dual"):
        for M in sorted({few, min(most, 10)}):
            add("diverse", cuts_per_iteration=M, diversity=given.K[0], combination=combination)
    add("diverse", cuts_per_iteration=min(most, 10), diversity=given.K[-1], cut_annealing=0.97)
    add("diverse", cuts_per_iteration=few, diversity=given.K[0], cache_size=10)
    add("mixed", cuts_per_iteration=few, cache_size=10)
    add()
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
    plain = {row["pruned after"]: row for row in rows if row["M"] == 1 and row["cache"] == 0}
    lines: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["M"] > 1 and row["cache"] == 0 and row["annealing"] == "":
            share = "" if row["K"] == "" else f", K = {row['K']}"
            lines.setdefault(f"{row['extra']}{share}, {row['combination']}", []).append(row)
    for axis, quantity in zip(axes, ("iterations", "CPU s"), strict=True):
        for label, points in lines.items():
            known = sorted([plain[points[0]["pruned after"]], *points], key=lambda row: row["M"])
            axis.plot([row["M"] for row in known], [row[quantity] for row in known], "o-", markersize=3, label=label)
        axis.set(xlabel="cuts per iteration, M", ylabel=quantity)
        axis.grid(alpha=0.3)
    axes[1].legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(RESULTS / f"paper_dmc_{name}.png", dpi=90)
    plt.close(figure)


def numbers(kind: type) -> Callable[[str], list[Any]]:
    """Return a reader of numbers with commas between them."""
    return lambda text: [kind(part) for part in text.split(",")]


def main() -> None:
    """Run, then write tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--cache", default=None, help="folder for superpixels")
    parser.add_argument("--M", type=numbers(int), default=[2, 3, 4, 6, 10, 20, 30])
    parser.add_argument("--C", type=float, default=None, help="instead of the settings' own")
    parser.add_argument("--epsilon", type=float, default=None, help="likewise")
    parser.add_argument(
        "--sources", type=lambda text: text.split(","), default=["diverse", "m-best", "random", "mixed"]
    )
    parser.add_argument("--K", type=numbers(float), default=[0.01, 0.03, 0.1])
    parser.add_argument("--quick", action="store_true", help="a quarter of the graphs")
    arguments = parser.parse_args()
    for name in arguments.sets:
        usual = SETTINGS[name]
        setting = usual._replace(C=arguments.C or usual.C, epsilon=arguments.epsilon or usual.epsilon)
        SETTINGS[name] = setting
        X, y = SETS[name](arguments.cache)
        if arguments.quick:
            X, y = X[::4], y[::4]
        rows = all_runs(name, X, y, arguments)
        note = f"{name}: {len(X)} graphs, C = {setting.C}, ε = {setting.epsilon}."
        print(write_table(f"paper_dmc_{name}", rows, note))
        draw(name, rows)
        if name != "horses":
            continue
        smaller = []
        for share in (0.25, 0.5, 1.0):
            data = fewer_features(X, y, share)
            pruned, most = {"prune_after": setting.mixed_pruned_after}, {"cuts_per_iteration": max(arguments.M)}
            diverse, mixed = {**most, "diversity": arguments.K[0]}, {**most, **pruned, "extra_cuts": "mixed"}
            for options in ({}, diverse, pruned, mixed):
                smaller.append({"features": data[0][0].rows.shape[1], **run(name, *data, **options)})
                print(smaller[-1], flush=True)
        print(write_table(f"paper_dmc_{name}_features", smaller, f"{name}, with fewer node features."))


if __name__ == "__main__":
    main()
