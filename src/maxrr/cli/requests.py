"""From what the shell passes to a request: ids as the workspace has them, the plan for them, and whom it is about.

Records about a person may be for testing, which no model has seen, but the source holds.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maxrr.cli import show
from maxrr.cli.run import FAILED, REFUSED, USAGE, Stop, in_words
from maxrr.cli.workspaces import people_are_apart, sides
from maxrr.errors import NoSubjects

if TYPE_CHECKING:
    from maxrr.unlearning import Plan
    from maxrr.workspace import Workspace

UNDONE = "nothing was changed, and no record forgotten"  # what is said to somebody who interrupts

Request = dict[str, Any]
"""Either `ids` or `subjects`, as `MaxRR.plan` takes them."""

ALONE = (
    "they are used for nothing but scores. The model never saw them: there is nothing to forget in it, and no receipt. "
    "The source still holds them: delete them there"
)
BESIDE = "used for nothing but scores, and held by the source: delete them there, too"
UNKNOWN = (
    "the source is not at hand, so that it is not known whether other records about these people are for testing: "
    "look for them there"
)


def request_of(
    workspace: Workspace, ids: list[str] | None, ids_file: str | None, subject: list[str] | None
) -> Request:  # fmt: skip
    """The records that are asked for, named as the workspace names them."""
    kind = workspace.model.kind_
    if subject:
        if kind.text_subjects is None:
            raise NoSubjects("the records of this workspace do not say whom they are about: use --ids")
        return {"subjects": kind.subjects(subject)}
    texts = ids_in(ids_file) if ids_file else [text.strip() for each in ids or [] for text in each.split(",")]
    wanted = [text for text in texts if text]
    if not wanted:
        raise Stop(FAILED, f"{ids_file or '--ids'} names no ids")
    return {"ids": kind.ids(wanted)}


def check_one_kind(ids: list[str] | None, ids_file: str | None, subject: list[str] | None) -> None:
    """Records are named in one way."""
    if sum(bool(given) for given in (ids, ids_file, subject)) != 1:
        raise Stop(USAGE, "name the records with one of --ids, --ids-file and --subject")


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


def without_tests(
    workspace: Workspace, request: Request, moved: Sequence[str] | None = None
) -> tuple[Request | None, int | None]:  # fmt: skip
    """The request for what the model learned from, and how many test records are about the same people.

    The request is None where all records about them are for testing. The count is None where the source is not at hand;
    it is looked into only if somebody is unknown to the model, or if people may be on both sides. Where somebody is
    unknown and the source is not at hand, nobody can say whether records are about them, and the command ends.
    """
    import numpy as np

    if "subjects" not in request:
        return request, 0
    wanted = np.unique(request["subjects"])
    learned = np.array([is_known(workspace, subject) for subject in wanted], dtype=bool)
    if learned.all() and people_are_apart(workspace.source) and len(workspace.sources) == 1:
        return request, 0
    try:
        with show.progress():
            _, test = sides(workspace, moved)
    except (Stop, ValueError, OSError) as error:
        if learned.all():
            return request, None
        unknown = ", ".join(map(repr, wanted[~learned][:5].tolist())) + (" …" if (~learned).sum() > 5 else "")
        raise Stop(
            FAILED,
            f"the model has learned from no record about {unknown}, and whether records for testing are about them "
            f"cannot be told without the source: {in_words(error)}. Nothing was done",
        ) from None
    people = wanted[:0] if test.subjects is None else test.subjects
    nowhere = ~learned & ~np.isin(wanted, people)
    if nowhere.any():
        return {"subjects": wanted[learned | nowhere]}, 0  # which is refused for those who are nowhere
    return {"subjects": wanted[learned]} if learned.any() else None, int(np.isin(people, wanted).sum())


def is_known(workspace: Workspace, subject: int | str) -> bool:
    """Whether the model has, or had, records about a person."""
    from maxrr.errors import NotHere

    try:
        workspace.model.plan(subjects=[subject])
    except NotHere:
        return False
    return True


def tell_tests(tested: int | None, *, alone: bool = False, json: bool = False) -> None:
    """That other records about the people are for testing, or may be, or that all of them are."""
    from maxrr.report.words import count

    if alone and json:
        show.json({"requested": 0, "test_records": tested, "receipt": None})
    elif alone:
        show.say(f"{count(tested or 0, 'record')} about these people, all for testing: {ALONE}.")
    elif tested is None:
        show.warning(UNKNOWN)
    elif tested:
        show.warning(f"{count(tested, 'other record')} about these people for testing: {BESIDE}")


# Plans


def refusal(plan: Plan) -> str:
    """Why a request is refused, in the words of the shell; nothing if it is not."""
    return plan.refusal_in(lambda policy: f"--policy {policy}") or ""


def as_json(plan: Plan) -> dict[str, Any]:
    """A plan for programs, what could be asked for instead included."""
    others = [as_json(other) for other in plan.alternatives]
    return plan.to_dict() | {"refusal": refusal(plan) or None, "alternatives": others}


def confirm(plan: Plan, question: str, *, yes: bool, json: bool) -> None:
    """Refuse what the plan refuses; else show it, and go on if somebody at the terminal says so, or --yes does."""
    if plan.refusal:
        raise Stop(REFUSED, f"refused: {refusal(plan)}")
    if yes:
        return
    if json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Stop(USAGE, "this cannot be undone, and nobody can be asked to confirm it here: say --yes")
    tell(plan)
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise Stop(FAILED, "not confirmed: nothing was changed", "not-confirmed")


def tell(plan: Plan) -> None:
    """A plan for people."""
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
        pairs += [("on condition that", condition) for condition in plan.conditions if plan.added]
        pairs.append(("takes about", duration(plan.seconds)))
    if plan.duplicates_left:
        pairs.append(("stays", f"{count(plan.duplicates_left, 'other record')} with exactly the same inputs"))
    show.facts(pairs)


def work(plan: Plan) -> str:
    """What there is to do, beside erasing the records."""
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
