"""What a model becomes by an action: each function returns the next state, and changes nothing of the present one."""

import copy
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import nn

from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.nets.architecture import without_numbers
from maxrr.nets.embedding import type_read
from maxrr.nets.extractors import joined, parts_of
from maxrr.nets.probe import Fingerprint
from maxrr.parallel.ray_cluster import EngineLike
from maxrr.progress import Progress
from maxrr.svm import LinearSVM
from maxrr.svm.problem import changed
from maxrr.unlearning.actions import Action
from maxrr.unlearning.blueprint import Blueprint
from maxrr.unlearning.class_weights import of_gone_class
from maxrr.unlearning.commitment import Commitment, Moved
from maxrr.unlearning.extractors import kept
from maxrr.unlearning.records import HeldRecords, Ints, shuffled
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import OF_MODEL, Fitted, knowing, with_classes
from maxrr.unlearning.tombstones import FORGOTTEN, REPLACED, Stones, Tombstones, id_hmac, tombstones_of


def carry_out(
    now: Fitted, action: Action, request: Request, progress: Progress | None, engine: EngineLike = None
) -> Fitted:  # fmt: skip
    """The model after an action. What it holds of the records that leave is not erased yet."""
    if action is Action.erase:
        return with_the_same_model(now, request)
    then = acted(now, action, request, progress, engine)
    if action is not Action.nothing:
        then = replace(then, committed=committed_then(now, request))
    return knowing(then, now, "extractor_hash") if then.extractor is now.extractor else then


def with_the_same_model(now: Fitted, request: Request) -> Fitted:
    """The model without records that shape nothing. What such a request costs does not grow with the records."""
    heads = now.heads._without(request.rows)
    then = less(now, request, heads, committed_then(now, request))
    then = without_names(then, gone_between(now, then, request.rows))
    return knowing(then, now, *OF_MODEL) if heads._has_heads_of(now.heads) else then


def gone_between(now: Fitted, then: Fitted, rows: Ints) -> Ints:
    """The classes that have lost their last record, by that the records in these rows have left."""
    left = now.records.labels[rows]
    gone = left[then.records.counts[left] == 0]
    return np.unique(gone) if len(gone) else gone


def committed_then(now: Fitted, request: Request) -> Commitment:
    """The commitment without the records that leave, and with those that arrive."""
    tree, records = now.tree(), now.records
    leaving = moved(records.ids[request.rows], records.subjects, records.hashes[request.rows], request.rows)
    arriving: tuple[Moved, ...] = ()
    if request.added is not None:
        added = request.added
        arriving = moved(added.ids, added.subjects, added.record_hashes(), np.arange(len(added)))
    return now.committed.after(tree, now.secret, leaving, arriving)


def moved(
    ids: NDArray[Any], subjects: NDArray[Any] | None, hashes: NDArray[np.uint8], rows: Ints
) -> tuple[Moved, ...]:  # fmt: skip
    """Records that leave or arrive, as a commitment knows them; subjects are by row."""
    whose: list[Any] = [None] * len(ids) if subjects is None else subjects[rows].tolist()
    return tuple(
        Moved(id_, subject, digest.tobytes()) for id_, subject, digest in zip(ids.tolist(), whose, hashes, strict=True)
    )


def acted(now: Fitted, action: Action, request: Request, progress: Progress | None, engine: EngineLike) -> Fitted:
    """The same, with the commitment of the state before."""
    now = with_classes(now, request.classes)
    then = less(now, request)
    if action is Action.nothing:
        return then
    if request.added is not None:
        then = with_added(then, request)
    then = without_names(then, gone_between(now, then, request.rows))
    match action:
        case Action.retrain:
            made, then = then.to_train, with_extractor(then, progress, engine)
            return with_heads(then, progress, now, made, request)
        case Action.technique:
            then, made = by_technique(now, then, request)
            return with_heads(then, progress, now, made, request)
        case Action.more:
            assert request.added is not None
            features = then.blueprint.embed(then.extractor, request.added)
            weights = then.blueprint.weights_of(request.added)
            heads = now.heads._with_more(
                features, request.added.labels, instead_of=request.rows, sample_weight=weights
            )  # fmt: skip
            return replace(then, heads=heads)
        case Action.move:
            return replace(then, heads=now.heads._without(request.rows))
        case Action.erase | Action.refuse:
            raise AssertionError("it is carried out elsewhere, or not at all")


