"""How records and subtrees of a commitment are hashed, and how keys are read bit by bit.

The rule, and why it is this one, is in docs/evidence.md.
"""

from hashlib import sha256

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
