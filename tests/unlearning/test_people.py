"""A person is wholly core or not at all, in one shard, and requests and models count people."""

import numpy as np
import pytest

from maxrr.core import FullCore, HashCore
from maxrr.core.shards import Sharding
from maxrr.unlearning import replay
from maxrr.unlearning.state import people_by_kind
from tests.unlearning.problems import core_of, everything, fresh, table

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of few records
QUICK = {"epochs": 2, "batch_size": 16}
BY_PERSON = HashCore(0.5, key="house")
RULES = {
    "hash": BY_PERSON, "shards": HashCore(0.7, key="house", shards=2), "full": FullCore(2, key="house"),
    "by record": HashCore(0.5, key="house", by="record"),
}  # fmt: skip


def whom(records, ids):
    return set(records.subjects[records.rows(ids)].tolist())


def test_a_tenth_of_the_people_is_core_where_a_tenth_of_the_records_concerns_most():
    people = np.repeat(np.arange(3_000), 20)
    ids = np.arange(len(people))
    shares = {
        by: len(set(people[HashCore(0.1, "key", by=by).is_core(ids, people)].tolist())) / 3_000
        for by in ("subject", "record")
    }
    assert shares["subject"] == pytest.approx(0.1, abs=0.02)
    assert shares["record"] == pytest.approx(1 - 0.9**20, abs=0.02)


def test_records_that_name_nobody_are_decided_by_their_ids():
    ids = np.arange(500)
    assert BY_PERSON.is_core(ids).tolist() == RULES["by record"].is_core(ids, ids % 7).tolist()
    assert Sharding(3, b"k", "subject").of(ids).tolist() == Sharding(3, b"k", "record").of(ids, ids % 7).tolist()


def test_it_is_decided_by_people_or_by_records():
    with pytest.raises(ValueError, match="'record'"):
        HashCore(0.5, "key", by="id")


def test_all_records_of_a_person_are_core_and_in_one_shard_or_none_is():
    records = table()
    for rule in (RULES["hash"], RULES["shards"]):
        core = rule.choose(None, records).ids
        assert not whom(records, core) & whom(records, np.setdiff1d(records.ids, core))
    shard = Sharding(4, b"house", "subject").of(records.ids, records.subjects)
    assert len(set(shard.tolist())) > 1
    for person in np.unique(records.subjects):
        assert len(set(shard[records.subjects == person].tolist())) == 1


@pytest.mark.parametrize("kind", RULES)
def test_forgetting_people_gives_the_bytes_of_a_fit_without_them(kind):
    records = table()
    model = fresh(RULES[kind], records, **QUICK).fit(records)
    people = sorted(whom(records, core_of(model)[:1]) | whom(records, records.ids[-1:]))
    receipt = model.unlearn(subjects=people, core_policy="retrain")
    rest = records.without(records.ids[np.isin(records.subjects, people)])
    assert (receipt.guarantee, receipt.unconditional) == ("exact-retrain", True)
    assert everything(model) == everything(fresh(RULES[kind], records, **QUICK).fit(rest))
    if kind == "shards":  # where most could go wrong
        assert replay(receipt, model.bundle(), rest).outcome == "identical"


def test_records_of_a_core_person_that_arrive_wait_and_those_of_others_do_not():
    everyone = table()
    last = everyone.ids[everyone.subjects >= 66]
    model = fresh(BY_PERSON, everyone, **QUICK).fit(everyone.without(last))
    model.add(everyone.select(last))
    core = whom(everyone, last[BY_PERSON.is_core(last, everyone.subjects[everyone.rows(last)])])
    assert 0 < len(core) < len(whom(everyone, last))
    assert whom(everyone, model._fitted.waiting) == core
    model.refit()
    assert everything(model)[0] == everything(fresh(BY_PERSON, everyone, **QUICK).fit(everyone))[0]


@pytest.mark.parametrize("kind", RULES)
def test_people_are_counted_by_the_record_that_is_the_most_work(kind):
    records = table()
    model = fresh(RULES[kind], records, **QUICK).fit(records)
    core, influential, _ = (whom(records, model.ids_of(each)) for each in ("core", "influential", "free"))
    every = set(records.subjects.tolist())
    expected = {
        "core": len(core), "influential": len(influential - core), "free": len(every - core - influential),
    }  # fmt: skip
    assert people_by_kind(model._fitted) == expected
    assert model.plan(records.ids, core_policy="keep-extractor").people == expected
    gone = sorted(every)[:5]
    model.unlearn(subjects=gone, core_policy="keep-extractor")
    left = people_by_kind(model._fitted)
    assert sum(left.values()) == len(every) - 5


def test_nobody_is_counted_where_records_name_nobody():
    records = table()
    model = fresh(BY_PERSON, records, **QUICK).fit(records.inputs, records.labels, ids=records.ids)
    assert (model.plan(records.ids[:2]).people, people_by_kind(model._fitted)) == (None, None)
