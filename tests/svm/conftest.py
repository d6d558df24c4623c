"""How Hypothesis runs here: the same cases every time, and no deadline on a shared machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "svm", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("svm")
