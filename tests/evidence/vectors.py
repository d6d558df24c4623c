"""Vectors for whoever checks dossiers: texts, keys and signatures, and what must be said of each.

`vectors.json` beside this file is for programs in any language; the tests give it to Python and to the page's script.
A dossier of it is one of the true texts in which pieces were exchanged, one after the other: a text that occurs once,
what takes its place, and how often.
"""

import base64
import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.evidence import Checkpoint, Envelope, SigningKey
from maxrr.evidence.checkpoints import note_key_id
from maxrr.evidence.dossiers import CLAIMS, DOSSIER_TYPE
from maxrr.evidence.envelopes import IN_TOTO, Statement, Subject, pre_authentication_encoding
from maxrr.evidence.exact_text import canonical_json, to_base64
from maxrr.evidence.log_proofs import Subtrees, leaf_hash
from maxrr.evidence.public_keys import KEY_SUCCESSION
from maxrr.evidence.sparse_tree import Tree, key_of
from tests.evidence.logs import tree_hash
from tests.evidence.points import (
    KEY,
    OTHER,
    above,
    pem_of,
    strange_keys,
    vectors_of_keys,
    vectors_of_signatures,
)

FILE = Path(__file__).with_name("vectors.json")
ORIGIN = "example.com/log"
Piece = tuple[str, str] | tuple[str, str, int]
Pieces = list[Piece]


def hashed(text: str) -> bytes:
    return sha256(text.encode()).digest()


# True dossiers


def dossier(
    ids: list[int | str], *, replaced: bool = False, number: int = 3, size: int = 5,
    subject: int | str | None = "alice", keys: tuple[SigningKey, ...] = (KEY,), others: int = 3,
) -> dict[str, Any]:  # fmt: skip
    """About records of a model that has some others, too: as few fields of a receipt as the checks need."""
    salts = {each: hashed(f"salt {each}") for each in [*ids, *(f"other {row}" for row in range(others))]}
    places = {
        each: key_of(salt, b"int:%d" % each if isinstance(each, int) else f"str:{each}".encode())
        for each, salt in salts.items()
    }
    values = {each: hashed(f"value {each}") for each in salts}
    tree = Tree((places[each], values[each]) for each in salts)
    gone = [places[each] for each in ids]
    change = tree.change(put=dict.fromkeys(gone, bytes([7]) * 32)) if replaced else tree.change(remove=gone)
    predicate = {
        "number": number, "model_after": "2c" * 32, "tombstones": ["0a" * 32] * len(ids),
        "records_before": len(salts), "records_after": len(salts) - (0 if replaced else len(ids)),
        "commitment_before": tree.root.hex(), "commitment_after": change.root.hex(),
    }  # fmt: skip
    statement = Statement((Subject("model", "2c" * 32),), "https://maxrr.dev/receipt/v1", predicate)
    envelope = Envelope.sign(statement, keys[0])
    records = []
    for each in ids:
        after = change.presence(places[each]) if replaced else change.absence(places[each])
        record = {
            "id": {"int" if isinstance(each, int) else "str": each}, "salt": salts[each].hex(),
            "value": values[each].hex(), "before": tree.presence(places[each]).to_object(), "after": after.to_object(),
        }  # fmt: skip
        records.append(record | ({"after_value": "07" * 32} if replaced else {}))
    return {
        "type": DOSSIER_TYPE, "operator": None, "envelope": json.loads(envelope.to_bytes()), "subject": subject,
        "records": records,
        "record_layout": "0500000000000000", "log": log_of(envelope.payload, number, size),
        "keys": [key.public.pem.decode() for key in keys],
    }  # fmt: skip


def log_of(payload: bytes, number: int, size: int) -> dict[str, Any]:
    """A log in which this is the receipt of a number, its checkpoint, and the proof."""
    entries = [hashed(f"entry {place}") for place in range(size)]
    entries[number - 1] = sha256(payload).digest()
    proof = Subtrees(map(leaf_hash, entries)).prove_inclusion(number - 1, size)
    return {"origin": ORIGIN, "checkpoint": checkpoint(size, tree_hash(entries)), "inclusion": proof.to_object()}


def checkpoint(size: int, root: bytes, key: SigningKey = KEY) -> str:
    return Checkpoint.sign(ORIGIN, size, root, key).to_bytes().decode()


