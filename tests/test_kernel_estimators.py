"""Estimators with kernels: fitted attributes, files, pickles, predictions, and what they refuse."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import chi2_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import SVC

import maxmargin as mm

pytestmark = pytest.mark.filterwarnings("error")

X, y = load_iris(return_X_y=True)
IS_SECOND = y == 1


def fitted(kind="binary", **parameters):
    parameters = {"kernel": "rbf", "gamma": 0.5, **parameters}
    if kind == "binary":
        return mm.BinarySVM(**parameters).fit(X, IS_SECOND)
    if kind == "multiclass":
        return mm.MulticlassSVM(**parameters).fit(X, y)
    return mm.ChainSVM(**parameters).fit(sequences(X), sequences(y))


def sequences(rows):
    order = np.random.default_rng(0).permutation(len(rows))
    return np.split(rows[order], 30)


def scores(estimator, rows=X):
    if isinstance(estimator, mm.ChainSVM):
        return np.concatenate(estimator.decision_function(sequences(rows)))
    return estimator.decision_function(rows)


KINDS = ["binary", "multiclass", "chain"]


@pytest.mark.parametrize("approximation", [None, "low-rank"])
@pytest.mark.parametrize("kind", KINDS)
def test_files_and_pickles_keep_the_scores(kind, approximation, tmp_path):
    estimator = fitted(kind, kernel_approximation=approximation, n_components=20)
    estimator.save(tmp_path / "model.mm")
    for again in (mm.load(tmp_path / "model.mm"), pickle.loads(pickle.dumps(estimator))):
        assert np.array_equal(scores(again), scores(estimator))
        assert again.get_params() == estimator.get_params()
    with pytest.raises(AttributeError, match="coef_"):
        estimator.coef_  # noqa: B018


def test_sparse_bases_are_stored(tmp_path):
    estimator = mm.BinarySVM(kernel="rbf", gamma=0.5).fit(sp.csr_array(X), IS_SECOND)
    estimator.save(tmp_path / "model.mm")
    again = mm.load(tmp_path / "model.mm")
    assert sp.issparse(again.expansion_.basis)
    assert np.array_equal(scores(again), scores(estimator))
    assert np.allclose(scores(again), scores(fitted()), atol=1e-9)


def test_a_function_cannot_be_stored(tmp_path):
    estimator = fitted(kernel=rbf_kernel)
    with pytest.raises(ValueError, match="pickle the estimator"):
        estimator.save(tmp_path / "model.mm")


def test_kernel_objects_are_stored(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    kernel = mm.Kernel("poly", 0.5, degree=2, coef0=1.0, constant=2.0)
    svm = mm.BinarySVM(kernel=kernel).fit(X, X[:, 0] * X[:, 1] > 0)
    svm.save(tmp_path / "model")
    read = mm.load(tmp_path / "model")
    assert read.kernel == kernel
    assert np.array_equal(read.decision_function(X), svm.decision_function(X))


def test_a_low_rank_kernel_is_named_by_parameters():
    with pytest.raises(TypeError, match="kernel_approximation='low-rank'"):
        mm.BinarySVM(kernel=mm.LowRank(mm.Kernel("rbf"), 5)).fit([[0.0], [1.0]], [0, 1])


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("solver", ["auto", "one-slack", "sampled-cuts"])
def test_values_beyond_the_range_of_numbers_are_those_of_the_kernel(solver):
    X = np.random.default_rng(0).normal(size=(300, 3))
    svm = mm.BinarySVM(kernel="poly", degree=900, gamma=100.0, coef0=1e3, solver=solver)
    with pytest.raises(ValueError, match="kernel values exceed double precision"):
        svm.fit(X, X[:, 0] > 0)


def test_paths_name_solvers_that_the_kernel_has():
    X = np.random.default_rng(0).normal(size=(30, 3))
    with pytest.raises(ValueError, match="for a path use 'block-dual', 'one-slack', or call train"):
        mm.BinarySVM(kernel="rbf", solver="sampled-cuts").path(X, X[:, 0] > 0, [1.0, 10.0])


def test_scores_are_near_those_of_svc():
    # A large constant leaves SVC's free bias little to do.
    ours = fitted(C=2.0, tol=1e-6, intercept_scaling=30.0)
    theirs = SVC(C=2.0, gamma=0.5, tol=1e-6).fit(X, IS_SECOND)
    assert np.abs(scores(ours) - theirs.decision_function(X)).max() < 0.02
    assert ours.intercept_[0] == pytest.approx(theirs.intercept_[0], abs=0.02)


def test_expansions_hold_no_idle_points():
    estimator = fitted("multiclass")
    assert np.all(np.any(estimator.expansion_.coef != 0.0, axis=0))
    assert estimator.expansion_.size < len(X)
    assert len(np.unique(estimator.expansion_.basis, axis=0)) == estimator.expansion_.size


def test_two_classes_of_multiclass_have_one_score():
    estimator = mm.MulticlassSVM(kernel="rbf", gamma=0.5).fit(X, IS_SECOND)
    assert scores(estimator).shape == (150,)
    assert estimator.score(X, IS_SECOND) > 0.9
    assert np.array_equal(estimator.predict(X), scores(estimator) > 0)


def test_precomputed_kernels():
    K = rbf_kernel(X, gamma=0.5)
    estimator = mm.BinarySVM(kernel="precomputed", tol=1e-9).fit(K, IS_SECOND)
    # Objectives that agree to 1e-9 leave scores a root of that apart.
    assert np.allclose(estimator.decision_function(K[:7]), scores(fitted(tol=1e-9))[:7], atol=1e-3)
    # scikit-learn cuts rows and columns of pairwise input.
    assert cross_val_score(mm.BinarySVM(kernel="precomputed"), K, IS_SECOND, cv=3).mean() > 0.9
    squared = mm.BinarySVM(kernel="precomputed", loss="squared_hinge", tol=1e-9).fit(K, IS_SECOND)
    assert np.allclose(squared.decision_function(K[:7]), scores(fitted(loss="squared_hinge", tol=1e-9))[:7], atol=1e-3)


def test_linear_low_rank_is_the_linear_model():
    plain = mm.BinarySVM(tol=1e-7).fit(X, IS_SECOND)
    ours = mm.BinarySVM(kernel="linear", kernel_approximation="low-rank", tol=1e-7).fit(X, IS_SECOND)
    assert ours.expansion_.size == 4
    assert ours.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)


def test_fitting_again_leaves_nothing_of_the_last_kernel():
    estimator = fitted()
    estimator.set_params(kernel="linear").fit(X, IS_SECOND)
    assert not hasattr(estimator, "expansion_")
    assert estimator.coef_.shape == (1, 4)
    estimator.set_params(kernel="rbf").fit(X, IS_SECOND)
    assert not hasattr(estimator, "coef_")
    assert estimator.expansion_.size


def test_grid_search_over_gamma():
    search = GridSearchCV(mm.MulticlassSVM(kernel="rbf"), {"gamma": [1e-4, 0.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"gamma": 0.5}
    assert clone(search.best_estimator_).get_params() == search.best_estimator_.get_params()


def test_warm_starts_and_paths():
    estimator = fitted(warm_start=True, solver="one-slack", C=1.0)
    first = estimator.n_iter_
    assert estimator.fit(X, IS_SECOND).n_iter_ < first
    path = mm.BinarySVM(kernel="rbf", gamma=0.5).path(X, IS_SECOND, Cs=[0.1, 1.0])
    assert path[1].certificate_.primal == pytest.approx(fitted().certificate_.primal, rel=2e-3)


def test_sample_weights_count_examples():
    s = np.random.default_rng(0).integers(0, 3, len(X))
    weighted = mm.BinarySVM(kernel="rbf", gamma=0.5, tol=1e-7).fit(X, IS_SECOND, sample_weight=s)
    repeated = mm.BinarySVM(kernel="rbf", gamma=0.5, tol=1e-7).fit(np.repeat(X, s, axis=0), np.repeat(IS_SECOND, s))
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-6)
    assert np.abs(scores(weighted) - scores(repeated)).max() < 0.01


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"kernel": "gauss"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"degree": 0}, "degree must be"),
        ({"coef0": "1"}, "coef0 must be"),
        ({"kernel_approximation": "nystroem"}, "kernel_approximation must be"),
        ({"kernel_approximation": "low-rank", "n_components": 0}, "n_components must be"),
        ({"kernel_approximation": "low-rank", "basis": "first"}, "basis must be"),
        ({"kernel_cache": -1}, "kernel_cache must be"),
        ({"solver": "n-slack"}, "needs features as vectors"),
    ],
)
def test_bad_parameters_are_named_before_any_work(kind, parameters, message):
    with pytest.raises(ValueError, match=message):
        fitted(kind, **parameters)


def test_a_kernel_object_is_the_kernel_it_names():
    plain = fitted("multiclass", gamma="scale", tol=1e-6)
    ours = mm.MulticlassSVM(kernel=mm.Kernel("rbf"), tol=1e-6).fit(X, y)
    assert np.array_equal(scores(ours), scores(plain))
    assert np.allclose(scores(ours)[:3], ours.decision_function(X[:3]))
    with pytest.raises(TypeError, match="is a Kernel already"):
        mm.Kernel(mm.Kernel("rbf"))


def test_expansions_hold_no_dust():
    estimator = fitted(solver="one-slack", tol=1e-6)
    coef = np.abs(estimator.expansion_.coef)
    assert coef.max(axis=0).min() > 1e-11 * coef.max()


def test_weights_that_a_kernel_does_not_have_are_said_to_be_elsewhere():
    with pytest.raises(AttributeError, match="expansion_"):
        fitted().coef_  # noqa: B018


@pytest.mark.parametrize("approximation", [{}, {"kernel_approximation": "low-rank", "n_components": 20}])
def test_a_function_without_a_pickle_is_known_again(approximation):
    def kernel(gamma):
        return lambda A, B: rbf_kernel(A, B, gamma=gamma)

    svm = mm.BinarySVM(
        kernel=kernel(0.5), solver="block-dual", warm_start=True, tol=1e-5, random_state=0, **approximation
    )
    first = svm.fit(X, IS_SECOND).n_iter_
    assert svm.fit(X, IS_SECOND).n_iter_ < first
    # Another function, even one that looks the same, is another problem.
    assert svm.set_params(kernel=kernel(0.5)).fit(X, IS_SECOND).n_iter_ == first
    other = svm.set_params(kernel=kernel(2.0)).fit(X, IS_SECOND)
    afresh = clone(other).fit(X, IS_SECOND)
    assert other.certificate_.primal == afresh.certificate_.primal


def test_a_function_cannot_change_the_data():
    def doubling(A, B):
        A *= 2.0
        return 0.5 * (A @ B.T)

    before = X.copy()
    changed, plain = fitted(kernel=doubling), fitted(kernel=lambda A, B: A @ B.T)
    assert np.array_equal(X, before)
    assert np.allclose(scores(changed), scores(plain))


def test_functions_that_ask_for_arrays_they_could_change():
    """Buffers of compiled functions, such as those of scikit-learn's chi-squared kernels, refuse arrays that are read-only."""
    rows = X - X.min(axis=0)
    assert mm.BinarySVM(kernel=chi2_kernel).fit(rows, IS_SECOND).score(rows, IS_SECOND) > 0.9


