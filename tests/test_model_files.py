"""Model files: what comes back, and what a hostile or broken file says."""

import json
import os
import re
import struct
from importlib.metadata import PackageNotFoundError

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from maxmargin.estimators import BinarySVM, ChainSVM, MulticlassSVM, StructuralSVM, load
from maxmargin.files import model_file
from maxmargin.files._plain_values import Decoder, Encoder
from maxmargin.model import Model

X_IRIS, Y_IRIS = load_iris(return_X_y=True)
X_CHAIN = [[["w=the"], ["w=dog", "ends=g"], ["w=barks"]], [["w=a"], ["w=dög\ud800", "ends=g"]]]
Y_CHAIN = [["DET", "NOUN", "VERB"], ["DET", "NOUN"]]


class Levels(Model):
    def __init__(self, tool=None):
        self.tool = tool

    def initialize(self, X, Y):
        self.n_levels = int(max(Y)) + 1
        self.shape = (self.n_levels, len(X[0]))
        self.n_features = self.n_levels * len(X[0])

    def joint_feature(self, x, y):
        psi = np.zeros(self.shape)
        psi[y] = x
        return psi.ravel()

    def loss(self, y_true, y):
        return abs(y_true - y)

    def outputs(self, x):
        return range(self.n_levels)


def fitted(kind):
    """A fitted estimator and what it can predict."""
    if kind == "binary":
        return BinarySVM(C=0.1, class_weight="balanced").fit(X_IRIS, Y_IRIS > 0), X_IRIS
    if kind == "multiclass":
        return MulticlassSVM(cost=np.arange(9.0).reshape(3, 3) * (1 - np.eye(3))).fit(X_IRIS, Y_IRIS), X_IRIS
    if kind == "structural":
        return StructuralSVM(Levels()).fit(X_IRIS[::5], Y_IRIS[::5]), X_IRIS
    if kind == "matrices":
        parts = np.split(X_IRIS, 30)
        return ChainSVM(ends=True, forbidden=[(2, 0)]).fit(parts, np.split(Y_IRIS, 30)), parts
    return ChainSVM(cost={"NOUN": 2.0}).fit(X_CHAIN, Y_CHAIN), X_CHAIN


KINDS = ["binary", "multiclass", "structural", "matrices", "strings"]


def reload(path, estimator):
    return load(path, model=Levels()) if isinstance(estimator, StructuralSVM) else load(path)


@pytest.fixture(params=KINDS)
def case(request, tmp_path):
    estimator, X = fitted(request.param)
    path = tmp_path / "model.mm"
    estimator.save(path)
    return estimator, X, path


@pytest.fixture
def saved(tmp_path):
    """A file, and a way to write it anew with another header or other arrays and a checksum that fits."""
    path = tmp_path / "model.mm"
    fitted("matrices")[0].save(path)
    text, arrays = model_file._read(path)

    def rewrite(change):
        header = json.loads(text)
        change(header, arrays)
        changed = json.dumps(header)
        model_file._write(path, changed, arrays)
        return path

    return rewrite


def refuses(path, text):
    """Check that loading names the file and says what is wrong."""
    with pytest.raises(ValueError, match=re.escape(str(path)) + "(?s:.*)" + text):
        load(path)


def test_a_copy_that_was_not_installed_saves_models(tmp_path, monkeypatch):
    def version(library):
        if library == "maxmargin":
            raise PackageNotFoundError(library)
        return "1.0"

    monkeypatch.setattr(model_file, "version", version)
    svm = BinarySVM().fit([[0.0], [1.0]], [0, 1])
    svm.save(tmp_path / "model.mm")
    assert np.array_equal(load(tmp_path / "model.mm").coef_, svm.coef_)


def test_predictions_are_the_same_after_a_reload(case):
    estimator, X, path = case
    again = reload(path, estimator)
    assert type(again) is type(estimator)
    assert list(again.predict(X)) == list(estimator.predict(X))
    if not isinstance(estimator, StructuralSVM):
        np.testing.assert_array_equal(
            np.concatenate(again.decision_function(X), axis=None),
            np.concatenate(estimator.decision_function(X), axis=None),
        )
    np.testing.assert_array_equal(again.coef_, estimator.coef_)


def test_parameters_and_fitted_attributes_come_back(case):
    estimator, _, path = case
    again = reload(path, estimator)
    for key, value in estimator.get_params().items():
        if key != "model":
            np.testing.assert_equal(getattr(again, key), value)
            assert type(getattr(again, key)) is type(value)
    assert again.certificate_ == estimator.certificate_
    assert again.n_iter_ == estimator.n_iter_
    assert again.history_ == []
    for name in ("classes_", "feature_names_", "n_features_in_"):
        if hasattr(estimator, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(estimator, name))
            assert type(getattr(again, name)) is type(getattr(estimator, name))


def test_equal_models_are_equal_files(case, tmp_path):
    estimator, X, path = case
    again = reload(path, estimator)
    again.save(tmp_path / "second.mm")
    assert list(reload(tmp_path / "second.mm", estimator).predict(X)) == list(estimator.predict(X))
    assert (tmp_path / "second.mm").read_bytes() == path.read_bytes()


