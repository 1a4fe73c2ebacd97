"""Every decoder against enumeration: all outputs of small examples, their scores and losses written out with NumPy.

What is compared is the value of the output found, never the output itself, so that ties may go either way.
"""

import itertools
import subprocess
import sys
import textwrap
import time
from dataclasses import dataclass, field

import numpy as np
import pytest
import scipy.sparse as sp

from maxmargin.models import Binary, Chain, Multiclass, Sequences

pytestmark = pytest.mark.core

# One, the padding steps 4, 8, 24, 32, 64 and their neighbours; beyond 64 plane products take another way.
LABEL_COUNTS = [1, 2, 3, 4, 5, 8, 9, 23, 24, 31, 32, 33, 64, 65, 70]
FEATURES = ["csr-ones", "csr-float32", "csr-float64", "dense-float32", "dense-float64"]


def features(rng, n_rows, n_features, kind):
    """A matrix as the library takes it, and the same numbers as a dense float64 array."""
    present = rng.random((n_rows, n_features)) < 0.6
    values = {
        "csr-ones": np.ones((n_rows, n_features)),
        "csr-float32": rng.integers(-8, 9, size=(n_rows, n_features)) / 4.0,
        "csr-float64": rng.normal(size=(n_rows, n_features)),
        "dense-float32": rng.normal(size=(n_rows, n_features)).astype(np.float32),
        "dense-float64": rng.normal(size=(n_rows, n_features)),
    }[kind]
    X = np.where(present, values, values.dtype.type(0))
    return (sp.csr_matrix(X) if kind.startswith("csr") else X), X.astype(np.float64)


def weights_of(problem, w):
    weights = problem.zero_weights()
    weights.exact[...] = w
    weights.touch()
    return weights


def search(model, X, Y, w, rescaling, *, precise=True, n_jobs=1, ids=None):
    """What the oracle finds: per example its code, or None where the truth is best, and its loss."""
    problem = model.bind(X, Y, rescaling=rescaling, n_jobs=n_jobs)
    ids = problem.all_ids if ids is None else ids
    batch = problem.separate(ids, weights_of(problem, w), precise=precise)
    found = {int(i): (batch.code(k), batch.losses()[k]) for k, i in enumerate(batch.examples())}
    assert len(found) == len(batch)
    assert set(found) <= {int(i) for i in ids}
    return [found.get(int(i), (None, 0.0)) for i in ids]


def values(scores, losses, true_score, rescaling):
    """Δ + s − s_true or Δ (1 + s − s_true), for whole arrays of outputs."""
    return losses + scores - true_score if rescaling == "margin" else losses * (1.0 + scores - true_score)


# ------------------------------------------------------------------------------------ binary and multiclass


@pytest.mark.parametrize("kind", FEATURES)
@pytest.mark.parametrize("n_features", [1, 5, 16, 17, 40])
def test_binary_searches_equal_enumeration(n_features, kind):
    rng = np.random.default_rng([n_features, FEATURES.index(kind)])
    X, dense = features(rng, 150, n_features, kind)
    y = rng.choice([-1, 1], size=150).astype(np.int32)
    cost = np.array([[0.0, 0.5], [2.0, 0.0]])
    for given_cost, rescaling in itertools.product((None, cost), ("margin", "slack")):
        model = Binary(cost=given_cost)
        model.bind(X, y)
        coef = rng.normal(size=n_features)
        s = dense @ coef
        delta = np.ones(150) if given_cost is None else np.where(y > 0, cost[1, 0], cost[0, 1])
        wrong = values(-0.5 * y * s, delta, 0.5 * y * s, rescaling)
        for i, (code, loss) in enumerate(search(model, X, y, model.join(coef=coef), rescaling)):
            if code is None:
                assert wrong[i] <= 1e-9
            else:
                assert (code[0], loss) == (-y[i], delta[i])
                assert wrong[i] >= -1e-9
        predicted = model.predict(X, model.join(coef=coef))
        assert np.array_equal(predicted[np.abs(s) > 1e-9], np.sign(s)[np.abs(s) > 1e-9])


