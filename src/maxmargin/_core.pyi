"""
The compiled core of maxmargin. Private: use the package's public names.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, overload

import numpy
from numpy.typing import NDArray


class OutOfTime(BaseException):
    """Long work was broken off at a Deadline."""

def poll() -> None:
    """
    Raise what is due between two steps of long work in Python: KeyboardInterrupt, or OutOfTime.
    """

class Deadline:
    def __init__(self, seconds: float | None) -> None: ...

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: object, traceback: object, /) -> None: ...

class QPResult:
    """What one solve of a BudgetQP reached."""

    @property
    def gap(self) -> float:
        """Duality gap of the QP, in units of its objective."""

    @property
    def dual(self) -> float: ...

    @property
    def steps(self) -> int: ...

class BudgetQP:
    """
    The dual of the 1-slack problem over the cuts found so far.

        max  Σ α_k c_k − ½‖Σ α_k g_k + Σ μ_j e_j‖²    subject to  α ≥ 0, Σ α_k ≤ budget, μ ≥ 0

    over the products g_k·g_l alone; the μ_j keep chosen coordinates of w non-negative. Arrays returned are copies.
    """

    def __init__(self, budget: float, n_nonnegative: int = 0) -> None: ...

    def __len__(self) -> int: ...

    def add(self, c: float, gram_row: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], at_nonnegative: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        Append a plane with α = 0: its products with the planes held, its square last, and its entries at the non-negative coordinates.
        """

    def remove(self, indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Drop the planes with these ascending indices."""

    def solve(self, tolerance: float, max_steps: int = 1000000) -> QPResult:
        """Ascend from the present α until the gap is at most `tolerance`."""

    @property
    def budget(self) -> float:
        """A smaller one scales α down to fit."""

    @budget.setter
    def budget(self, arg: float, /) -> None: ...

    @property
    def alpha(self) -> NDArray[numpy.float64]:
        """Setting it starts the next solve there: any α ≥ 0 with Σα ≤ budget."""

    @alpha.setter
    def alpha(self, arg: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], /) -> None: ...

    @property
    def mu(self) -> NDArray[numpy.float64]: ...

    @property
    def values(self) -> NDArray[numpy.float64]:
        """F_k = c_k − w·g_k for each plane."""

    @property
    def gram(self) -> NDArray[numpy.float64]:
        """Products of all planes with each other."""

    @property
    def slack(self) -> float:
        """ξ = max(0, max F_k)."""

    @property
    def dual(self) -> float: ...

    @property
    def gap(self) -> float: ...

def parse_sparse_text(text: bytes, name: str, dialect: str, n_features: int = 2147483647, drop_extra_features: bool = False) -> tuple[Any, ...]:
    """
    Targets, qids, indptr, indices and values of svmlight or SVM-hmm text; name stands in messages.
    """

@overload
def format_sparse_text(targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], qids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes: ...

@overload
def format_sparse_text(targets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], qids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> bytes:
    """
    Rows in compressed form as svmlight text with one-based features; qids may be empty.
    """

class Features:
    @overload
    def __init__(self, indptr: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values32: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, values64: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_features: int) -> None: ...

    @overload
    def __init__(self, dense: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

    @overload
    def __init__(self, dense: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)]) -> None: ...

class Structure:
    @property
    def n_examples(self) -> int: ...

class Binary(Structure):
    def __init__(self, n: int, truth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cost_of_negative: float = 1.0, cost_of_positive: float = 1.0) -> None: ...

class Multiclass(Structure):
    def __init__(self, n: int, n_labels: int, truth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None) -> None: ...

class Chain(Structure):
    def __init__(self, offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_labels: int, has_ends: bool, truth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, forbidden: Annotated[NDArray[numpy.uint8], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, row_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, loss_step: float = 0.0) -> None: ...

class Graph(Structure):
    def __init__(self, node_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], edge_features: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], n_labels: int, candidates: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pair_rows: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, pair_column: Annotated[NDArray[numpy.int32], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, pair_coefficient: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, n_pair_columns: int, types: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_types: int, truth: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, cost: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None, node_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, inference: str, max_iter: int, max_seconds: float | None) -> None: ...

    def take_open(self) -> int: ...

    def limit_passes(self, most: int) -> None: ...

    def searches_by_method(self) -> dict[str, int]: ...

    def enumerated(self) -> NDArray[numpy.int64]: ...

    @property
    def most_enumerated(self) -> int: ...

    def shortfalls(self) -> NDArray[numpy.float64]: ...

def instruction_set() -> str: ...

def instruction_sets() -> list[str]: ...

def use_instruction_set(name: str) -> None: ...

def padded_labels(n_labels: int) -> int: ...

class PlaneBatch:
    def __init__(self) -> None: ...

    @staticmethod
    def from_arrays(examples: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], losses: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], alpha: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PlaneBatch: ...

    def __len__(self) -> int: ...

    def add_vector(self, example: int, loss: float, indices: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def take(self, other: PlaneBatch, places: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def extend(self, other: PlaneBatch) -> None: ...

    def examples(self) -> NDArray[numpy.int32]: ...

    def losses(self) -> NDArray[numpy.float64]: ...

    def alpha(self) -> NDArray[numpy.float64]: ...

    def values(self) -> NDArray[numpy.float64] | None: ...

    def codes(self) -> NDArray[numpy.int32]: ...

    def offsets(self) -> NDArray[numpy.int64]: ...

    def code(self, arg: int, /) -> NDArray[numpy.int32]: ...

class PlaneSpace:
    @property
    def n_examples(self) -> int: ...

    @property
    def n_weights(self) -> int: ...

    @property
    def has_components(self) -> bool: ...

    @property
    def rescales_slacks(self) -> bool: ...

    def dots(self, batch: PlaneBatch, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> NDArray[numpy.float64]: ...

    def add(self, batch: PlaneBatch, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def vectors(self, batch: PlaneBatch) -> NDArray[numpy.float64]: ...

    def inner(self, batch: PlaneBatch, i: int, j: int) -> float: ...

class VectorSpace(PlaneSpace):
    def __init__(self, n_examples: int, n_weights: int, rescaling: str) -> None: ...

class LinearSpace(PlaneSpace):
    def __init__(self, features: Features, structure: Structure, rescaling: str) -> None: ...

    @property
    def stride(self) -> int: ...

    @property
    def has_row_labels(self) -> bool: ...

    @property
    def n_rows(self) -> int: ...

    @property
    def decoding_work(self) -> float: ...

    def separate(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> PlaneBatch: ...

    def separate_and_sum(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> tuple[Any, ...]: ...

    def predict(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> NDArray[numpy.int32]: ...

    @property
    def n_products(self) -> int: ...

    @property
    def has_line(self) -> bool: ...

    def max_marginals(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> NDArray[numpy.float64]: ...

    def k_best(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int, n_threads: int) -> tuple[Any, ...]: ...

    @property
    def has_places(self) -> bool: ...

    def variants(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], source: str, strengths: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], seed: int, n_threads: int) -> tuple[Any, ...]: ...

    def add_changes(self, before: PlaneBatch, after: PlaneBatch, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, total: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

    def diverse(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], strengths: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> tuple[Any, ...]: ...

class Oracle:
    def search(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> PlaneBatch: ...

class LinearOracle(Oracle):
    def __init__(self, space: LinearSpace, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, plain: bool, n_threads: int) -> None: ...

class FoundPlanes(Oracle):
    def __init__(self, space: PlaneSpace, planes: PlaneBatch) -> None: ...

class CallbackOracle(Oracle):
    def __init__(self, search: Callable[[Annotated[NDArray[numpy.int64], dict(shape=(None,))], float], PlaneBatch]) -> None: ...

class KBestOracle(Oracle):
    def __init__(self, space: LinearSpace, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], k: int) -> None: ...

class ScoreLine:
    def __init__(self, space: LinearSpace) -> None: ...

    def evaluate(self, weights: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    def move_anchor(self, t: float) -> None: ...

    def slope(self, t: float, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> float: ...

    def cut(self, t: float, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> tuple[Any, ...]: ...

def order_alike(rows: Features, codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> NDArray[numpy.int64]: ...

class KernelProduct:
    def __init__(self, rows: Features, points: Features | None, kernel: str, gamma: float, coef0: float, degree: int, centre: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, is_single: bool, cache_bytes: float, codes: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, distances2: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)] | None = None, negligible: float = 0.0) -> None: ...

    def add(self, points: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], starts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], labels: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], stride: int, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], n_threads: int) -> None: ...

    def matrix(self, points: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: int, end: int, n_threads: int) -> object: ...

    @property
    def leaves_out(self) -> bool: ...

    @property
    def n_computed(self) -> int: ...

class RowColumns:
    pass

def kernel_columns(product: KernelProduct, diagonal: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], constant: float, n_threads: int) -> RowColumns: ...

@overload
def stored_columns(matrix: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu', writable=False)], constant: float, n_threads: int) -> RowColumns: ...

@overload
def stored_columns(matrix: Annotated[NDArray[numpy.float32], dict(shape=(None, None), order='C', device='cpu', writable=False)], constant: float, n_threads: int) -> RowColumns: ...

class KernelSpace(LinearSpace):
    def __init__(self, rows: LinearSpace, columns: RowColumns) -> None: ...

class ProximalPoint:
    @property
    def value(self) -> float: ...

    @property
    def cost(self) -> float: ...

    @property
    def linear(self) -> float: ...

    @property
    def n_free(self) -> int: ...

class ProximalStep:
    @property
    def n_weights(self) -> int: ...

    @property
    def n_blocks(self) -> int: ...

    @property
    def most_rows(self) -> int: ...

    def move(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sigma: float, sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> ProximalPoint: ...

    def write_curvature(self, first_block: int, rows: Annotated[NDArray[numpy.float64], dict(shape=(None, None), order='C', device='cpu')]) -> tuple[int, int]: ...

    def multiply_curvature(self, vector: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def accept(self) -> None: ...

    def take(self) -> None: ...

    def scale(self) -> float: ...

def dot_float(a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

@overload
def mix(a: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], t: float) -> None: ...

@overload
def mix(a: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], b: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], t: float) -> None: ...

class CutSet:
    def __init__(self, n_weights: int) -> None: ...

    def __len__(self) -> int: ...

    def copy(self) -> CutSet: ...

    def assemble(self, space: PlaneSpace, planes: PlaneBatch, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

    def load(self, loss: float, sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def pending_loss(self) -> float: ...

    def pending_dot(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> float: ...

    def add_pending(self, a: float, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def pending_at(self, indices: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

    def keep(self, n_threads: int) -> NDArray[numpy.float64]: ...

    def add(self, coefficients: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, n_threads: int) -> float: ...

    def remove(self, cuts: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

class PlaneCache:
    def __init__(self, space: PlaneSpace, capacity: int, keeps_vectors: bool = False) -> None: ...

    @property
    def keeps_vectors(self) -> bool: ...

    @property
    def n_planes(self) -> int: ...

    def planes(self) -> PlaneBatch: ...

    def improve(self, found: PlaneBatch, searched: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]: ...

    def insert(self, planes: PlaneBatch) -> None: ...

    def evaluate(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> None: ...

    def evaluate_anchor(self, anchor: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)], n_threads: int) -> None: ...

    def drop_unused(self, age: int) -> None: ...

    def move_anchor(self, t: float) -> None: ...

    def best(self, t: float = 1.0) -> PlaneBatch: ...

    def add_best(self, t: float, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, sum: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

    def slope(self, t: float, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> float: ...

class Rule:
    def __init__(self, step: str, *, insert_above: float = 0.0, solve_above: float = 0.0, solve_to: float = 0.0, max_planes: int = 1073741824, drops_empty: bool = False, seed: int = 0, searches: bool = True, search_work: float = 0.0, search_batch: int = 1, patience: int | None = None, relaxation: float = 1.0) -> None: ...

class Sweep:
    @property
    def gap(self) -> float: ...

    @property
    def passed_over(self) -> float: ...

    @property
    def gain(self) -> float: ...

    @property
    def violation(self) -> float: ...

    @property
    def steps(self) -> int: ...

    @property
    def added(self) -> int: ...

    @property
    def dropped(self) -> int: ...

    @property
    def visits(self) -> int: ...

    @property
    def work(self) -> float: ...

    @property
    def moves(self) -> int: ...

    @property
    def moved(self) -> NDArray[numpy.int64]: ...

class WorkingSets:
    def __init__(self, space: PlaneSpace, budgets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], squared: bool, nonnegative: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], by_components: bool = False) -> None: ...

    @property
    def n_planes(self) -> int: ...

    @property
    def n_blocks(self) -> int: ...

    def planes(self) -> PlaneBatch: ...

    @property
    def n_active(self) -> int: ...

    def carriers(self) -> NDArray[numpy.int64]: ...

    def insert(self, planes: PlaneBatch, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], epsilon: float) -> int: ...

    def start(self, planes: PlaneBatch, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def sweep(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], rule: Rule, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None, n_threads: int = 1) -> Sweep: ...

    def visit(self, oracle: Oracle, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], batch_size: int, rule: Rule, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None, n_threads: int = 1) -> Sweep: ...

    def together(self) -> ProximalStep: ...

    def slacks(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

    def exceeding(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int64]: ...

    def rescale(self, budgets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> float: ...

    def linear_part(self) -> float: ...

    def weights(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def sum(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def coefficients(self, out: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def prune(self, prune_after: int) -> int: ...

class RowSweep:
    @property
    def gap(self) -> float: ...

    @property
    def gain(self) -> float: ...

    @property
    def visits(self) -> int: ...

    @property
    def moves(self) -> int: ...

class RowBlocks:
    def __init__(self, space: LinearSpace, budgets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], squared: bool, columns: RowColumns | None = None) -> None: ...

    @property
    def n_active(self) -> int: ...

    @property
    def n_planes(self) -> int: ...

    def evaluate(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_threads: int) -> float: ...

    def activate(self, tolerance: float) -> None: ...

    def sweep(self, tolerance: float, seed: int, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None = None, enough: float = 0.0) -> RowSweep: ...

    def rescale(self, ratio: float, norm2: float) -> float: ...

    def linear_part(self) -> float: ...

    def weights(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def start(self, planes: PlaneBatch, all_alike: bool) -> bool: ...

    def together(self) -> ProximalStep: ...

    def planes(self) -> PlaneBatch: ...

class DualChoice:
    def __init__(self, space: PlaneSpace, outputs: Sequence[PlaneBatch], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None) -> None: ...

    def choose(self, C: float, linear: float, start: int, n_sweeps: int) -> NDArray[numpy.int64]: ...

class FrankWolfePass:
    @property
    def gap(self) -> float: ...

    @property
    def moves(self) -> int: ...

class FrankWolfe:
    def __init__(self, space: PlaneSpace, budgets: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], nonnegative: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], averages: bool = True, max_planes: int = 0) -> None: ...

    def start_from(self, other: FrankWolfe, factor: float) -> None: ...

    def weights(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def average(self, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> None: ...

    def loss(self) -> float: ...

    def average_loss(self) -> float: ...

    def worth(self, ids: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.float64]: ...

    @property
    def n_steps(self) -> int: ...

    @property
    def n_entries(self) -> int: ...

    @property
    def n_planes(self) -> int: ...

    def visit(self, oracle: Oracle, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], batch_size: int, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> FrankWolfePass: ...

    def visit_by_gaps(self, oracle: Oracle, uniforms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], batch_size: int, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> FrankWolfePass: ...

    def draw(self, uniforms: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int64]: ...

    def gaps(self) -> NDArray[numpy.float64]: ...

    @property
    def total_gap(self) -> float: ...

class SeenByPass:
    @property
    def updates(self) -> int: ...

    @property
    def loss(self) -> float: ...

class OnlinePass:
    def __init__(self, space: PlaneSpace, weights: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')], rounded: Annotated[NDArray[numpy.float32], dict(shape=(None,), order='C', device='cpu')] | None, sample_weight: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, visits: int, nonnegative: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    @property
    def visits(self) -> int: ...

    def perceptron(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], oracle: Oracle, late: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> SeenByPass: ...

    def mira(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], oracle: Oracle, C: float, late: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu')]) -> SeenByPass: ...

    def sgd(self, order: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], oracle: Oracle, eta0: float, decay: float, nC: float) -> SeenByPass: ...

    def fold(self) -> None: ...

class TreeReweightedResult:
    """What one run of TreeReweighted reached: score ≤ best score ≤ bound."""

    @property
    def labels(self) -> NDArray[numpy.int32]:
        """The best labelling seen."""

    @property
    def score(self) -> float:
        """Of the labels."""

    @property
    def bound(self) -> float: ...

    @property
    def is_closed(self) -> bool:
        """Score and bound agree up to the tolerances."""

    @property
    def status(self) -> str:
        """'closed', 'stalled', 'max_iter', 'max_seconds' or 'below_floor'."""

    @property
    def n_iter(self) -> int: ...

    @property
    def bounds(self) -> NDArray[numpy.float64]:
        """After each iteration."""

class TreeReweighted:
    """
    Sequential tree-reweighted message passing (TRW-S) on one graph.

        max_y  Σ_i unary_i(y_i) + Σ_e pair_e(y_first(e), y_second(e))

    Node i has label_offsets[i + 1] − label_offsets[i] labels. Messages are kept between runs: set other scores and run again for a warm start.
    """

    def __init__(self, label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], order: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None: ...

    def set_unary(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Scores of the labels of all nodes, one node after the other; copied."""

    def set_pairs(self, pair_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], table_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        Tables (labels of first × labels of second, row by row) that begin at table_offsets, or without these one score per edge for equal labels. The values are not copied.
        """

    def reset_messages(self) -> None:
        """Forget the messages: the next run starts cold."""

    def run(self, max_iter: int = 1000, relative_tolerance: float = 1e-09, absolute_tolerance: float = 1e-09, stall: float = 0.001, max_seconds: float | None = None, floor: float | None = None) -> TreeReweightedResult:
        """
        Iterate until bound − score ≤ absolute_tolerance · min(1, the largest score) + relative_tolerance · max(|bound|, |score|), or ten iterations lowered the bound by less than stall · (bound − score), or time is up, or the bound is not above the floor; at least one iteration is made.
        """

    def bound_max_marginals(self) -> NDArray[numpy.float64]:
        """
        For each label of each node a number that no labelling with it scores more than, by one more iteration.
        """

def best_in_forest(label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], table_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> tuple[Any, ...]:
    """
    The best labelling of a graph without cycles, and its score. Parallel edges make no cycle.
    """

def best_by_enumeration(label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], table_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> tuple[Any, ...]:
    """
    The best labelling of a small graph, and its score: 24 nodes of two labels are the most.
    """

def m_best_labellings(label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], pair_values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], table_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, n_best: int, method: str = 'auto', max_iter: int = 1000, relative_tolerance: float = 1e-09, absolute_tolerance: float = 1e-09, stall: float = 0.001, max_seconds: float | None = None) -> tuple[Any, ...]:
    """
    The n_best labellings, best first (fewer where there are no more), their scores, and whether every search was exact. The options are those of TreeReweighted.run, per search.
    """

class MaxFlow:
    """
    The largest flow from a source to a sink and the smallest cut between them.

    Capacities may be changed after a solve, upwards or downwards; the next one starts from the flow found before.
    """

    def __init__(self, n_nodes: int, first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def set_terminals(self, source: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], sink: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Capacities of every node, from the source and to the sink."""

    def set_edges(self, forward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], backward: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Capacities of every edge, from first to second and back."""

    def forget_flow(self) -> None:
        """Let the next solve start without a flow."""

    def solve(self) -> tuple[Any, ...]:
        """
        Return the value of the flow, and for each node whether it is on the source's side of the cut: whether residual arcs lead there from the source.
        """

    def cut_value(self) -> float:
        """
        The value at the present capacities of the cut that the last solve found.
        """

class GraphCut:
    """
    The best labelling of a graph with one or two labels at each node whose edges like equal labels.

    Scores may be changed after a solve; the next one starts from the flow found before.
    """

    def __init__(self, label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None: ...

    def set_unary_scores(self, unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> None:
        """Scores of all labels, node after node."""

    def set_pair_scores(self, values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None) -> None:
        """
        A table of each edge, at values[offsets[e]:], or without offsets what equal labels score.
        """

    def forget_flow(self) -> None:
        """Let the next solve start without a flow."""

    def solve(self) -> tuple[Any, ...]:
        """
        Return the best labels and their score; of equally good labellings the one with the fewest ones.
        """

def expand(label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, start: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)] | None = None, max_rounds: int = 1000) -> tuple[Any, ...]:
    """
    Return a good labelling by alpha-expansion, its score, the number of moves taken and of rounds.

    Starts at the labels given, or at each node's best; ends when a whole round of moves changes nothing.
    """

def mix_labels(label_offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)], first: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], second: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], unary: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], values: Annotated[NDArray[numpy.float64], dict(shape=(None,), order='C', device='cpu', writable=False)], offsets: Annotated[NDArray[numpy.int64], dict(shape=(None,), order='C', device='cpu', writable=False)] | None, kept: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)], offered: Annotated[NDArray[numpy.int32], dict(shape=(None,), order='C', device='cpu', writable=False)]) -> NDArray[numpy.int32]:
    """
    Return a good mix of two labellings: at each node the label kept or the one offered.

    The best one where no edge scores more by its two mixed pairs of labels than by both kept and both offered; never worse than the labels kept.
    """
