"""For tests of networks as small as ours: imported by the conftest of each room that trains some."""

from concurrent.futures import Future

import pytest
import torch

from maxrr.parallel import InProcess
from maxrr.svm import influence


@pytest.fixture(autouse=True)
def one_thread():
    """Unless a test says otherwise: on networks as small as these, two would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def solved_here(monkeypatch):
    """The heads of a ranking, in this process: before another has started they are solved. `tests/core` starts some."""
    monkeypatch.setattr(influence, "Processes", InProcess)


class Here:
    """In place of a pool of processes: does what it is given at once, in this one."""

    def __init__(self, *_, **__): ...

    def submit(self, function, *arguments):
        done = Future()
        done.set_result(function(*arguments))
        return done

    def shutdown(self, **_): ...


@pytest.fixture
def here(monkeypatch):
    """Replays without a fresh process, which takes seconds to start; in each room one or two tests have one."""
    monkeypatch.setattr("maxrr.unlearning.replaying.ProcessPoolExecutor", Here)
