"""A consistent copy of a workspace, made while requests are carried out. It knows that it is a copy."""

from datetime import UTC, datetime
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.evidence import Checkpoint
from maxrr.evidence.log import LOG
from maxrr.evidence.log_writer import restore_log
from maxrr.files import flush_folder, write_atomically
from maxrr.workspace import names, receipt_log
from maxrr.workspace.folder import Folder


def backup(folder: str | Path, to: str | Path) -> None:
    """Copy a workspace as it was at one moment, beside whoever works in it. Nobody is kept out or waited for.

    Parameters
    ----------
    folder : str or Path
        The folder of the workspace.
    to : str or Path
        The folder to make, or one that is empty.

    Raises
    ------
    maxrr.errors.WorkspaceError
        There is no workspace, a file of it is damaged, or the other folder holds something.
    """
    place = Path(to)
    if place.is_dir() and any(place.iterdir()):
        raise WorkspaceError(f"{place} holds other files: name a folder that is new or empty. Nothing was changed")
    source = Folder(folder, read_only=True)
    found = source.read_beside_others()
    assert source.history is not None
    names.make_private(place)
    files = {found.file_of(part): content for part, content in source.parts.items()}
    for name, content in {**files, found.rows.file: source.content}.items():
        write_atomically(place / name, bytes(content), private=True, flush_name=False)
    logged = source.logged_before
    if found.files.keys and logged is not None and not receipt_log.is_of_lost(found, logged):
        checkpoint = Checkpoint.read(logged, found.origin, receipt_log.keys_of(found))
        restore_log(place / LOG, checkpoint, [each.logged for each in source.answers])
    flush_folder(place)
    history = source.history.as_backup(datetime.now(UTC).isoformat(timespec="seconds"))
    write_atomically(place / names.history_name(source.token), history, private=True)  # last: now it is a workspace
