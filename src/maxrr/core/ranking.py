"""How often each record is influential, over many training runs; and cores by that, as in the paper.

For every seed a network is trained on all records, they are embedded with it, and the SVM on these features says which
are influential. The three overlap: while some networks train, the solver works on the features of those before. On an
engine each worker does all three for a run of its own.
"""

import io
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

from maxrr.core.choice import Choice, Words, check_classes, choice_of, in_shards
from maxrr.core.shards import TIE_BREAKER, as_bytes, checked_count, keyed_hashes
from maxrr.data import Dataset
from maxrr.files import write_atomically
from maxrr.nets import Recipe, embed, split
from maxrr.nets.inputs import device_on
from maxrr.nets.run_store import DAMAGE, RunStore, kind_of
from maxrr.nets.runs import Task
from maxrr.nets.seeding import Network, begin, checked, stream
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
#
# The folder is one of `maxrr.nets.run_store`: it belongs to one kind of run, here with one C, and refuses others. A
# finished network stays in it only until its votes are on the disk: it was trained on records that may have to go.


@dataclass(frozen=True, eq=False)
class Votes:
    """The influential records of one run, in the order of their ids."""

    packed: NDArray[np.uint8]  # eight records per byte, as np.packbits has them
    gap: float  # the largest relative gap of a head


class VoteStore:
    """The votes of all runs of one kind, and the networks of runs that are not counted yet.

    Raises
    ------
    ValueError
        The folder holds runs of another kind, or another process works in it.
    """

    def __init__(self, folder: str | Path, kind: dict[str, Any], count: int) -> None:
        self.runs = RunStore(folder, kind)
        self.count = count  # of records
        for network in self.networks():
            if network.with_name(network.name.replace("run-", "votes-")).exists():  # killed just before it was deleted
                network.unlink()

    def networks(self) -> list[Path]:
        return list(self.runs.folder.glob("run-*.npz"))

    def path(self, seed: int) -> Path:
        return self.runs.folder / f"votes-{seed}.npz"

    def __contains__(self, seed: int) -> bool:
        return self.path(seed).exists()

    def add(self, seed: int, votes: Votes) -> None:
        """Store the votes of a run, then delete its network."""
        content = io.BytesIO()
        np.savez(content, packed=votes.packed, gap=np.float64(votes.gap), seed=np.str_(seed))
        write_atomically(self.path(seed), content.getvalue())
        self.runs.path(seed).unlink(missing_ok=True)

    def get(self, seed: int) -> Votes:
        path = self.path(seed)
        try:
            with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as stored:
                packed, gap, found = stored["packed"], float(stored["gap"]), int(str(stored["seed"]))
        except DAMAGE as error:
            raise damaged(path, str(error)) from error
        if found != seed:
            raise damaged(path, f"it is the run of seed {found}")
        if packed.dtype != np.uint8 or packed.shape != ((self.count + 7) // 8,):
            raise damaged(path, f"its votes are not those of {self.count} records")
        return Votes(packed, gap)

    def finish(self) -> None:
        """Delete the networks that are left: those of seeds that were not asked for again."""
        for network in self.networks():
            network.unlink()


def damaged(path: Path, why: str) -> ValueError:
    return ValueError(f"{path} is damaged ({why}): delete it, and the run is repeated")


# How far a ranking is, as one number for training, embedding and solving, which overlap.


@dataclass
class Steps:
    """Records gone through by all runs: every epoch counts them once, and solving a run does, too."""

    progress: Progress | None
    records: int
    epochs: int
    runs: int
    stored: int  # of these, runs whose votes were on the disk before
    through: int = 0  # by the other runs, in training
    done: int = 0  # of the other runs
    numbers: dict[str, float] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)  # runs tell how far they are from threads of their own

    def trained(self, what: str, done: int, total: int, **numbers: float) -> None:
        """Note how far training is. It is the `progress` of the training."""
        self.through, self.numbers = done, numbers
        self.show()

    def solved(self) -> None:
        """The votes of one more run are known."""
        self.done += 1

    def finished(self, runs: int) -> None:
        """So many runs were trained and solved elsewhere."""
        self.through += runs * self.records * self.epochs
        self.done += runs

    def show(self) -> None:
        """Call `progress`."""
        if self.progress is None:
            return
        each = self.records * (self.epochs + 1)
        with self.lock:
            done = self.stored * each + self.through + self.done * self.records
            solved = self.stored + self.done
            self.progress(f"ranking by {self.runs} runs", done, self.runs * each, **self.numbers, solved=solved)


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
        first: NDArray[Any] = self.ids[order[:k]]
        return first

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
        there and gives the same ranking. On CUDA the last bits of a network may differ when it steps together with
        other networks than before. Each network is deleted when its votes are stored, and none is left in the end. The
        votes themselves say something about every record: delete the folder when they are no longer needed. Without a
        folder, nothing is written to the disk.
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
    wanted = [checked(seed) for seed in seeds]
    if not wanted or len(set(wanted)) < len(wanted):
        raise ValueError("a ranking takes one seed or more, all different: the same one would give the same run again")
    check_classes(dataset)
    ordered, example = dataset.in_order(), begin(network, 0)
    split(example)  # complains now, not after the first training
    store = None
    if folder is not None:
        store = VoteStore(folder, {**kind_of(example, ordered, recipe), "C": C}, len(ordered))
    known = {seed: store.get(seed) for seed in wanted if store is not None and seed in store}
    missing = [seed for seed in wanted if seed not in known]
    steps = Steps(progress, len(ordered), recipe.epochs, len(wanted), len(known))
    steps.show()
    task = Task(network, ordered, recipe, place, 1, None if store is None or chosen else store.runs)
    here = votes_of(task, missing, C, steps) if chosen is None else votes_on(chosen, task, missing, C, steps)
    with closing(here) as found:
        for seed, votes in found:
            if store is not None:
                store.add(seed, votes)
            known[seed] = votes
            steps.show()
    if store is not None:
        store.finish()
    return Ranking(
        ordered.ids, tuple(wanted), np.stack([known[seed].packed for seed in wanted]),
        max(known[seed].gap for seed in wanted),
    )  # fmt: skip


