"""Side-chain data: the PDB reader, turned side chains, energies, and graphs whose shapes fit together."""

import io
import os
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

from maxmargin import datasets
from maxmargin.datasets._pdb import read_pdb

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "side_chains"))

import chemistry
import energies
import instances
import rotamers


def atom_line(name, residue="SER", number=1, xyz=(1.0, 2.0, 3.0), *, location=" ", code=" ", occupancy=1.0, element=""):
    shown = f" {name:<3}" if len(name) < 4 else name
    x, y, z = xyz
    return (
        f"ATOM      1 {shown}{location}{residue} A{number:>4}{code}   {x:8.3f}{y:8.3f}{z:8.3f}{occupancy:6.2f} 20.00"
        f"          {element:>2}"
    )


# --- The reader ---


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


@pytest.fixture(scope="module")
def proteins():
    folder = os.environ.get("MAXMARGIN_DATA")
    if not folder or not (Path(folder) / "sidechain_caspfm56").is_dir():
        pytest.skip("needs the structures: set MAXMARGIN_DATA to the folder of the corpora")
    return datasets.load_side_chains()


@pytest.mark.data
def test_structures_have_their_published_size(proteins):
    assert (len(proteins), sum(protein.n_residues for protein in proteins)) == (56, 8100)


@pytest.mark.data
def test_reader_agrees_with_gemmi(proteins):
    gemmi = pytest.importorskip("gemmi", reason="the reference reader is not installed")
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


# --- Rotamers ---


def random_residue(name, rng, number=1, centre=(0.0, 0.0, 0.0)):
    """A residue with bonds of 1.5 Å in random directions: no protein, but every rotation is defined."""
    atoms = {"CA": np.array(centre)}
    for first, second in [b for b in chemistry.bonds(name) if b[0] != "N"] + [("CA", "N")]:
        if second not in atoms:
            step = rng.normal(size=3)
            atoms[second] = atoms[first] + 1.5 * step / np.linalg.norm(step)
    return rotamers.Residue(name, number, atoms, follows=False)


def placed_atoms(residue, side):
    return {**residue.atoms, **dict(zip(chemistry.SIDE_CHAIN[residue.name], side, strict=True))}


@pytest.mark.parametrize(("d", "angle"), [((1, 0, 1), 0), ((0, 1, 1), 90), ((-1, 0, 1), 180), ((0, -1, 1), -90)])
def test_dihedral_has_the_sign_of_the_convention(d, angle):
    # Seen from the second point to the third, turning the near bond clockwise onto the far one is positive.
    assert rotamers.dihedral((1, 0, 0), (0, 0, 0), (0, 0, 1), d) == pytest.approx(angle)


@pytest.mark.parametrize("name", chemistry.CHI_ATOMS)
def test_native_angles_rebuild_the_native_side_chain(name):
    residue = random_residue(name, np.random.default_rng(3))
    [side] = rotamers.build(residue, rotamers.native_angles(residue)[None])
    assert side == pytest.approx(np.array([residue.atoms[atom] for atom in chemistry.SIDE_CHAIN[name]]), abs=1e-9)


@pytest.mark.parametrize("name", chemistry.CHI_ATOMS)
def test_turning_sets_the_angles_and_keeps_lengths_and_bond_angles(name):
    rng = np.random.default_rng(5)
    residue = random_residue(name, rng)
    wanted = rng.uniform(-180, 180, size=(4, len(chemistry.CHI_ATOMS[name])))
    # Two atoms with a common neighbour: their distance is the angle between the bonds.
    bonded = chemistry.neighbours(name)
    pairs = [*chemistry.bonds(name), *((a, c) for b in bonded for a in bonded[b] for c in bonded[b] if a < c)]
    for angles, side in zip(wanted, rotamers.build(residue, wanted), strict=True):
        atoms = placed_atoms(residue, side)
        turned = rotamers.Residue(name, 1, atoms, follows=False)
        assert rotamers.native_angles(turned) == pytest.approx(angles, abs=1e-6)
        for a, b in pairs:
            native = np.linalg.norm(residue.atoms[a] - residue.atoms[b])
            assert np.linalg.norm(atoms[a] - atoms[b]) == pytest.approx(native, abs=1e-9)


@pytest.mark.data
def test_native_side_chains_are_rebuilt(proteins):
    for residue in rotamers.residues_of(proteins[0]):
        if residue.is_flexible:
            [side] = rotamers.build(residue, rotamers.native_angles(residue)[None])
            native = np.array([residue.atoms[atom] for atom in chemistry.SIDE_CHAIN[residue.name]])
            assert side == pytest.approx(native, abs=1e-3)


