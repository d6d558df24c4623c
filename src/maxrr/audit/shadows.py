"""Models to compare with: some that had the records, some that were trained without them, each from its own seed.

A model is looked at as soon as it is made, and only what it says of the records is kept. Networks that saw forgotten
records are never written to a disk.
"""

import io
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.audit.case import Case, side_by_side
from maxrr.audit.model_progress import ModelProgress
from maxrr.audit.pools import ShadowPool
from maxrr.audit.probing import margins, membership
from maxrr.audit.threshold import folds_of, platt_by
from maxrr.data import Dataset
from maxrr.files import write_atomically
from maxrr.nets.records import chosen_device
from maxrr.nets.seeding import stream
from maxrr.nets.side_by_side import joined
from maxrr.svm import LinearSVM, PlattScaling
from maxrr.svm.arrays import wide
from maxrr.unlearning import MaxRR, flat_heads
from maxrr.unlearning.blueprint import numbered

Floats = NDArray[np.float64]
SHADOWS = 11  # the stream below the model's seed that gives those of shadow models
PROBED = 2_000  # core records, and as many test records, that a probe for membership learns from
AT_ONCE = 32  # networks that are trained together, and lost together when interrupted

BEFORE = "before"  # with the records in extractor and heads
KEPT = "kept"  # with the records in the extractor, and heads fitted again without them
RETRAINED = "retrained"  # without the records
ON_ALL = "all"  # the same with an extractor that saw all the others, core or not

Purpose = Literal["with", "without", "pilot with", "pilot without"]


