"""Kernels of estimators: from parameters to what a model takes, and expansions in model files."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from maxmargin._parameters import effective_n_jobs, is_number, seed_of
from maxmargin._result import Certificate
from maxmargin.kernels import Expansion, Kernel, LowRank
from maxmargin.kernels.low_rank import check_basis


class KernelEstimator(ABC):
    """What estimators that may have a kernel share."""

    certificate_: Certificate
    n_jobs: int | None

    @abstractmethod
    def _replace_expansion(self, expansion: Expansion) -> None:
        """Score with this expansion from now on."""

    def reduce_basis(self, n_points: int) -> Self:
        """Keep at most so many basis points of a model with a kernel, so that it is smaller and predicts faster.

        They are chosen one after the other, each time the one that brings the weights nearest to those that were trained, and get
        the coefficients that are best for all of them (:meth:`Expansion.reduced`). What that changes in the predictions is for
        held-out data to say: ``certificate_`` keeps the lower bound of the optimum, and no longer has a primal.

        Parameters
        ----------
        n_points : int
            How many basis points to keep; a model that has no more stays as it is.

        Returns
        -------
        self

        Examples
        --------
        >>> import maxmargin as mm
        >>> board = mm.datasets.make_checkers(1000, random_state=0)
        >>> svm = mm.BinarySVM(kernel="rbf", gamma=20.0).fit(board.X, board.y)
        >>> svm.reduce_basis(150).expansion_.size
        150
        """
        check_is_fitted(self)
        expansion = getattr(self, "expansion_", None)
        if expansion is None:
            raise ValueError("reduce_basis is for models with a kernel: this one has no basis points.")
        reduced = expansion.reduced(n_points, effective_n_jobs(self.n_jobs))
        if reduced is not expansion:
            self._replace_expansion(reduced)
            self.certificate_ = replace(
                self.certificate_,
                primal=None,
                exact=False,
                converged=False,
                message=f"reduced to {reduced.size} of {expansion.size} basis points",
            )
        return self


def chosen_kernel(estimator: Any, constant: float = 0.0) -> Kernel | LowRank | None:
    """Return what the estimator's parameters mean to a model; None for plain linear scores.

    Parameters
    ----------
    estimator : object
        With the parameters ``kernel``, ``gamma`` and their like.
    constant : float
        What every kernel value has added, in place of an intercept.
    """
    if not is_number(estimator.kernel_cache) or estimator.kernel_cache < 0:
        raise ValueError(f"kernel_cache must be a number of megabytes ≥ 0, found {estimator.kernel_cache!r}.")
    check_basis(estimator.basis)
    if isinstance(estimator.kernel, LowRank):
        raise TypeError(
            "kernel is a LowRank, which is for models without an estimator: give its kernel, and beside it "
            "kernel_approximation='low-rank', n_components and basis."
        )
    if isinstance(estimator.kernel, Kernel):
        kernel = replace(estimator.kernel, constant=estimator.kernel.constant + constant)
    else:
        kernel = Kernel(
            estimator.kernel,
            estimator.gamma,
            estimator.degree,
            estimator.coef0,
            constant=constant,
            cache=estimator.kernel_cache,
        )
    approximation = estimator.kernel_approximation
    if approximation not in (None, "low-rank"):
        raise ValueError(f"kernel_approximation must be None or 'low-rank', found {approximation!r}.")
    if approximation is None:
        # Linear scores have no constant but the intercept's.
        return None if kernel.name == "linear" and kernel.constant == constant else kernel
    seed = seed_of(estimator.random_state)
    if isinstance(seed, np.random.Generator):
        seed = int(seed.integers(2**31))
    return LowRank(kernel, estimator.n_components, estimator.basis, seed or 0)


def refuse_stream(kernel: Kernel | LowRank | None) -> None:
    """Refuse to learn from a stream with a kernel: its basis would have to be known beforehand."""
    if kernel is not None:
        raise ValueError(
            "partial_fit needs kernel='linear': a kernel's basis points are chosen from all examples. (Fit a map such as "
            "sklearn.kernel_approximation.Nystroem beforehand, and give partial_fit its features.)"
        )


def expansion_state(expansion: Expansion) -> dict[str, Any]:
    """Return an expansion as plain values and arrays."""
    kernel = expansion.kernel
    if callable(kernel.name):
        raise ValueError("a kernel that is a function cannot be stored in a model file: pickle the estimator instead.")
    basis = expansion.basis
    is_sparse: bool = sp.issparse(basis)
    rows: dict[str, Any] = {"basis": basis}
    if is_sparse:
        basis.sum_duplicates()
        rows = {
            "indptr": basis.indptr.astype(np.int64),
            "indices": basis.indices.astype(np.int64),
            "values": basis.data.astype(np.float64),
            "shape": [int(length) for length in basis.shape],
        }
    return {
        "kernel": [kernel.name, float(kernel.gamma), int(kernel.degree), float(kernel.coef0)],
        "coef": expansion.coef,
        "intercept": expansion.intercept,
        "table": expansion.table,
        **rows,
    }


def expansion_from(state: dict[str, Any], n_labels: int, n_features: int) -> Expansion:
    """Take back what :func:`expansion_state` gave; raise ValueError or KeyError if it does not fit together."""
    name, gamma, degree, coef0 = state["kernel"]
    kernel = Kernel(name, gamma, degree, coef0)
    if isinstance(kernel.gamma, str) or callable(kernel.name):
        raise ValueError(f"its kernel has gamma {gamma!r}")
    basis: Any
    if "basis" in state:
        basis = state["basis"]
    else:
        basis = _checked_rows(state)
    expansion = Expansion(kernel, basis, state["coef"], state["intercept"], state["table"])
    parts = expansion.coef, expansion.intercept, expansion.table
    if any(part.dtype != np.float64 or not np.all(np.isfinite(part)) for part in parts):
        raise ValueError("its coefficients are not finite float64")
    is_sparse: bool = sp.issparse(basis)
    if not np.all(np.isfinite(basis.data if is_sparse else basis)):
        raise ValueError("its basis is not finite")
    if expansion.coef.shape != (n_labels, basis.shape[0]) or expansion.intercept.shape != (n_labels,):
        raise ValueError(
            f"its coefficients have shapes {expansion.coef.shape} and {expansion.intercept.shape}, which do not fit {n_labels} "
            f"scores over {basis.shape[0]} points"
        )
    wanted = 1 if kernel.name == "precomputed" else 2
    if basis.ndim != wanted or basis.dtype.kind not in ("i" if wanted == 1 else "f"):
        raise ValueError(f"its basis is an array of shape {basis.shape} and type {basis.dtype}")
    fits = np.all((basis >= 0) & (basis < n_features)) if wanted == 1 else basis.shape[1] == n_features
    if not fits:
        raise ValueError(f"its basis of shape {basis.shape} does not fit {n_features} features")
    return expansion


def _checked_rows(state: dict[str, Any]) -> sp.csr_array:
    """Return stored CSR arrays as a matrix that is safe to compute with."""
    indptr, indices, values, shape = state["indptr"], state["indices"], state["values"], state["shape"]
    n_rows, n_features = (int(length) for length in shape)
    fits = len(indptr) == n_rows + 1 and len(indices) == len(values) and indptr[0] == 0 and indptr[-1] == len(values)
    is_integer = indptr.dtype.kind == "i" and indices.dtype.kind == "i"
    if not fits or not is_integer or np.any(np.diff(indptr) < 0) or np.any((indices < 0) | (indices >= n_features)):
        raise ValueError("its sparse basis does not fit together")
    rows = sp.csr_array((values, indices, indptr), shape=(n_rows, n_features))
    rows.sum_duplicates()
    return rows
