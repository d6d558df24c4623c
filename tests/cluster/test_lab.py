"""What a cluster measures of the paper is what this machine measures, and either goes on where the other stopped."""

import json
from dataclasses import replace

import numpy as np
import pytest
from torch.nn.utils import parameters_to_vector

from lab import heads
from lab.__main__ import app
from lab.profiles import PROFILES
from lab.shard_networks import FULL, shard_rows, train_shards
from maxrr.parallel import Ray
from tests.cli.shell import Shell
from tests.lab.problems import TINY, ranked_by_hand, repeatable, sides, tiny_lab

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.fixture
def asked(monkeypatch):
    """The functions that workers of Ray were asked for."""
    found, in_order = [], Ray.map
    monkeypatch.setattr(Ray, "map", lambda *given: found.append(given[1].__name__) or in_order(*given))
    return found


def test_a_ranking_is_the_one_made_here(tmp_path, asked):
    lab = tiny_lab(tmp_path, engine=Ray())
    assert np.array_equal(lab.ranking.votes, ranked_by_hand(lab).votes)
    assert asked == ["votes_by_worker"]
    assert np.array_equal(tiny_lab(tmp_path).ranking.votes, lab.ranking.votes)  # read from the disk, without an engine
    assert list((tmp_path / "work").iterdir()) == []


@pytest.mark.parametrize("scheme", ["one-vs-rest", "one-vs-one"])
def test_heads_are_the_same_numbers(tmp_path, asked, monkeypatch, scheme):
    lab = tiny_lab(tmp_path)
    some = lab.training.ids % 3 > 0
    features, masks = lab.embed(lab.train([1, 2], lab.training)) * 2, [None, None, some, some]
    here = list(lab.fit_heads(features, masks, scheme))
    assert asked == []
    monkeypatch.setattr(heads, "SMALL", 0)  # none are too small for the cluster
    there = list(tiny_lab(tmp_path, engine=Ray()).fit_heads(features, masks, scheme))
    assert set(asked) == {"solve_run"}
    for one, other in zip(here, there, strict=True):
        assert one.weights.tobytes() == other.weights.tobytes()
        assert one.biases.tobytes() == other.biases.tobytes()
        assert np.array_equal(one.influential, other.influential)
        assert one.gap == pytest.approx(other.gap, rel=1e-12)  # a sum, whose last digit follows BLAS's threads


def test_networks_of_shards_are_the_same(tmp_path, asked):
    """Shards have unequally many records."""
    trained = []
    for engine in (None, Ray()):
        lab = tiny_lab(tmp_path, engine=engine)
        rows = shard_rows(lab, FULL, 2)
        (networks,) = train_shards(lab, lab.network, rows, lab.profile.recipe, [1])
        trained.append([parameters_to_vector(network.parameters()).detach().numpy() for network in networks])
    assert asked == ["run_by_worker"]
    for one, other in zip(*trained, strict=True):
        assert one.tobytes() == other.tobytes()


def test_the_command_goes_on_there_and_gives_the_same_file(tmp_path, asked, monkeypatch):
    monkeypatch.setitem(PROFILES, "smoke", replace(TINY, heads="one-vs-one"))
    monkeypatch.setattr("lab.lab.load", lambda name: sides())
    monkeypatch.setattr("lab.figures.draw", lambda results, folder: [])
    command = ("reproduce", "sensitivity", "--profile", "smoke", "--out", tmp_path)
    path = tmp_path / "smoke" / "sensitivity.json"
    Shell(app)(*command)
    here = json.loads(path.read_text(encoding="utf-8"))
    first = {name: {"full": here[name]["full"]} for name in ("made", "pieces")}  # as if interrupted after a piece
    path.write_text(json.dumps({"setting": here["setting"], **first}), encoding="utf-8")
    monkeypatch.setattr(heads, "SMALL", 0)
    Shell(app)(*command, "--engine", "ray")
    there = json.loads(path.read_text(encoding="utf-8"))
    assert repeatable(there) == repeatable(here)
    assert {name: made.get("engine") for name, made in there["made"].items()} == {
        "full": None, "support": "Ray", "75%": "Ray",
    }  # fmt: skip
    assert (asked[0], set(asked[1:])) == ("run_by_worker", {"solve_run"})
