"""What an output may replace: its own kind, and nothing else, whichever command writes it and whatever lies there."""

import io
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import maxrr.audit
from maxrr import serving
from maxrr.audit import AuditReport
from maxrr.cli import app, demo
from maxrr.cli.tickets import HEADINGS
from maxrr.report.audit import audit_page
from maxrr.report.page import GENERATOR
from maxrr.serving.onnx import MODEL_HASH
from maxrr.unlearning import MaxRR, replaying
from maxrr.workspace import Workspace
from tests.cases import thinned
from tests.cli.shell import Shell, copy_and_unlearn, receipt_file
from tests.cli.test_audit import GONE, audited  # noqa: F401
from tests.cli.test_replay import replayed
from tests.cli.tree import LEAVES
from tests.unlearning.problems import table

Words = Callable[[Path, Path], tuple[object, ...]]


@dataclass(frozen=True)
class Output:
    """A command that writes a file: its words, by the folder with all that is needed, and what it may replace."""

    words: Words
    own: tuple[str, ...] = ()
    name: str = "out"  # of the file; with an ending where the command wants one

    def place(self, folder: Path) -> Path:
        return folder / self.name


OUTPUTS = {
    "fit out": Output(lambda made, out: ("fit", made / "visits.csv", "--epochs", 1, "--out", out)),
    "bundle place": Output(lambda made, out: ("bundle", made / "ws", out), ("model.bundle",)),
    "audit out": Output(lambda made, out: ("audit", made / "ws", 1, "--out", out), name="out.html"),
    "export place": Output(lambda made, out: ("export", made / "ws", out), ("model.onnx",), "out.onnx"),
    "export folder": Output(lambda made, out: ("export", made / "features", out)),
    "revocations out": Output(lambda made, out: ("revocations", made / "ws", "--out", out), ("revoked.json",)),
    "demo out": Output(lambda made, out: ("demo", "--out", out.parent), ("demo.html",), "report.html"),
    "receipt show out": Output(lambda made, out: ("receipt", "show", made / "ws", 1, "--out", out), ("receipt.json",)),
    "backup to": Output(lambda made, out: ("backup", made / "ws", out)),
    "receipt for out": Output(
        lambda made, out: ("receipt", "for", made / "ws", 1, "--id", GONE[0], "--out", out),
        ("alice.html", "alice.json"),
        "out.html",
    ),
    "key new file": Output(lambda made, out: ("key", "new", out), ("key.pem",)),
    "key show out": Output(
        lambda made, out: ("key", "show", made / "key.pem", "--out", out), ("key.pub", "operator.pub")
    ),
    "unlearn out": Output(
        lambda made, out: ("unlearn", made / "features", "--requests", made / "requests.csv", "--out", out, "--yes"),
        ("results.csv",),
    ),
    "key rotate file": Output(lambda made, out: ("key", "rotate", out), ("key.pem",)),
}
READ = {
    "workspace",
    "folder",
    "source",
    "meta",
    "recipe",
    "requests_file",
    "file",
    "files",
    "thing",
    "against",
    "newer",
    "operator",
    "key",
    "cert",
}
READ_BY = {"receipt show place", "audit place", "replay place"}
FILES = (
    "model.bundle", "report.html", "report.json", "model.onnx", "revoked.json",
    "demo.html", "reproduction.html", "alice.html", "alice.json", "key.pem", "key.pub", "operator.pub", "visits.csv",
    "empty", "receipt.json", "history", "rows", "export/model.json", "results.csv",
)  # fmt: skip


def test_every_place_that_a_command_takes_is_read_or_in_this_test() -> None:
    named = {
        f"{command} {each.name}": each
        for command, leaf in LEAVES.items()
        for each in leaf.params
        if "Path" in type(each.type).__name__ or {"out", "place"} & {each.name}
    }
    assert OUTPUTS.keys() - {"export folder"} <= named.keys()
    assert named.keys() >= READ_BY
    assert {name for name in named.keys() - OUTPUTS.keys() - READ_BY if name.split()[-1] not in READ} == set()


def test_no_command_has_a_rule_of_its_own() -> None:
    """Whoever writes a file has asked the one place: there is no other look at what lies there."""
    for path in (Path(maxrr.__file__).parent / "cli").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "write_atomically(" in text or ".save(" in text or "export_onnx(" in text:
            assert "outputs.check(" in text, path


@pytest.fixture(scope="module")
def made(
    fitted_visits: Path, visits_csv: Path, audited: AuditReport, tmp_path_factory: pytest.TempPathFactory  # noqa: F811
) -> Path:  # fmt: skip
    """A folder with a workspace and one file of every kind that a command writes, or that must not be lost."""
    shell, folder = Shell(), tmp_path_factory.mktemp("made")
    shell("key", "new", folder / "key.pem")
    request = ("--ids", ",".join(GONE), "--policy", "keep-extractor")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MAXRR_SIGNING_KEY", (folder / "key.pem").read_text())
        ws = copy_and_unlearn(fitted_visits, folder, request)
    shutil.copy(visits_csv, folder / "visits.csv")
    shutil.copy(f"{visits_csv}.toml", folder / "visits.csv.toml")
    shutil.copy(receipt_file(ws, 1), folder / "receipt.json")
    report = replace(audited, receipt=1, model_hash="0" * 64)  # of another model
    (folder / "report.json").write_text(report.to_json())
    (folder / "report.html").write_text(audit_page(report), encoding="utf-8")
    for name, title in ("demo", "MaxRR on digits: "), ("reproduction", "MaxRR reproduction: "):
        (folder / f"{name}.html").write_text(f"{GENERATOR}<title>{title}</title>")
    (folder / "model.onnx").write_bytes(b"\x08" + MODEL_HASH.encode())
    (folder / "empty").touch()
    (folder / "requests.csv").write_text("ticket,id\n")
    (folder / "results.csv").write_text(",".join(HEADINGS))
    shell("revocations", ws, "--out", folder / "revoked.json")
    shell("bundle", ws, folder / "model.bundle")
    with Workspace.create(folder / "features", MaxRR.on_features(), table()) as features:
        serving.export(features, folder / "export")
    shell("key", "show", folder / "key.pem", "--out", folder / "operator.pub")
    for name in ("alice.html", "alice.json"):
        shell("receipt", "for", ws, 1, "--id", GONE[0], "--out", folder / name)
    shutil.copy(next(ws.glob("rows-*")), folder / "rows")
    shutil.copy(next(ws.glob("history-*")), folder / "history")
    return folder


