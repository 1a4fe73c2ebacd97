"""Max-margin structured prediction with a certificate of optimality."""

from maxmargin import models
from maxmargin.result import Certificate, Solution
from maxmargin.train import train

__version__ = "0.1.0"

__all__ = ["Certificate", "Solution", "models", "train"]
