"""The history is written under the key: whoever changes it or the words that it names without the key is found out."""

import pytest

from maxrr.workspace import Workspace, WorkspaceError, overview
from tests.workspace.problems import contents, copied, facts_of, kinds, rewrite_facts, rewrite_frames

UNDER_NO_KEY = b"none"
ANOTHER = bytes(32)
SAYS = {
    "no shard keeps anything": lambda facts: facts.update(in_extractor=[], stale=[]),
    "another shard keeps it": lambda facts: facts.update(stale=[(facts["stale"][0] + 1) % 3]),
    "a shard is not trained": lambda facts: facts.update(untrained=[0]),
    "no technique was used": lambda facts: facts.update(technique=not facts["technique"]),
    "the core depended on less": lambda facts: facts.update(unconditional=not facts["unconditional"]),
    "copies were let in": lambda facts: facts.update(overrides=[{"time": "", "records": 1, "reason": ""}]),
}


@pytest.fixture(scope="module")
def used(template, tmp_path_factory):
    """A workspace in shards, one of which keeps something of a forgotten record."""
    folder = copied(template("hash in shards"), tmp_path_factory.mktemp("seal") / "workspace")
    with Workspace.open(folder) as workspace:
        workspace.model.unlearn(kinds(workspace.model)[0][:1], core_policy="keep-extractor")
    return folder


def refused(folder):
    """By all who open it, and nothing is touched."""
    before = contents(folder)
    for way in (Workspace.open, lambda folder: Workspace.open(folder, read_only=True), overview):
        with pytest.raises(WorkspaceError, match=r"(history|heads)-.* is damaged"):
            way(folder)
    assert contents(folder) | {".lock": b""} == before | {".lock": b""}


@pytest.mark.parametrize("change", SAYS)
@pytest.mark.parametrize("key", [UNDER_NO_KEY, ANOTHER], ids=["no key", "another key"])
def test_what_is_changed_without_the_key_is_not_believed(used, tmp_path, change, key):
    folder = copied(used, tmp_path / "workspace")
    facts = facts_of(folder)
    SAYS[change](facts)
    rewrite_facts(folder, facts, key)
    refused(folder)


@pytest.mark.parametrize("change", [{"commitment": "0" * 64}, {"requests": 0}, {"state": 9}, {"erased": []}])
def test_frames_cannot_be_changed_without_the_key(used, tmp_path, change):
    folder = copied(used, tmp_path / "workspace")
    rewrite_frames(folder, lambda frames: frames[-1].update(change), ANOTHER)
    refused(folder)


def test_other_words_do_not_go_with_the_old_history(used, tmp_path):
    folder = copied(used, tmp_path / "workspace")
    (history,) = folder.glob("history-*.bin")
    before, facts = history.read_bytes(), facts_of(folder)
    SAYS["another shard keeps it"](facts)
    (heads,) = folder.glob("heads-*.safetensors")
    rewrite_facts(folder, facts)
    (other,) = folder.glob("heads-*.safetensors")
    other.rename(heads)
    history.write_bytes(before)
    refused(folder)
