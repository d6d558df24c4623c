"""The seal of `workspace.json`: whoever changes it without the key is found out, whatever hash is put beside it."""

import json

import pytest

from maxrr.workspace import Workspace, WorkspaceError, commits, overview
from tests.workspace.problems import contents, copied, kinds, write_root

UNDER_NO_KEY = b""
ANOTHER = bytes(32)
SAYS = {
    "no shard keeps anything": lambda facts: facts.update(left=[], stale=[]),
    "another shard keeps it": lambda facts: facts.update(stale=[(facts["stale"][0] + 1) % 3]),
    "a shard is not trained": lambda facts: facts.update(untrained=[0]),
    "no technique was used": lambda facts: facts.update(technique=not facts["technique"]),
    "the core depended on less": lambda facts: facts["choice"].update(
        unconditional=not facts["choice"]["unconditional"]
    ),
    "other records": lambda facts: facts.update(commitment="0" * 64),
    "copies were let in": lambda facts: facts.update(overrides=[{"time": "", "records": 1, "reason": ""}]),
}


@pytest.fixture(scope="module")
def used(template, tmp_path_factory):
    """A workspace in shards, one of which keeps something of a forgotten record."""
    folder = copied(template("hash in shards"), tmp_path_factory.mktemp("seal") / "workspace")
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[0][:1], core_policy="keep-extractor")
    return folder


def body_of(folder):
    return json.loads((folder / commits.NAME).read_text())


def refused(folder):
    """By all who open it, and nothing is touched."""
    before = contents(folder)
    for way in (Workspace.open, lambda folder: Workspace.open(folder, read_only=True), overview):
        with pytest.raises(
            WorkspaceError, match=r"workspace\.json is damaged: it (was not written under the key|is not s)"
        ):
            way(folder)
    locks = {".lock": b"", ".turnstile": b""}
    assert contents(folder) | locks == before | locks


@pytest.mark.parametrize("change", SAYS)
@pytest.mark.parametrize("key", [UNDER_NO_KEY, ANOTHER], ids=["no key", "another key"])
def test_what_is_changed_without_the_key_is_not_believed(used, tmp_path, change, key):
    folder = copied(used, tmp_path / "workspace")
    body = body_of(folder)
    SAYS[change](body["facts"])
    write_root(folder, body, key)
    refused(folder)


def test_the_old_seal_does_not_go_with_other_words(used, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    body = body_of(folder)
    seal = body["hmac"]
    SAYS["another shard keeps it"](body["facts"])
    write_root(folder, body)
    assert body_of(folder)["hmac"] != seal
    other = {**body_of(folder), "hmac": seal}
    del other["sha256"]
    (folder / commits.NAME).write_text(json.dumps({**other, "sha256": commits.json_digest(other)}))
    refused(folder)
