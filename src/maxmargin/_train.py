"""Training without scikit-learn: a model, data, a solution, or one for each of many C."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._parameters import check_bool, check_training, effective_n_jobs, generator
from maxmargin._result import Solution
from maxmargin._warm_start import Origins, Planes
from maxmargin.problems.base import Problem
from maxmargin.solvers import SOLVERS, make_solver, settle_solver
from maxmargin.solvers.base import Record, Request, Solver, Task
from maxmargin.solvers.driver import INTERRUPTED, PrecisionLost, run


class Trainable(Protocol):
    """What training asks of a model, built in or a user's."""

    @property
    def abilities(self) -> frozenset[str]:
        """Which searches the model offers."""

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> Problem:
        """Return the training problem of this model on these data."""


def train(
    model: Trainable,
    X: Any,
    Y: Any,
    C: float = 1.0,
    *,
    solver: str = "auto",
    loss: str = "hinge",
    rescaling: str = "margin",
    tol: float = 1e-3,
    max_iter: int | None = 10_000,
    max_time: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    verbose: int = 0,
    solver_options: Mapping[str, Any] | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
    planes: Planes | None = None,
    keep_planes: bool = False,
) -> Solution:
    r"""Train a model to a certified duality gap.

    .. math::

        \min_w \; \tfrac12 \lVert w \rVert^2 + C \sum_i s_i H_i(w)

    with :math:`H_i(w) = \max_y \Delta(y_i, y) - w \cdot (\Psi(x_i, y_i) - \Psi(x_i, y))` under margin rescaling and
    :math:`\max_y \Delta(y_i, y) (1 - w \cdot (\Psi(x_i, y_i) - \Psi(x_i, y)))` under slack rescaling; ``squared_hinge`` has
    :math:`H_i^2` in its place.

    Parameters
    ----------
    model : Model or built-in model
        What is trained: a subclass of :class:`maxmargin.Model` or one of :mod:`maxmargin.models`.
    X, Y : sequences
        Inputs and true outputs, as the model takes them. Built-in models take numbers for labels, where the estimators take
        anything: ``Binary`` rows and −1 or +1, ``Multiclass`` rows and 0 … k − 1, ``Chain`` a list of matrices (or
        :class:`maxmargin.models.Sequences`) and a list of arrays of 0 … k − 1, one number for each row.
    C : float, default 1.0
        Weight of the sum of slacks (not their mean: other tools' C' is n·C). The longest step of ``"mira"``, where infinity is
        no bound; ``"perceptron"`` has none.
    solver : str, default "auto"
        The name of one; ``"auto"`` chooses, by default ``"block-dual"``, and says why in the first record of the history.
    loss : {"hinge", "squared_hinge"}
        What a slack costs.
    rescaling : {"margin", "slack"}
        How the loss enters the constraint.
    tol : float, default 1e-3
        Stop when primal − dual ≤ tol · primal, verified by an exact pass.
    max_iter, max_time : int, float or None
        Stop after so many iterations or seconds in any case, with a ConvergenceWarning.
    sample_weight : array of float, optional
        s_i ≥ 0.
    n_jobs : int or None
        Threads (built-in models) or processes (models in Python); None is 1, −1 all processors.
    random_state : int, Generator or None
        Seed for solvers that visit examples in random order; None is 0, so that results repeat.
    verbose : int, default 0
        1: a line per exact pass; 2: a line per iteration.
    solver_options : dict, optional
        Options of the solver; an unknown key is an error that lists the known ones.
    callback : callable, optional
        Called with each history record; a true return value ends training. The record is the history's own: what the function
        changes in it stays changed.
    planes : object, optional
        ``Solution.planes`` of an earlier run to continue from. C, tol and, where the solver minimises both, loss may differ, and
        X, Y and sample_weight may have more examples behind those of that run; these, model, rescaling and solver (which 'auto'
        takes from the planes) must be the same, because the certificate rests on that: planes of another problem are refused. So
        are those of a model in Python that writes to its own attributes while it searches: it is not the same afterwards.
    keep_planes : bool, default False
        Whether the solution keeps what a later run can continue from; it may be much larger than the weights. Model and data
        must have pickles then, by which :func:`train` knows them again. Planes themselves have none: they live as long as the
        process.

    Returns
    -------
    Solution
        The weights with the lowest exactly evaluated primal, their certificate and the history.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> model = mm.models.Multiclass(3)
    >>> solution = mm.train(model, X, [0, 1, 2], C=10.0)
    >>> solution.certificate.relative_gap <= 1e-3
    True
    >>> model.predict(X, solution.w).tolist()
    [0, 1, 2]

    ``w`` is one vector in the core's layout; ``blocks`` names its parts.

    >>> model.blocks(solution.w)["coef"].shape  # classes × features
    (3, 2)

    Training again with another C goes faster from the planes of the first run:

    >>> first = mm.train(model, X, [0, 1, 2], C=1.0, keep_planes=True)
    >>> second = mm.train(model, X, [0, 1, 2], C=10.0, planes=first.planes)
    >>> second.certificate.converged
    True
    """
    (solution,) = solutions_at(
        [C],
        model,
        X,
        Y,
        solver=solver,
        loss=loss,
        rescaling=rescaling,
        tol=tol,
        max_iter=max_iter,
        max_time=max_time,
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        random_state=random_state,
        verbose=verbose,
        solver_options=solver_options,
        callback=callback,
        planes=planes,
        keep_planes=keep_planes,
    )
    return solution


