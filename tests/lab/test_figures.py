"""Figures: written for every part, readable, and the same for the same results."""

import itertools
import math
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any
from unittest.mock import patch
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image

from lab.comparison import spread
from lab.figures import draw
from lab.figures.labels import apart, ink, place, space
from lab.figures.look import CORES, SERIES, look
from lab.figures.table import assumed
from lab.parts import TABLE
from tests.cases import THOROUGH, examples
from tests.lab.samples import results

RESULTS = results()
ALWAYS = {"histogram", "table", "refit", "frontier", "ranking-length"}  # more is asked of them below
DRAWN = [name for name, content in RESULTS.items() if TABLE[content["part"]].drawing and (THOROUGH or name in ALWAYS)]
LABELS = {
    "histogram": ["Support vectors (Fashion-MNIST, 100 runs)", "the paper's: 25,868 records are", "2,540 in every run"],
    "table": [
        "top 10k",
        "top 10k + 10k random",
        "all but the top 10k",
        "on a wider scale",
        "the paper's, ± 2 assumed",
        "≠",
    ],
    "table-mnist": ["Accuracy after unlearning (MNIST, 20 runs)", "all but the top 20k"],
    "verification": ["MaxRR: all 20k of the core", "perfect retraining: 20k outside the core", "the paper's", "10 %"],
    "agreement": ["2k of the core forgotten", "same verdict, run by run", "claimed unlearned as often", "the paper's"],
    "sensitivity": ["nothing (No)", "SVM", "paper's FE: 0.8882", "paper's No: 0.9000", "75 %", "± 2 standard errors"],
    "refit": [
        "10 % of the",
        "fitted to all retained",
        "moved from where it was",
        "mean of 20 models, ± 2 standard errors",
        "median of 3 models, and each of them",
    ],
    "frontier": [
        "EL2N",
        "middle of 10 runs",
        "core of 10k",
        "core of 20k",
        "on a wider scale",
        "± 2 standard errors of",
    ],
    "core-choice": ["core of 8,333", "core of 16,666", "forgetting", "frequency: the paper's choice"],
    "shards": [
        "MaxRR, middle",
        "SISA's vote (1: training again)",
        "the same, 16 slices a shard",
        "records × epochs trained",
        "on one NVIDIA H200",
        "16",
    ],
    "ranking-length": ["core of 10k", "accuracy with a core of 20k", "50", "± 2 standard errors", "log scale"],
    "svms": ["one-vs-rest, C = 0.1", "one-vs-one, C = 10", "the paper's"],
    "control": ["all 20k of the", "told apart", "± 2 standard errors"],
    "matched": ["92 %, FE", "not", "random"],
}

Texts = dict[Text, None]  # in the order in which they were drawn
Drawn = tuple[Path, dict[str, tuple[Figure, Texts]]]


@contextmanager
def texts_drawn() -> Iterator[dict[Figure, Texts]]:
    """The texts of each figure. Ticks outside the axes have texts, too, but are not drawn."""
    found: dict[Figure, Texts] = {}
    drawing = Text.draw

    def spy(self: Text, renderer: Any) -> None:
        if self.get_visible() and self.get_text().strip():
            found.setdefault(self.get_figure(root=True), {})[self] = None
        drawing(self, renderer)

    with patch.object(Text, "draw", spy):
        yield found


def collisions(figure: Figure, texts: Texts) -> list[str]:
    """Texts that lie on each other, or partly outside the figure. Neighbours in a line are at least 4 pixels apart."""
    width, height = figure.bbox.size
    boxes = {text: text.get_window_extent() for text in texts}
    bad = [
        f"{text.get_text()!r} is cut off"
        for text, box in boxes.items()
        if box.x0 < -1.0 or box.y0 < -1.0 or box.x1 > width + 1.0 or box.y1 > height + 1.0
    ]
    for (one, box), (other, another) in itertools.combinations(boxes.items(), 2):
        if box.padded(2.0, -1.0).overlaps(another.padded(2.0, -1.0)):
            bad.append(f"{one.get_text()!r} and {other.get_text()!r} overlap")
    return bad


