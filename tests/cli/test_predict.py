"""`maxrr predict`: images and arrays, the class and what comes close."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maxrr.cli import predict
from maxrr.data import load
from maxrr.data.reading import Reading
from maxrr.unlearning import MaxRR
from maxrr.unlearning.record_kind import RecordKind
from maxrr.workspace import Workspace
from tests.cli.shell import Shell


def test_arrays_and_archives(shell: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    _, test = load("digits")
    records = test.inputs[:5]
    np.save(tmp_path / "some.npy", records)
    np.savez(tmp_path / "some.npz", X=records[:, 0], y=np.zeros(5))
    with Workspace.open(fitted_digits, read_only=True) as workspace:
        expected = workspace.model.predict(test.select(test.ids[:5])).tolist()
        probabilities = workspace.model.predict_proba(records).max(axis=1)
    for file in ("some.npy", "some.npz"):
        found = shell("predict", fitted_digits, tmp_path / file, "--json").json
        assert [answer["class"] for answer in found] == expected
        assert [answer["record"] for answer in found] == [f"{tmp_path / file}:{row}" for row in range(5)]
        assert [answer["top"][0]["probability"] for answer in found] == pytest.approx(probabilities)
        assert all(len(answer["top"]) == 3 for answer in found)


def test_images(shell: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    _, test = load("digits")
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path, record in zip(paths, test.inputs, strict=False):
        Image.fromarray((record[0] * 255).astype(np.uint8)).save(path)
    with Workspace.open(fitted_digits, read_only=True) as workspace:
        expected = workspace.model.predict(test.select(test.ids[:2])).tolist()
    shown = shell("predict", fitted_digits, *paths).out.splitlines()
    assert [tuple(line.split()[:2]) for line in shown[2:]] == list(zip(map(str, paths), expected, strict=True))


def test_a_table_with_labels_and_without(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("\ufeffvisit,age,weight\nv1,2.5,3\n\nv2,0.5,6\n", encoding="utf-8")
    (tmp_path / "old.csv").write_text("visit,person,state,age,weight\nv1,p,ill,2.5,3\nv2,p,well,0.5,6\n")
    new, old = (shell("predict", fitted_visits, tmp_path / name, "--json").json for name in ("new.csv", "old.csv"))
    assert [answer["top"] for answer in new] == [answer["top"] for answer in old]
    assert {answer["class"] for answer in new} <= {"ill", "well"}


@pytest.mark.parametrize(
    ("name", "content", "named"),
    [
        ("some.txt", b"3", "PNG, JPEG, .npy, .npz, .csv or .parquet"),
        ("some.npy", b"\x00\x01", "cannot be read as .npy"),
        ("some.npz", b"\x00\x01", "cannot be read as .npz"),
        ("some.png", b"\x00\x01", "not a PNG or JPEG"),
        ("some.csv", b"", "some.csv"),
        ("some.csv", b"age,weight\n1,many\n", "'many'"),
        ("some.csv", b"age,weight\n1\n", "some.csv"),
        ("some.csv", b"age\n1\n", "has no column 'weight': its columns are 'age'"),
        ("some.csv", b"age,height,weight\n1,2,3\n", "has a column 'height', which is unknown"),
        ("some.csv", b"age,weight,age\n1,2,1\n", "names a column twice"),
        ("some.csv", b"age,weight\n1,2_0\n", "line 2, column 'weight': '2_0' is not a number"),
        ("some.csv", b"age,weight\n1, nan\n", "line 2, column 'weight': there is no value"),
        ("some.csv", b"age,weight\n1,-inf\n", "-inf is not finite"),
        ("some.csv", b"age,weight\n1,0x10\n", "'0x10' is not a number"),
        ("some.csv", "age,weight\n1,\uff11\n".encode(), "is not a number"),
        ("some.csv", b"age,weight\n1,1e39\n", "1e+39 is not finite in float32"),
        ("some.csv", b"age,weight\n", "has no records"),
        ("some.csv", b"age,weight\n\xff,1\n", "not text in UTF-8"),
    ],
)
def test_files_that_are_no_records(
    shell: Shell, fitted_visits: Path, tmp_path: Path, name: str, content: bytes, named: str
) -> None:  # fmt: skip
    (tmp_path / name).write_bytes(content)
    ended = shell("predict", fitted_visits, tmp_path / name, code=1)
    assert (named in ended.err, len(ended.err.splitlines()), ended.out) == (True, 1, "")


def test_archives_of_several_arrays(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=np.zeros((1, 2)), b=np.zeros((1, 2)))
    assert "a, b" in shell("predict", fitted_visits, tmp_path / "two.npz", code=1).err


TABLES = {
    "as fitted": "age,weight\n2.5,3\n0.5,6\n",
    "reordered": "weight,age\n3,2.5\n6,0.5\n",
    "with texts": "weight,state,visit,age,person\n3,,v1,2.5,\n6,?,v2,0.5,p\n",
}


def test_columns_count_by_their_names(
    shell: Shell, fitted_visits: Path, tmp_path: Path
) -> None:  # fmt: skip
    """Taken in their order, the reordered table got other answers without a word."""
    found = {}
    for name, text in TABLES.items():
        (tmp_path / "new.csv").write_text(text)
        ended = shell("predict", fitted_visits, tmp_path / "new.csv", "--json")
        assert "Warning" not in ended.err
        found[name] = [answer["top"] for answer in ended.json]
    np.save(tmp_path / "new.npy", np.array([[2.5, 3], [0.5, 6]]))
    expected = [answer["top"] for answer in shell("predict", fitted_visits, tmp_path / "new.npy", "--json").json]
    assert found == dict.fromkeys(TABLES, expected)


def test_without_names_their_order_counts_and_that_is_said(
    shell: Shell, fitted_visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    nameless = property(lambda model: replace(RecordKind._of(model._fitted), columns=None))
    monkeypatch.setattr(MaxRR, "kind_", nameless)
    (tmp_path / "new.csv").write_text("a,b\n2.5,3\n")
    (tmp_path / "short.csv").write_text("a\n2.5\n")
    ended = shell("predict", fitted_visits, tmp_path / "new.csv", "--json")
    assert ended.err.startswith(f"Warning: {fitted_visits} ")
    assert len(ended.json) == 1
    assert shell("predict", fitted_visits, tmp_path / "short.csv", code=1).error == "other-shape"


def test_a_column_of_the_model_may_be_called_like_one_of_texts(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("label,id,x\nill,7,1\n")
    found = predict.from_table(tmp_path / "new.csv", RecordKind((2,), np.dtype("f8"), ("x", "id")), Reading())
    assert found.tolist() == [[1.0, 7.0]]


def test_numbers_keep_the_precision_of_the_model(tmp_path: Path) -> None:
    (tmp_path / "new.csv").write_text("x\n0.1\n")
    found = predict.from_table(tmp_path / "new.csv", RecordKind((1,), np.dtype("f8"), ("x",)), Reading())
    assert found.tolist() == [[0.1]]
