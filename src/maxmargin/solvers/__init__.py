"""The training algorithms, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maxmargin.problem import Problem
from maxmargin.solvers.auto import choose_by_options, choose_by_problem
from maxmargin.solvers.base import Record, Solver
from maxmargin.solvers.block_dual import BlockDual
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.line_search import LineSearch
from maxmargin.solvers.n_slack import NSlack
from maxmargin.solvers.one_slack import OneSlack

SOLVERS: dict[str, type[Solver]] = {solver.name: solver for solver in (BlockDual, OneSlack, NSlack, LineSearch, BCFW)}


def make_solver(
    name: str, loss: str, rescaling: str, abilities: frozenset[str], options: Mapping[str, Any] | None
) -> Solver:
    """Return the named solver after checking that it fits the loss and that the model can do what it needs.

    ``"auto"`` is what :mod:`maxmargin.solvers.auto` chooses by the loss and the options alone.
    """
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise TypeError(f"solver_options must be a dict of option names and values, found {options!r}.")
    if not isinstance(name, str):
        raise TypeError(f"solver must be a name, found {name!r}.")
    if loss not in ("hinge", "squared_hinge"):
        raise ValueError(f"loss must be 'hinge' or 'squared_hinge', found {loss!r}.")
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling must be 'margin' or 'slack', found {rescaling!r}.")
    if name == "auto":
        choice = choose_by_options(SOLVERS, loss, options)
        name, options = choice.solver, choice.options
    if name not in SOLVERS:
        known = ", ".join(f"'{key}'" for key in ["auto", *SOLVERS])
        raise ValueError(f"solver must be one of {known}, found {name!r}.")
    chosen = SOLVERS[name]
    if loss not in chosen.losses:
        fitting = " or ".join(f"'{key}'" for key, solver in SOLVERS.items() if loss in solver.losses)
        minimised = " and ".join(sorted(chosen.losses))
        raise ValueError(f"solver '{name}' minimises the {minimised} loss; for loss='{loss}' use {fitting}.")
    needed = chosen.needs if rescaling == "margin" else (chosen.needs - {"max_oracle"}) | {"slack_oracle"}
    missing = sorted(needed - abilities)
    if missing:
        raise ValueError(f"solver '{name}' with rescaling='{rescaling}' needs {_DESCRIPTIONS[missing[0]]}.")
    return chosen(options)


def settle_solver(
    name: str, solver: Solver, problem: Problem, loss: str, options: Mapping[str, Any] | None
) -> tuple[Solver, Record]:
    """Return the solver for this problem and what the history says of the choice: nothing where it was the caller's."""
    if name != "auto":
        return solver, {}
    choice = choose_by_problem(choose_by_options(SOLVERS, loss, options), problem, loss)
    settled = solver if choice.solver == solver.name else SOLVERS[choice.solver](choice.options)
    return settled, choice.record()


_DESCRIPTIONS = {
    "max_oracle": "a model with loss_augmented_argmax(x, y, w), or outputs(x) to enumerate",
    "slack_oracle": (
        "a model with slack_rescaled_argmax(x, y, w), or outputs(x) to enumerate; every solver runs this model with "
        "rescaling='margin' if it has loss_augmented_argmax"
    ),
}
