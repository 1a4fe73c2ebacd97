"""Cuts that mix the planes of two passes: what they are made of, and that no searches are made for them."""

import itertools

import numpy as np
import pytest
from extra_cut_problems import problems, train_on_images
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.solvers._cutting_planes import CutModel, Separator
from maxmargin.solvers._mixed_cuts import MixedCuts, MixedPlanes, MixedRows
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import Task
from maxmargin.solvers.one_slack import OneSlack

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def test_mixed_cuts_take_fewer_iterations_and_no_searches():
    several = train_on_images(cuts_per_iteration=10, extra_cuts="mixed")
    assert len(several) < 0.85 * len(train_on_images())
    assert [record["oracle_calls"] for record in several] == [20 * k for k in range(1, len(several) + 1)]


def test_mixed_cuts_are_of_planes_of_two_passes():
    """With a single example a mix is either its plane of this pass or that of the last, and each is met."""
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(30, 5))], [rng.integers(3, size=30)]
    options = {"cuts_per_iteration": 9, "extra_cuts": "mixed", "cache_size": 0}
    run = {"solver": "one-slack", "solver_options": options, "tol": 1e-9, "max_iter": 10}
    with pytest.warns(ConvergenceWarning):
        history = mm.train(mm.models.Chain(3), X, Y, 0.1, **run).history
    assert history[1]["extra_violations"] == []
    for before, record in itertools.pairwise(history[1:]):
        # The violation of this pass's own cut, and that of the last one, which the QP has solved since.
        own = [v for v in record["extra_violations"] if v == pytest.approx(before["violation"], rel=1e-9)]
        solved = [v for v in record["extra_violations"] if v <= 0.2 * before["violation"]]
        assert len(own) + len(solved) == 8
        assert own
        assert solved


@pytest.mark.parametrize("weighted", [False, True])
def test_mixes_of_rows_and_of_planes_are_the_explicit_sums(weighted):
    _, native_model, X, Y = problems(4)["graph"]
    rng = np.random.default_rng(0)
    problem = native_model.bind(X, Y, sample_weight=rng.uniform(0.5, 2.0, len(X)) if weighted else None)
    s, space = problem.weight_of_examples, problem.space
    passes = [space.separate(problem.all_ids, rng.normal(size=problem.n_weights), None, 1) for _ in range(3)]
    takes_last = rng.integers(2, size=(5, len(X)))

    def explicit(planes, is_taken):
        chosen = is_taken[planes.examples()] * s[planes.examples()]
        total = np.zeros(problem.n_weights)
        space.add(planes, chosen, total)
        return chosen @ planes.losses(), total

    for kind in (MixedRows, MixedPlanes):
        mixed = kind(problem)
        mixed.begin(passes[0])
        assert list(mixed.mixes(takes_last)) == []
        for last, now in itertools.pairwise(passes):
            loss, total = mixed.begin(now)
            expected_loss, expected = explicit(now, np.ones(len(X)))
            assert loss == pytest.approx(expected_loss)
            np.testing.assert_allclose(total, expected, atol=1e-12)
            for (loss, total), chosen in zip(mixed.mixes(takes_last), takes_last, strict=True):
                of_last, of_now = explicit(last, chosen), explicit(now, 1 - chosen)
                assert loss == pytest.approx(of_last[0] + of_now[0])
                np.testing.assert_allclose(total, of_last[1] + of_now[1], atol=1e-12)


@pytest.mark.parametrize("has_room", [True, False])
def test_planes_of_the_cache_that_are_better_than_what_was_found_make_the_first_cut(monkeypatch, has_room):
    _, native_model, X, Y = problems(4)["graph"]
    problem = native_model.bind(X, Y)
    monkeypatch.setattr(problem, "can_be_inexact", True)
    monkeypatch.setattr(problem, "has_room_for", lambda vectors_each: has_room)
    watch = Stopwatch("oracle", "extra", "cache", "assembly", "gram", "qp", "weights")
    model, separator = CutModel(problem, 1.0, 50, watch), Separator(problem, 5, 1.0, watch)
    rng = np.random.default_rng(0)
    elsewhere = problem.zero_weights()
    elsewhere.exact[...] = rng.normal(size=problem.n_weights)
    model.weights.exact[...] = 0.3 * rng.normal(size=problem.n_weights)
    for weights in (elsewhere, model.weights):
        weights.touch()
    right, wrong = (problem.separate(problem.all_ids, w, precise=True) for w in (model.weights, elsewhere))
    separator.keep(right, problem.all_ids, model.weights)
    monkeypatch.setattr(problem, "separate", lambda *_, **__: wrong)
    options = OneSlack({"cuts_per_iteration": 2, "extra_cuts": "mixed"}).option
    extra = MixedCuts(Task(problem, 1.0, "hinge", 1e-3, rng, None), options)
    with pytest.warns(mm.InexactOracleWarning):
        extra.separate(model, separator, precise=True)
    worth = right.losses() - problem.space.dots(right, model.weights.exact)
    assert model.pending_value(model.weights) == pytest.approx(worth.sum())
