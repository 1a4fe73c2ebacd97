"""What a second thread is worth where decoding takes the time: wall seconds of whole trainings with n_jobs = 1 and 2.

    MAXMARGIN_DATA=... python benchmarks/threads.py [--sentences 1000]

    second order    UD English EWT, each label a pair of neighbouring tags (their first letters): 299 labels, margin rescaling
    slack           the same sentences, whole tags, slack rescaling, whose search is many times that of margin rescaling
    Python          a model in Python whose search sleeps 5 ms per example, in two processes

Trainings with one job and with two follow each other, and results are the same.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from _measure import Stopwatch, write_table
from _tagging import Corpus, load

import maxmargin as mm


def pairs_of_tags(corpus: Corpus) -> tuple[int, list[np.ndarray]]:
    """Return how many pairs (tag before, tag) there are, tags by their first letters, and the sentences in these labels."""
    letters = sorted({tag[0] for tag in corpus.labels})
    letter_of = np.array([letters.index(tag[0]) for tag in corpus.labels])
    Y = [letter_of[y] for y in corpus.train.Y]
    pairs = [y + (len(letters) + 1) * np.concatenate([[len(letters)], y[:-1]]) for y in Y]
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
    """Return the wall seconds of trainings with one job and with two."""
    wall, found = {}, {}
    for n_jobs in (1, 2):
        with Stopwatch() as watch:
            found[n_jobs] = train(n_jobs)
        wall[n_jobs] = watch.wall
    if not np.array_equal(found[1].w, found[2].w):
        raise RuntimeError(f"{what}: one job ends at {found[1].certificate}, two end at {found[2].certificate}.")
    row = {"problem": what, "1 job": wall[1], "2 jobs": wall[2], "times faster": wall[1] / wall[2]}
    print(row, flush=True)
    return row


def main() -> None:
    """Measure and write results/threads.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sentences", type=int, default=1000)
    arguments = parser.parse_args()
    corpus = load("ewt", n=arguments.sentences)
    part = corpus.train
    n_tags = len(corpus.labels)
    n_pairs, pairs = pairs_of_tags(corpus)
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
            lambda n: mm.train(
                mm.models.Chain(n_tags), part.X, part.Y, C, rescaling="slack", solver="block-dual", n_jobs=n
            ),
        ),
        compare(
            "Python, 5 ms a search",
            lambda n: mm.train(Sleeper(), list(X), y, C, solver="block-dual", n_jobs=n),
        ),
    ]
    print(
        write_table(
            "threads", rows, f"UD English EWT, {arguments.sentences} sentences, C = {C}, gap 1e-3; wall seconds."
        )
    )


if __name__ == "__main__":
    main()
