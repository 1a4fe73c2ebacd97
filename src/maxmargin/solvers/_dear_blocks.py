"""The blocks of block-dual where a search takes far longer than a visit without one: those of models in Python.

A pass that searches all examples at one w gives bounds, but its planes are all of that w, and the next w overshoots the optimum
along what they have in common. So a pass goes over the examples in parts here: the oracle is asked for a part, and all blocks
are swept before it is asked for the next. (SDM, DCD and Frank-Wolfe go from one example to the next; what few of them teach is
brought to all others in between here, which takes no search.) Such a pass gives the dual. Of the gap it gives a guess, the sum
of the gaps of the blocks when they were searched; where that is small enough, a pass at one w follows, which gives bounds. So it
does after 2, 4, 8, … passes, and where max_time leaves no more than one: the point that is returned is one that was evaluated.

Where sweeps take long, and all the more where the gap hardly falls, blocks hinder each other: all planes are moved together from
then on, after passes at one w. Passes are at one w, too, where the number of sweeps that follow a pass is given.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from maxmargin.problems.base import IntArray
from maxmargin.solvers._forecast import Hindsight
from maxmargin.solvers._joint_ascent import JointAscent
from maxmargin.solvers._plane_blocks import PlaneBlocks
from maxmargin.solvers.base import Iterate, Task

# A pass has so many parts, and more where a search takes longer than so many rows could be read in; or fewer, for each has so
# many examples at least, or so many for each process where a search takes that long.
_PARTS, _MORE_PARTS, _SLOW_SEARCH, _LEAST_PART = 16, 64, 2e4, 4
# All planes are moved together where a pass takes so many times as long as that and the searches of a pass; fewer times where the
# estimates of the gap have fallen by less than this a pass, in logarithms, over the last eight.
_LONG_SWEEPS, _LONG_FOR_LITTLE, _SLOW_PASSES = 3.0, 1.2, 0.05
# The gap after a pass is so many times the sum of what its parts met, from the least to the most; at first as a rule.
_AFTER_PARTS, _USUALLY = (0.3, 1.2), 0.7


class DearBlocks(PlaneBlocks):
    """Blocks whose passes go over the examples in parts."""

    can_overshoot = False

    def __init__(self, task: Task, option: dict[str, Any]) -> None:
        super().__init__(task, option)
        self._after_parts = Hindsight(*_AFTER_PARTS, _USUALLY)
        self._forecast.hindsights.append(self._after_parts)
        self._pass_seconds = 0.0  # of searches, in the longest pass so far
        self._met = np.inf  # the gap, as the last pass in parts met it

    @property
    def go_in_parts(self) -> bool:
        """Whether the next pass is to go over the examples in parts."""
        return self._sweeps is None and not self._moves_together

    @property
    def want_bounds(self) -> bool:
        """Whether bounds at the w that the last pass left may well be close enough, or time is left for nothing else."""
        return self._seems_close or self._time_is_short

    @property
    def _seems_close(self) -> bool:
        return self._after_parts.ratio * self._swept_share <= self.task.tol

    @property
    def _time_is_short(self) -> bool:
        return self.task.seconds_left <= self._pass_seconds

    def pass_in_parts(self, *, skips_satisfied: bool) -> Iterate:
        """Search one part of the examples after another, each at the w that sweeps with the parts before it left.

        Models in Python see w in double precision, always.
        """
        ids = self._unsatisfied() if skips_satisfied else self._ids
        slacks = np.zeros(self._problem.n_examples)
        met = work = 0.0
        n_before = self._n_added
        self._shown = self.weights
        for part in self._parts(ids):
            self._search(part, precise=True)
            slacks[part] = self._slacks[part]
            self._visit_found(precise=True)
            met += self._swept_gap
            # What the part met, as all would have.
            self._set_tolerance(self._swept_gap * len(ids) / len(part))
            self._sweep_while_it_pays(None, precise=True)
            self._sum_weights()
            work += self._work
            if self._time_is_short:
                break
        self._slacks, self._swept_gap, self._met = slacks, met, met
        self._last_dual = self.dual(afresh=False)
        self._after_parts.met = met
        self._forecast.expect(self._swept_share)
        self._gaps.append(met)
        self._join_forces(work, self._n_added - n_before)
        return Iterate(self.weights, dual=self._last_dual, details={"gap_estimate": met, **self._details()})

    def unfinished(self) -> Iterate:
        """Return the point of the current α, and what its primal may be, by what the last pass met of the gap."""
        left = super().unfinished()
        assert left.dual is not None
        return replace(left, primal=left.dual + self._met if self._met < np.inf else None, is_precise=False)

    def _details(self) -> dict[str, Any]:
        details = super()._details()
        self._pass_seconds = max(self._pass_seconds, details["time_oracle"])
        return details

    def _parts(self, ids: IntArray) -> list[IntArray]:
        is_slow = self._search_cost > _SLOW_SEARCH
        least = _LEAST_PART * self._problem.n_jobs if is_slow else _LEAST_PART
        n_parts = max(1, min(_MORE_PARTS if is_slow else _PARTS, len(ids) // least))
        return [np.sort(part) for part in np.array_split(self.task.rng.permutation(ids), n_parts)]

    def _join_forces(self, work: float, n_added: int) -> None:
        """Move all planes together, from now on, where passes in parts take far longer, change little, or find no plane."""
        if not JointAscent.can_help(self._problem, self.sets.n_planes):
            return
        instead = self._search_cost * len(self._ids) + self._joint_work(self._last_sweep_work)
        finds_nothing = n_added == 0 and not self._seems_close
        if finds_nothing or work > (_LONG_FOR_LITTLE if self._is_slow else _LONG_SWEEPS) * instead:
            self._moves_together = True
            with self.watch("ascent"):
                self._ascend_together()

    @property
    def _is_slow(self) -> bool:
        gaps = self._gaps
        return len(gaps) == gaps.maxlen and gaps[-1] > np.exp(-_SLOW_PASSES * (len(gaps) - 1)) * gaps[0]

    def _would_take_longer(self) -> bool:
        return not self.go_in_parts and super()._would_take_longer()  # else passes in parts tell

    @property
    def _patience(self) -> int | None:
        """Blocks wait for no pass while a sweep over all of them takes little beside a search."""
        return None if self.go_in_parts else super()._patience
