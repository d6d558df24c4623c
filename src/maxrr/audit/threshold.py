"""The paper's attack, `alg:mia`: one threshold on the cross-entropy for all records, and the probabilities under it.

A record with a loss below the threshold is called a member, any other is 'claimed unlearned'. Which records are the
members to compare with is the caller's choice: the retained ones, or, as the paper's appendix does to improve the
attack on records outside the core, the retained ones less the core.

The paper does not say what its Platt scaling was fitted on, and that moves the losses of members against those of
others. So there are three variants, by name.
"""

import hmac
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from maxrr.audit.checks import Flags, finite
from maxrr.audit.roc import roc
from maxrr.data.hashes import identifier_bytes
from maxrr.svm import PlattScaling, fit_platt

Platt = Literal["retained", "held-out", "cross-validated"]
"""What Platt scaling is fitted on; `platt_by` says what each means."""

PLATT: tuple[Platt, ...] = get_args(Platt)

FOLDS_SALT = b"maxrr: folds of Platt scaling"  # which record is in which fold need not be secret


@dataclass(frozen=True)
class Threshold:
    """A fitted threshold on the cross-entropy, with the rates that it has on the records it was fitted to.

    >>> attack = Threshold.fit(member_losses=[0.1, 0.2, 0.9], nonmember_losses=[0.3, 0.8, 1.0])
    >>> attack.threshold, attack.claims_member([0.25, 0.3])
    (0.3, array([ True, False]))
    """

    threshold: float
    tpr: float
    fpr: float

    @classmethod
    def fit(cls, member_losses: ArrayLike, nonmember_losses: ArrayLike) -> "Threshold":
        """The threshold with the largest TPR − FPR, of all observed losses and infinity.

        Of several that are equally good it takes the lowest, which has the smallest FPR: where the losses tell
        nothing, none of the compared records is called a member. Counts are compared, not rounded rates.
        """
        members, nonmembers = finite(member_losses, "member losses"), finite(nonmember_losses, "nonmember losses")
        curve = roc(-members, -nonmembers)
        # Losses at or below one observed value are those strictly below the next: `alg:mia` says below.
        candidates = np.append(-curve.thresholds[1:], np.inf)
        right, wrong = np.rint(curve.tpr * members.size), np.rint(curve.fpr * nonmembers.size)
        best = int(np.argmax(right * nonmembers.size - wrong * members.size))
        return cls(float(candidates[best]), float(curve.tpr[best]), float(curve.fpr[best]))

    def claims_member(self, losses: ArrayLike) -> Flags:
        """Which of the losses, shape (records,), lie strictly below the threshold; the others are claimed unlearned."""
        return np.asarray(finite(losses, "losses") < self.threshold)


def platt_by(
    variant: Platt,
    scores: ArrayLike,
    labels: ArrayLike,
    classes: ArrayLike,
    *,
    held_out_scores: ArrayLike | None = None,
    held_out_labels: ArrayLike | None = None,
    out_of_fold_scores: ArrayLike | None = None,
) -> PlattScaling:
    """Platt scaling of the heads, fitted as the variant says; it is meant for the scores of these heads.

    Parameters
    ----------
    variant
        ``"retained"``: on the heads' scores of the records they were fitted on, as the library does. Members then
        look surer than they are.
        ``"held-out"``: on their scores of records they never saw, other ones than the attack compares with.
        ``"cross-validated"``: on scores of the retained records by heads that did not see them.
    scores, labels, classes
        The heads' scores of the retained records, their labels, and all labels, as `fit_platt` takes them.
    held_out_scores, held_out_labels
        Of the held-out records.
    out_of_fold_scores
        Like `scores`, but each row by heads refitted without the record's fold (`folds_of`).

    >>> platt_by("retained", [-1.0, -2.0, 1.0, 2.0], [0, 0, 1, 1], [0, 1]).probabilities([0.0]).round(3)
    array([[0.5, 0.5]])
    """
    if variant not in PLATT:
        raise ValueError(f"Platt scaling is fitted on one of {', '.join(PLATT)}; not on {variant!r}")
    if variant == "held-out":
        if held_out_scores is None or held_out_labels is None:
            raise ValueError("held-out Platt scaling needs the scores and the labels of held-out records")
        return fit_platt(held_out_scores, held_out_labels, classes)
    if variant == "cross-validated":
        if out_of_fold_scores is None:
            raise ValueError("cross-validated Platt scaling needs scores by heads refitted without each record's fold")
        return fit_platt(out_of_fold_scores, labels, classes)
    return fit_platt(scores, labels, classes)


def folds_of(ids: NDArray[Any], folds: int = 5) -> NDArray[np.intp]:
    """The fold of each record, 0 to folds − 1, by a hash of its id: other records and their order do not matter.

    >>> folds_of(np.arange(6), folds=2)
    array([0, 1, 1, 0, 1, 1])
    """
    if folds < 2:
        raise ValueError(f"cross-validation needs two folds or more, not {folds}")
    hashes = (hmac.digest(FOLDS_SALT, identifier_bytes(id_), "sha256") for id_ in ids.tolist())
    return np.array([int.from_bytes(digest[:8], "little") % folds for digest in hashes], dtype=np.intp)