def test_bins_wrap_around_their_period():
    assert rotamers.TETRAHEDRAL.find([-179, 179, -121, -119, -1, 1]).tolist() == [2, 2, 2, 0, 0, 1]
    assert rotamers.RING.find([-90, 90, 179, -179, 61]).tolist() == [1, 1, 2, 0, 1]
    assert abs(rotamers.RING.distance(-85.0, 90.0)) == pytest.approx(5)
    assert rotamers.is_within("PHE", (-170, -80), (165, 90)).tolist() == [True, True]
    assert rotamers.is_within("LEU", (-170, -80), (165, 90)).tolist() == [True, False]


def test_rotamers_are_counted_and_averaged_over_training_residues():
    rng = np.random.default_rng(7)
    serine = random_residue("SER", rng)
    angles = [(50.0,), (70.0,), (60.0,), (-50.0,)]
    training = [
        [rotamers.Residue("SER", 1, placed_atoms(serine, rotamers.build(serine, [chi])[0]), False) for chi in angles]
    ]
    learned = rotamers.learn_rotamers(training)["SER"]
    prior = rotamers.FREQUENCY_PRIOR
    expected = np.array([1 + prior, 3 + prior, prior]) / (4 + 3 * prior)
    assert learned.surprise == pytest.approx(-np.log(expected))
    assert learned.angles[:, 0] == pytest.approx([-60 + 10 / (1 + rotamers.ANGLE_PRIOR), 60, 180])
    assert rotamers.true_candidate(learned, "SER", [100.0]) == 1


def test_tail_that_was_not_kept_goes_to_the_nearest_kept_one():
    rng = np.random.default_rng(9)
    lysine = random_residue("LYS", rng)
    common = [(-60, 180, chi3, chi4) for chi3, chi4 in ((180, 180), (180, 60), (180, -60), (60, 180))]
    built = rotamers.build(lysine, common)
    training = [[rotamers.Residue("LYS", 1, placed_atoms(lysine, side), False) for side in built]]
    learned = rotamers.learn_rotamers(training)["LYS"]
    assert len(learned.bins) == 9 * rotamers.MAX_TAILS
    number = rotamers.true_candidate(learned, "LYS", [-60, 180, 65, 119])
    assert learned.bins[number].tolist() == [0, 2, 1, 2]
    assert rotamers.true_candidate(learned, "LYS", [-60, 180, 60, 180]) == number
    # χ3 = −60 is kept with no χ4: (180, −60) is nearer than (60, 180).
    nearest = rotamers.true_candidate(learned, "LYS", [60, 60, -100, -60])
    assert learned.bins[nearest].tolist() == [1, 1, 2, 0]


def test_residues_with_missing_atoms_are_not_flexible_and_unknown_ones_refused():
    lines = [atom_line(name, xyz=(k, 0, 0)) for k, name in enumerate(["N", "CA", "C", "O", "CB", "HB1"])]
    [residue] = rotamers.residues_of(read_pdb(lines, "x"))
    assert not residue.is_flexible
    assert "HB1" not in residue.atoms
    [residue] = rotamers.residues_of(read_pdb([*lines, atom_line("OG")], "x"))
    assert residue.is_flexible
    with pytest.raises(ValueError, match="x: found residue HOH 1, expected one of the twenty"):
        rotamers.residues_of(read_pdb([atom_line("O", "HOH")], "x"))


def test_tables_of_all_residues_fit_together():
    for name, atoms in chemistry.SIDE_CHAIN.items():
        assert set(atoms) == set(chemistry.neighbours(name)) - {*chemistry.BACKBONE, "CB"}
        assert all(chemistry.neighbours(name)[atom] for atom in atoms)
        for atom in (*chemistry.BACKBONE, "CB", *atoms):
            assert chemistry.atom_type(name, atom) in chemistry.ATOM_TYPES
            # Element and type agree, and so do donors and acceptors with nitrogen and oxygen.
            assert (
                atom[0]
                in chemistry.atom_type(name, atom).replace("aromatic ", "").replace("bare carbon", "C")[:1].upper()
            )
            if chemistry.hydrogen_bonding(name, atom):
                assert atom[0] in "NO"
    assert chemistry.turned_atoms("ILE", 0) == ("CG1", "CG2", "CD1")
    assert chemistry.turned_atoms("ILE", 1) == ("CD1",)
    assert chemistry.turned_atoms("TRP", 1) == ("CD1", "CD2", "NE1", "CE2", "CE3", "CZ2", "CZ3", "CH2")
    assert [
        sum(chemistry.charge(name, atom) for atom in chemistry.neighbours(name)) for name in ("LYS", "GLU", "ASN")
    ] == (pytest.approx([1, -1, 0]))


