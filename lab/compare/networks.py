"""Parts a and b: techniques on networks that are trained here, alone and below exact heads.

Many models of each kind are trained: originals on everything; others without the forgotten records, twice, so that
retrained models stand beside retrained ones. A technique changes the originals. Alone, a network answers by its
softmax; below our heads an extractor saw the core, and heads are fitted exactly on all records that stay, after the
technique as after retraining.
"""

import copy
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lab.compare import measures
from lab.compare.descent import Technique, change
from lab.compare.measures import SIDES, Answers
from lab.compare.pieces import Arrays, Json, now
from lab.compare.study import Study
from lab.compare.techniques import GRIDS, technique_of
from maxrr import LinearSVM
from maxrr.audit.attacks import logit, margins
from maxrr.data import Dataset
from maxrr.nets import embed, split, train_many
from maxrr.nets.networks import last_linear
from maxrr.svm import ConvergenceError, fit_platt
from maxrr.unlearning.blueprint import quietly
from maxrr.unlearning.transitions import as_layer

ALONE, HEADS = "alone", "below exact heads"
USES = (ALONE, HEADS)
NOTHING, RETRAINING = "nothing done", "retraining"
UNITS = (1.0, 32.0, 1_024.0)  # of features; C follows, so that it is the same problem
LARGEST = 1e4  # of weights: a model that has larger ones diverged
RELEARNED = 5_000  # retained records on which heads are relearned, to attack features


def measure(study: Study, techniques: Sequence[str]) -> None:
    """Measure what the files do not have."""
    settings = {
        (use, name): study.pieces.piece(study.part, f"settings {use} {name}", partial(choose, study, use, name))
        for use in USES
        for name in techniques
    }
    for set_name in study.plan.forget:
        gone = study.forget_set(set_name, partial(memorised, study))
        for use in USES:
            for name in (RETRAINING, NOTHING, *techniques):
                chosen = settings[use, name]["chosen"] if name in techniques else {}
                piece = partial(try_one, study, use, set_name, gone, name, chosen)
                study.pieces.piece(study.part, f"{set_name} {use} {name}", piece)


# Models


def trained(study: Study, use: str, kind: str, count: int, gone: NDArray[Any]) -> Iterable[nn.Module]:
    """Networks of one kind, on all records or on the core, without those that are gone."""
    seen = study.training if use == ALONE else study.training.select(study.core)
    rest = seen.without(np.intersect1d(seen.ids, gone))
    runs = train_many(study.network, rest, study.seeds(kind, count), recipe=study.plan.recipe, device=study.device)
    return (run.network for run in runs)


def originals(study: Study, use: str, kind: str = "original", count: int | None = None) -> list[nn.Module]:
    """The models before any request, from the disk if they are there."""
    count, nobody = count or study.plan.models, study.training.ids[:0]
    found: list[nn.Module] = []
    for first in range(0, count, study.plan.chunk):
        size = min(study.plan.chunk, count - first)

        def make(first: int = first, size: int = size) -> Arrays:
            networks = list(trained(study, use, kind, first + size, nobody))[first:]
            names = networks[0].state_dict()
            return {name: np.stack([each.state_dict()[name].numpy() for each in networks]) for name in names}

        arrays = study.pieces.keep(f"{study.part} {use} {kind} {first}", make)
        for number in range(size):
            network = copy.deepcopy(study.network)
            network.load_state_dict({name: torch.from_numpy(np.array(each[number])) for name, each in arrays.items()})
            found.append(network.eval())
    return found


def memorised(study: Study) -> NDArray[np.float64]:
    """How much likelier each record is to be right in models that saw it: V. Feldman, C. Zhang, 2020, by subsamples."""

    def make() -> Arrays:
        count, half = study.plan.memory, study.rng(4)
        seeds = study.seeds("memory", count)
        seen = np.stack([half.random(len(study.training)) < 0.7 for _ in seeds])
        right = np.zeros(seen.shape)
        for row, (seed, mine) in enumerate(zip(seeds, seen, strict=True)):
            records = study.training.select(study.training.ids[mine])
            (run,) = train_many(study.network, records, [seed], recipe=study.plan.recipe, device=study.device)
            right[row] = embed(run.network, study.training, device=study.device).argmax(1) == study.training.labels
        with_it, without = (np.sum(right * each, 0) / np.maximum(each.sum(0), 1) for each in (seen, ~seen))
        return {"scores": with_it - without}

    return np.asarray(study.pieces.keep(f"{study.part} memorised", make)["scores"])


