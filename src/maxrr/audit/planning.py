"""How many shadow models an audit should have, decided before the audited model is looked at.

Looking at the finding and then training more models until it suits makes any p-value worthless. So the number comes
from a pilot: some models with the records and some without, from seeds that no audit uses. How far apart the deciding
attack puts the two gives the power to be expected of any number of models.
"""

import time
from dataclasses import dataclass

import numpy as np

from maxrr.audit.auditing import here, labels_of
from maxrr.audit.case import check_trains, make_case, working_copy
from maxrr.audit.findings import ALPHA, FEWEST, WORTH, oddest
from maxrr.audit.findings import apart as apart_
from maxrr.audit.scores import Evidence, Signals
from maxrr.audit.shadows import AT_ONCE, BEFORE, KEPT, RETRAINED, ModelProgress, ShadowCounts, Shadows
from maxrr.data import Dataset
from maxrr.nets.inputs import chosen_device, device_on
from maxrr.nets.training_function import OwnTraining
from maxrr.parallel import EngineLike, cores, engine_from
from maxrr.plain_text import Shown, duration
from maxrr.progress import Progress
from maxrr.unlearning import MaxRR, Receipt

PILOT = 24
OFFERED = (32, 64, 100, 164, 256)
DRAWS = 20_000
MARGIN = 0.1  # a pilot is small, and a power that is just enough is found too small every other time


@dataclass(frozen=True)
class AuditPlan(Shown):
    """What audits of a request can be expected to find.

    Attributes
    ----------
    records : int
        How many records were forgotten.
    apart : tuple of float
        By how many standard deviations of retrained models those that kept the records stand out in the pilot: in their
        mean score, and record by record.
    power : dict
        By number of shadow models, how often an audit would find a model that kept the records.
    networks : dict
        By number of shadow models, how many networks are trained for it.
    seconds : dict
        By number of shadow models, about how long that takes, going by how long the pilot took.
    """

    records: int
    apart: tuple[float, float]
    power: dict[int, float]
    networks: dict[int, int]
    seconds: dict[int, float]

    @property
    def shadows(self) -> int | None:
        """The smallest number of shadow models with enough expected power; None where none of these is enough."""
        return next((count for count, power in self.power.items() if power >= WORTH + MARGIN), None)

    def __str__(self) -> str:
        found = "; ".join(f"{count}: {power:.0%}" for count, power in self.power.items())
        said = f"{self.shadows} shadow models" if self.shadows else "none of these numbers promises enough power"
        return f"{said} (power by shadow models: {found})"


def plan_audit(
    model: MaxRR, receipt: Receipt, forgotten: Dataset, test: Dataset, *, pilot: int = PILOT,
    device: str | None = None, progress: Progress | None = None, engine: EngineLike = None,
) -> AuditPlan:  # fmt: skip
    """Find how many shadow models an audit of this receipt needs. The audited model itself is not looked at.

    Parameters
    ----------
    model, receipt, forgotten, test
        As in `audit`.
    pilot : int
        How many models to train for the plan, 8 or more, half of them with the records. No audit uses them.
    device, progress, engine : optional
        As in `audit`.

    Returns
    -------
    AuditPlan
        The expected power, networks and seconds for several numbers of shadow models.

    Raises
    ------
    DataError
        Model, receipt and records do not belong together.
    ValueError
        The pilot is too small.
    """
    if pilot < 8:
        raise ValueError(f"a pilot takes 8 models or more, not {pilot}")
    started = time.perf_counter()
    case = make_case(working_copy(model), receipt, forgotten, test)
    chosen = engine_from(engine)
    place = device_on(chosen, device)
    maker = Shadows(case, here(place), None, ModelProgress(progress, pilot))
    counts = ShadowCounts(pilot // 2, pilot - pilot // 2, pilot)
    if chosen is not None:
        maker.prepare(chosen, place, counts.wanted(case, pilot=True))
    views = counts.make(maker, pilot=True)
    labels = labels_of(case)
    seen = {kind: [Signals.of(view, labels) for view in of_kind] for kind, of_kind in views.items()}
    apart = separation(Evidence(seen[KEPT if case.touches_core else BEFORE], seen[RETRAINED]))
    offered = {count: ShadowCounts.of(count, case.touches_core) for count in OFFERED}
    return AuditPlan(
        len(case.forgotten), apart,
        {count: expected_power(apart, one.retrained) for count, one in offered.items()},
        {count: one.networks for count, one in offered.items()},
        {count: (time.perf_counter() - started) * one.networks / pilot for count, one in offered.items()},
    )  # fmt: skip


def separation(evidence: Evidence) -> tuple[float, float]:
    """How far models that remember stand out among retrained ones, in standard deviations of these (`apart`).

    In units of few models, so that it is on the side of too much, the more so for few records. Where what gives records
    away is spread thin over many, LiRA learns from the more models of an audit which of them to listen to.
    """
    found = [
        [values[0] for values in apart_(evidence.scores("lira", model, number))]
        for number, model in enumerate(evidence.remembering)
    ]
    mean, length = np.median(found, axis=0).tolist()
    return mean, length


def expected_power(apart: tuple[float, float], retrained: int) -> float:
    """How often a model so far apart is among the oddest, if all that models differ by is normal.

    >>> expected_power((0.0, 0.0), 19), expected_power((9.0, 0.0), 19)
    (0.05, 1.0)
    """
    if retrained < FEWEST:
        return 0.0
    allowed = int(ALPHA * (retrained + 1) + 1e-9)  # ranks from the top that are found
    mean, length = np.random.default_rng(0).normal(size=(2, DRAWS, 1 + retrained))
    mean[:, 0] += apart[0]
    length[:, 0] += apart[1]
    odd = oddest(mean, length)
    bar = np.partition(odd[:, 1:], retrained - allowed, axis=1)[:, retrained - allowed]
    return round(float(np.mean(odd[:, 0] >= bar)), 2)


# How many models an audit trains, and about how long that takes: said before it begins.


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
