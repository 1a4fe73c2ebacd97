"""Cutting planes of sampled examples, for kernels (Yu and Joachims 2008, Algorithms 2 and 3).

    min_w  ½‖w‖² + C max_k (c_k − w·g_k)₊        over cuts (c, g) of at most r examples each

    max_α  Σ α_k c_k − ½‖w‖²                      α ≥ 0, Σ α_k ≤ C, w = Σ α_k g_k

An exact cut Σ_i s_i (Δ_i, ψ_i) has all examples that violate their margins as basis points, and each of its scores takes a kernel
value for every one of them. A sampled cut has r:

    strategy "linear"     c = Σ_i s_i Δ_i of all,  g = (|I|/r) Σ_sample s_i ψ_i,  the sample from I = {i : ψ_i ≠ 0}
    strategy "constant"   (c, g) = (n/r) Σ_sample s_i (Δ_i, ψ_i),                 the sample from all

"linear" searches all examples in every iteration: their exact cut decides the stop, c − w·g ≤ ξ + ε, and gives the exact primal;
the sample is drawn anew until its cut is violated by more than ε too. Score tables of the cuts are kept, so that an iteration
takes n·r kernel values. "constant" looks at the sample only and stops when ``quiet`` samples in a row are not violated by more
than ε; its kernel values are those among samples, whatever n is. Samples go through the examples in rounds, each in a random
order of its own: drawn independently, as in the paper's analysis (``sampling="independent"``), they miss some for long, and the
run ends farther from the optimum. Cuts are sums here where the paper has means: its C' and ξ are n·C and ξ/n, and ``epsilon``
counts as in the paper.

The value of the QP over such cuts is no lower bound of the optimum. The history has it as ``model_value``; a true bound is
computed at the end, from feasible points of the dual that has a variable for each example and output (``_sampled.dual_bound``).

Two things go beyond the paper. Training ends with the average of the points that the QP went through (``_sampled``), in which the
noise of the samples is less, where that is the better end: "linear" evaluates it now and then and at the end, as a point like the
others, "constant" compares it with the last point on a sample of their own. ``sampling="violation"``, for "linear", draws support
vectors at rates that differ, for which the paper's outlook asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from maxmargin import _core
from maxmargin._parameters import is_integer, is_number
from maxmargin.problems.base import FloatArray, IntArray
from maxmargin.problems.expansion_weights import ExpansionWeights
from maxmargin.problems.kernel_scores import KernelScores
from maxmargin.problems.weights import DenseWeights
from maxmargin.solvers._low_rank_start import points_of_low_rank_cuts
from maxmargin.solvers._sampled import End, SampledCuts, SampledModel, TabledCuts, UntabledCuts, dual_bound
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import IS_BOOLEAN, Iterate, Option, PrimalEstimate, Record, Solver, Task

# The QP is solved to this share of the last violation, or of ε near the end.
_QP_SHARE, _EPSILON_SHARE = 0.1, 0.01
# An estimate of the primal is so many standard errors wide on either side: 95 % of the normal distribution.
_STANDARD_ERRORS = 1.96
# With sampling="violation" so much of the chance to be drawn is the same for all: what one example may count stays bounded.
_EVEN_SHARE = 0.5
# Strategy "linear" evaluates the mean of its points when this share of them came since it last did.
_MEAN_SHARE = 0.2
# Strategy "constant" compares its two ends on at most so many examples.
_MOST_COMPARED = 2000
# Ways of sampling that only one strategy has.
_STRATEGY_OF = {"independent": "constant", "violation": "linear"}


@dataclass(frozen=True)
class FoundPlanes:
    """The most violated planes of some examples at w: I, with s_i, Δ_i and w·ψ_i."""

    examples: IntArray
    weights: FloatArray
    losses: FloatArray
    dots: FloatArray

    @property
    def loss(self) -> float:
        """The offset c of the cut that they sum to."""
        return float(self.weights @ self.losses)

    @property
    def values(self) -> FloatArray:
        """s_i H_i."""
        return self.weights * (self.losses - self.dots)

    @property
    def value(self) -> float:
        """What the cut that they sum to is worth at w."""
        return float(self.values.sum())


class SampledCutsSolver(Solver):
    """Cuts of a few examples; see the module's text."""

    name = "sampled-cuts"
    losses = frozenset({"hinge"})
    rescalings = frozenset({"margin"})
    has_dual = False
    needs = frozenset({"max_oracle", "kernel"})
    options: ClassVar = {
        "strategy": Option(
            "linear",
            lambda v: v in ("linear", "constant"),
            "'linear' or 'constant'",
            "search all examples in every iteration and sample those that violate their margins, or look at the sample only",
        ),
        "sample_size": Option(
            400, lambda v: is_integer(v, 1), "an integer ≥ 1", "r, the examples that a cut is made of"
        ),
        "epsilon": Option(
            0.001,
            lambda v: is_number(v) and v > 0,
            "a positive number",
            "the paper's ε, in units of mean loss: stop when the cut is not violated by more",
        ),
        "annealing": Option(
            1.0,
            lambda v: is_number(v) and v >= 1,
            "a number ≥ 1",
            "begin with so many times ε, and halve it each time that it is reached; 1: as in the paper",
        ),
        "start_components": Option(
            None,
            lambda v: v is None or is_integer(v, 1),
            "an integer ≥ 1 or None",
            "begin near the solution of a low-rank kernel with so many basis points; None: at 0, as in the paper",
        ),
        "quiet": Option(
            4,
            lambda v: is_integer(v, 1),
            "an integer ≥ 1",
            "p of strategy 'constant': stop after so many samples in a row that are not violated by more than ε",
        ),
        "prune_after": Option(
            20, lambda v: is_integer(v, 1), "an integer ≥ 1", "drop a cut whose α was 0 in so many QPs in a row"
        ),
        "resample": Option(
            20,
            lambda v: is_integer(v, 1),
            "an integer ≥ 1",
            "strategy 'linear' draws at most so many samples until one is violated by more than ε, and else takes the most "
            "violated",
        ),
        "sampling": Option(
            "uniform",
            lambda v: v in ("uniform", "independent", "violation"),
            "'uniform', 'independent' or 'violation'",
            "'uniform': all examples alike, under strategy 'constant' in rounds; 'independent', for 'constant' only: every "
            "sample anew; 'violation', for 'linear' only: half alike, half in proportion to the violation",
        ),
        "averaging": Option(
            True,
            *IS_BOOLEAN,
            "end with the weighted average of all iterates where it is better, than each of them under strategy 'linear', than "
            "the last under 'constant', as a sample has it; False: as in the paper",
        ),
        "primal_sample": Option(
            10_000,
            lambda v: v is None or is_integer(v, 2),
            "an integer ≥ 2 or None",
            "strategy 'constant' estimates its primal from so many examples at the end; None: from all of them, which is exact",
        ),
        "dual_bound": Option(
            True,
            *IS_BOOLEAN,
            "compute a lower bound of the optimum at the end, which takes a kernel value for each pair of basis points",
        ),
    }

    _model: SampledModel | None = None
    _end: End | None = None  # of strategy "constant"
    _problem: KernelScores | None = None
    _n_in_mean = 0  # points in the mean that was last evaluated

    def __init__(self, options: Mapping[str, Any] | None = None) -> None:
        super().__init__(options)
        sampling, strategy = self.option["sampling"], self.option["strategy"]
        if _STRATEGY_OF.get(sampling, strategy) != strategy:
            raise ValueError(
                f"solver_options: sampling='{sampling}' is for strategy='{_STRATEGY_OF[sampling]}', found strategy='{strategy}'."
            )

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per cut; see the module's text."""
        assert isinstance(task.problem, KernelScores)
        # A run is made again in double precision where rounding in float32 was too much.
        self._problem, self._model, self._end, self._n_in_mean = task.problem, None, None, 0
        return self._linear(task) if self.option["strategy"] == "linear" else self._constant(task)

    def finish(self, task: Task) -> Iterate | None:
        """Evaluate the mean of the points as it is now, or choose between it and the last point."""
        model = self._model
        if model is None or model.n_points < 2:
            return None  # a mean of one point is that point
        if self.option["strategy"] == "linear":
            return Iterate(*self._mean(task, model)) if model.n_points > self._n_in_mean else None
        self._end = model.last()
        self._end = self._better_end(task, model)
        return None

    def result(self) -> DenseWeights | None:
        """Return the end of strategy "constant", whose points have no exact primals; the mean where training was broken off."""
        model = self._model
        if model is None or self.option["strategy"] == "linear":
            return None
        if self._end is None:
            self._end = model.mean() if model.averages else model.last()
        return self._end.weights

    def final_dual(self, task: Task) -> float | None:
        """Return the bound that the end of strategy "constant" proves, or the better one of what both ends of "linear" do."""
        problem, model = self._problem, self._model
        if model is None or problem is None or not self.option["dual_bound"]:
            return None
        if self._end is not None:
            return dual_bound(problem, task.C, self._end.alpha)
        ends = [model.last_alpha(), *([model.mean_of_alpha()] if model.averages else [])]
        return max(dual_bound(problem, task.C, alpha) for alpha in ends)

    def primal_estimate(self, task: Task) -> PrimalEstimate | None:
        """Return the primal of strategy "constant" from ``primal_sample`` examples; None where those are all."""
        problem, end, size = self._problem, self._end, self.option["primal_sample"]
        if problem is None or end is None or size is None or size >= len(problem.searched_ids):
            return None
        return self._estimate_at(end, task, self._fresh_sample(task, size))

    def _better_end(self, task: Task, model: SampledModel) -> End:
        """Return the mean of the points or the last of them, whichever has the lower primal on a fresh sample."""
        ids = self._fresh_sample(task, min(_MOST_COMPARED, self.option["primal_sample"] or _MOST_COMPARED))
        return min((model.mean(), model.last()), key=lambda end: self._estimate_at(end, task, ids).value)

    def _fresh_sample(self, task: Task, size: int) -> IntArray:
        """Return so many examples, or all of them."""
        assert self._problem is not None
        drawable = self._problem.searched_ids
        return drawable[np.sort(task.rng.choice(len(drawable), min(size, len(drawable)), replace=False))]

    def _estimate_at(self, end: End, task: Task, ids: IntArray) -> PrimalEstimate:
        """Return the primal of an end as a sample has it."""
        problem, model = self._problem, self._model
        assert problem is not None
        assert model is not None
        assert isinstance(model.sampled, UntabledCuts)
        model.sampled.score_at(end.weights, ids, np.flatnonzero(end.weights.coef))
        found, _ = self._search(problem, ids, end.weights)
        if end.norm2 is None:
            end.norm2 = problem.square(end.weights.coef, is_single=problem.is_single)
        return _primal_estimate(end.norm2, task.C, found.values, len(ids), len(problem.searched_ids))

    def _epsilon_rule(self, task: Task, gap: float | None, last: Record) -> tuple[str, str]:
        """Say by how much the last cut was violated."""
        violation = last.get("violation", 0.0)
        found = f"the last one was violated by {violation:.3g}" if violation > self.option["epsilon"] else ""
        return "for a cut that is violated by no more", found

    # ------------------------------------------------------------------------------------------------- Algorithm 3

    def _linear(self, task: Task) -> Iterator[Iterate]:
        problem, watch = self._problem, _watch()
        assert problem is not None
        cuts = TabledCuts(problem)
        model = self._model = self._new_model(task, watch, cuts)
        self._begin(task, cuts, epsilon=self.option["epsilon"] * problem.total_weight)
        epsilon, tries = Annealed(self.option["epsilon"] * problem.total_weight, self.option["annealing"]), 0
        while True:
            with watch("oracle"):
                found, _ = self._search(problem, problem.all_ids, model.weights)
            violation = found.value - model.slack
            epsilon.lower_to(violation)
            is_last = violation <= epsilon.last
            point: DenseWeights = model.weights
            primal = 0.5 * point.norm2() + task.C * found.value
            if model.n_points > 2 and model.n_points - self._n_in_mean >= _MEAN_SHARE * model.n_points:
                mean, primal_of_mean = self._mean(task, model)
                if primal_of_mean < primal:
                    point, primal = mean, primal_of_mean
            yield Iterate(point, primal, is_last=is_last, details=self._details(violation, tries=tries))
            places, shares, tries = self._draw(task.rng, found, model.slack + epsilon.now)
            if found.loss - float(shares @ found.dots[places]) <= model.slack:
                continue  # no try is violated at all: such a cut would change nothing
            with watch("oracle"):
                _, planes = self._search(problem, found.examples[places], model.weights)
            cuts.put(found.loss, planes, shares)
            self._take_cut(task, violation)

    def _new_model(self, task: Task, watch: Stopwatch, cuts: SampledCuts) -> SampledModel:
        """Return a model without cuts; samples of all examples have no noise that a mean could lessen."""
        assert self._problem is not None
        averages = self.option["averaging"] and self.option["sample_size"] < len(self._problem.searched_ids)
        return SampledModel(self._problem, task.C, self.option["prune_after"], watch, cuts, averages=averages)

    def _mean(self, task: Task, model: SampledModel) -> tuple[DenseWeights, float]:
        """Return the mean of the points so far, and its primal."""
        self._n_in_mean = model.n_points
        with model.watch("weights"):
            mean = model.mean().weights
        with model.watch("oracle"):
            return mean, task.problem.primal(mean, task.C, squared=False)

    def _draw(self, rng: np.random.Generator, found: FoundPlanes, needed: float) -> tuple[IntArray, FloatArray, int]:
        """Draw samples until the cut of one is worth more than ``needed``; return it, or the best, and how many were drawn."""
        best, best_value, tries = (np.zeros(0, np.int64), np.zeros(0)), -np.inf, 0
        while tries < self.option["resample"]:
            tries += 1
            places, shares = self._sample(rng, found)
            value = found.loss - float(shares @ found.dots[places])
            if value > best_value:
                best, best_value = (places, shares), value
            if value > needed or len(places) == len(found.examples):
                break
        return *best, tries

    def _sample(self, rng: np.random.Generator, found: FoundPlanes) -> tuple[IntArray, FloatArray]:
        """Return a sample of I as ascending places, and what each plane counts in g: s_i over its chance to be drawn."""
        n, r = len(found.examples), min(self.option["sample_size"], len(found.examples))
        if self.option["sampling"] != "violation" or r == n:
            places = np.sort(rng.choice(n, r, replace=False))
            return places, n / r * found.weights[places]
        chances = inclusion_chances(found.values, r)
        places = systematic_sample(rng, chances)
        return places, found.weights[places] / chances[places]

    # ------------------------------------------------------------------------------------------------- Algorithm 2

    def _constant(self, task: Task) -> Iterator[Iterate]:
        problem, watch, n_quiet = self._problem, _watch(), 0
        assert problem is not None
        cuts = UntabledCuts(problem)
        model = self._model = self._new_model(task, watch, cuts)
        assert isinstance(model.weights, ExpansionWeights)
        self._begin(task, cuts, epsilon=self.option["epsilon"] * problem.total_weight)
        epsilon = Annealed(self.option["epsilon"] * problem.total_weight, self.option["annealing"])
        drawable = problem.searched_ids
        n = len(drawable)
        r = min(self.option["sample_size"], n)
        samples = Samples(task.rng, n, r, in_rounds=self.option["sampling"] == "uniform")
        while True:
            ids = drawable[samples.draw()]
            with watch("scores"):
                cuts.score(model.weights, ids)
            with watch("oracle"):
                found, planes = self._search(problem, ids, model.weights)
            violation = n / r * found.value - model.slack
            n_quiet = n_quiet + 1 if violation <= epsilon.now else 0
            if n_quiet >= self.option["quiet"] and epsilon.now > epsilon.last:
                epsilon.lower_to(epsilon.now)
                n_quiet = 0
            estimate = _primal_estimate(model.norm2, task.C, found.values, r, n)
            yield Iterate(
                is_last=n_quiet >= self.option["quiet"], details=self._details(violation, estimate=estimate, tries=1)
            )
            if violation > epsilon.now:
                cuts.put(n / r * found.loss, planes, n / r * found.weights)
                self._take_cut(task, violation)

    # ---------------------------------------------------------------------------------------------------- both

    def _begin(self, task: Task, cuts: SampledCuts, epsilon: float) -> None:
        """Begin with samples of the cuts that hold the objective of a low-rank kernel up around its optimum."""
        problem, model, n_components = self._problem, self._model, self.option["start_components"]
        if n_components is None:
            return
        assert problem is not None
        assert model is not None
        seed = int(task.rng.integers(2**31))
        for scores in points_of_low_rank_cuts(problem, task.C, epsilon, n_components, seed, model.watch):
            point = DenseWeights(problem.n_weights)
            point.become(scores)
            found, _ = self._search(problem, problem.all_ids, point)
            places, shares = self._sample(task.rng, found)
            _, planes = self._search(problem, found.examples[places], point)
            cuts.put(found.loss, planes, shares)
            model.keep_pending()
        if model.size:
            model.solve(_QP_SHARE * epsilon * task.C)

    def _search(
        self, problem: KernelScores, ids: IntArray, weights: DenseWeights
    ) -> tuple[FoundPlanes, _core.PlaneBatch]:
        """Return the most violated planes of examples, without those of weight 0, and the same as the core has them."""
        planes = problem.separate(ids, weights, precise=True)
        examples = planes.examples().astype(np.int64)
        s = np.ones(len(examples)) if problem.sample_weight is None else problem.sample_weight[examples]
        return FoundPlanes(examples, s, planes.losses(), problem.space.dots(planes, weights.exact)), planes

    def _take_cut(self, task: Task, violation: float) -> None:
        """Make the pending cut one of the model's and move w."""
        model = self._model
        assert model is not None
        model.keep_pending()
        model.solve(max(_QP_SHARE * task.C * violation, _EPSILON_SHARE * self.option["epsilon"] * task.C_total))

    def _details(
        self,
        violation: float,
        *,
        tries: int,
        estimate: PrimalEstimate | None = None,
    ) -> Record:
        model, problem = self._model, self._problem
        assert model is not None
        assert problem is not None
        added, dropped = model.n_added, model.n_dropped
        model.n_added = model.n_dropped = 0  # an iteration may leave the model as it is
        return {
            "planes": model.sampled.n_planes,
            "cuts": model.size,
            "cuts_active": model.n_active,
            "cuts_added": added,
            "cuts_dropped": dropped,
            "violation": problem.mean_of(violation),
            "model_value": model.dual,
            "primal_estimate": estimate and estimate.value,
            "primal_interval": estimate and estimate.interval,
            "tries": tries,
            "kernel_values": problem.n_kernel_values,
            "qp_tolerance": model.tolerance,
            **model.watch.read(),
        }


