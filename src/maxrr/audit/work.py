"""How many models an audit trains, and about how long that takes: said before it begins."""

from dataclasses import dataclass

from maxrr.audit.case import check_trains
from maxrr.audit.shadow_counts import ShadowCounts
from maxrr.audit.shadows import AT_ONCE
from maxrr.nets.own_training import OwnTraining
from maxrr.nets.records import chosen_device
from maxrr.parallel import cores
from maxrr.plain_text import Shown, duration
from maxrr.unlearning import MaxRR, Receipt

HEADS = 1.5  # times that all heads are solved for a shadow model: with the records, and moved to be without


@dataclass(frozen=True)
class AuditWork(Shown):
    """What an audit is going to do.

    Attributes
    ----------
    with_records, retrained : int
        How many shadow models are trained with the records, and without them.
    again : int
        How many models are made again with the recorded seed, to compare with.
    seconds : float or None
        About how long it takes, going by how long `fit` took. None where the networks are to be trained on another kind
        of device than the model was.
    """

    with_records: int
    retrained: int
    again: int
    seconds: float | None

    @property
    def networks(self) -> int:
        """How many networks are trained in all: what `progress` counts to."""
        return self.with_records + self.retrained + self.again

    def __str__(self) -> str:
        about = "" if self.seconds is None else f", in about {duration(self.seconds)}"
        return (
            f"Training {self.networks} networks{about}: {self.with_records} with the records, {self.retrained} "
            f"without, and {self.again} again with the recorded seed."
        )


def work_of_audit(model: MaxRR, receipt: Receipt, *, shadows: int = 64, device: str | None = None) -> AuditWork:
    """Say how much work an audit is. Nothing is trained.

    Parameters
    ----------
    model, receipt
        As in `audit`.
    shadows : int
        How many shadow models it is to have.
    device : optional
        Where networks are to be trained, as in `audit`.

    Returns
    -------
    AuditWork
        How many networks will be trained, and about how long that takes.

    Raises
    ------
    DataError
        The extractor is frozen, so that an audit trains nothing.
    """
    check_trains(model._fitted)
    counts = ShadowCounts.of(shadows, bool(receipt.core_tombstones))
    again = counts.networks - counts.with_records - counts.retrained
    fitted, place = model._fitted, chosen_device(device)
    if (place.type == "cpu") != (fitted.blueprint.environment.device == "cpu"):
        return AuditWork(counts.with_records, counts.retrained, again, None)
    records, core = int(fitted.records.alive.sum()), len(fitted.choice.ids)
    trained = (counts.networks - 1) * core + records  # the last of them is trained on all records, core or not
    together = cores() if place.type == "cpu" else AT_ONCE
    if isinstance(fitted.blueprint.recipe, OwnTraining):
        together = 1  # an own function is run for one network after the other
    pace = fitted.durations
    seen = pace.embed * records + HEADS * pace.head * len(fitted.heads.certificate_)
    return AuditWork(
        counts.with_records, counts.retrained, again, pace.train * trained / together + counts.networks * seen
    )
