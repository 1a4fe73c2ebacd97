"""What a certificate says when it is printed."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm


def test_a_certificate_says_that_training_converged():
    text = str(mm.train(mm.models.Multiclass(3), np.eye(3), [0, 1, 2]).certificate)
    assert text.endswith("exact, converged: the stopping rule was met")


def test_a_certificate_says_what_ended_training_early():
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning):
        solution = mm.train(
            mm.models.Binary(), rng.normal(size=(30, 3)), rng.choice([-1, 1], 30), tol=1e-12, max_iter=1
        )
    assert str(solution.certificate).endswith("not converged: max_iter=1 was reached")


def test_bounds_that_are_missing_or_estimates_are_named():
    text = str(mm.Certificate(primal=2.0, dual=None, oracle_calls=3, exact=False, converged=False))
    assert text == "primal 2, no dual, 3 oracle calls, not verified, not converged"
