"""A request from its submission to the page of the person."""

import json
import threading
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from fastapi.testclient import TestClient

from maxrr import MaxRR
from maxrr.errors import DataError, NamesDestroyed
from maxrr.evidence import Dossier
from maxrr.evidence.envelopes import Envelope, Statement
from maxrr.service import app
from maxrr.service.planning import check_looks
from maxrr.service.requests import Asked, Planned, today
from maxrr.unlearning.statements import HandedReceipt
from tests.service.conftest import KEY, House
from tests.service.postgres import wait_until
from tests.workspace.problems import table


def states(request):
    return [event["state"] for event in request["events"]]


def test_a_free_record_is_forgotten_and_the_answer_is_signed(house):
    (id_, *_) = house.ids("free")
    asked = house.submit(ids=[id_])
    assert (asked["state"], asked["plan"]["guarantee"], asked["days_left"]) == ("planned", "exact-untouched", 30)
    house.work()
    request = house.follow(asked["id"])
    assert states(request) == ["received", "planned", "executing", "done"]
    assert (request["outcome"], request["guarantee"], request["receipt"]) == ("done", "exact-untouched", 1)
    handed = HandedReceipt.from_bytes(house.call("GET", f"/v1/requests/{asked['id']}/receipt", "requester").content)
    handed.verify([KEY.public])
    assert handed.receipt.due == asked["due"]
    house.service.current.refresh()
    page = house.call("GET", f"/v1/requests/{asked['id']}/page?form=json", "requester")
    dossier = Dossier.from_object(page.json())
    assert all(check.held for check in dossier.check([KEY.public]))


@pytest.mark.parametrize("name", ["anna 1\u200b", "anna 1 ", "an\u00adna  1", "\uff41nna 1"])
def test_nothing_is_signed_of_a_name_that_looks_like_one_that_is_here(name):
    records = table()
    people = np.array([f"anna {number % 9}" for number in range(len(records))])
    model = MaxRR.on_features().fit(replace(records, subjects=people))
    check_looks(model, {"subjects": ["anna"]})
    with pytest.raises(DataError, match="one that looks the same"):
        check_looks(model, {"subjects": [name]})


def test_core_records_wait_for_a_decision_that_shows_each_policy(house):
    (id_, *_) = house.ids("core")
    asked = house.submit(ids=[id_])
    assert asked["state"] == "waiting"
    policies = asked["plan"]["policies"]
    assert {name: each["guarantee"] for name, each in policies.items()} == {
        "retrain": "exact-retrain", "keep-extractor": "approximate-refit",
    }  # fmt: skip
    assert all(each["seconds"] > 0 for each in policies.values())
    house.work()
    assert house.follow(asked["id"])["state"] == "waiting"
    approved = house.call("POST", f"/v1/requests/{asked['id']}/approve", json={"policy": "retrain", "reason": "by law"})
    assert approved.status_code == 200
    house.work()
    request = house.follow(asked["id"])
    assert (request["guarantee"], request["policy"]) == ("exact-retrain", "retrain")
    assert states(request) == ["received", "planned", "waiting", "planned", "executing", "done"]
    assert request["events"][3]["actor"] == "operator"
    assert request["events"][3]["reason"] == "approved: retrain, by law"


def test_what_moves_heads_shares_a_training_that_is_due(house):
    """What shapes nothing waits for nobody; an unapproved core record does not slip in."""
    free, influential, core = (house.submit(ids=[house.ids(kind)[0]])["id"] for kind in ("free", "influential", "core"))
    house.call("POST", f"/v1/requests/{core}/approve", json={"policy": "retrain"})
    smuggled = house.service.requests.find(house.submit(ids=house.ids("core")[1:2])["id"])
    plan = {**smuggled.plan, "influential": 1}
    house.service.requests.move([smuggled.serial], "planned", "as if before a fit", plan=plan)
    house.worker.settings = replace(house.service.settings, gather=3600.0)
    with house.service.settings.open(False) as workspace:
        while house.worker.turn(workspace):
            pass
        found = [house.follow(id_)["state"] for id_ in (free, influential, core, smuggled.id)]
        assert found == ["done", "planned", "planned", "planned"]
        house.worker.due = 0.0
        while house.worker.turn(workspace):
            pass
        numbers = [house.follow(id_)["receipt"] for id_ in (free, influential, core)]
        assert house.follow(smuggled.id)["state"] == "waiting"
        alone, *shared = (workspace.receipt(number).receipt for number in numbers)
    assert alone.guarantee == "exact-untouched"
    assert [each.guarantee for each in shared] == ["exact-retrain"] * 2
    assert len({(each.model_before, each.model_after) for each in shared}) == 1


def test_a_plan_that_comes_late_decides_nothing(house):
    """Another worker has planned the request by now, and it waits for a decision."""
    request = house.service.requests.find(house.submit(ids=house.ids("core")[:1])["id"])
    house.service.requests.plan({request.serial: Planned("planned", "retrain", None, "late")}, "another")
    assert house.service.requests.find(request.id) == request


