"""Whether the middle leads the paper's core under longer trainings, too: a test of equivalence.

Cores of the profile's larger size, the middle and the most frequent, from three rankings of their own seeds, each as
long as the library's default. Networks of the same seeds see each of these cores, and are looked at after 1, 2 and 4
times the profile's epochs (18, 36 and 72) of one training at a constant rate. Heads are fitted to all records.

The rule, written down before anything of it was measured:

*Lead.* Accuracy on the test records with the middle less that with the most frequent, paired by seed and ranking. For
each seed the three rankings are averaged; the 90 % interval of the mean over seeds (Student's t) is the answer's. So
the error is that of seeds, given these three rankings. How much rankings differ is told by the mean lead of each.

*Outcome*, at each length of training. Equivalent: the interval lies within 0.2 points around zero (two one-sided tests
at 5 %), and so does the mean lead of every ranking. A lead of one core: all of the interval lies beyond 0.2 points on
its side. Open: neither.

*Default*, decided by the two longer trainings; the shortest is where the lead was first seen, and is only told. If at
both the outcome is equivalent or a lead of the most frequent, and these leave more records free (an interval of the
same kind lies on their side of zero), they become the default. Otherwise the middle stays, and the documentation says
under which training it leads.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from statistics import fmean

import numpy as np

from lab.comparison import difference, equivalence, half_interval
from lab.core_choice import seed_of
from lab.frontier import compare_core, describe_core
from lab.lab import WORK, Lab
from lab.results import Json, Results
from lab.selectors import frequency, middle
from lab.stacking import Networks, train_together
from maxrr.core import FrequencyCore

PART = "core-epochs"
STREAM = 13  # below the seed: those of the models, and of each ranking
RANKINGS = {"ranking 1": 1, "ranking 2": 2, "ranking 3": 3}
LENGTHS = (1, 2, 4)  # times the profile's epochs; all but the first decide
CORES = {"middle": middle, "frequency": frequency}
QUANTITIES = ("accuracy", "free")
MARGIN = 0.002

Found = Mapping[str, Json]
"""What a ranking's models gave: by their epochs and core, for every quantity the values of all seeds."""


def measure(lab: Lab) -> Json:
    """Measure what the file does not have, ranking by ranking."""
    results = lab.results(PART)
    for name in RANKINGS:
        measure_ranking(lab, results, name)
    return summarise(lab, results)


def measure_ranking(lab: Lab, results: Results, name: str) -> Json:
    """Measure the cores of one ranking, unless the file has them."""
    return results.piece(name, lambda: try_cores(lab, RANKINGS[name]))


def try_cores(lab: Lab, number: int) -> Json:
    """Train networks on both cores of a ranking together, and describe them after each length."""
    profile = replace(lab.profile, ranked=min(lab.profile.ranked, FrequencyCore.runs))
    out = lab.out / WORK / f"{PART}-{number}"
    ranked = replace(lab, profile=profile, seed=seed_of(lab, STREAM, number), out=out)
    cores = {name: select(ranked, lab.profile.large) for name, select in CORES.items()}
    seeds = replace(lab, seed=seed_of(lab, STREAM)).seeds(lab.profile.few)
    rows = np.stack([np.sort(lab.training.rows(core)) for core in cores.values() for _ in seeds])
    found: Json = {}

    def look(epoch: int, networks: Networks) -> None:
        if epoch not in lengths(lab):
            return
        features = lab.embed(iter(networks))
        solved = list(lab.fit_heads(features, [None] * len(features)))
        found[str(epoch)] = {
            name: describe_core(lab, core, features[first : first + len(seeds)], solved[first : first + len(seeds)])
            for first, (name, core) in zip(range(0, len(solved), len(seeds)), cores.items(), strict=True)
        }

    train_together(lab, seeds * len(cores), rows, replace(lab.profile.recipe, epochs=max(lengths(lab))), look)
    return found


def lengths(lab: Lab) -> list[int]:
    """Return the epochs after which networks are looked at."""
    return [times * lab.profile.recipe.epochs for times in LENGTHS]


# The rule


def summarise(lab: Lab, results: Results) -> Json:
    """Write the result, once all rankings are there."""
    pieces = results.read()["pieces"]
    found = [pieces[name] for name in RANKINGS]
    leads = {str(epochs): judge([one[str(epochs)] for one in found]) for epochs in lengths(lab)}
    default = decide([leads[str(epochs)] for epochs in lengths(lab)[1:]])
    told = [f"{epochs} epochs: {lead['outcome']}" for epochs, lead in leads.items()]
    return results.finish({
        "part": PART, "title": "Two cores after longer trainings", "runs": lab.profile.few,
        "records": len(lab.training), "leads": leads, "default": default,
        "cells": {f"{name}, {epochs} epochs": row(found, epochs, name) for epochs in leads for name in CORES},
        "said": [f"{'; '.join(told)}.", f"By the rule the default core is: {default}."],
    })  # fmt: skip


def judge(found: Sequence[Found]) -> Json:
    """Return the middle's leads after one length of training, of several rankings, and the outcome."""
    accuracy, free = (lead(found, quantity) for quantity in QUANTITIES)
    outcome: str = equivalence(accuracy["mean"], accuracy["reach"], MARGIN)
    if outcome == "equivalent" and max(map(abs, accuracy["rankings"])) > MARGIN:
        outcome = "open"
    elif outcome == "different":
        outcome = f"{'middle' if accuracy['mean'] > 0.0 else 'frequency'} leads"
    return {"accuracy": accuracy, "free": free, "outcome": outcome}


def lead(found: Sequence[Found], quantity: str) -> Json:
    """Return how far the middle is ahead: over seeds, with half of its interval, and for each ranking."""
    middles, others = (over_rankings([one[name][quantity] for one in found]) for name in CORES)
    over = difference(middles, others)
    rankings = [fmean(one["middle"][quantity]) - fmean(one["frequency"][quantity]) for one in found]
    return {**asdict(over), "reach": half_interval(over.stderr, len(middles)), "rankings": rankings}


def over_rankings(values: Sequence[Sequence[float]]) -> list[float]:
    """Return a mean over the rankings for each seed."""
    return [fmean(each) for each in zip(*values, strict=True)]


def decide(leads: Sequence[Json]) -> str:
    """Return the default that follows from the longer trainings."""
    spared = all(one["free"]["mean"] + one["free"]["reach"] < 0.0 for one in leads)
    kept = all(one["outcome"] in ("equivalent", "frequency leads") for one in leads)
    return "frequency" if spared and kept else "middle"


def row(found: Sequence[Found], epochs: str, name: str) -> Json:
    """Return the cells of a core after one length of training."""
    mine = {quantity: over_rankings([one[epochs][name][quantity] for one in found]) for quantity in QUANTITIES}
    return {quantity: cell.to_json() for quantity, cell in compare_core(mine).items()}
