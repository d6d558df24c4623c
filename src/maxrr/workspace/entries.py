"""What stays of the forgotten in the history, and of each request what is needed at every opening.

Entries of 97 bytes each, in the order in which they came: a letter that says what it is, and 96 bytes.
"""

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from maxrr.workspace.history import Frame

Stone = tuple[bytes, bytes, bytes]  # as `maxrr.unlearning.tombstones.Tombstone`
Then = tuple[int, str]  # as `maxrr.unlearning.tombstones.Forgotten`

SIZE = 97
STONE, PERSON, REQUEST = b"s", b"p", b"r"  # a forgotten record; a person whom no record is about; a request


class Answered(NamedTuple):
    """A request that was carried out: its receipt, and where it lies.

    Attributes
    ----------
    digest : str
        The SHA-256 of the receipt's text, by which the next receipt names it.
    logged : bytes
        What the log has of it: the SHA-256 of its statement, of the text where it is not signed.
    receipt : tuple of int
        Where the receipt, as it was handed out, begins and ends in the history.
    proofs : tuple of int
        Where its sealed proofs do.
    """

    digest: str
    logged: bytes
    receipt: tuple[int, int]
    proofs: tuple[int, int]


class Entries(NamedTuple):
    """All that a history says of requests."""

    stones: list[Stone]
    people: dict[str, Then]
    answered: list[Answered]


def stone_entry(stone: Stone) -> bytes:
    return STONE + b"".join(stone)


def person_entry(person: str, then: Then) -> bytes:
    """A person by HMAC, and the number and time of the request."""
    number, time = then
    return (PERSON + bytes.fromhex(person) + number.to_bytes(8, "little") + time.encode()).ljust(SIZE, b"\0")


def request_entry(done: Answered) -> bytes:
    return REQUEST + bytes.fromhex(done.digest) + done.logged + struct.pack("<4Q", *done.receipt, *done.proofs)


def entries_of(stones: Iterable[Stone], people: Mapping[str, Then]) -> bytes:
    """The entries of what a model has forgotten before it came to a workspace, in an order that says nothing."""
    found = [stone_entry(stone) for stone in stones] + [person_entry(*each) for each in people.items()]
    return b"".join(sorted(found))


class Kept(NamedTuple):
    """What a frame keeps of one request: its receipt as it was handed out, its entries, its sealed proofs."""

    receipt: bytes
    entries: bytes
    proofs: bytes


def kept_in(frames: Iterable[Frame]) -> list[Kept]:
    """What the frames of a history keep of each request, from the first."""
    found = []
    for frame in frames:
        start = receipt_at = proofs_at = 0
        for at in range(0, len(frame.entries), SIZE):
            if frame.entries[at : at + 1] != REQUEST:
                continue
            (done,) = read_entries(frame.entries[at : at + SIZE]).answered
            receipt_stop = receipt_at + done.receipt[1] - done.receipt[0]
            proofs_stop = proofs_at + done.proofs[1] - done.proofs[0]
            receipt, proofs = frame.receipts[receipt_at:receipt_stop], frame.proofs[proofs_at:proofs_stop]
            found.append(Kept(bytes(receipt), frame.entries[start:at], bytes(proofs)))
            start, receipt_at, proofs_at = at + SIZE, receipt_stop, proofs_stop
    return found


def read_entries(content: bytes) -> Entries:
    """What a history says. The caller has checked its frames."""
    if len(content) % SIZE:
        raise ValueError(f"it has {len(content)} bytes, which are no entries")
    found = Entries([], {}, [])
    for kind, *said in struct.iter_unpack("c32s32s32s", content):
        one, two, three = said
        if kind == STONE:
            found.stones.append((one, two, three))
        elif kind == REQUEST:
            places = struct.unpack("<4Q", three)
            found.answered.append(Answered(one.hex(), two, places[:2], places[2:]))
        elif kind == PERSON:
            found.people[one.hex()] = int.from_bytes(two[:8], "little"), (two[8:] + three).rstrip(b"\0").decode()
        else:
            raise ValueError(f"{kind!r} is no kind of entry")
    return found
