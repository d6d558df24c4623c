"""Audits and replays beside requests: asked for, carried out once, told."""

from dataclasses import replace
from types import SimpleNamespace

from maxrr.service.jobs import Jobs
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
    with settings.open(False) as workspace:
        while jobs.turn(workspace):
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
    with house.service.settings.open(False) as workspace:
        assert house.worker.jobs.turn(workspace)
    assert jobs_of(house, id_) == [("audit", "failed", "records-missing")]
    again = house.call("POST", f"/v1/requests/{id_}/jobs", json={"kind": "audit"})
    assert again.status_code == 202
    house.call("POST", f"/v1/requests/{id_}/jobs", json={"kind": "audit"})  # which is queued already
    assert len(done(house, monkeypatch)) == 1
    assert [state for _, state, _ in jobs_of(house, id_)] == ["failed", "done"]


def test_no_job_without_a_receipt(house):
    asked = house.submit(ids=house.ids("core")[:1])
    answer = house.call("POST", f"/v1/requests/{asked['id']}/jobs", json={"kind": "replay"})
    assert answer.json()["code"] == "wrong-state"
