"""Going on from the planes of an earlier run: the same optimum with less work, and never from those of another problem."""

import itertools
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
import small_model

import maxmargin as mm
from maxmargin._warm_start import origin_of
from maxmargin.solvers import SOLVERS as ALL_SOLVERS
from maxmargin.solvers import _cutting_planes, line_search
from maxmargin.solvers._blocks import Blocks

pytestmark = pytest.mark.core


@pytest.mark.parametrize("solver", ["block-dual", "one-slack", "n-slack", "sdm", "dcd", "dcd-light", "cpd"])
@pytest.mark.parametrize("options", [{}, {"stabilization": "line-search"}], ids=str)
def test_a_warm_start_asks_the_oracle_less_and_ends_at_the_same_optimum(solver, options):
    if options and solver != "one-slack":
        options = {}
    rng = np.random.default_rng(1)
    X = [rng.normal(size=(5, 6)) for _ in range(80)]
    Y = [np.argmax(x[:, :3] + 0.5 * rng.normal(size=(5, 3)), axis=1) for x in X]
    tol = 1e-6 if solver in ("block-dual", "one-slack", "n-slack") else 1e-3
    loss = min(ALL_SOLVERS[solver].losses)
    settings = {"solver": solver, "loss": loss, "tol": tol, "solver_options": options, "keep_planes": True}
    first = mm.train(mm.models.Chain(3), X, Y, 1.0, **settings)
    for C in (2.0, 0.5, 2.0):  # the same planes serve any number of runs
        cold = mm.train(mm.models.Chain(3), X, Y, C, **settings)
        warm = mm.train(mm.models.Chain(3), X, Y, C, planes=first.planes, **settings)
        assert warm.certificate.primal == pytest.approx(cold.certificate.primal, rel=3 * tol)
        assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
        assert warm.certificate.oracle_calls < cold.certificate.oracle_calls


@pytest.mark.parametrize("kind", ["chain", "python"])
@pytest.mark.parametrize("solver", ["block-dual", "n-slack", "sdm", "dcd", "dcd-light", "cpd"])
def test_the_same_problem_is_solved_when_it_is_met_again(solver, kind):
    rng = np.random.default_rng(4)
    if kind == "chain":
        model, X = mm.models.Chain(3), [rng.normal(size=(8, 6)) for _ in range(80)]
        Y = [np.argmax(x[:, :3] + rng.normal(size=(8, 3)), axis=1) for x in X]
    else:
        model, (X, Y) = small_model.Classes(), small_model.data(60)
    settings = {"solver": solver, "loss": min(ALL_SOLVERS[solver].losses), "tol": 1e-2, "keep_planes": True}
    first = mm.train(model, X, Y, 0.3, **settings)
    again = mm.train(model, X, Y, 0.3, planes=first.planes, **settings)
    assert again.certificate.converged
    # What the planes and their α are worth is known before anything is searched or solved.
    assert again.history[0]["dual"] >= first.certificate.dual * (1 - 1e-9)
    assert len(again.history) <= max(1, 0.4 * len(first.history))
    # Half the budget is spent by halves of α; where it is doubled, α may grow.
    for C in (0.15, 0.6):
        cold, warm = (mm.train(model, X, Y, C, planes=planes, **settings) for planes in (None, first.planes))
        assert warm.history[0]["dual"] > 0.5 * cold.certificate.dual
        assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
        assert cold.certificate.dual <= warm.certificate.primal * (1 + 1e-9)


@pytest.mark.parametrize("kind", ["rows", "chain", "python"])
def test_a_smaller_budget_does_not_undo_what_cancelled(kind):
    # With α at the bound in some blocks and free in others, cutting each by itself leaves large w of what had cancelled.
    rng = np.random.default_rng(1)
    X = rng.normal(size=(150, 2))
    Y = np.argmax(X @ rng.normal(size=(2, 3)) + 0.3 * rng.normal(size=(150, 3)), axis=1)
    model = small_model.Classes() if kind == "python" else mm.models.Multiclass(3)
    data = 30.0 * X
    if kind == "chain":
        model, data, Y = mm.models.Chain(3), [30.0 * x[None] for x in X], [[y] for y in Y]
    settings = {"solver": "block-dual", "tol": 1e-3, "keep_planes": True}
    first = mm.train(model, data, Y, 3.0, **settings)
    warm = mm.train(model, data, Y, 1.0, planes=first.planes, **settings)
    assert warm.certificate.converged
    assert warm.history[0]["dual"] > 0.9 * warm.certificate.dual


