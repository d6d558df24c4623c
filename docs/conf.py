"""The site: `make docs` builds it from these pages and from docstrings, and every warning is an error."""

import re
from pathlib import Path
from typing import Any

from typer import Context
from typer.cli import get_docs_for_click

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
LINK = re.compile(r"(!?)\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def read_source(app: Any, page: str, text: list[str]) -> None:
    """The README is the front page. What it points to in the repository outside docs/ is not on the site."""
    if page == "index":
        readme = (ROOT / "README.md").read_text(encoding="utf-8")
        text[0] = LINK.sub(moved, readme) + text[0]


def moved(link: re.Match[str]) -> str:
    mark, words, target = link.groups()
    shown = target.startswith("docs/") and not target.endswith(".ipynb")  # notebooks are read where they lie
    return f"{mark}[{words}]({target.removeprefix('docs/')})" if shown else words


def write_shell(app: Any) -> None:
    """Write the page of the shell from the commands' own help."""
    from typer.main import get_command

    from maxrr.cli import app as shell
    from maxrr.cli.run import MEANING

    codes = "".join(f"| {code} | {meaning} |\n" for code, meaning in MEANING.items())
    text = get_docs_for_click(obj=get_command(shell), ctx=Context(get_command(shell)), name="maxrr", title="The shell")
    page = f"{text}\n## Exit codes\n\n| code | meaning |\n|---|---|\n{codes}"
    (ROOT / "docs" / "reference" / "shell.md").write_text(page, encoding="utf-8")


def setup(app: Any) -> None:
    app.connect("builder-inited", write_shell)
    app.connect("source-read", read_source)
