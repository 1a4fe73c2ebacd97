"""The pages: their code runs, and what they say of options, fields and examples is so.

``python tests/test_docs.py`` writes the table of options in docs/solvers.md anew.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import maxmargin as mm
from maxmargin import datasets
from maxmargin.files import read_svm_hmm, read_svmlight
from maxmargin.solvers import SOLVERS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SOLVERS_PAGE = ROOT / "docs" / "solvers.md"
_BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_OPTIONS = re.compile(r"(<!-- options: [^\n]*-->\n)(.*?)(<!-- end of options -->)", re.DOTALL)


def python_blocks(page: Path) -> list[tuple[str, str]]:
    """Return the code blocks of a page, each with the place it begins at."""
    text = page.read_text(encoding="utf-8")
    return [(f"{page.name}:{text[: m.start()].count(chr(10)) + 2}", m.group(1)) for m in _BLOCK.finditer(text)]


def shortened(data: datasets.TaggingData, n_train: int = 300, n_test: int = 100) -> datasets.TaggingData:
    """Return the beginning of a corpus."""

    def first(part: datasets.TaggedSentences, n: int) -> datasets.TaggedSentences:
        return datasets.TaggedSentences(part.words[:n], part.tags[:n])

    return datasets.TaggingData(train=first(data.train, n_train), test=first(data.test, n_test))


@pytest.mark.parametrize("page", [page for page in PAGES if python_blocks(page)], ids=lambda page: page.name)
def test_code_of_page_runs_in_sequence(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The pages train on the whole sample, which takes too long for a test; the code is the same.
    sample = shortened(datasets.load_ewt_sample())
    monkeypatch.setattr(datasets, "load_ewt_sample", lambda: sample)
    namespace: dict[str, object] = {"__name__": page.stem}
    for place, code in python_blocks(page):
        try:
            exec(compile(code, place, "exec"), namespace)
        except Exception as error:
            error.add_note(f"in the block at {place}")
            raise


_NAME = r"[A-Z][a-z]+(?:-[A-Z][a-z]+)?"
_CITED = re.compile(rf"(?<!MIT )\b({_NAME})(?:, {_NAME})*(?: et al\.| and (?:de )?{_NAME})? \(?((?:19|20)\d\d)\b")


def test_what_is_cited_by_authors_and_year_is_in_the_references():
    before, after = SOLVERS_PAGE.read_text(encoding="utf-8").split("## References")
    references = after.split("\n- ")
    code = [path for kind in ("src/**/*.py", "cpp/**/*.cpp", "cpp/**/*.hpp") for path in ROOT.glob(kind)]
    texts = [before, *(path.read_text(encoding="utf-8") for path in [*code, *PAGES] if path != SOLVERS_PAGE)]
    cited = {match.groups() for text in texts for match in _CITED.finditer(text)}
    assert len(cited) > 30
    unknown = {
        f"{author} {year}" for author, year in cited if not any(author in item and year in item for item in references)
    }
    assert not unknown


def options_table() -> str:
    """Return the table of all solvers' options as Markdown."""
    lines = ["| solver | option | default | value | meaning |", "|---|---|---|---|---|"]
    for name, solver in SOLVERS.items():
        for key, option in solver.options.items():
            lines.append(f"| `{name}` | `{key}` | {option.default!r} | {option.expected} | {option.meaning} |")
    return "\n".join(lines) + "\n"


def test_options_table_is_that_of_the_solvers():
    found = _OPTIONS.search(SOLVERS_PAGE.read_text(encoding="utf-8"))
    assert found is not None
    assert found.group(2) == options_table(), "run `python tests/test_docs.py` to write the table anew"


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_history_field_is_explained_and_no_other(solver):
    page = SOLVERS_PAGE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`[^|]*`) \| ([^|]*) \| [^|]*\|$", page.split("## The history")[1], re.MULTILINE)
    explained = {
        field
        for fields, solvers in rows
        if solvers == "all" or solver in solvers
        for field in re.findall(r"`(\w+)`", fields)
    }
    X, y = np.eye(3), [0, 1, 2]
    loss = min(SOLVERS[solver].losses, default="hinge")
    kernel = mm.Kernel("linear") if "kernel" in SOLVERS[solver].needs else None
    solution = mm.train(mm.models.Multiclass(3, kernel=kernel), X, y, C=1.0, solver=solver, loss=loss, tol=0.05)
    assert set(solution.history[-1]) == explained


