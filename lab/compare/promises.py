"""Parts c and d: methods that promise something, on public weights, and in a stream of requests.

In the stream features come from a network that was trained on a tenth of the records, which are public: nobody asks for
them, and no method learns them. A method that trains for each request carries out the first of them, each timed, and
all others at once, which ends where one after the other would; its seconds are what these requests took on average.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import fmean, median
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from lab import profiles
from lab.compare.exact import CORE, FROZEN, METHODS, Bench, Certified, Method, Ridge, Sisa
from lab.compare.measures import FEWEST_TO_AUDIT, klom
from lab.compare.pieces import Json, Pieces, now
from lab.compare.study import STREAM, Exact, some_of
from lab.lab import Lab
from lab.public_cases import PUBLIC, Case, model_of, recipe_of, share_of
from lab.public_others import network_for, start_of
from lab.public_weights import choose_penalty
from maxrr import MaxRR
from maxrr.audit import audit_predictions
from maxrr.audit.attacks import logit
from maxrr.audit.shadows import with_and_without
from maxrr.core import Frozen, HashCore
from maxrr.data import Dataset
from maxrr.nets import LeNet5, Recipe, embed, split, train
from maxrr.nets.public_weights import made_with
from maxrr.nets.seeding import stream

SIZES, SHARES = (1, 5, 20), (0.7, 0.2, 0.1)  # records of a request, and how often
TRAINING = ("retraining", "SISA", CORE)  # those that train for a request
DRAWING = (*TRAINING, "certified removal")  # those whose models differ by their seed
ASKED = 500  # forgotten records that an audit asks about, at most
TRIED = 6  # records that each setting of certified removal forgets
MANY_RECORDS = 10_000  # on which networks are trained as on all
WIDTH = 0.2  # the share of the core in the stream


@contextmanager
def one_thread() -> Iterator[None]:
    """Let PyTorch use one thread: seconds of a processor count all threads, and training here has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class Setup:
    """The records of a part, and how methods are set up for a seed."""

    training: Dataset
    test: Dataset
    bench: Callable[[int], Bench]


