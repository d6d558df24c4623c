"""Public weights and a small core: how accurate a model is, how many records are free, and what a request costs.

A network starts from weights that were published, is fine-tuned on a hash core, and exact heads are fitted on all
records; beside it the same weights as they are, without a core, and a network trained from scratch with as many steps
whatever its core. At a core of a tenth also four shards with a quarter of the features each, and cores that are chosen
by a ranking.

Constants, not numbers of the records: the recipes below, the scale of features (as the network gives them), and C. C is
chosen once for each start, on the core of a tenth at seed 0: a network is trained on half of it; of the other half five
times a fifth is set aside, heads are fitted on all the others, and of the values in `PENALTIES` the one that is right
most often is taken (the largest of several, which leaves the fewest records influential). No other record is looked at,
and no test record.

Seconds are measured: of one fit, of requests for one record of each kind, and of 5 and 20 records outside the core.
What a request of a random record or person costs is worked out from these and the shares of records of each kind. A
person's records are taken to be drawn at random.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import RidgeClassifier

from lab import public_networks as networks
from lab.comparison import compare
from lab.lab import Lab
from lab.profiles import Profile
from lab.results import Json, OutOfTimeError, Results
from maxrr import LinearSVM, MaxRR
from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.choice import Core
from maxrr.nets import Recipe, embed
from maxrr.unlearning import Receipt, replay

PART = "public-weights"
PUBLIC, SCRATCH = "public weights", "from scratch"
HASH, MIDDLE, FREQUENCY = "hash", "middle", "frequency"
KINDS = ("core", "influential", "free")
PENALTIES = (0.0003, 0.001, 0.003, 0.01, 0.03)  # for features of length 25 or so
SMALL = (1.0, 10.0)  # for those of the network that stands in
TENTH = 0.1
SHARES = (0.0, 0.025, 0.05, 0.2, 0.5, 1.0)  # of the core, beside a tenth
SEEDS = 5
SHARDS = 4
PARTS = 5  # of the records that C is chosen on, each of which is set aside once
RANKED = 5  # runs of a ranking, each on all records
ASKED = (0.025, 0.05, TENTH, 0.4)  # shares of cores of which a record is asked for
PEOPLE = (1, 5, 20)  # records of one person
REPEATS = 5  # requests of one kind, of which the median counts
HEADS = 3.0  # fitting the heads takes about as long as so many times to embed
RIDGE = 1e-3  # of the mean square of a feature times the records
TUNED = Recipe(
    epochs=40,
    batch_size=128,
    lr=2e-3,
    body_lr=5e-4,
    optimiser="adamw",
    weight_decay=0.01,
    schedule="cosine",
    warm_up=0.25,
    label_smoothing=0.1,
    augment=("flip", "shift:4"),
)
EPOCHS = {0.025: 40, 0.05: 40, 0.1: 40, 0.2: 20, 0.5: 11, 1.0: 7}  # larger cores need fewer of them
SCRATCHED = Recipe(
    epochs=40,
    batch_size=512,
    lr=0.3,
    optimiser="sgd",
    weight_decay=5e-4,
    schedule="cosine",
    warm_up=0.2,
    label_smoothing=0.1,
    augment=("flip", "shift:4"),
)


@dataclass(frozen=True)
class Case:
    """What is compared: where training starts, which records are core, in how many shards, and the seed."""

    start: str
    share: float
    seed: int
    shards: int = 1
    core: str = HASH

    @property
    def row(self) -> str:
        """
        >>> Case(PUBLIC, 0.1, 2, shards=4).row, Case(SCRATCH, 0.025, 0).row
        ('public weights, core 10 %, 4 shards', 'from scratch, core 2.5 %')
        """
        kind = f"core {100 * self.share:g} %" if self.core == HASH else f"{self.core} core {100 * self.share:g} %"
        return ", ".join([self.start, kind, *([f"{self.shards} shards"] if self.shards > 1 else [])])

    @property
    def name(self) -> str:
        return f"{self.row}, seed {self.seed}"

    @property
    def timed(self) -> bool:
        """Whether requests are made, and timed: at the first seed of a hash core."""
        return self.seed == 0 and self.core == HASH

    @property
    def asked(self) -> bool:
        """Whether a core record is asked for; elsewhere that takes as long as training, embedding and heads did."""
        return self.timed and self.start == PUBLIC and self.share in ASKED

    @property
    def replayed(self) -> bool:
        """Whether that request is replayed, which trains once more."""
        return self.asked and self.share == TENTH and self.shards == 1


def cases(profile: Profile) -> list[Case]:
    """What is measured, the most important first."""
    usual = share_of(profile)
    small, ends = [Case(PUBLIC, usual, seed) for seed in range(SEEDS)], [Case(PUBLIC, share, 0) for share in (0.0, 1.0)]
    shards = [Case(PUBLIC, usual, seed, SHARDS) for seed in range(SEEDS)]
    if profile.data == "digits":  # a look at whether everything works
        return [*small[:2], *ends, Case(PUBLIC, usual, 0, shards=2), Case(SCRATCH, usual, 0)]
    if profile.data != "cifar-10":  # the far case
        return [small[0], *ends, shards[0], *small[1:3]]
    scratch = [Case(SCRATCH, share, seed) for seed in range(SEEDS) for share in (1.0, 0.5, TENTH)]
    others = [Case(PUBLIC, share, seed) for seed in range(SEEDS) for share in SHARES]
    ranked = [Case(PUBLIC, TENTH, 0, core=core) for core in (MIDDLE, FREQUENCY)]
    first, later = [[case for case in (*others, *scratch) if (case.seed == 0) is now] for now in (True, False)]
    return [*small, *first, shards[0], *later, *shards[1:], *ranked]


def share_of(profile: Profile) -> float:
    """The share of the small core: a tenth, and more of a few digits."""
    return 0.4 if profile.data == "digits" else TENTH


def measure(lab: Lab) -> Json:
    """Measure what the file does not have, case by case. Where time runs out, the result is of the cases until then."""
    results = lab.results(PART)
    try:
        for case in cases(lab.profile):
            measure_case(lab, results, case)
    except OutOfTimeError:
        summarise(lab, results)
        raise
    return summarise(lab, results)


def measure_case(lab: Lab, results: Results, case: Case) -> Json:
    """A case, unless the file has it. It is expected to go on at the slowest pace of the others."""
    penalty, found = measure_penalty(lab, results, case.start), results.read()
    others = [other for other in cases(lab.profile) if other.name in found["pieces"]]
    pace = max((found["made"][other.name]["seconds"] / work(lab, other) for other in others), default=0.0)
    return results.piece(case.name, partial(try_case, lab, case, penalty), pace * work(lab, case))


def work(lab: Lab, case: Case) -> float:
    """About how many images go through the network: forwards and back count as three, requests as what they train."""
    trained = 3.0 * case.share * len(lab.training) * recipe_of(lab, case).epochs
    again = (case.asked + case.replayed) / case.shards
    ranking = RANKED * 3.0 * len(lab.training) * EPOCHS[1.0] if case.core != HASH else 0.0
    return (1.0 + again) * (trained + HEADS * len(lab.training)) + ranking


# Models


def is_small(lab: Lab) -> bool:
    """Whether small networks stand in for the large ones: on small images, for a look at whether everything works."""
    return max(lab.training.shape) < 28


def recipe_of(lab: Lab, case: Case) -> Recipe:
    """How a case is trained."""
    if is_small(lab):
        return replace(lab.profile.recipe, optimiser="adamw", schedule="cosine", warm_up=0.25)
    precision = "bfloat16" if lab.device.type == "cuda" else "float32"
    if case.start == SCRATCH:
        return replace(SCRATCHED, epochs=round(SCRATCHED.epochs / case.share), precision=precision)
    epochs = EPOCHS[case.share] if case.share else 1
    return replace(TUNED, epochs=epochs, precision=precision)


def network_of(lab: Lab, case: Case) -> tuple[Callable[..., Any], str]:
    """The function that makes the network of a case, and where training starts."""
    if is_small(lab):
        if case.start == SCRATCH:
            return networks.small, "seed"
        return (networks.stand_in if case.share else networks.stand_in_frozen), networks.STAND_IN
    if case.start == SCRATCH:
        return networks.ResNet9, "seed"
    made = networks.efficientnet if case.shards == 1 else networks.efficientnet_narrow
    return (made if case.share else networks.efficientnet_frozen), networks.ORIGIN


def key_of(lab: Lab, case: Case) -> str:
    """The key of the hash core of a case: each seed has its own, so that seeds have other cores, too."""
    return f"{PART} {lab.seed} {case.seed}"


def core_of(lab: Lab, case: Case) -> Core:
    """The core of a case."""
    ranked = {MIDDLE: MiddleCore, FREQUENCY: FrequencyCore}
    if case.core in ranked:
        return ranked[case.core](round(case.share * len(lab.training)), runs=RANKED)
    if case.share in (0.0, 1.0):
        return FullCore() if case.share else Frozen()
    return HashCore(case.share, key=key_of(lab, case), shards=case.shards)


def model_of(lab: Lab, case: Case, penalty: float) -> MaxRR:
    """The model of a case, not fitted yet."""
    network, start = network_of(lab, case)
    return MaxRR(
        network,
        core_of(lab, case),
        start=start,
        C=penalty,
        seed=lab.seed + case.seed,
        device=str(lab.device),
        train=recipe_of(lab, case) if case.share else None,
        verbose=False,
    )


# The penalty


def measure_penalty(lab: Lab, results: Results, start: str) -> float:
    """C for all cases that start so, chosen on a part of one core unless the file has it."""
    found = results.piece(f"C, {start}", partial(choose_penalty, lab, Case(start, share_of(lab.profile), 0)), 0.0)
    return float(found["C"])


def choose_penalty(lab: Lab, case: Case) -> Json:
    """Look at every C, on the core of a case alone."""
    core = HashCore(case.share, key=key_of(lab, case)).is_core(lab.training.ids)
    records = lab.training.select(lab.training.ids[core]).in_order()
    penalties = SMALL if is_small(lab) else PENALTIES
    half = HashCore(0.5, key="trained on to choose C")
    model = model_of(lab, case, penalties[0]).set_params(core=half).fit(records, progress=lab.progress)
    features, others = embed(model.extractor_, records, device=lab.device), np.flatnonzero(~half.is_core(records.ids))
    right = dict.fromkeys(penalties, 0)
    for part in range(PARTS):
        aside = others[part::PARTS]
        learned = np.setdiff1d(np.arange(len(records)), aside)
        for penalty in penalties:
            heads = LinearSVM(C=penalty).fit(
                torch.from_numpy(features[learned]).to(lab.device), records.labels[learned]
            )
            right[penalty] += int(np.sum(heads.predict(features[aside]) == records.labels[aside]))
    best = max(penalty for penalty in penalties if right[penalty] == max(right.values()))
    length = float(np.linalg.norm(features, axis=1).mean())
    shares = {str(penalty): count / len(others) for penalty, count in right.items()}
    return {"C": best, "accuracy": shares, "length": length}


# One case


def try_case(lab: Lab, case: Case, penalty: float) -> Json:
    """Fit a model, count the records of each kind, and time requests where the case is timed."""
    started = perf_counter()
    model = model_of(lab, case, penalty).fit(lab.training, progress=lab.progress)
    seconds = {"fit": perf_counter() - started, **parts_of_fit(model)}
    heads = model.heads_
    found: Json = {
        "accuracy": model.score(lab.test),
        **{kind: len(model.ids_of(kind)) for kind in KINDS},
        "C": penalty,
        "features": heads.coef_.shape[1],
        "decided": all(head.decided for head in heads.certificate_),
        "seconds": seconds,
        "recipe": recipe_of(lab, case).facts if case.share else None,
    }
    if not case.share:
        found["ridge"] = ridge_accuracy(lab, model)
    if case.timed:
        found["requests"] = time_requests(lab, case, model)
    return found


def parts_of_fit(model: MaxRR) -> dict[str, float]:
    """Seconds of the fit's long parts: training, embedding, heads."""
    durations, records = model._fitted.durations, len(model.ids_of())
    core = max(len(model.ids_of("core")), 1)
    return {
        "train": durations.train * core,
        "embed": durations.embed * records,
        "heads": durations.head * len(model.heads_.certificate_),
    }