def test_own_model_on_the_page_is_the_example():
    (_, block), *_ = python_blocks(ROOT / "docs" / "own_model.md")
    assert block == (ROOT / "examples" / "own_model_in_30_lines.py").read_text(encoding="utf-8")


def test_own_model_has_30_lines():
    assert len((ROOT / "examples" / "own_model_in_30_lines.py").read_text(encoding="utf-8").splitlines()) <= 30


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_demo_parses_its_arguments():
    run = [sys.executable, str(ROOT / "examples" / "tagger_demo.py"), "--help"]
    assert "threads" in subprocess.run(run, capture_output=True, text=True, check=True).stdout


# ------------------------------------------- C and its conventions, against the logs of the original programs


def sample_file(name: str) -> Path:
    path = Path(os.environ.get("MAXMARGIN_DATA", "")) / "svm_struct_samples" / name
    if not path.is_file():
        pytest.skip("needs svm_struct_samples in MAXMARGIN_DATA")
    return path


def assert_same_optimum(log: Path, certificate: mm.Certificate, scale: float = 1.0) -> None:
    """Two intervals that both hold the optimum must meet, and each must be narrow enough to say something."""
    text = log.read_text()
    dual, primal = (scale * float(re.search(rf"{key}=([\d.]+)", text).group(1)) for key in ("dval", "pval"))
    assert certificate.converged
    assert (primal - dual) / primal < 0.03
    assert dual <= certificate.primal
    assert certificate.dual <= primal


@pytest.mark.data
@pytest.mark.parametrize(("factor", "agrees"), [(1.0, True), (1.1, False)])
def test_svm_hmm_is_c_over_n(factor, agrees):
    X, lengths, y = read_svm_hmm(sample_file("hmm.train.dat"), stacked=True)
    labels = np.split(y - 1, np.cumsum(lengths)[:-1])
    C = factor * 10.0 / len(lengths)
    solution = mm.train(mm.models.Chain(int(y.max())), mm.models.Sequences(X, lengths), labels, C=C)
    if agrees:
        assert_same_optimum(sample_file("hmm.learn.log"), solution.certificate)
    else:  # the logs are precise enough to tell a C that is 10 % off
        with pytest.raises(AssertionError):
            assert_same_optimum(sample_file("hmm.learn.log"), solution.certificate)


@pytest.mark.data
@pytest.mark.parametrize(("cost", "scale"), [(100.0, 1.0), (1.0, 1e-4)])
def test_svm_multiclass_is_c_over_n_with_loss_100_and_c_over_100n_with_loss_1(cost, scale):
    X, y = read_svmlight(sample_file("multiclass.train.dat"))
    C = 1000.0 / (len(y) * 100.0 / cost)
    solution = mm.train(mm.models.Multiclass(7, cost=cost), X, y.astype(int) - 1, C=C)
    assert_same_optimum(sample_file("multiclass.learn.log"), solution.certificate, scale)


@pytest.mark.data
def test_svm_perf_is_100_c_over_n():
    X, y = read_svmlight(sample_file("perf.train.dat"))
    with_constant = sp.csr_matrix(sp.hstack([X, np.ones((len(y), 1))]))
    solution = mm.train(mm.models.Binary(), with_constant, y.astype(int), C=100.0 * 20.0 / len(y))
    assert_same_optimum(sample_file("perf.learn.log"), solution.certificate)


if __name__ == "__main__":
    text = SOLVERS_PAGE.read_text(encoding="utf-8")
    SOLVERS_PAGE.write_text(_OPTIONS.sub(lambda m: m.group(1) + options_table() + m.group(3), text), encoding="utf-8")
