"""Requests that are answered together, each with a ticket of the operator's own: asked again, nothing is done twice."""

import copy
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data.checks import check_identifiers, listed
from maxrr.errors import NotHere, Refused
from maxrr.evidence import Envelope
from maxrr.evidence.envelopes import NOTHING_TYPE, Statement, Subject
from maxrr.progress import Progress
from maxrr.unlearning.forgetting import NamedRecords, make_group
from maxrr.unlearning.given_records import Ids
from maxrr.unlearning.plans import Plan
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.records import of_kind
from maxrr.unlearning.requests import Technique
from maxrr.unlearning.state import ModelState, forgotten_people
from maxrr.unlearning.statements import MODEL
from maxrr.unlearning.tombstones import id_hmac, subject_hmac, ticket_hmac
from maxrr.workspace.keeper import FolderKeeper

DONE, ALREADY_DONE, NOTHING_HERE, REFUSED = "done", "already-done", "nothing-here", "refused"


class Ticket:
    """What became of one request of a batch, once the block has ended.

    Attributes
    ----------
    outcome : str
        "done"; "already-done", where a former receipt answers it, or everything was forgotten before; "nothing-here",
        where the model neither has nor had anything of it; "refused"; empty until the block has ended.
    answer : bytes or None
        Where nothing is here: a statement that says so, for whoever asked. In a signed envelope, if the workspace was
        opened with a key; `maxrr verify` checks it.
    """

    outcome: str = ""
    answer: bytes | None = None
    _asked: NamedRecords
    _text: str | None = None
    _answered: Receipt | Refused | None = None

    @property
    def receipt(self) -> Receipt:
        """The receipt of the request. Where it was refused, that is raised: `maxrr.errors.Refused`."""
        if self._answered is None:
            raise ValueError("the request was not answered: its batch has not ended, or ended with an error")
        if isinstance(self._answered, Refused):
            raise self._answered
        return self._answered


class Batch:
    """Requests that are answered together when the block of `Workspace.batch` ends."""

    _keeper: FolderKeeper
    _core_policy: str | Technique
    _ended = False

    def __init__(self) -> None:
        self._tickets: list[Ticket] = []

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, ticket: str | None = None,
        received: date | str | None = None, due: date | str | None = None,
    ) -> Ticket:  # fmt: skip
        """Ask to forget records, by their ids or all records of some subjects.

        Parameters
        ----------
        ids, subjects : int, str or array, optional
            As in `MaxRR.unlearn`: one of the two.
        ticket : str, optional
            What you call the request. Asked for once more under the same ticket, whenever that is, the same records or
            people are not looked for again: the receipt is the former one. Of the ticket itself the workspace keeps an
            HMAC, no more.
        received, due : date or str, optional
            When the ticket was received, and by when it is to be answered, as in ISO 8601: the receipt has them.

        Returns
        -------
        Ticket
            Has the receipt, once the block has ended.
        """
        if (ids is None) == (subjects is None):
            raise ValueError("a request names records by ids, or people by subjects: one of the two")
        if self._ended:
            raise ValueError("the batch has ended: ask within its block, or begin another")
        if ticket is None and (received or due):
            raise ValueError("received and due are dates of a ticket: name the ticket, too")
        ids, subjects = (copy.copy(each) if isinstance(each, list | np.ndarray) else each for each in (ids, subjects))
        said = {}
        if ticket is not None:
            days = {"received": received, "due": due}
            said = {name: as_day(name, day).isoformat() for name, day in days.items() if day}
            said["ticket"] = ticket_hmac(self._fitted.key, ticket)
        found = Ticket()
        found._asked, found._text = NamedRecords(ids, subjects, said), ticket
        self._tickets.append(found)
        return found

    def plan(self) -> tuple[Plan | None, list[str]]:
        """What would be done if the block ended now. Changes nothing.

        Returns
        -------
        tuple of Plan or None, list of str
            The plan of all that is carried out, as one request; None where nothing is. And for each request what it
            will come to, as `Ticket.outcome` says it.
        """
        with self._keeper.model._lock:
            fresh, _ = self._sort()
            group = make_group(self._fitted, [each._asked for each in fresh], self._core_policy)
            plans = (member.plan for member in group.members)
            expected = {
                each: outcome_of(self._fitted, each._asked, next(plans) if refused is None else refused)
                for each, refused in zip(fresh, group.refusals, strict=True)
            }
            return group.plan, [expected.get(each, ALREADY_DONE) for each in self._tickets]

    def _answer(self, progress: Progress | None) -> None:
        """Carry out the requests that no receipt answers yet, and tell each ticket its outcome."""
        model = self._keeper.model
        with model._lock:
            fresh, former = self._sort()
            answers = model._unlearn_together([each._asked for each in fresh], self._core_policy, progress)
            for each, answer in zip(fresh, answers, strict=True):
                each._answered, each.outcome = answer, outcome_of(self._fitted, each._asked, answer)
            for each, before in former.items():
                if isinstance(before, Ticket):
                    each._answered, outcome = before._answered, before.outcome
                else:
                    each._answered, outcome = before, DONE
                each.outcome = ALREADY_DONE if outcome == DONE else outcome
            for each in self._tickets:
                if each.outcome == NOTHING_HERE:
                    each.answer = self._nothing_here(each)

    def _sort(self) -> tuple[list[Ticket], dict[Ticket, Receipt | Ticket]]:
        """Divide the tickets into those to carry out, and those that a receipt or an earlier ticket of the batch
        answers.
        """
        fitted, fresh, former = self._fitted, list[Ticket](), dict[Ticket, Receipt | Ticket]()
        known = dict[str, list[tuple[set[str], Receipt | Ticket]]]()
        for each in self._tickets:
            ticket = each._asked.ticket.get("ticket")
            names = set() if ticket is None else hmacs_of(fitted, each._asked)
            if ticket is not None and ticket not in known:
                known[ticket] = [(hmacs_on(receipt), receipt) for receipt in self._keeper.answers_of(ticket)]
            answers = [] if ticket is None else known[ticket]
            before = next((answer for named, answer in answers if names <= named), None)
            if before is None:
                fresh.append(each)
                answers.append((names, each))
            else:
                former[each] = before
        return fresh, former

    def _nothing_here(self, ticket: Ticket) -> bytes:
        """Make the statement that the present state has nothing of what a ticket asks for."""
        fitted, asked, key = self._fitted, ticket._asked, self._keeper.store.signing
        whose = "ids" if asked.subjects is None else "subjects"
        said = {**asked.ticket, whose: named_in(asked).tolist(), "records": fitted.commitment}
        said["time"] = datetime.now(UTC).isoformat(timespec="seconds")
        if ticket._text is not None:
            said["ticket"] = ticket._text
        statement = Statement((Subject(MODEL, fitted.model_commitment),), NOTHING_TYPE, said)
        return statement.to_bytes() if key is None else Envelope.sign(statement, key).to_bytes()

    @property
    def _fitted(self) -> ModelState:
        return self._keeper.model._fitted


