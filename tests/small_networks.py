"""For tests of networks as small as ours: imported by the conftest of each room that trains some."""

from contextlib import nullcontext

import pytest
import torch

from maxrr.parallel.engine import InProcess
from maxrr.svm import influence
from maxrr.unlearning import replaying


@pytest.fixture(autouse=True)
def one_thread():
    """Unless a test says otherwise: on networks as small as these, two would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def solved_here(monkeypatch):
    """The heads of a ranking, in this process: before another has started they are solved. `undisturbed` has some."""
    monkeypatch.setattr(influence, "staying", lambda module: nullcontext(InProcess()))


@pytest.fixture
def here(monkeypatch):
    """Replays without a fresh process, which takes seconds to start; in each room one or two tests have one."""
    monkeypatch.setattr(replaying, "call_in_fresh_process", lambda function, *arguments, **_: function(*arguments))
