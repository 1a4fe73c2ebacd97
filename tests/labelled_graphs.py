"""Small graphs with scores for tests of inference, and what is best in them: all labellings, or a linear program."""

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog


@dataclass
class Graph:
    counts: np.ndarray  # labels of each node
    first: np.ndarray
    second: np.ndarray
    unary: np.ndarray
    values: np.ndarray
    offsets: np.ndarray | None  # None: Potts

    @property
    def shape(self):
        return np.concatenate([[0], np.cumsum(self.counts)]).astype(np.int64), self.first, self.second

    @property
    def arguments(self):
        return *self.shape, self.unary, self.values, self.offsets

    def table(self, edge):
        a, b = self.counts[self.first[edge]], self.counts[self.second[edge]]
        if self.offsets is None:
            return self.values[edge] * np.eye(a, b)
        return self.values[self.offsets[edge] : self.offsets[edge] + a * b].reshape(a, b)

    def score(self, labels):
        node = self.shape[0][:-1]
        pairs = (self.table(e)[labels[self.first[e]], labels[self.second[e]]] for e in range(len(self.first)))
        return float(self.unary[node + np.asarray(labels, np.int64)].sum() + sum(pairs))

    def all_scores(self):
        """The scores of all labellings, one axis per node."""
        n, offsets = len(self.counts), self.shape[0]
        total = np.zeros(tuple(self.counts))
        for i in range(n):
            of_node = self.unary[offsets[i] : offsets[i + 1]]
            total = total + of_node.reshape([-1 if j == i else 1 for j in range(n)])
        for e, (a, b) in enumerate(zip(self.first, self.second, strict=True)):
            table = self.table(e) if a < b else self.table(e).T
            total = total + table.reshape([self.counts[j] if j in (a, b) else 1 for j in range(n)])
        return total

    def best_score(self):
        return float(self.all_scores().max())

    def max_marginals(self):
        """The best score with each label of each node, one node after the other."""
        scores = self.all_scores()
        of_nodes = [np.moveaxis(scores, i, 0).reshape(n, -1).max(axis=1) for i, n in enumerate(self.counts)]
        return np.concatenate(of_nodes)

    def magnitude(self):
        """What rounding errors are measured by."""
        return float(
            np.abs(self.unary).sum() + sum(np.abs(self.table(e)).max() for e in range(len(self.first))) + 1e-300
        )

    def linear_relaxation(self):
        """The value of the linear program over the local polytope; parallel edges are one pair."""
        offsets, n_unary = self.shape[0], int(self.shape[0][-1])
        tables = {}
        for e, (a, b) in enumerate(zip(self.first.tolist(), self.second.tolist(), strict=True)):
            key, table = ((a, b), self.table(e)) if a < b else ((b, a), self.table(e).T)
            tables[key] = tables.get(key, 0.0) + table
        costs, rows, right = [self.unary], [], []
        at = n_unary
        for i in range(len(self.counts)):
            rows.append({offsets[i] + k: 1.0 for k in range(self.counts[i])})
            right.append(1.0)
        for (a, b), table in tables.items():
            costs.append(table.ravel())
            index = at + np.arange(table.size).reshape(table.shape)
            for node, lines in ((a, index), (b, index.T)):
                for k, line in enumerate(lines):
                    rows.append({offsets[node] + k: -1.0} | dict.fromkeys(line.tolist(), 1.0))
                    right.append(0.0)
            at += table.size
        data = [(value, r, c) for r, row in enumerate(rows) for c, value in row.items()]
        value, r, c = (np.array(column) for column in zip(*data, strict=True))
        matrix = sp.csr_matrix((value, (r.astype(int), c.astype(int))), shape=(len(rows), at))
        found = linprog(-np.concatenate(costs), A_eq=matrix, b_eq=right, bounds=(0, None), method="highs")
        assert found.status == 0
        return -found.fun


def random_graph(rng, counts, edges, kind="table", scale=1.0, ties=False):
    """Scores for a graph: kind is 'table', 'shared' (edges of the same shape share a table), 'potts' or 'attractive'."""
    counts = np.asarray(counts)
    number = (
        (lambda size: rng.integers(-2, 3, size=size).astype(float)) if ties else (lambda size: rng.normal(size=size))
    )
    edges = np.asarray(edges, np.int32).reshape(-1, 2)
    first, second = edges[:, 0].copy(), edges[:, 1].copy()
    unary = scale * number(int(counts.sum()))
    if kind in ("potts", "attractive"):
        values = scale * number(len(edges))
        return Graph(counts, first, second, unary, np.abs(values) if kind == "attractive" else values, None)
    sizes = [(int(counts[a]), int(counts[b])) for a, b in edges]
    begin, offsets, values = {}, [], []
    for e, (rows, columns) in enumerate(sizes):
        key = (rows, columns) if kind == "shared" else e
        if key not in begin:
            begin[key] = sum(map(len, values))
            values.append(scale * number(rows * columns))
        offsets.append(begin[key])
    return Graph(counts, first, second, unary, np.concatenate([*values, np.zeros(0)]), np.array(offsets, np.int64))


def random_edges(rng, n_nodes, n_edges):
    """Edges between different nodes in either direction, parallel ones among them."""
    if n_nodes < 2:
        return np.zeros((0, 2), np.int32)
    a = rng.integers(n_nodes, size=n_edges)
    return np.column_stack([a, (a + rng.integers(1, n_nodes, size=n_edges)) % n_nodes]).astype(np.int32)


def forest_edges(rng, n_nodes, p_edge=0.85):
    """A random forest with nodes in random order; some links are doubled in either direction."""
    names, edges = rng.permutation(n_nodes), []
    for k in range(1, n_nodes):
        if rng.random() < p_edge:
            pair = [names[k], names[rng.integers(k)]]
            for _ in range(1 + (rng.random() < 0.15)):
                edges.append(pair if rng.random() < 0.5 else pair[::-1])
    return np.array(edges, np.int32).reshape(-1, 2)


def grid_edges(height, width):
    node = np.arange(height * width, dtype=np.int32).reshape(height, width)
    across = np.column_stack([node[:, :-1].ravel(), node[:, 1:].ravel()])
    return np.concatenate([across, np.column_stack([node[:-1].ravel(), node[1:].ravel()])])


def labellings(counts):
    return list(itertools.product(*(range(k) for k in counts)))
