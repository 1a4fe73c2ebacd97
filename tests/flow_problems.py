"""Random graphs with capacities, their minimum cuts by SciPy and by enumeration, and random binary and metric scores."""

import itertools

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_flow

from maxmargin import _core


def random_edges(rng, n_nodes, n_edges):
    """Edges between two different nodes each; several may join the same nodes."""
    if n_nodes < 2:
        return np.zeros(0, np.int32), np.zeros(0, np.int32)
    first = rng.integers(0, n_nodes, n_edges)
    second = (first + rng.integers(1, n_nodes, n_edges)) % n_nodes
    return first.astype(np.int32), second.astype(np.int32)


def grid_edges(height, width):
    """Edges between horizontal and vertical neighbours, nodes counted row by row."""
    nodes = np.arange(height * width, dtype=np.int32).reshape(height, width)
    first = np.concatenate([nodes[:, :-1].ravel(), nodes[:-1].ravel()])
    second = np.concatenate([nodes[:, 1:].ravel(), nodes[1:].ravel()])
    return first, second


class Capacities:
    """Whole numbers on the nodes and edges of a graph, many of them 0; change() draws some of them anew."""

    def __init__(self, rng, n_nodes, first, second, largest=9):
        self.rng, self.n_nodes, self.first, self.second, self.largest = rng, n_nodes, first, second, largest
        self.source, self.sink, self.forward, self.backward = (self.draw(n) for n in self.lengths)

    @property
    def lengths(self):
        return (self.n_nodes, self.n_nodes, len(self.first), len(self.first))

    def draw(self, n):
        return self.rng.integers(0, self.largest + 1, n) * (self.rng.random(n) < 0.7)

    def change(self):
        """Raise, lower or zero each number with a chance of its own; sometimes only nodes or only edges change."""
        chance = self.rng.choice([0.05, 0.3, 1.0])
        arrays = [
            (self.source, self.sink),
            (self.forward, self.backward),
            (self.source, self.sink, self.forward, self.backward),
        ]
        for numbers in arrays[self.rng.integers(3)]:
            chosen = self.rng.random(len(numbers)) < chance
            numbers[chosen] = self.draw(chosen.sum())

    def change_a_little(self):
        """Add at most 1 to or take it from many numbers, or more at few nodes; none falls below 0."""
        kind = self.rng.integers(4)
        if kind == 0:  # as a loss does
            self.add(self.source, self.rng.integers(0, 2, self.n_nodes))
        elif kind == 1:  # what both terminals give changes sign at few nodes
            chosen = self.rng.random(self.n_nodes) < 0.1
            self.source[chosen], self.sink[chosen] = self.sink[chosen], self.source[chosen]
        elif kind == 2:
            for numbers in (self.source, self.sink, self.forward, self.backward):
                self.add(numbers, self.rng.integers(-1, 2, len(numbers)))
        else:  # edges close and open
            for numbers in (self.forward, self.backward):
                chosen = self.rng.random(len(numbers)) < 0.2
                numbers[chosen] = np.where(numbers[chosen] > 0, 0, self.draw(chosen.sum()))

    @staticmethod
    def add(numbers, changes):
        np.maximum(numbers + changes, 0, out=numbers)

    def give(self, flow, unit=1.0):
        flow.set_terminals(self.source * unit, self.sink * unit)
        flow.set_edges(self.forward * unit, self.backward * unit)

    def cut_value(self, on_source_side):
        """The value of a cut by its definition."""
        crosses = on_source_side[self.first].astype(int) - on_source_side[self.second]
        ends = self.source[~on_source_side].sum() + self.sink[on_source_side].sum()
        return ends + self.forward[crosses > 0].sum() + self.backward[crosses < 0].sum()


def solved(capacities, unit=1.0):
    flow = _core.MaxFlow(capacities.n_nodes, capacities.first, capacities.second)
    capacities.give(flow, unit)
    return flow


def flow_by_scipy(problems):
    """The largest flows of several graphs in one call, summed: they share nothing but source and sink."""
    tails, heads, numbers = [], [], []
    n = 2
    for p in problems:
        nodes = np.arange(n, n + p.n_nodes)
        tails += [np.zeros(p.n_nodes, int), nodes, nodes[p.first], nodes[p.second]]
        heads += [nodes, np.ones(p.n_nodes, int), nodes[p.second], nodes[p.first]]
        numbers += [p.source, p.sink, p.forward, p.backward]
        n += p.n_nodes
    places = (np.concatenate(tails), np.concatenate(heads))
    graph = csr_array((np.concatenate(numbers).astype(np.int32), places), shape=(n, n))
    graph.sum_duplicates()
    return maximum_flow(graph, 0, 1).flow_value


def all_labellings(n_labels):
    return [np.array(labels, np.int32) for labels in itertools.product(*(range(n) for n in n_labels))]


class Scores:
    """Unary scores and pair scores of a graph, as the core takes them."""

    def __init__(self, n_labels, first, second, unary, values, offsets=None):
        self.n_labels, self.first, self.second = n_labels, first, second
        self.label_offsets = np.concatenate([[0], np.cumsum(n_labels)]).astype(np.int64)
        self.unary, self.values, self.offsets = unary, values, offsets

    @property
    def shape(self):
        return self.label_offsets, self.first, self.second

    def of(self, labels):
        """The score of a labelling by its definition."""
        total = sum(self.unary[start + y] for start, y in zip(self.label_offsets, labels, strict=False))
        for e, (i, j) in enumerate(zip(self.first, self.second, strict=True)):
            if self.offsets is None:
                total += self.values[e] * (labels[i] == labels[j])
            else:
                total += self.values[self.offsets[e] + labels[i] * self.n_labels[j] + labels[j]]
        return total

    def best(self):
        return max(self.of(labels) for labels in all_labellings(self.n_labels))
