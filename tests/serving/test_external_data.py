"""A graph whose numbers lie in other files is refused, in whatever order and form its protobuf fields are written."""

import itertools

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from maxrr.serving.runtimes import LEADING, OnnxRuntime, refers_elsewhere

NAMES = {
    "model": "ModelProto", "training": "TrainingInfoProto", "function": "FunctionProto", "graph": "GraphProto",
    "sparse": "SparseTensorProto", "node": "NodeProto", "attribute": "AttributeProto", "tensor": "TensorProto",
}  # fmt: skip
WEIGHTS = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32)


# A writer of protobuf that does what it is told: a field is its number and its content.


def varint(number: int, longer: int = 0) -> bytes:
    """Seven bits a byte; `longer` bytes more than it needs."""
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number]) if not longer else bytes([*out, number | 128, *[128] * (longer - 1), 0])


def field(number: int, content: bytes | int, longer: int = 0) -> bytes:
    if isinstance(content, int):
        return varint(number << 3, longer) + varint(content, longer)
    return varint(number << 3 | 2, longer) + varint(len(content), longer) + content


def entry(key: bytes, value: bytes, order: int = 1, longer: int = 0) -> bytes:
    return b"".join([field(1, key, longer), field(2, value, longer)][::order])


def tensor(location: bytes, order: int = 1, longer: int = 0, entries: int = 1) -> list[bytes]:
    """The fields of a tensor whose numbers lie elsewhere."""
    named = [entry(b"location", location, order, longer), entry(b"offset", b"0", order), entry(b"length", b"16", order)]
    return [
        field(1, 2) + field(1, 2), field(2, TensorProto.FLOAT), field(8, b"w"),
        *(field(13, each, longer) for each in named[:entries]), field(14, 1, longer),
    ]  # fmt: skip


def graph_with(initializer: bytes) -> bytes:
    """A model that multiplies its input with a tensor."""
    given, out = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, 2]).SerializeToString()
        for name in ("records", "scores")
    )
    node = helper.make_node("MatMul", ["records", "w"], ["scores"]).SerializeToString()
    graph = field(1, node) + field(2, b"g") + field(5, initializer) + field(11, given) + field(12, out)
    version = helper.make_opsetid("", 17).SerializeToString()
    return field(1, 8) + field(7, graph) + field(8, version)


def computed(content: bytes) -> np.ndarray:
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    return np.asarray(session.run(["scores"], {"records": np.eye(2, dtype=np.float32)})[0])


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """A file with the numbers, beside whoever loads the graph."""
    (tmp_path / "numbers.bin").write_bytes(WEIGHTS.tobytes())
    monkeypatch.chdir(tmp_path)
    return b"numbers.bin"


def messages_of(descriptor) -> set[str]:
    return {each.message_type.name for each in descriptor.fields if each.message_type}


def test_the_fields_are_those_of_onnx():
    """Whatever leads to a tensor in onnx.proto is followed."""
    kinds = {proto: kind for kind, proto in NAMES.items()}
    within = {onnx.ModelProto.DESCRIPTOR.name: onnx.ModelProto.DESCRIPTOR}
    for descriptor in (waiting := list(within.values())):  # it grows
        for each in descriptor.fields:
            if each.message_type and each.message_type.name not in within:
                within[each.message_type.name] = each.message_type
                waiting.append(each.message_type)
    reaches = {"TensorProto"}
    for _ in within:
        reaches |= {name for name, descriptor in within.items() if reaches & messages_of(descriptor)}
    assert reaches == set(NAMES.values())
    for kind, proto in NAMES.items():
        fields = getattr(onnx, proto).DESCRIPTOR.fields
        leading = {each.number: each.message_type.name for each in fields if each.message_type}
        assert LEADING.get(kind, {}) == {
            number: kinds[name] for number, name in leading.items() if name in reaches
        }  # fmt: skip
    named = onnx.TensorProto.DESCRIPTOR.fields_by_name
    assert (named["external_data"].number, named["data_location"].number) == (13, 14)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("longer", [0, 1, 3])
def test_every_order_of_fields_is_refused(elsewhere, order, longer):
    for fields in itertools.permutations(tensor(elsewhere, order, longer)):
        content = graph_with(b"".join(fields))
        read = onnx.ModelProto.FromString(content).graph.initializer[0]  # it is not refused for being unreadable
        assert read.data_location == TensorProto.EXTERNAL
        assert read.external_data[0].value == elsewhere.decode()
        with pytest.raises(ValueError, match="other files"):
            OnnxRuntime(content, np.dtype(np.float32), [2], 2)


