"""The 1-slack method against SVM-hmm, SVM-perf and CRFsuite: CPU time, peak memory, bounds.

    MAXMARGIN_DATA=... python benchmarks/one_slack.py [conll] [covtype] [threads] [large]

conll     CoNLL-2000 chunking in SVM-hmm's features at C' = 1000, plain with cache and stabilised. SVM-hmm V3.10 took 133 CPU s at
          ε = 0.5 and 215 at ε = 0.1 on a machine where the yardstick takes 57 s; the yardstick is run here too and scales them.
covtype   class 2 of Covertype against the rest, 522,911 rows, C = 1.9124, ε = 0.001: SVM-perf with -c 10000 -e 0.1 took 89 CPU s
          on that machine.
threads   seconds of one oracle pass over CoNLL-2000 with one and two threads, best of three.
large     one chain model of more than 18 million weights: UD English EWT, 49 tags, all prefixes and suffixes of three words.

Every row is a process of its own. CPU time is that of the training call; loading is not in it, memory includes everything.
"""

from __future__ import annotations

import os
import sys
import time
from array import array
from pathlib import Path
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from _conll import load
from _measure import in_fresh_process, write_table

YARDSTICK_SECONDS = 57.0
STABLE = {"stabilization": "line-search"}


def train_conll(options: dict[str, Any], tol: float) -> dict[str, Any]:
    """Train on CoNLL-2000 at C' = 1000."""
    import maxmargin as mm

    data, Y = load("train")
    model = mm.models.Chain(22)
    return _timed(
        lambda: mm.train(model, data, Y, C=1000 / len(data), solver="one-slack", tol=tol, solver_options=options)
    )


def train_covtype(options: dict[str, Any]) -> dict[str, Any]:
    """Train class 2 of Covertype against the rest; a constant column is the bias."""
    import numpy as np

    import maxmargin as mm

    covtype = mm.datasets.load_covtype()
    rows = np.random.default_rng(0).permutation(len(covtype.X))[:522_911]
    X = np.ones((len(rows), 55))
    X[:, :54] = covtype.X[rows]
    X[:, :10] = (X[:, :10] - X[:, :10].mean(axis=0)) / X[:, :10].std(axis=0)
    y = np.where(covtype.y[rows] == 2, 1, -1)
    return _timed(lambda: mm.train(mm.models.Binary(), X, y, C=1.9124, solver="one-slack", solver_options=options))


def train_large() -> dict[str, Any]:
    """Train on UD English EWT with every prefix and suffix of a word and its neighbours, unpruned."""
    import numpy as np
    import scipy.sparse as sp

    import maxmargin as mm
    from maxmargin.features import token_features

    corpus = mm.datasets.load_ud_english_ewt(tags="xpos").train
    tags = {tag: k for k, tag in enumerate(sorted({tag for sentence in corpus.tags for tag in sentence}))}
    numbers: dict[str, int] = {}
    indices, indptr = array("i"), array("q", [0])
    for words in corpus.words:
        alone = token_features(words, max_affix=None, window=1)
        for t in range(len(words)):
            near = {
                f"{place}{name}" for place in (-1, 0, 1) if 0 <= t + place < len(words) for name in alone[t + place]
            }
            indices.extend(sorted(numbers.setdefault(name, len(numbers)) for name in near))
            indptr.append(len(indices))
    values = np.ones(len(indices), np.uint8)
    X = sp.csr_matrix((values, np.array(indices), np.array(indptr)), shape=(len(indptr) - 1, len(numbers)))
    del indices, indptr, numbers
    data = mm.models.Sequences(X, [len(words) for words in corpus.words])
    Y = [np.array([tags[tag] for tag in sentence]) for sentence in corpus.tags]
    model = mm.models.Chain(len(tags))
    row = _timed(lambda: mm.train(model, data, Y, C=0.1, solver="one-slack", tol=0.05, solver_options=STABLE))
    return row | {"weights": model.n_features * model.n_labels + model.n_labels**2, "tokens": X.shape[0]}


