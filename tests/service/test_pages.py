"""The pages: who sees which, what a forged form or session gets, and that nothing that somebody wrote is markup."""

import re
import time
from dataclasses import replace
from datetime import timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update

from maxrr.errors import NotAKey
from maxrr.evidence import PublicKey
from maxrr.evidence.log import CHECKPOINT, LOG
from maxrr.service import app, pages, sessions, tables
from maxrr.service.pages import POLICY, router
from maxrr.service.requests import Asked, today
from maxrr.service.states import ADD
from maxrr.service.tokens import AUDITOR, OPERATOR, PREDICTOR, REQUESTER, ROLES
from maxrr.service.verifying import keys_in
from maxrr.unlearning.statements import answer_in
from tests.service.conftest import KEY, House
from tests.service.test_changes import ADDED, correction
from tests.service.test_jobs import approximate, done, write
from tests.workspace.problems import table

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7919 * 7907 }}"


class Visitor:
    """Somebody with a browser of their own."""

    def __init__(self, house, role=None, scheme="http"):
        self.house = house
        self.client = TestClient(house.client.app, f"{scheme}://testserver", client=("127.0.0.1", 1))
        self.client.follow_redirects = False
        self.client.portal = house.client.portal  # else each call starts a thread and an event loop of its own
        if role is not None:
            self.signed = self.sign_in(house.tokens[role])

    def get(self, path, **options):
        return self.client.get(path, **options)

    def post(self, path, **fields):
        """Send the form, with the token that this session's forms carry, if no other is given."""
        return self.client.post(path, data={"form": sessions.form_token(self.cookie), **fields})

    def sign_in(self, token, back="/"):
        self.get("/sign-in")
        return self.post("/sign-in", token=token, back=back)

    @property
    def cookie(self):
        return next(iter(self.client.cookies.values()), "")


@pytest.fixture
def visit(house):
    return lambda role=None, **options: Visitor(house, role, **options)


@pytest.fixture
def waiting(house):
    """A request of the requester for a core record, which waits."""
    return house.submit(ids=house.ids("core")[:1])["id"]


READ, ASK, WATCH = {REQUESTER, OPERATOR, AUDITOR}, {REQUESTER, OPERATOR}, {OPERATOR, AUDITOR}
MAY = {
    ("GET", "/"): READ,
    ("GET", "/requests"): READ,
    ("POST", "/requests"): READ,
    ("GET", "/requests/{id}"): READ,
    ("GET", "/requests/{id}/receipt"): READ,
    ("GET", "/requests/{id}/page"): ASK,
    ("GET", "/requests/{id}/letter"): ASK,
    ("GET", "/requests/{id}/approve"): {OPERATOR},
    ("GET", "/requests/{id}/refuse"): {OPERATOR},
    ("GET", "/requests/{id}/retry"): {OPERATOR},
    ("GET", "/requests/{id}/cancel"): ASK,
    ("GET", "/requests/{id}/delivered"): ASK,
    ("GET", "/requests/{id}/audit"): {OPERATOR},
    ("GET", "/requests/{id}/replay"): {OPERATOR},
    ("POST", "/requests/{id}/audit"): {OPERATOR},
    ("POST", "/requests/{id}/replay"): {OPERATOR},
    ("POST", "/requests/{id}/approve"): {OPERATOR},
    ("POST", "/requests/{id}/refuse"): {OPERATOR},
    ("POST", "/requests/{id}/retry"): {OPERATOR},
    ("POST", "/requests/{id}/cancel"): ASK,
    ("POST", "/requests/{id}/delivered"): ASK,
    ("GET", "/ask"): ASK,
    ("POST", "/ask"): ASK,
    ("GET", "/add"): {OPERATOR},
    ("POST", "/add"): {OPERATOR},
    ("GET", "/correct"): {OPERATOR},
    ("POST", "/correct"): {OPERATOR},
    ("GET", "/model"): WATCH,
    ("GET", "/verify"): WATCH,
    ("POST", "/verify"): WATCH,
}
EVERYBODY = {("GET", "/static/pages.css"), ("GET", "/sign-in"), ("POST", "/sign-in"), ("POST", "/sign-out")}


def test_every_page_is_in_the_table():
    routes = {(method, route.path) for route in router.routes for method in route.methods}
    general = {
        re.sub("(?<=})/(approve|refuse|retry|cancel|delivered|audit|replay)$", "/{step}", path) for _, path in MAY
    }
    assert {path for _, path in routes} == general | {path for _, path in EVERYBODY}
    assert {(method, path) for method, path in routes if "{step}" not in path} <= {*MAY, *EVERYBODY}


@pytest.mark.parametrize("role", ROLES)
def test_what_each_role_may_see_and_do(house, visit, waiting, role):
    visitor = visit(role)
    for (method, path), may in MAY.items():
        send = visitor.get if method == "GET" else visitor.post
        answer = send(path.replace("{id}", waiting))
        assert answer.headers["content-security-policy"] == POLICY, path
        if role == PREDICTOR:
            assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in"), path
        elif role in may:
            assert answer.status_code in (200, 303, 409, 422), (path, answer.text)
        else:
            assert answer.status_code == 403, path


def test_without_a_session_every_page_leads_to_the_door(visit, waiting):
    for method, path in MAY:
        answer = visit().client.request(method, path.replace("{id}", waiting))
        assert (answer.status_code, answer.headers["location"].partition("?")[0]) == (303, "/sign-in"), path
        assert answer.headers["content-security-policy"] == POLICY


def test_a_requester_sees_no_request_of_others(house, visit):
    theirs = house.submit("operator", ids=house.ids("core")[:1])["id"]
    requester = visit(REQUESTER)
    for (method, path), may in MAY.items():
        if "{id}" in path and REQUESTER in may:
            send = requester.get if method == "GET" else requester.post
            assert send(path.replace("{id}", theirs)).status_code == 404, path
    for path in ("/", "/requests", "/requests?which=all", "/requests?which=waiting"):
        assert theirs[:8] not in requester.get(path).text
    for text in (theirs, theirs[:8], house.ids("core")[0]):
        assert 'data-found="0"' in requester.post("/requests", find=text).text
    assert theirs[:8] in visit(OPERATOR).get("/requests").text


def test_names_are_shown_to_who_asked_and_to_operators_alone(house, visit):
    asked = house.submit(subject="somebody-quite-special")["id"]
    for role in (REQUESTER, OPERATOR, AUDITOR):
        assert ("somebody-quite-special" in visit(role).get(f"/requests/{asked}").text) == (role != AUDITOR)


