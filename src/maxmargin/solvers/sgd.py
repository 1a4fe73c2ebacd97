"""Stochastic subgradient descent on the hinge objective (Bottou 2004; Chang and Yih 2013, section 4.3).

    min_w  ½‖w‖² + C Σ_i s_i H_i(w)

    visit t, example i:   ψ of the most violated output (0 where that is the truth)

        w ← max(0, 1 − η_t / nC) w + η_t s_i ψ,     w_J ← max(0, w_J),     η_t = η0 / (1 + η0 t / C)^0.75

n is the number of examples with s_i > 0, t counts the visits from 0. That is the second paper's step; the first one's has nC in
place of the last C (``decay="nC"``), falls far more slowly and, with many examples, comes nearer to the optimum. w is kept as
scale · v, so that a visit writes only what ψ touches. η0 is the one of 2^-1, …, 2^-5 whose w has the lowest primal on 1000
random examples (all, if there are fewer) after one pass over them, as if they were all there are. The last w is returned with
its exact primal; there is no dual. In a stream n is the number of examples so far, and η0 is searched for on the first of them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_number
from maxmargin.problems.base import IntArray, Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._online import EPOCHS, OnlineSolver, OnlineState, min_progress, new_pass
from maxmargin.solvers.base import Option, Task

_CANDIDATES = [2.0**-k for k in range(1, 6)]
_SAMPLE_SIZE = 1000


class SGD(OnlineSolver):
    """Follows the subgradient of one example at a time; see the module's text."""

    name = "sgd"
    losses = frozenset({"hinge"})
    needs = frozenset({"max_oracle", "vectors"})
    averages = False
    shrinks = True
    helps_above_zero = "Scale the features (StandardScaler, MaxAbsScaler), lower eta0, or take a solver with bounds."
    options: ClassVar = {
        "eta0": Option(
            None,
            lambda v: v is None or (is_number(v) and v > 0),
            "a positive number or None",
            "the first step size. None: the best of 1/2, 1/4, 1/8, 1/16 and 1/32 on 1000 random examples.",
        ),
        "decay": Option(
            "C",
            lambda v: v in ("C", "nC"),
            "'C' or 'nC'",
            "what t visits are divided by in the step's η0 / (1 + η0 t / decay)^0.75; 'nC' falls more slowly",
        ),
        "epochs": EPOCHS,
        "min_progress": min_progress("the mean hinge loss"),
    }

    _trial: tuple[_core.OnlinePass, DenseWeights] | None = None  # the last one of a step size

    def result(self) -> DenseWeights | None:
        """Return the last iterate: where the search for a step size was broken off, of its last trial."""
        if self._problem is not None:
            visits, weights = self._pass, self.state.weights
        elif self._trial is not None:
            visits, weights = self._trial
        else:
            return None
        visits.fold()
        return weights

    def _choose_step(self, task: Task, state: OnlineState) -> None:
        if state.eta0 is None:
            state.eta0 = self.option["eta0"] or self._best_eta0(task)

    def _make_oracle(self, problem: Problem, weights: DenseWeights) -> _core.Oracle:
        return problem.oracle(weights, precise=False)

    def _visit(self, task: Task, order: IntArray) -> _core.SeenByPass:
        state = self.state
        assert state.eta0 is not None
        return self._descend(self._pass, self._oracle, task, order, state.eta0, state.n_examples)

    def _descend(
        self, visits: _core.OnlinePass, oracle: _core.Oracle, task: Task, order: IntArray, eta0: float, n: int
    ) -> _core.SeenByPass:
        decay = task.C if self.option["decay"] == "C" else n * task.C
        return visits.sgd(order, oracle, eta0, decay, n * task.C)

    def _best_eta0(self, task: Task) -> float:
        problem = task.problem
        sample = task.rng.permutation(problem.searched_ids)[:_SAMPLE_SIZE]
        primals = []
        for eta0 in _CANDIDATES:
            weights = problem.zero_weights()
            trial = new_pass(problem, weights, 0)
            self._trial = trial, weights
            self._descend(trial, self._make_oracle(problem, weights), task, sample, eta0, len(sample))
            problem.count_calls(len(sample))
            trial.fold()
            primals.append(problem.primal(weights, task.C, squared=False, ids=np.sort(sample)))
        return _CANDIDATES[int(np.argmin(primals))]
