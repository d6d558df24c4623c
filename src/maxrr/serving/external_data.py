"""Whether an ONNX file refers to numbers in other files: its protobuf messages, read field by field."""

from collections.abc import Iterator

# The fields of onnx.proto that lead to tensors, by the message that they are in; tests compare them with onnx.
LEADING = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "tensor": {},
}


def refers_elsewhere(content: bytes) -> bool:
    """Whether a tensor anywhere in a model has its numbers in another file.

    Where a message is said in several parts, which readers merge, each part is looked at.

    Raises
    ------
    ValueError
        It is no protobuf message.
    """
    waiting = [("model", memoryview(content))]
    while waiting:
        kind, message = waiting.pop()
        for number, value in _fields(message):
            if kind == "tensor" and number in (13, 14):  # external_data and data_location
                return True
            if number in LEADING[kind]:
                waiting.append((LEADING[kind][number], value))
    return False


def _fields(message: memoryview) -> Iterator[tuple[int, memoryview]]:
    """The number of each field and its bytes, of which a varint has none here."""
    place = size = 0
    while place < len(message):
        tag, place = _varint(message, place)
        wire = tag & 7
        if wire in (0, 2):
            size, place = _varint(message, place)
        size = {0: 0, 1: 8, 2: size, 5: 4}.get(wire, len(message))  # no other type is written; groups least of all
        if place + size > len(message) or tag >> 32:
            raise ValueError("it is no ONNX file, or cut off")
        yield tag >> 3, message[place : place + size]
        place += size


def _varint(message: memoryview, place: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and the place after it."""
    for end in range(place, min(place + 10, len(message))):
        if message[end] < 128:
            return sum((byte & 127) << 7 * at for at, byte in enumerate(message[place : end + 1])), end + 1
    raise ValueError("it is no ONNX file, or cut off")
