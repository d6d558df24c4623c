"""Why a plan says what it says: the reason in words, or why a request is refused and what to ask for instead."""

from dataclasses import replace

import numpy as np

from maxrr.plain_text import count
from maxrr.unlearning.actions import KEEP, RETRAIN, Action, Guarantee
from maxrr.unlearning.effects import CoreAfter, Effect
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import ModelState


def why(
    action: Action, guarantee: Guarantee, request: Request, effect: Effect, fitted: ModelState, then: CoreAfter
) -> str:
    """Say in a sentence why the action is taken, and what it gives."""
    core = len(request.core_rows)
    stays = "" if fitted.blueprint.embeddings else ", and the extractor stays as it is"
    seen = f"{of_the_records(core)} core" if core else kept_of(request.left_in_extractor)
    if request.adds and request.added is not None:
        records = count(len(request.added), "record is", "records are")
        return f"{records} added: the heads become those that a fit on all records gives{stays}"
    if action is Action.nothing:
        return why_nothing(request, fitted)
    if action is Action.retrain:
        seeds = "seed" if len(then.shards) == 1 else "seeds"
        trained = f"{trained_again(fitted, then)}, with the recorded {seeds}"
        said = f"{seen}: {trained}, and the heads are fitted anew"
    elif guarantee is Guarantee.untouched:
        said = "no requested record is core or influential: the model stays as it is, and the records are erased"
    elif guarantee is Guarantee.refit:
        shaping = f"{of_the_records(len(effect.influential))} influential, none is core"
        which = shaping if len(effect.influential) else "none of the records is core or influential"
        said = f"{which}: the heads are those that a fit on the retained records gives{stays}"
    else:
        technique = action is Action.technique
        does = "the caller's technique makes another extractor" if technique else "the extractor keeps what it learned"
        said = f"{seen}: {does}" if core else seen
        said += ", and the heads are fitted without the records"
        said += "; that is not the same as training without them, so an audit is due"
    return said if request.added is None else said + shaped(action, request, fitted)


def why_nothing(request: Request, fitted: ModelState) -> str:
    """Why there is nothing to do, by which receipts, and what stays in the model all the same."""
    gone = [fitted.people.get(hmac.hex()) for hmac in request.forgotten_before]
    numbers = sorted({then.number for then in gone if then is not None and then.number})
    by = f" by receipt {', '.join(map(str, numbers))}" if numbers else ""
    said = f"every requested record is forgotten already{by}: nothing is left to do"
    if request.left_in_extractor:
        said += f" under this policy, but {kept_of(request.left_in_extractor)}"
    return said


def trained_again(fitted: ModelState, then: CoreAfter) -> str:
    """Which extractors are trained again, and which of them have nothing to be trained on."""
    shards, some = fitted.blueprint.sharding.count, len(then.shards)
    if shards == 1:
        return "the extractor is trained again without the records"
    said = f"{some:,} of {shards:,} extractors {'is' if some == 1 else 'are'} trained again without the records"
    if bare := len(then.untrained):
        keep = count(bare, "of them keeps its", "of them keep their")
        said += f" ({keep} first weights: no records of two classes are left to train on)"
    return said


def kept_of(left: int) -> str:
    """Say of how many forgotten records the extractor keeps something."""
    records = count(left, "record that is", "records that are")
    return f"the extractor keeps what it learned from {records} forgotten already"


def shaped(action: Action, request: Request, fitted: ModelState) -> str:
    """Say whether a replacing record shapes the heads alone, or the extractor as well."""
    if action is Action.retrain and fitted.blueprint.decides_each:
        return "; the new record takes its place in both, as in a fit of the corrected data"
    if fitted.blueprint.decides_each and not len(request.core_rows):
        return "; the new record shapes the heads alone"
    return "; the new record shapes the heads, and the extractor not before the next fit"


def of_the_records(number: int) -> str:
    """Begin a sentence with how many of the records it is about.

    >>> of_the_records(1), of_the_records(2)
    ('1 of the records is', '2 of the records are')
    """
    return count(number, "of the records is", "of the records are")


# Why not


def why_not(
    action: Action, fitted: ModelState, request: Request, effect: Effect, then: CoreAfter
) -> tuple[str, list[Request]] | None:
    """Say why a request is refused, and which other requests are possible; None where it is not refused."""
    if request.unknown:
        some = ", ".join(map(repr, request.unknown[:5]))
        own = "strings" if fitted.records.ids.dtype.kind == "U" else "integers"
        other = isinstance(request.unknown[0], str) != (own == "strings")
        check = f"the ids of this model are {own}" if other else "check the ids (records for testing are in no model)"
        return f"no record has id {some}: {check}; nothing else of the request is done either", []
    if not len(request.rows) and not request.already_forgotten and not request.adds:
        return "the request names no records", []
    names = [fitted.records.class_names[label] for label in effect.labels_left]
    if len(names) < 2:
        left = f"only class {names[0]!r}" if names else "no records"
        return f"this would leave {left}: a classifier needs two classes. Delete the model instead", []
    if action is Action.refuse:
        core = of_the_records(len(request.core_rows))
        others = [replace(request, core_policy=other) for other in (RETRAIN, KEEP)]
        return f"{core} core, which this policy refuses", others
    if action is Action.technique and fitted.blueprint.sharding.count > 1:
        others = [replace(request, core_policy=other) for other in (RETRAIN, KEEP)]
        return "a technique makes one extractor, and each shard has its own", others
    if action is Action.retrain and len(np.unique(then.labels)) < 2:
        return "this would leave a core of fewer than two classes to train on: fit again, with another core", []
    return None
