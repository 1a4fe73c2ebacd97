"""Ten values of C along a path against one fit at the largest: CPU time, CoNLL-2000, C' = 1 … 1000, relative gap 1e-3 at each.

    MAXMARGIN_DATA=... python benchmarks/path.py

Both run in one process, one thread, loading excluded; the single fit is made before and after the path.
"""

from __future__ import annotations

import os

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from _conll import load
from _measure import Stopwatch, write_table


def main() -> None:
    """Measure and write results/path.md."""
    import numpy as np

    import maxmargin as mm
    from maxmargin._train import solutions_at

    X, Y = load("train")
    largest = 1000 / len(X)
    grid = np.geomspace(largest / 1000, largest, 10)
    model = mm.models.Chain(22)

    def single() -> float:
        with Stopwatch() as watch:
            mm.train(model, X, Y, largest, solver="block-dual", tol=1e-3)
        return watch.cpu

    singles = [single()]
    rows: list[dict[str, object]] = []
    points = solutions_at(grid.tolist(), model, X, Y, solver="block-dual", tol=1e-3)
    for C in grid.tolist():
        with Stopwatch() as watch:
            solution = next(points)
        found = solution.certificate
        calls = found.oracle_calls / len(X)
        rows.append({"run": f"C' = {C * len(X):.3g}", "CPU s": watch.cpu, "passes": calls, "gap": found.relative_gap})
        print(rows[-1], flush=True)
    points.close()
    total = sum(float(str(row["CPU s"])) for row in rows)
    singles.append(single())
    mean = sum(singles) / 2
    rows.append({"run": "the path", "CPU s": total, "times the single fit": total / mean})
    rows.append({"run": "the single fit at C' = 1000, mean of two", "CPU s": mean})
    print(write_table("path", rows, note=__doc__.splitlines()[0]))


if __name__ == "__main__":
    main()
