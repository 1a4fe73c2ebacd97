"""Kernel functions under scikit-learn's names, and their matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from maxmargin._parameters import is_integer, is_number
from maxmargin.kernels.low_rank import check_basis

NAMES = ("linear", "poly", "rbf", "sigmoid", "precomputed")
_LARGEST_DEGREE = 1000

KernelFunction = Callable[[Any, Any], Any]


@dataclass(frozen=True)
class Kernel:
    """A kernel k(x, z), with scikit-learn's names and defaults.

    Parameters
    ----------
    name : {"linear", "poly", "rbf", "sigmoid", "precomputed"} or callable, default "rbf"
        x·z, (γ x·z + coef0)^degree, exp(−γ‖x − z‖²), tanh(γ x·z + coef0); numbers that are given in place of X; or a function of
        two matrices that returns the matrix of all their rows' kernels.
    gamma : {"scale", "auto"} or float, default "scale"
        γ; "scale" is 1 / (n_features · variance of X), "auto" 1 / n_features.
    degree : int, default 3
        Of "poly".
    coef0 : float, default 0.0
        Of "poly" and "sigmoid".
    constant : float, default 0.0
        Added to every value: a constant feature of its square root, which takes the place of an intercept.
    cache : float, default 1000.0
        MB for columns of the kernel matrix, which training may need again.

    Notes
    -----
    SVM-light's options are ``-t 0``, ``-t 1`` with (s x·z + r)^d, ``-t 2`` with exp(−g‖x − z‖²) and ``-t 3`` with
    tanh(s x·z + r): s and g are ``gamma`` here, r is ``coef0``, d is ``degree``. Its defaults are g = s = r = 1 and d = 3. The
    sampled-cuts paper writes exp(−‖x − z‖²/σ²): γ = 1/σ².

    A tanh is no kernel for all values of its parameters. Training with a kernel that is not positive semi-definite ends with an
    error where that shows.

    Examples
    --------
    >>> import maxmargin as mm
    >>> kernel = mm.Kernel("rbf", gamma=0.5)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [2.0, 0.0]]).round(3).tolist()
    [[1.0, 0.135]]
    """

    name: str | KernelFunction = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0
    constant: float = 0.0
    cache: float = 1000.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        if isinstance(self.name, Kernel):
            raise TypeError(f"kernel is a Kernel already, {self.name!r}: give it as it is.")
        known = ", ".join(f"'{name}'" for name in NAMES)
        if not callable(self.name) and not (isinstance(self.name, str) and self.name in NAMES):
            raise ValueError(f"kernel must be one of {known} or a function of two matrices, found {self.name!r}.")
        is_gamma = self.gamma in ("scale", "auto") if isinstance(self.gamma, str) else is_number(self.gamma)
        if not is_gamma or (not isinstance(self.gamma, str) and self.gamma <= 0):
            raise ValueError(f"gamma must be 'scale', 'auto' or a positive number, found {self.gamma!r}.")
        if not is_integer(self.degree, 1) or self.degree > _LARGEST_DEGREE:
            raise ValueError(f"degree must be an integer from 1 to {_LARGEST_DEGREE}, found {self.degree!r}.")
        if not is_number(self.coef0):
            raise ValueError(f"coef0 must be a number, found {self.coef0!r}.")
        if not is_number(self.constant) or self.constant < 0:
            raise ValueError(f"constant must be a number ≥ 0, found {self.constant!r}.")
        if not is_number(self.cache) or self.cache < 0:
            raise ValueError(f"cache must be a number of megabytes ≥ 0, found {self.cache!r}.")

    @property
    def is_native(self) -> bool:
        """Whether the compiled core knows the function."""
        return not callable(self.name) and self.name != "precomputed"

    def for_data(self, X: Any) -> Kernel:
        """Return the kernel with γ as a number."""
        if not isinstance(self.gamma, str):
            return self
        if not self.is_native:
            return replace(self, gamma=1.0)  # which these do not use
        spread = 1.0
        if self.gamma == "scale":
            is_sparse: bool = sp.issparse(X)
            spread = _sparse_variance(X) if is_sparse else float(np.var(X, dtype=np.float64))
        return replace(self, gamma=1.0 / (X.shape[1] * spread) if spread > 0 and X.shape[1] else 1.0)

    def __call__(self, A: Any, B: Any) -> NDArray[np.float64]:
        """Return the matrix of k(a, b) over the rows of ``A`` and of ``B``, in double precision; γ = "scale" is that of ``A``."""
        from maxmargin.kernels.product import kernel_matrix

        return kernel_matrix(self, A, B)

    def diagonal(self, A: Any) -> NDArray[np.float64]:
        """Return k(a, a) of all rows."""
        is_sparse: bool = sp.issparse(A)
        if self.name == "rbf":
            return np.full(A.shape[0], 1.0 + self.constant)
        if self.name == "precomputed" or callable(self.name):
            one_by_one = (float(self(A[i : i + 1], A[i : i + 1])[0, 0]) for i in range(A.shape[0]))
            return np.fromiter(one_by_one, np.float64, A.shape[0])
        rows = A.astype(np.float64)
        squares = (
            np.asarray(rows.multiply(rows).sum(axis=1)).ravel() if is_sparse else np.einsum("ij,ij->i", rows, rows)
        )
        if self.name == "linear":
            return squares + self.constant
        inside = float(self.for_data(A).gamma) * squares + self.coef0
        with np.errstate(over="ignore"):  # whoever asks looks for values that are not finite
            return (inside**self.degree if self.name == "poly" else np.tanh(inside)) + self.constant


def _sparse_variance(X: Any) -> float:
    """Return the variance of all entries of a sparse matrix, zeros and all."""
    n = X.shape[0] * X.shape[1]
    values = X.data.astype(np.float64)
    mean = values.sum() / n if n else 0.0
    return float((np.sum((values - mean) ** 2) + (n - len(values)) * mean**2) / n) if n else 0.0


@dataclass(frozen=True)
class LowRank:
    """A kernel projected on the span of some basis points, so that rows become vectors and every solver runs.

    Parameters
    ----------
    kernel : Kernel
        The kernel; not a precomputed one, which has no function of rows.
    n_components : int, default 100
        How many basis points to choose. As many as there are rows make it exact.
    basis : {"random", "k-means", "pivoted"}, default "random"
        How: drawn at random, the rows nearest to the centres of clusters, or one after the other the row that is described worst.
    random_state : int, default 0
        Seed of the choice.

    Notes
    -----
    The dual of certificates is a bound of the projected problem (``dual_of``), not of the kernel itself. The primal is of both.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = [[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [-1, -1, 1, 1]
    >>> model = mm.models.Binary(kernel=mm.LowRank(mm.Kernel("rbf", gamma=1.0), 4))
    >>> solution = mm.train(model, X, y, C=10.0, solver="block-dual")
    >>> model.predict(X, solution.expansion).tolist()
    [-1, -1, 1, 1]
    """

    kernel: Kernel
    n_components: int = 100
    basis: str = "random"
    random_state: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        if not isinstance(self.kernel, Kernel):
            raise TypeError(f"kernel must be a maxmargin.Kernel, found {self.kernel!r}.")
        if self.kernel.name == "precomputed":
            raise ValueError("a low-rank kernel needs the kernel's function: kernel='precomputed' has none.")
        if not is_integer(self.n_components, 1):
            raise ValueError(f"n_components must be an integer ≥ 1, found {self.n_components!r}.")
        check_basis(self.basis)
        if not is_integer(self.random_state, 0):
            raise ValueError(f"random_state must be an integer ≥ 0, found {self.random_state!r}.")
