"""Data sets: the bundled one, those in MAXMARGIN_DATA, and what happens when a file is missing or damaged."""

import gzip
import hashlib

import numpy as np
import pytest

from maxmargin import datasets
from maxmargin.datasets import _sources
from maxmargin.datasets.adult_binary import fifths
from maxmargin.features import token_features, word_shape
from maxmargin.files import read_conllu


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty data folder and an empty cache, and no network."""

    def refuse(*args, **kwargs):
        raise OSError("no network in tests")

    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_sources.urllib.request, "urlopen", refuse)
    return tmp_path / "data"


def put(folder, name, content):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize(("tags", "kinds"), [("upos", 17), ("xpos", 49)])
def test_bundled_sample_has_one_tag_per_word(tags, kinds):
    data = datasets.load_ewt_sample(tags=tags)
    assert (len(data.train), len(data.test), data.dev) == (3136, 520, None)
    for part in (data.train, data.test):
        assert [len(words) for words in part.words] == [len(tags) for tags in part.tags]
    assert len({tag for sentence in data.train.tags for tag in sentence}) == kinds


def test_bundled_sample_needs_no_folder_and_no_network(folder):
    assert len(datasets.load_ewt_sample().test) == 520


def test_unknown_tags_are_refused():
    with pytest.raises(ValueError, match=r"tags must be one of \['upos', 'xpos'\], found 'pos'"):
        datasets.load_ewt_sample(tags="pos")


@pytest.mark.data
def test_bundled_sample_is_every_fourth_sentence_of_the_treebank(data_folder):
    data = datasets.load_ewt_sample()
    for part in ("train", "test"):
        whole = read_conllu(data_folder / "ud_english_ewt" / f"en_ewt-ud-{part}.conllu.gz")[::4]
        assert getattr(data, part).words == [[token.form for token in sentence] for sentence in whole]
        assert getattr(data, part).tags == [[token.upos for token in sentence] for sentence in whole]


@pytest.mark.data
@pytest.mark.parametrize(
    ("load", "sentences", "tags"),
    [
        (datasets.load_conll2000, (8936, None, 2012), 22),
        (datasets.load_jnlpba, (18546, None, 3856), 11),
        (datasets.load_bc2gm, (12574, 2519, 5038), 3),
        (datasets.load_wnut17, (3394, 1009, 1287), 13),
        (datasets.load_ud_english_ewt, (12544, 2001, 2077), 17),
    ],
)
def test_corpus_has_its_published_size(data_folder, load, sentences, tags):
    data = load()
    assert (len(data.train), data.dev and len(data.dev), len(data.test)) == sentences
    assert len({tag for sentence in data.train.tags for tag in sentence}) == tags


@pytest.mark.data
def test_ocr_words_are_whole(data_folder):
    data = datasets.load_ocr_letters()
    assert len(data.X) == len(data.y) == len(data.folds) == 6877
    assert sum(map(len, data.y)) == 52152
    assert all(x.shape == (len(y), 128) for x, y in zip(data.X, data.y, strict=True))
    assert sorted(set(data.folds)) == list(range(10))
    assert "".join(data.y[0]) == "ommanding"
    X, y = data.select(0)
    with pytest.raises(ValueError, match="there is no fold 99; the folds are 0 to 9"):
        data.select(0, 99)
    assert len(X) == len(y) == np.count_nonzero(data.folds == 0)


@pytest.mark.data
def test_covtype_has_its_published_shape(data_folder):
    data = datasets.load_covtype()
    assert data.X.shape == (581012, 54)
    assert data.X.dtype == np.float64
    assert np.bincount(data.y).tolist() == [0, 211840, 283301, 35754, 2747, 9493, 17367, 20510]


@pytest.mark.data
def test_adult_has_its_published_size(data_folder):
    data = datasets.load_adult()
    assert (len(data.train.X), len(data.test.X)) == (32561, 16281)
    assert set(data.train.y) == set(data.test.y) == {"<=50K", ">50K"}
    assert data.train.X[0]["age"] == 39.0


# SHA-256 of the files a9a and a9a.t as LIBSVM's page of data sets publishes them.
A9A = {
    "train": "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",
    "test": "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",
}


def libsvm_text(part):
    """The lines LIBSVM's a9a would have for these rows, spaces at their ends included."""
    rows = np.split(part.X.indices + 1, part.X.indptr[1:-1])
    return "".join(
        f"{label:+d} " + "".join(f"{k}:1 " for k in row) + "\n" for label, row in zip(part.y, rows, strict=True)
    )


