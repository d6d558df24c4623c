"""The page of a reproduction says every number, and what the paper has beside it."""

import base64
import re
from typing import Any

import pytest

from lab.cells import MARKS, SIGNS, cell_text, groups
from lab.page import headline, reproduction_page
from lab.parts import TABLE, Kind, kind_of
from lab.rule import POINTS, RELATIVE
from tests.lab.samples import results
from tests.report.reading import all_of, read

RESULTS = results()
FIGURE = "<?xml version='1.0'?><svg xmlns='http://www.w3.org/2000/svg'><text id='a'>one</text></svg>"
PAGE = reproduction_page(RESULTS, {"table": FIGURE, "frontier": FIGURE})
READ = read(PAGE)


def cell(verdict: str | None, mean: float = 0.5) -> dict[str, Any]:
    known = None if verdict is None else mean
    return {"mean": mean, "stderr": 0.01, "paper": known, "difference": known and 0.0, "verdict": verdict}


def part(*verdicts: str | None, data: str = "fashion-mnist", **content: Any) -> dict[str, Any]:
    cells = {str(number): {"accuracy": cell(verdict)} for number, verdict in enumerate(verdicts)}
    return {"title": "A part", "cells": cells, "setting": {"profile": {"data": data}, "seed": 0}, "made": {}, **content}


def test_every_cell_is_there_with_the_papers_number_the_difference_and_a_verdict() -> None:
    cells, rows = ([element.text.replace("\u00a0", " ") for element in all_of(READ, name)] for name in ("td", "tr"))
    for content in RESULTS.values():
        for row, columns in content.get("cells", {}).items():
            for column, one in columns.items():
                ours, paper, difference, verdict = cell_text(one, kind_of(one, column, content))
                said = f"{SIGNS.get(verdict, '')}{verdict}"
                said += f" {MARKS[one['equivalence']]}" if one["paper"] is not None else ""
                if len(columns) == 1:  # a line of its own
                    assert f"{row} {ours} {paper} {difference} {said}" in rows
                else:
                    assert (ours if one["paper"] is None else f"{ours} paper {paper} {difference} {said}") in cells


def test_verdicts_have_a_sign_and_a_word() -> None:
    for verdict, sign in SIGNS.items():
        assert f"{sign}{verdict}" in {element.text for element in all_of(READ, "span")}


def test_every_part_has_a_section_and_a_line_in_the_summary() -> None:
    headings = [element.text for element in all_of(READ, "h2")]
    rows = [element.text for element in all_of(READ, "th")]
    for title in {content["title"] for content in RESULTS.values()} | {"Accuracy after unlearning, MNIST"}:
        assert title in headings
        readings = {
            RESULTS["agreement"]["title"]: (", to the letter", ", as often"),
            RESULTS["verification"]["title"]: (", the accuracies", ", in all runs or in none"),
        }.get(title, ("",))
        assert all(f"{title}{reading}" in rows for reading in readings)
    assert len(headings) == 1 + len(RESULTS)


def test_figures_are_in_the_page_with_words_for_who_cannot_see_them() -> None:
    images = all_of(READ, "img")
    assert len(images) == 2
    for image in images:
        kind, source = image.attributes["src"].split(",")
        assert kind == "data:image/svg+xml;base64"
        assert base64.b64decode(source).decode() == FIGURE
        assert image.attributes["alt"].startswith("Figure: ")


def test_nothing_comes_from_elsewhere() -> None:
    assert not {"script", "link", "iframe", "object"} & {element.name for element in READ.elements}
    for element in READ.elements:
        for name in ("src", "href"):
            assert element.attributes.get(name, "data:").startswith("data:")
    assert not re.search(r"url\(|https?:", PAGE)


def test_text_is_escaped() -> None:
    cells = {"<b>1 & 2</b>": {"<i>x</i>": cell("near"), "y": cell(None)}}
    made = {"first": {"device": "<s>", "torch": "<em>"}}
    hostile = part(cells=cells, title="<script>alert(1)</script>", data="<q>", made=made)
    reader = read(reproduction_page({"<u>": hostile}, {"<u>": FIGURE}))
    assert {"script", "b", "i", "u", "s", "em", "q"}.isdisjoint(element.name for element in reader.elements)
    for words in ("<b>1 & 2</b>", "<i>x</i>", "<script>alert(1)</script>", "data <q>", "on <s>", "torch <em>"):
        assert words in reader.text


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["agrees"] * 17 + ["near"] * 4 + ["differs"] * 3, "17 of 24 numbers agree with the paper, 4 are near, 3 diff"),
        (["agrees", "near", "differs", None], "1 of 3 numbers agrees with the paper, 1 is near, 1 differs"),
        (["agrees", "agrees", None], "All 2 numbers agree with the paper"),
        (["differs"], "0 of 1 number agree with the paper, 1 differs"),
        ([None], "The paper gives no numbers for what was measured here"),
    ],
)
def test_the_headline_counts_verdicts(verdicts: list[str | None], said: str) -> None:
    found = {"table": part(*verdicts)}
    assert headline(found).startswith(said)
    assert said in all_of(read(reproduction_page(found, {})), "h1")[0].text


