"""Minimum cuts in the order in which training asks for them: a solver that keeps its flow against cold solves.

Images of two discs in twelve channels with noise of their own, as 4-connected grids or as Delaunay graphs of random
points. A node has its channels and a 1 as features, an edge a 1 and how alike its ends look in each channel; edge
weights stay ≥ 0. ``one-slack`` searches every image once a pass, ``block-dual`` visits them one by one. A model written
down here records the capacities of every loss-augmented search. They are then replayed, image by image: ``cold`` builds
a graph for each search, ``warm`` keeps one graph for each image and includes the giving of capacities. The first search
of each image, at w = 0, is left out, and the next is cold for both.

    training       the searches of the run, one after the other
    with loss      after each of them, the same w without the loss, and back: what a scorer does beside training

    python benchmarks/max_flow_training.py [--repeats 3]

Writes results/max_flow_training.md. CPU time in ms, the best of several. Unary scores change by 5 to 50 % between two
passes of these runs, which is much: most of what is gained is that the graph is built once.
"""

from __future__ import annotations

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
from _measure import write_table
from max_flow import Problem, grid, ours, superpixels

import maxmargin as mm
from maxmargin import _core

CHANNELS = 12


class Image(NamedTuple):
    """One example: its graph, the features of its nodes and of its edges, and its number."""

    graph: Problem
    nodes: np.ndarray
    edges: np.ndarray
    number: int


class Recorder(mm.Model):
    """Two labels and edges that like agreement; keeps the capacities of all loss-augmented searches."""

    n_features = 2 * (CHANNELS + 1)
    nonnegative = tuple(range(CHANNELS + 1, n_features))

    def __init__(self) -> None:
        self.searches: dict[int, list[tuple[np.ndarray, np.ndarray, np.ndarray]]] = {}

    def joint_feature(self, x: Image, y: np.ndarray) -> np.ndarray:
        differ = y[x.graph.first] != y[x.graph.second]
        return np.concatenate([y @ x.nodes, -(differ @ x.edges)])

    def loss(self, y_true: np.ndarray, y: np.ndarray) -> float:
        return float(np.sum(y_true != y))

    def key(self, y: np.ndarray) -> bytes:
        return y.tobytes()

    def argmax(self, x: Image, w: np.ndarray) -> np.ndarray:
        return self.cut(x, x.nodes @ w[: CHANNELS + 1], x.edges @ w[CHANNELS + 1 :])

    def loss_augmented_argmax(self, x: Image, y: np.ndarray, w: np.ndarray) -> np.ndarray:
        gain, pair, loss = x.nodes @ w[: CHANNELS + 1], x.edges @ w[CHANNELS + 1 :], 1.0 - 2.0 * y
        self.searches.setdefault(x.number, []).append((gain, pair, loss))
        return self.cut(x, gain + loss, pair)

    def cut(self, x: Image, gain: np.ndarray, pair: np.ndarray) -> np.ndarray:
        flow = _core.MaxFlow(x.graph.n_nodes, x.graph.first, x.graph.second)
        flow.set_terminals(np.maximum(gain, 0.0), np.maximum(-gain, 0.0))
        flow.set_edges(pair, pair)
        return flow.solve()[1].astype(np.float64)


def image(rng: np.random.Generator, graph: Problem, number: int, noise: float) -> tuple[Image, np.ndarray]:
    """Return an example on a graph whose nodes lie row by row in a square, and its true labels."""
    side = int(np.ceil(np.sqrt(graph.n_nodes)))
    rows, columns = np.divmod(np.arange(graph.n_nodes), side)
    centres, radii = rng.random((2, 2)) * side, side * rng.uniform(0.15, 0.3, 2)
    discs = [np.hypot(rows - r, columns - c) < radius for (r, c), radius in zip(centres, radii, strict=True)]
    truth = np.logical_or(*discs).astype(np.float64)
    values = truth[:, None] - 0.5 + noise * rng.normal(size=(graph.n_nodes, CHANNELS))
    alike = np.exp(-np.abs(values[graph.first] - values[graph.second]))
    nodes, edges = (np.column_stack([rows, np.ones(len(rows))]) for rows in (values, alike))
    return Image(graph, nodes, edges, number), truth


