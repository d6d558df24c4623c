"""A model as one ONNX file: extractor, heads and probabilities in one graph, for programs without Python.

The graph takes records as `fit` had them, any number at a time, and pixels in bytes are scaled inside. Before the file
is written, onnxruntime computes it on some records, and what comes out is compared with the model.

A file is a copy: later requests do not reach it. The hash in it says which model it was made from.
"""

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.data.fields import are_several, by_place, described, fields_of, packed, parts_of
from maxrr.files import write_atomically
from maxrr.nets.records import as_tensors, call, ready
from maxrr.nets.splitting import Extractor
from maxrr.svm.calibration import LARGEST_SCORE
from maxrr.unlearning.aliases import Inputs
from maxrr.unlearning.model import MaxRR, unlabelled
from maxrr.unlearning.state import Fitted

INPUT, OUTPUTS = "records", ("scores", "probabilities", "label")
CLASSES, MODEL_HASH = "maxrr.classes", "maxrr.model_hash"  # what the file says of itself
BATCH = 256  # records that onnxruntime gets at a time

# Features are float32 sums in another order: a score may be off by this share of the absolute values it is the sum of.
# Probabilities are float64 from there on.
SCORES_TOLERANCE = 1e-4
PROBABILITIES_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Exported:
    """A file that was written, and how it was compared with the model.

    Attributes
    ----------
    path : Path
        The file.
    bytes : int
        Its size.
    opset : int
        The version of the ONNX operators in it.
    model_hash : str
        Of the model that it was made from, as `MaxRR.model_hash_`; the file names it, too.
    compared : int
        On how many records model and file were compared.
    scores_difference, probabilities_difference : float
        The largest absolute differences over these records.
    """

    path: Path
    bytes: int
    opset: int
    model_hash: str
    compared: int
    scores_difference: float
    probabilities_difference: float


def export_onnx(model: MaxRR, path: str | Path, records: Dataset | Inputs | None = None) -> Exported:
    """Write a fitted model as an ONNX file.

    The graph's input `records` (n, …) has the type and shape of those the model was fitted on. Where these have several
    inputs, the graph does, too: under the names of the network's arguments, or `records_0`, `records_1` and so on
    where it takes them by place. Its outputs are
    `scores`, as of `decision_function`; `probabilities` (n, classes), as of `predict_proba`; and `label` (n), an index
    into the class names. The metadata holds the names in JSON as `maxrr.classes`, and `maxrr.model_hash`.

    Parameters
    ----------
    model : MaxRR
        The fitted model. That of a workspace is `Workspace.model`.
    path : str or Path
        The file. One that is there is replaced in one step, and only after the comparison.
    records : Dataset or array, optional
        What to compare on. Without them some are made up.

    Returns
    -------
    Exported
        The file, and how near it is to the model.

    Raises
    ------
    ValueError
        A package is missing, the network cannot be written as a graph, or the graph computes something else.
    """
    check_installed()
    with model._lock:  # the records must stay for as long as probabilities are fitted on them
        fitted = model._fitted
        fitted.platt()
    shape, dtype = fitted.records.shape, fitted.records.dtype
    probes = made_up(shape, dtype) if records is None else as_stored(records, shape, dtype)
    content, opset = write_graph(fitted)
    try:
        features = fitted.blueprint.embed(fitted.extractor, unlabelled(probes))
    except Exception as error:
        if records is not None:
            raise
        raise ValueError(
            f"the extractor does not take made-up records ({reason(error)}): pass some of your own, records=…"
        ) from error
    scores, probabilities = compare(fitted, features, compute(content, probes))
    write_atomically(path, content)
    return Exported(Path(path), len(content), opset, fitted.model_hash, len(probes), scores, probabilities)


def check_installed() -> None:
    """Say what to install where it is missing."""
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"writing ONNX needs {error.name}: pip install 'maxrr[onnx]'") from None


# The graph


