"""The ONNX file computes what the model does, says what it is, and is not written where it does not."""

import copy
import functools
import json
import sys

import numpy as np
import onnxruntime
import pytest
import torch
from torch import nn

from maxrr.core import Frozen, HashCore
from maxrr.data import Dataset
from maxrr.data.fields import parts_of
from maxrr.nets import MLP, Resized, split
from maxrr.serving import export_onnx, exports, onnx
from tests.several_inputs import PictureAndTable, Text, pictures_and_rows, texts
from tests.unlearning.problems import digits, fresh, probe, table

CORE = HashCore(0.5, key="house")


class TwoParts(nn.Module):
    """Its last linear layer lies inside a part, and its forward goes on after it, in a way that no graph can."""

    def __init__(self, columns=5, classes=3):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(columns, 9), nn.BatchNorm1d(9), nn.Tanh())
        self.second = nn.Sequential(nn.Dropout(0.1), nn.Linear(9, 7), nn.ReLU(), nn.Linear(7, classes))

    def forward(self, records):
        scores = self.second(self.first(records))
        if bool(scores.max() > 0):
            scores = scores * 2
        return torch.log_softmax(scores, dim=1)


@functools.cache
def fitted_on(name):
    """Models of several kinds; nobody changes them."""
    records = table(classes=2 if name == "two classes" else 3)
    if name == "pixels":
        return fresh(CORE, digits(), epochs=2).fit(pixels(digits()), digits().labels)
    if name == "resized":
        network = Resized(MLP(144, 10, hidden=(16,)), 12, mean=0.5, scale=0.25)
        return fresh(CORE, digits(), network, epochs=4, start="given").fit(pixels(digits()), digits().labels)
    if name == "custom":
        return fresh(CORE, records, TwoParts()).fit(records)
    if name == "frozen":
        return fresh(Frozen(), records, nn.Sequential(split(TwoParts())[0], nn.Sigmoid())).fit(records)
    if name == "double precision":
        network = MLP(5, 3, hidden=(6,)).double()
        return fresh(CORE, records, network).fit(records.inputs.astype(np.float64), records.labels)
    return fresh(CORE, records).fit(records)


def pixels(dataset):
    """Images in bytes."""
    return (255 * dataset.inputs).astype(np.uint8)


def some_records(name):
    """Records that the model was not fitted on."""
    if name in ("pixels", "resized"):
        return pixels(probe(300))
    features = table(count=300, seed=1).inputs
    return features.astype(np.float64) if name == "double precision" else features


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """Each kind of model in a file, written when first asked for."""
    folder = tmp_path_factory.mktemp("exported")
    return functools.cache(lambda name: export_onnx(fitted_on(name), folder / f"{name}.onnx"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.onnx"


def session(path):
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def run(path, records):
    """Scores, probabilities and labels by onnxruntime."""
    return session(path).run(None, {"records": records})


def metadata(path):
    return session(path).get_modelmeta().custom_metadata_map


@pytest.mark.parametrize(
    "name",
    [
        "pixels",
        "two classes",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("resized", "custom", "frozen", "double precision")),
    ],
)
def test_the_file_computes_what_the_model_does(name, exported):
    model, records, written = fitted_on(name), some_records(name), exported(name)
    for some in (records[:1], records[:2], records):
        scores, probabilities, label = run(written.path, some)
        assert scores.shape == model.decision_function(some).shape
        assert np.allclose(scores, model.decision_function(some), rtol=0, atol=1e-5)
        assert np.allclose(probabilities, model.predict_proba(some), rtol=0, atol=1e-4)
        assert np.array_equal(model.classes_[label], model.predict(some))
    assert written.bytes == written.path.stat().st_size
    assert 0 <= written.difference < 1e-4


def test_inputs_and_outputs_are_named_and_typed(exported):
    found = session(exported("pixels").path)
    assert {part.name: (part.type, part.shape) for part in (*found.get_inputs(), *found.get_outputs())} == {
        "records": ("tensor(uint8)", ["records", 1, 8, 8]),
        "scores": ("tensor(double)", ["records", 10]),
        "probabilities": ("tensor(double)", ["records", 10]),
        "label": ("tensor(int64)", ["records"]),
    }


def test_the_file_says_what_it_is_and_nothing_of_the_machine(exported):
    written = exported("two classes")
    said = metadata(written.path)
    assert json.loads(said["maxrr.classes"]) == ["kind 0", "kind 1"]
    assert said["maxrr.model_hash"] == written.model_hash == fitted_on("two classes").model_hash_
    assert b".py" not in written.path.read_bytes()


@pytest.mark.long
def test_the_same_model_gives_the_same_file_and_stays_what_it_was_in_silence(exported, path, capfd):
    model, records = copy.deepcopy(fitted_on("custom")), some_records("custom")
    before = [type(part) for part in model.extractor_.modules()], model.decision_function(records).tolist()
    export_onnx(model, path)
    assert path.read_bytes() == exported("custom").path.read_bytes()
    assert before == ([type(part) for part in model.extractor_.modules()], model.decision_function(records).tolist())
    assert capfd.readouterr() == ("", "")


@pytest.mark.long
def test_what_is_forgotten_while_packages_load_is_not_in_the_file(path, monkeypatch):
    """Importing them takes seconds, in which another thread may forget."""
    model = fresh(HashCore(0.4, key="house"), table()).fit(table())
    gone = model.ids_of("influential")[:5]
    monkeypatch.setattr(onnx, "check_installed", lambda: model.unlearn(gone, core_policy="retrain"))
    found = export_onnx(model, path)
    assert found.model_hash == model.model_hash_
    monkeypatch.undo()
    assert export_onnx(model, path.with_suffix(".again")).model_hash == found.model_hash
    assert path.read_bytes() == path.with_suffix(".again").read_bytes()


@pytest.mark.parametrize("left", [2, pytest.param(3, marks=pytest.mark.long)])
def test_a_class_that_is_forgotten_is_not_in_the_file(left, path):
    records = table(classes=4)
    model = fresh(CORE, records).fit(records)
    model.unlearn(records.ids[records.labels >= left], core_policy="keep-extractor")
    export_onnx(model, path)
    some = table(count=50, seed=2).inputs
    scores, probabilities, label = run(path, some)
    assert scores.shape == ((50, 3) if left == 3 else (50,))
    assert probabilities.shape == (50, left)
    assert np.allclose(scores, model.decision_function(some), rtol=0, atol=1e-5)
    assert np.array_equal(model.classes_[label], model.predict(some))
    assert json.loads(metadata(path)["maxrr.classes"]) == [f"kind {number}" for number in range(left)]
    assert metadata(path)["maxrr.model_hash"] == model.model_hash_


def test_probabilities_survive_scores_far_outside(exported):
    far = np.full((2, 5), 1e30, np.float32) * np.array([[1], [-1]], np.float32)
    _, probabilities, _ = run(exported("two classes").path, far)
    assert np.allclose(probabilities, fitted_on("two classes").predict_proba(far), rtol=0, atol=1e-9)


@pytest.fixture
def written_already(exported, monkeypatch):
    """The graph of the model of two classes, for what comes after it: writing it again takes seconds."""
    before = exported("two classes")
    monkeypatch.setattr(onnx, "write_graph", lambda fitted: before.path.read_bytes())


class Steps(nn.Module):
    """Looks numbers up, and so takes none but whole ones from 0 to 7."""

    def __init__(self):
        super().__init__()
        self.places, self.out = nn.Embedding(8, 4), nn.Linear(12, 3)

    def forward(self, records):
        return self.out(self.places(records.long()).flatten(1))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # the labels are drawn
def test_a_network_that_takes_no_made_up_records_is_compared_on_ones(path):
    rng = np.random.default_rng(3)
    features = rng.integers(0, 8, (90, 3)).astype(np.float32)
    model = fresh(CORE, table(), Steps()).fit(Dataset(features, np.arange(90) % 3, ("a", "b", "c"), np.arange(90)))
    assert export_onnx(model, path).difference < 1e-4
    assert np.allclose(run(path, features)[0], model.decision_function(features), atol=1e-4)


class Undecided(nn.Module):
    """What it computes depends on what it sees."""

    def __init__(self):
        super().__init__()
        self.layer, self.out = nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, records):
        hidden = self.layer(records)
        return self.out(torch.relu(hidden) if bool((records[0] < 1e9).all()) else hidden)