# --- Energies ---


def one_atom(residue, atom, xyz, outward=(0.0, 0.0, 0.0)):
    return instances._with_constants(np.array([[xyz]], float), np.array([[outward]], float), [(residue, atom)])


def energies_of(first, second, **arguments):
    [[values]] = energies.pair_energies(first, second, **arguments)
    return dict(zip(energies.PAIR_TERMS, values, strict=True))


def test_two_methyl_groups_by_hand():
    contact = 0.95 * 2 * 2.165
    still = one_atom("ALA", "CB", (0, 0, 0))
    touching = energies_of(still, one_atom("ALA", "CB", (contact, 0, 0)))
    assert touching["attraction"] == pytest.approx(-0.1811)
    assert touching["repulsion"] == pytest.approx(0, abs=1e-9)
    # At 2^(1/6) of the contact u = 1/2: ε(1/4 − 1).
    assert energies_of(still, one_atom("ALA", "CB", (0, contact * 2 ** (1 / 6), 0)))["attraction"] == pytest.approx(
        -0.75 * 0.1811
    )
    # At the distance of zero energy u = 2: repulsion ε(4 − 4 + 1).
    near = energies_of(still, one_atom("ALA", "CB", (0, 0, contact / 2 ** (1 / 6))))
    assert (near["attraction"], near["repulsion"]) == pytest.approx((-0.1811, 0.1811))
    assert energies_of(still, one_atom("ALA", "CB", (1, 0, 0)))["repulsion"] == pytest.approx(energies.ATOM_CAP)
    # Both lose: −2 · 1.5 / (2 π^1.5 3.5) exp(−((5 − 2.165)/3.5)²)/25 · 30.
    shell = np.exp(-(((5 - 2.165) / 3.5) ** 2))
    lost = energies_of(still, one_atom("ALA", "CB", (5, 0, 0)))["solvation"]
    assert lost == pytest.approx(-2 * 1.5 / (2 * np.pi**1.5 * 3.5) * shell / 25 * 30)


def test_salt_bridge_by_hand():
    lysine = one_atom("LYS", "NZ", (0, 0, 0), (1, 0, 0))
    values = energies_of(lysine, one_atom("GLU", "OE1", (4, 0, 0), (-1, 0, 0)))
    assert values["electrostatics"] == pytest.approx(-332.06 / 4 * 0.5 * (1 / 16 - 1 / 49))
    assert values["electrostatics"] == -energies_of(lysine, one_atom("ARG", "NH1", (4, 0, 0)))["electrostatics"]


def test_hydrogen_bond_needs_distance_angles_and_a_donor_with_an_acceptor():
    def bond(first, second, r=2.8, out_first=(1, 0, 0), out_second=(-1, 0, 0)):
        return energies_of(one_atom(*first, (0, 0, 0), out_first), one_atom(*second, (r, 0, 0), out_second))[
            "hydrogen bond"
        ]

    ring = ("HIS", "NE2")
    assert bond(ring, ring) == pytest.approx(-1)
    assert bond(ring, ring, r=2.0) == pytest.approx(-1)
    assert bond(ring, ring, r=3.5) == pytest.approx(5 * 0.8**12 - 6 * 0.8**10)
    assert bond(ring, ring, out_first=(-1, 0, 0)) == 0
    assert bond(ring, ring, out_second=(-np.sqrt(0.5), np.sqrt(0.5), 0)) == pytest.approx(-0.5)
    # Lone pairs of a carbonyl stand at 60° from its bond.
    carbonyl = ("ASN", "OD1")
    assert bond(ring, carbonyl) == pytest.approx(-(np.cos(np.pi / 3) ** 2))
    assert bond(ring, carbonyl, out_second=(-0.5, np.sqrt(0.75), 0)) == pytest.approx(-1)
    assert bond(carbonyl, carbonyl) == bond(("LYS", "NZ"), ("LYS", "NZ")) == 0


def random_side_chain(name, rng, n_candidates, centre=(0.0, 0.0, 0.0)):
    residue = random_residue(name, rng, centre=centre)
    angles = rng.uniform(-180, 180, size=(n_candidates, len(chemistry.CHI_ATOMS[name])))
    return instances._side_chain(residue, rotamers.build(residue, angles))


