"""The hashes tell any two different datasets apart, and only those."""

import hashlib
import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from maxrr.data import Dataset, checks
from maxrr.data.hashes import value_hashes
from tests.data.sources import datasets, drawn


@drawn
@given(datasets(), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(data, random):
    rows = np.array(random.sample(range(len(data)), len(data)))
    shuffled = data.select(data.ids[rows])
    assert shuffled.content_hash() == data.content_hash()
    assert np.array_equal(shuffled.record_hashes(), data.record_hashes()[rows])


@drawn
@given(datasets(), st.data())
def test_a_record_hash_does_not_depend_on_other_records(data, draw):
    row = draw.draw(st.integers(0, len(data) - 1))
    assert np.array_equal(data.select(data.ids[row]).record_hashes()[0], data.record_hashes()[row])


def changed_identifier(identifier):
    return identifier ^ 1 if isinstance(identifier, int) else identifier + "x"


@drawn
@given(datasets(), st.data())
def test_any_change_of_a_record_changes_its_hash_alone(data, draw):
    row = draw.draw(st.integers(0, len(data) - 1))
    kind = draw.draw(st.sampled_from(["byte", "label", "id", "subject"]))
    if kind == "byte":
        inputs = data.inputs.copy()
        flat = inputs[row : row + 1].reshape(-1).view(np.uint8)
        flat[draw.draw(st.integers(0, len(flat) - 1))] ^= np.uint8(1 << draw.draw(st.integers(0, 7)))
        assume(np.isfinite(inputs).all())
        other = replace(data, inputs=inputs)
    elif kind == "label":
        assume(len(data.class_names) > 1)
        labels = data.labels.copy()
        labels[row] = (labels[row] + 1) % len(data.class_names)
        other = replace(data, labels=labels)
    elif kind == "id":
        ids = data.ids.tolist()
        ids[row] = changed_identifier(ids[row])
        assume(len(set(ids)) == len(ids))
        other = replace(data, ids=np.array(ids))
    else:
        assume(data.subjects is not None)
        subjects = data.subjects.tolist()
        subjects[row] = changed_identifier(subjects[row])
        other = replace(data, subjects=np.array(subjects))
    assert other.content_hash() != data.content_hash()
    differs = (other.record_hashes() != data.record_hashes()).any(axis=1)
    assert np.flatnonzero(differs).tolist() == [row]


@drawn
@given(datasets(), st.data())
def test_a_class_name_is_part_of_the_content_if_the_class_has_records(data, draw):
    names = list(data.class_names)
    position = draw.draw(st.integers(0, len(names) - 1))
    names[position] += "x"
    assume(len(set(names)) == len(names))
    same = replace(data, class_names=tuple(names)).content_hash() == data.content_hash()
    assert same == (position not in data.labels)
    assert replace(data, class_names=(*data.class_names, "one more")).content_hash() == data.content_hash()


def one(inputs, ids=(1,), subjects=None, class_names=("a",)):
    return Dataset(np.asarray(inputs), [0], class_names, ids, subjects)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (one([[1.0]]), one([[1.0]], ids=("1",))),
        (one([[1.0]]), one([[1.0]], subjects=(1,))),
        (one([[1.0]], subjects=("1",)), one([[1.0]], subjects=(1,))),
        (one([[1.0]], ids=("ab",), subjects=("c",)), one([[1.0]], ids=("a",), subjects=("bc",))),
        (one([[1.0, 2.0]]), one([[[1.0, 2.0]]])),
        (one([[0.0]]), one(np.zeros((1, 2), dtype=np.float32))),
        (one([[0.0]]), one(np.zeros((1, 8), dtype=np.uint8))),
        (one([[1.0]], class_names=("ab",)), one([[1.0]], class_names=("a",))),
    ],
)
def test_parts_cannot_be_taken_for_each_other(left, right):
    assert left.content_hash() != right.content_hash()
    if left.class_names == right.class_names:
        assert not np.array_equal(left.record_hashes(), right.record_hashes())


def test_neither_layout_nor_name_nor_block_size_matters(monkeypatch):
    inputs = np.arange(48.0).reshape(4, 3, 4)
    data = Dataset(inputs, [0, 1, 0, 1], ("a", "b"), [5, 6, 7, 8])
    expected = data.content_hash()
    assert replace(data, inputs=np.asfortranarray(inputs), name="elsewhere").content_hash() == expected
    assert replace(data, ids=np.array([5, 6, 7, 8], dtype=np.uint16)).content_hash() == expected
    monkeypatch.setattr(checks, "BLOCK_BYTES", 1)
    assert data.content_hash() == expected


def frame(*parts):
    return b"".join(struct.pack("<Q", len(part)) + part for part in parts)


def test_the_hash_is_what_it_says():
    """Written out by hand: a change here makes every receipt ever given worthless."""
    data = Dataset(np.array([[[0.5, -1.5]]], dtype=np.float32), [1], ("no", "né"), ["α"], [12])
    layout = frame(b"float32", b"1", b"2")
    record = frame(b"str:\xce\xb1", b"int:12", b"str:n\xc3\xa9", layout) + struct.pack("<2f", 0.5, -1.5)
    digest = hashlib.sha256(record).digest()
    assert data.record_hashes().tobytes() == digest
    content = frame(frame(b"str:n\xc3\xa9"), layout, digest)
    assert data.content_hash() == hashlib.sha256(content).hexdigest()
    nobody = Dataset(data.inputs, [1], ("no", "né"), [-3]).record_hashes()
    record = frame(b"int:-3", b"none", b"str:n\xc3\xa9", layout) + struct.pack("<2f", 0.5, -1.5)
    assert nobody.tobytes() == hashlib.sha256(record).digest()


def test_bytes_have_the_hash_of_the_same_numbers_in_other_types():
    """Pixels in bytes are hashed by a way of their own."""
    pixels = np.random.default_rng(3).integers(0, 256, (40, 3, 4), dtype=np.uint8)
    pixels[1], pixels[2], pixels[3], pixels[4] = 0, 1, pixels[3] % 2, pixels[4] % 3
    hashes = value_hashes(pixels)
    assert len(np.unique(hashes, axis=0)) == 40
    for other in (np.int16, np.int64, np.float32, np.float64):
        assert np.array_equal(value_hashes(pixels.astype(other)), hashes)
    assert np.array_equal(value_hashes(pixels[5:] / 255.0), hashes[5:])
    assert value_hashes(np.zeros((0, 3), dtype=np.uint8)).shape == (0, 32)
    digest = hashlib.sha256(b"pixels" + pixels[9].tobytes()).digest()
    assert hashes[9].tobytes() == digest
