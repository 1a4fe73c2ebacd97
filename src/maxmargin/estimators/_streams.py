"""What partial_fit has in common: when there is one, and what must stay the same from call to call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodType
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from maxmargin.solvers import SOLVERS
from maxmargin.solvers._online import OnlineSolver, OnlineState

_Method = TypeVar("_Method", bound=Callable[..., Any])


class online_only(Generic[_Method]):
    """A method that estimators have only with an online solver: ``hasattr`` is False with any other."""

    def __init__(self, method: _Method) -> None:
        self._method = method
        functools.update_wrapper(self, method)  # type: ignore[arg-type]

    def __get__(self, estimator: Any, kind: type | None = None) -> _Method:
        if estimator is None:
            return self._method
        solver = SOLVERS.get(estimator.solver) if isinstance(estimator.solver, str) else None
        if solver is None or not issubclass(solver, OnlineSolver):
            online = ", ".join(f"'{name}'" for name, other in SOLVERS.items() if issubclass(other, OnlineSolver))
            raise AttributeError(
                f"{self._method.__name__} needs a solver that learns from one example at a time, one of {online}; solver is "
                f"{estimator.solver!r}."
            )
        return MethodType(self._method, estimator)  # type: ignore[return-value]


def check_continues(stream: OnlineState, solver: str, n_weights: int) -> None:
    """Refuse to go on with another solver or for another model."""
    if stream.solver != solver:
        raise ValueError(
            f"solver is '{solver}', but partial_fit began with '{stream.solver}': clone the estimator, or call fit, to begin "
            "anew."
        )
    if len(stream.weights.exact) != n_weights:
        raise ValueError(
            f"the model has {n_weights} weights, but partial_fit began with {len(stream.weights.exact)}: parameters that "
            "shape the model must not change between calls."
        )


def check_same_classes(classes: list[Any], known: NDArray[Any]) -> None:
    """Refuse other classes than those of the first call."""
    if set(classes) != set(known.tolist()):
        raise ValueError(f"classes={classes!r} are not those of the first call to partial_fit, {known.tolist()!r}.")


def known_codes(y: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.int32]:
    """Return the number of each label among sorted classes."""
    codes = np.searchsorted(classes, y)
    unknown = (codes == len(classes)) | (classes[np.minimum(codes, len(classes) - 1)] != y)
    if unknown.any():
        i = int(np.argmax(unknown))
        raise ValueError(f"y[{i}] is {y[i : i + 1].tolist()[0]!r}, which is not one of classes={classes.tolist()!r}.")
    return codes.astype(np.int32)
