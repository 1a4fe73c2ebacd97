"""What a user subclasses for a model of their own whose parts are scored by a kernel."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from maxmargin._feature_rows import as_features, first_not_finite
from maxmargin._parameters import is_integer
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.model import Model, checked_examples
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.kernel_parts import (
    CoefficientModel,
    KernelPartsProblem,
    LowRankModel,
    LowRankPartsProblem,
    OwnPoints,
    PartScores,
)
from maxmargin.problems.low_rank import LowRankFeatures
from maxmargin.problems.python import PythonProblem, as_sparse


class KernelModel(Model):
    r"""A model written in Python whose outputs are made of parts that a kernel scores.

    An input has **points**, the rows of a matrix (its tokens, its regions, its edges), and an output puts some of them in
    some **columns** (labels, kinds of parts):

    .. math::

        \Psi(x, y) = \sum_{(p, c, v) \in \text{parts}(x, y)} v \; \varphi(\text{point } p \text{ of } x) \otimes e_c
        \;\; \oplus \;\; \text{joint\_feature}(x, y)

    where only the kernel :math:`\varphi(a) \cdot \varphi(b) = k(a, b)` is known. Its score is the sum of its parts': searches are
    given a table of those, points × columns, in place of w.

    Write :meth:`points`, :meth:`parts` and :meth:`loss`, set ``n_columns``, and then either :meth:`outputs` or the searches
    :meth:`argmax` and :meth:`loss_augmented_argmax`, as for a :class:`Model`.

    Attributes
    ----------
    kernel : Kernel or LowRank
        The kernel of two points. A :class:`LowRank` one makes points vectors, so that every solver runs; with an exact one
        ``"one-slack"`` and ``"sampled-cuts"`` do.
    n_columns : int
        How many columns there are.
    n_features : int
        How many weights :meth:`joint_feature` has, which no kernel scores; 0 by default.

    Examples
    --------
    >>> import maxmargin as mm
    >>> class Sides(mm.KernelModel):  # each of the points of an input is inside or outside
    ...     kernel = mm.Kernel("rbf", gamma=1.0)
    ...     n_columns = 2
    ...
    ...     def points(self, x):
    ...         return x
    ...
    ...     def parts(self, x, y):
    ...         return range(len(y)), y
    ...
    ...     def loss(self, y_true, y):
    ...         return sum(a != b for a, b in zip(y_true, y))
    ...
    ...     def argmax(self, x, scores):
    ...         return scores.table.argmax(axis=1).tolist()
    ...
    ...     def loss_augmented_argmax(self, x, y_true, scores):
    ...         return (scores.table + (np.arange(2) != np.array(y_true)[:, None])).argmax(axis=1).tolist()
    >>> X = [np.array([[0.1, 0.0], [2.0, 1.0]]), np.array([[0.0, 0.3], [-2.0, 1.0], [1.0, -2.0]])]
    >>> model = Sides()
    >>> solution = mm.train(model, X, [[0, 1], [0, 1, 1]], C=10.0)
    >>> solution.certificate.relative_gap <= 1e-3
    True
    >>> model.predict([np.array([[0.2, 0.2], [1.5, 1.5]])], solution.expansion)
    [[0, 1]]
    """

    kernel: Kernel | LowRank = Kernel()
    n_columns: int
    n_features: int = 0

    # ----------------------------------------------------------------------------- what a subclass writes

    @abstractmethod
    def points(self, x: Any) -> Any:
        """Return the points of an input, the rows of a dense or sparse matrix; all inputs' have as many features."""

    @abstractmethod
    def parts(self, x: Any, y: Any) -> tuple[Any, ...]:
        """Return the parts of an output.

        Returns
        -------
        (points, columns) or (points, columns, values)
            Numbers of points of x, the column of each, and what each counts, 1 where that is not given. The values of a pair
            that stands several times are added.
        """

    def joint_feature(self, x: Any, y: Any) -> Any:
        """Return features that have weights of their own, as for a :class:`Model`; there are none by default."""
        return np.zeros(0)

    # --------------------------------------------------------------------------------------- what follows

    @property
    def abilities(self) -> frozenset[str]:
        """What the model offers."""
        self._checked_kernel()
        if isinstance(self.kernel, LowRank):
            return super().abilities
        return (super().abilities | {"kernel"}) - {"vectors", "blocks"}

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> PythonProblem:
        """Return the training problem of this model on these data, after :meth:`initialize`; see :meth:`Model.bind`."""
        self._check_complete()
        is_low_rank = isinstance(self._checked_kernel(), LowRank)
        weights = checked_examples(X, Y, sample_weight)
        self._check_rescaling(rescaling)
        self.initialize(X, Y)
        kernel = self._checked_kernel()
        if isinstance(kernel, LowRank) != is_low_rank:
            raise ValueError(
                f"{type(self).__name__}.initialize made an exact kernel a low-rank one, or the reverse: solvers are chosen by "
                "that before it is called. Set kernel in __init__ or in the class."
            )
        self._check_columns()
        self.n_features = self._checked_n_features()
        if len(self._nonnegative_ids()):
            raise ValueError(f"{type(self).__name__}.nonnegative is for models without a kernel.")
        own, rows = self._own_points(X)
        if isinstance(kernel, LowRank):
            features = LowRankFeatures(kernel, rows, n_jobs=n_jobs)
            return LowRankPartsProblem(LowRankModel(self, own, features), Y, rescaling, weights, n_jobs)
        return KernelPartsProblem(self, own, kernel.for_data(rows), rows, Y, rescaling, weights, n_jobs)

    def bind_more(self, X: Any, Y: Any, sample_weight: ArrayLike | None = None) -> PythonProblem:
        """Refuse to learn from a stream: the points that the weights are a sum over are those of all examples."""
        raise ValueError(
            "a KernelModel cannot learn from a stream: its basis is chosen from the points of all examples."
        )

    # ------------------------------------------------------------------------------------------ internals

    def _search_each(self, search: Any, X: Any, w: Any, n_jobs: int) -> list[Any]:
        """Return what a search finds for each input: threads make the scores, worker processes search."""
        if not isinstance(w, Expansion):
            raise TypeError("with a kernel, predict takes solution.expansion in place of w.")
        self._check_columns()
        if len(w.coef) != self.n_columns or w.table.shape != (self.n_features,):
            raise ValueError(
                f"the expansion has {len(w.coef)} columns and {w.table.size} other weights; expected {self.n_columns} and "
                f"{self.n_features}: it is that of another model."
            )
        if len(X) == 0:
            return []
        own, rows = self._own_points(X)
        searcher = CoefficientModel(self, own, self.n_columns)
        scores = w.scores(rows, n_jobs)
        return searcher._search_each(search, range(len(X)), np.concatenate([scores.ravel(), w.table]), n_jobs)

    def part_entries(self, x: Any, y: Any, n_points: int, name: str) -> tuple[IntArray, IntArray, FloatArray]:
        """Return :meth:`parts` as arrays, after checking that they are parts of an input with so many points."""
        given = self.parts(x, y)
        if not isinstance(given, tuple) or len(given) not in (2, 3):
            raise ValueError(f"parts({name}) must be (points, columns) or (points, columns, values), found {given!r}.")
        points = _numbers(given[0], n_points, f"points of parts({name})")
        columns = _numbers(given[1], self.n_columns, f"columns of parts({name})")
        values = np.ones(len(points)) if len(given) == 2 else np.asarray(given[2], dtype=np.float64)
        if not points.shape == columns.shape == values.shape:
            raise ValueError(
                f"parts({name}) has {points.size} points, {columns.size} columns and {values.size} values; expected as many "
                "of each."
            )
        if not np.all(np.isfinite(values)):
            raise ValueError(f"parts({name}) has a value that is not finite.")
        return points, columns, values

    def _scaled(self, w: Any, factor: float) -> Any:
        return PartScores(*(super(KernelModel, self)._scaled(part, factor) for part in w))

    def _score(self, x: Any, y: Any, w: Any) -> float:
        assert isinstance(w, PartScores)
        points, columns, values = self.part_entries(x, y, len(w.table), "x, y")
        linear = as_sparse(self.joint_feature(x, y), self.n_features, "joint_feature(x, y)").dot(w.weights)
        return float(values @ w.table[points, columns]) + linear

    def _own_points(self, X: Any) -> tuple[OwnPoints, Any]:
        """Return where the points of each input lie among all, and all of them."""
        matrices: list[Any] = []
        for i in range(len(X)):
            matrix = as_features(self.points(X[i]), f"points(X[{i}])")
            found = first_not_finite(matrix)
            if found is not None:
                raise ValueError(f"points(X[{i}]) holds {found[1]} in row {found[0]}: features must be finite.")
            if matrices and matrix.shape[1] != matrices[0].shape[1]:
                raise ValueError(
                    f"points(X[{i}]) has {matrix.shape[1]} features, but points(X[0]) has {matrices[0].shape[1]}."
                )
            matrices.append(matrix)
        offsets = np.cumsum([0, *(matrix.shape[0] for matrix in matrices)]).astype(np.int64)
        if offsets[-1] == 0:
            raise ValueError("no input has a point: points(x) is a matrix with a row for each.")
        is_sparse = any(bool(sp.issparse(matrix)) for matrix in matrices)
        rows = sp.vstack(matrices, format="csr") if is_sparse else np.concatenate(matrices)
        return OwnPoints(X, offsets), rows

    def _checked_kernel(self) -> Kernel | LowRank:
        name = f"{type(self).__name__}.kernel"
        if not isinstance(self.kernel, (Kernel, LowRank)):
            raise TypeError(f"{name} must be a maxmargin.Kernel or a maxmargin.LowRank, found {self.kernel!r}.")
        if isinstance(self.kernel, Kernel) and self.kernel.name == "precomputed":
            raise ValueError(
                f"{name} is precomputed, which has no function of points; give a function of two matrices that looks its values "
                "up."
            )
        return self.kernel

    def _check_columns(self) -> None:
        n_columns = getattr(self, "n_columns", None)
        if not is_integer(n_columns, 1):
            raise ValueError(f"{type(self).__name__}.n_columns is {n_columns!r}; expected an integer ≥ 1.")

    def _checked_n_features(self) -> int:
        return 0 if self.n_features == 0 else super()._checked_n_features()


def _numbers(given: Any, end: int, name: str) -> IntArray:
    """Return whole numbers below ``end`` as an array."""
    numbers = np.asarray(given if hasattr(given, "__array__") else list(given))
    if numbers.size == 0:
        return np.zeros(0, np.int64)
    if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(f"the {name} must be whole numbers, found {numbers.dtype} of shape {numbers.shape}.")
    if numbers.min() < 0 or numbers.max() >= end:
        bad = numbers[(numbers < 0) | (numbers >= end)][0]
        raise ValueError(f"the {name} have the number {bad}; expected 0 … {end - 1}.")
    return numbers.astype(np.int64)
