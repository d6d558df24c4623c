"""Dossiers as a patient forger would try them: true ones, changed at random in structure, text and what is signed.

Who forges here has the operator's key as well, so that changes get past the signatures to what is checked behind them.
"""

import base64
import copy
import json
import random
import re
from collections.abc import Callable
from hashlib import sha256
from typing import Any

from maxrr.evidence.checkpoints import note_key_id
from maxrr.evidence.envelopes import IN_TOTO, pre_authentication_encoding
from maxrr.evidence.exact_text import to_base64
from maxrr.evidence.log_proofs import Subtrees
from tests.evidence.points import KEY, ORDER, OTHER, pem_of, strange_keys
from tests.evidence.vectors import ORIGIN, TRUE, checkpoint, dossier, log_of

Draw = random.Random
SIGNERS = {key.public.id: key for key in (KEY, OTHER)}
BASES = [
    *TRUE.values(), dossier([1, "1", "é"], others=9), dossier([0], others=1, subject=-5),
    dossier(["a"], number=8, size=8),
    dossier(["b"], number=5, size=5), dossier([3], replaced=True, others=0, number=1, size=2),
    dossier(["one"], keys=(OTHER, KEY)), dossier(["x", "y"], others=0),
]  # fmt: skip
# JSON that no value of Python is written as; `text_of` takes the marks away.
ODD = [
    "@1e3@", "@-0@", "@2.0@", "@1E400@", "@-1@", "@01@", "@NaN@", '@"\\ud800"@', '@"\\u0041"@',
    '@"\\ud83d\\ude00"@', "@\u00a01@",
    "@9007199254740993@", "@9223372036854775807@", "@9223372036854775808@", "@18446744073709551616@", f"@{'9' * 301}@",
    '@{"a":1,"a":1}@', "@[1,]@", f"@{'[' * 70}{']' * 70}@", '@"\\x41"@', '@"\t"@', "@2e0@", "@-9223372036854775809@",
]  # fmt: skip
PLAIN = [
    None,
    True,
    False,
    0,
    1,
    2,
    3,
    4,
    5,
    -1,
    1.5,
    "",
    "0",
    "model",
    "é",
    "\ufeff",
    "\u0085",
    "\u2028",
    "\x7f",
    [],
    {},
    [[]],
]
LETTERS = [
    "",
    " ",
    "\n",
    "\r",
    "\t",
    "=",
    "A",
    "a",
    "0",
    "f",
    "g",
    "+",
    "/",
    "-",
    "_",
    "é",
    "\u0085",
    "\ufeff",
    "\u2028",
    "\x00",
]


def text_of(said: Any) -> str:
    """JSON, in which what stands between marks is taken as it is."""
    return re.sub(
        r'"@((?:[^"\\@]|\\.)*)@"', lambda found: json.loads(f'"{found[1]}"'), json.dumps(said, ensure_ascii=False)
    )


def mutated(seed: int) -> str:
    """The text of a dossier, changed once or a few times."""
    draw = Draw(seed)
    said = copy.deepcopy(draw.choice(BASES))
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        try:
            draw.choice(CHANGES)(draw, said)
        except (KeyError, IndexError, TypeError, ValueError, AttributeError):
            continue  # what it would change is not there any more
    text = text_of(said)
    return in_text(draw, text) if draw.random() < 0.1 else text


# Changes of a value


def places(said: Any) -> list[tuple[Any, Any]]:
    """Every container with a name or place in it."""
    found: list[tuple[Any, Any]] = []
    items = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    for name, value in items:
        found += [(said, name), *places(value)]
    return found


def anywhere(draw: Draw, said: Any) -> None:
    """Change, remove, double or exchange something."""
    inside, name = draw.choice(places(said))
    kind = draw.randrange(6)
    if kind == 0:
        del inside[name]
    elif kind == 1 and isinstance(inside, list):
        inside.insert(draw.randrange(len(inside) + 1), copy.deepcopy(inside[name]))
    elif kind == 1:
        inside[draw.choice(["more", "__proto__", "type", "other", "after_value"])] = copy.deepcopy(inside[name])
    elif kind == 2:
        elsewhere, there = draw.choice(places(draw.choice(BASES)))
        inside[name] = copy.deepcopy(elsewhere[there])
    elif kind == 3 and isinstance(inside, list):
        draw.shuffle(inside)
    else:
        inside[name] = another(draw, inside[name])


def another(draw: Draw, value: Any) -> Any:
    """A value that is near another one, or quite another."""
    if draw.random() < 0.25:
        return draw.choice(ODD + PLAIN)
    if type(value) is int:
        return draw.choice(
            [value + 1, value - 1, -value, value * 2, value + 5, value ^ 1, 0, f"@{value}.0@", f"@{value}e0@"]
        )
    if isinstance(value, str):
        return letters(draw, value)
    if isinstance(value, list) and value:
        return draw.choice([value[:-1], value[1:], value * 2, [*value, value[0]], value[::-1], value * 70, []])
    return draw.choice(ODD + PLAIN)


