"""What a trained model of graphs is: its weights by name, its predictions, and its state in a file."""

from __future__ import annotations

from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import check_bool, check_sample_weight, effective_n_jobs
from maxmargin.estimators._base import MaxMarginEstimator
from maxmargin.estimators._graph_data import flat_labels
from maxmargin.estimators._several import diverse_strengths, with_scores
from maxmargin.graphs import Graphs
from maxmargin.models._several import Outputs
from maxmargin.models.pairwise import Pairwise
from maxmargin.problems.base import FloatArray


class FittedGraph(MaxMarginEstimator):
    """The fitted half of :class:`GraphSVM`; see there."""

    classes_: NDArray[Any] | None
    n_features_in_: int

    # The weights in the model's own layout; coef_ and edge_coef_ are views of them.
    _model: Pairwise
    _w: FloatArray

    def _set_fitted(self, model: Pairwise, classes: NDArray[Any] | None, n_features: int, w: FloatArray) -> None:
        # Predicting needs neither the loss nor the bounds of the weights.
        fitted = Pairwise(
            None if classes is None else len(classes),
            edges=model.edges,
            inference=model.inference,
            max_passes=model.max_passes,
            max_search_time=model.max_search_time,
            n_edge_types=model.n_edge_types,
        )
        fitted.n_features, fitted.n_edge_features = n_features, model.n_edge_features
        self._model, self._w, self.classes_, self.n_features_in_ = fitted, w, classes, n_features

    @property
    def coef_(self) -> FloatArray:
        """Weights of node features, labels × features."""
        return self._block("coef")

    @property
    def edge_coef_(self) -> FloatArray:
        """Weights of edge features, types × features × columns."""
        return self._block("edge_coef")

    def _block(self, name: str) -> FloatArray:
        if "_w" not in vars(self):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}_': call fit first.")
        return self._model.blocks(self._w)[name]

    @overload
    def predict(self, X: Any, return_gaps: Literal[False] = False) -> list[NDArray[Any]]: ...
    @overload
    def predict(self, X: Any, return_gaps: Literal[True]) -> tuple[list[NDArray[Any]], FloatArray]: ...
    def predict(self, X: Any, return_gaps: bool = False) -> list[NDArray[Any]] | tuple[list[NDArray[Any]], FloatArray]:
        """Return the labels with the highest score for each graph.

        Where a search by TRW-S does not close, or one by alpha-expansion has no bound, the labels may not be the best; an
        :class:`maxmargin.InexactPredictionWarning` then says for how many graphs, unless ``return_gaps`` asks for it.

        Parameters
        ----------
        X : list of Graph
        return_gaps : bool, default False
            Whether to return how much better labels there may be, too.

        Returns
        -------
        labels : list of arrays
            One label for each node of each graph.
        gaps : ndarray of shape (n_graphs,)
            With ``return_gaps`` only: by how much other labels may score more. 0 where the labels are the best ones, NaN where
            nothing is known.

        Examples
        --------
        >>> import numpy as np
        >>> import maxmargin as mm
        >>> X = [mm.Graph([[2.0], [0.1], [-0.2]], [[0, 1], [1, 2], [0, 2]])]
        >>> svm = mm.GraphSVM().fit(X, [["a", "a", "b"]])
        >>> labels, gaps = svm.predict(X, return_gaps=True)
        >>> gaps
        array([0.])
        """
        check_bool("return_gaps", return_gaps)
        data, n_jobs = self._read(X), effective_n_jobs(self.n_jobs)
        if not return_gaps:
            return [self._labels(codes) for codes in self._model.predict(data, self._w, n_jobs)]
        found, gaps = self._model.predict_with_gaps(data, self._w, n_jobs)
        return [self._labels(codes) for codes in found], gaps

    def decision_function(self, X: Any) -> list[FloatArray] | list[list[FloatArray]]:
        """Return max-marginals: how good the best labelling of the graph with a given label at a given node is.

        How far the second of a node is below the first tells how sure its label is, in units of score. Forests, small graphs
        and graph cuts take little more than :meth:`predict`, cuts more where edges are so strong that large parts of a graph
        change together. TRW-S makes a search for every label of every node, but for labels that turn up in other searches
        with the score that bounds them; where one does not close, values may be too low, and an
        :class:`maxmargin.InexactPredictionWarning` says so.

        Parameters
        ----------
        X : list of Graph

        Returns
        -------
        list of ndarrays of shape (n_nodes, n_labels)
            The largest entry of every row is the score of the prediction, in the column of the predicted label, unless a warning
            says that searches stayed open: it may then be that of a better labelling. With candidates,
            a list of arrays for each graph: one for each node, with a number for each of its candidates.

        Examples
        --------
        >>> import maxmargin as mm
        >>> X = [mm.Graph([[2.0], [0.1], [-0.2]], [[0, 1], [1, 2], [0, 2]])]
        >>> svm = mm.GraphSVM().fit(X, [["a", "a", "b"]])
        >>> (scores,) = svm.decision_function(X)
        >>> svm.classes_[scores.argmax(axis=1)].tolist()
        ['a', 'a', 'b']
        """
        data = self._read(X)
        return self._model.max_marginals(data, self._w, effective_n_jobs(self.n_jobs))

    def predict_topk(self, X: Any, k: int) -> list[list[tuple[NDArray[Any], float]]]:
        """Return the k best labellings of each graph with their scores, best first.

        Exact for forests, small graphs and those that cuts serve; TRW-S searches others, may miss some and then warns.

        Parameters
        ----------
        X : list of Graph
        k : int
            How many; a graph with fewer possible labellings has them all.

        Returns
        -------
        list of lists of (labels, score)
        """
        data = self._read(X)
        return self._with_scores(self._model.k_best(data, self._w, k, effective_n_jobs(self.n_jobs)))

    def predict_diverse(self, X: Any, m: int, strength: float = 1.0) -> list[list[tuple[NDArray[Any], float]]]:
        """Return m good labellings of each graph that differ from each other, with their scores.

        The first is the best one. For each of the others, labels that those before it have score less by ``strength`` times the
        weight of their node (Batra et al. 2012): a large strength buys difference with score. Labellings may come again where
        it is small, and where all labels of their nodes were used alike: two labels leave little beyond the second. They are
        searched for as :meth:`predict` does, with its warning.

        Parameters
        ----------
        X : list of Graph
        m : int
            How many.
        strength : float, default 1.0
            What a label that was used before costs, in units of score.

        Returns
        -------
        list of lists of (labels, score)
        """
        strengths = diverse_strengths(m, strength)
        data = self._read(X)
        return self._with_scores(self._model.diverse(data, self._w, strengths, effective_n_jobs(self.n_jobs)))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of nodes that are labelled right, by their weights.

        Parameters
        ----------
        X : list of Graph
        y : list of sequences of labels
            The true labels.
        sample_weight : array of shape (n_graphs,), optional
            How many times each graph's nodes count.

        Returns
        -------
        float
        """
        data = self._read(X)
        truth = flat_labels(y, data)
        predicted = [label for labels in self.predict(data) for label in labels.tolist()]
        weights = data.node_weights()
        weights = np.ones(len(truth)) if weights is None else weights
        of_graphs = check_sample_weight(sample_weight, len(data))
        if of_graphs is not None:
            weights = weights * np.repeat(of_graphs, data.lengths)
        if not weights.any():
            raise ValueError("all nodes of X have weight 0: there is no share of them that is right.")
        return float(np.average([a == b for a, b in zip(truth, predicted, strict=True)], weights=weights))

    def _labels(self, codes: NDArray[np.int32]) -> NDArray[Any]:
        labels: NDArray[Any] = codes if self.classes_ is None else self.classes_[codes]
        return labels

    def _with_scores(self, found: Outputs) -> list[list[tuple[NDArray[Any], float]]]:
        return with_scores(found, self._labels)

    def _read(self, X: Any) -> Graphs:
        check_is_fitted(self)
        data = X if isinstance(X, Graphs) else Graphs(X)
        found = data.graphs[0].rows.shape[1]
        if found != self.n_features_in_:
            raise ValueError(
                f"X has {found} features, but GraphSVM is expecting {self.n_features_in_} features as input."
            )
        if data.has_candidates != (self.classes_ is None):
            given, trained = ("candidates", "labels that all nodes share")[:: 1 if data.has_candidates else -1]
            raise ValueError(f"X has graphs with {given}, but GraphSVM was fitted on {trained}.")
        if data.n_edge_types > self._model.n_edge_types:
            raise ValueError(
                f"X has edges of type {data.n_edge_types - 1}, but GraphSVM was fitted on types up to "
                f"{self._model.n_edge_types - 1}; its n_edge_types says how many there are where training may lack some."
            )
        return data

    def _fitted_state(self) -> dict[str, Any]:
        check_is_fitted(self)
        return {
            "classes": self.classes_,
            "coef": np.ascontiguousarray(self.coef_),
            "edge_coef": np.ascontiguousarray(self.edge_coef_),
            "edges": self._model.edges,
            "inference": self._model.inference,
            "max_passes": self._model.max_passes,
            "max_search_time": self._model.max_search_time,
        }

    def _restore(self, state: dict[str, Any]) -> None:
        classes, coef, edge_coef = state["classes"], state["coef"], state["edge_coef"]
        for name, block, n_axes in (("coef", coef, 2), ("edge_coef", edge_coef, 3)):
            if block.ndim != n_axes or block.dtype != np.float64 or not np.all(np.isfinite(block)):
                raise ValueError(f"its {name} has shape {block.shape} and type {block.dtype}, or is not finite")
        model = Pairwise(
            None if classes is None else len(classes),
            edges=state["edges"],
            inference=state["inference"],
            max_passes=state["max_passes"],
            max_search_time=state["max_search_time"],
            n_edge_types=max(edge_coef.shape[0], 1),
        )
        model.n_features, model.n_edge_features = coef.shape[1], edge_coef.shape[1]
        expected = (model.n_labels, coef.shape[1]), model.table_blocks["edge_coef"]
        if (coef.shape, edge_coef.shape) != expected:
            raise ValueError(f"its weights have shapes {coef.shape} and {edge_coef.shape}, expected {expected}")
        self._set_fitted(model, classes, coef.shape[1], model.join(coef=coef, edge_coef=edge_coef))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        tags.no_validation = True
        return tags
