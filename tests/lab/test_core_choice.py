"""The core is chosen without the test records, reported with fresh seeds, and judged by the rule."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lab import core_choice
from lab.core_choice import (
    MORE,
    SHARES,
    SIZES,
    USUAL,
    Stages,
    candidates,
    choose,
    choose_share,
    contenders,
    leads,
    middle_name,
    objections,
)
from lab.lab import MEASURED, Lab
from lab.profiles import PAPER, PROFILES
from maxrr.core.ranking import MiddleCore, ranking_seeds
from maxrr.nets import MLP
from tests.lab.problems import RECORDS, SEED, TINY, in_this_process, tiny_lab

SMALL, LARGE = SIZES


@pytest.fixture
def stages(tmp_path):
    return Stages.of(tiny_lab(tmp_path))


# Who sees what


def test_training_validation_and_test_have_no_record_in_common(stages, lab):
    training, validation, test = stages.choosing.training, stages.choosing.test, stages.reporting.test
    assert len(validation) == RECORDS // 6
    assert sorted([*training.ids.tolist(), *validation.ids.tolist()]) == lab.training.ids.tolist()
    assert test.ids.tolist() == lab.test.ids.tolist()
    for stage in (stages.scoring, stages.reporting):
        assert stage.training.ids.tolist() == training.ids.tolist()
    assert not set(test.ids.tolist()) & {*training.ids.tolist(), *validation.ids.tolist()}
    assert Stages.of(lab).choosing.test.ids.tolist() == validation.ids.tolist()
    other = Stages.of(replace(lab, seed=SEED + 1))
    assert other.choosing.test.ids.tolist() != validation.ids.tolist()


def test_no_two_stages_have_a_seed_in_common_nor_anything_before(stages, lab):
    count = 100
    streams = [
        inner(each) for each in (lab, stages.choosing, stages.scoring, stages.reporting)
        for inner in (lambda one: one.seeds(count), lambda one: ranking_seeds(one.seed, count))
    ]  # fmt: skip
    assert len({seed for seeds in streams for seed in seeds}) == len(streams) * count


def test_the_report_has_thirty_models_and_a_ranking_of_the_default_length_at_the_papers_size(tmp_path):
    stages = Stages.of(replace(tiny_lab(tmp_path), profile=PAPER))
    assert stages.reporting.profile.trials == 30
    assert stages.choosing.profile.ranked == MiddleCore.runs
    assert stages.choosing.profile.recipe == PAPER.recipe


@pytest.mark.long
def test_only_training_records_are_trained_on_and_the_test_is_looked_at_after_the_choice(tmp_path, monkeypatch):
    """Told from everything that the study asks of its laboratories."""
    lab, trained, judged = tiny_lab(tmp_path), [], []
    train, accuracies, choose = Lab.train, Lab.accuracies, core_choice.choose

    def training(self, seeds, records, **how):
        trained.append((set(seeds), set(records.ids.tolist())))
        return train(self, seeds, records, **how)

    def judging(self, features, heads):
        judged.append(tuple(self.test.ids.tolist()))
        assert {len(one.test) for one in features} == {len(self.test)}
        return accuracies(self, features, heads)

    def choosing(validation):
        judged.append("chosen")
        return choose(validation)

    monkeypatch.setattr(Lab, "train", training)
    monkeypatch.setattr(Lab, "accuracies", judging)
    monkeypatch.setattr(core_choice, "choose", choosing)
    with in_this_process():
        core_choice.measure(lab)
    stages = Stages.of(lab)
    validation, test = (tuple(one.test.ids.tolist()) for one in (stages.choosing, stages.reporting))
    assert judged == [*[validation] * 18, "chosen", *[test] * 8]
    known = set(stages.choosing.training.ids.tolist())
    assert all(ids <= known for _, ids in trained)
    used = [seeds for seeds, _ in trained]
    fresh = set(stages.reporting.seeds(MORE * TINY.trials))
    assert used[-8:] == [fresh] * 8
    assert not any(seeds & fresh for seeds in used[:-8])


@pytest.mark.long
def test_every_candidate_is_measured_and_the_contenders_reported(lab, measured):
    found = measured["core-choice"]
    sizes = {size: 45 // one_in for size, one_in in SIZES.items()}
    assert list(found["validation"]) == [f"{name}, {k}" for k in sizes.values() for name in candidates()]
    assert list(found["cells"]) == [
        f"{name}, {k}" for size, k in sizes.items() for name in contenders(found["choice"], size)
    ]
    assert len(found["differences"]) == 2 * 3 * 2
    assert found["runs"] == 3
    assert sum(found["ranking"]) == 45
    for pieces in found["pieces"].values():
        for core in pieces.values():
            if isinstance(core, dict) and "free" in core:
                total = np.add(np.add(core["free"], core["exact"]), core["approximate"])
                assert total == pytest.approx(1.0)
    json.dumps(found, allow_nan=False)
    choice = found["choice"]
    assert found["said"][0] == (
        f"Chosen on the validation records: the middle at {choice['share']:g} of the runs, {choice['size']} of the "
        "records."
    )
    assert found["said"][1] == f"Against it as the default: {'; '.join(found['objections']) or 'nothing'}."


def test_middles_are_around_their_shares(stages, monkeypatch):
    monkeypatch.setattr(Lab, "ranking", property(lambda lab: lab))
    monkeypatch.setattr(Lab, "nearest", lambda lab, share, k: (share, k), raising=False)
    for share in SHARES:
        assert candidates()[middle_name(share)](stages.choosing, 5) == (share, 5)
    choice = {"share": 0.4, "others": {SMALL: "mixed", LARGE: "forgetting"}}
    assert list(contenders(choice, LARGE)) == ["middle", "frequency", "hash", "forgetting"]
    assert contenders(choice, SMALL)["middle"](stages.choosing, 5) == (0.4, 5)
    assert MiddleCore._share == USUAL


# Other data


@pytest.mark.long
def test_other_data_report_what_was_chosen_at_home(lab, measured, tmp_path):
    elsewhere = replace(tiny_lab(tmp_path, data="mnist"))
    with in_this_process(), pytest.raises(ValueError, match="without --data"):
        core_choice.measure(elsewhere)
    (tmp_path / "core-choice.json").write_text(json.dumps(measured["core-choice"]))
    with in_this_process():
        found = core_choice.measure(elsewhere)
    assert (tmp_path / "core-choice-mnist.json").exists()
    assert found["choice"] == measured["core-choice"]["choice"]
    assert found["validation"] == {}
    assert found["cells"].keys() == measured["core-choice"]["cells"].keys()


def write_table(path, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(60) % 2
    features = rng.normal(size=(60, 5)).astype(np.float32) + labels[:, None]
    sides = {"x_train": features[:40], "y_train": labels[:40], "x_test": features[40:], "y_test": labels[40:]}
    path.parent.mkdir(exist_ok=True)
    np.savez(path, ids_train=np.arange(40), ids_test=np.arange(40, 60), **sides)
    return path


def test_a_table_has_an_mlp_and_is_called_as_its_file(tmp_path):
    path = write_table(tmp_path / "people.npz")
    profile = PAPER.on(str(path))
    assert (profile.data, profile.runs, profile.ranked) == ("people", PAPER.few, PAPER.few)
    lab = Lab.of(profile, tmp_path, source=str(path), device="cpu")
    assert isinstance(lab.network, MLP)
    assert lab.results("core-choice").path.name == "core-choice-people.json"
    assert PROFILES["paper"] is PAPER


def test_two_files_of_one_name_do_not_share_their_results(tmp_path, monkeypatch):
    paths = [write_table(tmp_path / str(seed) / "people.npz", seed) for seed in range(2)]
    ours, others = (Lab.of(PAPER.on(str(path)), tmp_path, source=str(path), device="cpu") for path in paths)
    ours.results("frontier").piece("one", dict)
    assert ours.results("frontier").read()["pieces"] == {"one": {}}
    with pytest.raises(ValueError, match="another profile, seed"):
        others.results("frontier").read()
    monkeypatch.setitem(MEASURED, "people", ours.records)  # as if there were older results of that file
    assert "records" not in Lab.of(ours.profile, tmp_path, source=str(paths[0]), device="cpu").setting
    assert "records" in Lab.of(ours.profile, tmp_path, source=str(paths[1]), device="cpu").setting


@pytest.mark.parametrize("name", ["fashion-mnist.csv", "mnist.npz", "digits.npz"])
def test_a_file_is_not_taken_for_a_data_set(name):
    with pytest.raises(ValueError, match="another name"):
        PAPER.on(f"x/{name}")


# The rule

ACCURACY = {"frequency": 0.88, "hash": 0.87, "mixed": 0.86, "forgetting": 0.89}


def validated(small=0.0, **changes):
    """Accuracies of four seeds that are the same but for a little, the same little for all cores."""
    noise = [0.001, -0.001, 0.002, -0.002]
    known = {**ACCURACY, **{middle_name(share): 0.891 for share in SHARES}, **changes}
    both = {size: {name: [mean - lower + one for one in noise] for name, mean in known.items()} for size, lower in
            ((SMALL, small), (LARGE, 0.0))}  # fmt: skip
    return {size: {name: {"accuracy": values} for name, values in of.items()} for size, of in both.items()}


def test_what_is_chosen():
    found = choose(validated(small=0.02, **{"mixed": 0.892}))
    assert (found["share"], found["size"]) == (0.5, LARGE)
    assert found["others"] == found["best"] == {SMALL: "mixed", LARGE: "mixed"}
    assert found["fallback"] == {SMALL: "frequency", LARGE: "frequency"}
    assert choose(validated(small=0.009))["size"] == SMALL
    assert choose(validated(**{middle_name(0.4): 0.8911, middle_name(0.7): 0.8912}))["share"] == 0.7


def test_the_share_stays_at_one_half_unless_another_is_clearly_better():
    usual = [0.89, 0.88, 0.90, 0.89]
    near = [value + gain for value, gain in zip(usual, (0.004, -0.004, 0.004, -0.002), strict=True)]
    clear = [value + gain for value, gain in zip(usual, (0.002, 0.001, 0.002, 0.001), strict=True)]
    assert choose_share({USUAL: usual, 0.4: near}) == USUAL
    assert choose_share({USUAL: usual, 0.4: near, 0.6: clear}) == 0.6
    assert choose_share({USUAL: [0.8], 0.4: [0.9]}) == USUAL  # a single seed


def reported(accuracy, free):
    """Differences to all others at both sizes, as certain as can be; by name where one is different."""
    rng, k = np.random.default_rng(0), {SMALL: 10, LARGE: 20}
    noise = rng.normal(0.0, 1e-4, 30)

    def values(quantity, name):
        return ((0.5 - quantity.get(name, quantity["all"])) + noise * (name == "hash")).tolist()

    cores = {
        "middle": {"accuracy": [0.5] * 30, "free": [0.5] * 30},
        **{name: {"accuracy": values(accuracy, name), "free": values(free, name)} for name in
           ("frequency", "hash", "mixed")},
    }  # fmt: skip
    return leads({SMALL: cores, LARGE: cores}, k)


@pytest.mark.parametrize(
    ("accuracy", "free", "at_home", "elsewhere"),
    [
        ({"all": 0.01}, {"all": -0.05}, [], []),  # more accurate, for five points of free records
        ({"all": 0.01}, {"all": -0.15}, ["it does not beat frequency", "it does not beat hash"], []),  # too dear
        ({"all": 0.0}, {"all": 0.05}, [], []),  # as accurate, and more are free
        ({"all": 0.0}, {"all": 0.0, "hash": 0.05}, ["it does not beat frequency"], []),
        ({"all": 0.01, "mixed": -0.001}, {"all": 0.0}, ["mixed is more accurate"], []),
        ({"all": 0.01, "mixed": -0.006}, {"all": 0.0}, ["mixed is more accurate"], ["mixed is more accurate"]),
        ({"all": 0.01, "hash": -0.004}, {"all": 0.05}, ["hash is more accurate"], []),
    ],
)
def test_objections(accuracy, free, at_home, elsewhere):
    found = reported(accuracy, free)
    for k in (10, 20):
        assert objections(found, k, at_home=True) == at_home
        assert objections(found, k, at_home=False) == elsewhere


def test_an_insignificant_lag_is_no_objection_and_an_insignificant_lead_no_merit():
    rng = np.random.default_rng(1)
    noise = rng.normal(0.0, 0.02, 30)
    noise -= noise.mean()
    lagging = (0.501 + noise).tolist()  # a tenth of a point, of which nobody can be sure
    cores = {name: {"accuracy": lagging, "free": [0.3] * 30} for name in ("frequency", "hash", "mixed")}
    cores = {"middle": {"accuracy": [0.5] * 30, "free": [0.5] * 30}, **cores}
    found = leads({SMALL: cores, LARGE: cores}, {SMALL: 10, LARGE: 20})
    assert objections(found, 20, at_home=True) == []  # more are free
    for core in cores.values():
        core["free"] = [0.5] * 30
    found = leads({SMALL: cores, LARGE: cores}, {SMALL: 10, LARGE: 20})
    assert objections(found, 20, at_home=True) == ["it does not beat frequency", "it does not beat hash"]


def test_p_values_are_corrected_over_all_comparisons_of_the_report():
    rng = np.random.default_rng(2)
    cores = {
        name: {quantity: rng.normal(0.5, 0.01, 30).tolist() for quantity in ("accuracy", "free")}
        for name in ("middle", "frequency", "hash", "mixed")
    }
    found = leads({SMALL: cores, LARGE: cores}, {SMALL: 10, LARGE: 20})
    smallest = min(found, key=lambda one: one["p"])
    assert len(found) == 12
    assert smallest["holm"] == pytest.approx(min(1.0, 12 * smallest["p"]))
    assert core_choice.LEVEL == 0.05
