"""How long the parts of a request take on the machine at hand, for the core that the library recommends.

Networks are trained for an eighth of the epochs: what a step, an embedding or a fit takes hardly depends on it.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import torch

from lab.heads import solve_one_vs_one
from lab.lab import Lab
from lab.results import Json
from lab.shard_costs import Speeds
from lab.shard_networks import MIDDLE, embed_side_by_side, network, shard_rows, train_shards
from maxrr import LinearSVM
from maxrr.nets import split
from maxrr.nets.training import train as train_network
from maxrr.nets.training import warm_up
from maxrr.parallel.engine import cores

SHORTER = 8  # times as few epochs
SOME = 5_000  # records that training is timed with
LENGTHS = (1, 4)  # epochs of two trainings, whose difference is that of the steps
AGAIN = 2.0  # seconds: what takes less is done twice, and the faster counts
WIDEST = {"cpu": 672, "cuda": 2_048}  # features of all shards: with more a fit takes minutes
REQUEST = 1_800  # names what is drawn


def machine(device: torch.device) -> str:
    """What it is called.

    >>> machine(torch.device("cpu")).startswith("cpu, ")
    True
    """
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"cpu, {cores()} core{'s' * (cores() != 1)}"


@dataclass(frozen=True)
class Setting:
    """What seconds depend on: how many shards, how wide the networks are. And for how many epochs these are trained."""

    shards: int
    width: float
    epochs: int

    @property
    def name(self) -> str:
        """What it is called in a file: epochs only make for more steps."""
        return f"S = {self.shards}, width {self.width:g}"


def time_parts(lab: Lab, settings: Sequence[Setting], requests: Sequence[int]) -> Json:
    """Seconds for every setting, as `shard_costs.Speeds` has them; heads are moved for these numbers of records."""
    warm_up(lab.device)
    training = {width: time_training(lab, width) for width in {setting.width for setting in settings}}
    found: Json = {}
    for setting in settings:
        features = setting.shards * split(network(lab, setting.width))[1].in_features
        if features <= WIDEST[lab.device.type]:
            found[setting.name] = asdict(time_setting(lab, setting, training[setting.width], requests))
    return {"speeds": found, "load": os.getloadavg()[0], "epochs": f"1/{SHORTER} of the study's"}


def time_training(lab: Lab, width: float) -> tuple[float, float]:
    """Seconds of one network on one thread or device: that do not depend on the records, and for each of them."""
    (rows,) = shard_rows(lab, MIDDLE, 1)
    records = lab.training.select(lab.training.ids[rows[:SOME]])

    def train(epochs: int) -> None:
        recipe = replace(lab.profile.recipe, epochs=epochs)
        train_network(network(lab, width), records, 0, recipe=recipe, device=lab.device, threads=1)

    few, many = (best(lab, lambda epochs=epochs: train(epochs)) for epochs in LENGTHS)  # type: ignore[misc]
    short, long = (len(records) * epochs for epochs in LENGTHS)
    if not few / short > many / long > 0.0 or many <= few:  # too short, or disturbed, to tell them apart
        return 0.0, many / long
    step = (many - few) / (long - short)
    return few - step * short, step


def time_setting(
    lab: Lab, setting: Setting, training: tuple[float, float], requests: Sequence[int]
) -> Speeds:  # fmt: skip
    """Seconds for one number of shards and one width, where those of training are known."""
    template, rows = network(lab, setting.width), shard_rows(lab, MIDDLE, setting.shards)
    recipe = replace(lab.profile.recipe, epochs=max(1, setting.epochs // SHORTER))
    (networks,) = train_shards(lab, template, rows, recipe, lab.seeds(1))
    extractor = split(networks[0])[0]
    embed = best(lab, lambda: lab.features(extractor))
    features, _ = embed_side_by_side(lab, networks)
    heads, movable = LinearSVM(), lab.profile.heads == "one-vs-rest"  # heads of pairs are always fitted anew
    labels = lab.training.labels
    if movable:
        fit = best(lab, lambda: heads.fit(features.training, labels))
    else:
        fit = best(lab, lambda: solve_one_vs_one(features.training, labels, None))
    outside = np.setdiff1d(np.arange(len(lab.training)), np.concatenate(rows))
    return Speeds(
        *training, cores() if lab.device.type == "cpu" else 1, embed, fit,
        {count: time_move(lab, heads, outside, count) for count in requests if movable and count <= len(outside)},
    )  # fmt: skip


def time_move(lab: Lab, heads: LinearSVM, outside: Any, count: int) -> float:
    """Seconds to move the heads when random records outside the core go, of which one is influential at least."""
    influential = np.intersect1d(outside, heads.support_)
    first = lab.draw(influential, min(1, len(influential)), REQUEST, count)
    others = lab.draw(np.setdiff1d(outside, first), count - len(first), REQUEST, count)
    return best(lab, lambda: heads._without(np.concatenate([first, others])))


def best(lab: Lab, work: Callable[[], object]) -> float:
    """Seconds of a call; of the faster of two, if it is short."""
    taken: list[float] = []
    while len(taken) < 2 and sum(taken) < AGAIN:
        started = perf_counter()
        work()
        if lab.device.type == "cuda":
            torch.cuda.synchronize(lab.device)
        taken.append(perf_counter() - started)
    return min(taken)