@pytest.mark.data
def test_binary_adult_is_a9a_to_the_last_bit(data_folder):
    data = datasets.load_adult_binary()
    for name, share_of_positive, nonzeros in [("train", 0.241, 13.87), ("test", 0.236, 13.86)]:
        part = getattr(data, name)
        assert part.X.shape[1] == 123
        assert part.X.format == "csr"
        assert (part.X.dtype, part.y.dtype) == (np.float64, np.int64)
        assert np.all(part.X.data == 1.0)
        assert np.mean(part.y == 1) == pytest.approx(share_of_positive, abs=5e-4)
        assert part.X.nnz / len(part.y) == pytest.approx(nonzeros, abs=5e-3)
        assert hashlib.sha256(libsvm_text(part).encode()).hexdigest() == A9A[name]


@pytest.mark.parametrize(
    ("values", "begins"),
    [
        (range(10), [2, 4, 6, 8]),
        ([0, 1, 1, 1, 1, 2, 3, 4, 5, 6], [1, 2, 3, 5]),  # two quantiles fall on 1, and the second goes behind it
        ([1] * 5 + [2, 3, 4, 5, 6], [2, 3, 5]),  # nothing is below 1, and 2 is taken when the next falls on 1
        ([0] * 9 + [7, 8], [7]),
        ([3, 3], []),
    ],
)
def test_a_fifth_begins_where_its_quantile_falls_or_at_the_next_value(values, begins):
    assert fifths(np.array(values, dtype=float)).tolist() == begins


def test_plain_and_packed_files_are_found(folder):
    put(folder, "conll2000/train.txt", "a DT B-NP\n")
    put(folder, "conll2000/test.txt.gz", gzip.compress(b"b NN I-NP\n"))
    data = datasets.load_conll2000()
    assert data.train == datasets.TaggedSentences([["a"]], [["B-NP"]], [["DT"]])
    assert data.test.words == [["b"]]


def test_missing_file_without_download_says_where_to_put_it(folder):
    with pytest.raises(FileNotFoundError, match=r"jnlpba/Genia4ERtask1.*MAXMARGIN_DATA.*does not hold it"):
        datasets.load_jnlpba()


def test_unset_variable_is_said(folder, monkeypatch):
    monkeypatch.delenv("MAXMARGIN_DATA")
    with pytest.raises(FileNotFoundError, match="MAXMARGIN_DATA, which is not set"):
        datasets.load_ocr_letters()


def test_failed_download_says_where_to_put_the_file(folder):
    with pytest.raises(FileNotFoundError, match=r"could not download https.*no network.*conll2000/train"):
        datasets.load_conll2000()


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_download_is_kept_only_with_the_right_checksum(tmp_path, pack):
    content = pack(b"a DT O\n")
    url = put(tmp_path, "served", content).as_uri()
    target = tmp_path / "cache" / "file"
    right = hashlib.sha256(b"a DT O\n").hexdigest()
    with pytest.raises(ValueError, match="found content with SHA-256"):
        _sources.download(url, target, "0" * 64, "")
    assert not target.parent.exists()
    assert _sources.download(url, target, right, "").read_bytes() == content
    assert [path.name for path in target.parent.iterdir()] == ["file"]


def test_cut_download_is_an_error(tmp_path):
    url = put(tmp_path, "served", gzip.compress(b"a DT O\n")[:-5]).as_uri()
    with pytest.raises(ValueError, match="damaged gzip stream"):
        _sources.download(url, tmp_path / "file", "0" * 64, "")


def test_every_downloadable_file_has_a_checksum():
    for source in _sources.SOURCES.values():
        assert (source.url is None) == (source.sha256 is None)
        assert source.sha256 is None or source.sha256.keys() == source.files.keys()


OCR_ROW = "1\to\t-1\t1\t1\t0\t" + "\t".join(["0"] * 128)
ADULT_ROW = "39, State-gov, 77516, Bachelors, 13, ?, Sales, Husband, White, Male, 0, 0, 40, Cuba, <=50K"


