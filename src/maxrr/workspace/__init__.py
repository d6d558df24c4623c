"""A MaxRR in a folder: the same verbs, each durable."""

from maxrr.workspace.damage import WorkspaceError
from maxrr.workspace.workspace import Status, Workspace

__all__ = ["Status", "Workspace", "WorkspaceError"]
