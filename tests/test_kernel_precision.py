"""Bounds with kernels in float32, across runs and after interrupts: they must hold, or be computed again in double."""

import functools
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import maxmargin as mm
from maxmargin.problems.kernel import KernelProblem
from maxmargin.problems.kernel_cuts import KernelCuts
from maxmargin.solvers import driver

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def data(n, d=4, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=n) > 0, 1, -1)


def primal_in_double(solution, X, y, C):
    scores = solution.expansion.scores(X)[:, 0]
    coef = solution.expansion
    # The intercept of the expansion is the kernel's constant times the sum of coefficients.
    norm2 = coef.coef[0] @ coef.scores(coef.basis)[:, 0]
    return 0.5 * norm2 + C * np.maximum(0.0, 1.0 - y * scores).sum()


def bound(model, X, y):
    """Train, and keep the problem that was trained on."""
    problems = []
    bind = model.bind
    model.bind = lambda *args, **options: problems.append(bind(*args, **options)) or problems[-1]
    return problems


FAR = sp.random_array(
    (2500, 40),
    density=0.03,
    format="csr",
    rng=np.random.default_rng(0),
    data_sampler=lambda size: 100 + 300 * np.random.default_rng(1).random(size),
)
CASES = {
    "plain": (mm.Kernel("rbf", 0.5), data(2500)[0], 1.0, True),
    "a large C": (mm.Kernel("rbf", 0.01), data(2500)[0], 1e3, False),
    "a polynomial": (mm.Kernel("poly", 1.0, 3, 1.0), data(2100)[0] + 5.0, 1e-6, False),
    "far from 0": (mm.Kernel("linear", 1.0), data(2100)[0] + 1000.0, 1e-6, False),
    "sparse and far apart": (mm.Kernel("rbf", 1.0), FAR, 1.0, False),
}


@pytest.mark.parametrize("solver", ["one-slack", "block-dual"])
@pytest.mark.parametrize("name", CASES)
def test_bounds_hold_in_double_precision(name, solver):
    kernel, X, C, is_single = CASES[name]
    y = data(X.shape[0])[1]
    model = mm.models.Binary(kernel=kernel)
    problems = bound(model, X, y)
    with warnings.catch_warnings():
        # Bounds hold wherever training ends.
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = mm.train(model, X, y, C=C, tol=1e-2, solver=solver, max_time=5)
    assert problems[0].is_single == is_single
    certificate = solution.certificate
    assert primal_in_double(solution, X, y, C) == pytest.approx(certificate.primal, rel=2e-4)
    # No bound of this run contradicts what another solver has found.
    assert certificate.dual <= best_primal(name) * (1 + 2e-4)


@functools.cache
def best_primal(name):
    """The lowest primal, in double precision, that either solver comes to."""
    kernel, X, C, _ = CASES[name]
    y = data(X.shape[0])[1]
    model = mm.models.Binary(kernel=kernel)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = [
            mm.train(model, X, y, C=C, tol=1e-3, solver=solver, max_time=5) for solver in ("one-slack", "block-dual")
        ]
    return min(primal_in_double(solution, X, y, C) for solution in found)


@pytest.fixture
def runs(monkeypatch):
    """The deadlines of the runs that are made."""
    deadlines = []

    class Watched(driver._Run):
        def work(self, iterates):
            deadlines.append(self.task.deadline)
            return super().work(iterates)

    monkeypatch.setattr(driver, "_Run", Watched)
    return deadlines


@pytest.fixture
def distorted(monkeypatch):
    """Runs in float32 all end with bounds that it moved too far."""
    monkeypatch.setattr(driver.Best, "is_distorted", lambda self, solver, task: task.problem.is_single)


@pytest.mark.usefixtures("distorted")
def test_a_run_that_is_made_again_has_the_time_that_is_left(runs):
    X, y = data(2500)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    solution = mm.train(model, X, y, tol=1e-2, solver="one-slack", max_time=100.0)
    assert len(runs) == 2
    assert runs[0] == runs[1]
    assert solution.certificate.exact


