"""A page as a browser's parser sees it, with white space as it is shown."""

import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"img", "input", "meta", "wbr"}
KEPT = {"pre", "style"}  # elements whose white space is kept


@dataclass
class Element:
    name: str
    attributes: dict[str, str]
    text: str = ""


@dataclass
class Reader(HTMLParser):
    """Elements in the order of their opening tags. A tag that is closed wrongly, or not at all, is an error."""

    elements: list[Element] = field(default_factory=list)
    stack: list[Element] = field(default_factory=list)
    text: str = ""

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        assert len(element.attributes) == len(attrs), f"an attribute of <{tag}> is there twice"
        self.elements.append(element)
        if tag not in VOID:
            self.stack.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack, f"</{tag}> closes nothing"
        assert self.stack.pop().name == tag

    def handle_data(self, data: str) -> None:
        for element in self.stack:
            element.text += data
        if not self.stack or self.stack[-1].name != "style":
            self.text += data


def read(html: str) -> Reader:
    reader = Reader()
    reader.feed(html)
    reader.close()
    assert [element.name for element in reader.stack] == []
    for element in reader.elements:
        if element.name not in KEPT:
            element.text = collapsed(element.text)
    reader.text = collapsed(reader.text).replace("\u00a0", " ")
    return reader


def collapsed(text: str) -> str:
    """Spaces and ends of lines as one space, as a browser shows them; protected spaces stay.

    >>> collapsed(" one\\n  two")
    'one two'
    """
    return re.sub(r"[ \t\n]+", " ", text).strip(" ")


def all_of(reader: Reader, name: str) -> list[Element]:
    return [element for element in reader.elements if element.name == name]
