"""A chain problem of moderate size, trained with any solver and options."""

import functools

import numpy as np

import maxmargin as mm


@functools.cache
def tagging_problem():
    """A chain problem that takes a few dozen iterations: 120 sequences of 2 to 7 tokens."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 8, size=120)
    X = [rng.normal(size=(length, 6)) for length in lengths]
    truth = rng.normal(size=(4, 6))
    Y = [np.argmax(x @ truth.T + 0.7 * rng.normal(size=(len(x), 4)), axis=1) for x in X]
    return X, Y


def train(solver="one-slack", rescaling="margin", C=0.05, **options):
    X, Y = tagging_problem()
    options = {"tol": 1e-5, "random_state": 0, **options}
    return mm.train(mm.models.Chain(4, ends=True), X, Y, C, solver=solver, rescaling=rescaling, **options)


def column(solution, name):
    return [record[name] for record in solution.history]
