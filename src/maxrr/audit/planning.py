"""How many shadow models an audit should have, decided before the audited model is looked at.

Looking at the finding and then training more models until it suits makes any p-value worthless. So the number comes
from a pilot: some models with the records and some without, from seeds that no audit uses. How far apart the deciding
attack puts the two gives the power to be expected of any number of models.
"""

import time
from dataclasses import dataclass

import numpy as np

from maxrr.audit.attacks import Evidence
from maxrr.audit.auditing import evidence_of
from maxrr.audit.case import make_case, working_copy
from maxrr.audit.findings import ALPHA, FEWEST, WORTH, apart, oddest
from maxrr.audit.shadows import LEAST, Shadows, shadow_models, with_and_without
from maxrr.data import Dataset
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.plain_text import Shown
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
    power : dict
        By number of shadow models, how often an audit would find a model that kept the records.
    seconds : dict
        By number of shadow models, about how long that takes, going by how long the pilot took.
    """

    power: dict[int, float]
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
        The expected power and seconds for several numbers of shadow models.

    Raises
    ------
    DataError
        Model, receipt and records do not belong together.
    ValueError
        The pilot is too small.
    """
    if pilot < LEAST:
        raise ValueError(f"a pilot takes {LEAST} models or more, not {pilot}")
    started = time.perf_counter()
    case = make_case(working_copy(model), receipt, forgotten, test)
    maker = Shadows(case, device, None, progress, engine_from(engine))
    views = maker.views(shadow_models(case, pilot // 2, pilot - pilot // 2, "pilot "))
    found = separation(evidence_of(case, views)[0])
    power = {shadows: expected_power(found, with_and_without(shadows)[1]) for shadows in OFFERED}
    pace = (time.perf_counter() - started) / pilot
    return AuditPlan(power, {shadows: pace * shadows for shadows in OFFERED})


def separation(evidence: Evidence) -> tuple[float, float]:
    """How far models that remember stand out among retrained ones, in standard deviations of these (`apart`).

    In units of few models, so that it is on the side of too much, the more so for few records. Where what gives records
    away is spread thin over many, LiRA learns from the more models of an audit which of them to listen to.
    """
    found = [
        [values[0] for values in apart(evidence.scores("lira", model, number))]
        for number, model in enumerate(evidence.remembering)
    ]
    mean, length = np.median(found, axis=0).tolist()
    return mean, length


def expected_power(stands_out: tuple[float, float], retrained: int) -> float:
    """How often a model so far apart is among the oddest, if all that models differ by is normal.

    >>> expected_power((0.0, 0.0), 19), expected_power((9.0, 0.0), 19)
    (0.05, 1.0)
    """
    if retrained < FEWEST:
        return 0.0
    allowed = int(ALPHA * (retrained + 1) + 1e-9)  # ranks from the top that are found
    mean, length = np.random.default_rng(0).normal(size=(2, DRAWS, 1 + retrained))
    mean[:, 0] += stands_out[0]
    length[:, 0] += stands_out[1]
    odd = oddest(mean, length)
    bar = np.partition(odd[:, 1:], retrained - allowed, axis=1)[:, retrained - allowed]
    return round(float(np.mean(odd[:, 0] >= bar)), 2)
