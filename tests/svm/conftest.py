"""How Hypothesis runs here: the same cases every time but in `make long`, and no deadline on a shared machine."""

from hypothesis import HealthCheck, settings

from tests.cases import THOROUGH

settings.register_profile(
    "svm", deadline=None, derandomize=not THOROUGH, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("svm")