def ridge_accuracy(lab: Lab, model: MaxRR) -> float:
    """What a ridge classifier on the same features gives, which forgets by one matrix update."""
    features, others = (embed(model.extractor_, side, device=lab.device) for side in (lab.training, lab.test))
    strength = RIDGE * len(features) * float(np.mean(features**2))
    head = RidgeClassifier(alpha=strength).fit(features, lab.training.labels)
    return float(head.score(others, lab.test.labels))


def time_requests(lab: Lab, case: Case, model: MaxRR) -> Json:
    """Forget records of each kind, and time it. What is forgotten stays so: later requests find fewer records."""
    found: Json = {}
    for kind in ("free", "influential"):
        ids = lab.draw(model.ids_of(kind), min(REPEATS, len(model.ids_of(kind))), *map(ord, kind))
        taken = [seconds_of(model, [one])[0] for one in ids.tolist() if one in model.ids_of(kind)]
        found[kind] = {"seconds": median(taken), "all": taken} if taken else None
    outside = np.union1d(model.ids_of("free"), model.ids_of("influential"))
    for count in PEOPLE[1:]:
        if len(outside) >= REPEATS * count:
            drawn = lab.draw(outside, REPEATS * count, count).reshape(REPEATS, count)
            taken = [seconds_of(model, ids.tolist())[0] for ids in drawn]
            outside = np.setdiff1d(outside, drawn)
            found[f"{count} records"] = {"seconds": median(taken), "all": taken}
    if case.share and not case.asked:
        found["core"] = {"seconds": sum(parts_of_fit(model).values()), "guarantee": None}
    elif case.share:
        seconds, receipt = seconds_of(model, lab.draw(model.ids_of("core"), 1, len(KINDS)).tolist())
        found["core"] = {"seconds": seconds, "guarantee": receipt.guarantee, "conditions": receipt.conditions}
        if case.replayed:
            outcome = replay(receipt, model, lab.training)
            found["core"]["replay"] = {"outcome": outcome.outcome, "seconds": outcome.seconds}
    return found