def solutions_at(
    Cs: Sequence[float],
    model: Trainable,
    X: Any,
    Y: Any,
    *,
    solver: str = "auto",
    loss: str = "hinge",
    rescaling: str = "margin",
    tol: float = 1e-3,
    max_iter: int | None = 10_000,
    max_time: float | None = None,
    sample_weight: ArrayLike | None = None,
    n_jobs: int | None = None,
    random_state: int | np.random.Generator | None = None,
    verbose: int = 0,
    solver_options: Mapping[str, Any] | None = None,
    callback: Callable[[dict[str, Any]], object] | None = None,
    planes: Planes | None = None,
    keep_planes: bool = False,
) -> Iterator[Solution]:
    """Yield the solution for each C in turn, each from where the one before it ended; see :func:`train`.

    Model and data are bound once. Only the last solution keeps planes. An interrupt ends the sequence after the solution that it
    struck.
    """
    check_model(model)
    for C in Cs:
        check_training(C=C, tol=tol, max_iter=max_iter, max_time=max_time, verbose=verbose)
    if callback is not None and not callable(callback):
        raise ValueError(f"callback must be a function of a history record or None, found {callback!r}.")
    rng = generator(random_state)
    check_bool("keep_planes", keep_planes)
    request = Request(solver, loss, rescaling, model.abilities, solver_options)
    chosen = make_solver(request)
    if len(Cs) > 1:
        _check_keeps_planes(chosen, request)
    for C in Cs:
        chosen.check_C(C)
    _check_planes(planes, chosen.name)
    # What is made of the data, such as low-rank features, and the choice of a solver count as time of the first C.
    begun = time.perf_counter()
    problem = model.bind(X, Y, sample_weight=sample_weight, rescaling=rescaling, n_jobs=effective_n_jobs(n_jobs))
    try:
        problem.prepare(max(Cs), _closest(tol, chosen))
        settle = functools.partial(
            settle_solver,
            *(request, chosen, problem, max(Cs)),
            max_time=max_time,
            seconds_left=None if max_time is None else max(0.0, begun + max_time - time.perf_counter()),
            needs_planes=keep_planes or planes is not None or len(Cs) > 1,
        )
        origins = functools.partial(Origins, model, X, Y, problem, rescaling)
        chosen, choice, content, origin = _settle_with_planes(settle, origins, problem, planes, keep_planes=keep_planes)
        # Another solver may be meant to come closer.
        tolerance = _closest(tol, chosen)
        problem.prepare(max(Cs), tolerance)
        for k, C in enumerate(Cs):
            if k > 0:
                problem.begin_anew()
                begun = time.perf_counter()
            deadline = None if max_time is None else begun + max_time
            is_last = k + 1 == len(Cs)
            parameters: dict[str, Any] = {
                "max_iter": max_iter,
                "max_time": max_time,
                "verbose": verbose,
                "callback": callback,
                "keep_planes": keep_planes and is_last and origin is not None,
            }
            task = Task(problem, float(C), loss, tol, rng, deadline)
            resumes = k > 0 and not chosen.was_broken_off
            solution = _run_precisely(
                chosen, task, tolerance, content if k == 0 else None, resumes=resumes, **parameters
            )
            if solution.history:
                solution.history[0].update(choice)
            if solution.planes is not None and origin is not None:
                solution.planes = Planes(origin, solution.planes, problem.n_examples)
            yield solution
            if solution.certificate.message == INTERRUPTED:
                return
    finally:
        problem.close()


