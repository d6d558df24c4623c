"""From a fitted model to what the files hold, and back. Nothing here touches a file."""

import itertools
import json
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import safetensors.torch
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr.data.arrays import scratch
from maxrr.data.fields import as_facts, from_facts
from maxrr.errors import WorkspaceError
from maxrr.nets.initial_weights import given_weights
from maxrr.nets.naming import name_of
from maxrr.nets.own_training import TrainingFunction
from maxrr.nets.probe import Fingerprint
from maxrr.nets.seeding import Network
from maxrr.svm.problem import Flags
from maxrr.svm.snapshot import HeadState, restored, taken
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.commitment import Commitment
from maxrr.unlearning.durations import Durations
from maxrr.unlearning.facts import (
    blueprint_facts,
    blueprint_of,
    certificate_of,
    checked_flag,
    choice_facts,
    choice_of,
    core_facts,
    core_key,
    core_of,
    people_of,
    stale_of,
    stored_extractor,
    untrained_of,
    weights_of,
)
from maxrr.unlearning.id_sets import IdSet
from maxrr.unlearning.layers import Layered, Row
from maxrr.unlearning.overrides import Override
from maxrr.unlearning.receipts import Loss
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.set_aside import SetAside
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Columns, Stones, Tombstone, Tombstones
from maxrr.workspace.entries import Entries
from maxrr.workspace.errors import NetworkMissing
from maxrr.workspace.names import EXTRACTOR, HEADS, SECRETS
from maxrr.workspace.rows import ALIVE, CORE, LARGE, LATE, WAITING, Layout
from maxrr.workspace.states import FACTS

Table = NDArray[np.void]
Ints = NDArray[np.int64]

TOGETHER = 1 << 14  # rows
PROBE = "features of made-up records"  # beside the weights of the extractor
CHANGED = {  # of a state, by a request that only erases
    "heads", "codes", "records", "choice", "tombstones", "receipts", "late", "waiting", "people", "derived",
    "committed",
}  # fmt: skip
ALIKE = [field.name for field in fields(Fitted) if field.name not in CHANGED]
PLAIN = (bool, int, str, bytes, frozenset, tuple, Durations)  # what is compared by its value


def layout_of(fitted: Fitted) -> Layout:
    """The leanest rows that hold everything of the records exactly."""
    records, heads = fitted.records, fitted.heads
    kept = heads.features_of(heads.rows_[:1]).dtype
    small = kept.itemsize < 8 or all(is_small(heads.features_of(part)) for part in in_parts(heads.rows_))
    features = kept.newbyteorder("<").str if kept.itemsize < 8 else "<f4" if small else "<f8"
    subjects = None if records.subjects is None else as_stored(records.subjects)
    weights = None if records.weights is None else "<f8"
    return Layout(as_stored(records.ids), subjects, features, heads.n_features_in_, weights)


def in_parts(rows: Ints) -> list[Ints]:
    """Rows that are looked at together: not so many that their features fill the memory."""
    return [rows[first : first + TOGETHER] for first in range(0, len(rows), TOGETHER)]


def is_small(features: NDArray[Any], kind: str = "<f4") -> bool:
    """Whether a type, by default float32, holds them exactly."""
    with np.errstate(over="ignore"):
        return np.array_equal(features.astype(kind), features)


def fits(fitted: Fitted, layout: Layout, first: int) -> bool:
    """Whether rows of this layout hold everything of the records from some row on exactly."""
    later = fitted.heads.rows_[fitted.heads.rows_ >= first]
    ids, subjects = fitted.records.ids, fitted.records.subjects
    return (
        all(is_small(fitted.heads.features_of(part), layout.features) for part in in_parts(later))
        and as_stored(ids) == layout.ids
        and (subjects is None or as_stored(subjects) == layout.subjects)
    )


def as_stored(ids: NDArray[Any]) -> str:
    return ids.dtype.newbyteorder("<").str if ids.dtype.kind == "U" else "<i8"


def table_of(fitted: Fitted, layout: Layout, first: int = 0) -> Table:
    """The rows of the records, from some row on."""
    records = fitted.records
    table = scratch((len(records.ids) - first,), layout.row)
    held = fitted.heads.rows_
    kinds = np.full(len(records.ids), ALIVE, np.uint8)
    kinds[fitted.core] |= CORE
    kinds[records.rows(fitted.late.array())] |= LATE
    kinds[records.rows(fitted.waiting.array())] |= WAITING
    table["is"], table["label"], table["id"] = kinds[first:], records.labels[first:], records.ids[first:]
    table["record"], table["content"] = records.hashes[first:], records.contents[first:]
    if records.subjects is not None:
        table["subject"] = records.subjects[first:]
    if records.weights is not None:
        table["weight"] = records.weights[first:]
    for part in in_parts(held[held >= first]):
        table["features"][part - first] = fitted.heads.features_of(part)
    table[~records.alive[first:]] = np.zeros(1, layout.row)[0]
    return table


