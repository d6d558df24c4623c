"""A MaxRR in a folder: the same verbs, each durable."""

from maxrr.errors import WorkspaceError
from maxrr.workspace.seen import OlderCopyWarning
from maxrr.workspace.status import Status
from maxrr.workspace.workspace import Workspace

__all__ = ["OlderCopyWarning", "Status", "Workspace", "WorkspaceError"]
