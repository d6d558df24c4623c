"""Requests by subject: records about a person may be for testing, which no model has seen, but the source holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from maxrr.cli import show
from maxrr.cli.requests import Request
from maxrr.cli.run import FAILED, Stop, in_words
from maxrr.cli.workspaces import APART, sides

if TYPE_CHECKING:
    from maxrr.progress import Progress
    from maxrr.workspace import Workspace

ALONE = (
    "they are used for nothing but scores. The model never saw them: there is nothing to forget in it, and no receipt. "
    "The source still holds them: delete them there"
)
BESIDE = "used for nothing but scores, and held by the source: delete them there, too"
UNKNOWN = (
    "the source is not at hand, so that it is not known whether other records about these people are for testing: "
    "look for them there"
)
NOT_TOLD = (
    "the model has learned from no record about {}, and whether records for testing are about them cannot be told "
    "without the source"
)


def without_tests(
    workspace: Workspace, request: Request, sources: Sequence[str] | None, progress: Progress
) -> tuple[Request | None, int | None]:
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
    gone = ~learned & workspace.model.has_forgotten(subjects=wanted)
    if gone.any():
        return {"subjects": wanted[learned | gone]}, 0  # which is refused for those who were forgotten
    if learned.all() and workspace.source.get("people") == APART and len(workspace.sources) == 1:
        return request, 0
    try:
        _, test = sides(workspace, sources, progress)
    except (Stop, ValueError, OSError) as error:
        if learned.all():
            return request, None
        unknown = ", ".join(map(repr, wanted[~learned][:5].tolist())) + (" …" if (~learned).sum() > 5 else "")
        raise Stop(FAILED, f"{NOT_TOLD.format(unknown)}: {in_words(error)}. Nothing was done") from None
    people = wanted[:0] if test.subjects is None else test.subjects
    nowhere = ~learned & ~np.isin(wanted, people)
    if nowhere.any():
        return {"subjects": wanted[learned | nowhere]}, 0  # which is refused for those who are nowhere
    return {"subjects": wanted[learned]} if learned.any() else None, int(np.isin(people, wanted).sum())


def is_known(workspace: Workspace, subject: int | str) -> bool:
    """Whether the model has learned from records about a person, and still has one."""
    from maxrr.errors import NotHere

    try:
        workspace.model.plan(subjects=[subject])
    except NotHere:
        return False
    return True


def tell_alone(tested: int | None, *, json: bool) -> None:
    """That all records about the people are for testing."""
    from maxrr.report.words import count

    if json:
        show.json({"requested": 0, "test_records": tested, "receipt": None})
    else:
        show.say(f"{count(tested or 0, 'record')} about these people, all for testing: {ALONE}.")


def tell_beside(tested: int | None) -> None:
    """That other records about the people are for testing, or may be."""
    from maxrr.report.words import count

    if tested is None:
        show.warning(UNKNOWN)
    elif tested:
        show.warning(f"{count(tested, 'other record')} about these people for testing: {BESIDE}")
