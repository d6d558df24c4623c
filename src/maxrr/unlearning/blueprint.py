"""How a model was made: recorded when it is fitted, and used whenever a part of it is made again.

Parameters of the estimator may be changed afterwards. What was trained with the old ones must not be retrained with
the new.
"""

import copy
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from maxrr import core
from maxrr.core import Core, FullCore, HashCore
from maxrr.core.choice import Choice
from maxrr.core.shards import Sharding, UntrainedShardsWarning, sharding_of, untrained
from maxrr.data import Dataset
from maxrr.errors import DataError, OtherWeights
from maxrr.nets import embed, split
from maxrr.nets.embedding import embed_to_predict
from maxrr.nets.inputs import chosen_device
from maxrr.nets.naming import with_outputs
from maxrr.nets.networks import NoNetwork, joined, parts_of
from maxrr.nets.probe import Fingerprint, made_by, types_and_shapes, with_weights_of
from maxrr.nets.public_weights import GivenWeights
from maxrr.nets.recipe import Environment, Recipe
from maxrr.nets.seeding import Network, begin
from maxrr.nets.training import seen_twice, train, train_apart, train_many
from maxrr.nets.training_function import Training
from maxrr.parallel.engine import Engine
from maxrr.parallel.ray_cluster import EngineLike, working_on
from maxrr.progress import Progress
from maxrr.svm import FlatHeadWarning
from maxrr.svm.arrays import LARGEST_PENALTY, SMALLEST_PENALTY, to_numpy
from maxrr.svm.estimator import LinearSVM, flat_message
from maxrr.svm.search.working_set import MOST_CHANGED
from maxrr.unlearning.conditions import DECIDE_EACH, START
from maxrr.unlearning.receipts import RUN_TWICE

if TYPE_CHECKING:
    from maxrr.unlearning.records import HeldRecords

RULES = [getattr(core, name) for name in DECIDE_EACH]


