"""Dual coordinate descent for the squared hinge (Chang and Yih 2013): DCD-Light, DCD-SSVM, and the CPD of Chang et al. 2010.

    min_w  ½‖w‖² + C Σ_i ξ_i²                             Δ_i(y) − w·ψ_i(y) ≤ ξ_i for all outputs y
    max_α  Σ α_i(y) Δ_i(y) − ½‖w‖² − Σ_i (Σ_y α_i(y))² / 4C        α ≥ 0, w = Σ α_i(y) ψ_i(y)

There is no sum to be kept, so each α can be moved alone. **UpdateWeight(i)** does so for all outputs of the working set W_i, the
newest first and the others in random order:

    d = (Δ − w·ψ − Σ_y α_i(y) / 2C) / (‖ψ‖² + 1/2C),    α ← max(α + d, 0),    w ← w + (change of α) ψ

and outputs whose α becomes 0 leave W_i. The three solvers differ in when the oracle is asked:

    dcd-light   for each example in random order: ȳ joins W_i if Δ − w·ψ − Σα/2C ≥ δ, then UpdateWeight(i)
    dcd         the same, after ``inner_sweeps`` sweeps of UpdateWeight over all examples without the oracle
    cpd         for all examples at one w: planes violated by δ join, then sweeps of UpdateWeight until they have converged

With ``epsilon`` given δ is that, and training ends when a loop over the oracle adds nothing and no block is violated by more.
Under ``tol`` δ is where it begins: it is halved each time a loop over the oracle adds nothing that matters, that is, raises
the dual by less than a hundredth of the gap while planes that it passed over may hold a tenth of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer, is_number
from maxmargin.solvers._blocks import Blocks, BlockSolver
from maxmargin.solvers.base import EPSILON, Iterate, Option, Record, Task

_DELTA: dict[str, Option] = {
    "epsilon": replace(
        EPSILON,
        meaning="δ in units of loss, fixed: stop when no plane, known or found, is violated by more. None: stop on tol.",
    ),
    "delta": Option(
        0.1,
        lambda v: is_number(v) and v > 0,
        "a positive number",
        "δ to begin with: the violation above which planes join",
    ),
}
# A loop that gains no more than the first share of the gap has done what δ lets it do, if that may hide the second.
_LITTLE, _MATTERS = 0.01, 0.1
# CPD has converged on its planes when their gap is this share of what it was with the new ones.
_CONVERGED = 0.3
_MOST_SWEEPS = 1000


class _DualCoordinateDescent(BlockSolver):
    """What the three share: δ, UpdateWeight, and when it ends."""

    losses = frozenset({"squared_hinge"})

    def _begin(self, task: Task, planes: Any) -> tuple[Blocks, float]:
        """Return the working sets and δ."""
        self._rng = task.rng
        epsilon = self.option["epsilon"]
        return self._start(task, planes), self.option["delta"] if epsilon is None else epsilon

    def _update_weight(self, delta: float, above: float = 0.0) -> _core.Rule:
        seed = int(self._rng.integers(2**62))
        return _core.Rule("coordinates", insert_above=delta, solve_above=above, drops_empty=True, seed=seed)

    def _epsilon_rule(self, task: Task, gap: float | None, last: Record) -> tuple[str, str]:
        """Say by how much a plane was violated in the last loop over the oracle."""
        violation = last.get("violation", 0.0)
        found = f"one was violated by {violation:.3g}" if violation > self.option["epsilon"] else ""
        return "that no plane be violated by more", found

    def _ends(self, swept: _core.Sweep, delta: float, task: Task) -> bool:
        """Whether the loop over the oracle has found nothing that is violated by more than ``epsilon``."""
        if self.stops_on_gap or swept.added > 0 or swept.violation > delta:
            return False
        is_proof = self._is_proof(task)
        self.demand_precision()
        return is_proof

    def _next_delta(self, blocks: Blocks, gain: float, gap: float, dual: float, delta: float) -> float:
        # A plane violated by δ is worth C_i δ (2ξ_i + δ) at most, and Σ C_i ξ_i ≤ √(Σ C_i P).
        budget = blocks.total_budget
        hidden = delta * (2.0 * np.sqrt(budget * (dual + gap)) + budget * delta)
        is_held_back = gain <= _LITTLE * gap and hidden > _MATTERS * gap
        return 0.5 * delta if self.stops_on_gap and is_held_back else delta


class DCDLight(_DualCoordinateDescent):
    """The oracle and UpdateWeight for one example after the other; see the module's text."""

    name = "dcd-light"
    options: ClassVar = {**_DELTA, **BlockSolver.options}

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per epoch."""
        blocks, delta = self._begin(task, planes)
        while True:
            for _ in range(self.option.get("inner_sweeps", 0)):
                blocks.sweep(self._update_weight(delta), precise=self.precise)
                if task.is_over:
                    break
            swept = blocks.visit(self._update_weight(delta), batch_size=self.option["batch_size"], precise=self.precise)
            dual = blocks.dual()
            step = self._after_loop(blocks, swept, dual, is_last=self._ends(swept, delta, task))
            step.details = _details(blocks, swept, delta)
            yield step
            delta = self._next_delta(blocks, swept.gain, swept.gap, dual, delta)


class DCD(DCDLight):
    """DCD-SSVM: sweeps without the oracle before each epoch; see the module's text."""

    name = "dcd"
    options: ClassVar = {
        **_DELTA,
        "inner_sweeps": Option(
            5,
            lambda v: is_integer(v, 0),
            "an integer ≥ 0",
            "sweeps of UpdateWeight without the oracle before each epoch",
        ),
        **BlockSolver.options,
    }


class CPD(_DualCoordinateDescent):
    """The oracle for all examples at one w, then UpdateWeight until it has converged; see the module's text."""

    name = "cpd"
    options: ClassVar = dict(_DELTA)

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per pass over the oracle."""
        blocks, delta = self._begin(task, planes)
        ids, last_dual = task.problem.all_ids, -np.inf
        while True:
            found, primal = blocks.search_all(precise=self.precise)
            dual = blocks.dual()
            step = Iterate(blocks.weights, primal=primal, is_precise=self.precise, dual=dual)
            answers = _core.FoundPlanes(task.problem.space, found)
            # Nothing is violated by more than infinity: the planes join, w stays.
            swept = blocks.sets.visit(answers, ids, len(ids), self._update_weight(delta, np.inf), blocks.weights.exact)
            step.is_last = self._ends(swept, delta, task)
            step.details = _details(blocks, swept, delta)
            yield step
            # A pass that adds nothing gains nothing, whatever the sweeps before it did.
            gain = dual - last_dual if swept.added > 0 else 0.0
            delta, last_dual = self._next_delta(blocks, gain, swept.gap, dual, delta), dual
            self._converge(blocks, _CONVERGED * swept.gap, task)

    def _converge(self, blocks: Blocks, wanted: float, task: Task) -> None:
        for _ in range(_MOST_SWEEPS):
            if blocks.sweep(self._update_weight(0.0), precise=self.precise).gap <= wanted or task.is_over:
                return


def _details(blocks: Blocks, swept: _core.Sweep, delta: float) -> dict[str, Any]:
    return {
        "planes": blocks.sets.n_planes,
        "planes_added": swept.added,
        "planes_dropped": swept.dropped,
        "violation": swept.violation,
        "delta": delta,
        **blocks.watch.read(),
    }
