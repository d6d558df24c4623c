"""Short evidence that a record is in a commitment, or that it is absent: checked with nothing but the root.

The hashes beside the way from the root to where the record stands, or would stand, are its siblings. Of each statement
about a commitment there is one proof, and one text of it.
"""

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Self, TypedDict

from maxrr.evidence.exact_text import Bytes32, read_as
from maxrr.files import parse_json

# How records and subtrees of a commitment are hashed, and how keys are read bit by bit: the rule, and why it is this
# one, is in docs/evidence.md.

SIZE = 32  # bytes of a key, a value and a hash
DEEPEST = 8 * SIZE  # two keys that differ in the last bit only part here
EMPTY = bytes(SIZE)  # a subtree without records
LEAF, NODE = b"\x00", b"\x01"


def leaf_hash(key: bytes, value: bytes) -> bytes:
    """The hash of a subtree with one record, however deep it starts."""
    return sha256(LEAF + key + value).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """The hash of a subtree with several records, from those of its halves."""
    return sha256(NODE + left + right).digest()


def bit(key: bytes, depth: int) -> int:
    """Whether a key goes left (0) or right (1) below this depth: its bits, the most significant first.

    >>> [bit(b"\\xa0", depth) for depth in range(4)]
    [1, 0, 1, 0]
    """
    return key[depth >> 3] >> (7 - (depth & 7)) & 1


def shared_bits(one: bytes, other: bytes) -> int:
    """How many bits two keys of the same length have in common before they first differ.

    >>> shared_bits(b"\\xa0", b"\\xb0")
    3
    """
    return 8 * len(one) - (int.from_bytes(one, "big") ^ int.from_bytes(other, "big")).bit_length()


def check_size(what: str, given: object) -> None:
    """Keys, values and hashes are 32 bytes, and bytes: a hexadecimal text of one would be another key."""
    if not isinstance(given, bytes) or len(given) != SIZE:
        raise ValueError(f"{what} is {SIZE} bytes, and this is {_described(given)}")


def _described(given: object) -> str:
    return f"{len(given)} bytes" if isinstance(given, bytes) else type(given).__name__


class _Presence(TypedDict):
    type: str
    siblings: tuple[Bytes32, ...]


class _Leaf(TypedDict):
    key: Bytes32
    value: Bytes32


class _Absence(_Presence):
    other: _Leaf | None


