"""What a model becomes by an action: each function returns the next state, and changes nothing of the present one."""

import copy
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets.networks import parts_of
from maxrr.nets.probe import Fingerprint
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm.estimator import LinearSVM
from maxrr.svm.problem import changed
from maxrr.unlearning.actions import Action
from maxrr.unlearning.commitment import Commitment, TreeRecord
from maxrr.unlearning.records import HeldRecords, Ints, shuffled
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import CORE_FACTS, MODEL_FACTS, ModelState, reuse
from maxrr.unlearning.tombstones import Tombstone, id_hmac


def carry_out(
    before: ModelState, action: Action, request: Request, tombstones: Sequence[Tombstone], progress: Progress | None,
    engine: EngineLike = None,
) -> ModelState:  # fmt: skip
    """Return the state after an action. The records that leave are not erased yet.

    What it costs to forget records that shape nothing does not grow with the records.
    """
    then = without_records(before, request, tombstones)
    if action is Action.nothing:
        return reuse(then, before, *MODEL_FACTS)
    if request.added is not None:
        then = with_added(then, request)
    left = before.records.labels[request.rows]
    then = without_names(then, np.unique(left[then.records.counts[left] == 0]))
    if action is Action.retrain:
        trained, then = then.to_train, with_extractor(then, progress, engine)
        then = with_heads(then, progress, before, trained, request)
    elif action is Action.technique:
        then = with_heads(by_technique(before, then, request), progress, before, frozenset({0}), request)
    elif request.added is not None:
        features = then.blueprint.embed(then.extractor, request.added)
        weights, labels = then.blueprint.sample_weights(request.added), request.added.labels
        heads = before.blueprint.move_heads(
            before.heads, len(request.added),
            lambda heads: heads._with_more(features, labels, instead_of=request.rows, sample_weight=weights),
        )  # fmt: skip
        then = replace(then, heads=heads)
    else:
        shaping = int(before.heads._influential_among(request.rows)[0].sum())
        heads = before.blueprint.move_heads(before.heads, shaping, lambda heads: heads._without(request.rows))
        then = (changed if heads._has_heads_of(before.heads) else replace)(then, heads=heads)
    then = changed(then, committed=commitment_after(before, request))
    if not len(request.core_rows) and not action.fits_anew and request.added is None:
        reuse(then, before, *CORE_FACTS)
    if request.added is None and then.heads._has_heads_of(before.heads):
        reuse(then, before, *MODEL_FACTS)
    return reuse(then, before, "extractor_hash") if then.extractor is before.extractor else then


def commitment_after(now: ModelState, request: Request) -> Commitment:
    """Return the commitment without the records that leave, and with those that arrive."""
    records, rows, added = now.records, request.rows, request.added
    whose = None if records.subjects is None else records.subjects[rows]
    leaving = tree_records(now.secret, records.ids[rows], whose, records.hashes[rows])
    arriving = [] if added is None else tree_records(now.secret, added.ids, added.subjects, added.record_hashes())
    return now.committed.after(now.tree(), leaving, arriving)


def tree_records(
    secret: bytes, ids: NDArray[Any], subjects: NDArray[Any] | None, hashes: NDArray[np.uint8]
) -> list[TreeRecord]:
    """Find where records stand in a tree."""
    whose: list[Any] = [None] * len(ids) if subjects is None else subjects.tolist()
    found = zip(ids.tolist(), whose, hashes, strict=True)
    return [TreeRecord.of(secret, id_, subject, digest.tobytes()) for id_, subject, digest in found]


def without_records(now: ModelState, request: Request, tombstones: Sequence[Tombstone]) -> ModelState:
    """Return the state without the requested records, which become tombstones. Extractor, heads and commitment stay."""
    rows, before = request.rows, now.records
    leaving = before.ids[rows]
    replaced = request.added is not None
    leaves_the_queue = len(now.waiting) and not replaced and np.isin(leaving, now.waiting).any()
    then = changed(
        now,
        records=before.without(rows),
        tombstones=now.tombstones.with_more(tombstones),
        waiting=np.setdiff1d(now.waiting, leaving) if leaves_the_queue else now.waiting,
    )
    if not len(request.core_rows):
        return reuse(then, now, *CORE_FACTS)
    kept = now.core.copy()
    kept[request.core_rows] = False
    core = before.ids[request.core_rows]
    return replace(
        then,
        choice=replace(now.choice, ids=np.sort(before.ids[kept])),
        in_extractor=now.in_extractor | {id_hmac(now.key, id_, replaced=replaced) for id_ in core.tolist()},
        stale=now.stale | set(before.shards(now.blueprint.sharding, request.core_rows).tolist()),
    )


