"""A MaxRR in a folder: the same verbs, each durable."""

import importlib
import typing

from maxrr.errors import WorkspaceError

__all__ = [
    "Commit",
    "NetworkMissing",
    "OlderCopyWarning",
    "OnReceipt",
    "Overview",
    "RecordKind",
    "Status",
    "Workspace",
    "WorkspaceError",
    "overview",
]

if typing.TYPE_CHECKING:
    from maxrr.workspace.damage import NetworkMissing
    from maxrr.workspace.records import OnReceipt, RecordKind
    from maxrr.workspace.root import Commit
    from maxrr.workspace.seen import OlderCopyWarning
    from maxrr.workspace.status import Overview, Status, overview
    from maxrr.workspace.workspace import Workspace
else:
    _HOMES = {
        "NetworkMissing": "damage",
        "OnReceipt": "records",
        "RecordKind": "records",
        "Commit": "root",
        "OlderCopyWarning": "seen",
        "Status": "status",
        "Overview": "status",
        "overview": "status",
        "Workspace": "workspace",
    }

    def __getattr__(name):
        """Import a name when it is first asked for: status needs files, and no PyTorch."""
        if name not in _HOMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