def seconds_of(model: MaxRR, ids: list[Any]) -> tuple[float, Receipt]:
    """Forget records exactly, and return the seconds that it took."""
    started = perf_counter()
    receipt = model.unlearn(ids, core_policy="retrain")
    return perf_counter() - started, receipt


# All cases


def summarise(lab: Lab, results: Results) -> Json:
    """The result, of the cases that the file has."""
    pieces = results.read()["pieces"]
    rows: dict[str, list[Case]] = {}
    for case in cases(lab.profile):
        if case.name in pieces:
            rows.setdefault(case.row, []).append(case)
    found = {row: [pieces[case.name] for case in mine] for row, mine in rows.items()}
    lines = [line(mine[0], found[row], len(lab.training)) for row, mine in rows.items()]
    return results.finish(
        {
            "part": PART,
            "title": "Public weights and a small core",
            "runs": max(map(len, rows.values()), default=0),
            "records": len(lab.training),
            "cells": {row: cells(each) for row, each in found.items()},
            "work": lines,
        }
    )


def cells(found: Sequence[Json]) -> Json:
    """The cells of a row, over its seeds."""
    shares: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for one in found:
        total = sum(one[kind] for kind in KINDS)
        for kind in KINDS:
            shares[kind].append(one[kind] / total)
    accuracy = compare([one["accuracy"] for one in found], "accuracy").to_json()
    return {"accuracy": accuracy, **{kind: compare(values, "share").to_json() for kind, values in shares.items()}}


