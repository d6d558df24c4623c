"""What a model recognises by its key: ids and people that it has forgotten, and who is named on its receipts."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.records import Bools
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, id_hmac, subject_hmac

KINDS = CORE, INFLUENTIAL, FREE = "core", "influential", "free"


class OnReceipt(NamedTuple):
    """Which of some ids a receipt names, and as what. Each field has one answer per id.

    Attributes
    ----------
    forgotten : array of bool
        Which ids this request forgot.
    replaced : array of bool
        Which records this request replaced.
    before : array of bool
        Which ids were asked for and had been forgotten before.
    """

    forgotten: NDArray[np.bool_]
    replaced: NDArray[np.bool_]
    before: NDArray[np.bool_]


def on_receipt(key: bytes, receipt: Receipt, ids: Sequence[int | str]) -> OnReceipt:
    """Which of these ids a receipt names: it has the HMACs of the ids, which only the key can make."""
    now, earlier = set(receipt.tombstones), set(receipt.earlier_tombstones)
    forgotten, replaced = ([id_hmac(key, id_, purpose).hex() for id_ in ids] for purpose in (FORGOTTEN, REPLACED))
    before = [bool({one, other} & earlier) for one, other in zip(forgotten, replaced, strict=True)]
    masks = [each in now for each in forgotten], [each in now for each in replaced], before
    return OnReceipt(*(np.array(mask, dtype=bool) for mask in masks))


def rows_of_kind(fitted: Fitted, kind: str | None) -> Bools:
    """Which rows hold records of a kind; None for all."""
    influential = np.zeros(len(fitted.core), dtype=bool)
    influential[fitted.heads.support_] = True
    kinds = {
        None: fitted.records.alive,
        CORE: fitted.core,
        INFLUENTIAL: ~fitted.core & influential,
        FREE: ~(fitted.core | influential),
    }
    if kind not in kinds:
        raise ValueError(f"records are {', '.join(KINDS)}, not {kind!r:.40}")
    return kinds[kind] & fitted.records.alive


def forgotten_people(fitted: Fitted, subjects: Sequence[int | str]) -> Bools:
    """Which people a request has left no record about. Others may have come since."""
    return np.array([subject_hmac(fitted.key, person) in fitted.people for person in subjects], dtype=bool)
