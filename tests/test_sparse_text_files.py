"""svmlight and SVM-hmm files: what is written reads back, and what is malformed is refused with its place."""

import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from maxmargin.files.sparse_text import read_svm_hmm, read_svmlight, write_svm_hmm, write_svmlight

pytestmark = pytest.mark.core

DATA = os.environ.get("MAXMARGIN_DATA")
needs_data = pytest.mark.skipif(DATA is None, reason="MAXMARGIN_DATA does not name the data folder")
same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def written(folder: Path, content: bytes) -> Path:
    path = folder / "train.dat"
    path.write_bytes(content)
    return path


def assert_equal_csr(found: Any, expected: Any) -> None:
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.indptr, expected.indptr)
    np.testing.assert_array_equal(found.indices, expected.indices)
    np.testing.assert_array_equal(found.data, expected.data)


# Reading


def test_sequences_end_where_the_qid_changes(tmp_path: Path) -> None:
    X, y = read_svm_hmm(written(tmp_path, b"3 qid:7 1:1 4:0.5\n1 qid:7 2:-2e-3\n2 qid:5\n1 qid:7 4:1\n"))
    assert [tags.tolist() for tags in y] == [[3, 1], [2], [1]]
    assert [x.toarray().tolist() for x in X] == [
        [[1, 0, 0, 0.5], [0, -0.002, 0, 0]],
        [[0, 0, 0, 0]],
        [[0, 0, 0, 1]],
    ]


def test_stacked_tokens_equal_the_list_of_sequences(tmp_path: Path) -> None:
    path = written(tmp_path, b"3 qid:7 1:1 4:0.5\n1 qid:7 2:3\n2 qid:8 4:1\n")
    X, y = read_svm_hmm(path)
    stacked, lengths, tags = read_svm_hmm(path, stacked=True)
    assert lengths.tolist() == [2, 1]
    assert tags.tolist() == np.concatenate(y).tolist()
    assert_equal_csr(stacked, sp.vstack(X, format="csr"))


@pytest.mark.parametrize(
    "content",
    [
        b"1 qid:1 1:1 3:2\n2 qid:1 2:1\n",
        b"1 qid:1 1:1 3:2\r\n2 qid:1 2:1\r\n",
        b"1 qid:1 1:1 3:2\n2 qid:1 2:1",
        b"1 qid:1 1:1 3:2\r\n2 qid:1 2:1\r",
        b"# head \x00 \xff\n\n  \t\n1\tqid:1  1:1 \t3:2  # 9:9\n \t# more\n  2 qid:1 2:1#x\n\n",
        b"\xef\xbb\xbf1 qid:1 1:1 3:2\n2 qid:1 2:1\n",
        b"+1 qid:+1 01:+1 3:2.0\n2 qid:1 2:1e0\n",
    ],
    ids=[
        "plain",
        "crlf",
        "no-last-newline",
        "crlf-cut",
        "comments-and-blanks",
        "byte-order-mark",
        "signs-and-zeros",
    ],
)
@pytest.mark.parametrize("is_gzip", [False, True])
def test_layout_does_not_matter(tmp_path: Path, content: bytes, is_gzip: bool) -> None:
    X, y = read_svm_hmm(written(tmp_path, gzip.compress(content) if is_gzip else content))
    assert [tags.tolist() for tags in y] == [[1, 2]]
    assert X[0].toarray().tolist() == [[1, 0, 2], [0, 1, 0]]


def test_targets_may_be_any_finite_number(tmp_path: Path) -> None:
    X, y = read_svmlight(written(tmp_path, b"+1 1:1\n-1\n0.25 2:1\n-1e300 1:5e-324\n"))
    assert y.tolist() == [1, -1, 0.25, -1e300]
    assert X.shape == (4, 2)
    assert X.data.tolist() == [1, 1, 5e-324]


def test_query_ids_come_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, b"1 qid:-3 1:1\n2 qid:9223372036854775807 1:1\n")
    assert len(read_svmlight(path)) == 2
    assert read_svmlight(path, query_id=True)[2].tolist() == [-3, 2**63 - 1]


