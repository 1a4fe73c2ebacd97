"""Side chains: turned about their bonds, their energies, and graphs whose shapes fit together."""

import sys
from pathlib import Path

import numpy as np
import pytest
from protein_files import atom_line, structures

import maxmargin as mm
from maxmargin.datasets._pdb import read_pdb

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "side_chains"))

import chemistry
import energies
import instances
import predictions
import rotamers

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
def test_native_side_chains_are_rebuilt():
    proteins = structures()
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


def energy(instance, labels, node_weights, pair_weights):
    alone = sum(f[label] @ node_weights for f, label in zip(instance.candidate_features, labels, strict=True))
    pairs = zip(instance.edges, instance.pair_features, strict=True)
    return alone + sum(f[labels[first], labels[second]] @ pair_weights for (first, second), f in pairs)


def test_decoded_labels_cannot_be_improved_one_by_one(instance):
    weights = np.ones(3), np.ones(5)
    labels = predictions.decode(instance, *weights)
    least = energy(instance, labels, *weights)
    assert least <= energy(instance, instance.truth, *weights) + 1e-6
    for node, features in enumerate(instance.candidate_features):
        for label in range(len(features)):
            changed = labels.copy()
            changed[node] = label
            assert energy(instance, changed, *weights) >= least - 1e-4


def test_accuracies_count_angles_and_candidates(instance):
    chi1, chi12, right = predictions.accuracies([instance], [instance.truth])
    assert right == 1
    labels = instance.truth.copy()
    # Serine has one angle; its other candidates are 120° away.
    serine = instance.residue_names.index("SER")
    labels[serine] = (labels[serine] + 1) % 3
    near = rotamers.is_within(
        "SER", instance.candidate_angles[serine][instance.truth[serine]], instance.native_angles[serine]
    )
    worse = predictions.accuracies([instance], [labels])
    n_nodes = len(labels)
    assert worse == pytest.approx((chi1 - near[0] / n_nodes, chi12, 1 - 1 / n_nodes))


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
def test_domains_of_a_target_stay_together():
    proteins = structures()
    train, test = instances.split_by_target(proteins)
    assert (len(train), len(test)) == (39, 17)
    assert not {p.name.split("-")[0] for p in train} & {p.name.split("-")[0] for p in test}


@pytest.mark.data
def test_kept_instances_are_taken_again(tmp_path, monkeypatch):
    proteins = structures()
    small = sorted(proteins, key=len)[:2]
    made = instances.make_instances(small[:1], small[1:], folder=tmp_path)
    monkeypatch.setattr(instances, "make_instance", None)
    taken = instances.make_instances(small[:1], small[1:], folder=tmp_path)
    for [before], [after] in zip(made, taken, strict=True):
        assert before.name == after.name
        assert all(np.array_equal(a, b) for a, b in zip(before.pair_features, after.pair_features, strict=True))


@pytest.mark.data
def test_energies_of_a_protein_prefer_its_native_shape():
    proteins = structures()
    residues = rotamers.residues_of(min(proteins, key=len))
    made = instances.make_instance("x", residues, rotamers.learn_rotamers([residues]))
    wrong = [
        np.delete(features, label, axis=0).mean(axis=0) - features[label]
        for features, label in zip(made.candidate_features, made.truth, strict=True)
    ]
    assert np.all(np.mean(wrong, axis=0) > 0)


def test_the_best_labelling_of_the_graph_has_least_energy(instance):
    graph = predictions.to_graph(instance)
    assert graph.candidate_counts.tolist() == [len(features) for features in instance.candidate_features]
    model = mm.models.Pairwise(None)
    model.n_features, model.n_edge_features = graph.rows.shape[1], graph.edge_rows.shape[1]
    node_weights, pair_weights = np.full(graph.rows.shape[1], 0.5), np.full(graph.edge_rows.shape[1], 0.3)
    w = model.join(coef=node_weights[None], edge_coef=pair_weights[None, :, None])
    (labels,) = model.predict([graph], w)
    decoded = predictions.decode(instance, node_weights, pair_weights)
    least = energy(instance, labels, node_weights, pair_weights)
    assert least <= energy(instance, decoded, node_weights, pair_weights) + 1e-6
    assert least < energy(instance, np.zeros(graph.n_nodes, int), node_weights, pair_weights)
