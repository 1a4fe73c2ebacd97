"""Which solver ``solver="auto"`` takes where planes would not fit in memory, or where examples are very long."""

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.solvers.auto import Choice, choose_by_problem, choose_by_searches

pytestmark = pytest.mark.core


def bound_sequences(length, n=2):
    """Sequences with so many weights that they are not few."""
    rng = np.random.default_rng(0)
    return mm.models.Chain(4).bind(
        [rng.normal(size=(length, 20)) for _ in range(n)], [rng.integers(4, size=length)] * n
    )


def chosen(problem, options=None, loss="hinge"):
    return choose_by_problem(Choice("block-dual", "", options or {}), problem, loss, 1.0)


def test_long_sequences_are_trained_by_cuts():
    assert chosen(bound_sequences(2000)).solver == "block-dual"
    long = bound_sequences(2001)
    choice = chosen(long)
    assert choice.solver == "one-slack"
    assert "so long" in choice.reason
    # What one-slack cannot do is left to block-dual.
    assert chosen(long, {"max_planes": 5}).solver == "block-dual"
    assert chosen(long, loss="squared_hinge").solver == "block-dual"


def test_planes_that_take_more_than_four_gigabytes_are_not_kept(monkeypatch):
    problem = bound_sequences(1000)
    _, n_terms = choose_by_searches(Choice("block-dual", "", {}), problem, None)
    most = int(4e9 / (48 * 10 * n_terms))  # ten planes of each example, of 48 bytes a place
    for n, expected in ((most, "block-dual"), (most + 1, "one-slack")):
        monkeypatch.setattr(type(problem), "n_examples", n)
        assert chosen(problem).solver == expected
    assert "would take about 4 GB" in chosen(problem).reason
    assert chosen(problem, {"max_planes": 5}).solver == "block-dual"
    assert chosen(problem, loss="squared_hinge").solver == "block-dual"
