"""Extractors that were trained elsewhere: used as they are for good, or until core records have to go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core.choice import Choice, Core, FullCore, HashCore, Words, check_classes, choice_of
from maxrr.data import Dataset
from maxrr.data.checks import check_identifiers, listed
from maxrr.errors import DataError
from maxrr.nets import split
from maxrr.nets.networks import NoNetwork
from maxrr.nets.seeding import Network, network_from

Ids = int | str | Sequence[int | str] | NDArray[Any]

PRETRAINED = (
    "no record is core: the extractor is used as it was given, on the word of whoever gave it that these records had "
    "no part in its training"
)
EMBEDDINGS = (
    "no record is core: the records were given as features, on the word of whoever gave them that these records had no "
    "part in training whatever made them"
)


@dataclass(frozen=True)
class Frozen:
    """The network is a pretrained extractor, used as it is. No record is core, on the word of whoever gave it.

    The network must end where the features are. One that ends in a linear layer with as many outputs as there are
    classes looks like a whole classifier, whose scores would be taken for features, and is refused: pass
    `maxrr.nets.split(network)[0]`. One that was trained on some of the records is for `MaxRR.adopt`.

    Parameters
    ----------
    whole : bool
        Whether a network that looks like a whole classifier is really meant as the extractor. False by default.
    """

    whole: bool = False

    def choose(self, network: Network, dataset: Dataset, **_: Any) -> Choice:
        """Choose no records, as `Core.choose` does."""
        if not self.whole and looks_whole(network, dataset):
            raise DataError(
                f"with Frozen the network is the extractor, and this one ends in a linear layer with one output for "
                f"each of the {len(np.unique(dataset.labels))} classes: its scores would be taken for features. Cut it "
                "with maxrr.nets.split(network)[0]; if it is an extractor after all, say Frozen(whole=True)"
            )
        words = self._words(network)
        return Choice(dataset.ids[:0].copy(), False, words.depended_on, {**words.details, "k": 0})

    def _words(self, network: Network) -> Words:
        """Return the words of every choice by this rule."""
        return Words(EMBEDDINGS if isinstance(network, NoNetwork) else PRETRAINED, {"kind": "frozen"})


@dataclass(frozen=True)
class Adopted:
    """The core of a network that was trained elsewhere, as `MaxRR.adopt` has it.

    Parameters
    ----------
    trained_on : array
        The ids of the records that the network was trained on.
    core : HashCore or FullCore, optional
        The rule by which they were chosen, if it was by one.
    """

    trained_on: Ids = field(repr=False)
    core: HashCore | FullCore | None = None

    def __post_init__(self) -> None:
        ids = np.unique(check_identifiers(listed(self.trained_on), "record ids"))
        object.__setattr__(self, "trained_on", tuple(ids.tolist()))
        if self.core is not None and not isinstance(self.core, HashCore | FullCore):
            raise DataError(
                f"the core of a network that was trained elsewhere is by a rule for each record (HashCore, FullCore) "
                f"or what it was trained on (None), not {self.core!r:.80}"
            )
        if self.core is not None and self.core.shards > 1:
            raise DataError(f"a network trained elsewhere is one extractor, its core one shard, not {self.core.shards}")

    def choose(self, network: Network, dataset: Dataset, **_: Any) -> Choice:
        """Choose the records that the network was trained on, as `Core.choose` does."""
        check_classes(dataset)
        ids = ids_among(self.trained_on, dataset)
        missing = ids[~np.isin(ids, dataset.ids)]
        if len(missing):
            raise DataError(
                f"{len(missing):,} of the {len(ids):,} records that the network was trained on are not among those to "
                f"fit, such as {missing[0].item()!r}: bring all of them, or train without them"
            )
        if self.core is None:
            because = f"the core is the {len(ids):,} records that the caller named: exact given that core"
            return choice_of(dataset, ids, Words(because, {"kind": "adopted"}), unconditional=False)
        choice = self.core.choose(network, dataset)
        unseen, others = np.setdiff1d(choice.ids, ids), np.setdiff1d(ids, choice.ids)
        if len(unseen) or len(others):
            found = [
                f"{len(unseen):,} that are core it has not seen, such as {unseen[0].item()!r}" if len(unseen) else "",
                f"{len(others):,} that it has seen are not core, such as {others[0].item()!r}" if len(others) else "",
            ]
            raise DataError(
                f"the network was trained on other records than {self.core!r} makes core: "
                f"{' and '.join(filter(None, found))}. Leave core out, so that what it was trained on is the core; or "
                "train it on just the core and adopt that; or let MaxRR(network, core, train=…) train it here, also on "
                "records that were added and waited to be core"
            )
        return choice


def rule_of(core: Core) -> Core | None:
    """Return the rule that a model keeps of its core, without the ids that somebody named."""
    return core.core if isinstance(core, Adopted) else core


def ids_among(named: Any, dataset: Dataset) -> NDArray[Any]:
    """Return named ids as an array; refuse numbers where the records' ids are words, and the reverse."""
    ids, others = np.array(named), dataset.ids
    if not len(ids):
        return others[:0]
    if ids.dtype.kind != others.dtype.kind:
        kinds = {"i": "numbers", "u": "numbers", "U": "words"}
        raise DataError(
            f"the ids of the records that the network was trained on are {kinds.get(ids.dtype.kind, ids.dtype)}, and "
            f"those of the records to fit are {kinds.get(others.dtype.kind, others.dtype)}: bring the same kind"
        )
    return ids


def looks_whole(network: Network, dataset: Dataset) -> bool:
    """Whether the last linear layer of a network has one output for each class."""
    try:
        last = split(network_from(network))[1]
    except ValueError:  # without a linear layer, or nothing else
        return False
    return last.out_features == len(np.unique(dataset.labels))
