"""What a request came to. What was done stays done: whatever fails after the commit is told as such."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from typing import TYPE_CHECKING

from maxrr.cli import show
from maxrr.cli.run import AFTERWARDS, Stop, in_words, silence

if TYPE_CHECKING:
    from maxrr.unlearning import Plan, Receipt
    from maxrr.workspace import Commit, Workspace

Done = Callable[[Path, "Commit"], str]
"""What was done to a workspace that is now in this state, in words."""


@dataclass
class Outcome:
    """Whether the work of a command was committed, and what it could not do after that."""

    done: str = ""
    returned: bool = False  # the work came to its end, and what is left is to tell of it
    unfinished: str = ""

    @contextmanager
    def work(self, folder: Path, undone: str, done: Done) -> Iterator[None]:
        """Run the work of a command, and note whether it was committed, also where it is interrupted."""
        before = state_of(folder)
        try:
            yield
        except BaseException as error:
            if (after := readable_commit(folder)) is not None and after.state != before:
                self.done = done(folder, after)
            elif isinstance(error, KeyboardInterrupt):
                raise KeyboardInterrupt(undone) from None
            raise
        if (after := readable_commit(folder)) is not None and after.state != before:
            self.done, self.returned = done(folder, after), True


@contextmanager
def told() -> Iterator[Outcome]:
    """Run a whole command that changes a workspace; errors after the commit say that it was carried out."""
    outcome = Outcome()
    try:
        yield outcome
        sys.stdout.flush()
    except KeyboardInterrupt:
        if not outcome.done:
            raise
        raise Stop(AFTERWARDS, f"{outcome.done}, but the interruption came too late to stop it") from None
    except (ValueError, OSError, ArithmeticError) as error:
        if not outcome.done:
            raise
        if isinstance(error, OSError):
            silence(sys.stdout)
        what = "the answer could not be written" if outcome.returned else "something after it failed"
        raise Stop(AFTERWARDS, f"{outcome.done}, but {what}: {in_words(error)}") from None
    if outcome.unfinished:
        raise Stop(AFTERWARDS, f"{outcome.done}, but {outcome.unfinished}: the next opening finishes it")


def request_done(folder: Path, now: Commit) -> str:
    """Say that a request was carried out, and how to see its receipt."""
    return f"the request was carried out, and its receipt is {receipt_in(folder, now.requests)}"


def receipt_in(folder: Path, number: int) -> str:
    """Say how a user sees a receipt."""
    return f"number {number}: maxrr receipt show {show.near(folder)} {number}"


def state_of(folder: Path) -> int:
    """Return how often something was committed to the workspace; 0 before the first fit."""
    from maxrr.workspace import Commit

    last = Commit.last(folder)
    return 0 if last is None else last.state


def readable_commit(folder: Path) -> Commit | None:
    """Return the last commit; None if there is none that can be read."""
    from maxrr.workspace import Commit

    try:
        return Commit.last(folder)
    except (ValueError, OSError):
        return None


def carry_out(
    outcome: Outcome, workspace: Workspace, undone: str, plan: Plan, source: Mapping[str, str] | None = None
) -> Receipt:
    """Execute a plan, and note what came of it."""
    with outcome.work(workspace.folder, undone, request_done), show.progress():
        receipt = workspace.model.execute(plan, source=source, progress=show.report)
    outcome.unfinished = workspace.unfinished
    return receipt


def earlier_receipts(folder: Path, hmacs: Sequence[str]) -> list[int]:
    """Return the numbers of the receipts by which the records or people of these HMACs were forgotten."""
    from maxrr.workspace import overview

    return forgetting(overview(folder).receipts, set(hmacs)) if hmacs else []


def forgetting(receipts: Sequence[Receipt], wanted: set[str]) -> list[int]:
    """Return the numbers of those receipts by which records or people of these HMACs were forgotten."""
    return [each.number for each in receipts if wanted & {*each.tombstones, *(each.subject_tombstones or ())}]


def tell(receipt: Receipt, folder: Path, *, json: bool) -> None:
    """Print a receipt, how to see it, and whether an audit is due."""
    from maxrr.report.words import count, duration
    from maxrr.unlearning import Guarantee

    earlier = earlier_receipts(folder, receipt.earlier_tombstones)
    if json:
        text, more = receipt.to_json(), {"earlier_receipts": earlier}
        show.json_text(dumps(loads(text) | more, ensure_ascii=False) if earlier else text)
        return
    pairs = [
        ("guarantee", receipt.guarantee),
        ("because", receipt.reason),
        ("that is", receipt.exactness),
        ("records", f"{receipt.records_before:,} → {receipt.records_after:,}"),
        ("model", "as before" if receipt.model_before == receipt.model_after else "another"),
    ]
    exact = Guarantee(receipt.guarantee).exact
    if exact:
        decided, heads = sum(head.decided for head in receipt.heads), count(len(receipt.heads), "head")
        near = " of the exact decision values" if receipt.bytes_claim.startswith("within") else ""
        pairs.append(("bytes claimed", f"{receipt.bytes_claim}{near}; {decided} of {heads} decided"))
    pairs += [("took", duration(receipt.seconds)), ("receipt", receipt_in(folder, receipt.number))]
    pairs += [("first receipt", receipt_in(folder, number)) for number in earlier]
    show.facts(pairs)
    replaced = receipt.tombstones and receipt.records_after == receipt.records_before
    if replaced and not exact:
        show.say("The extractor keeps what it learned from the record that was replaced; --policy retrain is exact.")
    elif receipt.audit_due:
        show.say(receipt.audit_due)
