"""`maxrr demo`: it runs from start to end, what it writes is what it says, and a difference is an error."""

import contextlib
import io
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from maxrr.cli import app, demo
from maxrr.cli.workspaces import sides
from maxrr.data import Dataset
from maxrr.report.demo import Story, demo_page
from maxrr.report.page import is_report
from maxrr.unlearning import MaxRR, replaying
from maxrr.workspace import Workspace

GUARANTEES = ["exact-untouched", "exact-refit", "exact-retrain"]
FILES = ["report.html"]  # beside the workspace


@dataclass(frozen=True)
class Ran:
    """What came of a demo."""

    story: Story
    folder: Path
    out: str
    err: str


def ask(*arguments: str) -> tuple[object, str]:
    """Exit code and stdout."""
    with contextlib.redirect_stdout(io.StringIO()) as shown, pytest.raises(SystemExit) as exit_:
        app(["demo", *arguments])
    return exit_.value.code, shown.getvalue()


def written(folder: Path, but: str = "") -> list[str]:
    names = [path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()]
    return sorted(name for name in names if not but or not name.startswith(f"{but}/"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A demo in this process, with less training than people see: `make package` runs theirs."""
    happen, stories, folder = demo.happen, [], tmp_path_factory.mktemp("ran") / "new" / "demo"

    def noted(folder: Path) -> Story:
        stories.append(happen(folder))
        return stories[0]

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()) as shown:
        patch.setattr(demo, "EPOCHS", 20)
        patch.setattr(demo, "happen", noted)
        patch.setattr(replaying, "call_in_fresh_process", lambda function, *arguments, **_: function(*arguments))
        code, out = ask("--out", str(folder))
    assert code == 0
    return Ran(stories[0], folder, out, shown.getvalue())


@pytest.fixture(scope="module")
def story(ran: Ran) -> Iterator[Story]:
    """Its story; whatever comes later has as little training."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demo, "EPOCHS", 20)
        yield ran.story


@pytest.fixture
def told(story: Story, monkeypatch: pytest.MonkeyPatch) -> Story:
    """The command tells this story instead of making one."""
    monkeypatch.setattr(demo, "happen", lambda folder: story)
    return story


def test_what_is_left_of_it(ran: Ran) -> None:
    kinds = [int(members.sum()) for members in ran.story.kinds.values()]
    assert sum(kinds) == 1420
    assert min(kinds) > 100
    assert ran.story.accuracy > 0.9
    assert written(ran.folder, but="ws") == FILES
    with Workspace.open(ran.folder / "ws", read_only=True) as workspace:
        assert (workspace.status().forgotten, workspace.model.model_hash_) == (36, ran.story.requests[-1].model)
        receipts = list(workspace.receipts())
    assert "12 free" in ran.err
    page = (ran.folder / "report.html").read_text(encoding="utf-8")
    for request in ran.story.requests:
        assert receipts[request.receipt.number - 1].guarantee == request.receipt.guarantee
        assert request.model[:12] in page


def test_it_ends_in_the_same_bytes_after_every_request(story: Story) -> None:
    assert [request.receipt.guarantee for request in story.requests] == GUARANTEES
    assert [request.same_bytes for request in story.requests] == [True] * 3
    assert story.replay.outcome == "identical"
    assert [[plan.guarantee for plan in request.plans[1:]] for request in story.requests] == [
        [],
        [],
        ["approximate-refit"],
    ]


def test_the_kinds_are_what_the_margins_say(story: Story) -> None:
    assert (story.margins[story.kinds["free"]] > 1.0 - 1e-9).all()
    assert (story.margins[story.kinds["influential"]] < 1.0 + 1e-9).all()
    for request in story.requests:
        assert story.kinds[request.kind][request.rows].all()


def test_what_it_prints(told: Story, tmp_path: Path) -> None:
    code, shown = ask("--out", str(tmp_path))
    assert code == 0
    lines = shown.splitlines()
    assert [line.split()[2] for line in lines if line.startswith("12 ")] == GUARANTEES
    assert [line.split()[-1] for line in lines if line.startswith("12 ")] == ["yes"] * 3
    assert [line.split()[1] for line in lines if line.startswith(("free ", "influential ", "core "))] == [
        f"{members.sum()}" for members in told.kinds.values()
    ]
    assert lines[-1] == f"The report: {tmp_path / 'report.html'}"
    assert written(tmp_path) == FILES


def test_the_folder_is_demo_unless_said_otherwise(
    told: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    _, shown = ask()
    assert shown.splitlines()[-1] == f"The report: {Path('demo') / 'report.html'}"
    assert is_report((tmp_path / "demo" / "report.html").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("told")
def test_it_writes_over_its_own_files_and_no_others(tmp_path: Path) -> None:
    ask("--out", str(tmp_path))
    (tmp_path / "mine.txt").write_text("mine")
    before = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").write_bytes(before + b"<!-- old -->")
    assert ask("--out", str(tmp_path))[0] == 0
    assert (tmp_path / "report.html").read_bytes() == before
    assert (tmp_path / "mine.txt").read_text() == "mine"


@pytest.mark.parametrize("file", ["report.html", "ws/mine.txt"])
def test_a_file_of_somebody_else_is_refused_before_any_work(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "happen", lambda folder: pytest.fail("it began to work"))
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_bytes(b"\xff mine")
    assert ask("--out", str(tmp_path)) == (1, "")
    assert f"{tmp_path / file.split('/')[0]} is there already" in capsys.readouterr().err
    assert (tmp_path / file).read_bytes() == b"\xff mine"


def test_other_bytes_are_an_error(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    differing = replace(story.requests[1], retrained="0" * 64)
    other = replace(story, requests=(story.requests[0], differing, story.requests[2]))
    monkeypatch.setattr(demo, "happen", lambda folder: other)
    code, shown = ask("--out", str(tmp_path))
    assert code == 4
    assert [line.split()[-1] for line in shown.splitlines() if line.startswith("12 ")] == ["yes", "no", "yes"]
    assert "1 of 3 req" in shown
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert page != demo_page(story)


def test_a_failed_proof_is_an_error(story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replayed = replace(story.replay, outcome="different")
    monkeypatch.setattr(demo, "happen", lambda folder: replace(story, replay=replayed))
    code, shown = ask("--out", str(tmp_path))
    assert code == 4
    assert story.replay.outcome not in shown


@pytest.mark.long
def test_a_model_trained_otherwise_has_other_bytes(
    story: Story, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """The comparison can fail: training again is really done."""
    trained_on, model_of = [], demo.model_of

    def careless(training: Dataset) -> MaxRR:
        trained_on.append(len(training))
        monkeypatch.setattr(demo, "EPOCHS", 19 if len(trained_on) == 3 else 20)
        return model_of(training)

    monkeypatch.setattr(demo, "model_of", careless)
    monkeypatch.setattr("maxrr.unlearning.replaying.replay", lambda receipt, bundle, dataset: story.replay)
    other = demo.happen(tmp_path / "ws")
    assert trained_on == [1420, 1408, 1396, 1384]
    assert [request.same_bytes for request in other.requests] == [True, False, True]
    assert not other.same_bytes


def test_the_workspace_of_an_earlier_demo_makes_room(
    ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    shutil.copytree(ran.folder / "ws", tmp_path / "ws")
    monkeypatch.setattr(demo, "EPOCHS", 4)
    monkeypatch.setattr("maxrr.unlearning.replaying.replay", lambda receipt, bundle, dataset: ran.story.replay)
    demo.check_free(tmp_path)
    demo.happen(tmp_path / "ws")
    with Workspace.open(tmp_path / "ws") as workspace:
        assert (workspace.status().requests, workspace.model.model_hash_ == ran.story.requests[-1].model) == (3, False)


def test_its_records_are_found_again_by_their_note(ran: Ran) -> None:
    with Workspace.open(ran.folder / "ws", read_only=True) as workspace:
        assert [len(side) for side in sides(workspace, None)] == [1420, 377]
