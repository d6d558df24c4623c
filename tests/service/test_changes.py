"""Additions and corrections are requests, too, and are carried out once."""

import numpy as np
import pytest

from tests.service.test_faults import Killed, killed, receipts
from tests.unlearning.problems import table

NEW = table(2, seed=8)
ADDED = {"records": NEW.inputs.tolist(), "labels": ["kind 1", "kind 2"], "ids": [5, 6], "subjects": [900, 901]}


def correction(house, kind):
    return {"id": house.ids(kind)[0], "record": NEW.inputs[0].tolist()}


@pytest.mark.parametrize("what", ["additions", "corrections"])
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_change_is_carried_out_once(house, monkeypatch, what, is_killed):
    body = ADDED if what == "additions" else correction(house, "free")
    asked = house.call("POST", f"/v1/{what}", json=body)
    assert (asked.status_code, asked.json()["state"]) == (201, "planned")
    if is_killed:
        with monkeypatch.context() as patch:
            patch.setattr("maxrr.service.worker.done", killed)
            with pytest.raises(Killed):
                house.work()
        assert receipts(house) == 1
    house.work()
    request = house.follow(asked.json()["id"])
    assert (request["state"], request["outcome"], request["receipt"]) == ("done", "done", 1)
    assert receipts(house) == 1
    with house.service.settings.open(True) as workspace:
        assert workspace.status().records == 80 + (2 if what == "additions" else 0)


def test_a_correction_of_a_core_record_waits_for_a_decision(house):
    asked = house.call("POST", "/v1/corrections", json=correction(house, "core")).json()
    assert (asked["state"], set(asked["plan"]["policies"])) == ("waiting", {"retrain", "keep-extractor"})
    house.call("POST", f"/v1/requests/{asked['id']}/approve", json={"policy": "keep-extractor"})
    house.work()
    assert house.follow(asked["id"])["guarantee"] == "approximate-refit"


@pytest.mark.parametrize(
    "wrong",
    [{"ids": [5]}, {"labels": ["kind 1", "kind 9"]}, {"records": [[1.0]] * 2}, {"subjects": None}, {"ids": ["a", "a"]},
     {"records": [[1e30] * 5, [0.0] * 4]}],
)  # fmt: skip
def test_records_that_do_not_fit_are_refused_at_once(house, wrong):
    answer = house.call("POST", "/v1/additions", json={**ADDED, **wrong})
    assert answer.status_code == 422, answer.text


def test_an_id_that_is_taken_fails_and_says_so(house):
    ids = [house.ids("free")[0], 7]
    asked = house.call("POST", "/v1/additions", json={**ADDED, "ids": ids})
    assert asked.json()["code"] == "id-taken"


@pytest.mark.parametrize("what", ["additions", "corrections"])
def test_a_change_that_was_carried_out_is_the_same_request_when_it_is_sent_again(house, what):
    body = ADDED if what == "additions" else correction(house, "free")
    sent = {"json": body, "headers": {"Idempotency-Key": "k"}}
    first = house.call("POST", f"/v1/{what}", **sent).json()["id"]
    house.work()
    house.service.current.refresh()
    again = house.call("POST", f"/v1/{what}", **sent)
    assert (again.status_code, again.json()["id"], receipts(house)) == (200, first, 1)


def test_what_is_added_can_be_forgotten(house):
    house.call("POST", "/v1/additions", json=ADDED)
    house.work()
    house.service.current.refresh()
    asked = house.submit(subject=900)
    house.work()
    assert house.follow(asked["id"])["outcome"] == "done"
    with house.service.settings.open(True) as workspace:
        assert not np.isin([5], workspace.model.ids_of()).any()
