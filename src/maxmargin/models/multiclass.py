"""One of k classes: Ψ(x, y) = x ⊗ e_y (Crammer and Singer 2001)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_features, as_numbers, check_values
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.models._linear import check_cost_matrix, check_n_labels, label_numbers, tell_losses
from maxmargin.models._several import PlaceModel
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.linear import LinearProblem


class Multiclass(PlaceModel):
    """The multiclass model.

    Parameters
    ----------
    n_labels : int
        k, the number of classes.
    cost : (k, k) array or float, optional
        Δ(true, predicted), or one number for every mistake; 1 by default.
    nonnegative : mapping, optional
        ``{"coef": mask}``: weights that must stay ≥ 0.
    kernel : Kernel or LowRank, optional
        Makes scores a sum over kernels with the training rows, or with some of them; see :class:`maxmargin.Kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> import maxmargin as mm
    >>> model = mm.models.Multiclass(3)
    >>> solution = mm.train(model, np.eye(3), [0, 1, 2])
    >>> model.blocks(solution.w)["coef"].shape  # classes × features
    (3, 3)
    >>> model.predict(np.eye(3)[[2]], solution.w).tolist()
    [2]
    """

    def __init__(
        self,
        n_labels: int,
        cost: ArrayLike | None = None,
        nonnegative: Mapping[str, ArrayLike] | None = None,
        kernel: Kernel | LowRank | None = None,
    ) -> None:
        super().__init__(nonnegative, kernel)
        self.n_labels = check_n_labels(n_labels)
        self.cost = cost

    @property
    def table_blocks(self) -> dict[str, tuple[int, ...]]:
        """There is no table."""
        return {}

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> LinearProblem:
        """Return the training problem; ``X`` is a matrix, ``Y`` holds class numbers 0 … k − 1."""
        X = as_features(X)
        given = np.asarray(Y)
        if given.shape != (X.shape[0],):
            raise ValueError(f"Y has shape {given.shape} but X has {X.shape[0]} rows.")
        if len(given) == 0:
            raise ValueError("X has no rows: training needs at least one example.")
        check_values(X)
        y = label_numbers(given, self.n_labels, lambda row: f"Y[{row}]")
        cost = self._cost_matrix()

        def structure_of(rows: IntArray) -> _core.Structure:
            return _core.Multiclass(len(rows), self.n_labels, y[rows], cost)

        everyone = np.arange(len(y))
        problem = self._problem(X, structure_of(everyone), sample_weight, rescaling, n_jobs, structure_of=structure_of)
        tell_losses(problem, cost)
        return problem

    def _cost_matrix(self) -> FloatArray | None:
        if self.cost is None:
            return None
        cost = as_numbers(self.cost, "cost")
        if cost.ndim == 0:
            cost = float(cost) * (1.0 - np.eye(self.n_labels))
        return check_cost_matrix(cost, self.n_labels)

    def predict(self, X: Any, w: ArrayLike | Expansion, n_jobs: int = 1) -> NDArray[np.int32]:
        """Return each row's best class number."""
        space, _, weights, _ = self._prediction_space(X, w, n_jobs)
        return space.predict(weights, n_jobs)

    def _prediction_space(
        self, X: Any, w: ArrayLike | Expansion, n_jobs: int
    ) -> tuple[_core.LinearSpace, _core.Structure, FloatArray, IntArray]:
        space, structure, weights = self._row_space(X, w, n_jobs, lambda n: _core.Multiclass(n, self.n_labels, None))
        return space, structure, weights, np.ones(space.n_examples, np.int64)
