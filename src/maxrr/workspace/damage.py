"""What is wrong with a workspace's files."""

from pathlib import Path


class WorkspaceError(ValueError):
    """A folder that is not a workspace, is in use, or holds files that are not as they were written."""


def damaged(path: Path, why: str) -> WorkspaceError:
    """A file that cannot be relied on. Nothing of the workspace is then used."""
    return WorkspaceError(f"{path} is damaged: {why}. Restore the workspace from a copy, or fit it again")
