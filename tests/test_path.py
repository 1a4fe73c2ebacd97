"""A path over C: every point is what a single run would certify, in the order asked for."""

import numpy as np
import pytest
import reference
import small_model
from block_rules import exact
from native_models import to_reference
from sklearn.exceptions import ConvergenceWarning
from tagging_problem import tagging_problem
from test_solvers_exact import assert_bounds_hold, case
from test_working_sets import N_EXAMPLES, N_WEIGHTS, NOTHING, crawling_sets, dual, plane

import maxmargin as mm
from maxmargin import _core
from maxmargin._train import solutions_at
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers import SOLVERS, _forecast, _plane_blocks
from maxmargin.solvers._plane_blocks import PlaneBlocks
from maxmargin.solvers.base import Solver, Task

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

KEEPING = [name for name, solver in SOLVERS.items() if solver.keeps_planes()]
CS = [0.5, 0.005, 5.0, 0.05]


@pytest.mark.filterwarnings("ignore:max_iter")
@pytest.mark.parametrize(("solver", "loss"), [(s, loss) for s in KEEPING for loss in sorted(SOLVERS[s].losses)])
@pytest.mark.parametrize(
    ("name", "variant", "rescaling"),
    [
        ("binary", "sample weights", "margin"),
        ("multiclass", "everything", "slack"),
        ("chain", "plain", "margin"),
        ("chain", "nonnegative", "margin"),
        ("chain", "everything", "slack"),
    ],
)
def test_every_point_holds_its_own_optimum(name, variant, rescaling, solver, loss):
    is_slow = solver not in ("block-dual", "one-slack", "n-slack")
    for seed in range(1 if is_slow else 2):
        problem = case(name, variant, seed)
        points = mm.path(
            problem.native,
            problem.X,
            problem.Y,
            CS,
            solver=solver,
            loss=loss,
            rescaling=rescaling,
            sample_weight=problem.sample_weight,
            tol=0.02 if is_slow else 1e-6,
            max_iter=3000,
        )
        assert points.Cs.tolist() == CS
        for C, solution in zip(CS, points, strict=True):
            best = reference.solve(problem.planes(rescaling), C, problem.sample_weight, loss, problem.bounded)
            certificate = solution.certificate
            assert certificate.converged or is_slow
            assert certificate.exact
            # It is that of the weights of this point, and of this C.
            w = to_reference(problem.native, solution.w)
            primal = reference.primal(w, problem.planes(rescaling), C, problem.sample_weight, loss)
            assert certificate.primal == pytest.approx(primal, rel=1e-9)
            assert certificate.dual == min(certificate.primal, max(record["dual"] for record in solution.history))
            records = [record for record in solution.history if record["primal"] is not None]
            assert_bounds_hold(records, best)


@pytest.mark.parametrize("solver", ["block-dual", "n-slack", "one-slack"])
def test_points_agree_with_single_runs_and_cost_less(solver):
    X, Y = tagging_problem()
    model, Cs = mm.models.Chain(4, ends=True), np.geomspace(1e-4, 0.1, 8)
    points = mm.path(model, X, Y, Cs, solver=solver, tol=1e-4)
    singles = [mm.train(model, X, Y, C, solver=solver, tol=1e-4) for C in Cs]
    for one, other in zip(points, singles, strict=True):
        assert one.certificate.relative_gap <= 1e-4
        assert one.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= one.certificate.primal
    calls, single_calls = (sum(s.certificate.oracle_calls for s in found) for found in (points, singles))
    assert calls < single_calls


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("ratio", [0.2, 5.0])
def test_rows_keep_what_they_know_when_C_changes(loss, ratio):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 12))
    y = np.argmax(X[:, :3] + rng.normal(size=(300, 3)), axis=1)
    for model, labels in ((mm.models.Multiclass(3), y), (mm.models.Binary(), np.where(y > 0, 1, -1))):
        settings = {"solver": "block-dual", "loss": loss, "tol": 1e-4}
        first, second = solutions_at([0.1, 0.1 * ratio], model, X, labels, **settings)
        cold = mm.train(model, X, labels, 0.1 * ratio, **settings)
        assert second.certificate.converged
        assert second.certificate.dual <= cold.certificate.primal
        assert cold.certificate.dual <= second.certificate.primal
        # The first record is that of the α of the first C, taken times what is best.
        start, best = second.history[0], cold.certificate.dual
        assert start["dual"] > 0.8 * best
        visits, cold_visits = (sum(record["visits"] for record in run.history) for run in (second, cold))
        assert visits < cold_visits
        if ratio > 1:
            assert start["dual"] >= first.certificate.dual - 1e-9


