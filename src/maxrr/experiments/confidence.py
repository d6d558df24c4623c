"""Ways from an SVM's scores to probabilities. The paper says 'Platt scaling', and leaves open how."""

from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from maxrr.svm import fit_platt

Variant = Literal["retained", "everything", "softmax"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)

Floats = NDArray[np.float64]


def probabilities(
    variant: Variant, scores: Floats, labels: NDArray[np.int64], retained: NDArray[np.bool_], tests: Floats,
    classes: NDArray[np.int64],
) -> tuple[Floats, Floats]:  # fmt: skip
    """Probabilities of all training records and of the test records.

    Parameters
    ----------
    variant
        ``retained``: a sigmoid a class, fitted on the records that the head was fitted to.
        ``everything``: on all training records, forgotten ones among them.
        ``softmax``: of the scores themselves, without any fit.
    scores, labels
        Of the training records.
    retained
        Those that the head was fitted to.
    tests
        Scores of the test records.
    classes
        By the columns of the scores.
    """
    if variant == "softmax":
        return softmax(scores, axis=1), softmax(tests, axis=1)
    rows = retained if variant == "retained" else np.ones(len(labels), dtype=bool)
    scaling = fit_platt(scores[rows], labels[rows], classes)
    return scaling.probabilities(scores), scaling.probabilities(tests)
