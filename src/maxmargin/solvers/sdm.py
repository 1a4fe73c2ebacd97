"""The sequential dual method (Balamurugan, Shevade, Sundararajan and Keerthi 2011, Algorithm 3).

    min_w  ½‖w‖² + C Σ_i ξ_i          F_i(y) = Δ_i(y) − w·ψ_i(y) ≤ ξ_i for all outputs y, ξ ≥ 0
    max_α  C Σ α_i(y) Δ_i(y) − ½‖w‖²  Σ_y α_i(y) = 1 for each i, α ≥ 0, w = C Σ α_i(y) ψ_i(y)

The simplex of one example is moved at a time, over the few outputs V_i that carry mass; V_i = {y_i} at the start. With p the
largest and q the smallest F of V_i (both with mass, or p just found), pairs exchange

    δ = min((F_p − F_q) / (C ‖ψ_p − ψ_q‖²), α_q),    α_p += δ,    α_q −= δ,    w += C δ (ψ_p − ψ_q)

until F_p − F_q ≤ τ̃ (the paper's equation 4.6 lacks the C). **Type-I** loops ask the oracle for each example's largest F and solve
the block if max F − min F > τ; **type-II** loops solve the blocks over V_i alone. After κ1 type-I loops, each is followed by
type-II loops while their largest violation ψ̂ exceeds τ, until it is half of what it was or κ2 loops have gone by. The paper
looks through the sets after every loop for ψ̂; here it is what a loop met at its visits, which takes no time of its own. So one
type-II loop is made where the paper would make none, and two at least where the first meets more than τ.
Examples are permuted in every loop; outputs without mass leave V_i.

Beyond the paper, only the first of the type-II loops in a row, every twentieth and one that would end them visit all blocks;
those between leave out what did not move at its last visit. ``relaxation`` moves blocks further than is best for each alone
(successive over-relaxation): others that pull at the same weights go the same way. τ̃ is never more than τ.

The paper stops when a type-I loop changes nothing: no F_i differs by more than τ. With ``epsilon`` given τ is that, training
ends so, and κ2 is the paper's 5. Under ``tol`` τ and τ̃ are where it begins: both are halved each time the blocks that a type-I
loop left as they are, because they differ by less than τ, hold more than a tenth of the gap. There ψ̂ is given up to 40 loops to
halve, and blocks are over-relaxed after many loops in a row, for as long as it takes so many: at a large C that is up to 3 times
faster, and elsewhere ψ̂ is halved sooner anyway (benchmarks/paper_sdm.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer, is_number
from maxmargin.solvers._blocks import Blocks, BlockSolver
from maxmargin.solvers.base import EPSILON, Iterate, Option, Record, Task

# What blocks that are left alone hold of the gap before τ is halved.
_MATTERS = 0.1
# Of so many type-II loops in a row one visits all blocks.
_WHOLE_EVERY = 20
# κ2 with epsilon, as published, and without.
_PUBLISHED_KAPPA2, _KAPPA2 = 5, 40
# After more than so many type-II loops in a row blocks are over-relaxed by the factor.
_MANY_LOOPS, _OVER_RELAXED = 10, 1.5


def _tolerance(default: float, meaning: str) -> Option:
    return Option(default, lambda v: is_number(v) and v > 0, "a positive number", meaning)


class SDM(BlockSolver):
    """One example's simplex at a time; see the module's text."""

    name = "sdm"
    losses = frozenset({"hinge"})
    options: ClassVar = {
        "epsilon": replace(
            EPSILON,
            meaning="τ, in units of loss and fixed: stop when a type-I loop changes nothing. τ̃ follows. None: stop on tol.",
        ),
        "tau": _tolerance(0.25, "τ to begin with: the difference of values above which type-I loops solve a block"),
        "tau_inner": _tolerance(0.15, "τ̃ to begin with, at most τ: the difference of values that blocks are solved to"),
        "kappa1": Option(
            10, lambda v: is_integer(v, 0), "an integer ≥ 0", "type-I loops before the first type-II loop"
        ),
        "kappa2": Option(
            None,
            lambda v: v is None or is_integer(v, 1),
            "an integer ≥ 1 or None",
            "loops after which a type-I loop comes again. None: 40, or the paper's 5 with epsilon",
        ),
        "relaxation": Option(
            None,
            lambda v: v is None or (is_number(v) and 1.0 <= v < 2.0),
            "a number ≥ 1 and < 2, or None",
            "how much flatter than it is the dual counts as in steps of a block. None: 1.5 while type-II loops come in "
            "rows of more than 10, as at a large C, else 1, the paper's; with epsilon always 1",
        ),
        "dual_change": Option(
            None,
            lambda v: v is None or (is_number(v) and v > 0),
            "a positive number or None",
            "stop, too, when the dual has risen by no more than this share of it since the last type-I loop",
        ),
        **BlockSolver.options,
    }

    _relaxation = 1.0  # of the next steps

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        tau, tau_inner = self.option["tau"], self.option["tau_inner"]
        # The default of τ̃ gives way to a smaller τ.
        if "tau_inner" in (options or {}) and tau_inner > tau:
            raise ValueError(
                f"solver_options['tau_inner'] must be at most solver_options['tau'], found {tau_inner!r} where tau is {tau!r}."
            )

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per type-I loop, with the type-II loops before it."""
        tau, tau_inner, epsilon = self.option["tau"], self.option["tau_inner"], self.option["epsilon"]
        if epsilon is not None:
            tau, tau_inner = epsilon, tau_inner * (epsilon / tau)
        # A block that is solved to τ̃ would otherwise be taken up again and again, and left as it is.
        tau_inner = min(tau, tau_inner)
        kappa1 = self.option["kappa1"]
        kappa2 = self.option["kappa2"] or (_KAPPA2 if epsilon is None else _PUBLISHED_KAPPA2)
        adapts = self.option["relaxation"] is None and epsilon is None
        self._relaxation = self.option["relaxation"] or 1.0
        blocks = self._start(task, planes)
        self._last_dual = -np.inf
        # The first κ1 loops are there to fill the sets, which planes of an earlier run have done.
        n_loops = kappa1 if planes is not None else 0
        violations: list[float] = []  # ψ̂ of the type-II loops since the last type-I loop

        while True:
            step, swept = self._type_one(task, blocks, tau, tau_inner)
            is_optimal = swept.moves == 0
            step.details = {
                "planes": blocks.sets.n_planes,
                "planes_added": swept.added,
                "planes_dropped": swept.dropped,
                "blocks_moved": swept.moves,
                "type_two_loops": len(violations),
                "type_two_violation": (violations[0], violations[-1]) if violations else None,
                "tau": tau,
                **blocks.watch.read(),
            }
            yield step

            if epsilon is None and swept.passed_over > _MATTERS * swept.gap:
                tau, tau_inner = 0.5 * tau, 0.5 * tau_inner
            elif is_optimal:
                self.demand_precision()
            violations = []
            if not is_optimal and n_loops >= kappa1:
                most = kappa2 - (n_loops - kappa1) % kappa2
                violations = self._type_two(task, blocks, tau, tau_inner, most)
                # A row that κ2 cut short says nothing but that it might have been long.
                if adapts and (len(violations) > _MANY_LOOPS or len(violations) < most):
                    self._relaxation = _OVER_RELAXED if len(violations) > _MANY_LOOPS else 1.0
            n_loops += 1 + len(violations)

    def _epsilon_rule(self, task: Task, gap: float | None, last: Record) -> tuple[str, str]:
        """Say how many blocks the last loop over the oracle moved."""
        n_moved = last.get("blocks_moved", 0)
        found = f"the last one moved {n_moved} blocks" if n_moved else ""
        return "for a type-I loop that changes nothing", found

    def _type_one(self, task: Task, blocks: Blocks, tau: float, tau_inner: float) -> tuple[Iterate, _core.Sweep]:
        swept = blocks.visit(self._pairs(tau, tau_inner), batch_size=self.option["batch_size"], precise=self.precise)
        dual = blocks.dual()
        is_last = self.option["epsilon"] is not None and swept.moves == 0 and self._is_proof(task)
        change = self.option["dual_change"]
        if change is not None:
            is_last |= swept.moves > 0 and dual - self._last_dual <= change * dual
            self._last_dual = dual
        return self._after_loop(blocks, swept, dual, is_last=is_last), swept

    def _type_two(self, task: Task, blocks: Blocks, tau: float, tau_inner: float, most: int) -> list[float]:
        """Solve the blocks over their sets until ψ̂ is τ at most or below half of what it was first; return those of the loops."""
        violations: list[float] = []
        is_whole = True
        while True:
            rule = self._pairs(tau_inner, tau_inner, patience=None if is_whole else 1)
            psi = blocks.sweep(rule, precise=self.precise).violation
            violations.append(psi)
            is_enough = psi <= tau or psi < 0.5 * violations[0]
            if len(violations) == most or (is_enough and is_whole) or task.is_over:
                return violations
            is_whole = is_enough or len(violations) % _WHOLE_EVERY == 0

    def _pairs(self, tau: float, tau_inner: float, patience: int | None = None) -> _core.Rule:
        return _core.Rule(
            "pairs",
            insert_above=tau,
            solve_above=tau,
            solve_to=tau_inner,
            drops_empty=True,
            patience=patience,
            relaxation=self._relaxation,
        )
