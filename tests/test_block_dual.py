"""What block-dual does beyond the blocks: the mean of w over sweeps, searches of several visits at once, gradients for all."""

import numpy as np
import pytest
from block_rules import watched_rules
from sklearn.exceptions import ConvergenceWarning
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin.problems.linear import LinearProblem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers import _forecast, _plane_blocks, block_dual
from maxmargin.solvers._joint_ascent import JointAscent

pytestmark = pytest.mark.core


@pytest.fixture(params=["float64", "float32"])
def precision(request, monkeypatch):
    """Small problems are searched in double throughout; this makes them large."""
    if request.param == "float32":
        monkeypatch.setattr(LinearProblem, "_SMALL", 0)


def primal_at(w, X, Y, C):
    """½‖w‖² + C Σ ξ, with every ξ from loss-augmented decoding in double."""
    model = mm.models.Chain(4)
    problem = model.bind(X, Y)
    point = problem.zero_weights()
    point.exact[:] = w
    found = problem.separate(problem.all_ids, point, precise=True)
    slacks = found.losses() - problem.space.dots(found, point.exact)
    return 0.5 * w @ w + C * np.maximum(slacks, 0.0).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_later_weights_count_more_in_the_mean(dtype):
    mean = _plane_blocks.Mean()
    points = [np.array(values, dtype) for values in ([6.0, 0.0], [0.0, 6.0], [3.0, 12.0])]
    for point in points:
        mean.add(point)
    assert mean.values.dtype == dtype
    np.testing.assert_allclose(mean.values, (points[0] + 2 * points[1] + 3 * points[2]) / 6, rtol=1e-6)
    np.testing.assert_array_equal(points[0], [6.0, 0.0])


def test_the_primal_is_that_of_the_weights_returned_where_they_are_a_mean(monkeypatch, precision):
    X, Y = tagging_problem()
    shown = []
    become = DenseWeights.become
    monkeypatch.setattr(DenseWeights, "become", lambda self, values: shown.append(values) or become(self, values))
    solution = mm.train(mm.models.Chain(4), X, Y, 10.0, solver="block-dual", tol=0.02)
    np.testing.assert_array_equal(solution.w, shown[-1])
    assert solution.certificate.primal == pytest.approx(primal_at(solution.w, X, Y, 10.0), rel=1e-12)
    assert solution.certificate.relative_gap <= 0.02


def test_the_passes_before_the_first_bounds_come_close_where_C_is_small():
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, 1e-3, solver="block-dual", tol=1e-4)
    # Most blocks count as solved in the second pass where it goes by what was open at the first, and a hundredth stays open.
    assert solution.history[0]["relative_gap"] < 1e-3


@pytest.mark.parametrize("tol", [0.1, 0.04])
def test_a_coarse_gap_takes_no_more_bounds_than_may_end_training(tol):
    X, Y = tagging_problem()
    solution = mm.train(mm.models.Chain(4), X, Y, 1.0, solver="block-dual", tol=tol)
    assert solution.certificate.relative_gap <= tol
    assert solution.certificate.oracle_calls > 4 * len(X)
    assert (len(solution.history) <= 2) == (tol == 0.1)


def rules_of(monkeypatch, **settings):
    """Return the over-relaxation of every rule of a run, and how many there were at each record."""
    rules, by_record = watched_rules(monkeypatch, "relaxation"), []
    X, Y = tagging_problem()
    mm.train(
        mm.models.Chain(4), X, Y, solver="block-dual", callback=lambda record: by_record.append(len(rules)), **settings
    )
    return rules, by_record


def test_visits_are_over_relaxed_where_the_gap_is_small(monkeypatch):
    gaps = []
    bounds = _plane_blocks.PlaneBlocks.bounds

    def watched(self, *, precise):
        primal, dual = bounds(self, precise=precise)
        gaps.append((primal - dual) / primal)
        return primal, dual

    monkeypatch.setattr(_plane_blocks.PlaneBlocks, "bounds", watched)
    monkeypatch.setattr(_plane_blocks, "_MANY_SWEEPS", 1000)
    rules, by_record = rules_of(monkeypatch, C=1.0, tol=1e-3)
    after_far = {rules[n] for gap, n in zip(gaps[:-1], by_record, strict=False) if gap > _forecast.CLOSE}
    after_near = {rules[n] for gap, n in zip(gaps[:-1], by_record, strict=False) if gap <= _forecast.CLOSE}
    assert after_far == {1.0}
    assert after_near == {_plane_blocks._NEAR[1]}


