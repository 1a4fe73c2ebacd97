"""Plane arithmetic of the core against explicit vectors."""

import numpy as np
import pytest
import random_problems
import scipy.sparse as sp
from native_models import MODELS, explicit_planes, many_planes, native, random_model, random_vectors, to_native

import maxmargin as mm
from maxmargin import _core

pytestmark = pytest.mark.core


def bound(name, seed, rescaling="margin", *, sparse=False):
    """Return a random model with its random numbers, the same as the core has it, and that bound to its data."""
    rng = np.random.default_rng([seed, MODELS.index(name)])
    model = random_model(name, rng)
    chosen, X, Y = native(model, sparse=sparse)
    return rng, model, chosen, chosen.bind(X, Y, rescaling=rescaling)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_products_and_sums_of_planes_equal_explicit_vectors(name, rescaling, sparse):
    for seed in range(5):
        rng, model, chosen, problem = bound(name, seed, rescaling, sparse=sparse)
        batch = many_planes(problem, rng)
        losses, psi = explicit_planes(chosen, model, batch, rescaling)
        assert batch.losses() == pytest.approx(losses)

        w = to_native(chosen, model, rng.normal(size=model.n_weights))
        assert problem.space.dots(batch, w) == pytest.approx(psi @ w, abs=1e-10)
        rounded = problem.space.dots(batch, w, w.astype(np.float32))
        assert rounded == pytest.approx(psi @ w, rel=1e-4, abs=1e-4)
        coefficients = rng.normal(size=len(batch))
        moved = w.copy()
        problem.space.add(batch, coefficients, moved)
        assert moved == pytest.approx(w + coefficients @ psi, abs=1e-10)
        examples, checked = batch.examples(), 0
        for i, j in np.ndindex(len(batch), len(batch)):
            if examples[i] == examples[j]:
                assert problem.space.inner(batch, i, j) == pytest.approx(psi[i] @ psi[j], abs=1e-10)
                checked += 1
        assert checked > len(batch)


@pytest.mark.parametrize("n_ones", [1, 20, 255, 256, 700])
def test_products_of_planes_over_rows_of_ones_equal_those_of_their_vectors(n_ones):
    rng = np.random.default_rng(n_ones)
    X = []
    for n_rows in (1, 2, 3, 6):
        rows = np.zeros((n_rows, 800))
        for row in rows:
            row[rng.choice(800, n_ones, replace=False)] = 1.0
        X.append(sp.csr_matrix(rows))
    Y = [rng.integers(0, 3, x.shape[0]) for x in X]
    space = mm.models.Chain(3).bind(X, Y).space
    batch = _core.PlaneBatch()
    for _ in range(6):
        batch.extend(space.separate(np.arange(4), rng.normal(size=space.n_weights), None, 1))
    psi = np.zeros((len(batch), space.n_weights))
    for own, coefficients in zip(psi, np.eye(len(batch)), strict=True):
        space.add(batch, coefficients, own)
    examples = batch.examples()
    for i, j in zip(*np.nonzero(examples[:, None] == examples), strict=True):
        assert space.inner(batch, int(i), int(j)) == pytest.approx(psi[i] @ psi[j], abs=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_found_planes_know_their_values(name, rescaling, sparse):
    for seed in range(5):
        rng, model, chosen, problem = bound(name, seed, rescaling, sparse=sparse)
        w = to_native(chosen, model, rng.normal(size=model.n_weights))
        # In pieces and in another order, so that runs of examples begin anywhere.
        ids = rng.permutation(problem.n_examples)
        for rounded, tolerance in ((None, 1e-10), (w.astype(np.float32), 1e-4)):
            batch = problem.space.separate(ids, w, rounded, 1)
            losses, psi = explicit_planes(chosen, model, batch, rescaling)
            assert batch.values() == pytest.approx(losses - psi @ w, rel=tolerance, abs=tolerance)
            assert len(batch) > 0


def test_planes_that_were_not_found_together_do_not_know_their_values():
    rng, model, chosen, problem = bound("chain", 0)
    w = to_native(chosen, model, rng.normal(size=model.n_weights))
    found = problem.space.separate(np.arange(problem.n_examples), w, None, 1)
    taken = _core.PlaneBatch()
    taken.take(found, np.arange(1))
    assert taken.values() is None
    taken.extend(found)
    assert taken.values() is None
    both = _core.PlaneBatch()
    both.extend(found)
    both.extend(found)
    assert both.values().tolist() == 2 * found.values().tolist()


@pytest.mark.parametrize("n_labels", [64, 65, 70])
def test_products_are_the_same_whether_rows_are_scored_whole_or_entry_by_entry(n_labels):
    rng = np.random.default_rng(n_labels)
    model = random_problems.random_chain(rng, 4, n_features=3, n_labels=n_labels, max_length=5)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y)
    batch = many_planes(problem, rng, rounds=4)
    _, psi = explicit_planes(chosen, model, batch, "margin")
    w = to_native(chosen, model, rng.normal(size=model.n_weights))
    assert problem.space.dots(batch, w) == pytest.approx(psi @ w, abs=1e-10)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_products_and_sums_of_vector_planes_equal_explicit_vectors(rescaling):
    rng = np.random.default_rng(1)
    batch, losses, psi, examples = random_vectors(rng, 3, 25, 30)
    if rescaling == "slack":
        psi = losses[:, None] * psi
    space = _core.VectorSpace(3, 25, rescaling)
    w, coefficients = rng.normal(size=25), rng.normal(size=30)
    assert space.dots(batch, w) == pytest.approx(psi @ w, abs=1e-12)
    moved = w.copy()
    space.add(batch, coefficients, moved)
    assert moved == pytest.approx(w + coefficients @ psi, abs=1e-12)
    for i, j in np.ndindex(30, 30):
        if examples[i] == examples[j]:
            assert space.inner(batch, i, j) == pytest.approx(psi[i] @ psi[j], abs=1e-12)
        else:
            with pytest.raises(ValueError, match="two examples"):
                space.inner(batch, i, j)
