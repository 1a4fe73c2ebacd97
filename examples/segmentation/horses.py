"""
Horses cut out of photographs
=============================

A photograph becomes a graph: superpixels are its nodes, their common borders its edges. Which superpixels show the
horse? The first method asks each by itself. The second joins neighbours with a weight that someone has to guess.
:class:`maxmargin.GraphSVM` learns both kinds of weights together.

Needs ``pip install ".[images]" matplotlib`` and the Weizmann horses (see
:func:`maxmargin.datasets.load_weizmann_horses`) in the folder named by ``MAXMARGIN_DATA``; a page that was built without
them shows the code alone.

To run it by hand:

.. code-block:: text

    python examples/segmentation/horses.py                                 a part of the horses, shows the pictures
    python examples/segmentation/horses.py --images 0 --cache graphs       all of them; keeps their superpixels
    python examples/segmentation/horses.py -o .                            writes the pictures to this folder
"""

import argparse
import time

import matplotlib.pyplot as plt
import numpy as np
from methods import Together, alone, draw, guessed, measured
from superpixels import EDGE_FEATURES, graphs_of

import maxmargin as mm

parser = argparse.ArgumentParser(description="Cut horses out of photographs.")
parser.add_argument("--images", type=int, default=60, help="images to train and to test with, each; 0: all")
parser.add_argument("--cache", help="folder that keeps the computed superpixels")
parser.add_argument("-o", "--output", help="folder to write the pictures to, in place of showing them")
arguments = parser.parse_args()

# %%
# From images to graphs
# ---------------------
#
# A superpixel has 51 features (colours, histograms of hue, saturation and gradients), a border has three: a constant and
# how alike the colours on both sides are, on two scales. They are those of Guzman-Rivera, Kohli and Batra (2013); the
# code is in ``examples/segmentation/superpixels.py``.

data = mm.datasets.load_weizmann_horses()
some = slice(arguments.images or None)
train = graphs_of(data.train.images[some], data.train.masks[some], arguments.cache)
images, masks = data.test.images[some], data.test.masks[some]
test = graphs_of(images, masks, arguments.cache)
n_nodes, n_edges = np.mean([(len(graph.sizes), len(graph.edges)) for graph in train], axis=0)
print(f"{len(train)} images of {len(data.train)} to train, {len(test)} of {len(data.test)} to test")
print(f"{n_nodes:.0f} superpixels and {n_edges:.0f} borders each")

# %%
# Three methods
# -------------
#
# The share of test pixels that are right, and the overlap (intersection over union) of found and true foreground. The
# first two lines are no methods: they say what is easy, and what superpixels leave possible.


def report(name, labels):
    """Print a line of the table."""
    accuracy, overlap = measured(labels, test, masks)
    print(f"{name:38s}{accuracy:13.1%}{overlap:16.1%}")
    return labels


print(f"{'':38s}{'pixels right':>13s}{'foreground IoU':>16s}")
report("nothing but background", [np.zeros_like(graph.truth) for graph in test])
report("true majority of each superpixel", [graph.truth for graph in test])
scores = alone(train, test)
singly = report("each superpixel by itself", [(score > 0).astype(int) for score in scores])
for name, labels in guessed(scores, test):
    report(f"guessed: {name}", labels)
start = time.process_time()
together = Together(train)
seconds = time.process_time() - start
jointly = report("GraphSVM", together(test))

# %%
# What was learned of borders: to cut through one whose sides look alike costs much, and the search is exact because no
# weight is negative.

for name, weight in zip(EDGE_FEATURES, together.svm.edge_coef_.ravel(), strict=True):
    print(f"{name:12s}{weight:8.3f}")
print(f"\ntrained in {seconds:.1f} CPU s\n{together.svm.certificate_}")

# %%
# Test images
# -----------

chosen = np.unique(np.linspace(0, len(test) - 1, 6).astype(int))
draw(chosen, images, masks, test, {"each by itself": singly, "GraphSVM": jointly})

# %%
# The pictures are shown, or written where a folder was named.

if arguments.output:
    for number in plt.get_fignums():
        plt.figure(number).savefig(f"{arguments.output}/horses_{number}.png", dpi=80)
else:
    plt.show()
