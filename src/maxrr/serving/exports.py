"""Write a model for programs that only predict: into a folder that `load` reads, or as one ONNX file.

No record is in an export, and it is compared with the model before it is written. It is a copy: later requests do not
reach it. The hash in it says which model it was made from.
"""

import copy
import secrets
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from maxrr.data import Encoding
from maxrr.data.reading import Reading
from maxrr.files import write_atomically
from maxrr.nets.probe import made_up
from maxrr.serving import folders, onnx
from maxrr.serving.folders import NUMPY, ONNX, Facts
from maxrr.serving.runtimes import Heads, OnnxRuntime, Runtime
from maxrr.serving.served import runtime_of
from maxrr.unlearning import MaxRR
from maxrr.unlearning.given_records import unlabelled
from maxrr.unlearning.state import ModelState
from maxrr.workspace import Workspace
from maxrr.workspace.keeper import FolderKeeper


@dataclass(frozen=True)
class Exported:
    """An export that was written, and how it was compared with the model.

    Attributes
    ----------
    path : Path
        The file, or the folder.
    bytes : int
        Its size.
    form : str
        What computes it: "onnx" or "numpy".
    model_hash : str
        Of the model that it was made from, as `MaxRR.model_hash_`; the export names it, too.
    export : str or None
        Its id, as `maxrr.workspace.Export.id`; None for an ONNX file that was not made from a workspace.
    difference : float
        The largest difference between probabilities of the model and of the export, on records that were made up.
    """

    path: Path
    bytes: int
    form: str
    model_hash: str
    export: str | None
    difference: float


@dataclass(frozen=True, eq=False)
class Origin:
    """The state of a model that is exported, and the keeper of its workspace, if it lives in one."""

    model: MaxRR
    fitted: ModelState
    keeper: FolderKeeper | None

    @classmethod
    def of(cls, source: MaxRR | Workspace) -> "Origin":
        """Take the present state of a model or a workspace, with its probabilities fitted."""
        if not isinstance(source, MaxRR | Workspace):
            raise TypeError(f"what is exported is a fitted MaxRR or an open Workspace, not {source!r:.60}")
        model = source.model if isinstance(source, Workspace) else source
        keeper = model._keeper if isinstance(model._keeper, FolderKeeper) else None
        if keeper is not None:
            keeper.check_newest()
            model = copy.deepcopy(model)  # which may go on before the export is written
        with model._lock:  # the records must stay for as long as probabilities are fitted on them
            fitted = model._fitted
            fitted.platt()
        return cls(model, fitted, keeper)

    def noted(self, kind: str, path: str | Path) -> str | None:
        """Note the export in the workspace before it is written, and return its id; None without a workspace."""
        return None if self.keeper is None else self.keeper.note_export(kind, path, self.model)


def export(model: MaxRR | Workspace, folder: str | Path, *, encoding: Encoding | None = None) -> Exported:
    """Write a fitted model into a folder, for programs that only predict. No record is in it.

    The folder holds `model.json` (names of the classes, shape and type of a record, hashes) and one file with the
    numbers. It is a copy, which later requests do not reach: export again after forgetting. A model of embeddings
    (`MaxRR.on_features`) is computed by NumPy alone. Any other is an ONNX graph: it needs onnxruntime where it is
    loaded, and here the packages of the extra called onnx.

    Parameters
    ----------
    model : MaxRR or Workspace
        The fitted model, or the workspace that it lives in. A workspace notes the export: `Workspace.exports`.
    folder : str or Path
        The folder. It is made if it is not there; otherwise it must be empty, or hold an export, which is replaced in
        one step.
    encoding : Encoding, optional
        How the columns of a table became the inputs that the model was fitted on. The export carries it, so that it can
        be asked about rows with the table's own columns. A workspace that `maxrr fit` made knows it itself.

    Returns
    -------
    Exported
        The folder, and how near it is to the model.

    Raises
    ------
    ValueError
        The folder holds other things, a package is missing, the network cannot be written as a graph, the encoding is
        of other columns, or what was written computes something else.
    """
    folders.check_free(folder)
    origin = Origin.of(model)
    fitted, held = origin.fitted, origin.fitted.records
    declared = encoding or encoding_of(origin.keeper)
    if declared is not None:
        folders.check_encoding(declared, held.columns)
    if fitted.blueprint.embeddings:
        heads = Heads(fitted.heads.coef_.T, fitted.heads.intercept_, fitted.platt())
        form, content = NUMPY, safetensors.numpy.save(heads.to_arrays())
    else:
        form, content = ONNX, onnx.write_graph(fitted)
    facts = Facts(
        form, secrets.token_hex(16), None if origin.keeper is None else origin.keeper.store.token, fitted.requests,
        fitted.model_hash, list(fitted.head_classes), list(held.shape), folders.description_of(held.dtype),
        None if held.columns is None else list(held.columns), "", "",
        None if declared is None else declared.to_json(),
    )  # fmt: skip
    difference = compare(fitted, runtime_of(facts, content, threads=1))
    facts = replace(facts, export=origin.noted("serving", folder) or facts.export)
    size = folders.write(folder, content, facts)
    return Exported(Path(folder), size, form, fitted.model_hash, facts.export, difference)


