"""What the options of solvers change, and what is said to those that do not exist."""

import re
import time

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from tagging_problem import column, train

import maxmargin as mm
from maxmargin.solvers import SOLVERS

CELLS = [(name, min(solver.losses)) for name, solver in SOLVERS.items() if solver.has_dual]
pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def test_without_a_cache_every_iteration_asks_the_oracle_for_every_example():
    solution = train(solver_options={"cache_size": 0})
    assert not any(column(solution, "from_cache"))
    assert set(column(solution, "planes")) == {0}
    n_iterations = len(solution.history)
    # The exact pass that verifies the end may be one more.
    assert column(solution, "oracle_calls") == [120 * (k + 1) for k in range(n_iterations)]
    assert solution.certificate.oracle_calls in (120 * n_iterations, 120 * (n_iterations + 1))


def test_the_cache_saves_oracle_calls_and_never_ends_training():
    cached, plain = train(solver_options={"cache_size": 10}), train(solver_options={"cache_size": 0})
    assert any(column(cached, "from_cache"))
    assert not cached.history[-1]["from_cache"]
    assert cached.certificate.oracle_calls < plain.certificate.oracle_calls
    calls = column(cached, "oracle_calls")
    asked = np.diff([0, *calls])
    assert np.all((asked == 0) == np.array(column(cached, "from_cache")))
    assert 0 < max(column(cached, "planes")) <= 120 * 10
    assert cached.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-5)


def test_cache_size_limits_the_planes_held():
    for size in (1, 2, 5):
        assert max(column(train(solver_options={"cache_size": size}), "planes")) <= 120 * size


def test_a_cache_may_be_larger_than_memory():
    solution = train(solver_options={"cache_size": 10**9}, tol=1e-2)
    assert solution.certificate.converged


@pytest.mark.parametrize(
    ("solver", "option"),
    [("one-slack", "cache_size"), ("block-dual", "max_planes"), ("n-slack", "batch_size"), ("n-slack", "prune_after")],
)
def test_numbers_that_the_core_cannot_count_to_are_refused(solver, option):
    with pytest.raises(ValueError, match=rf"solver_options\['{option}'\] must be at most 2147483647, found 10"):
        train(solver=solver, solver_options={option: 10**20})


@pytest.mark.parametrize("options", [{"tau": 0.1, "tau_inner": 0.5}, {"tau_inner": 0.3}])
def test_blocks_of_sdm_are_solved_no_more_coarsely_than_they_are_taken_up(options):
    tau = options.get("tau", 0.25)
    text = rf"\['tau_inner'\] must be at most solver_options\['tau'\], found {options['tau_inner']} where tau is {tau}"
    with pytest.raises(ValueError, match=text):
        train("sdm", solver_options=options)
    # The default gives way.
    assert train("sdm", solver_options={"tau": 0.1}).certificate.converged


def test_refresh_asks_for_a_portion_at_a_time():
    solution = train(solver_options={"cache_size": 10, "refresh": 0.1})
    asked = np.diff([0, *column(solution, "oracle_calls")])
    assert np.all(asked % 12 == 0)
    assert np.any((asked > 0) & (asked < 120)), "some cut was found after a part of the examples"
    from_cache = np.array(column(solution, "from_cache"))
    assert np.all(asked[~from_cache] == 120), "only a whole pass is exact"
    whole = train(solver_options={"cache_size": 10, "refresh": 1.0})
    assert set(np.diff([0, *column(whole, "oracle_calls")])) <= {0, 120}


def test_prune_after_drops_cuts_and_leaves_the_optimum():
    short, long = (train(solver_options={"prune_after": n, "cache_size": 0}) for n in (1, 100_000))
    assert sum(column(short, "cuts_dropped")) > 0
    assert sum(column(long, "cuts_dropped")) == 0
    assert max(column(short, "cuts")) < max(column(long, "cuts"))
    assert set(np.diff(column(long, "cuts"))) == {1}
    assert short.certificate.primal == pytest.approx(long.certificate.primal, rel=2e-5)
    # What is there now is what was there, plus what came, less what went.
    cuts, dropped = np.array(column(short, "cuts")), np.array(column(short, "cuts_dropped"))
    assert np.array_equal(np.diff(cuts), 1 - dropped[1:])


