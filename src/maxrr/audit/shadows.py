"""Models to compare with: some that had the records, some that were trained without them, each from its own seed.

A model is looked at as soon as it is made, and only what it says of the records is kept. Networks that saw forgotten
records are never written to a disk.
"""

import hashlib
import io
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from torch import nn

from maxrr.audit.case import Case
from maxrr.audit.comparison_models import BEFORE, KEPT, ON_ALL, RETRAINED, Batch, Maker, View, make_in_worker
from maxrr.audit.roc import Floats
from maxrr.data import Dataset
from maxrr.files import write_atomically
from maxrr.nets.seeding import stream
from maxrr.parallel import Engine
from maxrr.parallel.engine import completed, of_seeds
from maxrr.progress import Progress
from maxrr.unlearning import MaxRR
from maxrr.unlearning.blueprint import Blueprint, numbered

# Extractors that several audits of one model compare with.
#
# Models retrained without the records stand on extractors that were trained on the core which is left: the same for
# every request that the model has answered so far. So they are trained once. They are kept in memory alone. None saw a
# record that was forgotten before; an audit with another core drops them all. When core records are forgotten and no
# audit follows, drop the pool: its extractors saw these records.
#
# Audits that share them have p-values which hold for each by itself, and which are not independent: an odd pool errs in
# all of them together.


class ShadowPool:
    """Extractors without the forgotten records, for several audits of one model: hand the same pool to all of them.

    Examples
    --------
    >>> pool = ShadowPool()
    >>> len(pool)
    0
    """

    def __init__(self) -> None:
        self._of: str | None = None
        self._extractors: dict[int, nn.Module] = {}

    def __len__(self) -> int:
        return len(self._extractors)

    def known(self, blueprint: Blueprint, core: Dataset) -> dict[int, nn.Module]:
        """The extractors that were trained on these core records. Those of other records are dropped.

        Parameters
        ----------
        blueprint
            How the model's extractor is trained.
        core
            The core records.

        Returns
        -------
        dict of int to torch.nn.Module
            Extractors by seed. What a caller adds is kept for the next audit.
        """
        facts: tuple[str, ...] = (
            core.content_hash(),
            str(blueprint.recipe.facts),
            str(blueprint.network),
            str(blueprint.given),
        )
        facts += (str(blueprint.sharding.count), blueprint.sharding.key.hex()) if blueprint.sharding.count > 1 else ()
        of = hashlib.sha256("\n".join(facts).encode()).hexdigest()
        if of != self._of:
            self._of, self._extractors = of, {}
        return self._extractors


# How far an audit is: how many of its models are made and looked at, on one bar from the first to the last.


class ModelProgress:
    """Counts models, and passes on what is heard from those in training.

    Parameters
    ----------
    progress : Progress or None
        Who wants to know.
    models : int
        How many models there will be.
    """

    def __init__(self, progress: Progress | None, models: int) -> None:
        self.progress = progress
        self.models = models
        self.made = 0
        self.tell()

    def one_more(self) -> None:
        """A model is made and was looked at."""
        self.made += 1
        self.tell()

    def training(self, networks: int) -> Progress | None:
        """What training so many networks together is to call: it does not finish models, but shows that it goes on."""
        before = self.made

        def told(what: str, done: int, total: int, **numbers: float) -> None:
            self.tell(trained=before + networks * done / total, **numbers)

        return None if self.progress is None else told

    def tell(self, **numbers: float) -> None:
        if self.progress is not None:
            self.progress("models", self.made, self.models, **numbers)


__all__ = ["BEFORE", "KEPT", "ON_ALL", "RETRAINED", "Shadows", "View", "shadow_seeds"]

SHADOWS = 11  # the stream below the model's seed that gives those of shadow models
AT_ONCE = 32  # networks that are trained together, and lost together when interrupted

Purpose = Literal["with", "without", "pilot with", "pilot without"]


def shadow_seeds(seed: int, count: int, purpose: Purpose = "without") -> list[int]:
    """Seeds of shadow models. None is the model's own. A longer list begins with the shorter one.

    No two purposes share a seed: a retrained model with a twin among those that had the records would be scored by
    that twin, and the audited model by none.
    """
    number = get_args(Purpose).index(purpose)
    numbers: list[int] = stream(seed, SHADOWS, number).generate_state(count, np.uint64).tolist()
    return numbers