def line(case: Case, found: Sequence[Json], records: int) -> Json:
    """A point of the figure: accuracy, and the seconds that a request by a person is expected to take."""
    accuracy = compare([one["accuracy"] for one in found], "accuracy")
    facts: Json = {
        "row": case.row,
        "start": case.start,
        "share": case.share,
        "shards": case.shards,
        "core": case.core,
        "accuracy": accuracy.mean,
        "stderr": accuracy.stderr,
    }
    requests = next((one["requests"] for one in found if "requests" in one), None)
    if requests is None:
        return {**facts, "expected": {}, "expected by person": {}}
    first = found[0]
    by_record = {str(count): expected(first, requests, case.shards, count, records) for count in PEOPLE}
    by_person = {str(count): expected(first, requests, case.shards, count, records, person=True) for count in PEOPLE}
    return {**facts, "expected": by_record, "expected by person": by_person}


def expected(found: Json, requests: Json, shards: int, count: int, records: int, *, person: bool = False) -> float:
    """Seconds that the request of a random person with so many records takes, on average.

    Whether a record is core, and in which shard, is decided for each record, or for a person as a whole, as `person`
    says. A shard more to train takes what one took in the fit.
    """
    share, without_core = found["core"] / records, outside(found, requests, count)
    if not share:
        return without_core
    spared = 1.0 - share if person else (1.0 - share) ** count
    touched = share if person else shards * (1.0 - (1.0 - share / shards) ** count)
    more = touched - (1.0 - spared)  # shards beyond the first
    each = (found["seconds"]["train"] + found["seconds"]["embed"]) / shards
    return float((1.0 - spared) * requests["core"]["seconds"] + more * each + spared * without_core)


def outside(found: Json, requests: Json, count: int) -> float:
    """Seconds of a request for so many records outside the core."""
    if count > 1 and f"{count} records" in requests:
        return float(requests[f"{count} records"]["seconds"])
    counts = {kind: found[kind] for kind in ("free", "influential") if requests[kind]}
    if not counts:
        return 0.0
    return float(sum(counts[kind] * requests[kind]["seconds"] for kind in counts) / sum(counts.values()))
