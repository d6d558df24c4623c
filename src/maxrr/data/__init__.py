"""Records with their labels and ids, the people they are about, and the sources they come from."""

from maxrr.data.dataset import Dataset, Ids
from maxrr.data.description import Description, describe
from maxrr.data.encoding import Categories, Encoding, Number
from maxrr.data.frames import from_frame
from maxrr.data.labels import IdsFrom
from maxrr.data.places import available, fetch
from maxrr.data.sources import load
from maxrr.data.train_test import SplitBy, train_and_test
from maxrr.errors import DataError

__all__ = [
    "Categories",
    "DataError",
    "Dataset",
    "Description",
    "Encoding",
    "Ids",
    "IdsFrom",
    "Number",
    "SplitBy",
    "available",
    "describe",
    "fetch",
    "from_frame",
    "load",
    "train_and_test",
]
