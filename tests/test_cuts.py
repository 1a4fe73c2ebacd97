"""Cuts of the core against sums of explicit vectors."""

import numpy as np
import pytest
import random_problems
import reference_models
from native_models import MODELS, explicit_planes, many_planes, native, random_model, random_vectors

from maxmargin import _core

pytestmark = pytest.mark.core


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_a_pass_summed_at_once_and_a_cut_assembled_from_planes_are_the_explicit_sum(name, rescaling, weighted):
    for seed in range(5):
        rng = np.random.default_rng([seed, MODELS.index(name)])
        model = random_model(name, rng)
        chosen, X, Y = native(model)
        s = random_problems.random_sample_weight(rng, model.n_examples) if weighted else None
        problem = chosen.bind(X, Y, rescaling=rescaling, sample_weight=s)
        weights = problem.zero_weights()
        weights.exact[...] = 0.3 * rng.normal(size=problem.n_weights)
        batch = problem.separate(problem.all_ids, weights, precise=True)
        losses, psi = explicit_planes(chosen, model, batch, rescaling)
        share = np.ones(len(batch)) if s is None else s[batch.examples()]
        loss, total, n_planes = problem.space.separate_and_sum(weights.exact, None, problem.sample_weight, 1)
        assert loss == pytest.approx(share @ losses)
        assert total == pytest.approx(share @ psi, abs=1e-10)
        assert n_planes == np.count_nonzero(share)
        cuts = _core.CutSet(problem.n_weights)
        cuts.assemble(problem.space, batch, problem.sample_weight)
        assert cuts.pending_loss == pytest.approx(share @ losses)
        assert pending(cuts, problem.n_weights) == pytest.approx(share @ psi, abs=1e-10)


def pending(cuts, n_weights):
    vector = np.zeros(n_weights)
    cuts.add_pending(1.0, vector)
    return vector


# One block of 8192 coordinates and several; units, small integers (16 bits), integers beyond that are split, and reals.
VALUES = {
    "small integers": lambda rng, size: rng.integers(-5, 6, size=size).astype(float),
    "units": lambda rng, size: rng.choice([-1.0, 1.0], size=size),
    "the widest 16-bit integers": lambda rng, size: rng.choice([-32767.0, 32767.0, 1.0], size=size),
    "integers beyond 16 bits": lambda rng, size: rng.choice([-32769.0, 32768.0, 32 * 32767.0, 2.0], size=size),
    "integers of any size": lambda rng, size: rng.choice([-32769.0, 32 * 32767.0 + 1.0, 1e9, 2.0], size=size),
    "reals": lambda rng, size: rng.normal(size=size),
    "halves": lambda rng, size: rng.integers(-5, 6, size=size) / 2.0,
    "huge and tiny": lambda rng, size: rng.choice([1e100, 1e-100, -3.0], size=size) * rng.random(size),
}


