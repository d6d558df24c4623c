"""`Workspace`: a MaxRR in a folder. The same verbs, each durable: change in memory, commit, purge."""

import copy
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers
from maxrr.errors import NotHere, Refused, WorkspaceError
from maxrr.evidence import PublicKey, SigningKey
from maxrr.evidence.signing import require_signing_key
from maxrr.nets import Recipe
from maxrr.nets.naming import NamedNetwork, as_recorded, with_outputs
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import OwnTraining, TrainingFunction
from maxrr.plain_text import count
from maxrr.progress import Progress
from maxrr.unlearning import Bundle, MaxRR, Plan, Receipt, Replay, replay
from maxrr.unlearning.aliases import Ids, Inputs, Labels
from maxrr.unlearning.codec import network_facts, network_named
from maxrr.unlearning.facts import NetworkFacts, Sources
from maxrr.unlearning.layers import Layered, Row
from maxrr.unlearning.lookup import look_up, look_up_for_adding, look_up_for_replacing
from maxrr.unlearning.model import to_add
from maxrr.unlearning.plans import check_current, make_plan
from maxrr.unlearning.requests import REFUSE, Technique
from maxrr.unlearning.returning import returning
from maxrr.unlearning.state import OF_MODEL, Fitted, knowing
from maxrr.unlearning.statements import HandedReceipt
from maxrr.unlearning.tombstones import subject_hmac
from maxrr.unlearning.trained_elsewhere import grown
from maxrr.workspace import codec, names
from maxrr.workspace.backups import backup
from maxrr.workspace.carried_out import CarriedOut
from maxrr.workspace.catching_up import later_receipts, said_so, without_newer
from maxrr.workspace.errors import NetworkMissing, TrainingMissing
from maxrr.workspace.exports import Export, judged, new_note, state_under
from maxrr.workspace.folder import note_audit
from maxrr.workspace.person_dossiers import dossier_of
from maxrr.workspace.records import OnReceipt, RecordKind, on_receipt
from maxrr.workspace.signed_receipts import Signer
from maxrr.workspace.status import Counts, Status, status_of
from maxrr.workspace.store import Store
from maxrr.workspace.together import Together


