"""How often audits find what is left of forgotten records: LeNet-5 on Fashion-MNIST, the paper's core and one by hash.

    python benchmarks/audit.py --device cuda --out benchmarks/audit.json

For each core two requests of 1,000 records, drawn without looking at any model that is audited: core records, and
records outside the core. Twenty models for each guarantee, and twenty to which nothing was done, are audited by the
library's attacks and rule, and by three more attacks that are made here, beside one pool of shadow models: 25 that have
the records and 39 that do not. All networks have seeds of their own. Found-rates have 95 % intervals over the audited
models; the pool is the same for all of them.
"""

import argparse
import json
import platform
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab.heads import Heads
from lab.lab import Features, Lab
from lab.profiles import PROFILES
from maxrr.audit import attacks as library
from maxrr.audit.attacks import Evidence, Labels, Signals, View, auc, interval, lira, logit, margins, roc, tpr_at
from maxrr.audit.findings import is_found
from maxrr.core import HashCore
from maxrr.nets.seeding import stream
from maxrr.parallel.engine import Threads, single_threaded_blas
from maxrr.progress import Line
from maxrr.svm import fit_platt
from maxrr.svm.arrays import to_numpy

CORES = ("hash", "frequency")
WITH, WITHOUT, AUDITED = 25, 39, 20
ABOUT = "about"
AUDITS = 12  # the stream below the seed that gives those of these models
HEAD_ATTACKS = ("lira", "lira-logit", "rmia", "threshold", "loss")
ATTACKS = (*HEAD_ATTACKS, "features", "probe")
SAMPLE = 2_000  # retained records that the threshold attack compares with, and as many for the probe


@dataclass(frozen=True, eq=False)
class Seen(Signals):
    """What the library's attacks look at, and more of these: logits less those of test records, and a probe's."""

    logits: NDArray[np.float64] | None = None
    probe: NDArray[np.float64] | None = None


def scores_of(evidence: Evidence, attack: str, target: Seen, without: int | None = None) -> NDArray[np.float64]:
    """Scores of a model and of the retrained ones, by an attack of the library or one of this benchmark."""
    rows: list[Any] = [target, *evidence.retrained]
    if attack == "loss":
        return -np.stack([model.losses for model in rows])
    if attack == "probe":
        return np.stack([model.probe for model in rows])
    if attack == "lira-logit":
        seen: list[Any] = [model for number, model in enumerate(evidence.remembering) if number != without]
        return lira(np.stack([model.logits for model in rows]), np.stack([model.logits for model in seen]))
    return evidence.scores(attack, target, without)


Labelled = tuple[NDArray[np.float64], NDArray[np.int64]]  # features (records × features), and labels
RIDGE = 1e-3  # of the mean variance


def membership(members: Labelled, others: Labelled, asked: Labelled) -> NDArray[np.float64]:
    """What a linear probe says that learned to tell members from others, within each class; shape (records,)."""
    X = np.vstack([members[0], others[0]])
    labels = np.concatenate([members[1], others[1]])
    side = np.repeat([1.0, -1.0], [len(members[1]), len(others[1])])
    classes = np.unique(labels)
    means = np.stack([X[labels == label].mean(axis=0) for label in classes])
    X = X - means[np.searchsorted(classes, labels)]
    side = side - side.mean()
    scatter = X.T @ X
    ridge = RIDGE * np.trace(scatter) / len(scatter) + np.finfo(float).tiny
    weights = np.linalg.solve(scatter + ridge * np.eye(len(scatter)), X.T @ side)
    nearest = np.minimum(np.searchsorted(classes, asked[1]), len(classes) - 1)
    known = classes[nearest] == asked[1]  # a class without members has no mean of its own
    centre = np.where(known[:, None], means[nearest], means.mean(axis=0))
    return np.asarray((asked[0] - centre) @ weights)


