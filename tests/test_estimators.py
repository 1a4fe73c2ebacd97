"""The estimators: what they compute, warm starts and limits. Chains have a file of their own."""

import re
import signal

import numpy as np
import pytest
import scipy.sparse as sp
from sequence_examples import sequences
from sklearn.datasets import load_iris, make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

import maxmargin as mm
from maxmargin.estimators import BinarySVM, ChainSVM, MulticlassSVM, StructuralSVM
from maxmargin.model import Model

# ------------------------------------------------------------------------------------------------- objectives


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_binary_objective_is_that_of_liblinear(C):
    X, y = make_classification(150, n_features=8, flip_y=0.2, random_state=0)
    ours = BinarySVM(C=C, fit_intercept=False, tol=1e-6).fit(X, y)
    theirs = LinearSVC(C=C, loss="hinge", fit_intercept=False, tol=1e-8, max_iter=1_000_000, random_state=0).fit(X, y)

    def objective(w):
        return 0.5 * w @ w + C * np.maximum(0.0, 1.0 - (2 * y - 1) * (X @ w)).sum()

    assert ours.certificate_.primal == pytest.approx(objective(ours.coef_[0]), rel=1e-9)
    assert objective(ours.coef_[0]) == pytest.approx(objective(theirs.coef_[0]), rel=1e-3)


def test_intercept_is_a_regularised_column():
    X, y = make_classification(80, n_features=4, weights=[0.8], random_state=1)
    with_intercept = BinarySVM(intercept_scaling=2.0, tol=1e-8).fit(X, y)
    column = BinarySVM(fit_intercept=False, tol=1e-8).fit(np.column_stack([X, np.full(80, 2.0)]), y)
    np.testing.assert_allclose(with_intercept.intercept_, 2.0 * column.coef_[:, -1], atol=1e-4)
    np.testing.assert_allclose(with_intercept.coef_, column.coef_[:, :-1], atol=1e-4)
    np.testing.assert_allclose(BinarySVM(tol=1e-8).fit(sp.csr_array(X), y).coef_, BinarySVM(tol=1e-8).fit(X, y).coef_)


