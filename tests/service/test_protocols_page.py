"""What the page on protocols says is so: its file is read, its request is taken, and its table has what is told."""

import json
import re
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from maxrr.service import callbacks, webhooks
from maxrr.service.fides import message
from maxrr.service.opendsr import OpenDSR
from maxrr.service.protocols import Protocols
from maxrr.service.sealing import seal
from maxrr.service.states import ENDED, STATES
from tests.service.receivers import DOMAIN, certificate

PAGE = (Path(__file__).parents[2] / "docs" / "specifications" / "protocols.md").read_text(encoding="utf-8")
DATA_RIGHTS = {"open", "in_progress", "fulfilled", "revoked", "denied"}  # of Data Rights Protocol 1.0, 3.02
EXACT, ROUGH = "exact-refit", "approximate-refit"
ENDS = {"exactly": ("done", EXACT), "nothing here": ("nothing-here", None), f"`{ROUGH}`": ("done", ROUGH)}


def block(language):
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return text


@pytest.fixture
def said(tmp_path):
    """The file of the page, with files that are there."""
    certificate(tmp_path / "opendsr.pem")
    return Protocols.model_validate(tomllib.loads(block("toml").replace("/etc/maxrr", str(tmp_path))))


def test_the_request_of_the_page_is_taken(start, said):
    house = start(said.model_dump(include={"opendsr"}))
    house.tokens["requester"] = house.service.tokens.make(*said.opendsr.callbacks, "requester")
    answer = house.call("POST", "/opendsr/requests", "requester", json=json.loads(block("json")))
    assert answer.status_code == 201
    assert answer.headers["x-opendsr-processor-domain"] == DOMAIN == said.opendsr.url.split("/")[2]


def test_the_table_has_what_is_told(start, said, receiver):
    house = start({"fides": {"host": receiver.host}})
    asked = house.submit(ids=house.ids("free")[:1])
    request = house.service.requests.find(asked["id"])
    sealed = seal(house.service.requests.keys.find(request.serial), request.id, b"token")
    rows = re.findall(r"^\| ([a-z]+)(?:, (.*?))? \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    seen = []
    for state, end, by_opendsr, by_fides, by_webhook, by_data_rights in rows:
        if state == "state":
            continue
        outcome, guarantee = ENDS.get(end, (None, None))
        now = replace(request, state=state, outcome=outcome, guarantee=guarantee, ended="x" if state in ENDED else None)
        step = callbacks.Step(now, 1, 0, "", "https://x/y", sealed, 1, state, "", "executing")
        answer = OpenDSR(said.opendsr).status(now, state)
        assert by_opendsr == f"`{answer['request_status']}`"
        assert by_fides == ("waits" if message(house.service.requests.keys, step) is None else "complete")
        event = json.loads(webhooks.message({"https://x/y": b"k"}, step).body)
        assert f"maxrr.request.{by_webhook.strip('`')}" == event["type"]
        assert re.findall(r"`(\w+)`", by_data_rights)[0] in DATA_RIGHTS
        seen.append((state, end))
    assert {state for state, _ in seen} == {*STATES}
    assert {end for state, end in seen if state == "done"} == {*ENDS}


def test_the_numbers_of_the_page_are_those_of_the_code():
    assert (callbacks.FIRST, callbacks.LAST) == (5.0, 6 * 3600)
    assert "after 5, 10, 20, … seconds, at most six hours, for more than three days" in " ".join(PAGE.split())
