"""Wrong calls of the compiled core are errors, never reads or writes out of bounds.

The package calls the core with arguments it has checked; these tests call it as nobody should.
"""

import signal
import time
from contextlib import contextmanager

import numpy as np
import pytest
from block_rules import exact

import maxmargin as mm
from maxmargin import _core

pytestmark = pytest.mark.core

INT_MAX = 2**31 - 1


def ints(*numbers, dtype=np.int32):
    return np.array(numbers, dtype)


def longs(*numbers):
    return ints(*numbers, dtype=np.int64)


def features(n_rows=4, n_features=3):
    return _core.Features(np.ones((n_rows, n_features)))


def multiclass_space(truth=(0, 1, 2, 0), rescaling="margin", n_features=3):
    labels = None if truth is None else ints(*truth)
    return _core.LinearSpace(features(4, n_features), _core.Multiclass(4, 3, labels), rescaling)


def chain(truth=(0, 1, 1, 0), **options):
    labels = None if truth is None else ints(*truth)
    return _core.Chain(longs(0, 3, 4), 2, False, labels, **options)


def chain_space(**options):
    return _core.LinearSpace(features(), chain(**options), "margin")


def vector_space():
    return _core.VectorSpace(4, 5, "margin")


def planes_of(space, w=None):
    weights = np.zeros(space.n_weights) if w is None else w
    return space.separate(np.arange(space.n_examples), weights, None, 1)


def vector_plane(example=0, indices=(0, 2), values=(1.0, -1.0)):
    batch = _core.PlaneBatch()
    batch.add_vector(example, 1.0, ints(*indices), np.array(values))
    return batch


def binary_planes():
    return planes_of(_core.LinearSpace(features(), _core.Binary(4, ints(1, -1, 1, 1)), "margin"))


