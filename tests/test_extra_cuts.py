"""Several cuts in one iteration: the outputs they are made of, how they are combined and steered, and that the optimum stays."""

import itertools

import numpy as np
import pytest
import reference
import scipy.sparse as sp
from extra_cut_problems import problems, train_on_images
from reference_models import ChainModel, MulticlassModel
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin import _core
from maxmargin.solvers._extra_cuts import _SUMMED_AFRESH, COMBINATIONS, SOURCES, Choices, RunningSum, steered

pytestmark = [pytest.mark.core, pytest.mark.filterwarnings("error")]


def weights_of_places(model, i):
    if isinstance(model, ChainModel):
        return np.asarray(model.token_weight[i])
    if isinstance(model, MulticlassModel):
        return np.ones(1)
    given = model.graphs[i].node_weights
    return np.ones(model.graphs[i].n_nodes) if given is None else given


def in_reference(model, native_model, w):
    return np.concatenate([block.ravel() for block in native_model.blocks(w).values()])


def as_tuple(y):
    return y if isinstance(y, tuple) else (y,)


def found_codes(batches, model, i):
    """The outputs of example i, the truth where a batch has none of it."""
    codes = []
    for batch in batches:
        places = np.flatnonzero(batch.examples() == i)
        codes.append(tuple(batch.code(int(places[0])).tolist()) if len(places) else as_tuple(model.truth(i)))
    return codes


@pytest.mark.parametrize("kind", ["multiclass", "chain", "graph", "candidates"])
def test_diverse_outputs_are_best_among_those_that_differ(kind):
    model, native_model, X, Y = problems()[kind]
    bound = native_model.bind(X, Y)
    w = np.random.default_rng(1).normal(size=bound.n_weights)
    flat = in_reference(model, native_model, w)
    strengths = np.array([0.6, 0.3])
    for n_jobs in (1, 2):
        batches, diversity, most = bound.space.variants(bound.all_ids, w, "diverse", strengths, 0, n_jobs)
    expected_diversity, expected_most = np.zeros(2), 0.0
    for i in range(model.n_examples):
        weight = weights_of_places(model, i)
        values = {as_tuple(y): float(flat @ model.psi(i, y)) + model.loss(i, y) for y in model.outputs(i)}
        codes = found_codes(batches, model, i)
        for m, code in enumerate(codes):

            def bought(y, m=m, codes=codes, values=values, weight=weight):
                return values[y] + sum(
                    strengths[k] * float(weight @ (np.array(y) != np.array(codes[k]))) for k in range(m)
                )

            assert bought(code) == pytest.approx(max(map(bought, values)))
        expected_diversity += [float(weight @ (np.array(a) != np.array(b))) for a, b in itertools.pairwise(codes)]
        expected_most += float(weight.sum())
    assert diversity == pytest.approx(expected_diversity)
    assert most == pytest.approx(expected_most)


@pytest.mark.parametrize("kind", ["multiclass", "chain", "graph", "candidates"])
def test_m_best_outputs_are_those_of_the_highest_values(kind):
    model, native_model, X, Y = problems(1)[kind]
    bound = native_model.bind(X, Y)
    w = np.random.default_rng(2).normal(size=bound.n_weights)
    flat = in_reference(model, native_model, w)
    batches, _, _ = bound.space.variants(bound.all_ids, w, "m-best", np.ones(2), 0, 1)
    for i in range(model.n_examples):
        values = {as_tuple(y): float(flat @ model.psi(i, y)) + model.loss(i, y) for y in model.outputs(i)}
        expected = sorted(values.values(), reverse=True)[:3]
        expected += [expected[-1]] * (3 - len(expected))  # the last stands for those that do not exist
        assert [values[code] for code in found_codes(batches, model, i)] == pytest.approx(expected)


