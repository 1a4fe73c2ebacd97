"""Several outputs of each input, as all estimators check and return them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from maxmargin._parameters import check_how_many, is_number
from maxmargin.problems.base import FloatArray

# All outputs are in memory at once, and more would only come again.
_MOST_DIVERSE = 1_000_000
# Costs of labels that were used before are added up in double precision.
_LARGEST_STRENGTH = 1e100

Output = TypeVar("Output")


def diverse_strengths(m: Any, strength: Any) -> FloatArray:
    """Return how strongly each of m outputs but the last repels those after it, after checking both."""
    check_how_many("m", m)
    if m > _MOST_DIVERSE:
        raise ValueError(f"m is {m}; expected at most {_MOST_DIVERSE} outputs.")
    if not is_number(strength) or strength < 0:
        raise ValueError(f"strength must be a number ≥ 0, found {strength!r}.")
    if float(strength) > _LARGEST_STRENGTH:
        raise ValueError(f"strength is {strength!r}; expected at most {_LARGEST_STRENGTH:g}.")
    return np.full(int(m) - 1, float(strength))


def with_scores(
    found: Iterable[tuple[Iterable[Any], FloatArray]], output: Callable[[Any], Output]
) -> list[list[tuple[Output, float]]]:
    """Return outputs, made of what a model found, with their scores."""
    return [
        [(output(codes), score) for codes, score in zip(outputs, scores.tolist(), strict=True)]
        for outputs, scores in found
    ]
