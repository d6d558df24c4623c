"""What an extractor that was trained elsewhere may still be used for, once records that it saw are gone."""

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Adopted, Choice, Core, Frozen
from maxrr.core.trained_elsewhere import seen_elsewhere
from maxrr.data import Dataset
from maxrr.data.fields import shapes
from maxrr.nets.naming import for_more_classes
from maxrr.nets.seeding import Network
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import REPLACED, id_hmac

ELSEWHERE = "elsewhere"  # among the details of a choice: how many records a frozen network saw that are not here


class NotAmongRecordsWarning(UserWarning):
    """Some ids that `Frozen(pretrained_on=…)` names are not those of records that are fitted. Check them."""


def knowing_others(choice: Choice, core: Core, dataset: Dataset, before: Fitted | None) -> Choice:
    """The choice of a frozen network's core, with how many records it saw that are neither here nor forgotten.

    Where there are none, a record with a new id is known to be one that the network did not see.
    """
    if not isinstance(core, Frozen) or core.pretrained_on is None:
        return choice
    others = seen_elsewhere(core, dataset)
    if before is not None and len(others):
        others = others[~before.tombstones.knows(before.key, others)]
    if len(others):
        warnings.warn(
            f"{len(others):,} of the {np.size(core.pretrained_on):,} ids in Frozen(pretrained_on=…) are of no record "
            f"to fit, such as {others[0].item()!r}: nothing follows from them. If they should be among the records, "
            "check how the ids are written; if the network saw other records as well, this is as it should be",
            NotAmongRecordsWarning, stacklevel=4,
        )  # fmt: skip
    return replace(choice, details={**choice.details, ELSEWHERE: len(others)})


def to_train_by(core: Core, before: Fitted | None) -> Core | None:
    """How to choose the core that an adopted network is trained on again; None where nothing asks for that.

    A network that saw records which were forgotten or replaced since is not adopted again: it would bring them back.
    """
    if before is None or not isinstance(core, Adopted):
        return None
    ids = np.array(core.trained_on)
    forgotten, replaced = (before.tombstones.knows(before.key, ids, *purpose) for purpose in ((), (REPLACED,)))
    if not (forgotten | replaced).any():
        return None
    return Adopted(ids[~forgotten]) if core.core is None else core.core  # what is left of the named, or by the rule


def grown(network: Network, core: Core | None, records: HeldRecords) -> Network:
    """A network that tells the classes of records apart, if it is trained here; otherwise as it is, as it has learned.

    None for the core is one that the caller's own code chose, who brings the network, too.
    """
    if core is None or isinstance(core, Frozen | Adopted):
        return network
    return for_more_classes(network, shapes(records.dtype, records.shape), len(records.present))


def left_in(extractor: nn.Module, core: Core, before: Fitted | None) -> frozenset[bytes]:
    """The HMACs of ids of records that are gone, and that an extractor still knows which was not trained here.

    They are those that the extractor before had seen, if it is the same; and those that the caller says it has seen.
    """
    if before is None or not isinstance(core, Frozen):
        return frozenset()
    left = before.left if same_weights(extractor, before.extractor) else frozenset()
    if core.pretrained_on is None:
        return left
    return left | gone_among(core.pretrained_on, before, left)


def gone_among(seen: Any, before: Fitted, known: frozenset[bytes]) -> frozenset[bytes]:
    """The HMACs of those records that were forgotten or replaced, each record once, but for those that are known."""
    key, stones = before.key, before.tombstones.stones
    ids = np.array(seen)
    same_kind = ids.dtype.kind == before.records.ids.dtype.kind
    found = set[bytes]()
    for id_ in ids.tolist() if same_kind else ():
        forms = id_hmac(key, id_, REPLACED), id_hmac(key, id_)
        if not known.intersection(forms):
            found.update([form for form in forms if stones.of(form)][:1])
    return frozenset(found)


def still_as_seen(ids: NDArray[Any], left: frozenset[bytes], key: bytes) -> NDArray[Any]:
    """Which of some core records are those that the extractor saw: of a replaced one it saw what is gone."""
    return ids[[id_hmac(key, id_, REPLACED) not in left for id_ in ids.tolist()]] if left else ids


def same_weights(one: nn.Module, other: nn.Module) -> bool:
    """Whether two extractors have the same weights and buffers."""
    first, second = one.state_dict(), other.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[name].cpu(), second[name].cpu()) for name in first)
