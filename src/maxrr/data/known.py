"""The datasets known by name: what must be in their files, and how they are read."""

import gzip
import hashlib
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from maxrr.data.dataset import Dataset
from maxrr.data.train_test import Part, divide, pair
from maxrr.errors import DataError

# The IDX format, in which MNIST and its relatives are published: a magic number, sizes, then the bytes.


CHUNK = 1 << 20
LARGEST = 1 << 26  # bytes: no published file has more, and a small forged one might unpack to any number
BYTES = 0x08  # the format's code for elements of one unsigned byte


def read_idx(path: Path, dimensions: int, sha256: str | None = None) -> NDArray[np.uint8]:
    """The array in a file; one ending in .gz is unpacked.

    What is hashed is the content after unpacking, so that a copy from anywhere is checked against the same number.
    That takes 0.04 s for 47 MB on a recent processor, 0.2 s on others, and is done at every read.

    Raises
    ------
    DataError
        Not an IDX file of bytes with that many dimensions, too short, too long, damaged, or of another content.
    """
    try:
        with _open_idx(path) as file:
            header = file.read(4 + 4 * dimensions)
            shape = _shape(path, header, dimensions)
            size = math.prod(shape)
            if size > LARGEST:
                raise DataError(f"{path}: its header promises {size:,} bytes, more than any file of this kind has")
            content = _at_most(file, size + 1)
        if len(content) != size:
            wrong = f"is truncated: {len(content):,} bytes of data" if len(content) < size else "goes on after its end"
            raise DataError(f"{path}: {wrong}, where its header promises {size:,}")
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None
    found = hashlib.sha256(header + content).hexdigest()
    if sha256 is not None and found != sha256:
        raise DataError(f"{path}: has another content than published: sha256 {found}, expected {sha256}; replace it")
    return np.frombuffer(content, dtype=np.uint8).reshape(shape)


def content_sha256(path: Path) -> str:
    """The SHA-256 of what is in the file, after unpacking if it ends in .gz."""
    try:
        with _open_idx(path) as file:
            return hashlib.sha256(_at_most(file, 2 * LARGEST)).hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, error) from None


def _open_idx(path: Path) -> BinaryIO:
    return cast(BinaryIO, gzip.open(path, "rb")) if path.suffix == ".gz" else open(path, "rb")


def _unreadable(path: Path, error: Exception) -> DataError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    return DataError(f"{path}: cannot be read: {reason}")


def _shape(path: Path, header: bytes, dimensions: int) -> tuple[int, ...]:
    magic = bytes([0, 0, BYTES, dimensions])
    if not header.startswith(magic[: len(header)]):
        raise DataError(f"{path}: is not the IDX file expected: starts with {header[:4].hex()}, not {magic.hex()}")
    if len(header) < 4 + 4 * dimensions:
        raise DataError(f"{path}: is truncated: {len(header)} bytes, and the header alone has {4 + 4 * dimensions}")
    return tuple(int.from_bytes(header[start : start + 4], "big") for start in range(4, len(header), 4))


def _at_most(file: BinaryIO, size: int) -> bytearray:
    """What is left of the file, or about the first `size` bytes of it: a small file may unpack to a huge one."""
    content = bytearray()
    while len(content) < size and (chunk := file.read(CHUNK)):
        content += chunk
    return content


@dataclass(frozen=True)
class Known:
    """A dataset published as four IDX files."""

    name: str
    site: str
    class_names: tuple[str, ...]
    sha256: dict[str, str]  # of each file's content after unpacking
    package: str | None = None  # Debian's


FASHION_MNIST = Known(
    name="fashion-mnist",
    site="http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
    class_names=(
        *("T-shirt/top", "Trouser", "Pullover", "Dress", "Coat"),
        *("Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot"),
    ),
    sha256={
        "train-images-idx3-ubyte": "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
        "train-labels-idx1-ubyte": "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
        "t10k-images-idx3-ubyte": "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
        "t10k-labels-idx1-ubyte": "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
    },
    package="dataset-fashion-mnist",
)
MNIST = Known(
    name="mnist",
    site="https://ossci-datasets.s3.amazonaws.com/mnist/",  # the field's mirror: its own site no longer serves it
    class_names=tuple("0123456789"),
    sha256={
        "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    },
)
PUBLISHED = {known.name: known for known in (FASHION_MNIST, MNIST)}


def read(known: Known, files: dict[str, Path], whole: bool = False) -> tuple[Dataset, Dataset]:
    """Both sides from four files, with ids of 0 to 59,999 for training and 60,000 to 69,999 for testing."""
    train = _side(known, files, "train", first=0)
    test = _side(known, files, "t10k", first=len(train.ids))
    return pair(train, test, known.name, known.class_names, whole=whole)


def _side(known: Known, files: dict[str, Path], prefix: str, first: int) -> Part:
    of_images, of_labels = f"{prefix}-images-idx3-ubyte", f"{prefix}-labels-idx1-ubyte"
    images = read_idx(files[of_images], 3, known.sha256[of_images])
    labels = read_idx(files[of_labels], 1, known.sha256[of_labels])
    if len(images) != len(labels):
        raise DataError(f"{files[of_images]} has {len(images)} images, but {files[of_labels]} has {len(labels)} labels")
    return Part(images[:, None], labels, np.arange(first, first + len(labels)))


def digits(whole: bool = False) -> tuple[Dataset, Dataset]:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, float32 from 0 to 1. Ids are row numbers, which decide the side."""
    from sklearn.datasets import load_digits  # takes a second to import

    images, labels = load_digits(return_X_y=True)
    inputs = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    return pair(*divide(Part(inputs, labels, np.arange(len(labels))), "digits"), "digits", whole=whole)
