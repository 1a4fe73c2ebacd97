"""Block-dual where searches take long: passes in parts, what they estimate, and what they fall back on."""

import itertools
import time

import few_sequences
import numpy as np
import pytest
import reference
import reference_models
import small_model
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers import _dear_blocks
from maxmargin.solvers._dear_blocks import DearBlocks

N_LABELS = 6


class Classes(mm.Model):
    """Classes in Python, with a search of their own for margin rescaling."""

    def initialize(self, X, Y):
        self.n_features = N_LABELS * X.shape[1]

    def outputs(self, x):
        return range(N_LABELS)

    def joint_feature(self, x, y):
        psi = np.zeros((N_LABELS, len(x)))
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true, y):
        return float(y_true != y)

    def loss_augmented_argmax(self, x, y_true, w):
        scores = w.reshape(N_LABELS, -1) @ x + 1.0
        scores[y_true] -= 1.0
        return int(np.argmax(scores))


def noisy_classes(n=300, n_features=20, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, n_features))
    scores = X @ rng.normal(size=(n_features, N_LABELS)) + noise * np.sqrt(n_features) * rng.normal(size=(n, N_LABELS))
    return X, np.argmax(scores, axis=1).tolist()


def fit(X, Y, C=0.1, tol=1e-3, **options):
    return mm.train(Classes(), X, Y, C=C, solver="block-dual", tol=tol, random_state=0, **options)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_passes_in_parts_take_far_fewer_searches(monkeypatch, loss):
    X, Y = noisy_classes()
    in_parts = fit(X, Y, loss=loss)
    monkeypatch.setattr(_dear_blocks, "_PARTS", 1)
    at_once = fit(X, Y, loss=loss)
    for solution in (in_parts, at_once):
        assert solution.certificate.converged
        assert solution.certificate.exact
    assert in_parts.certificate.oracle_calls < 0.8 * at_once.certificate.oracle_calls


def test_every_part_is_searched_at_the_w_that_the_parts_before_it_left(monkeypatch):
    X, Y = noisy_classes(64)
    parts, points = [], []
    search = DearBlocks._search

    def watched(self, ids, *, precise):
        parts.append(np.asarray(ids))
        points.append(self._shown.exact.copy())
        search(self, ids, precise=precise)

    monkeypatch.setattr(DearBlocks, "_search", watched)
    solution = fit(X, Y, C=1.0)
    sizes = [len(part) for part in parts]
    assert sizes[:17] == [64] + 16 * [4]  # the first pass is at w = 0
    assert sorted(np.concatenate(parts[1:17])) == list(range(64))
    assert all(not np.array_equal(a, b) for a, b in itertools.pairwise(points[:17]))
    assert sizes[-1] == 64  # bounds end training
    assert solution.certificate.oracle_calls == sum(sizes)


def test_estimates_tell_when_bounds_are_close_enough():
    history = fit(*noisy_classes(), tol=1e-4).history
    in_parts = ["gap_estimate" in record for record in history]
    # Bounds come at w = 0, after 2 and 4 passes in parts, and so on; beside these at most twice, where they may end training.
    assert [k for k, is_in_parts in enumerate(in_parts[:7]) if not is_in_parts] == [0, 3, 6]
    n_in_parts = sum(in_parts)
    assert len(history) - n_in_parts <= 1 + int(np.log2(n_in_parts)) + 2
    assert not in_parts[-1]
    assert in_parts[-2]
    assert 0.05 < history[-1]["gap"] / history[-2]["gap_estimate"] < 1.3
    duals = [record["dual"] for record in history]
    assert duals == sorted(duals)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("nonnegative", [(), (0, 3, 7)])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_passes_in_parts_end_at_the_reference_optimum(loss, nonnegative, rescaling):
    class Constrained(Classes):
        def initialize(self, X, Y):
            super().initialize(X, Y)
            self.nonnegative = nonnegative

    X, Y = noisy_classes(40, 4)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, 40)
    model = Constrained()
    solution = mm.train(
        model, X, Y, C=0.7, loss=loss, rescaling=rescaling, solver="block-dual", tol=1e-7, sample_weight=weights
    )
    exact = reference_models.CallableModel(X, Y, model.outputs, model.joint_feature, model.loss)
    best = reference.solve(
        reference.planes(exact, rescaling), 0.7, sample_weight=weights, loss=loss, nonnegative=list(nonnegative)
    )
    assert solution.certificate.converged
    assert any("gap_estimate" in record for record in solution.history)
    assert abs(solution.certificate.primal - best.objective) <= 1e-6 * best.objective
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)


