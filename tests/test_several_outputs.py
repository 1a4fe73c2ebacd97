"""Several outputs of each input: the best ones and diverse ones, against all outputs and their scores."""

import itertools
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from labelled_graphs import forest_edges, labellings, random_edges, random_graph
from sklearn.exceptions import NotFittedError

import maxmargin as mm
from maxmargin import _core

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def check_best(found, values, k):
    """The k best of all outputs {output: score}, each once."""
    outputs, scores = zip(*found, strict=True)
    assert len(set(outputs)) == len(outputs) == min(k, len(values))
    np.testing.assert_allclose([values[y] for y in outputs], scores, atol=1e-9)
    np.testing.assert_allclose(scores, sorted(values.values(), reverse=True)[:k], atol=1e-9)


def check_diverse(found, values, strengths, distance):
    """Output m is the best for score + Σ_{j < m} strength_j · distance to output j."""
    value = dict(values)
    for (y, score), strength in zip(found, [*strengths, 0.0], strict=True):
        assert score == pytest.approx(values[y], abs=1e-9)
        assert value[y] == pytest.approx(max(value.values()), abs=1e-9)
        value = {other: v + strength * distance(y, other) for other, v in value.items()}


def hamming(a, b):
    return sum(x != y for x, y in zip(a, b, strict=True))


# --------------------------------------------------------------------------------------------------- models


def native(model, n_features, seed):
    model.n_features = n_features
    w = np.zeros(model.n_weights)
    rng = np.random.default_rng(seed)
    for block in model.blocks(w).values():
        block[...] = rng.normal(size=block.shape)
    return w


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("forbidden", [None, [(0, 1), (2, 2)]])
@pytest.mark.parametrize("ends", [False, True])
def test_chains_against_enumeration(ends, forbidden, n_jobs):
    rng = np.random.default_rng(0)
    model = mm.models.Chain(3, ends=ends, forbidden=forbidden)
    w = native(model, 2, 1)
    X = [rng.normal(size=(length, 2)) for length in (1, 2, 3, 4, 5)]
    blocks = model.blocks(w)
    strengths = [0.8, 0.0, 2.0]
    for x, best, diverse in zip(X, model.k_best(X, w, 6, n_jobs), model.diverse(X, w, strengths, n_jobs), strict=True):
        values = {}
        for y in itertools.product(range(3), repeat=len(x)):
            if any(pair in (forbidden or []) for pair in itertools.pairwise(y)):
                continue
            score = sum(blocks["coef"][label] @ row for label, row in zip(y, x, strict=True))
            score += sum(blocks["transition"][a, b] for a, b in itertools.pairwise(y))
            values[y] = score + (blocks["start"][y[0]] + blocks["stop"][y[-1]] if ends else 0.0)
        check_best(list(zip(map(tuple, best[0].tolist()), best[1], strict=True)), values, 6)
        check_diverse(list(zip(map(tuple, diverse[0].tolist()), diverse[1], strict=True)), values, strengths, hamming)


def test_classes_against_enumeration():
    model = mm.models.Multiclass(4)
    w = native(model, 3, 0)
    X = np.random.default_rng(1).normal(size=(20, 3))
    strengths = [0.5, 1.5, 0.1, 0.1, 0.1]
    found = zip(
        X, model.k_best(X, w, 3), model.k_best(sp.csr_array(X), w, 9), model.diverse(X, w, strengths), strict=True
    )
    for x, best, every, diverse in found:
        values = {(label,): score for label, score in enumerate(model.blocks(w)["coef"] @ x)}
        check_best(list(zip(map(tuple, best[0].tolist()), best[1], strict=True)), values, 3)
        check_best(list(zip(map(tuple, every[0].tolist()), every[1], strict=True)), values, 9)
        check_diverse(list(zip(map(tuple, diverse[0].tolist()), diverse[1], strict=True)), values, strengths, hamming)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("kind", "method"),
    [
        *itertools.product(["table", "potts", "attractive"], ["forest", "enumeration", "auto", "trws"]),
        ("attractive", "cut"),
    ],
)
def test_diverse_labellings_of_graphs_against_enumeration(kind, method, weighted):
    """TRW-S is exact in forests, cuts where two labels like to agree."""
    for seed in range(12):
        rng = np.random.default_rng([seed, len(kind)])
        counts = np.full(5, 2) if method == "cut" else rng.integers(1, 4, size=rng.integers(1, 7))
        in_forest = method in ("forest", "trws")
        edges = forest_edges(rng, len(counts)) if in_forest else random_edges(rng, len(counts), rng.integers(0, 8))
        scored = random_graph(rng, counts, edges, kind, ties=seed % 3 == 0)
        weights = rng.uniform(0.0, 2.0, size=len(counts)) if weighted else None
        graph = mm.Graph.from_candidates(
            [part[:, None] for part in np.split(scored.unary, scored.shape[0][1:-1])],
            edges,
            [scored.table(e)[:, :, None] for e in range(len(edges))],
            node_weights=weights,
        )
        model = mm.models.Pairwise(None, inference=method)
        model.n_edge_features = int(len(edges) > 0)
        w = native(model, 1, 0)
        for block in model.blocks(w).values():
            block[...] = 1.0
        strengths = rng.uniform(0.0, 2.0, size=3)
        (labels, scores), *_ = model.diverse([graph], w, strengths)
        values = dict(zip(labellings(counts), scored.all_scores().ravel().tolist(), strict=True))
        place = np.ones(len(counts)) if weights is None else weights

        def distance(a, b, place=place):
            return float(place @ (np.array(a) != np.array(b)))

        found = list(zip(map(tuple, labels.tolist()), scores, strict=True))
        check_diverse(found, values, strengths, distance)


