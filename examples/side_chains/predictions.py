"""From weights to side chains: the labelling of least energy, and how near its angles are to the native ones.

Accuracies are shares of residues whose angle χ1 (or χ1 and χ2, where there are two) is within 40° of the native one.
"""

import numpy as np
from rotamers import is_within

import maxmargin as mm

TEMPERATURES = (1.0, 1.0, 0.7, 0.5, 0.35, 0.25, 0.15)


def to_graph(instance):
    """Return the instance as a graph whose best labelling has least energy."""
    return mm.Graph.from_candidates(
        [-energies for energies in instance.candidate_features],
        instance.edges,
        [-energies for energies in instance.pair_features],
    )


def decode(instance, node_weights, pair_weights, max_sweeps=100):
    """Return a labelling of low energy that no change of a single label makes lower.

    Mean fields at falling temperatures give the start, coordinate descent the end.  It stands in for the inference
    of `mm.GraphSVM` where weights are given and not learned.
    """
    alone = [np.asarray(f @ np.asarray(node_weights), dtype=np.float64) for f in instance.candidate_features]
    around = [[] for _ in alone]
    for (first, second), features in zip(instance.edges, instance.pair_features, strict=True):
        table = features @ np.asarray(pair_weights)
        around[first].append((second, table))
        around[second].append((first, table.T))
    shares = [_shares(energies, TEMPERATURES[0]) for energies in alone]
    for temperature in TEMPERATURES:
        for node, energies in enumerate(alone):
            field = sum((table @ shares[other] for other, table in around[node]), start=energies)
            shares[node] = _shares(field, temperature)
    labels = np.array([int(share.argmax()) for share in shares])
    for _ in range(max_sweeps):
        before = labels.copy()
        for node, energies in enumerate(alone):
            field = sum((table[:, labels[other]] for other, table in around[node]), start=energies)
            best = int(field.argmin())
            if field[best] < field[labels[node]] - 1e-9:
                labels[node] = best
        if np.array_equal(before, labels):
            break
    return labels


def _shares(energies, temperature):
    weights = np.exp((energies.min() - energies) / temperature)
    return weights / weights.sum()


def accuracies(instances, labellings):
    """Return the shares of residues with χ1 within 40°, with χ1 and χ2 within 40°, and with the right candidate."""
    first, both, right = [], [], []
    for instance, labels in zip(instances, labellings, strict=True):
        right.extend(labels == instance.truth)
        for node, label in enumerate(labels):
            angles = instance.candidate_angles[node][label]
            near = is_within(instance.residue_names[node], angles, instance.native_angles[node])
            first.append(near[0])
            if len(near) > 1:
                both.append(near[0] and near[1])
    return float(np.mean(first)), float(np.mean(both)), float(np.mean(right))