@pytest.mark.parametrize("epsilon", [0.5, 0.1, 0.01])
def test_epsilon_of_one_slack_bounds_the_gap(epsilon):
    solution = train(solver_options={"epsilon": epsilon})
    assert solution.certificate.converged
    assert solution.certificate.gap <= 0.05 * 120 * epsilon * (1 + 1e-9)


def test_epsilon_of_the_other_solvers_bounds_the_gap():
    line_search = train("line-search", solver_options={"epsilon": 0.05})
    assert line_search.certificate.converged
    assert line_search.certificate.gap <= 0.05 * 120 * 0.05 * (1 + 1e-9)
    n_slack = train("n-slack", solver_options={"epsilon": 0.05})
    assert n_slack.certificate.converged
    # Each slack is short by at most ε, and the QP is solved to a tenth of it.
    assert n_slack.certificate.gap <= 0.05 * 120 * 0.05 * 1.2
    assert n_slack.history[-1]["planes_added"] == 0
    assert set(column(n_slack, "epsilon")) == {0.05}


def test_a_smaller_epsilon_takes_more_iterations_or_planes():
    for solver in ("one-slack", "line-search"):
        counts = [len(train(solver, solver_options={"epsilon": e}).history) for e in (0.5, 0.02)]
        assert counts[0] < counts[1]
    planes = [train("n-slack", solver_options={"epsilon": e}).history[-1]["planes"] for e in (0.5, 0.02)]
    assert planes[0] < planes[1]


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_tol_bounds_the_relative_gap(solver, loss):
    loose, tight = (train(solver, loss=loss, tol=tol) for tol in (0.1, 0.01))
    for solution, tol in ((loose, 0.1), (tight, 0.01)):
        assert solution.certificate.converged
        assert solution.certificate.relative_gap <= tol
    assert len(loose.history) < len(tight.history)


def test_qp_precision_follows_the_violation():
    tolerances = np.array(column(train(tol=1e-6, solver_options={"cache_size": 0}), "qp_tolerance"))
    assert tolerances[0] == 0.0, "nothing was solved yet"
    assert tolerances[1] > 100 * tolerances[-1]


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_max_iter_ends_training_with_a_warning_that_tells_the_gap(solver, loss):
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=3 was reached; the relative duality gap is (.+), tol is"
    ) as w:
        solution = train(solver, loss=loss, max_iter=3, tol=1e-9)
    assert len(solution.history) == 3
    assert not solution.certificate.converged
    said = float(str(w[0].message).split("gap is ")[1].split(",")[0])
    assert said == pytest.approx(solution.certificate.relative_gap, rel=6e-3)  # three digits
    assert solution.certificate.gap > 0


