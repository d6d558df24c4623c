"""A served model of a table takes rows with the table's own columns, encoded as they were for fitting."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest

from maxrr import MaxRR
from maxrr.data import Categories, Encoding, Number, from_frame
from maxrr.data.reading import Reading
from maxrr.errors import DataError, MissingColumn
from maxrr.files.strict_json import json_digest
from maxrr.serving import export, export_onnx, load
from maxrr.workspace import Workspace

ROWS = [
    {"id": row, "label": "ill" if row % 4 == 3 else "well", "age": None if row % 10 == 0 else row % 4 + 0.5,
     "country": ("de", "fr", "it")[row % 3], "visits": row % 5 + (5 if row % 4 == 3 else 0)}
    for row in range(60)
]  # fmt: skip
ENCODING = Encoding(
    {"age": Number(fill=2.0, indicator=True, width=2.0), "country": Categories(["de", "fr"], other=True)}
)
RECORDS = from_frame(pd.DataFrame(ROWS), encoding=ENCODING)
ASKED = [{name: row[name] for name in ("visits", "country", "age")} for row in ROWS[:12]]  # in another order


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("rows") / "model"
    export(MaxRR.on_features().fit(RECORDS), place, encoding=ENCODING)
    return place


def test_rows_in_all_forms_are_the_encoded_records(folder):
    served = load(folder)
    assert served.columns == ("age", "country", "visits")
    expected = served.decision_function(RECORDS.inputs[:12])
    frame = pd.DataFrame(ASKED)
    for given in (ASKED, tuple(ASKED), frame, pl.DataFrame(ASKED), frame.convert_dtypes()):
        assert np.array_equal(served.decision_function(given), expected)
    assert np.array_equal(served.predict_proba(ASKED[3]), served.predict_proba(RECORDS.inputs[3:4]))
    assert served.predict(ASKED[3]).tolist() == served.predict(RECORDS.inputs[3:4]).tolist()


def test_inputs_that_are_encoded_already_come_as_an_array(folder):
    frame = pd.DataFrame(RECORDS.inputs, columns=RECORDS.columns)
    with pytest.raises(MissingColumn, match="'country'"):
        load(folder).predict(frame)


def test_columns_that_are_called_like_the_inputs_are_encoded_too(tmp_path):
    """A number without an indicator becomes one input of its own name: a raw frame looks like one of inputs."""
    scaled = Encoding({"visits": Number(mean=5.0, width=5.0)})
    frame = pd.DataFrame(ROWS)[["id", "label", "visits"]]
    records = from_frame(frame, encoding=scaled)
    with Workspace.create(
        tmp_path / "ws", MaxRR.on_features(), records, source={"reading": Reading(encoding=scaled).to_toml()}
    ) as ws:
        export(ws, tmp_path / "model")
    asked = frame[["visits"]]
    served = load(tmp_path / "model")
    expected = served.decision_function(records.inputs)
    for given in (asked, pl.DataFrame(asked), asked.to_dict("records")):
        assert np.array_equal(served.decision_function(given), expected)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (ASKED[0] | {"id": 3}, "has a column 'id', which is unknown"),
        ({"age": 3.0, "visits": 1}, "has no column 'country'"),
        ([ASKED[0], {"age": 3.0, "visits": 1}], "record 1 does not have the columns"),
        ([ASKED[0], 3], "record 1 does not have the columns"),
        (ASKED[0] | {"country": None}, "row 0, column 'country': there is no value"),
        (ASKED[1] | {"visits": "many"}, "row 0, column 'visits': 'many' is not a number"),
        (ASKED[1] | {"visits": [1, 2]}, "this is a list"),
        (ASKED[1] | {"visits": 10**400}, "row 0, column 'visits': inf is not finite in float32"),
        (ASKED[1] | {"age": -(10**400)}, "row 0, column 'age': -inf is not finite in float32"),
        (RECORDS, "the records are a Dataset"),
        (replace(RECORDS, columns=None), "the records are a Dataset"),
        ([[1.0], [2.0, 3.0]], "the records have different shapes"),
    ],
)
def test_rows_that_no_table_of_the_model_has(folder, given, words):
    with pytest.raises(DataError, match=words):
        load(folder).predict(given)


def test_plain_columns_need_no_encoding(tmp_path):
    records = from_frame(pd.DataFrame(ROWS)[["id", "label", "visits"]])
    export(MaxRR.on_features().fit(records), tmp_path / "model")
    assert json.loads((tmp_path / "model" / "model.json").read_text())["encoding"] is None
    served = load(tmp_path / "model")
    assert np.array_equal(served.decision_function({"visits": 3}), served.decision_function(np.float32([[3.0]])))


def test_a_workspace_that_knows_its_encoding_exports_it(tmp_path):
    model, source = MaxRR.on_features(), {"reading": Reading(encoding=ENCODING).to_toml()}
    with Workspace.create(tmp_path / "ws", model, RECORDS, source=source) as workspace:
        export(workspace, tmp_path / "model")
        expected = workspace.model.predict(RECORDS.inputs[:12])
    names = np.array(RECORDS.class_names)
    served = load(tmp_path / "model")
    assert served.predict(ASKED).tolist() == (names[expected] if expected.dtype.kind == "i" else expected).tolist()


def test_a_path_is_no_model(tmp_path):
    for way in (export, export_onnx):
        with pytest.raises(TypeError, match=r"MaxRR .*'ws'"):
            way("ws", tmp_path / "model")


@pytest.mark.parametrize("other", [{"country": Categories(["de", "es"])}, {"size": Number()}])
def test_an_encoding_of_other_columns_is_not_exported(other, tmp_path):
    with pytest.raises(ValueError, match="other columns"):
        export(MaxRR.on_features().fit(RECORDS), tmp_path / "model", encoding=Encoding({**ENCODING.rules, **other}))
    assert not (tmp_path / "model").exists()


def test_a_forged_encoding_is_refused(folder, tmp_path):
    body = json.loads((folder / "model.json").read_text()) | {"encoding": '{"size": {"fill": 1.0}}'}
    del body["hash"]
    (tmp_path / "model.json").write_text(json.dumps(body | {"hash": json_digest(body)}))
    with pytest.raises(ValueError, match="other columns"):
        load(tmp_path)
