"""The exact SVM on features as wide as embeddings: fit, forget and insert, beside the floor and its peers.

One row is one problem on one device. Rows have names, such as `cpu-20000x768x10-C1-noisy`; each is saved as it grows,
so that a run may be cut and go on later. Rows on a graphics processor need no more than PyTorch, NumPy, SciPy and
scikit-learn; the others also liblinear-multicore and skglm (`pip install -e '.[bench]'`).
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import torch

import floor
import logistic
import memory
import peers
from circumstances import circumstances
from features import Labels, signs
from maxrr import LinearSVM
from synthetic import embeddings
from where import Watch

NOISY = 0.05  # share of labels that are drawn anew
FITS, FITS_SECONDS = 3, 20.0  # repeats of a fit, unless they take longer together
REPEATS = {1: 5}  # requests of so many samples; larger ones are sent once
NEW = 500  # samples inserted
PASS_BYTES = 1 << 31  # of samples in float64 with which the time of a pass is measured


@dataclass(frozen=True)
class Case:
    """What a row measures."""

    device: str
    samples: int
    width: int
    classes: int
    C: float = 1.0
    wrong: float = NOISY
    forget: tuple[int, ...] = (1, 30, 1000)  # influential samples
    insert: int = NEW
    peers: tuple[str, ...] = ("LinearSVC", "liblinear-multicore", "skglm", "logistic")

    @property
    def name(self) -> str:
        labels = "noisy" if self.wrong else "clean"
        return f"{self.device}-{self.samples}x{self.width}x{self.classes}-C{self.C:g}-{labels}"


SIZES = ((20_000, 768), (60_000, 384))
CASES = [
    *(Case("cpu", n, d, 10, C, wrong) for n, d in SIZES for C in (0.01, 1.0, 100.0) for wrong in (NOISY, 0.0)),
    Case("cpu", 60_000, 768, 10, forget=(1,), peers=()),
    Case("cuda", 60_000, 84, 10, peers=("logistic",)),
    Case("cuda", 60_000, 768, 10, peers=("logistic",)),
    Case("cuda", 200_000, 384, 100, peers=("logistic",)),
    Case("cuda", 1_000_000, 384, 10, peers=("logistic",)),
    Case("cuda", 1_281_167, 768, 1000, forget=(1, 30), peers=("logistic",)),
]


@dataclass(frozen=True)
class Fit:
    """A median over `repeats`."""

    seconds: float
    repeats: int
    floor_seconds: float
    decided: bool  # every head
    influential: int
    influential_per_head: float
    on_margin_per_head: float
    flat_heads: int  # with weights of zero
    passes: int
    shares: dict[str, float]  # of the time, by module
    peak: float  # memory as a multiple of the samples as given, which are part of it


@dataclass(frozen=True)
class Request:
    """A median over `repeats`. `passes` are those over the data that the solver counted, at most."""

    kind: str
    asked: int  # samples
    count: int  # fewer if not so many are influential
    repeats: int
    seconds: float
    decided: bool
    passes: int
    cold_solves: int


@dataclass(frozen=True)
class PeerFit:
    """`distance` is how far its objective P is from the optimum P*, (P − P*) / P*, worst head; None if it was stopped.

    These penalise the bias too, so that their own optimum is another point. At ours that penalty is `bias` times P*:
    so much of the distance, at most, may be due to it.
    """

    solver: str
    seconds: float
    finished: bool  # and not stopped after so many seconds
    content: bool  # whether it reached its own tolerance
    distance: float | None = None
    bias: float | None = None


@dataclass(frozen=True)
class Row:
    """What has been measured so far."""

    case: Case
    circumstances: dict[str, Any]
    speeds: floor.Speeds
    samples_bytes: int
    fit: Fit
    pass_seconds: float  # one product of all samples, in float64, with all weights
    pass_floor_seconds: float
    requests: tuple[Request, ...] = ()
    peers: tuple[PeerFit, ...] = ()
    complete: bool = False


@dataclass(frozen=True)
class Settings:
    """How rows are measured: with which peers' process, and whether at a size that takes no time."""

    worker: peers.Worker
    quick: bool = False


