"""Block-dual against LIBLINEAR on rows with one label: CPU time to the primal at which LIBLINEAR stops, plus 0.1 %.

    MAXMARGIN_DATA=... python benchmarks/liblinear.py [--data covtype,tokens] [--C 0.01,0.1,1,10]

covtype   522,911 × 54 and a constant column: class 2 against the rest, and all 7 classes.
tokens    the words of CoNLL-2000 one by one, 211,727 × 178,088 and a constant column: B-NP against the rest, and all 22 tags.

LIBLINEAR is scikit-learn's LinearSVC with the hinge loss (LIBLINEAR's -s 3) or Crammer and Singer's (-s 4), no intercept, the
tolerance 0.1 that is LIBLINEAR's default for both, and its 1000 iterations. Its time is that of fit, with and without the copy of
the data into its own format. Ours is that of training to the target, with and without checking and binding the data.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from _measure import Stopwatch, write_table

TOLERANCE = 0.1
SLACK = 1.001


def covtype() -> tuple[Any, Any, int]:
    """Return Covertype, standardised and with a constant column, its classes from 0, and the one told from the rest."""
    import maxmargin as mm

    data = mm.datasets.load_covtype()
    rows = np.random.default_rng(0).permutation(len(data.X))[:522_911]
    X = np.ones((len(rows), 55))
    X[:, :54] = data.X[rows]
    X[:, :10] = (X[:, :10] - X[:, :10].mean(axis=0)) / X[:, :10].std(axis=0)
    return X, data.y[rows] - 1, 1


def tokens() -> tuple[Any, Any, int]:
    """Return the words of CoNLL-2000 in SVM-hmm's features and a constant column, tags from 0, and the number of B-NP."""
    import scipy.sparse as sp

    import maxmargin as mm

    path = Path(os.environ["MAXMARGIN_DATA"]) / "features" / "conll2000.train.svmhmm.gz"
    X, _, tags = mm.files.read_svm_hmm(path, stacked=True, dtype=np.float64)
    return sp.hstack([X, np.ones((X.shape[0], 1))]).tocsr(), tags - 1, 0


def primal(X: Any, y: Any, coef: Any, C: float) -> float:
    """Return ½‖w‖² + C Σ H; labels are signs where coef has one row."""
    scores = X @ coef.T
    if len(coef) == 1:
        slacks = 1.0 - y * scores[:, 0]
    else:
        rows = np.arange(len(y))
        values = 1.0 + scores - scores[rows, y][:, None]
        values[rows, y] = 0.0
        slacks = values.max(axis=1)
    return float(0.5 * np.sum(coef**2) + C * np.maximum(slacks, 0.0).sum())


def liblinear(X: Any, y: Any, C: float, is_binary: bool, max_iter: int) -> tuple[float, Any]:
    """Return the CPU seconds of LIBLINEAR, and the fitted estimator."""
    from sklearn.svm import LinearSVC

    kind = {"loss": "hinge", "dual": True} if is_binary else {"multi_class": "crammer_singer"}
    peer = LinearSVC(C=C, fit_intercept=False, tol=TOLERANCE, max_iter=max_iter, random_state=0, **kind)
    with Stopwatch() as watch:
        peer.fit(X, y)
    return watch.cpu, peer


def ours(X: Any, y: Any, C: float, is_binary: bool, target: float) -> tuple[float, float, Any]:
    """Return the CPU seconds of training to the target, those of binding the data before, and the solution."""
    import maxmargin as mm
    from maxmargin.solvers import make_solver
    from maxmargin.solvers.base import Request, Task
    from maxmargin.solvers.driver import run

    model = mm.models.Binary() if is_binary else mm.models.Multiclass(int(y.max()) + 1)
    with Stopwatch() as binding:
        problem = model.bind(X, y)
    solver = make_solver(Request("block-dual", "hinge", "margin", model.abilities))
    start = time.process_time()
    solution = run(solver, Task(problem, C, tol=1e-9), callback=lambda record: record["primal"] <= target)
    return time.process_time() - start, binding.cpu, solution


def compare(name: str, X: Any, labels: Any, chosen: int, Cs: list[float]) -> Iterator[dict[str, Any]]:
    """Yield a row for each C, of two classes and of all."""
    for is_binary in (True, False):
        y = np.where(labels == chosen, 1, -1) if is_binary else labels
        copying = min(liblinear(X, y, 1e-9, is_binary, 1)[0] for _ in range(2))
        for C in Cs:
            seconds, peer = liblinear(X, y, C, is_binary, 1000)
            target = primal(X, y, peer.coef_, C)
            training, binding, solution = ours(X, y, C, is_binary, SLACK * target)
            reached = solution.certificate.primal <= SLACK * target
            yield {
                "data": f"{name}, {'two classes' if is_binary else 'all classes'}",
                "C": C,
                "LIBLINEAR, CPU s": seconds,
                "without copying": seconds - copying,
                "iterations": int(np.max(peer.n_iter_)),
                "its primal": target,
                "ours, CPU s": training,
                "with binding": training + binding,
                "our primal": solution.certificate.primal if reached else None,
                "our dual": solution.certificate.dual,
                "ratio": (training + binding) / seconds,
                "ratio without": training / (seconds - copying),
            }


def main() -> None:
    """Run the named data for the given C, and write results/liblinear.md."""
    loaders = {"covtype": covtype, "tokens": tokens}
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--data", default=",".join(loaders))
    parser.add_argument("--C", default="0.01,0.1,1,10")
    given = parser.parse_args()
    names = given.data.split(",")
    if unknown := [name for name in names if name not in loaders]:
        parser.error(f"--data knows {', '.join(loaders)}, not {', '.join(unknown)}")
    warnings.simplefilter("ignore")
    Cs = [float(C) for C in given.C.split(",")]
    rows: list[dict[str, Any]] = []
    for name in names:
        for row in compare(name, *loaders[name](), Cs):
            rows.append(row)
            print(", ".join(f"{k} {v:.5g}" if isinstance(v, float) else f"{k} {v}" for k, v in row.items()), flush=True)
    print(write_table("liblinear", rows, note=str(__doc__).splitlines()[0]))


if __name__ == "__main__":
    main()