def test_visits_are_over_relaxed_more_once_many_sweeps_followed_a_pass(monkeypatch):
    monkeypatch.setattr(_plane_blocks, "_MANY_SWEEPS", 3)
    rules, _ = rules_of(monkeypatch, C=1.0, tol=1e-3)
    slow = _plane_blocks._SLOW[1]
    assert rules[0] == 1.0
    assert slow in rules
    assert set(rules[rules.index(slow) :]) == {slow}


def test_visits_under_the_squared_hinge_are_not_over_relaxed(monkeypatch):
    rules, _ = rules_of(monkeypatch, C=0.05, tol=1e-4, loss="squared_hinge")
    assert set(rules) == {1.0}


@pytest.mark.parametrize("batch", [2, 7, 1000])
def test_visits_that_search_at_once_end_at_the_same_optimum_for_any_number_of_threads(monkeypatch, batch, precision):
    X, Y = tagging_problem()
    settings = {"solver": "block-dual", "tol": 1e-6}
    one_by_one = mm.train(mm.models.Chain(4, ends=True), X, Y, 0.5, **settings).certificate
    monkeypatch.setattr(_plane_blocks, "_CHEAP_SEARCH", -1.0)
    monkeypatch.setattr(_plane_blocks, "_SEARCH_BATCH", batch)
    alone, shared = (mm.train(mm.models.Chain(4, ends=True), X, Y, 0.5, n_jobs=n, **settings) for n in (1, 3))
    np.testing.assert_array_equal(alone.w, shared.w)
    assert alone.certificate.relative_gap <= 1e-6
    assert alone.certificate.primal >= one_by_one.dual
    assert one_by_one.primal >= alone.certificate.dual


@pytest.mark.parametrize("bounded", [False, True])
def test_the_table_of_a_search_follows_w_where_transitions_are_forbidden_or_bounded(bounded, precision):
    forbidden = {(1, 0), (1, 1), (1, 3)}
    X, Y = tagging_problem()
    is_legal = [forbidden.isdisjoint(zip(y[:-1].tolist(), y[1:].tolist(), strict=True)) for y in Y]
    X, Y = ([item for item, legal in zip(items, is_legal, strict=True) if legal] for items in (X, Y))
    nonnegative = {"transition": np.eye(4, dtype=bool)} if bounded else None
    model = mm.models.Chain(4, forbidden=forbidden, nonnegative=nonnegative)
    ours, other = (mm.train(model, X, Y, 0.5, solver=name, tol=1e-6).certificate for name in ("block-dual", "n-slack"))
    assert ours.primal >= other.dual
    assert other.primal >= ours.dual
    assert ours.relative_gap <= 1e-6


def test_gradients_for_all_planes_come_where_sweeps_crawl_and_not_where_they_do_well():
    X, Y = tagging_problem()
    easy = mm.train(mm.models.Chain(4), X, Y, 0.05, solver="block-dual", tol=1e-5)
    assert not any(record["joint_steps"] for record in easy.history)
    crawling = mm.train(mm.models.Chain(4), [1e3 * x for x in X], Y, 1.0, solver="block-dual", tol=1e-6, max_iter=2000)
    assert any(record["joint_steps"] for record in crawling.history)
    assert crawling.certificate.converged


def separable(n=400, d=30, n_labels=5):
    rng = np.random.default_rng(0)
    W = rng.normal(size=(n_labels, d))
    X = [rng.normal(size=(rng.integers(3, 9), d)) for _ in range(n)]
    return X, [np.argmax(x @ W.T, axis=1) for x in X]


