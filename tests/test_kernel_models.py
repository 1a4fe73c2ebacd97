"""Users' models whose parts a kernel scores, against built-in ones, the reference QP and features of the same products."""

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from kernel_cases import factor
from reference_models import ChainModel

import maxmargin as mm
from maxmargin.kernels import Expansion

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]

KERNEL = mm.Kernel("rbf", 0.8, constant=0.5)


class Tags(mm.KernelModel):
    """Label sequences: a kernel scores tokens, transitions have weights of their own; by enumeration."""

    n_columns = 3
    n_features = 9

    def __init__(self, kernel=KERNEL):
        self.kernel = kernel

    def points(self, x):
        return x

    def parts(self, x, y):
        return range(len(y)), y

    def joint_feature(self, x, y):
        return [3 * a + b for a, b in itertools.pairwise(y)], np.ones(len(y) - 1)

    def loss(self, y_true, y):
        return sum(a != b for a, b in zip(y_true, y, strict=True))

    def outputs(self, x):
        return itertools.product(range(3), repeat=x.shape[0])


class SearchedTags(Tags):
    """The same with searches of its own that look at what they are given."""

    def loss_augmented_argmax(self, x, y_true, scores):
        return self._best(x, scores, scores.table + (np.arange(3) != np.array(y_true)[:, None]))

    def argmax(self, x, scores):
        return self._best(x, scores, scores.table)

    def _best(self, x, scores, table):
        assert scores.table.shape == (x.shape[0], 3)
        assert scores.weights.shape == (9,)

        def value(y):
            transitions = sum(scores.weights[3 * a + b] for a, b in itertools.pairwise(y))
            return table[np.arange(len(y)), list(y)].sum() + transitions

        return max(self.outputs(x), key=value)


def sequences(seed=0, n=6):
    rng = np.random.default_rng(seed)
    X = [rng.normal(size=(int(length), 2)) for length in rng.integers(1, 4, n)]
    return X, [tuple(rng.integers(3, size=len(x)).tolist()) for x in X]


def optimum(X, Y, C, sample_weight=None, rescaling="margin"):
    rows = np.concatenate(X)
    features = np.split(factor(KERNEL(rows, rows)), np.cumsum([len(x) for x in X])[:-1])
    model = ChainModel(features, Y, 3)
    return reference.solve(reference.planes(model, rescaling), C, sample_weight)


@pytest.mark.parametrize("kind", [Tags, SearchedTags])
def test_exact_kernels_over_parts_reach_the_reference(kind):
    for seed, rescaling in itertools.product(range(3), ("margin", "slack")):
        X, Y = sequences(seed)
        weights = np.random.default_rng(seed).uniform(0.0, 2.0, len(Y)) if seed == 1 else None
        best = optimum(X, Y, 2.0, weights, rescaling)
        solution = mm.train(kind(), X, Y, 2.0, tol=1e-8, sample_weight=weights, rescaling=rescaling)
        assert solution.solver == "one-slack"
        assert solution.certificate.exact
        assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
        for record in solution.history:
            assert record["dual"] <= best.objective * (1 + 1e-9)
            assert record["primal"] >= best.lower_bound * (1 - 1e-9)


def test_predictions_are_those_of_the_built_in_model():
    X, Y = sequences(n=8)
    new, _ = sequences(7, n=20)
    native = mm.models.Chain(3, kernel=KERNEL)
    expected = native.predict(new, mm.train(native, X, Y, 2.0, tol=1e-8).expansion)
    model = Tags()
    solution = mm.train(model, X, Y, 2.0, tol=1e-8)
    assert model.predict(new, solution.expansion) == [tuple(labels.tolist()) for labels in expected]
    assert model.predict([], solution.expansion) == []


def test_worker_processes_search_alike():
    X, Y = sequences(n=5)
    alone, together = (mm.train(SearchedTags(), X, Y, 2.0, n_jobs=jobs) for jobs in (1, 2))
    assert np.allclose(alone.w, together.w, atol=1e-9)
    one, two = (SearchedTags().predict(X, alone.expansion, jobs) for jobs in (1, 2))
    assert one == two


@pytest.mark.parametrize("solver", ["block-dual", "sdm", "n-slack", "one-slack"])
def test_low_rank_kernels_of_all_points_are_exact(solver):
    X, Y = sequences(3)
    n_points = sum(len(x) for x in X)
    best = optimum(X, Y, 2.0)
    model = Tags(mm.LowRank(KERNEL, n_points))
    solution = mm.train(model, X, Y, 2.0, tol=1e-8, solver=solver)
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    exact = Tags()
    assert model.predict(X, solution.expansion) == exact.predict(X, mm.train(exact, X, Y, 2.0, tol=1e-8).expansion)


def test_block_dual_moves_no_parts_by_columns():
    X, Y = sequences(2)
    with pytest.raises(ValueError, match=r"needs features as vectors.*kernels of built-in models"):
        mm.train(Tags(), X, Y, solver="block-dual")
    with pytest.raises(ValueError, match=r"needs features as vectors.*there is no solver for this loss"):
        mm.train(Tags(), X, Y, loss="squared_hinge")


