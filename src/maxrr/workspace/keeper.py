"""Holds the live model of a folder: lets it change or not, and commits each next state before the model takes it."""

import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from maxrr.data import Dataset
from maxrr.errors import KeyMissing, ParametersChanged, ReadOnly, WorkspaceClosed, WorkspaceError
from maxrr.nets import Recipe
from maxrr.nets.public_weights import SEED, as_given
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.unlearning import MaxRR
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.codec import network_facts, network_of
from maxrr.unlearning.facts import Sources
from maxrr.unlearning.forgetting import NextState
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.state import CORE_FACTS, MODEL_FACTS, ModelState, reuse
from maxrr.unlearning.statements import HandedReceipt
from maxrr.workspace.exports import Note, state_under
from maxrr.workspace.folder import note_audit
from maxrr.workspace.store import NewAnswer, Store

Records = Callable[[], Dataset | tuple[Dataset, Dataset]]
"""Reads raw records; of a pair, as `maxrr.data.load` returns it, those for training are taken."""


class FolderKeeper:
    """The `Keeper` of a model that lives in a folder.

    The model is one object for as long as the folder is open; its lock lets one thread at a time change it. `network`
    and `train` are the caller's own code, and `records` reads the raw records.
    """

    def __init__(
        self, store: Store, model: MaxRR, network: Network | None = None, train: TrainingFunction | None = None,
        records: Records | None = None,
    ) -> None:  # fmt: skip
        self.store = store
        self._model = weakref.ref(model)  # which has this keeper: whoever drops both closes the folder
        self.network = network
        self.train = train
        self.records = records
        self.uncertain = False  # a commit failed: what counts is what the disk says
        self.closed = False
        self.process = os.getpid()
        self.unfinished = ""
        self.by_ticket = dict[str, list[int]]()  # numbers of receipts, of those that were looked through
        self.looked_through = 0
        model._keeper = self
        INHERITED.add(self)

    @property
    def model(self) -> MaxRR:
        found = self._model()
        assert found is not None  # or nobody could ask
        return found

    # What a model asks

    def check_open(self) -> None:
        if self.closed:
            raise WorkspaceClosed(f"this workspace in {self.store.folder} was closed: open it again")
        if self.uncertain:
            with self.model._lock:
                if self.uncertain:
                    self.check_process()
                    self.take_committed()

    def check_newest(self) -> None:
        self.store.check_newest()

    @contextmanager
    def changing(self, *, receipts: bool = True, newest: bool = True) -> Iterator[None]:
        if self.store.read_only:
            raise ReadOnly(f"{self.store.folder} was opened for reading only: nothing was changed")
        self.check_process()
        self.check_open()
        if newest and self.store.has_state:
            self.store.check_newest()
        if receipts and self.store.signing is None and self.store.has_state and self.store.stored.files.keys:
            raise KeyMissing(
                "this workspace signs its receipts: give the key, as signing_key=… to Workspace.open, or in the "
                "shell in MAXRR_SIGNING_KEY or its usual place. Nothing was changed"
            )
        if receipts:
            self.check_parameters()
        yield
        if self.unfinished:  # last: a caller may have made an error of warnings
            words = f"the request was carried out, but {self.unfinished}: the next opening finishes it"
            warnings.warn(words, stacklevel=6)

    def raw_records(self) -> Dataset | None:
        return None if self.records is None else read(self.records)

    def commit(self, change: NextState, caught_up: Sequence[NewAnswer] = ()) -> None:
        if change.answers:
            departures = {each.id: each for each in change.after.committed.departures()}
            own = [NewAnswer.of(change, *each, departures, self.store.signing) for each in change.answers]
            self.commit_state(change.after, [*caught_up, *own], change.source)
            for _, receipt, _ in change.answers:
                self.look_at(receipt)
            return
        state, code = self.store.state, (self.network, self.train)  # a fit may be with other code of the caller's own
        self.network, self.train = self.model.network, self.model.train if callable(self.model.train) else None
        try:
            self.commit_state(change.after, [], change.source)
        except BaseException:
            if self.store.state == state > 0:
                self.network, self.train = code  # nothing was committed
            raise

    def receipt(self, number: int) -> Receipt:
        return HandedReceipt.from_bytes(self.store.receipt(number)).receipt

    def answers_of(self, ticket: str) -> list[Receipt]:
        """The receipts that answer the ticket with this HMAC. No receipt is looked at twice to find them."""
        for number in range(self.looked_through + 1, self.store.requests + 1):
            self.look_at(self.receipt(number))
        return [self.receipt(number) for number in self.by_ticket.get(ticket, ())]

    def look_at(self, receipt: Receipt) -> None:
        """Note which ticket a receipt answers, if it is the next one."""
        if receipt.number == self.looked_through + 1:
            self.looked_through = receipt.number
            if receipt.ticket is not None:
                self.by_ticket.setdefault(receipt.ticket, []).append(receipt.number)

    def ranking(self) -> Path:
        return self.store.ranking()

    @property
    def note_audit(self) -> Callable[[str], int]:
        """A function that notes an audit, even after the workspace was closed: an audit may take hours."""
        here, history = weakref.ref(self), self.store.history
        path, key = history.path, history.key

        def note(receipt: str) -> int:
            found = here()
            if found is None or found._model() is None:
                return note_audit(path, key, receipt)
            with found.model._lock:
                return note_audit(path, key, receipt, found.store)

        return note

    # How it is kept

    def check_process(self) -> None:
        """Refuse a process that was forked from the one that opened the folder."""
        if self.process != os.getpid():
            raise WorkspaceClosed(f"{self.store.folder} was opened in another process: open it again")

    def check_parameters(self) -> None:
        """Refuse requests while parameters of the model differ from those that it was fitted with."""
        now = vars(self.model)
        other = [name for name, value in self.parameters.items() if now[name] is not value and now[name] != value]
        if other:
            raise ParametersChanged(
                f"{', '.join(other)} of the model was changed since the fit, and a request goes on with what was "
                "fitted: fit or refit first, or set it back. Nothing was changed"
            )

    def note_export(self, kind: str, path: str | Path, model: MaxRR) -> str:
        """Note that a copy of the model, or of an earlier state, is exported; return the id of the export.

        Only one at a time writes to the history: a snapshot waits for a process that works in the folder, for ten
        seconds or as long as `Workspace.open` was told.
        """
        with self.model._lock:
            self.store.check_newest()
            if model._fitted.key != self.model._fitted.key:
                raise ValueError("the model is not of this workspace: use its `model`")
            with model._lock:
                of = model._fitted
                now = state_under(of.key, of.model_hash, of.commitment)
                note = Note.new(kind, str(Path(path).absolute()), of.requests, now)
            sealed = note.sealed(of.key)
            self.store.note(export=sealed)
            self.store.stored.exports.append(sealed)
        return note.id

    def commit_state(
        self, after: ModelState, answers: Sequence[NewAnswer], source: Mapping[str, str] | None = None
    ) -> None:
        """Make a state durable, and then the model's present one. Predictions use the state before until then.

        `source` says where the records come from that it has learned: all of them by a fit, more by an addition.
        """
        self.store.check_in_place()
        before = self.model._fitted if self.store.has_state else None
        if before is not None and after.blueprint.network is before.blueprint.network:
            network = self.store.facts.network  # which may not be given here
        else:
            network = network_facts(after.blueprint.network)
        sources: Sources = self.store.words.sources if self.store.has_state else ({},)
        if source is not None:
            sources = (*sources, dict(source)) if answers else (dict(source),)
        kept = after
        if after.records.inputs is not None:  # a workspace keeps no raw records
            kept = reuse(replace(after, records=after.records.without_inputs()), after, *CORE_FACTS, *MODEL_FACTS)
        try:
            self.store.commit(kept, answers, network, sources)
            self.set_state(kept)
        except BaseException:
            self.uncertain = True
            with suppress(OSError, WorkspaceError):  # or the next who asks takes what the disk says
                self.take_committed()
            raise
        self.unfinished = ""
        try:
            self.store.finish()
        except (OSError, WorkspaceError) as error:
            self.unfinished = f"clearing up in {self.store.folder} failed ({error}), and old bytes may still be there"
        except BaseException:
            self.unfinished = f"clearing up in {self.store.folder} was interrupted, and old bytes may still be there"
            raise

    def take_committed(self) -> None:
        """Read which state is durable after a failed commit, and give it to the model."""
        self.store.recover()
        if self.store.has_state:
            self.load()
        self.uncertain = False

    def load(self) -> None:
        """Give the model the state that the store has read."""
        self.set_state(self.store.load(network_of(self.store.facts, self.network), self.train))

    def set_state(self, fitted: ModelState) -> None:
        """Give the model a state by one assignment, after the parameters that the state was fitted with."""
        present = vars(self.model).get("_state")
        if present is None or present.blueprint is not fitted.blueprint:
            self.set_parameters(fitted.blueprint)
        self.model._state = fitted

    def set_parameters(self, made: Blueprint) -> None:
        """Give the model the parameters that a state was fitted with."""
        recipe = made.recipe
        plain = isinstance(recipe, Recipe) and recipe == Recipe(recipe.epochs, recipe.batch_size, recipe.lr)
        how = recipe.facts if plain else {"train": getattr(recipe, "function", None) or recipe}
        parameters = MaxRR(
            as_given(made.network), made.core, C=made.C, seed=made.seed, device=made.device,  # type: ignore[arg-type]
            start=SEED if made.start is None else made.start.start,
            threads=made.threads, class_weight=dict(made.class_weight) or None, engine=self.model.engine,
            verbose=self.model.verbose, **how,
        )  # fmt: skip
        free = ("engine", "verbose")  # which change nothing about the model
        self.parameters = {name: value for name, value in vars(parameters).items() if name not in free}
        self.model.__dict__.update(vars(parameters))

    def close(self) -> None:
        """Unlock the folder, and drop the model's state."""
        self.store.close()
        self.closed = True
        self.model.__dict__.pop("_state", None)


def read(records: Records) -> Dataset:
    """Read the raw records."""
    found = records()
    return found[0] if isinstance(found, tuple) else found


INHERITED = weakref.WeakSet[FolderKeeper]()


def unlock_after_fork() -> None:
    """Give each model in a forked child a new lock: the thread that held the old one is not in the child."""
    for keeper in list(INHERITED):
        if (model := keeper._model()) is not None:
            model._own_lock = threading.RLock()


os.register_at_fork(after_in_child=unlock_after_fork)