def with_extractor(then: ModelState, progress: Progress | None, engine: EngineLike) -> ModelState:
    """Train the extractor again on the retained core; of several shards only those that saw forgotten records."""
    retained = then.records.retained()
    blueprint = then.blueprint
    core = blueprint.core_ids(retained.ids, retained.subjects, then.choice.ids, then.waiting)
    choice = replace(then.choice, ids=core)
    extractor = blueprint.train_some(retained, choice, then.extractor, then.to_train, progress, engine)
    extractor, fingerprint = blueprint.rebuilt(extractor, retained.shape, retained.inputs.dtype)
    untrained = then.untrained - then.to_train | blueprint.untrained(retained, choice, then.to_train)
    return replace(
        then, extractor=extractor, fingerprint=fingerprint, choice=choice, in_extractor=frozenset(), stale=frozenset(),
        untrained=untrained, technique=False, adopted=False,
    )  # fmt: skip


def by_technique(now: ModelState, then: ModelState, request: Request) -> ModelState:
    """Let the caller's function make another extractor from the one that saw the records."""
    assert callable(request.core_policy)
    core, leaving = then.records.retained().select(then.choice.ids), now.records.select(request.core_rows)
    heads = as_layer(now.heads, len(now.records.class_names))
    extractor = request.core_policy(copy.deepcopy(now.extractor), core, leaving, heads)
    if not isinstance(extractor, nn.Module):
        raise ValueError(f"core_policy should return another extractor, a torch.nn.Module, not {extractor!r}")
    extractor = extractor.cpu().eval()
    if Fingerprint.of(extractor, core.shape, core.inputs.dtype).layers != now.fingerprint.layers:
        raise DataError("core_policy returned other layers: return the given extractor with other weights")
    extractor, fingerprint = now.blueprint.rebuilt(extractor, core.shape, core.inputs.dtype)
    return replace(then, extractor=extractor, fingerprint=fingerprint, technique=True)


def as_layer(heads: LinearSVM, classes: int) -> nn.Linear:
    """Copy the heads into a layer with a row for each class; one without a head says −1 of every record."""
    layer = nn.Linear(heads.coef_.shape[1], classes, device="meta").to_empty(device="cpu")  # draws no random numbers
    signs = np.array([-1.0, 1.0]) if len(heads.coef_) == 1 else np.ones(len(heads.coef_))  # two classes have one head
    with torch.no_grad():
        layer.weight.zero_()
        layer.bias.fill_(-1.0)
        layer.weight[heads.classes_] = torch.tensor(signs[:, None] * heads.coef_, dtype=torch.float32)
        layer.bias[heads.classes_] = torch.tensor(signs * heads.intercept_, dtype=torch.float32)
    return layer


def features_then(
    now: ModelState, then: ModelState, trained: Collection[int], retained: Dataset, fresh: NDArray[Any],
    progress: Progress | None,
) -> NDArray[Any]:  # fmt: skip
    """Return the features of all retained records: computed anew for the shards `trained`, copied for the others.

    All are computed anew where they were made on another machine; and those of records that are `fresh`.
    """
    blueprint, parts = then.blueprint, parts_of(then.extractor)
    if len(parts) == 1 or not blueprint.is_at_home:
        return blueprint.embed(then.extractor, retained, progress)
    known = ~np.isin(retained.ids, fresh)
    before = now.heads._features_of(now.records.rows(retained.ids[known]))
    blocks = {shard: blueprint.embed(parts[shard], retained, progress) for shard in sorted(trained)}
    width = before.shape[1] // len(parts)
    features = np.empty((len(retained), before.shape[1]), dtype=next(iter(blocks.values())).dtype)
    features[known] = before
    if not known.all():
        features[~known] = blueprint.embed(then.extractor, retained.select(retained.ids[~known]))
    for shard, block in blocks.items():
        features[:, shard * width : (shard + 1) * width] = block
    return features


def with_added(then: ModelState, request: Request) -> ModelState:
    """Return the state with more records. Added records that the rule makes core wait for the next fit."""
    assert request.added is not None
    then = replace(then, records=then.records.with_added(HeldRecords.of(request.added)))
    added = request.added
    waiting = then.blueprint.core_by_rule(added.ids, added.subjects) if request.adds else ()
    return replace(then, waiting=np.union1d(then.waiting, waiting)) if len(waiting) else then


def without_names(then: ModelState, gone: Ints) -> ModelState:
    """The state without the names and weights of classes that lost their last record."""
    if not len(gone):
        return then
    names = {then.records.class_names[code] for code in gone.tolist()}
    weights = {name: weight for name, weight in then.blueprint.class_weight.items() if name not in names}
    blueprint = replace(then.blueprint, class_weight=weights)
    return replace(then, records=then.records.without_names(gone), blueprint=blueprint)


def with_heads(
    then: ModelState, progress: Progress | None, now: ModelState, trained: Collection[int], request: Request
) -> ModelState:
    """Fit the heads from scratch on all retained records, which get new rows without gaps.

    Only the extractors of the shards `trained` are not those of the state before.
    """
    retained = shuffled(then.records.retained(), then.key)
    fresh = retained.ids[:0] if request.added is None else request.added.ids
    features = features_then(now, then, trained, retained, fresh, progress)
    heads = then.blueprint.fit_heads(features, retained)
    records = HeldRecords.of(retained, copy=False, before=then.records)
    return replace(then, records=records, heads=heads, layouts=then.layouts + 1)
