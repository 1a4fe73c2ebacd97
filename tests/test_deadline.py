"""max_time within an iteration: long work is broken off, and what was known before it is returned."""

import time

import numpy as np
import pytest
import small_model
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.kernel_scores import KernelScores
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers import _plane_blocks, base, driver
from maxmargin.solvers._blocks import Blocks
from maxmargin.solvers.block_dual import BlockDual

pytestmark = pytest.mark.core


@pytest.fixture
def no_overtime(monkeypatch):
    monkeypatch.setattr(driver, "_OVERTIME", 0.0)
    monkeypatch.setattr(driver, "_LEAST_OVERTIME", 0.0)


def long_chains():
    """Sequences that take more than some tenths of a second to search."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(2_000, 4)) for _ in range(600)]
    return mm.models.Chain(24), X, [rng.integers(24, size=len(x)) for x in X]


def weights_of(w):
    weights = DenseWeights(len(w))
    weights.become(w)
    return weights


CHAINS = long_chains()
SOLVERS = ["block-dual", "one-slack", "n-slack", "line-search", "sdm", "bcfw"]


class SlowSearches(small_model.Classes):
    """Each search takes a while."""

    n_searches = 0

    def loss_augmented_argmax(self, x, y, w):
        type(self).n_searches += 1
        time.sleep(0.05)
        return super().loss_augmented_argmax(x, y, w)


@pytest.mark.parametrize("solver", ["auto", *SOLVERS])
def test_a_pass_of_a_model_in_python_ends_between_two_searches(solver, no_overtime):
    SlowSearches.n_searches = 0
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.2 s was reached"):
        mm.train(SlowSearches(), *small_model.data(100), solver=solver, max_time=0.2)
    assert 0 < SlowSearches.n_searches < 50


@pytest.fixture
def broken_off(monkeypatch):
    """What runs say of themselves: whether the last one was broken off."""
    ended = []
    work = driver._Run.work

    def watched(self, iterates):
        try:
            ending = work(self, iterates)
        except _core.OutOfTime:
            ended.append(True)
            raise
        ended.append(False)
        return ending

    monkeypatch.setattr(driver._Run, "work", watched)
    return ended


def test_a_probe_is_broken_off_and_counts_as_time(no_overtime):
    SlowSearches.n_searches = 0
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.01 s was reached"):
        solution = mm.train(SlowSearches(), *small_model.data(100), max_time=0.01)
    # One search of the probe, and one that finds that the time is over.
    assert SlowSearches.n_searches <= 2
    assert solution.solver == "block-dual"


@pytest.mark.parametrize("solver", SOLVERS)
def test_long_iterations_are_broken_off(solver, no_overtime, broken_off):
    model, X, Y = CHAINS
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.3 s was reached"):
        solution = mm.train(model, X, Y, 1.0, solver=solver, tol=0.0, max_time=0.3)
    assert broken_off == [True]
    certificate = solution.certificate
    assert not certificate.converged
    assert np.all(np.isfinite(solution.w))
    if certificate.primal is not None and certificate.dual is not None:
        assert certificate.dual <= certificate.primal
        exact = model.bind(X, Y).primal(weights_of(solution.w), 1.0, squared=False)
        assert certificate.primal == pytest.approx(exact, rel=1e-5)


@pytest.mark.parametrize("solver", ["auto", "block-dual", "sdm"])
@pytest.mark.parametrize("ending", [KeyboardInterrupt, _core.OutOfTime])
def test_what_is_broken_off_before_its_first_bounds_keeps_its_point(solver, ending, monkeypatch):
    """The first planes may be swept for seconds: what they gave is no reason to end with w = 0 where it is better."""
    sweep, n_sweeps = Blocks.sweep, 0

    def broken(self, *args, **options):
        nonlocal n_sweeps
        n_sweeps += 1
        if n_sweeps == 3:
            raise ending
        return sweep(self, *args, **options)

    def unknown(self, *args, **options):
        raise ending

    rng = np.random.default_rng(0)
    X = [rng.normal(size=(8, 5)) for _ in range(250)]
    Y = [np.where(rng.random(8) < 0.8, x[:, :3].argmax(axis=1), rng.integers(3, size=8)) for x in X]
    model = mm.models.Chain(3)
    monkeypatch.setattr(Blocks, "sweep", broken)
    monkeypatch.setattr(Blocks, "search_all", unknown)  # sdm's primal, after its first loop over the oracle
    with pytest.warns(UserWarning, match="interrupted|was reached"):
        solution = mm.train(model, X, Y, 1.0, solver=solver, max_time=1000.0)
    certificate = solution.certificate
    assert np.any(solution.w)
    exact = model.bind(X, Y).primal(weights_of(solution.w), 1.0, squared=False)
    assert certificate.primal == pytest.approx(exact, rel=1e-9)
    assert 0.0 < certificate.dual < certificate.primal < 250 * 8
    assert not certificate.converged
    assert solution.history[-1]["dual"] == certificate.dual
    assert ("reason" in solution.history[0]) == (solver == "auto")


@pytest.mark.parametrize("ending", [KeyboardInterrupt, _core.OutOfTime])
@pytest.mark.parametrize("solver", ["block-dual", "sdm"])
def test_what_is_broken_off_before_its_first_bounds_is_no_worse_than_no_weights(solver, ending, monkeypatch):
    """With noisy labels and a large C the first planes lead far astray."""

    def broken(self, *args, **options):
        raise ending

    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 10, 50)), rng.integers(8, size=(100, 10))
    monkeypatch.setattr(Blocks, "sweep", broken)
    monkeypatch.setattr(Blocks, "search_all", broken)
    with pytest.warns(UserWarning, match="interrupted|was reached"):
        solution = mm.train(mm.models.Chain(8), X, Y, 100.0, solver=solver, max_time=1000.0)
    certificate = solution.certificate
    assert certificate.primal == pytest.approx(100.0 * 100 * 10)
    assert certificate.exact
    assert 0.0 < certificate.dual < certificate.primal
    assert solution.history[-1]["primal"] == certificate.primal
    assert not solution.w.any()


class EndingSearches(small_model.Classes):
    """Ctrl-C strikes in one of the searches."""

    n_left = 0

    def outputs(self, x):
        type(self).n_left -= 1
        if self.n_left == 0:
            raise KeyboardInterrupt
        return super().outputs(x)


@pytest.mark.parametrize("n_searches", [40, 150])  # within the first pass, and in the next one
@pytest.mark.parametrize("solver", ["sdm", "bcfw", "sgd", "perceptron", "mira"])
def test_a_first_pass_over_a_model_in_python_is_not_lost(solver, n_searches):
    X, _ = small_model.data(100)
    y = (X[:, 0] > 0.0).astype(int) + (X[:, 0] > 1.0)
    EndingSearches.n_left, model = n_searches, EndingSearches()
    with pytest.warns(UserWarning, match="interrupted"):
        solution = mm.train(model, X, y, solver=solver, random_state=0)
    assert np.mean(np.array(model.predict(X, solution.w)) == y) > 0.6
    dual = solution.certificate.dual
    if solver in ("sdm", "bcfw"):
        assert 0.0 < dual <= mm.train(small_model.Classes(), X, y, tol=1e-6).certificate.primal
    else:
        assert dual is None


def test_a_path_starts_afresh_after_a_run_that_was_broken_off(monkeypatch):
    resumed = []
    monkeypatch.setattr(BlockDual, "resume", lambda self, task: resumed.append(task.C) or self.iterate(task))
    model, X, Y = CHAINS
    n_evaluated = 0
    evaluate = _plane_blocks.PlaneBlocks.evaluate

    def interrupted(self, *, precise):
        nonlocal n_evaluated
        n_evaluated += 1
        if n_evaluated == 2:
            raise _core.OutOfTime
        return evaluate(self, precise=precise)

    monkeypatch.setattr(_plane_blocks.PlaneBlocks, "evaluate", interrupted)
    Cs = [1e-5, 2e-5, 4e-5]
    with pytest.warns(ConvergenceWarning, match=r"max_time=100 s was reached"):
        points = mm.path(model, X[:4], Y[:4], Cs, tol=1e-6, max_time=100.0, solver="block-dual")
    assert [point.certificate.converged for point in points] == [False, True, True]
    # The second run does not go on from what the first one left, the third does from the second.
    assert resumed == Cs[2:]


@pytest.mark.filterwarnings("ignore:max_time")
def test_bounds_hold_along_a_path_of_runs_that_are_broken_off(no_overtime):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12_000, 150))
    y = np.argmax(X @ rng.normal(size=(150, 12)) + 5.0 * rng.normal(size=(12_000, 12)), axis=1)
    model, Cs = mm.models.Multiclass(12), [1e-3, 1e-2]
    whole = [mm.train(model, X, y, C, tol=1e-2, solver="block-dual").certificate for C in Cs]
    known = []
    for limit in (0.02, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2):
        points = mm.path(model, X, y, Cs, tol=1e-2, solver="block-dual", max_time=limit)
        for point, best in zip(points, whole, strict=True):
            certificate = point.certificate
            assert certificate.dual is None or certificate.dual <= best.primal
            assert certificate.primal is None or certificate.primal >= best.dual
            known.append(not certificate.converged and certificate.gap is not None)
        if any(known):
            return
    raise AssertionError("no run was broken off after its first bounds")


def test_a_rule_that_is_met_too_late_is_not_met(monkeypatch, no_overtime):
    def late(self, task):
        raise _core.OutOfTime

    monkeypatch.setattr(base.Solver, "final_dual", late)
    model, X, Y = CHAINS
    with pytest.warns(ConvergenceWarning, match=r"max_time=100 s was reached"):
        found = mm.train(model, X[:2], Y[:2], 1e-4, tol=0.5, max_time=100.0).certificate
    assert not found.converged
    assert found.dual <= found.primal


def test_nothing_known_is_not_exact(no_overtime):
    model, X, Y = CHAINS
    with pytest.warns(ConvergenceWarning, match=r"max_time=1e-09 s was reached; no bounds were found yet"):
        found = mm.train(model, X, Y, 1.0, max_time=1e-9).certificate
    assert found.primal is None
    assert not found.exact


def test_the_first_cut_of_a_kernel_is_broken_off(no_overtime):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 40)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)
    svm = mm.BinarySVM(1.0, kernel="rbf", gamma=0.02, fit_intercept=False, solver="one-slack", max_time=0.6)
    start = time.process_time()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.6 s was reached; the relative duality gap is 1,"):
        svm.fit(X, y)
    # All pairs of rows would take five seconds at least.
    assert time.process_time() - start < 3.5
    assert (svm.certificate_.primal, svm.certificate_.dual) == (40_000.0, 0.0)
    assert len(svm.predict(X[:5])) == 5


def test_columns_of_a_kernel_are_broken_off(no_overtime, broken_off):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30_000, 40)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)
    svm = mm.BinarySVM(1.0, kernel="rbf", gamma=0.02, fit_intercept=False, solver="block-dual", max_time=0.6)
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.6 s was reached"):
        svm.fit(X, y)
    assert broken_off == [True]
    # The scores are those of the α that there were: the point counts, and both bounds hold.
    expansion = svm.expansion_
    norm2 = float(expansion.coef[0] @ expansion.scores(expansion.basis)[:, 0])
    hinge = np.maximum(0.0, 1.0 - y * svm.decision_function(X)).sum()
    assert svm.certificate_.primal == pytest.approx(0.5 * norm2 + hinge, rel=1e-5)
    assert svm.certificate_.dual == pytest.approx(np.abs(expansion.coef).sum() - 0.5 * norm2, rel=1e-5)
    assert 0.0 < svm.certificate_.dual < svm.certificate_.primal < 30_000.0


def test_what_is_made_of_the_data_counts_as_time(no_overtime):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5_000, 10))
    low_rank = {"kernel_approximation": "low-rank", "n_components": 300, "basis": "pivoted"}
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.01 s was reached"):
        svm = mm.BinarySVM(kernel="rbf", gamma=0.3, max_time=0.01, tol=1e-6, **low_rank).fit(X, X[:, 0] * X[:, 1] > 0)
    assert len(svm.history_) <= 1


def long_work():
    model, X, Y = CHAINS
    model.bind(X, Y).slacks(weights_of(np.ones(4 * 24 + 24 * 24)))


def test_a_callback_has_no_deadline(no_overtime):
    model, X, Y = CHAINS
    n_calls = 0

    def callback(record):
        nonlocal n_calls
        while time.perf_counter() - start < 0.5:
            long_work()
        n_calls += 1

    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.2 s was reached"):
        mm.train(model, X[:3], Y[:3], 1.0, solver="one-slack", tol=0.0, max_time=0.2, callback=callback)
    assert n_calls > 0


def test_deadlines_nest():
    with _core.Deadline(0.0):
        with _core.Deadline(None):
            long_work()
        with _core.Deadline(1e300):
            long_work()
        with pytest.raises(_core.OutOfTime):
            long_work()
    long_work()
    deadline = _core.Deadline(1.0)
    with deadline, pytest.raises(ValueError, match="entered already"), deadline:
        pass
    with pytest.raises(ValueError, match="seconds is NaN"):
        _core.Deadline(float("nan"))


@pytest.mark.parametrize("ending", [KeyboardInterrupt, _core.OutOfTime])
def test_scores_that_do_not_belong_to_the_dual_variables_are_not_trusted(ending, monkeypatch):
    """A warm start sums the scores of its α first; what breaks that off leaves α with scores of nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0.0, 1, -1)
    model, options = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5)), {"solver": "block-dual"}
    first = mm.train(model, X, y, 1.0, keep_planes=True, **options)

    def broken(self, coef, scores):
        raise ending

    monkeypatch.setattr(KernelScores, "add_scores", broken)
    with pytest.warns(UserWarning, match="interrupted|was reached"):
        second = mm.train(model, X, y, 1.0, planes=first.planes, max_time=1000.0, **options)
    assert second.certificate.dual <= first.certificate.primal
    assert (second.certificate.primal, second.certificate.dual) == (400.0, 0.0)


@pytest.mark.parametrize("how", ["time", "interrupt"])
def test_nothing_worse_than_no_weights_is_returned(how):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(20_000, 50)), rng.integers(5, size=20_000)
    n_seen = []

    def callback(record):
        n_seen.append(record["primal"])
        if how == "interrupt":
            raise KeyboardInterrupt
        time.sleep(0.5)

    with pytest.warns(ConvergenceWarning):
        solution = mm.train(mm.models.Multiclass(5), X, y, 10.0, solver="block-dual", max_time=0.4, callback=callback)
    assert n_seen[0] > 1.01 * 200_000
    assert solution.certificate.primal == pytest.approx(200_000)
    assert not solution.w.any()
    assert solution.certificate.exact


def test_a_run_that_ends_with_nothing_says_so():
    X, y = np.random.default_rng(0).normal(size=(5000, 20)), np.arange(5000) % 2
    said = "the relative duality gap is 1, tol is 0.001, w = 0 is the best point that was evaluated"
    with pytest.warns(ConvergenceWarning, match=said):
        svm = mm.BinarySVM(C=1e3, max_time=1e-4, solver="block-dual").fit(X, y)
    assert not svm.coef_.any()