# What they answer


class Questions:
    """The records that models are asked about, and how: for one forget set and one use."""

    def __init__(self, study: Study, use: str, gone: NDArray[Any], test: Dataset) -> None:
        self.use, self.device, self.classes = use, study.device, study.classes
        self.forgotten = study.training.select(np.sort(gone))
        self.rest = study.training.without(gone)
        rows = study.rng(5).permutation(len(self.rest))
        self.retained = self.rest.select(np.sort(self.rest.ids[rows[: study.plan.sample]]))
        self.relearned_on = self.rest.select(np.sort(self.rest.ids[rows[:RELEARNED]])).join(self.forgotten)
        self.test = test

    def answers(self, networks: Iterable[nn.Module]) -> Answers:
        """What these models say."""
        said = [self.ask(network) for network in networks]
        found = {side: np.stack([each[side] for each in said]) for side in SIDES}
        right = {side: np.stack([each[f"{side} right"] for each in said]) for side in SIDES}
        return Answers(found, right, np.stack([each["relearned"] for each in said]))

    def ask(self, network: nn.Module) -> Arrays:
        """What one model says."""
        if not finite(network):
            return self.nothing() | {"relearned": np.zeros(len(self.forgotten))}
        extractor, sides = split(network)[0], {name: getattr(self, name) for name in SIDES}
        found: Arrays = {"relearned": self.relearn(extractor)}
        if self.use == ALONE:
            scores = {name: embed(network, side, device=self.device).astype(float) for name, side in sides.items()}
            for name, side in sides.items():
                exact = scores[name] - np.logaddexp.reduce(scores[name], 1)[:, None]
                rows = np.arange(len(side))
                others = exact.copy()
                others[rows, side.labels] = -np.inf
                found[name] = exact[rows, side.labels] - np.logaddexp.reduce(others, 1)
                found[f"{name} right"] = exact.argmax(1) == side.labels
            return found
        features = embed(extractor, self.rest, device=self.device)
        try:
            heads = fit(features, self.rest.labels, self.device)
        except DivergedError:
            return found | self.nothing()
        scaling = fit_platt(heads.decision_function(features), self.rest.labels, heads.classes_)
        for name, side in sides.items():
            p = np.zeros((len(side), self.classes))
            p[:, heads.classes_] = scaling.probabilities(
                heads.decision_function(embed(extractor, side, device=self.device))
            )
            found[name], found[f"{name} right"] = logit(p, side.labels), p.argmax(1) == side.labels
        return found

    def nothing(self) -> Arrays:
        """What a diverged model says: every class is as likely as the others, and nothing is right."""
        found: Arrays = {}
        for name in SIDES:
            count = len(getattr(self, name))
            found[name], found[f"{name} right"] = np.full(count, -np.log(self.classes - 1)), np.zeros(count, dtype=bool)
        return found

    def relearn(self, extractor: nn.Module) -> NDArray[np.float64]:
        """The margins of the forgotten records in heads fitted with them: what the features give away."""
        records = self.relearned_on
        features = embed(extractor, records, device=self.device)
        mine = np.isin(records.ids, self.forgotten.ids)
        try:
            heads = fit(features, records.labels, self.device)
        except DivergedError:
            return np.zeros(mine.sum())
        return margins(heads.decision_function(features[mine]), records.labels[mine], heads.classes_)


@dataclass(frozen=True, eq=False)
class Heads:
    """Exact heads, under the names of `LinearSVM`."""

    classes_: NDArray[np.int64]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]

    def decision_function(self, features: NDArray[Any]) -> NDArray[np.float64]:
        """Scores, (records × heads)."""
        return np.asarray(features.astype(float) @ self.coef_.T + self.intercept_)


class DivergedError(ValueError):
    """A model's features say nothing: no heads can be fitted on them."""


