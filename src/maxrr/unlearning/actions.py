"""What is done about a request that can be carried out; what it is promised; and what a replay of it can answer.

Which requests cannot be carried out, `reasons.why_not` says.
"""

from dataclasses import dataclass
from enum import StrEnum

REFUSE, RETRAIN, KEEP = "refuse", "retrain", "keep-extractor"  # policies for core records
TECHNIQUE = "technique"  # what a function as policy is called


class Guarantee(StrEnum):
    """What the model is after a request, from the cheapest to the dearest.

    Attributes
    ----------
    untouched
        "exact-untouched": no requested record is core or influential. The model stays as it is.
    refit
        "exact-refit": the heads are those that a fit on the retained records gives, and the extractor was not trained
        on the forgotten ones.
    approximate
        "approximate-refit": the heads are fitted without the records, but the model is not the one that training
        without them gives. An audit is due.
    retrain
        "exact-retrain": the extractor is trained again without the records, with the recorded seed, and then the heads.
    """

    untouched = "exact-untouched"
    refit = "exact-refit"
    approximate = "approximate-refit"
    retrain = "exact-retrain"

    @property
    def exact(self) -> bool:
        """Whether the model is the one that training without the records gives."""
        return self is not Guarantee.approximate


class Action(StrEnum):
    """What `MaxRR.execute` does about a request, in addition to erasing the records.

    Attributes
    ----------
    refuse
        The request is refused, and nothing changes.
    nothing
        Every record asked for was forgotten before.
    erase
        The records shape no head: they are erased, and nothing moves.
    move
        The heads move to the optimum on the retained records, and on those that arrive.
    retrain
        The extractor is trained again on what is left of the core. Then all retained records are embedded again, and
        the heads are fitted on them from scratch.
    technique
        The caller's function makes another extractor; then as `retrain`.
    """

    refuse = "refuse"
    nothing = "nothing"
    erase = "erase"
    move = "move-heads"
    retrain = "train-extractor"
    technique = "technique"

    @property
    def fits_anew(self) -> bool:
        """Whether another extractor is made, all retained records are embedded, and the heads fitted from scratch."""
        return self in (Action.retrain, Action.technique)


@dataclass(frozen=True)
class Case:
    """All that the decision depends on: what is asked for, of which records, in which state.

    Attributes
    ----------
    policy : str
        What the caller wants for core records.
    records, core, influential : bool
        Whether the model holds some of the records asked for, some that are core, some that shape a head.
    in_extractor : bool
        Whether some were forgotten or replaced before, and the extractor was trained on them.
    added : bool
        Whether records arrive.
    """

    policy: str
    records: bool
    core: bool
    influential: bool
    in_extractor: bool
    added: bool


def decide(case: Case) -> Action:
    """Return the action of the first line that holds. Whether the request can be carried out is not asked here."""
    table = (
        (case.policy == RETRAIN and (case.core or case.in_extractor), Action.retrain),
        (case.policy == TECHNIQUE and case.core, Action.technique),
        (case.policy == REFUSE and case.core, Action.refuse),
        (case.added, Action.move),
        (not case.records, Action.nothing),
        (case.influential, Action.move),
        (True, Action.erase),
    )
    return next(action for holds, action in table if holds)


PROMISE = {
    Action.nothing: Guarantee.untouched,
    Action.erase: Guarantee.untouched,
    Action.move: Guarantee.refit,
    Action.retrain: Guarantee.retrain,
    Action.technique: Guarantee.approximate,
}


def promise(action: Action, case: Case) -> Guarantee:
    """What an action comes to: as in PROMISE, unless something of the records stays in the model after it."""
    stays_in_extractor = (case.core or case.in_extractor) and action is not Action.retrain
    return Guarantee.approximate if stays_in_extractor else PROMISE[action]


# What a replay can answer, in words that are the same in Python, in the shell and on pages.


class Outcome(StrEnum):
    """What came out of a replay.

    `Outcome(replay.outcome)` is the member also where the text goes on with a number, as "within 3.2e-12" does.

    Attributes
    ----------
    identical
        "identical": extractor and heads have the bytes that the fresh process made from the retained records alone, and
        everything on the receipt that can be compared is so.
    in_part
        "identical in part": what was made again has the same bytes, but not all of the model can be made from these
        records alone.
    within
        "within", followed by a number: some head is not decided. The weights (in 2-norm) and the bias of every such
        head are as near as its certificates say, which is no further than the number; all else has the same bytes.
    different
        "different": made again from the retained records, it is another model.
    false
        "the receipt is false": something that it says is not so.
    superseded
        "superseded": later requests or fits changed the model.
    not_comparable
        "not comparable here": other hardware, versions or threads.

    Examples
    --------
    >>> Outcome("within 3.2e-12")
    <Outcome.within: 'within'>
    """

    identical = "identical"
    in_part = "identical in part"
    within = "within"
    different = "different"
    false = "the receipt is false"
    superseded = "superseded"
    not_comparable = "not comparable here"

    @classmethod
    def _missing_(cls, value: object) -> "Outcome | None":
        return cls.within if isinstance(value, str) and value.startswith(f"{cls.within} ") else None

    @property
    def meaning(self) -> str:
        """What the outcome says of the model, in a sentence."""
        return MEANING[self]


MEANING = {
    Outcome.identical: "made again from the retained records, it has the same bytes, and what the receipt says is so",
    Outcome.in_part: (
        "what was made again from the retained records has the same bytes; not all of the model can be made from them"
    ),
    Outcome.within: (
        "made again from the retained records, weights and bias of every head are as near as its certificates say, and "
        "that is no further than this; they do not settle the last bytes"
    ),
    Outcome.different: "made again from the retained records, it is another one",
    Outcome.false: "something that it says is not so",
    Outcome.superseded: "later requests or fits changed the model since: what was replayed is its present state",
    Outcome.not_comparable: (
        "this machine, its versions or threads are not those that the model was made with, so that training again "
        "cannot give its bytes: the heads were solved again, from the stored features"
    ),
}
