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
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data import Dataset
from maxrr.files import write_atomically
from maxrr.nets.inputs import as_tensors, call, ready
from maxrr.nets.networks import Extractor
from maxrr.serving.folders import ONNX
from maxrr.serving.origin import Exported, Origin, compare, probes_of, reason
from maxrr.serving.runtimes import INPUT, OUTPUTS, fed, input_names
from maxrr.svm.calibration import LARGEST_SCORE
from maxrr.unlearning import MaxRR
from maxrr.unlearning.given_records import Inputs
from maxrr.unlearning.state import Fitted
from maxrr.workspace import Workspace

CLASSES, MODEL_HASH = "maxrr.classes", "maxrr.model_hash"  # what the file says of itself
BATCH = 256  # records that onnxruntime gets at a time


def export_onnx(
    model: MaxRR | Workspace, path: str | Path, records: Dataset | Inputs | None = None
) -> Exported:  # fmt: skip
    """Write a fitted model as an ONNX file.

    The graph's input `records` (n, …) has the type and shape of those the model was fitted on. Where these have several
    inputs, the graph does, too: under the names of the network's arguments, or `records_0`, `records_1` and so on
    where it takes them by place. Its outputs are `scores`, as of `decision_function`; `probabilities` (n, classes), as
    of `predict_proba`; and `label` (n), an index into the class names. The metadata holds the names in JSON as
    `maxrr.classes`, and `maxrr.model_hash`.

    Parameters
    ----------
    model : MaxRR or Workspace
        The fitted model, or the workspace that it lives in, which then notes the export: `Workspace.exports`.
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
    origin = Origin.of(model)
    probes, features = probes_of(origin.fitted, records)
    content, opset = write_graph(origin.fitted)
    scores, probabilities = compare(origin.fitted, features, compute(content, probes))
    export = origin.noted("onnx", path)
    write_atomically(path, content)
    return Exported(
        Path(path), len(content), ONNX, opset, origin.fitted.model_hash, export, len(probes), scores, probabilities
    )


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