def fit(features: NDArray[Any], labels: NDArray[np.int64], device: torch.device) -> Any:
    """Exact heads on features. Where a technique leaves too little of these to solve them, the same in other units."""
    X = torch.from_numpy(features).to(device) if device.type == "cuda" else features
    for units in UNITS:
        with quietly(), suppress(ConvergenceError):
            heads = LinearSVM(C=units**-2.0).fit(X * units, labels)
            return Heads(heads.classes_, heads.coef_ * units, heads.intercept_)
    raise DivergedError("the heads cannot be solved: the features are all but the same for all records")


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
    seconds, memory, diverged = 0.0, None, 0
    if name == RETRAINING:
        mine = without("again")
        started = now(study.device)
        list(trained(study, use, "retrained", 1, gone))
        seconds = now(study.device) - started
    elif name == NOTHING:
        mine = remembering
    else:
        technique, networks = technique_of(name, settings), originals(study, use)
        for _ in range(2):  # one request alone; in the first, libraries are loaded
            seconds, memory = apply(study, use, technique, [copy.deepcopy(networks[0])], gone)
        apply(study, use, technique, networks, gone)
        mine, diverged = questions.answers(networks), sum(not finite(network) for network in networks)
    if use == HEADS:
        extractor, started = split(originals(study, use)[0])[0], now(study.device)
        fit(embed(extractor, questions.rest, device=study.device), questions.rest.labels, study.device)
        seconds += now(study.device) - started
    found = measures.compare(mine, without("retrained"), remembering)
    return {"use": use, "forget set": set_name, "method": name, "records": len(gone), "settings": dict(settings),
            "request": {"seconds": seconds, "memory": memory}, "diverged": diverged, **found}  # fmt: skip


def apply(
    study: Study, use: str, technique: Technique, networks: list[nn.Module], gone: NDArray[Any]
) -> tuple[float, int | None]:  # fmt: skip
    """Apply a technique to models in place; return its seconds, and on a GPU the most memory in bytes."""
    seen = study.training if use == ALONE else study.training.select(study.core)
    leave = np.intersect1d(gone, seen.ids)
    if use == HEADS:
        for network in networks:
            give_heads(study, network)
    if study.device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(study.device)
    started = now(study.device)
    seeds = list(range(len(networks)))
    change(technique, networks, seen.without(leave), seen.select(leave), seeds, study.device, study.classes)
    memory = torch.cuda.max_memory_allocated(study.device) if study.device.type == "cuda" else None
    return now(study.device) - started, memory


def give_heads(study: Study, network: nn.Module) -> None:
    """Put exact heads on all records in the place of the last layer: what a `core_policy` is given."""
    features = embed(split(network)[0], study.training, device=study.device)
    layer = as_layer(fit(features, study.training.labels, study.device), study.classes)
    network.get_submodule(last_linear(network)).load_state_dict(layer.state_dict())


# Settings


def choose(study: Study, use: str, name: str) -> Json:
    """Try the first settings of a technique's grid on records that are forgotten for that alone, beside models that
    were retrained without them, and on records that nobody trains on. No test record is looked at.
    """
    questions, count = Questions(study, use, study.to_tune, study.sides[1]), study.plan.tuned
    models = partial(trained, study, use, "retrained to tune", count, study.to_tune)
    retrained = stored(study, f"{study.part} {use} to tune", lambda: questions.answers(models()))
    tried: list[Json] = []
    for settings in GRIDS[name][: study.plan.tries]:
        networks = originals(study, use, "original to tune", count)
        apply(study, use, technique_of(name, settings), networks, study.to_tune)
        distance = shift(questions.answers(networks), retrained) if all(map(finite, networks)) else None
        tried.append({"settings": dict(settings), "distance": distance})
    best = min(tried, key=lambda one: np.inf if one["distance"] is None else one["distance"])
    return {"use": use, "method": name, "chosen": best["settings"], "tried": tried, "models": count,
            "records": len(study.to_tune)}  # fmt: skip


def finite(network: nn.Module) -> bool:
    """Whether all weights are still numbers of use: a technique may diverge on one model of many."""
    return all(bool((value.abs() < LARGEST).all()) for value in network.parameters())


def shift(mine: Answers, retrained: Answers) -> float:
    """How far mean margins are apart, in the spread of retrained models: a mean over forgotten and other records."""
    away, spread = [], []
    for side in ("forgotten", "test"):
        away.append(np.abs(mine.margins[side].mean(0) - retrained.margins[side].mean(0)).mean())
        spread.append(np.sqrt(retrained.margins[side].var(0, ddof=1).mean()))
    return float(np.mean(np.divide(away, np.maximum(spread, 1e-3))))
