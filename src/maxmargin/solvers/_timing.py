"""Where the time of an iteration goes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Stopwatch:
    """Adds up seconds under names."""

    def __init__(self, *names: str) -> None:
        self._laps = dict.fromkeys(names, 0.0)

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        """Count the time of a ``with`` block under ``name``."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._laps[name] += time.perf_counter() - start

    def read(self) -> dict[str, float]:
        """Return the seconds by name and start again from 0."""
        laps = {f"time_{name}": seconds for name, seconds in self._laps.items()}
        self._laps = dict.fromkeys(self._laps, 0.0)
        return laps
