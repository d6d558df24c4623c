"""Networks read pixels as the profile says; results that say nothing of pixels are of divided ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from lab.lab import Lab
from lab.profiles import PROFILES
from maxrr.data import Dataset
from maxrr.nets.inputs import records
from tests.lab.problems import TINY, tiny_lab

BYTES = np.random.default_rng(0).integers(0, 256, (30, 1, 8, 8), dtype=np.uint8)


def side(inputs: np.ndarray, first: int) -> Dataset:
    ids = np.arange(first, first + len(inputs))[::-1]
    return Dataset(inputs, ids % 3, ("a", "b", "c"), ids)


def lab_of(tmp_path, monkeypatch, pixels):
    monkeypatch.setattr("lab.lab.load", lambda name: (side(BYTES[:20], 0), side(BYTES[20:], 20)))
    return Lab.of(replace(TINY, pixels=pixels), tmp_path, device="cpu")


def seen(lab: Lab, dataset: Dataset) -> np.ndarray:
    """What the network is given."""
    found = records(dataset, lab.network, torch.device("cpu"))
    return found.batch(torch.arange(len(found)))[0].numpy()


def test_a_network_is_given_the_pixels_that_the_profile_names(tmp_path, monkeypatch):
    raw, middle, spread = BYTES[:20][::-1], BYTES[:20].mean(), BYTES[:20].std()
    for pixels, wanted in (("divided", raw / 255), ("raw", raw), ("standardised", (raw - middle) / spread)):
        lab = lab_of(tmp_path, monkeypatch, pixels)
        assert lab.profile.pixels == pixels
        assert lab.training.ids.tolist() == list(range(20))
        np.testing.assert_allclose(seen(lab, lab.training), wanted, atol=1e-5)
        assert seen(lab, lab.training).dtype == np.float32
    test = (BYTES[20:][::-1] - middle) / spread  # by what the training records have
    np.testing.assert_allclose(seen(lab, lab.test), test, atol=1e-5)
    assert seen(lab_of(tmp_path, monkeypatch, "raw"), lab.test).max() <= 255


def test_divided_pixels_stay_bytes(tmp_path, monkeypatch):
    assert lab_of(tmp_path, monkeypatch, "divided").training.inputs.dtype == np.uint8


def test_only_pixels_as_they_are_stored_can_be_read_in_another_way(tmp_path):
    lab = tiny_lab(tmp_path).with_pixels("standardised")
    with pytest.raises(ValueError, match="standardised here"):
        lab.with_pixels("raw")


def test_settings_name_pixels_that_are_not_divided(tmp_path):
    lab = tiny_lab(tmp_path)
    for profile in PROFILES.values():
        assert profile.to_json().get("pixels", "divided") == profile.pixels
        assert ("pixels" in profile.to_json()) == (profile.pixels != "divided")
    assert lab.with_pixels("raw").setting["profile"]["pixels"] == "raw"
    assert lab.with_pixels("divided").setting == lab.setting


def test_a_ranking_of_other_pixels_is_refused(tmp_path):
    lab = tiny_lab(tmp_path, heads="one-vs-one")
    assert lab.ranking.votes.tobytes() == tiny_lab(tmp_path, heads="one-vs-one").ranking.votes.tobytes()
    with pytest.raises(ValueError, match="another profile"):
        _ = lab.with_pixels("raw").ranking