def test_two_classes_are_the_binary_problem_at_twice_the_C():
    X, y = make_classification(80, n_features=4, random_state=2)
    two = MulticlassSVM(C=0.5, tol=1e-9).fit(X, y)
    binary = BinarySVM(C=1.0, tol=1e-9).fit(X, y)
    assert two.coef_.shape == binary.coef_.shape == (1, 4)
    np.testing.assert_allclose(two.decision_function(X), binary.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("estimator", [BinarySVM, MulticlassSVM])
def test_cost_and_class_weight_favour_a_class(estimator):
    X, y = make_classification(200, n_features=4, flip_y=0.3, random_state=3)
    y = np.array(["no", "yes"])[y]
    plain = (estimator().fit(X, y).predict(X) == "yes").mean()
    cost = np.array([[0.0, 1.0], [9.0, 0.0]])
    for svm in (estimator(cost=cost), estimator(cost={"yes": 9.0}), estimator(class_weight={"yes": 9.0})):
        assert (svm.fit(X, y).predict(X) == "yes").mean() > plain + 0.1
    as_dict, as_matrix = estimator(cost={"yes": 9.0}).fit(X, y), estimator(cost=cost).fit(X, y)
    np.testing.assert_array_equal(as_dict.coef_, as_matrix.coef_)


def test_a_number_as_cost_is_that_number_everywhere():
    X, y = load_iris(return_X_y=True)
    number = MulticlassSVM(cost=2.0).fit(X, y)
    matrix = MulticlassSVM(cost=2.0 * (1 - np.eye(3))).fit(X, y)
    np.testing.assert_array_equal(number.coef_, matrix.coef_)


def test_balanced_weights_count_sample_weights():
    X, y = make_classification(100, n_features=4, weights=[0.8], random_state=4)
    weight = np.random.default_rng(0).integers(1, 4, 100)
    weighted = BinarySVM(class_weight="balanced", tol=1e-9).fit(X, y, sample_weight=weight)
    repeated = BinarySVM(class_weight="balanced", tol=1e-9).fit(X.repeat(weight, axis=0), y.repeat(weight))
    np.testing.assert_allclose(weighted.decision_function(X), repeated.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("labels", [[False, True], [-3, 8], [1.0, 2.0], ["n", "y"]])
def test_classes_come_back_as_they_were(labels):
    X, y = make_classification(40, n_features=4, random_state=0)
    for estimator in (BinarySVM(), MulticlassSVM()):
        fitted = estimator.fit(X, np.array(labels)[y])
        assert set(fitted.predict(X).tolist()) == set(labels)
        assert fitted.predict(X).dtype == np.array(labels).dtype


def test_sparse_with_long_indices_and_small_floats():
    X, y = load_iris(return_X_y=True)
    expected = MulticlassSVM(tol=1e-8).fit(X.astype(np.float32), y).decision_function(X)
    sparse = sp.csr_array(X.astype(np.float32))
    sparse.indices, sparse.indptr = sparse.indices.astype(np.int64), sparse.indptr.astype(np.int64)
    np.testing.assert_allclose(MulticlassSVM(tol=1e-8).fit(sparse, y).decision_function(X), expected, atol=1e-3)


# -------------------------------------------------------------------------------------------------- structural


class Nearest(Model):
    n_features = 1

    def joint_feature(self, x, y):
        return [-abs(x - y)]

    def loss(self, y_true, y):
        return abs(y_true - y)

    def outputs(self, x):
        return range(5)


def test_structural_score_is_the_negative_mean_loss():
    svm = StructuralSVM(Nearest(), C=10.0).fit([0.2, 3.1, 1.8], [0, 3, 2])
    assert svm.predict([0.9, 3.7]) == [1, 4]
    assert svm.score([0.9, 3.7], [1, 2]) == -1.0
    assert svm.score([0.9, 3.7], [1, 2], sample_weight=[3, 1]) == -0.5
    assert svm.coef_.shape == (1,)


def test_structural_refuses_what_is_no_model():
    with pytest.raises(TypeError, match=r"StructuralSVM\(Nearest\(\)\)"):
        StructuralSVM(Nearest).fit([0.2], [0])
    with pytest.raises(TypeError, match=r"subclass of maxmargin\.Model"):
        StructuralSVM("chain").fit([0.2], [0])
    with pytest.raises(ValueError, match="1 inputs but"):
        StructuralSVM(Nearest()).fit([0.2], [0]).score([0.2], [0, 1])


# ------------------------------------------------------------------------------------------- warm starts, limits


@pytest.mark.parametrize("kind", ["binary", "chain"])
def test_warm_starts_reach_the_same_optimum(kind):
    if kind == "chain":
        warm, (X, y) = ChainSVM(warm_start=True, tol=1e-6), sequences(n=40)
        other = sequences(seed=5, n=40)
    else:
        warm, (X, y) = BinarySVM(warm_start=True, tol=1e-6), make_classification(100, random_state=0)
        other = make_classification(100, random_state=1)
    for C in (0.1, 1.0, 0.5):
        cold = type(warm)(C=C, tol=1e-6).fit(X, y)
        assert warm.set_params(C=C).fit(X, y).certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)
    # Planes of other data would give a bound above the optimum.
    cold = type(warm)(C=C, tol=1e-6).fit(*other)
    assert warm.fit(*other).certificate_.primal == pytest.approx(cold.certificate_.primal, rel=1e-5)
    assert warm.certificate_.dual <= cold.certificate_.primal


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    "parameters",
    [{}, {"kernel": "rbf"}, {"loss": "squared_hinge"}, {"solver": "block-dual"}, {"solver": "n-slack"}],
    ids=str,
)
def test_no_tolerance_is_too_small_to_end(parameters):
    rng = np.random.default_rng(0)
    for _ in range(3):
        X, y = rng.normal(size=(60, 4)), rng.integers(0, 3, size=60)
        found = MulticlassSVM(tol=0.0, max_iter=None, max_time=60.0, **parameters).fit(X, y).certificate_
        assert found.converged
        assert 0.0 <= found.relative_gap < 1e-12
        assert found.dual <= found.primal


