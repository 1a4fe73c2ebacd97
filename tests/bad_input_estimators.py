"""Bad and extreme input of the estimators; the rows of docs/bad_input.md."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from bad_input_kit import (
    TAGS,
    WORDS,
    XS,
    Y2,
    Y3,
    YS,
    Levels,
    T,
    V,
    X,
    binary,
    certificate_of,
    chain,
    is_close,
    is_solved,
    multiclass,
    put,
    refused,
    replaced,
    section,
    structural,
    train3,
    works,
)
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import maxmargin as mm

# One case on a line or two, as in a table.
# fmt: off

section("Rows and classes: `BinarySVM`, `MulticlassSVM`")
refused("rows-nan", "NaN in X", V, "Input X contains NaN", lambda: binary(put(np.nan)))
refused("rows-inf", "inf in X", V, "contains infinity", lambda: multiclass(put(np.inf)))
refused("rows-sparse-nan", "NaN in a CSR X", V, "contains NaN", lambda: multiclass(sp.csr_matrix(put(np.nan))))
refused("rows-empty", "X of shape (0, 3)", V, "Found array with 0 sample(s)", lambda: binary(X[:0], []))
refused("rows-no-columns", "X of shape (20, 0)", V, "Found array with 0 feature(s)", lambda: binary(X[:, :0]))
refused("rows-generator", "a generator as X", T, "X is of type generator, whose rows can be had but once; expected a matrix",
        lambda: binary(row for row in X))
refused("rows-1d", "X with one dimension", V, "Expected 2D array", lambda: binary(X[:, 0]))
refused("rows-ragged", "`[[1, 2], [1]]`", V, "inhomogeneous shape", lambda: binary([[1, 2], [1]], [0, 1]))
refused("rows-words", "words in X", V, "could not convert string", lambda: binary(np.full((20, 3), "a")))
works("rows-number-strings", 'numbers as strings, `"1.5"`', "read as numbers",
        lambda: is_close(binary(X.astype(str)).coef_, binary().coef_))
refused("rows-complex", "complex X", V, "Complex data not supported", lambda: binary(X + 1j))
works("rows-other-types", "bool, int8, object and float16 arrays, COO and CSC matrices", "trained as numbers",
        lambda: is_close(binary((X > 0).astype(object)).coef_, binary(X > 0).coef_)
        and is_close(binary(np.sign(X).astype(np.int8)).coef_, binary(sp.coo_matrix(np.sign(X))).coef_)
        and is_solved(multiclass(X.astype(np.float16)))
        and is_solved(multiclass(sp.csc_matrix(X))))
refused("rows-none", "X is None", V, "Expected 2D array", lambda: binary(None))
refused("rows-y-none", "y is None", V, "requires y to be passed", lambda: binary(X, None))
refused("rows-y-short", "2 labels for 20 rows", V, "inconsistent numbers of samples", lambda: binary(X, [0, 1]))
refused("rows-y-2d", "y with two columns", V, "y should be a 1d array", lambda: multiclass(X, np.zeros((20, 2))))
refused("rows-y-continuous", "real numbers as y", V, "Unknown label type", lambda: multiclass(X, X[:, 0]))
refused("rows-y-nan", "NaN in y", V, "Input y contains NaN", lambda: multiclass(X, np.where(Y2, np.nan, 1.0)))
refused("rows-y-mixed", "strings and numbers in y", T, "y holds labels that cannot be sorted",
        lambda: multiclass(X, np.array(["a" if label else 1 for label in Y2], dtype=object)))
refused("rows-y-mixed-list", "the same as a list, of which NumPy would make strings", T, "found 1 and a string",
        lambda: multiclass(X, ["a" if label else 1 for label in Y2]))
refused("rows-y-unhashable", "dicts as labels", V, "Unknown label type", lambda: binary(X, [{"a": int(v)} for v in Y2]))
refused("rows-one-class", "one class only", V, "has to be greater than one", lambda: multiclass(X, np.ones(20)))
refused("rows-one-row", "one row", V, "has to be greater than one", lambda: binary(X[:1], [1]))
refused("rows-three-classes", "three classes for `BinarySVM`", V, "MulticlassSVM is made", lambda: binary(X, Y3))
works("rows-conflicting-duplicates", "the same row with both classes, twice", "w = 0 and an objective of 4 C",
        lambda: is_solved(binary(np.ones((4, 2)), [0, 1, 0, 1]), 4.0))
works("rows-all-zero", "all features 0, no intercept", "w = 0, an objective of n C",
        lambda: is_solved(multiclass(0 * X, fit_intercept=False), 20.0)
        and not multiclass(0 * X, fit_intercept=False).coef_.any())
works("rows-1e10", "one value of 1e10", "trained to the certified gap",
        lambda: is_solved(binary(put(1e10))) and is_solved(multiclass(put(1e10))))
works("rows-all-1e10", "all values × 1e10, C × 1e-20, no intercept", "the same problem: weights × 1e-10",
        lambda: is_close(1e10 * multiclass(1e10 * X, C=1e-20, fit_intercept=False, tol=1e-8).coef_,
                         multiclass(fit_intercept=False, tol=1e-8).coef_, 1e-4))
refused("rows-1e200", "a value of 1e200", V, "scale the features", lambda: binary(put(1e200)))
refused("rows-sparse-1e200", "1e200 in CSR", V, "scale the features", lambda: multiclass(sp.csr_matrix(put(1e200))))
works("rows-tiny", "all values × 1e-200", "they do not count: an objective of n C",
        lambda: is_solved(multiclass(X * 1e-200, fit_intercept=False), 20.0))
works("rows-float32-limits", "float32 values × 1e-30", "no underflow trouble",
        lambda: is_solved(binary((X * 1e-30).astype(np.float32), fit_intercept=False), 20.0))

section("Kernels")
refused("kernel-name", '`kernel="gauss"`', V, "kernel must be one of", lambda: binary(kernel="gauss"))
refused("kernel-gamma", "`gamma` 0, negative or NaN", V, "gamma must be", lambda: binary(kernel="rbf", gamma=0.0))
refused("kernel-nan", "a function that returns NaN", V, "not finite",
        lambda: binary(kernel=lambda A, B: np.full((len(A), len(B)), np.nan)))
refused("kernel-shape", "a function that returns another shape", V, "expected one value for each pair",
        lambda: binary(kernel=lambda A, B: np.zeros(len(A))))
refused("kernel-writes", "a function that changes its arguments, which are copies", V, "not symmetric",
        lambda: binary(kernel=lambda A, B: np.subtract(A, 1.0, out=A) @ B.T))
refused("kernel-not-square", "a precomputed kernel that is not square", V, "square matrix", lambda: binary(kernel="precomputed"))
refused("kernel-not-symmetric", "a precomputed kernel that is not symmetric", V, "not symmetric",
        lambda: binary(np.triu(np.ones((20, 20))), kernel="precomputed"))
refused("kernel-negative", "a negative diagonal", V, "diagonal of a kernel matrix is not negative",
        lambda: binary(-np.eye(20), kernel="precomputed"))
refused("kernel-indefinite", "a kernel that is not positive semi-definite, where that shows", V, "not positive semi-definite",
        lambda: binary(kernel=lambda A, B: -(A @ B.T)))
refused("kernel-solver", 'an exact kernel with `solver="sdm"`', V, "needs features as vectors",
        lambda: binary(kernel="rbf", solver="sdm"))
refused("kernel-predict", "fewer columns at prediction", V, "features",
        lambda: binary(kernel="rbf").predict(X[:, :2]))
works("kernel-far", "rows 1e8 apart under an RBF kernel", "trained: their kernels are 0",
        lambda: is_solved(binary(1e8 * X, kernel="rbf", gamma=1.0)))
works("kernel-equal-rows", "all rows equal", "trained: one basis point",
        lambda: binary(np.ones((20, 3)), kernel="rbf", gamma=1.0).expansion_.size <= 1)
works("kernel-components", "more components than rows", "as many as there are rows",
        lambda: is_solved(binary(kernel="rbf", kernel_approximation="low-rank", n_components=1000)))

section("Sample weights and costs")
refused("weight-negative", "a negative sample weight", V, "sample_weight[2] is -1.0; weights must be finite and ≥ 0",
        lambda: binary(sample_weight=replaced([1.0] * 20, 2, -1.0)))
refused("weight-nan", "NaN as a sample weight", V, "sample_weight[0] is nan",
        lambda: chain(sample_weight=[np.nan, 1.0, 1.0]))
refused("weight-inf", "inf as a sample weight", V, "sample_weight[1] is inf",
        lambda: structural(Levels(), sample_weight=replaced([1.0] * 20, 1, np.inf)))
refused("weight-all-zero", "all sample weights 0", V, "at least one non-zero number",
        lambda: train3(sample_weight=np.zeros(20)))
refused("weight-short", "one weight for 20 rows", V, "sample_weight has shape (1,), expected (20,)",
        lambda: multiclass(sample_weight=[1.0]))
refused("weight-words", "strings as weights", V, "sample_weight must hold real numbers",
        lambda: chain(sample_weight=["a", "b", "c"]))
works("weight-one-zero", "one weight of 0", "as if that row were not there",
        lambda: is_close(binary(sample_weight=replaced([1.0] * 20, 4, 0.0), tol=1e-9).coef_,
                         binary(np.delete(X, 4, 0), np.delete(Y2, 4), tol=1e-9).coef_, 1e-4))
works("weight-tiny", "all weights 1e-300", "w = 0 to machine precision",
        lambda: is_solved(binary(sample_weight=np.full(20, 1e-300))))
refused("weight-token-scalar", "`token_weight=3.0`", T, "token_weight is of type float; expected a list of arrays",
        lambda: chain(token_weight=3.0))
refused("weight-token-words", "strings as token weights", V, "token_weight[0] must hold real numbers",
        lambda: chain(token_weight=[["a"] * 5, ["b"] * 3, ["c"] * 12]))
refused("class-weight-zero", "`class_weight` 0 for every class", V, "class_weight leaves no example",
        lambda: binary(class_weight={0: 0, 1: 0}))
refused("class-weight-nan", "`class_weight={0: nan}`", V, "class_weight[0] must be a number ≥ 0, found nan",
        lambda: binary(class_weight={0: np.nan}))
refused("cost-nan", "`cost=nan`", V, "found nan", lambda: multiclass(cost=np.nan))
refused("cost-inf", "`cost=inf`", V, "found inf", lambda: chain(cost=np.inf))
refused("cost-zero", "`cost=0`", V, "cost must be positive", lambda: binary(cost=0))
refused("cost-matrix-nan", "NaN in a cost matrix", V, "cost must hold finite numbers ≥ 0",
        lambda: multiclass(cost=np.full((3, 3), np.nan)))
refused("cost-diagonal", "a cost for the right label", V, "0 on the diagonal", lambda: multiclass(cost=np.ones((3, 3))))
refused("cost-shape", "a 5 × 5 matrix for three classes", V, "cost has shape (5, 5), expected (3, 3)",
        lambda: multiclass(cost=np.ones((5, 5))))
refused("cost-unknown-labels", "costs of labels that y lacks", V, "none of its labels", lambda: chain(cost={"B": 2.0}))
works("cost-all-zero", "mistakes that cost nothing", "w = 0, an objective of 0",
        lambda: is_solved(multiclass(cost=np.zeros((3, 3))), 0.0))
refused("cost-1e200", "`cost=1e200`", V, "expected 0 or a number between 1e-100 and 1e+100", lambda: chain(cost=1e200))
refused("slack-no-common-step", "`rescaling='slack'` for chains with weights π, 1 and √2", V,
        "use integer weights, or rescaling='margin'",
        lambda: chain(cost={0: np.pi, 1: 1.0, 2: 2**0.5}, rescaling="slack"))
works("slack-common-step", "`rescaling='slack'` for chains with weights 0.1, 0.3 and 0.7, or π for all",
        "trained: they are multiples of one step",
        lambda: is_solved(chain(cost={0: 0.1, 1: 0.3, 2: 0.7}, rescaling="slack"))
        and is_solved(chain(cost=np.pi, rescaling="slack")))
works("slack-any-cost", "`rescaling='slack'` for classes with a cost of 0.37", "trained",
        lambda: is_solved(multiclass(cost=0.37, rescaling="slack")))

section("Sequences: `ChainSVM`")
refused("chain-empty", "`[]`", V, "X is empty: at least one sequence", lambda: chain([], []))
refused("chain-none", "X is None", T, "X is of type NoneType; expected a list of sequences", lambda: chain(None))
refused("chain-one-matrix", "one matrix", V, "For one sequence, give [X]", lambda: chain(X, YS))
refused("chain-one-sentence", "one list of feature dicts", T, "For one sequence", lambda: chain([{"w": 1.0}], [["A"]]))
refused("chain-string", "sentences as strings", T, "X[0] is of type str", lambda: chain(["We go"], [["A", "B"]]))
refused("chain-string-labels", "labels of a sequence as a string", T, "y[0] is 'AB'; expected a sequence of labels",
        lambda: chain([[["a"], ["b"]]], ["AB"]))
refused("chain-words", "words instead of features", T, "token_features makes such lists",
        lambda: chain([["We"]], [["A"]]))
refused("chain-empty-sequence", "an empty matrix", V, "X[1] is empty", lambda: chain(replaced(XS, 1, X[:0])))
refused("chain-empty-list", "an empty token list", V, "X[1] is empty", lambda: chain([WORDS[0], []], TAGS))
refused("chain-no-features", "tokens without any feature", V, "no token of X has a feature",
        lambda: chain([[[]]], [["A"]]))
refused("chain-nan", "NaN in a matrix", V, "X[0] holds nan in row 3", lambda: chain([put(np.nan)], [Y3]))
refused("chain-sparse-inf", "inf in CSR", V, "X[0] holds inf in row 3",
        lambda: chain([sp.csr_array(put(np.inf))], [Y3]))
refused("chain-dict-nan", "`{'a': nan}`", V, "X[0][0] has a feature with the value nan",
        lambda: chain([[{"a": np.nan}]], [["A"]]))
refused("chain-dict-1e200", "`{'a': 1e200}`", V, "scale the features",
        lambda: chain([[{"a": 1e200}, {"a": 1}]], [[0, 1]]))
refused("chain-ragged-columns", "matrices of 3 and 2 columns", V, "X[1] has 2 columns but X[0] has 3",
        lambda: chain(replaced(XS, 1, XS[1][:, :2])))
refused("chain-ragged-rows", "`[[1, 2], [1]]` as a sequence", V, "X[0] has rows of different lengths",
        lambda: chain([[[1.0, 2.0], [1.0]]], [[0, 1]]))
refused("chain-1d", "a sequence with one dimension", V, "X[1] has shape (3,); expected a matrix",
        lambda: chain(replaced(XS, 1, X[0])))
refused("chain-sparse-1d", "a sparse array with one dimension", V, "X[1] has shape (3,)",
        lambda: chain([sp.coo_array(X[:5]), sp.coo_array(X[0])], YS[:2]))
refused("chain-mixed-kinds", "dense and sparse matrices", T, "all matrices must be dense, or all of them sparse",
        lambda: chain(replaced(XS, 1, sp.csr_array(XS[1]))))
refused("chain-complex", "a complex matrix", T, "X[0] holds values of type complex128", lambda: chain([X + 1j], [Y3]))
refused("chain-name-number", "a number as a feature name", T, "has the feature 3 (int): names are strings",
        lambda: chain([[["a"], [3]]], [[0, 1]]))
refused("chain-value-list", "`{'a': [1]}`", T, "values are numbers or strings", lambda: chain([[{"a": [1]}]], [[0]]))
refused("chain-token-none", "None as a token", T, "X[0][1] is of type NoneType",
        lambda: chain([[["a"], None]], [[0, 1]]))
works("chain-other-types", "bool, int and object matrices, int8 CSR", "trained as numbers",
        lambda: is_close(chain([np.sign(x).astype(object) for x in XS], tol=1e-8).coef_,
                         chain([sp.csr_array(np.sign(x).astype(np.int8)) for x in XS], tol=1e-8).coef_, 1e-3)
        and is_solved(chain([x > 0 for x in XS])))
refused("chain-y-short", "2 label sequences for 3", V, "y has 2 label sequences but X has 3", lambda: chain(XS, YS[:2]))
refused("chain-y-token-short", "2 labels for 3 tokens", V,
        "y[1] has 2 labels but X[1] has 3 rows: every token needs one label",
        lambda: chain(XS, replaced(YS, 1, [0, 1])))
refused("chain-y-flat", "one label per sequence", T, "y[0] is 0; expected a sequence of labels",
        lambda: chain(XS, [0, 1, 2]))
refused("chain-y-unhashable", "a list as a label", T, "y[0][1] is ['b'], which has no hash",
        lambda: chain([X[:2]], [["a", ["b"]]]))
refused("chain-y-nan", "NaN as a label", V, "y[0][1] is nan", lambda: chain([X[:2]], [[0.0, np.nan]]))
works("chain-y-mixed", "labels `'A'`, 1, None and `('x', 2)`", "all come back as they were",
        lambda: chain([X[:4]], [["A", 1, None, ("x", 2)]], C=100.0).predict([X[:4]]) == [["A", 1, None, ("x", 2)]])
works("chain-one-label", "one label only", "it is always predicted, w = 0",
        lambda: chain(XS, [[7] * len(x) for x in XS]).predict(XS[1:2]) == [[7, 7, 7]])
works("chain-one-token", "20 sequences of one token", "the problem of `MulticlassSVM`",
        lambda: is_solved(chain([x[None] for x in X], Y3[:, None], tol=1e-6),
                          certificate_of(multiclass(fit_intercept=False, tol=1e-6)).primal, 1e-6))
works("chain-one-sequence", "one sequence of one token", "an objective of 0",
        lambda: is_solved(chain([X[:1]], [["A"]]), 0.0))


def long_sequence():
    x = np.random.default_rng(1).normal(size=(5000, 3))
    y = np.digitize(x[:, 0], [-0.5, 0.5])
    fitted = chain([x], [y])
    return is_solved(fitted) and fitted.score([x], [y]) > 0.9 and len(fitted.predict_topk([x], 2)[0][1][0]) == 5000


def long_sequence_slack():
    x = np.random.default_rng(1).normal(size=(5000, 3))
    c = certificate_of(chain([x], [np.digitize(x[:, 0], [-0.5, 0.5])], rescaling="slack", max_iter=2))
    return np.isfinite(c.primal) and c.dual <= c.primal and not c.converged


works("chain-5000-tokens", "one sequence of 5,000 tokens", "trained to the certified gap", long_sequence)
works("chain-5000-tokens-slack", "the same under slack rescaling, two iterations",
        "a certificate so far, and a warning", long_sequence_slack, ConvergenceWarning)
works("chain-duplicates", "the same sequence with two labellings, twice each", "w = 0, an objective of 12 C",
        lambda: is_solved(chain([X[:3]] * 4, [[0, 1, 0], [1, 0, 1]] * 2), 12.0))
works("chain-all-zero", "all features 0", "the transitions are learned",
        lambda: chain([np.zeros((4, 2))] * 3, [[0, 1, 0, 1]] * 3, C=10.0, ends=True).predict([np.zeros((6, 2))])
        == [[0, 1, 0, 1, 0, 1]])
works("chain-1e10", "all values × 1e10, C = 1e-20 to match", "trained to the certified gap",
        lambda: is_solved(chain([1e10 * x for x in XS], C=1e-20)))
works("chain-tiny", "all values × 1e-200", "they do not count: an objective near 20 C",
        lambda: is_solved(chain([1e-200 * x for x in XS]), 20.0))
refused("forbidden-truth", "a forbidden transition in y", V, "y[0] has the forbidden transition",
        lambda: chain(forbidden=[(YS[0][0], YS[0][1])]))
refused("forbidden-no-path", "every transition forbidden", V, "forbidden leaves no legal sequence",
        lambda: chain([x[None] for x in X], Y3[:, None], forbidden=[(a, b) for a in range(3) for b in range(3)]))
refused("forbidden-number", "`forbidden=5`", V, "forbidden must hold pairs (from, to) of labels, found 5",
        lambda: chain(forbidden=5))
refused("forbidden-unhashable", "`forbidden=[([0], 1)]`", V, "a label without a hash",
        lambda: chain(forbidden=[([0], 1)]))
refused("forbidden-unknown", "labels that y lacks", V, "none of its labels occurs in y",
        lambda: chain(forbidden=[("B", "I")]))
refused("ends-string", "`ends='no'`", V, "ends must be True or False, found 'no'", lambda: chain(ends="no"))

section("Parameters")
for _name, _value in [
    ("zero", 0),
    ("negative", -1.0),
    ("nan", np.nan),
    ("inf", np.inf),
    ("string", "1"),
    ("array", np.ones(2)),
]:
    refused(f"C-{_name}", f"`C={_value!r}`", V, "C must be a positive number, found", lambda v=_value: binary(C=v))
for _name, _value in [("denormal", 5e-324), ("huge", 1e308)]:
    refused(f"C-{_name}", f"`C={_value!r}`", V, "C must lie between 1e-300 and 1e300, found", lambda v=_value: binary(C=v))
works("C-1e-300", "`C=1e-300`", "w = 0 to machine precision", lambda: is_solved(binary(C=1e-300)))
works("C-tiny-squared", "`C=1e-200, loss=\"squared_hinge\"`, α² below the smallest number", "w = 0 to machine precision",
        lambda: is_solved(chain(XS, C=1e-200, loss="squared_hinge")) and is_solved(binary(C=1e-200, loss="squared_hinge")))
works("C-1e300", "`C=1e300`, classes that can be told apart", "the hard-margin solution",
        lambda: is_solved(binary(C=1e300, tol=1e-6), certificate_of(binary(C=1e6, tol=1e-6)).primal, 1e-5))
for _name, _value in [("negative", -1.0), ("nan", np.nan), ("inf", np.inf), ("string", "x")]:
    refused(f"tol-{_name}", f"`tol={_value!r}`", V, "tol must be a number ≥ 0, found", lambda v=_value: chain(tol=v))
refused("path-unknown-parameter", "`path(X, y, callback=print)`", T,
        "fit of BinarySVM has no parameter 'callback'; it has X, y, sample_weight",
        lambda: mm.BinarySVM().path(X, Y2, callback=print))
refused("callback-array", "an array from the callback of `mm.train`", T,
        "callback must return whether to end training, found ndarray",
        lambda: mm.train(mm.models.Binary(), X, np.where(Y2[0] == Y2, 1, -1), callback=lambda record: np.ones(2)))
refused("labels-bytes", "bytes as labels", T, "y holds labels that cannot be used",
        lambda: binary(y=[b"a", b"b"] * (len(X) // 2)))
refused("max-iter-zero", "`max_iter=0`", V, "max_iter must be an integer ≥ 1 or None, found 0",
        lambda: binary(max_iter=0))
refused("max-iter-float", "`max_iter=1e4`", V, "max_iter must be an integer ≥ 1", lambda: binary(max_iter=1e4))
refused("max-time-zero", "`max_time=0`", V, "max_time must be a positive number of seconds", lambda: binary(max_time=0))
refused("max-time-string", "`max_time='5'`", V, "max_time must be a positive number of seconds",
        lambda: binary(max_time="5"))
works("max-iter-one", "`max_iter=1`",
        "the best point so far with its certificate, and a warning: a usable model, but where that is w = 0: as a rule with "
        "`one-slack`, which `auto` takes for few rows, `line-search`, `cpd`, `n-slack` with several classes and `block-dual` "
        "with a model in Python",
        lambda: all(not certificate_of(svm).converged and np.any(svm.coef_) == (svm.solver in ("block-dual", "n-slack"))
                    for svm in [binary(solver=name, max_iter=1) for name in ("auto", "line-search", "block-dual", "n-slack")]),
        ConvergenceWarning)
refused("n-jobs-zero", "`n_jobs=0`", V, "n_jobs must be a non-zero integer or None, found 0", lambda: chain(n_jobs=0))
refused("n-jobs-string", "`n_jobs='all'`", V, "n_jobs must be a non-zero integer", lambda: binary(n_jobs="all"))
works("n-jobs-many", "`n_jobs=64` for 20 rows", "the same weights",
        lambda: np.array_equal(binary(n_jobs=64).coef_, binary().coef_))
refused("solver-unknown", "`solver='simplex'`", V, "solver must be one of 'auto'", lambda: chain(solver="simplex"))
refused("solver-loss", "`solver='one-slack', loss='squared_hinge'`", V, "for loss='squared_hinge' use 'block-dual', 'n-slack'",
        lambda: binary(solver="one-slack", loss="squared_hinge"))
refused("loss-unknown", "`loss='log'`", V, "loss must be 'hinge' or 'squared_hinge', found 'log'",
        lambda: binary(loss="log"))
refused("rescaling-unknown", "`rescaling='none'`", V, "rescaling must be 'margin' or 'slack'",
        lambda: binary(rescaling="none"))
refused("option-unknown", "`solver_options={'cash_size': 5}`", V, "has no option 'cash_size'; its options are",
        lambda: chain(solver_options={"cash_size": 5}))
refused("option-value", "`solver_options={'cache_size': -1}`", V, "solver_options['cache_size'] must be an integer ≥ 0",
        lambda: chain(solver_options={"cache_size": -1}))
refused("option-of-another-solver", "`solver_options={'batch_size': 5}` for one-slack", V, "has no option 'batch_size'",
        lambda: chain(solver="one-slack", solver_options={"batch_size": 5}))
refused("random-state", "`random_state=-1`", V, "random_state must be an integer ≥ 0", lambda: binary(random_state=-1))
refused("verbose", "`verbose='a'`", V, "verbose must be an integer ≥ 0, found 'a'", lambda: train3(verbose="a"))
refused("warm-start", "`warm_start='yes'`", V, "warm_start must be True or False", lambda: binary(warm_start="yes"))
refused("fit-intercept", "`fit_intercept='no'`", V, "fit_intercept must be True or False, found 'no'",
        lambda: binary(fit_intercept="no"))
refused("intercept-scaling", "`intercept_scaling=1e200`", V,
        "intercept_scaling must be a positive number of at most 1e+100", lambda: binary(intercept_scaling=1e200))
refused("callback", "`callback=5`", V, "callback must be a function", lambda: train3(callback=5))
refused("callback-raises", "a callback that raises", ZeroDivisionError, "division by zero",
        lambda: train3(callback=lambda record: 1 / 0), core=True)

section("Prediction and scores")
for _name, _estimator in [
    ("binary", mm.BinarySVM()),
    ("multiclass", mm.MulticlassSVM()),
    ("chain", mm.ChainSVM()),
    ("structural", mm.StructuralSVM(Levels())),
]:
    refused(f"unfitted-{_name}", f"`{type(_estimator).__name__}().predict(X)` before `fit`", NotFittedError,
            "is not fitted yet", lambda e=_estimator: e.predict(XS))
refused("unfitted-decision", "`ChainSVM().decision_function(X)` before `fit`", NotFittedError, "is not fitted yet",
        lambda: mm.ChainSVM().decision_function(XS))
refused("unfitted-topk", "`ChainSVM().predict_topk(X, 2)` before `fit`", NotFittedError, "is not fitted yet",
        lambda: mm.ChainSVM().predict_topk(XS, 2))
refused("unfitted-save", "`ChainSVM().save(path)` before `fit`", NotFittedError, "is not fitted yet",
        lambda: mm.ChainSVM().save("x.mm"))
refused("predict-columns", "2 columns after training with 3", V, "X has 2 features, but MulticlassSVM is expecting 3",
        lambda: multiclass().predict(X[:, :2]), core=True)
refused("predict-chain-columns", "the same for sequences", V, "X has 2 features, but ChainSVM is expecting 3",
        lambda: chain().predict([X[:, :2]]), core=True)
refused("predict-nan", "NaN in X", V, "Input X contains NaN", lambda: binary().predict(put(np.nan)), core=True)
refused("predict-chain-nan", "NaN in a sequence", V, "X[0] holds nan in row 3", lambda: chain().predict([put(np.nan)]),
        core=True)
refused("predict-chain-empty", "`[]`", V, "X is empty", lambda: chain().predict([]), core=True)
refused("predict-chain-names", "strings after training with matrices", T, "fitted on matrices: give matrices",
        lambda: chain().predict(WORDS), core=True)
works("predict-unseen-features", "feature strings that training has not seen", "ignored",
        lambda: [len(tags) for tags in chain(WORDS, TAGS).predict([[["w=a"], ["w=b"]]])] == [2])
refused("topk-zero", "`predict_topk(X, 0)`", V, "k must be an integer ≥ 1, found 0",
        lambda: chain().predict_topk(XS, 0), core=True)
works("topk-1e9", "`predict_topk(X, 10**9)` for two tokens", "all nine labellings",
        lambda: len(chain().predict_topk([X[:2]], 10**9)[0]) == 9)
refused("diverse-zero", "`predict_diverse(X, 0)`", V, "m must be an integer ≥ 1, found 0",
        lambda: multiclass().predict_diverse(X, 0), core=True)
refused("diverse-1e9", "`predict_diverse(X, 10**9)`", V, "expected at most 1000000 outputs",
        lambda: chain().predict_diverse(XS, 10**9), core=True)
refused("diverse-strength", "`predict_diverse(X, 2, -1.0)`", V, "strength must be a number ≥ 0, found -1.0",
        lambda: chain().predict_diverse(XS, 2, -1.0), core=True)
works("score-unseen-label", "labels at score time that training has not seen", "they count as mistakes",
        lambda: chain().score(XS, [["?"] * len(x) for x in XS]) == 0.0 and multiclass().score(X, np.full(20, 9)) == 0.0)
refused("score-short", "1 label sequence for 3", V, "y has 1 label sequences but X has 3",
        lambda: chain().score(XS, YS[:1]), core=True)
refused("score-weights-zero", "weights of 0 at score time", V, "at least one non-zero number",
        lambda: chain().score(XS, YS, sample_weight=[0, 0, 0]), core=True)
refused("score-structural-empty", "no example at score time", V, "X and y are empty",
        lambda: structural(Levels()).score([], []), core=True)
