"""Audits and replays beside requests: asked for, carried out once, told."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
from sqlalchemy import update

from maxrr.service import tables
from maxrr.service.jobs import TAKEN, TRIES, Jobs
from maxrr.service.versions import listed
from maxrr.service.worker import Worker
from tests.unlearning.problems import table


def approximate(house):
    asked = house.submit(ids=house.ids("core")[:1])
    house.call("POST", f"/v1/requests/{asked['id']}/approve", json={"policy": "keep-extractor"})
    house.work()
    return asked["id"]


def jobs_of(house, id_):
    return [
        (each["kind"], each["state"], each["result"]) for each in house.call("GET", f"/v1/requests/{id_}/jobs").json()
    ]


def write(house, serial, **values):
    """Write what a job is to be, as if a worker had."""
    with house.service.requests.database.write() as connection:
        connection.execute(update(tables.jobs).where(tables.jobs.c.serial == serial).values(**values))


def done(house, monkeypatch):
    """Do what is queued, with an audit that only looks at what it is given."""
    seen = []

    def audit(model, receipt, forgotten, test, *, shadows, progress):
        progress("shadow models", 1, shadows)
        seen.append((forgotten.ids.tolist(), len(test), shadows))
        return SimpleNamespace(finding=SimpleNamespace(words="indistinguishable"))

    monkeypatch.setattr("maxrr.audit.audit", audit)
    settings = replace(house.service.settings, sides=lambda workspace: (table(), table(8, seed=3)), shadows=8)
    jobs = Jobs(settings, house.service.requests.database)
    while jobs.turn("one"):
        pass
    return seen


def test_an_audit_is_due_after_an_approximate_answer(house, monkeypatch):
    (gone, *_) = house.ids("core")
    id_ = approximate(house)
    assert jobs_of(house, id_) == [("audit", "queued", "")]
    assert done(house, monkeypatch) == [([gone], 8, 8)]
    assert jobs_of(house, id_) == [("audit", "done", "indistinguishable")]


def test_a_job_that_fails_says_by_what_and_is_asked_for_again(house, monkeypatch):
    id_ = approximate(house)
    assert house.worker.jobs.turn("one")
    assert jobs_of(house, id_) == [("audit", "failed", "records-missing")]
    again = house.call("POST", f"/v1/requests/{id_}/jobs", json={"kind": "audit"})
    assert again.status_code == 202
    house.call("POST", f"/v1/requests/{id_}/jobs", json={"kind": "audit"})  # which is queued already
    assert len(done(house, monkeypatch)) == 1
    assert [state for _, state, _ in jobs_of(house, id_)] == ["failed", "done"]


def test_records_that_cannot_be_classified_leave_a_version_without_its_accuracy(house):
    def sides(workspace):
        raise ValueError("a column is missing")

    other = table(8, seed=3)
    wide = replace(other, inputs=np.hstack([other.inputs, other.inputs]))
    for wrong in (sides, lambda workspace: (None, wide)):
        worker = Worker(replace(house.service.settings, sides=wrong), house.service.requests)
        worker.record_version()
        assert worker.recorded == house.service.current.snapshot.model.model_hash_
    (version,) = listed(house.service.requests.database)
    assert version.accuracy is None


def test_a_worker_ends_after_the_batch_that_it_is_at(house, monkeypatch):
    asked = [house.submit(ids=[each])["id"] for each in house.ids("core")[:2]]
    for each, policy in zip(asked, ("keep-extractor", "retrain"), strict=True):
        house.call("POST", f"/v1/requests/{each}/approve", json={"policy": policy})
    execute = house.worker.execute

    def once(*batch):
        execute(*batch)
        house.worker.stop()

    monkeypatch.setattr(house.worker, "execute", once)
    with house.service.settings.open(False) as workspace:
        house.worker.turn(workspace)
    assert sorted(house.follow(each)["state"] for each in asked) == ["done", "planned"]


def test_a_training_waits_for_others_again_after_one_that_was_cancelled(house):
    house.worker.settings = replace(house.worker.settings, gather=1000.0)
    first, second = (house.submit(ids=[each])["id"] for each in house.ids("core")[:2])
    with house.service.settings.open(False) as workspace:
        house.call("POST", f"/v1/requests/{first}/approve", json={"policy": "retrain"})
        house.worker.turn(workspace)
        house.worker.due = 0.0  # as if the time had passed
        house.call("POST", f"/v1/requests/{first}/cancel", json={})
        house.worker.turn(workspace)
        house.call("POST", f"/v1/requests/{second}/approve", json={"policy": "retrain"})
        house.worker.turn(workspace)
    assert house.follow(second)["state"] == "planned"


def test_no_job_without_a_receipt(house):
    asked = house.submit(ids=house.ids("core")[:1])
    answer = house.call("POST", f"/v1/requests/{asked['id']}/jobs", json={"kind": "replay"})
    assert answer.json()["code"] == "wrong-state"


def test_a_job_is_done_once_by_whoever_stands_by(house, monkeypatch):
    """Another worker has it only when the first was not heard of for long, and writes the only result."""
    id_ = approximate(house)
    database, found = house.service.requests.database, []
    jobs = [Jobs(replace(house.service.settings, sides=None), database) for _ in range(2)]
    assert jobs[0].take("first")
    assert jobs[1].take("second") is None
    monkeypatch.setattr("maxrr.service.jobs.time.time", lambda: 1e10)
    with house.service.settings.open(False):  # which the third does not wait for
        monkeypatch.setattr("maxrr.service.jobs.TAKEN", -1.0)
        monkeypatch.setattr(Jobs, "do", lambda *_: found.append(jobs[0].take("third")) or "found by the second")
        assert jobs[1].turn("second")
    assert found[0] is not None
    assert jobs_of(house, id_) == [("audit", "running", "")]  # the third one has it now


def test_a_job_that_ends_its_process_is_given_up_and_stops_no_other(house, monkeypatch):
    id_ = approximate(house)
    house.call("POST", f"/v1/requests/{id_}/jobs", json={"kind": "replay"})
    jobs, clock = house.worker.jobs, [time.time()]
    monkeypatch.setattr("maxrr.service.jobs.time.time", lambda: clock[0])
    for number in range(TRIES):
        assert jobs.take(f"worker {number}")[0] == 1
        clock[0] += 2 * TAKEN
    assert jobs.take("the last") is None
    assert jobs_of(house, id_)[0] == ("audit", "failed", "given-up")
    assert jobs.take("the last")[0] == 2
    assert jobs_of(house, id_)[1] == ("replay", "running", "")


def test_a_job_stays_with_the_worker_that_is_heard_of(house, monkeypatch):
    """However long it takes: the time for which it belongs to one worker is lengthened."""
    id_, jobs, found = approximate(house), house.worker.jobs, []
    monkeypatch.setattr("maxrr.service.jobs.PAUSE", 0.01)
    monkeypatch.setattr("maxrr.service.jobs.TAKEN", 0.5)

    def do(*_):
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            found.append(jobs.take("another"))
            time.sleep(0.05)
        return "found"

    monkeypatch.setattr(Jobs, "do", do)
    assert jobs.turn("one")
    assert {*found} == {None}
    assert jobs_of(house, id_) == [("audit", "done", "found")]


def test_versions_are_recorded_once_with_their_accuracy(house):
    test = table(40, seed=3)
    house.worker.settings = replace(house.service.settings, sides=lambda workspace: (table(), test))
    snapshot = house.service.current.snapshot
    for _ in range(2):
        house.worker.record_version()
    house.submit(ids=house.ids("influential")[:1])
    house.work()
    house.worker.record_version()
    first, second = house.call("GET", "/v1/model/versions").json()
    assert first["model"] == snapshot.model.model_hash_ != second["model"]
    assert (first["records"], second["records"], second["receipts"], first["tested"]) == (80, 79, 1, 40)
    assert first["accuracy"] == snapshot.model.score(test)
    assert first["recall"] == {str(name): share for name, share in snapshot.model.recall(test).items()}
    assert "maxrr_model_records 79" in house.call("GET", "/metrics").text
