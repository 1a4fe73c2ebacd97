"""Block-dual for sequences with an exact kernel: planes move the scores of all rows by columns of the kernel matrix."""

import numpy as np
import pytest
import scipy.sparse as sp
from block_rules import exact
from kernel_cases import KERNELS, Case
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics.pairwise import rbf_kernel

import maxmargin as mm
from maxmargin import _core
from maxmargin._feature_rows import core_features
from maxmargin.kernels.product import kernel_product
from maxmargin.problems.kernel import row_numbers

GAMMA = 0.5


def words(n=60, seed=0, n_labels=5):
    """Sequences of some 400 rows in all, with labels that rows tell roughly and neighbours help to tell."""
    rng = np.random.default_rng(seed)
    Y = [np.cumsum(rng.integers(0, 2, size=rng.integers(1, 13))) % n_labels for _ in range(n)]
    centres = rng.normal(size=(n_labels, 3))
    return [centres[y] + 0.7 * rng.normal(size=(len(y), 3)) for y in Y], Y


def chain(kernel=None, n_labels=5, **options):
    return mm.models.Chain(n_labels, kernel=kernel or mm.Kernel("rbf", GAMMA, **options))


def test_slack_rescaling_reaches_the_reference():
    case = Case("chain", KERNELS["rbf"])
    best = case.optimum("slack")
    solution = case.train(solver="block-dual", rescaling="slack")
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    assert case.independent_primal(solution.expansion, "slack") == pytest.approx(best.objective, rel=1e-6)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_it_solves_what_features_of_the_same_products_do(loss):
    X, Y = words()
    rows = np.concatenate(X)
    values, vectors = np.linalg.eigh(rbf_kernel(rows, gamma=GAMMA))
    features = np.split(vectors * np.sqrt(np.maximum(values, 0.0)), np.cumsum([len(x) for x in X])[:-1])
    options = {"loss": loss, "tol": 1e-5, "solver": "block-dual"}
    linear = mm.train(mm.models.Chain(5), features, Y, 2.0, **options).certificate
    found = mm.train(chain(), X, Y, 2.0, **options)
    assert linear.dual <= found.certificate.primal * (1 + 1e-9)
    assert found.certificate.dual <= linear.primal * (1 + 1e-9)
    # The expansion that is returned has the primal of the certificate: its norm and its slacks are computed anew.
    model = chain()
    predicted = model.predict(X, found.expansion)
    assert np.mean(np.concatenate(predicted) == np.concatenate(Y)) > 0.8
    assert_primal(found, X, Y, loss)


def assert_primal(found, X, Y, loss, C=2.0):
    """The certificate's primal is that of the coefficients: ‖w‖² by the kernel among the basis points, slacks by Viterbi."""
    coef, K = found.expansion.coef, mm.Kernel("rbf", GAMMA)(found.expansion.basis, found.expansion.basis)
    square = np.sum(coef @ K * coef) + np.sum(found.expansion.table**2)
    assert found.certificate.primal == pytest.approx(0.5 * square + slack_cost(found, X, Y, loss, C), rel=1e-6)


def slack_cost(found, X, Y, loss, C):
    """C Σ ξ or ξ² of an expansion, by the linear chain over its scores."""
    scores = np.split(found.expansion.scores(np.concatenate(X)), np.cumsum([len(x) for x in X])[:-1])
    total = 0.0
    for score, y in zip(scores, Y, strict=True):
        transition = found.expansion.table.reshape(5, 5)
        best = viterbi(score + (np.arange(5) != np.asarray(y)[:, None]), transition)
        truth = score[np.arange(len(y)), y].sum() + transition[y[:-1], y[1:]].sum()
        slack = max(0.0, best - truth)
        total += slack**2 if loss == "squared_hinge" else slack
    return C * total


def viterbi(scores, transition):
    best = scores[0]
    for row in scores[1:]:
        best = row + np.max(best[:, None] + transition, axis=0)
    return float(best.max())


