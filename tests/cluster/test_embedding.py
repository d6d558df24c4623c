"""Features that the workers of an engine compute are those computed here, in memory and in a file."""

import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import Future

import numpy as np
import pytest
from torch import nn

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.data import load
from maxrr.errors import EngineError
from maxrr.nets import MLP, embed, embedding
from maxrr.parallel import InProcess, Ray
from maxrr.svm import LinearSVM, validation
from tests.cluster.conftest import ROOT
from tests.cluster.extractors import BLOCK, ROWS, Mixing, Narrowing, Noted, records
from tests.cluster.work import notes

pytestmark = pytest.mark.usefixtures("cluster")

STRETCHES = -(-ROWS // BLOCK)


@pytest.fixture(autouse=True)
def _short_stretches(monkeypatch):
    monkeypatch.setattr(embedding, "STRETCH", 1)


@pytest.fixture(scope="module")
def expected():
    return embed(Noted(), records(), device="cpu")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def embedded(*, poisoned=None, extractor=None, **wanted):
    return embed(extractor or Noted(), records(poisoned=poisoned), device="cpu", **wanted)


def test_in_memory(engine, expected):
    seen = []
    found = embedded(engine=engine, progress=lambda *done: seen.append(done))
    assert found.tobytes() == expected.tobytes()
    assert found.shape == expected.shape
    assert [what for what, _, _ in seen] == ["embedding"] * STRETCHES
    assert seen[-1] == ("embedding", ROWS, ROWS)


def test_into_a_file(engine, expected, tmp_path):
    path, seen = tmp_path / "features.npy", []
    path.write_bytes(b"old")
    found = embedded(engine=engine, out=path, progress=lambda *done: seen.append(done))
    assert isinstance(found, np.memmap)
    embedded(out=tmp_path / "local.npy")
    assert path.read_bytes() == (tmp_path / "local.npy").read_bytes()
    assert path.stat().st_mode == (tmp_path / "local.npy").stat().st_mode
    assert found.tobytes() == expected.tobytes()
    assert names(tmp_path) == ["features.npy", "local.npy"]
    assert seen[-1] == ("embedding", ROWS, ROWS)


def test_from_a_file(expected, tmp_path):
    np.save(tmp_path / "inputs.npy", records().inputs)
    mapped = np.load(tmp_path / "inputs.npy", mmap_mode="r")
    found = embed(Noted(), records(mapped), device="cpu", engine=Ray())
    assert found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("out", [None, "features.npy"])
def test_a_record_without_usable_features_is_named(tmp_path, out):
    path = None if out is None else tmp_path / out
    with pytest.raises(ValueError, match="record 'record 700' that are not finite") as caught:
        embedded(poisoned=700, extractor=Overflowing(), engine=Ray(), out=path)
    assert "while rows 512 to 767 of the dataset were embedded" in caught.value.__notes__
    assert out is None or names(tmp_path) == ["features.npy.journal", "features.npy.part"]


class Overflowing(Noted):
    """Makes large numbers infinite."""

    def forward(self, x):
        return super().forward(x * 10.0)


@pytest.mark.parametrize("out", [None, "features.npy"])
def test_neighbours_are_looked_at(tmp_path, out):
    with pytest.raises(ValueError, match="depend on its neighbours"):
        embedded(extractor=Mixing(), engine=Ray(), out=None if out is None else tmp_path / out)
    assert names(tmp_path) == []


def test_other_features_for_some(tmp_path):
    with pytest.raises(ValueError, match="6 features of type float32 for some records, and 5 of type float32"):
        embedded(extractor=Narrowing(), engine=Ray(), out=tmp_path / "features.npy")


def test_few_records_are_embedded_here(monkeypatch):
    monkeypatch.setattr(embedding, "STRETCH", 64)
    assert len(embedded(engine=Lost(0))) == ROWS


class Lost(InProcess):
    """An engine whose process is lost after some stretches."""

    def __init__(self, after):
        object.__setattr__(self, "after", after)

    def as_finished(self, function, items, *shared):
        for number, item in enumerate(items):
            if number == self.after:
                raise KeyboardInterrupt
            future = Future()
            future.set_result(function(item, *shared))
            yield number, future


def interrupted(path, after=3):
    with pytest.raises(KeyboardInterrupt):
        embedded(engine=Lost(after), out=path)
    assert names(path.parent) == ["features.npy.journal", "features.npy.part"]


def embedded_again(path, tmp_path):
    """The stretches that are embedded when an interrupted call is made again, on the cluster."""
    folder = tmp_path / "noted"
    folder.mkdir(exist_ok=True)
    (folder / "notes").unlink(missing_ok=True)
    embedded(extractor=Noted(folder), engine=Ray(), out=path)
    return sorted({int(row) // BLOCK for (row,) in notes(folder)})


def test_what_is_done_is_not_done_again(expected, tmp_path):
    path = tmp_path / "here" / "features.npy"
    path.parent.mkdir()
    interrupted(path)
    with open(path.with_name("features.npy.journal"), "ab") as journal:
        journal.write(b"4 3f")  # a line that is not whole
    assert embedded_again(path, tmp_path) == [0, 3, 4, 5]  # and of what is done a block, to compare
    assert np.load(path).tobytes() == expected.tobytes()
    assert names(path.parent) == ["features.npy"]


def test_a_damaged_stretch_is_done_again(expected, tmp_path):
    path = tmp_path / "here" / "features.npy"
    path.parent.mkdir()
    interrupted(path)
    with open(path.with_name("features.npy.part"), "r+b") as part:
        part.seek(128 + BLOCK * 5 * 4)
        part.write(b"damaged")
    assert embedded_again(path, tmp_path) == [0, 1, 3, 4, 5]
    assert np.load(path).tobytes() == expected.tobytes()


def test_a_part_that_was_removed_is_begun_anew(expected, tmp_path):
    path = tmp_path / "here" / "features.npy"
    path.parent.mkdir()
    interrupted(path)
    path.with_name("features.npy.part").unlink()
    assert embedded_again(path, tmp_path) == list(range(STRETCHES))
    assert np.load(path).tobytes() == expected.tobytes()


def test_killed_when_the_file_had_its_name(expected, tmp_path, monkeypatch):
    path = tmp_path / "here" / "features.npy"
    path.parent.mkdir()

    def killed(folder):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("maxrr.nets.feature_file.flush_folder", killed)
        with pytest.raises(KeyboardInterrupt):
            embedded(engine=InProcess(), out=path)
    assert names(path.parent) == ["features.npy", "features.npy.journal"]
    assert embedded_again(path, tmp_path) == []
    assert names(path.parent) == ["features.npy"]
    assert np.load(path).tobytes() == expected.tobytes()


@pytest.mark.parametrize("other", ["extractor", "records", "stretches"])
def test_what_is_of_another_kind_is_refused(tmp_path, monkeypatch, other):
    path = tmp_path / "features.npy"
    interrupted(path)
    before = path.with_name("features.npy.part").read_bytes()
    extractor, dataset = Noted(), records()
    if other == "extractor":
        extractor.linear.bias.data[0] += 1.0
    elif other == "records":
        dataset = dataset.select(dataset.ids[::-1])
    else:
        monkeypatch.setattr(embedding, "STRETCH", 2)
    with pytest.raises(ValueError, match=rf"unfinished work with other {other}: .* delete features.npy.journal"):
        embed(extractor, dataset, device="cpu", engine=InProcess(), out=path)
    assert path.with_name("features.npy.part").read_bytes() == before


def test_an_extractor_that_differs_in_no_weight_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "features.npy"
    interrupted(path)
    extractor, usual = Noted(), nn.Linear.forward
    monkeypatch.setattr(nn.Linear, "forward", lambda layer, inputs: 2.0 * usual(layer, inputs))
    with pytest.raises(ValueError, match=r"unfinished work with another extractor, or on another kind of processor"):
        embed(extractor, records(), device="cpu", engine=InProcess(), out=path)
    assert names(tmp_path) == ["features.npy.journal", "features.npy.part"]


def test_a_path_is_that_of_the_driver(tmp_path, monkeypatch, expected):
    monkeypatch.chdir(tmp_path)
    assert embedded(engine=Ray(), out="features.npy").tobytes() == expected.tobytes()


def test_a_damaged_journal(tmp_path):
    path = tmp_path / "features.npy"
    interrupted(path)
    path.with_name("features.npy.journal").write_bytes(b"{}\n")
    with pytest.raises(ValueError, match=r"features\.npy\.journal is damaged"):
        embedded(engine=InProcess(), out=path)


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        embedded(engine=InProcess(), out=tmp_path / "nowhere" / "features.npy")


class Elsewhere(InProcess):
    """An engine whose workers have another file under the same path, or none."""

    def __init__(self, path, content):
        object.__setattr__(self, "path", path)
        object.__setattr__(self, "content", content)

    def as_finished(self, function, items, *shared):
        if self.path.exists() and self.path.stat().st_size:
            kept = self.path.read_bytes()
            self.path.unlink()
            if self.content is not None:
                self.path.write_bytes(self.content(kept))
            found = list(super().as_finished(function, items, *shared))
            self.path.write_bytes(kept)
            yield from found
        else:
            yield from super().as_finished(function, items, *shared)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "is not there on node"),
        (lambda kept: b"short", "is another file on node"),
        (lambda kept: kept, "has written to another file"),
    ],
)
def test_workers_that_do_not_see_the_file(tmp_path, content, message):
    path = tmp_path / "features.npy"
    with pytest.raises(EngineError, match=rf"features\.npy\.part: .*{message}.*a folder that all nodes see"):
        embedded(engine=Elsewhere(path.with_name("features.npy.part"), content), out=path)
    assert not path.exists()
    assert path.with_name("features.npy.journal").read_bytes().count(b"\n") == 1  # nothing is taken for done