TRUE = {
    "forgotten": dossier(["one"]),
    "two records": dossier(["one", 2]),
    "the only record": dossier([-1], others=0, subject=None, number=1, size=1),
    "corrected": dossier(["one"], replaced=True, subject=7),
    "a long log": dossier(["one"], number=70, size=100),
}
TEXTS = {name: canonical_json(each).decode() for name, each in TRUE.items()}
PEM, FORMER = KEY.public.pem.decode(), OTHER.public.pem.decode()
TWINS = [SigningKey(Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32))) for seed in (64063, 139885)]
TWIN_ID = note_key_id(ORIGIN, TWINS[0].public)
assert note_key_id(ORIGIN, TWINS[1].public) == TWIN_ID  # two keys that share their four bytes in notes


# What others would make of them, by the pieces that they exchange


def quoted(text: Any) -> str:
    return canonical_json(text).decode()


def signed_again(name: str, change: Any, keys: tuple[SigningKey, ...] = (KEY,)) -> Pieces:
    """Pieces for another payload, signed by the same keys: `change` gets the statement, or is the payload."""
    old = TRUE[name]["envelope"]
    statement = json.loads(base64.b64decode(old["payload"]))
    payload = change if isinstance(change, bytes) else canonical_json(change(statement))
    pieces = [(old["payload"], to_base64(payload))]
    for key, former in zip(keys, old["signatures"], strict=True):
        pieces.append((former["sig"], to_base64(key.sign(pre_authentication_encoding(IN_TOTO, payload)))))
    return pieces


def said(**changed: Any) -> Any:
    """Other fields of the receipt."""
    return lambda statement: statement | {"predicate": statement["predicate"] | changed}


def noted(name: str, text: str, key: SigningKey = KEY, signer: str = ORIGIN, **pieces: str) -> Pieces:
    """Pieces for another checkpoint: its text, signed."""
    content = to_base64(note_key_id(signer, key.public) + key.sign(text.encode()))
    dash, end = pieces.get("dash", "\N{EM DASH} "), pieces.get("end", "\n")
    return [(quoted(TRUE[name]["log"]["checkpoint"]), quoted(f"{text}\n{dash}{signer} {content}{end}"))]


def root_of(name: str) -> str:
    return str(TRUE[name]["log"]["checkpoint"]).split("\n")[2]


def past_the_end(index: int) -> tuple[Pieces, str]:
    """The attack: a log of one entry, and a proof that leads to its root from a place that it does not have."""
    old = TRUE["a long log"]
    entry = sha256(b"\x00" + sha256(base64.b64decode(old["envelope"]["payload"])).digest()).digest()
    root = sha256(b"\x01" + bytes(32) + entry).digest()
    proof = {"index": index, "size": 2, "path": [to_base64(bytes(32))]}
    return [
        (quoted(old["log"]["inclusion"]), quoted(proof)),
        (quoted(old["log"]["checkpoint"]), quoted(checkpoint(2, root))),
    ], "a long log"


REFUSED = ""
HOLDS = "yyyyyyy"
UNSIGNED = "n---y-n"  # signed, receipt, before, after, checkpoint, logged, keys
NO_RECEIPT = "yn--y-y"
NO_CHECKPOINT = "yyyyn-n"
NOT_LOGGED = "yyyyyny"