@pytest.mark.parametrize("n_labels", LABEL_COUNTS)
def test_multiclass_searches_equal_enumeration(n_labels):
    for kind, with_cost in itertools.product(FEATURES, (False, True)):
        rng = np.random.default_rng([n_labels, FEATURES.index(kind), with_cost])
        X, dense = features(rng, 90, 6, kind)
        y = rng.integers(n_labels, size=90).astype(np.int32)
        cost = 1.0 - np.eye(n_labels)
        if with_cost:
            cost *= rng.uniform(0.0, 3.0, size=cost.shape) * (rng.random(cost.shape) < 0.9)
        model = Multiclass(n_labels, cost=cost if with_cost else None)
        model.bind(X, y)
        coef = rng.normal(size=(n_labels, 6))
        scores = dense @ coef.T
        rows = np.arange(90)
        for rescaling in ("margin", "slack"):
            value = values(scores, cost[y], scores[rows, y][:, None], rescaling)
            for i, (code, loss) in enumerate(search(model, X, y, model.join(coef=coef), rescaling)):
                label = y[i] if code is None else code[0]
                assert value[i, label] == pytest.approx(value[i].max(), abs=1e-9)
                assert loss == cost[y[i], label]
        predicted = model.predict(X, model.join(coef=coef))
        assert scores[rows, predicted] == pytest.approx(scores.max(axis=1), abs=1e-9)


# --------------------------------------------------------------------------------------------------- chains


@dataclass
class ChainCase:
    """A chain with data and weights, and all that enumeration needs."""

    rng: np.random.Generator
    n_labels: int
    lengths: list
    kind: str = "dense-float64"
    ends: bool = False
    with_forbidden: bool = False
    loss: str = "hamming"  # or cost, labels, tokens, tokens and labels
    n_features: int = 4
    scale: float = 1.0
    integer_loss: bool = True
    forbidden: np.ndarray = field(init=False)

    def __post_init__(self):
        rng, k, n_rows = self.rng, self.n_labels, sum(self.lengths)
        self.forbidden = np.zeros((k, k), dtype=bool)
        if self.with_forbidden:
            self.forbidden = rng.random((k, k)) < 0.4
            # A legal circle through all labels in random order: sequences of any length exist from every label.
            circle = rng.permutation(k)
            self.forbidden[circle, np.roll(circle, -1)] = False
        rows, self.dense = features(rng, n_rows, self.n_features, self.kind)
        self.X = Sequences(rows, self.lengths)
        self.offsets = self.X.offsets
        self.Y = [self._random_output(length) for length in self.lengths]
        self.truth = np.concatenate(self.Y)
        number = (lambda size: rng.integers(0, 4, size=size).astype(float)) if self.integer_loss else rng.random
        self.cost = 1.0 - np.eye(k)
        self.token = np.ones(n_rows)
        given, token_weight = None, None
        if self.loss == "cost":
            given = self.cost = self.cost * number((k, k))
        if "labels" in self.loss:
            given = number(k)
            self.token = self.token * given[self.truth]
        if "tokens" in self.loss:
            tokens = number(n_rows)
            self.token = self.token * tokens
            token_weight = np.split(tokens, self.offsets[1:-1])
        pairs = [tuple(pair) for pair in np.argwhere(self.forbidden)] if self.with_forbidden else None
        self.model = Chain(k, ends=self.ends, cost=given, token_weight=token_weight, forbidden=pairs)
        self.model.bind(self.X, self.Y)
        self.coef = self.scale * rng.normal(size=(k, self.n_features))
        self.transition = self.scale * rng.normal(size=(k, k))
        self.start, self.stop = self.scale * rng.normal(size=(2, k)) if self.ends else np.zeros((2, k))
        blocks = {"coef": self.coef, "transition": self.transition}
        if self.ends:
            blocks |= {"start": self.start, "stop": self.stop}
        self.w = self.model.join(**blocks)
        self.node = self.dense @ self.coef.T
        self.node_loss = self.token[:, None] * self.cost[self.truth]

    def _random_output(self, length):
        y = [int(self.rng.integers(self.n_labels))]
        while len(y) < length:
            y.append(int(self.rng.choice(np.flatnonzero(~self.forbidden[y[-1]]))))
        return np.array(y, dtype=np.int32)

    def rows(self, i):
        return slice(self.offsets[i], self.offsets[i + 1])

    def score(self, i, outputs):
        """Scores of outputs (…, length) of example i; −∞ where one is illegal."""
        outputs = np.asarray(outputs)
        node, t = self.node[self.rows(i)], np.arange(outputs.shape[-1])
        total = node[t, outputs].sum(axis=-1) + self.start[outputs[..., 0]] + self.stop[outputs[..., -1]]
        legal = np.where(self.forbidden, -np.inf, self.transition)
        return total + legal[outputs[..., :-1], outputs[..., 1:]].sum(axis=-1)

    def losses(self, i, outputs):
        table = self.node_loss[self.rows(i)]
        return table[np.arange(len(table)), np.asarray(outputs)].sum(axis=-1)

    def value(self, i, outputs, rescaling):
        scores = self.score(i, outputs)
        result = np.full(scores.shape, -np.inf)
        legal = np.isfinite(scores)
        result[legal] = values(scores[legal], self.losses(i, outputs)[legal], self.score(i, self.Y[i]), rescaling)
        return result

    def outputs(self, i):
        return all_outputs(self.n_labels, self.lengths[i])

    def check_search(self, rescaling, **options):
        """The oracle's planes are the best of all outputs; returns how many examples were looked at."""
        found = search(self.model, self.X, self.Y, self.w, rescaling, **options)
        for i, (code, loss) in enumerate(found):
            best = self.value(i, self.outputs(i), rescaling).max()
            if code is None:
                assert best <= 1e-9
                continue
            assert self.value(i, code, rescaling) == pytest.approx(best, rel=1e-9, abs=1e-9)
            assert loss == pytest.approx(self.losses(i, code), rel=1e-12)
        return len(found)

    def check_prediction(self):
        for i, code in enumerate(self.model.predict(self.X, self.w)):
            assert self.score(i, code) == pytest.approx(self.score(i, self.outputs(i)).max(), abs=1e-9)


