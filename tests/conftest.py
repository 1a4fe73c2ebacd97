"""What several test files ask for."""

import os
from pathlib import Path

import pytest


@pytest.fixture
def data_folder():
    """The folder of the corpora; without it the test is skipped."""
    folder = os.environ.get("MAXMARGIN_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("needs the corpora: set MAXMARGIN_DATA to their folder")
    return Path(folder)