@dataclass(frozen=True, eq=False)
class Request:
    """Who is forgotten, and what attacks compare with. `core` is None where the request is outside of it."""

    lab: Lab
    ids: NDArray[Any]
    core: NDArray[Any] | None

    @property
    def gone(self) -> NDArray[np.bool_]:
        return self.lab.mask(self.ids)

    @property
    def sample(self) -> NDArray[np.int64]:
        rest = np.flatnonzero(~self.gone)
        return np.sort(np.random.default_rng(0).choice(rest, min(SAMPLE, len(rest)), replace=False))

    @property
    def labels(self) -> Labels:
        training, test = self.lab.training.labels, self.lab.test.labels
        return Labels(training[self.gone], training[self.sample], test)

    def views(
        self, features: Sequence[Features], heads: Iterable[Heads], whole: Iterable[Heads] | None, has_them: bool
    ) -> list[Seen]:  # fmt: skip
        """What attacks look at, of each model; `whole` are heads on the same extractors that have the records."""
        again: Sequence[Heads | None] = [None] * len(features) if whole is None else list(whole)
        models = zip(features, list(heads), again, strict=True)
        with single_threaded_blas():
            return list(Threads().map(lambda model: self.view(*model, has_them), models))

    def view(self, features: Features, heads: Heads, whole: Heads | None, has_them: bool) -> Seen:
        lab, gone = self.lab, self.gone
        scores, test = heads.scores(features.training), heads.scores(features.test)
        fitted = np.ones(len(gone), dtype=bool) if has_them else ~gone
        scaling = fit_platt(scores[fitted], lab.training.labels[fitted], heads.classes)
        said = [scaling.probabilities(part) for part in (scores[gone], scores[self.sample], test)]
        signals = vars(Signals.of(View(*said), self.labels)) | ({} if whole is None else self.probed(features, whole))
        logits = logit(said[0], self.labels.forgotten) - np.mean(logit(said[2], self.labels.test))
        return Seen(**signals | {"logits": logits})

    def probed(self, features: Features, heads: Heads) -> dict[str, Any]:
        """What the extractor gives away, as `maxrr.audit.shadows` has it."""
        lab, gone = self.lab, self.gone
        assert self.core is not None
        core = np.flatnonzero(lab.mask(self.core) & ~gone)
        members = np.random.default_rng(0).permutation(core)[:SAMPLE]
        trained, test = to_numpy(features.training).astype(float), to_numpy(features.test).astype(float)[:SAMPLE]
        labels, others = lab.training.labels, lab.test.labels[:SAMPLE]
        mine = margins(heads.scores(features.training)[gone], labels[gone], heads.classes)
        level = float(np.mean(margins(heads.scores(features.test)[:SAMPLE], others, heads.classes)))
        probe = membership((trained[members], labels[members]), (test, others), (trained[gone], labels[gone]))
        return {"relearned": mine - level, "probe": probe}


