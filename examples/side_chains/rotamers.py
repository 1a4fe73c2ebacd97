"""Rotamer candidates: side chains turned about their bonds into a few typical shapes.

Each torsion angle χ is cut into bins: three of 120° about −60°, 60° and 180° where both ends of the bond are
tetrahedral, bins of 60° where one end is flat (rings, amides, carboxyls), over 180° where the flat group looks the same
from behind.  A candidate is one bin for each angle.  χ1 and χ2 take every pair of bins; of the bins of (χ3, χ4) together
the `MAX_TAILS` most frequent ones in the training proteins are kept for each kind of residue.

The angles of a candidate are the mean angles of the training residues in its bins, not the native ones, so that no
candidate is the native side chain: lengths, angles between bonds and CB are native, the torsion angles are not.
The right candidate of a residue is the one with its native bins; for (χ3, χ4) bins that were not kept, the nearest kept.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import product

import numpy as np
from chemistry import BACKBONE, CHI_ATOMS, SIDE_CHAIN, turned_atoms

MAX_TAILS = 4
# Pseudo-counts: of every candidate for the frequencies, of the bin's centre for the mean angles.
FREQUENCY_PRIOR = 0.5
ANGLE_PRIOR = 3.0


@dataclass(frozen=True)
class Bins:
    """Equal bins about `centres`, in degrees, of an angle with the given period."""

    centres: tuple[float, ...]
    period: float = 360.0

    def find(self, angles):
        """Return the number of the bin of each angle."""
        return np.abs(self.distance(np.asarray(angles)[..., None], np.array(self.centres))).argmin(axis=-1)

    def distance(self, first, second):
        """Return the signed difference of angles, at most half a period."""
        return (np.asarray(first) - second + self.period / 2) % self.period - self.period / 2


TETRAHEDRAL = Bins((-60.0, 60.0, 180.0))
RING = Bins((30.0, 90.0, 150.0), period=180.0)
CARBOXYL = Bins((-60.0, 0.0, 60.0), period=180.0)
FLAT = Bins((-150.0, -90.0, -30.0, 30.0, 90.0, 150.0))
_LAST_BINS = {
    "ASN": FLAT,
    "ASP": CARBOXYL,
    "GLN": FLAT,
    "GLU": CARBOXYL,
    "HIS": FLAT,
    "PHE": RING,
    "TRP": FLAT,
    "TYR": RING,
}
CHI_BINS = {
    residue: [TETRAHEDRAL] * (len(angles) - 1) + [_LAST_BINS.get(residue, TETRAHEDRAL)]
    for residue, angles in CHI_ATOMS.items()
}


@dataclass(frozen=True)
class Residue:
    """A residue's heavy atoms by name, and where it stands in the chain."""

    name: str
    number: int
    atoms: dict[str, np.ndarray]
    follows: bool  # bonded to the residue before it in the list

    @property
    def is_flexible(self):
        """Whether it has torsion angles and all atoms needed to turn about them."""
        return self.name in CHI_ATOMS and all(atom in self.atoms for atom in (*BACKBONE, "CB", *SIDE_CHAIN[self.name]))


def residues_of(protein):
    """Return the residues of a `maxmargin.datasets.Protein`, with the heavy atoms of the twenty amino acids only.

    Raises
    ------
    ValueError
        If a residue is none of the twenty amino acids.
    """
    residues = []
    for start, stop in zip(protein.residue_starts[:-1], protein.residue_starts[1:], strict=True):
        name = str(protein.residue_name[start])
        if name not in SIDE_CHAIN:
            raise ValueError(
                f"{protein.name}: found residue {name} {protein.residue_number[start]}, expected one of the twenty "
                f"amino acids: {', '.join(SIDE_CHAIN)}"
            )
        known = {*BACKBONE, "CB", "OXT", *SIDE_CHAIN[name]}
        atoms = {
            str(atom): xyz
            for atom, xyz in zip(protein.atom_name[start:stop], protein.coordinates[start:stop], strict=True)
            if atom in known
        }
        before = residues[-1].atoms.get("C") if residues else None
        here = atoms.get("N")
        # A peptide bond is 1.33 Å long; where residues are missing the next N is farther.
        follows = before is not None and here is not None and bool(np.linalg.norm(before - here) < 2.0)
        residues.append(Residue(name, int(protein.residue_number[start]), atoms, follows))
    return residues


def dihedral(a, b, c, d):
    """Return the torsion angle of four points in degrees, from −180 to 180; points may be arrays of points."""
    a, b, c, d = (np.asarray(point, dtype=np.float64) for point in (a, b, c, d))
    axis = c - b
    left = np.cross(b - a, axis)
    right = np.cross(axis, d - c)
    length = np.linalg.norm(axis, axis=-1)
    return np.degrees(np.arctan2(length * ((b - a) * right).sum(axis=-1), (left * right).sum(axis=-1)))


def native_angles(residue):
    """Return the torsion angles χ1, χ2, … of a flexible residue in degrees."""
    return np.array([dihedral(*(residue.atoms[atom] for atom in chi)) for chi in CHI_ATOMS[residue.name]])


