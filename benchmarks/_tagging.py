"""What the benchmarks on tagging share: corpora as sequences of features, scores, and traced training.

corpus = load("bc2gm", n=1000)                a Corpus: train, dev (or None) and test as Part
corpus.score(predicted, corpus.test)          F1 of chunks or entities as conlleval counts them, or the accuracy of tags
trace(model, problem, C, "sdm", ...)          points (CPU seconds, primal, dual, what `look` says) along one training
Runs(folder)                                  rows of runs in CSV files, so that tables and figures can be made again
"""

from __future__ import annotations

import csv
import os
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp

import maxmargin as mm
from maxmargin.features import token_features
from maxmargin.solvers import make_solver
from maxmargin.solvers.base import Request, Task
from maxmargin.tags import iob_to_bilou

LOADERS: dict[str, Callable[[], mm.datasets.TaggingData]] = {
    "conll2000": mm.datasets.load_conll2000,
    "jnlpba": mm.datasets.load_jnlpba,
    "bc2gm": mm.datasets.load_bc2gm,
    "ewt": lambda: mm.datasets.load_ud_english_ewt(tags="xpos"),
}
TITLES = {
    "conll2000": "CoNLL-2000 chunking",
    "jnlpba": "JNLPBA entities",
    "bc2gm": "BC2GM genes",
    "ewt": "UD English EWT tagging",
}

# ---------------------------------------------------------------------------------------------------- corpora


@dataclass
class Part:
    """Sentences: stacked feature rows, and label numbers."""

    X: mm.models.Sequences
    Y: list[np.ndarray]

    def __len__(self) -> int:
        return len(self.Y)

    def between(self, first: int, end: int) -> Part:
        """Return these sentences."""
        rows = self.X.rows[self.X.offsets[first] : self.X.offsets[end]]
        return Part(mm.models.Sequences(rows, self.X.lengths[first:end]), self.Y[first:end])


@dataclass
class Corpus:
    """A tagging task."""

    name: str
    labels: list[str]
    train: Part
    test: Part
    dev: Part | None

    @property
    def measure(self) -> str:
        """What a prediction is judged by."""
        return "accuracy" if self.name == "ewt" else "F1"

    def for_choosing(self) -> tuple[Part, Part]:
        """Return what to train on and what to look at when parameters are chosen: the last tenth where there is no dev."""
        if self.dev is not None:
            return self.train, self.dev
        n = len(self.train) * 9 // 10
        return self.train.between(0, n), self.train.between(n, len(self.train))

    def score(self, predicted: list[np.ndarray], part: Part) -> float:
        """Return the measure, in per cent."""
        if self.measure == "accuracy":
            return accuracy(predicted, part)
        right, n_true, n_found = chunk_counts(self.labels, part, predicted)
        return 200.0 * right / max(n_true + n_found, 1)


def load(name: str, n: int | None = None, *, bilou: bool = False, **features: Any) -> Corpus:
    """Return a corpus with words, affixes, shapes and their neighbours as features; n sentences of each part at most.

    ``bilou`` is whether labels mark the ends of spans too, and ``features`` what ``token_features`` is told; without them they
    are IOB, and the window is 2.
    """
    told = {"window": 2} | features
    data = LOADERS[name]()
    parts = {key: getattr(data, key) for key in ("train", "test", "dev") if getattr(data, key) is not None}
    if bilou:
        parts = {key: replace(part, tags=[iob_to_bilou(tags) for tags in part.tags]) for key, part in parts.items()}
    labels = sorted({tag for part in parts.values() for tags in part.tags for tag in tags})
    number = {tag: k for k, tag in enumerate(labels)}
    columns: dict[str, int] = {}
    made = {key: _part(part, number, columns, n, told, learns=key == "train") for key, part in parts.items()}
    # Frequent features first: their weights lie together in memory then.
    counts = np.bincount(made["train"].X.rows.indices, minlength=len(columns))
    place = np.empty(len(columns), np.int32)
    place[np.argsort(-counts, kind="stable")] = np.arange(len(columns), dtype=np.int32)
    for part in made.values():
        part.X.rows.indices = place[part.X.rows.indices]
        part.X.rows.has_sorted_indices = False
        part.X.rows.sort_indices()
    return Corpus(name, labels, made["train"], made["test"], made.get("dev"))


def _part(
    part: mm.datasets.TaggedSentences,
    number: dict[str, int],
    columns: dict[str, int],
    n: int | None,
    told: dict[str, Any],
    *,
    learns: bool,
) -> Part:
    indices, indptr = array("i"), array("q", [0])
    words = part.words[:n]
    for i, sentence in enumerate(words):
        for features in token_features(sentence, None if part.pos is None else part.pos[i], **told):
            if learns:
                indices.extend([columns.setdefault(name, len(columns)) for name in features])
            else:
                indices.extend([columns[name] for name in features if name in columns])
            indptr.append(len(indices))
    ones = np.ones(len(indices), np.uint8)
    rows = sp.csr_matrix(
        (ones, np.array(indices, np.int32), np.array(indptr)), shape=(len(indptr) - 1, max(len(columns), 1))
    )
    Y = [np.array([number[tag] for tag in tags], np.int32) for tags in part.tags[:n]]
    return Part(mm.models.Sequences(rows, [len(sentence) for sentence in words]), Y)


# ----------------------------------------------------------------------------------------------------- scores


