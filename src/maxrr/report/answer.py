"""The page for somebody of whom nothing is in a model: its words are in `templates/answer.html.jinja`."""

from markupsafe import Markup

from maxrr.plain_text import tame
from maxrr.report.dossier import VERSION, as_markup
from maxrr.report.page import render
from maxrr.unlearning.statements import answer_in, answer_in_words, whom
from maxrr.version import __version__


def answer_page(content: bytes) -> str:
    """One self-contained page that says what an answer (`maxrr.workspace.Ticket`) says, with the answer inside it."""
    envelope, statement = answer_in(content)
    return render(
        __package__, "answer.html.jinja", said=statement.predicate, whose=tame(whom(statement)),
        words=tame(answer_in_words(statement)), signed=envelope is not None, json=as_markup(content),
        version=Markup(VERSION % __version__),
    )  # fmt: skip
