"""What is compared on which records, in each profile; and the records themselves."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lab.compare.pieces import Pieces
from lab.compare.techniques import TECHNIQUES
from lab.public_cases import SCRATCHED
from lab.public_networks import ResNet9
from maxrr.core import HashCore
from maxrr.data import Dataset, load
from maxrr.nets import LeNet5, Recipe
from maxrr.nets.seeding import stream

NETWORKS: Mapping[str, Callable[..., nn.Module]] = {"LeNet-5": LeNet5, "ResNet-9": ResNet9}
STREAM = 41  # below the seed: of all that is drawn here
SEEDS, RECORDS = 0, 1
KINDS = ("original", "retrained", "again", "original to tune", "retrained to tune", "memory")


@dataclass(frozen=True)
class Networks:
    """A comparison of techniques on networks that are trained here.

    Attributes
    ----------
    data, records
        Which records, and how many of them; None for all.
    network, recipe
        What is trained, and how.
    models
        How many of each kind.
    forget
        How many records each forget set has, by its name: "random …", "memorised …", "mixed …", or "one class".
    core
        The share of the records that the extractors below exact heads see.
    validation
        How many records nobody trains on, by which settings are chosen.
    sample
        How many retained records models are asked about.
    tuned, tries
        With how many models settings are chosen, and among how many of them.
    memory
        How many models say which records are memorised.
    techniques
        Which are compared.
    best
        How many of them: the best of part a; None for all.
    """

    data: str
    records: int | None
    network: str
    recipe: Recipe
    models: int
    forget: Mapping[str, int]
    core: float = 0.4
    validation: int = 1_000
    sample: int = 1_000
    tuned: int = 4
    tries: int = 6
    memory: int = 0
    techniques: tuple[str, ...] = tuple(TECHNIQUES)
    best: int | None = None


@dataclass(frozen=True)
class Exact:
    """A comparison of methods that promise something.

    Attributes
    ----------
    data, records
        Which records, and how many.
    seeds
        How often everything is done.
    repeats
        Single requests, of which the median counts.
    requests, timed
        How many requests the stream has, and how many of them a method carries out that trains for each.
    shadows
        How many models audit the end of the stream, two fifths of them with the records.
    """

    data: str
    records: int | None
    seeds: int = 1
    repeats: int = 3
    requests: int = 0
    timed: int = 0
    shadows: int = 0


@dataclass(frozen=True)
class Profile:
    """All parts of a profile; one that is not measured is None."""

    name: str
    a: Networks
    b: Networks | None
    c: Exact | None
    d: Exact

    def setting(self, part: str, seed: int) -> dict[str, Any]:
        """What the numbers of a part follow from."""
        return {"profile": self.name, "seed": seed, "plan": asdict(getattr(self, part))}


MANY = Recipe(epochs=18)
PROFILES = {
    profile.name: profile
    for profile in (
        Profile(
            "smoke",
            Networks("digits", 120, "LeNet-5", Recipe(epochs=2, lr=4e-3), 2, {"mixed 10": 10}, validation=40,
                     sample=30, tuned=2, tries=1, memory=2, techniques=("NegGrad+",)),
            None,
            Exact("digits", 120, repeats=1),
            Exact("digits", 120, requests=4, timed=1),
        ),
        Profile(
            "quick",
            Networks("fashion-mnist", 600, "LeNet-5", Recipe(epochs=12, lr=3e-3), 24,
                     {"random 50": 50, "one class": 0}, validation=300, sample=300, tuned=3, tries=2),
            None,
            None,
            Exact("fashion-mnist", 1_500, requests=50, timed=5, shadows=32),
        ),
        Profile(
            "paper",
            Networks("fashion-mnist", 10_000, "LeNet-5", MANY, 100,
                     {"random 100": 100, "random 1,000": 1_000, "memorised 200": 200, "one class": 0}, tuned=16,
                     memory=40),
            Networks("cifar-10", 10_000, "ResNet-9", SCRATCHED, 20, {"mixed 1,000": 1_000}, tries=4,
                     memory=10, best=3),
            Exact("cifar-10", 10_000, seeds=5),
            Exact("fashion-mnist", 20_000, requests=1_000, timed=20, shadows=32),
        ),
    )
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Study:
    """One comparison on its records.

    Attributes
    ----------
    part
        Its letter.
    plan
        What is compared.
    seed, device
    pieces
        Where results go.
    """

    part: str
    plan: Networks
    seed: int
    device: torch.device
    pieces: Pieces

    def rng(self, *purpose: int) -> np.random.Generator:
        """Random numbers for one purpose."""
        return np.random.default_rng(stream(self.seed, STREAM, RECORDS, *purpose))

    @cached_property
    def sides(self) -> tuple[Dataset, Dataset, Dataset]:
        """Records to train on, to choose settings by, and to test."""
        training, test = some_of(self.plan.data, self.plan.records, self.plan.validation, self.seed)
        aside = np.sort(self.rng(0).choice(training.ids, self.plan.validation, replace=False))
        return training.without(aside), training.select(aside), test

    @property
    def training(self) -> Dataset:
        return self.sides[0]

    @cached_property
    def network(self) -> nn.Module:
        return NETWORKS[self.plan.network](self.training.shape, len(self.training.class_names))

    @property
    def classes(self) -> int:
        return len(self.training.class_names)

    @cached_property
    def core(self) -> NDArray[Any]:
        """The ids of the core, sorted."""
        rule = HashCore(self.plan.core, key=f"compare {self.seed}", by="record")
        return np.sort(self.training.ids[rule.is_core(self.training.ids)])

    def seeds(self, kind: str, count: int) -> list[int]:
        """Seeds of models of one kind, which no other kind has."""
        source = stream(self.seed, STREAM, SEEDS, KINDS.index(kind))
        return [int(number) for number in source.generate_state(count, np.uint32)]

    def forget_set(self, name: str, memorised: Callable[[], NDArray[np.float64]]) -> NDArray[Any]:
        """The ids of a forget set. All but a class are core records, so that both uses have something to forget."""
        if name == "one class":
            return np.asarray(self.training.ids[self.training.labels == 3])
        count, kind = self.plan.forget[name], name.partition(" ")[0]
        random = np.setdiff1d(self.core, self.to_tune)
        if kind == "random":
            return np.sort(self.rng(1, count).choice(random, count, replace=False))
        scores = memorised()
        ranked = random[np.argsort(-scores[self.training.rows(random)], kind="stable")]
        first = ranked[: count if kind == "memorised" else count // 2]
        others = self.rng(1, count).choice(ranked[len(first) :], count - len(first), replace=False)
        return np.sort(np.concatenate([first, others]))

    @cached_property
    def to_tune(self) -> NDArray[Any]:
        """The ids of records that are forgotten to choose settings by and never else: a twentieth of the core."""
        return np.sort(self.rng(2).choice(self.core, min(100, len(self.core) // 20), replace=False))


def some_of(data: str, records: int | None, more: int, seed: int) -> tuple[Dataset, Dataset]:
    """So many training records, and some more of them to choose by, and as many test records at most; in order."""
    training, test = (side.in_order() for side in load(data))
    if records is not None:
        rng = np.random.default_rng(stream(seed, STREAM, RECORDS, 3))
        training = training.select(np.sort(rng.choice(training.ids, min(records + more, len(training)), replace=False)))
        test = test.select(np.sort(rng.choice(test.ids, min(records, len(test)), replace=False)))
    return training, test