class Classifier(nn.Module):
    """Extractor, heads and probabilities: records in; scores, probabilities and labels out.

    The numbers of the last two are tensors, since the exporter takes plain ones for float32.
    """

    weights: Tensor
    intercepts: Tensor
    a: Tensor
    b: Tensor
    centre: Tensor
    largest: Tensor

    def __init__(self, fitted: Fitted) -> None:
        super().__init__()
        self.extractor = traceable(fitted.extractor)
        self.names = fitted.records.dtype.names
        self.kind = next((weights.dtype for weights in self.extractor.parameters()), torch.float32)
        platt = fitted.platt()
        numbers = {"weights": fitted.heads.coef_.T, "intercepts": fitted.heads.intercept_}
        numbers |= {"a": platt.a, "b": platt.b, "centre": platt.centre, "largest": np.array(LARGEST_SCORE)}
        for name, values in numbers.items():
            self.register_buffer(name, torch.tensor(values, dtype=torch.float64))

    def forward(self, *records: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        inputs = records[0] if self.names is None else dict(zip(self.names, records, strict=True))
        features = call(self.extractor, ready(inputs, self.kind)).flatten(1).double()
        scores = features @ self.weights + self.intercepts
        # As in PlattScaling.probabilities: the softmax of log-sigmoids.
        logits = torch.clamp(-(self.a * (scores - self.centre) + self.b), -self.largest, self.largest)
        if len(self.a) == 1:
            logits = torch.cat([-logits, logits], dim=1)
        log_sigmoid = -torch.relu(-logits) - torch.log1p(torch.exp(-logits.abs()))
        probabilities = torch.softmax(log_sigmoid, dim=1)
        if len(self.a) == 1:
            return scores[:, 0], probabilities, (scores[:, 0] > 0).long()
        return scores, probabilities, scores.argmax(dim=1)


class Unseen:
    """Mixed into a layer's class, lets it be called as if nobody traced: a tracer puts another `__call__` in place."""

    __call__ = nn.Module.__call__


def traceable(extractor: nn.Module) -> nn.Module:
    """A copy that can be traced.

    A cut network ends by an exception, and the tracer, which keeps a list of the layers it is in, does not see that
    they are left. So it does not get to see them; their arithmetic it sees all the same.
    """
    copied = copy.deepcopy(extractor).eval()
    for cut in [part for part in copied.modules() if isinstance(part, Extractor)]:
        for layer in cut.body.modules():
            layer.__class__ = type(type(layer).__name__, (Unseen, type(layer)), {})
    return copied


def write_graph(fitted: Fitted) -> tuple[bytes, int]:
    """The ONNX file's bytes, and the version of its operators."""
    from onnx_ir.passes.common import ClearMetadataAndDocStringPass

    shape, dtype = fitted.records.shape, fitted.records.dtype
    graph = Classifier(fitted).eval()
    example = as_tensors(np.zeros((2, *shape), dtype))  # of one record, the number would be taken for fixed
    parts = (example,) if isinstance(example, Tensor) else tuple(example.values())
    names = input_names(dtype)
    try:
        with quiet(), torch.no_grad():
            count = torch.export.Dim(INPUT)
            traced = torch.export.export(graph, parts, dynamic_shapes=(tuple({0: count} for _ in parts),), strict=False)
            program = torch.onnx.export(
                traced, input_names=names, output_names=OUTPUTS, dynamic_shapes=(tuple({0: INPUT} for _ in parts),),
                dynamo=True, external_data=False, verbose=False,
            )  # fmt: skip
            assert program is not None
            ClearMetadataAndDocStringPass()(program.model)  # where in whose files a node comes from
            program.model.metadata_props[CLASSES] = json.dumps(fitted.head_classes, ensure_ascii=False)
            program.model.metadata_props[MODEL_HASH] = fitted.model_hash
            return program.model_proto.SerializeToString(deterministic=True), program.model.opset_imports[""]
    except Exception as error:
        raise ValueError(f"the network cannot be written as an ONNX graph: {reason(error)}") from error


def input_names(dtype: np.dtype[Any]) -> list[str]:
    """What the graph calls its inputs."""
    if dtype.names is None:
        return [INPUT]
    if by_place(dtype.names):
        return [f"{INPUT}_{name}" for name in dtype.names]
    if taken := set(dtype.names) & set(OUTPUTS):
        raise ValueError(f"an output of the graph is called {taken.pop()!r}, as is an input of the network: rename it")
    return list(dtype.names)


@contextmanager
def quiet() -> Iterator[None]:
    """The exporter warns of its own insides and of packages nobody asked for. The comparison says more."""
    logger = logging.getLogger("torch.onnx")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)


