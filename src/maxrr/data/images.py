"""A folder of images, with one folder per class."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.labels import as_identifiers
from maxrr.data.train_test import Part, is_test, pair
from maxrr.errors import DataError, UnreadableFile
from maxrr.files import open_regular
from maxrr.progress import Progress

SUFFIXES = (".png", ".jpg", ".jpeg")


@dataclass(frozen=True)
class Picture:
    path: Path
    id: str
    label: str


def read(root: Path, progress: Progress | None = None, whole: bool = False) -> tuple[Dataset, Dataset]:
    """Training and test records from a folder of PNG and JPEG files.

    The folder has folders train and test, each with one folder per class, or directly one folder per class; images are
    then split by id. An image's id is its path below `root`, with '/' on every system. Greyscale images
    have one channel, all others three: palettes are looked up, transparency is dropped. Hidden files are passed over.
    Classes that are all integers are sorted as numbers.
    """
    folders = _visible(root)
    if {"train", "test"} <= {folder.name for folder in folders}:
        for other in folders:
            if other.name not in ("train", "test"):
                raise DataError(f"{other}: is beside the folders train and test, where nothing else is expected")
        train, test = list(_pictures(root / "train", "train/")), list(_pictures(root / "test", "test/"))
    else:
        both = list(_pictures(root, ""))
        for_test = is_test(np.array([picture.id for picture in both], dtype=np.str_))
        train = [picture for picture, side in zip(both, for_test, strict=True) if not side]
        test = [picture for picture, side in zip(both, for_test, strict=True) if side]
    pictures = train + test
    inputs = _pixels(pictures, progress)
    labels = as_identifiers([picture.label for picture in pictures])
    ids = np.array([picture.id for picture in pictures], dtype=np.str_)
    count = len(train)
    first, second = (Part(inputs[half], labels[half], ids[half]) for half in (slice(count), slice(count, None)))
    return pair(first, second, str(root), whole=whole)


def _visible(folder: Path) -> list[Path]:
    return sorted((path for path in folder.iterdir() if not path.name.startswith(".")), key=lambda path: path.name)


def _pictures(folder: Path, prefix: str) -> Iterator[Picture]:
    """Every image below a folder of classes, in the order of their ids."""
    classes = _visible(folder)
    if not classes:
        raise DataError(f"{folder}: is empty, where a folder for each class is expected")
    for one in classes:
        if not one.is_dir():
            raise DataError(f"{one}: is in no folder of a class")
        files = _visible(one)
        if not files:
            raise DataError(f"{one}: is the folder of a class, but has no images: add some or remove it")
        for path in files:
            if path.suffix.lower() not in SUFFIXES or not path.is_file():
                raise UnreadableFile(f"{path}: is not a PNG or JPEG file, as all in the folder of a class must be")
            yield Picture(path, f"{prefix}{one.name}/{path.name}", one.name)


def _pixels(pictures: list[Picture], progress: Progress | None) -> NDArray[np.uint8]:
    """Read all images, of one size, as (n, channels, height, width)."""
    first = decoded(pictures[0].path)
    try:
        pixels = np.empty((len(pictures), *first.shape), dtype=np.uint8)
    except MemoryError:
        size = f"{len(pictures):,} such images do not fit into the memory"
        raise DataError(f"{pictures[0].path}: is {_described(first)}: {size}") from None
    for row, picture in enumerate(pictures):
        image = decoded(picture.path)
        if image.shape != first.shape:
            one, other = f"{pictures[0].path}: is {_described(first)}", f"{picture.path} is {_described(image)}"
            raise DataError(f"{one}, but {other}: all images must be of one size and all grey or all in colour")
        pixels[row] = image
        if progress:
            progress("reading images", row + 1, len(pictures))
    return pixels


def decoded(path: Path) -> NDArray[np.uint8]:
    """One image as (channels, height, width)."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ImportError:
        raise DataError("reading images needs Pillow: pip install pillow") from None
    try:
        with open_regular(path) as file, warnings.catch_warnings():
            warnings.simplefilter("error", Image.DecompressionBombWarning)
            with Image.open(file, formats=("PNG", "JPEG")) as image:
                if image.format == "PNG" and getattr(image, "is_animated", False):
                    raise DataError(f"{path}: is an animation, and which of its pictures is meant is not known")
                if image.mode.startswith(("I", "F")):
                    raise DataError(f"{path}: has more than 8 bits per pixel: convert it to 8")
                # A palette may be transparent, which Pillow wants to have said before it looks colours up.
                opaque = image.convert("RGBA") if image.mode == "P" else image
                pixels = np.asarray(opaque.convert("L" if image.mode in ("1", "L") else "RGB"))
    except DataError:
        raise
    except UnidentifiedImageError:  # which is an OSError, too
        raise UnreadableFile(f"{path}: is not a PNG or JPEG image, whatever its name says") from None
    except OSError as error:
        if error.filename:  # no file at all
            raise
        raise UnreadableFile(f"{path}: cannot be read as an image: {error}") from None
    except Exception as error:  # a damaged file fails in Pillow, zlib, struct or anywhere, as it happens
        raise UnreadableFile(f"{path}: cannot be read as an image: {error}") from None
    return pixels[None] if pixels.ndim == 2 else np.moveaxis(pixels, 2, 0)


def _described(image: NDArray[np.uint8]) -> str:
    channels, height, width = image.shape
    return f"{width} × {height} pixels {'of grey' if channels == 1 else 'in colour'}"
