"""A MaxRR in a folder: the same verbs, each durable."""

import typing

from maxrr import lazily
from maxrr.errors import WorkspaceError

__all__ = [
    "Commit",
    "Export",
    "LoggedReceipts",
    "NetworkMissing",
    "OlderCopyWarning",
    "OnReceipt",
    "Overview",
    "RecordKind",
    "Status",
    "TrainingMissing",
    "Workspace",
    "WorkspaceError",
    "backup",
    "check_receipt_log",
    "overview",
]

if typing.TYPE_CHECKING:
    from maxrr.workspace.backups import backup
    from maxrr.workspace.errors import NetworkMissing, TrainingMissing
    from maxrr.workspace.exports import Export
    from maxrr.workspace.log_check import LoggedReceipts, check_receipt_log
    from maxrr.workspace.records import OnReceipt, RecordKind
    from maxrr.workspace.seen import OlderCopyWarning
    from maxrr.workspace.states import Commit
    from maxrr.workspace.status import Overview, Status, overview
    from maxrr.workspace.workspace import Workspace
else:  # status needs files, and no PyTorch
    __getattr__, __dir__ = lazily.names_from(__name__, {
        "backups": ("backup",),
        "errors": ("NetworkMissing", "TrainingMissing"),
        "exports": ("Export",),
        "log_check": ("LoggedReceipts", "check_receipt_log"),
        "records": ("OnReceipt", "RecordKind"),
        "states": ("Commit",),
        "seen": ("OlderCopyWarning",),
        "status": ("Status", "Overview", "overview"),
        "workspace": ("Workspace",),
    })  # fmt: skip
