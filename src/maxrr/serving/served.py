"""`Served`: a model that only predicts. It holds no record, and reads another state of itself when told to."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import DataError
from maxrr.serving import folders
from maxrr.serving.folders import ONNX, TORCH, Facts
from maxrr.serving.revocations import Watch
from maxrr.serving.runtimes import Floats, Heads, NumpyRuntime, OnnxRuntime, Runtime

if TYPE_CHECKING:
    from maxrr.data import Encoding
    from maxrr.nets.seeding import Network


@dataclass(frozen=True, eq=False)
class ModelState:
    """One state of a served model: never changed, so that an answer comes from one of them."""

    runtime: Runtime
    classes: tuple[str, ...]
    shape: tuple[int, ...]
    kind: np.dtype[Any]
    columns: tuple[str, ...] | None
    model_hash: str
    requests: int
    version: str  # another one is another state
    export: str | None = None
    encoding: str | None = None

    def declared(self) -> "Encoding":
        """How the columns of a table become inputs."""
        from maxrr.data.encoding import Encoding

        return Encoding() if self.encoding is None else Encoding.from_json(self.encoding)

    def taken(self, X: Any) -> NDArray[Any]:
        """Records as the model takes them; what it was not fitted for is refused."""
        if self.kind.names is None:
            if self.columns is not None and not isinstance(X, np.ndarray):
                from maxrr.serving.rows import are_inputs, are_named, encoded

                if are_named(X) and not (self.encoding is None and are_inputs(X, self.columns)):
                    X = encoded(X, self.columns, self.declared(), self.kind)
            return np.ascontiguousarray(converted(as_array(X), self.kind, self.shape, self.runtime.precision))
        from maxrr.data.fields import are_several, described, fields_of, packed

        array = packed(X) if are_several(X) else as_array(X)
        if set(array.dtype.names or ()) != set(self.kind.names):
            raise DataError(f"the model takes several inputs, {described(self.kind, ())}: bring a dictionary of these")
        return packed({
            name: converted(array[name], kind, shape, self.runtime.precision, f" {name!r}")
            for name, (kind, shape) in fields_of(self.kind).items()
        })  # fmt: skip


def as_array(records: Any) -> NDArray[Any]:
    """What NumPy makes of records."""
    try:
        return np.asarray(records)
    except ValueError:
        raise DataError("the records have different shapes: bring an array with one row per record") from None


def converted(
    array: NDArray[Any], kind: np.dtype[Any], shape: tuple[int, ...], precision: np.dtype[Any] | None, name: str = ""
) -> NDArray[Any]:  # fmt: skip
    """Records, or one input of them, as `MaxRR.predict` takes them: of the model's type, floats in the precision that
    they are computed in, and finite.
    """
    if array.shape[1:] != shape or array.ndim != len(shape) + 1 or not len(array):
        one = "; add an axis to a single record, as in record[None]" if array.shape == shape else ""
        wanted = ", ".join(map(str, ("records", *shape)))
        raise DataError(f"the records{name} have shape {array.shape}, but the model takes ({wanted}), one or more{one}")
    if array.dtype.kind != kind.kind or (array.dtype == np.uint8) != (kind == np.uint8):
        raise DataError(f"the records{name} are {array.dtype}, but the model takes {kind}: bring the same kind")
    if kind.kind == "f" and precision is not None:
        kind = precision
    with np.errstate(over="ignore"):  # what does not fit is infinite, and said below
        content = array.astype(kind, copy=False)
    if kind.kind == "f" and not np.isfinite(content).all():
        row = int(np.argmin(np.isfinite(content).reshape(len(content), -1).all(axis=1)))
        raise DataError(f"record {row} has values{name} that are not finite in {kind}")
    if kind.kind != "f" and not np.array_equal(content, array):
        raise DataError(f"the records{name} do not fit into {kind}, which the model takes")
    return content


class Served:
    """A model that predicts and does nothing else, from `load` or `snapshot`. It holds no records.

    Threads may share it. An answer comes from one state, also while another thread calls `reload`.

    Scores are those of `MaxRR` up to rounding: a few records are computed as they are and not in a block of fixed size,
    so that one record takes little time. In the form "onnx", floats are rounded to the type that the model was fitted
    on, the only one that the graph takes.
    """

    def __init__(self) -> None:
        raise TypeError("use maxrr.serving.load for an exported model, or maxrr.serving.snapshot for a workspace")

    @classmethod
    def _from(cls, read: Callable[[ModelState | None], ModelState | None], watch: Watch | None = None) -> "Served":
        """What `read` finds; told a state, it finds a later one or None."""
        made = cls.__new__(cls)
        made._read, made._watch, made._reloading = read, watch, Lock()
        first = read(None)
        assert first is not None
        made._loaded = first
        if watch is not None:
            watch.check(first.export)
        return made

    _read: Callable[[ModelState | None], ModelState | None]
    _watch: Watch | None
    _reloading: Lock
    _loaded: ModelState

    def __repr__(self) -> str:
        return f"<Served model {self.model_hash[:12]}… of {len(self.classes)} classes>"

    def _answering(self) -> ModelState:
        """The present state, if it may answer."""
        found = self._loaded
        if self._watch is not None:
            self._watch.check(found.export)
        return found

    def decision_function(self, X: Any) -> Floats:
        """The scores that the heads give records.

        Parameters
        ----------
        X : array, dict, list of dict, or frame
            Records of the kind that the model was fitted on, one per row. Of a model of a table with named columns,
            also rows with these names, in any order: one dictionary, a list of them, or a frame of pandas or polars.
            Their values are encoded as at the fit, if the export carries the encoding; what is encoded already has to
            come as an array.

        Returns
        -------
        array
            Records × heads; with two classes one score per record, positive for the second class.

        Raises
        ------
        maxrr.errors.DataError
            The records are of another shape or type, or not finite.
        maxrr.errors.Revoked
            The list of revocations has this export: export again, and `reload`.
        maxrr.errors.RevocationsUnread
            The list could not be read for longer than `max_age`.
        """
        found = self._answering()
        return found.runtime.scores(found.taken(X))

    def predict(self, X: Any) -> NDArray[np.str_]:
        """The classes of records.

        Parameters
        ----------
        X : array, dict, list of dict, or frame
            Records, as in `decision_function`.

        Returns
        -------
        array of str
            The names of their classes, as in `classes`.
        """
        found = self._answering()
        scores = found.runtime.scores(found.taken(X))
        best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
        names: NDArray[np.str_] = np.array(found.classes)[best]
        return names

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes.

        Parameters
        ----------
        X : array, dict, list of dict, or frame
            Records, as in `decision_function`.

        Returns
        -------
        array
            Records × classes, in the order of `classes`; every row sums to 1.
        """
        found = self._answering()
        return found.runtime.probabilities(found.taken(X))

    def reload(self) -> bool:
        """Take the newest state, if there is another: of the folder, or of the workspace.

        Nobody is kept waiting, neither those who ask this object nor who writes there. If something is raised, this
        object goes on with the state that it has.

        Returns
        -------
        bool
            Whether there was another.

        Raises
        ------
        ValueError
            The folder is damaged, or holds an export that the list of revocations is not about.
        """
        with self._reloading:
            found = self._read(self._loaded)
            if found is None:
                return False
            self._loaded = found
            return True

    def check_revocations(self) -> None:
        """Read the list of revocations now, as a timer may do so that no answer has to wait for it.

        Raises
        ------
        maxrr.errors.Revoked
            The list has this export.
        maxrr.errors.RevocationsUnread
            The list could not be read for longer than `max_age`.
        """
        if self._watch is not None:
            self._watch.look()
            self._watch.check(self._loaded.export)

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns of `predict_proba`."""
        return self._loaded.classes

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that a row needs, where the model is of a table with named ones."""
        found = self._loaded
        return None if found.columns is None else tuple(found.declared().columns_of(found.columns))

    @property
    def model_hash(self) -> str:
        """The hash of extractor and heads, as `MaxRR.model_hash_`."""
        return self._loaded.model_hash

    @property
    def requests(self) -> int:
        """How many requests the model had carried out."""
        return self._loaded.requests

    @property
    def export(self) -> str | None:
        """The id of the export, as `maxrr.workspace.Export.id`; None for a snapshot of a workspace."""
        return self._loaded.export


