"""LiRA: is what a model says of a record more like what models say that saw it, or models that did not?

To ask whether an unlearned model can be told from models retrained without the records (U-LiRA), let it be one more of
these. Every one is scored by all the others, so that under the null hypothesis its scores and theirs are made alike,
which is what `maxrr.audit.ranks` asks for. A score is for one record and one model, and higher for members.

References
----------
N. Carlini et al., "Membership inference attacks from first principles", 2022.
J. Hayes et al., "Inexact unlearning needs more careful evaluations to avoid a false sense of privacy", 2024.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr

from maxrr.audit.checks import Floats, finite

PRIOR = 8  # models that the mean over records counts for, where each record has a variance of its own

VARIANCE_FLOOR = 1e-12
"""Variances below it count as it. Signals 1e-10 apart then differ by 1e-4 standard deviations: too little to see."""


def lira_online(unseen: ArrayLike, seen: ArrayLike) -> Floats:
    """The log-ratio of two Gaussian densities at each model's signals, by all other models: shape of `unseen`.

    Parameters
    ----------
    unseen, seen
        Signals of models that did not see the records and of models that did, shapes (models, records). Both
        Gaussians of a record have one variance, drawn towards that of all records as if by `PRIOR` more models. So the
        score rises with the signal without end, where others fall again for a record that is remembered better than by
        any model that saw it once.

    >>> lira_online([[0.0], [2.0], [1.0]], [[4.0], [6.0], [5.0]]).round(2).ravel()
    array([-13.65,  -4.05,  -6.  ])
    """
    rows, others, outside, scatter = left_out(unseen)
    inside = models(seen, "models that saw the records", 2)
    scatter = scatter + np.sum((inside - inside.mean(axis=0)) ** 2, axis=0)
    freedom = others + len(inside) - 2
    prior = np.mean(scatter, axis=1, keepdims=True) / freedom
    variance = np.maximum((scatter + PRIOR * prior) / (freedom + PRIOR), VARIANCE_FLOOR)
    middle, apart = (inside.mean(axis=0) + outside) / 2.0, inside.mean(axis=0) - outside
    return np.asarray((rows - middle) * apart / variance)


def lira_offline(unseen: ArrayLike) -> Floats:
    """−log of the chance that another model which did not see the record has so large a signal: shape of `unseen`.

    Needs no model that saw the records. All records share one variance. Carlini et al. take one less the chance, in the
    same order; the logarithm keeps apart what lies far in the tail.

    >>> lira_offline([[0.0], [1.0], [60.0]]).round().ravel().tolist()
    [0.0, 0.0, 3546.0]
    """
    rows, others, outside, scatter = left_out(unseen)
    variance = np.maximum(np.mean(scatter, axis=1, keepdims=True) / (others - 1), VARIANCE_FLOOR)
    return np.asarray(0.0 - log_ndtr((outside - rows) / np.sqrt(variance)))


def left_out(unseen: ArrayLike) -> tuple[Floats, int, Floats, Floats]:
    """The signals; of each model how many others there are, their means, and their squared deviations, summed.

    A model is taken out by subtraction: exact up to rounding, and as cheap as scoring each by all.
    """
    rows = models(unseen, "models that did not see the records", 3)
    others, away = len(rows) - 1, rows - rows.mean(axis=0)
    scatter = np.sum(away**2, axis=0) - away**2 * len(rows) / others
    return rows, others, rows.mean(axis=0) - away / others, np.maximum(scatter, 0.0)


def models(signals: ArrayLike, which: str, fewest: int) -> Floats:
    """Signals of so many models or more."""
    rows = finite(signals, "signals", dimensions=2)
    if len(rows) < fewest:
        raise ValueError(f"LiRA takes {fewest} {which} or more, not {len(rows)}: train more of them")
    return rows
