"""Scores of all models by all attacks: the audited model in one row with the retrained ones, so that all are alike."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from maxrr.audit import signals
from maxrr.audit.checks import Floats
from maxrr.audit.lira import Form, Spread, lira_leave_one_out
from maxrr.audit.rmia import rmia_leave_one_out
from maxrr.audit.shadows import View
from maxrr.audit.threshold import Threshold

STRONG = ("lira", "rmia")
ATTACKS = ("threshold", *STRONG, "lira-offline", "loss", "entropy", "modified-entropy")
ENOUGH = 32  # models on each side, from which on each record has a variance of its own

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Labels:
    """Of the records that views speak of."""

    forgotten: Ints
    retained: Ints
    test: Ints


class Evidence:
    """Views of models that had the records and of models retrained without them.

    Every attack gives scores (models × forgotten records), higher for members: of one model in question, in row 0, and
    of the retrained ones, each scored by all the others.
    """

    def __init__(self, with_records: Sequence[View], retrained: Sequence[View], labels: Labels) -> None:
        self.with_records = list(with_records)
        self.retrained = list(retrained)
        self.labels = labels

    @cached_property
    def spread(self) -> Spread:
        return "record" if min(len(self.with_records), len(self.retrained)) >= ENOUGH else "pooled"

    def scores(self, attack: str, target: View, without: int | None = None) -> Floats:
        """Of a model in question and of the retrained ones. `without` is one of those with the records to leave out,
        for when it is itself in question.
        """
        seen = [view for number, view in enumerate(self.with_records) if number != without]
        rows = [target, *self.retrained]
        if attack in ("lira", "lira-offline", "rmia"):
            member = np.zeros((len(rows) + len(seen), len(self.labels.forgotten)), dtype=bool)
            member[len(rows) :] = True
            if attack == "rmia":
                p_x = np.exp(-self.losses([*rows, *seen], "forgotten"))
                p_z = np.exp(-self.losses([*rows, *seen], "test"))
                return rmia_leave_one_out(p_x, member, p_z)[: len(rows)]
            logits = np.stack([self.logits(view) for view in (*rows, *seen)])
            form: Form = "online" if attack == "lira" else "offline"
            return lira_leave_one_out(logits, member, form, self.spread)[: len(rows)]
        if attack == "threshold":
            return np.stack([self.beyond_threshold(view) for view in rows])
        if attack == "loss":
            return -self.losses(rows, "forgotten")
        if attack == "entropy":
            return -np.stack([signals.entropy(view.forgotten) for view in rows])
        return -np.stack([signals.modified_entropy(view.forgotten, self.labels.forgotten) for view in rows])

    def statistics(self, attack: str, scores: Floats) -> Floats:
        """One number for each model."""
        if attack == "threshold":
            return np.asarray(np.mean(scores > 0.0, axis=1))
        return np.asarray(np.mean(scores, axis=1))

    def logits(self, view: View) -> Floats:
        """Of the forgotten records, less the mean over test records: some models are surer of everything than others,
        which says nothing about these records.
        """
        level = float(np.mean(signals.logit(view.test, self.labels.test)))
        return signals.logit(view.forgotten, self.labels.forgotten) - level

    def losses(self, views: Sequence[View], part: str) -> Floats:
        labels = getattr(self.labels, part)
        return np.stack([signals.cross_entropy(getattr(view, part), labels) for view in views])

    def beyond_threshold(self, view: View) -> Floats:
        """By how much the paper's attack calls each forgotten record a member: above 0 it does."""
        members, others, gone = (self.losses([view], part)[0] for part in ("retained", "test", "forgotten"))
        threshold = Threshold.fit(members, others).threshold
        return np.asarray(min(threshold, 2.0 * signals.cross_entropy([[0.0, 1.0]], [0])[0]) - gone)