def test_values_in_float32_on_request(tmp_path: Path) -> None:
    path = written(tmp_path, b"1 qid:1 1:0.1 2:1\n")
    X, _ = read_svm_hmm(path, dtype=np.float32)
    assert X[0].dtype == np.float32
    assert X[0].data.tolist() == [np.float32(0.1), 1]


def test_features_beyond_n_features_can_be_ignored(tmp_path: Path) -> None:
    path = written(tmp_path, b"1 1:1 5:1 6:1\n2 6:1\n")
    X, _ = read_svmlight(path, n_features=5, extra_features="ignore")
    assert X.toarray().tolist() == [[1, 0, 0, 0, 1], [0, 0, 0, 0, 0]]
    assert read_svmlight(path, n_features=9)[0].shape == (2, 9)


def test_long_lines_and_long_numbers_are_read_in_full(tmp_path: Path) -> None:
    n = 200_000
    line = b"1 " + b" ".join(b"%d:1" % f for f in range(1, n + 1)) + b" %d:0." % (n + 1) + b"3" * 100_000
    X, _ = read_svmlight(written(tmp_path, line))
    assert X.nnz == n + 1
    assert X.data[-1] == 1 / 3


# Malformed files

HMM_ERRORS = [
    (b"1 qid:1 5:1 118:1 97:1", "1:19: expected 'feature:value' with an integer feature above 118, found '97:1' (features must ascend)."),  # noqa: E501
    (b"1 qid:1 2:1\n\n# c\n1 qid:1 3:1 3:1\n", "4:13: expected 'feature:value' with an integer feature above 3, found '3:1' (features must ascend)."),  # noqa: E501
    (b"1 qid:1 0:1\n", "1:9: expected 'feature:value' with an integer feature above 0, found '0:1' (features count from 1)."),
    (b"1 qid:1 -2:1\n", "1:9: expected 'feature:value' with an integer feature above 0, found '-2:1'."),
    (b"1 qid:1 2.5:1\n", "found '2.5:1'"),
    (b"1 qid:1 word:1\n", "found 'word:1'"),
    (b"1 qid:1 7\n", "found '7'."),
    (b"1 qid:1 :1\n", "found ':1'."),
    (b"1 qid:1 1 :1\n", "1:9: expected 'feature:value' with an integer feature above 0, found '1'."),
    (b"1 qid:1 2147483648:1\n", "found '2147483648:1' (the highest feature possible is 2147483647)."),
    (b"1 qid:1 99999999999999999999999:1\n", "(the highest feature possible is 2147483647)."),
    (b"1 qid:1 1:\n", "1:9: expected 'feature:value' with a finite number as value, found '1:'."),
    (b"1 qid:1 1:nan\n", "found '1:nan'."),
    (b"1 qid:1 1:-inf\n", "found '1:-inf'."),
    (b"1 qid:1 1:1e999\n", "found '1:1e999'."),
    (b"1 qid:1 1:0x10\n", "found '1:0x10'."),
    (b"1 qid:1 1:1,5\n", "found '1:1,5'."),
    (b"1 qid:1 1:+-1\n", "found '1:+-1'."),
    (b"1 qid:1 1:1:1\n", "found '1:1:1'."),
    (b"1 qid:1 1:1\x002:1\n", "found '1:1\\x002:1'."),
    (b"1 qid:1 1:1\r2 qid:1 1:1\n", "found '1:1\\x0d2'."),
    (b"1 qid:1 1:1\x0b\n", "found '1:1\\x0b'."),
    (b"1 qid:1 1:1 qid:2\n", "1:13: expected 'feature:value' with an integer feature above 1, found 'qid:2'."),
    (b"1 qid:1 1:1\n0 qid:1 1:1\n", "2:1: expected an integer tag from 1 to 2147483647, found '0'."),
    (b"-1 qid:1 1:1\n", "expected an integer tag from 1 to 2147483647, found '-1'."),
    (b"1.0 qid:1 1:1\n", "found '1.0'."),
    (b"99999999999 qid:1 1:1\n", "found '99999999999'."),
    (b"B-NP qid:1 1:1\n", "found 'B-NP'."),
    (b"\x00\x00\n", "1:1: expected an integer tag from 1 to 2147483647, found '\\x00\\x00'."),
    (b"\xff\xfe1\x00", "found '\\xff\\xfe1\\x00'."),
    (b"x" * 1_000_000, "found '" + "x" * 40 + "...'."),
    (b"1 1:1\n", "1:3: expected 'qid:NUMBER' after the tag, found '1:1'."),
    (b"1\n", "1:2: expected 'qid:NUMBER' after the tag, found the end of the line."),
    (b"1  # qid:1\n", "1:4: expected 'qid:NUMBER' after the tag, found the end of the line."),
    (b"1 qid: 1:1\n", "1:3: expected 'qid:NUMBER' with a 64-bit integer, found 'qid:'."),
    (b"1 qid:1.5 1:1\n", "found 'qid:1.5'."),
    (b"1 qid:9223372036854775808 1:1\n", "found 'qid:9223372036854775808'."),
    (b"", "train.dat: expected at least one example, found none."),
    (b"\n# only a comment\n\n", "train.dat: expected at least one example, found none."),
    (gzip.compress(b"1 qid:1 1:1\n" * 1000, mtime=0)[:-9], "train.dat: expected a whole gzip stream, found"),
    (b"\x1f\x8b\x08", "train.dat: expected a whole gzip stream, found a damaged one"),
    (b"\x1f\x8bgarbage", "train.dat: expected a whole gzip stream, found a damaged one"),
]  # fmt: skip

