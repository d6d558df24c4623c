"""The forms of new requests: what they ask for, read as the interface takes it, and what is wrong with it."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from maxrr.errors import UnknownSubject
from maxrr.service import routes
from maxrr.service.planning import plan_of
from maxrr.service.requests import Asked, named
from maxrr.service.states import ERASE, RECTIFY, WAITING
from maxrr.unlearning.actions import REFUSE

WHOLE = re.compile("0|-?[1-9][0-9]*")  # a number as ids are written
MOST = 500  # requests that wait, and are compared; ids of at most a tenth as many are shown


class Wrong(Exception):
    """What is wrong with a form: a code, and the field where that alone does not say it."""


def erasure_in(service: Any, said: dict[str, str]) -> Asked:
    """Read a form that asks to forget a person or records."""
    current = service.current.found
    given = {name: text.strip() for name, text in said.items() if text.strip()}
    asked: dict[str, Any] = {name: given[name] for name in given.keys() & {"subject", "regulation", "due", "arrived"}}
    apart = "[,\n]" if current is None or current.model.kind_.text_ids else r"[,;\s]"
    if ids := [each.strip() for each in re.split(apart, given.get("ids", "")) if each.strip()]:
        asked["ids"] = ids
    if "identity" in given:
        asked["identity"] = {"type": given.get("type", ""), "value": given["identity"]}
    return routes.asked_of(service, routes.Submission(**asked))


def change_in(service: Any, said: dict[str, str], kind: str) -> Asked:
    """Read a form that adds one record or corrects it, in the types that the model has."""
    model = service.current.snapshot.model
    classes, like, about = {str(each): each for each in model.classes_.tolist()}, model.kind_, model.kind_.text_subjects

    def read(name: str, how: Callable[[str], Any]) -> Any:
        try:
            return how(said.get(name, "").strip())
        except (ValueError, KeyError):
            raise Wrong("wrong-value", name) from None

    def values(text: str) -> Any:
        return np.array(re.findall(r"[^\s,;]+", text), dtype=np.float64).reshape(like.shape).tolist()

    def identifier(text: str, is_text: bool) -> int | str:
        if not 0 < len(text) <= 500:
            raise ValueError("an id has 1 to 500 letters")
        return text if is_text else int(text)

    record, id_ = read("values", values), read("id", partial(identifier, is_text=like.text_ids))
    if kind == RECTIFY:
        label = read("label", (classes | {"": None}).__getitem__)
        return routes.change_of(service, kind, routes.Correction(id=id_, record=record, label=label))
    subjects = None if about is None else [read("subject", partial(identifier, is_text=about))]
    new = routes.Addition(records=[record], labels=[read("label", classes.__getitem__)], ids=[id_], subjects=subjects)
    return routes.change_of(service, kind, new)


def check_new(service: Any, asked: Asked, owner: str | None, said: dict[str, str]) -> None:
    """Refuse what waits for a decision already, what must not come back, and what the model has never had; where all
    that is asked for is so, until it is sure. What was found goes with what was said.
    """
    requests, snapshot = service.requests, service.current.found
    waiting = requests.listed([WAITING], owner=owner, limit=MOST) if asked.kind == ERASE else []
    bodies = requests.bodies(waiting)
    for each in waiting:
        if named(asked.body) <= named(bodies.get(each.serial, {})):
            said["other"] = each.id
            raise Wrong("asked-already")
    if snapshot is None:
        return
    wanted = {*map(str, asked.body.get("subjects") or asked.body.get("ids") or [asked.body["id"]])}
    whole = "subjects" not in asked.body and not snapshot.model.kind_.text_ids
    strange = {each for each in wanted if whole and not WHOLE.fullmatch(each)}
    try:
        unknown = strange or {*map(str, plan_of(snapshot.model, asked.kind, asked.body, REFUSE).request.unknown)}
    except UnknownSubject:
        unknown = wanted
    said["unknown"] = ", ".join(sorted(unknown)[: MOST // 10])
    if strange or (unknown and (asked.kind == RECTIFY or unknown != wanted)):
        raise Wrong("no-number" if strange else "unknown-id", "ids" if asked.kind == ERASE else "id")
    if unknown and "sure" not in said:  # that nothing is here is signed
        raise Wrong("nothing-here")
