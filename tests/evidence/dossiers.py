"""Dossiers as an operator makes them: true ones about a small set of images, and what forgers would make of them."""

import json
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from maxrr.data.hashes import identifier_bytes, layout, record_hashes
from maxrr.evidence import Checkpoint, Envelope, SigningKey
from maxrr.evidence.envelopes import Statement, Subject
from maxrr.evidence.log_proofs import Subtrees, leaf_hash
from maxrr.evidence.sparse_tree import Tree, key_of, salt_of, value_of
from maxrr.unlearning import Receipt
from maxrr.unlearning.receipts import HeadCertificate

RECEIPT = "https://maxrr.dev/receipt/v1"
COUNT = 40


def a_receipt(**changed: Any) -> dict[str, Any]:
    """A receipt's fields, as a statement has them."""
    said = {
        "number": 1, "previous": "", "guarantee": "exact-refit", "bytes_claim": "identical", "form": 2,
        "reason": "1 of the records is influential, none is core: the heads are those that a fit on the retained "
        "records gives, and the extractor stays as it is",
        "unconditional": True, "conditions": [], "core_details": {"kind": "hash", "fraction": 0.33},
        "core_depended_on": "whether a record is core depends on its id and a key alone, not on any other record",
        "core_policy": "refuse", "requested": 0, "core": 0, "influential": 0, "free": 0,
        "already_forgotten": 0, "duplicates_left": 0, "core_left_in_extractor": 0, "tombstones": [],
        "core_tombstones": [], "earlier_tombstones": [], "records_before": COUNT, "records_after": COUNT,
        "commitment_before": "00" * 32, "commitment_after": "00" * 32,
        "model_before": "1b" * 32, "model_after": "2c" * 32, "heads": [HeadCertificate("3d" * 32, True, 1e-12)],
        "seed": 12345678901234567890, "recipe": {"epochs": 20}, "C": 1.0,
        "environment": {
            "device": "cpu", "threads": 2, "torch_version": "2.9", "numpy_version": "2.3", "machine": "x86_64",
        },
        "time": "2026-03-01T07:45:10+00:00", "seconds": 0.0125,
    } | changed  # fmt: skip
    assert set(said) <= {field.name for field in fields(Receipt)}
    return dict(json.loads(Receipt(**said).to_json()))


@dataclass(frozen=True)
class Operator:
    """Somebody with a key, a secret, records with a class and a person each, and a log."""

    key: SigningKey
    secret: bytes = bytes(range(32))
    token: str = "0123456789abcdef"

    @property
    def origin(self) -> str:
        return f"maxrr.dev/workspace/{self.token}"

    @property
    def inputs(self) -> Any:
        """Small grey images in bytes."""
        return np.random.default_rng(0).integers(0, 256, (COUNT, 1, 4, 5)).astype(np.uint8)

    @property
    def ids(self) -> Any:
        return np.array([f"scan-{row}" for row in range(COUNT)])

    @property
    def people(self) -> Any:
        return np.array(["alice", "bob", "carol", "dan"])[np.arange(COUNT) % 4]

    def rows_of(self, subject: str) -> list[int]:
        return np.flatnonzero(self.people == subject).tolist()[:3]

    def places(self, weights: Any = None) -> list[tuple[bytes, bytes, bytes]]:
        """Salt, key and value of each record."""
        names = [f"class {row % 3}" for row in range(COUNT)]
        hashes = record_hashes(self.inputs, names, self.ids, self.people, weights)
        found = []
        for id_, hashed in zip(self.ids.tolist(), hashes, strict=True):
            salt = salt_of(self.secret, identifier_bytes(id_))
            found.append((salt, key_of(salt, identifier_bytes(id_)), value_of(salt, hashed.tobytes())))
        return found

    def dossier(
        self, rows: list[int], *, subject: str | None = "alice", number: int = 3, size: int = 7, replaced: bool = False,
        weights: Any = None, keys: tuple[SigningKey, ...] = (), **said: Any,
    ) -> dict[str, Any]:  # fmt: skip
        """The object for these rows, which receipt `number` is about, under a checkpoint of a log of this size."""
        places = self.places(weights)
        tree = Tree((key, value) for _, key, value in places)
        keyed = [places[row][1] for row in rows]
        news = {key: bytes([7]) * 32 for key in keyed}
        change = tree.change(put=news) if replaced else tree.change(remove=keyed)
        count = len(rows)
        stones = [f"{row:02x}" * 32 for row in rows]
        predicate = a_receipt(
            number=number, previous="5e" * 32 if number > 1 else "", requested=count, influential=1, free=count - 1,
            tombstones=stones, records_after=COUNT - (0 if replaced else count),
            commitment_before=tree.root.hex(), commitment_after=change.root.hex(), **said,
        )  # fmt: skip
        statement = Statement((Subject("model", predicate["model_after"]),), RECEIPT, predicate)
        envelope = Envelope.sign(statement, (keys or (self.key,))[0])
        log = self.log(number, size, envelope)
        records = []
        for row, key in zip(rows, keyed, strict=True):
            salt, _, value = places[row]
            after = change.presence(key) if replaced else change.absence(key)
            record = {
                "id": {"str": str(self.ids[row])}, "salt": salt.hex(), "value": value.hex(),
                "before": tree.presence(key).to_object(), "after": after.to_object(),
            }  # fmt: skip
            records.append(record | ({"after_value": news[key].hex()} if replaced else {}))
        return {
            "type": "https://maxrr.dev/dossier/v1",
            "operator": "Example Clinic, privacy@clinic.example",
            "envelope": json.loads(envelope.to_bytes()),
            "subject": subject,
            "records": records,
            "record_layout": layout(self.inputs.dtype, self.inputs.shape[1:]).hex(),
            "log": log,
            "keys": [key.public.pem.decode() for key in dict.fromkeys([*(keys or ()), self.key])],
        }

    def log(self, number: int, size: int, envelope: Envelope, other: bytes = b"") -> dict[str, Any]:
        """A log whose entry `number` is the receipt, and the proof; `other` makes another history of it."""
        from hashlib import sha256

        entries = [sha256(b"entry %d" % place + other).digest() for place in range(size)]
        entries[number - 1] = sha256(envelope.payload).digest()
        subtrees = Subtrees(map(leaf_hash, entries))
        root, proof = subtrees.root(0, size), subtrees.prove_inclusion(number - 1, size)
        assert proof.verify(leaf_hash(entries[number - 1]), size, root)
        checkpoint = Checkpoint.sign(self.origin, size, root, self.key)
        return {"origin": self.origin, "checkpoint": checkpoint.to_bytes().decode(), "inclusion": proof.to_object()}
