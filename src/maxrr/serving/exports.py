"""Write a model for programs that only predict: into a folder that `load` reads, or as one ONNX file.

No record is in an export, and it is compared with the model before it is written. It is a copy: later requests do not
reach it. The hash in it says which model it was made from.
"""

import copy
import re
import secrets
import warnings
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from maxrr.data import Dataset, Encoding
from maxrr.data.fields import are_several, described, packed
from maxrr.data.reading import Reading
from maxrr.files import to_plain, write_atomically
from maxrr.nets.probe import made_up
from maxrr.serving import folders, onnx, torch_runtime
from maxrr.serving.folders import NUMPY, ONNX, TORCH, Facts
from maxrr.serving.runtimes import Heads, OnnxRuntime, Runtime
from maxrr.serving.served import runtime_of
from maxrr.unlearning import MaxRR
from maxrr.unlearning.codec import network_facts
from maxrr.unlearning.given_records import Inputs, unlabelled
from maxrr.unlearning.state import Fitted
from maxrr.workspace import Workspace
from maxrr.workspace.keeper import FolderKeeper

ENCODED = re.compile("=| is (other|missing)$")  # in what an encoding calls the inputs that it makes of a column


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
        What computes it: "onnx", "numpy" or "torch".
    opset : int or None
        The version of the ONNX operators in it, if there are any.
    model_hash : str
        Of the model that it was made from, as `MaxRR.model_hash_`; the export names it, too.
    export : str or None
        Its id, as `maxrr.workspace.Export.id`; None for an ONNX file that was not made from a workspace.
    compared : int
        On how many records model and export were compared.
    scores_difference, probabilities_difference : float
        The largest absolute differences over these records.
    """

    path: Path
    bytes: int
    form: str
    opset: int | None
    model_hash: str
    export: str | None
    compared: int
    scores_difference: float
    probabilities_difference: float


@dataclass(frozen=True, eq=False)
class Origin:
    """One state of a model with its probabilities fitted, and who keeps it in a workspace, if it lives in one."""

    model: MaxRR
    fitted: Fitted
    keeper: FolderKeeper | None

    @classmethod
    def of(cls, source: MaxRR | Workspace) -> "Origin":
        """The present state."""
        if not isinstance(source, MaxRR | Workspace):
            raise TypeError(
                "what is exported is a fitted MaxRR or an open Workspace, as of Workspace.open('ws'), "
                f"not {source!r:.60}"
            )
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
        """The id under which the workspace notes the export, before it is written; None without a workspace."""
        return None if self.keeper is None else self.keeper.note_export(kind, path, self.model)


def export(
    model: MaxRR | Workspace, folder: str | Path, *, form: str | None = None,
    records: Dataset | Inputs | None = None, encoding: Encoding | None = None,
) -> Exported:  # fmt: skip
    """Write a fitted model into a folder, for programs that only predict. No record is in it.

    The folder holds `model.json` (names of the classes, shape and type of a record, hashes) and one file with the
    numbers. It is a copy, which later requests do not reach: export again after forgetting.

    Parameters
    ----------
    model : MaxRR or Workspace
        The fitted model, or the workspace that it lives in. A workspace notes the export: `Workspace.exports`.
    folder : str or Path
        The folder. It is made if it is not there; otherwise it must be empty, or hold an export, which is replaced in
        one step.
    form : {"onnx", "torch"}, optional
        What computes the model: "onnx", the default, needs NumPy and onnxruntime where it is loaded (and here the
        packages of the extra called onnx); "torch" needs PyTorch, and the network if it is your own code. A model of
        embeddings (`MaxRR.on_features`) has the form "numpy" by itself.
    records : Dataset or array, optional
        What to compare model and export on. Without them some are made up.
    encoding : Encoding, optional
        How the columns of a table became the inputs that the model was fitted on. The export carries it, so that it can
        be asked about rows with the table's own columns. A workspace that `maxrr fit` made knows it itself, and refuses
        another. Elsewhere it is your word: its columns are compared with those of the model, its numbers with nothing.

    Returns
    -------
    Exported
        The folder, and how near it is to the model.

    Raises
    ------
    ValueError
        The folder holds other things, a package is missing, the network cannot be written in this form, or what was
        written computes something else.
    """
    folders.check_free(folder)
    origin = Origin.of(model)
    fitted, held = origin.fitted, origin.fitted.records
    chosen = NUMPY if form is None and fitted.blueprint.embeddings else form or ONNX
    declared = declared_for(origin.keeper, encoding)
    if declared is not None:
        folders.check_encoding(declared, held.columns)
    elif found := [name for name in held.columns or () if ENCODED.search(name)]:
        warnings.warn(
            f"the export has no encoding, and takes inputs such as {found[0]!r} as they are: to be asked with the "
            "columns of your table, pass encoding=…",
            stacklevel=2,
        )
    content, opset = written(fitted, chosen)
    facts = Facts(
        chosen, secrets.token_hex(16), None if origin.keeper is None else origin.keeper.store.token, fitted.requests,
        fitted.model_hash, list(fitted.head_classes), list(held.shape), folders.description_of(held.dtype),
        None if held.columns is None else list(held.columns),
        to_plain(network_facts(fitted.blueprint.network)) if chosen == TORCH else None,
        fitted.fingerprint.layers if chosen == TORCH else None, fitted.blueprint.frozen, "", "", declared,
        fitted.blueprint.sharding.count if chosen == TORCH else 1,
    )  # fmt: skip
    network = fitted.blueprint.network if chosen == TORCH else None
    comparison = compare(fitted, runtime_of(facts, content, network, threads=1), records)
    facts = replace(facts, export=origin.noted("serving", folder) or facts.export)
    size = folders.write(folder, content, facts)
    return Exported(Path(folder), size, chosen, opset, fitted.model_hash, facts.export, *comparison)


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
        The fitted model, or the workspace that it lives in. A workspace notes the export: `Workspace.exports`.
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
    onnx.check_installed()
    origin = Origin.of(model)
    fitted = origin.fitted
    content, opset = onnx.write_graph(fitted)
    runtime = OnnxRuntime(content, fitted.records.dtype, list(fitted.records.shape), len(fitted.head_classes))
    comparison = compare(fitted, runtime, records)
    name = origin.noted("onnx", path)
    write_atomically(path, content)
    return Exported(Path(path), len(content), ONNX, opset, fitted.model_hash, name, *comparison)


def declared_for(keeper: FolderKeeper | None, given: Encoding | None) -> str | None:
    """The encoding that an export carries: if one is given, that of the fit, where a workspace knows it."""
    noted = encoding_of(keeper)
    if given is None:
        return noted
    if not isinstance(given, Encoding):
        raise TypeError(
            f"encoding is a maxrr.data.Encoding, as in Encoding({{'age': Number(fill=0.0)}}), not {given!r:.60}"
        )
    if noted is not None and Encoding.from_json(noted) != given:
        raise ValueError("the encoding is another one than the workspace was fitted with: leave it out, as it is known")
    return given.to_json()


def encoding_of(keeper: FolderKeeper | None) -> str | None:
    """How the columns of a table became inputs, as far as a workspace has noted it."""
    reading = None if keeper is None else keeper.store.words.sources[0].get("reading")
    declared = Encoding() if reading is None else Reading.from_toml(reading).encoding
    return declared.to_json() if declared.rules else None


def written(fitted: Fitted, form: str) -> tuple[bytes, int | None]:
    """The file with the numbers, and the version of its operators if it is a graph."""
    if form == ONNX:
        onnx.check_installed()
        try:
            return onnx.write_graph(fitted)
        except ValueError as error:
            raise ValueError(f"{error}. Use form='torch', which needs PyTorch where it is loaded") from error
    heads = Heads(fitted.heads.coef_.T, fitted.heads.intercept_, fitted.platt())
    if form == TORCH:
        return torch_runtime.to_bytes(fitted.extractor, heads, fitted.fingerprint.features), None
    if form == NUMPY and fitted.blueprint.embeddings:
        return safetensors.numpy.save(heads.to_arrays()), None
    raise ValueError(f"an export is of form 'onnx' or 'torch', and 'numpy' by itself for embeddings; not {form!r:.40}")


# Features are float32 sums in another order: a score may be off by this share of the absolute values it is the sum of.
# Probabilities are float64 from there on.


SCORES_TOLERANCE = 1e-4
PROBABILITIES_TOLERANCE = 1e-9


def compare(fitted: Fitted, runtime: Runtime, records: Dataset | Inputs | None) -> tuple[int, float, float]:
    """Compare an export with its model, on some records: how many, and how far scores and probabilities are apart.

    What is not rounding is a ValueError.
    """
    shape, dtype = fitted.records.shape, fitted.records.dtype
    probes = made_up(shape, dtype) if records is None else as_stored(records, shape, dtype)
    try:
        features = fitted.blueprint.embed(fitted.extractor, unlabelled(probes))
    except Exception as error:
        if records is not None:
            raise
        raise ValueError(
            f"the extractor does not take made-up records ({onnx.reason(error)}): pass some of your own, records=…"
        ) from error
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
    return len(probes), off, largest(probabilities - platt.probabilities(ours))


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


def largest(values: NDArray[Any]) -> float:
    """The largest absolute value; NaN if there is one."""
    return float(np.abs(values).max())
