"""`Workspace`: a folder that holds a live model, and what only a folder has: receipts, dossiers, exports, copies."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from maxrr.data import Dataset
from maxrr.errors import NetworkMissing, TrainingMissing, WorkspaceError
from maxrr.evidence import PublicKey, SigningKey
from maxrr.evidence.signing import require_signing_key
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import OwnTraining, TrainingFunction
from maxrr.progress import Progress
from maxrr.unlearning import MaxRR, Receipt
from maxrr.unlearning.actions import REFUSE
from maxrr.unlearning.fitting import check_parameters
from maxrr.unlearning.forgetting import execute
from maxrr.unlearning.plans import make_plan
from maxrr.unlearning.records import of_kind
from maxrr.unlearning.requests import Technique, check_policy, request_to_forget
from maxrr.unlearning.state import KINDS, ModelState, forgotten_people, people_by_kind, rows_of_kind
from maxrr.unlearning.statements import HandedReceipt
from maxrr.unlearning.tombstones import Layered, on_receipt, subject_hmac, ticket_hmac
from maxrr.workspace import codec, names
from maxrr.workspace.batches import Batch
from maxrr.workspace.copies import (
    backup,
    check_reason,
    newer_receipts,
    with_loss,
    with_reason_to_catch_up,
    without_original,
)
from maxrr.workspace.dossiers import dossier_of
from maxrr.workspace.exports import Export
from maxrr.workspace.keeper import FolderKeeper, Records, read
from maxrr.workspace.status import Status, exports_of, handed_in, status_of
from maxrr.workspace.store import Store

FORGOTTEN, REPLACED, BEFORE = "forgotten", "replaced", "forgotten before"


@dataclass(frozen=True)
class Trace:
    """What a workspace knows of a record, of a person, or of a ticket.

    Attributes
    ----------
    here : bool
        Whether the record is here, or one about the person; False for a ticket.
    kind : {"core", "influential", "free"} or None
        The kind of the record; None where it is not here, and for a person.
    forgotten : bool
        Whether the record was forgotten, or the last one about the person. Others about a person may have come since.
        Of a ticket, whether a receipt answers it.
    receipts : mapping of int to str
        The receipts that name the record or person, by their numbers: by which it was "forgotten" or "replaced", or
        asked for when it was "forgotten before". Empty where it was forgotten before the workspace was made.
    time : str or None
        When it was forgotten, by the last of these receipts that did so.
    """

    here: bool
    kind: str | None
    forgotten: bool
    receipts: Mapping[int, str]
    time: str | None


class Workspace:
    """A folder that holds a live model: what `model` is asked to forget, to add or to fit is durable when it returns.

    The folder has the records' features, not the raw records: `records` says how these are read, and is called only
    where the extractor is made again. They are checked against what was fitted, and dropped when that is done. One
    process at a time works in a folder; several may read it.

    Use `create` for a new one and `open` for one that is there, best in a `with` block: until `close` nobody else can
    work in the folder.

    Threads may share a workspace. Predictions do not wait (`predict_proba` only the first time after a change): each
    comes from one committed state, the last one when it began. Everything else is done one after the other. A forked
    process can predict with what it inherited, and must open the folder again to change it.

    Examples
    --------
    >>> import tempfile
    >>> from maxrr import MaxRR
    >>> from maxrr.core import HashCore
    >>> from maxrr.data import load
    >>> from maxrr.nets import LeNet5
    >>> training, test = load("digits")
    >>> folder = tempfile.mkdtemp() + "/ws"
    >>> model = MaxRR(LeNet5(training.shape), HashCore(0.5, key="house"), epochs=2)
    >>> Workspace.create(folder, model, training).close()
    >>> with Workspace.open(folder, records=lambda: load("digits")[0]) as workspace:
    ...     workspace.model.unlearn(training.ids[:3], core_policy="retrain").records_after
    1417
    """

    _model: MaxRR
    _keeper: FolderKeeper

    def __init__(self) -> None:
        raise TypeError("use Workspace.create for a new workspace, or Workspace.open for one that is there")

    @classmethod
    def _of(cls, model: MaxRR, keeper: FolderKeeper) -> Self:
        """Make a workspace that holds this model."""
        found = cls.__new__(cls)
        found._model, found._keeper = model, keeper
        return found

    # Opening and closing

    @classmethod
    def create(
        cls, folder: str | Path, model: MaxRR, records: Dataset | Records, *,
        source: Mapping[str, str] | None = None, signing_key: SigningKey | None = None,
        test: Dataset | None = None, progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Fit a model and keep it in a new folder.

        If a ranking was interrupted, call this again with the same folder: it goes on from where it was.

        Parameters
        ----------
        folder : str or Path
            The folder. It is made if it is not there, and otherwise must be empty.
        model : MaxRR
            The model to fit. It stays as it is: the workspace fits a copy. If it was fitted and has forgotten records,
            the workspace refuses them, too.
        records : Dataset or function
            The training records, or a function without arguments that reads them. The folder gets their features, not
            the records; a function is kept until `close`, for requests that make the extractor again.
        source : dict of str to str, optional
            Where the records come from, in your words: kept for `status`.
        signing_key : maxrr.evidence.SigningKey, optional
            The key that signs receipts, which then are in a log, too. It is kept nowhere. By default they are not
            signed.
        test : Dataset, optional
            The records that are set aside to test with, as in `MaxRR.fit`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Workspace
            The open workspace.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The folder holds something else, or another process works in it.
        """
        place = Path(folder)
        if signing_key is not None:
            require_signing_key(signing_key)
        check_parameters(model)  # before anything is written
        names.check_new(place)
        names.make_private(place)
        live = new_model(model)
        keeper = FolderKeeper(Store(place, signing=signing_key), live, records=records if callable(records) else None)
        try:
            keeper.store.claim()
            training = read(records) if callable(records) else records
            live.fit(training, source=source, test=test, progress=progress)
        except BaseException:
            keeper.close()
            raise
        return cls._of(live, keeper)

    @classmethod
    def open(
        cls, folder: str | Path, *, records: Records | None = None, network: Network | None = None,
        train: TrainingFunction | None = None, signing_key: SigningKey | None = None, read_only: bool = False,
        wait: float = 0.0,
    ) -> Self:  # fmt: skip
        """Open the workspace in a folder.

        Parameters
        ----------
        folder : str or Path
            The folder of the workspace.
        records : function, optional
            Reads the raw records that the model was fitted on, and those that were added; others, such as forgotten
            ones, may be among them. It takes no arguments, and is called where the extractor is made again, and for
            audits. Whatever does neither does without. Of what `maxrr.data.load` returns the first part is taken.
        network : torch.nn.Module or function, optional
            The network that was fitted, or the function that makes it, where that is your own code: opening a folder
            runs no code but this library's. Plans, and requests that neither train nor embed, do without.
        train : function, optional
            The training function that the model was fitted with, where it was with one, for the same reason. Whatever
            does not train the extractor again does without.
        signing_key : maxrr.evidence.SigningKey, optional
            The key that signs receipts. It is kept nowhere. Once a workspace has signed, it takes no request without a
            key; another one than before may take its place.
        read_only : bool
            Whether to take a snapshot, for predictions, plans and replays: everything is read at once. Others may be
            working in the folder, before, meanwhile and afterwards. `reload` takes a later state. False by default.
        wait : float
            Seconds to wait for another process that works in it; 0 by default. A snapshot waits for nobody.

        Returns
        -------
        Workspace
            The open workspace. Nobody else can work in the folder until `close`, unless it is `read_only`.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The folder is not a workspace, is in use, or a file is not as it was written; or it was fitted with another
            network than the one given, or without a training function.

        Warns
        -----
        OlderCopyWarning
            Somebody has put back an older copy of the workspace.
        """
        if signing_key is not None:
            require_signing_key(signing_key)
        names.history_of(Path(folder))
        store = Store(folder, read_only=read_only, wait=wait, signing=None if read_only else signing_key)
        live = MaxRR.on_features()
        keeper = FolderKeeper(store, live, network, train, records)
        try:
            store.open()
            keeper.load()
            if train is not None and not isinstance(live._fitted.blueprint.recipe, OwnTraining):
                raise WorkspaceError("the workspace was fitted without a training function: open it without train")
            store.warn_if_older()
        except BaseException:
            keeper.close()
            raise
        return cls._of(live, keeper)

    def reload(self) -> bool:
        """Take the state that was committed last, and the exports noted by now, in a snapshot (`open`, `read_only`).

        Nobody is kept out or waited for, as in `open`. Predictions go on meanwhile, with the state before. If something
        is raised, the snapshot stays as it was. An older copy of the folder, which somebody has put back, is not taken.

        Returns
        -------
        bool
            Whether something was written since.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The workspace was opened to work in it, so that it has the last state; it was closed; the folder holds
            another workspace now; or a file is not as it was written.
        """
        with self.model._lock:
            keeper, store = self._keeper, self._store
            if not store.read_only:
                raise WorkspaceError(f"{store.folder} is open to work in it, and so has the last state already")
            keeper.check_open()
            if not store.is_later():
                return False
            newer = type(self).open(
                store.folder, network=keeper.network, train=keeper.train, read_only=True, wait=store.wait
            )
            keeper.store = newer._store
            keeper.set_state(newer.model._fitted)
            return True

    def close(self) -> None:
        """Let others work in the folder. This workspace cannot be used any more; open it again."""
        with self.model._lock:
            self._keeper.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workspace in {self._store.folder}>"

    # Forgetting

    @contextmanager
    def batch(self, *, core_policy: str | Technique = REFUSE, progress: Progress | None = None) -> Iterator[Batch]:
        """Collect requests in a block, and answer them together when it ends: by one training, one move of the heads
        and one commit.

        Each gets a receipt of its own, with the models and commitments before and after all of them. One that is
        refused is left out, and does not keep the others. If anything is raised, in the block or at its end, none was
        carried out. One with a ticket that a former receipt answers is not carried out again.

        Parameters
        ----------
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if some of the records are core, as in `MaxRR.unlearn`, for all requests.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Yields
        ------
        Batch
            Takes the requests.
        """
        with self.model._changing():  # or nothing needs to be collected
            check_policy(core_policy)
        batch = Batch()
        batch._keeper, batch._core_policy = self._keeper, core_policy
        try:
            yield batch
        finally:
            batch._ended = True
        batch._answer(progress)

    def catch_up(
        self, newer: str | Path, *, keys: Sequence[PublicKey] = (), core_policy: str | Technique = REFUSE,
        gone: str | None = None, progress: Progress | None = None,
    ) -> Receipt | None:  # fmt: skip
        """Forget what a newer copy of this workspace has forgotten: for one that was restored from a backup.

        The receipts of the newer copy are checked (each names the one before; they are signed, and in its log, where
        the workspace signs) and become the workspace's own, in its log, too. Every record here that they name is
        forgotten, and of others they name it is kept that they must not come back. One more receipt says so. Records
        that were added meanwhile are not here: add them again. One that was replaced is forgotten, and its id with it.

        Parameters
        ----------
        newer : str or Path
            The folder of the newer copy, as far as it is left: its history and, where it signs, its log. Of one that
            does not sign, the history is enough.
        keys : sequence of maxrr.evidence.PublicKey
            Keys that receipts may be signed with beside those that this copy knows and the one that it was opened with:
            others that came later.
        gone : str, optional
            Why the end of the newer copy is gone for good, if it is. The receipts are then taken as far as they can be
            read, and the others are declared gone, as by `declare_gone`; not where the copy turns out to be whole.
        core_policy, progress
            As in `MaxRR.unlearn`.

        Returns
        -------
        Receipt or None
            What was done; None where no record here had to be forgotten, so that only the receipts were taken.

        Raises
        ------
        maxrr.errors.WorkspaceError
            It is not a newer copy of this workspace, its receipts do not hold, or the reason is empty. Nothing was
            changed.
        maxrr.errors.Refused
            As in `MaxRR.unlearn`.
        """
        keeper, model = self._keeper, self.model
        with model._changing(newest=False):
            fitted, is_lost = model._fitted, False
            check_reason(gone)
            try:
                newer_part = newer_receipts(keeper.store, Path(newer), keys)
            except WorkspaceError:
                if gone is None:
                    raise
                newer_part, is_lost = newer_receipts(keeper.store, Path(newer), keys, whole=False), True
            newer_part.check_classes(fitted)
            for note in newer_part.exports:  # of which some are there where a catching up was refused afterwards
                keeper.store.note(export=note)
                keeper.store.stored.exports.append(note)
            merged, before = newer_part.added_to(fitted)
            ids = newer_part.ids_here(fitted)
            if gone is not None and (is_lost or keeper.store.latest_position.receipts > merged.requests):
                merged, plan = with_loss(keeper.store, merged, gone)
            elif not len(ids):
                keeper.commit_state(merged, before)
                return None
            if len(ids):
                plan = make_plan(merged, request_to_forget(merged, ids, None, core_policy))
                plan = with_reason_to_catch_up(plan, newer_part)
            ready = model._with_raw_records(merged) if plan.action.fits_anew else merged
            return execute(ready, plan, lambda change: keeper.commit(change, before), progress)

    def declare_gone(self, reason: str) -> Receipt:
        """Go on with a backup or an older copy, because the other copy is gone for good.

        Nothing is done to the model, and what later requests have forgotten may be back: use `catch_up` wherever
        receipts of the other copy are left. Where this machine carried out the requests, and has seen none after those
        that are here, nothing was lost as far as is known, and the log goes on. Otherwise another log begins, with the
        receipts that are here and one more, which names the former log and what is known of it; and so does every later
        receipt. The other copy is refused from now on, if it turns up again with other receipts.

        Parameters
        ----------
        reason : str
            Why the other copy is gone, for those who read the receipts.

        Returns
        -------
        Receipt
            What was declared; its `losses` have what is known of the former log, where another one begins.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The workspace is not known to be an older copy, or the reason is empty. Nothing was changed.
        """
        with self.model._changing(newest=False):
            check_reason(reason)
            if not self._store.why_older():
                raise WorkspaceError(f"{self.folder} is not known to be an older copy. Nothing was changed")
            return execute(*without_original(self._store, self.model._fitted, reason), self._keeper.commit)

    def dossier(
        self, number: int, *, subject: int | str | None = None, ids: Sequence[int | str] | None = None
    ) -> dict[str, Any]:
        """What a person gets about a request, who can then check it alone. See `maxrr.evidence`.

        Parameters
        ----------
        number : int
            The number of the receipt.
        subject : int or str, optional
            Whom it is about: all records about them that the request forgot or replaced.
        ids : sequence of int or str, optional
            Which records it is about. One of the two.

        Returns
        -------
        dict
            The signed receipt, proofs that each record was in the commitment before and is not in that after it, and
            that the receipt is in the log; as JSON has it.

        Raises
        ------
        maxrr.errors.NotHere
            There is no such receipt, or the request did not forget or replace such a record.
        maxrr.errors.WorkspaceError
            The receipt is not signed, or not in the log yet.
        """
        if (subject is None) == (ids is None):
            raise ValueError("a dossier is about a subject or about ids: one of the two")
        with self.model._lock:
            return dossier_of(self._store, self.model._fitted, number, subject, ids)

    # What is here

    @property
    def model(self) -> MaxRR:
        """The live model, the same object until `close`: what it forgets, adds or fits is committed here.

        Predictions go on while it changes. A copy of it can predict and plan, and makes no receipts.
        """
        return self._model

    @property
    def _store(self) -> Store:
        return self._keeper.store

    def find(
        self, *, id: int | str | None = None, subject: int | str | None = None, ticket: str | None = None
    ) -> Trace:
        """What is known here of a record, of a person, or of a ticket.

        Parameters
        ----------
        id : int or str, optional
            The id of the record. An integer and its text are the same.
        subject : int or str, optional
            The subject id of the person.
        ticket : str, optional
            The ticket that requests came with (`Batch.unlearn`). One of the three.

        Returns
        -------
        Trace
            Whether it is here, of which kind, by which receipt it was forgotten, and which receipts name it.
        """
        if sum(given is not None for given in (id, subject, ticket)) != 1:
            raise ValueError("what is looked for is a record, by id, a person, by subject, or a ticket: one of them")
        with self.model._lock:
            if ticket is not None:
                return ticket_trace(self.model._fitted, self.receipts(), ticket)
            if subject is not None:
                return person_trace(self.model._fitted, self.receipts(), subject)
            assert id is not None
            return record_trace(self.model._fitted, self.receipts(), id)

    def check_code(self, *, training: bool = False) -> None:
        """Raise an error if code of your own is needed to embed, or to train, and was not given to `open`.

        Call it before long work: predictions, replays and what trains or embeds again would raise the error later.

        Parameters
        ----------
        training : bool
            Whether something is to be trained again. False by default: then only the network is needed.

        Raises
        ------
        NetworkMissing
            The network is the caller's own code, and was not given to `open`.
        TrainingMissing
            The model was fitted with a training function of the caller's own, and it was not given to `open`.
        """
        fitted = self.model._fitted
        extractor, recipe = fitted.extractor, fitted.blueprint.recipe
        if isinstance(extractor, codec.Unmade):
            raise NetworkMissing(extractor.maker)
        if training and isinstance(recipe, OwnTraining) and recipe.function is None:
            raise TrainingMissing(recipe.name)

    @property
    def folder(self) -> Path:
        """The folder of the workspace, as an absolute path."""
        return self._store.folder

    @property
    def sources(self) -> tuple[dict[str, str], ...]:
        """Where the records come from: those of the last fit, as `create` was told, and then those of each `add`."""
        return tuple(map(dict, self._store.words.sources))

    def receipt(self, number: int) -> HandedReceipt:
        """The receipt of a request, as it was handed out.

        Parameters
        ----------
        number : int
            The number of the request, from 1.

        Returns
        -------
        HandedReceipt
            The receipt, in its envelope where it is signed.

        Raises
        ------
        maxrr.errors.NotHere
            There is no such receipt.
        """
        with self.model._lock:
            self._keeper.check_open()
            return HandedReceipt.from_bytes(self._store.receipt(number))

    def receipts(self) -> list[Receipt]:
        """All receipts.

        Returns
        -------
        list of Receipt
            From the first, read from the folder (from memory where it is open for reading only).
        """
        with self.model._lock:
            self._keeper.check_open()
            return [handed.receipt for handed in handed_in(self._store)]

    def status(self) -> Status:
        """What is in the workspace.

        Returns
        -------
        Status
            Counts, hashes, conditions, and what is still known of forgotten records.
        """
        with self.model._lock:
            self._keeper.check_open()  # after a commit that failed, this reads the state again
            return status_of(self._store, people_by_kind(self.model._fitted))

    # Copies for others

    def exports(self) -> list[Export]:
        """The copies of the model that were made for others.

        Returns
        -------
        list of Export
            From the first. Those that are out of date say so.
        """
        with self.model._lock:
            self._keeper.check_open()
            return exports_of(self._store)

    def backup(self, to: str | Path) -> None:
        """Make a consistent copy of the folder, while requests are carried out here or by another process.

        The copy knows that it is one: whoever opens it is told, and it takes no requests before it has caught up with
        this workspace (`catch_up`), or this one was declared gone (`declare_gone`).

        Parameters
        ----------
        to : str or Path
            The folder to make, or one that is empty.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The folder holds something else. Nothing was changed.
        """
        backup(self.folder, to)

    @property
    def unfinished(self) -> str:
        """What the last request could not do after its commit, such as erasing old bytes; empty if all is done.

        The next request finishes it, and so does whoever opens the workspace next.
        """
        return self._keeper.unfinished

    def check_newest(self) -> None:
        """Raise an error if this is known to be an older copy, which takes no requests and makes no exports.

        Call it before long work, such as reading records: the verbs that it is for would raise the error later.

        Raises
        ------
        maxrr.errors.OlderCopy
            The workspace had carried out more requests when it was last seen here.
        """
        with self.model._lock:
            self._store.check_newest()


