"""A model as one ONNX graph: extractor, heads and probabilities, for programs without Python.

The graph takes records as `fit` had them, any number at a time, and pixels in bytes are scaled inside.
"""

import copy
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from maxrr.nets.inputs import as_tensors, call, ready
from maxrr.nets.networks import Extractor
from maxrr.serving.runtimes import INPUT, OUTPUTS, input_names
from maxrr.svm.calibration import LARGEST_SCORE
from maxrr.unlearning.state import ModelState

CLASSES, MODEL_HASH = "maxrr.classes", "maxrr.model_hash"  # what the file says of itself


def check_installed() -> None:
    """Say what to install where it is missing."""
    try:
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise ValueError(f"writing ONNX needs {error.name}: pip install 'maxrr[onnx]'") from None


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

    def __init__(self, fitted: ModelState) -> None:
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


def write_graph(fitted: ModelState) -> bytes:
    """Write the graph of a model as the bytes of an ONNX file."""
    check_installed()
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
            content: bytes = program.model_proto.SerializeToString(deterministic=True)
            return content
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


def reason(error: BaseException) -> str:
    """The first line of what went wrong first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or repr(error)).splitlines()[0]
