"""`Workspace`: a MaxRR in a folder. The same verbs, each durable: change in memory, commit, purge."""

import copy
import os
import threading
import warnings
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from maxrr.data import Dataset
from maxrr.errors import WorkspaceError
from maxrr.nets.seeding import Network
from maxrr.progress import Progress
from maxrr.unlearning import Bundle, MaxRR, Plan, Receipt, Replay, replay
from maxrr.unlearning.aliases import Ids, Inputs, Labels
from maxrr.unlearning.facts import named_in, network_facts
from maxrr.unlearning.forgetting import execute
from maxrr.unlearning.lookup import look_up, look_up_for_replacing
from maxrr.unlearning.plans import make_plan
from maxrr.unlearning.requests import REFUSE, RETAINED, Technique
from maxrr.unlearning.returning import copies_in, let_in
from maxrr.unlearning.state import Fitted
from maxrr.workspace import codec, commits, ownership, seen
from maxrr.workspace.errors import NetworkMissing, content_of
from maxrr.workspace.records import OnReceipt, RecordKind, on_receipt
from maxrr.workspace.status import Counts, Status, status_of
from maxrr.workspace.store import Store


class Workspace:
    """A model that lives in a folder.

    It holds the records' features, not the raw records: what needs these takes them again as `records` and checks them
    against what it was fitted on. One process at a time works in a folder; several may read it.

    Use `create` for a new one and `open` for one that is there, best in a `with` block: until `close` nobody else can
    work in the folder.

    Threads may share one. Predictions never wait: each is that of one committed state, the last one when it began.
    Everything else is done one after the other. A process that was forked can predict with what it inherited, and must
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

    def __init__(self, store: Store, network: Network | None) -> None:
        self._store = store
        self._network = network
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
        source: Mapping[str, str] | None = None, progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Fit a model and keep it in a new folder.

        The folder is made, or empty: nothing of others is in it. An interrupted ranking goes on from where it was if
        this is called again. `source` is where the records come from, in the caller's words: it is kept for `status`.
        """
        place = Path(folder)
        ownership.check_new(place)
        ownership.make_private(place)
        workspace = cls(Store(place), None)
        try:
            workspace._store.claim()
            workspace.fit(records, model, source=source, progress=progress)
        except BaseException:
            workspace.close()
            raise
        return workspace

    @classmethod
    def open(
        cls, folder: str | Path, *, network: Network | None = None, read_only: bool = False, wait: float = 0.0
    ) -> Self:
        """The workspace in a folder.

        Parameters
        ----------
        folder
        network : optional
            The network that was fitted, or the function that makes it, where that is your own code: opening a folder
            runs no code but this library's. Plans, and requests that neither train nor embed, do without.
        read_only : bool
            A snapshot, for predictions, plans and replays: all is read at once, and nobody is kept out afterwards.
        wait : float
            Seconds to wait for another process that works in it.
        """
        place = Path(folder)
        if not os.path.lexists(place / commits.NAME):
            raise commits.missing(place)
        workspace = cls(Store(place, read_only=read_only, wait=wait), network)
        try:
            workspace._store.open()
            workspace._load()
            workspace._store.look_back()
        except BaseException:
            workspace.close()
            raise
        return workspace

    def close(self) -> None:
        """Let others work in the folder."""
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
        source: Mapping[str, str] | None = None, progress: Progress | None = None,
    ) -> Self:  # fmt: skip
        """Fit again, as before or another model. Records that were forgotten here are refused, as by `MaxRR.fit`."""
        with self._writing():
            return self._fit(records, model, allow_copies, source, progress)

    def _fit(
        self, records: Dataset, model: MaxRR | None, allow_copies: str | None, source: Mapping[str, str] | None,
        progress: Progress | None,
    ) -> Self:  # fmt: skip
        before = self._store.root
        if model is None:
            model = self._model
            if model.core is None:
                raise WorkspaceError("the core of this workspace was chosen in a way of your own: pass the model, too")
        fresh = clone(model)
        own = vars(model).get("_state")
        if before is not None:
            if isinstance(own, Fitted) and own.key != self._fitted.key:
                # What the model has forgotten elsewhere does not come back here.
                let_in(copies_in(own, records, allow_copies), allow_copies)
            fresh._state = self._fitted  # the key, and what was forgotten under it
        elif isinstance(own, Fitted):
            fresh._state = replace(own, receipts=())  # the key and what was forgotten; its receipts are not here
        fresh.fit(records, allow_copies=allow_copies, folder=self._store.ranking(), progress=progress)
        after = fresh._fitted
        notes = dict(source) if source is not None else {} if before is None else before.facts["source"]
        network, self._network = self._network, fresh.network
        try:
            self._commit(after, None, network_facts(after.blueprint, after.extractor), notes)
        except BaseException:
            if before is not None and self._store.root is not None and self._store.root.state == before.state:
                self._network = network  # nothing was committed
            raise
        return self

    def predict(self, X: Dataset | Inputs) -> NDArray[Any]:
        """As `MaxRR.predict`: class names for a Dataset."""
        return self._snapshot().predict(X)

    def predict_proba(self, X: Dataset | Inputs, *, records: Dataset | None = None) -> NDArray[np.float64]:
        """As `MaxRR.predict_proba`. After `refit="influential"` it needs the raw records, once."""
        model = self._snapshot()
        if "platt" not in model._fitted.derived:
            with self._lock:
                model = self._model
                with self._at_hand(records) as fitted:
                    model._fitted.derived["platt"] = fitted.platt()
        return model.predict_proba(X)

    def decision_function(self, X: Dataset | Inputs) -> NDArray[np.float64]:
        """As `MaxRR.decision_function`."""
        return self._snapshot().decision_function(X)

    def score(self, X: Dataset | Inputs, y: Labels | None = None) -> float:
        """As `MaxRR.score`."""
        return self._snapshot().score(X, y)

    # Forgetting

    def plan(
        self, ids: Ids | None = None, *, subjects: Ids | None = None,
        core_policy: str | Technique = REFUSE, refit: str = RETAINED,
    ) -> Plan:  # fmt: skip
        """As `MaxRR.plan`."""
        with self._lock:
            return self._model.plan(ids, subjects=subjects, core_policy=core_policy, refit=refit)

    def plan_replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None,
    ) -> Plan:  # fmt: skip
        """As `MaxRR.plan_replace`."""
        with self._lock:
            return self._model.plan_replace(id, inputs, label, core_policy=core_policy, allow_copies=allow_copies)

    def execute(self, plan: Plan, *, records: Dataset | None = None, progress: Progress | None = None) -> Receipt:
        """As `MaxRR.execute`, durable. The plan may come from a snapshot: it is `Stale` if anything was done since."""
        with self._writing(), self._at_hand(records) as fitted:
            return execute(fitted, plan, self._take_over, progress)

    def unlearn(
        self, ids: Ids | None = None, *, subjects: Ids | None = None,
        core_policy: str | Technique = REFUSE, refit: str = RETAINED, records: Dataset | None = None,
        progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """As `MaxRR.unlearn`; when it returns, the records are gone from the disk, too.

        `records` are the raw ones that the model was fitted on. They are needed where the extractor is made again, and
        to fit the heads on all retained records after they were fitted on influential ones alone.
        """
        with self._writing(), self._at_hand(records) as fitted:
            plan = make_plan(fitted, look_up(fitted, ids, subjects, core_policy, refit))
            return execute(fitted, plan, self._take_over, progress)

    def replace(
        self, id: int | str, inputs: Inputs, label: int | str | None = None, *,
        core_policy: str | Technique = REFUSE, allow_copies: str | None = None, records: Dataset | None = None,
        progress: Progress | None = None,
    ) -> Receipt:  # fmt: skip
        """As `MaxRR.replace`, durable."""
        with self._writing(), self._at_hand(records) as fitted:
            request = look_up_for_replacing(fitted, id, inputs, label, core_policy, allow_copies)
            return execute(fitted, make_plan(fitted, request), self._take_over, progress)

    def replay(self, receipt: Receipt, records: Dataset) -> Replay:
        """Train again on the retained ones of these records, in a fresh process, and compare with what is here."""
        with self._lock, self._at_hand(records) as fitted:
            bundle, retained = self.bundle(), fitted.records.retained()
        return replay(receipt, bundle, retained)

    def bundle(self) -> Bundle:
        """As `MaxRR.bundle`."""
        with self._lock:
            return self._model.bundle()

    # What is here

    @property
    def model(self) -> MaxRR:
        """A copy of the model in memory. What is done to it is not done to the workspace."""
        with self._lock:
            return copy.deepcopy(self._model)

    def model_with(self, records: Dataset) -> MaxRR:
        """The same with the raw records in it, for what needs these."""
        model = self.model
        model._state = replace(model._fitted, records=model._fitted.records.with_records(records))
        return model

    @property
    def model_hash_(self) -> str:
        """As `MaxRR.model_hash_`."""
        return self._snapshot()._fitted.model_hash

    @property
    def content_hash_(self) -> str:
        """As `MaxRR.content_hash_`."""
        with self._lock:
            return self._fitted.records.content_hash

    @property
    def folder(self) -> Path:
        return self._store.folder

    @property
    def source(self) -> dict[str, str]:
        """Where the records come from, as `create` was told."""
        assert self._store.root is not None
        return dict(self._store.root.facts["source"])

    @property
    def class_names(self) -> tuple[str, ...]:
        """The names of all classes, by index."""
        return self._snapshot()._fitted.records.class_names

    @property
    def head_classes(self) -> tuple[str, ...]:
        """The names of the classes that have records, in the order of the columns of `predict_proba`."""
        return self._snapshot()._fitted.head_classes

    @property
    def kind(self) -> RecordKind:
        """What the records are like: for whoever names some of them, or brings others."""
        with self._lock:
            return RecordKind.of(self._fitted)

    @property
    def needs_records(self) -> bool:
        """Whether probabilities need the raw records: the heads were fitted on influential ones alone."""
        return self._snapshot()._fitted.on_influential

    def check_network(self) -> None:
        """Raise `NetworkMissing` if the network is the caller's own code and was not named when opening.

        Before long work: predictions, replays and what trains or embeds again would raise it later.
        """
        extractor = self._snapshot()._fitted.extractor
        if isinstance(extractor, codec.Unmade):
            raise NetworkMissing(extractor.maker)

    def returning(self, records: Dataset, *, copies: bool = True) -> NDArray[Any]:
        """The ids of those records that were forgotten here: `fit` would refuse them.

        Without `copies` only those whose ids were forgotten, and not those with the values of forgotten records.
        """
        with self._lock:
            fitted = self._fitted
            found = fitted.tombstones.returning(fitted.key, records, fitted.records.held())
        ids: NDArray[Any] = records.ids[found.by_id | (found.by_values & copies)]
        return ids

    def forgotten_but_here(self) -> int:
        """How many records are here whose ids were forgotten: none, if all is well."""
        with self._lock:
            fitted = self._fitted
            return int(fitted.tombstones.knows(fitted.key, fitted.records.ids[fitted.records.alive]).sum())

    def on_receipt(self, receipt: Receipt, ids: Sequence[int | str]) -> OnReceipt:
        """Which of these ids a receipt names, and as what. Receipts name records by tombstones under this one's key."""
        with self._lock:
            return on_receipt(self._fitted.key, receipt, ids)

    def receipt_path(self, number: int) -> Path:
        """Where the receipt of a request is kept."""
        return self._store.receipt_path(number)

    def receipts(self) -> Iterator[Receipt]:
        """All receipts, from the first."""
        with self._lock:
            count = self._fitted.requests
        for number in range(1, count + 1):
            with self._lock:
                content = (
                    self._store.receipts[number - 1]
                    if self._store.read_only
                    else content_of(self._store.receipt_file(number))
                )
            yield Receipt.from_json(content.decode())

    def status(self) -> Status:
        """What is in the workspace."""
        with self._lock:
            counts = counts_of(self._fitted)  # first: after a commit that failed, this reads the root again
            assert self._store.root is not None
            return status_of(self._store.root, self.folder, counts)

    @property
    def unfinished(self) -> str:
        """What the last request could not do after its commit, such as erasing old bytes; nothing if all is done.

        The next request finishes it, and so does whoever opens the workspace next.
        """
        return self._unfinished

    @property
    def older_than_seen(self) -> int:
        """How many requests were carried out here once and are undone: somebody has put back an older copy."""
        with self._lock:
            assert self._store.root is not None
            return max(0, self._store.then.receipts - len(self._store.root.receipts))

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
    def _writing(self) -> Iterator[None]:
        """For one thread, of the process that opened it, and not for those who only read."""
        with self._lock:
            if self._store.read_only:
                raise WorkspaceError(f"{self._store.folder} was opened for reading only: nothing was changed")
            if self._closed:
                raise WorkspaceError(f"this workspace in {self._store.folder} was closed: open it again")
            self._check_process()
            yield
            if self._unfinished:  # last: a caller may have made an error of warnings
                warnings.warn(
                    f"the request was carried out, but {self._unfinished}: it is finished when the workspace is next "
                    "opened",
                    stacklevel=4,
                )

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise WorkspaceError(f"{self._store.folder} was opened in another process: open it again")

    def _resolve(self) -> None:
        """After a commit that failed: the state is what the disk says."""
        self._store.recover()
        if self._store.root is not None:
            self._load()
        self._uncertain = False

    def _load(self) -> None:
        assert self._store.root is not None
        named = named_in(self._store.root.facts)
        network = named if self._network is None and named is not None and named.our_own else self._network
        self._take(self._store.load(network))

    def _take(self, fitted: Fitted) -> None:
        made, recipe = fitted.blueprint, fitted.blueprint.recipe
        model = MaxRR(
            made.network, made.core, C=made.C, seed=made.seed, epochs=recipe.epochs,  # type: ignore[arg-type]
            batch_size=recipe.batch_size, lr=recipe.lr, device=made.device, threads=made.threads,
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

    def _take_over(self, after: Fitted, receipt: Receipt) -> None:
        """The next state of the same model."""
        assert self._store.root is not None
        facts = self._store.root.facts
        if after.technique and not codec.same_layers(after.extractor, self._fitted.extractor):
            raise WorkspaceError(
                "the technique returned an extractor with other layers, which a workspace cannot keep: return the one "
                "that it was given, with other weights"
            )
        network = {name: facts[name] for name in ("network", "layers")}
        self._commit(after, receipt, network, facts["source"])

    def _commit(self, after: Fitted, receipt: Receipt | None, network: dict[str, Any], source: dict[str, Any]) -> None:
        """Make a state durable, and only then the present one. Until then others predict with the one before."""
        kept = replace(after, records=after.records.without_records())
        kept.__dict__["model_hash"] = after.model_hash  # found already, and the same
        try:
            self._store.commit(kept, receipt, network, source)
            self._take(kept)
        except BaseException:
            self._uncertain = True
            with suppress(OSError, WorkspaceError):
                self._resolve()
            raise
        self._unfinished = ""
        try:
            self._store.finish()
        except OSError as error:
            self._unfinished = f"clearing up in {self.folder} failed ({error}), and old bytes may still be there"
        except BaseException:
            self._unfinished = f"clearing up in {self.folder} was interrupted, and old bytes may still be there"
            raise
        assert self._store.root is not None
        seen.keep(self._store.token, seen.Seen(self._store.root.state, len(self._store.root.receipts)))


def counts_of(fitted: Fitted) -> Counts:
    """The records of a model by kind."""
    alive = fitted.records.alive
    influential = np.zeros(len(alive), dtype=bool)
    influential[fitted.heads.support_] = True
    shaping = influential & alive & ~fitted.core
    return Counts(
        int(alive.sum()), int((fitted.core & alive).sum()), int(shaping.sum()), len(fitted.tombstones.stones),
        list(fitted.head_classes),
    )  # fmt: skip


INHERITED = weakref.WeakSet[Workspace]()


def unlock_after_fork() -> None:
    """A lock that another thread held at that moment would never be released: that thread is not in the child."""
    for workspace in list(INHERITED):
        workspace._lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=unlock_after_fork)