def recorded(examples: list[tuple[Image, np.ndarray]], solver: str) -> list[tuple[Problem, list[Any]]]:
    """Return each image's graph and the searches that a run of the solver made in it."""
    X, Y = zip(*examples, strict=True)
    model = Recorder()
    mm.train(model, list(X), list(Y), C=10.0 / sum(len(y) for y in Y), solver=solver, tol=1e-3, max_iter=60)
    return [(x.graph, model.searches[x.number][1:]) for x in X]


def orders(runs: list[tuple[Problem, list[Any]]]) -> dict[str, list[list[Problem]]]:
    """Return the problems of every image in the order in which they are solved."""
    training, with_loss = [], []
    for graph, searches in runs:
        augmented = [graph._replace(gain=gain + loss, pair=pair) for gain, pair, loss in searches]
        plain = [graph._replace(gain=gain, pair=pair) for gain, pair, _ in searches]
        training.append(augmented)
        with_loss.append([problem for both in zip(augmented, plain, strict=True) for problem in both])
    return {"training": training, "with loss": with_loss}


def warm_seconds(problems: list[Problem]) -> tuple[float, list[float]]:
    """Solve the problems of one image by one kept graph; the CPU time of all but the first, and the values."""
    flow = _core.MaxFlow(problems[0].n_nodes, problems[0].first, problems[0].second)
    seconds, values = 0.0, []
    for k, problem in enumerate(problems):
        source, sink = problem.source, problem.sink
        start = time.process_time()
        flow.set_terminals(source, sink)
        flow.set_edges(problem.pair, problem.pair)
        values.append(flow.solve()[0])
        seconds += (time.process_time() - start) * (k > 0)
    return seconds, values


def measured(images: list[list[Problem]], repeats: int) -> dict[str, Any]:
    """Return the least times over all searches but the first of each image; the values must agree."""
    cold_s, warm_s = [], []
    for _ in range(repeats):
        cold = [[ours(problem) for problem in problems] for problems in images]
        warm = [warm_seconds(problems) for problems in images]
        for own, (_, values) in zip(cold, warm, strict=True):
            if not np.allclose([t.value for t in own], values, rtol=1e-9, atol=1e-9):
                raise RuntimeError("warm and cold solves find different flows.")
        cold_s.append(sum(t.everything for own in cold for t in own[1:]))
        warm_s.append(sum(seconds for seconds, _ in warm))
    searches = sum(len(problems) - 1 for problems in images)
    return {
        "searches": searches,
        "cold": 1e3 * min(cold_s),
        "warm": 1e3 * min(warm_s),
        "cold / warm": min(cold_s) / min(warm_s),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Minimum cuts of training runs, cold and warm.")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    rng = np.random.default_rng(0)
    rows = []
    for noise in (2.0, 4.0):
        cases = {
            "4 grids 128 × 128": [image(rng, grid(rng, 128, 1.0), k, noise) for k in range(4)],
            "40 superpixel graphs": [image(rng, superpixels(rng, 1.0), k, noise) for k in range(40)],
        }
        for name, examples in cases.items():
            for solver in ("one-slack", "block-dual"):
                for order, images in orders(recorded(examples, solver)).items():
                    row = {"graphs": name, "noise": noise, "solver": solver, "searches of": order}
                    rows.append({**row, **measured(images, arguments.repeats)})
                    print(rows[-1], flush=True)
    print(write_table("max_flow_training", rows, note="CPU ms, best of several; see benchmarks/max_flow_training.py."))


if __name__ == "__main__":
    main()