# What is wrong with the arguments that make features and structures.
CONSTRUCTIONS = {
    "indptr of another length": (lambda: _core.Features(longs(0, 3), ints(0, 1), None, None, 2), "does not fit"),
    "no indptr at all": (lambda: _core.Features(longs(), ints(), None, None, 2), "does not fit"),
    "indptr that falls": (lambda: _core.Features(longs(0, 2, 1, 2), ints(0, 1), None, None, 2), "not decrease"),
    "feature beyond the last": (lambda: _core.Features(longs(0, 1), ints(2), None, None, 2), "feature number 2"),
    "feature before the first": (lambda: _core.Features(longs(0, 1), ints(-1), None, None, 2), "feature number -1"),
    "fewer than no features": (lambda: _core.Features(longs(0), ints(), None, None, -1), "n_features is -1"),
    "more features than int32": (lambda: _core.Features(longs(0), ints(), None, None, 2**40), "n_features is"),
    "too few values": (lambda: _core.Features(longs(0, 1), ints(0), None, np.ones(2), 2), "values has 2"),
    "values twice": (
        lambda: _core.Features(longs(0, 1), ints(0), np.ones(1, np.float32), np.ones(1), 2),
        "given twice",
    ),
    "binary labels 0 and 1": (lambda: _core.Binary(2, ints(0, 1)), "−1 and \\+1"),
    "too few binary labels": (lambda: _core.Binary(3, ints(-1, 1)), "truth has 2"),
    "fewer than no examples": (lambda: _core.Binary(-1, None), "n is -1"),
    "binary cost that is negative": (lambda: _core.Binary(1, ints(1), -1.0, 1.0), "cost must hold"),
    "no labels": (lambda: _core.Multiclass(1, 0, None), "n_labels is 0"),
    "labels beyond int": (lambda: _core.Multiclass(1, INT_MAX, None), "n_labels is"),
    "class beyond the last": (lambda: _core.Multiclass(2, 3, ints(0, 3)), "label number 3 at place 1"),
    "class before the first": (lambda: _core.Multiclass(2, 3, ints(0, -1)), "label number -1"),
    "cost of too few rows": (lambda: _core.Multiclass(1, 3, ints(0), np.zeros((2, 3))), "rows of cost has 2"),
    "cost of too few columns": (lambda: _core.Multiclass(1, 3, ints(0), np.zeros((3, 2))), "columns of cost has 2"),
    "cost that is not a number": (lambda: _core.Multiclass(1, 2, ints(0), np.full((2, 2), np.nan)), "cost must hold"),
    "no offsets": (lambda: _core.Chain(longs(), 2, False, None), "begin with 0"),
    "offsets from 1": (lambda: _core.Chain(longs(1, 3), 2, False, None), "begin with 0"),
    "offsets from −5": (lambda: _core.Chain(longs(-5, 3), 2, False, None), "begin with 0"),
    "offsets that fall": (lambda: _core.Chain(longs(0, 3, 2), 2, False, None), "sequence 1 is empty"),
    "too few labels of a chain": (lambda: _core.Chain(longs(0, 3), 2, False, ints(0, 1)), "truth has 2"),
    "forbidden of too few rows": (lambda: chain(forbidden=np.zeros((1, 2), np.uint8)), "rows of forbidden"),
    "forbidden of too few columns": (lambda: chain(forbidden=np.zeros((2, 1), np.uint8)), "columns of forbidden"),
    "chain cost of another shape": (lambda: chain(cost=np.zeros((3, 3))), "rows of cost"),
    "too few row weights": (lambda: chain(row_weight=np.ones(3)), "row_weight has 3"),
    "row weight that is negative": (lambda: chain(row_weight=-np.ones(4)), "row_weight must hold"),
    "step that is negative": (lambda: chain(loss_step=-1.0), "loss_step"),
    "step that is not a number": (lambda: chain(loss_step=np.nan), "loss_step"),
    "more steps than memory": (lambda: chain(loss_step=1e-12), "loss_step"),
    "padding of no labels": (lambda: _core.padded_labels(0), "n_labels is 0"),
    "padding beyond int": (lambda: _core.padded_labels(INT_MAX), "n_labels is"),
    "rows that do not fit": (
        lambda: _core.LinearSpace(features(5), _core.Multiclass(4, 3, None), "margin"),
        "features have 5 rows",
    ),
    "unknown rescaling": (lambda: multiclass_space(rescaling="both"), "found 'both'"),
    "slack without steps": (lambda: _core.LinearSpace(features(), chain(), "slack"), "a chain needs a loss_step"),
    "space of fewer than no examples": (lambda: _core.VectorSpace(-1, 3, "margin"), "n_examples is -1"),
    "space of fewer than no weights": (lambda: _core.VectorSpace(3, -1, "margin"), "n_weights is -1"),
    "cuts of fewer than no weights": (lambda: _core.CutSet(-1), "n_weights"),
    "cache of no planes": (lambda: _core.PlaneCache(vector_space(), 0), "capacity is 0"),
    "cache of fewer than no planes": (lambda: _core.PlaneCache(vector_space(), -3), "capacity is -3"),
    "too few budgets": (lambda: _core.WorkingSets(vector_space(), np.ones(3), False, longs()), "budgets has 3"),
    "budget that is negative": (lambda: _core.WorkingSets(vector_space(), -np.ones(4), False, longs()), "budgets must"),
    "non-negative weight out of range": (
        lambda: _core.WorkingSets(vector_space(), np.ones(4), False, longs(5)),
        "non-negative weight 5",
    ),
    "indices that fall": (lambda: vector_plane(indices=(2, 0)), "must ascend"),
    "index that is negative": (lambda: vector_plane(indices=(-1, 0)), "must ascend"),
    "index twice": (lambda: vector_plane(indices=(INT_MAX, INT_MAX)), "must ascend"),
    "example that is negative": (lambda: vector_plane(example=-1), "example must not be negative"),
}


@pytest.mark.parametrize("wrong", CONSTRUCTIONS)
def test_nothing_is_made_of_arguments_that_do_not_fit(wrong):
    call, text = CONSTRUCTIONS[wrong]
    with pytest.raises(ValueError, match=text):
        call()


def test_a_batch_is_not_extended_by_itself():
    batch = vector_plane()
    with pytest.raises(ValueError, match="by itself"):
        batch.extend(batch)