def test_a_network_that_is_no_graph_is_refused(path):
    model = fresh(CORE, table(), Undecided()).fit(table())
    with pytest.raises(ValueError, match="ONNX graph"):
        export_onnx(model, path)
    assert not path.exists()


@pytest.mark.long
def test_what_onnxruntime_does_not_know_is_refused(path):
    network = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.Flatten(), nn.Linear(72, 10)).double()
    model = fresh(CORE, digits(), network, epochs=1).fit(digits())
    with pytest.raises(ValueError, match=r"onnxruntime .*Conv"):
        export_onnx(model, path)
    assert not path.exists()


def unscaled(features, dtype):
    """Pixels as they are."""
    return features.to(dtype)


def test_a_graph_that_computes_something_else_is_not_written(path, monkeypatch):
    path.write_text("an older file")
    monkeypatch.setattr(onnx, "ready", unscaled)
    with pytest.raises(ValueError, match="scores differ"):
        export_onnx(fitted_on("pixels"), path)
    assert [file.read_text() for file in path.parent.iterdir()] == ["an older file"]


@pytest.mark.usefixtures("written_already")
@pytest.mark.parametrize(
    ("tolerance", "message"),
    [("SCORES_TOLERANCE", "scores differ"), ("PROBABILITIES_TOLERANCE", "do not follow from its scores")],
)
def test_above_a_tolerance_no_file_is_left(tolerance, message, path, monkeypatch):
    monkeypatch.setattr(exports, tolerance, -1.0)
    with pytest.raises(ValueError, match=message):
        export_onnx(fitted_on("two classes"), path)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("package", ["onnxruntime", "onnxscript"])
def test_a_missing_package_is_named_with_what_to_install(package, path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=rf"{package}.*maxrr\[onnx\]"):
        export_onnx(fitted_on("two classes"), path)


@pytest.mark.long
@pytest.mark.parametrize("name", ["text", "picture and table", "tokens"])
def test_several_inputs_and_integers(path, name):
    """That of texts is in a folder of `test_folder.py` each time."""
    if name == "text":
        network, data, known = Text(), texts(), ["mask", "tokens"]
    elif name == "tokens":
        tokens = texts()
        network = nn.Sequential(nn.Embedding(30, 6), nn.Flatten(), nn.Linear(36, 8), nn.ReLU(), nn.Linear(8, 3))
        data, known = Dataset(tokens.inputs["tokens"], tokens.labels, tokens.class_names, tokens.ids), ["records"]
    else:
        network, data, known = PictureAndTable(), pictures_and_rows(), ["records_0", "records_1"]
    model = fresh(CORE, None, network).fit(data)
    export_onnx(model, path)
    graph = session(path)
    assert [each.name for each in graph.get_inputs()] == known
    given = {name: np.array(part[:5]) for name, (_, part) in zip(known, parts_of(data.inputs), strict=True)}
    scores, _, labels = graph.run(None, given)
    assert np.allclose(scores, model.decision_function(data)[:5], atol=1e-4)
    assert [data.class_names[label] for label in labels] == model.predict(data)[:5].tolist()
