"""`maxrr predict`: images and arrays, the class and what comes close."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.cli.shell import Shell

from maxrr.data import load
from maxrr.workspace import Workspace


def test_arrays_and_archives(either: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    _, test = load("digits")
    records = test.features[:5]
    np.save(tmp_path / "some.npy", records)
    np.savez(tmp_path / "some.npz", X=records[:, 0], y=np.zeros(5))
    with Workspace.open(fitted_digits, read_only=True) as workspace:
        expected = [str(label) for label in workspace.predict(records)]
        probabilities = workspace.predict_proba(records).max(axis=1)
    for file in ("some.npy", "some.npz"):
        found = either("predict", fitted_digits, tmp_path / file, "--json").json
        assert [answer["class"] for answer in found] == expected
        assert [answer["record"] for answer in found] == [f"{tmp_path / file}:{row}" for row in range(5)]
        assert [answer["top"][0]["probability"] for answer in found] == pytest.approx(probabilities)
        assert all(len(answer["top"]) == 3 for answer in found)


def test_images(either: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    _, test = load("digits")
    paths = [tmp_path / "a.png", tmp_path / "b.png"]
    for path, record in zip(paths, test.features, strict=False):
        Image.fromarray((record[0] * 255).astype(np.uint8)).save(path)
    with Workspace.open(fitted_digits, read_only=True) as workspace:
        expected = [str(label) for label in workspace.predict(test.features[:2])]
    shown = either("predict", fitted_digits, *paths).out.splitlines()
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
        ("some.txt", b"3", "PNG, JPEG, .npy, .npz or .csv"),
        ("some.npy", b"\x00\x01", "cannot be read as .npy"),
        ("some.npz", b"\x00\x01", "cannot be read as .npz"),
        ("some.png", b"\x00\x01", "not a PNG or JPEG"),
        ("some.csv", b"", "some.csv"),
        ("some.csv", b"age,weight\n1,many\n", "'many'"),
        ("some.csv", b"age,weight\n1\n", "some.csv"),
        ("some.csv", b"age\n1\n", "shape (1, 1)"),
    ],
)
def test_files_that_are_no_records(
    shell: Shell, fitted_visits: Path, tmp_path: Path, name: str, content: bytes, named: str
) -> None:
    (tmp_path / name).write_bytes(content)
    ended = shell("predict", fitted_visits, tmp_path / name, code=1)
    assert (named in ended.err, len(ended.err.splitlines()), ended.out) == (True, 1, "")


def test_archives_of_several_arrays(shell: Shell, fitted_visits: Path, tmp_path: Path) -> None:
    np.savez(tmp_path / "two.npz", a=np.zeros((1, 2)), b=np.zeros((1, 2)))
    assert "a, b" in shell("predict", fitted_visits, tmp_path / "two.npz", code=1).err