# Planes that are not of the space: (space, planes).
FOREIGN = {
    "example beyond the last": (vector_space, lambda: vector_plane(example=4)),
    "weight beyond the last": (vector_space, lambda: vector_plane(indices=(0, 5))),
    "sign where a class is expected": (multiclass_space, binary_planes),
    "class where a sign is expected": (
        lambda: _core.LinearSpace(features(), _core.Binary(4, ints(1, -1, 1, 1)), "margin"),
        lambda: planes_of(multiclass_space()),
    ),
    "vector where a class is expected": (multiclass_space, vector_plane),
    "vector where a sequence is expected": (chain_space, vector_plane),
    "sequence of another length": (
        chain_space,
        lambda: planes_of(
            _core.LinearSpace(features(), _core.Chain(longs(0, 2, 4), 2, False, ints(0, 1, 1, 0)), "margin")
        ),
    ),
    "label beyond the last": (
        chain_space,
        lambda: planes_of(
            _core.LinearSpace(features(), _core.Chain(longs(0, 3, 4), 9, False, ints(0, 1, 1, 0)), "margin"),
            np.tile(np.arange(16.0), 3 + 27)[: 3 * 16 + 81],
        ),
    ),
    "class code where a vector is expected": (vector_space, lambda: planes_of(multiclass_space())),
    "space without truth": (lambda: multiclass_space(truth=None), lambda: planes_of(multiclass_space())),
}
# What is done with planes: (space, planes) → None.
USES = {
    "dots": lambda space, batch: space.dots(batch, np.zeros(space.n_weights)),
    "add": lambda space, batch: space.add(batch, np.ones(len(batch)), np.zeros(space.n_weights)),
    "inner": lambda space, batch: space.inner(batch, 0, 0),
    "assemble": lambda space, batch: _core.CutSet(space.n_weights).assemble(space, batch, None),
    "cache": lambda space, batch: _core.PlaneCache(space, 3).insert(batch),
    "improve": lambda space, batch: _core.PlaneCache(space, 3).improve(
        batch, np.arange(space.n_examples), np.zeros(space.n_weights)
    ),
    "working sets": lambda space, batch: working_sets(space).insert(batch, np.zeros(space.n_weights), 0.0),
    "oracle of working sets": lambda space, batch: working_sets(space).visit(
        _core.CallbackOracle(lambda ids, scale: batch),
        np.arange(space.n_examples),
        space.n_examples,
        exact(0.1),
        np.zeros(space.n_weights),
    ),
    "oracle of Frank and Wolfe": lambda space, batch: _core.FrankWolfe(space, np.ones(space.n_examples), longs()).visit(
        _core.CallbackOracle(lambda ids, scale: batch),
        np.arange(space.n_examples),
        space.n_examples,
        np.zeros(space.n_weights),
    ),
}


def linear_oracle(space, w=None, rounded=None):
    return _core.LinearOracle(space, np.zeros(space.n_weights) if w is None else w, rounded, False, 1)


def working_sets(space):
    return _core.WorkingSets(space, np.ones(space.n_examples), False, longs())


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", FOREIGN)
def test_planes_of_another_problem_are_refused(kind, use):
    space, batch = (make() for make in FOREIGN[kind])
    assert len(batch)
    with pytest.raises(ValueError, match=r"plane \d+ is (of example|not an output)"):
        USES[use](space, batch)


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("space", [multiclass_space, chain_space])
def test_planes_of_the_problem_itself_are_taken(space, use):
    USES[use](space(), planes_of(space()))