def test_random_outputs_differ_from_the_best_by_the_share_asked_for():
    rng = np.random.default_rng(0)
    X = [rng.normal(size=(50, 2)) for _ in range(40)]
    bound = mm.models.Chain(4).bind(X, [rng.integers(4, size=50) for _ in X])
    w, shares = rng.normal(size=bound.n_weights), np.full(4, 0.2)
    batches, diversity, most = bound.space.variants(bound.all_ids, w, "random", shares, 7, 1)
    best, *others = (np.array([batch.code(i) for i in range(40)]) for batch in batches)
    assert diversity.tolist() == [np.count_nonzero(other != best) for other in others]
    assert diversity / most == pytest.approx(shares, abs=0.03)
    again, _, _ = bound.space.variants(bound.all_ids, w, "random", shares, 7, 2)
    assert all(np.array_equal(a.code(3), b.code(3)) for a, b in zip(batches, again, strict=True))
    other, _, _ = bound.space.variants(bound.all_ids, w, "random", shares, 8, 1)
    assert not np.array_equal(batches[1].code(3), other[1].code(3))


def test_labels_are_drawn_by_their_scores():
    # One place, three labels; the best is 0, and exp(score) of the others is 1 to 3.
    model = mm.models.Multiclass(3)
    bound = model.bind(np.ones((4000, 1)), np.zeros(4000, int))
    w = model.join(coef=[[9.0], [0.0], [np.log(3.0)]])
    _, second = bound.space.variants(bound.all_ids, w, "random", np.array([1.0]), 0, 1)[0]
    labels = np.array([int(second.code(k)[0]) for k in range(len(second))])
    assert len(labels) == 4000
    assert np.mean(labels == 2) == pytest.approx(0.75, abs=0.03)


def test_strengths_follow_the_set_point():
    # λ (1 + ½ (K − K̄) / max(K, K̄))
    assert steered(np.array([2.0, 2.0, 2.0]), 0.2, np.array([0.1, 0.2, 0.4])) == pytest.approx([2.5, 2.0, 1.5])
    assert steered(np.array([2.0]), 0.2, np.zeros(1)) == pytest.approx([3.0])


@pytest.mark.parametrize(
    ("source", "combination"),
    [(source, how) for source in SOURCES for how in COMBINATIONS if source != "mixed" or how == "ordering"],
)
@pytest.mark.parametrize("kind", ["multiclass", "chain", "graph", "candidates"])
def test_the_optimum_is_that_of_one_cut(kind, source, combination):
    model, native_model, X, Y = problems(2)[kind]
    best = reference.solve(reference.planes(model), 2.0)
    solution = mm.train(
        native_model,
        X,
        Y,
        2.0,
        solver="one-slack",
        tol=1e-7,
        solver_options={"cuts_per_iteration": 3, "extra_cuts": source, "combination": combination, "cache_size": 0},
    )
    assert solution.certificate.primal == pytest.approx(best.objective, rel=1e-6)
    for record in solution.history:
        assert record["dual"] <= best.objective * (1 + 1e-9)
        assert record["primal"] >= best.lower_bound * (1 - 1e-9)
    first = 2 if source == "mixed" else 1  # the first pass has none before it
    assert solution.history[first]["cuts"] > 2
    assert len(solution.history[first]["extra_violations"]) == 2


def test_more_cuts_take_fewer_iterations():
    several = train_on_images(cuts_per_iteration=6, diversity=0.02, combination="dual")
    assert len(several) < 0.8 * len(train_on_images())


def test_running_sums_start_afresh_now_and_then():
    _, native_model, X, Y = problems(4)["graph"]
    problem = native_model.bind(X, Y)
    planes = problem.space.separate(problem.all_ids, np.zeros(problem.n_weights), None, 1)
    sums, left = RunningSum(problem), []
    for _ in range(_SUMMED_AFRESH + 1):
        sums.begin_pass()
        left.append(float(np.abs(sums.of(_core.PlaneBatch())[1]).max()))
        sums.of(planes)[1][0] += 1e-3  # as rounding does, but more
    assert left[0] == 0.0
    assert min(left[1:-1]) > 0.0
    assert left[-1] == 0.0


