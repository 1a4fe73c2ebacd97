"""Figures 1 to 3 and Table 1 of Chang and Yih (2013), dual coordinate descent for the squared hinge, on four tagging tasks.

    MAXMARGIN_DATA=... python benchmarks/paper_dcd.py [--quick] [--sets conll2000,bc2gm] [--max-time 600] [--seeds 5]
                                                      [--set-up full|iob|plain] [--table-1] [--redraw]

    Figure 1   test score and primal (above the best dual) of DCD-SSVM, DCD-Light and CPD against CPU time
    Figure 2   test score of DCD-SSVM, FW-Struct (bcfw) and SVM-Struct's method (plain one-slack) against CPU time
    Figure 3   test score of DCD-SSVM, the averaged perceptron, MIRA and SGD against CPU time
    Table 1    test score after 25 epochs of DCD-SSVM, perceptron, MIRA and SGD: the mean over several orders of visits

The score is the F1 of chunks and entities as conlleval counts them, or the accuracy of tags. C is the best of
{0.01, 0.05, 0.1, 0.5, 1, 5} on development data, the last tenth of the training data where there is none, after 25 epochs; DCD's
and SGD's are chosen each for itself, the others of Figure 2 have SGD's. "SGD, slow" has steps that fall with t/(nC) in place of
the paper's t/C. Only training is on the clock: primal and score are taken beside it, after epochs. A primal at a time between two
epochs is interpolated, and all are the best so far.

The full set-up has the detailed features of ``token_features``, and BILOU labels of entities, as Ratinov and Roth (2009) have
them, whose settings the paper follows on MUC-7. --set-up iob has the same features and IOB labels, plain has plain features and
IOB labels. --table-1 leaves out what the figures alone need.

Writes results/paper_dcd*.md, .csv and .png; results/paper_dcd_SETUP/ keeps the runs, and those in it are not run again.
"""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from _measure import RESULTS, write_table
from _tagging import TITLES, Corpus, Part, Point, Runs, known, load, trace

import maxmargin as mm

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.ticker import NullFormatter

ENTITIES = ("jnlpba", "bc2gm")
DETAILED = {"window": 2, "max_affix": 6, "detailed": True}
# name: what token_features is told, and the sets with BILOU labels
SET_UPS: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "full": (DETAILED, ENTITIES),
    "iob": (DETAILED, ()),
    "plain": ({"window": 2}, ()),
}
CS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
EPOCHS = 25
WANTED_GAP = 0.01
SHARES = (0.1, 0.3, 1.0)

# name: solver, options, loss
METHODS: dict[str, tuple[str, dict[str, Any], str]] = {
    "DCD-SSVM": ("dcd", {}, "squared_hinge"),
    "DCD-Light": ("dcd-light", {}, "squared_hinge"),
    "CPD": ("cpd", {}, "squared_hinge"),
    "perceptron": ("perceptron", {"epochs": EPOCHS}, "hinge"),
    "MIRA": ("mira", {"epochs": EPOCHS}, "hinge"),
    "SGD": ("sgd", {"epochs": EPOCHS}, "hinge"),
    "SGD, slow": ("sgd", {"epochs": EPOCHS, "decay": "nC"}, "hinge"),
    "FW-Struct": ("bcfw", {}, "hinge"),
    "SVM-Struct": ("one-slack", {}, "hinge"),
}
DUAL = ("DCD-SSVM", "DCD-Light", "CPD")
ONLINE = ("perceptron", "MIRA", "SGD", "SGD, slow")
FIGURES = {1: DUAL, 2: ("DCD-SSVM", "FW-Struct", "SVM-Struct"), 3: ("DCD-SSVM", *ONLINE)}
CHOSEN = ("DCD-SSVM", "SGD", "SGD, slow")  # whose C is chosen
C_OF = {"DCD-Light": "DCD-SSVM", "CPD": "DCD-SSVM", "FW-Struct": "SGD, slow", "SVM-Struct": "SGD, slow"}