def build(residue, angles):
    """Return the side chain beyond CB with the given torsion angles, each bond length and bond angle kept.

    Parameters
    ----------
    residue : Residue
    angles : array-like of shape (n_candidates, n_angles)
        In degrees.

    Returns
    -------
    ndarray of shape (n_candidates, n_atoms, 3)
        Atoms in the order of ``SIDE_CHAIN[residue.name]``.
    """
    angles = np.atleast_2d(np.asarray(angles, dtype=np.float64))
    names = SIDE_CHAIN[residue.name]
    place = {name: index for index, name in enumerate(names)}
    placed = np.repeat(np.array([residue.atoms[name] for name in names])[None], len(angles), axis=0)
    # A turn about one bond changes no other torsion angle, so all differences are known beforehand.
    turns = np.radians(angles - native_angles(residue))
    for chi, (_, near, far, _) in enumerate(CHI_ATOMS[residue.name]):
        start, end = (placed[:, place[atom]] if atom in place else residue.atoms[atom][None] for atom in (near, far))
        moving = [place[atom] for atom in turned_atoms(residue.name, chi)]
        placed[:, moving] = _turned(placed[:, moving], start, end, turns[:, chi])
    return placed


def _turned(points, start, end, angle):
    """Turn points (k, n, 3) about the axes start → end (k, 3) by the angles (k,): Rodrigues' formula."""
    axis = ((end - start) / np.linalg.norm(end - start, axis=-1, keepdims=True))[:, None]
    arms = points - end[:, None]
    cosine, sine = np.cos(angle)[:, None, None], np.sin(angle)[:, None, None]
    along = (arms * axis).sum(axis=-1, keepdims=True) * axis
    return end[:, None] + along + cosine * (arms - along) + sine * np.cross(axis, arms)


@dataclass(frozen=True)
class Rotamers:
    """The candidates of one kind of residue.

    Attributes
    ----------
    bins : ndarray of int, shape (n_candidates, n_angles)
    angles : ndarray, shape (n_candidates, n_angles)
        Mean angles in degrees.
    surprise : ndarray, shape (n_candidates,)
        −log of the smoothed frequency among the training residues of this kind.
    """

    bins: np.ndarray
    angles: np.ndarray
    surprise: np.ndarray


def learn_rotamers(proteins):
    """Return a dict from residue names to `Rotamers`, learned from lists of residues (one for each protein)."""
    found = {name: [] for name in CHI_ATOMS}
    for residues in proteins:
        for residue in residues:
            if residue.is_flexible:
                found[residue.name].append(native_angles(residue))
    learned = {}
    for name, rows in found.items():
        bins = CHI_BINS[name]
        learned[name] = _rotamers_of(bins, np.array(rows).reshape(-1, len(bins)))
    return learned


def true_candidate(rotamers, name, angles):
    """Return the number of the candidate with the bins of `angles`, or the nearest in χ3 and χ4 with those of χ1, χ2."""
    bins = CHI_BINS[name]
    native = [int(b.find(angle)) for b, angle in zip(bins, angles, strict=True)]
    same_head = np.flatnonzero((rotamers.bins[:, :2] == native[:2]).all(axis=1))
    far = [
        sum(b.distance(rotamers.angles[k, n], angles[n]) ** 2 for n, b in enumerate(bins) if n >= 2)
        if rotamers.bins[k].tolist() != native
        else -1.0
        for k in same_head
    ]
    return int(same_head[np.argmin(far)])


def is_within(name, angles, native, tolerance=40.0):
    """Return for each angle whether it is within `tolerance` degrees of the native one (symmetric groups: either way)."""
    return np.array(
        [abs(b.distance(x, y)) <= tolerance for b, x, y in zip(CHI_BINS[name], angles, native, strict=True)]
    )


def _rotamers_of(bins, angles):
    found = np.array([b.find(column) for b, column in zip(bins, angles.T, strict=True)]).reshape(len(bins), -1).T
    tails = Counter(map(tuple, found[:, 2:].tolist()))
    # Every tail is counted, so that without training residues the first ones are kept; equal counts keep this order.
    every = list(product(*(range(len(b.centres)) for b in bins[2:])))
    kept = sorted(every, key=lambda tail: -tails[tail])[:MAX_TAILS]
    heads = product(*(range(len(b.centres)) for b in bins[:2]))
    chosen = np.array([(*head, *tail) for head, tail in product(heads, kept)])
    members = [(found == row).all(axis=1) for row in chosen]
    counts = np.array([rows.sum() for rows in members]) + FREQUENCY_PRIOR
    means = np.array([_mean_angles(bins, row, angles[rows]) for row, rows in zip(chosen, members, strict=True)])
    return Rotamers(chosen, means, -np.log(counts / counts.sum()))


def _mean_angles(bins, row, angles):
    """Mean of the angles in one bin each, the bin's centre counted `ANGLE_PRIOR` times."""
    centres = np.array([b.centres[k] for b, k in zip(bins, row, strict=True)])
    offsets = np.array([b.distance(column, c) for b, column, c in zip(bins, angles.T, centres, strict=True)])
    return centres + offsets.reshape(len(bins), -1).sum(axis=1) / (len(angles) + ANGLE_PRIOR)
