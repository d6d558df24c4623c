"""What is done about a request: decided here, once, and carried out by `state` as decided."""

from dataclasses import dataclass
from enum import StrEnum

from maxrr.unlearning.guarantees import Guarantee
from maxrr.unlearning.requests import INFLUENTIAL, REFUSE, RETRAIN, TECHNIQUE


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
    influential
        The heads are fitted on what is left of the last full fit's influential records.
    anew
        All retained records are embedded again, and the heads are fitted on them from scratch.
    retrain
        The extractor is trained again on what is left of the core; then as `anew`.
    technique
        The caller's function makes another extractor; then as `anew`.
    """

    refuse = "refuse"
    nothing = "nothing"
    erase = "erase"
    move = "move-heads"
    more = "heads-with-more"
    influential = "heads-on-influential"
    anew = "heads-anew"
    retrain = "train-extractor"
    technique = "technique"

    @property
    def makes_extractor(self) -> bool:
        """Whether another extractor takes the place of the present one."""
        return self in (Action.retrain, Action.technique)

    @property
    def fits_anew(self) -> bool:
        """Whether all retained records are embedded again, and the heads fitted on them from scratch."""
        return self is Action.anew or self.makes_extractor

    @property
    def moves_heads(self) -> bool:
        """Whether heads move from where they are to the optimum on other records, and are not fitted from scratch."""
        return self in (Action.move, Action.more)


@dataclass(frozen=True)
class Case:
    """All that the decision depends on: what is asked for, of which records, in which state.

    Attributes
    ----------
    policy, refit : str
        What the caller wants for core records, and what heads are to stand on.
    records, core, influential : bool
        Whether the model holds some of the records asked for, some that are core, some that shape a head.
    left : bool
        Whether some were forgotten or replaced before, and the extractor was trained on them.
    added : bool
        Whether records arrive.
    on_influential : bool
        Whether the heads stand on influential records alone now, and hold no features of the others.
    """

    policy: str
    refit: str
    records: bool
    core: bool
    influential: bool
    left: bool
    added: bool
    on_influential: bool


def decide(case: Case) -> Action:
    """The action of the first line that holds."""
    by_policy, some = case.policy, case.records or case.added
    cheaply = case.refit == INFLUENTIAL and (case.influential or case.on_influential)
    table = (
        (by_policy == RETRAIN and (case.core or case.left), Action.retrain),
        (by_policy == TECHNIQUE and case.core, Action.technique),
        (by_policy == REFUSE and case.core, Action.refuse),
        (not some, Action.nothing),
        (case.added and case.on_influential, Action.anew),
        (case.added, Action.more),
        (cheaply, Action.influential),
        (case.on_influential, Action.anew),
        (case.influential, Action.move),
        (True, Action.erase),
    )
    return next(action for holds, action in table if holds)


PROMISE = {
    Action.nothing: Guarantee.untouched,
    Action.erase: Guarantee.untouched,
    Action.move: Guarantee.refit,
    Action.more: Guarantee.refit,
    Action.anew: Guarantee.refit,
    Action.retrain: Guarantee.retrain,
    Action.influential: Guarantee.approximate,
    Action.technique: Guarantee.approximate,
}


def promise(action: Action, case: Case) -> Guarantee:
    """What an action comes to: as in PROMISE, unless something of the records stays in the model after it."""
    stays_in_extractor = (case.core or case.left) and action is not Action.retrain
    stays_in_heads = action is Action.nothing and case.on_influential  # which no fit on all retained records gives
    return Guarantee.approximate if stays_in_extractor or stays_in_heads else PROMISE[action]
