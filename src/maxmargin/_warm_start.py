"""What a later run continues from, and the proof that it is about the same problem.

Planes of another problem would give a dual that bounds nothing, without a sign of it. So planes carry the hashes of all that
they depend on: the model with its class, the data, the sample weights, the rescaling and the solver. C, the loss and tolerances
may change, and examples may join behind those of the earlier run: a plane belongs to one example, and a cut counts the new ones
at their truth, where neither loss nor features differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from maxmargin import _core
from maxmargin._parameters import is_integer
from maxmargin.kernels import Kernel, LowRank
from maxmargin.models import Binary, Chain, Multiclass, Pairwise, Sequences
from maxmargin.problems.base import Problem
from maxmargin.solvers.base import Solver

# The models whose planes a file may hold.
_BUILT_IN: dict[str, type] = {kind.__name__: kind for kind in (Binary, Multiclass, Chain, Pairwise)}


@dataclass(frozen=True)
class Planes:
    """Planes of one problem, as ``Solution.planes`` holds them.

    Attributes
    ----------
    origin : dict
        What they belong to, by name: hashes of the problem's parts, the model's class, and the solver.
    content : object
        What the solver needs.
    n_examples : int
        How many examples that problem has.
    is_hint : bool
        Whether a run on another problem, or on one that cannot be known again, may ignore them; else it is refused.
    """

    origin: dict[str, Any]
    content: Any = field(repr=False)
    n_examples: int = 0
    is_hint: bool = False

    def for_problem(self, origin: dict[str, Any], free: frozenset[str] = frozenset()) -> Any:
        """Return the content for a run on the problem of this origin; None for a hint of another one.

        A hint may differ in what is ``free``.
        """
        different = [name for name, value in origin.items() if self.origin.get(name) != value]
        if not different or (self.is_hint and free.issuperset(different)):
            return self.content
        if self.is_hint:
            return None
        if "solver" in different:
            raise ValueError(
                f"planes come from solver '{self.origin.get('solver')}'; solver '{origin['solver']}' cannot go on from them."
            )
        raise ValueError(
            f"planes belong to another problem: {' and '.join(different)} {'differs' if len(different) == 1 else 'differ'} from "
            "what they were found with, and the certificate would be wrong."
        )

    def is_outgrown_by(self, problem: Problem) -> bool:
        """Whether most examples are new, so that the solver of these planes, if they are a hint, need not be the one to go on."""
        return self.is_hint and 2 * self.n_examples < problem.n_examples

    def state(self) -> dict[str, Any]:
        """Return plain values and arrays, from which :meth:`from_state` makes the same planes in another process."""
        kind, parameters, function = self.origin["model"]
        if not isinstance(self.content, _core.PlaneBatch):
            raise ValueError(
                f"planes of solver '{self.origin['solver']}' cannot be saved; those of 'block-dual', 'n-slack', 'sdm', 'dcd', "
                "'dcd-light' and 'cpd' can: name one of them as solver."
            )
        name = kind.__name__
        if _BUILT_IN.get(name) is not kind or function is not None:
            raise ValueError(
                "planes that depend on a model or kernel of your own cannot be saved: when they are loaded, its code may be "
                "another."
            )
        arrays = {part: getattr(self.content, part)() for part in ("examples", "losses", "codes", "offsets", "alpha")}
        origin = {**self.origin, "model": (name, parameters)}
        return {"origin": origin, "n_examples": self.n_examples, "arrays": arrays}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Planes:
        """Return the planes that :meth:`state` was asked of; raise ValueError or KeyError if it does not fit together."""
        origin, n_examples = state["origin"], state["n_examples"]
        name, parameters = origin["model"]
        if name not in _BUILT_IN or not is_integer(n_examples, 1):
            raise ValueError(f"its planes are of a model {name!r} and {n_examples!r} examples")
        content = _core.PlaneBatch.from_arrays(**state["arrays"])
        return cls({**origin, "model": (_BUILT_IN[name], parameters, None)}, content, n_examples)

    def __reduce__(self) -> Any:
        """Refuse to be pickled, saying what to do instead."""
        raise TypeError(
            "planes cannot be pickled or copied. Set solution.planes = None to pickle a Solution; to keep a fitted estimator, "
            "use its save(path), which leaves planes out, or save(path, planes=True)."
        )


# What a hint is before there are planes.
NO_PLANES = Planes({}, None, is_hint=True)


class NoOriginError(ValueError):
    """A part of the problem has no hash, so that a later run could not know it again."""


class Origins:
    """What planes of a problem belong to, and of those that consist of its first examples only."""

    def __init__(self, model: Any, X: Any, Y: Any, problem: Problem, rescaling: str, solver: Solver) -> None:
        self._parts = model, X, Y, problem.sample_weight
        self._names = rescaling, solver.name
        self._may_grow = not problem.depends_on_all
        self._problem = problem

    def match(self, planes: Planes | None, *, keeps: bool) -> tuple[Any, dict[str, Any] | None]:
        """Return what to continue from, and the origin of the planes to keep; None where there is nothing."""
        if planes is None and not keeps:
            return None, None
        try:
            origin = self.of_first(self._problem.n_examples)
            if planes is None:
                return None, origin
            has_more = self._may_grow and 0 < planes.n_examples < self._problem.n_examples
            # Where planes are outputs, weights and features are computed from them anew, whatever they were.
            is_outputs = self._problem.planes_are_outputs and isinstance(planes.content, _core.PlaneBatch)
            free = frozenset({"X", "n_features"}) if is_outputs else frozenset[str]()
            return planes.for_problem(self.of_first(planes.n_examples) if has_more else origin, free), origin
        except NoOriginError:
            if planes is None or not planes.is_hint:
                raise
            return None, None

    def of_first(self, n: int) -> dict[str, Any]:
        """Return what planes of the problem of the first n examples belong to."""
        model, X, Y, weights = self._parts
        if n < self._problem.n_examples:
            X, Y = _first(X, n), _first(Y, n)
            weights = None if weights is None or np.all(weights[:n] == 1.0) else weights[:n]
        return origin_of(model, X, Y, weights, *self._names)


def origin_of(model: Any, X: Any, Y: Any, sample_weight: Any, rescaling: str, solver: str) -> dict[str, Any]:
    """Return what planes of this problem belong to; the model is bound to its data already."""
    # With numbers of features and the like as binding sets them, a model is the same before its first run and its second.
    attributes = {name: _plain(_without_function(value)) for name, value in vars(model).items() if name != "n_features"}
    parts = {"model": attributes, "X": X, "Y": Y, "sample_weight": sample_weight, "rescaling": rescaling}
    hashes = {name: _hash(name, part) for name, part in parts.items()}
    # The class itself: one that was edited and defined anew has the old one's name, and perhaps another loss.
    return {
        **hashes,
        "model": (type(model), hashes["model"], _function_of(model)),
        "n_features": getattr(model, "n_features", None),
        "solver": solver,
    }


def _function_of(model: Any) -> Any:
    """Return the kernel of a model where it is a function: one that was defined anew has the old one's hash."""
    kernel = getattr(model, "kernel", None)
    name = getattr(getattr(kernel, "kernel", kernel), "name", None)
    return name if callable(name) else None