@pytest.mark.parametrize(("loss", "C"), [("hinge", 10.0), ("squared_hinge", 1.0)])
def test_examples_that_are_satisfied_are_searched_less_often(monkeypatch, loss, C, precision):
    # With so few weights a run of the squared hinge would come up from a small C, in whole passes, and move all planes together.
    monkeypatch.setattr(JointAscent, "can_help", staticmethod(lambda *problem: False))
    X, Y = separable()
    every, some = (
        mm.train(
            mm.models.Chain(5),
            X,
            Y,
            C,
            solver="block-dual",
            loss=loss,
            tol=1e-5,
            solver_options={"skip_satisfied": skips},
        )
        for skips in (False, True)
    )
    assert every.certificate.converged
    assert some.certificate.converged
    assert some.certificate.oracle_calls < 0.9 * every.certificate.oracle_calls
    assert some.certificate.dual <= every.certificate.primal * (1.0 + 1e-9)
    assert every.certificate.dual <= some.certificate.primal * (1.0 + 1e-9)
    # Passes that are not whole give no primal of their own: the best one so far stands.
    calls = np.diff([record["oracle_calls"] for record in some.history])
    primals = np.array([record["primal"] for record in some.history])
    assert np.any(calls < len(X))
    assert np.all(np.diff(primals)[calls < len(X)] == 0.0)
    if loss == "hinge":
        problem = mm.models.Chain(5).bind(X, Y)
        weights = problem.zero_weights()
        weights.exact[:] = some.w
        assert some.certificate.primal == pytest.approx(problem.primal(weights, 10.0, squared=False), rel=1e-9)


def test_an_example_with_mass_is_never_skipped(monkeypatch):
    """At the margin its slack is 0, and its α may have to fall."""
    n_at_margin = []

    def searched(self, *, precise):
        carriers, slacks = self.sets.carriers(), self._slacks
        step = search(self, precise=precise)
        assert np.isin(carriers, self._asked).all()
        assert np.isin(np.flatnonzero(slacks > 0.0), self._asked).all()
        n_at_margin.append(np.count_nonzero(slacks[carriers] == 0.0))
        return step

    search = _plane_blocks.PlaneBlocks.evaluate_unsatisfied
    monkeypatch.setattr(_plane_blocks.PlaneBlocks, "evaluate_unsatisfied", searched)
    X, Y = separable()
    mm.train(mm.models.Chain(5), X, Y, 10.0, solver="block-dual", tol=1e-5, solver_options={"skip_satisfied": True})
    assert max(n_at_margin) > 0


def test_nothing_is_skipped_where_hardly_an_example_is_satisfied():
    X, Y = tagging_problem()
    calls = [
        mm.train(
            mm.models.Chain(4), X, Y, 0.01, solver="block-dual", tol=1e-4, solver_options={"skip_satisfied": skips}
        )
        for skips in (False, True)
    ]
    assert calls[0].certificate.oracle_calls == calls[1].certificate.oracle_calls
    assert np.array_equal(calls[0].w, calls[1].w)


def test_a_run_of_the_squared_hinge_that_overshoots_comes_up_from_a_small_C(monkeypatch):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(20, 6))
    X = [rng.normal(size=(12, 20)) for _ in range(200)]
    Y = [np.argmax(x @ truth + 3.0 * rng.normal(size=(12, 6)), axis=1) for x in X]
    settings = {"loss": "squared_hinge", "solver": "block-dual", "tol": 1e-2}
    climbs = mm.train(mm.models.Chain(6), X, Y, 0.1, **settings)
    first, zero, *steps = climbs.history
    climbed = next(record for record in steps if record["relative_gap"] < zero["relative_gap"])
    assert first["relative_gap"] > 0.9
    # What weights of 0 are worth: each sequence has 12 labels to miss.
    assert zero["primal"] == pytest.approx(min(first["primal"], 0.1 * 200 * 12.0**2))
    assert climbed["relative_gap"] < 0.1
    monkeypatch.setattr(block_dual, "_FAR_OFF", 1.0)
    stays = mm.train(mm.models.Chain(6), X, Y, 0.1, **settings)
    for one, other in ((climbs, stays), (stays, climbs)):
        assert one.certificate.converged
        assert one.certificate.dual <= other.certificate.primal * (1.0 + 1e-9)
    n_joint_steps = [sum(record["joint_steps"] for record in run.history) for run in (climbs, stays)]
    assert n_joint_steps[0] < n_joint_steps[1]


