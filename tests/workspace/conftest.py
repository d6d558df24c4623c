"""Workspaces that are fitted once for all tests: each test gets a copy of its own."""

import functools
import os

import pytest
from hypothesis import HealthCheck, settings

from maxrr.workspace import Workspace
from tests.small_networks import here, one_thread, solved_here  # noqa: F401
from tests.workspace.outside import KEY, created
from tests.workspace.problems import cases, copied, fixed_key

settings.register_profile(
    "workspace",
    deadline=None, derandomize=True, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("workspace")


@pytest.fixture(scope="session")
def template(tmp_path_factory):
    """The folder of a workspace by the name of its case. Not to be changed."""
    made = {}

    def of(case):
        if case not in made:
            records, model = cases()[case]
            made[case] = tmp_path_factory.mktemp("template") / "workspace"
            with fixed_key():
                Workspace.create(made[case], model, records).close()
        return made[case]

    return of


@pytest.fixture
def folder(template, tmp_path):
    """A copy of the workspace on the table, with a core by hash."""
    return copied(template("hash"), tmp_path / "workspace")


@pytest.fixture
def workspace(folder):
    """The same, open."""
    with Workspace.open(folder) as opened:
        yield opened


@pytest.fixture
def records():
    """What it was fitted on."""
    return cases()["hash"][0]


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    """The folder of a small workspace under this key, or under none. Not to be changed."""

    @functools.cache
    def of(key):
        folder = tmp_path_factory.mktemp("small") / "workspace"
        created(folder, key)
        return folder

    return of


@pytest.fixture(scope="module", params=["signed", "unsigned"])
def key(request):
    """Of a workspace that signs, and of one that does not."""
    return KEY if request.param == "signed" else None


@pytest.fixture
def no_waiting(monkeypatch):
    """Nobody waits for the device, where it is one that is only thought of."""
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda descriptor: None)
