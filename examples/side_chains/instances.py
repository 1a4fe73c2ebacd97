"""Proteins as graphs: a node for each flexible residue, its rotamers as candidates, energies as features.

    E(y) = Σ_i w·E_i(y_i) + Σ_ij v·E_ij(y_i, y_j)

`candidate_features` and `pair_features` hold the energies as they stand; `mm.Graph.from_candidates` maximises, so give
it their negatives.  Two residues are joined where some pair of their candidates has a pair energy.
"""

import hashlib
import os
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from chemistry import BACKBONE, SIDE_CHAIN, TYPE_NAMES, atom_type, charge, hydrogen_bonding, neighbours
from energies import CUTOFF, FIXED_CAP, Atoms, pair_energies, torsion_energies
from rotamers import build, learn_rotamers, native_angles, residues_of, true_candidate
from scipy.spatial import cKDTree

# Atoms fewer than four bonds apart are held by lengths, angles and torsions, which have terms of their own.
EXCLUDED_BONDS = 3
# An edge whose energies stay below this, in the units of the features, says nothing.
NEGLIGIBLE = 0.2


@dataclass(frozen=True)
class Instance:
    """One protein, in the shapes of ``mm.Graph.from_candidates``; lists have one entry for each node or edge.

    Attributes
    ----------
    name : str
    residue_names : list of str
    residue_numbers : ndarray of int, shape (n_nodes,)
    candidate_angles : list of ndarray of shape (n_candidates, n_angles)
        Torsion angles in degrees.
    candidate_bins : list of ndarray of int, shape (n_candidates, n_angles)
    native_angles : list of ndarray of shape (n_angles,)
    truth : ndarray of int, shape (n_nodes,)
        Number of the right candidate.
    candidate_features : list of ndarray of shape (n_candidates, n_node_terms)
    edges : ndarray of int, shape (n_edges, 2)
    pair_features : list of ndarray of shape (n_candidates of first, n_candidates of second, n_pair_terms)
    """

    name: str
    residue_names: list[str]
    residue_numbers: np.ndarray
    candidate_angles: list[np.ndarray]
    candidate_bins: list[np.ndarray]
    native_angles: list[np.ndarray]
    truth: np.ndarray
    candidate_features: list[np.ndarray]
    edges: np.ndarray
    pair_features: list[np.ndarray]


def make_instance(name, residues, rotamers):
    """Return the graph of one protein, given its residues and the rotamers of each kind of residue."""
    nodes = [place for place, residue in enumerate(residues) if residue.is_flexible]
    chosen = [rotamers[residues[place].name] for place in nodes]
    sides = [_side_chain(residues[p], build(residues[p], r.angles)) for p, r in zip(nodes, chosen, strict=True)]
    native = [native_angles(residues[place]) for place in nodes]
    edges, pair_features = _pairs(residues, nodes, sides)
    return Instance(
        name=name,
        residue_names=[residues[place].name for place in nodes],
        residue_numbers=np.array([residues[place].number for place in nodes]),
        candidate_angles=[r.angles for r in chosen],
        candidate_bins=[r.bins for r in chosen],
        native_angles=native,
        truth=np.array(
            [true_candidate(r, residues[p].name, angles) for p, r, angles in zip(nodes, chosen, native, strict=True)]
        ),
        candidate_features=_node_features(residues, nodes, chosen, sides),
        edges=edges,
        pair_features=pair_features,
    )


def _side_chain(residue, placed):
    """Return the atoms beyond CB of all candidates, placed (n_candidates, n_atoms, 3)."""
    names = SIDE_CHAIN[residue.name]
    place = {name: index for index, name in enumerate(names)}
    outward = np.zeros_like(placed)
    for name in names:
        if hydrogen_bonding(residue.name, name):
            bonded = [
                placed[:, place[other]] if other in place else residue.atoms[other]
                for other in neighbours(residue.name)[name]
            ]
            outward[:, place[name]] = _away(placed[:, place[name]], bonded)
    return _with_constants(placed, outward, [(residue.name, name) for name in names])


def _fixed_atoms(residues):
    """Return all atoms that no candidate moves, and the number of the residue and name of each."""
    xyz, outward, owners = [], [], []
    for place, residue in enumerate(residues):
        names = [*BACKBONE, "CB", "OXT"] if residue.is_flexible else residue.atoms
        for name in names:
            if name not in residue.atoms:
                continue
            bonded = [residue.atoms[b] for b in neighbours(residue.name).get(name, ["C"]) if b in residue.atoms]
            if name == "N" and residue.follows:
                bonded.append(residues[place - 1].atoms["C"])
            polar = bonded and hydrogen_bonding(residue.name, name)
            xyz.append(residue.atoms[name])
            outward.append(_away(residue.atoms[name], bonded) if polar else np.zeros(3))
            owners.append((place, name))
    kinds = [(residues[place].name, name) for place, name in owners]
    return _with_constants(np.array(xyz)[None], np.array(outward)[None], kinds), owners


def _away(atom, bonded):
    """Return the unit vector that leads away from the middle of the bonded atoms."""
    direction = atom - sum(bonded) / len(bonded)
    return direction / np.linalg.norm(direction, axis=-1, keepdims=True)


def _with_constants(xyz, outward, kinds):
    polar = [hydrogen_bonding(*kind) or (False, False, 0.0) for kind in kinds]
    return Atoms(
        xyz=xyz,
        outward=outward,
        types=np.array([TYPE_NAMES.index(atom_type(*kind)) for kind in kinds]),
        charges=np.array([charge(*kind) for kind in kinds]),
        gives=np.array([gives for gives, _, _ in polar]),
        takes=np.array([takes for _, takes, _ in polar]),
        tilt=np.radians([tilt for _, _, tilt in polar]),
    )


