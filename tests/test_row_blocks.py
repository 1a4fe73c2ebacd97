"""Block-dual for rows with one label: closed-form visits against the reference QP, bounds, and wrong calls."""

import numpy as np
import pytest
import random_problems
import reference
import scipy.sparse as sp
from native_models import native, to_reference
from sklearn.datasets import make_classification
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin import _core
from maxmargin.problems.base import Problem
from maxmargin.problems.linear import LinearProblem

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

LOSSES = ["hinge", "squared_hinge"]
RESCALINGS = ["margin", "slack"]


def single_example(name, seed, with_cost):
    rng = np.random.default_rng([seed, len(name), with_cost])
    make = random_problems.random_binary if name == "binary" else random_problems.random_multiclass
    size = () if name == "binary" else (5,)
    return make(rng, 1, 3, *size, with_cost=with_cost), float(10.0 ** rng.uniform(-2.0, 1.0))


def blocks_of(model, C, loss, rescaling, **arguments):
    native_model, X, Y = native(model)
    problem = native_model.bind(X, Y, rescaling=rescaling, **arguments)
    return native_model, problem, problem.row_blocks(C, squared=loss == "squared_hinge")


def dual(blocks, w):
    return blocks.linear_part() - 0.5 * w @ w


@pytest.mark.parametrize("with_cost", [False, True])
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_a_visit_solves_its_example(name, loss, rescaling, with_cost):
    for seed in range(12):
        model, C = single_example(name, seed, with_cost)
        native_model, problem, blocks = blocks_of(model, C, loss, rescaling)
        best = reference.solve(reference.planes(model, rescaling), C, None, loss)
        w = np.zeros(problem.n_weights)
        # Planes of different length are taken in one by one.
        n_visits = 20 if rescaling == "slack" and with_cost else 1
        gains = [blocks.sweep(0.0, k, w).gain for k in range(n_visits)]
        assert dual(blocks, w) == pytest.approx(best.objective, rel=1e-7)
        assert sum(gains) == pytest.approx(best.objective, rel=1e-7)
        assert to_reference(native_model, w) == pytest.approx(best.w, abs=1e-4)
        fresh = np.empty_like(w)
        blocks.weights(fresh)
        assert fresh == pytest.approx(w, rel=1e-9, abs=1e-12)
        assert blocks.evaluate(w, None, 1) + 0.5 * w @ w == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_sweeps_keep_the_dual_feasible_and_below_the_optimum(name, loss, rescaling):
    for seed in range(4):
        rng = np.random.default_rng([seed, len(name)])
        make = random_problems.random_binary if name == "binary" else random_problems.random_multiclass
        model = make(rng, n_examples=8, with_cost=True)
        s = rng.uniform(0.0, 2.0, size=8)
        s[3] = 0.0
        _, problem, blocks = blocks_of(model, 0.7, loss, rescaling, sample_weight=s)
        best = reference.solve(reference.planes(model, rescaling), 0.7, s, loss)
        w = np.zeros(problem.n_weights)
        gained = 0.0
        for k in range(300):
            blocks.activate(0.0)
            gained += blocks.sweep(0.0, k, w).gain
            assert dual(blocks, w) == pytest.approx(gained, rel=1e-8)
            assert dual(blocks, w) <= best.objective * (1 + 1e-9)
            assert 0.5 * w @ w + blocks.evaluate(w, None, 1) >= best.lower_bound * (1 - 1e-9)
        assert dual(blocks, w) == pytest.approx(best.objective, rel=1e-4)
        planes = blocks.planes()
        alpha = planes.alpha()
        totals = np.bincount(planes.examples(), alpha, minlength=8)
        assert np.all(alpha > 0.0)
        assert totals[3] == 0.0
        if loss == "hinge":
            assert np.all(totals <= 0.7 * s * (1 + 1e-12))
        # α and planes are what the weights are made of.
        again = np.zeros_like(w)
        problem.space.add(planes, alpha, again)
        assert again == pytest.approx(w, rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("kernel", [None, mm.Kernel("rbf", gamma=0.3)], ids=["rows", "columns"])
@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_gaps_that_a_sweep_meets_add_up_to_the_gap(n_classes, loss, rescaling, kernel):
    # C ξ − Σ α F, or C H² − Σ α F + (Σα)² / 4C: at one w, where nothing moves, they sum to P − D.
    rng = np.random.default_rng(0)
    X, labels, cost = (
        rng.normal(size=(12, 3)),
        rng.integers(n_classes, size=12),
        rng.uniform(0.5, 2.0, (n_classes, n_classes)),
    )
    np.fill_diagonal(cost, 0.0)
    if n_classes == 2:
        model, y = mm.models.Binary(cost=cost, kernel=kernel), 2 * labels - 1
    else:
        model, y = mm.models.Multiclass(n_classes, cost=cost, kernel=kernel), labels
    problem = model.bind(X, y, sample_weight=rng.uniform(0.2, 2.0, 12), rescaling=rescaling)
    blocks, w = problem.row_blocks(8.0, squared=loss == "squared_hinge"), problem.zero_weights()
    for tolerance in (0.5, 0.1, 0.02):
        gap = w.norm2() + blocks.evaluate(w.exact, None, 1) - blocks.linear_part()
        assert gap > 1e-6
        blocks.activate(0.0)
        assert blocks.sweep(np.inf, 0, w.exact).gap == pytest.approx(gap, rel=1e-9)
        blocks.activate(0.0)
        blocks.sweep(tolerance, 0, w.exact)
        problem.sum_rows(blocks, w, afresh=True)


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_all_forms_of_features_give_the_same_optimum_as_general_blocks(n_classes, loss, rescaling, monkeypatch):
    rng = np.random.default_rng(n_classes)
    # Mostly zeros: the dense form is copied without them.
    dense = (rng.random((60, 12)) < 0.3).astype(float)
    y = rng.integers(n_classes, size=60)
    y[:40] = np.argmax(dense[:40, :n_classes], axis=1)
    model = (
        mm.models.Binary()
        if n_classes == 2
        else mm.models.Multiclass(n_classes, cost=rng.uniform(0.5, 2.0, (4, 4)) * (1 - np.eye(4)))
    )
    labels = 2 * y - 1 if n_classes == 2 else y
    settings = {"solver": "block-dual", "loss": loss, "rescaling": rescaling, "tol": 1e-6}
    forms = [dense, dense.astype(np.float32), sp.csr_matrix(dense), sp.csr_matrix(0.7 * dense), dense + 0.1]
    rows = [mm.train(model, X, labels, 0.3, **settings) for X in forms]
    monkeypatch.setattr(LinearProblem, "row_blocks", Problem.row_blocks)
    general = [mm.train(model, X, labels, 0.3, **settings) for X in forms]
    for ours, other in zip(rows, general, strict=True):
        assert "visits" in ours.history[0]
        assert "visits" not in other.history[0]
        assert ours.certificate.converged
        assert ours.certificate.primal == pytest.approx(other.certificate.primal, rel=3e-6)
    assert rows[0].certificate.primal == pytest.approx(rows[2].certificate.primal, rel=3e-6)


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_the_optimum_is_liblinears(C):
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
    peer = LinearSVC(C=C, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=100_000).fit(X, y)
    scores = X @ peer.coef_.T
    values = 1.0 + scores - scores[np.arange(300), y][:, None]
    values[np.arange(300), y] = 0.0
    primal = 0.5 * np.sum(peer.coef_**2) + C * np.maximum(values, 0.0).max(axis=1).sum()
    ours = mm.train(mm.models.Multiclass(3), X, y, C, solver="block-dual", tol=1e-7)
    assert ours.certificate.primal == pytest.approx(primal, rel=1e-6)
    sign = np.where(y == 1, 1, -1)
    peer = LinearSVC(
        C=C, loss="hinge", dual=True, fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0
    ).fit(X, sign)
    primal = 0.5 * np.sum(peer.coef_**2) + C * np.maximum(0.0, 1.0 - sign * (X @ peer.coef_[0])).sum()
    ours = mm.train(mm.models.Binary(), X, sign, C, solver="block-dual", tol=1e-7)
    assert ours.certificate.primal == pytest.approx(primal, rel=1e-6)


def test_rows_of_zeros_and_losses_of_zero_are_solved():
    X, y = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]]), [1, 0, 2]
    cost = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [1.0, 3.0, 0.0]])
    for rescaling in RESCALINGS:
        for loss in LOSSES:
            for model in (mm.models.Multiclass(3, cost=cost), mm.models.Multiclass(3)):
                solution = mm.train(model, X, y, 2.0, solver="block-dual", loss=loss, rescaling=rescaling, tol=1e-6)
                peer = mm.train(model, X, y, 2.0, solver="n-slack", loss=loss, rescaling=rescaling, tol=1e-6)
                assert solution.certificate.primal == pytest.approx(peer.certificate.primal, rel=3e-6)


