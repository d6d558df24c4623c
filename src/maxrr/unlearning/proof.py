"""Proof by doing it again: a fresh process trains from the raw retained records, and the bytes are compared.

It gets the recipe, never the features or weights; those of the model are only there to be compared with. What cannot be
done again is said: an extractor that saw forgotten records cannot come out of the retained ones, so then the proof is
of the head on that extractor.

A head whose certificates are decided, the model's and that of the fresh process, must have the same bytes. Where one of
them is not, both are known only up to the errors that they name, and must not be further apart than these add up to.
"""

import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.core import Choice
from maxrr.data import Dataset
from maxrr.nets import Environment
from maxrr.nets.records import chosen_device
from maxrr.nets.runs import as_array
from maxrr.svm import EXACT, FORM, Certificate
from maxrr.svm.processes import end_with_the_parent, without_the_script
from maxrr.unlearning.hashes import model_hash
from maxrr.unlearning.receipts import Receipt, rounded_up
from maxrr.unlearning.setting import Setting

IDENTICAL, WITHIN, DIFFERENT = "identical", "within", "different"  # the second is followed by how much
SUPERSEDED, NOT_COMPARABLE = "superseded", "not comparable here"
WEIGHTS, INTERCEPTS = "head weights", "head intercepts"
ROUNDING = 1.0 + 1e-6  # for the length of a record, which is not rounded up

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Bundle:
    """What whoever runs the model keeps to prove its state: the setting, and what to compare with. Not for the public:
    it names the core records.
    """

    setting: Setting
    choice: Choice
    manifest: str
    model_hash: str
    extractor: nn.Module
    classes: tuple[str, ...]  # of the head
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    certificates: tuple[Certificate, ...]  # of the heads
    form: int  # the canonical form of their bytes
    core_left_in_extractor: int
    technique: bool  # the extractor was changed by a caller's function
    on_influential: bool
    fitted_on: NDArray[Any]  # the ids of the records that the head was fitted on, in order
    features: NDArray[np.float64]  # theirs; looked at only where embedding cannot give the same bytes

    def __repr__(self) -> str:
        return f"<Bundle of model {self.model_hash[:12]}…, {len(self.choice.ids)} core records>"


@dataclass(frozen=True)
class Verdict:
    """What came of a proof.

    Attributes
    ----------
    verdict : str
        "identical", "within 3.2e-12" (or another number), "different", "superseded" (later requests changed the model,
        and the proof is of its current state) or "not comparable here" (other hardware, versions or threads: the head
        alone is proved, from the stored features).
    proved : str
        "extractor and head", or "head".
    result : str
        The first three of the words above, for what was proved. "within" stands where a head is not decided: every
        such head's weights (in 2-norm) and bias are as near as the certificates say, which is no more than the number;
        all else has the same bytes.
    where : str
        What differs most, if anything does.
    largest_difference : float
    remains : str
        What the proof does not cover.
    seconds : float
    """

    verdict: str
    proved: str
    result: str
    where: str
    largest_difference: float
    remains: str
    seconds: float

    def __bool__(self) -> bool:
        return self.result == IDENTICAL or self.result.startswith(WITHIN)


