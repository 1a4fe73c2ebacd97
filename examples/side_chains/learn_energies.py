"""Learns the weights of eight energy terms that predict protein side chains, and compares them with unlearned ones.

MAXMARGIN_DATA=… python examples/side_chains/learn_energies.py                       about three minutes
MAXMARGIN_DATA=… python examples/side_chains/learn_energies.py --only-baselines      about one
MAXMARGIN_DATA=… python examples/side_chains/learn_energies.py --cache energies      keeps the energies for the next run

Given the backbone of a protein, the shape of every side chain is chosen from a few rotamers so that the energy
Σ_e w_e E_e is least (Yanover, Schueler-Furman and Weiss 2008).  `mm.GraphSVM` learns weights w ≥ 0 under which native shapes
have less energy than others, by a margin that grows with the number of wrong side chains.

Accuracies are shares of test residues whose angle χ1 (or χ1 and χ2, where there are two) is within 40° of the native one.
"""

import argparse
import time

import numpy as np
from energies import NODE_TERMS, PAIR_TERMS
from instances import make_instances, split_by_target
from rotamers import is_within

import maxmargin as mm
from maxmargin.datasets import load_side_chains

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


def show(what, instances, labellings):
    """Print one line of the table."""
    chi1, chi12, right = accuracies(instances, labellings)
    print(f"{what:<42}{chi1:8.1%}{chi12:10.1%}{right:12.1%}", flush=True)


def show_baselines(test):
    """Print what unlearned weights reach, and what is possible with these candidates."""
    rotamer_only = np.eye(len(NODE_TERMS))[NODE_TERMS.index("rotamer")]
    nothing = np.zeros(len(PAIR_TERMS))
    ones = np.ones(len(NODE_TERMS)), np.ones(len(PAIR_TERMS))
    show("rotamer preference alone", test, [decode(x, rotamer_only, nothing) for x in test])
    show("all terms that look at one side chain", test, [decode(x, ones[0], nothing) for x in test])
    show("all terms, every weight 1", test, [decode(x, *ones) for x in test])
    show("the right candidates: no weights do better", test, [x.truth for x in test])


def learn(train, test, C, jobs):
    """Train, and print the weights and what they reach."""
    svm = mm.GraphSVM(C=C, nonnegative="all", inference="auto", n_jobs=jobs)
    start = time.perf_counter()
    svm.fit([to_graph(x) for x in train], [x.truth for x in train])
    seconds = time.perf_counter() - start
    show(f"all terms, weights learned (C = {C:g})", test, svm.predict([to_graph(x) for x in test]))
    print(f"\nTrained in {seconds:.1f} s. {svm.certificate_}\n")
    weights = [*svm.coef_.ravel(), *svm.edge_coef_.ravel()]
    for term, weight in zip((*NODE_TERMS, *PAIR_TERMS), weights, strict=True):
        print(f"  {term:<16}{weight:8.3f}")


def main():
    parser = argparse.ArgumentParser(description="Learn the weights of energy terms for protein side chains.")
    parser.add_argument("--C", type=float, default=0.01)
    parser.add_argument("--cache", help="folder in which energies are kept")
    parser.add_argument("--jobs", type=int, default=1, help="threads")
    parser.add_argument("--only-baselines", action="store_true", help="learn nothing")
    arguments = parser.parse_args()

    train, test = make_instances(*split_by_target(load_side_chains()), folder=arguments.cache)
    for what, instances in (("training", train), ("test", test)):
        residues = sum(len(x.truth) for x in instances)
        candidates = sum(len(f) for x in instances for f in x.candidate_features)
        edges = sum(len(x.edges) for x in instances)
        print(
            f"{len(instances)} {what} proteins: {residues:,} residues with {candidates / residues:.1f} candidates each, "
            f"{edges:,} pairs that interact"
        )
    print(f"\n{'on the test proteins':<42}{'χ1':>8}{'χ1 and χ2':>10}{'candidate':>12}")
    show_baselines(test)
    if not arguments.only_baselines:
        learn(train, test, arguments.C, arguments.jobs)


if __name__ == "__main__":
    main()
