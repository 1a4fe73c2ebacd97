"""The gallery: every page has a title, every example runs, in small, and those that need a corpus say so."""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

# Examples with the options that make them small, and what they must say.
SMALL = {
    "tagger_demo.py": (["--sentences", "100"], "New sentences"),
    "checkers.py": (["--points", "300"], "sampled cuts, constant"),
    "segmentation/horses.py": (["--images", "4"], "GraphSVM"),
    "segmentation/cows.py": (["--cows", "5", "--horses", "3"], "trained on horses"),
    "side_chains/learn_energies.py": (["--proteins", "2"], "weights learned"),
}
# Small as they are, and run by test_shipped_models.
MODELS = ["models/f1_sets.py", "models/matching.py", "models/multilabel.py"]
PAGES = [*SMALL, *MODELS]


def configuration() -> dict[str, object]:
    return runpy.run_path(str(ROOT / "docs" / "conf.py"))


def test_every_script_is_a_page_or_named_as_none():
    # As sphinx-gallery looks for them: in examples/ and its folders that have a header.
    scripts = {path for header in EXAMPLES.rglob("GALLERY_HEADER.rst") for path in header.parent.glob("*.py")}
    pages = {path.relative_to(EXAMPLES).as_posix() for path in scripts if path.stem not in configuration()["NO_PAGES"]}
    assert pages == set(PAGES)
    assert scripts == set(EXAMPLES.rglob("*.py"))


def test_what_is_named_as_no_page_exists():
    assert {path.stem for path in EXAMPLES.rglob("*.py")} >= set(configuration()["NO_PAGES"])


@pytest.mark.parametrize("example", PAGES)
def test_page_has_an_underlined_title_and_text(example):
    docstring = ast.get_docstring(ast.parse((EXAMPLES / example).read_text(encoding="utf-8")), clean=False)
    title, line, blank, *text = docstring.lstrip("\n").split("\n")
    assert set(line) == {"="}
    assert len(line) == len(title)
    assert not blank
    assert len(" ".join(text)) > 100


@pytest.mark.parametrize("example", PAGES)
def test_example_that_needs_a_corpus_says_so(example):
    docstring = ast.get_docstring(ast.parse((EXAMPLES / example).read_text(encoding="utf-8")))
    assert (example in configuration()["CORPORA"]) == ("MAXMARGIN_DATA" in docstring)


def test_without_corpora_only_examples_that_need_none_are_run(monkeypatch, tmp_path):
    monkeypatch.setenv("MAXMARGIN_DATA", str(tmp_path))
    conf = configuration()
    pattern = conf["sphinx_gallery_conf"]["filename_pattern"]
    is_run = {example: re.search(pattern, f"{EXAMPLES.as_posix()}/{example}") is not None for example in PAGES}
    assert is_run == {example: example not in conf["CORPORA"] for example in PAGES}
    for name in {name for names in conf["CORPORA"].values() for name in names}:
        (tmp_path / name).mkdir()
    pattern = configuration()["sphinx_gallery_conf"]["filename_pattern"]
    assert all(re.search(pattern, f"{EXAMPLES.as_posix()}/{example}") for example in PAGES)


def run_in_small(example: str, folder: Path) -> None:
    options, said = SMALL[example]
    draws = "matplotlib" in (EXAMPLES / example).read_text(encoding="utf-8")
    pictures = ["--output", str(folder)] if draws else []
    command = [sys.executable, str(EXAMPLES / example), *options, *pictures]
    # In a process of its own: options, imports from beside the script and pictures are those of a user.
    environment = os.environ | {"MPLBACKEND": "Agg"}
    ended = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=300)
    assert ended.returncode == 0, ended.stderr
    assert said in ended.stdout
    assert bool(list(folder.glob("*.png"))) == draws


@pytest.mark.parametrize("example", [example for example in SMALL if example not in configuration()["CORPORA"]])
def test_example_runs_in_small(example, tmp_path):
    if "matplotlib" in (EXAMPLES / example).read_text(encoding="utf-8"):
        pytest.importorskip("matplotlib")
    run_in_small(example, tmp_path)


@pytest.mark.data
@pytest.mark.parametrize("example", configuration()["CORPORA"])
def test_example_of_a_corpus_runs_in_small(example, tmp_path, data_folder):
    for module in ("matplotlib", "PIL", "skimage"):
        pytest.importorskip(module)
    run_in_small(example, tmp_path)