class Workspace:
    """A model that lives in a folder.

    It holds the records' features, not the raw records: what needs these takes them again as `records` and checks them
    against what it was fitted on. One process at a time works in a folder; several may read it.

    Use `create` for a new one and `open` for one that is there, best in a `with` block: until `close` nobody else can
    work in the folder.

    Threads may share a workspace. Predictions never wait: each comes from one committed state, the last one when it
    began. Everything else is done one after the other. A forked process can predict with what it inherited, and must
    open the folder again to change it.

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
    >>> with Workspace.open(folder) as workspace:
    ...     workspace.unlearn(training.ids[:3], core_policy="retrain", records=training).records_after
    1417
    """

    def __init__(self) -> None:
        raise TypeError("use Workspace.create for a new workspace, or Workspace.open for one that is there")

    @classmethod
    def _on(cls, store: Store, network: Network | None, train: TrainingFunction | None = None) -> Self:
        """A workspace that keeps its files in this store."""
        made = cls.__new__(cls)
        made._begin(store, network, train)
        return made

    def _begin(self, store: Store, network: Network | None, train: TrainingFunction | None) -> None:
        self._store = store
        self._signer = Signer(store.signing)
        self._network = network
        self._train = train
        self._loaded: MaxRR | None = None  # replaced by one assignment, so that others can read it at any time
        self._uncertain = False  # a commit failed: what counts is what the disk says
        self._closed = False
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._unfinished = ""
        INHERITED.add(self)

    # Opening and closing

    @classmethod
    def create(
        cls, folder: str | Path, model: MaxRR, records: Dataset, *,
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
        records : Dataset
            The training records. The workspace keeps their features, not the records.
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
        model._check()  # before anything is written
        names.check_new(place)
        names.make_private(place)
        workspace = cls._on(Store(place, signing=signing_key), None)
        try:
            workspace._store.claim()
            workspace.fit(records, model, source=source, test=test, progress=progress)
        except BaseException:
            workspace.close()
            raise
        return workspace

    @classmethod
    def open(
        cls, folder: str | Path, *, network: Network | None = None, train: TrainingFunction | None = None,
        signing_key: SigningKey | None = None, read_only: bool = False, wait: float = 0.0,
    ) -> Self:  # fmt: skip
        """Open the workspace in a folder.

        Parameters
        ----------
        folder : str or Path
            The folder of the workspace.
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
        place = Path(folder)
        if signing_key is not None:
            require_signing_key(signing_key)
        names.history_of(place)
        signing = None if read_only else signing_key
        workspace = cls._on(Store(place, read_only=read_only, wait=wait, signing=signing), network, train)
        try:
            workspace._store.open()
            workspace._load()
            if train is not None and not isinstance(workspace._fitted.blueprint.recipe, OwnTraining):
                raise WorkspaceError("the workspace was fitted without a training function: open it without train")
            workspace._store.look_back()
        except BaseException:
            workspace.close()
            raise
        return workspace

    def reload(self) -> bool:
        """Take the state that was committed last, in a snapshot (`open` with `read_only`).

        Nobody is kept out or waited for, as in `open`. Predictions go on meanwhile, with the state before. If something
        is raised, the snapshot stays as it was. An older copy of the folder, which somebody has put back, is not taken.

        Returns
        -------
        bool
            Whether there was a newer one.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The workspace was opened to work in it, so that it has the last state; it was closed; the folder holds
            another workspace now; or a file is not as it was written.
        """
        with self._lock:
            if not self._store.read_only:
                raise WorkspaceError(f"{self._store.folder} is open to work in it, and so has the last state already")
            assert self._model is not None  # or it was closed
            if not self._store.is_later():
                return False
            newer = type(self).open(self._store.folder, network=self._network, train=self._train, read_only=True)
            self._store, self._loaded = newer._store, newer._loaded
            return True

    def close(self) -> None:
        """Let others work in the folder. This workspace cannot be used any more; open it again."""
        with self._lock:
            self._store.close()
            self._closed = True
            self._loaded = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Workspace in {self._store.folder}>"

    # Learning and predicting

    def fit(
        self, records: Dataset, model: MaxRR | None = None, *, allow_copies: str | None = None,
        source: Mapping[str, str] | None = None, test: Dataset | None = None, progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Fit again, and commit. See `MaxRR.fit`.

        Records that were forgotten here are refused.

        Parameters
        ----------
        records : Dataset
            The training records.
        model : MaxRR, optional
            Another model to fit a copy of; by default the workspace's own is fitted again. One that has forgotten
            records elsewhere is refused: a workspace recognises what was forgotten under its own key.
        allow_copies : str, optional
            A reason to let in records that have the values of forgotten ones under other ids.
        source : dict of str to str, optional
            Where the records come from, in your words; by default what it was before, with the sources of what was
            added.
        test : Dataset, optional
            The records that are set aside to test with, as in `MaxRR.fit`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Workspace
            The workspace itself.

        Raises
        ------
        maxrr.errors.DataError
            Something is wrong with the records, or some were forgotten.
        maxrr.errors.WorkspaceError
            The workspace is open for reading only, was closed, or needs `model`, because the caller's own code chose
            the core.
        """
        with self._writing():
            return self._fit(records, None, model, allow_copies, source, test, progress)

    def refit(self, records: Dataset, *, progress: Progress | None = None) -> Self:
        """Fit again on the records that are here, those that were added among them, and commit. See `MaxRR.refit`.

        Parameters
        ----------
        records : Dataset
            The raw records that the model has. Others, such as forgotten ones, may be among them; they are left out.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Workspace
            The workspace itself.

        Raises
        ------
        maxrr.errors.DataError
            A record of the model is not among them, or is not as it was learned.
        maxrr.errors.WorkspaceError
            The workspace is open for reading only, was closed, or the caller's own code chose the core: use `fit`.
        """
        with self._writing(), self._at_hand(records) as fitted:
            model = clone(self._model)
            model.network = grown(model.network, model.core, fitted.records)
            called = None if fitted.by_place else fitted.labels
            return self._fit(fitted.records.retained(), called, model, None, None, None, progress, again=True)

    def _fit(
        self, records: Dataset, called: NDArray[Any] | None, model: MaxRR | None, allow_copies: str | None,
        source: Mapping[str, str] | None, test: Dataset | None, progress: Progress | None, *, again: bool = False,
    ) -> Self:  # fmt: skip
        before = self._store.root
        model = self._model if model is None else model
        if model.core is None:
            raise WorkspaceError(
                "the core of this workspace was chosen in a way of your own: use fit, and pass the model, too"
            )
        fresh = clone(model)
        own = vars(model).get("_state")
        if before is not None:
            if isinstance(own, Fitted) and own.key != self._fitted.key and own.tombstones.stones:
                # Only the model's key recognises them, and a workspace has one key.
                raise WorkspaceError(
                    f"the model has forgotten or replaced {count(len(own.tombstones.stones), 'record')} "
                    "elsewhere, which this "
                    "workspace could not recognise when they come back: create a workspace for the model, or bring one "
                    "that was not fitted"
                )
            fresh._state = self._fitted  # the key, and what was forgotten under it
        elif isinstance(own, Fitted):
            # The key, what was forgotten, and who; its receipts are not here, and those of the workspace begin at 1.
            people = Layered({person: gone._replace(number=0) for person, gone in own.people.items()})
            fresh._state = replace(own, receipts=Row(), people=people)
        fresh._fit(records, called, allow_copies, self._store.ranking(), progress, again=again, test=test)
        after = fresh._fitted
        sources: Sources = (dict(source or {}),)
        if source is None and before is not None:
            sources = self._store.words.sources
        code = self._network, self._train
        self._network, self._train = fresh.network, fresh.train if callable(fresh.train) else None
        try:
            self._commit(after, [], network_facts(after.blueprint.network), sources)
        except BaseException:
            if before is not None and self._store.root is not None and self._store.root.state == before.state:
                self._network, self._train = code  # nothing was committed
            raise
        return self

    def predict(self, X: Dataset | Inputs) -> NDArray[Any]:
        """The classes of records. See `MaxRR.predict`.

        Parameters
        ----------
        X : Dataset or array
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            For a Dataset the class names, for an array the labels that `fit` was given: of a Dataset, places in its
            class names.
        """
        return self._snapshot().predict(X)

    def predict_proba(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """Probabilities of the classes. See `MaxRR.predict_proba`.

        Parameters
        ----------
        X : Dataset or array
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            Records × classes, in the order of `head_classes`.
        """
        model = self._snapshot()
        if "platt" not in model._fitted.derived:
            with self._lock:
                model = self._model
                model._fitted.platt()
        return model.predict_proba(X)

    def decision_function(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """The scores that the heads give records. See `MaxRR.decision_function`.

        Parameters
        ----------
        X : Dataset or array
            Records of the kind that the model was fitted on.

        Returns
        -------
        array
            Records × heads; with two classes one score per record.
        """
        return self._snapshot().decision_function(X)

    def score(
        self, X: Dataset | Inputs, y: Labels | None = None, sample_weight: ArrayLike | None = None
    ) -> float:  # fmt: skip
        """The share of records that are classified rightly. See `MaxRR.score`.

        Parameters
        ----------
        X : Dataset or array
            Records of the kind that the model was fitted on.
        y : array, optional
            The true class of each record, as a label or by its name. Needed with an array.
        sample_weight : array, optional
            How much each record counts; all count the same by default.

        Returns
        -------
        float
            From 0 to 1.
        """
        return self._snapshot().score(X, y, sample_weight)

    # Forgetting

    def plan(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, core_policy: str | Technique = REFUSE
    ) -> Plan:  # fmt: skip
        """What `unlearn` would do with this request. Changes nothing. See `MaxRR.plan`.

        Parameters
        ----------
        ids, subjects : int, str or array, optional
            As in `unlearn`.
        core_policy : str or function
            As in `unlearn`.

        Returns
        -------
        Plan
            What will be done, for `execute`.
        """
        with self._lock:
            return self._model.plan(ids, subjects=subjects, core_policy=core_policy)

    def plan_replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What `replace` would do. Changes nothing. See `MaxRR.plan_replace`.

        Parameters
        ----------
        id, inputs, label : int or str, array, int or str
            As in `replace`.
        core_policy, allow_copies : str or function, str
            As in `replace`.

        Returns
        -------
        Plan
            What will be done, for `execute`.
        """
        with self._lock:
            return self._model.plan_replace(id, inputs, label, core_policy=core_policy, allow_copies=allow_copies)

    def plan_add(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None, subjects: Ids | None = None, *,
        sample_weight: ArrayLike | None = None, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """What `add` would do. Changes nothing. See `MaxRR.plan_add`.

        Parameters
        ----------
        X, y, ids, subjects : Dataset or array, array, array, array
            As in `add`.
        sample_weight, allow_copies : array, str, optional
            As in `add`.

        Returns
        -------
        Plan
            What will be done, for `execute`.
        """
        with self._lock:
            return self._model.plan_add(X, y, ids, subjects, sample_weight=sample_weight, allow_copies=allow_copies)

    def execute(
        self, plan: Plan, *, records: Dataset | None = None, source: Mapping[str, str] | None = None,
        progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Do what a plan says, and commit. See `MaxRR.execute`.

        Parameters
        ----------
        plan : Plan
            From this workspace, or from a snapshot of it (`open` with `read_only`).
        records : Dataset, optional
            The raw records, as in `unlearn`.
        source : dict of str to str, optional
            Where added records come from, as in `add`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done.

        Raises
        ------
        maxrr.errors.Stale
            Something was done here since the plan was made. Plan again.
        maxrr.errors.Refused
            It is the plan of a request that is refused.
        """
        with self._asked(), self._at_hand(records) as fitted:
            check_current(fitted, plan)
            return self._execute(fitted, plan, progress, source)

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None, core_policy: str | Technique = REFUSE,
        records: Dataset | None = None, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Forget records. When this returns, they are gone from the folder, too. See `MaxRR.unlearn`.

        Parameters
        ----------
        ids, subjects : int, str or array, optional
            The ids of the records to forget, or the people whose records to forget: one of the two.
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if some of the records are core; "refuse" by default.
        records : Dataset, optional
            The raw records that the model was fitted on; others, such as forgotten ones, may be among them. Needed
            where the extractor is made again.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done. The workspace keeps it, too.

        Raises
        ------
        maxrr.errors.NotHere
            The workspace neither has nor had a record with one of the ids, or has none about one of the subjects.
        maxrr.errors.Refused
            The request is not carried out as it is; its `plans` say what could be asked for instead.
        maxrr.errors.DataError
            The raw records are needed and were not given, or are not those that the model was fitted on.
        NetworkMissing
            The network is needed, and is the caller's own code: give it to `open`.
        """
        with self._asked(), self._at_hand(records) as fitted:
            plan = make_plan(fitted, look_up(fitted, ids, subjects, core_policy))
            return self._execute(fitted, plan, progress)

    def unlearn_each(
        self, ids: Sequence[Ids] | None = None, *, subjects: Sequence[Ids] | None = None,
        core_policy: str | Technique = REFUSE, records: Dataset | None = None, progress: Progress | None = None,
    ) -> list[Receipt | Refused]:  # fmt: skip
        """Carry out several requests by one commit, which costs little more than that of one.

        They are carried out one after the other, each with a receipt of its own. Those that are refused change nothing,
        and do not keep the others. If anything else is raised, none was carried out.

        Parameters
        ----------
        ids, subjects : sequence, optional
            The requests: for each one the ids, or the people, that `unlearn` would be given. One of the two.
        core_policy, records, progress
            As in `unlearn`, for all of them.

        Returns
        -------
        list of Receipt or maxrr.errors.Refused
            What became of each request: its receipt, or why it was refused.

        Raises
        ------
        maxrr.errors.DataError
            As in `unlearn`, but for requests that are refused.
        """
        if (ids is None) == (subjects is None):
            raise ValueError("requests name records by ids, or people by subjects: one of the two")
        named = ids if subjects is None else subjects
        requests = [
            partial(look_up, ids=each if subjects is None else None, subjects=None if subjects is None else each,
                    core_policy=core_policy)
            for each in (() if named is None else named)
        ]  # fmt: skip
        with self._asked(), self._at_hand(records) as fitted:
            together = Together(fitted)
            try:
                together.answer(requests, self._signer, progress)
            except BaseException:
                if together.done:  # of which nothing is committed, and what they forgot is overwritten here
                    self._go_back()
                raise
            if together.done:
                self._take_over(together.now, together.done)
            return together.answers

    def catch_up(
        self, newer: str | Path, *, keys: Sequence[PublicKey] = (), core_policy: str | Technique = REFUSE,
        records: Dataset | None = None, progress: Progress | None = None,
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
        core_policy, records, progress
            As in `unlearn`.

        Returns
        -------
        Receipt or None
            What was done; None where no record here had to be forgotten, so that only the receipts were taken.

        Raises
        ------
        maxrr.errors.WorkspaceError
            It is not a newer copy of this workspace, or its receipts do not hold. Nothing was changed.
        maxrr.errors.Refused
            As in `unlearn`.
        """
        with self._asked(newest=False), self._at_hand(records) as fitted:
            later = later_receipts(self._store, Path(newer), keys)
            later.require_of(fitted)
            for note in later.exports:
                self._store.note(export=asdict(note))
            adopted, before = later.adopted(fitted)
            ids = later.ids_here(fitted)
            if not len(ids):
                self._take_over(adopted, before)
                return None
            plan = make_plan(adopted, look_up(adopted, ids, None, core_policy))
            plan = said_so(plan, later)
            return Together(adopted, before).carry_out(plan, self._signer, progress, self._take_over)

    def accept_loss(self, reason: str) -> Receipt:
        """Go on with an older copy, because the newer one is lost for good.

        Nothing is done to the model, and what the lost requests have forgotten may be back: use `catch_up` wherever
        receipts of the newer copy are left. Another log begins, with the receipts that are here and one more, which
        names the lost log; and so does every later receipt. The lost copy is refused from now on, if it turns up again.

        Parameters
        ----------
        reason : str
            How the newer copy was lost, for those who read the receipts.

        Returns
        -------
        Receipt
            What was lost, in its `losses`.

        Raises
        ------
        maxrr.errors.WorkspaceError
            The workspace is not known to be an older copy, or the reason is empty. Nothing was changed.
        """
        with self._asked(newest=False):
            if not (reason.strip() and self._store.said_older()):
                raise WorkspaceError(f"{self.folder} is not known to be an older copy, or the reason is empty")
            return self._execute(*without_newer(self._store, self._fitted, reason), None)

    def dossier(
        self, number: int, *, subject: int | str | None = None, ids: Sequence[int | str] | None = None
    ) -> dict[str, Any]:  # fmt: skip
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
        with self._lock:
            return dossier_of(self._store, self._fitted, number, subject, ids)

    def replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None, records: Dataset | None = None,
        progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Rectify a record, and commit. See `MaxRR.replace`.

        Parameters
        ----------
        id : int or str
            The id of the record.
        inputs : array, or several
            What the record should be.
        label : int or str, optional
            Its class; by default the one that it has.
        core_policy : {"refuse", "retrain", "keep-extractor"} or function
            What to do if the record is core; "refuse" by default.
        allow_copies : str, optional
            A reason to let in the values of a forgotten record.
        records : Dataset, optional
            The raw records, as in `unlearn`: with this record as it was before.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done. The workspace keeps it, too.
        """
        with self._asked(), self._at_hand(records) as fitted:
            request = look_up_for_replacing(fitted, id, inputs, label, core_policy, allow_copies)
            return self._execute(fitted, make_plan(fitted, request), progress)

    def add(
        self, X: Dataset | Inputs, y: Labels | None = None, ids: Ids | None = None, subjects: Ids | None = None, *,
        sample_weight: ArrayLike | None = None, allow_copies: str | None = None,
        source: Mapping[str, str] | None = None, progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """Learn more records, and commit. See `MaxRR.add`.

        From now on the raw `records` that other verbs take are those that the model was fitted on and these.

        Parameters
        ----------
        X : Dataset or array
            The new records.
        y, ids, subjects, sample_weight : array, optional
            Their classes, ids, subject ids and weights, with an array.
        allow_copies : str, optional
            A reason to let in the values of a forgotten record.
        source : dict of str to str, optional
            Where the new records come from, in your words: kept in `sources`.
        progress : maxrr.progress.Progress, optional
            Called as the work goes on.

        Returns
        -------
        Receipt
            What was done. The workspace keeps it, too.

        Raises
        ------
        maxrr.errors.DataError
            The records are not of the kind that the workspace has, it has or has forgotten one of the ids, or one has
            the values of a forgotten record without `allow_copies`.
        NetworkMissing
            The network is needed, and is the caller's own code: give it to `open`.
        """
        with self._asked():
            fitted = self._fitted
            request = look_up_for_adding(fitted, to_add(fitted, X, y, ids, subjects, sample_weight), allow_copies)
            return self._execute(fitted, make_plan(fitted, request), progress, source)

    def replay(self, receipt: Receipt, records: Dataset) -> Replay:
        """Train again on the retained records in a fresh process, and compare. See `maxrr.unlearning.replay`.

        Parameters
        ----------
        receipt : Receipt
            The receipt of the request to replay.
        records : Dataset
            The raw records that the model was fitted on, and those that were added. Forgotten ones may be among them;
            they are left out.

        Returns
        -------
        Replay
            The outcome, and what it rests on.

        Raises
        ------
        maxrr.errors.DataError
            A record of the model is not among them, or is not as it was fitted; `maxrr.errors.UnknownRecords` where
            some are neither here nor forgotten.
        """
        with self._lock, self._at_hand(records):  # which says how many of them are missing or have changed
            bundle = self._model.bundle()
        return replay(receipt, bundle, records)

    def bundle(self) -> Bundle:
        """What a replay elsewhere needs. See `MaxRR.bundle`.

        Returns
        -------
        Bundle
            A copy of the present state, without the raw records. Keep it from the public: it holds the key.
        """
        with self._lock:
            self.check_newest()
            return self._model.bundle()

    # What is here

    @property
    def model(self) -> MaxRR:
        """A copy of the model in memory. What is done to it is not done to the workspace."""
        with self._lock:
            return copy.deepcopy(self._model)

    def model_with(self, records: Dataset) -> MaxRR:
        """A copy of the model in memory that has the raw records, for what needs these.

        Parameters
        ----------
        records : Dataset
            The raw records that the model was fitted on. Forgotten ones may be among them; they are left out.

        Returns
        -------
        MaxRR
            The model. What is done to it is not done to the workspace; that it was audited is noted there.

        Raises
        ------
        maxrr.errors.DataError
            A record of the model is not among them, or is not as it was fitted.
        """
        model = self.model
        model._state = replace(model._fitted, records=model._fitted.records.with_records(records))
        model._note_audit = self._noting_audits()
        return model

    def _noting_audits(self) -> Callable[[str], int]:
        """What notes an audit in the history, also when this workspace is closed: a finding may take hours."""
        here, history = weakref.ref(self), self._store.history
        assert history is not None
        path, key = history.path, history.key

        def note(receipt: str) -> int:
            found = here()
            if found is None:
                return note_audit(path, key, receipt)
            with found._lock:
                return note_audit(path, key, receipt, found._store)

        return note

    @property
    def model_hash_(self) -> str:
        """The hash of extractor and heads, as `MaxRR.model_hash_`."""
        return self._snapshot()._fitted.model_hash

    @property
    def content_hash_(self) -> str:
        """The hash of the retained records, as `MaxRR.content_hash_`."""
        with self._lock:
            return self._fitted.records.content_hash

    @property
    def folder(self) -> Path:
        """The folder of the workspace, as an absolute path."""
        return self._store.folder

    @property
    def token(self) -> str:
        """What names this workspace among others: 16 letters, drawn when it was made, and in the names of its files."""
        return self._store.token

    @property
    def state(self) -> int:
        """How many fits and requests there were, as `Commit.state`."""
        with self._lock:
            assert self._store.root is not None
            return self._store.root.state

    @property
    def source(self) -> dict[str, str]:
        """Where the records come from, as `create` was told."""
        assert self._store.root is not None
        return dict(self._store.words.sources[0])

    @property
    def sources(self) -> tuple[dict[str, str], ...]:
        """Where the records come from: those of the last fit, as in `source`, and then those of each `add`."""
        assert self._store.root is not None
        return tuple(map(dict, self._store.words.sources))

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of all classes, those without records included."""
        return self._snapshot()._fitted.records.class_names

    @property
    def head_classes(self) -> tuple[str, ...]:
        """The names of the classes that have records, in the order of the columns of `predict_proba`."""
        return self._snapshot()._fitted.head_classes

    @property
    def kind(self) -> RecordKind:
        """What the records are like: for programs that read ids, classes or other records from users."""
        with self._lock:
            return RecordKind._of(self._fitted)

    def check_network(self) -> None:
        """Raise an error if the network is needed and is not here.

        Call it before long work: predictions, replays and what trains or embeds again would raise the error later.

        Raises
        ------
        NetworkMissing
            The network is the caller's own code, and was not given to `open`.
        """
        extractor = self._snapshot()._fitted.extractor
        if isinstance(extractor, codec.Unmade):
            raise NetworkMissing(extractor.maker)

    def ids_of(self, kind: str) -> NDArray[Any]:
        """The ids of the records of one kind, as `status` counts them.

        Parameters
        ----------
        kind : {"core", "influential", "free"}
            The kind. A core record that is influential counts as core.

        Returns
        -------
        array
            The ids, sorted.
        """
        with self._lock:  # a request overwrites the ids of what it forgets
            fitted = self._fitted
            influential = np.zeros(len(fitted.core), dtype=bool)
            influential[fitted.heads.support_] = True
            kinds = {
                "core": fitted.core,
                "influential": ~fitted.core & influential,
                "free": ~(fitted.core | influential),
            }
            if kind not in kinds:
                raise ValueError(f"records are {', '.join(kinds)}, not {kind!r:.40}")
            return np.sort(fitted.records.ids[kinds[kind] & fitted.records.alive])

    def holds(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which of some records are here.

        Parameters
        ----------
        ids : array
            Record ids, of the kind that the workspace has.

        Returns
        -------
        array of bool
            One answer per id.
        """
        named = check_identifiers(ids, "record ids")
        with self._lock:
            return self._fitted.records.rows(named) >= 0

    def forgotten(self, ids: ArrayLike) -> NDArray[np.bool_]:
        """Which of some records were forgotten here.

        Parameters
        ----------
        ids : array
            Record ids. An integer and its text are the same id.

        Returns
        -------
        array of bool
            One answer per id.
        """
        with self._lock:
            return self._fitted.tombstones.knows(self._fitted.key, np.asarray(ids))

    def check_training(self) -> None:
        """Raise an error if a training function is needed to train again, and is not here.

        Call it before long work: replays, and requests that train again, would raise an error later.

        Raises
        ------
        TrainingMissing
            The model was fitted with a training function of the caller's own, and it was not given to `open`.
        """
        recipe = self._snapshot()._fitted.blueprint.recipe
        if isinstance(recipe, OwnTraining) and recipe.function is None:
            raise TrainingMissing(recipe.name)

    def returning(self, records: Dataset, *, copies: bool = True) -> NDArray[Any]:
        """Which of these records were forgotten here, so that `fit` would refuse them.

        Parameters
        ----------
        records : Dataset
            Records from any source.
        copies : bool
            Whether to include records that have the values of forgotten ones under other ids. True by default.

        Returns
        -------
        array
            The ids of those records, in the order of the dataset.
        """
        with self._lock:
            found = returning(self._fitted, records)
        ids: NDArray[Any] = records.ids[found.by_id | (found.by_values & copies)]
        return ids

    def forgotten_but_here(self) -> int:
        """How many records are here whose ids were forgotten.

        Returns
        -------
        int
            0 if all is well.
        """
        with self._lock:
            fitted = self._fitted
            return int(fitted.tombstones.knows(fitted.key, fitted.records.ids[fitted.records.alive]).sum())

    def on_receipt(self, receipt: Receipt, ids: Sequence[int | str]) -> OnReceipt:
        """Which of some ids a receipt names, and as what.

        Receipts name records by HMACs of their ids, which only the key of this workspace can make.

        Parameters
        ----------
        receipt : Receipt
            A receipt of this workspace.
        ids : sequence of int or str
            Record ids.

        Returns
        -------
        OnReceipt
            One answer per id: forgotten, replaced, or forgotten before.
        """
        with self._lock:
            return on_receipt(self._fitted.key, receipt, ids)

    def names_person(self, receipt: Receipt, subject: int | str) -> bool:
        """Whether a receipt says of a person that no record was left.

        Parameters
        ----------
        receipt : Receipt
            A receipt of this workspace.
        subject : int or str
            The subject id. An integer and its text are the same.

        Returns
        -------
        bool
            True if the last record about them was forgotten by this request.
        """
        with self._lock:
            return subject_hmac(self._fitted.key, subject) in (receipt.subject_tombstones or ())

    def has_forgotten(self, subject: int | str) -> bool:
        """Whether the last record about a person was forgotten here. Others may have come since.

        Parameters
        ----------
        subject : int or str
            The subject id. An integer and its text are the same.

        Returns
        -------
        bool
            True if a request has left no record about them.
        """
        with self._lock:
            return subject_hmac(self._fitted.key, subject) in self._fitted.people

    def is_about(self, subject: int | str) -> bool:
        """Whether a record here is about a person.

        Parameters
        ----------
        subject : int or str
            The subject id. An integer and its text are the same.

        Returns
        -------
        bool
            True if there is one.
        """
        with self._lock:
            records = self._fitted.records
            return records.subjects is not None and str(subject) in set(
                map(str, records.subjects[records.alive].tolist())
            )

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
        with self._lock:
            if not 1 <= number <= self._fitted.requests:
                have = count(self._fitted.requests, "receipt")
                raise NotHere(f"there is no receipt {number}: the workspace has {have}")
            return HandedReceipt.from_bytes(self._store.receipt(number))

    def receipts(self) -> Iterator[Receipt]:
        """All receipts, from the first.

        Yields
        ------
        Receipt
            The next one, read from the folder (from memory where it is open for reading only).
        """
        with self._lock:
            last = self._fitted.requests
        for number in range(1, last + 1):
            yield self.receipt(number).receipt

    def status(self) -> Status:
        """What is in the workspace.

        Returns
        -------
        Status
            Counts, hashes, conditions, and what is still known of forgotten records.
        """
        with self._lock:
            counts = counts_of(self._fitted)  # first: after a commit that failed, this reads the root again
            exports = self.exports()
            assert self._store.root is not None
            return status_of(self._store.root, self._store, counts, exports)

    # Copies for others

    def exports(self) -> list[Export]:
        """The copies of the model that were made for others.

        Returns
        -------
        list of Export
            From the first. Those that are out of date say so.
        """
        with self._lock:
            fitted = self._fitted
            assert self._store.root is not None
            notes, now = self._store.root.exports, state_under(fitted.key, fitted.model_hash, fitted.commitment)
            return judged(notes, now, self.receipts() if notes else ())

    def record_export(self, kind: str, path: str | Path, model: MaxRR) -> str:
        """Note that a copy of the model is made. `maxrr.serving` does so by itself before it writes one.

        Only one at a time writes to the history: a snapshot (`open` with `read_only`) waits for a process that works in
        the folder, for ten seconds or as long as `open` was told. Where somebody works there for longer, export there.

        Parameters
        ----------
        kind : str
            What is made, such as "onnx" or "serving".
        path : str or Path
            Where it is written.
        model : MaxRR
            What it is made of: `model` or `model_with` of this workspace.

        Returns
        -------
        str
            The export's id, as `Export.id`.

        Raises
        ------
        ValueError
            The model is not of this workspace.
        """
        with self._lock:
            self.check_newest()
            if model._fitted.key != self._fitted.key:
                raise ValueError("the model is not of this workspace: use its `model`")
            with model._lock:
                of = model._fitted
                note = new_note(
                    kind,
                    str(Path(path).absolute()),
                    of.requests,
                    state_under(of.key, of.model_hash, of.commitment),
                )
            self._store.note(export=asdict(note))
        return note.id

    def backup(self, to: str | Path) -> None:
        """Make a consistent copy of the folder, while requests are carried out here or by another process.

        The copy knows that it is one: whoever opens it is told, and it takes no requests before it has caught up with
        this workspace (`catch_up`), or the loss of this one was accepted (`accept_loss`).

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
        return self._unfinished

    @property
    def older_than_seen(self) -> int:
        """How many requests were undone because somebody has put back an older copy of the workspace; 0 if none."""
        with self._lock:
            return self._store.now.lacks(self._store.then)

    def check_newest(self) -> None:
        """Raise an error if this is known to be an older copy, which takes no requests and makes no exports.

        Call it before long work, such as reading records: the verbs that it is for would raise the error later.

        Raises
        ------
        maxrr.errors.OlderCopy
            The workspace had carried out more requests when it was last seen here.
        """
        with self._lock:
            self._store.check_newest()

    # How it is kept

    def _snapshot(self) -> MaxRR:
        """The model that was committed last. Nobody changes it, and nobody is waited for."""
        found = self._loaded
        if found is None or self._uncertain:
            with self._lock:
                return self._model
        return found

    @property
    def _model(self) -> MaxRR:
        """The model, for those who hold the lock."""
        if self._closed:
            raise WorkspaceError(f"this workspace in {self._store.folder} was closed: open it again")
        if self._uncertain:
            self._check_process()
            self._resolve()
        assert self._loaded is not None
        return self._loaded

    @property
    def _fitted(self) -> Fitted:
        return self._model._fitted

    @contextmanager
    def _writing(self, *, newest: bool = True) -> Iterator[None]:
        """Let one thread at a time change the workspace, in the process that opened it, unless that is only to read.

        An older copy is refused, unless the work is to make up for that.
        """
        with self._lock:
            if self._store.read_only:
                raise WorkspaceError(f"{self._store.folder} was opened for reading only: nothing was changed")
            if self._closed:
                raise WorkspaceError(f"this workspace in {self._store.folder} was closed: open it again")
            self._check_process()
            if newest and self._store.root is not None:
                self._store.check_newest()
            yield
            if self._unfinished:  # last: a caller may have made an error of warnings
                warnings.warn(
                    f"the request was carried out, but {self._unfinished}: it is finished when the workspace is next "
                    "opened",
                    stacklevel=4,
                )

    @contextmanager
    def _asked(self, *, newest: bool = True) -> Iterator[None]:
        """The same for a request, of which there will be a receipt."""
        with self._writing(newest=newest):
            if self._store.signing is None and self._store.root is not None and self._store.root.keys:
                raise WorkspaceError(
                    "this workspace signs its receipts: give the key, as signing_key=… to Workspace.open, or in the "
                    "shell with --key. Nothing was changed"
                )
            yield

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise WorkspaceError(f"{self._store.folder} was opened in another process: open it again")

    def _go_back(self) -> None:
        """After what failed: what counts is what the disk says."""
        self._uncertain = True
        with suppress(OSError, WorkspaceError):
            self._resolve()

    def _resolve(self) -> None:
        """After a commit that failed: the state is what the disk says."""
        self._store.recover()
        if self._store.root is not None:
            self._load()
        self._uncertain = False

    def _load(self) -> None:
        assert self._store.root is not None
        named = network_named(self._store.facts)
        network = as_recorded(self._network, named)
        if named is not None and named.our_own and (network is None or is_grown(named, network)):
            network = named
        self._take(self._store.load(network, self._train))

    def _take(self, fitted: Fitted) -> None:
        made, recipe = fitted.blueprint, fitted.blueprint.recipe
        plain = isinstance(recipe, Recipe) and recipe == Recipe(recipe.epochs, recipe.batch_size, recipe.lr)
        how = recipe.facts if plain else {"train": getattr(recipe, "function", None) or recipe}
        model = MaxRR(
            made.network, made.core, C=made.C, seed=made.seed, device=made.device,  # type: ignore[arg-type]
            threads=made.threads, class_weight=dict(made.class_weight) or None, **how,
        )  # fmt: skip
        model._state = fitted
        self._loaded = model

    @contextmanager
    def _at_hand(self, records: Dataset | None) -> Iterator[Fitted]:
        """The state with the raw records in it, as long as the block lasts."""
        fitted = self._fitted
        if records is not None:
            fitted = replace(fitted, records=fitted.records.with_records(records))
        yield fitted

    def _execute(
        self, fitted: Fitted, plan: Plan, progress: Progress | None, source: Mapping[str, str] | None = None
    ) -> Receipt:  # fmt: skip
        """Do what a plan says, and commit."""
        take_over = partial(self._take_over, source=source)
        return Together(fitted).carry_out(plan, self._signer, progress, take_over)

    def _take_over(
        self, after: Fitted, done: Sequence[CarriedOut], source: Mapping[str, str] | None = None
    ) -> None:  # fmt: skip
        """The next state of the same model, and where the records that it has learned come from."""
        assert self._store.root is not None
        before = self._fitted
        if after.extractor is not before.extractor and after.technique:
            check_layers(before, after)
        network, sources = self._store.facts.network, self._store.words.sources
        if after.blueprint.network is not before.blueprint.network:
            network = network_facts(after.blueprint.network)
        if source is not None:
            sources = (*sources, dict(source))
        self._commit(after, done, network, sources)

    def _commit(
        self, after: Fitted, done: Sequence[CarriedOut], network: NetworkFacts | None, sources: Sources
    ) -> None:  # fmt: skip
        """Make a state durable, and only then the present one. Until then others predict with the one before."""
        kept = after if after.records.inputs is None else without_raw_records(after)
        try:
            self._store.commit(kept, done, network, sources)
            self._take(kept)
        except BaseException:
            self._go_back()
            raise
        self._unfinished = ""
        try:
            self._store.finish()
        except (OSError, WorkspaceError) as error:
            self._unfinished = f"clearing up in {self.folder} failed ({error}), and old bytes may still be there"
        except BaseException:
            self._unfinished = f"clearing up in {self.folder} was interrupted, and old bytes may still be there"
            raise


def without_raw_records(fitted: Fitted) -> Fitted:
    """A state as a workspace keeps it."""
    return knowing(replace(fitted, records=fitted.records.without_records()), fitted, "core", "core_hash", *OF_MODEL)


def check_layers(before: Fitted, after: Fitted) -> None:
    """Refuse the work of a technique that a workspace cannot keep."""
    if after.fingerprint.layers != before.fingerprint.layers:
        raise WorkspaceError(
            "the technique returned an extractor with other layers, which a workspace cannot keep: return the one "
            "that it was given, with other weights"
        )


def is_grown(named: NamedNetwork, network: Network) -> bool:
    """Whether a network of this library is another one with more outputs, for classes that came later."""
    return len(named.arguments) > 1 and with_outputs(network, named.arguments[1]) == named


def counts_of(fitted: Fitted) -> Counts:
    """The records of a model by kind."""
    alive = fitted.records.alive
    influential = np.zeros(len(alive), dtype=bool)
    influential[fitted.heads.support_] = True
    shaping = influential & alive & ~fitted.core
    return Counts(
        int(alive.sum()), int((fitted.core & alive).sum()), int(shaping.sum()), len(fitted.tombstones.stones),
        list(fitted.head_classes), len(fitted.late), len(fitted.waiting), len(fitted.people),
    )  # fmt: skip


INHERITED = weakref.WeakSet[Workspace]()


def unlock_after_fork() -> None:
    """A lock that another thread held at that moment would never be released: that thread is not in the child."""
    for workspace in list(INHERITED):
        workspace._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=unlock_after_fork)
