"""`Workspace`: a MaxRR in a folder. The same verbs, each durable: change in memory, commit, purge."""

import copy
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from maxrr.core import Core
from maxrr.data import Dataset
from maxrr.nets.seeding import Network
from maxrr.progress import Report
from maxrr.unlearning import Bundle, MaxRR, Plan, Receipt, Verdict, prove
from maxrr.unlearning.facts import named_in, network_facts
from maxrr.unlearning.forgetting import forget
from maxrr.unlearning.lookup import look_up, look_up_for_replacing
from maxrr.unlearning.requests import HEAD, RETAINED, Technique
from maxrr.unlearning.state import Fitted
from maxrr.workspace import contents, root
from maxrr.workspace.damage import WorkspaceError
from maxrr.workspace.status import Status, status_of
from maxrr.workspace.store import Store


class Workspace:
    """A model that lives in a folder.

    It holds the records' features, not the raw records: what needs these takes them again as `records` and checks them
    against what it was fitted on. One process at a time works in a folder; several may read it.

    Use `create` for a new one and `open` for one that is there, best in a `with` block: until `close` nobody else can
    work in the folder.

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
    ...     workspace.unlearn(training.ids[:3]).records_after
    1417
    """

    def __init__(self, store: Store, network: Network | None) -> None:
        self._store = store
        self._network = network
        self._loaded: MaxRR | None = None

    # Opening and closing

    @classmethod
    def create(
        cls, folder: str | Path, model: MaxRR, records: Dataset, *,
        source: Mapping[str, str] | None = None, report: Report | None = None,
    ) -> Self:  # fmt: skip
        """Fit a model and keep it in a new folder.

        An interrupted ranking goes on from where it was if this is called again. `source` is where the records come
        from, in the caller's words: it is kept for `status`.
        """
        place = Path(folder)
        if (place / root.NAME).exists():
            raise WorkspaceError(f"there is a workspace in {place} already: open it, and fit it again")
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        workspace = cls(Store(place), None)
        try:
            if (place / root.NAME).exists():
                raise WorkspaceError(f"another process made a workspace in {place} just now: open it")
            workspace.fit(records, model, source=source, report=report)
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
            Change nothing: for predictions, plans and proofs. Several may read at once.
        wait : float
            Seconds to wait for another process that works in it.
        """
        place = Path(folder)
        if not (place / root.NAME).exists():
            root.Root.read(place)  # says what is wrong
        workspace = cls(Store(place, read_only=read_only, wait=wait), network)
        try:
            workspace._store.open()
            workspace._load()
        except BaseException:
            workspace.close()
            raise
        return workspace

    def close(self) -> None:
        """Let others work in the folder."""
        self._store.close()
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
        source: Mapping[str, str] | None = None, report: Report | None = None,
    ) -> Self:  # fmt: skip
        """Fit again, as before or another model. Records that were forgotten here are refused, as by `MaxRR.fit`."""
        self._check_writable()
        before = self._store.root
        if model is None:
            model = self._model
            if model.core is None:
                raise WorkspaceError("the core of this workspace was chosen in a way of your own: pass the model, too")
        fresh = clone(model)
        if before is not None:
            fresh._state = self._fitted  # the key, and what was forgotten under it
        fresh.fit(records, allow_copies=allow_copies, folder=self._store.ranking(), report=report)
        after = fresh._fitted
        notes = dict(source) if source is not None else {} if before is None else before.facts["source"]
        network, self._network = self._network, fresh.network
        try:
            self._commit(after, None, fresh.core, network_facts(after.setting, after.extractor), notes)
        except BaseException:
            if before is not None and self._store.root is not None and self._store.root.state == before.state:
                self._network = network  # nothing was committed
            raise
        return self

    def predict(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """As `MaxRR.predict`."""
        return self._model.predict(X)

    def predict_proba(self, X: Dataset | ArrayLike, *, records: Dataset | None = None) -> NDArray[np.float64]:
        """As `MaxRR.predict_proba`. After `refit="influential"` it needs the raw records, once."""
        with self._at_hand(records) as fitted:
            self._fitted.derived["platt"] = fitted.platt()
        return self._model.predict_proba(X)

    def decision_function(self, X: Dataset | ArrayLike) -> NDArray[Any]:
        """As `MaxRR.decision_function`."""
        return self._model.decision_function(X)

    def score(self, X: Dataset | ArrayLike, y: ArrayLike | None = None) -> float:
        """As `MaxRR.score`."""
        return self._model.score(X, y)

    # Forgetting

    def plan(
        self, ids: ArrayLike | None = None, *, subjects: ArrayLike | None = None,
        core_policy: str | Technique = HEAD, refit: str = RETAINED,
    ) -> Plan:  # fmt: skip
        """As `MaxRR.plan`."""
        return self._model.plan(ids, subjects=subjects, core_policy=core_policy, refit=refit)

    def unlearn(
        self, ids: ArrayLike | None = None, *, subjects: ArrayLike | None = None,
        core_policy: str | Technique = HEAD, refit: str = RETAINED, records: Dataset | None = None,
        report: Report | None = None,
    ) -> Receipt:  # fmt: skip
        """As `MaxRR.unlearn`; when it returns, the records are gone from the disk, too.

        `records` are the raw ones that the model was fitted on. They are needed where the extractor is made again, and
        to fit the head on all retained records after it was fitted on influential ones alone.
        """
        self._check_writable()
        with self._at_hand(records) as fitted:
            request = look_up(fitted, ids, subjects, core_policy, refit)
            return forget(fitted, request, None, self._take_over, report)

    def replace(
        self, id: int | str, features: ArrayLike, label: Any = None, *,
        core_policy: str | Technique = HEAD, records: Dataset | None = None, report: Report | None = None,
    ) -> Receipt:  # fmt: skip
        """As `MaxRR.replace`, durable."""
        self._check_writable()
        with self._at_hand(records) as fitted:
            request, added = look_up_for_replacing(fitted, id, features, label, core_policy)
            return forget(fitted, request, added, self._take_over, report)

    def prove(self, receipt: Receipt, records: Dataset) -> Verdict:
        """Train again on the retained ones of these records, in a fresh process, and compare with what is here."""
        with self._at_hand(records) as fitted:
            return prove(receipt, self.bundle(), fitted.holdings.retained())

    def bundle(self) -> Bundle:
        """As `MaxRR.bundle`."""
        return self._model.bundle()

    # What is here

    @property
    def model(self) -> MaxRR:
        """A copy of the model in memory. What is done to it is not done to the workspace."""
        return copy.deepcopy(self._model)

    def model_with(self, records: Dataset) -> MaxRR:
        """The same with the raw records in it, for what needs these."""
        model = self.model
        model._state = replace(model._fitted, holdings=model._fitted.holdings.with_records(records))
        return model

    @property
    def model_hash_(self) -> str:
        """As `MaxRR.model_hash_`."""
        return self._fitted.model_hash

    @property
    def manifest_(self) -> str:
        """As `MaxRR.manifest_`."""
        return self._fitted.holdings.manifest

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
        return self._fitted.holdings.class_names

    def receipt_path(self, number: int) -> Path:
        """Where the receipt of a request is kept."""
        return self._store.receipt_path(number)

    def receipts(self) -> Iterator[Receipt]:
        """All receipts, from the first."""
        for number in range(1, self._fitted.requests + 1):
            yield Receipt.from_json(self.receipt_path(number).read_text(encoding="utf-8"))

    def status(self) -> Status:
        """What is in the workspace."""
        return status_of(self._fitted, self.folder, self.source)

    # How it is kept

    @property
    def _model(self) -> MaxRR:
        if not self._store.lock.release.alive:
            raise WorkspaceError(f"this workspace in {self._store.folder} was closed: open it again")
        if self._loaded is None:  # a commit was interrupted: what counts is what the disk says
            self._store.open()
            self._load()
        assert self._loaded is not None
        return self._loaded

    @property
    def _fitted(self) -> Fitted:
        return self._model._fitted

    def _check_writable(self) -> None:
        if self._store.read_only:
            raise WorkspaceError(f"{self._store.folder} was opened for reading only: nothing was changed")

    def _load(self) -> None:
        assert self._store.root is not None
        named = named_in(self._store.root.facts)
        network = named if self._network is None and named is not None and named.our_own else self._network
        found = self._store.load(network)
        self._take(found.fitted, found.core)

    def _take(self, fitted: Fitted, core: Core | None) -> None:
        setting = fitted.setting
        model = MaxRR(
            setting.network, core, C=setting.C, seed=setting.seed, epochs=setting.recipe.epochs,  # type: ignore[arg-type]
            batch_size=setting.recipe.batch_size, lr=setting.recipe.lr, device=setting.device, threads=setting.threads,
        )  # fmt: skip
        model._state = fitted
        self._loaded = model

    @contextmanager
    def _at_hand(self, records: Dataset | None) -> Iterator[Fitted]:
        """The state with the raw records in it, as long as the block lasts."""
        fitted = self._fitted
        if records is not None:
            fitted = replace(fitted, holdings=fitted.holdings.with_records(records))
        yield fitted

    def _take_over(self, after: Fitted, receipt: Receipt) -> None:
        """The next state of the same model."""
        assert self._store.root is not None
        facts = self._store.root.facts
        if after.technique and not contents.same_layers(after.extractor, self._fitted.extractor):
            raise WorkspaceError(
                "the technique returned an extractor with other layers, which a workspace cannot keep: return the one "
                "that it was given, with other weights"
            )
        network = {name: facts[name] for name in ("network", "layers")}
        self._commit(after, receipt, self._model.core, network, facts["source"])

    def _commit(
        self, after: Fitted, receipt: Receipt | None, core: Core | None, network: dict[str, Any], source: dict[str, Any]
    ) -> None:
        """Make a state durable, and only then the present one."""
        before = self._store.root
        kept = replace(after, holdings=replace(after.holdings, features=None))
        self._loaded = None
        try:
            self._store.commit(kept, core, receipt, network, source)
        except BaseException:
            with suppress(OSError, WorkspaceError):
                self._store.recover()
            raise
        self._take(kept, core)
        try:
            if before is None or receipt is None:
                self._store.purge()
            else:
                self._store.sweep(before)
        except OSError as error:
            warnings.warn(
                f"the records are forgotten, but erasing them from {self.folder} failed ({error}): it is finished when "
                "the workspace is next opened",
                stacklevel=4,
            )
