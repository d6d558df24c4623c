"""A bundle in a file: all that a replay needs, on another machine."""

import contextlib
import copy
import dataclasses
import functools
import json
import subprocess
import sys

import numpy as np
import pytest
from torch import nn

from maxrr.core import FrequencyCore, HashCore, MiddleCore
from maxrr.errors import NetworkMissing, OtherRecords
from maxrr.unlearning import Bundle, codec, replay
from maxrr.unlearning.bundles import facts_in
from maxrr.unlearning.facts import CoreFacts
from tests.unlearning.problems import core_of, fresh, table
from tests.unlearning.test_replaying import retrained

CORE = HashCore(0.5, key="house")


def test_a_bundle_there_and_back(tmp_path, here):
    receipt, bundle, retained = retrained()
    bundle.save(tmp_path / "b")
    assert (tmp_path / "b").stat().st_mode & 0o077 == 0
    loaded = Bundle.load(tmp_path / "b")
    assert replay(receipt, loaded, retained)
    for field in dataclasses.fields(Bundle):
        one, other = getattr(bundle, field.name), getattr(loaded, field.name)
        if isinstance(one, np.ndarray):
            assert one.dtype.kind == other.dtype.kind
            assert np.array_equal(one, other), field.name
        elif field.name not in ("blueprint", "choice", "extractor"):
            assert one == other, field.name
    assert {name: value.tolist() for name, value in bundle.extractor.items()} == {
        name: value.tolist() for name, value in loaded.extractor.items()
    }


def test_records_whose_classes_have_other_names_are_told_apart_from_other_records(here):
    receipt, bundle, retained = retrained()
    renamed = dataclasses.replace(retained, class_names=tuple(f"{name}!" for name in retained.class_names))
    with pytest.raises(OtherRecords, match=f"{retained.class_names[0]}!"):
        replay(receipt, bundle, renamed)


@pytest.mark.parametrize(("core", "stored"), [
    (HashCore(0.5, key="house"), ("HashCore", {"fraction": 0.5, "shards": 1, "by": "subject"}, b"house")),
    (FrequencyCore(9, tie_breaker="ties"), ("FrequencyCore", {"k": 9, "runs": 10, "shards": 1}, b"ties")),
    (MiddleCore(9, runs=2), ("MiddleCore", {"k": 9, "runs": 2, "shards": 1}, b"maxrr")),
])  # fmt: skip
def test_what_a_core_hashes_ids_with_is_stored_apart(core, stored):
    """Files have it in one place, whether it is a secret or not."""
    said, hashed_with = codec.core_facts(core), codec.core_key(core)
    assert (said, hashed_with) == (CoreFacts(*stored[:2]), stored[2])
    assert codec.core_of(said, hashed_with) == core


ELSEWHERE = """
import sys
from maxrr.data import load
from maxrr.unlearning import Bundle, Receipt, replay, replaying

if __name__ == "__main__":  # this is a fresh process already
    replaying.call_in_fresh_process = lambda function, *arguments, **_: function(*arguments)
    records, _ = load(sys.argv[1])
    bundle = Bundle.load(sys.argv[2])
    receipt = Receipt.from_json(open(sys.argv[3]).read())
    print(replay(receipt, bundle, records.select(bundle.ids)).outcome)
"""