# Sessions


def test_the_door(house, visit):
    visitor = visit()
    door = visitor.get("/sign-in")
    assert (door.status_code, door.headers["content-security-policy"]) == (200, POLICY)
    before = visitor.cookie
    for token in ("", "x", "maxrr_" + "A" * 43):
        assert visitor.sign_in(token).status_code == 401
    assert visitor.get("/").status_code == 303
    answer = visitor.sign_in(house.tokens[OPERATOR], back="/model")
    assert (answer.status_code, answer.headers["location"]) == (303, "/model")
    said = answer.headers["set-cookie"].lower()
    assert "httponly" in said
    assert "samesite=strict" in said
    assert "secure" not in said
    assert visitor.cookie != before  # or somebody could have chosen it
    assert visitor.get("/").status_code == 200


def test_over_tls_the_cookie_is_for_this_host_and_for_tls_alone(house, visit):
    said = visit(OPERATOR, scheme="https").signed.headers["set-cookie"]
    assert said.startswith("__Host-maxrr=")
    assert "; secure" in said.lower()
    assert "domain" not in said.lower()


def test_a_sign_in_leads_nowhere_else(house, visit):
    for back in (
        "//evil.example",
        "https://evil.example",
        "/\\evil.example",
        "/requests\n",
        "javascript:x",
        "/sign-out",
    ):
        assert visit().sign_in(house.tokens[OPERATOR], back).headers["location"] == "/"


def test_a_predictor_opens_nothing(house, visit):
    answer = visit().sign_in(house.tokens[PREDICTOR])
    assert answer.status_code == 403


def test_a_session_ends_when_somebody_signs_out(visit):
    visitor = visit(OPERATOR)
    cookie = dict(visitor.client.cookies)
    assert visitor.post("/sign-out").status_code == 303
    visitor.client.cookies.update(cookie)
    assert visitor.get("/").status_code == 303


def test_a_session_ends_with_its_token(house, visit):
    visitor = visit(OPERATOR)
    house.service.tokens.revoke(house.tokens[OPERATOR])
    assert visitor.get("/").status_code == 303
    assert visitor.post("/ask", subject="1").status_code == 303
    assert visitor.sign_in(house.tokens[OPERATOR]).status_code in (303, 401)


def test_a_session_ends_by_itself_and_goes_on_while_it_is_used(house, visit, monkeypatch):
    visitor, start = visit(OPERATOR), time.time()

    def at(seconds):
        monkeypatch.setattr(sessions.time, "time", lambda: start + seconds)
        return visitor.get("/").status_code

    assert at(sessions.IDLE - 5) == 200
    assert at(2 * sessions.IDLE - 10) == 200
    assert at(4 * sessions.IDLE) == 303
    visitor.sign_in(house.tokens[OPERATOR])
    begun, later = 4 * sessions.IDLE, 0.0
    while later < sessions.LONGEST:  # used all day long, it ends all the same
        assert at(begun + later) == 200
        later += 0.9 * sessions.IDLE
    assert at(begun + later) == 303


def test_a_forged_cookie_is_no_session(visit):
    visitor = visit()
    for cookie in ("", "x", "A" * 43, "' OR 1=1 --", "%00", sessions.hash_of(visit(OPERATOR).cookie)):
        visitor.client.cookies.set("maxrr", cookie)
        assert visitor.get("/").status_code == 303


def test_the_database_has_no_cookie(house, visit):
    visitor = visit(OPERATOR)
    visitor.get("/")
    content = b"".join(path.read_bytes() for path in house.service.settings.folder.glob("requests.sqlite*"))
    assert visitor.cookie.encode() not in content
    assert house.tokens[OPERATOR].encode() not in content
    assert sessions.hash_of(visitor.cookie).encode() in content


# Forms of others


@pytest.mark.parametrize("token", [None, "", "x", "é", "of another session"])
def test_a_form_of_another_site_is_refused(house, visit, waiting, token):
    visitor = visit(OPERATOR)
    token = sessions.form_token(visit(REQUESTER).cookie) if token == "of another session" else token
    fields = {"policy": "retrain", "subject": "1"} | ({} if token is None else {"form": token})
    before = house.call("GET", "/v1/requests").json()
    for path in ("/ask", "/verify", "/sign-out", f"/requests/{waiting}/approve", f"/requests/{waiting}/cancel"):
        answer = visitor.client.post(path, data=fields)
        assert answer.status_code == 403, path
        assert answer.headers["content-security-policy"] == POLICY
    assert house.call("GET", "/v1/requests").json() == before
    assert visitor.get("/").status_code == 200


def test_a_sign_in_by_another_site_is_refused(house, visit):
    visitor = visit()
    for cookie in ("", "x"):
        visitor.client.cookies.set("maxrr", cookie)
        answer = visitor.client.post("/sign-in", data={"token": house.tokens[OPERATOR], "form": "y"})
        assert answer.status_code == 403


def test_what_no_form_sends_is_refused(visit):
    operator, many = visit(OPERATOR), b"&".join(b"a%d=1" % each for each in range(50))
    for content, kind in (
        (b'{"subject": "1"}', "application/json"), (b"subject=1", "text/plain"), (b"\xff", pages.FORM),
        (many, pages.FORM), (b"subject=1", ""),
    ):  # fmt: skip
        answer = operator.client.post("/ask", content=content, headers={"Content-Type": kind})
        assert answer.status_code in (403, 422)
        assert answer.headers["content-type"].startswith("text/html")


def test_a_form_that_is_too_large_is_refused(visit):
    assert visit(OPERATOR).post("/ask", ids="1," * 600_000).status_code == 413


# What somebody wrote is text