@pytest.mark.parametrize("first", [1e-4, 1e-2])
def test_a_large_step_of_C_under_the_squared_hinge_is_made_in_small_ones(first):
    """Few planes are known that much above the first C: w would overshoot them, and take 500 passes to come back."""
    rng = np.random.default_rng(1)
    X = [(rng.random((int(rng.integers(1, 25)), 40)) < 0.15) * 1.0 for _ in range(75)]
    truth = rng.normal(size=(40, 5))
    Y = [np.argmax(x @ truth + 5.0 * rng.normal(size=(len(x), 5)), axis=1) for x in X]
    settings = {"solver": "block-dual", "loss": "squared_hinge", "tol": 1e-2}
    last = mm.path(mm.models.Chain(5), X, Y, [first, 1.0], **settings, max_iter=100).solutions[1].certificate
    single = mm.train(mm.models.Chain(5), X, Y, 1.0, **settings).certificate
    assert last.relative_gap <= 1e-2
    assert last.oracle_calls < single.oracle_calls
    assert last.dual <= single.primal * (1.0 + 1e-9)
    assert single.dual <= last.primal * (1.0 + 1e-9)


def test_steps_of_C_under_the_squared_hinge_are_limited_whatever_the_ratio():
    X, Y = tagging_problem()
    settings = {"loss": "squared_hinge", "solver": "block-dual", "max_time": 0.5}
    with pytest.warns(ConvergenceWarning, match="max_time"):
        path = mm.path(mm.models.Chain(4), X, Y, [1e-100, 1e200], **settings)
    first, last = path.solutions
    assert first.certificate.relative_gap <= 1e-3
    assert 0.0 <= last.certificate.dual <= last.certificate.primal