@pytest.mark.long
def test_whoever_holds_the_data_proves_it_in_another_process(tmp_path):
    """With three files, and nothing of the process that made them."""
    receipt, bundle, retained = retrained()
    bundle.save(tmp_path / "model.bundle")
    (tmp_path / "receipt.json").write_text(receipt.to_json())
    # A source whose training side is exactly these records.
    np.savez(
        tmp_path / "retained.npz", x_train=retained.inputs, y_train=retained.labels, ids_train=retained.ids,
        subjects_train=retained.subjects, x_test=retained.inputs[:1], y_test=retained.labels[:1],
        ids_test=np.array([1]), subjects_test=np.array([1]), class_names=np.array(retained.class_names),
    )  # fmt: skip
    (tmp_path / "check.py").write_text(ELSEWHERE)
    files = [tmp_path / name for name in ("retained.npz", "model.bundle", "receipt.json")]
    done = subprocess.run(
        [sys.executable, tmp_path / "check.py", *files], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.stdout == "identical\n", done.stderr


def test_a_bundle_of_somebodys_own_network_needs_it(tmp_path, here):
    network = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    model = fresh(CORE, table(), network).fit(table())
    ids = core_of(model)[:1]
    receipt = model.unlearn(ids, core_policy="retrain")
    model.bundle().save(tmp_path / "b")
    with pytest.raises(NetworkMissing):
        Bundle.load(tmp_path / "b")
    again = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
    assert replay(receipt, Bundle.load(tmp_path / "b", network=again), table().without(ids))


def test_what_is_no_bundle_is_refused(tmp_path):
    _, bundle, _ = retrained()
    bundle.save(tmp_path / "b")
    whole = (tmp_path / "b").read_bytes()
    for content in (b"", b"{}", whole[:100], whole[:-7], b"\xff" * 64, whole.replace(b"maxrr bundle", b"maxrr bindle")):
        (tmp_path / "c").write_bytes(content)
        with pytest.raises(ValueError, match=r"bundle|damaged"):
            Bundle.load(tmp_path / "c")
    with pytest.raises(FileNotFoundError):
        Bundle.load(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="not a file"):
        Bundle.load(tmp_path)


@functools.cache
def said_in_bundle():
    import tempfile
    from pathlib import Path

    import safetensors

    _, bundle, _ = retrained()
    path = Path(tempfile.mkdtemp()) / "b"
    bundle.save(path)
    with safetensors.safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return json.loads(file.metadata()["maxrr"]), tensors


@pytest.mark.parametrize("wrong", [None, 3, "x", [], {}, [None], -1, 1e308])
def test_a_bundle_that_says_anything_else_proves_nothing(wrong, tmp_path, here):
    """Each thing that it says, exchanged: refused, or an outcome other than identical, or what it says was no claim."""
    import safetensors.torch

    receipt, _, retained = retrained()
    said, tensors = said_in_bundle()
    harmless = {
        "device", "threads",  # where to compute: the environment is compared
        "dtype", "shape", "durations", "layouts",  # of the records, which are at hand, and of the folder
    }  # fmt: skip
    for name in said:
        parts = [(name,)] if not isinstance(said[name], dict) else [(name, part) for part in said[name]]
        for path in parts:
            changed = copy.deepcopy(said)
            place = changed
            for step in path[:-1]:
                place = place[step]
            if place[path[-1]] == wrong or path[-1] in harmless:
                continue
            place[path[-1]] = wrong
            safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(changed)})
            try:
                replayed = replay(receipt, Bundle.load(tmp_path / "b"), retained)
            except ValueError:
                continue
            assert not replayed or path[-1] in ("ids", "core", "core_key"), path


@pytest.mark.parametrize("forged", [
    {"waiting": [-5]}, {"waiting": "first twice"}, {"waiting": ["a"]},
    {"people": {"alice": [0, "2026-11-16"]}}, {"people": {"A" * 64: [0, "2026-11-16"]}},
    {"people": {"0" * 64: [99, "2026-11-16"]}}, {"waiting": [1.5]}, {"waiting": [True]},
    {"ids": ["a", 1]}, {"ids": [1, "2"]},
], ids=str)  # fmt: skip
def test_what_was_added_is_part_of_what_there_is(forged, tmp_path, here):
    """Additions that the model does not have, or twice; people whose names are no HMACs, or of a later request."""
    import safetensors.torch

    said, tensors = said_in_bundle()
    ids = said["ids"]
    named = {"first": ids[:1], "last": ids[-1:], "first twice": ids[:1] * 2}
    forged = {name: named[part] if isinstance(part, str) else part for name, part in forged.items()}
    safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(said | forged)})
    with pytest.raises(ValueError, match="damaged"):
        Bundle.load(tmp_path / "b")
    safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(said | {"waiting": ids[1:2]})})
    assert Bundle.load(tmp_path / "b").waiting == tuple(ids[1:2])


@pytest.mark.parametrize("forged", [{"threads": -1}, {"threads": 0}, {"C": float("nan")}, {"C": -1.0}], ids=str)
def test_a_bundle_says_how_a_model_can_be_made(forged, tmp_path):
    import safetensors.torch

    said, tensors = said_in_bundle()
    changed = said | {"facts": said["facts"] | forged}
    safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(changed)})
    with pytest.raises(ValueError, match="damaged"):
        Bundle.load(tmp_path / "b")


@pytest.mark.parametrize("odd", [True, 0, 1.5, "x", [], [1], {}, {"maker": 5}, {"maker": "a:b", "arguments": 3}, None])
def test_what_a_bundle_names_is_told_or_it_is_damaged(odd, tmp_path):
    """Whatever stands where the network and the training function are named."""
    import safetensors.torch

    said, tensors = said_in_bundle()
    facts = said["facts"]
    places = [
        said | {"facts": odd}, said | {"facts": facts | {"network": odd}}, said | {"facts": facts | {"recipe": odd}},
        said | {"facts": facts | {"recipe": facts["recipe"] | {"function": odd}}},
        {name: part for name, part in said.items() if name != "facts"},
        said | {"facts": {name: part for name, part in facts.items() if name != "network"}},
    ]  # fmt: skip
    for changed in places:
        safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(changed)})
        with contextlib.suppress(ValueError):  # and no other
            facts_in(tmp_path / "b")
    changed = said | {"facts": facts | {"network": {"maker": 5, "arguments": []}}}
    safetensors.torch.save_file(tensors, tmp_path / "b", {"maxrr": json.dumps(changed)})
    with pytest.raises(ValueError, match="number, not text"):
        facts_in(tmp_path / "b")
