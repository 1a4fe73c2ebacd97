"""Table 1 and the figures of Yu and Joachims (2008), sampled cuts, on Checkers, Adult and Covertype.

    MAXMARGIN_DATA=... python benchmarks/paper_sc.py [--sets checkers,adult] [--most 100000] [--methods exact,constant-400]
                                                     [--max-time 600] [--seeds 1] [--redraw]

    Table 1      training and test error, CPU seconds, basis points at the largest size of each set that was run
    figures      CPU seconds, test error and number of cuts against n, for each set

The problem is LIBSVM's at the same C, the kernel exp(−‖x − z‖²/σ²), ε = 0.001, one thread:

    checkers     C = 1, σ² = 0.05, up to 1,000,000 points; 20,000 test points
    adult        C = 100, σ² = 20, Platt's 123 binary features, 22,697 training rows (those of the paper's size), the test part
    covtype      C = 1, σ² = 1.7, class 2 against the rest, columns scaled to [0, 1]; all 58,101 test rows
    covtype-std  the same with standardised columns

constant and linear are Algorithms 2 and 3 with r = 400 and 1000. Samples of constant are drawn in rounds, in which no example
comes twice; independent has r = 400 and draws each sample anew, up to 30,000 rows; averaged is constant, and linear-averaged
linear, that may end with the average of the iterates, which is our default and not the paper's. low-rank has 250, 500 or 5,000
random basis points under block-dual, exact is one-slack. SVC is LIBSVM with its bias, up to 50,000 rows. A method whose last size
took more than a quarter of --max-time is not tried on the next one. Writes results/paper_sc*.md, .csv and .png; results/paper_sc/
keeps the runs, and those in it are not run again.
"""

from __future__ import annotations

import argparse
import csv
import functools
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _measure import RESULTS, Stopwatch, in_fresh_process, write_table
from scipy.sparse import csr_array

import maxmargin as mm

FOLDER = RESULTS / "paper_sc"
METHODS = (
    *("constant-400", "independent-400", "averaged-400", "constant-1000", "averaged-1000"),
    *("linear-400", "linear-averaged-400", "linear-1000"),
    *("low-rank-250", "low-rank-500", "low-rank-5000", "exact", "SVC"),
)
# Colours tell methods apart, lines how large samples and bases are.
COLOURS = {
    **{"constant": "tab:blue", "independent": "tab:cyan", "averaged": "tab:purple"},
    **{
        "linear": "tab:green",
        "linear-averaged": "tab:olive",
        "low-rank": "tab:orange",
        "exact": "black",
        "SVC": "tab:red",
    },
}
LINES = {"250": ":", "400": "-", "500": "-", "1000": "--", "5000": "--"}
MOST = {"independent-400": 30_000, "linear-1000": 100_000, "low-rank-5000": 100_000, "SVC": 50_000}
EPSILON = 0.001


class Set(NamedTuple):
    """A data set with its C and kernel width, and the numbers of rows to train on."""

    C: float
    sigma2: float
    sizes: tuple[int, ...]


SETS = {
    "checkers": Set(1.0, 0.05, (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)),
    "adult": Set(100.0, 20.0, (1_000, 3_000, 10_000, 22_697)),
    "covtype": Set(1.0, 1.7, (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 522_910)),
    "covtype-std": Set(1.0, 1.7, (1_000, 3_000, 10_000, 30_000, 100_000)),
}


def load(name: str, n: int, seed: int) -> tuple[Any, Any, Any, Any]:
    """Return n training rows with their labels, and test rows with theirs."""
    if name == "checkers":
        train, test = (
            mm.datasets.make_checkers(n, random_state=seed),
            mm.datasets.make_checkers(20_000, random_state=10**6),
        )
        return train.X, train.y, test.X, test.y
    rng = np.random.default_rng(seed)
    if name == "adult":
        data = mm.datasets.load_adult_binary()
        rows = rng.permutation(len(data.train.y))[:n]
        return data.train.X[rows], data.train.y[rows], data.test.X, data.test.y
    table = mm.datasets.load_covtype()
    X, y = table.X, np.where(table.y == 2, 1, -1)
    X = (X - X.mean(0)) / X.std(0) if name == "covtype-std" else (X - X.min(0)) / (X.max(0) - X.min(0))
    rows = np.random.default_rng(0).permutation(len(X))
    test, train = rows[522_911:], rng.permutation(rows[:522_911])[:n]
    X = X.astype(np.float32)
    return X[train], y[train], X[test], y[test]


def svc_predict(svm: Any, gamma: float, X: Any) -> Any:
    """Return the predictions of SVC from kernel values in blocks, which takes a fraction of its own time."""
    kernel, coef = mm.Kernel("rbf", gamma=gamma), csr_array(svm.dual_coef_).toarray()[0]  # sparse where X is
    scores = [kernel(X[k : k + 1000], svm.support_vectors_) @ coef for k in range(0, X.shape[0], 1000)]
    return svm.classes_[(np.concatenate(scores) + svm.intercept_ > 0).astype(int)]


