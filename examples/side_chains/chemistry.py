"""What the twenty amino acids are made of: heavy atoms, bonds, torsion angles, atom types and charges.

Atoms are extended ones: hydrogens belong to the heavy atom that carries them, as most crystal structures show none.
"""

from dataclasses import dataclass
from functools import cache

BACKBONE = ("N", "CA", "C", "O")

# Atoms beyond CB, ordered so that every atom comes behind those it hangs on.
SIDE_CHAIN = {
    "ALA": (),
    "ARG": ("CG", "CD", "NE", "CZ", "NH1", "NH2"),
    "ASN": ("CG", "OD1", "ND2"),
    "ASP": ("CG", "OD1", "OD2"),
    "CYS": ("SG",),
    "GLN": ("CG", "CD", "OE1", "NE2"),
    "GLU": ("CG", "CD", "OE1", "OE2"),
    "GLY": (),
    "HIS": ("CG", "ND1", "CD2", "CE1", "NE2"),
    "ILE": ("CG1", "CG2", "CD1"),
    "LEU": ("CG", "CD1", "CD2"),
    "LYS": ("CG", "CD", "CE", "NZ"),
    "MET": ("CG", "SD", "CE"),
    "PHE": ("CG", "CD1", "CD2", "CE1", "CE2", "CZ"),
    "PRO": ("CG", "CD"),
    "SER": ("OG",),
    "THR": ("OG1", "CG2"),
    "TRP": ("CG", "CD1", "CD2", "NE1", "CE2", "CE3", "CZ2", "CZ3", "CH2"),
    "TYR": ("CG", "CD1", "CD2", "CE1", "CE2", "CZ", "OH"),
    "VAL": ("CG1", "CG2"),
}

_BACKBONE_BONDS = "N-CA CA-C C-O CA-CB"
_SIDE_CHAIN_BONDS = {
    "ALA": "",
    "ARG": "CB-CG CG-CD CD-NE NE-CZ CZ-NH1 CZ-NH2",
    "ASN": "CB-CG CG-OD1 CG-ND2",
    "ASP": "CB-CG CG-OD1 CG-OD2",
    "CYS": "CB-SG",
    "GLN": "CB-CG CG-CD CD-OE1 CD-NE2",
    "GLU": "CB-CG CG-CD CD-OE1 CD-OE2",
    "GLY": "",
    "HIS": "CB-CG CG-ND1 CG-CD2 ND1-CE1 CD2-NE2 CE1-NE2",
    "ILE": "CB-CG1 CB-CG2 CG1-CD1",
    "LEU": "CB-CG CG-CD1 CG-CD2",
    "LYS": "CB-CG CG-CD CD-CE CE-NZ",
    "MET": "CB-CG CG-SD SD-CE",
    "PHE": "CB-CG CG-CD1 CG-CD2 CD1-CE1 CD2-CE2 CE1-CZ CE2-CZ",
    "PRO": "CB-CG CG-CD CD-N",
    "SER": "CB-OG",
    "THR": "CB-OG1 CB-CG2",
    "TRP": "CB-CG CG-CD1 CG-CD2 CD1-NE1 NE1-CE2 CD2-CE2 CD2-CE3 CE2-CZ2 CE3-CZ3 CZ2-CH2 CZ3-CH2",
    "TYR": "CB-CG CG-CD1 CG-CD2 CD1-CE1 CD2-CE2 CE1-CZ CE2-CZ CZ-OH",
    "VAL": "CB-CG1 CB-CG2",
}

# The torsion angles χ1, χ2, …: χ_n turns the fourth atom about the bond of the second and third.  IUPAC-IUB 1970.
_CHI_CHAINS = {
    "ARG": "N CA CB CG CD NE CZ",
    "ASN": "N CA CB CG OD1",
    "ASP": "N CA CB CG OD1",
    "CYS": "N CA CB SG",
    "GLN": "N CA CB CG CD OE1",
    "GLU": "N CA CB CG CD OE1",
    "HIS": "N CA CB CG ND1",
    "ILE": "N CA CB CG1 CD1",
    "LEU": "N CA CB CG CD1",
    "LYS": "N CA CB CG CD CE NZ",
    "MET": "N CA CB CG SD CE",
    "PHE": "N CA CB CG CD1",
    "SER": "N CA CB OG",
    "THR": "N CA CB OG1",
    "TRP": "N CA CB CG CD1",
    "TYR": "N CA CB CG CD1",
    "VAL": "N CA CB CG1",
}
CHI_ATOMS = {
    residue: [tuple(chain.split()[n : n + 4]) for n in range(len(chain.split()) - 3)]
    for residue, chain in _CHI_CHAINS.items()
}