def columns_of(kind, rows, K):
    """Columns of a stored matrix, or computed ones of which all, some or none can be kept."""
    if kind == "stored":
        return _core.stored_columns(K, 0.0, 1), None
    megabytes = {"all kept": 100.0, "some kept": 40 * len(rows) * 8e-6, "none kept": 0.0}[kind]
    kernel = mm.Kernel("rbf", GAMMA, cache=megabytes)
    product = kernel_product(kernel, rows, is_single=False, cache_bytes=1e6 * megabytes, negligible=0.0)
    return _core.kernel_columns(product.core, kernel.diagonal(rows), 0.0, 1), product


@pytest.mark.core
@pytest.mark.parametrize("kind", ["stored", "all kept", "some kept", "none kept"])
def test_moves_that_were_put_off_are_written_down(kind):
    """After visits and sweeps w is the scores of the planes' coefficients, whatever was put off meanwhile."""
    X, Y = words()
    rows, lengths = np.concatenate(X), [len(x) for x in X]
    K = rbf_kernel(rows, gamma=GAMMA)
    columns, _product = columns_of(kind, rows, K)
    structure = _core.Chain(
        np.concatenate([[0], np.cumsum(lengths)]), 5, False, np.concatenate(Y).astype(np.int32), loss_step=1.0
    )
    space = _core.LinearSpace(core_features(row_numbers(len(rows))), structure, "margin")
    moving = _core.KernelSpace(space, columns)
    for by_components in (True, False):
        sets = _core.WorkingSets(moving, np.full(len(X), 0.7), False, np.zeros(0, np.int64), by_components)
        w, coef = np.zeros(space.n_weights), np.zeros(space.n_weights)
        order = np.arange(len(X))
        oracle = _core.LinearOracle(space, w, None, False, 1)
        gain = sets.visit(oracle, order, 4, exact(1e-3), w).gain
        for searches in (by_components, False, False):
            gain += sets.sweep(order, exact(1e-3, searches=searches), w).gain
            sets.coefficients(coef)
            emissions = coef[: len(rows) * space.stride].reshape(len(rows), space.stride)
            scores = np.concatenate([(K @ emissions).ravel(), coef[emissions.size :]])
            np.testing.assert_allclose(w, scores, atol=1e-10)
            # What the steps are said to have gained is what the dual has.
            assert sets.linear_part() - 0.5 * coef @ scores == pytest.approx(gain, rel=1e-9)
        assert np.count_nonzero(np.any(emissions != 0.0, axis=1)) > 200  # more than are put off at once
        again = np.zeros_like(w)
        sets.weights(again)
        np.testing.assert_allclose(again, scores, atol=1e-10)
        # Twice the budget: the best multiple of α is found by products with planes, because w is no vector.
        worth = sets.rescale(np.full(len(X), 1.4), w)
        sets.coefficients(coef)
        emissions = coef[: len(rows) * space.stride].reshape(len(rows), space.stride)
        square = np.sum(emissions * (K @ emissions)) + np.sum(coef[emissions.size :] ** 2)
        assert sets.linear_part() - 0.5 * square == pytest.approx(worth, rel=1e-9)
        assert worth >= gain


@pytest.mark.core
def test_nothing_stays_put_off_after_a_sum_that_was_broken_off():
    X, Y = words(2500)
    rows = np.concatenate(X)
    columns, _product = columns_of("none kept", rows, None)
    structure = _core.Chain(np.cumsum([0, *map(len, X)]), 5, False, np.concatenate(Y).astype(np.int32), loss_step=1.0)
    space = _core.LinearSpace(core_features(row_numbers(len(rows))), structure, "margin")
    sets = _core.WorkingSets(
        _core.KernelSpace(space, columns), np.full(len(X), 0.7), False, np.zeros(0, np.int64), True
    )
    w, order = np.zeros(space.n_weights), np.arange(len(X))
    sets.visit(_core.LinearOracle(space, w, None, False, 1), order, 4, exact(1e-3), w)
    expected, n_broken_off = sets.slacks(order, w), 0
    for milliseconds in range(1, 201, 10):
        try:
            with _core.Deadline(milliseconds / 1000):
                sets.weights(np.zeros_like(w))
        except _core.OutOfTime:
            n_broken_off += 1
        np.testing.assert_array_equal(sets.slacks(order, w), expected)
    assert n_broken_off > 0