def test_a_line_search_goes_on_from_its_dual_point():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    settings = {"solver": "line-search", "tol": 1e-3, "max_iter": 20_000, "keep_planes": True}
    first = mm.train(mm.models.Multiclass(3), X, y, 0.1, **settings)
    again = mm.train(mm.models.Multiclass(3), X, y, 0.1, planes=first.planes, **settings)
    assert len(again.history) <= 3
    smaller = mm.train(mm.models.Multiclass(3), X, y, 0.05, planes=first.planes, **settings)
    cold = mm.train(mm.models.Multiclass(3), X, y, 0.05, **settings)
    assert smaller.certificate.converged
    assert smaller.certificate.oracle_calls < cold.certificate.oracle_calls


@pytest.mark.parametrize("solver", ["sdm", "bcfw", "line-search", "n-slack"])
def test_auto_goes_on_with_the_solver_of_the_planes(solver):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    first = mm.train(mm.models.Multiclass(3), X, y, 0.1, solver=solver, tol=1e-2, keep_planes=True)
    again = mm.train(mm.models.Multiclass(3), X, y, 0.1, tol=1e-2, planes=first.planes)
    assert again.solver == solver
    assert again.history[0]["reason"] == "the planes to go on from are its"
    assert again.certificate.oracle_calls < first.certificate.oracle_calls
    with pytest.raises(ValueError, match=f"planes come from solver '{solver}'; solver 'block-dual' cannot"):
        mm.train(mm.models.Multiclass(3), X, y, planes=first.planes, solver_options={"max_planes": 5})


SOLVERS = ["block-dual", "one-slack", "n-slack", "line-search", "bcfw"]