def test_nothing_that_somebody_wrote_is_markup(house, visit):
    house.tokens["evil"] = house.service.tokens.make("<b>evil</b>", OPERATOR)
    house.tokens["evil requester"] = house.service.tokens.make("<i>evil</i>", REQUESTER)
    wrong = visit("evil requester").post("/ask", ids=HOSTILE).text
    by_subject = visit("evil requester").post("/ask", subject=HOSTILE, sure="yes").headers["location"]
    by_ids = f"/requests/{house.submit('evil requester', ids=[HOSTILE])['id']}"
    core = house.submit("evil requester", ids=house.ids("core")[:1], regulation="gdpr")["id"]
    operator = visit("evil")
    assert operator.post(f"/requests/{core}/refuse", reason=HOSTILE).status_code == 303
    shown = [wrong, *(operator.get(path).text for path in (by_subject, by_ids))]
    shown += [operator.get(path).text for path in (f"/requests/{core}", "/requests?which=all", "/")]
    shown.append(operator.post("/ask", subject=HOSTILE, ids=HOSTILE, due=HOSTILE, regulation=HOSTILE, key=HOSTILE).text)
    shown.append(operator.post("/verify", keys=HOSTILE, kept=HOSTILE).text)
    shown.append(operator.post("/verify", keys=KEY.public.pem.decode(), kept=HOSTILE).text)
    shown += [operator.get("/requests", params={"which": HOSTILE}).text, operator.get(f"/requests/{HOSTILE}").text]
    shown += [operator.get("/sign-in", params={"back": HOSTILE}).text]
    for text in shown:
        assert not re.search("<script|<img|<b>|<i>| onerror=[^&]*>|style=", text), text
        assert "62615533" not in text
    assert sum("&lt;script&gt;" in text for text in shown) >= 7


def test_characters_that_turn_the_direction_of_writing_are_written_out(house, visit):
    asked = house.submit(subject="abc\u202edef")["id"]
    text = visit(OPERATOR).get(f"/requests/{asked}").text
    assert "\u202e" not in text
    assert "abc\\u202edef" in text


@pytest.mark.parametrize("role", [REQUESTER, OPERATOR, AUDITOR])
def test_no_page_has_a_script_or_a_style_of_its_own(house, visit, waiting, role):
    visitor = visit(role)
    house.submit(ids=house.ids("free")[:1])
    house.work()
    house.service.current.refresh()
    done = house.call("GET", "/v1/requests?state=done").json()["requests"][0]["id"]
    for path in (
        "/",
        "/requests",
        f"/requests/{waiting}",
        f"/requests/{done}",
        "/ask",
        "/model",
        "/verify",
        "/sign-in",
    ):
        answer = visitor.get(path)
        text = answer.text
        assert answer.status_code == (200 if role in MAY.get(("GET", path), READ) else 403), path
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=|https?://", text), path
        assert text.count("<form") - text.count('method="get"') == text.count('name="form"'), path


# The work


def test_a_request_from_its_form_to_its_delivery(house, visit):
    requester, (id_, *_) = visit(REQUESTER), house.ids("free")
    answer = requester.post("/ask", ids=f" {id_} \r\n", regulation="ccpa", key="k")
    assert (
        requester.post("/ask", ids=f"{id_}", regulation="ccpa", key="k").headers["location"]
        == answer.headers["location"]
    )
    where = answer.headers["location"]
    assert str(id_) in requester.get(where).text
    assert house.follow(where.rpartition("/")[2])["days_left"] == 45
    house.work()
    house.service.current.refresh()
    done = requester.get(where).text
    assert 'data-guarantee="exact-untouched"' in done
    assert where in requester.get("/").text.partition('id="handing"')[2]
    for path, kind in ((f"{where}/letter", "inline"), (f"{where}/letter?file=1", "attachment")):
        letter = requester.get(path)
        assert ('data-said="exact-untouched"' in letter.text, f"<code>{id_}</code>" in letter.text) == (True, True)
        assert letter.headers.get("content-disposition", "inline").partition(";")[0] == kind
        assert ("<style>" in letter.text) == (kind == "attachment")  # a file needs no other
    handed = requester.get(f"{where}/receipt")
    assert handed.json()["signatures"]
    assert "attachment" in handed.headers["content-disposition"]
    assert 'id="dossier"' in requester.get(f"{where}/page").text
    assert requester.get(f"{where}/delivered").status_code == 200
    assert requester.post(f"{where}/delivered").status_code == 303
    after = requester.get(where).text
    assert str(id_) not in after
    assert "data-delivered" in after
    assert 'id="handing"' not in requester.get("/").text
    assert (requester.get(f"{where}/page").status_code, requester.get(f"{where}/letter").status_code) == (410, 410)
    assert requester.post(f"{where}/delivered").status_code == 409


def test_a_decision_shows_each_policy_with_its_guarantee_and_seconds(house, visit, waiting):
    operator = visit(OPERATOR)
    text = operator.get(f"/requests/{waiting}").text
    ways = re.findall(r'data-policy="([a-z-]+)" data-guarantee="([a-z-]+)"', text)
    assert ways == [("retrain", "exact-retrain"), ("keep-extractor", "approximate-refit")]
    assert len(re.findall(r'data-seconds="[\d.e-]+"', text)) == 2
    assert 'value="retrain"' in text
    assert 'value="retrain"' not in visit(REQUESTER).get(f"/requests/{waiting}").text
    assert operator.post(f"/requests/{waiting}/approve").status_code == 422
    assert operator.post(f"/requests/{waiting}/approve", policy="retrain", reason="x" * 401).status_code == 422
    assert operator.post(f"/requests/{waiting}/approve", policy="retrain", reason="by law").status_code == 303
    assert operator.post(f"/requests/{waiting}/approve", policy="keep-extractor").status_code == 409
    assert "by law" in operator.get(f"/requests/{waiting}").text
    house.work()
    assert house.follow(waiting)["guarantee"] == "exact-retrain"


def test_a_step_is_possible_in_its_states_alone(house, visit):
    operator, (id_, *_) = visit(OPERATOR), house.ids("free")
    asked = house.submit(ids=[id_])["id"]
    house.service.requests.move([house.service.requests.find(asked).serial], "executing", "a worker")
    for step in ("approve", "refuse", "retry", "cancel", "delivered"):
        assert operator.post(f"/requests/{asked}/{step}", policy="retrain").status_code == 409, step
        assert operator.get(f"/requests/{asked}/{step}").status_code == 409, step
    assert operator.get(f"/requests/{asked}/other").status_code == 404


def test_a_failed_request_says_why_and_is_tried_again(house, visit):
    asked, operator = house.submit(ids=house.ids("free")[:1])["id"], visit(OPERATOR)
    table = tables.requests
    with house.service.requests.database.write() as connection:
        connection.execute(update(table).where(table.c.id == asked).values(state="failed", code="records-missing"))
    text = operator.get(f"/requests/{asked}").text
    assert ">records-missing<" in text
    assert asked in operator.get("/").text
    assert operator.post(f"/requests/{asked}/retry").status_code == 303
    assert house.follow(asked)["state"] == "planned"