def test_the_set_point_is_reached():
    for K in (0.05, 0.2):
        history = train_on_images(cuts_per_iteration=2, diversity=K)
        reached = [record["diversity"][0] for record in history[20:] if record["diversity"]]
        assert np.median(reached) == pytest.approx(K, rel=0.5)


def train_to_the_end(kind, seed, **options):
    _, native_model, X, Y = problems(seed)[kind]
    options = {"cache_size": 0, **options}
    return mm.train(native_model, X, Y, 5.0, solver="one-slack", tol=1e-8, solver_options=options).history


def test_annealing_ends_with_one_cut():
    history = train_to_the_end("graph", 3, cuts_per_iteration=8, cut_annealing=0.5)
    counts = [len(record["extra_violations"] or []) for record in history]
    assert counts[1] == 7
    assert counts[-1] == 0


def test_annealing_lowers_the_set_point():
    history = train_to_the_end("graph", 3, cuts_per_iteration=8, cut_annealing=0.7, diversity=0.5, extra_cuts="random")
    # What is random follows no λ: its strengths are the set points themselves.
    for k in (1, 2, 3):
        assert history[k]["strengths"] == pytest.approx([0.5 * 0.7 ** (k - 1)] * round(8 * 0.7 ** (k - 1) - 1))


def test_the_first_search_has_the_strength_asked_for():
    first = train_to_the_end("graph", 3, cuts_per_iteration=3, initial_strength=0.3)[1]
    assert first["strengths"] == [0.3, 0.3]


def test_cuts_by_violation_are_sorted():
    history = train_to_the_end(
        "chain", 4, cuts_per_iteration=5, extra_cuts="random", diversity=0.5, combination="violation"
    )
    for before, record in itertools.pairwise(history):
        # The last cuts differ by no more than rounding.
        assert np.all(np.diff([before["violation"], *record["extra_violations"]]) <= 1e-9)
    assert np.all(np.diff([history[0]["violation"], *history[1]["extra_violations"]]) < 0.0)


@pytest.mark.parametrize("kind", ["chain", "graph"])
def test_an_output_in_the_cache_is_searched_once(kind):
    M = 3
    history = train_to_the_end(kind, 3, cuts_per_iteration=M, cache_size=5)
    searches = np.diff([record["oracle_calls"] for record in history])
    n = problems(3)[kind][0].n_examples
    assert {0, M * n} == set(searches.tolist())


@pytest.mark.parametrize("source", ["diverse", "m-best", "random"])
def test_examples_of_weight_0_are_not_searched_and_steer_nothing(source):
    rng = np.random.default_rng(0)
    X, Y = [rng.normal(size=(5, 4)) for _ in range(12)], [rng.integers(3, size=5) for _ in range(12)]
    options = {"cuts_per_iteration": 3, "extra_cuts": source, "diversity": 0.3, "cache_size": 5}
    run = {"solver": "one-slack", "solver_options": options, "max_iter": 12, "tol": 1e-9}
    # Behind the others, whose random numbers hang on their place.
    s = np.repeat([1.0, 0.0], len(X))
    with pytest.warns(ConvergenceWarning):
        alone = mm.train(mm.models.Chain(3), X, Y, **run)
    with pytest.warns(ConvergenceWarning):
        among = mm.train(mm.models.Chain(3), 2 * X, Y + Y[::-1], sample_weight=s, **run)
    assert among.certificate.oracle_calls == alone.certificate.oracle_calls
    for mine, other in zip(among.history, alone.history, strict=True):
        assert mine["diversity"] == pytest.approx(other["diversity"])
        assert mine["strengths"] == pytest.approx(other["strengths"])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["multiclass", "chain", "graph", "candidates"])
