"""What ``solver="auto"`` means: the choice, and the reason that the history records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from maxmargin import _core
from maxmargin.problems.base import IntArray, Problem
from maxmargin.solvers.base import Request, Solver

# In the order of preference.
_CANDIDATES = ("block-dual", "one-slack", "n-slack")
# The oracle is asked for so many examples (each process of several) to learn what it costs and how long its planes are, or for
# fewer if that takes long.
_PROBED, _LONG_PROBE = 8, 0.05
# A search in Python that takes longer than this is slow, and counts as taking just that; with several processes, which share
# searches but not sweeps, so many times longer. What other searches take can be counted, and shades of slow ones are not told
# apart: two runs are to do the same.
_SLOW_SEARCH = 1e-2
# Planes kept for all examples may take so much memory; beyond, cuts, which are sums of planes, are kept instead.
_MOST_BYTES = 4e9
_BYTES_PER_TERM = 48
_KEPT_PLANES = 10
# With an exact kernel block-dual comes back to columns of the matrix: it is the choice where this share of them can be kept, or,
# where examples are of many rows, whose planes move few columns at a time but do so in every sweep, all of them.
_SHARE_OF_COLUMNS = 0.25
# For single rows it also is where the core computes columns and cuts would not leave most values out: the mean of k(x, z) over
# that of k(x, x) is above this, of two classes and of more,
_SMALL_VALUES, _TINY_VALUES = 0.02, 0.002
# or cuts would be many: C times k(x, x) is above this.
_LARGE = 25.0
# Sequences under such a C crawl where few features have the kernel's values as products, unless these have so few weights that
# planes are moved together in no time. (Of many rows they are not made, and count as more.)
_QUICK_WEIGHTS = 256
# One-slack is the choice for no more examples than this with no more weights than that: cuts are few then, and no time counts.
_FEW_EXAMPLES, _FEW_WEIGHTS = 200, 64
# The weights may be more where examples are single rows; with a kernel the examples must be fewer, and graphs, whose searches
# take long, fewer still.
_NOT_MANY_WEIGHTS, _VERY_FEW_EXAMPLES, _FEW_GRAPHS = 1000, 50, 20
# With a kernel, rounding stops rows that are moved by pairs where C times k(x, x) is larger.
_LARGEST = 1e9
# Sequences with more places have one block each under block-dual, and cuts do at least as well.
_LONG_EXAMPLE = 2000.0
# Exact training takes about so many values for each pair of rows; what is likely to take more than so many seconds is left to
# samples.
_PASSES, _LONGEST = 5.0, 3600.0


@dataclass(frozen=True)
class Choice:
    """The chosen solver with its options, and why."""

    solver: str
    reason: str
    options: dict[str, Any]
    oracle_seconds: float | None = None
    is_interrupted: bool = False  # by Ctrl-C, when the oracle was measured

    def record(self) -> dict[str, Any]:
        """Return what the first record of the history says of it."""
        return {
            "solver": self.solver,
            "reason": self.reason,
            "solver_options": dict(self.options),
            "oracle_seconds": self.oracle_seconds,
        }


def choose_by_options(solvers: Mapping[str, type[Solver]], request: Request) -> Choice:
    """Return the first solver in the order of preference that minimises the loss, knows all options and fits the model."""
    given, loss, abilities = dict(request.options or {}), request.loss, request.abilities
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
    C: float,
    *,
    can_sample: bool = False,
    max_time: float | None = None,
    seconds_left: float | None = None,
) -> Choice:
    """Return the choice for this problem: cuts where it is small, or where the planes of all examples would not fit in memory.

    With an exact kernel, cuts of samples where ``can_sample`` and exact ones would take too long.
    """
    if can_sample and loss == "hinge" and not problem.has_vectors and not problem.is_small:
        sampled = _with_samples(problem, max_time)
        if sampled is not None:
            return sampled
    if choice.solver != "block-dual" or len(problem.searched_ids) == 0:
        return choice
    has_free_choice = loss == "hinge" and not choice.options
    if has_free_choice:
        if _are_few(problem):
            reason = (
                "examples and weights are few, and cuts depend neither on chance nor, but for rounding, on their order"
            )
            return _with_defaults(Choice("one-slack", reason, {}))
        if problem.rows_per_example > _LONG_EXAMPLE:
            reason = (
                "examples are so long that one block for each of them does not get far; cuts are sums over all of them"
            )
            return _with_defaults(Choice("one-slack", reason, {}))
    if not problem.has_vectors:
        return _with_kernel(choice, problem, loss, C)
    choice, n_terms = choose_by_searches(choice, problem, seconds_left)
    n_bytes = problem.n_examples * n_terms * _KEPT_PLANES * _BYTES_PER_TERM
    if has_free_choice and n_bytes > _MOST_BYTES:
        reason = f"planes of all examples would take about {n_bytes / 1e9:.0f} GB; a cut takes a sum of them"
        return _with_defaults(Choice("one-slack", reason, {}, choice.oracle_seconds))
    return choice


def choose_by_searches(choice: Choice, problem: Problem, seconds_left: float | None) -> tuple[Choice, float]:
    """Return the choice with what searches of the first examples tell block-dual, and the length of a plane's code, or 0."""
    n_at_once = problem.n_jobs if problem.searches_in_python else 1
    ids = problem.searched_ids[: _PROBED * n_at_once]
    if choice.solver != "block-dual" or not problem.has_vectors or len(ids) == 0:
        return choice, 0.0
    try:
        with _core.Deadline(seconds_left):
            seconds, n_terms = _probe(problem, ids, n_at_once)
    except _core.OutOfTime:
        return choice, 0.0
    except KeyboardInterrupt:
        return replace(choice, is_interrupted=True), 0.0
    reason, options = f"{choice.reason}; searching an example takes {seconds:.2g} s", choice.options
    if problem.searches_in_python and seconds > n_at_once * _SLOW_SEARCH and "search_seconds" not in options:
        reason += ", as long as many sweeps"
        options = {**options, "search_seconds": _SLOW_SEARCH}
    return Choice(choice.solver, reason, options, seconds), n_terms


