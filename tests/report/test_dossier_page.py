"""The page that a person gets: what it says, that it is made of the dossier alone, and that every change is noticed."""

import base64
import copy
import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from maxrr.errors import EvidenceError, PageChanged
from maxrr.evidence import Dossier
from maxrr.evidence.dossiers import CLAIMS
from maxrr.report.dossier import OtherVersion, dossier_in, dossier_page, require_same_page
from maxrr.report.page import is_report
from maxrr.unlearning import Guarantee
from tests.evidence.forgeries import OPERATOR, ROWS, TRUE
from tests.report.reading import Reader, all_of, read

PAGE = dossier_page(Dossier.from_object(TRUE))


def page_of(**said: Any) -> Reader:
    """The page about receipts that say other things."""
    return read(dossier_page(Dossier.from_object(OPERATOR.dossier(ROWS, **said))))


def test_it_says_whose_when_and_what() -> None:
    page = read(PAGE)
    assert [each.text for each in all_of(page, "h1")] == ["3 records about alice were forgotten."]
    for words in (
        "On 1 March 2026 a model that had 40 records", "2026-03-01T07:45:10+00:00", "scan-0", "scan-4", "scan-8",
        "It holds without conditions", "What is not promised", "in the operator's sources and backups",
        "maxrr verify THIS-PAGE.html --key operator.pub",
    ):  # fmt: skip
        assert words in page.text, words


def test_every_claim_has_its_place() -> None:
    found = [each.attributes["data-check"] for each in all_of(read(PAGE), "li") if "data-check" in each.attributes]
    assert found == [*CLAIMS, "words"]
    assert [claim for claim in CLAIMS.values() if claim not in read(PAGE).text] == []


def test_what_the_script_compares_is_what_is_signed() -> None:
    page = read(PAGE)
    marked = {each.attributes["data-signed"]: each.text for each in page.elements if "data-signed" in each.attributes}
    assert marked == {"number": "3", "time": "2026-03-01T07:45:10+00:00", "guarantee": "exact-refit"}


def test_every_guarantee_has_a_meaning_of_its_own() -> None:
    meanings = {each: all_of(page_of(guarantee=each.value), "h2")[1].text for each in Guarantee}
    assert len(set(meanings.values())) == len(Guarantee)
    assert {each for each, words in meanings.items() if words.startswith("Exact")} == {
        each for each in Guarantee if each.exact
    }
    assert all_of(page_of(guarantee="excellent"), "h2")[1].text.startswith("Unknown")


def test_what_stays_is_said() -> None:
    pages = {1: page_of(duplicates_left=1).text, 0: read(PAGE).text}
    assert {left: text.count("1 other record") for left, text in pages.items()} == {1: 1, 0: 0}
    conditional = page_of(unconditional=False, conditions=["the sun shines", "the moon does not"])
    assert re.search(r"2 conditions.*: The sun shines\. The moon does not\.", conditional.text)
    assert len(page_of(subject_tombstones=["aa" * 32]).text) > len(pages[0])


def test_one_record_and_a_corrected_one() -> None:
    one = read(dossier_page(Dossier.from_object(OPERATOR.dossier([4], subject=None))))
    assert all_of(one, "h1")[0].text == "Record scan-4 was forgotten."
    corrected = read(dossier_page(Dossier.from_object(OPERATOR.dossier([4], replaced=True))))
    assert all_of(corrected, "h1")[0].text == "1 record about alice was corrected."


def test_many_records_are_counted() -> None:
    many = read(dossier_page(Dossier.from_object(OPERATOR.dossier(list(range(40))))))
    assert "more record" not in many.text
    dossier = Dossier.from_object(TRUE)
    from dataclasses import replace

    records = tuple(replace(dossier.records[0], id={"int": number}) for number in range(53))
    assert re.search(r"\b3 more", read(dossier_page(replace(dossier, records=records))).text)


def test_the_same_dossier_gives_the_same_page() -> None:
    shuffled = json.dumps(dict(reversed(TRUE.items())), indent=3).encode()
    assert dossier_page(Dossier.from_bytes(shuffled)) == PAGE
    assert Dossier.from_bytes(dossier_in(PAGE)).to_object() == TRUE
    assert is_report(PAGE)
    require_same_page(PAGE, lambda: dossier_page(Dossier.from_object(TRUE)))


