"""Sphinx: MyST pages, and an API reference read from the docstrings."""

import os
import re
from importlib.metadata import version as installed_version

from docutils import nodes
from sphinx import addnodes

project = "steinax"
author = "The steinax developers"
copyright = author
version = release = installed_version("steinax")
DESCRIPTION = (
    "Stein control variates for MCMC in Python: posterior expectations with a smaller Monte Carlo error, "
    "and an honest error bar, from draws and gradients of PyMC, nutpie, NumPyro, BlackJAX and Stan."
)

extensions = [
    "myst_nb",  # MyST pages; those that begin with `file_format: mystnb` are executed
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
exclude_patterns = [
    "_build",
    # what other pages include
    "benchmarks/expect.md",
    "benchmarks/everyday_*.md",
    "benchmarks/beyond_*.md",
    "benchmarks/scale_*.md",
    "benchmarks/speed_*.md",
    "paper/*.md",
    "pictures/landing.md",
]
# Tables of all cells, commands and notes for maintainers are linked from where they belong, and are not in
# the navigation: tests/documentation/test_navigation.py checks both.
suppress_warnings = ["toc.not_included"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3

nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
os.environ["COLUMNS"] = "80"  # what cells print is as wide as the column of text

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autosummary_generate = False  # tables of names only: the page itself has the rest
default_role = "code"
napoleon_numpy_docstring = False

html_static_path = ["_static"]
html_css_files = ["steinax.css"]
html_favicon = "_static/mark.svg"
html_theme = "pydata_sphinx_theme"
html_title = "steinax"
html_copy_source = False
html_context = {"default_mode": "auto"}
html_sidebars = {"index": [], "tour": [], "faq": [], "examples/*": []}
html_theme_options = {
    "logo": {
        "text": "steinax",
        "image_light": "_static/mark.svg",
        "image_dark": "_static/mark.svg",
    },
    "header_links_before_dropdown": 6,
    "navigation_with_keys": False,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}
myst_html_meta = {
    "description": DESCRIPTION,
    "property=og:description": DESCRIPTION,
    "property=og:site_name": "steinax",
    "property=og:type": "website",
}

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


def sections_of_entries(app, doctree):
    """A search shows where its words are in the section of an index entry, as the entry itself is empty."""
    for node in doctree.findall(addnodes.index):
        section = node.parent
        if isinstance(section, nodes.section):
            node["entries"] = [
                (kind, word, section["ids"][0] if at.startswith("index-") else at, *others)
                for kind, word, at, *others in node["entries"]
            ]


def setup(app):
    app.connect("autodoc-process-docstring", dollar_math)
    app.connect("doctree-read", sections_of_entries)
