"""Tables 2 to 4 and Figures 1 to 4 of Balamurugan et al. (2011), the sequential dual method, on three tagging tasks.

    MAXMARGIN_DATA=... python benchmarks/paper_sdm.py [--quick] [--sets conll2000,bc2gm] [--C 0.1,1]
                                                      [--methods "sdm;one-slack, plain"] [--max-time 600] [--redraw]

    Table 2    CPU seconds of plain one-slack to ε = 0.1, SVM-struct's, and of the others to the dual value it has there; then the
               same for fixed shares of the best dual. C = 0.1, 1 and, beyond the paper, 10
    Table 3    CPU seconds of sdm (C = 0.1) to the test accuracy that CRFsuite's l2sgd has after 50 epochs, and l2sgd's
    Table 4    CPU seconds of sdm to τ-optimality against n, CoNLL-2000
    Figure 1   test accuracy of sdm and l2sgd against CPU time
    Figure 2   relative difference to the best dual, and test accuracy, against CPU time for C = 0.1, 1, 10: JNLPBA
    Figure 3   the same on CoNLL-2000 (the paper: WSJ tagging)
    Figure 4   the same at C = 0.1 on all sets

C is the public one, which multiplies the sum of slacks, as the paper's does. The best dual is that of the run that got highest,
block-dual's as a rule, which goes on to a gap of 0.3 ‰. One-slack is run plain and stabilised (line search, and passes of
block ascent to begin with) and gets twelve times the time that sdm needs for the last of the dual values, --max-time at most: a
time with > is where it was cut. sdm is run with its defaults (κ1 = 10, τ = 0.25, up to 40 loops without the oracle in a row,
blocks over-relaxed while they come in long rows) and as published (κ2 = 5, no over-relaxation). Only training is on the clock;
accuracy is taken beside it. CRFsuite's time is that of its search for a step size and of its epochs, without its evaluations.

CoNLL-2000 has the features of the folder features/ under MAXMARGIN_DATA, the other sets words, affixes, shapes and neighbours.
Writes results/paper_sdm*.md, .csv and .png; results/paper_sdm/ keeps the runs, and those in it are not run again.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

import _conll
import matplotlib
import numpy as np
import pycrfsuite  # type: ignore[import-untyped]
from _measure import RESULTS, write_table
from _tagging import TITLES, Corpus, Part, Point, Runs, accuracy, known, load, trace

import maxmargin as mm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

SETS = ("conll2000", "bc2gm", "jnlpba")
PLAIN = "one-slack, plain"
PUBLISHED = "sdm, published"
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "block-dual": ("block-dual", {}),
    "sdm": ("sdm", {}),
    PUBLISHED: ("sdm", {"kappa2": 5, "relaxation": 1.0}),
    "one-slack": ("one-slack", {"stabilization": "line-search"}),
    PLAIN: ("one-slack", {}),
}
CS = (0.1, 1.0, 10.0)
LEVELS = (0.1, 0.01, 0.001)  # below the best dual
REFERENCE_GAP = 3e-4
EPSILON = 0.1
SIZES = (450, 900, 1800, 3600, 7200)
TAU = 0.25
KEYS = ("set", "method", "C", "n")


class Experiment:
    """All runs on one corpus."""

    def __init__(self, corpus: Corpus, runs: Runs, methods: list[str], max_cpu: float) -> None:
        self.corpus, self.runs, self.methods, self.max_cpu = corpus, runs, methods, max_cpu

    def compare(self, C: float) -> None:
        """Run all methods at this C, the cheap ones first: they say how long the others may take."""
        for method in self.methods:
            if self.runs.get(self.corpus.name, method, C, len(self.corpus.train)):
                continue
            best = best_dual(self.runs, self.corpus.name, C)
            allowed = self.max_cpu
            if method.startswith("one-slack"):
                sdm = self.runs.get(self.corpus.name, "sdm", C, len(self.corpus.train))
                allowed = min(allowed, max(12.0 * time_to_dual(sdm, best, LEVELS[-1], sdm[-1]["cpu"]), 2.0))
            self._run(method, C, self.corpus.train, allowed, best)

    def scale(self, C: float) -> None:
        """Run sdm to τ-optimality on the first n sentences."""
        for n in SIZES:
            if n <= len(self.corpus.train) and not self.runs.get(self.corpus.name, "sdm to τ", C, n):
                self._run("sdm to τ", C, self.corpus.train.between(0, n), self.max_cpu, np.inf)

    def crf(self, epochs: int = 50) -> None:
        """Run CRFsuite's l2sgd with its default parameters."""
        key = (self.corpus.name, "CRFsuite l2sgd", 0.0, len(self.corpus.train))
        if not self.runs.get(*key):
            points = l2sgd(self.corpus, epochs)
            self.runs.add(key, points)
            print(*key, f"{points[-1]['cpu']:.1f} CPU s, accuracy {points[-1]['accuracy']:.2f}", flush=True)

    def _run(self, method: str, C: float, train: Part, allowed: float, best: float) -> None:
        solver, options = METHODS.get(method, ("sdm", {"epsilon": TAU}))
        is_reference, is_scaling = method == "block-dual", method == "sdm to τ"
        model = mm.models.Chain(len(self.corpus.labels))
        problem = model.bind(train.X, train.Y)
        test = self.corpus.test

        def look(weights: Any) -> Point:
            if is_scaling:
                return {}
            found: Point = {"accuracy": accuracy(model.predict(test.X, weights.exact), test)}
            # The reference alone is run to a gap; the others end by their dual.
            return found | ({"primal": problem.primal(weights, C, squared=False)} if is_reference else {})

        lowest = np.inf

        def is_enough(point: Point) -> bool:
            nonlocal lowest
            if is_reference:
                lowest = min(lowest, point.get("primal", np.inf))
                return bool(lowest - point["dual"] <= REFERENCE_GAP * lowest)
            is_short = method == PLAIN and not is_solved(point)
            return bool(point["dual"] >= (1.0 - 0.5 * LEVELS[-1]) * best) and not is_short

        points = trace(
            model,
            problem,
            C,
            solver,
            options,
            look=look,
            is_enough=is_enough,
            max_cpu=allowed,
            spacing=1.15,
            details=("violation", "from_cache") if method == PLAIN else (),
        )
        key = (self.corpus.name, method, C, len(train))
        self.runs.add(key, points)
        last = points[-1]
        print(*key, f"{last['iteration']} iterations, {last['cpu']:.2f} CPU s, dual {last['dual']:.6g}", flush=True)


