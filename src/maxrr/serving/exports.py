"""Write a model into a folder that `load` reads: without a record, and compared with the model before."""

import re
import warnings
from pathlib import Path

import safetensors.numpy

from maxrr.data import Dataset, Encoding
from maxrr.data.reading import Reading
from maxrr.files import to_plain
from maxrr.serving import folders, onnx, torch_runtime
from maxrr.serving.folders import NUMPY, ONNX, TORCH, Facts
from maxrr.serving.origin import Exported, Origin, compare, probes_of
from maxrr.serving.runtimes import Heads
from maxrr.serving.served import runtime_of
from maxrr.unlearning import MaxRR
from maxrr.unlearning.codec import network_facts
from maxrr.unlearning.given_records import Inputs
from maxrr.unlearning.state import Fitted
from maxrr.workspace import Workspace
from maxrr.workspace.keeper import FolderKeeper

ENCODED = re.compile("=| is (other|missing)$")  # in what an encoding calls the inputs that it makes of a column


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
    fitted = origin.fitted
    chosen = NUMPY if form is None and fitted.blueprint.embeddings else form or ONNX
    declared = declared_for(origin.keeper, encoding)
    if declared is not None:
        folders.check_encoding(declared, fitted.records.columns)
    elif found := [name for name in fitted.records.columns or () if ENCODED.search(name)]:
        warnings.warn(
            f"the export has no encoding, and takes inputs such as {found[0]!r} as they are: to be asked with the "
            "columns of your table, pass encoding=…",
            stacklevel=2,
        )
    content, opset = written(fitted, chosen)
    probes, features = probes_of(fitted, records)

    def facts(file: str, sha256: str, name: str = folders.new_export()) -> Facts:
        with_network, held = chosen == TORCH, fitted.records
        return Facts(
            chosen, name, None if origin.keeper is None else origin.keeper.store.token, fitted.requests,
            fitted.model_hash, list(fitted.head_classes), list(held.shape), folders.description_of(held.dtype),
            None if held.columns is None else list(held.columns),
            to_plain(network_facts(fitted.blueprint.network)) if with_network else None,
            fitted.fingerprint.layers if with_network else None, fitted.blueprint.frozen, file, sha256,
            declared, fitted.blueprint.sharding.count if with_network else 1,
        )  # fmt: skip

    network = fitted.blueprint.network if chosen == TORCH else None
    runtime = runtime_of(facts("", ""), content, network, threads=1)
    scores = runtime.scores(probes)
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
    differences = compare(fitted, features, [scores, runtime.probabilities(probes), best])
    name = origin.noted("serving", folder) or folders.new_export()
    size = folders.write(folder, chosen, content, lambda file, sha256: facts(file, sha256, name))
    return Exported(Path(folder), size, chosen, opset, fitted.model_hash, name, len(probes), *differences)


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
