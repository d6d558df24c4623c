"""Models to compare with: some that had the records, some that were trained without them, each from its own seed.

A model is looked at as soon as it is made, and only what it says of the records is kept. Networks that saw forgotten
records are never written to a disk. A worker elsewhere gets the records, and how the audited model was made; nothing
else of that model, and no key.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.audit.attacks import Floats, View, margins
from maxrr.audit.case import Case, Ints
from maxrr.data import Dataset
from maxrr.files.arrays import damaged, read_arrays, write_arrays
from maxrr.nets.inputs import chosen_device, device_on
from maxrr.nets.networks import joined
from maxrr.nets.seeding import stream
from maxrr.parallel.engine import Engine
from maxrr.progress import Progress
from maxrr.svm import fit_platt
from maxrr.svm.estimator import LinearSVM
from maxrr.unlearning import MaxRR
from maxrr.unlearning.blueprint import Blueprint, quietly

BEFORE = "before"  # with the records in extractor and heads
KEPT = "kept"  # with the records in the extractor, and heads fitted again without them
RETRAINED = "retrained"  # without the records
LEVEL = 2_000  # test records whose margins say how large those of a model are
AT_ONCE = 32  # networks that are trained together, and lost together when interrupted

Wanted = tuple[tuple[str, ...], Sequence[int]]  # kinds of models, and the seeds of each

# Which models an audit makes.

LEAST = 32  # shadow models: of fewer so few are retrained that no rank among them is odd
SHARE = 0.39  # of them have the records: of 64 these are 25, and among 39 others a p of 0.05 is two ranks of forty
SHADOWS = 11  # the stream below the model's seed that gives those of shadow models
PURPOSES = ("with", "without")


def with_and_without(shadows: int) -> tuple[int, int]:
    """Divide the shadow models into those with the records and those without, and refuse too few."""
    if shadows < LEAST:
        raise ValueError(f"an audit by {shadows} shadow models can never show anything: train {LEAST} or more")
    with_records = ceil(SHARE * shadows)
    return with_records, shadows - with_records


def shadow_seeds(seed: int, count: int, purpose: str = "without") -> list[int]:
    """Draw the seeds of shadow models, none of which is the model's own. A longer list begins with the shorter one.

    Parameters
    ----------
    seed
        The model's own.
    count
        How many.
    purpose
        One of `PURPOSES`: each has seeds of its own.
    """
    numbers: list[int] = stream(seed, SHADOWS, PURPOSES.index(purpose)).generate_state(count, np.uint64).tolist()
    return numbers


def shadow_models(case: Case, with_records: int, retrained: int) -> list[Wanted]:
    """Name the kinds of shadow models to make, and the seeds of each."""
    seed = case.fitted.blueprint.seed
    return [
        ((BEFORE, KEPT) if case.touches_core else (BEFORE,), shadow_seeds(seed, with_records, "with")),
        ((RETRAINED,), shadow_seeds(seed, retrained, "without")),
    ]


# How a model is made and looked at.


@dataclass(frozen=True)
class Batch:
    """Models to make: these kinds of each seed, on extractors that are trained on one core."""

    seeds: tuple[int, ...]
    kinds: tuple[str, ...]
    core: str  # the kind of model whose core it is


@dataclass(frozen=True, eq=False)
class Maker:
    """A maker of shadow models that also scores the records with each."""

    blueprint: Blueprint  # without its key
    everything: Dataset  # all records that the model had before, in the order of their ids
    shards: Ints  # which shard each of them is in
    gone: Ints  # rows of those that were forgotten
    sample: Ints  # rows of retained ones to look at
    cores: Mapping[str, Ints]  # rows of those that extractors are trained on, by the kind of model
    touches_core: bool
    test: Dataset
    device: str | None

    @classmethod
    def of(cls, case: Case, device: str | None) -> "Maker":
        """Prepare the maker of a case's models."""
        everything = case.everything
        cores = {BEFORE: case.core_before, RETRAINED: case.core_after}
        return cls(
            case.fitted.blueprint.without_key(), everything,
            case.fitted.blueprint.sharding.of(everything.ids, everything.subjects),
            everything.rows(case.forgotten.ids), everything.rows(case.retained.ids[case.sample]),
            {kind: everything.rows(ids) for kind, ids in cores.items()}, case.touches_core,
            case.test, device,
        )  # fmt: skip

    def core_of(self, kind: str) -> str:
        """Return the kind of model whose core this kind is trained on; without forgotten core records there is one
        core.
        """
        return RETRAINED if kind == RETRAINED and self.touches_core else BEFORE

    def train(self, core: str, seeds: Sequence[int]) -> Generator[nn.Module]:
        """Train an extractor on this core for each seed; of several shards one after the other."""
        if not seeds:
            return
        sharding, records = self.blueprint.sharding, self.everything.select(self.everything.ids[self.cores[core]])
        if sharding.count == 1:
            with closing(self.blueprint.extractors(records, seeds, self.device)) as trained:
                yield from trained
            return
        shard, parts = self.shards[self.cores[core]], []
        for number in range(sharding.count):
            own, mine = [sharding.seed(seed, number) for seed in seeds], records.select(records.ids[shard == number])
            parts.append(list(self.blueprint.extractors(mine, own, self.device)))
        yield from map(joined, zip(*parts, strict=True))

    def seen(self, extractor: nn.Module, kinds: Sequence[str]) -> Iterator[tuple[str, View]]:
        """Yield the answers of each kind of model that stands on this extractor."""
        features = self.features(extractor, self.everything)
        test = self.features(extractor, self.test)
        rows = np.arange(len(self.everything))
        kept = np.setdiff1d(rows, self.gone)
        whole = self.fit(features, rows) if BEFORE in kinds or self.touches_core else None
        relearned = None if whole is None else self.relearned(whole, features, test)
        if BEFORE in kinds:
            assert whole is not None
            yield BEFORE, replace(self.view(whole, features, rows, test), relearned=relearned)
        if any(kind != BEFORE for kind in kinds):
            with quietly():
                svm = self.fit(features, kept) if whole is None else whole._without(self.gone)
            view = replace(self.view(svm, features, kept, test), relearned=relearned)
            yield from ((kind, view) for kind in kinds if kind != BEFORE)

    def relearned(self, whole: LinearSVM, features: Any, test: Any) -> Floats | None:
        """The margins of the forgotten records in heads fitted with them, if the extractor may have seen these."""
        if not self.touches_core:
            return None
        labels = self.everything.labels[self.gone]
        mine = margins(whole.decision_function(features[self.gone]), labels, whole.classes_)
        level = margins(whole.decision_function(test[:LEVEL]), self.test.labels[:LEVEL], whole.classes_)
        return np.asarray(mine - np.mean(level))

    def view(self, svm: LinearSVM, features: Any, fitted_on: Ints, test: Any) -> View:
        """Turn the heads' scores of the records into a view, by Platt scaling."""
        scaling = fit_platt(svm.decision_function(features[fitted_on]), self.everything.labels[fitted_on], svm.classes_)
        parts = (features[self.gone], features[self.sample], test)
        return View(*(self.wide(scaling.probabilities(svm.decision_function(part)), svm.classes_) for part in parts))

    def wide(self, probabilities: Floats, classes: NDArray[Any]) -> Floats:
        """Add columns of zeros for classes without a head."""
        full = np.zeros((len(probabilities), len(self.test.class_names)))
        full[:, classes] = probabilities
        return full

    def features(self, extractor: nn.Module, records: Dataset) -> Any:
        """Embed records, and leave the features where the solver works."""
        found = self.blueprint.embed(extractor, records)
        place = chosen_device(self.device)
        return torch.from_numpy(found).to(place) if place.type == "cuda" else found

    def fit(self, features: Any, rows: Ints) -> LinearSVM:
        """Fit heads on some of the records."""
        with quietly():
            weights = self.blueprint.sample_weights(self.everything)
            some = None if weights is None else weights[rows]
            return LinearSVM(C=self.blueprint.C).fit(features[rows], self.everything.labels[rows], sample_weight=some)