@dataclass(frozen=True, eq=False)
class View:
    """What a model says, and what its extractor does.

    Attributes
    ----------
    forgotten, retained, test
        Probabilities (records × classes) of the forgotten records, of the sample of retained ones, of the test records.
    relearned, probe
        One number for each forgotten record, where extractors may have seen it (`maxrr.audit.probing`): its margin in a
        head on the same extractor that is fitted with it; what a probe for membership says of its features.
    """

    forgotten: Floats
    retained: Floats
    test: Floats
    relearned: Floats | None = None
    probe: Floats | None = None


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
        self.device = device
        self.folder = folder
        self.progress = progress
        self.held = 0 if case.held_out is None else len(case.held_out)
        self.tested = case.test if case.held_out is None else side_by_side(case.held_out, case.test)
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    # Whole models

    def views(self, kinds: Sequence[str], seeds: Sequence[int]) -> Iterator[tuple[int, str, View]]:
        """Each kind of model for each seed. Where no forgotten record was core, kinds of a seed share an extractor."""
        with_them = [kind for kind in kinds if kind != RETRAINED or not self.case.touches_core]
        without_them = [kind for kind in kinds if kind not in with_them]
        for group, core in ((with_them, self.case.core_before), (without_them, self.case.core_after)):
            for first in range(0, len(seeds) if group else 0, AT_ONCE):
                yield from self.make(group, core, seeds[first : first + AT_ONCE])

    def make(
        self, kinds: Sequence[str], core: NDArray[Any], seeds: Sequence[int]
    ) -> Iterator[tuple[int, str, View]]:  # fmt: skip
        """The same for one core: from the disk, or from training."""
        left = [seed for seed in seeds if not all(self.kept(seed, kind) for kind in kinds)]
        trained = self.extractors(core, left) if left else iter(())
        for seed in seeds:
            if seed not in left:
                yield from ((seed, kind, self.read(seed, kind)) for kind in kinds)
            else:
                _, extractor = next(trained)
                for kind, view in self.seen(extractor, kinds):
                    self.keep(seed, kind, view)
                    yield seed, kind, view
            self.tell()

    def extractors(self, core: NDArray[Any], seeds: Sequence[int]) -> Iterator[tuple[int, nn.Module]]:
        """Trained on these core records, one for each seed."""
        blueprint = self.case.fitted.blueprint
        records = self.case.everything.select(core)
        pool = self.pool if np.array_equal(core, self.case.core_after) else None  # none that saw the forgotten
        known = {} if pool is None else pool.known(blueprint, numbered(records))
        left = [seed for seed in seeds if seed not in known]
        trained = self.train(records, left) if left else iter(())
        for seed in seeds:
            if seed not in known:
                extractor = next(trained)
                if pool is None:
                    yield seed, extractor
                    continue
                known[seed] = extractor
            yield seed, known[seed]

    def train(self, core: Dataset, seeds: Sequence[int]) -> Iterator[nn.Module]:
        """The same, trained now. Of several shards one after the other is trained, for all seeds."""
        blueprint = self.case.fitted.blueprint
        sharding = blueprint.sharding
        told = None if self.progress is None else self.progress.training(len(seeds))
        if sharding.count == 1:
            return blueprint.extractors(core, seeds, self.device, told)
        shard, parts = sharding.of(core.ids), []
        for number in range(sharding.count):
            own = [sharding.seed(seed, number) for seed in seeds]
            parts.append(list(blueprint.extractors(core.select(core.ids[shard == number]), own, self.device, told)))
        return map(joined, zip(*parts, strict=True))

    def seen(self, extractor: nn.Module, kinds: Sequence[str]) -> Iterator[tuple[str, View]]:
        """What models on this extractor say: with the forgotten records in the heads, or without."""
        everything = self.case.everything
        features = self.features(extractor, everything)
        test = self.features(extractor, self.tested)
        gone, rows = everything.rows(self.case.forgotten.ids), np.arange(len(everything))
        kept = np.setdiff1d(rows, gone)
        whole = self.fit(features, everything, rows) if BEFORE in kinds or self.case.touches_core else None
        probed = self.probe(whole, features, test)
        if BEFORE in kinds:
            assert whole is not None
            yield BEFORE, replace(self.view(whole, features, everything, rows, test), **probed)
        if any(kind != BEFORE for kind in kinds):
            with flat_heads.quietly():
                svm = self.fit(features, everything, kept) if whole is None else whole.without(gone)
            view = replace(self.view(svm, features, everything, kept, test), **probed)
            yield from ((kind, view) for kind in kinds if kind != BEFORE)

    def probe(self, whole: LinearSVM | None, features: Any, test: Any) -> dict[str, Floats]:
        """What features give away of the forgotten records, if the extractor may have seen these."""
        case = self.case
        if whole is None or not case.touches_core:
            return {}
        everything = case.everything
        gone = everything.rows(case.forgotten.ids)
        core = everything.rows(case.core_after)
        members = core[np.random.default_rng(0).permutation(len(core))[:PROBED]]
        apart = test[self.held :][:PROBED]
        sides = [(in_memory(features[part]), everything.labels[part]) for part in (members, gone)]
        others = in_memory(apart), case.test.labels[:PROBED]
        mine = margins(scores(whole, features[gone]), everything.labels[gone], whole.classes_)
        level = float(np.mean(margins(scores(whole, apart), others[1], whole.classes_)))
        return {"relearned": mine - level, "probe": membership(sides[0], others, sides[1])}

    def view(self, svm: LinearSVM, features: Any, everything: Dataset, fitted_on: NDArray[np.int64], test: Any) -> View:
        """What the heads say of the records, as probabilities by Platt scaling."""
        gone = everything.rows(self.case.forgotten.ids)
        sample = everything.rows(self.case.retained.ids[self.case.sample])
        held, apart = (test[: self.held], test[self.held :]) if self.held else (None, test)
        scaling = self.scaling(
            svm, svm.rows_, features[fitted_on], everything.labels[fitted_on], everything.ids[fitted_on], held
        )  # fmt: skip
        parts = (features[gone], features[sample], apart)
        return View(*(self.wide(scaling.probabilities(scores(svm, part)), svm.classes_) for part in parts))

    def scaling(
        self, svm: LinearSVM, rows: NDArray[np.int64], features: Any, labels: NDArray[Any], ids: NDArray[Any], held: Any
    ) -> PlattScaling:
        """Platt scaling of the heads, as the case says, from the rows they were fitted on, in any order."""
        held_labels = None if self.case.held_out is None else self.case.held_out.labels
        apart = None
        if self.case.platt == "cross-validated":
            folds = folds_of(ids)
            apart = np.empty((len(ids), len(svm.certificate_)))
            for fold in np.unique(folds):
                inside = np.flatnonzero(folds == fold)
                other = svm.without(rows[inside])
                if not np.array_equal(other.classes_, svm.classes_):
                    raise ValueError("a class has too few records for cross-validated Platt scaling: use another")
                apart[inside] = scores(other, features[inside]).reshape(len(inside), -1)
        return platt_by(
            self.case.platt, scores(svm, features), labels, svm.classes_,
            held_out_scores=None if held is None else scores(svm, held), held_out_labels=held_labels,
            out_of_fold_scores=apart,
        )  # fmt: skip

    def wide(self, probabilities: Floats, classes: NDArray[Any]) -> Floats:
        """Columns for every class, those without a head with 0."""
        full = np.zeros((len(probabilities), len(self.case.test.class_names)))
        full[:, classes] = probabilities
        return full

    def features(self, extractor: nn.Module, records: Dataset) -> Any:
        """Where the solver works: on the device, or in main memory."""
        found = self.case.fitted.blueprint.embed(extractor, records)
        place = chosen_device(self.device)
        return torch.from_numpy(found).to(place) if place.type == "cuda" else found

    def fit(self, features: Any, records: Dataset, rows: NDArray[np.int64]) -> LinearSVM:
        """A head on some of the records."""
        with flat_heads.quietly():
            blueprint = self.case.fitted.blueprint
            weights = blueprint.weights_of(records)
            some = None if weights is None else weights[rows]
            return LinearSVM(C=blueprint.C).fit(features[rows], records.labels[rows], sample_weight=some)

    # The model in question, and what it is compared with

    def own(self, model: MaxRR) -> View:
        """What the audited model says."""
        return replace(self.said(model), **self.probe_own())

    def probe_own(self) -> dict[str, Floats]:
        if not self.case.touches_core:
            return {}
        everything, extractor = self.case.everything, self.case.fitted.extractor
        features, test = self.features(extractor, everything), self.features(extractor, self.tested)
        return self.probe(self.fit(features, everything, np.arange(len(everything))), features, test)

    def said(self, model: MaxRR) -> View:
        """Its probabilities."""
        case, fitted = self.case, self.case.fitted
        parts = (case.forgotten, case.retained.select(case.retained.ids[case.sample]), case.test)
        if case.platt == "retained":  # which is what the model does itself
            return View(*(self.wide(model.predict_proba(part), fitted.codes) for part in parts))
        rows = fitted.in_order()
        features = wide(fitted.heads.features_of(rows))
        held = None if case.held_out is None else fitted.blueprint.embed(fitted.extractor, case.held_out)
        labels, ids = fitted.records.labels[rows], fitted.records.ids[rows]
        scaling = self.scaling(fitted.heads, rows, features, labels, ids, held)
        decisions = (np.asarray(model.decision_function(part)) for part in parts)
        return View(*(self.wide(scaling.probabilities(values), fitted.codes) for values in decisions))

    def rebuilt(self) -> dict[str, View]:
        """By the recorded seed: the model before, the one retrained without the records, and one on all the rest."""
        case, seed = self.case, self.case.fitted.blueprint.seed
        found = {kind: view for _, kind, view in self.views((BEFORE, RETRAINED), [seed])}
        if not self.kept(seed, ON_ALL):
            ((_, extractor),) = self.extractors(case.retained.ids, [seed])
            ((_, view),) = self.seen(extractor, [RETRAINED])
            self.keep(seed, ON_ALL, view)
        else:
            view = self.read(seed, ON_ALL)
        self.tell()
        return {**found, ON_ALL: view}

    def tell(self) -> None:
        if self.progress is not None:
            self.progress.one_more()

    # Views on the disk

    def path(self, seed: int, kind: str) -> Path:
        assert self.folder is not None
        return self.folder / f"{kind}-{seed}.npz"

    def kept(self, seed: int, kind: str) -> bool:
        return self.folder is not None and self.path(seed, kind).exists()

    def keep(self, seed: int, kind: str, view: View) -> None:
        if self.folder is None:
            return
        content = io.BytesIO()
        said = {part.name: getattr(view, part.name) for part in fields(view)}
        np.savez(content, **{name: values for name, values in said.items() if values is not None})
        write_atomically(self.path(seed, kind), content.getvalue(), private=True)

    def read(self, seed: int, kind: str) -> View:
        path = self.path(seed, kind)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                return View(**{name: stored[name] for name in stored.files})
        except (zipfile.BadZipFile, zlib.error, ValueError, LookupError, TypeError, OSError, EOFError) as error:
            raise ValueError(f"{path} is damaged ({error}): delete it, and the model is made again") from error


def scores(svm: LinearSVM, features: Any) -> Floats:
    """Decision values in main memory."""
    return in_memory(svm.decision_function(features))


def in_memory(values: Any) -> Floats:
    """From wherever they are."""
    return np.asarray(values.cpu() if isinstance(values, torch.Tensor) else values, dtype=np.float64)
