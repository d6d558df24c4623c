"""What the page's scripts say of a dossier is what `maxrr.evidence` says: SHA-2, Ed25519, JSON, proofs, forgeries."""

import hashlib
import io
import json
from typing import Any

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from maxrr.data.hashes import layout
from maxrr.errors import EvidenceError
from maxrr.evidence import Dossier, PublicKeys
from maxrr.evidence.exact_text import canonical_json
from tests.cases import THOROUGH
from tests.evidence.dossiers import COUNT
from tests.evidence.forgeries import FORGED, KEY, MISSING, OPERATOR, OTHER, ROWS, TRUE, UNREADABLE
from tests.evidence.logs import flipped
from tests.report.in_node import answer, answers

PEM = KEY.public.pem.decode()
WORLDS = ("browser", "own")  # with the browser's cryptography, and without


def text(dossier: dict[str, Any]) -> str:
    return canonical_json(dossier).decode()


def checked(dossiers: list[str], keys: str = PEM, world: str = "browser") -> list[dict[str, Any]]:
    return answers([{"call": "check", "dossier": each, "keys": keys, "world": world} for each in dossiers])


def in_python(dossier: dict[str, Any]) -> list[tuple[str, bool | None]]:
    return [(check.name, check.held) for check in Dossier.from_object(dossier).check([KEY.public])]


