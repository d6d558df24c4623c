"""The service's pages in a real browser: a privacy officer's day by keyboard, small and dark screens, hostile pages."""

import re
import shutil
import threading
import time
from itertools import pairwise

import pytest
import uvicorn
from fastapi.testclient import TestClient
from playwright.sync_api import expect, sync_playwright

from maxrr.service import app, sessions
from maxrr.service.settings import Settings
from maxrr.service.tokens import AUDITOR, OPERATOR, REQUESTER
from tests.long.test_dossier_page import CHROMIUM, FLAGS
from tests.service.conftest import KEY, House, fitted, opening  # noqa: F401 (a fixture)

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: `make browser` installs one")
HOSTILE = "<script>document.title='broken'</script><img src=x onerror=\"document.title='broken'\">"


@pytest.fixture(scope="module")
def browser():
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield running
        running.close()


@pytest.fixture(scope="module")
def house(fitted, tmp_path_factory):  # noqa: F811
    """A service that listens, with a request of each kind and a worker that works when it is told to."""
    folder = shutil.copytree(fitted, tmp_path_factory.mktemp("service") / "ws")
    made = app(Settings(folder, opening(folder), gather=0.0))
    made.state.service.current.refresh()
    server = uvicorn.Server(uvicorn.Config(made, port=0, log_level="error", access_log=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    house = House(TestClient(made, client=("127.0.0.1", 1)), made.state.service)
    house.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    free, core = house.ids("free"), house.ids("core")
    house.asked = {
        "done": house.submit(ids=free[:2]), "nothing": house.submit(subject=HOSTILE),
        "unknown": house.submit(ids=[free[3], 12]),
    }  # fmt: skip
    house.work()
    house.asked["again"] = house.submit(ids=free[:2])
    house.work()
    house.asked |= {"waiting": house.submit(ids=core[:1]), "planned": house.submit(ids=free[4:30])}
    house.service.current.refresh()
    yield house
    server.should_exit = True
    thread.join()


class Officer:
    """Somebody who signed in, and what the browser complained about since."""

    def __init__(self, browser, house, role=OPERATOR, **settings):
        self.house, self.complaints, self.elsewhere = house, [], []
        self.page = browser.new_context(**settings).new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on(
            "request", lambda each: None if each.url.startswith(house.url) else self.elsewhere.append(each.url)
        )
        self.go("/")
        expect(self.page.locator("#token")).to_be_focused()
        self.page.keyboard.type(house.tokens[role])
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"{house.url}/")

    def go(self, path):
        return self.page.goto(self.house.url + path)

    def tab_to(self, selector):
        """Go there by the keyboard, and see that it shows."""
        target = self.page.locator(selector).first
        for _ in range(60):
            self.page.keyboard.press("Tab")
            if target.evaluate("each => each === document.activeElement"):
                assert target.evaluate("each => getComputedStyle(each).outlineStyle") == "solid"
                return
        raise AssertionError(f"{selector} is not reached by the keyboard")

    @property
    def heading(self):
        return self.page.inner_text("h1")


@pytest.fixture
def sign_in(browser, house):
    return lambda role=OPERATOR, **settings: Officer(browser, house, role, **settings)


def paths(house):
    """All pages, with a request of each kind."""
    of = {name: f"/requests/{each['id']}" for name, each in house.asked.items()}
    steps = (f"{of['done']}/delivered", f"{of['waiting']}/refuse")
    steps += tuple(f"{of[name]}/letter" for name in ("done", "nothing", "unknown", "again"))
    return ("/", "/requests?which=all", "/ask", "/add", "/correct", "/model", "/verify", *of.values(), *steps)


@pytest.mark.parametrize("scripts", [True, False])
def test_a_day_of_a_privacy_officer_by_keyboard_alone(sign_in, house, scripts, tmp_path):
    officer, core = sign_in(java_script_enabled=scripts), house.ids("core")[5]
    page = officer.page
    page.locator("nav a", has_text="New request").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/ask")
    page.locator("#ids").focus()
    page.keyboard.type(f"{core}")
    page.locator("button.first").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/requests/*")
    assert page.locator(".ways .card").count() == 2
    page.locator("input[value=retrain]").focus()
    page.keyboard.press("Space")
    page.locator("#reason").focus()
    page.keyboard.type("asked for in writing")
    with page.expect_navigation():  # to the same address
        page.keyboard.press("Enter")
    house.work()
    house.service.current.refresh()
    expect(page.locator("[data-guarantee=exact-retrain]")).to_be_visible(timeout=15_000)  # it looks again by itself
    assert "asked for in writing" in page.inner_text("main")
    with page.expect_download() as found:
        page.click("a[href$='/page']")
    assert 'id="dossier"' in found.value.path().read_text()
    with page.expect_download() as found:
        page.click("a[href$='/receipt']")
    assert b"signatures" in found.value.path().read_bytes()
    page.click("a[href$='/letter']")
    assert str(core) in page.inner_text(".letter")
    with page.expect_download() as found:
        page.click("a[href$='/letter?file=1']")
    found.value.save_as(tmp_path / "letter.html")
    phone = page.context.browser.new_page(viewport={"width": 320, "height": 700})
    phone.goto((tmp_path / "letter.html").as_uri())
    assert str(core) in phone.inner_text(".letter")
    assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.go_back()
    page.click("a[href$='/delivered']")
    page.click("button.first")
    expect(page.locator("[data-delivered]")).to_be_visible()
    assert str(core) not in page.inner_text("main")
    page.click("text=Sign out")
    page.wait_for_url("**/sign-in")
    officer.go("/requests")
    assert "/sign-in" in page.url
    assert officer.complaints == []
    assert officer.elsewhere == []


def test_requests_are_approved_refused_and_cancelled(sign_in, house):
    officer, core = sign_in(), house.ids("core")[10:13]
    page = officer.page
    ended = []
    for id_, step in zip(core, ("approve", "refuse", "cancel"), strict=True):
        officer.go("/ask")
        page.fill("#ids", str(id_))
        page.click("button.first")
        page.wait_for_url(re.compile("/requests/[0-9a-f]{32}$"))
        ended.append(page.url.rpartition("/")[2])
        if step == "approve":
            page.check("input[value=keep-extractor]")
        else:
            page.click(f"a[href$='/{step}']")
            page.fill("#reason", "so it was asked for")
        with page.expect_navigation():
            page.click("button.first")
    assert [house.follow(id_)["state"] for id_ in ended] == ["planned", "refused", "cancelled"]
    assert officer.complaints == []


def test_a_record_is_added_and_corrected(sign_in, house):
    officer = sign_in(viewport={"width": 375, "height": 740})
    page = officer.page
    for path, values, field in (
        ("/add", "1 2 3", "values"), ("/add", "1 2 3 4 5", None), ("/correct", "9 9 9", "values"),
        ("/correct", "9 9 9 9 9", None),
    ):  # fmt: skip
        officer.go(path)
        page.fill("#id", "777777")
        if path == "/add":
            page.fill("#subject", "900")
            page.select_option("#label", index=1)
        page.fill("#values", values)
        page.click("button.first")
        if field is not None:
            expect(page.locator(f"#{field}")).to_be_focused()
            assert page.locator(f"#wrong-{field}").is_visible()
            assert page.input_value("#id") == "777777"  # what was written is not lost
        else:
            page.wait_for_url(re.compile("/requests/[0-9a-f]{32}$"))
            house.work()
            house.service.current.refresh()
            assert house.follow(page.url.rpartition("/")[2])["outcome"] == "done"
    assert [each for each in officer.complaints if "422" not in each] == []


def test_what_was_about_to_be_sent_after_the_session_is_said_not_to_be_taken(sign_in, house):
    officer = sign_in()
    officer.go("/ask")
    officer.page.fill("#subject", "1")
    sessions.end(house.service.requests.database, officer.page.context.cookies()[0]["value"])
    officer.page.click("button.first")
    officer.page.wait_for_url("**/sign-in?**")
    assert officer.page.locator("[role=status]").count() == 1
    officer.page.fill("#token", house.tokens[OPERATOR])
    officer.page.keyboard.press("Enter")
    officer.page.wait_for_url("**/ask")


def test_everything_is_reached_by_the_keyboard(sign_in, house):
    officer = sign_in()
    officer.go(f"/requests/{house.asked['waiting']['id']}")
    for selector in (
        ".skip",
        "nav a",
        ".link",
        "input[name=policy]",
        "#reason",
        "button.first",
        "a[href$='/refuse']",
    ):
        officer.tab_to(selector)


@pytest.mark.parametrize("role", [OPERATOR, AUDITOR, REQUESTER])
def test_no_page_complains_or_asks_elsewhere_and_each_says_what_it_is(sign_in, house, role):
    officer = sign_in(role)
    for path in paths(house):
        officer.complaints.clear()
        if officer.go(path).status == 403:
            continue
        assert officer.complaints == [], path
        page = officer.page
        assert page.locator("h1").count() == 1, path
        assert page.title() != "broken"
        assert page.evaluate("document.scripts.length") == 0
        assert page.evaluate("document.styleSheets.length") == 1
        fields = page.locator("input:not([type=hidden], [hidden]), select, textarea")
        assert fields.evaluate_all("some => some.every(each => each.labels.length || each.ariaLabel)"), path
        levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(each => +each.tagName[1])")
        assert levels[0] == 1
        assert all(after - before <= 1 for before, after in pairwise(levels)), path
    assert officer.elsewhere == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [320, 375, 800, 1200])
