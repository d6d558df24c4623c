"""Hashes of records, each part preceded by its length: no two different records are hashed as the same bytes."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import blocks
from maxrr.data.fields import fields_of
from maxrr.files.strict_json import framed as framed


def identifier_bytes(identifier: int | str | None) -> bytes:
    """The id of a record or a subject, or the name of a class, as it is hashed: 1, '1' and None differ."""
    if identifier is None:
        return b"none"
    if isinstance(identifier, int):
        return b"int:%d" % identifier
    # File names that are not Unicode reach us with lone surrogates in them.
    return b"str:" + identifier.encode("utf-8", "surrogatepass")


def layout(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Type and shape of one record; of several inputs those of each, with its name."""
    if dtype.names is not None:
        return framed(b"fields", *(framed(name.encode(), layout(*kind)) for name, kind in fields_of(dtype).items()))
    return framed(dtype.name.encode(), *(str(size).encode() for size in shape))


def hash_rows(inputs: NDArray[Any], prefixes: list[bytes] | None = None) -> NDArray[np.uint8]:
    """SHA-256 of each row's bytes, little-endian and in C order, after its prefix where there are any: (n, 32)."""
    digests = []
    for start, block in blocks(inputs):
        plain = np.ascontiguousarray(block, dtype=block.dtype.newbyteorder("<"))
        content, size = plain.reshape(-1).view(np.uint8).data, plain[0].nbytes
        for row in range(len(block)):
            digest = hashlib.sha256(prefixes[start + row] if prefixes else b"")
            digest.update(content[row * size : (row + 1) * size])
            digests.append(digest.digest())
    return np.frombuffer(b"".join(digests), dtype=np.uint8).reshape(-1, 32)


def value_hashes(inputs: NDArray[Any]) -> NDArray[np.uint8]:
    """SHA-256 of each row's values, (n, 32), whatever type they are stored in.

    Numbers are compared as float32. Rows that are pixels, in bytes or as floats from 0 to 255 or from 0 to 1, are
    compared as bytes, so that the same image has one hash in all of these. Integers that float32 cannot hold are
    compared as they are. Of several inputs each is hashed so, and then all of them with their names.

    Pixels from 0 to 1 that were rounded to float16 are other numbers, and have another hash.

    >>> pixels = np.array([[0, 51, 255]], dtype=np.uint8)
    >>> np.array_equal(value_hashes(pixels), value_hashes(pixels / 255.0))
    True
    """
    if inputs.dtype.names is not None:
        digests = {name: value_hashes(inputs[name]) for name in inputs.dtype.names}
        names = [name.encode() for name in digests]
        together = (
            framed(*(framed(name, digest.tobytes()) for name, digest in zip(names, of_one, strict=True)))
            for of_one in zip(*digests.values(), strict=True)
        )
        combined = b"".join(hashlib.sha256(content).digest() for content in together)
        return np.frombuffer(combined, dtype=np.uint8).reshape(-1, 32)
    found = []
    for _, block in blocks(inputs):
        given = np.ascontiguousarray(block).reshape(len(block), -1)
        if given.dtype == np.uint8:  # what comes of the comparison below, in a tenth of the time
            dark = given.max(axis=1, initial=0, keepdims=True) <= 1
            found += [hashlib.sha256(b"pixels" + row.tobytes()).digest() for row in np.where(dark, given * 255, given)]
            continue
        with np.errstate(over="ignore"):
            numbers = given.astype("<f4") + np.float32(0.0)  # one zero
        rows = numbers.astype(np.float64)
        scaled = np.rint(rows * 255.0)
        whole = (rows == np.rint(rows)) & (rows >= 0.0) & (rows <= 255.0)
        near = (np.abs(rows * 255.0 - scaled) <= 1e-3) & (scaled >= 0.0) & (scaled <= 255.0)
        as_they_are, as_parts = np.asarray(whole.all(axis=1)), np.asarray(near.all(axis=1))
        pixels = np.where(as_they_are[:, None], rows, scaled)
        pixels[pixels.max(axis=1) <= 1.0] *= 255.0  # black and white in ones
        large, of_pixels = _beyond_float32(given, numbers), as_they_are | as_parts
        for row in range(len(rows)):
            if large[row]:
                found.append(hashlib.sha256(b"integers" + given[row].astype("<i8").tobytes()).digest())
            elif of_pixels[row]:
                found.append(hashlib.sha256(b"pixels" + pixels[row].astype(np.uint8).tobytes()).digest())
            else:
                found.append(hashlib.sha256(b"numbers" + numbers[row].tobytes()).digest())
    return np.frombuffer(b"".join(found), dtype=np.uint8).reshape(-1, 32)


def _beyond_float32(given: NDArray[Any], numbers: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return which rows have integers that float32 cannot hold."""
    if given.dtype.kind != "i":
        return np.zeros(len(given), dtype=bool)
    with np.errstate(invalid="ignore"):
        return np.asarray((numbers.astype(np.int64) != given).any(axis=1))


def record_hashes(
    inputs: NDArray[Any], class_names: list[str], ids: NDArray[Any], subjects: NDArray[Any] | None,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[np.uint8]:  # fmt: skip
    """One hash per record, over its id, subject, class name, weight if it has one, and inputs with type and shape.

    Of records without weights it is the same as before there were any: the shape says how many bytes of inputs follow,
    so that no weight can be taken for them.
    """
    each = layout(inputs.dtype, inputs.shape[1:])
    whose: list[Any] = [None] * len(ids) if subjects is None else subjects.tolist()
    prefixes = [
        framed(identifier_bytes(id_), identifier_bytes(subject), identifier_bytes(name), each)
        for id_, subject, name in zip(ids.tolist(), whose, class_names, strict=True)
    ]
    if weights is not None:
        prefixes = [
            before + framed(b"weight:" + each.tobytes())
            for before, each in zip(prefixes, weights.astype("<f8"), strict=True)
        ]
    return hash_rows(inputs, prefixes)


def content_hash(
    ordered: NDArray[np.uint8], dtype: np.dtype[Any], shape: tuple[int, ...], class_names: tuple[str, ...]
) -> str:
    """One hash over the names of the classes that have records, type and shape of a record, and the hashes of all in
    the order of their ids.
    """
    names = framed(*map(identifier_bytes, class_names))
    return hashlib.sha256(framed(names, layout(dtype, shape), ordered.tobytes())).hexdigest()
