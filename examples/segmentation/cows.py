"""
Cows, and what horses teach about them
======================================

The same graphs and methods as for :ref:`horses <sphx_glr_gallery_segmentation_horses.py>`, on the 30 cows of MSRC.
There are few of them, so that every one is tested: six at a time, by weights that were learned from the other 24. Those
six are neighbours by number, because neighbours may show the same meadow. Other weights have seen horses only.

Needs ``pip install ".[images]" matplotlib``, and the MSRC cows and the Weizmann horses (see
:func:`maxmargin.datasets.load_msrc_cows` and :func:`~maxmargin.datasets.load_weizmann_horses`) in the folder named by
``MAXMARGIN_DATA``; a page that was built without them shows the code alone.

To run it by hand:

.. code-block:: text

    python examples/segmentation/cows.py                                 learns from a part of the horses, shows pictures
    python examples/segmentation/cows.py --horses 200 --cache graphs     learns from 200 of them; keeps the superpixels
    python examples/segmentation/cows.py -o .                            writes the pictures to this folder
"""

import argparse

import matplotlib.pyplot as plt
import numpy as np
from methods import Together, alone, draw, guessed, measured
from superpixels import EDGE_FEATURES, graphs_of

import maxmargin as mm

parser = argparse.ArgumentParser(description="Cut cows out of photographs.")
parser.add_argument("--cows", type=int, default=30, help="how many to train and test with, in five parts")
parser.add_argument("--horses", type=int, default=60, help="how many to train with")
parser.add_argument("--cache", help="folder that keeps the computed superpixels")
parser.add_argument("-o", "--output", help="folder to write the pictures to, in place of showing them")
arguments = parser.parse_args()

# %%
# Cows in five parts
# ------------------

data = mm.datasets.load_msrc_cows()
in_order = sorted(range(len(data)), key=lambda i: int(data.names[i].split("_")[1]))[: arguments.cows]
images, masks = [data.images[i] for i in in_order], [data.masks[i] for i in in_order]
cows = graphs_of(images, masks, arguments.cache)
parts = np.array_split(np.arange(len(cows)), 5)


def crosswise(method):
    """Return what a method finds in each part, trained on all other parts."""
    found = []
    for part in parts:
        train = [cow for i, cow in enumerate(cows) if i not in part]
        found.extend(method(train, [cows[i] for i in part]))
    return found


horses = mm.datasets.load_weizmann_horses().train
horses = graphs_of(horses.images[: arguments.horses], horses.masks[: arguments.horses], arguments.cache)
print(f"{len(cows)} cows, {len(horses)} horses")

# %%
# Learned from cows, and from horses
# ----------------------------------
#
# Each part of the cows is searched by weights of the other parts, and all cows by those of horses.


def report(name, labels):
    """Print a line of the table."""
    accuracy, overlap = measured(labels, cows, masks)
    print(f"{name:38s}{accuracy:13.1%}{overlap:16.1%}")
    return labels


def report_methods(scores, labels):
    """Print the lines of the three methods."""
    report("  each superpixel by itself", [(score > 0).astype(int) for score in scores])
    for name, smoothed in guessed(scores, cows):
        report(f"  guessed: {name}", smoothed)
    return report("  GraphSVM", labels)


print(f"{'':38s}{'pixels right':>13s}{'foreground IoU':>16s}")
report("nothing but background", [np.zeros_like(cow.truth) for cow in cows])
report("true majority of each superpixel", [cow.truth for cow in cows])
print("trained on the other cows")
from_cows = report_methods(crosswise(alone), crosswise(lambda train, test: Together(train)(test)))
print("trained on horses")
of_horses = Together(horses)
from_horses = report_methods(alone(horses, cows), of_horses(cows))

# %%
# Cows and horses teach the same of borders: nothing for the constant, much for colours that are alike. What an animal
# looks like carries over less: the pictures below have black cows that weights of horses miss.
#
# With 24 images to learn from, GraphSVM beats single superpixels and most guesses, and comes near the best guess in
# hindsight. Where horses teach, it does better than every guess.

of_cows = Together(cows)
print(f"{'':12s}{'cows':>8s}{'horses':>8s}")
for name, weights in zip(
    EDGE_FEATURES, zip(of_cows.svm.edge_coef_.ravel(), of_horses.svm.edge_coef_.ravel(), strict=True), strict=True
):
    print(f"{name:12s}{weights[0]:8.3f}{weights[1]:8.3f}")

# %%
# Some of the cows
# ----------------

chosen = np.unique(np.linspace(0, len(cows) - 1, 6).astype(int))
draw(chosen, images, masks, cows, {"GraphSVM, from cows": from_cows, "GraphSVM, from horses": from_horses})

# %%
# The pictures are shown, or written where a folder was named.

if arguments.output:
    for number in plt.get_fignums():
        plt.figure(number).savefig(f"{arguments.output}/cows_{number}.png", dpi=80)
else:
    plt.show()
