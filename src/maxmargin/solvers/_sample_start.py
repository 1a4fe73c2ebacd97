"""A start of the 1-slack method from a sample of the examples, beyond the paper: for exact kernels.

While there are few cuts, one differs from the next in most rows, and each row that differs takes a column of the kernel matrix.
The dual variables of a problem over some of the examples are feasible for the one over all of them, with 0 for the others.
Divided by C they are one cut (each example's planes mixed in some proportion), whose columns are those of the sample alone, and
the QP starts from it with the same dual value. The sample's own problem starts from a smaller sample in turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Protocol

import numpy as np

from maxmargin.solvers._cutting_planes import CutModel
from maxmargin.solvers.base import Iterate, Task

# The share of the examples that make the sample, the fewest it is worth while for, and the relative gap it is solved to, in at
# most so many iterations: any dual point of it will do.
_SHARE, _FEWEST, _GAP, _MOST_ITERATIONS = 0.25, 10_000, 0.1, 50


class _Run(Protocol):
    """A run of the 1-slack method."""

    @property
    def model(self) -> CutModel:
        """Its cuts."""

    def iterate(self, task: Task) -> Iterator[Iterate]:
        """Yield one iterate per QP."""


def add_sample_cut(task: Task, model: CutModel, run: _Run) -> int:
    """Solve for a sample of the examples by ``run`` and make its dual point the model's first cut, unless there are few.

    Returns how many examples it has.
    """
    problem = task.problem
    if problem.n_examples < _FEWEST or task.is_over:
        return 0
    n_sampled = int(_SHARE * problem.n_examples)
    examples = np.sort(task.rng.choice(problem.n_examples, n_sampled, replace=False)).astype(np.int64)
    part = problem.part(examples)
    if part is None:
        return 0
    part.problem.prepare(task.C, _GAP)
    _solve(Task(part.problem, task.C, task.loss, _GAP, task.rng, task.deadline), run)
    found = run.model
    if found.size == 0:
        return 0
    model.cuts.load((found.dual + 0.5 * found.norm2) / task.C, part.extend(found.weights) / task.C)
    model.keep_pending()
    return n_sampled


def _solve(task: Task, run: _Run) -> None:
    best = np.inf
    for step in islice(run.iterate(task), _MOST_ITERATIONS):
        best = best if step.primal is None else min(best, step.primal)
        if task.is_over or (step.dual is not None and best - step.dual <= task.tol * best):
            return
