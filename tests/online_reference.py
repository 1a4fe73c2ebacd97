"""The steps of perceptron, MIRA and SGD written out in NumPy, one example at a time."""

import itertools

import numpy as np
import pytest
import random_problems
from native_models import explicit_planes, native, random_model
from small_model import Classes, data

import maxmargin as mm

ONLINE = ["perceptron", "mira", "sgd"]
NATIVE = ["binary", "multiclass", "chain", "chain with ends"]


class Case:
    """A random problem as the library has it, and its planes as dense vectors."""

    def __init__(self, name, seed, sample_weight=False, nonnegative=False):
        rng = np.random.default_rng([seed, len(name)])
        self.sample_weight = None
        self.bounded = np.zeros(0, int)
        if name == "python":
            self.model, (self.X, self.Y) = Classes(), data(9, seed)
            self.reference = None
            if nonnegative:
                self.model.nonnegative = self.bounded = np.array([0, 3, 4])
        else:
            self.reference = random_model(name, rng)
            # No rows of zeros: which of two outputs with the same score is found would depend on rounding.
            is_chain = name.startswith("chain")
            rows = self.reference.X if is_chain else [self.reference.X]
            for x in rows:
                x += 0.3 * rng.normal(size=x.shape)
            masks = None
            if nonnegative:
                chosen = rng.random(self.reference.n_weights) < 0.5
                chosen[0] = True
                masks = (
                    self.reference.blocks(chosen) if is_chain else {"coef": chosen.reshape(len(self._rows(name)), -1)}
                )
            self.model, self.X, self.Y = native(self.reference, masks, sparse=seed % 2 == 0)
        n = len(self.Y)
        if sample_weight:
            self.sample_weight = random_problems.random_sample_weight(rng, n)
            self.sample_weight[0] = 0.0
        self.problem = self.model.bind(self.X, self.Y, sample_weight=self.sample_weight)
        if nonnegative:
            self.bounded = self.problem.nonnegative
            assert len(self.bounded) > 0
        self.s = np.ones(n) if self.sample_weight is None else self.sample_weight
        self.ids = np.flatnonzero(self.s)

    def _rows(self, name):
        return range(1 if name == "binary" else self.reference.n_labels)

    def planes(self, i, w, **search):
        """(Δ, ψ) of what the search finds for one example at w."""
        weights = self.problem.zero_weights()
        weights.exact[:] = w
        batch = self.problem.oracle(weights, precise=True, **search).search(np.array([i]))
        if self.reference is not None:
            losses, psis = explicit_planes(self.model, self.reference, batch, "margin")
            return list(zip(losses, psis, strict=True))
        found = []
        for k, loss in enumerate(batch.losses()):
            psi = np.array([self.problem.space.dots(batch, unit)[k] for unit in np.eye(self.problem.n_weights)])
            found.append((loss, psi))
        return found

    def train(self, solver, C=1.0, **options):
        return mm.train(
            self.model,
            self.X,
            self.Y,
            C,
            solver=solver,
            sample_weight=self.sample_weight,
            random_state=5,
            solver_options=options,
        )


def average(case, visit, epochs, rng=None):
    """The mean of w after each visit, where ``visit(i, w)`` is what example i adds; negative entries of J become 0."""
    rng = rng or np.random.default_rng(5)
    w, iterates = np.zeros(case.problem.n_weights), []
    for _ in range(epochs):
        for i in rng.permutation(case.ids):
            w = w + case.s[i] * visit(i, w)
            iterates.append(w)
    mean = np.mean(iterates, axis=0)
    mean[case.bounded] = np.maximum(mean[case.bounded], 0.0)
    return mean


def perceptron_step(case, i, w):
    planes = case.planes(i, w, plain=True)
    return planes[0][1] if planes else np.zeros_like(w)


def mira_step(case, i, w, C, k):
    planes = case.planes(i, w, plain=True, k_best=None if k == 1 else k)
    planes = [(loss, psi) for loss, psi in planes if np.any(psi != 0)]
    if not planes:
        return np.zeros_like(w)
    values, psi = np.array([loss - w @ p for loss, p in planes]), np.array([p for _, p in planes])
    if k == 1:
        return np.clip(values[0] / (psi[0] @ psi[0]), 0.0, C) * psi[0]
    return best_multiples(values, psi @ psi.T, C) @ psi


def best_multiples(values, gram, C):
    """argmax Σ α v − ½ α G α, α ≥ 0, Σ α ≤ C: the best of the stationary points of all faces that are feasible."""
    best, best_value, m = np.zeros(len(values)), 0.0, len(values)
    for size in range(1, m + 1):
        for face in map(list, itertools.combinations(range(m), size)):
            sub, v, ones = gram[np.ix_(face, face)], values[face], np.ones(size)
            candidates = [np.linalg.lstsq(sub, v, rcond=1e-12)[0]]
            if np.isfinite(C):
                bordered = np.block([[sub, ones[:, None]], [ones[None, :], np.zeros((1, 1))]])
                candidates.append(np.linalg.lstsq(bordered, np.append(v, C), rcond=1e-12)[0][:size])
            for part in candidates:
                if np.all(part >= -1e-12) and part.sum() <= C * (1 + 1e-12):
                    value = part @ v - 0.5 * part @ sub @ part
                    if value > best_value:
                        best, best_value = np.zeros(m), value
                        best[face] = part
    return best


def descend(case, C, eta0, orders, decay="C", n=None):
    """The last w of SGD."""
    w = np.zeros(case.problem.n_weights)
    n = n or len(case.ids)
    for t, i in enumerate(itertools.chain.from_iterable(orders)):
        planes = case.planes(i, w)
        eta = eta0 / (1 + eta0 * t / (C if decay == "C" else n * C)) ** 0.75
        w = max(0.0, 1 - eta / (n * C)) * w
        if planes:
            w = w + eta * case.s[i] * planes[0][1]
            w[case.bounded] = np.maximum(w[case.bounded], 0.0)
    return w


def variants(names=(*NATIVE, "python")):
    kinds = ("plain", "sample weights", "nonnegative")
    return [pytest.param(name, kind, id=f"{name}, {kind}") for name in names for kind in kinds]


def make(name, kind, seed):
    return Case(name, seed, sample_weight=kind == "sample weights", nonnegative=kind == "nonnegative")