# ------------------------------------------------------------------------------------------------------- corpora


def corpus(name: str, n: int | None) -> Corpus:
    """Return a corpus; CoNLL-2000 with the features that other tools were timed on."""
    if name != "conll2000":
        return load(name, n)
    train = Part(*_conll.load("train"))
    test = Part(*_conll.load("test", train.X.rows.shape[1]))
    labels = [str(k) for k in range(1 + max(int(y.max()) for y in train.Y))]
    if n is not None:
        train, test = train.between(0, n), test.between(0, min(n, len(test)))
    return Corpus(name, labels, train, test, None)


# ------------------------------------------------------------------------------------------------------ CRFsuite


class _Clocked(pycrfsuite.BaseTrainer):  # type: ignore[misc]
    """A trainer that notes CPU time and held-out accuracy after every epoch; evaluations are not on its clock."""

    def begin(self) -> None:
        self.points: list[Point] = []
        self._start, self._evaluating, self._since = time.process_time(), 0.0, 0.0

    def message(self, message: str) -> None:
        now = time.process_time()
        if message.startswith("Stochastic Gradient Descent"):
            self._start = now
        elif message.startswith("Seconds required for this iteration"):
            self._since = now
            self.points.append({"cpu": now - self._start - self._evaluating, "iteration": len(self.points) + 1})
        elif message.startswith("Item accuracy") and self.points:
            right, total = message.split(":")[1].split("(")[0].split("/")
            self.points[-1]["accuracy"] = 100.0 * int(right) / int(total)
        elif message.strip() == "" and self._since > 0.0:
            self._evaluating += now - self._since
            self._since = 0.0


