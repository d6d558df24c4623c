"""Where an operator's key lies, and how it comes and goes: found, made, succeeded by another.

The private key is a file that only its owner may read. Beside it, under the same name with the ending .pub, lies a file
for everybody: its public key, and those that it has succeeded.
"""

import os
import warnings
from datetime import UTC, datetime
from pathlib import Path

from maxrr.errors import EvidenceError
from maxrr.evidence.public_keys import PublicKeys
from maxrr.evidence.signing import ENVIRONMENT, SigningKey, is_free
from maxrr.files import flush_folder
from maxrr.files.atomic import remove_unfinished


def default_place() -> Path:
    """Where the private key lies unless it is told.

    Returns
    -------
    Path
        ``maxrr/key.pem`` in the folder for settings: ``$XDG_CONFIG_HOME``, or ``~/.config``.
    """
    named = Path(os.environ.get("XDG_CONFIG_HOME", ""))
    return (named if named.is_absolute() else Path.home() / ".config") / "maxrr" / "key.pem"


def public_place(private: str | Path) -> Path:
    """Where the public keys lie that belong to a private one.

    Parameters
    ----------
    private
        The file of the private key.

    Returns
    -------
    Path
        The file beside it.

    Examples
    --------
    >>> public_place("keys/key.pem").name
    'key.pub'
    """
    return Path(private).with_suffix(".pub")


def find_key(path: str | Path | None = None) -> SigningKey | None:
    """Find the key to sign with: in the file that is given, else in MAXRR_SIGNING_KEY, else at the default place.

    Parameters
    ----------
    path
        The file, if the user named one.

    Returns
    -------
    SigningKey or None
        The key; None if none was named and there is none.

    Raises
    ------
    EvidenceError
        What was found is no private key, or others may read it.
    OSError
        The file cannot be read.
    """
    if path is not None:
        return SigningKey.load(path)
    if (from_environment := SigningKey.from_environment()) is not None:
        return from_environment
    try:
        return SigningKey.load(default_place())
    except (FileNotFoundError, NotADirectoryError, RuntimeError):  # no such file, or no home
        return None


def find_public_keys(path: str | Path | None = None) -> PublicKeys | None:
    """Find the public keys that belong to what `find_key` finds.

    Parameters
    ----------
    path
        The file of the private key, if the user named one.

    Returns
    -------
    PublicKeys or None
        Those in the file beside the private key, or its own alone where there is no such file; None without a key.

    Raises
    ------
    EvidenceError
        As `find_key`; or the file beside it is of another key.
    """
    key = find_key(path)
    if key is None:
        return None
    if path is None and ENVIRONMENT in os.environ:
        return PublicKeys((key.public,))
    return _beside(Path(path or default_place()), key)


def make_key(path: str | Path) -> SigningKey:
    """Make a new key, and write both its files.

    A private key without a public file is what this leaves where it is killed: the public file is then made for that
    key, with a warning, and no other key is made.

    Parameters
    ----------
    path
        The file for the private key. A folder that is missing is made, for its owner alone.

    Returns
    -------
    SigningKey
        The key.

    Raises
    ------
    EvidenceError
        One of the files is there already.
    """
    path, public = Path(path), public_place(path)
    if path == public:
        raise EvidenceError(f"{path} is a name for a public key: name the file of the private key otherwise")
    if not is_free(public):
        there = public if is_free(path) else path
        raise EvidenceError(f"{there} is there already, and a key is never written over: choose another name")
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if is_free(path):
        key = SigningKey.generate()
        key.save(path)
    else:
        key = SigningKey.load(path)
        warnings.warn(f"{path} was there, without {public}: no other key was made, but its public file", stacklevel=2)
    remove_unfinished(path)
    remove_unfinished(public)
    PublicKeys((key.public,)).save(public)
    return key


def rotate_key(path: str | Path) -> tuple[SigningKey, Path]:
    """Put a new key in the place of one, which says that the new one succeeds it.

    What the former key signed stays valid: its public key stays in the public file. An interrupted rotation is finished
    by the next one, with a warning.

    Parameters
    ----------
    path
        The file of the private key.

    Returns
    -------
    key : SigningKey
        The new key, which is in the file now.
    former : Path
        Where the former private key is kept. Nothing needs it any more.

    Raises
    ------
    EvidenceError
        The file is no private key, or a file beside it, public or kept, is of another key.
    """
    path = Path(path)
    if path.is_symlink():
        raise EvidenceError(f"{path} is a link, and a new key would take its place: name the file itself")
    former = SigningKey.load(path)
    coming = path.with_name(f"{path.name}.next")
    kept = path.with_name(f"{path.stem}-{former.public.id[:16]}{path.suffix}")
    for each in (path, public_place(path), coming, kept):
        remove_unfinished(each)
    public = _beside(path, former)
    if is_free(coming):
        SigningKey.generate().save(coming)
    else:
        warnings.warn(f"{coming} was there, of a rotation that was interrupted: it is finished now", stacklevel=2)
    new = SigningKey.load(coming)
    if is_free(kept):
        former.save(kept)
    elif SigningKey.load(kept).public != former.public:
        raise EvidenceError(f"{kept} is another key than {path}, which is to be kept there: move it away")
    if public.newest != new.public:
        public = public.succeeded_by(new.public, former, datetime.now(UTC).isoformat(timespec="seconds"))
        public.save(public_place(path))
    os.replace(coming, path)
    flush_folder(path.parent)
    return new, kept


def _beside(path: Path, key: SigningKey) -> PublicKeys:
    """The public keys beside a private one."""
    try:
        found = PublicKeys.load(public_place(path))
    except FileNotFoundError:
        return PublicKeys((key.public,))
    if key.public not in found.keys:
        raise EvidenceError(
            f"{public_place(path)} does not have the public key of {path}: it is another's; move it away"
        )
    return found
