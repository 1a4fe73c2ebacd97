"""What the theory of the 1-slack method promises, on Covertype (Joachims, Finley and Yu 2009, sections 5.4 to 5.6).

    min_w  ½‖w‖² + (C'/n) Σ_i max_y [100·[y ≠ y_i] − w·(Ψ_i(y_i) − Ψ_i(y))]        C' = 100,000, ε = 0.1

At fixed C' the number of iterations must not depend on n, nor may the number of cuts with α > 0; CPU time is then
linear in n. n-slack, whose working set grows with n, is run on the smaller sizes for comparison.

    MAXMARGIN_DATA=... python benchmarks/theory.py [--sizes 1000,5000,20000,100000,522911] [--n-slack 1000,5000,20000]

Writes results/theory.md and .csv. Covertype: a random split with a fixed seed, the first n rows of it for training; the
ten quantities standardised by the whole training part, a constant column. CPU time is that of the training call, one
thread. An iteration of n-slack is a sweep over the examples; ``qps`` counts the QPs it solves on the way.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from _measure import Stopwatch, write_table
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.datasets import load_covtype

N_TRAIN = 522_911
N_QUANTITIES = 10
N_CLASSES = 7
C_TOTAL = 100_000.0
LOSS = 100.0
EPSILON = 0.1
SEED = 0
# The exponent of the CPU time is fitted from here on: below it, what does not depend on n counts.
FIT_FROM = 5_000


class Split(NamedTuple):
    """Covertype's training and test part; ``X.rows[:n]`` are the first n training rows."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


def covertype() -> Split:
    """Return Covertype shuffled by a fixed seed, standardised, with a constant column, classes 0 to 6."""
    table = load_covtype()
    order = np.random.default_rng(SEED).permutation(len(table.y))
    X, y = table.X[order], table.y[order] - 1
    quantities = X[:, :N_QUANTITIES]
    train = quantities[:N_TRAIN]
    X[:, :N_QUANTITIES] = (quantities - train.mean(axis=0)) / train.std(axis=0)
    rows = sp.csr_matrix(np.column_stack([X, np.ones(len(X))]))
    return Split(rows[:N_TRAIN], y[:N_TRAIN], rows[N_TRAIN:], y[N_TRAIN:])


def run(model: Any, X: Any, Y: Any, solver: str, C: float, options: dict[str, Any], max_time: float) -> dict[str, Any]:
    """Train once and return what a row of the tables needs; ``solution`` is the Solution itself."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with Stopwatch() as watch:
            solution = mm.train(
                model,
                X,
                Y,
                C=C,
                solver=solver,
                max_iter=None,
                max_time=max_time,
                random_state=SEED,
                solver_options=options,
            )
    certificate, last = solution.certificate, solution.history[-1]
    return {
        "iterations": len(solution.history),
        "qps": sum(record.get("qps", 1) for record in solution.history),
        "active": last["planes_active"] if solver == "n-slack" else last["cuts_active"],
        "cpu_s": watch.cpu,
        "oracle_calls": certificate.oracle_calls,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative_gap": certificate.relative_gap,
        "converged": certificate.converged,
        "solution": solution,
    }


def exponent(n: list[int], seconds: list[float]) -> float:
    """Return b of the least-squares fit seconds ∝ n^b."""
    return float(np.polyfit(np.log(n), np.log(seconds), 1)[0])


def sizes(text: str) -> list[int]:
    """Read numbers split by commas; an empty text is an empty list."""
    return [int(part) for part in text.split(",") if part]


# Name in the table, solver, options beside ε.
METHODS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("one-slack, no cache", "one-slack", {"cache_size": 0}),
    ("one-slack, cache of 10", "one-slack", {"cache_size": 10}),
    ("n-slack", "n-slack", {}),
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Iterations, cuts and CPU time against n on Covertype.")
    parser.add_argument("--sizes", type=sizes, default=[1_000, 5_000, 20_000, 100_000, N_TRAIN])
    parser.add_argument("--n-slack", type=sizes, default=[1_000, 5_000, 20_000], help="sizes for n-slack")
    parser.add_argument("--max-time", type=float, default=1800.0, help="seconds for one run")
    arguments = parser.parse_args()

    data = covertype()
    rows: list[dict[str, Any]] = []
    for name, solver, options in METHODS:
        for n in arguments.n_slack if solver == "n-slack" else arguments.sizes:
            model = mm.models.Multiclass(N_CLASSES, cost=LOSS)
            options = {"epsilon": EPSILON, **options}
            result = run(model, data.X[:n], data.y[:n], solver, C_TOTAL / n, options, arguments.max_time)
            solution = result.pop("solution")
            accuracy = float(np.mean(model.predict(data.X_test, solution.w) == data.y_test))
            rows.append({"method": name, "n": n, **result, "test_accuracy": accuracy})
            # Written after every run: a run that is cut short leaves what it had.
            table = write_table("theory", rows, note=summary(rows))
            print(table.splitlines()[-1], flush=True)
    print(table)


def summary(rows: list[dict[str, Any]]) -> str:
    """Return what the table shows of each method: the spread of iterations and the exponent of the time."""
    parts = [f"Covertype, C' = {C_TOTAL:,.0f}, loss {LOSS:g}, ε = {EPSILON}; time ∝ n^b fitted on n ≥ {FIT_FROM:,}"]
    for name in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == name]
        counts, large = [row["iterations"] for row in own], [row for row in own if row["n"] >= FIT_FROM]
        text = f"{name}: iterations within a factor {max(counts) / min(counts):.2f} of each other"
        if len(large) > 1:
            text += f", b = {exponent([row['n'] for row in large], [row['cpu_s'] for row in large]):.2f}"
        parts.append(text)
    return "; ".join(parts) + "."


if __name__ == "__main__":
    main()
