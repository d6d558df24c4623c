"""`maxrr key`: the key that signs receipts and the log."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from maxrr.cli import outputs, show
from maxrr.cli.options import PLACES, Json
from maxrr.cli.run import USAGE, Stop
from maxrr.errors import KeyMissing

PrivateKey = Annotated[
    Path | None,
    Argument(metavar="[FILE]", help="The file of the private key. If not given, key.pem in ~/.config/maxrr."),
]


def new(file: PrivateKey = None) -> None:
    """Make a key: a private file that only you may read, and beside it a public one (.pub) for everybody.

    A key that is there is never written over. Keep the private file out of backups that others read; without it nobody
    can sign in your name, and if it is lost what was signed stays valid. Commands sign with the key at its usual place,
    or with the text of a private file that is in MAXRR_SIGNING_KEY.

    Examples:

        maxrr key new
        maxrr key new /secure/maxrr.pem
    """
    from maxrr.evidence import SigningKey, make_key
    from maxrr.evidence.public_keys import default_place, public_place

    place = file or default_place()
    if file is None:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    outputs.check(place, "a private key", SigningKey.load)
    made = make_key(place)
    show.facts([
        ("key", made.public.id),
        ("private", f"{show.near(place)}: keep it to yourself"),
        ("public", f"{show.near(public_place(place))}: give it to everybody who is to check what you sign"),
    ])  # fmt: skip


def present(
    file: PrivateKey = None,
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
    from maxrr.evidence.public_keys import find_key, find_public_keys

    found, keys = find_key(file), find_public_keys(file)
    if found is None or keys is None:
        raise KeyMissing(f"there is no key to sign with: make one with maxrr key new ({PLACES})")
    if out is not None:
        known = set(keys.keys)  # others would be lost
        outputs.check(out, "a file of none but your public keys", lambda path: set(PublicKeys.load(path).keys) <= known)
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


def rotate(file: PrivateKey = None) -> None:
    """Put a new key in the place of yours. The former one signs that the new one succeeds it, and what it signed stays
    valid.

    The public file then holds both, the newest first: publish it again (`maxrr key show --out`), and whoever has the
    former one can check it with `maxrr verify NEW --against OLD`. The former private key is not kept:
    nothing needs it any more. Where somebody may have stolen it, tell people so yourself: a thief can sign, too.

    Examples:

        maxrr key rotate
        maxrr key rotate /secure/maxrr.pem
    """
    from maxrr.evidence import rotate_key
    from maxrr.evidence.public_keys import default_place, public_place
    from maxrr.evidence.signing import ENVIRONMENT

    if file is None and ENVIRONMENT in os.environ:
        raise Stop(USAGE, f"the key is in {ENVIRONMENT}, and only a file is rotated: name the file")
    place = file or default_place()
    if not place.exists():
        raise KeyMissing(f"{place} is not there: make a key with maxrr key new")
    rotated = rotate_key(place)
    show.facts([
        ("key", rotated.public.id),
        ("private", show.near(place)),
        ("public", f"{show.near(public_place(place))}: publish it again"),
    ])  # fmt: skip