def vectors_of_dossiers() -> dict[str, tuple[str, Pieces, str]]:
    """The true text, the pieces and what the checks say: yes, no or open; nothing where the dossier is refused."""
    one = TRUE["forgotten"]
    record, log, envelope = one["records"][0], one["log"], one["envelope"]
    inclusion, sig, payload = log["inclusion"], envelope["signatures"][0]["sig"], envelope["payload"]
    siblings = record["before"]["siblings"]
    path = inclusion["path"]
    note = log["checkpoint"].split("\n\n")[0] + "\n"
    found: dict[str, tuple[str, Pieces, str]] = {f"true: {name}": (name, [], HOLDS) for name in TRUE}

    def add(name: str, held: str, *pieces: Piece, of: str = "forgotten") -> None:
        found[name] = (of, list(pieces), held)

    # Numbers
    for number in ("2.0", "2e0", "20e-1", '"2"', "null", "true", "[2]", "-1", str(2 + (1 << 53)), str(1 << 63), "02"):
        add(f"an index that is {number}", REFUSED, ('"index":2', f'"index":{number}'))
    add("an index of minus zero", HOLDS, ('"index":0', '"index":-0'), of="the only record")
    add("an index of another entry", NOT_LOGGED, ('"index":2', '"index":3'))
    for index in (5, 6, 100, (1 << 63) - 1):
        add(f"the index {index} in a log of 5", REFUSED, ('"index":2', f'"index":{index}'))
    for index in (2, 3, 69):
        pieces, of = past_the_end(index)
        add(f"a proof of the index {index} in a log of 2", REFUSED, *pieces, of=of)
    add("a size of 0", REFUSED, ('"size":5', '"size":0'))
    add(
        "no entry in a log of none", REFUSED, ('"index":0', '"index":0'), ('"size":1', '"size":0'), of="the only record"
    )
    add("another size", NOT_LOGGED, ('"size":5', '"size":6'))
    add("a size of 64 bits", REFUSED, ('"size":5', f'"size":{1 << 63}'))
    add("the largest size", NOT_LOGGED, ('"size":5', f'"size":{(1 << 63) - 1}'))

    # The path in the log
    add("no path", NOT_LOGGED, (quoted(path), "[]"))
    add("a hash less", NOT_LOGGED, (quoted(path), quoted(path[:-1])))
    add("a hash more", NOT_LOGGED, (quoted(path), quoted([*path, path[0]])))
    add("as many hashes as may be read", NOT_LOGGED, (quoted(path), quoted((path * 2)[:4])))
    add("more hashes than a log of the size can need", REFUSED, (quoted(path), quoted((path * 2)[:5])))
    add("a path that is none", REFUSED, (quoted(path), "null"))
    add("a path in another order", NOT_LOGGED, (quoted(path), quoted(path[::-1])))
    add("a hash of 31 bytes", REFUSED, (path[0], "00" * 31))
    add("a hash of 33 bytes", REFUSED, (path[0], "00" * 33))
    add("a hash in capitals", REFUSED, (path[0], "AB" * 32))
    add("a hash in Base64", REFUSED, (path[0], to_base64(bytes(32))))

    # Base64
    for name, change in {
        "without its padding": lambda text: text.rstrip("="), "with a space": lambda text: text[:8] + " " + text[8:],
        "with a line feed at its end": lambda text: text + "\\n", "with padding twice": lambda text: text + "=",
        "with bits after the last byte": lambda text: text[:-2] + chr(ord(text[-2]) + 1) + "=",
        "with a letter that is none": lambda text: "é" + text[1:],
        "in the other alphabet": lambda text: "-_" + text[2:],
    }.items():  # fmt: skip
        add(f"a signature {name}", REFUSED, (f'"{sig}"', f'"{change(sig)}"'))
    add("an empty signature", UNSIGNED, (f'"{sig}"', '""'))
    add("an empty payload", UNSIGNED, (payload, ""))
    add("a payload without its padding or a letter", REFUSED, (payload, payload.rstrip("=")[:-1]))

    # Hexadecimal digits, and proofs about records
    add("a value in capitals", REFUSED, (f'"value":"{record["value"]}"', f'"value":"{record["value"].upper()}"'))
    add("a salt of 31 bytes", REFUSED, (record["salt"], record["salt"][2:]))
    add("another salt: of a record that never was there", "yynyyyy", (record["salt"], "00" * 32))
    for layout in ("", "0", "0G", "AB", "é0"):
        add(f"a layout that is {layout!r}", REFUSED, ("0500000000000000", layout))
    add("a layout of 65536 bytes", HOLDS, ("0500000000000000", "00", 65536))
    add("a layout of 65537 bytes", REFUSED, ("0500000000000000", "00", 65537))
    add("a sibling more", "yynyyyy", (quoted(siblings), quoted([*siblings, "11" * 32])))
    add("no siblings", "yynyyyy", (quoted(siblings), "[]"))
    add("a last sibling of zeros", REFUSED, (quoted(siblings), quoted([*siblings, "00" * 32])))
    last = f'"{"11" * 32}"'
    add("256 siblings", "yynyyyy", (quoted(siblings), f"[@{last}]"), ("@", f"{last},", 255))
    add("257 siblings", REFUSED, (quoted(siblings), f"[@{last}]"), ("@", f"{last},", 256))
    after = quoted(record["after"])
    absent = record["after"] | {"siblings": ["@", "11" * 32]}
    add("255 siblings of an absence", "yyynyyy", (after, quoted(absent)), ('"@",', f"{last},", 254))
    add("256 siblings of an absence", REFUSED, (after, quoted(absent)), ('"@",', f"{last},", 255))
    own = key_of(bytes.fromhex(record["salt"]), b"str:one").hex()
    itself = {"siblings": siblings, "other": {"key": own, "value": record["value"]}}
    add("an absence because of the record itself", "yyynyyy", (after, quoted(itself)))
    add("a sibling in capitals", REFUSED, (after, quoted(record["after"] | {"siblings": ["AA" * 32]})))
    add("an absence with another field", REFUSED, (after, quoted(record["after"] | {"more": 1})))
    again = '"after_value":"' + hashed("value one").hex()
    add("the same content again", "yyynyyy", ('"after_value":"' + "07" * 32, again), of="corrected")

    # Ids
    for name, id_, held in [
        ("two kinds", '{"int":1,"str":"one"}', REFUSED), ("no kind", "{}", REFUSED),
        ("an empty text", '{"str":""}', REFUSED),
        ("an integer as a float", '{"int":1.0}', REFUSED), ("a truth value", '{"int":true}', REFUSED),
        ("too large", f'{{"int":{1 << 63}}}', REFUSED), ("too small", f'{{"int":{-(1 << 63) - 1}}}', REFUSED),
        ("the smallest", f'{{"int":{-(1 << 63)}}}', "yynnyyy"), ("of a strange kind", '{"constructor":"one"}', REFUSED),
        ("half a letter", '{"str":"\\ud800"}', REFUSED), ("escaped", '{"str":"\\u006fne"}', HOLDS),
        ("a text with a zero", '{"str":"one\\u0000"}', "yynnyyy"),
    ]:  # fmt: skip
        add(f"an id that is {name}", held, ('{"str":"one"}', id_))
    for letter in ("a", "é", "\U0001f600"):
        for length, held in [(1000, "yynnyyy"), (1001, REFUSED)]:
            add(f"an id of {length} times {letter}", held, ('{"str":"one"}', '{"str":"@"}'), ("@", letter, length))
    for subject, held in [("1.5", REFUSED), ('""', REFUSED), ("false", REFUSED), ("null", HOLDS), ("-0", HOLDS)]:
        add(f"a subject that is {subject}", held, ('"subject":"alice"', f'"subject":{subject}'))
    add("a record twice", REFUSED, ('{"int":2}', '{"str":"one"}'), of="two records")
    add("'2' for 2: of a record that never was there", "yynyyyy", ('{"int":2}', '{"str":"2"}'), of="two records")

    # JSON
    add("a name twice", REFUSED, ('"subject":"alice"', '"subject":"alice","subject":"alice"'))
    add("a name twice, once escaped", REFUSED, ('"subject":"alice"', '"subject":"alice","subj\\u0065ct":"alice"'))
    add("a name that objects of JavaScript have", REFUSED, ('"subject":"alice"', '"subject":"alice","__proto__":{}'))
    add("spaces and escapes", HOLDS, ('"subject":"alice"', '\t"\\u0073ubject" :\r\n "\\u0061\\/lice" '))
    add("a byte order mark", REFUSED, ('{"envelope"', '\ufeff{"envelope"'))
    add("a space that JSON does not have", REFUSED, ('"subject":', '"subject":\u00a0'))
    add("a comma too much", REFUSED, ('"subject":"alice"', '"subject":"alice",'))

    # Keys
    add("a key with the lines of Windows", REFUSED, (quoted(PEM), quoted(PEM.replace("\n", "\r\n"))))
    add("a key with a line before it", REFUSED, (quoted(PEM), quoted("a key\n" + PEM)))
    add("a key twice", REFUSED, (quoted(PEM), f"{quoted(PEM)},{quoted(PEM)}"))
    for name, raw in strange_keys().items():
        add(f"a key that is {name}", REFUSED, (quoted([PEM]), quoted([PEM, pem_of(raw)])))
    add("an idle key", "yyyyyyn", (quoted([PEM]), quoted([PEM, OTHER.public.pem.decode()])))
    twin, idle = (key.public.pem.decode() for key in TWINS)
    end = quoted(log["checkpoint"])[:-1]
    also = (end, end + f"— {ORIGIN} {to_base64(TWIN_ID + TWINS[0].sign(note.encode()))}\\n")
    add("a second key that signed the checkpoint", NO_CHECKPOINT, also, (quoted([PEM]), quoted([PEM, twin])))
    add("two idle keys with the same four bytes", "yyyyyyn", (quoted([PEM]), quoted([PEM, twin, idle])))
    add("a key id in capitals", UNSIGNED, (f'"keyid":"{KEY.public.id}"', f'"keyid":"{KEY.public.id.upper()}"'))
    add("a signature with S + L", UNSIGNED, (sig, above(sig)))
    twice = quoted(envelope["signatures"] * 2)
    add("two signatures", REFUSED, (quoted(envelope["signatures"]), twice))
    add("a signature that is wrong", UNSIGNED, (sig, to_base64(bytes(64))))
    add("no signature", REFUSED, (quoted(envelope["signatures"]), "[]"))
    add("another type of payload", UNSIGNED, (IN_TOTO, "application/json"))

    # What is signed
    def resigned(name: str, held: str, change: Any) -> None:
        add(name, held, *signed_again("forgotten", change))

    for name, change in {
        "is no URI": lambda it: it | {"predicateType": "receipt"}, "has no subject": lambda it: it | {"subject": []},
        "has two subjects of one name": lambda it: it | {"subject": it["subject"] * 2},
        "has a subject without a name": lambda it: it | {"subject": [it["subject"][0] | {"name": ""}]},
        "has a digest in capitals": lambda it: it | {"subject": [it["subject"][0] | {"digest": {"sha256": "2C" * 32}}]},
        "has a URI with a space": lambda it: it | {"predicateType": "https://maxrr.dev/a\u0085b"},
        "has a predicate that is a list": lambda it: it | {"predicate": []},
        "is of another type": lambda it: it | {"_type": "https://in-toto.io/Statement/v0.1"},
        "has another field": lambda it: it | {"more": 1},
    }.items():  # fmt: skip
        resigned(f"a statement that {name}", UNSIGNED, change)
    resigned("a statement that is not UTF-8", UNSIGNED, b"\xff{}")
    resigned("a statement with a byte order mark", UNSIGNED, b"\xef\xbb\xbf" + base64.b64decode(payload))
    resigned(
        "a statement with half a letter",
        UNSIGNED,
        base64.b64decode(payload).replace(b'"number"', b'"a":"\\udc00","number"'),
    )
    for levels, held in [(62, NOT_LOGGED), (63, UNSIGNED)]:
        nest = b'"a":' + b"[" * levels + b"]" * levels + b',"b":"\\u0061","number"'
        resigned(f"a statement {levels + 2} levels deep", held, base64.b64decode(payload).replace(b'"number"', nest))
    resigned(
        "a URI with a mark that is no space",
        NO_RECEIPT,
        lambda it: it | {"predicateType": "https://maxrr.dev/a\ufeffb"},
    )
    resigned("a statement about two models", NO_RECEIPT, lambda it: it | {"subject": [
        *it["subject"], it["subject"][0] | {"name": "another"},
    ]})  # fmt: skip
    for name, change in {
        "the number 0": said(number=0), "the number 3.0": said(number=3.0), "a number that is true": said(number=True),
        "a number of 64 bits": said(number=1 << 63), "counts below 0": said(records_after=-1),
        "tombstones that are no list": said(tombstones={}),
        "a commitment in capitals": said(commitment_before="AA" * 32),
        "another model": said(model_after="00" * 32), "no commitment": said(commitment_after=None),
    }.items():  # fmt: skip
        resigned(f"a receipt with {name}", NO_RECEIPT, change)
    resigned("a receipt without tombstones", "ynyyyny", said(tombstones=[]))
    resigned("a receipt after which there are more", "ynyyyny", said(records_after=9))
    resigned("a receipt with numbers that few can hold", NOT_LOGGED, said(seed=(1 << 64) + 1, C=1e300))
    resigned("another receipt, not in the log", NOT_LOGGED, said(time="another"))

    # The checkpoint
    def noting(name: str, held: str, text: str, **given: Any) -> None:
        add(name, held, *noted("forgotten", text, **given))

    noting("the same checkpoint", HOLDS, note)
    for name, text in {
        "a size with a zero before it": note.replace("\n5\n", "\n05\n"),
        "a size with a plus": note.replace("\n5\n", "\n+5\n"),
        "a fourth line": note + "more\n", "a carriage return": note.replace("\n5\n", "\r\n5\n"),
        "a size of 64 bits": note.replace("\n5\n", f"\n{1 << 63}\n"), "a tab": note.replace("\n5\n", "\n5\t\n"),
        "a root of 31 bytes": note.replace(root_of("forgotten"), to_base64(bytes(31))),
        "a root in the other alphabet": note.replace(root_of("forgotten"), "_" * 43 + "="),
        "digits of another script": note.replace("\n5\n", "\n\N{ARABIC-INDIC DIGIT FIVE}\n"),
        "another name": note.replace(ORIGIN, "example.com/other"),
    }.items():  # fmt: skip
        noting(f"a checkpoint with {name}", NO_CHECKPOINT, text)
    noting("a checkpoint with a hyphen for the dash", NO_CHECKPOINT, note, dash="- ")
    noting("a checkpoint without its last line feed", NO_CHECKPOINT, note, end="")
    noting("a checkpoint with an empty line at its end", NO_CHECKPOINT, note, end="\n\n")
    noting("a checkpoint with the lines of Windows at its end", NO_CHECKPOINT, note, end="\r\n")
    noting("a checkpoint signed under another name", NO_CHECKPOINT, note, signer="example.com/other")
    noting("a checkpoint of another key", NO_CHECKPOINT, note, key=OTHER)
    noting("a checkpoint of another size", NOT_LOGGED, note.replace("\n5\n", "\n6\n"))
    noting("an empty checkpoint", NOT_LOGGED, note.replace("\n5\n", "\n0\n"))
    witness = "\\n— witness " + to_base64(bytes(72)) + "\\n"
    add("a checkpoint with a witness", NO_CHECKPOINT, (end, end[:-2] + witness))
    add("a second signature of the log's key that is wrong", NO_CHECKPOINT, (
        end, end + f"— {ORIGIN} " + to_base64(note_key_id(ORIGIN, KEY.public) + bytes(64)) + "\\n",
    ))  # fmt: skip
    add("a checkpoint without signatures", NO_CHECKPOINT, (end, quoted(note + "\n")[:-1]))
    add("a checkpoint of more than a MiB", NO_CHECKPOINT, (end, '"@' + end[1:]), ("@", "é", 1 << 19))
    add("a name of the log with a space", NO_CHECKPOINT, (f'"origin":"{ORIGIN}"', '"origin":"example.com/ log"'))
    add("no name of the log", NO_CHECKPOINT, (f'"origin":"{ORIGIN}"', '"origin":""'))
    return found