def test_rounding_puts_no_dual_above_its_primal():
    rng = np.random.default_rng(1)
    for _ in range(100):
        found = MulticlassSVM().fit(rng.normal(size=(20, 3)), np.arange(20) % 3).certificate_
        assert found.dual <= found.primal


def test_auto_takes_cuts_for_few_rows_only():
    X, y = make_classification(400, random_state=0)
    for n, expected in ((200, "one-slack"), (201, "block-dual")):
        assert BinarySVM(tol=0.1).fit(X[:n], y[:n]).history_[0]["solver"] == expected


def test_auto_takes_cuts_for_few_weights_only():
    """A thousand where an example is one row; those of ten classes are padded to sixteen."""
    X, y = np.random.default_rng(0).normal(size=(100, 63)), np.arange(100) % 10
    for n, expected in ((62, "one-slack"), (63, "block-dual")):
        assert mm.train(mm.models.Multiclass(10), X[:, :n], y, tol=0.1).solver == expected


def test_cuts_depend_on_the_order_of_rows_by_rounding_only():
    X, y = make_classification(200, flip_y=0.1, random_state=0)
    order = np.random.default_rng(0).permutation(200)
    one, other = (BinarySVM(C=10.0).fit(X[rows], y[rows]) for rows in (np.arange(200), order))
    assert "but for rounding, on their order" in one.history_[0]["reason"]
    for svm, twin in ((one, other), (other, one)):
        assert svm.certificate_.dual <= twin.certificate_.primal <= (1 + 2e-3) * svm.certificate_.primal


@pytest.mark.parametrize("C", [1.0, 1e4])
def test_auto_trains_where_one_column_is_larger_than_all_others(C):
    """Visits of one row after the other would crawl."""
    X, y = make_classification(400, 8, flip_y=0.2, random_state=0)
    svm = BinarySVM(C=C).fit(X * np.geomspace(0.1, 100.0, 8), y)
    assert svm.history_[0]["solver"] == "block-dual"
    assert sum(record["joint_steps"] for record in svm.history_) > 0
    assert svm.certificate_.converged
    assert len(svm.history_) < 100


def test_fits_that_go_on_from_each_other_have_one_solver():
    X, y = make_classification(400, 8, random_state=0)
    few = BinarySVM(warm_start=True).fit(X[:200], y[:200])
    assert few.history_[0]["solver"] == "one-slack"
    more = few.set_params(C=1e-6).fit(X, y)
    assert more.history_[0]["solver"] == "one-slack"
    assert more.history_[0]["reason"] == "the planes to go on from are its"


def test_planes_choose_the_solver_of_auto():
    X, y = make_classification(300, 8, n_informative=5, n_classes=3, random_state=0)
    model = mm.models.Multiclass(3)
    first = mm.train(model, X[:150], y[:150], keep_planes=True)
    more = mm.train(model, X, y, planes=first.planes)
    assert first.solver == more.solver == "one-slack"
    assert mm.train(model, X, y).solver == "block-dual"
    with pytest.raises(ValueError, match="planes come from solver 'one-slack'"):
        mm.train(model, X, y, planes=first.planes, loss="squared_hinge")


