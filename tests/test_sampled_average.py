"""The average of the points of sampled cuts: what it is, that it is better, and where there is none."""

import itertools
import warnings

import numpy as np
import pytest
from sampled_problems import KINDS, STRATEGIES, column, problem, train
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers import _sampled, driver, sampled_cuts

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def exact_primal(kind, bound, coef):
    weights = bound.zero_weights()
    weights.coef[:] = coef
    bound.add_scores(weights.coef, weights.exact)
    return bound.primal(weights, problem(kind)[3], squared=False)


def followed(monkeypatch, kind, strategy, **options):
    """Train, and return the solution, the model with its problem, and every point that the weights moved to."""
    models, points = [], []
    init, move = _sampled.SampledModel.__init__, _sampled.SampledModel._move_to

    def new(self, problem, *arguments, **more):
        init(self, problem, *arguments, **more)
        models.append((self, problem))

    def moved(self, alpha):
        move(self, alpha)
        points.append(self.weights.coef.copy())

    monkeypatch.setattr(_sampled.SampledModel, "__init__", new)
    monkeypatch.setattr(_sampled.SampledModel, "_move_to", moved)
    solution = train(kind, strategy=strategy, **{"sample_size": 10, **options})
    return solution, *models[0], np.array(points)


@pytest.mark.parametrize("start_components", [None, 20])
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_the_mean_of_all_points_weighted_by_their_number(kind, strategy, start_components, monkeypatch):
    solution, model, bound, points = followed(
        monkeypatch, kind, strategy, prune_after=2, start_components=start_components
    )
    assert sum(column(solution, "cuts_dropped")) > 10
    numbers = np.arange(1.0, len(points) + 1)
    expected = numbers @ points / numbers.sum()
    mean = model.mean().weights
    assert mean.coef == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert mean.is_scored == (strategy == "linear")
    if mean.is_scored:
        scores = np.zeros(bound.n_weights)
        bound.add_scores(expected, scores)
        assert mean.exact == pytest.approx(scores, rel=1e-6, abs=1e-9)
    # And its α, over the cuts: they sum to at most C.
    used = model.mean_of_alpha()
    assert sum(a for a, _ in used) <= problem(kind)[3] * (1 + 1e-9)
    again = np.zeros(bound.n_weights)
    for a, cut in used:
        again[cut.entries] += a * cut.values
    assert again == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_better_than_the_points(kind, strategy):
    plain, averaged = (
        [train(kind, seed=seed, strategy=strategy, sample_size=20, averaging=on) for seed in range(4)]
        for on in (False, True)
    )
    for one, other in zip(plain, averaged, strict=True):
        assert column(one, "model_value") == column(other, "model_value"), "the way is the same"
        if strategy == "linear":  # "constant" has the bound of the end that it takes, whose primal is the better one
            assert one.certificate.dual <= other.certificate.dual
            assert other.certificate.primal <= one.certificate.primal
    gained = [one.certificate.primal - other.certificate.primal for one, other in zip(plain, averaged, strict=True)]
    assert np.mean(gained) > 0.01 * np.mean([one.certificate.primal for one in plain])
    assert np.mean([s.certificate.dual for s in averaged]) > np.mean([s.certificate.dual for s in plain])


@pytest.mark.parametrize("size", [None, 149])
@pytest.mark.parametrize("kind", KINDS)
def test_constant_ends_with_the_better_end(kind, size, monkeypatch):
    """The mean of few points may be behind the last of them, as those before it are."""
    few = {"binary": (30, 3, 3), "multiclass": (100, 0, 3), "chain": (50, 0, 8)}
    is_mean = set()
    for r, seed, n in [few[kind], (10, 0, 10_000)]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            options = {"max_iter": n, "sample_size": r, "seed": seed, "primal_sample": size}
            solution, model, bound, _ = followed(monkeypatch, kind, "constant", **options)
        ends = model.last().weights.coef, model.mean().weights.coef
        primals = [exact_primal(kind, bound, coef) for coef in ends]
        assert abs(primals[1] - primals[0]) > 1e-3 * primals[0]
        best = int(primals[1] < primals[0])
        assert np.array_equal(solution.w, ends[best])
        is_mean.add(best)
    assert is_mean == {0, 1}


