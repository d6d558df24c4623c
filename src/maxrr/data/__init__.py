"""Records, whom they are about, and where they come from."""

from maxrr.data.dataset import Dataset
from maxrr.data.description import Description, describe
from maxrr.data.places import available, fetch
from maxrr.data.sources import load
from maxrr.errors import DataError

__all__ = ["DataError", "Dataset", "Description", "available", "describe", "fetch", "load"]
