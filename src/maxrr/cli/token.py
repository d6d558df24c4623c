"""`maxrr token`: who may call a service, and in which role."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import Folder, Json

if TYPE_CHECKING:
    from maxrr.service.tokens import Tokens

COLUMNS = "id", "name", "role", "made", "revoked"
Name = Annotated[str, Argument(metavar="NAME", help="Whom it is for; several tokens may share a name.")]
Known = Annotated[str, Argument(metavar="ID", help="The id of the token, as the list shows it.")]
Role = Annotated[
    Literal["requester", "operator", "auditor", "predictor"],
    Option(
        help="What it allows. requester: ask, and see what was asked under that name. operator: see and decide all. "
        "auditor: see all, change nothing. predictor: predict."
    ),
]


def new(workspace: Folder, name: Name, role: Role) -> None:
    """Make a token, and print it. It is shown this once, and the service keeps its hash.

    Examples:

        maxrr token new ws/ shop --role requester
    """
    with tokens_of(workspace) as tokens:
        print(tokens.make(name, role))


def revoke(workspace: Folder, id: Known) -> None:
    """Revoke a token. A service that runs does not take it any more two seconds later.

    Examples:

        maxrr token revoke ws/ 3f1c9a0b27de
    """
    with tokens_of(workspace) as tokens:
        revoked = tokens.revoke(id)
    show.say(f"Revoked {revoked.id}, {revoked.role} of {revoked.name}.")


def present(workspace: Folder, json: Json = False) -> None:
    """List the tokens of a service, by the beginning of their hashes.

    Examples:

        maxrr token list ws/
    """
    with tokens_of(workspace) as tokens:
        found = tokens.listed()
    if json:
        show.json([dict(zip(COLUMNS, each, strict=True)) for each in found])
        return
    rows = [(each.id, each.name, each.role, each.made[:16], (each.revoked or "")[:16]) for each in found]
    show.table(COLUMNS, rows)


@contextmanager
def tokens_of(workspace: Path) -> Iterator[Tokens]:
    """The tokens of the service of a workspace."""
    from maxrr.cli.serve import settings_of
    from maxrr.service.database import Database
    from maxrr.service.tokens import Tokens

    with closing(Database(settings_of(workspace).url)) as database:
        yield Tokens(database)
