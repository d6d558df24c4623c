"""A workspace as anybody knows it who does not know its files: small ones, what is done to them, and all that can be
seen of them through the public verbs.

Whatever keeps a workspace on the disk has to pass the tests that use this: none of them names a file.
"""

import warnings
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from maxrr import MaxRR
from maxrr.errors import EvidenceError
from maxrr.evidence import SigningKey
from maxrr.workspace import OlderCopyWarning, Workspace, WorkspaceError, check_receipt_log, overview
from tests.cases import THOROUGH
from tests.unlearning.problems import table
from tests.workspace.disk import files_below, put
from tests.workspace.problems import forgotten_but_here, found, holds, named, needles, receipt_facts, together

KEY = SigningKey.generate()
RECORDS = named(table(60))
ADDED = named(replace(table(4, seed=8), ids=np.arange(4) + 5, subjects=np.arange(4) + 900))
NEW = np.random.default_rng(7).normal(size=5).astype(np.float32)  # a record that takes another's place
EVER = np.concatenate([RECORDS.ids, ADDED.ids])


def created(folder, key):
    """A workspace of 60 records that are features already, with an export and a request behind it; closed."""
    with Workspace.create(folder, MaxRR.on_features(), RECORDS, signing_key=key) as workspace:
        workspace._keeper.note_export("onnx", folder.parent / "first.onnx", workspace.model)
        forget(workspace)


# What is done to it


def forget(workspace):
    return workspace.model.unlearn(workspace.model.ids_of("free")[:1])


def shape(workspace):
    return workspace.model.unlearn(workspace.model.ids_of("influential")[:1])


def rectify(workspace):
    return workspace.model.replace(str(workspace.model.ids_of("influential")[1]), NEW)


def add(workspace):
    return workspace.model.add(ADDED)


def several(workspace):
    return together(workspace, [workspace.model.ids_of("free")[:1], workspace.model.ids_of("free")[1:3]])


def export(workspace):
    """A copy of the model, which is revoked at once."""
    workspace._keeper.note_export("onnx", workspace.folder.parent / "later.onnx", workspace.model)
    return forget(workspace)


ACTS = {act.__name__: act for act in (forget, shape, rectify, add, several)}


# What is seen of it


def facts(workspace):
    """All that can be seen of a workspace but when it was done."""
    return {
        "model": workspace.model.model_hash_, "content": workspace.model.content_hash_,
        "requests": workspace.status().requests,
        "records": workspace.status().records, "held": holds(workspace, EVER).tolist(),
        "forgotten": workspace.model.has_forgotten(EVER).tolist(), "free": workspace.model.ids_of("free").tolist(),
        "scores": workspace.model.decision_function(RECORDS).tobytes(),
        "receipts": [receipt_facts(receipt) for receipt in workspace.receipts()],
        "exports": [(each.path, each.out_of_date, each.revoked, each.replaced) for each in workspace.exports()],
    }  # fmt: skip


def differing(one, other):
    """Which of two workspaces' facts are not the same, for messages."""
    return [name for name in one if one[name] != other[name]]


@dataclass(frozen=True)
class Seen:
    """What somebody learns who opens a folder: what is wrong with it, or else what is in it."""

    told: str
    facts: dict | None


def reading(folder, key):
    """Open it as a reader, take its status, and check its log."""
    return looked(lambda: read(folder, key))


def working(folder, key):
    """Open it to work in it."""
    return looked(lambda: opened(folder, key))


def looked(look):
    with warnings.catch_warnings():
        warnings.simplefilter("error", OlderCopyWarning)
        try:
            return Seen("", look())
        except (WorkspaceError, EvidenceError, OlderCopyWarning) as error:
            return Seen(f"{type(error).__name__}: {error}", None)


def read(folder, key):
    with Workspace.open(folder, read_only=True) as workspace:
        seen, back = facts(workspace), forgotten_but_here(workspace)
    if back:
        raise WorkspaceError(f"{back} forgotten records are here")
    if overview(folder).status.requests != seen["requests"]:
        raise WorkspaceError("the overview does not say the same")
    if key is not None:
        check_receipt_log(folder, [key.public])
    return seen


def opened(folder, key):
    with Workspace.open(folder, signing_key=key) as workspace:
        return facts(workspace)


def known_of(workspace):
    """What may stand in a file of each record that is held, by its id."""
    model = workspace.model
    return {id_: needles(model, RECORDS, id_) for id_ in RECORDS.ids[holds(workspace, RECORDS.ids)].tolist()}


def secrets_of(before, after):
    """What must not be in the folder any more, of what was known of its records before: of one that was replaced, all
    but its id."""
    changed = {id_: known for id_, known in before.items() if after.get(id_, {}).get("hash") != known["hash"]}
    return {
        f"{what} of {id_}": needle
        for id_, known in changed.items() for what, needle in known.items()
        if id_ not in after or not what.startswith("id ")
    }  # fmt: skip


def places(count):
    """Where so many bytes are torn apart."""
    if THOROUGH:
        return [at for at in range(1, count + 1) if at < 10 or at % 199 == 0 or count - at in (0, 1, 31, 32, 33)]
    return sorted({1, count // 2})


class Hole(Exception):
    """What is not so, though it should be. Nothing else counts as the failure that a test is expected to have."""


def none_of(wrong):
    """Fail where there is something wrong."""
    words = [str(each) for each in wrong]
    if words:
        raise Hole("\n".join(["", *words]))


class Complaint(NamedTuple):
    """What is wrong with a folder: of which kind, and in words."""

    kind: str
    words: str

    def __str__(self):
        return self.words


STATE, EXPORTS, BYTES = "state", "exports", "bytes"


def complaints(folder, key, expected, secrets):
    """What is wrong with a folder, for whoever opens it: unless it is said, the state has to be the expected one, and
    nothing that was forgotten may be there."""
    pristine = {path: path.read_bytes() for path in files_below(folder)}
    wrong = []
    for who, look in (("a reader", reading), ("who works", working)):
        saw = look(put(pristine, folder, folder.with_name("trial")), key)
        if saw.told:
            continue
        other = differing(saw.facts, expected)
        if other:
            kind = EXPORTS if other == ["exports"] else STATE
            wrong.append(Complaint(kind, f"{who} is told nothing, and finds other {', '.join(other)}"))
        left = found(secrets, folder.with_name("trial"))
        if left:
            words = f"{who} is told nothing, and this is there: {', '.join(sorted(left))}"
            wrong.append(Complaint(BYTES, words))
    return wrong
