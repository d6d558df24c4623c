"""Shared by all tests of the audit."""

import pytest

from tests.small_networks import one_thread  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def few(few_models: None) -> None:
    """Most tests here need no finding."""