def prove(receipt: Receipt, bundle: Bundle, dataset: Dataset) -> Verdict:
    """Train again on the retained records in a fresh process, and compare.

    Parameters
    ----------
    receipt : Receipt
        Of the request to prove.
    bundle : Bundle
        From `MaxRR.bundle`, of the same model.
    dataset : Dataset
        The raw records that the model has now, and no others.

    Raises
    ------
    ValueError
        The records are not those of the model, the bundle is damaged, its heads are of another canonical form, or
        their certificates are too wide to prove anything.
    """
    started = time.perf_counter()
    if dataset.content_hash() != bundle.manifest:
        raise ValueError(
            "the records are not those that the model retains: their content hash differs from its manifest. Bring "
            "every retained record, unchanged, and none of the forgotten ones"
        )
    if model_hash(bundle.extractor, bundle.classes, bundle.weights, bundle.intercepts) != bundle.model_hash:
        raise ValueError("the bundle is damaged: its weights do not have the hash that it names")
    if bundle.form != FORM:
        raise ValueError(
            f"the model's heads are in canonical form {bundle.form}, and this program makes form {FORM}: the same head "
            "has other bytes in each, so they are not compared. Use the maxrr that made the model, or fit it again"
        )
    if len(bundle.certificates) != len(bundle.weights):
        raise ValueError("the bundle is damaged: it does not have one certificate for each head")
    current = bundle.manifest, bundle.model_hash, bundle.form
    superseded = (receipt.manifest_after, receipt.model_after, receipt.form) != current
    setting = bundle.setting
    comparable = Environment.here(chosen_device(setting.device), setting.threads) == setting.environment
    seen = bundle.core_left_in_extractor or bundle.technique
    rebuilds = comparable and not setting.frozen and not seen
    home = type(setting.network) if isinstance(setting.network, nn.Module) else setting.network
    if "<" in getattr(home, "__qualname__", ""):
        raise ValueError(
            f"the network is made by {home.__qualname__}, which a fresh process cannot import: define it in a module"
        )
    importable = getattr(home, "__module__", None) != "__main__"
    fitted_on = bundle.fitted_on if bundle.on_influential else np.sort(dataset.ids)
    with without_the_script() if importable else nullcontext():
        pool = ProcessPoolExecutor(1, get_context("spawn"), initializer=end_with_the_parent)
        try:
            given = None if rebuilds else bundle.extractor
            stored = None if comparable else bundle.features
            made = pool.submit(rebuild, setting, bundle.choice, dataset, fitted_on, given, stored).result()
        finally:
            pool.shutdown(cancel_futures=True)
    expected = {WEIGHTS: bundle.weights, INTERCEPTS: bundle.intercepts}
    if rebuilds:
        expected |= state_of(bundle.extractor)
    rooms = [room(*pair, made.longest) for pair in zip(bundle.certificates, made.certificates, strict=False)]
    result, where, largest = compared(expected, made.weights, rooms)
    verdict = NOT_COMPARABLE if not comparable else SUPERSEDED if superseded else result
    forms = "" if receipt.form == bundle.form else other_form(receipt, bundle)
    remains = list(filter(None, [what_remains(bundle), forms, "" if comparable else as_stored(made.apart)]))
    proved = "extractor and head" if rebuilds else "head"
    return Verdict(verdict, proved, result, where, largest, "; ".join(remains), time.perf_counter() - started)


def as_stored(apart: float) -> str:
    """What it means that the head was proved from features that this machine did not make."""
    return (
        "the features are the stored ones, because this machine, its versions or threads are not those of the model: "
        f"made here by the stored extractor they differ by at most {apart:.1e} of the largest"
    )


def other_form(receipt: Receipt, bundle: Bundle) -> str:
    """That the hashes on a receipt cannot be those of the model."""
    return (
        f"the receipt is of heads in canonical form {receipt.form}, and the model's are in form {bundle.form}: the "
        "hashes that it names cannot be compared with the model's"
    )


def what_remains(bundle: Bundle) -> str:
    """What doing it again cannot show."""
    left = []
    if bundle.setting.frozen:
        left.append("the extractor was trained elsewhere: that it never saw the records is its owner's word")
    if bundle.technique:
        left.append(
            "the extractor was changed by a technique of the caller's: what remains in it is for an audit to say"
        )
    elif bundle.core_left_in_extractor:
        count = bundle.core_left_in_extractor
        left.append(f"the extractor was trained on {count} forgotten core records, and keeps what it learned from them")
    if bundle.on_influential:
        left.append(
            "the head was fitted on what is left of influential records alone, as this proof did: fitting on all "
            "retained ones gives another"
        )
    return "; ".join(left)


