"""
Sets of items, trained for the F1 measure
=========================================

Choose a subset of items, with a loss that is not a sum over the items. An input is a matrix with one row of features per
item; an output says for each item whether it is chosen::

    Ψ(x, y) = Σ_{chosen j} x_j          Δ(y, ȳ) = 1 − F1(ȳ against y)

F1 depends only on a, how many of the right items are chosen, and b, how many others are. For given (a, b) the loss is
fixed, so the best output takes the a best-scored right items and the b best-scored others (Joachims 2005, "A support
vector method for multivariate performance measures"). Trying all (a, b) makes both searches exact without enumerating
subsets.
"""

import numpy as np

import maxmargin as mm


class F1Sets(mm.Model):
    """Subsets of items under the F1 loss."""

    def initialize(self, X, Y):
        self.n_features = X[0].shape[1]

    def joint_feature(self, x, y):
        return x[np.asarray(y, dtype=bool)].sum(axis=0)

    def loss(self, y_true, y):
        y_true, y = np.asarray(y_true, dtype=bool), np.asarray(y, dtype=bool)
        return f1_loss(np.sum(y & y_true), np.sum(y & ~y_true), np.sum(y_true))

    def argmax(self, x, w):
        return x @ w > 0

    def loss_augmented_argmax(self, x, y_true, w):
        return self._search(x, y_true, w, lambda loss, gain: loss + gain)

    def slack_rescaled_argmax(self, x, y_true, w):
        return self._search(x, y_true, w, lambda loss, gain: loss * (1.0 + gain))

    def _search(self, x, y_true, w, value):
        """Maximise ``value(Δ, w·Ψ(ȳ) − w·Ψ(y))`` over all (a, b)."""
        scores, y_true = x @ w, np.asarray(y_true, dtype=bool)
        right, right_sums = ranked(scores, np.flatnonzero(y_true))
        wrong, wrong_sums = ranked(scores, np.flatnonzero(~y_true))
        a, b = np.meshgrid(np.arange(len(right) + 1), np.arange(len(wrong) + 1), indexing="ij")
        gain = right_sums[a] + wrong_sums[b] - right_sums[-1]
        best = np.argmax(value(f1_loss(a, b, len(right)), gain))
        y = np.zeros(len(x), dtype=bool)
        y[right[: a.flat[best]]] = True
        y[wrong[: b.flat[best]]] = True
        return y


def f1_loss(a, b, n_right):
    """1 − F1 for a hits and b false alarms; choosing nothing is perfect where nothing is right."""
    return 1.0 - np.where(n_right + a + b == 0, 1.0, 2.0 * a / np.maximum(n_right + a + b, 1))


def ranked(scores, items):
    """The items by falling score, and the sums of the best 0, 1, 2, … scores."""
    items = items[np.argsort(-scores[items], kind="stable")]
    return items, np.concatenate([[0.0], np.cumsum(scores[items])])


def toy_data(n=12, seed=0):
    """Sets of 4 to 7 items with 3 features; the first feature says, with noise, which items belong."""
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(rng.integers(4, 8), 3)) for _ in range(n)]
    return X, [x[:, 0] + 0.5 * rng.normal(size=len(x)) > 0.5 for x in X]


if __name__ == "__main__":
    X, Y = toy_data(60)
    model = F1Sets()
    solution = mm.train(model, X[:40], Y[:40], C=1.0)
    losses = [model.loss(y, found) for y, found in zip(Y[40:], model.predict(X[40:], solution.w), strict=True)]
    print(solution.certificate)
    print(f"mean F1 on 20 new sets: {1 - np.mean(losses):.3f}")
