"""What a model becomes by an action: each function returns the next state, and changes nothing of the present one."""

import copy
from collections.abc import Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets.networks import parts_of
from maxrr.nets.probe import Fingerprint
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm.problem import changed
from maxrr.unlearning.actions import Action
from maxrr.unlearning.classes import of_gone_class
from maxrr.unlearning.commitment import Commitment, TreeRecord
from maxrr.unlearning.extractors import kept
from maxrr.unlearning.records import HeldRecords, Ints, shuffled
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import CORE_FACTS, MODEL_FACTS, Fitted, reuse, with_classes
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, Tombstones, id_hmac, tombstones_of


def carry_out(
    before: Fitted, action: Action, request: Request, progress: Progress | None, engine: EngineLike = None
) -> Fitted:  # fmt: skip
    """The model after an action. What it holds of the records that leave is not erased yet.

    What it costs to forget records that shape nothing does not grow with the records.
    """
    now = with_classes(before, request.classes)
    then = without_records(now, request)
    if action is Action.nothing:
        return reuse(then, before, *MODEL_FACTS)
    if request.added is not None:
        then = with_added(then, request)
    then = without_names(then, classes_gone(now, then, request.rows))
    if action is Action.retrain:
        trained, then = then.to_train, with_extractor(then, progress, engine)
        then = with_heads(then, progress, now, trained, request)
    elif action is Action.technique:
        then = with_heads(by_technique(now, then, request), progress, now, frozenset({0}), request)
    elif request.added is not None:
        features = then.blueprint.embed(then.extractor, request.added)
        weights = then.blueprint.weights_of(request.added)
        heads = now.heads._with_more(features, request.added.labels, instead_of=request.rows, sample_weight=weights)
        then = changed(then, heads=heads)
    else:
        then = changed(then, heads=now.heads._without(request.rows))
    then = changed(then, committed=commitment_after(before, request))
    then.__post_init__()
    if not len(request.core_rows) and not action.fits_anew and request.added is None:
        reuse(then, before, *CORE_FACTS)
    if request.added is None and then.heads._has_heads_of(before.heads):
        reuse(then, before, *MODEL_FACTS)
    return reuse(then, before, "extractor_hash") if then.extractor is before.extractor else then


def classes_gone(now: Fitted, then: Fitted, rows: Ints) -> Ints:
    """The classes that have lost their last record, by that the records in these rows have left."""
    left = now.records.labels[rows]
    return np.unique(left[then.records.counts[left] == 0])


def commitment_after(now: Fitted, request: Request) -> Commitment:
    """The commitment without the records that leave, and with those that arrive."""
    records, rows, added = now.records, request.rows, request.added
    whose = None if records.subjects is None else records.subjects[rows]
    leaving = tree_records(records.ids[rows], whose, records.hashes[rows])
    arriving = () if added is None else tree_records(added.ids, added.subjects, added.record_hashes())
    return now.committed.after(now.tree(), now.secret, leaving, arriving)


def tree_records(
    ids: NDArray[Any], subjects: NDArray[Any] | None, hashes: NDArray[np.uint8]
) -> tuple[TreeRecord, ...]:  # fmt: skip
    """Records as a commitment knows them."""
    whose: list[Any] = [None] * len(ids) if subjects is None else subjects.tolist()
    return tuple(
        TreeRecord(id_, subject, digest.tobytes())
        for id_, subject, digest in zip(ids.tolist(), whose, hashes, strict=True)
    )


def without_records(now: Fitted, request: Request) -> Fitted:
    """The state without the requested records, which become tombstones. Extractor, heads and commitment stay."""
    rows, before = request.rows, now.records
    leaving = before.ids[rows]
    purpose = FORGOTTEN if request.added is None else REPLACED  # a replaced record's id stays in use
    forgotten = tombstones_of(now.key, leaving, before.hashes[rows], before.contents[rows], purpose)
    leaves_the_queue = request.added is None and np.isin(leaving, now.waiting).any()
    then = changed(
        now,
        records=before.without(rows),
        tombstones=now.tombstones.with_more(forgotten),
        waiting=np.setdiff1d(now.waiting, leaving) if leaves_the_queue else now.waiting,
    )
    then.__post_init__()
    if not len(request.core_rows):
        return reuse(then, now, *CORE_FACTS)
    kept = now.core.copy()
    kept[request.core_rows] = False
    core = before.ids[request.core_rows]
    return replace(
        then,
        choice=replace(now.choice, ids=np.sort(before.ids[kept])),
        left=now.left | {id_hmac(now.key, id_, purpose) for id_ in core.tolist()},
        stale=now.stale | set(now.blueprint.sharding.of(core).tolist()),
    )


