"""Methods that promise something: each is fitted, forgets records by their ids, and answers.

Retraining is what all are measured by. SISA trains networks on shards, slice by slice, keeps a copy of the weights
before each slice, and goes on from the copy that no forgotten record is in. A ridge head is solved from d × d sums,
from which records are taken off. Certified removal takes a Newton step, and counts how large the gradient may be that
is left: noise in the objective hides so much of it. Ours is `maxrr.MaxRR`.

References
----------
SISA: L. Bourtoule et al., "Machine unlearning", 2021. Ridge head: arXiv 2603.12977. Certified removal: C. Guo,
T. Goldstein, A. Hannun, L. van der Maaten, "Certified data removal from machine learning models", 2020.
"""

import copy
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from lab.public_others import one_hot, with_ones, without
from lab.votes import softmax
from maxrr import MaxRR
from maxrr.core.shards import Sharding
from maxrr.data import Dataset
from maxrr.nets import Recipe, embed, train
from maxrr.nets.seeding import Network, begin, stream

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Bench:
    """What methods work with: a network and how it is trained, and features that no record shapes."""

    network: Network
    recipe: Recipe
    part: Recipe  # of SISA's shards
    device: torch.device
    classes: int
    features: Callable[[Dataset], NDArray[Any]]
    ours: Callable[[str, int], MaxRR]  # by the name of the row and a seed
    ridge: float = 1.0  # its strength, one of `Ridge.GRID`
    certified: tuple[float, float] = (1e-3, 1.0)  # decay and noise, one of `Certified.GRID`


class Method(Protocol):
    """One of them, after it was fitted."""

    def forget(self, ids: Iterable[Any]) -> None:
        """Forget these records."""

    def probabilities(self, records: Dataset) -> Floats:
        """Of each class, (records, classes)."""

    @property
    def kept(self) -> int:
        """How many bytes are kept for requests, beside the model and the raw records."""


class Retraining:
    """One network on all records."""

    kept = 0

    def __init__(self, bench: Bench, records: Dataset, seed: int) -> None:
        self.bench, self.records, self.seed = bench, records, seed
        self.network = train(bench.network, records, seed, recipe=bench.recipe, device=bench.device).network

    def forget(self, ids: Iterable[Any]) -> None:
        self.__init__(self.bench, self.records.without(list(ids)), self.seed)  # type: ignore[misc]

    def probabilities(self, records: Dataset) -> Floats:
        return softmax(embed(self.network, records, device=self.bench.device))


