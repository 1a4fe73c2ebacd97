"""Checks of parameters that more than one layer takes, each written once."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin._feature_rows import as_numbers


def is_number(value: Any) -> bool:
    """Return whether a value is a finite number, of double precision at most."""
    if not isinstance(value, (int, float, np.number)) or isinstance(value, bool):
        return False
    try:
        return math.isfinite(value)
    except (OverflowError, TypeError):
        # An integer beyond double precision, or a complex number.
        return False


def is_integer(value: Any, low: int) -> bool:
    """Return whether a value is an integer of at least ``low``."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= low)


def check_bool(name: str, value: Any) -> None:
    """Refuse what is neither True nor False."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, found {value!r}.")


def check_how_many(name: str, value: Any) -> None:
    """Refuse what is no number of things."""
    if not is_integer(value, 1):
        raise ValueError(f"{name} must be an integer ≥ 1, found {value!r}.")


def check_training(*, C: Any, tol: Any, max_iter: Any, max_time: Any, verbose: Any) -> None:
    """Refuse parameters that no training can have, whoever was given them."""
    # Whether C may be infinite is for the solver to say.
    if not (is_number(C) or (isinstance(C, (float, np.floating)) and np.isposinf(C))) or C <= 0:
        raise ValueError(f"C must be a positive number, found {C!r}.")
    if np.isfinite(C) and not 1e-300 <= float(C) <= 1e300:
        raise ValueError(f"C must lie between 1e-300 and 1e300, found {C!r}: beyond, its products are no numbers.")
    if not is_number(tol) or tol < 0:
        raise ValueError(f"tol must be a number ≥ 0, found {tol!r}.")
    if max_iter is not None and not is_integer(max_iter, 1):
        raise ValueError(f"max_iter must be an integer ≥ 1 or None, found {max_iter!r}.")
    if max_time is not None and (not is_number(max_time) or max_time <= 0):
        raise ValueError(f"max_time must be a positive number of seconds or None, found {max_time!r}.")
    if not isinstance(verbose, (bool, np.bool_)) and not is_integer(verbose, 0):
        raise ValueError(f"verbose must be an integer ≥ 0, found {verbose!r}.")


def check_sample_weight(sample_weight: ArrayLike | None, n_examples: int) -> NDArray[np.float64] | None:
    """Return s_i as float64, or None where all are 1."""
    if sample_weight is None:
        return None
    weights = np.ascontiguousarray(as_numbers(sample_weight, "sample_weight"))
    if weights.shape != (n_examples,):
        raise ValueError(
            f"sample_weight has shape {weights.shape}, expected ({n_examples},): one number for each example."
        )
    bad = np.flatnonzero(~np.isfinite(weights) | (weights < 0))
    if len(bad):
        raise ValueError(f"sample_weight[{bad[0]}] is {weights[bad[0]]}; weights must be finite and ≥ 0.")
    if n_examples and not weights.any():
        raise ValueError("Sample weights must contain at least one non-zero number.")
    return None if np.all(weights == 1.0) else weights


def generator(random_state: Any) -> np.random.Generator:
    """Return the generator that ``random_state`` means: a Generator itself, a seed, None for seed 0."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is not None and not is_integer(random_state, 0):
        raise ValueError(f"random_state must be an integer ≥ 0, a Generator or None, found {random_state!r}.")
    return np.random.default_rng(random_state or 0)


def seed_of(random_state: Any) -> int | np.random.Generator | None:
    """Return what ``train`` takes for any ``random_state`` that scikit-learn takes."""
    if random_state is None or isinstance(random_state, np.random.Generator):
        return random_state
    if is_integer(random_state, 0):
        return int(random_state)
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    raise ValueError(
        f"random_state must be an integer ≥ 0, a Generator, a RandomState or None, found {random_state!r}."
    )


def effective_n_jobs(n_jobs: Any) -> int:
    """Return how many threads ``n_jobs`` means: None is 1, −1 all processors, −2 all but one."""
    if n_jobs is None:
        return 1
    if not is_integer(n_jobs, -1_000_000) or n_jobs == 0:
        raise ValueError(f"n_jobs must be a non-zero integer or None, found {n_jobs!r}.")
    return int(n_jobs) if n_jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
