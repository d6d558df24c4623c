"""The same on SQLite and on a real PostgreSQL: the tables, the steps to them, and requests of several workers."""

import gc
import os
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError

from maxrr.errors import DatabaseAway, DatabaseGone, DatabaseVersion, DataError, InUse
from maxrr.service import app, callbacks, tables
from maxrr.service.api import Service
from maxrr.service.database import Database
from maxrr.service.protocols import Protocols
from maxrr.service.requests import Asked, New, Planned, today
from maxrr.service.worker import Worker
from tests.service.conftest import House
from tests.service.postgres import Postgres, wait_until


@pytest.fixture(scope="module")
def postgres():
    cluster = Postgres()
    yield cluster
    cluster.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'requests.sqlite'}"
    return request.getfixturevalue("postgres").database(f"test_{abs(hash(request.node.name))}")


@pytest.fixture
def house(settings, url):
    made = app(replace(settings, database=url))
    made.state.service.current.refresh()
    with TestClient(made, client=("127.0.0.1", 1)) as client:
        yield House(client, made.state.service)


def test_requests_are_answered(house):
    free, core = house.ids("free")[0], house.ids("core")[0]
    asked = [house.submit(ids=[free]), house.submit(ids=[core]), house.submit(subject=99999)]
    again = house.submit(ids=[free], headers={"Idempotency-Key": "k"})
    assert house.submit(ids=[free], headers={"Idempotency-Key": "k"})["id"] == again["id"]
    house.call("POST", f"/v1/requests/{asked[1]['id']}/approve", json={"policy": "retrain"})
    house.work()
    outcomes = [house.follow(each["id"])["outcome"] for each in [*asked, again]]
    assert outcomes == ["done", "done", "nothing-here", "already-done"]
    assert house.call("GET", "/v1/status").json()["requests"] == {
        "done": 4,
        "late": 0,
        "due_soon": 0,
        "not_fetched": 4,
        "not_delivered": 4,
    }
    assert house.call("POST", f"/v1/requests/{asked[0]['id']}/delivered").json()["delivered"]


def test_events_are_only_appended(house):
    house.submit(ids=house.ids("free")[:1])
    database, whole = house.service.requests.database, ["TRUNCATE events CASCADE"]
    for statement in ("UPDATE events SET reason = 'never'", "DELETE FROM events", *([] if database.is_file else whole)):
        with pytest.raises(DBAPIError), database.engine.begin() as connection:
            connection.execute(text(statement))
    assert len(house.service.requests.events(1)) == 2


def test_a_job_that_many_ask_for_at_once_is_queued_once(house):
    asked = house.submit(ids=house.ids("free")[:1])
    house.work()
    serial = house.service.requests.find(asked["id"]).serial
    jobs = house.worker.jobs
    with ThreadPoolExecutor(8) as many:
        list(many.map(lambda each: jobs.ask(serial, "replay", f"caller {each}"), range(16)))
    assert len(jobs.of(house.service.requests.find(asked["id"]))) == 1


def test_an_older_database_becomes_this_one_and_a_newer_one_is_refused(url):
    database = Database(url)
    add = text("ALTER TABLE requests ADD COLUMN more INTEGER")
    with database.write() as connection:
        assert tables.upgrade(connection) == 0
    with database.write() as connection:
        assert tables.upgrade(connection, [*tables.STEPS, lambda connection: connection.execute(add)]) == 1
    assert "more" in [column["name"] for column in inspect(database.engine).get_columns("requests")]
    with pytest.raises(DatabaseVersion), database.write() as connection:
        tables.upgrade(connection)
    database.close()


def test_of_a_database_that_is_refused_no_connection_stays_open(url):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with pytest.raises(DatabaseGone):
            Database(url, may_be_new=False)
        gc.collect()
    assert [each for each in said if each.category is ResourceWarning] == []


def test_a_step_that_fails_leaves_nothing(url):
    database = Database(url)

    def breaks(connection):
        connection.execute(text("ALTER TABLE requests ADD COLUMN more INTEGER"))
        raise RuntimeError

    with pytest.raises(RuntimeError), database.write() as connection:
        tables.upgrade(connection, [*tables.STEPS, breaks])
    assert "more" not in [column["name"] for column in inspect(database.engine).get_columns("requests")]
    database.close()


def test_a_request_is_taken_by_one_of_many(house):
    """Compare and set: of many that move the same requests at once, each request is moved by one."""
    requests, ids = house.service.requests, house.ids("free")
    serials = [requests.submit(Asked({"ids": [id_]}, "gdpr", today()), "somebody")[0].serial for id_ in ids[:8]]
    requests.move(serials, "planned", "test")
    taken = []
    takers = [
        threading.Thread(target=lambda name=str(name): taken.extend(requests.move(serials, "executing", name)))
        for name in range(8)
    ]
    for each in takers:
        each.start()
    for each in takers:
        each.join()
    assert sorted(taken) == serials


def test_a_call_that_comes_many_times_at_once_is_one_request(house):
    body, found = {"ids": house.ids("free")[:1]}, []

    def ask():
        found.append(house.service.requests.submit(Asked(body, "gdpr", today()), "me", None, "key")[0].id)

    callers = [threading.Thread(target=ask) for _ in range(8)]
    for each in callers:
        each.start()
    for each in callers:
        each.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_whoever_does_not_hold_the_workspace_stands_by_and_takes_over(house):
    other = Service.of(house.service.settings)
    second = Worker(house.service.settings, other.requests)
    asked = house.submit(ids=house.ids("free")[:1])
    with house.service.settings.open(False):
        with pytest.raises(InUse):
            house.service.settings.open(False)
        assert house.follow(asked["id"])["state"] == "planned"
    with house.service.settings.open(False) as workspace:
        assert second.turn(workspace)
    assert house.follow(asked["id"])["state"] == "done"
    other.close()