def test_all_planes_are_moved_together_where_sweeps_take_too_long(monkeypatch):
    X, Y = noisy_classes()
    joint = fit(X, Y, C=100.0, tol=1e-2)
    assert joint.certificate.converged
    assert sum(record["joint_steps"] for record in joint.history) > 0
    monkeypatch.setattr(_dear_blocks, "_LONG_SWEEPS", np.inf)
    swept = fit(X, Y, C=100.0, tol=1e-2)  # until passes find no more planes
    assert sum(record["sweeps"] for record in joint.history) < 0.5 * sum(record["sweeps"] for record in swept.history)


@pytest.mark.parametrize(("n", "n_features", "scale"), [(38, 7, 1.0), (38, 7, 5.0), (100, 10, 1.0)])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_labels_without_sense_and_a_large_C_take_few_passes(n, n_features, scale, loss):
    rng = np.random.default_rng(0)
    X = scale * rng.normal(size=(n, n_features))
    solution = fit(X, rng.integers(2, size=n).tolist(), C=1e3, loss=loss, max_iter=60)
    assert solution.certificate.converged


def test_passes_are_at_one_w_where_sweeps_are_given():
    X, Y = noisy_classes(60)
    history = fit(X, Y, solver_options={"sweeps": 2}).history
    assert not any("gap_estimate" in record for record in history)
    assert {record["sweeps"] for record in history[1:]} <= {
        0,
        1,
        2,
    }  # fewer where nothing moved, or all planes together


def test_satisfied_examples_are_left_out_of_parts_on_request():
    X, Y = noisy_classes(400, noise=0.1)
    whole, short = (fit(X, Y, C=10.0, solver_options={"skip_satisfied": skips}) for skips in (False, True))
    assert short.certificate.converged
    assert short.certificate.exact
    assert abs(short.certificate.primal - whole.certificate.primal) <= 2e-3 * whole.certificate.primal
    searches = np.diff([record["oracle_calls"] for record in short.history])
    assert searches.min() < 400  # some passes are short
    assert np.all(np.diff([record["oracle_calls"] for record in whole.history]) == 400)


def test_a_run_goes_on_from_planes_with_bounds_first():
    X, Y = noisy_classes()
    first = mm.train(Classes(), X, Y, C=0.1, solver="block-dual", keep_planes=True)
    again = mm.train(Classes(), X, Y, C=0.1, planes=first.planes, solver="block-dual")
    assert again.certificate.converged
    assert again.certificate.oracle_calls == len(X)


def test_a_path_takes_far_fewer_searches_than_its_points_one_by_one():
    X, Y = noisy_classes()
    Cs = np.geomspace(1e-3, 1.0, 10)
    path = mm.path(Classes(), X, Y, Cs, solver="block-dual")
    alone = [fit(X, Y, C=C) for C in Cs]
    calls = [sum(solution.certificate.oracle_calls for solution in run) for run in (path, alone)]
    assert all(solution.certificate.converged for solution in path)
    assert calls[0] < 0.6 * calls[1]


def test_points_close_together_take_one_pass_each():
    X, Y = noisy_classes()
    path = mm.path(Classes(), X, Y, 0.1 * 1.02 ** np.arange(5), solver="block-dual", tol=1e-2)
    assert [solution.certificate.oracle_calls for solution in path][1:] == 4 * [len(X)]


def test_time_for_bounds_is_left_where_a_pass_takes_long(monkeypatch):
    now = 0.0

    class Slow(Classes):
        def loss_augmented_argmax(self, x, y_true, w):
            nonlocal now
            now += 12e-3
            return super().loss_augmented_argmax(x, y_true, w)

    X, Y = noisy_classes(100)
    monkeypatch.setattr(time, "perf_counter", lambda: now)
    with pytest.warns(UserWarning, match=r"max_time=3 s was reached"):
        solution = mm.train(Slow(), X, Y, C=0.1, solver="block-dual", tol=1e-9, max_time=3.0)
    assert solution.certificate.exact
    # All examples at w = 0, some of the parts, and all again for bounds.
    assert ["gap_estimate" in record for record in solution.history] == [False, True, False]
    assert 200 < solution.certificate.oracle_calls < 300
    assert solution.history[-1]["seconds"] < 4.0