def test_advice_for_a_loss_names_solvers_that_the_kernel_has():
    with pytest.raises(ValueError, match=r"use 'block-dual'\.$"):
        fitted(loss="squared_hinge", solver="one-slack")
    with pytest.raises(ValueError, match="a precomputed kernel cannot be approximated"):
        mm.BinarySVM(kernel="precomputed", solver="sdm").fit(np.eye(4), [0, 1, 0, 1])


def test_streams_have_no_kernel():
    with pytest.raises(ValueError, match="partial_fit needs kernel='linear'"):
        mm.BinarySVM(kernel="rbf", kernel_approximation="low-rank", solver="perceptron", C=1.0).partial_fit(
            X, IS_SECOND, classes=[False, True]
        )


def test_sequences_have_no_precomputed_kernel():
    with pytest.raises(ValueError, match="precomputed"):
        fitted("chain", kernel="precomputed")


def test_chains_with_named_features(tmp_path):
    words = [[["w=the"], ["w=dog"], ["w=barks"]], [["w=a"], ["w=cat"]], [["w=a"], ["w=dog"]]]
    tags = [["DET", "NOUN", "VERB"], ["DET", "NOUN"], ["DET", "NOUN"]]
    tagger = mm.ChainSVM(C=10.0, kernel="poly", degree=2, gamma=1.0, coef0=1.0).fit(words, tags)
    assert tagger.predict(words) == tags
    tagger.save(tmp_path / "tagger.mm")
    assert mm.load(tmp_path / "tagger.mm").predict([[["w=a"], ["w=unseen"]]]) == tagger.predict(
        [[["w=a"], ["w=unseen"]]]
    )
    assert tagger.transition_.shape == (3, 3)


