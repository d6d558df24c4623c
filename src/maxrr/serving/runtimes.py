"""Scores and probabilities of records: by NumPy alone, or by onnxruntime.

A few records at a time are computed as they are, so that one takes little time. A score may then differ in its last
digits from that of `MaxRR.decision_function`, which computes whole blocks: so its bytes depend on one record alone.
"""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from maxrr.svm.calibration import PlattScaling

Floats = NDArray[np.float64]
INPUT = "records"
OUTPUTS = SCORES, PROBABILITIES, LABEL = "scores", "probabilities", "label"
HEADS = ("weights", "intercepts", "a", "b", "centre")


class Runtime(Protocol):
    """What computes a model."""

    @property
    def precision(self) -> np.dtype[Any] | None:
        """The type that floats of records are computed in; None where they have to be of the model's own."""

    def scores(self, records: NDArray[Any]) -> Floats:
        """One column per head; one dimension where a single head tells two classes apart."""

    def probabilities(self, records: NDArray[Any]) -> Floats:
        """One column per class."""


@dataclass(frozen=True, eq=False)
class Heads:
    """The heads' numbers: `weights` (features × heads), and the scaling of their scores."""

    weights: Floats
    intercepts: Floats
    platt: PlattScaling

    def scores_of(self, features: NDArray[Any]) -> Floats:
        """The scores of features."""
        scores = features.astype(np.float64) @ self.weights + self.intercepts
        return np.asarray(scores[:, 0] if len(self.intercepts) == 1 else scores)

    @classmethod
    def from_arrays(cls, arrays: dict[str, NDArray[Any]], classes: int) -> "Heads":
        """From what a file has, checked."""
        heads = 1 if classes == 2 else classes
        if not arrays.keys() >= set(HEADS) or any(arrays[name].dtype != np.float64 for name in HEADS):
            raise ValueError("it does not have the heads' numbers")
        weights, intercepts, *scaling = (arrays[name] for name in HEADS)
        right = weights.ndim == 2 and weights.shape[1] == heads and all(
            each.shape == (heads,) for each in (intercepts, *scaling)
        )  # fmt: skip
        if not right or not all(np.isfinite(arrays[name]).all() for name in HEADS):
            raise ValueError("its heads are not those of its classes")
        return cls(weights, intercepts, PlattScaling(*scaling))

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """For a file."""
        numbers = self.weights, self.intercepts, self.platt.a, self.platt.b, self.platt.centre
        return {name: np.ascontiguousarray(value) for name, value in zip(HEADS, numbers, strict=True)}


class NumpyRuntime:
    """Records that are features already: heads and nothing else."""

    precision = np.dtype(np.float64)

    def __init__(self, heads: Heads) -> None:
        self.heads = heads

    def scores(self, records: NDArray[Any]) -> Floats:
        return self.heads.scores_of(records)

    def probabilities(self, records: NDArray[Any]) -> Floats:
        return self.heads.platt.probabilities(self.scores(records))


class OnnxRuntime:
    """A graph that onnxruntime computes."""

    precision = None  # a graph takes one type

    def __init__(self, content: bytes, kind: np.dtype[Any], shape: list[int], classes: int, threads: int = 1) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise ValueError("a model in ONNX needs onnxruntime: pip install onnxruntime") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # errors are raised, too
        options.add_session_config_entry("session.load_model_format", "ONNX")  # and not onnxruntime's own form
        try:
            self.session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])
            self.scores(np.zeros((1, *shape), kind))
            found = self.probabilities(np.zeros((1, *shape), kind)).shape
        except Exception as error:  # of several kinds, none of them ours
            raise ValueError(f"onnxruntime cannot compute the graph: {str(error).splitlines()[0]:.200}") from None
        if found != (1, classes):
            raise ValueError(f"the graph gives {found[-1]} probabilities for {classes} classes")

    def scores(self, records: NDArray[Any]) -> Floats:
        return np.asarray(self.session.run([SCORES], fed(records))[0])

    def probabilities(self, records: NDArray[Any]) -> Floats:
        return np.asarray(self.session.run([PROBABILITIES], fed(records))[0])


def input_names(kind: np.dtype[Any]) -> list[str]:
    """What a graph calls its inputs. Fields of a record are named like arguments of the network, or by their place."""
    if kind.names is None:
        return [INPUT]
    if kind.names[0] == "0":
        return [f"{INPUT}_{name}" for name in kind.names]
    if taken := set(kind.names) & set(OUTPUTS):
        raise ValueError(f"an output of the graph is called {taken.pop()!r}, as is an input of the network: rename it")
    return list(kind.names)


def fed(records: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Records as the graph gets them: each input by its name."""
    names = records.dtype.names
    if names is None:
        return {INPUT: np.ascontiguousarray(records)}
    parts = (np.array(records[name], order="C") for name in names)  # fields lie between others, unaligned
    return dict(zip(input_names(records.dtype), parts, strict=True))
