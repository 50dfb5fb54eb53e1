"""The site: `make site`, then open docs/_build/html/index.html. It needs the extra `docs`."""

from importlib.metadata import version as installed

project = "ofslib"
copyright = "the ofslib developers"
author = "the ofslib developers"
version = release = installed("ofslib")

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = ["_build", "_*.md", "**.ipynb_checkpoints"]
myst_enable_extensions = ["amsmath", "colon_fence", "dollarmath"]
myst_heading_anchors = 4
nb_execution_mode = "off"  # stored outputs are shown
nitpicky = False

autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

html_theme = "pydata_sphinx_theme"
html_title = "ofslib"
html_static_path = ["_static"]
html_theme_options = {
    "navbar_align": "left",
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