@pytest.fixture(scope="module")
def kept():
    """A problem, and the planes that each solver kept of it."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(20, 4)), rng.integers(3, size=20)
    planes = {
        solver: mm.train(mm.models.Multiclass(3), X, y, solver=solver, tol=0.1, keep_planes=True).planes
        for solver in SOLVERS
    }
    return X, y, planes


def twice(X, y):
    return {"X": np.vstack([X, X]), "Y": np.append(y, y)}


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("text", "change"),
    [
        ("X differs", lambda X, y: {"X": X + 1}),
        ("Y differs", lambda X, y: {"Y": (y + 1) % 3}),
        ("X and Y differ", lambda X, y: {"X": X[:10], "Y": y[:10]}),
        ("X.* differs?", lambda X, y: {"X": np.vstack([X[1:], X]), "Y": np.append(y, y[1:])}),
        ("(X and )?Y differs?", lambda X, y: {"X": np.vstack([X, X]), "Y": np.append((y + 1) % 3, y)}),
        ("(X and Y and )?sample_weight differs?", lambda X, y: {**twice(X, y), "sample_weight": np.arange(40.0)}),
        ("X and n_features differ", lambda X, y: {"X": X[:, :2]}),
        ("sample_weight differs", lambda X, y: {"sample_weight": np.arange(20.0)}),
        ("rescaling differs", lambda X, y: {"rescaling": "slack"}),
        ("model differs", lambda X, y: {"model": mm.models.Multiclass(4)}),
        ("model differs", lambda X, y: {"model": mm.models.Multiclass(3, cost=2.0)}),
        ("model and X and Y differ", lambda X, y: {"model": mm.models.Chain(3), "X": [X], "Y": [y]}),
        ("model and Y differ", lambda X, y: {"model": mm.models.Binary(), "Y": np.where(y > 0, 1, -1)}),
    ],
)
def test_planes_of_another_problem_are_refused(solver, text, change, kept):
    X, y, planes = kept
    given = {"model": mm.models.Multiclass(3), "X": X, "Y": y} | change(X, y)
    with pytest.raises(ValueError, match=f"planes belong to another problem: {text} from"):
        mm.train(**given, solver=solver, planes=planes[solver])


@pytest.mark.parametrize("solver", SOLVERS)
def test_planes_of_another_solver_are_refused(solver, kept):
    X, y, planes = kept
    for other in set(SOLVERS) - {solver}:
        with pytest.raises(ValueError, match=f"from solver '{other}'; solver '{solver}' cannot"):
            mm.train(mm.models.Multiclass(3), X, y, solver=solver, planes=planes[other])


def test_a_model_may_be_trained_again_from_its_own_planes(kept):
    X, y, _ = kept
    for data in (X, sp.csr_array(X), X.tolist()):
        model, planes = mm.models.Multiclass(3), None
        for C in (1.0, 2.0, 0.5):
            solution = mm.train(model, data, y, C, planes=planes, keep_planes=True)
            planes = solution.planes
            if sp.issparse(data):
                data.sum_duplicates()  # which scipy remembers
        cold = mm.train(mm.models.Multiclass(3), data, y, 0.5)
        assert solution.certificate.primal == pytest.approx(cold.certificate.primal, rel=2e-3)


def test_equal_data_in_another_form_is_the_same_problem(kept):
    X, y, planes = kept
    for same_X in (np.asfortranarray(X), np.repeat(X, 2, axis=0)[::2], X.tolist(), list(X)):
        for same_y in (y.tolist(), tuple(y.tolist()), list(y)):
            warm = mm.train(mm.models.Multiclass(3), same_X, same_y, planes=planes["one-slack"], solver="one-slack")
            assert warm.history[0]["cuts"] > 0


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ([1, 2], [1, 3]),
        ([1, 2], [1.0, 2.0]),
        ([[1, 2], [3, 4]], [1, 2, 3, 4]),
        ([2**63, -1], [2**63 + 1, -1]),  # equal as float64, which NumPy makes of them
        ([1, "2"], ["1", "2"]),
        ([[1], [2, 3]], [[1, 2], [3]]),
    ],
)
def test_other_data_in_a_like_form_is_another_problem(one, other):
    first, second = (origin_of(mm.models.Binary(), np.eye(2), Y, None, "margin", "n-slack") for Y in (one, other))
    assert first["Y"] != second["Y"]
    assert first["X"] == second["X"]


def test_planes_say_that_they_cannot_be_pickled(kept):
    X, y, planes = kept
    with pytest.raises(TypeError, match=r"planes cannot be pickled.*solution\.planes = None"):
        pickle.dumps(planes["one-slack"])
    warm = mm.MulticlassSVM(warm_start=True).fit(X, y)
    assert pickle.loads(pickle.dumps(warm)).certificate_ == warm.certificate_


class Unpicklable(mm.Model):
    n_features = 1

    def __init__(self):
        self.scale = lambda x: x

    def joint_feature(self, x, y):
        return [float(self.scale(x) * y)]

    def loss(self, y_true, y):
        return float(y_true != y)

    def outputs(self, x):
        return [0, 1]


def test_planes_are_not_kept_of_what_cannot_be_told_apart():
    assert mm.train(Unpicklable(), [1.0, -1.0], [1, 0]).planes is None
    with pytest.raises(ValueError, match=r"model has none: [^\n]*$") as refusal:
        mm.train(Unpicklable(), [1.0, -1.0], [1, 0], keep_planes=True)
    assert "while hashing" not in str(refusal.value)


def test_a_warm_start_of_what_cannot_be_told_apart_starts_afresh():
    warm = mm.StructuralSVM(Unpicklable(), warm_start=True)
    for C in (1.0, 10.0):
        cold = mm.StructuralSVM(Unpicklable(), C=C).fit([1.0, -1.0], [1, 0])
        assert warm.set_params(C=C).fit([1.0, -1.0], [1, 0]).certificate_ == cold.certificate_


@pytest.mark.parametrize("solver", SOLVERS)
def test_planes_of_another_kind_are_refused(solver):
    with pytest.raises(TypeError, match=f"must come from a Solution of solver '{solver}'"):
        mm.train(mm.models.Binary(), np.eye(2), [-1, 1], solver=solver, planes=5)


@pytest.mark.parametrize("solver", ["sdm", "block-dual", "n-slack"])
def test_planes_that_are_not_cut_to_smaller_budgets_yet_bound_nothing(solver, monkeypatch):
    """α of a large C is taken over first, and cut afterwards: what is broken off in between has no dual of the smaller one."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(3, size=60)
    model = mm.models.Chain(3)
    X, y = np.split(X, 10), np.split(y, 10)
    planes = mm.train(model, X, y, 1.0, solver=solver, keep_planes=True).planes
    best = mm.train(model, X, y, 1e-6, solver="one-slack", tol=1e-9).certificate.primal
    start = Blocks.start_from

    def broken(self, given):
        start(self, given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Blocks, "start_from", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        certificate = mm.train(model, X, y, 1e-6, solver=solver, planes=planes).certificate
    assert certificate.dual is None or certificate.dual <= best * (1.0 + 1e-9)


def interrupted(function, call):
    """Return the function as it is when Ctrl-C strikes at the beginning of the given call, the first being 1."""
    n_calls = itertools.count(1)

    def interrupting(*given):
        if next(n_calls) == call:
            raise KeyboardInterrupt
        return function(*given)

    return interrupting


@pytest.mark.parametrize(
    ("solver", "where", "name"),
    [("one-slack", _cutting_planes.CutModel, "_append"), ("line-search", line_search, "DualPoint")],
)
def test_an_interrupt_between_two_halves_of_a_step_keeps_no_planes(solver, where, name, kept, monkeypatch):
    X, y, _ = kept
    function = getattr(where, name)
    monkeypatch.setattr(where, name, interrupted(function, 3))
    with pytest.warns(match="training was interrupted"):
        solution = mm.train(mm.models.Multiclass(3), X, y, solver=solver, keep_planes=True)
    assert solution.planes is None
    assert np.any(solution.w != 0.0)

    warm = mm.MulticlassSVM(warm_start=True, solver=solver)
    monkeypatch.setattr(where, name, interrupted(function, 3))
    with pytest.warns(match="training was interrupted"):
        warm.fit(X, y)
    monkeypatch.setattr(where, name, function)
    cold = mm.MulticlassSVM(solver=solver).fit(X, y)
    assert warm.fit(X, y).certificate_.converged
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=2e-3)