@pytest.mark.parametrize(
    "form", ["a function", "precomputed", "no room for columns", "room for some", "threads", "sparse"]
)
def test_all_forms_of_a_kernel_train_alike(form):
    X, Y = words(30)
    expected = mm.train(chain(), X, Y, 2.0, tol=1e-6, solver="block-dual").certificate
    options = {}
    if form == "a function":
        model = chain(mm.Kernel(lambda A, B: rbf_kernel(A, B, gamma=GAMMA)))
    elif form == "precomputed":
        K = rbf_kernel(np.concatenate(X), gamma=GAMMA)
        model, X = chain(mm.Kernel("precomputed")), np.split(K, np.cumsum([len(x) for x in X])[:-1])
    elif form == "sparse":
        model, X = chain(), [sp.csr_array(x) for x in X]
    else:
        model = chain(cache={"no room for columns": 0.0, "room for some": 0.05}.get(form, 100.0))
        options = {"n_jobs": 2} if form == "threads" else {}
    found = mm.train(model, X, Y, 2.0, tol=1e-6, solver="block-dual", **options).certificate
    assert found.primal == pytest.approx(expected.primal, rel=1e-6)
    assert found.dual == pytest.approx(expected.dual, rel=1e-6)


def test_auto_takes_it_where_all_columns_can_be_kept():
    X, Y = words()
    for cache, expected in ((100.0, "block-dual"), (0.1, "one-slack")):
        solution = mm.train(chain(cache=cache), X, Y, tol=0.01)
        assert solution.solver == expected
        assert "kernel_cache" in solution.history[0]["reason"]
        assert solution.certificate.converged
    assert mm.train(chain(cache=0.1), X, Y, loss="squared_hinge", tol=0.1).solver == "block-dual"


@pytest.mark.parametrize("C", [1e3, 1e5])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_planes_are_moved_together_where_few_features_give_the_kernel(loss, C):
    """By sweeps alone the gaps of these were 0.2 to 0.5 after eight seconds."""
    X, Y = words(150)
    solution = mm.train(chain(mm.Kernel("linear", 1.0)), X, Y, C, tol=1e-3, loss=loss)
    assert solution.solver == "block-dual"
    assert solution.certificate.converged
    assert sum(record["joint_steps"] for record in solution.history) > 0
    linear = mm.train(mm.models.Chain(5), X, Y, C, tol=1e-3, loss=loss).certificate
    assert solution.certificate.dual <= linear.primal * (1 + 1e-9)
    assert linear.dual <= solution.certificate.primal * (1 + 1e-9)


def test_a_kernel_of_zeros_leaves_the_transitions():
    X, Y = words()
    found = mm.train(chain(mm.Kernel("linear", 1.0)), [0.0 * x for x in X], Y, 10.0, tol=1e-4, solver="block-dual")
    cuts = mm.train(chain(mm.Kernel("linear", 1.0)), [0.0 * x for x in X], Y, 10.0, tol=1e-4, solver="one-slack")
    assert found.certificate.primal == pytest.approx(cuts.certificate.primal, rel=2e-4)


def test_auto_takes_cuts_where_sweeps_would_crawl():
    X, Y = words(150)
    for C, expected in ((10.0, "block-dual"), (100.0, "one-slack")):
        solution = mm.train(chain(mm.Kernel("rbf", 0.01)), X, Y, C, tol=0.01)
        assert solution.solver == expected
    assert "few features" in solution.history[0]["reason"]


@pytest.mark.parametrize("options", ["no weight", "two planes", "many labels", "a constant"])
def test_it_agrees_with_cuts(options):
    X, Y = words()
    kernel, n_labels, given = mm.Kernel("rbf", GAMMA), 5, {}
    if options == "no weight":
        given["sample_weight"] = np.arange(len(X)) % 3.0
    elif options == "many labels":
        n_labels = 70
    elif options == "a constant":
        kernel = mm.Kernel("rbf", GAMMA, constant=2.0)
    own = {"solver_options": {"max_planes": 2}} if options == "two planes" else {}
    found = mm.train(chain(kernel, n_labels), X, Y, 1.0, tol=1e-4, solver="block-dual", **given, **own).certificate
    cuts = mm.train(chain(kernel, n_labels), X, Y, 1.0, tol=1e-3, solver="one-slack", **given).certificate
    assert found.converged
    assert found.dual <= cuts.primal * (1 + 1e-9)
    assert cuts.dual <= found.primal * (1 + 1e-9)


