"""Kernels: scores that are sums of similarities to basis points."""

from maxmargin.kernels.expansion import Expansion
from maxmargin.kernels.kernel import Kernel, LowRank

__all__ = ["Expansion", "Kernel", "LowRank"]