def run(name: str, method: str, n: int, seed: int, max_time: float) -> dict[str, Any]:
    """Train one method on one size."""
    data, (X, y, X_test, y_test) = SETS[name], load(name, n, seed)
    gamma = 1.0 / data.sigma2
    some = np.random.default_rng(0).permutation(n)[:10_000]
    if method == "SVC":
        from sklearn.svm import SVC

        with Stopwatch() as watch:
            svm: Any = SVC(C=data.C, gamma=gamma, cache_size=2000).fit(X, y)
        found: dict[str, Any] = {"basis points": len(svm.support_)}
        predict: Callable[[Any], Any] = functools.partial(svc_predict, svm, gamma)
    else:
        kind, _, number = method.rpartition("-")
        options: dict[str, Any] = {
            "solver": "one-slack",
            "solver_options": {"epsilon": EPSILON, "stabilization": "auto"},
        }
        if kind in ("constant", "independent", "averaged", "linear", "linear-averaged"):
            sampled = {
                "strategy": "linear" if kind.startswith("linear") else "constant",
                "sampling": "independent" if kind == "independent" else "uniform",
                "averaging": kind.endswith("averaged"),
                "sample_size": int(number),
                "epsilon": EPSILON,
                "dual_bound": False,
            }
            options = {"solver": "sampled-cuts", "solver_options": sampled}
        elif kind == "low-rank":
            options = {"kernel_approximation": "low-rank", "n_components": int(number), "solver": "block-dual"}
        svm = mm.BinarySVM(
            data.C, kernel="rbf", gamma=gamma, fit_intercept=False, max_time=max_time, random_state=seed, **options
        )
        with Stopwatch() as watch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            svm.fit(X, y)
        predict = svm.predict
        certificate = svm.certificate_
        found = {
            "basis points": svm.expansion_.size,
            "iterations": svm.n_iter_,
            "cuts": svm.history_[-1].get("cuts"),
            "primal": certificate.primal,
            "dual": certificate.dual,
            "converged": certificate.converged,
        }
    return {
        "set": name,
        "method": method,
        "n": n,
        "seed": seed,
        "CPU s": watch.cpu,
        "train error %": 100 * float(np.mean(predict(X[some]) != y[some])),
        "test error %": 100 * float(np.mean(predict(X_test) != y_test)),
        **found,
    }


def kept() -> list[dict[str, Any]]:
    """Return the runs in results/paper_sc, numbers as such."""
    rows = []
    for file in sorted(FOLDER.glob("*.csv")):
        with open(file, newline="", encoding="utf-8") as stream:
            rows += [{key: _number(value) for key, value in row.items()} for row in csv.DictReader(stream)]
    return rows


def _number(text: str) -> Any:
    try:
        value = float(text)
    except ValueError:
        return text
    return int(value) if value.is_integer() else value


def keep(row: dict[str, Any]) -> None:
    """Write a run to its file."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    file: Path = FOLDER / f"{row['set']} {row['method']} {row['n']} {row['seed']}.csv"
    with open(file, "w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(row))
        writer.writeheader()
        writer.writerow(row)


def run_all(arguments: argparse.Namespace) -> None:
    """Make all runs that are not there yet, the small ones first."""
    for name in arguments.sets:
        for method in arguments.methods:
            last = 0.0
            for n in SETS[name].sizes:
                if n > min(arguments.most, MOST.get(method, n)) or last > 0.25 * arguments.max_time:
                    break
                for seed in range(arguments.seeds):
                    known = [
                        row["CPU s"]
                        for row in kept()
                        if (row["set"], row["method"], row["n"], row["seed"]) == (name, method, n, seed)
                    ]
                    if known:
                        last = known[0]
                        continue
                    measured = in_fresh_process(run, name, method, n, seed, arguments.max_time)
                    row = {**measured.result, "peak MB": measured.peak_memory / 1e6}
                    last = row["CPU s"]
                    keep(row)
                    print(*(f"{key} {value}" for key, value in row.items()), sep=", ", flush=True)


def report() -> None:
    """Write the table of the largest sizes and draw the figures."""
    rows = kept()
    largest = [
        max((row for row in rows if (row["set"], row["method"]) == pair), key=lambda row: (row["n"], -row["seed"]))
        for pair in dict.fromkeys((row["set"], row["method"]) for row in rows)
    ]
    print(write_table("paper_sc_table_1", largest, "The largest size of each set and method that was run, C' = nC."))
    write_table("paper_sc_runs", rows, "All runs.")
    for name in dict.fromkeys(row["set"] for row in rows):
        draw(name, [row for row in rows if row["set"] == name])


def draw(name: str, rows: list[dict[str, Any]]) -> None:
    """Draw time, error and cuts against n."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    quantities = ("CPU s", "test error %", "cuts")
    figure, axes = plt.subplots(1, len(quantities), figsize=(13, 4), layout="constrained")
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        sizes = sorted({row["n"] for row in mine})
        for axis, quantity in zip(axes, quantities, strict=True):
            values = [
                [row[quantity] for row in mine if row["n"] == n and row.get(quantity) not in ("", None)] for n in sizes
            ]
            points = [(n, np.mean(found)) for n, found in zip(sizes, values, strict=True) if found]
            if points:
                family, _, size = method.rpartition("-")
                style = {"color": COLOURS[family or method], "linestyle": LINES.get(size, "-")}
                axis.plot(*zip(*points, strict=True), marker="o", markersize=3, label=method, **style)
    for axis, quantity in zip(axes, quantities, strict=True):
        axis.set(xscale="log", xlabel="training rows", ylabel=quantity)
        axis.grid(alpha=0.3)
        if quantity != "test error %":
            axis.set_yscale("log")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", fontsize=8)
    figure.suptitle(name)
    figure.savefig(RESULTS / f"paper_sc_{name}.png", dpi=90)
    plt.close(figure)


def main() -> None:
    """Run, then write tables and figures."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--methods", type=lambda text: text.split(","), default=list(METHODS))
    parser.add_argument("--most", type=int, default=10**9, help="most training rows")
    parser.add_argument("--max-time", type=float, default=600.0, help="seconds for one training")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--redraw", action="store_true", help="no training: table and figures of the runs that are kept"
    )
    arguments = parser.parse_args()
    if not arguments.redraw:
        run_all(arguments)
    report()


if __name__ == "__main__":
    main()
