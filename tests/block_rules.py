"""How blocks are visited in tests of the core."""

from maxmargin import _core


def exact(tolerance, relaxation=1.0):
    """Solve what is further than the tolerance from its optimum, well below it."""
    return _core.Rule("exact", solve_above=tolerance, solve_to=0.1 * tolerance, relaxation=relaxation)
