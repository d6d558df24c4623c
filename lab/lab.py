"""What every study needs: records, seeds, the ranking, trained extractors, solved heads."""

import hashlib
import io
import json
import shutil
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from lab import published
from lab.heads import Bools, Heads, Scheme, accuracy, solve
from lab.profiles import DIVIDED, KNOWN, PROFILES, Pixels, Profile
from lab.results import Clock, Results
from maxrr.core import Ranking, rank
from maxrr.core.ranking import ranking_seeds
from maxrr.data import Dataset, load
from maxrr.files import write_atomically
from maxrr.nets import MLP, LeNet5, Recipe, embed, split, train_many
from maxrr.nets.embedding import block_extractor, block_size
from maxrr.nets.inputs import as_tensor, device_on
from maxrr.nets.seeding import full_precision, stream
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.progress import Progress
from maxrr.svm.arrays import Array

MODELS, REQUESTS = 8, 9  # streams below the seed: of the models' own seeds, and of random records
WORK = "work"  # a folder for what is not finished
MEASURED = {  # files by which stored results are known that do not name their records
    "adult": {
        "training": "fe98833c9da2866b498f4f97b4c4e6790651f39c9a69401ed4befca750cf3999",
        "test": "a059a486b3a287a4414daba9431f32660aec553cc52651fb81a94980eae129be",
    },
}


@dataclass(frozen=True, eq=False)
class Features:
    """All records as one extractor sees them, training and test; on the device where there is one."""

    training: Array
    test: Array