def votes_on(
    engine: Engine, task: Task, seeds: Sequence[int], C: float, steps: Steps
) -> Generator[tuple[int, Votes]]:  # fmt: skip
    """The votes of each run, found by the workers of an engine."""
    groups = groups_for(task.device, seeds)
    with closing(engine.map(votes_by_worker, groups, task, C)) as done:
        for group, found in zip(groups, done, strict=True):
            steps.finished(len(group))
            yield from zip(group, found, strict=True)


def votes_by_worker(seeds: Sequence[int], task: Task, C: float) -> list[Votes]:
    """What a worker does for some runs: one, or those that step together on its graphics processor."""
    silent = Steps(None, len(task.dataset), task.recipe.epochs, len(seeds), 0)
    solver = Processes() if cores() > 1 and len(seeds) > 1 else InProcess()
    return [votes for _, votes in votes_of(task, seeds, C, silent, solver)]


def votes_of(
    task: Task, seeds: Sequence[int], C: float, steps: Steps, solver: Engine | None = None
) -> Generator[tuple[int, Votes]]:  # fmt: skip
    """The votes of each run, in the order of the seeds."""
    if not seeds:
        return
    with closing(features_of(task, seeds, steps)) as features:
        solved = influential_in(features, task.dataset.labels, C=C, engine=solver)
        with closing(cast("Generator[Influence]", solved)):  # its processes end now, not when it is collected
            for seed, found in zip(seeds, solved, strict=True):
                gap = max(certificate.relative_gap for certificate in found.certificates)
                if not all(certificate.solved for certificate in found.certificates):
                    raise ValueError(
                        f"the SVM on the features of the run with seed {seed} is not solved: its decision values are "
                        f"known only to {max(certificate.error for certificate in found.certificates):.1e}, so which "
                        "records are influential is not known. Lower C, or scale the records to about 1"
                    )
                steps.solved()
                yield seed, Votes(np.packbits(found.mask), gap)


def features_of(task: Task, seeds: Sequence[int], steps: Steps) -> Generator[Array]:
    """The features of all records in each run, on the device where there is one."""
    for run in run_all(task, seeds, cores(), steps.trained):
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

    kind: ClassVar[str] = "frequency"
    share: ClassVar[float] = 1.0  # of the runs: the records nearest to it are core
    often: ClassVar[str] = "most often influential"

    def __post_init__(self) -> None:
        for name in ("k", "runs"):
            object.__setattr__(self, name, operator.index(getattr(self, name)))  # NumPy's numbers become Python's
        if self.k < 1 or self.runs < 1:
            raise ValueError(f"a core has one record or more, from one run or more, not k={self.k}, runs={self.runs}")
        object.__setattr__(self, "shards", checked_count(self.shards))
        object.__setattr__(self, "tie_breaker", as_bytes(self.tie_breaker, "tie breaker"))

    def _words(self, network: Network) -> Words:
        """What the choice says, whichever records there are."""
        because = (
            f"the core is the {self.k:,} records {self.often} over {self.runs:,} training run{'s' * (self.runs > 1)} "
            "on all records: exact given that core"
        )
        return Words(because, {"kind": self.kind, "runs": self.runs, **in_shards(self.shards)})

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
        ids = ranking.nearest(self.share, self.k, self.tie_breaker)
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

    kind: ClassVar[str] = "middle"
    share: ClassVar[float] = 0.5
    often: ClassVar[str] = "influential nearest to half of the time"


def ranking_seeds(seed: int, runs: int) -> list[int]:
    """Seeds for the runs of a ranking. None is the model's own seed, so that its extractor is another network.

    More runs begin with the seeds of fewer runs.

    >>> ranking_seeds(0, 3)[:2] == ranking_seeds(0, 2)
    True
    """
    numbers: list[int] = stream(seed, RANKING).generate_state(runs, np.uint64).tolist()
    return numbers