def audits(lab: Lab, core: NDArray[Any], number: int) -> dict[str, dict[str, list[Seen]]]:
    """Both requests to models with this core: what attacks see of each model, by request and kind."""
    some_core = lab.draw(core, min(1_000, len(core) // 4), 100 + number)
    some_others = lab.draw(lab.others(core), len(some_core), 200 + number)
    inside, outside = Request(lab, some_core, core), Request(lab, some_others, None)
    alone = WITHOUT + AUDITED
    seeds = stream(lab.seed, AUDITS, number).generate_state(WITH + AUDITED + 2 * alone, np.uint64)
    had, without, other = np.split(seeds, np.cumsum([WITH + AUDITED, alone]))

    def features(seeds: NDArray[np.uint64], records: NDArray[Any]) -> list[Features]:
        return lab.embed(lab.train(seeds.tolist(), lab.training.select(records)))

    saw = features(had, core)
    whole = list(lab.fit_heads(saw, [None] * len(saw)))
    before = inside.views(saw, whole, whole, True)
    moved = inside.views(saw, lab.fit_heads(saw, [~inside.gone] * len(saw)), whole, False)
    outside_before = outside.views(saw[:WITH], whole[:WITH], None, True)
    del saw, whole
    never = features(without, np.setdiff1d(core, some_core))
    relearned = list(lab.fit_heads(never, [None] * len(never)))
    retrained = inside.views(never, lab.fit_heads(never, [~inside.gone] * len(never)), relearned, False)
    del never, relearned
    rest = features(other, core)
    refitted = outside.views(rest, lab.fit_heads(rest, [~outside.gone] * len(rest)), None, False)
    return {
        "core records": {
            "before": before, "kept": moved, "without": retrained,
        },
        "records outside the core": {
            "before": outside_before, "without": refitted,
        },
    }  # fmt: skip


def judged(found: dict[str, list[Seen]]) -> dict[str, Any]:
    """The first models are the pool, the others are audited."""
    before, without = found["before"], found["without"]
    audited = {"exact-refit": without[WITHOUT:]}
    if "kept" in found:
        audited = {
            "exact-retrain": without[WITHOUT:], "approximate-refit": found["kept"][WITH:],
            "nothing done": before[WITH:],
        }  # fmt: skip
    remembering = found.get("kept", before)[:WITH]
    attacks = ATTACKS if "kept" in found else HEAD_ATTACKS
    return rates(attacks, Evidence(remembering, without[:WITHOUT]), before[:WITH], audited)


def rates(
    attacks: Sequence[str], evidence: Evidence, before: list[Seen], audited: dict[str, list[Seen]]
) -> dict[str, Any]:  # fmt: skip
    """For each attack how many models of each guarantee are found, its power, and what it recognises."""
    found: dict[str, Any] = {"records": len(before[0].losses), "attacks": {}}
    for attack in attacks:
        facts: dict[str, Any] = {}
        for name, models in audited.items():
            scores = [scores_of(evidence, attack, model) for model in models]
            curves = [roc(one[0], one[1:].ravel()) for one in scores]
            facts[name] = counted([library.values_to_rank(attack, one) for one in scores]) | {
                "AUC": float(np.mean([auc(one[0], one[1:].ravel()) for one in scores])),
                "TPR at 0.1 %": float(np.mean([tpr_at(curve, 0.001) for curve in curves])),
            }
        for name, models in (("power", evidence.remembering), ("at most", before)):
            scores = [scores_of(evidence, attack, model, number) for number, model in enumerate(models)]
            facts[name] = counted([library.values_to_rank(attack, one) for one in scores])
        found["attacks"][attack] = facts
    return found


def counted(scores: list[NDArray[np.float64]]) -> dict[str, Any]:
    flagged = sum(map(is_found, scores))
    return {"found": flagged, "of": len(scores), "interval": interval(flagged, len(scores))}


# What was seen, on the disk: the attacks can be repeated without the networks


def stored(found: dict[str, dict[str, list[Seen]]], path: Path) -> None:
    content: dict[str, Any] = {ABOUT: json.dumps(here())}
    for request, kinds in found.items():
        for kind, models in kinds.items():
            for part in fields(Seen):
                values = [getattr(model, part.name) for model in models]
                if values[0] is not None:
                    content[f"{request}/{kind}/{part.name}"] = np.asarray(values, dtype=np.float32)
    np.savez_compressed(path, **content)


def here() -> dict[str, str]:
    """When and where models were made."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu"
    return {
        "date": datetime.now(UTC).date().isoformat(), "machine": platform.machine(), "torch": torch.__version__,
        "device": device,
    }  # fmt: skip


def made(path: Path | None) -> dict[str, str]:
    """The same of models that were made earlier."""
    if path is None or not path.exists():
        return here()
    with np.load(path, allow_pickle=False) as content:
        return dict(json.loads(str(content[ABOUT])))


def read(path: Path) -> dict[str, dict[str, list[Seen]]]:
    found: dict[str, dict[str, list[Seen]]] = {}
    with np.load(path, allow_pickle=False) as content:
        values = {name: content[name].astype(float) for name in content.files if name != ABOUT}
    for place in sorted({name.rpartition("/")[0] for name in values}):
        request, _, kind = place.partition("/")
        mine = {part.name: values.get(f"{place}/{part.name}") for part in fields(Seen)}
        models = len(mine["losses"])  # type: ignore[arg-type]
        found.setdefault(request, {})[kind] = [
            Seen(**{name: None if many is None else many[row] for name, many in mine.items()})  # type: ignore[arg-type]
            for row in range(models)
        ]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--profile", default="paper", help="of `python -m lab reproduce`, whose ranking and recipe are used"
    )
    parser.add_argument("--results", type=Path, default=Path("results"), help="where that ranking is")
    parser.add_argument("--cores", default=",".join(CORES))
    parser.add_argument("--device")
    parser.add_argument("--seen", type=Path, help="a folder for what attacks look at; what is there is not made again")
    parser.add_argument("--only-make", action="store_true", help="models, and what attacks look at; no audits yet")
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args()
    started = time.perf_counter()
    lab = Lab.of(PROFILES[asked.profile], asked.results / asked.profile, device=asked.device, progress=Line())
    k = lab.profile.large
    by_hash = HashCore(k / len(lab.training), key="benchmark").is_core(lab.training.ids)
    result: dict[str, Any] = {
        "command": f"python benchmarks/audit.py --profile {asked.profile} --cores {asked.cores}",
        "shadow models": {"with the records": WITH, "without": WITHOUT}, "cores": {},
    }  # fmt: skip
    for number, name in enumerate(CORES):
        if name not in asked.cores.split(","):
            continue
        core = lab.training.ids[by_hash] if name == "hash" else lab.top(k)
        path = None if asked.seen is None else asked.seen / f"{name}.npz"
        about = made(path)
        found = audits(lab, core, number) if path is None or not path.exists() else read(path)
        if path is not None and not path.exists():
            stored(found, path)
        if asked.only_make:
            continue
        result["cores"][name] = {"core": len(core), "made": about} | {
            request: judged(kinds) for request, kinds in found.items()
        }
        result["seconds"] = time.perf_counter() - started
        for request, facts in result["cores"][name].items():
            for attack, of_attack in facts.get("attacks", {}).items() if isinstance(facts, dict) else ():
                said = ", ".join(f"{guarantee} {one['found']}/{one['of']}" for guarantee, one in of_attack.items())
                print(f"{name} core, {request}, {attack}: {said}", flush=True)
        if asked.out:
            asked.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