@pytest.mark.parametrize("outcome", ["nothing", "unknown"])
def test_other_answers_are_explained(house, visit, outcome):
    named = {"subject": 99999} if outcome == "nothing" else {"ids": [house.ids("free")[0], 12]}
    asked = house.submit(**named)["id"]
    house.work()
    text = visit(REQUESTER).get(f"/requests/{asked}").text
    assert (">unknown-id<" in text, f"/requests/{asked}/receipt" in text) == (
        outcome == "unknown",
        outcome == "nothing",
    )
    assert visit(AUDITOR).get(f"/requests/{asked}/receipt").status_code == 409
    if outcome == "nothing":  # there is no receipt that could stay
        assert 'data-stays=""' in visit(OPERATOR).get(f"/requests/{asked}/delivered").text
    letter = visit(REQUESTER).get(f"/requests/{asked}/letter")
    assert re.findall('data-said="([a-z-]+)"', letter.text) == ["nothing" if outcome == "nothing" else "refused"]
    assert ("99999" in letter.text) == (outcome == "nothing")


def answered(house, **named):
    """Ask for something, let it be carried out, and return the path of its page."""
    asked = house.submit(**named)["id"]
    house.work()
    house.service.current.refresh()
    return f"/requests/{asked}"


def test_what_was_forgotten_before_is_said_with_its_receipt_and_its_proof(house, visit):
    operator, (free, other, *_), (shaping, *_) = visit(OPERATOR), house.ids("free"), house.ids("influential")
    answered(house, ids=[free])
    answered(house, ids=[shaping])
    for ids, said, receipts in (
        ([free], "before", "1"), ([shaping], "before", "2"), ([free, shaping], "before", "2 1"),
        ([shaping, other], "exact-untouched", "2"),
    ):  # fmt: skip
        where = answered(house, ids=ids)
        assert f'data-earlier="{receipts}"' in operator.get(where).text
        letter = operator.get(f"{where}/letter").text
        assert re.findall('data-(said|earlier)="([a-z0-9 -]+)"', letter) == [("said", said), ("earlier", receipts)]
        proof = operator.get(f"{where}/page")
        assert ("data-proof" in letter, proof.status_code) == (True, 200)
        dossier = house.call("GET", f"/v1{where}/page?form=json").json()
        named = {each["id"]["int"] for each in dossier["records"]}
        assert named == ({other} if other in ids else {ids[-1]})  # what the newest of these receipts has forgotten


def test_a_letter_says_that_traces_are_gone_once_the_model_was_trained_again(house, visit):
    operator, core = visit(OPERATOR), house.ids("core")
    where = []
    for id_, policy in ((core[0], "keep-extractor"), (core[1], "retrain")):
        asked = house.submit(ids=[id_])["id"]
        house.call("POST", f"/v1/requests/{asked}/approve", json={"policy": policy})
        house.work()
        house.service.current.refresh()
        where.append(f"/requests/{asked}")
        letter = operator.get(f"{where[0]}/letter").text
        said = {"keep-extractor": "", "retrain": "yes"}[policy]
        assert f'data-said="approximate-refit" data-cleared="{said}"' in letter
        assert ('data-due="audit"' in operator.get(where[0]).text) == (not said)
    assert 'data-said="exact-retrain" data-cleared=""' in operator.get(f"{where[1]}/letter").text
    other = house.submit(ids=house.ids("core")[:1])["id"]  # of which traces may remain, and not of the first one
    house.call("POST", f"/v1/requests/{other}/approve", json={"policy": "keep-extractor"})
    house.work()
    house.service.current.refresh()
    letters = [operator.get(f"{place}/letter").text for place in (where[0], f"/requests/{other}")]
    assert [re.findall('data-cleared="([a-z]*)"', letter) for letter in letters] == [["yes"], [""]]


def test_a_decision_that_another_request_has_taken_away_is_said_to_be_none(house, visit, waiting):
    operator, same = visit(OPERATOR), house.submit(ids=house.ids("core")[:1])["id"]
    assert 'data-still="yes"' in operator.get(f"/requests/{waiting}").text
    house.call("POST", f"/v1/requests/{same}/approve", json={"policy": "retrain"})
    house.work()
    house.service.current.refresh()
    assert 'data-still="no"' in operator.get(f"/requests/{waiting}").text
    assert 'data-still="yes"' in visit(AUDITOR).get(f"/requests/{waiting}").text  # who does not see which records


def test_a_letter_says_what_stays_although_it_is_the_same(house, visit):
    operator, (one, other, *_) = visit(OPERATOR), house.ids("free")
    values = table().inputs[table().ids.tolist().index(other)].tolist()
    house.call("POST", "/v1/corrections", json={"id": one, "record": values})
    house.work()
    for _ in range(2):  # and where it is asked for once more
        where = answered(house, ids=[one])
        letter = operator.get(f"{where}/letter").text
        assert re.findall('data-twins="([0-9]+)"', letter) == ["1"]
    first = house.call("GET", "/v1/requests").json()["requests"][1]["id"]
    assert 'data-twins="1"' in operator.get(f"/requests/{first}").text


def test_a_person_who_asks_again_gets_the_proof_of_the_first_receipt(house, visit):
    person, operator = int(table().subjects[0]), visit(OPERATOR)
    first = house.submit(subject=person)["id"]
    house.call("POST", f"/v1/requests/{first}/approve", json={"policy": "retrain"})
    house.work()
    house.service.current.refresh()
    where = answered(house, subject=person)
    assert 'data-said="before" data-earlier="1"' in operator.get(f"{where}/letter").text
    dossier = house.call("GET", f"/v1{where}/page?form=json").json()
    assert len(dossier["records"]) == (table().subjects == person).sum()


def test_a_letter_states_the_guarantee_of_the_records_of_its_own_person(house, visit):
    """And not that of those with which they were answered together."""
    operator = visit(OPERATOR)
    kinds = {"core": "exact-retrain", "influential": "exact-refit", "free": "exact-untouched"}
    asked = {kind: house.submit(ids=house.ids(kind)[:1])["id"] for kind in kinds}
    with house.service.settings.open(False) as workspace, workspace.batch(core_policy="retrain") as batch:  # and killed
        for kind, id_ in asked.items():
            batch.unlearn(house.ids(kind)[:1], ticket=id_)
    house.call("POST", f"/v1/requests/{asked['core']}/approve", json={"policy": "retrain"})
    house.work()
    house.service.current.refresh()
    for kind, guarantee in kinds.items():
        assert house.follow(asked[kind])["guarantee"] == "exact-retrain"
        assert f'data-said="{guarantee}"' in operator.get(f"/requests/{asked[kind]}/letter").text
        assert f'data-guarantee="{guarantee}"' in operator.get(f"/requests/{asked[kind]}").text
        assert 'data-group="3"' in operator.get(f"/requests/{asked[kind]}/page").text