def l2sgd(corpus: Corpus, epochs: int) -> list[Point]:
    """Train CRFsuite by SGD on the same features, and return its points; the test part is its held-out group."""
    trainer = _Clocked()
    trainer.select("l2sgd")
    # delta is the least improvement over the last `period` epochs: with 0 all epochs are made.
    trainer.set_params({"max_iterations": epochs, "delta": 0.0})
    for group, part in enumerate((corpus.train, corpus.test)):
        indices, indptr = part.X.rows.indices, part.X.rows.indptr
        for i, y in enumerate(part.Y):
            rows = range(part.X.offsets[i], part.X.offsets[i + 1])
            features = [[str(j) for j in indices[indptr[t] : indptr[t + 1]]] for t in rows]
            trainer.append(features, [str(label) for label in y], group)
    with tempfile.TemporaryDirectory() as folder:
        trainer.begin()
        trainer.train(str(Path(folder) / "model.crfsuite"), holdout=1)
    return trainer.points


# ------------------------------------------------------------------------------------------------ reading curves


def best_dual(runs: Runs, name: str, C: float) -> float:
    """Return the highest dual value of any run."""
    duals = [row["dual"] for row in runs.rows if (row["set"], row["C"]) == (name, C) and row["method"] in METHODS]
    return max(duals, default=np.inf)


def time_to_dual(points: list[Point], best: float, level: float, otherwise: float = np.inf) -> float:
    """Return the CPU seconds after which the dual was no more than this share below the best."""
    return next((point["cpu"] for point in points if point["dual"] >= (1.0 - level) * best), otherwise)


def is_solved(point: Point) -> bool:
    """Return whether one-slack would end here: the oracle found no cut that is violated by more than ε."""
    return point.get("from_cache") in (False, "False") and point["violation"] <= EPSILON


def _seconds(points: list[Point], best: float, level: float) -> tuple[float, str]:
    reached = time_to_dual(points, best, level)
    last = points[-1]["cpu"]
    return (reached, f"{reached:.2f}") if np.isfinite(reached) else (last, f"> {last:.1f}")


def table_2(runs: Runs, names: list[str], n: dict[str, int]) -> list[Point]:
    """Return the time of plain one-slack to its own end, and those of the others to the dual value that it has there."""
    rows = []
    for name in names:
        for C in CS:
            plain = runs.get(name, PLAIN, C, n[name])
            if not plain:
                continue
            # Where its time was up first, what it has by then counts.
            end = next((point for point in plain if is_solved(point)), plain[-1])
            more = "" if is_solved(end) else "> "
            row: Point = {"set": TITLES[name], "C": C, PLAIN: f"{more}{end['cpu']:.1f}"}
            row["below the best dual"] = f"{1.0 - end['dual'] / best_dual(runs, name, C):.1%}"
            for method in ("sdm", PUBLISHED, "block-dual", "one-slack"):
                points = runs.get(name, method, C, n[name])
                if not points:
                    continue
                seconds, row[method] = _seconds(points, end["dual"], 0.0)
                if method.startswith("sdm"):
                    row[f"plain / {method}"] = f"{more}{end['cpu'] / seconds:.1f}"
            rows.append(row)
    return rows


def table_2_by_level(runs: Runs, names: list[str], n: dict[str, int]) -> list[Point]:
    """Return the times to the same shares of the best dual; ratios to sdm."""
    rows = []
    for name in names:
        for C in CS:
            best = best_dual(runs, name, C)
            if not runs.get(name, "sdm", C, n[name]):
                continue
            for level in LEVELS:
                row: Point = {"set": TITLES[name], "C": C, "below the best dual": f"{level:.1%}"}
                ratios: Point = {}
                sdm, shown = _seconds(runs.get(name, "sdm", C, n[name]), best, level)
                row["sdm"] = shown
                for method in (PUBLISHED, "one-slack", PLAIN, "block-dual"):
                    points = runs.get(name, method, C, n[name])
                    if not points:
                        continue
                    seconds, shown = _seconds(points, best, level)
                    row[method] = shown
                    ratios[f"{method} / sdm"] = f"{'> ' if shown[0] == '>' else ''}{seconds / sdm:.2g}"
                rows.append(row | ratios)
    return rows


