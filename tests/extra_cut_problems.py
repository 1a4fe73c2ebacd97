"""Problems that several cuts per iteration are tested on."""

import numpy as np
from graph_examples import labelled, with_candidates
from native_models import native
from reference_models import ChainModel, MulticlassModel

import maxmargin as mm


def problems(seed=0):
    """Models of labels in places with their reference, X and Y."""
    rng = np.random.default_rng(seed)
    multiclass = MulticlassModel(rng.normal(size=(8, 3)), rng.integers(4, size=8), 4)
    lengths = [2, 3, 1, 4]
    weights = [rng.uniform(0.5, 2.0, n) for n in lengths]
    chain = ChainModel(
        [rng.normal(size=(n, 2)) for n in lengths],
        [tuple(rng.integers(3, size=n).tolist()) for n in lengths],
        3,
        token_weight=weights,
    )
    graph, candidates = labelled(seed, 3, "full", weighted=True), with_candidates(seed)
    return {
        "multiclass": (multiclass, *native(multiclass)),
        "chain": (chain, *native(chain)),
        "graph": (graph, graph.native(), graph.graphs, graph.labels),
        "candidates": (candidates, candidates.native(), candidates.graphs, candidates.labels),
    }


def train_on_images(**options):
    rng = np.random.default_rng(0)
    truth = np.zeros((8, 8), int)
    truth[2:6, 2:7] = 1
    X = [mm.Graph.grid(truth[:, :, None] + rng.normal(scale=1.0, size=(8, 8, 4))) for _ in range(20)]
    model = mm.models.Pairwise(2, nonnegative={"edge_coef": True})
    options = {"epsilon": 0.05, "cache_size": 0, **options}
    return mm.train(model, X, [truth.ravel()] * 20, 1.0, solver="one-slack", solver_options=options).history