def test_who_is_refused_gets_a_letter_with_the_reason(house, visit, waiting):
    operator = visit(OPERATOR)
    assert operator.get(f"/requests/{waiting}/letter").status_code == 409
    operator.post(f"/requests/{waiting}/refuse", reason="the books are kept until 2030")
    for _ in range(2):
        letter = operator.get(f"/requests/{waiting}/letter").text
        assert 'data-said="refused"' in letter
        assert "2030" in letter
        house.service.requests.forget(30)  # as a worker does every hour
    assert f"/requests/{waiting}/letter" in operator.get(f"/requests/{waiting}").text


def test_a_letter_has_its_sender_and_what_a_search_found(house, visit, monkeypatch):
    operator, where = visit(OPERATOR), f"/requests/{approximate(house)}/letter"
    letter = operator.get(where).text
    assert ("data-sender" in letter, "data-searched" in letter, "MAXRR_OPERATOR" in letter) == (False, False, True)
    monkeypatch.setenv("MAXRR_OPERATOR", "Example <b>Ltd</b>, +49 1")
    done(house, monkeypatch)
    letter = operator.get(where).text
    assert ("data-sender" in letter, "&lt;b&gt;Ltd" in letter) == (True, True)
    assert 'data-searched="indistinguishable"' in letter


def test_a_search_that_cannot_find_anything_is_not_offered_and_not_begun(house, visit):
    operator, free, influential = visit(OPERATOR), house.ids("free"), house.ids("influential")
    for ids, offered in (([free[0]], False), ([influential[0]], True), ([influential[0]], False)):  # asked once more
        where = answered(house, ids=ids)
        assert (f'href="{where}/audit"' in operator.get(where).text) == offered
        assert operator.get(f"{where}/audit").status_code == (200 if offered else 409)
    fixed = correction(house, "core")
    asked = house.call("POST", "/v1/corrections", json=fixed).json()["id"]
    house.call("POST", f"/v1/requests/{asked}/approve", json={"policy": "keep-extractor"})
    house.work()
    assert house.follow(asked)["guarantee"] == "approximate-refit"
    assert house.call("GET", f"/v1/requests/{asked}/jobs").json() == []


def test_who_opened_an_answer_and_who_handed_it_over_are_events(house, visit):
    where = answered(house, ids=house.ids("free")[:1])
    visit(OPERATOR).get(f"{where}/letter")  # who has not asked for it
    for _ in range(2):
        visit(REQUESTER).get(f"{where}/letter")
    visit(OPERATOR).post(f"{where}/delivered")
    later = answered(house, ids=house.ids("free")[:1])
    visit(REQUESTER).get(f"{later}/receipt")
    house.service.requests.forget(-1)
    for path, who in ((where, "operator"), (later, "service:names")):
        events = house.follow(path.rpartition("/")[2])["events"]
        assert [(each["state"], each["actor"]) for each in events[-2:]] == [
            ("fetched", "requester"), ("delivered", who),
        ]  # fmt: skip
        assert visit(AUDITOR).get(path).text.count('data-state="fetched"') == 1


def test_audits_and_replays_are_asked_for_and_told(house, visit, monkeypatch):
    operator, id_ = visit(OPERATOR), approximate(house)
    where = f"/requests/{id_}"
    text = operator.get(where).text
    assert 'data-due="audit"' in text
    assert f'href="{where}/audit"' not in text  # it is queued already
    assert operator.post(f"{where}/replay").status_code == 303
    write(house, 2, state="done", result="identical")
    done(house, monkeypatch)
    text = operator.get(where).text
    assert re.findall(r'data-job="(\w+)" data-state="(\w+)"', text) == [("audit", "done"), ("replay", "done")]
    assert 'data-due="audit"' not in text
    assert f'href="{where}/audit"' in text
    write(house, 1, state="failed", result="records-missing")
    assert 'data-job="audit" data-state="failed"' in operator.get(where).text
    assert f'href="{where}/audit"' not in visit(AUDITOR).get(where).text


def test_an_addition_that_names_no_person_has_a_page(house, visit):
    nobody = Asked({**ADDED, "subjects": None}, "none", today(), ADD)
    request, _ = house.service.requests.submit(nobody, OPERATOR)
    assert visit(OPERATOR).get(f"/requests/{request.id}").status_code == 200


@pytest.mark.parametrize("what", ["additions", "corrections"])
def test_changes_are_shown_in_words_of_their_own(house, visit, what):
    body = ADDED if what == "additions" else correction(house, "free")
    asked, operator = house.call("POST", f"/v1/{what}", json=body).json()["id"], visit(OPERATOR)
    ids = ["5", "6"] if what == "additions" else [str(body["id"])]
    before = operator.get(f"/requests/{asked}").text
    assert 'class="means" data-guarantee="exact' in before  # and not that it was forgotten before
    assert all(f">{id_}<" in before for id_ in ids)
    assert ">900<" not in before
    house.work()
    house.service.current.refresh()
    text = operator.get(f"/requests/{asked}").text
    assert 'data-guarantee="exact' in text
    assert f"/requests/{asked}/page" not in text
    assert ('data-conditions="1"' in text) == (what == "additions")
    letter = operator.get(f"/requests/{asked}/letter").status_code
    assert (letter, f"/requests/{asked}/letter" in text) == ((409, False) if what == "additions" else (200, True))
    assert asked in operator.get("/requests?which=handing").text
    for path in ("/", "/model"):
        assert operator.get(path).status_code == 200


def test_a_form_that_is_wrong_comes_back_with_what_was_said(house, visit):
    operator = visit(OPERATOR)
    for field, fields in (
        ("subject", {}), ("subject", {"subject": "1", "ids": "2"}), ("due", {"subject": "1", "due": "soon"}),
        ("due", {"subject": "1", "due": "0026-12-31"}), ("arrived", {"subject": "1", "arrived": "0026-11-10"}),
        ("regulation", {"subject": "1", "regulation": "A LAW"}), ("ids", {"ids": "1," * 10_001}),
        ("identity", {"identity": "a@b.c", "type": "email"}), ("subject", {"subject": "a" * 501}),
    ):  # fmt: skip
        answer = operator.post("/ask", **fields)
        assert (answer.status_code, f'data-field="{field}"' in answer.text) == (422, True)
        assert field == "identity" or answer.text.count(f'id="wrong-{field}"') == 1
        assert all(f'value="{fields[name]}"' in answer.text for name in ("subject", "due") if name in fields)
    assert house.call("GET", "/v1/requests").json()["requests"] == []


