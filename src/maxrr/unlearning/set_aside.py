"""The test records that were set aside when a model was fitted: what stays known of them."""

import hashlib

import numpy as np

from maxrr.data import Dataset
from maxrr.data.fields import described
from maxrr.data.hashes import record_hashes
from maxrr.errors import DataError
from maxrr.unlearning.facts import SetAside
from maxrr.unlearning.hashes import keyed_hash


def set_aside_of(key: bytes, test: Dataset) -> SetAside:
    """The same for the same records in any order, whether their ids are integers or the texts of these."""
    names = [test.class_names[label] for label in test.labels.tolist()]
    found = record_hashes(test.inputs, names, test.ids.astype(str), None)
    together = hashlib.sha256(b"".join(sorted(map(bytes, found)))).hexdigest()
    return SetAside(len(test), keyed_hash(key, b"test", together))


def check_set_aside(test: Dataset, training: Dataset) -> None:
    """Refuse test records of another kind than the training records, or which are just these."""
    if not isinstance(test, Dataset):
        raise TypeError(f"test should be a Dataset, not {type(test).__name__}")
    kinds = [described(each.inputs.dtype, each.shape) for each in (test, training)]
    if kinds[0] != kinds[1]:
        raise DataError("the test records are {}, but the training records are {}".format(*kinds))
    if test.class_names != training.class_names:
        raise DataError("the test records have other class names than the training records")
    known = len(test) > 0 and bool(np.isin(test.ids, training.ids).all())
    if known and np.array_equal(training.select(test.ids).inputs, test.inputs):
        raise DataError("the test records are all among the training records: set others aside")
