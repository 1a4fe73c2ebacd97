"""Rows that represent a matrix: those nearest to the centres of its clusters.

    min over centres c  Σᵢ min_j ‖xᵢ − c_j‖²

A few steps of Lloyd's method from a k-means++ start.  Centres of sparse rows stay sparse, so that the number of
features does not matter.  Rows are returned, not centres: a row works under any kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

# More rows than these move the centres little, and the time grows with them.
_MOST_ROWS = 20_000
_STEPS = 5
_BLOCK_BYTES = 1 << 26


def rows_near_centres(X: Any, k: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Return the row nearest to the centre of each cluster; fewer than k where rows repeat."""
    drawn = rng.choice(X.shape[0], min(X.shape[0], max(_MOST_ROWS, k)), replace=False)
    rows = X[drawn].astype(np.float64)
    norms = _squared_norms(rows)
    if not np.isfinite(norms).all():
        raise ValueError("X holds values that are not finite, or whose squares are not: k-means needs finite ones.")
    centres = rows[_spread_rows(rows, norms, k, rng)]
    for _ in range(_STEPS):
        centres = _means(rows, _nearest(rows, norms, centres)[0])
    cluster, distance = _nearest(rows, norms, centres)
    order = np.lexsort((distance, cluster))
    _, first = np.unique(cluster[order], return_index=True)
    chosen: NDArray[np.intp] = drawn[order[first]]
    return chosen


def _spread_rows(rows: Any, norms: NDArray[np.float64], k: int, rng: np.random.Generator) -> list[int]:
    """Return rows drawn with probabilities that grow with the squared distance to those drawn (k-means++)."""
    ids = [int(rng.integers(len(norms)))]
    closest = np.full(len(norms), np.inf)
    while len(ids) < k:
        last = ids[-1]
        distance = norms + norms[last] - 2.0 * _products(rows, rows[[last]])[:, 0]
        distance[last] = 0.0
        closest = np.minimum(closest, np.maximum(distance, 0.0))
        total = np.cumsum(closest)
        if total[-1] == 0.0:
            break
        ids.append(min(int(np.searchsorted(total, rng.random() * total[-1], side="right")), len(norms) - 1))
    return ids


def _nearest(rows: Any, norms: NDArray[np.float64], centres: Any) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Return the nearest centre of every row and the squared distance to it."""
    cluster, distance = np.empty(len(norms), np.intp), np.empty(len(norms))
    centre_norms = _squared_norms(centres)
    size = max(1, _BLOCK_BYTES // (8 * len(centre_norms)))
    for start in range(0, len(norms), size):
        block = slice(start, start + size)
        distances = _products(rows[block], centres)
        distances *= -2.0
        distances += centre_norms
        cluster[block] = np.argmin(distances, axis=1)
        distance[block] = norms[block] + np.min(distances, axis=1)
    return cluster, distance


def _means(rows: Any, cluster: NDArray[np.intp]) -> Any:
    """Return the mean of every cluster that has rows, sparse where the rows are."""
    _, member, counts = np.unique(cluster, return_inverse=True, return_counts=True)
    shape = (len(counts), len(cluster))
    return sp.csr_array((1.0 / counts[member], (member, np.arange(len(cluster)))), shape=shape) @ rows


def _products(A: Any, B: Any) -> NDArray[np.float64]:
    is_sparse: bool = sp.issparse(A)
    products: NDArray[np.float64] = (A @ B.T).toarray() if is_sparse else A @ B.T
    return products


def _squared_norms(A: Any) -> NDArray[np.float64]:
    is_sparse: bool = sp.issparse(A)
    norms: NDArray[np.float64] = A.multiply(A).sum(axis=1) if is_sparse else np.einsum("ij,ij->i", A, A)
    return np.asarray(norms).ravel()
