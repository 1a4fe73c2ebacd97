"""Samples of constant-time cuts: uniform, and in rounds that leave no example out."""

import numpy as np
import pytest
from sampled_problems import train
from sklearn.exceptions import ConvergenceWarning

from maxmargin.solvers.sampled_cuts import Samples

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(("n", "r"), [(12, 4), (10, 4), (7, 7), (5, 3), (9, 1)])
def test_samples_in_rounds_leave_no_place_out(n, r):
    samples = Samples(np.random.default_rng(0), n, r, in_rounds=True)
    drawn, n_rounds = [], 2_000
    for _ in range(n_rounds):
        sample = samples.draw()
        assert np.all(np.diff(sample) > 0)
        assert len(sample) == r
        drawn.append(sample)
    for place in range(n):
        times = [k for k, sample in enumerate(drawn) if place in sample]
        assert np.diff(times).max() <= 2 * np.ceil(n / r), "first in one round, last in the next"
        assert len(times) == pytest.approx(n_rounds * r / n, rel=0.05)


@pytest.mark.parametrize("in_rounds", [False, True])
def test_every_sample_of_a_run_is_uniform(in_rounds):
    n, r, n_runs = 7, 3, 4_000
    counts = np.zeros((5, n))
    for seed in range(n_runs):
        samples = Samples(np.random.default_rng(seed), n, r, in_rounds=in_rounds)
        for k in range(5):
            counts[k, samples.draw()] += 1
    assert counts / n_runs == pytest.approx(np.full((5, n), r / n), abs=0.035)  # 4.5 standard deviations


def test_constant_draws_in_rounds_unless_told_otherwise(monkeypatch):
    drawn = []
    draw = Samples.draw
    monkeypatch.setattr(Samples, "draw", lambda self: drawn.append(draw(self)) or drawn[-1])
    for sampling, repeats in (("uniform", False), ("independent", True)):
        drawn.clear()
        with pytest.warns(ConvergenceWarning):
            train(strategy="constant", sample_size=30, sampling=sampling, max_iter=5)
        n_times = np.bincount(np.concatenate(drawn[:5]), minlength=150)
        assert n_times.sum() == 150
        assert (n_times.max() > 1) == repeats, "150 examples in five samples of 30"
