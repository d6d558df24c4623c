"""From a fitted model to rows and the contents of files, and back. Nothing here touches a file."""

import itertools
from dataclasses import fields, replace
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data.arrays import scratch
from maxrr.data.fields import from_facts
from maxrr.errors import NetworkMissing, OtherNetwork, OtherWeights
from maxrr.files import from_plain, parse_json
from maxrr.files.strict_json import json_text
from maxrr.nets.initial_weights import given_weights
from maxrr.nets.naming import name_of
from maxrr.nets.probe import Fingerprint
from maxrr.nets.seeding import Network
from maxrr.nets.training_function import TrainingFunction
from maxrr.unlearning import codec
from maxrr.unlearning.blueprint import Blueprint, extractor_tensors
from maxrr.unlearning.facts import Durations, Facts, NetworkFacts, Secrets, Words
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.state import ModelState
from maxrr.unlearning.tombstones import Forgotten, Tombstone, Tombstones
from maxrr.workspace.folder import Folder
from maxrr.workspace.names import EXTRACTOR, HEADS, SECRETS
from maxrr.workspace.rows import ALIVE, CORE, LARGE, WAITING, Layout
from maxrr.workspace.states import FACTS, WORDS

Table = NDArray[np.void]
Ints = NDArray[np.int64]

TOGETHER = 1 << 14  # rows
PROBE = "features of made-up records"  # beside the weights of the extractor
CHANGED = {  # of a state, by a request that only erases
    "heads", "codes", "records", "choice", "tombstones", "receipts", "waiting", "people",
    "committed",
}  # fmt: skip
ALIKE = [field.name for field in fields(ModelState) if field.name not in CHANGED]
PLAIN = (bool, int, str, bytes, frozenset, tuple, Durations)  # what is compared by its value


def layout_of(fitted: ModelState) -> Layout:
    """Choose the smallest row that holds every record exactly."""
    records, heads = fitted.records, fitted.heads
    kept = heads._features_of(heads._rows[:1]).dtype
    small = kept.itemsize < 8 or all(is_small(heads._features_of(part)) for part in in_parts(heads._rows))
    features = kept.newbyteorder("<").str if kept.itemsize < 8 else "<f4" if small else "<f8"
    subjects = None if records.subjects is None else as_stored(records.subjects)
    weights = None if records.weights is None else "<f8"
    return Layout(as_stored(records.ids), subjects, features, heads.n_features_in_, weights)


def in_parts(rows: Ints) -> list[Ints]:
    """Split rows into parts whose features fit into memory."""
    return [rows[first : first + TOGETHER] for first in range(0, len(rows), TOGETHER)]


def is_small(features: NDArray[Any], kind: str = "<f4") -> bool:
    """Whether features are unchanged in a smaller type, by default float32."""
    with np.errstate(over="ignore"):
        return np.array_equal(features.astype(kind), features)


def fits(fitted: ModelState, layout: Layout, first: int) -> bool:
    """Whether rows of this layout hold all records from row `first` on exactly."""
    later = fitted.heads._rows[fitted.heads._rows >= first]
    ids, subjects = fitted.records.ids, fitted.records.subjects
    return (
        all(is_small(fitted.heads._features_of(part), layout.features) for part in in_parts(later))
        and as_stored(ids) == layout.ids
        and (subjects is None or as_stored(subjects) == layout.subjects)
    )


def as_stored(ids: NDArray[Any]) -> str:
    return ids.dtype.newbyteorder("<").str if ids.dtype.kind == "U" else "<i8"


def table_of(fitted: ModelState, layout: Layout, first: int = 0) -> Table:
    """Make the table of the records from row `first` on."""
    records = fitted.records
    table = scratch((len(records.ids) - first,), layout.row)
    held = fitted.heads._rows
    kinds = np.full(len(records.ids), ALIVE, np.uint8)
    kinds[fitted.core] |= CORE
    kinds[records.rows(fitted.waiting)] |= WAITING
    table["is"], table["label"], table["id"] = kinds[first:], records.labels[first:], records.ids[first:]
    table["record"], table["content"] = records.hashes[first:], records.contents[first:]
    if records.subjects is not None:
        table["subject"] = records.subjects[first:]
    if records.weights is not None:
        table["weight"] = records.weights[first:]
    for part in in_parts(held[held >= first]):
        table["features"][part - first] = fitted.heads._features_of(part)
    table[~records.alive[first:]] = np.zeros(1, layout.row)[0]
    return table


def heads_bytes(fitted: ModelState, facts: Facts, words: Words) -> bytes:
    """Make the content of the file of heads: their arrays, and facts and words about the model as metadata."""
    said = {FACTS: json_text(facts), WORDS: json_text(words)}
    return safetensors.numpy.save(codec.arrays_of_heads(fitted), metadata=said)