def test_strong_diversity_changes_every_label():
    graph = mm.Graph.grid(np.random.default_rng(0).normal(size=(3, 3, 2)))
    model = mm.models.Pairwise(3)
    model.n_edge_features = 1
    labels, _ = model.diverse([graph], native(model, 2, 0), [1000.0, 1000.0])[0]
    assert all(len(set(column)) == 3 for column in labels.T.tolist())


@pytest.mark.parametrize("strengths", [[-1.0], [np.inf], [np.nan], [[1.0]], "much", [1e150]])
def test_wrong_strengths_are_refused(strengths):
    graph = mm.Graph([[1.0], [2.0]], [[0, 1]], node_weights=[1e100, 1.0])
    model = mm.models.Pairwise(2)
    model.n_edge_features = 1
    w = native(model, 1, 0)
    with pytest.raises(ValueError, match="strengths"):
        model.diverse([graph], w, strengths)


def test_structures_without_places_have_no_diverse_outputs():
    features = _core.Features(np.ones((1, 1)))
    space = _core.LinearSpace(features, _core.Binary(1, None), "margin")
    with pytest.raises(ValueError, match="no labels of places"):
        space.diverse(np.zeros(8), np.ones(1), 1)


# ----------------------------------------------------------------------------------------------- estimators


def classes(n_classes, **parameters):
    rng = np.random.default_rng(n_classes)
    X, y = rng.normal(size=(60, 2)), np.arange(60) % n_classes
    X[:, 0] += 2.0 * y
    return mm.MulticlassSVM(C=1.0, **parameters).fit(X, np.array(["a", "b", "c", "d"])[y]), X


KERNELS = {
    "linear": {},
    "rbf": {"kernel": "rbf", "gamma": 0.5},
    "low-rank": {"kernel": "rbf", "gamma": 0.5, "kernel_approximation": "low-rank", "n_components": 10},
}


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_classes_of_the_estimator_against_enumeration(n_classes, kernel):
    svm, X = classes(n_classes, **KERNELS[kernel])
    scores = svm.decision_function(X)
    scores = np.column_stack([-0.5 * scores, 0.5 * scores]) if n_classes == 2 else scores
    strengths = [0.3, 0.3, 0.3]
    rows = zip(svm.predict_topk(X, 3), svm.predict_diverse(X, 4, 0.3), scores, strict=True)
    for best, diverse, row in rows:
        values = dict(zip(svm.classes_.tolist(), row.tolist(), strict=True))
        check_best(best, values, 3)
        check_diverse(diverse, values, strengths, lambda a, b: float(a != b))
    assert [best[0][0] for best in svm.predict_topk(X, 1)] == svm.predict(X).tolist()
    assert [best[0][0] for best in svm.predict_diverse(X, 1)] == svm.predict(X).tolist()
    strong = svm.predict_diverse(X, n_classes, 1000.0)
    assert strong == svm.predict_topk(X, n_classes + 1)


