"""Models in Python, whose searches take the time: how many passes over the examples each solver makes to the same gap.

    python benchmarks/dear_searches.py [solver ...] [--tol 1e-2] [--max-time 10] [--search-seconds 0.01]

Noisy classes and noisy sequences, 50 to 2,000 of them with 80 to 336 weights, under the hinge (C = 0.01 … 100) and the squared
hinge (C = 0.01 … 10). A pass is as many searches as there are examples, whoever they are for. With --search-seconds block-dual
is told that searches take so long, as "auto" tells it where they take milliseconds. Writes results/dear_searches.md.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any

import numpy as np
from _measure import Stopwatch, write_table

import maxmargin as mm

LOSSES = {"hinge": (0.01, 0.1, 1.0, 10.0, 100.0), "squared_hinge": (0.01, 0.1, 1.0, 10.0)}


class Classes(mm.Model):
    """One of some classes for a row."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels

    def initialize(self, X: Any, Y: Any) -> None:
        self.n_features = self.n_labels * X.shape[1]

    def joint_feature(self, x: Any, y: int) -> Any:
        psi = np.zeros((self.n_labels, len(x)))
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true: int, y: int) -> float:
        return float(y_true != y)

    def argmax(self, x: Any, w: Any) -> int:
        return int(np.argmax(w.reshape(self.n_labels, -1) @ x))

    def loss_augmented_argmax(self, x: Any, y_true: int, w: Any) -> int:
        scores = w.reshape(self.n_labels, -1) @ x + 1.0
        scores[y_true] -= 1.0
        return int(np.argmax(scores))


class Sequences(mm.Model):
    """A label for each row of a sequence, with weights for pairs of neighbours."""

    def __init__(self, n_labels: int) -> None:
        self.n_labels = n_labels

    def initialize(self, X: Any, Y: Any) -> None:
        self.n_emissions = self.n_labels * X[0].shape[1]
        self.n_features = self.n_emissions + self.n_labels**2

    def joint_feature(self, x: Any, y: Any) -> Any:
        emissions, pairs = np.zeros((self.n_labels, x.shape[1])), np.zeros((self.n_labels, self.n_labels))
        np.add.at(emissions, y, x)
        np.add.at(pairs, (y[:-1], y[1:]), 1.0)
        return np.concatenate([emissions.ravel(), pairs.ravel()])

    def loss(self, y_true: Any, y: Any) -> float:
        return float(np.sum(y_true != y))

    def argmax(self, x: Any, w: Any) -> Any:
        return best_path(*self._scores(x, w))

    def loss_augmented_argmax(self, x: Any, y_true: Any, w: Any) -> Any:
        scores, pairs = self._scores(x, w)
        scores += 1.0
        scores[np.arange(len(y_true)), y_true] -= 1.0
        return best_path(scores, pairs)

    def _scores(self, x: Any, w: Any) -> tuple[Any, Any]:
        emissions = w[: self.n_emissions].reshape(self.n_labels, -1)
        return x @ emissions.T, w[self.n_emissions :].reshape(self.n_labels, self.n_labels)


def best_path(scores: Any, pairs: Any) -> Any:
    """Return the labels of the highest sum, by dynamic programming."""
    best, origins = scores[0], []
    for row in scores[1:]:
        sums = best[:, None] + pairs
        origins.append(sums.argmax(axis=0))
        best = sums.max(axis=0) + row
    labels = [int(best.argmax())]
    for origin in reversed(origins):
        labels.append(int(origin[labels[-1]]))
    return np.array(labels[::-1])


def classes(n: int, n_features: int, noise: float, n_labels: int = 8) -> tuple[mm.Model, Any, Any]:
    """Return a problem of classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, n_features))
    truth = X @ rng.normal(size=(n_features, n_labels))
    return Classes(n_labels), X, np.argmax(truth + noise * np.sqrt(n_features) * rng.normal(size=truth.shape), axis=1)


def sequences(n: int, n_features: int, noise: float, n_labels: int = 6, length: int = 8) -> tuple[mm.Model, Any, Any]:
    """Return a problem of sequences."""
    rng = np.random.default_rng(0)
    emissions, pairs = rng.normal(size=(n_features, n_labels)), rng.normal(size=(n_labels, n_labels))
    X = [rng.normal(size=(length, n_features)) for _ in range(n)]
    noises = noise * np.sqrt(n_features) * rng.normal(size=(n, length, n_labels))
    return Sequences(n_labels), X, [best_path(x @ emissions + e, pairs) for x, e in zip(X, noises, strict=True)]


PROBLEMS = {
    "400 rows, 240 weights": lambda: classes(400, 30, 0.5),
    "2,000 rows, 80 weights": lambda: classes(2000, 10, 1.0),
    "50 sequences, 336 weights": lambda: sequences(50, 50, 0.3),
    "200 sequences, 156 weights": lambda: sequences(200, 20, 0.3),
    "800 sequences, 96 weights": lambda: sequences(800, 10, 0.6),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("solvers", nargs="*", default=["block-dual", "one-slack", "n-slack", "sdm"])
    parser.add_argument("--tol", type=float, default=1e-2)
    parser.add_argument("--max-time", type=float, default=10.0)
    parser.add_argument("--search-seconds", type=float)
    given = parser.parse_args()
    warnings.simplefilter("ignore")  # runs that end by max_time are marked
    rows = [row_of(loss, name, C, given) for loss, Cs in LOSSES.items() for name in PROBLEMS for C in Cs]
    title = f"Passes to a relative gap of {given.tol:g}, and CPU seconds; > where {given.max_time:g} s did not suffice."
    print(write_table("dear_searches", rows, title))
    for solver in given.solvers:
        passes = [float(row[solver].lstrip("> ")) for row in rows if row[solver]]
        print(f"{solver}: {np.exp(np.mean(np.log(passes))):.1f} passes in the geometric mean of {len(passes)} problems")


def row_of(loss: str, name: str, C: float, given: argparse.Namespace) -> dict[str, Any]:
    """Return the passes and seconds of all solvers on one problem."""
    row: dict[str, Any] = {"loss": loss, "problem": name, "C": C}
    for solver in given.solvers:
        model, X, Y = PROBLEMS[name]()
        can = solver not in ("one-slack", "sdm") or loss == "hinge"
        row[solver] = row[f"{solver}, s"] = ""
        if can:
            options = {"search_seconds": given.search_seconds} if solver == "block-dual" else None
            limits = {"tol": given.tol, "max_time": given.max_time}
            with Stopwatch() as watch:
                solution = mm.train(model, X, Y, C, loss=loss, solver=solver, solver_options=options, **limits)
            mark = "" if solution.certificate.converged else "> "
            row[solver] = f"{mark}{solution.certificate.oracle_calls / len(X):.1f}"
            row[f"{solver}, s"] = f"{watch.cpu:.2g}"
    print(row, flush=True)
    return row


if __name__ == "__main__":
    main()
