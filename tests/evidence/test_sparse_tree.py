"""The tree against the definition, whatever is put and removed, and however keys lie."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from maxrr.evidence.sparse_tree import FULL, Absence, Change, Presence, Tree
from tests.cases import THOROUGH
from tests.evidence.keys import KEYS, NEAR, VALUES, flipped, spread
from tests.evidence.oracle import root_of, siblings_of

RECORDS = st.dictionaries(KEYS, VALUES, max_size=40)
VALUE, OTHER_VALUE = spread(1000), spread(1001)


def tree_of(records: dict[bytes, bytes]) -> Tree:
    return Tree(sorted(records.items()))


@given(RECORDS, st.randoms())
def test_the_root_is_that_of_the_definition_in_whatever_order(records: dict[bytes, bytes], random: object) -> None:
    shuffled = list(records.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    tree = Tree(shuffled)
    assert tree.root == tree_of(records).root == root_of(records)
    assert dict(tree.items()) == records
    assert [key for key, _ in tree.items()] == sorted(records)
    assert len(tree) == len(records)


@given(RECORDS, KEYS)
def test_proofs_are_those_of_the_definition(records: dict[bytes, bytes], key: bytes) -> None:
    tree = tree_of(records)
    assert tree.get(key) == records.get(key)
    proof = tree.presence(key) if key in records else tree.absence(key)
    assert list(proof.siblings) == siblings_of(records, key)
    for each in records:
        assert tree.presence(each).verify(tree.root, each, records[each])


class Machine(RuleBasedStateMachine):
    """Changes in any order and of any size, each looked at before and after it is applied."""

    def __init__(self) -> None:
        super().__init__()
        self.tree, self.records = Tree(), dict[bytes, bytes]()

    @rule(put=st.dictionaries(KEYS, VALUES, max_size=12), ask=st.lists(KEYS, max_size=2))
    def put(self, put: dict[bytes, bytes], ask: list[bytes]) -> None:
        self.make(self.tree.change(put=put), self.records | put, [*list(put)[:2], *ask])

    @rule(share=st.floats(0, 1), put=st.dictionaries(KEYS, VALUES, max_size=2), data=st.data())
    def remove(self, share: float, put: dict[bytes, bytes], data: st.DataObject) -> None:
        there = sorted(set(self.records) - set(put))
        gone = data.draw(st.permutations(there))[: round(share * len(there))]
        after = {key: value for key, value in self.records.items() if key not in gone} | put
        self.make(self.tree.change(remove=gone, put=put), after, [*gone[:2], *put])

    @rule(key=NEAR)
    def remove_what_is_not_there(self, key: bytes) -> None:
        if key not in self.records:
            with pytest.raises(ValueError, match="is not there"):
                self.tree.change(remove=[key])

    def make(self, change: Change, after: dict[bytes, bytes], ask: list[bytes]) -> None:
        before = self.tree.root
        assert change.root == root_of(after)
        assert len(change) == len(after)
        for key in ask:
            check(change, after, key)
        assert self.tree.root == before == root_of(self.records)
        self.tree.apply(change)
        self.records = after
        for key in ask:
            check(self.tree, after, key)

    @invariant()
    def it_is_a_tree_built_anew(self) -> None:
        assert self.tree.root == tree_of(self.records).root
        assert dict(self.tree.items()) == self.records
        assert len(self.tree) == len(self.records)


def check(view: Tree | Change, records: dict[bytes, bytes], key: bytes) -> None:
    """What is said and proved of a key is true, and the opposite is not proved."""
    assert view.get(key) == records.get(key)
    if key in records:
        assert view.presence(key) == Presence(tuple(siblings_of(records, key)))
        assert view.presence(key).verify(view.root, key, records[key])
        with pytest.raises(KeyError, match="nobody can prove its absence"):
            view.absence(key)
    else:
        assert view.absence(key).verify(view.root, key)
        assert list(view.absence(key).siblings) == siblings_of(records, key)
        with pytest.raises(KeyError, match="no record has the key"):
            view.presence(key)


TestMachine = Machine.TestCase
TestMachine.settings = settings(max_examples=100 if THOROUGH else 12, stateful_step_count=50 if THOROUGH else 15)


def test_buckets_become_more_as_records_do() -> None:
    tree, records = Tree(), dict[bytes, bytes]()
    bits = {tree._bits}
    for number in range(FULL * 20):
        records[spread(number)] = VALUE
        tree.apply(tree.change(put={spread(number): VALUE}))
        bits.add(tree._bits)
        assert len(tree) <= FULL << tree._bits
    assert len(bits) > 2
    assert tree.root == Tree(records.items()).root == root_of(records)


def test_few_of_many_buckets_are_left() -> None:
    records = {spread(number): VALUE for number in range(300)}
    tree = Tree(records.items())
    while records:
        gone = sorted(records)[: max(1, len(records) // 3)]
        tree.apply(tree.change(remove=gone))
        for key in gone:
            del records[key]
            assert tree.absence(key).verify(tree.root, key)
        assert tree.root == root_of(records)
        for key in records:
            assert tree.presence(key).verify(tree.root, key, VALUE)
    assert tree.absence(spread(0)) == Absence((), None)


def test_keys_that_differ_in_the_last_bit_stand_at_the_deepest_level() -> None:
    key = spread(0)
    records = {key: VALUE, flipped(key, 0): VALUE}
    tree = Tree(records.items())
    assert tree.root == root_of(records)
    assert len(tree.presence(key).siblings) == 256
    assert tree.change(remove=[key]).presence(flipped(key, 0)) == Presence(())


def test_a_change_computes_a_few_hashes() -> None:
    tree = Tree((spread(number), VALUE) for number in range(4096))
    change = tree.change(remove=[spread(5)])
    assert len(change.hashes) == tree._bits + 1 == 12
    assert len(change.buckets) == 1


def test_a_change_of_another_state_is_refused() -> None:
    tree = Tree([(spread(0), VALUE)])
    first, second = tree.change(put={spread(1): VALUE}), tree.change(put={spread(2): VALUE})
    with pytest.raises(ValueError, match="another state of the tree"):
        Tree([(spread(0), VALUE)]).apply(first)
    tree.apply(first)
    after = dict(tree.items())
    for late in (first, second):
        with pytest.raises(ValueError, match="another state of the tree"):
            tree.apply(late)
        with pytest.raises(ValueError, match="another state of the tree"):
            late.absence(spread(3))
        with pytest.raises(ValueError, match="another state of the tree"):
            late.get(spread(3))
    assert dict(tree.items()) == after
    assert first.root == tree.root == root_of(after)


def test_a_change_of_nothing_changes_nothing() -> None:
    for tree in (Tree(), Tree([(spread(0), VALUE)]), Tree((spread(number), VALUE) for number in range(50))):
        before = tree.root
        assert tree.change().root == before
        tree.apply(tree.change(put=dict(tree.items())))
        assert tree.root == before


@pytest.mark.parametrize("bad", [b"", bytes(31), bytes(33), "0" * 32, bytearray(32)])
def test_what_is_not_32_bytes_is_refused(bad: bytes) -> None:
    tree = Tree([(spread(0), VALUE)])
    for refused in (
        lambda: Tree([(bad, VALUE)]),
        lambda: Tree([(spread(0), bad)]),
        lambda: tree.change(put={spread(1): bad}),
        lambda: tree.change(remove=[bytes(33)]),
        lambda: tree.get(bad),
        lambda: tree.presence(bad),
        lambda: tree.absence(bad),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"is 32 bytes, and this is"):
            refused()


def test_a_record_that_is_there_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="two records have the key"):
        Tree([(spread(0), VALUE), (spread(0), OTHER_VALUE)])


def test_a_record_is_not_removed_and_put_at_once() -> None:
    tree = Tree([(spread(0), VALUE)])
    with pytest.raises(ValueError, match="to be removed and put"):
        tree.change(remove=[spread(0)], put={spread(0): OTHER_VALUE})
    assert tree.change(put={spread(0): OTHER_VALUE}).root == root_of({spread(0): OTHER_VALUE})
