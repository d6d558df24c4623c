"""Records, models that are kept in folders, and what is compared of them."""

import functools
import hashlib
import json
import os
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import safetensors.numpy
import torch
from safetensors import safe_open
from torch import nn

from maxrr.core import Frozen, FullCore, HashCore, MiddleCore
from maxrr.data import Dataset
from maxrr.nets import MLP
from maxrr.unlearning.facts import Words
from maxrr.workspace import Workspace, older_copies
from maxrr.workspace.history import Frame, History, frames_in
from tests.unlearning.problems import digits, fresh, table

KEY = "house"
HASHED = HashCore(0.5, key=KEY, by="record")
IN_SHARDS = HashCore(0.5, key=KEY, shards=3)
NEW = np.random.default_rng(7).normal(size=5).astype(np.float32)  # a record that takes another's place

NEWCOMERS = Dataset(  # records that are added
    np.random.default_rng(8).normal(size=(5, 5)).astype(np.float32), [0, 1, 2, 2, 0],
    table().class_names, np.sort(table().ids)[:5] + 5, [900, 900, 901, 902, 50],
)  # fmt: skip


def history_in(folder):
    (path,) = folder.glob("history-*.bin")
    return path


def token_of(folder):
    return history_in(folder).stem.removeprefix("history-")


def key_in(folder):
    (secrets,) = folder.glob("secrets-*.json")
    return bytes.fromhex(json.loads(secrets.read_text())["key"])


def rewrite_frames(folder, change, key=None):
    """Change the frames of a history, each as a dict, and write them anew, as one could who has read the key."""
    path, key = history_in(folder), key_in(folder) if key is None else key
    frames = [vars(frame).copy() for frame in frames_in(path)]
    change(frames)
    history = History(path, key)
    path.write_bytes(history.first_line.to_bytes())
    history.in_doubt = False
    for frame in frames:
        history.append(Frame(**frame))


def receipts_in(folder):
    """All receipts in a history, as they were handed out."""
    content = history_in(folder).read_bytes()
    return [content[slice(*each.receipt)] for frame in frames_in(history_in(folder)) for each in frame.answered()]


def write_receipts(folder, receipts):
    """Put others in their place, as one could who has read the key."""

    def change(frames):
        for frame in frames:
            frame.update(answers=[], tombstones=b"", receipts=b"", proofs=b"")
        frames[-1].update(answers=[answer_of(each) for each in receipts], receipts=b"".join(receipts))

    rewrite_frames(folder, change)


def answer_of(receipt):
    """What a frame says of a request that left nothing but this receipt."""
    return ["0" * 64, "0" * 64, 0, len(receipt), 0]


def facts_of(folder):
    """The facts and the words that lie beside the heads, all by their names."""
    (path,) = folder.glob("heads-*.safetensors")
    said = safe_open(path, "np").metadata()
    facts, words = (json.loads(said[name]) for name in ("facts", "words"))
    return facts | words if isinstance(facts, dict) else facts


def rewrite_facts(folder, facts, key=None):
    """Say something else beside the heads, with hashes that belong to it, as one could who has read the key."""
    (path,) = folder.glob("heads-*.safetensors")
    arrays = safetensors.numpy.load(path.read_bytes())
    said = {"facts": facts, "words": facts}  # whatever it is
    if isinstance(facts, dict):
        words = {name: facts[name] for name in facts if name in Words.__annotations__}
        said = {"facts": {name: facts[name] for name in facts if name not in words}, "words": words}
    content = safetensors.numpy.save(arrays, metadata={name: json.dumps(part) for name, part in said.items()})
    digest, token = hashlib.sha256(content).hexdigest(), path.name.split("-")[1]
    path.unlink()
    name = f"heads-{token}-{digest[:16]}.safetensors"
    (folder / name).write_bytes(content)

    def renamed(frames):
        files = [frame["files"] for frame in frames if frame["files"] is not None][-1]
        files["hashes"] = {each: known for each, known in files["hashes"].items() if not each.startswith("heads")}
        files["hashes"][name] = digest

    rewrite_frames(folder, renamed, key)


def wide():
    """An extractor that gives features in float64, most of which float32 cannot hold."""
    layers = nn.Sequential(nn.Linear(5, 7), nn.Tanh()).double()
    for number, weights in enumerate(layers.parameters()):
        numbers = np.random.default_rng(number).normal(size=weights.shape)
        weights.data.copy_(weights.new_tensor(numbers))
    return layers


