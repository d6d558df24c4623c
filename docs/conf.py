"""The site: `make docs` builds it from these pages and from docstrings, and every warning is an error."""

import re
from pathlib import Path
from typing import Any

import maxrr

project, author, copyright = "MaxRR", "the MaxRR authors", "the MaxRR authors"
version = release = maxrr.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
exclude_patterns = ["_build", "notebooks"]
myst_heading_anchors = 3
html_theme, html_title = "furo", f"MaxRR {release}"
copybutton_exclude = ".linenos, .gp, .go"

autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "set_fit_request, set_score_request, set_predict_request"}
numpydoc_show_class_members = False

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"\[([^\]]*)\]\((?:\.\./)+(?:lab|benchmarks)/[^)\s]+\.md[^)\s]*\)")
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def read_source(app: Any, page: str, text: list[str]) -> None:
    """The README is the front page. Pages that lie in the repository outside docs/ are not on the site."""
    text[0] = OUTSIDE.sub(r"\1", text[0])
    if page == "index":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        text[0] = LINK.sub(moved, readme) + text[0]


def moved(link: re.Match[str]) -> str:
    mark, words, target = link.groups()
    shown = target.startswith("docs/") and not target.endswith(".ipynb")  # notebooks are read where they lie
    return f"{mark}[{words}]({target.removeprefix('docs/')})" if shown else words


def setup(app: Any) -> None:
    app.connect("source-read", read_source)
