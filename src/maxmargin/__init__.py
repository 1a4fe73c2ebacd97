"""Max-margin structured prediction with a certificate of optimality.

The estimators (:class:`ChainSVM`, :class:`GraphSVM`, :class:`MulticlassSVM`, :class:`BinarySVM`, :class:`StructuralSVM`)
follow scikit-learn; :func:`train` is the same engine without it; :class:`Model` is what you subclass for outputs of your own, and
:class:`KernelModel` where a kernel scores their parts.
"""

from typing import TYPE_CHECKING, Any

from maxmargin import datasets, files, models
from maxmargin._path import Path, path
from maxmargin._result import Certificate, Solution
from maxmargin._train import train
from maxmargin.graphs import Graph
from maxmargin.kernel_model import KernelModel
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.model import Model
from maxmargin.problems.base import InexactOracleWarning, InexactPredictionWarning

if TYPE_CHECKING:
    from maxmargin.estimators import (
        BinarySVM,
        ChainSVM,
        EstimatorPath,
        GraphSVM,
        MulticlassSVM,
        PathCV,
        StructuralSVM,
        load,
    )

__version__ = "0.1.0"

# These bring scikit-learn along, which takes a second and 70 MB: it is imported when one of them is first asked for.
_LAZY = {
    "BinarySVM": "maxmargin.estimators",
    "ChainSVM": "maxmargin.estimators",
    "EstimatorPath": "maxmargin.estimators",
    "GraphSVM": "maxmargin.estimators",
    "MulticlassSVM": "maxmargin.estimators",
    "PathCV": "maxmargin.estimators",
    "StructuralSVM": "maxmargin.estimators",
    "load": "maxmargin.estimators",
}

__all__ = [
    "BinarySVM",
    "Certificate",
    "ChainSVM",
    "EstimatorPath",
    "Expansion",
    "Graph",
    "GraphSVM",
    "InexactOracleWarning",
    "InexactPredictionWarning",
    "Kernel",
    "KernelModel",
    "LowRank",
    "Model",
    "MulticlassSVM",
    "Path",
    "PathCV",
    "Solution",
    "StructuralSVM",
    "datasets",
    "files",
    "load",
    "models",
    "path",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'maxmargin' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
