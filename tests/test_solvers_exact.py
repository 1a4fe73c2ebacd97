"""Solvers against the reference on problems small enough to enumerate, and what their options change.

What every solver promises: D ≤ optimum ≤ P in every record of every history; one-slack and n-slack reach the
optimum to 1e-6, line-search to 1e-3; the certificate belongs to the weights returned.
"""

import functools
import json
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest
import random_problems
import reference
from native_models import native, to_reference
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers import SOLVERS

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

# Each variant adds one thing to the plain problem; the last adds everything that fits together.
VARIANTS = ["plain", "sample weights", "loss weights", "nonnegative", "forbidden", "everything"]
PROBLEMS = [
    (name, v) for name in ("binary", "multiclass", "chain") for v in VARIANTS if name == "chain" or v != "forbidden"
]
N_SEEDS = 3

CONFIGURATIONS = {
    "one-slack, no cache": ("one-slack", "hinge", {"cache_size": 0}),
    **{
        f"one-slack, cache {size}, refresh {refresh}": ("one-slack", "hinge", {"cache_size": size, "refresh": refresh})
        for size in (1, 3, 10)
        for refresh in (0.3, 1.0)
    },
    "one-slack, prune at once": ("one-slack", "hinge", {"cache_size": 3, "prune_after": 1}),
    "n-slack": ("n-slack", "hinge", {}),
    "n-slack, small batches": ("n-slack", "hinge", {"batch_size": 1, "prune_after": 2}),
    "n-slack, squared hinge": ("n-slack", "squared_hinge", {}),
    "line-search": ("line-search", "hinge", {}),
}
if "stabilization" in SOLVERS["one-slack"].options:
    CONFIGURATIONS["one-slack, stabilized"] = ("one-slack", "hinge", {"stabilization": "line-search"})
if "warm_start_passes" in SOLVERS["one-slack"].options:
    CONFIGURATIONS["one-slack, warm start"] = ("one-slack", "hinge", {"warm_start_passes": 3, "cache_size": 3})


class Case:
    """A random problem in both worlds: the reference's, and the library's with the arguments for ``mm.train``."""

    def __init__(self, name, variant, seed):
        rng = np.random.default_rng([seed, VARIANTS.index(variant), len(name)])
        everything = variant == "everything"
        with_loss = everything or variant == "loss weights"
        if name == "binary":
            # A constant column is Binary's bias.
            self.model = random_problems.random_binary(rng, 7, 3, bias=1.0 if seed % 2 else None, with_cost=with_loss)
        elif name == "multiclass":
            self.model = random_problems.random_multiclass(rng, 7, 3, 3, with_cost=with_loss)
        else:
            self.model = self._chain(rng, seed % 2 == 1, with_loss, everything or variant == "forbidden")
        n = self.model.n_examples
        self.sample_weight = None
        if everything or variant == "sample weights":
            self.sample_weight = random_problems.random_sample_weight(rng, n)
            self.sample_weight[int(rng.integers(n))] = 0.0
            self.sample_weight[int(rng.integers(n))] = 2.0
        self.C = float(10.0 ** rng.uniform(-1.0, 0.5))
        nonnegative, self.bounded = None, None
        if everything or variant == "nonnegative":
            nonnegative, self.bounded = self._bounds(rng, name)
        self.native, self.X, self.Y = native(self.model, nonnegative, sparse=seed % 2 == 0)

    @staticmethod
    def _chain(rng, ends, with_loss, with_forbidden):
        while True:
            model = random_problems.random_chain(
                rng, 5, 2, 3, max_length=3, start=ends, stop=ends, with_forbidden=with_forbidden
            )
            if with_loss:
                # Multiples of a half: slack rescaling counts losses in steps.
                model.label_weight = rng.integers(1, 5, size=3) * 0.5
            try:
                native(model)[0].bind(model.X, model.y)
            except ValueError:
                continue  # what is forbidden may leave no endless sequence, which is refused
            if model.forbidden or not with_forbidden:
                return model

    def _bounds(self, rng, name):
        """About half of the weights, as masks by block and as numbers in the reference's layout."""
        chosen = rng.random(self.model.n_weights) < 0.5
        if name == "chain":
            return self.model.blocks(chosen), np.flatnonzero(chosen)
        return {"coef": chosen.reshape(-1, self.X_width)}, np.flatnonzero(chosen)

    @property
    def X_width(self):
        return self.model.X.shape[1] + (getattr(self.model, "bias", None) is not None)

    @functools.cache  # noqa: B019 - cases live as long as the test run
    def planes(self, rescaling):
        return reference.planes(self.model, rescaling)

    @functools.cache  # noqa: B019
    def optimum(self, rescaling, loss):
        return reference.solve(self.planes(rescaling), self.C, self.sample_weight, loss, self.bounded)

    def train(self, solver, loss="hinge", rescaling="margin", **options):
        options = {"tol": 1e-7, "random_state": 0, **options}
        return mm.train(
            self.native,
            self.X,
            self.Y,
            self.C,
            solver=solver,
            loss=loss,
            rescaling=rescaling,
            sample_weight=self.sample_weight,
            **options,
        )


