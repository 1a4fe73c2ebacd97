"""The best foreground of a graph with given scores, by one minimum cut.

Maximises Σ_i score_i y_i + Σ_e pair_e [y_first = y_second] over y in {0, 1}, all pair_e ≥ 0.  A labelling cuts a graph
with a source (foreground) and a sink (background): node i hangs on the source with capacity score_i or on the sink with
−score_i, whichever is positive, and edges have capacity pair_e in both directions.  What is cut is what is lost.
(D. Greig, B. Porteous and A. Seheult, "Exact maximum a posteriori estimation for binary images", JRSS B 51(2), 1989.)
"""

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

# scipy's flows are integers of 32 bits: capacities are rounded to this many steps, and their sum must fit.
STEPS = 2**30


def best_foreground(scores, edges, pairs):
    """Return 1 for each node of the best foreground and 0 for the others, exact up to the rounding of the scores.

    Parameters
    ----------
    scores : ndarray of shape (n_nodes,)
        What a node gains by being foreground.
    edges : ndarray of shape (n_edges, 2)
        No two the same.
    pairs : ndarray of shape (n_edges,)
        What two nodes gain by having the same label, not negative.
    """
    scores, pairs = np.asarray(scores, dtype=float), np.asarray(pairs, dtype=float)
    if pairs.min(initial=0.0) < 0:
        raise ValueError(f"pairs must not be negative, found {pairs.min()}: one cut finds the best labels only then.")
    n_nodes = len(scores)
    source, sink = n_nodes, n_nodes + 1
    nodes = np.arange(n_nodes)
    # Older versions of scipy insist on indices of 32 bits.
    tails = np.concatenate([np.full(n_nodes, source), nodes, edges[:, 0], edges[:, 1]]).astype(np.int32)
    heads = np.concatenate([nodes, np.full(n_nodes, sink), edges[:, 1], edges[:, 0]]).astype(np.int32)
    capacities = np.concatenate([np.maximum(scores, 0.0), np.maximum(-scores, 0.0), pairs, pairs])
    whole = capacities.sum()
    if whole == 0.0:
        return np.zeros(n_nodes, dtype=np.int64)
    steps = np.round(capacities * (STEPS / whole)).astype(np.int32)
    network = coo_array((steps, (tails, heads)), shape=(n_nodes + 2, n_nodes + 2)).tocsr()
    residual = network - maximum_flow(network, source, sink).flow
    residual.eliminate_zeros()
    labels = np.zeros(n_nodes + 2, dtype=np.int64)
    labels[breadth_first_order(residual, source, return_predecessors=False)] = 1
    return labels[:n_nodes]
