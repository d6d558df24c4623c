"""What one request adds to the history."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.unlearning.commitment import Departure
from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Forgotten
from maxrr.workspace.entries import SIZE, Answered, person_entry, request_entry, stone_entry
from maxrr.workspace.history import HEAD
from maxrr.workspace.sealed_proofs import seal_proofs
from maxrr.workspace.signed_receipts import Signer


@dataclass(frozen=True, eq=False)
class CarriedOut:
    """A request that was carried out in memory, and is to be committed.

    Attributes
    ----------
    rows : array of int
        Where the records stood that left.
    digest, logged : str, bytes
        As in `Answered`.
    handed : bytes
        Its receipt, as it is handed out.
    entries : bytes
        What stays of the records and people that it forgot.
    proofs : bytes
        The sealed proofs of it.
    """

    rows: NDArray[np.int64]
    digest: str
    logged: bytes
    handed: bytes
    entries: bytes
    proofs: bytes

    @classmethod
    def of(
        cls, before: Fitted, after: Fitted, request: Request, receipt: Receipt,
        departures: Mapping[int | str, Departure], signer: Signer,
    ) -> "CarriedOut":  # fmt: skip
        """What a request has done to a state, before its records are overwritten there. Others may have left, too."""
        own = [departures[id_] for id_ in before.records.ids[request.rows].tolist()]
        known = after.tombstones.stones
        stones = [known.of(bytes.fromhex(id_hmac))[-1] for id_hmac in receipt.tombstones]
        then = Forgotten(receipt.number, receipt.time)
        people = [person_entry(person, then) for person in receipt.subject_tombstones or ()]
        handed, logged = signer.handed(receipt.to_json(), receipt.model_after)
        proofs = seal_proofs(before.secret, receipt.number, own)
        entries = b"".join([*map(stone_entry, stones), *people])
        return cls(request.rows, after.receipts[receipt.number - 1], logged, handed, entries, proofs)


def appended(
    done: Sequence[CarriedOut], at: int, known: bytes = b""
) -> tuple[dict[str, Any], list[Answered]]:  # fmt: skip
    """The parts of a frame that requests add, and where they stand: the frame begins at this byte of the history.

    `known` are the entries of what was forgotten before the first request.
    """
    handed, proofs = b"".join(each.handed for each in done), b"".join(each.proofs for each in done)
    receipt_at = at + HEAD + len(known) + sum(len(each.entries) + SIZE for each in done)
    proofs_at = receipt_at + len(handed)
    answered, entries = list[Answered](), [known]
    for each in done:
        ends = receipt_at + len(each.handed), proofs_at + len(each.proofs)
        answered.append(Answered(each.digest, each.logged, (receipt_at, ends[0]), (proofs_at, ends[1])))
        entries += [each.entries, request_entry(answered[-1])]
        receipt_at, proofs_at = ends
    return {"entries": b"".join(entries), "receipts": handed, "proofs": proofs}, answered