@pytest.mark.parametrize(
    ("solver", "rule"),
    [
        ("one-slack", r"for a gap of at most (.+), and the gap is (.+)\."),
        ("line-search", r"for a gap of at most (.+), and the gap is (.+)\."),
        ("n-slack", r"for a sweep that finds no plane violated by more, and the last one found (.+)\."),
        ("sdm", r"for a type-I loop that changes nothing, and the last one moved (.+) blocks\."),
        ("dcd", r"that no plane be violated by more, and one was violated by (.+)\."),
        ("dcd-light", r"that no plane be violated by more, and one was violated by (.+)\."),
        ("cpd", r"that no plane be violated by more, and one was violated by (.+)\."),
    ],
)
def test_the_warning_names_epsilon_where_that_was_missed(solver, rule):
    loss = min(SOLVERS[solver].losses)
    said = rf"max_iter=3 was reached; the relative duality gap is (.+), epsilon=1e-06 asks {rule}"
    with pytest.warns(ConvergenceWarning, match=said) as w:
        solution = train(solver, loss=loss, max_iter=3, tol=0.5, solver_options={"epsilon": 1e-6})
    message, last = str(w[0].message), solution.history[-1]
    assert "tol" not in message
    found = float(re.search(said, message).groups()[-1])
    expected = {"n-slack": last.get("planes_added"), "sdm": last.get("blocks_moved"), "one-slack": last["gap"]}
    expected |= {"line-search": last["gap"]} | {s: last.get("violation") for s in ("dcd", "dcd-light", "cpd")}
    assert found == pytest.approx(expected[solver], rel=6e-3)  # three digits
    assert found > 1e-6


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_max_time_ends_training_with_a_warning(solver, loss):
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.2 s was reached; the relative duality gap is"):
        # Slowed down: some solvers end at the last bit of the optimum before.
        solution = train(
            solver, loss=loss, max_time=0.2, tol=0.0, max_iter=None, C=10.0, callback=lambda _: time.sleep(0.05)
        )
    assert 0.2 <= time.perf_counter() - start < 5.0
    assert column(solution, "seconds") == sorted(column(solution, "seconds"))
    # The last record is older than the callback that let the time pass.
    assert solution.history[-1]["seconds"] >= 0.1


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_the_callback_sees_every_record_and_can_end_training(solver, loss):
    seen = []

    def callback(record):
        seen.append(dict(record))
        return len(seen) == 4

    with pytest.warns(ConvergenceWarning, match="the callback asked for an end"):
        solution = train(solver, loss=loss, callback=callback, tol=1e-9)
    assert len(seen) == len(solution.history) == 4
    assert [record["dual"] for record in seen] == column(solution, "dual")


def test_batch_size_decides_how_often_the_qp_is_solved():
    small, large = (train("n-slack", tol=1e-3, solver_options={"batch_size": b}) for b in (10, 10_000))
    assert max(column(small, "qps")) > 1
    assert max(column(large, "qps")) == 1
    assert sum(column(small, "qps")) / len(small.history) > sum(column(large, "qps")) / len(large.history)
    assert small.certificate.primal == pytest.approx(large.certificate.primal, rel=2e-3)


def test_prune_after_of_n_slack_drops_planes():
    short, long = (train("n-slack", solver_options={"prune_after": n}) for n in (1, 100_000))
    assert sum(column(short, "planes_dropped")) > 0
    assert sum(column(long, "planes_dropped")) == 0
    assert max(column(short, "planes")) < max(column(long, "planes"))
    assert short.certificate.primal == pytest.approx(long.certificate.primal, rel=2e-5)


def test_stabilization_takes_fewer_iterations():
    plain = train(C=1.0, tol=1e-4)
    stable = train(C=1.0, tol=1e-4, solver_options={"stabilization": "line-search"})
    assert len(stable.history) < len(plain.history)
    assert stable.certificate.primal == pytest.approx(plain.certificate.primal, rel=2e-4)


def test_stabilization_without_a_cache_is_refused():
    with pytest.raises(ValueError, match="cache_size"):
        train(solver_options={"stabilization": "line-search", "cache_size": 0})


