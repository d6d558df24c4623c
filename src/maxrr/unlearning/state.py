"""What a fitted model is, and what it becomes by an action.

States are never changed. A request computes the next one beside the present one, and the model takes it over by one
assignment, so an error or an interruption leaves it as it was. States share memory: what the old one still held of the
forgotten records is overwritten afterwards, by `erase`.
"""

import copy
import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Choice
from maxrr.data import Dataset
from maxrr.data.once import once
from maxrr.progress import Progress
from maxrr.svm import LinearSVM, PlattScaling, fit_platt
from maxrr.unlearning.actions import Action
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.hashes import model_hash
from maxrr.unlearning.holdings import Bools, Holdings, Ints, shuffled
from maxrr.unlearning.oblivion import FORGOTTEN, REPLACED, Oblivion, commitment, id_mark, marks
from maxrr.unlearning.overrides import Override
from maxrr.unlearning.pace import Pace
from maxrr.unlearning.requests import Request
from maxrr.unlearning.setting import Setting


@dataclass(frozen=True, eq=False, repr=False)
class Fitted:
    """All that a model is after `fit`. Never shown: it holds the key and the records."""

    setting: Setting
    extractor: nn.Module
    head: LinearSVM  # its samples stand where the holdings' records do
    holdings: Holdings
    choice: Choice
    labels: NDArray[Any]  # what callers call the classes
    key: bytes
    oblivion: Oblivion
    pace: Pace
    on_influential: bool = False  # the head was fitted on influential records alone, and holds no others
    left: frozenset[bytes] = frozenset()  # the marks of forgotten core records that the extractor was trained on
    technique: bool = False  # the extractor is the work of a caller's function
    receipts: tuple[str, ...] = ()  # the hashes of those that were handed out, from the first
    overrides: tuple[Override, ...] = ()  # where forgotten values were let in under other ids
    layouts: int = 0  # how often the records were given other rows
    derived: dict[str, PlattScaling] = field(default_factory=dict)  # made when asked for
    codes: Ints = field(init=False)  # the classes that the head tells apart, by number

    def __post_init__(self) -> None:
        # Now, and not when asked: whoever still predicts with this state after the next has erased its records gets
        # the classes that it had.
        object.__setattr__(self, "codes", self.head.classes_)
        _ = self.head_classes

    @property
    def requests(self) -> int:
        """How many were answered."""
        return len(self.receipts)

    @property
    def left_in_extractor(self) -> int:
        """Forgotten core records that the extractor was trained on."""
        return len(self.left)

    @property
    def nothing_remains(self) -> bool:
        """Whether extractor and head are those of the retained records alone, on whatever conditions."""
        return not (self.left or self.technique or self.on_influential)

    @property
    def conditions(self) -> list[str]:
        """What exactness is conditional on."""
        return conditions(self.choice, self.setting, self.left_in_extractor, self.technique)

    @once
    def core(self) -> Bools:
        """Which rows are core records."""
        rows = self.holdings.rows(self.choice.ids)
        mask = np.zeros(len(self.holdings.ids), dtype=bool)
        mask[rows[rows >= 0]] = True
        return mask

    @once
    def head_classes(self) -> tuple[str, ...]:
        """The names of the classes that the head tells apart."""
        return tuple(self.holdings.class_names[label] for label in self.codes)

    @once
    def spoken_for(self) -> tuple[str, ...]:
        """For each head the name of the class that it tells from the rest; two classes share one, the second's."""
        return self.head_classes if len(self.head_classes) > 2 else self.head_classes[1:]

    @property
    def manifest_commitment(self) -> str:
        """The records that are there, as receipts name them."""
        return commitment(self.key, b"records", self.holdings.manifest)

    @property
    def model_commitment(self) -> str:
        """Extractor and head, as receipts name them."""
        return commitment(self.key, b"model", self.model_hash)

    @once
    def flat(self) -> tuple[str, ...]:
        """The classes whose heads have weights of zero."""
        return tuple(name for name, w in zip(self.spoken_for, self.head.coef_, strict=True) if not w.any())

    @once
    def model_hash(self) -> str:
        """Over extractor and head."""
        return model_hash(self.extractor.state_dict(), self.head_classes, self.head.coef_, self.head.intercept_)

    @once
    def token(self) -> str:
        """Names this state among all, for plans: whatever was done since gives another. Tells nothing without the key.

        Rows have their meaning in one layout; core records and receipts are named because a fit or a request could
        change them and nothing else.
        """
        core = hashlib.sha256(np.ascontiguousarray(self.choice.ids).tobytes()).hexdigest()
        last = self.receipts[-1] if self.receipts else ""
        facts = self.requests, last, self.layouts, self.holdings.manifest, self.model_hash, core
        return commitment(self.key, b"state", " ".join(map(str, facts)))

    def platt(self) -> PlattScaling:
        """Probabilities' parameters, from the retained records."""
        if "platt" not in self.derived:
            if self.on_influential:
                retained = self.holdings.retained()
                features, labels = self.setting.features(self.extractor, retained), retained.labels
            else:
                rows, features = self.in_order()
                labels = self.holdings.labels[rows]
            known = np.isin(labels, self.codes)
            scores = self.head.decision_function(features[known])
            self.derived["platt"] = fit_platt(scores, labels[known], self.codes)
        return self.derived["platt"]

    def in_order(self) -> tuple[Ints, NDArray[np.float64]]:
        """The rows that the head holds and their features, in the order of the records' ids."""
        rows, features = self.head.held_
        order = np.argsort(self.holdings.ids[rows], kind="stable")
        return (rows, features) if np.array_equal(order, np.arange(len(rows))) else (rows[order], features[order])

    @property
    def basis(self) -> Ints:
        """The rows of the last full fit's influential records that are still there."""
        return self.head.held_[0] if self.on_influential else self.head.support_

    def influenced(self, rows: Ints) -> tuple[Ints, int]:
        """Which of these rows are influential, and how many heads they shape."""
        shaped = [np.isin(rows, head) for head in self.head.influential_]
        return rows[np.any(shaped, axis=0)], sum(bool(head.any()) for head in shaped)


