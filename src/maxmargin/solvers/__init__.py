"""The training algorithms, by name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from maxmargin.problems.base import Problem
from maxmargin.solvers.auto import choose_by_options, choose_by_planes, choose_by_problem, choose_by_searches
from maxmargin.solvers.base import Record, Request, Solver
from maxmargin.solvers.bcfw import BCFW
from maxmargin.solvers.block_dual import BlockDual
from maxmargin.solvers.dcd import CPD, DCD, DCDLight
from maxmargin.solvers.line_search import LineSearch
from maxmargin.solvers.mira import Mira
from maxmargin.solvers.n_slack import NSlack
from maxmargin.solvers.one_slack import OneSlack
from maxmargin.solvers.perceptron import Perceptron
from maxmargin.solvers.sampled_cuts import SampledCutsSolver
from maxmargin.solvers.sdm import SDM
from maxmargin.solvers.sgd import SGD

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        BlockDual,
        OneSlack,
        NSlack,
        LineSearch,
        SampledCutsSolver,
        SDM,
        DCD,
        DCDLight,
        CPD,
        BCFW,
        Perceptron,
        Mira,
        SGD,
    )
}


def make_solver(request: Request) -> Solver:
    """Return the solver asked for after checking that it fits the loss and that the model can do what it needs.

    ``"auto"`` is what :mod:`maxmargin.solvers.auto` chooses by the loss and the options alone.
    """
    name, options = request.solver, request.options
    loss, rescaling, abilities = request.loss, request.rescaling, request.abilities
    if options is not None and not (isinstance(options, Mapping) and all(isinstance(key, str) for key in options)):
        raise TypeError(f"solver_options must be a dict of option names and values, found {options!r}.")
    if not isinstance(name, str):
        raise TypeError(f"solver must be a name, found {name!r}.")
    if loss not in ("hinge", "squared_hinge"):
        raise ValueError(f"loss must be 'hinge' or 'squared_hinge', found {loss!r}.")
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling must be 'margin' or 'slack', found {rescaling!r}.")
    if name == "auto":
        choice = choose_by_options(SOLVERS, request)
        name, options = choice.solver, choice.options
        _check_options_of_auto(SOLVERS[name], request)
    if name not in SOLVERS:
        known = ", ".join(f"'{key}'" for key in ["auto", *SOLVERS])
        raise ValueError(f"solver must be one of {known}, found {name!r}.")
    chosen = SOLVERS[name]
    _check_objective(chosen, loss, rescaling, abilities)
    solver = chosen(options)
    needed = solver.needs if rescaling == "margin" else (solver.needs - {"max_oracle"}) | {"slack_oracle"}
    missing = sorted(needed - abilities)
    if missing:
        if missing[0] in ("vectors", "blocks"):
            able = _suiting(loss, abilities)
            raise ValueError(_NO_VECTORS.format(name=name, able=_either(able) if able else "no solver"))
        raise ValueError(f"solver '{name}' with rescaling='{rescaling}' needs {_DESCRIPTIONS[missing[0]]}.")
    return solver


def _check_options_of_auto(chosen: type[Solver], request: Request) -> None:
    """Refuse options that no solver has that ``"auto"`` takes, naming the solvers that would do, or those that have each."""
    options = request.options or {}
    if set(options) <= set(chosen.options):
        return
    owners = {option: [key for key, kind in SOLVERS.items() if option in kind.options] for option in sorted(options)}
    unknown = [option for option, keys in owners.items() if not keys]
    if unknown:
        chosen({unknown[0]: options[unknown[0]]})  # says which there are
    named = ", ".join(map(repr, owners))
    refusals: list[ValueError] = []
    able = []
    for key in (key for key, kind in SOLVERS.items() if set(options) <= set(kind.options)):
        try:
            make_solver(replace(request, solver=key))
            able.append(key)
        except ValueError as error:
            refusals.append(error)
    if able:
        raise ValueError(
            f"solver_options: no solver that 'auto' takes here has all of {named}; {_either(able)} has: name the solver."
        )
    if refusals:
        raise refusals[0]
    each = ", ".join(f"'{option}' is an option of {_either(keys)}" for option, keys in owners.items())
    raise ValueError(f"solver_options: no solver has all of {named}: {each}.")


def _check_objective(chosen: type[Solver], loss: str, rescaling: str, abilities: frozenset[str]) -> None:
    """Refuse a loss or a rescaling that is not the solver's, naming the solvers that would do."""
    able = _suiting(loss, abilities)
    if loss not in chosen.losses and (chosen.losses or loss != "hinge"):
        does = f"minimises the {' and '.join(sorted(chosen.losses))} loss" if chosen.losses else "minimises no loss"
        fitting = f"use {_either(able)}" if able else "there is no solver with this kernel"
        raise ValueError(f"solver '{chosen.name}' {does}; for loss='{loss}' {fitting}.")
    if rescaling not in chosen.rescalings:
        fitting = _either(key for key in able if rescaling in SOLVERS[key].rescalings)
        does = "does not rescale slacks" if chosen.losses else "has no slacks to rescale"
        raise ValueError(f"solver '{chosen.name}' {does}; for rescaling='{rescaling}' use {fitting}.")