@pytest.mark.parametrize(("solver", "loss"), CELLS)
def test_history_has_the_promised_fields(solver, loss):
    common = {"iteration", "seconds", "primal", "dual", "gap", "relative_gap", "oracle_calls", "planes", "time_oracle"}
    own = {
        "one-slack": {"cuts", "cuts_active", "cuts_added", "cuts_dropped", "qp_tolerance", "from_cache"}
        | {f"time_{part}" for part in ("cache", "assembly", "gram", "qp", "weights")},
        "n-slack": {"planes_active", "planes_added", "planes_dropped", "qp_tolerance", "time_qp"},
        "line-search": {"time_weights"},
        "block-dual": {"blocks", "planes_added", "sweeps", "joint_steps", "time_visits", "time_sweeps"},
        "bcfw": {"entries", "moves", "block_gaps", "time_steps", "time_weights"},
        "sdm": {"planes_added", "planes_dropped", "blocks_moved", "type_two_loops", "tau", "time_sweeps"},
        **{key: {"planes_added", "planes_dropped", "violation", "delta"} for key in ("dcd", "dcd-light", "cpd")},
    }
    solution = train(solver, loss=loss, tol=1e-2)
    for number, record in enumerate(solution.history):
        assert common | own.get(solver, set()) <= set(record)
        assert record["iteration"] == number + 1
    assert column(solution, "oracle_calls") == sorted(column(solution, "oracle_calls"))
    # The last primal is evaluated once more, exactly.
    assert column(solution, "primal")[:-1] == sorted(column(solution, "primal")[:-1], reverse=True)
    assert column(solution, "dual") == sorted(column(solution, "dual"))


# ------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"solver": "one-slack", "loss": "squared_hinge"},
            r"solver 'one-slack' minimises the hinge loss; for loss='squared_hinge' use 'block-dual', 'n-slack', 'dcd'",
        ),
        (
            {"solver": "line-search", "loss": "squared_hinge"},
            r"solver 'line-search' minimises the hinge loss; for loss='squared_hinge' use 'block-dual', 'n-slack', 'dcd'",
        ),
        ({"solver": "simplex"}, r"solver must be one of 'auto', 'block-dual', 'one-slack', .*found 'simplex'"),
        ({"loss": "log"}, r"loss must be 'hinge' or 'squared_hinge', found 'log'"),
        ({"rescaling": "both"}, r"rescaling must be 'margin' or 'slack', found 'both'"),
        (
            {"solver": "one-slack", "solver_options": {"cache": 3}},
            r"solver 'one-slack' has no option 'cache'; its options are 'epsilon', 'cache_size'",
        ),
        (
            {"solver": "line-search", "solver_options": {"cache_size": 3}},
            r"solver 'line-search' has no option 'cache_size'; its options are 'epsilon'",
        ),
        ({"solver_options": {"cache_size": -1}}, r"solver_options\['cache_size'\] must be .* found -1"),
        ({"solver_options": {"cache_size": 2.5}}, r"solver_options\['cache_size'\] must be .* found 2.5"),
        ({"solver_options": {"refresh": 0.0}}, r"solver_options\['refresh'\] must be a number in \(0, 1\], found 0.0"),
        ({"solver_options": {"refresh": 1.5}}, r"solver_options\['refresh'\] must be a number in \(0, 1\], found 1.5"),
        ({"solver_options": {"epsilon": 0}}, r"solver_options\['epsilon'\] must be a positive number or None, found 0"),
        ({"solver_options": {"epsilon": float("nan")}}, r"solver_options\['epsilon'\] .* found nan"),
        ({"solver_options": {"prune_after": 0}}, r"solver_options\['prune_after'\] must be an integer ≥ 1, found 0"),
        ({"solver_options": {"prune_after": True}}, r"solver_options\['prune_after'\] .* found True"),
        (
            {"solver": "n-slack", "solver_options": {"batch_size": 0}},
            r"solver_options\['batch_size'\] must be an integer ≥ 1, found 0",
        ),
        ({"C": 0.0}, r"C must be a positive number, found 0.0"),
        ({"C": -1}, r"C must be a positive number, found -1"),
        ({"C": float("inf")}, r"C must be a positive number, found inf"),
        ({"tol": -1e-3}, r"tol must be a number ≥ 0, found -0.001"),
        ({"max_iter": 0}, r"max_iter must be an integer ≥ 1 or None, found 0"),
        ({"max_time": 0}, r"max_time must be a positive number of seconds or None, found 0"),
        ({"n_jobs": 0}, r"n_jobs must be a non-zero integer or None, found 0"),
        ({"sample_weight": [1.0]}, r"sample_weight has shape \(1,\), expected \(3,\)"),
        ({"sample_weight": [1.0, -2.0, 1.0]}, r"sample_weight\[1\] is -2.0"),
        ({"sample_weight": [1.0, 1.0, np.nan]}, r"sample_weight\[2\] is nan"),
    ],
)
def test_bad_arguments_are_explained(arguments, message):
    X = np.eye(3)
    with pytest.raises(ValueError, match=message):
        mm.train(mm.models.Multiclass(3), X, np.arange(3), **arguments)