@pytest.mark.parametrize(
    ("load", "name", "content", "message"),
    [
        (datasets.load_conll2000, "conll2000/train.txt", "a DT\n", "train.txt:1: found 2 columns"),
        (datasets.load_jnlpba, "jnlpba/Genia4ERtask1.iob2", "", "found no sentence"),
        (datasets.load_ocr_letters, "ocr_letters/letter.data", "", "found no letter"),
        (
            datasets.load_ocr_letters,
            "ocr_letters/letter.data",
            OCR_ROW + "\t0\n",
            ":1: found 135 columns",
        ),
        (
            datasets.load_ocr_letters,
            "ocr_letters/letter.data",
            OCR_ROW[:-1] + "x",
            ":1: .*expected numbers",
        ),
        (datasets.load_ocr_letters, "ocr_letters/letter.data", b"\xff\n", "letter.data:1: found byte 0xff"),
        (datasets.load_ocr_letters, "ocr_letters/letter.data", gzip.compress(b"1", mtime=0)[:-3], "incomplete gzip"),
        (datasets.load_covtype, "covtype/covtype.data", "1,2\n", r"shape \(1, 2\), expected 55 columns"),
        (datasets.load_covtype, "covtype/covtype.data", "1,x\n", "covtype.data: could not convert"),
        (datasets.load_covtype, "covtype/covtype.data", "", r"shape \(0, 1\), expected 55 columns"),
        (datasets.load_covtype, "covtype/covtype.data", b"\xff\xfe,1\n", "covtype.data: "),
        (datasets.load_covtype, "covtype/covtype.data", gzip.compress(b"1,2\n", mtime=0)[:-3], "covtype.data: "),
        (datasets.load_adult, "adult/adult.data", "1, 2\n", "adult.data:1: found 2 columns"),
        (datasets.load_adult, "adult/adult.data", "\n", "found no record"),
        (datasets.load_adult, "adult/adult.data", ADULT_ROW.replace("39", "old"), "found 'old' for age"),
        (
            datasets.load_adult_binary,
            "adult/adult.data",
            f"{ADULT_ROW}\n{ADULT_ROW.replace('Sales', 'Sailor')}",
            "record 1 of train: found 'Sailor' for occupation, expected one of .*'Sales'",
        ),
        (
            datasets.load_adult_binary,
            "adult/adult.data",
            ADULT_ROW.replace("<=50K", "50K"),
            r"record 0 of train: found label '50K', expected one of \['<=50K', '>50K'\]",
        ),
    ],
)
def test_malformed_file_is_named(folder, load, name, content, message):
    # The other parts are well-formed, so that only the malformed one can be at fault.
    put(folder, "adult/adult.test", ADULT_ROW)
    put(folder, "jnlpba/Genia4EReval1.iob2", "a\tO\n")
    put(folder, "conll2000/test.txt", "a DT O\n")
    put(folder, name, content)
    with pytest.raises(ValueError, match=message):
        load()


def test_adult_leaves_missing_entries_out_and_strips_published_dots(folder):
    put(folder, "adult/adult.data", ADULT_ROW + "\n")
    put(folder, "adult/adult.test", "|1x3 Cross validator\n" + ADULT_ROW + ".\n\n")
    data = datasets.load_adult()
    assert data.train == data.test
    assert "marital-status" not in data.train.X[0]
    assert data.test.y == ["<=50K"]


def test_binary_adult_takes_its_fifths_from_the_training_part(folder):
    ages = [ADULT_ROW.replace("39", str(age)) for age in (20, 30, 40, 50, 60)]
    put(folder, "adult/adult.data", "\n".join(ages))
    put(folder, "adult/adult.test", "\n".join(row.replace("<=50K", ">50K.") for row in [ages[4], ages[1]]))
    data = datasets.load_adult_binary()
    # Numbers that never differ have one feature each, a missing word has none.
    assert data.train.X.shape[1] == data.test.X.shape[1] == 5 + 5 + 99
    assert data.train.X[:, :5].toarray().tolist() == np.eye(5).tolist()
    assert data.test.X[:, :5].toarray().tolist() == np.eye(5)[[4, 1]].tolist()
    assert data.test.y.tolist() == [1, 1]
    assert np.diff(data.train.X.indptr).tolist() == [13] * 5


def square_of(data, n_squares=4):
    return np.floor(data.X + n_squares / 2).astype(int)