def as_day(name: str, given: date | str) -> date:
    """Read a day of a ticket; an error calls the day by its name."""
    try:
        return date.fromisoformat(str(given))
    except ValueError:
        raise ValueError(f"{name} is a day such as 2026-11-18, and not {str(given)!r:.40}") from None


def named_in(asked: NamedRecords) -> NDArray[Any]:
    """The ids or subject ids that a request names."""
    if asked.subjects is None:
        return check_identifiers(listed(asked.ids), "record ids")
    return check_identifiers(listed(asked.subjects), "subject ids")


def hmacs_of(fitted: ModelState, asked: NamedRecords) -> set[str]:
    """Return the HMACs by which receipts would name the records or people of a request."""
    if asked.subjects is None:
        return {id_hmac(fitted.key, id_).hex() for id_ in named_in(asked).tolist()}
    return {subject_hmac(fitted.key, person) for person in named_in(asked).tolist()}


def hmacs_on(receipt: Receipt) -> set[str]:
    """Return the HMACs of the records and people that a receipt says are gone."""
    return {*receipt.tombstones, *receipt.earlier_tombstones, *(receipt.subject_tombstones or ())}


def outcome_of(fitted: ModelState, asked: NamedRecords, answer: Receipt | Plan | Refused) -> str:
    """Name the outcome of a request, from its receipt, its plan or its refusal."""
    if not isinstance(answer, Refused):
        return ALREADY_DONE if answer.requested == answer.already_forgotten else DONE
    if not isinstance(answer, NotHere):
        return REFUSED
    named, records, by_id = named_in(asked), fitted.records, asked.subjects is None
    text = records.text_ids if by_id else bool(records.text_subjects)
    for each in (of_kind(named[at : at + 1], text=text) for at in range(len(named))):  # alone: others may be no numbers
        if by_id:
            known = bool((records.rows(each) >= 0).any() or fitted.tombstones.knows(fitted.key, each).any())
        else:
            known = bool(len(records.of_subjects(each)) or forgotten_people(fitted, each.tolist()).any())
        if known:
            return REFUSED
    return NOTHING_HERE