def new_model(model: MaxRR) -> MaxRR:
    """Return an unfitted model with the same parameters, which refuses what this one has forgotten."""
    found: MaxRR = clone(model)
    own = vars(model).get("_state")
    if isinstance(own, ModelState):
        people = Layered({person: gone._replace(number=0) for person, gone in own.people.items()})
        found._state = replace(own, receipts=(), people=people)
    return found


def record_trace(fitted: ModelState, receipts: Iterable[Receipt], id_: int | str) -> Trace:
    """Return what is known of a record."""
    time, named = None, dict[int, str]()
    for receipt in receipts:
        forgotten, replaced, before = (bool(mask[0]) for mask in on_receipt(fitted.key, receipt, [id_]))
        if forgotten or replaced or before:
            named[receipt.number] = FORGOTTEN if forgotten else REPLACED if replaced else BEFORE
        if forgotten:
            time = receipt.time
    row = int(fitted.records.rows(of_kind(np.array([id_]), text=fitted.records.text_ids))[0])
    kind = next((kind for kind in KINDS if rows_of_kind(fitted, kind)[row]), None) if row >= 0 else None
    gone = bool(fitted.tombstones.knows(fitted.key, np.array([id_]))[0])
    return Trace(row >= 0, kind, gone, named, time)


def person_trace(fitted: ModelState, receipts: Iterable[Receipt], subject: int | str) -> Trace:
    """Return what is known of a person."""
    hmac, records, time, named = subject_hmac(fitted.key, subject), fitted.records, None, dict[int, str]()
    for receipt in receipts:
        if hmac in (receipt.subject_tombstones or ()):
            named[receipt.number], time = FORGOTTEN, receipt.time
        elif hmac in receipt.earlier_tombstones:
            named[receipt.number] = BEFORE
    people = () if records.subjects is None else records.subjects[records.alive].tolist()
    here = str(subject) in set(map(str, people))
    return Trace(here, None, bool(forgotten_people(fitted, [subject])[0]), named, time)


def ticket_trace(fitted: ModelState, receipts: Iterable[Receipt], ticket: str) -> Trace:
    """Return what is known of a ticket."""
    hmac = ticket_hmac(fitted.key, ticket)
    answers = [receipt for receipt in receipts if receipt.ticket == hmac]
    named = {receipt.number: FORGOTTEN if receipt.tombstones else BEFORE for receipt in answers}
    return Trace(False, None, bool(named), named, answers[-1].time if answers else None)
