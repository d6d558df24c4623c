"""Other kinds of input than a model was fitted on are noticed."""

from dataclasses import replace

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.core import HashCore
from tests.unlearning.problems import fresh, pictures, table

CORE = HashCore(0.5, key="house")


def test_pixels_and_floats_are_not_taken_for_each_other():
    model = fresh(CORE, table(), epochs=1).fit(pictures())
    pixels = pictures().inputs
    for other in (pixels / 255.0, pixels.astype(np.float32), (pixels / 255.0).astype(np.float32)):
        with pytest.raises(ValueError, match="divides by 255"):
            model.predict(other)
        with pytest.raises(ValueError, match="divides by 255"):
            model.add(replace(pictures(), inputs=other, ids=pictures().ids + 10_000))
    black_and_white = (pixels[0] > 127).astype(np.float64)  # which would fit, as pixels that are almost black
    for other in (black_and_white, black_and_white.astype(bool), black_and_white.astype(np.int64)):
        with pytest.raises(ValueError, match="divides by 255"):
            model.replace(pictures().ids[0], other, core_policy="keep-extractor")
    assert model.predict(pixels).shape == (80,)
    floats = fresh(CORE, table(), epochs=1).fit(table())
    with pytest.raises(ValueError, match="floats"):
        floats.predict(np.zeros((2, 5), dtype=np.uint8))
    assert floats.predict(table().inputs.astype(np.float64)).shape == (80,)


def test_one_record_is_told_from_many():
    for model, record in ((MaxRR.on_features().fit(table()), table().inputs[0]),
                          (fresh(CORE, table(), epochs=1).fit(pictures()), pictures().inputs[0])):  # fmt: skip
        with pytest.raises(ValueError, match="axis in front"):
            model.predict(record)
        assert model.predict(record[None]).shape == (1,)


class Frame:
    """As much of a DataFrame as matters."""

    def __init__(self, values, columns):
        self.values, self.columns = values, columns

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.values, dtype=dtype)

    def __len__(self):
        return len(self.values)


def test_columns_of_a_table_keep_their_order():
    data, names = table(), ["a", "b", "c", "d", "e"]
    model = fresh(CORE, data, epochs=1).fit(Frame(data.inputs, names), data.labels, ids=data.ids)
    expected = model.predict(Frame(data.inputs, names))
    assert np.array_equal(model.predict(data.inputs), expected)  # without names order counts
    for other in (names[::-1], [*names[:4], "x"]):
        with pytest.raises(ValueError, match="the same order"):
            model.predict(Frame(data.inputs, other))
