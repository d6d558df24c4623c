"""Ways from an SVM's scores to the cross-entropies that `alg:mia` compares. The paper leaves open which it took.

It says 'Platt scaling', which makes a probability of one SVM's score. How ten of them come to the simplex, and which
records the sigmoids are fitted to, it does not say.
"""

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit, log_softmax

from lab.heads import Bools, Floats, Heads, Ints, OneVsOne, Scheme, pairs
from maxrr.audit.attacks import cross_entropy
from maxrr.svm import PlattScaling, fit_platt

Variant = Literal["retained", "everything", "test", "unnormalised", "softmax"]
USUAL: Variant = "retained"
OF_SCHEME: dict[Scheme, tuple[Variant, ...]] = {  # the first is what the library does
    "one-vs-rest": ("retained", "everything", "test", "unnormalised", "softmax"),
    "one-vs-one": ("retained", "everything"),
}
LEAST = 1e-7  # as libsvm: no pairwise probability is nearer to 0 or 1


def losses(
    variant: Variant, heads: Heads, scores: tuple[Floats, Floats], labels: tuple[Ints, Ints], retained: Bools
) -> tuple[Floats, Floats]:  # fmt: skip
    """The cross-entropy of each training and each test record.

    Parameters
    ----------
    variant
    heads
        Their scheme decides: one-vs-one scores are coupled, as `SVC(probability=True)` does, whatever else.
    scores, labels
        Of training and test records.
    retained
        The training records that the heads were fitted to.
    """
    if len(heads.classes) < 3:
        raise ValueError("ways to probabilities differ from three classes on: two share one SVM")
    columns = tuple(np.searchsorted(heads.classes, side) for side in labels)
    if variant == "softmax":
        return pick(-log_softmax(scores[0], axis=1), columns[0]), pick(-log_softmax(scores[1], axis=1), columns[1])
    if variant == "test":
        known, rows = (scores[1], labels[1]), np.ones(len(labels[1]), dtype=bool)
    else:
        known, rows = (
            (scores[0], labels[0]),
            np.ones(len(retained), dtype=bool) if variant == "everything" else retained,
        )
    return calibrate(heads, scores, labels, (known[0][rows], known[1][rows]), variant != "unnormalised")


def calibrate(
    heads: Heads, scores: tuple[Floats, Floats], labels: tuple[Ints, Ints], fitted_to: tuple[Floats, Ints],
    normalised: bool = True,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Cross-entropies by sigmoids that are fitted to these scores and labels, perhaps of heads that saw less."""
    columns = tuple(np.searchsorted(heads.classes, side) for side in labels)
    if isinstance(heads, OneVsOne):
        sigmoids = fit_pairs(*fitted_to, heads.classes)
        both = tuple(cross_entropy(couple(sigmoids, side), at) for side, at in zip(scores, columns, strict=True))
        return both[0], both[1]
    scaling = fit_platt(*fitted_to, heads.classes)
    if normalised:
        both = tuple(cross_entropy(scaling.probabilities(side), at) for side, at in zip(scores, columns, strict=True))
    else:
        both = tuple(pick(-log_sigmoid(scaling, side), at) for side, at in zip(scores, columns, strict=True))
    return both[0], both[1]


def pick(values: Floats, columns: NDArray[np.intp]) -> Floats:
    """One value of each row."""
    return np.asarray(values[np.arange(len(values)), columns])


def log_sigmoid(scaling: PlattScaling, scores: Floats) -> Floats:
    """The logarithm of each head's own sigmoid."""
    return np.asarray(log_expit(-(scaling.a * (scores - scaling.centre) + scaling.b)))


def fit_pairs(scores: Floats, labels: Ints, classes: Ints) -> list[PlattScaling]:
    """One sigmoid for each pair of classes, fitted to the records of these two."""
    found = []
    for column, (one, other) in enumerate(pairs(range(len(classes)))):
        rows = (labels == classes[one]) | (labels == classes[other])
        found.append(fit_platt(scores[rows, column], labels[rows], classes[[one, other]]))
    return found


def couple(sigmoids: list[PlattScaling], scores: Floats) -> Floats:
    """Probabilities that agree best with those of all pairs.

    The second method of Wu, Lin and Weng ("Probability estimates for multi-class classification by pairwise coupling",
    2004): minimise Σᵢⱼ (rⱼᵢpᵢ − rᵢⱼpⱼ)² over the simplex's plane, one linear system per record. scikit-learn has
    it only inside `SVC`, for scores of its own.
    """
    count = round((1 + (1 + 8 * scores.shape[1]) ** 0.5) / 2)
    r = np.zeros((len(scores), count, count))
    for column, (one, other) in enumerate(pairs(range(count))):
        second = sigmoids[column].probabilities(scores[:, column])[:, 1].clip(LEAST, 1.0 - LEAST)
        r[:, other, one], r[:, one, other] = second, 1.0 - second
    system = np.zeros((len(scores), count + 1, count + 1))
    system[:, :count, :count] = -r.transpose(0, 2, 1) * r
    diagonal = np.arange(count)
    system[:, diagonal, diagonal] = (r**2).sum(1)
    system[:, count, :count] = system[:, :count, count] = 1.0
    right = np.zeros((len(scores), count + 1, 1))
    right[:, count] = 1.0
    found = np.linalg.solve(system, right)[:, :count, 0].clip(0.0)
    return np.asarray(found / found.sum(1, keepdims=True))