def make_in_worker(batch: Batch, maker: Maker) -> list[list[tuple[str, View]]]:
    """Make the models of one batch in a worker, and return their answers."""
    with closing(maker.train(batch.core, batch.seeds)) as trained:
        return [list(maker.seen(extractor, batch.kinds)) for extractor in trained]


# All models of a case.


class Shadows:
    """The models that a case is compared with: made, looked at, and their answers kept.

    Parameters
    ----------
    case
        What is audited.
    device
        Where networks are trained; None for the best there is.
    folder
        Where views are kept; None keeps them in memory alone.
    progress
        Called with how many models are made.
    engine
        Whose workers make the models; None for this process.
    """

    def __init__(
        self, case: Case, device: str | None = None, folder: Path | None = None, progress: Progress | None = None,
        engine: Engine | None = None,
    ) -> None:  # fmt: skip
        self.case, self.folder, self.progress, self.engine = case, folder, progress, engine
        self.place = device_on(engine, device)
        self.maker = Maker.of(case, self.here)

    @property
    def here(self) -> str:
        """The device on which this process embeds records: that of training, unless only workers have it."""
        return str(self.place) if self.place.type == "cpu" or torch.cuda.is_available() else "cpu"

    def views(self, wanted: Sequence[Wanted]) -> dict[str, list[View]]:
        """Look at each kind of model for each seed, by kind: from the disk, or from training."""
        batches = [batch for kinds, seeds in wanted for batch in self.batches(kinds, seeds)]
        left = [replace(batch, seeds=tuple(self.missing(batch))) for batch in batches]
        total = sum(len(batch.seeds) for batch in batches)
        done = total - sum(len(batch.seeds) for batch in left)
        made = dict[tuple[int, str], View]()
        tell = self.progress or (lambda what, done, total: None)
        tell("models", done, total)
        for seed, views in self.made([batch for batch in left if batch.seeds]):
            for kind, view in views:
                self.keep(seed, kind, view)
                made[seed, kind] = view
            done += 1
            tell("models", done, total)
        found: dict[str, list[View]] = {kind: [] for kind in (BEFORE, KEPT, RETRAINED)}
        for kinds, seeds in wanted:
            for kind in kinds:
                found[kind] += [made.get((seed, kind)) or self.read(seed, kind) for seed in seeds]
        return found

    def batches(self, kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[Batch]:
        """Divide models into batches. Without forgotten core records, all kinds of one seed share an extractor."""
        size = AT_ONCE if self.engine is None or self.place.type == "cuda" else 1
        for core in dict.fromkeys(map(self.maker.core_of, kinds)):
            group = tuple(kind for kind in kinds if self.maker.core_of(kind) == core)
            for first in range(0, len(seeds), size):
                yield Batch(tuple(seeds[first : first + size]), group, core)

    def missing(self, batch: Batch) -> list[int]:
        """The seeds of which some model is not on the disk yet."""
        if self.folder is None:
            return [*batch.seeds]
        return [seed for seed in batch.seeds if not all(self.path(seed, kind).exists() for kind in batch.kinds)]

    def made(self, batches: Sequence[Batch]) -> Iterator[tuple[int, Iterable[tuple[str, View]]]]:
        """Yield the answers of each seed's models as soon as they are made, here or by an engine's workers."""
        if self.engine is None:
            for batch in batches:
                with closing(self.maker.train(batch.core, batch.seeds)) as trained:
                    for seed, extractor in zip(batch.seeds, trained, strict=True):
                        yield seed, self.maker.seen(extractor, batch.kinds)
            return
        place = str(self.place)
        maker = replace(self.maker, device=place, blueprint=replace(self.maker.blueprint, device=place))
        with closing(self.engine.map(make_in_worker, batches, maker)) as done:
            for batch, made in zip(batches, done, strict=True):
                yield from zip(batch.seeds, made, strict=True)

    # The model in question, and what it is compared with

    def own(self, model: MaxRR) -> View:
        """Return the answers of the audited model."""
        if not self.case.touches_core:
            return self.said(model)
        maker, extractor = self.maker, self.case.fitted.extractor
        features, test = maker.features(extractor, maker.everything), maker.features(extractor, maker.test)
        whole = maker.fit(features, np.arange(len(maker.everything)))
        return replace(self.said(model), relearned=maker.relearned(whole, features, test))

    def said(self, model: MaxRR) -> View:
        """Return the probabilities that the audited model gives."""
        case, fitted, maker = self.case, self.case.fitted, self.maker
        parts = (case.forgotten, case.retained.select(case.retained.ids[case.sample]), case.test)
        return View(*(maker.wide(model.predict_proba(part), fitted.codes) for part in parts))

    @property
    def again(self) -> Wanted:
        """The models to make with the recorded seed: the one before the request, and the one retrained without the
        records.
        """
        return (BEFORE, RETRAINED), [self.case.fitted.blueprint.seed]

    # Views on the disk

    def path(self, seed: int, kind: str) -> Path:
        """The file of a view."""
        assert self.folder is not None
        return self.folder / f"{kind}-{seed}.npz"

    def keep(self, seed: int, kind: str, view: View) -> None:
        """Write a view, where there is a folder."""
        if self.folder is not None:
            said = {part.name: getattr(view, part.name) for part in fields(view)}
            arrays = {name: values for name, values in said.items() if values is not None}
            write_arrays(self.path(seed, kind), arrays, private=True)

    def read(self, seed: int, kind: str) -> View:
        """Read a view that an interrupted audit has kept."""
        arrays = read_arrays(self.path(seed, kind))
        if not {"forgotten", "retained", "test"} <= arrays.keys() <= {part.name for part in fields(View)}:
            raise damaged(self.path(seed, kind), "it holds no answers of a model")
        return View(**arrays)