def table_3(runs: Runs, names: list[str], n: dict[str, int]) -> list[Point]:
    """Return the times of sdm to l2sgd's last accuracy, and l2sgd's."""
    rows = []
    for name in names:
        crf = known(runs.get(name, "CRFsuite l2sgd", 0.0, n[name]), "accuracy")
        wanted = crf[-1]["accuracy"]
        row: Point = {"set": TITLES[name], "accuracy of l2sgd": f"{wanted:.2f}"}
        row["l2sgd, 50 epochs"] = f"{crf[-1]['cpu']:.1f}"
        row["l2sgd, first there"] = f"{_first_at(crf, wanted):.1f}"
        for method in ("sdm", "block-dual"):
            seen = known(runs.get(name, method, 0.1, n[name]), "accuracy")
            row[f"{method}, to there"] = f"{_first_at(seen, wanted):.2f}"
            row[f"{method}, best accuracy"] = f"{max(point['accuracy'] for point in seen):.2f}"
            row[f"{method}, last accuracy"] = f"{seen[-1]['accuracy']:.2f}"
        rows.append(row)
    return rows


def _first_at(points: list[Point], wanted: float) -> float:
    return next((point["cpu"] for point in points if point["accuracy"] >= wanted), np.inf)


def table_4(runs: Runs) -> list[Point]:
    """Return sdm's time against n, and the power of n that it grows by."""
    sizes = [n for n in SIZES if runs.get("conll2000", "sdm to τ", 0.1, n)]
    rows: list[Point] = [{"n": n} for n in sizes]
    powers: Point = {"n": "power of n"}
    for C in (0.1, 1.0):
        seconds = [runs.get("conll2000", "sdm to τ", C, n)[-1]["cpu"] for n in sizes]
        for row, value in zip(rows, seconds, strict=True):
            row[f"CPU s, C = {C:g}"] = value
        powers[f"CPU s, C = {C:g}"] = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    return [*rows, powers]


# -------------------------------------------------------------------------------------------------------- figures


def draw_curves(panel: Any, points: list[Point], column: str, name: str, best: float = 1.0) -> None:
    """Draw one line: the relative difference to the best dual, or the accuracy."""
    seen = [point for point in known(points, column) if point["cpu"] > 0.0]
    values = np.array([point[column] for point in seen])
    y = np.maximum(1.0 - values / best, 1e-5) if column == "dual" else values
    panel.plot([point["cpu"] for point in seen], y, ".-", ms=3, lw=1, label=name)
    panel.set_xscale("log")
    panel.grid(alpha=0.3)


def draw_comparison(runs: Runs, cells: list[tuple[str, float]], n: dict[str, int], file: str) -> None:
    """Draw a row for each corpus and C: dual difference on the left, accuracy on the right."""
    figure, panels = plt.subplots(len(cells), 2, figsize=(8.5, 2.7 * len(cells)), squeeze=False)
    for (name, C), (left, right) in zip(cells, panels, strict=True):
        best = best_dual(runs, name, C)
        for method in METHODS:
            points = runs.get(name, method, C, n[name])
            if not points:
                continue
            draw_curves(left, points, "dual", method, best)
            draw_curves(right, points, "accuracy", method)
        left.set_yscale("log")
        left.set_title(f"{TITLES[name]}, C = {C:g}", fontsize=9)
        left.set_ylabel("1 − dual / best dual", fontsize=8)
        right.set_ylabel("test accuracy, %", fontsize=8)
        _zoom(right)
    panels[0][0].legend(fontsize=7)
    for panel in panels[-1]:
        panel.set_xlabel("CPU seconds")
    _save(figure, file)


