"""CoNLL-2000 in the features that every tool was timed on: SVM-hmm files of the folder named by MAXMARGIN_DATA.

load("train")                       stacked sequences and label numbers
tag_names()                         the chunk tags by label number
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any


def features_file(part: str) -> Path:
    """Return the path of the features of "train" or "test"."""
    return Path(os.environ["MAXMARGIN_DATA"]) / "features" / f"conll2000.{part}.svmhmm.gz"


def load(part: str, n_features: int | None = None) -> tuple[Any, Any]:
    """Return stacked sequences and label numbers; the features are all 1 and take one byte each.

    Features above ``n_features``, which training has not seen, are left out.
    """
    import numpy as np

    import maxmargin as mm

    extra: Any = "error" if n_features is None else "ignore"
    X, lengths, tags = mm.files.read_svm_hmm(
        features_file(part), n_features, extra_features=extra, stacked=True, dtype=np.float32
    )
    X.data = X.data.astype(np.uint8)
    data = mm.models.Sequences(X, lengths)
    return data, np.split((tags - 1).astype(np.int32), data.offsets[1:-1])


def tag_names() -> list[str]:
    """Return the chunk tags by label number."""
    numbers = json.loads((Path(os.environ["MAXMARGIN_DATA"]) / "features" / "conll2000.tags.json").read_text())
    return sorted(numbers, key=numbers.__getitem__)
