"""What is in a workspace, and what it still holds of what is not."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from maxrr.unlearning.forgetting import heads_of
from maxrr.unlearning.receipts import claim_of
from maxrr.unlearning.state import Fitted


@dataclass(frozen=True)
class Status:
    """What is in a workspace.

    Attributes
    ----------
    records, core, influential, free : int
        Records that are there; of these, core ones, influential ones that are not core, and the others.
    classes : list of str
        That the head tells apart.
    requests, forgotten : int
        Requests carried out, and records that they forgot.
    held_about_forgotten : str
        What is still known of a forgotten record, and why.
    core_left_in_extractor : int
        Forgotten core records that the extractor was trained on: an audit is due.
    heads, decided, bytes_claim : int, int, str
        How many heads there are, how many of them are decided, and what that lets one claim, as on a receipt.
    conditions : list of str
        What exactness is conditional on; `unconditional` where there are none, and the head stands on all records.
    overrides : list of dict
        Where values of forgotten records were let in under other ids: when, how many, and why.
    bytes : int
        Of all files.
    """

    folder: str
    records: int
    core: int
    influential: int
    free: int
    classes: list[str]
    requests: int
    forgotten: int
    held_about_forgotten: str
    core_left_in_extractor: int
    core_depended_on: str
    heads: int
    decided: int
    bytes_claim: str
    conditions: list[str]
    unconditional: bool
    overrides: list[dict[str, Any]]
    model_hash: str
    manifest: str
    source: dict[str, str]
    bytes: int


def status_of(fitted: Fitted, folder: Path, source: dict[str, str]) -> Status:
    """The status of the workspace in a folder."""
    alive = fitted.holdings.alive
    influential = np.zeros(len(alive), dtype=bool)
    influential[fitted.head.support_] = True
    count, heads = len(fitted.oblivion.marks), heads_of(fitted)
    about = (
        "nothing was forgotten yet"
        if not count
        else f"three HMACs for each of {count:,} forgotten or replaced records (of its id, of the record, of its "
        "values) under the key of this workspace: they recognise a request for what is gone, and data that brings it "
        "back, and tell nothing to those who do not hold the record"
    )
    return Status(
        folder=str(folder), records=int(alive.sum()), core=int((fitted.core & alive).sum()),
        influential=int((influential & ~fitted.core & alive).sum()),
        free=int((~influential & ~fitted.core & alive).sum()), classes=list(fitted.head_classes),
        requests=fitted.requests, forgotten=count, held_about_forgotten=about,
        core_left_in_extractor=fitted.left_in_extractor, core_depended_on=fitted.choice.depended_on,
        heads=len(heads), decided=sum(head.decided for head in heads),
        bytes_claim=claim_of("exact" if fitted.nothing_remains else "approximate", heads),
        conditions=fitted.conditions, unconditional=not fitted.conditions and not fitted.on_influential,
        overrides=[asdict(override) for override in fitted.overrides], model_hash=fitted.model_hash,
        manifest=fitted.holdings.manifest,
        source=source, bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
    )  # fmt: skip
