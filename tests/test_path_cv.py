"""Paths of estimators, and C chosen along them by held-out data."""

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from test_sklearn_checks import KINDS, expected_failures, toy

import maxmargin as mm
from maxmargin.solvers.block_dual import BlockDual

CS = [1e-5, 0.01, 1.0]


@pytest.fixture(params=KINDS)
def case(request):
    estimator, X, y = toy(request.param)
    return estimator.set_params(tol=1e-5), X, y


# --------------------------------------------------------------------------------------------- estimator.path


def test_every_estimator_of_a_path_is_as_good_as_its_own_fit(case):
    estimator, X, y = case
    before = dict(vars(estimator))
    path = estimator.path(X, y, Cs=CS[::-1])
    assert vars(estimator) == before
    assert path.Cs.tolist() == CS[::-1]
    assert len(path) == 3
    for C, fitted in zip(path.Cs, path, strict=True):
        single = clone(estimator).set_params(C=C).fit(X, y)
        assert fitted.get_params()["C"] == C
        assert fitted.certificate_.relative_gap <= 1e-5
        assert fitted.certificate_.primal == pytest.approx(single.certificate_.primal, rel=3e-5)
        np.testing.assert_allclose(fitted.coef_, single.coef_, atol=0.02 * np.abs(single.coef_).max())
    assert path.coefs.shape == (3, *path[0].coef_.shape)
    np.testing.assert_array_equal(path.score(X, y), [fitted.score(X, y) for fitted in path])


def test_points_of_a_path_do_not_share_what_they_may_change(case):
    estimator, X, y = case
    low, high = estimator.path(X, y, Cs=[0.01, 1.0])
    expected = list(high.predict(X))
    low.fit(X, y).coef_[:] = 0.0
    low.set_params(C=5.0)
    assert list(high.predict(X)) == expected
    assert high.C == 1.0
    assert pickle.loads(pickle.dumps(high)).certificate_ == high.certificate_


def test_a_number_of_Cs_means_a_grid_up_to_the_estimators_own(case):
    estimator, X, y = case
    path = estimator.set_params(C=2.0, tol=0.1).path(X, y, Cs=4)
    np.testing.assert_allclose(path.Cs, [0.002, 0.02, 0.2, 2.0])
    assert estimator.path(X, y, Cs=1).Cs.tolist() == [2.0]
    assert len(estimator.path(X, y)) == 10


def test_a_path_takes_the_parameters_of_fit():
    estimator, X, y = toy("chain")
    weight, tokens = np.arange(9.0), [np.full(5, 2.0)] * 9
    (fitted,) = estimator.path(X, y, [0.1], sample_weight=weight, token_weight=tokens)
    single = clone(estimator).set_params(C=0.1).fit(X, y, sample_weight=weight, token_weight=tokens)
    assert fitted.certificate_ == single.certificate_
    with pytest.raises(TypeError, match="simple_weight"):
        estimator.path(X, y, [0.1], simple_weight=weight)


@pytest.mark.parametrize(
    ("Cs", "error"), [(0, ValueError), (-3, ValueError), (None, TypeError), ([], ValueError), ([1.0, -1.0], ValueError)]
)
def test_a_bad_grid_is_refused(Cs, error):
    estimator, X, y = toy("binary")
    with pytest.raises(error, match="Cs"):
        estimator.path(X, y, Cs)
    with pytest.raises(error, match="Cs"):
        mm.PathCV(estimator, Cs).fit(X, y)


# ---------------------------------------------------------------------------------------------------- PathCV


