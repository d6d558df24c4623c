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

from collections.abc import Sequence
from functools import partial
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lab.comparison import compare
from lab.lab import Lab
from lab.public_cases import (
    KINDS,
    PART,
    PENALTIES,
    PEOPLE,
    PUBLIC,
    REPEATS,
    SMALL,
    Case,
    cases,
    is_small,
    key_of,
    model_of,
    recipe_of,
    share_of,
    work,
)  # fmt: skip
from lab.public_others import lines, measure_others
from lab.results import Json, OutOfTimeError, Results
from maxrr import LinearSVM, MaxRR
from maxrr.core import HashCore
from maxrr.nets import embed
from maxrr.unlearning import Receipt, replay

PARTS = 5  # of the records that C is chosen on, each of which is set aside once


def measure(lab: Lab) -> Json:
    """Measure what the file does not have, case by case. Where time runs out, the result is of the cases until then."""
    results = lab.results(PART)
    try:
        for case in cases(lab.profile):
            measure_case(lab, results, case)
        measure_others(lab, results, measure_penalty(lab, results, PUBLIC))
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
    points = [line(mine[0], found[row], len(lab.training)) for row, mine in rows.items()]
    return results.finish(
        {
            "part": PART,
            "title": "Public weights and a small core",
            "runs": max(map(len, rows.values()), default=0),
            "records": len(lab.training),
            "cells": {row: cells(each) for row, each in found.items()},
            "work": [*points, *lines(pieces)],
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
