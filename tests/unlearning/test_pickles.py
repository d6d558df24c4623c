"""A fitted model holds the training records, and is not written into a pickle."""

import copy
import io
import pickle

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from maxrr.core import HashCore
from tests.unlearning.problems import fresh, table, table_model


@pytest.mark.parametrize(
    "write", [pickle.dumps, lambda model: joblib.dump(model, io.BytesIO())], ids=["pickle", "joblib"]
)
@pytest.mark.parametrize("inside", [False, True])
def test_a_fitted_model_is_refused_with_what_to_do_instead(write, inside):
    model = table_model()
    with pytest.raises(TypeError, match=r"training records.*Workspace.*serving\.export.*bundle"):
        write(make_pipeline(StandardScaler(), model) if inside else model)


def test_one_that_is_not_fitted_is_written():
    """As scikit-learn's searches send it to worker processes."""
    data = table()
    sent = pickle.loads(pickle.dumps(fresh(HashCore(0.5, key="house"), data, epochs=1)))
    assert sent.fit(data).model_hash_ == fresh(HashCore(0.5, key="house"), data, epochs=1).fit(data).model_hash_


@pytest.mark.parametrize("made", [copy.copy, copy.deepcopy])
def test_copies_in_memory_stay_and_go_their_own_ways(made):
    model, data = table_model(), table()
    copied = made(model)
    assert copied.model_hash_ == model.model_hash_
    copied.unlearn(data.ids[:5], core_policy="keep-extractor")
    assert len(model._fitted.records.alive) == int(model._fitted.records.alive.sum()) == len(data)
    assert np.array_equal(
        clone(model).fit(data).predict(data), fresh(HashCore(0.5, key="house"), data).fit(data).predict(data)
    )