@dataclass(frozen=True, eq=False)
class Lab:
    """Where the studies of one profile and seed take place.

    Attributes
    ----------
    profile
        How much is measured, on which data.
    seed
        What all randomness follows from.
    training, test
        The records, in the order of their ids.
    device
        Where networks are trained.
    out
        The folder of the result files.
    progress
        Called as long work goes on.
    records
        The content hashes of both sides, for data that are not known by their name.
    engine
        Where rankings, trainings and SVMs are worked on, as in `maxrr.core.rank`; no number depends on it on the CPU.
    clock
        When the work has to end: no piece of a result is begun that may end later.
    """

    profile: Profile
    seed: int
    training: Dataset
    test: Dataset
    device: torch.device
    out: Path
    progress: Progress | None
    records: dict[str, str] = field(default_factory=dict)
    engine: EngineLike = None
    clock: Clock = field(default_factory=Clock, repr=False)

    @classmethod
    def of(
        cls, profile: Profile, out: Path, *, source: str | None = None, seed: int = 0, device: str | None = None,
        progress: Progress | None = None, engine: EngineLike = None, clock: Clock | None = None,
    ) -> "Lab":  # fmt: skip
        """The lab of a profile; its records are loaded, from a source if they are not known by name.

        Parameters
        ----------
        profile : Profile
            How much is measured, on which data.
        out : Path
            The folder of the result files.
        source : str, optional
            Where the records are, as `maxrr.data.load` takes it. If not given, the profile's data.
        seed : int
            What all randomness follows from.
        device : str, optional
            Where networks are trained, as in `maxrr.nets.train`.
        progress : optional
            Called as long work goes on.
        engine : optional
            Where rankings, trainings and SVMs are worked on, as in `maxrr.core.rank`; by default on this machine.
        clock : optional
            When the work has to end; by default it takes as long as it takes.

        Returns
        -------
        Lab
            With both sides of the records in memory; nothing is measured yet.
        """
        training, test = load(source or profile.data)
        records: dict[str, str] = {}
        if profile.data not in KNOWN:
            hashes = {"training": training.content_hash(), "test": test.content_hash()}
            records = {} if MEASURED.get(profile.data) == hashes else hashes
        place = device_on(engine_from(engine), device)
        if place.type == "cuda" and not torch.cuda.is_available():
            raise ValueError(
                "the engine trains on graphics processors, and the features are needed here, where PyTorch finds none: "
                "start the command on a machine with one, or let the engine take gpus=0"
            )
        stored = replace(profile, pixels=DIVIDED)
        sides = training.in_order(), test.in_order()
        lab = cls(stored, seed, *sides, place, out, progress, records, engine, clock=clock or Clock())
        return lab.with_pixels(profile.pixels)

    def with_pixels(self, pixels: Pixels) -> "Lab":
        """The same lab, whose networks read pixels in this way.

        Parameters
        ----------
        pixels : {"divided", "raw", "standardised"}
            Bytes that are divided stay bytes: networks divide them as they read. Mean and standard deviation are those
            of the training records. Numbers that are no bytes are raw already.

        Returns
        -------
        Lab
            With other inputs, and the same ids.

        Raises
        ------
        ValueError
            The pixels of this lab are not as they are stored any more.
        """
        if self.profile.pixels != DIVIDED:
            raise ValueError(f"pixels are {self.profile.pixels} here: begin with a lab that divides them")
        if pixels == DIVIDED:
            return self
        middle, spread = 0.0, 1.0
        if pixels == "standardised":
            middle, spread = float(self.training.inputs.mean()), float(self.training.inputs.std())
        sides = [
            replace(side, inputs=(side.inputs.astype(np.float32) - np.float32(middle)) / np.float32(spread))
            for side in (self.training, self.test)
        ]
        return replace(self, profile=replace(self.profile, pixels=pixels), training=sides[0], test=sides[1])

    def results(self, part: str) -> Results:
        """The file of one part.

        Parameters
        ----------
        part : str
            Its name, one of `PARTS` or `STUDIES`.

        Returns
        -------
        Results
            The result file. Its name also says the data, where these are not the profile's usual ones.
        """
        usual = PROFILES[self.profile.name].data if self.profile.name in PROFILES else self.profile.data
        name = part if self.profile.data == usual else f"{part}-{self.profile.data}"
        path, engine = self.out / f"{name}.json", engine_from(self.engine)
        return Results(path, self.setting, self.device, engine, self.clock)

    @property
    def setting(self) -> dict[str, Any]:
        """What all numbers follow from, as a file has it."""
        facts = {"profile": self.profile.to_json(), "seed": self.seed}
        setting: dict[str, Any] = json.loads(json.dumps(facts | ({"records": self.records} if self.records else {})))
        return setting

    @property
    def comparable(self) -> bool:
        """Whether the paper's numbers were measured on these records."""
        return self.profile.data == published.DATA

    # Randomness

    def seeds(self, count: int) -> list[int]:
        """Seeds of models, none of them among the ranking's.

        Parameters
        ----------
        count : int
            How many.

        Returns
        -------
        list of int
            More seeds begin with those of a smaller count.
        """
        numbers: list[int] = stream(self.seed, MODELS).generate_state(count, np.uint64).tolist()
        return numbers

    def draw(self, among: NDArray[Any], count: int, *purpose: int) -> NDArray[Any]:
        """Draw some of these ids at random.

        Parameters
        ----------
        among : ndarray
            The ids to draw from.
        count : int
            How many to draw, all different.
        *purpose : int
            Numbers that name what they are drawn for.

        Returns
        -------
        ndarray
            The ids, sorted; the same ones for the same purpose.
        """
        rng = np.random.default_rng(stream(self.seed, REQUESTS, *purpose))
        return np.sort(rng.choice(among, count, replace=False))

    # Who matters

    @cached_property
    def ranking(self) -> Ranking:
        """How often each record is influential, over the profile's ranking runs; kept beside the results."""
        profile, seeds = self.profile, ranking_seeds(self.seed, self.profile.ranked)
        path = self.out / f"ranking-{profile.data}.npz"
        facts = profile.to_json()
        setting = {name: facts[name] for name in ("data", "heads", "ranked", "recipe", "pixels") if name in facts}
        about = json.dumps({"seed": self.seed, **setting, **self.records})
        if path.exists():
            with reading(path), np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                made, votes, gap = str(stored["about"]), stored["marks"], float(stored["gap"])
            if made != about:
                raise ValueError(f"{path} is of another profile, seed or data: choose another --out, or delete it")
            return Ranking(self.training.ids, tuple(seeds), votes, gap)
        found = self.measure_ranking(seeds)
        content = io.BytesIO()
        np.savez_compressed(content, marks=found.votes, gap=np.float64(found.worst_gap), about=np.str_(about))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content.getvalue())
        return found

    def measure_ranking(self, seeds: list[int]) -> Ranking:
        """Measure the ranking.

        Parameters
        ----------
        seeds : list of int
            One training run for each.

        Returns
        -------
        Ranking
            Which records were influential in which run.
        """
        if self.profile.heads == "one-vs-rest":
            folder = self.work("ranking")
            found = rank(
                self.network, self.training, seeds, recipe=self.profile.recipe, device=self.device, folder=folder,
                progress=self.progress, engine=self.engine,
            )  # fmt: skip
            shutil.rmtree(folder)
            return found
        features = self.embed(self.train(seeds, self.training))
        solved = list(self.fit_heads(features, [None] * len(seeds)))
        votes = np.packbits(np.stack([heads.influential for heads in solved]), axis=1)
        return Ranking(self.training.ids, tuple(seeds), votes, max(heads.gap for heads in solved))

    def top(self, k: int) -> NDArray[Any]:
        """The paper's core: the records that were influential most often.

        Parameters
        ----------
        k : int
            How many records.

        Returns
        -------
        ndarray
            Their ids, sorted.
        """
        return np.sort(self.ranking.top(k))

    def others(self, ids: NDArray[Any]) -> NDArray[Any]:
        """All training records but these.

        Parameters
        ----------
        ids : ndarray
            The records to leave out.

        Returns
        -------
        ndarray
            The ids of the others, sorted.
        """
        return np.setdiff1d(self.training.ids, ids)

    def mask(self, ids: NDArray[Any]) -> Bools:
        """Which of the training records these are.

        Parameters
        ----------
        ids : ndarray
            Ids of records.

        Returns
        -------
        ndarray
            One boolean per training record: whether it is among them.
        """
        return np.isin(self.training.ids, ids)

    # Models

    @property
    def network(self) -> torch.nn.Module:
        """What is trained: LeNet-5 for images, as in the paper, and an MLP for tables."""
        shape, classes = self.training.shape, len(self.training.class_names)
        return MLP(shape[0], classes) if len(shape) == 1 else LeNet5(shape, classes)

    def train(
        self, seeds: Sequence[int], records: Dataset, *, without: Sequence[NDArray[Any]] | None = None,
        recipe: Recipe | None = None,
    ) -> Iterator[torch.nn.Module]:  # fmt: skip
        """Train one network for each seed.

        Parameters
        ----------
        seeds : sequence of int
            One network for each.
        records : Dataset
            What the networks are trained on.
        without : sequence of ndarray, optional
            For each network the ids of records that it does not see.
        recipe : Recipe, optional
            How they are trained. If not given, as the profile says.

        Yields
        ------
        torch.nn.Module
            The next trained network, in the order of the seeds.
        """
        runs = train_many(
            self.network, records, seeds, recipe=recipe or self.profile.recipe, device=self.device, without=without,
            progress=self.progress, engine=self.engine,
        )  # fmt: skip
        with closing(runs):
            for run in runs:
                yield run.network

    def embed(self, networks: Iterator[torch.nn.Module]) -> list[Features]:
        """All records as the extractor of each network sees them.

        Parameters
        ----------
        networks : iterator of torch.nn.Module
            Trained networks, each of which is split into extractor and last layer.

        Returns
        -------
        list of Features
            The features under each network, in their order.
        """
        return [self.features(split(network)[0]) for network in networks]

    def features(self, extractor: torch.nn.Module) -> Features:
        """All records as an extractor sees them.

        Parameters
        ----------
        extractor : torch.nn.Module
            A network without its last layer.

        Returns
        -------
        Features
            Of the training and of the test records; on the lab's device.
        """
        if self.device.type == "cpu":
            return Features(*(embed(extractor, side, device=self.device) for side in (self.training, self.test)))
        sides = zip(self.on_device, (self.training, self.test), strict=True)
        return Features(*(embed_on_device(extractor, inputs, side.ids) for inputs, side in sides))

    @cached_property
    def after_the_core(self) -> list[Features]:
        """All records under extractors that saw the paper's core of 20,000, one for each of the few runs.

        Several parts look at these models, so they are trained once.
        """
        core = self.training.select(self.top(self.profile.large))
        return self.embed(self.train(self.seeds(self.profile.few), core))

    @cached_property
    def after_everything(self) -> list[Features]:
        """All records under extractors that saw every one of them, for each of the few runs; trained once as well."""
        return self.embed(self.train(self.seeds(self.profile.few), self.training))

    @cached_property
    def on_device(self) -> tuple[Tensor, Tensor]:
        """The records of both sides, as they are stored."""
        return tuple(as_tensor(side.inputs).to(self.device) for side in (self.training, self.test))  # type: ignore[return-value]

    def fit_heads(
        self, features: Sequence[Features], masks: Sequence[Bools | None], scheme: Scheme | None = None, C: float = 1.0
    ) -> Iterator[Heads]:  # fmt: skip
        """Fit the heads of several models.

        Parameters
        ----------
        features : sequence of Features
            The records as the extractor of each model sees them.
        masks : sequence of ndarray or None
            For each model, which training records its heads are fitted to; None stands for all.
        scheme : {"one-vs-rest", "one-vs-one"}, optional
            How SVMs for two classes tell many apart. If not given, as the profile says.
        C : float
            Weight of the losses, as in `maxrr.LinearSVM`.

        Returns
        -------
        iterator of Heads
            The heads of each model, in the order of the features.
        """
        return solve(
            scheme or self.profile.heads,
            [one.training for one in features],
            self.training.labels,
            masks,
            self.progress,
            C,
            self.engine,
        )

    def fit_and_test(self, features: Sequence[Features], masks: Sequence[Bools | None]) -> list[float]:
        """Fit the heads of several models with `fit_heads`, and test them.

        Parameters
        ----------
        features : sequence of Features
            The records as the extractor of each model sees them.
        masks : sequence of ndarray or None
            For each model, which training records its heads are fitted to; None stands for all.

        Returns
        -------
        list of float
            The accuracy of each model on the test records.
        """
        return self.accuracies(features, self.fit_heads(features, masks))

    def accuracies(self, features: Iterable[Features], solved: Iterable[Heads]) -> list[float]:
        """Test heads that are solved already.

        Parameters
        ----------
        features : iterable of Features
            The records as the extractor of each model sees them.
        solved : iterable of Heads
            The heads of each model, in the same order.

        Returns
        -------
        list of float
            The accuracy of each model on the test records.
        """
        return [accuracy(heads, one.test, self.test.labels) for one, heads in zip(features, solved, strict=True)]

    def keep(self, name: str, measure: Callable[[], NDArray[Any]]) -> NDArray[Any]:
        """An array that several pieces need, measured once; it lies with the unfinished work, under its setting.

        Parameters
        ----------
        name : str
            Names the file that keeps it.
        measure : callable
            Gives the array. Called only if there is no such file.

        Returns
        -------
        ndarray
            The array, as it is read from the file.
        """
        setting = hashlib.sha256(json.dumps(self.setting).encode()).hexdigest()
        path = self.work(f"{name}-{setting[:8]}.npy")
        if not path.exists():
            content = io.BytesIO()
            np.save(content, measure())
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content.getvalue())
        with reading(path):
            found: NDArray[Any] = np.load(io.BytesIO(path.read_bytes()), allow_pickle=False)
        return found

    def work(self, piece: str) -> Path:
        """Where unfinished work lies.

        Parameters
        ----------
        piece : str
            What the work is for.

        Returns
        -------
        Path
            A file or folder beside the results, which need not exist yet.
        """
        return self.out / WORK / f"{self.profile.data}-{piece.replace(' ', '-')}"


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Say of a damaged file which one it is, and what to do."""
    try:
        yield
    except (ValueError, LookupError, EOFError, OSError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path} is damaged ({error}): delete it, and it is measured again") from error


def embed_on_device(extractor: torch.nn.Module, inputs: torch.Tensor, ids: NDArray[Any]) -> torch.Tensor:
    """Compute the features of records that lie on a device already; they stay there.

    For a hundred extractors that look at the same records, one after the other.
    """
    extract, size = block_extractor(extractor, inputs.device, ids), block_size(extractor, inputs.device)
    with full_precision():
        blocks = [extract(first, inputs[first : first + size]) for first in range(0, len(inputs), size)]
    return torch.cat(blocks).clone()  # outside of inference mode: a tensor like any other
