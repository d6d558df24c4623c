"""What is wrong with a workspace's files."""

from pathlib import Path


class WorkspaceError(ValueError):
    """A folder that is not a workspace, is in use, or holds files that are not as they were written."""


def damaged(path: Path, why: str) -> WorkspaceError:
    """A file that cannot be relied on. Nothing of the workspace is then used."""
    return WorkspaceError(f"{path} is damaged: {why}. Restore the workspace from a copy, or fit it again")


def unfamiliar(path: Path, what: str, known: str) -> WorkspaceError:
    """A workspace that another version of this program wrote. It is whole, and left as it is."""
    return WorkspaceError(
        f"{path} {what}, and this program {known}. Use the maxrr that wrote it, or fit again into another folder, from "
        "the records without those forgotten here. Nothing was changed or deleted"
    )
