"""The two halves of a cutting-plane method: the model of the objective made of cuts, and the search for the next cut."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.problems.weights import Cuts, DenseWeights
from maxmargin.solvers._timing import Stopwatch

_MAX_QP_STEPS = 1_000_000
# Planes that no cut of the last few used are not worth valuing again: early ones are wrong everywhere.
_FORGET_AFTER = 10


@dataclass
class StoredCuts:
    """Cuts with their products: all that a later run on the same examples needs of them."""

    cuts: Cuts
    losses: FloatArray
    gram: FloatArray
    at_nonnegative: list[FloatArray]  # (g_k)_J
    planes: _core.PlaneBatch | None


class CutModel:
    """The cuts so far with their QP: max_α Σ α_k c_k − ½‖Σ α_k g_k + μ‖², α ≥ 0, Σ α ≤ C.

    Attributes
    ----------
    weights : DenseWeights
        The w of the current α.
    norm2 : float
        ‖w‖² at that w.
    slack : float
        ξ = max(0, max_k c_k − w·g_k) at that w.
    dual : float
        Σ α_k c_k − ½‖w‖², a lower bound of the optimum for any α.
    """

    # Every so many solves w is summed from the cuts afresh: many small changes leave rounding behind.
    _REFRESH_EVERY = 100

    def __init__(self, problem: Problem, C: float, prune_after: int, watch: Stopwatch) -> None:
        self.cuts: Cuts = problem.new_cuts()
        self.weights = problem.zero_weights()
        self.norm2 = self.slack = self.dual = self.tolerance = 0.0
        self.n_added = self.n_dropped = 0
        self.watch = watch
        self._problem = problem
        self._nonnegative = problem.nonnegative
        self._qp = _core.BudgetQP(C, len(self._nonnegative))
        self._prune_after = prune_after
        self._n_solved = self._n_before = 0
        self._losses: FloatArray = np.zeros(0)
        # By cut: as one matrix they would all be copied for each cut that comes.
        self._at_nonnegative: list[FloatArray] = []
        self._idle = np.zeros(0, np.int64)
        self._alpha: FloatArray = np.zeros(0)  # the α that weights belong to
        self._unclipped: FloatArray = np.zeros(len(self._nonnegative))  # (Σ α g)_J; weights hold the positive part

    @property
    def size(self) -> int:
        """How many cuts the model has."""
        return len(self.cuts)

    @property
    def alpha(self) -> FloatArray:
        """α of the cuts."""
        return self._alpha

    @property
    def losses(self) -> FloatArray:
        """Offsets c of the cuts."""
        return self._losses

    @property
    def n_active(self) -> int:
        """How many cuts have α > 0."""
        return int(np.count_nonzero(self._alpha))

    @property
    def fits_float(self) -> bool:
        """Whether a float32 copy of the weights is close to them."""
        return self.norm2 == 0.0 or 1e-50 < self.norm2 < 1e50

    def store(self, planes: _core.PlaneBatch | None) -> StoredCuts | None:
        """Return the cuts for a later run; None where an interrupt struck between a cut and its products."""
        n_products = {len(self._losses), len(self._qp), len(self._at_nonnegative)}
        if n_products != {self.size}:
            return None
        return StoredCuts(self.cuts, self._losses, self._qp.gram, self._at_nonnegative.copy(), planes)

    def restore(self, stored: StoredCuts) -> None:
        """Start from the cuts of an earlier run; the model has none yet."""
        self.cuts = self._problem.own_cuts(stored.cuts)
        for k, loss in enumerate(stored.losses):
            self._append(loss, stored.gram[k, : k + 1], stored.at_nonnegative[k])

    def pending_value(self, weights: DenseWeights) -> float:
        """Return c − w·g of the pending cut."""
        return self.cuts.pending_loss - self.cuts.pending_dot(weights.exact)

    def keep_pending(self) -> None:
        """Make the pending cut one of the model's."""
        with self.watch("gram"):
            row = self.cuts.keep(self._problem.n_jobs)
        self._append(self.cuts.pending_loss, row, self.cuts.pending_at(self._nonnegative))

    def _append(self, loss: float, row: FloatArray, at_nonnegative: FloatArray) -> None:
        if not (np.isfinite(loss) and np.all(np.isfinite(row))):
            raise ValueError(
                "squares of the features, times losses and sample weights, exceed double precision: scale the features, the "
                "cost or sample_weight down."
            )
        self._qp.add(loss, np.ascontiguousarray(row), at_nonnegative)
        self._losses = np.append(self._losses, loss)
        self._at_nonnegative.append(at_nonnegative)
        self._idle = np.append(self._idle, 0)
        self._alpha = np.append(self._alpha, 0.0)

    def solve(self, tolerance: float) -> None:
        """Solve the QP to a gap of ``tolerance``, move the weights, drop cuts that have long been idle."""
        self.tolerance = tolerance
        with self.watch("qp"):
            self._qp.solve(tolerance, _MAX_QP_STEPS)
            alpha, self.slack = self._qp.alpha, self._qp.slack
        with self.watch("weights"):
            self._move_to(alpha)
        self.dual = float(alpha @ self._losses) - 0.5 * self.norm2
        self._idle = np.where(alpha > 0.0, 0, self._idle + 1)
        self.n_added = self.size - self._n_before
        self._drop(np.flatnonzero(self._idle >= self._prune_after))
        self._n_before = self.size

    def _move_to(self, alpha: FloatArray) -> None:
        """Change the weights to those of another α; the best μ_j = max(0, −(Σ α g)_j) cuts negative parts off."""
        J = self._nonnegative
        w = self.weights.exact
        self._n_solved += 1
        if self._n_solved % self._REFRESH_EVERY == 0:
            self.weights.clear()
            self._alpha = np.zeros_like(alpha)
        else:
            w[J] = self._unclipped
        self.norm2 = self.weights.add_cuts(self.cuts, alpha - self._alpha, self._problem.n_jobs)
        self._alpha = alpha
        if len(J):
            self._unclipped = w[J]
            w[J] = np.maximum(self._unclipped, 0.0)
            self.weights.touch()
            self.norm2 -= float(np.sum(np.minimum(self._unclipped, 0.0) ** 2))

    def _drop(self, old: IntArray) -> None:
        self.n_dropped = len(old)
        if not self.n_dropped:
            return
        self._qp.remove(old)
        self.cuts.remove(old)
        self._losses = np.delete(self._losses, old)
        is_old = set(old.tolist())
        self._at_nonnegative = [row for k, row in enumerate(self._at_nonnegative) if k not in is_old]
        self._idle = np.delete(self._idle, old)
        self._alpha = np.delete(self._alpha, old)


