"""Encodings that are declared: the same numbers for a record, whatever others are there."""

import numpy as np
import pytest

from maxrr.data import Categories, DataError, Encoding, Number, load

DECLARED = Encoding(
    {
        "country": Categories(["de", "fr"], other=True, missing=True),
        "age": Number(fill=40.0, indicator=True, mean=40.0, width=20.0),
    }
)
TABLE = "id,label,country,height,age\n0,a,de,1.5,60\n1,b,it,1.5,\n2,a,,1.75,20\n3,b,fr,2,nan\n"


def everything(path, text, **options):
    path.write_text(text)
    return load(path, whole=True, **options)[0]


def test_columns_become_declared_inputs_in_their_place(tmp_path):
    records = everything(tmp_path / "table.csv", TABLE, encoding=DECLARED)
    assert records.columns == (
        *("country=de", "country=fr", "country is other", "country is missing"), "height", "age", "age is missing",
    )  # fmt: skip
    assert records.in_order().inputs.tolist() == [
        [1, 0, 0, 0, 1.5, 1, 0], [0, 0, 1, 0, 1.5, 0, 1], [0, 0, 0, 1, 1.75, -1, 0], [0, 1, 0, 0, 2, 0, 1],
    ]  # fmt: skip


def test_the_inputs_of_a_record_do_not_depend_on_others(tmp_path):
    header, *rows = TABLE.splitlines()
    together = everything(tmp_path / "table.csv", TABLE, encoding=DECLARED)
    for row, id_ in zip(rows, range(4), strict=True):
        alone = everything(tmp_path / "alone.csv", f"{header}\n{row}\n", encoding=DECLARED)
        assert np.array_equal(alone.record_hashes(), together.select([id_]).record_hashes())


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        (None, r"line 2, column 'country': 'de' is not a number.*Categories\(\['de'"),
        (
            {"country": Categories(["de", "fr", "it"]), "age": Number(fill=0.0)},
            r"line 4, column 'country': there is no value.*missing=True",
        ),
        (
            {"country": Categories(["de", "fr"], missing=True), "age": Number(fill=0.0)},
            r"line 3, column 'country': 'it' is none of the declared",
        ),
        ({"country": Categories(["de"], other=True, missing=True)}, r"line 3, column 'age': there is no value"),
        ({"nation": Categories(["de"])}, r"the encoding declares 'nation', but the inputs are 'country', 'height'"),
    ],
)
def test_what_is_not_declared_is_an_error_that_says_what_to_declare(tmp_path, encoding, words):
    with pytest.raises(DataError, match=rf"table\.csv: {words}"):
        everything(tmp_path / "table.csv", TABLE, encoding=encoding and Encoding(encoding))


def test_json_and_back():
    assert Encoding.from_json(DECLARED.to_json()) == DECLARED
    assert Encoding.from_json('{"x": {}}') == Encoding({"x": Number()})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "one entry"),
        ("{", "written in JSON"),
        ('{"x": {"fill": NaN}}', "written in JSON"),
        ('{"x": {"fil": 0}}', "column 'x': .*'fil'"),
        ('{"x": {"categories": "de"}}', "column 'x': categories is text"),
        ('{"x": {"categories": []}}', "column 'x': .*at least one"),
        ('{"x": {"categories": [1, "1"]}}', "must be different"),
        ('{"x": {"categories": [1.5]}}', "not text"),
        ('{"x": {"categories": ["a"], "other": 1}}', "not true or false"),
        ('{"x": {"width": 0}}', "width must be a positive number"),
        ('{"x": {"fill": true}}', "fill is true or false"),
        ('{"x": {"indicator": true}}', "declare the fill"),
    ],
)
def test_wrong_declarations(text, words):
    with pytest.raises(DataError, match=words):
        Encoding.from_json(text)


@pytest.mark.parametrize("values", [["true", "True"], [True, "TRUE"], ["1", "1.0"], [1, "1.0"], ["de", "de "]])
def test_categories_that_tables_write_in_two_ways_are_one(values):
    with pytest.raises(DataError, match=r"^categories "):
        Categories(values)
    one, other = values
    assert Categories([one]).encode([other]).tolist() == [[1.0]]


@pytest.mark.parametrize("name", ["fill", "mean", "width"])
def test_constants_that_no_float_holds(name):
    with pytest.raises(DataError, match=f"^{name} "):
        Number(**{name: 10**400})


def test_rules_are_rules():
    with pytest.raises(DataError, match="Categories"):
        Encoding({"x": 0.0})
