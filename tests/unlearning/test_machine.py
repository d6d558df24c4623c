"""Requests in any order and grouping, mixed with questions, against the oracle after every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from maxrr.core import FullCore, HashCore
from maxrr.data import Dataset
from maxrr.errors import DataError
from maxrr.svm import fit_platt
from maxrr.unlearning.consistency import contradictions
from tests.cases import THOROUGH, some
from tests.unlearning.problems import (
    EVERY_CORE,
    core_of,
    everything,
    features_of,
    fit_again,
    parts,
    parts_of,
    table,
    table_model,
    train_again,
)  # fmt: skip

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning")  # of a class with few records
IDS = np.sort(table().ids).tolist()
LATER = [id_ + 5 for id_ in IDS[:12]]  # of records that may be added
NAMES = table().class_names
SUBJECTS = np.unique(table().subjects).tolist()
LEAST = 12  # requests stop here: what leaves too little is for the tests of refusals


class Books:
    """What the model shall know, kept by hand."""

    def __init__(self, core, rule=None):
        data, self.rule = table(), rule
        self.records = {
            id_: (features, label, subject)
            for id_, features, label, subject in zip(
                data.ids.tolist(), data.inputs, data.labels.tolist(), data.subjects.tolist(), strict=True
            )
        }
        self.core = set(core.tolist())
        self.left = set()  # in the extractor, though forgotten or replaced
        self.late = set()  # added, and not core whatever their ids say
        self.train()

    def train(self):
        """What the extractor is trained on: the core, as it is now, and which classes there are."""
        self.trained_on, self.trained_in = tuple(sorted(self.core)), self.dataset()
        self.left = set()

    def drop(self, ids, policy, instead=None, also=()):
        """Returns how many of them were core. Under 'retrain' what takes the place of a core record is core by a rule.

        `ids` that the extractor keeps something of make it be trained again, too.
        """
        core, kept = self.core & set(ids), self.left & {*ids, *also}
        self.core -= core
        self.left |= core
        for id_ in ids:
            del self.records[id_]
        self.late &= set(self.records) | (set(ids) if instead is not None else set())
        if instead is not None:
            self.records[next(iter(ids))] = instead
        if (core or kept) and policy == "retrain":
            if self.rule is not None:
                there = np.array(sorted(set(self.records) - self.late))
                self.core = set(there[self.rule(there, self.people(there))].tolist())
            self.train()
        return len(core)

    def people(self, ids):
        """Whom the records are about."""
        return np.array([self.records[id_][2] for id_ in ids.tolist()])

    def dataset(self):
        ids = list(self.records)
        features, labels, subjects = (list(column) for column in zip(*self.records.values(), strict=True))
        return Dataset(np.stack(features), np.array(labels), NAMES, np.array(ids), np.array(subjects))

    def allows(self, ids, policy):
        """Whether enough is left."""
        left = [record for id_, record in self.records.items() if id_ not in ids]
        return len(left) >= LEAST and {0, 1, 2} <= {label for _, label, _ in left} and len(self.core - set(ids)) >= 4


EXTRACTORS = {}  # by model and core records: training is what takes time


class Requests(RuleBasedStateMachine):
    """Under one policy."""

    policy = "keep-extractor"
    core = "hash"

    def __init__(self):
        super().__init__()
        self.model = table_model(self.core)
        self.books = Books(core_of(self.model), getattr(EVERY_CORE[self.core], "is_core", None))
        self.forgotten, self.requests = set(), 0

    def forget(self, gone, **request):
        already = set(request.get("ids", [])) & self.forgotten - set(gone)
        left = bool(self.books.left & {*request.get("ids", []), *gone})
        core = self.books.drop(gone, self.policy, also=request.get("ids", []))
        plan = self.model.plan(**request, core_policy=self.policy)
        receipt = self.model.unlearn(**request, core_policy=self.policy)
        self.forgotten |= set(gone)
        self.requests += 1
        assert (receipt.core, receipt.already_forgotten, receipt.number) == (core, len(already), self.requests)
        assert receipt.records_before - receipt.records_after == len(gone)
        assert (len(receipt.tombstones), len(receipt.earlier_tombstones)) == (len(gone), len(already))
        assert receipt.guarantee == plan.guarantee
        assert receipt.conditions == plan.conditions
        assert (receipt.guarantee in ("exact-retrain", "approximate-refit")) == (core > 0 or left)
        assert receipt.core_left_in_extractor == len(self.books.left)
        assert not list(contradictions(receipt))

    @rule(ids=st.sets(st.sampled_from(LATER), min_size=1, max_size=4), data=st.data())
    def add(self, ids, data):
        """At once, and never into the core."""
        ids = sorted(ids - set(self.books.records))
        labels = np.array(data.draw(st.lists(st.integers(0, 2), min_size=len(ids), max_size=len(ids))), dtype=np.int64)
        features = np.random.default_rng([self.requests, 7, *ids]).normal(size=(len(ids), 5)).astype(np.float32)
        new = Dataset(features, labels, NAMES, np.array(ids, dtype=np.int64), np.full(len(ids), SUBJECTS[0]))
        if not ids or set(ids) & self.forgotten:
            before = everything(self.model)
            with pytest.raises(DataError, match=r"must not come back|no records to add"):
                self.model.add(new)
            assert everything(self.model) == before
            return
        plan = self.model.plan(add=new)
        receipt = self.model.add(new)
        self.requests += 1
        for id_, record, label in zip(ids, features, labels.tolist(), strict=True):
            self.books.records[id_] = (record, label, SUBJECTS[0])
        self.books.late |= set(ids)
        assert (receipt.guarantee, receipt.reason, receipt.conditions) == ("exact-refit", plan.reason, plan.conditions)
        assert (receipt.added, receipt.requested, receipt.number) == (len(ids), 0, self.requests)
        assert not list(contradictions(receipt))

    @rule(ids=st.sets(st.sampled_from(IDS + LATER), min_size=1, max_size=6))
    def unlearn_records(self, ids):
        """Some of them may be gone already."""
        known = ids & set(self.books.records)
        if ids <= set(self.books.records) | self.forgotten and self.books.allows(known, self.policy):
            self.forget(known, ids=list(ids))

    @rule(subject=st.sampled_from(SUBJECTS))
    def unlearn_a_person(self, subject):
        ids = {id_ for id_, (_, _, whose) in self.books.records.items() if whose == subject}
        if ids and self.books.allows(ids, self.policy):
            self.forget(ids, subjects=[subject])

    @rule(id_=st.sampled_from(IDS + LATER), seed=st.integers(0, 3), label=st.sampled_from([None, 0, 1, 2]))
    def rectify(self, id_, seed, label):
        if id_ not in self.books.records or not self.books.allows({id_}, self.policy):
            return
        _, old, subject = self.books.records[id_]
        features = np.random.default_rng([self.requests, seed]).normal(size=5).astype(np.float32)  # nobody else's
        self.books.drop({id_}, self.policy, (features, old if label is None else label, subject))
        self.forgotten.add(id_)
        self.requests += 1
        name = None if label is None else NAMES[label]
        receipt = self.model.replace(id_, features, name, core_policy=self.policy)
        assert receipt.records_before == receipt.records_after
        assert receipt.number == self.requests
        assert not list(contradictions(receipt))

    @rule()
    def ask(self):
        assert self.model.predict(table()).shape == (80,)
        assert np.allclose(self.model.predict_proba(table()).sum(axis=1), 1.0)

    @rule(
        ids=st.sets(st.sampled_from(IDS), min_size=1, max_size=5), policy=st.sampled_from(["keep-extractor", "retrain"])
    )
    def plan_changes_nothing(self, ids, policy):
        before = everything(self.model)
        self.model.plan(list(ids), core_policy=policy)
        assert everything(self.model) == before

    @precondition(lambda self: self.forgotten - set(self.books.records))
    @rule(data=st.data())
    def what_is_gone_stays_gone(self, data):
        gone = sorted(self.forgotten - set(self.books.records))
        id_ = data.draw(st.sampled_from(gone))
        before, left = parts_of(self.model), id_ in self.books.left
        receipt = self.model.unlearn([id_], core_policy=self.policy)
        self.books.drop([], self.policy, also=[id_])
        self.requests += 1
        assert (receipt.already_forgotten, receipt.requested, receipt.tombstones) == (1, 1, [])
        otherwise = "exact-retrain" if self.policy == "retrain" else "approximate-refit"
        assert receipt.guarantee == (otherwise if left else "exact-untouched")
        assert not list(contradictions(receipt))
        assert parts_of(self.model) == before or (left and self.policy == "retrain")

    @invariant()
    def is_the_oracle(self):
        retained = self.books.dataset()
        assert self.model.content_hash_ == retained.content_hash()
        assert core_of(self.model).tolist() == sorted(self.books.core)
        late, core = np.array(sorted(self.books.late), dtype=np.int64), EVERY_CORE[self.core]
        waiting = (
            late[core.is_core(late, self.books.people(late))] if isinstance(core, HashCore | FullCore) else late[:0]
        )
        assert self.model._fitted.waiting.tolist() == waiting.tolist()
        extractor = self.extractor(retained)
        head = fit_again(extractor, retained)
        assert parts_of(self.model) == parts(extractor, head, retained.class_names)
        ordered = retained.in_order()
        scores = head.decision_function(features_of(extractor, ordered))
        scaling = fit_platt(scores, ordered.labels, head.classes_)
        expected = scaling.probabilities(self.model.decision_function(table()))
        assert self.model.predict_proba(table()).tobytes() == expected.tobytes()

    def extractor(self, retained):
        """That of the last training; with policy 'keep-extractor' the first."""
        records, names = self.books.trained_in, self.books.trained_on
        known = self.core, records.select(names).content_hash()
        if known not in EXTRACTORS:
            EXTRACTORS[known] = train_again(self.model, records, names)
        return EXTRACTORS[known]


class Retraining(Requests):
    policy = "retrain"


class RetrainingAll(Requests):
    policy, core = "retrain", "full"


class Frequently(Requests):
    core = "frequency"


class InShards(Requests):
    """Each request keeps the extractors, or trains those again that saw forgotten records, whenever these were."""

    core = "hash in shards"

    @rule(policy=st.sampled_from(["keep-extractor", "retrain"]))
    def from_now_on(self, policy):
        self.policy = policy


class AllInShards(InShards):
    core = "full in shards"


class MiddleInShards(InShards):
    core = "middle in shards"


few = settings(max_examples=16 if THOROUGH else 2, stateful_step_count=8)
MACHINES = (InShards, Retraining, Frequently, Requests, RetrainingAll, AllInShards, MiddleInShards)
for machine in some(4, MACHINES):
    machine.TestCase.settings = few
    globals()[f"Test{machine.__name__}"] = machine.TestCase


@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
@settings(max_examples=12 if THOROUGH else 3)
@given(ids=st.lists(st.sampled_from(IDS), min_size=2, max_size=14, unique=True), data=st.data())
def test_any_order_and_grouping_ends_in_the_same_bytes(policy, ids, data):
    other = data.draw(st.permutations(ids))
    cuts = sorted(data.draw(st.sets(st.integers(1, len(ids) - 1), max_size=3)))
    at_once, in_parts = table_model(), table_model()
    at_once.unlearn(ids, core_policy=policy)
    for group in np.split(np.array(other), cuts):
        in_parts.unlearn(group, core_policy=policy)
    assert everything(at_once) == everything(in_parts)
    assert at_once.predict_proba(table()).tobytes() == in_parts.predict_proba(table()).tobytes()
    receipts = [model.unlearn(ids, core_policy=policy) for model in (at_once, in_parts)]
    assert [receipt.already_forgotten for receipt in receipts] == [len(ids)] * 2


@pytest.mark.parametrize("policy", ["keep-extractor", "retrain"])
def test_the_order_of_rectifying_and_forgetting_does_not_matter(policy):
    core, others = core_of(table_model()), np.setdiff1d(IDS, core_of(table_model()))
    rectified, forgotten = [core[0], others[0], core[1]], [core[2], others[1], core[3], others[2]]
    new = np.random.default_rng(0).normal(size=(3, 5)).astype(np.float32)
    ends = []
    for first in ("replace", "forget", "mixed"):
        model = table_model()
        steps = [(model.replace, id_, (new[k],)) for k, id_ in enumerate(rectified)]
        steps += [(model.unlearn, id_, ()) for id_ in forgotten]
        order = {"replace": range(7), "forget": range(6, -1, -1), "mixed": (3, 0, 5, 2, 6, 1, 4)}[first]
        for step in order:
            verb, id_, rest = steps[step]
            verb(id_, *rest, core_policy=policy)
        ends.append(everything(model))
    assert ends[0] == ends[1] == ends[2]
