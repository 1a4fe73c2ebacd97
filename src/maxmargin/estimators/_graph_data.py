"""Labels of graphs as users have them, checked."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.estimators._sequence_data import plain_labels
from maxmargin.graphs import Graphs


def flat_labels(y: Any, data: Graphs) -> list[Hashable]:
    """Return the labels of all nodes, after checking that every node has one."""
    if isinstance(y, (str, bytes, Mapping)) or not isinstance(y, Iterable):
        raise TypeError(f"y is of type {type(y).__name__}; expected a list with a sequence of labels for each graph.")
    labellings = list(y)
    if len(labellings) != len(data):
        raise ValueError(f"y has {len(labellings)} labellings but X has {len(data)} graphs.")
    flat: list[Hashable] = []
    for i, (labels, length) in enumerate(zip(labellings, data.lengths.tolist(), strict=True)):
        if isinstance(labels, (str, bytes)) or not isinstance(labels, Iterable):
            raise TypeError(f"y[{i}] is {labels!r}; expected a sequence with a label for each node.")
        given = labels.tolist() if isinstance(labels, np.ndarray) else list(labels)
        shape = labels.shape if isinstance(labels, np.ndarray) else (len(given),)
        if len(shape) > 1 and len(given) == length:
            raise ValueError(
                f"y[{i}] has shape {shape}; expected one label for each of the {length} nodes: y.ravel() of a column, "
                "y.argmax(axis=1) of indicators."
            )
        if len(given) != length:
            is_image = len(shape) > 1 and np.prod(shape) == length
            hint = " The nodes of a grid are its pixels row by row: give y.ravel()." if is_image else ""
            raise ValueError(
                f"y[{i}] has {len(given)} labels but X[{i}] has {length} nodes: every node needs one label.{hint}"
            )
        flat += given
    return plain_labels(flat)


def by_graph(codes: NDArray[Any], data: Graphs) -> list[NDArray[Any]]:
    """Return labels that were laid end to end, graph by graph."""
    return np.split(codes, data.node_offsets[1:-1])


def candidate_numbers(y: Any, data: Graphs) -> NDArray[np.integer[Any]]:
    """Return the numbers of candidates; the model checks that they exist."""
    numbers = np.asarray(flat_labels(y, data))
    if not np.issubdtype(numbers.dtype, np.integer):
        raise ValueError(
            f"y holds labels of type {numbers.dtype}; with candidates, expected the number of one for each node."
        )
    return numbers
