"""Ed25519 keys: a private one that signs and shows itself to nobody, and a public one that anybody checks with."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
    load_pem_public_key,
)

from maxrr.errors import EvidenceError, FileExists, NotAKey, UnsafeMode
from maxrr.files import open_regular, write_atomically
from maxrr.files.atomic import remove_unfinished

ENVIRONMENT = "MAXRR_SIGNING_KEY"
LARGEST = 1 << 16  # bytes of a key file: one has about 120
PRIME = 2**255 - 19  # of the field that Ed25519's points have their coordinates in
ORDER_8 = 2707385501144840649318225287225658788936804267575313519463743609750303402022
SMALL_ORDER = (0, 1, PRIME - 1, ORDER_8, PRIME - ORDER_8)  # the y of the eight points whose order divides 8
NEWER = "if its signer has a newer list of public keys, get it, and check it with maxrr verify NEW --against OLD"


@dataclass(frozen=True)
class PublicKey:
    """A public key: it checks what the private key of the same pair has signed.

    Attributes
    ----------
    raw : bytes
        Its 32 bytes, as RFC 8032 encodes them.

    Raises
    ------
    EvidenceError
        It is a point of small order, under which one signature fits many messages, or is encoded in a second way.
    """

    raw: bytes

    def __post_init__(self) -> None:
        if len(self.raw) != 32:
            raise EvidenceError("an Ed25519 public key has 32 bytes")
        y = int.from_bytes(self.raw, "little") & ((1 << 255) - 1)
        if y >= PRIME or y in SMALL_ORDER:
            raise EvidenceError("this is an Ed25519 public key that no private key gives")

    @classmethod
    def from_pem(cls, pem: bytes, where: str = "this") -> Self:
        """Read a public key from a PEM text.

        Parameters
        ----------
        pem : bytes
            The text, as `pem` has it.
        where : str
            What an error calls it.

        Returns
        -------
        PublicKey
            The key.

        Raises
        ------
        EvidenceError
            It is no Ed25519 public key.
        """
        try:
            key = load_pem_public_key(pem)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise NotAKey(f"{where} is no Ed25519 public key in PEM")
        return cls(key.public_bytes_raw())

    @property
    def pem(self) -> bytes:
        """The key as PEM (SubjectPublicKeyInfo)."""
        return self._key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def id(self) -> str:
        """The SHA-256 of the key's SubjectPublicKeyInfo in DER, in 64 hexadecimal digits: its name in envelopes."""
        return hashlib.sha256(self._key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether the private key has signed a message.

        Parameters
        ----------
        signature : bytes
            What is said to be the signature.
        message : bytes
            What is said to be signed.

        Returns
        -------
        bool
            Whether the signature is the private key's, of just these bytes.
        """
        try:
            self._key().verify(signature, message)
        except InvalidSignature:
            return False
        return True

    def _key(self) -> Ed25519PublicKey:
        return Ed25519PublicKey.from_public_bytes(self.raw)


class SigningKey:
    """A private key. It shows nothing of itself but the id of its public key, and cannot be copied by pickling.

    Parameters
    ----------
    key
        The private key of `cryptography`.
    """

    __slots__ = ("_key", "_public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._public = PublicKey(key.public_key().public_bytes_raw())

    @classmethod
    def generate(cls) -> Self:
        """Draw a new key from the system's randomness.

        Returns
        -------
        SigningKey
            The key.
        """
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a private key from a PEM file (PKCS #8, not encrypted) that nobody but its owner may read or write.

        Parameters
        ----------
        path
            The file.

        Returns
        -------
        SigningKey
            The key.

        Raises
        ------
        EvidenceError
            Others may read or write the file, or it holds no such key.
        OSError
            The file cannot be read.
        """
        with open_regular(path) as file:
            mode = os.fstat(file.fileno()).st_mode  # of the file that is read, whatever takes its name meanwhile
            if mode & (stat.S_IRWXG | stat.S_IRWXO):
                raise UnsafeMode(
                    f"{path} is a private key that others than its owner may use (mode {stat.S_IMODE(mode):03o}): "
                    f"make a new key if they may have read it, or run chmod 600 on the file"
                )
            return cls(_private_key(file.read(LARGEST), str(path)))

    @classmethod
    def from_environment(cls) -> Self | None:
        """Read the private key whose PEM text is in the environment variable MAXRR_SIGNING_KEY.

        Returns
        -------
        SigningKey or None
            The key; None if the variable is not set.

        Raises
        ------
        EvidenceError
            The variable holds no such key.
        """
        text = os.environ.get(ENVIRONMENT)
        return None if text is None else cls(_private_key(os.fsencode(text), ENVIRONMENT))

    def save(self, path: str | Path) -> None:
        """Write the key to a new PEM file that only its owner may read.

        Parameters
        ----------
        path
            The file.

        Raises
        ------
        EvidenceError
            There is something at this path: a key is never written over. An empty file holds none.
        """
        remove_unfinished(path)
        pem = self._key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        try:
            write_atomically(path, pem, private=True, new=True)
        except FileExistsError:
            raise FileExists(f"{path} is there already, and a key is never written over: choose another name") from None

    @property
    def public(self) -> PublicKey:
        """The public key of the pair."""
        return self._public

    def sign(self, message: bytes) -> bytes:
        """Sign a message.

        Parameters
        ----------
        message : bytes
            What is signed.

        Returns
        -------
        bytes
            The signature: 64 bytes, the same every time.
        """
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey(id={self.public.id!r})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is not copied: save it to a file of its own")


def require_signing_key(given: object) -> None:
    """Refuse anything but a key to sign with. The value is not shown: it may be the text of a key.

    Raises
    ------
    TypeError
        It says how to load one.
    """
    if not isinstance(given, SigningKey):
        raise TypeError(f"a SigningKey signs, and this is a {type(given).__name__}: load one by SigningKey.load(path)")


def _private_key(pem: bytes, where: str) -> Ed25519PrivateKey:
    """The private key in a PEM text. Nothing of the text gets into an error."""
    try:
        key = load_pem_private_key(pem, password=None)
    except TypeError:
        raise NotAKey(f"{where} is encrypted with a password: store the key without one") from None
    except (ValueError, UnsupportedAlgorithm):
        text = ": it takes the text of the file, not its name" if where == ENVIRONMENT else ""
        raise NotAKey(f"{where} holds no private key in PEM (PKCS #8){text}") from None
    if not isinstance(key, Ed25519PrivateKey):
        raise NotAKey(f"{where} holds a private key that is not for Ed25519")
    return key