def test_the_same_seed_gives_the_same_bits_whatever_n_jobs_is():
    X, y = make_classification(5000, 6, random_state=1)
    runs = [
        mm.train(mm.models.Multiclass(2), X, y, solver="block-dual", random_state=7, tol=1e-4, n_jobs=n)
        for n in (1, 2, 1)
    ]
    for run in runs[1:]:
        assert np.array_equal(run.w, runs[0].w)
        assert [r["dual"] for r in run.history] == [r["dual"] for r in runs[0].history]


def test_bounded_weights_go_to_the_general_blocks():
    model = mm.models.Binary(nonnegative={"coef": np.array([True, False])})
    problem = model.bind(np.eye(2), [1, -1])
    assert problem.row_blocks(1.0, squared=False) is None
    assert mm.models.Chain(2).bind([np.eye(2)], [np.array([0, 1])]).row_blocks(1.0, squared=False) is None


@pytest.mark.parametrize("rescaling", RESCALINGS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("name", ["binary", "multiclass"])
def test_alpha_is_taken_over_from_an_earlier_run(name, loss, rescaling):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        make = random_problems.random_binary if name == "binary" else random_problems.random_multiclass
        model = make(rng, 8, 4, *(() if name == "binary" else (4,)), with_cost=seed > 0)
        s = np.array([1, 2, 0.5, 0, 1, 1, 3, 1.0])
        _, problem, before = blocks_of(model, 0.7, loss, rescaling, sample_weight=s)
        w = np.zeros(problem.n_weights)
        for k in range(100):
            before.activate(0.0)
            before.sweep(0.0, k, w)
        planes = before.planes()
        for C in (0.7, 0.1, 3.0):
            best = reference.solve(reference.planes(model, rescaling), C, s, loss)
            _, _, blocks = blocks_of(model, C, loss, rescaling, sample_weight=s)
            blocks.start(planes, False)
            blocks.weights(w)
            started = dual(blocks, w)
            w *= blocks.rescale(1.0, float(w @ w))
            # What it is scaled by can only help, and the dual stays one.
            assert started - 1e-9 <= dual(blocks, w) <= best.objective * (1 + 1e-9)
            again = np.zeros_like(w)
            problem.space.add(blocks.planes(), blocks.planes().alpha(), again)
            assert again == pytest.approx(w, rel=1e-8, abs=1e-10)
            totals = np.bincount(blocks.planes().examples(), blocks.planes().alpha(), minlength=8)
            assert totals[3] == 0.0
            assert loss != "hinge" or np.all(totals <= C * s * (1 + 1e-12))
            if C == 0.7:
                assert dual(blocks, w) == pytest.approx(best.objective, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [None, mm.Kernel("rbf", gamma=0.1)])
def test_a_run_goes_on_from_alpha(loss, kernel):
    X, y = make_classification(300, 6, random_state=3)
    settings = {"solver": "block-dual", "loss": loss, "tol": 1e-4, "keep_planes": True}
    model = mm.models.Binary(kernel=kernel)
    first = mm.train(model, X, 2 * y - 1, 1.0, **settings)
    assert first.certificate.oracle_calls > 2 * 300
    again = mm.train(model, X, 2 * y - 1, 1.0, planes=first.planes, **settings)
    assert again.certificate.oracle_calls == 300
    assert again.history[0]["dual"] >= first.certificate.dual * (1 - 1e-9)
    for C in (0.3, 3.0):
        cold, warm = (mm.train(model, X, 2 * y - 1, C, planes=planes, **settings) for planes in (None, first.planes))
        assert warm.certificate.dual <= cold.certificate.primal
        assert cold.certificate.dual <= warm.certificate.primal
        assert warm.history[0]["dual"] > 0.5 * cold.certificate.dual


def test_planes_without_alpha_are_no_start():
    X, y = make_classification(200, 6, random_state=3)
    problem = mm.models.Binary().bind(X, 2 * y - 1)
    planes = problem.separate(problem.all_ids, problem.zero_weights(), precise=True)
    with pytest.raises(ValueError, match="need their α"):
        problem.row_blocks(1.0, squared=False).start(planes, False)
    with pytest.raises(ValueError, match="need their α"):
        _core.WorkingSets(problem.space, np.ones(200), False, np.array([], np.int64)).start(planes, np.zeros(6))


def test_conjugate_gradients_take_over_where_sweeps_crawl():
    X, y = make_classification(200, 6, random_state=0)
    for loss in LOSSES:
        solution = mm.train(mm.models.Multiclass(2), 1e3 * X, y, solver="block-dual", loss=loss, max_iter=500)
        assert solution.certificate.converged
        assert "visits" in solution.history[0]
        assert sum(record["joint_steps"] for record in solution.history) > 0


# ------------------------------------------------------------------------------------------------- wrong calls


def space(truth=(0, 1, 2, 0), rescaling="margin"):
    labels = None if truth is None else np.array(truth, np.int32)
    return _core.LinearSpace(_core.Features(np.ones((4, 3))), _core.Multiclass(4, 3, labels), rescaling)


def chain_space():
    structure = _core.Chain(np.array([0, 3, 4]), 2, False, np.array([0, 1, 1, 0], np.int32))
    return _core.LinearSpace(_core.Features(np.ones((4, 3))), structure, "margin")


def planes_of_two_classes():
    binary = _core.LinearSpace(
        _core.Features(np.ones((4, 3))), _core.Binary(4, np.array([1, -1, 1, 1], np.int32)), "margin"
    )
    return binary.separate(np.arange(4), np.zeros(3), None, 1)


def rows():
    return _core.RowBlocks(space(), np.ones(4), False)


WRONG = {
    "no truth": (lambda: _core.RowBlocks(space(None), np.ones(4), False), "needs true labels"),
    "sequences": (lambda: _core.RowBlocks(chain_space(), np.ones(2), False), "needs true labels"),
    "too few budgets": (lambda: _core.RowBlocks(space(), np.ones(3), False), "budgets has 3"),
    "budget that is negative": (lambda: _core.RowBlocks(space(), -np.ones(4), False), "budgets must"),
    "budget that is no number": (lambda: _core.RowBlocks(space(), np.full(4, np.nan), False), "budgets must"),
    "weights too short to evaluate": (lambda: rows().evaluate(np.zeros(2), None, 1), "weights has 2"),
    "rounded weights too short": (
        lambda: rows().evaluate(np.zeros(12), np.zeros(2, np.float32), 1),
        "rounded weights has 2",
    ),
    "weights too short to sweep": (lambda: rows().sweep(0.0, 0, np.zeros(2)), "weights has 2"),
    "rounded weights too short to sweep": (
        lambda: rows().sweep(0.0, 0, np.zeros(12), np.zeros(2, np.float32)),
        "rounded",
    ),
    "weights too short to sum": (lambda: rows().weights(np.zeros(2)), "weights has 2"),
    "columns of too few rows": (
        lambda: _core.RowBlocks(space(), np.ones(4), False, _core.stored_columns(np.eye(3), 0.0, 1)),
        "columns has 3",
    ),
    "columns where features do not name rows": (
        lambda: _core.RowBlocks(space(), np.ones(4), False, _core.stored_columns(np.eye(4), 0.0, 1)),
        "must name the rows",
    ),
    "a matrix that is not square": (lambda: _core.stored_columns(np.ones((4, 3)), 0.0, 1), "row of the matrix has 3"),
    "a matrix with a negative diagonal": (lambda: _core.stored_columns(-np.eye(4), 0.0, 1), "diagonal must"),
    "a constant that is no number": (lambda: _core.stored_columns(np.eye(4), np.nan, 1), "constant must"),
    "planes of another problem": (lambda: rows().start(planes_of_two_classes(), False), "belongs to another problem"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_calls_are_errors(what):
    call, message = WRONG[what]
    with pytest.raises(ValueError, match=message):
        call()


def test_strange_tolerances_do_no_harm():
    blocks, w = rows(), np.zeros(12)
    for tolerance in (np.nan, np.inf, -np.inf, -1.0):
        blocks.activate(tolerance)
        blocks.sweep(tolerance, 2**63, w)
    blocks.evaluate(w, None, 1)
    blocks.activate(np.nan)
    assert blocks.n_active == 0
    assert blocks.sweep(0.0, 0, w).visits == 0