def test_forbidden_transitions_hold_after_a_reload(tmp_path):
    rng = np.random.default_rng(0)
    tagger = ChainSVM(forbidden=[("B", "B")]).fit([rng.normal(size=(4, 2))] * 5, [list("ABAC")] * 5)
    tagger.save(tmp_path / "model.mm")
    for labels in load(tmp_path / "model.mm").predict([100 * rng.normal(size=(40, 2))] * 5):
        assert "BB" not in "".join(labels)


@pytest.mark.parametrize(
    "labels",
    [[1, 2], [True, False], [0.5, 1.5], ["a", "b"], [("N", 1), "V"], [None, b"x"], [np.str_("ü"), "z"], [2**70, -1]],
)
def test_label_types_come_back(labels, tmp_path):
    y = [[labels[0], labels[1], labels[0]]] * 3
    tagger = ChainSVM(C=100.0).fit([np.eye(3)] * 3, y)
    tagger.save(tmp_path / "model.mm")
    predicted = load(tmp_path / "model.mm").predict([np.eye(3)])
    assert predicted == y[:1]
    assert [type(label) for label in predicted[0]] == [type(label) for label in tagger.predict([np.eye(3)])[0]]


def test_feature_names_beyond_the_header_come_back(tmp_path):
    names = [f"feature-{i}" for i in range(3000)] + ["ü\ud800", ""]
    tagger = ChainSVM(max_iter=5, tol=1.0).fit([[[name] for name in names]], [["A", "B"] * 1501])
    tagger.save(tmp_path / "model.mm")
    assert load(tmp_path / "model.mm").feature_names_ == tagger.feature_names_


def test_a_file_is_replaced_whole_and_leaves_nothing_beside(tmp_path, monkeypatch):
    path = tmp_path / "model.mm"
    estimator, _ = fitted("binary")
    estimator.save(path)
    before = path.read_bytes()

    def fail(source, target):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="full"):
        estimator.set_params(C=7.0).save(path)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.mm"]
    estimator.save(str(path))
    assert load(str(path)).C == 7.0


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.mm").symlink_to(tmp_path / "model.mm")
    fitted("binary")[0].save(tmp_path / "link.mm")
    assert (tmp_path / "link.mm").is_symlink()
    assert load(tmp_path / "model.mm").C == 0.1


def test_what_cannot_be_saved_is_said(tmp_path):
    path = tmp_path / "model.mm"
    with pytest.raises(NotFittedError):
        BinarySVM().save(path)
    with pytest.raises(ValueError, match="parameter random_state is of type Generator"):
        BinarySVM(random_state=np.random.default_rng(0)).fit(X_IRIS, Y_IRIS > 0).save(path)

    class Mine(BinarySVM):
        pass

    with pytest.raises(ValueError, match="Mine cannot be saved"):
        Mine().fit(X_IRIS, Y_IRIS > 0).save(path)
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*missing"):
        fitted("binary")[0].save(tmp_path / "missing" / "model.mm")
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file in it"):
        fitted("binary")[0].save(tmp_path)
    assert os.listdir(tmp_path) == []


# --------------------------------------------------------------------------------------- models of users


def test_a_structural_file_needs_the_model(tmp_path):
    path = tmp_path / "model.mm"
    fitted("structural")[0].save(path)
    refuses(path, r"model=Levels\(…\)")
    with pytest.raises(ValueError, match="of the class Levels, found a Other"):
        load(path, model=type("Other", (Levels,), {})())
    with pytest.raises(TypeError, match="model is the class Levels; give an instance"):
        load(path, model=Levels)
    again = load(path, model=Levels())
    assert (again.model_.n_levels, again.model_.shape) == (3, (3, 4))
    assert not hasattr(again.model, "n_levels")
    fitted("binary")[0].save(path)
    with pytest.raises(ValueError, match="takes no model"):
        load(path, model=Levels())


def test_attributes_that_a_file_cannot_hold_come_from_the_given_model(tmp_path):
    svm = StructuralSVM(Levels(tool=abs)).fit(X_IRIS[::5], Y_IRIS[::5])
    svm.save(tmp_path / "model.mm")
    assert load(tmp_path / "model.mm", model=Levels(tool=min)).model_.tool is min
    bare = Levels()
    del bare.tool
    with pytest.raises(ValueError, match="could not hold the attribute 'tool'"):
        load(tmp_path / "model.mm", model=bare)


# ------------------------------------------------------------------------------------------- hostile files


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "none.mm")
    with pytest.raises(OSError, match=re.escape(tmp_path.name)):
        load(tmp_path)