def test_a_database_that_was_gone_for_a_while_is_used_again(settings, tmp_path):
    """The server of the database is killed under the service, and started again."""
    cluster = Postgres(durable=True)
    settings = replace(settings, database=cluster.url)
    made = app(settings)
    made.state.service.current.refresh()
    try:
        with TestClient(made, client=("127.0.0.1", 1)) as client:
            house = House(client, made.state.service)
            asked = house.submit(ids=house.ids("free")[:1])
            cluster.stop()
            body = {"ids": house.ids("free")[1:2]}
            lost = house.call("POST", "/v1/requests", json=body, headers={"Idempotency-Key": "k"})
            assert (lost.status_code, lost.json()["code"]) == (503, "database-away")
            with pytest.raises(DatabaseAway):
                house.work()
            cluster.start()
            wait_until(lambda: house.call("GET", "/ready").status_code == 200)
            again = house.submit("operator", headers={"Idempotency-Key": "k"}, **body)
            house.work()
            assert [house.follow(each["id"])["outcome"] for each in (asked, again)] == ["done", "done"]
            assert len(house.call("GET", "/v1/requests").json()["requests"]) == 2
    finally:
        cluster.remove()


def test_deliveries_come_with_their_events_and_are_sent_by_one_of_many(settings, url, receiver, tmp_path, monkeypatch):
    monkeypatch.setattr(callbacks, "PAUSE", 3600.0)
    (tmp_path / "secret").write_text("whsec_" + "A" * 32)
    hook = {"url": f"{receiver.host}/events", "secret": tmp_path / "secret"}
    told = replace(settings, database=url, protocols=Protocols.model_validate({"webhooks": [hook]}))
    apps = [app(told) for _ in range(3)]
    requests = apps[0].state.service.requests

    def breaks(connection):
        requests._insert(
            connection, [New(Asked({"ids": [1]}, "gdpr", today()), "me", Planned("received", None, None, ""), None)]
        )
        raise RuntimeError

    with pytest.raises(RuntimeError), requests.database.write() as connection:
        breaks(connection)
    for number in range(5):
        requests.submit(Asked({"ids": [number]}, "gdpr", today()), "me")
    requests.move(range(1, 9), "planned", "test")
    senders = [
        threading.Thread(target=lambda made=made: [made.state.callbacks.turn() for _ in range(4)]) for made in apps
    ]
    for each in senders:
        each.start()
    for each in senders:
        each.join()
    apps[0].state.callbacks.turn()
    assert len({each["id"] for each in receiver.said}) == len(receiver.calls) == 10
    for id_ in {each["subject"] for each in receiver.said}:
        steps = [each["type"] for each in receiver.said if each["subject"] == id_]
        assert steps == ["maxrr.request.received", "maxrr.request.planned"]
    for made in apps:
        made.state.service.close()


@pytest.mark.parametrize(
    "path", ["/v1/requests/%00", "/v1/requests?after=2026-01-01.999999999999999999", "/v1/requests?state=%00"]
)
def test_what_no_column_holds_is_refused_and_is_no_fault(house, path):
    assert house.call("GET", path).status_code in (200, 404, 422)


def test_a_reason_that_no_column_holds_is_refused_and_nothing_is_changed(house):
    asked = house.submit(ids=house.ids("core")[:1])["id"]
    answer = house.call("POST", f"/v1/requests/{asked}/refuse", json={"reason": "a\0b"})
    assert (answer.status_code, house.follow(asked)["state"]) in ((422, "waiting"), (200, "refused"))


def test_a_request_that_no_column_holds_stops_no_other(house):
    """They are written together; PostgreSQL has no column for a long name."""
    requests, body = house.service.requests, {"ids": house.ids("free")[:1]}
    laws = ["a" * (300 if number % 3 == 0 else 3) for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        with requests._turn:
            taken = [pool.submit(requests.submit, Asked(body, law, today()), "shop") for law in laws]
            wait_until(lambda: len(requests._waiting) == len(laws))
        for law, each in zip(laws, taken, strict=True):
            if len(law) < 32 or requests.database.is_file:
                assert each.result()[1]
            else:
                with pytest.raises(DataError):
                    each.result()


def test_a_job_is_taken_by_one_of_many(house):
    asked = [house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:4]]
    house.work()
    for id_ in asked:
        house.worker.jobs.ask(house.service.requests.find(id_).serial, "replay", "me")
    with ThreadPoolExecutor(8) as many:
        taken = [each for each in many.map(lambda number: house.worker.jobs.take(f"{number}"), range(16)) if each]
    assert len({serial for serial, _, _ in taken}) == len(taken) > 0


def test_keys_without_their_database_are_not_served(house, settings):
    """Whoever deleted the database is told, and nobody is answered from an empty one."""
    house.submit(ids=house.ids("free")[:1])
    house.service.close()
    for file in settings.folder.glob("requests.sqlite*"):
        file.unlink()
    for _ in range(2):
        with pytest.raises(DatabaseGone):
            app(settings)


def test_a_service_that_is_closed_again_closes_no_other_file(house, tmp_path):
    """Others get the numbers that its files had."""
    house.service.close()
    with ExitStack() as others:
        opened = [others.enter_context(open(tmp_path / f"{number}", "wb")) for number in range(20)]
        house.service.close()
        with pytest.raises(OSError, match="Bad file descriptor"):
            house.service.requests.keys.destroy([1])
        assert all(os.fstat(each.fileno()) for each in opened)
