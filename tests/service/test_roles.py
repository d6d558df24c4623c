"""Every route in every role: what each may do, and that nobody does anything without a token."""

import pytest

from maxrr.service.routes import router
from maxrr.service.tokens import AUDITOR, OPERATOR, PREDICTOR, REQUESTER, ROLES

ALL = {*ROLES}
ASK, READ, WATCH = {REQUESTER, OPERATOR}, {REQUESTER, OPERATOR, AUDITOR}, {OPERATOR, AUDITOR}
MAY = {
    ("POST", "/v1/requests"): ASK,
    ("POST", "/v1/additions"): {OPERATOR},
    ("POST", "/v1/corrections"): {OPERATOR},
    ("GET", "/v1/requests"): READ,
    ("GET", "/v1/requests/{id}"): READ,
    ("GET", "/v1/requests/{id}/plan"): ASK,
    ("POST", "/v1/requests/{id}/approve"): {OPERATOR},
    ("POST", "/v1/requests/{id}/refuse"): {OPERATOR},
    ("POST", "/v1/requests/{id}/retry"): {OPERATOR},
    ("POST", "/v1/requests/{id}/cancel"): ASK,
    ("GET", "/v1/requests/{id}/receipt"): READ,
    ("GET", "/v1/requests/{id}/page"): ASK,
    ("POST", "/v1/requests/{id}/delivered"): ASK,
    ("POST", "/v1/requests/{id}/jobs"): {OPERATOR},
    ("GET", "/v1/requests/{id}/jobs"): READ,
    ("POST", "/v1/predictions"): {PREDICTOR, OPERATOR},
    ("GET", "/v1/model"): {OPERATOR, AUDITOR, PREDICTOR},
    ("GET", "/v1/model/versions"): WATCH,
    ("GET", "/v1/status"): WATCH,
    ("GET", "/v1/callbacks"): WATCH,
    ("GET", "/metrics"): WATCH,
    ("GET", "/openapi.json"): ALL,
}
OPEN = {("GET", "/health"), ("GET", "/ready")}
BODIES = {
    "jobs": {"kind": "replay"},
    "approve": {"policy": "retrain"},
    "predictions": {"records": [[0.0] * 5]},
    "requests": {"subject": 99999},
}


def test_every_route_is_in_the_table(house):
    routes = {(method, route.path) for route in router.routes for method in route.methods - {"HEAD"}}
    assert routes == {*MAY, *OPEN, ("GET", "/key.pub")}


@pytest.fixture
def asked(house):
    """A request of the requester for a core record, which waits."""
    return house.submit(ids=house.ids("core")[:1])["id"]


def call(house, method, path, role, id_):
    options = {} if method == "GET" else {"json": BODIES.get(path.rpartition("/")[2], {})}
    return house.call(method, path.replace("{id}", id_), role, **options)


@pytest.mark.parametrize("role", [*ROLES, None])
def test_what_each_role_may_do(house, asked, role):
    for (method, path), may in MAY.items():
        answer = call(house, method, path, role, asked)
        if role is None:
            assert (answer.status_code, answer.json()["code"]) == (401, "no-token"), path
            assert answer.headers["www-authenticate"] == "Bearer"
        elif role in may:
            assert answer.status_code < 500, path
            assert answer.status_code not in (401, 403), path
        else:
            assert (answer.status_code, answer.json()["code"]) == (403, "not-allowed"), path
    for method, path in OPEN:
        assert set(call(house, method, path, role, asked).json()) == {"status"}


@pytest.mark.parametrize("path", [path for method, path in MAY if "{id}" in path])
def test_a_requester_sees_no_request_of_others(house, path):
    theirs = house.submit("operator", ids=house.ids("core")[:1])["id"]
    method = next(method for method, known in MAY if known == path)
    answer = call(house, method, path, REQUESTER, theirs)
    assert (answer.status_code, answer.json()["code"]) in ((404, "unknown-request"), (403, "not-allowed"))
    assert house.call("GET", "/v1/requests", REQUESTER).json()["requests"] == []


def test_an_auditor_changes_nothing(house, asked):
    before = house.follow(asked)
    for (method, path), may in MAY.items():
        if method == "POST":
            assert AUDITOR not in may, path
        else:
            call(house, method, path, AUDITOR, asked)
    assert house.follow(asked) == before


@pytest.mark.parametrize("token", ["", "x", "maxrr_" + "A" * 43, "Bearer", "a" * 9000])
def test_a_token_that_is_not_known_is_no_token(house, token):
    answer = house.client.get("/v1/requests", headers={"Authorization": f"Bearer {token}"})
    assert answer.json()["code"] == "no-token"


def test_a_revoked_token_is_not_taken_any_more(house, monkeypatch):
    monkeypatch.setattr("maxrr.service.tokens.REMEMBERED", -1.0)
    assert house.call("GET", "/v1/requests").status_code == 200
    house.service.tokens.revoke(house.tokens["operator"])
    assert house.call("GET", "/v1/requests").json()["code"] == "no-token"