# Weights, numbers and vectors of the wrong size: each call is given a space of three examples or more.
ARGUMENTS = {
    "weights of separate": (lambda s: s.separate(longs(0), np.zeros(1), None, 1), "weights has 1"),
    "rounded weights of separate": (
        lambda s: s.separate(longs(0), np.zeros(s.n_weights), np.zeros(1, np.float32), 1),
        "rounded weights has 1",
    ),
    "example of separate": (lambda s: s.separate(longs(4), np.zeros(s.n_weights), None, 1), "example 4 at place 0"),
    "negative example of separate": (lambda s: s.separate(longs(-1), np.zeros(s.n_weights), None, 1), "example -1"),
    "weights of separate_and_sum": (lambda s: s.separate_and_sum(np.zeros(1), None, None, 1), "weights has 1"),
    "sample_weight of separate_and_sum": (
        lambda s: s.separate_and_sum(np.zeros(s.n_weights), None, np.ones(1), 1),
        "sample_weight has 1",
    ),
    "weights of predict": (lambda s: s.predict(np.zeros(1), 1), "weights has 1"),
    "weights of dots": (lambda s: s.dots(planes_of(s), np.zeros(1)), "weights has 1"),
    "coefficients of add": (lambda s: s.add(planes_of(s), np.ones(99), np.zeros(s.n_weights)), "coefficients has 99"),
    "weights of add": (lambda s: s.add(planes_of(s), np.ones(4), np.zeros(1)), "weights has 1"),
    "weights of a line": (lambda s: _core.ScoreLine(s).evaluate(np.zeros(1, np.float32), 1), "weights has 1"),
    "sample_weight of a line": (lambda s: _core.ScoreLine(s).slope(0.5, np.ones(1), 1), "sample_weight has 1"),
    "sample_weight of a line's cut": (lambda s: _core.ScoreLine(s).cut(0.5, np.ones(1), 1), "sample_weight has 1"),
    "cuts of another size": (lambda s: _core.CutSet(5).assemble(s, planes_of(s), None), "weights of the space"),
    "sample_weight of assemble": (
        lambda s: _core.CutSet(s.n_weights).assemble(s, planes_of(s), np.ones(1)),
        "sample_weight has 1",
    ),
    "sum of load": (lambda s: _core.CutSet(5).load(1.0, np.zeros(4)), "sum has 4"),
    "weights of pending_dot": (lambda s: _core.CutSet(5).pending_dot(np.zeros(4)), "weights has 4"),
    "weights of add_pending": (lambda s: _core.CutSet(5).add_pending(1.0, np.zeros(4)), "weights has 4"),
    "place of pending_at": (lambda s: _core.CutSet(5).pending_at(longs(5)), "weight 5"),
    "coefficients of cuts": (lambda s: _core.CutSet(5).add(np.ones(1), np.zeros(5), None, 1), "coefficients has 1"),
    "cut that is not there": (lambda s: _core.CutSet(5).remove(longs(0)), "cut 0 at place 0"),
    "weights of a cache": (lambda s: _core.PlaneCache(s, 2).evaluate(np.zeros(1), None, 1), "weights has 1"),
    "anchor of a cache": (lambda s: _core.PlaneCache(s, 2).evaluate_anchor(np.zeros(1, np.float32), 1), "anchor has 1"),
    "sample_weight of a cache": (lambda s: _core.PlaneCache(s, 2).slope(0.5, np.ones(1)), "sample_weight has 1"),
    "sum without vectors": (
        lambda s: _core.PlaneCache(s, 2).add_best(1.0, None, np.zeros(s.n_weights)),
        "keeps vectors",
    ),
    "length of a sum": (lambda s: _core.PlaneCache(s, 2, True).add_best(1.0, None, np.zeros(1)), "weights has 1"),
    "sample_weight of a sum": (
        lambda s: _core.PlaneCache(s, 2, True).add_best(1.0, np.ones(1), np.zeros(s.n_weights)),
        "sample_weight has 1",
    ),
    "searched by improve": (
        lambda s: _core.PlaneCache(s, 2).improve(planes_of(s), longs(4), np.zeros(s.n_weights)),
        "example 4",
    ),
    "weights of improve": (
        lambda s: _core.PlaneCache(s, 2).improve(planes_of(s), longs(0), np.zeros(1)),
        "weights has 1",
    ),
    "weights of insert": (lambda s: working_sets(s).insert(planes_of(s), np.zeros(1), 0.0), "weights has 1"),
    "order of sweep": (lambda s: working_sets(s).sweep(longs(4), exact(0.1), np.zeros(s.n_weights)), "example 4"),
    "weights of sweep": (lambda s: working_sets(s).sweep(longs(0), exact(0.1), np.zeros(1)), "weights has 1"),
    "examples of slacks": (lambda s: working_sets(s).slacks(longs(-1), np.zeros(s.n_weights)), "example -1"),
    "weights of slacks": (lambda s: working_sets(s).slacks(longs(0), np.zeros(1)), "weights has 1"),
    "weights of weights": (lambda s: working_sets(s).weights(np.zeros(1)), "weights has 1"),
    "weights of sum": (lambda s: working_sets(s).sum(np.zeros(1)), "weights has 1"),
    "examples of an oracle": (lambda s: linear_oracle(s).search(longs(4)), "example 4 at place 0"),
    "negative example of an oracle": (lambda s: linear_oracle(s).search(longs(-1)), "example -1 at place 0"),
    "example of the k best": (
        lambda s: _core.KBestOracle(s, np.zeros(s.n_weights), 2).search(longs(7)),
        "example 7 at place 0",
    ),
    "example of found planes": (lambda s: _core.FoundPlanes(s, planes_of(s)).search(longs(4)), "example 4 at place 0"),
    "vectors of dot_float": (lambda s: _core.dot_float(np.zeros(2, np.float32), np.zeros(1, np.float32)), "b has 1"),
    "vectors of mix": (
        lambda s: _core.mix(np.zeros(2, np.float32), np.zeros(1, np.float32), 0.5),
        "b has 1",
    ),
}


