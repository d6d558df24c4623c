"""Templates: what goes into a page is text, and all of it has to be there."""

import importlib
from pathlib import Path

import jinja2
import pytest
from markupsafe import Markup

from maxrr.report.page import environment, render

PACKAGES = ("maxrr.report", "lab")


def rendered(source: str, **values: object) -> str:
    return environment("maxrr.report").from_string(source).render(values)


def test_text_is_escaped_and_markup_is_not() -> None:
    assert rendered("{{ text }}", text="<script>'\"&") == "&lt;script&gt;&#39;&#34;&amp;"
    assert rendered("{{ text }}", text=Markup("<svg></svg>")) == "<svg></svg>"
    macro = "{% from 'parts.html.jinja' import measured %}{{ measured(text, text, text, text) }}"
    assert "<script" not in rendered(macro, text="\"'><script>")


def test_numbers_and_units_are_not_parted() -> None:
    shown = rendered("{{ seconds | duration }}, {{ text }}", seconds=0.005, text="95 % of 3 samples")
    assert shown == "5.0\u00a0ms, 95\u00a0% of 3 samples"
    assert rendered("{{ text | escape }}", text="95 %") == "95 %"  # to the letter


def test_what_is_missing_is_an_error() -> None:
    with pytest.raises(LookupError, match="story"):
        render("maxrr.report", "demo.html.jinja")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_template_is_found_and_asks_for_nothing_from_elsewhere(package: str) -> None:
    folder = Path(str(importlib.import_module(package).__file__)).parent / "templates"
    names = [path.name for path in folder.iterdir()]
    assert names
    for name in names:
        source = (folder / name).read_text(encoding="utf-8")
        assert isinstance(environment(package).get_template(name), jinja2.Template)
        assert not any(word in source for word in ("http:", "https:", "url(", "@import", "| safe", "|safe"))
