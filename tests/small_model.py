"""The smallest model in Python that is no trifle, for tests of what surrounds a model."""

import numpy as np

import maxmargin as mm


class Classes(mm.Model):
    """Three classes, two features each; the smallest model that is no trifle."""

    def initialize(self, X, Y):
        self.n_features = 6

    def joint_feature(self, x, y):
        psi = np.zeros(6)
        psi[2 * y : 2 * y + 2] = x
        return psi

    def loss(self, y_true, y):
        return abs(y_true - y)

    def outputs(self, x):
        return range(3)


def data(n=10, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 2)), rng.integers(3, size=n).tolist()
