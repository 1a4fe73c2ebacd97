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

from _measure import in_fresh_process, write_table

GAPS = (8.5e-2, 1e-2, 1e-3)


def features_file(part: str) -> Path:
    """Return the path of the features of CoNLL-2000."""
    return Path(os.environ["MAXMARGIN_DATA"]) / "features" / f"conll2000.{part}.svmhmm.gz"


def load(part: str, n_features: int | None = None) -> tuple[Any, Any]:
    """Return stacked sequences and label numbers; the features are all 1 and take one byte each.

    Features above ``n_features``, which training has not seen, are left out.
    """
    import numpy as np

    import maxmargin as mm

    extra: Any = "error" if n_features is None else "ignore"
    X, lengths, tags = mm.files.read_svm_hmm(
        features_file(part), stacked=True, dtype=np.float32, n_features=n_features, extra_features=extra
    )
    X.data = X.data.astype(np.uint8)
    data = mm.models.Sequences(X, lengths)
    return data, np.split(tags - 1, data.offsets[1:-1])


def train_to(tol: float, solver: str = "block-dual") -> dict[str, Any]:
    """Train until the gap is ``tol``, and measure CPU time and what the model is worth."""
    import numpy as np

    import maxmargin as mm

    data, Y = load("train")
    model = mm.models.Chain(22)
    start = time.process_time()
    solution = mm.train(model, data, Y, C=1000 / len(data), solver=solver, tol=tol)
    cpu = time.process_time() - start
    test, truth = load("test", model.n_features)
    predicted = model.predict(test, solution.w)
    certificate = solution.certificate
    return {
        "cpu": cpu,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "gap": certificate.relative_gap,
        "passes": certificate.oracle_calls / len(data),
        "accuracy": 100 * float(np.mean(np.concatenate(predicted) == np.concatenate(truth))),
        "F1": 100 * chunk_f1(truth, predicted),
    }


def tag_names() -> list[str]:
    """Return the chunk tags by label number."""
    import json

    numbers = json.loads((Path(os.environ["MAXMARGIN_DATA"]) / "features" / "conll2000.tags.json").read_text())
    return sorted(numbers, key=numbers.__getitem__)


def chunks(tags: list[str]) -> set[tuple[str, int, int]]:
    """Return (type, first, end) of the chunks in an IOB2 sequence, as conlleval counts them."""
    found, begin, kind = set(), 0, ""
    for t, tag in enumerate([*tags, "O"]):
        inside = tag.startswith("I-") and tag[2:] == kind
        if kind and not inside:
            found.add((kind, begin, t))
            kind = ""
        if tag.startswith("B-") or (tag.startswith("I-") and not inside):
            begin, kind = t, tag[2:]
    return found


def chunk_f1(truth: Any, predicted: Any) -> float:
    """Return F1 over all chunks."""
    names = tag_names()
    right = n_true = n_predicted = 0
    for y, p in zip(truth, predicted, strict=True):
        wanted, found = (chunks([names[label] for label in labels]) for labels in (y, p))
        right += len(wanted & found)
        n_true += len(wanted)
        n_predicted += len(found)
    return 2 * right / (n_true + n_predicted)


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
        truth, predicted = [], []
        for features, tags in _sentences(features_file("test")):
            truth.append(np.array(tags, dtype=int) - 1)
            predicted.append(np.array(tagger.tag(features), dtype=int) - 1)
    accuracy = 100 * float(np.mean(np.concatenate(predicted) == np.concatenate(truth)))
    return {"cpu": cpu, "accuracy": accuracy, "F1": 100 * chunk_f1(truth, predicted)}


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
