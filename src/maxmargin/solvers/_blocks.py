"""How the dual solvers visit the planes of one example after another."""

from __future__ import annotations

from maxmargin import _core


def solved_to(tolerance: float) -> _core.Rule:
    """Return the rule that solves every block whose gap exceeds ``tolerance`` · C_i, well below it."""
    return _core.Rule("exact", solve_above=tolerance, solve_to=0.1 * tolerance)