# ------------------------------------------------------------------------------------------- fewer basis points


def test_reduced_expansions_are_the_best_of_their_points():
    """The coefficients of a reduced expansion are those of the projection of w on the span of its points."""
    rng = np.random.default_rng(0)
    kernel = mm.Kernel("rbf", 0.5)
    basis, coef = rng.normal(size=(40, 2)), rng.normal(size=(3, 40))
    whole = mm.Expansion(kernel, basis, coef, rng.normal(size=3), rng.normal(size=4))

    def distance2(other):
        K, cross = kernel(basis, basis), kernel(basis, other.basis)
        own = kernel(other.basis, other.basis)
        terms = zip(coef, other.coef, strict=True)
        return sum(a @ K @ a - 2 * a @ cross @ b + b @ own @ b for a, b in terms)

    last = np.inf
    for m in (1, 3, 10, 25):
        reduced = whole.reduced(m)
        assert reduced.size == m
        best = replace(
            reduced, coef=np.linalg.solve(kernel(reduced.basis, reduced.basis), kernel(reduced.basis, basis) @ coef.T).T
        )
        assert distance2(reduced) <= distance2(best) + 1e-9
        assert distance2(reduced) < last
        last = distance2(reduced)
        # No other first point does better.
        if m == 1:
            for b in range(40):
                score = whole.scores(basis[b : b + 1])[0] - whole.intercept
                one = replace(reduced, basis=basis[b : b + 1], coef=score[:, None])
                assert distance2(one) >= last - 1e-9
        assert np.array_equal(reduced.intercept, whole.intercept)
        assert np.array_equal(reduced.table, whole.table)
    assert whole.reduced(40) is whole
    points = rng.normal(size=(5, 2))
    twice = replace(whole, basis=np.concatenate([basis, basis]), coef=np.concatenate([coef, coef], axis=1))
    assert twice.reduced(79).size <= 40  # equal points depend on each other
    assert np.allclose(twice.reduced(79).scores(points), 2 * whole.scores(points) - whole.intercept, atol=1e-6)


