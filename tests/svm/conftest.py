"""How Hypothesis runs here: the same cases every time but in `make long`, and no deadline on a shared machine."""

import pytest
from hypothesis import HealthCheck, settings

from maxrr.svm import arrays, heads, influence, validation
from tests.cases import THOROUGH

settings.register_profile(
    "svm", deadline=None, derandomize=not THOROUGH, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("svm")


@pytest.fixture
def tensors_on_a_device(monkeypatch):
    """Let tensors of the processor count as those on a graphics processor do."""
    for module in (arrays, validation, heads, influence):
        monkeypatch.setattr(module, "on_accelerator", arrays.is_torch)
