"""The 1-slack cutting-plane method (Joachims, Finley and Yu 2009, Algorithms 3 and 4).

    min_w  ½‖w‖² + C max_k (c_k − w·g_k)₊        over cuts (c, g) = Σ_i s_i (Δ_i, ψ_i), one plane of each example

    max_α  Σ α_k c_k − ½‖w‖²                      α ≥ 0, Σ α_k ≤ C, w = Σ α_k g_k + μ   (μ ≥ 0 on non-negative weights)

Each iteration solves the QP over the cuts so far, asks for the most violated plane of every example at the new w, and adds
the cut they sum to. Cuts are sums here where the paper has means: its C' and ξ are n·C and ξ/n, and ``epsilon`` counts as in
the paper. Rules of the paper, section 4: warm-started QP of adaptive precision; cuts whose α stayed 0 for ``prune_after`` QPs are
dropped; a cut is first composed from cached planes, and only if that one is not violated enough the oracle is asked. Only a
cut from the oracle can end the training.

``stabilization`` goes beyond the paper: see ``_stabilized.py``, and for kernels ``_sample_start.py``. ``cuts_per_iteration``
adds cuts of other outputs: see ``_extra_cuts.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from maxmargin._parameters import is_integer, is_number
from maxmargin.problems.base import Problem
from maxmargin.solvers._cutting_planes import CutModel, Separator, StoredCuts
from maxmargin.solvers._extra_cuts import COMBINATIONS, NOTHING_ADDED, SOURCES, ExtraCuts, OutputCuts
from maxmargin.solvers._mixed_cuts import MixedCuts
from maxmargin.solvers._sample_start import add_sample_cut
from maxmargin.solvers._stabilized import CachedLineSearch, LineSearchSeparator, ScoredLineSearch, block_passes
from maxmargin.solvers._timing import Stopwatch
from maxmargin.solvers.base import EPSILON, Iterate, Option, Solver, Task

# The share of the last exact violation that a cached cut must reach to be used. Larger values than SVM-struct's 0.1 and a coarser
# QP mean fewer, better cuts where the oracle is fast (benchmarks/one_slack_shares.py).
_CACHED_SHARE = 0.2
# The QP is solved to this share of the last exact violation.
_QP_SHARE = 0.15
# With ε given, the gap at which training stops, as a share of C'ε. SVM-hmm, under the paper's rule, ends at 0.92 (ε = 0.5) and
# 0.84 (ε = 0.1) on CoNLL-2000: who asks for the same ε should get as good a point.
_EPSILON_SHARE = 0.9
# A line search whose last so many exact passes found no better point has reached what float32 can tell apart.
_GIVE_UP_AFTER = 50


class OneSlack(Solver):
    """One slack variable shared by all examples; see the module's text."""

    name = "one-slack"
    losses = frozenset({"hinge"})
    needs = frozenset({"max_oracle"})
    options: ClassVar = {
        "epsilon": EPSILON,
        "cache_size": Option(
            None,
            lambda v: v is None or is_integer(v, 0),
            "an integer ≥ 0 or None",
            "planes cached per example, 0 turns the cache off. None: 10, or 0 where searching is as cheap as valuing planes.",
        ),
        "refresh": Option(
            1.0,
            lambda v: is_number(v) and 0 < v <= 1,
            "a number in (0, 1]",
            "portion of the examples that the oracle is asked for at a time when the cache offers nothing; below 1 not without a "
            "cache, nor with stabilization",
        ),
        "stabilization": Option(
            None,
            lambda v: v in (None, "line-search", "auto"),
            "None, 'line-search' or 'auto'",
            "where planes are searched: at the QP's solution (None), or near the best point by a line search on cached planes; "
            "'auto': by line search unless the problem is so small that passes cost nothing. The line search needs a cache.",
        ),
        "warm_start_passes": Option(
            None,
            lambda v: v is None or is_integer(v, 0),
            "an integer ≥ 0 or None",
            "passes of block coordinate ascent over the examples before the first cut; they become that cut. "
            "None: 0, with stabilization as many as pay.",
        ),
        "cuts_per_iteration": Option(
            1,
            lambda v: is_integer(v, 1),
            "an integer ≥ 1",
            "M, the cuts that an exact iteration adds: the most violated one and others of other outputs (DivMCuts); "
            "above 1 with rescaling='margin' only, and outputs that are labels of places",
        ),
        "extra_cuts": Option(
            "diverse",
            lambda v: v in SOURCES,
            "'diverse', 'm-best', 'random' or 'mixed'",
            "what the other cuts are made of: outputs that differ, the next best ones, random changes of the best, or planes of "
            "this pass and of the one before it, mixed, for which no more searches are made but with stabilization or refresh "
            "below 1",
        ),
        "diversity": Option(
            0.1,
            lambda v: is_number(v) and 0 < v <= 1,
            "a number in (0, 1]",
            "K, the share of labels in which one output should differ from the next, or a random one from the best; the "
            "strengths of diverse search follow it",
        ),
        "initial_strength": Option(
            1.0,
            lambda v: is_number(v) and v > 0,
            "a positive number",
            "λ of the first diverse search: what a label that was used before costs, in units of score",
        ),
        "combination": Option(
            "ordering",
            lambda v: v in COMBINATIONS,
            "'ordering', 'violation' or 'dual'",
            "how outputs become cuts: by their number, by their violation, or so that each cut promises most in the dual",
        ),
        "cut_annealing": Option(
            1.0,
            lambda v: is_number(v) and 0 < v <= 1,
            "a number in (0, 1]",
            "cuts_per_iteration and diversity are multiplied by it after each exact iteration",
        ),
        "prune_after": Option(
            50, lambda v: is_integer(v, 1), "an integer ≥ 1", "drop a cut whose α was 0 in so many QPs in a row"
        ),
    }

    _model: CutModel | None = None
    _separator: Separator | None = None
    _extra: ExtraCuts | None = None
    _n_sampled = 0  # examples whose solution the run started from

    def iterate(self, task: Task, planes: Any = None) -> Iterator[Iterate]:
        """Yield one iterate per QP; see the module's text."""
        problem, C = task.problem, task.C
        epsilon = None if self.option["epsilon"] is None else self.option["epsilon"] * problem.total_weight
        watch = Stopwatch("oracle", "extra", "cache", "assembly", "gram", "qp", "weights")
        model = CutModel(problem, C, self.option["prune_after"], watch)
        cache_size = self._cache_size(problem)
        if self.option["refresh"] < 1.0 and (cache_size == 0 or self._is_stabilized(problem)):
            raise ValueError("solver_options: refresh below 1 works on cached planes, without stabilization.")
        separator = Separator(problem, cache_size, self.option["refresh"], watch)
        stabilized = self._line_search(task, model, separator)
        self._model, self._separator, self._n_sampled = model, separator, 0
        self._extra = None
        if self.option["cuts_per_iteration"] > 1:
            self._extra = (MixedCuts if self.option["extra_cuts"] == "mixed" else OutputCuts)(task, self.option)
        violation = best_primal = np.inf
        n_in_vain = 0
        if planes is not None:
            self._restore(planes, model, separator)

        for step in block_passes(
            task,
            0 if planes is not None else self._n_passes(problem),
            lambda dual: self._wanted_gap(task, dual),
            model,
            separator,
        ):
            yield self._finish(step, task, False, 0.0)
        if planes is None and stabilized and not problem.has_vectors:
            # What is known at w = 0 comes first: an interrupt must find something.
            separator.ask_all(model, model.weights, precise=self.precise)
            yield self._finish(
                Iterate(model.weights, C * max(model.cuts.pending_loss, 0.0), self.precise, 0.0), task, False, 0.0
            )
            self._n_sampled = add_sample_cut(task, model, OneSlack({"stabilization": self.option["stabilization"]}))
        if model.size:
            model.solve(0.0)
            if stabilized:
                stabilized.start_at(model.weights)

        while True:
            target = epsilon if epsilon is not None else 0.5 * task.tol * best_primal / C
            needed = model.slack + max(target, _CACHED_SHARE * violation)
            # Near the optimum w̄ would have to be kept in double too, and the QP's solution no longer jumps.
            is_near = stabilized is None or self.precise or not model.fits_float or n_in_vain >= _GIVE_UP_AFTER
            if stabilized and not is_near:
                is_exact, w = stabilized.separate(needed), stabilized.point
            else:
                is_exact, w = self._separate(model, separator, needed), model.weights

            step = Iterate(dual=model.dual)
            if is_exact:
                step.weights, step.is_precise = w, self.precise
                step.primal = 0.5 * w.norm2() + C * max(model.pending_value(w), 0.0)
                n_in_vain = 0 if step.primal < best_primal else n_in_vain + 1
                best_primal = min(best_primal, step.primal)
                if not is_near and model.pending_value(model.weights) <= model.slack:
                    # A cut found elsewhere may spare the QP's solution; the one found there never does.
                    separator.ask_all(model, model.weights, precise=self.precise)
                violation = model.pending_value(model.weights) - model.slack
            yield self._finish(step, task, not is_exact, violation)

            model.keep_pending()
            if self._extra is not None and is_exact:
                self._extra.add(model, w, precise=self.precise)
            model.solve(self._qp_tolerance(task, violation, best_primal))

    def _separate(self, model: CutModel, separator: Separator, needed: float) -> bool:
        """Make a cut at the QP's solution the pending one, from the cache if that offers one worth ``needed``.

        Return whether it is the exact one.
        """
        if separator.take_cached(model, model.weights, needed):
            return False
        if (
            self._extra is not None
            and separator.asks_at_once
            and self._extra.separate(model, separator, precise=self.precise)
        ):
            return True
        return separator.ask(model, model.weights, needed, precise=self.precise)

    @property
    def model(self) -> CutModel:
        """The cuts of the last run."""
        assert self._model is not None, "there was no run"
        return self._model

    def planes(self) -> StoredCuts | None:
        """Return the cuts and the cached planes."""
        if self._model is None or self._separator is None:
            return None
        cache = self._separator.cache
        return self._model.store(None if cache is None else cache.planes())

    def _restore(self, stored: StoredCuts, model: CutModel, separator: Separator) -> None:
        model.restore(stored)
        if separator.cache is not None and stored.planes is not None:
            separator.cache.insert(stored.planes)

    def _finish(self, step: Iterate, task: Task, from_cache: bool, violation: float) -> Iterate:
        """Add the paper's stopping rule and the history's fields to an iterate."""
        model = self._model
        assert model is not None
        assert self._separator is not None
        if self.option["epsilon"] is not None and step.primal is not None and step.dual is not None:
            # C'ε bounds the violation and the QP's own gap together: what the paper's stop promises at this w.
            wanted = self._epsilon_gap(task)
            if step.primal - step.dual <= wanted:
                step.wanted_gap = wanted
        step.details = {
            "planes": self._separator.n_planes,
            "sampled_examples": self._n_sampled,
            "cuts": model.size,
            "cuts_active": model.n_active,
            "cuts_added": model.n_added,
            "cuts_dropped": model.n_dropped,
            "from_cache": from_cache,
            "violation": task.problem.mean_of(violation),
            "qp_tolerance": model.tolerance,
            **(NOTHING_ADDED if self._extra is None else self._extra.record),
            **model.watch.read(),
        }
        return step

    def _is_stabilized(self, problem: Problem) -> bool:
        return self.option["stabilization"] == "line-search" or (
            self.option["stabilization"] == "auto" and not problem.is_small
        )

    def _line_search(self, task: Task, model: CutModel, separator: Separator) -> LineSearchSeparator | None:
        if not self._is_stabilized(task.problem):
            return None
        line = task.problem.score_line()
        if line is not None:
            return ScoredLineSearch(task.problem, model, task.C, line)
        if separator.cache is None:
            raise ValueError(
                "solver_options: stabilization='line-search' works on cached planes; cache_size must be above 0."
            )
        return CachedLineSearch(task.problem, model, task.C, separator, separator.cache)

    def _n_passes(self, problem: Problem) -> int | None:
        """Return how many passes of block ascent to begin with; None: as many as pay."""
        passes: int | None = self.option["warm_start_passes"]
        if not problem.has_vectors:
            if passes:
                raise ValueError(
                    "solver_options: warm_start_passes need planes with products, which exact kernels have not."
                )
            return 0
        if passes is None and (problem.cheap_oracle or not self._is_stabilized(problem)):
            return 0
        return passes

    def _wanted_gap(self, task: Task, dual: float) -> float:
        return task.tol * dual if self.stops_on_gap else self._epsilon_gap(task)

    def _epsilon_gap(self, task: Task) -> float:
        return _EPSILON_SHARE * float(self.option["epsilon"]) * task.C_total

    def _qp_tolerance(self, task: Task, violation: float, best_primal: float) -> float:
        """Return a gap that is small against what the next cut can change and against what is asked for."""
        floor = 0.01 * task.tol * best_primal if self.stops_on_gap else 0.01 * self.option["epsilon"] * task.C_total
        share = _QP_SHARE if self._separator is not None and self._separator.cache is not None else 0.5 * _QP_SHARE
        return max(share * task.C * violation, floor, 1e-14 * best_primal)

    def _cache_size(self, problem: Problem) -> int:
        size: int | None = self.option["cache_size"]
        if size is not None:
            return size
        return 0 if problem.cheap_oracle else 10
