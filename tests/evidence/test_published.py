"""Roots that others published for the same rule: the test specification of Fuel's sparse Merkle tree, version 0.1.0.

github.com/FuelLabs/fuel-vm, fuel-merkle/docs/test-specs/sparse_merkle_tree_tests.md. Key number i is the SHA-256 of i
as four bytes, big-endian, and a value is the SHA-256 of what is stored.
"""

from collections.abc import Iterable
from hashlib import sha256

import pytest

from maxrr.evidence.sparse_tree import Tree
from tests.evidence.oracle import root_of

ONE = "39f36a7cb4dfb1b46f03d044265df6a491dffc1034121bc1071a34ddce9bb14b"
FIVE = "108f731f2414e33ae57e584dc26bd276db07874436b2264ca6e520c658185c6b"
UNION = "7e6643325042cfe0fc76626c043b97062af51c7e9fc56665f12b479034bce326"
EVEN = "e912e97abc67707b2e6027338292943b53d01a7fbd7b244674128c7e468dd696"
ROOTS = {
    "empty": ([], "00" * 32),
    "update 1": (range(1), ONE),
    "update 2": (range(2), "8d0ae412ca9ca0afcb3217af8bcd5a673e798bd6fd1dfacad17711e883f494cb"),
    "update 3": (range(3), "52295e42d8de2505fdc0cc825ff9fead419cbcf540d8b30c7c4b9c9b94c268b7"),
    "update 5": (range(5), FIVE),
    "update 10": (range(10), "21ca4917e99da99a61de93deaf88c400d4c082991cb95779e444d43dd13e8849"),
    "update 100": (range(100), "82bf747d455a55e2f7044a03536fc43f1f55d43b855e72c0110c986707a23e4d"),
    "update union": ([*range(5), *range(10, 15), *range(20, 25)], UNION),
    "update sparse union": (range(0, 10, 2), EVEN),
}


def key(number: int) -> bytes:
    return sha256(number.to_bytes(4, "big")).digest()


def records(numbers: Iterable[int], stored: bytes = b"DATA") -> dict[bytes, bytes]:
    return {key(number): sha256(stored).digest() for number in numbers}


@pytest.mark.parametrize(("numbers", "root"), ROOTS.values(), ids=ROOTS)
def test_roots_of_sets(numbers: Iterable[int], root: str) -> None:
    held = records(numbers)
    assert Tree(held.items()).root.hex() == root
    assert root_of(held).hex() == root
    tree = Tree()
    for each, value in held.items():
        tree.apply(tree.change(put={each: value}))
    assert tree.root.hex() == root


def test_overwriting() -> None:
    tree = Tree(records([0]).items())
    tree.apply(tree.change(put=records([0])))
    assert tree.root.hex() == ONE
    tree.apply(tree.change(put=records([0], b"CHANGE")))
    assert tree.root.hex() == "dd97174c80e5e5aa3a31c61b05e279c1495c8a07b2a08bca5dbc9fb9774f9457"


@pytest.mark.parametrize(
    ("put", "removed", "root"),
    [
        (range(1), range(1), "00" * 32),
        (range(2), range(1, 2), ONE),
        (range(10), range(5, 10), FIVE),
        (range(10), range(1, 10, 2), EVEN),
    ],
)
def test_deleting(put: range, removed: range, root: str) -> None:
    at_once = Tree(records(put).items())
    assert at_once.change(remove=list(records(removed))).root.hex() == root
    one_by_one = Tree(records(put).items())
    for each in records(removed):
        one_by_one.apply(one_by_one.change(remove=[each]))
    assert one_by_one.root.hex() == root


def test_putting_and_deleting_in_turn() -> None:
    tree = Tree()
    for start in (0, 10, 20):
        tree.apply(tree.change(put=records(range(start, start + 10))))
        gone = [each for each in records(range(start + 5, start + 15)) if tree.get(each) is not None]
        tree.apply(tree.change(remove=gone))
    assert tree.root.hex() == UNION
