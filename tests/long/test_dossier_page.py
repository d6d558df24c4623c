"""The page in a real browser: what it says of true and forged dossiers, of keys, and of records that are dropped in."""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from maxrr.evidence import Dossier, SigningKey
from maxrr.evidence.dossiers import CLAIMS
from maxrr.evidence.exact_text import canonical_json
from maxrr.report.dossier import dossier_in, dossier_page
from tests.evidence.forgeries import FORGED, KEY, OPERATOR, OTHER, TRUE, UNREADABLE

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --no-first-run --disable-background-networking --disable-component-update "
    "--disable-sync"
)  # it looks for updates otherwise
PEM = KEY.public.pem.decode()
TRUE_PAGE = dossier_page(Dossier.from_object(TRUE))

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium: `make browser` installs one")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS.split())
        yield running
        running.close()


class Reader:
    """Somebody who opens a page from a file."""

    def __init__(self, browser: Browser, file: Path, html: str, **settings: Any) -> None:
        file.write_text(html, encoding="utf-8")
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page: Page = browser.new_context(**settings).new_page()
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.goto(file.as_uri())
        if settings.get("java_script_enabled", True):
            self.page.wait_for_selector("#verdict:not([data-state=off], [data-state=checking])")

    def give_key(self, *keys: SigningKey) -> None:
        """Paste keys, and wait for what comes of them."""
        given = [key.public for key in keys or (KEY,)]
        self.page.fill("#key-text", "".join(key.pem.decode() for key in given))
        ids = ", ".join(key.id for key in given)
        self.page.wait_for_selector(f"#key-said:text-is('You gave the key with the id {ids}.')")

    @property
    def verdict(self) -> str:
        return self.page.inner_text("#verdict strong")

    @property
    def reasons(self) -> str:
        return self.page.inner_text("#verdict")

    @property
    def marks(self) -> dict[str, str]:
        items = self.page.query_selector_all("[data-check]")
        return {str(each.get_attribute("data-check")): str(each.get_attribute("data-held")) for each in items}


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Any:
    return lambda html=TRUE_PAGE, **settings: Reader(browser, tmp_path / "alice.html", html, **settings)


def forged_page(dossier: dict[str, Any]) -> str:
    """The true page with another dossier inside it."""
    inside = canonical_json(dossier).decode().replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    found = dossier_in(TRUE_PAGE).decode()
    assert TRUE_PAGE.count(found) == 1
    return TRUE_PAGE.replace(found, inside)


def test_a_true_page_is_verified(opened: Any) -> None:
    reader = opened()
    assert reader.verdict == "All proofs in here hold. The last step is yours"
    assert {name: mark for name, mark in reader.marks.items() if mark != "yes"} == {
        "signed": "strange", "checkpoint": "strange",
    }  # fmt: skip
    reader.give_key()
    assert reader.verdict == "Verified"
    assert KEY.public.id in reader.reasons
    assert reader.marks == dict.fromkeys([*CLAIMS, "words"], "yes")
    assert reader.complaints == []
    assert [url for url in reader.requests if not url.startswith("file:")] == []
    assert len(reader.requests) == 1


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_page_is_not_and_says_why(opened: Any, name: str) -> None:
    forged, expected = FORGED[name]
    reader = opened(forged_page(forged))
    reader.give_key()
    assert reader.verdict == "Not verified"
    held = {check.name: check.held for check in Dossier.from_object(forged).check([KEY.public])}
    states = {True: "yes", False: "no", None: "open"}
    assert {check: mark for check, mark in reader.marks.items() if check != "words"} == {
        check: states[value] for check, value in held.items()
    }
    assert reader.marks[expected] == "no"
    why = reader.page.inner_text(f"[data-check={expected}] .why")
    assert why in reader.reasons


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (">exact-refit<", ">exact-untouched<", "guarantee"),
        ('"number">3<', '"number">4<', "number"),
        ('"time">2026', '"time">2025', "time"),
    ],
)
def test_other_words_than_are_signed_are_noticed(opened: Any, old: str, new: str, what: str) -> None:
    assert TRUE_PAGE.count(old) == 1
    reader = opened(TRUE_PAGE.replace(old, new))
    reader.give_key()
    assert reader.verdict == "Not verified"
    assert f"The page says another {what} than is signed." in reader.reasons


def test_a_damaged_dossier_is_said_to_be_unreadable(opened: Any) -> None:
    reader = opened(forged_page(UNREADABLE["a field that is not known"]))
    assert reader.verdict == "Not verified"
    assert "cannot be read" in reader.reasons


def test_keys(opened: Any) -> None:
    reader = opened()
    reader.give_key(OTHER)
    assert reader.verdict == "Not verified"
    assert "The receipt is not signed by this key." in reader.reasons
    reader.give_key(OTHER, KEY)
    assert reader.verdict == "Verified"
    reader.page.fill("#key-text", "-----BEGIN PRIVATE KEY-----")
    reader.page.wait_for_selector("#key-said:has-text('cannot be used')")
    reader.page.wait_for_selector("#verdict[data-state=strange]")
    reader.page.set_input_files("#key-file", {"name": "operator.pub", "mimeType": "text/plain", "buffer": PEM.encode()})
    reader.page.wait_for_selector("#verdict[data-state=verified]")


def test_a_changed_script_does_not_run(opened: Any, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "other.html").write_text(TRUE_PAGE.replace('"Verified"', '"Verified!"'), encoding="utf-8")
    page = browser.new_context().new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((tmp_path / "other.html").as_uri())
    assert page.get_attribute("#verdict", "data-state") == "off"
    assert any("Content Security Policy" in text for text in said)


def test_without_scripts_it_says_that_nothing_was_checked(opened: Any) -> None:
    reader = opened(java_script_enabled=False)
    assert reader.verdict == "Not checked"
    assert not reader.page.is_visible("#key-text")
    assert reader.page.is_visible("h1")


def file_of(kind: str, image: Any) -> bytes:
    buffer = io.BytesIO()
    if kind == "npy":
        np.save(buffer, image)
    elif kind == "png":
        Image.fromarray(image[0]).save(buffer, "PNG")
    else:
        buffer.write(image.tobytes())
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["npy", "png", "bin"])
def test_a_record_that_is_dropped_in(opened: Any, kind: str) -> None:
    page = opened().page

    def says(image: Any, name: str, words: str) -> None:
        page.fill("#own-class", name)
        page.set_input_files("#own-file", {"name": f"mine.{kind}", "mimeType": "", "buffer": file_of(kind, image)})
        page.wait_for_selector(f"#own-said:text-matches('{words}')")

    says(OPERATOR.inputs[4], "class 1", "^It is the one: this is record scan-4, to the last bit.$")
    says(OPERATOR.inputs[5], "class 1", "^It is none of them")
    says(OPERATOR.inputs[8], "class 2", "^It is the one: this is record scan-8")
    says(OPERATOR.inputs[4], "class 2", "^It is none of them")
    says(OPERATOR.inputs[4], "", "class first")
    says(OPERATOR.inputs[4][:, :3], "class 1", "pixels|shape|bytes")


@pytest.mark.parametrize("width", [320, 390, 1200])
def test_nothing_is_wider_than_the_screen(opened: Any, width: int) -> None:
    page = opened(viewport={"width": width, "height": 800}).page
    for details in page.query_selector_all("summary"):
        details.click()
    wide = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert wide[0] <= wide[1]
