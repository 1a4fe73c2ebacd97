"""The PDB reader, the archive of structures, and what happens when either is malformed."""

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from protein_files import atom_line, structures

from maxmargin import datasets
from maxmargin.datasets._pdb import read_pdb


def test_columns_are_read_where_the_format_has_them():
    protein = read_pdb([atom_line("CG2", "THR", -12, (-1.5, 100.25, 0.125), code="B", element="C")], "x")
    assert (protein.name, len(protein), protein.n_residues) == ("x", 1, 1)
    assert (protein.chain[0], protein.residue_number[0], protein.insertion_code[0]) == ("A", -12, "B")
    assert (protein.residue_name[0], protein.atom_name[0], protein.element[0]) == ("THR", "CG2", "C")
    assert protein.coordinates.tolist() == [[-1.5, 100.25, 0.125]]


def test_one_alternative_location_is_kept_for_the_whole_residue():
    lines = [
        atom_line("CA", xyz=(0, 0, 0)),
        atom_line("CB", xyz=(1, 0, 0), location="A", occupancy=0.6),
        atom_line("CB", xyz=(2, 0, 0), location="B", occupancy=0.4),
        atom_line("OG", xyz=(3, 0, 0), location="A", occupancy=0.3),
        atom_line("OG", xyz=(4, 0, 0), location="B", occupancy=0.7),
    ]
    # B has 1.1 in all, A 0.9, although A has the larger share of CB.
    assert read_pdb(lines, "x").coordinates[:, 0].tolist() == [0, 2, 4]
    lines[4] = atom_line("OG", xyz=(4, 0, 0), location="B", occupancy=0.5)
    assert read_pdb(lines, "x").coordinates[:, 0].tolist() == [0, 1, 3]


def test_alternative_locations_may_be_different_residues():
    lines = [atom_line("CA", "SER", location="A", occupancy=0.4), atom_line("CA", "THR", location="B", occupancy=0.6)]
    assert read_pdb(lines, "x").residue_name.tolist() == ["THR"]


def test_insertion_codes_and_ter_begin_residues():
    lines = [atom_line("N"), atom_line("CA"), atom_line("N", code="A"), "TER", atom_line("N")]
    protein = read_pdb(lines, "x")
    assert protein.residue_starts.tolist() == [0, 2, 3, 4]
    assert protein.insertion_code.tolist() == ["", "", "A", ""]


def test_only_the_first_model_and_no_hetero_atoms_are_read():
    lines = [
        "MODEL        1",
        atom_line("N"),
        atom_line("CA").replace("ATOM  ", "HETATM"),
        "ENDMDL",
        atom_line("N", xyz=(9, 9, 9)),
    ]
    assert read_pdb(lines, "x").coordinates.tolist() == [[1, 2, 3]]


def test_short_records_have_occupancy_one_and_their_element_from_the_name():
    names = ["CA", "HD11", "1HB", "QB", "SD", "OXT"]
    protein = read_pdb([atom_line(name)[:54].replace(" 1HB", "1HB ") + "\r\n" for name in names], "x")
    assert protein.atom_name.tolist() == names
    assert protein.element.tolist() == ["C", "H", "H", "", "S", "O"]
    calcium = atom_line("CA").replace(" CA ", "CA  ")
    assert read_pdb([calcium], "x").element.tolist() == ["Ca"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "file.pdb: found no ATOM record"),
        (["REMARK"], "file.pdb: found no ATOM record"),
        ([atom_line("N")[:53]], "file.pdb:1: found an ATOM record of 53 characters, expected at least 54"),
        ([atom_line("N")[:30] + atom_line("N")[31:]], "file.pdb:1: found x = '  1.000 ', expected a number with"),
        (
            [atom_line("N").replace("   1.000", "     nan")],
            "found x = '     nan', expected a number with three decimals that fills columns 31-38",
        ),
        ([atom_line("N").replace("   2.000", "   2_000")], "found y = '   2_000'"),
        ([atom_line("N").replace("   3.000", "        ")], "found z = '        '"),
        ([atom_line("N").replace("  1.00 ", "  full ")], "found occupancy 'full'"),
        ([atom_line("N"), atom_line("N").replace("A   1", "A A000")], "file.pdb:2: found residue number 'A00"),
        ([atom_line("N").replace("SER", "   ")], "found no atom name in columns 13-16 or no residue name"),
        ([atom_line("N"), atom_line("N")], r"file.pdb:2: found atom N of residue SER 1 again \(first at file.pdb:1\)"),
        ([atom_line("N"), atom_line("CA", "THR")], "file.pdb:2: found THR in residue 1, which began as SER"),
    ],
)
def test_malformed_records_are_named(lines, message):
    with pytest.raises(ValueError, match=message):
        read_pdb(lines, "x", "file.pdb")


def put_archive(folder, monkeypatch, files):
    path = folder / "sidechain_caspfm56" / "caspfm56_pdb.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    monkeypatch.setenv("MAXMARGIN_DATA", str(folder))
    return path


def test_archive_gives_proteins_sorted_by_name(tmp_path, monkeypatch):
    text = atom_line("N") + "\r\nEND\n"
    put_archive(tmp_path, monkeypatch, {"set/b.pdb": text, "set/a.pdb": text, "set/README": "…"})
    assert [protein.name for protein in datasets.load_side_chains()] == ["a", "b"]


def test_malformed_member_is_named_with_its_line(tmp_path, monkeypatch):
    put_archive(tmp_path, monkeypatch, {"set/b.pdb": "REMARK\nATOM  \n"})
    with pytest.raises(ValueError, match=r"caspfm56_pdb.tar.gz/set/b.pdb:2: found an ATOM record of 6 characters"):
        datasets.load_side_chains()


def test_archive_without_structures_or_cut_short_is_refused(tmp_path, monkeypatch):
    path = put_archive(tmp_path, monkeypatch, {"README": "…"})
    with pytest.raises(ValueError, match="found no file ending in"):
        datasets.load_side_chains()
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="found a damaged archive"):
        datasets.load_side_chains()
    path.write_bytes(b"not an archive")
    with pytest.raises(ValueError, match="found a damaged archive"):
        datasets.load_side_chains()


@pytest.mark.data
def test_structures_have_their_published_size():
    proteins = structures()
    assert (len(proteins), sum(protein.n_residues for protein in proteins)) == (56, 8100)


@pytest.mark.data
def test_reader_agrees_with_gemmi():
    gemmi = pytest.importorskip("gemmi", reason="the reference reader is not installed")
    proteins = structures()
    path = Path(os.environ["MAXMARGIN_DATA"]) / "sidechain_caspfm56" / "caspfm56_pdb.tar.gz"
    with tarfile.open(path) as archive:
        for protein in proteins:
            text = archive.extractfile(f"caspfm56/{protein.name}.pdb").read().decode("latin-1")
            atoms = [(r, a) for chain in gemmi.read_pdb_string(text)[0] for r in chain for a in r]
            assert protein.atom_name.tolist() == [a.name for _, a in atoms]
            assert protein.residue_name.tolist() == [r.name for r, _ in atoms]
            assert protein.residue_number.tolist() == [r.seqid.num for r, _ in atoms]
            # gemmi calls the unknown element X.
            assert protein.element.tolist() == [a.element.name.replace("X", "") for _, a in atoms]
            assert protein.coordinates == pytest.approx(np.array([a.pos.tolist() for _, a in atoms]), abs=1e-6)
