"""A service on a small workspace: a table whose core is chosen by a hash, with a key that signs."""

import shutil

import pytest
from fastapi.testclient import TestClient

from maxrr.evidence import SigningKey
from maxrr.service import app
from maxrr.service.settings import Settings
from maxrr.service.tokens import ROLES
from maxrr.service.worker import Worker
from maxrr.workspace import Workspace
from tests.service.receivers import receiver, start  # noqa: F401 (fixtures)
from tests.unlearning.problems import fresh
from tests.workspace.problems import HASHED, fixed_key, table

KEY = SigningKey.generate()


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    """The folder of a workspace. Not to be changed."""
    folder = tmp_path_factory.mktemp("fitted") / "ws"
    with fixed_key():
        Workspace.create(folder, fresh(HASHED, table()), table(), signing_key=KEY).close()
    return folder


@pytest.fixture
def folder(fitted, tmp_path):
    """A copy of it."""
    return shutil.copytree(fitted, tmp_path / "ws")


def opening(folder):
    """What opens the workspace of a service."""

    def opened(read_only):
        return Workspace.open(folder, records=table, signing_key=None if read_only else KEY, read_only=read_only)

    return opened


@pytest.fixture
def settings(folder):
    """What the service is told."""
    return Settings(folder, opening(folder), gather=0.0)


class House:
    """A service with a token for each role, and a worker that works when it is told to."""

    def __init__(self, client, service):
        self.client = client
        self.service = service
        self.tokens = {role: service.tokens.make(role, role) for role in ROLES}
        self.worker = Worker(service.settings, service.requests)

    def call(self, method, path, role="operator", **options):
        headers = options.pop("headers", {})
        if role is not None:
            headers = {"Authorization": f"Bearer {self.tokens[role]}", **headers}
        return self.client.request(method, path, headers=headers, **options)

    def submit(self, role="requester", headers=None, **body):
        answer = self.call("POST", "/v1/requests", role, json=body, headers=headers or {})
        assert answer.status_code in (200, 201), answer.text
        return answer.json()

    def follow(self, id_):
        return self.call("GET", f"/v1/requests/{id_}").json()

    def work(self):
        """Carry out all that can be."""
        with self.service.settings.open(False) as workspace:
            while self.worker.turn(workspace):
                pass

    def ids(self, kind):
        return self.service.current.snapshot.model.ids_of(kind).tolist()


@pytest.fixture
def house(settings):
    """The service, listening to nobody."""
    made = app(settings)
    made.state.service.current.refresh()
    with TestClient(made, client=("127.0.0.1", 1)) as client:
        yield House(client, made.state.service)
