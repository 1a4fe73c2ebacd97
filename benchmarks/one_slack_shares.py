"""How the plain 1-slack method's two shares were checked: the cached cut's and the QP's, on corpora they were not chosen on.

    MAXMARGIN_DATA=... python benchmarks/one_slack_shares.py [ewt] [jnlpba]

Chains on the first 8,000 sentences of UD English EWT (tags) and JNLPBA (entities), features of ``token_features``, C' = 1000,
ε = 0.1, with the shares that ``solvers/one_slack.py`` has (first row) and others. Writes results/one_slack_shares.md and .csv.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import scipy.sparse as sp
from _measure import Stopwatch, write_table

import maxmargin as mm
from maxmargin.features import token_features
from maxmargin.solvers import one_slack

N_SENTENCES = 8000
SHARES = [(0.1, 0.05), (0.1, 0.15), (0.4, 0.15), (0.2, 0.05), (0.2, 0.3)]
CORPORA = {"ewt": mm.datasets.load_ud_english_ewt, "jnlpba": mm.datasets.load_jnlpba}


def problem(corpus: str) -> tuple[Any, Any, int]:
    """Return sequences, label numbers and the number of labels."""
    sentences = CORPORA[corpus]().train
    words, tags = sentences.words[:N_SENTENCES], sentences.tags[:N_SENTENCES]
    numbers: dict[str, int] = {}
    indices: list[int] = []
    indptr = [0]
    for sentence in words:
        for names in token_features(sentence):
            indices.extend(sorted(numbers.setdefault(name, len(numbers)) for name in names))
            indptr.append(len(indices))
    shape = (len(indptr) - 1, len(numbers))
    X = sp.csr_matrix((np.ones(len(indices), np.uint8), indices, indptr), shape=shape)
    labels = {tag: k for k, tag in enumerate(sorted({tag for sentence in tags for tag in sentence}))}
    Y = [np.array([labels[tag] for tag in sentence]) for sentence in tags]
    return mm.models.Sequences(X, [len(sentence) for sentence in words]), Y, len(labels)


def main(corpora: list[str]) -> None:
    warnings.simplefilter("ignore")
    rows = []
    chosen = one_slack._CACHED_SHARE, one_slack._QP_SHARE
    for corpus in corpora or list(CORPORA):
        X, Y, n_labels = problem(corpus)
        for shares in [chosen, *SHARES]:
            one_slack._CACHED_SHARE, one_slack._QP_SHARE = shares
            with Stopwatch() as watch:
                options = {"epsilon": 0.1}
                solution = mm.train(
                    mm.models.Chain(n_labels), X, Y, C=1000 / len(Y), solver="one-slack", solver_options=options
                )
            rows.append(
                {
                    "corpus": corpus,
                    "cached share": shares[0],
                    "QP share": shares[1],
                    "CPU s": watch.cpu,
                    "iterations": len(solution.history),
                    "passes": sum(not record["from_cache"] for record in solution.history),
                    "primal": solution.certificate.primal,
                    "dual": solution.certificate.dual,
                }
            )
            print(rows[-1], flush=True)
    print(write_table("one_slack_shares", rows, note=(__doc__ or "").splitlines()[0]))


if __name__ == "__main__":
    main(sys.argv[1:])