def test_a_worker_plans_beside_a_batch_that_takes_long(house, monkeypatch):
    monkeypatch.setattr("maxrr.service.worker.BESIDE", 0.01)
    asked = Asked({"ids": house.ids("free")[:1]}, "gdpr", today())
    request, _ = house.service.requests.submit(asked, "me")
    beside = threading.Thread(target=house.worker.beside, daemon=True)
    with house.service.settings.open(False):  # for the batch
        beside.start()
        wait_until(lambda: house.service.requests.find(request.id).state == "planned")
    house.worker.stop()
    beside.join()


def test_nothing_here_is_an_answer_with_a_signature(house):
    asked = house.submit(subject=99999)
    house.work()
    request = house.follow(asked["id"])
    assert (request["state"], request["outcome"], request["receipt"]) == ("done", "nothing-here", None)
    answer = house.call("GET", f"/v1/requests/{asked['id']}/receipt", "requester")
    assert json.loads(answer.content)["signatures"]


def test_somebody_whom_the_resolver_does_not_know_is_answered(settings):
    made = app(replace(settings, resolver=lambda kind, value: None))
    made.state.service.current.refresh()
    with TestClient(made) as client:
        house = House(client, made.state.service)
        asked = house.submit(identity={"type": "email", "value": "a@b.c"})
        house.work()
        assert house.follow(asked["id"])["outcome"] == "nothing-here"
        answer = house.call("GET", f"/v1/requests/{asked['id']}/receipt", "requester").content
    statement = Statement.from_bytes(Envelope.from_bytes(answer).payload)
    assert statement.predicate["subjects"] == ["the person with email a@b.c"]


def test_some_unknown_ids_are_refused(house):
    asked = house.submit(ids=[house.ids("free")[0], 12])
    house.work()
    request = house.follow(asked["id"])
    assert (request["state"], request["code"]) == ("refused", "unknown-id")


def test_a_key_gives_the_same_request_and_refuses_another_body(house):
    first, second = house.ids("free")[:2]
    one = house.submit(ids=[first], headers={"Idempotency-Key": "k"})
    again = house.submit(ids=[first], headers={"Idempotency-Key": "k"})
    assert one["id"] == again["id"]
    other = house.call(
        "POST", "/v1/requests", json={"ids": [second]}, role="requester", headers={"Idempotency-Key": "k"}
    )
    assert (other.status_code, other.json()["code"]) == (422, "key-reused")
    named = {"ids": [first], "due": str(today() + timedelta(days=9))}
    later = house.call("POST", "/v1/requests", "requester", json=named, headers={"Idempotency-Key": "k"})
    assert (later.status_code, later.json()["code"]) == (422, "key-reused")
    whose = house.submit("operator", ids=[second], headers={"Idempotency-Key": "k"})
    assert whose["id"] != one["id"]


def test_no_day_that_is_over_is_named_as_due(house):
    for day, code in ((today() - timedelta(days=1), 422), (today(), 201)):
        said = {"ids": house.ids("free")[:1], "due": str(day)}
        assert house.call("POST", "/v1/requests", "requester", json=said).status_code == code


def test_a_refusal_is_no_fault(house, caplog):
    asked = house.submit(ids=[house.ids("free")[0], 987654321])
    house.work()
    assert house.follow(asked["id"])["code"] == "unknown-id"
    assert [each for each in caplog.records if each.levelname == "ERROR"] == []


def test_the_description_has_problems_and_tokens(house):
    said = house.call("GET", "/openapi.json").json()
    assert [each["scheme"] for each in said["components"]["securitySchemes"].values()] == ["bearer"]
    for path, operations in said["paths"].items():
        for operation in operations.values():
            assert {*operation["responses"]["4XX"]["content"]} == {"application/problem+json"}
            assert ("security" in operation) == (path not in ("/health", "/ready", "/key.pub")), path


def test_what_names_people_is_destroyed_when_the_answer_was_delivered(house):
    (id_, *_) = house.ids("free")
    asked = house.submit(ids=[id_], headers={"Idempotency-Key": "k"})
    early = house.call("POST", f"/v1/requests/{asked['id']}/delivered", "requester")
    assert early.json()["code"] == "wrong-state"
    house.work()
    keys = house.service.settings.folder / "request-keys.bin"
    assert any(keys.read_bytes()[32:])  # after that of the service
    assert house.call("POST", f"/v1/requests/{asked['id']}/delivered", "requester").json()["delivered"]
    assert not any(keys.read_bytes()[32:])
    assert house.call("GET", f"/v1/requests/{asked['id']}/page", "requester").json()["code"] == "names-destroyed"
    assert house.call("GET", f"/v1/requests/{asked['id']}/receipt", "requester").status_code == 200
    again = house.call("POST", "/v1/requests", "requester", json={"ids": [id_]}, headers={"Idempotency-Key": "k"})
    assert again.json()["code"] == "key-reused"


