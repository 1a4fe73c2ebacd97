"""Figures 1 to 9 of Joachims, Finley and Yu (2009), for multiclass (Covertype) and chains (CoNLL-2000 chunking).

    MAXMARGIN_DATA=... python benchmarks/paper_cp_figures.py [--quick] [--only 1,3,8] [--tasks multiclass,chain]

    1  CPU time against n: n-slack, 1-slack, 1-slack with cache
    2  CPU time against n with the best C' (beside the points) at each n: 1-slack without and with cache
    3  iterations against n: 1-slack without and with cache
    4  support vectors (cuts or planes with α > 0) against n
    5  oracle calls against n
    6  oracle calls against the size of the cache
    7  relative difference of the dual values of 1-slack and n-slack against C, and their test accuracies
    8  iterations (no cache) and oracle calls (cache) against ε
    9  iterations (no cache) and oracle calls (cache) against C

Writes results/cp_figures/figure_N.png and figure_N.csv, and runs.csv with every run. One run serves all figures it
belongs to. As in the paper C' = n·C is fixed where n varies, and ε = 0.1; the loss is 100·[y ≠ ȳ] for classes and the
number of wrong tags for chains. The paper's third task, parsing, is not in this library yet, and its tagging corpus is
not free: CoNLL-2000 stands in for it. The paper has Figures 6 to 9 at the largest n; here a middle n serves, because
n-slack would take hours. Hollow points are runs that --max-time cut short.
"""

from __future__ import annotations

import argparse
import csv
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.ticker
import numpy as np
from _measure import RESULTS
from theory import LOSS, N_CLASSES, N_TRAIN, covertype, run

import maxmargin as mm
from maxmargin.files import read_svm_hmm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

FOLDER = RESULTS / "cp_figures"
EPSILON = 0.1
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "n-slack": ("n-slack", {}),
    "1-slack": ("one-slack", {"cache_size": 0}),
    "1-slack (cache)": ("one-slack", {"cache_size": 10}),
}
COLORS = {"n-slack": "tab:red", "1-slack": "tab:blue", "1-slack (cache)": "tab:green"}
ONE_SLACK = ("1-slack", "1-slack (cache)")


@dataclass
class Sizes:
    """How large the experiments of one task are."""

    n: list[int]  # Figures 1 to 5
    n_slack: list[int]  # those of them that n-slack is run on
    n_fixed: int  # Figures 6 to 9
    C_total: float
    C_best: list[float]  # Figure 2 chooses among these
    C: list[float]  # Figures 7 and 9
    epsilon: list[float]  # Figure 8
    cache: list[int]  # Figure 6


@dataclass
class Task:
    """Data of one task; ``first(n)`` are n training examples."""

    name: str
    sizes: Sizes
    X: Any
    Y: Any
    X_test: Any
    Y_test: Any
    n_labels: int
    max_time: float
    runs: list[dict[str, Any]] = field(default_factory=list)

    def first(self, n: int) -> tuple[Any, Any]:
        """Return the first n training examples."""
        if self.name == "multiclass":
            return self.X[:n], self.Y[:n]
        return mm.models.Sequences(self.X.rows[: self.X.offsets[n]], self.X.lengths[:n]), self.Y[:n]

    def model(self) -> Any:
        """Return the model, untrained."""
        if self.name == "multiclass":
            return mm.models.Multiclass(N_CLASSES, cost=LOSS)
        return mm.models.Chain(self.n_labels)

    def accuracy(self, model: Any, w: Any) -> float:
        """Return the share of test rows or tokens that are right."""
        predicted = model.predict(self.X_test, w)
        if self.name == "multiclass":
            return float(np.mean(predicted == self.Y_test))
        return float(np.mean(np.concatenate(predicted) == np.concatenate(self.Y_test)))

    def train(
        self, method: str, n: int, C_total: float, epsilon: float = EPSILON, cache: int | None = None
    ) -> dict[str, Any]:
        """Return the run with these parameters, from memory where it was made before."""
        solver, options = METHODS[method]
        options = {"epsilon": epsilon, **options} | ({} if cache is None else {"cache_size": cache})
        size = options.get("cache_size", "")
        key = {"task": self.name, "method": method, "n": n, "C_total": C_total, "epsilon": epsilon, "cache": size}
        for known in self.runs:
            if key.items() <= known.items():
                return known
        model = self.model()
        X, Y = self.first(n)
        result = run(model, X, Y, solver, C_total / n, options, self.max_time)
        accuracy = self.accuracy(model, result.pop("solution").w)
        self.runs.append(key | result | {"accuracy": accuracy})
        shown = " ".join(f"{k}={v:.5g}" if isinstance(v, float) else f"{k}={v}" for k, v in self.runs[-1].items())
        print(shown, flush=True)
        return self.runs[-1]


