"""
A checkerboard under an RBF kernel
==================================

Points on a checkerboard, their class the colour of their square: no line separates them, a kernel does. Three ways to
train :class:`maxmargin.BinarySVM` with one are compared here: the kernel itself, a low-rank kernel on a few basis points, and
cuts of a few sampled points. The first is exact and says so with two bounds that close in on the optimum; the others
end near it.

To run it by hand:

.. code-block:: text

    python examples/checkers.py                          shows the pictures
    python examples/checkers.py --points 2000 -o .       writes them to this folder
"""

import argparse
import time
import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm

parser = argparse.ArgumentParser(description="Compare ways to train with a kernel.")
parser.add_argument("--points", type=int, default=10_000, help="training points")
parser.add_argument("-o", "--output", help="folder to write the pictures to, in place of showing them")
arguments = parser.parse_args()

board = mm.datasets.make_checkers(arguments.points, random_state=0)
test = mm.datasets.make_checkers(20_000, random_state=1)

# %%
# Five methods
# ------------
#
# All minimise the same objective, ½‖w‖² + C Σ hinge losses, over the same kernel. Both exact methods stop at a duality
# gap of 0.1 %. The low-rank one looks for the best w that is spanned by 500 of the points, and sampled cuts end when no
# cut of some 400 points would change much: less work for each point, and no proof of how near the optimum is. (The gap
# that they report is loose by nature; the warning that says so is left out here.)

METHODS = {
    "exact, block-dual": {"solver": "block-dual"},
    "exact, one-slack": {"solver": "one-slack", "solver_options": {"stabilization": "line-search"}},
    "low rank, 500 points": {"kernel_approximation": "low-rank", "n_components": 500, "solver": "block-dual"},
    "sampled cuts, linear": {"solver": "sampled-cuts", "solver_options": {"strategy": "linear"}},
    "sampled cuts, constant": {"solver": "sampled-cuts", "solver_options": {"strategy": "constant"}},
}

trained, curves = {}, {}
print(f"{'':24s}{'CPU s':>7s}{'objective':>11s}{'bound':>9s}{'test error':>12s}{'basis points':>14s}")
for name, options in METHODS.items():
    svm = mm.BinarySVM(kernel="rbf", gamma=20.0, fit_intercept=False, random_state=0, **options)
    wall, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        trained[name] = svm.fit(board.X, board.y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # History counts seconds on the wall, which a busy machine stretches; this is one thread, so the share is the same.
    # It begins behind the features of a low-rank kernel, which are most of its work.
    records = [(cpu / wall * r["seconds"], r["primal"], r["dual"]) for r in svm.history_ if r["primal"] is not None]
    records = records or [(cpu, svm.certificate_.primal, svm.certificate_.dual)]
    curves[name] = np.array(records, dtype=float).T
    if name.startswith("low"):
        curves[name][0] += cpu - records[-1][0]
    # The bound of a low-rank kernel is that of its own problem and says nothing of this one.
    bound = "" if name.startswith("low") else f"{svm.certificate_.dual:.1f}"
    print(
        f"{name:24s}{cpu:7.2f}{svm.certificate_.primal:11.1f}{bound:>9s}"
        f"{1 - svm.score(test.X, test.y):12.2%}{svm.expansion_.size:14d}"
    )

# %%
# The decision surface
# --------------------
#
# Colours are the scores of the plane, the black line is where they change sign, dots are some of the training points.
# All three find the squares.

SHOWN = {"exact, block-dual": "exact", "low rank, 500 points": "low rank", "sampled cuts, linear": "sampled cuts"}


def draw_surface(axis, svm, title):
    """Draw the scores of the plane, their zero and some training points."""
    ticks = np.linspace(board.X.min() - 0.1, board.X.max() + 0.1, 200)
    plane = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    scores = svm.decision_function(plane).reshape(len(ticks), -1)
    axis.contourf(ticks, ticks, np.clip(scores, -2, 2), levels=np.linspace(-2, 2, 21), cmap="RdBu_r", alpha=0.7)
    axis.contour(ticks, ticks, scores, levels=[0.0], colors="black", linewidths=1.0)
    axis.scatter(*board.X[:1000].T, c=board.y[:1000], cmap="RdBu_r", s=2)
    axis.set(title=f"{title}: {svm.expansion_.size} basis points", aspect="equal", xticks=[], yticks=[])


figure, axes = plt.subplots(1, len(SHOWN), figsize=(12, 4.3), layout="constrained")
for axis, (name, title) in zip(axes, SHOWN.items(), strict=True):
    draw_surface(axis, trained[name], title)

# %%
# Convergence
# -----------
#
# On the left the two bounds of the exact methods: the objective at the best weights so far, and below it, dashed, what no
# weights can go below. On the right how far above the optimum the objective of each method is, as far as the best bound
# knows it; where a curve ends, the method stopped. Seconds are CPU seconds of one thread.

optimum = max(svm.certificate_.dual for name, svm in trained.items() if name.startswith("exact"))
figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.8), layout="constrained")
for number, (name, (seconds, primal, dual)) in enumerate(curves.items()):
    look = {"color": f"C{number}", "marker": "."}
    if name.startswith("exact"):
        left.plot(seconds, np.minimum.accumulate(primal) / optimum, **look, label=name)
        left.plot(seconds, dual / optimum, **look, linestyle="--")
    right.plot(seconds, np.minimum.accumulate(primal) / optimum - 1, **look, label=name)
left.axhline(1.0, color="gray", linewidth=0.5)
left.set(xlabel="CPU seconds", ylabel="bounds / optimum", ylim=(0.5, 1.5), title="two bounds of exact methods")
right.set(xlabel="CPU seconds", ylabel="objective / optimum − 1", xscale="log", yscale="log", title="all methods")
for axis in (left, right):
    axis.legend()

# %%
# The pictures are shown, or written where a folder was named.

if arguments.output:
    for number in plt.get_fignums():
        plt.figure(number).savefig(f"{arguments.output}/checkers_{number}.png", dpi=90)
else:
    plt.show()
