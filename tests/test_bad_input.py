"""Bad and extreme input: what each gives, an error that teaches or the right result.

The cases, in bad_input_estimators.py, bad_input_graphs.py and bad_input_models.py, are the rows of docs/bad_input.md;
``python tests/test_bad_input.py`` writes its tables anew.
"""

from __future__ import annotations

import os
import re
import tempfile
import warnings
from pathlib import Path
from typing import Any

import bad_input_estimators  # noqa: F401 - fills SECTIONS, as do the next ones
import bad_input_graphs  # noqa: F401
import bad_input_models  # noqa: F401
import pytest
from bad_input_kit import SECTIONS, Case, levels, structural

PAGE = Path(__file__).parent.parent / "docs" / "bad_input.md"
_TABLES = re.compile(r"(<!-- cases: [^\n]*-->\n)(.*?)(<!-- end of cases -->)", re.DOTALL)

CASES = [case for cases in SECTIONS.values() for case in cases]


# -------------------------------------------------------------------------------------------------------- the tests


def outcome(case: Case) -> Any:
    """Run a case in the current folder: its error, or what it returned."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = case.call()
        except Exception as error:
            return error
    unexpected = [w for w in caught if case.warns is None or not issubclass(w.category, case.warns)]
    assert not unexpected, f"unexpected warning: {unexpected[0].message}"
    assert case.warns is None or caught, f"no {case.warns.__name__}"
    return found


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=[pytest.mark.core] if case.core else []) for case in CASES]
)
def test_bad_input_gives_what_the_page_says(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = outcome(case)
    if case.error is None:
        assert not isinstance(found, Exception), repr(found)
        assert found
    else:
        assert isinstance(found, case.error), repr(found)
        assert case.text in str(found)


def test_errors_of_user_code_say_which_example():
    with pytest.raises(ZeroDivisionError) as caught:
        structural(levels(loss=lambda self, a, b: 1 / 0))
    assert any(re.match(r"while searching example \d+ for its", note) for note in caught.value.__notes__)


def table(cases: list[Case], messages: dict[str, str]) -> str:
    """Return the table of one section."""
    lines = ["| case | you pass | you get |", "|---|---|---|"]
    for case in cases:
        got = case.result if case.error is None else f"{case.error.__name__}: {messages[case.id]}"
        lines.append(f"| `{case.id}` | {case.given} | {got} |")
    return "\n".join(lines)


def rows_of_page() -> dict[str, str]:
    found = _TABLES.search(PAGE.read_text(encoding="utf-8"))
    assert found is not None
    return dict(re.findall(r"^\| `([^`]+)` \| (.*) \|$", found.group(2), re.MULTILINE))


def test_the_page_has_every_case_and_no_other():
    assert len({case.id for case in CASES}) == len(CASES) >= 40
    assert list(rows_of_page()) == [case.id for case in CASES], "run `python tests/test_bad_input.py` to write the page"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_page_quotes_the_message(case):
    row = rows_of_page()[case.id].replace("\\|", "|")
    assert case.given in row
    assert (case.text or case.result) in row


def write_page() -> None:
    """Run all cases and write the tables of the page anew."""
    messages = {}
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for case in CASES:
            if case.error is not None:
                # Only the first line: scikit-learn goes on with advice, and with the data. No path of this machine.
                first = str(outcome(case)).splitlines()[0].rstrip(":")
                messages[case.id] = re.sub(r' at path ".*"', "", first).replace("|", "\\|")
        os.chdir(PAGE.parent)
    body = "\n\n".join(f"## {title}\n\n{table(cases, messages)}" for title, cases in SECTIONS.items())
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(_TABLES.sub(lambda m: f"{m.group(1)}\n{body}\n\n{m.group(3)}", text), encoding="utf-8")


if __name__ == "__main__":
    write_page()
