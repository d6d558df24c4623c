"""Page and Python say the same of dossiers that were changed at random: of every check by its name."""

import base64
import random
from collections import Counter
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.errors import EvidenceError
from maxrr.evidence import Dossier, SigningKey
from maxrr.evidence.checkpoints import Checkpoint, note_key_id
from maxrr.evidence.dossiers import CLAIMS
from tests.cases import THOROUGH
from tests.evidence.mutations import mutated, text_of
from tests.evidence.points import KEY, OTHER
from tests.evidence.vectors import ORIGIN, dossier
from tests.report.in_node import answers

Answer = dict[str, bool | None] | None  # None: it cannot be read


def in_python(text: str, keys: list[Any]) -> Answer:
    try:
        data = text.encode()
    except UnicodeEncodeError:  # no file has it
        data = text.encode("utf-8", "replace")
    try:
        return {check.name: check.held for check in Dossier.from_bytes(data).check(keys)}
    except EvidenceError:
        return None


def compared(seeds: list[int]) -> Counter[str]:
    """How often each answer was given; it fails at the first that differs."""
    texts = [mutated(seed).encode("utf-8", "replace").decode() for seed in seeds]
    keys = [[KEY.public] if seed % 3 else [OTHER.public, KEY.public] for seed in seeds]
    calls = [
        {"call": "check", "dossier": text, "keys": "".join(key.pem.decode() for key in given)}
        for text, given in zip(texts, keys, strict=True)
    ]
    marks = {True: "y", False: "n", None: "-"}
    found: Counter[str] = Counter()
    for seed, text, given, one in zip(seeds, texts, keys, answers(calls), strict=True):
        page: Answer = {check["name"]: check["held"] for check in one["answer"]} if "answer" in one else None
        assert in_python(text, given) == page, (seed, one, text[:3000])
        found["".join(marks[held] for held in page.values()) if page else "refused"] += 1
    return found


def test_page_and_python_say_the_same() -> None:
    found = compared(list(range(400)))
    assert set(found) >= {"refused", "yyyyyyy", "n---y-n", "yn--y-y", "yyyyn-n", "yyyyyny", "yynyyyy", "yyyyyyn"}
    if THOROUGH:
        for _ in range(10):
            compared([random.randrange(1 << 60) for _ in range(1000)])


def test_two_keys_whose_four_bytes_are_the_same() -> None:
    """Notes name a key by four bytes: whichever of two such keys signed, in whatever order they are given."""
    twins = [SigningKey(Ed25519PrivateKey.from_private_bytes(seed.to_bytes(32, "big"))) for seed in (64063, 139885)]
    assert len({note_key_id(ORIGIN, key.public) for key in twins}) == 1
    for signer in twins:
        other = twins[signer is twins[0]]
        said = dossier(["one"], keys=(other,))
        _, size, root = said["log"]["checkpoint"].split("\n")[:3]
        signed = Checkpoint.sign(ORIGIN, int(size), base64.b64decode(root), signer)
        said["log"]["checkpoint"] = signed.to_bytes().decode()
        for keys in (twins, twins[::-1]):
            said["keys"] = pems = [key.public.pem.decode() for key in keys]
            (one,) = answers([{"call": "check", "dossier": text_of(said), "keys": "".join(pems)}])
            page = {check["name"]: check["held"] for check in one["answer"]}
            assert in_python(text_of(said), [key.public for key in keys]) == page == dict.fromkeys(CLAIMS, True)
