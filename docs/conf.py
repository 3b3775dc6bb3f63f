"""Sphinx: MyST pages, and an API reference read from the docstrings."""

import re
from importlib.metadata import version as installed_version

project = "steinax"
author = "The steinax developers"
copyright = author
version = release = installed_version("steinax")

extensions = [
    "myst_nb",  # MyST pages; those that begin with `file_format: mystnb` are executed
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
# what other pages include
exclude_patterns = ["_build", "paper/*.md", "benchmarks/scale_*.md", "benchmarks/speed_*.md"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
default_role = "code"
napoleon_numpy_docstring = False

html_static_path = ["_static"]
html_css_files = ["steinax.css"]
html_theme = "pydata_sphinx_theme"
html_title = f"steinax {release}"

DISPLAY = re.compile(r"^( *)\$\$(.+?)\$\$ *$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"\$([^$]+)\$")


def _display(match):
    indent, formula = match[1], " ".join(match[2].split())
    return f"\n{indent}.. math:: {formula}\n"


def _inline(match):
    return f":math:`{' '.join(match[1].split())}`"


def dollar_math(app, what, name, obj, options, lines):
    """Docstrings write mathematics as the pages do, with dollars; reStructuredText has roles."""
    text = DISPLAY.sub(_display, "\n".join(lines))
    lines[:] = INLINE.sub(_inline, text).split("\n")


def setup(app):
    app.connect("autodoc-process-docstring", dollar_math)