@pytest.mark.parametrize("n_squares", [2, 3, 4, 7])
def test_neighbouring_squares_have_the_other_class(n_squares):
    data = datasets.make_checkers(20_000, n_squares=n_squares, noise=0.0)
    board = np.zeros((n_squares, n_squares))
    for (i, j), label in zip(square_of(data, n_squares), data.y, strict=True):
        assert board[i, j] in (0, label)
        board[i, j] = label
    assert board[0, 0] == -1
    assert np.all(board[1:] == -board[:-1])
    assert np.all(board[:, 1:] == -board[:, :-1])


def test_checkers_fill_the_board_evenly():
    data = datasets.make_checkers(160_000, noise=0.0, random_state=3)
    assert data.X.shape == (160_000, 2)
    assert (data.X.dtype, data.y.dtype) == (np.float64, np.int64)
    # Six standard deviations of a count, of a mean of labels and of a mean of places.
    counts = np.bincount(square_of(data) @ [4, 1], minlength=16)
    assert np.all(np.abs(counts - 10_000) < 6 * np.sqrt(10_000))
    assert abs(data.y.mean()) < 6 / 400
    assert np.all(np.abs(data.X.mean(axis=0)) < 6 * np.sqrt(4 / 3) / 400)


def test_noise_moves_points_and_never_labels():
    still, moved = (datasets.make_checkers(100_000, noise=noise, random_state=5) for noise in (0.0, 0.02))
    assert np.array_equal(still.y, moved.y)
    assert (moved.X - still.X).std(axis=0) == pytest.approx(0.02, rel=0.02)


@pytest.mark.parametrize(("n_squares", "noise"), [(4, 0.02), (4, 0.05), (2, 0.02), (8, 0.01)])
def test_noise_carries_the_documented_share_into_the_other_class(n_squares, noise):
    data = datasets.make_checkers(200_000, n_squares=n_squares, noise=noise)
    squares = square_of(data, n_squares).clip(0, n_squares - 1)
    share = np.mean(2 * (squares.sum(axis=1) % 2) - 1 != data.y)
    assert share == pytest.approx(4 * noise / np.sqrt(2 * np.pi) * (1 - 1 / n_squares), rel=0.06)


def test_checkers_repeat_with_their_seed():
    def draw(random_state):
        return datasets.make_checkers(50, random_state=random_state).X

    assert np.array_equal(draw(7), draw(7))
    assert np.array_equal(draw(7), draw(np.random.default_rng(7)))
    assert np.array_equal(draw(None), draw(0))
    assert not np.array_equal(draw(7), draw(8))
    rng = np.random.default_rng(7)
    assert not np.array_equal(draw(rng), draw(rng))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be an integer ≥ 1, found 0"),
        ({"n_samples": 10.0}, "n_samples must be an integer ≥ 1, found 10.0"),
        ({"n_samples": True}, "n_samples must be an integer ≥ 1, found True"),
        ({"n_samples": "10"}, "n_samples must be an integer ≥ 1, found '10'"),
        ({"n_squares": 1}, "n_squares must be an integer from 2 to 1048576, found 1"),
        ({"n_squares": 4.0}, "n_squares must be an integer from 2 to 1048576, found 4.0"),
        ({"n_squares": 10**30}, "n_squares must be an integer from 2 to 1048576, found 10{30}"),
        ({"noise": -0.1}, "noise must be a number from 0 to n_squares = 4, found -0.1"),
        ({"noise": 4.5}, "noise must be a number from 0 to n_squares = 4, found 4.5"),
        ({"noise": float("nan")}, "noise must be a number from 0 to n_squares = 4, found nan"),
        ({"noise": None}, "noise must be a number from 0 to n_squares = 4, found None"),
        ({"random_state": -1}, "random_state must be an integer ≥ 0, a Generator or None, found -1"),
        ({"random_state": "0"}, "random_state must be an integer ≥ 0, a Generator or None, found '0'"),
    ],
)
def test_impossible_boards_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        datasets.make_checkers(**{"n_samples": 10, **arguments})


def test_unlimited_affixes_reach_the_whole_word():
    [features] = token_features(["Tulsa"], max_affix=None, window=0)
    assert [f for f in features if f.startswith("suffix=")] == [
        "suffix=a",
        "suffix=sa",
        "suffix=lsa",
        "suffix=ulsa",
        "suffix=tulsa",
    ]