DRIVER = """
import sys
from maxrr.nets import embed, embedding
from maxrr.parallel import Ray
from tests.cluster.extractors import Noted, records

embedding.STRETCH = 1
embed(Noted(sys.argv[1], seconds=0.3), records(), device="cpu", engine=Ray(), out=sys.argv[1] + "/features.npy")
"""


@pytest.mark.long
def test_a_killed_driver_goes_on_where_it_stopped(cluster, expected, tmp_path):
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, str(tmp_path)], cwd=ROOT, env=environment)
    path, journal, lines = tmp_path / "features.npy", tmp_path / "features.npy.journal", []
    deadline = time.monotonic() + 120
    while len(lines) < 3 and driver.poll() is None and time.monotonic() < deadline:
        lines = journal.read_bytes().splitlines() if journal.exists() else []
        time.sleep(0.02)
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    first, *done = journal.read_text().splitlines()
    assert json.loads(first)["layout"] == ["<f4", ROWS, 5]
    assert 2 <= len(done) < STRETCHES
    assert not path.exists()
    left = set(range(STRETCHES)) - {int(line.split()[0]) for line in done}
    again = set(embedded_again(path, tmp_path))
    assert left < again
    assert len(again - left) == 1  # a block of what is done, to compare
    assert path.read_bytes()[128:] == expected.tobytes()
    assert not journal.exists()


def test_heads_on_a_file_of_features(tmp_path, monkeypatch):
    monkeypatch.setattr(validation, "LARGE", 0)  # so that they stay in float32, and in the file
    data = records()
    features = embed(Noted(), data, device="cpu", engine=Ray(), out=tmp_path / "features.npy")
    labels = ((features - features.mean(0)) / features.std(0))[:, :3].argmax(1)
    there = LinearSVM(C=1e-3, copy_X=False).fit(features, labels, engine=Ray())
    here = LinearSVM(C=1e-3).fit(np.array(features), labels)
    assert np.may_share_memory(there._state.solution.samples.X, features)
    assert all(certificate.decided for certificate in here.certificate_)
    assert there.coef_.tobytes() == here.coef_.tobytes()
    assert there.intercept_.tobytes() == here.intercept_.tobytes()


def test_a_model(beside):
    training, test = load("digits")
    data = training.select(training.ids[:600])
    here, *others = (
        MaxRR(MLP(64, 10, hidden=(16,)), HashCore(0.5, key="k"), epochs=12, lr=0.01, device="cpu", engine=engine)
        .fit(data).decision_function(test).tobytes()
        for engine in (None, beside, Ray())
    )  # fmt: skip
    assert others == [here, here]
