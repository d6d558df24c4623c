"""What is forgotten does not come back in another dress."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from maxrr import MaxRR
from maxrr.core import HashCore
from maxrr.data import Dataset
from tests.unlearning.problems import fresh, pictures, table, table_model

CORE = HashCore(0.5, key="house")


DRESSES = {
    "as it was": lambda data: data,
    "as float64": lambda data: replace(data, inputs=data.inputs.astype(np.float64)),
    "without subjects": lambda data: replace(data, subjects=None),
    "with other subjects": lambda data: replace(data, subjects=data.subjects + 1),
    "with renamed classes": lambda data: replace(data, class_names=("x", "y", "z")),
    "with another label": lambda data: replace(data, labels=(data.labels + 1) % 3),
    "with noise": lambda data: replace(data, inputs=data.inputs + np.float32(1e-6)),
    "with other values": lambda data: replace(data, inputs=data.inputs[::-1].copy()),
    "with ids as texts": lambda data: replace(data, ids=data.ids.astype(str)),
}


@pytest.mark.parametrize("dress", DRESSES)
def test_a_forgotten_id_is_refused_whatever_else_changed(dress):
    model = table_model()
    model.unlearn(table().ids[:3], core_policy="keep-extractor")
    with pytest.raises(ValueError, match="3 of the"):
        model.fit(DRESSES[dress](table()), allow_copies="whatever")


@pytest.mark.parametrize("dress", [name for name in DRESSES if name not in ("with noise", "with ids as texts")])
def test_forgotten_values_under_other_ids_are_refused(dress):
    model = table_model()
    gone = table().select(table().ids[:3])
    model.unlearn(gone.ids, core_policy="keep-extractor")
    others = DRESSES[dress](replace(gone, ids=gone.ids + 1))
    kept = table().without(gone.ids)
    features = np.concatenate([kept.inputs.astype(others.inputs.dtype), others.inputs])
    labels = np.concatenate([kept.labels, others.labels])
    data = Dataset(features, labels, others.class_names, np.concatenate([kept.ids, others.ids]))
    with pytest.raises(ValueError, match="shell --allow"):
        model.fit(data)


@pytest.mark.parametrize(
    "change",
    [
        lambda pixels: pixels,
        lambda pixels: pixels.astype(np.float32),
        lambda pixels: pixels / 255.0,
        lambda pixels: (pixels / 255.0).astype(np.float32),
        lambda pixels: pixels.astype(np.float32) * np.float32(1 / 255),
        lambda pixels: pixels.astype(np.float16),
    ],
)
def test_the_same_pixels_are_recognised_in_every_type(change):
    data = pictures()
    model = fresh(CORE, table(), epochs=1).fit(data)
    gone = data.ids[:4]
    model.unlearn(gone, core_policy="keep-extractor")
    ids = np.where(np.isin(data.ids, gone), data.ids + 1, data.ids)
    with pytest.raises(ValueError, match="4 of the"):
        model.fit(replace(data, inputs=change(data.inputs), ids=ids))


def test_embeddings_in_halves_are_recognised_in_wider_types_and_rounded_ones_are_others():
    wide, labels, ids = rows(np.arange(40)).inputs, np.arange(40) % 2, np.arange(40)
    turned = np.append(ids[1:], 100)
    for held, given, same in ((np.float16, np.float64, True), (np.float32, np.float16, False)):
        model = MaxRR.on_features().fit(wide.astype(held), labels, ids=ids)
        model.unlearn([0])
        copies = np.roll(wide.astype(held), -1, axis=0).astype(given), np.roll(labels, -1)
        if same:
            with pytest.raises(ValueError, match="1 of the"):
                model.fit(*copies, ids=turned)
        else:
            model.fit(*copies, ids=turned)


def test_a_twin_that_stayed_may_be_fitted_again():
    """That it stays was said on the receipt."""
    data = table()
    features = data.inputs.copy()
    features[1] = features[0]
    twins = replace(data, inputs=features)
    model = fresh(CORE, data).fit(twins)
    assert model.unlearn(data.ids[:1], core_policy="keep-extractor").duplicates_left == 1
    model.fit(twins.without(data.ids[:1]))


NAMES = ("a", "b", "c")


def rows(ids, order=NAMES):
    """Records of a table, whose columns stand in some order; without names for None."""
    values = np.random.default_rng(0).normal(size=(40, 3)).astype(np.float32)
    places = range(3) if order is None else [NAMES.index(name) for name in order]
    ids = np.array(ids)
    return Dataset(values[ids][:, list(places)], ids % 2, ("p", "q"), ids, columns=order)


@pytest.mark.parametrize("between", [("c", "a", "b"), None])
@pytest.mark.parametrize("order", list(permutations(NAMES)))
def test_forgotten_values_are_known_in_every_order_of_columns_that_the_model_had(between, order):
    rest, copy = np.arange(1, 40), replace(rows([0], order), ids=np.array([100]))
    model = MaxRR.on_features().fit(rows(np.arange(40)))
    model.unlearn([0])
    model.fit(rows(rest, between))
    with pytest.raises(ValueError, match="1 of the"):
        model.fit(rows(rest, order).join(copy))
    with pytest.raises(ValueError, match="1 of the"):
        model.add(copy)
    with pytest.raises(ValueError, match="1 of the"):
        model.replace(5, rows([0], between).inputs[0])
    model.fit(rows(rest, order))  # what was never forgotten is no copy in any order


def test_a_twin_that_stayed_is_known_in_another_order_of_columns():
    data = rows(np.arange(40))
    data.inputs[1] = data.inputs[0]
    turned = replace(data, inputs=data.inputs[:, [2, 0, 1]], columns=("c", "a", "b"))
    model = MaxRR.on_features().fit(data)
    model.unlearn([0])
    model.fit(turned.without([0])).fit(data.without([0]))
    with pytest.raises(ValueError, match="1 of the"):
        model.add(replace(turned.select([1]), ids=np.array([100])))