@pytest.mark.parametrize("n", [3, 5, 9, 14, 20, 28, 10_000])
@pytest.mark.parametrize("kind", KINDS)
def test_linear_ends_with_the_best_that_it_could_have(kind, n, monkeypatch):
    """Whatever ends training: w at the searches, the mean now and then, and that of all points at the end."""
    evaluated, mean = [], sampled_cuts.SampledCutsSolver._mean

    def seen(self, task, model):
        evaluated.append((model.n_points, mean(self, task, model)[1]))
        return model.mean().weights, evaluated[-1][1]

    monkeypatch.setattr(sampled_cuts.SampledCutsSolver, "_mean", seen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        solution, _, bound, points = followed(monkeypatch, kind, "linear", max_iter=n)
    numbers, values = zip(*evaluated, strict=True) if evaluated else ((), ())
    assert list(numbers) == sorted(set(numbers)), "each mean once"
    assert numbers[-1:] == ((len(points),) if len(points) > 1 else ())
    assert len(numbers) <= 4 + np.log(max(len(points), 1)) / np.log(1.2), "seldom"
    assert len(numbers) >= 10 or n < 10_000, "now and then"
    primal = solution.certificate.primal
    at_points = [exact_primal(kind, bound, point) for point in [0.0, *points]]
    assert primal == pytest.approx(min([*at_points, *values]), rel=1e-9)
    assert primal == pytest.approx(exact_primal(kind, bound, solution.w), rel=1e-9)
    assert solution.history[-1]["oracle_calls"] == solution.certificate.oracle_calls


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_run_that_is_made_again_begins_anew(strategy, monkeypatch):
    """As it is where float32 was not enough: here the second run ends after one cut, of which no mean is made."""
    is_distorted, started = driver.Best.is_distorted, []

    def at_first(self, solver, task):
        return len(started) == 1 or is_distorted(self, solver, task)

    monkeypatch.setattr(driver.Best, "is_distorted", at_first)
    iterate = sampled_cuts.SampledCutsSolver.iterate

    def shorter(self, task, planes=None):
        started.append(task)
        return itertools.islice(iterate(self, task, planes), 2 if len(started) == 2 else None)

    monkeypatch.setattr(sampled_cuts.SampledCutsSolver, "iterate", shorter)
    with pytest.warns(ConvergenceWarning, match="violated by"):
        solution, *_ = followed(monkeypatch, "binary", strategy)
    assert len(started) == 2
    assert len(solution.history) == 2
    assert np.count_nonzero(solution.w) <= 10


def test_it_predicts_better():
    board, test = mm.datasets.make_checkers(20_000, random_state=0), mm.datasets.make_checkers(5000, random_state=1)
    options = {"strategy": "constant", "sample_size": 50, "dual_bound": False}
    plain, averaged = (
        mm.BinarySVM(kernel="rbf", gamma=20.0, solver="sampled-cuts", solver_options={**options, "averaging": on})
        .fit(board.X, board.y)
        .score(test.X, test.y)
        for on in (False, True)
    )
    assert averaged > plain + 0.004


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_samples_of_all_examples_have_no_noise_to_lessen(strategy):
    for weighted, size in [(False, 150), (True, np.count_nonzero(problem("binary", True)[4]))]:
        assert weighted == (size < 150)
        plain, averaged = (
            train(weighted=weighted, strategy=strategy, sample_size=size, averaging=on) for on in (False, True)
        )
        assert np.array_equal(plain.w, averaged.w)
        assert plain.certificate == averaged.certificate
