"""Imports point one way, wherever in a file they stand: estimators → solvers → problems → core, and models → problems."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin
from maxmargin.estimators._base import MaxMarginEstimator

PACKAGE = Path(maxmargin.__file__).parent
ABOVE_MODELS = {"solvers", "_train", "_path", "_warm_start", "estimators", "files", "datasets"}
ABOVE_PROBLEMS = {"model", "kernel_model", "models"} | ABOVE_MODELS
# What a folder or file of the package must not import.
FORBIDDEN = {
    "_warnings.py": {"_parameters", "problems"} | ABOVE_PROBLEMS,
    "_parameters.py": {"problems"} | ABOVE_PROBLEMS,
    "kernels": {"problems"} | ABOVE_PROBLEMS,
    "graphs.py": ABOVE_PROBLEMS,
    "problems": ABOVE_PROBLEMS,
    "model.py": {"models", "kernel_model"} | ABOVE_MODELS,
    "kernel_model.py": {"models"} | ABOVE_MODELS,
    "models": ABOVE_MODELS,
    "solvers": {"model", "kernel_model", "models", "_train", "_path", "_warm_start", "estimators", "files", "datasets"},
    "_warm_start.py": {"_train", "_path", "estimators", "files", "datasets"},
    "_train.py": {"model", "kernel_model", "models", "_path", "estimators", "files", "datasets"},
    "files": ABOVE_MODELS - {"files"},
    "datasets": ABOVE_MODELS - {"files", "datasets"},
}
# These two bind a model that is written in Python, and know what it is.
EXCEPTIONS = {"problems/python.py": {"model"}, "problems/kernel_parts.py": {"model", "kernel_model"}}


def imported(source):
    """The first names below ``maxmargin`` of all imports in a file, also those inside functions."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module == "maxmargin":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("maxmargin."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("maxmargin."))


@pytest.mark.parametrize("room", FORBIDDEN)
def test_no_import_goes_up(room):
    place = PACKAGE / room
    files = [place] if place.suffix else sorted(place.rglob("*.py"))
    assert files
    for file in files:
        name = file.relative_to(PACKAGE).as_posix()
        wrong = set(imported(file.read_text(encoding="utf-8"))) & FORBIDDEN[room] - EXCEPTIONS.get(name, set())
        assert not wrong, f"{name} imports {sorted(wrong)}"


def test_imports_inside_functions_are_seen():
    source = (
        "def f():\n    from maxmargin.estimators import BinarySVM\n    import maxmargin._train, maxmargin.files.conll"
    )
    assert set(imported(source)) == {"estimators", "_train", "files"}


def test_training_without_scikit_learn_does_not_import_it():
    code = (
        "import sys, maxmargin as mm; mm.train(mm.models.Multiclass(2), [[0.0], [1.0]], [0, 1]); "
        "sys.exit('sklearn' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_estimator_without_its_hooks_cannot_be_made():
    class Hookless(MaxMarginEstimator):
        pass

    with pytest.raises(TypeError, match="abstract"):
        Hookless()
