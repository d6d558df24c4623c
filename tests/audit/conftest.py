"""Shared by all tests of the audit."""

from tests.small_networks import one_thread  # noqa: F401