@dataclass(frozen=True, eq=False)
class Made:
    """What the fresh process made."""

    weights: dict[str, NDArray[Any]]  # of the heads, and of the extractor if that was trained again
    certificates: tuple[Certificate, ...]
    longest: float  # the length of the longest record that the heads were fitted on, as features
    apart: float  # how far stored features are from the ones made here


def rebuild(
    setting: Setting, choice: Choice, dataset: Dataset, fitted_on: NDArray[Any], extractor: nn.Module | None,
    stored: NDArray[np.float64] | None,
) -> Made:  # fmt: skip
    """In the fresh process: the weights of extractor and head, from the records; of the head alone if one is given.

    With stored features it is fitted on those.
    """
    ordered = dataset.in_order()
    trained = setting.extractor(ordered, choice) if extractor is None else extractor
    records = ordered if len(fitted_on) == len(ordered) else ordered.select(fitted_on)
    features = setting.features(trained, records)
    apart = 0.0 if stored is None else float(np.max(np.abs(features - stored)) / max(np.max(np.abs(stored)), 1e-300))
    used = features if stored is None else stored
    head = setting.head(used, records)
    found: dict[str, NDArray[Any]] = {WEIGHTS: head.coef_, INTERCEPTS: head.intercept_}
    longest = float(np.max(np.linalg.norm(np.asarray(used, dtype=np.float64), axis=1)))
    return Made(found | state_of(trained) if extractor is None else found, head.certificate_, longest, apart)


def state_of(extractor: nn.Module) -> dict[str, NDArray[Any]]:
    """The extractor's weights by name."""
    state: dict[str, torch.Tensor] = extractor.state_dict()
    return {f"extractor {name}": as_array(value.detach().cpu()) for name, value in state.items()}


Room = tuple[float, float] | None
"""How far apart the weights and the biases of a head may be; None where they must have the same bytes."""


def room(ours: Certificate, theirs: Certificate, longest: float) -> Room:
    """What two certificates of one head leave open: the model's, which is checked, and that of the fresh process."""
    if ours.decided and theirs.decided:
        return None
    if not 0.0 <= ours.weight_error * longest + ours.bias_error <= EXACT * ROUNDING:
        raise ValueError(
            f"the bundle proves nothing: a certificate in it leaves decision values open by more than {EXACT:.0e}, and "
            "no such head is exact"
        )
    return ours.weight_error + theirs.weight_error, ours.bias_error + theirs.bias_error


def compared(expected: Arrays, found: Arrays, rooms: Sequence[Room] = ()) -> tuple[str, str, float]:
    """How equal two sets of arrays are, where they differ most, and by how much.

    Bytes are compared, but for heads with room; such a head is never called identical, because nothing proves that the
    exact one has these bytes.
    """
    if expected.keys() != found.keys():
        return DIFFERENT, "the layers of the extractor", np.inf
    worst, where, same = 0.0, "", True
    given = {row: space for row, space in enumerate(rooms) if space is not None}
    for name, array in expected.items():
        other = found[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            return DIFFERENT, name, np.inf
        if array.tobytes() == other.tobytes():
            continue
        gaps = np.abs(array.astype(np.float64) - other.astype(np.float64))
        difference = float(np.max(np.nan_to_num(gaps, nan=np.inf, posinf=np.inf), initial=0.0))
        if difference >= worst:
            worst, where = difference, name
        if name in (WEIGHTS, INTERCEPTS):
            same = same and all(
                float(np.linalg.norm(gaps[row])) <= given[row][name == INTERCEPTS] if row in given
                else array[row].tobytes() == other[row].tobytes()
                for row in range(len(array))
            )  # fmt: skip
        else:
            same = False
    if not same:
        return DIFFERENT, where, worst
    if given:
        return f"{WITHIN} {rounded_up(max(map(max, given.values())))}", where, worst
    return IDENTICAL, where, worst