def bonds(residue):
    """Return the bonds between heavy atoms of a residue as pairs of names."""
    text = _BACKBONE_BONDS if residue != "GLY" else "N-CA CA-C C-O"
    return [tuple(bond.split("-")) for bond in f"{text} {_SIDE_CHAIN_BONDS[residue]}".split()]


@cache
def neighbours(residue):
    """Return a dict from each atom to the atoms bonded to it within the residue."""
    bonded = {atom: [] for atom in (*BACKBONE, "CB", *SIDE_CHAIN[residue])}
    for first, second in bonds(residue):
        bonded[first].append(second)
        bonded[second].append(first)
    return bonded


@cache
def turned_atoms(residue, chi):
    """Return the side-chain atoms that move when angle number `chi` (from 0) turns."""
    _, near, far, _ = CHI_ATOMS[residue][chi]
    reached, frontier = {near, far}, [far]
    while frontier:
        for atom in neighbours(residue)[frontier.pop()]:
            if atom not in reached:
                reached.add(atom)
                frontier.append(atom)
    return tuple(atom for atom in SIDE_CHAIN[residue] if atom in reached - {near, far})


@dataclass(frozen=True)
class AtomType:
    """Constants of one kind of extended atom.

    `radius` (Å, half the distance of the minimum) and `depth` (kcal/mol) are those of the CHARMM19 extended-atom
    force field; `volume` (Å³), `free_energy` (kcal/mol) and `length` (Å) those of Lazaridis and Karplus,
    "Effective energy function for proteins in solution", Proteins 35 (1999), Table I.
    """

    radius: float
    depth: float
    volume: float
    free_energy: float
    length: float = 3.5


ATOM_TYPES = {
    "carbonyl": AtomType(2.100, 0.1200, 14.7, 0.0),
    "bare carbon": AtomType(2.100, 0.1200, 8.3, -1.4),
    "CH": AtomType(2.365, 0.0486, 23.7, -0.25),
    "CH2": AtomType(2.235, 0.1142, 22.4, 0.52),
    "CH3": AtomType(2.165, 0.1811, 30.0, 1.5),
    "aromatic CH": AtomType(2.100, 0.1200, 18.4, 0.08),
    "N of proline": AtomType(1.600, 0.2384, 0.0, -1.55),
    "NH": AtomType(1.600, 0.2384, 4.4, -8.9),
    "N of ring": AtomType(1.600, 0.2384, 4.4, -4.0),
    "NH2": AtomType(1.600, 0.2384, 11.2, -7.8),
    "NH3+": AtomType(1.600, 0.2384, 11.2, -20.0, 6.0),
    "NH2 of arginine": AtomType(1.600, 0.2384, 11.2, -10.0, 6.0),
    "OH": AtomType(1.600, 0.1591, 10.8, -6.7),
    "O": AtomType(1.600, 0.1591, 10.8, -5.85),
    "O-": AtomType(1.600, 0.6469, 10.8, -10.0, 6.0),
    "S": AtomType(1.890, 0.0430, 14.7, -4.1),
    "SH": AtomType(1.890, 0.0430, 21.4, -2.7),
}
TYPE_NAMES = tuple(ATOM_TYPES)