def misread(axes: Axes) -> list[str]:
    """Names that are nearer to another's mark than to their own."""
    marks = {text.get_text(): axes.transData.transform(text.xy) for text in axes.texts}
    nearest = {
        text.get_text(): min(marks, key=lambda name: space(text.get_window_extent(), marks[name]))
        for text in axes.texts
    }
    return [name for name, mark in nearest.items() if mark != name]


def words_of(part: str, content: Mapping[str, Any]) -> str:
    """All texts of a figure, none of which lies on another."""
    with look():
        figure = TABLE[part].draw(content)
        with texts_drawn() as found:
            figure.draw_without_rendering()
    assert collisions(figure, found[figure]) == []
    return "\n".join(text.get_text() for text in found[figure])


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    folder = tmp_path_factory.mktemp("results") / "figures"
    with texts_drawn() as found:
        written = draw({part: RESULTS[part] for part in DRAWN}, folder)
    assert written == [folder / f"{part}.{suffix}" for part in DRAWN for suffix in ("svg", "png")]
    return folder, dict(zip(DRAWN, found.items(), strict=True))


@pytest.mark.parametrize("part", DRAWN)
def test_a_part_is_drawn_with_its_labels(drawn: Drawn, part: str) -> None:
    folder, _ = drawn
    svg = (folder / f"{part}.svg").read_text(encoding="utf-8")
    assert ElementTree.fromstring(svg).tag == "{http://www.w3.org/2000/svg}svg"
    assert [label for label in LABELS[part] if label not in svg.replace("\u00a0", " ")] == []
    with Image.open(folder / f"{part}.png") as picture:
        assert picture.format == "PNG"
        assert picture.width == 1280


@pytest.mark.parametrize("part", DRAWN)
def test_no_text_lies_on_another(drawn: Drawn, part: str) -> None:
    figure, texts = drawn[1][part]
    assert len(texts) >= len(LABELS[part])
    assert collisions(figure, texts) == []


def test_colliding_texts_are_found() -> None:
    figure = Figure()
    for across, word in ((0.5, "one"), (0.51, "two"), (0.99, "three")):
        figure.text(across, 0.5, word)
    with texts_drawn() as found:
        figure.draw_without_rendering()
    assert collisions(figure, found[figure]) == ["'three' is cut off", "'one' and 'two' overlap"]


def test_the_same_results_give_the_same_bytes_whatever_the_users_settings_are(drawn: Drawn, tmp_path: Path) -> None:
    folder, _ = drawn
    with mpl.rc_context({"font.size": 30, "svg.hashsalt": "other", "figure.autolayout": True}):
        written = draw({"ranking-length": RESULTS["ranking-length"]}, tmp_path)
        assert mpl.rcParams["font.size"] == 30
    assert len(written) == 2
    for path in written:
        assert path.read_bytes() == (folder / path.name).read_bytes()


def on_other_data(part: str) -> dict[str, Any]:
    """The same part, where the paper has nothing to say, and of a single run."""
    content = deepcopy(RESULTS[part])
    for row in content["cells"].values():
        for cell in row.values():
            cell.update(stderr=None, paper=None, difference=None, verdict=None)
    for curves in content.get("share_by_runs_claimed_unlearned", {}).values():
        for curve in curves.values():
            curve["paper"] = None
    for curve in content.get("share_with_the_same_verdict", {}).values():
        curve["paper"] = None
    return {**content, "paper": None, "runs": 1}


@pytest.mark.parametrize("part", ["histogram", "table", "verification", "agreement", "sensitivity"])
def test_a_long_heading_has_two_lines(part: str) -> None:
    profile = {"data": "fashion-mnist", "heads": "one-vs-rest", "recipe": {"epochs": 18}, "pixels": "standardised"}
    words = words_of(part, {**RESULTS[part], "setting": {"profile": profile}})
    assert "18 epochs" in words.replace("\n", " ")


