"""Model files with planes: another process goes on where this one ended, and what is not the same problem starts afresh."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from small_model import Classes, data
from tagging_problem import tagging_problem

import maxmargin as mm
from maxmargin import _core
from maxmargin.files import model_file

pytestmark = pytest.mark.filterwarnings("error")

SAVED = ["block-dual", "n-slack", "sdm", "dcd", "dcd-light", "cpd"]


def tagger(solver, **settings):
    loss = "squared_hinge" if solver in ("dcd", "dcd-light", "cpd") else "hinge"
    return mm.ChainSVM(1.0, solver=solver, loss=loss, tol=1e-3, warm_start=True, **settings)


def sequences():
    X, Y = tagging_problem()
    return X, [y.tolist() for y in Y]


def products(A, B):
    return A @ B.T


def calls_per_example(svm, X):
    return svm.certificate_.oracle_calls / len(X)


@pytest.mark.parametrize("solver", SAVED)
def test_the_loaded_estimator_goes_on(solver, tmp_path):
    X, Y = sequences()
    svm = tagger(solver).fit(X, Y)
    svm.save(tmp_path / "with.mm", planes=True)
    svm.save(tmp_path / "without.mm")
    again, afresh = mm.load(tmp_path / "with.mm").fit(X, Y), mm.load(tmp_path / "without.mm").fit(X, Y)
    here = svm.fit(X, Y)
    assert again.certificate_.oracle_calls == here.certificate_.oracle_calls
    assert calls_per_example(again, X) < 0.5 * calls_per_example(afresh, X)
    assert again.certificate_.relative_gap <= 1e-3
    np.testing.assert_array_equal(again.coef_, here.coef_)


def estimators():
    """Estimators of all kinds of planes, with data."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, 4))
    classes = (rows[:, :3] + rng.normal(scale=0.5, size=(60, 3))).argmax(axis=1)
    settings = {"solver": "block-dual", "warm_start": True, "tol": 1e-4}
    yield mm.BinarySVM(**settings), rows, classes > 0
    yield mm.MulticlassSVM(**settings), rows, classes
    yield mm.MulticlassSVM(kernel="rbf", **settings), rows, classes
    yield mm.MulticlassSVM(kernel="rbf", kernel_approximation="low-rank", n_components=20, **settings), rows, classes
    graphs = [mm.Graph(part, [[0, 1], [1, 2]]) for part in np.split(rows, 20)]
    yield mm.GraphSVM(nonnegative="edges", **settings), graphs, np.split(classes, 20)


@pytest.mark.parametrize("number", range(5))
def test_every_built_in_model_goes_on(number, tmp_path):
    svm, X, y = list(estimators())[number]
    svm.fit(X, y).save(tmp_path / "model.mm", planes=True)
    again = mm.load(tmp_path / "model.mm").fit(X, y)
    assert again.certificate_.oracle_calls < svm.certificate_.oracle_calls
    assert again.certificate_.primal <= svm.certificate_.primal * (1 + 1e-4)
    assert again.certificate_.dual >= svm.certificate_.dual * (1 - 1e-9)


def test_another_process_knows_the_problem_again(tmp_path):
    X, Y = sequences()
    svm = tagger("block-dual").fit(X, Y)
    svm.save(tmp_path / "model.mm", planes=True)
    script = (
        "import sys; sys.path.insert(0, sys.argv[2])\n"
        "import maxmargin as mm\n"
        "from test_saved_planes import sequences\n"
        "X, Y = sequences()\n"
        "print(mm.load(sys.argv[1]).fit(X, Y).certificate_.oracle_calls)\n"
    )
    folder = __file__.rpartition("test_saved_planes")[0]
    run = [sys.executable, "-c", script, str(tmp_path / "model.mm"), folder]
    printed = subprocess.run(run, capture_output=True, text=True, check=True).stdout
    assert int(printed) == svm.fit(X, Y).certificate_.oracle_calls


def test_more_examples_go_on_and_others_start_afresh(tmp_path):
    X, Y = sequences()
    n = len(X) - 20
    tagger("block-dual").fit(X[:n], Y[:n]).save(tmp_path / "model.mm", planes=True)
    cold = tagger("block-dual").fit(X, Y)
    more = mm.load(tmp_path / "model.mm").fit(X, Y)
    assert more.certificate_.oracle_calls < cold.certificate_.oracle_calls
    other_tags = [y[::-1] for y in Y]
    others = mm.load(tmp_path / "model.mm").fit(X, other_tags)
    assert others.certificate_.oracle_calls == tagger("block-dual").fit(X, other_tags).certificate_.oracle_calls