class Experiment:
    """All runs on one corpus."""

    def __init__(self, corpus: Corpus, kept: Kept, max_cpu: float) -> None:
        self.corpus, self.max_cpu = corpus, max_cpu
        self.runs, self.choices, self.finals = kept

    def C(self, method: str) -> float:
        """Return the chosen C; infinity for methods that have none."""
        method = C_OF.get(method, method)
        if method not in CHOSEN:
            return np.inf if method == "MIRA" else 1.0
        found = self.choices.get(self.corpus.name, method)
        if not found:
            train, dev = self.corpus.for_choosing()
            for C in CS:
                points = self._trace(method, C, train, dev, is_choice=True, max_iter=EPOCHS)
                found.append({"C": C, "score": points[-1]["score"]})
            self.choices.add((self.corpus.name, method), found)
            print(self.corpus.name, method, *(f"{row['C']:g}: {row['score']:.2f}" for row in found), flush=True)
        return float(max(found, key=lambda row: row["score"])["C"])

    def run(self, method: str, max_cpu: float) -> list[Point]:
        """Return the points of a run on all training data; DCD-SSVM makes 25 epochs and reaches the gap, others 25 epochs."""
        points = self.runs.get(self.corpus.name, method)
        if points:
            return points
        C = self.C(method)
        has_dual = method in DUAL
        bounds = {"primal": np.inf, "dual": -np.inf}

        def is_enough(point: Point) -> bool:
            bounds["primal"] = min(bounds["primal"], point.get("primal") or np.inf)
            bounds["dual"] = max(bounds["dual"], point["dual"] or -np.inf)
            is_close = bounds["primal"] - bounds["dual"] <= WANTED_GAP * bounds["primal"]
            return is_close and (method != "DCD-SSVM" or point["iteration"] >= EPOCHS)

        points = self._trace(
            method,
            C,
            self.corpus.train,
            self.corpus.test,
            is_enough=is_enough if has_dual else lambda point: False,
            max_cpu=max_cpu,
            max_iter=EPOCHS if method in ONLINE else 10_000,
        )
        last, score = points[-1], known(points, "score")[-1]["score"]
        shown = [f"C {C:g}", f"{last['iteration']} epochs", f"{last['cpu']:.1f} CPU s", f"score {score:.2f}"]
        print(self.corpus.name, method, *shown, flush=True)
        return self.runs.add((self.corpus.name, method), [{"C": C} | point for point in points])

    def repeat(self, method: str, n_seeds: int) -> None:
        """Take the score after 25 epochs in so many orders of visits, the first of which is that of the curve if there is one."""
        curve, made = self.runs.get(self.corpus.name, method), []
        for seed in range(len(self.finals.get(self.corpus.name, method)), n_seeds):
            if seed == 0 and curve:
                points = curve
            else:
                train, test = self.corpus.train, self.corpus.test
                limits = {"max_iter": EPOCHS, "max_cpu": self.max_cpu}
                points = self._trace(method, self.C(method), train, test, is_choice=True, seed=seed, **limits)
            made.append({"seed": seed, "score": final_score(points)})
        if made:
            self.finals.add((self.corpus.name, method), made)
            print(self.corpus.name, method, *(f"{row['score']:.2f}" for row in made), flush=True)

    def _trace(
        self, method: str, C: float, train: Part, judged: Part, *, is_choice: bool = False, **limits: Any
    ) -> list[Point]:
        solver, options, loss = METHODS[method]
        model = mm.models.Chain(len(self.corpus.labels))
        problem = model.bind(train.X, train.Y)

        def look(weights: Any) -> Point:
            found: Point = {"score": self.corpus.score(model.predict(judged.X, weights.exact), judged)}
            if method in DUAL and not is_choice:
                found["primal"] = problem.primal(weights, C, squared=True)
            return found

        spacing = np.inf if is_choice else 1.08
        return trace(
            model, problem, C, solver, options, loss=loss, look=look, spacing=spacing, always_look_at=EPOCHS, **limits
        )


class Kept(NamedTuple):
    """What was run: curves, the scores that C was chosen by, and scores after 25 epochs by seed."""

    curves: Runs
    choices: Runs
    finals: Runs


