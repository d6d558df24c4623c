"""Where an export comes from, how it is compared with its model before it is written, and what became of it."""

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.fields import are_several, described, packed
from maxrr.nets.probe import made_up
from maxrr.unlearning import MaxRR
from maxrr.unlearning.given_records import Inputs, unlabelled
from maxrr.unlearning.state import Fitted
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


# Features are float32 sums in another order: a score may be off by this share of the absolute values it is the sum of.
# Probabilities are float64 from there on.
SCORES_TOLERANCE = 1e-4
PROBABILITIES_TOLERANCE = 1e-9


def probes_of(fitted: Fitted, records: Dataset | Inputs | None) -> tuple[NDArray[Any], NDArray[Any]]:
    """Records to compare on, and the model's features of them."""
    shape, dtype = fitted.records.shape, fitted.records.dtype
    probes = made_up(shape, dtype) if records is None else as_stored(records, shape, dtype)
    try:
        return probes, fitted.blueprint.embed(fitted.extractor, unlabelled(probes))
    except Exception as error:
        if records is not None:
            raise
        raise ValueError(
            f"the extractor does not take made-up records ({reason(error)}): pass some of your own, records=…"
        ) from error


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


def compare(fitted: Fitted, features: NDArray[Any], outputs: list[NDArray[Any]]) -> tuple[float, float]:
    """The largest differences of scores and of probabilities from the model's. Too large ones are a ValueError."""
    scores, probabilities, label = outputs
    heads, platt = fitted.heads, fitted.platt()
    ours = heads.decision_function(features)
    off = largest(scores - ours)
    allowed = SCORES_TOLERANCE * largest(np.abs(features) @ np.abs(heads.coef_.T) + np.abs(heads.intercept_))
    if not off <= allowed:
        raise ValueError(f"the export's scores differ from the model's by {off:.3g}, and {allowed:.3g} is rounding")
    own = largest(probabilities - platt.probabilities(scores))
    best = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0.0).astype(int)
    if not own <= PROBABILITIES_TOLERANCE or not np.array_equal(label, best):
        raise ValueError(
            f"the export's probabilities or labels do not follow from its scores: they differ by {own:.3g}"
        )
    return off, largest(probabilities - platt.probabilities(ours))


def largest(values: NDArray[Any]) -> float:
    """The largest absolute value; NaN if there is one."""
    return float(np.abs(values).max())


def reason(error: BaseException) -> str:
    """The first line of what went wrong first."""
    while error.__cause__ is not None:
        error = error.__cause__
    return (str(error).strip() or repr(error)).splitlines()[0]
