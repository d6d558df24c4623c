"""How Hypothesis runs here: few cases, the same ones every time, and no deadline on a shared machine."""

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "nets",
    deadline=None, derandomize=True, print_blob=True, max_examples=20,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("nets")


@pytest.fixture(autouse=True)
def one_thread():
    """Unless a test says otherwise: on networks as small as these, two would only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
