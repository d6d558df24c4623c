"""Markup, charts and pictures: what goes in can be found in what comes out."""

import base64
import io
import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from maxrr.report.charts import bar, fingerprint, shares, unit_histogram
from maxrr.report.demo import drawn, sheet, sheet_of
from maxrr.report.page import Group, tag
from tests.report.reading import all_of, collapsed, read

printable = st.text(st.characters(exclude_categories=["Cc", "Cs"]))
SHAPES = ("circle", "diamond", "square")


@given(printable, printable)
def test_text_and_attributes_come_back_as_they_were(text: str, value: str) -> None:
    reader = read(tag("text", text, tag("tspan", text), role=value))
    first, second = reader.elements
    assert (first.text, second.text) == (collapsed(2 * text), collapsed(text))
    assert first.attributes == {"role": value}


@given(
    st.lists(st.tuples(st.floats(-6, 6), st.integers(0, 2), st.booleans()), min_size=1, max_size=60),
    st.sampled_from([340.0, 960.0]),
)
def test_a_histogram_shows_each_value_once_on_its_side(rows: list[tuple[float, int, bool]], width: float) -> None:
    values, kinds, marked = (np.array(column) for column in zip(*rows, strict=True))
    groups = [(Group(shape, shape, shape), kinds == place) for place, shape in enumerate(SHAPES)]
    chart = unit_histogram(
        values, groups, marked, lowest=-2, edge=1.0, step=0.25, width=width, notes=("in", "out"), label="x", style=""
    )
    reader = read(chart)
    (band,) = (each for each in all_of(reader, "rect") if each.attributes["class"] == "band")
    split, floor = float(band.attributes["width"]), float(band.attributes["height"])
    inside, centres = 0, []
    for path in all_of(reader, "path"):
        for x, y in re.findall(r"M(-?[\d.]+) (-?[\d.]+)", path.attributes["d"]):
            assert 0.0 <= float(x) <= width
            assert 0.0 <= float(y) <= floor
            inside += float(x) < split
            centres.append((path.attributes["class"], x, y))
    assert len(set(centres)) == len(values)
    assert inside == (values <= 1.0).sum()
    assert len(all_of(reader, "circle")) == marked.sum()


def test_bars_are_as_long_as_their_shares() -> None:
    parts = read(shares([(Group("a", "a", "circle"), 1), (Group("b", "b", "square"), 3)]))
    first, second = (each.attributes for each in all_of(parts, "rect"))
    assert (float(first["x"]), float(second["x"])) == (0.0, 25.0)
    assert float(second["width"]) == 75.0
    assert 24.0 < float(first["width"]) < 25.0
    assert "12.5%" in bar(0.125, "core")
    assert "width: 0.3%" in bar(0.0, "core")


@given(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32))
def test_hashes_look_equal_only_if_they_are(one: bytes, other: bytes) -> None:
    assert (fingerprint(one.hex()) == fingerprint(other.hex())) == (one == other)


def opacity(uri: str) -> np.ndarray:
    picture = Image.open(io.BytesIO(base64.b64decode(uri.removeprefix("data:image/png;base64,"))))
    return np.asarray(picture.convert("RGBA"))


def test_a_picture_is_ink_on_transparent_paper() -> None:
    image = np.array([[0.0, 0.25, 0.5], [0.75, 1.0, 2.0]])
    pixels = opacity(drawn(image, (1, 2, 3)))
    assert pixels[..., 3].tolist() == [[0, 64, 128], [191, 255, 255]]
    assert np.unique(pixels[pixels[..., 3] > 0][:, :3], axis=0).tolist() == [[1, 2, 3]]


def test_a_sheet_has_every_image_in_its_place() -> None:
    images = np.arange(1, 6)[:, None, None] * np.ones((1, 2, 3))
    whole = sheet(images, columns=2)
    assert whole.shape == (3 * 4, 2 * 5)
    assert [whole[4 * (n // 2) + 1, 5 * (n % 2) + 1] for n in range(6)] == [1, 2, 3, 4, 5, 0]
    assert whole.sum() == images.sum()


def test_what_is_gone_leaves_an_empty_frame() -> None:
    gone = np.array([False, True, False])
    reader = read(sheet_of(np.ones((3, 2, 2)), gone, 2, (9, 9, 9), "three"))
    (image,), (frame,) = all_of(reader, "image"), all_of(reader, "rect")
    assert (frame.attributes["x"], frame.attributes["y"]) == ("5", "1")
    pixels = opacity(image.attributes["href"])[..., 3]
    assert pixels.sum() == 2 * 4 * 255
    assert pixels[:, 4:].sum() == 0