def load(
    folder: str | Path, network: "Network | None" = None, *, threads: int = 1,
    revocations: str | Path | None = None, refresh: float = 60.0, max_age: float = 300.0,
) -> Served:  # fmt: skip
    """Load a model that `export` wrote.

    Every byte is checked against its hash. In the form "onnx" this needs NumPy and onnxruntime, in the form "numpy"
    NumPy and safetensors: neither PyTorch nor scikit-learn is imported.

    Parameters
    ----------
    folder : str or Path
        The folder.
    network : torch.nn.Module or function, optional
        The network that was fitted, or the function that makes it: only in the form "torch", and where it is your own
        code. Loading a folder runs no code but this library's.
    threads : int
        How many threads onnxruntime uses for one call, 1 by default.
    revocations : str or Path, optional
        A list of revocations (`Revocations`): a file, or an address that begins with https:// or http://. Without one,
        the model answers for as long as it is asked.
    refresh : float
        Seconds after which the list is read again, before an answer; 60 by default.
    max_age : float
        Seconds for which the model answers though the list cannot be read; 300 by default. Then it refuses.

    Returns
    -------
    Served
        The model.

    Raises
    ------
    ValueError
        The folder holds no served model, something in it is damaged, or a package or the network is missing.
    maxrr.errors.Revoked
        The list has this export.
    maxrr.errors.RevocationsUnread
        The list cannot be read.
    """

    watch = None if revocations is None else Watch(str(revocations), workspace_of(folder), refresh, max_age)

    def read(before: ModelState | None) -> ModelState | None:
        if before is not None and folders.facts_in(Path(folder) / folders.NAME).export == before.version:
            return None
        facts, content = folders.read(folder)
        if watch is not None and facts.workspace != watch.workspace:
            raise ValueError(
                f"{folder} was exported from another workspace by now, or from none, and {revocations} does not know "
                "it: load it anew, with the list of its own workspace"
            )
        return loaded(Path(folder), facts, content, network, threads)

    return Served._from(read, watch)