def test_nothing_is_wider_than_the_screen_and_all_can_be_read(sign_in, house, width, scheme):
    officer = sign_in(viewport={"width": width, "height": 800}, color_scheme=scheme)
    for path in paths(house):
        officer.go(path)
        across = officer.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert across[0] <= across[1], path
        assert officer.page.evaluate(CONTRAST) == [], path
        assert officer.page.evaluate(SMALLEST) >= 11.5, path  # pixels: a little below that of the hashes


SMALLEST = """() => Math.min(...[...document.querySelectorAll("body *")]
  .filter(each => each.offsetParent && each.textContent.trim())
  .map(each => parseFloat(getComputedStyle(each).fontSize)))"""
"""Finds how small the smallest letters are."""

CONTRAST = """() => {
  const light = colour => {
    const [r, g, b] = colour.match(/[\\d.]+/g).slice(0, 3).map(v => v / 255)
      .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ground = each => {
    for (; each; each = each.parentElement) {
      const colour = getComputedStyle(each).backgroundColor;
      if (colour !== "rgba(0, 0, 0, 0)") return colour;
    }
    return "rgb(255, 255, 255)";
  };
  return [...document.querySelectorAll("main *, header *")].filter(each => {
    const own = [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim());
    if (!own || !each.offsetParent || each.closest("svg")) return false;
    const [one, other] = [light(getComputedStyle(each).color), light(ground(each))];
    return (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05) < 4.5;
  }).map(each => each.outerHTML.slice(0, 120));
}"""
"""Finds texts whose contrast is below the 4.5 that WCAG 2.2 AA asks for."""


def test_the_cookie_is_out_of_reach_and_no_other_site_acts_with_it(sign_in, house):
    officer = sign_in()
    (cookie,) = officer.page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert officer.page.evaluate("document.cookie") == ""
    id_ = house.submit(ids=house.ids("free")[:1])["id"]
    officer.page.goto(
        f"data:text/html,<form method=post action='{house.url}/requests/{id_}/cancel'><button>win</button></form>"
    )
    officer.page.click("button")
    officer.page.wait_for_url(f"{house.url}/**")
    assert house.follow(id_)["state"] == "planned"
    officer.page.goto(f"data:text/html,<iframe src='{house.url}/sign-in'></iframe>")
    officer.page.wait_for_timeout(500)
    assert not any(frame.locator("#token").count() for frame in officer.page.frames)


def test_an_auditor_verifies(sign_in):
    officer = sign_in(AUDITOR)
    officer.go("/verify")
    officer.page.fill("#keys", KEY.public.pem.decode())
    officer.page.fill("#kept", officer.page.inner_text("pre"))
    officer.page.click("button.first")
    assert officer.page.locator("[data-held=yes]").count() == 4
