"""Sphinx configuration: ``make docs`` builds docs/_build/html."""

import importlib.metadata

project = "maxmargin"
author = "The maxmargin developers"
copyright = "The maxmargin developers"
release = importlib.metadata.version("maxmargin")
version = release

extensions = ["myst_parser", "numpydoc", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.mathjax"]
exclude_patterns = ["_build"]

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

# The attributes and methods of a class are written out below it, once.
numpydoc_show_class_members = False
autodoc_default_options = {
    "members": True,
    "inherited-members": "BaseEstimator,ClassifierMixin,ABC",
    # scikit-learn's, whose docstrings refer to its own pages.
    "exclude-members": "get_metadata_routing, set_fit_request, set_score_request, set_predict_request",
}
autodoc_member_order = "bysource"
autodoc_typehints = "none"

html_theme = "pydata_sphinx_theme"
html_title = "maxmargin"
html_theme_options = {"show_toc_level": 2, "navigation_with_keys": False}
