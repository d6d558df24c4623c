"""`Served`: a model that only predicts. It holds no record, and reads another state of itself when told to."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from maxrr.errors import DataError, OtherShape, UnreadableFile
from maxrr.serving import folders
from maxrr.serving.folders import ONNX, Facts
from maxrr.serving.revocations import Watch
from maxrr.serving.runtimes import Floats, Heads, NumpyRuntime, OnnxRuntime, Runtime
from maxrr.svm.calibration import best_classes

if TYPE_CHECKING:
    from maxrr.data import Encoding
    from maxrr.data.tables import Columns


@dataclass(frozen=True, eq=False)
class ServedState:
    """One state of a served model. It never changes, so that an answer comes from a single state."""

    runtime: Runtime
    facts: Facts

    @property
    def encoding(self) -> "Encoding":
        """How the columns of a table become inputs."""
        from maxrr.data.encoding import Encoding

        return Encoding() if self.facts.encoding is None else Encoding.from_json(self.facts.encoding)

    def scores(self, X: Any) -> Floats:
        """The scores of records."""
        return self.runtime.scores(self.taken(X))

    def taken(self, X: Any) -> NDArray[Any]:
        """Convert records as the model takes them; refuse records of another kind."""
        kind, columns, precision = self.facts.kind, self.facts.columns, self.runtime.precision
        if kind.names is None:
            plain = self.facts.encoding is None and list(getattr(X, "columns", ())) == columns
            if columns is not None and are_named(X) and not plain:
                X = encoded(X, columns, self.encoding, kind)
            return np.ascontiguousarray(converted(as_array(X), kind, tuple(self.facts.shape), precision))
        from maxrr.data.fields import are_several, described, fields_of, packed

        array = packed(X) if are_several(X) else as_array(X)
        if set(array.dtype.names or ()) != set(kind.names):
            raise DataError(f"the model takes several inputs, {described(kind, ())}: bring a dictionary of these")
        return packed({
            name: converted(array[name], of_field, shape, precision, f" {name!r}")
            for name, (of_field, shape) in fields_of(kind).items()
        })  # fmt: skip


def as_array(records: Any) -> NDArray[Any]:
    """Convert records to an array."""
    try:
        return np.asarray(records)
    except ValueError:
        raise OtherShape("the records have different shapes: bring an array with one row per record") from None


def converted(
    array: NDArray[Any], kind: np.dtype[Any], shape: tuple[int, ...], precision: np.dtype[Any] | None, name: str = ""
) -> NDArray[Any]:
    """Convert records, or one input of them, to the model's type, with floats in its precision; refuse values that do
    not fit.
    """
    if array.shape[1:] != shape or array.ndim != len(shape) + 1 or not len(array):
        one = "; add an axis to a single record, as in record[None]" if array.shape == shape else ""
        wanted = ", ".join(map(str, ("records", *shape)))
        raise OtherShape(f"the records{name} have shape {array.shape}, but the model takes ({wanted}){one}")
    if array.dtype.kind != kind.kind or (array.dtype == np.uint8) != (kind == np.uint8):
        raise OtherShape(f"the records{name} are {array.dtype}, but the model takes {kind}: bring the same kind")
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
    """A model that predicts and does nothing else, from `load`. It holds no records.

    Threads may share it. An answer comes from one state, also while another thread calls `reload`.

    Scores are those of `MaxRR` up to rounding: a few records are computed as they are and not in a block of fixed size,
    so that one record takes little time. In the form "onnx", floats are rounded to the type that the model was fitted
    on, the only one that the graph takes.

    Parameters
    ----------
    read : callable
        What `load` makes: it reads the state of the folder, if that is another than the one it is given.
    watch : Watch or None
        What says whether an export was revoked.
    """

    def __init__(self, read: Callable[[ServedState | None], ServedState | None], watch: Watch | None) -> None:
        self._read, self._watch, self._reloading = read, watch, Lock()
        first = read(None)
        assert first is not None
        self._loaded = first
        if watch is not None:
            watch.check(first.facts.export)

    def __repr__(self) -> str:
        return f"<Served model {self.model_hash[:12]}… of {len(self.classes)} classes>"

    def _answering(self) -> ServedState:
        """Return the served state, unless revocations forbid it to answer."""
        found = self._loaded
        if self._watch is not None:
            self._watch.check(found.facts.export)
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
        return self._answering().scores(X)

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
        return np.array(found.facts.classes)[best_classes(found.scores(X))]

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
        """Take the newest state, if the folder holds another.

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

    @property
    def classes(self) -> tuple[str, ...]:
        """The names of the classes, in the order of the columns of `predict_proba`."""
        return tuple(self._loaded.facts.classes)

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The columns that a row needs, where the model is of a table with named ones."""
        found = self._loaded
        columns = found.facts.columns
        if columns is None:
            return None
        from maxrr.data.encoding import columns_of

        return tuple(columns_of(found.encoding, columns))

    @property
    def model_hash(self) -> str:
        """The hash of extractor and heads, as `MaxRR.model_hash_`."""
        return self._loaded.facts.model_hash

    @property
    def export(self) -> str:
        """The id of the export, as `maxrr.workspace.Export.id`."""
        return self._loaded.facts.export


def load(
    folder: str | Path, *, threads: int = 1, revocations: str | Path | None = None, refresh: float = 60.0,
    max_age: float = 300.0,
) -> Served:  # fmt: skip
    """Load a model that `export` wrote.

    Every byte is checked against its hash, and no code but this library's is run. In the form "onnx" this needs NumPy
    and onnxruntime, in the form "numpy" NumPy and safetensors: neither PyTorch nor scikit-learn is imported.

    Parameters
    ----------
    folder : str or Path
        The folder.
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
        The folder holds no served model, something in it is damaged, or a package is missing.
    maxrr.errors.Revoked
        The list has this export.
    maxrr.errors.RevocationsUnread
        The list cannot be read.
    """

    path = Path(folder) / folders.NAME
    watch = None
    if revocations is not None:
        workspace = folders.facts_in(path).workspace
        if workspace is None:
            raise ValueError(f"no list of revocations knows {folder}: it was not exported from a Workspace")
        watch = Watch(str(revocations), workspace, refresh, max_age)

    def read(before: ServedState | None) -> ServedState | None:
        if before is not None and folders.facts_in(path).export == before.facts.export:
            return None
        facts, content = folders.read(folder)
        if watch is not None and facts.workspace != watch.workspace:
            raise ValueError(
                f"{folder} was exported from another workspace by now, or from none, and {revocations} does not know "
                "it: load it anew, with the list of its own workspace"
            )
        try:
            return ServedState(runtime_of(facts, content, threads), facts)
        except Exception as error:  # whatever comes of content that is not ours
            why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
            raise UnreadableFile(f"no model can be made of {folder}: {why}. Export it again") from error

    return Served(read, watch)


def runtime_of(facts: Facts, content: bytes, threads: int) -> Runtime:
    """Make the runtime that computes a model of this form."""
    if facts.form == ONNX:
        return OnnxRuntime(content, facts.kind, facts.shape, len(facts.classes), threads)
    import safetensors.numpy

    heads = Heads.from_arrays(safetensors.numpy.load(content), len(facts.classes))
    if len(heads.weights) != int(np.prod(facts.shape)):
        raise ValueError("its heads are not for records of its shape")
    return NumpyRuntime(heads)


# Records by the names of their columns: a dictionary, a list of these, or a frame.


def are_named(given: Any) -> bool:
    """Whether records come with the names of their columns."""
    if isinstance(given, (list, tuple)):
        return len(given) > 0 and isinstance(given[0], Mapping)
    return isinstance(given, Mapping) or hasattr(given, "columns")


def rows_of(given: Sequence[Any]) -> "Columns":
    """Collect the columns of records that are a dictionary each."""
    from maxrr.data.tables import Columns

    names = given[0].keys()
    for row, each in enumerate(given):
        if not isinstance(each, Mapping) or each.keys() != names:
            raise DataError(f"record {row} does not have the columns {list(names)!r:.200}: None is a missing value")
    count = len(given)
    cells = {name: np.fromiter((each[name] for each in given), dtype=object, count=count) for name in names}
    return Columns(list(names), cells.__getitem__, "row {}".format, count)


def encoded(given: Any, inputs: Sequence[str], encoding: "Encoding", kind: np.dtype[Any]) -> NDArray[Any]:
    """Encode records that come with the names of their columns, in any order."""
    from maxrr.data.checks import named
    from maxrr.data.dataset import Dataset
    from maxrr.data.encoding import columns_of
    from maxrr.data.tables import columns_of_frame, inputs_of

    if isinstance(given, Dataset):
        raise DataError("the records are a Dataset, whose inputs are encoded already: bring these, records.inputs")
    if isinstance(given, (list, tuple, Mapping)):
        found = rows_of([given] if isinstance(given, Mapping) else given)
    else:
        found = columns_of_frame(given)
    with named("the records"):
        return inputs_of(found, (), columns_of(encoding, inputs), encoding).as_type(kind)
