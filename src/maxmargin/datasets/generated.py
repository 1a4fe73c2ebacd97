"""Points drawn at random: the checkerboard."""

import numpy as np

from maxmargin._parameters import generator, is_integer, is_number
from maxmargin.datasets.tables import Table

# More squares than this would leave a point too few bits for its place within a square.
MAX_SQUARES = 2**20


def make_checkers(
    n_samples: int,
    *,
    n_squares: int = 4,
    noise: float = 0.02,
    random_state: int | np.random.Generator | None = None,
) -> Table:
    """Draw points on a checkerboard, each with the colour of its square.

    The board has `n_squares` by `n_squares` squares of side 1 around the origin.  A point is uniform on the
    board, takes the class of its square and is then moved by a normal step in each coordinate:

        x = u + noise · z,    y = class of the square of u,    u uniform,    z standard normal

    The defaults follow the data named Checkers in [1]_: 1,000,000 points on a 4x4 board, for a Gaussian
    kernel with σ² = 0.05.  That paper draws them with another toolbox at "noise level parameter sigma" 0.02 and
    says neither what sigma does nor how large the board is; a step of that size and squares of side 1 are our
    reading.

    Parameters
    ----------
    n_samples : int
        How many points, at least 1.
    n_squares : int, default 4
        Squares along a side of the board, at least 2.
    noise : float, default 0.02
        Standard deviation of the step, in sides of a square; at most `n_squares`.  Labels are never flipped, but
        small steps carry a share of about 4p(1 − 1/n_squares) of the points, p = noise/√(2π), into a square of
        the other class: 2.4 % with the defaults.  A few points end outside the board.
    random_state : int, Generator or None
        Seed; None is 0, so that results repeat.

    Returns
    -------
    Table
        ``X`` of shape (n_samples, 2) and ``y`` of −1 and 1; the square at the lower left is −1.

    References
    ----------
    .. [1] C.-N. Yu and T. Joachims, "Training structural SVMs with kernels using sampled cuts", KDD 2008,
       section 6.1.

    Examples
    --------
    >>> from maxmargin.datasets import make_checkers
    >>> data = make_checkers(1000, noise=0.0, random_state=1)
    >>> data.X.shape, sorted(set(data.y.tolist()))
    ((1000, 2), [-1, 1])
    >>> lower_left = (data.X < -1.0).all(axis=1)
    >>> set(data.y[lower_left].tolist())
    {-1}
    """
    if not is_integer(n_samples, 1):
        raise ValueError(f"n_samples must be an integer ≥ 1, found {n_samples!r}.")
    if not is_integer(n_squares, 2) or n_squares > MAX_SQUARES:
        raise ValueError(f"n_squares must be an integer from 2 to {MAX_SQUARES}, found {n_squares!r}.")
    if not is_number(noise) or not 0 <= noise <= n_squares:
        raise ValueError(f"noise must be a number from 0 to n_squares = {n_squares}, found {noise!r}.")
    rng = generator(random_state)
    squares = rng.integers(n_squares, size=(n_samples, 2))
    X = rng.random((n_samples, 2))
    X += squares
    X -= n_squares / 2
    # Drawn also without noise, so that the same seed gives the same board with any noise.
    X += noise * rng.standard_normal((n_samples, 2))
    return Table(X, 2 * (squares.sum(axis=1) % 2) - 1)
