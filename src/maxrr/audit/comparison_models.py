"""How a model to compare with is made and looked at: by this process, or by a worker elsewhere.

A worker gets the records, and how the audited model was made; nothing else of that model, and no key.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.audit.attacks import margins, membership
from maxrr.audit.case import Case, Ints
from maxrr.audit.roc import Floats
from maxrr.data import Dataset
from maxrr.nets.extractors import joined
from maxrr.nets.inputs import chosen_device
from maxrr.progress import Progress
from maxrr.svm import LinearSVM, fit_platt
from maxrr.unlearning import flat_heads
from maxrr.unlearning.blueprint import Blueprint

PROBED = 2_000  # core records, and as many test records, that a probe for membership learns from

BEFORE = "before"  # with the records in extractor and heads
KEPT = "kept"  # with the records in the extractor, and heads fitted again without them
RETRAINED = "retrained"  # without the records
ON_ALL = "all"  # the same with an extractor that saw all the others, core or not


@dataclass(frozen=True, eq=False)
class View:
    """What a model says, and what its extractor does.

    Attributes
    ----------
    forgotten, retained, test
        Probabilities (records × classes) of the forgotten records, of the sample of retained ones, of the test records.
    relearned, probe
        One number for each forgotten record, where extractors may have seen it (`maxrr.audit.attacks`): its margin in a
        head on the same extractor that is fitted with it; what a probe for membership says of its features.
    """

    forgotten: Floats
    retained: Floats
    test: Floats
    relearned: Floats | None = None
    probe: Floats | None = None


@dataclass(frozen=True)
class Batch:
    """Models to make: these kinds of each seed, on extractors that are trained on one core."""

    seeds: tuple[int, ...]
    kinds: tuple[str, ...]
    core: str  # the kind of model whose core it is


@dataclass(frozen=True, eq=False)
class Maker:
    """Makes models and looks at them."""

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
        """For the models of a case."""
        everything = case.everything
        cores = {BEFORE: case.core_before, RETRAINED: case.core_after, ON_ALL: case.retained.ids}
        return cls(
            case.fitted.blueprint.without_key(), everything, case.fitted.blueprint.sharding.of(everything.ids),
            everything.rows(case.forgotten.ids), everything.rows(case.retained.ids[case.sample]),
            {kind: everything.rows(ids) for kind, ids in cores.items()}, case.touches_core,
            case.test, device,
        )  # fmt: skip

    def core_of(self, kind: str) -> str:
        """The kind of model whose core is that of this one: where no forgotten record was core, one core is both."""
        if kind == ON_ALL:
            return ON_ALL
        return RETRAINED if kind == RETRAINED and self.touches_core else BEFORE

    def on(self, place: torch.device) -> "Maker":
        """The same for a worker that trains and embeds there."""
        return replace(self, device=str(place), blueprint=replace(self.blueprint, device=str(place)))

    def records_of(self, core: str) -> Dataset:
        """The records that extractors on this core are trained on."""
        return self.everything.select(self.everything.ids[self.cores[core]])

    def train(self, core: str, seeds: Sequence[int], progress: Progress | None) -> Generator[nn.Module]:
        """Extractors on this core, one for each seed. Of several shards one after the other is trained, for all."""
        if not seeds:
            return
        sharding, records = self.blueprint.sharding, self.records_of(core)
        if sharding.count == 1:
            with closing(self.blueprint.extractors(records, seeds, self.device, progress)) as trained:
                yield from trained
            return
        shard, parts = self.shards[self.cores[core]], []
        for number in range(sharding.count):
            own, mine = [sharding.seed(seed, number) for seed in seeds], records.select(records.ids[shard == number])
            parts.append(list(self.blueprint.extractors(mine, own, self.device, progress)))
        yield from map(joined, zip(*parts, strict=True))

    def seen(self, extractor: nn.Module, kinds: Sequence[str]) -> Iterator[tuple[str, View]]:
        """What models on this extractor say: with the forgotten records in the heads, or without."""
        features = self.features(extractor, self.everything)
        test = self.features(extractor, self.test)
        rows = np.arange(len(self.everything))
        kept = np.setdiff1d(rows, self.gone)
        whole = self.fit(features, rows) if BEFORE in kinds or self.touches_core else None
        probed = self.probe(whole, features, test)
        if BEFORE in kinds:
            assert whole is not None
            yield BEFORE, replace(self.view(whole, features, rows, test), **probed)
        if any(kind != BEFORE for kind in kinds):
            with flat_heads.quietly():
                svm = self.fit(features, kept) if whole is None else whole.without(self.gone)
            view = replace(self.view(svm, features, kept, test), **probed)
            yield from ((kind, view) for kind in kinds if kind != BEFORE)

    def probe(self, whole: LinearSVM | None, features: Any, test: Any) -> dict[str, Floats]:
        """What features give away of the forgotten records, if the extractor may have seen these."""
        if whole is None or not self.touches_core:
            return {}
        labels, core = self.everything.labels, self.cores[RETRAINED]
        members = core[np.random.default_rng(0).permutation(len(core))[:PROBED]]
        apart = test[:PROBED]
        sides = [(in_memory(features[part]), labels[part]) for part in (members, self.gone)]
        others = in_memory(apart), self.test.labels[:PROBED]
        mine = margins(scores(whole, features[self.gone]), labels[self.gone], whole.classes_)
        level = float(np.mean(margins(scores(whole, apart), others[1], whole.classes_)))
        return {"relearned": mine - level, "probe": membership(sides[0], others, sides[1])}

    def view(self, svm: LinearSVM, features: Any, fitted_on: Ints, test: Any) -> View:
        """What the heads say of the records, as probabilities by Platt scaling."""
        scaling = fit_platt(scores(svm, features[fitted_on]), self.everything.labels[fitted_on], svm.classes_)
        parts = (features[self.gone], features[self.sample], test)
        return View(*(self.wide(scaling.probabilities(scores(svm, part)), svm.classes_) for part in parts))

    def wide(self, probabilities: Floats, classes: NDArray[Any]) -> Floats:
        """Columns for every class, those without a head with 0."""
        full = np.zeros((len(probabilities), len(self.test.class_names)))
        full[:, classes] = probabilities
        return full

    def features(self, extractor: nn.Module, records: Dataset) -> Any:
        """Where the solver works: on the device, or in main memory."""
        found = self.blueprint.embed(extractor, records)
        place = chosen_device(self.device)
        return torch.from_numpy(found).to(place) if place.type == "cuda" else found

    def fit(self, features: Any, rows: Ints) -> LinearSVM:
        """Heads on some of the records."""
        with flat_heads.quietly():
            weights = self.blueprint.weights_of(self.everything)
            some = None if weights is None else weights[rows]
            return LinearSVM(C=self.blueprint.C).fit(features[rows], self.everything.labels[rows], sample_weight=some)


def make_in_worker(batch: Batch, maker: Maker) -> list[list[tuple[str, View]]]:
    """What a worker does for some seeds: one, or those that step together on its graphics processor."""
    with closing(maker.train(batch.core, batch.seeds, None)) as trained:
        return [list(maker.seen(extractor, batch.kinds)) for extractor in trained]


def scores(svm: LinearSVM, features: Any) -> Floats:
    """Decision values in main memory."""
    return in_memory(svm.decision_function(features))


def in_memory(values: Any) -> Floats:
    """From wherever they are."""
    return np.asarray(values.cpu() if isinstance(values, torch.Tensor) else values, dtype=np.float64)
