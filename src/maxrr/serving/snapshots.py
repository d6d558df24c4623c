"""The model of a workspace, to predict with: read once, without a record, and read again when told to."""

import copy
from pathlib import Path

from maxrr.nets.seeding import Network
from maxrr.serving.exports import encoding_of
from maxrr.serving.runtimes import Heads, NumpyRuntime, Runtime
from maxrr.serving.served import ModelState, Served
from maxrr.serving.torch_runtime import TorchRuntime
from maxrr.workspace import Workspace
from maxrr.workspace.folder import is_later


def snapshot(folder: str | Path, network: Network | None = None) -> Served:
    """Take the model out of a workspace, to predict with. It holds no records, and keeps nobody out of the folder.

    `Served.reload` takes the state that was committed last, and refuses another workspace in the same folder. Use it
    beside the workspace, on the machine that holds the records; elsewhere use `export` and `load`.

    Parameters
    ----------
    folder : str or Path
        The folder of the workspace.
    network : torch.nn.Module or function, optional
        The network that was fitted, or the function that makes it, where that is your own code, as in `Workspace.open`.

    Returns
    -------
    Served
        The model.

    Raises
    ------
    maxrr.errors.WorkspaceError
        The folder is not a workspace, or a file is not as it was written.
    maxrr.workspace.NetworkMissing
        The network is the caller's own code, and was not given.
    """

    def read(before: ModelState | None) -> ModelState | None:
        if before is not None:
            token, length = before.version.split()
            if not is_later(Path(folder), token, int(length)):
                return None
        with Workspace.open(folder, network=network, read_only=True) as workspace:
            return without_records(workspace)

    return Served._from(read)


def without_records(workspace: Workspace) -> ModelState:
    """What predicting needs of a workspace, in memory of its own."""
    workspace.check_code()
    fitted = workspace.model._fitted
    heads = Heads(fitted.heads.coef_.T.copy(), fitted.heads.intercept_.copy(), fitted.platt())
    held, store = fitted.records, workspace._store
    runtime: Runtime = (
        NumpyRuntime(heads)
        if fitted.blueprint.embeddings
        else TorchRuntime(copy.deepcopy(fitted.extractor).eval(), heads)
    )
    return ModelState(
        runtime, fitted.head_classes, held.shape, held.dtype,
        held.columns, fitted.model_hash, fitted.requests, f"{store.token} {store.history.length}",
        encoding=encoding_of(workspace._keeper),
    )  # fmt: skip
