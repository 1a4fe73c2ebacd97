"""Small random sequences in every form that ChainSVM takes."""

import numpy as np
import scipy.sparse as sp

from maxmargin.models import Sequences

NAMES = [f"f{j}" for j in range(6)]
LABELS = ["A", "B", "C"]


def sequences(seed=0, n=12):
    """Random sequences of indicator rows, and labels that follow from them."""
    rng = np.random.default_rng(seed)
    X = [(rng.random((length, 6)) < 0.5).astype(float) for length in rng.integers(1, 7, n)]
    scores = rng.normal(size=(6, 3))
    return X, [[LABELS[k] for k in (x @ scores).argmax(axis=1)] for x in X]


def as_kind(X, kind):
    """The same sequences in another form."""
    if kind == "dense":
        return X
    if kind == "stacked":
        return Sequences(np.concatenate(X), [len(x) for x in X])
    if kind in ("csr", "csr64"):
        matrices = [sp.csr_array(x) for x in X]
        for matrix in matrices:
            if kind == "csr64":
                matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
        return matrices
    if kind == "float32":
        return [x.astype(np.float32) for x in X]
    if kind == "integers":
        return [x.astype(int) for x in X]
    if kind == "lists":
        return [x.tolist() for x in X]
    named = [[[name for name, value in zip(NAMES, row, strict=True) if value] for row in x] for x in X]
    if kind == "strings":
        return named
    if kind == "repeated strings":
        return [[token * 2 for token in x] for x in named]
    return [[dict.fromkeys(token, 1.0) for token in x] for x in named]


def replaced(values, i, value):
    return [*values[:i], value, *values[i + 1 :]]
