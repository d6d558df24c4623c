"""The command line in the process of the test, and a look into workspaces."""

import contextlib
import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from maxrr.cli import app
from maxrr.workspace import Workspace
from tests.workspace.problems import receipts_in


def receipt_file(folder: Path, number: int) -> Path:
    """A file with a receipt of a workspace, as it is handed out."""
    path = folder.parent / f"{folder.name} receipt {number}.json"
    path.write_bytes(receipts_in(folder)[number - 1])
    return path


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: object
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def error(self) -> str:
        """The code of the error, which stands at the end of its line."""
        return re.findall(r"\[([a-z-]+)\]$", self.err.strip())[0]


@dataclass(frozen=True)
class Shell:
    """A command line."""

    app: Callable[[list[str]], object] = app

    def __call__(self, *arguments: object, code: int = 0) -> Ended:
        """Run a command, which must end with this exit code, and without a traceback."""
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as exit_:
            self.app(list(map(str, arguments)))
        ended = Ended(exit_.value.code, out.getvalue(), err.getvalue())
        assert ended.code == code, ended
        assert "Traceback" not in ended.err
        return ended


def copy_and_unlearn(fitted: Path, place: Path, *requests: tuple[object, ...]) -> Path:
    """A copy of a workspace that has carried out these requests, unknown to whoever has seen the workspace."""
    folder = Path(shutil.copytree(fitted, place / "ws"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(place / "state"))
        for request in requests:
            Shell()("unlearn", folder, *request, "--yes")
    return folder


def kinds(folder: Path) -> dict[str, list[Any]]:
    """The ids of the records that are there, by kind."""
    with Workspace.open(folder, read_only=True) as workspace:
        fitted = workspace.model._fitted
        ids, alive, core = fitted.records.ids, fitted.records.alive, fitted.core
        influential = np.isin(np.arange(len(ids)), fitted.heads.support_) & ~core
        return {
            "core": ids[core & alive].tolist(),
            "influential": ids[influential & alive].tolist(),
            "free": ids[~core & ~influential & alive].tolist(),
        }


def model_of(folder: Path) -> str:
    """The hash of the model, from files that are all checked."""
    with Workspace.open(folder) as workspace:
        return workspace.status().model_hash