# Files of keys


def succession(
    new: str = KEY.public.id, signer: SigningKey = OTHER, kind: str = KEY_SUCCESSION, **changed: Any
) -> str:  # fmt: skip
    """The line that says of a key that it succeeds the one of who signs."""
    statement = Statement((Subject("key", new),), kind, {"former": OTHER.public.id, "time": "2026-03-01"} | changed)
    return Envelope.sign(statement, signer).to_bytes().decode() + "\n"


def vectors_of_files() -> dict[str, tuple[str, list[SigningKey]]]:
    """The text of a file, and the keys in it; none where the file is refused."""
    both, third = [KEY, OTHER], TWINS[0]
    begin, inner, last = PEM.splitlines()
    two = Statement((Subject("key", KEY.public.id), Subject("b", KEY.public.id)), KEY_SUCCESSION,
        {"former": OTHER.public.id, "time": "2026-03-01"})  # fmt: skip
    foreign = json.loads(succession()) | {"payloadType": "application/json"}
    found = {
        "one key": (PEM, [KEY]), "two keys": (PEM + FORMER, both), "in another order": (FORMER + PEM, [OTHER, KEY]),
        "a succession": (PEM + succession() + FORMER, both),
        "a succession at the end": (PEM + FORMER + succession(), both),
        "a succession twice": (PEM + FORMER + succession() * 2, both),
        "successions in a circle": (
            PEM + FORMER + succession() + succession(OTHER.public.id, KEY, former=KEY.public.id), both,
        ),
        "empty lines": (f"\n \t\n\x1c\x0b\n{PEM}\n\n{FORMER}\n", both),
        "the lines of Windows": ((PEM + succession() + FORMER).replace("\n", "\r\n"), both),
        "no line feed at the end": (PEM[:-1], [KEY]),
    }  # fmt: skip
    refused = {
        "nothing": "", "a key twice": PEM + PEM, "a succession alone": succession(),
        "a succession by a stranger": PEM + FORMER + succession(KEY.public.id, third),
        "a succession that the new key signed": PEM + FORMER + succession(KEY.public.id, KEY),
        "a succession with a signature that is too long": PEM + FORMER + succession().replace('"sig":"', '"sig":"AAAA'),
        "a succession with a signature that was changed": PEM + FORMER + json.dumps(
            json.loads(succession()) | {"signatures": [{"keyid": OTHER.public.id, "sig": to_base64(bytes(64))}]}),
        "a succession of a key that is not here": PEM + succession(),
        "a succession by a key that is not here": FORMER + succession(),
        "a succession of itself": FORMER + succession(OTHER.public.id),
        "a succession of two keys": PEM + FORMER + Envelope.sign(two, OTHER).to_bytes().decode(),
        "a succession of another type": PEM + FORMER + succession(kind="https://maxrr.dev/receipt/v1"),
        "a succession in an envelope of another type": PEM + FORMER + json.dumps(foreign),
        "a succession of another former key": PEM + FORMER + succession(former=KEY.public.id),
        "a succession with another field": PEM + FORMER + succession(more=1),
        "a succession without a day": PEM + FORMER + succession(time="yesterday"),
        "a succession with a time that is no text": PEM + FORMER + succession(time=20260301),
        "a succession after a space": PEM + FORMER + " " + succession(),
        "a succession on two lines": PEM + FORMER + succession().replace(",", ",\n"),
        "an object": PEM + "{}\n", "a key in an object": PEM + json.dumps({"key": FORMER}),
        "a mark of the order of bytes": "\ufeff" + PEM, "a comment": "# the operator's\n" + PEM,
        "a text after it": PEM + "hello\n", "a zero after it": PEM + "\0", "a space before it": " " + PEM,
        "a letter before it": "x" + PEM, "spaces at the ends of lines": PEM.replace("\n", " \n"),
        "a space of another kind": PEM + "\u00a0\n", "all on one line": PEM.replace("\n", " "),
        "the lines of old Macs": PEM.replace("\n", "\r"),
        "a key on more lines": f"{begin}\n{inner[:20]}\n{inner[20:]}\n{last}\n",
        "a key with an empty line": f"{begin}\n\n{inner}\n{last}\n",
        "a key with a heading": f"{begin}\nComment: x\n\n{inner}\n{last}\n",
        "a key without its end": f"{begin}\n{inner}", "a key cut": f"{PEM}{begin}\n",
        "no key in it": f"{begin}\n{last}\n",
        "a second key that is broken": PEM + FORMER.replace("MCow", "MCo!"),
        "a second key of another kind": PEM + FORMER.replace("PUBLIC", "RSA PUBLIC"),
        "a second key for another use": PEM + FORMER.replace("MCowBQYDK2Vw", "MCowBQYDK2Vu"),
        "a certificate": PEM + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "a private key": PEM + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    }  # fmt: skip
    return found | {name: (text, []) for name, text in refused.items()}


