"""What a model knows of its records, by indexes and shared structures, is what a plain list of them says.

Requests in any order, also such that are refused, fail, or are interrupted, against the list after every step.
"""

from contextlib import ExitStack, suppress
from unittest import mock

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from maxrr import LinearSVM
from maxrr.data import Dataset
from maxrr.errors import DataError, NotHere, Refused
from maxrr.evidence.sparse_tree import Tree
from maxrr.unlearning import MaxRR, forgetting
from maxrr.unlearning.records import HeldRecords
from maxrr.unlearning.tombstones import Tombstones, id_hmac, subject_hmac
from tests.cases import THOROUGH
from tests.evidence.oracle import commitment_to, key_of, salt_of, value_of
from tests.unlearning.search import holds_bytes, holds_ids

pytestmark = pytest.mark.filterwarnings("ignore::maxrr.svm.FlatHeadWarning", "ignore:.*are let in under other ids")

FIRST = 700_000_000
COUNT, PEOPLE, CLASSES, WIDTH = 40, 12, 3, 4
PROBE = np.random.default_rng(9).normal(size=(5, WIDTH))

# Where a request can fail, so that nothing has changed; and where it is done, and can only be interrupted.
BEFORE = [
    (LinearSVM, "_without"), (LinearSVM, "_with_more"), (Tree, "change"), (Tombstones, "with_more"),
    (HeldRecords, "without"), (forgetting, "make_receipt"), (forgetting, "with_receipts"), (HeldRecords, "owe"),
    (MaxRR, "_commit"),
]  # fmt: skip
AFTER = [
    (Tree, "apply"), (LinearSVM, "_erase"), (HeldRecords, "erase"), (HeldRecords, "gone"),
]  # fmt: skip


class Stop(BaseException):
    """As an interruption."""


def failing(*_, **__):
    raise Stop


