"""Problems with a kernel, as the library has them and as the reference has them on features of the same products."""

import functools

import numpy as np
import reference
from reference_models import BinaryModel, ChainModel, MulticlassModel

import maxmargin as mm

KERNELS = {
    "rbf": mm.Kernel("rbf", 0.8),
    "rbf with a constant": mm.Kernel("rbf", 0.8, constant=1.5),
    "poly": mm.Kernel("poly", 0.5, 2, 1.0),
    "linear": mm.Kernel("linear", 1.0),
}


def factor(K):
    """Features whose products are K: the roots of its eigenvalues."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


class Case:
    """One problem as the library has it, on the kernel, and as the reference has it, on features of the same products."""

    def __init__(self, name, kernel, seed=0, n=None, with_weights=False):
        rng = np.random.default_rng([seed, len(name)])
        self.kernel, self.C = kernel, float(10.0 ** rng.uniform(-0.5, 0.7))
        n_rows = n or {"binary": 25, "multiclass": 15, "chain": 18}[name]
        rows = rng.normal(size=(n_rows, 2))
        rows[3] = rows[1]  # equal rows have equal columns
        features = factor(kernel(rows, rows))
        if name == "binary":
            y = np.where(rows[:, 0] * rows[:, 1] + 0.3 * rng.normal(size=n_rows) > 0, 1, -1)
            self.model, self.native = BinaryModel(features, y), mm.models.Binary(kernel=kernel)
            self.X, self.Y = rows, y
        elif name == "multiclass":
            y = rng.integers(3, size=n_rows)
            cost = rng.uniform(0.5, 2.0, (3, 3)) * (1 - np.eye(3))
            self.model = MulticlassModel(features, y, 3, cost=cost)
            self.native, self.X, self.Y = mm.models.Multiclass(3, cost=cost, kernel=kernel), rows, y
        else:
            ends = [2, 3, 6, 9, 12, 15]
            y = [tuple(part.tolist()) for part in np.split(rng.integers(3, size=n_rows), ends)]
            self.model = ChainModel(np.split(features, ends), y, 3, start=True, stop=True)
            self.native = mm.models.Chain(3, ends=True, kernel=kernel)
            self.X, self.Y = np.split(rows, ends), y
        self.sample_weight = None
        if with_weights:
            self.sample_weight = rng.uniform(0.0, 2.0, self.model.n_examples)
            self.sample_weight[0] = 0.0

    @functools.cache  # noqa: B019 - cases are few
    def optimum(self, rescaling="margin"):
        return reference.solve(reference.planes(self.model, rescaling), self.C, self.sample_weight)

    def train(self, **options):
        options = {"tol": 1e-8, "sample_weight": self.sample_weight, "random_state": 0, **options}
        return mm.train(self.native, self.X, self.Y, self.C, **options)

    def independent_primal(self, expansion, rescaling="margin"):
        """P of an expansion, by enumeration of its scores."""
        rows = self.X if not isinstance(self.X, list) else np.concatenate(self.X)
        # In the reference's features φ: w = Σ_b coef_b φ(b), found from scores at the rows, which determine it.
        features = self.model.X if not isinstance(self.model.X, list) else np.concatenate(self.model.X)
        scores = expansion.scores(rows)
        w = np.linalg.lstsq(features, scores, rcond=1e-10)[0].T.ravel()
        if isinstance(self.model, BinaryModel):
            w = w.ravel()
        return reference.primal(
            np.concatenate([w, expansion.table]), reference.planes(self.model, rescaling), self.C, self.sample_weight
        )