class Separator:
    """Finds the next cut: from the cached planes if they offer one that is violated enough, else by the oracle.

    ``refresh`` < 1 asks the oracle for that portion of the examples at a time, in turn, and tries the cache again after each.
    """

    def __init__(self, problem: Problem, cache_size: int, refresh: float, watch: Stopwatch) -> None:
        self.cache: _core.PlaneCache | None = None
        if cache_size:
            self.cache = _core.PlaneCache(problem.space, cache_size, problem.has_room_for(cache_size))
        self._problem = problem
        self.watch = watch
        n_portions = int(np.ceil(1.0 / refresh))
        self._portions = [part for part in np.array_split(problem.all_ids, n_portions) if len(part)]
        self._next = 0

    @property
    def n_planes(self) -> int:
        """How many planes are cached."""
        return self.cache.n_planes if self.cache is not None else 0

    @property
    def asks_at_once(self) -> bool:
        """Whether the oracle is asked for all examples at a time."""
        return len(self._portions) == 1

    def take_cached(self, model: CutModel, weights: DenseWeights, needed: float) -> bool:
        """Make the best cut of cached planes the model's pending one; return whether it is worth more than ``needed``."""
        if self.cache is None or self.cache.n_planes == 0 or not np.isfinite(needed):
            return False
        with self.watch("cache"):
            self.cache.evaluate(weights.exact, weights.rounded, self._problem.n_jobs)
        self.load_best(model)
        return model.pending_value(weights) > needed

    def load_best(self, model: CutModel, t: float = 1.0) -> None:
        """Make the cut of the best cached planes the model's pending one, at so much of the way from the anchor to w."""
        assert self.cache is not None
        with self.watch("assembly"):
            if self.cache.keeps_vectors:
                total = np.zeros(self._problem.n_weights)
                model.cuts.load(self.cache.add_best(t, self._problem.sample_weight, total), total)
            else:
                model.cuts.assemble(self._problem.space, self.cache.best(t), self._problem.sample_weight)

    def ask(self, model: CutModel, weights: DenseWeights, needed: float, *, precise: bool) -> bool:
        """Make the cut of what the oracle finds at ``weights`` the model's pending one; without a cache no plane of it is kept.

        Return whether it is the exact one: see :meth:`ask_all`.
        """
        if self.cache is not None:
            return self.ask_all(model, weights, needed, precise=precise)
        with self.watch("oracle"):
            self._problem.separate_into(model.cuts, weights, precise=precise)
        return True

    def ask_all(self, model: CutModel, weights: DenseWeights, needed: float = np.inf, *, precise: bool) -> bool:
        """Ask the oracle for all examples, portion by portion; stop early if the cache comes to offer a cut worth ``needed``."""
        found = _core.PlaneBatch()
        for tried in range(1, len(self._portions) + 1):
            with self.watch("oracle"):
                ids = self._portions[self._next]
                batch = self._problem.separate(ids, weights, precise=precise)
            self._next = (self._next + 1) % len(self._portions)
            self.keep(batch, ids, weights)
            found.extend(batch)
            if tried < len(self._portions) and self.take_cached(model, weights, needed):
                return False
        self.forget_unused()
        with self.watch("assembly"):
            model.cuts.assemble(self._problem.space, found, self._problem.sample_weight)
        return True

    def keep(self, batch: _core.PlaneBatch, ids: IntArray, weights: DenseWeights) -> None:
        """Put planes found at ``weights`` into the cache; a cached plane that is better proves the oracle inexact."""
        if self.cache is None:
            return
        with self.watch("cache"):
            if self._problem.can_be_inexact:
                for example in self.cache.improve(batch, ids, weights.exact):
                    self._problem.report_inexact(example)
            self.cache.insert(batch)

    def forget_unused(self) -> None:
        """Drop cached planes that no cut of late used; all examples were searched."""
        if self.cache is not None:
            self.cache.drop_unused(_FORGET_AFTER)
