"""Images with masks of what stands in the foreground: horses and cows.

Both sets are tars of ``image/NAME.jpg`` (or png) and ``mask/NAME.png``.  Other files in them are passed over; an image
without its mask, or with one of another size, is an error.  Pillow decodes them and is imported only then.
"""

import io
import tarfile
import zlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.datasets._sources import get_file
from maxmargin.datasets._summary import Summary

IMAGE_FOLDER = "image"
MASK_FOLDER = "mask"
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png"})
HORSES_TO_TRAIN = 200
# Masks are black and white; a packed or resized edition may hold greys near them.
FOREGROUND_FROM = 128


@dataclass(frozen=True, slots=True, repr=False)
class SegmentedImages(Summary):
    """Images and the masks of their foreground, ordered by name.

    Attributes
    ----------
    images : list of ndarray of shape (height, width, 3)
        Red, green and blue of each pixel, as uint8.  Sizes differ between images; grey ones have three equal values.
    masks : list of ndarray of shape (height, width)
        True where the pixel is foreground; as many rows and columns as the image.
    names : list of str
        File names without their ends.
    """

    images: list[NDArray[np.uint8]]
    masks: list[NDArray[np.bool_]]
    names: list[str]

    def __len__(self) -> int:
        return len(self.images)


@dataclass(frozen=True, slots=True, repr=False)
class SegmentationData(Summary):
    """Segmented images in two parts.

    Attributes
    ----------
    train, test : SegmentedImages
    """

    train: SegmentedImages
    test: SegmentedImages


def load_weizmann_horses() -> SegmentationData:
    """Load the Weizmann horses [1]_: 328 pictures of one horse each, 200 to train and 128 to test.

    Read from ``weizmann_horses`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.  The file is
    a tar, plain or gzipped, of ``image/NAME.jpg`` and ``mask/NAME.png``, with pictures about 250 pixels wide.  The set
    has no split of its own: the first 200 by name train, as in ``test.names[0] == "horse201"``.  Needs Pillow,
    which the extra ``images`` brings.

    Returns
    -------
    SegmentationData
        With ``train`` and ``test``.

    References
    ----------
    .. [1] E. Borenstein and S. Ullman, "Class-specific, top-down segmentation", ECCV 2002.
    """
    path = get_file("weizmann_horses", "all")
    horses = _read_pairs(path)
    if len(horses) <= HORSES_TO_TRAIN:
        raise ValueError(f"{path}: found {len(horses)} images, expected 328: the first {HORSES_TO_TRAIN} are to train.")
    return SegmentationData(
        train=_slice(horses, slice(None, HORSES_TO_TRAIN)), test=_slice(horses, slice(HORSES_TO_TRAIN, None))
    )


def load_msrc_cows() -> SegmentedImages:
    """Load 30 pictures of cows from the MSRC object classes [1]_, a set of co-segmentation without a split.

    Read from ``msrc_cow_coseg`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.  The file is a
    tar, plain or gzipped, of ``image/NAME.png`` and ``mask/NAME.png``.  Several cows of a picture are one foreground.
    Needs Pillow, which the extra ``images`` brings.

    Returns
    -------
    SegmentedImages
        320 by 213 pixels each.

    References
    ----------
    .. [1] J. Winn, A. Criminisi and T. Minka, "Object categorization by learned universal visual dictionary", ICCV 2005.
    """
    return _read_pairs(get_file("msrc_cow_coseg", "all"))


def _slice(data: SegmentedImages, where: slice) -> SegmentedImages:
    return SegmentedImages(data.images[where], data.masks[where], data.names[where])


def _read_pairs(path: Path) -> SegmentedImages:
    """Read all images of a tar with their masks, ordered by name."""
    pillow_image = _pillow_image()
    packed = _packed_files(path)
    images, masks = packed[IMAGE_FOLDER], packed[MASK_FOLDER]
    for name in sorted(images.keys() ^ masks.keys()):
        has, lacks = (IMAGE_FOLDER, MASK_FOLDER) if name in images else (MASK_FOLDER, IMAGE_FOLDER)
        raise ValueError(f"{path}: found {name!r} in {has}/ but not in {lacks}/; expected every image with its mask.")
    if not images:
        raise ValueError(f"{path}: found no image, expected {IMAGE_FOLDER}/NAME.jpg and {MASK_FOLDER}/NAME.png")
    pairs = SegmentedImages([], [], [])
    for name in sorted(images):
        image = _decode(pillow_image, images[name], "RGB", f"{path}: {IMAGE_FOLDER}/{name}")
        mask = _decode(pillow_image, masks[name], "L", f"{path}: {MASK_FOLDER}/{name}") >= FOREGROUND_FROM
        if image.shape[:2] != mask.shape:
            raise ValueError(
                f"{path}: {name!r} has an image of {image.shape[0]}x{image.shape[1]} pixels (height x width) but a mask "
                f"of {mask.shape[0]}x{mask.shape[1]}; expected the same size."
            )
        pairs.images.append(image)
        pairs.masks.append(mask)
        pairs.names.append(name)
    return pairs


def _packed_files(path: Path) -> dict[str, dict[str, bytes]]:
    """Return the undecoded images and masks of a tar, folder by folder, by name without its end."""
    packed: dict[str, dict[str, bytes]] = {IMAGE_FOLDER: {}, MASK_FOLDER: {}}
    try:
        with tarfile.open(path) as tar:
            for member in tar:
                place = PurePosixPath(member.name)
                # Hidden files are what file managers leave behind, such as the ._horse001.jpg of macOS.
                is_hidden = place.name.startswith(".")
                if not member.isfile() or is_hidden or place.suffix.lower() not in IMAGE_SUFFIXES:
                    continue
                folder = packed.get(place.parent.name)
                stream = tar.extractfile(member)
                if folder is None or stream is None:
                    continue
                if place.stem in folder:
                    raise ValueError(f"{path}: found {place.parent.name}/{place.stem} twice, expected it once.")
                folder[place.stem] = stream.read()
    except (tarfile.TarError, EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{path}: {error}; expected a tar of images and masks") from error
    return packed


def _decode(pillow_image: Any, content: bytes, mode: str, place: str) -> NDArray[np.uint8]:
    try:
        with pillow_image.open(io.BytesIO(content)) as image:
            return np.array(image.convert(mode), dtype=np.uint8)
    except pillow_image.UnidentifiedImageError as error:
        # Its text names a stream in memory.
        raise ValueError(
            f"{place}: found {len(content)} bytes that are no image; expected a jpg or png image"
        ) from error
    # Pillow's decoders raise SyntaxError and ValueError, too, on damaged files.
    except (OSError, SyntaxError, ValueError, pillow_image.DecompressionBombError) as error:
        raise ValueError(f"{place}: {error}; expected a jpg or png image") from error


def _pillow_image() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(
            "decoding images needs Pillow, which is not installed: pip install pillow, or maxmargin with its extra images."
        ) from error
    return Image
