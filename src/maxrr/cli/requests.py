"""From what the shell passes to a request: ids as the workspace has them, and the plan for them."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from maxrr.cli import show
from maxrr.cli.run import FAILED, REFUSED, USAGE, Stop

if TYPE_CHECKING:
    from maxrr.unlearning import Plan

UNDONE = "nothing was changed, and no record forgotten"  # what is said to somebody who interrupts


def request_of(
    ids: list[str] | None, ids_file: str | None, subject: list[str] | None, receipt: int | None = None
) -> dict[str, Any]:
    """Return the records that the options name, as `MaxRR.plan` takes them: they are named in one way."""
    if sum(bool(given) for given in (ids, ids_file, subject, receipt)) != 1:
        raise Stop(USAGE, "name the records with one of --ids, --ids-file, --subject and --receipt")
    if receipt:
        return {"receipt": receipt}
    if subject:
        return {"subjects": subject}
    texts = ids_in(ids_file) if ids_file else [text.strip() for each in ids or [] for text in each.split(",")]
    wanted = [text for text in texts if text]
    if not wanted:
        raise Stop(FAILED, f"{ids_file or '--ids'} names no ids")
    return {"ids": wanted}


def ids_in(file: str) -> list[str]:
    """Read the lines of a file, without what editors and spreadsheets put around them."""
    from maxrr.files import read_regular

    content = sys.stdin.buffer.read() if file == "-" else read_regular(file)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Stop(FAILED, f"{file}: is no UTF-8 ({error.reason} at byte {error.start}): write one id a line") from None
    return [line.strip() for line in re.split("\r\n|\n|\r", text)]  # an id may have other separators in it


# Plans


def refusal(plan: Plan) -> str:
    """Say in the shell's words why a request is refused; empty if it is not."""
    return plan.refusal_in(lambda policy: f"--policy {policy}") or ""


def as_json(plan: Plan) -> dict[str, Any]:
    """Describe a plan for programs, with its alternatives."""
    others = [as_json(other) for other in plan.alternatives]
    return plan.to_dict() | {"refusal": refusal(plan) or None, "alternatives": others}


def check_can_ask(*, yes: bool, json: bool) -> None:
    """Refuse, before the work, to go on without --yes where nobody can be asked."""
    if not yes and (json or not (sys.stdin.isatty() and sys.stderr.isatty())):
        raise Stop(USAGE, "this cannot be undone, and nobody can be asked to confirm it here: say --yes")


def confirm(plan: Plan, question: str, *, yes: bool) -> None:
    """Refuse what the plan refuses; otherwise show the plan, and go on if --yes or somebody at the terminal says so."""
    if plan.refusal:
        words = f"refused: {refusal(plan)}"
        if plan.unknown:
            raise Stop(REFUSED, words, "unknown-id")
        raise Stop(REFUSED, words, "core-refused") if plan.alternatives else Stop(REFUSED, words)
    if yes:
        return
    tell(plan)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(FAILED, "not confirmed: nothing was changed", "not-confirmed")


def tell(plan: Plan) -> None:
    """Print a plan."""
    from maxrr.report.words import count, duration

    kinds = {
        "core": plan.core, "influential": plan.influential, "free": plan.free,
        "unknown": plan.unknown, "forgotten before": plan.already_forgotten,
    }  # fmt: skip
    found = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items() if number)
    asked = f"{plan.requested:,} asked for" + (f": {found}" if found else "")
    pairs = [("records", asked if plan.requested or not plan.added else f"{plan.added:,} to add")]
    if plan.refusal:
        pairs.append(("refused", show.Bad(refusal(plan))))
    else:
        pairs += [("guarantee", str(plan.guarantee)), ("because", plan.reason), ("work", work(plan))]
        pairs += [("on condition that", condition) for condition in plan.conditions]
        pairs.append(("takes about", duration(plan.seconds)))
    if plan.duplicates_left:
        pairs.append(("stays", f"{count(plan.duplicates_left, 'other record')} with exactly the same inputs"))
    show.facts(pairs)


def work(plan: Plan) -> str:
    """Say what there is to do, beside erasing the records."""
    from maxrr.report.words import count, listed
    from maxrr.unlearning import Action

    parts = []
    if plan.trains:
        which = "the extractor" if plan.extractors == 1 else count(plan.extractors, "extractor")
        parts.append(f"train {which} on {count(plan.trains, 'record')}")
    if plan.embeds:
        parts.append(f"embed {count(plan.embeds, 'record')}")
    if plan.heads:
        parts.append(f"{'move' if plan.action is Action.move else 'fit'} {count(plan.heads, 'head')}")
    return listed(parts) if parts else "none on the model"
