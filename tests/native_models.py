"""The reference's models as the library has them, and planes of both to compare."""

import numpy as np
import random_problems
import reference_models
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.models import Binary, Chain, Multiclass

# ------------------------------------------------------------- the reference's models as the library has them


def native(model, nonnegative=None, sparse=False):
    """The library's model for one of the reference's, with X and Y as it takes them."""
    as_matrix = sp.csr_matrix if sparse else np.asarray
    if isinstance(model, reference_models.BinaryModel):
        X = model.X if model.bias is None else np.column_stack([model.X, np.full(len(model.X), model.bias)])
        return Binary(cost=model.cost, nonnegative=nonnegative), as_matrix(X), model.y
    if isinstance(model, reference_models.MulticlassModel):
        return Multiclass(model.n_labels, cost=model.cost, nonnegative=nonnegative), as_matrix(model.X), model.y
    assert model.start == model.stop
    chain = Chain(
        model.n_labels,
        ends=model.start,
        cost=model.label_weight,
        token_weight=model.token_weight,
        forbidden=sorted(model.forbidden) or None,
        nonnegative=nonnegative,
    )
    return chain, [as_matrix(x) for x in model.X], model.y


def to_native(native_model, model, vector):
    """A vector of the reference's layout in the library's."""
    if isinstance(model, reference_models.ChainModel):
        return native_model.join(**model.blocks(vector))
    return native_model.join(coef=vector.reshape(-1, native_model.n_features))


def to_reference(native_model, w):
    """A weight vector of the library in the reference's layout."""
    return np.concatenate([block.ravel() for block in native_model.blocks(w).values()])


def output_of(model, code):
    return tuple(int(label) for label in code) if isinstance(model, reference_models.ChainModel) else int(code[0])


def explicit_planes(native_model, model, batch, rescaling):
    """(Δ, ψ) of every plane of a batch, as the reference makes them, in the library's layout."""
    psis, losses = [], []
    for k, i in enumerate(batch.examples()):
        y = output_of(model, batch.code(k))
        loss = model.loss(i, y)
        psi = model.psi(i, model.truth(i)) - model.psi(i, y)
        psis.append(to_native(native_model, model, loss * psi if rescaling == "slack" else psi))
        losses.append(loss)
    return np.array(losses), np.array(psis)


def many_planes(problem, rng, rounds=12, scale=1.0):
    """Planes found at random weights: several different ones of each example, in one batch."""
    batch = _core.PlaneBatch()
    for _ in range(rounds):
        weights = problem.zero_weights()
        weights.exact[...] = scale * rng.normal(size=problem.n_weights)
        batch.extend(problem.separate(problem.all_ids, weights, precise=True))
    return batch


def random_model(name, rng):
    if name == "binary":
        return random_problems.random_binary(rng, n_examples=8, with_cost=True)
    if name == "multiclass":
        return random_problems.random_multiclass(rng, n_examples=8, with_cost=True)
    weighting = "label" if name == "chain with ends" else None
    ends = name == "chain with ends"
    model = random_problems.random_chain(rng, 6, n_labels=3, max_length=6, start=ends, stop=ends, weighting=weighting)
    if weighting:
        model.label_weight = rng.integers(1, 4, size=3) * 0.5
    return model


MODELS = ["binary", "multiclass", "chain", "chain with ends"]


def random_vectors(rng, n_examples, n_weights, n_planes, integer=False):
    """Planes as sparse vectors in a batch, with their losses and the dense ψ (before rescaling)."""
    batch, losses, psi, examples = _core.PlaneBatch(), [], [], []
    for k in range(n_planes):
        size = int(rng.integers(0, min(n_weights, 40) + 1))
        indices = np.sort(rng.choice(n_weights, size=size, replace=False)).astype(np.int32)
        values = rng.integers(-5, 6, size=size).astype(float) if integer else rng.normal(size=size)
        loss = float(rng.integers(0, 4))
        batch.add_vector(k % n_examples, loss, indices, values)
        dense = np.zeros(n_weights)
        dense[indices] = values
        losses.append(loss)
        psi.append(dense)
        examples.append(k % n_examples)
    return batch, np.array(losses), np.array(psi), np.array(examples)


def planes_in(batch):
    """Planes as (example, loss, code), which tells them apart."""
    losses = batch.losses()
    return [(int(i), float(losses[k]), tuple(batch.code(k).tolist())) for k, i in enumerate(batch.examples())]
