"""`maxrr fit`: a workspace from a source, and the same workspace again."""

import re
import secrets
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxrr import LinearSVM
from maxrr.cli import app, workspaces
from maxrr.cli.fit import core_of
from maxrr.cli.status import tell_scores
from maxrr.core import FrequencyCore, Frozen, FullCore, HashCore, MiddleCore
from maxrr.core.shards import sharding_of
from maxrr.nets import Recipe
from maxrr.svm import ConvergenceError
from maxrr.workspace import Commit, Workspace
from tests.cli.shell import Shell, kinds, model_of, receipt_file
from tests.workspace.problems import history_in

QUICK = ("--epochs", 1)


def test_what_it_says_is_what_is_there(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "ws"
    found = shell("fit", "digits", "--core", "hash:0.5", *QUICK, "--out", folder, "--json").json
    assert found["core"] + found["influential"] + found["free"] == found["records"] == 1420
    assert found["test_records"] == 377
    assert 0.0 < found["accuracy"] < 1.0
    assert sorted(found["recall"]) == list("0123456789")
    assert found["sources"] == [{"source": "digits", "reading": ""}]
    assert model_of(folder) == found["model_hash"]


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_a_class_that_is_never_recognised_gets_advice(share: float, capsys: pytest.CaptureFixture[str]) -> None:
    tell_scores({"test_records": 50, "accuracy": 0.9, "recall": {"well": 1.0, "ill": share}})
    assert ("--class-weight ill=" in capsys.readouterr().err) == (share == 0.0)


def test_for_people(shell: Shell, tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    shown = shell("fit", "digits", "--core", "200:2", *QUICK, "--out", folder).out.splitlines()
    assert "--core 200:2" in shown.pop(0)  # that a network is trained, and on what
    assert shown[0].startswith("Fitted 1,420 records in ")
    shares = [int(share) for share in re.findall(r"(\d+) %", shown[2])]
    assert (len(shares), shares) == (10, sorted(shares))
    assert [line.split()[:2] for line in shown if line.startswith("core ")] == [["core", "200"]]
    assert shown[-1] == f"The workspace is {folder}. Next: maxrr plan {folder} --ids …"
    assert not list(folder.glob("ranking*"))


@pytest.mark.filterwarnings("default")
def test_a_head_without_weights_is_a_line_of_warning(shell: Shell, tmp_path: Path, key_file: Path) -> None:
    """It names the class as the file does. A plan says it, too."""
    rows = [f"{row},{'rare' if row % 9 == 8 else 'ab'[row % 2]},{row % 2}" for row in range(90)]
    table = tmp_path / "table.csv"
    table.write_text("\n".join(["id,label,x", *rows]))
    ended = shell("fit", table, "--core", f"hash:0.5:{key_file}", "--epochs", 2, "--out", tmp_path / "ws")
    warned = [line for line in ended.err.splitlines() if line.startswith("Warning: ")]
    assert any("the head of class 'rare' has weights of zero" in line for line in warned), ended.err


def test_a_head_that_cannot_be_solved_is_an_error_in_words(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    def fails(*_: object, **__: object) -> None:
        raise ConvergenceError("the head of class 3 is not solved")

    monkeypatch.setattr(LinearSVM, "fit", fails)
    ended = shell("fit", "digits", "--core", "full", *QUICK, "--out", tmp_path / "ws", code=1)
    assert ended.err.splitlines()[-1] == "Error: the head of class 3 is not solved [convergence]"
    assert Commit.last(tmp_path / "ws") is None


def test_other_arithmetic_errors_are_faults(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LinearSVM, "fit", lambda *_, **__: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        app(["fit", "digits", "--core", "full", "--epochs", "1", "--out", str(tmp_path / "ws")])


@pytest.mark.parametrize(
    ("word", "core"),
    [
        ("20000", MiddleCore(20_000, 10)),
        ("middle:20000", MiddleCore(20_000, 10)),
        ("20000:100", MiddleCore(20_000, 100)),
        ("frequency:300:2", FrequencyCore(300, 2)),
        ("full", FullCore()),
        ("frozen", Frozen()),
    ],
)
def test_cores(word: str, core: Any) -> None:
    assert core_of(word, None, 1) == core


@pytest.mark.parametrize(
    ("word", "core"),
    [
        ("20000", MiddleCore(20_000, shards=3)),
        ("frequency:300", FrequencyCore(300, shards=3)),
        ("hash:0.25:KEY", HashCore(0.25, "house", shards=3)),
        ("full", FullCore(3)),
    ],
)
def test_cores_in_shards(word: str, core: Any, key_file: Path) -> None:
    assert core_of(word.replace("KEY", str(key_file)), None, 3) == core


def test_a_core_in_shards(shell: Shell, visits_csv: Path, tmp_path: Path, key_file: Path) -> None:
    """Two records of one shard, of the class that has more there: one extractor of three is trained again."""
    folder, options = tmp_path / "ws", ("--core", f"hash:0.9:{key_file}", "--shards", 3, *QUICK)
    shell("fit", visits_csv, *options, "--out", folder)
    core = np.array(kinds(folder)["core"])
    people = np.array([f"p{int(id_[1:]) // 3}" for id_ in core])  # as the table has them
    mine = core[sharding_of(HashCore(0.9, "house", shards=3)).of(core, people) == 1].tolist()
    ids = [id_ for id_ in mine if int(id_[1:]) % 4][:2]
    asked = ("--ids", f"{ids[0]},{ids[1]}", "--policy", "retrain")
    assert shell("plan", folder, *asked, "--json").json["extractors"] == 1
    assert shell("unlearn", folder, *asked, "--yes", "--json").json["guarantee"] == "exact-retrain"
    with Workspace.open(folder) as workspace:
        assert len(workspace.model.extractor_.parts) == 3


def test_keys_of_a_core_by_hash(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maxrr.cli.fit.secrets", secrets)
    assert core_of(f"hash:0.25:{key_file}", None, 1) == HashCore(0.25, "house")
    drawn, other = (core_of(word, None, 1) for word in ("hash:0.25", "0.25"))
    assert drawn != other
    assert core_of("hash:0.5", drawn, 1) == HashCore(0.5, drawn.key)
    assert core_of(f"hash:0.5:{key_file}", drawn, 1) == HashCore(0.5, "house")


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (("--core", "some"), 2, "'some'"),
        (("--core", "hash"), 2, "'hash'"),
        (("--core", "frequency"), 2, "'frequency'"),
        (("--core", "frequency:0.3"), 2, "'frequency:0.3'"),
        (("--core", "hash:many"), 2, "'hash:many'"),
        (("--core", "300:many"), 2, "'300:many'"),
        (("--core", "hash:1.5"), 1, "1.5"),
        (("--core", "full:3"), 2, "'full:3'"),
        (("--core", "frozen"), 1, "give a network"),
        (("--core", "frozen", "--shards", 2), 2, "--shards"),
        (("--core", "hash:0.5:nowhere.key"), 1, "nowhere.key"),
        (("--network", "json:nothing"), 1, "json:nothing"),
        (("--network", "json:dumps"), 1, "json:dumps fails to make a network: TypeError"),
        (("--epochs", 0), 1, "epochs=0"),
    ],
)
def test_bad_options_leave_nothing_behind(
    shell: Shell, tmp_path: Path, options: tuple[object, ...], code: int, named: str
) -> None:
    ended = shell("fit", "digits", "--out", tmp_path / "ws", *options, code=code)
    assert named in ended.err
    assert len(ended.err.splitlines()) == 1
    assert Commit.last(tmp_path / "ws") is None


def test_fitting_again_keeps_the_key_and_what_was_forgotten(shell: Shell, visits_csv: Path, tmp_path: Path) -> None:
    folder = tmp_path / "ws"
    options = ("fit", visits_csv, "--core", "hash:0.4", *QUICK, "--out", folder)
    before = shell(*options, "--json").json["model_hash"]
    assert shell(*options, "--json").json["model_hash"] == before
    forgotten = kinds(folder)["influential"][:2]
    shell("unlearn", folder, "--ids", ",".join(forgotten), "--yes")
    before, records = model_of(folder), shell("status", folder, "--json").json["records"]
    refused = shell(*options, code=3)
    assert (refused.error, "2 of the" in refused.err) == ("already-forgotten", True)
    again = shell(*options, "--skip-forgotten", "--json").json
    assert (again["records"], again["model_hash"], again["requests"]) == (records, before, 1)


def test_a_source_is_found_from_elsewhere(
    shell: Shell, visits_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(visits_csv.parent)
    shell("fit", "visits.csv", "--core", "full", *QUICK, "--out", tmp_path / "ws")
    monkeypatch.chdir(tmp_path)
    receipt = shell("unlearn", "ws", "--ids", "v3", "--policy", "retrain", "--yes", "--json").json
    assert receipt["guarantee"] == "exact-retrain"


NETWORKS = """
from torch import nn

def small(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(shape[1] * shape[2], 16), nn.ReLU(), nn.Linear(16, classes))
"""


FOR_TABLES = """
from torch import nn

def small(shape, classes):
    return nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh(), nn.Linear(7, classes))
"""


@pytest.mark.long
def test_a_network_of_ones_own(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "networks_of_my_own.py").write_text(NETWORKS)
    monkeypatch.chdir(tmp_path)
    mine = "networks_of_my_own:small"
    np.save(tmp_path / "zero.npy", np.zeros((8, 8)))
    shell("fit", "digits", "--core", "hash:0.5", "--network", mine, *QUICK, "--out", "ws")
    core = kinds(tmp_path / "ws")["core"][0]
    assert shell("predict", "ws", "zero.npy", code=1).error == "network-missing"
    retrain = ("unlearn", "ws", "--ids", core, "--policy", "retrain", "--yes")
    assert mine in shell(*retrain, code=1).err
    monkeypatch.setenv("MAXRR_NETWORK", mine)
    assert len(shell("predict", "ws", "zero.npy", "--json").json) == 1
    shell(*retrain)
    assert shell("replay", "ws", 1, "--json").json["outcome"] == "identical"
    shell("bundle", "ws", "b")
    elsewhere = ("replay", "b", receipt_file(tmp_path / "ws", 1), "--source", "digits")
    assert shell(*elsewhere, "--json").json["outcome"] == "identical"
    monkeypatch.delenv("MAXRR_NETWORK")
    assert shell(*elsewhere, code=1).error == "network-missing"
    assert shell("status", "ws", "--json").json["requests"] == 1


def test_a_network_of_ones_own_may_be_named_by_the_environment(
    shell: Shell, fitted_visits: Path, visits_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and not with every command."""
    (tmp_path / "environment_of_my_own.py").write_text(FOR_TABLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAXRR_NETWORK", "environment_of_my_own:small")
    shell("fit", visits_csv, "--epochs", 1, "--out", "ws")
    assert len(shell("predict", "ws", visits_csv, "--json").json) == 60
    other = shell("predict", fitted_visits, visits_csv, code=1)
    assert other.error == "other-network"
    monkeypatch.delenv("MAXRR_NETWORK")
    assert shell("predict", "ws", visits_csv, code=1).error == "network-missing"


GIVEN = """
import torch
from torch import nn

def public(shape, classes):
    network = nn.Sequential(nn.Linear(shape[0], 7), nn.Tanh(), nn.Linear(7, 1000))
    nn.init.eye_(network[0].weight), nn.init.zeros_(network[0].bias)
    return network
"""


def test_training_may_start_from_given_weights(
    shell: Shell, visits_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_of_my_own.py").write_text(GIVEN)
    (tmp_path / "recipe.toml").write_text('epochs = 2\nbody_lr = 1e-4\nwarm_up = 0.2\nfrozen = ["0"]\n')
    monkeypatch.chdir(tmp_path)
    how = ("--network", "given_of_my_own:public", "--recipe", "recipe.toml", "--out", "ws")
    assert shell("fit", visits_csv, *how, "--start", "public", code=1).error == "data"
    found = shell("fit", visits_csv, *how, "--start", "given:Eye", "--json").json
    assert found["conditions"][0].startswith("given weights: Eye, sha256 ")


TRAINING = """
import torch
from maxrr.nets import tensors

def train(network, dataset, seed, device):
    inputs, labels = tensors(dataset, device)
    optimiser = torch.optim.AdamW(network.parameters(), lr=0.01)
    for _ in range(5):
        for rows in torch.randperm(len(labels)).split(64):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(network(inputs[rows]), labels[rows]).backward()
            optimiser.step()
    return network
"""


@pytest.mark.long
def test_a_training_of_ones_own(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "training_of_my_own.py").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    mine = "training_of_my_own:train"
    given = ("fit", "digits", "--train", mine, "--out", "ws")
    assert shell(*given, "--epochs", 3, code=2).error == "usage"
    shell(*given, "--core", "hash:0.5")
    core = kinds(tmp_path / "ws")["core"][0]
    retrain = ("unlearn", "ws", "--ids", core, "--policy", "retrain", "--yes")
    assert shell(*retrain, code=1).error == "training-missing"
    monkeypatch.setenv("MAXRR_TRAIN", mine)
    assert shell(*retrain, "--json").json["bytes_claim"].startswith("retrained")
    assert shell("replay", "ws", 1, "--json").json["outcome"] == "identical"
    shell("bundle", "ws", "b")
    elsewhere = ("replay", "b", receipt_file(tmp_path / "ws", 1), "--source", "digits")
    assert shell(*elsewhere, "--json").json["outcome"] == "identical"
    monkeypatch.delenv("MAXRR_TRAIN")
    assert shell("replay", "ws", 1, code=1).error == "training-missing"
    assert shell(*elsewhere, code=1).error == "training-missing"


def test_a_training_that_the_environment_names_is_known_by_its_variable(
    shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAXRR_TRAIN", "training_of_my_own:train")
    assert "MAXRR_TRAIN" in shell("fit", "digits", "--epochs", 3, "--out", tmp_path / "ws", code=2).err


def test_a_training_of_ones_own_where_none_was_is_an_error(
    shell: Shell, fitted_visits: Path, visits_csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "training_for_nothing.py").write_text(TRAINING)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MAXRR_TRAIN", "training_for_nothing:train")
    assert shell("refit", fitted_visits, "--source", visits_csv, code=1).error == "workspace"


def test_a_recipe(shell: Shell, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(
        'epochs = 9\noptimiser = "adamw"\nweight_decay = 0.01\nschedule = "cosine"\nlabel_smoothing = 0.1\n'
        'augment = ["flip", "shift:1"]\n'
    )
    given = ("fit", "digits", "--core", "hash:0.2", "--recipe", recipe, "--out")
    shell(*given, tmp_path / "ws", "--epochs", 1)
    with Workspace.open(tmp_path / "ws") as workspace:
        assert workspace.model.train == Recipe(
            1, optimiser="adamw", weight_decay=0.01, schedule="cosine", label_smoothing=0.1,
            augment=("flip", "shift:1"),
        )  # fmt: skip
    recipe.write_text('augment = "shift:1"\n')  # one word, as in Python
    shell(*given, tmp_path / "words", "--epochs", 1)
    with Workspace.open(tmp_path / "words") as workspace:
        assert workspace.model.train == Recipe(1, augment="shift:1")
    bad = {'optimiser = "best"': "optimiser is", "rate = 1": "'rate'", 'lr = "0.1"': "lr is text", "lr": "recipe.toml"}
    for wrong, said in bad.items():
        recipe.write_text(wrong)
        assert said in shell(*given, tmp_path / "other", code=1).err


def test_a_frozen_network(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "frozen_of_my_own.py").write_text("from torch import nn\ndef flat():\n    return nn.Flatten()\n")
    monkeypatch.chdir(tmp_path)
    found = shell(
        "fit", "digits", "--core", "frozen", "--network", "frozen_of_my_own:flat", "--out", "ws", "--json"
    ).json
    assert (found["core"], found["records"]) == (0, 1420)


def test_a_workspace_in_use(shell: Shell, digits: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspaces, "WAIT", 0.0)
    with Workspace.open(digits):
        ended = shell("fit", "digits", *QUICK, "--out", digits, code=1)
    assert ended.error == "in-use"


def test_a_damaged_workspace_is_not_fitted_over(shell: Shell, digits: Path) -> None:
    history = history_in(digits)
    whole = history.read_bytes()
    history.write_bytes(whole[:-20])
    assert shell("fit", "digits", *QUICK, "--out", digits, code=1).error == "folder-taken"
    assert history.read_bytes() == whole[:-20]


def test_a_source_that_is_none(shell: Shell, tmp_path: Path) -> None:
    shutil.copy(__file__, tmp_path / "records.txt")
    for source in ("nowhere.npz", tmp_path / "records.txt"):
        assert str(source) in shell("fit", source, "--out", tmp_path / "ws", code=1).err


def test_an_engine_that_there_is_not(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    quick = ("fit", "digits", "--core", "200:2", *QUICK, "--out", tmp_path / "ws")
    assert "'dask'" in shell(*quick, "--engine", "dask", code=2).err
    monkeypatch.setitem(sys.modules, "ray", None)  # as where it is not installed
    assert "maxrr[ray]" in shell(*quick, "--engine", "ray", code=1).err
    monkeypatch.setenv("MAXRR_ENGINE", "ray")
    assert "maxrr[ray]" in shell(*quick, code=1).err
    assert Commit.last(tmp_path / "ws") is None
