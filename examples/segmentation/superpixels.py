"""From an image to a graph: superpixels as nodes, their common borders as edges, and what is known of both.

The model of Guzman-Rivera, Kohli and Batra (2013), section 4.1: nodes are SLIC superpixels [1]_ with 51 features, edges
join neighbours and carry a constant (Potts) and the likeness of their colours (contrast-sensitive Potts):

    mean RGB  3 | mean HSV  3 | hue histogram  5 + entropy | saturation histogram  3 + entropy | HOG  10 | SIFT  25
    1 | exp(−‖Δ Lab‖² / 2σ²), σ = 5 | the same, σ = 15

The paper names the two gradient histograms and their sizes, nothing more.  Ours count pixels by the direction of the
gradient: HOG in 9 directions without sign, SIFT in 8 with sign at 3 scales; one bin more in each for what is flat.
Edge features are never negative, so that weights that are not negative either keep graph cuts exact.

.. [1] R. Achanta et al., "SLIC superpixels compared to state-of-the-art superpixel methods", PAMI 34(11), 2012.
"""

import hashlib
import os
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import skimage
from scipy.ndimage import correlate1d, gaussian_filter
from skimage.color import rgb2gray, rgb2hsv, rgb2lab
from skimage.segmentation import slic

N_SEGMENTS = 250
COMPACTNESS = 20.0
HUE_BINS = 5
SATURATION_BINS = 3
HOG_DIRECTIONS = 9
HOG_SCALE = 0.0
SIFT_DIRECTIONS = 8
SIFT_SCALES = (1.0, 2.0, 4.0)
# A gradient this large, in brightness from 0 to 1 for each pixel, counts half for its direction and half as flat.
HALF_FLAT = 0.02
CONTRAST_SCALES = (5.0, 15.0)

NODE_FEATURES = (
    *("red", "green", "blue", "hue", "saturation", "value"),
    *(f"hue {k}" for k in range(HUE_BINS)),
    "hue entropy",
    *(f"saturation {k}" for k in range(SATURATION_BINS)),
    "saturation entropy",
    *(f"HOG {k}" for k in range(HOG_DIRECTIONS)),
    "HOG flat",
    *(f"SIFT {scale:g} {k}" for scale in SIFT_SCALES for k in range(SIFT_DIRECTIONS)),
    "SIFT flat",
)
EDGE_FEATURES = ("constant", *(f"contrast {scale:g}" for scale in CONTRAST_SCALES))


class SuperpixelGraph(NamedTuple):
    """One image as a graph of n superpixels and m borders between them.

    Attributes
    ----------
    node_features : ndarray of shape (n, 51)
        As named by `NODE_FEATURES`.
    edges : ndarray of shape (m, 2)
        Neighbours, the smaller number first, each pair once, in ascending order.
    edge_features : ndarray of shape (m, 3)
        As named by `EDGE_FEATURES`, from 0 to 1.
    truth : ndarray of shape (n,) or None
        1 where more than half of the pixels are foreground, else 0; None without a mask.
    sizes : ndarray of shape (n,)
        Numbers of pixels, divided by their mean.
    segments : ndarray of shape (height, width)
        The superpixel of each pixel; ``labels[segments]`` spreads labels of superpixels over the image.
    """

    node_features: np.ndarray
    edges: np.ndarray
    edge_features: np.ndarray
    truth: np.ndarray | None
    sizes: np.ndarray
    segments: np.ndarray


def graph_of(image, mask=None):
    """Return the `SuperpixelGraph` of an image; the same bits for the same image.

    Parameters
    ----------
    image : ndarray of uint8, shape (height, width, 3)
    mask : ndarray of bool, shape (height, width), optional
        True where the pixel is foreground.
    """
    image = np.asarray(image)
    if image.dtype != np.uint8 or image.ndim != 3 or image.shape[2] != 3 or not image.size:
        raise ValueError(
            f"image must be of uint8 and shape (height, width, 3), found {image.dtype} and shape {image.shape}."
        )
    if mask is not None and (mask.dtype != np.bool_ or mask.shape != image.shape[:2]):
        raise ValueError(
            f"mask must be of bool and shape {image.shape[:2]}, found {mask.dtype} and shape {mask.shape}."
        )
    segments = slic(image, n_segments=N_SEGMENTS, compactness=COMPACTNESS, start_label=0)
    # Numbers without gaps, whatever became of small segments.
    segments = np.unique(segments, return_inverse=True)[1].reshape(image.shape[:2]).astype(np.int32)
    counts = np.bincount(segments.ravel())
    edges = neighbours(segments)
    truth = None
    if mask is not None:
        truth = (2 * np.bincount(segments[mask], minlength=len(counts)) > counts).astype(np.int64)
    return SuperpixelGraph(
        node_features=node_features_of(image, segments),
        edges=edges,
        edge_features=edge_features_of(image, segments, edges),
        truth=truth,
        sizes=counts / counts.mean(),
        segments=segments,
    )


def neighbours(segments):
    """Return the pairs of segments that share a border between pixels side by side, each once, ascending."""
    beside = np.concatenate(
        [
            np.stack([segments[:, :-1].ravel(), segments[:, 1:].ravel()], axis=1),
            np.stack([segments[:-1].ravel(), segments[1:].ravel()], axis=1),
        ]
    )
    borders = np.sort(beside[beside[:, 0] != beside[:, 1]], axis=1)
    return np.unique(borders, axis=0).astype(np.int64).reshape(-1, 2)


