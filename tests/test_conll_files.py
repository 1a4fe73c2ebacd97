"""Column files: what is read, and what a malformed file says."""

import gzip
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.files import read_conll, read_conllu

ROW = "1\tGo\tgo\tVERB\tVB\t_\t0\troot\t_\t_\n"


@pytest.fixture
def write(tmp_path):
    def write(content, name="toy.txt"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def says(path, line, text):
    """The start of an error about a line of a file, as a pattern."""
    return "^" + re.escape(f"{path}:{line}: ") + ".*" + re.escape(text)


def test_blank_lines_and_lines_of_a_tab_separate_sentences(write):
    path = write("\n\na\tO\nb\tB\n\t\nc\tO\n \n\n\nd\tO")
    expected = [[("a", "O"), ("b", "B")], [("c", "O")], [("d", "O")]]
    assert read_conll(path) == expected
    assert read_conll(path, sep="\t", columns=2) == expected


def test_gzip_is_known_by_its_content_not_its_name(write):
    packed = gzip.compress(b"a O\n")
    assert read_conll(write(packed, "a.gz")) == read_conll(write(packed, "a.txt")) == [[("a", "O")]]
    assert read_conll(write("a O\n", "plain.gz")) == [[("a", "O")]]


def test_windows_line_ends_and_byte_order_mark_are_removed(write):
    assert read_conll(write(b"\xef\xbb\xbfa O\r\n\r\nb O\r\n")) == [[("a", "O")], [("b", "O")]]


def test_unicode_spaces_and_line_separators_stay_in_tokens(write):
    token = "10\u00a0000\u2028\u0085x"
    assert read_conll(write(f"{token} NUM\n")) == [[(token, "NUM")]]


def test_tab_separated_tokens_may_hold_spaces(write):
    assert read_conll(write("New York\tLOC\n"), sep="\t") == [[("New York", "LOC")]]


def test_comment_lines_are_skipped_without_ending_a_sentence(write):
    assert read_conll(write("-DOCSTART- O\n\na O\n-DOCSTART- O\nb O\n"), comment="-DOCSTART-") == [
        [("a", "O"), ("b", "O")]
    ]


@pytest.mark.parametrize(
    ("content", "options", "line", "text"),
    [
        ("a O\nb\n", {}, 2, "found 1 column in 'b', expected as in line 1: 2"),
        ("a b O\n", {"columns": 2}, 1, "found 3 columns in 'a b O', expected: 2"),
        ("a\tO\n\n\tO\n", {"sep": "\t"}, 3, "found an empty column 1"),
        (b"a O\nb\xff O\n", {}, 2, "found byte 0xff at position 1, expected UTF-8"),
        (b"a O\n\x80", {}, 2, "expected UTF-8"),
    ],
)
def test_malformed_column_line_is_named(write, content, options, line, text):
    path = write(content)
    with pytest.raises(ValueError, match=says(path, line, text)):
        read_conll(path, **options)


@pytest.mark.parametrize("read", [read_conll, read_conllu])
@pytest.mark.parametrize("content", [b"", b"\n\n\t\n", gzip.compress(b"", mtime=0)])
def test_file_without_a_sentence_is_an_error(write, read, content):
    with pytest.raises(ValueError, match="found no sentence"):
        read(write(content))


@pytest.mark.parametrize("read", [read_conll, read_conllu])
def test_truncated_or_damaged_gzip_is_an_error(write, read):
    packed = gzip.compress(ROW.encode())
    wrong_checksum = packed[:-8] + bytes([packed[-8] ^ 0xFF]) + packed[-7:]
    for content in (packed[:-4], packed[:12], packed[:2], wrong_checksum):
        with pytest.raises(ValueError, match="damaged or incomplete gzip"):
            read(write(content))


@pytest.mark.parametrize("options", [{"columns": 0}, {"sep": ""}])
def test_impossible_options_are_refused_before_reading(options):
    with pytest.raises(ValueError, match="must"):
        read_conll("no such file", **options)


def test_missing_file_is_the_usual_error():
    with pytest.raises(FileNotFoundError):
        read_conll("no such file")


def test_conllu_skips_comments_ranges_and_empty_nodes(write):
    path = write(
        "# sent_id = 1\n"
        "1-2\tDon't\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "1\tDo\tdo\tAUX\tVB\t_\t2\taux\t_\t_\n"
        "2\tn't go\tnot\tPART\tRB\t_\t0\troot\t_\tSpaceAfter=No\n"
        "2.1\tgone\t_\t_\t_\t_\t_\t_\t_\t_\n"
        "\n# sent_id = 2\n" + ROW.replace("\t0\t", "\t_\t")
    )
    first, second = read_conllu(path)
    assert [(token.form, token.upos, token.head) for token in first] == [
        ("Do", "AUX", 2),
        ("n't go", "PART", 0),
    ]
    assert first[1].misc == "SpaceAfter=No"
    assert second[0].head is None


@pytest.mark.parametrize(
    ("content", "line", "text"),
    [
        ("# c\n1 Go go\n", 2, "found 1 column in '1 Go go', expected 10 split by tabs"),
        (ROW.rstrip("\n") + "\t_\n", 1, "found 11 columns"),
        (ROW + ROW, 2, "found id '1', expected '2'"),
        ("x" + ROW, 1, "found id 'x1', expected '1'"),
        (ROW.replace("\t0\t", "\t-1\t"), 1, "found head '-1'"),
        (ROW.replace("\t0\t", "\t²\t"), 1, "found head '²'"),
        ("\n" + ROW.replace("\t0\t", "\t2\t"), 2, "found head 2, expected at most 1"),
        (ROW.replace("\tGo\t", "\t\t"), 1, "found an empty FORM"),
    ],
)
def test_malformed_conllu_line_is_named(write, content, line, text):
    path = write(content)
    with pytest.raises(ValueError, match=says(path, line, text)):
        read_conllu(path)


TOKENS = st.text(st.characters(codec="utf-8", exclude_characters=" \t\r\n\ufeff"), min_size=1, max_size=5)
SENTENCES = st.lists(st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=4), min_size=1, max_size=4)


@given(sentences=SENTENCES, sep=st.sampled_from(["\t", " "]), packed=st.booleans())
def test_what_is_written_is_read(tmp_path_factory, sentences, sep, packed):
    text = "\n".join("".join(f"{sep.join(token)}\n" for token in sentence) for sentence in sentences).encode()
    path = tmp_path_factory.mktemp("conll") / "file"
    path.write_bytes(gzip.compress(text) if packed else text)
    assert read_conll(path) == sentences
    assert read_conll(path, sep=sep, columns=2) == sentences


@given(content=st.binary(max_size=60))
def test_any_bytes_give_sentences_or_a_value_error(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("bytes") / "file"
    for data in (content, b"\x1f\x8b" + content):
        path.write_bytes(data)
        for read in (read_conll, read_conllu):
            try:
                sentences, complaint = read(path), str(path)
            except ValueError as error:
                sentences, complaint = [], str(error)
            assert all(sentences)
            assert complaint.startswith(str(path))