@functools.cache
def case(name, variant, seed):
    return Case(name, variant, seed)


def assert_bounds_hold(history, best):
    """D ≤ optimum ≤ P in every record; the optimum itself is known to lie between the reference's two bounds."""
    assert history
    for record in history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
        assert record["gap"] == record["primal"] - record["dual"]


# --------------------------------------------------------------------------------------------------- the optimum


@pytest.mark.parametrize("configuration", CONFIGURATIONS)
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(("name", "variant"), PROBLEMS)
def test_every_solver_reaches_the_reference_optimum(name, variant, rescaling, configuration):
    solver, loss, options = CONFIGURATIONS[configuration]
    is_sublinear = solver == "line-search"
    for seed in range(2 if is_sublinear else N_SEEDS):
        problem = case(name, variant, seed)
        best = problem.optimum(rescaling, loss)
        solution = problem.train(
            solver,
            loss,
            rescaling,
            tol=9e-4 if is_sublinear else 1e-7,
            max_iter=20_000 if is_sublinear else 2000,
            solver_options=options,
        )
        certificate = solution.certificate
        assert certificate.converged
        assert certificate.exact
        accuracy = 1e-3 if is_sublinear else 1e-6
        assert certificate.primal - best.lower_bound <= accuracy * certificate.primal
        assert best.objective - certificate.dual <= accuracy * certificate.primal
        assert_bounds_hold(solution.history, best)
        w = to_reference(problem.native, solution.w)
        independent = reference.primal(w, problem.planes(rescaling), problem.C, problem.sample_weight, loss)
        assert certificate.primal == pytest.approx(independent, rel=1e-10)
        assert certificate.dual == max(record["dual"] for record in solution.history)
        if problem.bounded is not None:
            assert np.all(w[problem.bounded] >= 0)


def test_bounds_of_weights_change_the_optimum():
    # Otherwise the variant above would say nothing.
    changed = 0
    for name in ("binary", "multiclass", "chain"):
        for seed in range(N_SEEDS):
            problem = case(name, "nonnegative", seed)
            free = reference.solve(problem.planes("margin"), problem.C, problem.sample_weight)
            changed += problem.optimum("margin", "hinge").objective > free.objective * (1 + 1e-4)
    assert changed >= 6


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_rescalings_coincide_for_zero_one_loss(solver):
    for name in ("binary", "multiclass"):
        problem, tol = case(name, "plain", 0), 1e-3 if solver == "line-search" else 1e-7
        margin, slack = (problem.train(solver, rescaling=r, tol=tol).certificate for r in ("margin", "slack"))
        assert margin.primal == pytest.approx(slack.primal, rel=2 * tol)