_OUTPUTS = {}


def all_outputs(n_labels, length):
    if (n_labels, length) not in _OUTPUTS:
        grid = np.meshgrid(*[np.arange(n_labels)] * length, indexing="ij")
        _OUTPUTS[n_labels, length] = np.stack([axis.ravel() for axis in grid], axis=-1)
    return _OUTPUTS[n_labels, length]


def longest(n_labels, most_outputs):
    """How long outputs may be so that there are at most so many of them."""
    return max(length for length in range(1, 7) if n_labels**length <= max(most_outputs, n_labels))


@pytest.mark.parametrize("n_labels", LABEL_COUNTS)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_chain_searches_equal_enumeration_for_any_number_of_labels(n_labels, rescaling):
    limit = longest(n_labels, 5000)
    for number, (kind, ends, with_forbidden) in enumerate(itertools.product(FEATURES, (False, True), (False, True))):
        rng = np.random.default_rng([n_labels, number])
        lengths = [int(length) for length in rng.integers(1, limit + 1, size=6)]
        case = ChainCase(rng, n_labels, lengths, kind, ends, with_forbidden and n_labels > 1)
        case.check_search(rescaling)
        case.check_prediction()


@pytest.mark.parametrize("loss", ["hamming", "cost", "labels", "tokens", "tokens and labels"])
@pytest.mark.parametrize("integer_loss", [True, False])
def test_chain_margin_search_equals_enumeration_for_any_loss(loss, integer_loss):
    for seed in range(20):
        rng = np.random.default_rng([seed, integer_loss])
        k = int(rng.integers(2, 6))
        lengths = [int(length) for length in rng.integers(1, longest(k, 1000) + 1, size=12)]
        kind = FEATURES[seed % len(FEATURES)]
        case = ChainCase(rng, k, lengths, kind, bool(seed & 1), bool(seed & 2), loss, integer_loss=integer_loss)
        case.check_search("margin")


def test_the_slack_rescaled_chain_search_equals_enumeration_on_10000_cases():
    checked = 0
    losses = ["hamming", "cost", "labels", "tokens", "tokens and labels"]
    for seed in itertools.count():
        rng = np.random.default_rng([7, seed])
        k = int(rng.integers(2, 5))
        lengths = [int(length) for length in rng.integers(1, longest(k, 800) + 1, size=150)]
        scale = 10.0 ** rng.uniform(-1.5, 0.5)
        loss = losses[seed % len(losses)]
        case = ChainCase(rng, k, lengths, "dense-float64", bool(seed & 1), bool(seed & 2), loss, scale=scale)
        checked += case.check_search("slack")
        if checked >= 10_000:
            return


