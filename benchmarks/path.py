"""Ten values of C along a path against one fit at the largest: CPU time, the same relative gap at each.

    MAXMARGIN_DATA=... python benchmarks/path.py [--seeds 5] [--tol 1e-3]
    MAXMARGIN_DATA=... python benchmarks/path.py --data ewt --C 0.1

``features`` is CoNLL-2000 in the features that every tool was timed on, with C' = n C from 1 to 1000; the other corpora have
those of the papers (``_tagging.py``), with C/1000 to C. Both run in one process, one thread, loading excluded, in turn for each
seed of the order of visits: from one seed to the next a fit needs one iteration more or less, which is a tenth of its time. The
fit is made before and after the path, because machines change their speed; its time is the mean.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import _conll
import _tagging
import numpy as np
from _measure import Stopwatch, write_table

import maxmargin as mm
from maxmargin._train import solutions_at


def load(name: str) -> tuple[Any, Any, int]:
    """Return sequences, label numbers, and how many labels there are."""
    if name == "features":
        return *_conll.load("train"), len(_conll.tag_names())
    corpus = _tagging.load(name)
    return corpus.train.X, corpus.train.Y, len(corpus.labels)


def measure(X: Any, Y: Any, n_labels: int, largest: float, tol: float, seed: int) -> dict[str, Any]:
    """Return the CPU seconds of both, and what the points of the path took."""
    model = mm.models.Chain(n_labels)
    grid = np.geomspace(largest / 1000, largest, 10).tolist()
    how: dict[str, Any] = {"solver": "block-dual", "tol": tol, "random_state": seed}

    def fit() -> float:
        with Stopwatch() as watch:
            mm.train(model, X, Y, largest, **how)
        return watch.cpu

    before = fit()
    points, seconds, gaps = solutions_at(grid, model, X, Y, **how), [], []
    for _ in grid:
        with Stopwatch() as watch:
            gaps.append(next(points).certificate.relative_gap)
        seconds.append(watch.cpu)
    points.close()
    single = 0.5 * (before + fit())
    return {
        "seed": seed,
        "fit": single,
        "path": sum(seconds),
        "ratio": sum(seconds) / single,
        "largest gap": max(gaps),
        "points": " ".join(f"{s:.2f}" for s in seconds),
    }


def main() -> None:
    """Measure and write results/path.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="features", choices=["features", *_tagging.LOADERS])
    parser.add_argument("--C", type=float, help="the largest; 1000/n for features, else 0.1")
    parser.add_argument("--tol", type=float, default=1e-3)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    X, Y, n_labels = load(given.data)
    C = given.C or (1000 / len(X) if given.data == "features" else 0.1)
    rows = []
    for seed in range(given.seeds):
        rows.append(measure(X, Y, n_labels, C, given.tol, seed))
        print(rows[-1], flush=True)
    fit, path = (float(np.mean([row[name] for row in rows])) for name in ("fit", "path"))
    rows.append({"seed": "mean", "fit": fit, "path": path, "ratio": path / fit})
    note = f"{__doc__.splitlines()[0]} {given.data}, C = {C:.3g}, tol = {given.tol:g}."
    print(write_table("path", rows, note=note))


if __name__ == "__main__":
    main()
