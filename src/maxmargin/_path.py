"""One model over a grid of C: each point from where the one before it ended."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from maxmargin._parameters import is_integer, is_number
from maxmargin._result import Solution
from maxmargin._train import Trainable, solutions_at
from maxmargin._warm_start import Planes
from maxmargin._warnings import warn_caller
from maxmargin.problems.base import FloatArray

_Point = TypeVar("_Point")


@dataclass(repr=False, eq=False)
class Path(Sequence[Solution]):
    """Solutions over a grid of C, in the order in which it was given.

    Attributes
    ----------
    Cs : ndarray of shape (n_points,)
        The values of C.
    solutions : list of Solution
        One for each; indexing or looping over the path gives them too.
    w : ndarray of shape (n_points, n_weights)
        The weights of all of them, one row for each: a copy.
    """

    Cs: FloatArray
    solutions: list[Solution]

    @property
    def w(self) -> FloatArray:
        """The weights of all solutions, points × weights."""
        return np.stack([solution.w for solution in self.solutions])

    def __repr__(self) -> str:
        if not self.solutions:
            return "Path of no solutions"
        n_converged = sum(solution.certificate.converged for solution in self.solutions)
        return f"Path of {len(self)} solutions, C from {self.Cs.min():g} to {self.Cs.max():g}, {n_converged} converged"

    def __len__(self) -> int:
        return len(self.solutions)

    @overload
    def __getitem__(self, k: int) -> Solution: ...
    @overload
    def __getitem__(self, k: slice) -> list[Solution]: ...
    def __getitem__(self, k: int | slice) -> Solution | list[Solution]:
        return self.solutions[k]


def path(
    model: Trainable,
    X: Any,
    Y: Any,
    Cs: Sequence[float] | FloatArray,
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
) -> Path:
    r"""Train a model for each C of a grid, each from where the one before it ended.

    .. math::

        \min_w \; \tfrac12 \lVert w \rVert^2 + C \sum_i s_i H_i(w) \qquad \text{for each } C

    Data are read once. The grid is gone through from the smallest C up, which takes less than separate runs do, and each point
    is certified on its own like a single run of :func:`train`.

    Parameters
    ----------
    model : Model or built-in model
        What is trained.
    X, Y : sequences
        Inputs and true outputs, as for :func:`train`.
    Cs : array of float
        The values of C, in any order.
    solver : str, default "auto"
        As for :func:`train`; it must be one that keeps planes.
    loss, rescaling, tol, sample_weight, n_jobs, random_state, verbose, solver_options
        As for :func:`train`.
    max_iter, max_time : int, float or None
        As for :func:`train`, for each point; ``max_iter`` counts the records of its history.
    callback : callable, optional
        Called with each history record; a true return value ends its point.
    planes : object, optional
        What the smallest C continues from, as for :func:`train`.
    keep_planes : bool, default False
        Whether the solution of the largest C, the last of equal ones, keeps its planes.

    Returns
    -------
    Path
        ``Cs``, ``solutions`` and ``w``. After Ctrl-C it has the points that were reached, with a warning.

    See Also
    --------
    PathCV : Choose C by held-out data.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> X, y = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), [0, 1, 2]
    >>> path = mm.path(mm.models.Multiclass(3), X, y, np.geomspace(0.01, 10.0, 4))
    >>> len(path.w)
    4
    >>> [solution.certificate.relative_gap <= 1e-3 for solution in path]
    [True, True, True, True]
    """
    run = functools.partial(
        solutions_at,
        model=model,
        X=X,
        Y=Y,
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
    return Path(*along(check_grid(Cs), run))


def along(grid: FloatArray, points_at: Callable[[list[float]], Iterable[_Point]]) -> tuple[FloatArray, list[_Point]]:
    """Return the points of a path in the order of its grid, which is gone through from the smallest C up, and their C.

    After an interrupt some are missing, and a warning says so.
    """
    order = np.argsort(grid, kind="stable")
    found = dict(zip(order.tolist(), points_at(grid[order].tolist()), strict=False))
    if len(found) < len(grid):
        warn_caller(f"the path was interrupted at point {len(found)} of {len(grid)}.")
    reached = sorted(found)
    return grid[reached], [found[k] for k in reached]


def check_grid(Cs: Any) -> FloatArray:
    """Return values of C as an array, after checking that each can be one."""
    if isinstance(Cs, (str, bytes)) or np.ndim(Cs) == 0:
        raise TypeError(f"Cs must be a list of values of C, found {Cs!r}.")
    values = list(Cs)
    if not values:
        raise ValueError("Cs is empty: a path needs at least one value of C.")
    for k, C in enumerate(values):
        if not is_number(C) or C <= 0:
            raise ValueError(f"Cs[{k}] must be a positive number, found {C!r}.")
    return np.array(values, dtype=np.float64)


def default_grid(Cs: Any, largest: float) -> FloatArray:
    """Return the grid that ``Cs`` means: so many values from a thousandth of ``largest`` up to it, or those given."""
    if is_integer(Cs, 1):
        return np.geomspace(largest / 1000.0, largest, int(Cs)) if Cs > 1 else np.array([float(largest)])
    if np.ndim(Cs) == 0:
        kind = ValueError if is_number(Cs) else TypeError
        raise kind(f"Cs must be an integer ≥ 1 or a list of values of C, found {Cs!r}.")
    return check_grid(Cs)
