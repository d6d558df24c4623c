"""Fides: its connector as the docs have it, played by a fake of Fides on loopback."""

import json
import re
from pathlib import Path

import pytest
import yaml

from maxrr.service.fides import REPLY_TO

DOCS = Path(__file__).parents[2] / "docs" / "specifications"
EMAIL, TOKEN = "fifty@people.example", "eyJhbGciOiJkaXIi.forged-or-not.token"


@pytest.fixture
def house(start, receiver):
    return start({"fides": {"host": receiver.host}})


def connector():
    (text,) = re.findall(r"```yaml\n(saas_config:.*?)```", (DOCS / "protocols.md").read_text(), re.DOTALL)
    return yaml.safe_load(text)["saas_config"]


def filled(text, values):
    """Put values for placeholders, as Fides does."""
    return re.sub("<([^<>]+)>", lambda found: str(values[found[1]]), text)


def ask(house, email=EMAIL, token=TOKEN, role="requester", reply_to=REPLY_TO):
    """Send what Fides would send by the connector."""
    config = connector()
    (endpoint,) = config["endpoints"]
    request = endpoint["requests"]["delete"]
    assert request["async_config"] == {"strategy": "callback"}
    assert config["client_config"]["authentication"]["strategy"] == "bearer"
    values = {"reply_to": reply_to, "reply_to_token": token}
    values |= {each["name"]: email for each in request["param_values"] if each["identity"] == "email"}
    headers = {each["name"]: filled(each["value"], values) for each in request["headers"]}
    headers["Content-Type"] = "application/json"
    content = filled(request["body"], values)
    return house.call(request["method"], request["path"], role, content=content, headers=headers)


def decide(house, policy):
    for each in house.call("GET", "/v1/requests?state=waiting").json()["requests"]:
        house.call("POST", f"/v1/requests/{each['id']}/approve", json={"policy": policy})


def test_the_connector_has_the_form_that_fides_reads():
    config = connector()
    assert {"fides_key", "name", "type", "description", "version", "connector_params", "client_config", "endpoints",
            "test_request"} == {*config}  # fmt: skip
    (text,) = re.findall(r"```yaml\n(dataset:.*?)```", (DOCS / "protocols.md").read_text(), re.DOTALL)
    (dataset,) = yaml.safe_load(text)["dataset"]
    assert dataset["fides_key"] == config["fides_key"] == "<instance_fides_key>"  # or Fides refuses the template
    assert [each["name"] for each in dataset["collections"]] == [each["name"] for each in config["endpoints"]]
    names = {each["name"] for each in config["connector_params"]}
    assert set(re.findall("<([^<>]+)>", json.dumps(config["client_config"]))) == names


def test_the_test_request_needs_a_token(house):
    request = connector()["test_request"]
    assert house.call(request["method"], request["path"], "requester").json() == {"status": "connected"}
    for role in ("auditor", "predictor"):
        assert house.call(request["method"], request["path"], role).status_code == 403
    assert house.call(request["method"], request["path"], None).status_code == 401


def test_an_erasure_is_told_to_fides_when_it_is_done_and_not_before(house, receiver):
    answer = ask(house)
    assert answer.status_code == 202
    house.tell()
    assert receiver.calls == []
    decide(house, "retrain")
    house.work()
    house.tell()
    ((path, headers, body),) = receiver.calls
    assert (path, headers["Authorization"]) == (REPLY_TO, f"Bearer {TOKEN}")
    assert json.loads(body) == {"rows_masked": 4}
    assert house.follow(answer.json()["id"])["guarantee"] == "exact-retrain"


def test_who_is_not_known_is_complete_without_rows(house, receiver):
    ask(house, "nobody@people.example")
    house.work()
    house.tell()
    assert receiver.said == [{"rows_masked": 0}]


def test_an_approximate_answer_and_a_refusal_are_never_told_as_complete(house, receiver):
    ask(house)
    decide(house, "keep-extractor")
    house.work()
    ask(house, "other", token="another")
    (waits,) = house.call("GET", "/v1/requests?state=waiting").json()["requests"]
    house.call("POST", f"/v1/requests/{waits['id']}/refuse", json={})
    ask(house, token="a-third")  # again: forgotten already, and still approximately
    house.work()
    house.tell()
    assert receiver.calls == []
    assert house.callbacks.failures() == []


def test_a_call_that_comes_twice_is_one_request(house, receiver):
    first, again, other = ask(house), ask(house), ask(house, token="of-another-task")
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    assert ask(house, "other").status_code == 422  # the token of a task with another person
    decide(house, "retrain")
    house.work()
    house.tell()
    assert sorted(headers["Authorization"] for _, headers, _ in receiver.calls) == [
        f"Bearer {TOKEN}", "Bearer of-another-task",
    ]  # fmt: skip
    assert sorted(each["rows_masked"] for each in receiver.said) == [0, 4]


def test_a_forged_reply_to_is_refused(house, receiver):
    for forged in ("https://evil.example/", "//evil.example/x", "/api/v1/user", f"{REPLY_TO}/../../user", "@evil"):
        assert ask(house, reply_to=forged).status_code == 422
    assert house.call("POST", "/fides/erasures", json={"type": "email", "value": EMAIL}).status_code == 422
    assert receiver.calls == []


def test_a_token_lies_in_the_database_under_the_key_of_the_request_alone(house):
    ask(house)
    folder = house.service.settings.folder
    for each in folder.glob("requests.sqlite*"):
        content = each.read_bytes()
        assert TOKEN.encode() not in content
        assert b"fifty@" not in content


def test_a_body_that_says_more_or_is_too_large_is_refused(house):
    for email in ('x", "ids": [1], "y": "', "x" * 501, ""):
        assert ask(house, email).status_code == 422
    assert ask(house, "x" * (1 << 21)).status_code == 413
