"""The yardstick: python-crfsuite's averaged perceptron on CoNLL-2000, in CPU seconds.

Speed targets are ratios to this number, taken on the same machine and best in the same run:

    python benchmarks/yardstick.py [train.svmhmm[.gz]] [--iterations 100]

Without a file, features/conll2000.train.svmhmm.gz of the folder named by MAXMARGIN_DATA is used.
Only the training call is timed; reading the file and filling the trainer are not.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pycrfsuite  # type: ignore[import-untyped]

Sentence = tuple[list[list[str]], list[str]]


class _CountingTrainer(pycrfsuite.BaseTrainer):  # type: ignore[misc]
    """A silent trainer that counts the iterations CRFsuite reports."""

    iterations = 0

    def message(self, message: str) -> None:
        self.iterations += message.count("***** Iteration #")


def _sentences(path: str | os.PathLike[str]) -> Iterator[Sentence]:
    """Feature strings and tags of each sequence of an SVM-hmm file whose values are all 1."""
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rt", encoding="ascii") as lines:
        rows = (line.split() for line in lines)
        for _, tokens in groupby(rows, key=lambda row: row[1]):
            features, tags = [], []
            for tag, _, *pairs in tokens:
                features.append([pair.removesuffix(":1") for pair in pairs])
                tags.append(tag)
            yield features, tags


def crfsuite_yardstick(path: str | os.PathLike[str], iterations: int = 100) -> float:
    """CPU seconds of ``iterations`` passes of CRFsuite's averaged perceptron over an SVM-hmm file.

    Raises RuntimeError when CRFsuite stopped early, because the time would then mean nothing.
    """
    trainer = _CountingTrainer()
    trainer.select("ap")
    # CRFsuite stops once the mean loss of a pass falls below epsilon: 0 never does.
    trainer.set_params({"max_iterations": iterations, "epsilon": 0.0})
    for features, tags in _sentences(path):
        trainer.append(features, tags)
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        trainer.train(str(Path(folder) / "model.crfsuite"))
        seconds = time.process_time() - start
    if trainer.iterations != iterations:
        raise RuntimeError(f"CRFsuite ran {trainer.iterations} iterations, not {iterations}: the time is no yardstick.")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU seconds of CRFsuite's averaged perceptron.")
    parser.add_argument("path", nargs="?", help="an SVM-hmm file with values 1")
    parser.add_argument("--iterations", type=int, default=100)
    arguments = parser.parse_args()
    path = arguments.path
    if path is None:
        if "MAXMARGIN_DATA" not in os.environ:
            parser.error("name a file, or set MAXMARGIN_DATA to the data folder")
        path = Path(os.environ["MAXMARGIN_DATA"]) / "features" / "conll2000.train.svmhmm.gz"
    seconds = crfsuite_yardstick(path, arguments.iterations)
    print(f"crfsuite averaged perceptron, {arguments.iterations} iterations: {seconds:.1f} CPU s")


if __name__ == "__main__":
    main()