def _suiting(loss: str, abilities: frozenset[str]) -> list[str]:
    """Return the solvers for a loss and a kind of features."""
    return [key for key, solver in SOLVERS.items() if solver.suits(loss, abilities)]


def _either(names: Iterable[str]) -> str:
    *others, last = (f"'{name}'" for name in names)
    return f"{', '.join(others)} or {last}" if others else last


def settle_solver(
    request: Request,
    solver: Solver,
    problem: Problem,
    C: float,
    *,
    max_time: float | None = None,
    seconds_left: float | None = None,
    needs_planes: bool = False,
    found_planes: str | None = None,
    probes: bool = True,
) -> tuple[Solver, Record]:
    """Return the solver for this problem and what the history says of the choice: nothing where it was the caller's, ``solver``.

    ``needs_planes`` says that another run is to go on from this one's planes; ``found_planes`` is the solver of those that this
    one goes on from. With them, ``probes`` says whether to measure searches.
    """
    if request.solver != "auto":
        return solver, {}
    choice = None if found_planes is None else choose_by_planes(found_planes, SOLVERS, request)
    if choice is not None and probes:
        choice, _ = choose_by_searches(choice, problem, seconds_left)
    if choice is None:
        by_options = choose_by_options(SOLVERS, request)
        samples = SOLVERS["sampled-cuts"]
        can_sample = not request.options and not needs_planes and request.rescaling in samples.rescalings
        choice = choose_by_problem(
            by_options, problem, request.loss, C, can_sample=can_sample, max_time=max_time, seconds_left=seconds_left
        )
    settled = SOLVERS[choice.solver](choice.options)
    settled.is_interrupted = choice.is_interrupted
    return settled, choice.record()


_NO_VECTORS = (
    "solver '{name}' needs features as vectors, which this kernel does not have; with it there is {able} for this loss. "
    "('block-dual' takes the kernels of built-in models.) With kernel_approximation='low-rank', or LowRank in a "
    "model, all solvers run, and as many components as rows make it exact; a precomputed kernel cannot be approximated."
)
_DESCRIPTIONS = {
    "max_oracle": "a model with loss_augmented_argmax(x, y, w), or outputs(x) to enumerate",
    "slack_oracle": (
        "a model with slack_rescaled_argmax(x, y, w), or outputs(x) to enumerate (graphs: inference 'auto' or 'enumeration'); "
        "every solver runs this model with rescaling='margin' if it has loss_augmented_argmax"
    ),
    "kernel": (
        "a model with an exact kernel, as Binary(kernel=Kernel('rbf')) or a KernelModel: it saves kernel values, and without a "
        "kernel, or with a low-rank one, there are none to save; use another solver"
    ),
    "m_best": "for k_best > 1 a model with m_best(x, w, m), or outputs(x) to enumerate",
}