class Shadows:
    """Makes the models of a case and looks at them.

    Parameters
    ----------
    case : Case
        What is audited.
    device : optional
        Where networks are trained.
    folder : optional
        Where views are kept, to go on from there after an interruption. They hold probabilities, no records.
    progress : optional
        Told of each model that is made.
    pool : optional
        Extractors that other audits of the same model have trained.
    """

    def __init__(
        self, case: Case, device: str | None, folder: Path | None, progress: ModelProgress | None,
        pool: ShadowPool | None = None,
    ) -> None:  # fmt: skip
        self.case = case
        self.pool = pool
        self.folder = folder
        self.progress = progress
        self.maker = Maker.of(case, device)
        self.ready: dict[tuple[int, str], View] = {}  # by the workers of an engine
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    # Whole models

    def views(self, kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[int, str, View]]:
        """Each kind of model for each seed. Where no forgotten record was core, kinds of a seed share an extractor."""
        for batch in self.batches(kinds, seeds, AT_ONCE):
            yield from self.make(batch)

    def batches(self, kinds: Sequence[str], seeds: Sequence[int], size: int) -> Iterator[Batch]:
        """The same in parts, of so many extractors at most."""
        for core in dict.fromkeys(map(self.maker.core_of, kinds)):
            group = tuple(kind for kind in kinds if self.maker.core_of(kind) == core)
            for first in range(0, len(seeds), size):
                yield Batch(tuple(seeds[first : first + size]), group, core)

    def make(self, batch: Batch) -> Iterator[tuple[int, str, View]]:
        """The models of a batch: from the disk, or from training."""
        left = self.missing(batch)
        with closing(self.extractors(batch.core, left)) as trained:
            for seed in batch.seeds:
                if seed not in left:
                    yield from ((seed, kind, self.read(seed, kind)) for kind in batch.kinds)
                else:
                    for kind, view in self.maker.seen(next(trained), batch.kinds):
                        self.keep(seed, kind, view)
                        yield seed, kind, view
                self.tell()

    def missing(self, batch: Batch) -> list[int]:
        """The seeds of which some model is not there yet."""
        return [seed for seed in batch.seeds if not all(self.kept(seed, kind) for kind in batch.kinds)]

    def extractors(self, core: str, seeds: Sequence[int]) -> Generator[nn.Module]:
        """Trained on the records of this core, one for each seed."""
        if not seeds:
            return
        pool = self.pool
        if not np.array_equal(self.maker.cores[core], self.maker.cores[RETRAINED]):
            pool = None  # none that saw the forgotten
        blueprint, known = self.case.fitted.blueprint, dict[int, nn.Module]()
        if pool is not None:
            known = pool.known(blueprint, numbered(self.maker.records_of(core)))
        left = [seed for seed in seeds if seed not in known]
        told = None if self.progress is None else self.progress.training(len(left))
        with closing(self.maker.train(core, left, told)) as trained:
            for seed in seeds:
                if seed in known:
                    yield known[seed]
                    continue
                extractor = next(trained)
                if pool is not None:
                    known[seed] = extractor
                yield extractor

    # The same by the workers of an engine

    def prepare(
        self, engine: Engine, place: torch.device, wanted: Iterable[tuple[Sequence[str], Sequence[int]]]
    ) -> None:
        """Let workers make these kinds of models for these seeds, before any is asked for.

        What one says is kept as soon as it is known. What has failed is raised last if there is a folder for the rest.
        """
        size = AT_ONCE if place.type == "cuda" else 1
        whole = [batch for kinds, seeds in wanted for batch in self.batches(kinds, seeds, size)]
        left = [replace(batch, seeds=tuple(self.missing(batch))) for batch in whole]
        for _ in range(sum(len(batch.seeds) for batch in whole) - sum(len(batch.seeds) for batch in left)):
            self.tell()
        left = [batch for batch in left if batch.seeds]
        with closing(
            completed(
                engine,
                make_in_worker,
                left,
                self.maker.on(place),
                kept=self.folder is not None,
                purpose=lambda batch: of_seeds(batch.seeds),
            )
        ) as done:
            for batch, made in done:
                for seed, views in zip(batch.seeds, made, strict=True):
                    for kind, view in views:
                        self.keep(seed, kind, view)
                        self.ready[seed, kind] = view
                    self.tell()
        self.progress = None  # all has been told

    # The model in question, and what it is compared with

    def own(self, model: MaxRR) -> View:
        """What the audited model says."""
        return replace(self.said(model), **self.probe_own())

    def probe_own(self) -> dict[str, Floats]:
        if not self.case.touches_core:
            return {}
        maker, extractor = self.maker, self.case.fitted.extractor
        features, test = maker.features(extractor, maker.everything), maker.features(extractor, maker.test)
        return maker.probe(maker.fit(features, np.arange(len(maker.everything))), features, test)

    def said(self, model: MaxRR) -> View:
        """Its probabilities."""
        case, fitted, maker = self.case, self.case.fitted, self.maker
        parts = (case.forgotten, case.retained.select(case.retained.ids[case.sample]), case.test)
        return View(*(maker.wide(model.predict_proba(part), fitted.codes) for part in parts))

    @property
    def again(self) -> tuple[tuple[str, ...], list[int]]:
        """What is made by the recorded seed."""
        return (BEFORE, RETRAINED, ON_ALL), [self.case.fitted.blueprint.seed]

    def rebuilt(self) -> dict[str, View]:
        """By the recorded seed: the model before, the one retrained without the records, and one on all the rest."""
        return {kind: view for _, kind, view in self.views(*self.again)}

    def tell(self) -> None:
        if self.progress is not None:
            self.progress.one_more()

    # Views on the disk

    def path(self, seed: int, kind: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{kind}-{seed}.npz"

    def kept(self, seed: int, kind: str) -> bool:
        return (seed, kind) in self.ready or (self.folder is not None and self.path(seed, kind).exists())

    def keep(self, seed: int, kind: str, view: View) -> None:
        if self.folder is None:
            return
        content = io.BytesIO()
        said = {part.name: getattr(view, part.name) for part in fields(view)}
        np.savez(content, **{name: values for name, values in said.items() if values is not None})
        write_atomically(self.path(seed, kind), content.getvalue(), private=True)

    def read(self, seed: int, kind: str) -> View:
        if (seed, kind) in self.ready:
            return self.ready[seed, kind]
        path = self.path(seed, kind)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                return View(**{name: stored[name] for name in stored.files})
        except (zipfile.BadZipFile, zlib.error, ValueError, LookupError, TypeError, OSError, EOFError) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it, and the model is made again") from error


# How many models of which kind an audit makes.


LEAST, HALF = 8, 4  # shadow models, and of them with the records
SHARE = 0.39  # of them have the records: of 64 these are 25, and among 39 others a p of 0.05 is two ranks of forty


@dataclass(frozen=True)
class ShadowCounts:
    """Shadow models by kind, and all networks that are trained: theirs, and those made again with the recorded seed."""

    with_records: int
    retrained: int
    networks: int

    @classmethod
    def of(cls, shadows: int, core_touched: bool) -> "ShadowCounts":
        with_records = max(HALF, round(SHARE * shadows))
        again = 3 if core_touched else 2  # before the request, without the records, and on all others
        return cls(with_records, shadows - with_records, shadows + again)

    def wanted(self, case: Case, pilot: bool = False) -> Iterator[tuple[tuple[str, ...], list[int]]]:
        """The kinds of models to make, and from which seeds. A pilot has seeds of its own."""
        seed = case.fitted.blueprint.seed
        remembering = (BEFORE, KEPT) if case.touches_core else (BEFORE,)
        kinds: list[tuple[tuple[str, ...], int, Purpose]] = [
            (remembering, self.with_records, "pilot with" if pilot else "with"),
            ((RETRAINED,), self.retrained, "pilot without" if pilot else "without"),
        ]
        for made, count, purpose in kinds:
            yield made, shadow_seeds(seed, count, purpose)

    def make(self, maker: Shadows, pilot: bool = False) -> dict[str, list[View]]:
        """What all these models say, by kind. Where no record was core, none of them kept any in its extractor."""
        views: dict[str, list[View]] = {kind: [] for kind in (BEFORE, KEPT, RETRAINED)}
        for kinds, seeds in self.wanted(maker.case, pilot):
            for _, kind, view in maker.views(kinds, seeds):
                views[kind].append(view)
        return views