def pretrained():
    """A network that the workspace can make again by name, with weights that it cannot."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return MLP(5, 3, hidden=(12,))


def named(dataset):
    """The same records with words for ids and subjects."""
    ids = np.array([f"record ü {id_}" for id_ in dataset.ids])
    return replace(dataset, ids=ids, subjects=np.array([f"person {who}" for who in dataset.subjects]))


@functools.cache
def cases():
    """Records and a model that is not fitted yet, by name."""
    plain, words = table(), named(table())
    alone = replace(plain, subjects=None)
    exact = Dataset(plain.inputs.astype(np.float64) / 3, plain.labels, plain.class_names, plain.ids)
    around_zero = replace(plain, ids=np.arange(len(plain)) - 40, subjects=np.arange(len(plain)) // 4 - 7)
    two = table(classes=2)
    two = replace(two, class_names=("never", *two.class_names), labels=two.labels + 1)
    return {
        "hash": (plain, fresh(HASHED, plain)),
        "hash, words": (words, fresh(HASHED, words)),
        "hash, ids around zero": (around_zero, fresh(HASHED, around_zero)),
        "hash, two of three classes": (two, fresh(HASHED, two)),
        "hash in shards": (plain, fresh(IN_SHARDS, plain)),
        "frequency": (plain, fresh(MiddleCore(40, runs=2), plain)),
        "full, words": (words, fresh(FullCore(), words)),
        "full, no subjects": (alone, fresh(FullCore(), alone)),
        "frozen, words": (words, fresh(Frozen(whole=True), words, pretrained())),
        "frozen, float64": (exact, fresh(Frozen(), exact, wide)),
        "digits": (digits(), fresh(HASHED, digits())),
    }


def fixed_key():
    """Models made under this have the same key, so that their receipts can be compared."""
    return mock.patch("maxrr.unlearning.fitting.secrets", SimpleNamespace(token_bytes=lambda count: b"k" * count))


def given(workspace, records):
    """The workspace, to which raw records are given whenever it asks for them."""
    workspace._keeper.records = lambda: records
    return workspace


def like(workspace, model):
    """The live model of a workspace, to be fitted with the parameters of another."""
    return workspace.model.set_params(**model.get_params(deep=False))


def as_in_memory(workspace, records):
    """The same model in memory, with its raw records, which may go on by itself."""
    model = given(workspace, records).model._apart()
    model._detached = False
    return model


def together(workspace, ids=(), subjects=(), **options):
    """What became of requests that are answered in one batch: receipts, and refusals."""
    with workspace.batch(**options) as batch:
        tickets = [batch.unlearn(each) for each in ids] + [batch.unlearn(subjects=each) for each in subjects]
    return [ticket._answered for ticket in tickets]


def holds(workspace, ids):
    """Which of some records are here."""
    return np.isin(ids, workspace.model.ids_of())


def forgotten_but_here(workspace):
    """How many records are here whose ids were forgotten."""
    return int(workspace.model.has_forgotten(workspace.model.ids_of()).sum())


def kinds(model):
    """Ids of core records, influential ones that are not core, and the others; as a workspace's model has them now."""
    fitted = getattr(model, "model", model)._fitted
    influential = np.zeros(len(fitted.core), dtype=bool)
    influential[fitted.heads.support_] = True
    alive = fitted.records.alive
    groups = (fitted.core & alive, influential & ~fitted.core & alive, ~influential & ~fitted.core & alive)
    return [np.sort(fitted.records.ids[group]) for group in groups]


def with_replaced(dataset, id_, features, label=None):
    """The source of the records after one of them was rectified."""
    row = int(np.flatnonzero(dataset.ids == id_)[0])
    contents, labels = np.array(dataset.inputs), np.array(dataset.labels)
    contents[row] = features
    labels[row] = labels[row] if label is None else label
    return replace(dataset, inputs=contents, labels=labels)


def receipt_facts(receipt):
    """All of a receipt but when, and how long it took."""
    return {name: value for name, value in asdict(receipt).items() if name not in ("time", "seconds", "previous")}


def certificate_facts(certificate):
    """What it claims. The last digits of its bounds are those of the way to the proof, which may differ."""
    bounds = (certificate.weight_error, certificate.bias_error, certificate.error, certificate.primal)
    return certificate.decided, certificate.on_margin, certificate.inside, *(f"{bound:.6g}" for bound in bounds)