@pytest.mark.parametrize("part", ["histogram", "verification", "agreement", "sensitivity", "svms"])
def test_ours_is_drawn_alone_where_the_paper_has_nothing(part: str) -> None:
    words = words_of(part, on_other_data(part))
    assert "(Fashion-MNIST, 1 run)" in words
    assert "paper's" not in words


def test_a_histogram_over_another_number_of_runs_is_not_drawn() -> None:
    few = {str(runs): 40 * runs for runs in (1, 2, 3)}
    words = words_of("histogram", {**RESULTS["histogram"], "count_by_number_of_runs": few, "runs": 3})
    assert "over 100" in words
    curves = deepcopy(RESULTS["verification"]["share_by_runs_claimed_unlearned"])
    for request in curves.values():
        for curve in request.values():
            curve["ours"] = [0.5, 0.0, 0.5]
    words = words_of("verification", {**RESULTS["verification"], "share_by_runs_claimed_unlearned": curves})
    assert "over 20" in words


def test_a_refit_of_heads_that_cannot_be_moved() -> None:
    content = deepcopy(RESULTS["refit"])
    assert "moved from" in words_of("refit", content)
    for ways in content["seconds"].values():
        del ways["moved"]
    words = words_of("refit", content)
    assert "moved" not in words
    assert "median of 3" in words


def test_a_small_profile_is_drawn_too() -> None:
    cells = {row: {"50%": shares["50%"]} for row, shares in RESULTS["sensitivity"]["cells"].items()}
    assert "50 %" in words_of("sensitivity", {**RESULTS["sensitivity"], "cells": cells})
    assert "the ranking" in words_of(
        "ranking-length", {**RESULTS["ranking-length"], "lines": RESULTS["ranking-length"]["lines"][:1]}
    )


def test_series_are_told_apart_by_mark_and_by_colour() -> None:
    for of in ("marker", "color"):
        assert len({style[of] for style in SERIES}) == len(SERIES)


def test_a_histogram_is_two_lines_that_differ_without_colour(drawn: Drawn) -> None:
    (axes,) = drawn[1]["histogram"][0].axes
    assert [line.get_linestyle() for line in axes.lines] == ["-", "--"]
    assert not axes.patches


def test_the_papers_accuracies_have_the_error_that_verdicts_assume(drawn: Drawn) -> None:
    assert assumed(RESULTS["table"]["cells"]) == pytest.approx(spread())
    assert assumed(RESULTS["table-mnist"]["cells"]) is None
    for axes in drawn[1]["table"][0].axes:
        low, high = axes.get_xlim()
        ends = [path.vertices[:, 0] for bars in axes.collections for path in bars.get_paths()]
        assert all(low < one < other < high for one, other in ends)
        assert sum(other - one == pytest.approx(4.0 * spread()) for one, other in ends) == 4


def test_a_name_in_the_frontier_is_nearest_to_its_own_mark_and_covers_nothing(drawn: Drawn) -> None:
    figure, _ = drawn[1]["frontier"]
    for axes in figure.axes:
        assert misread(axes) == []
        assert not any(text.get_window_extent().count_contains(ink(axes)) for text in axes.texts)
    names = [text.get_text() for axes in figure.axes for text in axes.texts]
    assert sorted(names) == sorted(point["selector"] for point in RESULTS["frontier"]["points"])


@examples(40)
@given(st.floats(20, 60), st.floats(0, 2 * math.pi))
def test_names_of_two_marks_are_not_mistaken_for_each_other(distance: float, angle: float) -> None:
    figure = Figure(figsize=(4, 4))
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 288), ylim=(0, 288))  # a unit is a typographic point
    marks = {"one": (144.0, 144.0), "another": (144 + distance * math.cos(angle), 144 + distance * math.sin(angle))}
    for x, y in marks.values():
        axes.plot([x], [y], marker="o")
    place(figure, axes, marks)
    assert misread(axes) == []