def test_functions_and_sparse_points_are_reduced_alike():
    rng = np.random.default_rng(1)
    basis, coef = rng.normal(size=(30, 3)), rng.normal(size=(1, 30))
    nothing = np.zeros(1), np.zeros(0)
    named = mm.Expansion(mm.Kernel("poly", 0.5, 2, 1.0), basis, coef, *nothing).reduced(5)
    called = mm.Expansion(mm.Kernel(lambda A, B: (0.5 * (A @ B.T) + 1.0) ** 2, 1.0), basis, coef, *nothing).reduced(5)
    sparse = mm.Expansion(mm.Kernel("poly", 0.5, 2, 1.0), sp.csr_array(basis), coef, *nothing).reduced(5)
    for other in (called, sparse):
        assert np.allclose(named.scores(basis), other.scores(basis), atol=1e-8)


def test_reduced_estimators_predict_and_are_stored(tmp_path):
    board = mm.datasets.make_checkers(600, random_state=0)
    for svm in (mm.BinarySVM(kernel="rbf", gamma=20.0), mm.MulticlassSVM(kernel="rbf", gamma=20.0)):
        svm.fit(board.X, board.y)
        scores, before = svm.decision_function(board.X), svm.expansion_.size
        dual = svm.certificate_.dual
        assert svm.reduce_basis(before) is svm
        assert svm.certificate_.primal is not None
        svm.reduce_basis(120)
        assert svm.expansion_.size == 120 < before
        assert np.mean((svm.decision_function(board.X) > 0) == (scores > 0)) > 0.95
        assert svm.certificate_.primal is None
        assert svm.certificate_.dual == dual
        assert "reduced to 120 of" in str(svm.certificate_)
        assert f"dual {dual:.8g}" in str(svm.certificate_)
        svm.save(tmp_path / "reduced.mm")
        assert np.array_equal(mm.load(tmp_path / "reduced.mm").predict(board.X), svm.predict(board.X))


def test_taggers_are_reduced():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(5, 2)) for _ in range(30)]
    y = [["in" if row @ row < 1.5 else "out" for row in x] for x in X]
    tagger = mm.ChainSVM(C=10.0, kernel="rbf", gamma=1.0).fit(X, y)
    before, transitions = tagger.score(X, y), tagger.transition_.copy()
    assert tagger.reduce_basis(20).expansion_.size == 20
    assert tagger.score(X, y) > before - 0.1
    assert np.array_equal(tagger.transition_, transitions)


def test_what_cannot_be_reduced_is_refused():
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="n_points must be an integer ≥ 1"):
        mm.BinarySVM(kernel="rbf").fit(X, y).reduce_basis(0)
    with pytest.raises(ValueError, match="no basis points"):
        mm.BinarySVM().fit(X, y).reduce_basis(2)
    with pytest.raises(ValueError, match="precomputed"):
        mm.BinarySVM(kernel="precomputed").fit(X, y).reduce_basis(2)
