"""Cuts of sampled examples: how near they come to the optimum, the algorithms, and what they refuse."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from sampled_problems import KINDS, RBF, STRATEGIES, column, exact, problem, train
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers import _sampled, sampled_cuts
from maxmargin.solvers.sampled_cuts import Annealed, SampledCutsSolver, inclusion_chances, systematic_sample

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


# ------------------------------------------------------------------------------------------------- how near it comes


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_sample_of_all_examples_is_the_exact_method(kind, strategy, weighted):
    _, _, Y, C, s = problem(kind, weighted)
    solution, best = train(kind, weighted, strategy=strategy, sample_size=1000), exact(kind, weighted)
    allowed = 1.3 * 0.001 * C * (len(Y) if s is None else s.sum())  # C'ε, and what the QP leaves
    assert solution.certificate.converged
    assert best.dual <= solution.certificate.primal <= best.primal + allowed
    # All cuts are exact: their QP has true bounds for values, and its point needs no scaling.
    assert solution.certificate.dual == pytest.approx(solution.history[-1]["model_value"], rel=1e-9)
    assert solution.certificate.gap <= allowed


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_larger_samples_come_nearer_to_the_optimum(kind, strategy):
    best = exact(kind).primal
    distances = [
        np.mean(
            [train(kind, seed=seed, strategy=strategy, sample_size=r).certificate.primal - best for seed in range(3)]
        )
        for r in (5, 25, 1000)
    ]
    assert distances[0] > distances[1] > distances[2]
    assert distances[1] < 0.2 * best


@pytest.mark.parametrize("sampling", ["uniform", "violation"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_mean_of_sampled_cuts_is_the_exact_cut(weighted, sampling):
    found = sampled_cuts.FoundPlanes(
        np.arange(40),
        np.random.default_rng(1).uniform(0.2, 3.0, size=40) if weighted else np.ones(40),
        np.ones(40),
        np.random.default_rng(2).uniform(-3.0, 1.0, size=40),
    )
    solver = SampledCutsSolver({"sample_size": 8, "sampling": sampling})
    rng, total, n = np.random.default_rng(0), np.zeros(40), 10_000
    for _ in range(n):
        places, shares = solver._sample(rng, found)
        assert len(places) == 8
        assert np.all(np.diff(places) > 0)
        total[places] += shares
    assert total / n == pytest.approx(found.weights, rel=0.12)


def test_chances_by_violation_sum_to_the_sample_size_and_none_is_above_one():
    violations = np.array([100.0, 50.0, 1.0, 0.5, 0.0, 0.0])
    for r in (1, 2, 3, 5):
        chances = inclusion_chances(violations, r)
        assert chances.sum() == pytest.approx(r)
        assert np.all((chances > 0.0) & (chances <= 1.0))
        assert np.all(np.diff(chances) <= 0.0)
    assert inclusion_chances(np.zeros(4), 2) == pytest.approx(0.5)
    rng = np.random.default_rng(0)
    drawn = np.bincount(
        np.concatenate([systematic_sample(rng, inclusion_chances(violations, 3)) for _ in range(10_000)]), minlength=6
    )
    assert drawn / 10_000 == pytest.approx(inclusion_chances(violations, 3), abs=0.02)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kernel", ["precomputed", "callable", "sparse", "constant"])
def test_every_kind_of_kernel_gives_the_same(kernel, strategy):
    _, X, Y, C, _ = problem("binary")
    plain = RBF if kernel != "constant" else mm.Kernel("rbf", gamma=1.5, constant=2.0)
    other, data = {
        "precomputed": (mm.Kernel("precomputed"), RBF(X, X)),
        "callable": (mm.Kernel(lambda A, B: RBF(A, B)), X),
        "sparse": (RBF, sp.csr_array(X)),
        "constant": (mm.Kernel("precomputed"), RBF(X, X) + 2.0),
    }[kernel]

    def first_steps(kernel, X):
        # Later ones may differ: a rounding error is enough to change a step of the coarse QP, and with it all that follows.
        with pytest.warns(ConvergenceWarning, match="max_iter=5"):
            return mm.train(
                mm.models.Binary(kernel=kernel),
                X,
                Y,
                C,
                solver="sampled-cuts",
                solver_options={"strategy": strategy, "sample_size": 30},
                max_iter=5,
            )

    one, two = first_steps(plain, X), first_steps(other, data)
    assert column(two, "model_value") == pytest.approx(column(one, "model_value"), rel=1e-6)
    assert two.certificate.primal == pytest.approx(one.certificate.primal, rel=1e-6)
    assert two.certificate.dual == pytest.approx(one.certificate.dual, rel=1e-6)
    # And scores of some rows are those of the whole matrix.
    bound = mm.models.Binary(kernel=other).bind(data, Y)
    rows, entries, values = np.array([2, 3, 50, 149]), np.array([0, 7, 50]), np.array([1.0, -2.0, 0.5])
    K = plain(X, X)
    assert bound.scores_of(rows, entries, values, is_single=False) == pytest.approx(K[rows][:, entries] @ values)
    assert bound.scores_of(rows, entries, values, is_single=True) == pytest.approx(
        K[rows][:, entries] @ values, rel=1e-5
    )
    coef = np.zeros(bound.n_weights)
    coef[entries] = values
    assert bound.square(coef) == pytest.approx(coef @ K @ coef)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_estimators_with_a_kernel_can_be_trained_so(kind, strategy):
    _, X, Y, C, _ = problem(kind)
    estimator = {"binary": mm.BinarySVM, "multiclass": mm.MulticlassSVM, "chain": mm.ChainSVM}[kind]
    options = {"strategy": strategy, "sample_size": 30}
    svm = estimator(C=C, kernel="rbf", gamma=1.5, solver="sampled-cuts", solver_options=options).fit(X, Y)
    assert svm.certificate_.converged
    assert svm.certificate_.dual <= svm.certificate_.primal
    assert svm.score(X, Y) > 0.5
    with pytest.raises(ValueError, match="needs a model with an exact kernel"):
        estimator(solver="sampled-cuts").fit(X, Y)


# -------------------------------------------------------------------------------------------------------- the algorithms


def recorded_cuts(monkeypatch, kind="binary", weighted=False, **options):
    """Train and return all cuts that were kept."""
    kept = []
    keep = _sampled.SampledCuts.keep

    def spy(self, n_threads):
        kept.append(self.pending)
        return keep(self, n_threads)

    monkeypatch.setattr(_sampled.SampledCuts, "keep", spy)
    return train(kind, weighted, **options), kept


@pytest.mark.parametrize("weighted", [False, True])
def test_the_first_linear_cut_has_the_offset_of_the_exact_one(monkeypatch, weighted):
    _, _, Y, _, s = problem("binary", weighted)
    s = np.ones(len(Y)) if s is None else s
    _, kept = recorded_cuts(monkeypatch, weighted=weighted, sample_size=10)
    # At w = 0 every example with a weight is in I, with Δ = 1 and ψ = y φ(x).
    assert kept[0].loss == pytest.approx(s.sum())
    examples, n = kept[0].planes.examples(), np.count_nonzero(s)
    assert len(examples) == 10
    assert kept[0].shares == pytest.approx(n / 10 * s[examples])
    assert kept[0].values == pytest.approx(n / 10 * (s * Y)[examples])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_every_linear_cut_is_a_scaled_sample_of_the_exact_one(monkeypatch, kind, weighted):
    points = []
    draw = SampledCutsSolver._draw

    def spy(self, rng, found, needed):
        points.append(found)
        return draw(self, rng, found, needed)

    monkeypatch.setattr(SampledCutsSolver, "_draw", spy)
    solution, kept = recorded_cuts(monkeypatch, kind, weighted, sample_size=10)
    added = [found for found, record in zip(points, solution.history[1:], strict=True) if record["cuts_added"]]
    assert len(added) == len(kept) > 20
    sizes = set()
    for found, cut in zip(added, kept, strict=True):
        place = {example: k for k, example in enumerate(found.examples.tolist())}
        mine = np.array([place[example] for example in cut.planes.examples().tolist()])
        sizes.add(len(found.examples))
        assert cut.loss == pytest.approx(found.weights @ found.losses)
        assert cut.planes.losses() == pytest.approx(found.losses[mine])
        assert cut.shares == pytest.approx(len(place) / len(mine) * found.weights[mine])
    assert len(sizes) > 1, "I changes from cut to cut"


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_constant_cuts_are_means_of_their_samples_times_n(monkeypatch, kind, weighted):
    _, _, Y, _, s = problem(kind, weighted)
    n = len(Y) if s is None else np.count_nonzero(s)
    _, kept = recorded_cuts(monkeypatch, kind, weighted, strategy="constant", sample_size=10)
    for cut in kept:
        weights = np.ones(len(Y)) if s is None else s
        assert cut.shares == pytest.approx(n / 10 * weights[cut.planes.examples()])
        assert cut.loss == pytest.approx(cut.shares @ cut.planes.losses())
        assert len(cut.shares) <= 10


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_products_of_cuts_are_those_of_the_feature_space(monkeypatch, kind, strategy):
    _, X, *_ = problem(kind)
    rows = X if kind != "chain" else np.concatenate(X)
    K, models = RBF(rows, rows), []
    init = _sampled.SampledModel.__init__

    def spy(self, problem, *arguments, **options):
        init(self, problem, *arguments, **options)
        models.append((self, problem))

    monkeypatch.setattr(_sampled.SampledModel, "__init__", spy)
    solution = train(kind, strategy=strategy, sample_size=10, epsilon=0.02)
    ((model, bound),) = models
    g = np.zeros((model.size, bound.n_weights))
    for k in range(model.size):
        g[k, model.sampled[k].entries] = model.sampled[k].values
    emission, table = g[:, : bound.n_kernel].reshape(model.size, len(rows), -1), g[:, bound.n_kernel :]
    scores = np.einsum("tu,aul->atl", K, emission, optimize=True)
    gram = emission.reshape(model.size, -1) @ scores.reshape(model.size, -1).T + table @ table.T
    assert model._qp.gram == pytest.approx(gram, abs=1e-9)
    assert solution.w.shape == (bound.n_weights,)
    assert model.weights.coef == pytest.approx(model.alpha @ g, abs=1e-12)
    assert model.norm2 == pytest.approx(model.alpha @ gram @ model.alpha)


def test_linear_stops_when_the_exact_cut_is_no_longer_violated():
    for epsilon in (0.1, 0.01):
        *before, last = column(train(sample_size=20, epsilon=epsilon), "violation")
        assert min(before) > epsilon >= last
    # At w = 0 the exact cut is worth the mean loss.
    assert column(train(sample_size=20), "violation")[0] == pytest.approx(1.0)


@pytest.mark.parametrize("quiet", [1, 4, 7])
def test_constant_stops_after_so_many_quiet_samples_in_a_row(quiet):
    solution = train(strategy="constant", sample_size=20, quiet=quiet, epsilon=0.02)
    is_quiet = [violation <= 0.02 for violation in column(solution, "violation")]
    runs = "".join("q" if q else "." for q in is_quiet)
    assert runs.endswith("q" * quiet)
    assert "q" * quiet not in runs[:-1]
    # What is not violated does not become a cut.
    added = column(solution, "cuts_added")
    assert added[0] == 0
    assert added[1:] == [int(not q) for q in is_quiet[:-1]]


def test_an_estimated_primal_is_not_below_what_it_costs_without_slacks():
    _, X, *_ = problem("binary")
    K = RBF(X, X)
    for seed in range(10):
        solution = train(
            strategy="constant", sample_size=20, epsilon=0.05, primal_sample=2, dual_bound=False, seed=seed
        )
        low, high = solution.certificate.primal_interval
        assert (1.0 + 1e-6) * low >= 0.5 * solution.w @ K @ solution.w
        assert low <= solution.certificate.primal <= high


def test_samples_are_drawn_again_until_one_is_violated_but_not_for_ever(monkeypatch):
    few, many = (train(sample_size=2, resample=cap, epsilon=0.02, max_iter=5000) for cap in (1, 10))
    assert set(column(few, "tries")) == {0, 1}
    assert 1 < max(column(many, "tries")) <= 10
    # With one try some cuts would change nothing, and are left out.
    assert 0 in column(few, "cuts_added")[1:]


def test_the_most_violated_of_all_tries_is_taken():
    found = sampled_cuts.FoundPlanes(np.arange(9), np.ones(9), np.ones(9), np.linspace(-1.0, 1.0, 9))
    solver = SampledCutsSolver({"sample_size": 1, "resample": 500})
    places, shares, tries = solver._draw(np.random.default_rng(0), found, np.inf)
    assert (places.tolist(), shares.tolist(), tries) == ([0], [9.0], 500)
    # c − w·g = 9 + 9 for that one, and 9 for the middle one.
    _, _, tries = solver._draw(np.random.default_rng(0), found, 0.0)
    assert tries < 10
    whole = SampledCutsSolver({"sample_size": 9, "resample": 500})
    assert whole._draw(np.random.default_rng(0), found, np.inf)[2] == 1, "there is but one sample of all"


def test_annealing_halves_epsilon_each_time_that_it_is_reached():
    epsilon = Annealed(0.001, 8.0)
    assert epsilon.now == 0.008
    epsilon.lower_to(0.01)
    assert epsilon.now == 0.008
    epsilon.lower_to(0.003)
    assert epsilon.now == 0.002
    epsilon.lower_to(-1.0)
    assert epsilon.now == epsilon.last == 0.001
    assert Annealed(0.001, 1.0).now == 0.001


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("start", [{"annealing": 16.0}, {"start_components": 20}])
def test_other_beginnings_end_at_the_same_epsilon(kind, strategy, start):
    _, _, Y, C, _ = problem(kind)
    plain, other = (train(kind, strategy=strategy, sample_size=1000, **more) for more in ({}, start))
    allowed = 1.3 * 0.001 * C * len(Y)
    assert other.certificate.converged
    assert other.certificate.primal - exact(kind).primal <= allowed
    # A sample of all that violate their margins is the same, whatever is asked of it.
    is_same = strategy == "linear" and "annealing" in start
    assert (column(other, "model_value") == column(plain, "model_value")) == is_same


def test_annealing_asks_more_of_early_samples():
    tries = [
        np.mean(column(train(strategy="linear", sample_size=10, annealing=factor), "tries")[1:100])
        for factor in (1.0, 200.0)
    ]
    assert tries[0] < tries[1]


@pytest.mark.parametrize("kind", KINDS)
def test_a_low_rank_start_begins_near_the_optimum(kind):
    cold, warm = (
        train(kind, strategy="linear", sample_size=1000, start_components=k).history[0]["primal"] for k in (None, 60)
    )
    best = exact(kind).primal
    assert warm - best < 0.5 * (cold - best)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_prune_after_drops_cuts(strategy):
    short, long = (train(strategy=strategy, sample_size=20, prune_after=n) for n in (1, 100_000))
    assert sum(column(short, "cuts_dropped")) > 0
    assert sum(column(long, "cuts_dropped")) == 0
    assert max(column(short, "cuts")) < max(column(long, "cuts"))
    for solution in (short, long):
        for a, b in pairwise(solution.history):
            assert b["cuts"] == a["cuts"] + b["cuts_added"] - b["cuts_dropped"]
    best = exact("binary")
    assert best.dual <= short.certificate.primal <= 1.25 * best.primal


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_of_dropped_cuts_leave_the_expansion(strategy):
    solution = train(strategy=strategy, sample_size=10, prune_after=1)
    assert sum(column(solution, "cuts_dropped")) > 0
    coef = np.abs(solution.w[solution.w != 0.0])
    assert coef.min() > 1e-9 * coef.max(), "no rounding errors"


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_the_same_random_state_gives_the_same_bits(strategy):
    one, two, other = (train(strategy=strategy, sample_size=10, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(one.w, two.w)
    assert one.certificate == two.certificate
    assert not np.array_equal(one.w, other.w)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_two_threads_make_the_same_iterates_as_one(kind, strategy):
    one, two = (train(kind, strategy=strategy, sample_size=10, n_jobs=n) for n in (1, 2))
    assert column(one, "model_value") == column(two, "model_value")
    assert np.array_equal(one.w, two.w)
    assert one.certificate == two.certificate


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_an_example_of_weight_0_takes_no_part(kind, strategy):
    solution = train(kind, weighted=True, strategy=strategy, sample_size=10)
    model, X, _, _, s = problem(kind, True)
    lengths = [len(x) if kind == "chain" else 1 for x in X]
    used = np.any(model.blocks(solution.w)["coef"] != 0.0, axis=0)
    assert used.any()
    assert not np.any(used & (np.repeat(s, lengths) == 0.0))


def test_kernel_values_of_linear_grow_with_n_and_those_of_constant_do_not():
    counts = {}
    for n in (4000, 8000):
        data = mm.datasets.make_checkers(n)
        for strategy in STRATEGIES:
            options = {"strategy": strategy, "sample_size": 20, "dual_bound": False, "epsilon": 1e-6}
            model = mm.models.Binary(kernel=mm.Kernel("rbf", gamma=20.0, cache=0.0))
            with pytest.warns(ConvergenceWarning, match="max_iter=12"):
                solution = mm.train(model, data.X, data.y, solver="sampled-cuts", solver_options=options, max_iter=12)
            counts[strategy, n] = solution.history[-1]["kernel_values"]
    # Fewer than all: far rows have none.
    assert all(counts["linear", n] < 11 * 20 * n for n in (4000, 8000))
    assert counts["linear", 8000] / counts["linear", 4000] == pytest.approx(2.0, rel=0.05)
    assert max(counts["constant", n] for n in (4000, 8000)) < 12 * 20 * 2 * 12 * 20


def test_float32_kernels_come_to_the_same_solution():
    data = mm.datasets.make_checkers(2500)
    model = mm.models.Binary(kernel=mm.Kernel("rbf", gamma=20.0))
    for strategy in STRATEGIES:
        options = {"solver": "sampled-cuts", "solver_options": {"strategy": strategy, "sample_size": 100}}
        rough, fine = (mm.train(model, data.X, data.y, tol=tol, **options).certificate for tol in (1e-3, 1e-6))
        # Rounding sends the two on different ways sooner or later.
        assert rough.primal == pytest.approx(fine.primal, rel=0.03)
        assert rough.dual <= fine.primal
        assert fine.dual <= rough.primal


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_early_end_still_has_both_bounds(strategy):
    rule = r"epsilon=0.001 asks for a cut that is violated by no more, and the last one was violated by "
    with pytest.warns(
        ConvergenceWarning, match=rf"max_iter=7 was reached; the relative duality gap is \S+, {rule}"
    ) as w:
        solution = train(strategy=strategy, sample_size=10, max_iter=7)
    assert "tol" not in str(w[0].message)
    best = exact("binary")
    assert len(solution.history) == 7
    assert not solution.certificate.converged
    assert 0.0 < solution.certificate.dual <= best.primal
    assert best.dual <= solution.certificate.primal


@pytest.mark.parametrize(("strategy", "said"), [("linear", "primal "), ("constant", "primal estimate ")])
def test_verbose_tells_what_is_known(strategy, said, capsys):
    train(strategy=strategy, sample_size=20, verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert all(said in line and "dual" not in line for line in lines)


# --------------------------------------------------------------------------------------------------------------- errors


def refused(match, model=None, **arguments):
    kernel_model, X, Y, C, _ = problem("binary")
    with pytest.raises(ValueError, match=match):
        mm.train(model or kernel_model, X, Y, C, solver="sampled-cuts", **arguments)


def test_models_without_an_exact_kernel_are_refused():
    refused("needs a model with an exact kernel", mm.models.Binary())
    refused("needs a model with an exact kernel", mm.models.Binary(kernel=mm.LowRank(RBF, 10)))


def test_other_objectives_are_refused():
    refused("solver 'sampled-cuts' minimises the hinge loss; for loss='squared_hinge' use", loss="squared_hinge")
    refused("solver 'sampled-cuts' does not rescale slacks; for rescaling='slack' use", rescaling="slack")


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("strategy", "quadratic", "'linear' or 'constant'"),
        ("sample_size", 0, "an integer ≥ 1"),
        ("sample_size", 2.5, "an integer ≥ 1"),
        ("epsilon", 0.0, "a positive number"),
        ("epsilon", None, "a positive number"),
        ("quiet", 0, "an integer ≥ 1"),
        ("prune_after", 0, "an integer ≥ 1"),
        ("resample", 0, "an integer ≥ 1"),
        ("sampling", "greedy", "'uniform', 'independent' or 'violation'"),
        ("averaging", None, "True or False"),
        ("dual_bound", 1, "True or False"),
    ],
)
def test_bad_options_are_refused(option, value, expected):
    refused(rf"solver_options\['{option}'\] must be {expected}, found {value!r}", solver_options={option: value})
    refused("has no option 'samples'", solver_options={"samples": 3})


@pytest.mark.parametrize(
    ("sampling", "strategy", "other"), [("independent", "constant", "linear"), ("violation", "linear", "constant")]
)
def test_a_way_of_sampling_that_means_nothing_to_the_strategy_is_refused(sampling, strategy, other):
    options = {"sampling": sampling, "strategy": other}
    refused(f"sampling='{sampling}' is for strategy='{strategy}', found strategy='{other}'", solver_options=options)
    assert train(sampling=sampling, strategy=strategy, sample_size=50).certificate.converged


def test_other_solvers_name_it_where_the_kernel_leaves_no_vectors():
    model, X, Y, C, _ = problem("binary")
    with pytest.raises(ValueError, match=r"there is 'block-dual', 'one-slack' or 'sampled-cuts' for this loss"):
        mm.train(model, X, Y, C, solver="n-slack")
    for solver in ("dcd", "cpd"):
        with pytest.raises(ValueError, match="for loss='hinge' use") as error:
            mm.train(mm.models.Binary(), X, Y, C, solver=solver)
        assert "sampled-cuts" not in str(error.value), "a linear model cannot use it"


def test_a_kernel_that_is_none_is_refused():
    _, X, Y, C, _ = problem("binary")
    K = RBF(X, X) - 0.9
    np.fill_diagonal(K, 0.0)
    for strategy in STRATEGIES:
        with pytest.raises(ValueError, match="not positive semi-definite"):
            mm.train(
                mm.models.Binary(kernel=mm.Kernel("precomputed")),
                K,
                np.ones(len(Y)),
                C,
                solver="sampled-cuts",
                solver_options={"strategy": strategy, "sample_size": 20},
            )
