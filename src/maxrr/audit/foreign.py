"""`audit_predictions`: the same audit of a model that is not ours, from what it and others say of the records."""

import warnings

import numpy as np
from numpy.typing import ArrayLike

from maxrr.audit.attacks import Evidence, Signals, cross_entropy
from maxrr.audit.findings import Finding, decide, too_few


def audit_predictions(
    audited: ArrayLike, retrained: ArrayLike, remembering: ArrayLike, labels: ArrayLike, forgotten: ArrayLike
) -> Finding:
    """Try to tell from probabilities that a model once had records which it should have forgotten.

    For models of any library: LiRA decides, by the rule of `audit`. No receipt is needed, and nobody checks here how
    the models came about. The finding rests on shadow models that were made as the audited model was.

    Parameters
    ----------
    audited : (records, classes)
        Probabilities by the audited model.
    retrained : (models, records, classes)
        By models trained without the forgotten records, from seeds of their own: 19 or more.
    remembering : (models, records, classes)
        By models that were trained with them, two or more: they say what is looked for, and how surely it is found.
    labels : (records,)
        The number of each record's class.
    forgotten : (records,) of bool
        Which of the records should be forgotten. The others are records that no model was trained on.

    Returns
    -------
    Finding
        What LiRA found, and how much it could have found.

    Raises
    ------
    ValueError
        The shapes do not belong together, or there are too few models or records.

    Examples
    --------
    >>> random, gone = np.random.default_rng(0), np.arange(40) < 20
    >>> def answers(gain, models):
    ...     p = 1 / (1 + np.exp(-random.normal(gain * gone, 0.5, (models, 40))))
    ...     return np.stack([p, 1 - p], axis=2)
    >>> never, once, labels = answers(0.0, 39), answers(2.0, 25), np.zeros(40, dtype=int)
    >>> audit_predictions(answers(2.0, 1)[0], never, once, labels, gone).words
    'residual influence found'
    >>> audit_predictions(answers(0.0, 1)[0], never, once, labels, gone).words
    'indistinguishable from retraining at this power'
    """
    groups = [np.asarray(group, dtype=np.float64) for group in ([audited], retrained, remembering)]
    true, asked = np.asarray(labels, dtype=np.int64), np.asarray(forgotten, dtype=bool)
    shape = groups[0].shape[1:]
    if any(group.shape[1:] != shape or len(shape) != 2 for group in groups) or {true.shape, asked.shape} != {shape[:1]}:
        said = [group.shape for group in groups]
        raise ValueError(f"probabilities are (models, records, classes) of the same records, not {said}")
    if min(len(group) for group in groups[1:]) < 2 or len(true) == 0 or not asked.any() or asked.all():
        raise ValueError("this takes two or more models of each kind, forgotten records, and others beside them")
    if words := too_few(len(groups[1])):
        warnings.warn(words, stacklevel=2)

    def signals(p: ArrayLike) -> Signals:
        losses = cross_entropy(p, true)
        return Signals(losses[asked], losses[~asked], losses[~asked])

    (mine,), without, with_them = ([signals(p) for p in group] for group in groups)
    evidence = Evidence(with_them, without)
    before = [evidence.scores("lira", model, number) for number, model in enumerate(with_them)]
    return decide(evidence.scores("lira", mine), before, before)