def test_auto_takes_blocks_for_few_sequences():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(6, 30)) for _ in range(50)]
    y = [np.argmax(x[:, :4], axis=1) for x in X]
    assert ChainSVM(tol=0.1).fit(X, y).history_[0]["solver"] == "block-dual"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"k_best": 5}, "has all of 'k_best'; 'mira' has: name the solver"),
        ({"epochs": 5, "decay": "nC"}, "has all of 'decay', 'epochs'; 'sgd' has: name the solver"),
        ({"kappa1": 5}, "has all of 'kappa1'; 'sdm' has: name the solver"),
        ({"kappa1": -5}, r"solver_options\['kappa1'\] must be an integer ≥ 0"),
        (
            {"epochs": 5, "sweeps": 2},
            "no solver has all of 'epochs', 'sweeps': 'epochs' is an option of 'perceptron', 'mira' or 'sgd', 'sweeps' is an",
        ),
        ({"sampling": "violation"}, "'sampled-cuts' with rescaling='margin' needs a model with an exact kernel"),
        ({"nothing": 5}, "solver 'block-dual' has no option 'nothing'"),
        ({"nothing": 5, "k_best": 5}, "solver 'block-dual' has no option 'nothing'"),
    ],
)
def test_auto_says_whose_an_option_is(options, text):
    with pytest.raises(ValueError, match=text):
        BinarySVM(solver_options=options).fit(np.eye(2), [0, 1])


OWN_OPTIONS = {
    "one-slack": {"cache_size": 3},
    "n-slack": {"batch_size": 5},
    "sampled-cuts": {"strategy": "constant"},
    "sdm": {"tau": 0.1, "tau_inner": 0.1},
    "cpd": {"delta": 0.1},
    "bcfw": {"pairwise": True},
    "mira": {"k_best": 2},
    "sgd": {"decay": "nC"},
}


@pytest.mark.parametrize("options", OWN_OPTIONS.values(), ids=OWN_OPTIONS.keys())
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("rescaling", ["margin", "slack"])
def test_solvers_that_auto_names_for_an_option_take_it(options, loss, rescaling):
    """Also with an exact kernel, and for models that lack a search."""
    rbf, X, y = mm.Kernel("rbf"), [np.eye(2)] * 2, [[0, 1], [1, 0]]
    how = {"loss": loss, "rescaling": rescaling, "solver_options": options, "tol": 0.5}
    for model in (mm.models.Chain(2), mm.models.Chain(2, kernel=rbf), NoSlackSearch()):
        rows, labels = (X, y) if isinstance(model, mm.models.Chain) else (np.eye(2), [0, 1])
        said = refusal(model, rows, labels, **how)
        named = re.search(r"here has all of .*; (.*) has: name the solver", said)
        for solver in re.findall("'([a-z-]+)'", named[1]) if named else []:
            mm.train(model, rows, labels, solver=solver, **how)
        assert named or not said or "solver '" in said, "what the only solver that has it needs"


def refusal(*arguments, **options):
    """Return what a training is refused with, nothing where it is not."""
    try:
        mm.train(*arguments, **options)
    except ValueError as error:
        return str(error)
    return ""


class NoSlackSearch(mm.Model):
    n_features = 4

    def joint_feature(self, x, y):
        return np.kron(np.eye(2)[y], x)

    def loss(self, y, y_hat):
        return float(y != y_hat)

    def argmax(self, x, w):
        return int(np.argmax(w.reshape(2, 2) @ x))

    def loss_augmented_argmax(self, x, y, w):
        return int(np.argmax(w.reshape(2, 2) @ x + (np.arange(2) != y)))


def test_limits_leave_a_usable_model_and_a_warning():
    X, y = sequences()
    with pytest.warns(ConvergenceWarning, match="max_iter=2"):
        tagger = ChainSVM(max_iter=2, tol=1e-9).fit(X, y)
    assert tagger.n_iter_ == 2
    assert not tagger.certificate_.converged
    assert len(tagger.predict(X)) == len(X)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_an_interrupt_leaves_a_usable_model():
    X, y = make_classification(4000, n_features=200, n_informative=50, flip_y=0.3, random_state=0)
    svm = BinarySVM(C=100.0, tol=1e-12)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with pytest.warns(ConvergenceWarning, match="interrupted"):
            svm.fit(X, y)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
    assert not svm.certificate_.converged
    assert svm.predict(X).shape == (4000,)
