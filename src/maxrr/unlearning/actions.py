"""What is done about a request: decided here, once, and carried out by `state` as decided."""

from dataclasses import dataclass
from enum import StrEnum

from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.requests import REFUSE, RETRAIN, TECHNIQUE


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
        The heads move to the optimum on the retained records.
    more
        The same, with a record that arrives.
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
    more = "heads-with-more"
    retrain = "train-extractor"
    technique = "technique"

    @property
    def fits_anew(self) -> bool:
        """Whether another extractor is made, all retained records are embedded, and the heads fitted from scratch."""
        return self in (Action.retrain, Action.technique)

    @property
    def moves_heads(self) -> bool:
        """Whether heads move from where they are to the optimum on other records, and are not fitted from scratch."""
        return self in (Action.move, Action.more)


@dataclass(frozen=True)
class Case:
    """All that the decision depends on: what is asked for, of which records, in which state.

    Attributes
    ----------
    policy : str
        What the caller wants for core records.
    records, core, influential : bool
        Whether the model holds some of the records asked for, some that are core, some that shape a head.
    left : bool
        Whether some were forgotten or replaced before, and the extractor was trained on them.
    added : bool
        Whether records arrive.
    """

    policy: str
    records: bool
    core: bool
    influential: bool
    left: bool
    added: bool


def decide(case: Case) -> Action:
    """The action of the first line that holds."""
    table = (
        (case.policy == RETRAIN and (case.core or case.left), Action.retrain),
        (case.policy == TECHNIQUE and case.core, Action.technique),
        (case.policy == REFUSE and case.core, Action.refuse),
        (case.added, Action.more),
        (not case.records, Action.nothing),
        (case.influential, Action.move),
        (True, Action.erase),
    )
    return next(action for holds, action in table if holds)


PROMISE = {
    Action.nothing: Guarantee.untouched,
    Action.erase: Guarantee.untouched,
    Action.move: Guarantee.refit,
    Action.more: Guarantee.refit,
    Action.retrain: Guarantee.retrain,
    Action.technique: Guarantee.approximate,
}


def promise(action: Action, case: Case) -> Guarantee:
    """What an action comes to: as in PROMISE, unless something of the records stays in the model after it."""
    stays_in_extractor = (case.core or case.left) and action is not Action.retrain
    return Guarantee.approximate if stays_in_extractor else PROMISE[action]