def oracle_seconds(n_jobs: int) -> float:
    """Return the wall seconds of one oracle pass, best of three."""
    import numpy as np

    import maxmargin as mm

    data, Y = load("train")
    problem = mm.models.Chain(22).bind(data, Y, n_jobs=n_jobs)
    w = problem.zero_weights()
    w.exact[:] = 0.01 * np.random.default_rng(0).normal(size=problem.n_weights)
    times = []
    for _ in range(4):
        start = time.perf_counter()
        problem.separate(problem.all_ids, w, precise=False)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def _timed(training: Any) -> dict[str, Any]:
    import warnings

    warnings.simplefilter("ignore")
    start = time.process_time()
    solution = training()
    cpu = time.process_time() - start
    certificate, last = solution.certificate, solution.history[-1]
    parts = {key: sum(record[key] for record in solution.history) for key in last if key.startswith("time_")}
    return {
        "CPU s": cpu,
        "iterations": len(solution.history),
        "oracle calls": certificate.oracle_calls,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "relative gap": certificate.relative_gap,
    } | parts


def _row(
    name: str, function: Any, *arguments: Any, peer_seconds: float | None = None, scale: float = 1.0
) -> dict[str, Any]:
    measured = in_fresh_process(function, *arguments)
    row = {"run": name} | measured.result | {"peak MB": measured.peak_memory / 1e6}
    if peer_seconds is not None:
        row |= {
            "peer CPU s, scaled": peer_seconds * scale,
            "times faster": peer_seconds * scale / measured.result["CPU s"],
        }
    print(
        ", ".join(f"{key} {value:.5g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()),
        flush=True,
    )
    return row


def main(parts: list[str]) -> None:
    """Run the named parts, or all but the large one, and write results/one_slack.md."""
    from yardstick import crfsuite_yardstick

    parts = parts or ["conll", "covtype", "threads"]
    rows: list[dict[str, Any]] = []
    path = Path(os.environ["MAXMARGIN_DATA"]) / "features" / "conll2000.train.svmhmm.gz"
    seconds = crfsuite_yardstick(path)
    scale = seconds / YARDSTICK_SECONDS
    rows.append({"run": "yardstick: CRFsuite, averaged perceptron, 100 passes", "CPU s": seconds})
    print(f"yardstick {seconds:.1f} CPU s, scale {scale:.2f}", flush=True)
    if "conll" in parts:
        for epsilon, peer in ((0.5, 133.0), (0.1, 215.0)):
            rows.append(
                _row(
                    f"CoNLL plain, ε = {epsilon}",
                    train_conll,
                    {"epsilon": epsilon},
                    0.0,
                    peer_seconds=peer,
                    scale=scale,
                )
            )
            rows.append(
                _row(
                    f"CoNLL stabilised, ε = {epsilon}",
                    train_conll,
                    STABLE | {"epsilon": epsilon},
                    0.0,
                    peer_seconds=peer,
                    scale=scale,
                )
            )
        rows.append(_row("CoNLL stabilised, gap 1 %", train_conll, STABLE, 0.01))
    if "covtype" in parts:
        for name, options in (("plain", {}), ("stabilised", STABLE)):
            rows.append(
                _row(
                    f"Covertype {name}, ε = 0.001",
                    train_covtype,
                    {"epsilon": 0.001} | options,
                    peer_seconds=89.0,
                    scale=scale,
                )
            )
    if "threads" in parts:
        one, two = (in_fresh_process(oracle_seconds, n_jobs).result for n_jobs in (1, 2))
        rows.append({"run": "oracle pass, wall s, 1 thread", "CPU s": one})
        rows.append({"run": "oracle pass, wall s, 2 threads", "CPU s": two, "times faster": one / two})
        print(rows[-1], flush=True)
    if "large" in parts:
        rows.append(_row("UD English EWT, all affixes", train_large))
    print(write_table("one_slack", rows, note=__doc__.splitlines()[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