def _node_features(residues, nodes, chosen, sides):
    fixed, owners = _fixed_atoms(residues)
    tree = cKDTree(fixed.xyz[0])
    features = []
    for place, rotamers, side in zip(nodes, chosen, sides, strict=True):
        residue = residues[place]
        near = sorted(tree.query_ball_point(residue.atoms["CB"], _reach(residue, side) + CUTOFF))
        excluded = np.array(
            [
                [_is_bonded(residue.name, name, owners[atom], place) for atom in near]
                for name in SIDE_CHAIN[residue.name]
            ]
        )
        backbone = pair_energies(side, fixed.select(near), excluded, cap=FIXED_CAP)[:, 0].sum(axis=1)
        torsion = torsion_energies(residue.name, rotamers.angles)
        features.append(np.column_stack([rotamers.surprise, torsion, backbone]).astype(np.float32))
    return features


def _is_bonded(residue_name, atom, owner, place):
    # Atoms beyond CB have at least four bonds to those of other residues.
    return owner[0] == place and bonds_between(residue_name, atom).get(owner[1], 99) <= EXCLUDED_BONDS


@cache
def bonds_between(residue_name, start):
    """Return a dict from the atoms of a residue to their distance from `start` in bonds."""
    distance, frontier = {start: 0}, [start]
    for atom in frontier:
        for other in neighbours(residue_name)[atom]:
            if other not in distance:
                distance[other] = distance[atom] + 1
                frontier.append(other)
    return distance


def _reach(residue, side):
    """Return the largest distance of a candidate's atom from CB, in Å."""
    return float(np.sqrt(((side.xyz - residue.atoms["CB"]) ** 2).sum(axis=-1)).max())


def _pairs(residues, nodes, sides):
    """Return the edges (first < second) and their features."""
    centres = np.array([residues[place].atoms["CB"] for place in nodes])
    reach = np.array([_reach(residues[place], side) for place, side in zip(nodes, sides, strict=True)])
    edges, features = [], []
    for first, second in sorted(cKDTree(centres).query_pairs(2.0 * reach.max() + CUTOFF)):
        if np.linalg.norm(centres[first] - centres[second]) > reach[first] + reach[second] + CUTOFF:
            continue
        excluded = None
        if residues[nodes[first]].name == residues[nodes[second]].name == "CYS":
            # Sulphurs may form a disulphide bond, much shorter than their radii allow.
            excluded = np.ones((1, 1), dtype=bool)
        energies = pair_energies(sides[first], sides[second], excluded)
        if np.abs(energies).max() > NEGLIGIBLE:
            edges.append((first, second))
            features.append(energies.astype(np.float32))
    return np.array(edges, dtype=np.int64).reshape(-1, 2), features


def split_by_target(proteins):
    """Return training and test proteins: of the targets in order of name, every third is a test target.

    Domains of one target (``T0918-D1``, ``T0918-D2``) may be alike, and stay together.
    """
    targets = sorted({protein.name.split("-")[0] for protein in proteins})
    tested = set(targets[2::3])
    parts = ([], [])
    for protein in proteins:
        parts[protein.name.split("-")[0] in tested].append(protein)
    return parts


def make_instances(train, test, folder=None):
    """Return the instances of training and test proteins, rotamers learned from the former.

    Parameters
    ----------
    train, test : list of maxmargin.datasets.Protein
    folder : path, optional
        Where instances are kept, one ``.npz`` for each protein, and taken from next time.  They lie in a subfolder named
        after the training proteins and the code, so that they are made anew when either changes.
    """
    if folder is not None:
        folder = Path(folder) / _fingerprint(train)
        folder.mkdir(parents=True, exist_ok=True)
    rotamers = None
    parts = ([], [])
    for proteins, instances in zip((train, test), parts, strict=True):
        for protein in proteins:
            path = None if folder is None else folder / f"{protein.name}.npz"
            if path is not None and path.is_file():
                instances.append(load_instance(path))
                continue
            rotamers = rotamers or learn_rotamers([residues_of(protein) for protein in train])
            instances.append(make_instance(protein.name, residues_of(protein), rotamers))
            if path is not None:
                save_instance(path, instances[-1])
    return parts


def save_instance(path, instance):
    """Write an instance as ``.npz``: lists of arrays as one flat array and the shapes."""
    arrays = {}
    for field in fields(Instance):
        value = getattr(instance, field.name)
        if isinstance(value, list) and not isinstance(value[0] if value else "", str):
            arrays[f"{field.name}.shapes"] = np.array([array.shape for array in value])
            value = np.concatenate([array.ravel() for array in value]) if value else np.zeros(0)
        arrays[field.name] = np.array(value)
    beside = path.with_name(f".{os.getpid()}.{path.name}")
    np.savez(beside, **arrays)
    os.replace(beside, path)


def load_instance(path):
    """Read what `save_instance` wrote."""
    with np.load(path) as arrays:
        values = {}
        for field in fields(Instance):
            value = arrays[field.name]
            if f"{field.name}.shapes" in arrays:
                shapes = arrays[f"{field.name}.shapes"]
                stops = np.cumsum(shapes.prod(axis=1))[:-1] if len(shapes) else []
                pieces = np.split(value, stops) if len(shapes) else []
                value = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
            elif field.name == "name":
                value = str(value)
            elif field.name == "residue_names":
                value = value.tolist()
            values[field.name] = value
    return Instance(**values)


def _fingerprint(train):
    here = Path(__file__).parent
    digest = hashlib.sha256("\n".join(sorted(protein.name for protein in train)).encode())
    for module in ("chemistry", "rotamers", "energies", "instances"):
        digest.update((here / f"{module}.py").read_bytes())
    return digest.hexdigest()[:16]
