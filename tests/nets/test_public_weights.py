"""A start from given weights, what fine-tuning may say in a recipe, and images in another size."""

import os

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from maxrr.errors import DataError, OtherWeights
from maxrr.nets import Recipe, Resized, embed, split, train, train_many
from maxrr.nets.embedding import RESIZED_BLOCKS
from maxrr.nets.inputs import chosen_device, records
from maxrr.nets.naming import with_outputs
from maxrr.nets.public_weights import GivenStart, GivenWeights, check_start, hash_of_weights
from maxrr.nets.recipe import Environment, batch_sizes, rate_at
from maxrr.nets.seeding import begin, repeatable, shuffle
from maxrr.nets.training import seen_twice
from maxrr.nets.training_function import training_of
from tests.nets.problems import bytes_of, pictures

CPU = torch.device("cpu")


class Encoder(nn.Module):
    """A small one of the usual shape: stages of convolutions with batch normalisation, and a classifier."""

    def __init__(self, outputs=1000):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
        self.stage = nn.Sequential(nn.Conv2d(4, 6, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(6), nn.ReLU())
        self.classifier = nn.Linear(6, outputs)

    def forward(self, images):
        return self.classifier(self.stage(self.stem(images)).mean((2, 3)))


def public():
    """An encoder whose weights and statistics are not such as layers draw."""
    generator = torch.Generator().manual_seed(7)
    network = Encoder()
    for value in network.state_dict().values():
        if value.is_floating_point():
            value.copy_(0.5 * torch.rand(value.shape, generator=generator) + 0.1)
    return network


def given(network=public, outputs=3):
    weights = GivenWeights.of(network, "given", whole=False)
    return GivenStart(network, weights.sha256, outputs)


def body_of(network):
    return {name: value for name, value in bytes_of(network).items() if not name.startswith("classifier")}


# Where training starts


@pytest.mark.parametrize("network", [public(), public])
def test_all_but_the_last_layer_starts_from_the_given_bytes(network):
    start = given(network)
    one, other = begin(start, 0), begin(start, 1)
    assert body_of(one) == body_of(other) == body_of(public())
    assert one.classifier.weight.shape == (3, 6)
    assert not torch.equal(one.classifier.weight, other.classifier.weight)
    assert bytes_of(begin(with_outputs(start, 5), 0))["classifier.bias"] != bytes_of(one)["classifier.bias"]


def test_a_module_and_the_function_that_makes_it_start_alike():
    assert bytes_of(begin(given(public()), 4)) == bytes_of(begin(given(public), 4))


def test_every_byte_but_those_of_the_last_layer_is_hashed():
    first, changed = hash_of_weights(public()), public()
    with torch.no_grad():
        changed.classifier.weight.zero_()
    assert hash_of_weights(changed) == first
    assert hash_of_weights(changed, whole=True) != hash_of_weights(public(), whole=True)
    hashes = {first}
    for name in body_of(public()):
        other = public()
        other.state_dict()[name].add_(1)
        hashes.add(hash_of_weights(other))
    frozen = public()
    frozen.stem.requires_grad_(False)
    assert len(hashes | {hash_of_weights(frozen)}) == 2 + len(body_of(public()))


@pytest.mark.parametrize("first", ["table", "last"])
def test_weights_that_the_last_layer_shares_are_hashed(first):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            layers = {"table": nn.Embedding(5, 4), "last": nn.Linear(4, 5, bias=False)}
            for name in sorted(layers, key=lambda name: name != first):
                setattr(self, name, layers[name])
            self.last.weight = self.table.weight

    one, other = Tied(), Tied()
    assert hash_of_weights(one) != hash_of_weights(other)


def test_other_weights_are_refused():
    start = given(public)
    with pytest.raises(OtherWeights) as refused:
        begin(GivenStart(Encoder(), start.sha256, 3), 0)
    assert refused.value.code == "other-weights"


def test_a_function_that_draws_weights_gives_none():
    with pytest.raises(DataError):
        GivenWeights.of(Encoder, "given", whole=False)


def test_words_on_the_weights():
    assert GivenWeights.of(public, check_start("seed"), whole=False) is None
    named = GivenWeights.of(public, check_start("given: Small: made up "), whole=False)
    assert (named.name, named.start) == ("Small: made up", "given:Small: made up")
    assert GivenWeights.of(public, check_start("given:"), whole=False).start == "given"
    for wrong in ("pretrained", "seed:7", None, ""):
        with pytest.raises(DataError):
            check_start(wrong)


# What a recipe says of fine-tuning


def test_rates_warm_up_and_one_cycle_by_hand():
    """Step by step with an optimiser of PyTorch's own, which has a group for each rate."""
    recipe = Recipe(3, 8, 2e-2, optimiser="adamw", weight_decay=0.1, schedule="cosine", body_lr=5e-3, warm_up=0.3)
    dataset, seed = pictures(), 4
    found = train(given(), dataset, seed, recipe=recipe, device="cpu", threads=1).network
    network = begin(given(), seed)
    data = records(dataset, network, CPU)
    last = list(network.classifier.parameters())
    body = [weights for name, weights in network.named_parameters() if not name.startswith("classifier")]
    optimiser = torch.optim.AdamW([{"params": body}, {"params": last}], weight_decay=0.1)
    sizes, step = batch_sizes(recipe, len(data)), 0
    for epoch in range(3):
        for rows in torch.from_numpy(shuffle(seed, epoch, len(data))).split(sizes):
            inputs, labels = data.batch(rows)
            factor = rate_at(Recipe(lr=1.0, schedule="cosine", warm_up=0.3), step, 3 * len(sizes))
            for group, rate in zip(optimiser.param_groups, (5e-3, 2e-2), strict=True):
                group["lr"] = factor * rate
            optimiser.zero_grad()
            F.cross_entropy(network(inputs), labels).backward()
            optimiser.step()
            step += 1
    for name, value in network.state_dict().items():
        assert torch.allclose(found.state_dict()[name], value, atol=2e-5), name


def test_the_rate_rises_and_falls_once():
    rates = [rate_at(Recipe(lr=1.0, schedule="cosine", warm_up=0.25), step, 40) for step in range(40)]
    assert rates[9] == rates[10] == 1.0
    assert rates[:10] == sorted(rates[:10])
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert rates[0] == 0.1
    assert 0.0 < rates[-1] < 0.01


HELD = {
    "nothing": (Recipe(2, 8), set()),
    "a stage": (Recipe(2, 8, frozen="stem"), {"stem"}),
    "two layers": (Recipe(2, 8, frozen=("stem", "stage.1")), {"stem", "stage.1"}),
}


@pytest.mark.parametrize("what", HELD)
def test_frozen_stages_stay_as_they_are(what):
    recipe, held = HELD[what]
    before, after = bytes_of(public()), bytes_of(train(given(), pictures(), 0, recipe=recipe, device="cpu").network)
    same = {name for name, value in after.items() if before[name] == value}
    assert same == {name for name in after if any(name.startswith(f"{part}.") for part in held)}


def test_statistics_may_be_kept():
    statistics = [name for name in bytes_of(public()) if "running" in name or "num_batches" in name]
    before = bytes_of(public())
    kept, learned = (
        bytes_of(train(given(), pictures(), 0, recipe=Recipe(1, 8, batch_norm=how), device="cpu").network)
        for how in ("kept", "learned")
    )
    assert statistics
    assert all(kept[name] == before[name] for name in statistics)
    assert all(learned[name] != before[name] for name in statistics)
    assert kept["stem.1.weight"] != before["stem.1.weight"]  # they are trained


def test_kept_statistics_take_batches_of_one_record():
    class Vectors(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.norm, self.last = nn.Linear(64, 4), nn.BatchNorm1d(4), nn.Linear(4, 3)

        def forward(self, images):
            return self.last(self.norm(self.first(images.flatten(1))))

    one_at_a_time = {"epochs": 1, "batch_size": 1, "device": "cpu"}
    assert train(Vectors(), pictures(), 0, batch_norm="kept", **one_at_a_time).loss > 0.0
    with pytest.raises(ValueError, match="1 record"):
        train(Vectors(), pictures(), 0, **one_at_a_time)


def test_bfloat16_is_for_training_alone():
    runs = [
        train(given(), pictures(), 0, recipe=Recipe(2, 8, precision=kind), device="cpu")
        for kind in ("bfloat16", "bfloat16", "float32")
    ]
    one, again, longer = (bytes_of(run.network) for run in runs)
    assert one == again != longer
    features = embed(split(runs[0].network)[0], pictures(), device="cpu")
    assert {value.dtype for value in runs[0].network.parameters()} == {torch.float32}
    assert features.dtype == np.float32
    assert not np.array_equal(features, torch.from_numpy(features).bfloat16().float().numpy())


@pytest.mark.parametrize("wrong", [
    {"body_lr": 0.0}, {"body_lr": -1.0}, {"warm_up": 1.0}, {"warm_up": -0.1}, {"batch_norm": "off"},
    {"precision": "float16"},
])  # fmt: skip
def test_what_is_no_recipe(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Recipe(**wrong)


@pytest.mark.parametrize("frozen", [("nowhere",), ("stem", "stage", "classifier")])
def test_layers_that_cannot_be_frozen(frozen):
    with pytest.raises(DataError):
        train(given(), pictures(), 0, recipe=Recipe(1, 8, frozen=frozen), device="cpu")


def test_a_recipe_of_fine_tuning_comes_back_from_its_facts():
    recipe = Recipe(2, 8, body_lr=1e-4, warm_up=0.1, frozen="stem", batch_norm="kept", precision="bfloat16")
    assert training_of(recipe.facts) == recipe
    assert [bytes_of(run.network) for run in train_many(given(), pictures(), [3, 4], recipe=recipe, device="cpu")] == [
        bytes_of(train(given(), pictures(), seed, recipe=recipe, device="cpu", threads=1).network) for seed in (3, 4)
    ]


# Whether a recipe gives the same bytes twice


class ByChance(nn.Module):
    """Draws numbers in training that nobody can draw again."""

    def forward(self, images):
        return images + int.from_bytes(os.urandom(2), "big") / 2**16 if self.training else images


def test_two_short_runs_are_compared():
    recipe = Recipe(50, 8, precision="bfloat16")
    network = nn.Sequential(nn.Flatten(), nn.Linear(64, 4), nn.ReLU(), nn.Linear(4, 3))
    assert seen_twice(network, pictures(200), 0, recipe, CPU, 1) == "same"
    found = seen_twice(nn.Sequential(ByChance(), *network), pictures(200), 0, recipe, CPU, 1)
    assert found.startswith("4 of 4 ")


def test_settings_of_training_on_a_gpu_come_back():
    def settings():
        return (
            torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision(),
            torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32,
            torch.utils.deterministic.fill_uninitialized_memory,
        )  # fmt: skip

    before = settings()
    with repeatable():
        assert settings() == (True, "highest", True, False, False, False)
        with repeatable():
            pass
        assert settings() == (True, "highest", True, False, False, False)
    assert settings() == before


def test_products_on_a_gpu_have_a_fixed_workspace(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for said, expected in ((None, ":4096:8"), (":16:8", ":16:8")):
        monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
        if said is not None:
            monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", said)
        assert chosen_device(None).type == "cuda"
        assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == expected


def test_versions_of_what_computes_on_a_gpu_are_named(monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: "GPU")
    found = Environment.here(torch.device("cuda", 7), 1).device
    assert found.startswith(f"GPU, CUDA {torch.version.cuda}, cuDNN {torch.backends.cudnn.version()}")
    assert Environment.here(CPU, 1).device == "cpu"


# Images in another size


@pytest.mark.parametrize(("shape", "size"), [((8, 8), 20), ((9, 5), 12), ((32, 32), 13), ((7, 7), 7)])
def test_images_are_resized_as_pytorch_does(shape, size):
    images = torch.rand(4, 3, *shape, generator=torch.Generator().manual_seed(0))
    mean, scale = torch.tensor([0.1, 0.2, 0.3]), torch.tensor([0.5, 2.0, 4.0])
    found = Resized(nn.Identity(), size, mean.tolist(), scale.tolist())(images)
    plain = F.interpolate(images, (size, size), mode="bilinear", align_corners=False, antialias=True)
    assert torch.allclose(found, (plain - mean[:, None, None]) / scale[:, None, None], atol=1e-5)


def test_what_is_resized_does_not_depend_on_the_precision_of_training():
    images, resized = torch.rand(2, 1, 8, 8), Resized(nn.Identity(), 20, 0.5, 0.25)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(resized(images), resized(images.clone()))
        assert resized(images).dtype == torch.float32
        inside = resized(images)
    assert torch.equal(inside, resized(images))


def test_features_of_resized_records_do_not_depend_on_the_others():
    extractor = split(Resized(Encoder(3), 40, 0.5, 0.25))[0]
    dataset = pictures(2 * RESIZED_BLOCKS["cpu"] + 5)
    everything = embed(extractor, dataset, device="cpu")
    some = dataset.ids[3::7]
    assert everything[3::7].tobytes() == embed(extractor, dataset.select(some), device="cpu").tobytes()


def test_grey_images_become_channels():
    found = Resized(nn.Identity(), 4, (0.1, 0.2, 0.3), 1.0)(torch.full((1, 1, 2, 2), 0.5))
    assert torch.allclose(found[0, :, 0, 0], torch.tensor([0.4, 0.3, 0.2]))


@pytest.mark.parametrize("wrong", [{"size": 0}, {"size": 8, "scale": 0.0}, {"size": 8, "scale": (1.0, 0.0)}])
def test_sizes_that_are_none(wrong):
    with pytest.raises(ValueError, match="pixel"):
        Resized(nn.Identity(), **wrong)
