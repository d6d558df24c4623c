"""What a fitted model is.

States are never changed. A request computes the next one beside the present one, and the model takes it over by one
assignment, so an error or an interruption leaves it as it was. States share memory: what the old one still held of the
forgotten records is overwritten afterwards, by `erase`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.core.choice import Choice
from maxrr.evidence.sparse_tree import Tree
from maxrr.nets.probe import Fingerprint
from maxrr.once import once
from maxrr.svm import PlattScaling, fit_platt
from maxrr.svm.estimator import LinearSVM
from maxrr.svm.heads import with_a_head
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.commitment import Commitment, ExtractorHash, class_hmac, keyed_hash
from maxrr.unlearning.conditions import conditions
from maxrr.unlearning.facts import Durations, Override, SetAside
from maxrr.unlearning.receipts import HeadCertificate, Loss
from maxrr.unlearning.records import Bools, HeldRecords, Ids, Ints
from maxrr.unlearning.tombstones import Forgotten, Layered, Tombstones, subject_hmac


@dataclass(frozen=True, eq=False, repr=False)
class ModelState:
    """Everything about a fitted model. Its `repr` shows nothing, because it holds the key and the records."""

    blueprint: Blueprint
    extractor: nn.Module
    fingerprint: Fingerprint  # of the extractor
    heads: LinearSVM  # its samples stand where the records do
    records: HeldRecords
    choice: Choice
    label_kind: str  # what `fit` was given as classes: names (U), integers (i) or booleans (b)
    key: bytes
    secret: bytes  # of the commitment's salts; other than the key, it is never handed out
    tombstones: Tombstones
    durations: Durations
    in_extractor: frozenset[bytes] = frozenset()  # id_hmacs of forgotten core records that the extractor was trained on
    stale: frozenset[int] = frozenset()  # of several shards those whose extractors were trained on such records
    untrained: frozenset[int] = frozenset()  # those that keep their first weights, for want of core records
    technique: bool = False  # the extractor is the work of a caller's function
    adopted: bool = False  # the extractor was trained elsewhere, on the core alone by the word of whoever gave it
    set_aside: SetAside | None = None  # test records that the caller named at the last fit
    receipts: tuple[str, ...] = ()  # the hashes of those that were handed out, from the first
    overrides: tuple[Override, ...] = ()  # where forgotten values were let in under other ids
    losses: tuple[Loss, ...] = ()  # of newer copies of the workspace
    layouts: int = 0  # how often the records were given other rows
    waiting: Ids = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # added since, core at the next fit
    people: Layered[str, Forgotten] = field(default_factory=Layered)  # whom no record is about any more, by HMAC
    committed: Commitment = field(default_factory=Commitment)
    codes: Ints = field(init=False)  # the classes that the heads tell apart, by number

    def __post_init__(self) -> None:
        # Now, and not when asked: whoever still predicts with this state after the next has erased its records gets
        # the classes that it had.
        object.__setattr__(self, "codes", self.heads.classes_)
        _ = self.head_classes

    @property
    def requests(self) -> int:
        """How many requests were answered."""
        return len(self.receipts)

    @property
    def left_in_extractor(self) -> int:
        """How many forgotten core records the extractor was trained on."""
        return len(self.in_extractor)

    @property
    def conditions(self) -> list[str]:
        """The conditions that exactness rests on."""
        return conditions(
            self.choice, self.blueprint, self.left_in_extractor, self.technique, self.adopted, len(self.waiting)
        )

    @property
    def to_train(self) -> frozenset[int]:
        """The shards whose extractors saw forgotten records, and are trained again to forget them."""
        return self.stale if self.blueprint.sharding.count > 1 else frozenset({0})

    @once
    def core(self) -> Bools:
        """Which rows are core records."""
        rows = self.records.rows(self.choice.ids)
        mask = np.zeros(len(self.records.ids), dtype=bool)
        mask[rows[rows >= 0]] = True
        return mask

    @once
    def head_classes(self) -> tuple[str, ...]:
        """The names of the classes that the heads tell apart."""
        names = self.records.class_names
        return tuple([names[label] for label in self.codes.tolist()])

    @once
    def classes(self) -> NDArray[Any]:
        """The classes that the heads tell apart, as `fit` was given them."""
        if self.label_kind == "i":
            return np.array([int(name) for name in self.head_classes])
        names = np.array(self.head_classes)
        return names == "True" if self.label_kind == "b" else names

    @once
    def class_of_head(self) -> tuple[str, ...]:
        """For each head the class that it stands for; the only head of two classes stands for the second."""
        return tuple(with_a_head(self.head_classes))

    @property
    def commitment(self) -> str:
        """The root of the tree over the retained records, as receipts name it."""
        if self.committed.root is None:
            self.tree()
        assert self.committed.root is not None
        return self.committed.root

    def tree(self) -> Tree:
        """Return the tree over the records of this state. Call it only on the model's present state."""
        return self.committed.tree(self.secret, self.records.ids_and_hashes)

    @once
    def model_commitment(self) -> str:
        """The keyed hash of extractor and heads, as receipts name the model."""
        return keyed_hash(self.key, b"model", self.model_hash)

    @once
    def flat(self) -> tuple[str, ...]:
        """The classes whose heads have weights of zero."""
        return tuple(name for name, w in zip(self.class_of_head, self.heads.coef_, strict=True) if not w.any())

    @once
    def extractor_hash(self) -> ExtractorHash:
        """The extractor's part of the hash of the model."""
        return ExtractorHash(self.fingerprint.layers, self.extractor.state_dict())

    @once
    def model_hash(self) -> str:
        """The hash over the extractor, with its layers' names, and the heads."""
        return self.extractor_hash.with_heads(self.head_classes, self.heads.coef_, self.heads.intercept_)

    @once
    def certificates(self) -> list[HeadCertificate]:
        """What receipts say of the heads."""
        pairs = zip(self.class_of_head, self.heads.certificate_, strict=True)
        return [HeadCertificate.of(class_hmac(self.key, name), certificate) for name, certificate in pairs]

    @once
    def token(self) -> str:
        """The name of this state, which plans carry. Every change gives another; without the key it tells nothing.

        Rows have their meaning in one layout, which every fit and every training ends.
        """
        last = self.receipts[-1] if self.receipts else ""
        facts = self.requests, last, self.layouts, self.commitment, self.model_hash
        return keyed_hash(self.key, b"state", " ".join(map(str, facts)))

    def platt(self) -> PlattScaling:
        """Return the parameters of probabilities, fitted on the retained records when first asked for."""
        if "_platt" not in vars(self):
            rows = self.in_order()
            self.__dict__["_platt"] = fit_platt(self.heads._scores_of(rows), self.records.labels[rows], self.codes)
        found: PlattScaling = vars(self)["_platt"]
        return found

    def in_order(self) -> Ints:
        """The rows of the retained records, in the order of their ids."""
        rows = self.heads._rows
        return rows[np.argsort(self.records.ids[rows], kind="stable")]


