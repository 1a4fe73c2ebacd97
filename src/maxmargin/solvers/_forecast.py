"""What the gap of block-dual is likely to be: which passes can do without bounds, and which bounds may be the last.

Bounds take a search of all examples at one w. Sweeps meet the gap of each block when they visit it, which takes no time of its
own; the sum of these is the gap to a factor, and bounds tell afterwards which factor it was.
"""

from __future__ import annotations

import numpy as np

# The relative gap below which most planes are known.
CLOSE = 0.1
# What bounds find, over what the last sweep met before them: least and most, after passes without bounds and after the sweeps at
# a change of C.
_AFTER_PASSES, _AFTER_CHANGE = (1.0, 2.5), (0.3, 1.2)
# What the mean over an iteration's sweeps leaves of the gap at its end.
MEAN_LEAVES = 0.7
# What the second iteration of a run leaves of the relative gap.
_USUAL_FALL = 0.3
# What the first gap of a resumed run is at least of that of the run before it, at a C about twice as large.
_USUAL_GROWTH = 1.5


class Hindsight:
    """The ratio of the gap to what sweeps met of it: what the last bounds told, within limits; at first the most if not given."""

    def __init__(self, least: float, most: float, first: float | None = None) -> None:
        self._limits = least, most
        self.ratio = most if first is None else first
        self.met = 0.0  # before the bounds to come; 0 where they tell nothing

    def learn(self, gap: float) -> None:
        """Learn from bounds."""
        if self.met > 0.0:
            self.ratio = float(np.clip(gap / self.met, *self._limits))
        self.met = 0.0


class Forecast:
    """The relative gaps of the last two iterations, measured or expected, and what bounds taught about expectations."""

    def __init__(self) -> None:
        self._first = np.inf  # of this run or an earlier one of the blocks, inf before that
        self.after_passes, self.after_change = Hindsight(*_AFTER_PASSES), Hindsight(*_AFTER_CHANGE)
        self.hindsights = [self.after_passes, self.after_change]
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget the last gaps: C has changed."""
        self._before = self.last = np.inf
        self.is_close = False

    def expect(self, relative: float) -> None:
        """Take what an iteration left open, as a share of the primal, or is likely to have left."""
        self._before, self.last = self.last, relative
        self.is_close |= relative <= CLOSE

    def learn(self, gap: float, relative: float) -> None:
        """Take a gap that bounds told."""
        if self.last == np.inf or not self.has_begun:
            self._first = relative
        self.expect(relative)
        for hindsight in self.hindsights:
            hindsight.learn(gap)

    @property
    def has_begun(self) -> bool:
        """Whether there were bounds, in this run or an earlier one."""
        return self._first < np.inf

    def comes_near(self, wanted: float) -> bool:
        """Return whether the gap is within this if it falls as much as the last time, or by ``_USUAL_FALL`` at the first."""
        if self.last == np.inf:
            return _USUAL_GROWTH * self._first <= wanted
        fall = self.last / self._before if 0.0 < self._before < np.inf else _USUAL_FALL
        return bool(MEAN_LEAVES * fall * self.last <= wanted)