@pytest.mark.parametrize("wrong", ARGUMENTS)
def test_arguments_that_do_not_fit_the_space_are_refused(wrong):
    call, text = ARGUMENTS[wrong]
    with pytest.raises(ValueError, match=text):
        call(multiclass_space())


# What is read later or written must be the array itself, not a copy of another type or order.
KEPT = {
    "weights of an oracle": lambda s, w: linear_oracle(s, w),
    "rounded weights of an oracle": lambda s, w: linear_oracle(s, rounded=w.astype(np.float64)),
    "weights of the k best": lambda s, w: _core.KBestOracle(s, w, 2),
    "weights of add": lambda s, w: s.add(planes_of(s), np.ones(len(planes_of(s))), w),
    "weights of working sets": lambda s, w: working_sets(s).weights(w),
    "weights of a sweep": lambda s, w: working_sets(s).sweep(longs(0), exact(0.1), w),
}


@pytest.mark.parametrize("call", KEPT)
@pytest.mark.parametrize("change", [lambda w: w.astype(np.float32), lambda w: np.repeat(w, 2)[::2]])
def test_arrays_that_would_have_to_be_copied_are_refused(call, change):
    space = multiclass_space()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        KEPT[call](space, change(np.zeros(space.n_weights)))


@pytest.mark.parametrize(
    "call",
    [
        lambda s: s.separate(longs(0), np.zeros(s.n_weights), None, 1),
        lambda s: s.separate_and_sum(np.zeros(s.n_weights), None, None, 1),
        _core.ScoreLine,
    ],
)
def test_a_space_without_truth_only_predicts(call):
    space = multiclass_space(truth=None)
    assert len(space.predict(np.zeros(space.n_weights), 1)) == 4
    with pytest.raises(ValueError, match="without true outputs"):
        call(space)


def test_marginals_and_best_sequences_need_a_structure_that_has_them():
    space = _core.LinearSpace(features(), chain(), "margin")
    w = np.zeros(space.n_weights)
    assert space.max_marginals(w, 1).shape == (4, 2)
    with pytest.raises(ValueError, match="no search for max-marginals"):
        multiclass_space().max_marginals(np.zeros(multiclass_space().n_weights), 1)
    for call in (lambda v: space.max_marginals(v, 1), lambda v: space.k_best(v, 2, 1)):
        with pytest.raises(ValueError, match="weights has 1"):
            call(np.zeros(1))
    with pytest.raises(ValueError, match="k must be"):
        space.k_best(w, 0, 1)


def test_any_number_of_threads_is_taken():
    space = multiclass_space()
    expected = space.predict(np.ones(space.n_weights), 1)
    for n_threads in (-INT_MAX, 0, 7, INT_MAX):
        np.testing.assert_array_equal(space.predict(np.ones(space.n_weights), n_threads), expected)


def test_a_chain_that_allows_nothing_still_answers():
    space = chain_space(forbidden=np.ones((2, 2), np.uint8))
    assert np.isin(space.predict(np.zeros(space.n_weights), 1), [0, 1]).all()


@contextmanager
def alarm_after(seconds):
    """Raise KeyboardInterrupt in this thread after a while, as Ctrl-C does."""
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def long_planes():
    """Planes of one example that take long to multiply with each other, and their space."""
    n_weights, rng = 100_000, np.random.default_rng(0)
    batch = _core.PlaneBatch()
    for _ in range(60):
        batch.add_vector(0, 1.0, np.arange(n_weights, dtype=np.int32), rng.normal(size=n_weights))
    return _core.VectorSpace(1, n_weights, "margin"), batch


def filled_sets(space, batch):
    sets = working_sets(space)
    few = _core.PlaneBatch()
    for k in range(10):
        few.add_vector(0, 1.0, ints(k), np.ones(1))
    sets.insert(few, np.zeros(space.n_weights), -np.inf)
    return sets


# Calls that take seconds: what each of them works on, and the call.
LONG_CALLS = {
    "working sets' insert": (
        lambda space, batch: working_sets(space),
        lambda sets, space, batch: sets.insert(batch, np.zeros(space.n_weights), -np.inf),
    ),
    "working sets' slacks": (
        filled_sets,
        lambda sets, space, batch: sets.slacks(np.zeros(20_000_000, np.int64), np.zeros(space.n_weights)),
    ),
    "cache's improve": (
        lambda space, batch: cache_of(space, batch),
        lambda cache, space, batch: cache.improve(batch, np.zeros(1000, np.int64), np.zeros(space.n_weights)),
    ),
    "reading a file": (
        lambda space, batch: b"1 qid:1 1:0.5 2:0.25 3:1e-3\n" * 4_000_000,
        lambda text, space, batch: _core.parse_sparse_text(text, "a file", "svmlight"),
    ),
    "QP with non-negative weights": (
        lambda space, batch: nonnegative_qp(),
        lambda qp, space, batch: qp.solve(0.0),
    ),
}