def test_other_data_are_not_compared() -> None:
    text = read(reproduction_page({"table": part(None, data="digits")}, {})).text
    assert "to compare" in text


def test_where_several_of_ours_stand_beside_one_of_the_papers_none_is_counted() -> None:
    found = {"table": part("agrees", "near"), "sensitivity": part("differs"), "svms": part("differs", "agrees")}
    assert headline(found) == "1 of 2 numbers agrees with the paper, 1 is near"
    assert "none is" in read(reproduction_page(found, {})).text


def test_what_stands_in_several_cells_is_counted_once() -> None:
    cells = {"No": {"a": cell("near"), "b": cell("differs"), "c": cell("near")}, "SVM": {"a": cell("agrees")}}
    found = {"table": part(cells=cells, once={"No": cell("near")}, part="table")}
    assert headline(found) == "1 of 2 numbers agrees with the paper, 1 is near"
    rows = {"core or influential": {"records": cell("near")}, "influential, not core": {"records": cell("differs")}}
    assert headline({"coverage": part(cells=rows, part="coverage")}).startswith("0 of 1 number agree")


def test_readings_of_one_curve_are_counted_apart() -> None:
    columns = {
        "same in all runs": cell("differs"),
        "as often in all runs": cell("agrees"),
        "same in 80 %": cell("near"),
    }
    content = part(cells={"core20k": columns}, part="agreement")
    assert {reading: [one["verdict"] for one in cells] for reading, cells in groups(content).items()} == {
        "to the letter": ["differs", "near"], "as often": ["agrees"],
    }  # fmt: skip
    assert headline({"agreement": content}) == "0 of 2 numbers agree with the paper, 1 is near, 1 differs"


def test_every_part_and_study_is_introduced() -> None:
    assert [name for name, part in TABLE.items() if not (part.asks and part.lead)] == []
    assert [name for name, part in TABLE.items() if part.drawing and not part.caption] == []


def test_the_foot_says_the_rule_the_setting_and_all_that_made_it() -> None:
    foot = all_of(READ, "footer")[0].text.replace("\u00a0", " ")
    assert f"counts by {100 * RELATIVE:g} %, its shares by {100 * POINTS:g} points" in foot
    assert "our mean" in foot
    assert "(0.01 of an accuracy, 10 % of a count, 5 points of a share)" in foot
    for words in ("2026-11-14 and 2026-11-15", "NVIDIA H200 and cpu", "torch 2.13.0", "numpy 2.4.6"):
        assert words in foot
    for words in ("profile 'paper'", "data Fashion-MNIST", "data MNIST", "100 runs", "epochs 20", "lr 0.001", "seed 0"):
        assert words in foot


def test_the_foot_takes_the_rule_from_the_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lab.page.MARGINS", {"accuracy": 0.03, "count": 0.2, "share": 0.07})
    monkeypatch.setattr("lab.page.LEVEL", 0.01)
    monkeypatch.setattr("lab.page.RELATIVE", 0.015)
    page = reproduction_page({}, {}).replace("&nbsp;", " ")
    said = " ".join(page.split())
    assert "(0.03 of an accuracy, 20 % of a count, 7 points of a share)" in said
    assert "98 %" in said
    assert "1.5 %" in said


def test_a_part_that_is_not_known_is_shown_all_the_same() -> None:
    content = {"title": "Something new", "cells": {"a": {"x": cell(None, 0.25)}}}
    text = read(reproduction_page({"new": content}, {})).text
    assert "Something" in text
    assert "0.2500" in text


@pytest.mark.parametrize(
    ("one", "kind", "said"),
    [
        ((0.50035, None, 0.5, 0.00035, "agrees"), "share", ("50.0 %", "50.0 %", "0.0 points", "agrees")),
        ((0.2, 0.011, 0.25, -0.05, "near"), "share", ("20.0 ± 1.1 %", "25.0 %", "−5.0 points", "near")),
        ((25_868.4, 65.3, 20_500.0, 5_368.4, "differs"), "count", ("25,868 ± 65", "20,500", "+5,368", "differs")),
        ((0.9, 0.0, 0.90001, -0.00001, "agrees"), "accuracy", ("0.9000 ± 0.0000", "0.9000", "0.0000", "agrees")),
        ((1.0, None, None, None, None), "accuracy", ("1.0000", "–", "–", "–")),
        ((1.0, None, None, None, None), "count", ("1", "–", "–", "–")),
    ],
)
def test_a_number_is_written_as_what_it_is(one: tuple[Any, ...], kind: Kind, said: tuple[str, ...]) -> None:
    names = ("mean", "stderr", "paper", "difference", "verdict")
    assert cell_text(dict(zip(names, one, strict=True)), kind) == said
