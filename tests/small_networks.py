"""For tests of networks as small as ours: imported by the conftest of each room that trains some."""

import pytest
import torch


@pytest.fixture(autouse=True)
def one_thread():
    """Unless a test says otherwise: on networks as small as these, two would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
