"""Records with their labels and ids, the people they are about, and the sources they come from."""

from maxrr.data.dataset import Dataset, Ids
from maxrr.data.description import Description, describe
from maxrr.data.ids import IdsFrom
from maxrr.data.places import available, fetch
from maxrr.data.sources import load
from maxrr.errors import DataError

__all__ = ["DataError", "Dataset", "Description", "Ids", "IdsFrom", "available", "describe", "fetch", "load"]
