"""Features that the workers of an engine compute are those computed here, in memory and in a file."""

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import MLP, embed, embedding
from maxrr.parallel import InProcess, Ray
from maxrr.svm import LinearSVM, validation
from tests.cluster.extractors import BLOCK, ROWS, Mixing, Narrowing, Noted, records

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
    with pytest.raises(ValueError, match="record 'record 700' that are not finite"):
        embedded(poisoned=700, extractor=Overflowing(), engine=Ray(), out=path)
    assert names(tmp_path) == []


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

    def map(self, function, items, *shared):
        for number, item in enumerate(items):
            if number == self.after:
                raise KeyboardInterrupt
            yield function(item, *shared)


def test_an_interruption_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "features.npy"
    path.write_bytes(b"old")
    with pytest.raises(KeyboardInterrupt):
        embedded(engine=Lost(3), out=path)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["features.npy"]


def test_a_path_is_that_of_the_driver(tmp_path, monkeypatch, expected):
    monkeypatch.chdir(tmp_path)
    assert embedded(engine=Ray(), out="features.npy").tobytes() == expected.tobytes()


def test_no_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        embedded(engine=InProcess(), out=tmp_path / "nowhere" / "features.npy")


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