def _without_function(part: Any) -> Any:
    """Return a kernel without its function, which is compared by itself and may have no pickle; anything else as it is."""
    if isinstance(part, LowRank):
        return replace(part, kernel=_without_function(part.kernel))
    return replace(part, name="linear") if isinstance(part, Kernel) and callable(part.name) else part


def _first(items: Any, n: int) -> Any:
    """Return the first n examples in the form in which all of them were given, or something that equals no data."""
    try:
        if isinstance(items, Sequences):
            return Sequences(items.rows[: items.offsets[n]], items.lengths[:n])
        is_matrix: bool = sp.issparse(items)
        rows = items.iloc if hasattr(items, "iloc") else items.tocsr() if is_matrix else items
        return rows[:n]
    except (TypeError, KeyError, IndexError, ValueError):
        return ()


def _hash(name: str, part: Any) -> str:
    from joblib import hash as hash_of  # type: ignore[import-untyped]  # a tenth of a second that few runs need

    try:
        return str(hash_of(_plain(part)))
    except Exception as error:  # whatever the pickling of user code raises
        # The first line, and no chain: joblib appends all that it was about to hash.
        reason = str(error.args[0] if error.args else type(error).__name__).partition("\n")[0]
        raise NoOriginError(
            f"planes of two runs are kept apart by pickles of their problems, and {name} has none: {reason}"
        ) from None


def _plain(part: Any) -> Any:
    """Return equal data in one form: arrays in C order, lists of numbers as arrays, sparse matrices as their CSR arrays."""
    if isinstance(part, frozenset):
        # Its order differs from process to process; joblib sorts sets only.
        return {"frozenset": set(part)}
    if type(part) in (np.ndarray, np.memmap):
        return np.asarray(part, order="C")
    if isinstance(part, (list, tuple)):
        return _plain_list(part)
    if isinstance(part, Sequences):
        return _plain(part.rows), part.offsets
    is_sparse: bool = sp.issparse(part)
    if not is_sparse:
        return part
    # Without what scipy remembers of them, which is not the same after every use, and in the integers of no one use.
    rows = part.tocsr()
    kind = np.int32 if rows.shape[1] <= np.iinfo(np.int32).max else np.int64
    return rows.shape, rows.indptr.astype(np.int64), rows.indices.astype(kind, copy=False), rows.data


def _plain_list(items: list[Any] | tuple[Any, ...]) -> Any:
    kinds = set(map(type, items))
    kind = kinds.pop() if len(kinds) == 1 else object
    if issubclass(kind, (int, float, np.generic)):
        numbers = np.asarray(items)
        # Other types than the items' own come of integers beyond 64 bits.
        return numbers if numbers.dtype == np.dtype(kind) else list(items)
    plain = [_plain(item) for item in items]
    # Rows of a table only: copies of larger items would cost as much memory as the data.
    is_table = kind is not object and all(isinstance(row, np.ndarray) and row.ndim == 1 for row in plain)
    if is_table and len({(row.dtype, row.shape) for row in plain}) == 1:
        return np.stack(plain)
    return plain