@pytest.mark.parametrize("strategy", ["linear", "constant"])
def test_sampled_cuts_of_parts(strategy):
    X, Y = sequences(2, n=8)
    best = optimum(X, Y, 1.0)
    # A sample of all examples makes exact cuts.
    solution = mm.train(
        Tags(),
        X,
        Y,
        1.0,
        solver="sampled-cuts",
        solver_options={"strategy": strategy, "sample_size": 8, "epsilon": 1e-5},
    )
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-4)
    assert solution.certificate.dual <= best.objective * (1 + 1e-9)


def test_values_of_parts_and_sparse_points():
    class Weighted(Tags):
        def points(self, x):
            return sp.csr_array(x)

        def parts(self, x, y):
            return np.repeat(np.arange(len(y)), 2), np.repeat(y, 2), np.tile([0.25, 0.75], len(y))

    X, Y = sequences(4)
    best = optimum(X, Y, 2.0)
    assert mm.train(Weighted(), X, Y, 2.0, tol=1e-8).certificate.primal == pytest.approx(best.objective, rel=1e-6)


def test_the_estimator_keeps_the_expansion(tmp_path):
    X, Y = sequences(5, n=10)
    svm = mm.StructuralSVM(Tags(), C=5.0).fit(X, Y)
    assert isinstance(svm.expansion_, Expansion)
    assert svm.coef_.shape == (9,)
    svm.save(tmp_path / "tags.mm")
    again = mm.load(tmp_path / "tags.mm", model=Tags())
    assert again.predict(X) == svm.predict(X)
    assert again.score(X, Y) == svm.score(X, Y)
    path = svm.path(X, Y, Cs=[0.5, 5.0])
    assert path[1].certificate_.primal == pytest.approx(svm.certificate_.primal, rel=2e-3)


def test_warm_starts_know_the_kernel():
    X, Y = sequences(6)
    first = mm.train(Tags(), X, Y, 1.0, keep_planes=True)
    second = mm.train(Tags(), X, Y, 2.0, planes=first.planes, tol=1e-8)
    assert second.certificate.primal == pytest.approx(optimum(X, Y, 2.0).objective, rel=1e-6)
    with pytest.raises(ValueError, match="model differs"):
        mm.train(Tags(mm.Kernel("rbf", 0.1)), X, Y, 2.0, planes=first.planes)


class Broken(Tags):
    """Tags with some methods replaced."""

    def __init__(self, **methods):
        super().__init__()
        self.__dict__.update(methods)


X, Y = sequences()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"n_columns": 0}, r"Broken.n_columns is 0; expected an integer ≥ 1"),
        ({"kernel": "rbf"}, r"Broken.kernel must be a maxmargin.Kernel"),
        ({"kernel": mm.Kernel("precomputed")}, r"precomputed, which has no function of points"),
        ({"nonnegative": [0]}, r"nonnegative is for models without a kernel"),
        ({"points": lambda x: x[0]}, r"points\(X\[0\]\) has shape \(2,\); expected a matrix"),
        ({"points": lambda x: x[:0]}, r"no input has a point"),
        ({"points": lambda x: np.full(x.shape, np.nan)}, r"points\(X\[0\]\) holds nan in row 0"),
        ({"points": lambda x: np.zeros((len(x), len(x)))}, r"points\(X\[1\]\) has \d features, but points\(X\[0\]\)"),
        ({"parts": lambda x, y: range(len(y))}, r"must be \(points, columns\)"),
        ({"parts": lambda x, y: (range(len(y)), [3] * len(y))}, r"columns of parts\(X\[0\], y\) have the number 3"),
        ({"parts": lambda x, y: ([9] * len(y), y)}, r"points of parts\(X\[0\], y\) have the number 9"),
        ({"parts": lambda x, y: ([0.5], [0])}, r"must be whole numbers"),
        ({"parts": lambda x, y: ([0], [0, 1])}, r"1 points, 2 columns and 1 values"),
        ({"parts": lambda x, y: ([0], [0], [np.inf])}, r"not finite"),
    ],
)
def test_wrong_models_are_refused(wrong, message):
    with pytest.raises((ValueError, TypeError), match=message):
        mm.train(Broken(**wrong), X, Y)


def test_initialize_may_choose_the_kernel():
    class Late(Tags):
        def initialize(self, X, Y):
            self.kernel = mm.Kernel("rbf", 2.0)

    solution = mm.train(Late(), X, Y)
    assert solution.expansion.kernel.gamma == 2.0

    class TooLate(Tags):
        def initialize(self, X, Y):
            self.kernel = mm.LowRank(KERNEL, 3)

    with pytest.raises(ValueError, match="made an exact kernel a low-rank one"):
        mm.train(TooLate(), X, Y)


def test_streams_are_refused():
    with pytest.raises(ValueError, match="partial_fit has no kernel"):
        mm.StructuralSVM(Tags(mm.LowRank(KERNEL, 3)), solver="perceptron").partial_fit(X, Y)


def test_solvers_without_kernels_are_refused():
    with pytest.raises(ValueError, match="kernel"):
        mm.train(Tags(), X, Y, solver="sdm")
    with pytest.raises(ValueError, match="stream"):
        Tags().bind_more(X, Y)
    with pytest.raises(TypeError, match=r"solution\.expansion"):
        Tags().predict(X, np.zeros(9))
    with pytest.raises(ValueError, match="another model"):
        Tags().predict(X, Expansion(KERNEL, np.zeros((1, 2)), np.zeros((2, 1)), np.zeros(2), np.zeros(9)))
