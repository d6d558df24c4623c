"""What forgers would make of a true dossier, each with the check that has to find it."""

import base64
import copy
import json
from typing import Any

from maxrr.evidence import Checkpoint, Envelope, SigningKey
from maxrr.evidence.envelopes import Statement, Subject
from tests.evidence.dossiers import RECEIPT, Operator

KEY, OTHER = SigningKey.generate(), SigningKey.generate()
OPERATOR = Operator(KEY)
ELSEWHERE = Operator(KEY, secret=bytes(range(1, 33)), token="fedcba9876543210")
ROWS = OPERATOR.rows_of("alice")
TRUE = OPERATOR.dossier(ROWS)


def changed(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy(TRUE) | parts


def record(place: int, **parts: Any) -> list[dict[str, Any]]:
    """The true records, one of which says something else."""
    records = copy.deepcopy(TRUE["records"])
    records[place] |= parts
    return records


def log(**parts: Any) -> dict[str, Any]:
    return copy.deepcopy(TRUE["log"]) | parts


def said(envelope: dict[str, Any]) -> dict[str, Any]:
    """The statement in an envelope."""
    return dict(json.loads(base64.b64decode(envelope["payload"])))


def rewritten(old: str, new: str) -> dict[str, Any]:
    """The true envelope with another payload under the same signature."""
    payload = base64.b64decode(TRUE["envelope"]["payload"])
    assert old.encode() in payload
    return TRUE["envelope"] | {"payload": base64.b64encode(payload.replace(old.encode(), new.encode())).decode()}


def signed(kind: str, about: str, predicate: dict[str, Any], key: SigningKey = KEY) -> dict[str, Any]:
    statement = Statement((Subject(about, "2c" * 32),), kind, predicate)
    return dict(json.loads(Envelope.sign(statement, key).to_bytes()))


def swapped(envelope: dict[str, Any]) -> dict[str, Any]:
    """Another signed statement, in the log at the receipt's place."""
    return changed(envelope=envelope, log=OPERATOR.log(3, 7, Envelope.from_bytes(json.dumps(envelope).encode())))


def older_checkpoint() -> str:
    """Signed when the receipt was not in the log yet."""
    return Checkpoint.sign(OPERATOR.origin, 2, b"\x05" * 32, KEY).to_bytes().decode()


def another_history() -> str:
    """Of the same size, with the same key: a split view."""
    envelope = Envelope.from_bytes(json.dumps(TRUE["envelope"]).encode())
    return str(OPERATOR.log(3, 7, envelope, other=b" rewritten")["checkpoint"])


NEIGHBOUR = OPERATOR.dossier([9, *ROWS[1:]])["records"][0]
ANOTHER_KEY = Operator(OTHER).dossier(ROWS)
FORGED: dict[str, tuple[dict[str, Any], str]] = {
    "another key signed all of it": (ANOTHER_KEY, "signed"),
    "the guarantee was changed": (changed(envelope=rewritten("exact-refit", "exact-ruled")), "signed"),
    "a statement about a replay, for the receipt": (
        swapped(signed("https://maxrr.dev/replay/v1", "model", said(TRUE["envelope"])["predicate"])), "receipt",
    ),
    "a receipt about another model": (
        swapped(signed(RECEIPT, "model", said(TRUE["envelope"])["predicate"] | {"model_after": "00" * 32})), "receipt",
    ),
    "a receipt that forgot fewer": (
        swapped(signed(RECEIPT, "model", said(TRUE["envelope"])["predicate"] | {"tombstones": ["00" * 32]})), "receipt",
    ),
    "the receipt of another workspace": (changed(envelope=ELSEWHERE.dossier(ROWS)["envelope"]), "before"),
    "a proof of another record": (changed(records=record(0, before=TRUE["records"][1]["before"])), "before"),
    "another record id": (changed(records=record(0, id={"str": "scan-1"})), "before"),
    "the id as another type": (changed(records=record(0, id={"int": 7})), "before"),
    "a record that was there with another content": (changed(records=record(0, value="00" * 32)), "before"),
    "a record that is still there": (changed(records=[NEIGHBOUR, *TRUE["records"][1:]]), "after"),
    "a proof that another record is gone": (changed(records=record(0, after=TRUE["records"][1]["after"])), "after"),
    "a checkpoint from before the receipt": (changed(log=log(checkpoint=older_checkpoint())), "logged"),
    "a checkpoint signed by another key": (changed(log=ANOTHER_KEY["log"]), "checkpoint"),
    "the log of another workspace": (changed(log=ELSEWHERE.dossier(ROWS)["log"]), "logged"),
    "another name of the log": (changed(log=log(origin="maxrr.dev/workspace/0")), "checkpoint"),
    "the place of another receipt in the log": (
        changed(log=log(inclusion=TRUE["log"]["inclusion"] | {"index": 3})), "logged",
    ),
    "a split view of the log": (changed(log=log(checkpoint=another_history())), "logged"),
    "a key that has signed nothing": (
        changed(keys=[*TRUE["keys"], OTHER.public.pem.decode()]), "keys",
    ),
    "a forger's key for the operator's": (changed(keys=[OTHER.public.pem.decode()]), "keys"),
}  # fmt: skip

UNREADABLE: dict[str, dict[str, Any]] = {
    "another type": changed(type="https://maxrr.dev/dossier/v2"),
    "a field that is not known": changed(verified=True),
    "a record twice": changed(records=[*TRUE["records"], TRUE["records"][0]]),
    "no record": changed(records=[]),
    "no key": changed(keys=[]),
    "a key twice": changed(keys=TRUE["keys"] * 2),
    "a field of a record that is not known": changed(records=record(0, held=True)),
    "an id of no type": changed(records=record(0, id="scan-0")),
    "an id that is two": changed(records=record(0, id={"int": 1, "str": "scan-0"})),
    "an id of the wrong type": changed(records=record(0, id={"int": "scan-0"})),
    "an id that is a truth value": changed(records=record(0, id={"int": True})),
    "an integer of more than 64 bits": changed(records=record(0, id={"int": 1 << 63})),
    "an empty id": changed(records=record(0, id={"str": ""})),
    "a salt in capitals": changed(records=record(0, salt=TRUE["records"][0]["salt"].upper())),
    "a proof of presence for one of absence": changed(records=record(0, after=TRUE["records"][0]["before"])),
    "a corrected record with a proof of absence": changed(records=record(0, after_value="00" * 32)),
    "an index that is no number": changed(log=log(inclusion=TRUE["log"]["inclusion"] | {"index": "2"})),
    "a key without its last line": changed(keys=[TRUE["keys"][0].rstrip()]),
    "an envelope without signatures": changed(envelope=TRUE["envelope"] | {"signatures": []}),
    "a layout that is no bytes": changed(record_layout="abc"),
    "a subject that is a list": changed(subject=["alice"]),
}
MISSING = {f"no {name}": {field: value for field, value in TRUE.items() if field != name} for name in TRUE}