def test_truncated_files_are_refused_at_every_length(case):
    _, _, path = case
    whole = path.read_bytes()
    for length in [0, 1, 7, 8, 9, 100, *range(200, len(whole), max(1, len(whole) // 50)), len(whole) - 1]:
        path.write_bytes(whole[:length])
        refuses(path, "")
    path.write_bytes(whole + b"\0")
    refuses(path, "")


def test_flipped_bits_are_refused_everywhere(case):
    _, _, path = case
    whole = bytearray(path.read_bytes())
    for position in range(0, len(whole), max(1, len(whole) // 300)):
        damaged = whole.copy()
        damaged[position] ^= 0x10
        path.write_bytes(damaged)
        refuses(path, "")


@pytest.mark.parametrize(
    "content", [b"PK\x03\x04 a zip", b"\x80\x04\x95 a pickle", b"1 qid:1 3:0.5\n" * 20, b"\xff" * 64]
)
def test_foreign_files_are_refused(tmp_path, content):
    path = tmp_path / "foreign"
    path.write_bytes(content)
    refuses(path, "is not a model file")


def test_other_safetensors_are_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    save_file({"w": np.ones(3)}, path)
    refuses(path, "not one that maxmargin wrote")
    save_file({"w": np.ones(3)}, path, {"maxmargin": "0\n{}"})
    refuses(path, "checksum")


def test_shapes_beyond_the_file_are_refused(tmp_path):
    header = json.dumps({"w": {"dtype": "F64", "shape": [1 << 40], "data_offsets": [0, 1 << 43]}}).encode()
    path = tmp_path / "model.mm"
    path.write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 64)
    refuses(path, "is not a model file")
    path.write_bytes(struct.pack("<Q", 1 << 62) + header)
    refuses(path, "is not a model file")


def change(path, value):
    """A change of one entry of the header."""

    def apply(header, arrays):
        for key in path[:-1]:
            header = header[key]
        header[path[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("path", "value", "text"),
    [
        (["version"], 2, "format version 2 .*upgrade maxmargin"),
        (["version"], "1", "format version is '1'"),
        (["class"], "os.system", "holds a 'os.system', which this version does not know"),
        (["class"], ["x"], "is not a valid model file"),
        (["class"], "BinarySVM", "is not a valid model file"),
        (["parameters", "colour"], "red", "colour"),
        (["parameters", "C"], {"pickle": "gASVAA=="}, "unknown type 'pickle'"),
        (["parameters", "C"], {"a": 1, "b": 2}, "an object with the keys"),
        (["parameters", "C"], {"scalar": ["object", 1]}, "unknown type 'object'"),
        (["parameters", "C"], {"float": "__import__"}, "found the float"),
        (["fitted", "blocks"], {"array": "no such array"}, "'no such array' is missing"),
        (["fitted", "classes"], {"text": ["1", "2", "3", "4"]}, "shapes"),
        (["fitted", "classes"], 7, "is not a valid model file"),
        (["fitted", "forbidden"], [[0, 99]], "forbids transitions"),
        (["fitted", "ends"], False, "shapes"),
        (["fitted"], {}, "'blocks' is missing"),
        (["certificate"], {"primal": 1.0}, "is not a valid model file"),
        (["n_iter"], "many", "is not a valid model file"),
    ],
)
def test_lying_headers_are_refused(saved, path, value, text):
    refuses(saved(change(path, value)), text)


def test_arrays_of_the_wrong_shape_or_type_are_refused(saved):
    def narrow(header, arrays):
        arrays["blocks.coef"] = arrays["blocks.coef"].astype(np.float32)

    def cut(header, arrays):
        arrays["blocks.coef"] = np.zeros((3, 2))
        arrays["blocks.transition"] = np.zeros((2, 3))

    refuses(saved(narrow), "float64")
    refuses(saved(cut), "shapes")


def test_the_file_is_plain_safetensors(case):
    _, _, path = case
    assert all(array.dtype != object for array in load_file(path).values())


def test_deeply_nested_headers_are_refused(tmp_path):
    path = tmp_path / "model.mm"
    text = "[" * 100_000 + "]" * 100_000
    model_file._write(path, text, {})
    refuses(path, "is not a valid model file")


@pytest.mark.parametrize(
    "value",
    [
        {"a": [1, (2.5, None)], 3: {"x"}, (1, "k"): frozenset([b"\0"])},
        [float("inf"), float("-inf"), np.float32(0.1), np.int64(-3), np.bool_(True), np.str_("s")],
        np.array(["a", "bc"]),
        np.arange(6, dtype=np.int16).reshape(2, 3),
    ],
)
def test_plain_values_survive(value):
    encoder = Encoder()
    text = json.dumps(encoder.encode(value, "value"), allow_nan=False)
    again = Decoder(encoder.arrays).decode(json.loads(text))
    assert type(again) is type(value)
    np.testing.assert_equal(again, value)
    if isinstance(value, list):
        assert [type(v) for v in again] == [type(v) for v in value]


def test_values_with_code_in_them_are_not_stored():
    for value in (abs, object(), np.array([abs], dtype=object), 1j):
        with pytest.raises(TypeError, match="cannot hold"):
            Encoder().encode(value, "value")


def test_column_names_come_back(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X_IRIS, columns=["a", "b", "c", "d"])
    MulticlassSVM().fit(frame, Y_IRIS).save(tmp_path / "model.mm")
    again = load(tmp_path / "model.mm")
    assert again.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    with pytest.raises(ValueError, match="feature names"):
        again.predict(frame[["b", "a", "c", "d"]])
