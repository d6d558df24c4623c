"""What one request adds to the files that only grow."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from maxrr.unlearning.receipts import Receipt
from maxrr.unlearning.requests import Request
from maxrr.unlearning.state import Fitted
from maxrr.unlearning.tombstones import Forgotten
from maxrr.workspace.entries import Answered, person_entry, request_entry, stone_entry
from maxrr.workspace.names import PROOFS, SIGNED, TOMBSTONES
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
    line : bytes
        The line of its receipt, with its end.
    entries : bytes
        What stays of the records and people that it forgot.
    proofs : bytes
        The sealed proofs of it.
    """

    rows: NDArray[np.int64]
    digest: str
    logged: bytes
    line: bytes
    entries: bytes
    proofs: bytes

    @classmethod
    def of(cls, before: Fitted, after: Fitted, request: Request, receipt: Receipt, signer: Signer) -> "CarriedOut":
        """What a request has done to a state, before its records are overwritten there."""
        known = after.tombstones.stones
        stones = [known.of(bytes.fromhex(id_hmac))[-1] for id_hmac in receipt.tombstones]
        then = Forgotten(receipt.number, receipt.time)
        people = [person_entry(person, then) for person in receipt.subject_tombstones or ()]
        line, logged = signer.line(receipt.to_json(), receipt.model_after)
        proofs = seal_proofs(before.secret, receipt.number, after.departures())
        entries = b"".join([*map(stone_entry, stones), *people])
        return cls(request.rows, after.receipts[receipt.number - 1], logged, line, entries, proofs)


def appended(done: Sequence[CarriedOut], line: int, proofs: int) -> tuple[dict[str, bytes], list[Answered]]:
    """What requests add to each file, where the lines and the proofs ended before; and where theirs end."""
    answered, entries = [], []
    for each in done:
        line, proofs = line + len(each.line), proofs + len(each.proofs)
        answered.append(Answered(each.digest, each.logged, line, proofs))
        entries += [each.entries, request_entry(answered[-1])]
    contents = {
        SIGNED: b"".join(each.line for each in done), TOMBSTONES: b"".join(entries),
        PROOFS: b"".join(each.proofs for each in done),
    }  # fmt: skip
    return contents, answered
