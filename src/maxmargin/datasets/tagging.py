"""Tagged sentences: parts of speech, chunks, entities."""

from dataclasses import dataclass
from importlib.resources import as_file, files

from maxmargin.datasets._sources import parts
from maxmargin.datasets._summary import Summary
from maxmargin.files import read_conll, read_conllu


@dataclass(frozen=True, slots=True, repr=False)
class TaggedSentences(Summary):
    """Words and their tags, sentence by sentence.

    Attributes
    ----------
    words, tags : list of list of str
        ``tags[i][t]`` is the tag of ``words[i][t]``.
    pos : list of list of str or None
        Part-of-speech tags given beside the ones to predict, where the set has them.
    """

    words: list[list[str]]
    tags: list[list[str]]
    pos: list[list[str]] | None = None

    def __len__(self) -> int:
        return len(self.words)


@dataclass(frozen=True, slots=True, repr=False)
class TaggingData(Summary):
    """A tagging corpus in its published parts.

    Attributes
    ----------
    train, test : TaggedSentences
    dev : TaggedSentences or None
        The development part, where the set has one.
    """

    train: TaggedSentences
    test: TaggedSentences
    dev: TaggedSentences | None = None


def load_ewt_sample(tags: str = "upos") -> TaggingData:
    """Load part-of-speech tagged web English that comes with the package: 3,136 and 520 sentences.

    Every fourth sentence of the training and of the test part of the Universal Dependencies English Web
    Treebank, version 2.15 [1]_, reduced to words and tags.  The data is licensed CC BY-SA 4.0, unlike the
    package's code; the attribution is in ``ATTRIBUTION.md`` beside it.

    Parameters
    ----------
    tags : {"upos", "xpos"}, default="upos"
        The 17 universal tags or the finer English ones.

    Returns
    -------
    TaggingData
        With ``train`` and ``test``; ``dev`` is None.

    References
    ----------
    .. [1] N. Silveira et al., "A Gold Standard Dependency Corpus for English", LREC 2014.

    Examples
    --------
    >>> from maxmargin.datasets import load_ewt_sample
    >>> data = load_ewt_sample()
    >>> len(data.train), len(data.test)
    (3136, 520)
    >>> list(zip(data.test.words[0], data.test.tags[0]))[:3]
    [('What', 'PRON'), ('if', 'SCONJ'), ('Google', 'PROPN')]
    """
    column = _tag_column(tags, {"upos": 1, "xpos": 2})
    read = {}
    for part in ("train", "test"):
        with as_file(files("maxmargin.datasets") / "data" / f"ewt_sample_{part}.tsv.gz") as path:
            read[part] = _columns(read_conll(path, columns=3, sep="\t"), column)
    return TaggingData(**read)


def load_ud_english_ewt(tags: str = "upos") -> TaggingData:
    """Load the whole UD English Web Treebank, version 2.15: 12,544, 2,001 and 2,077 sentences.

    Read from ``ud_english_ewt`` in the folder named by ``MAXMARGIN_DATA``, otherwise downloaded once.  For
    the trees use `maxmargin.files.read_conllu`.  Licence: CC BY-SA 4.0.

    Parameters
    ----------
    tags : {"upos", "xpos"}, default="upos"
        The 17 universal tags or the finer English ones.

    Returns
    -------
    TaggingData
        With ``train``, ``dev`` and ``test``.
    """
    _tag_column(tags, {"upos": 1, "xpos": 2})
    read = {}
    for part, path in parts("ud_english_ewt"):
        sentences = read_conllu(path)
        read[part] = TaggedSentences(
            words=[[token.form for token in sentence] for sentence in sentences],
            tags=[[getattr(token, tags) for token in sentence] for sentence in sentences],
        )
    return TaggingData(**read)


def load_conll2000() -> TaggingData:
    """Load the CoNLL-2000 chunking task: 8,936 and 2,012 sentences, 22 IOB2 tags, with parts of speech.

    Read from ``conll2000`` in the folder named by ``MAXMARGIN_DATA``, otherwise downloaded once from the
    page of the task [1]_.

    Returns
    -------
    TaggingData
        With ``train`` and ``test``, each with ``pos``.

    References
    ----------
    .. [1] E. F. Tjong Kim Sang and S. Buchholz, "Introduction to the CoNLL-2000 shared task: Chunking",
       CoNLL 2000.
    """
    return TaggingData(**{part: _columns(read_conll(path, columns=3), 2, pos=1) for part, path in parts("conll2000")})


def load_jnlpba() -> TaggingData:
    """Load the JNLPBA 2004 task, bio-entities in abstracts: 18,546 and 3,856 sentences, 11 IOB2 tags.

    Read from ``jnlpba`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.

    Returns
    -------
    TaggingData
        With ``train`` and ``test``.
    """
    return _load_two_columns("jnlpba")


def load_bc2gm() -> TaggingData:
    """Load the BioCreative II gene mentions, tokenised: 12,574, 2,519 and 5,038 sentences, 3 IOB2 tags.

    Read from ``bc2gm`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.

    Returns
    -------
    TaggingData
        With ``train``, ``dev`` and ``test``.
    """
    return _load_two_columns("bc2gm")


def load_wnut17() -> TaggingData:
    """Load the WNUT 2017 task, emerging entities in tweets: 3,394, 1,009 and 1,287 sentences, 13 IOB2 tags.

    Read from ``wnut17`` in the folder named by ``MAXMARGIN_DATA``; there is no automatic download.

    Returns
    -------
    TaggingData
        With ``train``, ``dev`` and ``test``.
    """
    return _load_two_columns("wnut17")


def _load_two_columns(name: str) -> TaggingData:
    return TaggingData(**{part: _columns(read_conll(path, columns=2, sep="\t"), 1) for part, path in parts(name)})


def _columns(sentences: list[list[tuple[str, ...]]], tags: int, pos: int | None = None) -> TaggedSentences:
    def column(index: int) -> list[list[str]]:
        return [[token[index] for token in sentence] for sentence in sentences]

    return TaggedSentences(column(0), column(tags), None if pos is None else column(pos))


def _tag_column(tags: str, known: dict[str, int]) -> int:
    if tags not in known:
        raise ValueError(f"tags must be one of {sorted(known)}, found {tags!r}")
    return known[tags]