@pytest.mark.parametrize(
    ("solver", "name"), [("bcfw", "averaging"), ("bcfw", "pairwise"), ("block-dual", "skip_satisfied")]
)
def test_truth_values_may_be_those_of_numpy(solver, name):
    given, plain = (
        train(solver=solver, solver_options={name: value}, tol=0.1, random_state=0) for value in (np.True_, True)
    )
    np.testing.assert_array_equal(given.w, plain.w)
    with pytest.raises(ValueError, match=f"{name}.* must be True or False, found 1"):
        train(solver=solver, solver_options={name: 1})


# ---------------------------------------------------------------------------------------------- options that stalled


@pytest.mark.parametrize("C", [10.0, 1000.0])
def test_passes_before_the_first_cut_end_where_cuts_get_further(C):
    """With a large C examples push each other back and forth: passes raised the dual a little, again and again, for ever."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 5)) for _ in range(300)]
    Y = [rng.integers(3, size=6) for _ in X]
    options = {"stabilization": "line-search"}
    solution = mm.train(mm.models.Chain(3), X, Y, C, solver="one-slack", tol=1e-2, solver_options=options, max_time=60)
    assert solution.certificate.converged
    assert solution.history[-1]["cuts"] > 0
    assert solution.certificate.oracle_calls < 30 * len(X)


@pytest.mark.parametrize("C", [3.0, 10.0, 100.0, 1e4])
def test_n_slack_ends_where_planes_are_dropped_at_once(C):
    solution = mm.train(
        mm.models.Binary(),
        np.ones((2, 1)),
        [1, 1],
        C,
        loss="squared_hinge",
        solver="n-slack",
        solver_options={"prune_after": 1},
        max_iter=100,
    )
    assert solution.certificate.converged


@pytest.mark.parametrize("solver", ["one-slack", "line-search", "n-slack"])
def test_epsilon_means_the_same_for_a_small_C_and_for_small_weights(solver):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = np.argmax(X[:, :3] + 0.3 * rng.normal(size=(100, 3)), axis=1)
    options = {"solver": solver, "solver_options": {"epsilon": 0.05}}
    plain = mm.train(mm.models.Multiclass(3), X, y, 0.001, **options)
    weighted = mm.train(mm.models.Multiclass(3), X, y, 0.1, sample_weight=np.full(100, 0.01), **options)
    assert weighted.certificate.gap <= 0.05 * 0.001 * 100
    assert weighted.w == pytest.approx(plain.w, abs=1e-6 + 0.05 * np.abs(plain.w).max())


def test_cached_cuts_are_taken_by_the_same_epsilon_for_a_small_C_and_for_small_weights():
    """Weights of 1/128 and C times 128 are the same problem but for rounding; cuts were to be violated by 128 ε there."""
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 5)) for _ in range(40)]
    Y = [np.argmax(x[:, :3] + 0.5 * rng.normal(size=(6, 3)), axis=1) for x in X]
    options = {"solver": "one-slack", "solver_options": {"epsilon": 0.02}}
    plain = mm.train(mm.models.Chain(3), X, Y, 1.0, **options)
    weighted = mm.train(mm.models.Chain(3), X, Y, 128.0, sample_weight=np.full(40, 1 / 128), **options)
    for name in ("from_cache", "violation", "oracle_calls"):
        mine, other = ([record[name] for record in run.history[:30]] for run in (weighted, plain))
        assert mine == pytest.approx(other, rel=1e-6)
    assert {record["from_cache"] for record in plain.history[:30]} == {False, True}
