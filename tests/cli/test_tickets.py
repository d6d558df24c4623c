"""A file of tickets: one training, one commit, a receipt for each, and a file that says what became of them."""

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from maxrr.workspace import Workspace
from tests.cli.shell import Shell, kinds

HEADER = "Ticket;Subject;id;received;due;note"


def requests_file(place: Path, *lines: str, header: str = HEADER) -> Path:
    path = place / "requests.csv"
    path.write_text("\n".join(["", header, *lines, ""]), encoding="utf-8-sig")
    return path


def results_in(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_every_kind_of_ticket(shell: Shell, digits: Path, tmp_path: Path) -> None:
    of = kinds(digits)
    free, influential, core = of["free"][0], of["influential"][0], of["core"][0]
    file = requests_file(
        tmp_path,
        f"T-1;;{free};2026-11-01;2999-12-31;urgent",
        f"T-2;;{influential};;;",
        "",
        f"T-3;;{core};;2020-01-01;",
        "T-4;;987654;;;",
        f"T-1;;{free};2026-11-01;2999-12-31;again",
        f"T-5;;{free};;;another ticket",
        f"T-6;anna;{free};;;both",
        ";;3;;;no ticket",
        "T-7;;007;;;",
        f"T-8;;{of['free'][1]};tomorrow;;",
    )
    ended = shell("unlearn", digits, "--requests", file, "--yes", "--json", code=3)
    told = ended.json["tickets"]
    assert [each["outcome"] for each in told] == [
        "done", "done", "refused", "nothing-here", "already-done", "already-done", "refused", "refused", "nothing-here",
        "refused",
    ]  # fmt: skip
    assert [each["receipt"] for each in told[:6]] == [1, 2, None, None, 1, 3]
    assert told[2]["code"] == "core-refused"
    assert {each["code"] for each in told[6:] if each["outcome"] == "refused"} == {"bad-line"}
    assert ["987654" in told[3]["why"], "007" in told[8]["why"], told[3]["code"]] == [True, True, "unknown-id"]
    assert ("received" in told[9]["why"], "'tomorrow'" in told[9]["why"]) == (True, True)
    assert told[0]["days_left"] > 300_000
    assert told[2]["days_left"] < 0
    results = results_in(tmp_path / "requests.results.csv")
    assert [each["outcome"] for each in results] == [each["outcome"] for each in told]
    assert [each["ticket"] for each in results][:3] == ["T-1", "T-2", "T-3"]
    sent = Path(told[3]["answer"]).read_bytes()
    # What is left is done the next time, and nothing twice.
    again = shell("unlearn", digits, "--requests", file, "--policy", "retrain", "--yes", "--json", code=3).json[
        "tickets"
    ]
    assert [each["outcome"] for each in again[:6]] == ["already-done"] * 2 + ["done", "nothing-here"] + [
        "already-done"
    ] * 2
    assert [each["receipt"] for each in again[:6]] == [1, 2, 4, None, 1, 3]
    assert again[2]["guarantee"] == "exact-retrain"
    assert [each["pages"] for each in again[:6]] == ["1", "2", "4", "", "1", "1"]  # of which a person gets a page
    answer = Path(again[3]["answer"])
    assert answer.read_bytes() == sent  # the person may have it
    assert json.loads(shell("verify", answer, "--json", code=5).out)["answer"]["ids"] == ["987654"]


def test_a_person_of_whom_nothing_was_learned_gets_a_signed_answer(
    shell: Shell, visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    shell("key", "new")
    shell("key", "show", "--out", tmp_path / "operator.pub")
    file = requests_file(tmp_path, "T-1,p3,2026-11-01", "T-2,nobody,", header="ticket,subject,received")
    out = tmp_path / "out" / "answers.csv"
    out.parent.mkdir()
    shell("unlearn", visits, "--requests", file, "--policy", "retrain", "--out", out, "--yes")
    first, second = results_in(out)
    assert (first["outcome"], first["receipt"], second["outcome"]) == ("done", "1", "nothing-here")
    answer = second["answer"]
    assert "nobody" in Path(answer).read_text()
    shell("verify", answer, code=2)
    assert shell("verify", answer, "--key", tmp_path / "operator.pub", "--json").json["holds"]
    other_words = tmp_path / "other.html"
    other_words.write_text(Path(answer).read_text().replace("Nothing of nobody is", "Much of nobody is"))
    checks = shell("verify", other_words, "--key", tmp_path / "operator.pub", "--json", code=4).json["checks"]
    assert {each["name"]: each["held"] for each in checks} == {"signed": True, "page": False}
    # The next night others ask on the same line of the file: what this person was answered stays as it is.
    before = Path(answer).read_bytes()
    requests_file(tmp_path, "T-8,other,2026-11-01", "T-9,another,", header="ticket,subject,received")
    shell("unlearn", visits, "--requests", file, "--policy", "retrain", "--out", out, "--yes")
    assert len({answer, *(each["answer"] for each in results_in(out))}) == 3
    assert Path(answer).read_bytes() == before
    changed = Path(answer).read_bytes().replace(b'"payload":"', b'"payload":"ew==')
    Path(answer).write_bytes(changed)
    shell("verify", answer, "--key", tmp_path / "operator.pub", code=1)
    with Workspace.open(visits, read_only=True) as workspace:
        assert workspace.find(ticket="T-1").receipts == {1: "forgotten"}
        assert workspace.receipts()[0].received == "2026-11-01"


@pytest.mark.parametrize("content", [b"", b"ticket,when\n1,2\n", b"id\n3\n", b"\xff\xfe\x00"])
def test_files_that_are_none_of_tickets(shell: Shell, fitted_digits: Path, tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "requests.csv"
    file.write_bytes(content)
    shell("unlearn", fitted_digits, "--requests", file, "--yes", code=1)
    assert list(tmp_path.iterdir()) == [file]


def test_what_is_not_ours_is_not_replaced(shell: Shell, fitted_digits: Path, tmp_path: Path) -> None:
    file = requests_file(tmp_path, "T-1;;987654;;;")
    (tmp_path / "requests.results.csv").write_text("mine\n")
    shell("unlearn", fitted_digits, "--requests", file, "--yes", code=1)
    shell("unlearn", fitted_digits, "--requests", file, "--ids", "3", "--yes", code=2)
    shell("unlearn", fitted_digits, "--ids", "3", "--out", tmp_path / "other.csv", "--yes", code=2)
    assert (tmp_path / "requests.results.csv").read_text() == "mine\n"
    of_free = requests_file(tmp_path, f"T-1;;{kinds(fitted_digits)['free'][0]};;;")
    shell("unlearn", fitted_digits, "--requests", of_free, "--out", tmp_path / "other.csv", code=2)  # nobody to ask


def test_killed_at_any_moment_each_ticket_is_done_once(tmp_path: Path) -> None:
    """And the bytes are those of a fit without the records."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.cli.killed_tickets", str(tmp_path)],
        cwd=Path(__file__).parents[2], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["killed"] >= 1


@pytest.mark.parametrize(
    ("text", "code"),
    [('ticket,id\nT1,"3\nT2,4\n', "unreadable-file"), ("ticket,id,Id\nT1,3,4\n", "missing-column"),
     (f"ticket,id\nT1,{'3' * 200_000}\n", "unreadable-file")],
)  # fmt: skip
def test_a_file_that_may_mean_something_else_is_refused(
    shell: Shell, fitted_digits: Path, tmp_path: Path, text: str, code: str
) -> None:
    (tmp_path / "requests.csv").write_text(text)
    assert shell("unlearn", fitted_digits, "--requests", tmp_path / "requests.csv", "--yes", code=1).error == code


def test_a_line_that_cannot_be_read_holds_up_no_other(shell: Shell, digits: Path, tmp_path: Path) -> None:
    one, other = kinds(digits)["free"][:2]
    (tmp_path / "requests.csv").write_text(
        f"id,ticket,due\n{one}\n{one},T1,,{other}\nx\0,T2\n{'9' * 2000},T3\n{other},T4\n"
    )
    told = shell("unlearn", digits, "--requests", tmp_path / "requests.csv", "--yes", "--json", code=3).json["tickets"]
    assert [(each["outcome"], each["code"]) for each in told] == [
        ("refused", "bad-line"), ("refused", "bad-line"), ("refused", "data"), ("refused", "data"), ("done", ""),
    ]  # fmt: skip