def heads_bytes(fitted: Fitted, facts: Mapping[str, Any]) -> bytes:
    """The heads' weights, where they came from, and all that is said of the model in words."""
    arrays: dict[str, NDArray[Any]] = {}
    for number, head in enumerate(taken(fitted.heads)):
        arrays |= {
            f"{number}.w": head.w, f"{number}.b": np.array([head.b]), f"{number}.on_margin": head.on_margin,
            f"{number}.inside": head.inside, f"{number}.multipliers": head.multipliers,
        }  # fmt: skip
    arrays = {name: np.ascontiguousarray(value) for name, value in arrays.items()}
    return safetensors.numpy.save(arrays, metadata={FACTS: json.dumps(facts)})


def extractor_bytes(fitted: Fitted) -> bytes:
    """The extractor's weights, and its features of made-up records."""
    probe = torch.tensor(fitted.fingerprint.features)
    return safetensors.torch.save({**weights_of(fitted.extractor), PROBE: probe})


def secret_bytes(fitted: Fitted) -> bytes:
    """The model's key, that of the core, and the secret of the commitment's salts."""
    said = {"key": fitted.key.hex(), "core": core_key(fitted.blueprint.core), "secret": fitted.secret.hex()}
    return json.dumps(said).encode()


def facts_of(fitted: Fitted) -> dict[str, Any]:
    """What lies beside the heads of a model: all that is not an array or a secret."""
    blueprint, choice, records = fitted.blueprint, fitted.choice, fitted.records
    return {
        "layers": fitted.fingerprint.layers,
        "core": core_facts(blueprint.core),
        "blueprint": blueprint_facts(blueprint),
        "choice": choice_facts(choice),
        "records": {
            "dtype": as_facts(records.dtype), "shape": list(records.shape), "classes": list(records.class_names),
            "columns": None if records.columns is None else list(records.columns),
            **({"former_columns": fitted.tombstones.orders} if fitted.tombstones.orders else {}),
        },
        "labels": {"dtype": fitted.labels.dtype.str, "values": fitted.labels.tolist()},
        "heads": [{"label": head.label, "certificate": asdict(head.certificate)} for head in taken(fitted.heads)],
        "durations": asdict(fitted.durations),
        "layouts": fitted.layouts,
        "left": sorted(id_hmac.hex() for id_hmac in fitted.left),
        "overrides": [asdict(override) for override in fitted.overrides],
        "technique": fitted.technique,
        "model_hash": fitted.model_hash,
        **({"losses": [asdict(loss) for loss in fitted.losses]} if fitted.losses else {}),
        **({"adopted": True} if fitted.adopted else {}),
        **({"set_aside": asdict(fitted.set_aside)} if fitted.set_aside else {}),
        **({"untrained": sorted(fitted.untrained)} if fitted.untrained else {}),
        **({"stale": sorted(fitted.stale)} if fitted.stale and blueprint.sharding.count > 1 else {}),
    }  # fmt: skip


def only_erases(before: Fitted, after: Fitted) -> bool:
    """Whether a state differs from the one before by records that are gone, and what is known of them, alone."""
    if len(after.records.ids) != len(before.records.ids) or after.records.class_names != before.records.class_names:
        return False
    if choice_facts(after.choice) != choice_facts(before.choice) or not after.heads.has_heads_of(before.heads):
        return False
    alike = ((getattr(before, name), getattr(after, name)) for name in ALIKE)
    return all(one is other or (isinstance(one, PLAIN) and one == other) for one, other in alike)


