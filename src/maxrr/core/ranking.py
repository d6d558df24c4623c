"""How often each record is influential, over many training runs; and cores by that, as in the paper.

For every seed a network is trained on all records, they are embedded with it, and the SVM on these features says which
are influential. The three overlap: while some networks train, the solver works on the features of those before. On an
engine each worker does all three for a run of its own.
"""

import hashlib
import json
import operator
import threading
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from maxrr.core.choice import Choice, Words, check_classes, choice_of, in_shards
from maxrr.core.shards import TIE_BREAKER, as_bytes, checked_count, keyed_hashes
from maxrr.data import Dataset
from maxrr.files import Lock, parse_json, write_atomically
from maxrr.files.arrays import damaged, read_arrays, write_arrays
from maxrr.nets import Recipe, embed, split
from maxrr.nets.architecture import architecture
from maxrr.nets.inputs import as_array, device_on
from maxrr.nets.public_weights import GivenStart
from maxrr.nets.runs import Task
from maxrr.nets.seeding import Network, begin, checked_seed, stream
from maxrr.nets.training import groups_for, run_all
from maxrr.nets.training_function import Training
from maxrr.parallel import Processes
from maxrr.parallel.engine import Engine, InProcess, cores
from maxrr.parallel.ray_cluster import EngineLike, engine_from
from maxrr.progress import Progress
from maxrr.svm import influential_in
from maxrr.svm.arrays import Array
from maxrr.svm.influence import Influence
from maxrr.svm.validation import penalty

# Which records were influential in each run, in a folder: a run's votes are there whole, or not at all.


@dataclass(frozen=True, eq=False)
class Votes:
    """The influential records of one run, in the order of their ids."""

    packed: NDArray[np.uint8]  # eight records per byte, as np.packbits has them
    gap: float  # the largest relative gap of a head


