"""`maxrr verify`: check whatever was signed, without trusting whoever shows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from maxrr.cli import show
from maxrr.cli.options import Json
from maxrr.cli.receipt import difference
from maxrr.cli.receipt import read as read_receipt
from maxrr.cli.run import FAILED, REFUTED, UNDECIDED, USAGE, Stop
from maxrr.cli.workspaces import opened
from maxrr.errors import EvidenceError, NotSigned, UnreadableFile
from maxrr.plain_text import count

if TYPE_CHECKING:
    from maxrr.evidence import Check, Checkpoint, Dossier, Log, PublicKey
    from maxrr.workspace import Workspace

SAME_PAGE = "The page is, to the letter, the one that maxrr makes of what is inside it."


@dataclass
class Found:
    """The checks that were made, and what else is said if none failed."""

    checks: list[Check] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def check(self, name: str, claim: str, look: Callable[[], object]) -> None:
        """Check a claim: it holds if `look` raises nothing and returns no words."""
        from maxrr.evidence import Check

        known = True
        try:
            found = look()
            wrong = found if isinstance(found, str) else ""
        except EvidenceError as error:
            wrong, known = str(error), error.code != "other-version"
        self.checks.append(Check(name, claim, not wrong if known else None, wrong))


def verify(
    thing: Annotated[
        Path,
        Argument(
            metavar="WHAT",
            help="A page or JSON file that `maxrr receipt for` made, a receipt, an answer to a ticket, a log (its "
            "folder, its workspace or a checkpoint), or a file of public keys.",
        ),
    ],
    key: Annotated[
        list[Path] | None,
        Option(
            help="The operator's public keys, as `maxrr key show --out` wrote them, got in a way that you trust; may "
            "be repeated. Not needed for what is not signed."
        ),
    ] = None,
    against: Annotated[
        Path | None,
        Option(
            help="What else to compare with. A page: the log of today. A receipt: the workspace that handed it out. A "
            "log: an older one, or a checkpoint that you kept. Keys: those that you kept."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Check what was signed: who signed it, what it proves, and whether anything was taken back.

    A page is made again from what is inside it, and compared. Of a receipt it is checked that it claims no more than
    its certificates carry, and with its workspace that no forgotten record is there again. Of a log every hash is
    computed again. Exits with 0 if everything holds, with 4 if something does not, and with 5 if something cannot be
    known from what is here. Whether the model is the one that training without the records gives, `maxrr replay` tells.

    Examples:

        maxrr verify alice.html --key operator.pub
        maxrr verify alice.json --key operator.pub --against published/log
        maxrr verify receipt.json --key operator.pub --against ws/
        maxrr verify ws/ --key operator.pub --against kept.checkpoint
        maxrr verify operator.pub --against operator-2026.pub
    """
    from maxrr.evidence import PublicKeys

    keys = tuple(each for file in key or () for each in PublicKeys.load(file).keys)
    kinds = {"page": of_dossier, "log": of_log, "keys": of_keys, "receipt": of_receipt, "answer": of_answer}
    found = kinds[kind_of(thing)](thing, keys, against)
    wrong = any(check.held is False for check in found.checks)
    holds = all(check.held for check in found.checks)
    if json:
        show.json({"holds": holds, "checks": [asdict(check) for check in found.checks], **found.facts})
    else:
        show.table(("claim", "holds"), [(check.claim, holding(check)) for check in found.checks])
        for sentence in [] if wrong else found.sentences:
            show.say(sentence)
    if not holds:
        raise Stop(REFUTED if wrong else UNDECIDED)


def holding(check: Check) -> str:
    """Say whether a claim holds."""
    if check.held:
        return "yes"
    return show.Bad(f"{'not known' if check.held is None else 'no'}: {check.wrong}")


def kind_of(thing: Path) -> str:
    """Tell what a file or folder is, by how it begins."""
    from maxrr.evidence.dossiers import DOSSIER_TYPE, LARGEST_DOSSIER
    from maxrr.files import read_regular
    from maxrr.unlearning.statements import answer_in

    if thing.is_dir():
        return "log"
    content = read_regular(thing, 2 * LARGEST_DOSSIER).lstrip()
    if content.startswith(b"-----BEGIN PUBLIC KEY-----"):
        return "keys"
    if content.startswith(b"<") and b'id="answer"' in content:
        return "answer"
    if content.startswith(b"<") or (content.startswith(b"{") and f'"{DOSSIER_TYPE}"'.encode() in content):
        return "page"
    is_note = not content.startswith(b"{") and "\n— ".encode() in content
    if is_note:
        return "log"
    if not content.startswith(b"{"):
        raise UnreadableFile(
            f"{thing}: is nothing that was signed: give a page, a receipt, an answer, a log or keys. Of a bundle, "
            "maxrr replay shows whether it is true"
        )
    try:
        answer_in(content)
    except EvidenceError:
        return "receipt"
    return "answer"