@pytest.mark.parametrize(("first", "second"), [("ARG", "GLU"), ("TYR", "SER"), ("LEU", "TRP"), ("ASN", "ASN")])
def test_pair_energies_are_symmetric_and_sums_over_atoms(first, second):
    rng = np.random.default_rng(11)
    one, other = random_side_chain(first, rng, 3), random_side_chain(second, rng, 4, (4.0, 1.0, 0.0))
    values = energies.pair_energies(one, other, cap=np.inf)
    assert values.shape == (3, 4, 5)
    assert np.abs(values).max() > 0.1
    assert energies.pair_energies(other, one, cap=np.inf) == pytest.approx(values.transpose(1, 0, 2))
    assert energies.pair_energies(one, other)[..., 1] == pytest.approx(np.minimum(values[..., 1], energies.PAIR_CAP))
    a, b = one.xyz.shape[1], other.xyz.shape[1]
    parts = sum(
        energies.pair_energies(one.select([i]), other.select([j]), cap=np.inf) for i in range(a) for j in range(b)
    )
    assert parts == pytest.approx(values)
    excluded = np.ones((a, b), dtype=bool)
    excluded[0, 0] = False
    assert energies.pair_energies(one, other, excluded, cap=np.inf) == pytest.approx(
        energies.pair_energies(one.select([0]), other.select([0]), cap=np.inf)
    )


def test_energies_do_not_depend_on_place_and_orientation():
    rng = np.random.default_rng(13)
    one, other = random_side_chain("GLN", rng, 2), random_side_chain("HIS", rng, 2, (3.0, 3.0, 0.0))
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))

    def moved(atoms):
        return instances.Atoms(
            atoms.xyz @ turn + 50.0,
            atoms.outward @ turn,
            atoms.types,
            atoms.charges,
            atoms.gives,
            atoms.takes,
            atoms.tilt,
        )

    assert energies.pair_energies(moved(one), moved(other)) == pytest.approx(energies.pair_energies(one, other))


def test_energies_decay_and_end_at_the_cutoff():
    distances = [4.5, 5.5, 6.5]
    for atoms in (("ALA", "CB"), ("GLU", "OE1")):
        rows = [energies_of(one_atom(*atoms, (0, 0, 0)), one_atom(*atoms, (r, 0, 0))) for r in distances]
        for term in energies.PAIR_TERMS:
            sizes = [abs(row[term]) for row in rows]
            assert sizes == sorted(sizes, reverse=True)
        assert rows[0]["attraction"] < rows[2]["attraction"] < 0
        beyond = energies_of(one_atom(*atoms, (0, 0, 0)), one_atom(*atoms, (energies.CUTOFF + 0.01, 0, 0)))
        assert set(beyond.values()) == {0.0}


def test_torsion_is_least_where_staggered():
    assert energies.torsion_energies("VAL", [[60], [180], [0], [120], [90]]) == pytest.approx([0, 0, 1, 1, 0.5])
    assert energies.torsion_energies("PHE", [[60, 90], [60, -90], [60, 0]]) == pytest.approx([0, 0, 1])
    assert energies.torsion_energies("ASP", [[60, 90], [0, 0]]) == pytest.approx([1, 1])


# --- Graphs ---


@pytest.fixture(scope="module")
def chain():
    """Residues 4 Å apart on a line, one of every kind, and one whose side chain is missing."""
    rng = np.random.default_rng(17)
    names = [*chemistry.SIDE_CHAIN, "LEU"]
    residues = [random_residue(name, rng, k, (4.0 * k, 0.0, 0.0)) for k, name in enumerate(names)]
    del residues[-1].atoms["CD1"]
    return residues


@pytest.fixture(scope="module")
def instance(chain):
    return instances.make_instance("chain", chain, rotamers.learn_rotamers([chain]))


