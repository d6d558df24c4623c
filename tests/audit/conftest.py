"""Shared by all tests of the audit."""

from tests.small_networks import few_draws, one_thread  # noqa: F401
