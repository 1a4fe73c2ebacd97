"""The reference every solver is checked against: all outputs, one QP with all constraints.

    min_{w, ξ}  ½‖w‖² + Σ_i C_i ξ_i      (squared hinge: Σ_i C_i ξ_i²),      C_i = C s_i
    subject to  ξ_i ≥ Δ_i(ȳ) − w·ψ_i(ȳ)  for every example i and every output ȳ,   ξ ≥ 0,   w_j ≥ 0 for j in J

Nothing here comes from the library: feature maps, losses and enumeration are written out in plain Python,
and the quadratic program is PIQP's.  Its answer is not believed but measured: the objective is evaluated
again by enumeration, and its multipliers, made feasible, give a dual value that the optimum cannot be below
(up to rounding).  Exponential in the size of an output; meant for a handful of short examples.

The models are in reference_models.py, random problems for them in random_problems.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import piqp
from reference_models import Model

Rescaling = Literal["margin", "slack"]
Loss = Literal["hinge", "squared_hinge"]


class Plane(NamedTuple):
    """One constraint of one example: its value at w is ``loss − w·psi``."""

    loss: float
    psi: np.ndarray


Planes = list[list[Plane]]


# ------------------------------------------------------------------------------------ planes and primal


def planes(model: Model, rescaling: Rescaling = "margin") -> Planes:
    """All planes (Δ, ψ) of every example, in the order of ``model.outputs(i)``.

    ψ = Ψ(x_i, y_i) − Ψ(x_i, ȳ) for margin rescaling, Δ times that for slack rescaling.
    """
    if rescaling not in ("margin", "slack"):
        raise ValueError(f"rescaling is {rescaling!r}; expected 'margin' or 'slack'.")
    result = []
    for i in range(model.n_examples):
        psi_truth = model.psi(i, model.truth(i))
        planes_of_example = []
        for y in model.outputs(i):
            loss, difference = model.loss(i, y), psi_truth - model.psi(i, y)
            planes_of_example.append(Plane(loss, loss * difference if rescaling == "slack" else difference))
        result.append(planes_of_example)
    return result


def slacks(w: np.ndarray, planes: Planes) -> np.ndarray:
    """H_i(w) of every example, whatever its weight: the largest value of its planes, at least 0."""
    return np.array([max(0.0, *(plane.loss - float(w @ plane.psi) for plane in own)) for own in planes])


def primal(
    w: np.ndarray,
    planes: Planes,
    C: float,
    sample_weight: np.ndarray | None = None,
    loss: Loss = "hinge",
) -> float:
    """P(w) = ½‖w‖² + Σ C_i H_i(w), or with H_i(w)², by enumeration."""
    capacities = _capacities(planes, C, sample_weight)
    return 0.5 * float(w @ w) + float(capacities @ slacks(w, planes) ** _power(loss))


def _capacities(planes: Planes, C: float, sample_weight: np.ndarray | None) -> np.ndarray:
    """C_i = C s_i."""
    weight = np.ones(len(planes)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    if weight.shape != (len(planes),):
        raise ValueError(f"sample_weight has shape {weight.shape} but there are {len(planes)} examples.")
    if not C > 0 or not np.all(weight >= 0):
        raise ValueError("C must be positive and sample_weight must not be negative.")
    return C * weight


def _power(loss: Loss) -> int:
    powers = {"hinge": 1, "squared_hinge": 2}
    if loss not in powers:
        raise ValueError(f"loss is {loss!r}; expected 'hinge' or 'squared_hinge'.")
    return powers[loss]


# ------------------------------------------------------------------------------------------- the solver


@dataclass(frozen=True)
class Reference:
    """The optimum of a small problem: ``lower_bound ≤ optimum ≤ objective``.

    Attributes
    ----------
    w : the weights; exactly non-negative where that was asked
    objective : P(w) by enumeration
    slacks : H_i(w) of all examples, those of weight 0 included
    lower_bound : dual value of a feasible point, so no w has a smaller P than this (up to rounding)
    """

    w: np.ndarray
    objective: float
    slacks: np.ndarray
    lower_bound: float

    @property
    def relative_gap(self) -> float:
        """What is not known about the optimum, as a share of the objective."""
        return (self.objective - self.lower_bound) / self.objective if self.objective > 0 else 0.0

    @property
    def radius(self) -> float:
        """How far the optimal weights w* may be from w: ½‖w − w*‖² ≤ P(w) − P(w*), by strong convexity."""
        # Both values carry rounding, so a gap of exactly zero proves nothing.
        return float(np.sqrt(2.0 * max(self.objective - self.lower_bound, 1e-14 * self.objective)))


@dataclass(frozen=True)
class _Constraints:
    """The planes that constrain something, as one matrix: those of examples with C_i > 0, each once."""

    losses: np.ndarray
    psi: np.ndarray
    owner: np.ndarray
    capacities: np.ndarray

    @classmethod
    def collect(cls, planes: Planes, capacities: np.ndarray) -> "_Constraints":
        active = np.flatnonzero(capacities > 0)
        rows, owners = [], []
        for position, i in enumerate(active):
            own = np.unique([np.append(plane.loss, plane.psi) for plane in planes[i]], axis=0)
            own = own[np.any(own != 0, axis=1)]
            rows.append(own)
            owners.append(np.full(len(own), position))
        width = 1 + len(planes[0][0].psi)
        table = np.concatenate([np.empty((0, width)), *rows])
        owner = np.concatenate([np.empty(0, dtype=int), *owners])
        return cls(table[:, 0], table[:, 1:], owner, capacities[active])


def solve(
    planes: Planes,
    C: float,
    sample_weight: np.ndarray | None = None,
    loss: Loss = "hinge",
    nonnegative: Sequence[int] | None = None,
    tolerance: float = 1e-7,
) -> Reference:
    """The optimum over all planes, with a proof of how good it is.

    Parameters
    ----------
    planes : from ``planes(model, rescaling)``
    C : multiplies the sum of the slacks
    sample_weight : s_i ≥ 0, C_i = C s_i; None for ones
    loss : "hinge" or "squared_hinge"
    nonnegative : indices j with w_j ≥ 0
    tolerance : largest relative gap accepted

    Raises
    ------
    ArithmeticError
        if objective and lower bound differ by more than ``tolerance`` relative to the objective.
    """
    power = _power(loss)
    capacities = _capacities(planes, C, sample_weight)
    bounded = np.asarray([] if nonnegative is None else nonnegative, dtype=int)
    constraints = _Constraints.collect(planes, capacities)

    best = np.zeros(len(planes[0][0].psi))
    objective, lower_bound = primal(best, planes, C, sample_weight, loss), 0.0
    # PIQP's tolerances are absolute and the tightest may be out of reach: the scale follows the best
    # objective so far, and our own gap, not PIQP's status, decides when to stop.
    for epsilon in (1e-11, 1e-13, 1e-9):
        if objective - lower_bound <= 1e-11 * objective:
            break
        w, alpha = _quadratic_program(constraints, power, bounded, scale=objective, epsilon=epsilon)
        dual, w_of_alpha = _dual(constraints, power, bounded, alpha)
        lower_bound = max(lower_bound, dual)
        for candidate in (w, w_of_alpha):
            candidate[bounded] = np.maximum(candidate[bounded], 0.0)
            value = primal(candidate, planes, C, sample_weight, loss)
            if value < objective:
                best, objective = candidate, value

    result = Reference(best, objective, slacks(best, planes), lower_bound)
    if not abs(result.relative_gap) <= tolerance:
        raise ArithmeticError(f"the reference is not solved: {lower_bound} ≤ optimum ≤ {objective}.")
    return result


def _quadratic_program(
    constraints: _Constraints, power: int, bounded: np.ndarray, scale: float, epsilon: float
) -> tuple[np.ndarray, np.ndarray]:
    """w and the multipliers α of the planes, by PIQP.

    Solved in v = w/√s and ζ_i = ξ_i/r_i with r_i = (s/C_i)^(1/power), which divides the objective by s:

        min ½‖v‖² + Σ ζ_i^power    subject to  ζ_i + (√s/r_i) v·ψ ≥ Δ/r_i,   ζ ≥ 0,   v_J ≥ 0

    With z the multipliers of these rows, α = (s/r_i) z.
    """
    n_rows, n_weights = constraints.psi.shape
    n_slacks = len(constraints.capacities)
    unit = (scale / constraints.capacities) ** (1.0 / power)
    unit_of_row = unit[constraints.owner]

    P = np.diag(np.concatenate([np.ones(n_weights), np.full(n_slacks, 2.0 if power == 2 else 0.0)]))
    c = np.concatenate([np.zeros(n_weights), np.full(n_slacks, 1.0 if power == 1 else 0.0)])
    G = np.zeros((n_rows, n_weights + n_slacks))
    G[:, :n_weights] = constraints.psi * (np.sqrt(scale) / unit_of_row)[:, None]
    G[np.arange(n_rows), n_weights + constraints.owner] = 1.0
    lower = np.full(n_weights + n_slacks, -np.inf)
    lower[bounded] = 0.0
    lower[n_weights:] = 0.0

    solver = piqp.DenseSolver()
    settings = solver.settings
    settings.eps_abs = settings.eps_rel = epsilon
    settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = epsilon
    settings.iterative_refinement_always_enabled = True
    solver.setup(P, c, G=np.asfortranarray(G), h_l=constraints.losses / unit_of_row, x_l=lower)
    solver.solve()
    return np.sqrt(scale) * solver.result.x[:n_weights], solver.result.z_l * scale / unit_of_row


def _dual(constraints: _Constraints, power: int, bounded: np.ndarray, alpha: np.ndarray) -> tuple[float, np.ndarray]:
    """The dual value of α made feasible, and the w that belongs to it.

        hinge          D = Σ αΔ − ½‖w‖²,                            α ≥ 0,  Σ_ȳ α_i(ȳ) ≤ C_i
        squared hinge  D = Σ αΔ − ½‖w‖² − Σ_i (Σ_ȳ α_i(ȳ))² / 4C_i,  α ≥ 0

    with w = Σ αψ, then raised to 0 where w_j ≥ 0 is asked (the best multiplier of that bound).
    """
    alpha = np.maximum(np.nan_to_num(alpha), 0.0)
    mass = np.bincount(constraints.owner, alpha, minlength=len(constraints.capacities))
    penalty = 0.0
    if power == 1:
        shrink = constraints.capacities / np.maximum(mass, constraints.capacities)
        alpha = alpha * shrink[constraints.owner]
    else:
        penalty = float(np.sum(mass**2 / (4.0 * constraints.capacities)))
    w = alpha @ constraints.psi
    w[bounded] = np.maximum(w[bounded], 0.0)
    return float(alpha @ constraints.losses) - 0.5 * float(w @ w) - penalty, w
