"""The loss of a wrong label, from the parameter ``cost`` of an estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin._parameters import is_number
from maxmargin.estimators._base import check_known
from maxmargin.models._linear import check_cost_matrix
from maxmargin.problems.base import FloatArray


def loss_of_places(
    cost: Any, classes: NDArray[Any], codes: NDArray[np.integer[Any]] | None, weight: FloatArray | None
) -> FloatArray | None:
    """Return :func:`loss_table` for labels of places, such as tokens or nodes, where ``"balanced"`` is a cost too.

    Parameters
    ----------
    cost : None, str, number, mapping or matrix
        The estimator's parameter.
    classes : array
        The labels.
    codes : array of int or None
        The label number of every place; None where not all places are known yet.
    weight : array or None
        How much every place counts.
    """
    if not (isinstance(cost, str) and cost == "balanced"):
        return loss_table(cost, "hamming", classes, others="'balanced', ")
    if codes is None:
        raise ValueError("cost='balanced' needs all examples at once: give partial_fit a dict of weights.")
    counts = np.bincount(codes, weights=weight, minlength=len(classes)).astype(np.float64)
    is_counted = counts > 0.0
    # As scikit-learn balances classes: all labels together count as much as they would without.
    return np.where(is_counted, counts.sum() / (is_counted.sum() * np.where(is_counted, counts, 1.0)), 1.0)


def loss_table(cost: Any, name: str, classes: NDArray[Any], others: str = "") -> FloatArray | None:
    """Return the loss of a wrong label: None for 1, one weight per true label, or a matrix true × predicted.

    Parameters
    ----------
    cost : None, str, number, mapping or matrix
        The estimator's parameter.
    name : str
        The one name that is allowed, which means the same as None.
    classes : array
        The labels, in the order of which the result is.
    others : str
        Other names that the estimator knows, for messages.
    """
    k = len(classes)
    allowed = (
        f"None, '{name}', {others}a number, a dict of label weights, or a {k} × {k} matrix true label × predicted label in the "
        "order of classes_"
    )
    if cost is None or (isinstance(cost, str) and cost == name):
        return None
    if isinstance(cost, str):
        hint = " Weights that balance the classes of rows are class_weight='balanced'." if cost == "balanced" else ""
        raise ValueError(f"cost must be {allowed}; found {cost!r}.{hint}")
    if isinstance(cost, Mapping):
        return _label_weights(cost, classes)
    if is_number(cost):
        if cost <= 0:
            raise ValueError(f"cost must be positive where it is one number, found {cost!r}.")
        return np.full(k, float(cost))
    try:
        matrix = np.asarray(cost, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"cost must be {allowed}; found {cost!r}.") from None
    if matrix.ndim == 0:
        raise ValueError(f"cost must be {allowed}; found {cost!r}.")
    return check_cost_matrix(matrix, k)


def loss_matrix(cost: Any, name: str, classes: NDArray[Any]) -> FloatArray | None:
    """Return :func:`loss_table` with weights written out as a matrix."""
    table = loss_table(cost, name, classes)
    return table if table is None or table.ndim == 2 else np.asarray(table[:, None] * (1.0 - np.eye(len(table))))


def _label_weights(cost: Mapping[Any, Any], classes: NDArray[Any]) -> FloatArray:
    labels = classes.tolist()
    check_known("cost", list(cost), labels)
    for label, weight in cost.items():
        if not is_number(weight) or weight < 0:
            raise ValueError(f"cost[{label!r}] must be a number ≥ 0, found {weight!r}.")
    return np.array([float(cost.get(label, 1.0)) for label in labels])