@pytest.mark.parametrize(("solver", "loss"), [(s, loss) for s in SOLVERS for loss in sorted(SOLVERS[s].losses)])
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_C_is_solved_too(solver, loss, C):
    problem = case("chain", "plain", 0)
    tol = 1e-3 if solver == "line-search" else 1e-6
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = mm.train(
            problem.native, problem.X, problem.Y, C, solver=solver, loss=loss, tol=tol, max_iter=2000, random_state=0
        )
    best = reference.solve(problem.planes("margin"), C, loss=loss, tolerance=1e-5)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-6)
        assert record["primal"] >= best.lower_bound * (1 - 1e-6)
    if solver != "line-search":
        assert solution.certificate.relative_gap <= tol


# ------------------------------------------------------------------------------------------ what options change


@functools.cache
def tagging_problem():
    """A chain problem that takes a few dozen iterations: 120 sequences of 2 to 7 tokens."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(2, 8, size=120)
    X = [rng.normal(size=(length, 6)) for length in lengths]
    truth = rng.normal(size=(4, 6))
    Y = [np.argmax(x @ truth.T + 0.7 * rng.normal(size=(len(x), 4)), axis=1) for x in X]
    return X, Y


def train(solver="one-slack", rescaling="margin", C=0.05, **options):
    X, Y = tagging_problem()
    options = {"tol": 1e-5, "random_state": 0, **options}
    return mm.train(mm.models.Chain(4, ends=True), X, Y, C, solver=solver, rescaling=rescaling, **options)


def column(solution, name):
    return [record[name] for record in solution.history]


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


def test_a_smaller_epsilon_takes_more_iterations():
    for solver in ("one-slack", "line-search", "n-slack"):
        counts = [len(train(solver, solver_options={"epsilon": e}).history) for e in (0.5, 0.02)]
        assert counts[0] < counts[1]


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_tol_bounds_the_relative_gap(solver):
    loose, tight = train(solver, tol=0.1), train(solver, tol=0.01)
    for solution, tol in ((loose, 0.1), (tight, 0.01)):
        assert solution.certificate.converged
        assert solution.certificate.relative_gap <= tol
    assert len(loose.history) < len(tight.history)


def test_qp_precision_follows_the_violation():
    tolerances = np.array(column(train(tol=1e-6, solver_options={"cache_size": 0}), "qp_tolerance"))
    assert tolerances[0] == 0.0, "nothing was solved yet"
    assert tolerances[1] > 100 * tolerances[-1]


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_max_iter_ends_training_with_a_warning_that_tells_the_gap(solver):
    with pytest.warns(
        ConvergenceWarning, match=r"max_iter=3 was reached; the relative duality gap is (.+), tol is"
    ) as w:
        solution = train(solver, max_iter=3, tol=1e-9)
    assert len(solution.history) == 3
    assert not solution.certificate.converged
    said = float(str(w[0].message).split("gap is ")[1].split(",")[0])
    assert said == pytest.approx(solution.certificate.relative_gap, rel=1e-3)
    assert solution.certificate.gap > 0


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_max_time_ends_training_with_a_warning(solver):
    start = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match=r"max_time=0.2 s was reached; the relative duality gap is"):
        solution = train(solver, max_time=0.2, tol=0.0, max_iter=None, C=10.0)
    assert 0.2 <= time.perf_counter() - start < 5.0
    assert column(solution, "seconds") == sorted(column(solution, "seconds"))
    assert solution.history[-1]["seconds"] >= 0.2


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_the_callback_sees_every_record_and_can_end_training(solver):
    seen = []

    def callback(record):
        seen.append(dict(record))
        return len(seen) == 4

    with pytest.warns(ConvergenceWarning, match="the callback asked for an end"):
        solution = train(solver, callback=callback, tol=1e-9)
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


@pytest.mark.parametrize("solver", ["one-slack", "n-slack", "line-search"])
def test_history_has_the_promised_fields(solver):
    common = {"iteration", "seconds", "primal", "dual", "gap", "oracle_calls", "planes", "time_oracle"}
    own = {
        "one-slack": {"cuts", "cuts_active", "cuts_added", "cuts_dropped", "qp_tolerance", "from_cache"}
        | {f"time_{part}" for part in ("cache", "assembly", "gram", "qp", "weights")},
        "n-slack": {"planes_active", "planes_added", "planes_dropped", "qp_tolerance", "time_qp"},
        "line-search": {"time_weights"},
    }
    solution = train(solver, tol=1e-2)
    for number, record in enumerate(solution.history):
        assert common | own[solver] <= set(record)
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
            r"solver 'one-slack' minimises the hinge loss; for loss='squared_hinge' use 'n-slack'",
        ),
        (
            {"solver": "line-search", "loss": "squared_hinge"},
            r"solver 'line-search' minimises the hinge loss; for loss='squared_hinge' use 'n-slack'",
        ),
        ({"solver": "simplex"}, r"solver must be one of 'auto', 'one-slack', .*found 'simplex'"),
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


# -------------------------------------------------------------------------------------------------- determinism


@pytest.mark.parametrize("rescaling", ["margin", "slack"])
@pytest.mark.parametrize(
    ("solver", "options"),
    [
        ("one-slack", {"cache_size": 10}),
        ("one-slack", {"cache_size": 0}),
        ("one-slack", {"cache_size": 5, "refresh": 0.3}),
        ("line-search", {}),
        ("n-slack", {}),
    ],
)
def test_two_threads_make_the_same_iterates_as_one(solver, options, rescaling):
    tol = 1e-2 if solver == "line-search" else 1e-5
    one, two = (train(solver, rescaling, tol=tol, n_jobs=n, solver_options=options) for n in (1, 2))
    for name in ("primal", "dual", "oracle_calls"):
        assert column(one, name) == column(two, name)
    assert np.array_equal(one.w, two.w)
    assert one.certificate == two.certificate


def test_the_same_random_state_gives_the_same_bits_and_another_one_the_same_optimum():
    one, two, other = (train("n-slack", random_state=seed) for seed in (3, 3, 4))
    assert column(one, "dual") == column(two, "dual")
    assert np.array_equal(one.w, two.w)
    assert not np.array_equal(one.w, other.w)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-5)


# ---------------------------------------------------------------------------------------------------- interrupts

LONG_TRAINING = """
    import json, sys, time, warnings
    import numpy as np
    import maxmargin as mm

    warnings.simplefilter("ignore")
    solver, rescaling, n_jobs = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rng = np.random.default_rng(0)
    lengths = rng.integers(5, 30, size=2000)
    X = [rng.normal(size=(length, 20)) for length in lengths]
    Y = [rng.integers(9, size=length) for length in lengths]

    def callback(record):
        # A sweep of n-slack with its QPs takes many seconds here: it is interrupted in the middle.
        if record["iteration"] == (1 if solver == "n-slack" else 2):
            print("started", flush=True)

    options = dict(tol=0.0, max_iter=None, max_time=60, n_jobs=n_jobs, callback=callback)
    model = mm.models.Chain(9)
    solution = mm.train(model, X, Y, 1.0, solver=solver, rescaling=rescaling, **options)
    finished = time.time()
    certificate = solution.certificate
    print(json.dumps({
        "finished": finished,
        "message": certificate.message,
        "converged": certificate.converged,
        "primal": certificate.primal,
        "dual": certificate.dual,
        "finite": bool(np.isfinite(solution.w).all()),
        "predicts": len(model.predict(X[:3], solution.w)),
        "iterations": len(solution.history),
    }), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    ("solver", "rescaling", "n_jobs"),
    [("one-slack", "margin", 1), ("one-slack", "slack", 2), ("n-slack", "margin", 1), ("line-search", "margin", 2)],
)
def test_an_interrupt_ends_training_at_once_with_a_usable_solution(solver, rescaling, n_jobs):
    command = [sys.executable, "-c", textwrap.dedent(LONG_TRAINING), solver, rescaling, str(n_jobs)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "started\n", process.stderr.read()
        time.sleep(0.4)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    result = json.loads(output)
    assert result["finished"] - sent < 5.0  # a tenth of a second on an idle machine, never the sixty of max_time
    assert result["message"] == "training was interrupted"
    assert not result["converged"]
    assert result["finite"]
    assert result["predicts"] == 3
    assert result["iterations"] >= 1
    assert 0 <= result["dual"] <= result["primal"] < np.inf
