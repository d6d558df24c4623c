"""`maxrr key`: the key that signs receipts, replays, audits and the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import PLACES, Json
from maxrr.cli.run import FAILED, REFUTED, USAGE, Stop

if TYPE_CHECKING:
    from maxrr.evidence import SigningKey

NewKey = Annotated[
    Path | None, Option(help="The file for the private key. If not given, key.pem in ~/.config/maxrr.")
]  # fmt: skip
PrivateKey = Annotated[Path | None, Option(help=f"The file of the private key. If not given, {PLACES}.")]


def new(key: NewKey = None, json: Json = False) -> None:
    """Make a key: a private file that only you may read, and beside it a public one (.pub) for everybody.

    A key that is there is never written over. Keep the private file out of backups that others read; without it nobody
    can sign in your name, and if it is lost what was signed stays valid.

    Examples:

        maxrr key new
        maxrr key new --key /secure/maxrr.pem
    """
    from maxrr.evidence import SigningKey, make_key
    from maxrr.evidence.public_keys import default_place, public_place

    place = key or default_place()
    outputs.check(place, "a private key", SigningKey.load)
    made = make_key(place)
    if json:
        show.json({"id": made.public.id, "private": str(place), "public": str(public_place(place))})
    else:
        show.facts([
            ("key", made.public.id),
            ("private", f"{show.near(place)}: keep it to yourself"),
            ("public", f"{show.near(public_place(place))}: give it to everybody who is to check what you sign"),
        ])  # fmt: skip


def present(
    key: PrivateKey = None,
    out: Annotated[
        Path | None,
        Option(help="Write the public keys to this file, for those who check what you sign; one there is replaced."),
    ] = None,
    json: Json = False,
) -> None:
    """Show the public key that you sign with, and those that it has succeeded. Nothing private is shown.

    Examples:

        maxrr key show
        maxrr key show --out operator.pub
    """
    from maxrr.evidence import PublicKeys
    from maxrr.evidence.public_keys import find_public_keys

    found, keys = signing_key(key), find_public_keys(key)
    if keys is None:
        raise Stop(FAILED, "there is no key any more")
    if out is not None:
        known = set(keys.keys)  # others would be lost
        outputs.check(out, "a file of none but your public keys", lambda file: set(PublicKeys.load(file).keys) <= known)
        keys.save(out)
    former = [each.id for each in keys.keys[keys.keys.index(found.public) + 1 :]]
    if json:
        show.json({"id": found.public.id, "former": former, "public": keys.to_bytes().decode()})
        return
    show.facts([("key", found.public.id), *(("former", each) for each in former)])
    if out is None:
        print(found.public.pem.decode(), end="")
    else:
        show.say(f"Wrote {show.near(out)}.")


def rotate(
    key: Annotated[
        Path | None, Option(help="The file of the private key. If not given, key.pem in ~/.config/maxrr.")
    ] = None,
    json: Json = False,
) -> None:
    """Put a new key in the place of yours. The former one signs that the new one succeeds it, and what it signed stays
    valid.

    The public file then holds both, the newest first: publish it again (`maxrr key show --out`), and whoever has the
    former one can check it with `maxrr key succession`. The former private key is kept under another name; nothing
    needs it any more. Where somebody may have stolen it, tell people so yourself: a thief can sign a succession, too.

    Examples:

        maxrr key rotate
        maxrr key rotate --key /secure/maxrr.pem
    """
    from maxrr.evidence import rotate_key
    from maxrr.evidence.public_keys import default_place, public_place
    from maxrr.evidence.signing import ENVIRONMENT

    if key is None and ENVIRONMENT in os.environ:
        raise Stop(USAGE, f"the key is in {ENVIRONMENT}, and only a file is rotated: name the file with --key")
    place = key or default_place()
    if not place.exists():
        raise Stop(FAILED, f"{place} is not there: make a key with maxrr key new")
    rotated = rotate_key(place)
    if json:
        named = {"private": str(place), "public": str(public_place(place))}
        show.json({"id": rotated.public.id, **named})
    else:
        show.facts([
            ("key", rotated.public.id),
            ("private", show.near(place)),
            ("public", f"{show.near(public_place(place))}: publish it again"),
        ])  # fmt: skip


def succession(
    kept: Annotated[Path, Argument(metavar="OLD", help="The file of public keys that you have kept, and trust.")],
    shown: Annotated[Path, Argument(metavar="NEW", help="The file of public keys that the operator shows now.")],
    json: Json = False,
) -> None:
    """Check that an operator's new key succeeds the one that you know: each former key has signed for the next.

    Exits with 0 if it does, and with 4 if not. That the operator still held the former key alone when it signed is
    something that no signature shows.

    Examples:

        maxrr key succession operator-2026.pub operator.pub
    """
    from maxrr.errors import EvidenceError
    from maxrr.evidence import PublicKeys

    old, new_ = PublicKeys.load(kept), PublicKeys.load(shown)
    try:
        new_.require_follows(old)
        wrong = ""
    except EvidenceError as error:
        wrong = str(error)
    if json:
        show.json({"holds": not wrong, "old": old.newest.id, "new": new_.newest.id, "wrong": wrong})
    elif not wrong:
        follows = f"succeeds {old.newest.id}: each former key has signed for the next"
        words = "is the one that you have" if old.newest == new_.newest else follows
        show.say(f"The key {new_.newest.id} {words}.")
    if wrong:
        raise Stop(REFUTED, "" if json else wrong)


def signing_key(path: Path | None) -> SigningKey:
    """The key to sign with, or what to do to have one."""
    from maxrr.evidence.public_keys import find_key

    found = find_key(path)
    if found is None:
        raise Stop(
            FAILED, f"there is no key to sign with: name its file with --key, or make one: maxrr key new ({PLACES})"
        )
    return found
