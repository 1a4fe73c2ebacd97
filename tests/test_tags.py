"""IOB and BILOU tags against spans written down one by one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.tags import bilou_to_iob, iob_to_bilou

# Spans in their order: length and kind; an empty kind is what lies outside, token by token.
spans = st.lists(
    st.one_of(st.tuples(st.integers(1, 4), st.sampled_from(["A", "B", "A-B"])), st.just((1, ""))), max_size=8
)


def as_iob(spans):
    return [("B-" if t == 0 else "I-") + kind if kind else "O" for length, kind in spans for t in range(length)]


def as_bilou(spans):
    marks = {1: "U", 2: "BL", 3: "BIL", 4: "BIIL"}
    return [f"{mark}-{kind}" if kind else "O" for length, kind in spans for mark in marks[length]]


@given(spans)
def test_spans_are_marked_at_both_ends_and_come_back(spans):
    assert iob_to_bilou(as_iob(spans)) == as_bilou(spans)
    assert bilou_to_iob(as_bilou(spans)) == as_iob(spans)


def test_an_inside_that_goes_on_with_nothing_begins_a_span():
    assert iob_to_bilou(["I-A", "I-A", "I-B", "O", "I-B", "B-B"]) == ["B-A", "L-A", "U-B", "O", "U-B", "U-B"]


@pytest.mark.parametrize(
    ("predicted", "expected"),
    [
        (["I-A", "L-A"], ["B-A", "I-A"]),
        (["B-A", "O", "L-A"], ["B-A", "O", "B-A"]),
        (["B-A", "L-B"], ["B-A", "B-B"]),
        (["B-A", "L-A", "I-A"], ["B-A", "I-A", "B-A"]),
        (["U-A", "L-A", "U-A"], ["B-A", "B-A", "B-A"]),
        (["B-A", "B-A", "I-A"], ["B-A", "B-A", "I-A"]),
    ],
)
def test_predictions_need_not_be_well_formed(predicted, expected):
    assert bilou_to_iob(predicted) == expected


@given(st.lists(st.sampled_from(["O", *(f"{mark}-{kind}" for mark in "BILU" for kind in "AB")]), max_size=10))
def test_what_comes_out_is_well_formed(predicted):
    tags = bilou_to_iob(predicted)
    assert [tag[1:] for tag in tags] == [tag[1:] for tag in predicted]
    for before, tag in zip(["O", *tags], tags, strict=False):
        assert not tag.startswith("I-") or before[1:] == tag[1:]
    assert bilou_to_iob(iob_to_bilou(tags)) == tags


@pytest.mark.parametrize(
    "tag", ["X", "B", "B-", "", "-A", "BI-A", "O-A", "E-A", "b-A", "B- ", "I-A ", None, 3, np.array(["O"])]
)
def test_what_is_no_tag_is_named(tag):
    for convert in (iob_to_bilou, bilou_to_iob):
        with pytest.raises(ValueError, match=r"tags\[1\] is .*expected 'O' or one of 'B-X', 'I-X'"):
            convert(["O", tag])


def test_last_tokens_have_no_mark_in_iob():
    with pytest.raises(ValueError, match=r"tags\[0\] is 'L-A'; expected 'O' or one of 'B-X', 'I-X' with a kind X"):
        iob_to_bilou(["L-A"])


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ("OO", "found the string 'OO': split it first"),
        (None, "tags must be a sequence of tags, found NoneType"),
        ({"O", "B-A"}, "found set"),
        ({"O": 1}, "found dict"),
        ([["O"], ["B-A"]], r"tags\[0\] is of type list; expected a tag: give one sequence at a time"),
    ],
)
def test_what_is_no_sequence_of_tags_is_refused(tags, message):
    with pytest.raises(ValueError, match=message):
        iob_to_bilou(tags)


def test_arrays_of_tags_are_sequences():
    assert iob_to_bilou(np.array(["B-A", "I-A", "O"])) == ["B-A", "L-A", "O"]