def levels(cost):
    """Return a model of a class that has the same name for every cost, as one that is edited in a notebook."""

    class Levels(mm.Model):
        n_features = 3

        def joint_feature(self, x, y):
            return np.where(np.arange(3) == y, x, 0.0)

        def loss(self, y_true, y):
            return cost * abs(y_true - y)

        def outputs(self, x):
            return range(3)

    return Levels()


def test_planes_of_a_class_that_was_defined_anew_are_refused():
    x, y = np.linspace(-1.0, 2.0, 12), np.arange(12) % 3
    planes = mm.train(levels(5.0), x, y, keep_planes=True).planes
    with pytest.raises(ValueError, match="planes belong to another problem: model differs"):
        mm.train(levels(1.0), x, y, planes=planes)

    warm = mm.StructuralSVM(levels(5.0), warm_start=True).fit(x, y)
    again = warm.set_params(model=levels(1.0)).fit(x, y)
    cold = mm.StructuralSVM(levels(1.0)).fit(x, y)
    np.testing.assert_array_equal(again.coef_, cold.coef_)
    assert again.certificate_.dual == cold.certificate_.dual


def test_a_solution_in_place_of_its_planes_is_refused():
    solution = mm.train(mm.models.Binary(), np.eye(2), [-1, 1], keep_planes=True)
    with pytest.raises(TypeError, match=r"planes=solution\.planes"):
        mm.train(mm.models.Binary(), np.eye(2), [-1, 1], planes=solution)


# ------------------------------------------------------------------------------------------------------- more data


def sequences(rng, n):
    X = [rng.normal(size=(int(length), 4)) for length in rng.integers(1, 6, size=n)]
    return X, [rng.integers(3, size=len(x)) for x in X]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("kind", ["matrix", "sparse", "rows", "sequences", "stacked", "python"])
def test_planes_serve_when_examples_join_behind_theirs(solver, kind):
    rng = np.random.default_rng(4)
    if kind in ("sequences", "stacked"):
        X, Y = sequences(rng, 40)
        model, first = mm.models.Chain(3), X[:30]
        if kind == "stacked":
            X, first = (mm.models.Sequences.stack([sp.csr_array(x) for x in part]) for part in (X, first))
    else:
        X, Y = rng.normal(size=(40, 2)), rng.integers(3, size=40)
        model = small_model.Classes() if kind == "python" else mm.models.Multiclass(3)
        X = sp.csr_array(X) if kind == "sparse" else X.tolist() if kind == "rows" else X
        first = X[:30]
    tol = {"line-search": 2e-2, "bcfw": 1e-3}.get(solver, 1e-5)
    settings = {"solver": solver, "tol": tol, "keep_planes": True}
    planes = mm.train(model, first, Y[:30], 0.1, **settings).planes
    warm = mm.train(model, X, Y, 0.1, planes=planes, **settings)
    cold = mm.train(model, X, Y, 0.1, **settings)
    assert warm.certificate.converged
    assert warm.certificate.dual <= cold.certificate.primal * (1 + 1e-9)
    assert cold.certificate.dual <= warm.certificate.primal * (1 + 1e-9)
    # The first bounds rest on what was known of the old examples.
    assert warm.history[0]["dual"] > 0.2 * cold.certificate.dual
    again = mm.train(model, X, Y, 0.2, planes=warm.planes, **settings)
    afresh = mm.train(model, X, Y, 0.2, **settings)
    assert again.certificate.converged
    assert again.history[0]["dual"] > afresh.history[0]["dual"]


