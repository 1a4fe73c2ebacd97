"""Whether the solvers agree on real data: OCR letters, the small task (train on fold 0), hinge and squared hinge.

    MAXMARGIN_DATA=... python benchmarks/agreement.py [--C 0.1]

Each solver gives an interval [dual, primal] in which the optimum lies. Some run to a relative gap of 1e-5 (squared hinge: 1e-4),
the others to larger ones; all intervals must have a point in common, and the duals of the former differ by no more than that.
"""

from __future__ import annotations

import argparse
import os
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _measure import Stopwatch, write_table

import maxmargin as mm

TOLERANCES = {
    "hinge": {"block-dual": 1e-5, "sdm": 1e-5, "n-slack": 1e-5, "one-slack": 1e-3, "bcfw": 1e-2},
    "squared_hinge": {"block-dual": 1e-4, "dcd": 1e-4, "cpd": 1e-3, "dcd-light": 1e-2},
}


def main() -> None:
    """Run the solvers, write results/agreement.md, and fail where they differ."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--C", type=float, default=0.1)
    C = parser.parse_args().C
    X, words = mm.datasets.load_ocr_letters().select(0)
    Y = [np.array([ord(letter) - ord("a") for letter in word]) for word in words]
    rows: list[dict[str, Any]] = []
    for loss, tolerances in TOLERANCES.items():
        found = {}
        for solver, tol in tolerances.items():
            with Stopwatch() as watch:
                solution = mm.train(mm.models.Chain(26), X, Y, C, solver=solver, loss=loss, tol=tol, max_iter=100_000)
            found[solver] = one = solution.certificate
            rows.append(
                {
                    "loss": loss,
                    "solver": solver,
                    "dual": f"{one.dual:.6f}",
                    "primal": f"{one.primal:.6f}",
                    "CPU s": watch.cpu,
                }
            )
            print(rows[-1], flush=True)
        least = min(tolerances.values())
        duals = np.array([found[solver].dual for solver, tol in tolerances.items() if tol == least])
        if max(one.dual for one in found.values()) > min(one.primal for one in found.values()):
            raise SystemExit(f"{loss}: the intervals have no point in common.")
        if duals.max() - duals.min() > least * duals.max():
            raise SystemExit(f"{loss}: duals differ, {duals}.")
    print(
        write_table(
            "agreement", rows, f"OCR letters, {len(X)} words of fold 0, C = {C}: all intervals have a point in common."
        )
    )


if __name__ == "__main__":
    main()
