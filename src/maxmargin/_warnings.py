"""Warnings that point at the user's line."""

from __future__ import annotations

import sys
import warnings


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the caller, however many calls of the library's own lie between."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("maxmargin."):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)
