"""Where an export comes from, and what became of it."""

from dataclasses import dataclass
from pathlib import Path

from maxrr.unlearning import MaxRR
from maxrr.unlearning.state import Fitted
from maxrr.workspace import Workspace


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
    """One state of a model with its probabilities fitted, and the workspace that it is of, if there is one."""

    model: MaxRR
    fitted: Fitted
    workspace: Workspace | None

    @classmethod
    def of(cls, source: MaxRR | Workspace) -> "Origin":
        """The present state."""
        if not isinstance(source, MaxRR | Workspace):
            raise TypeError(
                "what is exported is a fitted MaxRR or an open Workspace, as of Workspace.open('ws'), "
                f"not {source!r:.60}"
            )
        workspace = source if isinstance(source, Workspace) else None
        if isinstance(source, Workspace):
            source.check_newest()
            model = source.model
        else:
            model = source
        with model._lock:  # the records must stay for as long as probabilities are fitted on them
            fitted = model._fitted
            fitted.platt()
        return cls(model, fitted, workspace)

    def noted(self, kind: str, path: str | Path) -> str | None:
        """The id under which the workspace notes the export, before it is written; None without a workspace."""
        return None if self.workspace is None else self.workspace.record_export(kind, path, self.model)
