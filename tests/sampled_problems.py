"""Small problems with kernels, and sampled cuts trained on them."""

import functools

import numpy as np

import maxmargin as mm

STRATEGIES = ["linear", "constant"]
KINDS = ["binary", "multiclass", "chain"]
RBF = mm.Kernel("rbf", gamma=1.5)


@functools.cache
def problem(kind, weighted=False):
    """Model, X, Y, C, sample weights; few enough rows for the exact optimum."""
    rng = np.random.default_rng(0)
    if kind == "chain":
        X = [rng.normal(size=(length, 2)) for length in rng.integers(2, 6, size=60)]
        Y = [np.argmax(np.sin(2 * x) @ rng.normal(size=(2, 3)) + 0.5 * rng.normal(size=(len(x), 3)), axis=1) for x in X]
        model, C = mm.models.Chain(3, ends=True, kernel=RBF), 0.5
    else:
        X = rng.uniform(-2.0, 2.0, size=(150, 2))
        squares = np.floor(X + 0.1 * rng.normal(size=X.shape)).sum(axis=1).astype(int)
        is_binary = kind == "binary"
        Y = 2 * (squares % 2) - 1 if is_binary else squares % 3
        model, C = (mm.models.Binary(kernel=RBF), 2.0) if is_binary else (mm.models.Multiclass(3, kernel=RBF), 1.0)
    s = rng.uniform(0.2, 3.0, size=len(Y)) * (rng.random(len(Y)) < 0.75) if weighted else None
    return model, X, Y, C, s


@functools.cache
def exact(kind, weighted=False):
    model, X, Y, C, s = problem(kind, weighted)
    return mm.train(model, X, Y, C, solver="one-slack", tol=1e-6, sample_weight=s).certificate


def train(kind="binary", weighted=False, seed=0, max_iter=10_000, max_time=None, verbose=0, n_jobs=1, **options):
    model, X, Y, C, s = problem(kind, weighted)
    return mm.train(
        model,
        X,
        Y,
        C,
        solver="sampled-cuts",
        sample_weight=s,
        random_state=seed,
        max_iter=max_iter,
        max_time=max_time,
        verbose=verbose,
        n_jobs=n_jobs,
        solver_options=options,
    )


def column(solution, name):
    return [record[name] for record in solution.history]
