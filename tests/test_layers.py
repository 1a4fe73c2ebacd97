"""Imports point one way, wherever in a file they stand: estimators → solvers → models → core."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import maxmargin
from maxmargin.estimators._base import MaxMarginEstimator

PACKAGE = Path(maxmargin.__file__).parent
# What a folder or file of the package must not import.
FORBIDDEN = {
    "_warnings.py": {
        "_parameters",
        "problem",
        "model",
        "models",
        "solvers",
        "train",
        "estimators",
        "files",
        "datasets",
    },
    "_parameters.py": {"problem", "model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "kernels": {"problem", "kernel_problem", "model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "graphs.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "graph_problem.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "kernel_scores.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "kernel_parts.py": {"models", "solvers", "train", "estimators", "files", "datasets"},
    "kernel_model.py": {"models", "solvers", "train", "estimators", "files", "datasets"},
    "kernel_problem.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "kernel_cuts.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "expansion_weights.py": {"problem", "model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "low_rank_problem.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "problem.py": {"model", "models", "solvers", "train", "estimators", "files", "datasets"},
    "model.py": {"solvers", "train", "estimators", "files", "datasets"},
    "models": {"solvers", "train", "estimators", "files", "datasets"},
    "solvers": {"model", "models", "python_problem", "train", "estimators", "files", "datasets"},
    "train.py": {"model", "models", "estimators", "files", "datasets"},
    "files": {"solvers", "train", "estimators", "datasets"},
    "datasets": {"solvers", "train", "estimators"},
}


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
        wrong = set(imported(file.read_text(encoding="utf-8"))) & FORBIDDEN[room]
        assert not wrong, f"{file.relative_to(PACKAGE)} imports {sorted(wrong)}"


def test_imports_inside_functions_are_seen():
    source = (
        "def f():\n    from maxmargin.estimators import BinarySVM\n    import maxmargin.train, maxmargin.files.conll"
    )
    assert set(imported(source)) == {"estimators", "train", "files"}


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
