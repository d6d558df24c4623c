"""A folder that holds a live model: each change is durable when it returns."""

import typing

from maxrr import lazily
from maxrr.errors import WorkspaceError

__all__ = [
    "Batch",
    "Commit",
    "Export",
    "LoggedReceipts",
    "NetworkMissing",
    "OlderCopyWarning",
    "Overview",
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
    from maxrr.workspace.backups import backup
    from maxrr.workspace.batches import Batch, Ticket
    from maxrr.workspace.errors import NetworkMissing, TrainingMissing
    from maxrr.workspace.exports import Export
    from maxrr.workspace.log_check import LoggedReceipts, check_receipt_log
    from maxrr.workspace.seen import OlderCopyWarning
    from maxrr.workspace.states import Commit
    from maxrr.workspace.status import Overview, Status, overview
    from maxrr.workspace.traces import Trace
    from maxrr.workspace.workspace import Workspace
else:  # status needs files, and no PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "backups": ("backup",),
        "batches": ("Batch", "Ticket"),
        "errors": ("NetworkMissing", "TrainingMissing"),
        "exports": ("Export",),
        "log_check": ("LoggedReceipts", "check_receipt_log"),
        "states": ("Commit",),
        "seen": ("OlderCopyWarning",),
        "status": ("Status", "Overview", "overview"),
        "traces": ("Trace",),
        "workspace": ("Workspace",),
    })  # fmt: skip
