"""Protein structures, for the prediction of side chains."""

import io
import tarfile
import zlib
from pathlib import PurePosixPath

from maxmargin.datasets._pdb import Protein, read_pdb
from maxmargin.datasets._sources import get_file

__all__ = ["Protein", "load_side_chains"]


def load_side_chains() -> list[Protein]:
    """Load 56 native protein structures, 8,100 residues: domains of CASP free-modelling targets.

    Read from ``sidechain_caspfm56`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.  The
    archive holds PDB files; of each the first model is read, and of alternative locations one per residue.  Labels
    (the rotamers of side chains) and features (energies) are made from the coordinates: see
    ``examples/side_chains``.  The task is that of [1]_ and, under structural SVMs, [2]_.

    Some side chains are incomplete, and some structures have hydrogens while most have none.

    Returns
    -------
    list of Protein
        Sorted by name.

    References
    ----------
    .. [1] C. Yanover, O. Schueler-Furman and Y. Weiss, "Minimizing and learning energy functions for side-chain
       prediction", Journal of Computational Biology 15(7), 2008.
    .. [2] A. Guzman-Rivera, P. Kohli and D. Batra, "DivMCuts: Faster training of structural SVMs with diverse M-best
       cutting-planes", AISTATS 2013.
    """
    path = get_file("sidechain_caspfm56", "all")
    proteins = []
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                # Members are read in place, never unpacked: their paths cannot do harm.
                file = archive.extractfile(member) if member.isfile() and member.name.endswith(".pdb") else None
                if file is not None:
                    lines = io.TextIOWrapper(file, encoding="latin-1", newline="\n")
                    proteins.append(read_pdb(lines, PurePosixPath(member.name).stem, f"{path}/{member.name}"))
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: found a damaged archive ({error}), expected a tar of PDB files") from error
    if not proteins:
        raise ValueError(f"{path}: found no file ending in .pdb, expected at least one")
    return sorted(proteins, key=lambda protein: protein.name)
