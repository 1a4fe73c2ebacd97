"""Where data files are found: the user's folder, then the cache, then the data set's public home.

`SOURCES` is the whole table.  A file is named by its folder and name under ``MAXMARGIN_DATA``, plain or with
``.gz``.  Checksums are of the unpacked content, so that packing it again changes nothing.
"""

import gzip
import hashlib
import os
import tempfile
import urllib.request
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from maxmargin.files._lines import GZIP_MAGIC

FOLDER_VARIABLE = "MAXMARGIN_DATA"
TIMEOUT_SECONDS = 60


@dataclass(frozen=True)
class Source:
    """A data set: its page, its files, and for those free to download a URL prefix and checksums."""

    home: str
    files: dict[str, str]
    url: str | None = None
    url_suffix: str = ""
    sha256: dict[str, str] | None = None


SOURCES = {
    # Checksums of CoNLL-2000 agree with those in JuliaText/CorpusLoaders.jl and (as MD5) pytorch/text.
    "conll2000": Source(
        home="https://www.clips.uantwerpen.be/conll2000/chunking/",
        files={"train": "train.txt", "test": "test.txt"},
        url="https://www.clips.uantwerpen.be/conll2000/chunking/",
        url_suffix=".gz",
        sha256={
            "train": "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea",
            "test": "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628",
        },
    ),
    "ud_english_ewt": Source(
        home="https://github.com/UniversalDependencies/UD_English-EWT",
        files={
            "train": "en_ewt-ud-train.conllu",
            "dev": "en_ewt-ud-dev.conllu",
            "test": "en_ewt-ud-test.conllu",
        },
        url="https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.15/",
        sha256={
            "train": "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
            "dev": "531a54ff90d6ab12201c5a50c3e78e6ddac4de69abc4bce5d275d3cd29efe2b6",
            "test": "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
        },
    ),
    "jnlpba": Source(
        home="http://www.geniaproject.org/shared-tasks/bionlp-jnlpba-shared-task-2004",
        files={"train": "Genia4ERtask1.iob2", "test": "Genia4EReval1.iob2"},
    ),
    "bc2gm": Source(
        home="https://biocreative.bioinformatics.udel.edu/",
        files={"train": "train.tsv", "dev": "devel.tsv", "test": "test.tsv"},
    ),
    "wnut17": Source(
        home="https://noisy-text.github.io/2017/emerging-rare-entities.html",
        files={
            "train": "wnut17train.conll",
            "dev": "emerging.dev.conll",
            "test": "emerging.test.annotated",
        },
    ),
    "ocr_letters": Source(home="https://ai.stanford.edu/~btaskar/ocr/", files={"all": "letter.data"}),
    "covtype": Source(home="https://archive.ics.uci.edu/dataset/31/covertype", files={"all": "covtype.data"}),
    "adult": Source(
        home="https://archive.ics.uci.edu/dataset/2/adult",
        files={"train": "adult.data", "test": "adult.test"},
    ),
    "weizmann_horses": Source(
        home="https://www.msri.org/people/members/eranb/",
        files={"all": "weizmann_horses_328_resized.tar"},
    ),
    "msrc_cow_coseg": Source(
        home="https://www.microsoft.com/en-us/research/project/image-understanding/",
        files={"all": "msrc_cow_30.tar"},
    ),
    "sidechain_caspfm56": Source(home="https://predictioncenter.org/", files={"all": "caspfm56_pdb.tar"}),
}


def find_file(name: str, part: str) -> Path | None:
    """Return the file under ``MAXMARGIN_DATA`` or in the cache, or None where neither has it."""
    file = SOURCES[name].files[part]
    folders = [cache_folder() / name]
    if named := os.environ.get(FOLDER_VARIABLE):
        folders.insert(0, Path(named) / name)
    for folder in folders:
        for path in (folder / file, folder / f"{file}.gz"):
            if path.is_file():
                return path
    return None


def get_file(name: str, part: str) -> Path:
    """Return the path of one part of a data set, downloading it where it is free to download.

    Raises
    ------
    FileNotFoundError
        If the file is not at hand and the set has no free download, or the download failed.
    ValueError
        If a downloaded file has another checksum than the table's.
    """
    if (path := find_file(name, part)) is not None:
        return path
    source = SOURCES[name]
    file = source.files[part]
    if source.url is None or source.sha256 is None:
        raise FileNotFoundError(
            f"{name} is not at hand and has no automatic download; its home is {source.home}. " + _hint(name, file)
        )
    published = file + source.url_suffix
    target = cache_folder() / name / published
    return download(source.url + published, target, source.sha256[part], _hint(name, file))


def download(url: str, target: Path, sha256: str, hint: str) -> Path:
    """Fetch `url` into `target` if its unpacked content has the checksum; write beside, then rename."""
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT_SECONDS) as answer:
            content: bytes = answer.read()
    except (OSError, HTTPException) as error:
        raise FileNotFoundError(f"could not download {url} ({error}). {hint}") from error
    try:
        unpacked = gzip.decompress(content) if content.startswith(GZIP_MAGIC) else content
        found = hashlib.sha256(unpacked).hexdigest()
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{url}: found a damaged gzip stream ({error}). {hint}") from error
    if found != sha256:
        raise ValueError(f"{url}: found content with SHA-256 {found}, expected {sha256}. {hint}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as beside:
        path = Path(beside) / target.name
        path.write_bytes(content)
        os.replace(path, target)
    return target


def cache_folder() -> Path:
    """Return where downloads are kept: ``$XDG_CACHE_HOME/maxmargin``, by default ``~/.cache/maxmargin``."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "maxmargin"


def parts(name: str) -> Iterator[tuple[str, Path]]:
    """Yield ``(part, path)`` for every file of a data set."""
    for part in SOURCES[name].files:
        yield part, get_file(name, part)


def _hint(name: str, file: str) -> str:
    folder = os.environ.get(FOLDER_VARIABLE)
    state = f"is {folder!r} and does not hold it" if folder else "is not set"
    return (
        f"Put the file at {name}/{file} (or {name}/{file}.gz) in a folder of your choice and name that "
        f"folder in the environment variable {FOLDER_VARIABLE}, which {state}."
    )