class Samples:
    """Uniform samples of r out of n places: in rounds, each through all places in random order, or each by itself."""

    def __init__(self, rng: np.random.Generator, n: int, r: int, *, in_rounds: bool) -> None:
        self._rng, self._n, self._r = rng, n, r
        self._in_rounds = in_rounds
        self._left: IntArray = np.zeros(0, np.int64)  # of this round, in random order

    def draw(self) -> IntArray:
        """Return the next sample, ascending."""
        if not self._in_rounds:
            return np.sort(self._rng.choice(self._n, self._r, replace=False))
        if len(self._left) < self._r:
            # What is left is the beginning of the next round, so that it does not come twice in one sample.
            others = np.setdiff1d(np.arange(self._n), self._left, assume_unique=True)
            self._left = np.concatenate([self._left, self._rng.permutation(others)])
        sample, self._left = self._left[: self._r], self._left[self._r :]
        return np.sort(sample)


class Annealed:
    """ε of an iteration: large at first, so that early cuts are clearly violated, and halved each time that it is reached."""

    def __init__(self, last: float, first: float) -> None:
        self.last = last
        self.now = last * first

    def lower_to(self, violation: float) -> None:
        """Halve ε until the violation is above it, or ε is what was asked for."""
        while violation <= self.now and self.now > self.last:
            self.now = max(0.5 * self.now, self.last)