@parametrize_with_checks(
    [mm.PathCV(mm.BinarySVM(), 3, cv=2), mm.PathCV(mm.MulticlassSVM(), 3, cv=2)],
    expected_failed_checks=lambda search: expected_failures(search.estimator),
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_it_finds_what_a_grid_search_finds(case):
    estimator, X, y = case
    search = mm.PathCV(estimator, CS, cv=KFold(3)).fit(X, y)
    grid = GridSearchCV(estimator, {"C": CS}, cv=KFold(3)).fit(X, y)
    assert search.scores_.shape == (3, 3)
    assert search.Cs_.tolist() == CS
    assert grid.best_params_["C"] == search.C_
    for k in range(3):
        np.testing.assert_allclose(search.scores_[k], grid.cv_results_[f"split{k}_test_score"])
    assert search.best_score_ == search.scores_.mean(axis=0).max()
    assert search.best_estimator_.C == search.C_
    assert list(search.predict(X)) == list(grid.predict(X))
    assert search.score(X, y) == grid.score(X, y)


def test_of_equal_scores_the_smallest_C_wins():
    X, y = np.array([[-2.0], [-1.0], [1.0], [2.0]] * 3), np.array([0, 0, 1, 1] * 3)
    search = mm.PathCV(mm.BinarySVM(), [10.0, 0.1, 1.0], cv=3).fit(X, y)
    assert search.scores_.tolist() == [[1.0] * 3] * 3
    assert search.C_ == 0.1


@pytest.mark.parametrize("cv", [0.25, np.float32(0.25), KFold(2), 2, None])
def test_ways_to_hold_out(cv, case):
    estimator, X, y = case
    search = mm.PathCV(estimator, [0.1, 1.0], cv=cv).fit(X, y)
    assert search.scores_.shape == (
        {0.25: 1, None: 5}.get(cv if isinstance(cv, float | np.floating | None) else 0, 2),
        2,
    )


@pytest.mark.parametrize("cv", [0.0, 1.0, -0.5, 1.5, float("nan"), 1, 0, True, np.int64(1)])
def test_a_share_that_holds_out_nothing_or_all_is_refused(cv):
    estimator, X, y = toy("binary")
    with pytest.raises(ValueError, match="share below 1 to hold out"):
        mm.PathCV(estimator, cv=cv).fit(X, y)


def test_scoring_decides():
    estimator, X, y = toy("multiclass")
    worst = make_scorer(accuracy_score, greater_is_better=False)
    search = mm.PathCV(estimator, CS, cv=3, scoring=worst).fit(X, y)
    assert search.C_ == 1e-5
    assert search.score(X, y) <= 0.0
    assert mm.PathCV(estimator, CS, cv=3, scoring="f1_macro").fit(X, y).C_ == 1.0


def test_groups_stay_together():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    groups = np.arange(60) % 3
    seen = []

    class Watched(GroupKFold):
        def split(self, X, y=None, groups=None):
            for train, held_out in super().split(X, y, groups):
                seen.append(set(groups[train]) & set(groups[held_out]))
                yield train, held_out

    search = mm.PathCV(mm.MulticlassSVM(), [0.1, 1.0], cv=Watched(3)).fit(X, np.argmax(X, 1), groups=groups)
    assert search.scores_.shape == (3, 2)
    assert seen == [set()] * 3


def test_scores_that_are_not_finite_are_not_chosen_and_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    with pytest.warns(UserWarning, match=r"not finite for C = 0\.1, which") as caught:
        search = mm.PathCV(
            mm.MulticlassSVM(), [0.1, 1.0], cv=3, scoring=lambda svm, X, y: np.nan if svm.C == 0.1 else 0.5
        ).fit(X, np.argmax(X, 1))
    assert search.C_ == 1.0
    assert caught[0].filename == __file__
    with pytest.raises(ValueError, match="no value that is finite"):
        mm.PathCV(mm.MulticlassSVM(), [0.1, 1.0], cv=3, scoring=lambda svm, X, y: np.nan).fit(X, np.argmax(X, 1))


def test_weights_are_split_with_the_examples():
    estimator, X, y = toy("binary")
    weight = np.where(np.arange(45) % 3 == 0, 0.0, 1.0)
    folds = [(np.arange(30), np.arange(30, 45))]
    search = mm.PathCV(estimator, [0.5], cv=folds).fit(X, y, sample_weight=weight)
    kept = weight > 0.0
    same = clone(estimator).set_params(C=0.5).fit(X[:30][kept[:30]], y[:30][kept[:30]])
    assert search.scores_[0, 0] == same.score(X[30:], y[30:])
    np.testing.assert_allclose(
        search.best_estimator_.coef_, clone(search.best_estimator_).fit(X[kept], y[kept]).coef_, atol=0.05
    )


def test_without_refit_it_only_chooses(case):
    estimator, X, y = case
    search = mm.PathCV(estimator, [0.1, 1.0], cv=2).fit(X, y).set_params(refit=False).fit(X, y)
    assert search.C_ in (0.1, 1.0)
    with pytest.raises(AttributeError, match="refit=False"):
        search.predict(X)
    # Nothing is left of the search before it.
    assert not hasattr(search, "best_estimator_")
    assert not hasattr(search, "classes_")


@pytest.fixture
def interrupted_at(monkeypatch):
    """Make Ctrl-C strike when a path goes on to the given C; return the values of C that were resumed."""
    resume = BlockDual.resume
    reached = []

    def set_C(C):
        def interrupted(self, task):
            reached.append(task.C)
            if task.C == C:
                raise KeyboardInterrupt
            yield from resume(self, task)

        monkeypatch.setattr(BlockDual, "resume", interrupted)
        return reached

    return set_C


@pytest.mark.filterwarnings("ignore:training was interrupted")
@pytest.mark.parametrize(("C", "n_tried"), [(0.01, 1), (1.0, 2)])
def test_an_interrupt_ends_the_search(interrupted_at, C, n_tried):
    reached = interrupted_at(C)
    estimator, X, y = toy("chain")
    search = mm.PathCV(estimator.set_params(solver="block-dual"), CS, cv=3)
    with pytest.raises(KeyboardInterrupt, match=f"{n_tried} of 3 values of C were tried on this fold"):
        search.fit(X, y)
    assert reached == CS[1 : n_tried + 1]
    assert not hasattr(search, "best_estimator_")


@pytest.mark.filterwarnings("ignore:training was interrupted")
def test_an_interrupt_leaves_the_estimators_that_were_reached(interrupted_at):
    interrupted_at(0.01)
    estimator, X, y = toy("chain")
    with pytest.warns(UserWarning, match="the path was interrupted at point 2 of 3"):
        path = estimator.set_params(solver="block-dual").path(X, y, CS)
    assert path.Cs.tolist() == CS[:2]
    assert path[0].certificate_.converged
    assert not path[1].certificate_.converged


def test_it_goes_where_estimators_go(case):
    estimator, X, y = case
    search = mm.PathCV(estimator, [0.1, 1.0], cv=2)
    assert is_classifier(search) == is_classifier(estimator)
    with pytest.raises(NotFittedError):
        search.predict(X)
    assert len(cross_val_score(clone(search), X, y, cv=2)) == 2
    assert hasattr(search, "decision_function") == hasattr(estimator, "decision_function")
    search.fit(X, y)
    assert list(pickle.loads(pickle.dumps(search)).predict(X)) == list(search.predict(X))


def test_in_a_pipeline_it_is_the_last_step():
    estimator, X, y = toy("binary")
    pipeline = make_pipeline(StandardScaler(), mm.PathCV(estimator, CS, cv=3)).fit(X, y)
    assert pipeline.score(X, y) > 0.8
    with pytest.raises(TypeError, match="PathCV takes their place"):
        mm.PathCV(make_pipeline(StandardScaler(), estimator)).fit(X, y)


def test_sparse_matrices_are_split():
    estimator, X, y = toy("binary")
    dense = mm.PathCV(estimator, CS, cv=3).fit(X, y)
    sparse = mm.PathCV(estimator, CS, cv=3).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.scores_, dense.scores_)


