"""How Hypothesis runs here: few cases, the same ones every time, and no deadline on a shared machine."""

from hypothesis import HealthCheck, settings

from tests.cases import THOROUGH
from tests.small_networks import one_thread  # noqa: F401

settings.register_profile(
    "nets",
    deadline=None, derandomize=True, print_blob=True, max_examples=20 if THOROUGH else 8,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)  # fmt: skip
settings.load_profile("nets")
