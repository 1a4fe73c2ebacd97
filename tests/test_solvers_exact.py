"""Solvers against the reference on problems small enough to enumerate.

What every solver promises: D ≤ optimum ≤ P in every record of every history; all reach the optimum to 1e-6, except
line-search and bcfw, to 1e-3; the certificate belongs to the weights returned.
"""

import functools
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
    "block-dual": ("block-dual", "hinge", {}),
    "block-dual, few planes": ("block-dual", "hinge", {"max_planes": 1, "sweeps": 2}),
    "block-dual, squared hinge": ("block-dual", "squared_hinge", {}),
    "block-dual, skipping": ("block-dual", "hinge", {"skip_satisfied": True}),
    "block-dual, squared hinge, skipping": ("block-dual", "squared_hinge", {"skip_satisfied": True}),
    "n-slack": ("n-slack", "hinge", {}),
    "n-slack, small batches": ("n-slack", "hinge", {"batch_size": 1, "prune_after": 2}),
    "n-slack, squared hinge": ("n-slack", "squared_hinge", {}),
    "line-search": ("line-search", "hinge", {}),
    "bcfw": ("bcfw", "hinge", {}),
    "bcfw, pairs by gaps": ("bcfw", "hinge", {"pairwise": True, "gap_sampling": True, "batch_size": 2}),
    "sdm": ("sdm", "hinge", {}),
    "sdm, batches": ("sdm", "hinge", {"batch_size": 3, "kappa1": 1, "kappa2": 2}),
    "sdm, over-relaxed": ("sdm", "hinge", {"relaxation": 1.7, "tau": 4.0, "tau_inner": 2.0}),
    "dcd": ("dcd", "squared_hinge", {}),
    "dcd-light": ("dcd-light", "squared_hinge", {}),
    "dcd-light, batches": ("dcd-light", "squared_hinge", {"batch_size": 3}),
    "cpd": ("cpd", "squared_hinge", {}),
}
SUBLINEAR = {"line-search", "bcfw"}
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
    is_sublinear = solver in SUBLINEAR
    for seed in range(2 if is_sublinear else N_SEEDS):
        problem = case(name, variant, seed)
        best = problem.optimum(rescaling, loss)
        solution = problem.train(
            solver,
            loss,
            rescaling,
            tol=9e-4 if is_sublinear else 1e-7,
            max_iter=20_000 if is_sublinear or solver == "dcd-light" else 2000,
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
        assert certificate.dual == min(certificate.primal, max(record["dual"] for record in solution.history))
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


@pytest.mark.parametrize("solver", [name for name, solver in SOLVERS.items() if solver.has_dual])
def test_rescalings_coincide_for_zero_one_loss(solver):
    loss = min(SOLVERS[solver].losses)
    for name in ("binary", "multiclass"):
        problem, tol = case(name, "plain", 0), 1e-3 if solver in SUBLINEAR else 1e-7
        margin, slack = (problem.train(solver, loss, rescaling=r, tol=tol).certificate for r in ("margin", "slack"))
        assert margin.primal == pytest.approx(slack.primal, rel=2 * tol)


@pytest.mark.parametrize(
    ("solver", "loss"), [(s, loss) for s in SOLVERS if SOLVERS[s].has_dual for loss in sorted(SOLVERS[s].losses)]
)
@pytest.mark.parametrize("C", [1e-6, 1e6])
def test_extreme_C_is_solved_too(solver, loss, C):
    problem = case("chain", "plain", 0)
    tol = 1e-3 if solver in SUBLINEAR else 1e-6
    # One α at a time hardly moves mass from plane to plane where 1/2C outweighs ‖ψ‖² by far.
    reached = 3e-5 if solver in ("dcd", "dcd-light") and C < 1.0 else tol
    max_iter = 10_000 if solver in ("sdm", "dcd", "dcd-light") else 2000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution = mm.train(
            problem.native,
            problem.X,
            problem.Y,
            C,
            solver=solver,
            loss=loss,
            tol=tol,
            max_iter=max_iter,
            random_state=0,
        )
    best = reference.solve(problem.planes("margin"), C, loss=loss, tolerance=1e-5)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-6)
        assert record["primal"] >= best.lower_bound * (1 - 1e-6)
    if solver not in SUBLINEAR:
        assert solution.certificate.relative_gap <= reached