def test_the_slack_search_finds_outputs_below_the_hull_of_loss_and_score():
    # Losses 1, 5, 10 with 1 + s = 10, 5, 1: the middle one is best, 25 against 10, and below the line from the first to the
    # last, so that a margin search with losses scaled by any factor never finds it.
    cost = np.array([[0.0, 1.0, 5.0, 10.0], [1.0, 0, 0, 0], [1.0, 0, 0, 0], [1.0, 0, 0, 0]])
    X, Y = [np.ones((1, 1))], [np.array([0])]
    coef = np.array([[0.0], [9.0], [4.0], [0.0]])
    model = Chain(4, cost=cost)
    model.bind(X, Y)
    ((code, loss),) = search(model, X, Y, model.join(coef=coef), "slack")
    assert (code[0], loss) == (2, 5.0)
    for scale in np.geomspace(0.01, 100, 50):
        scaled = Chain(4, cost=scale * cost)
        scaled.bind(X, Y)
        ((code, _),) = search(scaled, X, Y, model.join(coef=coef), "margin")
        assert code[0] != 2


def slack_optimum(case, i):
    """The largest slack-rescaled value of an example with Hamming loss, by a table over errors and labels."""
    node = case.node[case.rows(i)]
    legal = np.where(case.forbidden, -np.inf, case.transition)
    length, k = node.shape
    table = np.full((length + 1, k), -np.inf)
    is_wrong = np.arange(k) != case.Y[i][0]
    table[is_wrong.astype(int), np.arange(k)] = case.start + node[0]
    for t in range(1, length):
        # After t tokens there are at most t errors.
        reached = (table[: t + 1, :, None] + legal[None]).max(axis=1) + node[t]
        wrong = np.arange(k) != case.Y[i][t]
        table[: t + 1, ~wrong] = reached[:, ~wrong]
        table[1 : t + 2, wrong] = reached[:, wrong]
        table[0, wrong] = -np.inf
    total = (table + case.stop).max(axis=1)[1:]
    return max(0.0, np.max(np.arange(1, length + 1) * (1.0 + total - case.score(i, case.Y[i]))))


@pytest.mark.parametrize("seed", range(4))
def test_the_slack_search_of_longer_sequences_equals_a_table_in_numpy(seed):
    rng = np.random.default_rng([11, seed])
    lengths = [7, 8, 9, 10, 15, 16, 17, 50, 64, 65, 120]
    case = ChainCase(rng, 3, lengths, "dense-float64", bool(seed & 1), bool(seed & 2), scale=0.1)
    for i, (code, _) in enumerate(search(case.model, case.X, case.Y, case.w, "slack")):
        best = slack_optimum(case, i)
        assert (0.0 if code is None else case.value(i, code, "slack")) == pytest.approx(best, rel=1e-9, abs=1e-9)


def test_a_sequence_of_5000_tokens_is_searched_exactly_enough_and_in_seconds():
    rng = np.random.default_rng(5)
    case = ChainCase(rng, 3, [5000], scale=0.02)
    start = time.perf_counter()
    ((code, loss),) = search(case.model, case.X, case.Y, case.w, "slack")
    assert time.perf_counter() - start < 60.0
    found = case.value(0, code, "slack")
    assert loss == case.losses(0, code)
    assert found == pytest.approx(slack_optimum(case, 0), rel=1e-9)
    for scale in np.geomspace(1e-3, 10.0, 25):
        scaled = Chain(3, cost=np.full(3, scale))
        scaled.bind(case.X, case.Y)
        ((other, _),) = search(scaled, case.X, case.Y, case.w, "margin")
        assert found >= case.value(0, case.Y[0] if other is None else other, "slack") * (1 - 1e-12)
    assert found >= case.value(0, rng.integers(3, size=(20, 5000)), "slack").max()


