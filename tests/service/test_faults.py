"""What goes wrong around a request: kills, a database that is away, a full disk, a clock, copies of other days."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, update

from maxrr.errors import DatabaseAway, DatabaseGone, NamesDestroyed, OlderCopy
from maxrr.service import requests, tables
from maxrr.service.api import Service
from maxrr.service.worker import Worker
from maxrr.svm import ConvergenceError
from maxrr.workspace import Batch
from tests.service.conftest import opening

NONE = {"not_fetched": 0, "not_delivered": 0}


class Killed(BaseException):
    """The end of a process: nobody catches it."""


def states(house, id_):
    return [event["state"] for event in house.follow(id_)["events"]]


def receipts(house):
    with house.service.settings.open(True) as workspace:
        return workspace.status().requests


def killed(*_, **__):
    raise Killed


AT = {
    "before the batch": ("maxrr.workspace.Workspace.batch", killed),
    "within the commit": ("maxrr.workspace.store.Store.append", killed),
    "after the commit": ("maxrr.service.worker.Worker.ending", killed),
    "before the end is written": ("maxrr.service.requests.Requests.end", killed),
    "within the end": ("maxrr.service.requests.now", killed),
}


@pytest.mark.parametrize("at", AT)
def test_a_worker_that_is_killed_is_taken_over(house, monkeypatch, at):
    asked = [house.submit(ids=[id_])["id"] for id_ in (house.ids("free")[0], house.ids("influential")[0])]
    asked.append(house.submit(subject=99999)["id"])
    house.service.requests.move([1, 2, 3], "executing", "the killed one")
    with monkeypatch.context() as patch:
        patch.setattr(*AT[at])
        with pytest.raises(Killed):
            house.work()
    assert {house.follow(id_)["state"] for id_ in asked} == {"executing"}
    house.work()
    assert [house.follow(id_)["outcome"] for id_ in asked] == ["done", "done", "nothing-here"]
    assert receipts(house) == 2
    assert all(states(house, id_) == ["received", "planned", "executing", "done"] for id_ in asked)


def test_a_request_that_fails_keeps_no_others(house, monkeypatch):
    bad, good = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:2])
    answer, serial = Batch._answer, house.service.requests.find(bad).serial

    def fails(self, progress):
        if any(each._text == bad for each in self._tickets):
            raise ConvergenceError("a head cannot be solved")
        answer(self, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "_answer", fails)
        house.work()
    assert (house.follow(good)["state"], house.follow(bad)["state"]) == ("done", "failed")
    assert house.follow(bad)["code"] == "convergence"
    assert house.service.requests.keys.find(serial)  # it can be tried again
    again = house.call("POST", f"/v1/requests/{bad}/retry", json={"reason": "repaired"}).json()
    assert (again["state"], again["code"], again["ended"]) == ("planned", None, None)
    house.work()
    assert house.follow(bad)["outcome"] == "done"


def test_a_full_disk_changes_nothing_and_is_told(house, monkeypatch):
    id_ = house.submit(ids=house.ids("free")[:1])["id"]

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("maxrr.workspace.store.Store.append", full)
        with pytest.raises(OSError, match="No space") as raised:
            house.work()
        house.worker.trouble(raised.value)
        patch.setattr("maxrr.service.sealing.os.pwrite", full)
        answer = house.call("POST", "/v1/requests", json={"ids": house.ids("free")[1:2]})
        assert (answer.status_code, answer.json()["code"]) == (503, "disk")
    assert [each["code"] for each in house.call("GET", "/v1/status").json()["workers"].values()] == ["OSError"]
    assert house.call("GET", "/v1/status").json()["requests"] == {"executing": 1, "late": 0, "due_soon": 0, **NONE}
    house.work()
    assert (house.follow(id_)["outcome"], receipts(house)) == ("done", 1)


def test_a_database_that_is_away_loses_nothing(house, monkeypatch):
    id_ = house.submit(ids=house.ids("free")[:1])["id"]
    with monkeypatch.context() as patch:
        patch.setattr(house.service.requests.database.engine, "connect", lambda: exec("raise DatabaseAway('away')"))
        answer = house.call("GET", "/v1/requests")
        assert (answer.status_code, answer.json()["code"]) == (503, "database-away")
        assert house.call("GET", "/ready").json() == {"status": "database-away"}
        assert house.call("GET", "/health").status_code == 200
        with pytest.raises(DatabaseAway):
            house.work()
    house.work()
    assert (house.follow(id_)["outcome"], receipts(house)) == ("done", 1)


def test_a_clock_that_goes_backwards_changes_no_order(house, monkeypatch):
    id_ = house.submit(ids=house.ids("free")[:1])["id"]
    past = datetime.now(UTC) - timedelta(days=400)
    monkeypatch.setattr(requests, "now", past.isoformat)
    monkeypatch.setattr(requests, "today", past.date)
    later = house.submit(ids=house.ids("free")[1:2])["id"]
    house.work()
    assert states(house, id_) == states(house, later) == ["received", "planned", "executing", "done"]
    assert [each["id"] for each in house.call("GET", "/v1/requests").json()["requests"]] == [later, id_]
    for each in (id_, later):
        times = [event["time"] for event in house.follow(each)["events"]]
        assert times == sorted(times)


def test_a_late_request_is_said_to_be_late(house):
    id_ = house.submit(ids=house.ids("core")[:1])["id"]
    with house.service.requests.database.write() as connection:
        connection.execute(update(tables.requests).values(due="2020-01-01"))
    day = (datetime.now(UTC).date() + timedelta(days=3)).isoformat()
    soon = house.submit(ids=house.ids("core")[1:2], due=day)["id"]
    assert house.follow(id_)["late"]
    assert [each["id"] for each in house.call("GET", "/v1/requests?late=true").json()["requests"]] == [id_]
    assert [each["id"] for each in house.call("GET", "/v1/requests?order=due").json()["requests"]] == [id_, soon]
    assert house.call("GET", "/v1/status").json()["requests"] == {"waiting": 2, "late": 1, "due_soon": 1, **NONE}


def test_an_older_copy_of_the_database_repeats_no_request(house, tmp_path):
    """The newer one is lost: what it had answered is found by its tickets, though what named people was destroyed."""
    first, second = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:2])
    database = house.service.requests.database
    with sqlite3.connect(tmp_path / "older") as copy, sqlite3.connect(database.engine.url.database) as now:
        now.backup(copy)
    house.work()
    house.call("POST", f"/v1/requests/{first}/delivered")
    settings = replace(house.service.settings, database=f"sqlite:///{tmp_path / 'older'}")
    older = Service.of(settings)
    worker = Worker(settings, older.requests)
    assert older.requests.find(first).state == "planned"
    with settings.open(False) as workspace:
        while worker.turn(workspace):
            pass
    assert [older.requests.find(id_).number for id_ in (first, second)] == [1, 2]
    assert receipts(house) == 2
    older.close()


def test_an_older_copy_of_the_workspace_signs_nothing_until_it_has_caught_up(house, tmp_path):
    first, second = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:2])
    with house.service.settings.open(False) as workspace:
        workspace.backup(tmp_path / "backup" / "ws")
    house.work()
    settings = replace(house.service.settings, workspace=tmp_path / "backup" / "ws")
    settings = replace(settings, open=opening(settings.workspace), database=house.service.settings.url)
    worker = Worker(settings, house.service.requests)
    third = house.submit(ids=house.ids("free")[2:3])["id"]
    with pytest.warns(match="older copy|is a backup"):
        copy = settings.open(False)
    with pytest.raises(OlderCopy):
        worker.turn(copy)
    assert house.follow(third)["state"] == "executing"
    copy.catch_up(house.service.settings.workspace)
    worker.turn(copy)
    assert copy.status().records == 80 - 3
    copy.close()
    assert [house.follow(id_)["outcome"] for id_ in (first, second, third)] == ["done"] * 3


def content(place):
    return {path.relative_to(place): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("how", ["folder", "files"])
def test_a_backup_put_in_place_under_a_worker_is_noticed_and_not_touched(house, tmp_path, how):
    first, second, third = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:3])
    place, made = house.service.settings.workspace, tmp_path / "backup"
    house.service.current.refresh = lambda: None  # no server reads the folder meanwhile
    house.service.requests.decide(house.service.requests.find(third), "cancelled", "me", "not yet")
    with house.service.settings.open(False) as workspace:
        workspace.backup(made)
        while house.worker.turn(workspace):
            pass
        if how == "folder":
            place.rename(tmp_path / "away")
        shutil.copytree(made, place, dirs_exist_ok=True)
        before = content(place)
        fourth = house.submit(ids=house.ids("free")[3:4])["id"]
        for _ in range(2):
            with pytest.raises(OlderCopy):
                house.worker.turn(workspace)
    assert content(place) == before
    assert [house.follow(id_)["state"] for id_ in (first, second, fourth)] == ["done", "done", "executing"]


def test_a_backup_put_in_place_under_a_server_is_not_served(house, tmp_path):
    current, place, made = house.service.current, house.service.settings.workspace, tmp_path / "backup"
    refresh, current.refresh = current.refresh, lambda: None
    house.submit(ids=house.ids("influential")[:1])
    with house.service.settings.open(False) as workspace:
        workspace.backup(made)
        while house.worker.turn(workspace):
            pass
    refresh()
    version = current.snapshot.version
    place.rename(tmp_path / "away")
    shutil.copytree(made, place)
    with pytest.raises(OlderCopy):
        refresh()
    assert current.snapshot.version == version
    current.found = None  # as after a start
    with pytest.raises(OlderCopy):
        refresh()
    assert house.call("GET", "/ready").status_code == 503


def test_a_full_disk_under_the_database_is_told_as_one(house):
    """SQLite, at the most pages that it may have."""
    with house.service.requests.database.engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()

    def full(connection, _):
        connection.execute(f"PRAGMA max_page_count={pages}")

    database = house.service.requests.database
    event.listen(database.engine, "connect", full)
    database.engine.dispose()
    answers = [house.call("POST", "/v1/requests", json={"subject": "a" * 400}) for _ in range(40)]
    assert {(each.status_code, each.json().get("code")) for each in answers} == {(201, None), (503, "disk")}
    house.worker.say("at work")  # and goes on
    event.remove(database.engine, "connect", full)
    database.engine.dispose()
    house.submit(subject="somebody")


def test_names_are_destroyed_some_days_after_the_answer_was_fetched_and_never_before(house, monkeypatch):
    one, other = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:2])
    house.work()
    house.call("GET", f"/v1/requests/{one}/receipt", "auditor")
    assert house.call("GET", "/v1/status").json()["requests"]["not_fetched"] == 2
    house.call("GET", f"/v1/requests/{one}/receipt", "requester")
    assert house.call("GET", "/v1/status").json()["requests"]["not_fetched"] == 1
    with monkeypatch.context() as patch:
        patch.setattr(requests, "datetime", type("Later", (datetime,), {
            "now": classmethod(lambda cls, zone: datetime.now(zone) + timedelta(days=31))
        }))  # fmt: skip
        assert house.service.requests.forget(30) == 1
    assert house.call("GET", f"/v1/requests/{one}/plan").json()["code"] == "names-destroyed"
    assert house.service.requests.body(house.service.requests.find(other))
    for delivered, id_ in {"true": one, "false": other}.items():
        (found,) = house.call("GET", f"/v1/requests?delivered={delivered}").json()["requests"]
        assert found["id"] == id_


@pytest.mark.parametrize("run", ["sqlite,1,8,2", pytest.param("postgresql,2,12,3", marks=pytest.mark.long)])
def test_processes_are_killed_on_both_databases(tmp_path, run):
    done = subprocess.run(
        [sys.executable, "-m", "tests.service.faults", str(tmp_path), run],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert [json.loads(line)["killed"] for line in done.stdout.splitlines()] == [int(run.split(",")[-1])]
    shutil.rmtree(tmp_path)


def test_a_request_that_ends_its_worker_each_time_is_given_up_and_keeps_no_others(house, monkeypatch):
    """Killed in one batch with others at first, and then alone."""
    bad, good = (house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:2])
    answer, kills = Batch._answer, []

    def kills_one(self, progress):
        if any(each._text == bad for each in self._tickets):
            kills.append(len(self._tickets))
            raise Killed
        answer(self, progress)

    def work_until_killed():
        house.worker = Worker(house.service.settings, house.service.requests)
        try:
            house.work()
        except Killed:
            return True
        return False

    with monkeypatch.context() as patch:
        patch.setattr(Batch, "_answer", kills_one)
        while work_until_killed():
            assert len(kills) < 10
    assert kills == [2, 2, 1, 1, 1]
    assert (house.follow(good)["state"], house.follow(bad)["state"]) == ("done", "failed")
    assert house.follow(bad)["code"] == "given-up"
    house.call("POST", f"/v1/requests/{bad}/retry", json={"reason": "more memory"})
    house.work()
    assert (house.follow(bad)["outcome"], receipts(house)) == ("done", 2)


def test_a_worker_that_was_asked_to_stop_or_waits_for_repairs_counts_against_no_request(house, monkeypatch):
    id_, requests = house.submit(ids=house.ids("free")[:1])["id"], house.service.requests

    def ended(how):
        with monkeypatch.context() as patch:
            patch.setattr(Batch, "_answer", lambda *_: exec("raise how", {"how": how}))
            with pytest.raises(type(how)):
                house.work()

    for _ in range(3):
        ended(OSError(errno.ENOSPC, "No space left on device"))
    assert requests.find(id_).tries == 1000
    for _ in range(6):
        house.worker = Worker(house.service.settings, requests)
        ended(Killed())
        requests.excuse()  # what `stop` does
        assert requests.find(id_).tries == 0
    house.work()
    assert house.follow(id_)["outcome"] == "done"


def test_a_request_for_which_there_is_never_enough_memory_is_given_up(house, monkeypatch):
    id_ = house.submit(ids=house.ids("free")[:1])["id"]
    with monkeypatch.context() as patch:
        patch.setattr(Batch, "_answer", lambda *_: exec("raise MemoryError"))
        for _ in range(3):
            with pytest.raises(MemoryError):
                house.work()
        house.work()
    assert house.follow(id_)["code"] == "given-up"


@pytest.mark.parametrize("name", ["requests.sqlite", "request-keys.bin"])
def test_a_file_put_in_place_under_the_service_is_noticed_and_not_touched(house, tmp_path, name):
    """A database's copy beside the log of the former one would be ruined by the next who opens it."""
    file = house.service.settings.folder / name
    house.submit(ids=house.ids("free")[:1])
    shutil.copy(file, tmp_path / "copy")
    house.submit(ids=house.ids("free")[1:2])
    (tmp_path / "copy").replace(file)
    before = file.read_bytes()
    answer = house.call("POST", "/v1/requests", json={"ids": house.ids("free")[2:3]})
    assert (answer.status_code, answer.json()["code"]) == (503, "database-gone")
    assert file.read_bytes() == before
    file.unlink()
    assert house.call("POST", "/v1/requests", json={"subject": 1}).json()["code"] == "database-gone"


