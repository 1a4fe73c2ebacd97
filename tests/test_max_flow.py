"""Maximum flow against SciPy, which shares no code with it, and minimum cuts against their definition and enumeration."""

import gc

import numpy as np
import pytest
from flow_problems import Capacities, all_labellings, flow_by_scipy, grid_edges, random_edges, solved
from test_core_calls import alarm_after

from maxmargin import _core

pytestmark = pytest.mark.core


def random_problem(rng, most_nodes, edges_per_node):
    n_nodes = int(rng.integers(0, most_nodes + 1))
    first, second = random_edges(rng, n_nodes, int(rng.integers(0, edges_per_node * n_nodes + 1)))
    return Capacities(rng, n_nodes, first, second)


def solve_and_check_cut(flow, capacities, unit=1.0):
    """The value of the flow, which is that of the cut found."""
    value, side = flow.solve()
    assert side.dtype == bool
    assert abs(value - capacities.cut_value(side) * unit) <= 1e-12 * value
    assert abs(value - flow.cut_value()) <= 1e-12 * value
    return value


# No cut is smaller than the smallest and no flow larger than the largest: equal sums mean equal values of all graphs.
@pytest.mark.parametrize("block", range(20))
def test_flows_and_cuts_are_those_of_scipy_cold_and_after_changes(block):
    rng = np.random.default_rng(block)
    problems = [random_problem(rng, most_nodes=12, edges_per_node=3) for _ in range(500)]
    flows = [solved(problem) for problem in problems]
    for _ in range(4):
        values = [solve_and_check_cut(flow, problem) for flow, problem in zip(flows, problems, strict=True)]
        assert sum(values) == flow_by_scipy(problems)
        for problem, flow in zip(problems, flows, strict=True):
            problem.change()
            problem.give(flow)


# Small changes are those after which forests are kept: sequences of them, on graphs with nodes that no edge joins.
@pytest.mark.parametrize("block", range(10))
def test_flows_and_cuts_are_those_of_scipy_after_sequences_of_small_changes(block):
    rng = np.random.default_rng([block, 1])
    problems = [random_problem(rng, most_nodes=16, edges_per_node=2) for _ in range(1000)]
    flows = [solved(problem) for problem in problems]
    for _ in range(8):
        values = [solve_and_check_cut(flow, problem) for flow, problem in zip(flows, problems, strict=True)]
        assert sum(values) == flow_by_scipy(problems)
        for problem, flow in zip(problems, flows, strict=True):
            for _ in range(rng.integers(1, 3)):
                problem.change_a_little()
                problem.give(flow)


# Capacities in small steps, so that every solve but the first can keep what the one before it left.
@pytest.mark.parametrize("strength", [1, 3, 10, 60])
def test_grids_of_any_strength_are_solved_after_sequences_of_small_changes(strength):
    rng = np.random.default_rng([strength, 1])
    capacities = Capacities(rng, 30 * 50, *grid_edges(30, 50), largest=100)
    capacities.forward *= strength
    capacities.backward *= strength
    flow = solved(capacities)
    for _ in range(40):
        value, side = flow.solve()
        cold_value, cold_side = solved(capacities).solve()
        assert value == cold_value == capacities.cut_value(side) == flow_by_scipy([capacities])
        assert np.array_equal(side, cold_side)
        capacities.change_a_little()
        capacities.give(flow)


@pytest.mark.parametrize("strength", [1, 3, 10, 60])
def test_grids_of_any_strength_are_solved_cold_and_warm(strength):
    rng = np.random.default_rng(strength)
    capacities = Capacities(rng, 40 * 60, *grid_edges(40, 60), largest=100)
    capacities.forward *= strength
    capacities.backward *= strength
    flow = solved(capacities)
    for _ in range(4):
        assert solve_and_check_cut(flow, capacities) == flow_by_scipy([capacities])
        capacities.change()
        capacities.give(flow)


@pytest.mark.parametrize("seed", range(5))
def test_large_sparse_graphs_are_solved_cold_and_warm(seed):
    rng = np.random.default_rng(seed)
    capacities = Capacities(rng, 2000, *random_edges(rng, 2000, 5000), largest=1000)
    flow = solved(capacities)
    for _ in range(4):
        assert solve_and_check_cut(flow, capacities) == flow_by_scipy([capacities])
        capacities.change()
        capacities.give(flow)


