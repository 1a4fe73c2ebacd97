"""What a second thread is worth where decoding takes the time: wall seconds of whole trainings with n_jobs = 1 and 2.

    MAXMARGIN_DATA=... python benchmarks/threads.py [--sentences 1500]

    second order    UD English EWT, each label a pair of neighbouring tags: some hundred labels, margin rescaling
    slack           UD English EWT, single tags, slack rescaling, whose search is many times that of margin rescaling
    Python          a model in Python whose search sleeps 5 ms per example, in two processes

Trainings with one and two jobs follow each other, three times over; the least wall time of each counts, and results are the same.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from _measure import Stopwatch, write_table
from _tagging import Part, load

import maxmargin as mm

REPEATS = 3


def pairs_of_tags(part: Part) -> tuple[int, list[np.ndarray]]:
    """Return how many pairs (tag before, tag) there are, and the sentences in these labels."""
    n_tags = 1 + max(int(y.max()) for y in part.Y)
    pairs = [y + (n_tags + 1) * np.concatenate([[n_tags], y[:-1]]) for y in part.Y]
    known = np.unique(np.concatenate(pairs))
    return len(known), [np.searchsorted(known, pair).astype(np.int32) for pair in pairs]


class Sleeper(mm.Model):
    """Multiclass in Python, slow to search."""

    def __init__(self, n_classes: int = 5) -> None:
        self.n_classes = n_classes

    def initialize(self, X: Any, Y: Any) -> None:
        """Learn how long x is."""
        self.n_features = self.n_classes * len(X[0])

    def outputs(self, x: Any) -> range:
        """Return all classes, after a while."""
        time.sleep(0.005)
        return range(self.n_classes)

    def joint_feature(self, x: Any, y: int) -> np.ndarray:
        """Return x at the place of class y."""
        psi = np.zeros((self.n_classes, len(x)))
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true: int, y: int) -> float:
        """Return 1 for the wrong class."""
        return float(y_true != y)


def compare(what: str, train: Any) -> dict[str, Any]:
    """Return the least wall seconds of trainings with one job and with two."""
    best = {1: np.inf, 2: np.inf}
    primals = {}
    for _ in range(REPEATS):
        for n_jobs in best:
            with Stopwatch() as watch:
                primals[n_jobs] = train(n_jobs).certificate.primal
            best[n_jobs] = min(best[n_jobs], watch.wall)
    if primals[1] != primals[2]:
        raise RuntimeError(f"{what}: one job ends at {primals[1]}, two end at {primals[2]}.")
    return {"problem": what, "1 job": best[1], "2 jobs": best[2], "times faster": best[1] / best[2]}


def main() -> None:
    """Measure and write results/threads.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1500)
    arguments = parser.parse_args()
    part = load("ewt", n=arguments.sentences).train
    n_tags = 1 + max(int(y.max()) for y in part.Y)
    n_pairs, pairs = pairs_of_tags(part)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    y = np.argmax(X @ rng.normal(size=(8, 5)) + rng.normal(size=(300, 5)), axis=1).tolist()
    C = 0.1
    rows = [
        compare(
            f"second order, {n_pairs} labels",
            lambda n: mm.train(mm.models.Chain(n_pairs), part.X, pairs, C, solver="block-dual", n_jobs=n),
        ),
        compare(
            f"slack, {n_tags} labels",
            lambda n: mm.train(mm.models.Chain(n_tags), part.X, part.Y, C, rescaling="slack", solver="block-dual", n_jobs=n),
        ),
        compare(
            "Python, 5 ms a search",
            lambda n: mm.train(Sleeper(), list(X), y, C, solver="block-dual", n_jobs=n),
        ),
    ]
    print(write_table("threads", rows, f"UD English EWT, {arguments.sentences} sentences, C = {C}, gap 1e-3; wall seconds."))


if __name__ == "__main__":
    main()
