"""What ``solver="auto"`` means: the choice, and the reason that the history records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maxmargin.problem import Problem

# In the order of preference.
_CANDIDATES = ("block-dual", "one-slack", "n-slack")
# The oracle is asked for so many examples to learn what it costs and how long its planes are.
_PROBED = 8
# Planes kept for all examples may take so much memory; beyond, cuts, which are sums of planes, are kept instead.
_MOST_BYTES = 4e9
_BYTES_PER_TERM = 48
_KEPT_PLANES = 10
# Up to so many examples cuts take no time that counts.
_FEW_EXAMPLES = 200
# With an exact kernel, rows are moved several times: where fewer columns of the matrix are kept, cuts take less time.
_SHARE_OF_COLUMNS = 0.25
# Rows push each other back and forth when they are moved one by one where C times their square along one direction is large, or
# nearly all of their squares lies there (a large constant in the kernel). So many weights take few cuts.
_STEEP, _FEW_WEIGHTS = 20.0, 64
_MOSTLY_SHARED = 0.95
_SHARED = "rows have large squares along one direction: cuts move all of them there at once, one by one they push back and forth"
# Exact training takes about so many values for each pair of rows; a value takes about so long. By these guesses, and not by a
# clock, so that the choice repeats, training of more than so many seconds is left to samples.
_PASSES, _SECONDS_PER_VALUE, _LONGEST = 5.0, 3e-9, 3600.0


@dataclass(frozen=True)
class Choice:
    """The chosen solver with its options, and why."""

    solver: str
    reason: str
    options: dict[str, Any]
    oracle_seconds: float | None = None

    def record(self) -> dict[str, Any]:
        """Return what the first record of the history says of it."""
        return {"solver": self.solver, "reason": self.reason, "oracle_seconds": self.oracle_seconds}


def choose_by_options(
    solvers: Mapping[str, Any], loss: str, options: Mapping[str, Any] | None, abilities: frozenset[str]
) -> Choice:
    """Return the first solver in the order of preference that minimises the loss, knows all options and fits the model."""
    given = dict(options or {})
    # Where none suits, the first that minimises the loss is refused with a reason.
    able = [name for name in _CANDIDATES if solvers[name].suits(loss, abilities)] or [
        name for name in _CANDIDATES if loss in solvers[name].losses
    ]
    for name in able:
        if set(given) <= set(solvers[name].options):
            reason = f"the default for {loss.replace('_', ' ')} loss"
            if "vectors" not in abilities:
                reason += " with an exact kernel"
            if name != able[0]:
                reason = f"solver_options has {', '.join(map(repr, sorted(given)))}"
            return _with_defaults(Choice(name, reason, given))
    return _with_defaults(Choice(able[0], "", given))


def choose_by_problem(
    choice: Choice,
    problem: Problem,
    loss: str,
    C: float | None,
    *,
    can_sample: bool = False,
    max_time: float | None = None,
) -> Choice:
    """Return the choice for this problem: cuts where it is small, or where the planes of all examples would not fit in memory.

    With an exact kernel, cuts of samples where ``can_sample`` and exact ones would take too long.
    """
    ids = problem.all_ids[:_PROBED]
    if can_sample and loss == "hinge" and not problem.has_vectors and not problem.is_small:
        sampled = _with_samples(problem, max_time)
        if sampled is not None:
            return sampled
    if choice.solver != "block-dual" or len(ids) == 0:
        return choice
    if loss == "hinge" and problem.is_small and not choice.options:
        if problem.n_examples <= _FEW_EXAMPLES:
            reason = "examples are few, and cuts depend neither on chance nor on their order"
            return _with_defaults(Choice("one-slack", reason, {}))
        if C is not None and problem.n_weights <= _FEW_WEIGHTS and C * problem.leading().square > _STEEP:
            return _with_defaults(Choice("one-slack", _SHARED, {}))
    if not problem.has_vectors:
        return _with_kernel(choice, problem, loss)
    if problem.starts_processes and problem.n_jobs > 1:
        # A model in Python: processes would be started for the probe, outside of what Ctrl-C ends in good order.
        return choice
    start = time.perf_counter()
    found = problem.separate(ids, problem.zero_weights(), precise=True)
    seconds = (time.perf_counter() - start) / len(ids)
    n_terms = sum(len(found.code(k)) for k in range(len(found))) / len(ids)
    n_bytes = problem.n_examples * n_terms * _KEPT_PLANES * _BYTES_PER_TERM
    if loss == "hinge" and n_bytes > _MOST_BYTES and not choice.options:
        reason = f"planes of all examples would take about {n_bytes / 1e9:.0f} GB; a cut takes a sum of them"
        return _with_defaults(Choice("one-slack", reason, {}, seconds))
    reason = f"{choice.reason}; searching an example takes {seconds:.2g} s, and it asks for few searches"
    return Choice(choice.solver, reason, choice.options, seconds)


def _with_samples(problem: Problem, max_time: float | None) -> Choice | None:
    """Return sampled cuts where the kernel values of an exact method are too many for the time there is; else None."""
    n_values = _PASSES * float(problem.n_kernel_rows) ** 2
    seconds = n_values * _SECONDS_PER_VALUE / problem.n_jobs
    if seconds <= (_LONGEST if max_time is None else max_time):
        return None
    time_there_is = f"{_LONGEST / 60:.0f} minutes" if max_time is None else f"max_time={max_time:g} s"
    reason = (
        f"exact training would take about {n_values:.1g} kernel values, more than {time_there_is} are good for: cuts of samples "
        "take fewer, and leave the dual loose"
    )
    return Choice("sampled-cuts", reason, {})


def _with_kernel(choice: Choice, problem: Problem, loss: str) -> Choice:
    """Return block-dual where the columns of the kernel matrix that it comes back to fit in memory, else cuts, which need few."""
    share = problem.kept_columns
    if loss == "hinge" and not choice.options:
        if share < _SHARE_OF_COLUMNS:
            reason = f"{share:.0%} of the columns of the kernel matrix fit in kernel_cache; cuts ask for fewer of them"
            return _with_defaults(Choice("one-slack", reason, {}))
        if problem.leading().share > _MOSTLY_SHARED:
            return _with_defaults(Choice("one-slack", _SHARED, {}))
    return Choice(choice.solver, f"{choice.reason}; {share:.0%} of its columns fit in kernel_cache", choice.options)


def _with_defaults(choice: Choice) -> Choice:
    """Stabilise cutting planes unless the options say otherwise or leave no cache for it."""
    if choice.solver != "one-slack" or choice.options.get("cache_size") == 0:
        return choice
    return Choice(choice.solver, choice.reason, {"stabilization": "auto", **choice.options}, choice.oracle_seconds)
