"""Which core: chosen on records that no model was trained on, then reported once on the test records.

`frontier` compares cores on the test records, so the best of them is flattered. Here it goes in four steps:

1. *Split.* A sixth of the training records, drawn at random, is for validation. All else sees only the other five
   sixths, of which a core is a sixth or a third.
2. *Ranking.* A fresh one of these five sixths, as long as the library's default.
3. *Choice*, on the validation records: several middles, the paper's core, and others.
4. *Report*, on the test records, with fresh seeds, three times as many: the chosen middle, `frequency`, `hash` and the
   better of the other ways to choose.

The choice is made on the profile's own data; other data only report, with what was chosen there. What is chosen, and
what follows for the default, is this rule, which was written down before anything of it was measured:

*Choice*, by accuracies on the validation records. The middle is taken around several shares of the ranking's runs. It
stays at one half, unless another share is more accurate by more than two standard errors, paired by seed, over both
sizes together; then it is the most accurate of those. The size is the smaller one, unless the larger is more accurate
by more than a point. Of the ways to choose that the library does not have, `mixed` and `forgetting`, the more accurate
one at each size goes on.

*Report*, on the test records. Differences between the middle and the others in accuracy and in the share of free
records are paired by seed, and their p-values corrected by Holm over all of them: both sizes, three others, two
quantities. Significant is a corrected p below 0.05. The middle stays what a core is by default if, at the chosen size,

- on the data that it was chosen on no other is significantly more accurate, and the middle beats both `frequency` and
  `hash`: it is significantly better in accuracy and gives away no more than ten points of free records, or it is
  significantly better in free records and gives away no more than half a point of accuracy;
- on other data no other is significantly more accurate and by more than half a point.

If this fails, the default becomes `frequency` or `hash`, whichever was more accurate on the validation records at the
chosen size.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.comparison import difference, holm
from lab.frontier import compare_core, describe_core
from lab.lab import WORK, Lab
from lab.results import Json
from lab.selectors import Selector, forgetting, frequency, hashed, mixed
from lab.stacking import train_on_cores
from maxrr.core import FrequencyCore
from maxrr.nets.seeding import stream

PART = "core-choice"
STREAM = 12  # below the seed: those of the stages, and who is for validation
CHOOSING, SCORING, REPORTING = range(3)
VALIDATION = 6  # a record in so many
SIZES = {"a sixth": 6, "a third": 3}  # of the records: a core is one in so many
MORE = 3  # times as many models in the report
USUAL = 0.5
SHARES = (0.3, 0.4, USUAL, 0.6, 0.7)
MIDDLE, LIBRARYS, OTHERS = "middle", ("frequency", "hash"), ("mixed", "forgetting")
LEVEL = 0.05  # of a corrected p-value
POINT, HALF_A_POINT, TEN_POINTS = 0.01, 0.005, 0.1

Found = Mapping[str, Json]
"""What `frontier.describe_core` says of each core, by its name: for every quantity the values of all seeds."""

Ids = NDArray[Any]


@dataclass(frozen=True)
class Stages:
    """Laboratories inside the laboratory, each with seeds of its own; all train on the same five sixths.

    Attributes
    ----------
    choosing
        Its test records are those for validation, and its ranking is that of all cores.
    scoring
        The same with other seeds: networks that forgetting events are counted on are not among those that are judged.
    reporting
        Its test records are the test records.
    """

    choosing: Lab
    scoring: Lab
    reporting: Lab

    @classmethod
    def of(cls, lab: Lab) -> "Stages":
        """The stages of a laboratory."""
        held = lab.draw(lab.training.ids, len(lab.training) // VALIDATION, STREAM)
        profile = replace(lab.profile, ranked=min(lab.profile.ranked, FrequencyCore.runs))
        within = replace(lab, profile=profile, training=lab.training.without(held), out=lab.out / WORK / PART)
        more = replace(profile, trials=MORE * profile.trials)
        return cls(
            replace(within, seed=seed_of(lab, STREAM, CHOOSING), test=lab.training.select(held)),
            replace(within, seed=seed_of(lab, STREAM, SCORING), test=lab.training.select(held)),
            replace(within, seed=seed_of(lab, STREAM, REPORTING), profile=more),
        )

    def cores(self, names: Mapping[str, Selector], k: int) -> dict[str, Ids]:
        """These cores of this size."""
        return {
            name: selector(self.scoring if selector is forgetting else self.choosing, k)
            for name, selector in names.items()
        }


def seed_of(lab: Lab, *purpose: int) -> int:
    """The seed that all seeds for a purpose come from."""
    return int(stream(lab.seed, *purpose).generate_state(1, np.uint64)[0])


def measure(lab: Lab) -> Json:
    """Choose on the validation records, unless that was done on the profile's own data; report on the test records."""
    results, stages = lab.results(PART), Stages.of(lab)
    records, at_home = len(stages.choosing.training), results.path.stem == PART
    sizes = {words: records // one_in for words, one_in in SIZES.items()}
    elsewhere = None if at_home else results.piece("choice", lambda: read_choice(lab))
    ranking = results.piece("ranking", lambda: count_by_runs(stages.choosing))
    validation = {
        words: results.piece(
            f"validation, {words}",
            lambda k=k: measure_cores(stages.choosing, stages.cores(candidates(), k)),  # type: ignore[misc]
        )
        for words, k in sizes.items()
        if at_home
    }
    choice = elsewhere or choose(validation)
    reported = {
        words: results.piece(
            f"test, {words}",
            lambda words=words, k=k: measure_cores(  # type: ignore[misc]
                stages.reporting, stages.cores(contenders(choice, words), k)
            ),
        )
        for words, k in sizes.items()
    }
    differences = leads(reported, sizes)
    against = objections(differences, sizes[choice["size"]], at_home)
    return results.finish({
        "part": PART, "title": "A core chosen on validation records", "runs": stages.reporting.profile.trials,
        "records": records, "ranking": ranking["count_by_number_of_runs"], "choice": choice,
        "validation": rows(validation, sizes), "cells": rows(reported, sizes), "points": points(reported, sizes),
        "differences": differences, "objections": against, "said": sentences(choice, against, at_home),
    })  # fmt: skip


# The cores


def candidates() -> dict[str, Selector]:
    """All that the validation records see."""
    return {
        "frequency": frequency, "hash": hashed, "mixed": mixed, "forgetting": forgetting,
        **{middle_name(share): around(share) for share in SHARES},
    }  # fmt: skip


def contenders(choice: Json, size: str) -> dict[str, Selector]:
    """Those that the test records see: the chosen middle first."""
    known = candidates()
    return {MIDDLE: around(choice["share"]), **{name: known[name] for name in (*LIBRARYS, choice["others"][size])}}


def around(share: float) -> Selector:
    """The records nearest to this share of the runs."""
    return lambda lab, k: lab.ranking.nearest(share, k)


# Measured


def count_by_runs(lab: Lab) -> Json:
    """How many records were influential in how many runs of the ranking."""
    counts = np.bincount(lab.ranking.frequency(), minlength=len(lab.ranking.seeds) + 1)
    return {"count_by_number_of_runs": counts.tolist()}


def measure_cores(lab: Lab, cores: Mapping[str, Ids]) -> Json:
    """Accuracy and costs of models with each of these cores, the same seeds for all."""
    seeds = lab.seeds(lab.profile.trials)
    features = lab.embed(train_on_cores(lab, list(cores.values()), seeds))
    solved = list(lab.fit_heads(features, [None] * len(features)))
    found = {}
    for number, (name, core) in enumerate(cores.items()):
        own = slice(number * len(seeds), (number + 1) * len(seeds))
        found[name] = describe_core(lab, core, features[own], solved[own])
    return found


# The rule


def middle_name(share: float) -> str:
    """What the middle around a share of the runs is called."""
    return f"{MIDDLE} at {share:g}"


def choose(validation: Mapping[str, Found]) -> Json:
    """Share, size and other ways by the rule, with nothing but accuracies on the validation records."""
    share = choose_share({share: over_sizes(validation, middle_name(share)) for share in SHARES})
    mean = {size: {name: fmean(of["accuracy"]) for name, of in found.items()} for size, found in validation.items()}
    small, large = validation
    gain = mean[large][middle_name(share)] - mean[small][middle_name(share)]
    return {
        "share": share, "size": large if gain > POINT else small,
        "others": {size: max(OTHERS, key=lambda name: mean[size][name]) for size in validation},
        "best": {size: max(found, key=lambda name: found[name]) for size, found in mean.items()},
        "fallback": {size: max(LIBRARYS, key=lambda name: mean[size][name]) for size in validation},
    }  # fmt: skip


def choose_share(accuracies: Mapping[float, list[float]]) -> float:
    """The usual one, unless others are clearly better; then the best of these. Accuracies are paired by seed."""
    usual = accuracies[USUAL]
    if len(usual) < 2:  # one seed cannot tell
        return USUAL
    better = {}
    for share, values in accuracies.items():
        found = difference(values, usual)
        if found.mean > 2.0 * found.stderr:
            better[share] = found.mean
    return max(better, key=lambda share: better[share], default=USUAL)


def over_sizes(validation: Mapping[str, Found], name: str) -> list[float]:
    """The accuracy of a core for each seed, a mean over the sizes."""
    return [fmean(each) for each in zip(*(found[name]["accuracy"] for found in validation.values()), strict=True)]


def leads(reported: Mapping[str, Found], sizes: Mapping[str, int]) -> list[Json]:
    """By how much the middle is better than the others, in each quantity; corrected over all of these."""
    found = [
        {
            "k": sizes[size], "over": name, "quantity": quantity,
            **asdict(difference(cores[MIDDLE][quantity], of[quantity])),
        }
        for size, cores in reported.items()
        for name, of in cores.items()
        for quantity in ("accuracy", "free")
        if name != MIDDLE
    ]  # fmt: skip
    return [{**one, "holm": p} for one, p in zip(found, holm([one["p"] for one in found]), strict=True)]


def objections(differences: list[Json], k: int, at_home: bool) -> list[str]:
    """What speaks against the middle as the default, by the rule; nothing if it stays."""
    at_size: dict[str, dict[str, Json]] = {}
    for one in differences:
        if one["k"] == k:
            at_size.setdefault(one["over"], {})[one["quantity"]] = one
    said = []
    for name, of in at_size.items():
        accuracy, free = of["accuracy"], of["free"]
        if accuracy["holm"] < LEVEL and accuracy["mean"] < (0.0 if at_home else -HALF_A_POINT):
            said.append(f"{name} is more accurate")
        elif at_home and name in LIBRARYS and not (
            (is_better(accuracy) and free["mean"] >= -TEN_POINTS)
            or (is_better(free) and accuracy["mean"] >= -HALF_A_POINT)
        ):  # fmt: skip
            said.append(f"it does not beat {name}")
    return said


def is_better(one: Json) -> bool:
    return bool(one["holm"] < LEVEL and one["mean"] > 0.0)


# Written


def read_choice(lab: Lab) -> Json:
    """What was chosen on the profile's own data."""
    path = lab.out / f"{PART}.json"
    try:
        choice: Json = json.loads(path.read_text(encoding="utf-8"))["choice"]
    except (OSError, ValueError, LookupError):
        raise ValueError(
            f"the core is chosen on the profile's own data, and {path} does not say which it was: measure {PART} "
            "there first, without --data"
        ) from None
    return choice


def sentences(choice: Json, against: list[str], at_home: bool) -> list[str]:
    """What came out, in sentences."""
    where = "Chosen on the validation records" if at_home else "Chosen on other data"
    first = f"{where}: the middle at {choice['share']:g} of the runs, {choice['size']} of the records."
    return [first, f"Against it as the default: {'; '.join(against) or 'nothing'}."]


def rows(found: Mapping[str, Found], sizes: Mapping[str, int]) -> dict[str, Json]:
    """One row per core, one column per quantity."""
    return {
        f"{name}, {sizes[size]:,}": {quantity: cell.to_json() for quantity, cell in compare_core(of).items()}
        for size, cores in found.items()
        for name, of in cores.items()
    }


def points(found: Mapping[str, Found], sizes: Mapping[str, int]) -> list[Json]:
    """The same for the figure."""
    return [
        {
            "selector": name, "k": sizes[size], "stderr": compare_core(of)["accuracy"].stderr,
            **{quantity: cell.mean for quantity, cell in compare_core(of).items()},
        }
        for size, cores in found.items()
        for name, of in cores.items()
    ]  # fmt: skip
