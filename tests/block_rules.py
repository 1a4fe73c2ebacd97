"""How blocks are visited in tests of the core."""

from maxmargin import _core


def exact(tolerance, relaxation=1.0, **options):
    """Solve what is further than the tolerance from its optimum, well below it."""
    return _core.Rule("exact", solve_above=tolerance, solve_to=0.1 * tolerance, relaxation=relaxation, **options)


def watched_rules(monkeypatch, option):
    """Return a list that gets what every rule made from now on says of an option."""
    values = []
    make = _core.Rule

    def watched(*args, **options):
        values.append(options[option])
        return make(*args, **options)

    monkeypatch.setattr(_core, "Rule", watched)
    return values
