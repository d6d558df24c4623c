"""The demo's page: one whole file that asks for nothing, and says what happened and nothing else."""

import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from maxrr.report.demo import Story, demo_page
from maxrr.report.page import is_report
from maxrr.unlearning import Receipt
from tests.report.reading import all_of, read

HOSTILE = "\"'><script>alert(1)</script><img src=http://x onerror=alert(1)>&amp;"


def test_it_is_well_formed(story: Story) -> None:
    page = demo_page(story)
    assert page.startswith("<!doctype html>\n<html lang=")
    assert [len(all_of(read(page), name)) for name in ("html", "head", "title", "style", "body", "main", "h1")] == [
        1
    ] * 7
    assert is_report(page)
    assert not is_report("<html></html>")


def test_it_asks_for_nothing_from_elsewhere(story: Story) -> None:
    reader = read(demo_page(story))
    sources = [
        value
        for element in reader.elements
        for name, value in element.attributes.items()
        if name in ("src", "href", "srcset", "action", "data", "poster")
    ]
    assert sources
    assert [source for source in sources if not source.startswith("data:image/png;base64,")] == []
    (look,) = all_of(reader, "style")
    assert not re.search(r"url\(|@import|https?:|//", look.text)
    assert all_of(reader, "script") == all_of(reader, "link") == all_of(reader, "iframe") == []
    assert [name for element in reader.elements for name in element.attributes if name.startswith("on")] == []
    policies = [each for each in all_of(reader, "meta") if each.attributes.get("http-equiv")]
    assert [policy.attributes["content"].split(";")[0] for policy in policies] == ["default-src 'none'"]


def test_it_can_be_read_without_seeing_it(story: Story) -> None:
    reader = read(demo_page(story))
    assert all(image.attributes["alt"] for image in all_of(reader, "img"))
    pictures = [each.attributes for each in all_of(reader, "svg")]
    assert [each for each in pictures if each.get("aria-hidden") != "true" and not each.get("aria-label")] == []
    assert {heading.attributes["scope"] for heading in all_of(reader, "th")} == {"col", "row"}
    levels = [int(each.name[1]) for each in reader.elements if re.fullmatch(r"h\d", each.name)]
    assert levels[0] == 1
    assert max(after - before for before, after in pairwise(levels)) == 1


def test_what_happened_is_on_it(story: Story) -> None:
    reader = read(demo_page(story))
    expected = [
        "9 images forgotten, to the byte.",
        f"{story.kinds['free'].sum()} of 400",
        *(f"{members.sum()} {kind} (" for kind, members in story.kinds.items()),
        f"{100 * story.accuracy:.1f} → {100 * story.requests[-1].accuracy:.1f} %",
        f"accuracy on {story.test_records} test images",
        f"from {100 * min(story.recall.values()):.0f} % to {100 * max(story.recall.values()):.0f} %",
        f"{story.influential.sum()} at or below 1",
        *(request.receipt.guarantee for request in story.requests),
        *(request.receipt.model_before for request in story.requests),
        *(request.retrained for request in story.requests),
        "750 ms",
        "approximate-refit",
        "after 6.2 s: identical.",
        "epochs 20, batch size 64, lr 0.003",
    ]
    assert [words for words in expected if words not in reader.text] == []
    assert reader.text.count("✓ identical") == 2 * len(story.requests)
    assert "✗" not in reader.text


def test_the_receipts_are_on_it_to_the_letter(story: Story) -> None:
    written = [Receipt.from_json(each.text) for each in all_of(read(demo_page(story)), "pre")]
    assert written == [request.receipt for request in story.requests]


def test_every_record_has_one_mark_in_each_chart(story: Story) -> None:
    page = demo_page(story)
    charts = re.findall(r'<svg class="chart.*?</svg>', page)
    assert [sum(path.count("M") for path in re.findall(r' d="([^"]*)"', chart)) for chart in charts] == [400, 400]
    assert [chart.count('class="ring"') for chart in charts] == [9, 9]
    assert sum(sheet.count("<rect") for sheet in re.findall(r'<svg class="sheet.*?</svg>', page)) == 9


def test_hostile_text_stays_text(story: Story) -> None:
    receipt = replace(story.requests[0].receipt, reason=HOSTILE, core_depended_on=HOSTILE, guarantee="exact-refit")
    request = replace(story.requests[0], receipt=receipt)
    replayed = replace(story.replay, differs_most=HOSTILE, not_covered=HOSTILE, outcome=HOSTILE)
    names = tuple(f"{HOSTILE}{name}" for name in story.class_names)
    hostile = replace(
        story, source=HOSTILE, class_names=names, replay=replayed, requests=(request, *story.requests[1:])
    )
    mild = replace(
        hostile, source="a", class_names=story.class_names, replay=replace(replayed, differs_most="b", not_covered="c")
    )
    found, expected = read(demo_page(hostile)), read(demo_page(mild))
    assert [each.name for each in found.elements] == [each.name for each in expected.elements]
    assert [sorted(each.attributes) for each in found.elements] == [
        sorted(each.attributes) for each in expected.elements
    ]
    assert HOSTILE in found.text
    assert f"image of class {HOSTILE}" in {
        image.attributes["alt"][: 15 + len(HOSTILE)] for image in all_of(found, "img")
    }


def test_a_difference_is_not_hidden(story: Story) -> None:
    first = replace(story.requests[0], retrained="0" * 64)
    text = read(demo_page(replace(story, requests=(first, *story.requests[1:])))).text
    assert text.count("bytes differ") == 2
    assert "After two" in text
    assert "2 of 3" in text
    assert (text.count("✗ different"), text.count("✓ identical")) == (2, 4)


def test_a_failed_replay_is_not_hidden(story: Story) -> None:
    replayed = replace(story.replay, outcome="different", differs_most="head weights", largest_difference=np.inf)
    told = replace(story, replay=replayed)
    assert not told.same_bytes
    text = read(demo_page(told)).text
    assert text.count("bytes differ") == 2
    assert "difference is inf, in head weights" in text.split("different.")[1]


@pytest.mark.parametrize("seconds", [0.5, 0.9])
def test_slower_is_not_called_faster(story: Story, seconds: float) -> None:
    slow = tuple(replace(request, seconds=seconds, retrained_seconds=0.6) for request in story.requests)
    text = read(demo_page(replace(story, requests=slow))).text
    assert not re.search(r"times faster", text)
    assert text.count("no faster") == 3


def test_a_receipt_says_what_is_left(story: Story) -> None:
    receipt = replace(
        story.requests[0].receipt, unconditional=False, duplicates_left=2, core_left_in_extractor=1,
        guarantee="approximate-refit",
    )  # fmt: skip
    request = replace(story.requests[0], receipt=receipt)
    text = read(demo_page(replace(story, requests=(request, *story.requests[1:])))).text
    for said in ("2 exact duplicates", "1 forgotten core record", "not exact"):
        assert said in text