@pytest.mark.parametrize(("strategy", "n_runs"), [("constant", 1), ("linear", 2)])
def test_rounding_counts_less_than_what_a_sample_leaves_open(strategy, n_runs, runs, monkeypatch):
    # 5 in all, with 2.5 asked for and a primal of about 1,000, estimated from a fifth of the rows.
    monkeypatch.setattr(KernelProblem, "score_error", lambda self, weights: 0.002 if self.is_single else 0.0)
    X, y = data(2500)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    options = {"strategy": strategy, "epsilon": 1e-3, "sample_size": 200, "primal_sample": 500, "dual_bound": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = mm.train(model, X, y, solver="sampled-cuts", solver_options=options, max_iter=30)
    assert len(runs) == n_runs
    if strategy == "constant":
        low, high = solution.certificate.primal_interval
        assert high - low > 2 * 5.0 / 0.3


@pytest.mark.usefixtures("distorted")
def test_without_time_for_another_run_the_certificate_says_what_is_not_exact(runs):
    X, y = data(2500)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    with pytest.warns(ConvergenceWarning, match="max_time=0.001 s"):
        solution = mm.train(model, X, y, tol=1e-3, solver="one-slack", max_time=0.001)
    assert len(runs) == 1
    assert not solution.certificate.exact


def test_scores_that_rounding_distorts_are_computed_again_in_double(monkeypatch):
    X, y = data(2500)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.01))
    problems = bound(model, X, y)
    # As if the guess before training had been wrong.
    monkeypatch.setattr(KernelProblem, "_can_be_single", lambda self, C, tol: not self._must_be_double)
    solution = mm.train(model, X, y, C=1e3, tol=1e-2, solver="one-slack")
    assert not problems[0].is_single
    assert primal_in_double(solution, X, y, 1e3) == pytest.approx(solution.certificate.primal, rel=1e-6)


def test_the_paper_s_epsilon_asks_for_double_too():
    X, y = data(2100)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    problems = bound(model, X, y)
    mm.train(model, X, y, solver="one-slack", solver_options={"epsilon": 1e-2}, tol=1e-2)
    with pytest.warns(Warning, match="max_iter"):
        mm.train(model, X, y, solver="one-slack", solver_options={"epsilon": 1e-7}, max_iter=2, tol=1e-2)
    assert [problem.is_single for problem in problems] == [True, False]


def test_a_warm_start_in_double_leaves_tables_in_float32():
    X, y = data(2100)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    first = mm.train(model, X, y, tol=1e-2, solver="one-slack", keep_planes=True)
    cold = mm.train(model, X, y, tol=1e-6, solver="one-slack")
    warm = mm.train(model, X, y, tol=1e-6, solver="one-slack", planes=first.planes)
    assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-6)


def test_an_interrupt_between_a_cut_and_its_scores_leaves_nothing_to_go_on_from(monkeypatch):
    X, y = data(300)
    estimator = mm.BinarySVM(kernel="rbf", gamma=0.5, solver="one-slack", warm_start=True)
    add_scores, n_calls = KernelProblem.add_scores, []

    def interrupted(self, change, scores):
        n_calls.append(1)
        if len(n_calls) == 4:
            raise KeyboardInterrupt
        add_scores(self, change, scores)

    monkeypatch.setattr(KernelProblem, "add_scores", interrupted)
    with pytest.warns(Warning, match="interrupted"):
        estimator.fit(X, y)
    assert len(n_calls) == 4
    assert estimator.fit(X, y).certificate_.converged


def test_a_set_of_cuts_counts_those_without_tables():
    X, y = data(50)
    problem = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5)).bind(X, y)
    cuts = KernelCuts(problem)
    problem.separate_into(cuts, problem.zero_weights(), precise=True)
    cuts._cuts.keep(1)
    assert len(cuts) == 1


def test_low_rank_features_of_more_rows_are_another_problem():
    X, y = data(300)
    model = mm.models.Binary(kernel=mm.LowRank(mm.Kernel("rbf", 0.5), 30))
    first = mm.train(model, X[:150], y[:150], solver="one-slack", keep_planes=True)
    with pytest.raises(ValueError, match="another problem"):
        mm.train(model, X, y, solver="one-slack", planes=first.planes)


def similarity(A, B):
    return rbf_kernel(A, B, gamma=0.5)


