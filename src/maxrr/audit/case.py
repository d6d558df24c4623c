"""What is audited: the model, the records it forgot, and the data around them. Everything is checked first."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.data import Dataset
from maxrr.data.fields import described
from maxrr.errors import DataError
from maxrr.unlearning import MaxRR, Receipt
from maxrr.unlearning.commitment import set_aside_of
from maxrr.unlearning.consistency import not_among
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.tombstones import content_hashes, id_hmac, tombstones_of

Ints = NDArray[np.int64]
SAMPLE = 2_000  # retained records that are looked at, for what forgetting others did to them


@dataclass(frozen=True, eq=False)
class Case:
    """One request that was carried out, with the records that the model no longer has.

    Attributes
    ----------
    fitted
        The model after the request.
    receipt
        The receipt of the request.
    forgotten, retained, test
        Raw records, in the order of their ids.
    core_before, core_after
        Ids of the core with and without the forgotten records.
    sample
        Rows of retained records to look at: the members of the threshold attack.
    """

    fitted: ModelState
    receipt: Receipt
    forgotten: Dataset
    retained: Dataset
    test: Dataset
    core_before: NDArray[Any]
    core_after: NDArray[Any]
    sample: Ints

    @property
    def touches_core(self) -> bool:
        """Whether the extractor was trained on some of the records, before."""
        return len(self.core_before) > len(self.core_after)

    @cached_property
    def everything(self) -> Dataset:
        """All records that the model had before."""
        gone = replace(self.forgotten, class_names=self.retained.class_names, columns=self.retained.columns)
        return self.retained.join(gone).in_order()


def working_copy(model: Any) -> MaxRR:
    """Return the model with its raw records; of a workspace's model, which may go on meanwhile, a copy."""
    if not isinstance(model, MaxRR):
        raise TypeError(f"model should be a MaxRR, not {type(model).__name__}")
    return model._apart()


def make_case(model: MaxRR, receipt: Receipt, forgotten: Dataset, test: Dataset) -> Case:
    """Make the case; refuse a receipt and records that do not belong together.

    Raises
    ------
    DataError
        The receipt is of another model, the records are not those on it, the test records are not apart from the
        training records, or classes are missing.
    """
    kinds = (("receipt", receipt, Receipt), ("forgotten", forgotten, Dataset), ("test", test, Dataset))
    for name, given, kind in kinds:
        if not isinstance(given, kind):
            raise TypeError(f"{name} should be a {kind.__name__}, not {type(given).__name__}")
    fitted = model._fitted
    gone = forgotten.in_order()
    check_trains(fitted)
    check_forgotten(fitted, receipt, gone)
    retained = fitted.records.retained()
    apart = not_trained_on(fitted, test).in_order()
    check_classes(fitted, apart)
    check_core(fitted, retained, receipt)
    core = set(receipt.core_tombstones)
    was_core = np.array([id_hmac(fitted.key, id_).hex() in core for id_ in gone.ids.tolist()], dtype=bool)
    drawn = np.random.default_rng(0).choice(len(retained), min(SAMPLE, len(retained)), replace=False)
    core_before = np.sort(np.concatenate([fitted.choice.ids, gone.ids[was_core]]))
    return Case(fitted, receipt, gone, retained, apart, core_before, fitted.choice.ids, np.sort(drawn))


def check_trains(fitted: ModelState) -> None:
    """Refuse a frozen extractor: retraining draws nothing at random, and gives one model to compare with, not many."""
    if fitted.blueprint.frozen:
        raise DataError(
            "the extractor is frozen, so that nothing is drawn in training and retraining gives one model, not many to "
            "rank this one among: a replay compares with that one"
        )


def check_forgotten(fitted: ModelState, receipt: Receipt, gone: Dataset) -> None:
    """Refuse records that are not all those of the receipt, as the model had them."""
    if why := not_among(receipt, fitted.receipts):
        raise DataError(why)
    if not receipt.tombstones:
        raise DataError("this request forgot no records: if an earlier one did, audit that one")
    check_kind(fitted, gone, "forgotten")
    given = tombstones_of(fitted.key, gone.ids, gone.record_hashes(), content_hashes(gone))
    known = {stone.record for stone in fitted.tombstones}
    on_receipt = set(receipt.tombstones)
    back = sum(id_hmac(fitted.key, id_, replaced=True).hex() in on_receipt for id_ in gone.ids.tolist())
    if back:
        raise DataError(f"{back:,} of the records were replaced, which no audit is for: the model has their ids")
    strange = sum(stone.id.hex() not in on_receipt for stone in given)
    if strange:
        raise DataError(f"{strange:,} of the {len(given):,} records are not on the receipt: bring those that are")
    missing = len(on_receipt) - len(given)
    if missing:
        raise DataError(f"{missing:,} of the {len(on_receipt):,} records on the receipt are missing: bring all of them")
    changed = sum(stone.record not in known for stone in given)
    if changed:
        raise DataError(f"{changed:,} of the {len(given):,} records are not as they were: bring them unchanged")


def check_core(fitted: ModelState, retained: Dataset, receipt: Receipt) -> None:
    """Refuse a case in which fewer than two classes of core records are left to retrain on."""
    if receipt.core_tombstones and len(np.unique(retained.select(fitted.choice.ids).labels)) < 2:
        raise DataError(
            "fewer than two classes of core records are left: no extractor can be trained without the forgotten ones, "
            "so there is nothing to compare with. Fit again, with another core"
        )


def not_trained_on(fitted: ModelState, test: Dataset) -> Dataset:
    """Return the test records without copies of training records.

    Copies are refused, unless all that was set aside is there: what to leave out of that is nobody's choice.
    """
    check_kind(fitted, test, "test")
    records = fitted.records
    trained = {content.tobytes() for content in records.contents[records.alive]}
    copies = fitted.tombstones.knows_values(fitted.key, test)
    copies |= np.array([content.tobytes() in trained for content in content_hashes(test)], dtype=bool)
    if copies.any() and set_aside_of(fitted.key, test) != fitted.set_aside:
        raise DataError(
            f"{copies.sum():,} of the {len(test):,} test records are training records, too, or were forgotten by this "
            "model: an attack would take these for members. Leave them out"
        )
    return test.without(test.ids[copies])


def check_classes(fitted: ModelState, test: Dataset) -> None:
    """Refuse test records that lack a class of the model."""
    missing = np.setdiff1d(fitted.codes, test.labels)
    if len(missing):
        names = ", ".join(fitted.records.class_names[label] for label in missing)
        raise DataError(f"no test record is of class {names}: the attacks compare with test records of every class")


def check_kind(fitted: ModelState, given: Dataset, which: str) -> None:
    """Refuse records of another shape, type or classes than those of the model."""
    known, names = fitted.records, given.class_names
    if given.shape != known.shape or given.inputs.dtype != known.dtype:
        one, other = described(given.inputs.dtype, given.shape), described(known.dtype, known.shape)
        raise DataError(f"the {which} records are {one}, but the model's are {other}")
    places = known.present.tolist()
    if len(names) != len(known.class_names) or any(names[place] != known.class_names[place] for place in places):
        raise DataError(f"the {which} records have other class names than the model's records")
