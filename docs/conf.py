"""Sphinx configuration: ``make docs`` builds docs/_build/html."""

import importlib.metadata
import os
import re
from pathlib import Path

project = "maxmargin"
author = "The maxmargin developers"
copyright = "The maxmargin developers"
release = importlib.metadata.version("maxmargin")
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# The attributes and methods of a class are written out below it, once.
numpydoc_show_class_members = False
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator,ClassifierMixin,ABC",
    # scikit-learn's, whose docstrings refer to its own pages.
    "exclude-members": "get_metadata_routing, set_fit_request, set_partial_fit_request, set_score_request, set_predict_request",
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_theme_options = {
    "show_toc_level": 2,
    "navigation_with_keys": False,
    # Examples need the room.
    "secondary_sidebar_items": {"*": ["page-toc", "sourcelink"], "gallery/**": []},
}
html_static_path = ["_static"]
html_css_files = ["gallery.css"]

# --- The gallery: examples/ is run and becomes docs/gallery ---

# What an example needs of the folder named by MAXMARGIN_DATA; where that is missing, its page shows the code alone.
CORPORA = {
    "segmentation/horses.py": ["weizmann_horses"],
    "segmentation/cows.py": ["msrc_cow_coseg", "weizmann_horses"],
    "side_chains/learn_energies.py": ["sidechain_caspfm56"],
}
# Modules that examples import, and the example that the page "Your own model" shows whole.
NO_PAGES = [
    *("methods", "potts_cut", "superpixels"),
    *("chemistry", "energies", "instances", "predictions", "rotamers"),
    "own_model_in_30_lines",
]


def has_corpora(names):
    """Return whether the folder of the corpora has all of these."""
    folder = os.environ.get("MAXMARGIN_DATA")
    return folder is not None and all((Path(folder) / name).is_dir() for name in names)


WITHOUT_CORPORA = [re.escape(example) for example, names in CORPORA.items() if not has_corpora(names)]

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    # Looked for in paths: all are run but those that end like one of these.
    "filename_pattern": rf"^(?!.*/({'|'.join(WITHOUT_CORPORA) or 'none'})$)",
    # Looked for in names of files.
    "ignore_pattern": rf"^({'|'.join(NO_PAGES)})\.py$",
    # Scripts take options, and some import modules beside them: neither goes into a notebook.
    "notebook_extensions": set(),
    "download_all_examples": False,
    "write_computation_times": False,
    "show_signature": False,
    "image_srcset": ["2x"],
}