def test_what_cannot_be_saved_says_so(tmp_path):
    X, Y = sequences()
    path = tmp_path / "model.mm"
    with pytest.raises(NotFittedError):
        mm.ChainSVM().save(path, planes=True)
    with pytest.raises(ValueError, match="there are no planes to save: they are kept by fit under warm_start=True"):
        mm.ChainSVM(tol=0.1).fit(X, Y).save(path, planes=True)
    online = mm.ChainSVM(solver="perceptron", warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="there are no planes to save: the last fit left none; pickles and online"):
        online.save(path, planes=True)
    with pytest.raises(ValueError, match="planes of solver 'one-slack' cannot be saved; those of 'block-dual'"):
        mm.ChainSVM(tol=0.1, solver="one-slack", warm_start=True).fit(X, Y).save(path, planes=True)
    structural = mm.StructuralSVM(Classes(), solver="block-dual", warm_start=True).fit(*data(20))
    low_rank = {"kernel_approximation": "low-rank", "n_components": 2}
    by_function = mm.BinarySVM(kernel=products, **low_rank, solver="block-dual", warm_start=True)
    by_function.fit([[0.0], [1.0], [3.0]], [0, 0, 1])
    for svm in (structural, by_function):
        with pytest.raises(ValueError, match="a model or kernel of your own cannot be saved"):
            svm.save(path, planes=True)
    with pytest.raises(ValueError, match="planes must be True or False, found 'yes'"):
        structural.save(path, planes="yes")
    assert not path.exists()


@pytest.fixture
def rewritten(tmp_path):
    """A way to write a file of planes with changed arrays or header, and a checksum that fits."""
    path = tmp_path / "model.mm"
    X, Y = sequences()
    tagger("block-dual").fit(X[:40], Y[:40]).save(path, planes=True)
    text, arrays = model_file._read(path)

    def rewrite(change):
        header = json.loads(text)
        change(header, arrays)
        model_file._write(path, json.dumps(header), arrays)
        return path

    return rewrite


def set_array(name, change):
    """A change of one array of the planes."""

    def apply(header, arrays):
        key = f"planes arrays.{name}"
        arrays[key] = change(arrays[key].copy())

    return apply


def with_entry(place, value):
    def change(array):
        array[place] = value
        return array

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_array("examples", with_entry(0, -1)), "examples must not be negative"),
        (set_array("examples", lambda a: a[:-1]), "losses has"),
        (set_array("losses", with_entry(3, np.nan)), "losses must hold finite numbers"),
        (set_array("alpha", with_entry(3, -1.0)), "alpha must hold finite numbers"),
        (set_array("alpha", lambda a: a[:-1]), "alpha has"),
        (set_array("offsets", with_entry(1, 10**12)), "offsets must not fall"),
        (set_array("offsets", with_entry(0, -5)), "offsets must begin at 0"),
        (set_array("offsets", with_entry(-1, 10**12)), "offsets must begin at 0"),
        (set_array("codes", lambda a: a[:-1]), "offsets must begin at 0"),
        (set_array("codes", lambda a: a.astype(float)), ""),
        (lambda header, arrays: header["planes"].pop("arrays"), "'arrays' is missing"),
        (lambda header, arrays: header["planes"].update(n_examples=-3), "-3 examples"),
        (lambda header, arrays: header.update(planes=[1]), ""),
    ],
)
def test_a_broken_file_is_refused(rewritten, change, message):
    path = rewritten(change)
    with pytest.raises(ValueError, match=f"model.mm is not a valid model file.*{message}"):
        mm.load(path)


@pytest.mark.parametrize(
    "change",
    [
        set_array("examples", with_entry(0, 39_000)),
        set_array("codes", with_entry(0, 77)),
        set_array("codes", with_entry(5, -1)),
    ],
)
def test_planes_of_no_output_are_refused_before_they_are_used(rewritten, change):
    X, Y = sequences()
    svm = mm.load(rewritten(change))
    with pytest.raises(ValueError, match="plane 0 is"):
        svm.fit(X[:40], Y[:40])


def test_a_batch_comes_back_from_its_arrays():
    empty = np.zeros(0)
    batch = _core.PlaneBatch.from_arrays(
        np.array([3, 0], np.int32),
        np.array([1.0, 2.0]),
        np.array([5, 6, 7], np.int32),
        np.array([0, 1, 3]),
        np.array([0.5, 0.0]),
    )
    assert len(batch) == 2
    assert (batch.code(0).tolist(), batch.code(1).tolist()) == ([5], [6, 7])
    assert batch.alpha().tolist() == [0.5, 0.0]
    assert batch.offsets().tolist() == [0, 1, 3]
    nothing = _core.PlaneBatch.from_arrays(
        empty.astype(np.int32), empty, empty.astype(np.int32), np.zeros(1, np.int64), empty
    )
    assert len(nothing) == 0
