"""Bytes as text and values as JSON, in one form each: what was signed can be said again, and nothing rides along."""

import base64
import binascii
import json
from typing import Annotated, Any, Self, TypeVar

from maxrr.errors import EvidenceError
from maxrr.files import from_plain, parse_json, to_plain
from maxrr.files.strict_json import Constraint

T = TypeVar("T")

Bytes32 = Annotated[bytes, Constraint("64 hexadecimal digits in small letters", lambda data: len(data) == 32)]

_ENCODER = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"), check_circular=False
)


def canonical_json(value: Any) -> bytes:
    """The one JSON text that is written for a value: names sorted by code point, no spaces, UTF-8 without escapes.

    A float is the shortest decimal that reads back as the same float, as Python's `repr` writes it.

    Raises
    ------
    EvidenceError
        The value has what JSON cannot say: NaN, infinity, half of a surrogate pair, another type.

    Examples
    --------
    >>> canonical_json({"b": [1.0, 1e-07], "a": "é"}).decode()
    '{"a":"é","b":[1.0,1e-07]}'
    """
    try:
        return _ENCODER.encode(value).encode()
    except UnicodeEncodeError:
        raise EvidenceError("a text has half of a surrogate pair, which UTF-8 cannot say") from None
    except (TypeError, ValueError) as error:
        raise EvidenceError(f"JSON cannot say it: {error}") from None


def text_of(value: Any) -> str:
    """Return the canonical JSON of a plain value as text, without checks."""
    return _ENCODER.encode(value)


def read_json(data: bytes, what: str) -> Any:
    """The value of a JSON text in UTF-8, read strictly; `what` is what an error calls it."""
    try:
        value = parse_json(data.decode())
    except UnicodeDecodeError:
        raise EvidenceError(f"{what} is not UTF-8") from None
    except ValueError as error:
        raise EvidenceError(f"{what} is not JSON as it must be: {error}") from None
    if rb"\u" in data:
        canonical_json(value)  # refuses half of a surrogate pair, which only an escape can say
    return value


def read_as(form: type[T], said: Any, what: str) -> T:
    """Plain values as a declared form, read strictly (`maxrr.files.from_plain`); `what` is what an error calls them."""
    try:
        return from_plain(form, said)
    except ValueError as error:
        raise EvidenceError(f"{what} is not as it must be: {error}") from None


class Plain:
    """A dataclass that is written as JSON field by field, with bytes as hexadecimal digits."""

    def to_object(self) -> dict[str, Any]:
        """The value as an object that JSON can say."""
        said: dict[str, Any] = to_plain(self)
        return said

    @classmethod
    def from_object(cls, said: Any) -> Self:
        """Read a value strictly."""
        return read_as(cls, said, f"the {cls.__name__.lower()}")


def to_base64(data: bytes) -> str:
    """Standard Base64 with padding."""
    return base64.b64encode(data).decode()


def from_base64(said: str, what: str, *, length: int | None = None) -> bytes:
    """Read a Base64 text; only the spelling that `to_base64` writes is accepted.

    >>> from_base64("AQI=", "the root")
    b'\\x01\\x02'
    """
    try:
        data = base64.b64decode(said.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise EvidenceError(f"{what} is not Base64") from None
    if to_base64(data) != said:  # bits after the last byte that are not zero
        raise EvidenceError(f"{what} is Base64 that nobody writes")
    if length is not None and len(data) != length:
        raise EvidenceError(f"{what} has {len(data)} bytes instead of {length}")
    return data
