"""Block-coordinate Frank-Wolfe (Lacoste-Julien, Jaggi, Schmidt and Pletscher 2013, Algorithm 4).

    max_α  D = b − ½‖w‖²     w = Σ_i w_i + μ,  b = Σ_i b_i,   (b_i, w_i) = Σ_p α_ip (Δ_ip, ψ_ip),   α ≥ 0,  Σ_p α_ip ≤ C_i

Examples are visited one after the other. The oracle's plane (Δ, ψ) of the visited one is mixed into its block by the
closed-form best step; the plane of the truth is (0, 0):

    s = C_i ψ,   u = s − w_i,   γ = clip((C_i Δ − b_i − w·u) / ‖u‖², 0, 1),   w_i += γ u,   b_i += γ (C_i Δ − b_i)

The numerator is the block's duality gap. Weighted averaging, w̄ ← (1 − 2/(k+2)) w̄ + 2/(k+2) w after step k = 0, 1, …, and b̄
likewise, smooths the primal: the certificate is at w̄, which is the point of an average of feasible α, so that b̄ − ½‖w̄‖² is
a lower bound as b − ½‖w‖² is. On the weights that must not be negative, μ is the best one for α and for its average.

Gap sampling (Osokin et al. 2016, section 3.1) draws examples in proportion to the gaps that their last visits found.
Pairwise steps (section 3.2) take mass from the worst plane of the block that has some, and not from all alike:

    F_p = Δ_p − w·ψ_p,   δ = clip((F_s − F_a) / ‖ψ_s − ψ_a‖², 0, α_a),   α_s += δ,  α_a −= δ,   F_a the least with α_a > 0

A few planes of each block are kept for that, the others count as one, their mean. Blocks are coefficients over the parts of
their example, never vectors of the length of w nor lists of all planes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer
from maxmargin.problems.base import FloatArray
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import IS_BOOLEAN, Iterate, Option, Solver, Task

# Planes of a block that pairwise steps tell apart.
_KEPT_PLANES = 10
# Gaps grow stale: after so many passes by gaps every example is visited again (Osokin et al. 2016, section 3.1).
_REFRESH_GAPS = 10
# The primal costs a pass of its own: it is evaluated when this share of all passes has been made since the last time.
_PRIMAL_SHARE = 0.1


class BCFW(Solver):
    """One dual point, moved towards one plane of one example at a time; see the module's text."""

    name = "bcfw"
    losses = frozenset({"hinge"})
    patience = 10  # in which the number of passes grows to more than the double, and the gap should halve
    options: ClassVar = {
        "averaging": Option(True, *IS_BOOLEAN, "certify the weighted average of all iterates in place of the last one"),
        "gap_sampling": Option(
            False, *IS_BOOLEAN, "draw examples in proportion to their gaps in place of each once a pass"
        ),
        "pairwise": Option(
            False, *IS_BOOLEAN, "take mass from an example's worst plane only; a few planes of each are kept for that"
        ),
        "batch_size": Option(
            1,
            lambda v: is_integer(v, 1),
            "an integer ≥ 1",
            "examples searched at a time, by n_jobs threads, before they move w",
        ),
    }

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per pass."""
        self._blocks = None
        blocks = _Blocks(task, self.option)
        if planes is not None:
            blocks.start_from(planes)
        self._blocks = blocks
        n_passes = last_primal = 0
        while True:
            blocks.visit()
            n_passes += 1
            if n_passes - last_primal >= _PRIMAL_SHARE * n_passes:
                last_primal = n_passes
                step = blocks.certified()
            else:
                step = Iterate(dual=blocks.dual())
            step.details = blocks.details()
            yield step

    _blocks: _Blocks | None = None

    def planes(self) -> State | None:
        """Return the dual point."""
        return None if self._blocks is None else self._blocks.state

    def unfinished(self) -> Iterate | None:
        """Return where the visits got to."""
        return None if self._blocks is None else self._blocks.unfinished()


@dataclass
class State:
    """The blocks of a dual point, and the C that they belong to."""

    core: _core.FrankWolfe
    C: float


class _Blocks:
    """The dual point, the weights it gives, and passes over the examples."""

    def __init__(self, task: Task, option: dict[str, Any]) -> None:
        self._task, self._option = task, option
        self._problem = problem = task.problem
        self._budgets = task.C * problem.weight_of_examples
        self._ids = np.flatnonzero(self._budgets > 0.0)
        self._watch = Stopwatch("oracle", "steps", "weights")
        self._w: DenseWeights = problem.zero_weights()
        self._certified = problem.zero_weights() if option["averaging"] else self._w
        self._since_refresh = _REFRESH_GAPS
        self._pass: _core.FrankWolfePass | None = None
        self.core = _core.FrankWolfe(
            problem.space,
            self._budgets,
            problem.nonnegative,
            averages=option["averaging"],
            max_planes=_KEPT_PLANES if option["pairwise"] else 0,
        )

    @property
    def state(self) -> State:
        """What a later run begins with."""
        return State(self.core, self._task.C)

    def start_from(self, state: State) -> None:
        """Begin at the point of an earlier run, scaled to C; the average begins anew, new examples stand at their truth."""
        self.core.start_from(state.core, self._task.C / state.C)
        self.core.weights(self._w.exact)
        self._w.touch()

    def visit(self) -> None:
        """Make as many visits as there are examples."""
        oracle, batch_size, w = self._problem.oracle(self._w, precise=True), self._option["batch_size"], self._w.exact
        rng, n = self._task.rng, len(self._ids)
        with self._watch("steps"):
            if self._option["gap_sampling"] and self._since_refresh < _REFRESH_GAPS and self.core.total_gap > 0.0:
                self._since_refresh += 1
                self._pass = self.core.visit_by_gaps(oracle, rng.random(n), batch_size, w)
            else:
                self._since_refresh = 0
                self._pass = self.core.visit(oracle, rng.permutation(self._ids), batch_size, w)
        self._w.touch()
        self._problem.count_calls(n)

    def dual(self) -> float:
        """Return the dual value of the point."""
        return self.core.loss() - 0.5 * self._w.norm2()

    def unfinished(self) -> Iterate:
        """Return the average, or the point itself, and the better dual of the two."""
        # From the blocks afresh: what many small steps left in w is not in the dual.
        self.core.weights(self._w.exact)
        self._w.touch()
        dual = self.dual()
        if self._option["averaging"]:
            self.core.average(self._certified.exact)
            self._certified.touch()
            dual = max(dual, self.core.average_loss() - 0.5 * self._certified.norm2())
        return Iterate(self._certified, dual=dual)

    def certified(self) -> Iterate:
        """Return the same with its primal."""
        with self._watch("weights"):
            step = self.unfinished()
        with self._watch("oracle"):
            slacks = self._slacks(self._certified)
        step.primal = 0.5 * self._certified.norm2() + float(self._budgets @ slacks)
        return step

    def _slacks(self, weights: DenseWeights) -> FloatArray:
        """Return H_i; a mean of known planes that is worth more than the oracle's proves it inexact."""
        found = self._problem.slacks(weights)
        if not self._problem.can_be_inexact:
            return found
        known = self.core.worth(self._problem.all_ids, weights.exact)
        for example in np.flatnonzero(known > found):
            self._problem.report_inexact(int(example))
        return np.maximum(found, known)

    def details(self) -> dict[str, Any]:
        """Return what the history records of the pass."""
        assert self._pass is not None
        return {
            "planes": self.core.n_planes,
            "entries": self.core.n_entries,
            "moves": self._pass.moves,
            "block_gaps": self._pass.gap,
            **self._watch.read(),
        }
