"""Collections in layers, sets of ids and indexes are plain ones, as far as anybody can tell."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from maxrr.unlearning.id_sets import IdSet
from maxrr.unlearning.indexes import Index, Indexes, Layer, print_of, prints_of, prints_of_values
from maxrr.unlearning.layers import Layered, Row
from maxrr.unlearning.tombstones import Stones, Tombstone
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


def test_it_has_few_layers():
    found, row = Layered(), Row()
    for number in range(1000):
        found, row = found.with_more({number: number}), row.with_next(number)
        assert max(len(found._layers), len(row._layers)) <= 11
    assert (list(found), list(row)) == (list(range(1000)), list(range(1000)))


@examples(100)
@given(st.lists(st.integers(), max_size=40), st.integers(0, 40))
def test_a_row(values, cut):
    found = Row(values[:cut])
    for value in values[cut:]:
        longer = found.with_next(value)
        assert len(longer) == len(found) + 1
        found = longer
    assert (found == tuple(values), list(found), found[1:3]) == (True, values, tuple(values[1:3]))
    assert [found[place] for place in range(-len(values), len(values))] == values + values
    for place in (len(values), -len(values) - 1):
        try:
            found[place]
        except IndexError:
            continue
        raise AssertionError("there is no such place")


stone = st.builds(Tombstone, *[st.sampled_from([b"a", b"b", b"c", b"d"])] * 3)


@examples(200)
@given(st.lists(st.lists(stone, max_size=4), max_size=8))
def test_stones(parts):
    found, plain = Stones(), set()
    for part in parts:
        before, known = found, set(plain)
        found, plain = found.with_more(part), plain | set(part)
        assert (set(before), len(before)) == (known, len(known))
        assert (set(found), len(found), found == frozenset(plain)) == (plain, len(plain), True)
        assert set(found.of(b"a")) == {each for each in plain if each.id == b"a"}
        assert all(each in found for each in plain)


NAMES = {"numbers": lambda number: 10**9 + number, "texts": lambda number: f"r{number}"}


@examples(120)
@given(
    kind=st.sampled_from(list(NAMES)),
    first=st.lists(st.integers(0, 20), max_size=25),
    steps=st.lists(st.one_of(st.integers(0, 40), st.lists(st.integers(0, 20), min_size=1, max_size=6)), max_size=12),
)
def test_an_index(kind, first, steps):
    """Names come several times. A number erases a row, a list adds some."""
    names = [NAMES[kind](number) for number in first]
    rows = np.arange(len(names))
    index = Index((Layer.of(prints_of(as_array(names, kind)), rows),))
    there = set(rows.tolist())
    for step in steps:
        if isinstance(step, list):
            more = [NAMES[kind](number) for number in step]
            index = index.with_more(prints_of(as_array(more, kind)), len(names))
            there |= set(range(len(names), len(names) + len(more)))
            names += more
        elif there:
            row = sorted(there)[step % len(there)]
            there.remove(row)
            index.erase({print_of(names[row]): [row]})
        for number in range(22):
            wanted = NAMES[kind](number)
            expected = [row for row in sorted(there) if names[row] == wanted]
            assert sorted(index.rows_at(print_of(wanted))) == expected
        asked = [NAMES[kind](number) for number in range(22)]
        places, found = index.pairs(prints_of(as_array(asked, kind)))
        assert sorted(zip(places.tolist(), found.tolist(), strict=True)) == sorted(
            (number, row) for number in range(22) for row in there if names[row] == asked[number]
        )
        left = {print_of(names[row]) for row in there}
        for layer in index.layers:
            assert (layer.prints[1:] >= layer.prints[:-1]).all()
            assert set(layer.prints[layer.rows >= 0].tolist()) <= left
            assert not set(layer.prints.tolist()) & ({print_of(name) for name in names} - left)


def as_array(names, kind):
    return np.array(names, dtype=np.int64 if kind == "numbers" else np.str_) if names else np.empty(0, np.int64)


def test_prints_of_one_are_those_of_many():
    numbers = np.array([0, 1, -1, 2**63 - 1, -(2**63), 7])
    assert prints_of(numbers).tolist() == [print_of(number) for number in numbers.tolist()]
    texts = np.array(["", "a", "é", "ab"])
    assert prints_of(texts).tolist() == [print_of(text) for text in texts.tolist()]
    values = np.random.default_rng(0).integers(0, 256, (5, 32), dtype=np.uint8)
    assert prints_of_values(values).tolist() == [
        int.from_bytes(each[:8].tobytes(), "little", signed=True) for each in values
    ]


def test_many_are_erased_by_making_the_indexes_again():
    from maxrr.svm.problem import Flags

    names = np.arange(3000) + 10**9
    indexes = Indexes(Flags.all_set(3000))
    index = indexes.of("ids", lambda _, rows: prints_of(names[rows]))
    indexes.erase(np.arange(2000), lambda _, rows: prints_of(names[rows]))
    assert not index.layers[0].prints.any()
    again = indexes.of("ids", lambda _, rows: prints_of(names[rows]))
    assert again.rows_at(print_of(10**9 + 5)) == []
    assert again.rows_at(print_of(10**9 + 2500)) == [2500]


@examples(200)
@given(
    kind=st.sampled_from(list(NAMES)),
    first=st.sets(st.integers(0, 30), max_size=20),
    steps=st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=8),
)
def test_a_set_of_ids(kind, first, steps):
    ids = {NAMES[kind](number) for number in first}
    found = IdSet(as_array(sorted(ids), kind))
    for step in steps:
        leaving = as_array(sorted({NAMES[kind](number) for number in step}), kind)
        before, known = found, sorted(ids)
        found = found.without(leaving)
        assert before.tolist() == known
        ids -= set(leaving.tolist())
        gone = [id_ for id_ in leaving.tolist() if id_ in known]
        found.erase(as_array(gone, kind))
        assert (found.tolist(), len(found)) == (sorted(ids), len(ids))
        assert not set(found._sorted.tolist()) & set(gone)
    more = found.with_more(as_array([NAMES[kind](40)], kind))
    assert more.tolist() == sorted({*ids, NAMES[kind](40)})
