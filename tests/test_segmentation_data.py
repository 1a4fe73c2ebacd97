"""Images with masks: the sets in MAXMARGIN_DATA, and tars that are odd or damaged."""

import gzip
import io
import os
import sys
import tarfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from maxmargin import datasets

Image = pytest.importorskip("PIL.Image", reason="needs Pillow: pip install maxmargin[images]")

COWS = "msrc_cow_coseg/msrc_cow_30.tar"
HORSES = "weizmann_horses/weizmann_horses_328_resized.tar"


@pytest.fixture
def data_folder():
    folder = os.environ.get("MAXMARGIN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the corpora: set MAXMARGIN_DATA to their folder")
    return Path(folder)


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
        (gzip.compress(tar_of(PAIR))[:100], "; expected a tar"),
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
    with pytest.raises(ImportError, match=r"pip install maxmargin\[images\]"):
        datasets.load_msrc_cows()
