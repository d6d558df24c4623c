"""Which audits of a workspace's receipts came to a finding: one small file each, so that a second is known for one."""

import secrets
import warnings
from datetime import UTC, datetime
from pathlib import Path

from maxrr.errors import WorkspaceError
from maxrr.files import write_atomically
from maxrr.workspace.errors import check_folder
from maxrr.workspace.names import AUDITS


def note_audit(folder: Path, receipt: str) -> int:
    """Note an audit of the receipt with this hash, and say how many others there are.

    As with exports, that takes no lock. The note is written first, so that of two audits that end at once each knows of
    the other. Where it cannot be written the finding is not lost: it may be hours of work.
    """
    place, name = folder / AUDITS, f"{receipt}-{secrets.token_hex(8)}.txt"
    try:
        check_folder(place)
        place.mkdir(mode=0o700, exist_ok=True)
        write_atomically(place / name, f"{datetime.now(UTC).isoformat()}\n".encode(), private=True)
    except (OSError, WorkspaceError) as error:
        warnings.warn(f"later audits will not know of this one, which could not be noted: {error}", stacklevel=2)
    return sum(other.name != name for other in place.glob(f"{receipt}-*.txt"))