def _closest(tol: float, solver: Solver) -> float:
    """Return how closely the problem is to be solved: by ``tol``, or by the solver's own rule where that asks for more."""
    return min(tol, solver.option.get("epsilon") or tol)


def _check_keeps_planes(chosen: Solver, request: Request) -> None:
    """Refuse a path with a solver whose runs cannot go on from each other."""
    if chosen.keeps_planes():
        return
    able = ", ".join(
        f"'{name}'"
        for name, kind in SOLVERS.items()
        if kind.keeps_planes() and kind.suits(request.loss, request.abilities)
    )
    raise ValueError(
        f"solver '{chosen.name}' keeps no planes for the next C to continue from: for a path use {able}, or call train for "
        "each C."
    )


def _settle_with_planes(
    settle: Callable[..., tuple[Solver, Record]],
    origins: Callable[[Solver], Origins],
    problem: Problem,
    planes: Planes | None,
    *,
    keep_planes: bool,
) -> tuple[Solver, Record, Any, dict[str, Any] | None]:
    """Return the solver, what the history says of the choice, what it goes on from, and by what its planes are known again.

    ``settle`` chooses a solver for the problem, by that of the planes where it is told; ``origins`` says what planes of a solver
    must come from.
    """
    is_outgrown = planes is not None and planes.is_outgrown_by(problem)
    found_planes = None if planes is None or is_outgrown else planes.origin.get("solver")
    chosen, choice = settle(found_planes=found_planes, probes=False)
    content, origin = origins(chosen).match(planes, keeps=keep_planes)
    if found_planes is not None and content is not None:
        chosen, choice = settle(found_planes=found_planes)
    elif found_planes is not None and not chosen.is_interrupted:
        # What another problem left behind decides nothing.
        chosen, choice = settle()
        content, origin = origins(chosen).match(planes, keeps=keep_planes)
    return chosen, choice, content, origin


def _run_precisely(
    chosen: Solver, task: Task, tolerance: float, planes: Any, *, resumes: bool, **parameters: Any
) -> Solution:
    """Run the solver, and anew in double precision where float32 proves too coarse."""
    try:
        return run(chosen, task, planes=planes, resumes=resumes, **parameters)
    except PrecisionLost:
        task.problem.double()
        task.problem.prepare(task.C, tolerance)
        return run(chosen, task, **parameters)


def _check_planes(planes: Any, solver: str) -> None:
    if isinstance(planes, Solution):
        raise TypeError(
            "planes is a Solution; give its planes, planes=solution.planes, of a run with keep_planes=True."
        )
    if planes is not None and not isinstance(planes, Planes):
        raise TypeError(f"planes must come from a Solution of solver '{solver}', found {type(planes).__name__}.")


def check_model(model: Any) -> None:
    """Refuse what is not a model, saying what to give instead."""
    if isinstance(model, type):
        raise TypeError(f"model is the class {model.__name__}; give an instance of it: {model.__name__}(…).")
    if not callable(getattr(model, "bind", None)):
        raise TypeError(
            f"model is of type {type(model).__name__}; expected an instance of a subclass of maxmargin.Model or one of "
            "maxmargin.models. (Estimators are trained by their fit.)"
        )