def test_ids_of_which_some_are_unknown_come_back_with_these(house, visit):
    operator, free = visit(OPERATOR), house.ids("free")[0]
    for ids, code, unknown in (
        (f"{free}\n12\n13", "unknown-id", "12, 13"), (f"{free}, abc", "no-number", "abc"),
        ("0040", "no-number", "0040"),
        (f"12, {free}, {free}", "unknown-id", "12"), (f"{free};12 13", "unknown-id", "12, 13"),
        ("1.5", "no-number", "1.5"), ("12\n13", "nothing-here", "12, 13"),
    ):  # fmt: skip
        answer = operator.post("/ask", ids=ids)
        assert re.findall(r'id="wrong-(\w+)" data-code="([\w-]+)"', answer.text) == [("ids", code)]
        assert re.findall("<code data-unknown>([0-9a-z., ]+)</code>", answer.text) == [unknown]
        assert answer.text.count('name="sure"') == (code == "nothing-here")
    assert house.call("GET", "/v1/requests").json()["requests"] == []
    assert operator.post("/ask", ids="1.5", sure="yes").status_code == 422
    for ids in ("12\n13", "12, 12"):
        assert operator.post("/ask", ids=ids, sure="yes").status_code == 303  # 'nothing here' is an answer


def test_a_person_of_whom_nothing_is_known_is_looked_at_once_more(house, visit):
    operator, person = visit(OPERATOR), int(table().subjects[0])
    for name in (f"{person}, 2", f"{person}\u200b", "99999"):
        answer = operator.post("/ask", subject=name, key="k")
        assert re.findall(r'id="wrong-(\w+)" data-code="([\w-]+)"', answer.text) == [("subject", "nothing-here")]
        assert 'name="key" value="k"' in answer.text
    assert operator.post("/ask", subject="99999", key="k", sure="yes").status_code == 303
    assert operator.post("/ask", subject=f"{person}").status_code == 303


def test_what_waits_already_is_not_asked_for_once_more(house, visit, waiting):
    requester, core = visit(REQUESTER), house.ids("core")
    answer = requester.post("/ask", ids=f"{core[0]}, {core[0]}")
    assert re.findall(r'id="wrong-(\w+)" data-code="([\w-]+)"', answer.text) == [("ids", "asked-already")]
    assert f'href="/requests/{waiting}"' in answer.text
    assert (
        requester.post("/ask", ids=f"{core[4]}, {core[0]}").status_code == 303
    )  # that decision is not about all of it
    where = requester.post("/ask", ids=f"{core[5]}", key="k").headers["location"]
    assert requester.post("/ask", ids=f"{core[5]}", key="k").headers["location"] == where  # the same form again
    house.tokens["other"] = house.service.tokens.make("other", REQUESTER)
    assert visit("other").post("/ask", ids=f"{core[0]}").status_code == 303  # who must not learn of it


def test_forms_say_what_follows_and_on_which_scale_values_are(house, visit):
    operator, test = visit(OPERATOR), table(40, seed=3)
    assert "data-span" not in operator.get("/add").text
    house.worker.settings = replace(house.service.settings, sides=lambda workspace: (table(), test))
    house.worker.record_version()
    (version,) = house.call("GET", "/v1/model/versions").json()
    assert version["span"] == [test.inputs.min(), test.inputs.max()]
    for path in ("/add", "/correct"):
        text = operator.get(path).text
        assert 'data-follows="other-records"' in text
        assert f'data-span="{version["span"][0]} {version["span"][1]}"' in text


VALUES = "1 2.5,3\t-4;0"


def test_a_record_is_added_and_corrected_by_forms(house, visit):
    operator = visit(OPERATOR)
    assert operator.get("/add").text.count('name="subject"') == 1
    new = {"id": "5", "label": "kind 1", "subject": "900", "values": VALUES}
    where = operator.post("/add", **new, key="k").headers["location"]
    assert operator.post("/add", **new, key="k").headers["location"] == where
    house.work()
    house.service.current.refresh()
    fixed = {"id": "5", "label": "kind 2", "values": VALUES.replace("1", "7")}
    right = operator.post("/correct", **fixed, key="c").headers["location"]
    house.work()
    for path, kind in ((where, "add"), (right, "rectify")):
        request = house.follow(path.rpartition("/")[2])
        assert (request["kind"], request["state"], request["outcome"]) == (kind, "done", "done")
    house.service.current.refresh()
    assert operator.post("/add", **new, key="k").headers["location"] == where  # sent again once it was carried out
    assert operator.post("/correct", **fixed, key="c").headers["location"] == right


@pytest.mark.parametrize(
    ("path", "field", "code", "wrong"),
    [
        ("/add", "id", "id-taken", {"id": "free"}), ("/add", "id", "wrong-value", {"id": "five"}),
        ("/add", "values", "wrong-value", {"values": "1 2 3"}), ("/add", "values", "wrong-value", {"values": "a b"}),
        ("/add", "values", "data", {"values": "nan 1 1 1 1"}),
        ("/correct", "values", "data", {"id": "free", "values": "nan 1 1 1 1"}),
        ("/add", "label", "wrong-value", {"label": "kind 9"}), ("/add", "subject", "wrong-value", {"subject": ""}),
        ("/correct", "id", "unknown-id", {"id": "999999"}), ("/correct", "values", "wrong-value", {"values": ""}),
        ("/correct", "values", "no-change", {"id": "free", "values": "same"}),
    ],
)  # fmt: skip
def test_a_record_that_is_wrong_comes_back_beside_its_field(house, visit, path, field, code, wrong):
    operator, free = visit(OPERATOR), house.ids("free")[0]
    same = " ".join(map(str, table().inputs[table().ids.tolist().index(free)].tolist()))
    fields = {"id": "5", "label": "kind 1", "subject": "900", "values": VALUES} | wrong
    fields = {name: {"free": str(free), "same": same}.get(text, text) for name, text in fields.items()}
    if path == "/correct":
        fields["label"] = ""
    answer = operator.post(path, **fields)
    assert answer.status_code == 422
    assert re.findall(r'id="wrong-(\w+)" data-code="([\w-]+)"', answer.text) == [(field, code)]
    assert answer.text.count('aria-invalid="true"') == 1
    assert house.call("GET", "/v1/requests").json()["requests"] == []