def test_sample_weights_of_one_are_those_of_no_weights():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(30, 3)), rng.integers(3, size=30)
    planes = mm.train(mm.models.Multiclass(3), X[:20], y[:20], keep_planes=True).planes
    weights = np.append(np.ones(20), np.full(10, 2.0))
    assert mm.train(mm.models.Multiclass(3), X, y, sample_weight=weights, planes=planes).certificate.converged


@pytest.mark.parametrize("solver", ["block-dual", "n-slack"])
def test_an_estimator_goes_on_with_more_data_and_a_larger_vocabulary(solver):
    rng = np.random.default_rng(6)
    tokens = [[[f"word={rng.integers(30)}"] for _ in range(6)] for _ in range(60)]
    tags = [[("a", "b", "c")[int(token[0][5:]) % 3] for token in sentence] for sentence in tokens]
    tokens[-1][0].append("new")
    warm = mm.ChainSVM(warm_start=True, solver=solver, tol=1e-5).fit(tokens[:50], tags[:50])
    cold = mm.ChainSVM(solver=solver, tol=1e-5).fit(tokens, tags)
    n_features = warm.n_features_in_
    again = warm.fit(tokens, tags)
    assert again.n_features_in_ > n_features
    assert again.history_[0]["dual"] > cold.history_[0]["dual"]
    assert again.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-5)


@pytest.mark.parametrize("solver", ["block-dual", "n-slack", "sdm", "one-slack"])
def test_an_estimator_goes_on_with_other_features_where_planes_are_outputs(solver):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 4, 5)), rng.integers(3, size=(60, 4))
    other = X + 0.1 * rng.normal(size=X.shape)
    warm = mm.ChainSVM(warm_start=True, solver=solver, tol=1e-5).fit(X, y).fit(other, y)
    cold = mm.ChainSVM(solver=solver, tol=1e-5).fit(other, y)
    assert (warm.history_[0]["dual"] > cold.history_[0]["dual"]) == (solver != "one-slack")
    assert warm.certificate_.primal == pytest.approx(cold.certificate_.primal, rel=3e-5)
    assert warm.certificate_.dual <= cold.certificate_.primal


def test_an_estimator_starts_afresh_where_new_data_have_new_classes():
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    warm = mm.MulticlassSVM(warm_start=True, solver="block-dual").fit(X[:30], np.minimum(y[:30], 1))
    cold = mm.MulticlassSVM(solver="block-dual").fit(X, y)
    assert warm.fit(X, y).certificate_ == cold.certificate_


def test_an_estimator_that_outgrew_its_planes_takes_the_solver_of_its_size():
    """Cuts of the first 150 rows were gone on from on 20,000, four times as slow as a fresh start."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = np.argmax(X[:, :4] + rng.normal(size=(3000, 4)), axis=1)
    svm = mm.MulticlassSVM(C=10.0, warm_start=True).fit(X[:150], y[:150])
    assert svm.history_[0]["solver"] == "one-slack"
    assert svm.fit(X[:190], y[:190]).history_[0]["solver"] == "one-slack"
    assert svm.fit(X, y).history_[0]["solver"] == "block-dual"
    calls = svm.certificate_.oracle_calls
    cold = mm.MulticlassSVM(C=10.0).fit(X, y)
    assert calls == cold.certificate_.oracle_calls
    assert np.array_equal(svm.coef_, cold.coef_)
    # Planes of the same solver are gone on from, however few.
    svm = mm.MulticlassSVM(C=10.0, warm_start=True).fit(X[:1000], y[:1000])
    assert svm.fit(X, y).history_[0]["solver"] == "block-dual"
    assert not np.array_equal(svm.coef_, cold.coef_)
