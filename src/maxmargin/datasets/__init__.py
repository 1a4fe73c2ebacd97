"""Data sets: a small one that comes with the package, and loaders for the well-known ones.

`load_ewt_sample` needs nothing.  The others read the folder named by the environment variable
``MAXMARGIN_DATA``, then a download where the set is free to download (checksum verified, kept in
``~/.cache/maxmargin``).
"""

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
    "RecordData",
    "Records",
    "Table",
    "TaggedSentences",
    "TaggingData",
    "load_adult",
    "load_bc2gm",
    "load_conll2000",
    "load_covtype",
    "load_ewt_sample",
    "load_jnlpba",
    "load_ocr_letters",
    "load_ud_english_ewt",
    "load_wnut17",
]