def run_all(experiment: Experiment, n_seeds: int, *, only_table: bool) -> None:
    """Make all runs of a corpus; the rivals of DCD-SSVM get three times its time to the wanted gap."""
    if not only_table:
        points = experiment.run("DCD-SSVM", experiment.max_cpu)
        allowed = min(experiment.max_cpu, 3.0 * time_to_gap(points, points[-1]["cpu"]))
        for method in METHODS:
            experiment.run(method, experiment.max_cpu if method in ONLINE else allowed)
    for method in ("DCD-SSVM", *ONLINE):
        experiment.repeat(method, n_seeds)


# ------------------------------------------------------------------------------------------------ reading curves


def time_to_gap(points: list[Point], otherwise: float = np.inf) -> float:
    """Return the CPU seconds after which the relative gap was within 1 %."""
    primal, dual = np.inf, -np.inf
    for point in points:
        dual = max(dual, point["dual"])
        if point.get("primal") is not None:
            primal = min(primal, point["primal"])
        if np.isfinite(primal) and primal - dual <= WANTED_GAP * primal:
            return float(point["cpu"])
    return otherwise


def primal_at(points: list[Point], cpu: float) -> float:
    """Return the best primal at this time, interpolated between epochs."""
    seen = known(points, "primal")
    best = np.minimum.accumulate([point["primal"] for point in seen])
    return float(np.exp(np.interp(cpu, [point["cpu"] for point in seen], np.log(best))))


def final_score(points: list[Point]) -> float:
    """Return the score after 25 epochs, or after fewer where training ended."""
    return float(next(p["score"] for p in reversed(points) if p["iteration"] <= EPOCHS and p.get("score") is not None))


def primal_rows(runs: Runs, names: list[str]) -> list[Point]:
    """Return the primals at shares of DCD-SSVM's time to a 1 % gap."""
    rows = []
    for name in names:
        curves = {method: runs.get(name, method) for method in DUAL}
        end = time_to_gap(curves["DCD-SSVM"])
        for share in SHARES if np.isfinite(end) else ():
            at = {method: primal_at(points, share * end) for method, points in curves.items()}
            row = {
                "set": TITLES[name],
                "C": curves["CPD"][0]["C"],
                "share of time": f"{share:.0%}",
                "CPU s": share * end,
            }
            row |= {f"primal of {method}": value for method, value in at.items()}
            row["at or below both"] = "yes" if at["DCD-SSVM"] <= min(at.values()) else "no"
            rows.append(row)
        row = {"set": TITLES[name], "C": curves["CPD"][0]["C"], "share of time": "CPU s to a gap of 1 %"}
        for method, points in curves.items():
            seconds = time_to_gap(points)
            cut = f"> {points[-1]['cpu']:.3g}"
            row[f"primal of {method}"] = f"({seconds:.3g} s)" if np.isfinite(seconds) else f"({cut} s)"
        rows.append(row)
    return rows


def score_rows(kept: Kept, names: list[str], n_seeds: int) -> list[Point]:
    """Return Table 1, one row for each corpus."""
    rows = []
    for name in names:
        scores = {
            method: np.array([row["score"] for row in kept.finals.get(name, method)[:n_seeds]])
            for method in ("DCD-SSVM", *ONLINE)
        }
        row: Point = {
            "set": TITLES[name],
            "measure": "accuracy" if name == "ewt" else "F1",
            "C of DCD-SSVM": max(kept.choices.get(name, "DCD-SSVM"), key=lambda found: found["score"])["C"],
        }
        row |= {method: mean_and_spread(found) for method, found in scores.items()}
        row["best"] = max(scores, key=lambda method: float(scores[method].mean()))
        rows.append(row)
    return rows


def mean_and_spread(scores: np.ndarray) -> str:
    """Return the mean and, of more than one, the standard deviation."""
    return f"{scores.mean():.2f}" + (f" ± {scores.std(ddof=1):.2f}" if len(scores) > 1 else "")


# -------------------------------------------------------------------------------------------------------- figures