def node_features_of(image, segments):
    """Return the rows of `NODE_FEATURES`, one for each segment."""
    hsv = rgb2hsv(image)
    hue = histogram(segments, bin_of(hsv[..., 0], HUE_BINS), HUE_BINS)
    saturation = histogram(segments, bin_of(hsv[..., 1], SATURATION_BINS), SATURATION_BINS)
    brightness = rgb2gray(image)
    return np.hstack(
        [
            means(segments, image / 255.0),
            means(segments, hsv),
            hue,
            entropy(hue),
            saturation,
            entropy(saturation),
            directions(segments, brightness, (HOG_SCALE,), HOG_DIRECTIONS, turn=np.pi),
            directions(segments, brightness, SIFT_SCALES, SIFT_DIRECTIONS, turn=2 * np.pi),
        ]
    )


def edge_features_of(image, segments, edges):
    """Return the rows of `EDGE_FEATURES`, one for each edge."""
    lab = means(segments, rgb2lab(image))
    squares = ((lab[edges[:, 0]] - lab[edges[:, 1]]) ** 2).sum(axis=1)
    contrasts = [np.exp(-squares / (2 * scale**2)) for scale in CONTRAST_SCALES]
    return np.stack([np.ones(len(edges)), *contrasts], axis=1)


def means(segments, channels):
    """Return the mean of each channel over each segment."""
    flat = segments.ravel()
    counts = np.bincount(flat)
    sums = [np.bincount(flat, weights=channel) for channel in channels.reshape(len(flat), -1).T]
    return np.stack(sums, axis=1) / counts[:, None]


def bin_of(values, n_bins):
    """Return which of equal parts of [0, 1] each value lies in."""
    return np.minimum((values * n_bins).astype(np.int64), n_bins - 1)


def histogram(segments, bins, n_bins, weights=None):
    """Return the share of each segment's pixels, or of their weights, in each bin; rows sum to 1 without weights."""
    n_segments = segments.max() + 1
    codes = segments.ravel() * n_bins + bins.ravel()
    weights = None if weights is None else weights.ravel()
    sums = np.bincount(codes, weights=weights, minlength=n_segments * n_bins).reshape(n_segments, n_bins)
    return sums / np.bincount(segments.ravel())[:, None]


def entropy(shares):
    """Return −Σ p log p of each row, as a column."""
    logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
    return -(shares * logs).sum(axis=1, keepdims=True)


def directions(segments, brightness, scales, n_directions, turn):
    """Return histograms of gradient directions at each scale, and the share of what is flat; rows sum to 1.

    A pixel with a gradient of length g counts g / (g + `HALF_FLAT`) for its direction and the rest as flat, so that a
    segment without any gradient has a histogram too.
    """
    shares, flat = [], 0.0
    for scale in scales:
        smooth = gaussian_filter(brightness, scale, mode="nearest")
        down, right = (correlate1d(smooth, [-0.5, 0.0, 0.5], axis, mode="nearest") for axis in (0, 1))
        length = np.hypot(down, right)
        weights = length / (length + HALF_FLAT)
        # The first bin lies around 0: upright and level edges are common, and no rounding moves them to another bin.
        angle = np.mod(np.arctan2(down, right) / turn + 0.5 / n_directions, 1.0)
        shares.append(histogram(segments, bin_of(angle, n_directions), n_directions, weights))
        flat = flat + means(segments, 1.0 - weights)
    return np.hstack([*shares, flat]) / len(scales)


class Standardiser:
    """Shift and scale features to mean 0 and deviation 1 over the training graphs, and add a column of ones.

    The column is the bias of each label.  Features that never vary in training become 0.
    """

    def __init__(self, graphs):
        rows = np.concatenate([graph.node_features for graph in graphs])
        self.mean = rows.mean(axis=0)
        deviation = rows.std(axis=0)
        self.factor = np.divide(1.0, deviation, out=np.zeros_like(deviation), where=deviation > 1e-12)

    def __call__(self, node_features):
        """Return the standardised rows, one column wider."""
        return np.hstack([(node_features - self.mean) * self.factor, np.ones((len(node_features), 1))])


def graphs_of(images, masks, cache=None):
    """Return the `SuperpixelGraph` of each image with its mask.

    Parameters
    ----------
    images, masks : lists
    cache : path, optional
        A folder for computed graphs, one npz for each image, made where it is missing.  Their names are checksums of
        image, mask and this file: what changes is computed anew.
    """
    if cache is None:
        return [graph_of(image, mask) for image, mask in zip(images, masks, strict=True)]
    folder = Path(cache)
    folder.mkdir(parents=True, exist_ok=True)
    code = Path(__file__).read_bytes() + skimage.__version__.encode()
    return [cached_graph_of(image, mask, folder, code) for image, mask in zip(images, masks, strict=True)]


def cached_graph_of(image, mask, folder, code):
    """Return `graph_of` from the npz of the image in `folder`, which is written where it is missing."""
    key = hashlib.sha256(code)
    for array in (image, mask):
        key.update(f"{array.dtype} {array.shape}".encode())
        key.update(np.ascontiguousarray(array).tobytes())
    path = folder / f"{key.hexdigest()[:32]}.npz"
    if path.exists():
        with np.load(path) as stored:
            return SuperpixelGraph(**stored)
    graph = graph_of(image, mask)
    # Written beside and renamed: an interrupted run leaves no half file under the name.
    with tempfile.TemporaryDirectory(dir=folder) as beside:
        written = Path(beside) / path.name
        np.savez_compressed(written, **graph._asdict())
        os.replace(written, path)
    return graph