def multiclass(quick: bool, max_time: float) -> Task:
    data = covertype()
    sizes = (
        Sizes([500, 1_000, 2_000, 5_000, 20_000], [500, 1_000, 2_000], 1_000, 1e5, [1e4, 1e5, 1e6], [1e3, 1e4, 1e5],
              [1.0, 0.3, 0.1, 0.03], [1, 2, 5, 10])
        if quick
        else Sizes([1_000, 5_000, 20_000, 100_000, N_TRAIN], [1_000, 5_000, 20_000], 20_000, 1e5, [1e4, 1e5, 1e6],
                   [1e3, 1e4, 1e5, 1e6], [1.0, 0.3, 0.1, 0.03, 0.01], [1, 2, 5, 10, 20, 50])
    )  # fmt: skip
    return Task("multiclass", sizes, data.X, data.y, data.X_test, data.y_test, N_CLASSES, max_time)


def chain(quick: bool, max_time: float) -> Task:
    folder = Path(os.environ["MAXMARGIN_DATA"]) / "features"
    X, lengths, y = read_svm_hmm(folder / "conll2000.train.svmhmm.gz", stacked=True)
    X_test, lengths_test, y_test = read_svm_hmm(
        folder / "conll2000.test.svmhmm.gz", X.shape[1], extra_features="ignore", stacked=True
    )
    n_labels = int(max(y.max(), y_test.max()))
    sizes = (
        Sizes([100, 200, 400, 800], [100, 200, 400], 200, 100.0, [10.0, 100.0], [10.0, 30.0, 100.0],
              [2.0, 1.0, 0.5, 0.2], [1, 2, 5, 10])
        if quick
        else Sizes([500, 1_000, 2_000, 4_000, len(lengths)], [500, 1_000, 2_000], 2_000, 1000.0, [100.0, 300.0, 1000.0],
                   [30.0, 100.0, 300.0, 1000.0], [1.0, 0.5, 0.2, 0.1], [1, 2, 5, 10, 20])
    )  # fmt: skip
    # Only the examples in use, and only their columns: the others keep a weight of 0 whatever is trained.
    lengths = lengths[: sizes.n[-1]]
    X, y = X[: lengths.sum()], y[: lengths.sum()]
    used = np.unique(X.indices)
    return Task(
        "chain",
        sizes,
        mm.models.Sequences(X[:, used], lengths),
        split(y, lengths),
        mm.models.Sequences(X_test[:, used], lengths_test),
        split(y_test, lengths_test),
        n_labels,
        max_time,
    )


def split(tags: np.ndarray, lengths: np.ndarray) -> list[np.ndarray]:
    """Return the tags of each sequence, from 0."""
    return np.split((tags - 1).astype(np.int32), np.cumsum(lengths)[:-1])


# ------------------------------------------------------------------------------------------------- figures


def against_n(
    tasks: list[Task], number: int, column: str, title: str, methods: tuple[str, ...] = tuple(METHODS)
) -> None:
    """Draw one column of the runs over n, a panel for each task and a line for each method."""
    rows = []
    for task in tasks:
        for method in methods:
            for n in task.sizes.n_slack if method == "n-slack" else task.sizes.n:
                result = task.train(method, n, task.sizes.C_total)
                rows.append(
                    {"task": task.name, "line": method, "x": n, "y": result[column], "converged": result["converged"]}
                )
    figure, panels = plt.subplots(1, len(tasks), figsize=(5 * len(tasks), 4), squeeze=False)
    for panel, task in zip(panels[0], tasks, strict=True):
        draw(panel, [row for row in rows if row["task"] == task.name], f"{task.name}, C' = {task.sizes.C_total:,.0f}")
        panel.set_xlabel("training examples")
        panel.set_ylabel(title)
        if column in ("cpu_s", "oracle_calls"):
            slope_of_one(panel)
    save(figure, number, rows)


