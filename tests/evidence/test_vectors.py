"""Python says of the vectors what must be said of them; tests/report/test_vectors.py has the page's script say it."""

from pathlib import Path

import pytest

from maxrr.errors import EvidenceError
from maxrr.evidence import Dossier, PublicKey, PublicKeys
from tests.evidence import vectors

GIVEN = vectors.read()


def test_the_file_is_what_is_made() -> None:
    assert vectors.made() == {**GIVEN, "dossiers": [
        {name: value for name, value in each.items() if name != "text"} for each in GIVEN["dossiers"]
    ]}  # fmt: skip


@pytest.mark.parametrize("given", GIVEN["dossiers"], ids=lambda each: each["name"])
def test_dossiers(given: dict) -> None:
    try:
        dossier = Dossier.from_bytes(given["text"].encode())
    except EvidenceError:
        assert given["checks"] is None
        return
    found = {check.name: check.held for check in dossier.check([PublicKey.from_pem(GIVEN["key"].encode())])}
    assert found == given["checks"]


@pytest.mark.parametrize("given", GIVEN["keys"], ids=lambda each: each["name"])
def test_keys(given: dict) -> None:
    raw = bytes.fromhex(given["key"])
    for read in (PublicKey, lambda raw: PublicKey.from_pem(vectors.pem_of(raw).encode())):
        if given["taken"]:
            assert read(raw).raw == raw
        else:
            with pytest.raises(EvidenceError):
                read(raw)


@pytest.mark.parametrize("given", GIVEN["files of keys"], ids=lambda each: each["name"])
def test_files_of_keys(given: dict, tmp_path: Path) -> None:
    path = tmp_path / "operator.pub"
    path.write_bytes(given["text"].encode())
    if given["keys"]:
        assert [key.raw.hex() for key in PublicKeys.load(path).keys] == given["keys"]
    else:
        with pytest.raises(EvidenceError):
            PublicKeys.load(path)


@pytest.mark.parametrize("given", GIVEN["signatures"], ids=lambda each: each["name"])
def test_signatures(given: dict) -> None:
    key, signature, message = (bytes.fromhex(given[name]) for name in ("key", "signature", "message"))
    assert PublicKey(key).verifies(signature, message) is given["holds"]