def test_a_forgotten_id_is_not_added(house, visit):
    (free, *_) = house.ids("free")
    answered(house, ids=[free])
    answer = visit(OPERATOR).post("/add", id=str(free), label="kind 1", subject="900", values=VALUES)
    assert re.findall(r'id="wrong-(\w+)" data-code="([\w-]+)"', answer.text) == [("id", "already-forgotten")]
    assert len(house.call("GET", "/v1/requests").json()["requests"]) == 1


def test_a_step_that_destroys_names_says_so_before(house, visit, waiting):
    operator = visit(OPERATOR)
    for step in ("refuse", "cancel"):
        assert "data-destroys" in operator.get(f"/requests/{waiting}/{step}").text
    assert "data-destroys" not in operator.get(f"{answered(house, ids=house.ids('free')[:1])}/replay").text


def test_an_answer_that_is_not_certain_is_shown_so_until_it_was_searched(house, visit, monkeypatch):
    operator, where = visit(OPERATOR), f"/requests/{approximate(house)}"
    house.service.current.refresh()
    for path in ("/", "/requests?which=done", where):
        assert '"done-approximately"' in operator.get(path).text
    assert 'data-due="audit"' in operator.get(f"{where}/delivered").text
    operator.post(f"{where}/delivered")
    assert 'data-due="audit"' in operator.get(where).text
    done(house, monkeypatch)
    assert 'data-due="audit"' not in operator.get(where).text


def test_pages_of_the_list(house, visit, monkeypatch):
    monkeypatch.setattr(pages, "SHOWN", 2)
    asked, operator = [house.submit(ids=[id_])["id"] for id_ in house.ids("free")[:5]], visit(OPERATOR)
    for order, expected in (("newest", asked[::-1]), ("due", asked)):
        seen, path = [], f"/requests?which=all&order={order}"
        while path:
            text = operator.get(path).text
            seen += re.findall(r'href="/requests/([0-9a-f]{32})"', text)
            more = re.search(r'href="([^"]*after=[^"]*)"', text)
            path = more and more[1].replace("&amp;", "&")
        assert seen == expected
    for text in (asked[0], asked[0].upper(), asked[0][:8]):
        assert operator.post("/requests", find=f" {text}").headers["location"] == f"/requests/{asked[0]}"
    for nothing in ("_", "%", "x", "", asked[0][:7], "f" * 32, "a\0b"):
        assert 'data-found="0"' in operator.post("/requests", find=nothing).text
    for wrong in ("which=x", "after=x", "after=2026-01-01.x", "after=9999-99-99.1"):
        assert operator.get(f"/requests?{wrong}").status_code in (200, 422)
    for which in pages.LISTS:
        assert operator.get(f"/requests?which={which}").status_code == 200


def test_requests_are_found_by_whom_they_name(house, visit):
    """Not by auditors, and not where the names were destroyed; requesters find their own."""
    one, other, *_ = house.ids("free")
    asked = [house.submit(ids=[one, other])["id"], house.submit(ids=[other])["id"]]
    gone = house.submit("operator", ids=[one])["id"]
    operator, requester = visit(OPERATOR), visit(REQUESTER)

    def found(visitor, text):
        answer = visitor.post("/requests", find=text)
        many = re.findall(r'href="/requests/([0-9a-f]{32})"', answer.text)
        return {*many} if answer.status_code == 200 else {answer.headers["location"].rpartition("/")[2]}

    assert found(operator, f" {other} ") == {*asked}
    assert found(operator, f"{one}") == {asked[0], gone}
    assert found(requester, f"{one}") == {asked[0]}
    assert found(visit(AUDITOR), f"{other}") == set()
    assert found(visit(AUDITOR), asked[0][:8]) == {asked[0]}
    house.call("POST", f"/v1/requests/{gone}/cancel", json={})
    assert found(operator, f"{one}") == {asked[0]}
    for visitor in (operator, requester):
        assert 'action="/requests"' in visitor.get("/").text


def test_a_person_is_found_by_what_the_resolver_knows(house, visit):
    resolver = {("email", "anna@people.example"): 3}
    object.__setattr__(house.service.settings, "resolver", lambda *identity: resolver.get(identity))
    for value in ("anna@people.example", "unknown@people.example"):
        id_ = house.submit(identity={"type": "email", "value": value})["id"]
        assert visit(OPERATOR).post("/requests", find=value).headers["location"] == f"/requests/{id_}"
    object.__setattr__(house.service.settings, "resolver", lambda kind, value: value.index("@"))
    assert visit(OPERATOR).post("/requests", find="anna").status_code == 200  # it is asked for addresses alone


def test_lists_of_thousands_are_not_searched(house, visit):
    id_ = house.submit(ids=house.ids("free")[:1])["id"]
    more = house.ids("free")[1]
    house.submit(ids=[more, *range(10**6, 10**6 + 3000)])
    assert visit(OPERATOR).post("/requests", find=str(house.ids("free")[0])).headers["location"] == f"/requests/{id_}"
    assert visit(OPERATOR).post("/requests", find=str(more)).status_code == 200  # a list, with nothing in it


def test_what_came_by_post_is_due_from_the_day_on_which_it_came(house, visit):
    days = [(today() - timedelta(days=past)).isoformat() for past in (10, 40, -1)]
    where = visit(OPERATOR).post("/ask", ids=house.ids("core")[0], regulation="gdpr", arrived=days[0], key="k")
    found = house.follow(where.headers["location"].rpartition("/")[2])
    assert (found["received"][:10], found["days_left"]) == (days[0], 20)
    for day in (days[2], "0026-11-10", "1026-11-10"):
        assert house.call("POST", "/v1/requests", json={"ids": [1], "arrived": day}).json()["code"] == "wrong-value"
    late = house.submit(ids=house.ids("core")[1:2], arrived=days[1])
    assert (late["received"][:10], late["days_left"], late["late"]) == (days[1], -10, True)
    assert visit(OPERATOR).post("/ask", ids=house.ids("core")[2], arrived=days[2]).status_code == 422
    key = {"Idempotency-Key": "another"}
    for day, status in ((days[0], 201), (days[0], 200), (days[1], 422)):
        body = {"ids": house.ids("free")[:1], "arrived": day}
        assert house.call("POST", "/v1/requests", json=body, headers=key).status_code == status


