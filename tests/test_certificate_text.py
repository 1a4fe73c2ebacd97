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


@pytest.mark.parametrize(
    "train",
    [
        lambda X, y, **stops: mm.train(mm.models.Binary(), X, y, **stops),
        lambda X, y, **stops: mm.path(mm.models.Binary(), X, y, [1.0], **stops),
        lambda X, y, **stops: mm.BinarySVM(**stops).fit(X, y),
    ],
    ids=["train", "path", "fit"],
)
def test_a_warning_of_convergence_points_at_the_line_that_trains(train):
    rng = np.random.default_rng(0)
    with pytest.warns(ConvergenceWarning) as caught:
        train(rng.normal(size=(30, 3)), rng.choice([-1, 1], 30), tol=1e-12, max_iter=1)
    assert [warning.filename for warning in caught] == [__file__]


def test_bounds_that_are_missing_or_estimates_are_named():
    text = str(mm.Certificate(primal=2.0, dual=None, oracle_calls=3, exact=False, converged=False))
    assert text == "primal 2, no dual, 3 oracle calls, not verified, not converged"


def test_a_certificate_names_an_inexact_oracle():
    class Careless(mm.Model):
        n_features = 1

        def joint_feature(self, x, y):
            return [x * y]

        def loss(self, y_true, y):
            return abs(y_true - y)

        def outputs(self, x):
            return range(3)

        def loss_augmented_argmax(self, x, y_true, w):
            return 0

    with pytest.warns(mm.InexactOracleWarning):
        certificate = mm.train(Careless(), [1.0, -1.0, 0.5], [2, 0, 1], C=10.0, max_iter=100).certificate
    assert not certificate.exact
    assert "oracle inexact" in str(certificate)


def test_results_are_compared_by_identity():
    one, other = (mm.path(mm.models.Multiclass(3), np.eye(3), [0, 1, 2], [0.1, 1.0]) for _ in range(2))
    assert one == one
    assert one != other
    assert one[0] != other[0]
