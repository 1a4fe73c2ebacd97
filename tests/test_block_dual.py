"""What block-dual does beyond the blocks: the mean of w over sweeps, at which the primal that ends training is taken."""

import numpy as np
import pytest
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin.solvers import block_dual
from maxmargin.weights import DenseWeights


def primal_at(w, X, Y, C):
    """½‖w‖² + C Σ ξ, with every ξ from loss-augmented decoding in double."""
    model = mm.models.Chain(4)
    problem = model.bind(X, Y)
    point = problem.zero_weights()
    point.exact[:] = w
    found = problem.separate(problem.all_ids, point, precise=True)
    slacks = found.losses() - problem.space.dots(found, point.exact)
    return 0.5 * w @ w + C * np.maximum(slacks, 0.0).sum()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_later_weights_count_more_in_the_mean(dtype):
    mean = block_dual._Mean()
    points = [np.array(values, dtype) for values in ([6.0, 0.0], [0.0, 6.0], [3.0, 12.0])]
    for point in points:
        mean.add(point)
    assert mean.values.dtype == dtype
    np.testing.assert_allclose(mean.values, (points[0] + 2 * points[1] + 3 * points[2]) / 6, rtol=1e-6)
    np.testing.assert_array_equal(points[0], [6.0, 0.0])


def test_the_primal_is_that_of_the_weights_returned_where_they_are_a_mean(monkeypatch):
    X, Y = tagging_problem()
    shown = []
    become = DenseWeights.become
    monkeypatch.setattr(DenseWeights, "become", lambda self, values: shown.append(values) or become(self, values))
    solution = mm.train(mm.models.Chain(4), X, Y, 10.0, solver="block-dual", tol=0.1)
    np.testing.assert_array_equal(solution.w, shown[-1])
    assert solution.certificate.primal == pytest.approx(primal_at(solution.w, X, Y, 10.0), rel=1e-12)
    assert solution.certificate.relative_gap <= 0.1