def test_a_function_defined_anew_is_another_kernel(monkeypatch):
    X, y = data(60)
    first = mm.train(mm.models.Binary(kernel=mm.Kernel(similarity)), X, y, solver="one-slack", keep_planes=True)
    again = mm.train(mm.models.Binary(kernel=mm.Kernel(similarity)), X, y, solver="one-slack", planes=first.planes)
    assert len(again.history) < len(first.history)

    def narrower(A, B):
        return rbf_kernel(A, B, gamma=5.0)

    narrower.__name__ = narrower.__qualname__ = "similarity"
    monkeypatch.setitem(globals(), "similarity", narrower)
    with pytest.raises(ValueError, match="another problem"):
        mm.train(mm.models.Binary(kernel=mm.Kernel(narrower)), X, y, solver="one-slack", planes=first.planes)


def test_small_integers_do_not_overflow():
    X = sp.csr_array(np.random.default_rng(0).integers(-100, 100, (30, 6)).astype(np.int8))
    as_float = X.astype(np.float64)
    for kernel in (mm.Kernel("poly", "scale"), mm.Kernel("linear", "scale")):
        assert kernel.for_data(X).gamma == pytest.approx(1 / (6 * as_float.toarray().var()))
        assert np.allclose(kernel.diagonal(X), kernel.diagonal(as_float))


def test_small_integers_are_not_taken_for_near_each_other():
    rng = np.random.default_rng(0)
    X = sp.csr_array(rng.integers(-100, 100, (2100, 6)).astype(np.int8))
    problem = mm.models.Binary(kernel=mm.Kernel("rbf", 1.0)).bind(X, np.where(rng.random(2100) > 0.5, 1, -1))
    expected = float((X.toarray().astype(float) ** 2).sum(axis=1).max())
    assert problem._largest_exponent(np.arange(5)) == expected


def test_wide_sparse_rows_take_bounded_memory():
    rng = np.random.default_rng(0)
    n, d = 150, 2**20
    X = sp.csr_array((np.ones(20 * n), (np.repeat(np.arange(n), 20), rng.integers(d, size=20 * n))), shape=(n, d))
    kernel = mm.Kernel("rbf", 0.05)
    squares = X.multiply(X).sum(axis=1)
    expected = np.exp(-0.05 * (squares[:, None] + squares - 2 * (X @ X.T).toarray()))
    assert np.allclose(kernel(X, X), expected)
    assert mm.train(mm.models.Binary(kernel=kernel), X, np.where(rng.random(n) > 0.5, 1, -1)).certificate.converged


@pytest.mark.parametrize("coef0", [-1.0, 0.5])
@pytest.mark.parametrize("gamma", [0.1, 1.0, 5.0])
def test_indefinite_kernels_say_what_is_wrong(gamma, coef0):
    X, y = data(60)
    model = mm.models.Binary(kernel=mm.Kernel("sigmoid", gamma, coef0=coef0))
    assert np.linalg.eigvalsh(model.kernel(X, X)).min() < -0.5
    with pytest.raises(ValueError, match="positive semi-definite"):
        mm.train(model, X, y, solver="one-slack", C=10.0)


def test_predictions_name_what_does_not_fit():
    X, y = data(40)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    solution = mm.train(model, X, y)
    with pytest.raises(ValueError, match="X has 3 features, but the basis points have 4"):
        model.predict(X[:, :3], solution.expansion)


def test_a_function_may_answer_with_a_sparse_matrix():
    X, y = data(40)
    rows = sp.csr_array(X)
    sparse = mm.train(mm.models.Binary(kernel=mm.Kernel(lambda A, B: A @ B.T)), rows, y, tol=1e-6, solver="one-slack")
    plain = mm.train(mm.models.Binary(), X, y, tol=1e-6)
    assert sparse.certificate.primal == pytest.approx(plain.certificate.primal, rel=1e-5)


def test_a_generator_draws_the_basis():
    X, y = data(200)
    bases = [
        mm.BinarySVM(kernel="rbf", kernel_approximation="low-rank", n_components=5, random_state=state)
        .fit(X, y)
        .expansion_.basis
        for state in (np.random.RandomState(3), np.random.RandomState(4), np.random.default_rng(0), 7)
    ]
    assert len({basis.tobytes() for basis in bases}) == 4
