"""Cores in shards as the study trains them: their records, a network on each, and all features beside each other."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from lab.heads import Floats
from lab.lab import Features, Lab
from lab.selectors import Selector, frequency, middle_of_few
from maxrr.core import HashCore
from maxrr.core.shards import TIE_BREAKER, Sharding
from maxrr.nets import LeNet5, Recipe, split
from maxrr.nets.runs import Task
from maxrr.nets.training import run_all
from maxrr.parallel.engine import cores
from maxrr.parallel.ray_cluster import engine_from
from maxrr.svm.arrays import to_numpy

FULL, MIDDLE = "full", "middle"

Ids = NDArray[Any]
Rows = NDArray[np.int64]


def hashed(lab: Lab, k: int) -> Ids:
    """About k records, as `HashCore` has them."""
    ids = lab.training.ids
    return ids[HashCore(k / len(ids), TIE_BREAKER).is_core(ids)]


CORES: Mapping[str, Selector] = {
    FULL: lambda lab, _: lab.training.ids,
    MIDDLE: middle_of_few,
    "hash": hashed,
    "frequency": frequency,
}


def shard_rows(lab: Lab, core: str, shards: int) -> list[Rows]:
    """The training records of each shard, by their rows."""
    rows = np.sort(lab.training.rows(CORES[core](lab, lab.profile.large)))
    shard = Sharding(shards, TIE_BREAKER).of(lab.training.ids[rows])
    found = [rows[shard == number] for number in range(shards)]
    if not all(map(len, found)):
        raise ValueError(f"of {shards} shards of {len(rows):,} records some are empty: {core} needs fewer")
    return found


def network(lab: Lab, width: float) -> nn.Module:
    """What is trained on a shard: the lab's network, or a narrow LeNet-5."""
    return lab.network if width == 1.0 else LeNet5(lab.training.shape, len(lab.training.class_names), width)


def train_shards(
    lab: Lab, template: nn.Module, rows: Sequence[Rows], recipe: Recipe, seeds: Sequence[int]
) -> Iterator[list[nn.Module]]:  # fmt: skip
    """For each seed the networks of all shards, each of which sees the records of its own alone."""
    sharding = Sharding(len(rows))
    seen = {
        sharding.seed(seed, number): mine
        for seed in seeds
        for number, mine in enumerate(rows if lab.device.type == "cpu" else alike(rows))
    }
    task = Task(template, lab.training, recipe, lab.device, 1, seen)
    networks = [run.network for run in run_all(task, list(seen), cores(), lab.progress, engine_from(lab.engine))]
    for first in range(0, len(networks), len(rows)):
        yield networks[first : first + len(rows)]


def alike(rows: Sequence[Rows]) -> list[Rows]:
    """The same shards with equally many rows, as networks that step together need: a small one has some twice.

    >>> [mine.tolist() for mine in alike([np.array([3, 5]), np.array([1, 2, 4])])]
    [[3, 5, 3], [1, 2, 4]]
    """
    most = max(map(len, rows))
    return [np.resize(mine, most) for mine in rows]


def embed_side_by_side(lab: Lab, networks: Sequence[nn.Module]) -> tuple[Features, Floats]:
    """The features of all shards beside each other; and each network's own scores of the test records."""
    blocks, scores = [], []
    for one in networks:
        extractor, last = split(one)
        block = lab.features(extractor)
        blocks.append(block)
        with torch.no_grad():
            scores.append(last(torch.from_numpy(to_numpy(block.test))).numpy().astype(np.float64))
    return Features(*(beside([getattr(block, side) for block in blocks]) for side in ("training", "test"))), np.stack(
        scores
    )


def beside(blocks: Sequence[Any]) -> Any:
    """Arrays or tensors, joined along the features."""
    return torch.cat(list(blocks), 1) if isinstance(blocks[0], torch.Tensor) else np.concatenate(blocks, axis=1)
