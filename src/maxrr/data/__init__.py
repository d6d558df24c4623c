"""Records with their labels and ids, the people they are about, and the sources they come from."""

from maxrr.data.dataset import Dataset
from maxrr.data.drafting import prepare
from maxrr.data.encoding import Categories, Encoding, Number
from maxrr.data.known import available, fetch
from maxrr.data.sources import load
from maxrr.data.tables import from_frame
from maxrr.data.train_test import train_and_test
from maxrr.errors import DataError

__all__ = [
    "Categories",
    "DataError",
    "Dataset",
    "Encoding",
    "Number",
    "available",
    "fetch",
    "from_frame",
    "load",
    "prepare",
    "train_and_test",
]