def draw(runs: Runs, names: list[str], number: int, file: str) -> None:
    """Draw one figure, a panel for each corpus; the first has two rows."""
    methods = FIGURES[number]
    columns = ("score", "primal") if number == 1 else ("score",)
    size = (3.6 * len(names), 3.2 * len(columns))
    figure, panels = plt.subplots(len(columns), len(names), figsize=size, squeeze=False)
    for k, name in enumerate(names):
        for row, column in enumerate(columns):
            draw_panel(panels[row][k], runs, name, methods, column)
        panels[0][k].set_title(TITLES[name], fontsize=10)
        panels[-1][k].set_xlabel("CPU seconds")
        panels[0][k].legend(fontsize=6, loc="lower right")
    panels[0][0].set_ylabel("test score, %")
    if number == 1:
        panels[1][0].set_ylabel("primal / best dual − 1")
    figure.tight_layout()
    figure.savefig(RESULTS / f"{file}.png", dpi=80)
    plt.close(figure)


def draw_panel(panel: Any, runs: Runs, name: str, methods: tuple[str, ...], column: str) -> None:
    """Draw one column of the runs of a corpus against time, a line for each method."""
    best_dual = max(point["dual"] for method in DUAL for point in runs.get(name, method))
    for method in methods:
        seen = [point for point in known(runs.get(name, method), column) if point["cpu"] > 0]
        values = np.array([point[column] for point in seen])
        has_C = C_OF.get(method, method) in CHOSEN
        panel.plot(
            [point["cpu"] for point in seen],
            values / best_dual - 1.0 if column == "primal" else values,
            ".-",
            ms=4,
            lw=1,
            label=f"{method}, C = {seen[0]['C']:g}" if has_C else method,
        )
    panel.set_xscale("log")
    panel.xaxis.set_minor_formatter(NullFormatter())
    if column == "primal":
        panel.set_yscale("log")
        panel.axhline(WANTED_GAP, color="gray", lw=0.5)
    else:
        top = max(line.get_ydata().max() for line in panel.get_lines())
        panel.set_ylim(top - 6.0, top + 0.3)
    panel.grid(alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="1,000 sentences of each part: minutes")
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(TITLES))
    parser.add_argument("--max-time", type=float, default=600.0, help="CPU seconds for one training")
    parser.add_argument("--seeds", type=int, default=5, help="orders of visits for Table 1")
    parser.add_argument("--set-up", choices=list(SET_UPS), default="full")
    parser.add_argument("--table-1", action="store_true", help="nothing for the figures")
    parser.add_argument(
        "--redraw", action="store_true", help="no training: tables and figures of the runs that are kept"
    )
    arguments = parser.parse_args()
    if unknown := [key for key in arguments.sets if key not in TITLES]:
        parser.error(f"--sets knows {', '.join(TITLES)}, not {', '.join(unknown)}")
    name = "paper_dcd" + ("_quick" if arguments.quick else "")
    name += "" if arguments.set_up == "full" else f"_{arguments.set_up}"
    folder = RESULTS / f"paper_dcd{'_quick' if arguments.quick else ''}_{arguments.set_up}"
    kept = Kept(*(Runs(folder / part, ("set", "method")) for part in ("curves", "C", "scores")))
    features, with_bilou = SET_UPS[arguments.set_up]
    if not arguments.redraw:
        for key in arguments.sets:
            corpus = load(key, 1000 if arguments.quick else None, bilou=key in with_bilou, **features)
            run_all(Experiment(corpus, kept, arguments.max_time), arguments.seeds, only_table=arguments.table_1)

    def done(*methods: str, runs: Runs = kept.curves) -> list[str]:
        return [key for key in TITLES if all(runs.get(key, method) for method in methods)]

    note = "Primal at shares of DCD-SSVM's CPU time to a gap of 1 %."
    if names := done(*DUAL):
        print(write_table(f"{name}_primal", primal_rows(kept.curves, names), note))
    note = f"Test score after {EPOCHS} epochs: mean and standard deviation over orders of visits."
    if names := done("DCD-SSVM", *ONLINE, runs=kept.finals):
        print(write_table(f"{name}_table_1", score_rows(kept, names, arguments.seeds), note))
    for number, methods in FIGURES.items():
        names = done(*methods)
        if names:
            draw(kept.curves, names, number, f"{name}_figure_{number}")


if __name__ == "__main__":
    main()
