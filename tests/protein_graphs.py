"""Side-chain packing of proteins as graphs: the instances in ``protein_mrf`` of the folder named by MAXMARGIN_DATA.

1aho.cfn.gz is a cost function network of toulbar2 (JSON; costs, of which the scores are the negative), 1cb6.LG.xz is in the
layout of the UAI contests with logarithms of potentials, which are scores.
"""

import gzip
import json
import lzma
from pathlib import Path

import numpy as np
from labelled_graphs import Graph

FILES = {"1aho": "1aho.cfn.gz", "1cb6": "1cb6.LG.xz"}
# The best scores, proved by toulbar2 1.4.0 with virtual arc consistency (`toulbar2(read_protein(…)).Solve()`).
BEST_SCORES = {"1aho": 33.729920, "1cb6": 132.405304}


def read_protein(folder, name):
    path = Path(folder) / "protein_mrf" / FILES[name]
    return _graph(*(_read_cfn(path) if name == "1aho" else _read_log_uai(path)))


def toulbar2(graph):
    """The same problem for pytoulbar2: costs are negative scores with six decimals, as many as the files have."""
    from pytoulbar2 import CFN

    network = CFN(ubinit=1e7, resolution=6, vac=1)
    offsets = graph.shape[0]
    for i, count in enumerate(graph.counts):
        network.AddVariable(f"x{i}", range(count))
    for i in range(len(graph.counts)):
        network.AddFunction([f"x{i}"], (-graph.unary[offsets[i] : offsets[i + 1]]).tolist())
    for e in range(len(graph.first)):
        network.AddFunction([f"x{graph.first[e]}", f"x{graph.second[e]}"], (-graph.table(e)).ravel().tolist())
    return network


def _graph(counts, functions):
    counts = np.array(counts)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    unary = np.zeros(offsets[-1])
    edges = [(scope, scores) for scope, scores in functions if len(scope) == 2]
    for scope, scores in functions:
        if len(scope) == 1:
            unary[offsets[scope[0]] : offsets[scope[0] + 1]] += scores
    ends = np.array([scope for scope, _ in edges], np.int32)
    sizes = [len(scores) for _, scores in edges]
    begin = np.concatenate([[0], np.cumsum(sizes[:-1])]).astype(np.int64)
    return Graph(counts, ends[:, 0].copy(), ends[:, 1].copy(), unary, np.concatenate([s for _, s in edges]), begin)


def _read_cfn(path):
    with gzip.open(path, "rt") as stream:
        network = json.load(stream)
    counts = [len(labels) for labels in network["variables"].values()]
    functions = []
    for function in network["functions"].values():
        scope, costs = function["scope"], function["costs"]
        if "defaultcost" in function:
            table = np.full([counts[i] for i in scope], float(function["defaultcost"]))
            for entry in np.reshape(costs, (-1, len(scope) + 1)):
                table[tuple(entry[:-1].astype(int))] = entry[-1]
            costs = table.ravel()
        functions.append((scope, -np.array(costs, float)))
    return counts, functions


def _read_log_uai(path):
    with lzma.open(path, "rt") as stream:
        words = iter(stream.read().split())
    assert next(words) == "MARKOV"

    def numbers(n, kind=int):
        return [kind(next(words)) for _ in range(n)]

    counts = numbers(*numbers(1))
    scopes = [numbers(*numbers(1)) for _ in range(*numbers(1))]
    return counts, [(scope, np.array(numbers(*numbers(1), float))) for scope in scopes]