def test_cuts_for_the_dual_promise_most(kind, weighted):
    _, native_model, X, Y = problems(5)[kind]
    rng = np.random.default_rng(0)
    s = rng.random(len(X)) if weighted else None
    bound = native_model.bind(X, Y, sample_weight=s)
    weights = bound.zero_weights()
    weights.exact[:] = 0.1 * rng.normal(size=bound.n_weights)
    planes, _, _ = bound.space.variants(bound.all_ids, weights.exact, "random", np.full(3, 0.5), 1, 1)
    choices = Choices(bound, planes)
    C, linear = 2.0, 0.3

    def promise(chosen):
        batch, g = choices.batch(chosen), np.zeros(bound.n_weights)
        factors = np.ones(len(batch)) if s is None else s[batch.examples()]
        bound.space.add(batch, factors, g)
        u = C * g - weights.exact
        return max(C * factors @ batch.losses() - linear - weights.exact @ u, 0.0) ** 2 / (u @ u)

    n, dual = bound.n_examples, _core.DualChoice(bound.space, planes, weights.exact, s)
    for m in range(1, 4):
        assert promise(dual.choose(C, linear, m, 2)) >= promise(np.full(n, m)) - 1e-9
        # After many sweeps no change of one example's output is better.
        chosen = dual.choose(C, linear, m, 50)
        for i, k in itertools.product(range(n), range(4)):
            other = chosen.copy()
            other[i] = k
            assert promise(other) <= (1 + 1e-9) * promise(chosen)


def test_cuts_for_the_dual_take_no_dense_planes():
    """70 sentences with 200,000 weights: four planes of each, written out, were refused as too many numbers."""
    rng = np.random.default_rng(0)
    X = [sp.random_array((5, 50_000), density=2e-4, format="csr", rng=rng) for _ in range(70)]
    Y = [rng.integers(4, size=5) for _ in X]
    options = {"cuts_per_iteration": 4, "combination": "dual", "cache_size": 0}
    solution = mm.train(mm.models.Chain(4), X, Y, 0.1, solver="one-slack", solver_options=options)
    assert solution.certificate.converged
    assert any(record["extra_violations"] for record in solution.history)