def draw_crf(runs: Runs, names: list[str], n: dict[str, int], file: str) -> None:
    """Draw Figure 1."""
    figure, panels = plt.subplots(1, len(names), figsize=(4 * len(names), 3.3), squeeze=False)
    for panel, name in zip(panels[0], names, strict=True):
        for method, C in (("sdm", 0.1), ("CRFsuite l2sgd", 0.0)):
            draw_curves(panel, runs.get(name, method, C, n[name]), "accuracy", method)
        panel.set_title(TITLES[name], fontsize=9)
        panel.set_xlabel("CPU seconds")
        _zoom(panel)
    panels[0][0].set_ylabel("test accuracy, %")
    panels[0][-1].legend(fontsize=7)
    _save(figure, file)


def _zoom(panel: Any) -> None:
    top = max(line.get_ydata().max() for line in panel.get_lines())
    panel.set_ylim(top - 3.0, top + 0.2)


def _save(figure: Any, file: str) -> None:
    figure.tight_layout()
    figure.savefig(RESULTS / f"{file}.png", dpi=80)
    plt.close(figure)


def report(name: str, runs: Runs) -> None:
    """Write the tables and figures of what was run."""
    n = {key: int(max(row["n"] for row in runs.rows if row["set"] == key)) for key in {r["set"] for r in runs.rows}}

    def done(C: float) -> list[str]:
        return [key for key in SETS if key in n and runs.get(key, "sdm", C, n[key])]

    sets = [key for key in SETS if key in n]
    to_the_end = table_2(runs, sets, n)
    print(write_table(f"{name}_table_2", to_the_end, f"CPU seconds to one-slack's dual at ε = {EPSILON}."))
    by_level = table_2_by_level(runs, sets, n)
    print(write_table(f"{name}_table_2_by_level", by_level, "CPU seconds to shares of the best dual."))
    with_crf = [key for key in done(0.1) if runs.get(key, "CRFsuite l2sgd", 0.0, n[key])]
    if with_crf:
        print(write_table(f"{name}_table_3", table_3(runs, with_crf, n), "CPU seconds to equal test accuracy."))
        draw_crf(runs, with_crf, n, f"{name}_figure_1")
    if runs.get("conll2000", "sdm to τ", 1.0, SIZES[0]):
        print(write_table(f"{name}_table_4", table_4(runs), f"CPU seconds of sdm to τ = {TAU}, CoNLL-2000."))
    for number, key in ((2, "jnlpba"), (3, "conll2000")):
        cells = [(key, C) for C in CS if key in done(C)]
        if cells:
            draw_comparison(runs, cells, n, f"{name}_figure_{number}")
    if done(0.1):
        draw_comparison(runs, [(key, 0.1) for key in done(0.1)], n, f"{name}_figure_4")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 sentences of each part: minutes")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--C", type=lambda text: [float(part) for part in text.split(",")], default=list(CS))
    parser.add_argument("--methods", type=lambda text: text.split(";"), default=list(METHODS), help="separated by ;")
    parser.add_argument("--max-time", type=float, default=600.0, help="CPU seconds for one training")
    parser.add_argument(
        "--redraw", action="store_true", help="no training: tables and figures of the runs that are kept"
    )
    arguments = parser.parse_args()
    if "MAXMARGIN_DATA" not in os.environ:
        parser.error("set MAXMARGIN_DATA to the data folder")
    name = "paper_sdm_quick" if arguments.quick else "paper_sdm"
    runs = Runs(RESULTS / name, KEYS)
    for key in () if arguments.redraw else arguments.sets:
        experiment = Experiment(
            corpus(key, 1000 if arguments.quick else None), runs, arguments.methods, arguments.max_time
        )
        for C in arguments.C:
            experiment.compare(C)
        if key == "conll2000":
            for C in {0.1, 1.0}.intersection(arguments.C):
                experiment.scale(C)
        if 0.1 in arguments.C:
            experiment.crf()
    report(name, runs)


if __name__ == "__main__":
    main()
