"""The test records that were set aside when a model was fitted: what stays known of them."""

import hashlib
from dataclasses import dataclass

from maxrr.data import Dataset
from maxrr.data.hashes import record_hashes
from maxrr.unlearning.hashes import keyed_hash


@dataclass(frozen=True)
class SetAside:
    """How many test records there are, and a hash under the model's key of their ids, classes and values."""

    records: int
    hash: str

    @classmethod
    def of(cls, key: bytes, test: Dataset) -> "SetAside":
        """The same for the same records in any order, whether their ids are integers or the texts of these."""
        names = [test.class_names[label] for label in test.labels.tolist()]
        found = record_hashes(test.inputs, names, test.ids.astype(str), None)
        together = hashlib.sha256(b"".join(sorted(map(bytes, found)))).hexdigest()
        return cls(len(test), keyed_hash(key, b"test", together))