def load(
    facts: Mapping[str, Any], table: Table, parts: Mapping[str, bytes], entries: Entries,
    network: Network | None, train: TrainingFunction | None = None,
) -> Fitted:  # fmt: skip
    """The model that the files hold. The caller has checked their hashes.

    Without a network it can do all that needs no extractor: plan, and forget what is not to be trained or embedded.
    """
    known = json.loads(parts[SECRETS])
    weights = safetensors.torch.load(parts[EXTRACTOR])
    fingerprint = Fingerprint(facts["layers"], weights.pop(PROBE).numpy())
    core = core_of(facts["core"], known["core"])
    if network is None:
        extractor: nn.Module = Unmade(weights, facts["network"])
        blueprint = blueprint_of(facts["blueprint"], extractor, core, train)
    else:
        blueprint = blueprint_of(facts["blueprint"], network, core, train)
        try:
            extractor = stored_extractor(blueprint, weights)
            check_recognised(blueprint, extractor, fingerprint, facts["records"])
        except ValueError as error:
            raise WorkspaceError(f"the workspace was fitted with another network: {error}") from error
        check_given(blueprint)
    if blueprint.frozen:  # what is used again is what was used, whatever the maker gives today
        blueprint = replace(blueprint, network=extractor)
    records = records_of(facts["records"], table)
    features = table["features"]
    if table.nbytes <= LARGE:
        features = np.ascontiguousarray(features, dtype=np.float64)
    states = heads_of(facts["heads"], parts[HEADS])
    heads = restored(
        blueprint.C, features, records.labels, records.alive, states,
        sample_weight=blueprint.weights_of(records), copy_X=False,
    )  # fmt: skip
    core_ids, late, waiting = (np.sort(records.ids[(table["is"] & kind) > 0]) for kind in (CORE, LATE, WAITING))
    labels = np.array(facts["labels"]["values"], dtype=facts["labels"]["dtype"])
    left = frozenset(map(bytes.fromhex, facts["left"]))
    tombstones = Stones(itertools.starmap(Tombstone, entries.stones))
    fitted = Fitted(
        blueprint, extractor, fingerprint, heads, records, choice_of(facts["choice"], core_ids),
        labels, by_place(labels, records), bytes.fromhex(known["key"]), bytes.fromhex(known["secret"]),
        Tombstones(tombstones, orders_of(facts["records"])), Durations(**facts["durations"]),
        left=left, stale=stale_of(facts, blueprint, left),
        untrained=untrained_of(facts, blueprint), technique=facts["technique"],
        receipts=Row(each.digest for each in entries.answered),
        overrides=tuple(Override(**override) for override in facts["overrides"]), layouts=facts["layouts"],
        late=IdSet(late), waiting=IdSet(waiting), people=Layered(people_of(entries.people)),
        adopted=checked_flag(facts, "adopted"), committed=Commitment(facts["commitment"]),
        losses=tuple(Loss(**loss) for loss in facts.get("losses", ())),
        set_aside=SetAside(**facts["set_aside"]) if "set_aside" in facts else None,
    )  # fmt: skip
    return fitted


def check_recognised(
    blueprint: Blueprint, extractor: nn.Module, known: Fingerprint, records: Mapping[str, Any]
) -> None:  # fmt: skip
    """Refuse a network that computes something else with the stored weights than the one that was fitted."""
    found = Fingerprint.of(extractor, tuple(records["shape"]), from_facts(records["dtype"]))
    if differs := found.differs_from(known, exactly=blueprint.is_at_home):
        raise ValueError(f"{differs}. Bring the code of the network as it was, or fit again")


def check_given(blueprint: Blueprint) -> None:
    """Refuse a network that brings along other weights than the fitted one: they would enter the next training."""
    named = name_of(blueprint.network)
    if blueprint.frozen or (named is not None and named.our_own):
        return
    if given_weights(blueprint.network) != dict(blueprint.given):
        raise WorkspaceError(
            "the network brings along other weights than the one that was fitted, such as frozen or pretrained ones: "
            "name the network that was"
        )


class Unmade(nn.Module):
    """The weights of an extractor without its layers, which only somebody's own code can make."""

    def __init__(self, weights: dict[str, Tensor], named: Mapping[str, Any] | None) -> None:
        super().__init__()
        self.weights = weights
        self.maker: str | None = None if named is None else named["maker"]

    def state_dict(self, *_: Any, **__: Any) -> dict[str, Tensor]:  # type: ignore[override]
        return dict(self.weights)

    def named_modules(self, *_: Any, **__: Any) -> Any:
        raise NetworkMissing(self.maker)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        raise NetworkMissing(self.maker)


def records_of(facts: Mapping[str, Any], table: Table) -> HeldRecords:
    """The records, without their inputs."""
    names = table.dtype.names or ()
    subjects = np.array(table["subject"]) if "subject" in names else None
    return HeldRecords(
        None, from_facts(facts["dtype"]), tuple(facts["shape"]), table["label"].astype(np.int64), np.array(table["id"]),
        subjects, tuple(facts["classes"]), np.array(table["record"]), np.array(table["content"]),
        Flags((table["is"] & ALIVE) > 0), None if facts["columns"] is None else tuple(facts["columns"]),
        np.array(table["weight"]) if "weight" in names else None,
    )  # fmt: skip


def orders_of(facts: Mapping[str, Any]) -> tuple[Columns, ...]:
    """The orders of columns in which the values of forgotten records were hashed before the present one."""
    return tuple(None if columns is None else tuple(columns) for columns in facts.get("former_columns", ()))


def by_place(labels: NDArray[Any], records: HeldRecords) -> bool:
    """Whether classes are known by their places, as those of datasets are, which alone a workspace is fitted on."""
    return np.array_equal(labels[records.present], records.present)


def heads_of(facts: list[Any], content: bytes) -> list[HeadState]:
    arrays = safetensors.numpy.load(content)
    return [
        HeadState(
            head["label"], arrays[f"{number}.w"], float(arrays[f"{number}.b"][0]), arrays[f"{number}.on_margin"],
            arrays[f"{number}.inside"], arrays[f"{number}.multipliers"], certificate_of(head["certificate"]),
        )
        for number, head in enumerate(facts)
    ]  # fmt: skip
