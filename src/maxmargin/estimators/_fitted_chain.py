"""What a trained tagger is: its weights by name, its predictions, and its state in a file."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import check_sample_weight, effective_n_jobs
from maxmargin.estimators._base import MaxMarginEstimator
from maxmargin.estimators._kernels import (
    KernelEstimator,
    expansion_from,
    expansion_state,
)
from maxmargin.estimators._sequence_data import (
    check_hashable,
    flatten_labels,
    read_known_sequences,
)
from maxmargin.estimators._several import diverse_strengths, with_scores
from maxmargin.estimators._vocabulary import Vocabulary
from maxmargin.kernels import Expansion
from maxmargin.models import Chain, Sequences
from maxmargin.models._several import Outputs
from maxmargin.problems.base import FloatArray


class FittedChain(KernelEstimator, MaxMarginEstimator):
    """The fitted half of :class:`ChainSVM`; see there."""

    classes_: NDArray[Any]
    n_features_in_: int
    feature_names_: list[str]

    # The weights in the model's own layout; coef_ and its siblings are views of them.
    _model: Chain
    _w: FloatArray | Expansion
    _vocabulary: Vocabulary | None

    def _set_fitted(
        self,
        classes: NDArray[Any],
        forbidden: list[tuple[int, int]] | None,
        vocabulary: Vocabulary | None,
        n_features: int,
        ends: bool,
    ) -> None:
        self.classes_ = classes
        self.n_features_in_ = n_features
        # Predicting needs neither the loss nor the token weights of the training data.
        self._model = Chain(len(classes), ends=ends, forbidden=forbidden)
        self._model.n_features = n_features
        self._vocabulary = vocabulary
        if vocabulary is not None:
            self.feature_names_ = vocabulary.names
        elif "feature_names_" in vars(self):
            del self.feature_names_

    @property
    def coef_(self) -> FloatArray:
        """Token weights, labels × features."""
        return self._block("coef")

    @property
    def transition_(self) -> FloatArray:
        """Weights of a label (row) before another (column)."""
        return self._block("transition")

    @property
    def start_(self) -> FloatArray:
        """Weights of first labels."""
        return self._block("start")

    @property
    def stop_(self) -> FloatArray:
        """Weights of last labels."""
        return self._block("stop")

    def _block(self, name: str) -> FloatArray:
        if "_w" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}_': call fit first.")
        if isinstance(self._w, Expansion):
            if name == "coef":
                raise AttributeError(
                    f"with kernel={self.kernel!r} there is no coef_: expansion_ has the scores' coefficients."
                )
            blocks = self._model.table(self._w.table)
        else:
            blocks = self._model.blocks(self._w)
        return blocks[name] if name in blocks else np.zeros(len(self.classes_))

    @property
    def expansion_(self) -> Expansion:
        """With a kernel, basis tokens and their coefficients."""
        if not isinstance(vars(self).get("_w"), Expansion):
            raise AttributeError(
                f"'{type(self).__name__}' object has no attribute 'expansion_': it has one with a kernel, after fit."
            )
        return cast(Expansion, self._w)

    def _replace_expansion(self, expansion: Expansion) -> None:
        self._w = expansion

    def predict(self, X: Any) -> list[list[Any]]:
        """Return the labels with the highest score for each sequence.

        Parameters
        ----------
        X : list of sequences
            As in :meth:`fit`.

        Returns
        -------
        list of lists of labels
        """
        data = self._read(X)
        return [
            self.classes_[codes].tolist() for codes in self._model.predict(data, self._w, effective_n_jobs(self.n_jobs))
        ]

    def decision_function(self, X: Any) -> list[FloatArray]:
        """Return max-marginals: how good the best labelling with a given label at a given token is.

        Parameters
        ----------
        X : list of sequences
            As in :meth:`fit`.

        Returns
        -------
        list of ndarrays of shape (length, n_labels)
            The largest entry of every row is the score of the prediction, in the column of the predicted label.
        """
        data = self._read(X)
        return self._model.max_marginals(data, self._w, effective_n_jobs(self.n_jobs))

    def predict_topk(self, X: Any, k: int) -> list[list[tuple[list[Any], float]]]:
        """Return the k best labellings of each sequence with their scores, best first.

        Parameters
        ----------
        X : list of sequences
            As in :meth:`fit`.
        k : int
            How many; a sequence with fewer possible labellings has them all.

        Returns
        -------
        list of lists of (labels, score)
        """
        data = self._read(X)
        return self._with_scores(self._model.k_best(data, self._w, k, effective_n_jobs(self.n_jobs)))

    def predict_diverse(self, X: Any, m: int, strength: float = 1.0) -> list[list[tuple[list[Any], float]]]:
        """Return m good labellings of each sequence that differ from each other, with their scores.

        The first is the best one. For each of the others, labels that those before it have score less by ``strength`` at their
        tokens (Batra et al. 2012): a large strength buys difference with score. Labellings may come again where it is
        small, and where all labels of their tokens were used alike: two labels leave little beyond the second labelling.

        Parameters
        ----------
        X : list of sequences
            As in :meth:`fit`.
        m : int
            How many.
        strength : float, default 1.0
            What a label that was used before costs, in units of score.

        Returns
        -------
        list of lists of (labels, score)

        Examples
        --------
        >>> import maxmargin as mm
        >>> X = [[["w=can"], ["w=fish"]], [["w=fish"], ["w=swim"]]]
        >>> tagger = mm.ChainSVM(C=10.0).fit(X, [["VERB", "NOUN"], ["NOUN", "VERB"]])
        >>> [labels for labels, score in tagger.predict_diverse(X[:1], 2, strength=10.0)[0]]
        [['VERB', 'NOUN'], ['NOUN', 'VERB']]
        """
        strengths = diverse_strengths(m, strength)
        data = self._read(X)
        return self._with_scores(self._model.diverse(data, self._w, strengths, effective_n_jobs(self.n_jobs)))

    def _with_scores(self, found: Outputs) -> list[list[tuple[list[Any], float]]]:
        def labels(codes: NDArray[np.int32]) -> list[Any]:
            named: list[Any] = self.classes_[codes].tolist()
            return named

        return with_scores(found, labels)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of tokens that are labelled right.

        Parameters
        ----------
        X : list of sequences
            As in :meth:`fit`.
        y : list of label sequences
            The true labels; one that was not seen in training counts as a mistake.
        sample_weight : array of shape (n_sequences,), optional
            How many times each sequence's tokens count.

        Returns
        -------
        float
        """
        data = self._read(X)
        flat = flatten_labels(y, data)
        check_hashable(flat, data)
        numbers = {label: number for number, label in enumerate(self.classes_.tolist())}
        truth = np.fromiter((numbers.get(label, -1) for label in flat), np.int32, len(flat))
        predicted = np.concatenate(self._model.predict(data, self._w, effective_n_jobs(self.n_jobs)))
        weights = check_sample_weight(sample_weight, len(data))
        return float(
            np.average(truth == predicted, weights=None if weights is None else np.repeat(weights, data.lengths))
        )

    def _read(self, X: Any) -> Sequences:
        check_is_fitted(self)
        return read_known_sequences(X, self.n_features_in_, self._vocabulary)

    def _fitted_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        state = {
            "classes": self.classes_,
            "ends": self._model.ends,
            "forbidden": None if self._model.forbidden is None else [list(pair) for pair in self._model.forbidden],
            "feature_names": None if self._vocabulary is None else self._vocabulary.names,
        }
        if isinstance(self._w, Expansion):
            return {**state, "n_features": self.n_features_in_, "expansion": expansion_state(self._w)}
        # Without the padding of the core's layout, which may change.
        blocks = self._model.blocks(self._w).items()
        return {**state, "blocks": {name: np.ascontiguousarray(block) for name, block in blocks}}

    def _restore(self, state: dict[str, Any]) -> None:
        blocks = None if "expansion" in state else state["blocks"]
        names, forbidden = state["feature_names"], state["forbidden"]
        k = len(state["classes"])
        d = int(state["n_features"]) if blocks is None else blocks["coef"].shape[1]
        if names is not None and len(names) != d:
            raise ValueError(f"it names {len(names)} features and has weights for {d}")
        pairs = None if forbidden is None else [(int(before), int(after)) for before, after in forbidden]
        if any(not 0 <= label < k for pair in pairs or [] for label in pair):
            raise ValueError("it forbids transitions between labels that it does not have")
        self._set_fitted(state["classes"], pairs, None if names is None else Vocabulary(names), d, bool(state["ends"]))
        if blocks is None:
            self._w = expansion_from(state["expansion"], k, d)
            if self._w.table.shape != (self._model.n_table,):
                raise ValueError(f"it has {self._w.table.size} weights of transitions, expected {self._model.n_table}")
            return
        expected = {"coef": (k, d), **self._model.table_blocks}
        found = {name: block.shape for name, block in blocks.items()}
        if found != expected or any(block.dtype != np.float64 for block in blocks.values()):
            raise ValueError(f"its weights have shapes {found}, expected {expected} in float64")
        self._w = self._model.join(**blocks)