@pytest.mark.parametrize("unit", [1 / 3, 1e-30, 1e30, np.pi * 1e90])
def test_units_that_round_give_the_same_flow(unit):
    rng = np.random.default_rng(7)
    capacities = Capacities(rng, 20 * 20, *grid_edges(20, 20), largest=50)
    flow = solved(capacities, unit)
    for _ in range(6):
        value = solve_and_check_cut(flow, capacities, unit)
        assert value == pytest.approx(flow_by_scipy([capacities]) * unit, rel=1e-12)
        capacities.change()
        capacities.give(flow, unit)


def test_source_side_is_the_smallest_one_cold_and_warm():
    rng = np.random.default_rng(0)
    for _ in range(150):
        problem = random_problem(rng, most_nodes=6, edges_per_node=3)
        flow = solved(problem)
        for _ in range(3):
            _, side = flow.solve()
            sets = [labels.astype(bool) for labels in all_labellings([2] * problem.n_nodes)]
            values = np.array([problem.cut_value(a) for a in sets])
            smallest = np.logical_and.reduce(
                [a for a, value in zip(sets, values, strict=True) if value == values.min()]
            )
            assert np.array_equal(side, smallest)
            problem.change()
            problem.give(flow)


def test_nodes_that_no_terminal_reaches_are_on_the_side_of_the_sink():
    flow = _core.MaxFlow(4, np.array([0, 2], np.int32), np.array([1, 3], np.int32))
    flow.set_terminals(np.array([1.0, 0, 0, 0]), np.array([0, 0.0, 0, 0]))
    flow.set_edges(np.array([1.0, 1.0]), np.array([0.0, 0.0]))
    value, side = flow.solve()
    assert value == 0.0
    assert side.tolist() == [True, True, False, False]


def test_a_second_solve_changes_nothing():
    rng = np.random.default_rng(3)
    flow = solved(Capacities(rng, 900, *grid_edges(30, 30)))
    value, side = flow.solve()
    again, side_again = flow.solve()
    assert value == again
    assert np.array_equal(side, side_again)


# A flow of 10²⁰ rounds away everything below 10⁴: what is left of it must not spoil the next solve.
def test_capacities_may_shrink_by_twenty_orders_of_magnitude():
    rng = np.random.default_rng(4)
    capacities = Capacities(rng, 900, *grid_edges(30, 30))
    flow = solved(capacities, unit=1e20 / 3)
    flow.solve()
    capacities.change()
    capacities.give(flow)
    assert solve_and_check_cut(flow, capacities) == flow_by_scipy([capacities])


# The edges of a cut stay full as they widen, but not with more than nodes could carry without rounding.
@pytest.mark.parametrize("width", [5, 1e15, 1e20, 1e100])
def test_edges_may_open_to_any_width_and_close_again(width):
    rng = np.random.default_rng(10)
    for _ in range(30):
        capacities = Capacities(rng, 12 * 12, *grid_edges(12, 12), largest=4)
        narrow = capacities.forward.astype(float), capacities.backward.astype(float)
        flow = solved(capacities)
        for share in (0.1, 0.0, 0.1, 0.0):
            value, side = flow.solve()
            cold_value, cold_side = solved(capacities).solve()
            assert value == cold_value
            assert np.array_equal(side, cold_side)
            opened = rng.random((2, len(narrow[0]))) < share
            capacities.forward, capacities.backward = (
                np.where(o, width, n) for o, n in zip(opened, narrow, strict=True)
            )
            capacities.give(flow)


def test_edges_set_again_before_any_solve_and_after_a_flow_is_forgotten_are_the_last_ones():
    rng = np.random.default_rng(11)
    capacities = Capacities(rng, 12 * 12, *grid_edges(12, 12))
    flow = solved(capacities)
    for forget in (False, True):
        capacities.change()
        capacities.give(flow)
        if forget:
            flow.forget_flow()
            capacities.change()
            capacities.give(flow)
        assert solve_and_check_cut(flow, capacities) == flow_by_scipy([capacities])


