"""How data sets print: their parts and sizes, not a corpus."""

from __future__ import annotations

from dataclasses import fields
from typing import Any


class Summary:
    """A dataclass that prints what it holds in a line."""

    __slots__ = ()

    def __repr__(self) -> str:
        parts = (f"{field.name}: {_size(getattr(self, field.name))}" for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(parts)})"


def _size(value: Any) -> str:
    if hasattr(value, "shape"):
        return " × ".join(f"{n:,}" for n in value.shape)
    if isinstance(value, (list, tuple, dict)):
        return f"{len(value):,}"
    return repr(value)
