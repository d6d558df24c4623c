"""What is audited must belong together: everything else is refused in words, before any model is trained."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from maxrr.audit import audit
from maxrr.audit.auditing import caveats
from maxrr.audit.case import make_case
from maxrr.core import HashCore
from maxrr.data import DataError, Dataset
from maxrr.unlearning import blueprint
from maxrr.unlearning.commitment import set_aside_of
from maxrr.unlearning.tombstones import id_hmac
from tests.audit.problems import (
    CLASSES,
    FEW,
    TEST,
    TRAINING,
    asked,
    core,
    fitted,
    relabelled,
    with_rows_of,
)  # fmt: skip
from tests.unlearning.problems import fresh, table

IDS = core()[[2, 4, 6]]


@pytest.fixture
def request_():
    return asked(IDS)


@pytest.fixture(autouse=True)
def nothing_is_trained(monkeypatch):
    """A refusal costs no work."""
    monkeypatch.setattr(blueprint, "train_many", None)


def changed(dataset, **parts):
    """A dataset with some of its arrays replaced."""
    given = {name: getattr(dataset, name) for name in ("inputs", "labels", "class_names", "ids", "subjects")}
    return Dataset(**{**given, **parts})


def refused(model, receipt, forgotten, test, words):
    before = model.model_hash_
    with pytest.raises(DataError, match=words):
        audit(model, receipt, forgotten, test, shadows=FEW)
    assert model.model_hash_ == before


def test_a_case_is_all_that_the_model_had_and_has(request_):
    more = np.setdiff1d(TRAINING.ids, core())[:2]
    case = make_case(*asked(np.concatenate([IDS, more])))
    assert case.forgotten.ids.tolist() == sorted([*IDS, *more])
    assert case.everything.content_hash() == TRAINING.content_hash()
    assert case.retained.content_hash() == TRAINING.without([*IDS, *more]).content_hash()
    assert case.core_before.tolist() == core().tolist()
    assert case.core_after.tolist() == np.setdiff1d(core(), IDS).tolist()
    assert case.touches_core
    assert not make_case(*asked(more)).touches_core


def test_rows_may_come_in_any_order(request_):
    one = make_case(*request_)
    other = make_case(
        request_.model, request_.receipt, request_.forgotten.select(IDS[::-1]), TEST.select(TEST.ids[::-1])
    )
    for part in ("forgotten", "test", "retained"):
        assert getattr(one, part).ids.tolist() == getattr(other, part).ids.tolist()
    assert one.sample.tolist() == other.sample.tolist()


FORGOTTEN = {
    "numbers changed": (lambda gone: changed(gone, inputs=gone.inputs + np.float32(1e-6)), "3 of .* unchanged"),
    "one label changed": (
        lambda gone: relabelled(gone, np.array([(gone.labels[0] + 1) % CLASSES, *gone.labels[1:]])),
        "1 of the 3 records are not as they were",
    ),
    "another person": (lambda gone: changed(gone, subjects=gone.subjects + 1), "3 of the 3 records are not as they"),
    "one missing": (lambda gone: gone.select(IDS[1:]), "1 of the 3 records on the receipt are missing"),
    "none": (lambda gone: gone.select([]), "3 of the 3 records on the receipt are missing"),
    "one too many": (
        lambda gone: TRAINING.select([*IDS, core()[0]]), "1 of the 4 records are not on the receipt",
    ),
    "others": (lambda gone: TRAINING.select(core()[:1]), "1 of the 1 records are not on the receipt"),
    "swapped ids": (lambda gone: changed(gone, ids=gone.ids[[1, 2, 0]]), "3 of the 3 records are not as they were"),
    "another type": (lambda gone: changed(gone, inputs=gone.inputs.astype(np.float64)), "are float64 .*float32"),
    "another shape": (lambda gone: changed(gone, inputs=gone.inputs[:, 1:]), r"shape \(4,\).*\(5,\)"),
    "other classes": (lambda gone: changed(gone, class_names=("a", "b", "c")), "class names"),
    "ids as strings": (lambda gone: changed(gone, ids=gone.ids.astype(str)), "not as they were"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGOTTEN)
def test_records_that_are_not_those_of_the_receipt(request_, name):
    change, words = FORGOTTEN[name]
    refused(request_.model, request_.receipt, change(request_.forgotten), TEST, words)


def test_a_receipt_of_another_model(request_):
    """Of the same data, records and settings: only the key differs."""
    other = fresh(HashCore(0.5, key="house"), TRAINING).fit(TRAINING)
    receipt = other.unlearn(IDS, core_policy="keep-extractor")
    refused(request_.model, receipt, request_.forgotten, TEST, "or it is another model's")
    other.unlearn(core()[:1], core_policy="keep-extractor")
    later = other.unlearn(core()[1:2], core_policy="keep-extractor")
    refused(request_.model, later, request_.forgotten, TEST, "number 3, and .* handed out 1")


def test_a_receipt_that_the_model_has_not_come_to_yet(request_):
    later = copy.deepcopy(request_.model)
    receipt = later.unlearn(core()[:1], core_policy="keep-extractor")
    refused(request_.model, receipt, TRAINING.select(core()[:1]), TEST, "number 2, and the model has handed out 1")


def test_a_receipt_without_records(request_):
    again = request_.model.unlearn(IDS, core_policy="keep-extractor")
    assert again.already_forgotten == len(IDS)
    refused(request_.model, again, request_.forgotten, TEST, "this request forgot no records")


def test_only_what_a_request_forgot_itself_is_asked_for(request_):
    """Records that it named, but earlier ones forgot, are not on its receipt."""
    receipt = request_.model.unlearn(core()[:3], core_policy="keep-extractor")
    gone = np.setdiff1d(core()[:3], IDS)
    case = make_case(request_.model, receipt, TRAINING.select(gone), TEST)
    assert case.core_before.tolist() == np.setdiff1d(core(), np.setdiff1d(IDS, gone)).tolist()
    refused(request_.model, receipt, TRAINING.select(core()[:3]), TEST, "1 of the 3 records are not on the receipt")


def test_an_earlier_receipt_stays_good(request_):
    request_.model.unlearn(core()[:1], core_policy="keep-extractor")
    case = make_case(*request_)
    assert case.core_before.tolist() == core()[1:].tolist()
    assert len(case.retained) == len(TRAINING) - len(IDS) - 1


def test_a_record_that_was_replaced():
    model, id_ = copy.deepcopy(fitted()), int(core()[0])
    old = TRAINING.select([id_])
    receipt = model.replace(id_, old.inputs[0] + 1, core_policy="keep-extractor")
    assert receipt.tombstones == [id_hmac(model._fitted.key, id_, replaced=True).hex()]
    refused(model, receipt, old, TEST, "replaced")


def test_a_core_that_is_gone():
    """Nothing is left to train a network on."""
    now = asked(core())
    assert now.receipt.guarantee == "approximate-refit"
    refused(*now, "core")


TESTS = {
    "training records": (lambda: with_rows_of(TEST, TRAINING.select(core()[:2])), "2 of the 62 test .* training rec"),
    "forgotten records": (lambda: with_rows_of(TEST, TRAINING.select(IDS[:1])), "1 of the 61 test .* training rec"),
    "training records, relabelled": (
        lambda: with_rows_of(TEST, relabelled(TRAINING.select(core()[:1]), np.array([0]))), "1 of the 61 test",
    ),
    "all training records": (lambda: TRAINING, "80 test records"),
    "in another type": (
        lambda: changed(TEST, inputs=TEST.inputs.astype(np.float64)), r"float64 .*float32",
    ),
    "another shape": (lambda: changed(TEST, inputs=TEST.inputs[:, 1:]), "shape"),
    "other classes": (lambda: changed(TEST, class_names=("a", "b", "c")), "class names"),
    "a class missing": (lambda: TEST.select(TEST.ids[TEST.labels != 1]), "no test record is of class kind 1"),
    "two classes missing": (lambda: TEST.select(TEST.ids[TEST.labels == 1]), "class kind 0, kind 2"),
    "none": (lambda: TEST.select([]), "no test record is of class kind 0, kind 1, kind 2"),
}  # fmt: skip


@pytest.mark.parametrize("name", TESTS)
def test_test_records_that_will_not_do(request_, name):
    make, words = TESTS[name]
    refused(request_.model, request_.receipt, request_.forgotten, make(), words)


def test_test_records_that_an_earlier_request_forgot(request_):
    """The extractor has seen them all the same."""
    receipt = request_.model.unlearn(core()[:1], core_policy="keep-extractor")
    test = with_rows_of(TEST, request_.forgotten)
    refused(request_.model, receipt, TRAINING.select(core()[:1]), test, "forgotten")


def test_a_class_that_is_forgotten_may_be_missing_in_the_test_records():
    now = asked(TRAINING.ids[TRAINING.labels == 1])
    without = TEST.select(TEST.ids[TEST.labels != 1])
    assert len(make_case(now.model, now.receipt, now.forgotten, without).test) == len(without)


def test_a_model_that_is_not_fitted(request_):
    model = fresh(HashCore(0.5, key="house"), TRAINING)
    with pytest.raises(NotFittedError, match="call 'fit'"):
        audit(model, request_.receipt, request_.forgotten, TEST)


def test_marks_tell_strings_from_numbers():
    """Ids may be strings."""
    records = table(strings=True)
    model = fresh(HashCore(0.5, key="house"), records).fit(records)
    ids = model.core_.ids[:2].copy()
    receipt = model.unlearn(ids, core_policy="keep-extractor")
    case = make_case(model, receipt, records.select(ids), TEST)
    assert case.core_before.tolist() == sorted([*model.core_.ids, *ids])


# Test records that somebody could choose after looking at the model


def said_of(now, test, **options):
    """The caveats of an audit with these test records."""
    return caveats(make_case(now.model, now.receipt, now.forgotten, test, **options), test, 0)


def test_all_that_was_set_aside_is_no_caveat(request_):
    """In whatever order."""
    assert said_of(request_, TEST) == []
    assert said_of(request_, TEST.select(TEST.ids[::-1])) == []


CHOSEN = {
    "a part": lambda: TEST.select(TEST.ids[:40]),
    "other labels": lambda: relabelled(TEST, np.roll(TEST.labels, 1)),
    "other values": lambda: changed(TEST, inputs=TEST.inputs + np.float32(0.1)),
    "other ids": lambda: changed(TEST, ids=np.arange(len(TEST))),
    "ids swapped": lambda: changed(TEST, ids=np.roll(TEST.ids, 1)),
}


@pytest.mark.parametrize("name", CHOSEN)
def test_test_records_that_were_chosen_since_are_a_caveat(request_, name):
    test = CHOSEN[name]()
    (said,) = said_of(request_, test)
    assert "fitted: 60" in said


def test_where_nobody_set_any_aside_that_is_a_caveat():
    now = asked(IDS)
    now.model._state = replace(now.model._fitted, set_aside=None)
    (said,) = said_of(now, TEST)
    assert "nobody said" in said


def test_what_was_set_aside_stays_so_through_requests_and_refits(monkeypatch):
    monkeypatch.undo()  # here something is trained
    model = copy.deepcopy(fitted())
    aside = model._fitted.set_aside
    model.unlearn(core()[:2], core_policy="retrain")
    model.add(TRAINING.inputs[:2] + 1, ["kind 0", "kind 1"], ids=[100_000, 100_001], subjects=[1, 2])
    model.replace(100_001, TRAINING.inputs[3] + 1, core_policy="retrain")
    model.unlearn([100_000])
    model.refit()
    assert copy.copy(model)._fitted.set_aside == aside
    assert (aside.records, len(aside.hash)) == (len(TEST), 64)


def test_a_fit_says_anew_what_is_set_aside(monkeypatch):
    monkeypatch.undo()
    model = copy.deepcopy(fitted())
    aside = model._fitted.set_aside
    assert model.fit(TRAINING, test=TEST.select(TEST.ids[::-1]))._fitted.set_aside == aside
    assert model.fit(TRAINING, test=TEST.select(TEST.ids[1:]))._fitted.set_aside != aside
    assert model.fit(TRAINING, test=TEST.select([]))._fitted.set_aside is None
    assert model.fit(TRAINING)._fitted.set_aside is None
    with pytest.raises(TypeError, match="Dataset, not ndarray"):
        model.fit(TRAINING, test=TEST.inputs)


@pytest.mark.parametrize(
    ("test", "words"),
    [
        (TRAINING, "all among the training records"),
        (TRAINING.select(TRAINING.ids[:9]), "all among the training records"),
        (replace(TEST, inputs=TEST.inputs[:, :-1]), "but the training records are"),
    ],
)
def test_what_cannot_be_test_records_is_not_set_aside(test, words, monkeypatch):
    monkeypatch.undo()
    with pytest.raises(DataError, match=words):
        copy.deepcopy(fitted()).fit(TRAINING, test=test)


def test_what_is_set_aside_is_kept_under_the_key():
    """Two models with the same test records say nothing that is the same of them but how many there are."""
    one, other = (set_aside_of(key, TEST) for key in (b"one", b"other"))
    assert one.records == other.records
    assert one.hash != other.hash


def test_ids_and_the_texts_of_them_are_the_same_and_so_are_classes_in_another_order():
    """As for tombstones: a file may be read as either. A class that is added may change the order."""
    names = TEST.class_names[::-1]
    turned = changed(TEST, labels=CLASSES - 1 - TEST.labels, class_names=names, ids=TEST.ids.astype(str), subjects=None)
    assert set_aside_of(b"key", turned) == set_aside_of(b"key", TEST)


@pytest.mark.parametrize("when", ["retained", "forgotten", "forgotten before"])
def test_copies_among_what_was_set_aside_are_left_out_and_told(when):
    """They are no choice of the caller's. Where something else was set aside, they are refused."""
    now = asked(IDS)
    if when == "forgotten before":
        now = replace(now, receipt=now.model.unlearn(core()[:1], core_policy="keep-extractor"),
                      forgotten=TRAINING.select(core()[:1]))  # fmt: skip
    test = with_rows_of(TEST, TRAINING.select(IDS[:2] if "forgotten" in when else core()[-2:]))
    now.model._state = replace(now.model._fitted, set_aside=set_aside_of(now.model._fitted.key, test))
    case = make_case(now.model, now.receipt, now.forgotten, test)
    assert case.test.ids.tolist() == list(range(60))
    (said,) = [text for text in caveats(case, test, 0) if "test records" in text]
    assert said.startswith("2 of the 62 test records")
    with pytest.raises(DataError, match="61 test records"):
        make_case(now.model, now.receipt, now.forgotten, test.without(test.ids[-1:]))
