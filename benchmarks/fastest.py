"""How fast a certified model is had: block-dual on CoNLL-2000 at C' = 1000, beside CRFsuite on the same features.

    MAXMARGIN_DATA=... python benchmarks/fastest.py [--peers]

CPU seconds of one thread until the relative duality gap is 8.5 %, 1 % and 0.1 %, each gap verified by an exact pass in double
precision; loading is not in it, peak memory includes everything. Test accuracy and chunk F1 are those of the last model.

With --peers python-crfsuite runs too: its averaged perceptron for 100 passes (the yardstick: 57 CPU s on the machine where
SVM-hmm V3.10 takes 215 s to a gap of 8.5 % and IllinoisSL's DCD 496 s to 1.4 % of the squared hinge) and its L-BFGS, which ends
when its own rule says so.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

# One thread means one: NumPy's BLAS would start its own.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from _conll import features_file, load, tag_names
from _measure import in_fresh_process, write_table

GAPS = (8.5e-2, 1e-2, 1e-3)


def train_to(tol: float, solver: str = "block-dual") -> dict[str, Any]:
    """Train until the gap is ``tol``, and measure CPU time and what the model is worth."""
    import maxmargin as mm

    data, Y = load("train")
    model = mm.models.Chain(22)
    start = time.process_time()
    solution = mm.train(model, data, Y, C=1000 / len(data), solver=solver, tol=tol)
    cpu = time.process_time() - start
    test, truth = load("test", model.n_features)
    certificate = solution.certificate
    return {
        "cpu": cpu,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.relative_gap,
        "passes": certificate.oracle_calls / len(data),
        **scores(test, truth, model.predict(test, solution.w)),
    }


def scores(test: Any, truth: Any, predicted: Any) -> dict[str, float]:
    """Return the share of right labels and F1 over all chunks, in per cent."""
    from _tagging import Corpus, Part, accuracy

    part = Part(test, truth)
    corpus = Corpus("conll2000", tag_names(), part, part, None)
    return {"accuracy": accuracy(predicted, part), "F1": corpus.score(predicted, part)}


def crfsuite(algorithm: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Train CRFsuite on the same features, and measure the same."""
    import numpy as np
    import pycrfsuite  # type: ignore[import-untyped]
    from yardstick import _sentences

    trainer = pycrfsuite.Trainer(verbose=False)
    trainer.select(algorithm)
    trainer.set_params(parameters)
    for features, tags in _sentences(features_file("train")):
        trainer.append(features, tags)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "model.crfsuite")
        start = time.process_time()
        trainer.train(path)
        cpu = time.process_time() - start
        tagger = pycrfsuite.Tagger()
        tagger.open(path)
        tagged = [tagger.tag(features) for features, _ in _sentences(features_file("test"))]
    test, truth = load("test")
    return {"cpu": cpu, **scores(test, truth, [np.array(tags, dtype=int) - 1 for tags in tagged])}


def main() -> None:
    """Measure and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="run CRFsuite too (minutes)")
    arguments = parser.parse_args()
    rows = []
    for tol in GAPS:
        measured = in_fresh_process(train_to, tol)
        rows.append({"what": f"block-dual to {tol:g}", **measured.result, "peak MB": measured.peak_memory / 1e6})
        print(rows[-1], flush=True)
    peers = {
        "CRFsuite averaged perceptron, 100 passes": ("ap", {"max_iterations": 100, "epsilon": 0.0}),
        "CRFsuite L-BFGS": ("lbfgs", {}),
    }
    for name, (algorithm, parameters) in peers.items() if arguments.peers else ():
        measured = in_fresh_process(crfsuite, algorithm, parameters)
        rows.append({"what": name, **measured.result, "peak MB": measured.peak_memory / 1e6})
        print(rows[-1], flush=True)
    print(
        write_table(
            "fastest", rows, "CoNLL-2000 in SVM-hmm's features, hinge loss, C' = 1000, one thread; CPU seconds."
        )
    )


if __name__ == "__main__":
    main()
