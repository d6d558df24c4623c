"""Hashes by which receipts and bundles name models, classes and records; and the commitment of a model to its records.

The commitment is the root of a salted tree over the records.

A record stands in the tree under a salt that comes from the model's secret and its id, so that roots and proofs tell
nothing to whoever does not have the salt. States of a model share one tree, which is that of the newest: a request
computes its change beside the tree, and the tree is changed when the next state is taken over. A tree that is not that
of a state, because something was interrupted, is built again from the records.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from maxrr.data import Dataset
from maxrr.data.hashes import framed, identifier_bytes, record_hashes
from maxrr.errors import Contradiction
from maxrr.evidence.sparse_tree import Absence, Change, Presence, Tree, key_of, salt_of, value_of
from maxrr.nets.inputs import as_array
from maxrr.unlearning.facts import SetAside

Digests = NDArray[np.uint8]


class ExtractorHash:
    """The SHA-256 of an extractor (its layers; name, type, shape and bytes of each weight), to which heads can be
    added.

    Parameters
    ----------
    layers : str
        Its architecture, as `maxrr.nets.architecture` describes it.
    extractor : mapping of str to Tensor
        Its weights and buffers by name.
    """

    def __init__(self, layers: str, extractor: Mapping[str, Tensor]) -> None:
        self._seen = hashlib.sha256(framed(layers.encode("utf-8", "surrogatepass")))
        for name, value in sorted(extractor.items()):
            self._seen.update(framed(framed(name.encode(), described(as_array(value.detach().cpu())))))

    def with_heads(self, classes: Sequence[str], weights: NDArray[Any], intercepts: NDArray[Any]) -> str:
        """Return the hash of the extractor together with these heads and the names of their classes."""
        whole = self._seen.copy()
        whole.update(framed(framed(*map(identifier_bytes, classes)), described(weights), described(intercepts)))
        return whole.hexdigest()

    def __deepcopy__(self, memo: dict[int, Any]) -> "ExtractorHash":
        return self  # it never changes


def described(array: NDArray[Any]) -> bytes:
    """An array's type, shape and bytes."""
    return framed(array.dtype.str.encode(), str(array.shape).encode(), np.ascontiguousarray(array).tobytes())


def keyed_hash(key: bytes, purpose: bytes, text: str) -> str:
    """Return an HMAC of a text, which may be handed out: without the key nobody can find the text by trying."""
    return hmac.digest(key, framed(purpose, text.encode("utf-8", "surrogatepass")), "sha256").hex()


def class_hmac(key: bytes, name: str) -> str:
    """The HMAC of the name of a class, which may be that of a person."""
    return keyed_hash(key, b"class", name)


def weights_by_hmac(key: bytes, weights: Mapping[str, float]) -> dict[str, float] | None:
    """Weights of classes by the HMACs of their names; None where no class has a weight."""
    return dict(sorted((class_hmac(key, name), weight) for name, weight in weights.items())) or None


def set_aside_of(key: bytes, test: Dataset) -> SetAside:
    """Hash test records: the same in any order, whether their ids are integers or the texts of these."""
    names = [test.class_names[label] for label in test.labels.tolist()]
    found = record_hashes(test.inputs, names, test.ids.astype(str), None)
    together = hashlib.sha256(b"".join(sorted(map(bytes, found)))).hexdigest()
    return SetAside(len(test), keyed_hash(key, b"test", together))


@dataclass(frozen=True)
class Departure:
    """A record that leaves by a request, with proofs of it for whoever it is about.

    Attributes
    ----------
    id : int or str
        The record's id.
    subject : int, str or None
        Whom it is about; None where records say nothing of that.
    value : bytes
        What the commitment before the request said of the record.
    before : Presence
        That the record is in the commitment before the request.
    after : Absence or Presence
        That no record with this id is in the commitment after it; or, where it was replaced, that the new one is.
    after_value : bytes or None
        What the commitment then says of the record that took its place; None where none did.
    """

    id: int | str
    subject: int | str | None
    value: bytes
    before: Presence
    after: Absence | Presence
    after_value: bytes | None


