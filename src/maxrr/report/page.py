"""The frame that every page has, and the parts that pages are put together from: one look for all.

A page is one file. It asks for nothing from elsewhere, and its policy forbids the browser to.
"""

from collections.abc import Sequence
from importlib.resources import files

from maxrr.report.charts import Group, key
from maxrr.report.markup import Html, tag, to_the_letter, together

FREE = Group("free", "free", "circle")
INFLUENTIAL = Group("influential", "influential", "diamond")
CORE = Group("core", "core", "square")
KINDS = {group.name: group for group in (FREE, INFLUENTIAL, CORE)}

GENERATOR = tag("meta", name="generator", content="maxrr")
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def page(title: str, about: str, *content: Html, foot: Html) -> str:
    """A whole page; `about` stands in its top line beside the name."""
    look = (files("maxrr.report") / "look.css").read_text(encoding="utf-8")
    brand = tag("span", *(key(group) for group in KINDS.values()), "MaxRR", class_="brand")
    return "<!doctype html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("meta", name="color-scheme", content="light dark"),
            GENERATOR,
            tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
            tag("title", title),
            tag("style", Html(look)),
        ),
        tag(
            "body",
            tag("header", brand, tag("span", about), class_="top"),
            tag("main", *content),
            tag("footer", foot),
        ),
        lang="en",
    )


def is_report(text: str) -> bool:
    """Whether this is a page of ours, which may be written over."""
    return GENERATOR in text


def hero(headline: str, lead: str, facts: Sequence[tuple[str, str]]) -> Html:
    """The first thing seen: what happened in one sentence and in one paragraph, and numbers with what they are."""
    tiles = (tag("div", tag("dt", what), tag("dd", value)) for value, what in facts)
    return tag(
        "section", tag("h1", headline), tag("p", lead, class_="lead"), tag("dl", *tiles, class_="facts"), class_="hero"
    )


def section(title: str, lead: str, *content: Html) -> Html:
    """A part of the page under a heading that says what is to be seen in it."""
    return tag("section", tag("h2", title), tag("p", lead, class_="lead"), *content)


def figure(caption: str, *content: Html) -> Html:
    """A picture and what it shows."""
    return tag("figure", *content, tag("figcaption", caption))


def named(group: Group, text: str) -> Html:
    """A group's mark and some words."""
    return tag("span", key(group), text, class_="named")


def legend(groups: Sequence[tuple[Group, str]]) -> Html:
    """Which mark is what."""
    return tag("ul", *(tag("li", named(group, text)) for group, text in groups), class_="legend")


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> Html:
    """A table whose first column names the rows. On a narrow screen the rows stand below each other."""
    head = tag("tr", *(tag("th", heading, scope="col") for heading in headings))
    body = (
        tag(
            "tr",
            tag("th", first, scope="row"),
            *(tag("td", cell, data_heading=heading) for heading, cell in zip(headings[1:], cells, strict=True)),
        )
        for first, *cells in rows
    )
    return tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))


def pairs(*rows: tuple[str, str]) -> Html:
    """What, and its value, a line each."""
    return tag("dl", *(tag("div", tag("dt", what), tag("dd", value)) for what, value in rows), class_="pairs")


def details(summary: str, text: str) -> Html:
    """Text, to the letter, for whoever wants to see it."""
    return tag("details", tag("summary", summary), tag("pre", to_the_letter(text)))


def paragraphs(*texts: str) -> Html:
    """Each on its own."""
    return together(*(tag("p", text) for text in texts))
