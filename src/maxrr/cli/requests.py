"""From what the shell passes to a request: ids as the workspace has them, and the plan for them."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxrr.cli import show
from maxrr.cli.exits import FAILED, REFUSED, USAGE, Stop
from maxrr.cli.opening import insides
from maxrr.cli.options import Policy, Refit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxrr.unlearning import Plan
    from maxrr.workspace import Workspace

Request = dict[str, Any]
"""Either `ids` or `subjects`, as `Workspace.plan` and `unlearn` take them."""


def check_one_kind(ids: list[str] | None, ids_file: str | None, subject: list[str] | None) -> None:
    """Records are named in one way."""
    if sum(bool(given) for given in (ids, ids_file, subject)) != 1:
        raise Stop(USAGE, "name the records with one of --ids, --ids-file and --subject")


def request_of(
    workspace: Workspace, ids: list[str] | None, ids_file: str | None, subject: list[str] | None
) -> Request:  # fmt: skip
    """The records that are asked for, named as the workspace names them."""
    holdings = insides(workspace).holdings
    if subject:
        if holdings.subjects is None:
            raise Stop(REFUSED, "the records of this workspace do not say whom they are about: use --ids")
        return {"subjects": as_in(holdings.subjects, subject, "subject ids")}
    texts = ids_in(ids_file) if ids_file else [text.strip() for each in ids or [] for text in each.split(",")]
    wanted = [text for text in texts if text]
    if not wanted:
        raise Stop(FAILED, f"{ids_file or '--ids'} names no ids")
    return {"ids": as_in(holdings.ids, wanted, "record ids")}


def ids_in(file: str) -> list[str]:
    """The lines of a file, without what editors and spreadsheets put around them."""
    from maxrr.files import read_regular

    content = sys.stdin.buffer.read() if file == "-" else read_regular(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(
            FAILED, f"{file}: is not text in UTF-8 ({error.reason} at byte {error.start}): write one id a line"
        ) from None
    return [line.strip() for line in re.split("\r\n|\n|\r", text)]  # an id may have other separators in it


def as_in(keys: NDArray[Any], texts: Sequence[str], what: str) -> NDArray[Any]:
    """Texts as integers where the workspace has integers. '007' is not 7: no record is forgotten by mistake."""
    from maxrr.data.checks import check_keys, check_text
    from maxrr.data.labels import as_keys

    if keys.dtype.kind == "U":
        return check_keys(list(texts), what)
    for text in texts:
        check_text(text, what)
        if as_keys([text]).dtype.kind != "i":
            raise Stop(FAILED, f"{text!r} cannot be one of the {what} of this workspace, which are integers")
    return as_keys(list(texts))


def planned(workspace: Workspace, request: Request, policy: Policy, refit: Refit) -> Plan:
    """What carrying out the request would do."""
    return workspace.plan(**request, core_policy=str(policy), refit=str(refit))


def refusal(plan: Plan) -> str:
    """Why a request is refused, in the words of the shell.

    >>> from types import SimpleNamespace
    >>> refusal(SimpleNamespace(refusal="use core_policy='retrain' for an exact answer"))
    'use --policy retrain for an exact answer'
    """
    words = re.sub("; a function of your own is .*", "", plan.refusal or "")  # which a shell cannot pass
    words = re.sub(r"core_policy='([\w-]+)'", r"--policy \1", words)
    return re.sub(r"refit='(\w+)'", r"--refit \1", words)


def tell(plan: Plan) -> None:
    """A plan for people."""
    from maxrr.report.words import count, duration

    kinds = {
        "core": plan.core, "influential": plan.influential, "neither": plan.neither,
        "unknown": plan.unknown, "forgotten before": plan.already_forgotten,
    }  # fmt: skip
    found = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    pairs = [("records", f"{plan.requested:,} asked for" + (f": {found}" if found else ""))]
    if plan.refusal:
        pairs.append(("refused", show.Bad(refusal(plan))))
    else:
        pairs += [("guarantee", str(plan.guarantee)), ("because", plan.reason), ("work", work(plan))]
        pairs.append(("takes about", duration(plan.seconds)))
    if plan.duplicates_left:
        pairs.append(("stays", f"{count(plan.duplicates_left, 'other record')} with exactly the same features"))
    show.facts(pairs)


def work(plan: Plan) -> str:
    """What there is to do, beside erasing the records."""
    from maxrr.report.words import count, listed

    parts = []
    if plan.trains:
        parts.append(f"train the extractor on {count(plan.trains, 'record')}")
    if plan.embeds:
        parts.append(f"embed {count(plan.embeds, 'record')}")
    if plan.heads:
        parts.append(f"{'fit' if plan.trains or plan.embeds else 'move'} {count(plan.heads, 'head')}")
    return listed(parts) if parts else "none on the model"