class TreeRecord(NamedTuple):
    """A record that leaves or arrives: its id, whom it is about, and its key and value in the tree."""

    id: int | str
    subject: int | str | None
    key: bytes
    value: bytes

    @classmethod
    def of(cls, secret: bytes, id_: int | str, subject: int | str | None, record_hash: bytes) -> "TreeRecord":
        """Find where a record stands in the tree."""
        name = identifier_bytes(id_)
        salt = salt_of(secret, name)
        return cls(id_, subject, key_of(salt, name), value_of(salt, record_hash))


class Commitment:
    """The commitment of one state: its root, and as long as the state is the newest, the tree.

    Parameters
    ----------
    root : str, optional
        The root in hexadecimal digits, where it is known already; otherwise it is found by building the tree.
    """

    def __init__(self, root: str | None = None) -> None:
        self.root = root
        self._tree: Tree | None = None
        self._state = -1  # of the tree, at which it is that of this commitment
        self._change: Change | None = None  # that makes it so
        self._leaving: Sequence[TreeRecord] = ()

    def tree(self, secret: bytes, records: Callable[[], tuple[NDArray[Any], Digests]]) -> Tree:
        """Return the tree over the records of the state. `records` is called only if the tree has to be built."""
        self.settle()
        if self._tree is None or self._tree.state != self._state:
            ids, hashes = records()
            tree = tree_of(salts_of(secret, ids), ids, hashes)
            if self.root not in (None, tree.root.hex()):
                raise Contradiction("the records are not those that the commitment was made of")
            self.root, self._tree, self._state = tree.root.hex(), tree, tree.state
        return self._tree

    def after(self, tree: Tree, leaving: Sequence[TreeRecord], arriving: Iterable[TreeRecord]) -> "Commitment":
        """Return the commitment after some records left and others arrived, perhaps under the same ids."""
        put = {one.key: one.value for one in arriving}
        change = tree.change({one.key for one in leaving} - put.keys(), put)
        found = Commitment(change.root.hex())
        found._tree, found._change, found._leaving = tree, change, leaving
        return found

    def departures(self) -> list[Departure]:
        """Return the records that left by the request which led to this state, each with its proofs.

        Ask before the state is taken over: then the tree goes on, and nothing of these records is kept. Empty for a
        state that no request led to.
        """
        if self._change is None or self._tree is None:
            return []
        return [departure(self._tree, self._change, one) for one in self._leaving]

    def settle(self) -> None:
        """Apply the pending change to the tree, and forget who left. Call it once the state was taken over."""
        if self._change is not None and self._tree is not None:
            change, self._change, self._leaving = self._change, None, ()
            if change.is_current():
                self._tree.apply(change)
                self._state = self._tree.state


def departure(tree: Tree, change: Change, one: TreeRecord) -> Departure:
    """Prove that a record was in the tree before the change, and is gone or replaced after it."""
    then = change.get(one.key)
    after = change.absence(one.key) if then is None else change.presence(one.key)
    return Departure(one.id, one.subject, one.value, tree.presence(one.key), after, then)


def salts_of(secret: bytes, ids: NDArray[Any]) -> Digests:
    """Compute the salt of each record, (n, 32)."""
    found = b"".join(salt_of(secret, identifier_bytes(id_)) for id_ in ids.tolist())
    return np.frombuffer(found, dtype=np.uint8).reshape(-1, 32).copy()


def tree_of(salts: Digests, ids: NDArray[Any], hashes: Digests) -> Tree:
    """Build the tree over records from their salts, ids and hashes; the secret is not needed."""
    names = map(identifier_bytes, ids.tolist())
    salt, record_hash = (map(bytes, digests) for digests in (salts, hashes))
    return Tree(
        (key_of(each, name), value_of(each, whole)) for each, name, whole in zip(salt, names, record_hash, strict=True)
    )
