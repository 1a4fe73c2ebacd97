"""Tags of spans in sequences, such as entities and chunks: from IOB to BILOU and back.

IOB      B-X begins a span of kind X, I-X goes on with it, O is outside of all.
BILOU    L-X is the last token of a span besides, and U-X a span of one token (Ratinov and Roth 2009): more labels, which tell a
         tagger what ends a span.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set

_OUTSIDE = ("O", "")


def iob_to_bilou(tags: Sequence[str]) -> list[str]:
    """Mark the last tokens of spans and spans of one token.

    Parameters
    ----------
    tags : sequence of str
        The tags of one sequence: ``O``, ``B-X`` and ``I-X``, for any kinds X.  An ``I-X`` that goes on with no span of kind X
        begins one, as in IOB1 and as conlleval counts.

    Returns
    -------
    list of str
        ``O``, ``B-X``, ``I-X``, ``L-X`` and ``U-X``.

    References
    ----------
    L. Ratinov and D. Roth, "Design challenges and misconceptions in named entity recognition", CoNLL 2009.

    Examples
    --------
    >>> from maxmargin.tags import iob_to_bilou
    >>> iob_to_bilou(["B-PER", "I-PER", "O", "B-LOC", "B-LOC"])
    ['B-PER', 'L-PER', 'O', 'U-LOC', 'U-LOC']
    """
    return _with_marks(tags, "BI", lambda begins, ends: ("U" if ends else "B") if begins else ("L" if ends else "I"))


def bilou_to_iob(tags: Sequence[str]) -> list[str]:
    """Return IOB2 tags, in which every span begins with ``B-``.

    Any sequence of these tags is taken, as predictions may not be well formed: a span ends with ``L-X`` or ``U-X``, and before
    what is not ``I-X`` or ``L-X`` of its kind.

    Parameters
    ----------
    tags : sequence of str
        The tags of one sequence: ``O``, ``B-X``, ``I-X``, ``L-X`` and ``U-X``, for any kinds X.

    Returns
    -------
    list of str
        ``O``, ``B-X`` and ``I-X``.

    Examples
    --------
    >>> from maxmargin.tags import bilou_to_iob
    >>> bilou_to_iob(["B-PER", "L-PER", "O", "U-LOC", "L-LOC"])
    ['B-PER', 'I-PER', 'O', 'B-LOC', 'B-LOC']
    """
    return _with_marks(tags, "BILU", lambda begins, ends: "B" if begins else "I")


def _with_marks(tags: Sequence[str], marks: str, mark: Callable[[bool, bool], str]) -> list[str]:
    """Return tags with other marks, which depend on whether a token begins and whether it ends its span."""
    pairs = list(_split(tags, marks))
    begins = [_begins(before, here) for before, here in itertools.pairwise([_OUTSIDE, *pairs])]
    ends = [_begins(here, after) for here, after in itertools.pairwise([*pairs, _OUTSIDE])]
    return [
        f"{mark(begin, end)}-{kind}" if kind else "O" for (_, kind), begin, end in zip(pairs, begins, ends, strict=True)
    ]


def _begins(before: tuple[str, str], here: tuple[str, str]) -> bool:
    """Return whether what is here is no part of the span before it."""
    return here[0] in "BU" or before[0] in "LUO" or before[1] != here[1]


def _split(tags: Sequence[str], marks: str) -> Iterator[tuple[str, str]]:
    """Yield marks and kinds; outside of all spans the kind is empty."""
    if isinstance(tags, str):
        raise ValueError(f"tags must be a sequence of tags, found the string {tags!r}: split it first")
    if isinstance(tags, (Mapping, Set)) or not isinstance(tags, Iterable):
        raise ValueError(f"tags must be a sequence of tags, found {type(tags).__name__}")
    known = ", ".join(f"'{mark}-X'" for mark in marks)
    for i, tag in enumerate(tags):
        if isinstance(tag, (list, tuple)):
            raise ValueError(f"tags[{i}] is of type {type(tag).__name__}; expected a tag: give one sequence at a time")
        mark, _, kind = tag.partition("-") if isinstance(tag, str) else ("", "", "")
        is_span = mark in tuple(marks) and kind.strip() == kind != ""
        if not is_span and not (isinstance(tag, str) and tag == "O"):
            raise ValueError(f"tags[{i}] is {tag!r}; expected 'O' or one of {known} with a kind X")
        yield mark, kind
