"""What training returns: the weights, how close to optimal they are, and how they were found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxmargin.kernels.expansion import Expansion


@dataclass(frozen=True)
class Certificate:
    """How close to optimal the returned weights are.

    The optimum of the training problem lies between ``dual`` and ``primal``; both are computed exactly in double
    precision, the primal by a full pass over the data at the returned weights.

    Attributes
    ----------
    primal : float or None
        The objective at the returned weights; None for solvers that minimise none (``perceptron``, ``mira``), after
        ``partial_fit``, which evaluates none, and where training ended before the first evaluation.
    dual : float or None
        A lower bound of the optimum; None for solvers without a dual.
    oracle_calls : int
        How many times the best output of an example was searched for. Of a pass that an interrupt broke off those searches of a
        model in Python count that were begun, or whose answers arrived where other processes make them.
    exact : bool
        False if an oracle was found to return outputs that are not maximal, if training was interrupted before its last
        primal was verified in double precision, or if only a sample was looked at: ``primal`` is then an estimate.
    converged : bool
        Whether the stopping rule was met (rather than max_iter, max_time or an interrupt).
    message : str
        Why training stopped.
    oracle_exact : bool
        False if an oracle was found to return outputs that are not maximal: which of the reasons ``exact`` has.
    primal_interval : (float, float) or None
        Where ``primal`` was estimated from a sample of the examples (``sampled-cuts``), the interval that holds the true value
        with a confidence of 95 %; ``exact`` is False then.
    dual_of : str
        What ``dual`` is a lower bound of, where it is not the training problem itself: with a low-rank kernel, the problem of
        the projected kernel. Its optimum is no lower than that of the kernel, whose objective at the returned weights
        ``primal`` is.

    Examples
    --------
    >>> import maxmargin as mm
    >>> print(mm.Certificate(primal=2.0, dual=1.99, oracle_calls=50, message="the stopping rule was met"))
    primal 2, dual 1.99, gap 0.01 (5.00e-03 of the primal), 50 oracle calls, exact, converged: the stopping rule was met
    """

    primal: float | None
    dual: float | None
    oracle_calls: int
    exact: bool = True
    converged: bool = True
    message: str = ""
    oracle_exact: bool = True
    primal_interval: tuple[float, float] | None = None
    dual_of: str = ""

    @property
    def gap(self) -> float | None:
        """Primal − dual."""
        return None if self.dual is None or self.primal is None else self.primal - self.dual

    @property
    def relative_gap(self) -> float | None:
        """(Primal − dual) / primal; 0 for a primal of 0."""
        if self.gap is None:
            return None
        return self.gap / self.primal if self.primal else 0.0

    def __str__(self) -> str:
        unknown = "no objective, " if self.exact else "primal not known, "
        bounds = unknown if self.primal is None else f"primal {self.primal:.8g}, "
        if self.dual is None:
            bounds += "no dual"
        elif self.gap is None:
            bounds += f"dual {self.dual:.8g}"
        else:
            bounds += f"dual {self.dual:.8g}, gap {self.gap:.3g} ({self.relative_gap:.2e} of the primal)"
        if self.dual is not None and self.dual_of:
            bounds += f", dual of {self.dual_of}"
        quality = "exact" if self.exact else "oracle inexact" if not self.oracle_exact else "not verified"
        if self.primal_interval is not None:
            low, high = self.primal_interval
            quality = f"primal estimated from a sample, between {low:.4g} and {high:.4g} with 95 % confidence"
        end = "converged" if self.converged else "not converged"
        reason = f": {self.message}" if self.message else ""
        return f"{bounds}, {self.oracle_calls} oracle calls, {quality}, {end}{reason}"


@dataclass(eq=False)
class Solution:
    """Trained weights with their certificate.

    Attributes
    ----------
    w : ndarray
        The weights, in the model's own layout (``model.blocks(w)`` names the parts of a built-in model's).
    certificate : Certificate
        Primal, dual and gap at ``w``.
    history : list of dict
        One record per iteration: ``seconds``, ``primal`` and ``dual`` (the best so far), ``gap``, ``relative_gap``,
        ``oracle_calls``, ``planes``, and what the solver adds. ``pandas.DataFrame(history)`` makes a table of it.
    solver : str
        The name of the solver that was used.
    planes : object or None
        What :func:`maxmargin.train` needs to go on from here under another C, kept with ``keep_planes=True``; None
        for solvers that have none to keep (those that :func:`maxmargin.path` refuses), and where there is nothing to continue
        from: after an interrupt, or with ``"line-search"`` where no output is ever better than the truth.
    expansion : Expansion or None
        With a kernel, the same as a sum over basis points, which the model's ``predict`` takes in place of ``w``.
    """

    w: NDArray[np.float64]
    certificate: Certificate
    history: list[dict[str, Any]]
    solver: str
    planes: Any = field(default=None, repr=False)
    expansion: Expansion | None = field(default=None, repr=False)
