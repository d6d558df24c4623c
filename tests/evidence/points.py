"""Keys and signatures that no library makes, and Ed25519's points to make them from (RFC 8032)."""

import base64
from hashlib import sha512

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.evidence import SigningKey
from maxrr.evidence.exact_text import to_base64
from maxrr.evidence.signing import ORDER_8, PRIME

ORDER = (1 << 252) + 27742317777372353535851937790883648493


def key_from(seed: int) -> SigningKey:
    return SigningKey(Ed25519PrivateKey.from_private_bytes(bytes([seed]) * 32))


KEY, OTHER = key_from(1), key_from(2)


def above(signature: str) -> str:
    """The same signature with S + L for S."""
    raw = base64.b64decode(signature)
    return to_base64(raw[:32] + (int.from_bytes(raw[32:], "little") + ORDER).to_bytes(32, "little"))


def pem_of(raw: bytes) -> str:
    der = base64.b64encode(bytes.fromhex("302a300506032b6570032100") + raw).decode()
    return f"-----BEGIN PUBLIC KEY-----\n{der}\n-----END PUBLIC KEY-----\n"


def encoded(y: int, odd: int = 0) -> bytes:
    return (y | odd << 255).to_bytes(32, "little")


def strange_keys() -> dict[str, bytes]:
    """All encodings of the eight points of small order, and of others whose y is not less than the prime."""
    found = {}
    for odd in (0, 1):
        for name, y in {
            "0": 0,
            "1": 1,
            "-1": PRIME - 1,
            "of order 8": ORDER_8,
            "of order 8, too": PRIME - ORDER_8,
        }.items():
            found[f"of small order, y {name}, sign {odd}"] = encoded(y, odd)
        for y in range(19):
            found[f"of y {y} and the prime, sign {odd}"] = encoded(PRIME + y, odd)
    return found


def vectors_of_keys() -> dict[str, tuple[str, bool]]:
    found = {name: (raw.hex(), False) for name, raw in strange_keys().items()}
    found |= {"of a private key": (KEY.public.raw.hex(), True), "of another": (OTHER.public.raw.hex(), True)}
    # Nobody can sign under a point that is not on the curve. Under one of mixed order only who has its private key can.
    found["not on the curve"] = (encoded(2).hex(), True)
    return found | {"of mixed order": (mixed_key().hex(), True)}


def vectors_of_signatures() -> dict[str, tuple[str, str, str, bool]]:
    """Key, signature, message and whether it is the key's signature of it."""
    message = b"a message"
    raw, good = KEY.public.raw, KEY.sign(message)
    cases: dict[str, tuple[bytes, bytes, bytes, bool]] = {
        "true": (raw, good, message, True), "of nothing": (raw, KEY.sign(b""), b"", True),
        "of another message": (raw, good, b"another message", False),
        "of another key": (OTHER.public.raw, good, message, False),
        "with S + L": (raw, base64.b64decode(above(to_base64(good))), message, False),
        "with the largest S": (raw, good[:32] + b"\xff" * 32, message, False),
        "with S of 0": (raw, good[:32] + bytes(32), message, False),
        "with S of L": (raw, good[:32] + ORDER.to_bytes(32, "little"), message, False),
        "empty": (raw, b"", message, False), "cut": (raw, good[:63], message, False),
        "longer": (raw, good + b"\x00", message, False),
        "all zeros": (raw, bytes(64), message, False),
        "under a point that is not on the curve": (encoded(2), good, message, False),
    }  # fmt: skip
    for name, nonce in strange_keys().items():
        cases[f"with R {name}"] = (raw, nonce + good[32:], message, False)
    cases["of the key's holder, with R the neutral point"] = (raw, neutral_nonce(message), message, True)
    cases["the same with the sign bit"] = (raw, neutral_nonce(message, odd=1), message, False)
    cases["of mixed order that fits without the cofactor"] = (mixed_key(), *mixed_signature(True), True)
    cases["of mixed order that fits with the cofactor only"] = (mixed_key(), *mixed_signature(False), False)
    return {name: (*(each.hex() for each in given), holds) for name, (*given, holds) in cases.items()}  # type: ignore[misc]


D = -121665 * pow(121666, PRIME - 2, PRIME) % PRIME
Point = tuple[int, int]


def added(one: Point, other: Point) -> Point:
    (x1, y1), (x2, y2) = one, other
    both = D * x1 * x2 * y1 * y2 % PRIME
    x = (x1 * y2 + x2 * y1) * pow(1 + both, PRIME - 2, PRIME) % PRIME
    return x, (y1 * y2 + x1 * x2) * pow(1 - both, PRIME - 2, PRIME) % PRIME


def times(factor: int, point: Point) -> Point:
    total = (0, 1)
    while factor:
        total = added(total, point) if factor & 1 else total
        factor, point = factor >> 1, added(point, point)
    return total


def point_of(raw: bytes) -> Point:
    number = int.from_bytes(raw, "little")
    y, odd = number & ((1 << 255) - 1), number >> 255
    square = (y * y - 1) * pow(D * y * y + 1, PRIME - 2, PRIME) % PRIME
    x = pow(square, (PRIME + 3) // 8, PRIME)
    if x * x % PRIME != square:
        x = x * pow(2, (PRIME - 1) // 4, PRIME) % PRIME
    assert x * x % PRIME == square
    return (x if x & 1 == odd else PRIME - x), y


def bytes_of(point: Point) -> bytes:
    return encoded(point[1], point[0] & 1)


BASE = point_of(bytes.fromhex("58" + "66" * 31))
TWISTED = point_of(encoded(ORDER_8))  # of order 8


def secret_of(seed: int) -> int:
    """The number that the public key of `key_from(seed)` is the base point times (RFC 8032, 5.1.5)."""
    number = int.from_bytes(sha512(bytes([seed]) * 32).digest()[:32], "little")
    secret = number & ((1 << 254) - 8) | 1 << 254
    assert bytes_of(times(secret, BASE)) == key_from(seed).public.raw
    return secret


def challenge(nonce: bytes, key: bytes, message: bytes) -> int:
    return int.from_bytes(sha512(nonce + key + message).digest(), "little") % ORDER


def neutral_nonce(message: bytes, odd: int = 0) -> bytes:
    """A signature whose R is the neutral point: it tells everybody the private key."""
    nonce = encoded(1, odd)
    return nonce + (challenge(nonce, KEY.public.raw, message) * secret_of(1) % ORDER).to_bytes(32, "little")


def mixed_key() -> bytes:
    """A public key plus a point of order 8."""
    return bytes_of(added(point_of(KEY.public.raw), TWISTED))


def mixed_signature(fits: bool) -> tuple[bytes, bytes]:
    """A signature under that key, and its message: about each eighth fits without multiplying by the cofactor."""
    nonce = bytes_of(times(12345, BASE))
    for number in range(1000):
        message = b"message %d" % number
        factor = challenge(nonce, mixed_key(), message)
        if (factor % 8 == 0) is fits:
            return nonce + ((12345 + factor * secret_of(1)) % ORDER).to_bytes(32, "little"), message
    raise AssertionError("no message fits")