def made() -> dict[str, Any]:
    """What is in the file."""
    claims, held = list(CLAIMS), {"y": True, "n": False, "-": None}
    return {
        "key": PEM,
        "true dossiers": TEXTS,
        "dossiers": [
            {
                "name": name, "of": of, "pieces": [list(piece) for piece in pieces],
                "checks": {claim: held[mark] for claim, mark in zip(claims, marks, strict=True)} if marks else None,
            }
            for name, (of, pieces, marks) in vectors_of_dossiers().items()
        ],
        "keys": [{"name": name, "key": raw, "taken": taken} for name, (raw, taken) in vectors_of_keys().items()],
        "files of keys": [
            {"name": name, "text": text, "keys": [key.public.raw.hex() for key in keys] or None}
            for name, (text, keys) in vectors_of_files().items()
        ],
        "signatures": [
            {"name": name, "key": key, "signature": signature, "message": message, "holds": holds}
            for name, (key, signature, message, holds) in vectors_of_signatures().items()
        ],
    }  # fmt: skip


def read() -> dict[str, Any]:
    """The vectors, with the whole text of each dossier."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    for each in found["dossiers"]:
        text = found["true dossiers"][each["of"]]
        for old, new, *times in each["pieces"]:
            assert text.count(old) == 1, (each["name"], old[:80], text.count(old))
            text = text.replace(old, new * (times[0] if times else 1))
        each["text"] = text
    return found


if __name__ == "__main__":
    FILE.write_text(json.dumps(made(), indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
