"""Folders of images: pixels, classes and ids as they are on disk; whatever is wrong is named with its file."""

import io
import struct
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

from maxrr.data import DataError, load
from maxrr.data.train_test import is_test

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (12, 4, 5), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (12, 4, 5, 3), dtype=np.uint8)


def put(folder, pixels, names=None, mode=None):
    """Each image as a file in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for row, image in enumerate(pixels):
        picture = Image.fromarray(image)
        (picture.convert(mode) if mode else picture).save(folder / (names[row] if names else f"{row}.png"))


def message(root):
    with pytest.raises(DataError) as caught:
        load(root)
    assert caught.value.__suppress_context__ or caught.value.__context__ is None
    return str(caught.value)


@pytest.mark.parametrize("pixels", [GREY, COLOUR])
def test_train_and_test_folders(tmp_path, pixels):
    channels_first = pixels[:, None] if pixels.ndim == 3 else pixels.transpose(0, 3, 1, 2)
    for side, first in (("train", 0), ("test", 6)):
        put(tmp_path / side / "cat", pixels[first : first + 2])
        put(tmp_path / side / "ant", pixels[first + 2 : first + 6])
    train, test = load(tmp_path)
    assert train.class_names == test.class_names == ("ant", "cat")
    assert train.ids.tolist() == [f"train/ant/{row}.png" for row in range(4)] + ["train/cat/0.png", "train/cat/1.png"]
    assert test.ids[-1] == "test/cat/1.png"
    assert train.labels.tolist() == [0, 0, 0, 0, 1, 1]
    assert train.inputs.dtype == np.uint8
    assert np.array_equal(train.inputs, channels_first[[2, 3, 4, 5, 0, 1]])
    assert np.array_equal(test.inputs, channels_first[[8, 9, 10, 11, 6, 7]])


def test_without_these_folders_the_id_alone_decides_the_side(tmp_path):
    for name in ("9", "10"):
        put(tmp_path / name, np.concatenate([GREY, GREY]))
    train, test = load(str(tmp_path))
    assert train.class_names == ("9", "10")  # as numbers
    both = [f"{name}/{row}.png" for name in ("9", "10") for row in range(24)]
    expected = is_test(np.array(both))
    assert sorted(test.ids) == sorted(np.array(both)[expected])
    assert sorted(train.ids) == sorted(np.array(both)[~expected])
    (tmp_path / train.ids[0]).unlink()
    assert load(tmp_path)[1].content_hash() == test.content_hash()


def test_a_class_may_be_called_train(tmp_path):
    put(tmp_path / "train", GREY)
    put(tmp_path / "plane", GREY)
    assert load(tmp_path)[0].class_names == ("plane", "train")


def test_hidden_files_are_passed_over(tmp_path):
    put(tmp_path / "a", GREY)
    (tmp_path / "a" / ".DS_Store").write_bytes(b"x")
    (tmp_path / ".git").mkdir()
    assert sum(map(len, load(tmp_path))) == 12


def test_jpeg_files_in_any_spelling(tmp_path):
    put(tmp_path / "a", GREY[:9], [f"{row}.{['jpg', 'JPEG', 'Jpg'][row % 3]}" for row in range(9)])
    train, _ = load(tmp_path)
    assert train.shape == (1, 4, 5)


def test_progress(tmp_path):
    put(tmp_path / "a", GREY)
    seen = []
    load(tmp_path, progress=lambda what, done, total, **numbers: seen.append((what, done, total)))
    assert seen == [("reading images", row + 1, 12) for row in range(12)]


@pytest.mark.parametrize("mode", ["RGBA", "P", "LA", "CMYK"])
def test_palettes_and_transparency_become_colour(tmp_path, mode):
    name = "0.jpg" if mode == "CMYK" else "0.png"
    flat = np.full((1, 4, 5, 3), 255, dtype=np.uint8)
    put(tmp_path / "train" / "a", flat, [name], mode)
    put(tmp_path / "test" / "a", COLOUR[:1])
    train, _ = load(tmp_path)
    assert np.array_equal(train.inputs, flat.transpose(0, 3, 1, 2))


def test_a_transparent_palette_and_a_bilevel_image(tmp_path):
    put(tmp_path / "palette" / "train" / "a", [])
    picture = Image.fromarray(np.zeros((4, 5), dtype=np.uint8)).convert("P")
    picture.putpalette([10, 20, 30] + [0] * 765)
    picture.save(tmp_path / "palette" / "train" / "a" / "0.png", transparency=bytes([0] * 256))
    put(tmp_path / "palette" / "test" / "a", COLOUR[:1])
    assert load(tmp_path / "palette")[0].inputs[0, :, 0, 0].tolist() == [10, 20, 30]
    put(tmp_path / "bilevel" / "train" / "a", np.full((1, 4, 5), 255, dtype=np.uint8), mode="1")
    put(tmp_path / "bilevel" / "test" / "a", GREY[:1])
    assert np.unique(load(tmp_path / "bilevel")[0].inputs).tolist() == [255]


@pytest.mark.parametrize("kind", ["png", "jpeg"])
def test_every_truncation_is_refused_or_harmless(tmp_path, kind):
    folder = tmp_path / "train" / "a"
    put(folder, GREY[:1], [f"0.{kind}"])
    put(tmp_path / "test" / "a", GREY[:1])
    path = folder / f"0.{kind}"
    whole = path.read_bytes()
    pixels = load(tmp_path)[0].inputs
    refused = 0
    for length in range(0, len(whole), 1 if kind == "png" else 7):
        path.write_bytes(whole[:length])
        try:
            assert np.array_equal(load(tmp_path)[0].inputs, pixels)
        except DataError as error:
            refused += str(error).startswith(f"{path}: ")
    assert refused > 0
    path.write_bytes(whole[: len(whole) // 2])
    assert f"{path}: " in message(tmp_path)


def bomb(width, height):
    """A PNG that promises more pixels than any memory has."""
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b"")]
    packed = [
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(packed)


def deep():
    stream = io.BytesIO()
    Image.fromarray(np.zeros((4, 5), dtype=np.uint16)).save(stream, "PNG")
    return stream.getvalue()


def gif():
    stream = io.BytesIO()
    Image.fromarray(GREY[0]).save(stream, "GIF")
    return stream.getvalue()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "is not a PNG or JPEG image, whatever its name says"),
        (b"hello", "is not a PNG or JPEG image"),
        (gif(), "is not a PNG or JPEG image"),
        (bomb(100_000, 100_000), "cannot be read as an image: Image size (10000000000 pixels) exceeds limit"),
        (bomb(10_000, 10_000), "cannot be read as an image: Image size (100000000 pixels) exceeds limit"),
        (bomb(4, 5), "cannot be read as an image: "),
        (deep(), "has more than 8 bits per pixel"),
    ],
)
def test_an_unreadable_file_is_named(tmp_path, content, expected):
    put(tmp_path / "a", GREY[:3])
    (tmp_path / "a" / "bad.png").write_bytes(content)
    assert f"{expected}" in message(tmp_path)


def test_mixed_sizes_name_two_files(tmp_path):
    put(tmp_path / "train" / "a", GREY[:3])
    put(tmp_path / "test" / "a", np.zeros((1, 6, 7), dtype=np.uint8), ["odd.png"])
    text = message(tmp_path)
    assert "5 × 4" in text
    assert "6 pixels" in text


def test_grey_among_colour_names_two_files(tmp_path):
    put(tmp_path / "train" / "a", COLOUR[:3])
    put(tmp_path / "test" / "a", GREY[:1])
    assert "0.png: is 5" in message(tmp_path)


def test_what_does_not_belong_is_named(tmp_path):
    assert f"{tmp_path}" in message(tmp_path)
    put(tmp_path / "a", GREY[:3])
    (tmp_path / "b").mkdir()
    assert "no images" in message(tmp_path)
    (tmp_path / "b" / "notes.txt").write_text("x")
    assert "PNG or JPEG" in message(tmp_path)
    (tmp_path / "b" / "notes.txt").unlink()
    (tmp_path / "b" / "deeper.png").mkdir()
    assert "PNG or JPEG" in message(tmp_path)
    (tmp_path / "b" / "deeper.png").rmdir()
    (tmp_path / "b").rmdir()
    (tmp_path / "readme.md").write_text("x")
    assert "no folder" in message(tmp_path)


def test_nothing_else_beside_train_and_test(tmp_path):
    for side in ("train", "test", "validation"):
        put(tmp_path / side / "a", GREY[:1])
    assert "the folders" in message(tmp_path)


def test_a_class_that_is_in_test_only(tmp_path):
    put(tmp_path / "train" / "a", GREY[:1])
    put(tmp_path / "test" / "b", GREY[:1])
    assert "label 'b'" in message(tmp_path)


def test_without_pillow_the_error_says_so(tmp_path, monkeypatch):
    put(tmp_path / "a", GREY)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "Pillow: pip" in message(tmp_path)