def draw(panel: Any, rows: list[dict[str, Any]], title: str, colors: dict[str, str] | None = None) -> None:
    """Draw a line for each name, on logarithmic axes; runs that were cut short are hollow."""
    for line in dict.fromkeys(row["line"] for row in rows):
        points = [row for row in rows if row["line"] == line]
        x, y = [row["x"] for row in points], [row["y"] for row in points]
        (drawn,) = panel.plot(x, y, "o-", label=line, color=(colors or COLORS).get(line))
        cut = [row for row in points if not row["converged"]]
        panel.plot(
            [row["x"] for row in cut], [row["y"] for row in cut], "o", color="white", markeredgecolor=drawn.get_color()
        )
    panel.set_xscale("log")
    panel.set_yscale("log")
    low, high = panel.get_ylim()
    if high < 200 * low:
        # Over a decade or two there would be few ticks, or a dozen on top of each other.
        panel.yaxis.set_major_locator(matplotlib.ticker.LogLocator(subs=[1, 2, 5]))
    for axis in (panel.xaxis, panel.yaxis):
        axis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    marks = spread(sorted({row["x"] for row in rows}))
    panel.set_xticks(marks, [f"{mark / 1000:,.4g}k" if mark >= 1000 else f"{mark:g}" for mark in marks])
    panel.grid(alpha=0.3)
    panel.legend()
    panel.set_title(title)


def spread(marks: list[float]) -> list[float]:
    """Return marks that are far enough apart on a logarithmic axis for their labels."""
    least = (marks[-1] / marks[0]) ** 0.12
    chosen = [marks[-1]]
    for mark in reversed(marks[:-1]):
        if chosen[-1] / mark >= least:
            chosen.append(mark)
    return chosen[::-1]


def slope_of_one(panel: Any) -> None:
    """Draw a dotted line that is linear in x, for the eye."""
    (left, right), (low, high) = panel.get_xlim(), panel.get_ylim()
    panel.plot([left, right], [low, low * right / left], ":", color="gray", zorder=0)
    panel.set_xlim(left, right)
    panel.set_ylim(low, high)


def save(figure: Any, number: int, rows: list[dict[str, Any]]) -> None:
    """Write the picture, and beside it what it shows."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.suptitle(f"Figure {number}")
    figure.tight_layout()
    figure.savefig(FOLDER / f"figure_{number}.png", dpi=110)
    plt.close(figure)
    write_csv(FOLDER / f"figure_{number}.csv", rows)


def write_csv(path: Path, rows: list[dict[str, Any]]) -> None:
    with open(path, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(dict.fromkeys(key for row in rows for key in row)))
        writer.writeheader()
        writer.writerows(rows)


def figure_2(tasks: list[Task]) -> None:
    """CPU time with the C of the best test accuracy at each n."""
    rows = []
    for task in tasks:
        for method in ONE_SLACK:
            for n in task.sizes.n[:-1]:
                best = max((task.train(method, n, C) for C in task.sizes.C_best), key=lambda result: result["accuracy"])
                rows.append({"line": task.name, "panel": method, "x": n, "y": best["cpu_s"], "C_total": best["C_total"],
                             "accuracy": best["accuracy"], "converged": best["converged"]})  # fmt: skip
    two_panels(2, rows, "training examples", "CPU seconds", linear=True, note="C_total")


def figure_3(tasks: list[Task]) -> None:
    """Iterations against n."""
    rows = []
    for task in tasks:
        for method in ONE_SLACK:
            for n in task.sizes.n:
                result = task.train(method, n, task.sizes.C_total)
                rows.append({"line": task.name, "panel": method, "x": n, "y": result["iterations"],
                             "converged": result["converged"]})  # fmt: skip
    two_panels(3, rows, "training examples", "iterations", flat=True)


def figure_6(tasks: list[Task]) -> None:
    """Oracle calls against the size of the cache; the left end is no cache."""
    rows = []
    for task in tasks:
        for size in [0, *task.sizes.cache]:
            result = task.train("1-slack (cache)", task.sizes.n_fixed, task.sizes.C_total, cache=size)
            passes = result["oracle_calls"] / task.sizes.n_fixed
            rows.append({"line": f"{task.name}, n = {task.sizes.n_fixed:,}", "x": max(size, 0.5), "cache_size": size,
                         "y": passes, "converged": result["converged"]})  # fmt: skip
    figure, panel = plt.subplots(figsize=(5.5, 4))
    draw(panel, rows, "calls of the oracle per example")
    ticks = sorted({row["x"] for row in rows})
    panel.set_xticks(ticks, ["none" if tick < 1 else str(tick) for tick in ticks])
    panel.set_xlabel("size of the cache")
    panel.set_ylabel("passes over the data")
    save(figure, 6, rows)


def figure_7(tasks: list[Task]) -> None:
    """Relative difference of the dual values, 1-slack less n-slack; test accuracy of both."""
    rows = []
    for task in tasks:
        for C in task.sizes.C:
            ours, theirs = (task.train(method, task.sizes.n_fixed, C) for method in ("1-slack (cache)", "n-slack"))
            rows.append({"line": task.name, "x": C, "y": (ours["dual"] - theirs["dual"]) / theirs["dual"],
                         "accuracy 1-slack": ours["accuracy"], "accuracy n-slack": theirs["accuracy"],
                         "converged": ours["converged"] and theirs["converged"]})  # fmt: skip
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), width_ratios=[1, 1.2])
    for task in tasks:
        points = [row for row in rows if row["line"] == task.name]
        left.plot([row["x"] for row in points], [row["y"] for row in points], "o-", label=task.name)
    left.axhline(0.0, color="gray", lw=0.8)
    left.set_xscale("log")
    left.grid(alpha=0.3)
    left.legend()
    left.set_xlabel("C'")
    left.set_ylabel("(dual 1-slack − dual n-slack) / dual n-slack")
    cells = [
        [row["line"], f"{row['x']:g}", f"{row['accuracy 1-slack']:.2%}", f"{row['accuracy n-slack']:.2%}"]
        for row in rows
    ]
    right.axis("off")
    right.table(cells, colLabels=["task", "C'", "test, 1-slack", "test, n-slack"], loc="center").scale(1, 1.4)
    save(figure, 7, rows)


def figures_8_and_9(tasks: list[Task], number: int) -> None:
    """Iterations without and oracle calls with a cache, against ε or C'."""
    rows = []
    for task in tasks:
        for value in task.sizes.epsilon if number == 8 else task.sizes.C:
            for panel, method, column in (
                ("iterations, 1-slack", "1-slack", "iterations"),
                ("oracle passes, 1-slack (cache)", "1-slack (cache)", "oracle_calls"),
            ):
                if number == 8:
                    result = task.train(method, task.sizes.n_fixed, task.sizes.C_total, epsilon=value)
                else:
                    result = task.train(method, task.sizes.n_fixed, value)
                y = result[column] / (task.sizes.n_fixed if column == "oracle_calls" else 1)
                rows.append({"line": task.name, "panel": panel, "x": value, "y": y, "converged": result["converged"]})
    two_panels(number, rows, "ε" if number == 8 else "C'", "", flat=True)