def accuracy(predicted: list[np.ndarray], part: Part) -> float:
    """Return the share of tokens with the right label, in per cent."""
    return 100.0 * float(np.mean(np.concatenate(predicted) == np.concatenate(part.Y)))


def chunk_counts(labels: list[str], part: Part, predicted: list[np.ndarray]) -> tuple[int, int, int]:
    """Return how many chunks are right, true and found; one is right if type, begin and end are."""
    true, found = (_chunks(labels, np.concatenate(y), part.X.offsets) for y in (part.Y, predicted))
    return len(np.intersect1d(true, found, assume_unique=True)), len(true), len(found)


def _chunks(labels: list[str], y: np.ndarray, offsets: np.ndarray) -> np.ndarray:
    """Return one number for each chunk; one begins too where IOB's I-, BILOU's I- or L- continue nothing, as in conlleval."""
    kinds = {name: k + 1 for k, name in enumerate(sorted({label[2:] for label in labels if label != "O"}))}
    kind = np.array([0 if label == "O" else kinds[label[2:]] for label in labels])[y]
    is_first = np.zeros(len(y), bool)
    is_first[offsets[:-1]] = True
    may_continue, closes = (np.array([label[0] in marks for label in labels])[y] for marks in ("IL", "LU"))
    continues = may_continue & (kind == np.roll(kind, 1)) & ~np.roll(closes, 1) & ~is_first
    begins = (kind > 0) & ~continues
    ends = (kind > 0) & ~np.append(continues[1:], False)
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    return (first * (len(y) + 1) + last) * (len(kinds) + 1) + kind[first]


# ----------------------------------------------------------------------------------------------------- traces

Point = dict[str, Any]


def trace(
    model: Any,
    problem: Any,
    C: float,
    solver: str,
    options: Mapping[str, Any] | None = None,
    *,
    loss: str = "hinge",
    look: Callable[[Any], Point],
    is_enough: Callable[[Point], bool] = lambda point: False,
    max_cpu: float = np.inf,
    max_iter: int = 10_000,
    spacing: float = 1.05,
    always_look_at: int = 0,
    details: tuple[str, ...] = (),
    seed: int = 0,
) -> list[Point]:
    """Train, and return a point for each iteration: ``cpu``, ``dual``, these ``details``, and what ``look(weights)`` finds.

    Only the solver is on the clock, never ``look``; it is asked where the time has grown by the factor ``spacing`` since it
    was asked last, at iteration ``always_look_at`` and at the end. The solvers evaluate no primal of their own for that.
    """
    chosen = make_solver(Request(solver, loss, "margin", model.abilities, _without_evaluations(solver, options)))
    task = Task(problem, C, loss, 1e-4, np.random.default_rng(seed))
    points: list[Point] = [{"cpu": 0.0, "dual": 0.0, "iteration": 0} | look(problem.zero_weights())]
    last_look = cpu = 0.0
    for iteration, (seconds, step) in enumerate(_on_the_clock(chosen.iterate(task)), start=1):
        cpu += seconds
        point: Point = {"cpu": cpu, "dual": step.dual, "iteration": iteration}
        point |= {name: step.details[name] for name in details}
        is_last = iteration >= max_iter or cpu >= max_cpu or step.is_last
        weights = chosen.result() if not chosen.has_dual else step.weights
        if weights is not None and (cpu >= spacing * last_look or is_last or iteration == always_look_at):
            point |= look(weights)
            last_look = cpu
        points.append(point)
        if is_last or is_enough(point):
            return points
    return points


def _without_evaluations(solver: str, options: Mapping[str, Any] | None) -> dict[str, Any]:
    return dict(options or {}) | ({"evaluate_every": 10**9} if solver in ("sdm", "dcd", "dcd-light") else {})


def _on_the_clock(steps: Iterator[Any]) -> Iterator[tuple[float, Any]]:
    while True:
        start = time.process_time()
        step = next(steps, None)
        seconds = time.process_time() - start
        if step is None:
            return
        yield seconds, step


class Runs:
    """Rows of runs, each known by its key, whose first part names the corpus; a folder keeps a CSV file for each corpus."""

    def __init__(self, folder: Path, keys: tuple[str, ...]) -> None:
        self._folder, self._keys = folder, keys
        self.rows: list[Point] = []
        for path in sorted(folder.glob("*.csv")):
            with open(path, newline="", encoding="utf-8") as stream:
                self.rows += [{key: _value(text) for key, text in row.items()} for row in csv.DictReader(stream)]

    def get(self, *key: Any) -> list[Point]:
        """Return the points of a run; none if it was not made."""
        wanted = dict(zip(self._keys, key, strict=True))
        return [row for row in self.rows if wanted.items() <= row.items()]

    def add(self, key: tuple[Any, ...], points: list[Point]) -> list[Point]:
        """Keep the points of a run, in the file too."""
        made = [dict(zip(self._keys, key, strict=True)) | point for point in points]
        self.rows += made
        rows = [row for row in self.rows if row[self._keys[0]] == key[0]]
        self._folder.mkdir(parents=True, exist_ok=True)
        with open(self._folder / f"{key[0]}.csv", "w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(dict.fromkeys(name for row in rows for name in row)))
            writer.writeheader()
            writer.writerows(rows)
        return made


def _value(text: str) -> Any:
    if text == "":
        return None
    try:
        return float(text)
    except ValueError:
        return text


def known(points: list[Point], column: str) -> list[Point]:
    """Return the points that have a value in this column."""
    return [point for point in points if point.get(column) is not None]