@pytest.mark.parametrize(("estimator", "text"), [(None, "of type NoneType"), ("svm", "of type str")])
def test_what_is_no_estimator_of_ours_is_refused(estimator, text):
    with pytest.raises(TypeError, match=f"{text}; expected one of BinarySVM"):
        mm.PathCV(estimator).fit(np.eye(2), [0, 1])


def test_a_class_in_place_of_an_estimator_is_refused():
    with pytest.raises(TypeError, match=r"estimator is the class BinarySVM; give an instance of it: BinarySVM\(…\)"):
        mm.PathCV(mm.BinarySVM).fit(np.eye(2), [0, 1])


def test_a_scorer_that_returns_no_number_is_refused():
    estimator, X, y = toy("binary")
    for found in (None, 1j, "0.5", np.ones(2)):
        with pytest.raises(TypeError, match="scoring must return a number, found"):
            mm.PathCV(estimator, [0.1], cv=2, scoring=lambda *_, found=found: found).fit(X, y)
    for found in (np.array(0.5), np.float32(0.5), True, np.True_):
        assert mm.PathCV(estimator, [0.1], cv=2, scoring=lambda *_, found=found: found).fit(X, y).best_score_ == float(
            found
        )


def test_a_scorer_by_name_that_cannot_compare_sequences_says_what_to_give():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["A", "B"], ["B", "A"]] * 4
    with pytest.raises(
        ValueError, match=r"scoring='accuracy' gave an error: .* sequences or graphs, give a function of"
    ):
        mm.PathCV(mm.ChainSVM(), [0.1], cv=2, scoring="accuracy").fit(X, y)
