"""Proofs: the true one verifies, and nothing that differs from it in one bit does."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.evidence.exact_text import canonical_json, read_json
from maxrr.evidence.sparse_tree import EMPTY, Absence, Leaf, Presence, Tree, leaf_hash, node_hash
from tests.evidence.keys import KEYS, VALUES, flipped, spread

VALUE, ROOT = spread(1000), spread(1001)
RECORDS = st.dictionaries(KEYS, VALUES, max_size=20)
LEFT, RIGHT = flipped(bytes(32), 0), flipped(bytes(32), 255)  # keys that begin with 0 and with 1
BESIDE = flipped(bytes(32), 254)  # begins with 01


def accepted(check: Callable[[], bool]) -> bool:
    """Whether a proof is taken: one that cannot even be made is not."""
    try:
        return check()
    except ValueError:
        return False


def with_sibling(proof: Presence | Absence, place: int, sibling: bytes) -> tuple[bytes, ...]:
    return (*proof.siblings[:place], sibling, *proof.siblings[place + 1 :])


@given(RECORDS.filter(len), st.data())
def test_no_bit_of_a_proof_of_presence_is_idle(records: dict[bytes, bytes], data: st.DataObject) -> None:
    tree = Tree(records.items())
    key = data.draw(st.sampled_from(sorted(records)))
    root, value, proof = tree.root, records[key], tree.presence(key)
    assert proof.verify(root, key, value)
    for position in range(256):
        assert not proof.verify(flipped(root, position), key, value)
        assert not proof.verify(root, flipped(key, position), value)
        assert not proof.verify(root, key, flipped(value, position))
    for place in data.draw(st.sets(st.sampled_from(range(len(proof.siblings))), max_size=2)) if proof.siblings else ():
        for position in range(256):
            forged = with_sibling(proof, place, flipped(proof.siblings[place], position))
            assert not accepted(lambda forged=forged: Presence(forged).verify(root, key, value))


@given(RECORDS, KEYS, st.data())
def test_no_bit_of_a_proof_of_absence_is_idle(records: dict[bytes, bytes], key: bytes, data: st.DataObject) -> None:
    records.pop(key, None)
    tree = Tree(records.items())
    root, proof = tree.root, tree.absence(key)
    assert proof.verify(root, key)
    for position in range(256):
        assert not proof.verify(flipped(root, position), key)
        # Another key may be absent by the same proof, if it would stand in the same place; one that is there may not.
        other = flipped(key, position)
        assert not (other in records and proof.verify(root, other))
    for place in data.draw(st.sets(st.sampled_from(range(len(proof.siblings))), max_size=2)) if proof.siblings else ():
        for position in range(256):
            forged = with_sibling(proof, place, flipped(proof.siblings[place], position))
            assert not accepted(lambda forged=forged: Absence(forged, proof.other).verify(root, key))
    if proof.other is not None:
        neighbour, its_value = proof.other.key, proof.other.value
        for position in range(256):
            assert not Absence(proof.siblings, Leaf(flipped(neighbour, position), its_value)).verify(root, key)
            assert not Absence(proof.siblings, Leaf(neighbour, flipped(its_value, position))).verify(root, key)
        assert not accepted(lambda: Absence(proof.siblings, None).verify(root, key))


@given(RECORDS, KEYS, KEYS)
def test_a_proof_is_of_one_statement(records: dict[bytes, bytes], one: bytes, two: bytes) -> None:
    tree = Tree(records.items())
    for key in {one, two}:
        for other in {one, two, *records}:
            if other in records and other != key:
                assert not tree.presence(other).verify(tree.root, key, records.get(key, VALUE))
            siblings = (tree.presence if other in records else tree.absence)(other).siblings
            if key in records:
                assert not accepted(lambda siblings=siblings: Absence(siblings, None).verify(tree.root, key))  # noqa: B023
                for leaf in records.items():
                    assert not accepted(lambda siblings=siblings, leaf=leaf: Absence(siblings, Leaf(*leaf)).verify(tree.root, key))  # noqa: B023, E501 # fmt: skip
            else:
                assert not accepted(lambda siblings=siblings: Presence(siblings).verify(tree.root, key, VALUE))  # noqa: B023


@given(RECORDS, KEYS)
def test_siblings_more_or_fewer_prove_nothing(records: dict[bytes, bytes], key: bytes) -> None:
    tree = Tree(records.items())
    absent = key not in records
    proof = tree.absence(key) if absent else tree.presence(key)
    for siblings in (
        *(proof.siblings[:end] for end in range(len(proof.siblings))),
        *(proof.siblings[start:] for start in range(1, len(proof.siblings) + 1)),
        (*proof.siblings, VALUE), (VALUE, *proof.siblings), (*proof.siblings, EMPTY),
    ):  # fmt: skip
        if siblings != proof.siblings:
            if isinstance(proof, Absence):
                assert not accepted(lambda siblings=siblings: Absence(siblings, proof.other).verify(tree.root, key))
            else:
                assert not accepted(lambda siblings=siblings: Presence(siblings).verify(tree.root, key, records[key]))


def test_a_root_that_no_tree_has_proves_nothing() -> None:
    """Whoever makes up the hashes above a record can make up more than trees: these are refused all the same."""
    alone = leaf_hash(LEFT, VALUE)
    with pytest.raises(ValueError, match="would stand further up"):
        Presence((EMPTY,)).verify(node_hash(alone, EMPTY), LEFT, VALUE)
    with pytest.raises(ValueError, match="would stand further up"):
        Absence((EMPTY,), Leaf(LEFT, VALUE)).verify(node_hash(alone, EMPTY), BESIDE)
    with pytest.raises(ValueError, match="would stand further up"):
        Absence((EMPTY,), None).verify(node_hash(EMPTY, EMPTY), LEFT)
    misplaced = node_hash(leaf_hash(RIGHT, VALUE), leaf_hash(flipped(RIGHT, 0), VALUE))
    assert not Absence((leaf_hash(flipped(RIGHT, 0), VALUE),), Leaf(RIGHT, VALUE)).verify(misplaced, LEFT)


def test_what_stands_there_is_not_absent() -> None:
    tree = Tree([(LEFT, VALUE), (RIGHT, VALUE)])
    siblings = tree.presence(LEFT).siblings
    assert not Absence(siblings, Leaf(LEFT, VALUE)).verify(tree.root, LEFT)
    assert Absence(siblings, Leaf(LEFT, VALUE)).verify(tree.root, BESIDE)


def test_siblings_are_32_bytes_and_not_too_many() -> None:
    assert len(Presence((VALUE,) * 256).siblings) == 256
    for refused in (
        lambda: Presence((VALUE,) * 257),
        lambda: Absence((VALUE,) * 256, None),
        lambda: Presence.from_object({"siblings": [VALUE[:31].hex()]}),
    ):
        with pytest.raises(ValueError, match=r"at most|64 hexadecimal digits"):
            refused()
    for refused in (
        lambda: Presence(()).verify(ROOT[:31], LEFT, VALUE),
        lambda: Presence(()).verify(ROOT, LEFT + b"x", VALUE),
        lambda: Presence(()).verify(ROOT, LEFT, VALUE.hex()),  # type: ignore[arg-type]
        lambda: Absence((), None).verify(EMPTY.hex(), LEFT),  # type: ignore[arg-type]
        lambda: Absence((), None).verify(EMPTY, LEFT[:5]),
    ):
        with pytest.raises(ValueError, match="is 32 bytes, and this is"):
            refused()


@given(RECORDS, KEYS)
def test_a_proof_is_read_as_it_was_written(records: dict[bytes, bytes], key: bytes) -> None:
    tree = Tree(records.items())
    proof = tree.presence(key) if key in records else tree.absence(key)
    said = json.loads(json.dumps(proof.to_object()))
    assert type(proof).from_object(said) == proof
    with pytest.raises(ValueError, match="is not as it must be"):
        (Presence if isinstance(proof, Absence) else Absence).from_object(said)


def some_proofs() -> list[tuple[Tree, bytes, bytes | None]]:
    tree = Tree([(LEFT, VALUE), (flipped(LEFT, 253), VALUE), (RIGHT, VALUE)])
    return [(tree, LEFT, VALUE), (tree, flipped(RIGHT, 9), None), (tree, BESIDE, None), (Tree(), LEFT, None)]


@pytest.mark.parametrize(("tree", "key", "value"), some_proofs())
def test_every_bit_of_the_text_matters(tree: Tree, key: bytes, value: bytes | None) -> None:
    text = canonical_json((tree.absence(key) if value is None else tree.presence(key)).to_object())

    def taken(given: bytes) -> bool:
        said = read_json(given, "the proof")
        if value is None:
            return Absence.from_object(said).verify(tree.root, key)
        return Presence.from_object(said).verify(tree.root, key, value)

    assert taken(text)
    for position in range(8 * len(text)):
        assert not accepted(lambda position=position: taken(flipped(text, position)))


def test_both_kinds_of_absence_are_among_them() -> None:
    ends = {tree.absence(key).other is None for tree, key, value in some_proofs() if value is None and len(tree)}
    assert ends == {True, False}


GOOD = Absence((VALUE, ROOT), Leaf(LEFT, VALUE)).to_object()


@pytest.mark.parametrize(
    "change",
    [
        {"more": 1}, {"siblings": None}, {"siblings": "ab"}, {"siblings": {}}, {"siblings": [1]}, {"siblings": [None]},
        {"siblings": [VALUE.hex().upper()]}, {"siblings": [VALUE.hex()[:-1]]}, {"siblings": [VALUE.hex() + " "]},
        {"siblings": [" " + VALUE.hex()[1:]]}, {"siblings": [VALUE.hex()[:-1] + "\n"]},
        {"siblings": [VALUE.hex() + "\n"]},
        {"siblings": ["٠" * 64]}, {"siblings": [VALUE.hex()] * 256}, {"siblings": [VALUE.hex()] * 100_000},
        {"siblings": [EMPTY.hex()]}, {"other": []}, {"other": {}}, {"other": {"key": LEFT.hex()}}, {"other": False},
        {"other": {"key": LEFT.hex(), "value": VALUE.hex(), "more": 1}}, {"other": {"key": LEFT.hex(), "value": None}},
    ],
    ids=lambda change: str(change)[:60],
)  # fmt: skip
def test_what_is_no_proof_is_refused(change: dict[str, object]) -> None:
    assert Absence.from_object(GOOD)
    with pytest.raises(ValueError, match="the absence is not as it must be"):
        Absence.from_object(GOOD | change)


@pytest.mark.parametrize("missing", ["siblings", "other"])
def test_every_field_is_there(missing: str) -> None:
    with pytest.raises(ValueError, match=f"no field '{missing}'"):
        Absence.from_object({name: value for name, value in GOOD.items() if name != missing})
