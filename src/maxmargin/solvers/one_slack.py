"""The 1-slack cutting-plane method (CP, Algorithms 3 and 4).

    min_w  ½‖w‖² + C max_k (c_k − w·g_k)₊        over cuts (c, g) = Σ_i s_i (Δ_i, ψ_i), one plane of each example

    max_α  Σ α_k c_k − ½‖w‖²                      α ≥ 0, Σ α_k ≤ C, w = Σ α_k g_k + μ   (μ ≥ 0 on non-negative weights)

Each iteration solves the QP over the cuts so far, asks for the most violated plane of every example at the new w, and adds
the cut they sum to. Cuts are sums here where the paper has means: its C' and ξ are n·C and ξ/n, and ``epsilon`` counts as in
the paper. Rules of the paper, section 5: warm-started QP of adaptive precision; cuts whose α stayed 0 for ``prune_after`` QPs are
dropped; a cut is first composed from cached planes, and only if that one is not violated enough the oracle is asked. Only a
cut from the oracle can end the training.

``stabilization`` goes beyond the paper: see ``_stabilized.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from maxmargin.problem import Problem
from maxmargin.solvers._cutting_planes import CutModel, Separator
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import EPSILON, Iterate, Option, Solver, Task, is_integer, is_number

# The share of the last exact violation that a cached cut must reach to be used (as in SVM-struct).
_CACHED_SHARE = 0.1
# The QP is solved to this share of the last exact violation.
_QP_SHARE = 0.1


class OneSlack(Solver):
    """One slack variable shared by all examples; see the module's text."""

    name = "one-slack"
    losses = frozenset({"hinge"})
    options = {
        "epsilon": EPSILON,
        "cache_size": Option(
            None,
            lambda v: v is None or is_integer(v, 0),
            "an integer ≥ 0 or None",
            "planes cached per example, 0 turns the cache off. None: 10, or 0 where searching is as cheap as valuing planes.",
        ),
        "refresh": Option(
            1.0,
            lambda v: is_number(v) and 0 < v <= 1,
            "a number in (0, 1]",
            "portion of the examples that the oracle is asked for at a time when the cache offers nothing",
        ),
        "prune_after": Option(
            50, lambda v: is_integer(v, 1), "an integer ≥ 1", "drop a cut whose α was 0 in so many QPs in a row"
        ),
    }

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per QP; see the module's text."""
        problem, C = task.problem, task.C
        epsilon = None if self.option["epsilon"] is None else self.option["epsilon"] * problem.n_examples
        watch = Stopwatch("oracle", "cache", "assembly", "gram", "qp", "weights")
        model = CutModel(problem, C, self.option["prune_after"], watch)
        separator = Separator(problem, self._cache_size(problem), self.option["refresh"], watch)
        w = model.weights
        violation = best_primal = np.inf

        while True:
            target = epsilon if epsilon is not None else 0.5 * task.tol * best_primal / C
            needed = model.slack + max(target, _CACHED_SHARE * violation)
            is_exact = separator.separate(model, w, needed, precise=self.precise)
            value = model.pending_value(w)

            step = Iterate(dual=model.dual)
            if is_exact:
                violation = value - model.slack
                step.weights, step.is_precise = w, self.precise
                step.primal = 0.5 * w.norm2() + C * max(value, 0.0)
                best_primal = min(best_primal, step.primal)
                # C ε bounds the violation and the QP's own gap together: the gap the paper's stop promises.
                step.is_last = epsilon is not None and step.primal - model.dual <= C * epsilon
            step.details = {
                "planes": separator.n_planes,
                "cuts": model.size,
                "cuts_active": model.n_active,
                "cuts_added": 1,
                "cuts_dropped": model.n_dropped,
                "from_cache": not is_exact,
                "violation": (value - model.slack) / problem.n_examples,
                "qp_tolerance": model.tolerance,
                **watch.read(),
            }
            yield step

            model.keep_pending()
            model.solve(self._qp_tolerance(task, violation, best_primal))

    def _qp_tolerance(self, task: Task, violation: float, best_primal: float) -> float:
        """Return a gap that is small against what the next cut can change and against what is asked for."""
        floor = 0.01 * task.tol * best_primal if self.stops_on_gap else 0.01 * self.option["epsilon"] * task.C_total
        return max(_QP_SHARE * task.C * violation, floor, 1e-14 * best_primal)

    def _cache_size(self, problem: Problem) -> int:
        size: int | None = self.option["cache_size"]
        if size is not None:
            return size
        return 0 if problem.cheap_oracle else 10