SVMLIGHT_ERRORS = [
    (b"nan 1:1\n", "1:1: expected a finite number as target, found 'nan'."),
    (b"1e400 1:1\n", "1:1: expected a finite number as target, found '1e400'."),
    (b"+ 1:1\n", "1:1: expected a finite number as target, found '+'."),
    (b"1,2 1:1\n", "found '1,2'."),
    (b"1:1 2:1\n", "1:1: expected a finite number as target, found '1:1'."),
    (b"1 qid:1 1:1\n1 1:1\n", "2:3: expected 'qid:NUMBER' after the target, as on the lines before, found '1:1'."),
    (b"1 qid:1 1:1\n1\n", "2:2: expected 'qid:NUMBER' after the target, as on the lines before, found the end of the line."),
    (b"1 1:1\n1 qid:1 1:1\n", "2:3: expected no qid, as on the lines before, found 'qid:1'."),
    (b"1 sid:3 1:1\n", "found 'sid:3'."),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), HMM_ERRORS)
def test_malformed_svm_hmm_is_refused_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(ValueError, match=r"train\.dat:") as caught:
        read_svm_hmm(path)
    assert str(caught.value).startswith(str(path))
    assert message in str(caught.value)
    assert len(str(caught.value)) < len(str(path)) + 200


@pytest.mark.parametrize(("content", "message"), SVMLIGHT_ERRORS)
def test_malformed_svmlight_is_refused_with_its_place(tmp_path: Path, content: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=r"train\.dat:") as caught:
        read_svmlight(written(tmp_path, content))
    assert message in str(caught.value)


@same_folder
@given(content=st.binary(max_size=200) | st.text("0123456789 :qid#.+-e\n\r\t\0naf", max_size=200).map(str.encode))
def test_any_bytes_are_read_or_refused(tmp_path: Path, content: bytes) -> None:
    path = written(tmp_path, content)
    for read in (read_svm_hmm, read_svmlight):
        try:
            X, y = read(path, n_features=1000, extra_features="ignore")
        except ValueError as error:
            assert str(error).startswith(str(path))  # noqa: PT017
        else:
            assert len(X if isinstance(X, list) else y) == len(y) > 0


def test_a_value_too_large_for_float32_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"expected values within float32, found 1e\+39"):
        read_svmlight(written(tmp_path, b"1 1:1 2:1e39\n"), dtype=np.float32)