ODD = {
    "the last of two counts": [field(14, 0), field(14, 1)],
    "the last does not": [field(14, 1), field(14, 0)],
    "an unknown field after it": [field(14, 1), field(99, b"unknown")],
    "a number of more bits": [field(14, 1 << 32 | 1)],
    "an empty entry": [field(13, b"")],
    "an entry alone": [field(13, entry(b"location", b"x")), field(1000, 7)],
}


@pytest.mark.parametrize("name", ODD)
def test_odd_forms_are_refused(name):
    assert refers_elsewhere(graph_with(b"".join(ODD[name])))


def test_a_message_in_several_parts_is_looked_at_whole(elsewhere):
    """Readers merge a field of one message that is said twice."""
    whole = onnx.ModelProto.FromString(graph_with(b"".join(tensor(elsewhere))))
    parts = onnx.GraphProto(initializer=whole.graph.initializer).SerializeToString()
    whole.graph.ClearField("initializer")
    content = field(7, parts) + whole.SerializeToString()
    assert onnx.ModelProto.FromString(content).graph.initializer
    assert refers_elsewhere(content)
    first, *rest = tensor(elsewhere)  # an attribute's tensor, of which each part is harmless but one
    attribute = field(1, b"value") + field(5, first) + field(5, b"".join(rest))
    assert refers_elsewhere(field(7, field(1, field(4, b"Constant") + field(5, attribute))))


def test_tensors_anywhere_are_found(elsewhere):
    inside = b"".join(tensor(elsewhere))

    def paths(kind: str, depth: int) -> list[list[int]]:
        if kind == "tensor":
            return [[]]
        return [
            [number, *rest] for number, to in LEADING[kind].items() if depth for rest in paths(to, depth - 1)
        ]  # fmt: skip

    found = paths("model", 8)
    assert len(found) > 100
    for path in found:
        content = inside
        for number in reversed(path):
            content = field(99, 5) + field(number, content) + field(100, b"more")
        assert refers_elsewhere(content), path
        assert not refers_elsewhere(path_without(path)), path


def path_without(path: list[int]) -> bytes:
    """The same messages around a tensor with numbers of its own."""
    content = onnx.numpy_helper.from_array(WEIGHTS, "w").SerializeToString()
    for number in reversed(path):
        content = field(99, 5) + field(number, content) + field(100, b"more")
    return content


def test_deep_graphs_take_no_stack():
    content = b""
    for number in [7, *[1, 5, 6] * 2000][::-1]:
        content = field(number, content)
    assert not refers_elsewhere(content)


def test_numbers_of_its_own_are_taken():
    own = onnx.numpy_helper.from_array(WEIGHTS, "location").SerializeToString()
    content = graph_with(own) + field(14, entry(b"location", b"in the metadata"))
    assert not refers_elsewhere(content)
    packed = field(1, b"\x02\x02") + field(2, 1) + field(4, WEIGHTS.tobytes()) + field(8, b"w")
    assert not refers_elsewhere(graph_with(packed))
    np.testing.assert_array_equal(computed(graph_with(packed)), WEIGHTS)


@pytest.mark.parametrize(
    "content", [b"\x0b\x0c", b"\x3a\x05a", b"\xff" * 11, b"\x3a", b"\x07", b"\xfa\xff\xff\xff\x7f\x00"]
)
def test_what_is_no_protobuf_is_refused(content):
    with pytest.raises(ValueError, match="no ONNX file"):
        refers_elsewhere(content)


def test_the_form_of_onnxruntime_is_refused(tmp_path, monkeypatch):
    """It may name other files in ways of its own; protobuf that looks like nothing can be in front of it."""
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "model.ort")
    options.add_session_config_entry("session.save_model_format", "ORT")
    content = graph_with(onnx.numpy_helper.from_array(WEIGHTS, "w").SerializeToString())
    onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
    own = (tmp_path / "model.ort").read_bytes()
    assert own[4:8] == b"ORTM"
    np.testing.assert_array_equal(computed(own), WEIGHTS)
    monkeypatch.setattr("maxrr.serving.runtimes.refers_elsewhere", lambda content: False)  # as of such a protobuf
    with pytest.raises(ValueError, match=r"(?i)protobuf"):
        OnnxRuntime(own, np.dtype(np.float32), [2], 2)
