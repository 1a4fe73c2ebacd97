"""The kernels compiled for every instruction set this CPU has; all other tests run the fastest only."""

import numpy as np
import pytest
import test_decoders as decoders
import test_forest as forests

import maxmargin as mm
from maxmargin import _core

pytestmark = pytest.mark.core


@pytest.fixture(params=_core.instruction_sets())
def instruction_set(request):
    usual = _core.instruction_set()
    _core.use_instruction_set(request.param)
    yield request.param
    _core.use_instruction_set(usual)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("kind", decoders.FEATURES)
def test_one_label_is_scored_as_by_numpy(kind):
    decoders.test_binary_searches_equal_enumeration(40, kind)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_labels", decoders.LABEL_COUNTS)
def test_rows_are_scored_as_by_numpy(n_labels):
    decoders.test_multiclass_searches_equal_enumeration(n_labels)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_labels", decoders.LABEL_COUNTS)
def test_chains_are_searched_as_by_enumeration(n_labels):
    decoders.test_chain_searches_equal_enumeration_for_any_number_of_labels(n_labels, "margin")


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_labels", [3, 9, 40])
def test_float32_is_almost_as_good(n_labels):
    decoders.test_planes_found_in_float32_are_worth_almost_as_much_in_double(n_labels)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("n_first", forests.WIDTHS)
def test_tables_are_passed_through_as_by_enumeration(n_first):
    forests.test_messages_through_tables_of_any_shape_are_right(n_first)


@pytest.mark.usefixtures("instruction_set")
@pytest.mark.parametrize("precise", [False, True])
@pytest.mark.parametrize("n_labels", [2, 3, 7, 12])
def test_what_a_row_scores_does_not_depend_on_the_rows_beside_it(n_labels, precise):
    # Else ties are decided by how threads share the examples out, and iterates depend on n_jobs.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9, 53))
    problem = mm.models.Multiclass(n_labels).bind(X, rng.integers(n_labels, size=9))
    w = 0.01 * rng.normal(size=problem.n_weights)
    rounded = None if precise else w.astype(np.float32)
    together = problem.space.separate(problem.all_ids, w, rounded, 1)
    alone = [problem.space.separate(np.array([i]), w, rounded, 1) for i in range(9)]
    assert together.values().tolist() == [value for batch in alone for value in batch.values().tolist()]


def test_the_fastest_is_used_and_the_baseline_is_always_there():
    names = _core.instruction_sets()
    assert _core.instruction_set() == names[0]
    assert names[-1] == "baseline"


def test_what_the_cpu_lacks_cannot_be_chosen():
    with pytest.raises(ValueError, match="no instruction set 'mmx'"):
        _core.use_instruction_set("mmx")
    assert _core.instruction_set() == _core.instruction_sets()[0]


def test_the_choice_is_what_runs(instruction_set):
    assert _core.instruction_set() == instruction_set