def two_panels(
    number: int, rows: list[dict[str, Any]], x: str, y: str, *, linear: bool = False, flat: bool = False, note: str = ""
) -> None:
    """Draw the two panels of Figures 2, 3, 8 and 9, a line for each task; ``flat`` shows at least two decades of y."""
    names = list(dict.fromkeys(row["panel"] for row in rows))
    figure, panels = plt.subplots(1, 2, figsize=(10, 4))
    for panel, name in zip(panels, names, strict=True):
        draw(panel, [row for row in rows if row["panel"] == name], name)
        panel.set_xlabel(x)
        panel.set_ylabel(y)
        if flat:
            top = 2.0 * max(row["y"] for row in rows)
            panel.set_ylim(min(top / 100, 0.5 * min(row["y"] for row in rows)), top)
        for row in rows if note else []:
            if row["panel"] == name:
                panel.annotate(f"{row[note]:g}", (row["x"], row["y"]), (4, -12), textcoords="offset points", fontsize=7)
        if linear:
            slope_of_one(panel)
    save(figure, number, rows)


FIGURES = {
    1: lambda tasks: against_n(tasks, 1, "cpu_s", "CPU seconds"),
    2: figure_2,
    3: figure_3,
    4: lambda tasks: against_n(tasks, 4, "active", "support vectors (α > 0)"),
    5: lambda tasks: against_n(tasks, 5, "oracle_calls", "oracle calls"),
    6: figure_6,
    7: figure_7,
    8: lambda tasks: figures_8_and_9(tasks, 8),
    9: lambda tasks: figures_8_and_9(tasks, 9),
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The figures of the 1-slack paper.")
    parser.add_argument("--quick", action="store_true", help="small sizes: a minute or two")
    parser.add_argument("--only", type=lambda text: [int(part) for part in text.split(",")], default=list(FIGURES))
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=["multiclass", "chain"])
    parser.add_argument("--max-time", type=float, default=1800.0, help="seconds for one run")
    arguments = parser.parse_args()
    if "MAXMARGIN_DATA" not in os.environ:
        parser.error("set MAXMARGIN_DATA to the data folder")
    makers = {"multiclass": multiclass, "chain": chain}
    tasks = [makers[name](arguments.quick, arguments.max_time) for name in arguments.tasks]
    for number in arguments.only:
        FIGURES[number](tasks)
        write_csv(FOLDER / "runs.csv", [result for task in tasks for result in task.runs])
        print(f"figure {number}: {FOLDER / f'figure_{number}.png'}", flush=True)


if __name__ == "__main__":
    main()
