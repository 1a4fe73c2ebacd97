"""A checkerboard learned with an RBF kernel: the decision surface, and how fast each method gets there.

python examples/checkers.py                        about a minute; writes checkers.png
python examples/checkers.py --rows 2000 -o a.png   seconds

Exact methods give bounds that close in on the optimum; sampled cuts and low-rank kernels end near it.
"""

import argparse
import time
import warnings

import matplotlib
import numpy as np

import maxmargin as mm

matplotlib.use("Agg")
import matplotlib.pyplot as plt

KERNEL = {"kernel": "rbf", "gamma": 20.0, "fit_intercept": False, "random_state": 0}
METHODS = {
    "exact, block-dual": {"solver": "block-dual"},
    "exact, one-slack": {"solver": "one-slack", "solver_options": {"stabilization": "line-search"}},
    "sampled cuts, linear": {"solver": "sampled-cuts", "solver_options": {"strategy": "linear"}},
    "sampled cuts, constant": {"solver": "sampled-cuts", "solver_options": {"strategy": "constant"}},
    "low rank, 250 points": {"kernel_approximation": "low-rank", "n_components": 250, "solver": "block-dual"},
}


def trained(board, test):
    """Yield each method's name, fitted estimator, seconds and test error."""
    for name, options in METHODS.items():
        svm = mm.BinarySVM(**KERNEL, **options)
        start = time.perf_counter()
        with warnings.catch_warnings():
            # The gap of sampled cuts is loose by nature.
            warnings.simplefilter("ignore")
            svm.fit(board.X, board.y)
        seconds = time.perf_counter() - start
        error = 100 * float(np.mean(svm.predict(test.X) != test.y))
        print(
            f"{name:24s} {seconds:6.1f} s  test error {error:.2f} %  {svm.expansion_.size:6d} basis points  {svm.certificate_}"
        )
        yield name, svm, seconds, error


def draw_surface(axis, svm, board):
    """Draw the scores of the plane, their zero and some training points."""
    ticks = np.linspace(board.X.min() - 0.1, board.X.max() + 0.1, 250)
    plane = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    scores = svm.decision_function(plane).reshape(len(ticks), -1)
    axis.contourf(ticks, ticks, np.clip(scores, -2, 2), levels=20, cmap="RdBu_r", alpha=0.7)
    axis.contour(ticks, ticks, scores, levels=[0.0], colors="black", linewidths=1.0)
    some = board.X[:1500]
    axis.scatter(*some.T, c=board.y[:1500], cmap="RdBu_r", s=3)
    axis.set(
        title=f"exact: {svm.expansion_.size} of {len(board.y)} points carry the surface",
        aspect="equal",
        xticks=[],
        yticks=[],
    )


def draw_convergence(axis, found):
    """Draw primal and dual of each method against time, relative to the best dual."""
    best = max(svm.certificate_.dual or 0.0 for name, svm, _, _ in found if name.startswith("exact"))
    for number, (name, svm, seconds, _) in enumerate(found):
        color = f"C{number}"
        records = [record for record in svm.history_ if record["primal"] is not None]
        if len(records) > 1 and not name.startswith("low"):
            times = [record["seconds"] for record in records]
            axis.plot(times, [record["primal"] / best for record in records], color=color, label=name)
            duals = [record["dual"] for record in records]
            if duals[0] is not None:
                axis.plot(times, [dual / best for dual in duals], color=color, linestyle="--")
        else:
            axis.plot([seconds], [svm.certificate_.primal / best], "o", color=color, label=f"{name} (at its end)")
    axis.axhline(1.0, color="gray", linewidth=0.5)
    axis.set(
        xscale="log",
        xlabel="seconds",
        ylabel="objective / optimum (dashed: dual)",
        ylim=(0.5, 2.0),
        title="convergence",
    )
    axis.legend(fontsize=7)


def main():
    """Train, draw, save."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000, help="training points")
    parser.add_argument("-o", "--output", default="checkers.png", help="the picture to write")
    arguments = parser.parse_args()
    board = mm.datasets.make_checkers(arguments.rows, random_state=0)
    test = mm.datasets.make_checkers(20_000, random_state=1)
    found = list(trained(board, test))
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6))
    draw_surface(left, found[0][1], board)
    draw_convergence(right, found)
    figure.tight_layout()
    figure.savefig(arguments.output, dpi=90)


if __name__ == "__main__":
    main()
