"""Which core: chosen on records that no model was trained on, then reported once on the test records.

`frontier` compares cores on the test records, so the best of them is flattered. Here it goes in four steps:

1. *Split.* A sixth of the training records, drawn at random, is for validation. All else sees only the other five
   sixths, of which a core is a sixth or a third.
2. *Ranking.* A fresh one of these five sixths, as long as the library's default.
3. *Choice*, on the validation records: several middles, the paper's core, and others.
4. *Report*, on the test records, with fresh seeds, three times as many: the chosen middle, `frequency`, `hash` and the
   better of the other ways to choose.

What is chosen, and what follows for the default, is the rule in `core_rule`. The choice is made on the profile's own
data; other data only report, with what was chosen there.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from maxrr.core import FrequencyCore
from maxrr.nets.seeding import stream
from maxrr.paper.core_rule import LIBRARYS, MIDDLE, SHARES, Found, chosen, leads, middle_name, objections
from maxrr.paper.frontier import compare_core, describe_core
from maxrr.paper.lab import WORK, Lab
from maxrr.paper.results import Json
from maxrr.paper.selectors import Selector, forgetting, frequency, hashed, mixed
from maxrr.paper.stacking import extractors_on

PART = "core-choice"
STREAM = 12  # below the seed: those of the stages, and who is for validation
CHOOSING, SCORING, REPORTING = range(3)
VALIDATION = 6  # a record in so many
SIZES = {"a sixth": 6, "a third": 3}  # of the records: a core is one in so many
MORE = 3  # times as many models in the report

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
            replace(within, seed=seed_of(lab, CHOOSING), test=lab.training.select(held)),
            replace(within, seed=seed_of(lab, SCORING), test=lab.training.select(held)),
            replace(within, seed=seed_of(lab, REPORTING), profile=more),
        )

    def cores(self, names: Mapping[str, Selector], k: int) -> dict[str, Ids]:
        """These cores of this size."""
        return {
            name: selector(self.scoring if selector is forgetting else self.choosing, k)
            for name, selector in names.items()
        }


def seed_of(lab: Lab, stage: int) -> int:
    """The seed that all seeds of a stage come from."""
    return int(stream(lab.seed, STREAM, stage).generate_state(1, np.uint64)[0])


def measure(lab: Lab) -> Json:
    """Choose on the validation records, unless that was done on the profile's own data; report on the test records."""
    results, stages = lab.results(PART), Stages.of(lab)
    records, at_home = len(stages.choosing.training), results.path.stem == PART
    sizes = {words: records // one_in for words, one_in in SIZES.items()}
    elsewhere = None if at_home else results.piece("choice", lambda: carried_over(lab))
    ranking = results.piece("ranking", lambda: counted(stages.choosing))
    validation = {
        words: results.piece(
            f"validation, {words}",
            lambda k=k: measure_cores(stages.choosing, stages.cores(candidates(), k), f"validation-{k}"),  # type: ignore[misc]
        )
        for words, k in sizes.items()
        if at_home
    }
    choice = elsewhere or chosen(validation)
    reported = {
        words: results.piece(
            f"test, {words}",
            lambda words=words, k=k: measure_cores(  # type: ignore[misc]
                stages.reporting, stages.cores(contenders(choice, words), k), f"test-{k}"
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
        "differences": differences, "objections": against, "said": said(choice, against, at_home),
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


def counted(lab: Lab) -> Json:
    """How many records were influential in how many runs of the ranking."""
    counts = np.bincount(lab.ranking.frequency(), minlength=len(lab.ranking.seeds) + 1)
    return {"count_by_number_of_runs": counts.tolist()}


def measure_cores(lab: Lab, cores: Mapping[str, Ids], piece: str) -> Json:
    """Accuracy and costs of models with each of these cores, the same seeds for all."""
    seeds = lab.seeds(lab.profile.trials)
    features = lab.embedded(extractors_on(lab, list(cores.values()), seeds, piece))
    heads = list(lab.heads(features, [None] * len(features)))
    found = {}
    for number, (name, core) in enumerate(cores.items()):
        own = slice(number * len(seeds), (number + 1) * len(seeds))
        found[name] = describe_core(lab, core, features[own], heads[own])
    return found


# Written


def carried_over(lab: Lab) -> Json:
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


def said(choice: Json, against: list[str], at_home: bool) -> list[str]:
    """What came out, in sentences."""
    where = "Chosen on the validation records" if at_home else "Chosen on other data"
    first = f"{where}: the middle at {choice['share']:g} of the runs, {choice['size']} of the records."
    return [first, f"Against it as the default: {'; '.join(against) or 'nothing'}."]


def rows(found: Mapping[str, Found], sizes: Mapping[str, int]) -> dict[str, Json]:
    """A row a core, a column a quantity."""
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