def workspace_of(folder: str | Path) -> str:
    """The workspace whose list of revocations knows what lies in a folder."""
    found = folders.facts_in(Path(folder) / folders.NAME).workspace
    if found is None:
        raise ValueError(
            f"{folder} was not exported from a workspace, so that no list of revocations knows it: export a Workspace"
        )
    return found


def loaded(folder: Path, facts: Facts, content: bytes, network: "Network | None", threads: int) -> ModelState:
    """A model that can answer, of what a folder holds."""
    try:
        runtime = runtime_of(facts, content, network, threads)
    except Exception as error:  # whatever comes of content that is not ours
        raise ValueError(f"no model can be made of {folder}: {error}") from error
    return ModelState(
        runtime, tuple(facts.classes), tuple(facts.shape), facts.kind,
        None if facts.columns is None else tuple(facts.columns), facts.model_hash, facts.requests, facts.export,
        facts.export, facts.encoding,
    )  # fmt: skip


def runtime_of(facts: Facts, content: bytes, network: "Network | None", threads: int) -> Runtime:
    """What computes a model of this form."""
    if facts.form == ONNX:
        return OnnxRuntime(content, facts.kind, facts.shape, len(facts.classes), threads)
    if facts.form == TORCH:
        from maxrr.serving import torch_runtime

        return torch_runtime.from_bytes(content, facts, network)
    import safetensors.numpy

    heads = Heads.from_arrays(safetensors.numpy.load(content), len(facts.classes))
    if len(heads.weights) != int(np.prod(facts.shape)):
        raise ValueError("its heads are not for records of its shape")
    return NumpyRuntime(heads)
