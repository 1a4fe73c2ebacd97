"""Fewer basis points for nearly the same function.

    w = Σ_b β_b φ(b)        w' = Σ_{b ∈ S} β'_b φ(b),   |S| ≤ m,   with ‖w − w'‖ small

S grows by the point that takes most off ‖w − w'‖², and w' is always the projection of w on its span: the forward selection that
is called orthogonal matching pursuit. With e₁, e₂, … the points of S made orthonormal one after the other, the column ⟨e_j, φ(b)⟩
over all points b is that of a pivoted Cholesky factor of K, and q_j = ⟨e_j, w⟩ what e_j explains:

    residual of point b:    d_b = k(b, b) − Σ_j ⟨e_j, φ(b)⟩²         its score in w − w':   c_b = ⟨φ(b), w⟩ − Σ_j ⟨e_j, φ(b)⟩ q_j

Point b takes ‖c_b‖² / d_b off the square. Memory: as many numbers as points times m.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from maxmargin.kernels.kernel import Kernel
from maxmargin.kernels.product import Coefficients, NativeProduct, called, kernel_product

FloatArray = NDArray[np.float64]

# A point whose residual is below this share of the largest k(b, b) depends on those that were chosen.
_SMALLEST_PIVOT = 1e-10


def reduced_basis(
    kernel: Kernel, basis: Any, coef: FloatArray, n_points: int, n_jobs: int = 1
) -> tuple[NDArray[np.int64], FloatArray]:
    """Return the numbers of at most ``n_points`` basis points and coefficients of theirs, labels × points."""
    product = kernel_product(kernel, basis, is_single=False, cache_bytes=0.0)
    n, n_labels = basis.shape[0], len(coef)
    scores = np.zeros(n * n_labels)
    entries = np.arange(n * n_labels)
    product.add(Coefficients.of(entries, np.ascontiguousarray(coef.T).ravel(), n_labels), n_labels, scores, n_jobs)
    residual_scores = scores.reshape(n, n_labels)
    residuals = kernel.diagonal(basis)
    smallest = _SMALLEST_PIVOT * float(residuals.max(initial=0.0))
    factor = np.empty((n, min(n_points, n)), order="F")
    explained = np.zeros((factor.shape[1], n_labels))
    chosen: list[int] = []
    for j in range(factor.shape[1]):
        gains = np.einsum("bl,bl->b", residual_scores, residual_scores) / np.maximum(residuals, smallest)
        gains[residuals <= smallest] = 0.0
        best = int(np.argmax(gains))
        if gains[best] <= 0.0:
            break
        column = factor[:, j]
        column[:] = _column(kernel, product, basis, best, n_jobs)
        column -= factor[:, :j] @ factor[best, :j]
        column /= np.sqrt(residuals[best])
        explained[j] = residual_scores[best] / np.sqrt(residuals[best])
        residual_scores -= np.outer(column, explained[j])
        residuals -= column * column
        residuals[best] = 0.0
        chosen.append(best)
    ids, m = np.array(chosen, np.int64), len(chosen)
    triangle = factor[ids, :m]
    return ids, np.ascontiguousarray(solve_triangular(triangle, explained[:m], lower=True, trans="T").T)


def _column(kernel: Kernel, product: Any, basis: Any, point: int, n_jobs: int) -> FloatArray:
    if isinstance(product, NativeProduct):
        values = product.matrix(np.array([point], np.int64), 0, basis.shape[0], n_jobs)
        return np.asarray(values, dtype=np.float64)[:, 0]
    return called(kernel, basis, basis[[point]])[:, 0]
