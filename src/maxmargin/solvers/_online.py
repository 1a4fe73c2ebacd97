"""What the online solvers share: visits in random order, epochs, averages, and going on where a stream left off.

Each visit asks the oracle for one example and moves w at once (``cpp/solvers/online_pass.hpp`` has the formulas). There is no
dual and so no gap: training ends after ``epochs`` passes over the examples, or earlier where a pass finds nothing to learn or
less than ``min_progress``. Examples with s_i = 0 are never visited.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer, is_number
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers.base import Iterate, Option, Solver, Task

# The clock is looked at after so many parts of an epoch.
_PORTIONS = 32

EPOCHS: Option = Option(25, lambda v: is_integer(v, 1), "an integer ≥ 1", "passes over the examples")


def min_progress(what: str) -> Option:
    """Return the option by which ``what``, as it is seen during an epoch, can end training."""
    return Option(
        None,
        lambda v: v is None or (is_number(v) and 0 <= v < 1),
        "a number in [0, 1) or None",
        f"stop after an epoch in which {what} is not below that of the epoch before by more than this share of it. None: make "
        "all epochs.",
    )


@dataclass
class OnlineState:
    """Where an online solver stands, in arrays and numbers only: a later call on other examples goes on from it.

    Attributes
    ----------
    solver : str
        Whose state it is.
    weights : DenseWeights
        w after the last visit.
    late : ndarray
        Σ_t (t − 1) · (change of w at visit t), by which the average is known; empty for solvers that do not average.
    visits : int
        t, how many visits were made.
    n_examples : int
        How many examples were given so far.
    eta0 : float or None
        The first step size, where the solver has one.
    """

    solver: str
    weights: DenseWeights
    late: FloatArray
    visits: int = 0
    n_examples: int = 0
    eta0: float | None = None


class OnlineSolver(Solver):
    """A solver whose iterations are passes over single examples."""

    losses = frozenset()
    rescalings = frozenset({"margin"})
    has_dual = False
    averages: ClassVar[bool] = True
    shrinks: ClassVar[bool] = False  # at visits that find nothing to learn, too

    _state: OnlineState | None = None
    _problem: Problem | None = None

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per epoch, whose details tell what was seen in it."""
        self._begin(task, None)
        ids = task.problem.searched_ids
        before = np.inf
        for epoch in range(1, self.option["epochs"] + 1):
            updates, loss = self._visit_all(task, task.rng.permutation(ids))
            share = self.option["min_progress"]
            is_stuck = share is not None and loss >= (1.0 - share) * before
            step = Iterate(details={"updates": updates, "loss": loss / len(ids)})
            if not task.is_over:
                step.rule = self._ending(epoch, updates, is_stuck=is_stuck)
                step.is_last = step.rule != ""
            yield step
            before = loss

    def _ending(self, epoch: int, updates: int, *, is_stuck: bool) -> str:
        """Return what ends training after an epoch; nothing where it goes on."""
        epochs = self.option["epochs"]
        if updates == 0 and not self.shrinks:
            return f"epoch {epoch} found nothing to learn"
        if is_stuck:
            return f"epoch {epoch} made less progress than min_progress asks for"
        return ("the epoch was made" if epochs == 1 else f"all {epochs} epochs were made") if epoch == epochs else ""

    def learn(self, task: Task, state: OnlineState | None) -> OnlineState:
        """Visit the examples once, in their order, going on from ``state``, and return what the next call goes on from."""
        ids = task.problem.searched_ids
        self._begin(task, state)
        try:
            self._visit_all(task, ids)
        finally:
            # Whatever ended it: weights and counts that belong together.
            self._pass.fold()
            state = self.state
        return state

    def result(self) -> DenseWeights | None:
        """Return the average of all iterates, with 0 for what is negative and must not be."""
        if self._problem is None:
            return None
        state, weights = self.state, self._problem.zero_weights()
        if state.visits > 0:
            np.divide(state.late, -state.visits, out=weights.exact)
            weights.exact += state.weights.exact
        J = self._problem.nonnegative
        weights.exact[J] = np.maximum(weights.exact[J], 0.0)
        return weights

    @property
    def state(self) -> OnlineState:
        """Where the solver stands now."""
        assert self._state is not None
        self._state.visits = self._pass.visits
        return self._state

    def _begin(self, task: Task, state: OnlineState | None) -> None:
        problem = task.problem
        problem.has_bounds = False
        if state is None:
            late = np.zeros(problem.n_weights if self.averages else 0)
            state = OnlineState(self.name, problem.zero_weights(), late)
        state.n_examples += len(problem.searched_ids)
        self._choose_step(task, state)
        self._pass = new_pass(problem, state.weights, state.visits)
        self._oracle = self._make_oracle(problem, state.weights)
        self._problem, self._state = problem, state

    def _choose_step(self, task: Task, state: OnlineState) -> None:
        """Set what must be known before the first visit."""

    @abstractmethod
    def _make_oracle(self, problem: Problem, weights: DenseWeights) -> _core.Oracle:
        """Return the search that the visits ask."""

    @abstractmethod
    def _visit(self, task: Task, order: IntArray) -> _core.SeenByPass:
        """Visit these examples."""

    def _visit_all(self, task: Task, order: IntArray) -> tuple[int, float]:
        """Visit examples for as long as time allows; return how many led to an update, and the sum of the losses seen."""
        # Errors of single steps do not add up in the float copy for longer than this.
        self.state.weights.refresh()
        updates, loss = 0, 0.0
        for portion in np.array_split(order, min(_PORTIONS, len(order))):
            seen = self._visit(task, portion)
            task.problem.count_calls(len(portion))
            updates, loss = updates + seen.updates, loss + seen.loss
            if task.is_over:
                break
        task.problem.report_open()
        return updates, loss


def new_pass(problem: Problem, weights: DenseWeights, visits: int) -> _core.OnlinePass:
    """Return the pass that moves these weights, after so many visits."""
    rounded = problem.rounded(weights, precise=False)
    return _core.OnlinePass(problem.space, weights.exact, rounded, problem.sample_weight, visits, problem.nonnegative)
