"""Short texts in a random projection to more columns than there are words: columns are combinations of others."""

import copy

import numpy as np
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.random_projection import GaussianRandomProjection

from maxrr import LinearSVM

WORDS, COLUMNS, PEOPLE = 34, 64, 13


def texts(seed: int, count: int) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Texts of two words, their classes, and who wrote each."""
    rng, classes = np.random.default_rng(seed), np.arange(count) % 3
    chances = np.ones((3, WORDS))
    for each in range(3):
        chances[each, 5 * each : 5 * each + 8] = 3.0
    chances /= chances.sum(axis=1, keepdims=True)
    words = np.array([f"word{number}" for number in range(WORDS)])
    return (
        [" ".join(rng.choice(words, 2, p=chances[each])) for each in classes],
        classes,
        rng.integers(PEOPLE, size=count),
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataDimensionalityWarning")
def test_everybody_can_be_forgotten_in_float32():
    """As float64 numbers many of these texts differ from the margin by rounding alone, and one head is not solved."""
    said, classes, people = texts(2, 900)
    projected = GaussianRandomProjection(COLUMNS, random_state=0).fit_transform(TfidfVectorizer().fit_transform(said))
    assert np.linalg.matrix_rank(projected) == WORDS
    features = projected.astype(np.float32)
    model = LinearSVM().fit(features, classes == 1)
    for person in range(PEOPLE):
        stays, left = people != person, copy.deepcopy(model)
        left.forget(np.flatnonzero(~stays))
        again = LinearSVM().fit(features[stays], (classes == 1)[stays])
        assert left.coef_.tobytes() == again.coef_.tobytes() != model.coef_.tobytes()
