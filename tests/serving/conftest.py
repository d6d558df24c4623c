"""Networks as small as those here train on one thread."""

from tests.small_networks import one_thread  # noqa: F401
