"""A folder that is served answers as the model does, holds no record, and is whole or not used."""

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from maxrr.errors import DataError, OtherShape
from maxrr.files.strict_json import json_digest
from maxrr.serving import export, folders, load
from tests.serving.models import CORE, fitted, some_records
from tests.several_inputs import Text, texts
from tests.unlearning.problems import fresh, table
from tests.workspace.problems import needles

FORMS = {"embeddings": "numpy", "own": "onnx", "in shards": "onnx"}


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    """The folder of each model, written when first asked for."""
    made = {}

    def folder(name):
        if name not in made:
            made[name] = tmp_path_factory.mktemp("served") / "model"
            export(fitted(name), made[name])
        return made[name]

    return folder


@pytest.mark.parametrize("name", ["embeddings", "own", pytest.param("in shards", marks=pytest.mark.long)])
def test_it_answers_as_the_model_does(exported, name):
    model, records, served = fitted(name), some_records(), load(exported(name))
    assert json.loads((exported(name) / "model.json").read_text())["form"] == FORMS[name]
    for some in (records[:1], records[:2], records):
        assert served.decision_function(some).shape == model.decision_function(some).shape
        assert np.allclose(served.decision_function(some), model.decision_function(some), rtol=0, atol=1e-5)
        assert np.allclose(served.predict_proba(some), model.predict_proba(some), rtol=0, atol=1e-4)
        names = np.array(model._fitted.head_classes)
        assert np.array_equal(served.predict(some), names[np.searchsorted(model.classes_, model.predict(some))])
    assert (served.classes, served.model_hash) == (model._fitted.head_classes, model.model_hash_)
    assert len(served.export) == 32


def test_records_keep_a_precision_that_the_model_was_not_fitted_in(tmp_path):
    records = table()
    model = clone(fitted("embeddings")).fit(records.inputs.astype(np.float16), records.labels)
    export(model, tmp_path / "model")
    served = load(tmp_path / "model")
    for some in (some_records(), some_records().astype(np.float64) / 3.0):
        assert np.allclose(served.decision_function(some), model.decision_function(some), rtol=0, atol=1e-5)


def test_no_record_is_in_it(exported):
    model, records = fitted("own"), table()
    hay = b"".join(path.read_bytes() for path in exported("own").iterdir())
    for id_ in records.ids[:20].tolist():
        wanted = needles(model, records, id_)
        assert not any(needle in hay for what, needle in wanted.items() if what != "raw as bytes")
    assert model._fitted.key not in hay
    assert model._fitted.key.hex().encode() not in hay


ALONE = """
import sys
sys.modules["torch"] = sys.modules["sklearn"] = sys.modules["scipy"] = None
import numpy as np
from maxrr.serving import load
served = load(sys.argv[1])
print(served.predict(np.load(sys.argv[2])).tolist(), served.predict_proba(np.load(sys.argv[2])).shape)
print(sorted(name for name in sys.modules if name.startswith("maxrr.") and name.count(".") == 1))
"""


