"""What every experiment needs: records, seeds, the ranking, trained extractors, solved heads."""

import io
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from maxrr.core import Ranking, rank
from maxrr.core.frequency import ranking_seeds
from maxrr.data import Dataset, load
from maxrr.experiments import published
from maxrr.experiments.profiles import Profile
from maxrr.experiments.results import Results
from maxrr.files import write_atomically
from maxrr.nets import LeNet5, Recipe, embed, split, train_many
from maxrr.nets.records import chosen_device
from maxrr.nets.seeding import stream
from maxrr.progress import Report
from maxrr.svm import LinearSVM, influential_in
from maxrr.svm.arrays import Array, to_numpy

MODELS, REQUESTS = 8, 9  # streams below the seed: of the models' own seeds, and of random records
SMALL = 2**18  # numbers in a run's features: up to here a head is solved before a process would have started
WORK = "work"  # a folder for what is not finished

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Features:
    """All records as one extractor sees them, training and test; on the device where there is one."""

    training: Array
    test: Array


@dataclass(frozen=True, eq=False)
class Head:
    """A solved one-vs-rest SVM: weights of the classes that have a head, and who shapes it."""

    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    influential: Bools  # of all training records; never one that the head did not see

    def scores(self, features: Array) -> NDArray[np.float64]:
        """Decision values (records × heads)."""
        return np.asarray(to_numpy(features).astype(np.float64) @ self.weights.T + self.biases)

    def accuracy(self, features: Array, labels: NDArray[np.int64]) -> float:
        """The share of records for which the right class has the largest score."""
        scores = self.scores(features)
        chosen = scores.argmax(1) if len(self.classes) == scores.shape[1] else (scores[:, 0] > 0.0).astype(int)
        return float(np.mean(self.classes[chosen] == labels))


