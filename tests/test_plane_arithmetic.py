"""What is computed with planes, cuts, caches and working sets against explicit dense vectors.

The vectors come from ``reference.py``, which shares no code with the library; ``native`` and ``to_native`` translate.
"""

import numpy as np
import pytest
import random_problems
import reference
import reference_models
import scipy.sparse as sp

from maxmargin import _core
from maxmargin.models import Binary, Chain, Multiclass

pytestmark = pytest.mark.core


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


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_products_and_sums_of_planes_equal_explicit_vectors(name, rescaling, sparse):
    for seed in range(5):
        rng = np.random.default_rng([seed, MODELS.index(name)])
        model = random_model(name, rng)
        chosen, X, Y = native(model, sparse=sparse)
        problem = chosen.bind(X, Y, rescaling=rescaling)
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


# ----------------------------------------------------------------------------------------------------- cuts


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


# ------------------------------------------------------------------------------------------ the oracle cache


class CacheModel:
    """The cache as its header describes it, with dense vectors and no thought of speed."""

    def __init__(self, n_examples, capacity, psi_of):
        self.slots = [[] for _ in range(n_examples)]
        self.capacity, self.tick, self.n_cuts, self.psi_of = capacity, 0, 0, psi_of

    def insert(self, planes):
        self.tick += 1
        for plane in planes:
            slots = self.slots[plane[0]]
            known = [slot for slot in slots if slot[0] == plane]
            if known:
                known[0][1:] = self.tick, self.n_cuts
            elif len(slots) < self.capacity:
                slots.append([plane, self.tick, self.n_cuts])
            else:
                oldest = min(range(len(slots)), key=lambda k: slots[k][1])
                slots[oldest] = [plane, self.tick, self.n_cuts]

    def drop_unused(self, age):
        self.slots = [[slot for slot in slots if self.n_cuts - slot[2] <= age] for slots in self.slots]

    def value(self, plane, w):
        return plane[1] - self.psi_of(plane) @ w

    def best(self, w):
        self.tick += 1
        self.n_cuts += 1
        found = []
        for slots in self.slots:
            worth = [self.value(slot[0], w) for slot in slots]
            if worth and max(worth) > 0.0:
                slot = slots[int(np.argmax(worth))]
                slot[1:] = self.tick, self.n_cuts
                found.append(slot[0])
        return found

    @property
    def n_planes(self):
        return sum(len(slots) for slots in self.slots)


def planes_in(batch):
    """Planes as (example, loss, code), which tells them apart."""
    losses = batch.losses()
    return [(int(i), float(losses[k]), tuple(batch.code(k).tolist())) for k, i in enumerate(batch.examples())]


N_CACHED, N_WEIGHTS = 4, 6


