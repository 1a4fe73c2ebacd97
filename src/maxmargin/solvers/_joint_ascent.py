"""All dual variables at once, where there are few weights: the proximal-point method, with Newton's method in w.

    α ← argmax_α  D(α) − ‖α − ᾱ‖² / 2σ        (one step)        the same as        min_w φ(w),  w_J ≥ 0

φ and its derivatives are in cpp/solvers/proximal_step.hpp. Each step needs a few Newton steps, the free planes of which shrink to
about as many as there are weights while σ grows; both together take tens of passes over the planes where blocks that are visited
one by one push the same few weights back and forth. Every w on the way has an exact primal over the planes and every α an exact
dual.

With up to ``_DIRECT`` weights that planes touch the Newton system is solved directly when few planes are free, as near the end.
When they are many, conjugate gradients are tried first, then those that a sample of the planes preconditions.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from maxmargin import _core
from maxmargin.problems.base import FloatArray, IntArray, Problem
from maxmargin.solvers.base import Task

_DIRECT = 2000
# Beyond so many weights examples share few of them, visits one by one do not crawl, and a step that writes all weights is dear.
_FEW_WEIGHTS = 65536
# Five numbers are kept for each plane.
_MOST_PLANES = 10_000_000
# What all steps together are expected to take: so many Newton steps, each with so many passes over the planes, and so many
# products where these are many. A matrix is made of so many numbers in the time of one in a visit.
_EXPECTED_STEPS, _PASSES_PER_STEP, _PRODUCTS_PER_STEP = 8.0, 3.0, 30.0
_FASTER = 4.0
# The minimum over w is close enough when it leaves this share of the gap open, or of the dual where that is less.
_LEFT_OPEN = 0.01
# φ is known to this share of it, as a sum of many terms.
_ROUNDING = 1e-12
_MOST_NEWTON_STEPS = 60
# σ grows by such a factor after a step that took up to so many Newton steps, and not after more; it shrinks by the last where it
# took them all.
_GROWTH = ((1, 8.0), (3, 4.0), (8, 2.0))
_TOO_LONG = 0.25
# Beyond so many times the scale of α, σ F would drown it in rounding. A later ascent of the same blocks starts so far back.
_MOST_GROWTH, _BACK = 1e8, 64.0
# The squared hinge is smoother by itself, and begins with so many times that scale where its systems are solved directly:
# conjugate gradients take long for a large σ.
_FIRST_SQUARED = 1e3
# A step of Newton's method is good enough with this share of the decrease that the slope promises; less than the least is none.
# After so many halves the next one tried is at least this share of one that is too long.
_ARMIJO, _LEAST_STEP, _HALVINGS, _SHORTEST = 1e-4, 1e-14, 8, 1e-3
# A step that was shortened leaves no more than this share of the slope, unless that takes more tries than so many.
_WOLFE, _MOST_TRIED = 0.5, 40
# Rows of curvature that are summed at once. Where there are more, and more than weights, conjugate gradients are tried first.
_ROWS = 512
# A sample has so many rows for each weight, taken from this many places.
_SAMPLED, _RUNS = 4, 16
# After so many steps that neither raised the dual nor lowered the gap by this share, rounding leaves nothing to gain.
_PATIENCE, _IDLE = 6, 0.02
# Conjugate gradients end at this share of the gradient. They fail after so many products: plain ones, those preconditioned with a
# sample of the rows, and plain ones where there is no other way.
_FORCING = 0.1
_PRODUCTS, _MOST_PRODUCTS = (40, 60), 300


class _Identity:
    """Solves with the matrix that is 1."""

    def __call__(self, vector: FloatArray) -> FloatArray:
        return vector.copy()


class _Factor:
    """Solves with a positive definite matrix, of which it takes the upper triangle, and its memory."""

    def __init__(self, matrix: FloatArray) -> None:
        from scipy.linalg.lapack import dpotrf

        self._factor, self._failed = dpotrf(matrix, overwrite_a=True)

    def __call__(self, vector: FloatArray) -> FloatArray:
        from scipy.linalg.lapack import dpotrs

        solution: FloatArray = vector.copy() if self._failed else dpotrs(self._factor, vector)[0]
        return solution


class _Point(NamedTuple):
    """What φ is like at w."""

    w: FloatArray
    sum: FloatArray  # Σ α ψ
    value: float
    primal: float
    dual: float
    open: float  # what is left to the minimum of φ at most
    n_free: int

    @property
    def gradient(self) -> FloatArray:
        return self.w - self.sum


class JointAscent:
    """Moves the α of all blocks together.

    Starts from w and the dual that they have; they end with α worth no less. ``sigma`` is that of the last ascent of the same
    blocks, if there was one.

    Attributes
    ----------
    w : (n_weights,) array
        The point with the lowest primal so far.
    primal, dual : float
        The primal there and the dual of the blocks, over the planes that they have.
    """

    def __init__(self, task: Task, step: _core.ProximalStep, w: FloatArray, dual: float, sigma: float = 0.0) -> None:
        self._task, self._step = task, step
        self._nonnegative: IntArray = task.problem.nonnegative
        self._scale = step.scale()
        is_smooth = task.loss == "squared_hinge" and step.n_weights <= _DIRECT
        first = _FIRST_SQUARED if is_smooth else 1.0
        self.sigma = max(first * self._scale, sigma / _BACK)
        self.w = w.copy()
        self._starts: tuple[FloatArray, ...] = (self.w,)
        self.primal, self.dual = np.inf, dual
        self._n_failed = 0  # ways to solve the Newton system
        self._n_steps = self._n_passes = self._n_idle = 0

    @staticmethod
    def can_help(problem: Problem, n_planes: int = 0) -> bool:
        """Return whether there are few weights, and no more planes than memory is for."""
        # Features of a kernel are dense: plain conjugate gradients take long, and more weights than that have no other way.
        most = _FEW_WEIGHTS if problem.has_vectors else _DIRECT
        return problem.n_joint_weights <= most and n_planes <= _MOST_PLANES

    @staticmethod
    def work(
        n_weights: float, row_length: float, n_planes: float, pass_work: float, product_share: float = 1.0
    ) -> float:
        """Return what all steps may take, in rows read.

        ``n_weights`` are those that planes touch, ``n_planes`` may have mass, ``pass_work`` is what a pass over them takes, and
        ``product_share`` the share of it that a product with their curvature does.
        """
        matrix = n_planes * n_weights**2 / (_FASTER * row_length)
        # Plain conjugate gradients with nothing to fall back on may take as many products as they are allowed.
        is_small = n_weights <= _DIRECT
        products = _PRODUCTS_PER_STEP * product_share * pass_work
        system = min(matrix, products) if is_small else _MOST_PRODUCTS * pass_work
        return _EXPECTED_STEPS * (_PASSES_PER_STEP * pass_work + system)

    @property
    def gap(self) -> float:
        """The primal less the dual."""
        return self.primal - self.dual

    def read(self) -> tuple[int, int]:
        """Return the Newton steps and the passes over all planes since the last call."""
        made = self._n_steps, self._n_passes
        self._n_steps = self._n_passes = 0
        return made

    def advance(self, wanted: float) -> bool:
        """Make one step, which the blocks take over; return whether another one may bring more towards a gap of ``wanted``."""
        before, n_before, is_stuck = (self.gap, self.dual), self._n_steps, False
        here = self._start()
        while not (is_stuck or self._is_solved(here, wanted)) and self._n_steps < n_before + _MOST_NEWTON_STEPS:
            there = self._search_line(here, self._direction(here))
            is_stuck, here = there is None, there or here
        self._step.accept()
        if here.dual >= self.dual:
            self._step.take()
            self.dual = here.dual
        self._starts = (self._clipped(here.sum), here.w)
        is_idle = self.gap > (1.0 - _IDLE) * before[0] and self.dual < (1.0 + _IDLE) * before[1]
        self._n_idle = self._n_idle + 1 if is_idle else 0
        self._adapt(self._n_steps - n_before)
        return self.gap > wanted and self._n_idle < _PATIENCE and not self._task.is_over

    def ascend(self, wanted: float) -> None:
        """Make steps until the gap is as wanted, or they bring no more."""
        while self.advance(wanted):
            pass

    def _start(self) -> _Point:
        """Return where φ is lower: at the w where the last step ended or at that of its α, which is close where α is."""
        points = [self._evaluate(w) for w in self._starts]
        best = min(points, key=lambda point: point.value)
        # α is that of the last point.
        return best if best is points[-1] else self._evaluate(best.w)

    def _is_solved(self, here: _Point, wanted: float) -> bool:
        matters = min(here.primal - here.dual, self.dual) if self.dual > 0.0 else here.primal
        is_closed = here.open <= max(_LEFT_OPEN * matters, _ROUNDING * abs(here.value))
        return is_closed or self.primal - max(self.dual, here.dual) <= wanted or self._task.is_over

    def _adapt(self, n_made: int) -> None:
        self._scale = max(self._scale, self._step.scale())
        factor = next((factor for most, factor in _GROWTH if n_made <= most), 1.0)
        if n_made >= _MOST_NEWTON_STEPS:
            factor = _TOO_LONG
        self.sigma = min(factor * self.sigma, _MOST_GROWTH * self._scale)
        if n_made == 0 and self.sigma < _MOST_GROWTH * self._scale:
            self._n_idle = 0  # nothing was tried yet

    def _evaluate(self, w: FloatArray) -> _Point:
        self._n_passes += 1
        total = np.empty_like(w)
        found = self._step.move(w, self.sigma, total)
        norm2 = float(w @ w)
        clipped = self._clipped(total)
        clipped2 = float(clipped @ clipped)
        primal, dual = 0.5 * norm2 + found.cost, found.linear - 0.5 * clipped2
        if primal < self.primal:
            self.primal, self.w = primal, w
        # φ(w) less the proximal dual of α.
        is_open = 0.5 * norm2 - float(w @ total) + 0.5 * clipped2
        return _Point(w, total, 0.5 * norm2 + found.value, primal, dual, is_open, found.n_free)

    def _clipped(self, w: FloatArray) -> FloatArray:
        """Return w with the weights that must be ≥ 0 raised to that."""
        clipped = w.copy()
        clipped[self._nonnegative] = np.maximum(clipped[self._nonnegative], 0.0)
        return clipped

    def _direction(self, here: _Point) -> FloatArray:
        """Return Newton's direction, over the weights that are touched and not held at 0."""
        self._n_steps += 1
        gradient = here.gradient
        is_free = (here.sum != 0.0) | (here.w != 0.0)
        held = self._nonnegative
        is_free[held] &= (here.w[held] > 0.0) | (gradient[held] < 0.0)
        free = np.flatnonzero(is_free)
        direction = np.zeros_like(gradient)
        direction[free] = -self._solve(free, gradient[free], here.n_free)
        return direction

    def _solve(self, free: IntArray, gradient: FloatArray, n_planes: int) -> FloatArray:
        """Solve the Newton system over some weights, in the way that did last time or, where it fails, the next one."""
        if len(free) > _DIRECT:
            return self._solve_by_products(free, gradient, _Identity(), _MOST_PRODUCTS)[0]
        n_sampled = _SAMPLED * len(free)
        while n_planes > max(len(free), _ROWS) and self._n_failed < len(_PRODUCTS):
            some = _Identity() if self._n_failed == 0 else self._factor(free, n_planes, n_sampled)
            solution, is_close = self._solve_by_products(free, gradient, some, _PRODUCTS[self._n_failed])
            if is_close:
                return solution
            self._n_failed += 1
        return self._factor(free, n_planes, n_planes)(gradient)

    def _factor(self, free: IntArray, n_planes: int, n_sampled: int) -> _Factor:
        """Return how to solve with the Hessian, by all of its rows or so many from all over the blocks, scaled up."""
        from scipy.linalg.blas import dsyrk  # takes long to import, and few runs need it

        step, hessian = self._step, np.zeros((len(free), len(free)), order="F")
        n_runs = 1 if n_sampled >= n_planes else _RUNS
        rows = np.empty((max(min(n_sampled // n_runs, _ROWS), step.most_rows), step.n_weights))
        starts, n_rows = np.linspace(0, step.n_blocks, n_runs + 1).astype(int), 0
        for block, end in itertools.pairwise(starts.tolist()):
            most = n_rows + n_sampled / n_runs
            while block < end and n_rows < most and not self._task.is_over:
                block, n_written = step.write_curvature(block, rows)
                hessian = dsyrk(1.0, rows[:n_written, free].T, 1.0, hessian, overwrite_c=True)
                n_rows += n_written
        if n_runs > 1:
            hessian *= n_planes / max(n_rows, 1)
        hessian[np.diag_indices_from(hessian)] += 1.0
        return _Factor(hessian)

    def _solve_by_products(
        self, free: IntArray, gradient: FloatArray, precondition: _Factor | _Identity, most_products: int
    ) -> tuple[FloatArray, bool]:
        """Return what conjugate gradients get to, and whether that is close."""
        solution = np.zeros_like(gradient)
        residual = gradient.copy()
        direction = precondition(residual)
        square = first = float(residual @ direction)
        whole, product = np.zeros(self._step.n_weights), np.empty(self._step.n_weights)
        for _ in range(most_products):
            if square <= _FORCING**2 * first or self._task.is_over:
                return solution, True
            whole[free] = direction
            self._step.multiply_curvature(whole, product)
            image = direction + product[free]
            length = square / float(direction @ image)
            solution += length * direction
            residual -= length * image
            scaled = precondition(residual)
            before, square = square, float(residual @ scaled)
            direction = scaled + square / before * direction
        return solution, square <= _FORCING**2 * first

    def _search_line(self, here: _Point, direction: FloatArray) -> _Point | None:
        """Return a point along the direction with a lower φ; None if rounding leaves none.

        φ' may grow by orders of magnitude within one step: where halves do not help, a chord says how much shorter it must be.
        What is short enough then may be far too short, and is stretched again until φ' has fallen.
        """
        gradient, length, too_short, too_long, n_tried = here.gradient, 1.0, 0.0, np.inf, 0
        slope, best = float(gradient @ direction), None
        while length > _LEAST_STEP and n_tried < _MOST_TRIED and not self._task.is_over:
            n_tried += 1
            w = self._clipped(here.w + length * direction)
            there = self._evaluate(w)
            slope_there = float(there.gradient @ direction)
            if there.value <= here.value - _ARMIJO * float(gradient @ (here.w - w)):
                best, too_short = there, length
                if too_long == np.inf or slope_there >= _WOLFE * slope:
                    return there
            else:
                too_long = length
            if too_short > 0.0:
                length = 0.5 * (too_short + too_long)
            else:
                rise = slope_there - slope
                is_far = n_tried > _HALVINGS and rise > 0.0
                length *= min(max(-slope / rise, _SHORTEST), 0.5) if is_far else 0.5
        self._evaluate(here.w if best is None else best.w)  # α is that of the last point
        return best