def reason(error: BaseException) -> str:
    """The first line of what went wrong first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or repr(error)).splitlines()[0]


# The comparison


def made_up(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Records of a type and shape: random ones, always the same, and the outermost.

    Integers may be places in a table of any length: all of them are zeros and ones, and booleans nearly all true.
    """
    if dtype.names is not None:
        return packed({name: made_up(size, kind) for name, (kind, size) in fields_of(dtype).items()})
    rng = np.random.default_rng(0)
    if dtype.kind in "ib":
        return (rng.random((64, *shape)) < (0.5 if dtype.kind == "i" else 0.9)).astype(dtype)
    if dtype == np.uint8:
        extremes = np.stack([np.zeros(shape), np.full(shape, 255)])
        return np.concatenate([rng.integers(0, 256, (62, *shape)), extremes]).astype(dtype)
    scales = np.repeat([0.0, 0.1, 1.0, 10.0], [1, 21, 21, 21])
    normal = rng.standard_normal((len(scales), *shape))
    return np.asarray(normal * scales.reshape(-1, *(1 for _ in shape)), dtype)


def as_stored(records: Dataset | Inputs, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Records to compare on as an array of the model's type and shape."""
    given = records.inputs if isinstance(records, Dataset) else records
    array = packed(given) if are_several(given) else np.asarray(given)
    if array.shape[1:] != shape or array.dtype != dtype or not len(array):
        raise ValueError(
            f"the records to compare on are {len(array)} of {described(array.dtype, array.shape[1:])}, but the model "
            f"takes one or more of {described(dtype, shape)}"
        )
    return array


def compute(content: bytes, records: NDArray[Any]) -> list[NDArray[Any]]:
    """The graph's outputs by onnxruntime: first one record alone, then many at a time."""
    import onnxruntime

    try:
        session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        batches = np.split(records, range(1, len(records), BATCH))
        parts = [session.run(OUTPUTS, fed(batch)) for batch in batches]
    except Exception as error:
        raise ValueError(f"onnxruntime cannot compute the graph: {reason(error)}") from error
    return [np.concatenate(column) for column in zip(*parts, strict=True)]


def fed(records: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Records as the graph gets them."""
    parts = (np.array(part, order="C") for _, part in parts_of(records))  # fields lie between others, unaligned
    return dict(zip(input_names(records.dtype), parts, strict=True))


def compare(fitted: Fitted, features: NDArray[Any], outputs: list[NDArray[Any]]) -> tuple[float, float]:
    """The largest differences of scores and of probabilities from the model's. Too large ones are a ValueError."""
    scores, probabilities, label = outputs
    heads, platt = fitted.heads, fitted.platt()
    ours = heads.decision_function(features)
    off = largest(scores - ours)
    allowed = SCORES_TOLERANCE * largest(np.abs(features) @ np.abs(heads.coef_.T) + np.abs(heads.intercept_))
    if not off <= allowed:
        raise ValueError(f"the graph's scores differ from the model's by {off:.3g}, and {allowed:.3g} is rounding")
    own = largest(probabilities - platt.probabilities(scores))
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
    if not own <= PROBABILITIES_TOLERANCE or not np.array_equal(label, best):
        raise ValueError(f"the graph's probabilities or labels do not follow from its scores: they differ by {own:.3g}")
    return off, largest(probabilities - platt.probabilities(ours))


def largest(values: NDArray[Any]) -> float:
    """The largest absolute value; NaN if there is one."""
    return float(np.abs(values).max())
