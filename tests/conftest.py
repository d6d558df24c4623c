"""What all tests share."""

import atexit
import functools
import gc
import itertools
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import typer.main
from hypothesis import settings

from tests.cases import THOROUGH

# The same examples in every run, so that a failure is the change's own; `make long` draws others.
settings.register_profile("same", derandomize=True, deadline=None, max_examples=6)
settings.register_profile("others", deadline=None)
settings.load_profile("others" if THOROUGH else "same")

# Before NumPy and PyTorch are first imported: each worker of pytest-xdist has a core, and several threads would wait.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
# Before SciPy is first imported: scikit-learn's checks of estimators skip array API input otherwise.
os.environ.setdefault("SCIPY_ARRAY_API", "1")
os.environ["XDG_STATE_HOME"] = os.devnull  # what fixtures of a session do with copies nobody remembers
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="maxrr-config-")  # nobody's key
atexit.register(shutil.rmtree, os.environ["XDG_CONFIG_HOME"], ignore_errors=True)
os.environ.pop("MAXRR_SIGNING_KEY", None)


@pytest.fixture(scope="session")
def state_homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders that are not there yet: to make one for every test took as long as many of them do."""
    place = tmp_path_factory.mktemp("state")
    return (place / str(number) for number in itertools.count())


@pytest.fixture(autouse=True)
def state_home(state_homes: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen of workspaces in one test is not known in another, which may have an older copy."""
    monkeypatch.setenv("XDG_STATE_HOME", str(next(state_homes)))


@pytest.fixture(scope="session", autouse=True)
def commands_made_once() -> Iterator[None]:
    """Make the command line of its functions once, not for each command, of which most take less time than that."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", functools.cache(typer.main.get_command))
        yield


@pytest.fixture(scope="session", autouse=True)
def same_cores() -> Iterator[None]:
    """Draw the same key of a core for each table: of ten records of a class, one key in fifty takes none."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxrr.cli.fit.secrets", SimpleNamespace(token_bytes=bytes([7]).__mul__))
        yield


@pytest.fixture(scope="session")
def few_models() -> Iterator[None]:
    """Let audits make do with fewer models than can show anything, for what does not depend on how many there are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("maxrr.audit.shadows.LEAST", 8)
        yield


class Turned(pytest.Dir):
    """The folder of the tests, of which each worker collects another part first: what one compiles the others read."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        found = list(super().collect())
        number = int(os.environ["PYTEST_XDIST_WORKER"].removeprefix("gw"))
        first = number * len(found) // int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
        yield from found[first:] + found[:first]


def pytest_collect_directory(path: Path, parent: pytest.Collector) -> pytest.Dir | None:
    if path != Path(__file__).parent or "PYTEST_XDIST_WORKER" not in os.environ:
        return None
    return Turned.from_parent(parent, path=path)


def pytest_collection_finish() -> None:
    """What was imported and collected stays: Python need not look through it again each time it looks for garbage."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked as long are for `make long`; all workers must have the tests in one order."""
    items.sort(key=lambda item: item.path)
    late = set() if THOROUGH else {item for item in items if item.get_closest_marker("long")}
    config.hook.pytest_deselected(items=list(late))
    items[:] = [item for item in items if item not in late]


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """A file's tests stay together, and all of some folders, which share what is measured or started there once."""
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class Together(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            shared = ("tests/lab/", "tests/cluster/", "tests/serving/", "tests/core/")
            return next((folder for folder in shared if nodeid.startswith(folder)), super()._split_scope(nodeid))

    return Together(config, log)