def test_what_was_done_in_a_copy_that_is_gone_is_done_again_and_nothing_twice(house, tmp_path):
    """An older copy goes on: all that it lacks is done again if it can be read, and has failed if not."""
    free = house.ids("free")
    asked = [house.submit(ids=[id_])["id"] for id_ in free[:2]]
    house.work()
    with house.service.settings.open(False) as workspace:
        workspace.backup(tmp_path / "backup" / "ws")
    asked += [house.submit(ids=[id_])["id"] for id_ in free[2:5]]
    house.work()
    kept = house.call("GET", f"/v1/requests/{asked[0]}/receipt").content
    for id_ in (asked[1], asked[4]):
        house.call("POST", f"/v1/requests/{id_}/delivered")
    settings = replace(house.service.settings, workspace=tmp_path / "backup" / "ws")
    settings = replace(settings, open=opening(settings.workspace), database=house.service.settings.url)
    worker = Worker(settings, house.service.requests)
    with pytest.warns(match="older copy|is a backup"):
        copy = settings.open(False)
    with copy:
        with pytest.raises(OlderCopy):
            worker.reopen(copy)
        assert {house.follow(id_)["state"] for id_ in asked} == {"done"}
        copy.declare_gone("the disk is broken")
        for _ in range(2):  # as every start does
            worker.reopen(copy)
            while worker.turn(copy):
                pass
        assert copy.status().records == 80 - 4
        assert not copy.find(id=free[4]).forgotten
        assert all(copy.find(id=id_).forgotten for id_ in free[:4])
    found = [house.follow(id_) for id_ in asked]
    assert [each["receipt"] for each in found] == [1, 2, 4, 5, None]
    assert [each["state"] for each in found] == ["done"] * 4 + ["failed"]
    assert (found[4]["code"], found[2]["fetched"], found[1]["delivered"] is None) == ("names-destroyed", None, False)
    assert states(house, asked[2])[-3:] == ["planned", "executing", "done"]
    assert house.call("GET", f"/v1/requests/{asked[0]}/receipt").content == kept


def test_keys_that_are_gone_are_not_made_anew_beside_their_requests(house, settings):
    house.submit(ids=house.ids("free")[:1])
    house.service.close()
    keys = settings.folder / "request-keys.bin"
    keys.rename(keys.with_name("away"))
    for _ in range(2):
        with pytest.raises(DatabaseGone):
            Service.of(settings)
    shutil.copy(keys, keys.with_name("new"))
    keys.with_name("away").replace(keys)
    again = Service.of(settings)
    assert again.requests.body(again.requests.find(again.requests.listed()[0].id))
    again.close()
    keys.with_name("new").replace(keys)
    os.truncate(keys, 64)  # as docs/operate.md says, where there is no copy
    without = Service.of(settings)
    with pytest.raises(NamesDestroyed):
        without.requests.body(without.requests.listed()[0])
    without.close()
