"""Which solver? Curves of the duality gap against CPU time, on CoNLL-2000 chunking.

    MAXMARGIN_DATA=... python benchmarks/which_solver.py [--max-cpu 60] [--solvers block-dual,sdm,…]

Every solver trains once, in a process of its own, at C' = 1000 (the squared hinge at the same C), until its gap is 0.1 % or its
CPU time is used up. Writes results/which_solver.csv and .md, and docs/images/which_solver.png, which shows the last curve of
every solver.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from _conll import load
from _measure import RESULTS, in_fresh_process, write_table

SOLVERS = {
    "block-dual": "hinge",
    "sdm": "hinge",
    "one-slack": "hinge",
    "n-slack": "hinge",
    "bcfw": "hinge",
    "line-search": "hinge",
    "dcd": "squared_hinge",
    "dcd-light": "squared_hinge",
    "cpd": "squared_hinge",
    "block-dual, squared hinge": "squared_hinge",
}
PICTURE = Path(__file__).parent.parent / "docs" / "images" / "which_solver.png"


def curve(name: str, loss: str, max_cpu: float) -> list[dict[str, Any]]:
    """Train once and return CPU seconds and relative gap of every record."""
    import warnings

    import maxmargin as mm

    data, Y = load("train")
    solver = name.split(",")[0]
    points: list[dict[str, Any]] = []
    start = time.process_time()

    def note(record: dict[str, Any]) -> bool:
        cpu = time.process_time() - start
        if record["gap"] is not None:
            points.append({"solver": name, "cpu": cpu, "gap": record["relative_gap"]})
        return cpu > max_cpu

    options = {"stabilization": "auto"} if solver == "one-slack" else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mm.train(
            mm.models.Chain(22),
            data,
            Y,
            C=1000 / len(data),
            solver=solver,
            loss=loss,
            callback=note,
            solver_options=options,
        )
    return points


def draw() -> None:
    """Draw the curves that were measured last, both losses side by side."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True)
    for name in SOLVERS:
        kept = RESULTS / f"curve of {name}.json"
        if not kept.exists():
            continue
        points = json.loads(kept.read_text())
        axis = axes[int(SOLVERS[name] == "squared_hinge")]
        axis.loglog([p["cpu"] for p in points], [p["gap"] for p in points], marker=".", label=name.split(",")[0])
    for axis, title in zip(axes, ("hinge", "squared hinge"), strict=True):
        axis.set(title=title, xlabel="CPU seconds")
        axis.grid(alpha=0.3)
        axis.legend(fontsize=8)
    axes[0].set_ylabel("relative duality gap")
    axes[0].set_ylim(5e-4, 1.2)
    PICTURE.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(PICTURE, dpi=110)


def main() -> None:
    """Measure, write the table and draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max-cpu", type=float, default=60.0)
    parser.add_argument(
        "--solvers", default=",".join(SOLVERS), help="names, separated by commas without a blank after them"
    )
    arguments = parser.parse_args()
    chosen = [name for name in SOLVERS if name in arguments.solvers or name.replace(", ", ",") in arguments.solvers]
    rows = []
    for name in chosen:
        points = in_fresh_process(curve, name, SOLVERS[name], arguments.max_cpu).result
        reached = {
            f"to {gap:g}": next((p["cpu"] for p in points if p["gap"] <= gap), None) for gap in (0.1, 0.01, 0.001)
        }
        rows.append({"solver": name, **reached, "last gap": points[-1]["gap"], "CPU s": points[-1]["cpu"]})
        print(rows[-1], flush=True)
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"curve of {name}.json").write_text(json.dumps(points))
    print(write_table("which_solver", rows, "CoNLL-2000, C' = 1000, one thread: CPU seconds to a relative gap."))
    draw()


if __name__ == "__main__":
    main()
