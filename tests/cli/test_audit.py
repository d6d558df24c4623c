"""`maxrr audit`: where records come from, what is written, exit codes, and what stays behind."""

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import maxrr.audit
from maxrr.audit import AuditReport, auditing
from maxrr.audit.findings import FOUND, INDISTINGUISHABLE, NOT_ENOUGH
from maxrr.audit.shadows import LEAST
from maxrr.data import load
from maxrr.data.train_test import is_test
from maxrr.parallel import Ray
from maxrr.report.page import is_report
from maxrr.unlearning import Receipt
from maxrr.workspace import Workspace
from tests.cli.shell import Shell, copy_and_unlearn, receipt_file
from tests.workspace.problems import as_in_memory

GONE = ("v1", "v2", "v4")  # training records of both classes
FEW = ("--shadows", 8)
pytestmark = pytest.mark.usefixtures("few_models")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of the test's own, and another folder to work in."""
    folder, here = tmp_path / "tmp", tmp_path / "here"
    for each in (folder, here):
        each.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    monkeypatch.chdir(here)
    return folder


@pytest.fixture(scope="module")
def answered(fitted_visits: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with one request carried out, the extractor left as it was; an audit does not change it."""
    request = ("--ids", ",".join(GONE), "--policy", "keep-extractor")
    return copy_and_unlearn(fitted_visits, tmp_path_factory.mktemp("answered"), request)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch, audited: AuditReport) -> list[dict[str, Any]]:
    """What `audit` is called with, where its answer is known beforehand."""
    calls: list[dict[str, Any]] = []

    def answer(model: object, receipt: Receipt, forgotten: object, test: object, **options: object) -> AuditReport:
        calls.append({"receipt": receipt, "forgotten": forgotten, "test": test, **options})
        return audited

    monkeypatch.setattr(maxrr.audit, "audit", answer)
    return calls


@pytest.fixture(scope="session")
def audited(fitted_visits: Path, few_models: None) -> AuditReport:
    """The answer of a real audit, of which tests change parts."""
    with Workspace.open(fitted_visits, read_only=True) as workspace:
        training, test = load(**workspace.sources[0])
        model = as_in_memory(workspace, training)
    receipt = model.unlearn(list(GONE), core_policy="keep-extractor")
    return maxrr.audit.audit(model, receipt, training.select(list(GONE)), test, shadows=8)


def without_times(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    found["caveats"] = [text for text in found["caveats"] if "it is audit number" not in text]
    return {name: value for name, value in found.items() if name not in ("time", "seconds", "earlier")}


def test_a_page_for_people_and_json_for_programs(shell: Shell, answered: Path, temporary: Path) -> None:
    shown = shell("audit", answered, 1, *FEW, code=5)
    assert NOT_ENOUGH in shown.out
    assert ("approximate-refit" in shown.out, "3 records" in shown.out) == (True, True)
    starts = [line.split()[0] for line in shown.out.splitlines() if line]
    assert starts[starts.index("attack") + 2 :][:4] == ["threshold", "lira", "rmia", "features"]
    assert is_report(Path("audit-1.html").read_text(encoding="utf-8"))
    assert json.loads(Path("audit-1.json").read_text(encoding="utf-8"))["records"] == 3
    assert "10/10" in shown.err
    assert list(temporary.rglob("*.npz")) == []


def test_on_a_cluster(shell: Shell, answered: Path, heard: list[dict[str, Any]]) -> None:
    shell("audit", answered, 1, "--engine", "ray://head:10001", code=5)
    assert heard[0]["engine"] == Ray("ray://head:10001")
    shell("audit", answered, 1, "--engine", "local", code=5)
    assert heard[1]["engine"] is None


def test_records_from_elsewhere(shell: Shell, answered: Path, visits_csv: Path, tmp_path: Path) -> None:
    """Whether the source still has the forgotten records or another file brings them: the audit is the same."""
    header, *lines = visits_csv.read_text().splitlines()
    left = [line for line in lines if line.split(",")[0] not in GONE]
    gone = [line for line in lines if line not in left]
    sources = {"left.csv": left, "gone.csv": gone}
    for name, some in sources.items():
        (tmp_path / name).write_text("\n".join([header, *some]))
    shell("audit", answered, 1, *FEW, "--out", "one.html", code=5)
    shell("audit", answered, 1, *FEW, "--source", tmp_path / "left.csv", "--forgotten", tmp_path / "gone.csv",
          "--out", "two.html", code=5)  # fmt: skip
    assert without_times(Path("one.json")) == without_times(Path("two.json"))
    said = shell("audit", answered, 1, *FEW, "--source", tmp_path / "left.csv", code=1)
    assert "3 of the 3" in said.err
    assert said.error == "records-missing"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace("v1,p0,ill", "v1,p0,well"), "1 of the 3 records are not as they were"),
        (lambda text: text.replace("v1,p0,ill", "v1,p0,dead"), "class dead is none of the workspace's: ill, well"),
        (lambda text: text.replace("v1,", "v99,"), "gone.csv lacks 1 of the 3 records"),
    ],
)
def test_records_that_are_others(
    shell: Shell, answered: Path, visits_csv: Path, change: Callable[[str], str], said: str
) -> None:
    header, *lines = visits_csv.read_text().splitlines()
    gone = [line for line in lines if line.split(",")[0] in GONE]
    Path("gone.csv").write_text(change("\n".join([header, *gone])))
    assert said in shell("audit", answered, 1, *FEW, "--forgotten", "gone.csv", code=1).err


def test_other_test_records(
    shell: Shell, answered: Path, visits_csv: Path, heard: list[dict[str, Any]]
) -> None:  # fmt: skip
    header, *lines = visits_csv.read_text().splitlines()
    Path("new.csv").write_text("\n".join([header, *(f"n{line}" for line in lines)]))
    shell("audit", answered, 1, code=5)
    shell("audit", answered, 1, "--test", "new.csv", code=5)
    own, other = (call["test"] for call in heard)
    assert 0 < len(own) < len(other) == 60
    assert heard[0]["forgotten"].ids.tolist() == sorted(GONE)


def test_options_reach_the_audit(shell: Shell, answered: Path, heard: list[dict[str, Any]], temporary: Path) -> None:
    receipt = receipt_file(answered, 1)
    shell("audit", answered, receipt, "--shadows", 12, "--device", "cpu", code=5)
    (call,) = heard
    assert (call["shadows"], call["device"]) == (12, "cpu")
    assert call["receipt"] == Receipt.from_json(receipt.read_text(encoding="utf-8"))
    assert call["folder"].is_relative_to(temporary)
    assert (call["folder"].stat().st_mode & 0o777) == 0o700


@pytest.mark.parametrize(("words", "code"), [(INDISTINGUISHABLE, 0), (FOUND, 4), (NOT_ENOUGH, 5)])
def test_exit_codes(
    shell: Shell, answered: Path, monkeypatch: pytest.MonkeyPatch, audited: AuditReport, words: str, code: int
) -> None:
    result = replace(audited, finding=replace(audited.finding, words=words))
    monkeypatch.setattr(maxrr.audit, "audit", lambda *_, **__: result)
    assert words in shell("audit", answered, 1, code=code).out
    told = shell("audit", answered, 1, "--json", code=code).json
    assert (told["finding"]["words"], told["page"], told["report"]) == (words, "audit-1.html", "audit-1.json")


def test_what_is_not_of_an_earlier_audit_stays(shell: Shell, answered: Path, heard: list[dict[str, Any]]) -> None:
    shell("audit", answered, 1, code=5)
    shell("audit", answered, 1, code=5)
    for name in ("audit-1.html", "mine.json"):
        Path(name).write_text("mine")
        out = Path(name).with_suffix(".html")
        assert shell("audit", answered, 1, "--out", out, code=1).error == "file-exists"
        assert Path(name).read_text() == "mine"
    assert shell("audit", answered, 1, "--out", "audit.pdf", code=2).error == "usage"
    assert len(heard) == 2


def test_wrong_options(shell: Shell, answered: Path) -> None:
    assert shell("audit", answered, 2, code=3).error == "unknown-receipt"
    assert list(Path().iterdir()) == []


def test_an_interrupted_audit_goes_on(
    shell: Shell, answered: Path, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(auditing, "judge", interrupt)
        assert "interrupted" in shell("audit", answered, 1, *FEW, code=130).err
    kept = list(temporary.rglob("*.npz"))
    assert len(kept) == 8 + 4 + 2  # models with the records also with a head without them
    again = shell("audit", answered, 1, *FEW, code=5)
    assert "training" not in again.err
    assert list(temporary.rglob("*.npz")) == []


def test_scratch_does_not_pile_up(shell: Shell, answered: Path, temporary: Path, heard: list[dict[str, Any]]) -> None:
    scratch = temporary / "maxrr" / "audits"
    old, new = scratch / "audit-old", scratch / "audit-new"
    for left in (old, new):
        left.mkdir(parents=True)
    long_ago = time.time() - 100_000.0
    os.utime(old, (long_ago, long_ago))
    shell("audit", answered, 1, code=5)
    assert list(scratch.iterdir()) == [new]
    assert len(heard) == 1


def test_test_records_in_a_file_of_their_own(shell: Shell, answered: Path, visits_csv: Path, tmp_path: Path) -> None:
    """Where ids decide the side, all of them are for testing, and none for training."""
    header, *lines = visits_csv.read_text().splitlines()
    ids = np.array([line.split(",")[0] for line in lines])
    aside = [line for line, test in zip(lines, is_test(ids), strict=True) if test]
    (tmp_path / "aside.csv").write_text("\n".join([header, *aside]))
    shell("audit", answered, 1, *FEW, "--out", "one.html", code=5)
    shell("audit", answered, 1, *FEW, "--test", tmp_path / "aside.csv", "--out", "two.html", code=5)
    assert without_times(Path("one.json")) == without_times(Path("two.json"))


def test_test_records_that_were_not_set_aside_are_a_caveat(shell: Shell, answered: Path, visits_csv: Path) -> None:
    """The whole test part of the source is used, and was set aside when the model was fitted."""
    header, *lines = visits_csv.read_text().splitlines()
    aside = [line for line in lines if is_test(np.array([line.split(",")[0]]))[0]]
    Path("chosen.csv").write_text("\n".join([header, *aside[1:]]))
    own = shell("audit", answered, 1, *FEW, "--out", "one.html", code=5)
    other = shell("audit", answered, 1, *FEW, "--test", "chosen.csv", "--out", "two.html", code=5)
    said = f"{len(aside)} were, and these {len(aside) - 1}"
    assert said not in " ".join(own.out.split())
    assert said in " ".join(other.out.split())
    assert any(said in text for text in json.loads(Path("two.json").read_text(encoding="utf-8"))["caveats"])
    assert said in " ".join(Path("two.html").read_text(encoding="utf-8").split())


def test_a_whole_class_that_is_forgotten_can_be_audited(shell: Shell, tmp_path: Path) -> None:
    """The workspace no longer knows its name. The source does, for the forgotten records and for those set aside."""
    random = np.random.default_rng(0)
    kinds = random.integers(0, 3, 120)
    values = random.normal(size=(120, 3)) + 2.0 * kinds[:, None]
    lines = [f"r{row},k{kinds[row]},{','.join(map(str, values[row]))}" for row in range(120)]
    Path("kinds.csv").write_text("\n".join(["id,label,a,b,c", *lines]))
    folder = tmp_path / "kinds"
    shell("fit", "kinds.csv", "--epochs", 2, "--out", folder)
    gone = [line.split(",")[0] for line in lines if ",k1," in line]
    training = load("kinds.csv")[0].ids
    Path("gone.txt").write_text("\n".join(np.intersect1d(gone, training)))
    shell("unlearn", folder, "--ids-file", "gone.txt", "--policy", "keep-extractor", "--yes")
    (caveat,) = shell("audit", folder, 1, *FEW, "--json", code=5).json["caveats"]
    assert caveat.startswith("the class k1 is gone: retrained models say the same of all its records")


def test_a_second_audit_of_a_receipt_is_told(
    shell: Shell, fitted_visits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was interrupted counts once, when it has come to its finding; a plan does not count."""
    folder = copy_and_unlearn(fitted_visits, tmp_path, ("--ids", GONE[0], "--policy", "keep-extractor"))
    options = ("audit", folder, 1, *FEW)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(auditing, "judge", interrupt)
        shell(*options, code=130)
    first, second = shell(*options, code=5), shell(*options, "--json", code=5).json
    assert not re.search(r"audit number \d", first.out)
    assert second["earlier"] == 1
    assert second["caveats"][-1].startswith("it is audit number 2 of this receipt")
    assert re.search(r"audit number 2", Path("audit-1.html").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("heard")
def test_the_report_of_another_audit_is_not_written_over(shell: Shell, answered: Path) -> None:
    shell("audit", answered, 1, *FEW, code=5)
    shell("audit", answered, 1, *FEW, code=5)  # the same once more
    found = json.loads(Path("audit-1.json").read_text(encoding="utf-8"))
    Path("audit-1.json").write_text(json.dumps(found | {"model_hash": "0" * 64}), encoding="utf-8")
    said = shell("audit", answered, 1, *FEW, code=1)
    assert said.error == "file-exists"


def test_too_few_models_are_refused_before_any_work(
    shell: Shell, answered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("maxrr.audit.shadows.LEAST", LEAST)
    said = shell("audit", answered, 1, "--shadows", 16, code=1)
    assert (said.out, said.error) == ("", "wrong-value")
    assert str(LEAST) in said.err


@pytest.mark.usefixtures("heard")
def test_a_page_is_drawn_again_from_its_json(shell: Shell, answered: Path) -> None:
    shell("audit", answered, 1, *FEW, code=5)
    first = Path("audit-1.html").read_bytes()
    Path("audit-1.html").unlink()
    shell("audit", "audit-1.json", "--page")
    assert Path("audit-1.html").read_bytes() == first
    shell("audit", "audit-1.json", "--page", "--out", "again.html")
    assert Path("again.html").read_bytes() == first
    Path("mine.html").write_text("mine")
    assert shell("audit", "audit-1.json", "--page", "--out", "mine.html", code=1).error == "file-exists"
    Path("other.json").write_text('{"version": 3}')
    assert shell("audit", "other.json", "--page", code=1).error == "unreadable-file"
    changed = Path("audit-1.json").read_text().replace('"lira"', '"nothing"')
    Path("other.json").write_text(changed)
    assert shell("audit", "other.json", "--page", code=1).error == "unreadable-file"
    assert shell("audit", "nothing.json", "--page", code=1).error == "unreadable-file"
    assert shell("audit", "audit-1.json", "--page", "--out", "page.txt", code=2).error == "usage"
