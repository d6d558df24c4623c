"""`maxrr replace`: one record rectified, from an image or an array."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from maxrr.data import load
from tests.cli.shell import Shell, kinds, model_of, receipt_file


@pytest.fixture
def corrected(tmp_path: Path) -> Path:
    """An 8 × 8 image, grey."""
    path = tmp_path / "corrected.png"
    Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8) * 4).save(path)
    return path


def test_an_image_and_its_pixels_are_the_same_record(
    shell: Shell, digits: Path, corrected: Path, tmp_path: Path
) -> None:
    pixels = (np.arange(64).reshape(8, 8) * 4 / 255.0).astype(np.float32)
    np.save(tmp_path / "corrected.npy", pixels)
    one = kinds(digits)["influential"][0]
    receipt = shell("replace", digits, one, corrected, "--yes", "--json").json
    assert (receipt["records_before"], receipt["records_after"]) == (1420, 1420)
    assert receipt["guarantee"] == "exact-refit"
    again = shell("replace", digits, one, tmp_path / "corrected.npy", "--yes", code=1)
    assert again.error == "no-change"
    shell("verify", receipt_file(digits, 1), "--against", digits)


def test_another_class(shell: Shell, digits: Path, corrected: Path) -> None:
    one = kinds(digits)["free"][0]
    shown = shell("replace", digits, one, corrected, "--label", "7", "--yes").out
    assert shown.count("1,420") == 2
    other = shell("replace", digits, one, corrected, "--label", "shoe", "--yes", code=1)
    assert "'shoe'" in other.err


def test_a_core_record_trained_again_without(shell: Shell, visits: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "corrected.npy", np.array([3.5, 4.5]))
    words = ("replace", visits, "v1", tmp_path / "corrected.npy", "--policy", "retrain", "--yes", "--json")
    assert shell(*words).json["guarantee"] == "exact-retrain"
    # The source still has the record as it was, and the model no longer has that one.
    assert shell("replay", visits, 1, code=1).error == "other-records"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ("large.png", "1 × 9 × 8"),
        ("colour.png", "3 × 8 × 8"),
        ("nowhere.png", "nowhere.png"),
        ("words.txt", "words.txt"),
        ("nan.npy", "NaN"),
        ("two.npy", "2 records"),
        ("words.npy", "not numbers"),
        ("objects.npy", "objects.npy"),
    ],
)
def test_bad_records(
    shell: Shell, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    given: str, named: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Image.fromarray(np.zeros((9, 8), dtype=np.uint8)).save("large.png")
    Image.fromarray(np.zeros((8, 8, 3), dtype=np.uint8)).save("colour.png")
    np.save("nan.npy", np.full((1, 8, 8), np.nan))
    np.save("two.npy", np.zeros((2, 1, 8, 8)))
    np.save("words.npy", np.full((8, 8), "a"))
    np.save("objects.npy", np.full((8, 8), None), allow_pickle=True)
    before = model_of(digits)
    ended = shell("replace", digits, kinds(digits)["free"][0], given, "--yes", code=1)
    assert named in ended.err
    assert len(ended.err.splitlines()) == 1
    assert model_of(digits) == before


def test_records_that_are_not_there(shell: Shell, digits: Path, corrected: Path) -> None:
    _, test = load("digits")
    for id_ in (test.ids[0], "nine"):
        assert shell("replace", digits, id_, corrected, "--yes", code=3).error == "unknown-id"