def test_all_examples_are_asked_for_after_a_change_of_C(monkeypatch):
    """The last pass before it may have left out those that were satisfied."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(8, 3))
    X = [rng.normal(size=(3, 8)) for _ in range(200)]
    Y = [np.argmax(x @ truth, axis=1) for x in X]
    asked, visit = [], PlaneBlocks._visit
    monkeypatch.setattr(
        PlaneBlocks, "_visit", lambda self, *a, **k: (asked.append(len(self._asked)), visit(self, *a, **k))
    )
    options = {"solver": "block-dual", "max_iter": 5, "tol": 1e-6, "solver_options": {"skip_satisfied": True}}
    points = solutions_at([5.0, 50.0], mm.models.Chain(3), X, Y, **options)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        next(points)
    assert asked[-1] < len(X)
    asked.clear()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        next(points)
    assert asked[0] == len(X)


def test_later_points_leave_the_weights_of_earlier_ones_alone(monkeypatch):
    X, Y = tagging_problem()
    taken, take_over = [], DenseWeights.take_over
    monkeypatch.setattr(DenseWeights, "take_over", lambda self, other: (taken.append(other), take_over(self, other)))
    points = solutions_at([0.1, 0.2, 0.4, 0.8], mm.models.Chain(4), X, Y, solver="block-dual", tol=1e-3)
    seen = [(solution.w, solution.w.copy()) for solution in points]
    assert len(seen) == 4
    assert len(taken) > 1
    for weights, as_yielded in seen:
        np.testing.assert_array_equal(weights, as_yielded)


def test_a_model_in_python_has_a_path():
    X, y = small_model.data(20)
    points = mm.path(small_model.Classes(), X, y, [1.0, 0.1], solver="block-dual", tol=1e-6)
    for C, solution in zip(points.Cs, points, strict=True):
        single = mm.train(small_model.Classes(), X, y, C, tol=1e-6)
        assert solution.certificate.primal == pytest.approx(single.certificate.primal, rel=3e-6)


def test_the_order_of_the_grid_does_not_matter():
    X, Y = tagging_problem()
    Cs = np.array([0.01, 0.0001, 0.001])
    mixed = mm.path(mm.models.Chain(4), X, Y, Cs, solver="block-dual")
    ascending = mm.path(mm.models.Chain(4), X, Y, np.sort(Cs), solver="block-dual")
    np.testing.assert_array_equal(mixed.w[np.argsort(Cs)], ascending.w)
    assert [s.certificate for s in mixed[1:]] == [s.certificate for s in ascending[:2]]


def test_equal_values_of_C_are_solved_once_each():
    X, Y = tagging_problem()
    twice = mm.path(mm.models.Chain(4), X, Y, [0.01, 0.01], solver="block-dual")
    assert len(twice) == 2
    assert twice[1].certificate.oracle_calls <= twice[0].certificate.oracle_calls


def test_a_path_begins_and_ends_with_planes():
    X, Y = tagging_problem()
    settings = {"solver": "block-dual", "keep_planes": True}
    low = mm.path(mm.models.Chain(4), X, Y, [0.001, 0.0001], **settings)
    assert low[0].planes is not None
    assert low[1].planes is None
    high = mm.path(mm.models.Chain(4), X, Y, [0.002, 0.02], planes=low[0].planes, **settings)
    cold = mm.train(mm.models.Chain(4), X, Y, 0.002, solver="block-dual")
    assert high[0].certificate.oracle_calls < cold.certificate.oracle_calls
    with pytest.raises(ValueError, match="planes belong to another problem: X and Y differ"):
        mm.path(mm.models.Chain(4), X[1:], Y[1:], [0.1], planes=low[0].planes, solver="block-dual")


def test_an_interrupt_ends_the_path_with_what_was_reached():
    X, Y = tagging_problem()
    n_records = 0

    def interrupt_later(record):
        nonlocal n_records
        n_records += 1
        if record["iteration"] == 1 and n_records > 1:
            raise KeyboardInterrupt

    with pytest.warns() as caught:
        points = mm.path(mm.models.Chain(4), X, Y, [0.1, 0.001, 0.01], solver="block-dual", callback=interrupt_later)
    texts = " ".join(str(warning.message) for warning in caught)
    assert "training was interrupted" in texts
    assert "interrupted at point 2 of 3" in texts
    assert points.Cs.tolist() == [0.001, 0.01]
    assert points[0].certificate.converged
    assert not points[1].certificate.converged


@pytest.mark.parametrize(
    ("Cs", "error", "text"),
    [
        ([], ValueError, "Cs is empty"),
        (1.0, TypeError, "must be a list of values of C, found 1.0"),
        ("12", TypeError, "must be a list of values of C"),
        ([1.0, 0.0], ValueError, r"Cs\[1\] must be a positive number, found 0.0"),
        ([np.nan], ValueError, r"Cs\[0\] must be a positive number"),
        ([[1.0], [2.0]], ValueError, r"Cs\[0\] must be a positive number"),
        (["a"], ValueError, r"Cs\[0\] must be a positive number, found 'a'"),
        ([None], ValueError, r"Cs\[0\] must be a positive number, found None"),
        ([True], ValueError, r"Cs\[0\] must be a positive number, found True"),
    ],
)
def test_what_is_no_grid_is_refused(Cs, error, text):
    with pytest.raises(error, match=text):
        mm.path(mm.models.Binary(), np.eye(2), [-1, 1], Cs)


def test_a_solver_without_planes_is_refused_with_those_that_have_them(monkeypatch):
    class Forgetful(SOLVERS["one-slack"]):
        name = "forgetful"
        planes = Solver.planes

    monkeypatch.setitem(SOLVERS, "forgetful", Forgetful)
    with pytest.raises(ValueError, match=r"'forgetful' keeps no planes.*for a path use .*'block-dual'"):
        mm.path(mm.models.Binary(), np.eye(2), [-1, 1], [1.0, 2.0], solver="forgetful")
    assert len(mm.path(mm.models.Binary(), np.eye(2), [-1, 1], [1.0], solver="forgetful")) == 1


def test_the_perceptron_is_refused_for_its_planes_before_C():
    """No C of a grid could please it: that there is no path is what helps."""
    with pytest.raises(ValueError, match=r"'perceptron' keeps no planes.*for a path use .*'block-dual'"):
        mm.path(mm.models.Binary(), np.eye(2), [-1, 1], [1.0, 2.0], solver="perceptron")
    with pytest.raises(ValueError, match="'perceptron' keeps no planes"):
        mm.PathCV(mm.BinarySVM(solver="perceptron"), cv=2).fit(np.eye(4), [0, 1, 0, 1])


# -------------------------------------------------------------------------------------- other budgets in the core


@pytest.mark.parametrize("nonnegative", [NOTHING, np.array([0, 2])], ids=["free", "nonnegative"])
@pytest.mark.parametrize("factor", [0.3, 1.0, 1.2, 4.0])
def test_rescaled_sets_hold_the_best_multiple_of_their_dual_point(factor, nonnegative):
    sets, s, _ = crawling_sets(np.random.default_rng(1), False, nonnegative)
    w, everyone, s = np.zeros(N_WEIGHTS), np.arange(N_EXAMPLES), 1e-5 * s
    sets.rescale(s, w)
    for _ in range(5):
        sets.sweep(everyone, exact(1e-9), w)
    norm2, linear = float(w @ w), sets.linear_part()
    worth = sets.rescale(factor * s, w)
    # With budgets so small some example spends all of its own: no multiple above the factor is allowed.
    multiple = min(linear / norm2, factor)
    assert dual(sets, w) == pytest.approx(multiple * linear - 0.5 * multiple**2 * norm2, rel=1e-9)
    assert worth == pytest.approx(dual(sets, w), rel=1e-12)
    fresh = np.empty(N_WEIGHTS)
    sets.weights(fresh)
    np.testing.assert_allclose(w, fresh, rtol=1e-12)
    # What is moved afterwards is consistent: α and w stay together.
    sets.sweep(everyone, exact(1e-9), w)
    sets.weights(fresh)
    np.testing.assert_allclose(w, fresh, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("C", [0.1, 0.5, 30.0])
def test_the_best_multiple_of_one_plane_is_the_optimum_of_the_squared_hinge(C):
    loss, psi = 2.0, np.array([1.0, -3.0])
    sets, w = _core.WorkingSets(_core.VectorSpace(1, 2, "margin"), np.array([0.5]), True, NOTHING), np.zeros(2)
    sets.insert(plane(0, loss, psi), w, -np.inf)
    sets.sweep(np.zeros(1, np.int64), exact(1e-12), w)
    sets.rescale(np.array([C]), w)
    np.testing.assert_allclose(w, loss / (psi @ psi + 1.0 / (2.0 * C)) * psi, rtol=1e-9)


def test_rescaling_refuses_budgets_of_other_examples():
    sets, s, _ = crawling_sets(np.random.default_rng(1), False)
    with pytest.raises(ValueError, match="budgets"):
        sets.rescale(s[:-1], np.zeros(N_WEIGHTS))
    with pytest.raises(ValueError, match="must be 0 where they were"):
        sets.rescale(np.where(np.arange(N_EXAMPLES) == 3, 0.0, s), np.zeros(N_WEIGHTS))
    with pytest.raises(ValueError, match="budgets"):
        sets.rescale(-s, np.zeros(N_WEIGHTS))


def test_a_path_is_shown_in_a_line():
    path = mm.path(mm.models.Multiclass(2), np.eye(4), [0, 1, 0, 1], [0.1, 1.0])
    assert repr(path) == "Path of 2 solutions, C from 0.1 to 1, 2 converged"


def watched_passes(monkeypatch):
    """Return a list to which every pass of block-dual will add whether it gave bounds."""
    gave_bounds = []
    for name, gives in (("bounds", True), ("_pass_without_bounds", False)):
        method = getattr(PlaneBlocks, name)

        def watched(self, *args, method=method, gives=gives, **options):
            gave_bounds.append(gives)
            return method(self, *args, **options)

        monkeypatch.setattr(PlaneBlocks, name, watched)
    return gave_bounds


def second_point(monkeypatch, tol=1e-3, prepare=lambda: None, **settings):
    """Return the solution for the second C of a path, and which of its passes gave bounds."""
    X, Y = tagging_problem()
    gave_bounds = watched_passes(monkeypatch)
    points = solutions_at([0.01, 0.05], mm.models.Chain(4), X, Y, solver="block-dual", tol=tol, **settings)
    next(points)
    gave_bounds.clear()
    prepare()
    return next(points), gave_bounds


def test_after_a_change_of_C_bounds_wait_until_they_may_be_close(monkeypatch):
    solution, gave_bounds = second_point(monkeypatch)
    n_blind = gave_bounds.index(True)
    assert n_blind > 1
    assert len(solution.history) == sum(gave_bounds)
    assert solution.certificate.oracle_calls == len(gave_bounds) * len(tagging_problem()[0])
    # What was expected of the first bounds was not far off.
    assert solution.history[0]["relative_gap"] < 1e-2
    assert solution.certificate.relative_gap <= 1e-3


def test_passes_without_bounds_end_where_the_gap_hardly_falls(monkeypatch):
    monkeypatch.setattr(_plane_blocks, "_SLOW_FALL", 0.0)
    solution, gave_bounds = second_point(monkeypatch)
    assert solution.certificate.relative_gap <= 1e-3
    # The first has nothing to compare itself with.
    assert gave_bounds.index(True) == 2


def test_a_deadline_ends_passes_without_bounds(monkeypatch):
    def end():
        monkeypatch.setattr(Task, "is_over", property(lambda task: True))

    with pytest.warns(ConvergenceWarning, match="max_time"):
        solution, gave_bounds = second_point(monkeypatch, prepare=end, max_time=60.0)
    assert gave_bounds == [False, True]
    assert 0.0 < solution.certificate.dual < solution.certificate.primal


def test_passes_without_bounds_need_no_sweeps(monkeypatch):
    monkeypatch.setattr(_forecast, "_AFTER_CHANGE", (np.inf, np.inf))
    solution, gave_bounds = second_point(monkeypatch, tol=0.5, solver_options={"sweeps": 0})
    assert solution.certificate.relative_gap <= 0.5
    assert gave_bounds == [False, True]


def test_bounds_follow_the_sweeps_at_a_change_of_C_that_came_close(monkeypatch):
    solution, gave_bounds = second_point(monkeypatch, tol=0.5)
    assert solution.certificate.relative_gap <= 0.5
    assert gave_bounds == [True]


def test_training_goes_on_where_sweeps_at_a_change_of_C_promised_too_much(monkeypatch):
    monkeypatch.setattr(_forecast, "_AFTER_CHANGE", (1e-9, 1e-9))
    solution, gave_bounds = second_point(monkeypatch)
    assert solution.certificate.relative_gap <= 1e-3
    assert gave_bounds[0]
    assert len(gave_bounds) > 1


def test_passes_without_bounds_are_limited(monkeypatch):
    monkeypatch.setattr(_plane_blocks, "_MOST_BLIND", 3)
    monkeypatch.setattr(_plane_blocks, "_SLOW_FALL", np.inf)
    solution, gave_bounds = second_point(monkeypatch, tol=1e-8)
    assert solution.certificate.relative_gap <= 1e-8
    assert gave_bounds.index(True) == 3
    assert all(gave_bounds[3:])


@pytest.mark.parametrize(("options", "more"), [({}, 2), ({"sweeps": 3}, 0)])
def test_a_little_above_tol_sweeps_follow_instead_of_a_pass(monkeypatch, options, more):
    settings = {"tol": 1e-5, "solver_options": options}
    _, before = second_point(monkeypatch, **settings)
    monkeypatch.setattr(_plane_blocks, "_MORE_LEAVES", 1e-3)
    n_sweeps = []
    sweep_more, sweep_once = PlaneBlocks._sweep_more, PlaneBlocks._sweep_once

    def watched(self, mean):
        monkeypatch.setattr(PlaneBlocks, "_sweep_once", lambda *a, **how: n_sweeps.append(1) or sweep_once(*a, **how))
        sweep_more(self, mean)
        monkeypatch.setattr(PlaneBlocks, "_sweep_once", sweep_once)

    monkeypatch.setattr(PlaneBlocks, "_sweep_more", watched)
    solution, now = second_point(monkeypatch, **settings)
    assert solution.certificate.relative_gap <= 1e-5
    assert len(n_sweeps) == more
    assert (now.index(True) < before.index(True)) == bool(more)


@pytest.mark.parametrize("learnt", [1.0, 50.0])
def test_bounds_of_one_point_tell_when_those_of_the_next_may_be_close(monkeypatch, learnt):
    X, Y = tagging_problem()
    gave_bounds = watched_passes(monkeypatch)
    monkeypatch.setattr(_plane_blocks, "_SLOW_FALL", np.inf)
    points = solutions_at([0.01, 0.02, 0.05], mm.models.Chain(4), X, Y, solver="block-dual", tol=1e-3)
    n_blind = []
    for _ in range(3):
        gave_bounds.clear()
        assert next(points).certificate.relative_gap <= 1e-3
        n_blind.append(gave_bounds.index(True))
        # The first point has first passes, the second goes by the most there may be, the third by what the second learnt.
        monkeypatch.setattr(_forecast.Hindsight, "learn", lambda self, gap: setattr(self, "ratio", learnt))
    assert n_blind[:2] == [2, 2]
    assert n_blind[2] <= 3 if learnt == 1.0 else n_blind[2] >= 5


def test_passes_without_bounds_search_few_examples_at_a_time_where_searches_are_quick(monkeypatch):
    X, Y = (8 * part for part in tagging_problem())
    n_many = min(_plane_blocks._FIRST_BATCH, len(X) // _plane_blocks._FIRST_BATCH)
    assert n_many > 3 * _plane_blocks._FEW_AT_A_TIME
    grid, visits = [0.01, 0.05, 0.2], []
    visit = PlaneBlocks._visit

    def watched(self, oracle, batch_size, n_jobs, *, precise, searches=True):
        if not searches:
            visits.append(batch_size)
        visit(self, oracle, batch_size, n_jobs, precise=precise, searches=searches)

    monkeypatch.setattr(PlaneBlocks, "_visit", watched)
    few = mm.path(mm.models.Chain(4), X, Y, grid, solver="block-dual", tol=1e-5)
    assert set(visits) == {_plane_blocks._FEW_AT_A_TIME}
    monkeypatch.setattr(_plane_blocks, "_QUICK_SEARCH", 0.0)
    visits.clear()
    many = mm.path(mm.models.Chain(4), X, Y, grid, solver="block-dual", tol=1e-5)
    assert set(visits) == {n_many}
    for ours, other in zip(few, many, strict=True):
        assert ours.certificate.converged
        assert ours.certificate.dual <= other.certificate.primal
        assert other.certificate.dual <= ours.certificate.primal
