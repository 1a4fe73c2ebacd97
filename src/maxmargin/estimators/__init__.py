"""The scikit-learn face: parameters, validation, label encoding and fitted attributes, one file per estimator."""

from maxmargin.estimators._base import EstimatorPath, load
from maxmargin.estimators.binary import BinarySVM
from maxmargin.estimators.chain import ChainSVM
from maxmargin.estimators.graph import GraphSVM
from maxmargin.estimators.multiclass import MulticlassSVM
from maxmargin.estimators.path_cv import PathCV
from maxmargin.estimators.structural import StructuralSVM

__all__ = ["BinarySVM", "ChainSVM", "EstimatorPath", "GraphSVM", "MulticlassSVM", "PathCV", "StructuralSVM", "load"]
