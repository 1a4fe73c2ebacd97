"""The built-in models: scores that are linear in features, under a structure."""

from maxmargin.models._sequences import Sequences
from maxmargin.models.binary import Binary
from maxmargin.models.chain import Chain
from maxmargin.models.labelling import Labelling, best_labelling
from maxmargin.models.multiclass import Multiclass
from maxmargin.models.pairwise import Pairwise

__all__ = ["Binary", "Chain", "Labelling", "Multiclass", "Pairwise", "Sequences", "best_labelling"]