def less(now: Fitted, request: Request, heads: LinearSVM | None = None, committed: Commitment | None = None) -> Fitted:
    """The model without the requested records: they become tombstones.

    Extractor, heads and commitment are the old ones, where no others are given.
    """
    rows, before = request.rows, now.records
    purpose = FORGOTTEN if request.added is None else REPLACED  # a replaced record's id stays in use
    forgotten = tombstones_of(now.key, before.ids[rows], before.hashes[rows], before.contents[rows], purpose)
    leaving = before.ids[rows]
    stay = request.added is not None  # the ids of records that are replaced
    then = changed(
        now,
        records=before.without(rows),
        heads=now.heads if heads is None else heads,
        tombstones=Tombstones(now.tombstones.stones.with_more(forgotten), now.tombstones.orders),
        late=now.late if stay else now.late.without(leaving),
        waiting=now.waiting if stay else now.waiting.without(leaving),
        committed=now.committed if committed is None else committed,
        derived={},
    )
    then.__post_init__()
    if len(request.core_rows):
        return without_core(now, then, request.core_rows, purpose)
    return knowing(then, now, "core", "core_hash")


def without_core(now: Fitted, then: Fitted, core_rows: Ints, purpose: bytes) -> Fitted:
    """The same where some of the records that leave are core: the extractors that they are in still know them."""
    kept = now.core.copy()
    kept[core_rows] = False
    leaving = now.records.ids[core_rows]
    return replace(
        then,
        choice=replace(now.choice, ids=np.sort(now.records.ids[kept])),
        left=now.left | {id_hmac(now.key, id_, purpose) for id_ in leaving.tolist()},
        stale=now.stale | set(now.blueprint.sharding.of(leaving).tolist()),
    )


def with_extractor(then: Fitted, progress: Progress | None, engine: EngineLike) -> Fitted:
    """An extractor trained on the records that are there, and on no other; of several those that saw others."""
    retained = then.records.retained()
    choice = replace(then.choice, ids=then.blueprint.core_ids(retained.ids, then.choice.ids, then.waiting.array()))
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


def by_technique(now: Fitted, then: Fitted, request: Request) -> tuple[Fitted, frozenset[int]]:
    """The extractors that the caller's function makes of those that saw the records, and which these are."""
    assert callable(request.core_policy)
    core, leaving = then.records.retained().select(then.choice.ids), now.records.select(request.core_rows)
    stays, goes = (now.blueprint.sharding.of(part.ids) for part in (core, leaving))
    parts, made = parts_of(now.extractor), frozenset(goes.tolist())
    for shard in sorted(made):
        mine = core.select(core.ids[stays == shard]), leaving.select(leaving.ids[goes == shard])
        extractor = request.core_policy(copy.deepcopy(parts[shard]), *mine)
        if not isinstance(extractor, nn.Module):
            raise ValueError(f"core_policy should return another extractor, a torch.nn.Module, not {extractor!r}")
        extractor = extractor.cpu().eval()
        if len(parts) > 1:
            check_type(now.blueprint, parts[shard], extractor, leaving)
        parts[shard] = extractor
    extractor = joined(parts)
    found = Fingerprint.of(extractor, core.shape, core.inputs.dtype)
    if without_numbers(found.layers) == without_numbers(now.fingerprint.layers):  # others only this process can make
        extractor, found = kept(now.blueprint, extractor, core.shape, core.inputs.dtype)
    then = replace(then, extractor=extractor, fingerprint=found, untrained=then.untrained - made, technique=True)
    return then, made