@pytest.mark.parametrize("world", WORLDS)
def test_hashes_are_those_of_hashlib(world: str) -> None:
    data = [bytes(range(256))[:size] * (1 + size // 9) for size in (0, 1, 55, 56, 63, 64, 111, 112, 119, 127, 128, 200)]
    calls = [
        {"call": "sha", "size": size, "data": each.hex(), "world": world} for size in (256, 512) for each in data
    ]  # fmt: skip
    expected = [hashlib.new(f"sha{size}", each).hexdigest() for size in (256, 512) for each in data]
    assert [found["answer"] for found in answers(calls)] == expected


@pytest.mark.parametrize("world", WORLDS)
def test_signatures_are_those_of_cryptography(world: str) -> None:
    rng = np.random.default_rng(1)
    calls, expected = [], []
    for length in (0, 1, 100, 1000):
        key = Ed25519PrivateKey.from_private_bytes(rng.bytes(32))
        raw, message = key.public_key().public_bytes_raw(), rng.bytes(length)
        signature = key.sign(message)
        order = (1 << 252) + 27742317777372353535851937790883648493
        above = (int.from_bytes(signature[32:], "little") + order).to_bytes(32, "little")
        for one, signed, said, holds in [
            (raw, signature, message, True),
            (raw, signature, message + b"!", False),
            (raw, flipped(signature, 3), message, False),
            (raw, flipped(signature, 300), message, False),
            (raw, signature[:32] + above, message, False),  # the same point, but RFC 8032 forbids it
            (raw, signature[:63], message, False),
            (flipped(raw, 17), signature, message, False),
            (b"\xff" * 32, signature, message, False),
        ]:
            calls.append({
                "call": "verifies", "key": one.hex(), "signature": signed.hex(), "message": said.hex(), "world": world,
            })  # fmt: skip
            expected.append(holds)
    assert [found["answer"] for found in answers(calls)] == expected


def test_json_is_read_as_strictly() -> None:
    good = ['{"a":[1,-2.5e3,"é\\u00e9\\n",null,true,{}]}', "[]", " [ ] ", '{"n":12345678901234567890}']
    bad = [
        "", "{", "[1,]", '{"a":1,}', '{"a":1,"a":2}', "[01]", "[NaN]", "[1e999]", '"\\x"', '["a\nb"]', "[] []", "{a:1}",
        '["\\ud800"]', "[1 2]", "'a'", "[" * 70 + "]" * 70, "[" + "9" * 301 + "]", '{"a" 1}', "[+1]", "[.5]", "tru",
    ]  # fmt: skip
    found = answers([{"call": "parse", "text": each} for each in good + bad])
    assert [one.get("answer") for one in found[: len(good)]] == [
        {"a": ["int 1", -2500, "éé\n", None, True, {}]}, [], [], {"n": "int 12345678901234567890"},
    ]  # fmt: skip
    assert [each for each, one in zip(bad, found[len(good) :], strict=True) if "wrong" not in one] == []


@pytest.mark.parametrize("world", WORLDS)
def test_true_ones_are_verified(world: str) -> None:
    true = [
        TRUE, OPERATOR.dossier([4], subject=None), OPERATOR.dossier([5], replaced=True),
        OPERATOR.dossier([0, 1], number=300, size=1000), OPERATOR.dossier(ROWS, keys=(OTHER, KEY)),
    ]  # fmt: skip
    for found in checked([text(each) for each in true], PEM + OTHER.public.pem.decode(), world):
        assert [(check["name"], check["held"]) for check in found["answer"]] == [
            (check.name, True) for check in Dossier.from_object(TRUE).check([KEY.public])
        ]


@pytest.mark.parametrize("world", WORLDS)
def test_forgeries_are_found_by_the_same_checks(world: str) -> None:
    names = list(FORGED) if world == "browser" else list(FORGED)[:4]
    found = checked([text(FORGED[name][0]) for name in names], world=world)
    for name, one in zip(names, found, strict=True):
        assert [(check["name"], check["held"]) for check in one["answer"]] == in_python(FORGED[name][0]), name
        assert all(bool(check["wrong"]) == (check["held"] is not True) for check in one["answer"])


def test_what_is_no_dossier_is_refused() -> None:
    cases = UNREADABLE | MISSING
    found = checked([json.dumps(each) for each in cases.values()])
    assert [name for name, one in zip(cases, found, strict=True) if "wrong" not in one] == []


def test_changed_bits_are_found_as_python_finds_them() -> None:
    whole = text(OPERATOR.dossier([4])).encode()
    calls, expected = [], []
    for bit in range(0, 8 * len(whole), 11 if THOROUGH else 211):
        try:
            changed = flipped(whole, bit).decode()
        except UnicodeDecodeError:
            continue
        try:
            held = [check.held for check in Dossier.from_bytes(changed.encode()).check([KEY.public])]
        except EvidenceError:
            held = None
        calls.append(changed)
        expected.append(held)
    assert len(calls) > 100
    for changed, held, found in zip(calls, expected, checked(calls), strict=True):
        assert [check["held"] for check in found.get("answer", [])] == (held or []), changed[:200]


def test_keys_are_read_as_they_are_published() -> None:
    many = PublicKeys((OTHER.public,)).succeeded_by(KEY.public, OTHER, "2026-03-01T00:00:00+00:00").to_bytes().decode()
    for keys in (PEM, f"The key of 2026:\r\n{PEM}".replace("\n", "\r\n"), many):
        (found,) = checked([text(TRUE)], keys)
        assert all(check["held"] for check in found["answer"])
    secret = "-----BEGIN PRIVATE KEY-----"
    refused = checked([text(TRUE)], "no key") + checked([text(TRUE)], secret) + checked([text(TRUE)], PEM[:60])
    assert [list(found) for found in refused] == [["wrong"]] * 3


def npy(array: Any) -> str:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue().hex()


def found_in(dossier: dict[str, Any], file: str, name: str = "class 1", **given: Any) -> Any:
    """What the page makes of a record that somebody drops in."""
    (one,) = answers([{"call": "find", "dossier": text(dossier), "file": file, "className": name} | given])
    return one.get("answer", one.get("wrong"))


def test_the_record_is_recognised() -> None:
    image = OPERATOR.inputs[4]  # of class 1
    assert found_in(TRUE, npy(image)) == "scan-4"
    assert found_in(TRUE, npy(image[None])) == "scan-4"
    assert found_in(TRUE, image.tobytes().hex()) == "scan-4"
    assert found_in(TRUE, npy(OPERATOR.inputs[8]), "class 2") == "scan-8"


def test_another_record_is_not() -> None:
    image = OPERATOR.inputs[4]
    assert found_in(TRUE, npy(OPERATOR.inputs[5])) is None
    assert found_in(TRUE, npy(image), "class 2") is None
    assert found_in(TRUE, npy(image), weight=1.0) is None
    assert found_in(TRUE | {"subject": "bob"}, npy(image)) is None
    assert found_in(TRUE | {"record_layout": layout(np.dtype("uint8"), (4, 5)).hex()}, npy(image[0])) is None


def test_a_subject_may_be_typed() -> None:
    unnamed = OPERATOR.dossier(ROWS, subject=None)
    assert found_in(unnamed, npy(OPERATOR.inputs[4])) is None
    assert found_in(unnamed, npy(OPERATOR.inputs[4]), subject="alice") == "scan-4"


def test_a_weight_counts() -> None:
    weights = np.arange(COUNT) / 3
    weighed = OPERATOR.dossier(ROWS, weights=weights)
    image = npy(OPERATOR.inputs[4])
    assert found_in(weighed, image) is None
    assert found_in(weighed, image, weight=4 / 3) == "scan-4"


def test_the_pixels_of_an_image_are_the_record() -> None:
    grey = OPERATOR.inputs[4][0]
    pixels = np.stack([grey, grey, grey, np.full_like(grey, 255)], axis=-1)
    given = {"pixels": pixels.tobytes().hex(), "width": 5, "height": 4}
    assert found_in(TRUE, "", **given) == "scan-4"
    assert "5 × 4" in found_in(TRUE, "", **(given | {"width": 4, "height": 5}))
    coloured = pixels.copy()
    coloured[0, 0, 0] ^= 1
    assert "grey" in found_in(TRUE, "", **(given | {"pixels": coloured.tobytes().hex()}))


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (np.zeros((1, 4, 5), dtype=np.float32), "type float32, and the record has uint8"),
        (np.zeros((1, 5, 4), dtype=np.uint8), "1 × 4 × 5"),
        (np.zeros((2, 1, 4, 5), dtype=np.uint8), "1 × 4 × 5"),
        (np.asfortranarray(np.zeros((1, 4, 5), dtype=np.uint8)), "Fortran"),
    ],
)
def test_files_that_cannot_be_the_record(array: Any, why: str) -> None:
    assert why in found_in(TRUE, npy(array))


def test_cut_off_files_and_other_sizes() -> None:
    whole = npy(OPERATOR.inputs[4])
    assert "cut off" in found_in(TRUE, whole[:-2])
    assert "19 bytes" in found_in(TRUE, "00" * 19)


def test_the_order_of_bytes_does_not_matter() -> None:
    numbers = np.linspace(-1, 1, COUNT * 6).reshape(COUNT, 2, 3).astype(np.float32)
    dossier = of_numbers(numbers)
    assert found_in(dossier, npy(numbers[4])) == "scan-4"
    assert found_in(dossier, npy(numbers[4].astype(">f4"))) == "scan-4"


def of_numbers(numbers: Any) -> dict[str, Any]:
    """A dossier about records of other inputs."""
    from tests.evidence.dossiers import Operator

    class Numbers(Operator):
        @property
        def inputs(self) -> Any:
            return numbers

    return Numbers(KEY).dossier(ROWS)


def test_a_script_stands_in_a_page_as_it_is() -> None:
    from maxrr.report.dossier import script_of_page

    script = script_of_page()
    assert not any(each in script.lower() for each in ("</script", "<script", "<!--", "fetch(", "xmlhttp", "eval("))
    assert answer("sha", size=256, data="") == hashlib.sha256().hexdigest()