def _watch() -> Stopwatch:
    return Stopwatch("scores", "oracle", "gram", "qp", "weights")


def _primal_estimate(norm2: float, C: float, values: FloatArray, r: int, n: int) -> PrimalEstimate:
    """Return ½‖w‖² + C (n/r) Σ s_i H_i of a sample of r out of n, and where the primal lies with a confidence of 95 %.

    ``values`` are the s_i H_i above 0. The sample is drawn without replacement, so that one of all examples is exact. It must
    not depend on w: those of a round do, whose earlier ones w was fitted to, and their estimates lean upwards.
    """
    mean = values.sum() / r
    variance = max(float(np.sum(values**2)) - r * mean**2, 0.0) / max(r - 1, 1)
    error = np.sqrt(variance / r * (n - r) / max(n - 1, 1))
    estimate = 0.5 * norm2 + C * n * mean
    width = _STANDARD_ERRORS * C * n * error
    # The slacks are not below 0.
    return PrimalEstimate(float(estimate), (float(max(estimate - width, 0.5 * norm2)), float(estimate + width)))


def inclusion_chances(violations: FloatArray, r: int) -> FloatArray:
    """Return chances to be in a sample that sum to r, half alike and half in proportion to the violations, none above 1."""
    total = violations.sum()
    n = len(violations)
    shares = np.full(n, 1.0 / n)
    if total > 0.0:
        shares = _EVEN_SHARE / n + (1.0 - _EVEN_SHARE) * violations / total
    chances = np.zeros(n)
    is_sure = np.zeros(n, bool)
    # Those whose chance comes out above 1 are sure to be drawn; the others share what is left.
    while True:
        rest = r - np.count_nonzero(is_sure)
        chances = np.where(is_sure, 1.0, rest * shares / shares[~is_sure].sum())
        if not np.any(chances > 1.0):
            return chances
        is_sure |= chances >= 1.0


def systematic_sample(rng: np.random.Generator, chances: FloatArray) -> IntArray:
    """Return ascending places drawn without replacement, each with its chance: one for every whole number that their sum passes.

    The order in which they are summed is random, so that all pairs may come together.
    """
    order = rng.permutation(len(chances))
    ends = rng.random() + np.cumsum(chances[order])
    passed = np.floor(ends) > np.floor(np.concatenate([[ends[0] - chances[order[0]]], ends[:-1]]))
    return np.sort(order[passed])
