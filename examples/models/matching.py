"""
Matchings, found by an assignment solver
========================================

Match the items of two groups one to one: the best matching is searched for, not enumerated. An input holds a feature
vector for each pair of items, an array (k, k, features); an output is a permutation: item i on the left goes with item
y[i] on the right::

    Ψ(x, y) = Σ_i x[i, y_i]          Δ(y, ȳ) = number of items matched wrongly

Both the score and the loss are sums over pairs, so the loss-augmented search is an assignment problem with 1 added to
the score of every wrong pair. (Slack rescaling multiplies the two, which no assignment solver maximises: the model does
not offer it.)
"""

import numpy as np
from scipy.optimize import linear_sum_assignment

import maxmargin as mm


class Matching(mm.Model):
    """One-to-one matchings under the Hamming loss."""

    def initialize(self, X, Y):
        self.n_features = X[0].shape[-1]

    def joint_feature(self, x, y):
        return x[np.arange(len(x)), y].sum(axis=0)

    def loss(self, y_true, y):
        return np.sum(np.asarray(y_true) != np.asarray(y))

    def argmax(self, x, w):
        return linear_sum_assignment(x @ w, maximize=True)[1]

    def loss_augmented_argmax(self, x, y_true, w):
        scores = x @ w + 1.0
        scores[np.arange(len(x)), y_true] -= 1.0
        return linear_sum_assignment(scores, maximize=True)[1]


def toy_data(n=10, seed=0):
    """Two groups of 2 to 4 points; features of a pair are the coordinates' absolute differences, half of them noise."""
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        left = rng.normal(size=(rng.integers(2, 5), 4))
        y = rng.permutation(len(left))
        right = np.empty_like(left)
        right[y] = left + rng.normal(size=left.shape) * [0.3, 0.5, 3.0, 3.0]
        X.append(np.abs(left[:, None] - right[None]))
        Y.append(y)
    return X, Y


if __name__ == "__main__":
    X, Y = toy_data(60)
    model = Matching()
    solution = mm.train(model, X[:40], Y[:40], C=0.1)
    found = model.predict(X[40:], solution.w)
    print(solution.certificate)
    print("weights of the differences:", solution.w.round(2))
    print(f"items matched wrongly: {sum(map(model.loss, Y[40:], found))} of {sum(map(len, Y[40:]))}")
