"""Column files: one token a line, a blank line between sentences.

`read_conll` reads the plain kind (CoNLL-2000, CoNLL-2003, most entity corpora), `read_conllu` the ten columns
of Universal Dependencies [1]_.  Both read plain text and gzip, and stop at the first malformed line with a
`ValueError` of the form ``path:line: what was found, what is expected``.

References
----------
.. [1] CoNLL-U format, https://universaldependencies.org/format.html
"""

import os
import re
from collections.abc import Sized
from pathlib import Path
from typing import NamedTuple

from maxmargin.files._lines import numbered_lines

PathLike = str | os.PathLike[str]

# str.split() would also break at no-break spaces, which occur inside tokens.
BLANKS = re.compile("[ \t]+")
SKIPPED_ID = re.compile(r"\d+[-.]\d+")
CONLLU_COLUMNS = 10


class ConlluToken(NamedTuple):
    """One word of a CoNLL-U sentence: its columns without the id, which is its position plus one.

    ``head`` is 0 for the root and None where the file has ``_``; the other columns are text as in the file.
    """

    form: str
    lemma: str
    upos: str
    xpos: str
    feats: str
    head: int | None
    deprel: str
    deps: str
    misc: str


def read_conll(
    path: PathLike, *, columns: int | None = None, sep: str | None = None, comment: str | None = None
) -> list[list[tuple[str, ...]]]:
    """Read a column file as a list of sentences, each a list of token tuples.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file, plain or gzip.
    columns : int, optional
        How many columns every token line must have.  By default the first token line decides.
    sep : str, optional
        What separates columns.  By default any run of spaces and tabs; with ``"\\t"`` tokens may hold spaces.
    comment : str, optional
        Lines that begin with this text are skipped, for example ``"-DOCSTART-"``.  By default none are.

    Returns
    -------
    list of list of tuple of str
        Sentences in file order; none is empty.  Lines of only spaces and tabs separate sentences.

    Raises
    ------
    ValueError
        If a line has another number of columns or an empty one, is not UTF-8, or no sentence is found.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.files import read_conll
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "toy.txt"
    ...     _ = path.write_text("He PRP\\nreckons VBZ\\n\\nYes UH\\n")
    ...     read_conll(path)
    [[('He', 'PRP'), ('reckons', 'VBZ')], [('Yes', 'UH')]]
    """
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1, found {columns}")
    if sep == "":
        raise ValueError("sep must not be empty: leave it out to split at spaces and tabs")
    name = Path(path)
    said = "expected"
    sentences: list[list[tuple[str, ...]]] = []
    sentence: list[tuple[str, ...]] = []
    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            if sentence:
                sentences.append(sentence)
                sentence = []
            continue
        if comment is not None and line.startswith(comment):
            continue
        token = tuple(BLANKS.split(line.strip(" \t")) if sep is None else line.split(sep))
        if columns is None:
            columns, said = len(token), f"expected as in line {number}"
        if len(token) != columns:
            raise ValueError(f"{name}:{number}: found {_columns(len(token))} in {line!r}, {said}: {columns}")
        if "" in token:
            raise ValueError(f"{name}:{number}: found an empty column {token.index('') + 1} in {line!r}, expected text")
        sentence.append(token)
    if sentence:
        sentences.append(sentence)
    _require_sentence(sentences, name)
    return sentences


def read_conllu(path: PathLike) -> list[list[ConlluToken]]:
    """Read a CoNLL-U file as a list of sentences, each a list of `ConlluToken`.

    Comment lines, multiword tokens (id ``3-4``) and empty nodes (id ``3.1``) are skipped, so that word ``i``
    of a sentence is at index ``i - 1``.

    Parameters
    ----------
    path : str or path-like
        A UTF-8 text file, plain or gzip.

    Returns
    -------
    list of list of ConlluToken
        Sentences in file order; none is empty, ids ascend by one, and every head lies in its sentence.

    Raises
    ------
    ValueError
        If a line has not ten columns, an id is out of order, a head is no word of the sentence, a line is not
        UTF-8, or no sentence is found.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from maxmargin.files import read_conllu
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "toy.conllu"
    ...     _ = path.write_text("# text = Go\\n1\\tGo\\tgo\\tVERB\\tVB\\t_\\t0\\troot\\t_\\t_\\n\\n")
    ...     [[go]] = read_conllu(path)
    >>> go.form, go.upos, go.head
    ('Go', 'VERB', 0)
    """
    name = Path(path)
    sentences: list[list[ConlluToken]] = []
    sentence: list[ConlluToken] = []
    numbers: list[int] = []

    def close() -> None:
        last = len(sentence)
        for number, token in zip(numbers, sentence, strict=True):
            if token.head is not None and token.head > last:
                raise ValueError(f"{name}:{number}: found head {token.head}, expected at most {last}")
        if sentence:
            sentences.append(sentence)

    for number, line in numbered_lines(path):
        if not line.strip(" \t"):
            close()
            sentence, numbers = [], []
            continue
        if line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != CONLLU_COLUMNS:
            raise ValueError(f"{name}:{number}: found {_columns(len(fields))} in {line!r}, expected 10 split by tabs")
        if SKIPPED_ID.fullmatch(fields[0]):
            continue
        if fields[0] != str(len(sentence) + 1):
            raise ValueError(f"{name}:{number}: found id {fields[0]!r}, expected '{len(sentence) + 1}'")
        numbers.append(number)
        sentence.append(_conllu_token(fields, f"{name}:{number}"))
    close()
    _require_sentence(sentences, name)
    return sentences


def _conllu_token(fields: list[str], where: str) -> ConlluToken:
    _, form, lemma, upos, xpos, feats, head, deprel, deps, misc = fields
    if not form:
        raise ValueError(f"{where}: found an empty FORM, expected a word")
    if head != "_" and not (head.isascii() and head.isdigit()):
        raise ValueError(f"{where}: found head {head!r}, expected a word's id, 0 for the root, or '_'")
    return ConlluToken(form, lemma, upos, xpos, feats, None if head == "_" else int(head), deprel, deps, misc)


def _columns(count: int) -> str:
    return "1 column" if count == 1 else f"{count} columns"


def _require_sentence(sentences: Sized, name: Path) -> None:
    if not sentences:
        raise ValueError(f"{name}: found no sentence, expected at least one line with a token")
