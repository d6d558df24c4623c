"""Parts a and b: techniques on networks that are trained here, alone and below exact heads.

Many models of each kind are trained: originals on everything; others without the forgotten records, twice, so that
retrained models stand beside retrained ones. A technique changes the originals. Alone, a network answers by its
softmax; below our heads an extractor saw the core, and heads are fitted exactly on all records that stay, after the
technique as after retraining.
"""

import copy
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lab.compare import measures
from lab.compare.descent import Technique, change
from lab.compare.measures import SIDES, Answers
from lab.compare.pieces import Arrays, Json, now
from lab.compare.questions import ALONE, HEADS, USES, Questions, finite, heads_on, side_by_side
from lab.compare.study import Study
from lab.compare.techniques import GRIDS, TECHNIQUES, technique_of
from maxrr import LinearSVM
from maxrr.nets import embed, split, train_many
from maxrr.nets.networks import last_linear
from maxrr.unlearning.blueprint import quietly

NOTHING, RETRAINING = "nothing done", "retraining"
FINE = "fine-tuning"
TUNED = "retraining, then fine-tuning"  # what going on with training does by itself, to models that know nothing
TIMES = 3  # that a request is timed
CONTROLS = (RETRAINING, NOTHING, TUNED)


def measure(study: Study, techniques: Sequence[str], uses: Sequence[str] = USES) -> None:
    """Measure what the files do not have, for these uses.

    Seconds come last and only together: of a use alone another process may be at work beside this one.
    """
    settings = {
        (use, name): study.pieces.piece(study.part, f"settings {use} {name}", partial(choose, study, use, name))
        for use in uses
        for name in techniques
    }

    def each(work: Callable[..., Json], title: str, set_name: str) -> None:
        gone = study.forget_set(set_name, partial(memorised, study))
        for use in uses:
            for name in (*CONTROLS, *techniques):
                known = settings.get((use, FINE if name == TUNED else name))
                chosen = known["chosen"] if known else {}
                study.pieces.piece(
                    study.part, f"{title} {use} {name}", partial(work, study, use, set_name, gone, name, chosen)
                )

    for set_name in study.plan.forget:
        each(try_one, set_name, set_name)
    if len(uses) == len(USES):
        each(try_cost, "seconds", next(iter(study.plan.forget)))


# Models


def trained(study: Study, use: str, kind: str, count: int, gone: NDArray[Any]) -> Iterable[nn.Module]:
    """Networks of one kind, on all records or on the core, without those that are gone."""
    seen = study.training if use == ALONE else study.training.select(study.core)
    rest = seen.without(np.intersect1d(seen.ids, gone))
    runs = train_many(study.network, rest, study.seeds(kind, count), recipe=study.plan.recipe, device=study.device)
    return (run.network for run in runs)


def originals(study: Study, use: str, kind: str = "original", count: int | None = None) -> list[nn.Module]:
    """The models before any request, from the disk if they are there.

    Below our heads the last layer is these, on all records: what a `core_policy` is given.
    """
    count, nobody = count or study.plan.models, study.training.ids[:0]

    def make() -> Arrays:
        networks = list(trained(study, use, kind, count, nobody))
        if use == HEADS:
            give_heads(study, networks)
        states = [network.state_dict() for network in networks]
        return {name: np.stack([state[name].numpy() for state in states]) for name in states[0]}

    arrays = study.pieces.keep(f"{study.part} {use} {kind}", make)
    found = []
    for number in range(count):
        network = copy.deepcopy(study.network)
        network.load_state_dict({name: torch.from_numpy(np.array(each[number])) for name, each in arrays.items()})
        found.append(network.eval())
    return found


def give_heads(study: Study, networks: Sequence[nn.Module]) -> None:
    """Put exact heads on all records in the place of the last layers."""
    features = (embed(split(network)[0], study.training, device=study.device) for network in networks)
    labels = study.training.labels
    for network, heads in zip(networks, side_by_side(heads_on, features, len(labels), labels), strict=True):
        assert heads is not None
        last = network.get_submodule(last_linear(network))
        last.load_state_dict({"weight": torch.tensor(heads.weights), "bias": torch.tensor(heads.biases)})


def memorised(study: Study) -> NDArray[np.float64]:
    """How much likelier each record is to be right in models that saw it: V. Feldman, C. Zhang, 2020, by subsamples."""

    def make() -> Arrays:
        ids, seeds, random = study.training.ids, study.seeds("memory", study.plan.memory), study.rng(4)
        out = [np.sort(random.choice(ids, round(0.3 * len(ids)), replace=False)) for _ in seeds]
        runs = train_many(
            study.network, study.training, seeds, without=out, recipe=study.plan.recipe, device=study.device
        )
        labels = study.training.labels
        right = np.stack([embed(run.network, study.training, device=study.device).argmax(1) == labels for run in runs])
        seen = ~np.stack([np.isin(ids, some) for some in out])
        with_it, without = (np.sum(right * each, 0) / np.maximum(each.sum(0), 1) for each in (seen, ~seen))
        return {"scores": with_it - without}

    return np.asarray(study.pieces.keep(f"{study.part} memorised", make)["scores"])


