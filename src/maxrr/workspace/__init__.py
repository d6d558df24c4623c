"""A folder that holds a live model: each change is durable when it returns."""

import typing

from maxrr import lazily
from maxrr.errors import WorkspaceError

__all__ = [
    "Batch",
    "Commit",
    "Export",
    "NetworkMissing",
    "OlderCopyWarning",
    "Status",
    "Ticket",
    "Trace",
    "TrainingMissing",
    "Workspace",
    "WorkspaceError",
    "backup",
    "check_receipt_log",
    "overview",
]

if typing.TYPE_CHECKING:
    from maxrr.workspace.copies import backup
    from maxrr.workspace.errors import NetworkMissing, TrainingMissing
    from maxrr.workspace.exports import Export
    from maxrr.workspace.receipt_log import check_receipt_log
    from maxrr.workspace.seen import OlderCopyWarning
    from maxrr.workspace.states import Commit
    from maxrr.workspace.status import Status, overview
    from maxrr.workspace.workspace import Batch, Ticket, Trace, Workspace
else:  # status needs files, and no PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "copies": ("backup",),
        "errors": ("NetworkMissing", "TrainingMissing"),
        "exports": ("Export",),
        "receipt_log": ("check_receipt_log",),
        "states": ("Commit",),
        "seen": ("OlderCopyWarning",),
        "status": ("Status", "overview"),
        "workspace": ("Batch", "Ticket", "Trace", "Workspace"),
    })  # fmt: skip
