"""Training from given weights on a GPU: twice the same bytes, and a replay of a request that is identical.

make cuda        # or: PYTHONPATH=src:. python tests/cuda/test_public_weights.py
"""

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import nn

from maxrr.core import HashCore
from maxrr.data import Dataset
from maxrr.nets import Recipe, Resized, embed, runs, split
from maxrr.nets.public_weights import GivenStart, GivenWeights
from maxrr.nets.recipe import Environment
from maxrr.nets.recorded import Step, recorded
from maxrr.nets.seeding import repeatable
from maxrr.nets.training import seen_twice, train
from maxrr.unlearning import MaxRR, replay

CUDA = torch.device("cuda")
FINE_TUNING = Recipe(
    3, 64, 2e-3, optimiser="adamw", weight_decay=0.01, schedule="cosine", warm_up=0.2, body_lr=5e-4,
    label_smoothing=0.1, augment=("flip", "shift:4"), precision="bfloat16",
)  # fmt: skip
PLAIN = Recipe(2, 64, schedule="linear")  # in float32; a schedule keeps it from stepping as a stack


class Bottleneck(nn.Module):
    """As in EfficientNet: wide, by channel, narrow, past which the input goes; now and then left out in training."""

    def __init__(self, channels: int, out: int, stride: int) -> None:
        super().__init__()
        wide = 4 * channels
        self.layers = nn.Sequential(
            nn.Conv2d(channels, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        self.past = stride == 1 and channels == out

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.layers(images)
        if not self.past:
            return found
        if self.training:
            found = found * (torch.rand(len(images), 1, 1, 1, device=images.device) < 0.9) / 0.9
        return images + found


class Encoder(nn.Module):
    """A small network of the kind that public weights come for, with 1,000 outputs."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU6())
        self.stages = nn.Sequential(Bottleneck(16, 24, 2), Bottleneck(24, 24, 1), Bottleneck(24, 40, 2))
        self.pool, self.dropout = nn.AdaptiveAvgPool2d(1), nn.Dropout(0.2)
        self.classifier = nn.Linear(40, 1000)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.pool(self.stages(self.stem(images))).flatten(1)
        found: torch.Tensor = self.classifier(self.dropout(features))
        return found


def public(size: int = 96) -> nn.Module:
    """The network with made-up weights, for pictures of another size."""
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        return Resized(Encoder(), size, mean=(0.49, 0.48, 0.45), scale=(0.25, 0.24, 0.26))


def pictures(count: int = 1500) -> Dataset:
    """Coloured pictures in bytes, of ten classes that can be told apart."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 10
    marks = rng.integers(0, 256, (10, 3, 32, 32))
    inputs = 0.5 * marks[labels] + 0.5 * rng.integers(0, 256, (count, 3, 32, 32))
    return Dataset(inputs.astype(np.uint8), labels, tuple("abcdefghij"), np.arange(count))


def model(recipe: Recipe, shards: int = 1) -> MaxRR:
    core = HashCore(0.4, key="house", shards=shards)
    return MaxRR(public(), core, start="given:Encoder, made up", train=recipe, C=0.1, device="cuda")


def test_the_same_bytes_twice() -> None:
    weights = GivenWeights.of(public(), "given", whole=False)
    assert weights is not None
    start = GivenStart(public(), weights.sha256, 10)
    for recipe in (FINE_TUNING, PLAIN):
        assert seen_twice(start, pictures(), 3, recipe, CUDA, 1) == "same"
        one, other = (train(start, pictures(), 3, recipe=recipe, device=CUDA).network.state_dict() for _ in range(2))
        assert all(torch.equal(one[name], value) for name, value in other.items())


class Looks(nn.Module):
    """Looks at a number as it goes, which no recorded step can."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features if float(features.detach().mean()) < 1e9 else -features


class Sometimes(nn.Module):
    """Left out now and then, by a number that is drawn on the CPU."""

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return features if self.training and float(torch.rand(())) < 0.5 else 2.0 * features


def plain(*more: nn.Module) -> nn.Module:
    return nn.Sequential(
        nn.Flatten(), nn.Linear(3 * 32 * 32, 20), nn.BatchNorm1d(20), nn.ReLU(), *more, nn.Linear(20, 10)
    )


def test_recorded_steps_are_the_steps() -> None:
    networks: dict[str, Callable[[], nn.Module]] = {
        "convolutions that draw": public,
        "plain": plain,
        "looks at numbers": partial(plain, Looks()),
        "draws on the CPU": partial(plain, Sometimes()),
    }
    for name, network in networks.items():
        made, was_recorded = [], []

        def look(step: Step, *rest: Any, found: list[bool] = was_recorded) -> Step:
            result = recorded(step, *rest)
            found.append(result is not step)
            return result

        for recording in (look, lambda step, *_: step):
            with mock.patch.object(runs, "recorded", recording):
                began = time.perf_counter()
                made.append(train(network(), pictures(700), 3, recipe=PLAIN, device=CUDA).network.state_dict())
                print(f"{name}: {time.perf_counter() - began:.2f} s")
        assert was_recorded == [name in ("convolutions that draw", "plain")], name
        same = all(torch.equal(made[0][key], value) for key, value in made[1].items())
        assert same is (name in ("plain", "looks at numbers")), name  # others draw more numbers: in the steps before


def test_a_request_is_a_fit_without_the_records_and_is_replayed() -> None:
    training = pictures()
    for shards in (1, 2):
        changed = model(FINE_TUNING, shards).fit(training)
        ids = changed.ids_of("core")[[0, 7]]
        began = time.perf_counter()
        receipt = changed.unlearn(ids, core_policy="retrain")
        print(f"{shards} shard(s): exact-retrain in {time.perf_counter() - began:.2f} s, {receipt.bytes_claim}")
        assert receipt.recipe["run_twice"] == "same"
        assert len(receipt.conditions) == 1
        assert receipt.bytes_claim.startswith(("identical", "within"))
        assert changed.model_hash_ == model(FINE_TUNING, shards).fit(training.without(ids)).model_hash_
    outcome = replay(receipt, changed, training).outcome
    assert outcome.startswith(("identical", "within")), outcome


def test_features_do_not_depend_on_the_others() -> None:
    extractor, records = split(public())[0], pictures(1100)
    found = embed(extractor, records, device=CUDA)
    assert found.dtype == np.float32
    assert found[5::9].tobytes() == embed(extractor, records.select(records.ids[5::9]), device=CUDA).tobytes()


def test_settings_come_back_and_versions_are_named() -> None:
    before = torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic
    with repeatable():
        assert torch.are_deterministic_algorithms_enabled()
        assert not torch.backends.cuda.matmul.allow_tf32
        assert not torch.backends.cudnn.allow_tf32
    assert before == (torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.deterministic)
    named = Environment.here(CUDA, 1).device
    assert f"cuDNN {torch.backends.cudnn.version()}" in named
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"]


if __name__ == "__main__":
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print(name)