def reuse(then: ModelState, now: ModelState, *names: str) -> ModelState:
    """Copy cached values of one state to another state for which they hold as well, and return that state."""
    for name in names:
        if name in now.__dict__:
            then.__dict__[name] = now.__dict__[name]
    return then


MODEL_FACTS = (
    "head_classes", "class_of_head", "extractor_hash", "model_hash", "model_commitment", "certificates", "flat",
)  # fmt: skip
CORE_FACTS = ("core",)
"""What depends on extractor and heads alone; and on the core alone."""


KINDS = ("core", "influential", "free")


def rows_of_kind(fitted: ModelState, kind: str | None) -> Bools:
    """Which rows hold records of a kind; None for all."""
    if kind not in (None, *KINDS):
        raise ValueError(f"records are {', '.join(KINDS)}, not {kind!r:.40}")
    alive = fitted.records.alive
    if kind in (None, "core"):
        return alive if kind is None else fitted.core & alive
    others, influential = ~fitted.core & alive, np.zeros(len(alive), dtype=bool)
    influential[fitted.heads.support_] = True
    return others & influential if kind == "influential" else others & ~influential


def people_by_kind(fitted: ModelState) -> dict[str, int] | None:
    """How many people there are by the kind of record that is the most work to forget; None without subject ids."""
    if fitted.records.subjects is None:
        return None
    core, influential, free = (fitted.records.people_of(rows_of_kind(fitted, kind)) for kind in KINDS)
    each = (core, influential & ~core, free & ~core & ~influential)
    return {kind: int(people.sum()) for kind, people in zip(KINDS, each, strict=True)}


def forgotten_people(fitted: ModelState, subjects: Sequence[int | str]) -> Bools:
    """Which people a request has left no record about. Others may have come since."""
    return np.array([subject_hmac(fitted.key, person) in fitted.people for person in subjects], dtype=bool)
