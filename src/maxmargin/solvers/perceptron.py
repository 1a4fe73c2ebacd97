"""The averaged structured perceptron (Collins 2002; the shuffled epochs are those of Chang and Yih 2013, section 4.3).

    visit t, example i:   ȳ = argmax_y w·Ψ(x_i, y);   w ← w + s_i (Ψ(x_i, y_i) − Ψ(x_i, ȳ))   unless ȳ is y_i

    returned:             w̄ = (1/T) Σ_{t = 1 … T} w_t     over the w after each of the T visits

It minimises nothing, so its certificate has neither primal nor dual, and it has no C: all weights times a constant predict the
same. A sample weight s_i multiplies the updates of its example. Where w_J ≥ 0 is asked for, negative entries of w̄ become 0.
An epoch without a mistake ends training.
"""

from __future__ import annotations

from typing import ClassVar

from maxmargin import _core
from maxmargin.problems.base import IntArray, Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._online import EPOCHS, OnlineSolver, min_progress
from maxmargin.solvers.base import Task


class Perceptron(OnlineSolver):
    """Adds the features of the truth and takes off those of a wrong prediction; see the module's text."""

    name = "perceptron"
    needs = frozenset({"vectors"})
    options: ClassVar = {"epochs": EPOCHS, "min_progress": min_progress("the mean loss of the predictions")}

    @classmethod
    def check_C(cls, C: float) -> None:
        """Refuse any C but the default, which is how it is left out."""
        if C != 1.0:
            raise ValueError(
                f"solver 'perceptron' has no C, found {C!r}: leave it at 1.0, the default. 'mira' has one, which caps its steps."
            )

    def _make_oracle(self, problem: Problem, weights: DenseWeights) -> _core.Oracle:
        return problem.oracle(weights, precise=False, plain=True)

    def _visit(self, task: Task, order: IntArray) -> _core.SeenByPass:
        return self._pass.perceptron(order, self._oracle, self.state.late)
