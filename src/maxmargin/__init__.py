"""Max-margin structured prediction with a certificate of optimality.

The estimators (:class:`ChainSVM`, :class:`MulticlassSVM`, :class:`BinarySVM`, :class:`StructuralSVM`) follow scikit-learn;
:func:`train` is the same engine without it; :class:`Model` is what you subclass for outputs of your own.
"""

from maxmargin import datasets, files, models
from maxmargin.estimators import BinarySVM, ChainSVM, MulticlassSVM, StructuralSVM
from maxmargin.files.model_file import load
from maxmargin.model import Model
from maxmargin.problem import InexactOracleWarning
from maxmargin.result import Certificate, Solution
from maxmargin.train import train

__version__ = "0.1.0"

__all__ = [
    "BinarySVM",
    "Certificate",
    "ChainSVM",
    "InexactOracleWarning",
    "Model",
    "MulticlassSVM",
    "Solution",
    "StructuralSVM",
    "datasets",
    "files",
    "load",
    "models",
    "train",
]
