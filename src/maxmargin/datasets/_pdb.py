"""Atoms of a protein from the lines of a PDB file.

A record has fixed columns (PDB format 3.3, coordinate section)::

    1-6 record   13-16 atom name     17 alternative location   18-20 residue name   22 chain
    23-26 residue number   27 insertion code   31-38, 39-46, 47-54 x, y, z in Å   55-60 occupancy   77-78 element

``ATOM`` records of the first model are read; ``HETATM`` (water, ligands) and everything else is passed over.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

COORDINATE_COLUMNS = {"x": slice(30, 38), "y": slice(38, 46), "z": slice(46, 54)}
SHORTEST_RECORD = 54
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)", re.ASCII)
# The point has its place too: a record that is shifted by a column would lose digits or signs silently.
_COORDINATE = re.compile(r" *[+-]?\d*\.\d{3}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Protein:
    """The atoms of one protein, in the order of its file.

    Attributes
    ----------
    name : str
        The name of the file without its ending.
    chain : ndarray of str, shape (n_atoms,)
        Chain of each atom, ``""`` where the file names none.
    residue_number : ndarray of int, shape (n_atoms,)
        Residue numbers of the file: they may skip values or be negative.
    insertion_code : ndarray of str, shape (n_atoms,)
        What tells residues of the same number apart, mostly ``""``.
    residue_name, atom_name : ndarray of str, shape (n_atoms,)
        For example ``"LEU"`` and ``"CD1"``.
    element : ndarray of str, shape (n_atoms,)
        For example ``"C"`` or ``"Se"``; ``""`` for the pseudo-atoms of NMR structures.
    coordinates : ndarray of float64, shape (n_atoms, 3)
        In Å.
    residue_starts : ndarray of int, shape (n_residues + 1,)
        The atoms of residue r are ``residue_starts[r]`` to ``residue_starts[r + 1] - 1``.
    """

    name: str
    chain: NDArray[np.str_]
    residue_number: NDArray[np.int64]
    insertion_code: NDArray[np.str_]
    residue_name: NDArray[np.str_]
    atom_name: NDArray[np.str_]
    element: NDArray[np.str_]
    coordinates: NDArray[np.float64]
    residue_starts: NDArray[np.int64]

    @property
    def n_residues(self) -> int:
        """Number of residues."""
        return len(self.residue_starts) - 1

    def __len__(self) -> int:
        return len(self.atom_name)


@dataclass(frozen=True, slots=True)
class _Atom:
    place: str
    residue: tuple[int, str, int, str]  # the piece between TER records, chain, number, insertion code
    location: str
    residue_name: str
    name: str
    element: str
    xyz: tuple[float, ...]
    occupancy: float


def read_pdb(lines: Iterable[str], name: str, source: str | None = None) -> Protein:
    """Return the atoms of the first model.

    Where atoms have alternative locations, one location is kept for the whole residue, so that its atoms belong
    together: the one with the largest sum of occupancies, the first in the file among equal ones.

    Parameters
    ----------
    lines : iterable of str
    name : str
        The name of the protein.
    source : str, optional
        What errors call the file; `name` by default.

    Raises
    ------
    ValueError
        If a record is malformed, an atom comes twice, or there is no atom.
    """
    source = source or name
    residues: dict[tuple[int, str, int, str], list[_Atom]] = defaultdict(list)
    piece = 0
    for number, line in enumerate(lines, start=1):
        record = line[:6].rstrip()
        if record == "ATOM":
            atom = _parse(line.rstrip("\r\n"), piece, f"{source}:{number}")
            residues[atom.residue].append(atom)
        elif record == "TER":
            # Copies of a chain may have the same name, or none: their residues are different ones.
            piece += 1
        elif record == "ENDMDL":
            break
    if not residues:
        raise ValueError(f"{source}: found no ATOM record, expected at least one")
    kept = [_one_location(atoms) for atoms in residues.values()]
    return _to_arrays(name, kept)


def _parse(line: str, piece: int, place: str) -> _Atom:
    if len(line) < SHORTEST_RECORD:
        raise ValueError(
            f"{place}: found an ATOM record of {len(line)} characters, expected at least {SHORTEST_RECORD}: "
            "x, y and z end in column 54"
        )
    name = line[12:16].strip()
    residue_name = line[17:20].strip()
    if not name or not residue_name:
        raise ValueError(f"{place}: found no atom name in columns 13-16 or no residue name in columns 18-20")
    digits = line[22:26].strip()
    if not re.fullmatch(r"-?\d+", digits, re.ASCII):
        raise ValueError(f"{place}: found residue number {digits!r}, expected an integer in columns 23-26")
    xyz = []
    for axis, columns in COORDINATE_COLUMNS.items():
        found = line[columns]
        if not _COORDINATE.fullmatch(found):
            raise ValueError(
                f"{place}: found {axis} = {found!r}, expected a number with three decimals that fills columns "
                f"{columns.start + 1}-{columns.stop}"
            )
        xyz.append(float(found))
    occupancy = 1.0
    if written := line[54:60].strip():
        # float() alone would take "nan", "1_0" and digits of other scripts.
        if not _NUMBER.fullmatch(written):
            raise ValueError(f"{place}: found occupancy {written!r}, expected a number in columns 55-60")
        occupancy = float(written)
    residue = (piece, line[21].strip(), int(digits), line[26].strip())
    return _Atom(place, residue, line[16].strip(), residue_name, name, _element(line), tuple(xyz), occupancy)


def _element(line: str) -> str:
    """Return the element: as written, otherwise by the atom name, whose element ends in column 14."""
    written = line[76:78].strip()
    if written.isalpha():
        return written.capitalize()
    name = line[12:16]
    if name.strip().startswith("Q"):
        return ""
    # Four-letter names of hydrogens begin in column 13, as in HD11 and 1HD1.
    if name.lstrip(" 0123456789").startswith("H") and (name[0].isdigit() or len(name.strip()) == 4):
        return "H"
    return name[:2].strip(" 0123456789").capitalize()


def _one_location(atoms: list[_Atom]) -> list[_Atom]:
    shares: dict[str, float] = {}
    for atom in atoms:
        if atom.location:
            shares[atom.location] = shares.get(atom.location, 0.0) + atom.occupancy
    if shares:
        # max returns the first of equal ones; occupancies have two decimals, sums of them round.
        best = max(shares, key=lambda location: round(shares[location], 4))
        atoms = [atom for atom in atoms if atom.location in ("", best)]
    seen: dict[str, _Atom] = {}
    for atom in atoms:
        first = seen.setdefault(atom.name, atom)
        if first is not atom:
            raise ValueError(
                f"{atom.place}: found atom {atom.name} of residue {atom.residue_name} {atom.residue[2]}"
                f"{atom.residue[3]} again (first at {first.place}), expected every atom once: copies need another "
                "alternative location, chain or insertion code"
            )
        if atom.residue_name != atoms[0].residue_name:
            raise ValueError(
                f"{atom.place}: found {atom.residue_name} in residue {atom.residue[2]}{atom.residue[3]}, which began "
                f"as {atoms[0].residue_name}, expected one name for a residue"
            )
    return atoms


def _to_arrays(name: str, residues: list[list[_Atom]]) -> Protein:
    atoms = [atom for residue in residues for atom in residue]
    return Protein(
        name=name,
        chain=np.array([atom.residue[1] for atom in atoms]),
        residue_number=np.array([atom.residue[2] for atom in atoms], dtype=np.int64),
        insertion_code=np.array([atom.residue[3] for atom in atoms]),
        residue_name=np.array([atom.residue_name for atom in atoms]),
        atom_name=np.array([atom.name for atom in atoms]),
        element=np.array([atom.element for atom in atoms]),
        coordinates=np.array([atom.xyz for atom in atoms], dtype=np.float64),
        residue_starts=np.cumsum([0] + [len(residue) for residue in residues], dtype=np.int64),
    )