class _Proof(ABC):
    """How proofs become JSON, and come from it."""

    def to_json(self) -> str:
        """The proof as text.

        Returns
        -------
        str
            JSON in the only form that `from_json` reads: names in order, no spaces.
        """
        return json.dumps(self.to_object(), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read a proof from its text. Whether it proves anything is for `verify` to say.

        Parameters
        ----------
        text : str
            JSON, as `to_json` writes it.

        Returns
        -------
        Self
            The proof.

        Raises
        ------
        ValueError
            The text is not that of a proof of this kind, or not as `to_json` would write it.
        """
        proof = cls.from_object(parse_json(text))
        if proof.to_json() != text:
            raise ValueError("the proof is not written in the one form that it has")
        return proof

    @abstractmethod
    def to_object(self) -> dict[str, Any]: ...

    @classmethod
    @abstractmethod
    def from_object(cls, found: object) -> Self: ...


@dataclass(frozen=True, slots=True)
class Presence(_Proof):
    """That a record is in a commitment, with this value.

    Parameters
    ----------
    siblings : tuple of bytes
        The hashes beside the way to the record, from the root down: one for each bit of its key that was needed to part
        it from all others.

    Raises
    ------
    ValueError
        These cannot be siblings of a record.
    """

    siblings: tuple[bytes, ...]

    TYPE = "maxrr/commitment/v1/presence"

    def __post_init__(self) -> None:
        _check_siblings(self.siblings, DEEPEST)

    def verify(self, root: bytes, key: bytes, value: bytes) -> bool:
        """Whether this proves that the record is in the commitment.

        Parameters
        ----------
        root : bytes
            The commitment.
        key : bytes
            The record's key (`key_of`).
        value : bytes
            The record's value (`value_of`).

        Returns
        -------
        bool
            True if it is proved. False says nothing about the record: only that this is no proof.

        Raises
        ------
        ValueError
            One of the three is not 32 bytes.
        """
        check_size("a root", root)
        check_size("a key", key)
        check_size("a value", value)
        return _root_above(leaf_hash(key, value), key, self.siblings) == root

    def to_object(self) -> dict[str, Any]:
        """The proof as an object of JSON, to be part of another.

        Returns
        -------
        dict
            Its type and its siblings in hexadecimal digits.
        """
        return {"type": self.TYPE, "siblings": [each.hex() for each in self.siblings]}

    @classmethod
    def from_object(cls, found: object) -> Self:
        """Read a proof that is part of another JSON text.

        Parameters
        ----------
        found : object
            What `to_object` gave.

        Returns
        -------
        Self
            The proof.

        Raises
        ------
        ValueError
            It is something else.
        """
        form = read_as(_Presence, found, "the proof")
        _check_type(form["type"], cls.TYPE)
        return cls(form["siblings"])


@dataclass(frozen=True, slots=True)
class Absence(_Proof):
    """That no record with a certain key is in a commitment.

    Parameters
    ----------
    siblings : tuple of bytes
        The hashes beside the way to where the record would stand, from the root down.
    other : tuple of two bytes, optional
        Key and value of the one record that stands there instead. None if nothing does.

    Raises
    ------
    ValueError
        There is no commitment in which these stand beside and at the end of a way.
    """

    siblings: tuple[bytes, ...]
    other: tuple[bytes, bytes] | None = None

    TYPE = "maxrr/commitment/v1/absence"

    def __post_init__(self) -> None:
        # Beside an empty place stand several records, which part further down; so do the keys of two records.
        _check_siblings(self.siblings, DEEPEST - 1)
        if self.other is not None:
            key, value = self.other
            check_size("a key", key)
            check_size("a value", value)

    def verify(self, root: bytes, key: bytes) -> bool:
        """Whether this proves that the commitment has no record with this key.

        Parameters
        ----------
        root : bytes
            The commitment.
        key : bytes
            The record's key (`key_of`).

        Returns
        -------
        bool
            True if it is proved. False says nothing about the record: only that this is no proof.

        Raises
        ------
        ValueError
            One of the two is not 32 bytes.
        """
        check_size("a root", root)
        check_size("a key", key)
        if self.other is None:
            return _root_above(EMPTY, key, self.siblings) == root
        shared = shared_bits(key, self.other[0])
        if not len(self.siblings) <= shared < DEEPEST:
            return False  # the other one does not stand in this place, or is the record itself
        return _root_above(leaf_hash(*self.other), key, self.siblings) == root

    def to_object(self) -> dict[str, Any]:
        """As `Presence.to_object`, with the other record's key and value, or null."""
        other = None if self.other is None else {"key": self.other[0].hex(), "value": self.other[1].hex()}
        return {"type": self.TYPE, "siblings": [each.hex() for each in self.siblings], "other": other}

    @classmethod
    def from_object(cls, found: object) -> Self:
        """As `Presence.from_object`."""
        form = read_as(_Absence, found, "the proof")
        _check_type(form["type"], cls.TYPE)
        other = form["other"]
        return cls(form["siblings"], None if other is None else (other["key"], other["value"]))


def _root_above(place: bytes, key: bytes, siblings: tuple[bytes, ...]) -> bytes:
    """The root of a tree in which this hash stands in the place of a key, beside these siblings."""
    for depth in reversed(range(len(siblings))):
        beside = siblings[depth]
        place = node_hash(beside, place) if bit(key, depth) else node_hash(place, beside)
    return place


def _check_siblings(siblings: tuple[bytes, ...], most: int) -> None:
    if not isinstance(siblings, tuple):
        raise ValueError(f"the siblings of a proof are a tuple, and this is {type(siblings).__name__}")
    if len(siblings) > most:
        raise ValueError(f"a proof of this kind has at most {most} siblings, and this one has {len(siblings)}")
    for each in siblings:
        check_size("a sibling", each)
    if siblings and siblings[-1] == EMPTY:
        raise ValueError("the last sibling is empty: what stands beside it would stand further up")


def _check_type(found: str, kind: str) -> None:
    if found != kind:
        raise ValueError(f"this is a proof of another type: not {kind}")