def test_a_kernel_that_is_not_definite_is_refused():
    X, Y = words()
    with pytest.raises(ValueError, match="not positive semi-definite"):
        mm.train(chain(mm.Kernel(lambda A, B: -(A @ B.T))), X, Y, solver="block-dual")


def test_it_goes_on_from_planes_and_along_paths():
    X, Y = words()
    first = mm.train(chain(), X, Y, 1.0, tol=1e-5, solver="block-dual", keep_planes=True)
    again = mm.train(chain(), X, Y, 1.0, tol=1e-5, solver="block-dual", planes=first.planes)
    assert len(again.history) < len(first.history)
    assert again.certificate.primal == pytest.approx(first.certificate.primal, rel=2e-5)
    Cs = [0.1, 1.0, 10.0]
    points = mm.path(chain(), X, Y, Cs, solver="block-dual", tol=1e-5)
    for C, solution in zip(Cs, points.solutions, strict=True):
        cold = mm.train(chain(), X, Y, C, tol=1e-5, solver="one-slack").certificate
        assert solution.certificate.primal == pytest.approx(cold.primal, rel=3e-5)
        assert solution.certificate.dual <= cold.primal


@pytest.mark.parametrize("after", [1, 3])
def test_a_run_that_is_broken_off_returns_what_it_had(after):
    """Ctrl-C between two records: the point returned has the primal of its certificate, computed anew from its coefficients."""
    X, Y = words()

    def interrupt(record):
        seen.append(record)
        if len(seen) == after:
            raise KeyboardInterrupt

    seen = []
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        found = mm.train(chain(), X, Y, 2.0, tol=1e-9, solver="block-dual", callback=interrupt)
    assert_primal(found, X, Y, "hinge")
    assert not found.certificate.converged


def test_time_runs_out_within_a_sweep():
    X, Y = words(1000)
    with pytest.warns(ConvergenceWarning, match="max_time=3 s was reached"):
        found = mm.train(chain(), X, Y, 20.0, tol=1e-12, solver="block-dual", max_time=3.0)
    assert_primal(found, X, Y, "hinge", C=20.0)
    assert found.certificate.dual <= found.certificate.primal


def test_results_repeat_and_do_not_hang_on_threads():
    X, Y = words()
    one, two, threads = (
        mm.train(chain(), X, Y, 2.0, solver="block-dual", n_jobs=jobs, random_state=3) for jobs in (1, 1, 2)
    )
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_allclose(one.w, threads.w, atol=1e-12)


WRONG = {
    "columns of fewer rows": (lambda s: _core.KernelSpace(s, _core.stored_columns(np.eye(2), 0.0, 1)), "columns has 2"),
    "features that are no row numbers": (
        lambda s: _core.KernelSpace(
            _core.LinearSpace(_core.Features(np.ones((3, 3))), _core.Multiclass(3, 2, np.zeros(3, np.int32)), "margin"),
            _core.stored_columns(np.eye(3), 0.0, 1),
        ),
        "must name the rows",
    ),
    "weights that must not be negative": (
        lambda s: _core.WorkingSets(kernel_space(s), np.ones(1), False, np.zeros(1, np.int64)),
        "none to bound",
    ),
    "rounded scores": (
        lambda s: working_sets(s).sweep(
            np.zeros(1, np.int64), exact(0.1), np.zeros(s.n_weights), np.zeros(s.n_weights, np.float32)
        ),
        "move in double",
    ),
    "vectors of planes": (lambda s: working_sets(s).together(), "by their vectors"),
    "coefficients": (lambda s: working_sets(s).coefficients(np.zeros(2)), "weights has 2"),
}


def kernel_space(space):
    return _core.KernelSpace(space, _core.stored_columns(np.eye(3), 0.0, 1))


def working_sets(space):
    return _core.WorkingSets(kernel_space(space), np.ones(1), False, np.zeros(0, np.int64))


@pytest.mark.core
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_of_the_core_are_refused(wrong):
    call, text = WRONG[wrong]
    structure = _core.Chain(np.array([0, 3]), 2, False, np.zeros(3, np.int32))
    space = _core.LinearSpace(core_features(row_numbers(3)), structure, "margin")
    with pytest.raises(ValueError, match=text):
        call(space)
