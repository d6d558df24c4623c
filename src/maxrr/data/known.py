"""The datasets known by name: what must be in their files, and how they are read."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from maxrr.data import idx
from maxrr.data.dataset import Dataset
from maxrr.data.train_test import Part, divide, pair
from maxrr.errors import DataError


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
    images = idx.read(files[of_images], 3, known.sha256[of_images])
    labels = idx.read(files[of_labels], 1, known.sha256[of_labels])
    if len(images) != len(labels):
        raise DataError(f"{files[of_images]} has {len(images)} images, but {files[of_labels]} has {len(labels)} labels")
    return Part(images[:, None], labels, np.arange(first, first + len(labels)))


def digits(whole: bool = False) -> tuple[Dataset, Dataset]:
    """scikit-learn's 1,797 digits of 8 × 8 pixels, float32 from 0 to 1. Ids are row numbers, which decide the side."""
    from sklearn.datasets import load_digits  # takes a second to import

    images, labels = load_digits(return_X_y=True)
    inputs = (images / 16.0).astype(np.float32).reshape(-1, 1, 8, 8)
    return pair(*divide(Part(inputs, labels, np.arange(len(labels))), "digits"), "digits", whole=whole)