class VoteStore:
    """The votes of all runs of one kind: the same network, recipe, records and C.

    Parameters
    ----------
    folder
        Created if it does not exist.
    kind
        What all runs have in common, as `kind_of` gives it.
    count
        How many records there are.

    Raises
    ------
    ValueError
        The folder holds runs of another kind, or another process works in it.
    """

    def __init__(self, folder: str | Path, kind: dict[str, Any], count: int) -> None:
        self.folder, self.count = Path(folder), count
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self.lock = Lock(self.folder / ".lock", of_process=True)
        except BlockingIOError as error:
            raise ValueError(f"another process ranks into {folder}: wait for it, or use another folder") from error
        for left_behind in self.folder.glob(".maxrr-*.tmp"):  # by a process that was killed while it wrote
            left_behind.unlink()
        known = self.folder / "runs.json"
        if not known.exists():
            write_atomically(known, json.dumps(kind, indent=2).encode())
        try:
            there = parse_json(known.read_text(encoding="utf-8"))
        except ValueError as error:
            raise damaged(known, error) from error
        different = [name for name in kind if not isinstance(there, dict) or there.get(name) != kind[name]]
        if different:
            raise ValueError(f"{folder} holds runs with other {' and '.join(different)}: use another folder")

    def path(self, seed: int) -> Path:
        return self.folder / f"votes-{seed}.npz"

    def __contains__(self, seed: int) -> bool:
        return self.path(seed).exists()

    def add(self, seed: int, votes: Votes) -> None:
        """Store the votes of a run."""
        write_arrays(self.path(seed), {"packed": votes.packed, "gap": np.array(votes.gap), "seed": np.array(str(seed))})

    def get(self, seed: int) -> Votes:
        stored = read_arrays(self.path(seed))
        packed, gap = stored.get("packed"), stored.get("gap")
        if packed is None or gap is None or str(stored.get("seed")) != str(seed):
            raise damaged(self.path(seed), "it is not the run of this seed")
        if packed.dtype != np.uint8 or packed.shape != ((self.count + 7) // 8,):
            raise damaged(self.path(seed), f"its votes are not those of {self.count} records")
        return Votes(packed, float(gap))


def kind_of(network: nn.Module, dataset: Dataset, recipe: Training, C: float) -> dict[str, Any]:
    """Describe what all runs have in common: network, recipe, records and C."""
    frozen = hashlib.sha256()
    for place, layer in network.named_modules():
        kept = [(name, value) for name, value in layer.named_parameters(recurse=False) if not value.requires_grad]
        if not layer.training:
            kept += layer.named_buffers(recurse=False)
        for name, value in kept:
            frozen.update(f"{place}.{name} {value.dtype} {tuple(value.shape)}\n".encode())
            frozen.update(as_array(value.detach().contiguous()).tobytes())
    return {
        "layers": architecture(network),
        "frozen": frozen.hexdigest(),
        "recipe": recipe.facts,
        "records": dataset.content_hash(),
        "C": C,
    }


@dataclass
class Steps:
    """How far a ranking is, counted in records: each epoch of a run counts all of them, and so does solving the run."""

    progress: Progress | None
    records: int
    epochs: int
    runs: int
    solved: int  # runs whose votes are known
    numbers: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)  # runs tell how far they are from threads of their own

    def __post_init__(self) -> None:
        self.before = self.through = self.solved * self.records * self.epochs  # by all runs, in training
        self.show()

    def trained(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Note how far training is. It is the `progress` of the training."""
        self.through, self.numbers = self.before + done, numbers
        self.show()

    def show(self) -> None:
        """Call `progress`."""
        total = self.runs * self.records * (self.epochs + 1)
        with self.lock:
            if self.progress is not None:
                done = self.through + self.solved * self.records
                self.progress(f"ranking by {self.runs} runs", done, total, **self.numbers, solved=self.solved)


USUAL = Recipe()


@dataclass(frozen=True, eq=False)
class Ranking:
    """Which records were influential in which run. It is as sensitive as the records: `repr` shows no ids.

    Attributes
    ----------
    ids
        The ids of all records, sorted.
    seeds
        The seeds of the runs.
    votes
        Which records were influential in which run: one row per run, eight records per byte (`numpy.packbits`).
    worst_gap
        The largest relative gap that the solver left in any head of any run.
    """

    ids: NDArray[Any]
    seeds: tuple[int, ...]
    votes: NDArray[np.uint8]
    worst_gap: float

    def __repr__(self) -> str:
        return (
            f"<Ranking of {len(self.ids):,} records: of {len(self.seeds):,} runs, {self.ever:,} were influential "
            f"in some, {self.always:,} in all>"
        )

    def frequency(self) -> NDArray[np.int64]:
        """In how many runs each record was influential.

        Returns
        -------
        ndarray
            One count per record, in the order of `ids`.
        """
        counts = np.zeros(len(self.ids), dtype=np.int64)
        for row in self.votes:  # unpacked one at a time
            counts += np.unpackbits(row, count=len(self.ids))
        return counts

    def top(self, k: int, tie_breaker: bytes | str = TIE_BREAKER) -> NDArray[Any]:
        """The records that were influential most often.

        Parameters
        ----------
        k
            How many records, from 1 to all of them.
        tie_breaker
            What ids are hashed with to break ties, so that neither the order of rows nor of ids matters. No secret.

        Returns
        -------
        ndarray
            Their ids, the most often influential first.
        """
        return self.nearest(1.0, k, tie_breaker)

    def nearest(self, share: float, k: int, tie_breaker: bytes | str = TIE_BREAKER) -> NDArray[Any]:
        """The records that were influential in about this share of the runs.

        Parameters
        ----------
        share
            A share of the runs, from 0 to 1.
        k, tie_breaker
            As in `top`.

        Returns
        -------
        ndarray
            Their ids, those nearest to the share first.
        """
        if not 1 <= k <= len(self.ids):
            raise ValueError(f"the top of {len(self.ids):,} records holds one of them or more, not {k:,}")
        away = np.abs(self.frequency() - share * len(self.seeds)).tolist()
        hashes = keyed_hashes(self.ids, as_bytes(tie_breaker, "tie breaker"))
        order = sorted(range(len(away)), key=lambda record: (away[record], hashes[record]))
        return self.ids[order[:k]]

    @property
    def ever(self) -> int:
        """How many records were influential in some run."""
        return int(np.count_nonzero(self.frequency()))

    @property
    def always(self) -> int:
        """How many records were influential in every run."""
        return int(np.count_nonzero(self.frequency() == len(self.seeds)))


def rank(
    network: Network, dataset: Dataset, seeds: Iterable[int], *, C: float = 1.0, recipe: Training = USUAL,
    device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
    engine: EngineLike = None,
) -> Ranking:  # fmt: skip
    """Train a network once for each seed, and note the records that the SVM on its features finds influential.

    Parameters
    ----------
    network, dataset
        As in `maxrr.nets.train_many`.
    seeds
        One run for each, all different.
    C
        Weight of the losses, as in `maxrr.LinearSVM`.
    recipe
        How the networks are trained.
    device
        As in `maxrr.nets.train_many`.
    folder : path, optional
        Where each run's votes are stored as soon as they are known. Work that was interrupted, or killed, goes on from
        there and gives the same ranking; runs whose votes are not stored are trained again. On CUDA the last bits of a
        network may differ when it steps together with other networks than before. Votes say something about every
        record: delete the folder when they are no longer needed. Networks are never written to the disk.
    progress : optional
        Called with how far all runs are together, the loss and accuracy of the networks, and the number of runs whose
        votes are known.
    engine : optional
        Where the runs are made, as in `maxrr.parallel.engine_from`: "ray" or "ray://host:10001" for a cluster. By
        default on this machine. On the CPU the ranking is the same from every engine, on machines of the same kind.

    Returns
    -------
    Ranking
        Which records were influential in which run.

    Raises
    ------
    ValueError
        A network diverged or a head could not be solved (the message names the seed), or the folder belongs to another
        network, recipe, C or other records.
    """
    C, chosen = penalty(C), engine_from(engine)
    place = device_on(chosen, device)
    wanted = [checked_seed(seed) for seed in seeds]
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError("a ranking takes one seed or more, all different: the same one would give the same run again")
    check_classes(dataset)
    ordered, example = dataset.in_order(), begin(network, 0)
    split(example)  # complains now, not after the first training
    kind = kind_of(example, ordered, recipe, C) | ({"start": network.sha256} if isinstance(network, GivenStart) else {})
    store = None if folder is None else VoteStore(folder, kind, len(ordered))
    known = {seed: store.get(seed) for seed in wanted if store is not None and seed in store}
    missing = [seed for seed in wanted if seed not in known]
    steps = Steps(progress, len(ordered), recipe.epochs, len(wanted), len(known))
    task = Task(network, ordered, recipe, place, 1)
    here = votes_of(task, missing, C, steps) if chosen is None else votes_on(chosen, task, missing, C, steps)
    with closing(here) as found:
        for seed, votes in found:
            if store is not None:
                store.add(seed, votes)
            known[seed] = votes
            steps.solved += 1
            steps.show()
    return Ranking(
        ordered.ids, tuple(wanted), np.stack([known[seed].packed for seed in wanted]),
        max(known[seed].gap for seed in wanted),
    )  # fmt: skip


def votes_on(engine: Engine, task: Task, seeds: Sequence[int], C: float, steps: Steps) -> Generator[tuple[int, Votes]]:
    """Yield the votes of each run, found by the workers of an engine."""
    groups = groups_for(task.device, seeds)
    with closing(engine.map(votes_by_worker, groups, task, C)) as done:
        for group, found in zip(groups, done, strict=True):
            steps.through += len(group) * steps.records * steps.epochs
            yield from zip(group, found, strict=True)


def votes_by_worker(seeds: Sequence[int], task: Task, C: float) -> list[Votes]:
    """Find the votes of some runs in a worker: of one, or of those that train together on its GPU."""
    solver = Processes() if cores() > 1 and len(seeds) > 1 else InProcess()
    return [votes for _, votes in votes_of(task, seeds, C, None, solver)]


def votes_of(
    task: Task, seeds: Sequence[int], C: float, steps: Steps | None, solver: Engine | None = None
) -> Generator[tuple[int, Votes]]:
    """Yield the votes of each run, in the order of the seeds."""
    if not seeds:
        return
    with closing(features_of(task, seeds, steps)) as features:
        solved = influential_in(features, task.dataset.labels, C=C, engine=solver)
        with closing(cast("Generator[Influence]", solved)):  # its processes end now, not when it is collected
            for seed, found in zip(seeds, solved, strict=True):
                if not all(certificate.solved for certificate in found.certificates):
                    raise ValueError(
                        f"the SVM on the features of the run with seed {seed} is not solved: its decision values are "
                        f"known only to {max(certificate.error for certificate in found.certificates):.1e}, so which "
                        "records are influential is not known. Lower C, or scale the records to about 1"
                    )
                gap = max(certificate.relative_gap for certificate in found.certificates)
                yield seed, Votes(np.packbits(found.mask), gap)


def features_of(task: Task, seeds: Sequence[int], steps: Steps | None) -> Generator[Array]:
    """Yield the features of all records in each run, on the device where they were computed."""
    for run in run_all(task, seeds, cores(), None if steps is None else steps.trained):
        try:
            features = embed(split(run.network)[0], task.dataset, device=task.device)
        except ValueError as error:
            raise ValueError(f"the run with seed {run.seed}: {error}") from error
        yield torch.from_numpy(features).to(task.device) if task.device.type == "cuda" else features


# Cores by how often a record is influential: most often, as in the paper, or in about half of the runs.


RANKING = 7  # the stream below the model's seed that gives the seeds of these runs


@dataclass(frozen=True)
class FrequencyCore:
    """The paper's core: the `k` records that were influential in most of `runs` training runs on all records.

    Few records outside this core are influential, so that most can be forgotten at once. But the choice depends on
    every record: exactness holds given the core, and receipts say so. Where too few records were ever influential, the
    hash that breaks ties fills up the core; `Choice.details` says with how many records (`fill`).

    Parameters
    ----------
    k : int
        How many records are core.
    runs : int
        How many networks are trained for the ranking. Ten runs find about 90 % of the records that forty others find.
    tie_breaker : bytes or str
        What ids are hashed with to break ties, and to find their shards. It need not be secret.
    shards : int
        Into how many shards the core is divided, as in `HashCore`. The ranking trains on all records, as without.
    """

    k: int
    runs: int = 10
    tie_breaker: bytes | str = field(default=TIE_BREAKER, repr=False)
    shards: int = 1

    _kind: ClassVar[str] = "frequency"
    _share: ClassVar[float] = 1.0  # of the runs: the records nearest to it are core
    _often: ClassVar[str] = "most often influential"

    def __post_init__(self) -> None:
        for name in ("k", "runs"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))  # NumPy's numbers become Python's
        if self.k < 1 or self.runs < 1:
            raise ValueError(f"a core has one record or more, from one run or more, not k={self.k}, runs={self.runs}")
        object.__setattr__(self, "shards", checked_count(self.shards))
        object.__setattr__(self, "tie_breaker", as_bytes(self.tie_breaker, "tie breaker"))

    def _words(self, network: Network) -> Words:
        """Return the words of every choice by this rule."""
        because = (
            f"the core is the {self.k:,} records {self._often} over {self.runs:,} training run{'s' * (self.runs > 1)} "
            "on all records: exact given that core"
        )
        return Words(because, {"kind": self._kind, "runs": self.runs, **in_shards(self.shards)})

    def choose(
        self, network: Network, dataset: Dataset, *, C: float, recipe: Training, seed: int,
        device: str | torch.device | None = None, folder: str | Path | None = None, progress: Progress | None = None,
        engine: EngineLike = None,
    ) -> Choice:  # fmt: skip
        """Choose the core, as `Core.choose` does. The folder and the engine are used as in `rank`."""
        check_classes(dataset)
        if self.k > len(dataset):
            raise ValueError(f"a core of {self.k:,} records was asked for, but there are only {len(dataset):,}")
        ranking = rank(
            network, dataset, ranking_seeds(seed, self.runs), C=C, recipe=recipe, device=device, folder=folder,
            progress=progress, engine=engine,
        )  # fmt: skip
        ids = ranking.nearest(self._share, self.k, self.tie_breaker)
        ever = ranking.frequency() > 0
        influential = int(np.sum(np.isin(ids, ranking.ids[ever])))
        return choice_of(
            dataset, ids, self._words(network), unconditional=False, ever_influential=int(ever.sum()),
            core_ever_influential=influential, fill=self.k - influential, worst_gap=ranking.worst_gap,
        )  # fmt: skip


@dataclass(frozen=True)
class MiddleCore(FrequencyCore):
    """The `k` records whose share of runs in which they were influential is nearest to one half.

    With cores of a third of Fashion-MNIST they gave more accurate models than the most frequent ones, by 0.5 points
    after 18 epochs, 0.3 after 36 and 0.7 after 72, and left 5 to 6 points fewer records free; than random ones, by 1.1
    points after 18 epochs. With cores of a third of a table it is 0.1 and 0.2 points, and 10 fewer free than the most
    frequent ones leave (lab/reproduction.md). As for `FrequencyCore`, exactness holds given the core.

    Parameters
    ----------
    k, runs, tie_breaker, shards
        As in `FrequencyCore`.
    """

    _kind: ClassVar[str] = "middle"
    _share: ClassVar[float] = 0.5
    _often: ClassVar[str] = "influential nearest to half of the time"


def ranking_seeds(seed: int, runs: int) -> list[int]:
    """Seeds for the runs of a ranking. None is the model's own seed, so that its extractor is another network.

    More runs begin with the seeds of fewer runs.

    >>> ranking_seeds(0, 3)[:2] == ranking_seeds(0, 2)
    True
    """
    numbers: list[int] = stream(seed, RANKING).generate_state(runs, np.uint64).tolist()
    return numbers