class SlowClasses(small_model.Classes):
    def loss_augmented_argmax(self, x, y, w):
        time.sleep(0.03)
        return super().loss_augmented_argmax(x, y, w)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_auto_measures_searches_and_lets_more_sweeps_come_between_slow_ones(n_jobs):
    X, Y = small_model.data(30)
    slow, quick = (mm.train(model, X, Y, tol=0.1, n_jobs=n_jobs) for model in (SlowClasses(), small_model.Classes()))
    assert slow.solver == quick.solver == "block-dual"
    assert slow.history[0]["oracle_seconds"] > 0.03 > 0.01 > quick.history[0]["oracle_seconds"] > 0.0
    assert slow.history[0]["solver_options"] == {"search_seconds": 0.01}
    assert "as long as many sweeps" in slow.history[0]["reason"]
    assert quick.history[0]["solver_options"] == {}
    # What it chose can be asked for by name, and gives the same.
    again = mm.train(small_model.Classes(), X, Y, tol=0.1, solver="block-dual", solver_options={"search_seconds": 0.01})
    np.testing.assert_array_equal(slow.w, again.w)


def test_auto_measures_searches_of_warm_starts_but_not_where_their_time_is_given():
    X, Y = small_model.data(30)
    first = mm.train(SlowClasses(), X, Y, tol=0.1, keep_planes=True)
    second = mm.train(SlowClasses(), X, Y, 2.0, tol=0.1, planes=first.planes)
    assert second.history[0]["solver_options"] == {"search_seconds": 0.01}
    given = mm.train(SlowClasses(), X, Y, tol=0.1, solver_options={"search_seconds": 1e-4})
    assert given.history[0]["solver_options"] == {"search_seconds": 1e-4}


def test_searches_that_are_said_to_take_long_are_made_less_often():
    X, Y = noisy_classes()
    quick, slow = (fit(X, Y, C=1.0, solver_options={"search_seconds": s}) for s in (5e-5, 1e-2))
    assert quick.certificate.converged
    assert slow.certificate.converged
    assert slow.certificate.oracle_calls < quick.certificate.oracle_calls
    # What is assumed of searches in Python.
    np.testing.assert_array_equal(quick.w, fit(X, Y, C=1.0).w)


def test_auto_does_the_same_with_many_processes():
    X, Y = small_model.data(30)
    one, two = (mm.train(small_model.Classes(), X, Y, tol=0.1, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.w, two.w)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_auto_measures_few_examples_however_many_processes_there_are(n):
    X, Y = small_model.data(n)
    solution = mm.train(small_model.Classes(), X, Y, tol=0.1, n_jobs=4)
    assert solution.history[0]["oracle_seconds"] > 0.0


def test_one_long_search_makes_no_slow_model():
    class Interrupted(small_model.Classes):
        n_searched = 0

        def loss_augmented_argmax(self, x, y, w):
            self.n_searched += 1
            if self.n_searched == 5:
                time.sleep(0.3)
            return super().loss_augmented_argmax(x, y, w)

    X, Y = small_model.data(30)
    assert mm.train(Interrupted(), X, Y, tol=0.1).history[0]["solver_options"] == {}


@pytest.mark.parametrize(
    ("loss", "n", "n_features", "C", "seed"),
    [
        ("hinge", 4, 3, 5356.508360951933, 820099),
        ("hinge", 3, 3, 4353.7268856776545, 669245),
        ("squared_hinge", 20, 20, 4943.592124323035, 907285),
    ],
)
def test_passes_that_find_no_plane_lead_to_closer_solves_not_to_more_searches(loss, n, n_features, C, seed):
    X, Y = few_sequences.few_sequences(n, n_features, seed)
    model = few_sequences.Sequences()
    settings = {"loss": loss, "tol": 1e-2, "random_state": seed, "solver": "block-dual", "max_iter": 300}
    solution = mm.train(model, X, Y, C, **settings)
    assert solution.certificate.converged
    assert solution.certificate.oracle_calls < 50 * n


def test_an_interrupt_after_passes_in_parts_returns_where_they_got():
    class Interrupted(Classes):
        n_searched = 0

        def loss_augmented_argmax(self, x, y_true, w):
            self.n_searched += 1
            if self.n_searched == 250:  # in the third pass, before the second that gives bounds
                raise KeyboardInterrupt
            return super().loss_augmented_argmax(x, y_true, w)

    X, Y = noisy_classes(100, noise=0.3)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        solution = mm.train(Interrupted(), X, Y, solver="block-dual", random_state=0)
    certificate = solution.certificate
    assert solution.w.any()
    assert not certificate.exact
    assert certificate.oracle_exact
    problem = Classes().bind(X, Y)
    weights = problem.zero_weights()
    weights.exact[:] = solution.w
    assert certificate.dual <= problem.primal(weights, 1.0, squared=False) < 100.0
    assert certificate.primal < 100.0
