"""The average of the points of sampled cuts: what it is, that it is better, and where there is none."""

import numpy as np
import pytest
from sampled_problems import KINDS, STRATEGIES, column, problem, train

import maxmargin as mm
from maxmargin.solvers import _sampled

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


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
    solution = train(kind, strategy=strategy, sample_size=10, **options)
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
    mean = model.mean()
    assert mean.coef == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert mean.is_scored == (strategy == "linear")
    if mean.is_scored:
        scores = np.zeros(bound.n_weights)
        bound.add_scores(expected, scores)
        assert mean.exact == pytest.approx(scores, rel=1e-6, abs=1e-9)
    if strategy == "constant":
        assert solution.w == pytest.approx(expected, rel=1e-9, abs=1e-12)
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
        assert one.certificate.dual <= other.certificate.dual
        if strategy == "linear":
            assert other.certificate.primal <= one.certificate.primal
    gained = [one.certificate.primal - other.certificate.primal for one, other in zip(plain, averaged, strict=True)]
    assert np.mean(gained) > 0.01 * np.mean([one.certificate.primal for one in plain])


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
    plain, averaged = (train(strategy=strategy, sample_size=150, averaging=on) for on in (False, True))
    assert np.array_equal(plain.w, averaged.w)
    assert plain.certificate == averaged.certificate
