"""The same seed gives the same results, whatever came between; what lies in the folder is used, or refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from lab.frontier import selectors
from lab.lab import Lab
from lab.parts import PARTS, STUDIES
from lab.selectors import FEW, SELECTORS
from maxrr import LinearSVM
from maxrr.core.ranking import ranking_seeds
from maxrr.parallel import Ray
from tests.lab.problems import RECORDS, SEED, TINY, embedded, repeatable, sides, tiny_lab, with_ranking

ALL = {**PARTS, **STUDIES}
ONCE_MORE = ("agreement", "ranking-length")  # the command line's tests have others


@pytest.fixture(scope="module")
def again(lab, tmp_path_factory):
    """Some files once more, elsewhere. That rankings repeat is tested where they are made."""
    other = with_ranking(tiny_lab(tmp_path_factory.mktemp("again")), lab.ranking)
    return {name: ALL[name].measure(other) for name in ONCE_MORE}


@pytest.mark.parametrize("name", ONCE_MORE)
def test_the_same_seed_gives_the_same_file(lab, measured, again, name):
    found = measured[name]
    assert json.loads((lab.out / f"{name}.json").read_text()) == found
    assert repeatable(again[name]) == repeatable(measured[name])


def test_another_seed_gives_other_numbers(measured, tmp_path):
    found = ALL["sensitivity"].measure(tiny_lab(tmp_path, seed=SEED + 1))
    assert found["cells"].keys() == measured["sensitivity"]["cells"].keys()
    assert found["cells"] != measured["sensitivity"]["cells"]


SLOW = "core-choice", "public-weights", "shards"  # to measure


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.long] * (name in SLOW)) for name in ALL])
def test_what_is_measured_is_not_measured_again(lab, measured, name, monkeypatch):
    found = measured[name]
    for work in ("train", "fit_heads", "measure_ranking"):
        monkeypatch.setattr(Lab, work, lambda *_, **__: pytest.fail("it was measured"))
    before = (lab.out / f"{name}.json").read_bytes()
    assert ALL[name].measure(with_ranking(tiny_lab(lab.out), lab.ranking)) == found
    assert (lab.out / f"{name}.json").read_bytes() == before


def test_every_cell_has_a_number_and_nothing_of_the_papers(measured):
    """It gives no numbers for digits."""
    for part in measured.values():
        cells = [cell for columns in part["cells"].values() for cell in columns.values()]
        assert cells
        assert all(np.isfinite(cell["mean"]) for cell in cells)
        assert {(cell["paper"], cell["difference"], cell["verdict"]) for cell in cells} == {(None, None, None)}


def test_no_network_is_left_behind(lab, measured):
    assert list((lab.out / "work").rglob("run-*")) == []


def test_the_histogram_counts_every_record(lab, measured):
    found = measured["histogram"]
    by_runs = found["pieces"]["ranking"]["count_by_number_of_runs"]
    assert (len(by_runs), sum(by_runs)) == (TINY.ranked + 1, RECORDS)
    cells = {name: row["records"]["mean"] for name, row in found["cells"].items()}
    assert (cells["ever"], cells["in every run"]) == (lab.ranking.ever, lab.ranking.always)
    assert cells["a run"] == pytest.approx(sum(runs * count for runs, count in enumerate(by_runs)) / TINY.ranked)


def test_coverage_adds_up(measured):
    cells = {name: row["records"]["mean"] for name, row in measured["coverage"]["cells"].items()}
    assert cells["core or influential"] == TINY.large + cells["influential, not core"]
    assert cells["core or influential"] + cells["free"] == RECORDS
    points = measured["frontier"]["points"]
    for point in points:
        assert point["free"] + point["exact"] + point["approximate"] == pytest.approx(1.0)
    assert len(points) == len(measured["frontier"]["cells"])


def test_refits_by_hand(lab, measured):
    """Half of the first model's support vectors are forgotten; fitted to all others, and to the other half."""
    found, name, labels = measured["refit"]["pieces"]["refits"], "50% of the support vectors", lab.training.labels
    X, queries = embedded(lab, lab.training.select(lab.top(TINY.large)), lab.seeds(1)[0])
    support = np.sort(LinearSVM().fit(X, labels).support_)
    gone = lab.draw(support, round(0.5 * len(support)), 0, 500)
    for way, rows in (
        ("before", np.arange(RECORDS)),
        ("all retained", np.setdiff1d(np.arange(RECORDS), gone)),
        ("remaining support vectors", np.setdiff1d(support, gone)),
    ):
        accuracy = LinearSVM().fit(X[rows], labels[rows]).score(queries, lab.test.labels)
        assert found["accuracy"][name][way][0] == accuracy
    assert set(found["seconds"][name]) == {"all retained", "remaining support vectors", "moved"}
    assert found["records"]["the core"]["forgotten"] == TINY.large


def test_only_heads_that_can_be_moved_are_timed_as_moved(lab, tmp_path):
    pairwise = with_ranking(tiny_lab(tmp_path, heads="one-vs-one"), lab.ranking)
    for ways in PARTS["refit"].measure(pairwise)["seconds"].values():
        assert set(ways) == {"all retained", "remaining support vectors"}


def test_a_short_ranking_is_compared_only_with_a_longer_one(lab):
    assert FEW not in selectors(lab)
    assert FEW in selectors(replace(lab, profile=replace(TINY, ranked=11)))
    assert set(selectors(lab)) == set(SELECTORS) - {FEW}


