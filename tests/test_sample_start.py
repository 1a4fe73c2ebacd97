"""One-slack on kernels that starts from a sample of the examples: the same problem, and bounds that hold."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers import _sample_start

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

KERNEL = mm.Kernel("rbf", 0.7)


def labelled(n):
    rng = np.random.default_rng(3)
    X = 6.0 * rng.normal(size=(12, 4))[rng.integers(12, size=n)] + rng.normal(size=(n, 4))
    return X, np.where(np.sin(X[:, 0]) + np.sin(X[:, 1]) + 0.3 * rng.normal(size=n) > 0, 1, -1)


def exact_primal(solution, X, y, s):
    expansion = solution.expansion
    slacks = np.maximum(0.0, 1.0 - y * expansion.scores(X)[:, 0])
    return 0.5 * expansion.coef[0] @ expansion.scores(expansion.basis)[:, 0] + np.sum(
        slacks if s is None else s * slacks
    )


def record_parts(monkeypatch):
    """Return the duals that runs over samples ended with."""
    duals = []
    solve = _sample_start._solve

    def recorded(task, run):
        solve(task, run)
        duals.append((task.problem.n_examples, run.model.dual))

    monkeypatch.setattr(_sample_start, "_solve", recorded)
    monkeypatch.setattr(_sample_start, "_FEWEST", 600)
    return duals


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_a_start_from_a_sample_has_its_dual_value(kind, weighted, monkeypatch):
    X, y = labelled(2400)
    s = np.random.default_rng(0).random(2400) * 2.0 if weighted else None
    labels = y if kind == "binary" else np.digitize(np.sin(X[:, 0]) + np.sin(X[:, 1]), [-0.5, 0.5])
    model = mm.models.Binary(kernel=KERNEL) if kind == "binary" else mm.models.Multiclass(3, kernel=KERNEL)
    options = {"solver": "one-slack", "tol": 1e-3, "sample_weight": s, "solver_options": {"stabilization": "auto"}}
    plain = mm.train(model, X, labels, **options)
    duals = record_parts(monkeypatch)
    started = mm.train(model, X, labels, **options)
    # A run whose float32 scores were too rough is made again in double: the last two count.
    (n_small, smaller), (n_large, larger) = duals[-2:]
    assert (n_small, n_large) == (150, 600)
    assert smaller <= larger
    # The first QP has the one cut, and its value is that of the sample's at least.
    assert started.history[1]["dual"] >= larger * (1.0 - 1e-6) > 0.0
    assert plain.history[0]["dual"] == 0.0
    assert [record["sampled_examples"] for record in started.history[:2]] == [0, 600]
    assert all(record["sampled_examples"] == 0 for record in plain.history)
    for one, other in ((plain, started), (started, plain)):
        assert one.certificate.converged
        assert one.certificate.dual <= other.certificate.primal * (1.0 + 1e-6)
    if kind == "binary":
        assert started.certificate.primal == pytest.approx(exact_primal(started, X, y, s), rel=1e-6)


def test_a_start_from_a_sample_is_not_made_without_stabilization_or_in_a_warm_start(monkeypatch):
    X, y = labelled(1000)
    model = mm.models.Binary(kernel=KERNEL)
    duals = record_parts(monkeypatch)
    mm.train(model, X, y, solver="one-slack", tol=0.05)
    assert not duals
    stabilized = {"solver": "one-slack", "tol": 0.05, "solver_options": {"stabilization": "auto"}}
    first = mm.train(model, X, y, keep_planes=True, **stabilized)
    assert len(duals) == 1
    mm.train(model, X, y, planes=first.planes, C=2.0, **stabilized)
    assert len(duals) == 1


def test_the_same_seed_gives_the_same_sample(monkeypatch):
    X, y = labelled(3000)
    record_parts(monkeypatch)
    model = mm.models.Binary(kernel=KERNEL)
    options = {"solver": "one-slack", "tol": 1e-2, "solver_options": {"stabilization": "auto"}}
    primals = [mm.train(model, X, y, random_state=seed, **options).certificate.primal for seed in (0, 0, 1)]
    assert primals[0] == primals[1] != primals[2]


def test_a_sample_that_does_not_converge_is_given_up(monkeypatch):
    record_parts(monkeypatch)
    monkeypatch.setattr(_sample_start, "_MOST_ITERATIONS", 3)
    monkeypatch.setattr(_sample_start, "_GAP", 0.0)
    X, y = labelled(1000)
    model = mm.models.Binary(kernel=KERNEL)
    solution = mm.train(model, X, y, solver="one-slack", tol=1e-2, solver_options={"stabilization": "auto"})
    assert solution.certificate.converged


def test_an_interrupt_in_the_sample_leaves_what_is_known(monkeypatch):
    record_parts(monkeypatch)

    def interrupted(task, run):
        raise KeyboardInterrupt

    monkeypatch.setattr(_sample_start, "_solve", interrupted)
    X, y = labelled(1000)
    model = mm.models.Binary(kernel=KERNEL)
    with pytest.warns(match="interrupted"):
        solution = mm.train(model, X, y, solver="one-slack", solver_options={"stabilization": "auto"})
    assert solution.certificate.primal == pytest.approx(1000.0)
    assert solution.certificate.dual == 0.0


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_samples_with_costs_and_examples_of_weight_0(rescaling, monkeypatch):
    record_parts(monkeypatch)
    X, _ = labelled(1000)
    y = np.digitize(np.sin(X[:, 0]) + np.sin(X[:, 1]), [-0.5, 0.5])
    cost = np.array([[0.0, 1.0, 3.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    s = (np.random.default_rng(0).random(1000) < 0.6) * 1.5
    model = mm.models.Multiclass(3, cost, kernel=KERNEL)
    options = {"solver": "one-slack", "rescaling": rescaling, "sample_weight": s, "tol": 1e-4}
    started = mm.train(model, X, y, solver_options={"stabilization": "auto"}, **options).certificate
    plain = mm.train(model, X, y, **options).certificate
    assert started.dual <= plain.primal * (1.0 + 1e-9)
    assert plain.dual <= started.primal * (1.0 + 1e-9)