def test_what_names_people_is_destroyed_where_there_is_no_answer_to_deliver(house):
    requests = house.service.requests
    known = house.ids("free")[0]
    refused = house.submit(ids=[known, 987_654])["id"]
    record = table().inputs[0].tolist()
    learned = house.call("POST", "/v1/corrections", json={"id": house.ids("free")[1], "record": record}).json()["id"]
    done = house.submit(ids=[known])["id"]
    house.work()
    assert [house.follow(each)["state"] for each in (refused, learned, done)] == ["refused", "done", "done"]
    with pytest.raises(NamesDestroyed):  # at once
        requests.body(requests.find(refused))
    requests.forget(30)
    assert requests.body(requests.find(learned))["record"] == record
    requests.forget(-1)  # as if a month had passed
    with pytest.raises(NamesDestroyed):
        requests.body(requests.find(learned))
    assert requests.body(requests.find(done)) == {"ids": [known]}  # nobody has fetched the answer


def test_the_database_names_nobody(house):
    (id_, *_) = house.ids("free")
    house.submit(ids=[id_])
    house.submit(subject=99999)
    house.submit(ids=["somebody-who-is-not-here"])
    house.work()
    content = b"".join(path.read_bytes() for path in house.service.settings.folder.glob("requests.sqlite*"))
    assert str(id_).encode() not in content
    assert b"99999" not in content
    assert b"somebody" not in content


def test_a_request_is_cancelled_before_it_is_carried_out_and_not_after(house):
    first, second = house.ids("free")[:2]
    one, two = house.submit(ids=[first]), house.submit(ids=[second])
    assert house.call("POST", f"/v1/requests/{one['id']}/cancel", "requester", json={}).json()["state"] == "cancelled"
    house.work()
    late = house.call("POST", f"/v1/requests/{two['id']}/cancel", "requester", json={})
    assert (late.status_code, late.json()["code"]) == (409, "wrong-state")
    assert house.follow(one["id"])["state"] == "cancelled"
    with house.service.settings.open(True) as workspace:
        assert first in workspace.model.ids_of().tolist()
        assert second not in workspace.model.ids_of().tolist()


def test_nobody_decides_about_a_request_that_a_worker_has(house):
    made, requests = house.submit(ids=house.ids("free")[:1]), house.service.requests
    assert requests.move([requests.find(made["id"]).serial], "executing", "worker")
    for step, body in {"approve": {"policy": "retrain"}, "refuse": {"reason": "law"}, "cancel": {}}.items():
        assert house.call("POST", f"/v1/requests/{made['id']}/{step}", json=body).json()["code"] == "wrong-state"
    assert requests.find(made["id"]).state == "executing"


def test_pages_of_a_list(house):
    asked = [house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:5]]
    for order, expected in (("newest", asked[::-1]), ("due", asked)):
        seen, after = [], ""
        while after is not None:
            page = house.call(
                "GET", f"/v1/requests?limit=2&order={order}" + (f"&after={after}" if after else "")
            ).json()
            seen += [each["id"] for each in page["requests"]]
            after = page["next"]
        assert seen == expected
    assert house.call("GET", "/v1/requests?state=done").json()["requests"] == []


@pytest.mark.parametrize(
    "body",
    [{}, {"ids": []}, {"ids": [1], "subject": 2}, {"ids": [True]}, {"ids": [1.5]}, {"ids": ["a\0"]}, {"ids": [1, "a"]},
     {"ids": [2**70]}, {"subject": ""}, {"ids": [1], "more": 1}, {"identity": {"type": "email", "value": "a@b.c"}}],
)  # fmt: skip
def test_what_is_not_a_request_is_refused_by_its_form(house, body):
    answer = house.call("POST", "/v1/requests", "requester", json=body)
    assert answer.status_code == 422, answer.text
    assert answer.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("stranger", ["99999", "31 and 33"])
def test_nothing_here_is_not_said_of_a_list_with_a_record_that_is_here(house, stranger):
    here = str(house.ids("free")[0])
    asked = house.submit(ids=[here, stranger])
    house.work()
    request = house.follow(asked["id"])
    assert (request["state"], request["outcome"], request["code"]) == ("refused", "refused", "unknown-id")


def test_a_refusal_needs_a_reason(house):
    id_ = house.submit(ids=house.ids("core")[:1])["id"]
    for said in ({}, {"reason": ""}, {"reason": "  "}, {"reason": "a" * 401}):
        assert house.call("POST", f"/v1/requests/{id_}/refuse", json=said).status_code == 422
    assert house.follow(id_)["state"] == "waiting"
    refused = house.call("POST", f"/v1/requests/{id_}/refuse", json={"reason": " kept by law "}).json()
    assert (refused["state"], house.follow(id_)["events"][-1]["reason"]) == ("refused", "kept by law")
