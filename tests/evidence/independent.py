"""A second verifier of dossiers, written from docs/specifications/evidence.md alone: it uses nothing of maxrr."""

import base64
import hashlib
import json
import re
from typing import Any

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_public_key


def sha(*parts: bytes) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()


def framed(*parts: bytes) -> bytes:
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def names(thing: Any, *wanted: str) -> Any:
    assert isinstance(thing, dict)
    assert sorted(thing) == sorted(wanted)
    return thing


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


def digits(text: Any) -> bytes:
    assert re.fullmatch("[0-9a-f]{64}", text)
    return bytes.fromhex(text)


def base(text: str) -> bytes:
    data = base64.b64decode(text, validate=True)
    assert base64.b64encode(data).decode() == text
    return data


def key_of_pem(pem: str) -> Ed25519PublicKey:
    key = load_pem_public_key(pem.encode())
    assert isinstance(key, Ed25519PublicKey)
    assert key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode() == pem
    return key


def id_of(key: Ed25519PublicKey) -> str:
    return sha(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hex()


def bit(key: bytes, place: int) -> int:
    """Counted from 1, the most significant of the first byte."""
    return int(f"{int.from_bytes(key, 'big'):0256b}"[place - 1])


def climb(hashed: bytes, key: bytes, siblings: list[bytes]) -> bytes:
    for d in range(len(siblings), 0, -1):
        beside = siblings[d - 1]
        hashed = sha(b"\x01", beside, hashed) if bit(key, d) else sha(b"\x01", hashed, beside)
    return hashed


def present(proof: Any, root: bytes, key: bytes, value: bytes) -> None:
    names(proof, "siblings")
    siblings = [digits(each) for each in proof["siblings"]]
    assert len(siblings) <= 256
    assert not siblings or siblings[-1] != bytes(32)
    assert climb(sha(b"\x00", key, value), key, siblings) == root


def absent(proof: Any, root: bytes, key: bytes) -> None:
    names(proof, "siblings", "other")
    siblings = [digits(each) for each in proof["siblings"]]
    assert len(siblings) <= 255
    assert not siblings or siblings[-1] != bytes(32)
    start = bytes(32)
    if proof["other"] is not None:
        names(proof["other"], "key", "value")
        other = digits(proof["other"]["key"])
        assert other != key
        assert all(bit(other, d) == bit(key, d) for d in range(1, len(siblings) + 1))
        start = sha(b"\x00", other, digits(proof["other"]["value"]))
    assert climb(start, key, siblings) == root


def opened(envelope: Any, keys: list[Ed25519PublicKey]) -> tuple[bytes, set[str]]:
    names(envelope, "payload", "payloadType", "signatures")
    assert len(envelope["signatures"]) == 1
    assert envelope["payloadType"] == "application/vnd.in-toto+json"
    payload, kind = base(envelope["payload"]), envelope["payloadType"].encode()
    signed = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    known = {id_of(key): key for key in keys}
    for each in envelope["signatures"]:
        names(each, "keyid", "sig")
        if each["keyid"] in known:
            known[each["keyid"]].verify(base(each["sig"]), signed)
    named = {each["keyid"] for each in envelope["signatures"]}
    assert named & set(known)
    return payload, named


def state_of(checkpoint: str, origin: str, keys: list[Ed25519PublicKey]) -> tuple[int, bytes, set[str]]:
    text, _, below = checkpoint.rpartition("\n\n")
    name, size, root = text.split("\n")
    assert name == origin
    assert re.fullmatch("0|[1-9][0-9]*", size)
    assert below.endswith("\n")
    raws = {id_of(key): key.public_bytes_raw() for key in keys}
    fours = {sha(origin.encode(), b"\n\x01", raw)[:4]: known for known, raw in raws.items()}
    signers = set()
    assert below.count("\n") == 1
    for line in below[:-1].split("\n"):
        dash, who, encoded = line.split(" ")
        assert dash == "\u2014"
        data = base(encoded)
        if who == origin and data[:4] in fours:
            signer = fours[data[:4]]
            Ed25519PublicKey.from_public_bytes(raws[signer]).verify(data[4:], (text + "\n").encode())
            signers.add(signer)
    assert signers
    root_bytes = base(root)
    assert len(root_bytes) == 32
    return int(size), root_bytes, signers


def included(entry: bytes, index: int, size: int, path: list[bytes]) -> bytes:
    """The root by RFC 9162, section 2.1.3.2."""
    fn, sn, r = index, size - 1, sha(b"\x00", entry)
    for p in path:
        assert sn != 0
        if fn & 1 or fn == sn:
            r = sha(b"\x01", p, r)
            while not fn & 1 and fn != 0:
                fn, sn = fn >> 1, sn >> 1
        else:
            r = sha(b"\x01", r, p)
        fn, sn = fn >> 1, sn >> 1
    assert sn == 0
    return r


def holds(text: bytes, keys: list[Ed25519PublicKey]) -> bool:
    """Whether everything that the page asks to be checked holds."""
    try:
        check(json.loads(text.decode(), object_pairs_hook=once), keys)
    except (AssertionError, ValueError, TypeError, KeyError, AttributeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def check(dossier: Any, keys: list[Ed25519PublicKey]) -> None:
    names(dossier, "type", "operator", "envelope", "subject", "records", "record_layout", "log", "keys")
    assert dossier["type"] == "https://maxrr.dev/dossier/v1"
    names(dossier["log"], "origin", "checkpoint", "inclusion")
    shown = [key_of_pem(each) for each in dossier["keys"]]
    payload, _ = opened(dossier["envelope"], keys)  # signed
    statement = json.loads(payload, object_pairs_hook=once)  # receipt
    names(statement, "_type", "subject", "predicateType", "predicate")
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    assert statement["predicateType"] == "https://maxrr.dev/receipt/v1"
    receipt = statement["predicate"]
    assert statement["subject"] == [{"name": "model", "digest": {"sha256": receipt["model_after"]}}]
    records, forgotten = dossier["records"], len(receipt["tombstones"])
    assert receipt["number"] >= 1
    assert 1 <= len(records) <= forgotten
    fewer = receipt["records_before"] - receipt["records_after"]
    corrected = ["after_value" in record for record in records]
    if "group" in receipt:
        assert fewer >= forgotten
    else:
        assert fewer == forgotten or (fewer == 0 and forgotten == 1)
    assert any(corrected) == (fewer == 0)
    assert len({json.dumps(record["id"]) for record in records}) == len(records)
    for record in records:  # before, after
        more = ["after_value"] if "after_value" in record else []
        names(record, "id", "salt", "value", "before", "after", *more)
        [(kind, value)] = record["id"].items()
        assert type(value) is {"int": int, "str": str}[kind]
        key = sha(framed(b"maxrr/commitment/v1/key", digits(record["salt"]), f"{kind}:{value}".encode()))
        present(record["before"], digits(receipt["commitment_before"]), key, digits(record["value"]))
        if more:
            assert record["after_value"] != record["value"]
            present(record["after"], digits(receipt["commitment_after"]), key, digits(record["after_value"]))
        else:
            absent(record["after"], digits(receipt["commitment_after"]), key)
    log = dossier["log"]
    size, root, _ = state_of(log["checkpoint"], log["origin"], keys)  # checkpoint
    proof = names(log["inclusion"], "index", "size", "path")  # logged
    assert (proof["index"], proof["size"]) == (receipt["number"] - 1, size)
    path = [digits(each) for each in proof["path"]]
    assert all(len(each) == 32 for each in path)
    assert included(sha(payload), proof["index"], size, path) == root
    _, named = opened(dossier["envelope"], shown)  # keys
    _, _, signers = state_of(log["checkpoint"], log["origin"], shown)
    ids = [id_of(key) for key in shown]
    assert len(set(ids)) == len(ids)
    assert named <= set(ids)
    assert set(ids) == named | signers