@pytest.mark.parametrize("sizes", [[10_000], [10_000, 20_000, 30_000]])
def test_a_frontier_of_any_number_of_sizes_needs_no_wider_scale_where_nothing_lies_apart(sizes: list[int]) -> None:
    known = [point for point in RESULTS["frontier"]["points"] if point["k"] == 10_000 and point["free"] > 0.5]
    points = [{**point, "k": size, "stderr": None} for size in sizes for point in known]
    words = words_of("frontier", {**RESULTS["frontier"], "points": points})
    assert all(f"core of {size // 1000}k" in words for size in sizes)
    assert "wider" not in words


def test_seconds_of_a_refit_are_medians_and_each_model_is_shown(drawn: Drawn) -> None:
    _, right = drawn[1]["refit"][0].axes
    shown = sorted(sorted(line.get_xdata()) for line in right.lines)
    times = [sorted(times) for ways in RESULTS["refit"]["seconds"].values() for times in ways.values()]
    assert shown == sorted([*times, *([middle] for _, middle, _ in times)])


def test_the_accuracy_by_ranking_length_has_the_mark_of_the_core_that_it_is_of(drawn: Drawn) -> None:
    left, right = drawn[1]["ranking-length"][0].axes
    assert [line.get_marker() for line in left.lines] == ["o", "s"]  # 10,000 and 20,000
    assert right.lines[0].get_marker() == "s"


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delitem(sys.modules, "lab.figures.look")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"pip install 'maxrr\[plots\]'"):
        draw(RESULTS, tmp_path / "figures")
    assert not (tmp_path / "figures").exists()


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8), st.floats(0.01, 0.3))
def test_labels_are_moved_apart_in_their_order(places: list[float], gap: float) -> None:
    found = apart(places, gap)
    order = sorted(range(len(places)), key=lambda which: places[which])
    assert all(found[high] - found[low] >= gap - 1e-9 for low, high in itertools.pairwise(order))
    assert sum(found) == pytest.approx(sum(places), abs=1e-9)
    if all(places[high] - places[low] >= gap for low, high in itertools.pairwise(order)):
        assert found == pytest.approx(places)


def marks_of(part: str) -> set[tuple[str, str, str]]:
    """Colour, mark and filling of every line with a mark in a figure."""
    with look():
        figure = TABLE[part].draw(RESULTS[part])
    lines = [line for axes in figure.axes for line in axes.lines if line.get_marker() not in ("|", "_", "None")]
    return {(str(line.get_color()), str(line.get_marker()), str(line.get_markerfacecolor())) for line in lines}


def test_a_core_has_one_mark_in_all_figures() -> None:
    styles = {name: (style["color"], style["marker"], style.get("markerfacecolor", style["color"]))
              for name, style in CORES.items()}  # fmt: skip
    assert len(set(styles.values())) == len(styles)
    for part in ("frontier", "core-choice"):
        names = {point["selector"] for point in RESULTS[part]["points"]}
        assert marks_of(part) == {styles[name] for name in names}
    ours = {point["core"] for point in RESULTS["shards"]["work"]}
    assert {styles[name] for name in ours} <= marks_of("shards")


def test_accuracies_of_shards_have_error_bars() -> None:
    """Two standard errors to either side of every mark."""
    content = RESULTS["shards"]
    with look():
        axes = TABLE["shards"].draw(content).axes[0]
    heights = sorted(
        round(float(abs(segment[1][1] - segment[0][1])), 9)
        for bars in axes.collections
        for segment in bars.get_segments()
    )
    most = max(point["slices"] for point in content["work"])
    shown = [point for point in content["work"] if point["width"] == 1.0 and point["slices"] in (1, most)]
    assert heights == sorted(round(4.0 * point["stderr"], 9) for point in shown)
