"""MIRA, the margin-infused relaxed algorithm (Crammer et al. 2005; k best: McDonald, Crammer and Pereira 2005), averaged.

    visit, example i:   ȳ_1 … ȳ_k = the k best outputs by w·Ψ(x_i, y), the truth left out;   w ← w + s_i (w' − w)

        w' = argmin  ½‖w' − w‖² + C ξ     Δ(y_i, ȳ_p) − w'·ψ_p ≤ ξ for all p, ξ ≥ 0

    one output:         w' = w + τ ψ,   τ = clip((Δ − w·ψ) / ‖ψ‖², 0, C)

The average w̄ of w over all visits is returned. C caps the step: the sum of the multiples of ψ_p that one visit adds. The
papers do not cap it, which is C = ∞ (``float("inf")``); for k > 1 the constraints are then met to a billionth, or as nearly as
they can be where they contradict each other. Outputs are searched for without their loss: with k = 1 nothing is learnt from an
example whose prediction is right, whatever its margin.

No objective over all examples is minimised, so the certificate has neither primal nor dual. A sample weight s_i multiplies the
updates of its example. Where w_J ≥ 0 is asked for, negative entries of w̄ become 0. An epoch without an update ends training.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from maxmargin import _core
from maxmargin._parameters import is_integer
from maxmargin.problems.base import IntArray, Problem
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._online import EPOCHS, OnlineSolver, min_progress
from maxmargin.solvers.base import Option, Task


class Mira(OnlineSolver):
    """Makes the smallest step after which the truth wins by its loss; see the module's text."""

    name = "mira"
    needs = frozenset({"vectors"})
    options: ClassVar = {
        "k_best": Option(1, lambda v: is_integer(v, 1), "an integer ≥ 1", "best outputs that a step looks at"),
        "epochs": EPOCHS,
        "min_progress": min_progress("the mean loss of the predictions"),
    }

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        if self.option["k_best"] > 1:
            self.needs = frozenset({"m_best", "vectors"})

    @classmethod
    def check_C(cls, C: float) -> None:
        """Take any positive number: ∞ is no cap."""

    def _make_oracle(self, problem: Problem, weights: DenseWeights) -> _core.Oracle:
        k = self.option["k_best"]
        return problem.oracle(weights, precise=False, plain=True, k_best=None if k == 1 else k)

    def _visit(self, task: Task, order: IntArray) -> _core.SeenByPass:
        return self._pass.mira(order, self._oracle, task.C, self.state.late)
