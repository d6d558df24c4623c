"""Protocols that others plug in by: what the operator says of them, and whom this service may call.

The operator names, in one file, everybody whom this service may call. A URL that came with a request is called only
where it begins with one of these names: the machine it is sent to is never read from the request.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from maxrr.errors import HostNotAllowed

HOST = re.compile(r"https://[a-z0-9][a-z0-9.-]*(:\d{1,5})?|http://(127\.0\.0\.1|localhost)(:\d{1,5})?")
PATH = re.compile(r"/[!-~]*")  # printable ASCII: nothing that could end a line of HTTP


def checked_host(text: str) -> str:
    """Check the name of a host that may be called: with TLS, or on this machine."""
    if not HOST.fullmatch(text):
        raise ValueError("a host is https://host or https://host:port, or on this machine http://127.0.0.1:port")
    return text


def checked_address(text: str) -> str:
    """Check an address below a host that may be called."""
    host_of(text, [checked_host("/".join(text.split("/")[:3]))])
    return text


Host = Annotated[str, AfterValidator(checked_host)]
Address = Annotated[str, AfterValidator(checked_address)]


class Said(BaseModel):
    """A part of the file: a name that is not known is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)  # they may be secrets


class OpenDSR(Said):
    """How controllers reach this service by OpenDSR, with which certificate it signs, and whom it may call back.

    `identities` are those that the resolver maps, as type:format; `callbacks` are by the name on a controller's token.
    """

    url: Address
    certificate: Path
    identities: list[Annotated[str, Field(pattern="^[a-z0-9_]+:(raw|sha1|md5|sha256)$")]] = Field(min_length=1)
    callbacks: dict[str, list[Host]] = {}


class Fides(Said):
    """Where Fides is called back."""

    host: Host


class Webhook(Said):
    """Where the steps of all requests are sent to, and the file with the secret that signs them."""

    url: Address
    secret: Path


class Protocols(Said):
    """The protocols that a service speaks."""

    opendsr: OpenDSR | None = None
    fides: Fides | None = None
    webhooks: list[Webhook] = []

    @classmethod
    def read(cls, path: Path) -> "Protocols":
        """Read them from a file in TOML.

        Raises
        ------
        ValueError
            The file says something else, or it is not as it has to be.
        """
        try:
            return cls.model_validate(tomllib.loads(path.read_text()))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from None


def host_of(url: str, hosts: Sequence[str]) -> str:
    """Return the host that a URL belongs to, of those that may be called.

    >>> host_of("https://a.example/x", ["https://a.example"])
    'https://a.example'

    Raises
    ------
    maxrr.errors.HostNotAllowed
        It belongs to none.
    """
    for host in hosts:
        rest = url.removeprefix(host)
        if rest != url and PATH.fullmatch(rest) and len(url) <= 500 and not {"#", "\\"} & {*rest}:
            return host
    raise HostNotAllowed("an address to call back is not at a host that the operator of this service allows")