def needed(keys: Sequence[PublicKey]) -> None:
    """Refuse to check a signature without the operator's keys."""
    if not keys:
        raise Stop(USAGE, "this is signed: name the file of the operator's public keys with --key")


# What a person was given


def of_dossier(file: Path, keys: tuple[PublicKey, ...], against: Path | None) -> Found:
    """Check what a person was given about a request to forget, and the page around it."""
    from maxrr.evidence.dossiers import difference_to_log
    from maxrr.evidence.envelopes import Statement
    from maxrr.report.words import count as counted
    from maxrr.unlearning.statements import HandedReceipt

    needed(keys)
    dossier, page = dossier_in(file)
    found = Found(dossier.check(keys))
    if page is not None:
        from maxrr.report.dossier import dossier_page, require_same_page

        found.check("page", SAME_PAGE, lambda: require_same_page(page, lambda: dossier_page(dossier)))
    if against is not None:
        log = log_in(against)
        claim = "The log that you have goes on from the state of it that is signed in here."
        found.check("log", claim, lambda: difference_to_log(dossier, keys, log))
    whose = "" if dossier.subject is None else f" (about {dossier.subject}, which is not signed)"
    ids = ", ".join(str(id_) for record in dossier.records[:5] for id_ in record.id.values())
    ids += " …" if len(dossier.records) > 5 else ""
    found.sentences = [f"It is about {counted(len(dossier.records), 'record')}{whose}: {ids}."]
    if any(check.held is False for check in found.checks):
        return found
    found.facts = {"receipt": dict(Statement.from_bytes(dossier.envelope.payload).predicate)}
    try:
        words = HandedReceipt.from_bytes(dossier.envelope.to_bytes()).receipt.sentences
        found.sentences += ["The signed receipt says:", *words]
    except ValueError:
        found.sentences.append("This version of maxrr has no words for the signed receipt: --json shows it as it is.")
    return found


def dossier_in(file: Path) -> tuple[Dossier, str | None]:
    """The dossier in a file, and the page around it if there is one."""
    from maxrr.evidence.dossiers import LARGEST_DOSSIER, Dossier
    from maxrr.files import read_regular

    content = read_regular(file, 2 * LARGEST_DOSSIER)
    try:
        if content.lstrip()[:1] == b"{":
            return Dossier.from_bytes(content), None
        from maxrr.report.dossier import dossier_in as text_in

        page = content.decode()
        return Dossier.from_bytes(text_in(page)), page
    except UnicodeDecodeError:
        raise EvidenceError(f"{file}: is neither a page nor JSON: it is not text in UTF-8") from None
    except EvidenceError as error:
        raise EvidenceError(f"{file}: {error}") from None


# Receipts


def of_receipt(file: Path, keys: tuple[PublicKey, ...], against: Path | None) -> Found:
    """Check a receipt by itself, its signature, and against the workspace that handed it out."""
    from maxrr.evidence import Check
    from maxrr.unlearning import contradictions

    handed, found = read_receipt(file), Found()
    receipt, few = handed.receipt, count(handed.receipt.requested, "record")
    found.sentences.append(f"It is receipt {receipt.number} of {receipt.time[:10]}, for {few}: {receipt.guarantee}.")
    claim = "It does not contradict itself, and claims what its heads carry."
    found.check("consistent", claim, lambda: "; ".join(contradictions(receipt)))
    if keys:
        found.check("signed", "It is signed by the operator.", lambda: handed.verify(keys))
    elif handed.envelope is not None:
        found.checks.append(Check("signed", "It is signed by the operator.", None, "not looked at: say --key"))
    if against is not None:
        with opened(against, read_only=True) as workspace:
            found.check("handed out", f"{against} handed it out.", lambda: difference(workspace, receipt))
            found.check("forgotten", "None of the forgotten records is there.", lambda: held(workspace))
    return found


def held(workspace: Workspace) -> str:
    """Say how many forgotten records the workspace holds again; empty if it holds none."""
    model = workspace.model
    back = int(model.has_forgotten(model.ids_of()).sum())
    return f"{back:,} of them {'is' if back == 1 else 'are'}" if back else ""


def of_answer(file: Path, keys: tuple[PublicKey, ...], against: Path | None) -> Found:
    """Check the answer to somebody of whom nothing was learned."""
    from maxrr.evidence import Check
    from maxrr.files import read_regular
    from maxrr.unlearning.statements import answer_in, answer_in_words

    if against is not None:
        raise Stop(USAGE, "an answer to a ticket is checked by itself: leave out --against")
    content, page = read_regular(file), ""
    if content.startswith(b"<"):
        from maxrr.report.answer import answer_page
        from maxrr.report.dossier import dossier_in, require_same_page

        page = content.decode()
        content = dossier_in(page, "answer")
    (envelope, statement), found = answer_in(content), Found()
    claim = "It is signed by the operator."
    if envelope is None:
        found.checks = [Check("signed", claim, None, "nobody signed it: it is the word of whoever sent it")]
    else:
        needed(keys)
        found.check("signed", claim, lambda: envelope.verify(keys))
    if page:
        found.check("page", SAME_PAGE, lambda: require_same_page(page, lambda: answer_page(content)))
    found.facts, found.sentences = {"answer": dict(statement.predicate)}, [answer_in_words(statement)]
    return found