def extractor_bytes(fitted: ModelState) -> bytes:
    """Make the content of the extractor's file: its weights, and its features of made-up records."""
    probe = torch.tensor(fitted.fingerprint.features)
    return safetensors.torch.save({**extractor_tensors(fitted.extractor), PROBE: probe})


def only_erases(before: ModelState, after: ModelState) -> bool:
    """Whether two states differ by forgotten records alone, so that no file but that of rows has to change."""
    if len(after.records.ids) != len(before.records.ids) or after.records.class_names != before.records.class_names:
        return False
    chosen = [(each.unconditional, each.depended_on, each.details) for each in (before.choice, after.choice)]
    if chosen[0] != chosen[1] or not after.heads._has_heads_of(before.heads):
        return False
    alike = ((getattr(before, name), getattr(after, name)) for name in ALIKE)
    return all(one is other or (isinstance(one, PLAIN) and one == other) for one, other in alike)


def load(files: Folder, table: Table, network: Network | None, train: TrainingFunction | None = None) -> ModelState:
    """Make the model's state from the files that a folder has read and checked.

    Without a network it can do all that needs no extractor: plan, and forget what is not to be trained or embedded.
    """
    facts, words, parts = files.facts, files.words, files.parts
    secrets = from_plain(Secrets, parse_json(parts[SECRETS].decode()))
    weights = safetensors.torch.load(parts[EXTRACTOR])
    probe = weights.pop(PROBE).numpy()
    extractor: nn.Module = Unmade(weights, facts.network)
    maker = extractor if network is None else network
    blueprint = codec.blueprint_of(facts, words.class_weight, secrets.core, maker, train)
    if network is not None:
        try:
            extractor = blueprint.stored_extractor(weights)
            now = Fingerprint.of(extractor, facts.shape, from_facts(facts.dtype))
            if differs := now.differs_from(Fingerprint(facts.layers, probe), exactly=blueprint.is_at_home):
                raise ValueError(f"{differs}. Bring the code of the network as it was, or fit again")
        except OtherWeights:
            raise
        except ValueError as error:
            raise OtherNetwork(f"the workspace was fitted with another network: {error}") from error
        check_given(blueprint)
    if blueprint.frozen:  # what is used again is what was used, whatever the maker gives today
        blueprint = replace(blueprint, network=extractor)
    records = records_of(facts, words, table)
    features = table["features"]
    if table.nbytes <= LARGE:
        features = np.ascontiguousarray(features, dtype=np.float64)
    core, waiting = (np.sort(records.ids[(table["is"] & kind) > 0]) for kind in (CORE, WAITING))
    held = codec.Held(
        records, features, core, waiting, Tombstones(itertools.starmap(Tombstone, files.tombstones)),
        {person: Forgotten(*then) for person, then in files.people.items()},
        [each.digest for each in files.answers], files.stored.last.commitment,
    )  # fmt: skip
    arrays = safetensors.numpy.load(parts[HEADS])
    return codec.fitted_of(facts, words, secrets, blueprint, extractor, probe, arrays, held)


def check_given(blueprint: Blueprint) -> None:
    """Refuse a network that brings other given weights than the fitted one, because the next training would start from
    them.
    """
    named = name_of(blueprint.network)
    if blueprint.frozen or blueprint.start is not None or (named is not None and named.our_own):
        return
    if given_weights(blueprint.network) != dict(blueprint.given):
        raise OtherNetwork("the network brings along other weights than the one that was fitted: name that one")


class Unmade(nn.Module):
    """The weights of an extractor without its layers, which only somebody's own code can make."""

    def __init__(self, weights: dict[str, Tensor], named: NetworkFacts | None) -> None:
        super().__init__()
        self.weights = weights
        self.maker = None if named is None else named.maker

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:  # type: ignore[override]
        return dict(self.weights)

    def named_modules(self, *_: Any, **__: Any) -> Any:
        raise NetworkMissing(self.maker)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        raise NetworkMissing(self.maker)


def records_of(facts: Facts, words: Words, table: Table) -> HeldRecords:
    """The records, without their inputs."""
    names = table.dtype.names or ()
    subjects = np.array(table["subject"]) if "subject" in names else None
    return HeldRecords(
        None, from_facts(facts.dtype), facts.shape, table["label"].astype(np.int64), np.array(table["id"]),
        subjects, words.class_names, np.array(table["record"]), np.array(table["content"]),
        (table["is"] & ALIVE) > 0, words.columns,
        np.array(table["weight"]) if "weight" in names else None,
    )  # fmt: skip