def check_type(blueprint: Blueprint, before: nn.Module, extractor: nn.Module, records: Dataset) -> None:
    """Refuse an extractor that reads or gives numbers of another type than those that it stands beside."""
    some = records.select(records.ids[:1])
    looks: dict[str, Callable[[nn.Module], object]] = {
        "reads": type_read,
        "gives": lambda one: blueprint.embed(one, some).dtype,
    }
    for what, look in looks.items():
        wanted, found = (str(look(one)).removeprefix("torch.") for one in (before, extractor))
        if found != wanted:
            raise DataError(
                f"core_policy returned an extractor for a shard that {what} numbers in {found}, and those of the other "
                f"shards are for {wanted}: return it in that type, as with extractor.to(torch.{wanted}). Nothing was "
                "changed"
            )


def features_then(
    now: Fitted, then: Fitted, made: Collection[int], retained: Dataset, fresh: NDArray[Any], progress: Progress | None
) -> NDArray[Any]:  # fmt: skip
    """The features of records, where only the extractors of some shards are others: the rest is there already.

    All are computed anew where they were made on another machine, or by a technique, which may give any number of them;
    and of records that are `fresh`.
    """
    blueprint, parts = then.blueprint, parts_of(then.extractor)
    if len(parts) == 1 or now.technique or not blueprint.is_at_home:
        return blueprint.embed(then.extractor, retained, progress)
    known = ~np.isin(retained.ids, fresh)
    before = now.heads._features_of(now.records.rows(retained.ids[known]))
    blocks = {shard: blueprint.embed(parts[shard], retained, progress) for shard in sorted(made)}
    width = before.shape[1] // len(parts)
    if any(block.shape[1] != width for block in blocks.values()):  # a technique may do so
        return blueprint.embed(then.extractor, retained, progress)
    features = np.empty((len(retained), before.shape[1]), dtype=next(iter(blocks.values())).dtype)
    features[known] = before
    if not known.all():
        features[~known] = blueprint.embed(then.extractor, retained.select(retained.ids[~known]))
    for shard, block in blocks.items():
        features[:, shard * width : (shard + 1) * width] = block
    return features


def with_added(then: Fitted, request: Request) -> Fitted:
    """More records. One that becomes what it was before has not lost that.

    What a frozen network saw stays known: no other record may have these values.
    """
    assert request.added is not None
    new = HeldRecords.of(request.added)
    records = then.records.with_added(new)
    seen = then.left if then.blueprint.frozen else frozenset()
    back = {
        known for stone in tombstones_of(then.key, new.ids, new.hashes, new.contents, REPLACED)
        for known in then.tombstones.stones.of(stone.id) if known.record == stone.record and stone.id not in seen
    }  # fmt: skip
    tombstones = then.tombstones
    if back:
        tombstones = replace(tombstones, stones=Stones(stone for stone in tombstones.stones if stone not in back))
    arriving = tuple(records.class_names[label] for label in np.unique(request.added.labels).tolist())
    then = with_weights_back(replace(then, records=records, tombstones=tombstones), arriving)
    if not request.adds:
        return then
    waiting = then.blueprint.core_by_rule(new.ids)
    other_numbers = request.classes is not None and request.classes.renumbered
    return replace(
        then, late=then.late.with_more(new.ids), waiting=then.waiting.with_more(waiting),
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
    then: Fitted, progress: Progress | None, now: Fitted, made: Collection[int], request: Request
) -> Fitted:  # fmt: skip
    """Heads fitted from scratch on all records that are there, which then stand in rows without gaps again.

    Only the extractors of the shards `made` are not those of the state before.
    """
    retained = shuffled(then.records.retained(), then.key)
    fresh = retained.ids[:0] if request.added is None else request.added.ids
    features = features_then(now, then, made, retained, fresh, progress)
    heads = then.blueprint.fit_heads(features, retained)
    return replace(then, records=HeldRecords.of(retained, copy=False), heads=heads, layouts=then.layouts + 1)
