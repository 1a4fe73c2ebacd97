"""Data sets: a small one that comes with the package, one drawn at random, and loaders for the well-known ones.

`load_ewt_sample` and `make_checkers` need nothing.  The others read the folder named by the environment variable
``MAXMARGIN_DATA``, then a download where the set is free to download (checksum verified, kept in
``~/.cache/maxmargin``).
"""

from maxmargin.datasets.adult_binary import SparseTable, SparseTableData, load_adult_binary
from maxmargin.datasets.generated import make_checkers
from maxmargin.datasets.proteins import Protein, load_side_chains
from maxmargin.datasets.segmentation import (
    SegmentationData,
    SegmentedImages,
    load_msrc_cows,
    load_weizmann_horses,
)
from maxmargin.datasets.tables import (
    OcrData,
    RecordData,
    Records,
    Table,
    load_adult,
    load_covtype,
    load_ocr_letters,
)
from maxmargin.datasets.tagging import (
    TaggedSentences,
    TaggingData,
    load_bc2gm,
    load_conll2000,
    load_ewt_sample,
    load_jnlpba,
    load_ud_english_ewt,
    load_wnut17,
)

__all__ = [
    "OcrData",
    "Protein",
    "RecordData",
    "Records",
    "SegmentationData",
    "SegmentedImages",
    "SparseTable",
    "SparseTableData",
    "Table",
    "TaggedSentences",
    "TaggingData",
    "load_adult",
    "load_adult_binary",
    "load_bc2gm",
    "load_conll2000",
    "load_covtype",
    "load_ewt_sample",
    "load_jnlpba",
    "load_msrc_cows",
    "load_ocr_letters",
    "load_side_chains",
    "load_ud_english_ewt",
    "load_weizmann_horses",
    "load_wnut17",
    "make_checkers",
]
