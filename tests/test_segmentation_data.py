"""Images with masks, and the graphs of superpixels that examples/segmentation makes of them."""

import gzip
import importlib
import io
import itertools
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from scipy import ndimage

from maxmargin import datasets

Image = pytest.importorskip("PIL.Image", reason='needs Pillow: pip install ".[images]"')

EXAMPLE = Path(__file__).parent.parent / "examples" / "segmentation"
COWS = "msrc_cow_coseg/msrc_cow_30.tar"
HORSES = "weizmann_horses/weizmann_horses_328_resized.tar"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A data folder and a cache of our own."""
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "data"


def encoded(pixels, kind="png"):
    stream = io.BytesIO()
    Image.fromarray(np.asarray(pixels, dtype=np.uint8)).save(stream, kind)
    return stream.getvalue()


COLOURED = encoded(np.arange(2 * 3 * 3).reshape(2, 3, 3))
MASK = encoded([[0, 255, 0], [255, 255, 0]])
# The data chunk says that it has 5 bytes, fewer than it has: the next one would begin in its middle.
DATA = COLOURED.index(b"IDAT")
SHORT_CHUNK = COLOURED[: DATA - 4] + (5).to_bytes(4, "big") + COLOURED[DATA:]
PAIR = {"image/a.png": COLOURED, "mask/a.png": MASK}


def tar_of(members):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return stream.getvalue()


def gzip_damaged_after(content, n_bytes):
    """Gzip with a block of no known kind behind the first bytes."""
    packer = zlib.compressobj(wbits=31)
    return packer.compress(content[:n_bytes]) + packer.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 64


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


@pytest.mark.data
def test_horses_have_their_published_number_and_the_first_200_train(data_folder):
    data = datasets.load_weizmann_horses()
    assert data.train.names + data.test.names == [f"horse{i:03d}" for i in range(1, 329)]
    assert (len(data.train), len(data.test)) == (200, 128)
    for part in (data.train, data.test):
        assert [image.shape for image in part.images] == [(*mask.shape, 3) for mask in part.masks]
        assert all(image.dtype == np.uint8 for image in part.images)
        assert all(mask.dtype == np.bool_ and 0.02 < mask.mean() < 0.8 for mask in part.masks)


@pytest.mark.data
def test_cows_have_their_published_number_and_size(data_folder):
    data = datasets.load_msrc_cows()
    assert sorted(data.names) == data.names
    assert set(data.names) == {f"5_{i}_s" for i in range(1, 31)}
    assert {image.shape for image in data.images} == {(213, 320, 3)}
    assert {mask.shape for mask in data.masks} == {(213, 320)}
    assert all(0.02 < mask.mean() < 0.8 for mask in data.masks)


def test_pixels_and_masks_are_read_and_other_files_passed_over(folder):
    grey = encoded([[7, 8], [9, 10]])
    members = {
        "set/image/b.png": grey,
        "set/mask/b.png": encoded([[255, 254], [1, 0]]),
        "set/image/._a.png": b"left by a file manager",
        "set/image/Thumbs.db": b"left by another",
        "set/readme/a.png": b"of another folder",
        **{f"./{name}": content for name, content in PAIR.items()},
    }
    put(folder, COWS + ".gz", gzip.compress(tar_of(members)))
    data = datasets.load_msrc_cows()
    assert data.names == ["a", "b"]
    assert np.array_equal(data.images[0], np.arange(18).reshape(2, 3, 3))
    assert data.masks[0].tolist() == [[False, True, False], [True, True, False]]
    assert np.array_equal(data.images[1], np.repeat([[[7], [8]], [[9], [10]]], 3, axis=2))
    assert data.masks[1].tolist() == [[True, True], [False, False]]


def test_jpg_images_belong_to_png_masks(folder):
    pixels = np.full((2, 3, 3), 100, dtype=np.uint8)
    put(folder, COWS, tar_of({"image/a.JPG": encoded(pixels, "jpeg"), "mask/a.png": MASK}))
    assert np.abs(datasets.load_msrc_cows().images[0].astype(int) - 100).max() <= 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (tar_of({"image/a.png": COLOURED}), r"msrc_cow_30.tar: found 'a' in image/ but not in mask/"),
        (tar_of({"mask/a.png": MASK}), "found 'a' in mask/ but not in image/"),
        (tar_of({**PAIR, "mask/a.png": encoded([[0, 255]])}), "image of 2x3 pixels .* but a mask of 1x2; expected the"),
        (tar_of({**PAIR, "image/a.jpg": COLOURED}), "found image/a twice"),
        (tar_of({**PAIR, "image/a.png": b"no image"}), "image/a: found 8 bytes that are no image"),
        (tar_of({**PAIR, "mask/a.png": MASK[:-30]}), "mask/a: .*; expected a jpg or png"),
        (tar_of({**PAIR, "image/a.png": COLOURED[:45]}), "image/a: .*; expected a jpg or png"),
        (tar_of({**PAIR, "image/a.png": SHORT_CHUNK}), "image/a: broken PNG file .*; expected a jpg or png"),
        (tar_of({}), "found no image, expected image/NAME.jpg and mask/NAME.png"),
        (tar_of(PAIR)[:600], "unexpected end of data; expected a tar"),
        (gzip.compress(tar_of(PAIR), mtime=0)[:100], "; expected a tar"),
        (
            gzip_damaged_after(tar_of({"image/a.png": bytes(300_000)}), 250_000),
            "Error -3 while decompressing data: .*; expected a tar",
        ),
        (b"no tar", "; expected a tar"),
    ],
)
def test_malformed_tar_is_named(folder, content, message):
    put(folder, COWS, content)
    with pytest.raises(ValueError, match=message):
        datasets.load_msrc_cows()


@pytest.mark.parametrize("count", [200, 203])
def test_horses_are_split_by_name(folder, count):
    names = [f"horse{i:03d}" for i in range(count, 0, -1)]
    dot = encoded([[255]])
    put(folder, HORSES, tar_of({f"{place}/{name}.png": dot for name in names for place in ("image", "mask")}))
    if count == 200:
        with pytest.raises(ValueError, match="found 200 images, expected 328"):
            datasets.load_weizmann_horses()
        return
    data = datasets.load_weizmann_horses()
    assert (data.train.names[0], data.train.names[-1]) == ("horse001", "horse200")
    assert data.test.names == ["horse201", "horse202", "horse203"]


def test_missing_tar_says_where_to_put_it(folder):
    with pytest.raises(FileNotFoundError, match=r"weizmann_horses/weizmann_horses_328_resized.tar.*MAXMARGIN_DATA"):
        datasets.load_weizmann_horses()


def test_missing_pillow_names_the_extra(folder, monkeypatch):
    put(folder, COWS, tar_of(PAIR))
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(ImportError, match="pip install pillow, or maxmargin with its extra images"):
        datasets.load_msrc_cows()


@pytest.fixture
def superpixels(monkeypatch):
    pytest.importorskip("skimage", reason='needs scikit-image: pip install ".[images]"')
    monkeypatch.syspath_prepend(EXAMPLE)
    return importlib.import_module("superpixels")


@pytest.fixture
def cut(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLE)
    return importlib.import_module("potts_cut").best_foreground


def picture(height=60, width=84, seed=0):
    """A bright disc on a noisy darker ground, and its mask."""
    rng = np.random.default_rng(seed)
    down, right = np.mgrid[:height, :width]
    mask = (down - height / 2) ** 2 + (right - width / 2) ** 2 < (height / 3) ** 2
    colours = np.where(mask[..., None], [200, 120, 60], [60, 110, 50]) + rng.normal(0, 12, (height, width, 3))
    return np.clip(colours, 0, 255).astype(np.uint8), mask


def test_every_pixel_has_a_superpixel_and_every_superpixel_a_row(superpixels):
    image, mask = picture()
    graph = superpixels.graph_of(image, mask)
    n_nodes = len(graph.sizes)
    assert 150 <= n_nodes <= 300
    assert graph.segments.shape == mask.shape
    assert np.array_equal(np.unique(graph.segments), np.arange(n_nodes))
    assert graph.node_features.shape == (n_nodes, len(superpixels.NODE_FEATURES)) == (n_nodes, 51)
    assert graph.edge_features.shape == (len(graph.edges), len(superpixels.EDGE_FEATURES))
    assert np.all(np.isfinite(graph.node_features))
    assert graph.sizes.mean() == pytest.approx(1.0)
    counts = np.bincount(graph.segments.ravel())
    assert graph.sizes * counts.mean() == pytest.approx(counts)
    assert all(ndimage.label(graph.segments == k)[1] == 1 for k in range(n_nodes))


def test_truth_is_the_majority_of_the_pixels(superpixels):
    image, mask = picture()
    graph = superpixels.graph_of(image, mask)
    assert graph.truth.tolist() == [int(mask[graph.segments == k].mean() > 0.5) for k in range(len(graph.sizes))]
    assert 0 < graph.truth.sum() < len(graph.truth)
    assert np.mean(graph.truth[graph.segments] == mask) > 0.97
    assert superpixels.graph_of(image).truth is None


def borders(segments):
    """Pairs of neighbours, by looking at every pixel."""
    height, width = segments.shape
    pairs = set()
    for i, j in np.ndindex(height, width):
        for k, m in ((i + 1, j), (i, j + 1)):
            if k < height and m < width and segments[i, j] != segments[k, m]:
                pairs.add(tuple(sorted((int(segments[i, j]), int(segments[k, m])))))
    return sorted(pairs)


def test_edges_are_the_borders_each_once_and_no_loops(superpixels):
    graph = superpixels.graph_of(*picture())
    assert list(map(tuple, graph.edges.tolist())) == borders(graph.segments)
    assert np.all(graph.edges[:, 0] < graph.edges[:, 1])


def test_corners_are_no_borders(superpixels):
    segments = np.array([[0, 0, 1], [2, 2, 1], [2, 2, 3]])
    assert superpixels.neighbours(segments).tolist() == [[0, 1], [0, 2], [1, 2], [1, 3], [2, 3]]
    assert superpixels.neighbours(np.zeros((2, 2), dtype=int)).shape == (0, 2)


def test_histograms_sum_to_one(superpixels):
    graph = superpixels.graph_of(*picture())
    names = np.array(superpixels.NODE_FEATURES)
    for kind in ("hue ", "saturation ", "HOG", "SIFT"):
        columns = [k for k, name in enumerate(names) if name.startswith(kind) and "entropy" not in name]
        shares = graph.node_features[:, columns]
        assert len(columns) == {"hue ": 5, "saturation ": 3, "HOG": 10, "SIFT": 25}[kind]
        assert shares.min() >= 0
        assert shares.sum(axis=1) == pytest.approx(1.0)


def test_colours_of_two_halves_are_told_by_name(superpixels):
    image = np.zeros((4, 8, 3), dtype=np.uint8)
    image[:, :4] = [255, 0, 0]
    image[:2, 4:] = [0, 255, 0]
    image[2:, 4:] = [255, 255, 255]
    segments = np.repeat([[0, 1]], 4, axis=0).repeat(4, axis=1)
    rows = superpixels.node_features_of(image, segments)
    red, mixed = (dict(zip(superpixels.NODE_FEATURES, row, strict=True)) for row in rows)
    assert [red[name] for name in ("red", "green", "blue", "hue", "saturation", "value")] == [1, 0, 0, 0, 1, 1]
    assert (red["hue 0"], red["hue entropy"], red["saturation 2"], red["saturation entropy"]) == (1, 0, 1, 0)
    assert (mixed["red"], mixed["green"], mixed["saturation"]) == (0.5, 1.0, 0.5)
    assert (mixed["hue 0"], mixed["hue 1"]) == (0.5, 0.5)
    assert mixed["hue entropy"] == mixed["saturation entropy"] == pytest.approx(np.log(2))


@pytest.mark.parametrize(
    ("down", "right", "signed", "unsigned"), [(0, 6, 0, 0), (0, -6, 4, 0), (3, 6, 1, 1), (6, 2, 2, 4), (-6, -2, 6, 4)]
)
def test_gradients_fall_into_the_bin_of_their_direction(superpixels, down, right, signed, unsigned):
    # Bins of 45 degrees with sign, of 20 degrees without, the first around 0; angles run from right to down.
    ramp = np.array([down, right]) @ np.mgrid[:15, :15].reshape(2, -1)
    image = np.repeat((ramp - ramp.min()).reshape(15, 15, 1), 3, axis=2).astype(np.uint8)
    whole = np.zeros((15, 15), dtype=int)
    # The middle is far enough from the edge of the image, where the ramp ends.
    whole[7, 7] = 1
    row = dict(zip(superpixels.NODE_FEATURES, superpixels.node_features_of(image, whole)[1], strict=True))
    assert max((name for name in row if name.startswith("SIFT 1 ")), key=row.get) == f"SIFT 1 {signed}"
    hog = [name for name in row if name.startswith("HOG") and row[name] > 0]
    assert hog == [f"HOG {unsigned}", "HOG flat"]
    length = np.hypot(down, right) / 255
    assert row["HOG flat"] == pytest.approx(superpixels.HALF_FLAT / (length + superpixels.HALF_FLAT), rel=1e-6)


def test_flat_images_have_flat_histograms(superpixels):
    graph = superpixels.graph_of(np.full((30, 30, 3), 90, dtype=np.uint8))
    flat = [superpixels.NODE_FEATURES.index(name) for name in ("HOG flat", "SIFT flat")]
    assert graph.node_features[:, flat] == pytest.approx(1.0, abs=1e-9)
    assert graph.edge_features == pytest.approx(1.0)


def test_contrasts_are_between_0_and_1_and_fall_with_the_difference(superpixels):
    graph = superpixels.graph_of(*picture())
    assert np.all(graph.edge_features[:, 0] == 1.0)
    assert graph.edge_features.min() >= 0
    assert graph.edge_features.max() <= 1
    assert np.all(graph.edge_features[:, 1] <= graph.edge_features[:, 2])
    same = graph.truth[graph.edges[:, 0]] == graph.truth[graph.edges[:, 1]]
    assert np.median(graph.edge_features[same, 2]) > 0.5 > 0.1 > np.median(graph.edge_features[~same, 2])
    # Greys of 94 and 119 have L = 39.9 and 50.0.
    image = np.zeros((1, 3, 3), dtype=np.uint8)
    image[0, :, :] = np.array([[94], [119], [94]])
    found = superpixels.edge_features_of(image, np.array([[0, 1, 2]]), np.array([[0, 1], [0, 2]]))
    expected = [1.0, *(np.exp(-(10.0**2) / (2 * scale**2)) for scale in superpixels.CONTRAST_SCALES)]
    assert found[0] == pytest.approx(expected, rel=0.06)
    assert found[1] == pytest.approx(1.0)


def assert_same(first, second):
    for one, other in zip(first, second, strict=True):
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def test_graphs_repeat_to_the_last_bit(superpixels):
    assert_same(superpixels.graph_of(*picture()), superpixels.graph_of(*picture()))


@pytest.mark.parametrize("shape", [(1, 1), (1, 50), (2, 2), (40, 1)])
def test_tiny_images_have_graphs(superpixels, shape):
    graph = superpixels.graph_of(np.full((*shape, 3), 5, dtype=np.uint8), np.ones(shape, dtype=bool))
    assert np.all(graph.truth == 1)
    assert graph.edges.shape == (len(graph.edge_features), 2)
    assert list(map(tuple, graph.edges.tolist())) == borders(graph.segments)


@pytest.mark.parametrize(
    ("image", "mask", "message"),
    [
        (np.zeros((3, 3)), None, r"found float64 and shape \(3, 3\)"),
        (np.zeros((3, 3, 4), dtype=np.uint8), None, r"found uint8 and shape \(3, 3, 4\)"),
        (np.zeros((0, 3, 3), dtype=np.uint8), None, r"found uint8 and shape \(0, 3, 3\)"),
        (np.zeros((3, 3, 3), dtype=np.uint8), np.zeros((3, 2), dtype=bool), r"mask must be .* \(3, 3\), found bool"),
        (np.zeros((3, 3, 3), dtype=np.uint8), np.zeros((3, 3)), r"mask must be of bool .*, found float64"),
    ],
)
def test_what_is_no_image_is_refused(superpixels, image, mask, message):
    with pytest.raises(ValueError, match=message):
        superpixels.graph_of(image, mask)


def test_standardised_features_have_the_statistics_of_training(superpixels):
    graphs = [superpixels.graph_of(*picture(seed=seed)) for seed in (0, 1)]
    rows = graphs[0].node_features.copy()
    rows[:, 0] = graphs[1].node_features[:, 0] = 3.0
    graphs[0] = graphs[0]._replace(node_features=rows)
    standardise = superpixels.Standardiser(graphs)
    found = np.concatenate([standardise(graph.node_features) for graph in graphs])
    assert found.shape[1] == 52
    assert np.all(found[:, 0] == 0)
    assert np.all(found[:, -1] == 1)
    assert found[:, :-1].mean(axis=0) == pytest.approx(0.0, abs=1e-9)
    deviations = found[:, 1:6].std(axis=0)
    assert deviations == pytest.approx(1.0)
    assert standardise(rows + 1.0)[:, 1:6].mean() != pytest.approx(0.0, abs=0.1)


def test_cached_graphs_are_read_and_changed_ones_computed_anew(superpixels, tmp_path, monkeypatch):
    image, mask = picture()
    [fresh] = superpixels.graphs_of([image], [mask])
    assert_same(fresh, *superpixels.graphs_of([image], [mask], tmp_path / "new"))
    assert [path.suffix for path in (tmp_path / "new").iterdir()] == [".npz"]
    computed = []
    monkeypatch.setattr(superpixels, "graph_of", lambda image, mask: computed.append(mask) or fresh)
    assert_same(fresh, *superpixels.graphs_of([image], [mask], tmp_path / "new"))
    assert computed == []
    superpixels.graphs_of([image], [~mask], tmp_path / "new")
    assert len(computed) == 1


def test_the_cut_finds_the_best_foreground(cut):
    rng = np.random.default_rng(4)
    pairs_of_nodes = np.array(list(itertools.combinations(range(7), 2)))
    labellings = np.array(list(itertools.product([0, 1], repeat=7)))
    for _ in range(50):
        edges = rng.permutation(pairs_of_nodes)[: rng.integers(0, 12)]
        scores, pairs = rng.normal(size=7), rng.exponential(size=len(edges))
        values = labellings @ scores + (labellings[:, edges[:, 0]] == labellings[:, edges[:, 1]]) @ pairs
        assert cut(scores, edges, pairs).tolist() == labellings[values.argmax()].tolist()


def test_the_cut_takes_background_on_ties_and_refuses_negative_pairs(cut):
    edges = np.array([[0, 1]])
    assert cut([0.0, 0.0], edges, [0.0]).tolist() == [0, 0]
    assert cut([1.0, -1.0], edges, [5.0]).tolist() == [0, 0]
    with pytest.raises(ValueError, match=r"pairs must not be negative, found -0.1"):
        cut([1.0, -1.0], edges, [-0.1])