def noisy_sequences(n, n_features, n_labels, noise, scale=1.0):
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(n_features, n_labels))
    X = [rng.normal(size=(int(rng.integers(3, 12)), n_features)) for _ in range(n)]
    Y = [np.argmax(x @ truth + noise * rng.normal(size=(len(x), n_labels)), axis=1) for x in X]
    return [scale * x for x in X], Y


def test_sweeps_go_on_where_moving_all_planes_together_changes_nothing(monkeypatch):
    X, Y = noisy_sequences(40, 20, 6, 3.0)
    calls = []

    def fall_short(self):
        calls.append(self)
        self._fell_short = True

    monkeypatch.setattr(_plane_blocks.PlaneBlocks, "_would_take_longer", lambda self: len(self._gaps) > 4)
    monkeypatch.setattr(_plane_blocks.PlaneBlocks, "_ascend_together", fall_short)
    solution = mm.train(mm.models.Chain(6), X, Y, 1.0, solver="block-dual", tol=1e-2, max_iter=1000)
    assert solution.certificate.converged
    assert 1 <= len(calls) < len(solution.history) / 2
    assert solution.history[-2]["sweeps"] > 0


@pytest.mark.parametrize(
    ("loss", "rescaling", "n", "scale", "C"),
    [("squared_hinge", "margin", 30, 10.0, 10.0), ("hinge", "slack", 250, 3.0, 1.0)],
)
def test_planes_are_moved_together_again_where_others_were_missing(loss, rescaling, n, scale, C):
    X, Y = noisy_sequences(n, 5, 3, 2.0, scale)
    solution = mm.train(mm.models.Chain(3), X, Y, C, solver="block-dual", loss=loss, rescaling=rescaling, max_iter=150)
    assert solution.certificate.converged
    moved = [record["joint_steps"] > 0 for record in solution.history]
    assert sum(moved) > 2


def test_planes_are_moved_together_once_sweeps_took_as_long(monkeypatch):
    X, Y = noisy_sequences(300, 10, 4, 2.0)
    monkeypatch.setattr(_plane_blocks, "_WATCHED", 1000)
    settings = {"solver": "block-dual", "tol": 1e-3}
    early = mm.train(mm.models.Chain(4), X, Y, 100.0, **settings)
    assert early.certificate.converged
    assert sum(record["joint_steps"] for record in early.history) > 0
    monkeypatch.setattr(JointAscent, "work", lambda *_: np.inf)
    with pytest.warns(ConvergenceWarning):
        never = mm.train(mm.models.Chain(4), X, Y, 100.0, max_iter=len(early.history), **settings)
    assert sum(record["joint_steps"] for record in never.history) == 0


def test_a_run_that_comes_up_from_a_small_C_starts_from_given_planes_and_looks_at_the_clock():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(6, 4))
    X = [rng.normal(size=(10, 6)) for _ in range(300)]
    Y = [np.argmax(x @ truth + 2.5 * rng.normal(size=(10, 4)), axis=1) for x in X]
    settings = {"loss": "squared_hinge", "solver": "block-dual", "keep_planes": True}
    planes = mm.train(mm.models.Chain(4), X, Y, 1e-3, **settings).planes
    warm, cold = (mm.train(mm.models.Chain(4), X, Y, 1.0, planes=given, **settings) for given in (planes, None))
    assert warm.certificate.oracle_calls < cold.certificate.oracle_calls
    # To come up is one iteration: the third one knows what it led to.
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        short = mm.train(mm.models.Chain(4), X, Y, 1.0, max_iter=3, tol=1e-6, **settings)
    assert short.certificate.relative_gap < 0.05
    # Where there is no time for it, it goes up at once.
    with pytest.warns(ConvergenceWarning, match=r"max_time=0\.01"):
        late = mm.train(mm.models.Chain(4), X, Y, 1.0, max_time=0.01, **settings)
    assert late.certificate.dual <= warm.certificate.primal
    assert late.certificate.primal >= warm.certificate.dual
