"""Training with kernels against an independent QP over all outputs, on features whose products are the kernel."""

import itertools
import time
import warnings

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from kernel_cases import KERNELS, Case
from native_models import native
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

import maxmargin as mm
from maxmargin.kernels.product import NativeProduct
from maxmargin.problems import kernel_scores
from maxmargin.problems.kernel_scores import KernelScores

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


@pytest.mark.parametrize("stabilization", [None, "line-search"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_exact_kernels_reach_the_reference(name, kernel, stabilization):
    for seed in range(2):
        case = Case(name, KERNELS[kernel], seed, with_weights=seed == 1)
        best = case.optimum()
        solution = case.train(solver="one-slack", solver_options={"stabilization": stabilization})
        certificate = solution.certificate
        assert certificate.converged
        assert certificate.exact
        assert certificate.primal == pytest.approx(best.objective, rel=1e-6)
        for record in solution.history:
            assert record["dual"] <= best.objective * (1 + 1e-9)
            assert record["primal"] >= best.lower_bound * (1 - 1e-9)
        assert case.independent_primal(solution.expansion) == pytest.approx(certificate.primal, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_block_dual_moves_rows_by_kernel_columns(name, kernel, loss):
    for seed in range(2):
        case = Case(name, KERNELS[kernel], seed, with_weights=seed == 1)
        best = reference.solve(reference.planes(case.model), case.C, case.sample_weight, loss)
        solution = case.train(solver="block-dual", loss=loss, max_iter=100_000)
        assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
        for record in solution.history:
            assert record["dual"] <= best.objective * (1 + 1e-9)
            assert record["primal"] >= best.lower_bound * (1 - 1e-9)
        if loss == "hinge":
            assert case.independent_primal(solution.expansion) == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("cache", [0.0, 0.3, 100.0])
def test_block_dual_with_columns_that_do_not_fit(cache):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = rng.integers(3, size=900)
    solutions = [
        mm.train(
            mm.models.Multiclass(3, kernel=mm.Kernel("rbf", 0.5, cache=size)),
            X,
            y,
            tol=1e-3,
            solver="block-dual",
            n_jobs=jobs,
        )
        for size, jobs in ((100.0, 1), (cache, 2))
    ]
    assert np.allclose(solutions[0].w, solutions[1].w, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "gamma", "C", "if_few"),
    [
        (mm.models.Binary, 0.5, 1.0, "block-dual"),  # columns seldom come back
        (mm.models.Multiclass, 5.0, 1.0, "block-dual"),
        (mm.models.Binary, 30.0, 1.0, "one-slack"),  # cuts leave out what is nearly 0
        (mm.models.Multiclass, 300.0, 1.0, "one-slack"),
        (mm.models.Binary, 30.0, 50.0, "block-dual"),  # but are slow here
    ],
)
def test_auto_looks_at_whether_columns_fit(model, gamma, C, if_few):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(2100, 3)), rng.integers(2, size=2100)
    for cache, expected in ((1000.0, "block-dual"), (1.0, if_few)):
        kernel = mm.Kernel("rbf", gamma, cache=cache, constant=1.0)
        one = model(kernel=kernel) if model is mm.models.Binary else model(2, kernel=kernel)
        solution = mm.train(one, X, 2 * y - 1 if model is mm.models.Binary else y, C, tol=0.05)
        assert solution.solver == expected
        assert "kernel_cache" in solution.history[0]["reason"]


def test_auto_takes_cuts_where_C_times_the_kernel_is_beyond_rounding():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=400) > 0, 1, -1)
    two, many = (
        kind(kernel=mm.Kernel("rbf", 0.5)) for kind in (mm.models.Binary, lambda **own: mm.models.Multiclass(2, **own))
    )
    for model, labels in ((two, y), (many, (y + 1) // 2)):
        for C in (1000.0, 1e6):
            solution = mm.train(model, X, labels, C)
            assert solution.solver == "block-dual"
            assert solution.certificate.converged
        assert mm.train(model, X, labels, 1e12, loss="squared_hinge", tol=0.1).solver == "block-dual"
        beyond = mm.train(model, X, labels, 1e10, tol=0.1)
        assert beyond.solver == "one-slack"
        assert "k(x, x) is 1e+10" in beyond.history[0]["reason"]


def test_few_rows_of_many_classes_are_moved_by_columns():
    """Cuts took a thousand times as many iterations."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 4)), rng.integers(0, 3, size=200)
    solution = mm.train(mm.models.Multiclass(3, kernel=mm.Kernel("rbf", 1.0)), X, y, 100.0)
    assert solution.solver == "block-dual"
    assert solution.certificate.converged
    assert len(solution.history) < 300


@pytest.mark.parametrize("constant", [1.0, 1e4])
def test_rows_that_have_most_in_common_are_moved_against_each_other(constant):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    kernel = mm.Kernel("rbf", 0.5, constant=constant)
    for model, labels in (
        (mm.models.Multiclass(2, kernel=kernel), (y + 1) // 2),
        (mm.models.Multiclass(4, kernel=kernel), np.digitize(X[:, 0] * X[:, 1], [-0.5, 0.0, 0.5])),
        (mm.models.Binary(kernel=kernel), y),
    ):
        solution = mm.train(model, X, labels)
        assert solution.solver == "block-dual"
        assert solution.certificate.converged
        assert sum(record["visits"] for record in solution.history) < 200 * 400


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_auto_takes_samples_where_exact_cuts_would_take_too_long(kind, monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 2)), rng.integers(2, size=300)
    if kind == "chain":
        model, X, y = mm.models.Chain(2, kernel=KERNELS["rbf"]), np.split(X, 60), np.split(y, 60)
    else:
        model, y = mm.models.Binary(kernel=KERNELS["rbf"]), 2 * y - 1
    exact = mm.train(model, X, y, tol=0.05, max_time=60.0)
    assert exact.solver != "sampled-cuts"
    # So slow that these rows would take minutes.
    monkeypatch.setattr(kernel_scores, "_NATIVE_SECONDS", 1e-3)
    solution = mm.train(model, X, y, max_time=60.0)
    assert solution.solver == "sampled-cuts"
    assert "max_time=60 s" in solution.history[0]["reason"]
    assert mm.train(model, X, y, tol=0.05).solver == exact.solver, "there is an hour without max_time"
    # What sampled cuts cannot do is left to the others, however long it takes.
    assert mm.train(model, X, y, tol=0.05, max_time=60.0, keep_planes=True).solver == exact.solver
    assert mm.train(model, X, y, tol=0.05, max_time=60.0, rescaling="slack").solver == exact.solver
    monkeypatch.setattr(kernel_scores, "_NATIVE_SECONDS", 1.0)
    assert "60 minutes" in mm.train(model, X, y).history[0]["reason"]


def test_auto_takes_samples_where_a_function_is_slow(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    n_values = 0

    def slow(A, B):
        nonlocal n_values
        n_values += len(A) * len(B)
        time.sleep(1e-5 * len(A) * len(B))
        return KERNELS["rbf"](A, B)

    # All values take 1.6 seconds, and each is asked for once; samples that tell so are asked for before.
    model = mm.models.Binary(kernel=mm.Kernel(slow))
    assert mm.train(model, X, y, tol=0.05, max_time=60.0).solver == "block-dual"
    assert n_values < 1.5 * len(X) ** 2
    prepared = []
    prepare = KernelScores.prepare
    monkeypatch.setattr(KernelScores, "prepare", lambda self, C, tol: prepared.append(tol) or prepare(self, C, tol))
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.5 s was reached"):
        assert mm.train(model, X, y, tol=0.05, max_time=0.5).solver == "sampled-cuts"
    # As closely as the ε of the solver that was chosen at last.
    assert prepared == [0.05, 0.001]


def test_auto_knows_that_stored_values_take_no_time():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    short = {"tol": 0.05, "max_time": 5 * 600**2 * 1e-9}
    kernel = KERNELS["rbf"]
    for given, rows, solver in ((kernel, X, "sampled-cuts"), (mm.Kernel("precomputed"), kernel(X, X), "block-dual")):
        with warnings.catch_warnings():
            # Whether so little time is enough for stored values hangs on the machine.
            warnings.simplefilter("ignore", ConvergenceWarning)
            assert mm.train(mm.models.Binary(kernel=given), rows, y, **short).solver == solver


@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_slack_rescaling_with_a_kernel(name):
    case = Case(name, KERNELS["rbf"])
    if name == "multiclass":
        case.model.cost = case.native.cost = None
    best = case.optimum("slack")
    solution = case.train(solver="one-slack", rescaling="slack")
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("n", [150, 300])
def test_larger_problems_in_both_worlds(n):
    case = Case("binary", mm.Kernel("rbf", 2.0), n=n)
    assert case.train(tol=1e-7).certificate.primal == pytest.approx(case.optimum().objective, rel=1e-6)


@pytest.mark.parametrize("basis", ["random", "k-means", "pivoted"])
@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_low_rank_with_all_rows_is_exact(name, basis):
    case = Case(name, KERNELS["rbf with a constant"])
    exact = case.train(solver="one-slack")
    # Equal rows depend on each other: one of them is left out.
    case.native.kernel = mm.LowRank(case.kernel, 10_000, basis)
    case.native.abilities = mm.models.Binary.abilities
    for solver in ("block-dual", "one-slack", "sdm", "n-slack"):
        solution = case.train(solver=solver, tol=1e-7)
        assert solution.certificate.primal == pytest.approx(exact.certificate.primal, rel=1e-6)
        assert case.independent_primal(solution.expansion) == pytest.approx(exact.certificate.primal, rel=1e-6)


def test_few_basis_points_cost_a_larger_objective():
    """The projected space is part of the whole one: its best point is no better."""
    case = Case("binary", KERNELS["rbf"], n=200)
    best = case.train(tol=1e-6).certificate
    primals = []
    for k in (2, 10, 60):
        case.native.kernel = mm.LowRank(case.kernel, k)
        case.native.abilities = mm.models.Binary.abilities
        solution = case.train(tol=1e-6, solver="block-dual")
        assert solution.expansion.size <= k
        assert solution.certificate.dual >= best.dual * (1 - 1e-6)
        primals.append(solution.certificate.primal)
    assert primals[0] > primals[1] > primals[2] > best.primal * (1 - 1e-6)


def test_two_classes_have_the_objective_of_libsvm():
    """Its bias is free where ours is not there: a large constant in both kernels leaves it nothing to do."""
    case = Case("binary", mm.Kernel("rbf", 0.8, constant=1e4), n=120)
    K = rbf_kernel(case.X, gamma=0.8) + 1e4
    svc = SVC(kernel="precomputed", C=case.C, tol=1e-9, cache_size=10).fit(K, case.Y)
    alpha = np.abs(svc.dual_coef_[0])
    beta = svc.dual_coef_[0]
    dual = alpha.sum() - 0.5 * beta @ K[np.ix_(svc.support_, svc.support_)] @ beta
    assert case.train(tol=1e-7).certificate.primal == pytest.approx(dual, rel=1e-4)


@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_all_forms_of_a_kernel_train_alike(name):
    case = Case(name, mm.Kernel("rbf", 0.8, constant=0.7))
    expected = case.train(solver="one-slack").certificate.primal
    case.native.kernel = mm.Kernel(lambda A, B: rbf_kernel(A, B, gamma=0.8), constant=0.7)
    assert case.train(solver="one-slack").certificate.primal == pytest.approx(expected, rel=1e-7)
    if name != "chain":
        X, case.X = case.X, rbf_kernel(case.X, gamma=0.8)
        case.native.kernel = mm.Kernel("precomputed", constant=0.7)
        solution = case.train(solver="one-slack")
        assert solution.certificate.primal == pytest.approx(expected, rel=1e-7)
        case.X = X
    case.native.kernel = mm.Kernel("rbf", 0.8, constant=0.7)
    case.X = [sp.csr_array(x) for x in case.X] if name == "chain" else sp.csr_array(case.X)
    assert case.train(solver="one-slack").certificate.primal == pytest.approx(expected, rel=1e-7)


def test_predictions_are_those_of_all_scores():
    case = Case("chain", KERNELS["rbf"])
    solution = case.train()
    predicted = case.native.predict(case.X, solution.expansion)
    scores = np.split(solution.expansion.scores(np.concatenate(case.X)), np.cumsum([len(x) for x in case.X])[:-1])
    transition = solution.expansion.table[:9].reshape(3, 3)
    start, stop = solution.expansion.table[9:12], solution.expansion.table[12:]
    for y, s in zip(predicted, scores, strict=True):

        def value(labels, s=s):
            pairs = sum(transition[a, b] for a, b in itertools.pairwise(labels))
            return s[np.arange(len(s)), labels].sum() + pairs + start[labels[0]] + stop[labels[-1]]

        every = np.stack(np.meshgrid(*[range(3)] * len(s), indexing="ij"), -1).reshape(-1, len(s))
        assert value(np.asarray(y)) == pytest.approx(max(value(labels) for labels in every))


def test_a_new_cut_takes_only_the_columns_that_changed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] > 0.5 * rng.normal(size=3000), 1, -1)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5, cache=0.0))
    bound = []
    bind = model.bind
    model.bind = lambda *args, **options: bound.append(bind(*args, **options)) or bound[0]
    solution = mm.train(model, X, y, tol=1e-2, solver="one-slack", solver_options={"stabilization": "line-search"})
    columns = bound[0].product.n_computed / 3000
    n_cuts = sum(record["cuts_added"] for record in solution.history)
    assert n_cuts >= 8
    # All columns for the first cut; without the earlier ones, each cut would take those of most violated rows.
    assert columns < 3000 + 0.25 * n_cuts * 3000


def test_bounds_of_loose_and_of_fine_tolerances_hold_for_one_optimum():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2100, 4))
    y = np.where(X[:, 0] * X[:, 1] > 0, 1, -1)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", 0.5))
    loose = mm.train(model, X, y, tol=1e-3)
    fine = mm.train(model, X, y, tol=2e-5)
    # Bounds of both hold for the same optimum, up to the rounding of kernel values.
    assert loose.certificate.dual <= fine.certificate.primal * (1 + 1e-6)
    assert fine.certificate.dual <= loose.certificate.primal * (1 + 1e-6)
    for solution in (loose, fine):
        # The scores that the certificate rests on, computed afresh in double.
        w2 = solution.expansion.coef[0] @ solution.expansion.scores(solution.expansion.basis)[:, 0]
        slacks = np.maximum(0.0, 1.0 - y * solution.expansion.scores(X)[:, 0])
        assert 0.5 * w2 + slacks.sum() == pytest.approx(solution.certificate.primal, rel=1e-5)


@pytest.mark.parametrize("name", ["binary", "multiclass", "chain"])
def test_warm_starts_go_on_from_the_cuts(name):
    case = Case(name, KERNELS["rbf"])
    first = case.train(keep_planes=True, solver="one-slack")
    again = case.train(planes=first.planes, solver="one-slack")
    assert len(again.history) < len(first.history)
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=1e-6)
    case.C *= 3.0
    cold, warm = case.train(solver="one-slack"), case.train(planes=first.planes, solver="one-slack")
    assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=1e-6)


def test_paths_with_a_kernel():
    case = Case("binary", KERNELS["rbf"], n=80)
    points = mm.path(case.native, case.X, case.Y, [0.1, 1.0, 10.0], solver="one-slack", tol=1e-6)
    for C, solution in zip([0.1, 1.0, 10.0], points.solutions, strict=True):
        case.C = C
        assert solution.certificate.primal == pytest.approx(case.train(tol=1e-6).certificate.primal, rel=1e-5)
        assert solution.expansion is not None


# ---------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize("solver", ["n-slack", "sdm", "bcfw", "line-search", "perceptron", "mira", "sgd"])
def test_solvers_that_need_vectors_say_what_to_do(solver):
    case = Case("binary", KERNELS["rbf"])
    with pytest.raises(ValueError, match=r"needs features as vectors.*one-slack.*low-rank"):
        case.train(solver=solver)


def test_weights_and_expansions_are_not_mistaken_for_each_other():
    case = Case("binary", KERNELS["rbf"])
    solution = case.train()
    with pytest.raises(TypeError, match=r"takes solution\.expansion"):
        case.native.predict(case.X, solution.w)
    with pytest.raises(ValueError, match="that of another model"):
        mm.models.Multiclass(3).predict(case.X, solution.expansion)
    with pytest.raises(TypeError, match="kernel must be"):
        mm.models.Binary(kernel="rbf")
    with pytest.raises(ValueError, match="nonnegative"):
        mm.train(mm.models.Binary(nonnegative={"coef": True}, kernel=case.kernel), case.X, case.Y)


def test_plain_models_are_as_before():
    case = Case("binary", KERNELS["linear"])
    model, X, y = native(case.model)
    assert mm.train(model, X, y, case.C).expansion is None


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_low_rank_certificate_says_what_its_dual_is_of(loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(120, 3)), rng.integers(3, size=120)
    kernel = mm.Kernel("rbf", 0.5, constant=1.0)
    options = {"loss": loss, "solver": "block-dual", "tol": 1e-6}
    low = mm.train(mm.models.Multiclass(3, kernel=mm.LowRank(kernel, 20)), X, y, **options)
    exact = mm.train(mm.models.Multiclass(3, kernel=kernel), X, y, **options).certificate
    assert low.certificate.dual_of == "the kernel projected on 20 basis points"
    assert ", dual of the kernel projected on 20 basis points, " in str(low.certificate)
    assert exact.dual_of == ""
    assert "dual of" not in str(exact)
    # Weights in the span of the basis have the same primal under the kernel itself, whose optimum lies below the projected one's.
    scores = low.expansion.scores(X)
    hinge = np.max(scores + 1.0 - np.eye(3)[y], axis=1) - scores[np.arange(120), y]
    intercept = low.expansion.intercept
    norm2 = (
        np.sum(low.expansion.coef.T * (low.expansion.scores(low.expansion.basis) - intercept)) + intercept @ intercept
    )
    primal = 0.5 * norm2 + np.sum(hinge ** (2 if loss == "squared_hinge" else 1))
    assert low.certificate.primal == pytest.approx(primal, rel=1e-6)
    assert low.certificate.dual > exact.primal


def test_low_rank_features_are_made_in_threads(monkeypatch):
    used = []
    usual = NativeProduct.matrix
    monkeypatch.setattr(NativeProduct, "matrix", lambda self, *where: used.append(where[3:]) or usual(self, *where))
    X = np.random.default_rng(0).normal(size=(300, 3))
    y = np.where(X[:, 0] > 0, 1, -1)
    model = mm.models.Binary(kernel=mm.LowRank(mm.Kernel("rbf", 0.5), 20))
    one, two = (mm.train(model, X, y, n_jobs=n_jobs).w for n_jobs in (1, 2))
    assert np.array_equal(one, two)
    assert set(used) == {(1,), (2,)}