def test_parts_that_measure_the_same_agree(measured):
    """The first model of each has the same seed, and the longest ranking compared is the whole of it."""
    usual = measured["svms"]["pieces"]["penalties"]["one-vs-rest"]["1"]
    assert usual["accuracy"] == measured["table"]["pieces"]["No and SVM"]["No"][:1]
    longest = measured["ranking-length"]["cells"]["3 runs"]
    outside = measured["coverage"]["pieces"]["core"]["influential_outside"][0]
    assert longest["core or influential"]["mean"] == pytest.approx(TINY.large + outside)
    assert longest["shared with all 3, k = 12"]["mean"] == 1.0
    assert measured["ranking-length"]["pieces"]["3"]["approximate"] == [TINY.large / RECORDS]


# Seeds, draws and the ranking


def test_records_are_loaded_in_the_order_of_their_ids(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr("lab.lab.load", lambda name: asked.append(name) or sides())
    lab = Lab.of(TINY, tmp_path, seed=1, device="cpu")
    assert asked == [TINY.data]
    for side in (lab.training, lab.test):
        assert side.ids.tolist() == sorted(side.ids.tolist())
    assert sides()[0].ids.tolist() != lab.training.ids.tolist()


def test_networks_of_graphics_processors_need_one_here(tmp_path, monkeypatch):
    monkeypatch.setattr("lab.lab.load", lambda name: sides())
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert Lab.of(TINY, tmp_path, engine=Ray()).device.type == "cpu"
    with pytest.raises(ValueError, match="PyTorch finds none"):
        Lab.of(TINY, tmp_path, engine=Ray(gpus=1))


def test_models_have_other_seeds_than_the_ranking(lab, tmp_path):
    assert not set(lab.seeds(20)) & set(tiny_lab(tmp_path, seed=SEED + 1).seeds(20))
    assert lab.seeds(20)[:5] == lab.seeds(5)
    assert len({*lab.seeds(20), *ranking_seeds(SEED, 20)}) == 40


def test_draws_belong_to_their_purpose(lab):
    ids = lab.training.ids
    one = lab.draw(ids, 40, 1, 2)
    assert one.tolist() == sorted(set(one.tolist())) == lab.draw(ids, 40, 1, 2).tolist()
    assert len(one) == 40
    assert one.tolist() != lab.draw(ids, 40, 2, 1).tolist()


@pytest.fixture(scope="module")
def pairwise(tmp_path_factory):
    """A lab with one-vs-one heads that measured its own ranking."""
    lab = tiny_lab(tmp_path_factory.mktemp("pairwise"), heads="one-vs-one", ranked=2)
    assert len(lab.ranking.seeds) == 2
    return lab


def test_a_one_vs_one_ranking_marks_who_its_heads_find_influential(pairwise, tmp_path):
    other = tiny_lab(tmp_path)
    features = other.embed(other.train(ranking_seeds(SEED, 2), other.training))
    votes = np.unpackbits(pairwise.ranking.votes, axis=1, count=RECORDS).astype(bool)
    assert np.array_equal(votes, [head.influential for head in other.fit_heads(features, [None] * 2, "one-vs-one")])
    assert not np.array_equal(votes, [head.influential for head in other.fit_heads(features, [None] * 2)])


def test_the_stored_ranking_is_the_measured_one(pairwise, monkeypatch):
    monkeypatch.setattr(Lab, "measure_ranking", lambda *_: pytest.fail("it was measured"))
    stored = replace(pairwise).ranking
    assert stored.votes.tobytes() == pairwise.ranking.votes.tobytes()
    assert (stored.seeds, stored.worst_gap) == (pairwise.ranking.seeds, pairwise.ranking.worst_gap)
    assert np.array_equal(stored.ids, pairwise.ranking.ids)


@pytest.mark.parametrize("change", [{"seed": 9}, {"ranked": 3}, {"heads": "one-vs-rest"}])
def test_a_ranking_of_another_setting_is_refused_and_untouched(pairwise, change):
    path = pairwise.out / "ranking-digits.npz"
    before = path.read_bytes()
    with pytest.raises(ValueError, match="another profile, seed"):
        _ = tiny_lab(pairwise.out, **{"heads": "one-vs-one", "ranked": 2, **change}).ranking
    assert path.read_bytes() == before


def test_kept_arrays_belong_to_their_setting(tmp_path):
    """The support vectors of one seed are not taken for those of another."""
    one, other = tiny_lab(tmp_path), tiny_lab(tmp_path, seed=SEED + 1)
    assert one.keep("support", lambda: np.arange(3)).tolist() == [0, 1, 2]
    assert one.keep("support", lambda: pytest.fail("it was measured")).tolist() == [0, 1, 2]
    assert other.keep("support", lambda: np.arange(5)).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("damage", [b"", b"PK\x03\x04", b"\x93NUMPY"])
def test_damaged_arrays_are_refused_with_what_to_do(tmp_path, damage):
    lab = tiny_lab(tmp_path)
    lab.keep("support", lambda: np.arange(3))
    (tmp_path / "ranking-digits.npz").write_bytes(damage)
    for path in (tmp_path / "work").iterdir():
        path.write_bytes(damage)
    with pytest.raises(ValueError, match=r"ranking-digits\.npz is damaged"):
        _ = lab.ranking
    with pytest.raises(ValueError, match=r"support.*\.npy is damaged"):
        lab.keep("support", lambda: pytest.fail("it was measured"))
