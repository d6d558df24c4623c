"""Short evidence that a record is in a commitment, or that it is absent: checked with nothing but the root.

The hashes beside the way from the root to where the record stands, or would stand, are its siblings. Of each statement
about a commitment there is one proof, and one text of it.
"""

from dataclasses import dataclass
from hashlib import sha256

from maxrr.errors import EvidenceError
from maxrr.evidence.exact_text import Bytes32, Plain

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
        found = f"{len(given)} bytes" if isinstance(given, bytes) else type(given).__name__
        raise ValueError(f"{what} is {SIZE} bytes, and this is {found}")


@dataclass(frozen=True, slots=True)
class Presence(Plain):
    """That a record is in a commitment, with this value.

    Attributes
    ----------
    siblings : tuple of bytes
        The hashes beside the way to the record, from the root down.
    """

    siblings: tuple[Bytes32, ...]

    def __post_init__(self) -> None:
        _check_siblings(self.siblings, DEEPEST)

    def verify(self, root: bytes, key: bytes, value: bytes) -> bool:
        """Whether this proves that the record with this key and value is in the commitment with this root."""
        check_size("a root", root)
        check_size("a key", key)
        check_size("a value", value)
        return _root_above(leaf_hash(key, value), key, self.siblings) == root


@dataclass(frozen=True, slots=True)
class Leaf:
    """A record at the end of a way."""

    key: Bytes32
    value: Bytes32


@dataclass(frozen=True, slots=True)
class Absence(Plain):
    """That no record with a certain key is in a commitment.

    Attributes
    ----------
    siblings : tuple of bytes
        The hashes beside the way to where the record would stand, from the root down.
    other : Leaf or None
        The record that stands at the end of the way; None if there is none.
    """

    siblings: tuple[Bytes32, ...]
    other: Leaf | None

    def __post_init__(self) -> None:
        # Beside an empty place stand several records, which part further down; so do the keys of two records.
        _check_siblings(self.siblings, DEEPEST - 1)

    def verify(self, root: bytes, key: bytes) -> bool:
        """Whether this proves that the commitment with this root has no record with this key."""
        check_size("a root", root)
        check_size("a key", key)
        if self.other is None:
            return _root_above(EMPTY, key, self.siblings) == root
        shared = shared_bits(key, self.other.key)
        if not len(self.siblings) <= shared < DEEPEST:
            return False  # the other one does not stand in this place, or is the record itself
        return _root_above(leaf_hash(self.other.key, self.other.value), key, self.siblings) == root


def _root_above(place: bytes, key: bytes, siblings: tuple[bytes, ...]) -> bytes:
    """The root of a tree in which this hash stands in the place of a key, beside these siblings."""
    for depth in reversed(range(len(siblings))):
        beside = siblings[depth]
        place = node_hash(beside, place) if bit(key, depth) else node_hash(place, beside)
    return place


def _check_siblings(siblings: tuple[bytes, ...], most: int) -> None:
    if len(siblings) > most:
        raise EvidenceError(f"a proof of this kind has at most {most} siblings, and this one has {len(siblings)}")
    if siblings and siblings[-1] == EMPTY:
        raise EvidenceError("the last sibling is empty: what stands beside it would stand further up")
