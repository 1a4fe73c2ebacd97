"""Estimators with data that come in parts, for the tests of partial_fit."""

import numpy as np
import pytest
from small_model import Classes, data
from tagging_problem import tagging_problem

import maxmargin as mm

ONLINE = ["perceptron", "mira", "sgd"]
WORDS = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=a"], ["w=cat"]], [["w=a"], ["w=dog"], ["w=sleeps"]]]
TAGS = [["D", "N", "V"], ["D", "N"], ["D", "N", "V"]]


def options(solver):
    """A given step size, so that no search for it depends on what the first call brought."""
    return {"eta0": 0.25} if solver == "sgd" else None


def make(kind, solver):
    """An estimator, its data, and what else its first call must be given."""
    settings = {"solver": solver, "solver_options": options(solver)}
    rng = np.random.default_rng(1)
    if kind == "binary":
        X = rng.normal(size=(40, 3))
        return (
            mm.BinarySVM(**settings),
            X,
            np.where(X[:, 0] + 0.5 * rng.normal(size=40) > 0, "yes", "no"),
            {"classes": ["no", "yes"]},
        )
    if kind == "multiclass":
        X = rng.normal(size=(40, 3))
        return mm.MulticlassSVM(**settings), X, X.argmax(axis=1) + 5, {"classes": [7, 5, 6]}
    if kind == "chain":
        X, Y = tagging_problem()
        return mm.ChainSVM(ends=True, **settings), X[:40], [y.tolist() for y in Y[:40]], {"classes": range(4)}
    if kind == "graph":
        # Rings of three and four nodes, searched by enumeration, with two types of edges.
        X = [ring(rng.normal(size=(3 + i % 2, 2))) for i in range(40)]
        return mm.GraphSVM(**settings), X, [["xyz"[k] for k in codes(x)] for x in X], {"classes": ["z", "y", "x"]}
    X, Y = data(40)
    return mm.StructuralSVM(Classes(), **settings), X, Y, {}


def ring(rows):
    """A graph of nodes in a circle, whose last edge is of another type."""
    n = len(rows)
    return mm.Graph(rows, [[i, (i + 1) % n] for i in range(n)], edge_types=[0] * (n - 1) + [1])


def codes(graph):
    """Labels that a pairwise model learns: of three classes the best by a linear score."""
    return (graph.rows @ [[1.0, -1.0, 0.0], [0.0, 0.0, 1.0]]).argmax(axis=1)


KINDS = ["binary", "multiclass", "chain", "graph", "structural"]
every_kind = pytest.mark.parametrize("kind", KINDS)
every_solver = pytest.mark.parametrize("solver", ONLINE)


def weights(estimator):
    """All weights of a fitted estimator."""
    parts = [estimator.coef_.ravel()]
    parts += [
        getattr(estimator, name).ravel()
        for name in ("intercept_", "transition_", "start_", "edge_coef_")
        if hasattr(estimator, name)
    ]
    return np.concatenate(parts)