@dataclass(frozen=True, eq=False)
class Blueprint:
    """Everything but the records that a model's bytes depend on."""

    network: Network  # our own copy of it
    frozen: bool  # the network is the extractor, and is not trained
    seed: int
    recipe: Training
    C: float
    device: str | None
    threads: int
    environment: Environment
    given: Mapping[str, str] = field(default_factory=dict)  # weights that were not trained here
    class_weight: Mapping[str, float] = field(default_factory=dict)  # by the name of the class; others weigh 1
    core: Core | None = None  # None where the caller's own code chose, and is not at hand any more
    drafted: int = 0  # columns whose encoding was read off the records
    start: GivenWeights | None = None  # where training starts, as the caller said; None: from the seed
    run_twice: str = ""  # what came of running a recipe twice on a part of the core; empty on the CPU

    @property
    def recipe_facts(self) -> dict[str, Any]:
        """How the extractor is trained, from which given weights, and what came of it twice, as JSON has it."""
        start = {} if self.start is None else {START: asdict(self.start)}
        return self.recipe.facts | start | ({RUN_TWICE: self.run_twice} if self.run_twice else {})

    @property
    def decides_each(self) -> bool:
        """Whether a rule of ours decides for each record by itself whether it is core."""
        return type(self.core) in RULES

    @property
    def sharding(self) -> Sharding:
        """Which extractor sees which core records."""
        return sharding_of(self.core)

    def without_key(self) -> "Blueprint":
        """Return the blueprint without the key of its core, to train on records that are known to be core."""
        return replace(self, core=FullCore(self.sharding.count))

    def core_ids(
        self, ids: NDArray[Any], subjects: NDArray[Any] | None, chosen: NDArray[Any], waiting: NDArray[Any]
    ) -> NDArray[Any]:
        """Return the ids to train on: by rule for HashCore and FullCore, else the chosen ones still present.

        Records that wait for the next fit are not among them.
        """
        if self.decides_each:
            core = self.core_by_rule(ids, subjects)
            return np.setdiff1d(core, waiting) if len(waiting) else core
        return np.intersect1d(chosen, ids)

    def core_by_rule(self, ids: NDArray[Any], subjects: NDArray[Any] | None) -> NDArray[Any]:
        """Return the ids, sorted, of those records that the rule makes core; none where the core was not chosen record
        by record.
        """
        if isinstance(self.core, HashCore | FullCore) and self.decides_each:
            return np.sort(ids[self.core.is_core(ids, subjects)])
        return ids[:0]

    def train_extractor(
        self, records: Dataset, choice: Choice, progress: Progress | None = None, *, tell: bool = False,
        engine: Engine | None = None,
    ) -> nn.Module:  # fmt: skip
        """Train the extractor on the core records; with several shards train one extractor for each, side by side.

        On the CPU several shards are trained by the workers of the engine, if there is one; the bytes are the same.

        With `tell` a warning says, once, if the network is one that cannot be trained on several shards at a time. A
        ranking has said it already.
        """
        if self.frozen:
            network = self.network if isinstance(self.network, nn.Module) else self.network()
            return copy.deepcopy(network).cpu().eval()
        shards = range(self.sharding.count)
        tell = tell and getattr(self.core, "runs", 1) == 1
        return joined(list(self.train_shards(records, choice, shards, progress, tell=tell, engine=engine).values()))

    def train_some(
        self, records: Dataset, choice: Choice, extractor: nn.Module, shards: Collection[int],
        progress: Progress | None = None, engine: EngineLike = None,
    ) -> nn.Module:  # fmt: skip
        """Train the extractors of some shards again, and keep the others as they are."""
        parts = dict(enumerate(parts_of(extractor)))
        several = len(shards) > 1 and chosen_device(self.device).type == "cpu"
        with working_on(engine if several else None) as workers:
            parts |= self.train_shards(records, choice, sorted(shards), progress, engine=workers)
        return joined(list(parts.values()))

    def train_shards(
        self, records: Dataset, choice: Choice, shards: Collection[int], progress: Progress | None, *,
        tell: bool = False, engine: Engine | None = None,
    ) -> dict[int, nn.Module]:  # fmt: skip
        """Train the extractor of each of some shards on the core records of that shard alone.

        Classes are numbered as they come among these, and of several shards a network of this library has as many
        outputs as its own has classes: so it does not matter which others there are, or were. One of several that has
        no records of two classes cannot be trained, and keeps the first weights of its seed.
        """
        core = records.select(np.intersect1d(choice.ids, records.ids))
        if self.sharding.count == 1:
            run = train(
                self.network_for(len(np.unique(core.labels))), relabel(core), self.seed, recipe=self.recipe,
                device=self.device, threads=self.threads, progress=progress,
            )  # fmt: skip
            return {0: split(run.network)[0]}
        found: dict[int, nn.Module] = {}
        shard = self.sharding.of(core.ids, core.subjects)
        for classes, numbers in alike(core.labels, shard, shards).items():
            seeds = [self.sharding.seed(self.seed, number) for number in numbers]
            if len(classes) < 2:
                networks = [begin(self.network, seed) for seed in seeds]
            else:
                mine = np.isin(shard, numbers)
                rows = {seed: np.flatnonzero(shard[mine] == each) for seed, each in zip(seeds, numbers, strict=True)}
                runs = train_apart(
                    self.network_for(len(classes)), relabel(core.select(core.ids[mine])), rows,
                    self.recipe, device=self.device, threads=self.threads, progress=progress, tell=tell,
                    engine=engine if len(numbers) > 1 else None,
                )  # fmt: skip
                networks = [run.network for run in runs]
                tell = tell and len(numbers) == 1  # of which nothing is said
            found |= {number: split(network)[0] for number, network in zip(numbers, networks, strict=True)}
        return {number: found[number] for number in shards}

    def network_for(self, classes: int) -> Network:
        """Return the network with one output for each class. A single shard that starts from the seed keeps the outputs
        it has.
        """
        return self.network if self.sharding.count == 1 and self.start is None else with_outputs(self.network, classes)

    def stored_extractor(self, weights: dict[str, Tensor]) -> nn.Module:
        """Make the extractor again from stored weights: the network's layers, for each shard."""
        shards = self.sharding.count
        if shards > max(len(weights), 1):  # each has some
            raise ValueError(f"there are not the weights of {shards:,} extractors")
        try:
            made = self.network if isinstance(self.network, nn.Module) else made_by(self.network, 0)
        except OtherWeights:
            raise
        except Exception as error:  # of the caller's code
            raise ValueError(f"the network could not be made: {error}") from error
        extractor = copy.deepcopy(made).cpu().eval() if self.frozen else joined([split(made)[0] for _ in range(shards)])
        if types_and_shapes(extractor.state_dict()) != types_and_shapes(weights):
            raise ValueError("the network has other layers than the one that was fitted: name the network that was")
        extractor.load_state_dict(weights)
        return extractor.eval()

    def rebuilt(
        self, extractor: nn.Module, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> tuple[nn.Module, Fingerprint]:
        """Make an extractor again from its weights, and return it with its fingerprint if it computes the same."""
        anew = with_weights_of(extractor, self.stored_extractor(extractor_tensors(extractor)), shape, dtype)
        return anew, Fingerprint.of(anew, shape, dtype)

    def extractors(
        self, core: Dataset, seeds: Sequence[int], device: str | torch.device | None
    ) -> Generator[nn.Module]:
        """Train extractors on these core records, or on those of one shard, from other seeds than the model's."""
        classes = len(np.unique(core.labels))
        if self.sharding.count > 1 and classes < 2:
            yield from (split(begin(self.network, seed))[0] for seed in seeds)
            return
        runs = train_many(self.network_for(classes), relabel(core), seeds, recipe=self.recipe, device=device)
        with closing(runs):
            for run in runs:
                yield split(run.network)[0]

    def untrained(self, records: Dataset, choice: Choice, shards: Collection[int]) -> frozenset[int]:
        """Return which of these shards have too few records to be trained on. A model with a single shard has none."""
        if self.sharding.count == 1:
            return frozenset()
        core = records.select(choice.ids)
        return frozenset(untrained(self.sharding.of(core.ids, core.subjects), core.labels, shards))

    def warn_of_untrained(self, shards: Collection[int], stacklevel: int) -> None:
        """Warn of shards that have too few records left to be trained on, if there are any."""
        if not shards:
            return
        warnings.warn(
            f"{len(shards):,} of the {self.sharding.count:,} shards: no core records of two classes are there to train "
            "an extractor on, which keeps its first weights. Choose fewer shards, or a larger core",
            UntrainedShardsWarning, stacklevel + 1,
        )  # fmt: skip

    def watched(self, records: Dataset, choice: Choice) -> "Blueprint":
        """Return the blueprint with a note whether training twice gives the same bytes. A recipe on the CPU needs no
        note.
        """
        place, seed = chosen_device(self.device), self.sharding.seed(self.seed, 0)
        if self.frozen or (isinstance(self.recipe, Recipe) and place.type == "cpu"):
            return self
        core = relabel(records.select(choice.ids))
        network = self.network_for(len(core.class_names))
        if isinstance(self.recipe, Recipe):
            return replace(self, run_twice=seen_twice(network, core, seed, self.recipe, place, self.threads))
        return replace(self, recipe=self.recipe.watched(network, core, seed, place, self.threads))

    @property
    def embeddings(self) -> bool:
        """Whether the records are features already, without a network."""
        return isinstance(self.network, NoNetwork)

    @property
    def is_at_home(self) -> bool:
        """Whether this process has the device, versions and threads that the model was fitted with."""
        try:
            here = chosen_device(self.device)
        except ValueError:  # it has no such device
            return False
        return Environment.here(here, self.threads) == self.environment

    def embed(self, extractor: nn.Module, records: Dataset, progress: Progress | None = None) -> NDArray[Any]:
        """Return the features of records. Where the records are embeddings, return their inputs as they are."""
        if self.embeddings:
            return records.inputs
        return embed(extractor, records, device=self.device, progress=progress)

    def embed_to_predict(self, extractor: nn.Module, records: Dataset) -> NDArray[Any]:
        """The features of records that no head is fitted on: a few take less time, and round otherwise."""
        return records.inputs if self.embeddings else embed_to_predict(extractor, records, self.device)

    def fit_heads(self, features: NDArray[Any], records: Dataset, progress: Progress | None = None) -> LinearSVM:
        """Fit the heads on the features of these records, without a warning about flat heads: the caller warns of them.

        Where the extractor is on a GPU they are solved there, and kept in main memory: their bytes are the same.
        """
        there = self.solves_on_gpu
        X = torch.from_numpy(features).to(chosen_device(self.device)) if there else features
        with quietly():
            heads = LinearSVM(C=self.C, copy_X=not self.embeddings).fit(
                X, records.labels, sample_weight=self.sample_weights(records), progress=progress
            )
        return heads._on(heads._fitted.solution.samples.in_main_memory()) if there else heads

    def width(self, features: int, records: int) -> float:
        """Features over records; infinite on a GPU, which solves heads as fast as where there are few records."""
        return np.inf if self.solves_on_gpu else features / records

    @property
    def solves_on_gpu(self) -> bool:
        """Whether heads are solved on a GPU."""
        return torch.cuda.is_available() and not self.embeddings and chosen_device(self.device).type == "cuda"

    def move_heads(self, heads: LinearSVM, count: int, move: Callable[[LinearSVM], LinearSVM]) -> LinearSVM:
        """Move heads by so many influential or new records; by many where they were solved, as fast as they were.

        Nothing stays on a GPU, and what `move` leaves of the samples shares its memory with those before.
        """
        if count <= MOST_CHANGED or not self.solves_on_gpu:
            return move(heads)
        before = heads._fitted.solution.samples
        moved = move(heads._on(replace(before, X=torch.tensor(before.X, device=chosen_device(self.device)))))
        after = moved._fitted.solution.samples
        fresh = to_numpy(after.X[len(before.X) :])
        return moved._on(replace(after, X=np.concatenate([before.X, fresh]) if len(fresh) else before.X))

    def check_weights(self, records: Dataset) -> None:
        """Refuse records that count more or less than heads can be solved with."""
        weights = self.sample_weights(records)
        if weights is None:
            return
        with np.errstate(over="ignore", under="ignore"):
            losses = self.C * weights
        beyond = np.flatnonzero(~((losses >= SMALLEST_PENALTY) & (losses <= LARGEST_PENALTY)))
        if len(beyond):
            row = beyond[0]
            raise DataError(
                f"record {records.ids[row].item()!r} counts C · {weights[row]:g} = {losses[row]:g} in the heads, by "
                "its own weight and that of its class: choose weights around 1, so that it is between "
                f"{SMALLEST_PENALTY:.0e} and {LARGEST_PENALTY:.0e}"
            )

    def sample_weights(self, records: "Dataset | HeldRecords") -> NDArray[np.float64] | None:
        """How much each record counts in the heads: its own weight times that of its class; None where all are 1."""
        if records.weights is None and not self.class_weight:
            return None
        of_classes = np.array([self.class_weight.get(name, 1.0) for name in records.class_names])
        own = np.ones(len(records.labels)) if records.weights is None else records.weights
        return np.asarray(own * of_classes[records.labels])


def extractor_tensors(extractor: nn.Module) -> dict[str, Tensor]:
    """The extractor's weights and buffers, each in memory of its own."""
    state: dict[str, Tensor] = extractor.state_dict()
    return {name: value.detach().cpu().contiguous().clone() for name, value in state.items()}


def relabel(core: Dataset) -> Dataset:
    """Number the classes of core records as the extractor is trained on them: in order, from 0, without gaps."""
    classes = np.unique(core.labels)
    names = tuple(core.class_names[label] for label in classes.tolist())
    return replace(core, labels=np.searchsorted(classes, core.labels), class_names=names)


def alike(
    labels: NDArray[np.int64], shard: NDArray[np.int64], shards: Collection[int]
) -> dict[tuple[int, ...], list[int]]:
    """Group shards by the classes that their records have."""
    found: dict[tuple[int, ...], list[int]] = {}
    for number in shards:
        found.setdefault(tuple(np.unique(labels[shard == number]).tolist()), []).append(number)
    return found


# Heads with weights of zero. Where no linear function of the features beats a constant under the hinge loss, the best
# head has no weights and says the same of every record. Every record then lies on its margin or inside it, so that
# every record is influential. Where multipliers balance the features to zero exactly, any multiple does: for every C.


@contextmanager
def quietly() -> Iterator[None]:
    """Fit heads without warnings about flat ones, which name classes by numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FlatHeadWarning)
        yield


def warn_of_flat_heads(classes: Sequence[str], stacklevel: int) -> None:
    """Warn of classes whose heads have weights of zero, and say what helps. `stacklevel` counts from the caller."""
    if classes:
        warnings.warn(flat_message(classes), FlatHeadWarning, stacklevel=stacklevel + 1)