@dataclass(frozen=True, eq=False)
class Lab:
    """Where the experiments of one profile and seed take place.

    Attributes
    ----------
    profile, seed
    training, test
        In the order of their ids.
    device
    out
        The folder of the result files.
    report
        Called as long work goes on.
    """

    profile: Profile
    seed: int
    training: Dataset
    test: Dataset
    device: torch.device
    out: Path
    report: Report | None

    @classmethod
    def of(
        cls, profile: Profile, out: Path, *, seed: int = 0, device: str | None = None, report: Report | None = None
    ) -> "Lab":  # fmt: skip
        """The lab of a profile; its records are loaded."""
        training, test = load(profile.data)
        return cls(profile, seed, training.in_order(), test.in_order(), chosen_device(device), out, report)

    def results(self, part: str) -> Results:
        """The file of one part."""
        name = part if self.profile.data in (published.DATA, "digits") else f"{part}-{self.profile.data}"
        setting = {"profile": self.profile.to_json(), "seed": self.seed}
        return Results(self.out / f"{name}.json", json.loads(json.dumps(setting)), self.device)

    @property
    def comparable(self) -> bool:
        """Whether the paper's numbers were measured on these records."""
        return self.profile.data == published.DATA

    # Randomness

    def seeds(self, count: int) -> list[int]:
        """Of models, none of them among the ranking's. More are the same ones and then some."""
        numbers: list[int] = stream(self.seed, MODELS).generate_state(count, np.uint64).tolist()
        return numbers

    def draw(self, among: NDArray[Any], count: int, *purpose: int) -> NDArray[Any]:
        """Some of these ids at random, sorted; the same ones for the same purpose."""
        rng = np.random.default_rng(stream(self.seed, REQUESTS, *purpose))
        return np.sort(rng.choice(among, count, replace=False))

    # Who matters

    @cached_property
    def ranking(self) -> Ranking:
        """How often each record is influential, over the profile's runs; kept beside the results."""
        profile, seeds = self.profile, ranking_seeds(self.seed, self.profile.runs)
        path = self.out / f"ranking-{profile.data}.npz"
        about = json.dumps({"seed": self.seed, "runs": profile.runs, "recipe": profile.to_json()["recipe"]})
        if path.exists():
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                if str(stored["about"]) != about:
                    raise ValueError(f"{path} is of another profile or seed: choose another --out, or delete it")
                return Ranking(self.training.ids, tuple(seeds), stored["marks"], float(stored["gap"]))
        folder = self.work("ranking")
        found = rank(
            self.network, self.training, seeds, recipe=profile.recipe, device=self.device, folder=folder,
            report=self.report,
        )  # fmt: skip
        content = io.BytesIO()
        np.savez_compressed(content, marks=found.marks, gap=np.float64(found.worst_gap), about=np.str_(about))
        write_atomically(path, content.getvalue())
        shutil.rmtree(folder)
        return found

    def top(self, k: int) -> NDArray[Any]:
        """The core of the k most frequent records, sorted."""
        return np.sort(self.ranking.top(k))

    def others(self, ids: NDArray[Any]) -> NDArray[Any]:
        """All records but these, sorted."""
        return np.setdiff1d(self.training.ids, ids)

    def mask(self, ids: NDArray[Any]) -> Bools:
        """Which of the training records these are."""
        return np.isin(self.training.ids, ids)

    # Models

    @property
    def network(self) -> LeNet5:
        return LeNet5(self.training.shape, len(self.training.class_names))

    def extractors(
        self, seeds: Sequence[int], records: Dataset, *, without: Sequence[NDArray[Any]] | None = None,
        recipe: Recipe | None = None, piece: str = "networks",
    ) -> Iterator[torch.nn.Module]:  # fmt: skip
        """Networks trained for these seeds on these records, perhaps each without some of its own.

        They are kept in the work folder of the piece until they all have been used, so that an interrupted training
        goes on.
        """
        how, folder = recipe or self.profile.recipe, self.work(piece)
        for run in train_many(
            self.network, records, seeds, epochs=how.epochs, batch_size=how.batch_size, lr=how.lr, device=self.device,
            without=without, folder=folder, report=self.report,
        ):  # fmt: skip
            yield run.network
        shutil.rmtree(folder)

    def embedded(self, networks: Iterator[torch.nn.Module]) -> list[Features]:
        """All records under each of the networks."""
        return [self.features(split(network)[0]) for network in networks]

    def features(self, extractor: torch.nn.Module) -> Features:
        """All records as an extractor sees them."""
        sides = (embed(extractor, side, device=self.device) for side in (self.training, self.test))
        if self.device.type == "cuda":
            return Features(*(torch.from_numpy(side).to(self.device) for side in sides))
        return Features(*sides)

    def heads(self, features: Sequence[Features], masks: Sequence[Bools | None]) -> Iterator[Head]:
        """The SVM on each of these features, fitted to the records of the mask beside it; None stands for all."""
        labels, ids = self.training.labels, self.training.ids
        runs = [one.training for one in features]
        if runs and np.prod(runs[0].shape) <= SMALL:
            for X, mask in zip(runs, masks, strict=True):
                rows = np.flatnonzero(np.ones(len(labels), dtype=bool) if mask is None else mask)
                model = LinearSVM().fit(to_numpy(X)[rows], labels[rows], keys=ids[rows])
                yield Head(
                    model.classes_, model.coef_, model.intercept_, np.isin(np.arange(len(labels)), rows[model.support_])
                )
            return
        solved = influential_in(runs, labels, keys=ids, masks=masks, report=self.report)
        for mask, found in zip(masks, solved, strict=True):
            classes = np.unique(labels if mask is None else labels[mask])
            yield Head(classes, found.weights, found.biases, found.mask)

    def accuracies(self, features: Sequence[Features], masks: Sequence[Bools | None]) -> list[float]:
        """On the test records, of heads fitted as in `heads`."""
        return [
            head.accuracy(one.test, self.test.labels)
            for one, head in zip(features, self.heads(features, masks), strict=True)
        ]

    def work(self, piece: str) -> Path:
        """A folder for unfinished work."""
        return self.out / WORK / f"{self.profile.data}-{piece.replace(' ', '-')}"
