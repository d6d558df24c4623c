"""Collections in layers are plain ones, as far as anybody can tell."""

from hypothesis import given
from hypothesis import strategies as st

from maxrr.unlearning.tombstones import MANY, Layered, Tombstone, Tombstones
from tests.cases import examples


@examples(200)
@given(st.lists(st.dictionaries(st.integers(0, 30), st.integers()), max_size=12))
def test_a_layered_mapping(parts):
    found, plain = Layered(), {}
    for part in parts:
        before, known = found, dict(plain)
        found, plain = found.with_more(part), {**plain, **part}
        assert dict(before) == known
        assert (dict(found), len(found)) == (plain, len(plain))
        assert all((key in found) == (key in plain) for key in range(31))
        assert found.get(99) is None


def test_many_recent_entries_join_the_older_ones():
    found = Layered()
    for number in range(1200):
        found = found.with_more({number: number})
        assert len(found._recent) <= MANY
    assert list(found) == list(range(1200))


stone = st.builds(Tombstone, *[st.sampled_from([b"a", b"b", b"c", b"d"])] * 3)


@examples(200)
@given(st.lists(st.lists(stone, max_size=4), max_size=8))
def test_stones(parts):
    found, plain = Tombstones(), set()
    for part in parts:
        before, known = found, set(plain)
        found, plain = found.with_more(part), plain | set(part)
        assert (set(before), len(before)) == (known, len(known))
        assert (set(found), len(found), found == frozenset(plain)) == (plain, len(plain), True)
        assert set(found.of(b"a")) == {each for each in plain if each.id == b"a"}
        assert all(each in found for each in plain)
