"""Which records are core, what that depends on, and what is never shown."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxrr.core import Core, FrequencyCore, Frozen, FullCore, HashCore, MiddleCore, Ranking, ranking
from maxrr.core.choice import Choice
from maxrr.core.ranking import Votes, VoteStore, kind_of, ranking_seeds
from maxrr.data import Dataset
from tests.core.problems import MODEL, RECIPE, SEEDS, C, made_up, network, records

IDS = st.one_of(
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=30, unique=True),
    st.lists(st.text("abc1", min_size=1, max_size=5), min_size=1, max_size=30, unique=True),
)
KEYS = st.one_of(st.binary(min_size=1, max_size=100), st.text(min_size=1, max_size=40))


def table(ids, labels=None, classes=2):
    labels = np.arange(len(ids)) % classes if labels is None else labels
    names = tuple(f"class {number}" for number in range(classes))
    return Dataset(np.zeros((len(ids), 2), dtype=np.float32), labels, names, ids)


def choose(core: Core, dataset, **change) -> Choice:
    return core.choose(network(), dataset, **{"C": C, "recipe": RECIPE, "seed": MODEL, "device": "cpu", **change})


@pytest.fixture
def ranked(monkeypatch):
    """Lets FrequencyCore see a ranking that is made up, and gives what it asked for."""
    asked = []

    def pretend(ids, votes):
        def rank(network, dataset, seeds, **options):
            asked.append({"seeds": seeds, **options})
            return made_up(ids, votes)

        monkeypatch.setattr(ranking, "rank", rank)
        return asked

    return pretend


# By a hash


@given(IDS, KEYS, st.floats(0.0, 1.0, exclude_min=True), st.data())
def test_a_hash_core_is_unmoved_by_other_records(ids, key, fraction, data):
    core = HashCore(fraction, key)
    some = data.draw(st.lists(st.sampled_from(ids), min_size=1, unique=True))
    whole = dict(zip(ids, core.is_core(np.array(ids)), strict=True))
    assert core.is_core(np.array(some)).tolist() == [whole[id_] for id_ in some]


def test_forgetting_and_order_leave_a_hash_core_as_it_would_have_been():
    rng = np.random.default_rng(0)
    dataset, core = table(np.arange(1000)), HashCore(0.3, "key")
    gone = rng.choice(1000, 400, replace=False)
    before, after = choose(core, dataset), choose(core, dataset.without(gone))
    assert np.array_equal(after.ids, np.setdiff1d(before.ids, gone))
    assert np.array_equal(choose(core, dataset.select(rng.permutation(1000))).ids, before.ids)
    assert np.array_equal(before.ids, np.flatnonzero(core.is_core(np.arange(1000))))


@pytest.mark.parametrize("fraction", [0.01, 0.25, 0.5, 0.99])
@pytest.mark.parametrize("ids", [np.arange(10_000), np.array([f"record {number}" for number in range(10_000)])])
def test_a_hash_core_has_its_fraction_and_keys_are_independent(fraction, ids):
    """Within 5 standard deviations of a binomial count; two keys agree as often as two independent draws would."""
    one, other = (HashCore(fraction, key).is_core(ids) for key in ("one", b"other"))
    for mask, share in ((one, fraction), (other, fraction), (one & other, fraction**2)):
        assert abs(mask.sum() - 10_000 * share) < 5.0 * math.sqrt(10_000 * share * (1.0 - share))
    assert not np.array_equal(one, other)


def test_a_hash_core_of_everything_is_everything():
    assert HashCore(1, "key").is_core(np.arange(1000)).all()


@given(IDS, KEYS, st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_a_larger_fraction_only_adds(ids, key, one, other):
    less, more = (HashCore(fraction, key).is_core(np.array(ids)) for fraction in sorted((one, other)))
    assert (less <= more).all()


@pytest.mark.parametrize("fraction", [0.0, -0.1, 1.0001, math.nan, math.inf])
def test_what_is_no_fraction(fraction):
    with pytest.raises(ValueError, match="above 0"):
        HashCore(fraction, "key")


# By frequency


def test_a_frequency_core_is_the_top_and_says_how_much_is_fill(ranked):
    ids = [50, 40, 30, 20, 10, 0]
    asked = ranked(ids, [[1, 1, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0]])  # 50 twice, 40 and 20 once
    choice = choose(FrequencyCore(4, runs=2), table(ids), folder="there")
    assert {50, 40, 20} < set(choice.ids.tolist())
    assert choice.ids.tolist() == sorted(choice.ids.tolist())
    assert not choice.unconditional
    assert choice.depended_on == (
        "the core is the 4 records most often influential over 2 training runs on all records: exact given that core"
    )
    assert choice.details == {
        "kind": "frequency", "k": 4, "runs": 2, "ever_influential": 3, "core_ever_influential": 3, "fill": 1,
        "worst_gap": 0.0,
    }  # fmt: skip
    expected = {
        "seeds": ranking_seeds(MODEL, 2), "C": C, "recipe": RECIPE, "device": "cpu", "folder": "there",
        "progress": None, "engine": None,
    }  # fmt: skip
    assert asked == [expected]


def test_a_middle_core_is_nearest_to_half_of_the_runs(ranked):
    ids = [60, 50, 40, 30, 20, 10]
    ranked(ids, [[1, 1, 1, 0, 0, 0], [1, 1, 0, 0, 0, 0], [1, 0, 0, 0, 1, 0], [1, 0, 1, 0, 0, 0]])  # 4 2 2 0 1 0
    choice = choose(MiddleCore(3, runs=4), table(ids))
    assert choice.ids.tolist() == [20, 40, 50]
    assert not choice.unconditional
    assert choice.depended_on == (
        "the core is the 3 records influential nearest to half of the time over 4 training runs on all records: exact "
        "given that core"
    )
    assert choice.details["kind"] == "middle"
    assert choice.details["fill"] == 0


def test_ties_are_broken_by_the_key_and_not_by_rows(ranked):
    ids = list(range(100))
    ranked(ids, np.zeros((1, 100)))
    one = choose(FrequencyCore(50, 1, "one"), table(ids))
    assert np.array_equal(choose(FrequencyCore(50, 1, b"one"), table(ids[::-1])).ids, one.ids)
    assert not np.array_equal(choose(FrequencyCore(50, 1, "other"), table(ids)).ids, one.ids)
    assert one.details["fill"] == 50


def test_a_frequency_core_goes_on_where_its_ranking_stopped(tmp_path, undisturbed):
    """Here at the end: every run is marked."""
    voted = VoteStore(tmp_path, kind_of(network(), records(), RECIPE, C), len(records()))
    for row, seed in zip(undisturbed.votes, SEEDS, strict=True):
        voted.add(seed, Votes(row, undisturbed.worst_gap))
    choice = choose(FrequencyCore(np.int64(60), runs=2), records(), seed=MODEL, folder=tmp_path)
    ranking = Ranking(undisturbed.ids, SEEDS[2:], undisturbed.votes[2:], undisturbed.worst_gap)
    assert np.array_equal(choice.ids, np.sort(ranking.top(60)))
    assert choice.details["ever_influential"] == ranking.ever
    assert choice.details["worst_gap"] == ranking.worst_gap > 0.0
    json.dumps(choice.details, allow_nan=False)


def test_seeds_of_a_ranking():
    assert len({*ranking_seeds(0, 1000), *ranking_seeds(1, 1000), 0, 1}) == 2002
    assert ranking_seeds(0, 1000)[:10] == ranking_seeds(0, 10)


@pytest.mark.parametrize(("k", "runs"), [(0, 10), (-1, 10), (5, 0)])
def test_what_is_no_frequency_core(k, runs):
    with pytest.raises(ValueError, match="run or more"):
        FrequencyCore(k, runs)


def test_more_core_than_records_is_said_before_any_work(ranked):
    asked = ranked(range(10), np.zeros((1, 10)))
    with pytest.raises(ValueError, match="core of 11"):
        choose(FrequencyCore(11), table(range(10)))
    assert not asked


# All and none


def test_a_full_core_is_every_record():
    choice = choose(FullCore(), table(["b", "c", "a"]))
    assert choice.ids.tolist() == ["a", "b", "c"]
    assert choice.unconditional
    assert choice.details == {"kind": "full", "k": 3}


@pytest.mark.parametrize("ids", [["b", "a"], [1, 2]])
def test_a_frozen_extractor_has_no_core(ids):
    choice = choose(Frozen(), table(ids))
    assert choice.ids.dtype == table(ids).ids.dtype
    assert len(choice.ids) == 0
    assert choice.ids.base is None  # holds on to no others
    assert not choice.unconditional
    assert "the word of" in choice.depended_on


# Any


def test_classes_that_the_extractor_will_not_see_are_counted():
    dataset = table(range(8), labels=[0, 1, 2, 3, 0, 1, 0, 1], classes=5)  # the last class has no records anywhere
    core = next(
        core
        for core in (HashCore(0.5, f"key {number}") for number in range(1000))
        if set(dataset.labels[core.is_core(dataset.ids)].tolist()) == {0, 1}
    )
    assert choose(core, dataset).details["classes_missing"] == 2
    assert "classes_missing" not in choose(FullCore(), dataset).details


@pytest.mark.parametrize("core", [FrequencyCore(1), HashCore(0.5, "key"), FullCore()])
@pytest.mark.parametrize("ids", [[], [1, 2, 3]])
def test_fewer_than_two_classes_are_no_problem_to_learn(core, ids):
    dataset = Dataset(np.zeros((len(ids), 1)), np.zeros(len(ids), dtype=int), ("a", "b"), ids)
    with pytest.raises(ValueError, match=f"these have {bool(ids):d}"):
        choose(core, dataset)


def test_a_core_of_nothing_or_of_one_class(ranked):
    with pytest.raises(ValueError, match=r"core.*choose a larger"):
        choose(HashCore(1e-12, "key"), table(range(10)))
    ranked(range(10), [[1] + 9 * [0]])
    with pytest.raises(ValueError, match=r"class 'class 0'.*choose"):
        choose(FrequencyCore(1), table(range(10)))


def test_keys_are_not_shown():
    assert "secret" not in repr(HashCore(0.5, "secret")) + str(HashCore(0.5, b"secret"))


@pytest.mark.parametrize(("make", "what"), [
    (lambda key: HashCore(0.5, key=key), "key"),
    (lambda tie_breaker: FrequencyCore(3, tie_breaker=tie_breaker), "tie breaker"),
])  # fmt: skip
def test_what_ids_are_hashed_with_is_text_or_bytes(make, what):
    assert make("one") == make(b"one") != make("other")
    with pytest.raises(ValueError, match=f"{what} is empty"):
        make("")


def test_ids_are_not_shown():
    ids = [700001, 700002, 700003, 700004]
    choice = choose(FullCore(), table(ids))
    assert repr(choice) == str(choice) == "<Choice: full core of 4 records>"
    assert "7000" not in choice.depended_on + str(choice.details)
