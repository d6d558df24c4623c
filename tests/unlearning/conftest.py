"""How Hypothesis runs here, and models that are fitted once for all tests: each gets a copy of its own."""

import copy

import pytest
from hypothesis import HealthCheck, settings

from tests.small_networks import here, one_thread, solved_here  # noqa: F401
from tests.unlearning.problems import CORES, fitted, table

settings.register_profile(
    "unlearning",
    deadline=None, derandomize=True, print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("unlearning")


@pytest.fixture(params=list(CORES))
def model(request):
    """On digits, with each of the cores."""
    return copy.deepcopy(fitted(request.param))


@pytest.fixture
def hashed():
    """On digits, with a core by hash."""
    return copy.deepcopy(fitted("hash"))


@pytest.fixture
def records():
    """A table of records about people."""
    return table()