def test_a_letter_says_how_to_check_it_and_what_a_repetition_found(house, visit, monkeypatch):
    """Of the receipt as of the statement that nothing is here: the key that is in the letter has signed both."""
    operator = visit(OPERATOR)
    nothing = answered(house, subject=99999)
    letter = operator.get(f"{nothing}/letter").text
    key = re.search("-----BEGIN PUBLIC KEY-----[^<]*", letter.replace("&#43;", "+"))[0]
    assert house.client.get("/key.pub").text.strip() == key.strip() == KEY.public.pem.decode().strip()
    assert "http://testserver/key.pub" in letter
    assert "/key.pub" not in operator.get(f"{nothing}/letter", headers={"Host": "localhost"}).text
    assert f'href="{nothing}/receipt"' in operator.get(nothing).text
    statement = operator.get(f"{nothing}/receipt").content
    envelope, _ = answer_in(statement)
    envelope.verify([PublicKey.from_pem(f"{key.strip()}\n".encode())])
    where = answered(house, ids=house.ids("influential")[:1])
    assert "data-repeated" not in operator.get(f"{where}/letter").text
    operator.post(f"{where}/replay")
    write(house, 1, state="done", result="identical")
    assert 'data-repeated="identical"' in operator.get(f"{where}/letter").text


def test_who_follows_a_wrong_address_gets_a_page_in_a_browser_and_a_problem_in_a_program(house, visit):
    for path in ("/nowhere", "/v1/nowhere"):
        page = visit().get(path, headers={"Accept": "text/html,*/*;q=0.8"})
        assert (page.status_code, page.headers["content-type"][:9]) == (404, "text/html")
        assert page.headers["content-security-policy"] == POLICY
        problem = visit().get(path, headers={"Accept": "*/*"})
        assert (problem.status_code, problem.json()["code"]) == (404, "no-such-path")


def test_an_auditor_verifies_the_log_and_sees_what_was_changed(house, visit):
    for id_ in house.ids("free")[:2]:
        house.submit(ids=[id_])
        house.work()
    house.submit(subject=99999)
    house.work()
    house.service.current.refresh()
    auditor, pem = visit(AUDITOR), KEY.public.pem.decode()
    log = house.service.settings.workspace / LOG
    kept = (log / CHECKPOINT).read_text()

    def held(keys=pem, kept=kept):
        text = auditor.post("/verify", keys=keys.replace("\n", "\r\n"), kept=kept.replace("\n", "\r\n")).text
        return dict(re.findall(r'data-check="(\w+)" data-held="(\w+)"', text))

    assert held() == dict.fromkeys(("log", "answers", "forgotten", "history"), "yes")
    assert set(held(kept="").values()) == {"yes"}
    assert auditor.post("/verify", keys="none").status_code == 422
    other = type(KEY).generate().public.pem.decode()
    assert 'data-wrong="untrusted-key"' in auditor.post("/verify", keys=other).text
    assert held(other) == {"log": "strange", "answers": "strange", "forgotten": "yes", "history": "strange"}
    assert held(kept="x") == {"log": "yes", "answers": "yes", "forgotten": "yes", "history": "strange"}
    assert held(kept=kept[:-9] + kept[-9:].swapcase())["history"] == "strange"
    table = tables.requests
    with house.service.requests.database.write() as connection:
        (answer,) = connection.scalars(table.select().with_only_columns(table.c.answer).where(table.c.number == 2))
        connection.execute(update(table).where(table.c.number == 1).values(answer=answer))
    assert held()["answers"] == "no"
    content = (log / "entries").read_bytes()
    (log / "entries").write_bytes(bytes(32) + content[32:])
    assert held()["log"] == "no"
    assert str(house.service.settings.workspace) not in auditor.post("/verify", keys=pem).text


def test_the_overview_says_what_is_to_be_done_next(house, visit, waiting):
    operator = visit(OPERATOR)
    assert waiting in operator.get("/").text
    for days, lists in ((8, ""), (7, "due_soon"), (0, "due_soon"), (-1, "late")):
        with house.service.requests.database.write() as connection:
            connection.execute(update(tables.requests).values(due=(today() + timedelta(days=days)).isoformat()))
        for which in ("due_soon", "late"):
            assert (waiting in operator.get(f"/requests?which={which}").text) == (which == lists)
    with house.service.requests.database.write() as connection:
        connection.execute(update(tables.requests).values(state="failed", code="fault", ended="2020-01-01"))
    assert house.service.requests.counts()["late"] == 1  # nobody was answered
    for path in ("/", "/requests?which=late", "/requests?which=open"):
        assert waiting in operator.get(path).text
    assert 'data-ended="no"' in operator.get(f"/requests/{waiting}").text
    assert operator.post(f"/requests/{waiting}/refuse", reason=" ").status_code == 422
    assert operator.post(f"/requests/{waiting}/refuse", reason="the books are kept").status_code == 303
    assert waiting not in operator.get("/").text
    assert 'data-ended="yes"' in operator.get(f"/requests/{waiting}").text
    assert 'data-workers="0"' in operator.get("/").text


def test_the_overview_counts_the_records_that_there_are_now(house, visit):
    """Also where the bytes of the model, and so its version, have stayed as they were."""
    house.worker.record_version()
    answered(house, ids=house.ids("free")[:3])
    house.worker.record_version()
    assert len(house.call("GET", "/v1/model/versions").json()) == 1
    assert 'data-version="0 80 None"' in visit(OPERATOR).get("/model").text
    assert 'data-now="77"' in visit(OPERATOR).get("/").text


def test_a_request_that_no_plan_answers_has_no_empty_section(house, visit):
    asked = house.submit(ids=[house.ids("free")[0], 12])["id"]
    text = visit(OPERATOR).get(f"/requests/{asked}").text
    assert (text.count("<h2>"), text.count("<section")) == (2, 3)


def test_the_pages_open_while_there_is_no_model(settings):
    made = app(settings)
    made.state.service.current.refresh = lambda: None
    with TestClient(made, client=("127.0.0.1", 1)) as client:
        house = House(client, made.state.service)
        operator = Visitor(house, OPERATOR)
        where = operator.post("/ask", subject="1").headers["location"]
        for path, status in {"/": 200, "/requests": 200, where: 200, "/model": 503, "/verify": 200}.items():
            answer = operator.get(path)
            assert answer.status_code == status, path
            assert answer.headers["content-security-policy"] == POLICY


def test_a_text_of_beginnings_of_keys_is_read_at_once():
    begun = time.process_time()
    with pytest.raises(NotAKey):
        keys_in("-----BEGIN PUBLIC KEY-----" * 40_000)
    assert time.process_time() - begun < 2.0
