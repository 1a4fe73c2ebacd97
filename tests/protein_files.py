"""Lines of PDB files, and the structures of the corpora where they are at hand."""

import os
from functools import cache
from pathlib import Path

import pytest

from maxmargin import datasets


def atom_line(name, residue="SER", number=1, xyz=(1.0, 2.0, 3.0), *, location=" ", code=" ", occupancy=1.0, element=""):
    shown = f" {name:<3}" if len(name) < 4 else name
    x, y, z = xyz
    return (
        f"ATOM      1 {shown}{location}{residue} A{number:>4}{code}   {x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f} 20.00"
        f"          {element:>2}"
    )


@cache
def structures():
    """Return the proteins of the corpora, or skip the test."""
    folder = os.environ.get("MAXMARGIN_DATA")
    if not folder or not (Path(folder) / "sidechain_caspfm56").is_dir():
        pytest.skip("needs the structures: set MAXMARGIN_DATA to the folder of the corpora")
    return datasets.load_side_chains()