def quickly(case: Case) -> Case:
    """The same at a size that takes no time."""
    return replace(case, samples=min(case.samples // 50, 1200), width=60, classes=4)


def measure(case: Case, settings: Settings) -> Iterator[Row]:
    """The row, each time that something was added to it."""
    found_here = circumstances()
    place = case.device if torch.cuda.is_available() or not settings.quick else "cpu"
    if place != "cpu":
        found_here["device"] = torch.cuda.get_device_name()
    speeds = floor.measure(place, quick=settings.quick)
    warm_up(place)
    everything, labels = embeddings(case.samples + case.insert, case.width, case.classes, case.wrong, place)
    X: Any = everything if case.device != "cpu" else everything.numpy()
    X, y, new, new_labels = X[: case.samples], labels[: case.samples], X[case.samples :], labels[case.samples :]
    problem = floor.Problem(case.samples, case.width, case.classes, X.nbytes)

    model, fitted = fit(case, X, y, problem, speeds, place)
    row = Row(
        case, found_here, speeds, X.nbytes, fitted, pass_seconds(X, model, place), floor.one_pass(problem, speeds)
    )  # fmt: skip
    yield row
    rng = np.random.default_rng(1)
    for wanted in case.forget:
        count = min(wanted, len(model.support_) // 2)
        draws = [rng.choice(model.support_, count, replace=False) for _ in range(REPEATS.get(wanted, 1))]
        done = timed("forget", wanted, count, [lambda rows=rows: model._without(rows) for rows in draws], place)
        row = replace(row, requests=(*row.requests, done))
        yield row
    done = timed("insert", case.insert, case.insert, [lambda: model._with_more(new, new_labels)], place)
    row = replace(row, requests=(*row.requests, done))
    yield row
    for name in case.peers:
        found = PEERS[name](case, model, everything[: case.samples], y, settings)
        row = replace(row, peers=(*row.peers, found))
        yield row
    yield replace(row, complete=True)


def warm_up(place: str) -> None:
    """Libraries and threads are there before anything is measured."""
    samples, labels = torch.eye(50, device=place), np.arange(50) % 10
    LinearSVM().fit(samples, labels)
    logistic.run(samples, torch.as_tensor(labels, device=place), C=1.0, limit=1.0)


def start_of_memory(place: str) -> int:
    """Bytes held now; the peak counts from here."""
    if place == "cpu":
        memory.reset_peak()
        return memory.held()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def peak_of_memory(place: str) -> int:
    return memory.peak() if place == "cpu" else torch.cuda.max_memory_allocated()


def fit(
    case: Case, X: Any, y: Labels, problem: floor.Problem, speeds: floor.Speeds, place: str
) -> tuple[LinearSVM, Fit]:  # fmt: skip
    """The model, with what it cost."""
    model = LinearSVM(case.C, copy_X=False)
    with_samples = start_of_memory(place)
    with Watch() as watch:
        times = [floor.seconds(lambda: model.fit(X, y), place)]
    more = peak_of_memory(place) - with_samples
    while len(times) < FITS and sum(times) < FITS_SECONDS:
        times.append(floor.seconds(lambda: model.fit(X, y), place))
    heads = model.certificate_
    return model, Fit(
        seconds=median(times), repeats=len(times), floor_seconds=floor.fit(problem, heads, speeds),
        decided=all(head.decided for head in heads), influential=len(model.support_),
        influential_per_head=float(np.mean([head.on_margin + head.inside for head in heads])),
        on_margin_per_head=float(np.mean([head.on_margin for head in heads])),
        flat_heads=int(np.sum(~model.coef_.any(axis=1))), passes=model._fitted.solution.work.passes,
        shares=watch.shares(), peak=1.0 + more / problem.bytes,
    )  # fmt: skip


def pass_seconds(X: Any, model: LinearSVM, place: str) -> float:
    """One product of all samples with all weights in float64, or of as many as fit, and then in proportion."""
    count = min(len(X), PASS_BYTES // (8 * X.shape[1]))
    if isinstance(X, np.ndarray):
        samples, weights = X[:count].astype(np.float64), model.coef_.T.copy()
    else:
        samples, weights = X[:count].double(), torch.as_tensor(model.coef_.T.copy(), device=X.device)
    return floor.best(lambda: samples @ weights, place) * len(X) / count


def timed(kind: str, asked: int, count: int, works: list[Callable[[], LinearSVM]], place: str) -> Request:
    """Requests of one kind, each to the model as it was fitted."""
    times, costs, decided = [], [], []
    for work in works:
        found: list[LinearSVM] = []
        times.append(floor.seconds(lambda work=work, found=found: found.append(work()), place))
        costs.append(found[0]._fitted.solution.work)
        decided.append(all(head.decided for head in found[0].certificate_))
    return Request(
        kind, asked, count, len(works), median(times), decided=all(decided),
        passes=max(cost.passes for cost in costs), cold_solves=max(cost.cold_solves for cost in costs),
    )  # fmt: skip


def other_svm(name: str, case: Case, model: LinearSVM, X: torch.Tensor, y: Labels, settings: Settings) -> PeerFit:
    """In a process of its own, which can be stopped."""
    samples = X.cpu().numpy()
    answer = settings.worker.solve(SVMS[name], samples, y, case.C)
    if answer is None:
        return PeerFit(name, settings.worker.limit, finished=False, content=False)
    optimum = np.array([head.primal for head in model.certificate_])
    margins = signs(y) * (answer.coef @ samples.T.astype(np.float64) + answer.intercept[:, None])
    reached = 0.5 * np.sum(answer.coef**2, axis=1) + case.C * np.maximum(0.0, 1.0 - margins).sum(axis=1)
    return PeerFit(
        name, answer.seconds, finished=True, content=not answer.stopped,
        distance=float(np.max((reached - optimum) / optimum)), bias=float(np.max(0.5 * model.intercept_**2 / optimum)),
    )  # fmt: skip


def logistic_regression(case: Case, model: LinearSVM, X: torch.Tensor, y: Labels, settings: Settings) -> PeerFit:
    """On the device of the samples; its distance is that from its own optimum."""
    found = logistic.run(X, torch.as_tensor(y, device=X.device), case.C, settings.worker.limit)
    return PeerFit("logistic", found.seconds, finished=True, content=not found.stopped, distance=found.distance)


SVMS = {"LinearSVC": peers.linear_svc, "liblinear-multicore": peers.multicore, "skglm": peers.skglm_svc}
PEERS = {**{name: partial(other_svm, name) for name in SVMS}, "logistic": logistic_regression}


def sentence(row: Row) -> str:
    """What was found, in a line."""
    fit = row.fit
    said = [f"{row.case.name}: fit {fit.seconds:.2f} s, {fit.seconds / fit.floor_seconds:.0f} × its floor"]
    said += [f"{one.kind} {one.count:,} {1e3 * one.seconds:.0f} ms" for one in row.requests]
    for peer in row.peers:
        off = "" if peer.distance is None else f", {peer.distance:.0e} off"
        said.append(f"{peer.solver} {'' if peer.finished else '> '}{peer.seconds:.1f} s{off}")
    return ", ".join(said) + ("" if fit.decided else ", NOT ALL HEADS DECIDED")
