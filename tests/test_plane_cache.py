"""The oracle cache against a model of it in plain Python."""

import numpy as np
import pytest
from native_models import planes_in
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin import _core
from maxmargin.models import Chain, Pairwise
from maxmargin.problems.linear import LinearProblem

pytestmark = pytest.mark.core


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


def summed(planes, pool, s):
    """Return Σ s_i Δ_i and Σ s_i ψ_i."""
    losses = sum(s[plane[0]] * plane[1] for plane in planes)
    return losses, sum((s[plane[0]] * pool.psi[plane] for plane in planes), np.zeros(N_WEIGHTS))


def run_cache(rng, pool, capacity, keeps_vectors, n_steps=120):
    """Random operations on both; every answer must agree."""
    space = _core.VectorSpace(N_CACHED, N_WEIGHTS, "margin")
    cache = _core.PlaneCache(space, capacity, keeps_vectors)
    assert cache.keeps_vectors == keeps_vectors
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
            if keeps_vectors and rng.random() < 0.5:
                s, total = rng.uniform(0.5, 2.0, size=N_CACHED), np.zeros(N_WEIGHTS)
                loss = cache.add_best(1.0, s, total)
                expected_loss, expected_total = summed(model.best(w), pool, s)
                assert loss == pytest.approx(expected_loss, abs=1e-12)
                np.testing.assert_allclose(total, expected_total, atol=1e-12)
            else:
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


@pytest.mark.parametrize("keeps_vectors", [False, True])
@pytest.mark.parametrize("capacity", [1, 2, 3, 10])
def test_the_cache_keeps_the_most_recently_used_planes(capacity, keeps_vectors):
    for seed in range(15):
        rng = np.random.default_rng([seed, capacity])
        run_cache(rng, Pool(rng), capacity, keeps_vectors)


@pytest.mark.parametrize("keeps_vectors", [False, True])
@pytest.mark.parametrize("capacity", [2, 3])
def test_the_cache_keeps_its_planes_apart_when_some_have_no_entries(capacity, keeps_vectors):
    # An output may differ from the truth in loss and not in features.
    for seed in range(15):
        rng = np.random.default_rng([seed, capacity])
        run_cache(rng, Pool(rng, smallest=0), capacity, keeps_vectors)


@pytest.mark.parametrize("keeps_vectors", [False, True])
def test_the_cache_values_planes_anywhere_between_the_anchor_and_w(keeps_vectors):
    rng = np.random.default_rng(9)
    pool = Pool(rng)
    cache = _core.PlaneCache(_core.VectorSpace(N_CACHED, N_WEIGHTS, "margin"), 10, keeps_vectors)
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


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_vectors_of_a_chain_make_the_cut_of_its_best_planes(rescaling):
    X, Y = tagging_problem()
    problem = Chain(4, ends=True).bind(X, Y, rescaling=rescaling)
    s = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    with_vectors, without = (_core.PlaneCache(problem.space, 3, keeps) for keeps in (True, False))
    for seed in range(5):
        batch = problem.space.separate(
            problem.all_ids, np.random.default_rng(seed).normal(size=problem.n_weights), None, 1
        )
        with_vectors.insert(batch)
        without.insert(batch)
    for seed in range(5, 10):
        w = 0.1 * np.random.default_rng(seed).normal(size=problem.n_weights)
        total, expected = np.zeros(problem.n_weights), np.zeros(problem.n_weights)
        for cache in (with_vectors, without):
            cache.evaluate(w, None, 1)
        loss = with_vectors.add_best(1.0, s, total)
        best = without.best()
        problem.space.add(best, s[best.examples()], expected)
        assert loss == pytest.approx(s[best.examples()] @ best.losses())
        np.testing.assert_allclose(total, expected, atol=1e-9)


@pytest.mark.parametrize("stabilization", [None, "line-search"])
def test_training_is_the_same_with_vectors_in_the_cache_and_without(monkeypatch, stabilization):
    X, Y = tagging_problem()
    options = {"solver": "one-slack", "tol": 1e-7, "solver_options": {"cache_size": 2, "stabilization": stabilization}}
    made = []
    plain_cache = _core.PlaneCache

    def cache(space, capacity, keeps_vectors):
        made.append(keeps_vectors)
        return plain_cache(space, capacity, keeps_vectors)

    monkeypatch.setattr(_core, "PlaneCache", cache)
    histories = []
    for keeps in (True, False):
        monkeypatch.setattr(LinearProblem, "has_room_for", lambda self, n, keeps=keeps: keeps)
        histories.append(mm.train(Chain(4), X, Y, 0.01, **options).history)
    assert made == [True, False]
    assert any(record["from_cache"] for record in histories[0])
    assert histories[0][-1]["dual"] == pytest.approx(histories[1][-1]["dual"], rel=1e-6)


@pytest.mark.parametrize("n_labels", [2, 7])
def test_vectors_are_kept_where_they_take_no_more_memory_than_the_features(n_labels):
    rng = np.random.default_rng(0)
    edges = np.column_stack([range(299), range(1, 300)])
    graphs = [mm.Graph(rng.normal(size=(300, 5)), edges) for _ in range(3)]
    problem = Pairwise(n_labels).bind(graphs, [rng.integers(n_labels, size=300) for _ in graphs])
    most = sum(graph.rows.size for graph in graphs) // (3 * problem.n_weights)
    assert most >= 10
    assert problem.has_room_for(most)
    assert not problem.has_room_for(most + 1)