def test_a_feature_above_n_features_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.dat:1:7: expected features up to n_features = 4, found '5:1'\."):
        read_svmlight(written(tmp_path, b"1 1:1 5:1\n"), n_features=4)


def test_missing_query_ids_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"train\.dat: expected 'qid:NUMBER' on every line"):
        read_svmlight(written(tmp_path, b"1 1:1\n"), query_id=True)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": 0}, "n_features must be from 1"),
        ({"n_features": 2**31}, "n_features must be from 1"),
        ({"dtype": np.int32}, "dtype must be"),
        ({"extra_features": "drop"}, "extra_features must be"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_svmlight(written(tmp_path, b"1 1:1\n"), **options)


def test_a_missing_file_is_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_svm_hmm(tmp_path / "absent.dat")


# Writing


@st.composite
def sequences(draw: st.DrawFn) -> tuple[list[Any], list[Any]]:
    n_features = draw(st.integers(1, 12))
    lengths = draw(st.lists(st.integers(1, 5), min_size=1, max_size=5))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    elements = st.just(0.0) | st.floats(allow_nan=False, allow_infinity=False, width=32)
    X = [sp.csr_matrix(draw(hnp.arrays(dtype, (n, n_features), elements=elements))) for n in lengths]
    y = [draw(hnp.arrays(np.int64, n, elements=st.integers(1, 2**31 - 1))) for n in lengths]
    return X, y


@pytest.mark.parametrize("name", ["train.dat", "train.dat.gz"])
@same_folder
@given(data=sequences())
def test_what_write_svm_hmm_writes_reads_back_bit_by_bit(tmp_path: Path, name: str, data: Any) -> None:
    X, y = data
    write_svm_hmm(tmp_path / name, X, y)
    X_read, y_read = read_svm_hmm(tmp_path / name, X[0].shape[1], dtype=X[0].dtype)
    assert len(X_read) == len(X)
    for x, x_read, tags, tags_read in zip(X, X_read, y, y_read, strict=True):
        assert_equal_csr(x_read, x)
        np.testing.assert_array_equal(tags_read, tags)
    assert os.listdir(tmp_path).count(name) == len([f for f in os.listdir(tmp_path) if name in f])


@same_folder
@given(
    X=hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2), elements=st.floats(-1e308, 1e308)),
    data=st.data(),
)
def test_what_write_svmlight_writes_reads_back_bit_by_bit(tmp_path: Path, X: Any, data: st.DataObject) -> None:
    y = data.draw(hnp.arrays(np.float64, len(X), elements=st.floats(allow_nan=False, allow_infinity=False)))
    qid = data.draw(st.none() | hnp.arrays(np.int64, len(X)))
    path = tmp_path / "train.dat"
    write_svmlight(path, X, y, query_id=qid)
    X_read, y_read, *rest = read_svmlight(path, X.shape[1], query_id=qid is not None)  # type: ignore[call-overload]
    np.testing.assert_array_equal(X_read.toarray(), X)
    np.testing.assert_array_equal(y_read, y)
    if qid is not None:
        np.testing.assert_array_equal(rest[0], qid)


def test_unsorted_rows_are_written_sorted_and_left_as_they_are(tmp_path: Path) -> None:
    X = sp.csr_matrix((np.array([1.0, 2.0, 4.0]), np.array([2, 0, 2]), np.array([0, 3])), shape=(1, 3))
    write_svmlight(tmp_path / "train.dat", X, [1])
    assert (tmp_path / "train.dat").read_bytes() == b"1 1:2 3:5\n"
    assert X.indices.tolist() == [2, 0, 2]


def test_stored_zeros_are_kept_and_dense_zeros_left_out(tmp_path: Path) -> None:
    path = tmp_path / "train.dat"
    write_svm_hmm(path, [sp.csr_matrix(([0.0], [1], [0, 1]), shape=(1, 2)), [[0, 7]]], [[1], [2]])
    assert path.read_bytes() == b"1 qid:1 2:0\n2 qid:2 2:7\n"


