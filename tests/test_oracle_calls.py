"""The certificate counts the searches that were made, whatever ended training."""

import numpy as np
import pytest
import small_model

import maxmargin as mm
from maxmargin.solvers import SOLVERS

pytestmark = pytest.mark.core

# Those that a model in Python has, each with a loss that it minimises, if any.
CELLS = [
    (name, min(solver.losses, default="hinge")) for name, solver in SOLVERS.items() if "kernel" not in solver.needs
]


class CountedSearches(small_model.Classes):
    """Counts its searches; Ctrl-C strikes in one of them."""

    def __init__(self, last=None):
        self.n_searches, self.last = 0, last

    def loss_augmented_argmax(self, x, y, w):
        self._count()
        return super().loss_augmented_argmax(x, y, w)

    def argmax(self, x, w):
        self._count()
        return super().argmax(x, w)

    def _count(self):
        self.n_searches += 1
        if self.n_searches == self.last:
            raise KeyboardInterrupt


def train(model, solver, loss, **options):
    X, y = small_model.data(100)
    return mm.train(model, X, y, solver=solver, loss=loss, random_state=0, **options)


@pytest.mark.parametrize("last", [40, 123, 250])
@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_an_interrupt_leaves_the_searches_made_until_then(solver, loss, last):
    model = CountedSearches(last)
    with pytest.warns(UserWarning, match="interrupted"):
        solution = train(model, solver, loss, tol=1e-9, max_iter=None)
    assert solution.certificate.oracle_calls == model.n_searches >= last


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_all_searches_of_a_run_are_counted(solver, loss):
    model = CountedSearches()
    solution = train(model, solver, loss, tol=1e-9, max_iter=3)
    assert solution.certificate.oracle_calls == model.n_searches >= 100
    assert solution.history[-1]["oracle_calls"] <= model.n_searches


class InterruptedBatches(small_model.Classes):
    """Ctrl-C strikes in the first search of one example."""

    def loss_augmented_argmax(self, x, y, w):
        if x[0] == 0.0:
            raise KeyboardInterrupt
        return super().loss_augmented_argmax(x, y, w)


def test_of_worker_processes_the_answers_that_arrived_are_counted():
    X, y = small_model.data(100)
    X[-1] = 0.0
    with pytest.warns(UserWarning, match="interrupted"):
        solution = mm.train(InterruptedBatches(), X, y, solver="one-slack", n_jobs=2)
    # Batches have 16 pieces; all but the last of them were answered.
    assert solution.certificate.oracle_calls == 94


class SearchesAtZero(CountedSearches):
    """Counts the searches at w = 0 by themselves."""

    n_at_zero = 0

    def loss_augmented_argmax(self, x, y, w):
        self.n_at_zero += not np.any(w)
        return super().loss_augmented_argmax(x, y, w)


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.01}])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_n_slack_searches_each_example_once_without_weights(loss, options):
    model = SearchesAtZero()
    assert train(model, "n-slack", loss, solver_options=options).certificate.converged
    assert model.n_at_zero == 100


@pytest.mark.parametrize("kernel", [None, mm.Kernel("rbf", 0.5)], ids=["linear", "kernel"])
def test_a_cut_on_a_line_of_scores_searches_the_examples_that_weigh_something_once(kernel):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(90, 3)), rng.integers(3, size=90)
    weights = np.repeat([1.0, 2.0, 0.0], 30)
    solution = mm.train(
        mm.models.Multiclass(3, kernel=kernel),
        X,
        y,
        sample_weight=weights,
        solver="one-slack",
        solver_options={"stabilization": "line-search"},
    )
    calls = np.array([record["oracle_calls"] for record in solution.history])
    assert len(calls) > 5
    # Not of the first: passes of block ascent or a cut of a sample come before it.
    assert set(np.diff(calls[1:])) <= {60, 120}  # 120 where the QP's solution was searched too
    assert 60 in np.diff(calls[1:])
