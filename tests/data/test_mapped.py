"""An .npy file of embeddings beside a table that says what its rows are."""

import numpy as np
import pandas
import pytest

from maxrr.data import load
from maxrr.errors import DataError


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "x.npy", rng.normal(size=(60, 5)).astype(np.float16))
    frame = pandas.DataFrame({
        "id": [f"t{number}" for number in range(60)], "topic": ["sport", "news", "art"] * 20,
        "author": np.repeat(np.arange(20), 3), "weight": np.linspace(1, 2, 60), "note": ["any text"] * 60,
    })  # fmt: skip
    frame.to_csv(tmp_path / "meta.csv", index=False)
    frame.to_parquet(tmp_path / "meta.parquet")
    return tmp_path


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_and_lines_belong_together(files, kind):
    training, test = load(
        files / "x.npy", meta=files / f"meta.{kind}", label="topic", subject="author", weight="weight"
    )  # fmt: skip
    assert len(training) + len(test) == 60
    assert training.inputs.dtype == np.float16
    assert not np.intersect1d(training.subjects, test.subjects).size  # a person is on one side
    inputs = np.load(files / "x.npy")
    for side in (training, test):
        rows = [int(id_[1:]) for id_ in side.ids]
        assert np.array_equal(side.inputs, inputs[rows])
        assert [side.class_names[label] for label in side.labels] == [("sport", "news", "art")[row % 3] for row in rows]
        np.testing.assert_allclose(side.weights, np.linspace(1, 2, 60)[rows])


def test_the_file_stays_on_the_disk(files):
    training, _ = load(files / "x.npy", meta=files / "meta.csv", label="topic", whole=True)
    assert isinstance(training.inputs, np.memmap)
    assert np.array_equal(training.inputs, np.load(files / "x.npy"))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"meta": None}, "what its rows are"),
        ({"label": "genre"}, "has no column 'genre'"),
        ({"meta": "short.csv"}, "is about 2 records, and .* has 60: one line per record"),
        ({"meta": "x.npy"}, "give a .csv or .parquet file"),
        ({"meta": "gap.csv"}, "line 3 has nothing in column 'id'"),
    ],
)
def test_what_is_wrong_is_said(files, change, said):
    (files / "short.csv").write_text("id,topic\na,sport\nb,news\n")
    (files / "gap.csv").write_text("id,topic\na,sport\n,news\n")
    given = {"meta": "meta.csv", "label": "topic"} | change
    if given["meta"] is not None:
        given["meta"] = files / given["meta"]
    with pytest.raises(DataError, match=said):
        load(files / "x.npy", **given)


def test_meta_is_for_npy_files_alone(files):
    with pytest.raises(DataError, match="Leave it out"):
        load(files / "meta.csv", meta=files / "meta.csv", label="topic")


def test_a_damaged_file_is_refused(files):
    whole = (files / "x.npy").read_bytes()
    (files / "x.npy").write_bytes(whole[:-3])
    with pytest.raises(DataError, match="cannot be read"):
        load(files / "x.npy", meta=files / "meta.csv", label="topic")


@pytest.mark.parametrize("missing", ["nan", "NaN", "inf", "-inf"])
def test_a_label_that_is_missing_is_no_class(files, missing):
    labels = ["1.0", "0.0", missing]
    (files / "gaps.csv").write_text("\n".join(["id,topic", *(f"{row},{labels[row % 3]}" for row in range(60))]))
    with pytest.raises(DataError, match=f"gaps.csv: line 4 .*'{missing}'.*'topic'"):
        load(files / "x.npy", meta=files / "gaps.csv", label="topic")


def test_whole_floats_are_integers(files):
    (files / "whole.csv").write_text("\n".join(["id,topic", *(f"{row},{row % 2}.0" for row in range(60))]))
    assert load(files / "x.npy", meta=files / "whole.csv", label="topic")[0].class_names == ("0", "1")