# Logs and keys


def of_log(place: Path, keys: tuple[PublicKey, ...], against: Path | None) -> Found:
    """Check a log, with the receipts of its workspace, and that it begins with all entries of an older one."""
    from maxrr.evidence import Check, Log, check_log, compare_logs
    from maxrr.evidence.log import LogRelation
    from maxrr.workspace import check_receipt_log

    found, folder = Found(), None if place.is_file() else log_in(place)
    needed(keys)
    if folder is None:
        found.check("signed", "The checkpoint is signed by the operator.", lambda: state_in(place, keys))
    elif folder == place:
        claim = "Every hash of the log is right, and the operator signed the last."
        found.check("log", claim, lambda: check_log(folder, None, keys))
    else:
        claim = "Every hash of the log is right and signed, and each receipt is the entry of its number."
        found.check("log", claim, lambda: check_receipt_log(place, keys))
    if not found.checks[0].held:
        return found
    new = state_in(place, keys)
    checkpoint = new.checkpoint if isinstance(new, Log) else new
    found.facts = facts = {
        "origin": checkpoint.origin, "entries": checkpoint.size, "root": checkpoint.root.hex(),
        "key": checkpoint.key.id,
    }  # fmt: skip
    found.sentences = [
        f"{facts['origin']}: {count(checkpoint.size, 'entry', 'entries')}, root {facts['root']}, signed by the key "
        f"{facts['key']}. Keep its file `checkpoint`: --against it you will see whether anything was taken back."
    ]
    if against is not None:
        claim = f"It begins with all that {against} had."
        try:
            old = state_in(against, keys)
            outcome = compare_logs(old, new)
        except EvidenceError as error:
            found.checks.append(Check("history", claim, False, str(error)))
            return found
        size = (old.checkpoint if isinstance(old, Log) else old).size
        wrong = {
            LogRelation.same: "", LogRelation.extends: "",
            LogRelation.older: f"older: it had {count(size, 'entry', 'entries')}, and has {facts['entries']:,}. An old "
            "copy was restored, or entries were taken out",
            LogRelation.forked: "split view: two histories are signed. Keep both: together they prove it",
            LogRelation.unknown: f"{place} is only a checkpoint: bring the files of its log",
        }[outcome]  # fmt: skip
        found.facts = facts | {"outcome": outcome}
        found.checks.append(Check("history", claim, None if outcome is LogRelation.unknown else not wrong, wrong))
    return found


def of_keys(file: Path, keys: tuple[PublicKey, ...], against: Path | None) -> Found:
    """Check that an operator's new keys succeed those that somebody has kept: each former key has signed for the next.

    That the operator still held the former key alone when it signed is something that no signature shows.
    """
    from maxrr.evidence import PublicKeys

    if against is None:
        raise Stop(USAGE, "these are public keys: name those that you kept, and trust, with --against")
    old, new, found = PublicKeys.load(against), PublicKeys.load(file), Found()
    claim = f"The key {new.newest.id} succeeds {old.newest.id}: each former key has signed for the next."
    if old.newest == new.newest:
        claim = f"The key {new.newest.id} is the one that you have."
    found.check("succession", claim, lambda: new.require_follows(old))
    return found


def log_in(place: Path) -> Path:
    """Return the folder of a log, which is named itself or by its workspace."""
    from maxrr.evidence.log import CHECKPOINT, LOG

    if place.is_file():
        raise Stop(FAILED, f"{place} is a file: name the folder of the log, or that of the workspace")
    if (place / LOG / CHECKPOINT).is_file():
        return place / LOG
    from maxrr.workspace import Commit

    last = Commit.last(place)
    if last is None and (place / CHECKPOINT).is_file():
        return place
    if last is None:
        raise Stop(FAILED, f"{place} has no log in it", "no-log")
    if last.signs:
        raise Stop(REFUTED, f"{place} is a workspace that signs its receipts, and its log is missing", "log-missing")
    raise NotSigned(f"{place} is a workspace that does not sign its receipts, and has no log")


def state_in(place: Path, keys: Sequence[PublicKey]) -> Log | Checkpoint:
    """Open a log with its files, or read a checkpoint alone."""
    from maxrr.evidence import Checkpoint, Log
    from maxrr.evidence.checkpoints import LARGEST_CHECKPOINT
    from maxrr.files import read_regular

    if place.is_file():
        return Checkpoint.read(read_regular(place, LARGEST_CHECKPOINT), None, keys)
    return Log.open(log_in(place), None, keys)
