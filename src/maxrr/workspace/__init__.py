"""A MaxRR in a folder: the same verbs, each durable."""

from maxrr.workspace.damage import NetworkMissing, WorkspaceError
from maxrr.workspace.records import OnReceipt, RecordKind
from maxrr.workspace.root import Commit
from maxrr.workspace.seen import OlderCopyWarning
from maxrr.workspace.status import Status
from maxrr.workspace.workspace import Workspace

__all__ = [
    "Commit",
    "NetworkMissing",
    "OlderCopyWarning",
    "OnReceipt",
    "RecordKind",
    "Status",
    "Workspace",
    "WorkspaceError",
]