one = np.ones((1, 2))


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([one], [], "X has 1 sequences but y has 0"),
        ([], [], "X has no sequences"),
        ([one, np.ones((13, 2))], [[1], [1] * 12], r"y\[1\] has 12 labels but X\[1\] has 13 rows"),
        ([one, np.ones((1, 3))], [[1], [1]], r"X\[1\] has 3 columns but X\[0\] has 2"),
        ([one, np.ones((0, 2))], [[1], []], r"X\[1\] has no rows"),
        ([one, one * np.nan], [[1], [1]], r"X\[1\] holds nan in row 0"),
        ([np.ones(2)], [[1]], r"X\[0\] has 1 dimensions"),
        ([one * 1j], [[1]], r"X\[0\] has dtype complex128"),
        ([sp.csr_matrix((1, 2**31))], [[1]], r"X\[0\] has 2147483648 columns"),
        ([one], [[0]], r"y\[0\] has tag 0"),
        ([one], [[2**31]], r"y\[0\] has tag 2147483648"),
        ([one], [["B"]], r"y\[0\] has dtype <U1"),
        ([one], [[1.0]], r"y\[0\] has dtype float64"),
        ([one], [[[1]]], r"y\[0\] has shape \(1, 1\)"),
    ],
)
def test_wrong_sequences_are_named_and_the_old_file_stays(tmp_path: Path, X: Any, y: Any, message: str) -> None:
    path = written(tmp_path, b"old")
    with pytest.raises(ValueError, match=message):
        write_svm_hmm(path, X, y)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["train.dat"]


@pytest.mark.parametrize(
    ("X", "y", "query_id", "message"),
    [
        (one, [1, 2], None, r"y has shape \(2,\) but X has 1 rows"),
        (one, [np.inf], None, r"y\[0\] is inf"),
        (one, ["a"], None, "y has dtype <U1"),
        (np.ones((0, 2)), [], None, "X has no rows"),
        (one * np.inf, [1], None, "X holds inf in row 0"),
        (one, [1], [1, 2], r"query_id has shape \(2,\)"),
        (one, [1], [1.5], "query_id has shape .* dtype float64"),
    ],
)
def test_wrong_examples_are_named(tmp_path: Path, X: Any, y: Any, query_id: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write_svmlight(tmp_path / "train.dat", X, y, query_id=query_id)
    assert os.listdir(tmp_path) == []


def test_an_interrupted_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, b"old")

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(KeyboardInterrupt):
        write_svmlight(path, one, [1])
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["train.dat"]


# Real data


@pytest.mark.data
@needs_data
@pytest.mark.parametrize(("name", "n_sequences", "n_tokens"), [("hmm.train.dat", 120, 876), ("hmm.test.dat", 60, 463)])
def test_svm_hmm_samples_have_the_counts_of_the_original_log(name: str, n_sequences: int, n_tokens: int) -> None:
    X, y = read_svm_hmm(Path(str(DATA)) / "svm_struct_samples" / name)
    assert len(X) == n_sequences
    assert sum(x.shape[0] for x in X) == n_tokens
    assert X[0].shape[1] == 129
    assert max(tags.max() for tags in y) == 26


@pytest.mark.data
@needs_data
@pytest.mark.parametrize("name", ["multiclass.train.dat", "multiclass.test.dat", "perf.train.dat", "perf.test.dat"])
def test_svmlight_samples_agree_with_scikit_learn(name: str) -> None:
    datasets = pytest.importorskip("sklearn.datasets")
    path = Path(str(DATA)) / "svm_struct_samples" / name
    X, y = read_svmlight(path)
    X_reference, y_reference = datasets.load_svmlight_file(path, zero_based=False)
    assert_equal_csr(X, X_reference)
    np.testing.assert_array_equal(y, y_reference)


@pytest.mark.data
@needs_data
def test_conll2000_features_are_read_whole() -> None:
    path = Path(str(DATA)) / "features" / "conll2000.train.svmhmm.gz"
    X, lengths, tags = read_svm_hmm(path, stacked=True)
    assert len(lengths) == 8936
    assert X.shape == (211_727, 178_088)
    assert tags.max() == 22