def export_onnx(model: MaxRR | Workspace, path: str | Path) -> Exported:
    """Write a fitted model as an ONNX file.

    The graph's input `records` (n, …) has the type and shape of those the model was fitted on. Where these have several
    inputs, the graph does, too: under the names of the network's arguments, or `records_0`, `records_1` and so on
    where it takes them by place. Its outputs are `scores`, as of `decision_function`; `probabilities` (n, classes), as
    of `predict_proba`; and `label` (n), an index into the class names. The metadata holds the names in JSON as
    `maxrr.classes`, and `maxrr.model_hash`.

    Parameters
    ----------
    model : MaxRR or Workspace
        The fitted model, or the workspace that it lives in. A workspace notes the export: `Workspace.exports`.
    path : str or Path
        The file. One that is there is replaced in one step, and only after the comparison.

    Returns
    -------
    Exported
        The file, and how near it is to the model.

    Raises
    ------
    ValueError
        A package is missing, the network cannot be written as a graph, or the graph computes something else.
    """
    onnx.check_installed()
    origin = Origin.of(model)
    fitted = origin.fitted
    content = onnx.write_graph(fitted)
    runtime = OnnxRuntime(content, fitted.records.dtype, list(fitted.records.shape), len(fitted.head_classes))
    difference = compare(fitted, runtime)
    name = origin.noted("onnx", path)
    write_atomically(path, content)
    return Exported(Path(path), len(content), ONNX, fitted.model_hash, name, difference)


def encoding_of(keeper: FolderKeeper | None) -> Encoding | None:
    """Return how the columns of a table became inputs, if the workspace has noted it."""
    reading = None if keeper is None else keeper.store.words.sources[0].get("reading")
    found = Encoding() if reading is None else Reading.from_toml(reading).encoding
    return found if found.rules else None


# Features are float32 sums in another order: a score may be off by this share of the absolute values it is the sum of.
# Probabilities are float64 from there on.


SCORES_TOLERANCE = 1e-4
PROBABILITIES_TOLERANCE = 1e-9


def compare(fitted: ModelState, runtime: Runtime) -> float:
    """Compare an export with its model on made-up records: how far their probabilities are apart.

    What is not rounding is a ValueError.
    """
    probes = made_up(fitted.records.shape, fitted.records.dtype)
    try:
        features = fitted.blueprint.embed(fitted.extractor, unlabelled(probes))
    except Exception:  # of the network's own code, which takes some numbers and not others
        probes = np.ones_like(probes)
        features = fitted.blueprint.embed(fitted.extractor, unlabelled(probes))
    scores, probabilities = runtime.scores(probes), runtime.probabilities(probes)
    heads, platt = fitted.heads, fitted.platt()
    ours = heads.decision_function(features)
    off = largest(scores - ours)
    allowed = SCORES_TOLERANCE * largest(np.abs(features) @ np.abs(heads.coef_.T) + np.abs(heads.intercept_))
    if not off <= allowed:
        raise ValueError(f"the export's scores differ from the model's by {off:.3g}, and {allowed:.3g} is rounding")
    own = largest(probabilities - platt.probabilities(scores))
    if not own <= PROBABILITIES_TOLERANCE:
        raise ValueError(f"the export's probabilities do not follow from its scores: they differ by {own:.3g}")
    return largest(probabilities - platt.probabilities(ours))


def largest(values: NDArray[Any]) -> float:
    """Return the largest absolute value; NaN if there is one."""
    return float(np.abs(values).max())