class Bookkeeping(RuleBasedStateMachine):
    """A model, and a plain list of its records."""

    texts = False

    @initialize(seed=st.integers(0, 3))
    def begin(self, seed):
        rng = np.random.default_rng(seed)
        labels = np.arange(COUNT) % CLASSES
        inputs = 3.0 * np.eye(WIDTH)[labels] + rng.normal(size=(COUNT, WIDTH))
        inputs[:6] = inputs[6:12]  # twins
        self.records = {
            self.called(number): (inputs[number], int(labels[number]), self.person(number % PEOPLE))
            for number in range(COUNT)
        }
        self.model = MaxRR.on_features().fit(self.dataset(self.records))
        self.gone, self.people, self.requests, self.fresh = [], set(), 0, COUNT
        self.old, self.whole = [], True  # what former states predict; whether nothing is left to be erased

    def called(self, number):
        """The name of a record."""
        return f"name {FIRST + number}" if self.texts else FIRST + number

    def person(self, number):
        return f"person {number}" if self.texts else number

    def dataset(self, records):
        inputs, labels, subjects = (list(column) for column in zip(*records.values(), strict=True))
        names = tuple("abc"[:CLASSES])
        return Dataset(np.array(inputs), np.array(labels), names, np.array(list(records)), np.array(subjects))

    # Requests

    @rule(data=st.data(), places=st.lists(st.integers(0, 99), min_size=1, max_size=3))
    def forget(self, data, places):
        ids = list(dict.fromkeys(list(self.records)[place % len(self.records)] for place in places))
        self.request(data, dict.fromkeys(ids), lambda: self.model.unlearn(ids))

    @rule(data=st.data(), number=st.integers(0, PEOPLE - 1))
    def forget_a_person(self, data, number):
        person = self.person(number)
        ids = [id_ for id_, (_, _, whose) in self.records.items() if whose == person]
        if not ids:  # all people of the first fit had records: it is asked for once more
            assert self.model.unlearn(subjects=[person]).already_forgotten == 1
            self.requests += 1
            return
        self.request(data, dict.fromkeys(ids), lambda: self.model.unlearn(subjects=[person]))

    @rule(data=st.data(), place=st.integers(0, 99), twin=st.booleans(), shift=st.floats(-3.0, 3.0))
    def rectify(self, data, place, twin, shift):
        id_ = list(self.records)[place % len(self.records)]
        inputs, label, whose = self.records[id_]
        new = list(self.records.values())[(place + 1) % len(self.records)][0] if twin else inputs + shift
        if np.array_equal(new, inputs):
            with pytest.raises(DataError, match="just so"):
                self.model.replace(id_, new)
            return
        self.request(
            data, {id_: (new, label, whose)}, lambda: self.model.replace(id_, new, allow_copies="other people's")
        )

    @rule(data=st.data(), count=st.integers(1, 3), twin=st.booleans(), seed=st.integers(0, 9))
    def add(self, data, count, twin, seed):
        rng, known, more = np.random.default_rng(seed), list(self.records.values()), {}
        for _ in range(count):
            inputs, label, whose = known[int(rng.integers(len(known)))]
            more[self.called(self.fresh)] = inputs if twin else inputs + rng.normal(size=WIDTH), label, whose
            self.fresh += 1
        self.request(data, more, lambda: self.model.add(self.dataset(more), allow_copies="other people's"))

    @rule(again=st.booleans())
    def refused(self, again):
        """An id that nobody has; or one that was forgotten, beside one that nobody has."""
        ids = [self.called(-1), *([self.gone[-1]] if again and self.gone else [])]
        with pytest.raises(NotHere):
            self.model.unlearn(ids)

    @rule()
    def once_more(self):
        """What was forgotten is forgotten: that is a request, and changes nothing."""
        if self.gone:
            receipt = self.model.unlearn(self.gone[-1:])
            assert (receipt.already_forgotten, receipt.records_before) == (1, receipt.records_after)
            assert receipt.commitment_before == receipt.commitment_after
            self.requests += 1

    def request(self, data, changes, ask):
        """Ask, perhaps with something that fails or is interrupted. `changes` are records by id, None for no record."""
        after = {id_: one for id_, one in {**self.records, **changes}.items() if one is not None}
        if len({label for _, label, _ in after.values()}) < CLASSES or len(after) < 10:
            return  # what leaves too little is for the tests of refusals
        before, fitted = self.commitment(), self.model._fitted
        self.old.append((fitted, fitted.heads.decision_function(PROBE).tobytes(), fitted.head_classes))
        where = data.draw(st.sampled_from([None, None, None, *BEFORE, *AFTER]), label="what fails")
        seen = []
        with ExitStack() as stack:
            taken = self.model._commit
            if where != (MaxRR, "_commit"):
                stack.enter_context(
                    mock.patch.object(
                        self.model,
                        "_commit",
                        lambda then: (seen.append(then.after.committed.departures()), taken(then)),
                    )
                )
            if where is not None:
                stack.enter_context(mock.patch.object(*where, failing))
            stack.enter_context(suppress(Stop))
            receipt = ask()
            assert (receipt.commitment_before, receipt.records_before) == (before, len(self.records))
            assert (receipt.commitment_after, receipt.records_after) == (self.model._fitted.commitment, len(after))
            self.whole = True
        if self.model._fitted is fitted:  # it failed
            assert where in BEFORE
            return
        assert where not in BEFORE or where[1].strip("_") in ("without", "with_more")  # which this request did not need
        self.whole = self.whole and not (where in AFTER and self.model._fitted.records.indexes.owed)
        self.check_departures(seen[0], before, changes, after)
        self.take(changes, after)

    def take(self, changes, after):
        leaving = [id_ for id_ in changes if id_ in self.records]
        persons = {self.records[id_][2] for id_ in leaving if id_ not in after}
        self.people |= {person for person in persons if all(whose != person for _, _, whose in after.values())}
        self.gone += [id_ for id_ in leaving if id_ not in after]
        self.records, self.requests = after, self.requests + 1

    def check_departures(self, found, before, changes, after):
        """Each record that leaves can be proved to have been there, and to be gone or another."""
        secret, then = self.model._fitted.secret, self.model._fitted.commitment
        assert {one.id for one in found} == {id_ for id_ in changes if id_ in self.records}
        for one in found:
            salt = salt_of(secret, one.id)
            key, value = key_of(salt, one.id), value_of(salt, self.hash_of(one.id, self.records))
            assert one.value == value
            assert one.subject == self.records[one.id][2]
            assert one.before.verify(bytes.fromhex(before), key, value)
            if one.id in after:
                assert one.after_value == value_of(salt, self.hash_of(one.id, after))
                assert one.after.verify(bytes.fromhex(then), key, one.after_value)
            else:
                assert one.after_value is None
                assert one.after.verify(bytes.fromhex(then), key)

    # What must hold

    def hash_of(self, id_, records):
        return self.dataset({id_: records[id_]}).record_hashes()[0].tobytes()

    def commitment(self):
        hashes = self.dataset(self.records).record_hashes()
        return commitment_to(
            self.model._fitted.secret,
            [(id_, each.tobytes()) for id_, each in zip(self.records, hashes, strict=True)],
        )

    @invariant()
    def all_is_as_the_list_says(self):
        if not hasattr(self, "model"):
            return
        fitted = self.model._fitted
        held, ids = fitted.records, list(self.records)
        everyone = np.array([*ids, *self.gone, self.called(-1)])
        rows = held.rows(everyone)
        assert [held.rows(everyone[place : place + 1])[0] for place in range(len(everyone))] == rows.tolist()
        assert (rows[: len(ids)] >= 0).all()
        assert (rows[len(ids) :] == -1).all()
        assert len(set(rows[: len(ids)].tolist())) == len(ids) == held.count == int(held.alive.sum())
        dataset = self.dataset(self.records)
        here = rows[: len(ids)]
        assert np.array_equal(held.inputs[here], dataset.inputs)
        assert np.array_equal(held.labels[here], dataset.labels)
        assert held.counts.tolist() == np.bincount(dataset.labels, minlength=CLASSES).tolist()
        assert held.content_hash == dataset.content_hash()
        assert fitted.commitment == self.commitment()
        assert fitted.tree().root.hex() == fitted.commitment
        for number in range(PEOPLE):
            person = self.person(number)
            own = {int(rows[place]) for place, id_ in enumerate(ids) if self.records[id_][2] == person}
            assert held.of_subjects(np.array([person])).tolist() == sorted(own)
            assert (subject_hmac(fitted.key, person) in fitted.people) == (person in self.people)
        assert sorted(held.people_without(here[:3])) == sorted(self.people_without(ids[:3]))
        assert held.people_without(here[:1]) == self.people_without(ids[:1])
        for some in (ids[:1], ids[-1:], ids[:4]):
            assert held.twins(held.rows(np.array(some))) == self.twins(some)
        assert fitted.tombstones.knows(fitted.key, everyone).tolist() == [id_ in self.gone for id_ in everyone.tolist()]
        assert {stone.id for stone in fitted.tombstones} >= {id_hmac(fitted.key, id_) for id_ in self.gone}
        assert (len(fitted.receipts), len(list(fitted.receipts))) == (self.requests, self.requests)

    def people_without(self, ids):
        staying = {whose for id_, (_, _, whose) in self.records.items() if id_ not in ids}
        return sorted({self.records[id_][2] for id_ in ids} - staying)

    def twins(self, ids):
        values = {self.records[id_][0].tobytes() for id_ in ids}
        return sum(one[0].tobytes() in values for id_, one in self.records.items() if id_ not in ids)

    @invariant()
    def former_states_predict_as_they_did(self):
        for fitted, scores, classes in getattr(self, "old", [])[-4:]:
            assert fitted.heads.decision_function(PROBE).tobytes() == scores
            assert fitted.head_classes == classes

    def teardown(self):
        """Nothing of what was forgotten can be reached, once a request went through to its end."""
        if not hasattr(self, "model") or not self.gone:
            return
        self.old.clear()
        if not self.whole:
            self.model.unlearn(self.gone[-1:])
            victim = next(id_ for id_ in self.records)
            with suppress(Refused):
                self.model.unlearn([victim])
                self.gone.append(victim)
        assert holds_ids(self.model, self.gone) == []
        if self.texts:
            assert holds_bytes(self.model, [np.array([id_]).tobytes() for id_ in self.gone]) == []


class WithTexts(Bookkeeping):
    texts = True


TestBookkeeping = Bookkeeping.TestCase
TestWithTexts = WithTexts.TestCase
for case in (TestBookkeeping, TestWithTexts):
    case.settings = settings(max_examples=80 if THOROUGH else 6, stateful_step_count=15, deadline=None)