def contents(*folders: Path) -> dict[Path, object]:
    """All that lies in folders, but for locks, which are empty."""
    paths = [path for folder in folders for path in folder.rglob("*") if path.name != ".lock"]
    return {
        path: path.readlink() if path.is_symlink() else path.read_bytes() if path.is_file() else None for path in paths
    }


def placed(output: Output, folder: Path, put: Callable[..., Any], *given: object) -> Path:
    """Where a command is to write, with something there: `put` is called with what is given and the place."""
    place = output.place(folder)
    place.parent.mkdir(parents=True, exist_ok=True)
    put(*given, place)
    return place


def link(to: Path, place: Path) -> None:
    place.symlink_to(to)


def full_folder(place: Path) -> None:
    place.mkdir()
    (place / "mine.txt").write_text("mine")


def victims(output: Output, made: Path, folder: Path) -> Iterator[Path]:
    """Places where a command must not write: by what lies there, what it is called, and in whose folder it is."""
    for number, name in enumerate(FILES):
        if name not in output.own:
            yield placed(output, folder / f"copy-{number}", shutil.copy2, made / name)
            yield made / name if output.name.startswith("out") else output.place(made / name)
    for name in {*output.own, "history", "key.pem", "visits.csv", "rows"}:
        yield placed(output, folder / f"link-{name.replace('/', '-')}", link, made / name)
    yield placed(output, folder / "pipe", os.mkfifo)
    yield placed(output, folder / "nothing", link, folder / "nowhere")
    yield placed(output, folder / "folder", full_folder)
    (folder / "ws").symlink_to(made / "ws")
    for place in (made / "ws", made / "ws" / "log", made / "ws" / "new", made / "export", folder / "ws"):
        yield output.place(place)


def code_of(words: tuple[object, ...]) -> object:
    """How a command ended."""
    with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()), pytest.raises(SystemExit) as exit_:
        app(list(map(str, words)))
    return exit_.value.code


@pytest.fixture
def no_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing long is begun."""

    def began(*_: object, **__: object) -> None:
        pytest.fail("it began to work")

    for thing, name in (
        (maxrr.audit, "audit"), (replaying, "replay"), (MaxRR, "bundle"), (MaxRR, "fit"), (demo, "happen"),
        (serving, "export_onnx"), (Workspace, "dossier"), (serving.Revocations, "of"),
    ):  # fmt: skip
        monkeypatch.setattr(thing, name, began)


@pytest.mark.usefixtures("no_work")
@pytest.mark.parametrize("name", OUTPUTS)
def test_nothing_else_is_replaced(name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = OUTPUTS[name]
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    places = thinned(10, victims(output, made, tmp_path))
    before = contents(made, tmp_path)
    ended = {place: code_of(output.words(made, place)) for place in places}
    assert {place: code for place, code in ended.items() if code not in (1, 2)} == {}
    after = contents(made, tmp_path)
    assert {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)} == set()


def written_again(monkeypatch: pytest.MonkeyPatch, made: Path) -> None:
    """What takes long is known beforehand."""
    with Workspace.open(made / "ws", read_only=True) as workspace:
        hash_ = workspace.model.model_hash_
    report = replace(AuditReport.from_json((made / "report.json").read_text()), model_hash=hash_)
    monkeypatch.setattr(maxrr.audit, "audit", lambda *_, **__: report)
    monkeypatch.setattr("maxrr.unlearning.replaying.replay", lambda *_: replayed("identical"))

    def export_onnx(_: object, path: Path, **__: object) -> serving.Exported:
        path.write_bytes(b"\x08 new " + MODEL_HASH.encode())
        return serving.Exported(path, 1, "onnx", "0" * 64, "0" * 32, 0.0)

    monkeypatch.setattr(serving, "export_onnx", export_onnx)


ENDS = {
    "backup to": [0, 1],  # a folder, which is not replaced
    "audit out": [5, 5],
    "key new file": [0, 1],
}  # not enough evidence; never written over


@pytest.mark.filterwarnings("ignore:.*no other key was made")
@pytest.mark.parametrize("name", [name for name in OUTPUTS if name.split()[0] not in ("fit", "demo")])
def test_its_own_kind_is_replaced_and_a_new_file_is_made(
    name: str, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`demo` and `fit` are seen to go on with their own in tests of their own."""
    written_again(monkeypatch, made)
    monkeypatch.chdir(tmp_path)
    output = OUTPUTS[name]
    for own in (None, *output.own):
        if (name, own) == ("key rotate file", None):
            continue
        put = (lambda place: None) if own is None else partial(shutil.copy2, made / own)
        place = placed(output, tmp_path / f"{own}", put)
        assert [code_of(output.words(made, place)) for _ in range(2)] == ENDS.get(name, [0, 0])
        assert place.exists()