def test_features_look_at_the_window_and_never_repeat():
    sentence = token_features(["a", "a", "a-1", "ß"], ["X", "X", "Y", "Z"], window=2)
    assert all(len(set(features)) == len(features) for features in sentence)
    assert {"w[-2]=a", "w[+1]=ß", "[+2]outside", "has-digit", "has-hyphen", "pos[-1..]=X Y"} <= set(sentence[2])
    assert token_features([]) == []


WORDS, POS = ["The", "Boeing-747", "flew"], ["D", "N", "V"]


@pytest.mark.parametrize("window", [0, 1, 3])
@pytest.mark.parametrize("max_affix", [0, 2, None])
@pytest.mark.parametrize("pos", [None, POS])
def test_detailed_features_add_to_the_others_and_never_repeat(window, max_affix, pos):
    plain = token_features(WORDS, pos, max_affix=max_affix, window=window)
    detailed = token_features(WORDS, pos, max_affix=max_affix, window=window, detailed=True)
    for few, many in zip(plain, detailed, strict=True):
        assert many[: len(few)] == few
        assert len(set(many)) == len(many) > len(few)


def test_detailed_features_join_what_is_adjacent():
    first, middle, last = token_features(WORDS, POS, window=2, max_affix=3, detailed=True)
    assert {
        "written=Boeing-747",
        "ends=boe 747",
        "letters[+0]=Xxxxxx-ddd",
        "letters[-1]=Xxx",
        "letters[+1]=xxxx",
    } <= set(middle)
    assert {
        "w[-1..+0]=the boeing-747",
        "w[+1..+2]=flew OUTSIDE",
        "w[-1..+1]=the boeing-747 flew",
        "w[-1,+1]=the flew",
    } <= set(middle)
    assert {"shape[-1..+0]=Xx Xx-d", "shape[-1..+1]=Xx Xx-d x", "ending[+0..+1]=747 lew", "pos[-1..+1]=D N V"} <= set(
        middle
    )
    assert {"prefix[-1]=th", "suffix[+1]=lew"} <= set(middle)
    assert {"w[-2..-1]=OUTSIDE OUTSIDE", "pos[-2..+0]=OUTSIDE OUTSIDE D"} <= set(first)
    assert {"w[+0..+1]=flew OUTSIDE", "suffix[-1]=747"} <= set(last)
    assert not any(name.startswith(("prefix[-1]", "letters[-1]")) for name in first)


def test_no_word_passes_for_the_end_of_a_sentence():
    [alone], [first, _] = (token_features(words, detailed=True) for words in (["x"], ["x", "outside"]))
    assert "w[+0..+1]=x OUTSIDE" in alone
    assert "w[+0..+1]=x outside" in first


def test_tags_given_as_features_may_be_numbers():
    assert "pos[-1..+1]=7 8 OUTSIDE" in token_features(["a", "b"], [7, 8], window=2, detailed=True)[1]


def test_detailed_features_without_a_window_are_of_the_word_alone():
    alone = token_features(WORDS, window=0, max_affix=0, detailed=True)[1]
    details = ["written=Boeing-747", "ends=boe 747", "letters[+0]=Xxxxxx-ddd"]
    assert alone == ["bias", "w=boeing-747", "shape=Xx-d", "has-digit", "has-hyphen", *details]


def test_digits_of_any_script_have_a_shape():
    assert word_shape("A4٣²ǅ") == "Xdx"


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (["ab"], {}, "found the string 'ab'"),
        ([["a"], ["X", "Y"]], {}, "pos has 2 tags but words has 1 words"),
        ([["a"]], {"max_affix": -1}, "max_affix"),
        ([["a"]], {"window": -1}, "window"),
    ],
)
def test_impossible_feature_requests_are_refused(arguments, options, message):
    with pytest.raises(ValueError, match=message):
        token_features(*arguments, **options)


def test_data_sets_print_in_a_line():
    text = repr(datasets.load_ewt_sample())
    assert text == (
        "TaggingData(train: TaggedSentences(words: 3,136, tags: 3,136, pos: None), "
        "test: TaggedSentences(words: 520, tags: 520, pos: None), dev: None)"
    )
    assert repr(datasets.Table(np.zeros((3, 2)), np.zeros(3))) == "Table(X: 3 × 2, y: 3)"
