"""Which core to choose: small cores tried on a part of the records, before a model is fitted on all.

No number of a model should depend on records that could be forgotten for nothing. So only those are looked at that a
hash makes part of the sample; a fifth of them is set aside, and accuracy is measured on these alone. Cores of one key
lie within each other: a sample that is drawn with the key of the core to come is core before any other record is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t

from maxrr.core import Frozen, HashCore
from maxrr.data import Dataset
from maxrr.data.fields import shapes
from maxrr.errors import DataError
from maxrr.nets import split
from maxrr.nets.naming import suited
from maxrr.nets.networks import NoNetwork
from maxrr.nets.public_weights import SEED
from maxrr.nets.seeding import network_from
from maxrr.progress import Progress
from maxrr.unlearning.given_records import classified_rightly
from maxrr.unlearning.model import MaxRR
from maxrr.unlearning.state import KINDS, people_by_kind

SHARES = (0.0, 0.05, 0.1, 0.2)
MOST = 5_000  # records of the sample, if nothing else is asked for
ASIDE = 0.2  # of the sample
NEAR = 0.01  # of accuracy: cores that are no worse than this beside the best are as good


@dataclass(frozen=True)
class Trial:
    """What a core of a size gave on the sample, and would cost with all records.

    Attributes
    ----------
    share
        Of the records, or people, that are core; 0 where the network is used as it was given.
    accuracy, low, high
        On the records that were set aside, with an interval of 95 %: Wilson's, wider where the records of a person are
        right or wrong together.
    influential
        The share of the records outside the core that shaped a head.
    retrain
        About how many seconds it takes to forget a core record exactly, of all records.
    seconds
        About how many seconds the request of one person takes on average, of all records.
    """

    share: float
    accuracy: float
    low: float
    high: float
    influential: float
    retrain: float
    seconds: float


@dataclass(frozen=True)
class Advice:
    """Cores that were tried on a sample, and which to choose.

    Attributes
    ----------
    trials
        One for each share, in this order.
    best
        The smallest core whose accuracy is within 0.01 of the best.
    sample, tested
        How many records were looked at, and how many of these were set aside.
    """

    trials: tuple[Trial, ...]
    best: Trial
    sample: int
    tested: int

    @property
    def words(self) -> str:
        """The recommendation, in a sentence."""
        if not self.best.share:
            return "no core: the network as it is (Frozen, --core frozen) is as accurate, and every request is exact"
        share = f"{self.best.share:g}"
        return f"a core of {share} of the records (HashCore({share}), --core {share})"


def advise(
    model: MaxRR, dataset: Dataset, *, shares: Sequence[float] = SHARES, records: int = MOST,
    key: bytes | str = "advise", progress: Progress | None = None,
) -> Advice:  # fmt: skip
    """Try cores of several sizes on a sample of the records, and say which to choose.

    Parameters
    ----------
    model : MaxRR
        A model as it would be fitted; its core is not looked at.
    dataset : Dataset
        The records.
    shares : sequence of float
        Sizes of cores: 0 is the network as it was given, where training starts from given weights.
    records : int
        About how many records to look at, 5,000 by default.
    key : bytes or str
        What the sample is drawn with; best the key of the core to come.
    progress : optional
        Called as the work goes on.

    Returns
    -------
    Advice
        What came of each size, and which to choose.

    Raises
    ------
    DataError
        The sample is too small, or no size can be tried.
    """
    if isinstance(model.network, NoNetwork):
        raise DataError("no network is trained on features: no record is core, and every request is exact")
    wanted = [share for share in shares if share or model.start != SEED]
    if not wanted:
        raise DataError("without given weights a core of 0 leaves nothing to learn from: name other sizes of the core")
    sample = part_of(dataset, min(1.0, records / len(dataset)), key)
    test = part_of(sample, ASIDE, "set aside")  # by other hashes than those that the sample was drawn by
    training = sample.without(test.ids)
    if len(np.unique(training.labels)) < len(np.unique(dataset.labels)) or not len(test):
        raise DataError(f"a sample of {len(sample):,} records lacks some of the classes: look at more records")
    trials = tuple(try_core(model, share, training, test, len(dataset), progress) for share in wanted)
    most = max(trial.accuracy for trial in trials)
    best = min((trial for trial in trials if trial.accuracy >= most - NEAR), key=lambda trial: trial.share)
    return Advice(trials, best, len(sample), len(test))


def part_of(dataset: Dataset, share: float, key: bytes | str) -> Dataset:
    """Select about this share of the records by a hash of the person, or of the id where nobody is named."""
    return dataset.select(dataset.ids[HashCore(share, key).is_core(dataset.ids, dataset.subjects)])


def try_core(
    model: MaxRR, share: float, training: Dataset, test: Dataset, records: int, progress: Progress | None
) -> Trial:
    """Fit a model with a core of this size on the sample; work out what requests would cost with so many records."""
    settings = model.get_params(deep=False) | {"core": HashCore(share, "tried") if share else Frozen()}
    if not share:
        shape, classes = shapes(training.inputs.dtype, training.shape), len(training.class_names)
        settings |= {"network": split(network_from(suited(model.network, shape, classes)))[0], "train": None}
    found = MaxRR(**settings).fit(training, progress=progress)
    pace, heads = found._fitted.durations, len(found.heads_.certificate_)
    outside = len(found.ids_of("influential")) + len(found.ids_of("free"))
    influential = len(found.ids_of("influential")) / max(outside, 1)
    growth = records / len(training)
    anew = pace.expected(1, heads, share * records, records, anew=True) + (growth - 1.0) * heads * pace.head
    moved = growth * pace.expected(
        1, heads, 0, 0, False, found._fitted.blueprint.width(found.heads_.n_features_in_, records)
    )
    people = people_by_kind(found._fitted) or {kind: len(found.ids_of(kind)) for kind in KINDS}
    shares = {kind: number / sum(people.values()) for kind, number in people.items()}
    right = classified_rightly(found._fitted, test, None)[1]
    return Trial(
        share, float(right.mean()), *interval(right, test.subjects), influential, anew if share else 0.0,
        shares["core"] * anew + shares["influential"] * moved,
    )  # fmt: skip


def interval(right: NDArray[np.bool_], people: NDArray[Any] | None) -> tuple[float, float]:
    """Wilson's interval of 95 % for a share, of as many records as tell as much as people whose records are alike do.

    >>> [round(end, 3) for end in interval(np.arange(100) < 80, None)]
    [0.709, 0.868]
    >>> [round(end, 3) for end in interval(np.arange(100) < 80, np.arange(100) // 10)]
    [0.427, 0.955]
    """
    whose = np.arange(len(right)) if people is None else np.unique(people, return_inverse=True)[1]
    share, records, persons = float(right.mean()), len(right), int(whose.max()) + 1
    if persons < 2:
        return 0.0, 1.0
    apart = np.bincount(whose, weights=right - share)  # of each person: how many more are right than of all
    variance, alone = persons / (persons - 1) * float(apart @ apart) / records**2, share * (1.0 - share) / records
    count = min(float(records), share * (1.0 - share) / variance) if alone and variance else float(persons)
    far = float(t.ppf(0.975, persons - 1)) ** 2 / count
    middle, half = share + far / 2, math.sqrt(far * share * (1.0 - share) + far**2 / 4)
    return max(0.0, (middle - half) / (1 + far)), min(1.0, (middle + half) / (1 + far))