def test_shapes_fit_together(instance):
    counts = [len(features) for features in instance.candidate_features]
    # Gly, Ala and Pro have no candidates, nor has the incomplete residue.
    assert instance.residue_names == [name for name in chemistry.SIDE_CHAIN if name in chemistry.CHI_ATOMS]
    assert counts == [len(angles) for angles in instance.candidate_angles] == [len(b) for b in instance.candidate_bins]
    assert all(features.shape[1] == len(energies.NODE_TERMS) == 3 for features in instance.candidate_features)
    assert len(instance.edges) == len(instance.pair_features) > 10
    assert np.all(instance.edges[:, 0] < instance.edges[:, 1])
    assert len({tuple(edge) for edge in instance.edges.tolist()}) == len(instance.edges)
    for (first, second), features in zip(instance.edges, instance.pair_features, strict=True):
        assert features.shape == (counts[first], counts[second], len(energies.PAIR_TERMS))
        assert np.isfinite(features).all()
    for node, label in enumerate(instance.truth):
        found = [
            b.find(a)
            for b, a in zip(rotamers.CHI_BINS[instance.residue_names[node]], instance.native_angles[node], strict=True)
        ]
        assert instance.candidate_bins[node][label].tolist()[:2] == found[:2]


def test_every_term_differs_between_candidates(instance):
    nodes = np.max([np.ptp(features, axis=0) for features in instance.candidate_features], axis=0)
    pairs = np.max([np.ptp(features, axis=(0, 1)) for features in instance.pair_features], axis=0)
    assert np.all(nodes > 0.1)
    assert np.all(pairs > 0.1)


def test_no_candidate_is_the_native_side_chain(chain):
    learned = rotamers.learn_rotamers([chain])
    for residue in chain:
        if residue.is_flexible:
            native = np.array([residue.atoms[atom] for atom in chemistry.SIDE_CHAIN[residue.name]])
            assert np.abs(rotamers.build(residue, learned[residue.name].angles) - native).max(axis=(1, 2)).min() > 1e-2


def test_backbone_term_leaves_out_bonded_atoms_and_counts_the_others():
    rng = np.random.default_rng(19)
    residues = [random_residue("SER", rng), random_residue("GLY", rng, 2, (20.0, 0.0, 0.0))]
    learned = rotamers.learn_rotamers([residues])
    alone = instances.make_instance("x", residues, learned).candidate_features[0][:, 2]
    side = instances._side_chain(residues[0], rotamers.build(residues[0], learned["SER"].angles))
    oxygen = instances._fixed_atoms(residues)[0].select([3])
    # Of the residue's own atoms only O is four bonds from OG.
    expected = energies.pair_energies(side, oxygen, cap=energies.FIXED_CAP).sum(axis=(1, 2))
    assert alone == pytest.approx(expected, abs=1e-5)
    residues[1] = random_residue("GLY", rng, 2, (4.0, 0.0, 0.0))
    assert instances.make_instance("x", residues, learned).candidate_features[0][:, 2] != pytest.approx(alone, abs=1e-2)


def test_instances_survive_their_file(instance, tmp_path):
    instances.save_instance(tmp_path / "x.npz", instance)
    again = instances.load_instance(tmp_path / "x.npz")
    assert [path.name for path in tmp_path.iterdir()] == ["x.npz"]
    assert (again.name, again.residue_names) == (instance.name, instance.residue_names)
    for field in ("truth", "edges", "residue_numbers"):
        assert np.array_equal(getattr(again, field), getattr(instance, field))
    for field in ("candidate_features", "pair_features", "candidate_angles", "candidate_bins", "native_angles"):
        pairs = zip(getattr(again, field), getattr(instance, field), strict=True)
        assert all(a.dtype == b.dtype and np.array_equal(a, b) for a, b in pairs)


@pytest.mark.data
def test_domains_of_a_target_stay_together(proteins):
    train, test = instances.split_by_target(proteins)
    assert (len(train), len(test)) == (39, 17)
    assert not {p.name.split("-")[0] for p in train} & {p.name.split("-")[0] for p in test}


@pytest.mark.data
def test_kept_instances_are_taken_again(proteins, tmp_path, monkeypatch):
    small = sorted(proteins, key=len)[:2]
    made = instances.make_instances(small[:1], small[1:], folder=tmp_path)
    monkeypatch.setattr(instances, "make_instance", None)
    taken = instances.make_instances(small[:1], small[1:], folder=tmp_path)
    for [before], [after] in zip(made, taken, strict=True):
        assert before.name == after.name
        assert all(np.array_equal(a, b) for a, b in zip(before.pair_features, after.pair_features, strict=True))


@pytest.mark.data
def test_energies_of_a_protein_prefer_its_native_shape(proteins):
    residues = rotamers.residues_of(min(proteins, key=len))
    made = instances.make_instance("x", residues, rotamers.learn_rotamers([residues]))
    wrong = [
        np.delete(features, label, axis=0).mean(axis=0) - features[label]
        for features, label in zip(made.candidate_features, made.truth, strict=True)
    ]
    assert np.all(np.mean(wrong, axis=0) > 0)
