"""Random labelled graphs, and their model written out in plain Python for the reference QP."""

import itertools
from dataclasses import dataclass

import numpy as np

import maxmargin as mm

EDGES = ["potts", "associative", "symmetric", "full"]


def column_of(edges, a, b, k):
    """Column and sign of a pair of labels; None where it scores nothing."""
    if edges == "potts":
        return (0, 1.0) if a == b else None
    if edges == "symmetric":
        low, high = sorted((a, b))
        return low * k - low * (low - 1) // 2 + high - low, 1.0
    return a * k + b, -1.0 if edges == "associative" and a != b else 1.0


@dataclass
class GraphModel:
    """What tests/reference.py asks of a model, for graphs with shared labels or with candidates."""

    graphs: list
    labels: list
    n_labels: int | None
    edges: str = "potts"
    cost: np.ndarray | None = None
    n_types: int = 1

    @property
    def n_examples(self):
        return len(self.graphs)

    @property
    def n_columns(self):
        k = self.n_labels
        return {"potts": 1, "symmetric": k * (k + 1) // 2}.get(self.edges, k * k) if k else 1

    @property
    def n_weights(self):
        return len(self.psi(0, self.truth(0)))

    def truth(self, i):
        return tuple(int(label) for label in self.labels[i])

    def outputs(self, i):
        graph = self.graphs[i]
        counts = [self.n_labels] * graph.n_nodes if self.n_labels else graph.candidate_counts.tolist()
        return itertools.product(*(range(n) for n in counts))

    def psi(self, i, y):
        graph = self.graphs[i]
        d, e = graph.rows.shape[1], graph.edge_rows.shape[1]
        coef, table = np.zeros((self.n_labels or 1, d)), np.zeros((self.n_types, e, self.n_columns))
        starts = None if self.n_labels else np.concatenate([[0], np.cumsum(graph.candidate_counts)])
        for node, label in enumerate(y):
            if self.n_labels:
                coef[label] += graph.rows[node]
            else:
                coef[0] += graph.rows[starts[node] + label]
        row = 0
        for number, (a, b) in enumerate(graph.edges):
            kind = 0 if graph.edge_types is None else graph.edge_types[number]
            if self.n_labels:
                place = column_of(self.edges, y[a], y[b], self.n_labels)
                if place is not None:
                    table[kind, :, place[0]] += place[1] * graph.edge_rows[number]
            else:
                n_second = int(graph.candidate_counts[b])
                table[kind, :, 0] += graph.edge_rows[row + y[a] * n_second + y[b]]
                row += int(graph.candidate_counts[a]) * n_second
        return np.concatenate([coef.ravel(), table.ravel()])

    def loss(self, i, y):
        graph, total = self.graphs[i], 0.0
        for node, (right, label) in enumerate(zip(self.truth(i), y, strict=True)):
            weight = 1.0 if graph.node_weights is None else graph.node_weights[node]
            total += weight * (float(right != label) if self.cost is None else self.cost[right, label])
        return total

    def native(self, **parameters):
        return mm.models.Pairwise(
            self.n_labels, edges=self.edges, cost=self.cost, n_edge_types=self.n_types, **parameters
        )


def random_edges(rng, n, share=0.7):
    pairs = [pair for pair in itertools.combinations(range(n), 2) if rng.random() < share]
    # Either end may come first, and two edges may join the same nodes.
    pairs = [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]
    return pairs + ([pairs[0][::-1]] if pairs and rng.random() < 0.2 else [])


def labelled(seed, n_labels=2, edges="potts", *, weighted=False, with_cost=False, n_types=1, n=6):
    """Graphs of two to five nodes with shared labels."""
    rng = np.random.default_rng([seed, n_labels, len(edges)])
    graphs, labels = [], []
    for _ in range(n):
        n_nodes = int(rng.integers(1, 5))
        pairs = random_edges(rng, n_nodes)
        graphs.append(
            mm.Graph(
                rng.normal(size=(n_nodes, 3)),
                pairs,
                rng.random((len(pairs), 2)),
                node_weights=rng.uniform(0.0, 2.0, n_nodes) if weighted else None,
                edge_types=rng.integers(n_types, size=len(pairs)) if n_types > 1 else None,
            )
        )
        labels.append(rng.integers(n_labels, size=n_nodes))
    cost = rng.uniform(0.5, 2.0, (n_labels, n_labels)) * (1 - np.eye(n_labels)) if with_cost else None
    return GraphModel(graphs, labels, n_labels, edges, cost, n_types)


def with_candidates(seed, n=6):
    """Graphs whose nodes have one to three candidates."""
    rng = np.random.default_rng([seed, 99])
    graphs, labels = [], []
    for _ in range(n):
        counts = rng.integers(1, 4, int(rng.integers(2, 5)))
        pairs = random_edges(rng, len(counts))
        graphs.append(
            mm.Graph.from_candidates(
                [rng.normal(size=(k, 3)) for k in counts],
                pairs,
                [rng.normal(size=(counts[a], counts[b], 2)) for a, b in pairs],
            )
        )
        labels.append([int(rng.integers(k)) for k in counts])
    # Graphs without edges know nothing of edge features: one that has some comes first.
    order = sorted(range(n), key=lambda i: graphs[i].n_edges == 0)
    graphs, labels = [graphs[i] for i in order], [labels[i] for i in order]
    kept = [i for i in range(n) if graphs[i].n_edges]
    return GraphModel([graphs[i] for i in kept], [labels[i] for i in kept], None)


def open_problem():
    """Complete graphs of six nodes and three labels, which TRW-S seldom closes."""
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(6), 2))
    graphs = [mm.Graph(rng.normal(size=(6, 2)), edges, rng.normal(size=(15, 2))) for _ in range(4)]
    return GraphModel(graphs, [rng.integers(3, size=6) for _ in graphs], 3, "full")


def images(n=12, size=6, seed=0):
    """Noisy pictures of a ship as grids, and the labels of their pixels."""
    rng = np.random.default_rng(seed)
    truth = np.full((size, size), "sky", dtype=object)
    truth[2:5, 1:5] = "ship"
    noisy = [(truth == "ship") + rng.normal(scale=0.7, size=truth.shape) for _ in range(n)]
    return [mm.Graph.grid(np.dstack([image, np.ones_like(image)])) for image in noisy], [truth.ravel().tolist()] * n