def carried_out(now: Fitted, action: Action, request: Request, progress: Progress | None) -> Fitted:
    """The model after an action. What it holds of the records that leave is not erased yet."""
    then = less(now, request)
    if action is Action.nothing:
        return then
    if request.added is not None:
        then = with_added(then, request.added)
    then = without_names(then, np.setdiff1d(now.holdings.present, then.holdings.present))
    match action:
        case Action.retrain:
            return with_heads(with_extractor(then, progress), progress)
        case Action.technique:
            return with_heads(by_technique(now, then, request), progress)
        case Action.anew:
            return with_heads(then, progress)
        case Action.influential:
            return on_influential(now, then, request)
        case Action.more:
            assert request.added is not None
            features = then.setting.features(then.extractor, request.added)
            head = now.head.with_more(features, request.added.labels, instead_of=request.rows)
            return replace(then, head=head)
        case Action.move | Action.erase:
            return replace(then, head=now.head.without(request.rows))
        case Action.refuse:
            raise AssertionError("a refused request is not carried out")


def less(now: Fitted, request: Request) -> Fitted:
    """The books without the requested records: holdings, core, tombstones. Extractor and head are the old ones."""
    rows, before = request.rows, now.holdings
    kept_core = now.core.copy()
    kept_core[rows] = False
    purpose = FORGOTTEN if request.added is None else REPLACED  # a replaced record's id stays in use
    forgotten = marks(now.key, before.ids[rows], before.hashes[rows], before.contents[rows], purpose)
    core = before.ids[request.core_rows].tolist()
    return replace(
        now,
        holdings=before.without(rows),
        choice=replace(now.choice, ids=np.sort(before.ids[kept_core])),
        oblivion=Oblivion(now.oblivion.marks | set(forgotten)),
        left=now.left | {id_mark(now.key, id_, purpose) for id_ in core},
        derived={},
    )


def with_extractor(then: Fitted, progress: Progress | None) -> Fitted:
    """An extractor trained on the records that are there, and on no other."""
    retained = then.holdings.retained()
    choice = replace(then.choice, ids=then.setting.core_ids(retained.ids, then.choice.ids))
    extractor = then.setting.extractor(retained, choice, progress)
    return replace(then, extractor=extractor, choice=choice, left=frozenset(), technique=False)


def by_technique(now: Fitted, then: Fitted, request: Request) -> Fitted:
    """The extractor that the caller's function makes of the present one."""
    assert callable(request.core_policy)
    core, leaving = then.holdings.retained().select(then.choice.ids), now.holdings.select(request.core_rows)
    extractor = request.core_policy(copy.deepcopy(now.extractor), core, leaving)
    if not isinstance(extractor, nn.Module):
        raise ValueError(f"core_policy should return another extractor, a torch.nn.Module, not {extractor!r}")
    return replace(then, extractor=extractor.cpu().eval(), technique=True)


def with_added(then: Fitted, added: Dataset) -> Fitted:
    """More records in the holdings. One that becomes what it was before has not lost that."""
    new = Holdings.of(added)
    holdings = then.holdings.with_added(new)
    back = {mark.record for mark in marks(then.key, new.ids, new.hashes, new.contents, REPLACED)}
    oblivion = Oblivion(frozenset(mark for mark in then.oblivion.marks if mark.record not in back))
    return replace(then, holdings=holdings, oblivion=oblivion)


def without_names(then: Fitted, gone: Ints) -> Fitted:
    """The same without the names of classes that lost their last record, ours and those of the caller."""
    if not len(gone):
        return then
    labels = then.labels.copy()
    labels[gone] = np.zeros(1, labels.dtype)[0]
    return replace(then, holdings=then.holdings.without_names(gone), labels=labels)


def with_heads(then: Fitted, progress: Progress | None) -> Fitted:
    """Heads fitted from scratch on all records that are there, which then stand in rows without gaps again."""
    retained = shuffled(then.holdings.retained(), then.key)
    head = then.setting.head(then.setting.features(then.extractor, retained, progress), retained)
    return replace(
        then, holdings=Holdings.of(retained), head=head, on_influential=False, layouts=then.layouts + 1
    )  # fmt: skip


def on_influential(now: Fitted, then: Fitted, request: Request) -> Fitted:
    """The paper's cheap variant: the heads on what is left of the last full fit's influential records."""
    held, _ = now.head.held_
    leaving = np.setdiff1d(held, np.setdiff1d(now.basis, request.rows))
    return replace(then, head=now.head.without(leaving) if len(leaving) else now.head, on_influential=True)
