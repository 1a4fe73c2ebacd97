"""
Several labels at once, all sets of them tried
==============================================

Each pair of labels that go together has a weight. An input is a feature vector, an output a vector of k zeros and ones::

    Ψ(x, y) = (x ⊗ y,  y_a y_b for all a < b)          Δ(y, ȳ) = number of wrong labels

Listing the outputs is all the library needs: every search, slack rescaling too, is done by enumeration. Good for up to
a dozen labels.
"""

import itertools

import numpy as np

import maxmargin as mm


class PairwiseMultilabel(mm.Model):
    """Label sets with pairwise weights under the Hamming loss.

    Parameters
    ----------
    attractive : bool, default False
        Whether labels may only attract each other: pair weights stay ≥ 0.
    """

    def __init__(self, attractive=False):
        self.attractive = attractive

    def initialize(self, X, Y):
        self.n_labels = len(Y[0])
        self.pairs = np.triu_indices(self.n_labels, 1)
        n_unary = self.n_labels * len(X[0])
        self.n_features = n_unary + len(self.pairs[0])
        self.nonnegative = np.arange(n_unary, self.n_features) if self.attractive else ()

    def outputs(self, x):
        return itertools.product((0, 1), repeat=self.n_labels)

    def joint_feature(self, x, y):
        y = np.asarray(y)
        return np.concatenate([np.outer(y, x).ravel(), y[self.pairs[0]] * y[self.pairs[1]]])

    def loss(self, y_true, y):
        return np.sum(np.asarray(y_true) != np.asarray(y))


def toy_data(n=12, n_labels=3, seed=0):
    """Labels from a noisy linear rule; the second label often copies the first, the last one avoids it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    Y = (X @ rng.normal(size=(3, n_labels)) + 0.3 * rng.normal(size=(n, n_labels)) > 0).astype(int)
    copied = rng.random(n) < 0.7
    Y[copied, 1] = Y[copied, 0]
    Y[copied, -1] = 1 - Y[copied, 0]
    return X, Y


if __name__ == "__main__":
    X, Y = toy_data(80, n_labels=4)
    model = PairwiseMultilabel()
    solution = mm.train(model, X[:50], Y[:50], C=1.0, n_jobs=2)
    wrong = np.mean(np.array(model.predict(X[50:], solution.w)) != Y[50:])
    print(solution.certificate)
    print(f"wrong labels: {wrong:.1%}")
