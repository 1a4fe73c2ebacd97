"""Ten values of C along a path against one fit at the largest: CPU time, CoNLL-2000, C' = 1 … 1000, relative gap 1e-3 at each.

    MAXMARGIN_DATA=... python benchmarks/path.py [--seeds 5]

Both run in one process, one thread, loading excluded, in turn for each seed of the order of visits: from one seed to the next a
fit needs one iteration more or less, which is a tenth of its time.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _conll import load
from _measure import Stopwatch, write_table

import maxmargin as mm
from maxmargin._train import solutions_at


def measure(X: Any, Y: Any, seed: int) -> dict[str, Any]:
    """Return the CPU seconds of both, and what the points of the path took."""
    model, largest = mm.models.Chain(22), 1000 / len(X)
    grid = np.geomspace(largest / 1000, largest, 10).tolist()
    how: dict[str, Any] = {"solver": "block-dual", "tol": 1e-3, "random_state": seed}
    with Stopwatch() as single:
        mm.train(model, X, Y, largest, **how)
    points, seconds, gaps = solutions_at(grid, model, X, Y, **how), [], []
    for _ in grid:
        with Stopwatch() as watch:
            gaps.append(next(points).certificate.relative_gap)
        seconds.append(watch.cpu)
    points.close()
    return {
        "seed": seed,
        "fit": single.cpu,
        "path": sum(seconds),
        "ratio": sum(seconds) / single.cpu,
        "largest gap": max(gaps),
        "points": " ".join(f"{s:.2f}" for s in seconds),
    }


def main() -> None:
    """Measure and write results/path.md."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    n_seeds = parser.parse_args().seeds
    X, Y = load("train")
    rows = []
    for seed in range(n_seeds):
        rows.append(measure(X, Y, seed))
        print(rows[-1], flush=True)
    fit, path = (float(np.mean([row[name] for row in rows])) for name in ("fit", "path"))
    rows.append({"seed": "mean", "fit": fit, "path": path, "ratio": path / fit})
    print(write_table("path", rows, note=__doc__.splitlines()[0]))


if __name__ == "__main__":
    main()