def stored(study: Study, name: str, make: Any) -> Answers:
    """Answers that several pieces need."""

    def arrays() -> Arrays:
        found: Answers = make()
        return {
            **{f"margins {side}": each.astype(np.float32) for side, each in found.margins.items()},
            **{f"right {side}": each for side, each in found.right.items()}, "relearned": found.relearned,
        }  # fmt: skip

    kept = study.pieces.keep(name, arrays)
    return Answers(
        {side: kept[f"margins {side}"].astype(float) for side in SIDES},
        {side: kept[f"right {side}"] for side in SIDES},
        kept["relearned"],
    )


# One piece


def try_one(study: Study, use: str, set_name: str, gone: NDArray[Any], name: str, settings: Json) -> Json:
    """A technique on all models for one forget set, beside models retrained without the records."""
    questions, count = Questions(study, use, gone, study.sides[2]), study.plan.models
    key = f"{study.part} {use} {set_name}"

    def without(kind: str) -> Answers:
        return stored(study, f"{key} {kind}", lambda: questions.answers(trained(study, use, kind, count, gone)))

    remembering = stored(study, f"{key} original", lambda: questions.answers(originals(study, use)))
    diverged = 0
    if name == RETRAINING:
        mine = without("again")
    elif name == NOTHING:
        mine = remembering
    else:
        networks = list(trained(study, use, "again", count, gone)) if name == TUNED else originals(study, use)
        apply(study, use, technique_of(FINE if name == TUNED else name, settings), networks, gone)
        mine, diverged = questions.answers(networks), sum(not finite(network) for network in networks)
    found = measures.compare(mine, without("retrained"), remembering)
    return {"use": use, "forget set": set_name, "method": name, "records": len(gone), "settings": dict(settings),
            "diverged": diverged, **found}  # fmt: skip


def try_cost(study: Study, use: str, set_name: str, gone: NDArray[Any], name: str, settings: Json) -> Json:
    """What a request to one model costs: the median of some, after a first in which libraries are loaded."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as networks are trained
    try:
        costs = [cost_of(study, use, gone, name, settings) for _ in range(1 + TIMES)][1:]
    finally:
        torch.set_num_threads(threads)
    seconds = [cost["seconds"] for cost in costs]
    request = {"seconds": median(seconds), "all seconds": seconds, "memory": costs[0]["memory"]}
    return {"use": use, "forget set": set_name, "method": name, "request": request}


def cost_of(study: Study, use: str, gone: NDArray[Any], name: str, settings: Json) -> Json:
    """Seconds, and on a GPU the most memory in bytes."""
    (network, *_), rest, on_gpu = originals(study, use), study.training.without(gone), study.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(study.device)
    started = now(study.device)
    if name in (RETRAINING, TUNED):
        (network,) = trained(study, use, "retrained", 1, gone)
    if name in (*TECHNIQUES, TUNED):
        apply(study, use, technique_of(FINE if name == TUNED else name, settings), [network], gone)
    if use == HEADS:
        with quietly():
            features = torch.from_numpy(embed(split(network)[0], rest, device=study.device)).to(study.device)
            LinearSVM().fit(features, rest.labels)
    memory = torch.cuda.max_memory_allocated(study.device) if on_gpu else None
    return {"seconds": now(study.device) - started, "memory": memory}


def apply(study: Study, use: str, technique: Technique, networks: list[nn.Module], gone: NDArray[Any]) -> None:
    """Apply a technique to models in place."""
    seen = study.training if use == ALONE else study.training.select(study.core)
    leave, seeds = np.intersect1d(gone, seen.ids), list(range(len(networks)))
    change(technique, networks, seen.without(leave), seen.select(leave), seeds, study.device, study.classes)


# Settings


def choose(study: Study, use: str, name: str) -> Json:
    """Try the first settings of a technique's grid on records that are forgotten for that alone, beside models that
    were retrained without them, and on records that nobody trains on. No test record is looked at.
    """
    questions, count = Questions(study, use, study.to_tune, study.sides[1]), study.plan.tuned
    key = f"{study.part} {use} to tune"

    def models(kind: str) -> Answers:
        return stored(
            study, f"{key} {kind}", lambda: questions.answers(trained(study, use, kind, count, study.to_tune))
        )

    retrained = models("retrained to tune")
    before = stored(study, f"{key} before", lambda: questions.answers(originals(study, use, "original to tune", count)))
    tried: list[Json] = []
    for settings in GRIDS[name][: study.plan.tries]:
        networks = originals(study, use, "original to tune", count)
        apply(study, use, technique_of(name, settings), networks, study.to_tune)
        distance = shift(questions.answers(networks), retrained) if all(map(finite, networks)) else None
        tried.append({"settings": dict(settings), "distance": distance})
    best = min(tried, key=lambda one: np.inf if one["distance"] is None else one["distance"])
    return {"use": use, "method": name, "chosen": best["settings"], "tried": tried, "models": count,
            "records": len(study.to_tune), "nothing done": shift(before, retrained)}  # fmt: skip


def shift(mine: Answers, retrained: Answers) -> float:
    """How far mean margins are apart, in the spread of retrained models: a mean over forgotten and other records."""
    away, spread = [], []
    for side in ("forgotten", "test"):
        away.append(np.abs(mine.margins[side].mean(0) - retrained.margins[side].mean(0)).mean())
        spread.append(np.sqrt(retrained.margins[side].var(0, ddof=1).mean()))
    return float(np.mean(np.divide(away, np.maximum(spread, 1e-3))))
