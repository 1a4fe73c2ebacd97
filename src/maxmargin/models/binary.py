"""Two classes: Ψ(x, y) = ½ y x with y = ±1 (the problem of SVM-perf and LIBLINEAR -s 3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_features, check_values
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.models._linear import LinearModel, check_cost_matrix, tell_losses
from maxmargin.problems.base import IntArray
from maxmargin.problems.linear import LinearProblem


class Binary(LinearModel):
    """The two-class model.

    Parameters
    ----------
    cost : (2, 2) array, optional
        Δ(true, predicted), classes in the order −1, +1; 0/1 by default.
    nonnegative : mapping, optional
        ``{"coef": mask}``: weights that must stay ≥ 0.
    kernel : Kernel or LowRank, optional
        Makes scores a sum over kernels with the training rows, or with some of them; see :class:`maxmargin.Kernel`.

    Examples
    --------
    >>> import maxmargin as mm
    >>> model = mm.models.Binary()
    >>> solution = mm.train(model, [[1.0, 0.0], [0.0, 1.0]], [-1, 1])
    >>> model.blocks(solution.w)["coef"].shape  # one row of features; a positive score means +1
    (1, 2)
    >>> model.predict([[0.0, 3.0]], solution.w).tolist()
    [1]
    """

    def __init__(
        self,
        cost: ArrayLike | None = None,
        nonnegative: Mapping[str, ArrayLike] | None = None,
        kernel: Kernel | LowRank | None = None,
    ) -> None:
        super().__init__(nonnegative, kernel)
        self.cost = cost
        self.n_labels = 2

    @property
    def _rows(self) -> int:
        return 1

    @property
    def table_blocks(self) -> dict[str, tuple[int, ...]]:
        """There is no table."""
        return {}

    def bind(
        self, X: Any, Y: Any, *, sample_weight: ArrayLike | None = None, rescaling: str = "margin", n_jobs: int = 1
    ) -> LinearProblem:
        """Return the training problem; ``X`` is a matrix, ``Y`` holds −1 and +1."""
        X = as_features(X)
        given = np.asarray(Y)
        is_numbers = given.dtype.kind in "iuf" and given.shape == (X.shape[0],)
        if not is_numbers or not np.all(np.abs(given) == 1):
            raise ValueError(f"Y must hold {X.shape[0]} labels, each −1 or +1.")
        if len(given) == 0:
            raise ValueError("X has no rows: training needs at least one example.")
        check_values(X)
        y = np.ascontiguousarray(given, dtype=np.int32)
        cost = check_cost_matrix(self.cost if self.cost is not None else 1.0 - np.eye(2), 2)

        def structure_of(rows: IntArray) -> _core.Structure:
            return _core.Binary(len(rows), y[rows], cost[0, 1], cost[1, 0])

        everyone = np.arange(len(y))
        problem = self._problem(X, structure_of(everyone), sample_weight, rescaling, n_jobs, structure_of=structure_of)
        tell_losses(problem, cost)
        return problem

    def predict(self, X: Any, w: ArrayLike | Expansion, n_jobs: int = 1) -> NDArray[np.int32]:
        """Return the sign of each row's score; 0 counts as −1."""
        space, _, weights = self._row_space(X, w, n_jobs, lambda n: _core.Binary(n, None))
        return space.predict(weights, n_jobs)
