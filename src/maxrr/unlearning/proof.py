"""Proof by doing it again: a fresh process trains from the raw retained records, and the bytes are compared.

It gets the recipe, never the features or weights; those of the model are only there to be compared with. What cannot be
done again is said: an extractor that saw forgotten records cannot come out of the retained ones, so then the proof is
of the head on that extractor.
"""

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.nets import Environment, Recipe, embed, split, train
from maxrr.nets.records import chosen_device
from maxrr.nets.runs import as_array
from maxrr.nets.seeding import Network
from maxrr.svm import LinearSVM
from maxrr.svm.processes import without_the_script
from maxrr.unlearning.receipts import Receipt

IDENTICAL, EQUAL, DIFFERENT = "identical", "equal to 1e-10", "different"
SUPERSEDED, NOT_COMPARABLE = "superseded", "not comparable here"
TOLERANCE = 1e-10

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Bundle:
    """What whoever runs the model keeps to prove its state: the recipe, and what to compare with. Not for the public:
    it names the core records.
    """

    network: Network
    frozen: bool  # the network is the extractor, and was not trained here
    core_ids: NDArray[Any]
    seed: int
    recipe: Recipe
    C: float
    device: str | None
    environment: Environment
    manifest: str
    model_hash: str
    extractor: nn.Module
    weights: NDArray[np.float64]  # of the head
    intercepts: NDArray[np.float64]
    core_left_in_extractor: int
    technique: bool  # the extractor was changed by somebody's function
    on_influential: bool

    def __repr__(self) -> str:
        return f"<Bundle of model {self.model_hash[:12]}…, {len(self.core_ids)} core records>"


@dataclass(frozen=True)
class Verdict:
    """What came of a proof.

    Attributes
    ----------
    verdict : str
        "identical", "equal to 1e-10", "different", "superseded" (later requests changed the model, and the proof is of
        its current state) or "not comparable here" (other hardware, versions or threads: the head alone is proved).
    proved : str
        "extractor and head", or "head".
    result : str
        The first three of the words above, for what was proved.
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
        return self.result in (IDENTICAL, EQUAL)


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
    """
    started = time.perf_counter()
    if dataset.content_hash() != bundle.manifest:
        raise ValueError(
            "the records are not those that the model retains: their content hash differs from its manifest. Bring "
            "every retained record, unchanged, and none of the forgotten ones"
        )
    superseded = receipt.manifest_after != bundle.manifest or receipt.model_after != bundle.model_hash
    here = Environment.here(chosen_device(bundle.device), bundle.environment.threads)
    comparable = here == bundle.environment
    remains = what_remains(bundle)
    rebuilds = comparable and not bundle.frozen and not bundle.core_left_in_extractor and not bundle.technique
    importable = type(bundle.network).__module__ != "__main__"
    with without_the_script() if importable else nullcontext():
        pool = ProcessPoolExecutor(1, get_context("spawn"))
        try:
            found = pool.submit(rebuild, bundle if not rebuilds else untrained(bundle), dataset, rebuilds).result()
        finally:
            pool.shutdown(cancel_futures=True)
    expected = {"head weights": bundle.weights, "head intercepts": bundle.intercepts}
    if rebuilds:
        expected |= state_of(bundle.extractor)
    result, where, largest = compared(expected, found)
    verdict = NOT_COMPARABLE if not comparable else SUPERSEDED if superseded else result
    proved = "extractor and head" if rebuilds else "head"
    return Verdict(verdict, proved, result, where, largest, remains, time.perf_counter() - started)


def what_remains(bundle: Bundle) -> str:
    """What doing it again cannot show."""
    if bundle.frozen:
        return "the extractor was trained elsewhere: that it never saw the records is its owner's word"
    if bundle.technique:
        return "the extractor was changed by a technique of the caller's: what remains in it is for an audit to say"
    if bundle.on_influential:
        return "the head was fitted on influential records alone: fitting on all retained ones gives another"
    if bundle.core_left_in_extractor:
        count = bundle.core_left_in_extractor
        return f"the extractor was trained on {count} forgotten core records, and keeps what it learned from them"
    return ""


def untrained(bundle: Bundle) -> Bundle:
    """The bundle without a single weight of the model: those the other process shall find by itself."""
    nothing = np.zeros(0)
    return replace(bundle, extractor=nn.Identity(), weights=nothing, intercepts=nothing)


def rebuild(bundle: Bundle, dataset: Dataset, train_extractor: bool) -> dict[str, NDArray[Any]]:
    """In the fresh process: the weights of extractor and head, from the records."""
    ordered = dataset.in_order()
    extractor = bundle.extractor
    if train_extractor:
        core = ordered.select(np.intersect1d(bundle.core_ids, ordered.ids))
        run = train(
            bundle.network, core, bundle.seed, epochs=bundle.recipe.epochs, batch_size=bundle.recipe.batch_size,
            lr=bundle.recipe.lr, device=bundle.device, threads=bundle.environment.threads,
        )  # fmt: skip
        extractor = split(run.network)[0]
    features = embed(extractor, ordered, device=bundle.device)
    head = LinearSVM(C=bundle.C).fit(features, ordered.labels, keys=ordered.ids)
    found: dict[str, NDArray[Any]] = {"head weights": head.coef_, "head intercepts": head.intercept_}
    return found | state_of(extractor) if train_extractor else found


def state_of(extractor: nn.Module) -> dict[str, NDArray[Any]]:
    """The extractor's weights by name."""
    state: dict[str, torch.Tensor] = extractor.state_dict()
    return {f"extractor {name}": as_array(value.detach().cpu()) for name, value in state.items()}


def compared(expected: Arrays, found: Arrays) -> tuple[str, str, float]:
    """How equal two sets of arrays are, where they differ most, and by how much."""
    if expected.keys() != found.keys():
        return DIFFERENT, "the layers of the extractor", np.inf
    worst, where = 0.0, ""
    same = True
    for name, array in expected.items():
        other = found[name]
        if array.shape != other.shape or array.dtype != other.dtype:
            return DIFFERENT, name, np.inf
        if array.tobytes() != other.tobytes():
            same = False
            difference = float(np.max(np.abs(array.astype(np.float64) - other.astype(np.float64)), initial=0.0))
            if difference >= worst:
                worst, where = difference, name
    return (IDENTICAL if same else EQUAL if worst <= TOLERANCE else DIFFERENT), where, worst
