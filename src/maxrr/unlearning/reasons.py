"""Why a plan says what it says: the reason in words, or why a request is refused and what to ask for instead."""

from dataclasses import replace

import numpy as np

from maxrr.plain_text import count
from maxrr.unlearning.actions import KEEP, RETRAIN, Action, Guarantee
from maxrr.unlearning.effects import CoreAfter, Effect
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import Fitted


def why(
    action: Action, guarantee: Guarantee, request: Request, effect: Effect, fitted: Fitted, then: CoreAfter
) -> str:  # fmt: skip
    """The reason in words."""
    core, left = len(request.core_rows), request.left_in_extractor
    if request.adds:
        return why_adding(request, fitted)
    if action is Action.nothing:
        return why_nothing(left, request, fitted)
    if action is Action.retrain:
        by_seed = "the recorded seed" if len(then.shards) == 1 else "the recorded seeds"
        said = f"{why_retrained(core, left, fitted, then)}, with {by_seed}, and the heads are fitted anew"
    elif guarantee is Guarantee.untouched:
        said = "no requested record is core or influential: the model stays as it is, and the records are erased"
    elif guarantee is Guarantee.refit:
        said = f"{influential(effect)}: the heads are those that a fit on the retained records gives"
        said += extractor_stays(fitted)
    else:
        said = what_stays(action, core, left)
        said += "; that is not the same as training without them, so an audit is due"
    return said if request.added is None else said + shaped(action, request, fitted)


def why_adding(request: Request, fitted: Fitted) -> str:
    """What records do that are added."""
    assert request.added is not None
    records = count(len(request.added), "record is", "records are")
    return f"{records} added: the heads become those that a fit on all records gives{extractor_stays(fitted)}"


def extractor_stays(fitted: Fitted) -> str:
    """That nothing happens to the extractor; nothing where the records are embeddings and there is none."""
    return "" if fitted.blueprint.embeddings else ", and the extractor stays as it is"


def why_nothing(left: int, request: Request, fitted: Fitted) -> str:
    """Why there is nothing to do, by which receipts, and what stays in the model all the same."""
    gone = [fitted.people.get(hmac.hex()) for hmac in request.forgotten_before]
    numbers = sorted({then.number for then in gone if then is not None and then.number})
    by = f" by receipt {', '.join(map(str, numbers))}" if numbers else ""
    said = f"every requested record is forgotten already{by}: nothing is left to do"
    if left:
        said += f" under this policy, but {kept_of(left)}"
    return said


def why_retrained(core: int, left: int, fitted: Fitted, then: CoreAfter) -> str:
    """Which of the records are in the extractor, so that it is trained again; or which of several are."""
    count = fitted.blueprint.sharding.count
    if count > 1:
        some = len(then.shards)
        said = of_the_records(core) + " core" if core else kept_of(left)
        said += f": {some:,} of {count:,} extractors {'is' if some == 1 else 'are'} trained again without the records"
        bare = len(then.untrained)
        if bare:
            keep = "1 of them keeps its" if bare == 1 else f"{bare:,} of them keep their"
            said += f" ({keep} first weights: no records of two classes are left to train on)"
        return said
    if core:
        return f"{of_the_records(core)} core: the extractor is trained again without the records"
    return f"{kept_of(left)}: it is trained again without the records"


def influential(effect: Effect) -> str:
    """How many of the records are influential, where none is core."""
    if not effect.influential:
        return "none of the records is core or influential"
    return f"{of_the_records(effect.influential)} influential, none is core"


def what_stays(action: Action, core: int, left: int) -> str:
    """What an answer that is not exact leaves in the model."""
    if action is Action.technique:
        said = f"{of_the_records(core)} core: the caller's technique makes another extractor"
    elif core:
        said = f"{of_the_records(core)} core: the extractor keeps what it learned from {'it' if core == 1 else 'them'}"
    else:
        said = kept_of(left)
    return f"{said}, and the heads are fitted without the records"


def kept_of(left: int) -> str:
    """That forgotten records are still in the extractor."""
    records = "1 record that is" if left == 1 else f"{left:,} records that are"
    return f"the extractor keeps what it learned from {records} forgotten already"


def shaped(action: Action, request: Request, fitted: Fitted) -> str:
    """What the record that takes the place of another shapes."""
    if action is Action.retrain and fitted.blueprint.decides_each:
        return "; the new record takes its place in both, as in a fit of the corrected data"
    if fitted.blueprint.decides_each and not len(request.core_rows):
        return "; the new record shapes the heads alone"
    return "; the new record shapes the heads, and the extractor not before the next fit"


def of_the_records(count: int) -> str:
    """How many, as a sentence begins.

    >>> of_the_records(1), of_the_records(2)
    ('1 of the records is', '2 of the records are')
    """
    return f"{count:,} of the records {'is' if count == 1 else 'are'}"


# Why not


def why_not(
    action: Action, fitted: Fitted, request: Request, effect: Effect, then: CoreAfter
) -> tuple[str, list[Request]] | None:
    """Why a request is not carried out, and what could be asked for instead; None if it is carried out."""
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
        return (
            "this would leave a core of fewer than two classes to train the extractor on: fit again, with another core"
        ), []
    return None