class Pool:
    """A limited choice of planes, so that the same ones come back, of many lengths."""

    def __init__(self, rng, smallest=1):
        self.rng, self.psi, self.batches = rng, {}, []
        for number in range(40):
            size = int(rng.integers(smallest, N_WEIGHTS + 1))
            indices = np.sort(rng.choice(N_WEIGHTS, size=size, replace=False)).astype(np.int32)
            values, loss = rng.normal(size=size), float(rng.integers(1, 4))
            batch = _core.PlaneBatch()
            batch.add_vector(number % N_CACHED, loss, indices, values)
            dense = np.zeros(N_WEIGHTS)
            dense[indices] = values
            self.psi[planes_in(batch)[0]] = dense
            self.batches.append(batch)

    def draw(self, examples=range(N_CACHED)):
        batch = _core.PlaneBatch()
        for i in examples:
            if self.rng.random() < 0.7:
                batch.extend(self.batches[i + N_CACHED * int(self.rng.integers(len(self.batches) // N_CACHED))])
        return batch


def run_cache(rng, pool, capacity, n_steps=120):
    """Random operations on both; every answer must agree."""
    space = _core.VectorSpace(N_CACHED, N_WEIGHTS, "margin")
    cache = _core.PlaneCache(space, capacity)
    model = CacheModel(N_CACHED, capacity, pool.psi.__getitem__)
    for _ in range(n_steps):
        w = rng.normal(size=N_WEIGHTS)
        action = rng.choice(["insert", "insert", "best", "best", "drop", "improve"])
        if action == "insert":
            batch = pool.draw()
            cache.insert(batch)
            model.insert(planes_in(batch))
        elif action == "best":
            cache.evaluate(w, None, int(rng.integers(1, 3)))
            assert planes_in(cache.best()) == model.best(w)
        elif action == "drop":
            age = int(rng.integers(1, 8))
            cache.drop_unused(age)
            model.drop_unused(age)
        else:
            found = pool.draw()
            before = planes_in(found)
            searched = np.arange(N_CACHED, dtype=np.int64)
            improved = cache.improve(found, searched, w).tolist()
            expected, expected_improved = [], []
            for i in range(N_CACHED):
                own = [plane for plane in before if plane[0] == i]
                reached = max([0.0] + [model.value(plane, w) for plane in own])
                cached = [slot[0] for slot in model.slots[i]]
                worth = [model.value(plane, w) for plane in cached]
                if worth and max(worth) > reached + 1e-9 * (1 + reached):
                    expected.append(cached[int(np.argmax(worth))])
                    expected_improved.append(i)
                else:
                    expected += own
            assert (planes_in(found), improved) == (expected, expected_improved)
        assert cache.n_planes == model.n_planes
        assert all(len(slots) <= capacity for slots in model.slots)


@pytest.mark.parametrize("capacity", [1, 2, 3, 10])
def test_the_cache_keeps_the_most_recently_used_planes(capacity):
    for seed in range(15):
        rng = np.random.default_rng([seed, capacity])
        run_cache(rng, Pool(rng), capacity)


@pytest.mark.parametrize("capacity", [2, 3])
def test_the_cache_keeps_its_planes_apart_when_some_have_no_entries(capacity):
    # An output may differ from the truth in loss and not in features.
    for seed in range(15):
        rng = np.random.default_rng([seed, capacity])
        run_cache(rng, Pool(rng, smallest=0), capacity)


def test_the_cache_values_planes_anywhere_between_the_anchor_and_w():
    rng = np.random.default_rng(9)
    pool = Pool(rng)
    cache = _core.PlaneCache(_core.VectorSpace(N_CACHED, N_WEIGHTS, "margin"), 10)
    for batch in pool.batches:
        cache.insert(batch)
    s = rng.uniform(0.5, 2.0, size=N_CACHED)
    anchor = rng.normal(size=N_WEIGHTS).astype(np.float32)
    w = rng.normal(size=N_WEIGHTS)

    def total(t, anchor, w):
        point = (1 - t) * anchor + t * w
        slacks = np.zeros(N_CACHED)
        for plane, psi in pool.psi.items():
            slacks[plane[0]] = max(slacks[plane[0]], plane[1] - psi @ point)
        return s @ slacks

    def check(anchor, w):
        for t in np.linspace(0.0, 1.5, 31):
            point = (1 - t) * anchor + t * w
            best = planes_in(cache.best(t))
            value = sum(s[plane[0]] * (plane[1] - pool.psi[plane] @ point) for plane in best)
            assert value == pytest.approx(total(t, anchor, w), abs=1e-9)
            step = 1e-7
            below = (total(t, anchor, w) - total(t - step, anchor, w)) / step
            above = (total(t + step, anchor, w) - total(t, anchor, w)) / step
            assert below - 1e-5 <= cache.slope(t, s) <= above + 1e-5

    cache.evaluate_anchor(anchor, 1)
    cache.evaluate(w, None, 1)
    check(anchor, w)
    cache.move_anchor(0.4)
    check(0.6 * anchor + 0.4 * w, w)


# ---------------------------------------------------------------------------------------------- working sets


def all_planes_inserted(sets, problem, batch):
    # ε = −∞ takes every plane that is not there yet.
    return sets.insert(batch, np.zeros(problem.n_weights), -np.inf)


@pytest.mark.parametrize("nonnegative", [False, True])
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("name", MODELS)
def test_sweeps_over_working_sets_reach_the_reference_optimum(name, rescaling, squared, nonnegative):
    rng = np.random.default_rng([MODELS.index(name), squared, nonnegative])
    model = random_model(name, rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y, rescaling=rescaling)
    batch = many_planes(problem, rng, rounds=8)
    losses, psi = explicit_planes(chosen, model, batch, rescaling)
    s = random_problems.random_sample_weight(rng, model.n_examples)
    J = np.flatnonzero(np.any(psi != 0, axis=0))[::3] if nonnegative else np.zeros(0, np.int64)
    own = [
        [reference.Plane(losses[k], psi[k]) for k in np.flatnonzero(batch.examples() == i)]
        + [reference.Plane(0.0, np.zeros(problem.n_weights))]
        for i in range(model.n_examples)
    ]
    loss = "squared_hinge" if squared else "hinge"
    best = reference.solve(own, 0.7, s, loss, nonnegative=J)

    sets = _core.WorkingSets(problem.space, 0.7 * s, squared, J)
    added = all_planes_inserted(sets, problem, batch)
    assert all_planes_inserted(sets, problem, batch) == 0, "a plane is held once"
    assert sets.n_planes == added == len({p for p in planes_in(batch) if s[p[0]] > 0})
    w = np.zeros(problem.n_weights)
    last = -np.inf
    for _ in range(20_000):
        swept = sets.sweep(rng.permutation(model.n_examples), 1e-11, w)
        dual = sets.linear_part() - 0.5 * w @ w
        assert dual >= last - 1e-9 * abs(last), "block ascent never loses"
        last = dual
        if swept.violation <= 1e-11:
            break
    assert last == pytest.approx(best.objective, rel=1e-7)
    assert reference.primal(w, own, 0.7, s, loss) == pytest.approx(best.objective, rel=1e-7)
    assert np.all(w[J] >= 0)
    fresh = np.empty_like(w)
    sets.weights(fresh)
    assert fresh == pytest.approx(w, abs=1e-8)
    stored = sets.slacks(problem.all_ids, w)
    assert stored[s > 0] == pytest.approx(reference.slacks(w, own)[s > 0], abs=1e-9)
    assert np.all(stored[s == 0] == 0)


def test_pruning_drops_idle_planes_and_leaves_the_optimum_alone():
    rng = np.random.default_rng(2)
    model = random_model("chain", rng)
    chosen, X, Y = native(model)
    problem = chosen.bind(X, Y)
    sets = _core.WorkingSets(problem.space, np.full(model.n_examples, 0.5), False, np.zeros(0, np.int64))
    n_planes = all_planes_inserted(sets, problem, many_planes(problem, rng))
    w = np.zeros(problem.n_weights)
    for _ in range(3000):
        sets.sweep(problem.all_ids, 1e-10, w)
    dual, n_active = sets.linear_part() - 0.5 * w @ w, sets.n_active
    assert 0 < n_active < n_planes
    assert sets.prune(2) == 0
    assert sets.prune(2) == n_planes - n_active
    assert sets.n_planes == sets.n_active == n_active
    fresh = np.empty_like(w)
    sets.weights(fresh)
    assert sets.linear_part() - 0.5 * fresh @ fresh == pytest.approx(dual, rel=1e-9)
    assert sets.sweep(problem.all_ids, 1e-9, w).steps == 0, "what is left is still solved"


def test_insert_takes_only_planes_that_ask_for_more_than_epsilon_beyond_what_is_paid():
    space = _core.VectorSpace(1, 2, "margin")
    sets = _core.WorkingSets(space, np.ones(1), False, np.zeros(0, np.int64))

    def offer(loss, values, w, epsilon):
        batch = _core.PlaneBatch()
        batch.add_vector(0, loss, np.arange(2, dtype=np.int32), np.array(values, dtype=float))
        return sets.insert(batch, np.array(w, dtype=float), epsilon)

    assert offer(1.0, [1.0, 0.0], [0.0, 0.0], 1.0) == 0  # worth 1, asked for more than 0 + 1
    assert offer(1.0, [1.0, 0.0], [0.0, 0.0], 0.9) == 1
    assert offer(1.5, [0.0, 1.0], [0.0, 0.0], 0.6) == 0  # worth 1.5, and 1 is paid already
    assert offer(1.5, [0.0, 1.0], [0.0, 0.0], 0.4) == 1
    assert offer(9.0, [1.0, 1.0], [4.0, 4.0], 0.5) == 1  # worth 1 at this w, and nothing is paid there
    assert sets.n_planes == 3


# --------------------------------------------------------------------------------------------------- threads


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_two_threads_give_the_same_bits_as_one(rescaling):
    rng = np.random.default_rng(6)
    lengths = rng.integers(1, 9, size=300)
    X = [rng.normal(size=(length, 40)) for length in lengths]
    Y = [rng.integers(9, size=length) for length in lengths]
    s = rng.random(300)
    chain = Chain(9, ends=True)
    problem = chain.bind(X, Y, rescaling=rescaling, sample_weight=s)
    w = 0.1 * rng.normal(size=problem.n_weights)
    rounded = w.astype(np.float32)

    def everything(n_threads):
        batch = problem.space.separate(problem.all_ids, w, rounded, n_threads)
        yield batch.losses()
        yield np.concatenate([batch.code(k) for k in range(len(batch))])
        loss, total, _ = problem.space.separate_and_sum(w, None, s, n_threads)
        yield np.array([loss])
        yield total
        yield problem.space.predict(w, n_threads)
        cache = _core.PlaneCache(problem.space, 3)
        cache.insert(batch)
        cache.evaluate(0.5 * w, None, n_threads)
        best = cache.best()
        yield best.examples()
        cuts = _core.CutSet(problem.n_weights)
        for planes in (batch, best):
            cuts.assemble(problem.space, planes, s)
            yield cuts.keep(n_threads)
        moved, copy = w.copy(), rounded.copy()
        cuts.add(np.array([0.3, -0.7]), moved, copy, n_threads)
        yield moved
        yield copy

    for one, two in zip(everything(1), everything(2), strict=True):
        assert np.array_equal(one, two)