def choose_by_planes(solver: str, solvers: Mapping[str, type[Solver]], request: Request) -> Choice | None:
    """Return the solver that found the planes of an earlier run if it can go on with this loss and these options; else None."""
    if solver not in solvers or not solvers[solver].suits(request.loss, request.abilities):
        return None
    given = dict(request.options or {})
    if not set(given) <= set(solvers[solver].options):
        return None
    return _with_defaults(Choice(solver, "the planes to go on from are its", given))


def _are_few(problem: Problem) -> bool:
    if problem.searches_graphs:
        return problem.n_examples <= _FEW_GRAPHS and problem.n_weights <= _FEW_WEIGHTS
    if not problem.is_small:
        return False
    if not problem.has_vectors:
        return problem.n_examples <= _VERY_FEW_EXAMPLES
    most_weights = _NOT_MANY_WEIGHTS if problem.has_row_labels else _FEW_WEIGHTS
    return problem.n_examples <= _FEW_EXAMPLES and problem.n_weights <= most_weights


def _probe(problem: Problem, ids: IntArray, n_at_once: int) -> tuple[float, float]:
    """Return the seconds of a search and the length of the code of a plane, by the first examples at w = 0."""
    weights, n_terms, n_probed, seconds = problem.zero_weights(), 0, 0, 0.0
    # Few at first: where they take long they tell enough, but the very first may have to load and compile things.
    for some in (ids[:n_at_once], ids[n_at_once : 2 * n_at_once], ids[2 * n_at_once :]):
        # Processes get several together, because this one would take care of a single one itself.
        is_left_over = len(some) == 1 < min(n_at_once, len(ids))
        if len(some) == 0 or is_left_over or (n_probed > n_at_once and seconds > _LONG_PROBE):
            break
        found, seconds = problem.timed_search(some, weights)
        n_probed += len(some)
        n_terms += sum(len(found.code(k)) for k in range(len(found)))
    return seconds, n_terms / n_probed


def _with_samples(problem: Problem, max_time: float | None) -> Choice | None:
    """Return sampled cuts where the kernel values of an exact method are too many for the time there is; else None."""
    n_values = (1.0 if problem.keeps_values else _PASSES) * float(problem.n_kernel_rows) ** 2
    seconds = n_values * problem.seconds_per_value
    if seconds <= (_LONGEST if max_time is None else max_time):
        return None
    time_there_is = f"{_LONGEST / 60:.0f} minutes" if max_time is None else f"max_time={max_time:g} s"
    reason = (
        f"exact training would take about {n_values:.1g} kernel values, more than {time_there_is} are good for: cuts of samples "
        "take fewer, and leave the dual loose"
    )
    return Choice("sampled-cuts", reason, {})


def _with_kernel(choice: Choice, problem: Problem, loss: str, C: float) -> Choice:
    """Return block-dual where the columns of the kernel matrix that it comes back to fit in memory, else cuts, which need few."""
    share = problem.kept_columns
    if loss == "hinge" and not choice.options:
        if not problem.has_row_labels and _are_cuts_few(problem, C):
            reason = "few features have the kernel's values as products, and many sequences pull at each: few cuts are enough"
            return _with_defaults(Choice("one-slack", reason, {}))
        if share < _columns_wanted(problem, C):
            reason = f"{share:.0%} of the columns of the kernel matrix fit in kernel_cache; cuts ask for fewer of them"
            return _with_defaults(Choice("one-slack", reason, {}))
        if C * problem.largest_square > _LARGEST:
            reason = (
                f"C times k(x, x) is {C * problem.largest_square:.1g}: rounding stops rows that are moved by themselves"
            )
            return _with_defaults(Choice("one-slack", reason, {}))
    return Choice(choice.solver, f"{choice.reason}; {share:.0%} of its columns fit in kernel_cache", choice.options)


def _are_cuts_few(problem: Problem, C: float) -> bool:
    """Return whether sweeps over sequences would crawl under a kernel, and to move all planes together would take long."""
    # A function is not asked for values that training does not need.
    crawls = problem.computes_values and C * problem.largest_square > _LARGE and problem.has_few_features
    return crawls and problem.n_joint_weights > _QUICK_WEIGHTS


def _columns_wanted(problem: Problem, C: float) -> float:
    """Return the share of the columns that block-dual should be able to keep."""
    if not problem.has_row_labels:
        return 1.0
    small = _SMALL_VALUES if problem.has_signs else _TINY_VALUES
    is_cheap = problem.computes_values and (problem.mean_value > small or C * problem.largest_square > _LARGE)
    return 0.0 if is_cheap else _SHARE_OF_COLUMNS


def _with_defaults(choice: Choice) -> Choice:
    """Stabilise cutting planes unless the options say otherwise, leave no cache for it or ask for cuts that it would spare."""
    is_left = choice.options.get("cache_size") == 0 or "cuts_per_iteration" in choice.options
    if choice.solver != "one-slack" or is_left:
        return choice
    return Choice(choice.solver, choice.reason, {"stabilization": "auto", **choice.options}, choice.oracle_seconds)
