"""A folder that holds a live model: each change is durable when it returns."""

import typing

from maxrr import lazily

__all__ = ["Batch", "Export", "OlderCopyWarning", "Status", "Ticket", "Trace", "check_receipt_log"]

if typing.TYPE_CHECKING:  # what is not in `__all__` is for other rooms
    from maxrr.errors import WorkspaceError as WorkspaceError
    from maxrr.workspace.batches import Batch, Ticket
    from maxrr.workspace.copies import backup as backup
    from maxrr.workspace.exports import Export
    from maxrr.workspace.older_copies import OlderCopyWarning
    from maxrr.workspace.receipt_log import check_receipt_log
    from maxrr.workspace.states import Commit as Commit
    from maxrr.workspace.status import Status
    from maxrr.workspace.status import overview as overview
    from maxrr.workspace.workspace import Trace
    from maxrr.workspace.workspace import Workspace as Workspace
else:  # status needs files, and no PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "batches": ("Batch", "Ticket"),
        "copies": ("backup",),
        "errors": ("WorkspaceError",),
        "exports": ("Export",),
        "receipt_log": ("check_receipt_log",),
        "states": ("Commit",),
        "older_copies": ("OlderCopyWarning",),
        "status": ("Status", "overview"),
        "workspace": ("Trace", "Workspace"),
    })  # fmt: skip