def letters(draw: Draw, text: str) -> str:
    """A text with a letter or a few changed, added or taken away, or in another form of its kind."""
    place = draw.randrange(len(text) + 1)
    changes: list[Callable[[], str]] = [
        lambda: text[:place] + draw.choice(LETTERS) + text[place:],
        lambda: text[:place] + draw.choice(LETTERS) + text[place + 1 :],
        lambda: text[: place // 2] + text[place:], text.upper, lambda: text + draw.choice(LETTERS),
        lambda: text.replace("\n", "\r\n"), lambda: text.rstrip("="), lambda: text.replace("/", "_").replace("+", "-"),
        lambda: flipped(draw, text), lambda: flipped(draw, text),
    ]  # fmt: skip
    return draw.choice(changes)()


def flipped(draw: Draw, text: str) -> str:
    """Hexadecimal digits or Base64 with another bit in its bytes."""
    digits = bool(re.fullmatch("([0-9a-f]{2})+", text))
    data = bytearray(bytes.fromhex(text) if digits else base64.b64decode(text, validate=True))
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return data.hex() if digits else to_base64(bytes(data))


def in_text(draw: Draw, text: str) -> str:
    """The text with a letter changed, a piece doubled or a letter escaped."""
    place = draw.randrange(len(text))
    end = place + draw.randrange(1, 40)
    return draw.choice([
        text[:place] + draw.choice(['"', "{", "}", ",", ":", "\\", " ", "\u00a0", "0", "e", "."]) + text[place:],
        text[:place] + text[end:], text[:end] + text[place:],
        f"{text[:place]}\\u{ord(text[place]):04x}{text[place + 1 :]}",
        text.replace('"subject"', '"subject":null,"subject"', 1), f" \t\r\n{text}\n",
        f"\ufeff{text}", f"{text}{text}", f"{text}x",
    ])  # fmt: skip


# Changes of what is signed, which is signed again


def payload_of(said: Any) -> bytes:
    return base64.b64decode(said["envelope"]["payload"])


def sign(draw: Draw, said: Any, payload: bytes) -> None:
    """Put another payload into the envelope and, mostly, into the log."""
    envelope = said["envelope"]
    envelope["payload"] = to_base64(payload)
    for each in envelope["signatures"]:
        each["sig"] = to_base64(
            SIGNERS[each["keyid"]].sign(pre_authentication_encoding(envelope["payloadType"], payload))
        )
    if draw.random() < 0.8:
        index, size = said["log"]["inclusion"]["index"], said["log"]["inclusion"]["size"]
        if not 0 <= index < size < 200:
            raise ValueError("there is no such log, or none that is soon made")
        said["log"] = log_of(payload, index + 1, size)


def in_the_statement(draw: Draw, said: Any) -> None:
    """Anything in the statement."""
    statement = json.loads(payload_of(said))
    anywhere(draw, statement)
    sign(draw, said, text_of(statement).encode())


def in_the_receipt(draw: Draw, said: Any) -> None:
    """One of the fields that are looked at."""
    statement = json.loads(payload_of(said))
    name = draw.choice(list(statement["predicate"]))
    statement["predicate"][name] = another(draw, statement["predicate"][name])
    sign(draw, said, text_of(statement).encode())


def in_the_bytes(draw: Draw, said: Any) -> None:
    """A byte of the payload, or its text."""
    payload = bytearray(payload_of(said))
    payload[draw.randrange(len(payload))] = draw.randrange(256)
    written = in_text(draw, payload_of(said).decode()).encode("utf-8", "surrogatepass")
    sign(draw, said, draw.choice([bytes(payload), written]))


def in_the_type(draw: Draw, said: Any) -> None:
    """The type of the payload, signed with it."""
    said["envelope"]["payloadType"] = draw.choice(["", "é", "application/json", IN_TOTO + " ", IN_TOTO.upper()])
    sign(draw, said, payload_of(said))


# Changes of the log


def note(draw: Draw, said: Any, text: str, name: str = ORIGIN) -> None:
    key = draw.choice([KEY, KEY, KEY, OTHER])
    content = to_base64(note_key_id(name, key.public) + key.sign(text.encode("utf-8", "replace")))
    said["log"]["checkpoint"] = f"{text}\n\N{EM DASH} {name} {content}\n"


def in_the_note(draw: Draw, said: Any) -> None:
    """The text of the checkpoint, signed again."""
    text = said["log"]["checkpoint"].split("\n\n")[0] + "\n"
    lines = text.split("\n")
    lines[draw.randrange(len(lines))] = another_line = draw.choice(
        [letters(draw, draw.choice(lines)), "0", "5", "05", "+5", "é"]
    )
    note(draw, said, draw.choice(["\n".join(lines), letters(draw, text), text + another_line + "\n", text]))


def in_the_name(draw: Draw, said: Any) -> None:
    """The log's name, everywhere."""
    name = letters(draw, ORIGIN)
    said["log"]["origin"] = name
    note(draw, said, said["log"]["checkpoint"].replace(ORIGIN, name).split("\n\n")[0] + "\n", name)


def in_the_signatures(draw: Draw, said: Any) -> None:
    """The lines below the checkpoint."""
    text, below = said["log"]["checkpoint"].split("\n\n")
    lines = below.split("\n")
    witness = f"\N{EM DASH} {letters(draw, 'witness')} {to_base64(draw.randbytes(draw.choice([3, 4, 5, 68, 72])))}"
    ours = f"\N{EM DASH} {ORIGIN} {to_base64(note_key_id(ORIGIN, KEY.public) + draw.randbytes(64))}"
    lines.insert(
        draw.randrange(len(lines)), draw.choice([witness, witness, ours, "", lines[0], letters(draw, lines[0])])
    )
    said["log"]["checkpoint"] = text + "\n\n" + "\n".join(lines * draw.choice([1, 1, 1, 22]))


def in_the_proof(draw: Draw, said: Any) -> None:
    """Index, size and path, of which the checkpoint knows: what follows the path is its root, at whatever place."""
    log = said["log"]
    statement = json.loads(payload_of(said))
    number = draw.choice([statement["predicate"]["number"], draw.randrange(1, 12), 70])
    if number != statement["predicate"]["number"]:
        statement["predicate"]["number"] = number
        sign(draw, said, text_of(statement).encode())
    log = said["log"]
    index = draw.choice([number - 1, number, number - 2])
    size = draw.choice([0, 1, 2, 3, number - 1, number, number + 1, log["inclusion"]["size"], (1 << 63) - 1, 1 << 63])
    path = [draw.randbytes(32) for _ in range(draw.choice([0, 1, 2, 3, 4, 7, 63, 64, 65]))]
    root = sha256(b"\x00" + sha256(payload_of(said)).digest()).digest()
    position, last = index, size - 1
    for beside in path:  # as RFC 9162 verifies it, whatever the numbers are
        if position & 1 or position == last:
            root = sha256(b"\x01" + beside + root).digest()
            while not position & 1 and position:
                position, last = position >> 1, last >> 1
        else:
            root = sha256(b"\x01" + root + beside).digest()
        position, last = position >> 1, last >> 1
    log["inclusion"] = {"index": index, "size": size, "path": [to_base64(each) for each in path]}
    log["checkpoint"] = checkpoint(size, root)


def in_another_log(draw: Draw, said: Any) -> None:
    """A log of another size, its proof cut or continued."""
    number = json.loads(payload_of(said))["predicate"]["number"]
    log = said["log"] = log_of(payload_of(said), number, number + draw.randrange(9))
    path = log["inclusion"]["path"]
    log["inclusion"]["path"] = draw.choice([path, path, path[:-1], path[1:], [*path, to_base64(bytes(32))]])
    if draw.random() < 0.3:
        other = Subtrees(sha256(b"%d" % place).digest() for place in range(4)).prove_inclusion(draw.randrange(4), 4)
        log["inclusion"] = other.to_object()


# Changes of keys and signatures


def in_the_keys(draw: Draw, said: Any) -> None:
    """Strange keys, and keys in other forms, or others'."""
    keys = said["keys"]
    raw = draw.choice([*strange_keys().values(), draw.randbytes(32), KEY.public.raw, OTHER.public.raw])
    other = draw.choice([pem_of(raw), letters(draw, keys[0]), keys[0].strip(), f"\n{keys[0]}"])
    keys.insert(draw.randrange(len(keys) + 1), other)
    if draw.random() < 0.3:
        keys.pop()


def in_a_signature(draw: Draw, said: Any) -> None:
    """A signature of the envelope, or the id of its key."""
    each = draw.choice(said["envelope"]["signatures"])
    raw = base64.b64decode(each["sig"])
    above = (int.from_bytes(raw[32:], "little") + ORDER) % (1 << 256)
    each["sig"] = to_base64(draw.choice([
        raw[:32] + above.to_bytes(32, "little"), raw[:63], raw + b"\x00", b"", bytes(64), raw[32:] + raw[:32],
        draw.choice(list(strange_keys().values())) + raw[32:], raw,
    ]))  # fmt: skip
    each["keyid"] = draw.choice(
        [each["keyid"], each["keyid"], KEY.public.id, OTHER.public.id, each["keyid"].upper(), ""]
    )
    if draw.random() < 0.3:
        said["envelope"]["signatures"].append({"keyid": letters(draw, each["keyid"]), "sig": to_base64(raw)})


CHANGES: list[Callable[[Draw, Any], None]] = [
    anywhere, anywhere, anywhere, anywhere, in_the_statement, in_the_receipt, in_the_bytes, in_the_type, in_the_note,
    in_the_name, in_the_signatures, in_the_proof, in_the_proof, in_another_log, in_the_keys, in_a_signature,
]  # fmt: skip
