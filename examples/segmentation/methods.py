"""Ways to find the foreground of superpixels, how good they are, and a picture of what they found.

All methods score a superpixel by w·x.  The first stops there.  The second adds a weight that someone has to guess for
neighbours that agree.  The third, `maxmargin.GraphSVM`, learns both kinds of weights together, edge weights kept ≥ 0 so
that graph cuts are exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from potts_cut import best_foreground
from superpixels import EDGE_FEATURES, Standardiser

import maxmargin as mm

# C of n images is this / n: the losses of few images count as much against large weights as those of many.
C_OF_ALL = 2.0
GUESSED_WEIGHTS = (0.1, 0.4, 1.6)
# Flat, and no colour of an animal: what was missed shows as clearly as what was added.
BACKGROUND = (150, 190, 235)


def alone(train, test):
    """Train a classifier of single superpixels, each as important as it is large; return the scores of `test`."""
    standardise = Standardiser(train)
    svm = mm.BinarySVM(C=C_OF_ALL / len(train), fit_intercept=False).fit(
        np.concatenate([standardise(graph.node_features) for graph in train]),
        np.concatenate([graph.truth for graph in train]),
        sample_weight=np.concatenate([graph.sizes for graph in train]),
    )
    return [svm.decision_function(standardise(graph.node_features)) for graph in test]


def guessed(scores, graphs):
    """Yield the labels of each guess of one Potts weight, with its description."""
    for k, name in enumerate(EDGE_FEATURES):
        for weight in GUESSED_WEIGHTS:
            yield (
                f"{weight:g} for {name}",
                [
                    best_foreground(score, graph.edges, weight * graph.edge_features[:, k])
                    for score, graph in zip(scores, graphs, strict=True)
                ],
            )


class Together:
    """A GraphSVM that learns weights of superpixels and of borders together, trained on graphs with their truth."""

    def __init__(self, train):
        self._standardise = Standardiser(train)
        self.svm = mm.GraphSVM(C=C_OF_ALL / len(train), edges="potts", nonnegative="edges")
        self.svm.fit([self._input(graph) for graph in train], [graph.truth for graph in train])

    def _input(self, graph):
        features = self._standardise(graph.node_features)
        return mm.Graph(features, graph.edges, graph.edge_features, node_weights=graph.sizes)

    def __call__(self, graphs):
        """Return the labels of each graph."""
        return self.svm.predict([self._input(graph) for graph in graphs])


def measured(labels, graphs, masks):
    """Return the share of pixels labelled right, and intersection over union of the foreground, of all pixels."""
    found = [chosen.astype(bool)[graph.segments] for chosen, graph in zip(labels, graphs, strict=True)]
    found = np.concatenate([pixels.ravel() for pixels in found])
    truth = np.concatenate([mask.ravel() for mask in masks])
    return float(np.mean(found == truth)), float(np.sum(found & truth) / np.sum(found | truth))


def draw(which, images, masks, graphs, columns):
    """Return a figure with a row for each image named in `which`: image, truth and the labels of each column."""
    n_columns = 2 + len(columns)
    heights = [images[i].shape[0] / images[i].shape[1] for i in which]
    figure, axes = plt.subplots(
        len(which),
        n_columns,
        figsize=(2.5 * n_columns, 2.55 * sum(heights)),
        height_ratios=heights,
        layout="constrained",
        squeeze=False,
    )
    for axis, title in zip(axes[0], ["image", "truth", *columns], strict=True):
        axis.set_title(title)
    for row, i in zip(axes, which, strict=True):
        row[0].imshow(images[i])
        foregrounds = [masks[i], *(labels[i].astype(bool)[graphs[i].segments] for labels in columns.values())]
        for axis, foreground in zip(row[1:], foregrounds, strict=True):
            axis.imshow(np.where(foreground[..., None], images[i], np.uint8(BACKGROUND)))
    for axis in axes.flat:
        axis.axis("off")
    return figure