def test_scores_of_two_classes_are_those_of_their_weights():
    """The estimator keeps the difference of the weights, of which each class has half."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 2)), rng.integers(2, size=30)
    model = mm.models.Multiclass(2)
    solution = mm.train(model, X, y, C=1.0, tol=1e-8)
    svm = mm.MulticlassSVM(C=1.0, tol=1e-8, fit_intercept=False).fit(X, y)
    for ours, (labels, scores) in zip(svm.predict_topk(X, 2), model.k_best(X, solution.w, 2), strict=True):
        assert [label for label, _ in ours] == labels.ravel().tolist()
        np.testing.assert_allclose([score for _, score in ours], scores, atol=1e-4)


def sequences(n=12, seed=0):
    rng = np.random.default_rng(seed)
    lengths = [1, 2, *rng.integers(1, 5, size=n - 2)]
    y = [rng.integers(3, size=length) for length in lengths]
    X = [np.column_stack([labels, np.ones(len(labels))]) + rng.normal(scale=0.5, size=(len(labels), 2)) for labels in y]
    return X, [np.array(["x", "y", "z"])[labels].tolist() for labels in y]


@pytest.mark.parametrize("kernel", KERNELS)
def test_sequences_of_the_estimator_against_enumeration(kernel, tmp_path):
    X, y = sequences()
    tagger = mm.ChainSVM(C=1.0, ends=True, **KERNELS[kernel]).fit(X, y)
    tagger.save(tmp_path / "tagger.mm")
    found = tagger.predict_diverse(X, 4, 0.3)
    assert mm.load(tmp_path / "tagger.mm").predict_diverse(X, 4, 0.3) == found
    everything = tagger.predict_topk(X, 10**9)
    for x, best, diverse in zip(X, everything, found, strict=True):
        assert len(best) == 3 ** len(x)
        values = {tuple(labels): score for labels, score in best}
        check_diverse([(tuple(labels), score) for labels, score in diverse], values, [0.3] * 3, hamming)
    assert [best[0][0] for best in tagger.predict_diverse(X, 1)] == tagger.predict(X)


def test_one_label_is_repeated():
    X = [np.ones((2, 1)), np.ones((1, 1))]
    tagger = mm.ChainSVM().fit(X, [["a", "a"], ["a"]])
    assert [[labels for labels, _ in best] for best in tagger.predict_diverse(X, 3)] == [[["a", "a"]] * 3, [["a"]] * 3]
    assert [len(best) for best in tagger.predict_topk(X, 3)] == [1, 1]


# ------------------------------------------------------------------------------------------- users' models


class Bits(mm.Model):
    """Three bits with features of each and of neighbours; Hamming loss."""

    n_features = 8

    def joint_feature(self, x, y):
        psi = np.zeros(8)
        for place, bit in enumerate(y):
            psi[2 * place + bit] += x[place]
        psi[6] = y[0] == y[1]
        psi[7] = y[1] == y[2]
        return psi

    def loss(self, y_true, y):
        return hamming(y_true, y)

    def outputs(self, x):
        return itertools.product((0, 1), repeat=3)


class Searched(Bits):
    """The same with a search for the loss alone."""

    outputs = mm.Model.outputs

    def argmax(self, x, w):
        return max(Bits().outputs(x), key=lambda y: self.joint_feature(x, y) @ w)

    def loss_augmented_argmax(self, x, y_true, w):
        return max(Bits().outputs(x), key=lambda y: self.joint_feature(x, y) @ w + self.loss(y_true, y))


class Own(Searched):
    """And one for outputs that differ from several."""

    def diverse_argmax(self, x, others, strengths, w):
        return Bits().diverse_argmax(x, others, strengths, w)

    def m_best(self, x, w, m):
        return Bits().m_best(x, w, m)


class KernelBits(mm.KernelModel):
    """Three points, each in one of two columns; an exact kernel."""

    kernel = mm.Kernel("rbf", gamma=1.0)
    n_columns = 2
    points = staticmethod(lambda x: np.asarray(x)[:, None])

    def parts(self, x, y):
        return range(3), y

    def loss(self, y_true, y):
        return hamming(y_true, y)

    def outputs(self, x):
        return itertools.product((0, 1), repeat=3)


class SearchedKernelBits(KernelBits):
    """The same with a search for the loss alone, of bits that have nothing to do with each other."""

    outputs = mm.Model.outputs

    def argmax(self, x, scores):
        return tuple(scores.table.argmax(axis=1).tolist())

    def loss_augmented_argmax(self, x, y_true, scores):
        return tuple((scores.table + (np.arange(2) != np.array(y_true)[:, None])).argmax(axis=1).tolist())


def fitted(model, **parameters):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 3)).tolist()
    y = [tuple((np.array(x) > 0.0).astype(int).tolist()) for x in X]
    svm = mm.StructuralSVM(model, C=1.0, **parameters).fit(X, y)
    return svm, rng.normal(size=(6, 3)).tolist()


@pytest.mark.parametrize("model", [Bits, Own, KernelBits])
def test_outputs_of_users_models_against_enumeration(model):
    svm, X = fitted(model())
    every, found = svm.predict_topk(X, 100), svm.predict_diverse(X, 4, 0.4)
    for best, top, diverse in zip(every, svm.predict_topk(X, 3), found, strict=True):
        assert len(best) == 8
        check_best(top, dict(best), 3)
        check_diverse(diverse, dict(best), [0.4] * 3, hamming)
    weights = svm.coef_ if svm.expansion_ is None else svm.expansion_
    mixed = svm.model_.diverse(X, weights, [0.5, 0.0, 2.0])
    for best, (outputs, scores) in zip(every, mixed, strict=True):
        check_diverse(list(zip(outputs, scores, strict=True)), dict(best), [0.5, 0.0, 2.0], hamming)
    assert [best[0][0] for best in svm.predict_diverse(X, 1)] == svm.predict(X)
    assert svm.predict_topk([], 2) == svm.predict_diverse([], 2) == []


def test_worker_processes_find_the_same():
    svm, X = fitted(Bits())
    alone = svm.predict_topk(X, 3), svm.predict_diverse(X, 3)
    svm.set_params(n_jobs=2)
    assert (svm.predict_topk(X, 3), svm.predict_diverse(X, 3)) == alone


@pytest.mark.parametrize(("model", "listed"), [(Searched, Bits), (SearchedKernelBits, KernelBits)])
def test_a_search_for_the_loss_finds_one_more_output(model, listed):
    svm, X = fitted(model())
    svm.model_, complete = listed(), svm.model_
    every = svm.predict_topk(X, 8)
    svm.model_ = complete
    for strength in (0.0, 1e-200, 0.7, 5.0):
        for best, diverse in zip(every, svm.predict_diverse(X, 2, strength), strict=True):
            check_diverse(diverse, dict(best), [strength], hamming)
    assert [len(best) for best in svm.predict_topk(X, 1)] == [1] * 6
    with pytest.raises(ValueError, match="has neither m_best nor outputs"):
        svm.predict_topk(X, 2)
    with pytest.raises(ValueError, match="has neither diverse_argmax nor outputs"):
        svm.predict_diverse(X, 3)


# ------------------------------------------------------------------------------------------ bad questions


def estimators():
    svm, X = classes(3)
    yield svm, X
    X, y = sequences()
    yield mm.ChainSVM().fit(X, y), X
    yield fitted(Bits())
    graph = mm.Graph([[1.0], [2.0]], [[0, 1]])
    yield mm.GraphSVM().fit([graph], [["a", "b"]]), [graph]


@pytest.mark.parametrize("value", [0, -1, True, 1.0, "2", None])
def test_wrong_numbers_of_outputs_are_refused(value):
    for svm, X in estimators():
        for ask, name in ((svm.predict_topk, "k"), (svm.predict_diverse, "m")):
            with pytest.raises(ValueError, match=f"^{name} must be an integer ≥ 1, found {value!r}"):
                ask(X, value)


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, "much", None, True, 1e200])
def test_wrong_strengths_of_estimators_are_refused(value):
    for svm, X in estimators():
        with pytest.raises(ValueError, match=r"^strength "):
            svm.predict_diverse(X, 2, value)


def test_endless_lists_are_refused():
    for svm, X in estimators():
        with pytest.raises(ValueError, match="expected at most 1000000 outputs"):
            svm.predict_diverse(X, 10**9)


def test_nothing_is_asked_before_fit():
    for svm in (mm.MulticlassSVM(), mm.ChainSVM(), mm.GraphSVM(), mm.StructuralSVM(Bits())):
        with pytest.raises(NotFittedError):
            svm.predict_topk([[1.0]], 2)
        with pytest.raises(NotFittedError):
            svm.predict_diverse([[1.0]], 2)


def test_empty_inputs_are_answered_as_by_predict():
    for svm, _ in estimators():
        if isinstance(svm, mm.StructuralSVM):
            assert svm.predict([]) == svm.predict_topk([], 2) == svm.predict_diverse([], 2) == []
            continue
        texts = set()
        for ask in (svm.predict, partial(svm.predict_topk, k=2), partial(svm.predict_diverse, m=2)):
            with pytest.raises(ValueError) as found:  # noqa: PT011 - the texts are compared
                ask([])
            texts.add(str(found.value))
        assert len(texts) == 1


def test_strengths_of_any_type_are_checked():
    svm = mm.MulticlassSVM().fit(np.eye(3), [0, 1, 2])
    assert svm.predict_diverse(np.eye(3), 2, np.float32(2.0)) == svm.predict_diverse(np.eye(3), 2, 2.0)
    for strength in (10**400, 1e200, -1, "1", True, 1j):
        with pytest.raises(ValueError, match="strength"):
            svm.predict_diverse(np.eye(3), 2, strength)