@pytest.mark.parametrize("n_threads", [1, 2])
@pytest.mark.parametrize("n_weights", [1, 7, 8192, 8193, 20_000])
@pytest.mark.parametrize("kind", VALUES)
def test_cuts_multiply_and_add_up_like_dense_vectors(kind, n_weights, n_threads):
    rng = np.random.default_rng(n_weights)
    cuts, kept, losses = _core.CutSet(n_weights), [], []
    w = rng.normal(size=n_weights)
    for step in range(12):
        vector = np.where(rng.random(n_weights) < 0.2, VALUES[kind](rng, n_weights), 0.0)
        if step % 5 == 4:
            vector = VALUES["reals"](rng, n_weights)  # dense, and of another width than its neighbours
        loss = float(step)
        cuts.load(loss, vector)
        assert cuts.pending_loss == loss
        assert np.array_equal(pending(cuts, n_weights), vector)
        some = rng.integers(n_weights, size=3)
        assert np.array_equal(cuts.pending_at(some), vector[some])
        assert cuts.pending_dot(w) == pytest.approx(vector @ w, rel=1e-9, abs=1e-9 * np.abs(vector * w).sum())
        kept.append(vector)
        losses.append(loss)
        row = cuts.keep(n_threads)
        exact = np.array(kept) @ vector
        size = np.abs(np.array(kept)) @ np.abs(vector)
        assert np.all(np.abs(row - exact) <= 1e-12 * size)
        if step in (3, 8):
            gone = np.array([0, 2, len(kept) - 1])
            cuts.remove(gone)
            kept = [v for k, v in enumerate(kept) if k not in gone]
        assert len(cuts) == len(kept)
    coefficients = rng.normal(size=len(kept)) * (rng.random(len(kept)) < 0.7)
    moved, rounded = w.copy(), np.zeros(n_weights, np.float32)
    cuts.add(coefficients, moved, rounded, n_threads)
    expected = w + coefficients @ np.array(kept)
    size = np.abs(w) + np.abs(coefficients) @ np.abs(np.array(kept))
    assert np.all(np.abs(moved - expected) <= 1e-12 * size)
    assert np.array_equal(rounded, np.clip(moved, -1e37, 1e37).astype(np.float32))


def test_a_split_integer_does_not_fill_the_place_of_a_zero():
    # As many entries as places: 40,000 takes two, before the half widens all of them.
    vector, w = np.array([40_000.0, 0.0, 0.5]), np.array([1.0, 10.0, 100.0])
    cuts = _core.CutSet(3)
    cuts.load(0.0, vector)
    assert cuts.pending_dot(w) == vector @ w
    assert cuts.keep(1) == [vector @ vector]


def test_a_cut_assembled_after_another_one_starts_from_zero():
    rng = np.random.default_rng(4)
    space = _core.VectorSpace(5, 9000, "margin")
    cuts = _core.CutSet(9000)
    for step in range(8):
        if step % 3 == 2:
            cuts.load(1.0, rng.normal(size=9000))
        batch, losses, psi, examples = random_vectors(rng, 5, 9000, 5, integer=step % 2 == 0)
        s = rng.uniform(0.0, 2.0, size=5) * (rng.random(5) < 0.8)
        cuts.assemble(space, batch, s)
        assert cuts.pending_loss == pytest.approx(s[examples] @ losses)
        assert pending(cuts, 9000) == pytest.approx(s[examples] @ psi, abs=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_cuts_that_are_counted_multiply_like_those_that_are_summed(name):
    for seed in range(5):
        rng = np.random.default_rng([seed, MODELS.index(name)])
        model = random_model(name, rng)
        ones = [np.sign(x) * (rng.random(np.shape(x)) < 0.5) for x in model.X]
        model.X = (
            [np.abs(x) for x in ones] if isinstance(model, reference_models.ChainModel) else np.abs(np.array(ones))
        )
        if name == "binary":
            model.bias = None
        chosen, X, Y = native(model, sparse=True)
        problem = chosen.bind(X, Y)
        cuts, kept = _core.CutSet(problem.n_weights), []
        for step in range(9):
            # A cut of weighted examples, or one formed elsewhere, stands in the other buffer.
            batch = many_planes(problem, rng, rounds=1)
            _, psi = explicit_planes(chosen, model, batch, "margin")
            s = rng.uniform(size=problem.n_examples) if step % 4 == 2 else None
            vector = (np.ones(len(batch)) if s is None else s[batch.examples()]) @ psi
            if step == 5:
                vector = rng.normal(size=problem.n_weights)
                cuts.load(1.0, vector)
            else:
                cuts.assemble(problem.space, batch, s)
            assert pending(cuts, problem.n_weights) == pytest.approx(vector, abs=1e-12)
            assert cuts.pending_at(np.arange(problem.n_weights)) == pytest.approx(vector, abs=1e-12)
            kept.append(vector)
            assert cuts.keep(1) == pytest.approx(np.array(kept) @ vector, abs=1e-10)