def test_thousands_of_changes_do_not_add_up_to_an_error():
    rng = np.random.default_rng(5)
    capacities = Capacities(rng, 25, *grid_edges(5, 5))
    flow = solved(capacities, unit=0.1)
    for _ in range(2500):
        capacities.change()
        capacities.give(flow, unit=0.1)
        solve_and_check_cut(flow, capacities, unit=0.1)


def test_a_forgotten_flow_is_found_again():
    rng = np.random.default_rng(6)
    flow = solved(Capacities(rng, 900, *grid_edges(30, 30)))
    value, side = flow.solve()
    flow.forget_flow()
    again, side_again = flow.solve()
    assert value == again
    assert np.array_equal(side, side_again)


def hard_grid(size=300):
    rng = np.random.default_rng(8)
    capacities = Capacities(rng, size * size, *grid_edges(size, size), largest=1000)
    capacities.forward = capacities.backward = capacities.forward * 5
    return capacities


def solve_for_ever(flow):
    while True:
        flow.forget_flow()
        flow.solve()


def test_an_interrupted_solve_can_be_taken_up_again():
    capacities = hard_grid()
    flow = solved(capacities)
    with alarm_after(0.03), pytest.raises(KeyboardInterrupt):
        solve_for_ever(flow)
    expected = solved(capacities).solve()
    value, side = flow.solve()
    assert value == expected[0]
    assert np.array_equal(side, expected[1])


def test_arrays_outlive_their_solver():
    flow = solved(Capacities(np.random.default_rng(9), 100, *grid_edges(10, 10)))
    _, side = flow.solve()
    kept = side.copy()
    del flow
    gc.collect()
    assert np.array_equal(side, kept)


def ints(*numbers):
    return np.array(numbers, np.int32)


@pytest.mark.parametrize(
    ("n_nodes", "first", "second", "message"),
    [
        (-1, ints(), ints(), "number of nodes is -1"),
        (2**31, ints(), ints(), "number of nodes"),
        (2, ints(0), ints(), "second has 0 entries, expected 1"),
        (2, ints(0), ints(2), "node of second 2 at place 0 is out of range"),
        (2, ints(-1), ints(1), "node of first -1 at place 0 is out of range"),
        (0, ints(0), ints(1), "out of range"),
        (2, ints(0, 1), ints(1, 1), "edge 1 joins node 1 to itself"),
    ],
)
def test_graphs_that_are_none_are_refused(n_nodes, first, second, message):
    with pytest.raises(ValueError, match=message):
        _core.MaxFlow(n_nodes, first, second)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, -1e-300, 1e101])
@pytest.mark.parametrize("place", range(4))
def test_capacities_that_are_none_are_refused_and_change_nothing(bad, place):
    flow = _core.MaxFlow(2, ints(0), ints(1))
    flow.set_terminals(np.array([3.0, 0.0]), np.array([0.0, 2.0]))
    flow.set_edges(np.array([1.0]), np.array([0.0]))
    numbers = [np.ones(2), np.ones(2), np.ones(1), np.ones(1)]
    numbers[place][-1] = bad
    name = ["source", "sink", "forward", "backward"][place]
    with pytest.raises(
        ValueError, match=rf"{name}\[{len(numbers[place]) - 1}\] is .*: expected a capacity between 0 and 1e100"
    ):
        (flow.set_terminals if place < 2 else flow.set_edges)(*(numbers[:2] if place < 2 else numbers[2:]))
    assert flow.solve()[0] == 1.0


def test_capacities_of_the_wrong_length_or_type_are_refused():
    flow = _core.MaxFlow(2, ints(0), ints(1))
    with pytest.raises(ValueError, match="source has 3 entries, expected 2"):
        flow.set_terminals(np.ones(3), np.ones(2))
    with pytest.raises(ValueError, match="backward has 0 entries, expected 1"):
        flow.set_edges(np.ones(1), np.ones(0))
    with pytest.raises(TypeError):
        flow.set_edges(np.ones(1, np.float32), np.ones(1, np.float32))
