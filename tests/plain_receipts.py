"""Receipts without a model: they contradict themselves nowhere, and each names the one before."""

import hashlib
from dataclasses import replace
from typing import Any

from maxrr.unlearning import Receipt
from maxrr.unlearning.receipts import HeadCertificate


def hexadecimal(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest()


def receipt(number: int = 1, previous: str = "", **fields: Any) -> Receipt:
    """One that forgot a free record. What is a dictionary has its names in order, as a statement keeps them."""
    made = Receipt(
        number=number, previous=previous, guarantee="exact-untouched", reason="nothing rests on it", form=2,
        bytes_claim="identical", unconditional=True, conditions=[], core_depended_on="nothing",
        core_details={"fraction": 0.5, "kind": "hash"}, core_policy="refuse", requested=1, core=0,
        influential=0, free=1, already_forgotten=0, duplicates_left=0, core_left_in_extractor=0,
        tombstones=[hexadecimal(f"record {number}")], core_tombstones=[], earlier_tombstones=[],
        records_before=1000 - number + 1, records_after=1000 - number,
        commitment_before=hexadecimal(f"records {number - 1}"), commitment_after=hexadecimal(f"records {number}"),
        model_before=hexadecimal("model"), model_after=hexadecimal("model"),
        heads=[HeadCertificate(hexadecimal("class"), True, 1e-12)], seed=0,
        recipe={"batch_size": 64, "epochs": 2, "lr": 0.001}, C=1.0, environment={"machine": "x86_64", "torch": "2.5"},
        time="2026-11-17T08:00:00+00:00", seconds=0.001,
    )  # fmt: skip
    return replace(made, **fields)


def receipts(count: int) -> list[Receipt]:
    """A row of them."""
    row: list[Receipt] = []
    for number in range(1, count + 1):
        row.append(receipt(number, row[-1].digest if row else ""))
    return row