@dataclass(frozen=True, eq=False)
class Promises:
    """Parts c and d of a profile."""

    plan: Exact
    seed: int
    device: torch.device
    pieces: Pieces

    # Public weights

    @cached_property
    def public(self) -> Setup:
        """Public weights: EfficientNet, or a small network that stands for it on digits."""
        profile = profiles.SMOKE if self.plan.data == "digits" else profiles.PUBLIC
        lab = Lab.of(profile, self.pieces.folder, seed=self.seed, device=str(self.device))
        if self.plan.records is not None:
            training, test = some_of(self.plan.data, self.plan.records, 0, self.seed)
            lab = replace(lab, training=training, test=test)
        small = share_of(lab.profile)
        found = self.pieces.piece("c", "penalty", partial(choose_penalty, lab, Case(PUBLIC, small, 0)))
        extractor = made_with(network_for(lab, Case(PUBLIC, 0.0, 0)), 0)

        def plain(seed: int) -> Bench:
            whole, part = Case(PUBLIC, 1.0, seed), Case(PUBLIC, 0.2, seed)
            return Bench(
                start_of(lab, whole), recipe_of(lab, whole), recipe_of(lab, part), self.device,
                len(lab.training.class_names), lambda records: embed(extractor, records, device=self.device),
                lambda row, own: model_of(lab, Case(PUBLIC, small if row == CORE else 0.0, own), float(found["C"])),
            )  # fmt: skip

        chosen = self.with_settings("c", plain(0), lab.training)

        def bench(seed: int) -> Bench:
            return replace(plain(seed), ridge=chosen.ridge, certified=chosen.certified)

        return Setup(lab.training, lab.test, bench)

    def measure_public(self) -> None:
        """Part c: every method and seed."""
        _ = self.public
        for seed in range(self.plan.seeds):
            for name in METHODS:
                self.pieces.piece("c", f"{name} {seed}", partial(self.try_public, name, seed))

    @one_thread()
    def try_public(self, name: str, seed: int) -> Json:
        """Fit, forget single random records, and look whether what is left is a fit without them."""
        setup, started = self.public, now(self.device)
        bench = setup.bench(seed)
        model = METHODS[name](bench, setup.training, seed)
        fit, test = now(self.device) - started, setup.test
        accuracy = right(model.probabilities(test), test)
        random = np.random.default_rng(stream(self.seed, STREAM, seed))
        ids = random.choice(setup.training.ids, self.plan.repeats, replace=False)
        seconds = [self.seconds_of(partial(model.forget, [one])) for one in ids.tolist()]
        found = {"method": name, "seed": seed, "accuracy": accuracy, "fit": fit, "requests": seconds,
                 "seconds": median(seconds), "kept": model.kept, "fits": fits_of(model)}  # fmt: skip
        if seed == 0:
            found["from a new fit"] = away(model, name, bench, setup.training.without(ids), seed, test)
        return found

    def seconds_of(self, work: Callable[[], None]) -> float:
        """How long some work takes."""
        started = now(self.device)
        work()
        return now(self.device) - started

    # A stream

    @cached_property
    def streaming(self) -> Setup:
        """LeNet-5 on images, and features that a public tenth of the records gave."""
        training, test = some_of(self.plan.data, self.plan.records, 0, self.seed)
        public = HashCore(0.1, key=f"public {self.seed}", by="record").is_core(training.ids)
        own = training.select(training.ids[~public])
        recipe = Recipe(epochs=18) if len(training) >= MANY_RECORDS else Recipe(epochs=10, lr=2e-3)
        network = LeNet5(training.shape, len(training.class_names))
        learned = train(network, training.select(training.ids[public]), self.seed, recipe=recipe, device=self.device)
        extractor = split(learned.network)[0]

        def ours(row: str, seed: int) -> MaxRR:
            if row == FROZEN:
                return MaxRR(extractor, Frozen(), device=str(self.device), verbose=False)
            core = HashCore(WIDTH, key=f"stream {self.seed}", by="record")
            return MaxRR(network, core, seed=seed, train=recipe, device=str(self.device), verbose=False)

        bench = Bench(network, recipe, recipe, self.device, len(training.class_names),
                      lambda records: embed(extractor, records, device=self.device), ours)  # fmt: skip
        chosen = self.with_epochs(self.with_settings("d", bench, own), own)
        return Setup(own, test, lambda seed: chosen)

    # Settings: those that do best on a tenth of the records

    def set_aside(self, records: Dataset) -> tuple[Dataset, Dataset]:
        """The records to fit on, and the tenth."""
        random = np.random.default_rng(stream(self.seed, STREAM, 9))
        aside = records.select(np.sort(random.choice(records.ids, len(records) // 10, replace=False)))
        return records.without(aside.ids), aside

    def with_settings(self, part: str, bench: Bench, records: Dataset) -> Bench:
        """Give the ridge head and certified removal their settings."""
        rest, aside = self.set_aside(records)

        def choose_ridge() -> Json:
            said = [right(Ridge(replace(bench, ridge=one), rest, 0).probabilities(aside), aside) for one in Ridge.GRID]
            tried = [{"settings": one, "accuracy": each} for one, each in zip(Ridge.GRID, said, strict=True)]
            return {"method": "ridge head", "chosen": Ridge.GRID[int(np.argmax(said))], "tried": tried}

        def choose_noise() -> Json:
            tried: list[Json] = []
            for pair in Certified.GRID:
                model = Certified(replace(bench, certified=pair), rest, self.seed)
                accuracy = right(model.probabilities(aside), aside)
                for id_ in rest.ids[:TRIED].tolist():
                    model.forget([id_])
                tried.append({"settings": list(pair), "accuracy": accuracy, "fits": model.fits - 1})
            best = max(tried, key=lambda one: (one["accuracy"], -one["fits"]))
            return {"method": "certified removal", "chosen": best["settings"], "tried": tried}

        ridge = self.pieces.piece(part, "settings ridge head", choose_ridge)["chosen"]
        noise = self.pieces.piece(part, "settings certified removal", choose_noise)["chosen"]
        return replace(bench, ridge=float(ridge), certified=(float(noise[0]), float(noise[1])))

    def with_epochs(self, bench: Bench, records: Dataset) -> Bench:
        """Give SISA more epochs where that helps: those of a shard have a fifth of the steps."""
        rest, aside = self.set_aside(records)

        def longer(times: int) -> Bench:
            return replace(bench, part=replace(bench.part, epochs=times * bench.part.epochs))

        def choose_epochs() -> Json:
            said = [right(Sisa(longer(times), rest, self.seed).probabilities(aside), aside) for times in Sisa.GRID]
            tried = [{"settings": times, "accuracy": one} for times, one in zip(Sisa.GRID, said, strict=True)]
            return {"method": "SISA", "chosen": Sisa.GRID[int(np.argmax(said))], "tried": tried}

        return longer(int(self.pieces.piece("d", "settings SISA", choose_epochs)["chosen"]))

    def requests(self) -> list[list[Any]]:
        """The stream, the same for every method: ids of one, five or twenty records that are still there."""
        random = np.random.default_rng(stream(self.seed, STREAM, 7))
        sizes = random.choice(SIZES, self.plan.requests, p=SHARES)
        order = random.permutation(self.streaming.training.ids)
        ends = np.cumsum(sizes)
        return [order[end - size : end].tolist() for end, size in zip(ends.tolist(), sizes.tolist(), strict=True)]

    def measure_stream(self) -> None:
        """Part d: every method, and the audit of what it ends with."""
        _ = self.streaming  # its settings are pieces of their own
        for name in METHODS:
            self.pieces.piece("d", f"stream {name}", partial(self.try_stream, name))
        for name in DRAWING:
            if self.plan.shadows:
                self.pieces.piece("d", f"audit {name}", partial(self.audit_end, name))

    @one_thread()
    def try_stream(self, name: str) -> Json:
        """Carry out the stream."""
        setup, requests = self.streaming, self.requests()
        started = now(self.device)
        model = METHODS[name](setup.bench(self.seed), setup.training, self.seed)
        fit, before = now(self.device) - started, right(model.probabilities(setup.test), setup.test)
        alone = requests[: self.plan.timed] if name in TRAINING else requests
        seconds = [self.seconds_of(partial(model.forget, ids)) for ids in alone]
        if rest := [id_ for ids in requests[len(alone) :] for id_ in ids]:
            model.forget(rest)
        left = setup.training.without([id_ for ids in requests for id_ in ids])
        after = right(model.probabilities(setup.test), setup.test)
        return {
            "method": name, "requests": len(requests), "records": len(setup.training) - len(left), "timed": len(alone),
            "accuracy": {"before": before, "after": after}, "fit": fit, "seconds": fmean(seconds),
            "of the stream": fmean(seconds) * len(requests), "kept": model.kept,
            "from a new fit": away(model, name, setup.bench(self.seed), left, self.seed, setup.test),
            "fits": fits_of(model),
        }  # fmt: skip

    def audit_end(self, name: str) -> Json:
        """Audit the method's end of the stream by models of other seeds: predictions are all that it takes."""
        setup, requests = self.streaming, self.requests()
        gone = [id_ for ids in requests for id_ in ids]
        with_records, retrained = with_and_without(self.plan.shadows)
        random = np.random.default_rng(stream(self.seed, STREAM, 8))
        asked = setup.training.select(np.sort(random.choice(gone, min(ASKED, len(gone)), replace=False)))
        left, forgotten = setup.training.without(gone), np.arange(len(asked) + len(setup.test)) < len(asked)

        def said(records_of: Dataset, seed: int) -> NDArray[np.float64]:
            model = METHODS[name](setup.bench(seed), records_of, seed)
            return np.concatenate([model.probabilities(asked), model.probabilities(setup.test)])

        first = 1_000 * (1 + self.seed)
        model = METHODS[name](setup.bench(self.seed), setup.training, self.seed)
        for ids in [gone] if name in TRAINING else requests:
            model.forget(ids)
        audited = np.concatenate([model.probabilities(asked), model.probabilities(setup.test)])
        never = np.stack([said(left, first + number) for number in range(retrained)])
        once = np.stack([said(setup.training, 2 * first + number) for number in range(with_records)])
        labels = np.concatenate([asked.labels, setup.test.labels])
        found: Json = {"method": name, "retrained": retrained, "with": with_records, "records": len(asked)}
        half = [np.stack([logit(p, labels) for p in some])[:, forgotten] for some in (never[::2], never[1::2], once)]
        even = min(map(len, half[:2]))
        found["klom"] = {"retrained": float(np.quantile(klom(half[0][:even], half[1][:even]), 0.95)),
                         "with": float(np.quantile(klom(half[2], half[0]), 0.95))}  # fmt: skip
        if retrained >= FEWEST_TO_AUDIT:
            finding = audit_predictions(audited, never, once, labels, forgotten)
            found |= {"words": finding.words, "p": finding.p_value, "power": finding.power["all kept"].rate}
        return found


def away(model: Method, name: str, bench: Bench, left: Dataset, seed: int, test: Dataset) -> float:
    """How far a model's probabilities are at most from those of a new fit on what is left, under the same noise."""
    again = model.anew(left) if isinstance(model, Certified) else METHODS[name](bench, left, seed)
    return float(np.abs(model.probabilities(test) - again.probabilities(test)).max())


def fits_of(model: Method) -> int | None:
    """How often certified removal has fitted: once, and for each request that its noise did not hide."""
    return model.fits if isinstance(model, Certified) else None


def right(said: NDArray[np.float64], records: Dataset) -> float:
    """The share of records whose class is the most probable."""
    return float(np.mean(said.argmax(1) == records.labels))
