"""Eight energy terms of side-chain candidates, each a sum over atoms or pairs of atoms.

Between two atoms at distance r (extended atoms, constants of both: `chemistry.AtomType`), with
R = `SOFTENING`·(radius₁ + radius₂), ε = √(depth₁·depth₂) and u = (R/r)⁶:

* attraction   −ε for r < R, ε (u² − 2u) beyond: the part of the Lennard-Jones potential below zero slope;
* repulsion    min(ε (u² − 2u + 1), `ATOM_CAP`) for r < R, 0 beyond: the other part.  Capped, and once more for the sum over
  two side chains (`PAIR_CAP`): a candidate stands for a whole bin, a small turn ends most clashes, and beyond that
  more overlap is not more impossible;
* hydrogen bond  (5 (R₀/r)¹² − 6 (R₀/r)¹⁰) cos²(θ_D − θ⁰_D) cos²(θ_A − θ⁰_A), R₀ = 2.8 Å, −1 for R₀/r > 1: the well of
  Dahiyat and Mayo (Protein Science 5, 1996), with angles between the direction away from an atom's bonds and
  the other atom, as hydrogens are not placed;
* electrostatics  332 q₁q₂ (1/r² − 1/`CUTOFF`²)/4 kcal/mol: Coulomb's law with the distance-dependent dielectric 4r
  (Warshel and Levitt 1976), shifted to end at the cutoff, r ≥ `CLOSEST`;
* solvation    V₂ f₁(r) + V₁ f₂(r), f(r) = −ΔG_free exp(−((r − radius)/λ)²) / (2 π^{3/2} λ r²): what the atoms lose of
  their contact with water (Lazaridis and Karplus 1999, equations 5 to 7).

Of one candidate alone:

* rotamer      −log of its frequency among training residues of its kind;
* torsion      Σ (1 + cos 3χ)/2 for bonds between tetrahedral atoms, (1 + cos 2χ)/2 for rings, (1 − cos 2χ)/2 for amides
  and carboxyls: 0 where staggered (rings: perpendicular), 1 where eclipsed;
* backbone     the sum of the five terms above over the candidate's atoms and all fixed ones (backbone, CB, residues without
  candidates) that are at least four bonds away, its repulsion capped by `FIXED_CAP`.

Energies are in kcal/mol, that of the rotamer in units of kT; all are of order 1 where two side chains touch.  `SOFTENING` and
the caps were found by a few trials, and accuracy changes little around them; the charges are described in `chemistry`; the other
constants are the published ones.
"""

from dataclasses import dataclass

import numpy as np
from chemistry import ATOM_TYPES, TYPE_NAMES
from rotamers import CHI_BINS, FLAT, RING, TETRAHEDRAL

CUTOFF = 7.0
CLOSEST = 2.5
SOFTENING = 0.95
ATOM_CAP = 1.5
PAIR_CAP = 5.0
FIXED_CAP = 10.0
HYDROGEN_BOND_LENGTH = 2.8
HYDROGEN_BOND_REACH = 4.0
COULOMB = 332.06  # kcal·Å/mol between unit charges

PAIR_TERMS = ("attraction", "repulsion", "hydrogen bond", "electrostatics", "solvation")
NODE_TERMS = ("rotamer", "torsion", "backbone")

_CONSTANTS = {
    field: np.array([getattr(ATOM_TYPES[name], field) for name in TYPE_NAMES])
    for field in ("radius", "depth", "volume", "free_energy", "length")
}


@dataclass(frozen=True)
class Atoms:
    """Atoms of one or more candidates that are made of the same atoms.

    Attributes
    ----------
    xyz : ndarray of shape (n_candidates, n_atoms, 3)
        In Å.
    outward : ndarray of shape (n_candidates, n_atoms, 3)
        Unit vectors away from the bonds of polar atoms, zero for the others.
    types : ndarray of int, shape (n_atoms,)
        Places in ``chemistry.TYPE_NAMES``.
    charges : ndarray of shape (n_atoms,)
        In electrons.
    gives, takes : ndarray of bool, shape (n_atoms,)
        Whether an atom gives a hydrogen to bonds, or takes one.
    tilt : ndarray of shape (n_atoms,)
        The angle of hydrogens or lone pairs from `outward`, in radians.
    """

    xyz: np.ndarray
    outward: np.ndarray
    types: np.ndarray
    charges: np.ndarray
    gives: np.ndarray
    takes: np.ndarray
    tilt: np.ndarray

    def select(self, kept):
        """Return some of the atoms, by number or mask."""
        return Atoms(
            self.xyz[:, kept],
            self.outward[:, kept],
            self.types[kept],
            self.charges[kept],
            self.gives[kept],
            self.takes[kept],
            self.tilt[kept],
        )