WRONG = {
    "weights of another space": ({"weights": np.zeros(3)}, "weights has 3"),
    "a start that is no output": ({"start": 4}, "start"),
    "a C below 0": ({"C": -1.0}, "C must"),
    "weights of too few examples": ({"sample_weight": np.ones(1)}, "sample_weight has 1"),
    "two planes of one example": ({"outputs": "twice"}, "at most one of each"),
    "no outputs": ({"outputs": []}, "a batch of planes at least"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_choices_are_refused(what):
    _, native_model, X, Y = problems(5)["chain"]
    bound = native_model.bind(X, Y)
    planes, _, _ = bound.space.variants(bound.all_ids, np.zeros(bound.n_weights), "random", np.full(3, 0.5), 1, 1)
    changed, message = WRONG[what]
    made = {"outputs": planes, "weights": np.zeros(bound.n_weights), "sample_weight": None}
    asked = {"C": 1.0, "linear": 0.0, "start": 0, "n_sweeps": 1}
    for name, value in changed.items():
        (made if name in made else asked)[name] = value
    if made["outputs"] == "twice":
        both = _core.PlaneBatch()
        for _ in range(2):
            both.extend(planes[1])
        made["outputs"] = [both]
    with pytest.raises(ValueError, match=message):
        _core.DualChoice(bound.space, **made).choose(**asked)


@pytest.mark.parametrize("combination", ["violation", "dual"])
def test_mixed_cuts_have_no_outputs_to_combine(combination):
    _, native_model, X, Y = problems()["chain"]
    options = {"cuts_per_iteration": 3, "extra_cuts": "mixed", "combination": combination}
    with pytest.raises(ValueError, match="several outputs of one search, which extra_cuts='mixed' has not"):
        mm.train(native_model, X, Y, solver="one-slack", solver_options=options)


def test_what_has_no_places_is_refused():
    X, y = np.random.default_rng(0).normal(size=(10, 2)), np.array([1, -1] * 5)
    with pytest.raises(ValueError, match="labels of places"):
        mm.train(mm.models.Binary(), X, y, solver="one-slack", solver_options={"cuts_per_iteration": 2})
    chain = mm.models.Chain(2)
    with pytest.raises(ValueError, match="labels of places"):
        mm.train(chain, [X], [y > 0], solver="one-slack", rescaling="slack", solver_options={"cuts_per_iteration": 2})
    forbidden = mm.models.Chain(3, forbidden=[(0, 1)])
    with pytest.raises(ValueError, match="at random"):
        mm.train(
            forbidden,
            [X],
            [[0] * 10],
            solver="one-slack",
            solver_options={"cuts_per_iteration": 2, "extra_cuts": "random"},
        )
    for option, value in (
        ("cuts_per_iteration", 0),
        ("diversity", 0.0),
        ("extra_cuts", "more"),
        ("combination", "best"),
        ("cut_annealing", 1.5),
        ("initial_strength", 0.0),
    ):
        with pytest.raises(ValueError, match=option):
            mm.train(chain, [X], [y > 0], solver="one-slack", solver_options={option: value})
    kernel = mm.models.Multiclass(3, kernel=mm.Kernel("rbf", 1.0))
    with pytest.raises(ValueError, match="exact kernels have not"):
        mm.train(
            kernel,
            X,
            np.arange(10) % 3,
            solver="one-slack",
            solver_options={"cuts_per_iteration": 2, "combination": "dual"},
        )


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["multiclass", "chain", "graph", "candidates"])
def test_a_sum_of_planes_turns_into_another_by_what_differs(kind, weighted):
    _, native_model, X, Y = problems()[kind]
    problem = native_model.bind(X, Y)
    rng = np.random.default_rng(1)
    s = rng.random(problem.n_examples) if weighted else None
    batches, _, _ = problem.space.variants(
        problem.all_ids, rng.normal(size=problem.n_weights), "diverse", np.full(3, 0.7), 0, 1
    )
    total, loss, before = np.zeros(problem.n_weights), 0.0, _core.PlaneBatch()
    for batch in [*batches, _core.PlaneBatch(), batches[1]]:
        loss += problem.space.add_changes(before, batch, s, total)
        expected = np.zeros(problem.n_weights)
        weights = np.ones(len(batch)) if s is None else s[batch.examples()]
        problem.space.add(batch, weights, expected)
        np.testing.assert_allclose(total, expected, atol=1e-12)
        assert loss == pytest.approx(weights @ batch.losses(), abs=1e-12)
        before = batch
    assert np.any(total != 0.0)


def test_changes_of_sums_are_checked():
    _, native_model, X, Y = problems()["chain"]
    problem = native_model.bind(X, Y)
    batches, _, _ = problem.space.variants(problem.all_ids, np.zeros(problem.n_weights), "diverse", np.ones(1), 0, 1)
    total, empty = np.zeros(problem.n_weights), _core.PlaneBatch()
    with pytest.raises(ValueError, match="total"):
        problem.space.add_changes(empty, batches[0], None, total[1:])
    with pytest.raises(ValueError, match="sample_weight"):
        problem.space.add_changes(empty, batches[0], np.ones(1), total)
    twice = _core.PlaneBatch()
    for _ in range(2):
        twice.take(batches[0], np.arange(len(batches[0])))
    with pytest.raises(ValueError, match="at most one of each"):
        problem.space.add_changes(twice, batches[0], None, total)
    _, native_model, X, Y = problems()["multiclass"]
    slack = native_model.bind(X, Y, rescaling="slack")
    with pytest.raises(ValueError, match="margin rescaling"):
        slack.space.add_changes(empty, empty, None, np.zeros(slack.n_weights))
    assert not np.any(total)