@pytest.mark.parametrize("name", ["own", "embeddings"])
def test_neither_pytorch_nor_scikit_learn_is_needed(exported, tmp_path, name):
    """Nor the rest of this library."""
    np.save(tmp_path / "some.npy", some_records()[:3])
    command = [sys.executable, "-c", ALONE, exported(name), tmp_path / "some.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    answers, rooms = done.stdout.splitlines()
    classes = fitted(name)._fitted.head_classes
    assert answers == f"{load(exported(name)).predict(some_records()[:3]).tolist()} (3, {len(classes)})"
    assert eval(rooms) == ["maxrr.errors", "maxrr.files", "maxrr.lazily", "maxrr.serving", "maxrr.svm", "maxrr.version"]


@pytest.mark.parametrize(
    ("records", "said"),
    [
        (np.zeros(5, np.float32), r"add an axis to a single record, as in record\[None\]"),
        (np.zeros((0, 5), np.float32), "the model takes"),
        (np.zeros((2, 4), np.float32), r"the model takes \(records, 5\)"),
        (np.zeros((2, 5), np.uint8), "the records are uint8, but the model takes float32"),
        (np.array([["a"] * 5]), "but the model takes float32"),
        ([[1, 2, 3, 4, 5]], "the records are int64, but the model takes float32"),
        (np.zeros((1, 5), complex), "but the model takes float32"),
        (np.array([[0, 1, 2, 3, 4], [0, 1, np.nan, 3, 4]]), "record 1 has values that are not finite"),
        (np.full((1, 5), 1e300), "record 0 has values that are not finite in float32"),
    ],
)
def test_records_of_another_kind_are_refused(exported, records, said):
    with pytest.raises(DataError, match=said):
        load(exported("own")).predict(records)


def test_records_of_a_near_kind_are_taken(exported):
    served, records = load(exported("own")), some_records()
    assert np.array_equal(served.predict_proba(records.astype(np.float64)), served.predict_proba(records))
    assert served.predict([[1.0, 2.0, 3.0, 4.0, 5.0]]).shape == (1,)
    assert served.predict(records[::-2]).tolist() == served.predict(records)[::-2].tolist()


# The folder


def test_another_export_takes_its_place_and_overwrites_it(tmp_path):
    first = export(fitted("embeddings"), tmp_path)
    served, before = load(tmp_path), set(os.listdir(tmp_path))
    assert not served.reload()
    second = export(fitted("two classes"), tmp_path)
    assert (first.export != second.export, len(os.listdir(tmp_path))) == (True, 3)
    assert before & set(os.listdir(tmp_path)) == {"model.json", ".lock"}
    assert served.classes == ("kind 0", "kind 1", "kind 2")
    assert served.reload()
    assert (served.classes, served.model_hash) == (("kind 0", "kind 1"), fitted("two classes").model_hash_)


@pytest.mark.parametrize("what", ["file", "folder", "link", "model.json"])
def test_a_folder_with_other_things_is_refused_and_left_alone(tmp_path, what):
    if what == "file":
        (tmp_path / "thesis.txt").write_text("mine")
    elif what == "folder":
        (tmp_path / "model-0123456789abcdef.onnx").mkdir()
    elif what == "link":
        (tmp_path / "model-0123456789abcdef.onnx").symlink_to(__file__)
    else:
        (tmp_path / "model.json").write_text('{"mine": 1}')
    before = sorted(os.listdir(tmp_path))
    with pytest.raises(ValueError, match=str(tmp_path)):
        export(fitted("embeddings"), tmp_path)
    assert sorted(os.listdir(tmp_path)) == before
    with pytest.raises(ValueError, match="is no folder"):
        export(fitted("embeddings"), __file__)
    assert Path(__file__).read_text()


@pytest.mark.parametrize("point", ["open", "fsync", "replace"])
def test_who_fails_at_any_moment_leaves_the_export_before(tmp_path, monkeypatch, point):
    export(fitted("two classes"), tmp_path)
    before = load(tmp_path).model_hash
    real, calls = getattr(os, point), [0]

    def failing(*arguments, **options):
        calls[0] += 1
        if calls[0] == 2:
            raise OSError(28, "No space left on device")
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(os, point, failing)
        with pytest.raises(OSError, match="No space left"):
            export(fitted("embeddings"), tmp_path)
    assert load(tmp_path).model_hash == before
    export(fitted("embeddings"), tmp_path)
    assert len(os.listdir(tmp_path)) == 3


def test_readers_beside_a_writer_find_one_of_both(tmp_path):
    models = [fitted("embeddings"), fitted("two classes")]
    export(models[0], tmp_path)
    served, found, stop = load(tmp_path), set(), threading.Event()

    def read():
        while not stop.is_set():
            served.reload()
            facts = served._loaded.facts
            found.add((facts.model_hash, len(facts.classes)))
            found.add((load(tmp_path).model_hash, None))

    threads = [threading.Thread(target=read) for _ in range(2)]
    wrong = []
    monkey = threading.excepthook
    threading.excepthook = lambda failure: wrong.append(failure.exc_value)
    try:
        for thread in threads:
            thread.start()
        for turn in range(12):
            export(models[turn % 2], tmp_path)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        threading.excepthook = monkey
    assert wrong == []
    expected = {(model.model_hash_, len(model.classes_)) for model in models}
    assert found <= expected | {(hash_, None) for hash_, _ in expected}


# What is not as it was written


def damage(folder, how):
    facts = json.loads((folder / "model.json").read_text())
    numbers = folder / facts["file"]
    if how == "numbers changed":
        numbers.write_bytes(numbers.read_bytes()[:-1] + b"x")
    elif how == "numbers missing":
        numbers.unlink()
    elif how == "numbers a pipe":
        numbers.unlink()
        os.mkfifo(numbers)
    elif how == "facts changed":
        (folder / "model.json").write_text((folder / "model.json").read_text().replace("kind 0", "kind 9"))
    elif how == "facts missing":
        (folder / "model.json").unlink()
    elif how == "no JSON":
        (folder / "model.json").write_bytes(b"\xff{")
    elif how == "a list":
        (folder / "model.json").write_text("[1]")
    elif how == "nested":
        (folder / "model.json").write_text("[" * 100_000)


@pytest.mark.parametrize(
    "how",
    ["numbers changed", "numbers missing", "numbers a pipe", "facts changed", "facts missing", "no JSON", "a list",
     "nested"],
)  # fmt: skip
def test_damage_is_said_and_nothing_is_used(tmp_path, how, monkeypatch):
    monkeypatch.setattr(folders, "PAUSE", 0.0)
    export(fitted("embeddings"), tmp_path)
    served = load(tmp_path)
    damage(tmp_path, how)
    for _ in range(2):
        with pytest.raises((ValueError, OSError), match=str(tmp_path)):
            load(tmp_path)
    served.predict(some_records())  # what was loaded goes on


def forged(folder, **changes):
    """Facts with other values and the right hash."""
    path = folder / "model.json"
    body = {**json.loads(path.read_text()), **changes}
    body.pop("hash")
    path.write_text(json.dumps({**body, "hash": json_digest(body)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2}, {"format": "other"}, {"file": "../../etc/passwd"}, {"file": "model-0123456789abcdef.onnx"},
        {"file": 3}, {"form": "pickle"}, {"form": "onnx"}, {"classes": ["one"]}, {"classes": "abc"}, {"dtype": "O"},
        {"dtype": "nothing"}, {"dtype": [["a"]]}, {"dtype": [1]}, {"shape": [5, 2]}, {"shape": [-1]}, {"shape": [True]},
        {"classes": ["a", "b", "c", "d"]}, {"more": 1}, {"sha256": None}, {"requests": -1}, {"export": "x"},
        {"dtype": {}}, {"shape": [10**30]},
    ],
    ids=str,
)  # fmt: skip
def test_facts_that_nobody_of_us_wrote_are_refused(tmp_path, changes, monkeypatch):
    monkeypatch.setattr(folders, "PAUSE", 0.0)
    export(fitted("embeddings"), tmp_path)
    forged(tmp_path, **changes)
    with pytest.raises(ValueError, match=str(tmp_path)):
        load(tmp_path)


@pytest.mark.parametrize("name", ["embeddings", "own"])
@pytest.mark.parametrize("content", [b"", b"\x00" * 100, b"\xff" * 9, b"\x80\x04cos\nsystem\n(S'true'\ntR."], ids=len)
def test_numbers_that_are_none_are_refused(exported, tmp_path, name, content):
    for path in exported(name).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    sha256 = hashlib.sha256(content).hexdigest()
    file = f"model-{sha256[:16]}.{folders.ENDINGS[FORMS[name]]}"
    (tmp_path / file).write_bytes(content)
    forged(tmp_path, file=file, sha256=sha256)
    with pytest.raises(ValueError, match=str(tmp_path)):
        load(tmp_path)


def test_a_missing_package_is_named(exported, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ValueError, match="pip install onnxruntime"):
        load(exported("own"))


# Several inputs, and integers


def test_several_inputs_and_integers_are_served(tmp_path):
    data = texts()
    model = fresh(CORE, None, Text).fit(data)
    export(model, tmp_path)
    served = load(tmp_path)
    given = {name: np.array(data.inputs[name][:5]) for name in ("tokens", "mask")}
    for some in (given, data.inputs[:5]):
        assert np.allclose(served.decision_function(some), model.decision_function(data)[:5], atol=1e-4)
    assert served.predict(given).tolist() == model.predict(data)[:5].tolist()
    with pytest.raises(DataError, match=r"mask bool.* tokens int64"):
        served.predict(given["tokens"])
    with pytest.raises(OtherShape):
        served.predict({**given, "tokens": given["tokens"] / 2})