def pair_energies(first, second, excluded=None, cap=PAIR_CAP):
    """Return the five pair terms of all pairs of candidates of two residues.

    Parameters
    ----------
    first, second : Atoms
    excluded : ndarray of bool, shape (n_atoms of first, n_atoms of second), optional
        Pairs of atoms that count nothing, being close by bonds.
    cap : float, default=5
        The largest repulsion of two candidates.

    Returns
    -------
    ndarray of shape (n_candidates of first, n_candidates of second, 5)
        In kcal/mol, in the order of `PAIR_TERMS`.
    """
    (k, a), (m, b) = first.xyz.shape[:2], second.xyz.shape[:2]
    left, right = first.xyz.reshape(k * a, 3), second.xyz.reshape(m * b, 3)
    squared = ((left**2).sum(axis=1)[:, None] + (right**2).sum(axis=1) - 2.0 * left @ right.T).reshape(k, a, m, b)
    near = squared < CUTOFF**2
    if excluded is not None:
        near &= ~excluded[None, :, None, :]
    y, i, z, j = np.nonzero(near)
    energies = np.zeros((k * m, len(PAIR_TERMS)))
    if len(y):
        # The expanded square loses digits to cancellation.
        apart = second.xyz[z, j] - first.xyz[y, i]
        r = np.maximum(np.sqrt((apart**2).sum(axis=1)), 1e-3)
        terms = (
            *van_der_waals(r, first.types[i], second.types[j]),
            _hydrogen_bonds(first, second, y, i, z, j, apart, r),
            electrostatics(r, first.charges[i] * second.charges[j]),
            solvation(r, first.types[i], second.types[j]),
        )
        for column, term in enumerate(terms):
            energies[:, column] = np.bincount(y * m + z, weights=term, minlength=k * m)
        repulsion = PAIR_TERMS.index("repulsion")
        energies[:, repulsion] = np.minimum(energies[:, repulsion], cap)
    return energies.reshape(k, m, len(PAIR_TERMS))


def van_der_waals(r, first, second):
    """Return attraction and repulsion of atoms of two types at distances `r`, in kcal/mol."""
    depth = np.sqrt(_CONSTANTS["depth"][first] * _CONSTANTS["depth"][second])
    contact = SOFTENING * (_CONSTANTS["radius"][first] + _CONSTANTS["radius"][second])
    u = (contact / r) ** 6
    well = depth * (u * u - 2.0 * u)
    inside = r < contact
    return np.where(inside, -depth, well), np.where(inside, np.minimum(well + depth, ATOM_CAP), 0.0)


def electrostatics(r, charges):
    """Return the energy of two charges with product `charges` at distances `r`, in kcal/mol."""
    return COULOMB / 4.0 * charges * (1.0 / np.maximum(r, CLOSEST) ** 2 - 1.0 / CUTOFF**2)


def solvation(r, first, second):
    """Return what two atoms lose of their solvation at distances `r`, in kcal/mol."""
    r = np.maximum(r, CLOSEST)
    lost = 0.0
    for one, other in ((first, second), (second, first)):
        length = _CONSTANTS["length"][one]
        shell = np.exp(-(((r - _CONSTANTS["radius"][one]) / length) ** 2))
        scale = _CONSTANTS["free_energy"][one] / (2.0 * np.pi**1.5 * length)
        lost = lost - scale * shell / r**2 * _CONSTANTS["volume"][other]
    return lost


def hydrogen_bond(r, donor_cosine, acceptor_cosine, donor_tilt, acceptor_tilt):
    """Return the energy of a hydrogen bond of length `r`, 1 deep.

    `donor_cosine` is that of the angle between the direction away from the donor's bonds and the acceptor, whose best
    value is `donor_tilt` (radians); likewise for the acceptor.
    """
    ratio = np.minimum(HYDROGEN_BOND_LENGTH / r, 1.0)
    well = np.minimum(5.0 * ratio**12 - 6.0 * ratio**10, 0.0)
    fit = 1.0
    for cosine, tilt in ((donor_cosine, donor_tilt), (acceptor_cosine, acceptor_tilt)):
        fit = fit * np.maximum(np.cos(np.arccos(np.clip(cosine, -1.0, 1.0)) - tilt), 0.0) ** 2
    return well * fit


def _hydrogen_bonds(first, second, y, i, z, j, apart, r):
    """Return the energy of each pair of atoms; where both may give and take, it is one bond."""
    bonds = (first.gives[i] & second.takes[j]) | (first.takes[i] & second.gives[j])
    bonds &= r < HYDROGEN_BOND_REACH
    energy = np.zeros(len(r))
    y, i, z, j, apart, r = y[bonds], i[bonds], z[bonds], j[bonds], apart[bonds], r[bonds]
    # The formula is symmetric: it does not matter which of the two is the donor.
    cosine_first = (first.outward[y, i] * apart).sum(axis=1) / r
    cosine_second = -(second.outward[z, j] * apart).sum(axis=1) / r
    energy[bonds] = hydrogen_bond(r, cosine_first, cosine_second, first.tilt[i], second.tilt[j])
    return energy


def torsion_energies(name, angles):
    """Return the torsion term of candidates with torsion angles (n_candidates, n_angles), in degrees."""
    angles = np.radians(np.asarray(angles, dtype=np.float64))
    total = np.zeros(len(angles))
    for column, bins in zip(angles.T, CHI_BINS[name], strict=True):
        if bins is TETRAHEDRAL:
            total += (1.0 + np.cos(3.0 * column)) / 2.0
        elif bins is RING or (bins is FLAT and name in ("HIS", "TRP")):
            total += (1.0 + np.cos(2.0 * column)) / 2.0
        else:
            total += (1.0 - np.cos(2.0 * column)) / 2.0
    return total
