"""A few short sequences with noisy one-hot features: with a large C, problems that most steps are too coarse for."""

import itertools

import numpy as np

import maxmargin as mm

N_LABELS = 3


def few_sequences(n, n_features, seed):
    rng = np.random.default_rng(seed)
    X, Y = [], []
    for _ in range(n):
        labels = rng.integers(N_LABELS, size=rng.integers(2, 6))
        X.append(np.eye(N_LABELS, n_features)[labels] + rng.normal(size=(len(labels), n_features)))
        Y.append(tuple(labels.tolist()))
    return X, Y


class Sequences(mm.Model):
    """Chains in Python."""

    def initialize(self, X, Y):
        self.n_emissions = N_LABELS * X[0].shape[1]
        self.n_features = self.n_emissions + N_LABELS**2

    def joint_feature(self, x, y):
        emissions, pairs = np.zeros((N_LABELS, x.shape[1])), np.zeros((N_LABELS, N_LABELS))
        np.add.at(emissions, list(y), x)
        np.add.at(pairs, (list(y[:-1]), list(y[1:])), 1.0)
        return np.concatenate([emissions.ravel(), pairs.ravel()])

    def loss(self, y_true, y):
        return float(np.sum(np.asarray(y_true) != np.asarray(y)))

    def outputs(self, x):
        return itertools.product(range(N_LABELS), repeat=len(x))
