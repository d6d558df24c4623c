"""Heads of a model whose extractor is on a GPU: solved there, with the bytes that a CPU gives, and forgotten from."""

import numpy as np
import pytest
import torch

from maxrr import LinearSVM, MaxRR
from maxrr.core import HashCore
from maxrr.data import load
from maxrr.nets import LeNet5, embed

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_heads_are_those_of_a_cpu_and_forget():
    training, _ = load("digits")
    model = MaxRR(LeNet5((1, 8, 8)), HashCore(0.5, key="house"), epochs=4, device="cuda").fit(training)
    assert isinstance(model._fitted.heads._fitted.solution.samples.X, np.ndarray)
    for _ in range(2):
        kept = training.select(model.ids_of())
        features = embed(model.extractor_, kept, device="cuda")
        alone = LinearSVM().fit(features, kept.labels)
        assert all(head.decided for head in model.heads_.certificate_)
        assert model.heads_.coef_.tobytes() == alone.coef_.tobytes()
        assert model.heads_.intercept_.tobytes() == alone.intercept_.tobytes()
        model.unlearn(model.ids_of("influential")[:3])