def test_the_slack_search_of_5000_tokens_needs_little_memory():
    resource = pytest.importorskip("resource")
    assert resource
    script = """
        import resource, sys
        import numpy as np
        from maxmargin.models import Chain
        rng = np.random.default_rng(0)
        X, Y = [rng.normal(size=(5000, 2))], [rng.integers(3, size=5000)]
        model = Chain(3)
        problem = model.bind(X, Y, rescaling="slack")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert len(problem.separate(problem.all_ids, problem.zero_weights(), precise=True)) == 1
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        print(grown / (2**20 if sys.platform == "darwin" else 2**10))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    # A table of all positions takes 800 MB; the blocks take 25.
    assert float(run.stdout) < 200.0


@pytest.mark.parametrize("n_labels", [1, 3, 8, 9, 33, 70])
def test_max_marginals_equal_enumeration(n_labels):
    for number, (ends, with_forbidden) in enumerate(itertools.product((False, True), (False, True))):
        rng = np.random.default_rng([n_labels, number])
        lengths = [int(length) for length in rng.integers(1, longest(n_labels, 5000) + 1, size=5)]
        kind = FEATURES[number]
        case = ChainCase(rng, n_labels, lengths, kind, ends, with_forbidden and n_labels > 1)
        for i, marginals in enumerate(case.model.max_marginals(case.X, case.w)):
            outputs = case.outputs(i)
            scores = case.score(i, outputs)
            assert marginals.shape == (lengths[i], n_labels)
            for t, label in np.ndindex(marginals.shape):
                best = scores[outputs[:, t] == label].max()
                assert marginals[t, label] == pytest.approx(best, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n_labels", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("k", [1, 2, 7, 400])
def test_k_best_equals_enumeration(n_labels, k):
    for number, (ends, with_forbidden) in enumerate(itertools.product((False, True), (False, True))):
        rng = np.random.default_rng([n_labels, number])
        lengths = [int(length) for length in rng.integers(1, longest(n_labels, 300) + 1, size=5)]
        case = ChainCase(rng, n_labels, lengths, FEATURES[number], ends, with_forbidden and n_labels > 1)
        for i, (codes, scores) in enumerate(case.model.k_best(case.X, case.w, k)):
            every = np.sort(case.score(i, case.outputs(i)))[::-1]
            every = every[np.isfinite(every)]
            assert len(codes) == len(scores) == min(k, len(every))
            assert scores == pytest.approx(every[:k], rel=1e-9, abs=1e-9)
            assert case.score(i, codes) == pytest.approx(scores, rel=1e-9, abs=1e-9)
            assert len({tuple(code) for code in codes}) == len(codes)


# ------------------------------------------------------------------------- rounded search, portions, threads


@pytest.mark.parametrize("n_labels", LABEL_COUNTS)
def test_planes_found_in_float32_are_worth_almost_as_much_in_double(n_labels):
    for number, kind in enumerate(FEATURES):
        rng = np.random.default_rng([3, n_labels, number])
        lengths = [int(length) for length in rng.integers(1, 30, size=20)]
        case = ChainCase(rng, n_labels, lengths, kind, bool(number & 1), n_labels > 1 and bool(number & 2))
        exact = search(case.model, case.X, case.Y, case.w, "margin", precise=True)
        rounded = search(case.model, case.X, case.Y, case.w, "margin", precise=False)
        for i, ((code, _), (fast, loss)) in enumerate(zip(exact, rounded, strict=True)):
            best = 0.0 if code is None else case.value(i, code, "margin")
            found = 0.0 if fast is None else case.value(i, fast, "margin")
            assert best - 1e-4 * (1.0 + best) <= found <= best + 1e-9 * (1.0 + best)
            assert fast is None or loss == pytest.approx(case.losses(i, fast))


def test_slack_search_is_exact_even_where_float32_is_allowed():
    case = ChainCase(np.random.default_rng(0), 3, [3, 4, 5, 2] * 10)
    case.check_search("slack", precise=False)


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize("precise", [True, False])
def test_any_portion_and_any_number_of_threads_find_the_same_planes(rescaling, precise):
    rng = np.random.default_rng(8)
    # More than one chunk of 64 examples and runs of more than 256 rows.
    case = ChainCase(rng, 5, [int(length) for length in rng.integers(1, 12, size=300)], ends=True)

    def codes(found):
        return [None if code is None else tuple(code) for code, _ in found]

    options = {"precise": precise}
    whole = codes(search(case.model, case.X, case.Y, case.w, rescaling, **options))
    assert codes(search(case.model, case.X, case.Y, case.w, rescaling, n_jobs=2, **options)) == whole
    ids = rng.choice(300, size=77, replace=False).astype(np.int64)
    some = codes(search(case.model, case.X, case.Y, case.w, rescaling, ids=ids, **options))
    assert some == [whole[i] for i in ids]
    alone, both = (case.model.predict(case.X, case.w, n_jobs=n_jobs) for n_jobs in (1, 2))
    assert all(np.array_equal(a, b) for a, b in zip(alone, both, strict=True))


def test_predictions_and_training_searches_never_use_forbidden_transitions():
    rng = np.random.default_rng(21)
    case = ChainCase(rng, 6, [int(length) for length in rng.integers(2, 40, size=60)], with_forbidden=True)
    for precise, rescaling in itertools.product((True, False), ("margin", "slack")):
        for code, _ in search(case.model, case.X, case.Y, case.w, rescaling, precise=precise):
            assert code is None or not case.forbidden[code[:-1], code[1:]].any()
    for code in case.model.predict(case.X, case.w):
        assert not case.forbidden[code[:-1], code[1:]].any()