class Sisa:
    """A network for each shard, trained slice by slice; the mean of their probabilities is the answer."""

    PARTS, SLICES = 5, 3
    GRID = (1, 2, 3)  # times the epochs of a training on all records

    def __init__(self, bench: Bench, records: Dataset, seed: int) -> None:
        self.bench, self.records, self.seed = bench, records, seed
        self.copies: list[list[nn.Module]] = [[] for _ in range(self.PARTS)]  # before each slice, and at the end
        for part in range(self.PARTS):
            self.train(part, 0)

    def place(self, records: Dataset) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Shard and slice of each record: by hashes of its id alone."""
        key = f"SISA {self.seed}".encode()
        found = [Sharding(count, key + what, by="record").of(records.ids)
                 for count, what in ((self.PARTS, b"part"), (self.SLICES, b"slice"))]  # fmt: skip
        return found[0], found[1]

    def train(self, part: int, first: int) -> None:
        """Train a shard again from a slice on: each time on all slices so far, together as often as one training."""
        parts, slices = self.place(self.records)
        epochs = max(1, round(2 * self.bench.part.epochs / (self.SLICES + 1)))
        recipe = replace(self.bench.part, epochs=epochs)
        seeds = stream(self.seed, part).generate_state(self.SLICES + 1, np.uint32).tolist()
        kept = self.copies[part][: first + 1] or [begin(self.bench.network, seeds[0])]
        for number in range(first, self.SLICES):
            mine = self.records.select(self.records.ids[(parts == part) & (slices <= number)])
            start = kept[-1]
            run = train(partial(copy.deepcopy, start), mine, seeds[1 + number], recipe=recipe, device=self.bench.device)
            kept.append(run.network)
        self.copies[part] = kept

    def forget(self, ids: Iterable[Any]) -> None:
        gone = self.records.select(list(ids))
        parts, slices = self.place(gone)
        self.records = self.records.without(gone.ids)
        for part in np.unique(parts).tolist():
            self.train(part, int(slices[parts == part].min()))

    def probabilities(self, records: Dataset) -> Floats:
        said = [softmax(embed(copies[-1], records, device=self.bench.device)) for copies in self.copies]
        return np.asarray(np.mean(said, axis=0))

    @property
    def kept(self) -> int:
        # First weights follow from a seed.
        states = [network.state_dict() for copies in self.copies for network in copies[1:-1]]
        return sum(value.nbytes for state in states for value in state.values())


class Store:
    """Features and signs of the records that are there: a request embeds nothing."""

    def __init__(self, X: Tensor, records: Dataset, classes: int) -> None:
        self.X, self.signs = X, one_hot(records.labels, classes).to(X)
        self.rows = {id_: row for row, id_ in enumerate(records.ids.tolist())}

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, ids: Iterable[Any]) -> tuple[Tensor, Tensor]:
        """Take records out, and return what they had; zeros, which count in no sum, save a copy of all others."""
        rows = [self.rows.pop(id_) for id_ in ids]
        found = self.X[rows], self.signs[rows]
        self.X[rows], self.signs[rows] = 0.0, 0.0
        return found

    @property
    def nbytes(self) -> int:
        return int(self.X.nbytes + self.signs.nbytes)


class Ridge:
    """A ridge head on frozen features, solved anew from sums without the records."""

    GRID = (1e-4, 1e-2, 1.0, 1e2)  # constants: one that follows from the records would remember them

    def __init__(self, bench: Bench, records: Dataset, seed: int) -> None:
        self.bench = bench
        X = self.features(records)
        self.store = Store(X, records, bench.classes)
        self.inverse = torch.linalg.inv(X.T @ X + bench.ridge * torch.eye(X.shape[1]).to(X))
        self.products = X.T @ self.store.signs
        self.weights = self.inverse @ self.products

    def features(self, records: Dataset) -> Tensor:
        return with_ones(self.bench.features(records), self.bench.device)

    def forget(self, ids: Iterable[Any]) -> None:
        gone = self.store.take(ids)
        self.weights, self.inverse, self.products = without(self.inverse, self.products, *gone)

    def probabilities(self, records: Dataset) -> Floats:
        return softmax((self.features(records) @ self.weights).cpu().numpy())

    @property
    def kept(self) -> int:
        return self.store.nbytes + int(self.inverse.nbytes + self.products.nbytes)


class Certified:
    """Logistic heads, one for each class, on frozen features of length 1, with noise in their objective."""

    EPSILON, DELTA = 1.0, 1e-4  # of each head
    # Decay a record, and noise: the less there is of both, the more requests need a new fit.
    GRID = ((1e-6, 0.01), (1e-6, 0.1), (1e-5, 0.1), (1e-5, 1.0), (1e-4, 1.0), (1e-3, 1.0), (1e-3, 10.0), (1e-2, 10.0))
    LIPSCHITZ = 0.25  # of the second derivative of the logistic loss

    def __init__(self, bench: Bench, records: Dataset, seed: int, fits: int = 0) -> None:
        self.bench, self.seed, self.fits = bench, seed, fits  # as if fitted so often before
        self.decay, self.scale = bench.certified
        self.X = self.features(records)
        self.store = Store(self.X, records, bench.classes)
        self.fit()

    def features(self, records: Dataset) -> Tensor:
        X = with_ones(self.bench.features(records), self.bench.device)
        return torch.as_tensor(X / X.norm(dim=1, keepdim=True))

    def fit(self) -> None:
        """Solve by Newton's method with fresh noise; steps are damped, as a small decay lets whole ones diverge."""
        random, size = np.random.default_rng([self.seed, self.fits]), (self.X.shape[1], self.bench.classes)
        self.noise = torch.from_numpy(random.normal(scale=self.scale, size=size)).to(self.X)
        self.left, self.fits = torch.zeros(self.bench.classes), self.fits + 1
        self.weights = torch.zeros_like(self.noise)
        for _ in range(50):
            slopes = self.gradient(self.weights)
            if float(slopes.norm(dim=0).max()) < 1e-9:
                break
            solved = [torch.linalg.solve(self.hessian(head), slopes[:, head]) for head in range(self.bench.classes)]
            steps = torch.stack(solved, dim=1)
            self.weights = self.weights - self.sizes(steps, slopes) * steps

    def sizes(self, steps: Tensor, slopes: Tensor) -> Tensor:
        """How much of each head's step to take: all, halved until its gradient is smaller afterwards."""
        sizes = torch.ones_like(slopes[0])
        for _ in range(30):
            larger = self.gradient(self.weights - sizes * steps).norm(dim=0) > slopes.norm(dim=0)
            if not larger.any():
                break
            sizes[larger] /= 2.0
        return sizes

    def gradient(self, weights: Tensor) -> Tensor:
        """Of all heads' objectives on the records that are there: (features, classes)."""
        return self.slope(self.X, self.store.signs, weights) + len(self.store) * self.decay * weights + self.noise

    def slope(self, X: Tensor, signs: Tensor, weights: Tensor) -> Tensor:
        """The gradient of the logistic losses alone."""
        return X.T @ (-signs * torch.sigmoid(-signs * (X @ weights)))

    def hessian(self, head: int) -> Tensor:
        """Of one head's objective on the records that are there."""
        said = torch.sigmoid(self.X @ self.weights[:, head])
        curved = self.X.T @ (self.X * (said * (1.0 - said))[:, None])
        return curved + len(self.store) * self.decay * torch.eye(self.X.shape[1]).to(self.X)

    @property
    def most(self) -> float:
        """How large a gradient the noise hides, at (ε, δ)."""
        return self.scale * self.EPSILON / math.sqrt(2.0 * math.log(1.5 / self.DELTA))

    def forget(self, ids: Iterable[Any]) -> None:
        X, signs = self.store.take(ids)
        if not len(X):
            return
        change = self.slope(X, signs, self.weights) + len(X) * self.decay * self.weights
        norm = math.sqrt(float(torch.linalg.eigvalsh(self.X.T @ self.X)[-1]))
        steps = [torch.linalg.solve(self.hessian(head), change[:, head]) for head in range(self.bench.classes)]
        for head, step in enumerate(steps):
            self.weights[:, head] += step
            self.left[head] += self.LIPSCHITZ * norm * float(step.norm()) * float((self.X @ step).norm())
        if float(self.left.max()) > self.most:
            self.fit()

    def anew(self, records: Dataset) -> "Certified":
        """A new fit on these records under the noise of this model: what is apart is what removal left."""
        return Certified(self.bench, records, self.seed, self.fits - 1)

    def probabilities(self, records: Dataset) -> Floats:
        logs = nn.functional.logsigmoid(self.features(records) @ self.weights)  # their shares, even where all are tiny
        return np.asarray(torch.softmax(logs, dim=1).cpu().numpy())

    @property
    def kept(self) -> int:
        return self.store.nbytes


class Ours:
    """Exact heads on an extractor that saw the core alone, or on frozen features."""

    def __init__(self, bench: Bench, records: Dataset, seed: int, row: str) -> None:
        self.bench, self.model = bench, bench.ours(row, seed).fit(records)

    def forget(self, ids: Iterable[Any]) -> None:
        self.model.unlearn(list(ids), core_policy="retrain")

    def probabilities(self, records: Dataset) -> Floats:
        said = self.model.predict_proba(records)
        full = np.zeros((len(records), self.bench.classes))
        full[:, [records.class_names.index(name) for name in self.model.classes_]] = said
        return full

    @property
    def kept(self) -> int:
        return int(8 * len(self.model.ids_of()) * self.model.heads_.coef_.shape[1])  # features, as the heads keep them


CORE, FROZEN = "MaxRR, small core", "MaxRR, frozen features"
METHODS: dict[str, Callable[[Bench, Dataset, int], Method]] = {
    "retraining": Retraining, "SISA": Sisa, "ridge head": Ridge, "certified removal": Certified,
    CORE: lambda bench, records, seed: Ours(bench, records, seed, CORE),
    FROZEN: lambda bench, records, seed: Ours(bench, records, seed, FROZEN),
}  # fmt: skip