_BACKBONE_TYPES = {"N": "NH", "CA": "CH", "C": "carbonyl", "O": "O", "OXT": "O-", "CB": "CH2"}
_SPECIAL_TYPES = {
    "ALA": {"CB": "CH3"},
    "ARG": {"NE": "NH", "CZ": "bare carbon", "NH1": "NH2 of arginine", "NH2": "NH2 of arginine"},
    "ASN": {"CG": "carbonyl", "OD1": "O", "ND2": "NH2"},
    "ASP": {"CG": "carbonyl", "OD1": "O-", "OD2": "O-"},
    "CYS": {"SG": "SH"},
    "GLN": {"CD": "carbonyl", "OE1": "O", "NE2": "NH2"},
    "GLU": {"CD": "carbonyl", "OE1": "O-", "OE2": "O-"},
    "GLY": {"CA": "CH2"},
    "HIS": {"CG": "bare carbon", "ND1": "N of ring", "CD2": "aromatic CH", "CE1": "aromatic CH", "NE2": "N of ring"},
    "ILE": {"CB": "CH", "CG2": "CH3", "CD1": "CH3"},
    "LEU": {"CG": "CH", "CD1": "CH3", "CD2": "CH3"},
    "LYS": {"NZ": "NH3+"},
    "MET": {"SD": "S", "CE": "CH3"},
    "PHE": dict.fromkeys(("CD1", "CD2", "CE1", "CE2", "CZ"), "aromatic CH") | {"CG": "bare carbon"},
    "PRO": {"N": "N of proline"},
    "SER": {"OG": "OH"},
    "THR": {"CB": "CH", "OG1": "OH", "CG2": "CH3"},
    "TRP": dict.fromkeys(("CD1", "CE3", "CZ2", "CZ3", "CH2"), "aromatic CH")
    | dict.fromkeys(("CG", "CD2", "CE2"), "bare carbon")
    | {"NE1": "NH"},
    "TYR": dict.fromkeys(("CD1", "CD2", "CE1", "CE2"), "aromatic CH")
    | dict.fromkeys(("CG", "CZ"), "bare carbon")
    | {"OH": "OH"},
    "VAL": {"CB": "CH", "CG1": "CH3", "CG2": "CH3"},
}


def atom_type(residue, atom):
    """Return the name of an atom's type; side-chain atoms without a special one are CH2."""
    return _SPECIAL_TYPES[residue].get(atom, _BACKBONE_TYPES.get(atom, "CH2"))


# Charges in electrons, hydrogens added to their heavy atoms: charged groups are whole, C=O and C-OH are dipoles (sizes
# as in CHARMM19), everything else is neutral.  Histidine is taken as neutral.
_BACKBONE_CHARGES = {"C": 0.55, "O": -0.55}
_CHARGES = {
    "ARG": {"NH1": 0.5, "NH2": 0.5},
    "ASN": {"CG": 0.55, "OD1": -0.55},
    "ASP": {"OD1": -0.5, "OD2": -0.5},
    "GLN": {"CD": 0.55, "OE1": -0.55},
    "GLU": {"OE1": -0.5, "OE2": -0.5},
    "LYS": {"NZ": 1.0},
    "SER": {"CB": 0.25, "OG": -0.25},
    "THR": {"CB": 0.25, "OG1": -0.25},
    "TYR": {"CZ": 0.25, "OH": -0.25},
}


def charge(residue, atom):
    """Return the charge of an atom in electrons."""
    return _CHARGES.get(residue, {}).get(atom, _BACKBONE_CHARGES.get(atom, 0.0))


# Angle between the direction that leads away from an atom's bonds and its hydrogens or lone pairs.
ALONG, TRIGONAL, TETRAHEDRAL = 0.0, 60.0, 70.5
_POLAR = {  # atom: (gives a hydrogen, takes one, angle in degrees)
    ("ARG", "NE"): (True, False, ALONG),
    ("ARG", "NH1"): (True, False, TRIGONAL),
    ("ARG", "NH2"): (True, False, TRIGONAL),
    ("ASN", "OD1"): (False, True, TRIGONAL),
    ("ASN", "ND2"): (True, False, TRIGONAL),
    ("ASP", "OD1"): (False, True, TRIGONAL),
    ("ASP", "OD2"): (False, True, TRIGONAL),
    ("GLN", "OE1"): (False, True, TRIGONAL),
    ("GLN", "NE2"): (True, False, TRIGONAL),
    ("GLU", "OE1"): (False, True, TRIGONAL),
    ("GLU", "OE2"): (False, True, TRIGONAL),
    ("HIS", "ND1"): (True, True, ALONG),
    ("HIS", "NE2"): (True, True, ALONG),
    ("LYS", "NZ"): (True, False, TETRAHEDRAL),
    ("SER", "OG"): (True, True, TETRAHEDRAL),
    ("THR", "OG1"): (True, True, TETRAHEDRAL),
    ("TRP", "NE1"): (True, False, ALONG),
    ("TYR", "OH"): (True, True, TRIGONAL),
}


def hydrogen_bonding(residue, atom):
    """Return whether an atom gives a hydrogen, whether it takes one, and the angle in degrees; None if neither."""
    if atom == "N":
        return None if residue == "PRO" else (True, False, ALONG)
    if atom in ("O", "OXT"):
        return False, True, TRIGONAL
    return _POLAR.get((residue, atom))