def cache_of(space, batch):
    cache = _core.PlaneCache(space, 60)
    cache.insert(batch)
    return cache


def nonnegative_qp(n=200, n_nonnegative=20_000):
    qp, rng = _core.BudgetQP(1e3, n_nonnegative), np.random.default_rng(1)
    at_nonnegative = rng.normal(size=(n, n_nonnegative))
    gram = at_nonnegative @ at_nonnegative.T + np.eye(n)
    for k in range(n):
        qp.add(1.0, gram[k, : k + 1].copy(), at_nonnegative[k])
    # Some mass, so that half of the μ are positive.
    qp.alpha = np.full(n, 1.0)
    return qp


@pytest.mark.parametrize("name", LONG_CALLS)
def test_long_calls_end_at_ctrl_c(name, long_planes):
    make, call = LONG_CALLS[name]
    worker = make(*long_planes)
    # CPU time: what else the machine does is not the call's fault.
    start = time.process_time()
    with alarm_after(0.05), pytest.raises(KeyboardInterrupt):
        call(worker, *long_planes)
    elapsed = time.process_time() - start
    assert elapsed < 2.0, f"{elapsed:.2f} s"


@pytest.mark.parametrize("search_batch", [1, 32])
def test_sweeps_that_search_end_at_ctrl_c(search_batch):
    rng = np.random.default_rng(0)
    problem = mm.models.Chain(40).bind([rng.normal(size=(6, 5))], [rng.integers(40, size=6)])
    w = problem.zero_weights()
    sets = _core.WorkingSets(problem.space, np.ones(1), False, longs(), True)
    sets.insert(problem.separate(problem.all_ids, w, precise=True), w.exact, -np.inf)
    rule = _core.Rule("exact", search_batch=search_batch)
    start = time.process_time()
    with alarm_after(0.05), pytest.raises(KeyboardInterrupt):
        sets.sweep(np.zeros(10_000_000, np.int64), rule, w.exact, None, 2)
    assert time.process_time() - start < 2.0


@pytest.mark.parametrize("is_counted", [True, False])
def test_an_interrupted_sum_leaves_nothing_to_the_next(is_counted):
    n_rows, n_features = 10, 20_000
    indptr = np.arange(0, n_rows * n_features + 1, n_features)
    indices = np.tile(np.arange(n_features, dtype=np.int32), n_rows)
    values = None if is_counted else np.full(len(indices), 0.1)
    rows = _core.Features(indptr, indices, None, values, n_features)
    space = _core.LinearSpace(rows, _core.Multiclass(n_rows, 2, np.zeros(n_rows, np.int32)), "margin")
    few, many = planes_of(space), _core.PlaneBatch()
    for _ in range(2000):
        many.extend(few)
    cuts = _core.CutSet(space.n_weights)
    cuts.assemble(space, few, None)
    expected = cuts.pending_at(np.arange(space.n_weights))
    with alarm_after(0.01), pytest.raises(KeyboardInterrupt):
        cuts.assemble(space, many, None)
    assert not cuts.pending_at(np.arange(space.n_weights)).any()
    assert cuts.pending_dot(np.ones(space.n_weights)) == cuts.pending_loss == 0.0
    cuts.assemble(space, few, None)
    np.testing.assert_array_equal(cuts.pending_at(np.arange(space.n_weights)), expected)


def test_an_interrupted_insert_leaves_whole_working_sets(long_planes):
    space, batch = long_planes
    sets = working_sets(space)
    with alarm_after(0.05), pytest.raises(KeyboardInterrupt):
        sets.insert(batch, np.zeros(space.n_weights), -np.inf)
    assert sets.n_planes == len(sets.planes()) < len(batch)
    w = np.zeros(space.n_weights)
    sets.sweep(longs(0), exact(1e-6), w)
    expected = np.zeros_like(w)
    sets.weights(expected)
    np.testing.assert_allclose(w, expected, atol=1e-12)