def model_facts(model, dataset):
    """All that can be seen of a model."""
    fitted, asked = model._fitted, dataset.select(dataset.ids[:30])
    rows = fitted.in_order()
    features = fitted.heads._features_of(rows)
    return {
        "model": model.model_hash_, "content_hash": model.content_hash_, "core": model.core_.ids.tolist(),
        "choice": (model.core_.unconditional, model.core_.depended_on, model.core_.details),
        "classes": model.classes_.tolist(), "requests": fitted.requests, "left": fitted.left_in_extractor,
        "technique": fitted.technique, "forgotten": sorted(fitted.tombstones), "people": sorted(fitted.people),
        "waiting": fitted.waiting.tolist(), "held": fitted.records.ids[rows].tolist(),
        "features": features.tobytes(), "scores": model.decision_function(asked).tobytes(),
        "proba": model.predict_proba(asked).tobytes(),
        "certificates": [certificate_facts(certificate) for certificate in model.heads_.certificate_],
    }  # fmt: skip


def facts(workspace, dataset):
    """All that can be seen of a workspace."""
    return model_facts(workspace.model, dataset) | {"receipts": [receipt_facts(each) for each in workspace.receipts()]}


def reopened(folder, dataset, network=None):
    """What is in the folder, for somebody who comes anew."""
    with Workspace.open(folder, network=network) as workspace:
        return facts(workspace, dataset)


def contents(folder):
    """Every file below a folder."""
    found = {}
    for path in sorted(Path(folder).rglob("*")):
        if path.is_file():
            found[path.relative_to(folder).as_posix()] = path.read_bytes()
    return found


def belongs(folder):
    """The names of all files that the present state of a workspace has."""
    with Workspace.open(folder, read_only=True) as workspace:
        stored = workspace._store.stored
    log = {name for name in contents(folder) if name.startswith("log/") and ".tmp" not in name}
    log = log if stored.files.keys else set()
    return {*stored.files.hashes, stored.rows.file, history_in(folder).name, *log, ".lock"}


def copied(folder, to):
    """A copy of a workspace that nobody works in, as if no later one had been seen."""
    if os.path.exists(to):
        shutil.rmtree(to)
    shutil.rmtree(older_copies.place(), ignore_errors=True)
    return Path(shutil.copytree(folder, to))


def found(needles, *folders):
    """Which byte strings occur in any file below some folders, or in a file's name."""
    hay = []
    for folder in folders:
        for name, content in contents(folder).items():
            hay += [name.encode(), content]
    return {name for name, needle in needles.items() if any(needle in straw for straw in hay)}


def needles(model, dataset, id_):
    """What is known of a record, as it may stand in a file: its id, raw features, features, hashes, multipliers."""
    fitted = model._fitted
    record = dataset.select(np.array([id_]))
    row = int(fitted.records.rows(np.array([id_]))[0])
    rows, features = (fitted.heads._rows, fitted.heads._features_of(fitted.heads._rows))
    vector = features[rows == row]
    raw = record.inputs[0]
    record_hash, content_hash = fitted.records.hashes[row].tobytes(), fitted.records.contents[row].tobytes()
    wanted = {
        "features in float32": vector.astype("<f4").tobytes(), "features in float64": vector.astype("<f8").tobytes(),
        "raw": raw.tobytes(), "raw in float32": raw.astype("<f4").tobytes(),
        "raw in float64": raw.astype("<f8").tobytes(),
        "raw as bytes": np.round(16 * raw).astype("i8").astype("u1").tobytes(),  # negative ones wrap on every processor
        "hash": record_hash, "hash in letters": record_hash.hex().encode(),
        "content": content_hash, "content in letters": content_hash.hex().encode(),
    }  # fmt: skip
    if isinstance(id_, str):
        for encoding in ("utf-8", "utf-16-le", "utf-32-le"):
            wanted[f"id in {encoding}"] = id_.encode(encoding)
        wanted["id in JSON"] = json.dumps(id_)[1:-1].encode()
    else:
        wanted["id as a number"] = int(id_).to_bytes(8, "little", signed=True)
        wanted["id in digits"] = str(id_).encode()
    for number, (head, multipliers) in enumerate(
        zip(fitted.heads.influential_, fitted.heads.multipliers_, strict=True)
    ):
        for multiplier in multipliers[(head == row) & (multipliers != fitted.blueprint.C)]:
            wanted[f"multiplier of head {number}"] = np.float64(multiplier).tobytes()
    return wanted


def lacking(workspace):
    """How many requests an older copy lacks of what was seen."""
    return workspace._store.position.lacks(workspace._store.latest_position)
