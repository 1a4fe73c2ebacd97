"""Bad and extreme input of models and model files; the rows of docs/bad_input.md."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from bad_input_kit import (
    SIGNS,
    XS,
    Y2,
    Y3,
    YS,
    Levels,
    T,
    Unhashable,
    V,
    WithoutOutputs,
    X,
    binary,
    certificate_of,
    file_with,
    is_solved,
    levels,
    put,
    refused,
    replaced,
    saved,
    section,
    structural,
    train,
    train3,
    works,
)

import maxmargin as mm
from maxmargin.models import Binary, Chain, Multiclass, Sequences

# One case on a line or two, as in a table.
# fmt: off

section("Built-in models without scikit-learn: `mm.train` with `mm.models`")
refused("train-nan", "NaN in X", V, "X[3] holds nan: features must be finite",
        lambda: train(Multiclass(3), put(np.nan), Y3))
refused("train-sparse-inf", "inf in a CSR X", V, "X[3] holds inf",
        lambda: train(Binary(), sp.csr_matrix(put(np.inf)), SIGNS))
refused("train-chain-nan", "NaN in a sequence", V, "X[0] holds nan in row 3",
        lambda: train(Chain(3), [put(np.nan)], [Y3]))
refused("train-1e200", "a value of 1e200", V, "scale the features", lambda: train(Binary(), put(1e200), SIGNS))
refused("train-empty", "no rows", V, "X has no rows", lambda: train(Multiclass(3), X[:0], []))
refused("train-loss-product", "costs and token weights of 1e80", V, "the product of costs and weights holds 1e+160",
        lambda: train(Chain(3, cost=[1e80] * 3, token_weight=[np.full(len(y), 1e80) for y in YS]), XS, YS))
refused("train-chain-empty", "no sequences", V, "X is empty", lambda: train(Chain(3), [], []))
refused("train-1d", "X with one dimension", V, "X has shape (20,); expected a matrix",
        lambda: train(Multiclass(3), X[:, 0], Y3))
refused("train-complex", "complex X", T, "X holds values of type complex128; expected real numbers",
        lambda: train(Multiclass(3), X + 1j, Y3))
refused("train-strings", "strings in X", T, "expected real numbers", lambda: train(Binary(), X.astype(str), SIGNS))
works("train-lists", "nested lists, integers, CSC", "trained as matrices",
        lambda: is_solved(train(Multiclass(3), X.tolist(), Y3.tolist()))
        and is_solved(train(Binary(), sp.csc_array(np.sign(X).astype(int)), SIGNS)))
refused("train-label-range", "label 7 of three", V, "Y[0] is 7; expected a whole number from 0 to 2",
        lambda: train(Multiclass(3), X, replaced(Y3.tolist(), 0, 7)))
refused("train-label-overflow", "label 2³²", V, "Y[0] is 4294967296",
        lambda: train(Multiclass(3), X, replaced(Y3.tolist(), 0, 2**32)))
refused("train-label-fraction", "label 1.5", V, "Y[0] is 1.5; expected a whole number",
        lambda: train(Multiclass(3), X, replaced(Y3.tolist(), 0, 1.5)))
refused("train-label-nan", "label NaN", V, "Y[0] is nan",
        lambda: train(Multiclass(3), X, replaced(Y3.tolist(), 0, np.nan)))
refused("train-label-strings", "string labels", T, "The estimators take labels of any kind",
        lambda: train(Multiclass(3), X, ["a"] * 20))
refused("train-label-binary", "labels 0 and 1 for `Binary`", V, "Y must hold 20 labels, each −1 or +1",
        lambda: train(Binary(), X, Y2))
refused("train-label-short", "19 labels for 20 rows", V, "Y has shape (19,) but X has 20 rows",
        lambda: train(Multiclass(3), X, Y3[1:]))
refused("train-chain-label-range", "label 7 in a sequence, with per-label costs", V,
        "y[1][2] is 7; expected a whole number from 0 to 2",
        lambda: train(Chain(3, cost=[1.0, 2.0, 3.0]), XS, replaced(YS, 1, [0, 1, 7])))
refused("train-chain-label-flat", "one label per sequence", V, "y[0] has shape ()",
        lambda: train(Chain(3), XS, [0, 1, 2]))
refused("train-n-labels", "`Multiclass(0)`, `Chain(2.5)`, `Multiclass('3')`", V,
        "n_labels must be an integer ≥ 1, found 0", lambda: Multiclass(0))
refused("train-planes", "`planes=` of a run on other data", V, "planes belong to another problem: Y differs",
        lambda: train3(planes=train(Multiclass(3), X, (Y3 + 1) % 3, keep_planes=True).planes))
works("train-one-label", "`Multiclass(1)`, `Chain(1)`", "w = 0, an objective of 0",
        lambda: is_solved(train(Multiclass(1), X, np.zeros(20)), 0.0)
        and is_solved(train(Chain(1), [X], [np.zeros(20, int)]), 0.0))
works("train-one-row", "one row x = 1 of class +1", "w = 1, an objective of ½",
        lambda: is_solved(train(Binary(), [[1.0]], [1], C=10.0, tol=1e-9), 0.5, 1e-9))
works("train-no-columns", "X of shape (20, 0)", "an objective of n C",
        lambda: is_solved(train(Multiclass(3), X[:, :0], Y3), 20.0))
refused("train-forbidden-range", "`Chain(3, forbidden=[(0, -1)])`", V,
        "pairs (from, to) of label numbers from 0 to 2, found (0, -1)", lambda: Chain(3, forbidden=[(0, -1)]))
refused("train-forbidden-truth", "a forbidden transition in Y", V, "y[0] contains the forbidden transition 0 → 1",
        lambda: train(Chain(2, forbidden=[(0, 1)]), [X[:2]], [[0, 1]]))


def forbidden_from_a_generator():
    model = Chain(2, forbidden=((1, label) for label in (0,)))
    w = train(model, [X[:3], X[3:6]], [[0, 1, 1], [0, 0, 1]]).w
    return all(codes == sorted(codes) for codes in (labels.tolist() for labels in model.predict([X, X[::-1]], w)))


works("train-forbidden-generator", "`forbidden` as a generator", "holds in training and in every prediction",
        forbidden_from_a_generator)
refused("train-nonnegative-shape", "`nonnegative={'coef': mask}` of a wrong shape", V,
        "does not fit its block of shape (3, 3)",
        lambda: train(Multiclass(3, nonnegative={"coef": np.ones(7, bool)}), X, Y3), core=True)
refused("train-nonnegative-list", "`nonnegative=[1, 2]`", V, "nonnegative must be a dict",
        lambda: train(Multiclass(3, nonnegative=[1, 2]), X, Y3), core=True)
refused("train-class", "`mm.train(Multiclass, X, Y)`: the class", T, "model is the class Multiclass; give an instance",
        lambda: train(Multiclass, X, Y3))
refused("train-estimator", "`mm.train(mm.MulticlassSVM(), X, Y)`", T, "Estimators are trained by their fit",
        lambda: train(mm.MulticlassSVM(), X, Y3))
refused("train-predict-columns", "2 columns after training with 3", V, "both must be those of training",
        lambda: Multiclass(3).predict(X[:, :2], train3().w), core=True)
refused("train-blocks-of-other-data", "`model.blocks(w)` by another instance, or after training on other columns", V,
        "w has shape (12,), expected (0,) for 0 features", lambda: Multiclass(3).blocks(train3().w), core=True)
refused("train-predict-nan", "NaN in X at prediction", V, "X[3] holds nan",
        lambda: Multiclass(3).predict(put(np.nan), train3().w), core=True)
refused("train-predict-weights", "NaN in w at prediction", V, "w must hold finite numbers",
        lambda: Multiclass(3).predict(X, np.full(12, np.nan)), core=True)
refused("sequences-lengths", "`Sequences(X, [10, 9])` with 20 rows", V, "lengths add up to 19 but there are 20 rows",
        lambda: Sequences(X, [10, 9]))

section("Your own models: `mm.Model`")
refused("model-class", "`StructuralSVM(Levels)`: the class", T, "give an instance of it: StructuralSVM(Levels())",
        lambda: structural(Levels))
refused("model-builtin", "`StructuralSVM(mm.models.Multiclass(3))`", T, "have estimators of their own",
        lambda: structural(Multiclass(3)))
refused("model-no-search", "neither `outputs` nor `loss_augmented_argmax`", V,
        "needs a model with loss_augmented_argmax", lambda: structural(WithoutOutputs()))
refused("model-no-slack-search", "`rescaling='slack'` without a search for it", V,
        "needs a model with slack_rescaled_argmax", lambda: structural(WithoutOutputs(), rescaling="slack"))
refused("model-no-n-features", "`initialize` that sets nothing", V, "must set self.n_features",
        lambda: structural(levels(initialize=lambda self, X, Y: None)))
refused("model-n-features-float", "`n_features = 9.0`", V, "n_features is 9.0; expected an integer",
        lambda: structural(levels(initialize=lambda self, X, Y: setattr(self, "n_features", 9.0))))
refused("model-raises", "a method that raises", ZeroDivisionError, "division by zero",
        lambda: structural(levels(loss=lambda self, a, b: 1 / 0)), core=True)
# Worker processes do not start under the sanitizers' preloaded libraries: what needs them is not marked core.
refused("model-raises-in-worker", "the same with `n_jobs=2`", ZeroDivisionError, "division by zero",
        lambda: structural(levels(loss=lambda self, a, b: 1 / 0), n_jobs=2))
refused("model-feature-nan", "NaN from `joint_feature`", V, "has nan as feature 0; features must be finite",
        lambda: structural(levels(joint_feature=lambda self, x, y: np.full(9, np.nan))), core=True)
refused("model-feature-length", "8 features where `n_features` is 9", V,
        "has shape (8,), expected (9,): n_features is 9",
        lambda: structural(levels(joint_feature=lambda self, x, y: np.ones(8))), core=True)
refused("model-feature-index", "`([99], [1.0])` from `joint_feature`", V, "has the index 99; expected 0 … 8",
        lambda: structural(levels(joint_feature=lambda self, x, y: ([99], [1.0]))), core=True)
refused("model-loss-nan", "NaN from `loss`", V, "is nan; a loss must be finite and ≥ 0",
        lambda: structural(levels(loss=lambda self, a, b: np.nan if a != b else 0.0)), core=True)
refused("model-loss-1e200", "1e200 from `loss`", V, "is 1e+200; expected 0 or a number between 1e-100 and 1e+100",
        lambda: structural(levels(loss=lambda self, a, b: 1e200 if a != b else 0.0)), core=True)
refused("model-loss-none", "`loss` without a `return`", T, "must be a number, found None: is a return missing?",
        lambda: structural(levels(loss=lambda self, a, b: None)), core=True)
refused("model-loss-array", "an array from `loss`", T, "must be a number, found array([0., 0.])",
        lambda: structural(levels(loss=lambda self, a, b: np.zeros(2))), core=True)
refused("model-loss-string", "`'1'` from `loss`", T, "must be a number, found '1'",
        lambda: structural(levels(loss=lambda self, y, y_hat: "1")), core=True)
refused("model-argmax-none", "`argmax` without a `return`", T, "argmax must return an output, found None: is a return missing?",
        lambda: structural(levels(argmax=lambda self, x, w: None)).predict(X), core=True)
refused("model-search-none", "`loss_augmented_argmax` without a `return`", T,
        "loss_augmented_argmax must return an output, found None",
        lambda: structural(levels(loss_augmented_argmax=lambda self, x, y, w: None)), core=True)
refused("model-slack-search-none", "`slack_rescaled_argmax` without a `return`", T,
        "slack_rescaled_argmax must return an output, found None",
        lambda: structural(levels(slack_rescaled_argmax=lambda self, x, y, w: None), rescaling="slack"), core=True)
refused("model-feature-none", "`joint_feature` without a `return`", T, "must be a vector, found None: is a return missing?",
        lambda: structural(levels(joint_feature=lambda self, x, y: None)), core=True)
refused("model-feature-complex", "complex numbers from `joint_feature`", V, "must hold real numbers",
        lambda: structural(levels(joint_feature=lambda self, x, y: np.ones(9, complex))), core=True)
refused("model-feature-string", "strings from `joint_feature`", V, "must hold real numbers: could not convert string to float",
        lambda: structural(levels(joint_feature=lambda self, x, y: ["a"] * 9)), core=True)
refused("model-feature-large", "`1e160` from `joint_feature`", V, "features must be not beyond ±1e+100",
        lambda: structural(levels(joint_feature=lambda self, x, y: np.full(9, 1e160))), core=True)
refused("model-key-none", "`key` without a `return`", T, "must say when two outputs are the same, found None",
        lambda: structural(levels(key=lambda self, y: None)), core=True)
refused("model-outputs-int", "a number from `outputs`", T, "outputs(x) must list all outputs of x, found int",
        lambda: structural(levels(outputs=lambda self, x: 3)), core=True)
refused("model-Y-set", "a set as `Y`", T, "Y is a set, whose entries have no order",
        lambda: train(levels(), X[:3], {0, 1, 2}), core=True)
refused("model-outputs-none", "`outputs` without a `return`", T, "outputs(x) must list all outputs of x, found None",
        lambda: structural(levels(outputs=lambda self, x: None)), core=True)
refused("model-loss-negative", "a negative loss", V, "is -1.0; a loss must be finite and ≥ 0",
        lambda: structural(levels(loss=lambda self, a, b: -float(a != b))), core=True)
refused("model-loss-of-truth", "a loss of 1 for the truth itself", V, "the loss of the true output itself must be 0",
        lambda: structural(levels(loss=lambda self, a, b: 1.0)), core=True)
refused("model-truth-not-listed", "a true output that `outputs` does not list", V,
        "which outputs(X[0]) does not list: no prediction could be right",
        lambda: structural(levels(outputs=lambda self, x: [7, 8])), core=True)
refused("model-no-outputs", "no outputs at prediction", V, "outputs(x) is empty",
        lambda: levels(outputs=lambda self, x: []).predict(X, np.ones(9)))
refused("model-writes-weights", "a search that writes to w", V, "read-only",
        lambda: structural(levels(loss_augmented_argmax=lambda self, x, y, w: w.fill(0.0))), core=True)
works("model-inexact-search", "a search that is not exact", "a lower bound, `exact=False` and a warning",
        lambda: not certificate_of(structural(levels(loss_augmented_argmax=lambda self, x, y, w: 0))).exact,
        mm.InexactOracleWarning)
refused("model-unhashable-output", "outputs that cannot be hashed", T, "write key(y)",
        lambda: structural(levels(loss=lambda self, a, b: float(a is not b), outputs=lambda self, x: [Unhashable()],
                                  joint_feature=lambda self, x, y: np.ones(9)), X[:2], [Unhashable(), Unhashable()]),
        core=True)
refused("model-nonnegative", "`nonnegative = [99]`", V, "lists weights 99 to 99; expected 0 … 8",
        lambda: structural(levels(nonnegative=[99])))
refused("model-empty", "no examples", V, "X and Y are empty", lambda: structural(Levels(), [], []))
refused("model-short", "2 outputs for 20 inputs", V, "X has 20 inputs but Y has 2 outputs",
        lambda: structural(Levels(), X, [0, 1]))
refused("model-generator", "a generator as X", V, "X must be a sequence with one entry for each example",
        lambda: structural(Levels(), iter(X), Y3))
refused("model-unpicklable", "data that cannot be pickled, `n_jobs=2`", T, "cannot be pickled",
        lambda: structural(levels(joint_feature=lambda self, x, y: np.eye(9)[y]),
                           [(i for i in "a"), (i for i in "b")], [0, 1], n_jobs=2))
refused("model-predict-weights", "NaN in w at prediction", V, "w must hold finite numbers",
        lambda: Levels().predict(X, np.full(9, np.nan)))
refused("model-predict-short-weights", "3 weights where `n_features` is 9", V, "w has shape (3,), expected (9,)",
        lambda: levels(n_features=9).predict(X, np.ones(3)))
refused("model-predict-n-jobs", "`model.predict(X, w, n_jobs=0)`", V, "n_jobs must be an integer ≥ 1, found 0",
        lambda: Levels().predict(X, np.ones(9), n_jobs=0))
works("model-one-example", "one example", "trained", lambda: is_solved(structural(Levels(), X[:1], Y3[:1])))
works("model-zero-features", "features that are all 0", "w = 0",
        lambda: not structural(levels(joint_feature=lambda self, x, y: np.zeros(9))).coef_.any())

section("Model files")
refused("file-missing", "a file that is not there", FileNotFoundError, "No such file", lambda: mm.load("nowhere.mm"))
refused("file-folder", "a folder", OSError, "", lambda: mm.load("."))
refused("file-empty", "an empty file", V, "is not a model file, or is damaged", lambda: mm.load(file_with(b"")))
refused("file-text", "a text file", V, "is not a model file, or is damaged",
        lambda: mm.load(file_with(b"C,tol\n" * 50)))
refused("file-truncated", "a file without its last 20 bytes", V, "is not a model file, or is damaged",
        lambda: mm.load(file_with(saved()[:-20])), core=True)
refused("file-flipped", "a file with one wrong bit", V, "its checksum does not fit its content",
        lambda: mm.load(file_with(saved()[:-5] + bytes([saved()[-5] ^ 1]) + saved()[-4:])), core=True)
refused("file-no-folder", "`save` into a folder that is not there", FileNotFoundError,
        "nowhere/x.mm could not be written: there is no folder nowhere.",
        lambda: binary().save("nowhere/x.mm"), core=True)
