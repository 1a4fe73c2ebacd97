"""Horses cut out of photographs: superpixels classified one by one, smoothed with guessed weights, and learned together.

python examples/segmentation/horses.py                    about a minute; writes horses.png
python examples/segmentation/horses.py --cache graphs     keeps the superpixels in the folder graphs for the next run

Needs pip install maxmargin[images] matplotlib, and the Weizmann horses in the folder named by MAXMARGIN_DATA.  All
three methods score a superpixel by w·x.  The first stops there.  The second adds a weight that someone has to guess for
neighbours that agree.  The third, GraphSVM, learns both kinds of weights together, edge weights kept ≥ 0 so that graph
cuts are exact.
"""

import argparse
import time

import matplotlib
import numpy as np
from potts_cut import best_foreground
from superpixels import EDGE_FEATURES, Standardiser, graphs_of

import maxmargin as mm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

GUESSED_WEIGHTS = (0.1, 0.4, 1.6)
N_DRAWN = 6
# Flat, and no colour of a horse: what was missed shows as clearly as what was added.
BACKGROUND = (150, 190, 235)


def measured(labels, graphs, masks):
    """Return the share of pixels labelled right, and intersection over union of the foreground, of all pixels."""
    found = [chosen.astype(bool)[graph.segments] for chosen, graph in zip(labels, graphs, strict=True)]
    found = np.concatenate([pixels.ravel() for pixels in found])
    truth = np.concatenate([mask.ravel() for mask in masks])
    return np.mean(found == truth), np.sum(found & truth) / np.sum(found | truth)


def unary_svm(graphs, standardise, C):
    """Return a classifier of single superpixels, each as important as it is large."""
    svm = mm.BinarySVM(C=C, fit_intercept=False)
    return svm.fit(
        np.concatenate([standardise(graph.node_features) for graph in graphs]),
        np.concatenate([graph.truth for graph in graphs]),
        sample_weight=np.concatenate([graph.sizes for graph in graphs]),
    )


def graph_input(graph, standardise):
    """Return what GraphSVM sees of an image."""
    features = standardise(graph.node_features)
    return mm.Graph(features, graph.edges, graph.edge_features, node_weights=graph.sizes)


def graph_svm(graphs, standardise, C):
    """Return a GraphSVM that learns weights of superpixels and of borders together."""
    svm = mm.GraphSVM(C=C, edges="potts", nonnegative="edges")
    return svm.fit([graph_input(graph, standardise) for graph in graphs], [graph.truth for graph in graphs])


def draw(path, data, graphs, columns):
    """Draw some images in rows, with the labels of each column beside them."""
    rows = np.linspace(0, len(graphs) - 1, N_DRAWN).astype(int)
    width = 2 + len(columns)
    figure, axes = plt.subplots(N_DRAWN, width, figsize=(2.4 * width, 1.9 * N_DRAWN))
    for axis, title in zip(axes[0], ["image", "truth", *columns], strict=True):
        axis.set_title(title, fontsize=9)
    for row, i in zip(axes, rows, strict=True):
        image = data.images[i]
        row[0].imshow(image)
        foregrounds = [data.masks[i], *(labels[i].astype(bool)[graphs[i].segments] for labels in columns.values())]
        for axis, foreground in zip(row[1:], foregrounds, strict=True):
            axis.imshow(np.where(foreground[..., None], image, np.uint8(BACKGROUND)))
    for axis in axes.flat:
        axis.axis("off")
    figure.tight_layout()
    figure.savefig(path, dpi=80)


def main():
    """Train, measure, draw."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", help="folder that keeps the computed superpixels")
    parser.add_argument("--unary-C", type=float, default=0.01, help="C of the classifier of single superpixels")
    parser.add_argument("--C", type=float, default=0.01, help="C of GraphSVM")
    parser.add_argument("-o", "--output", default="horses.png", help="the picture to write")
    arguments = parser.parse_args()

    data = mm.datasets.load_weizmann_horses()
    start = time.perf_counter()
    train = graphs_of(data.train.images, data.train.masks, arguments.cache)
    test = graphs_of(data.test.images, data.test.masks, arguments.cache)
    print(
        f"{len(train)} images to train and {len(test)} to test, {np.mean([len(graph.sizes) for graph in train]):.0f} "
        f"superpixels and {np.mean([len(graph.edges) for graph in train]):.0f} borders each "
        f"({time.perf_counter() - start:.0f} s)\n\n{'test':38s} {'pixels right':>12s} {'foreground IoU':>15s}"
    )

    def report(name, labels):
        accuracy, overlap = measured(labels, test, data.test.masks)
        print(f"{name:38s} {accuracy:12.2%} {overlap:15.2%}", flush=True)
        return labels

    report("nothing but background", [np.zeros_like(graph.truth) for graph in test])
    report("true majority of each superpixel", [graph.truth for graph in test])

    standardise = Standardiser(train)
    svm = unary_svm(train, standardise, arguments.unary_C)
    scores = [svm.decision_function(standardise(graph.node_features)) for graph in test]
    alone = report("each superpixel by itself", [(score > 0).astype(int) for score in scores])

    for k, name in enumerate(EDGE_FEATURES):
        for weight in GUESSED_WEIGHTS:
            report(
                f"guessed: {weight} for {name}",
                [
                    best_foreground(score, graph.edges, weight * graph.edge_features[:, k])
                    for score, graph in zip(scores, test, strict=True)
                ],
            )

    start = time.perf_counter()
    learned = graph_svm(train, standardise, arguments.C)
    seconds = time.perf_counter() - start
    together = report("GraphSVM", learned.predict([graph_input(graph, standardise) for graph in test]))
    weights = ", ".join(
        f"{weight:.3f} for {name}" for weight, name in zip(learned.edge_coef_.ravel(), EDGE_FEATURES, strict=True)
    )
    print(f"\nGraphSVM: {seconds:.1f} s; learned {weights}\n{learned.certificate_}")
    draw(arguments.output, data.test, test, {"each by itself": alone, "GraphSVM": together})


if __name__ == "__main__":
    main()