def with_extractor(then: Fitted, progress: Progress | None, engine: EngineLike) -> Fitted:
    """An extractor trained on the records that are there, and on no other; of several those that saw others."""
    retained = then.records.retained()
    choice = replace(then.choice, ids=then.blueprint.core_ids(retained.ids, then.choice.ids, then.waiting))
    blueprint = then.blueprint
    if blueprint.sharding.count == 1:  # a record that was replaced may be of a class that is new
        blueprint = blueprint.for_classes(len(np.unique(retained.labels[np.isin(retained.ids, choice.ids)])))
    extractor = blueprint.train_some(retained, choice, then.extractor, then.to_train, progress, engine)
    extractor, fingerprint = kept(blueprint, extractor, retained.shape, retained.inputs.dtype)
    untrained = then.untrained - then.to_train | blueprint.untrained(retained, choice, then.to_train)
    return replace(
        then, blueprint=blueprint, extractor=extractor, fingerprint=fingerprint, choice=choice, left=frozenset(),
        stale=frozenset(), untrained=untrained, technique=False, adopted=False,
    )  # fmt: skip


def by_technique(now: Fitted, then: Fitted, request: Request) -> Fitted:
    """The state with the extractor that the caller's function makes of the one that saw the records."""
    assert callable(request.core_policy)
    core, leaving = then.records.retained().select(then.choice.ids), now.records.select(request.core_rows)
    extractor = request.core_policy(copy.deepcopy(now.extractor), core, leaving)
    if not isinstance(extractor, nn.Module):
        raise ValueError(f"core_policy should return another extractor, a torch.nn.Module, not {extractor!r}")
    extractor = extractor.cpu().eval()
    if Fingerprint.of(extractor, core.shape, core.inputs.dtype).layers != now.fingerprint.layers:
        raise DataError(
            "core_policy returned an extractor with other layers: return the one that it was given, with other "
            "weights. Nothing was changed"
        )
    extractor, fingerprint = kept(now.blueprint, extractor, core.shape, core.inputs.dtype)
    return replace(then, extractor=extractor, fingerprint=fingerprint, technique=True)


def features_then(
    now: Fitted, then: Fitted, trained: Collection[int], retained: Dataset, fresh: NDArray[Any],
    progress: Progress | None,
) -> NDArray[Any]:  # fmt: skip
    """The features of records, where only the extractors of the shards `trained` are others: the rest is there already.

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


def with_added(then: Fitted, request: Request) -> Fitted:
    """More records. One that becomes what it was before has not lost that."""
    assert request.added is not None
    new = HeldRecords.of(request.added)
    records = then.records.with_added(new)
    back = {
        known for stone in tombstones_of(then.key, new.ids, new.hashes, new.contents, REPLACED)
        for known in then.tombstones.of(stone.id) if known.record == stone.record
    }  # fmt: skip
    tombstones = then.tombstones
    if back:
        tombstones = Tombstones(stone for stone in tombstones if stone not in back)
    arriving = tuple(records.class_names[label] for label in np.unique(request.added.labels).tolist())
    then = with_weights_back(replace(then, records=records, tombstones=tombstones), arriving)
    if not request.adds:
        return then
    waiting = then.blueprint.core_by_rule(new.ids)
    other_numbers = request.classes is not None and request.classes.renumbered
    return replace(
        then, waiting=np.union1d(then.waiting, waiting) if len(waiting) else then.waiting,
        layouts=then.layouts + other_numbers,
    )  # fmt: skip


def with_weights_back(then: Fitted, names: tuple[str, ...]) -> Fitted:
    """The same, where classes that had no records have their names back among the weights."""
    back = {of_gone_class(then.key, name): name for name in names}
    weights = {back.get(name, name): weight for name, weight in then.blueprint.class_weight.items()}
    return replace(then, blueprint=replace(then.blueprint, class_weight=weights))


def without_names(then: Fitted, gone: Ints) -> Fitted:
    """The same without the names of classes that lost their last record, ours and those of the caller."""
    if not len(gone):
        return then
    labels = then.labels.copy()
    labels[gone] = np.zeros(1, labels.dtype)[0]
    names = {then.records.class_names[code] for code in gone.tolist()}
    weights = {
        of_gone_class(then.key, name) if name in names else name: weight
        for name, weight in then.blueprint.class_weight.items()
    }
    blueprint = replace(then.blueprint, class_weight=weights)
    return replace(then, records=then.records.without_names(gone), labels=labels, blueprint=blueprint)


def with_heads(
    then: Fitted, progress: Progress | None, now: Fitted, trained: Collection[int], request: Request
) -> Fitted:  # fmt: skip
    """Heads fitted from scratch on all records that are there, which then stand in rows without gaps again.

    Only the extractors of the shards `trained` are not those of the state before.
    """
    retained = shuffled(then.records.retained(), then.key)
    fresh = retained.ids[:0] if request.added is None else request.added.ids
    features = features_then(now, then, trained, retained, fresh, progress)
    heads = then.blueprint.fit_heads(features, retained)
    return replace(then, records=HeldRecords.of(retained, copy=False), heads=heads, layouts=then.layouts + 1)
