"""Several outputs of each input: the best ones, and good ones that differ from each other."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxmargin import _core
from maxmargin._feature_rows import as_numbers
from maxmargin._parameters import check_how_many
from maxmargin.kernels.expansion import Expansion
from maxmargin.models._linear import LinearModel
from maxmargin.problems.base import FloatArray, IntArray

# More outputs of one input than any memory holds.
_LARGEST_K = 2**40

Outputs = list[tuple[NDArray[np.int32], FloatArray]]


class PlaceModel(LinearModel):
    """A model whose outputs are labels of places: the tokens of a sequence, the nodes of a graph, or one place alone."""

    @abstractmethod
    def _prediction_space(
        self, X: Any, w: ArrayLike | Expansion, n_jobs: int
    ) -> tuple[_core.LinearSpace, Any, FloatArray, IntArray]:
        """Return the space of prediction, its structure, the weights as it takes them, and how many places each input has."""

    def _report_misses(self, structure: Any) -> None:
        """Warn where searches in this structure may have missed outputs."""

    def k_best(self, X: Any, w: ArrayLike | Expansion, k: int, n_jobs: int = 1) -> Outputs:
        """Return for each input its k best outputs (fewer where fewer exist), best first, and their scores.

        Parameters
        ----------
        X : as in :meth:`predict`
            Inputs.
        w : array of float or Expansion
            ``Solution.w``, or ``Solution.expansion`` with a kernel.
        k : int
            How many.
        n_jobs : int
            Threads.

        Returns
        -------
        list of (label numbers, outputs × places; scores)
        """
        check_how_many("k", k)
        space, structure, weights, lengths = self._prediction_space(X, w, n_jobs)
        found = _split(lengths, *space.k_best(weights, min(int(k), _LARGEST_K), n_jobs))
        self._report_misses(structure)
        return found

    def diverse(self, X: Any, w: ArrayLike | Expansion, strengths: ArrayLike, n_jobs: int = 1) -> Outputs:
        """Return for each input outputs of which each is the best that differs from those before it, and their scores.

        A label that output m has scores less by ``strengths[m]`` in those after it, times the weight of its place where places
        have weights (Batra et al. 2012). Scores are those without.

        Parameters
        ----------
        X : as in :meth:`predict`
            Inputs.
        w : array of float or Expansion
            ``Solution.w``, or ``Solution.expansion`` with a kernel.
        strengths : array of float
            One for each output but the last, ≥ 0.
        n_jobs : int
            Threads.

        Returns
        -------
        list of (label numbers, outputs × places; scores)
        """
        amounts = np.ascontiguousarray(as_numbers(strengths, "strengths"))
        if amounts.ndim != 1:
            raise ValueError(f"strengths has shape {amounts.shape}; expected a number for each output but the last.")
        space, structure, weights, lengths = self._prediction_space(X, w, n_jobs)
        found = _split(lengths, *space.diverse(weights, amounts, n_jobs))
        self._report_misses(structure)
        return found


def _split(lengths: IntArray, codes: NDArray[np.int32], scores: FloatArray, found: NDArray[np.int64]) -> Outputs:
    """Return outputs that are laid end to end by input, with their scores."""
    if len(lengths) == 0:
        return []
    code_ends, score_ends = np.cumsum(found * lengths)[:-1], np.cumsum(found)[:-1]
    return [
        (outputs.reshape(-1, length), values)
        for outputs, values, length in zip(
            np.split(codes, code_ends), np.split(scores, score_ends), lengths.tolist(), strict=True
        )
    ]
