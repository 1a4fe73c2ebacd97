"""Features of tokens, for tagging."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

# What stands for the places before and behind a sentence, which no lower-cased word does, and how many characters an ending has.
_OUTSIDE, _END = "OUTSIDE", 3


def word_shape(word: str) -> str:
    """Return the pattern of a word: capitals as X, other letters as x, digits as d, runs shortened to one.

    Examples
    --------
    >>> from maxmargin.features import word_shape
    >>> [word_shape(word) for word in ["Boeing", "747", "U.S.", "e-mail"]]
    ['Xx', 'd', 'X.X.', 'x-x']
    """
    return "".join(kind for kind, _ in groupby(map(_kind, word)))


def token_features(
    words: Sequence[str],
    pos: Sequence[str] | None = None,
    *,
    max_affix: int | None = 4,
    window: int = 1,
    detailed: bool = False,
) -> list[list[str]]:
    """Describe every word of a sentence by strings, ready for `ChainSVM`.

    Each token gets a constant (``bias``), its lower-cased word, its shape (see `word_shape`), its prefixes
    and suffixes, marks for a digit or a hyphen inside, and the words and shapes of its neighbours.

    Parameters
    ----------
    words : sequence of str
        The words of one sentence.
    pos : sequence of str, optional
        Part-of-speech tags of the words, used as features where given, alone and in adjacent pairs.
    max_affix : int or None, default=4
        Longest prefix and suffix, in characters.  None takes all, up to the whole word; 0 takes none.
    window : int, default=1
        How many neighbours on each side are looked at.
    detailed : bool, default=False
        Whether words and their neighbours are described in more detail: the word as written and its first and last three
        characters together; all its letters as `word_shape` has them, without the shortening; the letters and the affixes from
        two characters on of its direct neighbours; pairs of adjacent words, shapes and endings (of three characters); triples of
        words, shapes and ``pos``; and the two words that it stands between. What is beside the word needs a window.  That is more
        than twice as many features of a word and some ten times as many in all, so that the model grows as much: taggers of
        thousands of sentences gain by them.

    Returns
    -------
    list of list of str
        One list per word, without repetitions.

    Examples
    --------
    >>> from maxmargin.features import token_features
    >>> for features in token_features(["He", "ran"], max_affix=2):
    ...     print(" ".join(features))
    bias w=he shape=Xx prefix=h suffix=e prefix=he suffix=he [-1]outside w[+1]=ran shape[+1]=x
    bias w=ran shape=x prefix=r suffix=n prefix=ra suffix=an w[-1]=he shape[-1]=Xx [+1]outside
    >>> detailed = token_features(["He", "ran"], detailed=True)
    >>> [name for name in detailed[1] if name.startswith("w[-1")]
    ['w[-1]=he', 'w[-1..+0]=he ran', 'w[-1,+1]=he OUTSIDE', 'w[-1..+1]=he ran OUTSIDE']
    """
    if isinstance(words, str):
        raise ValueError(f"words must be a sequence of words, found the string {words!r}: split it first")
    if max_affix is not None and max_affix < 0:
        raise ValueError(f"max_affix must be None or at least 0, found {max_affix}")
    if window < 0:
        raise ValueError(f"window must be at least 0, found {window}")
    if pos is not None and len(pos) != len(words):
        raise ValueError(f"pos has {len(pos)} tags but words has {len(words)} words: every word needs one tag")

    for i, word in enumerate(words):
        if not isinstance(word, str):
            raise TypeError(f"words[{i}] is {word!r}; expected a string")

    lower = [word.lower() for word in words]
    endings = [word[-_END:] for word in lower]
    shapes = [word_shape(word) for word in words]
    sentence = []
    for i, word in enumerate(lower):
        features = ["bias", f"w={word}", f"shape={shapes[i]}"]
        features += _affixes(word, "", 1, max_affix)
        if any(character.isdigit() for character in word):
            features.append("has-digit")
        if "-" in word:
            features.append("has-hyphen")
        for offset in range(-window, window + 1):
            j = i + offset
            if offset == 0:
                continue
            if 0 <= j < len(words):
                features += [f"w[{offset:+}]={lower[j]}", f"shape[{offset:+}]={shapes[j]}"]
            else:
                features.append(f"[{offset:+}]outside")
        if pos is not None:
            features += _pos_features(pos, i, window)
        if detailed:
            features += _details(words, lower, shapes, endings, i, max_affix, window)
            if pos is not None:
                features += _joined("pos", pos, i, 3, range(-window, window - 1))
        sentence.append(features)
    return sentence


def _affixes(word: str, place: str, shortest: int, max_affix: int | None) -> Iterator[str]:
    longest = len(word) if max_affix is None else min(max_affix, len(word))
    for length in range(shortest, longest + 1):
        yield f"prefix{place}={word[:length]}"
        yield f"suffix{place}={word[-length:]}"


def _details(
    words: Sequence[str],
    lower: Sequence[str],
    shapes: Sequence[str],
    endings: Sequence[str],
    i: int,
    max_affix: int | None,
    window: int,
) -> Iterator[str]:
    """Yield more about a word and its direct neighbours, where the window has them, and what they are together."""
    nearest = min(window, 1)
    yield f"written={words[i]}"
    yield f"ends={lower[i][:_END]} {endings[i]}"
    for j in range(max(0, i - nearest), min(len(words), i + nearest + 1)):
        yield f"letters[{j - i:+}]={''.join(map(_kind, words[j]))}"
        if j != i:
            yield from _affixes(lower[j], f"[{j - i:+}]", 2, max_affix)
    yield from _joined("w", lower, i, 2, range(-window, window))
    yield from _joined("shape", shapes, i, 2, range(-nearest, nearest))
    yield from _joined("ending", endings, i, 2, range(-nearest, nearest))
    if window > 0:
        yield f"w[-1,+1]={_at(lower, i - 1)} {_at(lower, i + 1)}"
        yield from _joined("w", lower, i, 3, (-1,))
        yield from _joined("shape", shapes, i, 3, (-1,))


def _joined(name: str, values: Sequence[str], i: int, n: int, offsets: Iterable[int]) -> Iterator[str]:
    """Yield n adjacent values as one, for those that begin at these offsets from the i-th."""
    for first in offsets:
        yield f"{name}[{first:+}..{first + n - 1:+}]=" + " ".join(str(_at(values, i + first + k)) for k in range(n))


def _at(values: Sequence[str], i: int) -> str:
    return values[i] if 0 <= i < len(values) else _OUTSIDE


def _pos_features(pos: Sequence[str], i: int, window: int) -> list[str]:
    first, last = max(0, i - window), min(len(pos), i + window + 1)
    alone = [f"pos[{j - i:+}]={pos[j]}" for j in range(first, last)]
    pairs = [f"pos[{j - i:+}..]={pos[j]} {pos[j + 1]}" for j in range(first, last - 1)]
    return alone + pairs


def _kind(character: str) -> str:
    if character.isupper():
        return "X"
    if character.isalpha():
        return "x"
    return "d" if character.isdigit() else character