def test_the_policy_names_the_script_and_the_look_and_nothing_else() -> None:
    page = read(PAGE)
    (policy,) = [each.attributes["content"] for each in all_of(page, "meta") if "http-equiv" in each.attributes]
    allowed = re.findall("'sha256-([^']+)'", policy)
    script, style = (
        re.search("<script>(.*?)</script>", PAGE, re.DOTALL),
        re.search("<style>(.*?)</style>", PAGE, re.DOTALL),
    )
    assert script
    assert style
    contents = [found[1].encode() for found in (script, style)]
    assert allowed == [base64.b64encode(hashlib.sha256(each).digest()).decode() for each in contents]
    assert re.sub("'sha256-[^']+'", "#", policy) == (
        "default-src 'none'; script-src #; style-src #; base-uri 'none'; form-action 'none'"
    )
    assert not [each for each in page.elements if {"style", "src", "href", "onclick", "onload"} & set(each.attributes)]


@pytest.mark.parametrize(
    "hostile", ["</script><script>alert(1)</script>", "<b>&amp;", "\u202egnp.exe\u2028", "{{ 7*7 }}"]
)
def test_names_cannot_leave_their_place(hostile: str) -> None:
    odd = copy.deepcopy(TRUE) | {"subject": hostile}
    page = dossier_page(Dossier.from_object(odd))
    assert len(all_of(read(page), "script")) == 2
    assert all(sign not in page for sign in ("<script>alert", "<b>", "\u202e", "\u2028", " 49 "))
    assert Dossier.from_bytes(dossier_in(page)).subject == hostile
    require_same_page(page, lambda: dossier_page(Dossier.from_bytes(dossier_in(page))))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("were forgotten.", "were never there."),
        ("exact-refit</code>", "exact-untouched</code>"),
        ("if (wrong.length)", "if (false)"),
        ("color: var(--bad)", "color: var(--good)"),
        ("default-src 'none'", "default-src *"),
        ("</html>", "</html>\n<script>alert(1)</script>"),
        ("\n</body>", " \n</body>"),
    ],
)
def test_a_page_that_was_changed_is_refused(old: str, new: str) -> None:
    assert old in PAGE
    changed = PAGE.replace(old, new)
    with pytest.raises(PageChanged):
        require_same_page(changed, lambda: dossier_page(Dossier.from_bytes(dossier_in(changed))))


def test_a_page_of_another_version_cannot_be_compared() -> None:
    older = re.sub('(<meta name="maxrr-version" content=")[^"]+', r"\g<1>0.0.9", PAGE)
    with pytest.raises(OtherVersion, match=r"0\.0\.9"):
        require_same_page(older, lambda: dossier_page(Dossier.from_object(TRUE)))


@pytest.mark.parametrize("text", ["", "<p>nothing</p>", PAGE + PAGE, PAGE.split("</script>")[0]])
def test_a_page_without_one_dossier_is_refused(text: str) -> None:
    with pytest.raises(EvidenceError, match="no dossier"):
        dossier_in(text)


def test_a_statement_that_is_no_receipt_makes_no_page() -> None:
    from tests.evidence.forgeries import changed, signed

    odd = Dossier.from_object(changed(envelope=signed("https://maxrr.dev/receipt/v1", "model", {"number": 3})))
    with pytest.raises(ValueError, match="not a receipt"):
        dossier_page(odd)
    with pytest.raises(EvidenceError, match="no page"):
        require_same_page(PAGE, lambda: dossier_page(odd))


def test_making_a_page_needs_neither_numpy_nor_pytorch(tmp_path: Path) -> None:
    (tmp_path / "dossier.json").write_bytes(Dossier.from_object(TRUE).to_bytes())
    code = (
        "import sys; from maxrr.evidence import Dossier; from maxrr.report.dossier import dossier_page\n"
        "dossier_page(Dossier.from_bytes(open(sys.argv[1], 'rb').read())); print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "dossier.json")]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert {name.partition(".")[0] for name in shown} & {"numpy", "scipy", "sklearn", "torch", "PIL"} == set()


def test_it_says_who_answered_and_how_to_reach_them() -> None:
    nobody = read(dossier_page(Dossier.from_object(TRUE | {"operator": None}))).text
    for page, named in ((read(PAGE).text, True), (nobody, False)):
        assert ("Example Clinic, privacy@clinic.example" in page, "The operator:" in page) == (named, named)


def test_a_single_head_is_not_counted() -> None:
    assert not re.search(r"1 of 1 head", read(PAGE).text)
    assert re.search(r"\(the head is decided", read(PAGE).text)
