"""The built-in models: scores that are linear in features, under a structure."""

from maxmargin.models._sequences import Sequences
from maxmargin.models.binary import Binary
from maxmargin.models.chain import Chain
from maxmargin.models.multiclass import Multiclass

__all__ = ["Binary", "Chain", "Multiclass", "Sequences"]
